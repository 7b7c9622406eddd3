//! The note that a snapshot of a turn has beside its tree: what a tree of git's cannot hold.
//!
//! It is one line in the message of the snapshot's commit, so that it costs no run of git, and is there as long as the snapshot.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Git;
use super::error::GitError;
use super::file_modes::FileModes;
use super::names::SnapshotName;
use super::repo_moves::StashNote;
use super::shadow::ShadowRepository;
use super::snapshot::{LastSnapshot, Snapshot, SnapshotExtras};
use super::snapshot_header::SnapshotHeader;

/// The facts of a working tree at the moment of a snapshot that its tree does not have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SnapshotNote {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) modes: Option<FileModes>,
    /// The files of which the agent has said that it changed them; none if nobody has listened to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) edits: Option<Vec<NotedPath>>,
    /// The stash; none in older snapshots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) stash: Option<StashNote>,
}

/// A path from the root of a working tree, in letters that fit anywhere: what is no plain letter is `%` and two digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NotedPath(pub(super) Vec<u8>);

impl Serialize for NotedPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = String::with_capacity(self.0.len());
        for byte in &self.0 {
            match byte {
                b' '..=b'~' if *byte != b'%' => text.push(char::from(*byte)),
                byte => text.push_str(&format!("%{byte:02x}")),
            }
        }
        serializer.serialize_str(&text)
    }
}

impl<'de> Deserialize<'de> for NotedPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let mut bytes = Vec::with_capacity(text.len());
        let mut letters = text.bytes();
        while let Some(letter) = letters.next() {
            if letter != b'%' {
                bytes.push(letter);
                continue;
            }
            let digits: Vec<u8> = letters.by_ref().take(2).collect();
            let byte =
                std::str::from_utf8(&digits).ok().and_then(|digits| u8::from_str_radix(digits, 16).ok());
            bytes.push(byte.ok_or_else(|| D::Error::custom("no two digits"))?);
        }
        Ok(Self(bytes))
    }
}

impl SnapshotNote {
    /// Its line; none if there is nothing to note.
    pub(super) fn line(&self) -> Option<String> {
        serde_json::to_string(self).ok().filter(|_| *self != Self::default())
    }

    /// A note that cannot be read says nothing.
    pub(super) fn read(line: Option<&str>) -> Self {
        line.and_then(|line| serde_json::from_str(line).ok()).unwrap_or_default()
    }
}

impl Git {
    /// Takes a snapshot before or after a turn, with a note. `None`: there is no repository. `edits` are the files that the
    /// agent says it has changed, as it names them: from the directory, or from the root of everything.
    ///
    /// Index, HEAD, branches and files stay as they are, byte for byte. Ignored files and what is inside of nested
    /// repositories are not in it. Files that cannot be read are left out.
    pub async fn snapshot_of_turn(
        &self,
        directory: &Path,
        name: &SnapshotName,
        edits: Option<&[String]>,
    ) -> Result<Option<Snapshot>, GitError> {
        let Some(repository) = self.around(directory)? else { return Ok(None) };
        let _held = self.hold(&repository.top, &repository.common).await?;
        let shadow = self.shadow_held(&repository)?;
        let trees = self.trees(&repository, &shadow, false).await?;
        let modes = self.modes_now(&repository, &shadow, &trees).await?;
        let edits =
            edits.map(|edits| edits.iter().filter_map(|path| below(&repository.top, directory, path)));
        let note = SnapshotNote {
            modes: Some(modes),
            edits: edits.map(Iterator::collect),
            stash: Some(StashNote::of(&repository)),
        };
        let beside = SnapshotExtras { note: note.line(), ..SnapshotExtras::default() };
        self.seal(&repository, &shadow, name, trees, beside).await.map(Some)
    }

    /// Looks at the mode of every file, for the snapshots to come, unless the last one knows them all. Nobody has to wait for
    /// it but who works there next.
    pub async fn survey(&self, directory: &Path) -> Result<(), GitError> {
        let Some(repository) = self.around(directory)? else { return Ok(()) };
        let _held = self.hold(&repository.top, &repository.common).await?;
        let shadow = self.shadow_held(&repository)?;
        let Some(last) = LastSnapshot::read(&shadow.dir) else { return Ok(()) };
        if self.knows_all_modes(&shadow) {
            return Ok(());
        }
        self.survey_modes(&repository, &shadow, &last.tree).await.map(drop)
    }

    /// The headers and notes of two snapshots. An older one has no note.
    pub(super) async fn both_notes(
        &self,
        shadow: &ShadowRepository,
        first: &Snapshot,
        last: &Snapshot,
    ) -> Result<([SnapshotHeader; 2], [SnapshotNote; 2]), GitError> {
        let told = tokio::try_join!(self.told(shadow, &first.commit), self.told(shadow, &last.commit))?;
        let told = <[SnapshotHeader; 2]>::from(told);
        let notes = [0, 1].map(|at: usize| SnapshotNote::read(told[at].note.as_deref()));
        Ok((told, notes))
    }
}

/// A path from the root of the working tree, if it is within. An agent says what it likes: nothing is opened by it.
fn below(top: &Path, directory: &Path, path: &str) -> Option<NotedPath> {
    let mut parts: Vec<&OsStr> = Vec::new();
    let whole = directory.join(path);
    for part in whole.strip_prefix(top).ok()?.components() {
        match part {
            Component::Normal(name) => parts.push(name),
            Component::ParentDir => drop(parts.pop()?),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    let path: PathBuf = parts.into_iter().collect();
    Some(NotedPath(path.into_os_string().into_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_path_comes_back_as_it_was() {
        for path in [b"a b/c".as_slice(), b"100%", b"\xff\n\"\\", "ä/ö".as_bytes(), b""] {
            let text = serde_json::to_string(&NotedPath(path.to_vec())).unwrap();
            assert!(text.is_ascii() && !text.contains('\n'), "{text}");
            assert_eq!(serde_json::from_str::<NotedPath>(&text).unwrap().0, path);
        }
    }

    #[test]
    fn what_an_agent_names_is_found_within_the_tree_or_not_at_all() {
        let found = |path: &str| {
            let found = below(Path::new("/r"), Path::new("/r/sub"), path);
            found.map(|NotedPath(path)| String::from_utf8(path).unwrap())
        };
        for (path, expected) in [("a", "sub/a"), ("./a/../b", "sub/b"), ("../c", "c"), ("/r/x/y", "x/y")] {
            assert_eq!(found(path).as_deref(), Some(expected), "{path}");
        }
        for path in ["../../etc/passwd", "/etc/passwd", "/r/../etc"] {
            assert_eq!(found(path), None, "{path}");
        }
    }
}
