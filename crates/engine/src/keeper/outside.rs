//! Makes what goes on outside match what ought to: attempts, burials and errands.

use super::attempt::{Fork, Handover, MessageWords, RunningAttempt};
use super::chores::ChoreUnderWay;
use super::memory::Reminder;
use super::{Keeper, Phase, Stop};
use crate::OwnedSession;
use crate::accounts::NoAccount;
use crate::attached::{AttachmentView, as_words};
use crate::changes::TurnSnapshots;
use crate::errand::{ErrandOutput, ErrandSession, RunningErrand};
use crate::inbound::plain_text;
use crate::progress::{ProgressTeller, WorkProgress};
use crate::slash_command::command_name;
use crate::story::{LaunchForm, Story};
use crate::turn::{AttemptOptions, AwaitedCommand, Runner, RunnerOutput};
use agent::{Account, Agent, Launch, Message};
use kernel::{Claim, Due, Fence, MessageId, Run, Stage, Step};
use store::Entry;

/// Why a fork that the agent has made itself is given up.
const GONE_ON: &str =
    "the session that this is a fork of has gone on meanwhile: what was said up to there is told again";

/// The work outside for a session: one thing at a time.
pub(super) enum Outside {
    Nothing,
    Attempt(Box<RunningAttempt>),
    Errand(RunningErrand),
    Chore(ChoreUnderWay),
}

/// The output from there.
pub(super) enum OutsideOutput {
    /// Of an attempt; none if its runner has gone without a report.
    Attempt(Option<RunnerOutput>),
    /// Of an errand or a chore.
    Errand(ErrandOutput),
}

impl Outside {
    pub(super) fn attempt(&self) -> Option<&RunningAttempt> {
        match self {
            Self::Attempt(attempt) => Some(attempt),
            Self::Nothing | Self::Errand(_) | Self::Chore(_) => None,
        }
    }

    pub(super) fn attempt_mut(&mut self) -> Option<&mut RunningAttempt> {
        match self {
            Self::Attempt(attempt) => Some(attempt),
            Self::Nothing | Self::Errand(_) | Self::Chore(_) => None,
        }
    }

    /// The next output. Cancel-safe.
    pub(super) async fn next(&mut self) -> OutsideOutput {
        match self {
            Self::Nothing => std::future::pending().await,
            Self::Attempt(attempt) => OutsideOutput::Attempt(attempt.next().await),
            Self::Errand(errand) => OutsideOutput::Errand(errand.next().await),
            Self::Chore(chore) => OutsideOutput::Errand(chore.next().await),
        }
    }

    /// Tells whoever watches how far it is.
    pub(super) fn tell(&mut self, progress: WorkProgress) {
        match self {
            Self::Nothing | Self::Attempt(_) => {}
            Self::Errand(errand) => errand.tell(progress),
            Self::Chore(chore) => chore.tell(progress),
        }
    }

    fn runs(&self, fence: Fence) -> bool {
        self.attempt().is_some_and(|attempt| attempt.fence() == fence)
    }
}

impl Keeper {
    pub(super) async fn match_outside(&mut self) -> Result<(), Stop> {
        if let Outside::Chore(_) = self.outside {
            return Ok(()); // Whatever is due begins when it is over.
        }
        match self.state.due(self.term) {
            Due::Nothing => self.end_attempt(),
            Due::Errand(away) => {
                self.end_attempt();
                let goes_on =
                    matches!(&self.outside, Outside::Errand(errand) if errand.errand == away.errand);
                // What is begun when the node goes down is left half done; the next one does it.
                if !goes_on && self.phase == Phase::Keeping {
                    self.outside = Outside::Nothing;
                    let whom = self.errand_session().await?;
                    let teller = ProgressTeller::of_errand(self.engine.ports(), self.session, &away.what);
                    let errand = RunningErrand::begin(self.engine.runner_ports(), whom, &away, teller);
                    self.outside = Outside::Errand(errand);
                }
            }
            Due::EndLeftovers(fence) => {
                if !self.outside.runs(fence) {
                    self.end_leftovers(fence).await?;
                }
            }
            Due::Run(run) => {
                if !self.outside.runs(run.fence) {
                    let attempt = self.start(&run).await?;
                    self.outside = Outside::Attempt(Box::new(attempt));
                }
                self.tend(run).await?;
            }
        }
        Ok(())
    }

    /// An attempt is over: nobody calls back for it any more.
    pub(super) fn end_attempt(&mut self) {
        if let Outside::Attempt(_) = self.outside {
            self.outside = Outside::Nothing;
            self.engine.call_back().inspect(|door| door.close(self.session));
        }
    }

    /// The node goes down: an attempt is stopped, and reports; what else goes on the next keeper does again.
    pub(super) async fn end_outside(&mut self) {
        match std::mem::replace(&mut self.outside, Outside::Nothing) {
            Outside::Nothing => {}
            Outside::Attempt(mut attempt) => {
                attempt.runner.stop();
                self.outside = Outside::Attempt(attempt);
            }
            Outside::Errand(errand) => errand.part().await,
            Outside::Chore(chore) => chore.part().await,
        }
    }

    /// The session with its owner as far as the inbox was read: what begins before the keeper hears of another owner begins as
    /// it was asked for, and not as somebody's who was given the session meanwhile.
    async fn owned(&self) -> Result<OwnedSession, Stop> {
        let walled = self.engine.rights_cache().needs_wall().await?;
        let whose = self.owner.to_string();
        Ok(OwnedSession { session: self.session, whose, walled, tree_bytes_left: None })
    }

    pub(super) async fn errand_session(&self) -> Result<ErrandSession, Stop> {
        // What cannot be counted now is counted when it is next wanted.
        let tree_bytes_left = self.engine.ports().tree_bytes_left(self.session).await.unwrap_or(None);
        Ok(ErrandSession {
            of: OwnedSession { tree_bytes_left, ..self.owned().await? },
            scope: self.scope.clone(),
            agent: self.agent(),
            term: self.term,
            // The tree of a fork is made once, from its origin's; later it enters worktrees like anybody.
            fork_of: self.origin.filter(|_| self.state.pending().is_some_and(|pending| pending.from_start)),
        })
    }

    /// The changes of an attempt that we lost are seen once nothing of it is left.
    async fn end_leftovers(&mut self, fence: Fence) -> Result<(), Stop> {
        let handed = self.state.running().is_some_and(|running| match running.stage {
            Stage::Working { .. } => true,
            Stage::Stopping { handed, .. } => handed,
            Stage::Starting { .. } | Stage::Resting { .. } => false,
        });
        let of = self.owned().await?;
        let (ports, snapshots) = (self.engine.runner_ports(), handed.then(|| self.snapshots(of, fence)));
        let runner = Runner::end_leftovers(ports, self.agent(), fence, self.session, snapshots);
        self.outside = Outside::Attempt(Box::new(RunningAttempt::bare(runner)));
        Ok(())
    }

    fn snapshots(&self, of: OwnedSession, fence: Fence) -> TurnSnapshots {
        let trees = &self.engine.runner_ports().trees;
        TurnSnapshots::new(trees, of, fence.turn, &self.scope.directory)
    }

    async fn start(&mut self, run: &Run) -> Result<RunningAttempt, Stop> {
        self.release_kept().await;
        let refused = |keeper: &Self, reason| {
            RunningAttempt::bare(Runner::refused(keeper.engine.runner_ports(), run.fence, reason))
        };
        // Asked before anybody is, because a process of an earlier turn may be kept.
        if let Some(reason) = self.engine.people().wall.refusal(self.owner, run.by) {
            return Ok(refused(self, reason));
        }
        let Some(agent) = self.agent() else {
            let reason = format!("there is no agent called {:?} any more", self.scope.agent);
            return Ok(refused(self, reason));
        };
        let mut launch = Launch::new(self.session, run.fence, run.message, self.scope.directory.clone());
        launch.model = self.scope.model.clone();
        launch.mode = self.scope.mode.clone();
        let of = self.owned().await?;
        launch.whose.clone_from(&of.whose);
        launch.walled = of.walled;
        launch.account = match self.engine.people().account_of(self.org, run.by, &*agent).await {
            Ok(account) => account,
            Err(NoAccount::Store(error)) => return Err(Stop::Store(error)),
            Err(NoAccount::Unusable(reason)) => return Ok(refused(self, reason)),
        };
        let attached = self.attached_to(run.message).await?;
        // It was asked when the message came; since then the session may have got another agent.
        if let Some(unfit) = attached.iter().find(|view| !view.is_taken(&agent.abilities())) {
            let reason = format!("{} does not take the {unfit}", self.scope.agent);
            return Ok(refused(self, reason));
        }
        let text = self.text_of(run.message, &attached).await?;
        let Reminder { preamble, story } = self.remind(&*agent, run, &text, &mut launch).await?;
        self.let_call_back(&mut launch);
        let preface = self.launched(&*agent, &launch).into_iter().chain(story).collect();
        let is_tracked = self.untracked.as_ref() != Some(&self.scope.directory);
        let fork = self.origin.filter(|_| launch.fork).map_or(Fork::Clean, Fork::Unchecked);
        let options = AttemptOptions {
            snapshots: is_tracked.then(|| self.snapshots(of, run.fence)),
            command: self.awaited_command(&*agent, &text),
        };
        let handover = Handover::Waiting { preamble, words: Some(MessageWords { text, attached }) };
        let runner = Runner::attempt(self.engine.runner_ports(), agent, launch, options);
        Ok(RunningAttempt::new(runner, preface, handover, fork))
    }

    /// The command that a message begins with, unless the agent has listed it before: then nothing is waited for.
    fn awaited_command(&self, agent: &dyn Agent, text: &str) -> Option<AwaitedCommand> {
        let name = command_name(text).filter(|_| agent.abilities().commands)?;
        let listed = self.engine.roster().listed(self.session, self.state.epoch());
        let listed = listed.map(|lists| lists.commands).unwrap_or_default();
        let is_known = listed.iter().any(|command| command.name == name);
        let wait = self.engine.limits().commands_wait;
        (!is_known).then(|| AwaitedCommand { name: name.to_owned(), listed, wait })
    }

    /// The words about the images and files that go along with a message.
    async fn attached_to(&self, message: MessageId) -> Result<Vec<AttachmentView>, Stop> {
        Ok(AttachmentView::read_all(&self.engine.store().attachments(message).await?))
    }

    /// The words of a message, with the files that are text.
    async fn text_of(&self, message: MessageId, attached: &[AttachmentView]) -> Result<String, Stop> {
        let words = self.engine.store().words(message).await?;
        let mut text = words.and_then(|words| plain_text(&words)).unwrap_or_default();
        for (number, view) in (1..).zip(attached).filter(|(_, view)| view.is_text) {
            let content = self.engine.store().attachment(message, number).await?.unwrap_or_default();
            let gap = if text.is_empty() { "" } else { "\n" };
            text = format!("{text}{gap}{}", as_words(&view.name, &String::from_utf8_lossy(&content)));
        }
        Ok(text)
    }

    /// A message as its agent gets it, with everything that goes along.
    async fn message_of(&self, id: MessageId, read: Option<MessageWords>) -> Result<Message, Stop> {
        let MessageWords { text, attached } = match read {
            Some(read) => read,
            None => {
                let attached = self.attached_to(id).await?;
                MessageWords { text: self.text_of(id, &attached).await?, attached }
            }
        };
        let mut message = Message::new(id, text);
        for (number, view) in (1..).zip(attached).filter(|(_, view)| !view.is_text) {
            match self.engine.store().attachment(id, number).await? {
                Some(content) => message.attachments.push(view.with(content)),
                None => message.text.push_str(&format!("\n(forgotten: {view})")),
            }
        }
        Ok(message)
    }

    /// The story of this attempt's start, for people, if it is not as the one before.
    fn launched(&mut self, agent: &dyn Agent, launch: &Launch) -> Option<Entry> {
        let setup = agent.setup();
        let story = Story::Launch(LaunchForm {
            agent: agent.name(),
            kind: setup.kind,
            program: &setup.program,
            version: self.engine.roster().version(agent.name()),
            home: &setup.home,
            directory: self.scope.directory.for_readers(),
            model: launch.model.as_deref(),
            mode: launch.mode.as_deref(),
            bypasses: setup.bypasses,
            account: match &launch.account {
                Account::House => "house".to_owned(),
                Account::Person { person, .. } => person.to_string(),
            },
        });
        let mark = story.mark();
        (self.told.launch.replace(mark) != Some(mark)).then(|| story.entry(launch.fence.turn))
    }

    /// Gives an attempt everything that it should have by now.
    async fn tend(&mut self, run: Run) -> Result<(), Stop> {
        match run.step {
            Step::Start => {}
            Step::Work => {
                self.hand(run.message).await?;
                self.add_steered(&run.steered).await?;
            }
            Step::Stop => self.outside.attempt_mut().into_iter().for_each(|attempt| attempt.runner.stop()),
        }
        let Some(attempt) = self.outside.attempt_mut() else { return Ok(()) };
        if attempt.fork == Fork::GoneOn {
            attempt.runner.give_up(GONE_ON);
        }
        if let Some(why) = attempt.cut_off_why().map(str::to_owned) {
            attempt.runner.refuse(why);
        }
        for (approval, answer) in run.answers {
            attempt.runner.answer(approval, answer);
        }
        Ok(())
    }

    async fn hand(&mut self, message: MessageId) -> Result<(), Stop> {
        let Some(attempt) = self.outside.attempt_mut().filter(|attempt| !attempt.has_handed()) else {
            return Ok(());
        };
        let kept = attempt.take_kept_words();
        let message = self.message_of(message, kept).await?;
        if let Some(attempt) = self.outside.attempt_mut() {
            attempt.hand(message);
        }
        Ok(())
    }

    /// Adds words to the turn, each message once and in order, after the one that it began with.
    async fn add_steered(&mut self, steered: &[MessageId]) -> Result<(), Stop> {
        for message in steered {
            let Some(attempt) = self.outside.attempt().filter(|attempt| attempt.has_handed()) else { break };
            if attempt.runner.has_added(*message) {
                continue;
            }
            let message = self.message_of(*message, None).await?;
            let Some(attempt) = self.outside.attempt_mut() else { break };
            if !attempt.runner.add(message) {
                break; // It is ordered again next time; what comes after it does not overtake it.
            }
        }
        Ok(())
    }

    /// The holder of what this session waits for, in words for people.
    pub(super) async fn holder_of(&self, claim: &Claim) -> Result<Option<String>, Stop> {
        let directory = &self.scope.directory;
        if *claim != Claim::directory(directory) {
            return Ok(None);
        }
        // Whoever reads this log may not be one who sees that session: `Views::wait_of` says who it is to those who do.
        let directory = directory.for_readers();
        Ok(Some(format!("another session works in {directory}; this one goes on when it has finished there")))
    }
}
