//! The common part of the answers of all protocols: something to be put into form, tokens, frames of a stream.

use serde_json::Value;

use super::brain::ReplyContent;
use super::chat_request::ChatRequest;

/// The answer that is to be put into a protocol's form. It is never a bare status: those have a form of their own.
#[derive(Debug, Clone, Copy)]
pub(super) struct Draft<'a> {
    /// Different for each answer of any stub, because agents tell messages apart by their ids.
    pub(super) id: &'a str,
    pub(super) talk: &'a ChatRequest,
    pub(super) say: &'a ReplyContent,
}

impl Draft<'_> {
    pub(super) fn text(&self) -> String {
        match self.say {
            ReplyContent::Text { pieces, .. } => pieces.concat(),
            ReplyContent::Call { .. } | ReplyContent::Status(_) => String::new(),
        }
    }

    pub(super) fn pieces(&self) -> &[String] {
        match self.say {
            ReplyContent::Text { pieces, .. } => pieces,
            ReplyContent::Call { .. } | ReplyContent::Status(_) => &[],
        }
    }

    pub(super) fn call(&self) -> Option<(&str, &Value)> {
        match self.say {
            ReplyContent::Call { tool, arguments } => Some((tool, arguments)),
            ReplyContent::Text { .. } | ReplyContent::Status(_) => None,
        }
    }

    /// Four bytes are about a token.
    pub(super) fn tokens_in(&self) -> usize {
        self.talk.bytes / 4 + 1
    }

    pub(super) fn tokens_out(&self) -> usize {
        let call = self.call().map_or(0, |(tool, arguments)| tool.len() + arguments.to_string().len());
        (self.text().len() + call) / 4 + 1
    }
}

/// One write of a streamed answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Frame {
    Plain(String),
    /// A piece of text: pauses stand between two of these.
    Piece(String),
}

impl Frame {
    pub(super) fn bytes(&self) -> &str {
        match self {
            Self::Plain(bytes) | Self::Piece(bytes) => bytes,
        }
    }
}

/// A server-sent event with the name that its JSON has as `type`.
pub(super) fn named(event: &Value) -> String {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or("message"))
}

/// A server-sent event without a name.
pub(super) fn nameless(event: &Value) -> String {
    format!("data: {event}\n\n")
}
