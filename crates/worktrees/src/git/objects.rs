//! Commits of ours as git keeps them, written by ourselves: a run of git less for each snapshot. And a memory of the last ones,
//! so that who has just written one does not ask git what is in it.
//!
//! Trees and files are git's work. A commit is a few lines about a tree: named by the hash of its bytes, it lies in a file of
//! its own, in zlib's format, until a copy (`copy`) puts it into a pack. There it is compressed; here it is only wrapped.

use std::collections::VecDeque;
use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use ring::digest::{Algorithm, Context, Digest, SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};

use super::error::GitError;
use super::make_private;
use super::snapshot_header::SnapshotHeader;
use super::store::sync_directory;

/// The name and the address of whoever made it, as for everything that git writes for us (`run`).
const AUTHOR: &str = "Homing <homing@localhost>";
/// The most bytes of one part of what zlib keeps as it is.
const STORED_MAX: usize = 0xffff;
/// The first two bytes in zlib's format: a window of 32 kB, no dictionary, and no effort to compress.
const ZLIB: [u8; 2] = [0x78, 0x01];
/// The largest prime below 2^16, for the checksum at the end of zlib's format.
const ADLER: u32 = 65_521;
/// The sum of so many bytes fits.
const ADLER_BYTES_MAX: usize = 5_552;
/// The bytes of a file that are hashed at once.
const READ_AT_ONCE_BYTES: usize = 64 * 1024;
/// Tries to put a file into a directory that somebody who tidies up takes away again and again, as empty ones are.
const TRIES_MAX: usize = 10;
/// Commits that are remembered: those of the turn that runs, and of the one before.
const RECENT_MAX: usize = 8;

/// The lines of a commit.
pub(super) fn commit_text(tree: &str, parents: &[String], message: &str, at_s: u64) -> String {
    let mut text = format!("tree {tree}\n");
    for (number, parent) in parents.iter().enumerate() {
        // Git names each once, too.
        if !parents[..number].contains(parent) {
            text.push_str(&format!("parent {parent}\n"));
        }
    }
    text.push_str(&format!("author {AUTHOR} {at_s} +0000\ncommitter {AUTHOR} {at_s} +0000\n\n{message}"));
    text
}

/// Writes a commit into a directory of objects, and gives its id. `like` is an id of the same repository: a longer one is of
/// the longer hash.
pub(super) fn write_commit(
    objects: &Path,
    text: &str,
    like: &str,
    is_durable: bool,
) -> Result<String, GitError> {
    let whole = [format!("commit {}\0", text.len()).as_bytes(), text.as_bytes()].concat();
    let id = id_text(&digest(hash_like(like), &whole));
    let (directory, path) = (objects.join(&id[..2]), objects.join(&id[..2]).join(&id[2..]));
    // Called like git's own, so that git takes away what a kill has left.
    let beside = objects.join(format!("tmp_obj_{}", uuid::Uuid::now_v7().simple()));
    let write = || {
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&beside)?;
        file.write_all(&zlib_stored(&whole))?;
        file.set_permissions(Permissions::from_mode(0o444))?;
        if is_durable { file.sync_all() } else { Ok(()) }
    };
    let wrote = write().map_err(GitError::disk(&beside)).and_then(|()| put(&beside, &directory, &path));
    if wrote.is_err() {
        let _ = fs::remove_file(&beside); // If it stays, git takes it away.
    }
    wrote?;
    if is_durable {
        [&directory, objects].into_iter().try_for_each(sync_directory)?;
    }
    Ok(id)
}

/// The id of a file of so many bytes; none if there are more or fewer of them. `like` is an id of the same repository.
pub(super) fn blob_id(from: &mut impl Read, bytes: u64, like: &str) -> io::Result<Option<String>> {
    let mut hash = Context::new(hash_like(like));
    hash.update(format!("blob {bytes}\0").as_bytes());
    let (mut left, mut piece) = (bytes, vec![0; READ_AT_ONCE_BYTES]);
    loop {
        let length = from.read(&mut piece)?;
        if length == 0 {
            return Ok((left == 0).then(|| id_text(&hash.finish())));
        }
        // Whoever goes on writing it is not read for ever.
        let Some(less) = left.checked_sub(length as u64) else { return Ok(None) };
        left = less;
        hash.update(&piece[..length]);
    }
}

fn hash_like(id: &str) -> &'static Algorithm {
    if id.len() > 40 { &SHA256 } else { &SHA1_FOR_LEGACY_USE_ONLY }
}

fn id_text(digest: &Digest) -> String {
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Moves a file to its place. One that is there already has the same bytes, and is younger from now on.
fn put(beside: &Path, directory: &Path, path: &Path) -> Result<(), GitError> {
    let mut left = TRIES_MAX;
    loop {
        make_private(directory)?;
        left -= 1;
        match fs::rename(beside, path) {
            Err(why) if why.kind() == ErrorKind::NotFound && left > 0 => {}
            moved => return moved.map_err(GitError::disk(path)),
        }
    }
}

/// Bytes in zlib's format, as they are.
fn zlib_stored(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + 16);
    out.extend_from_slice(&ZLIB);
    let mut rest = bytes;
    loop {
        let (part, after) = rest.split_at(rest.len().min(STORED_MAX));
        let length = u16::try_from(part.len()).unwrap_or(u16::MAX);
        out.push(u8::from(after.is_empty()));
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&(!length).to_le_bytes());
        out.extend_from_slice(part);
        if after.is_empty() {
            break;
        }
        rest = after;
    }
    out.extend_from_slice(&adler32(bytes).to_be_bytes());
    out
}

fn adler32(bytes: &[u8]) -> u32 {
    let (mut one, mut two) = (1_u32, 0_u32);
    for part in bytes.chunks(ADLER_BYTES_MAX) {
        for byte in part {
            one += u32::from(*byte);
            two += one;
        }
        one %= ADLER;
        two %= ADLER;
    }
    two << 16 | one
}

/// A commit of a snapshot, as somebody here has written or read it.
#[derive(Debug)]
pub(super) struct SeenCommit {
    pub(super) commit: String,
    pub(super) tree: String,
    pub(super) header: SnapshotHeader,
}

/// The last commits that were written or read here. An id is of these bytes and no others, so none is ever out of date.
#[derive(Debug, Clone, Default)]
pub(super) struct RecentCommits(Arc<Mutex<VecDeque<Arc<SeenCommit>>>>);

impl RecentCommits {
    pub(super) fn find(&self, commit: &str) -> Option<Arc<SeenCommit>> {
        let recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        recent.iter().find(|seen| seen.commit == commit).cloned()
    }

    pub(super) fn note(&self, seen: SeenCommit) -> Arc<SeenCommit> {
        let seen = Arc::new(seen);
        let mut recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        recent.retain(|other| other.commit != seen.commit);
        recent.push_back(seen.clone());
        while recent.len() > RECENT_MAX {
            recent.pop_front();
        }
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn git(repository: &Path, words: &[&str]) -> String {
        let out = Command::new("git").current_dir(repository).args(words).output().unwrap();
        assert!(out.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap().trim_end().to_owned()
    }

    #[test]
    fn git_reads_what_we_have_written_and_gives_it_the_same_name() {
        for format in ["sha1", "sha256"] {
            let place = tempfile::tempdir().unwrap();
            git(place.path(), &["init", "-q", &format!("--object-format={format}")]);
            let tree = git(place.path(), &["write-tree"]);
            let objects = place.path().join(".git/objects");
            for (message, is_durable) in
                [("short\n".to_owned(), false), ("ä long one\n".repeat(20_000), true), (String::new(), false)]
            {
                let text = commit_text(&tree, &[], &message, 1_700_000_000);
                let id = write_commit(&objects, &text, &tree, is_durable).unwrap();
                assert_eq!(git(place.path(), &["cat-file", "commit", &id]), text.trim_end());
                let both = [id.clone(), id.clone()];
                let next =
                    write_commit(&objects, &commit_text(&tree, &both, "next\n", 1), &tree, false).unwrap();
                assert_eq!(
                    git(place.path(), &["rev-list", "--parents", "-1", &next]),
                    format!("{next} {id}")
                );
                assert_eq!(write_commit(&objects, &text, &tree, false).unwrap(), id, "once more");
            }
            git(place.path(), &["fsck", "--strict", "--no-dangling"]);
            let left = fs::read_dir(&objects).unwrap().flatten();
            assert!(left.into_iter().all(|entry| !entry.file_name().to_string_lossy().starts_with("tmp_")));
        }
    }

    #[test]
    fn the_oldest_commit_is_forgotten_first() {
        let recent = RecentCommits::default();
        for number in 0..=RECENT_MAX {
            let (commit, header) = (number.to_string(), SnapshotHeader::default());
            recent.note(SeenCommit { tree: commit.clone(), commit, header });
        }
        assert!(recent.find("0").is_none());
        assert_eq!(recent.find("1").unwrap().tree, "1");
    }
}
