//! Images and files that are handed over with a message, and what an agent takes of them.
//!
//! A file that is text never gets here: it is part of the words, which every agent reads. What an agent does not take is a value
//! of its `Abilities`, so that it can be refused before anything is started; a driver that learns of it later refuses it by name,
//! before a byte of the message leaves us.

use std::fmt;

use bytes::Bytes;

use crate::{Abilities, MESSAGE_BYTES_MAX, Message, Trouble};

/// The bytes of everything that is handed over with one message. Agents take lines, and what does not fit into one line of theirs
/// would have to be a file where they work, which is nothing that we open.
pub const ATTACHED_BYTES_MAX: usize = 5 * 1024 * 1024;

/// Something that is handed over with a message.
#[derive(Clone, PartialEq, Eq)]
pub struct Attachment {
    /// Its kind, as agents tell them apart.
    pub kind: AttachmentKind,
    /// Its name, for people and for the agent; empty if it has none.
    pub name: String,
    /// Its media type, in lower case and without parameters.
    pub media_type: String,
    /// Its bytes.
    pub content: Bytes,
}

impl fmt::Debug for Attachment {
    /// Never the bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Attachment({self})")
    }
}

impl fmt::Display for Attachment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.kind == AttachmentKind::Image { "image" } else { "file" };
        let space = if self.name.is_empty() { "" } else { " " };
        write!(f, "the {what}{space}{} ({}, {} bytes)", self.name, self.media_type, self.content.len())
    }
}

/// The kinds of attachments, as agents tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttachmentKind {
    /// A PNG, JPEG, GIF or WebP image.
    Image,
    /// A PDF document.
    Pdf,
    /// Any other file that is no text.
    Other,
}

/// The files that an agent takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FilesTaken {
    /// Those that are text, which are told as words.
    #[default]
    Text,
    /// And PDF documents.
    Pdf,
    /// All.
    Any,
}

impl Abilities {
    /// True if the agent takes such a thing.
    pub fn takes(&self, kind: AttachmentKind) -> bool {
        match kind {
            AttachmentKind::Image => self.images,
            AttachmentKind::Pdf => self.files != FilesTaken::Text,
            AttachmentKind::Other => self.files == FilesTaken::Any,
        }
    }
}

impl Message {
    /// The refusal of a message that is too long, or has something with it that is not taken. Nothing of it has left us then.
    pub fn check(&self, takes: impl Fn(AttachmentKind) -> bool) -> Result<(), Trouble> {
        if self.text.len() > MESSAGE_BYTES_MAX {
            return Err(Trouble::refused(format!("a message has at most {MESSAGE_BYTES_MAX} bytes")));
        }
        if self.attachments.iter().map(|attached| attached.content.len()).sum::<usize>() > ATTACHED_BYTES_MAX
        {
            let why = format!("what goes along with a message has at most {ATTACHED_BYTES_MAX} bytes");
            return Err(Trouble::refused(why));
        }
        match self.attachments.iter().find(|attached| !takes(attached.kind)) {
            Some(unfit) => Err(Trouble::refused(format!("the agent does not take {unfit}"))),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::{Failure, MessageId};

    fn attached(kind: AttachmentKind, bytes: usize) -> Attachment {
        let (name, media_type) = ("a.bin".to_owned(), "application/octet-stream".to_owned());
        Attachment { kind, name, media_type, content: vec![0; bytes].into() }
    }

    #[test]
    fn what_is_not_taken_is_refused_by_name() {
        let mut message = Message::new(MessageId::from_bits(1), "look");
        assert_eq!(message.check(|_| false), Ok(()));
        message.attachments = vec![attached(AttachmentKind::Image, 1), attached(AttachmentKind::Pdf, 2)];
        assert_eq!(message.check(|_| true), Ok(()));
        let refused = message.check(|kind| kind == AttachmentKind::Image).unwrap_err();
        assert_eq!(refused.failure, Failure::Refused);
        assert!(refused.detail.contains("the file a.bin (application/octet-stream, 2 bytes)"), "{refused}");
        message.attachments = vec![attached(AttachmentKind::Other, ATTACHED_BYTES_MAX + 1)];
        assert_eq!(message.check(|_| true).unwrap_err().failure, Failure::Refused);
    }

    #[test]
    fn an_agent_takes_what_its_abilities_say() {
        use AttachmentKind::{Image, Other, Pdf};
        for (images, files, taken) in [
            (false, FilesTaken::Text, [false, false, false]),
            (true, FilesTaken::Text, [true, false, false]),
            (true, FilesTaken::Pdf, [true, true, false]),
            (false, FilesTaken::Any, [false, true, true]),
        ] {
            let can = Abilities { images, files, ..Abilities::default() };
            assert_eq!([Image, Pdf, Other].map(|kind| can.takes(kind)), taken);
        }
    }
}
