//! Migrations of the file: numbered steps, each in one transaction, each applied once.
//!
//! A step is never changed once it has been handed out; the next one is added below it. The number of the last step is
//! in the file (`user_version`), and a file with a higher number than ours is somebody else's future.

use crate::columns::{Id, Json, int};
use crate::usage;
use kernel::{Answer, Answerer, MessageId, Moment, PersonId, RequestId, Turn};
use rusqlite::{Connection, Row, Transaction, params};
use store::{Day, LastWords, UsageSum, record};

/// In the file's header, so that no other program's file is taken for ours: "Homg".
pub(crate) const APPLICATION: i32 = 0x486f_6d67;

/// One step: statements, then whatever of it no statement can say.
struct Migration {
    sql: &'static str,
    then: fn(&Transaction<'_>) -> rusqlite::Result<()>,
}

/// The steps, in order; the first is number 1.
const STEPS: [Migration; 23] = [
    Migration { sql: include_str!("../migrations/0001_begin.sql"), then: |_| Ok(()) },
    Migration { sql: include_str!("../migrations/0002_accounts.sql"), then: |_| Ok(()) },
    Migration { sql: include_str!("../migrations/0003_people.sql"), then: name_subjects },
    Migration { sql: include_str!("../migrations/0004_scope.sql"), then: write_answers_out },
    Migration { sql: include_str!("../migrations/0005_approvals.sql"), then: |_| Ok(()) },
    Migration { sql: include_str!("../migrations/0006_keys.sql"), then: |_| Ok(()) },
    Migration { sql: include_str!("../migrations/0007_outbox.sql"), then: |_| Ok(()) },
    Migration { sql: include_str!("../migrations/0008_made_with.sql"), then: |_| Ok(()) },
    Migration { sql: include_str!("../migrations/0009_audit_numbers.sql"), then: |_| Ok(()) },
    Migration { sql: include_str!("../migrations/0010_offers.sql"), then: |_| Ok(()) },
    Migration { sql: include_str!("../migrations/0011_own_addresses.sql"), then: |_| Ok(()) },
    Migration { sql: include_str!("../migrations/0012_words_bytes.sql"), then: |_| Ok(()) },
    Migration { sql: include_str!("../migrations/0013_titles.sql"), then: |_| Ok(()) },
    Migration { sql: include_str!("../migrations/0014_attachments.sql"), then: |_| Ok(()) },
    Migration { sql: include_str!("../migrations/0015_row_changes.sql"), then: |_| Ok(()) },
    Migration { sql: include_str!("../migrations/0016_rows.sql"), then: begin_last_words },
    Migration { sql: include_str!("../migrations/0017_marks.sql"), then: |_| Ok(()) },
    Migration { sql: include_str!("../migrations/0018_needs.sql"), then: |_| Ok(()) },
    Migration { sql: include_str!("../migrations/0019_search.sql"), then: |_| Ok(()) },
    Migration { sql: include_str!("../migrations/0020_doors.sql"), then: begin_doors },
    Migration { sql: include_str!("../migrations/0021_questions.sql"), then: |_| Ok(()) },
    Migration { sql: include_str!("../migrations/0022_usage.sql"), then: begin_usage },
    Migration { sql: include_str!("../migrations/0023_pushes.sql"), then: |_| Ok(()) },
];

/// The newest step that this version knows.
pub(crate) const NEWEST: u32 = STEPS.len() as u32;

/// Brings a file that has gone so many steps to the newest one.
pub(crate) fn migrate(db: &mut Connection, gone: u32) -> rusqlite::Result<()> {
    for number in gone..NEWEST {
        take(db, number)?;
    }
    Ok(())
}

fn take(db: &mut Connection, number: u32) -> rusqlite::Result<()> {
    let Migration { sql, then } = &STEPS[number as usize];
    let step = db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    step.execute_batch(sql)?;
    then(&step)?;
    step.pragma_update(None, "application_id", APPLICATION)?;
    step.pragma_update(None, "user_version", number + 1)?;
    step.commit()
}

/// The subject of audit entries was the bits of a message's or a request's id, and is its text now.
fn name_subjects(step: &Transaction<'_>) -> rusqlite::Result<()> {
    let mut subjects = step.prepare(
        "SELECT a.entry, a.subject, EXISTS (SELECT 1 FROM messages m WHERE m.id = a.subject)
         FROM audit_before a WHERE a.subject IS NOT NULL",
    )?;
    let mut name = step.prepare("UPDATE audit SET subject = ?2 WHERE entry = ?1")?;
    let mut rows = subjects.query([])?;
    while let Some(row) = rows.next()? {
        let (entry, bits, is_message): (i64, _, bool) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let subject =
            if is_message { MessageId::read(bits).to_string() } else { RequestId::read(bits).to_string() };
        name.execute(params![entry, subject])?;
    }
    drop(rows);
    drop(subjects);
    step.execute_batch("DROP TABLE audit_before")
}

/// The answer was the state itself, and only people answered. Whose time was over had nobody.
fn write_answers_out(step: &Transaction<'_>) -> rusqlite::Result<()> {
    let mut settled = step.prepare("SELECT aid, state, by FROM approvals WHERE state IN ('yes', 'no')")?;
    let mut write =
        step.prepare("UPDATE approvals SET state = 'answered', answer = ?2, answerer = ?3 WHERE aid = ?1")?;
    let mut rows = settled.query([])?;
    while let Some(row) = rows.next()? {
        let (aid, state, by): (i64, String, Option<_>) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let answer = if state == "yes" { Answer::Yes } else { Answer::No };
        let by = by.map_or(Answerer::Nobody, |bits| Answerer::Person(PersonId::read(bits)));
        write.execute(params![aid, Json(&record::encode_answer(&answer)), record::answerer_text(by)])?;
    }
    drop(rows);
    drop(settled);
    step.execute_batch("ALTER TABLE approvals DROP COLUMN by")
}

/// Story facts at the end of a turn that are looked at for its last words: each session costs no more, however long its log is. What
/// begins further back is not shown until the next turn is over.
const LAST_FACTS_MAX: u32 = 64;

/// The last words of a turn were found nowhere but in the log.
fn begin_last_words(step: &Transaction<'_>) -> rusqlite::Result<()> {
    let mut over = step.prepare("SELECT sid, last_number FROM sessions WHERE last_number IS NOT NULL")?;
    let mut told = step.prepare(
        "SELECT f.turn, f.kind, b.words FROM facts f JOIN bodies b ON b.body = f.body
         WHERE f.sid = ?1 AND f.number < ?2 AND f.rule = 0 ORDER BY f.number DESC LIMIT ?3",
    )?;
    let turn = "SELECT turn FROM messages WHERE sid = ?1 AND last = ?2 AND turn IS NOT NULL LIMIT 1";
    let mut turn = step.prepare(turn)?;
    let mut write = step.prepare("UPDATE sessions SET last_words = ?2 WHERE sid = ?1")?;
    let mut rows = over.query([])?;
    while let Some(row) = rows.next()? {
        let (sid, number): (i64, i64) = (row.get(0)?, row.get(1)?);
        let over: u32 = turn.query_row([sid, number], |row| row.get(0))?;
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get::<_, String>(1)?, row.get::<_, Vec<u8>>(2)?));
        let facts = told.query_map(params![sid, number, LAST_FACTS_MAX], read)?;
        let mut words = LastWords::default();
        for (turn, kind, body) in facts.collect::<Result<Vec<_>, _>>()?.into_iter().rev() {
            words.hear(Turn(turn), &kind, &body);
        }
        write.execute(params![sid, words.of(Turn(over))])?;
    }
    Ok(())
}

/// A message's door stood in the entry of the audit that says that it was accepted, and nowhere else.
fn begin_doors(step: &Transaction<'_>) -> rusqlite::Result<()> {
    let mut accepted =
        step.prepare("SELECT subject, door FROM audit WHERE verb = 'say' AND refused IS NULL")?;
    let mut write = step.prepare("UPDATE messages SET door = ?2 WHERE id = ?1")?;
    let mut rows = accepted.query([])?;
    while let Some(row) = rows.next()? {
        let (subject, door): (Option<String>, String) = (row.get(0)?, row.get(1)?);
        if let Some(Ok(message)) = subject.map(|subject| subject.parse::<MessageId>()) {
            write.execute(params![message.stored(), door])?;
        }
    }
    Ok(())
}

/// The sums of usage stood nowhere, but the log has all of it. A turn's agent is the one of the scope that its message was started in.
fn begin_usage(step: &Transaction<'_>) -> rusqlite::Result<()> {
    let mut told = step.prepare(
        "SELECT f.sid, f.turn, f.at, b.words FROM facts f JOIN bodies b ON b.body = f.body
         WHERE f.rule = 0 AND f.kind = 'usage'",
    )?;
    let mut place = step.prepare(
        "SELECT s.owner, ifnull(m.by, 0), ifnull(c.scope, s.scope) FROM sessions s
            LEFT JOIN messages m ON m.mid = (SELECT mid FROM messages WHERE sid = ?1 AND turn = ?2 ORDER BY first LIMIT 1)
            LEFT JOIN scopes c ON c.sid = s.sid AND c.epoch = m.epoch
         WHERE s.sid = ?1",
    )?;
    let mut write = step.prepare(usage::ADD)?;
    let mut rows = told.query([])?;
    while let Some(row) = rows.next()? {
        let (sid, turn, at): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let Some(sum) = UsageSum::told("usage", &row.get::<_, Vec<u8>>(3)?) else { continue };
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get::<_, String>(2)?));
        let (owner, by, scope): (i64, i64, String) = place.query_row([sid, turn], read)?;
        let agent = record::decode_scope(scope.as_bytes()).map(|scope| scope.agent).unwrap_or_default();
        let (day, cost) =
            (Day::of(Moment(u64::try_from(at).unwrap_or_default())).0, sum.cost_micros.map(int));
        let (input, output, cached) = (int(sum.input_tokens), int(sum.output_tokens), int(sum.cached_tokens));
        write.execute(params![owner, day, sid, agent, by, input, output, cached, cost])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(db: &Connection) -> Vec<String> {
        let mut rows =
            db.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name").unwrap();
        let texts = rows.query_map([], |row| row.get(0)).unwrap();
        texts.collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn a_file_that_came_step_by_step_looks_like_a_fresh_one() {
        let mut fresh = Connection::open_in_memory().unwrap();
        migrate(&mut fresh, 0).unwrap();
        for start in 0..NEWEST {
            let mut old = Connection::open_in_memory().unwrap();
            for number in 0..start {
                take(&mut old, number).unwrap();
            }
            let gone = old.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
            migrate(&mut old, gone).unwrap();
            assert_eq!(schema(&old), schema(&fresh));
        }
        let version: u32 = fresh.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
        assert_eq!(version, NEWEST);
    }

    #[test]
    fn what_approvals_say_is_found_under_their_ids_after_the_step_that_does_so() {
        let mut db = Connection::open_in_memory().unwrap();
        (0..4).for_each(|number| take(&mut db, number).unwrap());
        db.execute_batch(
            "INSERT INTO facts (sid, number, at, cause, rule, turn, kind, body) VALUES
                (1, 5, 0, 'runner', 0, 1, 'question', 50), (1, 7, 0, 'runner', 0, 1, 'text', 70);
             INSERT INTO approvals (id, sid, owner, turn, state, asked_at, until, number) VALUES
                (x'01', 1, 1, 1, 'open', 0, 0, 6), (x'02', 1, 1, 1, 'open', 0, 0, 8),
                (x'03', 2, 1, 1, 'open', 0, 0, 6), (x'04', 1, 1, 1, 'lapsed', 0, 0, NULL);",
        )
        .unwrap();
        migrate(&mut db, 4).unwrap();
        let mut rows = db.prepare("SELECT body FROM approvals ORDER BY id").unwrap();
        let bodies = rows.query_map([], |row| row.get::<_, Option<i64>>(0)).unwrap();
        assert_eq!(bodies.collect::<Result<Vec<_>, _>>().unwrap(), [Some(50), None, None, None]);
    }

    /// Nobody is left who was sending it, and what was sent or parked is not due.
    #[test]
    fn replies_are_kept_by_the_step_that_gives_them_doors() {
        let mut db = Connection::open_in_memory().unwrap();
        (0..6).for_each(|number| take(&mut db, number).unwrap());
        db.execute_batch(
            "INSERT INTO outbox (oid, sid, address, message, kind, state, tries, due_at) VALUES
                (3, 1, 'slack:T/C/1', x'01', 'final', 'waiting', 0, 7), (5, 1, 'schedule:a', x'02', 'final', 'sending', 2, 8),
                (6, 1, 'slack:T/C/1', x'03', 'final', 'sent', 1, 9), (9, 1, 'slack:T/C/1', x'04', 'final', 'parked', 4, 9);",
        )
        .unwrap();
        migrate(&mut db, 6).unwrap();
        let mut rows =
            db.prepare("SELECT oid, scheme, state, tries, due_at, node FROM outbox ORDER BY oid").unwrap();
        type Row = (i64, String, String, i64, Option<i64>, Option<Vec<u8>>);
        let rows = rows
            .query_map([], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?))
            })
            .unwrap();
        let row = |oid, scheme: &str, state: &str, tries, due| -> Row {
            (oid, scheme.into(), state.into(), tries, due, None)
        };
        let expected = [
            row(3, "slack", "waiting", 0, Some(7)),
            row(5, "schedule", "sending", 2, None),
            row(6, "slack", "sent", 1, None),
            row(9, "slack", "parked", 4, None),
        ];
        assert_eq!(rows.collect::<Result<Vec<Row>, _>>().unwrap(), expected);
        let insert = "INSERT INTO outbox (sid, address, scheme, message, kind, state, tries, since)
            VALUES (1, 'a:b', 'a', x'05', 'final', 'waiting', 0, 0)";
        assert_eq!(db.execute(insert, []).unwrap(), 1);
        assert!(db.last_insert_rowid() > 9, "a number is never used again");
    }

    /// Seals are made of these numbers, too.
    #[test]
    fn entries_keep_their_numbers_by_the_step_that_lets_each_org_count_its_own() {
        let mut db = Connection::open_in_memory().unwrap();
        (0..8).for_each(|number| take(&mut db, number).unwrap());
        db.execute_batch(
            "INSERT INTO audit (entry, at, oid, verb, door, correlation) VALUES
                (3, 0, 1, 'say', 'test', 'c'), (4, 0, 2, 'say', 'test', 'c'), (7, 0, 1, 'say', 'test', 'c');
             INSERT INTO audit_chain (oid, number, entry, seal, at, verb) VALUES (1, 1, 3, x'00', 0, 'say');
             UPDATE counters SET sealed = 3;",
        )
        .unwrap();
        migrate(&mut db, 8).unwrap();
        let last = |oid| crate::audit::last_number(&db, oid).unwrap();
        assert_eq!((last(1), last(2), last(3)), (7, 4, 0), "each goes on from its own last one");
        let kept = "SELECT count(*) FROM audit WHERE number = entry";
        assert_eq!(db.query_row(kept, [], |row| row.get::<_, i64>(0)).unwrap(), 3);
    }

    /// The owner of a session by then has its addresses; those of a channel stay everybody's.
    #[test]
    fn bindings_belong_to_whose_sessions_they_are_by_the_step_that_gives_everybody_their_own() {
        let mut db = Connection::open_in_memory().unwrap();
        (0..10).for_each(|number| take(&mut db, number).unwrap());
        db.execute_batch(
            "INSERT INTO bindings (bid, org, address, sid, owner, since, until) VALUES
                (1, x'01', 'api:ci/build', 1, 7, 0, NULL), (2, x'01', 'cli:host/ann/%2Fsrv', 2, 7, 0, NULL),
                (3, x'01', 'acp:zed/1', 3, 8, 0, NULL), (4, x'01', 'mcp:desk/1', 3, 8, 0, NULL),
                (5, x'01', 'web:bob/1', 3, 8, 0, NULL), (6, x'01', 'slack:T/C/1', 1, 7, 0, NULL),
                (7, x'01', 'api:ci/build', 4, 8, 0, 5);",
        )
        .unwrap();
        migrate(&mut db, 10).unwrap();
        let mut rows = db.prepare("SELECT whose FROM bindings ORDER BY bid").unwrap();
        let whose = rows.query_map([], |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!(whose.collect::<Result<Vec<_>, _>>().unwrap(), [7, 7, 8, 8, 8, 0, 8]);
        let bind = |whose: i64, address: &str| {
            let sql = "INSERT INTO bindings (org, address, sid, owner, since, whose) VALUES (x'01', ?2, 9, 9, 0, ?1)";
            db.execute(sql, params![whose, address]).is_ok()
        };
        assert!(bind(8, "api:ci/build"), "the same words of somebody else");
        assert!(!bind(7, "api:ci/build") && !bind(0, "slack:T/C/1"), "and no more than once");
    }

    #[test]
    fn rows_say_how_their_last_turn_ended_after_the_step_that_does_so() {
        let mut db = Connection::open_in_memory().unwrap();
        (0..14).for_each(|number| take(&mut db, number).unwrap());
        let text = |part: u32, offset: u32, text: &str| {
            format!(r#"{{"v":1,"turn":2,"type":"text","part":{part},"offset":{offset},"text":"{text}"}}"#)
        };
        let bodies = [text(0, 0, "let me look"), text(1, 0, "here "), "{}".to_owned(), text(1, 5, "it is")];
        for (body, words) in (10..).zip(bodies) {
            let kind = if body == 12 { "usage" } else { "text" };
            db.execute("INSERT INTO bodies VALUES (?1, ?2)", params![body, words.into_bytes()]).unwrap();
            let sql = "INSERT INTO facts (sid, number, at, cause, rule, turn, kind, body)
                 VALUES (1, ?1, 0, 'runner', 0, 2, ?2, ?1)";
            db.execute(sql, params![body, kind]).unwrap();
        }
        db.execute_batch(
            "INSERT INTO sessions (sid, id, owner, revision, scope, made_at, touched_at, archived, awake, pending, number, term)
             VALUES (1, x'01', 1, 1, '{}', 0, 0, 0, 0, 0, 20, 1), (2, x'02', 1, 1, '{}', 0, 0, 0, 0, 0, 20, 1);
             INSERT INTO messages (id, sid, by, created, if_new_ignored, accepted_at, state, pending, why, revision, seat, turn,
                                   first, last, changed_at)
             VALUES (x'01', 1, 1, 0, 0, 0, 'answered', 0, NULL, 0, 1, 1, 2, 4, 40),
                    (x'02', 1, 1, 0, 0, 0, 'failed', 0, 'time_limit', 0, 5, 2, 6, 18, 180),
                    (x'03', 1, 1, 0, 0, 0, 'held', 1, 'asked', 0, 19, NULL, NULL, NULL, 190);",
        )
        .unwrap();
        migrate(&mut db, 14).unwrap();
        let sql = "SELECT held, questions, last_outcome, last_number, last_at, last_words FROM sessions ORDER BY sid";
        let read = |row: &Row<'_>| {
            let last: (Option<String>, Option<i64>, Option<i64>) = (row.get(2)?, row.get(3)?, row.get(4)?);
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, last, row.get::<_, Option<String>>(5)?))
        };
        let mut rows = db.prepare(sql).unwrap();
        let rows = rows.query_map([], read).unwrap().collect::<Result<Vec<_>, _>>().unwrap();
        let last = (Some("time_limit".to_owned()), Some(18), Some(180));
        let none = (0, 0, (None, None, None), None);
        assert_eq!(rows, [(1, 0, last, Some("here it is".to_owned())), none]);
    }

    /// The audit knows of the messages that were accepted, and of nothing else whose subject looks like one.
    #[test]
    fn messages_have_the_door_that_the_audit_knows_by_the_step_that_gives_them_one() {
        let mut db = Connection::open_in_memory().unwrap();
        (0..19).for_each(|number| take(&mut db, number).unwrap());
        let message = |number| MessageId::from_bits(number);
        for number in [1, 2] {
            db.execute(
                "INSERT INTO messages (id, sid, by, created, if_new_ignored, accepted_at, state, pending, revision, seat, changed_at)
                 VALUES (?1, 1, 1, 0, 0, 0, 'waiting', 1, 0, 0, 0)",
                [message(number).stored()],
            )
            .unwrap();
        }
        for (verb, subject, door, refused) in [
            ("say", Some(message(1).to_string()), "cli", None),
            ("say", Some(message(2).to_string()), "http", Some("not_allowed")),
            ("say", None, "http", Some("not_found")),
            ("withdraw", Some(message(2).to_string()), "http", None),
        ] {
            db.execute(
                "INSERT INTO audit (at, oid, verb, door, correlation, subject, refused, number) VALUES (0, 1, ?1, ?2, 'c', ?3, ?4, 1)",
                params![verb, door, subject, refused],
            )
            .unwrap();
        }
        migrate(&mut db, 19).unwrap();
        let mut rows = db.prepare("SELECT door FROM messages ORDER BY id").unwrap();
        let doors = rows.query_map([], |row| row.get::<_, Option<String>>(0)).unwrap();
        assert_eq!(doors.collect::<Result<Vec<_>, _>>().unwrap(), [Some("cli".to_owned()), None]);
    }

    /// Of a turn that ran in another scope than the session's of now, and of two reports on one day.
    #[test]
    fn what_was_used_is_added_up_by_the_step_that_makes_room_for_it() {
        let mut db = Connection::open_in_memory().unwrap();
        (0..21).for_each(|number| take(&mut db, number).unwrap());
        let scope = |agent: &str| format!(r#"{{"directory":"/srv","agent":"{agent}"}}"#);
        db.execute(
            "INSERT INTO sessions (sid, id, owner, revision, scope, made_at, touched_at, archived, awake, pending, number, term)
             VALUES (1, x'01', 4, 1, ?1, 0, 0, 0, 0, 0, 20, 1)",
            [scope("newer")],
        )
        .unwrap();
        db.execute(
            "INSERT INTO scopes (sid, epoch, scope) VALUES (1, 0, ?1), (1, 1, ?2)",
            [scope("older"), scope("newer")],
        )
        .unwrap();
        db.execute_batch(
            "INSERT INTO messages (id, sid, by, created, if_new_ignored, accepted_at, state, pending, revision, seat, turn, first,
                                   epoch, changed_at)
             VALUES (x'01', 1, 7, 0, 0, 0, 'answered', 0, 0, 1, 1, 2, 0, 0), (x'02', 1, 8, 0, 0, 0, 'answered', 0, 0, 5, 2, 6, 1, 0);",
        )
        .unwrap();
        let day: i64 = 86_400_000;
        for (body, (turn, at, kind, words)) in (1i64..).zip([
            (1, 3 * day, "usage", r#"{"input_tokens":5,"output_tokens":1}"#),
            (1, 3 * day + 9, "usage", r#"{"input_tokens":50,"output_tokens":1,"cost_micros":4}"#),
            (2, 4 * day, "usage", r#"{"input_tokens":500,"output_tokens":1}"#),
            (2, 4 * day, "text", r#"{"input_tokens":9,"output_tokens":9}"#),
            (2, 4 * day, "usage", "no JSON"),
        ]) {
            db.execute("INSERT INTO bodies VALUES (?1, ?2)", params![body, words.as_bytes()]).unwrap();
            let sql = "INSERT INTO facts (sid, number, at, cause, rule, turn, kind, body)
                 VALUES (1, ?1, ?2, 'runner', 0, ?3, ?4, ?1)";
            db.execute(sql, params![body, at, turn, kind]).unwrap();
        }
        migrate(&mut db, 21).unwrap();
        let mut rows =
            db.prepare("SELECT owner, day, agent, by, input, cost FROM usage ORDER BY day").unwrap();
        type Row = (i64, i64, String, i64, i64, Option<i64>);
        let rows = rows.query_map([], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?))
        });
        let rows = rows.unwrap().collect::<Result<Vec<Row>, _>>().unwrap();
        assert_eq!(rows, [(4, 3, "older".into(), 7, 55, Some(4)), (4, 4, "newer".into(), 8, 500, None)]);
    }

    #[test]
    fn a_step_that_fails_leaves_nothing() {
        let mut db = Connection::open_in_memory().unwrap();
        db.execute_batch("CREATE TABLE audit (other TEXT)").unwrap();
        let before = schema(&db);
        assert!(migrate(&mut db, 0).is_err());
        assert_eq!(schema(&db), before);
    }
}
