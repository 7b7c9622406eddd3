//! Sessions, as lists and single reads show them.

use crate::object::object_maybe;
use crate::{
    Address, At, EndWhy, Failure, Grant, Links, Origin, Outcome, OwnWorktree, ScopeWorktree, Usage, Waiting,
    Who,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// The options of a new session. Agent and directory can be named here and nowhere else.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct IfNew {
    /// The agent's name; the default agent if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 64, pattern = "^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    pub agent: Option<String>,
    /// The directory it works in, absolute; one of its own if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 4_095, pattern = "^/[^\\u0000]*$")]
    pub directory: Option<String>,
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 128, pattern = "^[A-Za-z0-9][A-Za-z0-9._:/@+#=,\\[\\]-]*$")]
    pub model: Option<String>,
    /// The agent's mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 128, pattern = "^[A-Za-z0-9][A-Za-z0-9._:/@+#=,\\[\\]-]*$")]
    pub mode: Option<String>,
    /// Its title, for people: at most 200 characters, without control characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 200, pattern = "^[^\\u0000-\\u001f\\u007f]*$")]
    pub title: Option<String>,
    /// The worktree that it goes into before anything else.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object_maybe")]
    pub worktree: Option<OwnWorktree>,
}

/// Work that goes on for a session between its turns, and how far it is. It is no fact: what comes of it is in the log and in the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Progress {
    /// `enter`, `undo`, `redo`, `remove`, `restore`, `merge`, `apply` or `stop_background`.
    pub verb: String,
    /// The name of the worktree, or the number of the turn.
    pub subject: String,
    /// `begun`, `waiting` (for others on the same tree), `looking`, `snapshot`, `copying`, `checking_out`, `removing`, `setup` or
    /// `teardown`. There may be others one day.
    pub phase: String,
    /// The files that are done in this phase, where they are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<u64>,
    /// All files of this phase, where they are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_total: Option<u64>,
    /// The bytes that were read and written in this phase, as far as they are seen; of a script, those that it has printed.
    pub bytes: u64,
    /// When it was begun, by whoever does it now.
    pub since: At,
}

/// A session to be made without a message.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSession {
    /// The agent's name; the default agent if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 64, pattern = "^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    pub agent: Option<String>,
    /// The directory it works in, absolute; one of its own if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 4_095, pattern = "^/[^\\u0000]*$")]
    pub directory: Option<String>,
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 128, pattern = "^[A-Za-z0-9][A-Za-z0-9._:/@+#=,\\[\\]-]*$")]
    pub model: Option<String>,
    /// The agent's mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 128, pattern = "^[A-Za-z0-9][A-Za-z0-9._:/@+#=,\\[\\]-]*$")]
    pub mode: Option<String>,
    /// Its title, for people: at most 200 characters, without control characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 200, pattern = "^[^\\u0000-\\u001f\\u007f]*$")]
    pub title: Option<String>,
    /// The worktree that it goes into before anything else.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object_maybe")]
    pub worktree: Option<OwnWorktree>,
    /// The conversation it will belong to. Made without a message, it must not have an open session; made for one, it takes the
    /// conversation over, and the session that had it goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Address>)]
    pub conversation: Option<String>,
}

/// A session that was made. The same for a repeated request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Made {
    /// The session.
    pub id: String,
    /// Where to go from here.
    pub links: Links,
}

/// A change of a session: of its title, and of whether lists show it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionChange {
    /// Another title: at most 200 characters, without control characters. An empty one takes it away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 200, pattern = "^[^\\u0000-\\u001f\\u007f]*$")]
    pub title: Option<String>,
    /// True if lists leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived: Option<bool>,
}

/// The choice of the sessions that a list shows, and of a page of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct SessionsQuery {
    /// The choice; the open ones if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub which: Option<Which>,
    /// Only those of this agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(max_length = 64)]
    pub agent: Option<String>,
    /// Only those that act in this directory or below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(max_length = 4_095, pattern = "^/[^\\u0000]*$")]
    pub directory: Option<String>,
    /// Only those that do this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub doing: Option<Doing>,
    /// Only those with these words in their title, in whatever case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(min_length = 1, max_length = 200)]
    pub text: Option<String>,
    /// Only those of this person: an id, or `me`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(pattern = "^(me|usr_[0-7][0-9a-hjkmnp-tv-z]{25})$")]
    pub owner: Option<String>,
    /// Only those that are archived, or only those that are not. The archived ones are open and ended ones, unless `which` says more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived: Option<bool>,
    /// Only the forks of this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(pattern = "^ses_[0-7][0-9a-hjkmnp-tv-z]{25}$")]
    pub origin: Option<String>,
    /// Only those that need you for this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub needs: Option<Need>,
    /// Only those that go by this name, ended and archived ones, too: how an id begins or ends, with its prefix or without, at least
    /// four characters; or a title that a person gave. Nothing else can be chosen with it, and there is one page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(min_length = 1, max_length = 200)]
    pub name: Option<String>,
    /// The most items on the page; 50 if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 1, maximum = 500)]
    pub limit: Option<u32>,
    /// Where the page before ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(max_length = 4_100)]
    pub cursor: Option<String>,
}

/// A reason for which a session needs you.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Need {
    /// Questions of its agent are open.
    Questions,
    /// Messages are held.
    Held,
    /// Its last turn failed, was interrupted or took too long.
    Failed,
    /// A turn is over whose end you have not seen.
    Unread,
}

/// The number of open sessions that are not archived, among the 10,000 newest of yours and of those that were given to you.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionCounts {
    /// All of them.
    pub open: u32,
    /// Those with a turn under way.
    pub running: u32,
    /// Those with open questions.
    pub questions: u32,
    /// Those with held messages.
    pub held: u32,
    /// Those whose last turn failed, was interrupted or took too long.
    pub failed: u32,
    /// Those with a turn whose end you have not seen.
    pub unread: u32,
}

/// The work of an open session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Doing {
    /// A turn is under way.
    Running,
    /// Messages wait, and no turn is under way.
    Waiting,
    /// Neither.
    Dormant,
}

/// The choice of the sessions that a list shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Which {
    /// Open and not archived.
    #[default]
    Open,
    /// Ended and not archived.
    Ended,
    /// Everything, the archived ones too.
    All,
}

/// One conversation with an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Session {
    /// Its id. Never changes.
    pub id: String,
    /// Whose it is.
    pub owner: String,
    /// The same, with their handle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owned_by: Option<Who>,
    /// Its title, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The one who gave it its title, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title_by: Option<TitleBy>,
    /// Its state: an open one takes messages.
    pub state: SessionState,
    /// Why it ended, if it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<EndWhy>,
    /// True if lists leave it out.
    pub archived: bool,
    /// True if a turn is under way.
    pub awake: bool,
    /// The number of its messages that are not final.
    pub pending: u32,
    /// The number of those that are held.
    #[serde(default)]
    pub held: u32,
    /// The number of the agent's questions that are open.
    #[serde(default)]
    pub questions: u32,
    /// The strongest thing that you may do with it, by what you were given and as far as your role lets that count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub may: Option<Grant>,
    /// Its last turn that is over, if one is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<LastTurn>,
    /// The number of the last fact that you have seen, as you have noted it; 0 if you have not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<u64>,
    /// True if you keep it at hand.
    #[serde(default)]
    pub pinned: bool,
    /// Why it does not go on, if something of it waits; in lists, of the first 50 of a page that have something pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,
    /// The number of its last fact.
    pub number: u64,
    /// The agent.
    pub agent: String,
    /// The directory it works in.
    pub directory: String,
    /// The model, where one was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The agent's mode, where one was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// The agent's own word about it; only where one session is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_word: Option<OwnWord>,
    /// The processes that the agent's turns have left running, if any; only where one session is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<Background>,
    /// The worktree that the directory is in, if it has entered one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<ScopeWorktree>,
    /// The branch that the worktree was on when it was entered, as far as that was written down. Nobody looks for it now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The number of times where and how it acts has changed.
    pub epoch: u32,
    /// Of which session it is a fork, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// The id that it had elsewhere, if it was imported. It answers to it, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported_as: Option<String>,
    /// The org that it was in then, as its file says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported_from: Option<String>,
    /// The work on its directory or worktrees that goes on between its turns, if any does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// When it was made.
    pub made_at: At,
    /// When something was last said in it.
    pub touched_at: At,
    /// Where to go from here.
    pub links: Links,
}

/// The last turn of a session that is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LastTurn {
    /// The outcome.
    pub outcome: Outcome,
    /// The failure, if that is how it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// When it ended.
    pub at: At,
    /// The number of the fact that ended it.
    pub number: u64,
    /// The beginning of the agent's last words in it, at most 200 bytes; missing if it said nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
}

/// An agent's own word about a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OwnWord {
    /// The agent's name for the conversation, with which its own program finds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native: Option<String>,
    /// The model it says it uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The cost of all turns so far, as far as it has said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// Processes that an agent's turns have left running, as they are now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Background {
    /// Their number.
    pub processes: u32,
    /// The oldest of them, at most 20.
    pub oldest: Vec<BackgroundProcess>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BackgroundProcess {
    /// Its command line, cut in the middle to 200 bytes, without control characters.
    pub command: String,
    /// When it was started.
    pub since: At,
}

/// The end of what ran in the background.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StoppedBackground {
    /// The number of processes in the background that were ended; 0 if there were none.
    pub ended: u32,
    /// The command lines of the oldest of them, at most 20.
    pub commands: Vec<String>,
    /// True: nothing of it is left. What could not be ended is an error, and not this answer.
    pub gone: bool,
}

/// The state of a session: an open one takes messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// It does.
    Open,
    /// It is over.
    Ended,
}

/// The one who gave a session its title.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TitleBy {
    /// A person. Nobody else changes it.
    Person,
    /// Its agent.
    Agent,
    /// Nobody: these are the first words that were said in it.
    Words,
}
