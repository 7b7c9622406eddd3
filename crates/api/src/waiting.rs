//! Why something is not being worked on yet, and for whom it waits.

use crate::At;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The reason why a message, or a session, does not go on at the moment, and for whom it waits. Missing while the agent works.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Waiting {
    /// A stable word: `message` (that one is before it), `directory` (a turn of another session works there), `slot` or `org_slot` (as many
    /// turns of its sender, or of the org, are under way as may be), `starting` (the agent), `again` (the agent could not be started, and is
    /// tried again), `asked` (the agent asks something), `stopping`, `scope` (it is about to change) or `errand` (a worktree is being
    /// made, a turn undone or redone). There may be more one day.
    pub why: String,
    /// The message before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The session that works in the directory, or the first of those whose turns are counted, if you may see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The directory that somebody else works in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// The agent that is being started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The number of turns that may be under way at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u32>,
    /// Until when at most, where that is known: then it is asked for again, tried again, or answered with no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<At>,
}
