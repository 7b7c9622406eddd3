//! The audit: who did what, and whether its chain still holds.

use crate::{At, Who};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Something that somebody did, or was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Entry {
    /// Its number in the org, which grows by one with each entry.
    pub entry: u64,
    /// Its number in the org's chain; none until it is sealed, which takes about a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// Its seal, in hex: made of all of the entry and of the seal before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<String>,
    /// When.
    pub at: At,
    /// The person; none if nobody knows, as with a sign-in that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Who>,
    /// The wish: a stable word.
    pub what: String,
    /// The way in: `http`, `cli`, `engine` …
    pub door: String,
    /// Where the caller was, as far as that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// One id from request to fact to log line.
    pub correlation: String,
    /// The session it was about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The id or name of what it was about, if that is not the session; where something was given, to whom and how much: a
    /// grant, a role, or a token's rights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The code of the refusal; none if it was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// The filter for entries.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct AuditQuery {
    /// Not before this moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<At>,
    /// Before this moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<At>,
    /// The person who did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(pattern = "^usr_[0-7][0-9a-hjkmnp-tv-z]{25}$")]
    pub who: Option<String>,
    /// The wish: a stable word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(max_length = 64)]
    pub what: Option<String>,
    /// The subject: an id or a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(max_length = 4_096)]
    pub subject: Option<String>,
    /// The most entries on a page; an export has no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 1, maximum = 500)]
    pub limit: Option<u32>,
    /// Where the page before ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(max_length = 4_100)]
    pub cursor: Option<String>,
}

/// The check of the chain over an org's audit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Verified {
    /// True if it holds.
    pub ok: bool,
    /// The number of entries that were looked at.
    pub entries: u64,
    /// Where the chain ends. Keep it elsewhere: whoever cuts the chain cannot make an older end look like this one.
    pub head: ChainHead,
    /// The first entry that is not as it was sealed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<Broken>,
}

/// Where a chain ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChainHead {
    /// The number of the last sealed entry; 0 if there is none.
    pub number: u64,
    /// Its seal, in hex.
    pub seal: String,
}

/// An entry that is not as it was sealed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Broken {
    /// Its number in the chain.
    pub number: u64,
    /// Its own number, if it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<u64>,
    /// The fault, in words.
    pub why: String,
}
