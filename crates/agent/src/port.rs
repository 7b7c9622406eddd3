//! The two traits between the engine and every agent: `Agent` can be started, `Running` is one attempt going on.
//!
//! The order of one attempt: the engine makes `AttemptStarted` durable, calls `start`, waits for `Ready`, makes `Handed`
//! durable, calls `hand`, then listens to `next` until it says `Finished`, `Failed` or `Died`. Only the agent's own
//! terminal event finishes a turn; an exit status never does. When `Failed` or `Died` arrives, the attempt's whole
//! process tree has been seen gone; after `Finished` it is gone too, or the driver keeps it for the session's next turn.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use kernel::{Fence, GroundPath, MessageId, Native, PersonId, SessionId};

use crate::{
    AgentEvent, Attachment, Background, CHOICES_MAX, Choice, FilesTaken, SessionNotices, TreeName,
    TriedVersions, Trouble,
};

/// A future behind a pointer, so that ports can be used as `dyn`.
pub type Reply<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The longest message that can be handed to an agent. Longer ones are refused before a byte leaves us.
pub const MESSAGE_BYTES_MAX: usize = 1024 * 1024;

/// One kind of agent, installed or not.
pub trait Agent: Send + Sync + 'static {
    /// Its name in a scope: `claude`, `codex`, `scripted` …
    fn name(&self) -> &str;

    /// Its abilities. The same answer each time.
    fn abilities(&self) -> Abilities;

    /// True if this model may be chosen, by those that it has listed, if it has. Some take names that they do not list.
    fn takes_model(&self, model: &str, listed: &[Choice]) -> bool {
        // A list that was cut says nothing of what is not in it.
        let is_whole = !listed.is_empty() && listed.len() < CHOICES_MAX;
        !is_whole || listed.iter().any(|choice| choice.name == model)
    }

    /// Looks if it is here and could be started. Takes as long as asking the program for its version.
    fn look(&self) -> Reply<'_, Presence>;

    /// Its setup, for people: which program, whose home, whether it asks before it acts.
    fn setup(&self) -> Setup;

    /// Its sign-in as far as it can be seen, by its files and variables alone: no turn is run, so only a turn proves it.
    fn sign_in(&self) -> SignIn {
        SignIn::Unknown
    }

    /// Starts the process of one attempt and returns once it exists. Nothing of the message has left us then: the
    /// launch names it only so that the agent's own records can. Dropping the future, or later the `Running`, ends
    /// whatever was started, soon but not at once; `end_leftovers` is how to be sure.
    fn start(&self, launch: Launch) -> Reply<'_, Result<Box<dyn Running>, Trouble>>;

    /// Makes sure that nothing of an attempt is left running: when this answers `Ok`, its lock was held by us and its
    /// tree was seen gone. Fine to call twice, and for an attempt that never came to exist. An error means that it
    /// could not be made sure: nothing may be started in that session yet.
    fn end_leftovers(&self, tree: TreeName) -> Reply<'_, Result<EndedLeftovers, Trouble>>;

    /// An attempt of this session is about to begin: whoever keeps a process for it may make sure meanwhile that it is there.
    /// A hint, that may come to nothing. Nothing is started for it, and nothing of any message is said.
    fn expect(&self, session: SessionId) {
        let _ = session;
    }

    /// Ends the process that is kept for a session between its turns, if there is one, with whatever runs in the background
    /// of it, and answers with that when all of it is gone. No turn of that session runs then.
    fn release(&self, session: SessionId) -> Reply<'_, Background> {
        // Whoever keeps no process has none to end.
        let _ = session;
        Box::pin(async { Background::default() })
    }

    /// The processes in the background of a session now. While a turn runs: of those that were there before it.
    fn background(&self, session: SessionId) -> Reply<'_, Background> {
        let _ = session;
        Box::pin(async { Background::default() })
    }

    /// Tells it where to say that what ran in the background of a session has ended without anybody asking for it. Called
    /// once, before the first start.
    fn tell_notices_to(&self, notices: SessionNotices) {
        let _ = notices;
    }

    /// Ends every process that is kept between turns, and answers when they are gone. The server is going.
    fn close(&self) -> Reply<'_, ()> {
        Box::pin(async {})
    }
}

/// One attempt going on.
pub trait Running: Send {
    /// The next thing the agent says. Cancel-safe: a dropped future loses nothing. After `Finished`, `Failed` or `Died`
    /// it is over, and asking again answers `Died`.
    fn next(&mut self) -> Reply<'_, AgentEvent>;

    /// Hands over the words. Called once, after `Ready`, and only when `Handed` is durable.
    fn hand(&mut self, message: Message) -> Reply<'_, Result<(), Trouble>>;

    /// Adds words to the turn that runs, where `Abilities.steer`. Called after `hand`, as often as there are words.
    /// `Taken` is the agent's own word that they are part of this turn; until it says so the answer is awaited, but only
    /// for a bounded time. Dropping the future leaves open whether they were taken: then they are neither to be said
    /// again nor to be called unsaid.
    fn steer(&mut self, message: Message) -> Reply<'_, Result<Steered, Trouble>> {
        // Who cannot do it takes nothing.
        let _ = message;
        Box::pin(async { Ok(Steered::TooLate) })
    }

    /// Answers what the agent `Asked`, by the agent's own key. Answering something it no longer asks is harmless.
    fn answer(&mut self, question: &str, answer: QuestionAnswer) -> Reply<'_, Result<(), Trouble>>;

    /// Ends the attempt: politely for up to `grace_ms`, then the whole tree, then looks that it is gone. Fine to call
    /// twice, after the end, and again after the future was dropped half-way. What the agent had said until then,
    /// its terminal event included, can still be had from `next`.
    fn stop(&mut self, grace_ms: u64) -> Reply<'_, TreeEnd>;
}

/// Everything that starting an attempt takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// The session it belongs to.
    pub session: SessionId,
    /// The attempt itself.
    pub fence: Fence,
    /// The name of its processes; `TreeName::of(session)`.
    pub tree: TreeName,
    /// The scope's directory, absolute.
    pub directory: GroundPath,
    /// Its true name, by which the agent's process calls it, if that is another one: where a link names the data directory.
    pub directory_true: Option<GroundPath>,
    /// The conversation to go on with, by the agent's own id; `None` makes a new one.
    pub native: Option<Native>,
    /// Go on with `native` under a new id, which `Ready` names, while the first stays as it was. Only where
    /// `Abilities.fork`, and only in the first attempt: as soon as the new id is known, it is gone on with like any other.
    pub fork: bool,
    /// The scope's model, if it names one. The agent uses this one or is not `Ready`: never another one in its place.
    pub model: Option<String>,
    /// The scope's mode, if it names one.
    pub mode: Option<String>,
    /// Whose sign-in the agent is to use.
    pub account: Account,
    /// Variables by which the agent can call us back. They hold no secret: it lies where they point.
    pub variables: Vec<(String, String)>,
    /// The message this attempt is for. Its words come later, by `hand`.
    pub message: MessageId,
    /// The id of the person whose session it is, which says as which user of the operating system it runs. Empty if
    /// nobody has said.
    pub whose: String,
    /// True if it is not to be started without a wall around it: other people's words are on this machine.
    pub walled: bool,
    /// True if nobody's session begins with it: the agent is only asked what it says of itself.
    pub looks: bool,
}

impl Launch {
    /// A launch with the agent's own defaults and a new conversation.
    pub fn new(
        session: SessionId,
        fence: Fence,
        message: MessageId,
        directory: impl Into<GroundPath>,
    ) -> Self {
        Self {
            session,
            fence,
            tree: TreeName::of(session),
            directory: directory.into(),
            directory_true: None,
            native: None,
            fork: false,
            model: None,
            mode: None,
            account: Account::House,
            variables: Vec::new(),
            message,
            whose: String::new(),
            walled: false,
            looks: false,
        }
    }
}

/// Whose sign-in an attempt uses.
#[derive(Clone, PartialEq, Eq, Default)]
pub enum Account {
    /// That of whoever runs Homing: what the agent's home and the configuration hold.
    #[default]
    House,
    /// A person's own: variables for the agent's environment, which stand there in place of the house's.
    Person { person: PersonId, secrets: Vec<(String, String)> },
}

impl fmt::Debug for Account {
    /// Never the secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::House => f.write_str("House"),
            Self::Person { person, .. } => write!(f, "Person({person})"),
        }
    }
}

/// The setup of an agent, for people.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Setup {
    /// The kind of driver: `claude`, `codex`, `opencode`, `acp`, `command`, `scripted`.
    pub kind: &'static str,
    /// The program that is started.
    pub program: String,
    /// The home it gets.
    pub home: String,
    /// It acts without asking, because the configuration says so.
    pub bypasses: bool,
    /// True if its process is kept between turns.
    pub is_kept: bool,
    /// True if what a turn of it leaves running is kept with its process.
    pub keeps_background: bool,
    /// The variables by which a person may give it their own sign-in.
    pub secrets: Vec<String>,
    /// The versions of its program with which the driver was tried, if it is one that we know.
    pub tried: Option<TriedVersions>,
}

/// An agent's sign-in, as far as it can be seen without a turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum SignIn {
    /// Nobody can tell without a turn, or it needs none.
    #[default]
    Unknown,
    /// It does; `by` names the file or the variable that says so, never what is in it.
    Here { by: String },
    /// It does not; `how` says what to do.
    Missing { how: String },
}

/// The message to the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Ours.
    pub id: MessageId,
    /// The words; at most `MESSAGE_BYTES_MAX`. They may be empty if something goes along.
    pub text: String,
    /// The images and files that go along, in their order; at most `ATTACHED_BYTES_MAX` together.
    pub attachments: Vec<Attachment>,
}

impl Message {
    /// A message of words alone.
    pub fn new(id: MessageId, text: impl Into<String>) -> Self {
        Self { id, text: text.into(), attachments: Vec::new() }
    }
}

/// The fate of words that were to be added to a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Steered {
    /// They are part of this turn.
    Taken,
    /// The turn was over, or the agent did not take them. Nothing of them was acted on or will be.
    TooLate,
}

/// A person's answer to an agent's question. Whatever does not fit the question's `Form` counts as a no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuestionAnswer {
    /// Once, this one.
    Allow,
    /// No; the reason is for the agent and may be empty. To a choice or a question for words: nobody will say.
    Deny { reason: String },
    /// The option at this place of `Form::Choice`, counted from 0.
    Chose(usize),
    /// In words: to `Form::Words`, and to a choice none of whose options fits.
    Said(String),
}

/// The abilities of an agent. Whatever it cannot do is a value here, not an error from a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Abilities {
    /// We may choose the conversation's native id.
    pub chosen_id: bool,
    /// A conversation can be gone on with in a new process.
    pub resume: bool,
    /// A conversation can be continued under a second id while the first stays as it was.
    pub fork: bool,
    /// Words can be added to a turn while it runs.
    pub steer: bool,
    /// It asks before it acts, and waits for the answer.
    pub asks: bool,
    /// It says what a turn cost.
    pub usage: bool,
    /// It lists its slash commands.
    pub commands: bool,
    /// It lists its models, and one can be chosen.
    pub models: bool,
    /// It lists its modes, and one can be chosen.
    pub modes: bool,
    /// It takes images.
    pub images: bool,
    /// The files that it takes.
    pub files: FilesTaken,
    /// It is known to lose its own conversations: one that it no longer knows is begun anew and told again, and ends nothing.
    pub forgets: bool,
    /// The way its memory follows when a session moves to another directory.
    pub memory: MemoryMove,
}

/// The way in which the memory of a conversation follows a change of directory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MemoryMove {
    /// The agent goes on with the same id elsewhere, and works there.
    Resume,
    /// The file that holds the memory has to be carried along first.
    Carry,
    /// It does not follow; the transcript has to be told again.
    #[default]
    Replay,
}

/// The result of `look`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Presence {
    /// It can be started. The version is empty if it does not tell it, which is no defect.
    Here { version: String },
    /// It cannot; `what` says what is missing and how to get it.
    Missing { what: String },
}

/// The observation when an attempt ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TreeEnd {
    /// The number of processes that had to be killed; 0 when all of them went by themselves.
    pub killed: u32,
    /// True if the tree was seen gone. `false` means that something could not be killed in time: `end_leftovers` before
    /// anything else is started in that session.
    pub gone: bool,
}

/// The remains of an attempt that should not be running.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EndedLeftovers {
    /// The number of processes that had to be killed.
    pub killed: u32,
}
