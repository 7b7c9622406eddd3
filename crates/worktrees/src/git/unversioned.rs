//! Files that a tree of git's cannot hold, kept all the same before a worktree is removed: ignored files, what is inside of
//! nested repositories, modes, empty directories, and what git itself remembers for this worktree alone.
//!
//! It is a commit with a flat tree: a list, and a blob for each file, called by its number. So no name in it can be
//! anything but a number, whatever the files were called.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::WorkPhase;

use super::directory_handle::{DirectoryHandle, EntryKind};
use super::error::GitError;
use super::names::is_object_id;
use super::repository::Repository;
use super::shadow::{ShadowRepository, remove_tree};
use super::snapshot::{path_of, split_at_byte};
use super::stuck::while_it_works;
use super::{Git, blocking};

/// More files than this are not looked at one by one.
const FILES_MAX: usize = 2_000_000;
/// The number of those too large that are named.
const LARGEST_SHOWN: usize = 20;
/// The name of the list.
const LIST: &str = "list";

/// Of git's own files for a worktree, these are made anew.
const ADMIN_MADE_ANEW: &[&str] = &["index", "gitdir", "commondir", "HEAD", "locked"];

/// The modes that need not be written down.
const FILE_MODES: [u32; 2] = [0o644, 0o755];
const DIRECTORY_MODE: u32 = 0o755;

/// Below which directory a path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum PathRoot {
    Worktree,
    Admin,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeptKind {
    /// A file or link whose bytes are kept here.
    File,
    Link,
    /// A directory that is empty or has a mode of its own.
    Directory,
    /// A file of the snapshot's tree that has a mode of its own.
    Mode,
}

/// One line of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ManifestLine {
    below: PathRoot,
    kind: KeptKind,
    mode: u32,
    path: Vec<u8>,
}

impl ManifestLine {
    fn has_bytes(&self) -> bool {
        matches!(self.kind, KeptKind::File | KeptKind::Link)
    }

    fn write(&self) -> Vec<u8> {
        let below = match self.below {
            PathRoot::Worktree => 'w',
            PathRoot::Admin => 'a',
        };
        let kind = match self.kind {
            KeptKind::File => 'f',
            KeptKind::Link => 'l',
            KeptKind::Directory => 'd',
            KeptKind::Mode => 'm',
        };
        [format!("{below}{kind} {:o}\t", self.mode).as_bytes(), &self.path, b"\0"].concat()
    }

    fn read(line: &[u8]) -> Option<Self> {
        let (about, path) = split_at_byte(line, b'\t');
        let (letters, mode) = std::str::from_utf8(about).ok()?.split_once(' ')?;
        let mode = u32::from_str_radix(mode, 8).ok()? & 0o7777;
        let (below, kind) = match letters.as_bytes() {
            [b'w', kind] => (PathRoot::Worktree, *kind),
            [b'a', kind] => (PathRoot::Admin, *kind),
            _ => return None,
        };
        let kind = match kind {
            b'f' => KeptKind::File,
            b'l' => KeptKind::Link,
            b'd' => KeptKind::Directory,
            b'm' => KeptKind::Mode,
            _ => return None,
        };
        Some(Self { below, kind, mode, path: path.to_vec() })
    }
}

impl Git {
    /// Keeps what the snapshot's tree does not have. Gives the commit.
    pub(super) async fn keep(&self, of: &Repository, shadow: &ShadowRepository) -> Result<String, GitError> {
        let list = self.raw(shadow, "ls-files").words(["-z", "-s"]).index(&shadow.raw.join("index"));
        let out = list.out().await?;
        let (top, admin, bytes_max) = (of.top.clone(), of.git_dir.clone(), self.bounds.kept_bytes_max);
        let lines = blocking(move || {
            let entries = out.split(|byte| *byte == 0).filter(|entry| !entry.starts_with(b"160000"));
            let tracked = entries.map(|entry| split_at_byte(entry, b'\t').1).collect();
            look(&top, &admin, &tracked, bytes_max)
        });
        let lines = Arc::new(lines.await?);
        let marks = shadow.dir.join("marks");
        let mut export = std::ffi::OsString::from("--export-marks=");
        export.push(&marks);
        let writing = {
            let (top, admin, lines) = (of.top.clone(), of.git_dir.clone(), lines.clone());
            move |to: &mut dyn Write| write_blobs(to, &top, &admin, &lines)
        };
        // Alone: what the person has, too, is written all the same.
        let import = self.raw_alone(shadow, "fast-import").words(["--quiet", "--done"]).word(export);
        import.durable(true).write(writing).out().await?;
        let text = fs::read_to_string(&marks).map_err(GitError::disk(&marks))?;
        let tree: String = text
            .lines()
            .filter_map(|line| line.strip_prefix(':')?.split_once(' '))
            .map(|(mark, id)| format!("100644 blob {id}\t{}\n", if mark == "1" { LIST } else { mark }))
            .collect();
        let tree = self.raw_alone(shadow, "mktree").durable(true).say(tree.into_bytes()).text().await?;
        self.commit(shadow, &tree, &[], "kept\n", true)
    }

    /// Gives back what was kept. What stands there already is replaced.
    pub(super) async fn give_back(
        &self,
        to: &Repository,
        shadow: &ShadowRepository,
        commit: &str,
    ) -> Result<(), GitError> {
        self.phase(WorkPhase::Copying);
        let aside = shadow.dir.join("kept");
        remove_tree(&aside)?;
        super::make_private(&aside)?;
        let index = shadow.dir.join("kept.index");
        let _ = fs::remove_file(&index);
        let call = self.raw(shadow, "read-tree").words(["--reset", "-u", commit]);
        call.work_tree(&aside).index(&index).out().await?;
        let (top, admin) = (to.top.clone(), to.git_dir.clone());
        let placing = blocking(move || {
            place(&aside, &top, &admin)?;
            remove_tree(&aside)
        });
        while_it_works(placing, &self.runner.progress).await
    }

    /// Commits that may be held by nothing but this worktree's own records: what was reset away, a merge under way.
    pub(super) async fn commits_of(
        &self,
        of: &Repository,
        shadow: &ShadowRepository,
    ) -> Result<Vec<String>, GitError> {
        let admin = of.git_dir.clone();
        let named: Vec<String> = blocking(move || Ok(named_in(&admin))).await?.into_iter().collect();
        let asked: Vec<String> = named.iter().map(|id| format!("{id}^{{commit}}")).collect();
        let found = self.look_up(shadow, &asked).await?;
        let there: HashSet<String> = found.into_iter().flatten().collect();
        if there.is_empty() {
            return Ok(Vec::new());
        }
        let asked = there.iter().flat_map(|id| [id.as_str(), "\n"]).collect::<String>();
        let list = self.plain(shadow, "rev-list").words([
            "--stdin",
            "--not",
            "--branches",
            "--tags",
            "--remotes",
            "HEAD",
        ]);
        let said = list.say(asked.into_bytes()).said().await?;
        let lost = String::from_utf8_lossy(&said.out);
        Ok(lost.lines().filter(|id| there.contains(*id)).map(str::to_owned).collect())
    }
}

/// Everything that has to be written down, in the order of the list.
fn look(
    top: &Path,
    admin: &Path,
    tracked: &HashSet<&[u8]>,
    bytes_max: u64,
) -> Result<Vec<ManifestLine>, GitError> {
    let mut seen = KeptFiles::default();
    seen.walk(top, PathRoot::Worktree, Path::new(""), tracked)?;
    seen.walk(admin, PathRoot::Admin, Path::new(""), &HashSet::new())?;
    if !seen.unreadable.is_empty() {
        return Err(GitError::Unreadable(seen.unreadable));
    }
    if seen.bytes > bytes_max {
        let mut largest: Vec<(u64, PathBuf)> =
            seen.sizes.into_iter().map(|(path, bytes)| (bytes, path)).collect();
        largest.sort_by(|one, other| other.cmp(one));
        let largest = largest.into_iter().take(LARGEST_SHOWN).map(|(_, path)| path).collect();
        let what = "what git ignores or does not see in this worktree";
        return Err(GitError::TooLarge { what, bytes: seen.bytes, bytes_max, largest });
    }
    Ok(seen.lines)
}

#[derive(Default)]
struct KeptFiles {
    lines: Vec<ManifestLine>,
    bytes: u64,
    /// By the first name of the path: what people would delete.
    sizes: BTreeMap<PathBuf, u64>,
    unreadable: Vec<PathBuf>,
    files: usize,
}

impl KeptFiles {
    fn walk(
        &mut self,
        root: &Path,
        below: PathRoot,
        at: &Path,
        tracked: &HashSet<&[u8]>,
    ) -> Result<(), GitError> {
        let directory = root.join(at);
        let Ok(entries) = fs::read_dir(&directory) else {
            self.unreadable.push(at.to_path_buf());
            return Ok(());
        };
        let mut is_empty = true;
        for entry in entries {
            let entry = entry.map_err(GitError::disk(&directory))?;
            let (path, about) =
                (at.join(entry.file_name()), entry.metadata().map_err(GitError::disk(&directory))?);
            if is_made_anew(below, &path) {
                continue;
            }
            is_empty = false;
            self.files += 1;
            if self.files > FILES_MAX {
                return Err(GitError::strange(
                    root,
                    "it has too many files to be kept; delete what can be made again",
                ));
            }
            if about.is_dir() {
                self.walk(root, below, &path, tracked)?;
            } else {
                self.note(root, below, path, &about, tracked);
            }
        }
        let mode = fs::symlink_metadata(&directory).map_err(GitError::disk(&directory))?.mode() & 0o7777;
        if !at.as_os_str().is_empty() && (is_empty || mode != DIRECTORY_MODE) {
            self.lines.push(ManifestLine {
                below,
                kind: KeptKind::Directory,
                mode,
                path: at.as_os_str().as_bytes().to_vec(),
            });
        }
        Ok(())
    }

    fn note(
        &mut self,
        root: &Path,
        below: PathRoot,
        path: PathBuf,
        about: &Metadata,
        tracked: &HashSet<&[u8]>,
    ) {
        let bytes = path.as_os_str().as_bytes().to_vec();
        let (mode, is_tracked) = (about.mode() & 0o7777, tracked.contains(bytes.as_slice()));
        // Pipes and sockets hold nothing.
        if !about.is_file() && !about.is_symlink() {
            return;
        }
        if about.is_file() && rustix::fs::access(root.join(&path), rustix::fs::Access::READ_OK).is_err() {
            self.unreadable.push(path);
            return;
        }
        let kind = match (is_tracked, about.is_symlink()) {
            (true, false) if !FILE_MODES.contains(&mode) => KeptKind::Mode,
            (true, _) => return,
            (false, true) => KeptKind::Link,
            (false, false) => KeptKind::File,
        };
        if !is_tracked {
            let first = path.iter().next().map(PathBuf::from).unwrap_or_default();
            *self.sizes.entry(first).or_default() += about.size();
            self.bytes += about.size();
        }
        self.lines.push(ManifestLine { below, kind, mode, path: bytes });
    }
}

fn is_made_anew(below: PathRoot, path: &Path) -> bool {
    match below {
        PathRoot::Worktree => path == Path::new(".git"),
        PathRoot::Admin => {
            ADMIN_MADE_ANEW.iter().any(|name| path == Path::new(name))
                || path.components().count() == 1 && path.extension() == Some(OsStr::new("lock"))
        }
    }
}

/// The list as the first blob, then each file under its number in the list, counted from two.
fn write_blobs(to: &mut dyn Write, top: &Path, admin: &Path, lines: &[ManifestLine]) -> io::Result<()> {
    let list: Vec<u8> = lines.iter().flat_map(ManifestLine::write).collect();
    write!(to, "blob\nmark :1\ndata {}\n", list.len())?;
    to.write_all(&list)?;
    let roots = [DirectoryHandle::open(top)?, DirectoryHandle::open(admin)?];
    for (number, line) in lines.iter().enumerate().filter(|(_, line)| line.has_bytes()) {
        let path = path_of(&line.path);
        let (parent, name) = roots[line.below as usize].parent(&path)?;
        write!(to, "\nblob\nmark :{}\n", number + 2)?;
        if line.kind == KeptKind::Link {
            let target = parent.read_link(name)?;
            writeln!(to, "data {}", target.len())?;
            to.write_all(&target)?;
            continue;
        }
        let file = parent.read(name)?;
        let size = file.metadata()?.size();
        writeln!(to, "data {size}")?;
        if io::copy(&mut file.take(size), to)? != size {
            return Err(io::Error::other(format!("{} changes while it is read", path.display())));
        }
    }
    to.write_all(b"\ndone\n")
}

/// Puts everything where it was. Modes come last: a directory may be closed to us by its own.
fn place(aside: &Path, top: &Path, admin: &Path) -> Result<(), GitError> {
    let path = aside.join(LIST);
    let list = fs::read(&path).map_err(GitError::disk(&path))?;
    let lines: Vec<ManifestLine> = list.split(|byte| *byte == 0).filter_map(ManifestLine::read).collect();
    let open = |root: &Path| DirectoryHandle::open(root).map_err(GitError::disk(root));
    let roots = [open(top)?, open(admin)?];
    for (number, line) in lines.iter().enumerate() {
        let (root, path) = (&roots[line.below as usize], path_of(&line.path));
        let done = match line.kind {
            KeptKind::Directory => root.make_directory(&path).map(drop),
            KeptKind::File | KeptKind::Link => {
                place_one(root, &path, line, &aside.join((number + 2).to_string()))
            }
            KeptKind::Mode => Ok(()),
        };
        done.map_err(GitError::disk(&path))?;
    }
    set_modes(top, PathRoot::Worktree, &roots[0], &lines)?;
    set_modes(admin, PathRoot::Admin, &roots[1], &lines)
}

fn place_one(root: &DirectoryHandle, path: &Path, line: &ManifestLine, bytes: &Path) -> io::Result<()> {
    let (parent, name) = root.make_parent(path)?;
    if matches!(parent.stands(name)?, EntryKind::File | EntryKind::Link) {
        parent.remove_file(name)?;
    }
    let mut file = fs::File::open(bytes)?;
    if line.kind == KeptKind::Link {
        let mut target = Vec::new();
        file.read_to_end(&mut target)?;
        return parent.link(name, &target);
    }
    let mut made = parent.make(name, 0o600)?;
    io::copy(&mut file, &mut made)?;
    made.set_permissions(fs::Permissions::from_mode(line.mode))
}

/// Each file and directory gets the mode it had: the one in the list, or the ordinary one.
fn set_modes(
    root: &Path,
    below: PathRoot,
    inside: &DirectoryHandle,
    lines: &[ManifestLine],
) -> Result<(), GitError> {
    let told: HashMap<&[u8], u32> = lines
        .iter()
        .filter(|line| line.below == below && line.kind != KeptKind::Link)
        .map(|line| (line.path.as_slice(), line.mode))
        .collect();
    set_modes_in(root, below, Path::new(""), inside, &told)
}

fn set_modes_in(
    root: &Path,
    below: PathRoot,
    at: &Path,
    inside: &DirectoryHandle,
    told: &HashMap<&[u8], u32>,
) -> Result<(), GitError> {
    let directory = root.join(at);
    for entry in fs::read_dir(&directory).map_err(GitError::disk(&directory))? {
        let entry = entry.map_err(GitError::disk(&directory))?;
        let (path, about) =
            (at.join(entry.file_name()), entry.metadata().map_err(GitError::disk(&directory))?);
        if about.is_symlink() || is_made_anew(below, &path) {
            continue;
        }
        if about.is_dir() {
            set_modes_in(root, below, &path, inside, told)?;
        }
        let mode = about.mode() & 0o7777;
        let ordinary = match (about.is_dir(), mode & 0o100) {
            (true, _) => DIRECTORY_MODE,
            (false, 0) => FILE_MODES[0],
            (false, _) => FILE_MODES[1],
        };
        let wanted = told.get(path.as_os_str().as_bytes()).copied().unwrap_or(ordinary);
        if mode != wanted {
            let set = inside.parent(&path).and_then(|(parent, name)| parent.set_mode(name, wanted));
            set.map_err(GitError::disk(&path))?;
        }
    }
    Ok(())
}

/// Every word in git's own files for a worktree that could be the id of a commit.
fn named_in(admin: &Path) -> HashSet<String> {
    const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
    const IDS_MAX: usize = 20_000;
    let mut ids = HashSet::new();
    let mut left = vec![admin.to_path_buf()];
    while let Some(path) = left.pop() {
        for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
            let (path, Ok(about)) = (entry.path(), entry.metadata()) else { continue };
            // Submodules have commits of their own, which are kept as files.
            if about.is_dir() && entry.file_name() != "modules" {
                left.push(path);
            } else if about.is_file() && about.len() < FILE_BYTES_MAX && ids.len() < IDS_MAX {
                let text = fs::read(&path).unwrap_or_default();
                let words = text
                    .split(|byte| byte.is_ascii_whitespace())
                    .filter_map(|word| std::str::from_utf8(word).ok());
                ids.extend(words.filter(|word| is_object_id(word)).map(str::to_owned));
            }
        }
    }
    ids
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_was_written() {
        for (below, kind) in [
            (PathRoot::Worktree, KeptKind::File),
            (PathRoot::Admin, KeptKind::Link),
            (PathRoot::Worktree, KeptKind::Directory),
            (PathRoot::Worktree, KeptKind::Mode),
        ] {
            let line = ManifestLine { below, kind, mode: 0o4751, path: b"a\t\xff\nb".to_vec() };
            let written = line.write();
            assert_eq!(ManifestLine::read(&written[..written.len() - 1]), Some(line));
        }
        for odd in [&b""[..], b"wf", b"wf 9\tx", b"zf 644\tx", b"wz 644\tx"] {
            assert_eq!(ManifestLine::read(odd), None);
        }
    }
}
