//! The way in of the memory store: the rows that plans are made of, and the rows that they write. No rule stands here.

use super::append::turns_over;
use super::contents::{Contents, Edit, Kept, MessageRow, Place, Remembered, Titled};
use crate::plan::{
    AskSeen, AskerRow, AuditWrite, CredentialRow, KeyRow, MakeSeen, MarkSeen, MessageWrite, RebindSeen,
    RequestWrite, RoomSeen, SaySeen, SessionSeen, SessionWrite, SettleSeen, Write, WriteTx,
};
use crate::*;
use kernel::{
    Address, DoorAddress, Grantee, MessageId, Moment, Named, OrgId, PersonId, Previous, Principal, Record,
    Request, Scheme, SessionId, Subject, Term, To, address_space,
};
use std::collections::BTreeMap;

impl WriteTx for Contents {
    type Error = StoreError;

    fn read_asker(&mut self, by: &Principal) -> Result<AskerRow, StoreError> {
        let somebody = self.people.of(by.org, by.person).filter(|kept| !kept.is_disabled());
        let standing = somebody.map(|kept| kept.standing);
        let token = by.credential.and_then(|credential| self.people.tokens.get(&credential));
        let token = token.filter(|token| token.row.person == by.person);
        let credential = token.map(|token| CredentialRow {
            made_at: token.row.made_at,
            expires: token.row.expires,
            idle_ms_max: token.row.idle_ms_max,
            last_used: token.last_used,
            is_over: token.row.bound.is_some_and(|(session, turn)| !self.is_under_way(session, turn)),
        });
        let is_other = standing.is_some_and(|standing| standing != by.standing);
        let principal = is_other.then(|| self.people.principal_of(by.person)).flatten();
        let principal = principal.map(|now| match token {
            Some(token) => token.row.of(now),
            None => Principal { rights: by.rights, bound: by.bound, client: by.client.clone(), ..now },
        });
        Ok(AskerRow { credential, standing, principal })
    }

    fn read_key(&mut self, by: &Principal, key: &Key) -> Result<Option<KeyRow>, StoreError> {
        Ok(self.key_row(by.org, by.person, key))
    }

    fn read_session(&mut self, session: SessionId) -> Result<Option<SessionSeen>, StoreError> {
        Ok(self.seen_session(session))
    }

    fn read_say(&mut self, by: &Principal, new: &NewMessage) -> Result<SaySeen, StoreError> {
        let key = self.row_of(by, new.key.as_ref());
        let said = key.and_then(|row| self.messages.get(&MessageId::from_bits(row.made)));
        let before = said.map(|said| said.accepted.clone());
        let whose = match &new.to {
            To::Conversation(address) | To::NewIn(address) => {
                address_space(by, DoorAddress { address, schemes: new.schemes })
            }
            To::Session(_) | To::New => None,
        };
        let found = self.meant_by(by.org, whose, &new.to).and_then(|session| self.seen_session(session));
        let scope = found.as_ref().filter(|found| SaySeen::needs_scope(found, new));
        let scope =
            scope.and_then(|found| self.sessions.get(&found.record.session)).map(|kept| kept.scope.clone());
        let room = new.fresh.is_some().then(|| self.room(by));
        Ok(SaySeen { asker: self.read_asker(by)?, key, before, found, scope, room })
    }

    fn read_make(&mut self, by: &Principal, new: &Create) -> Result<MakeSeen, StoreError> {
        let origin = new.session.origin.and_then(|origin| self.seen_session(origin.session));
        Ok(MakeSeen {
            asker: self.read_asker(by)?,
            key: self.row_of(by, new.key.as_ref()),
            bound: new.session.bind.as_ref().and_then(|address| self.bound_to(by, address, new.schemes)),
            origin,
            named: new.past.as_ref().map(|past| self.named(by.org, past.import.id)).unwrap_or_default(),
            room: self.room(by),
        })
    }

    fn read_ask(&mut self, by: &Principal, new: &NewRequest) -> Result<AskSeen, StoreError> {
        let (session, sender, terms) = match new.request.subject() {
            Subject::Message(message) => {
                let said = self.messages.get(&message);
                (said.map(|said| said.accepted.session), said.map(|said| said.by), None)
            }
            Subject::Approval(approval) => {
                let asked = self.approval(approval).map(|(_, row)| row);
                (asked.as_ref().map(|row| row.session), None, asked.map(|row| row.terms))
            }
            Subject::Session(session) => (Some(session), None, None),
        };
        let session = session.and_then(|session| self.seen_session(session));
        let (asker, key) = (self.read_asker(by)?, self.row_of(by, new.key.as_ref()));
        Ok(AskSeen { asker, key, session, sender, terms })
    }

    fn read_rebind(&mut self, by: &Principal, new: &Rebind) -> Result<RebindSeen, StoreError> {
        let bound =
            self.bound_to(by, &new.address, new.schemes).and_then(|session| self.seen_session(session));
        let to = self.seen_session(new.to);
        Ok(RebindSeen { asker: self.read_asker(by)?, key: self.row_of(by, new.key.as_ref()), bound, to })
    }

    fn read_mark(&mut self, by: &Principal, new: &Mark) -> Result<MarkSeen, StoreError> {
        let session = self.seen_session(new.session);
        let at = self.sessions.get(&new.session).map(Kept::at).unwrap_or_default();
        let (asker, key) = (self.read_asker(by)?, self.row_of(by, new.key.as_ref()));
        let marks = self.marks_of(by.org, by.person, new.session);
        Ok(MarkSeen { asker, key, session, at, marks })
    }

    fn read_settle(&mut self, by: &Principal, new: &SettleByHand) -> Result<SettleSeen, StoreError> {
        let (asker, key) = (self.read_asker(by)?, self.row_of(by, new.key.as_ref()));
        Ok(SettleSeen { asker, key, outgoing: self.outbox.get(&new.outgoing).cloned() })
    }

    fn write(&mut self, writes: Vec<Write>) -> Result<(), StoreError> {
        // There is no way back from half of a plan, so whatever a database would stumble over is asked first.
        writes.iter().try_for_each(|write| self.is_free(write))?;
        writes.into_iter().for_each(|write| self.put_row(write));
        self.committed();
        Ok(())
    }
}

impl Contents {
    pub(super) fn key_row(&self, org: OrgId, person: PersonId, key: &Key) -> Option<KeyRow> {
        let remembered = self.keys.get(&(org, person, key.verb, key.key.clone()))?;
        let Remembered { hash, expires, made } = *remembered;
        Some(KeyRow { hash, form: HashForm::Stored, made, expires })
    }

    fn row_of(&self, by: &Principal, key: Option<&Key>) -> Option<KeyRow> {
        key.and_then(|key| self.key_row(by.org, by.person, key))
    }

    fn seen_session(&self, session: SessionId) -> Option<SessionSeen> {
        let kept = self.sessions.get(&session)?;
        let (record, ended) = (kept.record.clone(), kept.projection.ended);
        let words_bytes = self.disk_use(record.org, record.owner).words_bytes;
        let (pending, has_title) = (self.pending(session), kept.title.is_some());
        Some(SessionSeen { record, ended, epoch: epoch_of(kept), has_title, pending, words_bytes })
    }

    pub(super) fn marks_of(&self, org: OrgId, person: PersonId, session: SessionId) -> Marks {
        self.marks.get(&(org, person, session)).copied().unwrap_or_default()
    }

    fn bound_to(&self, by: &Principal, address: &Address, schemes: &[Scheme]) -> Option<SessionId> {
        let whose = address_space(by, DoorAddress { address, schemes });
        self.bound.get(&(by.org, address.to_string(), whose)).map(|binding| binding.session)
    }

    /// The session that was bound to this address last, before the one that is.
    fn last_bound(&self, place: &Place) -> Option<SessionId> {
        self.bound_before.get(place).and_then(|past| past.last()).copied()
    }

    fn is_open(&self, session: SessionId) -> bool {
        self.sessions.get(&session).is_some_and(Kept::is_open)
    }

    /// The same if they may see it.
    pub(super) fn previous_seen(&self, by: &Seer, place: &Place) -> Option<Previous> {
        let seen = self.last_bound(place).and_then(|session| self.seen_session(session))?;
        by.sees(&seen.record).then(|| seen.previous())
    }

    /// The session that was named, that the conversation is bound to, or that ended last while it was.
    fn meant_by(&self, org: OrgId, whose: Option<PersonId>, to: &To) -> Option<SessionId> {
        match to {
            To::Session(session) => Some(*session),
            To::Conversation(address) | To::NewIn(address) => {
                let place = (org, address.to_string(), whose);
                let now = self.bound.get(&place).map(|binding| binding.session);
                now.or_else(|| self.last_bound(&place).filter(|before| !self.is_open(*before)))
            }
            To::New => None,
        }
    }

    pub(super) fn find(&self, by: &Seer, whose: Option<PersonId>, to: &To) -> Finding {
        let seen = self.meant_by(by.org, whose, to).and_then(|session| self.seen_session(session));
        let seen = seen.filter(|seen| by.sees(&seen.record));
        let found = seen.as_ref().map_or(kernel::Found::Nothing, SessionSeen::found);
        let before = match to {
            To::Conversation(address) | To::NewIn(address) => {
                self.previous_seen(by, &(by.org, address.to_string(), whose))
            }
            To::Session(_) | To::New => None,
        };
        Finding { found, record: seen.map(|seen| seen.record), before }
    }

    fn room(&self, by: &Principal) -> RoomSeen {
        let open = || self.sessions.values().filter(|kept| kept.is_open() && kept.record.org == by.org);
        let own = open().filter(|kept| kept.record.owner == by.person).count() as u32;
        let settings = self.people.orgs.get(&by.org).map(|row| row.settings).unwrap_or_default();
        let words_bytes = self.disk_use(by.org, by.person).words_bytes;
        RoomSeen { own, all: open().count() as u32, words_bytes, settings }
    }

    pub(super) fn named(&self, org: OrgId, id: SessionId) -> Vec<Named> {
        let here = self.sessions.values().filter(|kept| kept.record.org == org);
        let named = here.filter_map(|kept| {
            let by = kept.import.as_ref().filter(|(import, _)| import.id == id).map(|(_, by)| *by);
            let answers = kept.record.session == id || by.is_some();
            answers.then(|| Named { record: kept.record.clone(), imported_by: by })
        });
        named.collect()
    }

    /// A minted id that is there already is a mistake of the caller's.
    fn is_free(&self, write: &Write) -> Result<(), StoreError> {
        let there = match write {
            Write::Session(new) => self.sessions.contains_key(&new.session).then(|| new.session.to_string()),
            Write::Message(new) => {
                let message = new.accepted.message;
                self.messages.contains_key(&message).then(|| message.to_string())
            }
            _ => None,
        };
        there.map_or(Ok(()), |id| Err(StoreError::Unavailable(format!("{id} is there already"))))
    }

    fn put_row(&mut self, write: Write) {
        match write {
            Write::Session(new) => self.put_session(*new),
            Write::Bind { org, address, whose, session, at, .. } => {
                let place = (org, address.to_string(), whose);
                self.bound.insert(place, BindingRow { address, session, since: at, before: None });
            }
            Write::Rebind { org, address, whose, session, at, .. } => {
                let place = (org, address.to_string(), whose);
                let row = BindingRow { address, session, since: at, before: None };
                let left = self.bound.insert(place.clone(), row);
                let past = self.bound_before.entry(place).or_default();
                past.retain(|before| *before != session);
                past.extend(left.map(|left| left.session));
            }
            Write::Message(new) => self.put_message(*new),
            Write::Request(new) => {
                let RequestWrite { id, session, at, by, request, resolved, words, attachments, opening } =
                    *new;
                if let (Request::Edit { message, .. }, Some(words)) = (&request, words) {
                    let more = words_bytes(&words) + attachments.as_deref().map_or(0, attached_bytes);
                    self.count_words(session, more, 0);
                    self.edits.insert(id, Edit { message: *message, words, attachments, opening });
                }
                self.put_into_inbox(session, at, InboxItem::Request { id, by, request, resolved });
            }
            Write::Inbox { session, at, item } => self.put_into_inbox(session, at, *item),
            Write::Past { session, by, past, at, .. } => self.put_past(by, session, *past, at),
            Write::Title { session, title, archived } => {
                let place = self.next_place();
                let Some(kept) = self.sessions.get_mut(&session) else { return };
                if let Some(title) = title {
                    let of = None;
                    kept.title = (!title.is_empty()).then_some(Titled { title, by: TitleBy::Person, of });
                }
                kept.archived = archived.unwrap_or(kept.archived);
                kept.place = place;
            }
            Write::Marks { org, person, session, marks } => {
                self.marks.insert((org, person, session), marks);
            }
            Write::OwnRow { person, session } => {
                let place = self.next_place();
                self.row_changes.insert((person, session), place);
            }
            Write::Outgoing(row) => drop(self.outbox.insert(row.outgoing, *row)),
            Write::NoOutgoing { outgoing } => drop(self.outbox.remove(&outgoing)),
            Write::Key { org, person, key, made, .. } => self.remember(org, person, &key, made),
            Write::Audit(AuditWrite { org, by, about, trail, refused }) => {
                let refused = refused.map(str::to_owned);
                self.write_down(AuditRow { refused, ..AuditRow::done(org, by, about, &trail) });
            }
        }
    }

    pub(super) fn remember(&mut self, org: OrgId, person: PersonId, key: &Key, made: u128) {
        let remembered = Remembered { hash: key.hash, expires: key.expires, made };
        self.keys.insert((org, person, key.verb, key.key.clone()), remembered);
    }

    fn put_session(&mut self, new: SessionWrite) {
        let SessionWrite { session, org, owner, scope, origin, enter, title, pending: _, shared, at } = new;
        let given =
            shared.map(|grant| (Grantee::Org, GrantRow { to: Grantee::Org, grant, by: owner, since: at }));
        let grants = shared.map(|grant| (Grantee::Org, grant)).into_iter().collect();
        let agent = scope.agent.clone();
        let kept = Kept {
            record: Record { session, org, owner, agent, grants, revision: 1 },
            given: given.into_iter().collect(),
            title: title.map(|title| Titled { title, by: TitleBy::Person, of: None }),
            scope,
            origin,
            import: None,
            enter,
            archived: false,
            made_at: at,
            touched_at: at,
            term: Term(0),
            facts: Vec::new(),
            projection: Projection::default(),
            checkpoint: None,
            awake: false,
            wake_at: None,
            place: 0,
            inbox: BTreeMap::new(),
            messages: Vec::new(),
            words_bytes: 0,
        };
        self.sessions.insert(session, kept);
    }

    fn put_message(&mut self, new: MessageWrite) {
        let MessageWrite {
            accepted,
            org: _,
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
        let (message, session, at) = (accepted.message, accepted.session, accepted.at);
        self.count_words(session, words_bytes(&words) + attached_bytes(&attachments), 0);
        let door = Some(door);
        let said = MessageRow { by, delivery, unattended, door, reply, accepted, words, attachments };
        self.messages.insert(message, said);
        if let Some(kept) = self.sessions.get_mut(&session) {
            let of = Some(message);
            if let Some(title) = opening {
                kept.title = Some(Titled { title, by: TitleBy::Words, of });
            }
            kept.messages.push(message);
            kept.touched_at = kept.touched_at.max(at);
        }
        self.put_into_inbox(session, at, InboxItem::Say { message, by, delivery, under });
    }

    /// Words have come, and others are forgotten.
    pub(super) fn count_words(&mut self, session: SessionId, more: u64, less: u64) {
        if let Some(kept) = self.sessions.get_mut(&session) {
            kept.words_bytes = (kept.words_bytes + more).saturating_sub(less);
        }
    }

    fn put_past(&mut self, by: PersonId, session: SessionId, past: Past, at: Moment) {
        let Past { import, messages, facts } = past;
        for PastMessage { message, words, attachments, delivery } in messages {
            let (created, previous, if_new_ignored) = (false, None, false);
            let accepted = Accepted { message, session, created, previous, if_new_ignored, at };
            self.count_words(session, words_bytes(&words) + attached_bytes(&attachments), 0);
            let (unattended, door, reply) = (false, None, None);
            let said = MessageRow { by, delivery, unattended, door, reply, accepted, words, attachments };
            self.messages.insert(message, said);
            self.sessions.get_mut(&session).into_iter().for_each(|kept| kept.messages.push(message));
        }
        let place = self.next_place();
        let Some(kept) = self.sessions.get_mut(&session) else { return };
        kept.import = Some((import, by));
        kept.place = place;
        let over = turns_over(session, kept.at(), &facts);
        facts.into_iter().for_each(|new| kept.write(new));
        self.turns_over.extend(over);
    }
}

fn epoch_of(kept: &Kept) -> kernel::Epoch {
    kept.projection.scopes.keys().next_back().copied().unwrap_or_default()
}
