//! The promises that hold after every step of every story.
//!
//! The ledger reads facts as they are appended and keeps books of its own: one line per message, the turn under way,
//! the questions. `see` says which promise a fact breaks; `agrees` compares the books with the session. It knows what
//! must never happen, not what should happen next: that is the business of `stories` and `model`.

use homing_kernel::*;
use std::collections::{BTreeMap, BTreeSet};

/// Where a message stands. The last three never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Receipt {
    Waiting,
    Held,
    Running,
    Withdrawn,
    Refused,
    Over(Outcome),
}

/// Where a question stands. The last two never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Question {
    Open { until: Moment },
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
    /// Whether a turn under that name was answered.
    proven: bool,
    /// Whether a turn has just ended because its conversation is gone, and the session must end with it.
    bereft: bool,
    stale: BTreeSet<(Fence, ReportKind)>,
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

    /// Takes a fact for granted, because it tells of another time.
    pub(crate) fn believe(&mut self, fact: &Fact) {
        if let Fact::Confirmed { native, epoch } = fact {
            self.name_is(native, *epoch);
        }
    }

    fn name_is(&mut self, native: &Native, epoch: Epoch) {
        self.native = Some((native.clone(), epoch));
        self.proven = false;
    }

    /// Enters what followed from a command.
    pub(crate) fn see(&mut self, command: &Command, facts: &[Fact], given: &Given) -> Kept {
        self.stale_changes_nothing(command, facts, given)?;
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
        self.nothing_is_left_of_the_dead()
    }

    /// Enters that a command was refused.
    pub(crate) fn see_refused(&self, command: &Command, refusal: Refusal) -> Kept {
        match command {
            Command::Say { .. } => promise(
                refusal == Refusal::NotOpen && self.life == Life::Unopened,
                "a message that was accepted is never refused without a fact",
            ),
            Command::Report { .. } | Command::Wake | Command::Stop { .. } => {
                Err(format!("{command:?} cannot be refused"))
            }
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
            Fact::TurnStarted { .. } | Fact::AttemptStarted { .. } | Fact::Crowded { .. } => {
                self.now.is_none()
            }
            Fact::Stale { fence: stale, kind } => stale == fence && *kind == report.kind(),
            _ => false,
        };
        let stale = facts.iter().any(|fact| matches!(fact, Fact::Stale { .. }));
        promise(heard || facts.iter().all(harmless), "nothing stale is ever applied")?;
        promise(!heard || !stale, "what the running attempt reports is not stale")
    }

    /// Another name counts only if none was known, or if the turn it came with succeeded.
    fn known_name_is_kept(&self, facts: &[Fact]) -> Kept {
        let renamed = facts.iter().any(|fact| matches!(fact, Fact::Confirmed { .. }));
        let answered =
            facts.iter().any(|fact| matches!(fact, Fact::TurnEnded { outcome: Outcome::Answered, .. }));
        promise(
            !renamed || answered || self.native.is_none(),
            "a turn that has not succeeded never overwrites the agent's name",
        )
    }

    fn stop_touches_what_it_names(&self, command: &Command, facts: &[Fact]) -> Kept {
        let Command::Stop { message: named, .. } = command else { return Ok(()) };
        let other = self.now.as_ref().filter(|now| now.message != *named);
        let touches = |fact: &Fact| match fact {
            Fact::Withdrawn { message, .. } => message != named,
            Fact::StopAsked { .. } | Fact::TurnEnded { .. } | Fact::Lapsed { .. } => other.is_some(),
            _ => false,
        };
        promise(!facts.iter().any(touches), "a stop touches only what it names")
    }

    fn see_fact(&mut self, fact: &Fact, given: &Given) -> Kept {
        let late = matches!(fact, Fact::MessageRefused { .. } | Fact::Stale { .. });
        promise(self.life != Life::Ended || late, "ended never changes")?;
        match fact {
            Fact::Opened { .. } => {
                promise(self.life == Life::Unopened, "a session begins once")?;
                self.life = Life::Open;
            }
            Fact::Queued { message, .. } => {
                promise(self.life == Life::Open, "only an open session takes messages")?;
                let known = self.messages.insert(*message, Receipt::Waiting);
                promise(known.is_none(), "a message exists once")?;
                self.line.push(*message);
            }
            Fact::Edited { message, revision } => {
                self.waits(message)?;
                let seen = self.revisions.entry(*message).or_default();
                promise(*revision == *seen + 1, "revisions grow by one")?;
                *seen = *revision;
            }
            Fact::Held { message, expires, .. } => {
                self.is(message, Receipt::Waiting, "only what waits is held")?;
                promise(*expires > given.now, "what is held is kept for a while")?;
                self.messages.insert(*message, Receipt::Held);
            }
            Fact::Released { message } => {
                self.is(message, Receipt::Held, "only what is held is released")?;
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
                promise(self.now.is_none(), "who has a slot does not wait for one")?;
                promise(*until > given.now, "a slot is asked for again later")?;
            }
            Fact::TurnStarted { turn, message } => {
                promise(self.now.is_none(), "one turn at a time")?;
                promise(self.life == Life::Open, "nothing starts in a session that ends")?;
                promise(given.slot == Slot::Free, "nothing starts without a slot")?;
                promise(turn.0 as usize == self.turns.len() + 1, "turns are numbered without gaps")?;
                let next = self.line.iter().find(|message| self.messages[message] == Receipt::Waiting);
                promise(next == Some(message), "the first that is not held is the next")?;
                self.line.retain(|waiting| waiting != message);
                self.messages.insert(*message, Receipt::Running);
                self.turns.push(*message);
                let (turn, message) = (*turn, *message);
                let tried = Attempt(0);
                self.now = Some(Now { turn, message, tried, live: None, handed: false, stopping: None });
            }
            Fact::AttemptStarted { fence, until } => {
                let now = Self::turn(&mut self.now, fence.turn)?;
                promise(fence.term == given.term, "an attempt belongs to the keeper that starts it")?;
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
            Fact::Confirmed { native, epoch } => self.name_is(native, *epoch),
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
                    promise(self.is_confirmed(), "gone counts only for a confirmed name")?;
                    promise(!self.proven, "a proven name is not given up for another")?;
                    self.native = None;
                }
            }
            Fact::Asked { approval, turn, until } => {
                let now = Self::turn(&mut self.now, *turn)?;
                promise(now.handed && now.stopping.is_none(), "only an agent at work asks")?;
                let known = self.questions.insert(*approval, Question::Open { until: *until });
                promise(known.is_none(), "a question is asked once")?;
            }
            Fact::Answered { approval, answer, by } => {
                let Some(Question::Open { until }) = self.questions.get(approval).copied() else {
                    return promise(false, "the first answer wins");
                };
                let timely = by.is_some() || (*answer == Answer::No && until <= given.now);
                promise(timely, "only when its time is over does silence mean no")?;
                self.questions.insert(*approval, Question::Answered(*answer));
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
            Fact::TurnEnded { turn, outcome } => self.turn_ends(*turn, *outcome)?,
            Fact::EndAsked { .. } => {
                promise(self.life == Life::Open, "a session is ended once")?;
                promise(self.now.is_some(), "an idle session ends at once")?;
                self.life = Life::Ending;
            }
            Fact::Ended { why } => {
                promise(self.now.is_none(), "a session ends after its turn")?;
                promise(self.line.is_empty(), "what waits is refused in the same append")?;
                let gone = *why == EndWhy::Gone;
                promise(gone == self.bereft, "a session ends with its conversation, if that was proven")?;
                self.bereft = false;
                self.life = Life::Ended;
            }
            Fact::Stale { fence, kind } => {
                promise(self.stale.insert((*fence, *kind)), "stale is recorded once per attempt and kind")?;
            }
        }
        Ok(())
    }

    fn is_confirmed(&self) -> bool {
        self.native.as_ref().is_some_and(|(_, epoch)| *epoch == Epoch(0))
    }

    fn turn_ends(&mut self, turn: Turn, outcome: Outcome) -> Kept {
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
            promise(is_confirmed, "gone counts only for a confirmed name")?;
            self.bereft = self.proven || now.handed;
            self.native = None;
        }
        self.proven |= outcome == Outcome::Answered && is_confirmed;
        self.messages.insert(now.message, Receipt::Over(outcome));
        self.now = None;
        Ok(())
    }

    /// Everything of an ended session is final.
    fn nothing_is_left_of_the_dead(&self) -> Kept {
        let unfinished =
            |receipt: &Receipt| matches!(receipt, Receipt::Waiting | Receipt::Held | Receipt::Running);
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
        let waits = matches!(self.messages.get(message), Some(Receipt::Waiting | Receipt::Held));
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
            let receipt = if waiting.hold.is_some() { Receipt::Held } else { Receipt::Waiting };
            self.is(&waiting.message, receipt, "the session knows what is held")?;
            let revision = self.revisions.get(&waiting.message).copied().unwrap_or(0);
            promise(waiting.revision == revision, "the session knows each revision")?;
        }
        let running = session.running().map(|running| (running.turn, running.message, running.stage.fence()));
        let now = self.now.as_ref().map(|now| (now.turn, now.message, now.live));
        promise(running == now, "the session knows its turn")?;
        let awake = now.is_some() || (self.life == Life::Open && self.has_startable());
        promise(session.is_awake() == awake, "a session is awake while a turn runs or waits")?;
        promise(session.ended().is_some() == (self.life == Life::Ended), "the session knows its end")?;
        promise(session.is_opened() == (self.life != Life::Unopened), "the session knows its beginning")?;
        let claims: Vec<_> = session.running().map(|running| Claim::slot(running.by)).into_iter().collect();
        promise(session.claims() == claims, "a slot is held while a turn is under way, and only then")?;
        self.due_agrees(session, term)?;
        self.rests_agree(session, asked, term)
    }

    /// What is due is this keeper's own attempt, or the burial of an earlier one's.
    fn due_agrees(&self, session: &Session, term: Term) -> Kept {
        let live = self.now.as_ref().and_then(|now| now.live.map(|live| (now, live)));
        let kept = match (session.due(term), live) {
            (Due::Nothing, None) => true,
            (Due::Bury(fence), Some((_, live))) => fence == live && fence.term != term,
            (Due::Run(run), Some((now, live))) => {
                let step = match (now.stopping, now.handed) {
                    (Some(_), _) => Step::Stop,
                    (None, true) => Step::Work,
                    (None, false) => Step::Start,
                };
                let resume = self.native.as_ref().filter(|(_, epoch)| *epoch == session.epoch());
                run.fence == live
                    && run.fence.term == term
                    && run.message == now.message
                    && run.step == step
                    && run.resume.as_ref() == resume.map(|(native, _)| native)
                    && run.answers.iter().all(|(approval, answer)| {
                        self.questions.get(approval) == Some(&Question::Answered(*answer))
                    })
            }
            (Due::Nothing, Some(_)) | (Due::Bury(_) | Due::Run(_), None) => false,
        };
        promise(kept, "what is due is this keeper's attempt, or the burial of an earlier one's")?;
        let next = session.due(term.next());
        promise(!matches!(next, Due::Run(_)), "another keeper buries first")
    }

    /// Whoever rests will be woken.
    fn rests_agree(&self, session: &Session, asked: bool, term: Term) -> Kept {
        let rests = self.now.as_ref().is_some_and(|now| now.live.is_none());
        let startable = asked && self.now.is_none() && self.has_startable();
        let held = self.line.iter().any(|message| self.messages[message] == Receipt::Held);
        let stopping = self.now.as_ref().is_some_and(|now| now.stopping.is_some());
        let ours = |now: &Now| now.live.is_some_and(|fence| fence.term == term);
        let live = self.now.as_ref().is_some_and(ours) && !stopping;
        promise(
            !(rests || startable || held || live) || session.wake_at(term).is_some(),
            "whatever waits for nothing but time is woken",
        )
    }
}
