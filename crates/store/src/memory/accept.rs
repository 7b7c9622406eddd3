//! The doors' side of the memory store: what was promised, to whom, under which key.

use super::contents::{Contents, Kept, Outcome, Remembered, Said};
use crate::*;
use kernel::{
    Address, Authorized, EndWhy, Found, MessageId, Moment, OrgId, Principal, Record, SessionId, Term, To,
    Witness,
};
use std::collections::BTreeMap;

/// Why a session cannot be made now.
enum NotMade {
    Moved,
    TooManyOpen,
}

/// What a key says before anything else is asked.
enum Known {
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
                if !self.takes(by.org, *session, through.as_ref(), wish.witness()) {
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
                Ok(()) => {
                    self.make(by, fresh, new.trail.at);
                    Ok(Acceptance::Done(self.say(by, fresh.session, true, fresh.previous, new)))
                }
            },
        }
    }

    pub(super) fn create(&mut self, wish: &Authorized<Create>) -> Result<Creation, StoreError> {
        let (by, Create { session: fresh, key, trail }) = (wish.by(), wish.wish());
        match self.known(by, key.as_ref(), trail.at) {
            Known::Never => {}
            Known::Before(Outcome::Session(session)) => return Ok(Creation::Before(session)),
            Known::Before(_) | Known::Conflict => return Ok(Creation::Conflict),
        }
        match self.may_make(by, fresh, wish.witness())? {
            Err(NotMade::Moved) => Ok(Creation::Moved),
            Err(NotMade::TooManyOpen) => Ok(Creation::TooManyOpen),
            Ok(()) => {
                self.make(by, fresh, trail.at);
                self.put_into_inbox(fresh.session, trail.at, InboxItem::Wake);
                self.remember(by, key.as_ref(), Outcome::Session(fresh.session));
                self.granted(by, fresh.session, trail);
                Ok(Creation::Done(fresh.session))
            }
        }
    }

    pub(super) fn ask(&mut self, wish: &Authorized<NewRequest>) -> Result<Asking, StoreError> {
        let (by, new) = (wish.by(), wish.wish());
        match self.known(by, new.key.as_ref(), new.trail.at) {
            Known::Never => {}
            Known::Before(Outcome::Request(request)) => return Ok(Asking::Before(request)),
            Known::Before(_) | Known::Conflict => return Ok(Asking::Conflict),
        }
        match self.sessions.get(&new.session) {
            Some(kept) if kept.record.org == by.org && kept.bears(wish.witness()) => {
                if let Some(why) = kept.projection.ended {
                    return Ok(Asking::Ended(why));
                }
            }
            _ => return Ok(Asking::Moved),
        }
        let mut waiting = new.wish.clone();
        if let Wish::Edit { message, words, .. } = &mut waiting {
            self.edits.insert(new.request, (*message, std::mem::take(words)));
        }
        let item = InboxItem::Request { request: new.request, by: by.person, wish: waiting };
        self.put_into_inbox(new.session, new.trail.at, item);
        self.remember(by, new.key.as_ref(), Outcome::Request(new.request));
        self.granted(by, new.session, &new.trail);
        Ok(Asking::Done(new.request))
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
            Some(kept) if kept.record.org == by.org && kept.bears(wish.witness()) && bound == *from => {
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
        self.granted(by, *to, trail);
        Rebinding::Done
    }

    pub(super) fn retitle(&mut self, wish: &Authorized<Retitle>) -> Retitling {
        let (by, Retitle { session, title, archived, trail }) = (wish.by(), wish.wish());
        let kept = self.sessions.get_mut(session).filter(|kept| kept.record.org == by.org);
        let Some(kept) = kept.filter(|kept| kept.bears(wish.witness())) else {
            return Retitling::Moved;
        };
        if let Some(title) = title {
            kept.title = Some(title.clone());
        }
        kept.archived = archived.unwrap_or(kept.archived);
        self.granted(by, *session, trail);
        Retitling::Done
    }

    /// The key is looked up before anything else is: a repeated wish gets its answer whatever has happened since.
    fn known(&self, by: &Principal, key: Option<&Key>, now: Moment) -> Known {
        let Some(key) = key else { return Known::Never };
        let place = (by.org, by.person, key.verb, key.key.clone());
        match self.keys.get(&place) {
            Some(remembered) if remembered.expires.is_some_and(|until| until <= now) => Known::Never,
            Some(remembered) if remembered.hash == key.hash => Known::Before(remembered.outcome),
            Some(_) => Known::Conflict,
            None => Known::Never,
        }
    }

    fn remember(&mut self, by: &Principal, key: Option<&Key>, outcome: Outcome) {
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

    /// Is what was seen when the message was routed and authorized still so?
    fn takes(&self, org: OrgId, session: SessionId, through: Option<&Address>, witness: Witness) -> bool {
        let bound_to = |address: &Address| {
            self.bound.get(&(org, address.to_string())).map(|binding| binding.session) == Some(session)
        };
        self.sessions.get(&session).is_some_and(|kept| {
            kept.record.org == org && kept.is_open() && kept.bears(witness) && through.is_none_or(bound_to)
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
        if taken || witness.session.is_some() {
            return Ok(Err(NotMade::Moved));
        }
        let theirs =
            |kept: &&Kept| kept.is_open() && kept.record.org == by.org && kept.record.owner == by.person;
        let open = self.sessions.values().filter(theirs).count();
        Ok(if open < fresh.open_max as usize { Ok(()) } else { Err(NotMade::TooManyOpen) })
    }

    fn make(&mut self, by: &Principal, fresh: &NewSession, at: Moment) {
        let NewSession { session, scope, title, bind, previous: _, open_max: _ } = fresh.clone();
        let record = Record { session, org: by.org, owner: by.person, grants: Vec::new(), revision: 1 };
        let kept = Kept {
            record,
            title,
            scope,
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
            reply: new.reply.clone(),
            accepted: accepted.clone(),
            words: new.words.clone(),
        };
        self.messages.insert(message, said);
        if let Some(kept) = self.sessions.get_mut(&session) {
            kept.messages.push(message);
            kept.touched_at = kept.touched_at.max(at);
        }
        self.put_into_inbox(session, at, InboxItem::Say { message, by: by.person });
        self.remember(by, new.key.as_ref(), Outcome::Message(message));
        self.granted(by, session, &new.trail);
        accepted
    }
}
