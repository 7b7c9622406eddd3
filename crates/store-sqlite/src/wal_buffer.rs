//! A layer between SQLite and its files that hands a commit to the write-ahead log in one write.
//!
//! SQLite writes each page of a commit by itself, in two calls: its header, then its bytes. A message is a dozen pages and a
//! group some hundred, so the calls cost more than the bytes. This layer collects what is written to the end of the log
//! and writes it when SQLite syncs the log, which it does before it shows a commit to anybody: readers learn of a page only after it
//! is in the file. Whatever does not fit into that (a read, a write somewhere else, too much of it) writes first what was
//! collected. All other files go straight to the layer below.
#![allow(unsafe_code)] // SQLite's file layer is C.

use rusqlite::ffi::{self, sqlite3_file, sqlite3_int64, sqlite3_io_methods, sqlite3_vfs};
use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::{Mutex, PoisonError};

/// Bytes that are collected. A larger commit is written in pieces of this size; their memory is kept for the next one.
const COLLECTED_BYTES_MAX: usize = 1 << 20;
/// Bytes in one write. SQLite's own layer takes less than 128 KiB at once, since no page is larger than half of that.
const WRITE_BYTES_MAX: usize = 64 << 10;

/// The names of the layers there are, by the name of the layer below.
static LAYERS: Mutex<BTreeMap<Option<&'static str>, &'static str>> = Mutex::new(BTreeMap::new());

/// The name of this layer over another one, or over SQLite's own. None if SQLite does not take it: then the one below has to do.
pub(crate) fn layer_over(below: Option<&'static str>) -> Option<&'static str> {
    let mut layers = LAYERS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(name) = layers.get(&below) {
        return Some(name);
    }
    let name = register(below)?;
    layers.insert(below, name);
    Some(name)
}

/// Our layer as SQLite sees it, and the one below, which only we see.
#[repr(C)]
struct Layer {
    seen: sqlite3_vfs,
    below: *mut sqlite3_vfs,
}

fn register(below: Option<&'static str>) -> Option<&'static str> {
    let wanted = below.map(|name| CString::new(name).expect("a name in our own code"));
    let own = CString::new(format!("homing-wal-{}", below.unwrap_or("usual"))).expect("as above");
    let own: &'static std::ffi::CStr = Box::leak(own.into_boxed_c_str());
    // SAFETY: SQLite gives a layer that lives as long as the process. It is copied, so that whatever we do not change is
    // its own, and the copy is never freed.
    unsafe {
        let below = ffi::sqlite3_vfs_find(wanted.as_ref().map_or(std::ptr::null(), |name| name.as_ptr()));
        if below.is_null() {
            return None;
        }
        let mut seen = *below;
        seen.zName = own.as_ptr();
        seen.pNext = std::ptr::null_mut();
        seen.szOsFile += size_of::<LogFile>() as c_int;
        seen.xOpen = Some(open);
        let layer = Box::leak(Box::new(Layer { seen, below }));
        (ffi::sqlite3_vfs_register(&raw mut layer.seen, 0) == ffi::SQLITE_OK)
            .then(|| own.to_str().ok())
            .flatten()
    }
}

/// An open write-ahead log. The file of the layer below lies behind it, in memory that is SQLite's.
#[repr(C)]
struct LogFile {
    head: sqlite3_file,
    collected: *mut Collected,
}

/// Bytes that were written and are not in the file yet, from `at` on.
#[derive(Default)]
struct Collected {
    at: sqlite3_int64,
    bytes: Vec<u8>,
}

static METHODS: sqlite3_io_methods = sqlite3_io_methods {
    // What came later is for databases: locks, shared memory, maps.
    iVersion: 1,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: None,
    xShmLock: None,
    xShmBarrier: None,
    xShmUnmap: None,
    xFetch: None,
    xUnfetch: None,
};

unsafe extern "C" fn open(
    layer: *mut sqlite3_vfs,
    path: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    // SAFETY: SQLite calls us with the layer that we registered, which is the first part of a `Layer`, and with memory for
    // a file that is as large as that layer said: ours, and the one below behind it.
    unsafe {
        let below = (*layer.cast::<Layer>()).below;
        let Some(open_below) = (*below).xOpen else { return ffi::SQLITE_CANTOPEN };
        if flags & ffi::SQLITE_OPEN_WAL == 0 {
            return open_below(below, path, file, flags, out);
        }
        (*file).pMethods = std::ptr::null();
        let inner = inner(file);
        (*inner).pMethods = std::ptr::null();
        let code = open_below(below, path, inner, flags, out);
        if code == ffi::SQLITE_OK {
            (*file.cast::<LogFile>()).collected = Box::into_raw(Box::default());
            (*file).pMethods = &raw const METHODS;
        } else if let Some(close_below) = (*inner).pMethods.as_ref().and_then(|methods| methods.xClose) {
            // A layer that failed and left methods wants to be closed; SQLite does not see this one.
            close_below(inner);
        }
        code
    }
}

/// The file of the layer below.
fn inner(file: *mut sqlite3_file) -> *mut sqlite3_file {
    file.cast::<LogFile>().wrapping_add(1).cast()
}

/// Calls a method of the file below, with its file in the place of ours.
macro_rules! below {
    ($file:expr, $method:ident $(, $argument:expr)*) => {{
        let inner = inner($file);
        // SAFETY: the file below was opened with ours, so its methods are there; the arguments are SQLite's own.
        unsafe {
            match (*(*inner).pMethods).$method {
                Some(method) => method(inner $(, $argument)*),
                None => ffi::SQLITE_IOERR,
            }
        }
    }};
}

/// The bytes that were collected for this file. SQLite uses a file from one thread at a time.
fn collected<'a>(file: *mut sqlite3_file) -> &'a mut Collected {
    // SAFETY: `open` has put it there, `close` takes it away, and nobody else has it.
    unsafe { &mut *(*file.cast::<LogFile>()).collected }
}

/// Writes what was collected. If that fails, it is given up: SQLite hears of it, and takes the commit back.
fn flush(file: *mut sqlite3_file) -> c_int {
    let collected = collected(file);
    let mut at = collected.at;
    let mut code = ffi::SQLITE_OK;
    for piece in collected.bytes.chunks(WRITE_BYTES_MAX) {
        code = below!(file, xWrite, piece.as_ptr().cast(), piece.len() as c_int, at);
        if code != ffi::SQLITE_OK {
            break;
        }
        at += piece.len() as sqlite3_int64;
    }
    collected.bytes.clear();
    collected.at = at;
    code
}

/// Answers with an error if what was collected cannot be written.
macro_rules! flush_or_return {
    ($file:expr) => {
        match flush($file) {
            ffi::SQLITE_OK => {}
            code => return code,
        }
    };
}

unsafe extern "C" fn write(
    file: *mut sqlite3_file,
    from: *const c_void,
    length: c_int,
    at: sqlite3_int64,
) -> c_int {
    let known = collected(file);
    let goes_on = at == known.at + known.bytes.len() as sqlite3_int64;
    if !goes_on || known.bytes.len() + length as usize > COLLECTED_BYTES_MAX {
        flush_or_return!(file);
        known.at = at;
    }
    // SAFETY: SQLite's buffer has this length.
    known.bytes.extend_from_slice(unsafe { std::slice::from_raw_parts(from.cast(), length as usize) });
    ffi::SQLITE_OK
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, flags: c_int) -> c_int {
    flush_or_return!(file);
    below!(file, xSync, flags)
}

unsafe extern "C" fn read(
    file: *mut sqlite3_file,
    to: *mut c_void,
    length: c_int,
    at: sqlite3_int64,
) -> c_int {
    flush_or_return!(file);
    below!(file, xRead, to, length, at)
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, length: sqlite3_int64) -> c_int {
    flush_or_return!(file);
    below!(file, xTruncate, length)
}

unsafe extern "C" fn file_size(file: *mut sqlite3_file, length: *mut sqlite3_int64) -> c_int {
    flush_or_return!(file);
    below!(file, xFileSize, length)
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    let flushed = flush(file);
    // SAFETY: SQLite does not use a file after it has closed it; `open` made this box.
    drop(unsafe { Box::from_raw((*file.cast::<LogFile>()).collected) });
    match below!(file, xClose) {
        ffi::SQLITE_OK => flushed,
        code => code,
    }
}

unsafe extern "C" fn lock(file: *mut sqlite3_file, level: c_int) -> c_int {
    below!(file, xLock, level)
}

unsafe extern "C" fn unlock(file: *mut sqlite3_file, level: c_int) -> c_int {
    below!(file, xUnlock, level)
}

unsafe extern "C" fn check_reserved_lock(file: *mut sqlite3_file, out: *mut c_int) -> c_int {
    below!(file, xCheckReservedLock, out)
}

unsafe extern "C" fn file_control(file: *mut sqlite3_file, what: c_int, with: *mut c_void) -> c_int {
    below!(file, xFileControl, what, with)
}

unsafe extern "C" fn sector_size(file: *mut sqlite3_file) -> c_int {
    below!(file, xSectorSize)
}

unsafe extern "C" fn device_characteristics(file: *mut sqlite3_file) -> c_int {
    below!(file, xDeviceCharacteristics)
}
