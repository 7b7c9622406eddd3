//! A session: its state, what may be asked of it, and what may happen to it.
//!
//! `Command` is what a session is told (most of it a person's `Request`), `Fact` is something that happened, `Session` is
//! all facts folded together. `decide.rs` turns commands into facts, `evolve.rs` folds them in, `due.rs` says what ought to
//! be going on outside.

use crate::approval::{Answer, Answerer, ApprovalTerms, TurnApproval};
use crate::request::Request;
use crate::scope::{Away, Change, Errand, ErrandKind, Origin, Pending, Return, Scope, What};
use crate::worktree::NewWorktree;
use crate::{
    ApprovalId, Attempt, EndWhy, Epoch, Failure, Fence, MessageId, Moment, Native, PersonId, Term, Turn,
};
use alloc::vec::Vec;

/// Everything that a session can be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Begin. The first command of every session.
    Open { scope: Scope, origin: Option<Origin>, enter: Option<NewWorktree> },
    /// Take this message. `under` is the epoch that its sender saw, if they said so.
    Say { message: MessageId, by: PersonId, delivery: Delivery, under: Option<Epoch> },
    /// Do what this person asks. `written_for` is the scope that a message to be released `there` was written for: the
    /// session itself remembers only the one of now.
    Request { request: Request, by: PersonId, written_for: Option<Scope> },
    /// Answer a question of the agent in a person's place, as a rule or a policy says.
    Answer { approval: ApprovalId, answer: Answer, by: Answerer },
    /// Something that was asked of the outside has come back.
    Return { errand: Errand, came: Return },
    /// Some deadline has come.
    Wake,
    /// The store found, in the transaction that would have started it or after a change of rights, that its sender may no
    /// longer say it.
    Revoke { message: MessageId },
    /// The session is this person's from here on: whatever was said to it before ends.
    HandOver { to: PersonId },
    /// A runner says what became of its attempt.
    Report { fence: Fence, report: Report },
}

/// The reports of a runner about its attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// The agent is up and waits for the message; nothing of it has left us.
    Ready { native: Option<Native> },
    /// The agent asks a person. We minted the approval's id for its question.
    Asked { approval: ApprovalId, terms: ApprovalTerms },
    /// The agent no longer asks, and takes no answer.
    Withdrawn { approval: ApprovalId },
    /// The words of this message did not get into the turn, and nothing of them was acted on.
    Missed { message: MessageId },
    /// The agent said itself that it has finished; its processes are gone, or kept for the session's next turn.
    Finished { native: Option<Native> },
    /// The attempt failed; its processes are gone.
    Failed(Failure),
    /// It was stopped, and its processes were seen to be gone.
    Stopped,
    /// We lost it (a crash of ours, a takeover); its processes were seen to be gone.
    Lost,
}

impl Report {
    /// Its kind, for counting what is stale.
    pub fn kind(&self) -> ReportKind {
        match self {
            Self::Ready { .. } => ReportKind::Ready,
            Self::Asked { .. } => ReportKind::Asked,
            Self::Withdrawn { .. } => ReportKind::Withdrawn,
            Self::Missed { .. } => ReportKind::Missed,
            Self::Finished { .. } => ReportKind::Finished,
            Self::Failed(_) => ReportKind::Failed,
            Self::Stopped => ReportKind::Stopped,
            Self::Lost => ReportKind::Lost,
        }
    }
}

/// The kinds of reports, and `Said` for words, which the kernel never sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum ReportKind {
    Ready,
    Said,
    Asked,
    Withdrawn,
    Missed,
    Finished,
    Failed,
    Stopped,
    Lost,
}

/// The way a message is to reach a session whose turn is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Delivery {
    /// After everything that waits.
    #[default]
    Queue,
    /// The turn is stopped, then this comes first.
    Interrupt,
    /// Into the turn, if the agent takes words while it works; else after everything that waits.
    Steer,
}

/// Something that happened. Facts that rules depend on; words and tools are story facts, which the kernel never sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fact {
    /// The session began; `origin` says of which one it is a fork, and `enter` which worktree it goes into before anything
    /// else.
    Opened { scope: Scope, origin: Option<Origin>, enter: Option<NewWorktree> },
    /// A message waits. It was written for the scope of this epoch.
    Queued { message: MessageId, by: PersonId, delivery: Delivery, epoch: Epoch },
    /// Its words were replaced.
    Edited { message: MessageId, revision: u32 },
    /// It was taken back. Final.
    Withdrawn { message: MessageId, by: PersonId },
    /// It will not be started until somebody releases it, and is refused when it expires.
    Held { message: MessageId, why: HoldWhy, expires: Moment },
    /// It may be started again, in the scope of this epoch.
    Released { message: MessageId, epoch: Epoch },
    /// Its words go into the turn under way, and may have been acted on from here on.
    Steered { message: MessageId, turn: Turn },
    /// They did not get there, and nothing of them was acted on: it waits again, before all others.
    Missed { message: MessageId },
    /// The waiting messages stand in this order now.
    Reordered { order: Vec<MessageId> },
    /// It will never be started. Final.
    MessageRefused { message: MessageId, why: RefusedWhy },
    /// No free slot; asked again then at the latest.
    Crowded { until: Moment },
    /// A message began to be worked on.
    TurnStarted { turn: Turn, message: MessageId },
    /// A process may exist from here on.
    AttemptStarted { fence: Fence, until: Moment },
    /// The agent confirmed its own name for this conversation.
    Confirmed { native: Native, epoch: Epoch },
    /// The message may have been acted on from here on.
    Handed { turn: Turn, attempt: Attempt },
    /// The attempt failed before the message was handed over; it is tried again then.
    AttemptFailed { turn: Turn, attempt: Attempt, failure: Failure, again_at: Moment },
    /// The agent asks; without an answer by then it is a no.
    Asked { approval: ApprovalId, turn: Turn, until: Moment, terms: ApprovalTerms },
    /// Somebody answered, or nobody did in time. Final.
    Answered { approval: ApprovalId, answer: Answer, by: Answerer },
    /// Nobody can answer any more: its turn is over, or the agent took the question back. Final.
    Lapsed { approval: ApprovalId },
    /// The turn is to stop.
    StopAsked { turn: Turn, why: StopWhy },
    /// The turn is over. Final.
    TurnEnded { turn: Turn, outcome: Outcome },
    /// The session is to end once its turn is over.
    EndAsked { by: PersonId },
    /// The session is over. Final: what comes too late (messages, reports) is recorded after it and changes nothing.
    Ended { why: EndWhy },
    /// A report came too late, or from the wrong attempt, and was not applied.
    Stale { fence: Fence, kind: ReportKind },
    /// The scope is to change when the turn is over and `after`, which would be started next, has had its own.
    ChangeAsked { change: Change, after: Option<MessageId>, by: PersonId },
    /// It is not to change any more: somebody gave it up, or what it took could not be done.
    ScopeKept { why: KeptWhy },
    /// The session acts there and so from here on.
    ScopeChanged { epoch: Epoch, scope: Scope },
    /// Something is asked of the outside, and no turn starts until it is over.
    ErrandStarted { errand: Errand, what: What, by: PersonId },
    /// It came to nothing; the story says why.
    ErrandFailed { errand: Errand },
    /// Everything this turn had changed is as it was before it.
    Undone { turn: Turn },
    /// The last undo of this turn was taken back: everything is as it was before that.
    Redone { turn: Turn },
    /// The agent's commands or models are known for the scope of this epoch.
    Learned { kind: ErrandKind, epoch: Epoch },
    /// An errand came back under another epoch, or twice, and was not applied.
    StaleErrand { errand: Errand, kind: ErrandKind },
}

/// Why a scope that was to change stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeptWhy {
    /// Somebody gave the change up.
    Asked(PersonId),
    /// It could not be done.
    Failed,
    /// There is nothing to go back to any more.
    Moot,
}

/// Why a message is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HoldWhy {
    /// Somebody asked for it.
    Asked,
    /// The turn before it failed; a person should look first.
    AfterFailure,
    /// It was written for another scope than that of now; a person says where it belongs.
    OtherScope,
}

/// Why a message was refused after it was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RefusedWhy {
    /// The session ended while it waited.
    SessionEnded,
    /// It was held for too long.
    Expired,
    /// Its sender lost the right to say it while it waited.
    NotAllowed,
    /// The session became somebody else's while it waited.
    HandedOver,
}

/// Why a turn is being stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StopWhy {
    /// Somebody asked for it.
    Asked(PersonId),
    /// It took longer than a turn may.
    TimeLimit,
    /// The session is ending.
    Ending,
    /// Whoever said it may no longer.
    Revoked,
    /// The session is somebody else's.
    HandedOver,
}

/// The outcome of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// The agent said that it has finished.
    Answered,
    /// It was stopped.
    Stopped,
    /// We lost it after the message had been handed over. It may have acted; it is never run again by itself.
    Interrupted,
    /// The agent failed.
    Failed(Failure),
    /// It took longer than a turn may.
    TimedOut,
}

/// Why a wish is not granted. An answer, not a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Refusal {
    /// Its subject has gone on: the message no longer waits, the question is no longer open.
    TooLate,
    /// Somebody changed it in between; look again.
    Changed,
    /// The session has ended, or is about to.
    Ended,
    /// The session was opened before.
    AlreadyOpen,
    /// The session was never opened.
    NotOpen,
    /// A turn is under way, or something else that must be over first.
    Busy,
    /// Another change of scope waits already.
    Changing,
    /// It is in a worktree already.
    InWorktree,
    /// It is in no worktree.
    NotInWorktree,
    /// There is no such turn.
    NoSuchTurn,
    /// It belongs to another scope than that of now.
    OtherScope,
    /// Nobody is there who would listen: no agent works on a turn, or it takes no words while it works.
    NotListening,
    /// It is no answer to what was asked.
    Unfit,
    /// Whoever asked for it may not have it done any more.
    NotAllowed,
}

/// All facts of a session, folded together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Session {
    pub(crate) life: Life,
    pub(crate) epoch: Epoch,
    pub(crate) native: Option<Known>,
    pub(crate) queue: Vec<Waiting>,
    pub(crate) work: Work,
    pub(crate) last_turn: Turn,
    pub(crate) crowded: Option<Moment>,
    pub(crate) stale: Vec<(Fence, ReportKind)>,
    /// Of which session it is a fork, until the agent has confirmed a conversation of its own.
    pub(crate) origin: Option<Origin>,
    /// The agent knows nothing of what was said before: another one was there, or its memory did not follow.
    pub(crate) untold: bool,
    pub(crate) pending: Option<Pending>,
    pub(crate) last_errand: u32,
    pub(crate) learned: Vec<(ErrandKind, Epoch)>,
    pub(crate) stale_errands: Vec<(Errand, ErrandKind)>,
}

/// The stage of a session's life.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Life {
    /// Accepted, but the keeper has not seen it yet.
    #[default]
    Unopened,
    /// It takes messages.
    Open(Scope),
    /// It ends when its turn has.
    Ending(Scope),
    /// It is over.
    Ended(EndWhy),
}

/// The agent's own name for this conversation, and the epoch under which it was confirmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// The name.
    pub native: Native,
    /// The epoch.
    pub epoch: Epoch,
    /// True if a turn under it was answered. Before that the agent may not have kept the conversation: some write a new
    /// one down only a while after its first message.
    pub proven: bool,
    /// True if it was begun in the turn under way to be told what was said before. Without an answer nobody knows
    /// whether the agent has taken that in: then the next turn tells it again, in another one.
    pub told: bool,
}

/// A message that has not been started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// The message.
    pub message: MessageId,
    /// The person who said it.
    pub by: PersonId,
    /// The delivery that its sender wanted.
    pub delivery: Delivery,
    /// The epoch of the scope that it was written for.
    pub epoch: Epoch,
    /// The number of times its words were replaced.
    pub revision: u32,
    /// Why it is not started, and until when it is kept.
    pub hold: Option<(HoldWhy, Moment)>,
}

/// The turn that runs, if one does.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Work {
    /// None does.
    #[default]
    Idle,
    /// This one does.
    Busy(Running),
    /// Something else is being done outside, and no turn may start meanwhile.
    Away(Away),
}

/// A turn that is not over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    /// The turn.
    pub turn: Turn,
    /// The message it works on.
    pub message: MessageId,
    /// The person who said that.
    pub by: PersonId,
    /// The stage it has come to.
    pub stage: Stage,
    /// The questions of the agent in it.
    pub approvals: Vec<TurnApproval>,
    /// Messages that were said into it while it ran, in order.
    pub steered: Vec<Waiting>,
    /// Those of them that did not get there and wait again, in order.
    pub missed: Vec<MessageId>,
}

impl Running {
    /// Everything that it works on: what it began with, and what was said into it.
    pub fn messages(&self) -> impl Iterator<Item = MessageId> {
        [self.message].into_iter().chain(self.steered.iter().map(|steered| steered.message))
    }

    /// Those of them that this person has said.
    pub fn said_by(&self, person: PersonId) -> impl Iterator<Item = MessageId> {
        let first = Some(self.message).filter(|_| self.by == person);
        let steered = self.steered.iter().filter(move |steered| steered.by == person);
        first.into_iter().chain(steered.map(|steered| steered.message))
    }
}

/// The stage of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// No process; the next attempt comes then.
    Resting { tried: Attempt, again_at: Moment },
    /// A process may exist; the message has not left us.
    Starting { fence: Fence, until: Moment },
    /// The message has been handed over; it may have acted.
    Working { fence: Fence, until: Moment },
    /// It is being stopped; `handed` says whether it may have acted.
    Stopping { fence: Fence, why: StopWhy, handed: bool },
}

impl Stage {
    /// The attempt that runs, if one does.
    pub fn fence(&self) -> Option<Fence> {
        match self {
            Self::Resting { .. } => None,
            Self::Starting { fence, .. } | Self::Working { fence, .. } | Self::Stopping { fence, .. } => {
                Some(*fence)
            }
        }
    }
}

/// The policy that a session may count on, decided by whoever configures it; values, never constants in the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// The most tries of a turn before the message is handed over.
    pub attempts_max: u16,
    /// The wait after the first failed attempt; each further wait is four times as long …
    pub backoff_ms: u64,
    /// … but never longer than this.
    pub backoff_ms_max: u64,
    /// The longest that a turn may take.
    pub turn_ms_max: u64,
    /// The longest that a held message is kept.
    pub hold_ms_max: u64,
    /// The longest that a question waits for a person.
    pub ask_ms_max: u64,
    /// The wait for a free slot before asking again unprompted.
    pub crowded_ms: u64,
    /// The fate of waiting messages after a failed turn.
    pub after_failure: AfterFailure,
    /// The fate of questions when nobody attends.
    pub unattended: Unattended,
}

/// The fate of an agent's question in a turn that nobody attends. The word of a rule comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unattended {
    /// It is a no at once.
    Deny,
    /// It waits for a person like any other, until its time is over.
    Ask,
}

/// The fate of waiting messages after a failed turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterFailure {
    /// They are held until somebody has looked.
    Hold,
    /// They go on.
    GoOn,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            attempts_max: 4,
            backoff_ms: 250,
            backoff_ms_max: 30_000,
            turn_ms_max: 60 * 60 * 1_000,
            hold_ms_max: 7 * 24 * 60 * 60 * 1_000,
            ask_ms_max: 30 * 60 * 1_000,
            crowded_ms: 10 * 60 * 1_000,
            after_failure: AfterFailure::Hold,
            unattended: Unattended::Deny,
        }
    }
}

/// Under what circumstances something is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Given {
    /// The moment.
    pub now: Moment,
    /// The keeper's term.
    pub term: Term,
    /// The policy that the session may count on.
    pub policy: Policy,
    /// The slot for a turn, as far as the store has said.
    pub slot: Slot,
    /// True if the agent takes words while it works.
    pub can_steer: bool,
    /// True if the agent is known to lose its own conversations: one that it no longer knows is begun anew and told again.
    pub forgets: bool,
}

/// The room for one more awake session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// Nobody has said otherwise.
    Free,
    /// The store refused the claim just now.
    Taken,
    /// Not asked: nothing is started now, and nobody is told why. For steps that are decided together.
    Unasked,
}
