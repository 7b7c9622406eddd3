//! The list of runs of git that live, so that one that outlives its server is not taken for dead.
//!
//! A server that is killed does not take its git along: that one may go on for a moment, or hang. So git complains into a
//! named pipe of its own, which it and everything it starts hold open for as long as they live. The operating system knows
//! whether somebody does, whatever has become of the server. Whoever holds a working tree or a repository (see `shadow`)
//! has waited for the runs that nobody waits for any more; only then a lock that lies there is of a git that is dead.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, OFlags};
use tokio::net::unix::pipe;

use super::error::GitError;
use super::shadow::key;

/// The name of a pipe that nobody can write into yet begins so; no repository's does.
const MAKING: &str = "making.";
/// A pipe gets its name within a moment. One that is older than that was being made by somebody who was killed.
const MAKING_TIME_MAX: Duration = Duration::from_secs(600);

/// The runs of git in our git directories. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct RunningGits {
    /// A pipe for each, named after its repository.
    place: PathBuf,
    /// Those that somebody here waits for.
    attended: Arc<Mutex<BTreeSet<PathBuf>>>,
}

/// A run that somebody waits for. If they stop before it is over, the pipe stays for whoever comes next.
#[derive(Debug)]
pub(super) struct AttendedRun {
    runs: RunningGits,
    path: PathBuf,
}

impl RunningGits {
    pub(super) fn at(place: PathBuf) -> Self {
        Self { place, attended: Arc::default() }
    }

    /// Begins a run in one of our git directories: the pipe, what to read from it, and what git is to complain into.
    pub(super) fn begin(&self, git_dir: &Path) -> Result<(AttendedRun, pipe::Receiver, File), GitError> {
        let name = format!("{}.{}", repository_key(git_dir)?, uuid::Uuid::now_v7().simple());
        let path = self.place.join(name);
        self.attended().insert(path.clone());
        let attended = AttendedRun { runs: self.clone(), path };
        let path = &attended.path;
        // It gets its name when somebody can write into it: other sessions' workers take one that nobody can for a dead run's.
        let making = self.place.join(format!("{MAKING}{}", uuid::Uuid::now_v7().simple()));
        let open = || {
            rustix::fs::mknodat(CWD, &making, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
            let hear = pipe::OpenOptions::new().open_receiver(&making)?;
            let complain = File::options().write(true).open(&making)?;
            fs::rename(&making, path)?;
            Ok((hear, complain))
        };
        let (hear, complain) = open().map_err(GitError::disk(path))?;
        Ok((attended, hear, complain))
    }

    /// True if a git lives in this repository that nobody waits for. What dead ones have left here goes.
    pub(super) fn is_one_left(&self, common: &Path) -> Result<bool, GitError> {
        let (of_this, mut is_one_left) = (key(common), false);
        for entry in fs::read_dir(&self.place).map_err(GitError::disk(&self.place))?.flatten() {
            let path = entry.path();
            let name = entry.file_name();
            let is_called = |beginning: &str| name.to_string_lossy().starts_with(beginning);
            if is_called(MAKING) && is_older(&entry, MAKING_TIME_MAX) {
                remove(&path)?;
            }
            if !is_called(&of_this) || self.attended().contains(&path) {
                continue;
            }
            match is_open(&path) {
                Ok(true) => is_one_left = true,
                Ok(false) => remove(&path)?,
                Err(why) if why.kind() == ErrorKind::NotFound => {}
                Err(why) => return Err(GitError::disk(&path)(why)),
            }
        }
        Ok(is_one_left)
    }

    fn attended(&self) -> std::sync::MutexGuard<'_, BTreeSet<PathBuf>> {
        self.attended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AttendedRun {
    /// Nothing of it lives any more.
    pub(super) fn is_over(&self) {
        let _ = fs::remove_file(&self.path); // What stays is found to be nobody's by the next one.
    }
}

impl Drop for AttendedRun {
    fn drop(&mut self) {
        self.runs.attended().remove(&self.path);
    }
}

/// Our git directories lead to the repository that they are for.
fn repository_key(git_dir: &Path) -> Result<String, GitError> {
    let link = git_dir.join("repository");
    let repository = fs::read_link(&link).map_err(GitError::disk(&link))?;
    Ok(key(&repository))
}

/// True if anybody can still write into a pipe: there is nothing to read then, and no end either.
fn is_open(path: &Path) -> io::Result<bool> {
    let nonblock = i32::try_from(OFlags::NONBLOCK.bits()).map_err(io::Error::other)?;
    let mut pipe = File::options().read(true).custom_flags(nonblock).open(path)?;
    match pipe.read(&mut [0; 4096]) {
        Ok(0) => Ok(false),
        Ok(_) => Ok(true),
        Err(why) if why.kind() == ErrorKind::WouldBlock => Ok(true),
        Err(why) => Err(why),
    }
}

/// True if nothing was done with it for so long.
fn is_older(entry: &fs::DirEntry, than: Duration) -> bool {
    let changed = entry.metadata().and_then(|about| about.modified());
    changed.is_ok_and(|changed| changed.elapsed().is_ok_and(|age| age > than))
}

fn remove(path: &Path) -> Result<(), GitError> {
    match fs::remove_file(path) {
        Err(why) if why.kind() != ErrorKind::NotFound => Err(GitError::disk(path)(why)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_run_that_begins_is_never_taken_for_a_dead_one_by_another_worker() {
        let place = tempfile::tempdir().unwrap();
        let (git_dir, common) = (place.path().join("shadow"), place.path().join("common"));
        fs::create_dir(&git_dir).unwrap();
        std::os::unix::fs::symlink(&common, git_dir.join("repository")).unwrap();
        let runs = place.path().join("runs");
        fs::create_dir(&runs).unwrap();
        let (own, other) = (RunningGits::at(runs.clone()), RunningGits::at(runs));
        let looking = std::thread::spawn(move || {
            for _ in 0..3_000 {
                other.is_one_left(&common).unwrap();
            }
        });
        while !looking.is_finished() {
            let (run, _hear, _complain) = own.begin(&git_dir).unwrap();
            assert!(run.path.exists(), "somebody has removed it");
            run.is_over();
        }
        looking.join().unwrap();
    }

    #[tokio::test]
    async fn a_run_that_nobody_waits_for_is_seen_for_as_long_as_something_of_it_lives() {
        let place = tempfile::tempdir().unwrap();
        let (git_dir, common) = (place.path().join("shadow"), place.path().join("common"));
        fs::create_dir(&git_dir).unwrap();
        std::os::unix::fs::symlink(&common, git_dir.join("repository")).unwrap();
        let runs = RunningGits::at(place.path().join("runs"));
        fs::create_dir(&runs.place).unwrap();
        let pipes = || fs::read_dir(&runs.place).unwrap().count();
        let is_one_left = || runs.is_one_left(&common).unwrap();

        let (attended, hear, complain) = runs.begin(&git_dir).unwrap();
        assert!(!is_one_left(), "somebody waits for it");
        let another = complain.try_clone().unwrap();
        drop((attended, hear, complain));
        assert!(is_one_left(), "what it has started lives");
        assert!(!runs.is_one_left(&place.path().join("elsewhere")).unwrap(), "in this repository");
        io::Write::write_all(&mut &another, b"words that nobody hears").unwrap_err();
        assert!(is_one_left());
        drop(another);
        assert!(!is_one_left());
        assert_eq!(pipes(), 0, "what was left is gone");

        let (attended, _, complain) = runs.begin(&git_dir).unwrap();
        drop(complain);
        attended.is_over();
        assert_eq!(pipes(), 0);
    }

    #[test]
    fn a_pipe_that_never_got_its_name_goes_once_it_is_old() {
        let place = tempfile::tempdir().unwrap();
        let runs = RunningGits::at(place.path().join("runs"));
        fs::create_dir(&runs.place).unwrap();
        let (young, old) = (runs.place.join("making.young"), runs.place.join("making.old"));
        for (path, is_old) in [(&young, false), (&old, true)] {
            rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
            let nonblock = i32::try_from(OFlags::NONBLOCK.bits()).unwrap();
            let file = File::options().read(true).custom_flags(nonblock).open(path).unwrap();
            let age = if is_old { MAKING_TIME_MAX * 2 } else { Duration::ZERO };
            file.set_modified(std::time::SystemTime::now() - age).unwrap();
        }
        assert!(!runs.is_one_left(place.path()).unwrap());
        assert!(young.exists() && !old.exists());
    }
}
