//! Questions of agents that wait for a person, and the rules that answer some of them or say who may.

use crate::bounds::*;
use crate::check::{directory, is_longer, words};
use crate::object::whole_small;
use crate::{At, Choice, Grantee, Invalid, Who};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// A question of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Approval {
    /// Its id.
    pub id: String,
    /// The session whose agent asks.
    pub session: String,
    /// The turn in which it asks.
    pub turn: u32,
    /// Where it stands.
    pub state: ApprovalState,
    /// The answers it takes.
    #[serde(default)]
    pub form: QuestionForm,
    /// The tool that it is about; empty if it names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The question, in the agent's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The options, counted from 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<Choice>,
    /// The agent that asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Where it works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Only these people may answer, because a rule says so. Whoever manages the session can still say no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<OnlyThese>,
    /// The answer, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// The one who answered: the id of a person or a rule, or `policy`; nobody did if its time was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The handle of whoever answered, if it was a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_handle: Option<String>,
    /// When it was asked.
    pub asked_at: At,
    /// Without an answer by then it is a no.
    pub until: At,
    /// When it was answered, or lapsed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled_at: Option<At>,
}

/// A choice of questions, and a page of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ApprovalsQuery {
    /// Where they stand; the open ones if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub state: Option<ApprovalsState>,
    /// Only those of this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(pattern = "^ses_[0-7][0-9a-hjkmnp-tv-z]{25}$")]
    pub session: Option<String>,
    /// The most items on the page; 50 if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 1, maximum = 500)]
    pub limit: Option<u32>,
    /// Where the page before ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(max_length = 4_100)]
    pub cursor: Option<String>,
}

/// The questions that a list shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalsState {
    /// Those that wait for somebody.
    #[default]
    Open,
    /// Those that were answered or have lapsed.
    Settled,
    /// Both.
    All,
}

/// Where a question stands. All but the first are final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalState {
    /// It waits for somebody.
    Open,
    /// Somebody answered, or nobody did in time.
    Answered,
    /// Its turn is over; nobody can answer any more.
    Lapsed,
}

/// The answers that a question takes. Each takes a `no`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum QuestionForm {
    /// `yes`.
    #[default]
    Permission,
    /// `chose`, or `said` if none of the options is right.
    Choice,
    /// `said`.
    Words,
}

/// Those who may answer, and the rule that says so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OnlyThese {
    /// The rule.
    pub rule: String,
    /// Those who may.
    pub who: Grantee,
}

/// The answer to a question: `yes`, `no`, `{"chose": 0}` or `{"said": "…"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Go ahead.
    Yes,
    /// Do not.
    No,
    /// This one of the options, counted from 0.
    Chose(#[serde(deserialize_with = "whole_small")] u16),
    /// These words.
    Said(String),
}

/// An answer on its way in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovalAnswer {
    /// The answer.
    pub answer: Answer,
    /// For how long it holds; once if nothing is said. It becomes a rule together with the answer, or not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remember: Option<Remember>,
}

impl From<Answer> for ApprovalAnswer {
    fn from(answer: Answer) -> Self {
        Self { answer, remember: None }
    }
}

impl ApprovalAnswer {
    /// Checks that every field is as the schema says.
    pub fn check(&self) -> Result<(), Invalid> {
        match &self.answer {
            Answer::Said(said) => words("answer", said),
            Answer::Yes | Answer::No | Answer::Chose(_) => Ok(()),
        }
    }
}

/// For how long an answer about a tool holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Remember {
    /// For this tool in this session, until it ends. For whoever manages the session.
    Session,
    /// For this tool of this agent in this directory and below it, until somebody removes the rule. For admins.
    Always,
}

/// The way a question was settled before another answer came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AnsweredBefore {
    /// The answer that counts.
    pub answer: Answer,
    /// The one who gave it: the id of a person or a rule, or `policy`; nobody did if its time was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Their handle, if it was a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_handle: Option<String>,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<At>,
}

/// A rule: what becomes of some questions of agents, without asking anybody; or who may answer them. What a rule does
/// not name, it does not ask about. A `deny` beats an `ask`, which beats an `allow`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Rule {
    /// Its id.
    pub id: String,
    /// The effect on the questions.
    pub effect: RuleEffect,
    /// With `ask`: who may answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<Grantee>,
    /// Only questions of this agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Only questions about this tool; with a star at its end, about all whose names begin so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Only questions of sessions that act in this directory or below it, or came from there into a worktree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Only questions of this session; the rule goes when it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The person who made it.
    pub by: Who,
    /// When.
    pub since: At,
    /// It counts no more from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<At>,
    /// True if it counts now: an `allow` does so only while whoever made it could still make it.
    #[serde(default = "counts")]
    pub counts: bool,
}

/// A server that does not say so let every rule count.
fn counts() -> bool {
    true
}

/// The effect of a rule on questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RuleEffect {
    /// A permission is answered with yes. A choice or a question for words is asked all the same.
    Allow,
    /// They are answered with no.
    Deny,
    /// Only some people may answer them.
    Ask,
}

/// A rule on its way in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewRule {
    /// The effect on the questions.
    pub effect: RuleEffect,
    /// With `ask`, and only then: who may answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub who: Option<Grantee>,
    /// Only questions of this agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 64)]
    pub agent: Option<String>,
    /// Only questions about this tool; with a star at its end, about all whose names begin so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 256, pattern = "^[^*\\u0000-\\u001f\\u007f-\\u009f]*\\*?$")]
    pub tool: Option<String>,
    /// Only questions of sessions that act in this directory or below it, or came from there into a worktree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 4_095, pattern = "^/[^\\u0000]*$")]
    pub directory: Option<String>,
    /// Only questions of this session; the rule goes when it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^ses_[0-7][0-9a-hjkmnp-tv-z]{25}$")]
    pub session: Option<String>,
    /// It counts no more from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<At>,
}

impl NewRule {
    /// Checks that every field is as the schema says.
    pub fn check(&self) -> Result<(), Invalid> {
        let invalid = |field, reason: &str| Err(Invalid { field, reason: reason.to_owned() });
        match (self.effect, &self.who) {
            (RuleEffect::Ask, None) => return invalid("who", "say who may answer"),
            (RuleEffect::Allow | RuleEffect::Deny, Some(_)) => {
                return invalid("who", "goes with the effect `ask` only");
            }
            (RuleEffect::Ask, Some(_)) | (RuleEffect::Allow | RuleEffect::Deny, None) => {}
        }
        if let Some(tool) = &self.tool {
            let name = tool.strip_suffix('*').unwrap_or(tool);
            let odd = |c: char| c == '*' || c.is_control();
            if tool.is_empty() || is_longer(tool, TOOL_LENGTH_MAX) || name.contains(odd) {
                return invalid("tool", "must be 1 to 256 characters, and may end with a star");
            }
        }
        self.directory.as_deref().map_or(Ok(()), directory)
    }
}
