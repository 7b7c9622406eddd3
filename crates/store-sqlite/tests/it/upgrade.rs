//! A file from before there were orgs with names, roles and groups: whoever was there is still there, and may do what they
//! could.

use crate::world::*;
use kernel::{Grant, Grantee, Moment, PersonId, Rights, Role, SessionId, To};
use rusqlite::{Connection, params};
use std::path::Path;
use store::{AuditLog, Credentials, Log, People, Views};
use store::{
    AuditQuery, ChainKey, Purpose, Resource, Seer, SessionFilter, SessionsQuery, TokenRow, Which,
    WriteOutcome,
};

const FIRST: &str = include_str!("../../migrations/0001_begin.sql");
const SECOND: &str = include_str!("../../migrations/0002_accounts.sql");
const FRIEND: PersonId = PersonId::from_bits(9);
const DISABLED: PersonId = PersonId::from_bits(10);

/// A file as the version before wrote it: its person, two sessions (one has ended), messages, a key, a grant to somebody
/// who was only heard of, credentials, a sign-in for an agent, and an audit.
fn old(dir: &Path) {
    let db = Connection::open(dir.join("homing.db")).unwrap();
    db.execute_batch(FIRST).unwrap();
    db.execute_batch(SECOND).unwrap();
    let run = |sql: &str, row: &[&dyn rusqlite::ToSql]| assert_eq!(db.execute(sql, row).unwrap(), 1, "{sql}");
    let (org, person) = (ORG.bits().to_be_bytes(), PERSON.bits().to_be_bytes());
    let (friend, gone) = (FRIEND.bits().to_be_bytes(), DISABLED.bits().to_be_bytes());
    run("INSERT INTO node_starts (node, host, pid, since) VALUES (zeroblob(16), 'old', 1, 500)", &[]);
    let somebody = "INSERT INTO persons (person, org, handle, machine, opened) VALUES (?1, ?2, ?3, ?4, ?5)";
    run(somebody, params![person, org, "Ada", 1, 1]);
    run(somebody, params![friend, org, Option::<&str>::None, 0, 0]);
    run(somebody, params![gone, org, Option::<&str>::None, 0, 0]);
    run("INSERT INTO disabled VALUES (?1)", &[&gone]);
    let token = "INSERT INTO tokens (hash, person, purpose, client, made_at, expires) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    run(token, params![[1_u8; 32], person, "machine", Option::<&str>::None, 600, Option::<i64>::None]);
    run(token, params![[2_u8; 32], person, "browser", "web", 700, 9_000]);
    for (number, ended) in [(1, None), (2, Some("asked"))] {
        run(
            "INSERT INTO sessions (id, owner, revision, title, scope, made_at, touched_at, ended, archived, awake, pending,
                                   number, term)
             VALUES (?1, 1, 1, 'a title', ?2, 800, 900, ?3, 0, 0, ?4, 0, 0)",
            params![
                session(number).bits().to_be_bytes(),
                r#"{"directory":"/srv/work","agent":"scripted"}"#,
                ended,
                i64::from(ended.is_none()),
            ],
        );
    }
    run("INSERT INTO grants (person, sid, granted) VALUES (?1, 1, 'prompt')", &[&friend]);
    run("INSERT INTO bodies (body, words) VALUES (1, x'5b5d')", &[]);
    run(
        "INSERT INTO messages (id, sid, by, body, created, if_new_ignored, accepted_at, state, pending, revision, seat,
                               changed_at)
         VALUES (?1, 1, 1, 1, 1, 0, 850, 'waiting', 1, 0, 1, 850)",
        &[&message(1).bits().to_be_bytes()],
    );
    run(
        "INSERT INTO keys (by, verb, key, hash, made) VALUES (1, 'say', 'key-1', ?1, ?2)",
        params![[1_u8; 32], message(1).bits().to_be_bytes()],
    );
    run("INSERT INTO accounts VALUES (1, 'claude', 'A_KEY', x'5ea1ed', 870)", &[]);
    let entry = "INSERT INTO audit (at, by, verb, door, correlation, session, subject, refused)
        VALUES (?1, 1, ?2, 'http', ?3, ?4, ?5, ?6)";
    let (of, said) = (session(1).bits().to_be_bytes(), message(1).bits().to_be_bytes());
    let stop = 77_u128.to_be_bytes();
    run(entry, params![850, "say", "c1", of, said, Option::<&str>::None]);
    run(entry, params![860, "stop", "c2", of, stop, Option::<&str>::None]);
    run(entry, params![870, "read", "c3", of, Option::<Vec<u8>>::None, "not_found"]);
    db.execute_batch("UPDATE counters SET inbox = 5, body = 5, place = 5").unwrap();
    db.pragma_update(None, "application_id", 0x486f_6d67).unwrap();
    db.pragma_update(None, "user_version", 2).unwrap();
}

fn everything() -> AuditQuery {
    let (since, until, who, what, subject, before) = (None, None, None, None, None, None);
    AuditQuery { org: ORG, since, until, who, what, subject, before, limit: 100 }
}

async fn upgraded() -> (tempfile::TempDir, homing_store_sqlite::SqliteStore) {
    let dir = tempfile::tempdir().unwrap();
    old(dir.path());
    let store = open(dir.path()).unwrap();
    (dir, store)
}

#[tokio::test]
async fn the_machines_person_owns_an_org_and_gets_the_first_directories() {
    let (dir, store) = upgraded().await;
    let mut fresh = home();
    fresh.owner.person = PersonId::from_bits(55);
    fresh.roots = vec!["/home/ada".into()];
    let host = store.host(fresh.clone()).await.unwrap();
    assert_eq!((host.org, host.person, host.handle.as_str()), (ORG, PERSON, "Ada"));
    assert_eq!((host.role, host.is_host, host.rights), (Role::Owner, true, Rights::ALL));
    assert_eq!(host.roots, ["/home/ada"]);
    let orgs = store.orgs().await.unwrap();
    assert_eq!(orgs.iter().map(|org| (org.name.as_str(), org.people)).collect::<Vec<_>>(), [("home", 1)]);
    let people = store.people(ORG, None, 10).await.unwrap();
    assert_eq!(people.iter().map(|row| row.handle.as_str()).collect::<Vec<_>>(), ["Ada"]);
    assert!(!people[0].has_password);
    assert!(store.login("home/ada".into()).await.unwrap().is_some_and(|row| row.person == PERSON));

    // Another start changes nothing: what they have taken back since stays taken back.
    drop(store);
    let store = open(dir.path()).unwrap();
    fresh.roots = vec!["/elsewhere".into()];
    assert_eq!(store.host(fresh).await.unwrap().roots, ["/home/ada"]);
    drop(store);
    assert_eq!(integrity(dir.path()), "ok");
}

#[tokio::test]
async fn old_credentials_let_in_with_every_right() {
    let (_dir, store) = upgraded().await;
    store.host(home()).await.unwrap();
    let machine = store.token([1; 32], Moment(1_000)).await.unwrap().unwrap();
    assert_eq!((machine.person, machine.rights, machine.client.as_deref()), (PERSON, Rights::ALL, None));
    let browser = store.token([2; 32], Moment(1_000)).await.unwrap().unwrap();
    assert_eq!(browser.client.as_deref(), Some("web"));
    assert_ne!(machine.credential, browser.credential);
    let again = store.principal(browser.credential.unwrap(), Moment(1_000)).await.unwrap();
    assert_eq!(again, Some(browser.clone()));
    assert_eq!(store.token([2; 32], Moment(9_000)).await.unwrap(), None, "it expires as it was to");
    let shown = store.tokens(ORG, PERSON).await.unwrap();
    assert_eq!(shown.len(), 1);
    assert_eq!((shown[0].token, shown[0].purpose), (browser.credential.unwrap(), Purpose::Browser));

    // The next start's own credential takes the old one's place.
    let fresh = kernel::TokenId::from_bits(3);
    let row = TokenRow::full(fresh, [3; 32], PERSON, Purpose::Machine, Moment(1_000));
    store.add_token(row).await.unwrap();
    assert_eq!(store.token([1; 32], Moment(1_000)).await.unwrap(), None);
    assert!(store.token([2; 32], Moment(1_000)).await.unwrap().is_some());
}

#[tokio::test]
async fn sessions_keys_grants_and_sign_ins_are_kept() {
    let (_dir, store) = upgraded().await;
    let host = store.host(home()).await.unwrap();
    let query = SessionsQuery {
        by: Seer::of(&host),
        which: Which::All,
        filter: SessionFilter::default(),
        after: None,
        limit: 10,
    };
    let rows = store.sessions(query).await.unwrap();
    let shown: Vec<SessionId> = rows.iter().map(|row| row.session).collect();
    assert_eq!(shown, [session(2), session(1)]);
    let (record, row) = store.session(session(1)).await.unwrap().unwrap();
    assert_eq!((record.owner, record.agent.as_str(), record.revision), (PERSON, "scripted", 1));
    assert_eq!(record.grants, [(Grantee::Person(FRIEND), Grant::Prompt)]);
    assert_eq!((row.title.as_deref(), row.pending), (Some("a title"), 1));
    let given = store.grants(ORG, Resource::Session(session(1))).await.unwrap();
    assert_eq!(given.iter().map(|row| (row.by, row.since)).collect::<Vec<_>>(), [(PERSON, Moment(800))]);
    assert!(store.may_say(session(1), PERSON).await.unwrap());
    assert!(!store.may_say(session(1), FRIEND).await.unwrap(), "they have no name, and cannot come in");
    assert!(!store.may_say(session(1), DISABLED).await.unwrap());

    // The same wish again is still the same wish, and the next one is taken.
    let seer = Seer::of(&host);
    let again = (std::sync::Arc::new(host), next(session(1), 1).1);
    assert!(matches!(accept(&store, again).await.unwrap(), WriteOutcome::Repeated(_)));
    said(&store, next(session(1), 2)).await.unwrap();
    assert!(store.find(seer, None, To::Session(session(2))).await.unwrap().record.is_some());
    let account = store.account(ORG, PERSON, "claude".into()).await.unwrap().unwrap();
    assert_eq!((account.names, &account.sealed[..]), (vec!["A_KEY".to_owned()], &b"\x5e\xa1\xed"[..]));
}

#[tokio::test]
async fn old_audit_entries_mean_what_they_meant_and_can_be_sealed() {
    let (dir, store) = upgraded().await;
    store.host(home()).await.unwrap();
    let entries = store.audit_page(everything()).await.unwrap();
    let told: Vec<_> = entries
        .iter()
        .map(|row| (row.entry, row.verb.as_str(), row.subject.clone(), row.refused.as_deref()))
        .collect();
    let request = kernel::RequestId::from_bits(77).to_string();
    let expected = [
        (3, "read", None, Some("not_found")),
        (2, "stop", Some(request), None),
        (1, "say", Some(message(1).to_string()), None),
    ];
    assert_eq!(told, expected);
    assert!(entries.iter().all(|row| row.by == Some(PERSON) && row.session == Some(session(1))));
    assert_eq!(store.seal_audit(ChainKey([7; 32]), 100).await.unwrap(), 3);
    assert_eq!(store.chain_head(ORG).await.unwrap().number, 3);
    said(&store, next(session(1), 2)).await.unwrap();
    assert_eq!(store.audit_page(everything()).await.unwrap()[0].entry, 4, "numbers go on");
    drop(store);
    assert_eq!(integrity(dir.path()), "ok");
}
