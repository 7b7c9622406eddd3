//! Many worktrees made, worked in, removed and given back: no byte lost, nothing outside touched, the disk bounded.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

use homing_worktrees::git::{
    CollectPolicy, Collected, Git, GitDirectories, GitError, GitLimits, SnapshotMoment,
};
use kernel::SessionId;

use super::{Yard, difference, everything, named, plain, plain_command, snapshot_name, write};

/// The files that somebody leaves in a worktree. Each is a bit of the number of the cycle.
fn leave(root: &Path, number: usize, module: &str) {
    let mess: [fn(&Path, usize, &str); 8] = [
        |root, number, _| {
            write(&root.join("a.txt"), format!("dirty {number}\r\n").as_bytes());
            fs::remove_file(root.join("sub/b.txt")).unwrap();
        },
        |root, _, _| {
            for name in [
                &b"new"[..],
                "ünïcödé/日本".as_bytes(),
                b"-rf",
                b"--force",
                b"\xff\xfe",
                b"new\nline",
                b"git~1",
                b"a:b\\c",
            ] {
                write(&root.join(OsStr::from_bytes(name)), name);
            }
        },
        |root, number, _| {
            write(&root.join("x.ignored"), &vec![b'i'; number]);
            write(&root.join("build/deep/output"), &[0, 159, 146, 150]);
            write(&root.join("build/secret"), b"secret");
            fs::set_permissions(root.join("build/secret"), fs::Permissions::from_mode(0o600)).unwrap();
            fs::set_permissions(root.join("build/deep"), fs::Permissions::from_mode(0o700)).unwrap();
            symlink("/etc/passwd", root.join("build/link")).unwrap();
        },
        |root, _, module| {
            plain(root, &["submodule", "--quiet", "add", module, "module"]);
            write(&root.join("module/a.txt"), b"dirty in the module");
            write(&root.join("module/x.ignored"), b"ignored in the module");
            plain(&root.join("module"), &["commit", "-q", "-a", "-m", "in the module"]);
            write(&root.join("module/untracked"), b"untracked in the module");
        },
        |root, _, _| {
            symlink("/", root.join("way-out")).unwrap();
            symlink("../../..", root.join("sub/up")).unwrap();
            symlink("nowhere", root.join("dangling")).unwrap();
            fs::create_dir_all(root.join("empty/deeper")).unwrap();
        },
        |root, number, _| {
            write(&root.join("staged"), format!("staged {number}").as_bytes());
            plain(root, &["add", "staged"]);
            write(&root.join("staged"), b"and changed after");
            fs::set_permissions(root.join(".gitignore"), fs::Permissions::from_mode(0o755)).unwrap();
        },
        |root, number, _| {
            write(&root.join("committed"), format!("{number}").as_bytes());
            plain(root, &["add", "committed"]);
            plain(root, &["commit", "-q", "-m", "work"]);
        },
        |root, _, _| {
            let nested = root.join("nested");
            fs::create_dir(&nested).unwrap();
            plain(&nested, &["init", "-q"]);
            write(&nested.join("work"), b"work in a clone of its own");
            write(&nested.join(".git/hooks/post-commit"), b"#!/bin/sh\n");
        },
    ];
    for (at, leave) in mess.iter().enumerate() {
        if number >> at & 1 == 1 {
            leave(root, number, module);
        }
    }
}

/// The state of a worktree by git, beside its files.
fn said_by_git(root: &Path) -> [String; 4] {
    let head = plain_command(root).args(["rev-parse", "HEAD"]).output().unwrap();
    [
        String::from_utf8_lossy(&head.stdout).into_owned(),
        plain(root, &["branch", "--show-current"]),
        plain(root, &["ls-files", "-s"]),
        plain(root, &["status", "--porcelain", "--ignored"]),
    ]
}

/// A share of the cycles, in a repository of its own.
async fn cycle(numbers: impl Iterator<Item = usize>) {
    let (yard, module) = (Yard::new(), Yard::new());
    let (outside, refs) = (everything(&yard.repository), yard.plain(&["branch"]));
    let every = 300 / count("HOMING_CYCLES", 100).clamp(1, 300);
    for number in numbers.step_by(every as usize) {
        let name = format!("w-{number}");
        let root = yard.enter(&name).await.directory;
        leave(&root, number, module.repository.to_str().unwrap());
        let (files, said) = (everything(&root), said_by_git(&root));
        let removed =
            yard.git.remove(&named(&name), &snapshot_name(number as u64, SnapshotMoment::Removed)).await;
        let snapshot = removed.unwrap_or_else(|why| panic!("{number}: {why}")).snapshot;
        assert!(!root.exists(), "{number}");
        // As if git had tidied up in between.
        if number % 8 == 0 {
            yard.plain(&["gc", "-q", "--prune=now"]);
        }
        let again = yard.git.restore(&yard.repository, &snapshot, &named(&name)).await.unwrap();
        assert_eq!(difference(&files, &everything(&again.root)), [""; 0], "{number}");
        assert_eq!(said_by_git(&again.root), said, "{number}");
        let last = snapshot_name(1_000_000 + number as u64, SnapshotMoment::Removed);
        yard.git.remove(&named(&name), &last).await.unwrap();
        assert!(!root.exists());
    }
    assert_eq!(difference(&outside, &everything(&yard.repository)), [""; 0]);
    for kept in yard.plain(&["branch"]).lines().filter(|branch| !refs.contains(*branch)) {
        assert!(kept.trim().starts_with("homing/w-"), "{kept}");
    }
    assert_eq!(yard.git.list(None).await.unwrap(), []);
    nothing_is_left(&yard);
}

pub(super) fn count(name: &str, or: u64) -> u64 {
    std::env::var(name).map_or(or, |value| value.parse().expect("a number"))
}

/// After everything is removed and has expired, there is next to nothing in our directories.
fn nothing_is_left(yard: &Yard) {
    let data = yard.place.path().join("data");
    let left = everything(&data.join("worktrees"));
    assert!(left.values().all(|(mode, _)| mode & 0o40000 != 0), "{:?}", left.keys());
    // Snapshots of removed worktrees stay.
    let ours = everything(&data.join("git")).into_iter().filter(|(path, _)| !path.starts_with(b"snapshots/"));
    let bytes: usize = ours.map(|(_, (_, bytes))| bytes.len()).sum();
    assert!(bytes < 200_000, "{bytes} bytes of ours are left");
    assert!(!yard.repository.join(".git/worktrees").read_dir().is_ok_and(|mut left| left.next().is_some()));
}

// Each number is two cycles: made and removed, given back and removed. Together they are 300, in six tests that run beside
// each other. `HOMING_CYCLES` says how many of them are gone through: 100 by default, all in `cargo xtask nightly`.

#[tokio::test]
async fn no_byte_is_lost_in_cycles_with_few_messes() {
    cycle((0..25).map(|number| number * 5)).await;
}

#[tokio::test]
async fn no_byte_is_lost_in_cycles_with_some_messes() {
    cycle((25..50).map(|number| number * 5)).await;
}

#[tokio::test]
async fn no_byte_is_lost_in_cycles_with_many_messes() {
    cycle((0..25).map(|number| 255 - number)).await;
}

#[tokio::test]
async fn no_byte_is_lost_in_cycles_with_most_messes() {
    cycle((25..50).map(|number| 255 - number)).await;
}

#[tokio::test]
async fn no_byte_is_lost_in_cycles_with_mixed_messes() {
    cycle((0..25).map(|number| number * 37 % 256)).await;
}

#[tokio::test]
async fn no_byte_is_lost_in_cycles_with_all_kinds_of_messes() {
    cycle((25..50).map(|number| number * 37 % 256)).await;
}

#[tokio::test]
async fn a_merge_under_way_and_what_was_reset_away_come_back() {
    let yard = Yard::new();
    let root = yard.enter("one").await.directory;
    write(&root.join("a.txt"), b"reset away\n");
    plain(&root, &["commit", "-q", "-a", "-m", "reset away"]);
    let lost = plain(&root, &["rev-parse", "HEAD"]);
    plain(&root, &["reset", "-q", "--hard", "HEAD~1"]);
    yard.write("a.txt", "theirs\n");
    yard.plain(&["commit", "-q", "-a", "-m", "theirs"]);
    write(&root.join("a.txt"), b"ours\n");
    plain(&root, &["commit", "-q", "-a", "-m", "ours"]);
    assert!(!plain_command(&root).args(["merge", "main"]).output().unwrap().status.success());
    let (files, said) = (everything(&root), said_by_git(&root));
    let name = snapshot_name(1, SnapshotMoment::Removed);
    let removed = yard.git.remove(&named("one"), &name).await.unwrap();
    yard.plain(&["gc", "-q", "--prune=now"]);
    assert_eq!(yard.ours(&["show", &format!("{lost}:a.txt")]), "reset away");
    let again = yard.git.restore(&yard.repository, &removed.snapshot, &named("one")).await.unwrap();
    assert_eq!(difference(&files, &everything(&again.root)), [""; 0]);
    assert_eq!(said_by_git(&again.root), said);
    assert!(plain(&again.root, &["status"]).contains("You have unmerged paths"));
    assert_eq!(plain(&again.root, &["show", &format!("{lost}:a.txt")]), "reset away", "the reflog names it");
}

#[tokio::test]
async fn a_fork_goes_on_beside_the_first() {
    let yard = Yard::new();
    let root = yard.enter("one").await.root;
    write(&root.join("a.txt"), b"after the first turn");
    write(&root.join("new"), b"new");
    let after = yard.git.snapshot(&root, &snapshot_name(1, SnapshotMoment::After)).await.unwrap().unwrap();
    let files = everything(&root);
    write(&root.join("a.txt"), b"after the second turn");
    let fork = yard.git.fork(&yard.repository, &after, &named("two"), None).await.unwrap();
    assert_eq!(difference(&files, &everything(&fork.root)), [""; 0]);
    assert_eq!(fork.branch.as_deref(), Some("homing/two"));
    assert_eq!(fork, yard.git.fork(&yard.repository, &after, &named("two"), None).await.unwrap());
    assert_eq!(plain(&fork.root, &["status", "--porcelain"]), " M a.txt\n?? new");
    // Without a branch of its own it is on none: the first one has it.
    let beside = yard.git.restore(&yard.repository, &after, &named("three")).await.unwrap();
    assert_eq!(beside.branch, None);
    assert_eq!(fs::read(root.join("a.txt")).unwrap(), b"after the second turn");
}

#[tokio::test]
async fn too_much_of_what_git_ignores_is_not_removed() {
    let yard = Yard::new();
    let place = yard.place.path();
    let places = GitDirectories { worktrees: place.join("w"), work: place.join("s"), own: place.join("g") };
    let bounds = GitLimits { kept_bytes_max: 10_000, ..GitLimits::default() };
    let git = Git::new(Path::new("git"), places, bounds).unwrap();
    let root = git.enter(yard.wish("one")).await.unwrap().directory;
    write(&root.join("build/large"), &[0; 20_000]);
    let refused = git.remove(&named("one"), &snapshot_name(1, SnapshotMoment::Removed)).await;
    match refused {
        Err(GitError::TooLarge { largest, .. }) => assert_eq!(largest, [Path::new("build")]),
        other => panic!("{other:?}"),
    }
    assert!(root.join("build/large").exists());
    assert_eq!(plain(&root, &["status", "--porcelain"]), "");
    fs::remove_dir_all(root.join("build")).unwrap();
    git.remove(&named("one"), &snapshot_name(1, SnapshotMoment::Removed)).await.unwrap();
}

#[tokio::test]
async fn a_branch_goes_only_if_nothing_was_done_on_it() {
    let yard = Yard::new();
    yard.enter("idle").await;
    let busy = yard.enter("busy").await.directory;
    plain(&busy, &["commit", "-q", "--allow-empty", "-m", "work"]);
    let removed = yard.git.remove(&named("idle"), &snapshot_name(1, SnapshotMoment::Removed)).await.unwrap();
    yard.git.remove(&named("busy"), &snapshot_name(1, SnapshotMoment::Removed)).await.unwrap();
    assert_eq!(yard.plain(&["branch", "--format=%(refname:short)"]), "homing/busy\nmain");
    let again = yard.git.restore(&yard.repository, &removed.snapshot, &named("idle")).await.unwrap();
    assert_eq!(again.branch.as_deref(), Some("homing/idle"));
    let gone = yard.git.remove(&named("never"), &snapshot_name(1, SnapshotMoment::Removed)).await;
    assert!(matches!(gone, Err(GitError::NoSuchWorktree(_))));
}

#[tokio::test]
async fn a_directory_that_somebody_deleted_can_be_removed_with_what_was_staged() {
    let yard = Yard::new();
    let root = yard.enter("one").await.directory;
    write(&root.join("staged"), b"staged");
    plain(&root, &["add", "staged"]);
    fs::remove_dir_all(&root).unwrap();
    let removed = yard.git.remove(&named("one"), &snapshot_name(1, SnapshotMoment::Removed)).await.unwrap();
    let again = yard.git.restore(&yard.repository, &removed.snapshot, &named("one")).await.unwrap();
    assert_eq!(plain(&again.root, &["show", ":staged"]), "staged");
}

#[tokio::test]
async fn a_worktree_that_was_tied_to_another_repository_is_saved_in_its_own() {
    let (yard, other) = (Yard::new(), Yard::new());
    let root = yard.enter("one").await.directory;
    let admin = other.repository.join(".git/worktrees/one");
    write(&admin.join("gitdir"), format!("{}\n", root.join(".git").display()).as_bytes());
    write(&admin.join("commondir"), b"../..\n");
    write(&admin.join("HEAD"), b"ref: refs/heads/main\n");
    fs::write(root.join(".git"), format!("gitdir: {}\n", admin.display())).unwrap();
    write(&root.join("work"), b"work");
    let removed = yard.git.remove(&named("one"), &snapshot_name(1, SnapshotMoment::Removed)).await.unwrap();
    assert_eq!(yard.ours(&["show", &format!("{}:work", removed.snapshot.commit)]), "work");
    assert!(admin.exists());
}

#[tokio::test]
async fn what_nobody_uses_goes_by_age_and_by_size() {
    let yard = Yard::new();
    for name in ["first", "second", "used"] {
        let root = yard.enter(name).await.directory;
        write(&root.join("work"), &[1; 50_000]);
    }
    let policy = |age: u64, bytes_max, snapshots: u64| CollectPolicy {
        age: Duration::from_secs(age),
        bytes_max,
        snapshot_age: Duration::from_secs(snapshots),
        in_use: BTreeSet::from([named("used")]),
        session: SessionId::from_bits(9),
    };
    let day = 86_400;
    assert!(yard.git.collect(&policy(day, u64::MAX, day)).await.unwrap().is_empty());
    let all: u64 = yard.git.list(None).await.unwrap().iter().map(|each| each.size_bytes).sum();
    let by_size = yard.git.collect(&policy(day, all - 1, day)).await.unwrap();
    let [Collected::Worktree { name, snapshot, .. }] = &by_size[..] else { panic!("{by_size:?}") };
    assert_eq!(name.as_str(), "first");
    let again = yard.git.restore(&yard.repository, snapshot, name).await.unwrap();
    assert_eq!(fs::read(again.root.join("work")).unwrap(), [1; 50_000]);
    let by_age = yard.git.collect(&policy(0, u64::MAX, day)).await.unwrap();
    assert_eq!(by_age.len(), 2, "{by_age:?}");
    let left = yard.git.list(None).await.unwrap();
    assert_eq!(left.iter().map(|each| each.name.as_str()).collect::<Vec<_>>(), ["used"]);
    yard.git.snapshot(&yard.repository, &snapshot_name(1, SnapshotMoment::After)).await.unwrap();
    let expired = yard.git.collect(&policy(day, u64::MAX, 0)).await.unwrap();
    let [Collected::Snapshot { reference, .. }] = &expired[..] else { panic!("{expired:?}") };
    assert!(reference.ends_with("/1/after"), "what was in a removed worktree is kept: {reference}");
    // One was restored since; the others can be.
    let removed = yard.git.removed().unwrap();
    let names: BTreeSet<_> = removed.iter().map(|removed| removed.name.as_str()).collect();
    assert_eq!(names, BTreeSet::from(["first", "second"]), "{removed:?}");
    for removed in removed {
        let again = yard.git.restore(&removed.repository, &removed.snapshot, &removed.name).await.unwrap();
        assert_eq!(fs::read(again.root.join("work")).unwrap(), [1; 50_000]);
    }
    assert!(yard.git.removed().unwrap().is_empty(), "what was restored is not removed any more");
}

#[tokio::test]
async fn the_files_of_a_directory_are_those_that_git_would_keep_and_no_link_leads_out() {
    let yard = Yard::new();
    let outside = tempfile::tempdir().unwrap();
    write(&outside.path().join("secret"), b"hush");
    let top = &yard.repository;
    write(&top.join(".gitignore"), b"ignored\n");
    write(&top.join("ignored"), b"no");
    write(&top.join("within/new \u{fc}"), b"yes");
    std::os::unix::fs::symlink(outside.path(), top.join("within/link")).unwrap();
    let files =
        async |directory: &std::path::Path, max| yard.git.files(directory, max).await.unwrap().unwrap();
    let shown = |files: &homing_worktrees::git::FileList| {
        files.paths.iter().map(|path| path.to_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let within = files(&top.join("within"), 10).await;
    assert_eq!((shown(&within), within.is_cut), (vec!["link".to_owned(), "new \u{fc}".to_owned()], false));
    let all = files(top, 1_000).await;
    assert!(shown(&all).contains(&"within/link".to_owned()) && !shown(&all).contains(&"ignored".to_owned()));
    assert!(!shown(&all).iter().any(|path| path.contains("secret") || path.contains(".git/")), "{all:?}");
    let first = files(top, 1).await;
    assert_eq!((first.paths.len(), first.is_cut), (1, true));
    // Outside of version control everything is named, and nothing behind a link.
    let plain = homing_worktrees::git::plain_files(outside.path(), 10).await.unwrap();
    assert_eq!(shown(&plain), ["secret"]);
    std::os::unix::fs::symlink(top, outside.path().join("link")).unwrap();
    let plain = homing_worktrees::git::plain_files(outside.path(), 10).await.unwrap();
    assert_eq!(shown(&plain), ["link", "secret"]);
    assert!(yard.git.files(outside.path(), 10).await.unwrap().is_none());
}
