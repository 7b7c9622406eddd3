//! A reply that does not go out by itself, and that somebody settles by hand.

use super::{AskerRow, AuditWrite, KeyRow, Plan, Write, asker, planned};
use crate::{AuditSubject, Hand, Outgoing, Rejection, SettleByHand};
use kernel::{OrgAct, Principal, authorize_org};

/// The rows that a reply is settled with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettleSeen {
    /// The asker.
    pub asker: AskerRow,
    /// The row of the key.
    pub key: Option<KeyRow>,
    /// The reply, of whichever org.
    pub outgoing: Option<Outgoing>,
}

/// Sends a reply again, or no more.
pub fn settle(seen: &SettleSeen, by: &Principal, new: SettleByHand) -> Plan<()> {
    let (key, at) = (new.key.clone(), new.trail.at);
    let refused = (AuditSubject::named(new.outgoing), new.trail.clone());
    planned(
        key.as_ref(),
        seen.key.as_ref(),
        at,
        |_| Some(()),
        || settled(seen, by, new),
        |code| AuditWrite::refused(by, refused.0, refused.1, code),
    )
}

fn settled(seen: &SettleSeen, by: &Principal, new: SettleByHand) -> Result<Plan<()>, Rejection> {
    let SettleByHand { outgoing, hand, here, key, trail } = new;
    let now = asker(&seen.asker, by, trail.at)?;
    let denied = |denied| Rejection::denied(denied, "reply");
    let allowed = authorize_org(now, OrgAct::Rules, ()).map_err(denied)?;
    let row = seen.outgoing.as_ref().filter(|row| row.org == now.org);
    let row = row.ok_or(Rejection::NotFound { what: "reply" })?;
    let write = match hand {
        Hand::Retry => row.retried(here, trail.at).map(|row| Write::Outgoing(Box::new(row))),
        Hand::Drop => row.is_droppable(here).then_some(Write::NoOutgoing { outgoing }),
    };
    let mut writes = vec![write.ok_or(Rejection::TooLate)?];
    let about = AuditSubject::session(row.session).and(Some(outgoing));
    writes.extend(Write::key(now, key, outgoing.into(), trail.at));
    writes.push(Write::Audit(AuditWrite::done(now, about, trail)));
    Ok(Plan::done(&allowed, writes, ()))
}
