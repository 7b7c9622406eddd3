//! The scripted agent without a process, for the simulation: the same brain, run by a task of the current runtime.
//!
//! `House` is what survives a crash of the daemon: the agent's memory, the tasks still running, and a record of what
//! really ran, which the simulation checks. It names no clock but tokio's and no randomness but its seed, so one
//! seed gives one story. A dropped `Running` is like a daemon that went away: its task goes on for `linger_ms`, as a
//! process does until its supervisor notices, and only `end_leftovers` or that time ends it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kernel::{Failure, Fence, MessageId, Native, SessionId};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::scripted::{self, HANGING, Memory, Script, ScriptStep, about, answered, model, question};
use crate::{
    Abilities, Agent, AgentEvent, EndedLeftovers, Form, Launch, Message, Presence, QuestionAnswer, Reply,
    Running, Setup, Steered, TreeEnd, TreeName, Trouble, Usage,
};

/// Events an attempt may be ahead of its reader; then it waits, as a process does when its pipe is full.
const EVENTS_AHEAD_MAX: usize = 16;
/// Words to the agent that it has not yet taken. One message and its answers are far fewer.
const WORDS_AHEAD_MAX: usize = 64;

/// The settings of a house.
#[derive(Debug, Clone, Copy, Default)]
pub struct HouseConfig {
    /// Stands in every native id, so that two houses never share one.
    pub seed: u64,
    /// The time an attempt goes on after its `Running` was dropped.
    pub linger_ms: u64,
    /// The time after it is ready at which an attempt lists its commands; 0 lists them before.
    pub commands_ms: u64,
    /// The time an attempt takes to say which model it uses. It is not ready before.
    pub models_ms: u64,
    /// The model that attempts use whatever was chosen.
    pub fallback: Option<&'static str>,
}

/// Where in-process agents live.
#[derive(Debug)]
pub struct House {
    config: HouseConfig,
    built: Instant,
    rooms: Mutex<Rooms>,
}

#[derive(Debug, Default)]
struct Rooms {
    memories: BTreeMap<String, Memory>,
    natives: u64,
    alive: BTreeMap<TreeName, Alive>,
    noted: Vec<Noted>,
}

#[derive(Debug, Clone)]
struct Alive {
    fence: Fence,
    task: AbortHandle,
    gone: watch::Receiver<bool>,
}

/// One line of the record of what really ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Noted {
    /// The thing that happened.
    pub did: Did,
    /// In which session.
    pub session: SessionId,
    /// By which attempt.
    pub fence: Fence,
    /// For which message.
    pub message: MessageId,
    /// In which conversation, by the agent's own id.
    pub native: Option<Native>,
    /// When, in milliseconds since the house was built.
    pub at_ms: u64,
}

/// The doings of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Did {
    /// It came up.
    Up,
    /// It was handed the words.
    Handed,
    /// It began to act on them.
    Acted,
    /// It said that it had finished.
    Finished,
    /// It said that it had failed.
    Failed(Failure),
    /// It went away by itself without a word.
    Crashed,
    /// It was ended from outside.
    Killed,
}

impl House {
    /// An empty house. Must be called inside a tokio runtime, whose clock it uses.
    pub fn new(config: HouseConfig) -> Arc<Self> {
        Arc::new(Self { config, built: Instant::now(), rooms: Mutex::default() })
    }

    /// Everything that really ran, oldest first.
    pub fn noted(&self) -> Vec<Noted> {
        self.rooms().noted.clone()
    }

    /// The attempts still running.
    pub fn alive(&self) -> Vec<TreeName> {
        self.rooms().alive.keys().cloned().collect()
    }

    /// True if that attempt is still running.
    pub fn runs(&self, session: SessionId, fence: Fence) -> bool {
        self.rooms().alive.get(&TreeName::of(session)).is_some_and(|alive| alive.fence == fence)
    }

    /// The agent's memory of a conversation.
    pub fn memory(&self, native: &Native) -> Option<Memory> {
        self.rooms().memories.get(&native.id).cloned()
    }

    /// Loses a conversation, as an agent does whose files somebody tidied up.
    pub fn lose(&self, native: &Native) {
        self.rooms().memories.remove(&native.id);
    }

    fn rooms(&self) -> MutexGuard<'_, Rooms> {
        // Nothing panics while holding it but tests' own asserts, and then the record is what we want to see.
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn mint(&self, memory: Memory) -> Native {
        let mut rooms = self.rooms();
        rooms.natives += 1;
        let id = format!("{:08x}-0000-4000-8000-{:012x}", self.config.seed & 0xffff_ffff, rooms.natives);
        rooms.memories.insert(id.clone(), memory);
        Native::new(id)
    }

    /// Ends an attempt and waits until it is no more. Answers whether there was one.
    async fn end(&self, tree: &TreeName) -> bool {
        let Some(mut alive) = self.rooms().alive.get(tree).cloned() else { return false };
        alive.task.abort();
        let _ = alive.gone.wait_for(|gone| *gone).await;
        true
    }
}

/// The scripted agent, living in a house.
#[derive(Debug, Clone)]
pub struct InProcess {
    house: Arc<House>,
}

impl InProcess {
    /// An agent that lives there. Any number may share a house, one after the other or at once.
    pub fn new(house: Arc<House>) -> Self {
        Self { house }
    }

    fn launch(&self, launch: Launch) -> Result<Attempt, Trouble> {
        let (say, said) = mpsc::channel(EVENTS_AHEAD_MAX);
        let (words, heard) = mpsc::channel(WORDS_AHEAD_MAX);
        let (leave, gone) = watch::channel(false);
        let (house, tree) = (self.house.clone(), launch.tree.clone());
        let (native, fence) = (launch.native.clone(), launch.fence);
        {
            // Held until it is entered, or a quick task on another thread would leave before it was.
            let mut rooms = house.rooms();
            if rooms.alive.contains_key(&tree) {
                return Err(Trouble::new(Failure::Busy, format!("{tree} is already running")));
            }
            let lists_at = Some(Instant::now());
            let body = Body { house: house.clone(), launch, native, say, heard, leave, over: None, lists_at };
            rooms.noted.push(body.noted(Did::Up));
            let task = tokio::spawn(body.live()).abort_handle();
            rooms.alive.insert(tree.clone(), Alive { fence, task, gone: gone.clone() });
        }
        let unheard = VecDeque::new();
        Ok(Attempt { house, tree, said, unheard, words, gone, last: None, verified: None })
    }
}

impl Agent for InProcess {
    fn name(&self) -> &str {
        "scripted"
    }

    fn abilities(&self) -> Abilities {
        scripted::abilities()
    }

    fn look(&self) -> Reply<'_, Presence> {
        Box::pin(async { Presence::Here { version: env!("CARGO_PKG_VERSION").to_owned() } })
    }

    fn setup(&self) -> Setup {
        Setup { kind: "scripted", ..Setup::default() }
    }

    fn start(&self, launch: Launch) -> Reply<'_, Result<Box<dyn Running>, Trouble>> {
        Box::pin(async move { Ok(Box::new(self.launch(launch)?) as Box<dyn Running>) })
    }

    fn end_leftovers(&self, tree: TreeName) -> Reply<'_, Result<EndedLeftovers, Trouble>> {
        Box::pin(async move { Ok(EndedLeftovers { killed: u32::from(self.house.end(&tree).await) }) })
    }
}

/// The daemon's side of an attempt.
struct Attempt {
    house: Arc<House>,
    tree: TreeName,
    said: mpsc::Receiver<AgentEvent>,
    /// Events that came while we waited for something else.
    unheard: VecDeque<AgentEvent>,
    words: mpsc::Sender<Word>,
    gone: watch::Receiver<bool>,
    /// A last event that was heard, but waits for the task to be gone.
    last: Option<AgentEvent>,
    verified: Option<TreeEnd>,
}

enum Word {
    Message(Message),
    Answer {
        question: String,
        answer: QuestionAnswer,
    },
    /// More words for the turn that runs, and who wants to know that they were taken. Dropped in silence, they were not.
    More {
        text: String,
        taken: oneshot::Sender<()>,
    },
}

impl Attempt {
    async fn hear(&mut self) -> AgentEvent {
        if self.last.is_none() {
            let heard = match self.unheard.pop_front() {
                Some(event) => Some(event),
                None => self.said.recv().await,
            };
            match heard {
                Some(event) if !event.is_last() => return event,
                heard => self.last = heard,
            }
        }
        // An error means that the task's end of the channel is no more, and so is the task.
        let _ = self.gone.wait_for(|gone| *gone).await;
        let verified = *self.verified.get_or_insert(TreeEnd { killed: 0, gone: true });
        let died = AgentEvent::Died { detail: "the in-process agent went away".to_owned(), verified };
        self.last.take().unwrap_or(died)
    }

    /// Waits for its word on what was added. It may be waiting itself, until we take what it has said.
    async fn take_until(&mut self, mut taken: oneshot::Receiver<()>) -> Steered {
        loop {
            tokio::select! {
                biased;
                word = &mut taken => return if word.is_ok() { Steered::Taken } else { Steered::TooLate },
                Some(event) = self.said.recv() => self.unheard.push_back(event),
            }
        }
    }

    async fn tell(&self, word: Word) -> Result<(), Trouble> {
        // When nobody listens any more, `next` tells why; that is better than a failure without a reason.
        let _ = self.words.send(word).await;
        Ok(())
    }
}

impl Running for Attempt {
    fn next(&mut self) -> Reply<'_, AgentEvent> {
        Box::pin(self.hear())
    }

    fn hand(&mut self, message: Message) -> Reply<'_, Result<(), Trouble>> {
        Box::pin(async move {
            message.check(|kind| scripted::abilities().takes(kind))?;
            self.tell(Word::Message(message)).await
        })
    }

    fn steer(&mut self, message: Message) -> Reply<'_, Result<Steered, Trouble>> {
        Box::pin(async move {
            message.check(|kind| scripted::abilities().takes(kind))?;
            let (tell, taken) = oneshot::channel();
            let text = scripted::added(&message.text, &message.attachments);
            self.tell(Word::More { text, taken: tell }).await?;
            Ok(self.take_until(taken).await)
        })
    }

    fn answer(&mut self, question: &str, answer: QuestionAnswer) -> Reply<'_, Result<(), Trouble>> {
        let question = question.to_owned();
        Box::pin(async move { self.tell(Word::Answer { question, answer }).await })
    }

    fn stop(&mut self, _grace_ms: u64) -> Reply<'_, TreeEnd> {
        Box::pin(async move {
            let ended = self.house.end(&self.tree).await;
            *self.verified.get_or_insert(TreeEnd { killed: u32::from(ended), gone: true })
        })
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let Some(alive) = self.house.rooms().alive.get(&self.tree).cloned() else { return };
        let linger_ms = self.house.config.linger_ms;
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) if linger_ms > 0 => {
                runtime.spawn(async move {
                    tokio::time::sleep(Duration::from_millis(linger_ms)).await;
                    alive.task.abort();
                });
            }
            _ => alive.task.abort(),
        }
    }
}

/// The agent's side of an attempt. Dropping it, for whatever reason, is the attempt's end.
struct Body {
    house: Arc<House>,
    launch: Launch,
    native: Option<Native>,
    say: mpsc::Sender<AgentEvent>,
    heard: mpsc::Receiver<Word>,
    leave: watch::Sender<bool>,
    over: Option<Did>,
    /// When it lists its commands, if it has not.
    lists_at: Option<Instant>,
}

impl Body {
    async fn live(mut self) {
        let last = match self.come_up().await {
            Err(trouble) => Some(AgentEvent::Failed(trouble)),
            Ok(()) => {
                self.tell(AgentEvent::Ready { native: self.native.clone() }).await;
                self.act().await
            }
        };
        self.over = Some(match &last {
            Some(AgentEvent::Failed(trouble)) => Did::Failed(trouble.failure),
            Some(_) => Did::Finished,
            None => Did::Crashed,
        });
        if let Some(event) = last {
            self.tell(event).await;
        }
    }

    /// Opens the conversation and says which model it uses, and its commands, unless those take longer.
    async fn come_up(&mut self) -> Result<(), Trouble> {
        self.open()?;
        let HouseConfig { commands_ms, models_ms, .. } = self.house.config;
        tokio::time::sleep(Duration::from_millis(models_ms)).await;
        let used = self.model()?;
        match self.launch.model.as_deref() {
            Some(chosen) if chosen != used => return Err(Trouble::other_model(chosen, used)),
            _ => {}
        }
        self.lists_at = (commands_ms > 0).then(|| Instant::now() + Duration::from_millis(commands_ms));
        self.tell(AgentEvent::About(Box::new(about(used, self.lists_at.is_none())))).await;
        Ok(())
    }

    fn model(&self) -> Result<&'static str, Trouble> {
        let used = model(self.launch.model.as_deref())?;
        Ok(self.house.config.fallback.unwrap_or(used))
    }

    fn open(&mut self) -> Result<(), Trouble> {
        let Some(native) = &self.native else {
            self.native = Some(self.house.mint(Memory::default()));
            return Ok(());
        };
        let memory = match self.house.rooms().memories.get_mut(&native.id) {
            Some(memory) => memory.wake().map(|()| memory.clone())?,
            None => {
                let trouble = format!("there is no conversation {}", native.id);
                return Err(Trouble::new(Failure::Gone, trouble));
            }
        };
        if self.launch.fork {
            self.native = Some(self.house.mint(memory));
        }
        Ok(())
    }

    /// Carries out the script of the one message; answers how it ended, or nothing if it crashed.
    async fn act(&mut self) -> Option<AgentEvent> {
        let message = self.wait_for_message().await;
        self.note(Did::Acted);
        let (memory, has_commands) = (self.remembered(), self.lists_at.is_none());
        let mut script = Script::new(&memory, &message.text, &message.attachments, has_commands);
        let (mut questions, mut words_said, mut paced_from) = (0, 0, Instant::now());
        while let Some(step) = script.next() {
            let words = match step {
                ScriptStep::Say(words) => words,
                ScriptStep::Ask { tool, form } => {
                    questions += 1;
                    let answer = self.ask(format!("q{questions}"), &tool, &form, &mut script).await;
                    script.line(&answered(&tool, &form, &answer))
                }
                ScriptStep::Warn { text } => {
                    self.tell(AgentEvent::Warned { text }).await;
                    continue;
                }
                ScriptStep::Show(event) => {
                    self.tell(event).await;
                    continue;
                }
                ScriptStep::Run { .. } | ScriptStep::ForkBomb { .. } | ScriptStep::Change { .. } => {
                    script.line("not in-process")
                }
                ScriptStep::Directory => script.line(self.launch.directory.for_readers()),
                ScriptStep::Fail(trouble) => return Some(AgentEvent::Failed(trouble)),
                ScriptStep::Crash => return None,
                ScriptStep::Hang => {
                    let text = script.line(HANGING);
                    self.tell(AgentEvent::Text { text }).await;
                    self.listen(None, &mut script).await;
                    continue;
                }
                ScriptStep::Sleep { ms } => {
                    self.listen(Some(Instant::now() + Duration::from_millis(ms)), &mut script).await;
                    continue;
                }
                ScriptStep::StartPace => {
                    paced_from = Instant::now();
                    continue;
                }
                ScriptStep::KeepPace { ms } => {
                    self.listen(Some(paced_from + Duration::from_millis(ms)), &mut script).await;
                    continue;
                }
                ScriptStep::NewId => {
                    let native = self.house.mint(self.remembered());
                    self.native = Some(native.clone());
                    self.tell(AgentEvent::Native(native)).await;
                    continue;
                }
                ScriptStep::Remember | ScriptStep::Forget | ScriptStep::FailStarts { .. } => {
                    self.keep(step, &message.text);
                    continue;
                }
            };
            words_said += 1;
            self.tell(AgentEvent::Text { text: words }).await;
        }
        self.listen(Some(Instant::now()), &mut script).await;
        let input_tokens = message.text.split_whitespace().count() as u64;
        self.tell(AgentEvent::Usage(Usage { input_tokens, output_tokens: words_said, ..Usage::default() }))
            .await;
        Some(AgentEvent::Finished { native: self.native.clone(), reason: String::new() })
    }

    async fn wait_for_message(&mut self) -> Message {
        loop {
            match self.hear(self.lists_at).await {
                Some(Word::Message(message)) => {
                    self.note(Did::Handed);
                    return message;
                }
                // What is not taken is dropped, and who said it hears that.
                Some(Word::Answer { .. } | Word::More { .. }) => {}
                None => {
                    self.lists_at = None;
                    let model = self.model().unwrap_or_default();
                    self.tell(AgentEvent::About(Box::new(about(model, true)))).await;
                }
            }
        }
    }

    async fn ask(&mut self, key: String, tool: &str, form: &Form, script: &mut Script) -> QuestionAnswer {
        let (tool, form, detail) = (tool.to_owned(), form.clone(), question(tool, form));
        self.tell(AgentEvent::Asked { question: key.clone(), tool, kind: String::new(), detail, form }).await;
        loop {
            match self.hear(None).await {
                Some(Word::Answer { question, answer }) if question == key => return answer,
                Some(word) => self.take_more(word, script).await,
                None => {}
            }
        }
    }

    /// The next word, or nothing when it is that late.
    async fn hear(&mut self, until: Option<Instant>) -> Option<Word> {
        let word = async {
            match self.heard.recv().await {
                Some(word) => word,
                // Nobody will ever say anything: what remains is to be ended.
                None => std::future::pending().await,
            }
        };
        match until {
            Some(until) => tokio::time::timeout_at(until, word).await.ok(),
            None => Some(word.await),
        }
    }

    /// Does nothing until then, but for what is added to the turn.
    async fn listen(&mut self, until: Option<Instant>, script: &mut Script) {
        while let Some(word) = self.hear(until).await {
            self.take_more(word, script).await;
        }
    }

    async fn take_more(&mut self, word: Word, script: &mut Script) {
        let Word::More { text, taken } = word else { return };
        // Who has gone meanwhile will not know; the words were said all the same.
        let _ = taken.send(());
        if let Some(Native { id, .. }) = &self.native
            && let Some(memory) = self.house.rooms().memories.get_mut(id)
        {
            memory.add(&text);
        }
        self.tell(AgentEvent::Text { text: script.aside(&text) }).await;
    }

    fn remembered(&self) -> Memory {
        self.native.as_ref().and_then(|native| self.house.memory(native)).unwrap_or_default()
    }

    fn keep(&self, step: ScriptStep, text: &str) {
        let Some(Native { id, .. }) = &self.native else { return };
        let mut rooms = self.house.rooms();
        if step == ScriptStep::Forget {
            rooms.memories.remove(id);
            return;
        }
        let memory = rooms.memories.entry(id.clone()).or_default();
        match step {
            ScriptStep::FailStarts { failure: Failure::Busy, count } => memory.starts_busy = count,
            ScriptStep::FailStarts { count, .. } => memory.starts_failing = count,
            _ => memory.messages.push(text.to_owned()),
        }
    }

    async fn tell(&self, event: AgentEvent) {
        // After the daemon has gone we talk to nobody, like a process whose pipe leads nowhere.
        let _ = self.say.send(event).await;
    }

    fn note(&self, did: Did) {
        let noted = self.noted(did);
        self.house.rooms().noted.push(noted);
    }

    fn noted(&self, did: Did) -> Noted {
        let Launch { session, fence, message, .. } = self.launch;
        let at_ms = u64::try_from(self.house.built.elapsed().as_millis()).unwrap_or(u64::MAX);
        Noted { did, session, fence, message, native: self.native.clone(), at_ms }
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        self.note(self.over.unwrap_or(Did::Killed));
        self.house.rooms().alive.remove(&self.launch.tree);
        self.leave.send_replace(true);
    }
}
