//! The moves of the repository itself during a turn (commits, a reset, a switch, a stash), in words, each with the command that
//! takes it back. An undo is about files and leaves these as they are.

use std::io::Read;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Git;
use super::error::GitError;
use super::names::is_object_id;
use super::note::SnapshotNote;
use super::repository::{Repository, open_plain};
use super::shadow::ShadowRepository;
use super::snapshot::Snapshot;
use super::snapshot_header::SnapshotHeader;

/// The part of git's own lists that is looked at.
const LIST_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// The letters of an id that people are shown.
const ID_SHOWN: usize = 12;

/// A move of the repository that a turn has made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositoryMove {
    /// The move, in words.
    pub words: String,
    /// The command that takes it back.
    pub command: String,
}

/// The stash at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StashNote {
    /// The commit of the last entry.
    last: Option<String>,
    entries: usize,
}

impl StashNote {
    /// Read from git's own files, which costs no run of it.
    pub(super) fn of(repository: &Repository) -> Self {
        let list = text_of(&repository.common.join("logs/refs/stash"));
        // Each line has the commit before and the commit after.
        let last = list.lines().last().and_then(|line| line.split(' ').nth(1));
        let last = last.filter(|id| is_object_id(id)).map(str::to_owned);
        Self { entries: list.lines().count(), last }
    }
}

fn text_of(path: &Path) -> String {
    let mut text = Vec::new();
    let read = open_plain(path).and_then(|file| file.take(LIST_BYTES_MAX).read_to_end(&mut text));
    read.map_or_else(|_| String::new(), |_| String::from_utf8_lossy(&text).into_owned())
}

impl Git {
    /// The moves of the repository around a directory between two snapshots of a turn.
    pub async fn moves(
        &self,
        directory: &Path,
        before: &Snapshot,
        after: &Snapshot,
    ) -> Result<Vec<RepositoryMove>, GitError> {
        let shadow = self.shadow(&self.must_be_around(directory)?)?;
        let (told, notes) = self.both_notes(&shadow, before, after).await?;
        self.repository_moves(&shadow, &told, &notes).await
    }

    pub(super) async fn repository_moves(
        &self,
        shadow: &ShadowRepository,
        [before, after]: &[SnapshotHeader; 2],
        notes: &[SnapshotNote; 2],
    ) -> Result<Vec<RepositoryMove>, GitError> {
        let mut moves = Vec::new();
        if before.branch != after.branch {
            moves.extend(switched(before, after));
        } else if before.head != after.head {
            let count = self.commits_between(shadow, before, after).await?;
            moves.extend(moved(before, after, count));
        }
        if let (Some(first), Some(last)) = (&notes[0].stash, &notes[1].stash) {
            moves.extend(stashed(first, last));
        }
        Ok(moves)
    }

    /// The commits that were made on top of what there was; none if it is not beneath.
    async fn commits_between(
        &self,
        shadow: &ShadowRepository,
        before: &SnapshotHeader,
        after: &SnapshotHeader,
    ) -> Result<Option<u64>, GitError> {
        let (Some(old), Some(new)) = (&before.head, &after.head) else { return Ok(None) };
        let beneath = self.raw(shadow, "merge-base").words(["--is-ancestor", old, new]).said().await?;
        if beneath.code != Some(0) {
            return Ok(None);
        }
        let range = format!("{old}..{new}");
        let count = self.raw(shadow, "rev-list").words(["--count", &range, "--"]).text().await?;
        Ok(count.parse().ok())
    }
}

fn switched(before: &SnapshotHeader, after: &SnapshotHeader) -> Option<RepositoryMove> {
    let to = after.branch.as_deref().map_or("no branch".to_owned(), |branch| short_name(branch).to_owned());
    let (from, command) = match (&before.branch, &before.head) {
        (Some(branch), _) => {
            (short_name(branch).to_owned(), format!("git switch {}", quoted(short_name(branch))))
        }
        (None, Some(head)) => (short(head).to_owned(), format!("git switch --detach {}", short(head))),
        (None, None) => return None,
    };
    Some(RepositoryMove { words: format!("it switched from {from} to {to}"), command })
}

fn moved(before: &SnapshotHeader, after: &SnapshotHeader, count: Option<u64>) -> Option<RepositoryMove> {
    let on = after.branch.as_deref().map_or("no branch", short_name);
    Some(match (&before.head, &after.head, count) {
        (Some(old), Some(_), Some(count)) => RepositoryMove {
            words: format!("it made {count} {} on {on}", if count == 1 { "commit" } else { "commits" }),
            command: format!("git reset --soft {}", short(old)),
        },
        (Some(old), Some(new), None) => RepositoryMove {
            words: format!("it moved {on} from {} to {}", short(old), short(new)),
            command: format!("git reset --soft {}", short(old)),
        },
        (None, Some(_), _) => RepositoryMove {
            words: format!("it made the first commit on {on}"),
            command: "git update-ref -d HEAD".to_owned(),
        },
        (Some(old), None, _) => RepositoryMove {
            words: format!("it took away {on}, which was at {}", short(old)),
            command: format!("git update-ref HEAD {}", short(old)),
        },
        (None, None, _) => return None,
    })
}

fn stashed(first: &StashNote, last: &StashNote) -> Option<RepositoryMove> {
    match (last.entries.checked_sub(first.entries), &first.last) {
        (Some(0), _) if first.last == last.last => None,
        (Some(more @ 1..), _) => Some(RepositoryMove {
            words: format!("it stashed changes ({more} more in `git stash list`)"),
            command: "git stash drop".to_owned(),
        }),
        (_, Some(old)) => Some(RepositoryMove {
            words: "it took changes out of the stash".to_owned(),
            command: format!("git stash store -m 'as before the turn' {}", short(old)),
        }),
        (_, None) => None,
    }
}

fn short_name(branch: &str) -> &str {
    branch.strip_prefix("refs/heads/").unwrap_or(branch)
}

fn short(id: &str) -> &str {
    id.get(..ID_SHOWN).unwrap_or(id)
}

/// A name as one word of a shell: whoever made the branch does not get to run something by it.
fn quoted(name: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "._/-+@".contains(letter);
    match name.chars().all(is_plain) && !name.starts_with('-') {
        true => name.to_owned(),
        false => format!("'{}'", name.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(branch: Option<&str>, head: Option<char>) -> SnapshotHeader {
        let head = head.map(|letter| letter.to_string().repeat(40));
        SnapshotHeader {
            branch: branch.map(|name| format!("refs/heads/{name}")),
            head,
            ..SnapshotHeader::default()
        }
    }

    #[test]
    fn each_move_has_the_command_that_takes_it_back() {
        let (main, topic) = (header(Some("main"), Some('a')), header(Some("a;reboot"), Some('b')));
        assert_eq!(switched(&main, &topic).unwrap().command, "git switch main");
        assert_eq!(switched(&topic, &main).unwrap().command, "git switch 'a;reboot'");
        let detached = header(None, Some('c'));
        assert_eq!(switched(&detached, &main).unwrap().command, "git switch --detach cccccccccccc");
        let later = header(Some("main"), Some('d'));
        let made = moved(&main, &later, Some(2)).unwrap();
        assert_eq!(made.words, "it made 2 commits on main");
        assert_eq!(made.command, "git reset --soft aaaaaaaaaaaa");
        assert_eq!(moved(&main, &later, None).unwrap().command, "git reset --soft aaaaaaaaaaaa");
        let first = moved(&header(Some("main"), None), &later, None).unwrap();
        assert_eq!(first.command, "git update-ref -d HEAD");
        let stash = |last: Option<char>, entries| StashNote {
            last: last.map(|letter| letter.to_string().repeat(40)),
            entries,
        };
        assert_eq!(stashed(&stash(None, 0), &stash(Some('e'), 1)).unwrap().command, "git stash drop");
        let taken = stashed(&stash(Some('e'), 1), &stash(None, 0)).unwrap();
        assert_eq!(taken.command, "git stash store -m 'as before the turn' eeeeeeeeeeee");
        assert_eq!(stashed(&stash(Some('e'), 1), &stash(Some('e'), 1)), None);
    }
}
