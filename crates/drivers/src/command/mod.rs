//! Any program as an agent: the message in, the answer out, one process per turn.
//!
//! The contract: the program gets the message on its standard input, which then ends, or as its last argument. What it
//! prints is the answer, as plain text or as lines of JSON. **Exit code 0 finishes the turn; anything else fails it.** It
//! finds `HOMING_SESSION`, `HOMING_TURN`, `HOMING_NATIVE` (its name for the conversation, the same in every turn) and
//! `HOMING_NEW` (`1` in the first turn) in its environment.
//!
//! The process starts when the message is handed over, not before: a program that does not wait for its input would
//! have acted, or ended, before anybody said anything to it. Read on in `protocol` (what its words and codes mean) and
//! `plain` (bytes as text).

mod plain;
mod protocol;

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use agent::{
    Abilities, Agent, AgentEvent, Background, EndedLeftovers, Launch, MemoryMove, Message, Presence,
    QuestionAnswer, Reply, Running, Setup, TreeEnd, TreeName, Trouble,
};
use kernel::{Native, SessionId};
use serde::Deserialize;

use crate::program::{AgentProgram, ProgramConfig};
use crate::running_agent::gone_if_here;
use plain::PlainTextReader;
use protocol::{CommandProtocol, ExitCodes, is_name};

/// The longest message that fits into an argument; Linux takes 128 KiB with the end.
const ARGUMENT_BYTES_MAX: usize = 128 * 1024 - 1;

/// The settings of a program that is run as an agent.
#[derive(Debug, Clone)]
pub struct CommandConfig {
    /// The program, its first arguments, home and limits. Its process is never kept.
    pub program: ProgramConfig,
    /// The way it gets the message.
    pub hands: MessageChannel,
    /// The form of its answer.
    pub says: OutputForm,
    /// Arguments of the first turn of a conversation, after the program's. `{native}` and `{directory}` are filled in.
    pub new_args: Vec<String>,
    /// Arguments of the turns after it; the same are filled in.
    pub resume_args: Vec<String>,
    /// Arguments that choose a model, if one is named: `{model}` is filled in. Without them there is nothing to choose.
    pub model_args: Vec<String>,
    /// True if it remembers a conversation from turn to turn.
    pub remembers: bool,
    /// Exit codes that mean: a person has to change something first.
    pub refused_codes: Vec<i32>,
    /// Exit codes that mean: this conversation no longer exists.
    pub gone_codes: Vec<i32>,
    /// Exit codes that mean: somebody else uses this conversation.
    pub busy_codes: Vec<i32>,
    /// Arguments that make it say its version; without any it is not asked.
    pub version_args: Vec<String>,
    /// The variables by which a person may give it their own sign-in.
    pub secrets: Vec<String>,
}

impl CommandConfig {
    /// A program that reads its input, prints its answer and remembers nothing.
    pub fn new(program: ProgramConfig) -> Self {
        Self {
            program,
            hands: MessageChannel::default(),
            says: OutputForm::default(),
            new_args: Vec::new(),
            resume_args: Vec::new(),
            model_args: Vec::new(),
            remembers: false,
            refused_codes: Vec::new(),
            gone_codes: Vec::new(),
            busy_codes: Vec::new(),
            version_args: Vec::new(),
            secrets: Vec::new(),
        }
    }
}

/// The way a program gets the message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageChannel {
    /// On its standard input, which then ends.
    #[default]
    Stdin,
    /// As its last argument, where everybody on the machine can read it.
    Argument,
}

/// The form of a program's answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputForm {
    /// All of its standard output is the answer.
    #[default]
    Text,
    /// Each line is a JSON value with something in it.
    Json(JsonForm),
}

/// Where in a line of JSON something stands, as JSON pointers (`/message/text`).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JsonForm {
    /// More words of the answer.
    pub text: Option<String>,
    /// The program's own name for the conversation.
    pub session: Option<String>,
    /// The error. A turn with this has failed, whatever the exit code.
    pub error: Option<String>,
    /// Tokens read since the last time.
    pub input_tokens: Option<String>,
    /// Tokens written since the last time.
    pub output_tokens: Option<String>,
}

/// Any program as an agent.
#[derive(Clone)]
pub struct CommandAgent {
    command: Arc<CommandProgram>,
}

struct CommandProgram {
    program: AgentProgram<CommandProtocol>,
    config: CommandConfig,
}

impl CommandAgent {
    /// The agent, set up so.
    pub fn new(config: CommandConfig) -> Self {
        let program = AgentProgram::new(ProgramConfig { kept_max: 0, ..config.program.clone() })
            .with_secrets(&config.secrets);
        Self { command: Arc::new(CommandProgram { program, config }) }
    }

    async fn begin(&self, launch: Launch) -> Result<Box<dyn Running>, Trouble> {
        let prepared = self.command.prepare(&launch)?;
        Ok(Box::new(Turn { command: self.command.clone(), launch, prepared, stage: RunStage::Starting }))
    }

    async fn see(&self) -> Presence {
        let CommandProgram { program, config } = &*self.command;
        if !config.version_args.is_empty() {
            let args: Vec<&str> = config.version_args.iter().map(String::as_str).collect();
            return program.look(&args).await;
        }
        match program.path() {
            Some(_) => Presence::Here { version: String::new() },
            None => Presence::Missing { what: format!("there is no program {:?}", config.program.program) },
        }
    }
}

/// The preparation of a turn.
struct PreparedTurn {
    args: Vec<String>,
    native: Option<Native>,
    is_new: bool,
    /// The trouble with the conversation it is to go on with.
    trouble: Option<Trouble>,
}

impl CommandProgram {
    /// Everything that can be refused is refused here, before the message counts as handed over.
    fn prepare(&self, launch: &Launch) -> Result<PreparedTurn, Trouble> {
        if self.program.path().is_none() {
            let program = &self.config.program.program;
            return Err(Trouble::refused(format!(
                "there is no program {program:?}; install it, or set its path"
            )));
        }
        // It is started when the message is handed over, which is too late for this. A link is none.
        let there = Path::new(launch.directory.for_holding());
        if !there.symlink_metadata().is_ok_and(|there| there.is_dir()) {
            return Err(Trouble::refused(format!("{} is not a directory", launch.directory.for_readers())));
        }
        if launch.mode.is_some() {
            return Err(Trouble::refused("this program has no modes; leave it out"));
        }
        let model = self.model_args(launch)?;
        let place = self.program.place(launch);
        let trouble = launch
            .native
            .as_ref()
            .filter(|native| !is_name(&native.id))
            .map(|_| gone_if_here(launch, &place, "a conversation that no program of ours has named"));
        let native = match (&launch.native, self.names_itself()) {
            (Some(native), _) => Some(Native::new(native.id.clone()).at(place)),
            (None, true) => None,
            (None, false) => Some(Native::new(mint().map_err(no_random)?).at(place)),
        };
        let is_new = launch.native.is_none();
        let own = if is_new { &self.config.new_args } else { &self.config.resume_args };
        let id = native.as_ref().map_or("", |native| &native.id);
        let fill =
            |arg: &String| arg.replace("{native}", id).replace("{directory}", launch.directory.for_launch());
        let args = own.iter().map(fill).chain(model).collect();
        Ok(PreparedTurn { args, native, is_new, trouble })
    }

    fn model_args(&self, launch: &Launch) -> Result<Vec<String>, Trouble> {
        let Some(model) = &launch.model else { return Ok(Vec::new()) };
        if self.config.model_args.is_empty() {
            return Err(Trouble::refused("this program has no models to choose from; leave it out"));
        }
        if !is_name(model) {
            return Err(Trouble::refused(format!("{model:?} is no name of a model")));
        }
        Ok(self.config.model_args.iter().map(|arg| arg.replace("{model}", model)).collect())
    }

    fn names_itself(&self) -> bool {
        matches!(&self.config.says, OutputForm::Json(form) if form.session.is_some())
    }

    async fn run(
        &self,
        launch: &Launch,
        prepared: &PreparedTurn,
        text: &str,
    ) -> Result<Box<dyn Running>, Trouble> {
        let mut args = prepared.args.clone();
        if self.config.hands == MessageChannel::Argument {
            let last = args.last().or(self.config.program.args.last());
            check_argument(text, last.map(String::as_str))?;
            args.push(text.to_owned());
        }
        let CommandConfig { hands, says, refused_codes, gone_codes, busy_codes, .. } = self.config.clone();
        let protocol = CommandProtocol {
            hands,
            says,
            codes: ExitCodes { refused: refused_codes, gone: gone_codes, busy: busy_codes },
            launch: launch.clone(),
            native: prepared.native.clone(),
            place: self.program.place(launch),
            plain: PlainTextReader::default(),
            error: None,
        };
        self.program.start(launch.clone(), args, environment(launch, prepared), || (protocol, None)).await
    }
}

fn environment(launch: &Launch, prepared: &PreparedTurn) -> Vec<(String, String)> {
    let native = prepared.native.as_ref().map_or(String::new(), |native| native.id.clone());
    let is_new = if prepared.is_new { "1" } else { "0" };
    [
        ("HOMING_SESSION", launch.session.to_string()),
        ("HOMING_TURN", launch.fence.turn.to_string()),
        ("HOMING_NATIVE", native),
        ("HOMING_NEW", is_new.to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}

/// A message that would be taken for an option is refused, unless the argument before it says that no more options come.
fn check_argument(text: &str, before: Option<&str>) -> Result<(), Trouble> {
    if text.starts_with('-') && before != Some("--") {
        let trouble = "this program would take a message that begins with `-` for an option; put `--` last among its \
                       arguments, or let it read its input";
        return Err(Trouble::refused(trouble));
    }
    if text.contains('\0') {
        return Err(Trouble::refused("a message with a zero byte in it cannot be an argument"));
    }
    if text.len() > ARGUMENT_BYTES_MAX {
        let trouble = format!(
            "a message of more than {ARGUMENT_BYTES_MAX} bytes cannot be an argument; let it read its input"
        );
        return Err(Trouble::refused(trouble));
    }
    Ok(())
}

/// A random id in the form of a version 4 UUID.
fn mint() -> std::io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok([&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-"))
}

fn no_random(why: std::io::Error) -> Trouble {
    Trouble::transient(format!("no random numbers: {why}"))
}

/// One turn: nothing runs until the message is there.
struct Turn {
    command: Arc<CommandProgram>,
    launch: Launch,
    prepared: PreparedTurn,
    stage: RunStage,
}

enum RunStage {
    /// Nothing was said yet.
    Starting,
    /// It waits for the message.
    Waiting,
    Running(Box<dyn Running>),
    Over,
}

impl Turn {
    async fn hear(&mut self) -> AgentEvent {
        match &mut self.stage {
            RunStage::Starting => match self.prepared.trouble.take() {
                Some(trouble) => {
                    self.stage = RunStage::Over;
                    AgentEvent::Failed(trouble)
                }
                None => {
                    self.stage = RunStage::Waiting;
                    AgentEvent::Ready { native: self.prepared.native.clone() }
                }
            },
            RunStage::Waiting => std::future::pending().await,
            RunStage::Running(running) => loop {
                match running.next().await {
                    // Said already.
                    AgentEvent::Ready { .. } => {}
                    event => return event,
                }
            },
            RunStage::Over => {
                let verified = TreeEnd { killed: 0, gone: true };
                AgentEvent::Died { detail: "it was never started".to_owned(), verified }
            }
        }
    }

    async fn run(&mut self, message: Message) -> Result<(), Trouble> {
        message.check(|_| false)?;
        let running = self.command.run(&self.launch, &self.prepared, &message.text).await?;
        self.stage = RunStage::Running(running);
        match &mut self.stage {
            RunStage::Running(running) => running.hand(message).await,
            _ => Ok(()),
        }
    }

    async fn end(&mut self, grace_ms: u64) -> TreeEnd {
        match &mut self.stage {
            RunStage::Running(running) => running.stop(grace_ms).await,
            _ => {
                self.stage = RunStage::Over;
                TreeEnd { killed: 0, gone: true }
            }
        }
    }
}

impl Running for Turn {
    fn next(&mut self) -> Reply<'_, AgentEvent> {
        Box::pin(self.hear())
    }

    fn hand(&mut self, message: Message) -> Reply<'_, Result<(), Trouble>> {
        Box::pin(self.run(message))
    }

    fn answer(&mut self, _: &str, _: QuestionAnswer) -> Reply<'_, Result<(), Trouble>> {
        // It never asks.
        Box::pin(async { Ok(()) })
    }

    fn stop(&mut self, grace_ms: u64) -> Reply<'_, TreeEnd> {
        Box::pin(self.end(grace_ms))
    }
}

impl Agent for CommandAgent {
    fn name(&self) -> &str {
        &self.command.config.program.name
    }

    fn abilities(&self) -> Abilities {
        let CommandConfig { remembers, model_args, says, .. } = &self.command.config;
        Abilities {
            chosen_id: !self.command.names_itself(),
            resume: *remembers,
            usage: matches!(says, OutputForm::Json(form) if form.input_tokens.is_some() || form.output_tokens.is_some()),
            models: !model_args.is_empty(),
            // A program that remembers does so by the conversation's name, wherever it is started.
            memory: if *remembers { MemoryMove::Resume } else { MemoryMove::Replay },
            ..Abilities::default()
        }
    }

    fn look(&self) -> Reply<'_, Presence> {
        Box::pin(self.see())
    }

    fn setup(&self) -> Setup {
        let CommandConfig { program, secrets, .. } = &self.command.config;
        Setup {
            kind: "command",
            program: program.program.clone(),
            home: program.home.clone(),
            // It is not asked, so it does not ask.
            bypasses: true,
            is_kept: false,
            keeps_background: false,
            secrets: secrets.clone(),
            tried: None,
        }
    }

    fn start(&self, launch: Launch) -> Reply<'_, Result<Box<dyn Running>, Trouble>> {
        Box::pin(self.begin(launch))
    }

    fn end_leftovers(&self, tree: TreeName) -> Reply<'_, Result<EndedLeftovers, Trouble>> {
        Box::pin(self.command.program.end_leftovers(tree))
    }

    fn release(&self, session: SessionId) -> Reply<'_, Background> {
        Box::pin(self.command.program.release(TreeName::of(session)))
    }
}
