//! Story facts: what people are shown of a turn. Encoded once, as the JSON that is stored and sent.
//!
//! The form is a promise to every reader, so it is versioned (`v`) and only ever added to. Kinds: `text` and
//! `reasoning` (words with their part and offset), `said` (a part is complete: length and hash), `tool_call`,
//! `tool_result`, `question`, `usage`, `notice`, `stopped`, `other`.

use bytes::Bytes;
use kernel::{ApprovalId, Turn};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use store::Entry;

/// The version of the form.
const V: u32 = 1;

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Story<'a> {
    Text { part: u32, offset: u64, text: &'a str },
    Reasoning { part: u32, offset: u64, text: &'a str },
    Said { part: u32, length: u64, sha256: String },
    ToolCall { call: &'a str, tool: &'a str, input: &'a str },
    ToolResult { call: &'a str, output: &'a str, failed: bool },
    Question { approval: String, tool: &'a str, detail: &'a str },
    Usage { input_tokens: u64, output_tokens: u64 },
    Notice { text: &'a str },
    Stopped { killed: u32, gone: bool },
    Other { raw: &'a str },
}

#[derive(Serialize)]
struct Body<'a> {
    v: u32,
    turn: u32,
    #[serde(flatten)]
    story: &'a Story<'a>,
}

impl Story<'_> {
    pub(crate) fn question<'a>(approval: ApprovalId, tool: &'a str, detail: &'a str) -> Story<'a> {
        Story::Question { approval: approval.to_string(), tool, detail }
    }

    /// The fact's entry, encoded.
    pub(crate) fn entry(&self, turn: Turn) -> Entry {
        let body = Body { v: V, turn: turn.0, story: self };
        let body = Bytes::from(serde_json::to_vec(&body).expect("stories are plain data"));
        Entry::Story { turn, kind: self.kind().to_owned(), body }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Text { .. } => "text",
            Self::Reasoning { .. } => "reasoning",
            Self::Said { .. } => "said",
            Self::ToolCall { .. } => "tool_call",
            Self::ToolResult { .. } => "tool_result",
            Self::Question { .. } => "question",
            Self::Usage { .. } => "usage",
            Self::Notice { .. } => "notice",
            Self::Stopped { .. } => "stopped",
            Self::Other { .. } => "other",
        }
    }
}

/// The words in a stored `text`, `reasoning` or `notice`.
pub(crate) fn words_of(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Words {
        text: String,
    }
    serde_json::from_slice(body).ok().map(|Words { text }| text)
}

/// Which run of words is growing. A tool call, a question or the other kind of words ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WordKind {
    Text,
    Reasoning,
}

impl WordKind {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Reasoning => "reasoning",
        }
    }
}

/// One run of words of a turn, written down piece by piece.
#[derive(Debug)]
pub(crate) struct Words {
    pub(crate) kind: WordKind,
    pub(crate) part: u32,
    /// Bytes of this part that are written down.
    written: u64,
    hash: Sha256,
    /// Heard, and not yet written down.
    pending: String,
}

impl Words {
    pub(crate) fn new(kind: WordKind, part: u32) -> Self {
        Self { kind, part, written: 0, hash: Sha256::new(), pending: String::new() }
    }

    /// Takes more words; says at which offset they stand.
    pub(crate) fn hear(&mut self, text: &str) -> u64 {
        let offset = self.written + self.pending.len() as u64;
        self.pending.push_str(text);
        offset
    }

    pub(crate) fn pending_bytes(&self) -> usize {
        self.pending.len()
    }

    /// What is to be written down now, if anything.
    pub(crate) fn cut(&mut self, turn: Turn) -> Option<Entry> {
        if self.pending.is_empty() {
            return None;
        }
        let text = std::mem::take(&mut self.pending);
        let (part, offset) = (self.part, self.written);
        self.written += text.len() as u64;
        self.hash.update(text.as_bytes());
        let story = match self.kind {
            WordKind::Text => Story::Text { part, offset, text: &text },
            WordKind::Reasoning => Story::Reasoning { part, offset, text: &text },
        };
        Some(story.entry(turn))
    }

    /// The end of the run: its length and hash, no second copy.
    pub(crate) fn close(self, turn: Turn) -> Entry {
        let sha256 = self.hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Story::Said { part: self.part, length: self.written, sha256 }.entry(turn)
    }
}
