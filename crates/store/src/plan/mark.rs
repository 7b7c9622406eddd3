//! Somebody's own marks on a session: whoever may see it may mark it, and nobody else is touched by that.

use super::{AskerRow, AuditWrite, KeyRow, Plan, SessionSeen, Write, asker, planned};
use crate::{AuditSubject, Mark, Marks, Rejection};
use kernel::{Act, Number, Principal, authorize};

/// The rows that marks are planned with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkSeen {
    /// The asker.
    pub asker: AskerRow,
    /// The row of the key.
    pub key: Option<KeyRow>,
    /// The session, if there is one.
    pub session: Option<SessionSeen>,
    /// The number of its last fact.
    pub at: Number,
    /// The marks that they have put on it so far.
    pub marks: Marks,
}

/// Changes somebody's marks. Asked again under its key, it answers with the marks as they are by then.
pub fn mark(seen: &MarkSeen, by: &Principal, new: Mark) -> Plan<Marks> {
    let (key, at) = (new.key.clone(), new.trail.at);
    let (refused, trail) = (AuditSubject::session(new.session), new.trail.clone());
    planned(
        key.as_ref(),
        seen.key.as_ref(),
        at,
        |_| Some(seen.marks),
        || marked(seen, by, new),
        |code| AuditWrite::refused(by, refused, trail, code),
    )
}

fn marked(seen: &MarkSeen, by: &Principal, new: Mark) -> Result<Plan<Marks>, Rejection> {
    let Mark { session, seen: until, pinned, key, trail } = new;
    let now = asker(&seen.asker, by, trail.at)?;
    let there = seen.session.as_ref().ok_or(Rejection::NotFound { what: "session" })?;
    let allowed = authorize(now, Act::Read, &there.record, ())
        .map_err(|denied| Rejection::denied(denied, "session"))?;
    let marks = seen.marks.changed(until, pinned, seen.at);
    let mut writes = Vec::with_capacity(3);
    if marks != seen.marks {
        writes.push(Write::Marks { org: now.org, person: now.person, session, marks });
        writes.push(Write::OwnRow { person: now.person, session });
    }
    writes.extend(Write::key(now, key, session.bits(), trail.at));
    Ok(Plan::done(&allowed, writes, marks))
}
