//! Agents that are configured, and people's own sign-ins for them.

use crate::bounds::SECRET_LENGTH_MAX;
use crate::{At, Choice};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use utoipa::ToSchema;

/// An agent that is configured, and whether it is here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Agent {
    /// The name that sessions use for it.
    pub name: String,
    /// True if it is used where none is named.
    pub default: bool,
    /// True if it could be started now.
    pub here: bool,
    /// Its version, if it is here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The versions of its program that were tried, if it is an agent that we know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tried: Option<TriedVersions>,
    /// The missing part and how to get it, if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
    /// Its sign-in, as far as it can be seen; only a turn proves it.
    pub sign_in: SignIn,
    /// The kind of driver: `claude`, `codex`, `opencode`, `acp`, `command`, `scripted`.
    pub kind: String,
    /// The program that is started; empty if there is none.
    pub program: String,
    /// The home it gets.
    pub home: String,
    /// It acts without asking, because the configuration says so.
    pub bypasses: bool,
    /// True if its process is kept between turns.
    pub kept: bool,
    /// True if what a turn of it leaves running is kept with its process, and not ended with the turn.
    #[serde(default)]
    pub keeps_background: bool,
    /// The variables by which a person may give it their own sign-in.
    pub secrets: Vec<String>,
    /// Its abilities.
    pub abilities: Abilities,
    /// The models it last listed in any session; empty until it has.
    pub models: Vec<Choice>,
    /// The modes it last listed.
    pub modes: Vec<Choice>,
    /// The slash commands it last listed, without the slash.
    pub commands: Vec<Choice>,
}

/// The versions of an agent's program that were tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TriedVersions {
    /// The oldest.
    pub oldest: String,
    /// The newest.
    pub newest: String,
    /// The place of its version beside them.
    pub age: VersionAge,
    /// The command that brings it up to date.
    pub update: String,
}

/// The place of a version beside those that were tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum VersionAge {
    /// Nobody has tried one as old. Where it fails to start, the turn is refused, with how to update it.
    Older,
    /// It is one of them, or between them.
    Tried,
    /// Nobody has tried one as new. That is no defect.
    Newer,
    /// It says no version, or one that cannot be compared.
    Unknown,
}

/// An agent's sign-in, as far as it can be seen without a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum SignIn {
    /// Nobody can tell without a turn, or it needs none.
    Unknown,
    /// It does; `by` names the file or the variable that says so.
    Here { by: String },
    /// It does not; `how` says what to do.
    Missing { how: String },
}

/// The abilities of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Abilities {
    /// We choose the conversation's own id.
    pub chosen_id: bool,
    /// A conversation can be gone on with in a new process.
    pub resume: bool,
    /// A conversation can be continued under a second id.
    pub fork: bool,
    /// Words can be added to a turn while it runs.
    pub steer: bool,
    /// It asks before it acts.
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
    /// The way its memory follows when a session moves to another directory.
    pub memory: MemoryMove,
}

/// The files that an agent takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FilesTaken {
    /// Those that are text, which are told as words.
    Text,
    /// And PDF documents.
    Pdf,
    /// All.
    Any,
}

/// The way in which the memory of a conversation follows a change of directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemoryMove {
    /// The agent goes on elsewhere.
    Resume,
    /// The file that holds the memory is carried along first.
    Carry,
    /// It does not follow; the transcript is told again.
    Replay,
}

/// Your own sign-in for an agent, on its way in.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewAccount {
    /// The value of each variable; only those that the agent takes (`secrets` in the list of agents). They stand in
    /// place of everything given before.
    #[schema(value_type = BTreeMap<String, String>)]
    pub secrets: BTreeMap<String, String>,
}

impl NewAccount {
    /// Checks that every field is as the schema says.
    pub fn check(&self) -> Result<(), crate::Invalid> {
        let too_long = self.secrets.values().any(|value| value.len() > SECRET_LENGTH_MAX);
        match too_long {
            true => {
                let reason = format!("more than {SECRET_LENGTH_MAX} bytes in one of them");
                Err(crate::Invalid { field: "secrets", reason })
            }
            false => Ok(()),
        }
    }
}

impl fmt::Debug for NewAccount {
    /// Never what they hold.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.secrets.keys()).finish()
    }
}

/// Your own sign-in for an agent, as far as it can be seen. Its content can never be read back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Account {
    /// The agent.
    pub agent: String,
    /// Whose sign-in your turns use: `house` (of whoever runs Homing), or your own id.
    pub account: String,
    /// The variables that you gave; none if you gave none.
    pub secrets: Vec<String>,
    /// When you gave them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<At>,
}
