//! A worktree that somebody has deleted by hand, with git's own files for it, its branch, or only what ties it to its repository:
//! it can be entered, removed and restored, and is whole then.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use homing_worktrees::git::{EnterRequest, EnteredWorktree, GitError, SnapshotMoment};

use super::{Everything, Yard, difference, everything, named, plain, plain_command, snapshot_name, write};

/// More steps than making one whole again has.
const STEPS_MAX: usize = 60;

/// The ways to delete one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deleted {
    Directory,
    /// Git's own files for it, too, as `git worktree remove -f -f` does.
    Everything,
    /// And its branch.
    WithBranch,
    /// And whatever nothing refers to any more.
    Pruned,
    /// Only the file that says where git's own files are.
    Link,
    /// Only git's own files.
    Admin,
}

const ALL: [Deleted; 6] = [
    Deleted::Directory,
    Deleted::Everything,
    Deleted::WithBranch,
    Deleted::Pruned,
    Deleted::Link,
    Deleted::Admin,
];

impl Deleted {
    fn delete(self, yard: &Yard, root: &Path) {
        let admin = yard.repository.join(".git/worktrees/one");
        match self {
            Self::Directory => fs::remove_dir_all(root).unwrap(),
            Self::Link => fs::remove_file(root.join(".git")).unwrap(),
            Self::Admin => fs::remove_dir_all(admin).unwrap(),
            Self::Everything | Self::WithBranch | Self::Pruned => {
                fs::remove_dir_all(root).unwrap();
                yard.plain(&["worktree", "unlock", root.to_str().unwrap()]);
                yard.plain(&["worktree", "prune"]);
                assert!(!admin.exists());
            }
        }
        if matches!(self, Self::WithBranch | Self::Pruned) {
            yard.plain(&["branch", "-q", "-D", "homing/one"]);
        }
        if self == Self::Pruned {
            yard.plain(&["reflog", "expire", "--expire=now", "--all"]);
            yard.plain(&["gc", "-q", "--prune=now"]);
        }
    }

    /// True if nobody could lose a file by it.
    fn keeps_files(self) -> bool {
        matches!(self, Self::Link | Self::Admin)
    }
}

/// A worktree in which a turn has committed, staged and written, and how it was then.
async fn worked_in(yard: &Yard) -> (PathBuf, Seen) {
    let root = yard.enter("one").await.root;
    write(&root.join("committed"), b"committed");
    plain(&root, &["add", "committed"]);
    plain(&root, &["commit", "-q", "-m", "work"]);
    write(&root.join("staged"), b"staged");
    plain(&root, &["add", "staged"]);
    write(&root.join("a.txt"), b"not committed");
    fs::remove_file(root.join("sub/b.txt")).unwrap();
    write(&root.join("new/deep"), b"untracked");
    fs::set_permissions(root.join("new/deep"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(root.join(".gitignore"), fs::Permissions::from_mode(0o755)).unwrap();
    let name = snapshot_name(1, SnapshotMoment::After);
    yard.git.snapshot_of_turn(&root, &name, None).await.unwrap().unwrap();
    yard.git.copy(&root).await.unwrap();
    let seen = Seen::of(&root);
    (root, seen)
}

#[derive(Debug, PartialEq)]
struct Seen {
    files: Everything,
    said: [String; 4],
}

impl Seen {
    fn of(root: &Path) -> Self {
        let mut files = everything(root);
        files.remove(b"sub".as_slice()); // Git keeps no empty directories.
        let said = [
            &["rev-parse", "HEAD"][..],
            &["branch", "--show-current"],
            &["ls-files", "-s"],
            &["status", "-s"],
        ];
        Self { files, said: said.map(|words| plain(root, words)) }
    }

    fn is(&self, other: &Self, words: &str) {
        assert_eq!(difference(&self.files, &other.files), [""; 0], "{words}");
        assert_eq!(self.said, other.said, "{words}");
    }
}

fn again(yard: &Yard) -> EnterRequest<'_> {
    EnterRequest { is_new: false, ..yard.wish("one") }
}

fn said(entered: &EnteredWorktree) -> String {
    entered.notices.join("; ")
}

#[tokio::test]
async fn it_is_entered_whole_however_it_was_deleted() {
    for how in ALL {
        let yard = Yard::new();
        let (root, before) = worked_in(&yard).await;
        if !how.keeps_files() {
            write(&root.join("later"), b"after the last snapshot");
        }
        how.delete(&yard, &root);
        let seen = yard.git.list(None).await.unwrap();
        assert!(seen[0].is_missing && seen[0].is_deleted, "{how:?}: {seen:?}");
        let entered = yard.git.enter(again(&yard)).await.unwrap();
        let words = if how.keeps_files() { "cut off" } else { "deleted by hand" };
        assert!(said(&entered).contains(words), "{how:?}: {entered:?}");
        Seen::of(&root).is(&before, &format!("{how:?}"));
        assert_eq!(yard.plain(&["worktree", "list"]).lines().count(), 2);
        let entered = yard.git.enter(again(&yard)).await.unwrap();
        assert_eq!(entered.notices, [""; 0], "{how:?}: it is there now");
        let seen = yard.git.list(None).await.unwrap();
        assert!(!seen[0].is_missing && !seen[0].is_deleted, "{how:?}: {seen:?}");
    }
}

#[tokio::test]
async fn it_is_removed_and_restored_whole_however_it_was_deleted() {
    for how in ALL {
        let yard = Yard::new();
        let (root, before) = worked_in(&yard).await;
        how.delete(&yard, &root);
        let name = snapshot_name(1, SnapshotMoment::Removed);
        let removed =
            yard.git.remove(&named("one"), &name).await.unwrap_or_else(|why| panic!("{how:?}: {why}"));
        assert!(!root.exists());
        assert_eq!(yard.plain(&["worktree", "list"]).lines().count(), 1);
        yard.git.restore(&yard.repository, &removed.snapshot, &named("one")).await.unwrap();
        Seen::of(&root).is(&before, &format!("{how:?}"));
    }
}

#[tokio::test]
async fn making_it_whole_goes_on_from_every_step() {
    for how in [Deleted::Pruned, Deleted::Admin] {
        for step in 1.. {
            assert!(step < STEPS_MAX, "{how:?} has no end");
            let yard = Yard::new();
            let (root, before) = worked_in(&yard).await;
            how.delete(&yard, &root);
            yard.git.stop_at_step(step);
            let stopped = yard.git.enter(again(&yard)).await;
            yard.git.stop_at_step(0);
            yard.git.enter(again(&yard)).await.unwrap();
            Seen::of(&root).is(&before, &format!("{how:?} at {step}"));
            match stopped {
                Err(GitError::Stopped(_)) => {}
                Ok(_) => break,
                Err(why) => panic!("{how:?}: {why}"),
            }
        }
    }
}

#[tokio::test]
async fn what_was_committed_or_staged_since_the_last_snapshot_is_newer_than_it() {
    let yard = Yard::new();
    let (root, _) = worked_in(&yard).await;
    write(&root.join("a.txt"), b"committed later");
    plain(&root, &["commit", "-q", "-m", "later", "a.txt"]);
    write(&root.join("staged"), b"staged later");
    plain(&root, &["add", "staged"]);
    let before = Seen::of(&root);
    fs::remove_dir_all(&root).unwrap();
    yard.git.enter(again(&yard)).await.unwrap();
    Seen::of(&root).is(&before, "the file that nobody has staged is as in the snapshot");
}

#[tokio::test]
async fn without_a_snapshot_it_is_what_was_committed_and_staged() {
    let yard = Yard::new();
    yard.write(".worktreeinclude", "*.ignored\n");
    yard.plain(&["add", "."]);
    yard.plain(&["commit", "-q", "-m", "include"]);
    yard.write("x.ignored", "included");
    let root = yard.enter("one").await.root;
    write(&root.join("a.txt"), b"staged");
    plain(&root, &["add", "a.txt"]);
    let before = Seen::of(&root);
    write(&root.join("lost"), b"lost");
    fs::remove_dir_all(&root).unwrap();
    let entered = yard.git.enter(again(&yard)).await.unwrap();
    assert!(said(&entered).contains("committed and staged"), "{entered:?}");
    Seen::of(&root).is(&before, "with what .worktreeinclude names");
}

#[tokio::test]
async fn a_branch_that_somebody_has_taken_meanwhile_stays_theirs() {
    let yard = Yard::new();
    let (root, before) = worked_in(&yard).await;
    Deleted::Everything.delete(&yard, &root);
    yard.plain(&["switch", "-q", "homing/one"]);
    yard.git.enter(again(&yard)).await.unwrap();
    assert_eq!(plain(&root, &["branch", "--show-current"]), "", "it is on no branch");
    let now = Seen::of(&root);
    assert_eq!((now.files, &now.said[0]), (before.files, &before.said[0]));
}

#[tokio::test]
async fn one_that_was_moved_is_not_made_a_second_time() {
    let yard = Yard::new();
    let (root, _) = worked_in(&yard).await;
    let at = root.with_file_name("elsewhere");
    yard.plain(&["worktree", "move", "-f", "-f", root.to_str().unwrap(), at.to_str().unwrap()]);
    let refused = yard.git.enter(again(&yard)).await;
    assert!(matches!(refused, Err(GitError::Moved { .. })), "{refused:?}");
    assert!(!root.exists());
    assert!(plain_command(&at).args(["status"]).output().unwrap().status.success());
}
