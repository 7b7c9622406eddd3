//! A directory with a store in it, and the few things tests say to one.

use bytes::Bytes;
use homing_store_sqlite::{OpenError, Options, SqliteStore};
use kernel::{
    Delivery, MessageId, Moment, NodeId, OrgId, PersonId, Principal, Role, Scheme, Scope, SessionId, Term, To,
};
use std::path::Path;
use std::sync::Arc;
use store::{
    Accepted, Append, Cause, Chosen, Entry, FIRST_STANDING, Key, NewFact, NewMessage, NewOrg, NewPerson,
    NewSession, Rejection, StoreError, Trail, WriteOutcome,
};
use store::{Credentials, WayIn};

/// The node that every test opens its store as, unless it says otherwise.
pub(crate) const NODE: NodeId = NodeId::from_bits(7);
pub(crate) const ORG: OrgId = OrgId::from_bits(1);
pub(crate) const PERSON: PersonId = PersonId::from_bits(2);

pub(crate) fn options() -> Options {
    Options::new(NODE, "testhost", Moment(1_000))
}

pub(crate) fn open(dir: &Path) -> Result<SqliteStore, OpenError> {
    SqliteStore::open(dir, &options())
}

/// The machine's person, who is put into the store by whatever is said first.
pub(crate) fn somebody() -> Principal {
    Principal {
        role: Role::Owner,
        is_host: true,
        standing: FIRST_STANDING,
        ..Principal::member(ORG, PERSON, "ada")
    }
}

pub(crate) fn home() -> NewOrg {
    let owner =
        NewPerson { person: PERSON, handle: "ada".into(), name: None, email: None, role: Role::Owner };
    NewOrg { org: ORG, name: "home".into(), owner, roots: vec![] }
}

pub(crate) fn trail(verb: &'static str, number: u64) -> Trail {
    let correlation = format!("c{number}");
    Trail { verb, door: "test", correlation, address: None, at: Moment(2_000 + number) }
}

pub(crate) fn session(number: u64) -> SessionId {
    SessionId::from_bits(0x5e5 << 64 | u128::from(number))
}

pub(crate) fn message(number: u64) -> MessageId {
    MessageId::from_bits(0x3e5 << 64 | u128::from(number))
}

const SCHEMES: &[Scheme] = &[Scheme {
    name: "api",
    form: "api:CLIENT/KEY",
    parts: &[2],
    person: None,
    client: Some(0),
    each_person: false,
}];

fn wish(number: u64, to: To) -> NewMessage {
    let key = Key { verb: "say", key: format!("key-{number}"), hash: [number as u8; 32], expires: None };
    NewMessage {
        message: message(number),
        to,
        fresh: None,
        like: None,
        expected: None,
        asks_for_new: false,
        words: Bytes::from(format!(r#"[{{"text":"message {number}"}}]"#)),
        attachments: Vec::new(),
        unfit: Vec::new(),
        opening: None,
        delivery: Delivery::Queue,
        unattended: false,
        under: None,
        reply: None,
        key: Some(key),
        trail: trail("say", number),
        pending_max: u32::MAX,
        words_bytes_max: u64::MAX,
        schemes: SCHEMES,
    }
}

fn scope() -> Scope {
    let (directory, agent) = ("/tmp".into(), "scripted".into());
    Scope { directory, agent, model: None, mode: None, worktree: None }
}

/// A message, and who says it.
pub(crate) type Line = (Arc<Principal>, NewMessage);

/// A message that makes its session.
pub(crate) fn first(session: SessionId, number: u64) -> Line {
    first_with(session, number, |_| {})
}

/// The same, with something changed about it.
pub(crate) fn first_with(session: SessionId, number: u64, change: impl Fn(&mut NewMessage)) -> Line {
    let bind = format!("api:test/{}", session.bits() as u64).parse().unwrap();
    let fresh = NewSession {
        session,
        scope: scope(),
        origin: None,
        enter: None,
        title: None,
        bind: None,
        chosen: Chosen { agent: "scripted".into(), directory: None },
        open_max: u32::MAX,
        org_open_max: u32::MAX,
    };
    let mut new = NewMessage { fresh: Some(Box::new(fresh)), ..wish(number, To::Conversation(bind)) };
    change(&mut new);
    (Arc::new(somebody()), new)
}

/// A message to a session that is there.
pub(crate) fn next(session: SessionId, number: u64) -> Line {
    (Arc::new(somebody()), wish(number, To::Session(session)))
}

pub(crate) async fn accept(
    store: &SqliteStore,
    (by, new): Line,
) -> Result<WriteOutcome<Accepted, Rejection>, StoreError> {
    store.accept(by, new).await
}

pub(crate) async fn said(store: &SqliteStore, line: Line) -> Result<(), StoreError> {
    if line.1.fresh.is_some() {
        store.host(home()).await?;
    }
    match accept(store, line).await? {
        WriteOutcome::Done(_) => Ok(()),
        other => panic!("not accepted: {other:?}"),
    }
}

/// A story of so many bytes, after so many facts.
pub(crate) fn story(session: SessionId, after: u64, bytes: usize) -> Append {
    let body = Bytes::from(format!("{{\"text\":\"{}\"}}", "x".repeat(bytes)));
    let entry = Entry::Story { turn: kernel::Turn(1), kind: "text".into(), body };
    Append {
        session,
        term: Term(1),
        after: kernel::Number(after),
        facts: vec![NewFact { at: Moment(5_000), cause: Cause::Runner, entry }],
        drained: vec![],
        staying: vec![],
        verdicts: vec![],
        claims: vec![],
        starts: None,
        replies: vec![],
        wake_at: None,
        awake: true,
        rules: vec![],
        own_acts: vec![],
        words_bytes_max: None,
        token: None,
    }
}

/// The faults that a person with SQLite's own shell would find in the file.
pub(crate) fn integrity(dir: &Path) -> String {
    let db = rusqlite::Connection::open(dir.join("homing.db")).unwrap();
    db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap()
}
