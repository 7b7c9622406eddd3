//! Files that go along with a message: text, each as a part of its own that begins with the file's name.
//!
//! Agents read the parts of a message as one text, so this is what every one of them takes. Whatever is no text is refused here, by
//! name and before anything is sent: bytes that an agent cannot read would only look as if they had been handed over.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::Result;
use api::{PARTS_MAX, Part, TEXT_LENGTH_MAX};

use crate::exit::{CliError, Exit};

/// The beginnings of files that people take for something an agent could look at.
const IMAGES: &[(&[u8], &str)] = &[
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"RIFF", "a RIFF file, perhaps a WebP image"),
];

/// The parts of a message: its words, then its files in the order in which they were named.
pub(super) fn parts(words: String, files: &[impl AsRef<Path>]) -> Result<Vec<Part>> {
    if files.len() >= PARTS_MAX {
        return Err(refused(format!("{} files are too many", files.len()))
            .hint(format!("a message has at most {} of them", PARTS_MAX - 1))
            .into());
    }
    let mut parts = vec![Part::Text { text: words }];
    for file in files {
        parts.push(Part::Text { text: read(file.as_ref())? });
    }
    // The agent reads them as one text, with a line's end between two. Words alone are for the server to judge.
    let bytes = parts.iter().map(|Part::Text { text }| text.len()).sum::<usize>() + files.len();
    if !files.is_empty() && bytes > TEXT_LENGTH_MAX {
        return Err(too_long(format!("words and files are {bytes} bytes together")).into());
    }
    Ok(parts)
}

/// A file as a part: its name, its text, and where it ends.
fn read(path: &Path) -> Result<String> {
    let shown = path.display();
    let cannot = |why: std::io::Error| refused(format!("{shown} cannot be read: {why}"));
    let file = path.metadata().map_err(cannot)?;
    // What is no file may never end, or never begin.
    if !file.is_file() {
        return Err(refused(format!("{shown} is no file")).into());
    }
    if file.len() > TEXT_LENGTH_MAX as u64 {
        return Err(too_long(format!("{shown} is {} bytes", file.len())).into());
    }
    let mut bytes = Vec::new();
    // It may grow while it is read.
    let opened = File::open(path).map_err(cannot)?;
    opened.take(TEXT_LENGTH_MAX as u64 + 1).read_to_end(&mut bytes).map_err(cannot)?;
    let text = match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => text,
        Ok(_) => return Err(no_text(path, &[]).into()),
        Err(other) => return Err(no_text(path, other.as_bytes()).into()),
    };
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    let name: String = name.chars().filter(|letter| !letter.is_control()).collect();
    let end = if text.ends_with('\n') || text.is_empty() { "" } else { "\n" };
    Ok(format!("--- file {name}\n{text}{end}--- end of {name}"))
}

fn no_text(path: &Path, bytes: &[u8]) -> CliError {
    let kind = IMAGES.iter().find(|(beginning, _)| bytes.starts_with(beginning));
    let kind = kind.map_or("no text", |(_, kind)| *kind);
    refused(format!("{} is {kind}, and only text can be attached; nothing was sent", path.display()))
        .hint("name its path in your words: an agent with tools can open what lies where it works")
}

fn too_long(what: String) -> CliError {
    refused(format!("{what}; a message has at most {TEXT_LENGTH_MAX}; nothing was sent"))
        .hint("name the file's path in your words: an agent with tools can open what lies where it works")
}

fn refused(what: String) -> CliError {
    CliError::new(Exit::Usage, what)
}
