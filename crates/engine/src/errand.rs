//! Errands outside between turns: a worktree is made and set up, a turn is undone or redone; and chores.
//!
//! A `RunningErrand` is one errand of one keeper. It has no store; it says stories for people, and at last brings back a
//! `Return` for the kernel. Doing it again after a crash ends the same way, so the next keeper simply does.

use crate::merged_tree::merged_text;
use crate::progress::{ProgressTeller, WorkPhase, WorkProgress};
use crate::runner_ports::RunnerPorts;
use crate::script_room::{self, ScriptRoom};
use crate::story::Story;
use crate::{MergedTree, OwnedSession, RemovedTree, Scripts, TreeMove, TreeSeen, TreesError, background};
use agent::{Agent, AgentEvent, Background, Launch, Message, Running, TreeName, Trouble};
use kernel::{
    Attempt, Away, Chore, Errand, ErrandKind, Fence, GroundPath, MergeHow, MessageId, NewWorktree, Origin,
    Return, Scope, Term, Turn, UndoFiles, What,
};
use std::sync::Arc;
use std::time::Duration;
use store::Entry;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

/// The outputs that an errand may be ahead of its keeper.
const OUTPUT_AHEAD_MAX: usize = 32;
/// The part of a script's output that people are shown in one fact, and in all of them.
const OUTPUT_PIECE_BYTES: usize = 8 * 1024;
const OUTPUT_BYTES_MAX: usize = 256 * 1024;
/// The longest name of a branch that is written down with a scope: as long as one that somebody may ask for.
const BRANCH_BYTES_MAX: usize = 255;
/// The time for which a piece of output waits for more.
const OUTPUT_WAIT: Duration = Duration::from_secs(1);
/// The time between two words about its progress, however often whoever does it says one.
const PROGRESS_EVERY: Duration = Duration::from_millis(250);
/// The longest that a script that is over time may take to go by itself.
const SCRIPT_GRACE_MS: u64 = 2_000;

/// The output of an errand.
#[derive(Debug)]
pub(crate) enum ErrandOutput {
    /// Something people should see.
    Story(Box<Entry>),
    /// It is over.
    Back { errand: Errand, came: Return },
    /// So far it is.
    Progress(WorkProgress),
    /// It was a chore, and is over: what came of it, or why it could not be done.
    Chored(Box<Result<ChoreDone, String>>),
}

/// A chore that was done.
#[derive(Debug)]
pub(crate) struct ChoreDone {
    /// The part that people should see, if there is one.
    pub(crate) story: Option<Entry>,
    /// The answer to whoever asked for it, if it has one that cannot be looked up.
    pub(crate) told: Option<String>,
}

/// The session that something is done for outside, with everything of it that has to be known there.
#[derive(Clone)]
pub(crate) struct ErrandSession {
    pub(crate) of: OwnedSession,
    pub(crate) scope: Scope,
    /// The agent of the scope, if there is one of that name.
    pub(crate) agent: Option<Arc<dyn Agent>>,
    pub(crate) term: Term,
    /// Of which session's tree the worktree is made.
    pub(crate) fork_of: Option<Origin>,
}

/// A keeper's end of an errand.
#[derive(Debug)]
pub(crate) struct RunningErrand {
    pub(crate) errand: Errand,
    kind: ErrandKind,
    output: mpsc::Receiver<ErrandOutput>,
    teller: ProgressTeller,
}

impl RunningErrand {
    /// Sets out.
    pub(crate) fn begin(
        ports: &RunnerPorts,
        whom: ErrandSession,
        away: &Away,
        teller: ProgressTeller,
    ) -> Self {
        let (say, output) = mpsc::channel(OUTPUT_AHEAD_MAX);
        let (runner, away) = (ErrandRunner { ports: ports.clone(), whom }, away.clone());
        let (errand, kind) = (away.errand, kind_of(&away.what));
        ports.tasks.spawn(async move {
            let heard = runner.progress();
            // A keeper that does not listen any more has died; the next one does it again.
            let came = match with_progress(runner.run(&away.what, &say), heard, &say).await {
                Some(came) => came,
                None => return,
            };
            let _ = say.send(ErrandOutput::Back { errand, came }).await;
        });
        Self { errand, kind, output, teller }
    }

    pub(crate) fn tell(&mut self, progress: WorkProgress) {
        self.teller.tell(progress);
    }

    /// Its next output. Cancel-safe.
    pub(crate) async fn next(&mut self) -> ErrandOutput {
        match self.output.recv().await {
            Some(output) => output,
            // It never goes without a word; if it does, it panicked.
            None => ErrandOutput::Back { errand: self.errand, came: Return::Failed(self.kind) },
        }
    }

    /// Gives it up, and waits until nothing of it goes on.
    pub(crate) async fn part(mut self) {
        self.output.close();
        while self.output.recv().await.is_some() {}
    }
}

/// A keeper's end of a chore.
#[derive(Debug)]
pub(crate) struct RunningChore {
    output: mpsc::Receiver<ErrandOutput>,
    teller: ProgressTeller,
}

impl RunningChore {
    pub(crate) fn begin(
        ports: &RunnerPorts,
        whom: ErrandSession,
        chore: Chore,
        teller: ProgressTeller,
    ) -> Self {
        let (say, output) = mpsc::channel(OUTPUT_AHEAD_MAX);
        let runner = ErrandRunner { ports: ports.clone(), whom };
        ports.tasks.spawn(async move {
            let heard = runner.progress();
            // A keeper that does not listen any more has died, or goes down. The next one goes on with it.
            let came = match with_progress(runner.do_chore(chore, &say), heard, &say).await {
                Some(came) => came,
                None => return,
            };
            let _ = say.send(ErrandOutput::Chored(Box::new(came))).await;
        });
        Self { output, teller }
    }

    pub(crate) fn tell(&mut self, progress: WorkProgress) {
        self.teller.tell(progress);
    }

    /// Its next output. Cancel-safe.
    pub(crate) async fn next(&mut self) -> ErrandOutput {
        let panicked = || ErrandOutput::Chored(Box::new(Err("it broke off".to_owned())));
        self.output.recv().await.unwrap_or_else(panicked)
    }

    /// Gives it up, and waits until nothing of it goes on.
    pub(crate) async fn part(mut self) {
        self.output.close();
        while self.output.recv().await.is_some() {}
    }
}

/// Does the work, and says how far it is. None if nobody listens any more.
async fn with_progress<T>(
    work: impl Future<Output = T>,
    mut heard: watch::Receiver<Option<WorkProgress>>,
    say: &mpsc::Sender<ErrandOutput>,
) -> Option<T> {
    let (mut work, mut next) = (std::pin::pin!(work), Instant::now());
    loop {
        tokio::select! {
            biased;
            () = say.closed() => return None,
            came = &mut work => return Some(came),
            progress = next_progress(&mut heard, next) => {
                next = Instant::now() + PROGRESS_EVERY;
                // A keeper that is behind hears the next one.
                let _ = say.try_send(ErrandOutput::Progress(progress));
            }
        }
    }
}

/// The next word about it, not before that moment; never one where nobody says any. Cancel-safe.
async fn next_progress(heard: &mut watch::Receiver<Option<WorkProgress>>, moment: Instant) -> WorkProgress {
    tokio::time::sleep_until(moment).await;
    loop {
        if heard.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        if let Some(progress) = *heard.borrow_and_update() {
            return progress;
        }
    }
}

fn kind_of(what: &What) -> ErrandKind {
    match what {
        What::Enter(_) => ErrandKind::Enter,
        What::Undo { .. } => ErrandKind::Undo,
        What::Redo { .. } => ErrandKind::Redo,
    }
}

/// Does what is to be done outside for one session.
struct ErrandRunner {
    ports: RunnerPorts,
    whom: ErrandSession,
}

impl ErrandRunner {
    /// The progress of what is done on the session's ground from now on.
    fn progress(&self) -> watch::Receiver<Option<WorkProgress>> {
        self.ports.trees.progress(self.whom.of.session)
    }

    async fn run(&self, what: &What, say: &mpsc::Sender<ErrandOutput>) -> Return {
        let before = match what {
            What::Enter(_) => "before the worktree was entered",
            What::Undo { .. } => "before the undo",
            What::Redo { .. } => "before the undo was taken back",
        };
        self.end_leftovers(before, say).await;
        let done = match what {
            What::Enter(wanted) => self.enter(wanted, say).await,
            What::Undo { turn, files } => self.undo(*turn, files, say).await,
            What::Redo { turn } => self.redo(*turn, say).await,
        };
        match done {
            Ok(came) => came,
            Err(why) => {
                notice(say, Turn(0), &why).await;
                Return::Failed(kind_of(what))
            }
        }
    }

    /// Nothing of the scope has changed if the worktree cannot be made or set up; what was made is found made next time.
    async fn enter(&self, wanted: &NewWorktree, say: &mpsc::Sender<ErrandOutput>) -> Result<Return, String> {
        let (whom, trees) = (&self.whom, &self.ports.trees);
        let home = whom.scope.directory.clone();
        let before = script_room::bytes_noted(&**trees, whom.of.session, &wanted.name).await;
        let (from, new) = (home.clone(), wanted.clone());
        let entered = match whom.fork_of {
            Some(origin) => trees.fork(whom.of.clone(), from, new, origin.session, origin.turn).await,
            None => trees.enter(whom.of.clone(), from, new).await,
        };
        let entered = entered.map_err(|why| format!("the worktree could not be entered: {why}"))?;
        notice(say, Turn(0), &format!("worktree {} on branch {}", entered.name, entered.branch)).await;
        for known in &entered.notices {
            notice(say, Turn(0), known).await;
        }
        if let Some(Scripts { setup: Some(setup), wait, .. }) = self.ports.scripts.get(&whom.scope.agent) {
            let mut output = Output::of(WorkPhase::Setup, say);
            let room = ScriptRoom::of(&**trees, &whom.of, &entered.name, before);
            let script = WorktreeScript { script: &**setup, wait: *wait, room: room.as_ref() };
            let mut ran = script.run(whom, &entered.directory, &mut output).await;
            output.end().await;
            if let (Ok(()), Some(room)) = (&ran, &room) {
                // What it has written since the last look.
                ran = room.look().await.map_or(Ok(()), Err);
            }
            ran.map_err(|why| format!("the worktree was not entered, because its setup failed: {why}"))?;
        }
        let branch = Some(agent::bounded(&entered.branch, BRANCH_BYTES_MAX));
        Ok(Return::Entered { directory: entered.directory, home, branch })
    }

    async fn undo(
        &self,
        turn: Turn,
        files: &UndoFiles,
        say: &mpsc::Sender<ErrandOutput>,
    ) -> Result<Return, String> {
        let whom = &self.whom;
        let undone = self.ports.trees.undo(whom.of.clone(), &whom.scope.directory, turn, files.clone()).await;
        let undone = undone.map_err(|why| format!("turn {turn} could not be undone: {why}"))?;
        notice(say, turn, &undone_words(turn, undone.files.len(), &undone.moves)).await;
        Ok(Return::Undone)
    }

    async fn redo(&self, turn: Turn, say: &mpsc::Sender<ErrandOutput>) -> Result<Return, String> {
        let whom = &self.whom;
        let redone = self.ports.trees.redo(whom.of.clone(), &whom.scope.directory, turn).await;
        let redone =
            redone.map_err(|why| format!("the undo of turn {turn} could not be taken back: {why}"))?;
        let words = match redone.files.len() {
            0 => format!("the undo of turn {turn} was taken back before"),
            1 => format!("the undo of turn {turn} is taken back: 1 file is as before it"),
            files => format!("the undo of turn {turn} is taken back: {files} files are as before it"),
        };
        notice(say, turn, &words).await;
        Ok(Return::Redone)
    }

    /// Lets an agent's teardown script say goodbye to a worktree that is about to be removed.
    async fn tear_down(
        &self,
        name: &str,
        seen: &TreeSeen,
        say: &mpsc::Sender<ErrandOutput>,
    ) -> Result<(), String> {
        let whom = &self.whom;
        let scripts = self.ports.scripts.get(&whom.scope.agent);
        let Some(Scripts { teardown: Some(teardown), wait, .. }) = scripts else {
            return Ok(());
        };
        let mut output = Output::of(WorkPhase::Teardown, say);
        let room = ScriptRoom::of(&*self.ports.trees, &whom.of, name, seen.bytes);
        let script = WorktreeScript { script: &**teardown, wait: *wait, room: room.as_ref() };
        let ran = script.run(whom, &seen.directory, &mut output).await;
        output.end().await;
        ran.map_err(|why| format!("its teardown failed: {why}; `homing log` has what it printed"))
    }

    /// Removes a worktree that the session is not in, gives one back, or ends what runs in the background. Nothing else of the session goes on meanwhile. What
    /// was done before, and never said, is found done.
    async fn do_chore(&self, chore: Chore, say: &mpsc::Sender<ErrandOutput>) -> Result<ChoreDone, String> {
        let mut told = None;
        let (name, change, reference) = match chore {
            Chore::EndBackground => return self.end_background().await,
            Chore::Remove { name, teardown } => {
                let reference = self.remove(&name, teardown, say).await?;
                (name, "removed", reference)
            }
            Chore::Restore { name, reference } => {
                self.restore(&name, &reference, say).await?;
                (name, "restored", reference)
            }
            Chore::Merge { name, how } => {
                let merged = self.merge(&name, how, say).await?;
                told = Some(merged_text(&merged));
                let reference = merged.safety.unwrap_or_default();
                let change = match how {
                    MergeHow::Merge => "merged",
                    MergeHow::Apply => "applied",
                };
                (name, change, reference)
            }
        };
        let story = Some(Story::Worktree { name: &name, change, reference: &reference }.entry(Turn(0)));
        Ok(ChoreDone { story, told })
    }

    async fn end_background(&self) -> Result<ChoreDone, String> {
        let ended = match &self.whom.agent {
            Some(agent) => background::end(&**agent, self.whom.of.session).await?,
            None => Background::default(),
        };
        let words = background::ended_words(&ended, "as somebody asked");
        let story = (!ended.is_empty()).then(|| Story::Notice { text: &words }.entry(Turn(0)));
        Ok(ChoreDone { story, told: Some(background::text(&ended)) })
    }

    /// Answers under which reference everything is kept.
    async fn remove(
        &self,
        name: &str,
        teardown: bool,
        say: &mpsc::Sender<ErrandOutput>,
    ) -> Result<String, String> {
        let (of, trees) = (&self.whom.of, &self.ports.trees);
        match trees.look(of.clone(), name).await? {
            Some(seen) => {
                if teardown && !seen.is_missing {
                    self.end_leftovers("before the teardown script", say).await;
                    self.tear_down(name, &seen, say).await?;
                }
            }
            None => {
                let before = self.kept(|removed| removed.name == name).await?;
                if let Some(before) = before {
                    return Ok(before.reference);
                }
            }
        }
        Ok(trees.remove(of.clone(), name).await?.reference)
    }

    async fn restore(
        &self,
        name: &str,
        reference: &str,
        say: &mpsc::Sender<ErrandOutput>,
    ) -> Result<(), String> {
        let (of, trees) = (&self.whom.of, &self.ports.trees);
        let kept = self.kept(|removed| removed.name == name && removed.reference == reference).await?;
        match kept {
            Some(removed) => Ok(trees.restore(of.clone(), removed).await.map(drop)?),
            None => match trees.look(of.clone(), name).await? {
                Some(seen) if !seen.is_missing => Ok(()),
                // It was never removed, but deleted by hand.
                Some(seen) if reference.is_empty() => {
                    let new = NewWorktree { name: name.to_owned(), base: None, branch: None };
                    for known in trees.enter(of.clone(), seen.repository, new).await?.notices {
                        notice(say, Turn(0), &known).await;
                    }
                    Ok(())
                }
                Some(_) | None => Err(format!("nothing is kept as {reference}")),
            },
        }
    }

    async fn merge(
        &self,
        name: &str,
        how: MergeHow,
        say: &mpsc::Sender<ErrandOutput>,
    ) -> Result<MergedTree, String> {
        let merged = self.ports.trees.merge(self.whom.of.clone(), name, how, false).await?;
        let branch = merged.branch.as_deref().map_or_else(String::new, |branch| format!("{branch} in "));
        let into = merged.into.for_readers();
        let words = match merged.files.len() {
            0 => format!("{branch}{into} has everything of {name}"),
            1 => format!("1 file of {branch}{into} has changed by {name}"),
            files => format!("{files} files of {branch}{into} have changed by {name}"),
        };
        notice(say, Turn(0), &words).await;
        Ok(merged)
    }

    /// The newest of the session's removed worktrees that fits.
    async fn kept(&self, fits: impl Fn(&RemovedTree) -> bool) -> Result<Option<RemovedTree>, TreesError> {
        let removed = self.ports.trees.removed().await?;
        Ok(removed.into_iter().find(|removed| removed.session == self.whom.of.session && fits(removed)))
    }

    /// A process that is kept stands where the session is or was, and a script of an earlier try may still run.
    async fn end_leftovers(&self, when: &str, say: &mpsc::Sender<ErrandOutput>) {
        let Some(agent) = &self.whom.agent else { return };
        let ended = agent.release(self.whom.of.session).await;
        crate::turn::end_leftovers(&**agent, &TreeName::of(self.whom.of.session)).await;
        if !ended.is_empty() {
            notice(say, Turn(0), &background::ended_words(&ended, when)).await;
        }
    }
}

/// An undo is about files: what the turn did to the repository itself is named with how to take it back.
fn undone_words(turn: Turn, files: usize, moves: &[TreeMove]) -> String {
    let mut words = match files {
        0 => format!("turn {turn} changed no file"),
        1 => format!("turn {turn} undone: 1 file is as before"),
        files => format!("turn {turn} undone: {files} files are as before"),
    };
    for TreeMove { words: moved, command } in moves {
        words.push_str(&format!("; but {moved}, which `{command}` takes back"));
    }
    words
}

async fn notice(say: &mpsc::Sender<ErrandOutput>, turn: Turn, text: &str) {
    // Whoever does not listen any more has died, and so will we.
    let _ = say.send(ErrandOutput::Story(Box::new(Story::Notice { text }.entry(turn)))).await;
}

/// The output of a script, on its way into the story.
struct Output<'a> {
    stage: WorkPhase,
    say: &'a mpsc::Sender<ErrandOutput>,
    pending: String,
    since: Option<Instant>,
    said: usize,
    is_cut: bool,
}

impl<'a> Output<'a> {
    fn of(stage: WorkPhase, say: &'a mpsc::Sender<ErrandOutput>) -> Self {
        let _ = say.try_send(ErrandOutput::Progress(WorkProgress::at(stage)));
        Self { stage, say, pending: String::new(), since: None, said: 0, is_cut: false }
    }

    async fn hear(&mut self, text: &str) {
        let room = OUTPUT_BYTES_MAX - self.said - self.pending.len();
        let kept = &text[..text.floor_char_boundary(room.min(text.len()))];
        self.pending.push_str(kept);
        if kept.len() < text.len() && !std::mem::replace(&mut self.is_cut, true) {
            self.pending.push('…');
        }
        self.since.get_or_insert_with(Instant::now);
        if self.pending.len() >= OUTPUT_PIECE_BYTES {
            self.end().await;
        }
    }

    /// Says what has been heard.
    async fn end(&mut self) {
        self.since = None;
        let output = std::mem::take(&mut self.pending);
        if output.is_empty() {
            return;
        }
        let story = Story::Script { stage: self.stage.word(), offset: self.said as u64, output: &output };
        let entry = Box::new(story.entry(Turn(0)));
        self.said = (self.said + output.len()).min(OUTPUT_BYTES_MAX);
        let _ = self.say.send(ErrandOutput::Story(entry)).await;
        let progress = WorkProgress { bytes: self.said as u64, ..WorkProgress::at(self.stage) };
        let _ = self.say.try_send(ErrandOutput::Progress(progress));
    }

    async fn waited(&self) {
        match self.since {
            Some(since) => tokio::time::sleep_until(since + OUTPUT_WAIT).await,
            None => std::future::pending().await,
        }
    }
}

/// A script that is run as a program is run as an agent: behind the wall, below a supervisor.
struct WorktreeScript<'a> {
    script: &'a dyn Agent,
    /// The longest that it may take.
    wait: Duration,
    /// The room that it has, if that is bounded.
    room: Option<&'a ScriptRoom<'a>>,
}

/// The end of a script.
enum ScriptEnd {
    Itself(Result<(), Trouble>),
    Late,
    /// It takes more room than it has.
    Beyond(String),
}

impl WorktreeScript<'_> {
    /// When this answers, nothing of it is left.
    async fn run(
        &self,
        whom: &ErrandSession,
        directory: &GroundPath,
        output: &mut Output<'_>,
    ) -> Result<(), String> {
        let fence = Fence { term: whom.term, epoch: kernel::Epoch(0), turn: Turn(0), attempt: Attempt(0) };
        let mut launch = Launch::new(whom.of.session, fence, MessageId::from_bits(0), directory.clone());
        launch.whose.clone_from(&whom.of.whose);
        launch.walled = whom.of.walled;
        let tree = launch.tree.clone();
        let started = self.script.start(launch).await.map_err(|trouble| trouble.detail);
        let ran = match started {
            Ok(mut running) => self.until_over(&mut *running, output).await,
            Err(why) => Err(why),
        };
        if ran.is_err() {
            crate::turn::end_leftovers(self.script, &tree).await;
        }
        ran
    }

    async fn until_over(&self, running: &mut dyn Running, output: &mut Output<'_>) -> Result<(), String> {
        let until = Instant::now() + self.wait;
        let beyond = async {
            match self.room {
                Some(room) => room.exceeded().await,
                None => std::future::pending().await,
            }
        };
        let end = tokio::select! {
            biased;
            ran = script_over(running, output) => ScriptEnd::Itself(ran),
            why = beyond => ScriptEnd::Beyond(why),
            () = tokio::time::sleep_until(until) => ScriptEnd::Late,
        };
        match end {
            ScriptEnd::Itself(ran) => ran.map_err(|trouble| trouble.detail),
            ScriptEnd::Late => {
                running.stop(SCRIPT_GRACE_MS).await;
                Err(format!("it took longer than {} seconds", self.wait.as_secs()))
            }
            ScriptEnd::Beyond(why) => {
                // Whoever writes too much gets no time to write more.
                running.stop(0).await;
                Err(why)
            }
        }
    }
}

/// Listens until it is over.
async fn script_over(running: &mut dyn Running, output: &mut Output<'_>) -> Result<(), Trouble> {
    loop {
        let event = tokio::select! {
            biased;
            event = running.next() => event,
            () = output.waited() => {
                output.end().await;
                continue;
            }
        };
        match event {
            AgentEvent::Ready { .. } => {
                running.hand(Message::new(MessageId::from_bits(0), "")).await?;
            }
            AgentEvent::Text { text } => output.hear(&text).await,
            AgentEvent::Notice { text } | AgentEvent::Warned { text } => {
                output.hear(&format!("{text}\n")).await
            }
            AgentEvent::Finished { .. } => return Ok(()),
            AgentEvent::Failed(trouble) => return Err(trouble),
            AgentEvent::Died { detail, .. } => return Err(Trouble::transient(detail)),
            // A script is no agent: it has nothing else to say.
            _ => {}
        }
    }
}
