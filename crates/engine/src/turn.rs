//! One attempt of one agent, from its start until its processes are gone.
//!
//! A runner drives the agent's `Running` and reports to its keeper; it has no store, only the ports in `RunnerPorts`. It
//! takes `Order`s (hand over the words, add some, answer, stop) and says `RunnerOutput`. That the agent is ready it says
//! only when the words may go (`gate`). Whatever ends it, the last thing it says is a report, and it says it only after the attempt's processes
//! were seen to be gone. `end_leftovers` does the same for an attempt of an earlier term, of which only the name is left.

mod gate;

use crate::TreeChanges;
use crate::changes::{TreeBefore, TurnSnapshots};
use crate::runner_ports::RunnerPorts;
use agent::{Agent, AgentEvent, Launch, Message, Running, Steered, TreeEnd, TreeName, Trouble};
pub(crate) use gate::AwaitedCommand;
use gate::ReadyGate;
use kernel::{Answer, ApprovalId, Failure, Fence, MessageId, Native, Report, SessionId};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// The outputs that a runner may be ahead of its keeper; then the agent waits.
const OUTPUT_AHEAD_MAX: usize = 32;
/// Orders a runner has not taken yet. One message, one stop, and the answers to what it asked.
const ORDERS_AHEAD_MAX: usize = 64;
/// Questions that an agent may ask in one attempt. Beyond them the answer is no: nobody would read so many.
const QUESTIONS_MAX: usize = 256;
/// Different warnings of an agent in one attempt that are remembered. What comes beyond them is told each time.
const WARNINGS_MAX: usize = 256;
/// The bytes of the names of files that an agent says it has changed in one turn.
const EDITS_BYTES_MAX: usize = 64 * 1024;
/// The first wait before a burial is tried again, and the longest.
const END_AGAIN: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// The order of a keeper to a runner.
#[derive(Debug)]
pub(crate) enum Order {
    Hand(Message),
    /// More words for the turn.
    Add(Message),
    Answer {
        question: String,
        answer: Answer,
    },
    /// The attempt is over before it has begun, for this reason; another one may do.
    GiveUp(&'static str),
    /// The attempt is over for this reason, and no other one would do.
    Refuse(String),
    Stop,
}

/// The output of a runner.
#[derive(Debug)]
pub(crate) enum RunnerOutput {
    /// Something the kernel must know.
    Report(Report),
    /// Something people should see.
    Event(AgentEvent),
    /// The observation when a stop was carried out.
    Stopped(TreeEnd),
    /// The words of this message are on their way into the turn.
    Adding(MessageId),
    /// The changes of the turn in its directory.
    Changes(TreeChanges),
    /// The directory is not under version control.
    NoTree,
}

/// The things that the words of an attempt wait for.
#[derive(Debug, Default)]
pub(crate) struct AttemptOptions {
    /// Snapshots of the directory before and after; none where there is nothing to see.
    pub(crate) snapshots: Option<TurnSnapshots>,
    /// The command that the words may begin with: they wait until the agent has listed its own.
    pub(crate) command: Option<AwaitedCommand>,
}

/// The order that ends an attempt, as far as one was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum EndOrdered {
    No,
    GiveUp,
    Refuse,
    Stop,
}

/// A keeper's end of a runner.
#[derive(Debug)]
pub(crate) struct Runner {
    pub(crate) fence: Fence,
    pub(crate) output: mpsc::Receiver<RunnerOutput>,
    orders: mpsc::Sender<Order>,
    end: EndOrdered,
    /// Messages that were ordered to be added to the turn …
    added: Vec<MessageId>,
    /// … and those of them whose words may have left us.
    gone_in: Vec<MessageId>,
    /// True if it is one of ours: an attempt of an earlier keeper may have been given anything.
    is_ours: bool,
    /// The agent's own keys of the questions it asked, until they are answered.
    questions: BTreeMap<ApprovalId, String>,
}

impl Runner {
    /// Starts an attempt.
    pub(crate) fn attempt(
        ports: &RunnerPorts,
        agent: Arc<dyn Agent>,
        mut launch: Launch,
        options: AttemptOptions,
    ) -> Self {
        let (runner, mut task) = Self::pair(launch.fence);
        let grace_ms = ports.stop_grace_ms;
        let ground = ports.ground.prepare(&launch.directory);
        ports.tasks.spawn(async move {
            let report = match ground {
                Ok(true_name) => {
                    launch.directory_true = Some(true_name).filter(|name| *name != launch.directory);
                    task.run(&*agent, launch, options, grace_ms).await
                }
                Err(reason) => task.failed(Trouble::refused(reason)).await,
            };
            task.say(RunnerOutput::Report(report)).await;
        });
        runner
    }

    /// Reports a failure without starting anything.
    pub(crate) fn refused(ports: &RunnerPorts, fence: Fence, reason: String) -> Self {
        let (runner, task) = Self::pair(fence);
        ports.tasks.spawn(async move {
            let report = task.failed(Trouble::refused(reason)).await;
            task.say(RunnerOutput::Report(report)).await;
        });
        runner
    }

    /// Makes sure that nothing of an earlier attempt is left, then reports it lost.
    pub(crate) fn end_leftovers(
        ports: &RunnerPorts,
        agent: Option<Arc<dyn Agent>>,
        fence: Fence,
        session: SessionId,
        snapshots: Option<TurnSnapshots>,
    ) -> Self {
        let (mut runner, task) = Self::pair(fence);
        runner.is_ours = false;
        ports.tasks.spawn(async move {
            // An agent that is no longer configured cannot be asked; its supervisor went with the daemon.
            if let Some(agent) = agent {
                end_leftovers(&*agent, &TreeName::of(session)).await;
            }
            // Nobody has listened to that attempt to its end.
            task.tell_changes(snapshots, None).await;
            task.say(RunnerOutput::Report(Report::Lost)).await;
        });
        runner
    }

    fn pair(fence: Fence) -> (Self, RunnerTask) {
        let (orders, taken) = mpsc::channel(ORDERS_AHEAD_MAX);
        let (say, output) = mpsc::channel(OUTPUT_AHEAD_MAX);
        let questions = BTreeMap::new();
        let (added, gone_in) = (Vec::new(), Vec::new());
        let (end, is_ours) = (EndOrdered::No, true);
        let (edits, warned) = (AgentEdits::default(), BTreeSet::new());
        let runner = Self { fence, output, orders, end, added, gone_in, is_ours, questions };
        (runner, RunnerTask { orders: taken, say, asked: 0, handed: false, edits, warned })
    }

    /// Hands over the words; called once. The keeper never waits for a runner: if it is not taken, it is ordered again
    /// next time.
    pub(crate) fn hand(&mut self, message: Message) -> bool {
        self.orders.try_send(Order::Hand(message)).is_ok()
    }

    pub(crate) fn has_added(&self, message: MessageId) -> bool {
        self.added.contains(&message)
    }

    /// Adds words to the turn. Answers whether the order was taken.
    pub(crate) fn add(&mut self, message: Message) -> bool {
        let id = message.id;
        let taken = self.orders.try_send(Order::Add(message)).is_ok();
        self.added.extend(taken.then_some(id));
        taken
    }

    /// The words of this message may have left us.
    pub(crate) fn went_in(&mut self, message: MessageId) {
        self.gone_in.push(message);
    }

    /// True if nothing of this message, which was to be added to the turn, can have left us.
    pub(crate) fn kept_back(&self, message: MessageId) -> bool {
        self.is_ours && !self.gone_in.contains(&message)
    }

    /// Lets it end, and waits until it has: no order comes any more, and nobody hears what it says.
    pub(crate) async fn part(self) {
        let Self { orders, mut output, .. } = self;
        drop(orders);
        while output.recv().await.is_some() {}
    }

    pub(crate) fn stop(&mut self) {
        if self.end < EndOrdered::Stop && self.orders.try_send(Order::Stop).is_ok() {
            self.end = EndOrdered::Stop;
        }
    }

    /// Lets an attempt that has been handed nothing fail, for this reason.
    pub(crate) fn give_up(&mut self, why: &'static str) {
        if self.end == EndOrdered::No && self.orders.try_send(Order::GiveUp(why)).is_ok() {
            self.end = EndOrdered::GiveUp;
        }
    }

    /// Ends the attempt, which has failed for this reason.
    pub(crate) fn refuse(&mut self, why: String) {
        if self.end < EndOrdered::Refuse && self.orders.try_send(Order::Refuse(why)).is_ok() {
            self.end = EndOrdered::Refuse;
        }
    }

    pub(crate) fn asked(&mut self, approval: ApprovalId, question: String) {
        self.questions.insert(approval, question);
    }

    /// The agent no longer asks this: the approvals that were minted for it and are not answered.
    pub(crate) fn taken_back(&mut self, question: &str) -> Vec<ApprovalId> {
        let back = self.questions.extract_if(.., |_, asked| asked == question);
        back.map(|(approval, _)| approval).collect()
    }

    pub(crate) fn answer(&mut self, approval: ApprovalId, answer: Answer) {
        let Some(question) = self.questions.get(&approval).cloned() else { return };
        if self.orders.try_send(Order::Answer { question, answer }).is_ok() {
            self.questions.remove(&approval);
        }
    }
}

/// The task that runs the attempt, at the other end of its keeper's `Runner`.
struct RunnerTask {
    orders: mpsc::Receiver<Order>,
    say: mpsc::Sender<RunnerOutput>,
    /// The number of questions that the agent has asked.
    asked: usize,
    /// True if the words may have left us.
    handed: bool,
    /// The files of which the agent has said that it changed them.
    edits: AgentEdits,
    /// Hashes of what the agent has warned of.
    warned: BTreeSet<u64>,
}

/// Files of which an agent has said that it changed them, in bounds: what does not fit is not certain to be the agent's.
#[derive(Debug, Default)]
struct AgentEdits {
    files: Vec<String>,
    bytes: usize,
}

impl AgentEdits {
    fn hear(&mut self, path: &str) {
        let is_plain = !path.is_empty() && !path.chars().any(char::is_control);
        let fits = self.bytes + path.len() <= EDITS_BYTES_MAX;
        if is_plain && fits && !self.files.iter().any(|known| known == path) {
            self.bytes += path.len();
            self.files.push(path.to_owned());
        }
    }
}

impl RunnerTask {
    async fn run(
        &mut self,
        agent: &dyn Agent,
        launch: Launch,
        options: AttemptOptions,
        grace_ms: u64,
    ) -> Report {
        let tree = launch.tree.clone();
        let mut gate = ReadyGate::new(&options);
        let mut started = gate.beside(self.start(agent, launch.clone())).await;
        // Something that still runs for this session is of no attempt that anybody knows: a late start of a daemon that
        // was replaced. It goes first.
        if started.as_ref().is_err_and(|trouble| trouble.failure == Failure::Busy) {
            end_leftovers(agent, &tree).await;
            started = gate.beside(self.start(agent, launch)).await;
        }
        let mut running = match started {
            Ok(running) => running,
            Err(trouble) => {
                end_leftovers(agent, &tree).await;
                return self.failed(trouble).await;
            }
        };
        let (report, verified) = self.listen(&mut *running, &mut gate, grace_ms).await;
        if !verified.gone {
            end_leftovers(agent, &tree).await;
        }
        // What was never given anything has changed nothing.
        if self.handed && gate.saw_tree() {
            let edits = std::mem::take(&mut self.edits);
            self.tell_changes(options.snapshots, Some(edits.files)).await;
        }
        report
    }

    async fn start(&self, agent: &dyn Agent, launch: Launch) -> Result<Box<dyn Running>, Trouble> {
        tokio::select! {
            biased;
            started = agent.start(launch) => started,
            // The next keeper ends what is left of this attempt; nothing may come up after that.
            () = self.say.closed() => Err(Trouble::transient("its keeper has gone")),
        }
    }

    /// Looks what has changed, for people. Whoever does not listen any more has died, and the next keeper looks.
    async fn tell_changes(&self, snapshots: Option<TurnSnapshots>, edits: Option<Vec<String>>) {
        let Some(snapshots) = snapshots.filter(|_| !self.say.is_closed()) else { return };
        match snapshots.clone().after(edits).await {
            Ok(Some(changes)) => self.say(RunnerOutput::Changes(changes)).await,
            Ok(None) => {}
            Err(text) => self.say(RunnerOutput::Event(AgentEvent::Notice { text })).await,
        }
        if let Some(text) = snapshots.gone() {
            self.say(RunnerOutput::Event(AgentEvent::Notice { text })).await;
        }
    }

    async fn listen(
        &mut self,
        running: &mut dyn Running,
        gate: &mut ReadyGate,
        grace_ms: u64,
    ) -> (Report, TreeEnd) {
        let gone = TreeEnd { killed: 0, gone: true };
        let mut end = End::Unasked;
        loop {
            let event = tokio::select! {
                biased;
                order = self.orders.recv() => match order {
                    Some(order) => {
                        end = self.obey(running, order, end, grace_ms).await;
                        continue;
                    }
                    // A keeper that is gone wants nothing any more, and hears nothing.
                    None => return (Report::Lost, running.stop(grace_ms).await),
                },
                opened = gate.opened() => {
                    match opened {
                        Ok(native) => self.tell_ready(gate, native).await,
                        Err(why) => end = End::Broken(Trouble::refused(why), running.stop(grace_ms).await),
                    }
                    continue;
                }
                event = running.next() => event,
            };
            gate.hear(&event);
            match event {
                AgentEvent::Ready { .. } => {} // The gate tells, when the words may go.
                AgentEvent::Finished { native, reason } => {
                    if !reason.is_empty() {
                        let finished = AgentEvent::Finished { native: native.clone(), reason };
                        self.say(RunnerOutput::Event(finished)).await;
                    }
                    return (Report::Finished { native }, gone);
                }
                AgentEvent::Failed(trouble) => return (self.failed(trouble).await, gone),
                AgentEvent::Died { detail, verified } => return self.died(detail, end, verified).await,
                AgentEvent::Asked { question, .. } if self.asked >= QUESTIONS_MAX => {
                    end = self.decline(running, &question, end).await;
                }
                AgentEvent::Notice { text } | AgentEvent::Warned { text } if !self.is_news(&text) => {}
                other => {
                    self.asked += usize::from(matches!(other, AgentEvent::Asked { .. }));
                    if let AgentEvent::FileChanged { path, .. } = &other {
                        self.edits.hear(path);
                    }
                    self.say(RunnerOutput::Event(other)).await;
                }
            }
        }
    }

    /// True if the agent has not warned of this in this attempt before. Some say the same with every request they make.
    fn is_news(&mut self, warning: &str) -> bool {
        let mut hasher = DefaultHasher::new();
        warning.hash(&mut hasher);
        let hash = hasher.finish();
        if self.warned.len() >= WARNINGS_MAX {
            return !self.warned.contains(&hash);
        }
        self.warned.insert(hash)
    }

    async fn tell_ready(&self, gate: &mut ReadyGate, native: Option<Native>) {
        if *gate.before() == TreeBefore::NoTree {
            self.say(RunnerOutput::NoTree).await;
        }
        for text in gate.notices() {
            self.say(RunnerOutput::Event(AgentEvent::Notice { text })).await;
        }
        self.say(RunnerOutput::Report(Report::Ready { native })).await;
    }

    /// Whatever the agent had said before the end can still be heard after it, so nobody stops listening here.
    async fn obey(&mut self, running: &mut dyn Running, order: Order, end: End, grace_ms: u64) -> End {
        let done = match order {
            Order::Hand(message) => {
                self.handed = true;
                running.hand(message).await
            }
            Order::Add(message) => {
                self.add(running, message).await;
                Ok(())
            }
            Order::Answer { question, answer } => running.answer(&question, answer_of(answer)).await,
            Order::GiveUp(why) => {
                return End::Broken(Trouble::transient(why), running.stop(grace_ms).await);
            }
            Order::Refuse(why) => {
                return End::Broken(Trouble::refused(why), running.stop(grace_ms).await);
            }
            Order::Stop => return End::Stopped(running.stop(grace_ms).await),
        };
        match done {
            Ok(()) => end,
            Err(trouble) => End::Broken(trouble, running.stop(0).await),
        }
    }

    /// Adds words to the turn. That they are on their way is said first: from there on nobody may say them again, unless
    /// it is sure that they did not get there.
    async fn add(&mut self, running: &mut dyn Running, message: Message) {
        let id = message.id;
        self.say(RunnerOutput::Adding(id)).await;
        let (missed, why) = match running.steer(message).await {
            Ok(Steered::Taken) => (false, None),
            Ok(Steered::TooLate) => (true, None),
            Err(trouble) => (trouble.failure == Failure::Refused, Some(trouble.detail)),
        };
        if let Some(why) = why {
            let became = if missed { "gets a turn of its own" } else { "may or may not have been heard" };
            let text = format!("what was said into this turn {became}: {why}");
            self.say(RunnerOutput::Event(AgentEvent::Notice { text })).await;
        }
        if missed {
            self.say(RunnerOutput::Report(Report::Missed { message: id })).await;
        }
    }

    /// Says no to one question too many; people hear of it once.
    async fn decline(&mut self, running: &mut dyn Running, question: &str, end: End) -> End {
        if self.asked == QUESTIONS_MAX {
            self.asked += 1;
            let text = format!(
                "it asked more than {QUESTIONS_MAX} times in one turn; from here on the answer is no"
            );
            self.say(RunnerOutput::Event(AgentEvent::Notice { text })).await;
        }
        let reason = "too many questions in one turn".to_owned();
        match running.answer(question, agent::QuestionAnswer::Deny { reason }).await {
            Ok(()) => end,
            Err(trouble) => End::Broken(trouble, running.stop(0).await),
        }
    }

    async fn died(&self, detail: String, end: End, verified: TreeEnd) -> (Report, TreeEnd) {
        let both = |first: TreeEnd| TreeEnd {
            killed: first.killed.max(verified.killed),
            gone: first.gone || verified.gone,
        };
        match end {
            End::Unasked => (self.failed(Trouble::transient(detail)).await, verified),
            End::Broken(trouble, first) => (self.failed(trouble).await, both(first)),
            End::Stopped(first) => {
                self.say(RunnerOutput::Stopped(both(first))).await;
                (Report::Stopped, both(first))
            }
        }
    }

    async fn failed(&self, trouble: Trouble) -> Report {
        self.say(RunnerOutput::Event(AgentEvent::Notice { text: trouble.detail })).await;
        Report::Failed(trouble.failure)
    }

    async fn say(&self, output: RunnerOutput) {
        // A keeper that does not listen any more has died; the next one ends what is left of this attempt.
        let _ = self.say.send(output).await;
    }
}

/// Our part in the attempt's end.
enum End {
    Unasked,
    Stopped(TreeEnd),
    /// It could not be talked to any more, or was given up.
    Broken(Trouble, TreeEnd),
}

fn answer_of(answer: Answer) -> agent::QuestionAnswer {
    match answer {
        Answer::Yes => agent::QuestionAnswer::Allow,
        Answer::No => agent::QuestionAnswer::Deny { reason: String::new() },
        Answer::Chose(option) => agent::QuestionAnswer::Chose(option.into()),
        Answer::Said(words) => agent::QuestionAnswer::Said(words),
    }
}

/// Tries until it is sure: nothing may be started in the session before.
pub(crate) async fn end_leftovers(agent: &dyn Agent, tree: &TreeName) {
    let (mut wait, longest) = END_AGAIN;
    while let Err(trouble) = agent.end_leftovers(tree.clone()).await {
        tracing::warn!(%tree, %trouble, "an attempt may have left processes behind; looking again");
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(longest);
    }
}
