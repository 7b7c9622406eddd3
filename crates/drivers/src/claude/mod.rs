//! Claude Code, by lines of JSON in a process that is kept between turns.
//!
//! Read in this order: this file (how the program is started), `protocol` (how it is talked to, pure), `content` (its words
//! and tools), `usage` (what a turn cost) and `trouble` (what its failures mean). What the program does is in
//! docs/agents.md; the recordings that the readers are tested with are in `testdata/claude`.
//!
//! **Sign-in.** With the person's own home, claude uses the sign-in that is there (`.claude/.credentials.json`, or the
//! keychain on macOS). It refreshes that by itself and locks the file while it does, so that any number of claude
//! processes may share one home; nothing of it is ours to touch. A home per session begins empty, and claude then says
//! that nobody is logged in: give it `ANTHROPIC_API_KEY`, or `CLAUDE_CODE_OAUTH_TOKEN` as `claude setup-token` prints it,
//! in the environment. Never copy `.credentials.json` into such a home: a token that was refreshed in one copy is worth
//! nothing in the other. `CLAUDE_CONFIG_DIR` moves `.claude` elsewhere, for all sessions alike.
//!
//! **What it may not do.** The tools by which claude would wake up by itself or work in another directory are not offered
//! to it: a turn is somebody's message, what a turn leaves running is ended with it, and the directory is the session's.

mod content;
mod protocol;
#[cfg(test)]
mod recordings;
mod trouble;
mod usage;

use std::path::Path;

use agent::{
    Abilities, Agent, Background, Choice, EndedLeftovers, FilesTaken, Launch, MemoryMove, Presence, Reply,
    Running, SessionNotices, Setup, SignIn, TreeName, TriedVersions, Trouble,
};
use kernel::{Native, SessionId};
use uuid::Uuid;

use crate::background::BackgroundPolicy;
use crate::program::{AgentProgram, ProgramConfig};
use crate::running_agent::gone_if_here;
use protocol::{ClaudeProtocol, Conversation};

/// Arguments that the program is started with, whatever else.
const ARGS: [&str; 9] = [
    "-p",
    "--input-format",
    "stream-json",
    "--output-format",
    "stream-json",
    "--verbose",
    "--include-partial-messages",
    "--permission-prompt-tool",
    "stdio",
];

/// Tools that are not offered: they work after the turn is over, or in another directory than the session's.
const TOOLS_NOT_OFFERED: &str =
    "--disallowedTools=CronCreate,CronDelete,CronList,ScheduleWakeup,EnterWorktree,ExitWorktree";

/// The variables of its environment unless the configuration says otherwise.
const VARIABLES: [(&str, &str); 4] = [
    ("DISABLE_TELEMETRY", "1"),
    ("DISABLE_AUTOUPDATER", "1"),
    ("DISABLE_ERROR_REPORTING", "1"),
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
];

/// The variables that hold somebody's sign-in.
const SECRETS: [&str; 2] = ["ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"];

/// Other variables by which a model server is reached. With one of them the sign-in is somebody else's affair.
const OTHER_WAYS_IN: [&str; 4] =
    ["ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"];

/// The oldest and the newest version that was tried, and how to get the newest there is.
const TRIED: [&str; 3] = ["2.1.261", "2.1.325", "npm install -g @anthropic-ai/claude-code"];

const SIGN_IN_FILE: &str = ".claude/.credentials.json";
const SIGN_IN_HOW: &str = "sign in with `claude` and then /login, or set ANTHROPIC_API_KEY";

/// Its modes, whether somebody is asked in them, and what people should know.
const MODES: [(&str, bool, &str); 7] = [
    ("default", true, "asks before it changes or runs something"),
    ("manual", true, "another word for default"),
    ("acceptEdits", true, "edits files without asking, asks before it runs something"),
    ("plan", true, "reads and plans, changes nothing"),
    ("dontAsk", true, "refuses by itself what it would have to ask about"),
    ("auto", false, "judges by itself what it may do"),
    ("bypassPermissions", false, "does everything without asking"),
];
const BYPASS: &str = "bypassPermissions";

/// Claude Code.
pub struct Claude {
    program: AgentProgram<ClaudeProtocol>,
}

impl Claude {
    /// Claude, run so.
    pub fn new(config: ProgramConfig) -> Self {
        Self { program: AgentProgram::new(config).with_secrets(SECRETS) }
    }

    async fn start_now(&self, launch: Launch) -> Result<Box<dyn Running>, Trouble> {
        let place = self.program.place(&launch);
        let conversation = conversation(&launch, &place)?;
        let mode = mode(&launch, self.program.config.bypasses)?;
        let args = args(&launch, &conversation, mode.as_deref())?;
        let env = self.variables(mode.as_deref());
        let modes = modes(self.program.config.bypasses);
        let tongue_launch = launch.clone();
        let keeps = self.program.config.background == BackgroundPolicy::Kept;
        let begin = move || {
            let protocol = ClaudeProtocol::new(tongue_launch, place, conversation, modes);
            (protocol.keeping_commands(keeps), None)
        };
        self.program.start(launch, args, env, begin).await
    }

    /// The variables of our own.
    fn variables(&self, mode: Option<&str>) -> Vec<(String, String)> {
        let mut env: Vec<_> = VARIABLES.to_vec();
        if mode == Some(BYPASS) && rustix::process::geteuid().is_root() {
            // Without it claude refuses this mode to root, which is what everybody is in a container.
            env.push(("IS_SANDBOX", "1"));
        }
        let is_set = |name: &str| self.variable(name).is_some();
        env.retain(|(name, _)| !is_set(name));
        env.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    fn variable(&self, name: &str) -> Option<&str> {
        let mut env = self.program.config.env.iter();
        env.find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl Agent for Claude {
    fn name(&self) -> &str {
        &self.program.config.name
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            chosen_id: true,
            resume: true,
            asks: true,
            usage: true,
            commands: true,
            models: true,
            modes: true,
            fork: true,
            steer: true,
            images: true,
            files: FilesTaken::Pdf,
            forgets: false,
            memory: MemoryMove::Resume,
        }
    }

    /// Its list has short names only; a model's full name is sent to the model server as it stands.
    fn takes_model(&self, model: &str, listed: &[Choice]) -> bool {
        let short = model.split('[').next().unwrap_or(model);
        let is_full = short.contains(['-', '.', '/', ':', '@']);
        is_full
            || listed.is_empty()
            || listed.iter().any(|choice| choice.name == model || choice.name == short)
    }

    fn look(&self) -> Reply<'_, Presence> {
        Box::pin(self.program.look(&["--version"]))
    }

    fn setup(&self) -> Setup {
        let ProgramConfig { program, home, bypasses, kept_max, background, .. } = self.program.config.clone();
        let secrets = SECRETS.map(str::to_owned).to_vec();
        let [oldest, newest, update] = TRIED;
        let tried = Some(TriedVersions::new(oldest, newest, update));
        let keeps_background = background == BackgroundPolicy::Kept;
        Setup {
            kind: "claude",
            program,
            home,
            bypasses,
            is_kept: kept_max > 0,
            keeps_background,
            secrets,
            tried,
        }
    }

    fn sign_in(&self) -> SignIn {
        if let Some(name) = SECRETS.iter().find(|name| self.variable(name).is_some()) {
            return SignIn::Here { by: (*name).to_owned() };
        }
        if OTHER_WAYS_IN.iter().any(|name| self.variable(name).is_some()) {
            return SignIn::Unknown;
        }
        let file = match self.variable("CLAUDE_CONFIG_DIR") {
            Some(directory) => Path::new(directory).join(".credentials.json"),
            None => Path::new(&self.program.config.home).join(SIGN_IN_FILE),
        };
        if file.is_file() {
            return SignIn::Here { by: file.display().to_string() };
        }
        // The keychain can be asked, but not without a question to the person at the screen.
        if cfg!(target_os = "macos") {
            SignIn::Unknown
        } else {
            SignIn::Missing { how: SIGN_IN_HOW.to_owned() }
        }
    }

    fn start(&self, launch: Launch) -> Reply<'_, Result<Box<dyn Running>, Trouble>> {
        Box::pin(self.start_now(launch))
    }

    fn end_leftovers(&self, tree: TreeName) -> Reply<'_, Result<EndedLeftovers, Trouble>> {
        Box::pin(self.program.end_leftovers(tree))
    }

    fn expect(&self, session: SessionId) {
        self.program.expect(session);
    }

    fn release(&self, session: SessionId) -> Reply<'_, Background> {
        Box::pin(self.program.release(TreeName::of(session)))
    }

    fn background(&self, session: SessionId) -> Reply<'_, Background> {
        Box::pin(self.program.background(TreeName::of(session)))
    }

    fn tell_notices_to(&self, notices: SessionNotices) {
        self.program.tell_notices_to(notices);
    }

    fn close(&self) -> Reply<'_, ()> {
        Box::pin(self.program.close())
    }
}

/// The conversation of a launch: the one it names, or a new one under an id that nobody has used.
fn conversation(launch: &Launch, place: &str) -> Result<Conversation, Trouble> {
    match &launch.native {
        None => Ok(Conversation::New(Uuid::new_v4())),
        Some(Native { id, .. }) => match Uuid::try_parse(id) {
            Ok(of) if launch.fork => Ok(Conversation::Fork { of, id: Uuid::new_v4() }),
            Ok(known) => Ok(Conversation::Known(known)),
            Err(_) => {
                let detail = "claude's conversations are named by UUIDs, and this one is not";
                Err(gone_if_here(launch, place, detail))
            }
        },
    }
}

/// The mode to start in. One in which nobody is asked needs the configuration's word.
fn mode(launch: &Launch, bypasses: bool) -> Result<Option<String>, Trouble> {
    let Some(mode) = &launch.mode else { return Ok(bypasses.then(|| BYPASS.to_owned())) };
    let known = MODES.iter().find(|(name, ..)| name == mode);
    match known {
        Some((_, asks, _)) if *asks || bypasses => Ok(Some(mode.clone())),
        Some(_) => Err(Trouble::refused(format!(
            "in the mode {mode} claude acts without asking, and this agent is not set up for that; choose another \
             mode, or set `bypasses` for it in the configuration"
        ))),
        None => {
            let names: Vec<&str> = MODES.iter().map(|(name, ..)| *name).collect();
            Err(Trouble::refused(format!("claude has no mode {mode:?}; it has {}", names.join(", "))))
        }
    }
}

fn modes(bypasses: bool) -> Vec<Choice> {
    let offered = MODES.iter().filter(|(name, asks, _)| (*asks || bypasses) && *name != "manual");
    let choice = |(name, _, description): &(&str, bool, &str)| Choice {
        name: (*name).to_owned(),
        description: (*description).to_owned(),
    };
    offered.map(choice).collect()
}

fn args(launch: &Launch, conversation: &Conversation, mode: Option<&str>) -> Result<Vec<String>, Trouble> {
    let mut args: Vec<String> = ARGS.map(str::to_owned).to_vec();
    args.push(TOOLS_NOT_OFFERED.to_owned());
    match conversation {
        Conversation::New(id) => args.extend(["--session-id".to_owned(), id.to_string()]),
        Conversation::Known(id) => args.extend(["--resume".to_owned(), id.to_string()]),
        Conversation::Fork { of, id } => {
            args.extend(["--resume".to_owned(), of.to_string(), "--fork-session".to_owned()]);
            args.extend(["--session-id".to_owned(), id.to_string()]);
        }
    }
    args.extend(mode.map(|mode| format!("--permission-mode={mode}")));
    if let Some(model) = &launch.model {
        if model.is_empty() || model.starts_with('-') || model.contains(char::is_control) {
            return Err(Trouble::refused(format!("{model:?} is no name of a model")));
        }
        args.push(format!("--model={model}"));
    }
    Ok(args)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent_protocol::{AgentProtocol, ProtocolOutput};
    use agent::Launch;
    use kernel::{Attempt, Epoch, Failure, Fence, MessageId, Term, Turn};
    use serde_json::{Value, json};

    fn launch() -> Launch {
        let fence = Fence { term: Term(1), epoch: Epoch(1), turn: Turn(1), attempt: Attempt(1) };
        Launch::new(SessionId::from_bits(7), fence, MessageId::from_bits(1), "/srv/project")
    }

    fn claude(change: impl FnOnce(&mut ProgramConfig)) -> Claude {
        let mut config = ProgramConfig::new("claude", "/x/homing", "/x/locks", "claude", "/x/home");
        change(&mut config);
        Claude::new(config)
    }

    #[test]
    fn a_bare_claude_is_measured_in_the_words_that_this_one_is_spoken_to_in() {
        let (launch, message) = (launch(), agent::Message::new(MessageId::from_bits(1), "hello"));
        let new = conversation(&launch, "").unwrap();
        let Conversation::New(id) = &new else { panic!("it is new") };
        let (id, said_args) = (id.to_string(), args(&launch, &new, None).unwrap());
        let mut protocol = ClaudeProtocol::new(launch, String::new(), new, modes(false));
        let mut out = ProtocolOutput::default();
        let mut said = |say: &dyn Fn(&mut ClaudeProtocol, &mut ProtocolOutput)| {
            say(&mut protocol, &mut out);
            let lines = out.take().1;
            lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()
        };
        let opening = said(&|protocol, out| protocol.open(out));
        let words = said(&|protocol, out| protocol.hand(&message, out)).remove(0);
        let here =
            [("CONVERSATION", id.as_str()), ("WORDS", "hello"), ("MESSAGE", words["uuid"].as_str().unwrap())];
        let written = include_str!("../../testdata/kept/claude.json").to_owned();
        let written = here.into_iter().fold(written, |text, (name, value)| text.replace(name, value));
        let written: Value = serde_json::from_str(&written).unwrap();
        assert_eq!(written, json!({"args": said_args, "opening": opening, "message": words}));
    }

    #[test]
    fn a_conversation_is_made_or_gone_on_with_as_the_launch_says() {
        let new = conversation(&launch(), "").unwrap();
        let made = args(&launch(), &new, None).unwrap();
        assert!(
            matches!(new, Conversation::New(id) if made.ends_with(&["--session-id".to_owned(), id.to_string()]))
        );
        let id = Uuid::new_v4().to_string();
        let known = Launch { native: Some(Native::new(id.clone())), ..launch() };
        let args = args(&known, &conversation(&known, "").unwrap(), Some("plan")).unwrap();
        assert!(
            args.ends_with(&["--resume".to_owned(), id, "--permission-mode=plan".to_owned()]),
            "{args:?}"
        );
    }

    #[test]
    fn what_is_no_id_is_gone_where_it_was_made_and_refused_elsewhere() {
        for id in ["", "../../etc/passwd", "00000000-dead-4000-8000", "--help"] {
            let here = Launch { native: Some(Native::new(id).at("here")), ..launch() };
            assert_eq!(conversation(&here, "here").err().unwrap().failure, Failure::Gone, "{id}");
            assert_eq!(conversation(&here, "there").err().unwrap().failure, Failure::Refused, "{id}");
        }
    }

    #[test]
    fn nobody_is_bypassed_unless_the_configuration_says_so() {
        let with = |mode: Option<&str>, bypasses| {
            mode_of(Launch { mode: mode.map(str::to_owned), ..launch() }, bypasses)
        };
        assert_eq!(with(None, false), Ok(None));
        assert_eq!(with(None, true), Ok(Some(BYPASS.to_owned())));
        assert_eq!(with(Some("plan"), true), Ok(Some("plan".to_owned())));
        for mode in [BYPASS, "auto", "--dangerously-skip-permissions", ""] {
            assert_eq!(with(Some(mode), false), Err(Failure::Refused), "{mode}");
        }
        assert_eq!(with(Some("auto"), true), Ok(Some("auto".to_owned())));
        assert!(modes(false).iter().all(|mode| mode.name != BYPASS && mode.name != "auto"));
    }

    fn mode_of(launch: Launch, bypasses: bool) -> Result<Option<String>, Failure> {
        mode(&launch, bypasses).map_err(|trouble| trouble.failure)
    }

    #[test]
    fn an_argument_is_no_model() {
        for model in ["", "--dangerously-skip-permissions", "a\nb"] {
            let launch = Launch { model: Some(model.to_owned()), ..launch() };
            assert!(args(&launch, &Conversation::New(Uuid::nil()), None).is_err(), "{model}");
        }
    }

    #[test]
    fn variables_of_the_configuration_stay_as_they_are() {
        let claude = claude(|config| config.env.push(("DISABLE_TELEMETRY".to_owned(), "0".to_owned())));
        let names: Vec<String> = claude.variables(None).into_iter().map(|(name, _)| name).collect();
        assert!(
            !names.contains(&"DISABLE_TELEMETRY".to_owned())
                && names.contains(&"DISABLE_AUTOUPDATER".to_owned())
        );
    }

    #[test]
    fn a_sign_in_is_seen_in_the_environment_and_in_the_home() {
        let home = tempfile::tempdir().unwrap();
        let at_home = |config: &mut ProgramConfig| config.home = home.path().to_str().unwrap().to_owned();
        if cfg!(not(target_os = "macos")) {
            assert!(matches!(claude(at_home).sign_in(), SignIn::Missing { .. }));
        }
        std::fs::create_dir_all(home.path().join(".claude")).unwrap();
        std::fs::write(home.path().join(SIGN_IN_FILE), "{}").unwrap();
        assert!(matches!(claude(at_home).sign_in(), SignIn::Here { by } if by.ends_with(SIGN_IN_FILE)));
        let keyed = claude(|config| config.env.push((SECRETS[0].to_owned(), "secret".to_owned())));
        assert_eq!(keyed.sign_in(), SignIn::Here { by: SECRETS[0].to_owned() });
    }
}
