//! The way in on SQLite: the rows that plans are made of, and the rows that they write. No rule stands here.
//!
//! What a credential and a session's record say is remembered between changes: a credential until anything about people
//! changes, a record for as long as its revision is the same.

use crate::append;
use crate::columns::{self, Columns, Id, Json, int};
use crate::error::SqliteError;
use crate::outbox;
use crate::people;
use crate::projection::UNSEEN_SEAT;
use crate::row_changes;
use crate::tokens;
use crate::tx::{PersonRef, Pid, Sid, SqliteTx, who};
use crate::view;
use kernel::{
    Address, ApprovalTerms, DoorAddress, Grantee, MessageId, Moment, OrgId, PersonId, Principal, Record,
    Request, Scheme, Scope, SessionId, Subject, To, address_space,
};
use rusqlite::{Connection, OptionalExtension, Row, params};
use store::plan::{
    AskSeen, AskerRow, AuditWrite, CredentialRow, KeyRow, MakeSeen, MarkSeen, MessageWrite, RebindSeen,
    RequestWrite, RoomSeen, SaySeen, SessionSeen, SessionWrite, SettleSeen, Write, WriteTx, key_answer,
};
use store::{
    Accepted, AuditEntry, AuditRow, Create, HashForm, InboxItem, Key, KeyAnswer, Mark, NewMessage,
    NewRequest, OrgSettings, Past, Rebind, SettleByHand, TitleBy, attached_bytes, record, words_bytes,
};

/// Keys that have expired and are cleared away at once: a short step, between two messages.
const KEYS_CLEARED: i64 = 64;
/// After how many wishes that is done. Far fewer than are cleared, so that it catches up.
const KEYS_CLEARED_EVERY: i64 = 16;

pub(crate) const CLEAR_KEYS: &str = "DELETE FROM keys WHERE (by, verb, key) IN
    (SELECT by, verb, key FROM keys WHERE expires <= ?1 ORDER BY expires LIMIT ?2)";

/// A session as plans see it, in the order in which `seen_session` reads it; then its scope, for its agent, and the words of its owner.
macro_rules! seen {
    ($from:literal) => {
        concat!(
            "SELECT s.sid, s.id, p.org, p.person, s.revision, s.ended, s.epoch, s.pending, s.scope, p.words_bytes,
                s.title IS NOT NULL FROM ",
            $from
        )
    };
}

/// An address that is one conversation for everybody in the org.
const EVERYBODYS: Pid = 0;
const NOBODYS: Pid = -1;

pub(crate) const BY_ID: &str = seen!("sessions s JOIN persons p ON p.pid = s.owner WHERE s.id = ?1");
pub(crate) const BOUND: &str = seen!(
    "bindings b JOIN sessions s ON s.sid = b.sid JOIN persons p ON p.pid = s.owner
     WHERE b.org = ?1 AND b.address = ?2 AND b.whose = ?3 AND b.until IS NULL"
);
pub(crate) const BOUND_BEFORE: &str = seen!(
    "bindings b JOIN sessions s ON s.sid = b.sid JOIN persons p ON p.pid = s.owner
     WHERE b.org = ?1 AND b.address = ?2 AND b.whose = ?3 AND b.until IS NOT NULL ORDER BY b.bid DESC LIMIT 1"
);
pub(crate) const SCOPE_NOW: &str = "SELECT scope FROM sessions WHERE id = ?1";
const BIND: &str =
    "INSERT INTO bindings (org, address, sid, owner, since, whose) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
/// The binding that a conversation has is its past from here on.
pub(crate) const UNBOUND: &str =
    "UPDATE bindings SET until = ?4 WHERE org = ?1 AND address = ?2 AND whose = ?3 AND until IS NULL";
/// A session that a conversation comes back to is not in its past, too: so the past has no more rows than there are sessions.
pub(crate) const NO_PAST: &str =
    "DELETE FROM bindings WHERE org = ?1 AND address = ?2 AND whose = ?3 AND until IS NOT NULL AND sid = ?4";
pub(crate) const OF_MESSAGE: &str =
    "SELECT s.id, p.person, NULL FROM messages m JOIN sessions s ON s.sid = m.sid
    JOIN persons p ON p.pid = m.by WHERE m.id = ?1";
pub(crate) const OF_APPROVAL: &str =
    "SELECT s.id, NULL, a.posed FROM approvals a JOIN sessions s ON s.sid = a.sid WHERE a.id = ?1";
pub(crate) const ROOM: &str = "SELECT p.opened, o.opened, o.share_new, o.open_max, o.awake_max, p.words_bytes
    FROM persons p JOIN orgs o ON o.org = p.org WHERE p.pid = ?1";
pub(crate) const CREDENTIAL: &str =
    "SELECT made_at, expires, idle_ms_max, last_used, session, turn, pid FROM tokens WHERE token = ?1";

impl WriteTx for SqliteTx {
    type Error = SqliteError;

    fn read_asker(&mut self, by: &Principal) -> Result<AskerRow, SqliteError> {
        let who = self.who(by.org, by.person)?;
        let standing = who.and_then(|who| who.standing);
        let credential = match (by.credential, who) {
            (Some(token), Some(who)) => self.credential_row(token)?.filter(|(_, pid)| *pid == who.pid),
            _ => None,
        };
        let credential = credential.map(|(row, _)| row);
        let is_other = standing.is_some_and(|standing| standing != by.standing);
        let principal = if is_other { now(self.db(), by)? } else { None };
        Ok(AskerRow { credential, standing, principal })
    }

    fn read_key(&mut self, by: &Principal, key: &Key) -> Result<Option<KeyRow>, SqliteError> {
        match self.who(by.org, by.person)? {
            Some(who) => key_row(self.db(), who.pid, key),
            None => Ok(None),
        }
    }

    fn read_session(&mut self, session: SessionId) -> Result<Option<SessionSeen>, SqliteError> {
        self.seen_session(BY_ID, params![session.stored()])
    }

    fn read_say(&mut self, by: &Principal, new: &NewMessage) -> Result<SaySeen, SqliteError> {
        let key = self.key_of(by, new.key.as_ref())?;
        let before = match &key {
            Some(row) => accepted(self.db(), MessageId::from_bits(row.made))?,
            None => None,
        };
        let found = match &new.to {
            To::Session(session) => self.read_session(*session)?,
            To::Conversation(address) | To::NewIn(address) => match self.bound(by, address, new.schemes)? {
                Some(bound) => Some(bound),
                None => {
                    let whose = self.space_of(by, address, new.schemes)?;
                    let row = params![by.org.stored(), address.to_string(), whose];
                    // What goes on elsewhere is not what this conversation had until it ended.
                    self.seen_session(BOUND_BEFORE, row)?.filter(|before| before.ended.is_some())
                }
            },
            To::New => None,
        };
        let scope = match &found {
            Some(found) if SaySeen::needs_scope(found, new) => self.scope_of(found.record.session)?,
            Some(_) | None => None,
        };
        let room = if new.fresh.is_some() { Some(self.room(by)?) } else { None };
        Ok(SaySeen { asker: self.read_asker(by)?, key, before, found, scope, room })
    }

    fn read_make(&mut self, by: &Principal, new: &Create) -> Result<MakeSeen, SqliteError> {
        let bound = match &new.session.bind {
            Some(address) => self.bound(by, address, new.schemes)?.map(|bound| bound.record.session),
            None => None,
        };
        let origin = match new.session.origin {
            Some(origin) => self.read_session(origin.session)?,
            None => None,
        };
        let named = match &new.past {
            Some(past) => view::named(self.db(), by.org, past.import.id)?,
            None => Vec::new(),
        };
        let (asker, key, room) = (self.read_asker(by)?, self.key_of(by, new.key.as_ref())?, self.room(by)?);
        Ok(MakeSeen { asker, key, bound, origin, named, room })
    }

    fn read_ask(&mut self, by: &Principal, new: &NewRequest) -> Result<AskSeen, SqliteError> {
        let target = match new.request.subject() {
            Subject::Session(session) => Some(Target { session, sender: None, terms: None }),
            Subject::Message(message) => target(self.db(), OF_MESSAGE, message.stored())?,
            Subject::Approval(approval) => target(self.db(), OF_APPROVAL, approval.stored())?,
        };
        let (sender, terms) = target.as_ref().map_or((None, None), |target| (target.sender, target.terms));
        let session = match target {
            Some(target) => self.read_session(target.session)?,
            None => None,
        };
        let (asker, key) = (self.read_asker(by)?, self.key_of(by, new.key.as_ref())?);
        Ok(AskSeen { asker, key, session, sender, terms })
    }

    fn read_rebind(&mut self, by: &Principal, new: &Rebind) -> Result<RebindSeen, SqliteError> {
        let (bound, to) = (self.bound(by, &new.address, new.schemes)?, self.read_session(new.to)?);
        let (asker, key) = (self.read_asker(by)?, self.key_of(by, new.key.as_ref())?);
        Ok(RebindSeen { asker, key, bound, to })
    }

    fn read_mark(&mut self, by: &Principal, new: &Mark) -> Result<MarkSeen, SqliteError> {
        let session = self.read_session(new.session)?;
        let (at, marks) = match self.who(by.org, by.person)? {
            Some(who) => view::marked(self.db(), new.session, who.pid)?.unwrap_or_default(),
            None => Default::default(),
        };
        let (asker, key) = (self.read_asker(by)?, self.key_of(by, new.key.as_ref())?);
        Ok(MarkSeen { asker, key, session, at, marks })
    }

    fn read_settle(&mut self, by: &Principal, new: &SettleByHand) -> Result<SettleSeen, SqliteError> {
        let (asker, key) = (self.read_asker(by)?, self.key_of(by, new.key.as_ref())?);
        Ok(SettleSeen { asker, key, outgoing: outbox::one(self.db(), new.outgoing)? })
    }

    fn write(&mut self, writes: Vec<Write>) -> Result<(), SqliteError> {
        writes.into_iter().try_for_each(|write| self.write_row(write))
    }
}

// What is read.

impl SqliteTx {
    fn key_of(&mut self, by: &Principal, key: Option<&Key>) -> Result<Option<KeyRow>, SqliteError> {
        key.map_or(Ok(None), |key| self.read_key(by, key))
    }

    fn bound(
        &mut self,
        by: &Principal,
        address: &Address,
        schemes: &[Scheme],
    ) -> Result<Option<SessionSeen>, SqliteError> {
        let whose = self.space_of(by, address, schemes)?;
        self.seen_session(BOUND, params![by.org.stored(), address.to_string(), whose])
    }

    /// Whose own address this is when they use it.
    fn space_of(&self, by: &Principal, address: &Address, schemes: &[Scheme]) -> Result<Pid, SqliteError> {
        space(self.db(), by.org, address_space(by, DoorAddress { address, schemes }))
    }

    fn seen_session(
        &mut self,
        sql: &str,
        params: &[&dyn rusqlite::ToSql],
    ) -> Result<Option<SessionSeen>, SqliteError> {
        let (sid, seen) = {
            let mut query = self.db().prepare_cached(sql)?;
            let mut rows = query.query(params)?;
            let Some(row) = rows.next()? else { return Ok(None) };
            self.seen_row(row)?
        };
        self.remember_record(sid, &seen.record);
        Ok(Some(seen))
    }

    fn seen_row(&self, row: &Row<'_>) -> Result<(Sid, SessionSeen), SqliteError> {
        let row = Columns(row);
        let (sid, session, revision) = (row.int(0)?, row.id(1)?, row.count(4)?);
        let record = match self.known_record(session, revision) {
            Some(record) => record,
            None => Record {
                session,
                org: row.id(2)?,
                owner: row.id(3)?,
                agent: record::decode_scope(row.bytes(8)?)?.agent,
                grants: view::grants(self.db(), sid)?,
                revision,
            },
        };
        let ended = row.word_maybe(5, record::end_parse)?;
        let (epoch, pending, words_bytes) = (row.epoch(6)?, row.small(7)?, row.count(9)?);
        let has_title = row.flag(10)?;
        Ok((sid, SessionSeen { record, ended, epoch, has_title, pending, words_bytes }))
    }

    fn scope_of(&self, session: SessionId) -> Result<Option<Scope>, SqliteError> {
        let mut query = self.db().prepare_cached(SCOPE_NOW)?;
        let mut rows = query.query([session.stored()])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        Ok(Some(record::decode_scope(Columns(row).bytes(0)?)?))
    }

    fn room(&mut self, by: &Principal) -> Result<RoomSeen, SqliteError> {
        let Some(who) = self.who(by.org, by.person)? else {
            return Ok(RoomSeen { own: 0, all: 0, words_bytes: 0, settings: OrgSettings::default() });
        };
        let mut query = self.db().prepare_cached(ROOM)?;
        let mut rows = query.query([who.pid])?;
        let row = rows.next()?.ok_or_else(|| SqliteError::Damaged(format!("{} has no org", by.person)))?;
        let row = Columns(row);
        let settings = OrgSettings {
            share_new: row.word_maybe(2, record::grant_parse)?,
            open_max: row.small_maybe(3)?,
            awake_max: row.small_maybe(4)?,
        };
        Ok(RoomSeen { own: row.small(0)?, all: row.small(1)?, words_bytes: row.count(5)?, settings })
    }
}

/// The number by which somebody's own addresses are told from others'. Who was never heard of has none, and finds none.
pub(crate) fn space(db: &Connection, org: OrgId, whose: Option<PersonId>) -> Result<Pid, SqliteError> {
    match whose {
        None => Ok(EVERYBODYS),
        Some(person) => Ok(who(db, org, person)?.map_or(NOBODYS, |who| who.pid)),
    }
}

/// A credential and whose it is. Whether it is for a turn that is over is looked at each time.
pub(crate) fn credential(
    db: &Connection,
    token: kernel::TokenId,
) -> Result<Option<(CredentialRow, Pid, bool)>, SqliteError> {
    let mut query = db.prepare_cached(CREDENTIAL)?;
    let mut rows = query.query([token.stored()])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let row = Columns(row);
    let bound = row.id_maybe::<SessionId>(4)?.zip(row.small_maybe(5)?.map(kernel::Turn));
    let is_over = match bound {
        Some((session, turn)) => !tokens::is_under_way(db, session, turn)?,
        None => false,
    };
    let credential = CredentialRow {
        made_at: row.moment(0)?,
        expires: row.moment_maybe(1)?,
        idle_ms_max: row.count_maybe(2)?,
        last_used: row.moment_maybe(3)?,
        is_over,
    };
    Ok(Some((credential, row.int(6)?, bound.is_some())))
}

/// The principal as it is now.
fn now(db: &Connection, by: &Principal) -> Result<Option<Principal>, SqliteError> {
    let Some(somebody) = people::of(db, by.org, by.person)? else { return Ok(None) };
    let now = people::principal(db, &somebody)?;
    match by.credential {
        Some(credential) => tokens::with_credential(db, credential, now),
        None => Ok(Some(Principal { rights: by.rights, bound: by.bound, client: by.client.clone(), ..now })),
    }
}

pub(crate) fn key_row(db: &Connection, by: Pid, key: &Key) -> Result<Option<KeyRow>, SqliteError> {
    let mut query = db.prepare_cached(
        "SELECT hash, made, expires, form FROM keys WHERE by = ?1 AND verb = ?2 AND key = ?3",
    )?;
    let mut rows = query.query(params![by, key.verb, key.key])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let row = Columns(row);
    let form = match row.int(3)? {
        0 => HashForm::Debug,
        _ => HashForm::Stored,
    };
    let made = u128::from_be_bytes(row.0.get(1)?);
    Ok(Some(KeyRow { hash: row.hash(0)?, form, made, expires: row.moment_maybe(2)? }))
}

pub(crate) fn answer_for(
    db: &Connection,
    org: OrgId,
    person: PersonId,
    key: &Key,
    now: Moment,
) -> Result<KeyAnswer, SqliteError> {
    let row = match who(db, org, person)? {
        Some(who) => key_row(db, who.pid, key)?,
        None => None,
    };
    Ok(key_answer(Some(key), row.as_ref(), now))
}

fn accepted(db: &Connection, message: MessageId) -> Result<Option<Accepted>, SqliteError> {
    let mut query = db.prepare_cached(
        "SELECT s.id, m.created, m.previous, m.previous_why, m.if_new_ignored, m.accepted_at
         FROM messages m JOIN sessions s ON s.sid = m.sid WHERE m.id = ?1",
    )?;
    let mut rows = query.query(params![message.stored()])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let row = Columns(row);
    Ok(Some(Accepted {
        message,
        session: row.id(0)?,
        created: row.flag(1)?,
        previous: row.previous(2)?,
        if_new_ignored: row.flag(4)?,
        at: row.moment(5)?,
    }))
}

/// The thing that a request is about.
struct Target {
    session: SessionId,
    sender: Option<PersonId>,
    terms: Option<ApprovalTerms>,
}

fn target(db: &Connection, sql: &str, id: columns::Bits) -> Result<Option<Target>, SqliteError> {
    let mut query = db.prepare_cached(sql)?;
    let mut rows = query.query([id])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let row = Columns(row);
    let terms = row.bytes_maybe(2)?.map(|posed| record::decode_terms(Some(posed))).transpose()?;
    Ok(Some(Target { session: row.id(0)?, sender: row.id_maybe(1)?, terms }))
}

// What is written.

impl SqliteTx {
    fn write_row(&mut self, write: Write) -> Result<(), SqliteError> {
        match write {
            Write::Session(new) => self.put_session(*new),
            Write::Bind { org, address, whose, session, owner, at } => {
                let (sid, owner) = (self.sid(session)?, self.person(org, owner)?.pid);
                let whose = space(self.db(), org, whose)?;
                self.run(BIND, params![org.stored(), address.to_string(), sid, owner, int(at.0), whose])
                    .map(drop)
            }
            Write::Rebind { org, address, whose, session, owner, at } => {
                let (sid, owner) = (self.sid(session)?, self.person(org, owner)?.pid);
                let whose = space(self.db(), org, whose)?;
                let (org, address) = (org.stored(), address.to_string());
                self.run(UNBOUND, params![org, address, whose, int(at.0)])?;
                self.run(NO_PAST, params![org, address, whose, sid])?;
                self.run(BIND, params![org, address, sid, owner, int(at.0), whose]).map(drop)
            }
            Write::Message(new) => self.put_message(*new),
            Write::Request(new) => self.put_request(*new),
            Write::Inbox { session, at, item } => put_into_inbox(self, session, at, &item).map(drop),
            Write::Past { session, org, by, past, at } => self.put_past(session, org, by, *past, at),
            Write::Title { session, title, archived } => {
                let (sid, place) = (self.sid(session)?, self.next_place());
                self.run(
                    "UPDATE sessions SET archived = coalesce(?2, archived), place = ?3 WHERE sid = ?1",
                    params![sid, archived, place],
                )?;
                let Some(title) = title else { return Ok(()) };
                let title = Some(title).filter(|title| !title.is_empty());
                let by = title.is_some().then_some(TitleBy::Person);
                self.put_title(sid, title.as_deref(), by, None)
            }
            Write::Marks { org, person, session, marks } => {
                let (sid, who) = (self.sid(session)?, self.person(org, person)?);
                let row = params![who.pid, sid, int(marks.seen.0), marks.pinned];
                let sql = "INSERT OR REPLACE INTO marks (pid, sid, seen, pinned) VALUES (?1, ?2, ?3, ?4)";
                self.run(sql, row).map(drop)
            }
            Write::OwnRow { person, session } => row_changes::put(self, person, session),
            Write::Outgoing(row) => outbox::write(self, &row),
            Write::NoOutgoing { outgoing } => outbox::remove(self, outgoing),
            Write::Key { org, person, key, made, at } => {
                let who = self.person(org, person)?;
                put_key(self, who.pid, &key, made, at)
            }
            Write::Audit(entry) => self.put_audit(&entry),
        }
    }

    /// Somebody whom a plan names was there when it was made.
    fn person(&mut self, org: OrgId, person: PersonId) -> Result<PersonRef, SqliteError> {
        let who = self.who(org, person)?;
        who.ok_or_else(|| SqliteError::Damaged(format!("there is nobody called {person}")))
    }

    fn put_session(&mut self, new: SessionWrite) -> Result<(), SqliteError> {
        let SessionWrite { session, org, owner, scope, origin, enter, title, pending, shared, at } = new;
        let who = self.person(org, owner)?;
        let (encoded, enter) = (record::encode_scope(&scope), enter.as_ref().map(record::encode_worktree));
        self.run(
            "INSERT INTO sessions (id, owner, revision, title, scope, made_at, touched_at, archived, awake, pending,
                                   number, term, in_worktree, origin, origin_turn, enter, title_by)
             VALUES (?1, ?2, 1, ?3, ?4, ?5, ?5, 0, 0, ?6, 0, 0, ?7, ?8, ?9, ?10, ?11)",
            params![
                session.stored(),
                who.pid,
                title,
                Json(&encoded),
                int(at.0),
                pending,
                scope.worktree.is_some(),
                origin.map(|origin| origin.session.stored()),
                origin.map(|origin| origin.turn.0),
                enter.as_deref().map(Json),
                title.as_ref().map(|_| record::title_by_word(TitleBy::Person)),
            ],
        )?;
        let sid = self.db().last_insert_rowid();
        self.run("UPDATE persons SET opened = opened + 1 WHERE pid = ?1", [who.pid])?;
        self.run("UPDATE orgs SET opened = opened + 1 WHERE oid = ?1", [who.oid])?;
        if let Some(grant) = shared {
            let (kind, grantee) = columns::grantee(Grantee::Org, org);
            self.run(
                "INSERT INTO grants (kind, grantee, sid, granted, by, since) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![kind, grantee, sid, record::grant_word(grant), who.pid, int(at.0)],
            )?;
        }
        let grants = shared.map(|grant| (Grantee::Org, grant)).into_iter().collect();
        let record = Record { session, org, owner, agent: scope.agent, grants, revision: 1 };
        self.remember_record(sid, &record);
        Ok(())
    }

    fn put_message(&mut self, new: MessageWrite) -> Result<(), SqliteError> {
        let MessageWrite {
            accepted,
            org,
            by,
            words,
            attachments,
            opening,
            delivery,
            under,
            unattended,
            door,
            reply,
        } = new;
        let Accepted { message, session, created, previous, if_new_ignored, at } = accepted;
        let (sid, who) = (self.sid(session)?, self.person(org, by)?);
        let room = int(words_bytes(&words) + attached_bytes(&attachments));
        self.run(
            "UPDATE sessions SET pending = pending + 1, touched_at = max(touched_at, ?2),
                words_bytes = words_bytes + ?3 WHERE sid = ?1",
            params![sid, int(at.0), room],
        )?;
        self.count_owners_words(sid, room)?;
        let item = InboxItem::Say { message, by, delivery, under };
        let seat = UNSEEN_SEAT + put_into_inbox(self, session, at, &item)?;
        let body = self.keep_words(&words)?;
        self.keep_attachments(body, &attachments)?;
        if let Some(opening) = opening {
            self.put_title(sid, Some(&opening), Some(TitleBy::Words), Some(body))?;
        }
        self.run(
            "INSERT INTO messages (id, sid, by, body, reply, created, previous, previous_why, if_new_ignored,
                                   accepted_at, state, pending, revision, seat, changed_at, delivery, under, unattended,
                                   door)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 'waiting', 1, 0, ?11, ?10, ?12, ?13, ?14, ?15)",
            params![
                message.stored(),
                sid,
                who.pid,
                body,
                reply.as_ref().map(Address::to_string),
                created,
                previous.map(|previous| previous.session.stored()),
                previous.and_then(|previous| previous.ended).map(record::end_word),
                if_new_ignored,
                int(at.0),
                seat,
                record::delivery_word(delivery),
                under.map(|epoch| epoch.0),
                unattended,
                door,
            ],
        )
        .map(drop)
    }

    fn put_request(&mut self, new: RequestWrite) -> Result<(), SqliteError> {
        let RequestWrite { id, session, at, by, request, resolved, words, attachments, opening } = new;
        let sid = self.sid(session)?;
        let (message, body) = match (&request, &words) {
            (Request::Edit { message, .. }, Some(words)) => {
                let attached = attachments.as_deref().unwrap_or_default();
                self.count_words(sid, int(words_bytes(words) + attached_bytes(attached)))?;
                let body = self.keep_words(words)?;
                self.keep_attachments(body, attached)?;
                (Some(message.stored()), Some(body))
            }
            _ => (None, None),
        };
        self.run(
            "INSERT INTO requests (id, sid, message, body, opening, replaces) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![id.stored(), sid, message, body, opening.filter(|_| body.is_some()), attachments.is_some()],
        )?;
        put_into_inbox(self, session, at, &InboxItem::Request { id, by, request, resolved }).map(drop)
    }

    /// The messages that were said elsewhere, then the log that tells of it: after it nothing waits.
    fn put_past(
        &mut self,
        session: SessionId,
        org: OrgId,
        by: PersonId,
        past: Past,
        at: Moment,
    ) -> Result<(), SqliteError> {
        let (sid, who) = (self.sid(session)?, self.person(org, by)?);
        let Past { import, messages, facts } = past;
        self.run(
            "UPDATE sessions SET imported = ?2, imported_by = ?3, imported_from = ?4 WHERE sid = ?1",
            params![sid, import.id.stored(), who.pid, import.org],
        )?;
        for said in &messages {
            let body = self.keep_words(&said.words)?;
            self.keep_attachments(body, &said.attachments)?;
            self.count_words(sid, int(words_bytes(&said.words) + attached_bytes(&said.attachments)))?;
            self.run(
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
        append::write_past(self, session, facts)
    }

    fn put_audit(&mut self, entry: &AuditWrite) -> Result<(), SqliteError> {
        let AuditWrite { org, by, about, trail, refused } = entry;
        let who = self.who_at_first_sight(*org, *by)?;
        self.put_entry(who, about, trail, *refused)
    }
}

/// The number it gets is its place in the order of acceptance, across all sessions.
pub(crate) fn put_into_inbox(
    tx: &mut SqliteTx,
    session: SessionId,
    at: Moment,
    item: &InboxItem,
) -> Result<i64, SqliteError> {
    let number = tx.next_inbox();
    let (kind, id, by, request) = match item {
        InboxItem::Say { message, by, .. } => ("say", Some(message.stored()), Some(*by), None),
        InboxItem::Request { id, by, request, resolved } => {
            let stored = record::encode_request(request, resolved);
            ("request", Some(id.stored()), Some(*by), Some(stored))
        }
        InboxItem::Wake => ("wake", None, None, None),
        InboxItem::Recheck { person } => ("recheck", None, Some(*person), None),
        InboxItem::HandOver { to } => ("hand_over", None, Some(*to), None),
    };
    let by = by.map(Id::stored);
    tx.run(
        "INSERT INTO inbox (session, number, at, kind, id, by, wish) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![session.stored(), number, int(at.0), kind, id, by, request.as_deref().map(Json)],
    )?;
    Ok(number)
}

pub(crate) fn put_key(tx: &SqliteTx, by: Pid, key: &Key, made: u128, now: Moment) -> Result<(), SqliteError> {
    // One that has expired makes room for this one.
    tx.run(
        "INSERT OR REPLACE INTO keys (by, verb, key, hash, made, expires, form) VALUES (?1, ?2, ?3, ?4, ?5, ?6, 1)",
        params![by, key.verb, key.key, key.hash, made.to_be_bytes(), key.expires.map(|until| int(until.0))],
    )?;
    if tx.last_inbox() % KEYS_CLEARED_EVERY == 0 {
        tx.run(CLEAR_KEYS, params![int(now.0), KEYS_CLEARED])?;
    }
    Ok(())
}

/// Writes down that something was refused before it came here.
pub(crate) fn audit(tx: &mut SqliteTx, entry: &AuditEntry) -> Result<(), SqliteError> {
    let mut query = tx.db().prepare_cached("SELECT org FROM persons WHERE host = 1")?;
    let hosts = query.query_row([], |row| row.get(0).map(OrgId::read)).optional()?;
    drop(query);
    tx.write_down(&AuditRow::refused(entry, hosts.unwrap_or(OrgId::from_bits(0))))
}
