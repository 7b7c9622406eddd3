//! The difference between two snapshots: files, lines, and a patch with an end.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use homing_worktrees::git::{ChangeKind, Changes, FileChange, SnapshotMoment};

use super::{Yard, snapshot_name, write};

/// A change of files.
async fn change(yard: &Yard, change: impl FnOnce(&Path)) -> Changes {
    let before = yard
        .git
        .snapshot(&yard.repository, &snapshot_name(1, SnapshotMoment::Before))
        .await
        .unwrap()
        .unwrap();
    change(&yard.repository);
    let after =
        yard.git.snapshot(&yard.repository, &snapshot_name(1, SnapshotMoment::After)).await.unwrap().unwrap();
    yard.git.diff(&before, &after).await.unwrap()
}

fn file(path: impl Into<PathBuf>, kind: ChangeKind, plus: u64, minus: u64) -> FileChange {
    FileChange { path: path.into(), kind, plus, minus, binary: false }
}

#[tokio::test]
async fn each_kind_of_change_is_told() {
    let yard = Yard::new();
    let long = (0..50).map(|line| format!("line {line}\n")).collect::<String>();
    yard.write("long.txt", &long);
    let changes = change(&yard, |root| {
        write(&root.join("a.txt"), b"one\n2\nthree\nfour\n");
        fs::remove_file(root.join("sub/b.txt")).unwrap();
        fs::create_dir(root.join("moved")).unwrap();
        fs::rename(root.join("long.txt"), root.join("moved/longer.txt")).unwrap();
        write(&root.join("moved/longer.txt"), format!("{long}more\n").as_bytes());
        write(&root.join("new\tname.txt"), b"new\n");
        write(&root.join("picture"), &[0, 1, 2, 255]);
    })
    .await;
    let expected = [
        file("a.txt", ChangeKind::Edited, 2, 1),
        file("moved/longer.txt", ChangeKind::Renamed { from: "long.txt".into() }, 1, 0),
        file("new\tname.txt", ChangeKind::Added, 1, 0),
        FileChange { binary: true, ..file("picture", ChangeKind::Added, 0, 0) },
        file("sub/b.txt", ChangeKind::Removed, 0, 1),
    ];
    assert_eq!(changes.files, expected);
    assert!(changes.patch.contains("-two\n+2\n") && changes.patch.contains("rename to moved/longer.txt"));
    assert!(!changes.is_patch_cut && changes.more_files == 0);
}

#[tokio::test]
async fn no_change_is_no_change() {
    let yard = Yard::new();
    assert_eq!(change(&yard, |_| {}).await, Changes::default());
}

#[tokio::test]
async fn names_need_not_be_text() {
    let yard = Yard::new();
    let odd = [&b"\xff\xfe"[..], b"-rf", b"new\nline", b":odd", "ünï".as_bytes(), b"quote\"d", b"sub/\x80"];
    let changes = change(&yard, |root| {
        for name in odd {
            write(&root.join(OsStr::from_bytes(name)), b"x\n");
        }
    })
    .await;
    let mut expected: Vec<_> =
        odd.iter().map(|name| file(OsStr::from_bytes(name), ChangeKind::Added, 1, 0)).collect();
    expected.sort_by(|one, other| one.path.as_os_str().cmp(other.path.as_os_str()));
    assert_eq!(changes.files, expected);
}

#[tokio::test]
async fn a_long_patch_is_cut_after_a_line() {
    let yard = Yard::new();
    let long = "a line of the patch\n".repeat(100_000);
    let changes = change(&yard, |root| write(&root.join("long"), long.as_bytes())).await;
    assert_eq!(changes.files, [file("long", ChangeKind::Added, 100_000, 0)]);
    assert!(changes.is_patch_cut && changes.patch.len() <= 1024 * 1024 && changes.patch.ends_with("patch\n"));
}

#[tokio::test]
async fn a_mode_and_a_link_are_changes() {
    use std::os::unix::fs::PermissionsExt;
    let yard = Yard::new();
    let changes = change(&yard, |root| {
        fs::set_permissions(root.join("a.txt"), fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink("a.txt", root.join("link")).unwrap();
    })
    .await;
    assert_eq!(
        changes.files,
        [file("a.txt", ChangeKind::Edited, 0, 0), file("link", ChangeKind::Added, 1, 0)]
    );
    assert!(changes.patch.contains("new mode 100755") && changes.patch.contains("new file mode 120000"));
}
