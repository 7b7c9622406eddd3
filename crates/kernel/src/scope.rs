//! Where and how a session acts, how that changes, and what is asked of the outside on the way.
//!
//! Each change of scope has the next epoch. An `Errand` is something asked of the outside that is no turn; it carries the
//! epoch under which it was asked, and what it brings back counts only under that one: going A, B, A revives nothing.

use crate::decide::held;
use crate::session::*;
use crate::worktree::{Chore, NewWorktree};
use crate::{Epoch, GroundPath, MessageId, PersonId, SessionId, Turn};
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

/// Stale returns remembered, so that each is recorded once. Older ones are not recorded at all.
pub(crate) const STALE_ERRANDS_MAX: usize = 32;

type Facts = Vec<Fact>;

/// Where and how a session acts now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// The directory the agent works in, absolute.
    pub directory: GroundPath,
    /// The agent's name in the configuration.
    pub agent: String,
    /// The model, where one was chosen.
    pub model: Option<String>,
    /// The agent's mode, where one was chosen.
    pub mode: Option<String>,
    /// The worktree that the directory is in, if the session has entered one.
    pub worktree: Option<Worktree>,
}

impl Scope {
    /// The directory that it acts in outside of any worktree.
    pub fn home(&self) -> &GroundPath {
        self.worktree.as_ref().map_or(&self.directory, |worktree| &worktree.home)
    }
}

/// A git worktree that a session has entered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worktree {
    /// Its name.
    pub name: String,
    /// The directory that the session goes back to when it leaves.
    pub home: GroundPath,
    /// The branch that it was on when it was entered, for people; none if it was entered before that was written down.
    pub branch: Option<String>,
}

/// A wish for another scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Go into a worktree. It is made outside, so this takes an errand.
    Enter(NewWorktree),
    /// Leave the worktree for the directory that it was entered from.
    Exit,
    /// Another agent, model or mode. Another agent begins with its own model and mode.
    Set { agent: Option<String>, model: Setting, mode: Setting },
    /// Another directory, because the one there was has moved or is gone.
    Relink { directory: GroundPath },
    /// Back into the scope that a held message was written for; then it may be started.
    Back { scope: Scope, message: MessageId },
}

/// The new value of a model or a mode.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Setting {
    /// It stays.
    #[default]
    Keep,
    /// The agent's own.
    Default,
    /// This one.
    To(String),
}

impl Setting {
    fn over(&self, current: Option<String>) -> Option<String> {
        match self {
            Self::Keep => current,
            Self::Default => None,
            Self::To(name) => Some(name.clone()),
        }
    }
}

/// A change of scope that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    /// The change.
    pub change: Change,
    /// The message that would have been started next when it was asked: it still has its turn in the old scope.
    pub after: Option<MessageId>,
    /// The person who wants it.
    pub by: PersonId,
    /// The session was made for it: what was said meanwhile was meant for there.
    pub from_start: bool,
}

impl Pending {
    pub(crate) fn from_start(worktree: NewWorktree) -> Self {
        Self { change: Change::Enter(worktree), after: None, by: PersonId::ENGINE, from_start: true }
    }
}

/// Something asked of the outside that is no turn. Its number is its session's own; 0 is what an attempt brings along.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Errand {
    /// The epoch under which it was asked.
    pub epoch: Epoch,
    /// Its place among the errands of its session; the first is 1.
    pub number: u32,
}

/// The work of an errand that no turn may run beside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// Makes a worktree, or finds it made.
    Enter(NewWorktree),
    /// Puts back what a turn has changed.
    Undo {
        /// The turn.
        turn: Turn,
        /// The files that are meant.
        files: UndoFiles,
    },
    /// Takes the last undo of a turn back.
    Redo {
        /// The turn.
        turn: Turn,
    },
}

/// The files of a turn that an undo is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum UndoFiles {
    /// Those of which the agent itself has said that it changed them; if there are others, none.
    #[default]
    Certain,
    /// All at which the tree before the turn and the one after it differ.
    All,
    /// These, from the top of the tree.
    Only(Vec<String>),
}

/// An errand that is under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Away {
    /// The number of the errand.
    pub errand: Errand,
    /// Its work.
    pub what: What,
    /// The person who wanted it.
    pub by: PersonId,
}

/// The kinds of what is asked of the outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum ErrandKind {
    Enter,
    Undo,
    Redo,
    Commands,
    Models,
    Files,
    Diff,
}

impl ErrandKind {
    /// Every kind there is, for tables and tests.
    pub const ALL: [Self; 7] =
        [Self::Enter, Self::Undo, Self::Redo, Self::Commands, Self::Models, Self::Files, Self::Diff];
}

/// The result of an errand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Return {
    /// The worktree is there.
    Entered {
        /// Where the session acts in it.
        directory: GroundPath,
        /// Where it goes back to.
        home: GroundPath,
        /// The branch that the worktree is on.
        branch: Option<String>,
    },
    /// Everything the turn had changed is as it was.
    Undone,
    /// Everything is as it was before the undo.
    Redone,
    /// It could not be done; the story says why.
    Failed(ErrandKind),
    /// Something was looked up; whoever asked has it. Only the agent's lists are remembered.
    Seen(ErrandKind),
}

impl Return {
    /// Its kind, for counting what is stale.
    pub fn kind(&self) -> ErrandKind {
        match self {
            Self::Entered { .. } => ErrandKind::Enter,
            Self::Undone => ErrandKind::Undo,
            Self::Redone => ErrandKind::Redo,
            Self::Failed(kind) | Self::Seen(kind) => *kind,
        }
    }
}

/// Of which session, and after which of its turns, a session is a fork.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// The session.
    pub session: SessionId,
    /// The last turn that both have.
    pub turn: Turn,
}

impl Scope {
    /// Where an ended session is.
    pub(crate) const fn nowhere() -> Self {
        Self {
            directory: GroundPath::nowhere(),
            agent: String::new(),
            model: None,
            mode: None,
            worktree: None,
        }
    }

    /// The scope after a change that takes nothing outside; none if there is nothing to leave.
    fn after(&self, change: &Change) -> Option<Self> {
        match change {
            Change::Enter(_) => None,
            Change::Exit => {
                let directory = self.worktree.as_ref()?.home.clone();
                Some(Self { directory, worktree: None, ..self.clone() })
            }
            Change::Set { agent, model, mode } => {
                let other = agent.as_ref().is_some_and(|agent| *agent != self.agent);
                let kept = |current: &Option<String>| current.clone().filter(|_| !other);
                Some(Self {
                    agent: agent.clone().unwrap_or_else(|| self.agent.clone()),
                    model: model.over(kept(&self.model)),
                    mode: mode.over(kept(&self.mode)),
                    ..self.clone()
                })
            }
            Change::Relink { directory } => {
                Some(Self { directory: directory.clone(), worktree: None, ..self.clone() })
            }
            Change::Back { scope, .. } => Some(scope.clone()),
        }
    }
}

impl Session {
    /// A change happens only between turns: it waits for the one under way, and for the message that would be next.
    pub(crate) fn change(&self, change: Change, now: bool, by: PersonId) -> Result<Facts, Refusal> {
        self.takes_changes()?;
        let (Some(scope), None) = (self.scope(), &self.pending) else { return Err(Refusal::Changing) };
        match (&change, &scope.worktree) {
            (Change::Enter(_), Some(_)) => return Err(Refusal::InWorktree),
            (Change::Exit, None) => return Err(Refusal::NotInWorktree),
            (Change::Enter(_) | Change::Exit | Change::Set { .. }, _)
            | (Change::Relink { .. } | Change::Back { .. }, _) => {}
        }
        let after = match self.work {
            Work::Idle => self.first_startable(),
            Work::Busy(_) | Work::Away(_) => None,
        };
        if now && (after.is_some() || !matches!(self.work, Work::Idle)) {
            return Err(Refusal::Busy);
        }
        if scope.after(&change).as_ref() == Some(scope) {
            return Ok(vec![]); // It is so already.
        }
        Ok(vec![Fact::ChangeAsked { change, after, by }])
    }

    pub(crate) fn keep_scope(&self, by: PersonId) -> Result<Facts, Refusal> {
        let begun = self.away().is_some_and(|away| matches!(away.what, What::Enter(_)));
        match self.pending {
            Some(_) if !begun => Ok(vec![Fact::ScopeKept { why: KeptWhy::Asked(by) }]),
            Some(_) | None => Err(Refusal::TooLate),
        }
    }

    /// An undo, or one that is taken back. If it does not say under which epoch, it is of none.
    pub(crate) fn put_back(
        &self,
        what: What,
        turn: Turn,
        under: Option<Epoch>,
        by: PersonId,
        given: &Given,
    ) -> Result<Facts, Refusal> {
        self.takes_changes()?;
        if turn == Turn(0) || turn > self.last_turn {
            return Err(Refusal::NoSuchTurn);
        }
        if under != Some(self.epoch) {
            return Err(Refusal::OtherScope);
        }
        let free = given.slot != Slot::Taken; // Else somebody else's turn works in this directory.
        match (&self.work, &self.pending, self.first_startable()) {
            (Work::Idle, None, None) if free => Ok(vec![self.errand(what, by)]),
            (Work::Idle | Work::Busy(_) | Work::Away(_), _, _) => Err(Refusal::Busy),
        }
    }

    /// Checks that nothing of the session is in the way of a chore. Whatever waits for its turn waits until it is over.
    pub(crate) fn holds_still_for(&self, chore: &Chore) -> Result<(), Refusal> {
        if !matches!(self.work, Work::Idle) {
            return Err(Refusal::Busy);
        }
        if self.pending.is_some() {
            return Err(Refusal::Changing);
        }
        let inside = self.scope().and_then(|scope| scope.worktree.as_ref());
        match chore {
            Chore::Remove { name, .. } if inside.is_some_and(|inside| inside.name == *name) => {
                Err(Refusal::InWorktree)
            }
            // Only one that is not there is given back: a session that is in it can go on then.
            Chore::Remove { .. } | Chore::Restore { .. } | Chore::Merge { .. } | Chore::EndBackground => {
                Ok(())
            }
        }
    }

    /// The facts about a change that waits, now that something has happened.
    pub(crate) fn next_change(&self, given: &Given) -> Facts {
        let (Some(pending), Work::Idle, Life::Open(scope)) = (&self.pending, &self.work, &self.life) else {
            return vec![];
        };
        if pending
            .after
            .is_some_and(|message| self.queue.iter().any(|w| w.message == message && w.is_startable()))
        {
            return vec![];
        }
        match (&pending.change, scope.after(&pending.change)) {
            (Change::Enter(worktree), _) => vec![self.errand(What::Enter(worktree.clone()), pending.by)],
            (_, None) => vec![Fact::ScopeKept { why: KeptWhy::Moot }],
            (Change::Back { message, .. }, Some(_)) if !self.is_held(*message) => {
                vec![Fact::ScopeKept { why: KeptWhy::Moot }]
            }
            (Change::Back { message, .. }, Some(scope)) => {
                let mut facts = self.changed(scope, given);
                facts.push(Fact::Released { message: *message, epoch: self.epoch.next() });
                facts
            }
            (Change::Exit | Change::Set { .. } | Change::Relink { .. }, Some(scope)) => {
                self.changed(scope, given)
            }
        }
    }

    fn is_held(&self, message: MessageId) -> bool {
        self.queue.iter().any(|waiting| waiting.message == message && waiting.hold.is_some())
    }

    /// The change, and the hold of everything that was written for the scope before, are one append. When something is
    /// held already, its epoch says for which scope it was written.
    fn changed(&self, scope: Scope, given: &Given) -> Facts {
        let epoch = self.epoch.next();
        let along = self.pending.as_ref().is_some_and(|pending| pending.from_start);
        let startable = self.queue.iter().filter(|waiting| waiting.is_startable());
        let moved = startable.map(|waiting| match along {
            true => Fact::Released { message: waiting.message, epoch },
            false => held(waiting.message, HoldWhy::OtherScope, given),
        });
        [Fact::ScopeChanged { epoch, scope }].into_iter().chain(moved).collect()
    }

    fn errand(&self, what: What, by: PersonId) -> Fact {
        let errand = Errand { epoch: self.epoch, number: self.last_errand + 1 };
        Fact::ErrandStarted { errand, what, by }
    }

    /// Only what is under way, or was asked for under the epoch of now, counts. Anything else is recorded once.
    pub(crate) fn returned(&self, errand: Errand, came: Return, given: &Given) -> Facts {
        let kind = came.kind();
        match (&self.work, came) {
            (Work::Away(away), Return::Entered { directory, home, branch })
                if away.is(errand, ErrandKind::Enter) =>
            {
                self.entered(away, directory, (home, branch), given)
            }
            (Work::Away(away), Return::Undone) if away.is(errand, ErrandKind::Undo) => {
                let What::Undo { turn, .. } = away.what else { return vec![] };
                self.and_over(vec![Fact::Undone { turn }])
            }
            (Work::Away(away), Return::Redone) if away.is(errand, ErrandKind::Redo) => {
                let What::Redo { turn } = away.what else { return vec![] };
                self.and_over(vec![Fact::Redone { turn }])
            }
            (Work::Away(away), Return::Failed(kind)) if away.is(errand, kind) => {
                let mut facts = vec![Fact::ErrandFailed { errand }];
                if self.pending.is_some() && kind == ErrandKind::Enter {
                    facts.push(Fact::ScopeKept { why: KeptWhy::Failed });
                    // What was said since was said by somebody who counted on it.
                    if let Life::Open(_) = self.life {
                        facts.extend(self.all_held(HoldWhy::AfterFailure, given));
                    }
                }
                self.and_over(facts)
            }
            (_, Return::Seen(kind)) if errand.epoch == self.epoch && !kind.is_exclusive() => {
                self.learn_of(kind)
            }
            (_, Return::Failed(kind)) if errand.epoch == self.epoch && !kind.is_exclusive() => vec![],
            (_, Return::Entered { .. } | Return::Undone | Return::Redone)
            | (_, Return::Failed(_) | Return::Seen(_)) => self.stale_errand(errand, kind),
        }
    }

    fn entered(
        &self,
        away: &Away,
        directory: GroundPath,
        (home, branch): (GroundPath, Option<String>),
        given: &Given,
    ) -> Facts {
        let (What::Enter(worktree), Some(scope)) = (&away.what, self.scope()) else { return vec![] };
        let worktree = Some(Worktree { name: worktree.name.clone(), home, branch });
        let scope = Scope { directory, worktree, ..scope.clone() };
        match self.life {
            Life::Open(_) => self.changed(scope, given),
            // It is not needed any more; the session is over without it.
            Life::Unopened | Life::Ending(_) | Life::Ended(_) => {
                self.and_over(vec![Fact::ErrandFailed { errand: away.errand }])
            }
        }
    }

    /// An errand is over: a session that is to end ends with it.
    fn and_over(&self, mut facts: Facts) -> Facts {
        if let Life::Ending(_) = self.life {
            facts.extend(self.over(crate::EndWhy::Asked));
        }
        facts
    }

    fn learn_of(&self, kind: ErrandKind) -> Facts {
        match (kind, self.scope()) {
            (ErrandKind::Commands | ErrandKind::Models, Some(_)) if !self.has_learned(kind) => {
                vec![Fact::Learned { kind, epoch: self.epoch }]
            }
            _ => vec![],
        }
    }

    fn stale_errand(&self, errand: Errand, kind: ErrandKind) -> Facts {
        let known = self.stale_errands.contains(&(errand, kind));
        let forgotten = self.stale_errands.len() >= STALE_ERRANDS_MAX
            && self.stale_errands.first().is_some_and(|oldest| (errand, kind) < *oldest);
        if known || forgotten { vec![] } else { vec![Fact::StaleErrand { errand, kind }] }
    }

    /// True if the agent's list of this kind is known for the scope of now.
    pub fn has_learned(&self, kind: ErrandKind) -> bool {
        self.learned.contains(&(kind, self.epoch))
    }

    /// The change of scope that waits, or is being made.
    pub fn pending(&self) -> Option<&Pending> {
        self.pending.as_ref()
    }

    /// The errand under way.
    pub fn away(&self) -> Option<&Away> {
        match &self.work {
            Work::Away(away) => Some(away),
            Work::Idle | Work::Busy(_) => None,
        }
    }

    pub(crate) fn first_startable(&self) -> Option<MessageId> {
        self.queue.iter().find(|waiting| waiting.is_startable()).map(|waiting| waiting.message)
    }
}

impl Away {
    fn is(&self, errand: Errand, kind: ErrandKind) -> bool {
        let own = match self.what {
            What::Enter(_) => ErrandKind::Enter,
            What::Undo { .. } => ErrandKind::Undo,
            What::Redo { .. } => ErrandKind::Redo,
        };
        self.errand == errand && own == kind
    }
}

impl ErrandKind {
    /// True if no turn may run beside it.
    pub const fn is_exclusive(self) -> bool {
        matches!(self, Self::Enter | Self::Undo | Self::Redo)
    }
}

impl Waiting {
    /// True if it may be started as far as it itself is concerned.
    pub fn is_startable(&self) -> bool {
        self.hold.is_none()
    }
}
