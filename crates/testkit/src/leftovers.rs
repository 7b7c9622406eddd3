//! Processes that have something to do with a directory, found in `/proc`: what should be gone, if it is not.
//!
//! Supervisors hold a lock in the data directory, agents have it in their arguments and environment, and whatever they
//! start inherits that; so each is found by what it has open or what it was told, and not by its name.

use std::fs;
use std::path::Path;

/// A process that is still there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    pub pid: u32,
    /// Its arguments, for whoever reads the failure.
    pub arguments: String,
    /// True for a ground worker and its supervisor: a server that is there keeps them a while for the next call.
    pub is_workers: bool,
}

/// Every process but ourselves and `but` that names `directory` in its arguments or environment, works in it, or has a
/// file of it open.
pub fn leftovers(directory: &Path, but: &[u32]) -> Vec<Leftover> {
    let pids = fs::read_dir("/proc").expect("there is a /proc").flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let others = pids.filter(|pid| *pid != std::process::id() && !but.contains(pid));
    others.filter_map(|pid| look(pid, directory)).collect()
}

/// Our number of an agent that knows itself by another one, because it has a namespace of processes: below that supervisor,
/// and below the first process of the namespace.
pub fn number_outside(supervisor: u32, own: u32) -> Option<u32> {
    let pids = fs::read_dir("/proc").expect("there is a /proc").flatten();
    let mut pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.find(|pid| {
        let above = [parent_of(*pid), parent_of(*pid).and_then(parent_of)];
        status_of(*pid, "NSpid:") == Some(own) && above.contains(&Some(supervisor))
    })
}

/// The agent's own process: the eldest below its supervisor, or below the first process of its namespace, which is ours.
pub fn agent_below(supervisor: u32) -> Option<u32> {
    let eldest = |parent| children_of(parent).into_iter().min_by_key(|pid| started(*pid));
    let first = eldest(supervisor)?;
    let is_ours = status_of(first, "NSpid:") == Some(1);
    if is_ours { eldest(first) } else { Some(first) }
}

/// The time at which a process began, in ticks since the machine did.
fn started(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after_name = stat.rsplit_once(')').map(|(_, rest)| rest).unwrap_or_default();
    after_name.split_whitespace().nth(19).and_then(|ticks| ticks.parse().ok()).unwrap_or(u64::MAX)
}

/// The spare supervisor of a server and the first process that it has prepared, once both are there: a supervisor below the
/// server that has nothing below it but that.
pub fn spare_of(server: u32) -> Option<[u32; 2]> {
    let is_supervisor = |pid: &u32| {
        let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        arguments.ends_with(b"\0supervise\0")
    };
    children_of(server).into_iter().filter(is_supervisor).find_map(|supervisor| {
        match children_of(supervisor).as_slice() {
            [first] if children_of(*first).is_empty() => Some([supervisor, *first]),
            _ => None,
        }
    })
}

fn children_of(parent: u32) -> Vec<u32> {
    let pids = fs::read_dir("/proc").expect("there is a /proc").flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| parent_of(*pid) == Some(parent)).collect()
}

/// The parent of a process.
pub fn parent_of(pid: u32) -> Option<u32> {
    status_of(pid, "PPid:")
}

/// The last number of a line about a process.
fn status_of(pid: u32, line: &str) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|found| found.strip_prefix(line))?.split_whitespace().last()?.parse().ok()
}

fn look(pid: u32, directory: &Path) -> Option<Leftover> {
    let proc = Path::new("/proc").join(pid.to_string());
    // What has gone meanwhile cannot be read, and is no leftover.
    let arguments = fs::read(proc.join("cmdline")).ok()?;
    let names_it = |bytes: &[u8]| {
        let name = directory.as_os_str().as_encoded_bytes();
        bytes.windows(name.len()).any(|window| window == name)
    };
    let told = names_it(&arguments) || fs::read(proc.join("environ")).is_ok_and(|bytes| names_it(&bytes));
    let stands = || fs::read_link(proc.join("cwd")).is_ok_and(|cwd| cwd.starts_with(directory));
    if !told && !stands() && !holds(&proc, |path| path.starts_with(directory)) {
        return None;
    }
    let arguments = String::from_utf8_lossy(&arguments).replace('\0', " ").trim_end().to_owned();
    let is_lock = |path: &Path| path.to_string_lossy().ends_with("_ground.lock");
    let is_workers =
        arguments.ends_with(" ground") || arguments.ends_with(" supervise") && holds(&proc, is_lock);
    Some(Leftover { pid, arguments, is_workers })
}

/// True if it has such a file open.
fn holds(proc: &Path, is_it: impl Fn(&Path) -> bool) -> bool {
    let Ok(files) = fs::read_dir(proc.join("fd")) else { return false };
    files.flatten().any(|file| fs::read_link(file.path()).is_ok_and(|target| is_it(&target)))
}
