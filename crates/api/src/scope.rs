//! Where and how a session acts, and what can be wanted of that: worktrees, undo, forks, readiness.
//!
//! `ScopeRequest` is one of a few forms. In the schema these are alternatives; when read, all fields are looked at
//! together, so that the problem names what is missing or too much.

use crate::object::{object, whole, whole_maybe};
use crate::{At, Invalid};
use serde::{Deserialize, Deserializer, Serialize, de};
use utoipa::openapi::Schema;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::{IntoParams, ToSchema};

/// The longest name of a worktree.
const WORKTREE_LENGTH_MAX: usize = 40;
/// The longest name of a revision or a branch.
const REVISION_LENGTH_MAX: usize = 255;

/// Where and how a session acts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Scope {
    /// The directory the agent works in.
    pub directory: String,
    /// The agent.
    pub agent: String,
    /// The model, where one was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The agent's mode, where one was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// The worktree that the directory is in, if the session has entered one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<ScopeWorktree>,
}

/// A git worktree that a session has entered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ScopeWorktree {
    /// Its name.
    pub name: String,
    /// The directory that the session goes back to when it leaves.
    pub home: String,
}

/// Of which session, and after which of its turns, a session is a fork.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Origin {
    /// The session.
    pub session: String,
    /// The last turn that both have.
    pub turn: u32,
}

/// A wish for another scope, in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScopeChange {
    /// Go into a worktree.
    Enter(EnterWorktree),
    /// Leave the worktree.
    Exit(bool),
    /// Another agent, model or mode. An empty model or mode is the agent's own.
    Set(ScopeSet),
    /// Another directory.
    Relink(String),
    /// Back into the scope that a held message was written for.
    Back(Scope),
}

/// A worktree to go into, made if it is not there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EnterWorktree {
    /// Its name.
    #[schema(min_length = 1, max_length = 40, pattern = "^[a-z0-9][a-z0-9-]*$")]
    pub name: String,
    /// The revision that it begins with; the current one if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 255, pattern = "^[A-Za-z0-9_@][A-Za-z0-9._/@^~{}-]*$")]
    pub base: Option<String>,
    /// The branch; one named after the worktree if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 255, pattern = "^[A-Za-z0-9_][A-Za-z0-9._/-]*$")]
    pub branch: Option<String>,
}

/// A worktree for a new session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OwnWorktree {
    /// Its name; one of the session's own if none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 40, pattern = "^[a-z0-9][a-z0-9-]*$")]
    pub name: Option<String>,
    /// The revision that it begins with; the current one if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 255, pattern = "^[A-Za-z0-9_@][A-Za-z0-9._/@^~{}-]*$")]
    pub base: Option<String>,
    /// The branch; one named after the worktree if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 255, pattern = "^[A-Za-z0-9_][A-Za-z0-9._/-]*$")]
    pub branch: Option<String>,
}

/// Another agent, model or mode; what is not named stays. An empty model or mode is the agent's own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScopeSet {
    /// The agent. Another one begins with its own model and mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 64, pattern = "^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    pub agent: Option<String>,
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 128, pattern = "^([A-Za-z0-9][A-Za-z0-9._:/@+#=,\\[\\]-]*)?$")]
    pub model: Option<String>,
    /// The agent's mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 128, pattern = "^([A-Za-z0-9][A-Za-z0-9._:/@+#=,\\[\\]-]*)?$")]
    pub mode: Option<String>,
}

/// A wish for another scope. It happens when the turn under way is over; with `now`, it is refused while one runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum ScopeRequest {
    /// Go into a worktree.
    Enter(ScopeEnter),
    /// Leave the worktree for the directory that it was entered from.
    Exit(ScopeExit),
    /// Another agent, model or mode.
    Set(ScopeSetting),
    /// Another directory, because the one there was has moved or is gone.
    Relink(ScopeRelink),
}

/// Go into a worktree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScopeEnter {
    /// The worktree.
    pub enter: EnterWorktree,
    /// Not if it has to wait.
    #[serde(default)]
    pub now: bool,
}

/// Leave the worktree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScopeExit {
    /// `true`; whoever does not want to leave asks for nothing.
    #[schema(schema_with = only_true)]
    pub exit: bool,
    /// Not if it has to wait.
    #[serde(default)]
    pub now: bool,
}

fn only_true() -> Schema {
    let flag = ObjectBuilder::new().schema_type(Type::Boolean).enum_values(Some([true]));
    flag.description(Some("`true`; whoever does not want to leave asks for nothing.")).into()
}

/// Another agent, model or mode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScopeSetting {
    /// The values.
    pub set: ScopeSet,
    /// Not if it has to wait.
    #[serde(default)]
    pub now: bool,
}

/// Another directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScopeRelink {
    /// The directory, absolute.
    #[schema(max_length = 4_095, pattern = "^/[^\\u0000]*$")]
    pub relink: String,
    /// Not if it has to wait.
    #[serde(default)]
    pub now: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScopeFields {
    #[serde(default, deserialize_with = "present_object")]
    enter: Option<EnterWorktree>,
    #[serde(default, deserialize_with = "present")]
    exit: Option<bool>,
    #[serde(default, deserialize_with = "present_object")]
    set: Option<ScopeSet>,
    #[serde(default, deserialize_with = "present")]
    relink: Option<String>,
    #[serde(default)]
    now: bool,
}

impl<'de> Deserialize<'de> for ScopeRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let ScopeFields { enter, exit, set, relink, now } = object(deserializer)?;
        match (enter, exit, set, relink) {
            (Some(enter), None, None, None) => Ok(Self::Enter(ScopeEnter { enter, now })),
            (None, Some(exit), None, None) => Ok(Self::Exit(ScopeExit { exit, now })),
            (None, None, Some(set), None) => Ok(Self::Set(ScopeSetting { set, now })),
            (None, None, None, Some(relink)) => Ok(Self::Relink(ScopeRelink { relink, now })),
            _ => Err(de::Error::custom("name exactly one of `enter`, `exit`, `set` and `relink`")),
        }
    }
}

fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

fn present_object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(d: D) -> Result<Option<T>, D::Error> {
    object(d).map(Some)
}

impl EnterWorktree {
    /// Checks that every field is as the schema says.
    pub fn check(&self) -> Result<(), Invalid> {
        worktree_name(&self.name)?;
        revision("base", self.base.as_deref(), "_@", "._/@^~{}-")?;
        revision("branch", self.branch.as_deref(), "_", "._/-")
    }
}

impl OwnWorktree {
    /// Checks that every field is as the schema says.
    pub fn check(&self) -> Result<(), Invalid> {
        self.name.as_deref().map_or(Ok(()), worktree_name)?;
        revision("base", self.base.as_deref(), "_@", "._/@^~{}-")?;
        revision("branch", self.branch.as_deref(), "_", "._/-")
    }
}

pub(crate) fn worktree_name(name: &str) -> Result<(), Invalid> {
    let small = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let plain = name.starts_with(small) && name.chars().all(|c| small(c) || c == '-');
    if plain && name.len() <= WORKTREE_LENGTH_MAX {
        return Ok(());
    }
    let reason = format!(
        "must begin with a small letter or digit and go on with those or - (at most {WORKTREE_LENGTH_MAX})"
    );
    Err(Invalid { field: "name", reason })
}

fn revision(field: &'static str, named: Option<&str>, first: &str, marks: &str) -> Result<(), Invalid> {
    let Some(named) = named else { return Ok(()) };
    let begins = named.starts_with(|c: char| c.is_ascii_alphanumeric() || first.contains(c));
    let goes_on = named.chars().all(|c| c.is_ascii_alphanumeric() || first.contains(c) || marks.contains(c));
    if begins && goes_on && named.len() <= REVISION_LENGTH_MAX {
        return Ok(());
    }
    let reason = format!(
        "must begin with a letter, a digit or one of {first} and go on with those or one of {marks} (at most {REVISION_LENGTH_MAX})"
    );
    Err(Invalid { field, reason })
}

/// The turn whose changes are to be put back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UndoTurn {
    /// The turn.
    #[serde(deserialize_with = "whole")]
    #[schema(minimum = 1, maximum = 2_147_483_647)]
    pub turn: u32,
    /// The epoch of the scope that you saw: if it is another one by now, nothing is undone.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "whole_maybe")]
    #[schema(minimum = 0, maximum = 2_147_483_647)]
    pub under: Option<u32>,
    /// All files that changed during the turn are meant, also those of which the agent has not said that it changed them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    /// Only these files are meant, from the top of the tree, whoever has changed them; with `all` beside it, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_items = 1, max_items = 100, value_type = Option<Vec<FilePath>>)]
    pub only: Option<Vec<String>>,
}

/// The path of a file from the top of the tree.
#[derive(ToSchema)]
#[schema(value_type = String, min_length = 1, max_length = 4_095, pattern = "^[^\\u0000]*$")]
#[allow(dead_code)]
pub(crate) struct FilePath(String);

/// The turn whose last undo is to be taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RedoTurn {
    /// The turn.
    #[serde(deserialize_with = "whole")]
    #[schema(minimum = 1, maximum = 2_147_483_647)]
    pub turn: u32,
    /// The epoch of the scope that you saw: if it is another one by now, nothing is changed.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "whole_maybe")]
    #[schema(minimum = 0, maximum = 2_147_483_647)]
    pub under: Option<u32>,
}

/// A fork to be made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewFork {
    /// The last turn that both have; the last one that is over if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "whole_maybe")]
    #[schema(minimum = 1, maximum = 2_147_483_647)]
    pub at: Option<u32>,
    /// Its title, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 200, pattern = "^[^\\u0000-\\u001f\\u007f]*$")]
    pub title: Option<String>,
}

/// The turn whose changes are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ChangesQuery {
    /// The turn.
    #[param(minimum = 1, maximum = 2_147_483_647)]
    pub turn: u32,
}

/// The turn, or turns, whose changes are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct DiffQuery {
    /// The turn.
    #[param(minimum = 1, maximum = 2_147_483_647)]
    pub turn: u32,
    /// The first of several turns: then it is what changed from before that one to after `turn`, by whomever. Both have to have run
    /// where the session acts now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 1, maximum = 2_147_483_647)]
    pub since: Option<u32>,
}

/// The changes of a turn, or of several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Changes {
    /// The turn, the last of several.
    pub turn: u32,
    /// The first of them, if several were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<u32>,
    /// True if it was looked for: outside of version control nobody can tell.
    pub known: bool,
    /// The files.
    pub files: Vec<FileChange>,
    /// The same, as a patch.
    pub patch: String,
    /// True if some of the patch is missing, because it was long.
    pub cut: bool,
    /// Sentences about what was not looked at: large files that git does not track, repositories within, submodules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<String>,
    /// The moves of the repository itself: commits, a switch, a stash. No undo takes these back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moves: Vec<RepositoryMove>,
}

/// The file whose changes are asked for, of which turn or turns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct FileChangesQuery {
    /// The turn. It has to have run in the repository in which the session acts now.
    #[param(minimum = 1, maximum = 2_147_483_647)]
    pub turn: u32,
    /// The first of several turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 1, maximum = 2_147_483_647)]
    pub since: Option<u32>,
    /// The file, as it is named among changes.
    #[param(min_length = 1, max_length = 4_095)]
    pub path: String,
    /// The byte of its patch at which to begin: 0, or what `next` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(maximum = 268_435_456)]
    pub from: Option<u64>,
}

/// A piece of the patch of one file. All pieces together have nothing cut off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FilePatch {
    /// True if it was looked for: outside of version control, and of what is not remembered, nobody can tell.
    pub known: bool,
    /// The file; not there if it has not changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub file: Option<FileChange>,
    /// The piece.
    pub patch: String,
    /// Where the next piece begins (`from`), if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub next: Option<u64>,
}

/// A move of the repository itself that a turn has made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RepositoryMove {
    /// The move, in words.
    pub words: String,
    /// The command that takes it back.
    pub command: String,
}

/// The work of an undo that was only asked about. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UndoPreview {
    /// The turn.
    pub turn: u32,
    /// True if it could be undone now.
    pub possible: bool,
    /// Why not, in words, if it could not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Each file of the turn, and its fate.
    pub files: Vec<UndoFile>,
    /// Those of them that later turns, or people, have changed since: with any of these nothing is undone.
    pub touched: Vec<String>,
    /// Those of which the agent has not said that it changed them: with any of these nothing is undone, unless you say that
    /// they are meant (`all` or `only`).
    pub unsure: Vec<String>,
    /// The moves of the repository itself, which no undo takes back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moves: Vec<RepositoryMove>,
    /// True if there are more files.
    pub cut: bool,
}

/// One file of an undo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UndoFile {
    /// Where it is, from the top of the tree.
    pub path: String,
    /// `restored`, `removed`, `brought_back`, `mode` (only that changes) or `as_before` (already).
    pub kind: String,
}

/// One file that was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FileChange {
    /// Where it is, from the top of the tree.
    pub path: String,
    /// `added`, `edited`, `removed` or `renamed`.
    pub kind: String,
    /// Lines more; missing for a file that is no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plus: Option<u64>,
    /// Lines less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minus: Option<u64>,
}

/// The readiness of a session: one value, and each part of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Readiness {
    /// The value that follows from the parts.
    pub state: Ready,
    /// Each part, the fine ones included.
    pub parts: Vec<ReadyPart>,
}

/// The readiness of a session, as one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ready {
    /// The next message is started as soon as it is its turn.
    Ready,
    /// It goes on by itself, or when somebody answers.
    Waiting,
    /// Somebody has to do something.
    Blocked,
}

/// One part of readiness.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReadyPart {
    /// `directory`, `agent`, `commands`, `model`, `lease`, `queue`, `approvals` or `quota`.
    pub name: String,
    /// `fine`, `overlooked`, `waiting` or `blocked`.
    pub state: String,
    /// A stable word for why it is not fine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The remedy, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// A stable word for the remedy: `wait`, `relink`, `mend_agent`, `sign_in`, `read_failure`, `choose_model`, `release`, `place`, `answer`,
    /// `keep_scope`, `make_room`, `mend_server` or `begin_anew`. There may be more one day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy_code: Option<String>,
    /// The session that works in the same directory and is waited for, if you may see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Since when, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<At>,
    /// Until when at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<At>,
    /// True if nothing depends on it in the end.
    pub advisory: bool,
}
