//! What the doors bring: messages, new sessions, wishes, and the small changes that need no keeper.
//!
//! Each is one transaction and goes the same way: the key first, because a repeated wish gets its answer whatever has
//! happened since; then whatever was seen when it was routed and authorized; then the limits; then, and only then, the
//! rows.

use crate::append;
use crate::columns::{self, Bits, Columns, Id, Json, int};
use crate::error::SqliteError;
use crate::projection::UNSEEN_SEAT;
use crate::tx::{PersonRef, Pid, Sid, SqliteTx, StoredSession};
use kernel::{
    Address, Authorized, EndWhy, Grantee, MessageId, Moment, OrgId, PersonId, Principal, Request, RequestId,
    SessionId, Witness,
};
use rusqlite::{OptionalExtension, params};
use store::{
    About, Acceptance, Accepted, Asking, AuditEntry, AuditRow, Create, Creation, Into, Key, NewMessage,
    NewRequest, NewSession, Past, Permit, Permitting, Rebind, Rebinding, Retitle, Retitling, record,
};

/// Keys that have expired and are cleared away at once: a short step, between two messages.
const KEYS_CLEARED: i64 = 64;
/// After how many wishes that is done. Far fewer than are cleared, so that it catches up.
const KEYS_CLEARED_EVERY: i64 = 16;

pub(crate) const CLEAR_KEYS: &str = "DELETE FROM keys WHERE (by, verb, key) IN
    (SELECT by, verb, key FROM keys WHERE expires <= ?1 ORDER BY expires LIMIT ?2)";

/// What a key says before anything else is asked.
pub(crate) enum Known {
    Never,
    Before(Bits),
    Conflict,
}

/// Why a session cannot be made now.
enum NotMade {
    Moved,
    TooManyOpen,
    OrgTooManyOpen,
}

pub(crate) fn accept(tx: &mut SqliteTx, wish: &Authorized<NewMessage>) -> Result<Acceptance, SqliteError> {
    let (by, new) = (wish.by(), wish.wish());
    let Some(who) = tx.who(by.org, by.person)? else { return Ok(Acceptance::Moved) };
    match known(tx, who.pid, new.key.as_ref(), new.trail.at)? {
        Known::Never => {}
        Known::Before(made) => return accepted_before(tx, MessageId::read(made)),
        Known::Conflict => return Ok(Acceptance::Conflict),
    }
    if !who.stands(wish.witness()) {
        return Ok(Acceptance::Moved);
    }
    match &new.into {
        Into::Existing { session, through } => {
            let kept = takes(tx, by.org, *session, through.as_ref(), wish.witness())?;
            let Some(kept) = kept else { return Ok(Acceptance::Moved) };
            if kept.pending >= new.pending_max {
                return Ok(Acceptance::QueueFull);
            }
            tx.run(
                "UPDATE sessions SET pending = pending + 1, touched_at = max(touched_at, ?2) WHERE sid = ?1",
                params![kept.sid, int(new.trail.at.0)],
            )?;
            say(tx, who, by, kept.sid, *session, None, new)
        }
        Into::Create(fresh) => match may_make(tx, who, by.org, fresh, wish.witness())? {
            Err(NotMade::Moved) => Ok(Acceptance::Moved),
            Err(NotMade::TooManyOpen) => Ok(Acceptance::TooManyOpen),
            Err(NotMade::OrgTooManyOpen) => Ok(Acceptance::OrgTooManyOpen),
            Ok(()) => {
                let sid = make(tx, who, by.org, fresh, 1, new.trail.at)?;
                share(tx, who, by.org, sid, new.trail.at)?;
                say(tx, who, by, sid, fresh.session, Some(fresh.previous), new)
            }
        },
    }
}

/// `made_after` is there if the session was made for this message, and says which one the conversation had before.
fn say(
    tx: &mut SqliteTx,
    who: PersonRef,
    by: &Principal,
    sid: Sid,
    session: SessionId,
    made_after: Option<Option<(SessionId, EndWhy)>>,
    new: &NewMessage,
) -> Result<Acceptance, SqliteError> {
    let (message, at) = (new.message, new.trail.at);
    let (created, previous) = (made_after.is_some(), made_after.flatten());
    let seat = UNSEEN_SEAT + put_into_inbox(tx, session, at, Item::Say(message, by))?;
    let body = tx.keep_words(&new.words)?;
    tx.run(
        "INSERT INTO messages (id, sid, by, body, reply, created, previous, previous_why, if_new_ignored,
                               accepted_at, state, pending, revision, seat, changed_at, delivery, under, unattended)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 'waiting', 1, 0, ?11, ?10, ?12, ?13, ?14)",
        params![
            message.stored(),
            sid,
            who.pid,
            body,
            new.reply.as_ref().map(Address::to_string),
            created,
            previous.map(|(session, _)| session.stored()),
            previous.map(|(_, why)| record::end_word(why)),
            new.if_new_ignored,
            int(at.0),
            seat,
            record::delivery_word(new.delivery),
            new.under.map(|epoch| epoch.0),
            new.unattended,
        ],
    )?;
    remember(tx, who.pid, new.key.as_ref(), message.stored(), at)?;
    tx.done(who, &About::session(session).and(Some(message)), &new.trail)?;
    let if_new_ignored = new.if_new_ignored;
    Ok(Acceptance::Done(Accepted { message, session, created, previous, if_new_ignored, at }))
}

pub(crate) fn create(tx: &mut SqliteTx, wish: &Authorized<Create>) -> Result<Creation, SqliteError> {
    let (by, Create { session: fresh, past, key, trail }) = (wish.by(), wish.wish());
    let Some(who) = tx.who(by.org, by.person)? else { return Ok(Creation::Moved) };
    match known(tx, who.pid, key.as_ref(), trail.at)? {
        Known::Never => {}
        Known::Before(made) => return Ok(Creation::Before(SessionId::read(made))),
        Known::Conflict => return Ok(Creation::Conflict),
    }
    match may_make(tx, who, by.org, fresh, wish.witness())? {
        Err(NotMade::Moved) => return Ok(Creation::Moved),
        Err(NotMade::TooManyOpen) => return Ok(Creation::TooManyOpen),
        Err(NotMade::OrgTooManyOpen) => return Ok(Creation::OrgTooManyOpen),
        Ok(()) => {}
    }
    match past {
        Some(past) => {
            if let Some(there) = imported(tx, who.pid, past.import.id)? {
                return Ok(Creation::Already(there));
            }
            let sid = make(tx, who, by.org, fresh, past.messages.len() as u32, trail.at)?;
            write_past(tx, who, sid, fresh.session, past, trail.at)?;
        }
        None => {
            let sid = make(tx, who, by.org, fresh, 0, trail.at)?;
            share(tx, who, by.org, sid, trail.at)?;
            put_into_inbox(tx, fresh.session, trail.at, Item::Wake)?;
        }
    }
    remember(tx, who.pid, key.as_ref(), fresh.session.stored(), trail.at)?;
    tx.done(who, &About::session(fresh.session), trail)?;
    Ok(Creation::Done(fresh.session))
}

/// What this person has brought here under this name, and still owns.
fn imported(tx: &SqliteTx, by: Pid, id: SessionId) -> Result<Option<SessionId>, SqliteError> {
    let mut query = tx.db().prepare_cached(IMPORTED)?;
    let found = query.query_row(params![id.stored(), by], |row| row.get(0).map(SessionId::read));
    Ok(found.optional()?)
}

pub(crate) const IMPORTED: &str =
    "SELECT id FROM sessions WHERE imported = ?1 AND imported_by = ?2 AND owner = ?2 ORDER BY sid LIMIT 1";

/// What was said elsewhere, then the log that tells of it: after it nothing waits.
fn write_past(
    tx: &mut SqliteTx,
    who: PersonRef,
    sid: Sid,
    session: SessionId,
    past: &Past,
    at: Moment,
) -> Result<(), SqliteError> {
    tx.run(
        "UPDATE sessions SET imported = ?2, imported_by = ?3, imported_from = ?4 WHERE sid = ?1",
        params![sid, past.import.id.stored(), who.pid, past.import.org],
    )?;
    for said in &past.messages {
        let body = tx.keep_words(&said.words)?;
        tx.run(
            "INSERT INTO messages (id, sid, by, body, created, if_new_ignored, accepted_at, state, pending,
                                   revision, seat, changed_at, delivery)
             VALUES (?1, ?2, ?3, ?4, 0, 0, ?5, 'waiting', 1, 0, ?6, ?5, ?7)",
            params![
                said.message.stored(),
                sid,
                who.pid,
                body,
                int(at.0),
                UNSEEN_SEAT,
                record::delivery_word(said.delivery),
            ],
        )?;
    }
    append::write_past(tx, session, past.facts.clone())
}

pub(crate) fn ask(tx: &mut SqliteTx, wish: &Authorized<NewRequest>) -> Result<Asking, SqliteError> {
    let (by, new) = (wish.by(), wish.wish());
    let Some(who) = tx.who(by.org, by.person)? else { return Ok(Asking::Moved) };
    match known(tx, who.pid, new.key.as_ref(), new.trail.at)? {
        Known::Never => {}
        Known::Before(made) => return Ok(Asking::Before(RequestId::read(made))),
        Known::Conflict => return Ok(Asking::Conflict),
    }
    let kept = tx.stored_session(new.session)?.filter(|kept| kept.bears(by.org, new.session, wish.witness()));
    let Some(kept) = kept.filter(|_| who.stands(wish.witness())) else { return Ok(Asking::Moved) };
    if let Some(why) = kept.ended {
        return Ok(Asking::Ended(why));
    }
    let (request, at) = (new.id.stored(), new.trail.at);
    let (message, body) = match (&new.request, &new.words) {
        (Request::Edit { message, .. }, Some(words)) => (Some(message.stored()), Some(tx.keep_words(words)?)),
        _ => (None, None),
    };
    tx.run(
        "INSERT INTO requests (id, sid, message, body) VALUES (?1, ?2, ?3, ?4)",
        params![request, kept.sid, message, body],
    )?;
    put_into_inbox(tx, new.session, at, Item::Request(by, new))?;
    remember(tx, who.pid, new.key.as_ref(), request, at)?;
    tx.done(who, &About::request(new.session, &new.request), &new.trail)?;
    Ok(Asking::Done(new.id))
}

pub(crate) fn rebind(tx: &mut SqliteTx, wish: &Authorized<Rebind>) -> Result<Rebinding, SqliteError> {
    let (by, Rebind { address, from, to, key, trail }) = (wish.by(), wish.wish());
    let Some(who) = tx.who(by.org, by.person)? else { return Ok(Rebinding::Moved) };
    match known(tx, who.pid, key.as_ref(), trail.at)? {
        Known::Never => {}
        Known::Before(_) => return Ok(Rebinding::Before),
        Known::Conflict => return Ok(Rebinding::Conflict),
    }
    let bound = bound_to(tx, by.org, address)?;
    let kept = tx.stored_session(*to)?.filter(|kept| kept.bears(by.org, *to, wish.witness()));
    let as_seen = who.stands(wish.witness()) && bound.map(|(_, session)| session) == *from;
    let Some(kept) = kept.filter(|_| as_seen) else {
        return Ok(Rebinding::Moved);
    };
    if let Some(why) = kept.ended {
        return Ok(Rebinding::Ended(why));
    }
    match bound {
        Some((sid, _)) if sid == kept.sid => {}
        // A conversation has one row for as long as it is bound at all; who had it before and goes on is no past of it.
        Some(_) => drop(tx.run(
            "UPDATE bindings SET sid = ?3, owner = ?4, since = ?5
             WHERE org = ?1 AND address = ?2 AND until IS NULL",
            params![by.org.stored(), address.to_string(), kept.sid, kept.owner, int(trail.at.0)],
        )?),
        None => bind(tx, by.org, address, kept.sid, kept.owner, trail.at)?,
    }
    remember(tx, who.pid, key.as_ref(), to.stored(), trail.at)?;
    tx.done(who, &About::session(*to).and(Some(address)), trail)?;
    Ok(Rebinding::Done)
}

pub(crate) fn retitle(tx: &mut SqliteTx, wish: &Authorized<Retitle>) -> Result<Retitling, SqliteError> {
    let (by, Retitle { session, title, archived, trail }) = (wish.by(), wish.wish());
    let who = tx.who(by.org, by.person)?.filter(|who| who.stands(wish.witness()));
    let kept = tx.stored_session(*session)?.filter(|kept| kept.bears(by.org, *session, wish.witness()));
    let (Some(who), Some(kept)) = (who, kept) else { return Ok(Retitling::Moved) };
    tx.run(
        "UPDATE sessions SET title = coalesce(?2, title), archived = coalesce(?3, archived) WHERE sid = ?1",
        params![kept.sid, title, archived],
    )?;
    tx.done(who, &About::session(*session), trail)?;
    Ok(Retitling::Done)
}

pub(crate) fn permit(tx: &mut SqliteTx, wish: &Authorized<Permit>) -> Result<Permitting, SqliteError> {
    let (by, Permit { session, subject, trail }) = (wish.by(), wish.wish());
    let who = tx.who(by.org, by.person)?.filter(|who| who.stands(wish.witness()));
    let kept = tx.stored_session(*session)?.filter(|kept| kept.bears(by.org, *session, wish.witness()));
    let (Some(who), Some(_)) = (who, kept) else { return Ok(Permitting::Moved) };
    tx.done(who, &About::session(*session).and(Some(subject)), trail)?;
    Ok(Permitting::Done)
}

/// Writes down that something was refused.
pub(crate) fn audit(tx: &mut SqliteTx, entry: &AuditEntry) -> Result<(), SqliteError> {
    let mut query = tx.db().prepare_cached("SELECT org FROM persons WHERE host = 1")?;
    let hosts = query.query_row([], |row| row.get(0).map(OrgId::read)).optional()?;
    drop(query);
    tx.write_down(&AuditRow::refused(entry, hosts.unwrap_or(OrgId::from_bits(0))))
}

/// What goes into an inbox.
pub(crate) enum Item<'a> {
    Say(MessageId, &'a Principal),
    Request(&'a Principal, &'a NewRequest),
    Wake,
    Recheck(PersonId),
}

/// The number it gets is its place in the order of acceptance, across all sessions.
pub(crate) fn put_into_inbox(
    tx: &mut SqliteTx,
    session: SessionId,
    at: Moment,
    item: Item<'_>,
) -> Result<i64, SqliteError> {
    let number = tx.next_inbox();
    let (kind, id, by, request) = match item {
        Item::Say(message, by) => ("say", Some(message.stored()), Some(by.person), None),
        Item::Request(by, new) => {
            let stored = record::encode_request(&new.request, &new.resolved);
            ("request", Some(new.id.stored()), Some(by.person), Some(stored))
        }
        Item::Wake => ("wake", None, None, None),
        Item::Recheck(person) => ("recheck", None, Some(person), None),
    };
    let by = by.map(Id::stored);
    tx.run(
        "INSERT INTO inbox (session, number, at, kind, id, by, wish) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![session.stored(), number, int(at.0), kind, id, by, request.as_deref().map(Json)],
    )?;
    Ok(number)
}

impl StoredSession {
    /// What was seen when the right was found is still so.
    pub(crate) fn bears(&self, org: OrgId, session: SessionId, witness: Witness) -> bool {
        self.org == org && witness.session == Some(session) && witness.revision == self.revision
    }
}

pub(crate) fn known(tx: &SqliteTx, by: Pid, key: Option<&Key>, now: Moment) -> Result<Known, SqliteError> {
    let Some(key) = key else { return Ok(Known::Never) };
    let mut query = tx
        .db()
        .prepare_cached("SELECT hash, made, expires FROM keys WHERE by = ?1 AND verb = ?2 AND key = ?3")?;
    let mut rows = query.query(params![by, key.verb, key.key])?;
    let Some(row) = rows.next()? else { return Ok(Known::Never) };
    let row = Columns(row);
    let expired = row.count_maybe(2)?.is_some_and(|until| until <= now.0);
    if expired {
        return Ok(Known::Never);
    }
    Ok(if row.bytes(0)? == key.hash { Known::Before(row.0.get(1)?) } else { Known::Conflict })
}

pub(crate) fn remember(
    tx: &SqliteTx,
    by: Pid,
    key: Option<&Key>,
    made: Bits,
    now: Moment,
) -> Result<(), SqliteError> {
    let Some(key) = key else { return Ok(()) };
    // One that has expired makes room for this one.
    tx.run(
        "INSERT OR REPLACE INTO keys (by, verb, key, hash, made, expires) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![by, key.verb, key.key, key.hash, made, key.expires.map(|until| int(until.0))],
    )?;
    if tx.last_inbox() % KEYS_CLEARED_EVERY == 0 {
        tx.run(CLEAR_KEYS, params![int(now.0), KEYS_CLEARED])?;
    }
    Ok(())
}

fn accepted_before(tx: &SqliteTx, message: MessageId) -> Result<Acceptance, SqliteError> {
    let mut query = tx.db().prepare_cached(
        "SELECT s.id, m.created, m.previous, m.previous_why, m.if_new_ignored, m.accepted_at
         FROM messages m JOIN sessions s ON s.sid = m.sid WHERE m.id = ?1",
    )?;
    let mut rows = query.query(params![message.stored()])?;
    let row =
        rows.next()?.ok_or_else(|| SqliteError::Damaged(format!("a key names {message}, which is gone")))?;
    let row = Columns(row);
    Ok(Acceptance::Before(Accepted {
        message,
        session: row.id(0)?,
        created: row.flag(1)?,
        previous: row.previous(2)?,
        if_new_ignored: row.flag(4)?,
        at: row.moment(5)?,
    }))
}

/// The session, if it is still what was seen when the message was routed and authorized.
fn takes(
    tx: &SqliteTx,
    org: OrgId,
    session: SessionId,
    through: Option<&Address>,
    witness: Witness,
) -> Result<Option<StoredSession>, SqliteError> {
    let kept =
        tx.stored_session(session)?.filter(|kept| kept.ended.is_none() && kept.bears(org, session, witness));
    match through {
        Some(address) => {
            let bound = bound_to(tx, org, address)?;
            Ok(kept.filter(|kept| bound.is_some_and(|(sid, _)| sid == kept.sid)))
        }
        None => Ok(kept),
    }
}

fn bound_to(tx: &SqliteTx, org: OrgId, address: &Address) -> Result<Option<(Sid, SessionId)>, SqliteError> {
    let mut query = tx.db().prepare_cached(
        "SELECT s.sid, s.id FROM bindings b JOIN sessions s ON s.sid = b.sid
         WHERE b.org = ?1 AND b.address = ?2 AND b.until IS NULL",
    )?;
    let bound = query.query_row(params![org.stored(), address.to_string()], |row| {
        Ok((row.get(0)?, SessionId::read(row.get(1)?)))
    });
    Ok(bound.optional()?)
}

pub(crate) const LIMITS: &str = "SELECT p.opened, o.opened
    FROM persons p JOIN orgs o ON o.org = p.org WHERE p.pid = ?1";

fn may_make(
    tx: &SqliteTx,
    who: PersonRef,
    org: OrgId,
    fresh: &NewSession,
    witness: Witness,
) -> Result<Result<(), NotMade>, SqliteError> {
    let taken = match &fresh.bind {
        Some(address) => bound_to(tx, org, address)?.is_some(),
        None => false,
    };
    if taken || witness.session.is_some() || !who.stands(witness) {
        return Ok(Err(NotMade::Moved));
    }
    let mut query = tx.db().prepare_cached(LIMITS)?;
    let (own, all): (u32, u32) = query.query_row([who.pid], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(match () {
        () if own >= fresh.open_max => Err(NotMade::TooManyOpen),
        () if all >= fresh.org_open_max => Err(NotMade::OrgTooManyOpen),
        () => Ok(()),
    })
}

fn make(
    tx: &mut SqliteTx,
    who: PersonRef,
    org: OrgId,
    fresh: &NewSession,
    pending: u32,
    at: Moment,
) -> Result<Sid, SqliteError> {
    let scope = record::encode_scope(&fresh.scope);
    let enter = fresh.enter.as_ref().map(record::encode_worktree);
    tx.run(
        "INSERT INTO sessions (id, owner, revision, title, scope, made_at, touched_at, archived, awake, pending,
                               number, term, in_worktree, origin, origin_turn, enter)
         VALUES (?1, ?2, 1, ?3, ?4, ?5, ?5, 0, 0, ?6, 0, 0, ?7, ?8, ?9, ?10)",
        params![
            fresh.session.stored(),
            who.pid,
            fresh.title,
            Json(&scope),
            int(at.0),
            pending,
            fresh.scope.worktree.is_some(),
            fresh.origin.map(|origin| origin.session.stored()),
            fresh.origin.map(|origin| origin.turn.0),
            enter.as_deref().map(Json),
        ],
    )?;
    let sid = tx.db().last_insert_rowid();
    tx.run("UPDATE persons SET opened = opened + 1 WHERE pid = ?1", [who.pid])?;
    tx.run("UPDATE orgs SET opened = opened + 1 WHERE oid = ?1", [who.oid])?;
    if let Some(address) = &fresh.bind {
        bind(tx, org, address, sid, who.pid, at)?;
    }
    Ok(sid)
}

/// Gives everybody in the org what the org gives them on every new session. What was said elsewhere was not said to them.
fn share(tx: &SqliteTx, who: PersonRef, org: OrgId, sid: Sid, at: Moment) -> Result<(), SqliteError> {
    let (kind, grantee) = columns::grantee(Grantee::Org, org);
    tx.run(
        "INSERT INTO grants (kind, grantee, sid, granted, by, since)
         SELECT ?2, ?3, ?4, share_new, ?5, ?6 FROM orgs WHERE oid = ?1 AND share_new IS NOT NULL",
        params![who.oid, kind, grantee, sid, who.pid, int(at.0)],
    )
    .map(drop)
}

fn bind(
    tx: &SqliteTx,
    org: OrgId,
    address: &Address,
    sid: Sid,
    owner: Pid,
    at: Moment,
) -> Result<(), SqliteError> {
    tx.run(
        "INSERT INTO bindings (org, address, sid, owner, since) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![org.stored(), address.to_string(), sid, owner, int(at.0)],
    )
    .map(drop)
}
