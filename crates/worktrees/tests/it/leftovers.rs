//! Leftovers of a killed git, put where it would be: nothing of ours stops at it, and nothing of a living git goes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use homing_worktrees::git::{CollectPolicy, GitError, SnapshotMoment};
use kernel::{SessionId, UndoFiles};

use super::undoing::work;
use super::{Yard, difference, everything, named, plain, snapshot_name, write};

/// In each of our git directories.
const IN_OURS: &[&str] = &[
    "marks.lock",
    "kept.index.lock",
    "index.lock",
    "index.copy.lock",
    "index.stages.lock",
    "index.undo.lock",
    "HEAD.lock",
    "config.lock",
    "fast_import_crash_1",
];

/// Below `refs/homing/`, for the turn that the test is about.
const HIDDEN: &[&str] = &["before", "after", "safety", "safety-2", "removed", "removed-2"];

fn shadows(yard: &Yard) -> Vec<PathBuf> {
    let all = fs::read_dir(yard.place.path().join("data/git/shadows")).into_iter().flatten();
    all.map(|entry| entry.unwrap().path()).collect()
}

/// Everything that a killed git of ours can leave, everywhere at once.
fn plant(yard: &Yard) {
    for shadow in shadows(yard) {
        for directory in [shadow.clone(), shadow.join("plain"), shadow.join("raw")] {
            for name in IN_OURS {
                write(&directory.join(name), b"cut sh");
            }
        }
        write(&shadow.join("marks"), b":1 cut sh");
        write(&shadow.join("kept.index"), b"DIRC");
        write(&shadow.join("kept/list"), b"wf 6");
    }
    let common = yard.repository.join(".git");
    if let Some(store) = yard.stores().first() {
        let reference = store.join(snapshot_name(1, SnapshotMoment::Before).reference());
        for name in HIDDEN {
            write(&reference.with_file_name(format!("{name}.lock")), b"");
            write(&reference.with_file_name(format!("{name}.{}.new", "0".repeat(32))), b"cut sh");
        }
        write(&store.join("objects/pack/tmp_pack_left"), b"PACK");
        write(&store.join("copied.1.new"), b"cut sh");
    }
    write(&common.join("refs/heads/homing/one.lock"), b"");
    write(&common.join("objects/pack/tmp_pack_left"), b"PACK");
    write(&common.join("objects/aa/tmp_obj_left"), b"");
    let admin = common.join("worktrees/one");
    // Only while a worktree is being made a lock there is ours.
    if admin.is_dir() {
        write(&admin.join("index.lock"), b"DIRC");
    }
}

#[tokio::test]
async fn no_operation_stops_at_what_a_killed_git_has_left() {
    let yard = Yard::new();
    plant(&yard);
    yard.git.stop_at_step(9);
    assert!(matches!(yard.git.enter(yard.wish("one")).await, Err(GitError::Stopped(_))));
    yard.git.stop_at_step(0);
    plant(&yard);
    let root = yard.enter("one").await.root;
    assert_eq!(plain(&root, &["status", "--porcelain"]), "");
    let committed = everything(&root);

    let name = |moment| snapshot_name(1, moment);
    plant(&yard);
    let before = yard.git.snapshot(&root, &name(SnapshotMoment::Before)).await.unwrap().unwrap();
    work(&root);
    plant(&yard);
    let after = yard.git.snapshot(&root, &name(SnapshotMoment::After)).await.unwrap().unwrap();
    plant(&yard);
    assert!(!yard.git.diff(&before, &after).await.unwrap().files.is_empty());
    assert_eq!(yard.git.list(None).await.unwrap().len(), 1);
    for _ in 0..2 {
        plant(&yard);
        yard.git
            .undo(&root, &before, &after, &name(SnapshotMoment::Safety), &UndoFiles::All, || true)
            .await
            .unwrap();
    }
    assert_eq!(difference(&committed, &everything(&root)), [""; 0]);

    write(&root.join("x.ignored"), b"ignored");
    let files = everything(&root);
    plant(&yard);
    let snapshot = yard.git.remove(&named("one"), &name(SnapshotMoment::Removed)).await.unwrap().snapshot;
    assert_eq!(yard.plain(&["branch", "--format=%(refname:short)"]), "main");
    plant(&yard);
    yard.git.stop_at_step(9);
    assert!(yard.git.restore(&yard.repository, &snapshot, &named("one")).await.is_err());
    yard.git.stop_at_step(0);
    plant(&yard);
    yard.git.restore(&yard.repository, &snapshot, &named("one")).await.unwrap();
    assert_eq!(difference(&files, &everything(&root)), [""; 0]);

    plant(&yard);
    yard.git.collect(&nothing_stays()).await.unwrap();
    // What removed worktrees held stays for good.
    let left = yard.ours(&["for-each-ref", "--format=%(refname)", "refs/homing"]);
    assert!(left.lines().all(|name| name.ends_with("/removed")), "{left}");
    yard.plain(&["fsck"]);
}

#[tokio::test]
async fn what_is_staged_in_a_merge_is_kept_beside_leftovers() {
    let yard = Yard::new();
    yard.plain(&["checkout", "-q", "-b", "other"]);
    yard.write("a.txt", "theirs\n");
    yard.plain(&["commit", "-q", "-a", "-m", "theirs"]);
    yard.plain(&["checkout", "-q", "main"]);
    yard.write("a.txt", "ours\n");
    yard.plain(&["commit", "-q", "-a", "-m", "ours"]);
    assert!(
        !super::plain_command(&yard.repository)
            .args(["merge", "-q", "other"])
            .output()
            .unwrap()
            .status
            .success()
    );
    for moment in [SnapshotMoment::Before, SnapshotMoment::After] {
        plant(&yard);
        yard.git.snapshot(&yard.repository, &snapshot_name(1, moment)).await.unwrap().unwrap();
    }
}

fn nothing_stays() -> CollectPolicy {
    CollectPolicy {
        age: Duration::ZERO,
        bytes_max: 0,
        snapshot_age: Duration::ZERO,
        in_use: BTreeSet::new(),
        session: SessionId::from_bits(7),
    }
}

#[tokio::test]
async fn the_lock_of_a_branch_goes_only_if_it_says_what_we_wanted_to_say() {
    let yard = Yard::new();
    let lock = yard.repository.join(".git/refs/heads/topic.lock");
    let mut wish = yard.wish("one");
    wish.branch = Some("topic".parse().unwrap());
    yard.git.stop_at_step(1);
    assert!(matches!(yard.git.enter(wish.clone()).await, Err(GitError::Stopped(_))));
    yard.git.stop_at_step(0);
    write(&lock, format!("{}\n", "1".repeat(40)).as_bytes());
    assert!(matches!(yard.git.enter(wish.clone()).await, Err(GitError::Git { .. })));
    assert!(lock.exists(), "it may be of a living git");
    write(&lock, yard.plain(&["rev-parse", "HEAD"]).as_bytes());
    assert_eq!(yard.git.enter(wish).await.unwrap().branch.as_deref(), Some("topic"));
}

#[tokio::test]
async fn what_somebody_was_writing_when_they_were_killed_stops_nobody_and_goes() {
    let yard = Yard::new();
    yard.enter("one").await;
    yard.git.remove(&named("one"), &snapshot_name(1, SnapshotMoment::Removed)).await.unwrap();
    let own = yard.place.path().join("data/git");
    let (now, long_ago) = (own.join("removed/a.1.new"), own.join("removed/b.2.new"));
    write(&now, b"{\"name\":");
    write_aged(&long_ago, Duration::from_secs(3_600));
    assert_eq!(yard.git.removed().unwrap().len(), 1);
    yard.git.sweep(Duration::from_secs(3_600)).await.unwrap();
    assert!(now.exists(), "somebody may be at it");
    assert!(!long_ago.exists());
}

/// A file as if written so long ago.
fn write_aged(path: &Path, age: Duration) {
    write(path, b"");
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - age).unwrap();
}

#[tokio::test]
async fn the_lock_of_packed_refs_goes_only_if_a_deletion_of_ours_left_it() {
    let yard = Yard::new();
    let common = yard.repository.join(".git");
    let (lock, new) = (common.join("packed-refs.lock"), common.join("packed-refs.new"));
    // Its branch goes with it, if that can be.
    let remove = async |name: &str| {
        yard.git.remove(&named(name), &snapshot_name(1, SnapshotMoment::Removed)).await.unwrap();
        yard.plain(&["branch", "--list", &format!("homing/{name}")]).is_empty()
    };
    for name in ["one", "two", "three"] {
        yard.enter(name).await;
    }
    yard.plain(&["pack-refs", "--all"]);
    write_aged(&lock, Duration::from_secs(90));
    write_aged(&new, Duration::from_secs(90));
    assert!(!remove("one").await);
    assert!(lock.exists() && new.exists(), "nothing of ours was cut short");

    // The note of a deletion that was cut short just before the lock was made.
    for shadow in shadows(&yard) {
        write_aged(&shadow.join("deleting"), Duration::from_secs(91));
    }
    write_aged(&lock, Duration::from_secs(30));
    assert!(!remove("two").await);
    assert!(lock.exists() && new.exists(), "it may be of a living git");

    for left in [&lock, &new] {
        write_aged(left, Duration::from_secs(70));
    }
    assert!(remove("three").await);
    assert!(!lock.exists() && !new.exists());
}
