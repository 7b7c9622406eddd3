//! Keys that have expired are cleared away a few at a time, by whoever remembers a new one.

use crate::world::*;
use kernel::Moment;

#[tokio::test]
async fn expired_keys_do_not_pile_up() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).unwrap();
    for number in 0..60u64 {
        // Forty that expire at once, then twenty much later.
        let wish = first_with(session(number), number, |wish| {
            if number >= 40 {
                wish.trail.at = Moment(1_000_000 + number);
            }
            if let Some(key) = &mut wish.key {
                key.expires = Some(wish.trail.at.after_ms(1_000));
            }
        });
        said(&store, wish).await.unwrap();
    }
    drop(store);
    let db = rusqlite::Connection::open(dir.path().join("homing.db")).unwrap();
    let left: u32 = db.query_row("SELECT count(*) FROM keys", [], |row| row.get(0)).unwrap();
    assert!((20..40).contains(&left), "{left} are left");
}
