//! Worktrees that somebody broke, moved, or took the repository away from: the others are listed, nothing is lost, and the
//! words say what to do by hand.

use std::fs;
use std::os::unix::fs::symlink;

use homing_worktrees::git::{GitError, SnapshotMoment};

use super::{Yard, difference, everything, named, plain, snapshot_name, write};

#[tokio::test]
async fn a_broken_worktree_is_listed_with_its_trouble_and_the_others_as_usual() {
    let yard = Yard::new();
    for name in ["garbled", "own", "sound"] {
        yard.enter(name).await;
    }
    let worktrees = yard.place.path().canonicalize().unwrap().join("data/worktrees");
    let (garbled, own) = (worktrees.join("garbled"), worktrees.join("own"));
    let index = yard.repository.join(".git/worktrees/garbled/index");
    fs::write(&index, "garbage").unwrap();
    fs::remove_file(own.join(".git")).unwrap();
    plain(&own, &["init", "-q", "."]);
    plain(&own, &["commit", "-q", "--allow-empty", "-m", "own"]);
    write(&own.join("x.ignored"), b"ignored");

    let seen = yard.git.list(None).await.unwrap();
    let told: Vec<_> = seen.iter().map(|each| (each.is_missing, each.trouble.is_some())).collect();
    assert_eq!(told, [(true, true), (true, true), (false, false)], "{seen:?}");
    let copies = everything(&yard.place.path().join("data/git/shadows"));
    let left: Vec<_> = copies.keys().map(|path| String::from_utf8_lossy(path)).collect();
    assert!(!left.iter().any(|path| path.contains("plain/index.")), "{left:?}");

    let remove =
        async |name: &str| yard.git.remove(&named(name), &snapshot_name(1, SnapshotMoment::Removed)).await;
    let why = remove("garbled").await.unwrap_err().to_string();
    assert!(why.contains(index.to_str().unwrap()) && why.contains("move this file away"), "{why}");
    fs::remove_file(&index).unwrap();
    let files = everything(&garbled);
    let removed = remove("garbled").await.unwrap();
    yard.git.restore(&yard.repository, &removed.snapshot, &named("garbled")).await.unwrap();
    assert_eq!(difference(&files, &everything(&garbled)), [""; 0]);

    let why = remove("own").await.unwrap_err().to_string();
    assert!(why.contains("own/.git is in the way; move it elsewhere"), "{why}");
    fs::rename(own.join(".git"), yard.place.path().join("moved-away")).unwrap();
    let files = everything(&own);
    let removed = remove("own").await.unwrap();
    yard.git.restore(&yard.repository, &removed.snapshot, &named("own")).await.unwrap();
    assert_eq!(difference(&files, &everything(&own)), [""; 0]);
}

#[tokio::test]
async fn a_worktree_that_was_moved_is_left_alone_and_named_where_it_is() {
    let yard = Yard::new();
    let place = yard.place.path().canonicalize().unwrap();
    let (moved, linked) = (yard.enter("moved").await.root, yard.enter("linked").await.root);
    let (there, target) = (place.join("there"), place.join("target"));
    plain(
        &yard.repository,
        &["worktree", "move", "-f", "-f", moved.to_str().unwrap(), there.to_str().unwrap()],
    );
    fs::rename(&linked, place.join("aside")).unwrap();
    fs::create_dir(&target).unwrap();
    symlink(&target, &linked).unwrap();
    for (name, at) in [("moved", &there), ("linked", &target)] {
        let why =
            yard.git.remove(&named(name), &snapshot_name(1, SnapshotMoment::Removed)).await.unwrap_err();
        assert!(matches!(&why, GitError::Moved { .. }), "{why}");
        assert!(why.to_string().contains(at.to_str().unwrap()), "{why}");
    }
    assert_eq!(plain(&there, &["status", "--porcelain"]), "");
    assert_eq!(fs::read_dir(&target).unwrap().count(), 0, "nothing was written through the link");
    assert_eq!(yard.git.list(None).await.unwrap().len(), 2);
}

#[tokio::test]
async fn nothing_is_made_in_a_repository_that_is_gone() {
    let yard = Yard::new();
    let root = yard.enter("one").await.root;
    let files = everything(&root);
    fs::remove_dir_all(&yard.repository).unwrap();
    let why = yard.git.remove(&named("one"), &snapshot_name(1, SnapshotMoment::Removed)).await.unwrap_err();
    assert!(matches!(&why, GitError::RepositoryGone { .. }), "{why}");
    assert!(!yard.repository.exists());
    assert_eq!(difference(&files, &everything(&root)), [""; 0]);
    assert_eq!(yard.git.list(None).await.unwrap().len(), 1);
}

#[tokio::test]
async fn what_worktreeinclude_cannot_copy_because_of_a_link_in_the_base_is_left_out() {
    let yard = Yard::new();
    symlink("sub", yard.repository.join("node2")).unwrap();
    yard.write(".worktreeinclude", "node2/\n*.ignored\n");
    yard.plain(&["add", "."]);
    yard.plain(&["commit", "-q", "-m", "a link"]);
    fs::remove_file(yard.repository.join("node2")).unwrap();
    yard.write("node2/module", "module");
    yard.write("x.ignored", "included");
    let root = yard.enter("one").await.root;
    assert!(fs::symlink_metadata(root.join("node2")).unwrap().is_symlink());
    assert!(!root.join("sub/module").exists());
    assert_eq!(fs::read(root.join("x.ignored")).unwrap(), b"included");
    yard.git.remove(&named("one"), &snapshot_name(1, SnapshotMoment::Removed)).await.unwrap();
    assert!(!root.exists());
}
