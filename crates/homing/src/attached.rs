//! Files that go along with a message: images, text, and whatever else, told apart by their bytes.
//!
//! What a file is called says nothing. Whether the session's agent takes it the server knows, and refuses it by name before the message
//! is accepted; what could never be sent is refused here, before anything is.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::Result;
use api::{ATTACHED_BYTES_MAX, Base64, FileContent, PARTS_MAX, Part};

use crate::exit::{CliError, Exit};

/// The beginnings of files that agents can look at, and what they are.
const IMAGES: &[(&[u8], &str)] = &[
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
];

/// The parts of a message: its words, if there are any, then its files in the order in which they were named.
pub(crate) fn parts(words: String, files: &[impl AsRef<Path>]) -> Result<Vec<Part>> {
    let mut parts: Vec<Part> = files.iter().map(|file| read(file.as_ref())).collect::<Result<_>>()?;
    check(&parts)?;
    if files.is_empty() || !words.trim().is_empty() {
        parts.insert(0, Part::Text { text: words });
    }
    Ok(parts)
}

/// Refuses more files than a message can have, or more bytes of them.
pub(crate) fn check(files: &[Part]) -> Result<()> {
    if files.len() >= PARTS_MAX {
        let most = format!("a message has at most {} of them", PARTS_MAX - 1);
        return Err(refused(format!("{} files are too many; nothing was sent", files.len()))
            .hint(most)
            .into());
    }
    let bytes: usize = files.iter().map(bytes_of).sum();
    if bytes > ATTACHED_BYTES_MAX {
        return Err(too_long(format!("the files are {bytes} bytes together")).into());
    }
    Ok(())
}

fn bytes_of(part: &Part) -> usize {
    match part {
        Part::Text { text } => text.len(),
        Part::Image { data, .. } | Part::File { content: FileContent::Data(data), .. } => data.0.len(),
        Part::File { content: FileContent::Text(text), .. } => text.len(),
    }
}

/// A file as a part.
pub(crate) fn read(path: &Path) -> Result<Part> {
    let shown = path.display();
    if path == Path::new("-") {
        return Err(refused("standard input cannot be attached".to_owned())
            .hint("name a file; `./-` is the file of that name")
            .into());
    }
    let cannot = |why: io::Error| {
        let what = match why.kind() {
            io::ErrorKind::NotFound => format!("there is no file {shown}; nothing was sent"),
            _ => format!("{shown} cannot be read: {why}; nothing was sent"),
        };
        refused(what).hint("name a file that you may read, as it is seen from this directory")
    };
    let file = path.metadata().map_err(cannot)?;
    // What is no file may never end, or never begin.
    if !file.is_file() {
        return Err(refused(format!("{shown} is no file; nothing was sent"))
            .hint("name a file; of a directory, name each file that is to go along")
            .into());
    }
    if file.len() > ATTACHED_BYTES_MAX as u64 {
        return Err(too_long(format!("{shown} is {} bytes", file.len())).into());
    }
    let mut bytes = Vec::new();
    // It may grow while it is read.
    let opened = File::open(path).map_err(cannot)?;
    opened.take(ATTACHED_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(cannot)?;
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    let name: String = name.chars().filter(|letter| !letter.is_control()).collect();
    Ok(part_of(name.trim().to_owned(), bytes))
}

/// The kind of a file, by its bytes.
fn part_of(name: String, bytes: Vec<u8>) -> Part {
    let is_webp = bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP");
    let image = IMAGES.iter().find(|(beginning, _)| bytes.starts_with(beginning)).map(|(_, kind)| *kind);
    if let Some(media_type) = image.or(is_webp.then_some("image/webp")) {
        return Part::Image { name: Some(name), media_type: media_type.to_owned(), data: Base64(bytes) };
    }
    let (media_type, content) = match String::from_utf8(bytes) {
        Ok(text) if text.starts_with("%PDF-") => {
            ("application/pdf", FileContent::Data(Base64(text.into_bytes())))
        }
        Ok(text) if !text.contains('\0') => ("text/plain", FileContent::Text(text)),
        Ok(text) => ("application/octet-stream", FileContent::Data(Base64(text.into_bytes()))),
        Err(other) if other.as_bytes().starts_with(b"%PDF-") => {
            ("application/pdf", FileContent::Data(Base64(other.into_bytes())))
        }
        Err(other) => ("application/octet-stream", FileContent::Data(Base64(other.into_bytes()))),
    };
    Part::File { name, media_type: media_type.to_owned(), content }
}

/// A part as a list names it.
pub(crate) fn named(part: &Part) -> Option<String> {
    let (what, name, media_type) = match part {
        Part::Text { .. } => return None,
        Part::Image { name, media_type, .. } => ("image", name.as_deref().unwrap_or_default(), media_type),
        Part::File { name, media_type, .. } => ("file", name.as_str(), media_type),
    };
    let space = if name.is_empty() { "" } else { " " };
    Some(format!("{what}{space}{name} ({media_type}, {} bytes)", bytes_of(part)))
}

fn too_long(what: String) -> CliError {
    refused(format!("{what}; a message has at most {ATTACHED_BYTES_MAX}; nothing was sent"))
        .hint("name the file's path in your words: an agent with tools can open what lies where it works")
}

fn refused(what: String) -> CliError {
    CliError::new(Exit::Usage, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_what_its_bytes_say() {
        let said = |bytes: &[u8]| named(&part_of("a".to_owned(), bytes.to_vec())).unwrap();
        assert_eq!(said(b"\x89PNG\r\n\x1a\n"), "image a (image/png, 8 bytes)");
        assert_eq!(said(b"\xff\xd8\xff"), "image a (image/jpeg, 3 bytes)");
        assert_eq!(said(b"GIF89a"), "image a (image/gif, 6 bytes)");
        assert_eq!(said(b"RIFF1234WEBP"), "image a (image/webp, 12 bytes)");
        assert_eq!(said(b"RIFF1234WAVE"), "file a (text/plain, 12 bytes)");
        assert_eq!(said(b"%PDF-1.7"), "file a (application/pdf, 8 bytes)");
        assert_eq!(said(b"%PDF-1.7\n\xff"), "file a (application/pdf, 10 bytes)");
        assert_eq!(said("grüße".as_bytes()), "file a (text/plain, 7 bytes)");
        assert_eq!(said(b"a\0b"), "file a (application/octet-stream, 3 bytes)");
        assert_eq!(said(b"\xfe\xff"), "file a (application/octet-stream, 2 bytes)");
        assert_eq!(said(b""), "file a (text/plain, 0 bytes)");
    }
}
