//! A run of git that waits for something that never comes, such as a pipe where a file should be: seen by what its processes do.
//!
//! A process that works or waits for the disk is never found here, however slow it is. One that sleeps and neither counts time nor reads
//! nor writes waits for somebody else; git, whose words we have given it already, has nobody to wait for.

use std::fs;
use std::time::Duration;

/// The pause between two looks.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// One process, as far as it can be seen from outside whether it goes on.
#[derive(Debug, PartialEq, Eq)]
struct SleepingProcess {
    pid: i32,
    /// Its time on a processor, and the bytes and calls of its reading and writing.
    counts: String,
}

/// Waits until everything in a process group has slept without any progress for so long.
pub(super) async fn until_stuck(group: i32, time_max: Duration) {
    let (mut last, mut slept) = (None, Duration::ZERO);
    loop {
        tokio::time::sleep(LOOK_AGAIN).await;
        let now = asleep(group);
        slept = if now.is_some() && now == last { slept + LOOK_AGAIN } else { Duration::ZERO };
        last = now;
        if slept >= time_max {
            return;
        }
    }
}

/// The processes of a group, if all of them sleep and can be looked at.
fn asleep(group: i32) -> Option<Vec<SleepingProcess>> {
    // That of the kernel's own.
    if group == 0 {
        return None;
    }
    let mut found = Vec::new();
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
        if state != "S" {
            return None;
        }
        let moved = fs::read_to_string(entry.path().join("io")).ok()?;
        let times = fields.get(11..13)?.join(" ");
        found.push(SleepingProcess { pid, counts: format!("{times} {moved}") });
    }
    Some(found).filter(|found| !found.is_empty())
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
        tokio::select! {
            () = until_stuck(group_of(&waits), bound) => {}
            () = until_stuck(group_of(&works), bound) => panic!("it works"),
        }
        waits.kill().unwrap();
        let group = rustix::process::Pid::from_raw(group_of(&works)).unwrap();
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
        waits.wait().unwrap();
        works.wait().unwrap();
    }
}
