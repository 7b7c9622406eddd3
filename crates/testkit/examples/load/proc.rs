//! A process as the kernel sees it: the memory that is its own, and the time it has had; and what it allows ours.

use std::time::Duration;

/// The proportional set size in bytes.
pub(crate) fn pss_bytes(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).expect("the server runs");
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:")).expect("a PSS");
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().expect("kilobytes");
    kilobytes * 1024
}

/// User and system time so far.
pub(crate) fn cpu(pid: u32) -> Duration {
    let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap_or_default();
    let main: u64 = text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0);
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Duration::from_nanos(main) };
    let all = tasks.flatten().filter_map(|task| {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(all.sum())
}

/// A thousand readers are more open files than many systems allow at first, and fewer than they allow who asks.
pub(crate) fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // If it cannot be had, the measurement that needs it says so.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}
