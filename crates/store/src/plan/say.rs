//! A message: which session it goes into, and all that must be true if it is there.

use super::make::{fits, room};
use super::{AskerRow, AuditWrite, KeyRow, MessageWrite, Plan, RoomSeen, SessionSeen, Write, asker, planned};
use crate::{Accepted, AuditSubject, NewMessage, NewSession, Rejection, words_bytes, words_fit};
use kernel::{
    Act, Address, DoorAddress, EndWhy, Epoch, Found, NoRoute, Principal, Route, SessionId, To, authorize,
    authorize_address, grant_of, route,
};

/// The rows that a message is planned with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SaySeen {
    /// The asker.
    pub asker: AskerRow,
    /// The row of the key.
    pub key: Option<KeyRow>,
    /// The receipt of the message that the key names.
    pub before: Option<Accepted>,
    /// The session that was named, that the conversation is bound to, or that ended last while it was.
    pub found: Option<SessionSeen>,
    /// Read for a message that brings the session that is made if there is none.
    pub room: Option<RoomSeen>,
}

/// Takes a message in.
pub fn say(seen: &SaySeen, by: &Principal, new: NewMessage) -> Plan<Accepted> {
    let (key, at) = (new.key.clone(), new.trail.at);
    let refused = (about(&new.to), new.trail.clone());
    planned(
        key.as_ref(),
        seen.key.as_ref(),
        at,
        |_| seen.before.clone(),
        || said(seen, by, new),
        |code| AuditWrite::refused(by, refused.0, refused.1, code),
    )
}

fn about(to: &To) -> AuditSubject {
    match to {
        To::Session(session) => AuditSubject::session(*session),
        To::Conversation(address) => AuditSubject::named(address),
        To::New => AuditSubject::default(),
    }
}

fn conversation(to: &To) -> Option<&Address> {
    match to {
        To::Conversation(address) => Some(address),
        To::Session(_) | To::New => None,
    }
}

fn said(seen: &SaySeen, by: &Principal, new: NewMessage) -> Result<Plan<Accepted>, Rejection> {
    let now = asker(&seen.asker, by, new.trail.at)?;
    // Where replies go is used as much as where it is said: a door sends there.
    for address in conversation(&new.to).into_iter().chain(&new.reply) {
        authorize_address(now, DoorAddress { address, schemes: new.schemes }).map_err(denied)?;
    }
    let found = seen.found.as_ref();
    match route(&new.to, found.map_or(Found::Nothing, SessionSeen::found)) {
        Ok(Route::Existing(_)) => {
            let there = found.ok_or(Rejection::NotFound { what: "session" })?;
            into_existing(there, now, new)
        }
        Ok(Route::Create { bind, previous }) => {
            // A past that the sender may not see is none.
            let seen_before = found.is_some_and(|there| grant_of(now, &there.record).is_some());
            into_new(seen, by, now, bind, previous.filter(|_| seen_before), new)
        }
        // An ended session that the caller may not see does not exist, either.
        Err(NoRoute::Ended(session, why))
            if found.is_some_and(|there| grant_of(now, &there.record).is_some()) =>
        {
            Err(Rejection::Ended { session, why })
        }
        Err(NoRoute::Unknown | NoRoute::Ended(..)) => Err(Rejection::NotFound { what: "session" }),
    }
}

fn into_existing(there: &SessionSeen, now: &Principal, new: NewMessage) -> Result<Plan<Accepted>, Rejection> {
    // Nobody can have seen an epoch that has not been. What the sender may not see is refused as that, next.
    if grant_of(now, &there.record).is_some() && new.under.is_some_and(|under| under > there.epoch) {
        return Err(Rejection::OtherScope);
    }
    let allowed = authorize(now, Act::Say, &there.record, ()).map_err(denied)?;
    if there.pending >= new.pending_max {
        return Err(Rejection::QueueFull { limit: new.pending_max });
    }
    words_fit(there.words_bytes, words_bytes(&new.words), new.words_bytes_max)?;
    let session = there.record.session;
    let if_new_ignored = new.asks_for_new;
    let (writes, accepted) = message(now, session, None, if_new_ignored, new, Vec::with_capacity(3));
    Ok(Plan::done(&allowed, writes, accepted))
}

fn into_new(
    seen: &SaySeen,
    by: &Principal,
    now: &Principal,
    bind: Option<Address>,
    previous: Option<(SessionId, EndWhy)>,
    mut new: NewMessage,
) -> Result<Plan<Accepted>, Rejection> {
    if new.under.is_some_and(|under| under > Epoch(0)) {
        return Err(Rejection::OtherScope);
    }
    let Some(fresh) = new.fresh.take() else {
        // Whoever asks looks at directory and agent, as the principal who they are now, and comes again.
        let by = (now != by).then(|| Box::new(now.clone()));
        return Err(Rejection::WouldBeNew { by });
    };
    let fresh = NewSession { bind, ..*fresh };
    let allowed = fits(now, &fresh, new.schemes, None)?;
    let counted = room(seen.room.as_ref(), &fresh)?;
    words_fit(counted.words_bytes, words_bytes(&new.words), new.words_bytes_max)?;
    let session = fresh.session;
    let mut writes = Vec::with_capacity(5);
    writes.extend(Write::session(now, fresh, new.schemes, 0, counted.settings.share_new, new.trail.at));
    let (writes, accepted) = message(now, session, Some(previous), false, new, writes);
    Ok(Plan::done(&allowed, writes, accepted))
}

/// `made_after` is there if the session was made for this message, and says which one the conversation had before.
fn message(
    by: &Principal,
    session: SessionId,
    made_after: Option<Option<(SessionId, EndWhy)>>,
    if_new_ignored: bool,
    new: NewMessage,
    mut writes: Vec<Write>,
) -> (Vec<Write>, Accepted) {
    let NewMessage { message, words, delivery, under, unattended, reply, key, trail, .. } = new;
    let (created, previous) = (made_after.is_some(), made_after.flatten());
    let accepted = Accepted { message, session, created, previous, if_new_ignored, at: trail.at };
    let row = MessageWrite {
        accepted: accepted.clone(),
        org: by.org,
        by: by.person,
        words,
        delivery,
        under,
        unattended,
        reply,
    };
    writes.push(Write::Message(Box::new(row)));
    writes.extend(Write::key(by, key, message.bits(), trail.at));
    writes.push(Write::Audit(AuditWrite::done(by, AuditSubject::session(session).and(Some(message)), trail)));
    (writes, accepted)
}

fn denied(denied: kernel::Denied) -> Rejection {
    Rejection::denied(denied, "session")
}
