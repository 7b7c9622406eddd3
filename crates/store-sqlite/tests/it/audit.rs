//! Pages of the audit are read by different ways, sealed or not: each shows exactly what a look at every entry would.

use crate::world::*;
use homing_store_sqlite::SqliteStore;
use kernel::{Moment, OrgId, PersonId};
use rusqlite::Connection;
use store::chain::ChainWalk;
use store::{AuditEntry, AuditQuery, AuditRow, ChainKey, Trail};
use store::{AuditLog, Credentials};

const KEY: ChainKey = ChainKey([7; 32]);
const ORGS: [OrgId; 2] = [ORG, OrgId::from_bits(0x0716)];
const VERBS: [&str; 3] = ["say", "give", "sign_in"];

/// Small numbers that look like any others.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

fn person(number: u64) -> PersonId {
    PersonId::from_bits(0x9e0 << 64 | u128::from(number))
}

fn subject(dice: &mut Dice) -> Option<String> {
    match dice.below(4) {
        0 => None,
        1 => Some(session(dice.below(3)).to_string()),
        2 => Some(format!("{} {}", person(dice.below(3)), "claude")),
        _ => Some(message(dice.below(5)).to_string()),
    }
}

/// An entry of some org about something. Clocks go back now and then.
async fn write(store: &SqliteStore, dice: &mut Dice, number: u64) {
    let (org, by) = (ORGS[dice.below(2) as usize], person(dice.below(3)));
    let at = Moment(10_000 + number * 10 - dice.below(100));
    let trail = Trail {
        verb: VERBS[dice.below(3) as usize],
        door: "test",
        correlation: format!("c{number}"),
        address: Some([10, 0, 0, number as u8].into()),
        at,
    };
    let by = (dice.below(8) > 0).then_some((org, by));
    store.audit(AuditEntry { by, subject: subject(dice), trail, refused: "not_allowed" }).await.unwrap();
}

fn any(dice: &mut Dice) -> AuditQuery {
    let mut perhaps = |end: u64, odds: u64| (dice.below(odds) == 0).then(|| dice.below(end));
    let (since, until, before) = (perhaps(3_000, 3), perhaps(3_000, 4), perhaps(320, 4));
    let (who, what, about) = (perhaps(4, 3), perhaps(3, 3), perhaps(6, 3));
    AuditQuery {
        org: ORGS[dice.below(2) as usize],
        since: since.map(|since| Moment(10_000 + since)),
        until: until.map(|until| Moment(10_000 + until)),
        who: who.map(person),
        what: what.map(|what| VERBS[what as usize].into()),
        subject: about.map(|about| match about {
            0 => "claude".into(),
            1 => person(1).to_string(),
            2 => format!("{} claude", person(2)),
            3 => message(2).to_string(),
            _ => session(about - 3).to_string(),
        }),
        before,
        limit: 1 + dice.below(12) as usize,
    }
}

fn everything(org: OrgId) -> AuditQuery {
    let (since, until, who, what, subject, before) = (None, None, None, None, None, None);
    AuditQuery { org, since, until, who, what, subject, before, limit: usize::MAX }
}

#[tokio::test]
async fn every_page_shows_what_a_look_at_each_entry_would() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).unwrap();
    store.host(home()).await.unwrap();
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let mut shown = 0;
    for round in 0..6 {
        for number in 0..50 {
            write(&store, &mut dice, round * 50 + number).await;
        }
        // Nothing is sealed at first; later everything but the last few.
        let sealed = store.seal_audit(KEY, if round == 0 { 0 } else { 45 }).await.unwrap();
        assert_eq!(sealed, if round == 0 { 0 } else { 45 });
        let mut all = store.audit_page(everything(ORGS[0])).await.unwrap();
        all.extend(store.audit_page(everything(ORGS[1])).await.unwrap());
        all.sort_by_key(|row| std::cmp::Reverse(row.entry));
        assert_eq!(all.len() as u64, (round + 1) * 50);
        for _ in 0..60 {
            let query = any(&mut dice);
            let page = store.audit_page(query.clone()).await.unwrap();
            let fits = all.iter().filter(|row| row.fits(&query)).take(query.limit);
            assert_eq!(page, fits.cloned().collect::<Vec<_>>(), "round {round}: {query:?}");
            shown += page.len();
        }
    }
    assert!(shown > 300, "only {shown} entries were on any page");
}

/// The number of the first entry of a chain that is not as it was sealed, or is not there.
async fn first_wrong(store: &SqliteStore, org: OrgId) -> Option<u64> {
    let head = store.chain_head(org).await.unwrap();
    let mut walk = ChainWalk::default();
    let rows: Vec<AuditRow> = store.sealed(org, 0, usize::MAX).await.unwrap();
    let keys = store.sealed_keys(org, 0, usize::MAX).await.unwrap();
    for (row, keys) in rows.iter().zip(&keys) {
        if walk.step(&KEY, row, Some(keys)).is_err() {
            break;
        }
    }
    (walk.head() != head).then_some(walk.head().number + 1)
}

#[tokio::test]
async fn whatever_is_changed_by_hand_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).unwrap();
    store.host(home()).await.unwrap();
    let mut dice = Dice(42);
    for number in 0..60 {
        write(&store, &mut dice, number).await;
    }
    while store.seal_audit(KEY, 7).await.unwrap() > 0 {}
    assert_eq!(first_wrong(&store, ORG).await, None);
    assert_eq!(first_wrong(&store, ORGS[1]).await, None);
    let last = store.chain_head(ORG).await.unwrap().number;
    // The first that is about one word.
    let once = "SELECT min(number) FROM (SELECT number FROM audit_about WHERE oid = 1 GROUP BY number HAVING count(*) = 1)";
    let about: u32 = Connection::open(dir.path().join("homing.db"))
        .unwrap()
        .query_row(once, [], |row| row.get(0))
        .unwrap();
    let about = u64::from(about);
    let of = |number: u64| format!("(SELECT entry FROM audit_chain WHERE oid = 1 AND number = {number})");
    let harms = [
        (format!("UPDATE audit SET verb = 'read' WHERE entry = {}", of(5)), 5),
        (format!("UPDATE audit SET at = at + 1 WHERE entry = {}", of(6)), 6),
        (format!("UPDATE audit SET by = CASE WHEN by IS NULL THEN 1 END WHERE entry = {}", of(7)), 7),
        (format!("UPDATE audit SET address = NULL WHERE entry = {}", of(8)), 8),
        (format!("UPDATE audit SET refused = NULL WHERE entry = {}", of(last)), last),
        (format!("UPDATE audit SET subject = 'other' WHERE entry = {}", of(1)), 1),
        (format!("DELETE FROM audit WHERE entry = {}", of(9)), 9),
        (format!("DELETE FROM audit WHERE entry = {}", of(last)), last),
        ("DELETE FROM audit_chain WHERE oid = 1 AND number = 10".to_owned(), 10),
        (format!("DELETE FROM audit_chain WHERE oid = 1 AND number = {last}"), last),
        ("UPDATE audit_chain SET seal = zeroblob(32) WHERE oid = 1 AND number = 11".to_owned(), 11),
        // By these it is found: whoever changes them hides it.
        ("UPDATE audit_chain SET verb = 'read' WHERE oid = 1 AND number = 12".to_owned(), 12),
        ("UPDATE audit_chain SET by = coalesce(by, 0) + 1000 WHERE oid = 1 AND number = 13".to_owned(), 13),
        ("UPDATE audit_chain SET at = at - 1 WHERE oid = 1 AND number = 14".to_owned(), 14),
        (format!("DELETE FROM audit_about WHERE oid = 1 AND number = {about}"), about),
        (format!("UPDATE audit_about SET about = 'other' WHERE oid = 1 AND number = {about}"), about),
    ];
    for (harm, number) in harms {
        let copy = tempfile::tempdir().unwrap();
        homing_store_sqlite::backup(dir.path(), &copy.path().join("homing.db")).unwrap();
        let db = Connection::open(copy.path().join("homing.db")).unwrap();
        assert_eq!(db.execute(&harm, []).unwrap(), 1, "{harm}");
        drop(db);
        let harmed = open(copy.path()).unwrap();
        assert_eq!(first_wrong(&harmed, ORG).await, Some(number), "{harm}");
        assert_eq!(first_wrong(&harmed, ORGS[1]).await, None, "another org's chain is another chain");
    }
}
