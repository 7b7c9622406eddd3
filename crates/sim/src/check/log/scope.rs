//! Where and how the session acts, as its log tells it: epochs, changes that wait, errands, and what was said into turns.
//!
//! The laws: a scope changes between turns, by the next epoch, only because somebody asked for that change; no turn and no
//! exclusive errand run at the same time; what was written for another scope is never started by itself; what comes back
//! for another scope changes nothing and is recorded once.

use super::{Life, LogReader, Name, Waits};
use kernel::*;
use store::Cause;

/// A change of scope on its way.
#[derive(Debug, Default)]
pub(super) struct Moving {
    pub(super) pending: Option<Pending>,
    pub(super) away: Option<(Errand, What)>,
    last_errand: u32,
    /// The change that just happened was there from the start: what waits comes along.
    pub(super) takes_along: bool,
    /// The message for which the scope just went back.
    back_for: Option<MessageId>,
}

impl Moving {
    pub(super) fn has_released(&self, message: MessageId) -> bool {
        self.takes_along || self.back_for == Some(message)
    }
}

impl LogReader<'_> {
    pub(super) fn open(&mut self, scope: &Scope, origin: Option<Origin>, enter: Option<&NewWorktree>) {
        self.told.scopes.push(scope.clone());
        self.told.origin = origin;
        let (after, by, from_start) = (None, PersonId::ENGINE, true);
        let change = enter.cloned().map(Change::Enter);
        self.told.pending = change.clone();
        self.moving.pending = change.map(|change| Pending { change, after, by, from_start });
    }

    pub(super) fn epoch(&self) -> Epoch {
        Epoch((self.told.scopes.len().max(1) - 1) as u32)
    }

    fn scope(&self) -> Option<&Scope> {
        self.told.scopes.last()
    }

    /// The story of an errand belongs to no turn, or to the one that it undoes.
    pub(super) fn tells_of_errand(&self, turn: Turn) -> bool {
        let undoes =
            matches!(&self.moving.away, Some((_, What::Undo { turn: undone, .. })) if *undone == turn);
        turn == Turn(0) || undoes
    }

    /// It has not happened here: no agent has this name.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.scope().is_some_and(|scope| scope.agent.is_empty())
    }

    pub(super) fn may_interrupt(&self, cause: Cause) -> bool {
        match cause {
            Cause::Message(message) => self
                .queue
                .iter()
                .any(|waits| waits.message == message && waits.delivery == Delivery::Interrupt),
            _ => true,
        }
    }

    /// A turn starts, or words go into one: for the scope of now, and while nothing is away.
    pub(super) fn may_act(&mut self, written_for: Option<Epoch>, fact: &Fact) {
        let fits = written_for == Some(self.epoch());
        self.must(fits, "what was written for another scope is not started by itself", fact);
        self.must(self.moving.away.is_none(), "no turn runs beside an errand", fact);
    }

    pub(super) fn steer(&mut self, message: MessageId, turn: Turn, fact: &Fact) {
        let waits = self.queue.iter().find(|waits| waits.message == message).copied();
        let is_asked = |request: &Request| matches!(request, Request::Steer { message: m } if *m == message);
        let wanted = |waits: Waits| waits.delivery == Delivery::Steer || self.requests.values().any(is_asked);
        let fits = waits.is_some_and(|waits| !waits.held && wanted(waits));
        self.must(fits, "only what is to be said into a turn is", fact);
        self.may_act(waits.map(|waits| waits.epoch), fact);
        self.queue.retain(|waits| waits.message != message);
        let told = self.running(turn).filter(|told| told.handed.is_some() && told.stop.is_none());
        let taken = told.map(|told| told.steered.push(message));
        self.must(taken.is_some(), "words go only into a turn that works", fact);
    }

    pub(super) fn miss(&mut self, message: MessageId, fact: &Fact) {
        let is_busy = self.is_busy;
        let told = self.told.turns.last_mut().filter(|_| is_busy);
        let at = told.as_ref().and_then(|told| told.steered.iter().position(|m| *m == message));
        if let (Some(told), Some(at)) = (told, at) {
            told.steered.remove(at);
        }
        self.must(at.is_some(), "only what was said into the running turn can miss it", fact);
        let (epoch, delivery) = (self.epoch(), Delivery::Steer);
        self.queue.insert(0, Waits { message, held: false, revision: 0, epoch, delivery });
    }

    pub(super) fn note_hold(&mut self, fact: &Fact) {
        match fact {
            Fact::Held { why: HoldWhy::OtherScope, .. } => self.told.held_for_scope += 1,
            Fact::Released { epoch, .. } => {
                self.must(*epoch == self.epoch(), "what is released belongs to the scope of now", fact);
            }
            _ => {}
        }
    }

    pub(super) fn scope_fact(&mut self, fact: &Fact) {
        match fact {
            Fact::ChangeAsked { change, after, by } => self.change_asked(change, *after, *by, fact),
            Fact::ScopeKept { .. } => {
                let waited = self.moving.pending.take().is_some();
                self.told.pending = None;
                self.must(waited, "only a change that waits is given up", fact);
            }
            Fact::ScopeChanged { epoch, scope } => self.changed(*epoch, scope, fact),
            Fact::ErrandStarted { errand, what, .. } => self.set_out(*errand, what, fact),
            Fact::ErrandFailed { errand } => {
                let away = self.moving.away.take();
                self.must(away.is_some_and(|(own, _)| own == *errand), "only what is away comes back", fact);
            }
            Fact::Undone { turn } => {
                let away = self.moving.away.take();
                let fits = matches!(away, Some((_, What::Undo { turn: own, .. })) if own == *turn);
                self.must(fits, "only what is away comes back", fact);
                self.told.undone.insert(*turn, true);
            }
            Fact::Redone { turn } => {
                let away = self.moving.away.take();
                let fits = matches!(away, Some((_, What::Redo { turn: own })) if own == *turn);
                self.must(fits, "only what is away comes back", fact);
                self.told.undone.remove(turn);
            }
            Fact::Learned { epoch, .. } => {
                self.must(*epoch == self.epoch(), "what belongs to another scope is not applied", fact);
            }
            Fact::StaleErrand { errand, kind } => {
                let new = self.told.stale_errands.insert((*errand, *kind));
                self.must(new, "a stale errand is recorded once", fact);
                let exclusive = kind.is_exclusive();
                let fresh = match &self.moving.away {
                    Some((own, _)) if exclusive => own == errand,
                    _ => !exclusive && errand.epoch == self.epoch(),
                };
                self.must(!fresh, "only what is stale is called so", fact);
            }
            _ => {}
        }
    }

    fn change_asked(&mut self, change: &Change, after: Option<MessageId>, by: PersonId, fact: &Fact) {
        self.must(self.life == Life::Open, "only an open session changes its scope", fact);
        self.must(self.moving.pending.is_none(), "one change of scope at a time", fact);
        let next = self.queue.iter().find(|waits| !waits.held).map(|waits| waits.message);
        let idle = !self.is_busy && self.moving.away.is_none();
        self.must(after == next.filter(|_| idle), "a change waits for what would be started next", fact);
        let in_worktree = self.scope().is_some_and(|scope| scope.worktree.is_some());
        let fits = match change {
            Change::Enter(_) => !in_worktree,
            Change::Exit => in_worktree,
            Change::Back { scope, message } => {
                self.told.scopes.contains(scope) && self.queue.iter().any(|w| w.message == *message && w.held)
            }
            Change::Set { .. } | Change::Relink { .. } => true,
        };
        self.must(fits, "only what can be is asked for", fact);
        self.told.pending = Some(change.clone());
        self.moving.pending = Some(Pending { change: change.clone(), after, by, from_start: false });
    }

    fn lets_go_first(&mut self, after: Option<MessageId>, fact: &Fact) {
        let waits = |message| self.queue.iter().any(|w| w.message == message && !w.held);
        self.must(!after.is_some_and(waits), "a change lets go first what came before it", fact);
    }

    fn changed(&mut self, epoch: Epoch, scope: &Scope, fact: &Fact) {
        self.must(epoch == self.epoch().next(), "epochs grow by one", fact);
        self.must(!self.is_busy, "a scope changes between turns", fact);
        let (pending, away) = (self.moving.pending.take(), self.moving.away.take());
        self.told.pending = None;
        let before = self.scope().cloned();
        let fits = match (&pending, &before) {
            (Some(pending), Some(before)) => {
                // Into a worktree it was begun with its errand: what is released meanwhile is too late for the old scope.
                if away.is_none() {
                    self.lets_go_first(pending.after, fact);
                }
                is_so(&pending.change, before, scope, away.as_ref().map(|(_, what)| what))
            }
            _ => false,
        };
        self.must(fits, "a scope changes as somebody asked", fact);
        self.moving.takes_along = pending.as_ref().is_some_and(|pending| pending.from_start);
        self.moving.back_for = match pending.map(|pending| pending.change) {
            Some(Change::Back { message, .. }) => Some(message),
            _ => None,
        };
        self.name = match (self.name, before) {
            (Name::Unknown, _) => Name::Unknown,
            (_, Some(before)) if before.agent == scope.agent => Name::Moved,
            _ => Name::Unknown,
        };
        self.told.scopes.push(scope.clone());
    }

    /// True if the session acts where it did then. Whatever was done there can be undone from there.
    fn is_where(&self, then: Epoch) -> bool {
        let (then, now) = (self.told.scopes.get(then.0 as usize), self.told.scopes.last());
        let place = |scope: &Scope| (scope.directory.clone(), scope.worktree.clone());
        then.map(place) == now.map(place)
    }

    fn set_out(&mut self, errand: Errand, what: &What, fact: &Fact) {
        self.must(!self.is_busy && self.moving.away.is_none(), "no turn runs beside an errand", fact);
        let numbered = errand.number == self.moving.last_errand + 1 && errand.epoch == self.epoch();
        self.must(numbered, "errands are numbered, and asked in the scope of now", fact);
        self.moving.last_errand = errand.number;
        self.told.errands += 1;
        let wanted = self.moving.pending.as_ref().map(|pending| &pending.change);
        let fits = match what {
            What::Enter(worktree) => wanted == Some(&Change::Enter(worktree.clone())),
            What::Undo { turn, .. } | What::Redo { turn } => {
                let ran = self.told.turns.iter().find(|told| told.turn == *turn);
                ran.is_some_and(|told| self.is_where(told.epoch) && told.outcome.is_some())
            }
        };
        self.must(fits, "an errand does what somebody asked for", fact);
        if let (What::Enter(_), Some(pending)) = (what, &self.moving.pending) {
            self.lets_go_first(pending.after, fact);
        }
        if let What::Undo { turn, .. } = what {
            self.told.undone.entry(*turn).or_insert(false);
        }
        self.moving.away = Some((errand, what.clone()));
    }
}

/// True if this change leads from one scope to the other.
fn is_so(change: &Change, before: &Scope, after: &Scope, away: Option<&What>) -> bool {
    let stays = |kept: Scope| kept == *after;
    match change {
        Change::Enter(wanted) => {
            let made = away == Some(&What::Enter(wanted.clone()));
            let inside = after
                .worktree
                .as_ref()
                .is_some_and(|worktree| worktree.name == wanted.name && worktree.home == before.directory);
            let (directory, worktree) = (after.directory.clone(), after.worktree.clone());
            made && inside && stays(Scope { directory, worktree, ..before.clone() })
        }
        Change::Exit => before.worktree.as_ref().is_some_and(|worktree| {
            stays(Scope { directory: worktree.home.clone(), worktree: None, ..before.clone() })
        }),
        Change::Set { agent, model, mode } => {
            let is_agent = agent.as_ref().unwrap_or(&before.agent) == &after.agent;
            let other = before.agent != after.agent;
            let is_set = |setting: &Setting, before: &Option<String>, after: &Option<String>| match setting {
                Setting::To(name) => after.as_ref() == Some(name),
                Setting::Default => after.is_none(),
                Setting::Keep if other => after.is_none(),
                Setting::Keep => before == after,
            };
            let same_place = before.directory == after.directory && before.worktree == after.worktree;
            is_agent
                && same_place
                && is_set(model, &before.model, &after.model)
                && is_set(mode, &before.mode, &after.mode)
        }
        Change::Relink { directory } => {
            stays(Scope { directory: directory.clone(), worktree: None, ..before.clone() })
        }
        Change::Back { scope, .. } => scope == after,
    }
}
