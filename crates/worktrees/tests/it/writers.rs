//! Somebody writes to a worktree while it is removed: they lose nothing, whatever git thinks of their files.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use homing_worktrees::git::{Git, GitError, SnapshotMoment};

use super::{Yard, difference, everything, named, our_git, plain, snapshot_name, write};

/// One file of each kind that somebody may write to.
const FILES: [&str; 6] =
    ["a.txt", "untracked", "x.ignored", "build/deep/output", "nested/work", "nested/.git/description"];

fn mess(root: &Path) {
    fs::create_dir(root.join("nested")).unwrap();
    plain(&root.join("nested"), &["init", "-q"]);
    for file in FILES {
        write(&root.join(file), b"older");
    }
}

/// A git before whose run of `command` somebody writes to a file.
fn git_with_a_writer(place: &Path, command: &str, file: &Path) -> Git {
    let program = place.join("written-git");
    let text = format!(
        "#!/bin/sh\ncase \"$*\" in *{command}*) printf newer > '{}';; esac\nexec git \"$@\"\n",
        file.display()
    );
    write(&program, text.as_bytes());
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    our_git(place, &program)
}

fn is_refused_for(file: &str, removed: Result<homing_worktrees::git::Removal, GitError>) {
    let why = removed.unwrap_err();
    assert!(matches!(&why, GitError::WrittenMeanwhile(_)), "{why}");
    assert!(why.to_string().contains(&format!("somebody wrote to it meanwhile: {file}; try again")), "{why}");
}

#[tokio::test]
async fn what_is_written_after_the_snapshot_is_kept_and_told() {
    for file in FILES.into_iter().chain(["new", "new.ignored", "nested/new"]) {
        let yard = Yard::new();
        let root = yard.enter("one").await.root;
        mess(&root);
        // The snapshot's ref is there when its pack is made.
        let git = git_with_a_writer(yard.place.path(), "pack-objects", &root.join(file));
        is_refused_for(file, git.remove(&named("one"), &snapshot_name(1, SnapshotMoment::Removed)).await);
        assert_eq!(fs::read(root.join(file)).unwrap(), b"newer", "{file}");
        assert!(!yard.git.list(None).await.unwrap()[0].is_missing);

        let files = everything(&root);
        let removed =
            yard.git.remove(&named("one"), &snapshot_name(2, SnapshotMoment::Removed)).await.unwrap();
        yard.git.restore(&yard.repository, &removed.snapshot, &named("one")).await.unwrap();
        assert_eq!(difference(&files, &everything(&root)), [""; 0], "{file}");
    }
}

#[tokio::test]
async fn what_git_remembers_for_the_worktree_alone_is_looked_at_too() {
    let yard = Yard::new();
    let root = yard.enter("one").await.root;
    plain(&root, &["checkout", "-q", "--detach"]);
    let head = yard.repository.join(".git/worktrees/one/ORIG_HEAD");
    let git = git_with_a_writer(yard.place.path(), "pack-objects", &head);
    is_refused_for(
        ".git/ORIG_HEAD",
        git.remove(&named("one"), &snapshot_name(1, SnapshotMoment::Removed)).await,
    );
    assert!(head.exists() && root.join("a.txt").exists());
}

#[tokio::test]
async fn wherever_a_removal_is_cut_what_is_written_then_is_kept() {
    let (mut refused, mut refused_when_moved) = (0, 0);
    for step in 1..60 {
        let yard = Yard::new();
        let root = yard.enter("one").await.root;
        mess(&root);
        yard.git.stop_at_step(step);
        let stopped = yard.git.remove(&named("one"), &snapshot_name(1, SnapshotMoment::Removed)).await;
        assert!(matches!(stopped, Err(GitError::Stopped(_))), "{step}: {stopped:?}");
        yard.git.stop_at_step(0);
        let (data, file) = (yard.place.path().join("data"), FILES[step % FILES.len()]);
        let moved = data.join("worktrees/.trash/one");
        if !root.exists() && !data.join("git/worktrees/one.stamps").exists() {
            // It is known that nobody wrote to it, and it is being deleted.
            assert!(refused > 1 && refused_when_moved > 0, "{refused} and {refused_when_moved} at {step}");
            return;
        }
        let is_moved = !root.exists();
        write(&if is_moved { moved } else { root.clone() }.join(file), b"newer");
        let removed = match yard.git.remove(&named("one"), &snapshot_name(1, SnapshotMoment::Removed)).await {
            Ok(removed) => removed,
            refusal => {
                is_refused_for(file, refusal);
                refused += 1;
                refused_when_moved += usize::from(is_moved);
                assert_eq!(fs::read(root.join(file)).unwrap(), b"newer", "{step}");
                yard.git.remove(&named("one"), &snapshot_name(1, SnapshotMoment::Removed)).await.unwrap()
            }
        };
        yard.git.restore(&yard.repository, &removed.snapshot, &named("one")).await.unwrap();
        assert_eq!(fs::read(root.join(file)).unwrap(), b"newer", "{step}");
    }
    panic!("removing has no end");
}

#[tokio::test]
async fn a_directory_that_is_made_anew_while_a_removal_is_cut_is_never_deleted() {
    let mut refused = 0;
    for step in 1..60 {
        let yard = Yard::new();
        let root = yard.enter("one").await.root;
        mess(&root);
        yard.git.stop_at_step(step);
        let stopped = yard.git.remove(&named("one"), &snapshot_name(1, SnapshotMoment::Removed)).await;
        yard.git.stop_at_step(0);
        if stopped.is_ok() {
            assert!(refused > 1, "{refused}");
            return;
        }
        if root.exists() {
            continue;
        }
        write(&root.join("other"), b"somebody else's");
        match yard.git.remove(&named("one"), &snapshot_name(1, SnapshotMoment::Removed)).await {
            Err(GitError::InTheWay(_)) => refused += 1,
            Err(GitError::NoSuchWorktree(_)) => {}
            other => panic!("{step}: {other:?}"),
        }
        assert_eq!(fs::read(root.join("other")).unwrap(), b"somebody else's", "{step}");
    }
    panic!("removing has no end");
}
