//! The readiness of a session now: one value from one function, for every door.
//!
//! `readiness_parts` says of each part how it is; `readiness` says what follows. What is in the session's state is read from there,
//! the rest is what the engine saw outside (`Seen`). A part that is required waits until its deadline and blocks after it;
//! an advisory one never blocks, and nobody waits for it longer than its deadline. The words for people are made elsewhere.

use crate::Moment;
use crate::approval::TurnApproval;
use crate::scope::{Change, ErrandKind};
use crate::session::*;
use alloc::vec::Vec;

/// The readiness of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// The next message is started as soon as it is its turn.
    Ready,
    /// It goes on by itself, or when somebody answers.
    Waiting {
        /// The parts it waits for.
        parts: Vec<ReadinessPart>,
    },
    /// Somebody has to do something.
    Blocked {
        /// The parts that are in the way.
        parts: Vec<ReadinessPart>,
    },
}

/// One part of readiness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadinessPart {
    /// The name of the part.
    pub name: PartName,
    /// Its state.
    pub state: PartState,
    /// Why it is not fine.
    pub why: Option<PartWhy>,
    /// The remedy.
    pub remedy: Option<Remedy>,
    /// Since when, where that is known.
    pub since: Option<Moment>,
    /// Until when at most.
    pub until: Option<Moment>,
    /// True if nothing depends on it in the end.
    pub advisory: bool,
}

/// The parts of readiness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum PartName {
    Directory,
    Agent,
    Commands,
    Model,
    Lease,
    Queue,
    Approvals,
    Quota,
}

/// The state of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PartState {
    /// As it should be.
    Fine,
    /// Not as it should be, and nobody waits for it.
    Overlooked,
    /// It will be known or over by its deadline.
    Waiting,
    /// It stays so until somebody does something.
    Blocked,
}

/// Why a part is not fine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PartWhy {
    /// It is being looked at.
    Unknown,
    /// It was looked at for too long.
    TimedOut,
    /// It was seen to be so.
    Bad(Trouble),
    /// Everything that waits is held, the first for this reason.
    Held(HoldWhy),
    /// The agent asks something.
    Asked,
    /// The scope is about to change.
    Changing,
    /// Something is being done outside that no turn may run beside.
    Errand,
    /// There is no free slot, or somebody else works in the directory.
    Crowded,
    /// The session is over, or about to be.
    Ended,
}

/// The troubles that the engine can have seen outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trouble {
    /// It is not there.
    Missing,
    /// It leads elsewhere by now.
    Elsewhere,
    /// It is there, but may not be used.
    NotAllowed,
    /// It is there, but does not work.
    Broken,
    /// Nobody is signed in.
    SignedOut,
    /// It has failed again and again, each time with the same words.
    Failing,
    /// Somebody else has it.
    Taken,
    /// There is no room.
    Full,
}

/// The remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Remedy {
    /// Nothing; it passes.
    Wait,
    /// Name another directory, or put it back.
    Relink,
    /// Mend the agent's program, or choose another agent.
    MendAgent,
    /// Sign in to the agent.
    SignIn,
    /// Read why it fails, and mend that, or go on in another session.
    ReadFailure,
    /// Choose another model, or none.
    ChooseModel,
    /// Release or withdraw what is held.
    Release,
    /// Say of each held message whether it goes here, there or nowhere.
    Place,
    /// Answer the question.
    Answer,
    /// Give the change up if it takes too long.
    KeepScope,
    /// End other sessions, or raise the limit.
    MakeRoom,
    /// Look at the server: it does not get to this session.
    MendServer,
    /// Begin another session.
    BeginAnew,
}

/// The look at something outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Look {
    /// It is as it should be.
    Fine,
    /// Nobody knows yet.
    Unknown {
        /// Since when it is looked at.
        since: Moment,
        /// Until when one waits for that.
        until: Moment,
    },
    /// It is not.
    Bad {
        /// In which way.
        why: Trouble,
    },
}

/// The looks of the engine outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// The directory of the scope.
    pub directory: Look,
    /// The agent's program, its sign-in included.
    pub agent: Look,
    /// The agent's list of commands.
    pub commands: Look,
    /// The model, if one was chosen.
    pub model: Look,
    /// The lease: whether a keeper has the session, or could.
    pub lease: Look,
    /// Limits that are not the session's own.
    pub quota: Look,
    /// True if the message that would be started next is a command of the agent.
    pub is_slash: bool,
}

/// Can this session go on now?
pub fn readiness(session: &Session, seen: &Seen, now: Moment) -> Readiness {
    let parts = readiness_parts(session, seen, now);
    let those = |state| parts.iter().filter(|part| part.state == state).copied().collect::<Vec<_>>();
    let any = |state| parts.iter().any(|part| part.state == state);
    if any(PartState::Blocked) {
        Readiness::Blocked { parts: those(PartState::Blocked) }
    } else if any(PartState::Waiting) {
        Readiness::Waiting { parts: those(PartState::Waiting) }
    } else {
        Readiness::Ready
    }
}

/// The state of each part, the fine ones included.
pub fn readiness_parts(session: &Session, seen: &Seen, now: Moment) -> [ReadinessPart; 8] {
    use PartName::{Agent, Lease, Queue};
    if let Life::Ending(_) | Life::Ended(_) = session.life {
        return PartName::ALL.map(|name| match name {
            Queue => ReadinessPart::fine(Queue).blocked(PartWhy::Ended, Remedy::BeginAnew),
            _ => ReadinessPart::fine(name),
        });
    }
    [
        directory(session, seen, now),
        ReadinessPart::required(Agent, seen.agent, now),
        commands(session, seen, now),
        model(session, seen, now),
        ReadinessPart::required(Lease, seen.lease, now),
        queue(session, now),
        approvals(session, now),
        quota(session, seen, now),
    ]
}

/// A change that leads elsewhere is the remedy itself.
fn directory(session: &Session, seen: &Seen, now: Moment) -> ReadinessPart {
    let part = ReadinessPart::required(PartName::Directory, seen.directory, now);
    let leaves = session.pending.as_ref().is_some_and(|pending| match pending.change {
        Change::Exit | Change::Relink { .. } | Change::Back { .. } => true,
        Change::Enter(_) | Change::Set { .. } => false,
    });
    match (&session.work, &session.pending) {
        _ if part.state == PartState::Blocked && !leaves => part,
        (Work::Away(_), _) => ReadinessPart::fine(part.name).waiting(PartWhy::Errand, Remedy::Wait, None),
        (Work::Idle | Work::Busy(_), Some(_)) => {
            ReadinessPart::fine(part.name).waiting(PartWhy::Changing, Remedy::KeepScope, None)
        }
        (Work::Idle | Work::Busy(_), None) => part,
    }
}

/// Only a command of the agent waits for the list of them, and not for ever.
fn commands(session: &Session, seen: &Seen, now: Moment) -> ReadinessPart {
    let part = ReadinessPart { advisory: true, ..ReadinessPart::fine(PartName::Commands) };
    match seen.commands {
        _ if session.has_learned(ErrandKind::Commands) => part,
        Look::Fine => part,
        Look::Unknown { since, until } if seen.is_slash && now < until => {
            ReadinessPart { since: Some(since), ..part.waiting(PartWhy::Unknown, Remedy::Wait, Some(until)) }
        }
        Look::Unknown { since, until } => {
            let why = if now < until { PartWhy::Unknown } else { PartWhy::TimedOut };
            ReadinessPart { since: Some(since), until: Some(until), ..part.overlooked(why) }
        }
        Look::Bad { why } => part.overlooked(PartWhy::Bad(why)),
    }
}

/// Nobody waits for a model that nobody chose.
fn model(session: &Session, seen: &Seen, now: Moment) -> ReadinessPart {
    let chosen = session.scope().is_some_and(|scope| scope.model.is_some());
    match chosen {
        true => ReadinessPart::required(PartName::Model, seen.model, now),
        false => ReadinessPart::fine(PartName::Model),
    }
}

/// A message that is held past its time is about to be refused, and is in nobody's way.
fn queue(session: &Session, now: Moment) -> ReadinessPart {
    let part = ReadinessPart::fine(PartName::Queue);
    let mut held = session.queue.iter().filter_map(|waiting| waiting.hold).filter(|(_, until)| *until > now);
    match (session.first_startable(), held.next()) {
        (Some(_), _) | (None, None) => part,
        (None, Some((why, until))) => {
            let until = held.map(|(_, until)| until).fold(until, Moment::min);
            let remedy = match why {
                HoldWhy::Asked | HoldWhy::AfterFailure => Remedy::Release,
                HoldWhy::OtherScope => Remedy::Place,
            };
            ReadinessPart { until: Some(until), ..part.blocked(PartWhy::Held(why), remedy) }
        }
    }
}

/// A question whose time is over is a no.
fn approvals(session: &Session, now: Moment) -> ReadinessPart {
    let part = ReadinessPart::fine(PartName::Approvals);
    let asks = session.running().map_or(&[][..], |running| &running.approvals);
    let open = asks.iter().filter_map(|ask| match ask {
        TurnApproval::Open { until, .. } if *until > now => Some(*until),
        TurnApproval::Open { .. } | TurnApproval::Answered { .. } | TurnApproval::Lapsed { .. } => None,
    });
    match open.min() {
        Some(until) => part.waiting(PartWhy::Asked, Remedy::Answer, Some(until)),
        None => part,
    }
}

/// A slot is asked for again when its time has come, so that waiting for one has an end each time.
fn quota(session: &Session, seen: &Seen, now: Moment) -> ReadinessPart {
    let part = ReadinessPart::required(PartName::Quota, seen.quota, now);
    let crowded = session.crowded.filter(|until| *until > now);
    match (crowded, session.first_startable(), &session.work) {
        _ if part.state == PartState::Blocked => part,
        (Some(until), Some(_), Work::Idle) => {
            ReadinessPart::fine(part.name).waiting(PartWhy::Crowded, Remedy::MakeRoom, Some(until))
        }
        _ => part,
    }
}

impl ReadinessPart {
    const fn fine(name: PartName) -> Self {
        let (why, remedy, since, until) = (None, None, None, None);
        Self { name, state: PartState::Fine, why, remedy, since, until, advisory: false }
    }

    /// A part that one cannot do without: unknown for too long is as bad as bad.
    fn required(name: PartName, look: Look, now: Moment) -> Self {
        let part = Self::fine(name);
        match look {
            Look::Fine => part,
            Look::Unknown { since, until } if now < until => {
                Self { since: Some(since), ..part.waiting(PartWhy::Unknown, Remedy::Wait, Some(until)) }
            }
            Look::Unknown { since, until } => {
                let blocked = part.blocked(PartWhy::TimedOut, name.remedy());
                Self { since: Some(since), until: Some(until), ..blocked }
            }
            Look::Bad { why: Trouble::SignedOut } => {
                part.blocked(PartWhy::Bad(Trouble::SignedOut), Remedy::SignIn)
            }
            Look::Bad { why: Trouble::Failing } => {
                part.blocked(PartWhy::Bad(Trouble::Failing), Remedy::ReadFailure)
            }
            Look::Bad { why } => part.blocked(PartWhy::Bad(why), name.remedy()),
        }
    }

    const fn waiting(self, why: PartWhy, remedy: Remedy, until: Option<Moment>) -> Self {
        Self { state: PartState::Waiting, why: Some(why), remedy: Some(remedy), until, ..self }
    }

    const fn blocked(self, why: PartWhy, remedy: Remedy) -> Self {
        Self { state: PartState::Blocked, why: Some(why), remedy: Some(remedy), ..self }
    }

    const fn overlooked(self, why: PartWhy) -> Self {
        Self { state: PartState::Overlooked, why: Some(why), ..self }
    }
}

impl PartName {
    /// Every part there is.
    pub const ALL: [Self; 8] = [
        Self::Directory,
        Self::Agent,
        Self::Commands,
        Self::Model,
        Self::Lease,
        Self::Queue,
        Self::Approvals,
        Self::Quota,
    ];

    /// The word for it, for stores and doors.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Directory => "directory",
            Self::Agent => "agent",
            Self::Commands => "commands",
            Self::Model => "model",
            Self::Lease => "lease",
            Self::Queue => "queue",
            Self::Approvals => "approvals",
            Self::Quota => "quota",
        }
    }

    /// The remedy when it is bad.
    const fn remedy(self) -> Remedy {
        match self {
            Self::Directory => Remedy::Relink,
            Self::Agent | Self::Commands => Remedy::MendAgent,
            Self::Model => Remedy::ChooseModel,
            Self::Lease => Remedy::MendServer,
            Self::Queue => Remedy::Release,
            Self::Approvals => Remedy::Answer,
            Self::Quota => Remedy::MakeRoom,
        }
    }
}

impl PartState {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::Overlooked => "overlooked",
            Self::Waiting => "waiting",
            Self::Blocked => "blocked",
        }
    }
}

impl PartWhy {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::TimedOut => "timed_out",
            Self::Bad(trouble) => trouble.word(),
            Self::Held(HoldWhy::Asked) => "held_asked",
            Self::Held(HoldWhy::AfterFailure) => "held_after_failure",
            Self::Held(HoldWhy::OtherScope) => "held_other_scope",
            Self::Asked => "asked",
            Self::Changing => "changing",
            Self::Errand => "errand",
            Self::Crowded => "crowded",
            Self::Ended => "ended",
        }
    }
}

impl Trouble {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Elsewhere => "elsewhere",
            Self::NotAllowed => "not_allowed",
            Self::Broken => "broken",
            Self::SignedOut => "signed_out",
            Self::Failing => "failing",
            Self::Taken => "taken",
            Self::Full => "full",
        }
    }
}

impl Remedy {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Wait => "wait",
            Self::Relink => "relink",
            Self::MendAgent => "mend_agent",
            Self::SignIn => "sign_in",
            Self::ReadFailure => "read_failure",
            Self::ChooseModel => "choose_model",
            Self::Release => "release",
            Self::Place => "place",
            Self::Answer => "answer",
            Self::KeepScope => "keep_scope",
            Self::MakeRoom => "make_room",
            Self::MendServer => "mend_server",
            Self::BeginAnew => "begin_anew",
        }
    }
}
