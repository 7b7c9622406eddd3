//! A session without a message: a new one, a fork, or one that brings a past from elsewhere.

use super::{AskerRow, AuditWrite, KeyRow, Plan, RoomSeen, SessionSeen, Write, asker, planned};
use crate::{AuditSubject, Create, InboxItem, NewSession, Rejection, words_fit};
use kernel::{
    Act, Authorized, DoorAddress, Fresh, Named, Principal, Scheme, SessionId, authorize, authorize_new,
    grant_of,
};

/// The rows that a new session is planned with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MakeSeen {
    /// The asker.
    pub asker: AskerRow,
    /// The row of the key.
    pub key: Option<KeyRow>,
    /// The open session that the conversation is bound to already.
    pub bound: Option<SessionId>,
    /// The session of which it is a fork.
    pub origin: Option<SessionSeen>,
    /// Every session of the org that answers to the name under which it comes here.
    pub named: Vec<Named>,
    /// The number of sessions there are.
    pub room: RoomSeen,
}

/// Makes a session that nobody has said anything to yet.
pub fn make(seen: &MakeSeen, by: &Principal, new: Create) -> Plan<SessionId> {
    let (key, at) = (new.key.clone(), new.trail.at);
    let refused = (new.subject.as_ref().map(AuditSubject::named).unwrap_or_default(), new.trail.clone());
    planned(
        key.as_ref(),
        seen.key.as_ref(),
        at,
        |made| Some(SessionId::from_bits(made)),
        || made(seen, by, new),
        |code| AuditWrite::refused(by, refused.0, refused.1, code),
    )
}

fn made(seen: &MakeSeen, by: &Principal, new: Create) -> Result<Plan<SessionId>, Rejection> {
    let Create { session: fresh, past, words_bytes_max, subject: _, key, trail, schemes } = new;
    let now = asker(&seen.asker, by, trail.at)?;
    let allowed = fits(now, &fresh, schemes, seen.origin.as_ref())?;
    // A conversation that was bound in between stays so.
    if fresh.bind.is_some() && seen.bound.is_some() {
        return Err(Rejection::Changed);
    }
    // What the caller can see under this name is what they would get: a second one would only be in its way.
    if let Some(there) = seen.named.iter().find(|named| grant_of(now, &named.record).is_some()) {
        return Err(Rejection::AlreadyHere { session: there.record.session });
    }
    let counted = room(Some(&seen.room), &fresh)?;
    if let Some(past) = &past {
        words_fit(counted.words_bytes, past.words_bytes(), words_bytes_max)?;
    }
    let (session, at) = (fresh.session, trail.at);
    let pending = past.as_ref().map_or(0, |past| past.messages.len() as u32);
    // What was said elsewhere was not said to everybody here.
    let shared = counted.settings.share_new.filter(|_| past.is_none());
    let mut writes = Vec::with_capacity(5);
    writes.extend(Write::session(now, fresh, schemes, pending, shared, at));
    writes.push(match past {
        Some(past) => Write::Past { session, by: now.person, org: now.org, past: Box::new(past), at },
        None => Write::Inbox { session, at, item: Box::new(InboxItem::Wake) },
    });
    writes.extend(Write::key(now, key, session.bits(), at));
    writes.push(Write::Audit(AuditWrite::done(now, AuditSubject::session(session), trail)));
    Ok(Plan::done(&allowed, writes, session))
}

/// Judges if they may make this session.
pub(super) fn fits(
    now: &Principal,
    fresh: &NewSession,
    schemes: &[Scheme],
    origin: Option<&SessionSeen>,
) -> Result<Authorized<()>, Rejection> {
    let denied = |denied| Rejection::denied(denied, "session");
    let chosen = &fresh.chosen;
    let address = fresh.bind.as_ref().map(|address| DoorAddress { address, schemes });
    let agent = chosen.agent.as_str();
    let mut directory = chosen.directory.as_ref();
    if fresh.origin.is_some() {
        let origin = origin.ok_or(Rejection::NotFound { what: "session" })?;
        // Whoever forks gets a shell where the origin has one, so they must have it there.
        authorize(now, Act::Say, &origin.record, ()).map_err(denied)?;
        // What was given on the origin can be taken back, and a fork stays: its place has to be theirs to choose.
        directory = directory.filter(|_| origin.record.owner != now.person);
    }
    authorize_new(now, Fresh { address, agent, directory }, ()).map_err(denied)
}

/// Judges if there is room for one more: the person's own bound first, then the org's, which may want fewer.
pub(super) fn room(room: Option<&RoomSeen>, fresh: &NewSession) -> Result<RoomSeen, Rejection> {
    let room = *room.ok_or(Rejection::WouldBeNew { by: None, like: None })?;
    if room.own >= fresh.open_max {
        return Err(Rejection::TooManyOpen { limit: fresh.open_max });
    }
    let limit = room.settings.open_max.map_or(fresh.org_open_max, |wanted| wanted.min(fresh.org_open_max));
    if room.all >= limit {
        return Err(Rejection::OrgTooManyOpen { limit });
    }
    Ok(room)
}
