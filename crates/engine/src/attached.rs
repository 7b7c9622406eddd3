//! Images and files that go along with a message: what they may be, how they are stored, and how an agent gets them.
//!
//! What a sender says of a file is compared with its bytes as it comes in. A name is nothing but a name: nothing is ever opened by it.
//! Of each, a few words are stored beside the message (`AttachmentView`) and its bytes apart, so that whoever lists messages reads none of
//! them. A file that is text becomes part of the words when the message is handed over, so every agent reads it; everything else is
//! handed over as it is, to agents that take it.

use crate::InvalidError;
use agent::{Abilities, Attachment, AttachmentKind};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;
use store::NewAttachment;

pub use agent::ATTACHED_BYTES_MAX;

/// The name of a file may be this long: as long as file systems take it.
pub const ATTACHMENT_NAME_BYTES_MAX: usize = 255;
/// A media type may be this long: both of its halves as long as may be registered.
pub const MEDIA_TYPE_BYTES_MAX: usize = 127;

/// True of bytes that begin like those of a media type.
type BeginsLike = fn(&[u8]) -> bool;

/// The images that agents look at, and how their files begin.
const IMAGES: [(&str, BeginsLike); 4] = [
    ("image/png", |bytes| bytes.starts_with(b"\x89PNG\r\n\x1a\n")),
    ("image/jpeg", |bytes| bytes.starts_with(b"\xff\xd8\xff")),
    ("image/gif", |bytes| bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a")),
    ("image/webp", |bytes| bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP")),
];
/// The one kind of document that some agents read.
const PDF: (&str, &[u8]) = ("application/pdf", b"%PDF-");

/// An image or a file on its way in, or out in an export.
#[derive(Clone, PartialEq, Eq)]
pub struct AttachedFile {
    /// The kind that its sender says it is of.
    pub kind: AttachedKind,
    /// Its name; empty if it has none, as an image may.
    pub name: String,
    /// Its media type, in lower case and without parameters.
    pub media_type: String,
    /// Its bytes.
    pub content: Bytes,
}

impl fmt::Debug for AttachedFile {
    /// Never the bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, name, media_type, content } = self;
        write!(f, "AttachedFile({kind:?} {name:?} {media_type} {} bytes)", content.len())
    }
}

/// The two kinds that a sender can say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttachedKind {
    /// Something to look at.
    Image,
    /// A file.
    File,
}

/// An attachment without its bytes. Stored as this JSON, so fields are only ever added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachmentView {
    /// An image or a file.
    pub kind: AttachedKind,
    /// Its name; empty if it has none.
    pub name: String,
    /// Its media type.
    pub media_type: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// The SHA-256 of its bytes, in hexadecimal digits.
    pub sha256: String,
    /// True if it is a file that is text, which agents read as words.
    pub is_text: bool,
}

impl fmt::Display for AttachmentView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.kind == AttachedKind::Image { "image" } else { "file" };
        let space = if self.name.is_empty() { "" } else { " " };
        write!(f, "{what}{space}{} ({}, {} bytes)", self.name, self.media_type, self.bytes)
    }
}

impl AttachmentView {
    /// The same as it was stored; none of what cannot be read.
    pub(crate) fn read_all(stored: &[Bytes]) -> Vec<Self> {
        stored.iter().filter_map(|about| serde_json::from_slice(about).ok()).collect()
    }

    fn agents_kind(&self) -> AttachmentKind {
        match self.kind {
            AttachedKind::Image => AttachmentKind::Image,
            AttachedKind::File if self.media_type == PDF.0 => AttachmentKind::Pdf,
            AttachedKind::File => AttachmentKind::Other,
        }
    }

    /// True if an agent of these abilities gets it as it is, or as words.
    pub(crate) fn is_taken(&self, can: &Abilities) -> bool {
        self.is_text || can.takes(self.agents_kind())
    }

    /// As an agent gets it.
    pub(crate) fn with(self, content: Bytes) -> Attachment {
        let kind = self.agents_kind();
        Attachment { kind, name: self.name, media_type: self.media_type, content }
    }
}

impl AttachedFile {
    /// Looks whether it is what its sender says.
    pub(crate) fn check(&self) -> Result<(), String> {
        let Self { kind, name, media_type, content } = self;
        check_name(name)?;
        let shown = if name.is_empty() { "an image" } else { name };
        match kind {
            AttachedKind::Image => {
                let known = IMAGES.iter().find(|(known, _)| known == media_type);
                let all = IMAGES.map(|(known, _)| known).join(", ");
                let (_, begins) = known.ok_or_else(|| format!("an image is one of {all}"))?;
                if !begins(content) {
                    return Err(format!("{shown} is said to be {media_type}, and its bytes are not"));
                }
            }
            AttachedKind::File if name.is_empty() => return Err("a file has a name".to_owned()),
            AttachedKind::File if media_type == PDF.0 && !content.starts_with(PDF.1) => {
                return Err(format!("{shown} is said to be {media_type}, and its bytes are not"));
            }
            AttachedKind::File if media_type.starts_with("image/") && media_type != "image/svg+xml" => {
                return Err(format!("{shown} is {media_type}: say it as an image"));
            }
            AttachedKind::File => check_media_type(media_type)?,
        }
        Ok(())
    }

    /// The words about it where messages are listed.
    pub fn view(&self) -> AttachmentView {
        AttachmentView {
            kind: self.kind,
            name: self.name.clone(),
            media_type: self.media_type.clone(),
            bytes: self.content.len() as u64,
            sha256: Sha256::digest(&self.content).iter().map(|byte| format!("{byte:02x}")).collect(),
            is_text: self.text().is_some(),
        }
    }

    /// Its text, if it is a file that has nothing else in it.
    fn text(&self) -> Option<&str> {
        let may_be = self.kind == AttachedKind::File && self.media_type != PDF.0;
        std::str::from_utf8(&self.content).ok().filter(|text| may_be && !text.contains('\0'))
    }

    /// The bytes that it adds to the words of the message.
    pub(crate) fn words_len(&self) -> usize {
        self.text().map_or(0, |text| as_words(&self.name, text).len() + 1)
    }
}

/// Attachments in their stored form.
pub(crate) fn encode(attachments: &[AttachedFile]) -> Vec<NewAttachment> {
    let stored = attachments.iter().map(|attached| {
        let about = serde_json::to_vec(&attached.view()).expect("what is said about a file is plain data");
        NewAttachment { about: about.into(), content: attached.content.clone() }
    });
    stored.collect()
}

/// A file that is text as words of a message: an agent sees where it begins and ends.
pub(crate) fn as_words(name: &str, text: &str) -> String {
    let end = if text.ends_with('\n') || text.is_empty() { "" } else { "\n" };
    format!("--- file {name}\n{text}{end}--- end of {name}")
}

/// A name is shown to people and told to agents, in lines of their own.
fn check_name(name: &str) -> Result<(), String> {
    if name.len() > ATTACHMENT_NAME_BYTES_MAX {
        return Err(format!("the name of a file has at most {ATTACHMENT_NAME_BYTES_MAX} bytes"));
    }
    let is_odd = |c: char| c.is_control() || c == '/' || c == '\\' || crate::inbound::is_invisible(c);
    if name.chars().any(is_odd) || name == "." || name == ".." || name.trim() != name {
        return Err(
            "the name of a file has no slashes, no control characters, no spaces at its ends, and is not `.` or `..`"
                .to_owned(),
        );
    }
    Ok(())
}

fn check_media_type(media_type: &str) -> Result<(), String> {
    let is_token = |half: &str| {
        let plain =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"!#$&-^_.+".contains(&byte);
        !half.is_empty() && half.bytes().all(plain)
    };
    let is_type = media_type.split_once('/').is_some_and(|(kind, sub)| is_token(kind) && is_token(sub));
    if !is_type || media_type.len() > MEDIA_TYPE_BYTES_MAX {
        return Err(format!(
            "a media type is `TYPE/SUBTYPE` in lower case, without parameters, and has at most {MEDIA_TYPE_BYTES_MAX} bytes"
        ));
    }
    Ok(())
}

/// Checks what goes along with a message.
pub(crate) fn check_all(attachments: &[AttachedFile]) -> Result<(), InvalidError> {
    let invalid = |reason: String| InvalidError { field: "parts", reason };
    if attachments.iter().map(|attached| attached.content.len()).sum::<usize>() > ATTACHED_BYTES_MAX {
        return Err(invalid(format!("more than {ATTACHED_BYTES_MAX} bytes of images and files")));
    }
    attachments.iter().try_for_each(|attached| attached.check().map_err(invalid))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, media_type: &str, content: &'static [u8]) -> AttachedFile {
        let (name, media_type) = (name.to_owned(), media_type.to_owned());
        AttachedFile { kind: AttachedKind::File, name, media_type, content: Bytes::from_static(content) }
    }

    fn image(media_type: &str, content: &'static [u8]) -> AttachedFile {
        AttachedFile { kind: AttachedKind::Image, ..file("", media_type, content) }
    }

    #[test]
    fn an_image_is_what_its_bytes_say() {
        let fine: [(&str, &[u8]); 5] = [
            ("image/png", b"\x89PNG\r\n\x1a\n..."),
            ("image/jpeg", b"\xff\xd8\xff\xe0"),
            ("image/gif", b"GIF89a"),
            ("image/gif", b"GIF87a"),
            ("image/webp", b"RIFF\0\0\0\0WEBPVP8 "),
        ];
        for (media_type, content) in fine {
            assert_eq!(image(media_type, content).check(), Ok(()));
            for (other, _) in IMAGES.iter().filter(|(other, _)| *other != media_type) {
                assert!(image(other, content).check().unwrap_err().contains("its bytes are not"));
            }
        }
        assert!(image("image/png", b"").check().is_err());
        assert!(image("image/webp", b"RIFF\0\0\0\0WAVE").check().is_err());
        for no_image in ["image/svg+xml", "image/tiff", "text/html", "IMAGE/PNG", ""] {
            assert!(image(no_image, b"\x89PNG\r\n\x1a\n").check().unwrap_err().contains("image/png"));
        }
    }

    #[test]
    fn a_name_is_a_name_and_no_path() {
        let long = "x".repeat(ATTACHMENT_NAME_BYTES_MAX + 1);
        for odd in
            ["", ".", "..", "a/b", "../a", "a\\b", "a\nb", "a\x1b[2J", "\u{202e}gpj.exe", " a", "a ", &long]
        {
            assert!(file(odd, "text/plain", b"x").check().is_err(), "{odd:?}");
        }
        for fine in ["a.txt", ".env", "...", "Bericht (1) – Köln.pdf", &long[1..]] {
            assert_eq!(file(fine, "text/plain", b"x").check(), Ok(()), "{fine:?}");
        }
    }

    #[test]
    fn a_media_type_is_plain() {
        for odd in [
            "",
            "text",
            "/",
            "text/",
            "/plain",
            "text/plain; charset=utf-8",
            "Text/Plain",
            "a/b/c",
            "a/b\r\nc: d",
        ] {
            assert!(file("a", odd, b"x").check().is_err(), "{odd:?}");
        }
        assert!(file("a", &format!("a/{}", "b".repeat(MEDIA_TYPE_BYTES_MAX)), b"x").check().is_err());
        assert!(file("a", "image/png", b"\x89PNG\r\n\x1a\n").check().unwrap_err().contains("as an image"));
        assert!(file("a", "application/pdf", b"hello").check().is_err());
        assert_eq!(file("a", "application/pdf", b"%PDF-1.7").check(), Ok(()));
        assert_eq!(file("a", "image/svg+xml", b"<svg/>").check(), Ok(()));
    }

    #[test]
    fn a_file_that_is_text_is_told_as_words() {
        assert!(file("a", "text/x-rust", b"fn main() {}").view().is_text);
        assert!(file("a", "application/octet-stream", b"hello").view().is_text);
        for (media_type, content) in
            [("application/pdf", &b"%PDF-1.7"[..]), ("text/plain", b"a\0b"), ("text/plain", b"\xff\xfe")]
        {
            assert!(!file("a", media_type, content).view().is_text);
        }
        assert_eq!(as_words("a", "x"), "--- file a\nx\n--- end of a");
        assert_eq!(as_words("a", "x\n"), "--- file a\nx\n--- end of a");
        assert_eq!(as_words("a", ""), "--- file a\n--- end of a");
    }

    #[test]
    fn what_is_stored_reads_back() {
        let sent = file("a.bin", "application/x-thing", b"a\0b");
        let stored = encode(std::slice::from_ref(&sent));
        assert_eq!(
            AttachmentView::read_all(&[stored[0].about.clone(), Bytes::from_static(b"?")]),
            [sent.view()]
        );
        let text = String::from_utf8(stored[0].about.to_vec()).unwrap();
        let hash = "59b271ae1bbcb1d31d41929817f4b16fb439eb4f31520b5ad1d5ce98920a7138";
        assert_eq!(
            text,
            format!(
                r#"{{"kind":"file","name":"a.bin","media_type":"application/x-thing","bytes":3,"sha256":"{hash}","is_text":false}}"#
            )
        );
    }
}
