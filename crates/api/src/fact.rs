//! The log as its readers see it: flat objects with a number, a moment, a cause, a type, and what belongs to the type.
//!
//! `RuleFact` is what happened to the session; `StoryFact` is what people are shown of a turn, sent as the bytes that
//! were stored. A reader that does not know a type keeps its place and shows it as something other (`What::Other`).

use crate::{At, Attached, FileChange, Origin, QuestionForm, RepositoryMove, Scope, ScopeChange, Who};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::openapi::schema::{OneOfBuilder, Ref};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// Something that happened in a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Fact {
    /// Its place in the session's log. The first is 1; there are no gaps.
    pub number: u64,
    /// When it happened.
    pub at: At,
    /// The cause: the id of a message (`msg_…`) or of another request (`req_…`), or `runner`, `timer`,
    /// `keeper`.
    pub cause: String,
    /// The fact itself.
    #[serde(flatten)]
    pub what: What,
}

/// The fact itself: one of the rules, one of the story, or one that is newer than this reader.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum What {
    /// Something that the session's rules depend on.
    Rule(RuleFact),
    /// Something for people.
    Story(StoryFact),
    /// Something newer than this reader.
    Other(serde_json::Map<String, serde_json::Value>),
}

impl PartialSchema for What {
    fn schema() -> RefOr<Schema> {
        let rule = Ref::from_schema_name(RuleFact::name());
        let story = Ref::from_schema_name(StoryFact::name());
        OneOfBuilder::new().item(rule).item(story).into()
    }
}

impl ToSchema for What {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((RuleFact::name().into(), RuleFact::schema()));
        RuleFact::schemas(schemas);
        schemas.push((StoryFact::name().into(), StoryFact::schema()));
        StoryFact::schemas(schemas);
    }
}

/// A page of facts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Facts {
    /// The facts, in order.
    pub items: Vec<Fact>,
    /// Give this as `after` to get the next page. A page without items is the end, for now. Of a page that was asked for with
    /// `before`: give it as `before` to get the page before this one; with 1 or less there is none.
    pub next: u64,
    /// The words of the messages that the facts name, by their ids, if they were asked for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub messages: BTreeMap<String, SaidMessage>,
}

/// The words of a message, and whatever goes along.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SaidMessage {
    /// Its words.
    pub text: String,
    /// True if there are more of them: `GET /messages/{id}?words=true` has all. A page has at most about a mebibyte of words.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// The person who said it.
    pub by: Who,
    /// The door by which it came in: `cli`, `browser` or `http`; none if that is not known. There may be more one day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub door: Option<String>,
    /// When it was accepted.
    pub at: At,
    /// The images and files that go along with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attached>,
}

/// Words that are not in the log yet, with the place at which they will be. They come again, as a fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Live {
    /// The turn that says them.
    pub turn: u32,
    /// `text` or `reasoning`.
    pub kind: String,
    /// The run of words within the turn.
    pub part: u32,
    /// Bytes of this part before these words.
    pub offset: u64,
    /// The words.
    pub text: String,
}

/// A session that has changed, and the number of its last fact. Read the session for the rest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Head {
    /// The session.
    pub session: String,
    /// The number of its last fact.
    pub number: u64,
}

/// Something that the session's rules depend on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum RuleFact {
    /// The session began.
    Opened {
        /// Where and how it acts.
        #[serde(flatten)]
        scope: Scope,
        /// Of which session it is a fork, and after which of its turns.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        origin: Option<Origin>,
    },
    /// A message waits. It was written for the scope of this epoch. `delivery`: `queue`, `interrupt` or `steer`.
    Queued { message: String, by: String, delivery: String, epoch: u32 },
    /// Its words were replaced.
    Edited { message: String, revision: u32 },
    /// It was taken back. Final.
    Withdrawn { message: String, by: String },
    /// It will not be started until somebody releases it; it is refused when it expires. `why`: `asked`, `after_failure`
    /// or `other_scope`.
    Held { message: String, why: String, expires: At },
    /// It may be started again, in the scope of this epoch.
    Released { message: String, epoch: u32 },
    /// Its words go into the turn under way.
    Steered { message: String, turn: u32 },
    /// They did not get there: it waits again, before all others.
    Missed { message: String },
    /// The waiting messages stand in this order now.
    Reordered { order: Vec<String> },
    /// It will never be started. Final. `why`: `session_ended`, `expired` or `not_allowed`.
    MessageRefused { message: String, why: String },
    /// Too many sessions are awake; asked again then at the latest.
    Crowded { until: At },
    /// A message began to be worked on.
    TurnStarted { turn: u32, message: String },
    /// A process may exist from here on.
    AttemptStarted { fence: Fence, until: At },
    /// The agent confirmed its own name for this conversation.
    Confirmed {
        native: String,
        /// The agent, its home and its directory: elsewhere the name may mean nothing.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        place: String,
        epoch: u32,
    },
    /// The message may have been acted on from here on.
    Handed { turn: u32, attempt: u16 },
    /// The attempt failed before the message was handed over; it is tried again then.
    AttemptFailed { turn: u32, attempt: u16, failure: Failure, again_at: At },
    /// The agent asks; without an answer by then it is a no.
    Asked { approval: String, turn: u32, until: At },
    /// Somebody answered, or nobody did in time. Final.
    Answered {
        /// The question.
        approval: String,
        /// The answer.
        answer: crate::Answer,
        /// The one who answered: a person (`usr_…`), a rule (`rul_…`), or `policy`; missing if nobody did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// Nobody can answer any more: its turn is over, or the agent took the question back. Final.
    Lapsed { approval: String },
    /// The turn is to stop. `why`: `asked`, `time_limit` or `ending`.
    StopAsked {
        /// The turn.
        turn: u32,
        /// Why.
        why: String,
        /// The person who asked, if somebody did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// The turn is over. Final.
    TurnEnded {
        /// The turn.
        turn: u32,
        /// Its outcome.
        outcome: Outcome,
        /// The failure of the agent, if it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<Failure>,
    },
    /// The session is to end once its turn is over.
    EndAsked { by: String },
    /// The session is over. Final.
    Ended { why: EndWhy },
    /// A report came too late, or from the wrong attempt, and was not applied. `kind`: `ready`, `said`, `asked`,
    /// `withdrawn`, `missed`, `finished`, `failed`, `stopped` or `lost`.
    Stale { fence: Fence, kind: String },
    /// The scope is to change when the turn is over, and `after` has had its own.
    ChangeAsked {
        /// The change.
        change: ScopeChange,
        /// The message that was next when it was asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<String>,
        /// The person who asked.
        by: String,
    },
    /// It is not to change any more. `why`: `asked`, `failed` or `moot`.
    ScopeKept {
        /// Why.
        why: String,
        /// The person who gave it up, if somebody did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// The session acts there and so from here on.
    ScopeChanged {
        /// The scope's epoch from here on.
        epoch: u32,
        /// Where and how it acts.
        #[serde(flatten)]
        scope: Scope,
    },
    /// Something is done outside, and no turn starts until it is over. `what`: `enter` or `undo`.
    ErrandStarted {
        /// Its number among the session's errands.
        errand: u32,
        /// The scope's epoch under which it was asked.
        epoch: u32,
        /// Its kind, as a stable word.
        what: String,
        /// The worktree, or the turn.
        subject: String,
        /// The person who asked.
        by: String,
    },
    /// It came to nothing.
    ErrandFailed { errand: u32, epoch: u32 },
    /// Everything this turn had changed is as it was before it.
    Undone { turn: u32 },
    /// The last undo of this turn was taken back: everything is as it was before that.
    Redone { turn: u32 },
    /// The agent's list is known for the scope of this epoch. `kind`: `commands` or `models`.
    Learned { kind: String, epoch: u32 },
    /// An errand came back under another epoch, or twice, and was not applied. `kind`: `enter`, `undo`, `redo`,
    /// `commands`, `models`, `files` or `diff`.
    StaleErrand { errand: u32, epoch: u32, kind: String },
}

/// The attempt that something belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Fence {
    /// The keeper's term.
    pub term: u64,
    /// The scope's epoch.
    pub epoch: u32,
    /// The turn.
    pub turn: u32,
    /// The attempt within the turn.
    pub attempt: u16,
}

/// The failure of an attempt, by what can be done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// The agent says that this conversation no longer exists. Nothing brings it back.
    Gone,
    /// Somebody else holds this conversation. Later.
    Busy,
    /// It may work the next time.
    Transient,
    /// The agent will not, until a person changes something.
    Refused,
}

/// The outcome of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The agent said that it has finished.
    Answered,
    /// It was stopped.
    Stopped,
    /// We lost it after the message had been handed over. It may have acted; it is never run again by itself.
    Interrupted,
    /// The agent failed.
    Failed,
    /// It took longer than a turn may.
    TimeLimit,
}

/// Why a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndWhy {
    /// Somebody ended it.
    Asked,
    /// The agent confirmed that its conversation is gone.
    Gone,
}

/// Something that people are shown of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StoryFact {
    /// The version of this form.
    pub v: u32,
    /// The turn.
    pub turn: u32,
    /// The story.
    #[serde(flatten)]
    pub story: Story,
}

/// The story: everything there is to see.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Story {
    /// The start of an attempt. Told when it differs from the one before.
    Launch(Box<Launched>),
    /// The agent's word about itself. Told when it differs from what it said before.
    About(Box<About>),
    /// The agent's words.
    Text { part: u32, offset: u64, text: String },
    /// Thoughts of the agent.
    Reasoning { part: u32, offset: u64, text: String },
    /// A run of words is complete.
    Said { part: u32, length: u64, sha256: String },
    /// The agent uses a tool.
    ToolCall { call: String, tool: String, input: String },
    /// More of what a tool printed while it ran, as far as it was kept. `offset` counts its bytes.
    ToolProgress { call: String, offset: u64, output: String },
    /// The result of the tool.
    ToolResult { call: String, output: String, failed: bool },
    /// The agent's plan, in order; each time the whole list.
    Plan { steps: Vec<PlanStep> },
    /// The agent says that it changed a file. `change`: `added`, `edited` or `removed`.
    FileChanged { path: String, change: String },
    /// The changes of the turn in the tree, as far as it is under version control. `cut` says that some of the patch is
    /// missing, `unseen` in sentences what was not looked at.
    Changes {
        files: Vec<FileChange>,
        patch: String,
        cut: bool,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        unseen: Vec<String>,
        /// The moves of the repository itself: commits, a switch, a stash.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        moves: Vec<RepositoryMove>,
    },
    /// The way the agent comes to know what was said before, where it is not simply asked to go on: `way` is a stable
    /// word for it, `turns` how many turns it was told, `text` the same for people.
    Memory { way: String, turns: u64, text: String },
    /// More of what a script of a worktree printed. `stage`: `setup` or `teardown`; `offset` counts its bytes.
    Script { stage: String, offset: u64, output: String },
    /// A worktree of the session. `change`: `removed`, `restored`, `merged` or `applied`; the reference is the snapshot that keeps
    /// everything that was in it, or that was where its work came to, and is empty for one that was deleted by hand and made
    /// again, or whose work was there already.
    Worktree { name: String, change: String, reference: String },
    /// The agent asks a person.
    Question {
        approval: String,
        tool: String,
        detail: String,
        #[serde(default)]
        form: QuestionForm,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        options: Vec<Choice>,
    },
    /// The cost since the last time it said so.
    Usage(Usage),
    /// Something people should read.
    Notice { text: String },
    /// The agent's title for the session. It counts unless a person has given one.
    Title { title: String },
    /// The agent's own word for why it has finished: `end_turn`, `max_tokens` …
    Finished { reason: String },
    /// Seen when the turn was stopped.
    Stopped { killed: u32, gone: bool },
    /// The conversation, or this turn, was had elsewhere. Told before anything of it.
    Imported(Box<Imported>),
    /// Something the agent said that we do not understand.
    Other { raw: String },
    /// Words that were forgotten on somebody's request; `kind` is what they were.
    Forgotten { kind: String },
}

/// Where something was before it came here, as its file says. Moments are milliseconds of Unix time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Imported {
    /// The same in words.
    pub text: String,
    /// The session there.
    pub session: String,
    /// The turn's number there; 0 for the conversation as a whole.
    pub there: u32,
    /// The agent there; empty if nobody knows.
    pub agent: String,
    /// When it began; for the whole, when it was exported.
    pub began_ms: u64,
    /// When it was over.
    pub ended_ms: u64,
    /// Those who have said what the turn is about, in the order of its messages. Here they have the importer as their
    /// sender.
    pub said: Vec<SaidThere>,
}

/// Somebody who said something elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SaidThere {
    /// Their handle there.
    pub by: String,
    /// When.
    pub at_ms: u64,
}

/// The start of an attempt. Never a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Launched {
    /// The agent.
    pub agent: String,
    /// The kind of driver: `claude`, `codex`, `acp` …
    pub kind: String,
    /// The program; empty if there is none.
    pub program: String,
    /// Its version, where it was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The home it got.
    pub home: String,
    /// The directory it was started in.
    pub directory: String,
    /// The model, where one was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The mode, where one was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// It acts without asking, because the configuration says so.
    pub bypasses: bool,
    /// Whose sign-in it used: `house`, or the id of the person who gave theirs.
    pub account: String,
}

/// An agent's word about itself. Whatever it does not say is missing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct About {
    /// Its own version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// The directory it says it works in.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub directory: String,
    /// The model it says it uses.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// The mode it says it is in.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mode: String,
    /// The models one may choose.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<Choice>,
    /// The modes one may choose.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub modes: Vec<Choice>,
    /// Its slash commands, without the slash.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<Choice>,
}

/// Something that can be chosen from an agent's own list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Choice {
    /// The name by which it is chosen.
    pub name: String,
    /// In a few words; may be missing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanStep {
    /// The step, in words.
    pub text: String,
    /// Its progress: `waiting`, `active` or `done`.
    pub progress: String,
}

/// The cost of something, as far as the agent says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Usage {
    /// Tokens that were read, those from a cache included.
    pub input_tokens: u64,
    /// Tokens that were written.
    pub output_tokens: u64,
    /// Of those read, how many came from a cache.
    #[serde(default)]
    pub cached_tokens: u64,
    /// In millionths of a dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
    /// Tokens in the model's window now …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_used: Option<u64>,
    /// … and how many fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_size: Option<u64>,
}
