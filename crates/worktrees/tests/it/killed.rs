//! Killed at any point, the next call goes on, or says why not. Nothing is ever between.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use homing_worktrees::git::{EnteredWorktree, Git, GitError, Snapshot, SnapshotMoment, UndoError};
use kernel::UndoFiles;

use super::undoing::work;
use super::{Yard, cut_at, difference, everything, named, our_git, plain, snapshot_name, write};

/// More steps than any operation has.
const STEPS_MAX: usize = 60;

fn mess(root: &Path) {
    work(root);
    write(&root.join("x.ignored"), b"ignored");
    write(&root.join("staged"), b"staged");
    plain(root, &["add", "staged"]);
}

fn is_sound(yard: &Yard, entered: &EnteredWorktree) {
    assert_eq!(plain(&entered.root, &["status", "--porcelain"]), "?? extra.txt");
    assert_eq!(plain(&entered.root, &["branch", "--show-current"]), "homing/one");
    assert_eq!(fs::read(entered.root.join("x.ignored")).unwrap(), b"included");
    assert_eq!(fs::read(entered.root.join("sub/b.txt")).unwrap(), b"b\n");
    assert_eq!(yard.plain(&["worktree", "list"]).lines().count(), 2);
}

fn with_include() -> Yard {
    let yard = Yard::new();
    yard.write(".worktreeinclude", "*.ignored\nextra.txt\n");
    yard.plain(&["add", ".worktreeinclude"]);
    yard.plain(&["commit", "-q", "-m", "include"]);
    yard.write("x.ignored", "included");
    yard.write("extra.txt", "extra");
    yard
}

#[tokio::test]
async fn entering_goes_on_from_every_step() {
    for step in 1..STEPS_MAX {
        let yard = with_include();
        yard.git.stop_at_step(step);
        let stopped = yard.git.enter(yard.wish("one")).await;
        yard.git.stop_at_step(0);
        let seen = yard.git.list(None).await.unwrap();
        is_sound(&yard, &yard.enter("one").await);
        match stopped {
            Err(GitError::Stopped(_)) => assert!(seen.iter().all(|each| each.is_missing), "{seen:?}"),
            Ok(_) => {
                cut_at("enter", step - 1);
                assert!(step > 8, "only {step} steps");
                return;
            }
            Err(why) => panic!("{why}"),
        }
    }
    panic!("entering has no end");
}

#[tokio::test]
async fn what_was_cut_short_while_entering_can_be_removed() {
    for step in 1..STEPS_MAX {
        let yard = with_include();
        yard.git.stop_at_step(step);
        let stopped = yard.git.enter(yard.wish("one")).await;
        yard.git.stop_at_step(0);
        yard.git.remove(&named("one"), &snapshot_name(1, SnapshotMoment::Removed)).await.unwrap();
        assert_eq!(yard.plain(&["worktree", "list"]).lines().count(), 1);
        assert_eq!(yard.plain(&["branch", "--format=%(refname:short)"]), "main");
        if stopped.is_ok() {
            return;
        }
    }
    panic!("entering has no end");
}

#[tokio::test]
async fn removing_and_restoring_go_on_from_every_step() {
    let (mut removes, mut restores) = (true, true);
    for step in 1..STEPS_MAX {
        let yard = Yard::new();
        let root = yard.enter("one").await.root;
        mess(&root);
        let (files, index) = (everything(&root), plain(&root, &["ls-files", "-s"]));
        let name = snapshot_name(1, SnapshotMoment::Removed);
        if removes {
            yard.git.stop_at_step(step);
            removes = yard.git.remove(&named("one"), &name).await.is_err();
            yard.git.stop_at_step(0);
        }
        let snapshot = match yard.git.remove(&named("one"), &name).await {
            Ok(removed) => removed.snapshot,
            // The very last step was done before.
            Err(GitError::NoSuchWorktree(_)) => find(&yard, &name).await,
            Err(why) => panic!("{step}: {why}"),
        };
        assert!(!root.exists());
        assert_eq!(yard.plain(&["worktree", "list"]).lines().count(), 1, "{step}");
        if restores {
            yard.git.stop_at_step(step);
            restores = yard.git.restore(&yard.repository, &snapshot, &named("one")).await.is_err();
            yard.git.stop_at_step(0);
        }
        yard.git.restore(&yard.repository, &snapshot, &named("one")).await.unwrap();
        assert_eq!(difference(&files, &everything(&root)), [""; 0], "{step}");
        assert_eq!(plain(&root, &["ls-files", "-s"]), index, "{step}");
        if !removes && !restores {
            cut_at("worktree rm and restore", step - 1);
            return;
        }
    }
    panic!("removing or restoring has no end");
}

#[tokio::test]
async fn a_head_that_somebody_has_moved_stays_wherever_a_removal_is_cut() {
    for step in 1..=9 {
        let yard = Yard::new();
        let root = yard.enter("one").await.root;
        plain(&root, &["checkout", "-q", "--detach"]);
        let path = yard.repository.join(".git/worktrees/one/HEAD");
        let head = fs::read(&path).unwrap();
        fs::remove_file(root.join(".git")).unwrap();
        yard.git.stop_at_step(step);
        let stopped = yard.git.remove(&named("one"), &snapshot_name(1, SnapshotMoment::Removed)).await;
        yard.git.stop_at_step(0);
        assert!(matches!(stopped, Err(GitError::Stopped(_))), "{stopped:?}");
        assert_eq!(fs::read(&path).unwrap(), head, "{step}");
    }
}

async fn find(yard: &Yard, name: &homing_worktrees::git::SnapshotName) -> Snapshot {
    yard.git.find(&yard.repository, name).await.unwrap().unwrap()
}

#[tokio::test]
async fn an_undo_goes_on_from_every_step() {
    for step in 1..STEPS_MAX {
        let yard = Yard::new();
        let files = everything(&yard.repository);
        let before = snapshot(&yard, SnapshotMoment::Before).await;
        work(&yard.repository);
        let changed = everything(&yard.repository);
        let after = snapshot(&yard, SnapshotMoment::After).await;
        let undo = || yard.git.undo(&yard.repository, &before, &after, &SAFETY, &UndoFiles::All, || true);
        yard.git.stop_at_step(step);
        let stopped = undo().await;
        yard.git.stop_at_step(0);
        undo().await.unwrap();
        assert_eq!(difference(&files, &everything(&yard.repository)), [""; 0], "{step}");
        yard.git.redo(&yard.repository, SAFETY.session, &SAFETY, || true).await.unwrap();
        assert_eq!(difference(&changed, &everything(&yard.repository)), [""; 0], "taken back, {step}");
        match stopped {
            Err(UndoError::Trouble(GitError::Stopped(_))) => {}
            Ok(_) => return cut_at("undo", step - 1),
            Err(why) => panic!("{why}"),
        }
    }
    panic!("an undo has no end");
}

#[tokio::test]
async fn taking_an_undo_back_goes_on_from_every_step() {
    for step in 1..STEPS_MAX {
        let yard = Yard::new();
        let before = snapshot(&yard, SnapshotMoment::Before).await;
        work(&yard.repository);
        let changed = everything(&yard.repository);
        let after = snapshot(&yard, SnapshotMoment::After).await;
        yard.git.undo(&yard.repository, &before, &after, &SAFETY, &UndoFiles::All, || true).await.unwrap();
        let redo = || yard.git.redo(&yard.repository, SAFETY.session, &SAFETY, || true);
        yard.git.stop_at_step(step);
        let stopped = redo().await;
        yard.git.stop_at_step(0);
        redo().await.unwrap();
        assert_eq!(difference(&changed, &everything(&yard.repository)), [""; 0], "{step}");
        match stopped {
            Err(UndoError::Trouble(GitError::Stopped(_))) => {}
            Ok(_) => return cut_at("redo", step - 1),
            Err(why) => panic!("{why}"),
        }
    }
    panic!("taking an undo back has no end");
}

const SAFETY: homing_worktrees::git::SnapshotName = homing_worktrees::git::SnapshotName {
    session: kernel::SessionId::from_bits(7),
    turn: 1,
    moment: SnapshotMoment::Safety,
};

async fn snapshot(yard: &Yard, moment: SnapshotMoment) -> Snapshot {
    yard.git.snapshot(&yard.repository, &snapshot_name(1, moment)).await.unwrap().unwrap()
}

/// A git that is killed in the midst of its work: the run with this number gets so many microseconds.
pub(super) fn dying_git(place: &Path, run: usize, microseconds: u32) -> Git {
    let (program, count) = (place.join("dying-git"), place.join("count"));
    let _ = fs::remove_file(&count);
    let text = format!(
        "#!/bin/sh\necho >> {count}\nif [ $(wc -l < {count}) -eq {run} ]; then\n\
         exec timeout -s KILL 0.{microseconds:06} git \"$@\"\nfi\nexec git \"$@\"\n",
        count = count.display()
    );
    write(&program, text.as_bytes());
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    our_git(place, &program)
}

/// A repository that takes git some milliseconds.
fn larger() -> Yard {
    let yard = Yard::new();
    for number in 0..200 {
        yard.write(&format!("many/{}/{number}", number % 20), &format!("{number}\n").repeat(500));
    }
    yard.plain(&["add", "."]);
    yard.plain(&["commit", "-q", "-m", "many"]);
    yard
}

#[tokio::test]
async fn a_git_that_is_killed_leaves_nothing_that_cannot_go_on() {
    let mut ends = 0;
    for run in [1, 2, 4] {
        let yard = larger();
        let place: PathBuf = yard.place.path().canonicalize().unwrap();
        let dying = |after: usize| dying_git(&place, run, [100, 2_000, 5_000][after % 3]);
        ends += usize::from(dying(run).enter(yard.wish("one")).await.is_err());
        let root = yard.enter("one").await.root;
        assert_eq!(plain(&root, &["status", "--porcelain"]), "");

        let files = everything(&root);
        let name = |moment| snapshot_name(1, moment);
        let before = yard.git.snapshot(&root, &name(SnapshotMoment::Before)).await.unwrap().unwrap();
        for number in 0..200 {
            write(
                &root.join(format!("many/{}/{number}", number % 20)),
                format!("changed {number}\n").repeat(300).as_bytes(),
            );
        }
        ends += usize::from(dying(run + 1).snapshot(&root, &name(SnapshotMoment::After)).await.is_err());
        let after = yard.git.snapshot(&root, &name(SnapshotMoment::After)).await.unwrap().unwrap();
        assert_eq!(yard.git.diff(&before, &after).await.unwrap().files.len(), 200);

        ends += usize::from(
            dying(run).undo(&root, &before, &after, &SAFETY, &UndoFiles::All, || true).await.is_err(),
        );
        yard.git.undo(&root, &before, &after, &SAFETY, &UndoFiles::All, || true).await.unwrap();
        assert_eq!(difference(&files, &everything(&root)), [""; 0], "{run}");

        let removed = name(SnapshotMoment::Removed);
        let first = dying(run).remove(&named("one"), &removed).await;
        ends += usize::from(first.is_err());
        let snapshot = match first {
            Ok(removed) => removed.snapshot,
            Err(_) => yard.git.remove(&named("one"), &removed).await.unwrap().snapshot,
        };
        ends += usize::from(dying(run).restore(&yard.repository, &snapshot, &named("one")).await.is_err());
        yard.git.restore(&yard.repository, &snapshot, &named("one")).await.unwrap();
        assert_eq!(difference(&files, &everything(&root)), [""; 0], "{run}");
        yard.plain(&["fsck"]);
    }
    assert!(ends > 1, "git was killed {ends} times only");
}
