//! The limit for accepts: the very rows of an accepted message, written by plain SQLite in groups, and nothing else.
//!
//! `raw DIR GROUP MS` makes a fresh database in DIR with our migrations, commits groups of GROUP messages for MS
//! milliseconds, one after the other, and prints accepts per second and what a commit takes. There are no lookups, no
//! threads, no savepoints and no keepers here: this is what a server could reach that did nothing but write. Before it
//! begins it lets the store accept a few messages and compares which rows that added, so that the two cannot drift.

use bytes::Bytes;
use homing_store_sqlite::{Options, SqliteStore};
use kernel::{Delivery, MessageId, Moment, NodeId, OrgId, PersonId, Role, Scope, SessionId, To};
use rusqlite::{Connection, params};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{Chosen, Key, NewMessage, NewOrg, NewPerson, NewSession, Trail, WriteOutcome};
use store::{Credentials, WayIn};

/// All of them: the rows have the indexes that the store's have.
const MIGRATIONS: [&str; 12] = [
    include_str!("../migrations/0001_begin.sql"),
    include_str!("../migrations/0002_accounts.sql"),
    include_str!("../migrations/0003_people.sql"),
    include_str!("../migrations/0004_scope.sql"),
    include_str!("../migrations/0005_approvals.sql"),
    include_str!("../migrations/0006_keys.sql"),
    include_str!("../migrations/0007_outbox.sql"),
    include_str!("../migrations/0008_made_with.sql"),
    include_str!("../migrations/0009_audit_numbers.sql"),
    include_str!("../migrations/0010_offers.sql"),
    include_str!("../migrations/0011_own_addresses.sql"),
    include_str!("../migrations/0012_words_bytes.sql"),
];
/// As the bench has them: so many sessions, so many bytes of words in each message.
const SESSIONS: u64 = 64;
const WORDS_BYTES: usize = 240;
/// Messages that both write before they are compared.
const COMPARED: u64 = 8;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [dir, group, ms] = &arguments[..] else { panic!("usage: raw DIR GROUP MS") };
    let (dir, group) = (Path::new(dir), group.parse().expect("a number of messages"));
    let length = Duration::from_millis(ms.parse().expect("milliseconds"));
    let by_store = rows_of_the_store(&dir.join("store"));
    let mut raw = Raw::open(&dir.join("raw.db"));
    let before = count(&raw.db);
    raw.commit(COMPARED);
    assert_eq!(added(&before, &count(&raw.db)), by_store, "the store writes other rows than we do");
    println!("{}", raw.run(group, length));
}

struct Raw {
    db: Connection,
    number: u64,
    dice: u64,
}

impl Raw {
    fn open(path: &Path) -> Self {
        let db = Connection::open(path).expect("a database");
        for migration in MIGRATIONS {
            db.execute_batch(migration).expect("our tables");
        }
        // What a migration leaves for the code beside it: there is nothing in it here.
        db.execute_batch("DROP TABLE audit_before").expect("our tables");
        db.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -4096;")
            .expect("settings");
        db.set_prepared_statement_cache_capacity(32);
        let raw = Self { db, number: 0, dice: 0x9e37_79b9_7f4a_7c15 };
        raw.run_one(
            "INSERT INTO persons (person, org, handle, handle_key, role, host, standing, opened, made_at)
             VALUES (?1, ?2, 'bench', 'bench', 'owner', 1, 1, 64, 0)",
            params![[1_u8; 16], [2_u8; 16]],
        );
        raw.run_one("INSERT INTO orgs (org, opened, made_at) VALUES (?1, 64, 0)", params![[2_u8; 16]]);
        for session in 1..=SESSIONS {
            raw.run_one(
                "INSERT INTO sessions (id, owner, revision, scope, made_at, touched_at, archived, awake, pending, number,
                                       term) VALUES (?1, 1, 1, ?2, ?3, ?3, 0, 1, 0, 0, 0)",
                params![id(session), r#"{"directory":"/srv/work","agent":"scripted"}"#, now_ms()],
            );
        }
        raw
    }

    /// Commits groups until the time is over.
    fn run(&mut self, group: u64, length: Duration) -> String {
        let (began, mut took) = (Instant::now(), Vec::new());
        while began.elapsed() < length {
            let start = Instant::now();
            self.commit(group);
            took.push(start.elapsed());
        }
        let per_second = (took.len() as u64 * group) as f64 / began.elapsed().as_secs_f64();
        took.sort_unstable();
        let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e6;
        format!(r#"{{"per_second":{per_second:.0},"p50_us":{:.0},"p99_us":{:.0}}}"#, at(0.5), at(0.99))
    }

    fn commit(&mut self, group: u64) {
        self.run_one("BEGIN IMMEDIATE", []);
        for _ in 0..group {
            self.write();
        }
        let number = self.number as i64;
        self.run_one("UPDATE counters SET inbox = ?1, body = ?1, place = 0", [number]);
        self.run_one("COMMIT", []);
    }

    /// Writes what `intake::accept` does for a message to a session that is there.
    fn write(&mut self) {
        self.number += 1;
        let (number, now) = (self.number as i64, now_ms());
        let sid = number % SESSIONS as i64 + 1;
        let (session, message) = (id(sid as u64), id(now as u64 * 1_000_000 + self.number));
        let subject = MessageId::from_bits(u128::from_be_bytes(message)).to_string();
        self.run_one(
            "UPDATE sessions SET pending = pending + 1, touched_at = max(touched_at, ?2),
                words_bytes = words_bytes + ?3 WHERE sid = ?1",
            [sid, now, WORDS_BYTES as i64],
        );
        self.run_one("UPDATE persons SET words_bytes = words_bytes + ?1 WHERE pid = 1", [WORDS_BYTES as i64]);
        self.run_one(
            "INSERT INTO inbox (session, number, at, kind, id, by, wish) VALUES (?1, ?2, ?3, 'say', ?4, ?5, NULL)",
            params![session, number, now, message, [1_u8; 16]],
        );
        self.run_one("INSERT INTO bodies (body, words) VALUES (?1, ?2)", params![number, words()]);
        self.run_one(
            "INSERT INTO messages (id, sid, by, body, reply, created, previous, previous_why, if_new_ignored,
                                   accepted_at, state, pending, revision, seat, changed_at)
             VALUES (?1, ?2, 1, ?3, NULL, 0, NULL, NULL, 0, ?4, 'waiting', 1, 0, ?5, ?4)",
            params![message, sid, number, now, (1_i64 << 48) + number],
        );
        let (high, low) = (self.roll(), self.roll());
        self.run_one(
            "INSERT INTO keys (by, verb, key, hash, made, expires) VALUES (1, 'say', ?1, ?2, ?3, ?4)",
            params![format!("{high:016x}{low:016x}"), [7_u8; 32], message, now + 2_592_000_000],
        );
        self.run_one(
            "INSERT INTO audit (at, oid, by, verb, door, address, correlation, session, subject)
             VALUES (?1, 1, 1, 'say', 'http', '127.0.0.1', ?2, ?3, ?4)",
            params![now, format!("{low:032x}"), session, subject],
        );
    }

    fn run_one(&self, sql: &str, params: impl rusqlite::Params) {
        self.db.prepare_cached(sql).expect("our statement").execute(params).expect("it can be run");
    }

    /// Keys are random, as the command line's are; ids are not, as ours are not.
    fn roll(&mut self) -> u64 {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        self.dice
    }
}

fn id(number: u64) -> [u8; 16] {
    u128::from(number).to_be_bytes()
}

fn words() -> Vec<u8> {
    format!(r#"[{{"type":"text","text":"{}"}}]"#, "x".repeat(WORDS_BYTES)).into_bytes()
}

fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    since.as_millis() as i64
}

/// Rows by table.
type Rows = Vec<(String, i64)>;

fn count(db: &Connection) -> Rows {
    let mut names =
        db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").expect("tables");
    let names: Vec<String> =
        names.query_map([], |row| row.get(0)).expect("names").collect::<Result<_, _>>().expect("names");
    let count = |name: &String| db.query_row(&format!("SELECT count(*) FROM {name}"), [], |row| row.get(0));
    names.into_iter().map(|name| (name.clone(), count(&name).expect("a count"))).collect()
}

fn added(before: &Rows, after: &Rows) -> Rows {
    let more = before.iter().zip(after).map(|((name, few), (_, many))| (name.clone(), many - few));
    more.filter(|(name, rows)| *rows != 0 && name != "sqlite_sequence").collect()
}

/// The rows that the store adds for a few accepted messages.
fn rows_of_the_store(dir: &Path) -> Rows {
    let options = Options::new(NodeId::from_bits(1), "bench", Moment(1));
    let store = SqliteStore::open(dir, &options).expect("a store");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let look = || count(&Connection::open(dir.join("homing.db")).expect("the store's file"));
    runtime.block_on(accept(&store, 0));
    let before = look();
    for number in 1..=COMPARED {
        runtime.block_on(accept(&store, number));
    }
    added(&before, &look())
}

async fn accept(store: &SqliteStore, number: u64) {
    let (org, person, role) = (OrgId::from_bits(1), PersonId::from_bits(2), Role::Owner);
    let owner = NewPerson { person, handle: "bench".into(), name: None, email: None, role };
    let fresh = NewOrg { org, name: "bench".into(), owner, roots: vec![] };
    let by = store.host(fresh).await.expect("the store works");
    let session = SessionId::from_bits(3);
    let new = |to, fresh| NewMessage {
        message: MessageId::from_bits(u128::from(number + 1)),
        to,
        fresh,
        like: None,
        expected: None,
        asks_for_new: false,
        words: Bytes::from(words()),
        attachments: Vec::new(),
        unfit: Vec::new(),
        opening: None,
        delivery: Delivery::Queue,
        unattended: false,
        under: None,
        reply: None,
        key: Some(Key {
            verb: "say",
            key: format!("key-{number}"),
            hash: [7; 32],
            expires: Some(Moment(u64::MAX >> 1)),
        }),
        trail: Trail {
            verb: "say",
            door: "http",
            correlation: "0".repeat(32),
            address: Some(std::net::Ipv4Addr::LOCALHOST.into()),
            at: Moment(number),
        },
        pending_max: u32::MAX,
        words_bytes_max: u64::MAX,
        schemes: &[],
    };
    let new = if number == 0 {
        let scope = Scope {
            directory: "/srv/work".into(),
            agent: "scripted".into(),
            model: None,
            mode: None,
            worktree: None,
        };
        let chosen = Chosen { agent: "scripted".into(), directory: None };
        let (origin, enter, title, bind, open_max, org_open_max) = (None, None, None, None, 1, 1);
        let fresh = NewSession { session, scope, origin, enter, title, bind, chosen, open_max, org_open_max };
        new(To::New, Some(Box::new(fresh)))
    } else {
        new(To::Session(session), None)
    };
    let accepted = store.accept(Arc::new(by), new).await.expect("the store works");
    assert!(matches!(accepted, WriteOutcome::Done(_)), "{accepted:?}");
}
