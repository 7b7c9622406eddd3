//! The same GET again and again on one connection: `path=…`, `count=…` times.

use std::time::Instant;

use crate::http::{Connection, get};
use crate::{Asked, Times};

/// Requests before the first that counts, so that caches are as they are in use.
const WARM: usize = 20;

pub(crate) async fn gets(asked: &Asked) -> String {
    let count: usize = asked.number("count");
    let request = get(asked, asked.text("path"), "application/json");
    let mut connection = Connection::open(asked.host()).await;
    let (mut times, mut items) = (Times::default(), 0);
    for number in 0..WARM + count {
        let began = Instant::now();
        let answered = connection.ask(&request).await;
        if number >= WARM {
            times.note(began.elapsed());
        } else if number == 0 {
            items = answered.json()["items"].as_array().map_or(0, Vec::len);
        }
        assert_eq!(answered.status, 200, "{}", String::from_utf8_lossy(&answered.body));
    }
    format!(r#"{{"items":{items},{}}}"#, times.members())
}
