//! A file from before scopes changed and answers had forms: everything in it means what it meant, and the story goes on.

use crate::world::*;
use homing_store_sqlite::SqliteStore;
use kernel::{Answer, Answerer, ApprovalId, Delivery, Epoch, Fact, Moment, Number, Scope, Turn};
use rusqlite::{Connection, ToSql, params};
use std::path::Path;
use store::{
    ApprovalState, ApprovalsQuery, InboxItem, ReceiptState, Seer, SessionFilter, SessionsQuery, StoredEntry,
    Which, rebuild, record,
};
use store::{Log, People, Views};

const STEPS: [&str; 3] = [
    include_str!("../../migrations/0001_begin.sql"),
    include_str!("../../migrations/0002_accounts.sql"),
    include_str!("../../migrations/0003_people.sql"),
];
const UNSEEN_SEAT: i64 = 1 << 48;
const SCOPE: &str = r#"{"directory":"/srv/work","agent":"scripted","model":"m"}"#;

fn approval(number: u128) -> ApprovalId {
    ApprovalId::from_bits(number)
}

/// The log of the session, as the version before wrote it.
fn log() -> Vec<String> {
    let by = PERSON;
    let asked =
        |number| format!(r#"{{"asked":{{"approval":"{}","turn":1,"until":9000}}}}"#, approval(number));
    vec![
        format!(r#"{{"opened":{{"scope":{SCOPE}}}}}"#),
        format!(r#"{{"queued":{{"message":"{}","by":"{by}"}}}}"#, message(1)),
        format!(r#"{{"turn_started":{{"turn":1,"message":"{}"}}}}"#, message(1)),
        asked(1),
        asked(2),
        asked(3),
        asked(4),
        format!(r#"{{"answered":{{"approval":"{}","answer":"yes","by":"{by}"}}}}"#, approval(1)),
        format!(r#"{{"answered":{{"approval":"{}","answer":"no"}}}}"#, approval(2)),
        format!(r#"{{"lapsed":{{"approval":"{}"}}}}"#, approval(3)),
        format!(r#"{{"queued":{{"message":"{}","by":"{by}"}}}}"#, message(2)),
        format!(r#"{{"held":{{"message":"{}","why":"asked","expires":9000}}}}"#, message(2)),
        format!(r#"{{"message_refused":{{"message":"{}","why":"expired"}}}}"#, message(3)),
    ]
}

/// A file as the version before left it: a turn under way with an open question, one that was granted, one that nobody
/// answered in time and one that lapsed; a held message, a refused one, and one that no keeper has seen.
fn old(dir: &Path) {
    let db = Connection::open(dir.join("homing.db")).unwrap();
    STEPS.iter().for_each(|step| db.execute_batch(step).unwrap());
    // What the third step leaves to its code, which finds nothing in an empty file.
    db.execute_batch("DROP TABLE audit_before").unwrap();
    let run = |sql: &str, row: &[&dyn ToSql]| assert_eq!(db.execute(sql, row).unwrap(), 1, "{sql}");
    let (org, person) = (ORG.bits().to_be_bytes(), PERSON.bits().to_be_bytes());
    run("INSERT INTO orgs (org, name, name_key, opened, made_at) VALUES (?1, 'home', 'home', 1, 1)", &[&org]);
    run(
        "INSERT INTO persons (person, org, handle, handle_key, role, host, standing, opened, made_at)
         VALUES (?1, ?2, 'ada', 'ada', 'owner', 1, 1, 1, 1)",
        params![person, org],
    );
    run(
        "INSERT INTO sessions (id, owner, revision, title, scope, made_at, touched_at, archived, awake, pending, number,
                               term)
         VALUES (?1, 1, 5, 'a title', ?2, 800, 900, 0, 1, 3, 13, 7)",
        params![session(1).bits().to_be_bytes(), SCOPE],
    );
    for (number, state, pending, why, seat, turn, first) in [
        (1, "running", 1, None, 2, Some(1), Some(3)),
        (2, "held", 1, Some("asked"), 11, None, None),
        (3, "refused", 0, Some("expired"), UNSEEN_SEAT + 3, None, None),
        (4, "waiting", 1, None, UNSEEN_SEAT + 4, None, None::<i64>),
    ] {
        let body = number as i64;
        let row = params![message(number).bits().to_be_bytes(), state, pending, why, seat, turn, first, body];
        run("INSERT INTO bodies (body, words) VALUES (?1, x'5b5d')", &[&body]);
        run(
            "INSERT INTO messages (id, sid, by, body, created, if_new_ignored, accepted_at, state, pending, why, revision,
                                   seat, turn, first, changed_at)
             VALUES (?1, 1, 1, ?8, 0, 0, 850, ?2, ?3, ?4, 0, ?5, ?6, ?7, 5000)",
            row,
        );
    }
    run(
        "INSERT INTO inbox (session, number, at, kind, id, by) VALUES (?1, 4, 850, 'say', ?2, ?3)",
        params![session(1).bits().to_be_bytes(), message(4).bits().to_be_bytes(), person],
    );
    for (number, state, by) in
        [(1, "yes", Some(person)), (2, "no", None), (3, "lapsed", None), (4, "open", None)]
    {
        run(
            "INSERT INTO approvals (id, sid, owner, turn, state, by, asked_at, until)
             VALUES (?1, 1, 1, 1, ?2, ?3, 5000, 9000)",
            params![approval(number).bits().to_be_bytes(), state, by],
        );
    }
    for (number, fact) in (1..).zip(log()) {
        let sql =
            "INSERT INTO facts (sid, number, at, cause, rule, fact) VALUES (1, ?1, 5000, 'keeper', 1, ?2)";
        run(sql, params![number, fact]);
    }
    run("INSERT INTO checkpoints VALUES (1, 2, '{\"version\":1,\"facts\":[]}')", &[]);
    db.execute_batch("UPDATE counters SET inbox = 5, body = 5, place = 5").unwrap();
    db.pragma_update(None, "application_id", 0x486f_6d67).unwrap();
    db.pragma_update(None, "user_version", 3).unwrap();
}

fn upgraded() -> (tempfile::TempDir, SqliteStore) {
    let dir = tempfile::tempdir().unwrap();
    old(dir.path());
    let store = open(dir.path()).unwrap();
    (dir, store)
}

fn scope() -> Scope {
    record::decode_scope(SCOPE.as_bytes()).unwrap()
}

#[tokio::test]
async fn a_session_acts_where_it_did_in_its_first_epoch() {
    let (dir, store) = upgraded();
    let (seen, row) = store.session(session(1)).await.unwrap().unwrap();
    assert_eq!((row.scope, row.epoch, row.origin), (scope(), Epoch(0), None));
    assert_eq!((row.pending, row.awake, row.at), (3, true, Number(13)));
    assert_eq!((seen.revision, seen.agent.as_str()), (5, "scripted"));
    let loaded = store.load(session(1)).await.unwrap().unwrap();
    assert_eq!((loaded.scope, loaded.origin, loaded.facts.len()), (scope(), None, 13), "from the log alone");
    assert_eq!(loaded.facts[0], Fact::Opened { scope: scope(), origin: None, enter: None });
    assert_eq!(loaded.enter, None);
    assert_eq!(store.scope(session(1), Epoch(0)).await.unwrap(), Some(scope()));
    assert_eq!(store.worktrees_in_use().await.unwrap(), []);
    assert_eq!(store.rules(ORG).await.unwrap(), []);
    let query = SessionsQuery {
        by: Seer::of(&somebody()),
        which: Which::All,
        filter: SessionFilter::default(),
        after: None,
        limit: 10,
    };
    assert_eq!(store.sessions(query).await.unwrap().len(), 1);
    drop(store);
    assert_eq!(integrity(dir.path()), "ok");
}

#[tokio::test]
async fn receipts_and_questions_are_what_the_log_makes_of_them() {
    let (_dir, store) = upgraded();
    let log = store.facts(session(1), Number(0), 100, usize::MAX).await.unwrap();
    let made = rebuild(&log);
    for number in 1..=3 {
        let (_, row) = store.receipt(message(number)).await.unwrap().unwrap();
        let standing = made.receipts[&message(number)];
        assert_eq!(
            (row.state, row.why, row.epoch),
            (standing.state, standing.why, standing.epoch),
            "{number}"
        );
        assert_eq!((row.turn, row.first), (standing.turn, standing.first), "{number}");
        assert_eq!(row.delivery, Delivery::Queue);
    }
    let (_, unseen) = store.receipt(message(4)).await.unwrap().unwrap();
    assert_eq!((unseen.state, unseen.epoch), (ReceiptState::Waiting, None));
    let yes = ApprovalState::Answered { answer: Answer::Yes, by: Answerer::Person(PERSON) };
    let late = ApprovalState::Answered { answer: Answer::No, by: Answerer::Nobody };
    for (number, state) in [(1, yes), (2, late), (3, ApprovalState::Lapsed), (4, ApprovalState::Open)] {
        let (_, row) = store.approval(approval(number)).await.unwrap().unwrap();
        assert_eq!((row.state, row.turn, row.until), (state.clone(), Turn(1), Moment(9_000)));
        assert_eq!(made.approvals[&approval(number)].state, state);
    }
    let open = store.approvals(ApprovalsQuery::open(Seer::of(&somebody()), 10)).await.unwrap();
    assert_eq!(open.iter().map(|row| row.approval).collect::<Vec<_>>(), [approval(4)]);
    assert!(log.iter().all(|stored| matches!(stored.entry, StoredEntry::Rule(_))));
    let (_, row) = store.session(session(1)).await.unwrap().unwrap();
    assert_eq!((row.questions, row.held, row.last), (made.questions(), 1, made.last));
    assert_eq!(row.questions, 1);
}

#[tokio::test]
async fn what_waited_still_waits_and_the_story_goes_on() {
    let (_dir, store) = upgraded();
    let inbox = store.inbox(session(1), 10).await.unwrap();
    let item = InboxItem::Say { message: message(4), by: PERSON, delivery: Delivery::Queue, under: None };
    assert_eq!(inbox.iter().map(|row| &row.item).collect::<Vec<_>>(), [&item]);
    let facts = [
        Fact::Queued { message: message(4), by: PERSON, delivery: Delivery::Steer, epoch: Epoch(0) },
        Fact::Steered { message: message(4), turn: Turn(1) },
        Fact::Missed { message: message(4) },
        Fact::Answered { approval: approval(4), answer: Answer::Said("so".into()), by: Answerer::Policy },
        Fact::ScopeChanged { epoch: Epoch(1), scope: Scope { agent: "other".into(), ..scope() } },
    ];
    let new = |fact| store::NewFact {
        at: Moment(6_000),
        cause: store::Cause::Keeper,
        entry: store::Entry::Rule(fact),
    };
    let append = store::Append {
        facts: facts.into_iter().map(new).collect(),
        drained: vec![4],
        staying: vec![],
        term: kernel::Term(8),
        ..story(session(1), 13, 0)
    };
    assert_eq!(store.append(append).await.unwrap(), store::Appending::Done(Number(18)));
    let queue = store.queue(session(1)).await.unwrap();
    assert_eq!(queue.iter().map(|row| row.message).collect::<Vec<_>>(), [1, 4, 2].map(message));
    let (seen, row) = store.session(session(1)).await.unwrap().unwrap();
    assert_eq!((seen.revision, seen.agent.as_str(), row.epoch), (6, "other", Epoch(1)));
    let (_, row) = store.approval(approval(4)).await.unwrap().unwrap();
    let said = ApprovalState::Answered { answer: Answer::Said("so".into()), by: Answerer::Policy };
    assert_eq!(row.state, said);
}
