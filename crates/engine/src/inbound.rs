//! Forms that doors bring in and take back: `Inbound` on the way in (and the kernel's `Request`), `Receipt` on the way
//! out (and the errors of `errors`).
//!
//! A door makes a `Principal` from a credential, never from a body, and everything else from what it heard. It learns
//! nothing here about stores, agents or other doors.

use crate::AttachedFile;
use bytes::Bytes;
use kernel::{Address, Delivery, DoorAddress, Epoch, NewWorktree, Principal, Scheme, To};
use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};
use std::net::IpAddr;
use store::{Accepted, Expected, Predecessor};

/// The text of all parts of a message together may be this long; longer words belong into a file.
pub const MESSAGE_TEXT_BYTES_MAX: usize = 1024 * 1024;
/// Parts in one message, with the images and files that go along.
pub const PARTS_MAX: usize = 32;
/// A caller's key may be this long.
pub const KEY_BYTES_MAX: usize = 255;
/// A title may be this long: 200 characters, whatever they are.
pub const TITLE_BYTES_MAX: usize = 800;

/// Characters of a title that is made of the first words of a session, or given by its agent.
const OPENING_LENGTH_MAX: usize = 60;

/// The name of a model or a mode may be this long.
pub const MODEL_BYTES_MAX: usize = 256;

/// A message on its way in.
#[derive(Debug, Clone)]
pub struct Inbound {
    /// The person who says it.
    pub by: Principal,
    /// To which session. There is no default.
    pub to: To,
    /// The options of the session if one is made; ignored for an existing one, and the receipt says so.
    pub if_new: IfNew,
    /// The agent and model that a session that is there has to have, if the sender says so; another one is refused.
    pub expected: Option<Expected>,
    /// The parts of what is said.
    pub parts: Vec<MessagePart>,
    /// The images and files that go along, in their order. Agents get them after the words.
    pub attachments: Vec<AttachedFile>,
    /// The way it is to reach a session whose turn is under way.
    pub delivery: Delivery,
    /// The epoch of the scope that the sender saw, if they said so.
    pub under: Option<Epoch>,
    /// Nobody sits in front of it: what the agent asks is answered as the policy for that says.
    pub unattended: bool,
    /// Where replies go, if not by reading the log.
    pub reply: Option<Address>,
    /// The trace of its way in.
    pub trace: Trace,
}

/// The trace of a wish's way in.
#[derive(Debug, Clone)]
pub struct Trace {
    /// The way in: `http`, `cli`, `slack` …
    pub door: &'static str,
    /// One id from request to fact to log line.
    pub correlation: String,
    /// Where the caller is, as far as the door knows.
    pub address: Option<IpAddr>,
    /// The key that makes a repeated wish the same wish.
    pub key: Option<CallerKey>,
    /// The address schemes of the door: no other address can be used or bound through it.
    pub schemes: &'static [Scheme],
}

impl Trace {
    /// An address that came in with this.
    pub(crate) fn address<'a>(&self, address: &'a Address) -> DoorAddress<'a> {
        DoorAddress { address, schemes: self.schemes }
    }
}

/// The key that makes a repeated wish the same wish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallerKey {
    /// An `Idempotency-Key`; remembered for 30 days.
    Idempotency(String),
    /// A door's delivery id; remembered as long as the message.
    Delivery(String),
}

/// The options of a new session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct IfNew {
    /// The agent's name; the default agent if none is named.
    pub agent: Option<String>,
    /// The directory it works in; one of its own if none is named.
    pub directory: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The agent's mode.
    pub mode: Option<String>,
    /// Its title, for people.
    pub title: Option<String>,
    /// The worktree that it goes into before anything else.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "worktree_fields")]
    pub worktree: Option<NewWorktree>,
}

impl IfNew {
    /// True if anything was asked for.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The same after a session that has ended: unless another agent is named, it has that one's agent, model and mode.
    pub(crate) fn after(&self, before: &Predecessor) -> Self {
        let Self { agent, model, mode, .. } = self.clone();
        let scope = &before.scope;
        match agent {
            Some(agent) if agent != scope.agent => self.clone(),
            Some(_) | None => Self {
                agent: Some(scope.agent.clone()),
                model: model.or_else(|| scope.model.clone()),
                mode: mode.or_else(|| scope.mode.clone()),
                ..self.clone()
            },
        }
    }
}

/// A worktree as idempotency keys know it: with no name if it was given none.
fn worktree_fields<S: Serializer>(worktree: &Option<NewWorktree>, to: S) -> Result<S::Ok, S::Error> {
    let Some(worktree) = worktree else { return to.serialize_none() };
    let mut fields = to.serialize_struct("worktree", 3)?;
    fields.serialize_field("name", &(!worktree.has_own_name()).then_some(&worktree.name))?;
    fields.serialize_field("base", &worktree.base)?;
    fields.serialize_field("branch", &worktree.branch)?;
    fields.end()
}

/// One part of a message. Stored as this JSON, so variants are only ever added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum MessagePart {
    /// Words.
    Text { text: String },
}

/// The words of a message in their stored form.
pub(crate) fn encode_parts(parts: &[MessagePart]) -> Bytes {
    Bytes::from(serde_json::to_vec(parts).expect("parts are plain data"))
}

/// The words of a message as the agent and people read them.
pub(crate) fn plain_text(stored: &[u8]) -> Option<String> {
    let parts: Vec<MessagePart> = serde_json::from_slice(stored).ok()?;
    let texts: Vec<String> = parts.into_iter().map(|MessagePart::Text { text }| text).collect();
    Some(texts.join("\n"))
}

/// The title that these words are for a session that has none.
pub(crate) fn opening_of(parts: &[MessagePart]) -> Option<String> {
    parts.iter().find_map(|MessagePart::Text { text }| title_of(text))
}

/// Words as a title: on one line, without anything that commands a terminal, and cut where a word ends.
pub(crate) fn title_of(text: &str) -> Option<String> {
    let is_gap = |c: char| c.is_whitespace() || c.is_control() || is_invisible(c);
    let mut words = text.split(is_gap).filter(|word| !word.is_empty());
    let mut title: String = words.next()?.chars().take(OPENING_LENGTH_MAX + 1).collect();
    for word in words {
        if title.chars().count() + 1 + word.chars().count() > OPENING_LENGTH_MAX {
            title.push('…');
            break;
        }
        title.push(' ');
        title.push_str(word);
    }
    if title.chars().count() > OPENING_LENGTH_MAX {
        title = title.chars().take(OPENING_LENGTH_MAX - 1).chain(['…']).collect();
    }
    Some(title)
}

/// Marks that turn the direction of a line or have no width: in a list they would show something else than what is there.
pub(crate) fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// The receipt that a sender gets back at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// As it was accepted, the first time.
    pub accepted: Accepted,
    /// True if this is the answer to a repetition.
    pub repeated: bool,
    /// The session's agent, if the message was to be said into a turn and that agent takes no words while it works.
    pub deaf: Option<String>,
}

/// The outcome of a wish within the time that a caller waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Granted {
    /// The keeper said yes.
    Done,
    /// The keeper has not said anything yet; it will.
    Pending,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_the_first_words_on_one_line() {
        assert_eq!(title_of("fix the  login\n\tpage").as_deref(), Some("fix the login page"));
        assert_eq!(title_of(" \n\u{200b}\x1b").as_deref(), None);
        assert_eq!(title_of("a\x1b]0;pwn\x07b\u{202e}c").as_deref(), Some("a ]0;pwn b c"));
    }

    #[test]
    fn a_long_title_is_cut_where_a_word_ends() {
        let long = title_of(&"word ".repeat(40)).unwrap();
        assert!(long.ends_with("word…") && long.chars().count() <= OPENING_LENGTH_MAX, "{long}");
        let one = title_of(&"ä".repeat(500)).unwrap();
        assert!(one.ends_with("ä…") && one.chars().count() == OPENING_LENGTH_MAX, "{one}");
    }
}
