//! A session as plans see it, and the small changes that need no keeper.

use super::{AskerRow, AuditWrite, Plan, Write, asker};
use crate::{AuditSubject, Rejection, Retitle, Trail};
use kernel::{Act, Authorized, EndWhy, Epoch, Found, Previous, Principal, Record, authorize};

/// A session as plans see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSeen {
    /// The record by which it is judged who may touch it.
    pub record: Record,
    /// Why it has ended, if it has.
    pub ended: Option<EndWhy>,
    /// The epoch of its scope.
    pub epoch: Epoch,
    /// True if it has a title.
    pub has_title: bool,
    /// The number of its unfinished messages.
    pub pending: u32,
    /// The room that the words in all sessions of its owner take.
    pub words_bytes: u64,
}

impl SessionSeen {
    /// As `kernel::route` wants it.
    pub fn found(&self) -> Found {
        let session = self.record.session;
        self.ended.map_or(Found::Open(session), |why| Found::Ended(session, why))
    }

    /// As what a conversation had before.
    pub fn previous(&self) -> Previous {
        Previous { session: self.record.session, ended: self.ended }
    }
}

/// The rows that a change of one session is planned with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThisSession {
    /// The asker.
    pub asker: AskerRow,
    /// The session, if there is one.
    pub session: Option<SessionSeen>,
}

/// Plans another title of a session, or whether lists show it.
pub fn retitle(seen: &ThisSession, by: &Principal, new: Retitle) -> Plan<()> {
    let Retitle { session, title, archived, trail } = new;
    let about = AuditSubject::session(session);
    match may_rule(seen, by, &trail) {
        Ok(allowed) => {
            let title = Write::Title { session, title, archived };
            Plan::done(&allowed, vec![title, Write::Audit(AuditWrite::done(by, about, trail))], ())
        }
        Err(why) => {
            let entry = why.code().map(|code| AuditWrite::refused(by, about, trail, code));
            Plan::refused(why, entry)
        }
    }
}

fn may_rule(seen: &ThisSession, by: &Principal, trail: &Trail) -> Result<Authorized<()>, Rejection> {
    let by = asker(&seen.asker, by, trail.at)?;
    let session = seen.session.as_ref().ok_or(Rejection::NotFound { what: "session" })?;
    authorize(by, Act::Manage, &session.record, ()).map_err(|denied| Rejection::denied(denied, "session"))
}
