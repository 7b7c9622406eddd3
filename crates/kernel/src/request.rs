//! A request: what a person asks of a session besides taking a message.
//!
//! It has this form here, one on the wire (`api`) and one in the inbox (`store::record`), and no other. Each names what it is
//! about, a message, an approval or the session itself; whoever takes it in finds the session by that, so `decide`, which is
//! called by the session's own keeper, does not look at it again.

use crate::approval::Answer;
use crate::scope::{Change, UndoFiles};
use crate::session::Command;
use crate::worktree::Chore;
use crate::{ApprovalId, Epoch, MessageId, PersonId, SessionId, Turn};
use alloc::vec::Vec;
use core::fmt;

/// Something that a person asks of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Put other words in a waiting message; `revision` is the one the editor saw. The words come beside it.
    Edit { message: MessageId, revision: u32 },
    /// Take a waiting message back.
    Withdraw { message: MessageId },
    /// Keep a waiting message from being started.
    Hold { message: MessageId },
    /// Let a held message be started again: in the scope of now, or (`there`) back in the one that it was written for.
    Release { message: MessageId, there: bool },
    /// Say a waiting message into the turn under way, now.
    Steer { message: MessageId },
    /// Start a waiting message before all others, now: the turn under way is stopped.
    Interrupt { message: MessageId },
    /// Put the waiting messages into this order; it must name each of them once.
    Reorder { session: SessionId, order: Vec<MessageId> },
    /// Stop the turn of this message, or take it back if it still waits.
    Stop { message: MessageId },
    /// Answer an approval, for once or for such questions from now on.
    Answer { approval: ApprovalId, answer: Answer, remember: Option<Remember> },
    /// Act somewhere or somehow else from the end of the turn on; or, if it has to be `now`, not at all while one runs.
    ChangeScope { session: SessionId, change: Change, now: bool },
    /// Give up a change of scope that has not begun.
    KeepScope { session: SessionId },
    /// Put back what a turn has changed. `under` is the epoch that the asker saw; the way in fills in the one of which the
    /// turn's files are, so that a change in between is no harm.
    Undo { session: SessionId, turn: Turn, under: Option<Epoch>, files: UndoFiles },
    /// Take the last undo of a turn back. `under` as for an undo.
    Redo { session: SessionId, turn: Turn, under: Option<Epoch> },
    /// Remove a worktree, give one back, or end what runs in the background. Its verdict comes when that is over; an ended
    /// session has worktrees, too.
    Chore { session: SessionId, chore: Chore },
    /// End the session.
    End { session: SessionId },
}

/// For how long an answer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Remember {
    /// For such questions of this session, until it ends.
    Session,
    /// For such questions of this agent in this directory, until somebody removes the rule.
    Always,
}

/// The thing that a request names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum Subject {
    Session(SessionId),
    Message(MessageId),
    Approval(ApprovalId),
}

impl Request {
    /// The thing that it names.
    pub fn subject(&self) -> Subject {
        match self {
            Self::Edit { message, .. }
            | Self::Withdraw { message }
            | Self::Hold { message }
            | Self::Release { message, .. }
            | Self::Steer { message }
            | Self::Interrupt { message }
            | Self::Stop { message } => Subject::Message(*message),
            Self::Answer { approval, .. } => Subject::Approval(*approval),
            Self::Reorder { session, .. }
            | Self::ChangeScope { session, .. }
            | Self::KeepScope { session }
            | Self::Undo { session, .. }
            | Self::Redo { session, .. }
            | Self::Chore { session, .. }
            | Self::End { session } => Subject::Session(*session),
        }
    }

    /// The command that it is when this person asks, and nothing had to be looked up for it.
    pub fn by(self, by: PersonId) -> Command {
        Command::Request { request: self, by, written_for: None }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session(session) => session.fmt(to),
            Self::Message(message) => message.fmt(to),
            Self::Approval(approval) => approval.fmt(to),
        }
    }
}
