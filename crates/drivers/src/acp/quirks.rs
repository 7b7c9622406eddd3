//! The quirks of each agent that speaks ACP: data, not code.
//!
//! `quirks.toml` is built in and has an entry for each agent we know. `Quirks` is what a person may write in the
//! configuration: the name of an entry, and whatever is otherwise. `Behaviour` is what comes of it, with nothing left
//! open. Nothing here is ever asked which agent it is.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use agent::{Abilities, MemoryMove};
use serde::Deserialize;
use serde_json::Value;

const BUILT_IN: &str = include_str!("quirks.toml");
/// The entry every other stands upon.
const DEFAULT: &str = "default";

static ENTRIES: LazyLock<BTreeMap<String, Quirks>> =
    LazyLock::new(|| toml::from_str(BUILT_IN).expect("a test reads this file"));

/// The differences of an agent from what the protocol says, or from a known agent. Whatever is not said is as in the
/// `base`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Quirks {
    /// The known agent it is like; `default` if not said.
    pub base: Option<BaseAgent>,
    /// The arguments that make it speak ACP.
    pub args: Option<Vec<String>>,
    /// The arguments that make it say its version; with none it is asked by the protocol.
    pub version_args: Option<Vec<String>>,
    /// The way to get it, for people.
    pub install: Option<String>,
    /// The oldest and the newest version that was tried.
    pub tried: Option<[String; 2]>,
    /// The way to sign in, for people.
    pub sign_in: Option<String>,
    /// The files below its home that say that somebody has signed in.
    pub sign_in_files: Option<Vec<String>>,
    /// The keys of which one has a value in such a file where somebody has signed in; without any the file is enough, if there is
    /// something in it.
    pub sign_in_keys: Option<Vec<String>>,
    /// The way homes of their own keep a sign-in, for people.
    pub homes: Option<String>,
    /// Variables it gets unless the configuration sets them.
    pub env: Option<BTreeMap<String, String>>,
    /// The variables by which a person may give it their own sign-in.
    pub secrets: Option<Vec<String>>,
    /// The way a conversation is gone on with in a new process.
    pub resume: Option<Resume>,
    /// The way we make sure that it does not know a conversation.
    pub confirm: Option<Confirm>,
    /// True if it goes when its input ends.
    pub leaves_on_eof: Option<bool>,
    /// The longest that processes of its own may outlast a turn. A turn that leaves something behind ends that much
    /// later.
    pub settles_ms: Option<u64>,
    /// With which reasons a turn ends that we asked it to stop.
    pub cancelled_as: Option<Vec<String>>,
    /// True if a turn goes on when a question is answered with `cancelled` and nothing else is said.
    pub goes_on_when_cancelled: Option<bool>,
    /// The mode in which it asks. Where it has modes it is put into this one, and is refused where it does not say so. Of an agent
    /// that is not known no other mode is taken.
    pub asking_mode: Option<String>,
    /// True if each of its turns ends with words, unless something was not allowed: one that ends without any has failed.
    pub ends_with_words: Option<bool>,
    /// Requests of its own, beyond the protocol, that are declined without a word to anybody.
    pub own_requests: Option<Vec<String>>,
    /// The modes in which it never asks. Only where the configuration lets it.
    pub bypass_modes: Option<Vec<String>>,
    /// Where a tool's name stands in a `tool_call`.
    pub tool_name: Option<String>,
    /// The kinds, in ACP's words, of tools of which it says none.
    pub tool_kinds: Option<BTreeMap<String, String>>,
    /// The extent of the figures in the answer to a prompt: this turn, or the whole conversation.
    pub usage: Option<UsageFigures>,
    /// The way its memory follows to another directory.
    pub memory: Option<Memory>,
    /// True if it loses its own conversations: what it no longer knows is told again in a new one.
    pub forgets: Option<bool>,
    /// Where the id of a conversation means one conversation only.
    pub ids: Option<Ids>,
    /// True if the directory that it lists for a conversation is the one it works in.
    pub lists_where_it_is: Option<bool>,
    /// Its abilities.
    pub abilities: Option<Vec<Ability>>,
    /// The meaning of its errors; the first that fits counts. What fits none is Transient.
    pub errors: Option<Vec<ErrorRule>>,
    /// Words that mean a failure when a turn ends with them as if nothing had happened.
    pub failures: Option<Vec<WordRule>>,
}

impl Quirks {
    /// Those of an agent we know.
    pub fn of(name: &str) -> Option<Self> {
        let base = BaseAgent::try_from(name.to_owned()).ok()?;
        Some(Self { base: Some(base), ..Self::default() })
    }

    /// The agents we know.
    pub fn known() -> impl Iterator<Item = &'static str> {
        ENTRIES.keys().map(String::as_str)
    }

    /// The outcome of it.
    pub(crate) fn behaviour(&self) -> Behaviour {
        let base = self.base.as_ref().map_or(DEFAULT, |base| &base.0);
        let layers = [Some(self), ENTRIES.get(base), ENTRIES.get(DEFAULT)];
        Behaviour {
            is_known: base != DEFAULT,
            ..Behaviour::from_layers(&layers.into_iter().flatten().collect::<Vec<_>>())
        }
    }
}

/// The name of an agent we know.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct BaseAgent(String);

impl TryFrom<String> for BaseAgent {
    type Error = UnknownAgent;

    fn try_from(name: String) -> Result<Self, UnknownAgent> {
        if ENTRIES.contains_key(&name) { Ok(Self(name)) } else { Err(UnknownAgent(name)) }
    }
}

/// An agent of which no quirks are known: name one of those that are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no agent {0:?} is known; one of {known}", known = Quirks::known().collect::<Vec<_>>().join(", "))]
pub struct UnknownAgent(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resume {
    /// `session/resume` where the agent says that it has it, else `session/load`.
    Auto,
    Resume,
    /// `session/load`, which repeats the history.
    Load,
    /// Not at all: it would lose it. It is begun anew, and told again what was said.
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confirm {
    /// `session/list` where the agent says that it has it, else as `Again`.
    List,
    /// It is asked to load the conversation once more.
    Again,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UsageFigures {
    /// This turn.
    Turn,
    /// Everything since the process came up.
    Sum,
    /// They mean nothing.
    Nothing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Memory {
    Resume,
    Carry,
    Replay,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ids {
    Everywhere,
    /// In another home the same id is another conversation.
    Home,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ability {
    Resume,
    Fork,
    Asks,
    Usage,
    Commands,
    Models,
    Modes,
    Images,
}

/// The meaning of an error or a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Meaning {
    /// The agent does not know this conversation.
    Unknown,
    /// Somebody has to sign in.
    Auth,
    Busy,
    Transient,
    Refused,
}

/// Errors that mean something. Whatever is not said fits all.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorRule {
    pub on: Option<ErrorPhase>,
    pub code: Option<i64>,
    /// The beginning of the message.
    pub begins: Option<String>,
    /// Words that are somewhere in the message or in the data, in whatever case.
    pub words: Option<String>,
    pub means: Meaning,
}

/// The phase when an error came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorPhase {
    /// Anything before the agent is ready.
    Open,
    Prompt,
}

/// Last words that mean a failure.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WordRule {
    pub begins: String,
    pub ends: Option<String>,
    pub means: Meaning,
}

/// The behaviour of one agent, with nothing left open. The fields are those of `Quirks`.
#[derive(Debug, Clone)]
pub(crate) struct Behaviour {
    pub(crate) args: Vec<String>,
    pub(crate) version_args: Vec<String>,
    pub(crate) install: String,
    /// Of agents that we know only.
    pub(crate) tried: Option<[String; 2]>,
    pub(crate) sign_in: String,
    pub(crate) sign_in_files: Vec<String>,
    pub(crate) sign_in_keys: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) secrets: Vec<String>,
    pub(crate) resume: Resume,
    pub(crate) confirm: Confirm,
    pub(crate) leaves_on_eof: bool,
    pub(crate) settles_ms: u64,
    pub(crate) cancelled_as: Vec<String>,
    pub(crate) goes_on_when_cancelled: bool,
    pub(crate) asking_mode: String,
    /// True if it is one of those that we know, so that all of its modes are.
    is_known: bool,
    pub(crate) ends_with_words: bool,
    pub(crate) own_requests: Vec<String>,
    pub(crate) bypass_modes: Vec<String>,
    pub(crate) tool_name: String,
    pub(crate) tool_kinds: BTreeMap<String, String>,
    pub(crate) usage: UsageFigures,
    pub(crate) memory: Memory,
    pub(crate) forgets: bool,
    pub(crate) ids: Ids,
    pub(crate) lists_where_it_is: bool,
    pub(crate) abilities: Vec<Ability>,
    errors: Vec<ErrorRule>,
    failures: Vec<WordRule>,
}

impl Behaviour {
    fn from_layers(layers: &[&Quirks]) -> Self {
        macro_rules! first {
            ($field:ident) => {
                layers.iter().find_map(|layer| layer.$field.clone()).expect("the default entry has every key")
            };
        }
        Self {
            args: first!(args),
            version_args: first!(version_args),
            install: first!(install),
            tried: layers.iter().find_map(|layer| layer.tried.clone()),
            sign_in: first!(sign_in),
            sign_in_files: first!(sign_in_files),
            sign_in_keys: first!(sign_in_keys),
            env: first!(env),
            secrets: first!(secrets),
            resume: first!(resume),
            confirm: first!(confirm),
            leaves_on_eof: first!(leaves_on_eof),
            settles_ms: first!(settles_ms),
            cancelled_as: first!(cancelled_as),
            goes_on_when_cancelled: first!(goes_on_when_cancelled),
            asking_mode: first!(asking_mode),
            is_known: false,
            ends_with_words: first!(ends_with_words),
            own_requests: first!(own_requests),
            bypass_modes: first!(bypass_modes),
            tool_name: first!(tool_name),
            tool_kinds: first!(tool_kinds),
            usage: first!(usage),
            memory: first!(memory),
            forgets: first!(forgets),
            ids: first!(ids),
            lists_where_it_is: first!(lists_where_it_is),
            abilities: first!(abilities),
            errors: first!(errors),
            failures: first!(failures),
        }
    }

    /// True if somebody is asked in that mode, as far as is known: it is the one for that, or one of an agent of which we know
    /// those in which nobody is.
    pub(crate) fn asks_in(&self, mode: &str) -> bool {
        let is_told_apart = self.is_known && !self.asking_mode.is_empty();
        !mode.is_empty()
            && (mode == self.asking_mode || (is_told_apart && !self.bypass_modes.iter().any(|it| it == mode)))
    }

    /// The meaning of an error, by what was asked.
    pub(crate) fn meaning(&self, on: ErrorPhase, code: i64, message: &str, data: &Value) -> Meaning {
        let all = format!("{message} {data}").to_lowercase();
        let fits = |rule: &&ErrorRule| {
            rule.on.is_none_or(|it| it == on)
                && rule.code.is_none_or(|it| it == code)
                && rule.begins.as_ref().is_none_or(|it| message.starts_with(it))
                && rule.words.as_ref().is_none_or(|it| all.contains(&it.to_lowercase()))
        };
        self.errors.iter().find(fits).map_or(Meaning::Transient, |rule| rule.means)
    }

    /// The meaning of it when a turn ends with this piece of text.
    pub(crate) fn failure(&self, text: &str) -> Option<Meaning> {
        let text = text.trim();
        let fits = |rule: &&WordRule| {
            text.starts_with(&rule.begins) && rule.ends.as_ref().is_none_or(|it| text.ends_with(it))
        };
        self.failures.iter().find(fits).map(|rule| rule.means)
    }

    pub(crate) fn abilities(&self) -> Abilities {
        let can = |ability| self.abilities.contains(&ability);
        Abilities {
            resume: can(Ability::Resume),
            fork: can(Ability::Fork),
            asks: can(Ability::Asks),
            usage: can(Ability::Usage),
            commands: can(Ability::Commands),
            models: can(Ability::Models),
            modes: can(Ability::Modes),
            images: can(Ability::Images),
            forgets: self.forgets,
            memory: match self.memory {
                Memory::Resume => MemoryMove::Resume,
                Memory::Carry => MemoryMove::Carry,
                Memory::Replay => MemoryMove::Replay,
            },
            ..Abilities::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn behaviour(name: &str) -> Behaviour {
        Quirks::of(name).expect("we know it").behaviour()
    }

    #[test]
    fn every_entry_is_complete_and_says_how_to_get_it_and_to_sign_in() {
        let names = [
            "claude-agent-acp",
            "codex-acp",
            "codex-acp-0.16",
            "default",
            "gemini",
            "goose",
            "kimi",
            "opencode",
            "qwen",
        ];
        assert_eq!(Quirks::known().collect::<Vec<_>>(), names);
        for name in names {
            let behaviour = behaviour(name);
            let entry = &ENTRIES[name];
            assert!(entry.base.is_none(), "{name}: the file has one floor");
            assert!(
                [&entry.install, &entry.sign_in, &entry.homes].iter().all(|said| said.is_some()),
                "{name}"
            );
            assert_eq!(entry.tried.is_some(), name != DEFAULT, "{name}: the versions that were tried");
            assert!(behaviour.cancelled_as.contains(&"cancelled".to_owned()), "{name}");
            assert!(behaviour.abilities().resume && behaviour.abilities().asks, "{name}");
            // Unknown is what ends sessions: no rule may call everything so.
            let anything = behaviour.meaning(ErrorPhase::Open, -32603, "Internal error", &Value::Null);
            assert_eq!(anything, Meaning::Transient, "{name}");
        }
    }

    #[test]
    fn errors_mean_what_each_agent_means_by_them() {
        use Meaning::{Auth, Busy, Transient, Unknown};
        let gone = json!({"details": "no rollout found for thread id x"});
        let no_id = json!({"details": "invalid session id: invalid character: expected an optional prefix"});
        for (name, on, code, message, data, meaning) in [
            ("default", ErrorPhase::Open, -32002, "Resource not found", Value::Null, Unknown),
            ("codex-acp", ErrorPhase::Open, -32603, "Internal error", gone.clone(), Unknown),
            ("codex-acp", ErrorPhase::Open, -32603, "Internal error", no_id.clone(), Unknown),
            ("codex-acp", ErrorPhase::Prompt, -32603, "Internal error", no_id, Transient),
            ("codex-acp-0.16", ErrorPhase::Open, -32603, "Internal error", gone, Transient),
            ("gemini", ErrorPhase::Prompt, 401, "API key not valid", Value::Null, Auth),
            ("gemini", ErrorPhase::Prompt, 429, "slow down", Value::Null, Transient),
            ("kimi", ErrorPhase::Prompt, -32600, "busy", json!({"code": "turn.agent_busy"}), Busy),
            ("kimi", ErrorPhase::Open, -32602, "Unknown sessionId: x", Value::Null, Unknown),
            ("qwen", ErrorPhase::Prompt, -32603, "Internal error", json!({"details": "401 wrong key"}), Auth),
            (
                "codex-acp",
                ErrorPhase::Open,
                -32603,
                "Internal error: thread not found: x",
                Value::Null,
                Unknown,
            ),
            ("goose", ErrorPhase::Prompt, -32603, "Internal error", json!("Missing provider"), Auth),
            (
                "goose",
                ErrorPhase::Prompt,
                -32603,
                "Internal error",
                json!("Configuration value not found: GOOSE_MODEL"),
                Auth,
            ),
            ("gemini", ErrorPhase::Open, -32000, "Gemini API key is missing", Value::Null, Auth),
            (
                "qwen",
                ErrorPhase::Prompt,
                -32603,
                "Internal error",
                json!({"details": "room 401 is closed"}),
                Transient,
            ),
            (
                "opencode",
                ErrorPhase::Open,
                -32603,
                "OpenCode service failure",
                json!({"service": "session"}),
                Transient,
            ),
            ("opencode", ErrorPhase::Prompt, -32602, "Session not found: x", Value::Null, Unknown),
        ] {
            assert_eq!(behaviour(name).meaning(on, code, message, &data), meaning, "{name} {code} {message}");
        }
    }

    #[test]
    fn a_person_may_say_what_is_otherwise_upon_what_is_known() {
        let quirks: Quirks =
            toml::from_str("base = 'goose'\nleaves_on_eof = true\nargs = ['serve']").unwrap();
        let behaviour = quirks.behaviour();
        assert!(behaviour.leaves_on_eof && behaviour.args == ["serve"]);
        assert_eq!(behaviour.cancelled_as, ["cancelled", "end_turn"]);
        assert_eq!(behaviour.version_args, ["--version"]);
        assert!(Quirks::default().behaviour().args.is_empty());
        let wrong = toml::from_str::<Quirks>("base = 'goos'").unwrap_err().to_string();
        assert!(wrong.contains("goose"), "{wrong}");
        assert!(toml::from_str::<Quirks>("leaves = true").is_err());
    }

    #[test]
    fn only_whole_pieces_are_taken_for_failures() {
        let goose = behaviour("goose");
        let said = "Ran into this error: Rate limit exceeded: x.\n\nPlease retry if you think this is a transient or recoverable error.";
        assert_eq!(goose.failure(said), Some(Meaning::Transient));
        assert_eq!(goose.failure("Ran into this error: Authentication error: no"), Some(Meaning::Auth));
        assert_eq!(goose.failure("It said: Ran into this error: x"), None);
        assert_eq!(goose.failure("Network error: that is how one calls it."), None);
        let codex = behaviour("codex-acp");
        assert_eq!(codex.failure("Missing environment variable: `STUB_KEY`.\n\n"), Some(Meaning::Auth));
        assert_eq!(codex.failure("Missing environment variable: `A`. Set it and go on"), None);
    }
}
