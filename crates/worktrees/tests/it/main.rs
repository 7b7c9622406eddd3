//! Worktrees and snapshots with the real git, in temporary repositories.

mod broken;
mod cycles;
mod deleted;
mod diffs;
mod entering;
mod half_moved;
mod hostile;
mod killed;
mod leftovers;
mod merging;
mod rooms;
mod snapshots;
mod stores;
mod taking_over;
mod undoing;
mod unseen;
mod writers;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use homing_worktrees::git::{
    EnterRequest, EnteredWorktree, Git, GitDirectories, GitLimits, SnapshotMoment, SnapshotName, WorktreeName,
};
use kernel::SessionId;
use tempfile::TempDir;

/// A repository, and our git beside it.
struct Yard {
    place: TempDir,
    repository: PathBuf,
    git: Git,
}

impl Yard {
    /// With a commit of three files, one of them in a directory.
    fn new() -> Self {
        let yard = Self::empty();
        yard.write("a.txt", "one\ntwo\nthree\n");
        yard.write("sub/b.txt", "b\n");
        yard.write(".gitignore", "*.ignored\n/build/\n");
        yard.plain(&["add", "."]);
        yard.plain(&["commit", "-q", "-m", "first"]);
        yard
    }

    fn empty() -> Self {
        let place = tempfile::tempdir().unwrap();
        let repository = place.path().canonicalize().unwrap().join("repository");
        fs::create_dir(&repository).unwrap();
        let git = our_git(place.path(), Path::new("git"));
        let yard = Self { place, repository, git };
        yard.plain(&["init", "-q", "-b", "main"]);
        // What a person's git writes here need not survive a power cut.
        yard.plain(&["config", "core.fsync", "none"]);
        yard
    }

    fn write(&self, path: &str, text: &str) {
        write(&self.repository.join(path), text.as_bytes());
    }

    /// Git as a person runs it in the repository.
    fn plain(&self, words: &[&str]) -> String {
        plain(&self.repository, words)
    }

    /// Where our snapshots of the repository are.
    fn store(&self) -> PathBuf {
        self.stores().pop().expect("a store")
    }

    fn stores(&self) -> Vec<PathBuf> {
        let stores = fs::read_dir(self.place.path().join("data/git/snapshots")).into_iter().flatten();
        stores.map(|entry| entry.unwrap().path()).collect()
    }

    /// Git in our store, with the person's objects beside it, as snapshots are read.
    fn ours(&self, words: &[&str]) -> String {
        String::from_utf8_lossy(&self.ours_bytes(words)).trim_end().to_owned()
    }

    fn ours_bytes(&self, words: &[&str]) -> Vec<u8> {
        let mut command = plain_command(&self.repository);
        command.env("GIT_DIR", self.store());
        command.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", self.repository.join(".git/objects"));
        let out = command.args(words).output().unwrap();
        assert!(out.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&out.stderr));
        out.stdout
    }

    fn wish(&self, name: &str) -> EnterRequest<'_> {
        EnterRequest {
            repository: &self.repository,
            name: named(name),
            base: None,
            branch: None,
            is_new: true,
            session: None,
        }
    }

    async fn enter(&self, name: &str) -> EnteredWorktree {
        self.git.enter(self.wish(name)).await.unwrap()
    }
}

fn our_git(place: &Path, program: &Path) -> Git {
    our_git_with(place, program, GitLimits::default())
}

fn our_git_with(place: &Path, program: &Path, limits: GitLimits) -> Git {
    let data = place.join("data");
    let places =
        GitDirectories { worktrees: data.join("worktrees"), work: data.join("work"), own: data.join("git") };
    Git::new(program, places, limits).unwrap()
}

/// Says at how many of its steps an operation was cut short, for the page of the nightly run.
fn cut_at(operation: &str, steps: usize) {
    println!("counted: {operation} cut short at each of {steps} steps");
}

fn named(name: &str) -> WorktreeName {
    name.parse().unwrap()
}

fn snapshot_name(turn: u64, moment: SnapshotMoment) -> SnapshotName {
    SnapshotName { session: SessionId::from_bits(7), turn, moment }
}

fn write(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// Git as a person runs it, with none of our care; what it prints, without its end.
fn plain(directory: &Path, words: &[&str]) -> String {
    let out = plain_command(directory).args(words).output().unwrap();
    assert!(out.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).trim_end().to_owned()
}

fn plain_command(directory: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(directory).env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
    for name in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{name}_NAME"), "A Person").env(format!("GIT_{name}_EMAIL"), "a@example.org");
    }
    command.args(["-c", "protocol.file.allow=always"]);
    command
}

/// Everything below a directory: path, mode, and bytes. `.git` at its root is left out, nested ones are not.
type Everything = BTreeMap<Vec<u8>, (u32, Vec<u8>)>;

fn everything(root: &Path) -> Everything {
    let mut found = Everything::new();
    let mut left = vec![root.to_path_buf()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let about = fs::symlink_metadata(&path).unwrap();
            let name = path.strip_prefix(root).unwrap();
            if name == Path::new(".git") {
                continue;
            }
            let bytes = if about.is_symlink() {
                fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec()
            } else if about.is_file() {
                fs::read(&path).unwrap()
            } else {
                left.push(path.clone());
                Vec::new()
            };
            found.insert(name.as_os_str().as_bytes().to_vec(), (about.mode(), bytes));
        }
    }
    found
}

/// The differences, in words; empty if nothing does.
fn difference(one: &Everything, other: &Everything) -> Vec<String> {
    let paths: std::collections::BTreeSet<_> = one.keys().chain(other.keys()).collect();
    let shown =
        |each: Option<&(u32, Vec<u8>)>| each.map(|(mode, bytes)| format!("{mode:o} {} bytes", bytes.len()));
    paths
        .into_iter()
        .filter(|path| one.get(*path) != other.get(*path))
        .map(|path| {
            format!(
                "{}: {:?} / {:?}",
                String::from_utf8_lossy(path),
                shown(one.get(path)),
                shown(other.get(path))
            )
        })
        .collect()
}
