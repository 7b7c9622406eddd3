//! The difference between two snapshots: files, lines, and a patch with an end.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use engine::PatchPlace;
use homing_worktrees::git::{ChangeKind, Changes, FileChange, GitError, Snapshot, SnapshotMoment};

use super::{Yard, named, plain, snapshot_name, write};

/// A change of files.
async fn change(yard: &Yard, change: impl FnOnce(&Path)) -> Changes {
    let (before, after) = sides(yard, change).await;
    yard.git.diff(&before, &after).await.unwrap()
}

/// The snapshots before and after a change of files.
async fn sides(yard: &Yard, change: impl FnOnce(&Path)) -> (Snapshot, Snapshot) {
    let before = yard
        .git
        .snapshot(&yard.repository, &snapshot_name(1, SnapshotMoment::Before))
        .await
        .unwrap()
        .unwrap();
    change(&yard.repository);
    let after =
        yard.git.snapshot(&yard.repository, &snapshot_name(1, SnapshotMoment::After)).await.unwrap().unwrap();
    (before, after)
}

/// The pieces of a file's patch, one after the other.
async fn pieces(yard: &Yard, (before, after): &(Snapshot, Snapshot), path: &str) -> Vec<String> {
    let (mut pieces, mut byte) = (Vec::new(), 0);
    loop {
        let place = PatchPlace { path: path.to_owned(), byte };
        let told = yard.git.diff_file(before, after, &place).await.unwrap().expect("it has changed");
        pieces.push(told.patch);
        match told.next {
            Some(next) => byte = next,
            None => return pieces,
        }
    }
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

/// The bytes of a piece, as the limits have it.
const PIECE_BYTES_MAX: usize = 256 * 1024;

#[tokio::test]
async fn the_patch_of_one_file_is_told_whole_piece_by_piece() {
    let yard = Yard::new();
    let long: String =
        (0..100_000).map(|line| format!("line {line}, of {}\n", "ü".repeat(line % 9))).collect();
    let seen = sides(&yard, |root| {
        write(&root.join("long"), long.as_bytes());
        write(&root.join("other"), b"something else\n");
        write(&root.join("one-line"), "ü".repeat(400_001).as_bytes());
    })
    .await;
    let told = pieces(&yard, &seen, "long").await;
    assert!(
        told.len() > 5 && told.iter().all(|piece| piece.len() <= PIECE_BYTES_MAX && piece.ends_with('\n'))
    );
    let added = told.concat();
    assert!(added.starts_with("diff --git a/long b/long\nnew file mode 100644\n"), "and of no other file");
    let lines: String =
        added.lines().skip(6).filter_map(|line| Some(format!("{}\n", line.strip_prefix('+')?))).collect();
    assert!(lines == long, "nothing is lost or told twice where pieces meet");
    // A line that is longer than a piece is cut between letters.
    let told = pieces(&yard, &seen, "one-line").await;
    assert!(told.len() > 3 && told.iter().all(|piece| !piece.contains('\u{fffd}')));
    assert_eq!(told.concat().matches('ü').count(), 400_001);
    let nothing = PatchPlace { path: "a.txt".into(), byte: 0 };
    assert_eq!(yard.git.diff_file(&seen.0, &seen.1, &nothing).await.unwrap(), None);
    let beyond = PatchPlace { path: "other".into(), byte: 1 << 20 };
    let told = yard.git.diff_file(&seen.0, &seen.1, &beyond).await.unwrap().unwrap();
    assert_eq!((told.patch.as_str(), told.next), ("", None));
}

#[tokio::test]
async fn one_file_is_named_as_it_is_shown() {
    let yard = Yard::new();
    let long = (0..50).map(|line| format!("line {line}\n")).collect::<String>();
    yard.write("long.txt", &long);
    let seen = sides(&yard, |root| {
        fs::rename(root.join("long.txt"), root.join("*")).unwrap();
        write(&root.join("*"), format!("{long}more\n").as_bytes());
        write(&root.join(OsStr::from_bytes(b"\xff")), b"odd\n");
        write(&root.join("sub/-rf"), b"x\n");
    })
    .await;
    let renamed = pieces(&yard, &seen, "*").await.concat();
    assert!(renamed.contains("rename from long.txt\n") && renamed.ends_with("+more\n"), "{renamed}");
    assert_eq!(renamed.matches("diff --git").count(), 1, "a star is a name");
    assert!(pieces(&yard, &seen, "\u{fffd}").await.concat().ends_with("+odd\n"));
    assert!(pieces(&yard, &seen, "sub/-rf").await.concat().ends_with("+x\n"));
}

#[tokio::test]
async fn everything_of_a_worktree_since_it_was_made_is_told() {
    let yard = Yard::new();
    let root = yard.enter("one").await.root;
    let base = yard.plain(&["rev-parse", "HEAD"]);
    let none = yard.git.diff_since_base(&named("one")).await.unwrap();
    assert_eq!((none.base.as_str(), none.changes), (base.as_str(), Changes::default()));
    write(&root.join("a.txt"), b"one\n2\nthree\n");
    plain(&root, &["commit", "-q", "-a", "-m", "work"]);
    write(&root.join("staged.txt"), b"staged\n");
    plain(&root, &["add", "staged.txt"]);
    write(&root.join("untracked.txt"), b"untracked\n");
    // The repository goes on, which is none of the worktree's doing.
    yard.write("home.txt", "home\n");
    yard.plain(&["add", "home.txt"]);
    yard.plain(&["commit", "-q", "-m", "home"]);
    let told = yard.git.diff_since_base(&named("one")).await.unwrap();
    let expected = [
        file("a.txt", ChangeKind::Edited, 1, 1),
        file("staged.txt", ChangeKind::Added, 1, 0),
        file("untracked.txt", ChangeKind::Added, 1, 0),
    ];
    assert_eq!((told.base.as_str(), &told.changes.files[..]), (base.as_str(), &expected[..]));
    let place = PatchPlace { path: "a.txt".into(), byte: 0 };
    let one = yard.git.diff_file_since_base(&named("one"), &place).await.unwrap().unwrap();
    assert!(one.patch.contains("-two\n+2\n") && !one.patch.contains("staged"), "{}", one.patch);
    assert_eq!(
        plain(&root, &["status", "--porcelain"]),
        "A  staged.txt\n?? untracked.txt",
        "nothing was changed"
    );
    // What is not there, or not whole, is not looked at.
    let gone = yard.git.diff_since_base(&named("two")).await;
    assert!(matches!(gone, Err(GitError::NoSuchWorktree(_))), "{gone:?}");
    fs::remove_dir_all(&root).unwrap();
    let gone = yard.git.diff_since_base(&named("one")).await;
    assert!(matches!(gone, Err(GitError::NoSuchWorktree(_))), "{gone:?}");
}
