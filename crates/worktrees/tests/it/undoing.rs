//! An undo takes back exactly what a turn did, or says who was there since.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use homing_worktrees::git::{GitError, Snapshot, SnapshotMoment, UndoError, Undone};

use super::{Yard, difference, everything, snapshot_name};

async fn taken(yard: &Yard, turn: u64, moment: SnapshotMoment) -> Snapshot {
    yard.git.snapshot(&yard.repository, &snapshot_name(turn, moment)).await.unwrap().unwrap()
}

async fn undo(yard: &Yard, before: &Snapshot, after: &Snapshot) -> Result<Undone, UndoError> {
    yard.git.undo(&yard.repository, before, after, &snapshot_name(1, SnapshotMoment::Safety), || true).await
}

/// A turn that does a bit of everything.
pub(super) fn work(root: &Path) {
    fs::write(root.join("a.txt"), "changed by the turn").unwrap();
    fs::set_permissions(root.join(".gitignore"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_dir_all(root.join("sub")).unwrap();
    fs::write(root.join("sub"), "a file where a directory was").unwrap();
    fs::create_dir_all(root.join("new/deep")).unwrap();
    fs::write(root.join("new/deep/file"), "new").unwrap();
    symlink("/etc/passwd", root.join("link")).unwrap();
}

#[tokio::test]
async fn everything_is_as_before_and_nothing_else_changes() {
    let yard = Yard::new();
    yard.write("untracked", "untracked");
    yard.write("x.ignored", "ignored");
    let (files, index) =
        (everything(&yard.repository), fs::read(yard.repository.join(".git/index")).unwrap());
    let before = taken(&yard, 1, SnapshotMoment::Before).await;
    work(&yard.repository);
    let changed = everything(&yard.repository);
    let after = taken(&yard, 1, SnapshotMoment::After).await;
    yard.write("later", "by somebody else, elsewhere");
    let undone = undo(&yard, &before, &after).await.unwrap();
    fs::remove_file(yard.repository.join("later")).unwrap();
    assert_eq!(difference(&everything(&yard.repository), &files), [""; 0]);
    assert_eq!(fs::read(yard.repository.join(".git/index")).unwrap(), index);
    let told = [".gitignore", "a.txt", "link", "new/deep/file", "sub", "sub/b.txt"].map(PathBuf::from);
    assert_eq!(undone.files, told);
    // What there was is in the safety snapshot, and an undo can itself be undone.
    let undone_at = taken(&yard, 2, SnapshotMoment::After).await;
    assert_eq!(undone_at.tree, before.tree);
    undo(&yard, &after, &undone_at).await.unwrap();
    assert_eq!(difference(&everything(&yard.repository), &changed), [""; 0]);
}

#[tokio::test]
async fn done_twice_it_is_done_once() {
    let yard = Yard::new();
    let before = taken(&yard, 1, SnapshotMoment::Before).await;
    work(&yard.repository);
    let after = taken(&yard, 1, SnapshotMoment::After).await;
    undo(&yard, &before, &after).await.unwrap();
    let files = everything(&yard.repository);
    let again = undo(&yard, &before, &after).await.unwrap();
    assert_eq!(everything(&yard.repository), files);
    assert_ne!(again.safety.reference, snapshot_name(1, SnapshotMoment::Safety).reference());
}

#[tokio::test]
async fn what_was_touched_since_is_told_and_stays() {
    type Touch = fn(&Path);
    let touches: [(&str, Touch); 5] = [
        ("a.txt", |root| fs::write(root.join("a.txt"), "later").unwrap()),
        ("a.txt", |root| fs::remove_file(root.join("a.txt")).unwrap()),
        ("new/deep/file", |root| fs::write(root.join("new/deep/file"), "later").unwrap()),
        ("link", |root| {
            fs::remove_file(root.join("link")).unwrap();
            fs::write(root.join("link"), "later").unwrap();
        }),
        ("a.txt", |root| fs::set_permissions(root.join("a.txt"), fs::Permissions::from_mode(0o755)).unwrap()),
    ];
    for (path, touch) in touches {
        let yard = Yard::new();
        let before = taken(&yard, 1, SnapshotMoment::Before).await;
        work(&yard.repository);
        let after = taken(&yard, 1, SnapshotMoment::After).await;
        touch(&yard.repository);
        let files = everything(&yard.repository);
        match undo(&yard, &before, &after).await {
            Err(UndoError::Touched { touched_since }) => assert_eq!(touched_since, [PathBuf::from(path)]),
            other => panic!("{path}: {other:?}"),
        }
        assert_eq!(everything(&yard.repository), files);
    }
}

#[tokio::test]
async fn what_an_undo_would_refuse_is_seen_before_and_the_look_leaves_no_trace() {
    let yard = Yard::new();
    let before = taken(&yard, 1, SnapshotMoment::Before).await;
    work(&yard.repository);
    let after = taken(&yard, 1, SnapshotMoment::After).await;
    let references = || yard.plain(&["for-each-ref"]);
    let touched = async || yard.git.touched(&yard.repository, &before, &after).await.unwrap();
    yard.write("elsewhere", "of no matter");
    assert_eq!(touched().await, [""; 0].map(PathBuf::from));
    yard.write("a.txt", "by hand");
    let (files, there) = (everything(&yard.repository), references());
    assert_eq!(touched().await, [PathBuf::from("a.txt")]);
    assert_eq!(touched().await, [PathBuf::from("a.txt")], "however often it is looked at");
    assert_eq!((everything(&yard.repository), references()), (files, there));
    // The objects of a look belong to nobody: they may go at any time.
    yard.plain(&["gc", "--quiet", "--prune=now"]);
    assert_eq!(touched().await, [PathBuf::from("a.txt")]);
    yard.write("a.txt", "changed by the turn");
    assert_eq!(touched().await, [""; 0].map(PathBuf::from));
    undo(&yard, &before, &after).await.unwrap();
    assert_eq!(touched().await, [""; 0].map(PathBuf::from), "what is as before is in nobody's way");
}

#[tokio::test]
async fn a_directory_in_the_place_of_a_removed_file_is_in_the_way() {
    let yard = Yard::new();
    let before = taken(&yard, 1, SnapshotMoment::Before).await;
    fs::remove_file(yard.repository.join("a.txt")).unwrap();
    let after = taken(&yard, 1, SnapshotMoment::After).await;
    yard.write("a.txt/later", "later");
    let refused = undo(&yard, &before, &after).await;
    assert!(
        matches!(&refused, Err(UndoError::Touched { touched_since }) if touched_since.len() == 1),
        "{refused:?}"
    );
    assert!(yard.repository.join("a.txt/later").exists());
}

#[tokio::test]
async fn it_never_writes_through_a_link() {
    let yard = Yard::new();
    let out = yard.place.path().join("out");
    fs::create_dir(&out).unwrap();
    fs::write(out.join("b.txt"), "somebody else's").unwrap();
    let before = taken(&yard, 1, SnapshotMoment::Before).await;
    yard.write("sub/b.txt", "changed");
    let after = taken(&yard, 1, SnapshotMoment::After).await;
    fs::remove_dir_all(yard.repository.join("sub")).unwrap();
    symlink(&out, yard.repository.join("sub")).unwrap();
    let refused = undo(&yard, &before, &after).await;
    assert!(matches!(refused, Err(UndoError::Touched { .. })), "{refused:?}");
    assert_eq!(fs::read_to_string(out.join("b.txt")).unwrap(), "somebody else's");
}

#[tokio::test]
async fn who_has_moved_on_is_not_undone() {
    let yard = Yard::new();
    let before = taken(&yard, 1, SnapshotMoment::Before).await;
    work(&yard.repository);
    let after = taken(&yard, 1, SnapshotMoment::After).await;
    let files = everything(&yard.repository);
    let safety = snapshot_name(1, SnapshotMoment::Safety);
    let refused = yard.git.undo(&yard.repository, &before, &after, &safety, || false).await;
    assert!(matches!(refused, Err(UndoError::MovedOn)), "{refused:?}");
    assert_eq!(everything(&yard.repository), files);
}

#[tokio::test]
async fn a_snapshot_of_another_repository_undoes_nothing() {
    let (yard, other) = (Yard::new(), Yard::new());
    let before = taken(&other, 1, SnapshotMoment::Before).await;
    work(&other.repository);
    let after = taken(&other, 1, SnapshotMoment::After).await;
    let refused = undo(&yard, &before, &after).await;
    assert!(matches!(refused, Err(UndoError::Trouble(GitError::NoSuchSnapshot(_)))), "{refused:?}");
}
