//! A conversation as a file: JSON Lines, a header first, then a line per turn that is over, then the end.
//!
//! A file without its end was cut on its way and is refused as a whole. What it says of people are names, not ids: who
//! somebody is elsewhere is nobody's business here.

use crate::bounds::*;
use crate::{At, Failure, IfNew, Invalid, Outcome, Part, Story};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// The name of the format, in the header.
pub const EXPORT_FORMAT: &str = "homing-session";
/// The version of the form.
pub const EXPORT_VERSION: u32 = 1;
/// The media type.
pub const EXPORT_TYPE: &str = "application/jsonl";

/// One line of an export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ExportLine {
    /// The first line.
    Header(Box<ExportHeader>),
    /// A turn that is over.
    Turn(Box<ExportTurn>),
    /// The last line.
    End(ExportEnd),
}

/// The header of an export: the conversation that it is of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportHeader {
    /// Always `homing-session`.
    pub format: String,
    /// The version of the form: 1.
    pub version: u32,
    /// The session's id where it comes from.
    #[schema(pattern = "^ses_[0-7][0-9a-hjkmnp-tv-z]{25}$")]
    pub session: String,
    /// The org that it is in there.
    #[schema(max_length = 64)]
    pub org: String,
    /// Its title, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 200)]
    pub title: Option<String>,
    /// The agent that was there last; empty if nobody knows.
    #[serde(default)]
    #[schema(max_length = 64)]
    pub agent: String,
    /// Its model, where one was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 128)]
    pub model: Option<String>,
    /// Its mode, where one was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 128)]
    pub mode: Option<String>,
    /// The person who took it along, by their handle.
    #[schema(max_length = 64)]
    pub by: String,
    /// When.
    pub at: At,
    /// The parts that did not go along.
    pub left_out: LeftOut,
}

/// The part of a session that did not go along.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    /// The oldest turns, for which there was no room.
    pub turns: u32,
    /// Messages that wait, are held, or are being worked on.
    pub messages: u32,
    /// Questions that nobody has answered yet.
    pub questions: u32,
    /// Changes of scope that have not happened yet.
    pub changes: u32,
    /// Images and files of turns that went along, for which there was no room: their words name them.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub attachments: u32,
}

fn is_nothing(count: &u32) -> bool {
    *count == 0
}

/// A turn that is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportTurn {
    /// Its number there, in a fork counted from the beginning of the conversation. Each is greater than the one before.
    #[schema(minimum = 1)]
    pub turn: u32,
    /// The agent that ran it; empty if nobody knows.
    #[serde(default)]
    #[schema(max_length = 64)]
    pub agent: String,
    /// When it began.
    pub began_at: At,
    /// When it was over.
    pub ended_at: At,
    /// The words it began with, then those that were said into it.
    #[schema(min_items = 1, max_items = 64)]
    pub said: Vec<ExportWords>,
    /// The story, in order.
    pub story: Vec<ExportStory>,
    /// Its outcome.
    pub outcome: Outcome,
    /// The failure of the agent, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

/// Words of somebody.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportWords {
    /// Their speaker, by the handle there.
    #[schema(max_length = 64)]
    pub by: String,
    /// When.
    pub at: At,
    /// The parts; nothing if the words were forgotten.
    #[schema(max_items = 32)]
    pub parts: Vec<Part>,
}

/// Something that there was to see in a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExportStory {
    /// When.
    pub at: At,
    /// The story.
    #[serde(flatten)]
    pub story: Story,
}

/// The last line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportEnd {
    /// The number of turns.
    pub turns: u32,
}

/// The options of the session that a conversation is brought into.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ImportQuery {
    /// The agent's name; the default agent if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(max_length = 64, pattern = "^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    pub agent: Option<String>,
    /// The directory it works in, absolute; one of its own if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(max_length = 4_095, pattern = "^/[^\\u0000]*$")]
    pub directory: Option<String>,
    /// Its title, for people; as there, if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(max_length = 200, pattern = "^[^\\u0000-\\u001f\\u007f]*$")]
    pub title: Option<String>,
}

impl ImportQuery {
    /// The options it is made with.
    pub fn into_if_new(self) -> IfNew {
        let Self { agent, directory, title } = self;
        IfNew { agent, directory, title, ..IfNew::default() }
    }
}

impl ExportHeader {
    /// Checks that every field is as the schema says.
    pub fn check(&self) -> Result<(), Invalid> {
        IfNew { title: self.title.clone(), ..IfNew::default() }.check()?;
        short("org", &self.org, NAME_LENGTH_MAX)?;
        short("by", &self.by, HANDLE_LENGTH_MAX)?;
        short("agent", &self.agent, AGENT_LENGTH_MAX)
    }
}

impl ExportTurn {
    /// Checks that every field is as the schema says.
    pub fn check(&self) -> Result<(), Invalid> {
        short("agent", &self.agent, AGENT_LENGTH_MAX)?;
        self.said.iter().try_for_each(|said| {
            short("by", &said.by, HANDLE_LENGTH_MAX)?;
            let bytes: usize = said.parts.iter().map(Part::text_len).sum();
            if said.parts.len() > PARTS_MAX || bytes > TEXT_LENGTH_MAX {
                let reason = format!("more than {PARTS_MAX} parts, or than {TEXT_LENGTH_MAX} bytes of text");
                return Err(Invalid { field: "parts", reason });
            }
            Ok(())
        })?;
        self.story.iter().try_for_each(|told| check_story(&told.story))
    }
}

/// Numbers that readers count with are numbers that they can keep.
fn check_story(story: &Story) -> Result<(), Invalid> {
    let counts = match story {
        Story::Text { offset, .. } | Story::Reasoning { offset, .. } | Story::ToolProgress { offset, .. } => {
            vec![*offset]
        }
        Story::Said { length, .. } => vec![*length],
        Story::Usage(usage) => {
            let maybe = [usage.cost_micros, usage.window_used, usage.window_size];
            let counts = [usage.input_tokens, usage.output_tokens, usage.cached_tokens];
            counts.into_iter().chain(maybe.into_iter().flatten()).collect()
        }
        _ => Vec::new(),
    };
    if counts.into_iter().any(|count| count > NUMBER_MAX) {
        return Err(Invalid { field: "story", reason: format!("a number is greater than {NUMBER_MAX}") });
    }
    Ok(())
}

fn short(field: &'static str, text: &str, max: usize) -> Result<(), Invalid> {
    if text.chars().count() > max || text.chars().any(char::is_control) {
        let reason = format!("longer than {max} characters, or has control characters in it");
        return Err(Invalid { field, reason });
    }
    Ok(())
}
