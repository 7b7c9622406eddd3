//! The messages that somebody has typed before, newest last: `$XDG_STATE_HOME/homing/history`, for its owner alone, one line each.
//!
//! Line ends within a message are written `\n`, a backslash twice. Several chats may run: each adds its lines at the end,
//! and whoever begins cuts the file to its bound. It is a comfort: whatever is wrong with the file, the chat goes on
//! without it.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The messages that are kept.
const HISTORY_MAX: usize = 1_000;
/// The longest message that is kept. A longer one was pasted, and nobody looks for it with an arrow.
const ENTRY_BYTES_MAX: usize = 16 << 10;
/// The most that is read of a file that somebody else may have made long.
const FILE_BYTES_MAX: u64 = 32 << 20;

/// The messages of this person's chats.
#[derive(Debug, Default)]
pub(super) struct History {
    pub(super) entries: Vec<String>,
    path: Option<PathBuf>,
}

impl History {
    /// The history of whoever runs us.
    pub(super) fn load() -> Self {
        path().map(|path| Self::read(path).unwrap_or_default()).unwrap_or_default()
    }

    fn read(path: PathBuf) -> io::Result<Self> {
        if let Some(directory) = path.parent() {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        }
        let text = match fs::metadata(&path) {
            Ok(found) if found.len() > FILE_BYTES_MAX => String::new(),
            Ok(_) => String::from_utf8_lossy(&fs::read(&path)?).into_owned(),
            Err(_) => String::new(),
        };
        let mut entries: Vec<String> = text.lines().map(read_entry).collect();
        if entries.len() > HISTORY_MAX {
            entries.drain(..entries.len() - HISTORY_MAX);
            let lines: Vec<String> = entries.iter().map(|entry| write_entry(entry)).collect();
            crate::data_dir::write_whole(&path, &lines.join("\n")).map_err(io::Error::other)?;
        }
        Ok(Self { entries, path: Some(path) })
    }

    /// Keeps what was just said, unless it is what was said before. A leading space keeps it out of the file, as in a shell.
    pub(super) fn add(&mut self, text: &str) {
        if text.len() > ENTRY_BYTES_MAX || self.entries.last().is_some_and(|last| last == text) {
            return;
        }
        self.entries.push(text.to_owned());
        if let Some(path) = self.path.as_deref().filter(|_| !text.starts_with(' ')) {
            // A full disk is no reason not to talk.
            let _ = append(path, text);
        }
    }
}

fn append(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    // One write, so that two chats do not mix their lines.
    file.write_all(format!("{}\n", write_entry(text)).as_bytes())
}

fn path() -> Option<PathBuf> {
    let named = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = named("XDG_STATE_HOME").or_else(|| Some(named("HOME")?.join(".local/state")))?;
    Some(base.join("homing/history"))
}

fn write_entry(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n")
}

fn read_entry(line: &str) -> String {
    let (mut text, mut is_escaped) = (String::with_capacity(line.len()), false);
    for c in line.chars() {
        match (is_escaped, c) {
            (false, '\\') => is_escaped = true,
            (false, c) => text.push(c),
            (true, c) => {
                text.push(if c == 'n' { '\n' } else { c });
                is_escaped = false;
            }
        }
    }
    crate::screen::tame(&text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn it_is_kept_for_its_owner_alone_and_comes_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state/homing/history");
        let mut history = History::read(path.clone()).unwrap();
        for text in ["one", "one", "two\nlines \\n", " not kept", "three"] {
            history.add(text);
        }
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(History::read(path).unwrap().entries, ["one", "two\nlines \\n", "three"]);
    }

    #[test]
    fn it_has_a_bound() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("history");
        let lines: Vec<String> = (0..HISTORY_MAX + 5).map(|n| format!("m{n}")).collect();
        fs::write(&path, lines.join("\n")).unwrap();
        assert_eq!(History::read(path.clone()).unwrap().entries.first().unwrap(), "m5");
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), HISTORY_MAX);
    }
}
