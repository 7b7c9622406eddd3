//! The tables of agents in the configuration: `[agents.NAME]`, each over `[every_agent]`.
//!
//! The agents we know stand in `default.toml` as ordinary tables, so that an agent we do not know needs a table and no
//! code. What looks like a secret is a reference: `env:NAME` or `file:PATH`, resolved when the server starts.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use drivers::ProgramConfig;
use drivers::acp::Quirks;
use drivers::command::{CommandConfig, JsonForm, MessageChannel, OutputForm};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use utoipa::ToSchema;
use utoipa::openapi::{Object, OneOf, Schema, Type};

use super::units::{Size, Span};

/// One agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct AgentTable {
    /// The driver that talks to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<Kind>,
    /// Its presence: `true`, `false`, or `"auto"`, which means if its program is found.
    #[schema(schema_with = enabled_schema)]
    pub(crate) enabled: Enabled,
    /// The program: a path, or a name that is looked for on `PATH`.
    pub(crate) program: String,
    /// Arguments that come before those of the driver.
    pub(crate) args: Vec<String>,
    /// Variables it gets. A value may be a reference: `env:NAME` or `file:PATH`.
    pub(crate) env: BTreeMap<String, String>,
    /// Variables it gets from the server's environment, where they are set; added to those of `every_agent`.
    pub(crate) pass_env: Vec<String>,
    /// Its home: `person`, `session`, or a path.
    #[schema(value_type = String)]
    pub(crate) home: Home,
    /// With `home = "person"`: what of that home is there for it behind a wall that lists.
    pub(crate) home_places: Vec<String>,
    /// The model of sessions that name none; empty for the agent's own choice.
    pub(crate) model: String,
    /// The mode of sessions that name none; empty for the agent's own choice.
    pub(crate) mode: String,
    /// True if it acts without asking.
    pub(crate) bypass: bool,
    /// The way to get its program; shown where it is missing.
    pub(crate) install: String,
    /// The signs that it is signed in.
    pub(crate) sign_in: SignInTable,
    /// The fate of waiting messages after a failed turn of it.
    pub(crate) after_failure: AfterItsFailure,
    /// The fate of what a turn of it leaves running.
    pub(crate) background: BackgroundWord,
    /// Scripts in worktrees.
    pub(crate) worktree: WorktreeTable,
    /// Processes that are kept between turns.
    pub(crate) keep: KeepTable,
    /// Its limits.
    pub(crate) limits: LimitsTable,
    /// For `acp`: the name of the known agent that it is like, or a table with that name (`base`) and what is otherwise.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "as_a_table",
        deserialize_with = "by_name_or_table"
    )]
    #[schema(schema_with = quirks_schema)]
    pub(crate) quirks: Option<Quirks>,
    /// For `command`: how the program is talked to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) command: Option<CommandTable>,
}

#[cfg(test)]
impl AgentTable {
    /// With something in each key that may be left out.
    pub(crate) fn with_every_key() -> Self {
        Self {
            kind: Some(Kind::Acp),
            quirks: Some(Quirks::default()),
            command: Some(CommandTable::default()),
            ..Self::default()
        }
    }
}

/// The fate of waiting messages after a failed turn of an agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AfterItsFailure {
    /// As with every other agent.
    #[default]
    Policy,
    Hold,
    GoOn,
}

/// The fate of what a turn leaves running.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BackgroundWord {
    /// It is ended with the turn.
    #[default]
    Ended,
    /// It stays for as long as the agent's process is kept.
    Kept,
}

impl From<BackgroundWord> for drivers::BackgroundPolicy {
    fn from(word: BackgroundWord) -> Self {
        match word {
            BackgroundWord::Ended => Self::Ended,
            BackgroundWord::Kept => Self::Kept,
        }
    }
}

/// The driver that talks to an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    Claude,
    Codex,
    Opencode,
    Acp,
    Command,
    Scripted,
}

/// The signs that an agent is signed in, without running a turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SignInTable {
    /// Files of which one is there if it is signed in; `~` is the agent's home.
    pub(crate) files: Vec<String>,
    /// Variables of which one is set if it is signed in. It gets them from the server's environment.
    pub(crate) variables: Vec<String>,
    /// The remedy if it is not.
    pub(crate) how: String,
}

/// The way any program is talked to: the message in, the answer out, one process per turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct CommandTable {
    /// The way it gets the message.
    pub(crate) hands: HandsWord,
    /// The form of its answer.
    pub(crate) says: SaysWord,
    /// For `says = "json"`: where in a line what stands, as JSON pointers.
    pub(crate) json: JsonTable,
    /// Arguments of the first turn of a session; `{native}` and `{directory}` are filled in.
    pub(crate) new_args: Vec<String>,
    /// Arguments of the turns after it; the same are filled in.
    pub(crate) resume_args: Vec<String>,
    /// Arguments that choose a model; `{model}` is filled in.
    pub(crate) model_args: Vec<String>,
    /// True if it remembers a conversation from turn to turn.
    pub(crate) remembers: bool,
    /// Exit codes that mean: a person has to change something first.
    pub(crate) refused_codes: Vec<i32>,
    /// Exit codes that mean: this conversation no longer exists.
    pub(crate) gone_codes: Vec<i32>,
    /// Exit codes that mean: somebody else uses this conversation.
    pub(crate) busy_codes: Vec<i32>,
    /// Arguments that make it say its version; without any it is not asked.
    pub(crate) version_args: Vec<String>,
    /// Variables by which a person may give it their own sign-in.
    pub(crate) secrets: Vec<String>,
}

/// The way a program gets the message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HandsWord {
    #[default]
    Stdin,
    Argument,
}

/// The form of a program's answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SaysWord {
    #[default]
    Text,
    Json,
}

/// Where in a line of JSON what stands, as JSON pointers (`/message/text`). Empty means nowhere.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct JsonTable {
    /// More words of the answer.
    pub(crate) text: String,
    /// The program's own name for the conversation.
    pub(crate) session: String,
    /// The failure.
    pub(crate) error: String,
    /// Tokens read since the last time.
    pub(crate) input_tokens: String,
    /// Tokens written since the last time.
    pub(crate) output_tokens: String,
}

impl CommandTable {
    /// As the driver wants it.
    pub(crate) fn for_driver(&self, program: ProgramConfig) -> CommandConfig {
        let at = |pointer: &String| Some(pointer.clone()).filter(|pointer| !pointer.is_empty());
        let Self { json, .. } = self;
        CommandConfig {
            hands: match self.hands {
                HandsWord::Stdin => MessageChannel::Stdin,
                HandsWord::Argument => MessageChannel::Argument,
            },
            says: match self.says {
                SaysWord::Text => OutputForm::Text,
                SaysWord::Json => OutputForm::Json(JsonForm {
                    text: at(&json.text),
                    session: at(&json.session),
                    error: at(&json.error),
                    input_tokens: at(&json.input_tokens),
                    output_tokens: at(&json.output_tokens),
                }),
            },
            new_args: self.new_args.clone(),
            resume_args: self.resume_args.clone(),
            model_args: self.model_args.clone(),
            remembers: self.remembers,
            refused_codes: self.refused_codes.clone(),
            gone_codes: self.gone_codes.clone(),
            busy_codes: self.busy_codes.clone(),
            version_args: self.version_args.clone(),
            secrets: self.secrets.clone(),
            ..CommandConfig::new(program)
        }
    }
}

/// Scripts in worktrees: lines for `sh`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct WorktreeTable {
    /// When a session enters one.
    pub(crate) setup: String,
    /// Before one is removed.
    pub(crate) teardown: String,
    /// The longest that each may take.
    pub(crate) scripts_wait: Span,
    /// The bytes that each may write, with everything it starts, wherever to; `"0"` is no bound.
    pub(crate) scripts_written_max: Size,
}

/// Processes that are kept between turns.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct KeepTable {
    /// The most that are kept; 0 keeps none.
    pub(crate) kept_max: usize,
    /// The longest that one is kept.
    pub(crate) idle_max: Span,
}

/// The limits of an agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LimitsTable {
    /// From the start of its process until it is ready.
    pub(crate) start_max: Span,
    /// From the message to the last word.
    pub(crate) turn_max: Span,
    /// From one sign of life to the next while a turn runs and nobody is asked; `"0s"` is no bound.
    pub(crate) silence_max: Span,
    /// The times in a row that an agent which would try for ever may ask its model again.
    pub(crate) tries_max: u64,
    /// The most it may print in one turn.
    pub(crate) output_max: Size,
    /// Memory of all its processes; `"0"` is no bound.
    pub(crate) memory_max: Size,
    /// Processes at a time; 0 is no bound.
    pub(crate) processes_max: u32,
    /// Open files of each of its processes; 0 is no bound but the server's own.
    pub(crate) files_max: u32,
}

/// The presence of an agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Enabled {
    Yes,
    No,
    /// If its program is found.
    #[default]
    Auto,
}

/// The home of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) enum Home {
    /// That of whoever runs Homing.
    #[default]
    Person,
    /// One for each session, below the data directory.
    Session,
    /// This directory; `~` at its beginning is the home of whoever runs Homing.
    Path(PathBuf),
}

impl TryFrom<String> for Home {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.as_str() {
            "person" => Ok(Self::Person),
            "session" => Ok(Self::Session),
            path if path.starts_with('/') || path.starts_with("~/") => Ok(Self::Path(PathBuf::from(path))),
            _ => Err(format!("{text:?} is not a home: write \"person\", \"session\" or a path from / or ~/")),
        }
    }
}

impl From<Home> for String {
    fn from(home: Home) -> Self {
        match home {
            Home::Person => "person".to_owned(),
            Home::Session => "session".to_owned(),
            Home::Path(path) => path.to_string_lossy().into_owned(),
        }
    }
}

fn enabled_schema() -> Schema {
    let word = Object::builder().schema_type(Type::String).enum_values(Some(["auto"]));
    let whether = Object::builder().schema_type(Type::Boolean);
    OneOf::builder().item(whether).item(word).build().into()
}

/// Quirks are only ever read. Written down, for the list of keys, they are a table.
fn as_a_table<S: Serializer>(_: &Option<Quirks>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(Vec::<(String, String)>::new())
}

fn quirks_schema() -> Schema {
    let name = Object::builder().schema_type(Type::String);
    let table = Object::builder().schema_type(Type::Object);
    OneOf::builder().item(name).item(table).build().into()
}

fn by_name_or_table<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Quirks>, D::Error> {
    deserializer.deserialize_any(QuirksWord).map(Some)
}

/// Reads the name of a known agent, or a table.
struct QuirksWord;

impl<'de> Visitor<'de> for QuirksWord {
    type Value = Quirks;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of an agent that is known, or a table of quirks")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Quirks, E> {
        Quirks::of(name).ok_or_else(|| {
            let known: Vec<&str> = Quirks::known().collect();
            E::custom(format!("no agent {name:?} is known; one of {}", known.join(", ")))
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Quirks, A::Error> {
        Quirks::deserialize(MapAccessDeserializer::new(map))
    }
}

impl Serialize for Enabled {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Yes => serializer.serialize_bool(true),
            Self::No => serializer.serialize_bool(false),
            Self::Auto => serializer.serialize_str("auto"),
        }
    }
}

impl<'de> Deserialize<'de> for Enabled {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(EnabledWord)
    }
}

/// Reads `true`, `false` or `"auto"`.
struct EnabledWord;

impl Visitor<'_> for EnabledWord {
    type Value = Enabled;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("true, false or \"auto\"")
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Enabled, E> {
        Ok(if value { Enabled::Yes } else { Enabled::No })
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Enabled, E> {
        match value {
            "auto" => Ok(Enabled::Auto),
            _ => Err(E::invalid_value(de::Unexpected::Str(value), &self)),
        }
    }
}
