//! The past of a session as a timeline shows it: pages of facts backwards, the words of the messages that they name, and the turns
//! as a list. What was cut is marked as such.

use crate::attached::AttachmentView;
use crate::fanout::SharedFact;
use crate::inbound::plain_text;
use crate::{ViewError, Views};
use kernel::{Fact, MessageId, Moment, Number, PersonId, Principal, SessionId, Turn};
use std::collections::BTreeSet;
use std::sync::Arc;
use store::{QueuedRow, ReceiptRow, StoredEntry, StoredFact, TurnRow};

/// Bytes of words that go along with one page of facts, whole: as many as of the facts themselves.
const SAID_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of each message's words beyond that.
const SAID_BEGINNING_BYTES: usize = 4 * 1024;
/// Bytes of words that a list of turns shows of each: a line or two.
const TURN_WORDS_BYTES: usize = 256;
/// Words that are read together with their list. Longer ones are read one by one, so that no more than one of them is in memory.
const READ_BYTES_MAX: usize = 8 * 1024;

/// The words of a message, for whoever reads the facts that name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SaidView {
    pub message: MessageId,
    pub by: PersonId,
    /// The handle of its sender.
    pub sender: Option<String>,
    /// The door by which it came in, where that is known.
    pub door: Option<String>,
    /// When it was accepted.
    pub at: Moment,
    pub text: String,
    /// True if `text` is only how it begins.
    pub is_cut: bool,
    /// The images and files that go along.
    pub attachments: Vec<AttachmentView>,
}

/// A turn in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnView {
    /// The message that it began with.
    pub row: ReceiptRow,
    /// The handle of its sender.
    pub sender: Option<String>,
    pub began_at: Moment,
    /// The beginning of its words.
    pub words: String,
    /// True if there are more of them.
    pub is_cut: bool,
}

impl Views {
    /// The page of facts before a number, in ascending order.
    pub async fn facts_before(
        &self,
        by: &Principal,
        session: SessionId,
        before: Number,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<Arc<SharedFact>>, ViewError> {
        self.seen(by, session).await?;
        let facts = self.ports.store.facts_before(session, before, limit, bytes).await?;
        Ok(facts.into_iter().map(SharedFact::new).collect())
    }

    /// The words of the messages that these facts of a session name, each once. If they are more than go along with a page, those
    /// that are over it are cut.
    pub async fn said_in(
        &self,
        by: &Principal,
        session: SessionId,
        facts: &[Arc<SharedFact>],
    ) -> Result<Vec<SaidView>, ViewError> {
        self.seen(by, session).await?;
        let mut known = BTreeSet::new();
        let named = facts.iter().filter_map(|shared| message_of(&shared.fact));
        let named = named.filter(|message| known.insert(*message)).collect();
        let (mut said, mut room) = (Vec::new(), SAID_BYTES_MAX);
        for row in self.ports.store.messages_shown(session, named, READ_BYTES_MAX).await? {
            let text = self.text_of(&row).await?;
            let bytes_max = if text.len() <= room { text.len() } else { SAID_BEGINNING_BYTES };
            let (text, is_cut) = beginning(text, bytes_max);
            room = room.saturating_sub(text.len());
            let QueuedRow { receipt, sender, words: _, attachments } = row;
            said.push(SaidView {
                message: receipt.message,
                by: receipt.by,
                sender,
                door: receipt.door,
                at: receipt.accepted_at,
                text,
                is_cut,
                attachments: AttachmentView::read_all(&attachments),
            });
        }
        Ok(said)
    }

    /// A page of a session's turns before one, the newest first.
    pub async fn turns(
        &self,
        by: &Principal,
        session: SessionId,
        before: Option<Turn>,
        limit: usize,
    ) -> Result<Vec<TurnView>, ViewError> {
        self.seen(by, session).await?;
        let mut turns = Vec::new();
        for TurnRow { message, began_at } in
            self.ports.store.turns(session, before, limit, READ_BYTES_MAX).await?
        {
            let (words, is_cut) = beginning(self.text_of(&message).await?, TURN_WORDS_BYTES);
            turns.push(TurnView { row: message.receipt, sender: message.sender, began_at, words, is_cut });
        }
        Ok(turns)
    }

    /// All of a message's words; nothing if they were forgotten.
    async fn text_of(&self, row: &QueuedRow) -> Result<String, ViewError> {
        let words = match &row.words {
            Some(words) => Some(words.clone()),
            None => self.ports.store.words(row.receipt.message).await?,
        };
        Ok(words.and_then(|words| plain_text(&words)).unwrap_or_default())
    }
}

/// The beginning of a text, and whether there is more of it.
fn beginning(mut text: String, bytes_max: usize) -> (String, bool) {
    let is_cut = text.len() > bytes_max;
    text.truncate(text.floor_char_boundary(bytes_max));
    text.shrink_to_fit();
    (text, is_cut)
}

/// The message that a fact is about.
fn message_of(fact: &StoredFact) -> Option<MessageId> {
    let StoredEntry::Rule(fact) = &fact.entry else { return None };
    match fact {
        Fact::Queued { message, .. }
        | Fact::Edited { message, .. }
        | Fact::Withdrawn { message, .. }
        | Fact::Held { message, .. }
        | Fact::Released { message, .. }
        | Fact::Steered { message, .. }
        | Fact::Missed { message }
        | Fact::MessageRefused { message, .. }
        | Fact::TurnStarted { message, .. } => Some(*message),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::beginning;

    #[test]
    fn a_text_is_cut_between_letters_and_says_so() {
        assert_eq!(beginning("äöü".into(), 6), ("äöü".to_owned(), false));
        assert_eq!(beginning("äöü".into(), 5), ("äö".to_owned(), true));
        assert_eq!(beginning(String::new(), 0), (String::new(), false));
    }
}
