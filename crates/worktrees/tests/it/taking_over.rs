//! Snapshots that older versions left on refs of the person's repository are taken over, or stay: never lost, never between.

use std::fs;

use homing_worktrees::git::{GitError, Snapshot, SnapshotMoment, SnapshotName};
use kernel::SessionId;

use super::{Yard, cut_at, plain, snapshot_name, write};

/// More steps than it has.
const STEPS_MAX: usize = 20;
/// The session of the tests, and another one.
const OWN: SessionId = SessionId::from_bits(7);
const OTHER: SessionId = SessionId::from_bits(8);

/// A repository with the snapshots of two turns as older versions kept them, on packed and on loose refs, and nothing else of ours.
async fn of_before() -> (Yard, [Snapshot; 4]) {
    let yard = Yard::new();
    let mut all = Vec::new();
    for turn in 1..3 {
        for moment in [SnapshotMoment::Before, SnapshotMoment::After] {
            all.push(
                yard.git.snapshot(&yard.repository, &snapshot_name(turn, moment)).await.unwrap().unwrap(),
            );
            yard.write("a.txt", &format!("{turn} {moment:?}"));
        }
        let name = SnapshotName { session: OTHER, turn, moment: SnapshotMoment::After };
        yard.git.snapshot(&yard.repository, &name).await.unwrap().unwrap();
        let store = yard.store();
        yard.git.copy(&yard.repository).await.unwrap();
        yard.plain(&["fetch", "-q", store.to_str().unwrap(), "refs/homing/*:refs/homing/*"]);
        if turn == 1 {
            yard.plain(&["pack-refs", "--all"]);
        }
    }
    yard.plain(&["checkout", "-q", "."]);
    for place in ["snapshots", "shadows"] {
        fs::remove_dir_all(yard.place.path().join("data/git").join(place)).unwrap();
    }
    assert_eq!(old(&yard, OWN).len(), 4);
    (yard, all.try_into().unwrap())
}

/// The refs of a session in the person's repository.
fn old(yard: &Yard, session: SessionId) -> Vec<String> {
    let below = format!("refs/homing/{session}");
    yard.plain(&["for-each-ref", "--format=%(refname)", &below]).lines().map(str::to_owned).collect()
}

async fn find(yard: &Yard, of: &Snapshot) -> Option<Snapshot> {
    let (turn, moment) = (if of.reference.contains("/1/") { 1 } else { 2 }, of.reference.ends_with("before"));
    let moment = if moment { SnapshotMoment::Before } else { SnapshotMoment::After };
    yard.git.find(&yard.repository, &snapshot_name(turn, moment)).await.unwrap()
}

#[tokio::test]
async fn a_sessions_snapshots_are_taken_over_and_other_sessions_stay() {
    let (yard, all) = of_before().await;
    assert_eq!(find(&yard, &all[0]).await, None);
    yard.git.take_over(&yard.repository, OWN).await.unwrap();
    assert_eq!((old(&yard, OWN).len(), old(&yard, OTHER).len()), (0, 2));
    let left: Vec<String> =
        yard.git.left_in_repositories().into_iter().flat_map(|left| left.references).collect();
    assert_eq!(left, [format!("refs/homing/{OTHER}/*")], "whoever was not asked yet is named");
    yard.git.take_over(&yard.repository, OTHER).await.unwrap();
    assert!(yard.git.left_in_repositories().is_empty());
    assert_eq!(yard.plain(&["for-each-ref", "refs/homing"]), "");
    yard.plain(&["gc", "--quiet", "--prune=now"]);
    for snapshot in &all {
        assert_eq!(find(&yard, snapshot).await.as_ref(), Some(snapshot));
    }
    assert_eq!(yard.git.diff(&all[0], &all[1]).await.unwrap().files.len(), 1);
    // They are as old as they were.
    let swept = yard.git.sweep(std::time::Duration::from_secs(3_600)).await.unwrap();
    assert!(swept.is_empty(), "{swept:?}");
}

#[tokio::test]
async fn cut_anywhere_a_snapshot_is_in_one_place_or_in_both() {
    for step in 1..STEPS_MAX {
        let (yard, all) = of_before().await;
        yard.git.stop_at_step(step);
        let stopped = yard.git.take_over(&yard.repository, OWN).await;
        yard.git.stop_at_step(0);
        let left = old(&yard, OWN);
        for snapshot in &all {
            let is_taken = find(&yard, snapshot).await.as_ref() == Some(snapshot);
            assert!(is_taken || left.contains(&snapshot.reference), "{step}: {snapshot:?}");
        }
        yard.git.take_over(&yard.repository, OWN).await.unwrap();
        assert_eq!(old(&yard, OWN).len(), 0, "{step}");
        yard.plain(&["gc", "--quiet", "--prune=now"]);
        assert_eq!(yard.git.diff(&all[2], &all[3]).await.unwrap().files.len(), 1);
        match stopped {
            Err(GitError::Stopped(_)) => {}
            Ok(()) => {
                cut_at("take-over of old refs", step - 1);
                assert!(step > 4, "only {step} steps");
                return;
            }
            Err(why) => panic!("{why}"),
        }
    }
    panic!("taking over has no end");
}

#[tokio::test]
async fn the_locks_that_a_killed_deletion_left_on_these_refs_stop_nobody() {
    let (yard, all) = of_before().await;
    let lock =
        |snapshot: &Snapshot| yard.repository.join(".git").join(format!("{}.lock", snapshot.reference));
    for snapshot in &all {
        write(&lock(snapshot), b"");
    }
    yard.git.take_over(&yard.repository, OWN).await.unwrap();
    assert_eq!(old(&yard, OWN).len(), 0);
    assert!(!all.iter().any(|snapshot| lock(snapshot).exists()));
}

#[tokio::test]
async fn a_lock_of_somebodys_git_keeps_nobody_from_their_snapshots() {
    let (yard, all) = of_before().await;
    let lock = yard.repository.join(".git/packed-refs.lock");
    write(&lock, b"");
    yard.git.take_over(&yard.repository, OWN).await.unwrap();
    for snapshot in &all {
        assert_eq!(find(&yard, snapshot).await.as_ref(), Some(snapshot));
    }
    assert_eq!(old(&yard, OWN).len(), 4, "they go when it is gone");
    assert!(lock.exists(), "it may be of a living git");
    let named = yard.git.left_in_repositories();
    assert!(named[0].references.contains(&format!("refs/homing/{OWN}/*")), "{named:?}");

    fs::remove_file(&lock).unwrap();
    yard.git.take_over(&yard.repository, OWN).await.unwrap();
    assert_eq!(old(&yard, OWN).len(), 0);
    assert_eq!(yard.git.left_in_repositories()[0].references, [format!("refs/homing/{OTHER}/*")]);
}

#[tokio::test]
async fn a_snapshot_that_is_not_whole_stays_and_is_named() {
    let (yard, all) = of_before().await;
    let blob = yard.plain(&["rev-parse", &format!("{}:a.txt", all[1].commit)]);
    let (directory, file) = blob.split_at(2);
    // The store was left in one pack.
    yard.plain(&["repack", "-q", "-a", "-d"]);
    let packs = yard.repository.join(".git/objects/pack");
    let pack = fs::read_dir(&packs).unwrap().find_map(|entry| {
        let path = entry.unwrap().path();
        (path.extension()? == "pack").then_some(path)
    });
    let bytes = fs::read(pack.unwrap()).unwrap();
    fs::remove_dir_all(&packs).unwrap();
    fs::create_dir(&packs).unwrap();
    let input = yard.place.path().join("pack");
    write(&input, &bytes);
    let mut unpack = super::plain_command(&yard.repository);
    let unpack = unpack.args(["unpack-objects", "-q"]).stdin(fs::File::open(&input).unwrap());
    assert!(unpack.status().unwrap().success());
    fs::remove_file(yard.repository.join(".git/objects").join(directory).join(file)).unwrap();

    yard.git.take_over(&yard.repository, OWN).await.unwrap();
    let mut left = old(&yard, OWN);
    assert!(left.contains(&all[1].reference) && left.len() < 4, "{left:?}");
    left.push(format!("refs/homing/{OTHER}/*"));
    let named = yard.git.left_in_repositories();
    assert_eq!((named.len(), &named[0].references), (1, &left));
    assert_eq!(find(&yard, &all[0]).await.as_ref(), Some(&all[0]));
    plain(&yard.repository, &["rev-parse", &all[1].reference]);
}
