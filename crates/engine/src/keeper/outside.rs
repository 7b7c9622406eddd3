//! Makes what goes on outside match what ought to: attempts, burials and errands.

use super::{Forking, Keeper, Stop, calling};
use crate::accounts::NoAccount;
use crate::changes::Watch;
use crate::errand::{Outgoing, Outing};
use crate::story::{LaunchForm, Progress, Story};
use crate::turn::{Care, Runner};
use agent::{Account, Agent, Launch, Message};
use kernel::{Away, Claim, Due, ErrandKind, Fence, MessageId, Run, Stage, Step};
use std::time::Duration;
use store::Entry;

impl Keeper {
    pub(super) async fn match_outside(&mut self) -> Result<(), Stop> {
        match self.state.due(self.term) {
            Due::Nothing => {
                if self.runner.take().is_some() {
                    self.engine.call_back().inspect(|door| door.close(self.session));
                }
            }
            Due::Errand(away) => {
                let is_new = self.outing.as_ref().is_none_or(|outing| outing.errand != away.errand);
                // What is begun when the node goes down is left half done; the next one does it.
                if is_new && !self.closing {
                    self.set_out(&away).await?;
                }
            }
            Due::Bury(fence) => {
                if self.runner.as_ref().is_none_or(|runner| runner.fence != fence) {
                    self.bury(fence);
                }
            }
            Due::Run(run) => {
                if self.runner.as_ref().is_none_or(|runner| runner.fence != run.fence) {
                    self.start(&run).await?;
                }
                self.tend(run).await?;
            }
        }
        Ok(())
    }

    async fn set_out(&mut self, away: &Away) -> Result<(), Stop> {
        let whom = self.outgoing().await?;
        self.outing = Some(Outing::begin(&self.engine, whom, away));
        Ok(())
    }

    pub(super) async fn outgoing(&self) -> Result<Outgoing, Stop> {
        Ok(Outgoing {
            session: self.session,
            scope: self.scope.clone(),
            agent: self.agent(),
            whose: self.owner().await?,
            walled: self.engine.needs_wall().await?,
            term: self.term,
            // The tree of a fork is made once, from its origin's; later it enters worktrees like anybody.
            fork_of: self.origin.filter(|_| self.state.pending().is_some_and(|pending| pending.from_start)),
        })
    }

    /// What an attempt that we lost has changed is seen once nothing of it is left.
    fn bury(&mut self, fence: Fence) {
        let handed = self.state.running().is_some_and(|running| match running.stage {
            Stage::Working { .. } => true,
            Stage::Stopping { handed, .. } => handed,
            Stage::Starting { .. } | Stage::Resting { .. } => false,
        });
        let watch = handed.then(|| self.watch(fence));
        self.runner = Some(Runner::burial(&self.engine, self.agent(), fence, self.session, watch));
    }

    fn watch(&self, fence: Fence) -> Watch {
        Watch::new(&self.engine, self.session, fence.turn, &self.scope.directory)
    }

    async fn start(&mut self, run: &Run) -> Result<(), Stop> {
        self.release_before().await;
        let Some(agent) = self.agent() else {
            let reason = format!("there is no agent called {:?} any more", self.scope.agent);
            self.runner = Some(Runner::refused(&self.engine, run.fence, reason));
            return Ok(());
        };
        let mut launch = Launch::new(self.session, run.fence, run.message, self.scope.directory.clone());
        launch.model = self.scope.model.clone();
        launch.mode = self.scope.mode.clone();
        launch.whose = self.owner().await?;
        launch.walled = self.engine.needs_wall().await?;
        launch.account = match self.engine.account_of(self.org, run.by, &*agent).await {
            Ok(account) => account,
            Err(NoAccount::Store(error)) => return Err(Stop::Store(error)),
            Err(NoAccount::Unusable(reason)) => {
                self.runner = Some(Runner::refused(&self.engine, run.fence, reason));
                return Ok(());
            }
        };
        let text = self.text_of(run.message).await?;
        let remembers = self.remind(&*agent, run, &text, &mut launch).await?;
        self.let_call_back(&mut launch, run.by);
        self.words = None;
        self.unwritten_since = None;
        self.parts = 0;
        self.progress = Progress::default();
        self.preface = self.launched(&*agent, &launch).into_iter().chain(remembers).collect();
        let is_tracked = self.untracked.as_ref() != Some(&self.scope.directory);
        let forking = self.origin.filter(|_| launch.fork).map(|origin| Forking::of(&self.engine, origin));
        let care = Care {
            forking,
            watch: is_tracked.then(|| self.watch(run.fence)),
            commands_wait: self.commands_wait(&*agent, &text),
        };
        self.runner = Some(Runner::attempt(&self.engine, agent, launch, care));
        Ok(())
    }

    /// How long a message that may be a command waits until the agent has listed its commands.
    fn commands_wait(&self, agent: &dyn Agent, text: &str) -> Option<Duration> {
        let waits = text.starts_with('/')
            && agent.abilities().commands
            && !self.state.has_learned(ErrandKind::Commands);
        waits.then_some(self.engine.limits().commands_wait)
    }

    /// How the person is called whose session this is.
    async fn owner(&self) -> Result<String, Stop> {
        let found = self.engine.store().session(self.session).await?;
        let Some((record, _)) = found else { return Ok(String::new()) };
        Ok(self.engine.handle_in(record.org, record.owner).await?.unwrap_or_default())
    }

    pub(super) async fn text_of(&self, message: MessageId) -> Result<String, Stop> {
        let words = self.engine.store().words(message).await?;
        Ok(words.and_then(|words| crate::inbound::plain_text(&words)).unwrap_or_default())
    }

    /// How this attempt is started, for people, if it is not as the one before.
    fn launched(&mut self, agent: &dyn Agent, launch: &Launch) -> Option<Entry> {
        let setup = agent.setup();
        let story = Story::Launch(LaunchForm {
            agent: agent.name(),
            kind: setup.kind,
            program: &setup.program,
            version: self.engine.roster().version(agent.name()),
            home: &setup.home,
            directory: &self.scope.directory,
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
            Step::Stop => self.runner.iter_mut().for_each(Runner::stop),
        }
        let Some(runner) = &mut self.runner else { return Ok(()) };
        for (approval, answer) in run.answers {
            runner.answer(approval, answer);
        }
        Ok(())
    }

    async fn hand(&mut self, message: MessageId) -> Result<(), Stop> {
        if self.runner.as_ref().is_none_or(Runner::has_handed) {
            return Ok(());
        }
        calling::is_good(self.credential.take()).await;
        let words = self.text_of(message).await?;
        let text = match &self.preamble {
            Some(preamble) => format!("{preamble}{words}"),
            None => words,
        };
        if let Some(runner) = &mut self.runner {
            runner.hand(Message { id: message, text });
            if runner.has_handed() {
                self.preamble = None;
            }
        }
        Ok(())
    }

    /// Adds words to the turn, each message once and in order, after the one that it began with.
    async fn add_steered(&mut self, steered: &[MessageId]) -> Result<(), Stop> {
        for message in steered {
            let Some(runner) = self.runner.as_ref().filter(|runner| runner.has_handed()) else { break };
            if runner.has_added(*message) {
                continue;
            }
            let text = self.text_of(*message).await?;
            let Some(runner) = &mut self.runner else { break };
            if !runner.add(Message { id: *message, text }) {
                break; // It is ordered again next time; what comes after it does not overtake it.
            }
        }
        Ok(())
    }

    /// What people are told of who has what this session waits for.
    pub(super) async fn holder_of(&self, claim: &Claim) -> Result<Option<String>, Stop> {
        let directory = &self.scope.directory;
        if *claim != Claim::directory(directory) {
            return Ok(None);
        }
        let holder = self.engine.store().holder(claim.clone()).await?;
        // Who it is in another org is nobody's business here.
        let who = match holder.filter(|(_, org)| *org == self.org) {
            Some((session, _)) => format!("session {session}"),
            None => "another session".to_owned(),
        };
        Ok(Some(format!("{who} works in {directory}; this one goes on when it has finished there")))
    }
}
