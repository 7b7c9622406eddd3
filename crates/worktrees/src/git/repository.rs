//! The repository that a directory is in, found without asking the repository.
//!
//! Git would believe `core.worktree`, a `.git` file or a `commondir` that lead to other people's files. We read the few
//! files that say where things are ourselves, and accept a place elsewhere only if that place knows of us, too.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::error::GitError;

/// The files that say where things are hold one line.
const LINE_BYTES_MAX: u64 = 8 * 1024;
/// A larger record is none of ours.
const OWN_BYTES_MAX: u64 = 1024 * 1024;
/// A larger configuration was not written by people.
const CONFIG_BYTES_MAX: u64 = 1024 * 1024;

/// A working tree and where its repository keeps things.
#[derive(Debug, Clone)]
pub(super) struct Repository {
    /// The root of the working tree, canonical.
    pub(super) top: PathBuf,
    /// The directory of this working tree alone: HEAD and index.
    pub(super) git_dir: PathBuf,
    /// The directory that all working trees share: objects, refs, config.
    pub(super) common: PathBuf,
    pub(super) format: &'static str,
}

impl Repository {
    /// The repository around a directory, if there is one. `directory` must exist, and be called by its true name: who
    /// chose it meant that place, and not what a link leads to by now.
    pub(super) fn around(directory: &Path) -> Result<Option<Self>, GitError> {
        Self::around_below(directory, None)
    }

    /// The same, without looking at `ceiling` or above it.
    pub(super) fn around_below(directory: &Path, ceiling: Option<&Path>) -> Result<Option<Self>, GitError> {
        let there = directory.canonicalize().map_err(GitError::disk(directory))?;
        if there != directory {
            return Err(GitError::LeadsElsewhere(directory.to_path_buf()));
        }
        for top in directory.ancestors().take_while(|top| Some(*top) != ceiling) {
            let dot_git = top.join(".git");
            let Ok(about) = std::fs::symlink_metadata(&dot_git) else { continue };
            if about.is_dir() && dot_git.join("HEAD").symlink_metadata().is_ok() {
                return Self::with(top, dot_git.clone(), dot_git).map(Some);
            }
            if about.is_file() {
                return Self::elsewhere(top, &dot_git).map(Some);
            }
            if about.is_symlink() {
                return Err(GitError::strange(top, "its .git is a link; replace it by what it leads to"));
            }
        }
        Ok(None)
    }

    pub(super) fn must_be_around(directory: &Path) -> Result<Self, GitError> {
        Self::around(directory)?.ok_or_else(|| GitError::NoRepository(directory.to_path_buf()))
    }

    /// The working tree's git directory is named by a file: a linked worktree or a submodule.
    fn elsewhere(top: &Path, dot_git: &Path) -> Result<Self, GitError> {
        let line = read_line(dot_git)?;
        let named =
            line.strip_prefix(b"gitdir: ").ok_or_else(|| GitError::strange(top, "its .git file is odd"))?;
        let git_dir = top.join(bytes_path(named));
        // Where it leads stands in a file that may be anything: that is not told.
        let nowhere = |_| GitError::strange(top, "its .git file leads nowhere");
        let git_dir = git_dir.canonicalize().map_err(nowhere)?;
        if git_dir.join("gitdir").is_file() {
            let back = git_dir.join(bytes_path(&read_line(&git_dir.join("gitdir"))?));
            let common = git_dir.join(bytes_path(&read_line(&git_dir.join("commondir"))?));
            let common = common.canonicalize().map_err(nowhere)?;
            let is_mutual = back.canonicalize().ok().as_deref() == Some(dot_git);
            if is_mutual && git_dir.parent() == Some(&common.join("worktrees")) {
                return Self::with(top, git_dir, common);
            }
            return Err(GitError::strange(
                top,
                "the repository it names knows nothing of it; run `git worktree repair`",
            ));
        }
        // A submodule: its git directory is in that of a repository around it.
        let is_around = top.ancestors().skip(1).any(|above| {
            let around = Self::around(above).ok().flatten();
            around.is_some_and(|around| git_dir.starts_with(around.git_dir.join("modules")))
        });
        if is_around {
            return Self::with(top, git_dir.clone(), git_dir);
        }
        Err(GitError::strange(
            top,
            "its .git file leads to a place that is neither a worktree's nor a submodule's",
        ))
    }

    /// A repository without a working tree of its own, known from earlier.
    pub(super) fn at_common(common: &Path) -> Result<Self, GitError> {
        let canonical = common.canonicalize().map_err(GitError::disk(common))?;
        Self::with(&canonical, canonical.clone(), canonical.clone())
    }

    fn with(top: &Path, git_dir: PathBuf, common: PathBuf) -> Result<Self, GitError> {
        for part in ["objects", "refs"] {
            let path = common.join(part);
            let about = std::fs::symlink_metadata(&path).map_err(GitError::disk(&path))?;
            if !about.is_dir() {
                return Err(GitError::strange(top, format!("{} is not a directory", path.display())));
            }
        }
        for part in ["worktrees", "packed-refs", "refs/homing", "refs/heads", "commondir"] {
            let about = std::fs::symlink_metadata(common.join(part));
            if about.is_ok_and(|about| about.is_symlink() || part == "commondir") {
                return Err(GitError::strange(top, format!("its {part} leads elsewhere")));
            }
        }
        let format = format_of(top, &common)?;
        Ok(Self { top: top.to_path_buf(), git_dir, common, format })
    }

    /// HEAD, as it stands in its file.
    pub(super) fn head(&self) -> Result<Vec<u8>, GitError> {
        read_line(&self.git_dir.join("HEAD"))
    }

    /// The full name of the branch that is checked out.
    pub(super) fn branch(&self) -> Option<String> {
        let head = self.head().ok()?;
        let name = head.strip_prefix(b"ref: ")?;
        String::from_utf8(name.to_vec()).ok()
    }
}

/// The format of its ids; refuses what we do not handle.
fn format_of(top: &Path, common: &Path) -> Result<&'static str, GitError> {
    let path = common.join("config");
    let mut text = Vec::new();
    match open_plain(&path) {
        Ok(file) => file.take(CONFIG_BYTES_MAX).read_to_end(&mut text).map_err(GitError::disk(&path))?,
        Err(why) if why.kind() == io::ErrorKind::NotFound => 0,
        Err(why) => return Err(GitError::disk(&path)(why)),
    };
    let text = String::from_utf8_lossy(&text).to_lowercase();
    // Every extension of the format is said in the file itself; git reads no include for it either.
    let says = |key: &str| {
        let mut lines = text.lines().map(|line| line.split_whitespace().collect::<String>());
        lines.find_map(|line| Some(line.strip_prefix(key)?.strip_prefix('=')?.trim_matches('"').to_owned()))
    };
    if says("refstorage").is_some_and(|storage| storage != "files") {
        let why = "it keeps its refs in another way than as files; run `git refs migrate --ref-format=files`";
        return Err(GitError::strange(top, why));
    }
    match says("objectformat").as_deref() {
        None | Some("sha1") => Ok("sha1"),
        Some("sha256") => Ok("sha256"),
        Some(other) => Err(GitError::strange(top, format!("its objects are of the unknown format {other}"))),
    }
}

/// The line in a small file, without its end.
pub(super) fn read_line(path: &Path) -> Result<Vec<u8>, GitError> {
    let mut line = Vec::new();
    let file = open_plain(path).map_err(GitError::disk(path))?;
    file.take(LINE_BYTES_MAX).read_to_end(&mut line).map_err(GitError::disk(path))?;
    while line.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
        line.pop();
    }
    Ok(line)
}

/// A small file of our own: it is no link, and what is beyond the bound is not read. In a place that belongs to somebody's user
/// the server finds what their worker has written there, and trusts it no further.
pub(crate) fn read_own(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    open_flagged(path, OFlags::NONBLOCK | OFlags::NOFOLLOW)?.take(OWN_BYTES_MAX).read_to_end(&mut text)?;
    Ok(text)
}

/// A plain file, for reading. A pipe in its place does not make us wait.
pub(super) fn open_plain(path: &Path) -> io::Result<File> {
    open_flagged(path, OFlags::NONBLOCK)
}

fn open_flagged(path: &Path, flags: OFlags) -> io::Result<File> {
    let file = File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("not a plain file")) }
}

pub(super) fn bytes_path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}
