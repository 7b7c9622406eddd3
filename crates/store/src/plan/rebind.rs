//! Another session for a conversation.

use super::{AskerRow, AuditWrite, KeyRow, Plan, SessionSeen, Write, asker, planned};
use crate::{AuditSubject, Rebind, Rejection};
use kernel::{Act, DoorAddress, Principal, address_space, authorize, authorize_address};

/// The rows that another binding is planned with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RebindSeen {
    /// The asker.
    pub asker: AskerRow,
    /// The row of the key.
    pub key: Option<KeyRow>,
    /// The open session that the conversation is bound to.
    pub bound: Option<SessionSeen>,
    /// The session that it shall be bound to.
    pub to: Option<SessionSeen>,
}

/// Lets a conversation belong to another open session.
pub fn rebind(seen: &RebindSeen, by: &Principal, new: Rebind) -> Plan<()> {
    let (key, at) = (new.key.clone(), new.trail.at);
    let (refused, trail) = (AuditSubject::session(new.to), new.trail.clone());
    planned(
        key.as_ref(),
        seen.key.as_ref(),
        at,
        |_| Some(()),
        || moved(seen, by, new),
        |code| AuditWrite::refused(by, refused, trail, code),
    )
}

fn moved(seen: &RebindSeen, by: &Principal, new: Rebind) -> Result<Plan<()>, Rejection> {
    let Rebind { address, to, key, trail, schemes } = new;
    let denied = |denied| Rejection::denied(denied, "session");
    let now = asker(&seen.asker, by, trail.at)?;
    let brought = DoorAddress { address: &address, schemes };
    authorize_address(now, brought).map_err(denied)?;
    let whose = address_space(now, brought);
    // Taking a conversation away from a session needs the right to rule that session, too.
    if let Some(bound) = &seen.bound {
        authorize(now, Act::Manage, &bound.record, ()).map_err(denied)?;
    }
    let there = seen.to.as_ref().ok_or(Rejection::NotFound { what: "session" })?;
    let allowed = authorize(now, Act::Manage, &there.record, ()).map_err(denied)?;
    if let Some(why) = there.ended {
        return Err(Rejection::Ended { session: to, why });
    }
    let (org, owner, at) = (now.org, there.record.owner, trail.at);
    let about = AuditSubject::session(to).and(Some(&address));
    let mut writes = Vec::with_capacity(3);
    match &seen.bound {
        Some(bound) if bound.record.session == to => {}
        Some(_) | None => writes.push(Write::Rebind { org, address, whose, session: to, owner, at }),
    }
    writes.extend(Write::key(now, key, to.bits(), at));
    writes.push(Write::Audit(AuditWrite::done(now, about, trail)));
    Ok(Plan::done(&allowed, writes, ()))
}
