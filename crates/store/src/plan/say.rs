//! A message: which session it goes into, and all that must be true if it is there.

use super::make::{fits, room};
use super::{AskerRow, AuditWrite, KeyRow, MessageWrite, Plan, RoomSeen, SessionSeen, Write, asker, planned};
use crate::{
    Accepted, AuditSubject, NewMessage, NewSession, Predecessor, Rejection, UnfitAgent, attached_bytes,
    words_bytes, words_fit,
};
use kernel::{
    Act, Address, DoorAddress, Epoch, Found, NoRoute, Previous, Principal, Route, Scope, SessionId, To,
    authorize, authorize_address, grant_of, route,
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
    /// The scope of that one, where it counts: for what its sender takes it to be, and for the session that comes after it.
    pub scope: Option<Scope>,
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
        To::Conversation(address) | To::NewIn(address) => AuditSubject::named(address),
        To::New => AuditSubject::default(),
    }
}

fn conversation(to: &To) -> Option<&Address> {
    match to {
        To::Conversation(address) | To::NewIn(address) => Some(address),
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
            into_existing(there, seen.scope.as_ref(), now, new)
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

impl SaySeen {
    /// True if the scope of what is found counts for this message.
    pub fn needs_scope(found: &SessionSeen, new: &NewMessage) -> bool {
        found.ended.is_some() || new.expected.is_some()
    }

    /// The session that a conversation had until it ended, for the one that comes after it.
    fn predecessor(&self, to: &To, previous: Option<Previous>) -> Option<Predecessor> {
        let (To::Conversation(_), Some(Previous { session, .. })) = (to, previous) else { return None };
        self.scope.clone().map(|scope| Predecessor { session, scope })
    }
}

fn into_existing(
    there: &SessionSeen,
    scope: Option<&Scope>,
    now: &Principal,
    new: NewMessage,
) -> Result<Plan<Accepted>, Rejection> {
    // Nobody can have seen an epoch that has not been. What the sender may not see is refused as that, next.
    if grant_of(now, &there.record).is_some() && new.under.is_some_and(|under| under > there.epoch) {
        return Err(Rejection::OtherScope);
    }
    let allowed = authorize(now, Act::Say, &there.record, ()).map_err(denied)?;
    if let (Some(expected), Some(scope)) = (&new.expected, scope)
        && !expected.fits(scope)
    {
        let (session, agent, model) = (there.record.session, scope.agent.clone(), scope.model.clone());
        return Err(Rejection::OtherAgent { session, agent, model });
    }
    if there.pending >= new.pending_max {
        return Err(Rejection::QueueFull { limit: new.pending_max });
    }
    taken_by(&there.record.agent, &new.unfit)?;
    words_fit(there.words_bytes, room_of(&new), new.words_bytes_max)?;
    let session = there.record.session;
    let if_new_ignored = new.asks_for_new;
    let new = NewMessage { opening: new.opening.filter(|_| !there.has_title), ..new };
    let (writes, accepted) = message(now, session, None, if_new_ignored, new, Vec::with_capacity(3));
    Ok(Plan::done(&allowed, writes, accepted))
}

fn into_new(
    seen: &SaySeen,
    by: &Principal,
    now: &Principal,
    bind: Option<Address>,
    previous: Option<Previous>,
    mut new: NewMessage,
) -> Result<Plan<Accepted>, Rejection> {
    if new.under.is_some_and(|under| under > Epoch(0)) {
        return Err(Rejection::OtherScope);
    }
    let like = seen.predecessor(&new.to, previous);
    let is_another = new.like.is_some() && new.like != like.as_ref().map(|like| like.session);
    let Some(fresh) = new.fresh.take().filter(|_| !is_another) else {
        // Whoever asks looks at directory and agent, as the principal who they are now, and comes again.
        let by = (now != by).then(|| Box::new(now.clone()));
        return Err(Rejection::WouldBeNew { by, like: like.map(Box::new) });
    };
    let fresh = NewSession { bind, ..*fresh };
    let allowed = fits(now, &fresh, new.schemes, None)?;
    let counted = room(seen.room.as_ref(), &fresh)?;
    taken_by(&fresh.scope.agent, &new.unfit)?;
    words_fit(counted.words_bytes, room_of(&new), new.words_bytes_max)?;
    let (session, has_title) = (fresh.session, fresh.title.is_some());
    let new = NewMessage { opening: new.opening.filter(|_| !has_title), ..new };
    let mut writes = Vec::with_capacity(5);
    let rows = Write::session(now, fresh, new.schemes, 0, counted.settings.share_new, new.trail.at);
    // Whatever right they have on the session that had it: the conversation is theirs to use, and that one goes on.
    let takes_over = seen.found.as_ref().is_some_and(|found| found.ended.is_none());
    writes.extend(rows.map(|row| if takes_over { row.taking_over() } else { row }));
    let (writes, accepted) = message(now, session, Some(previous), false, new, writes);
    Ok(Plan::done(&allowed, writes, accepted))
}

/// `made_after` is there if the session was made for this message, and says which one the conversation had before.
fn message(
    by: &Principal,
    session: SessionId,
    made_after: Option<Option<Previous>>,
    if_new_ignored: bool,
    new: NewMessage,
    mut writes: Vec<Write>,
) -> (Vec<Write>, Accepted) {
    let NewMessage {
        message,
        words,
        attachments,
        opening,
        delivery,
        under,
        unattended,
        reply,
        key,
        trail,
        ..
    } = new;
    let (created, previous) = (made_after.is_some(), made_after.flatten());
    let accepted = Accepted { message, session, created, previous, if_new_ignored, at: trail.at };
    let row = MessageWrite {
        accepted: accepted.clone(),
        org: by.org,
        by: by.person,
        words,
        attachments,
        opening,
        delivery,
        under,
        unattended,
        door: trail.door,
        reply,
    };
    writes.push(Write::Message(Box::new(row)));
    writes.extend(Write::key(by, key, message.bits(), trail.at));
    writes.push(Write::Audit(AuditWrite::done(by, AuditSubject::session(session).and(Some(message)), trail)));
    (writes, accepted)
}

/// The room that a message takes with all that goes along.
fn room_of(new: &NewMessage) -> u64 {
    words_bytes(&new.words) + attached_bytes(&new.attachments)
}

/// Attachments are for the agent that the session has now: one that does not take it would have to be told something else.
pub(super) fn taken_by(agent: &str, unfit: &[UnfitAgent]) -> Result<(), Rejection> {
    let unfit = unfit.iter().find(|unfit| unfit.agent == agent);
    unfit.map_or(Ok(()), |unfit| Err(Rejection::NotTaken(unfit.clone())))
}

fn denied(denied: kernel::Denied) -> Rejection {
    Rejection::denied(denied, "session")
}
