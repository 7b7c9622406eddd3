//! OpenCode, by its HTTP server, one for each session.
//!
//! Read in this order: this file (what is started and with which variables), `protocol` (what is asked and what the answers
//! mean, pure), `turn` (what one turn says, pure), `permissions` (what it asks about, pure), `repository` (what a repository brings, pure), `side_channel` (the HTTP, which decides nothing), `ids`.
//!
//! **One server for each session.** A server could hold many sessions, but they would share its death, its directory and
//! the secrets in its environment. It takes five seconds to start, so it is kept between turns. It listens on loopback
//! only and takes nobody without a password, which is made for each process and is in its environment alone. The
//! processes that opencode starts, its program tool's among them, inherit it: whoever may run a command may also answer
//! opencode's questions. Whoever wants that apart must run the agent as somebody else.
//!
//! **Whose sign-in.** `opencode auth login` writes `~/.local/share/opencode/auth.json`, and opencode itself refreshes
//! what is in there. With the home of the person who runs Homing all sessions share that file and its refreshed tokens:
//! each refresh reads the file, changes one entry and writes it, so that only two refreshes in the same instant can lose
//! one, after which that provider asks for a new sign-in. With a home for each session (`{session}`) there is no
//! sign-in but keys from the environment or from an `opencode.json` that somebody puts there; a token that is refreshed
//! must not be copied, because the copies would invalidate each other. A person who gives keys of their own gets none
//! of the house's: in opencode the file beats the environment, so `OPENCODE_AUTH_CONTENT` takes the file's place then.
//! Keys that stand in `opencode.json` itself are everybody's.
//!
//! **What it may do.** `OPENCODE_PERMISSION` stands above what `opencode.json` says for all agents: commands, changes of
//! files and the web are asked about, or allowed where the configuration says that it bypasses. What `opencode.json` says
//! for one agent of opencode's stands above that. So the rules that are in force are read before a
//! turn is handed over, and where they do not show that it asks, it is refused. In the mode `plan` nothing but plans is changed.
//!
//! **What a repository brings.** `opencode.json` and `.opencode` of a repository may name plugins, tools and MCP servers. Opencode
//! starts them when it is started there, before any rule is looked at, and asks nobody. So it is told not to read them
//! (`OPENCODE_DISABLE_PROJECT_CONFIG`), unless the configuration says that it bypasses. Plugins it runs all the same, by a second way
//! that nothing turns off: a shell looks for them first, behind the same wall, and where there are some opencode is not started.
//! That variable also hides the repository's instructions, which are words and act by nobody but the model: they are named to it
//! again (`instructions`). The plugins, tools and MCP servers in the person's own home run as that person set them up.
//!
//! **Directories.** A conversation has a directory of its own, in which opencode works wherever the server was started.
//! When a session's directory changes, opencode is asked to move the conversation there; it does so between directories
//! of one repository (worktrees) and between those that are in none. Otherwise the turn is refused and nothing is lost.
//!
//! Without a model in its scope a session goes on with the model it used last, which is opencode's own way.

mod ids;
mod permissions;
mod protocol;
mod repository;
mod side_channel;
mod turn;

use std::path::Path;

use agent::{
    Abilities, Account, Agent, Background, EndedLeftovers, FilesTaken, Launch, MemoryMove, Presence, Reply,
    Running, SessionNotices, Setup, SignIn, TreeName, TriedVersions, Trouble,
};
use kernel::SessionId;

use crate::background::BackgroundPolicy;
use crate::program::{AgentProgram, ProgramConfig};
use protocol::{OpenCodeProtocol, ProcessSetting};

/// The variables by which a person may give it their own sign-in.
const SECRETS: [&str; 4] =
    ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"];
/// The times opencode may try again in a row: after 2, 4, 8, 16 and then each 30 seconds, so for about three minutes.
pub const TRIES_MAX: u64 = 8;

/// The oldest and the newest version that was tried, and how to get the newest there is.
const TRIED: [&str; 3] = ["1.18.3", "1.18.33", "npm install -g opencode-ai"];

/// OpenCode.
pub struct OpenCode {
    program: AgentProgram<OpenCodeProtocol>,
    tries_max: u64,
}

impl OpenCode {
    /// The agent, set up so.
    pub fn new(config: ProgramConfig) -> Self {
        let before = if config.bypasses { Vec::new() } else { repository::look() };
        Self { program: AgentProgram::new(config).behind(before), tries_max: TRIES_MAX }
    }

    /// The same, with another bound for how often opencode may try again in a row when its model does not answer.
    pub fn with_tries_max(self, tries_max: u64) -> Self {
        Self { tries_max, ..self }
    }

    async fn begin(&self, launch: Launch) -> Result<Box<dyn Running>, Trouble> {
        let failed = |why| Trouble::transient(format!("no random numbers: {why}"));
        let session = match &launch.native {
            Some(native) => native.id.clone(),
            None => ids::session().map_err(failed)?,
        };
        let password = ids::password().map_err(failed)?;
        let args = ["serve", "--hostname", "127.0.0.1", "--port", "0"].map(str::to_owned).to_vec();
        let env = self.env(&launch, &password);
        let directory = launch.directory_true.as_ref().unwrap_or(&launch.directory);
        let setting = ProcessSetting {
            launch: launch.clone(),
            place: self.program.place(&launch),
            directory: directory.for_launch().to_owned(),
            session,
            mint: Box::new(ids::message),
            said_bytes_max: self.program.config.limits.output_bytes_max,
            tries_max: self.tries_max,
            bypasses: self.program.config.bypasses,
        };
        let begin = || (OpenCodeProtocol::new(setting), Some(side_channel::side(password)));
        self.program.start(launch, args, env, begin).await
    }

    fn env(&self, launch: &Launch, password: &str) -> Vec<(String, String)> {
        let permission = permissions::permission(self.program.config.bypasses, launch.mode.as_deref());
        let mut env = vec![
            ("OPENCODE_SERVER_USERNAME", side_channel::USER.to_owned()),
            ("OPENCODE_SERVER_PASSWORD", password.to_owned()),
            ("OPENCODE_DISABLE_AUTOUPDATE", "1".to_owned()),
            ("OPENCODE_PERMISSION", permission),
        ];
        if !self.program.config.bypasses {
            let directory = launch.directory_true.as_ref().unwrap_or(&launch.directory);
            let named = repository::config(directory.for_launch());
            env.push(("OPENCODE_DISABLE_PROJECT_CONFIG", "1".to_owned()));
            // A configuration that the person gives in this variable stays; it names what is to be read.
            let is_given = self.program.config.env.iter().any(|(name, _)| name == repository::VARIABLE);
            env.extend((!is_given).then_some((repository::VARIABLE, named)));
        }
        if let Account::Person { .. } = launch.account {
            env.push(("OPENCODE_AUTH_CONTENT", "{}".to_owned()));
        }
        env.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

impl Agent for OpenCode {
    fn name(&self) -> &str {
        &self.program.config.name
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            chosen_id: true,
            resume: true,
            fork: true,
            // A second message waits for the end of the turn that runs, and then both have one answer.
            steer: false,
            asks: true,
            usage: true,
            commands: true,
            models: true,
            modes: true,
            images: true,
            files: FilesTaken::Pdf,
            forgets: false,
            memory: MemoryMove::Resume,
        }
    }

    fn look(&self) -> Reply<'_, Presence> {
        Box::pin(self.program.look(&["--version"]))
    }

    fn setup(&self) -> Setup {
        let ProgramConfig { program, home, bypasses, kept_max, background, .. } = &self.program.config;
        Setup {
            kind: "opencode",
            program: program.clone(),
            home: home.clone(),
            bypasses: *bypasses,
            is_kept: *kept_max > 0,
            keeps_background: *background == BackgroundPolicy::Kept,
            secrets: SECRETS.map(str::to_owned).to_vec(),
            tried: Some(TriedVersions::new(TRIED[0], TRIED[1], TRIED[2])),
        }
    }

    /// A provider that needs no sign-in can be in `opencode.json`, so none is never known to be missing.
    fn sign_in(&self) -> SignIn {
        let ProgramConfig { env, home, .. } = &self.program.config;
        let is_key =
            |(name, value): &&(String, String)| SECRETS.contains(&name.as_str()) && !value.is_empty();
        if let Some((name, _)) = env.iter().find(is_key) {
            return SignIn::Here { by: name.clone() };
        }
        let file = Path::new(home).join(".local/share/opencode/auth.json");
        // An empty one is `{}`.
        let is_there = file.metadata().is_ok_and(|it| it.len() > 4);
        if is_there { SignIn::Here { by: file.display().to_string() } } else { SignIn::Unknown }
    }

    fn start(&self, launch: Launch) -> Reply<'_, Result<Box<dyn Running>, Trouble>> {
        Box::pin(self.begin(launch))
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
