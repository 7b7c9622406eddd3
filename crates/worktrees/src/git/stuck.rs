//! A run of git that goes on, or waits for something that never comes, such as a pipe where a file should be: seen by what its
//! processes do.
//!
//! A process that works or waits for the disk is never found here, however slow it is. One that sleeps and neither counts time nor reads
//! nor writes waits for somebody else; git, whose words we have given it already, has nobody to wait for.

use std::fs;
use std::time::Duration;

use super::progress::ProgressSender;

/// The pause between two looks.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// One process, as far as it can be seen from outside whether it goes on.
#[derive(Debug, PartialEq, Eq)]
struct SeenProcess {
    pid: i32,
    /// Its time on a processor, and the bytes and calls of its reading and writing.
    counts: String,
    /// The bytes alone.
    bytes: u64,
}

/// The processes of a group, as one look sees them.
#[derive(Debug, PartialEq, Eq)]
struct GroupLook {
    processes: Vec<SeenProcess>,
    /// All of them sleep, and could be looked at.
    is_asleep: bool,
}

/// Waits until everything in a process group has slept without any progress for so long. Each time that something of it has gone on,
/// `goes_on` is told how many bytes it has read and written so far.
pub(super) async fn until_stuck(group: i32, time_max: Duration, goes_on: impl Fn(u64)) {
    let (mut last, mut slept) = (None, Duration::ZERO);
    loop {
        tokio::time::sleep(LOOK_AGAIN).await;
        let now = look_at(group);
        let is_stuck = now.is_some() && now == last && now.as_ref().is_some_and(|look| look.is_asleep);
        slept = if is_stuck { slept + LOOK_AGAIN } else { Duration::ZERO };
        if let Some(look) = now.as_ref().filter(|look| Some(*look) != last.as_ref()) {
            goes_on(look.processes.iter().map(|process| process.bytes).sum());
        }
        last = now;
        if slept >= time_max {
            return;
        }
    }
}

/// Does work of our own process, off the threads that must not wait, and says that it goes on as long as the process does: by the time
/// that it has had on a processor, and by what it has read and written.
pub(super) async fn while_it_works<T>(work: impl Future<Output = T>, progress: &ProgressSender) -> T {
    let (mut work, mut last) = (std::pin::pin!(work), own_counts());
    let before = last.as_ref().map_or(0, |(_, bytes)| *bytes);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = tokio::time::sleep(LOOK_AGAIN) => {}
        }
        let now = own_counts();
        if let Some((_, bytes)) = now.as_ref().filter(|now| Some(*now) != last.as_ref()) {
            progress.moved(bytes.saturating_sub(before));
        }
        last = now;
    }
}

/// The time of our own process on a processor, and the bytes that it has moved.
fn own_counts() -> Option<(String, u64)> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let moved = fs::read_to_string("/proc/self/io").unwrap_or_default();
    Some((fields.get(11..13)?.join(" "), bytes_in(&moved)))
}

/// The processes of a group; none if there is none.
fn look_at(group: i32) -> Option<GroupLook> {
    // That of the kernel's own.
    if group == 0 {
        return None;
    }
    let (mut processes, mut is_asleep) = (Vec::new(), true);
    for entry in fs::read_dir("/proc").ok()?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // Gone meanwhile.
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        // A program's name may have anything in it, and stands in brackets.
        let Some((_, fields)) = stat.rsplit_once(") ") else { continue };
        let fields: Vec<&str> = fields.split(' ').collect();
        let [state, _, of_group, ..] = fields[..] else { continue };
        if of_group.parse() != Ok(group) || state == "Z" {
            continue;
        }
        is_asleep &= state == "S";
        // One that cannot be looked at may be at anything.
        let Ok(moved) = fs::read_to_string(entry.path().join("io")) else {
            is_asleep = false;
            continue;
        };
        let times = fields.get(11..13)?.join(" ");
        let bytes = bytes_in(&moved);
        processes.push(SeenProcess { pid, counts: format!("{times} {moved}"), bytes });
    }
    (!processes.is_empty()).then_some(GroupLook { processes, is_asleep })
}

/// The bytes that were read and written by whatever call, as the kernel lists them.
fn bytes_in(moved: &str) -> u64 {
    let lines = moved.lines().filter_map(|line| line.split_once(": "));
    let counts = lines.filter(|(name, _)| ["rchar", "wchar"].contains(name));
    counts.filter_map(|(_, count)| count.trim().parse::<u64>().ok()).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    use super::*;

    fn group_of(child: &std::process::Child) -> i32 {
        i32::try_from(child.id()).unwrap()
    }

    #[tokio::test]
    async fn who_waits_for_a_pipe_is_stuck_and_who_works_is_not() {
        let place = tempfile::tempdir().unwrap();
        let pipe = place.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let mut waits = Command::new("cat").arg(&pipe).process_group(0).spawn().unwrap();
        // It sleeps most of the time, and goes on all the same.
        let ticks = "while :; do echo; sleep 0.2; done";
        let mut works = Command::new("sh");
        let works = works.args(["-c", ticks]).stdout(Stdio::null()).process_group(0).spawn();
        let mut works = works.unwrap();
        let bound = Duration::from_secs(2);
        let moved = std::cell::Cell::new((0, 0));
        let goes_on = |bytes| moved.set((moved.get().0 + 1, bytes));
        tokio::select! {
            () = until_stuck(group_of(&waits), bound, |_| {}) => {}
            () = until_stuck(group_of(&works), bound, goes_on) => panic!("it works"),
        }
        assert!(moved.get().0 > 1 && moved.get().1 > 0, "it was seen to go on: {moved:?}");
        waits.kill().unwrap();
        let group = rustix::process::Pid::from_raw(group_of(&works)).unwrap();
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
        waits.wait().unwrap();
        works.wait().unwrap();
    }
}
