//! Codex, by its app server: one process per session that talks JSON in lines. The driver is here, how its lines are
//! read in `protocol`, what it does while a turn runs in `items`, what its errors mean in `trouble`, its modes in `mode`.
//!
//! **Home.** Codex keeps everything in `CODEX_HOME`, which is `HOME/.codex` if the variable is not set: settings
//! (`config.toml`), its sign-in (`auth.json`), and the conversations. A conversation is known in that home, whatever the
//! directory: it is opened again in another one with the same id, and works there.
//!
//! **Sign-in.** Three ways:
//! - With a person's own home, codex uses the `auth.json` that `codex login` wrote there. It renews the token by itself and
//!   writes it back; several processes of one home get along, because each reads the file again before it renews.
//! - With a home for each session there is no `auth.json`. Do not copy one: a token that was renewed in one copy is worth
//!   nothing in the others. Use a key.
//! - A key in `OPENAI_API_KEY` or `CODEX_API_KEY`, of the configuration or of the person whose turn it is. The app server
//!   does not look at these variables, so we tell it the key by its own request once it is up, and have it keep the key
//!   in memory only: what `auth.json` says is neither used nor changed then, and nothing of the key is on a command line.
//!
//! A server of one's own (`model_providers` in `config.toml`) with an `env_key` reads that variable itself.

mod items;
mod mode;
mod protocol;
mod trouble;

use std::path::{Path, PathBuf};

use agent::{
    Abilities, Account, Agent, Background, Choice, EndedLeftovers, Launch, MemoryMove, Presence, Reply,
    Running, SessionNotices, Setup, SignIn, TreeName, TriedVersions, Trouble,
};
use kernel::SessionId;

use crate::background::BackgroundPolicy;
use crate::program::{AgentProgram, ProgramConfig, settings_in};
use crate::running_agent::gone_if_here;
use mode::Mode;
use protocol::{CodexProtocol, ProcessSetting};

/// The variables that may hold a key, the first that does counts.
const KEYS: [&str; 2] = ["OPENAI_API_KEY", "CODEX_API_KEY"];

/// The settings that we want otherwise than codex does by itself: it is not to look for a newer one of its kind, and a server that
/// nobody answers at is to be a failure, not something to wait for without end.
const OVERRIDES: [&str; 2] =
    ["check_for_update_on_startup=false", "features.unbounded_connection_retries=false"];

/// A key is kept in memory, not written to the home.
const KEY_IN_MEMORY: &str = "cli_auth_credentials_store=\"ephemeral\"";

/// The oldest and the newest version that was tried, and how to get the newest there is.
const TRIED: [&str; 3] = ["0.160.1", "0.166.0", "npm install -g @openai/codex"];

/// Codex, as it is installed here.
pub struct Codex {
    program: AgentProgram<CodexProtocol>,
}

impl Codex {
    /// The agent, set up so.
    pub fn new(config: ProgramConfig) -> Self {
        Self { program: AgentProgram::new(config) }
    }

    /// The directory in which codex keeps its conversations.
    fn codex_home(&self, home: &str) -> PathBuf {
        self.variable("CODEX_HOME").map_or_else(|| Path::new(home).join(".codex"), PathBuf::from)
    }

    fn variable(&self, name: &str) -> Option<&str> {
        let set = self.program.config.env.iter().find(|(known, value)| known == name && !value.is_empty());
        set.map(|(_, value)| value.as_str())
    }

    /// The key this attempt is to use: the person's, or else the house's.
    fn key(&self, account: &Account) -> Option<String> {
        let of_person = match account {
            Account::Person { secrets, .. } => KEYS.iter().find_map(|key| {
                secrets.iter().find(|(name, _)| name == key).map(|(_, secret)| secret.clone())
            }),
            Account::House => None,
        };
        of_person.or_else(|| KEYS.iter().find_map(|key| self.variable(key)).map(str::to_owned))
    }

    /// The setting that the protocol has to know before the first word, if this launch makes sense at all.
    fn begin(&self, launch: &Launch) -> Result<ProcessSetting, Trouble> {
        let mode = Mode::choose(launch.mode.as_deref(), self.program.config.bypasses)?;
        let home = self.codex_home(&self.program.home(launch));
        let place = format!("{}:{}", self.program.config.name, home.display());
        if let Some(native) = &launch.native
            && !is_uuid(&native.id)
        {
            let detail = format!("codex has no conversation {:?}: its ids are UUIDs", native.id);
            return Err(gone_if_here(launch, &place, detail));
        }
        let bypasses = self.program.config.bypasses;
        Ok(ProcessSetting { launch: launch.clone(), place, mode, bypasses, key: self.key(&launch.account) })
    }
}

impl Agent for Codex {
    fn name(&self) -> &str {
        &self.program.config.name
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            resume: true,
            fork: true,
            steer: true,
            asks: true,
            usage: true,
            models: true,
            modes: true,
            images: true,
            memory: MemoryMove::Resume,
            ..Abilities::default()
        }
    }

    /// Its list is of one provider. A name that is not in it is sent to the model server as it stands.
    fn takes_model(&self, _: &str, _: &[Choice]) -> bool {
        true
    }

    fn look(&self) -> Reply<'_, Presence> {
        Box::pin(self.program.look(&["--version"]))
    }

    fn setup(&self) -> Setup {
        let ProgramConfig { program, home, bypasses, kept_max, background, .. } = &self.program.config;
        Setup {
            kind: "codex",
            program: program.clone(),
            home: home.clone(),
            bypasses: *bypasses,
            is_kept: *kept_max > 0,
            keeps_background: *background == BackgroundPolicy::Kept,
            secrets: KEYS.map(str::to_owned).to_vec(),
            tried: Some(TriedVersions::new(TRIED[0], TRIED[1], TRIED[2])),
        }
    }

    fn sign_in(&self) -> SignIn {
        if let Some(key) = KEYS.iter().find(|key| self.variable(key).is_some()) {
            return SignIn::Here { by: (*key).to_owned() };
        }
        let home = &self.program.config.home;
        if home.contains("{session}") && self.variable("CODEX_HOME").is_none() {
            let how = "each session has a home of its own, without a sign-in; set OPENAI_API_KEY";
            return SignIn::Missing { how: how.to_owned() };
        }
        let home = self.codex_home(home);
        if home.join("auth.json").exists() {
            return SignIn::Here { by: home.join("auth.json").display().to_string() };
        }
        // Another server may need no sign-in, and a key ring cannot be looked into.
        let settings = settings_in(&home.join("config.toml"));
        if ["model_provider", "cli_auth_credentials_store"].iter().any(|key| settings.contains(key)) {
            return SignIn::Unknown;
        }
        SignIn::Missing { how: trouble::SIGN_IN.to_owned() }
    }

    fn start(&self, launch: Launch) -> Reply<'_, Result<Box<dyn Running>, Trouble>> {
        Box::pin(async move {
            let beginning = self.begin(&launch)?;
            let args = args(beginning.key.is_some());
            self.program.start(launch, args, Vec::new(), || (CodexProtocol::new(beginning), None)).await
        })
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

fn args(has_key: bool) -> Vec<String> {
    let overrides = OVERRIDES.into_iter().chain(has_key.then_some(KEY_IN_MEMORY));
    let mut args: Vec<String> = overrides.flat_map(|setting| ["-c".to_owned(), setting.to_owned()]).collect();
    args.push("app-server".to_owned());
    args
}

/// Codex takes anything else for something else than an id.
fn is_uuid(id: &str) -> bool {
    let is_right = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    id.len() == 36 && id.bytes().enumerate().all(is_right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_uuids_are_ids() {
        assert!(is_uuid("01a1e1b8-6ce1-7470-b42f-1255bea0c4b1"));
        for id in
            ["", "nonsense", "01a1e1b8-6ce1-7470-b42f-1255bea0c4b", "01a1e1b86ce1-7470-b42f-1255bea0c4b1-"]
        {
            assert!(!is_uuid(id), "{id}");
        }
    }

    #[test]
    fn a_persons_key_comes_before_that_of_the_house() {
        let mut config =
            ProgramConfig::new("codex", "/nowhere/homing", "/nowhere/locks", "codex", "/nowhere/home");
        config.env.push(("CODEX_API_KEY".to_owned(), "house".to_owned()));
        let codex = Codex::new(config);
        let person = |secrets: &[(&str, &str)]| Account::Person {
            person: kernel::PersonId::from_bits(1),
            secrets: secrets.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        };
        assert_eq!(codex.key(&Account::House).as_deref(), Some("house"));
        assert_eq!(codex.key(&person(&[("OPENAI_API_KEY", "mine")])).as_deref(), Some("mine"));
        assert_eq!(codex.key(&person(&[("OTHER", "mine")])).as_deref(), Some("house"));
    }
}
