//! A git that is killed between two files, or between a file and its directory: whoever goes on leaves nothing of that behind.
//!
//! Git takes a directory away a moment after the last of its files, and makes one a moment before the first. Here it is killed exactly
//! there: what it has done by then is done in its place, and it never comes to the rest.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use homing_worktrees::git::{Git, MergeError, SnapshotMoment, SnapshotName, UndoError};
use kernel::{MergeHow, SessionId, UndoFiles};

use super::{Yard, difference, everything, named, our_git, snapshot_name, write};

const SAFETY: SnapshotName =
    SnapshotName { session: SessionId::from_bits(7), turn: 0, moment: SnapshotMoment::Safety };

/// A git of which the first run that moves files does this to the working tree, and is killed.
fn cut_git(yard: &Yard, moved: &str) -> Git {
    let place = yard.place.path();
    let (program, once) = (place.join("cut-git"), place.join("cut"));
    let text = format!(
        "#!/bin/sh\nfor word do\n  if [ \"$word\" = -u ] && mkdir '{once}' 2>/dev/null; then\n    \
         cd '{tree}' && {moved}\n    kill -KILL $$\n  fi\ndone\nexec git \"$@\"\n",
        once = once.display(),
        tree = yard.repository.display()
    );
    write(&program, text.as_bytes());
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    our_git(place, &program)
}

fn was_cut(yard: &Yard) -> bool {
    yard.place.path().join("cut").exists()
}

/// A worktree in which a file is changed, the only one of a directory is gone, and one is in a new directory.
async fn work(yard: &Yard) {
    let root = yard.enter("one").await.root;
    write(&root.join("a.txt"), b"one\ntwo, changed\nthree\n");
    write(&root.join("new/deep/file"), b"new\n");
    fs::remove_file(root.join("sub/b.txt")).unwrap();
}

#[tokio::test]
async fn an_apply_that_is_cut_after_the_last_file_of_a_directory_takes_the_directory_away_all_the_same() {
    let yard = Yard::new();
    work(&yard).await;
    let git = cut_git(&yard, "rm sub/b.txt");
    git.merge(&named("one"), MergeHow::Apply, &SAFETY).await.unwrap();
    assert!(was_cut(&yard));
    assert!(!yard.repository.join("sub").exists(), "an empty directory is left");
    assert_eq!(yard.plain(&["status", "--porcelain"]), " M a.txt\n D sub/b.txt\n?? new/");
}

#[tokio::test]
async fn an_apply_that_cannot_be_ended_leaves_what_somebody_wrote_meanwhile_and_nothing_else() {
    let yard = Yard::new();
    work(&yard).await;
    let before = everything(&yard.repository);
    let git = cut_git(&yard, "rm sub/b.txt && mkdir -p new/deep && echo mine > a.txt");
    // Whoever is at it is told, and finds a journal.
    git.merge(&named("one"), MergeHow::Apply, &SAFETY).await.unwrap_err();
    assert!(was_cut(&yard));
    match git.merge(&named("one"), MergeHow::Apply, &SAFETY).await {
        Err(MergeError::Changed { files, .. }) => assert_eq!(files, [PathBuf::from("a.txt")]),
        other => panic!("{other:?}"),
    }
    assert_eq!(fs::read(yard.repository.join("a.txt")).unwrap(), b"mine\n", "it is theirs");
    write(&yard.repository.join("a.txt"), &before[b"a.txt".as_slice()].1);
    assert_eq!(difference(&everything(&yard.repository), &before), [""; 0]);
}

/// A turn that makes a directory, and empties another.
async fn turn(yard: &Yard) -> [homing_worktrees::git::Snapshot; 2] {
    let taken =
        async |moment| yard.git.snapshot(&yard.repository, &snapshot_name(1, moment)).await.unwrap().unwrap();
    let before = taken(SnapshotMoment::Before).await;
    write(&yard.repository.join("made/deep/file"), b"made");
    fs::remove_dir_all(yard.repository.join("sub")).unwrap();
    [before, taken(SnapshotMoment::After).await]
}

async fn undo(
    git: &Git,
    at: &Path,
    [before, after]: &[homing_worktrees::git::Snapshot; 2],
) -> Result<(), UndoError> {
    let safety = snapshot_name(1, SnapshotMoment::Safety);
    git.undo(at, before, after, &safety, &UndoFiles::All, || true).await.map(drop)
}

#[tokio::test]
async fn an_undo_and_a_redo_that_are_cut_between_a_file_and_its_directory_end_as_others_do() {
    let yard = Yard::new();
    let files = everything(&yard.repository);
    let turn = turn(&yard).await;
    let changed = everything(&yard.repository);
    let git = cut_git(&yard, "rm made/deep/file && mkdir sub");
    undo(&git, &yard.repository, &turn).await.unwrap_err();
    assert!(was_cut(&yard));
    undo(&git, &yard.repository, &turn).await.unwrap();
    assert_eq!(difference(&everything(&yard.repository), &files), [""; 0], "undone");

    fs::remove_dir(yard.place.path().join("cut")).unwrap();
    let git = cut_git(&yard, "rm sub/b.txt && mkdir -p made/deep");
    let redo = async || {
        let safety = snapshot_name(1, SnapshotMoment::Safety);
        git.redo(&yard.repository, safety.session, &safety, || true).await
    };
    redo().await.unwrap_err();
    assert!(was_cut(&yard));
    redo().await.unwrap();
    assert_eq!(difference(&everything(&yard.repository), &changed), [""; 0], "redone");
}

/// Where a directory was that comes back: what stands there is not the beginning of one of its files.
#[tokio::test]
async fn what_somebody_puts_in_the_place_of_a_directory_stays_when_an_undo_was_cut_short() {
    let yard = Yard::new();
    let taken =
        async |moment| yard.git.snapshot(&yard.repository, &snapshot_name(1, moment)).await.unwrap().unwrap();
    let before = taken(SnapshotMoment::Before).await;
    fs::remove_dir_all(yard.repository.join("sub")).unwrap();
    yard.write(".gitignore", "*.ignored\n/build/\n/sub\n");
    let turn = [before, taken(SnapshotMoment::After).await];
    let git = cut_git(&yard, "true");
    undo(&git, &yard.repository, &turn).await.unwrap_err();
    assert!(was_cut(&yard));
    yard.write("sub", "mine");
    match undo(&git, &yard.repository, &turn).await {
        Err(UndoError::Touched { touched_since }) => assert_eq!(touched_since, [PathBuf::from("sub/b.txt")]),
        other => panic!("{other:?}"),
    }
    assert_eq!(fs::read(yard.repository.join("sub")).unwrap(), b"mine");
}

/// Git moves what both trees have; what none has is somebody's.
#[tokio::test]
async fn a_directory_becomes_a_file_by_an_apply_unless_something_of_somebodys_is_in_it() {
    let yard = Yard::new();
    let root = yard.enter("one").await.root;
    fs::remove_dir_all(root.join("sub")).unwrap();
    write(&root.join("sub"), b"a file by now");
    let apply = async || yard.git.merge(&named("one"), MergeHow::Apply, &SAFETY).await;
    for theirs in ["sub/mine.ignored", "sub/deep/mine.ignored"] {
        write(&yard.repository.join(theirs), b"mine");
        let before = everything(&yard.repository);
        match apply().await {
            Err(MergeError::Changed { files, .. }) => assert_eq!(files, [PathBuf::from("sub")]),
            other => panic!("{other:?}"),
        }
        assert_eq!(difference(&everything(&yard.repository), &before), [""; 0]);
        fs::remove_file(yard.repository.join(theirs)).unwrap();
    }
    // An empty directory is nobody's.
    assert!(yard.repository.join("sub/deep").is_dir());
    apply().await.unwrap();
    assert_eq!(fs::read(yard.repository.join("sub")).unwrap(), b"a file by now");
}
