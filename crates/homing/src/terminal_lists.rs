//! The lists that a terminal was shown last, so that `@1` is the first line of one.
//!
//! One small file for each terminal, only its user's to read, below the runtime or the cache directory. It is named by the terminal's
//! device and the session of processes in it, so that another window, or whoever gets the same device later, has none. It is worth
//! nothing later: whatever cannot be read or written is as if there was no list.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::os::fd::AsFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::termios::isatty;
use serde::{Deserialize, Serialize};

use crate::data_dir::write_whole;
use crate::names::Kind;

/// Lines of a list that are remembered; nobody counts further.
const LINES_MAX: usize = 1_000;
/// Ids that are remembered beside lists: what was said and asked in the last hours.
const MET_MAX: usize = 200;
/// The time after which the file of a terminal that is not used any more is removed, by whoever writes theirs.
const UNUSED_MAX: Duration = Duration::from_secs(7 * 24 * 3_600);
/// Files that are looked at for that.
const LOOKED_AT_MAX: usize = 256;

/// The last list of each kind that this terminal was shown.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct TerminalLists {
    /// The server that they are of.
    server: String,
    /// The kind of the very last one.
    last: Option<Kind>,
    lists: BTreeMap<Kind, Vec<String>>,
    /// Messages and questions whose short ids it was shown outside of lists, the newest last.
    #[serde(default)]
    met: Vec<String>,
}

impl TerminalLists {
    /// The lists of this terminal that are of this server; none if this is no terminal.
    pub(crate) fn read(server: &str) -> Option<Self> {
        let path = path_of(&directory()?)?;
        let read = fs::read(path).ok().and_then(|bytes| serde_json::from_slice::<Self>(&bytes).ok());
        let read = read.filter(|lists| lists.server == server);
        Some(read.unwrap_or_else(|| Self { server: server.to_owned(), ..Self::default() }))
    }

    /// Takes the place of the last list of this kind. Answers whether it is kept.
    pub(crate) fn keep(server: &str, kind: Kind, lines: &[String]) -> bool {
        let Some(mut lists) = Self::read(server) else { return false };
        lists.last = Some(kind);
        let before = lists.lists.insert(kind, lines.iter().take(LINES_MAX).cloned().collect());
        if matches!(kind, Kind::Message | Kind::Approval) {
            lists.remember(&before.unwrap_or_default());
        }
        lists.write().is_some()
    }

    /// Remembers ids that are shown outside of a list.
    pub(crate) fn meet(server: &str, ids: &[String]) {
        let Some(mut lists) = Self::read(server) else { return };
        // Whoever is told of the same one again and again writes it down once.
        if !lists.met.ends_with(ids) {
            lists.remember(ids);
            lists.write();
        }
    }

    fn remember(&mut self, ids: &[String]) {
        self.met.retain(|id| !ids.contains(id));
        self.met.extend(ids.iter().cloned());
        let beyond = self.met.len().saturating_sub(MET_MAX);
        self.met.drain(..beyond);
    }

    /// Those that were shown outside of a list.
    pub(crate) fn met(&self) -> &[String] {
        &self.met
    }

    /// The things on the lines of the last list of this kind.
    pub(crate) fn lines(&self, kind: Kind) -> &[String] {
        self.lists.get(&kind).map_or(&[], Vec::as_slice)
    }

    /// The kind among these that was listed last.
    pub(crate) fn last_of(&self, kinds: &[Kind]) -> Option<Kind> {
        let last = self.last.filter(|last| kinds.contains(last));
        last.or_else(|| kinds.iter().copied().find(|kind| self.lists.contains_key(kind)))
    }

    fn write(&self) -> Option<()> {
        let directory = directory()?;
        DirBuilder::new().recursive(true).mode(0o700).create(&directory).ok()?;
        clear(&directory);
        write_whole(&path_of(&directory)?, &serde_json::to_string(self).ok()?).ok()
    }
}

fn directory() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = || set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
    Some(set("XDG_RUNTIME_DIR").filter(|path| path.is_dir()).or_else(cache)?.join("homing").join("lists"))
}

/// The file of this terminal: whichever of our three streams is one says which.
fn path_of(directory: &Path) -> Option<PathBuf> {
    let (stdin, stdout, stderr) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
    let streams = [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()];
    let terminal = streams.into_iter().find(|stream| isatty(stream))?;
    let device = rustix::fs::fstat(terminal).ok()?.st_rdev;
    Some(directory.join(format!("{device:x}-{}", process_session())))
}

/// The session of processes that this one is in. Zero if its leader is outside of our PID namespace, which `rustix::process::getsid`
/// takes for impossible and panics about, and where there is no `/proc`: then the device alone tells terminals apart.
fn process_session() -> u32 {
    let status = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The program's name, in parentheses, may contain anything; after it come state, parent, group and session.
    let after_name = status.rsplit(')').next().unwrap_or_default();
    after_name.split_whitespace().nth(3).and_then(|session| session.parse().ok()).unwrap_or(0)
}

/// Removes the files of terminals that are gone.
fn clear(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.take(LOOKED_AT_MAX).flatten() {
        let age = entry.metadata().and_then(|met| met.modified()).ok().and_then(|at| at.elapsed().ok());
        if age.is_some_and(|age| age > UNUSED_MAX) {
            let _ = fs::remove_file(entry.path());
        }
    }
}
