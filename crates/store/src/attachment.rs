//! Attachments of a message: images and files that are kept beside its words.
//!
//! A store knows of each what it is in a few words (`about`, opaque here) and its bytes. The words of many messages are read
//! together; the bytes of an attachment are read alone, by whoever asks for that one.

use crate::disk::words_bytes;
use bytes::Bytes;

/// An attachment to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAttachment {
    /// Its kind, name and size, encoded once; opaque here. Forgotten with the words that it belongs to.
    pub about: Bytes,
    /// Its bytes, as they came.
    pub content: Bytes,
}

/// An agent that does not take what goes along with a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnfitAgent {
    /// The agent's name.
    pub agent: String,
    /// The first attachment that it does not take, in words for people.
    pub attachment: String,
}

/// The room that attachments take.
pub fn attached_bytes(attachments: &[NewAttachment]) -> u64 {
    attachments.iter().map(|attached| words_bytes(&attached.content)).sum()
}
