//! An agent that talks in lines, as a `Running`: one attempt in one process, which may be kept for the next.
//!
//! Everything that is particular to an agent is in its `AgentProtocol`, which is pure. What is the same for all is here: lines
//! are cut to a bound, a turn has a bound of time and of output, the terminal event is held back until the whole tree is
//! gone or the process is kept, an end without one is a death, and a stop is polite before it is not.

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agent::{
    AgentEvent, Background, Launch, Message, QuestionAnswer, Reply, Running, Steered, TreeEnd, Trouble,
    bounded,
};
use kernel::{Failure, GroundPath};
use processes::{
    EndedTree, PIECE_BYTES_MAX, ProcessCount, ProcessError, ProcessList, ProcessTree, TreeEvent, TreeExit,
    end_tree,
};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::agent_protocol::{AgentProtocol, ProtocolOutput};
use crate::background::{BackgroundPolicy, background};
use crate::kept_processes::KeptProcesses;
use crate::line_reader::{Line, LineReader};
use crate::program::trouble;
use crate::turn_bounds::{TurnBounds, amount};

/// The part of an agent's complaints that is kept, for the story of its death.
const COMPLAINT_BYTES_MAX: usize = 4 * 1024;
/// The longest that an agent may take to leave after it said that it is done. Then it is ended, and nobody is hurt.
const LEAVE_WAIT: Duration = Duration::from_millis(2_000);
/// The longest that the supervisor may take to end a tree. It promises two seconds; then we do it ourselves.
const KILL_WAIT: Duration = Duration::from_millis(4_000);
/// The longest that a supervisor may take to count its tree, on a machine that has other things to do. Then the process
/// is not kept.
const COUNT_WAIT: Duration = Duration::from_millis(4_000);
/// The pause before we count again what should not be there.
const RECOUNT_PAUSE: Duration = Duration::from_millis(100);
/// The longest that an agent may take to say whether it has taken words that were added to its turn.
const STEER_WAIT: Duration = Duration::from_secs(10);
/// Events that are kept while an attempt is being stopped. What it says after that is no part of any answer.
const EVENTS_WHILE_STOPPING_MAX: usize = 4_096;

/// A second line to an agent that does not talk over its own input and output: a task at the other end says what it
/// hears in lines and takes what we say. Dropping it ends the task.
#[derive(Debug)]
pub(crate) struct SideChannel {
    pub(crate) to: mpsc::Sender<Vec<u8>>,
    pub(crate) from: mpsc::Receiver<String>,
}

/// A process and whoever understands it.
pub(crate) struct AgentProcess<T> {
    pub(crate) protocol: T,
    pub(crate) tree: ProcessTree,
    pub(crate) side: Option<SideChannel>,
    pub(crate) lines: LineReader,
    /// The processes that were there when it was first ready.
    pub(crate) processes: Option<ProcessCount>,
    /// The background when that was last asked; nothing unless it is kept.
    pub(crate) background: ProcessList,
}

impl<T: AgentProtocol> AgentProcess<T> {
    pub(crate) fn new(protocol: T, tree: ProcessTree, side: Option<SideChannel>) -> Self {
        let (lines, background) = (LineReader::default(), ProcessList::default());
        Self { protocol, tree, side, lines, processes: None, background }
    }

    /// The next event of the process. Cancel-safe.
    pub(crate) async fn next(&mut self) -> ProcessEvent {
        let Some(side) = &mut self.side else { return ProcessEvent::Tree(self.tree.next().await) };
        tokio::select! {
            event = self.tree.next() => ProcessEvent::Tree(event),
            Some(line) = side.from.recv() => ProcessEvent::Side(line),
        }
    }

    /// Says to the agent what its protocol wants said.
    pub(crate) async fn say(&mut self, bytes: &[u8]) -> Result<(), Trouble> {
        match &self.side {
            None => self.tree.input(bytes).await.map_err(trouble),
            Some(side) => {
                let gone = |_| Trouble::transient("the agent does not take words");
                side.to.send_timeout(bytes.to_vec(), processes::INPUT_WAIT).await.map_err(gone)
            }
        }
    }

    /// Lets the protocol read what came, and answers what it made of it.
    pub(crate) fn read(&mut self, line: Line) -> ProtocolOutput {
        let mut out = ProtocolOutput::default();
        match line {
            Line::Whole(text) => self.protocol.read(&text, &mut out),
            Line::TooLong { head, tail } => self.protocol.read_ends(&head, &tail, &mut out),
        }
        out
    }

    /// The same for what came over the second line.
    pub(crate) fn read_side(&mut self, line: &str) -> ProtocolOutput {
        let mut out = ProtocolOutput::default();
        self.protocol.read_side(line, &mut out);
        out
    }
}

/// Something that happened in a process.
pub(crate) enum ProcessEvent {
    Tree(TreeEvent),
    Side(String),
}

/// One attempt of an agent that talks in lines.
pub(crate) struct RunningAgent<T: AgentProtocol> {
    /// The process. Gone when it is kept for the next attempt.
    parts: Option<AgentProcess<T>>,
    launch: Launch,
    locks: PathBuf,
    keep: Option<Arc<KeptProcesses<T>>>,
    bounds: TurnBounds,
    complaint: Vec<u8>,
    output_bytes: u64,
    said: VecDeque<AgentEvent>,
    /// The agent's terminal event, held back until everything is gone.
    last: Option<AgentEvent>,
    /// The bytes for the agent, when there is time to say it.
    unsaid: Vec<u8>,
    /// True if nothing comes after that.
    ends_input: bool,
    phase: Phase,
    /// Until when what is going on may take; then it is ended.
    until: Instant,
    /// When something was last heard of it, or said to it.
    heard_at: Instant,
    /// The agent's own keys of the questions that are open. While there are any, it is not silent: it waits.
    asked: BTreeSet<String>,
    is_ready: bool,
    /// It was handed its message.
    is_handed: bool,
    /// The fate of the words that were added to the turn.
    steered: Option<Steered>,
    /// The end of a lost tree, once it was begun; a dropped future does not begin another.
    ending: Option<JoinHandle<Result<EndedTree, ProcessError>>>,
    /// Somebody waits for the end and nobody takes what is said.
    is_stopping: bool,
    /// It was ended because it took more than it may.
    is_over: bool,
    /// It was told what the turn leaves running, and that it is ended.
    has_told_left: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// It runs.
    Talking,
    /// It has said its last and may be kept; the supervisor has until then to count what is there. What is there after
    /// `settled` and was not at the beginning is no longer taken for the agent's own.
    Counting { until: Instant, settled: Instant },
    /// There was more than at the beginning. It may be the agent's own and about to go, so it is counted again at `at`.
    Recounting { at: Instant, settled: Instant },
    /// It has said its last; it may leave by itself until then.
    Leaving { until: Instant },
    /// It was told to end; the supervisor has until then to see it gone.
    Ending { until: Instant },
    /// Its supervisor is gone, so its tree has to be ended from here.
    Lost,
    /// Nothing is left, or what is left cannot be ended, or it is kept.
    Over(TreeEnd),
}

impl<T: AgentProtocol> RunningAgent<T> {
    /// An attempt in a new process, or in one that was kept: then `parts` has been here before.
    pub(crate) fn new(
        mut parts: AgentProcess<T>,
        launch: Launch,
        locks: PathBuf,
        keep: Option<Arc<KeptProcesses<T>>>,
        bounds: TurnBounds,
    ) -> Self {
        let mut out = ProtocolOutput::default();
        match parts.processes {
            None => parts.protocol.open(&mut out),
            Some(_) => parts.protocol.again(&launch, &mut out),
        }
        let start_max = bounds.start_max;
        let mut running = Self {
            parts: Some(parts),
            launch,
            locks,
            keep,
            bounds,
            complaint: Vec::new(),
            output_bytes: 0,
            said: VecDeque::new(),
            last: None,
            unsaid: Vec::new(),
            ends_input: false,
            phase: Phase::Talking,
            until: Instant::now() + start_max,
            heard_at: Instant::now(),
            asked: BTreeSet::new(),
            is_ready: false,
            is_handed: false,
            steered: None,
            ending: None,
            is_stopping: false,
            is_over: false,
            has_told_left: false,
        };
        running.heed(out);
        running
    }

    /// Says first that what ran in the background when the server went is gone.
    pub(crate) fn tell_lost(&mut self, lost: &Background) {
        let text = format!(
            "what ran in the background was ended, because the server had gone in between: {}",
            lost.words()
        );
        self.said.push_front(AgentEvent::Notice { text });
        self.forget_background();
    }

    async fn hear(&mut self) -> AgentEvent {
        loop {
            if let Some(event) = self.said.pop_front() {
                return event;
            }
            if let Phase::Over(verified) = self.phase {
                return self.end(verified);
            }
            self.go_on().await;
        }
    }

    /// One step towards the end. Cancel-safe: what has happened is in `self` before the next await.
    async fn go_on(&mut self) {
        if self.has_unsaid() {
            if let Err(trouble) = self.say_piece().await {
                self.unsaid.clear();
                self.ends_input = false;
                self.finish(AgentEvent::Failed(trouble));
            }
            return;
        }
        let silent_at = self.silent_at();
        let Some(parts) = &mut self.parts else { return };
        let until = match self.phase {
            Phase::Talking => self.until,
            Phase::Counting { until, .. } | Phase::Leaving { until } | Phase::Ending { until } => until,
            Phase::Recounting { at, .. } => at,
            Phase::Lost => return self.end_lost_tree().await,
            Phase::Over(_) => return,
        };
        tokio::select! {
            biased;
            () = tokio::time::sleep_until(until) => self.be_late(),
            // What it has said while nobody listened is heard before it is called silent.
            heard = parts.next() => self.take(heard),
            () = tokio::time::sleep_until(silent_at.unwrap_or(until)), if silent_at.is_some() => {
                self.end_for(self.bounds.silent());
            }
        }
    }

    /// When it has been silent for too long, if it is to say something at all.
    fn silent_at(&self) -> Option<Instant> {
        let is_working = self.phase == Phase::Talking && self.is_handed && !self.is_stopping;
        let silence_max = self.bounds.silence_max.filter(|_| is_working && self.asked.is_empty())?;
        Some(self.heard_at + silence_max)
    }

    fn has_unsaid(&self) -> bool {
        !self.unsaid.is_empty() || self.ends_input
    }

    /// Some of what the protocol wants said. Cancel-safe: a piece is sent whole or stays unsaid.
    async fn say_piece(&mut self) -> Result<(), Trouble> {
        let Some(parts) = &mut self.parts else { return Err(Trouble::transient("the agent has gone")) };
        if self.unsaid.is_empty() {
            parts.tree.end_input().await.map_err(trouble)?;
            self.ends_input = false;
            return Ok(());
        }
        let piece =
            if parts.side.is_some() { self.unsaid.len() } else { self.unsaid.len().min(PIECE_BYTES_MAX) };
        parts.say(&self.unsaid[..piece]).await?;
        self.unsaid.drain(..piece);
        Ok(())
    }

    async fn end_lost_tree(&mut self) {
        let begin = || tokio::spawn(end_tree(self.locks.clone(), self.launch.tree.clone()));
        let ended = self.ending.get_or_insert_with(begin).await;
        self.ending = None;
        self.phase = Phase::Over(match ended {
            Ok(Ok(ended)) => TreeEnd { killed: ended.killed, gone: true },
            _ => TreeEnd { killed: 0, gone: false },
        });
        self.tell_background_ended();
    }

    fn be_late(&mut self) {
        match self.phase {
            Phase::Talking => {
                let last = match self.is_ready {
                    true => self.bounds.late_turn(),
                    false => self.bounds.late_start(),
                };
                self.end_for(last);
            }
            Phase::Counting { .. } => self.leave(),
            Phase::Recounting { settled, .. } => self.count_until(settled),
            Phase::Leaving { .. } => self.kill(),
            Phase::Ending { .. } => self.phase = Phase::Lost,
            Phase::Lost | Phase::Over(_) => {}
        }
    }

    fn take(&mut self, heard: ProcessEvent) {
        match heard {
            ProcessEvent::Side(line) => {
                let Some(parts) = &mut self.parts else { return };
                let out = parts.read_side(&line);
                self.heed(out);
            }
            ProcessEvent::Tree(TreeEvent::Output(bytes)) => {
                self.count_output(bytes.len());
                self.read_output(&bytes);
            }
            ProcessEvent::Tree(TreeEvent::Errors(bytes)) => {
                self.count_output(bytes.len());
                self.complaint.extend_from_slice(&bytes);
                let excess = self.complaint.len().saturating_sub(COMPLAINT_BYTES_MAX);
                self.complaint.drain(..excess);
            }
            ProcessEvent::Tree(TreeEvent::Counted(count)) => self.counted(count),
            ProcessEvent::Tree(TreeEvent::Listed(list)) => self.listed(list),
            ProcessEvent::Tree(TreeEvent::Exited(exit)) => self.exited(exit),
            ProcessEvent::Tree(TreeEvent::Lost) => self.phase = Phase::Lost,
        }
    }

    fn exited(&mut self, exit: TreeExit) {
        if let Some(line) = self.parts.as_mut().and_then(|parts| parts.lines.rest()) {
            self.read(line);
        }
        let limit = exit.limit.filter(|_| self.last.is_none() && !self.is_stopping);
        if let Some(limit) = limit {
            self.is_over = true;
            self.last = Some(self.bounds.exceeded_by_tree(limit));
        } else if self.last.is_none() {
            self.complain(exit);
        }
        // Those an agent has from the beginning are its own affair, and go with it.
        let own = self
            .parts
            .as_ref()
            .and_then(|parts| parts.processes)
            .map_or(0, |all| all.processes.saturating_sub(1));
        let is_told = self.tell_background_ended();
        let are_left = exit.killed > own && !self.is_over && !self.is_stopping && !is_told;
        if self.last.is_some() && are_left && self.leaves_on_eof() {
            let text = format!("ended {} processes that the agent had left behind", exit.killed);
            self.said.push_back(AgentEvent::Notice { text });
        }
        self.phase = Phase::Over(TreeEnd { killed: exit.killed, gone: exit.gone });
    }

    fn count_output(&mut self, bytes: usize) {
        self.output_bytes += bytes as u64;
        if self.output_bytes > self.bounds.output_bytes_max && self.phase == Phase::Talking {
            let most = amount(self.bounds.output_bytes_max);
            let last =
                self.bounds.exceeded(format!("the agent printed more than {most} in one turn"), "output_max");
            self.end_for(last);
        }
    }

    /// It took more than it may.
    fn end_for(&mut self, last: AgentEvent) {
        self.is_over = true;
        self.finish(last);
        self.kill();
    }

    fn read_output(&mut self, bytes: &[u8]) {
        let Some(parts) = &mut self.parts else { return };
        if parts.protocol.reads_bytes() {
            let mut out = ProtocolOutput::default();
            parts.protocol.read_bytes(bytes, &mut out);
            return self.heed(out);
        }
        for line in parts.lines.cut(bytes) {
            self.read(line);
        }
    }

    fn read(&mut self, line: Line) {
        let Some(parts) = &mut self.parts else { return };
        let out = parts.read(line);
        self.heed(out);
    }

    /// Does what a protocol says.
    fn heed(&mut self, out: ProtocolOutput) {
        let ProtocolOutput { events, bytes, is_input_over, is_interrupted, steered } = out;
        self.steered = steered.or(self.steered);
        self.unsaid.extend(bytes);
        for event in events {
            self.heed_event(event);
        }
        if is_interrupted && self.last.is_none() && self.phase == Phase::Talking {
            self.leave();
        }
        self.ends_input |= is_input_over;
    }

    fn heed_event(&mut self, event: AgentEvent) {
        // After its last word an agent has nothing to say.
        if self.last.is_some() {
            return;
        }
        self.heard_at = Instant::now();
        match &event {
            event if event.is_last() => return self.finish(event.clone()),
            AgentEvent::Ready { .. } => self.be_ready(),
            AgentEvent::Asked { question, .. } => drop(self.asked.insert(question.clone())),
            AgentEvent::Withdrawn { question } => drop(self.asked.remove(question)),
            AgentEvent::About(about) if !self.is_where_it_should_be(&about.directory) => {
                let (it, we) = (&about.directory, self.launch.directory.for_readers());
                let trouble = format!("the agent works in {it}, but this session's directory is {we}");
                return self.finish(AgentEvent::Failed(Trouble::refused(trouble)));
            }
            _ => {}
        }
        if !self.is_stopping || self.said.len() < EVENTS_WHILE_STOPPING_MAX {
            self.said.push_back(event);
        }
    }

    fn be_ready(&mut self) {
        self.is_ready = true;
        // Between `Ready` and the message nothing is late: the engine has its own bound.
        self.until = Instant::now() + self.bounds.turn_max;
        if let Some(parts) = &self.parts
            && parts.processes.is_none()
            && parts.protocol.has_processes_of_its_own()
        {
            parts.tree.count();
        }
    }

    /// Judged by names alone: what an agent says is not looked up.
    fn is_where_it_should_be(&self, directory: &str) -> bool {
        let is_there = |named: &GroundPath| Path::new(named.for_readers()) == Path::new(directory);
        let Launch { directory: named, directory_true, .. } = &self.launch;
        directory.is_empty() || is_there(named) || directory_true.as_ref().is_some_and(is_there)
    }

    /// Its last word. A process that did well may be kept.
    fn finish(&mut self, event: AgentEvent) {
        if self.last.is_some() {
            return;
        }
        let is_well = matches!(event, AgentEvent::Finished { .. });
        self.last = Some(event);
        let Some(parts) = &self.parts else { return };
        if self.phase != Phase::Talking {
            return;
        }
        if is_well && self.keep.is_some() && self.is_ready && !self.is_stopping {
            let settled = Instant::now() + parts.protocol.settles_within();
            self.count_until(settled);
        } else {
            self.leave();
        }
    }

    fn count_until(&mut self, settled: Instant) {
        if let Some(parts) = &self.parts {
            parts.tree.list();
        }
        self.phase = Phase::Counting { until: Instant::now() + COUNT_WAIT, settled };
    }

    /// The processes when it was ready are the agent's own.
    fn counted(&mut self, count: ProcessCount) {
        if let Some(parts) = &mut self.parts {
            parts.processes.get_or_insert(count);
        }
    }

    /// The turn is over, and these are not the agent's own.
    fn listed(&mut self, list: ProcessList) {
        let (Some(parts), Phase::Counting { settled, .. }) = (&self.parts, self.phase) else { return };
        if self.is_stopping || parts.processes.is_none() || !parts.protocol.may_be_kept() {
            return self.leave();
        }
        let has_more = list.has_more_than(&parts.background);
        let at = Instant::now() + RECOUNT_PAUSE;
        if has_more && at < settled {
            self.phase = Phase::Recounting { at, settled };
            return;
        }
        let policy = self.keep.as_ref().map_or(BackgroundPolicy::Ended, |keep| keep.policy());
        match policy {
            BackgroundPolicy::Ended if has_more => self.leave_behind(&list),
            BackgroundPolicy::Ended => self.keep_with(ProcessList::default()),
            BackgroundPolicy::Kept => {
                if has_more {
                    let text = format!("goes on in the background: {}", background(&list).words());
                    self.said.push_back(AgentEvent::Notice { text });
                }
                self.keep_with(list);
            }
        }
    }

    /// Ends what the turn leaves behind, and with it the agent's process.
    fn leave_behind(&mut self, list: &ProcessList) {
        let (count, words) = (list.processes, background(list).words());
        let what = if count == 1 { "a process".to_owned() } else { format!("{count} processes") };
        let text = format!("ended {what} that the agent had left behind: {words}");
        self.said.push_back(AgentEvent::Notice { text });
        self.has_told_left = true;
        self.leave();
    }

    fn keep_with(&mut self, list: ProcessList) {
        let (Some(keep), Some(mut parts)) = (&self.keep, self.parts.take()) else { return };
        let native = match &self.last {
            Some(AgentEvent::Finished { native, .. }) => native.clone(),
            _ => None,
        };
        parts.background = list;
        keep.put(parts, &self.launch, native);
        self.phase = Phase::Over(TreeEnd { killed: 0, gone: true });
    }

    /// The tree has ended, and with it what ran in its background. Answers whether people were told what that was.
    fn tell_background_ended(&mut self) -> bool {
        let known =
            self.parts.as_mut().map(|parts| std::mem::take(&mut parts.background)).unwrap_or_default();
        self.forget_background();
        if known.is_empty() || self.has_told_left {
            return self.has_told_left;
        }
        let words = background(&known).words();
        let text = format!("what ran in the background was ended with the agent's process: {words}");
        self.said.push_back(AgentEvent::Notice { text });
        true
    }

    /// Nobody has to be told any more what ran in the background.
    fn forget_background(&self) {
        if let Some(keep) = &self.keep {
            keep.turn_is_over(&self.launch.tree);
            keep.notes.remove(&self.launch.tree);
        }
    }

    fn leave(&mut self) {
        if !self.leaves_on_eof() {
            return self.kill();
        }
        if let Some(parts) = &self.parts {
            parts.tree.close_input();
        }
        self.phase = Phase::Leaving { until: Instant::now() + LEAVE_WAIT };
    }

    fn leaves_on_eof(&self) -> bool {
        self.parts.as_ref().is_some_and(|parts| parts.protocol.leaves_on_eof())
    }

    fn complain(&mut self, exit: TreeExit) {
        let complaint = String::from_utf8_lossy(&self.complaint).trim().to_owned();
        let mut out = ProtocolOutput::default();
        if let Some(parts) = self.parts.as_mut().filter(|_| !self.is_stopping) {
            parts.protocol.exited(&exit, &complaint, &mut out);
        }
        for event in out.events {
            if event.is_last() {
                self.last.get_or_insert(event);
            } else {
                self.said.push_back(event);
            }
        }
        self.complaint = format!("{}\n{complaint}", exit.words()).into_bytes();
    }

    fn end(&mut self, verified: TreeEnd) -> AgentEvent {
        match self.last.take() {
            Some(event) if verified.gone => event,
            Some(_) => died("the agent said its last word, but processes of it cannot be ended", verified),
            None => {
                let complaint = String::from_utf8_lossy(&self.complaint).trim().to_owned();
                died(&format!("the agent went away without a last word: {complaint}"), verified)
            }
        }
    }

    fn kill(&mut self) {
        if let Some(parts) = &self.parts {
            parts.tree.kill();
        }
        self.phase = Phase::Ending { until: Instant::now() + KILL_WAIT };
    }

    async fn stop_now(&mut self, grace: Duration) -> TreeEnd {
        self.is_stopping = true;
        if self.phase == Phase::Talking && !grace.is_zero() {
            self.interrupt();
            let _ = tokio::time::timeout(grace, self.go_on_until_over()).await;
        }
        let is_alive = |phase| !matches!(phase, Phase::Ending { .. } | Phase::Lost | Phase::Over(_));
        if is_alive(self.phase) {
            self.kill();
        }
        self.go_on_until_over().await
    }

    fn interrupt(&mut self) {
        let Some(parts) = &mut self.parts else { return };
        let mut out = ProtocolOutput::default();
        if self.is_ready {
            parts.protocol.interrupt(&mut out);
        }
        if out.bytes.is_empty() {
            parts.tree.interrupt();
        }
        self.heed(out);
    }

    async fn go_on_until_over(&mut self) -> TreeEnd {
        loop {
            if let Phase::Over(verified) = self.phase {
                return verified;
            }
            self.go_on().await;
        }
    }

    /// The refusal of a message that cannot be handed over as it is.
    fn check(&self, message: &Message) -> Result<(), Trouble> {
        message.check(|kind| self.parts.as_ref().is_some_and(|parts| parts.protocol.takes(kind)))
    }

    async fn steer_now(&mut self, message: &Message) -> Result<Steered, Trouble> {
        self.check(message)?;
        if !self.is_handed || self.is_stopping || self.last.is_some() || self.phase != Phase::Talking {
            return Ok(Steered::TooLate);
        }
        self.steered = None;
        self.say(|protocol, out| protocol.steer(message, out)).await?;
        let told = tokio::time::timeout(STEER_WAIT, self.go_on_until_steered()).await;
        told.unwrap_or_else(|_| {
            let trouble = format!("the agent did not say within {STEER_WAIT:?} whether it took the words");
            Err(Trouble::transient(trouble))
        })
    }

    async fn go_on_until_steered(&mut self) -> Result<Steered, Trouble> {
        loop {
            match (self.steered.take(), self.phase, &self.last) {
                (Some(steered), ..) => return Ok(steered),
                (None, Phase::Over(_), Some(_)) if !self.is_over => return Ok(Steered::TooLate),
                (None, Phase::Over(_), _) => {
                    let trouble = "the agent went away before it said whether it took the words";
                    return Err(Trouble::transient(trouble));
                }
                _ => self.go_on().await,
            }
        }
    }

    async fn say(&mut self, speak: impl FnOnce(&mut T, &mut ProtocolOutput)) -> Result<(), Trouble> {
        let Some(parts) = &mut self.parts else { return Err(Trouble::transient("the agent has gone")) };
        let mut out = ProtocolOutput::default();
        speak(&mut parts.protocol, &mut out);
        self.heed(out);
        while self.has_unsaid() {
            self.say_piece().await?;
        }
        Ok(())
    }
}

impl<T: AgentProtocol> Drop for RunningAgent<T> {
    fn drop(&mut self) {
        // Dropped in the midst of a turn, its tree is ended by its supervisor. The note of what ran in the background stays, and
        // whoever starts next tells it.
        if let (Some(keep), Some(_)) = (&self.keep, &self.parts) {
            keep.turn_is_over(&self.launch.tree);
        }
    }
}

impl<T: AgentProtocol> Running for RunningAgent<T> {
    fn next(&mut self) -> Reply<'_, AgentEvent> {
        Box::pin(self.hear())
    }

    fn hand(&mut self, message: Message) -> Reply<'_, Result<(), Trouble>> {
        Box::pin(async move {
            self.check(&message)?;
            self.heard_at = Instant::now();
            self.until = self.heard_at + self.bounds.turn_max;
            self.is_handed = true;
            self.say(|protocol, out| protocol.hand(&message, out)).await
        })
    }

    fn steer(&mut self, message: Message) -> Reply<'_, Result<Steered, Trouble>> {
        Box::pin(async move { self.steer_now(&message).await })
    }

    fn answer(&mut self, question: &str, answer: QuestionAnswer) -> Reply<'_, Result<(), Trouble>> {
        let question = question.to_owned();
        Box::pin(async move {
            self.heard_at = Instant::now();
            self.asked.remove(&question);
            self.say(|protocol, out| protocol.answer(&question, &answer, out)).await
        })
    }

    fn stop(&mut self, grace_ms: u64) -> Reply<'_, TreeEnd> {
        Box::pin(self.stop_now(Duration::from_millis(grace_ms)))
    }
}

/// The trouble of an agent's words about a conversation we asked for, as far as they may be taken at its word: it is gone only where it was
/// made. Elsewhere the agent may just not look in the right place.
pub(crate) fn gone_if_here(launch: &Launch, place: &str, detail: impl std::fmt::Display) -> Trouble {
    match &launch.native {
        Some(native) if !native.place.is_empty() && native.place != place => Trouble::refused(format!(
            "the agent does not know this conversation here: it was made at {}, and this is {place}. Put it back as it \
             was, or start a new session. ({detail})",
            native.place
        )),
        _ => Trouble::new(Failure::Gone, detail),
    }
}

fn died(detail: &str, verified: TreeEnd) -> AgentEvent {
    AgentEvent::Died { detail: bounded(detail, agent::DETAIL_BYTES_MAX), verified }
}
