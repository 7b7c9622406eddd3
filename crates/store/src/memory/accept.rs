//! The doors' side of the memory store: what was promised, to whom, under which key.

use super::contents::{Contents, Kept, Outcome, Remembered, Said};
use crate::*;
use kernel::{
    Address, Authorized, EndWhy, Found, Grantee, MessageId, Moment, Named, OrgId, Principal, Record, Request,
    SessionId, Term, To, Witness,
};
use std::collections::BTreeMap;

/// Why a session cannot be made now.
enum NotMade {
    Moved,
    TooManyOpen,
    OrgTooManyOpen,
}

/// What a key says before anything else is asked.
pub(super) enum Known {
    Never,
    Before(Outcome),
    Conflict,
}

impl Contents {
    pub(super) fn find(&self, org: OrgId, to: &To) -> Finding {
        let session = match to {
            To::Session(session) => Some(*session),
            To::Conversation(address) => {
                let place = (org, address.to_string());
                let bound = self.bound.get(&place).map(|binding| binding.session);
                bound.or_else(|| self.bound_before.get(&place).copied())
            }
            To::New => None,
        };
        match session.and_then(|session| self.sessions.get(&session)) {
            Some(kept) if kept.record.org == org => {
                let session = kept.record.session;
                let found = kept.projection.ended.map_or(Found::Open(session), |w| Found::Ended(session, w));
                Finding { found, record: Some(kept.record.clone()) }
            }
            _ => Finding { found: Found::Nothing, record: None },
        }
    }

    pub(super) fn accept(&mut self, wish: &Authorized<NewMessage>) -> Result<Acceptance, StoreError> {
        let (by, new) = (wish.by(), wish.wish());
        match self.known(by, new.key.as_ref(), new.trail.at) {
            Known::Never => {}
            Known::Before(Outcome::Message(message)) => return self.accepted_before(message),
            Known::Before(_) | Known::Conflict => return Ok(Acceptance::Conflict),
        }
        if self.messages.contains_key(&new.message) {
            return Err(StoreError::Unavailable(format!("message {} was accepted before", new.message)));
        }
        match &new.into {
            Into::Existing { session, through } => {
                if !self.takes(by, *session, through.as_ref(), wish.witness()) {
                    return Ok(Acceptance::Moved);
                }
                if self.pending(*session) >= new.pending_max {
                    return Ok(Acceptance::QueueFull);
                }
                Ok(Acceptance::Done(self.say(by, *session, false, None, new)))
            }
            Into::Create(fresh) => match self.may_make(by, fresh, wish.witness())? {
                Err(NotMade::Moved) => Ok(Acceptance::Moved),
                Err(NotMade::TooManyOpen) => Ok(Acceptance::TooManyOpen),
                Err(NotMade::OrgTooManyOpen) => Ok(Acceptance::OrgTooManyOpen),
                Ok(()) => {
                    self.make(by, fresh, new.trail.at);
                    Ok(Acceptance::Done(self.say(by, fresh.session, true, fresh.previous, new)))
                }
            },
        }
    }

    pub(super) fn create(&mut self, wish: &Authorized<Create>) -> Result<Creation, StoreError> {
        let (by, Create { session: fresh, past, key, trail }) = (wish.by(), wish.wish());
        match self.known(by, key.as_ref(), trail.at) {
            Known::Never => {}
            Known::Before(Outcome::Session(session)) => return Ok(Creation::Before(session)),
            Known::Before(_) | Known::Conflict => return Ok(Creation::Conflict),
        }
        match self.may_make(by, fresh, wish.witness())? {
            Err(NotMade::Moved) => Ok(Creation::Moved),
            Err(NotMade::TooManyOpen) => Ok(Creation::TooManyOpen),
            Err(NotMade::OrgTooManyOpen) => Ok(Creation::OrgTooManyOpen),
            Ok(()) => {
                if let Some(there) = past.as_ref().and_then(|past| self.imported(by, past.import.id)) {
                    return Ok(Creation::Already(there));
                }
                self.make(by, fresh, trail.at);
                match past {
                    Some(past) => self.write_past(by, fresh.session, past.clone(), trail.at),
                    None => self.put_into_inbox(fresh.session, trail.at, InboxItem::Wake),
                }
                self.remember(by, key.as_ref(), Outcome::Session(fresh.session));
                self.done(by, About::session(fresh.session), trail);
                Ok(Creation::Done(fresh.session))
            }
        }
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

    /// What this person has brought here under this name, and still owns.
    fn imported(&self, by: &Principal, id: SessionId) -> Option<SessionId> {
        let theirs = self.sessions.values().filter(|kept| {
            kept.import.as_ref().is_some_and(|(import, who)| import.id == id && *who == by.person)
                && (kept.record.org, kept.record.owner) == (by.org, by.person)
        });
        theirs.map(|kept| kept.record.session).next()
    }

    fn write_past(&mut self, by: &Principal, session: SessionId, past: Past, at: Moment) {
        let Past { import, messages, facts } = past;
        for PastMessage { message, words, delivery } in messages {
            let (created, previous, if_new_ignored) = (false, None, false);
            let accepted = Accepted { message, session, created, previous, if_new_ignored, at };
            let said = Said { by: by.person, delivery, unattended: false, reply: None, accepted, words };
            self.messages.insert(message, said);
            self.sessions.get_mut(&session).into_iter().for_each(|kept| kept.messages.push(message));
        }
        let place = self.next_place();
        let Some(kept) = self.sessions.get_mut(&session) else { return };
        kept.import = Some((import, by.person));
        // What was said elsewhere was not said to everybody here.
        kept.given.clear();
        kept.record.grants.clear();
        kept.place = place;
        facts.into_iter().for_each(|new| kept.write(new));
    }

    pub(super) fn ask(&mut self, wish: &Authorized<NewRequest>) -> Result<Asking, StoreError> {
        let (by, new) = (wish.by(), wish.wish());
        match self.known(by, new.key.as_ref(), new.trail.at) {
            Known::Never => {}
            Known::Before(Outcome::Request(request)) => return Ok(Asking::Before(request)),
            Known::Before(_) | Known::Conflict => return Ok(Asking::Conflict),
        }
        match self.sessions.get(&new.session) {
            Some(kept) if self.may_still(by, kept, wish.witness()) => {
                if let Some(why) = kept.projection.ended {
                    return Ok(Asking::Ended(why));
                }
            }
            _ => return Ok(Asking::Moved),
        }
        if let (Request::Edit { message, .. }, Some(words)) = (&new.request, &new.words) {
            self.edits.insert(new.id, (*message, words.clone()));
        }
        let (request, resolved) = (new.request.clone(), new.resolved.clone());
        let item = InboxItem::Request { id: new.id, by: by.person, request, resolved };
        self.put_into_inbox(new.session, new.trail.at, item);
        self.remember(by, new.key.as_ref(), Outcome::Request(new.id));
        self.done(by, About::request(new.session, &new.request), &new.trail);
        Ok(Asking::Done(new.id))
    }

    pub(super) fn rebind(&mut self, wish: &Authorized<Rebind>) -> Rebinding {
        let (by, Rebind { address, from, to, key, trail }) = (wish.by(), wish.wish());
        match self.known(by, key.as_ref(), trail.at) {
            Known::Never => {}
            Known::Before(Outcome::Session(_)) => return Rebinding::Before,
            Known::Before(_) | Known::Conflict => return Rebinding::Conflict,
        }
        let place = (by.org, address.to_string());
        let bound = self.bound.get(&place).map(|binding| binding.session);
        match self.sessions.get(to) {
            Some(kept) if self.may_still(by, kept, wish.witness()) && bound == *from => {
                if let Some(why) = kept.projection.ended {
                    return Rebinding::Ended(why);
                }
            }
            _ => return Rebinding::Moved,
        }
        if bound != Some(*to) {
            let binding = BindingRow { address: address.clone(), session: *to, since: trail.at };
            self.bound.insert(place, binding);
        }
        self.remember(by, key.as_ref(), Outcome::Session(*to));
        self.done(by, About::session(*to).and(Some(address)), trail);
        Rebinding::Done
    }

    pub(super) fn retitle(&mut self, wish: &Authorized<Retitle>) -> Retitling {
        let (by, Retitle { session, title, archived, trail }) = (wish.by(), wish.wish());
        let may = self.sessions.get(session).is_some_and(|kept| self.may_still(by, kept, wish.witness()));
        let Some(kept) = self.sessions.get_mut(session).filter(|_| may) else {
            return Retitling::Moved;
        };
        if let Some(title) = title {
            kept.title = Some(title.clone());
        }
        kept.archived = archived.unwrap_or(kept.archived);
        self.done(by, About::session(*session), trail);
        Retitling::Done
    }

    pub(super) fn permit(&mut self, wish: &Authorized<Permit>) -> Permitting {
        let (by, Permit { session, subject, trail }) = (wish.by(), wish.wish());
        if !self.sessions.get(session).is_some_and(|kept| self.may_still(by, kept, wish.witness())) {
            return Permitting::Moved;
        }
        self.done(by, About::session(*session).and(Some(subject)), trail);
        Permitting::Done
    }

    /// The key is looked up before anything else is: a repeated wish gets its answer whatever has happened since.
    pub(super) fn known(&self, by: &Principal, key: Option<&Key>, now: Moment) -> Known {
        let Some(key) = key else { return Known::Never };
        let place = (by.org, by.person, key.verb, key.key.clone());
        match self.keys.get(&place) {
            Some(remembered) if remembered.expires.is_some_and(|until| until <= now) => Known::Never,
            Some(remembered) if remembered.hash == key.hash => Known::Before(remembered.outcome),
            Some(_) => Known::Conflict,
            None => Known::Never,
        }
    }

    pub(super) fn remember(&mut self, by: &Principal, key: Option<&Key>, outcome: Outcome) {
        let Some(key) = key else { return };
        let place = (by.org, by.person, key.verb, key.key.clone());
        self.keys.insert(place, Remembered { hash: key.hash, expires: key.expires, outcome });
    }

    fn accepted_before(&self, message: MessageId) -> Result<Acceptance, StoreError> {
        let said = self.messages.get(&message);
        let said =
            said.ok_or_else(|| StoreError::Damaged(format!("a key names {message}, which is gone")))?;
        Ok(Acceptance::Before(said.accepted.clone()))
    }

    /// Is what was seen of the session and of whoever asks still so?
    pub(super) fn may_still(&self, by: &Principal, kept: &Kept, witness: Witness) -> bool {
        kept.record.org == by.org && kept.bears(witness) && self.people.stands(by, witness)
    }

    /// Is what was seen when the message was routed and authorized still so?
    fn takes(&self, by: &Principal, session: SessionId, through: Option<&Address>, witness: Witness) -> bool {
        let bound_to = |address: &Address| {
            self.bound.get(&(by.org, address.to_string())).map(|binding| binding.session) == Some(session)
        };
        self.sessions.get(&session).is_some_and(|kept| {
            kept.is_open() && self.may_still(by, kept, witness) && through.is_none_or(bound_to)
        })
    }

    fn may_make(
        &self,
        by: &Principal,
        fresh: &NewSession,
        witness: Witness,
    ) -> Result<Result<(), NotMade>, StoreError> {
        if self.sessions.contains_key(&fresh.session) {
            return Err(StoreError::Unavailable(format!("session {} was made before", fresh.session)));
        }
        let taken =
            fresh.bind.as_ref().is_some_and(|bind| self.bound.contains_key(&(by.org, bind.to_string())));
        if taken || witness.session.is_some() || !self.people.stands(by, witness) {
            return Ok(Err(NotMade::Moved));
        }
        let open = || self.sessions.values().filter(|kept| kept.is_open() && kept.record.org == by.org);
        if open().filter(|kept| kept.record.owner == by.person).count() >= fresh.open_max as usize {
            return Ok(Err(NotMade::TooManyOpen));
        }
        let full = open().count() >= fresh.org_open_max as usize;
        Ok(if full { Err(NotMade::OrgTooManyOpen) } else { Ok(()) })
    }

    fn make(&mut self, by: &Principal, fresh: &NewSession, at: Moment) {
        let NewSession {
            session,
            scope,
            origin,
            enter,
            title,
            bind,
            previous: _,
            open_max: _,
            org_open_max: _,
        } = fresh.clone();
        let (org, owner, agent) = (by.org, by.person, scope.agent.clone());
        let shared = self.people.share_new(org);
        let given =
            shared.map(|grant| (Grantee::Org, GrantRow { to: Grantee::Org, grant, by: owner, since: at }));
        let grants = shared.map(|grant| (Grantee::Org, grant)).into_iter().collect();
        let kept = Kept {
            record: Record { session, org, owner, agent, grants, revision: 1 },
            given: given.into_iter().collect(),
            title,
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
        };
        self.sessions.insert(session, kept);
        if let Some(address) = bind {
            let place = (by.org, address.to_string());
            self.bound.insert(place, BindingRow { address, session, since: at });
        }
    }

    fn say(
        &mut self,
        by: &Principal,
        session: SessionId,
        created: bool,
        previous: Option<(SessionId, EndWhy)>,
        new: &NewMessage,
    ) -> Accepted {
        let (message, at) = (new.message, new.trail.at);
        let if_new_ignored = new.if_new_ignored;
        let accepted = Accepted { message, session, created, previous, if_new_ignored, at };
        let said = Said {
            by: by.person,
            delivery: new.delivery,
            unattended: new.unattended,
            reply: new.reply.clone(),
            accepted: accepted.clone(),
            words: new.words.clone(),
        };
        self.messages.insert(message, said);
        if let Some(kept) = self.sessions.get_mut(&session) {
            kept.messages.push(message);
            kept.touched_at = kept.touched_at.max(at);
        }
        let (delivery, under) = (new.delivery, new.under);
        self.put_into_inbox(session, at, InboxItem::Say { message, by: by.person, delivery, under });
        self.remember(by, new.key.as_ref(), Outcome::Message(message));
        self.done(by, About::session(session).and(Some(message)), &new.trail);
        accepted
    }
}
