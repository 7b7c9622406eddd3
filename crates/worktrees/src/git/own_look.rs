//! A look at every file that our index has, and for names that it does not have, by ourselves: two runs of git less around a turn.
//!
//! Only what is plain is judged here: an index that git has written for us, with files and links in it and nothing else. Of everything
//! else nothing is said (`None`), and git is asked. A file is *differing* if it looks otherwise from outside than the index has it, as for
//! git. A file that was changed in the index's own second could have been changed once more since, to the same size: such a
//! *young* one is read, and compared by its hash. When all of them are as they were, the index is given the time of the look, so that the next
//! look need not read them again.
//!
//! Directories are opened name by name, and no link is followed. Whether a name that the index does not have is ignored, git says.
//! Many files are looked at in parts, by several threads of the runtime at once.

use std::ffi::OsStr;
use std::fs::{File, FileTimes};
use std::io::Read;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::available_parallelism;
use std::time::{Duration, SystemTime};

use ring::digest::{Algorithm, Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256};
use rustix::fs::{FileType, Stat};
use rustix::io::Errno;
use tokio::runtime::Handle;

use super::directory_handle::DirectoryHandle;

/// A larger index is left to git.
const INDEX_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Bytes of young files that are read. Beyond that git does it.
const YOUNG_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// A file is young if it was changed less than so long before the index was written.
const YOUNG: Duration = Duration::from_secs(1);
/// Deeper trees are left to git.
const DEPTH_MAX: usize = 256;
/// Threads at once. The agent that starts or ends at that moment wants a processor, too.
const THREADS_MAX: usize = 4;
/// Files of one part, at least: with fewer it is looked at sooner than another thread wakes.
const FILES_PER_PART_MIN: usize = 250;
/// Parts of one look: some for each thread, because one may get less of its processor than another.
const PARTS_MAX: usize = 16;

const HEADER_BYTES: usize = 12;
/// The bytes of an entry before its id.
const STAT_BYTES: usize = 40;
/// Flags of an entry that is not plain: hidden from git, of a merge, or with more flags.
const ODD_FLAGS: u16 = 0x8000 | 0x4000 | 0x3000;
/// The parts of an index that change nothing about its entries: trees, resolved conflicts, and where to find things in it.
const HARMLESS_PARTS: [&[u8]; 4] = [b"TREE", b"REUC", b"EOIE", b"IEOT"];

const KIND: u32 = 0o170_000;
const PLAIN: u32 = 0o100_644;
const EXECUTABLE: u32 = 0o100_755;
const LINK: u32 = 0o120_000;

/// The findings of one look.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OwnLook {
    /// Paths that look otherwise than the index has them, or are gone; each ended by a zero.
    pub(super) differing: Vec<u8>,
    /// There are names that the index does not have. Git knows which of them are ignored.
    pub(super) has_others: bool,
}

/// One file of the index, as it was when it was last looked into.
struct IndexedFile {
    changed: (u32, u32),
    modified: (u32, u32),
    number: u32,
    mode: u32,
    user: u32,
    group: u32,
    size: u32,
    /// Where its id and its path stand in the bytes of the index.
    id: Range<usize>,
    path: Range<usize>,
}

/// A file beside its entry.
enum FileStanding {
    Same,
    /// It looks the same, and may have other bytes.
    Young,
    Differing,
}

/// The index of a look.
struct Index {
    bytes: Vec<u8>,
    hash: &'static Algorithm,
    /// Entries of that time or later are young.
    young_since: (u32, u32),
    entries: Vec<IndexedFile>,
}

/// The parts of a look, for whichever thread takes them.
struct Parts {
    index: Index,
    top: DirectoryHandle,
    waiting: Mutex<Vec<Range<usize>>>,
}

/// The findings of one part, which begins at that entry; none if it cannot be judged here.
type LookedPart = (usize, Option<PartLook>);

struct PartLook {
    look: OwnLook,
    has_read_young: bool,
}

/// The walk through one part.
struct Walk<'a> {
    index: &'a Index,
    /// Entries from here on are another part's.
    until: usize,
    young_bytes_left: u64,
    found: PartLook,
}

/// Looks at the working tree. `None`: it is not plain, and git has to be asked.
pub(super) fn look(top: &Path, index: &Path, format: &str) -> Option<OwnLook> {
    let began = SystemTime::now();
    let mut file = File::open(index).ok()?;
    let about = file.metadata().ok().filter(|about| about.is_file() && about.len() <= INDEX_BYTES_MAX)?;
    let mut bytes = Vec::with_capacity(usize::try_from(about.len()).ok()?);
    (&mut file).take(INDEX_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    let hash = if format == "sha256" { &SHA256 } else { &SHA1_FOR_LEGACY_USE_ONLY };
    let entries = read_index(&bytes, hash.output_len())?;
    let seconds = u32::try_from(about.mtime()).ok()?.saturating_sub(u32::try_from(YOUNG.as_secs()).ok()?);
    let young_since = (seconds, u32::try_from(about.mtime_nsec()).ok()?);
    let parts = parts(entries.len(), (entries.len() / FILES_PER_PART_MIN).clamp(1, PARTS_MAX));
    let index = Index { bytes, hash, young_since, entries };
    let found = Parts::look(index, DirectoryHandle::open(top).ok()?, parts)?;
    if found.has_read_young && found.look.differing.is_empty() {
        // Everything is as the index has it, and was when this look began. If it stays as old as it is, the next look reads more.
        let _ = file.set_times(FileTimes::new().set_modified(began));
    }
    Some(found.look)
}

/// An index of so many files in so many parts, the last one first.
fn parts(files: usize, parts: usize) -> Vec<Range<usize>> {
    (0..parts).rev().map(|part| files * part / parts..files * (part + 1) / parts).collect()
}

impl Parts {
    /// Looks at all parts, with those threads of the runtime that have time for it, and puts together what was found.
    fn look(index: Index, top: DirectoryHandle, parts: Vec<Range<usize>>) -> Option<PartLook> {
        let (say, heard) = mpsc::channel();
        let count = parts.len();
        let all = Arc::new(Self { index, top, waiting: Mutex::new(parts) });
        let helpers = available_parallelism().map_or(1, usize::from).min(THREADS_MAX).min(count) - 1;
        if let Ok(runtime) = Handle::try_current() {
            for _ in 0..helpers {
                let (all, say) = (all.clone(), say.clone());
                runtime.spawn_blocking(move || all.take(&say));
            }
        }
        // Whoever comes too late to help finds nothing to do, and nobody waits for them.
        all.take(&say);
        drop(say);
        let mut found: Vec<LookedPart> = heard.iter().take(count).collect();
        found.sort_unstable_by_key(|(start, _)| *start);
        if found.len() < count {
            return None;
        }
        found.into_iter().map(|(_, found)| found).reduce(|all, next| Some(all?.and(next?)))?
    }

    fn take(&self, say: &mpsc::Sender<LookedPart>) {
        while let Some(part) = self.next() {
            let (start, until, young_bytes_left) = (part.start, part.end, YOUNG_BYTES_MAX);
            let look = OwnLook { differing: Vec::new(), has_others: false };
            let found = PartLook { look, has_read_young: false };
            let mut walk = Walk { index: &self.index, until, young_bytes_left, found };
            let whole = start..self.index.entries.len();
            let walked = walk.directory(&self.top, whole, 0, 0).map(|()| walk.found);
            let _ = say.send((start, walked)); // Whoever does not listen has found something that cannot be judged.
        }
    }

    fn next(&self) -> Option<Range<usize>> {
        // Nothing panics while holding it.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }
}

impl PartLook {
    fn and(mut self, next: Self) -> Self {
        self.has_read_young |= next.has_read_young;
        self.look.has_others |= next.look.has_others;
        self.look.differing.extend(next.look.differing);
        self
    }
}

impl Index {
    fn path(&self, number: usize) -> &[u8] {
        &self.bytes[self.entries[number].path.clone()]
    }

    /// True if the first of these entries of a directory is the first that there is in it.
    fn has_first(&self, entries: &Range<usize>, above: usize) -> bool {
        let Some(before) = entries.start.checked_sub(1) else { return true };
        above > 0 && !self.path(before).starts_with(&self.path(entries.start)[..above])
    }

    /// The end of the run of entries that are below a directory, from this one on.
    fn end_below(&self, entries: Range<usize>, below: &[u8]) -> usize {
        let inside = |entry: &IndexedFile| self.bytes[entry.path.clone()].starts_with(below);
        entries.start + self.entries[entries].partition_point(inside)
    }
}

impl Walk<'_> {
    /// Looks at one directory with everything below it, as far as it is in this part. The first `above` bytes of these entries' paths are
    /// its own. The part that has a directory's first entry has the look for other names in it.
    fn directory(
        &mut self,
        at: &DirectoryHandle,
        entries: Range<usize>,
        above: usize,
        depth: usize,
    ) -> Option<()> {
        if depth > DEPTH_MAX {
            return None;
        }
        let index = self.index;
        let (mut names, mut next) = (Vec::new(), entries.start);
        let has_first = index.has_first(&entries, above);
        let end = if has_first { entries.end } else { entries.end.min(self.until) };
        while next < end {
            let path = index.path(next);
            let rest = &path[above..];
            let Some(slash) = rest.iter().position(|byte| *byte == b'/') else {
                names.push((rest, false));
                if next < self.until {
                    self.file(at, next, rest)?;
                }
                next += 1;
                continue;
            };
            let (name, below) = (&rest[..slash], &path[..above + slash + 1]);
            names.push((name, true));
            let inside = next..index.end_below(next..entries.end, below);
            next = inside.end;
            if inside.start < self.until {
                self.inside(at, OsStr::from_bytes(name), inside, (below.len(), depth + 1))?;
            }
        }
        if has_first && !self.found.look.has_others {
            names.sort_unstable();
            self.found.look.has_others = has_others(at, &names, depth == 0)?;
        }
        Some(())
    }

    fn inside(
        &mut self,
        at: &DirectoryHandle,
        name: &OsStr,
        entries: Range<usize>,
        (above, depth): (usize, usize),
    ) -> Option<()> {
        match at.below(name) {
            Ok(inside) => self.directory(&inside, entries, above, depth),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {
                (entries.start..entries.end.min(self.until)).for_each(|gone| self.differs(gone));
                Some(())
            }
            Err(_) => None,
        }
    }

    fn differs(&mut self, number: usize) {
        self.found.look.differing.extend_from_slice(self.index.path(number));
        self.found.look.differing.push(0);
    }

    fn file(&mut self, at: &DirectoryHandle, number: usize, name: &[u8]) -> Option<()> {
        let index = self.index;
        let (entry, name) = (&index.entries[number], OsStr::from_bytes(name));
        let standing = match at.stat(name) {
            Ok(stat) => entry.standing(&stat, index.young_since)?,
            Err(Errno::NOENT) => FileStanding::Differing,
            Err(_) => return None,
        };
        let is_same = match standing {
            FileStanding::Same => true,
            FileStanding::Differing => false,
            FileStanding::Young => {
                self.young_bytes_left = self.young_bytes_left.checked_sub(u64::from(entry.size))?;
                self.found.has_read_young = true;
                // Nothing about it may have changed while it was read.
                let is_same = has_bytes(at, name, entry, index)?;
                is_same && at.stat(name).ok().is_some_and(|stat| entry.looks_like(&stat) == Some(true))
            }
        };
        if !is_same {
            self.differs(number);
        }
        Some(())
    }
}

impl IndexedFile {
    /// None: it cannot be judged here.
    fn standing(&self, stat: &Stat, young_since: (u32, u32)) -> Option<FileStanding> {
        if !self.looks_like(stat)? {
            return Some(FileStanding::Differing);
        }
        let is_to_the_nanosecond = is_that_nanosecond(self.modified.1, stat.st_mtime_nsec)
            && is_that_nanosecond(self.changed.1, stat.st_ctime_nsec);
        // Without nanoseconds the whole second is young.
        let is_young = match self.modified.1 {
            0 => self.modified.0 >= young_since.0,
            _ => self.modified >= young_since,
        };
        Some(if is_young || !is_to_the_nanosecond { FileStanding::Young } else { FileStanding::Same })
    }

    /// As git compares them: numbers are cut to 32 bits, and times are whole seconds.
    fn looks_like(&self, stat: &Stat) -> Option<bool> {
        #[expect(clippy::cast_possible_truncation, reason = "the index has the lower half, for git, too")]
        let low = |number: u64| number as u32;
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile if stat.st_mode & 0o100 != 0 => EXECUTABLE,
            FileType::RegularFile => PLAIN,
            FileType::Symlink => LINK,
            _ => return Some(false),
        };
        Some(
            kind == self.mode
                && low(u64::try_from(stat.st_size).ok()?) == self.size
                && low(u64::try_from(stat.st_mtime).ok()?) == self.modified.0
                && low(u64::try_from(stat.st_ctime).ok()?) == self.changed.0
                && low(stat.st_ino) == self.number
                && (stat.st_uid, stat.st_gid) == (self.user, self.group),
        )
    }
}

/// True if the index has that nanosecond, or none: a git that writes none writes zeros.
fn is_that_nanosecond(seen: u32, now: impl TryInto<u64>) -> bool {
    seen == 0 || now.try_into().is_ok_and(|now| now == u64::from(seen))
}

/// The entries of an index, in its order. `None`: it is not plain.
fn read_index(bytes: &[u8], id_bytes: usize) -> Option<Vec<IndexedFile>> {
    let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    if bytes.get(..4)? != b"DIRC" || !matches!(number(4)?, 2 | 3) {
        return None;
    }
    let end = bytes.len().checked_sub(id_bytes)?;
    let count = usize::try_from(number(8)?).ok()?;
    let (mut entries, mut at) = (Vec::with_capacity(count.min(bytes.len() / STAT_BYTES)), HEADER_BYTES);
    for _ in 0..count {
        let field = |which: usize| number(at + which * 4);
        let flags_at = at + STAT_BYTES + id_bytes;
        let flags = u16::from_be_bytes(bytes.get(flags_at..flags_at + 2)?.try_into().ok()?);
        let rest = bytes.get(flags_at + 2..end)?;
        let path = flags_at + 2..flags_at + 2 + rest.iter().position(|byte| *byte == 0)?;
        let entry = IndexedFile {
            changed: (field(0)?, field(1)?),
            modified: (field(2)?, field(3)?),
            number: field(5)?,
            mode: field(6)?,
            user: field(7)?,
            group: field(8)?,
            size: field(9)?,
            id: at + STAT_BYTES..flags_at,
            path: path.clone(),
        };
        let is_plain = flags & ODD_FLAGS == 0 && matches!(entry.mode, PLAIN | EXECUTABLE | LINK);
        let is_in_order =
            entries.last().is_none_or(|last: &IndexedFile| bytes[last.path.clone()] < bytes[path.clone()]);
        if !is_plain || !is_in_order || path.is_empty() {
            return None;
        }
        entries.push(entry);
        // Filled up with one to eight zeros.
        at += (flags_at + 2 - at + path.len() + 8) & !7;
    }
    while at < end {
        if !HARMLESS_PARTS.contains(&bytes.get(at..at + 4)?) {
            return None;
        }
        at = at.checked_add(8)?.checked_add(usize::try_from(number(at + 4)?).ok()?)?;
    }
    (at == end).then_some(entries)
}

/// True if a directory has names that are not among these, or has one as another kind of thing.
fn has_others(at: &DirectoryHandle, known: &[(&[u8], bool)], is_top: bool) -> Option<bool> {
    for entry in at.names().ok()? {
        let entry = entry.ok()?;
        let name = entry.file_name().to_bytes();
        if matches!(name, b"." | b"..") || (is_top && name == b".git") {
            continue;
        }
        let is_directory = match entry.file_type() {
            FileType::Unknown => return None,
            kind => kind == FileType::Directory,
        };
        if known.binary_search(&(name, is_directory)).is_err() {
            return Some(true);
        }
    }
    Some(false)
}

/// True if a file, or a link, has the bytes that its entry names.
fn has_bytes(at: &DirectoryHandle, name: &OsStr, entry: &IndexedFile, index: &Index) -> Option<bool> {
    let id = &index.bytes[entry.id.clone()];
    let mut context = Context::new(index.hash);
    context.update(format!("blob {}\0", entry.size).as_bytes());
    if entry.mode & KIND == LINK {
        context.update(&at.read_link(name).ok()?);
        return Some(context.finish().as_ref() == id);
    }
    // One byte more than it had: then it is another.
    let mut file = at.read(name).ok()?.take(u64::from(entry.size) + 1);
    let mut piece = [0; 64 * 1024];
    loop {
        match file.read(&mut piece).ok()? {
            0 => return Some(context.finish().as_ref() == id),
            read => context.update(&piece[..read]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::PathBuf;
    use std::process::Command;

    struct Tree {
        place: tempfile::TempDir,
        format: &'static str,
    }

    impl Tree {
        fn of(format: &'static str, files: &[(&str, &str)]) -> Self {
            let tree = Self { place: tempfile::tempdir().unwrap(), format };
            tree.git(&["init", "-q", &format!("--object-format={format}")]);
            for (path, text) in files {
                tree.write(path, text);
            }
            tree.git(&["add", "."]);
            tree
        }

        fn at(&self, path: &str) -> PathBuf {
            self.place.path().join(path)
        }

        fn write(&self, path: &str, text: &str) {
            fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
            fs::write(self.at(path), text).unwrap();
        }

        fn git(&self, words: &[&str]) -> String {
            let settings = ["-c", "index.version=2", "-c", "core.untrackedCache=false"];
            let mut git = Command::new("git");
            git.current_dir(self.place.path())
                .args(settings)
                .args(words)
                .env("GIT_CONFIG_GLOBAL", "/dev/null");
            let out = git.output().unwrap();
            assert!(out.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&out.stderr));
            String::from_utf8(out.stdout).unwrap()
        }

        fn look(&self) -> Option<OwnLook> {
            look(self.place.path(), &self.at(".git/index"), self.format)
        }

        /// Everything was written so long ago that nothing is young.
        fn age(&self) {
            let long_ago = SystemTime::now() - Duration::from_secs(3_600);
            for path in self.git(&["ls-files", "-z"]).split('\0').filter(|path| !path.is_empty()) {
                if !self.at(path).is_symlink() {
                    let times = FileTimes::new().set_modified(long_ago);
                    File::options().append(true).open(self.at(path)).unwrap().set_times(times).unwrap();
                }
            }
            self.git(&["update-index", "-q", "--refresh"]);
        }

        fn differing(&self) -> Vec<String> {
            let look = self.look().expect("it is plain");
            String::from_utf8(look.differing).unwrap().split_terminator('\0').map(str::to_owned).collect()
        }
    }

    const FILES: [(&str, &str); 6] =
        [("a", "one"), ("b.txt", "two"), ("b/c", "three"), ("b/d/e", "four"), ("b/d/f", "five"), ("z", "")];

    #[test]
    fn nothing_has_changed_and_nothing_is_new() {
        for format in ["sha1", "sha256"] {
            let tree = Tree::of(format, &FILES);
            for _ in 0..2 {
                assert_eq!(tree.look(), Some(OwnLook { differing: Vec::new(), has_others: false }));
            }
            tree.age();
            assert_eq!(tree.look(), Some(OwnLook { differing: Vec::new(), has_others: false }));
        }
    }

    #[test]
    fn what_looks_otherwise_is_named_as_git_names_it() {
        type Change = fn(&Tree);
        let changes: [(&str, Change, bool); 9] = [
            ("a", |tree| tree.write("a", "longer"), false),
            ("b/c", |tree| fs::remove_file(tree.at("b/c")).unwrap(), false),
            ("b/c b/d/e b/d/f", |tree| fs::remove_dir_all(tree.at("b")).unwrap(), false),
            (
                "z",
                |tree| fs::set_permissions(tree.at("z"), fs::Permissions::from_mode(0o755)).unwrap(),
                false,
            ),
            (
                "a",
                |tree| {
                    fs::remove_file(tree.at("a")).unwrap();
                    symlink("one", tree.at("a")).unwrap();
                },
                false,
            ),
            (
                "a",
                |tree| {
                    fs::remove_file(tree.at("a")).unwrap();
                    tree.write("a/new", "x");
                },
                true,
            ),
            (
                "b/d/e b/d/f",
                |tree| {
                    fs::rename(tree.at("b/d"), tree.at("b/moved")).unwrap();
                    symlink("moved", tree.at("b/d")).unwrap();
                },
                true,
            ),
            ("", |tree| tree.write("b/d/new", "x"), true),
            ("", |tree| fs::create_dir(tree.at("b/.git")).unwrap(), true),
        ];
        for (named, change, has_others) in changes {
            let tree = Tree::of("sha1", &FILES);
            tree.age();
            change(&tree);
            let look = tree.look().expect("it is plain");
            let git = tree.git(&["diff-files", "--name-only", "-z"]);
            assert_eq!(String::from_utf8(look.differing).unwrap(), git, "{named}");
            assert_eq!(git.split_terminator('\0').collect::<Vec<_>>().join(" "), named);
            assert_eq!(look.has_others, has_others, "{named}");
        }
    }

    /// As many parts as there are files, too: in each directory some part begins in the midst.
    #[tokio::test]
    async fn several_parts_have_what_the_whole_has() {
        let paths: Vec<_> =
            (0..60).map(|number| format!("d{}/e{}/f{number}", number % 2, number % 3)).collect();
        let mut files: Vec<_> = paths.iter().map(|path| (path.as_str(), "x")).collect();
        files.extend(FILES);
        let tree = Tree::of("sha1", &files);
        tree.age();
        let changes: [fn(&Tree); 5] = [
            |_| {},
            |tree| tree.write("d0/e1/f4", "longer"),
            |tree| fs::remove_dir_all(tree.at("d1/e0")).unwrap(),
            |tree| tree.write("d0/e2/new", "x"),
            |tree| fs::remove_file(tree.at("z")).unwrap(),
        ];
        for change in changes {
            change(&tree);
            let look = async |count: usize| {
                let bytes = fs::read(tree.at(".git/index")).unwrap();
                let entries = read_index(&bytes, 20).unwrap();
                let parts = parts(entries.len(), count);
                let index =
                    Index { bytes, hash: &SHA1_FOR_LEGACY_USE_ONLY, young_since: (u32::MAX, 0), entries };
                let top = DirectoryHandle::open(tree.place.path()).unwrap();
                let look = tokio::task::spawn_blocking(|| Parts::look(index, top, parts));
                look.await.unwrap().unwrap().look
            };
            let whole = look(1).await;
            let git = tree.git(&["diff-files", "--name-only", "-z"]);
            assert_eq!(String::from_utf8(whole.differing.clone()).unwrap(), git);
            for count in [2, 3, 7, files.len()] {
                assert_eq!(look(count).await, whole, "{count} parts");
            }
        }
    }

    #[test]
    fn the_parts_are_the_whole() {
        assert_eq!(parts(7, 1).first(), Some(&(0..7)));
        assert_eq!(parts(7, 2), [3..7, 0..3]);
    }

    #[test]
    fn a_young_file_that_was_changed_once_more_to_the_same_size_is_seen() {
        for _ in 0..20 {
            let tree = Tree::of("sha1", &FILES);
            assert_eq!(tree.differing(), Vec::<String>::new());
            tree.write("b/c", "THREE");
            assert_eq!(tree.differing(), ["b/c"]);
            tree.git(&["add", "."]);
            tree.write("b/c", "tHREE");
            assert_eq!(tree.differing(), ["b/c"], "whatever the clock says");
        }
    }

    #[test]
    fn what_was_read_once_is_not_read_again() {
        let tree = Tree::of("sha1", &FILES);
        let written = || fs::metadata(tree.at(".git/index")).unwrap().modified().unwrap();
        let before = written();
        // The files of a turn are some seconds old when the next one begins.
        let old = FileTimes::new().set_modified(before - Duration::from_millis(500));
        File::options().append(true).open(tree.at("a")).unwrap().set_times(old).unwrap();
        tree.git(&["update-index", "-q", "--refresh"]);
        let before = written();
        assert_eq!(tree.differing(), Vec::<String>::new());
        let after = written();
        assert!(after > before, "the index has the time of the look");
        tree.age();
        let before = written();
        assert_eq!(tree.differing(), Vec::<String>::new());
        assert_eq!(written(), before, "nothing was young");
    }

    #[test]
    fn what_is_not_plain_is_left_to_git() {
        let tree = Tree::of("sha1", &FILES);
        tree.git(&["update-index", "--index-version", "4"]);
        assert_eq!(tree.look(), None, "shortened paths");
        let tree = Tree::of("sha1", &FILES);
        tree.git(&["update-index", "--assume-unchanged", "a"]);
        assert_eq!(tree.look(), None, "a file that is hidden from git");
        let tree = Tree::of("sha1", &FILES);
        let id = "1".repeat(40);
        tree.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{id},sub")]);
        assert_eq!(tree.look(), None, "a submodule");
        let tree = Tree::of("sha1", &FILES);
        tree.git(&["update-index", "--split-index"]);
        assert_eq!(tree.look(), None, "a split index");
        let tree = Tree::of("sha1", &FILES);
        fs::write(tree.at(".git/index"), b"DIRC\0\0\0\x02\xff\xff\xff\xff").unwrap();
        assert_eq!(tree.look(), None, "nothing behind its head");
    }

    #[test]
    fn no_index_however_broken_makes_it_stumble() {
        let tree = Tree::of("sha1", &FILES);
        let whole = fs::read(tree.at(".git/index")).unwrap();
        for at in 0..whole.len() {
            for byte in [0, 1, 0x2f, 0x7f, 0xff] {
                let mut broken = whole.clone();
                broken[at] = byte;
                let _ = read_index(&broken, 20);
            }
            assert!(read_index(&whole[..at], 20).is_none_or(|entries| entries.len() <= FILES.len()));
        }
    }
}
