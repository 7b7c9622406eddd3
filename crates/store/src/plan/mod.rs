//! The rules of a change, once for every store: read set → plan → write set, in one transaction.
//!
//! A backend reads the rows that a change names (`WriteTx::read_…`), a pure function of this folder turns them into a
//! `Plan` (`say`, `make`, `ask`, `rebind`, `session`, `settle`), and the backend applies it. No backend has a rule of its own: not which
//! of key, right and limit comes first, not which rows belong together. Who may and which session is meant say
//! `kernel::authorize…` and `kernel::route`, asked here, on the rows as they are in the transaction that writes.
//!
//! `asker` is who asks, `keys` what makes a repetition harmless, `write` the rows that a plan writes. The functions of `drive`
//! are the three steps in a row, for any backend.

mod ask;
mod asker;
pub mod drive;
mod keys;
mod make;
mod mark;
mod rebind;
mod say;
mod session;
mod settle;
mod write;

pub use ask::{AskSeen, ask};
pub use asker::{AskerRow, CredentialRow, asker};
pub use keys::{KeyAnswer, KeyRow, key_answer};
pub use make::{MakeSeen, make};
pub use mark::{MarkSeen, mark};
pub use rebind::{RebindSeen, rebind};
pub use say::{SaySeen, say};
pub use session::{SessionSeen, ThisSession, retitle};
pub use settle::{SettleSeen, settle};
pub use write::{AuditWrite, MessageWrite, RequestWrite, SessionWrite, Write};

use crate::{
    Create, Key, Mark, NewMessage, NewRequest, OrgSettings, Rebind, Rejection, SettleByHand, WriteOutcome,
};
use kernel::{Authorized, Moment, Principal, SessionId};

/// A transaction that reads rows and applies plans. What is read in it stays so until its writes are there.
pub trait WriteTx {
    /// The failure of the database itself.
    type Error;

    /// The rows of whoever asks.
    fn read_asker(&mut self, by: &Principal) -> Result<AskerRow, Self::Error>;

    /// The row of a key that this person has used.
    fn read_key(&mut self, by: &Principal, key: &Key) -> Result<Option<KeyRow>, Self::Error>;

    /// One session.
    fn read_session(&mut self, session: SessionId) -> Result<Option<SessionSeen>, Self::Error>;

    /// The rows that a message is planned with.
    fn read_say(&mut self, by: &Principal, new: &NewMessage) -> Result<SaySeen, Self::Error>;

    /// The rows that a new session is planned with.
    fn read_make(&mut self, by: &Principal, new: &Create) -> Result<MakeSeen, Self::Error>;

    /// The rows that a request is planned with.
    fn read_ask(&mut self, by: &Principal, new: &NewRequest) -> Result<AskSeen, Self::Error>;

    /// The rows that another binding is planned with.
    fn read_rebind(&mut self, by: &Principal, new: &Rebind) -> Result<RebindSeen, Self::Error>;

    /// The rows that somebody's marks are planned with.
    fn read_mark(&mut self, by: &Principal, new: &Mark) -> Result<MarkSeen, Self::Error>;

    /// The rows that a reply is settled with.
    fn read_settle(&mut self, by: &Principal, new: &SettleByHand) -> Result<SettleSeen, Self::Error>;

    /// Writes what a plan says, in its order: all of it, or the transaction is given up.
    fn write(&mut self, writes: Vec<Write>) -> Result<(), Self::Error>;

    /// Applies a plan, and says what came of it.
    fn apply<T, R>(&mut self, plan: Plan<T, R>) -> Result<WriteOutcome<T, R>, Self::Error> {
        if !plan.writes.is_empty() {
            self.write(plan.writes)?;
        }
        Ok(plan.outcome)
    }
}

/// The number of open sessions, and the settings of the org: read for whoever makes one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoomSeen {
    /// Open sessions of the person.
    pub own: u32,
    /// Open sessions of the org.
    pub all: u32,
    /// The room that the words in the person's sessions take.
    pub words_bytes: u64,
    /// The settings of the org.
    pub settings: OrgSettings,
}

/// A change that was decided: the rows that it writes, and its answer. A refusal is one, too: it writes its audit entry.
#[derive(Debug, PartialEq, Eq)]
pub struct Plan<T, R = Rejection> {
    writes: Vec<Write>,
    outcome: WriteOutcome<T, R>,
}

impl<T, R> Plan<T, R> {
    /// Writes these rows. Only what was found to be allowed can be planned: that is what `allowed` is for.
    pub fn done<W>(_allowed: &Authorized<W>, writes: Vec<Write>, made: T) -> Self {
        Self { writes, outcome: WriteOutcome::Done(made) }
    }

    /// It was done before.
    pub fn repeated(made: T) -> Self {
        Self { writes: Vec::new(), outcome: WriteOutcome::Repeated(made) }
    }

    /// Writes nothing but that it was refused.
    pub fn refused(why: R, entry: Option<AuditWrite>) -> Self {
        Self { writes: entry.into_iter().map(Write::Audit).collect(), outcome: WriteOutcome::Refused(why) }
    }

    /// The key stands for something else.
    pub fn conflict(entry: AuditWrite) -> Self {
        Self { writes: vec![Write::Audit(entry)], outcome: WriteOutcome::Conflict }
    }

    /// The answer.
    pub fn outcome(&self) -> &WriteOutcome<T, R> {
        &self.outcome
    }
}

/// Plans a change of the way in. Its key comes first: a repeated wish gets its answer, whatever has happened since. Then comes
/// `decide`, with who asks as they are now. That a key stands for another wish is told only to somebody who may make this one.
/// A refusal brings its audit entry.
fn planned<T>(
    key: Option<&Key>,
    known: Option<&KeyRow>,
    now: Moment,
    before: impl FnOnce(u128) -> Option<T>,
    decide: impl FnOnce() -> Result<Plan<T>, Rejection>,
    entry: impl FnOnce(&'static str) -> AuditWrite,
) -> Plan<T> {
    match key_answer(key, known, now) {
        KeyAnswer::Never => {}
        KeyAnswer::Repeated(made) => {
            return match before(made) {
                Some(made) => Plan::repeated(made),
                None => Plan::refused(Rejection::Gone, None),
            };
        }
        // What somebody may not see or do is refused as such, under whatever key: else a key would say that it is there.
        KeyAnswer::Conflict => {
            return match decide() {
                Err(why) if why.is_of_rights() => Plan::refused(why.clone(), why.code().map(entry)),
                Ok(_) | Err(_) => Plan::conflict(entry(Rejection::CONFLICT)),
            };
        }
    }
    decide().unwrap_or_else(|why| {
        let code = why.code();
        Plan::refused(why, code.map(entry))
    })
}
