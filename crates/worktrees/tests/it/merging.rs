//! The work of a worktree comes back to where it was made from: merged as commits, or applied as changes; or everything stays as it was,
//! and the files that are in the way are named.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use homing_worktrees::git::{Git, GitError, MergeError, Merged, SnapshotMoment, SnapshotName};
use kernel::{MergeHow, SessionId};

use super::cycles::count;
use super::killed::dying_git;
use super::{Everything, Yard, cut_at, difference, everything, named, plain, plain_command, write};

/// More steps than a merge has.
const STEPS_MAX: usize = 60;
/// More runs of git than a merge has.
const RUNS_MAX: usize = 120;

const SAFETY: SnapshotName =
    SnapshotName { session: SessionId::from_bits(7), turn: 0, moment: SnapshotMoment::Safety };

/// Everything of a repository that a person could miss: files, HEAD, index, branches, their moves, the stash.
#[derive(Debug, PartialEq)]
struct Seen {
    files: Everything,
    said: Vec<String>,
}

impl Seen {
    fn of(root: &Path) -> Self {
        let said = [
            &["rev-parse", "HEAD"][..],
            &["ls-files", "-s"],
            &["status", "--porcelain"],
            &["for-each-ref"],
            &["reflog", "main"],
            &["reflog", "HEAD"],
            &["stash", "list"],
        ];
        let is_locked = root.join(".git/index.lock").exists() || root.join(".git/index.homing").exists();
        assert!(!is_locked, "a lock is left");
        Self { files: everything(root), said: said.iter().map(|words| plain(root, words)).collect() }
    }

    fn is(&self, other: &Self, words: &str) {
        assert_eq!(difference(&self.files, &other.files), [""; 0], "{words}");
        assert_eq!(self.said, other.said, "{words}");
    }
}

async fn merge(git: &Git, how: MergeHow) -> Result<Merged, MergeError> {
    git.merge(&named("one"), how, &SAFETY).await
}

fn paths(names: &[&str]) -> Vec<PathBuf> {
    names.iter().map(PathBuf::from).collect()
}

/// A worktree with a commit of its own: a file changed, one new in a new directory, one gone, one made executable.
async fn worked(yard: &Yard) -> PathBuf {
    let root = yard.enter("one").await.root;
    work(&root);
    root
}

fn work(root: &Path) {
    write(&root.join("a.txt"), b"one\ntwo, changed\nthree\n");
    write(&root.join("new/deep.txt"), b"new\n");
    fs::remove_file(root.join("sub/b.txt")).unwrap();
    fs::set_permissions(root.join(".gitignore"), fs::Permissions::from_mode(0o755)).unwrap();
    plain(root, &["add", "-A"]);
    plain(root, &["commit", "-q", "-m", "work"]);
}

/// A commit beside it where it was made from, and something there that is changed and staged, of other files.
fn go_on_at_home(yard: &Yard) {
    yard.write("home.txt", "home\n");
    yard.plain(&["add", "home.txt"]);
    yard.plain(&["commit", "-q", "-m", "home"]);
    yard.write("home.txt", "home, changed\n");
    yard.write("staged.txt", "staged\n");
    yard.plain(&["add", "staged.txt"]);
    yard.write("untracked.txt", "untracked\n");
}

const WORK: [&str; 4] = [".gitignore", "a.txt", "new/deep.txt", "sub/b.txt"];

#[tokio::test]
async fn a_branch_is_merged_as_git_would_and_everything_else_stays() {
    let yard = Yard::new();
    yard.plain(&["config", "user.name", "Ann"]);
    yard.plain(&["config", "user.email", "ann@example.org"]);
    worked(&yard).await;
    go_on_at_home(&yard);
    // The same by git itself, in a copy.
    let copy = yard.place.path().join("copy");
    plain(yard.place.path(), &["clone", "-q", yard.repository.to_str().unwrap(), copy.to_str().unwrap()]);
    plain(&copy, &["merge", "-q", "--no-edit", "origin/homing/one"]);

    let before = yard.plain(&["rev-parse", "HEAD"]);
    let seen = yard.git.preview_merge(&named("one"), MergeHow::Merge).await.unwrap();
    assert_eq!((seen.files.clone(), seen.branch.as_deref()), (paths(&WORK), Some("main")));
    assert_eq!(yard.plain(&["rev-parse", "HEAD"]), before, "only looked at");
    let done = merge(&yard.git, MergeHow::Merge).await.unwrap();
    assert_eq!(done.files, paths(&WORK));
    assert_eq!(yard.plain(&["rev-parse", "HEAD^{tree}"]), plain(&copy, &["rev-parse", "HEAD^{tree}"]));
    assert_eq!(
        yard.plain(&["log", "-1", "--format=%s|%an|%ce"]),
        "Merge branch 'homing/one' into main|Ann|ann@example.org"
    );
    let parents = [before.clone(), yard.plain(&["rev-parse", "homing/one"])].join(" ");
    assert_eq!(yard.plain(&["log", "-1", "--format=%P"]), parents);
    assert_eq!(
        yard.plain(&["status", "--porcelain"]),
        "M home.txt\nA  staged.txt\n?? untracked.txt".replace("M home", " M home")
    );
    assert_eq!(yard.plain(&["rev-parse", "HEAD@{1}"]), before, "git's own list has the move");
    assert_eq!(yard.plain(&["rev-parse", "ORIG_HEAD"]), before);
    yard.plain(&["fsck", "--strict", "--no-dangling"]);
    Seen::of(&yard.repository);
    // Asked again, everything is there.
    let again = merge(&yard.git, MergeHow::Merge).await.unwrap();
    assert_eq!((again.files, again.moved), (vec![], None));
    // The safety snapshot has everything as it was, and git takes the rest back.
    let kept = done.safety.unwrap();
    assert_eq!(yard.ours(&["show", &format!("{kept}:a.txt")]), "one\ntwo\nthree");
    yard.plain(&["reset", "-q", "--keep", &done.moved.unwrap().0]);
    assert_eq!(fs::read(yard.repository.join("a.txt")).unwrap(), b"one\ntwo\nthree\n");
}

#[tokio::test]
async fn a_branch_that_is_simply_ahead_becomes_the_branch_there() {
    let yard = Yard::new();
    let root = worked(&yard).await;
    merge(&yard.git, MergeHow::Merge).await.unwrap();
    assert_eq!(yard.plain(&["rev-parse", "HEAD"]), plain(&root, &["rev-parse", "HEAD"]));
    assert_eq!(yard.plain(&["status", "--porcelain"]), "");
    assert_eq!(fs::metadata(yard.repository.join(".gitignore")).unwrap().permissions().mode() & 0o777, 0o755);
    assert!(!yard.repository.join("sub/b.txt").exists());
}

#[tokio::test]
async fn everything_is_applied_and_neither_the_branch_nor_what_is_staged_moves() {
    let yard = Yard::new();
    let root = worked(&yard).await;
    write(&root.join("a.txt"), b"one\ntwo, changed\nthree, not committed\n");
    write(&root.join("untracked"), b"\x00\xff");
    write(&root.join("x.ignored"), b"ignored");
    go_on_at_home(&yard);
    let (before, index) = (yard.plain(&["for-each-ref"]), yard.plain(&["ls-files", "-s"]));
    let done = merge(&yard.git, MergeHow::Apply).await.unwrap();
    assert_eq!(done.files, paths(&[".gitignore", "a.txt", "new/deep.txt", "sub/b.txt", "untracked"]));
    assert_eq!((yard.plain(&["for-each-ref"]), yard.plain(&["ls-files", "-s"])), (before, index));
    for name in ["a.txt", "untracked", "new/deep.txt"] {
        assert_eq!(
            fs::read(yard.repository.join(name)).unwrap(),
            fs::read(root.join(name)).unwrap(),
            "{name}"
        );
    }
    assert!(!yard.repository.join("sub/b.txt").exists() && !yard.repository.join("x.ignored").exists());
    assert_eq!(fs::read(yard.repository.join("home.txt")).unwrap(), b"home, changed\n");
    let again = merge(&yard.git, MergeHow::Apply).await.unwrap();
    assert_eq!((again.files, again.safety), (vec![], None), "everything is there");
}

/// The files that are named, and how they come to be in the way.
type Spoil = (&'static [&'static str], fn(&Yard));

/// Nothing is changed, and these are named.
async fn refused(yard: &Yard, how: MergeHow) -> MergeError {
    let before = Seen::of(&yard.repository);
    yard.git.preview_merge(&named("one"), how).await.unwrap_err();
    let why = merge(&yard.git, how).await.unwrap_err();
    Seen::of(&yard.repository).is(&before, &why.to_string());
    why
}

#[tokio::test]
async fn what_is_in_the_way_is_named_and_nothing_is_changed() {
    let yard = Yard::new();
    let root = worked(&yard).await;
    // Not committed in the worktree.
    write(&root.join("left"), b"over");
    match refused(&yard, MergeHow::Merge).await {
        MergeError::Uncommitted { files } => assert_eq!(files, paths(&["left"])),
        why => panic!("{why}"),
    }
    fs::remove_file(root.join("left")).unwrap();
    for how in [MergeHow::Merge, MergeHow::Apply] {
        // Changed, staged, untracked, ignored, or a file where a directory has to be.
        let spoil: [Spoil; 5] = [
            (&["a.txt"], |yard| yard.write("a.txt", "mine\n")),
            (&["a.txt"], |yard| {
                yard.write("a.txt", "mine\n");
                yard.plain(&["add", "a.txt"]);
            }),
            (&["new/deep.txt"], |yard| yard.write("new/deep.txt", "mine\n")),
            (&["new/deep.txt"], |yard| {
                write(&yard.repository.join(".git/info/exclude"), b"/new/\n");
                yard.write("new/deep.txt", "mine\n");
            }),
            (&["new", "new/deep.txt"], |yard| yard.write("new", "mine\n")),
        ];
        for (named_there, spoil) in spoil {
            spoil(&yard);
            match refused(&yard, how).await {
                MergeError::Changed { files, .. } => assert_eq!(files, paths(named_there)),
                why => panic!("{why}"),
            }
            yard.plain(&["reset", "-q", "--hard"]);
            yard.plain(&["clean", "-q", "-f", "-d", "-x"]);
            let _ = fs::remove_file(yard.repository.join(".git/info/exclude"));
        }
        // A merge that somebody has begun.
        yard.plain(&["checkout", "-q", "-b", "other"]);
        yard.write("c", "other");
        yard.plain(&["add", "."]);
        yard.plain(&["commit", "-q", "-m", "other"]);
        yard.plain(&["checkout", "-q", "main"]);
        yard.plain(&["merge", "-q", "--no-ff", "--no-commit", "other"]);
        assert!(matches!(refused(&yard, how).await, MergeError::UnderWay { what: "a merge", .. }));
        yard.plain(&["merge", "--abort"]);
        yard.plain(&["branch", "-q", "-D", "other"]);
    }
    yard.plain(&["checkout", "-q", "--detach"]);
    assert!(matches!(refused(&yard, MergeHow::Merge).await, MergeError::NoBranch(_)));
    yard.plain(&["checkout", "-q", "main"]);
    // Changed on both sides.
    yard.write("a.txt", "one\ntwo, otherwise\nthree\n");
    yard.write("sub/b.txt", "changed, and gone there\n");
    yard.plain(&["commit", "-q", "-a", "-m", "otherwise"]);
    for how in [MergeHow::Merge, MergeHow::Apply] {
        match refused(&yard, how).await {
            MergeError::Conflicts { files } => assert_eq!(files, paths(&["a.txt", "sub/b.txt"])),
            why => panic!("{why}"),
        }
    }
    // A git of theirs that is at it.
    yard.plain(&["reset", "-q", "--hard", "HEAD~1"]);
    write(&yard.repository.join(".git/index.lock"), b"");
    let why = merge(&yard.git, MergeHow::Merge).await.unwrap_err();
    assert!(matches!(why, MergeError::Trouble(GitError::Busy(_))), "{why}");
    assert!(yard.repository.join(".git/index.lock").exists(), "it is theirs");
}

#[tokio::test]
async fn ends_of_lines_and_hooks_are_as_the_repository_and_we_say() {
    let yard = Yard::new();
    yard.write(".gitattributes", "*.txt text eol=crlf\n");
    yard.plain(&["add", "."]);
    yard.plain(&["commit", "-q", "-m", "ends of lines"]);
    yard.plain(&["rm", "-q", "-r", "--cached", "."]);
    yard.plain(&["reset", "-q", "--hard"]);
    for hook in ["pre-merge-commit", "commit-msg", "post-merge", "reference-transaction", "post-checkout"] {
        let path = yard.repository.join(".git/hooks").join(hook);
        write(&path, b"#!/bin/sh\ntouch ran\n");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let root = yard.enter("one").await.root;
    write(&root.join("a.txt"), b"one\r\ntwo, changed\r\nthree\r\n");
    write(&root.join("new.txt"), b"new\r\n");
    merge(&yard.git, MergeHow::Apply).await.unwrap();
    assert_eq!(fs::read(yard.repository.join("a.txt")).unwrap(), b"one\r\ntwo, changed\r\nthree\r\n");
    assert_eq!(fs::read(yard.repository.join("new.txt")).unwrap(), b"new\r\n");
    yard.plain(&["reset", "-q", "--hard"]);
    yard.plain(&["clean", "-q", "-f"]);
    plain_command(&root).args(["-c", "core.hooksPath=/dev/null", "add", "-A"]).output().unwrap();
    plain(&root, &["-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", "work"]);
    merge(&yard.git, MergeHow::Merge).await.unwrap();
    assert_eq!(fs::read(yard.repository.join("new.txt")).unwrap(), b"new\r\n");
    assert_eq!(yard.plain(&["status", "--porcelain"]), "");
    assert!(!yard.repository.join("ran").exists() && !root.join("ran").exists(), "no hook ran");
}

/// A worktree whose work can come back, again and again: what there is before, and after.
struct Again {
    yard: Yard,
    how: MergeHow,
    head: String,
    old: Seen,
    new: Seen,
}

impl Again {
    async fn new(how: MergeHow) -> Self {
        let yard = Yard::new();
        let root = worked(&yard).await;
        go_on_at_home(&yard);
        if how == MergeHow::Apply {
            write(&root.join("untracked.new"), b"untracked");
        }
        let head = yard.plain(&["rev-parse", "HEAD"]);
        let old = Seen::of(&yard.repository);
        merge(&yard.git, how).await.unwrap();
        let new = Seen::of(&yard.repository);
        Self { yard, how, head, old, new }
    }

    fn take_back(&self) {
        self.yard.plain(&["reset", "-q", "--hard", &self.head]);
        self.yard.plain(&["clean", "-q", "-f", "-d"]);
        self.yard.write("home.txt", "home, changed\n");
        self.yard.write("staged.txt", "staged\n");
        self.yard.plain(&["add", "staged.txt"]);
        self.yard.write("untracked.txt", "untracked\n");
        assert_eq!(difference(&everything(&self.yard.repository), &self.old.files), [""; 0]);
    }

    /// Asked again, everything is as it is after it.
    async fn ends(&self, words: &str) {
        merge(&self.yard.git, self.how).await.unwrap_or_else(|why| panic!("{words}: {why}"));
        let now = Seen::of(&self.yard.repository);
        assert_eq!(difference(&now.files, &self.new.files), [""; 0], "{words}");
        assert_eq!(now.said[1..3], self.new.said[1..3], "index and status, {words}");
        if self.how == MergeHow::Merge {
            assert_eq!(
                self.yard.plain(&["rev-parse", "main@{1}", "HEAD@{1}"]),
                [&*self.head, &*self.head].join("\n"),
                "{words}"
            );
            self.yard.plain(&["fsck", "--strict", "--no-dangling"]);
        }
    }
}

async fn goes_on_from_every_step(how: MergeHow) {
    let again = Again::new(how).await;
    for step in 1.. {
        assert!(step < STEPS_MAX, "it has no end");
        again.take_back();
        again.yard.git.stop_at_step(step);
        let stopped = merge(&again.yard.git, how).await;
        again.yard.git.stop_at_step(0);
        again.ends(&format!("at {step}")).await;
        match stopped {
            Err(MergeError::Trouble(GitError::Stopped(_))) => {}
            Ok(_) => return cut_at(&format!("{how:?}"), step - 1),
            Err(why) => panic!("{why}"),
        }
    }
}

#[tokio::test]
async fn a_merge_goes_on_from_every_step() {
    goes_on_from_every_step(MergeHow::Merge).await;
}

#[tokio::test]
async fn an_apply_goes_on_from_every_step() {
    goes_on_from_every_step(MergeHow::Apply).await;
}

/// All runs of git in `cargo xtask nightly`, every third one otherwise.
async fn goes_on_from_every_run_of_git(how: MergeHow) {
    let again = Again::new(how).await;
    let place = again.yard.place.path();
    let every = 300 / count("HOMING_CYCLES", 100).clamp(1, 300);
    for run in (1..).step_by(every as usize) {
        assert!(run < RUNS_MAX, "it has no end");
        again.take_back();
        let stopped = merge(&dying_git(place, run, 1_000), how).await;
        if stopped.is_err() {
            // Whoever could not go on has left everything as it was.
            let now = Seen::of(&again.yard.repository);
            assert_eq!(difference(&now.files, &again.old.files), [""; 0], "at run {run}");
            assert_eq!(now.said[1..3], again.old.said[1..3], "at run {run}");
        }
        let runs = fs::read_to_string(place.join("count")).unwrap().lines().count();
        again.ends(&format!("at run {run}")).await;
        if runs < run {
            return;
        }
    }
}

#[tokio::test]
async fn a_merge_goes_on_from_every_run_of_git_that_is_killed() {
    goes_on_from_every_run_of_git(MergeHow::Merge).await;
}

#[tokio::test]
async fn an_apply_goes_on_from_every_run_of_git_that_is_killed() {
    goes_on_from_every_run_of_git(MergeHow::Apply).await;
}

#[tokio::test]
async fn one_that_was_deleted_by_hand_is_merged_all_the_same() {
    let yard = Yard::new();
    let root = worked(&yard).await;
    fs::remove_dir_all(&root).unwrap();
    let done = merge(&yard.git, MergeHow::Merge).await.unwrap();
    assert_eq!(done.files, paths(&WORK));
    assert!(root.join("new/deep.txt").exists());
}
