//! Events of an agent while an attempt goes on, and failures, in bounded words.
//!
//! Whatever an agent prints is hostile: drivers make every text in an `AgentEvent` with `bounded` or `pieces`.

use std::fmt;

use kernel::{Failure, Native};

use crate::TreeEnd;

/// The longest text in one event. Longer words come as several events, so nothing of them is lost.
pub const TEXT_BYTES_MAX: usize = 16 * 1024;

/// The longest detail for people: a tool's input or output, an error's words. The rest is cut off.
pub const DETAIL_BYTES_MAX: usize = 8 * 1024;

/// The most entries of a list that an agent shows: its commands, its models, the steps of its plan.
pub const CHOICES_MAX: usize = 200;

/// The longest native id an agent may have. A longer one is no id.
pub const NATIVE_BYTES_MAX: usize = 512;

/// One thing an agent says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentEvent {
    /// It is up and waits for the message. Said once, before `hand`.
    Ready { native: Option<Native> },
    /// The conversation's id, when it becomes known or changes.
    Native(Native),
    /// More words of the answer.
    Text { text: String },
    /// More words of what it thinks.
    Reasoning { text: String },
    /// It uses a tool.
    ToolCall { call: String, tool: String, input: String },
    /// More of what a tool prints while it runs.
    ToolProgress { call: String, output: String },
    /// The result of a tool.
    ToolResult { call: String, output: String, failed: bool },
    /// Its plan, in order; each time the whole list.
    Plan { steps: Vec<PlanStep> },
    /// It says that it changed a file.
    FileChanged { path: String, change: FileChangeKind },
    /// It asks, and waits for `answer`; `question` is its own key, `kind` the sort of thing that the tool does (ACP's word, or
    /// empty), and `form` says which answers fit.
    Asked { question: String, tool: String, kind: String, detail: String, form: Form },
    /// It no longer asks, and takes no answer.
    Withdrawn { question: String },
    /// The cost since the last time it said so.
    Usage(Usage),
    /// Its word about itself: said when it is up, and again when some of it changes.
    About(Box<About>),
    /// Its title for the conversation.
    Titled { title: String },
    /// Something people should read that is no part of the answer.
    Notice { text: String },
    /// The agent's warning about itself or about how it is set up. Some say the same with every request they make; people are
    /// told of it once in a session.
    Warned { text: String },
    /// Something we do not understand, kept for the record.
    Other { raw: String },
    /// The agent says that it has finished, and with which word of its own (`end_turn`, `max_tokens` …; may be empty).
    /// The tree is gone, or is kept for the session's next turn and does nothing.
    Finished { native: Option<Native>, reason: String },
    /// The agent says that it has failed. The tree is gone.
    Failed(Trouble),
    /// It went away without a word of its own. The tree is gone if `verified` says so.
    Died { detail: String, verified: TreeEnd },
}

impl AgentEvent {
    /// True if the attempt is over with this.
    pub fn is_last(&self) -> bool {
        matches!(self, Self::Finished { .. } | Self::Failed(_) | Self::Died { .. })
    }
}

/// The kind of answer that a question wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Form {
    /// Permission to use the tool: `QuestionAnswer::Allow` or `QuestionAnswer::Deny`.
    Permission,
    /// One of these, in the agent's order; at least one, at most `CHOICES_MAX`.
    Choice { options: Vec<Choice> },
    /// Any words.
    Words,
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanStep {
    /// The step, in words.
    pub text: String,
    /// Its progress.
    pub progress: Progress,
}

/// The progress of a step of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Not begun.
    Waiting,
    /// Being done.
    Active,
    /// Done.
    Done,
}

/// The change of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileChangeKind {
    /// It is new.
    Added,
    /// It has other words in it.
    Edited,
    /// It is no more.
    Removed,
}

/// The cost of a turn, as far as the agent says so. Tokens and cost are since the last time, never sums of before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens that were read, those from a cache included.
    pub input_tokens: u64,
    /// Tokens that were written, those of reasoning included.
    pub output_tokens: u64,
    /// Of those read, how many came from a cache.
    pub cached_tokens: u64,
    /// In millionths of a dollar.
    pub cost_micros: Option<u64>,
    /// The model's window now: tokens in it, and the number that fit.
    pub window: Option<(u64, u64)>,
}

/// An agent's word about itself. Whatever it does not say is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// Its own version.
    pub version: String,
    /// The directory it says it works in.
    pub directory: String,
    /// The model it says it uses.
    pub model: String,
    /// The mode it says it is in.
    pub mode: String,
    /// The models one may choose.
    pub models: Vec<Choice>,
    /// The modes one may choose.
    pub modes: Vec<Choice>,
    /// Its slash commands, without the slash.
    pub commands: Vec<Choice>,
}

/// Something that can be chosen from an agent's own list. At most `CHOICES_MAX` of a list are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The name by which it is chosen.
    pub name: String,
    /// In a few words, for people; may be empty.
    pub description: String,
}

/// A failure: what can be done about it, and words for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail} ({})", kind(.failure))]
pub struct Trouble {
    /// By remedy.
    pub failure: Failure,
    /// At most `DETAIL_BYTES_MAX`; never compared, only shown.
    pub detail: String,
}

impl Trouble {
    /// A failure of that kind, in words that are bounded here.
    pub fn new(failure: Failure, detail: impl fmt::Display) -> Self {
        Self { failure, detail: bounded(&detail.to_string(), DETAIL_BYTES_MAX) }
    }

    /// It may work the next time.
    pub fn transient(detail: impl fmt::Display) -> Self {
        Self::new(Failure::Transient, detail)
    }

    /// The agent would use another model than was chosen, which nobody has agreed to.
    pub fn other_model(chosen: &str, used: &str) -> Self {
        Self::refused(format!(
            "the agent would use the model {used}, not {chosen} as was chosen; choose one that it lists, or none to \
             leave it to the agent"
        ))
    }

    /// A person has to change something first.
    pub fn refused(detail: impl fmt::Display) -> Self {
        Self::new(Failure::Refused, detail)
    }
}

fn kind(failure: &Failure) -> &'static str {
    match failure {
        Failure::Gone => "gone",
        Failure::Busy => "busy",
        Failure::Transient => "transient",
        Failure::Refused => "refused",
    }
}

/// The text, cut at a character's edge and marked with `…` if it was longer than `bytes_max`.
pub fn bounded(text: &str, bytes_max: usize) -> String {
    const MARK: &str = "…";
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let mut cut = text[..text.floor_char_boundary(bytes_max.saturating_sub(MARK.len()))].to_owned();
    cut.push_str(MARK);
    cut
}

/// The whole text in pieces of at most `TEXT_BYTES_MAX`, cut at characters' edges.
pub fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (piece, after) = rest.split_at(rest.floor_char_boundary(TEXT_BYTES_MAX));
        rest = after;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bounded_text_is_cut_between_characters() {
        assert_eq!(bounded("äöü", 6), "äöü");
        assert_eq!(bounded("äöüß", 6), "ä…");
        assert_eq!(bounded("abc", 0), "…");
    }

    #[test]
    fn pieces_lose_nothing() {
        let text = "aé".repeat(TEXT_BYTES_MAX);
        assert!(pieces(&text).all(|piece| piece.len() <= TEXT_BYTES_MAX));
        assert_eq!(pieces(&text).collect::<String>(), text);
    }
}
