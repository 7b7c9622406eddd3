//! The promises that hold after every step of every story.
//!
//! The ledger reads facts as they are appended and keeps books of its own: one line per message, the turn under way,
//! the questions. `see` says which promise a fact breaks; `agrees` compares the books with the session. It knows what
//! must never happen, not what should happen next: that is the business of `stories` and `model`.

use homing_kernel::*;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};

/// Where a message stands. The last three never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Receipt {
    Waiting,
    Held(HoldWhy),
    Running,
    Withdrawn,
    Refused,
    Over(Outcome),
}

/// Where a question stands. The last two never change.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Question {
    Open { until: Moment, asks: ApprovalForm },
    Answered(Answer),
    Lapsed,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Ledger {
    /// Every message there ever was.
    pub(crate) messages: BTreeMap<MessageId, Receipt>,
    /// Every question there ever was.
    pub(crate) questions: BTreeMap<ApprovalId, Question>,
    /// The message of each turn, in order.
    pub(crate) turns: Vec<MessageId>,
    life: Life,
    line: Vec<MessageId>,
    handed: BTreeSet<MessageId>,
    revisions: BTreeMap<MessageId, u32>,
    now: Option<Now>,
    attempts: BTreeMap<(Turn, Attempt), Fence>,
    latest: Option<Fence>,
    native: Option<(Native, Epoch)>,
    /// True if a turn under that name was answered.
    proven: bool,
    /// True if the agent of now may not know what was said before, or what was said in another session, and is being
    /// told.
    untold: bool,
    is_fork: bool,
    is_told: bool,
    /// True if a turn has just ended because its conversation is gone, and the session must end with it.
    bereft: bool,
    stale: BTreeSet<(Fence, ReportKind)>,
    /// The epoch for which each message was written.
    written: BTreeMap<MessageId, Epoch>,
    /// Every scope there ever was.
    scopes: BTreeMap<Epoch, Where>,
    epoch: Epoch,
    /// The change that waits, and whether it takes an errand.
    pending: Option<Wanted>,
    /// True if the scope of now is the worktree that the session was made for.
    entered_first: bool,
    away: Option<(Errand, ErrandKind)>,
    last_errand: Option<Errand>,
    learned: BTreeSet<(ErrandKind, Epoch)>,
    /// Everything that came back too late and was recorded.
    pub(crate) stale_errands: BTreeSet<(Errand, ErrandKind)>,
    /// Messages that did not get into a turn; nothing does so twice in one.
    missed: BTreeSet<(Turn, MessageId)>,
}

/// A change of scope that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Wanted {
    /// The session was made for it: what is said meanwhile is meant for there.
    EnterFirst,
    Enter,
    Other,
}

/// A scope in the books.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Where(Scope);

impl Hash for Where {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let Scope { directory, agent, model, mode, worktree } = &self.0;
        let worktree = worktree.as_ref().map(|worktree| (&worktree.name, &worktree.home));
        (directory, agent, model, mode, worktree).hash(hasher);
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
enum Life {
    #[default]
    Unopened,
    Open,
    Ending,
    Ended,
}

/// The turn under way.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Now {
    turn: Turn,
    message: MessageId,
    tried: Attempt,
    live: Option<Fence>,
    handed: bool,
    stopping: Option<StopWhy>,
    /// Messages that were said into it and did not come back.
    steered: Vec<MessageId>,
}

type Kept = Result<(), String>;

fn promise(kept: bool, words: &str) -> Kept {
    if kept { Ok(()) } else { Err(format!("a promise is broken: {words}")) }
}

impl Ledger {
    /// The number after the last message.
    pub(crate) fn next_message(&self) -> MessageId {
        MessageId::from_bits(self.messages.keys().next_back().map_or(1, |last| last.bits() + 1))
    }

    /// The number after the last question.
    pub(crate) fn next_approval(&self) -> ApprovalId {
        ApprovalId::from_bits(self.questions.keys().next_back().map_or(1, |last| last.bits() + 1))
    }

    /// The agent's own name for the conversation.
    pub(crate) fn name(&self) -> Option<&Native> {
        self.native.as_ref().map(|(native, _)| native)
    }

    /// The attempt that was started last.
    pub(crate) fn latest(&self) -> Option<Fence> {
        self.latest
    }

    /// The fence under which this attempt was started.
    pub(crate) fn started(&self, turn: Turn, attempt: Attempt) -> Option<Fence> {
        self.attempts.get(&(turn, attempt)).copied()
    }

    /// The scope that this message was written for.
    pub(crate) fn scope_for(&self, message: MessageId) -> Option<&Scope> {
        self.written.get(&message).and_then(|epoch| self.scopes.get(epoch)).map(|known| &known.0)
    }

    /// The errand that was started last; one that never was if there is none.
    pub(crate) fn latest_errand(&self) -> Errand {
        self.last_errand.unwrap_or(Errand { epoch: Epoch(0), number: 0 })
    }

    /// Enters what followed from a command.
    pub(crate) fn see(&mut self, command: &Command, facts: &[Fact], given: &Given) -> Kept {
        self.stale_changes_nothing(command, facts, given)?;
        self.stale_errand_changes_nothing(command, facts)?;
        self.known_name_is_kept(facts)?;
        self.stop_touches_what_it_names(command, facts)?;
        for fact in facts {
            self.see_fact(fact, given).map_err(|broken| format!("{broken}, by {fact:?}"))?;
        }
        if let Command::Say { message, .. } = command {
            let known = self.messages.contains_key(message);
            promise(known, "a message that was accepted exists")?;
        }
        promise(!self.bereft, "a session whose proven conversation is gone ends in the same append")?;
        self.nothing_is_sent_elsewhere()?;
        self.nothing_is_left_of_the_dead()
    }

    /// Enters that a command was refused.
    pub(crate) fn see_refused(&self, command: &Command, refusal: Refusal) -> Kept {
        match command {
            Command::Say { .. } => promise(
                refusal == Refusal::NotOpen && self.life == Life::Unopened,
                "a message that was accepted is never refused without a fact",
            ),
            Command::Report { .. }
            | Command::Wake
            | Command::Request { request: Request::Stop { .. }, .. }
            | Command::Return { .. } => Err(format!("{command:?} cannot be refused")),
            _ => Ok(()),
        }
    }

    /// Only the attempt that runs is heard, and of an earlier keeper's only that it was lost.
    fn stale_changes_nothing(&self, command: &Command, facts: &[Fact], given: &Given) -> Kept {
        let Command::Report { fence, report } = command else {
            return promise(
                !facts.iter().any(|fact| matches!(fact, Fact::Stale { .. })),
                "only reports are stale",
            );
        };
        let live = self.now.as_ref().and_then(|now| now.live) == Some(*fence);
        let heard = live && (fence.term == given.term || *report == Report::Lost);
        let harmless = |fact: &Fact| match fact {
            // A slot that has become free is noticed whenever anything happens.
            Fact::TurnStarted { .. } | Fact::AttemptStarted { .. } | Fact::Crowded { .. } => self.is_idle(),
            Fact::Stale { fence: stale, kind } => stale == fence && *kind == report.kind(),
            _ => false,
        };
        let stale = facts.iter().any(|fact| matches!(fact, Fact::Stale { .. }));
        promise(heard || facts.iter().all(harmless), "nothing stale is ever applied")?;
        promise(!heard || !stale, "what the running attempt reports is not stale")
    }

    /// Only the errand under way and what was asked under the epoch of now count; the rest is recorded, once.
    fn stale_errand_changes_nothing(&self, command: &Command, facts: &[Fact]) -> Kept {
        let stale: Vec<_> = facts
            .iter()
            .filter_map(|fact| match fact {
                Fact::StaleErrand { errand, kind } => Some((*errand, *kind)),
                _ => None,
            })
            .collect();
        let Command::Return { errand, came } = command else {
            return promise(stale.is_empty(), "only what comes back is stale");
        };
        let kind = came.kind();
        let exclusive = matches!(kind, ErrandKind::Enter | ErrandKind::Undo | ErrandKind::Redo);
        let looked = matches!(came, Return::Seen(_) | Return::Failed(_)) && !exclusive;
        let away = self.away == Some((*errand, kind)) && !matches!(came, Return::Seen(_));
        if away || (looked && errand.epoch == self.epoch) {
            return promise(stale.is_empty(), "what comes back in time is not stale");
        }
        let harmless = |fact: &Fact| match fact {
            Fact::TurnStarted { .. } | Fact::AttemptStarted { .. } | Fact::Crowded { .. } => self.is_idle(),
            Fact::StaleErrand { .. } => true,
            _ => false,
        };
        promise(facts.iter().all(harmless), "what comes back too late changes nothing")?;
        let known = self.stale_errands.contains(&(*errand, kind));
        // What is older than all that a session remembers may have been recorded before.
        let forgotten = self.stale_errands.len() >= 32;
        let expected: &[_] = if known { &[] } else { &[(*errand, kind)] };
        promise(stale == expected || (forgotten && stale.is_empty()), "each stale return is recorded once")
    }

    fn is_idle(&self) -> bool {
        self.now.is_none() && self.away.is_none()
    }

    /// Another name counts only if none was known here, or if the turn it came with succeeded.
    fn known_name_is_kept(&self, facts: &[Fact]) -> Kept {
        let renamed = facts.iter().any(|fact| matches!(fact, Fact::Confirmed { .. }));
        let answered =
            facts.iter().any(|fact| matches!(fact, Fact::TurnEnded { outcome: Outcome::Answered, .. }));
        promise(
            !renamed || answered || !self.is_confirmed(),
            "a turn that has not succeeded never overwrites the agent's name",
        )
    }

    fn stop_touches_what_it_names(&self, command: &Command, facts: &[Fact]) -> Kept {
        let Command::Request { request: Request::Stop { message: named }, .. } = command else {
            return Ok(());
        };
        let other = self.now.as_ref().filter(|now| now.message != *named && !now.steered.contains(named));
        let touches = |fact: &Fact| match fact {
            Fact::Withdrawn { message, .. } => message != named,
            Fact::StopAsked { .. } | Fact::TurnEnded { .. } | Fact::Lapsed { .. } => other.is_some(),
            _ => false,
        };
        promise(!facts.iter().any(touches), "a stop touches only what it names")
    }

    fn see_fact(&mut self, fact: &Fact, given: &Given) -> Kept {
        let late =
            matches!(fact, Fact::MessageRefused { .. } | Fact::Stale { .. } | Fact::StaleErrand { .. });
        promise(self.life != Life::Ended || late, "ended never changes")?;
        match fact {
            Fact::Opened { scope, enter, origin } => {
                promise(self.life == Life::Unopened, "a session begins once")?;
                self.pending = enter.as_ref().map(|_| Wanted::EnterFirst);
                self.is_fork = origin.is_some();
                self.life = Life::Open;
                self.scopes.insert(Epoch(0), Where(scope.clone()));
            }
            Fact::Queued { message, epoch, .. } => {
                promise(self.life == Life::Open, "only an open session takes messages")?;
                let known = self.messages.insert(*message, Receipt::Waiting);
                promise(known.is_none(), "a message exists once")?;
                self.line.push(*message);
                self.written.insert(*message, *epoch);
            }
            Fact::Edited { message, revision } => {
                self.waits(message)?;
                let seen = self.revisions.entry(*message).or_default();
                promise(*revision == *seen + 1, "revisions grow by one")?;
                *seen = *revision;
            }
            Fact::Held { message, why, expires } => {
                self.is(message, Receipt::Waiting, "only what waits is held")?;
                promise(*expires > given.now, "what is held is kept for a while")?;
                let elsewhere = self.written[message] != self.epoch;
                promise(
                    elsewhere == (*why == HoldWhy::OtherScope),
                    "what was written for another scope is held for that, and nothing else is",
                )?;
                self.messages.insert(*message, Receipt::Held(*why));
            }
            Fact::Released { message, epoch } => {
                let held = matches!(self.messages.get(message), Some(Receipt::Held(_)));
                let along = self.entered_first && self.messages.get(message) == Some(&Receipt::Waiting);
                promise(held || along, "only what is held is released")?;
                promise(*epoch == self.epoch, "what is released is for the scope of now")?;
                self.messages.insert(*message, Receipt::Waiting);
                self.written.insert(*message, *epoch);
            }
            Fact::Steered { message, turn } => {
                self.is(message, Receipt::Waiting, "only what waits is said into a turn")?;
                promise(given.can_steer, "only an agent that listens is spoken to")?;
                let now = Self::turn(&mut self.now, *turn)?;
                let live = now.live.is_some_and(|live| live.term == given.term);
                promise(live && now.handed && now.stopping.is_none(), "only an agent at work is spoken to")?;
                let is_new = !self.missed.contains(&(*turn, *message));
                promise(is_new, "what has missed a turn is not said into it again")?;
                now.steered.push(*message);
                promise(self.handed.insert(*message), "a message is handed over once")?;
                self.line.retain(|waiting| waiting != message);
                self.messages.insert(*message, Receipt::Running);
            }
            Fact::Missed { message } => {
                let now = self.now.as_mut().filter(|now| now.steered.contains(message));
                let Some(now) = now else {
                    return promise(false, "only what was said into a turn misses it");
                };
                promise(
                    matches!(now.stopping, None | Some(StopWhy::TimeLimit)),
                    "what somebody stopped does not begin again",
                )?;
                now.steered.retain(|steered| steered != message);
                promise(self.missed.insert((now.turn, *message)), "a message comes back once from a turn")?;
                self.handed.remove(message);
                self.line.insert(0, *message);
                self.messages.insert(*message, Receipt::Waiting);
            }
            Fact::Reordered { order } => {
                let sorted = |line: &[MessageId]| line.iter().copied().collect::<BTreeSet<_>>();
                promise(
                    order.len() == self.line.len() && sorted(order) == sorted(&self.line),
                    "reordering loses and adds nothing",
                )?;
                self.line = order.clone();
            }
            Fact::Withdrawn { message, .. } => self.leaves_line(message, Receipt::Withdrawn)?,
            Fact::MessageRefused { message, why } => {
                if self.messages.contains_key(message) {
                    self.leaves_line(message, Receipt::Refused)?;
                } else {
                    let over = matches!(self.life, Life::Ending | Life::Ended);
                    promise(
                        over && *why == RefusedWhy::SessionEnded,
                        "only a session that ends refuses a message at once",
                    )?;
                    self.messages.insert(*message, Receipt::Refused);
                }
            }
            Fact::Crowded { until } => {
                promise(self.is_idle(), "who has a slot does not wait for one")?;
                promise(*until > given.now, "a slot is asked for again later")?;
            }
            Fact::TurnStarted { turn, message } => {
                promise(self.now.is_none(), "one turn at a time")?;
                promise(self.away.is_none(), "no turn starts beside an errand")?;
                promise(self.life == Life::Open, "nothing starts in a session that ends")?;
                promise(given.slot == Slot::Free, "nothing starts without a slot")?;
                promise(turn.0 as usize == self.turns.len() + 1, "turns are numbered without gaps")?;
                let next = self.line.iter().find(|message| self.messages[message] == Receipt::Waiting);
                promise(next == Some(message), "the first that is not held is the next")?;
                promise(
                    self.written[message] == self.epoch,
                    "a message is started in the scope it was written for",
                )?;
                self.line.retain(|waiting| waiting != message);
                self.messages.insert(*message, Receipt::Running);
                self.turns.push(*message);
                let (turn, message) = (*turn, *message);
                let tried = Attempt(0);
                let steered = vec![];
                self.now =
                    Some(Now { turn, message, tried, live: None, handed: false, stopping: None, steered });
            }
            Fact::AttemptStarted { fence, until } => {
                let now = Self::turn(&mut self.now, fence.turn)?;
                promise(fence.term == given.term, "an attempt belongs to the keeper that starts it")?;
                promise(fence.epoch == self.epoch, "an attempt belongs to the scope that it starts in")?;
                promise(now.live.is_none(), "one attempt at a time")?;
                promise(!now.handed, "what was handed over is never tried again")?;
                promise(now.stopping.is_none(), "what is to stop is not tried again")?;
                promise(fence.attempt == now.tried.next(), "attempts are numbered without gaps")?;
                promise(fence.attempt.0 <= given.policy.attempts_max, "attempts are bounded")?;
                promise(*until > given.now, "an attempt has some time")?;
                now.live = Some(*fence);
                now.tried = fence.attempt;
                self.latest = Some(*fence);
                self.attempts.insert((fence.turn, fence.attempt), *fence);
            }
            Fact::Confirmed { native, epoch } => {
                promise(*epoch == self.epoch, "a name is confirmed where the agent is")?;
                let is_new = self.native.as_ref().is_none_or(|(known, _)| known != native);
                self.is_told = is_new && (self.untold || self.is_fork);
                self.native = Some((native.clone(), *epoch));
                self.proven = false;
            }
            Fact::Handed { turn, attempt } => {
                let now = Self::turn(&mut self.now, *turn)?;
                let live = now.live.is_some_and(|live| live.attempt == *attempt && live.term == given.term);
                promise(live, "only a live attempt of this keeper is handed the message")?;
                promise(now.stopping.is_none(), "nothing is handed over after a stop")?;
                promise(self.handed.insert(now.message), "a message is handed over once")?;
                now.handed = true;
            }
            Fact::AttemptFailed { turn, attempt, failure, again_at } => {
                let now = Self::turn(&mut self.now, *turn)?;
                let live = now.live.is_some_and(|live| live.attempt == *attempt);
                promise(live, "only a live attempt fails")?;
                promise(!now.handed, "what was handed over is never tried again")?;
                promise(*again_at > given.now, "the next attempt waits a while")?;
                now.live = None;
                if *failure == Failure::Gone {
                    promise(self.native.is_some(), "gone counts only for a name")?;
                    let proven = self.is_confirmed() && self.proven;
                    promise(
                        given.forgets || !proven,
                        "a name that was proven here is not given up for another",
                    )?;
                    self.untold |= self.proven;
                    self.native = None;
                }
            }
            Fact::Asked { approval, turn, until, terms } => {
                let now = Self::turn(&mut self.now, *turn)?;
                promise(now.handed && now.stopping.is_none(), "only an agent at work asks")?;
                let known =
                    self.questions.insert(*approval, Question::Open { until: *until, asks: terms.form });
                promise(known.is_none(), "a question is asked once")?;
            }
            Fact::Answered { approval, answer, by } => {
                let Some(Question::Open { until, asks }) = self.questions.get(approval).cloned() else {
                    return promise(false, "the first answer wins");
                };
                promise(asks.takes(answer), "an answer fits its question")?;
                let late = *answer == Answer::No && until <= given.now;
                promise(*by != Answerer::Nobody || late, "only when its time is over does silence mean no")?;
                self.questions.insert(*approval, Question::Answered(answer.clone()));
            }
            Fact::Lapsed { approval } => {
                let open = matches!(self.questions.get(approval), Some(Question::Open { .. }));
                promise(open, "only open questions lapse")?;
                self.questions.insert(*approval, Question::Lapsed);
            }
            Fact::StopAsked { turn, why } => {
                let now = Self::turn(&mut self.now, *turn)?;
                promise(now.stopping.is_none(), "a turn is stopped once")?;
                promise(now.live.is_some(), "only what lives is stopped")?;
                now.stopping = Some(*why);
            }
            Fact::TurnEnded { turn, outcome } => self.turn_ends(*turn, *outcome, given)?,
            Fact::EndAsked { .. } => {
                promise(self.life == Life::Open, "a session is ended once")?;
                promise(!self.is_idle(), "an idle session ends at once")?;
                self.life = Life::Ending;
            }
            Fact::Ended { why } => {
                promise(self.is_idle(), "a session ends after its turn or errand")?;
                promise(self.line.is_empty(), "what waits is refused in the same append")?;
                self.pending = None;
                let gone = *why == EndWhy::Gone;
                promise(gone == self.bereft, "a session ends with its conversation, if that was proven")?;
                self.bereft = false;
                self.life = Life::Ended;
            }
            Fact::Stale { fence, kind } => {
                promise(self.stale.insert((*fence, *kind)), "stale is recorded once per attempt and kind")?;
            }
            Fact::StaleErrand { errand, kind } => {
                let new = self.stale_errands.insert((*errand, *kind));
                promise(new, "stale is recorded once per errand and kind")?;
            }
            Fact::ChangeAsked { .. }
            | Fact::ScopeKept { .. }
            | Fact::ScopeChanged { .. }
            | Fact::ErrandStarted { .. }
            | Fact::ErrandFailed { .. }
            | Fact::Undone { .. }
            | Fact::Redone { .. }
            | Fact::Learned { .. } => self.see_scope(fact)?,
        }
        Ok(())
    }

    fn see_scope(&mut self, fact: &Fact) -> Kept {
        match fact {
            Fact::ChangeAsked { change, after, .. } => {
                promise(self.life == Life::Open, "only an open session changes its scope")?;
                promise(self.pending.is_none(), "one change at a time")?;
                let next = self.line.iter().find(|message| self.messages[message] == Receipt::Waiting);
                let next = next.filter(|_| self.is_idle());
                promise(after.as_ref() == next, "a change waits for what would have been next")?;
                let enters = matches!(change, Change::Enter(_));
                self.pending = Some(if enters { Wanted::Enter } else { Wanted::Other });
            }
            Fact::ScopeKept { .. } => {
                let entering = self.away.is_some_and(|(_, kind)| kind == ErrandKind::Enter);
                promise(self.pending.take().is_some(), "only a change that waits is given up")?;
                promise(!entering, "what has begun is not given up")?;
            }
            Fact::ScopeChanged { epoch, scope } => {
                promise(self.now.is_none(), "a scope changes only between turns")?;
                promise(self.life == Life::Open, "only an open session changes its scope")?;
                let wanted = self.pending.take();
                let entered = self.away.take().map(|(_, kind)| kind);
                let as_wanted = match wanted {
                    Some(Wanted::Enter | Wanted::EnterFirst) => entered == Some(ErrandKind::Enter),
                    Some(Wanted::Other) => entered.is_none(),
                    None => false,
                };
                promise(as_wanted, "a scope changes when that was wanted and nothing else is under way")?;
                promise(*epoch == self.epoch.next(), "epochs grow by one")?;
                let before = self.scopes.insert(*epoch, Where(scope.clone()));
                promise(before.is_none(), "each epoch is one scope's")?;
                let other = |known: &Where| known.0.agent != scope.agent;
                let other = self.scopes.get(&self.epoch).is_some_and(other);
                self.untold |= self.native.is_some() || (other && self.latest.is_some());
                if other {
                    self.native = None;
                }
                self.epoch = *epoch;
                self.entered_first = wanted == Some(Wanted::EnterFirst);
            }
            Fact::ErrandStarted { errand, what, .. } => {
                promise(self.is_idle(), "an errand is not started beside anything")?;
                promise(self.life == Life::Open, "nothing starts in a session that ends")?;
                promise(errand.epoch == self.epoch, "an errand belongs to the scope that it starts in")?;
                let last = self.last_errand.map_or(0, |last| last.number);
                promise(errand.number == last + 1, "errands are numbered without gaps")?;
                let (kind, asked) = match what {
                    What::Enter(_) => {
                        let asked = matches!(self.pending, Some(Wanted::Enter | Wanted::EnterFirst));
                        (ErrandKind::Enter, asked)
                    }
                    What::Undo { turn, .. } | What::Redo { turn } => {
                        let known = (1..=self.turns.len()).contains(&(turn.0 as usize));
                        let is_redo = matches!(what, What::Redo { .. });
                        let kind = if is_redo { ErrandKind::Redo } else { ErrandKind::Undo };
                        (kind, known && self.pending.is_none() && !self.has_startable())
                    }
                };
                promise(asked, "an errand is what was asked for")?;
                self.away = Some((*errand, kind));
                self.last_errand = Some(*errand);
            }
            Fact::ErrandFailed { errand } => {
                let away = self.away.take().map(|(away, _)| away);
                promise(away == Some(*errand), "only the errand under way fails")?;
            }
            Fact::Undone { .. } => {
                let away = self.away.take().map(|(_, kind)| kind);
                promise(away == Some(ErrandKind::Undo), "only what is being undone is undone")?;
            }
            Fact::Redone { .. } => {
                let away = self.away.take().map(|(_, kind)| kind);
                promise(away == Some(ErrandKind::Redo), "only what is being redone is redone")?;
            }
            Fact::Learned { kind, epoch } => {
                promise(*epoch == self.epoch, "what is learned is about the scope of now")?;
                promise(self.learned.insert((*kind, *epoch)), "a list is learned once for each scope")?;
            }
            _ => {}
        }
        Ok(())
    }

    /// The books say that the name was confirmed in the scope of now.
    fn is_confirmed(&self) -> bool {
        self.native.as_ref().is_some_and(|(_, epoch)| *epoch == self.epoch)
    }

    /// Whatever may be started was written for the scope of now.
    fn nothing_is_sent_elsewhere(&self) -> Kept {
        let here = |message: &MessageId| {
            self.messages[message] != Receipt::Waiting || self.written[message] == self.epoch
        };
        promise(self.line.iter().all(here), "what was written for another scope is held")
    }

    fn turn_ends(&mut self, turn: Turn, outcome: Outcome, given: &Given) -> Kept {
        let is_confirmed = self.is_confirmed();
        let now = Self::turn(&mut self.now, turn)?;
        let kept = match outcome {
            Outcome::Answered => now.handed,
            Outcome::Interrupted => now.handed && now.stopping.is_none(),
            Outcome::Stopped => match now.stopping {
                Some(why) => why != StopWhy::TimeLimit,
                None => now.live.is_none(),
            },
            Outcome::TimedOut => now.stopping == Some(StopWhy::TimeLimit),
            // Its sender lost the right to have it tried again.
            Outcome::Failed(Failure::Refused) if now.live.is_none() => now.tried > Attempt(0),
            Outcome::Failed(_) => now.live.is_some() && now.stopping.is_none(),
        };
        promise(kept, "the outcome of a turn is what happened in it")?;
        let open = self.questions.values().any(|question| matches!(question, Question::Open { .. }));
        promise(!open, "questions lapse with their turn")?;
        if outcome == Outcome::Failed(Failure::Gone) {
            promise(self.native.is_some(), "gone counts only for a name")?;
            promise(is_confirmed || !now.handed, "gone counts only where the name was confirmed")?;
            self.bereft = !given.forgets && is_confirmed && (self.proven || now.handed);
            self.untold |= self.proven;
            self.native = None;
        }
        if outcome == Outcome::Answered {
            self.untold &= self.native.is_some() && !is_confirmed;
            self.is_fork = false;
        } else if self.is_told {
            self.native = None; // Nobody knows whether it has taken in what it was told.
        }
        self.is_told = false;
        self.proven |= outcome == Outcome::Answered && is_confirmed;
        for message in now.steered.drain(..).chain([now.message]) {
            self.messages.insert(message, Receipt::Over(outcome));
        }
        self.now = None;
        Ok(())
    }

    /// Everything of an ended session is final.
    fn nothing_is_left_of_the_dead(&self) -> Kept {
        let unfinished =
            |receipt: &Receipt| matches!(receipt, Receipt::Waiting | Receipt::Held(_) | Receipt::Running);
        promise(
            self.life != Life::Ended || !self.messages.values().any(unfinished),
            "every message of an ended session has reached a final state",
        )
    }

    fn has_startable(&self) -> bool {
        self.line.iter().any(|message| self.messages[message] == Receipt::Waiting)
    }

    fn turn(now: &mut Option<Now>, turn: Turn) -> Result<&mut Now, String> {
        now.as_mut()
            .filter(|now| now.turn == turn)
            .ok_or_else(|| "a promise is broken: a finished turn never changes".into())
    }

    fn is(&self, message: &MessageId, receipt: Receipt, words: &str) -> Kept {
        promise(self.messages.get(message) == Some(&receipt), words)
    }

    fn waits(&self, message: &MessageId) -> Kept {
        let waits = matches!(self.messages.get(message), Some(Receipt::Waiting | Receipt::Held(_)));
        promise(waits, "a message has at most one final fact, and nothing happens to it after that")
    }

    fn leaves_line(&mut self, message: &MessageId, to: Receipt) -> Kept {
        self.waits(message)?;
        self.line.retain(|waiting| waiting != message);
        self.messages.insert(*message, to);
        Ok(())
    }

    /// Compares the books with the session; `asked` says whether a turn would have been started if one could be.
    pub(crate) fn agrees(&self, session: &Session, term: Term, asked: bool) -> Kept {
        let line: Vec<_> = session.queue().iter().map(|waiting| waiting.message).collect();
        promise(line == self.line, "the queue is what waits, in its order")?;
        for waiting in session.queue() {
            let receipt = waiting.hold.map_or(Receipt::Waiting, |(why, _)| Receipt::Held(why));
            self.is(&waiting.message, receipt, "the session knows what is held")?;
            let written = self.written[&waiting.message];
            promise(waiting.epoch == written, "the session knows what each message was written for")?;
            let revision = self.revisions.get(&waiting.message).copied().unwrap_or(0);
            promise(waiting.revision == revision, "the session knows each revision")?;
        }
        let running = session.running().map(|running| (running.turn, running.message, running.stage.fence()));
        let now = self.now.as_ref().map(|now| (now.turn, now.message, now.live));
        promise(running == now, "the session knows its turn")?;
        let steered = |running: &Running| running.messages().skip(1).collect::<Vec<_>>();
        let said_into = self.now.as_ref().map(|now| now.steered.clone());
        promise(
            session.running().map(steered) == said_into,
            "the session knows what was said into its turn",
        )?;
        let awake = !self.is_idle() || (self.life == Life::Open && self.has_startable());
        promise(session.is_awake() == awake, "a session is awake while something runs or waits")?;
        promise(session.ended().is_some() == (self.life == Life::Ended), "the session knows its end")?;
        promise(session.is_opened() == (self.life != Life::Unopened), "the session knows its beginning")?;
        self.scope_agrees(session)?;
        self.claims_agree(session)?;
        self.due_agrees(session, term)?;
        self.rests_agree(session, asked, term)
    }

    fn scope_agrees(&self, session: &Session) -> Kept {
        promise(session.epoch() == self.epoch, "the session knows its epoch")?;
        let here = self.scopes.get(&self.epoch).map(|known| &known.0);
        let open = matches!(self.life, Life::Open | Life::Ending);
        promise(session.scope() == here.filter(|_| open), "the session knows its scope")?;
        promise(session.pending().is_some() == self.pending.is_some(), "the session knows what waits")?;
        let away = session.away().map(|away| away.errand);
        promise(away == self.away.map(|(errand, _)| errand), "the session knows its errand")?;
        for kind in ErrandKind::ALL {
            let learned = open && self.learned.contains(&(kind, self.epoch));
            promise(session.has_learned(kind) == learned, "what was learned elsewhere is not known here")?;
        }
        Ok(())
    }

    fn claims_agree(&self, session: &Session) -> Kept {
        let directory = session.scope().map(|scope| Claim::directory(&scope.directory));
        let undoes = self.away.is_some_and(|(_, kind)| matches!(kind, ErrandKind::Undo | ErrandKind::Redo));
        let slot = session.running().map(|running| Claim::slot(running.by));
        let claims = slot.into_iter().chain(directory.filter(|_| self.now.is_some() || undoes));
        promise(
            session.claims() == claims.collect::<Vec<_>>(),
            "a slot and the directory are held while a turn is under way, and only then",
        )
    }

    /// The work that is due is this keeper's own attempt, or the burial of an earlier one's, or the errand under way.
    fn due_agrees(&self, session: &Session, term: Term) -> Kept {
        let live = self.now.as_ref().and_then(|now| now.live.map(|live| (now, live)));
        let kept = match (session.due(term), live) {
            (Due::Nothing, None) => true,
            (Due::EndLeftovers(fence), Some((_, live))) => fence == live && fence.term != term,
            (Due::Run(run), Some((now, live))) => {
                let step = match (now.stopping, now.handed) {
                    (Some(_), _) => Step::Stop,
                    (None, true) => Step::Work,
                    (None, false) => Step::Start,
                };
                let begin = self.native.as_ref().map(|(native, epoch)| match *epoch == session.epoch() {
                    true => Begin::Resume(native.clone()),
                    false => Begin::Follow(native.clone()),
                });
                let named = matches!(run.begin, Begin::Resume(_) | Begin::Follow(_));
                run.fence == live
                    && run.fence.term == term
                    && run.message == now.message
                    && run.step == step
                    && run.steered == now.steered
                    && begin.map_or(!named, |begin| begin == run.begin)
                    && run.answers.iter().all(|(approval, answer)| {
                        self.questions.get(approval) == Some(&Question::Answered(answer.clone()))
                    })
            }
            (Due::Errand(away), None) => self.away.is_some_and(|(errand, _)| errand == away.errand),
            (Due::Nothing | Due::Errand(_), Some(_)) | (Due::EndLeftovers(_) | Due::Run(_), None) => false,
        };
        let nothing = session.due(term) == Due::Nothing;
        promise(!nothing || self.away.is_none(), "an errand under way is due")?;
        promise(kept, "what is due is this keeper's attempt, or the burial of an earlier one's")?;
        let next = session.due(term.next());
        promise(!matches!(next, Due::Run(_)), "another keeper buries first")
    }

    /// Whoever rests will be woken.
    fn rests_agree(&self, session: &Session, asked: bool, term: Term) -> Kept {
        let rests = self.now.as_ref().is_some_and(|now| now.live.is_none());
        let startable = asked && self.is_idle() && self.has_startable();
        let held = self.line.iter().any(|message| matches!(self.messages[message], Receipt::Held(_)));
        let stopping = self.now.as_ref().is_some_and(|now| now.stopping.is_some());
        let ours = |now: &Now| now.live.is_some_and(|fence| fence.term == term);
        let live = self.now.as_ref().is_some_and(ours) && !stopping;
        promise(
            !(rests || startable || held || live) || session.wake_at(term).is_some(),
            "whatever waits for nothing but time is woken",
        )
    }
}
