//! The cost of a scope, for the bench: entering a worktree beside `git worktree add`, snapshots, and diffs of turns.
//!
//! `scope DIR FILES` makes a repository of so many files in DIR. Prints microseconds as JSON: each figure is the median of
//! a few, taken in turns with what it is compared with.

use homing_worktrees::git::{EnterRequest, Git, GitDirectories, GitLimits, SnapshotMoment, SnapshotName};
use kernel::SessionId;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// The number of times each is measured.
const TIMES: u64 = 5;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [dir, files] = &arguments[..] else { panic!("usage: scope DIR FILES") };
    let dir = std::path::absolute(dir).expect("a path");
    let files = files.parse().expect("a number of files");
    let repository = dir.join("repository");
    fill(&repository, files);
    let places =
        GitDirectories { worktrees: dir.join("worktrees"), work: dir.join("work"), own: dir.join("own") };
    let git = Git::new(Path::new("git"), places, GitLimits::default()).expect("places for it");
    let (mut enter, mut raw) = (Vec::new(), Vec::new());
    let mut root = PathBuf::new();
    for number in 0..TIMES {
        // Whoever is first pays for what the one before has left to be written: each is as often.
        if number % 2 == 0 {
            raw.push(add(&repository, &dir, number));
        }
        let name = format!("ours-{number}").parse().expect("a name");
        let began = Instant::now();
        let wish = EnterRequest {
            repository: &repository,
            name,
            base: None,
            branch: None,
            is_new: true,
            session: None,
        };
        root = git.enter(wish).await.expect("it can be entered").root;
        enter.push(began.elapsed().as_micros());
        if number % 2 == 1 {
            raw.push(add(&repository, &dir, number));
        }
    }
    println!(
        r#"{{"enter_us":{},"raw_us":{},{},{}}}"#,
        median(enter),
        median(raw),
        turn(&git, &root, files, 1).await,
        turn(&git, &root, files, 100).await
    );
}

fn fill(repository: &Path, files: u64) {
    for number in 0..files {
        let path = repository.join(format!("part-{}/part-{}/file-{number}", number % 20, number % 97));
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        std::fs::write(path, format!("file {number}\n").repeat(50)).expect("a file");
    }
    run(repository, &["init", "-q", "-b", "main"]);
    run(repository, &["add", "."]);
    run(repository, &["-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-q", "-m", "files"]);
}

/// The time that git's own command takes.
fn add(repository: &Path, dir: &Path, number: u64) -> u128 {
    let (branch, theirs) = (format!("theirs-{number}"), dir.join(format!("theirs-{number}")));
    let began = Instant::now();
    run(repository, &["worktree", "add", "-q", "-b", &branch, theirs.to_str().expect("a text")]);
    began.elapsed().as_micros()
}

fn run(directory: &Path, words: &[&str]) {
    let status = Command::new("git").current_dir(directory).args(words).status();
    assert!(status.expect("git can be run").success(), "git {words:?}");
}

/// A turn that changes so many files: the snapshot after it, one of nothing, and their diff.
async fn turn(git: &Git, root: &Path, files: u64, changed: u64) -> String {
    let (mut idle, mut after_us, mut diff_us) = (Vec::new(), Vec::new(), Vec::new());
    for time in 0..TIMES {
        let name =
            |moment| SnapshotName { session: SessionId::from_bits(1), turn: changed * 100 + time, moment };
        let _ = git.snapshot(root, &name(SnapshotMoment::Before)).await.expect("a snapshot");
        let began = Instant::now();
        let before =
            git.snapshot(root, &name(SnapshotMoment::Before)).await.expect("a snapshot").expect("one");
        idle.push(began.elapsed().as_micros());
        for number in (0..changed).map(|number| number * (files / changed)) {
            let path = root.join(format!("part-{}/part-{}/file-{number}", number % 20, number % 97));
            std::fs::write(path, format!("changed {time} {number}\n").repeat(50)).expect("a file");
        }
        let began = Instant::now();
        let after = git.snapshot(root, &name(SnapshotMoment::After)).await.expect("a snapshot").expect("one");
        after_us.push(began.elapsed().as_micros());
        let began = Instant::now();
        let changes = git.diff(&before, &after).await.expect("a diff");
        diff_us.push(began.elapsed().as_micros());
        assert_eq!(changes.files.len() as u64, changed);
    }
    let (idle, after, diff) = (median(idle), median(after_us), median(diff_us));
    format!(r#""idle_{changed}_us":{idle},"snapshot_{changed}_us":{after},"diff_{changed}_us":{diff}"#)
}

fn median(mut values: Vec<u128>) -> u128 {
    values.sort_unstable();
    values[values.len() / 2]
}
