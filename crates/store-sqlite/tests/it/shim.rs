//! A disk that loses what was not synced, and that can be told to fail.
//!
//! It stands between SQLite and the usual file layer, as the SQLite file layer named `shim`. Everything goes through to
//! real files, so SQLite sees what it wrote; beside them it keeps, per file, what a power cut would leave: what was
//! there at the last sync, and each write since. `Disk::cut` gives the files back as they might be found then: each
//! unsynced write is there, or not, or torn.
#![allow(unsafe_code)] // SQLite's file layer is C.

use rusqlite::ffi::{self, sqlite3_file, sqlite3_io_methods, sqlite3_vfs};
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The name that `Rig::vfs` must say.
pub(crate) const NAME: &str = "shim";

/// The files of one directory, as they would survive.
#[derive(Default)]
pub(crate) struct Disk {
    files: BTreeMap<String, Content>,
    chance: u64,
    /// The cut comes before this many further writes and syncs.
    cut_in: Option<u64>,
    left: Option<BTreeMap<String, Vec<u8>>>,
    /// The numbers that had been acknowledged when the cut came.
    pub(crate) acknowledged: Vec<u64>,
    /// True if the log had begun to be copied into the database when the cut came.
    pub(crate) copied: bool,
    /// So many syncs of the log fail from now on.
    pub(crate) failing_syncs: u32,
    /// The result of each write to the log, if not yes.
    pub(crate) write_says: Option<c_int>,
    /// Calls that wrote to the log.
    pub(crate) log_writes: u64,
}

/// A disk tears a long write anywhere: so much of it is one step.
const STEP_BYTES: usize = 4_096;

#[derive(Default)]
struct Content {
    synced: Vec<u8>,
    since: Vec<Step>,
}

enum Step {
    Write(usize, Vec<u8>),
    Truncate(usize),
}

impl Content {
    fn apply(to: &mut Vec<u8>, step: &Step, length: usize) {
        match step {
            Step::Write(at, bytes) => {
                let bytes = &bytes[..length.min(bytes.len())];
                to.resize(to.len().max(at + bytes.len()), 0);
                to[*at..at + bytes.len()].copy_from_slice(bytes);
            }
            Step::Truncate(length) => to.truncate(*length),
        }
    }

    fn sync(&mut self) {
        for step in std::mem::take(&mut self.since) {
            Self::apply(&mut self.synced, &step, usize::MAX);
        }
    }
}

impl Disk {
    /// Watches the files of a directory; what is in them now has been synced.
    pub(crate) fn watch(dir: &Path, chance: u64) -> Arc<Mutex<Disk>> {
        register();
        let disk = Arc::new(Mutex::new(Disk { chance: chance.max(1), ..Disk::default() }));
        lock(&DISKS).insert(dir.canonicalize().unwrap(), disk.clone());
        disk
    }

    /// Lets the power fail before so many further writes and syncs.
    pub(crate) fn cut_after(&mut self, steps: u64) {
        self.cut_in = Some(steps);
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.left.is_some()
    }

    /// Somebody was told that this is safe. What is said after the cut was said by nobody.
    pub(crate) fn acknowledge(&mut self, what: u64) {
        if self.left.is_none() {
            self.acknowledged.push(what);
        }
    }

    /// Writes down what the cut left.
    pub(crate) fn write_left(&self, dir: &Path) {
        for (name, bytes) in self.left.as_ref().unwrap() {
            std::fs::write(dir.join(name), bytes).unwrap();
        }
    }

    fn step(&mut self) {
        match self.cut_in {
            Some(0) if self.left.is_none() => self.left = Some(self.leave()),
            Some(steps) => self.cut_in = Some(steps.saturating_sub(1)),
            None => {}
        }
    }

    /// Each write since the last sync is there, or not, or torn between two sectors.
    fn leave(&mut self) -> BTreeMap<String, Vec<u8>> {
        let mut chance = self.chance;
        let mut next = move || {
            chance ^= chance << 13;
            chance ^= chance >> 7;
            chance ^= chance << 17;
            chance
        };
        // Some disks write early, some late.
        let kept_percent = next() % 101;
        let mut left = BTreeMap::new();
        for (name, content) in &self.files {
            let mut bytes = content.synced.clone();
            for step in &content.since {
                match next() % 100 {
                    roll if roll < kept_percent => Content::apply(&mut bytes, step, usize::MAX),
                    roll if roll % 4 == 0 => Content::apply(&mut bytes, step, 512 * (next() % 8) as usize),
                    _ => {}
                }
            }
            left.insert(name.clone(), bytes);
        }
        left
    }
}

pub(crate) fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

static DISKS: Mutex<BTreeMap<PathBuf, Arc<Mutex<Disk>>>> = Mutex::new(BTreeMap::new());
/// Open files of watched directories, by the address of SQLite's handle.
static OPEN: Mutex<BTreeMap<usize, Open>> = Mutex::new(BTreeMap::new());
static USUAL: OnceLock<Usual> = OnceLock::new();

#[derive(Clone)]
struct Open {
    usual: &'static sqlite3_io_methods,
    disk: Arc<Mutex<Disk>>,
    name: String,
}

struct Usual(*mut sqlite3_vfs);
// SAFETY: SQLite's default file layer lives as long as the process and may be called from any thread.
unsafe impl Send for Usual {}
// SAFETY: as above.
unsafe impl Sync for Usual {}

fn register() {
    USUAL.get_or_init(|| {
        // SAFETY: the layer that SQLite itself registered is copied, and the copy is never freed. Its functions use
        // nothing of the layer but what was copied along.
        unsafe {
            let usual = ffi::sqlite3_vfs_find(std::ptr::null());
            let mut shim = *usual;
            shim.zName = c"shim".as_ptr();
            shim.pNext = std::ptr::null_mut();
            shim.xOpen = Some(open);
            shim.xDelete = Some(delete);
            assert_eq!(ffi::sqlite3_vfs_register(Box::leak(Box::new(shim)), 0), ffi::SQLITE_OK);
            Usual(usual)
        }
    });
}

/// The disk of this path's directory, and the path's last part.
fn place(path: *const c_char) -> Option<(Arc<Mutex<Disk>>, String, PathBuf)> {
    if path.is_null() {
        return None;
    }
    // SAFETY: SQLite gives a path that ends with a zero byte.
    let path = PathBuf::from(unsafe { CStr::from_ptr(path) }.to_str().ok()?);
    let disk = lock(&DISKS).get(&path.parent()?.canonicalize().ok()?)?.clone();
    Some((disk, path.file_name()?.to_str()?.to_owned(), path))
}

unsafe extern "C" fn open(
    _: *mut sqlite3_vfs,
    path: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    let usual = USUAL.get().expect("registered before it is used").0;
    // SAFETY: SQLite's arguments are handed on as they came, to the layer that they are meant for.
    let code = unsafe { ((*usual).xOpen.unwrap())(usual, path, file, flags, out) };
    let watched = flags & (ffi::SQLITE_OPEN_MAIN_DB | ffi::SQLITE_OPEN_WAL) != 0;
    let Some((disk, name, path)) = place(path).filter(|_| watched && code == ffi::SQLITE_OK) else {
        return code;
    };
    let content = || Content { synced: std::fs::read(&path).unwrap_or_default(), since: vec![] };
    lock(&disk).files.entry(name.clone()).or_insert_with(content);
    // SAFETY: the file was opened, so its methods are there and live as long as the process.
    unsafe {
        let usual: &'static sqlite3_io_methods = &*(*file).pMethods;
        lock(&OPEN).insert(file.addr(), Open { usual, disk, name });
        let mut methods = *usual;
        methods.iVersion = methods.iVersion.min(2); // No memory map that writes behind our back.
        methods.xWrite = Some(write);
        methods.xTruncate = Some(truncate);
        methods.xSync = Some(sync);
        methods.xClose = Some(close);
        (*file).pMethods = Box::leak(Box::new(methods));
    }
    code
}

unsafe extern "C" fn delete(_: *mut sqlite3_vfs, path: *const c_char, sync_dir: c_int) -> c_int {
    if let Some((disk, name, _)) = place(path) {
        lock(&disk).files.remove(&name);
    }
    let usual = USUAL.get().expect("registered before it is used").0;
    // SAFETY: as in `open`.
    unsafe { ((*usual).xDelete.unwrap())(usual, path, sync_dir) }
}

fn opened(file: *mut sqlite3_file) -> Open {
    lock(&OPEN).get(&file.addr()).expect("every shimmed file was opened").clone()
}

unsafe extern "C" fn write(file: *mut sqlite3_file, from: *const c_void, length: c_int, at: i64) -> c_int {
    let Open { usual, disk, name } = opened(file);
    let mut disk = lock(&disk);
    if let Some(code) = disk.write_says.filter(|_| name.ends_with("-wal")) {
        return code;
    }
    disk.copied |= disk.left.is_none() && !name.ends_with("-wal");
    // SAFETY: SQLite's buffer has this length.
    let bytes = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), length as usize) }.to_vec();
    disk.log_writes += u64::from(name.ends_with("-wal"));
    // The power may fail between any two pieces of a write.
    for (piece, bytes) in bytes.chunks(STEP_BYTES).enumerate() {
        disk.step();
        let at = at as usize + piece * STEP_BYTES;
        // The last close deletes the log, and whoever opens it next begins with a new one.
        disk.files.entry(name.clone()).or_default().since.push(Step::Write(at, bytes.to_vec()));
    }
    // SAFETY: as in `open`.
    unsafe { (usual.xWrite.unwrap())(file, from, length, at) }
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, length: i64) -> c_int {
    let Open { usual, disk, name } = opened(file);
    let mut disk = lock(&disk);
    disk.step();
    disk.files.entry(name).or_default().since.push(Step::Truncate(length as usize));
    // SAFETY: as in `open`.
    unsafe { (usual.xTruncate.unwrap())(file, length) }
}

/// The real disk is spared: ours is the one that counts.
unsafe extern "C" fn sync(file: *mut sqlite3_file, _: c_int) -> c_int {
    let Open { disk, name, .. } = opened(file);
    let mut disk = lock(&disk);
    disk.step();
    if disk.failing_syncs > 0 && name.ends_with("-wal") {
        disk.failing_syncs -= 1;
        return ffi::SQLITE_IOERR_FSYNC;
    }
    disk.files.entry(name).or_default().sync();
    ffi::SQLITE_OK
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    let Open { usual, .. } = lock(&OPEN).remove(&file.addr()).expect("every shimmed file was opened");
    // SAFETY: as in `open`; the file gets its own methods back first.
    unsafe {
        (*file).pMethods = usual;
        (usual.xClose.unwrap())(file)
    }
}
