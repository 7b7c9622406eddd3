//! The files in a directory: those that git knows or would add, or, outside of version control, all of them.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use super::error::GitError;
use super::repository::bytes_path;
use super::shadow::copy_whole_index;
use super::{Git, blocking};

/// Names that are never shown: git's own.
const DOT_GIT: &str = ".git";

/// Files of a directory, by their paths from there, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileList {
    pub paths: Vec<PathBuf>,
    /// There are more.
    pub is_cut: bool,
}

impl Git {
    /// The files of a directory that git tracks or would track; none outside of version control. Links are named and never
    /// followed.
    pub async fn files(&self, directory: &Path, count_max: usize) -> Result<Option<FileList>, GitError> {
        let Some(repository) = self.around(directory)? else { return Ok(None) };
        let within = directory.strip_prefix(&repository.top).unwrap_or(Path::new("")).to_path_buf();
        let shadow = self.shadow(&repository)?;
        // The person's index is read, never written.
        let copy = shadow.plain.join(format!("index.{}", uuid::Uuid::now_v7().simple()));
        let real = repository.git_dir.join("index");
        if real.is_file() {
            copy_whole_index(&repository, &shadow, &copy)?;
        }
        let list = self.plain(&shadow, "ls-files").words(["-z", "-c", "-o", "--exclude-standard"]);
        let listed = list.work_tree(&repository.top).index(&copy).out().await;
        let _ = fs::remove_file(&copy);
        let listed = listed?;
        let paths = listed.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(bytes_path);
        let here = paths.filter_map(|path| Some(path.strip_prefix(&within).ok()?.to_path_buf()));
        let top = repository.top.join(&within);
        // In the midst of a merge a path is told once for each side; what was deleted is still in the index.
        let all: BTreeSet<PathBuf> = here.collect();
        let there = all.into_iter().filter(|path| fs::symlink_metadata(top.join(path)).is_ok());
        Ok(Some(first_of(there, count_max)))
    }
}

/// The files of a directory that nobody keeps versions of.
pub async fn plain_files(directory: &Path, count_max: usize) -> Result<FileList, GitError> {
    let directory = directory.to_path_buf();
    blocking(move || Ok(first_of(Walk::of(&directory), count_max))).await
}

/// Entries of a directory that are looked at; of one with more, what is left is not told.
const ENTRIES_MAX: usize = 100_000;

/// The directories in a directory, by their names in order. Links are none; what is hidden, and names that are no text, are left out.
pub async fn directories_in(directory: &Path, count_max: usize) -> Result<FileList, GitError> {
    let directory = directory.to_path_buf();
    blocking(move || {
        let closed = |_| GitError::strange(&directory, "it cannot be read");
        let mut entries = fs::read_dir(&directory).map_err(closed)?.flatten();
        let shown = |entry: fs::DirEntry| {
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let name = entry.file_name().into_string().ok()?;
            (is_directory && !name.starts_with('.')).then(|| PathBuf::from(name))
        };
        let names: BTreeSet<PathBuf> = entries.by_ref().take(ENTRIES_MAX).filter_map(shown).collect();
        let list = first_of(names.into_iter(), count_max);
        Ok(FileList { is_cut: list.is_cut || entries.next().is_some(), ..list })
    })
    .await
}

fn first_of(mut paths: impl Iterator<Item = PathBuf>, count_max: usize) -> FileList {
    let taken: Vec<PathBuf> = paths.by_ref().take(count_max).collect();
    FileList { paths: taken, is_cut: paths.next().is_some() }
}

/// A directory's files, those nearest first. Directories that are links are not walked into.
struct Walk {
    root: PathBuf,
    /// Directories that are still to be read, from the root.
    left: VecDeque<PathBuf>,
    files: std::vec::IntoIter<PathBuf>,
}

impl Walk {
    fn of(root: &Path) -> Self {
        Self {
            root: root.to_path_buf(),
            left: VecDeque::from([PathBuf::new()]),
            files: Vec::new().into_iter(),
        }
    }

    /// Files that cannot be read are left out.
    fn read(&mut self, within: &Path) {
        let mut files = Vec::new();
        let mut directories = Vec::new();
        for entry in fs::read_dir(self.root.join(within)).into_iter().flatten().flatten() {
            let path = within.join(entry.file_name());
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && entry.file_name() == DOT_GIT => {}
                Ok(kind) if kind.is_dir() => directories.push(path),
                Ok(_) => files.push(path),
                Err(_) => {}
            }
        }
        files.sort();
        directories.sort();
        self.files = files.into_iter();
        self.left.extend(directories);
    }
}

impl Iterator for Walk {
    type Item = PathBuf;

    fn next(&mut self) -> Option<PathBuf> {
        loop {
            if let Some(file) = self.files.next() {
                return Some(file);
            }
            let within = self.left.pop_front()?;
            self.read(&within);
        }
    }
}
