//! Questions of agents that wait for a person.

use crate::At;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A question of an agent. What it asks is in the log, as a `question` fact with the same id.
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
    /// What was answered, if anything was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// Who answered; nobody did if its time was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// When it was asked.
    pub asked_at: At,
    /// Without an answer by then it is a no.
    pub until: At,
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

/// What is said to a question: `yes`, `no`, `{"chose": 0}` or `{"said": "…"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Go ahead.
    Yes,
    /// Do not.
    No,
    /// This one of the options, counted from 0.
    Chose(u16),
    /// These words.
    Said(String),
}

/// An answer on its way in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovalAnswer {
    /// The answer.
    pub answer: Answer,
}
