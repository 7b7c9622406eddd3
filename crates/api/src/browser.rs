//! The one stream of a browser: what it asks for, and the events it is told. Each event's `data` is one of these.

use crate::{Fact, Live, Progress, Readiness, Session};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// The choice of what one stream tells.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct BrowserQuery {
    /// The `cursor` of the last event that had one; without it the stream begins at the present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(max_length = 32)]
    pub cursor: Option<String>,
    /// A session whose facts, live words, progress and readiness are told, and the number of the last fact that is known of it:
    /// `SESSION:NUMBER`. Said once for each, at most 32 times.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[param(max_items = 32, style = Form, explode)]
    pub watch: Vec<String>,
}

/// `began`: the first event. Whatever changes after the cursor is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BrowserBegan {
    /// Where to begin again.
    pub cursor: String,
}

/// `session`: a session's row in lists is another one, or new to you.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BrowserSession {
    /// Where to go on after it.
    pub cursor: String,
    /// The row as it is now.
    pub session: Session,
}

/// `gone`: a session that may not be seen any more, or a watched one that never could.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BrowserGone {
    /// Where to go on after it; a watched session may be told as gone without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// The session.
    pub session: String,
}

/// `fact`: the next fact of a watched session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BrowserFact {
    /// The session.
    pub session: String,
    /// The fact, as in `GET /sessions/{id}/facts`.
    pub fact: Fact,
}

/// `live`: words of a watched session ahead of its log. They come again as facts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BrowserLive {
    /// The session.
    pub session: String,
    /// The words, and their place.
    pub live: Live,
}

/// `progress`: how far the work between a watched session's turns is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BrowserProgress {
    /// The session.
    pub session: String,
    /// None once it is over.
    pub progress: Option<Progress>,
}

/// `readiness`: how ready a watched session is, at first and whenever that changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BrowserReadiness {
    /// The session.
    pub session: String,
    /// As in `GET /sessions/{id}/readiness`.
    pub readiness: Readiness,
}
