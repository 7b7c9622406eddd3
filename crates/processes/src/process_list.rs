//! The processes of a tree that are not the agent's own, for people: how many, since when, and by which command line.
//!
//! Only what anybody on the machine may read of a process is looked at: its arguments, never its environment. A process writes
//! its own arguments, so they are cut and cleaned before anybody sees them.

use std::fs::File;
use std::io::Read;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::reaper::{EXEC_LOOKS_MAX, EXEC_PAUSE, Process, is_in_exec};
use crate::supervisor::frame::{Listed, ListedLine};

/// The most processes of a tree that are listed. All of them are counted.
pub const LISTED_MAX: usize = 20;
/// The longest command line that is listed. Longer ones are cut in the middle: agents put much in front of what they were asked to
/// run, and little behind it. With all of the above it is some kilobytes.
pub const COMMAND_BYTES_MAX: usize = 200;
/// The beginning of a longer one that stays: enough for a program's name.
const COMMAND_HEAD_BYTES: usize = 40;
/// The part of a command line that is read.
const COMMAND_READ_BYTES_MAX: u64 = 16 * 1024;
/// The kernel's ticks as it tells them to programs (`USER_HZ`), the same on every machine that we are built for.
const TICKS_PER_SECOND: u64 = 100;

/// The processes of a tree at one moment, without the agent's own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessList {
    /// Their number.
    pub processes: u32,
    /// When the newest of them was started, in the kernel's ticks.
    pub newest: u64,
    /// The oldest of them, at most `LISTED_MAX`.
    pub oldest: Vec<ListedProcess>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedProcess {
    pid: i32,
    started: u64,
    /// The time for which it has run when it was listed.
    pub age_ms: u64,
    /// Its command line: at most `COMMAND_BYTES_MAX`, without control characters.
    pub command: String,
}

impl ProcessList {
    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.processes == 0
    }

    /// True if something in it was not there in an earlier one.
    pub fn has_more_than(&self, earlier: &Self) -> bool {
        self.processes > earlier.processes || self.newest > earlier.newest
    }

    /// Those of them that are still there, as far as they were listed.
    pub fn still_there(&self) -> Self {
        let mut still = self.clone();
        still.oldest.retain(|it| Process::now(it.pid) == Some(Process { pid: it.pid, started: it.started }));
        let ended = self.oldest.len() - still.oldest.len();
        still.processes = still.processes.saturating_sub(u32::try_from(ended).unwrap_or(u32::MAX));
        still
    }
}

impl From<Listed> for ProcessList {
    /// A supervisor keeps the bounds; so do we, whatever it says.
    fn from(listed: Listed) -> Self {
        let Listed { processes, newest, oldest } = listed;
        let cleaned = |it: ListedLine| {
            let ListedLine { pid, started, age_ms, command } = it;
            ListedProcess { pid, started, age_ms, command: cleaned(&command) }
        };
        Self { processes, newest, oldest: oldest.into_iter().take(LISTED_MAX).map(cleaned).collect() }
    }
}

/// Lists these, the oldest first. One that has gone meanwhile is counted, and not named.
pub(crate) fn list(mut found: Vec<Process>) -> Listed {
    found.sort_unstable_by_key(|process| (process.started, process.pid));
    let now_ms = now_ms();
    let line = |process: &Process| {
        let Process { pid, started } = *process;
        let age_ms = now_ms.saturating_sub(started_ms(started));
        Some(ListedLine { pid, started, age_ms, command: command_of(pid)? })
    };
    Listed {
        processes: u32::try_from(found.len()).unwrap_or(u32::MAX),
        newest: found.last().map_or(0, |process| process.started),
        oldest: found.iter().filter_map(line).take(LISTED_MAX).collect(),
    }
}

/// The time since the machine came up, by the clock that the kernel starts processes by.
fn now_ms() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    let (seconds, nanos) = (u64::try_from(now.tv_sec).unwrap_or(0), u64::try_from(now.tv_nsec).unwrap_or(0));
    seconds * 1_000 + nanos / 1_000_000
}

fn started_ms(ticks: u64) -> u64 {
    ticks.saturating_mul(1_000 / TICKS_PER_SECOND)
}

/// The command line of a process, or its name in brackets if it has none; nothing if it has gone.
fn command_of(pid: i32) -> Option<String> {
    for _ in 0..EXEC_LOOKS_MAX {
        let arguments = cleaned(&String::from_utf8_lossy(&read(pid, "cmdline")?));
        if !arguments.is_empty() {
            return Some(arguments);
        }
        if !is_in_exec(pid) {
            break;
        }
        std::thread::sleep(EXEC_PAUSE);
    }
    let name = read(pid, "comm")?;
    Some(cleaned(&format!("[{}]", String::from_utf8_lossy(&name).trim())))
}

fn read(pid: i32, file: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = File::open(format!("/proc/{pid}/{file}")).ok()?;
    file.take(COMMAND_READ_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Text that can be shown: in one line, without anything that a terminal would obey, and not too long.
fn cleaned(text: &str) -> String {
    let is_odd = |letter: char| {
        letter.is_control()
            || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    let plain: String = text.chars().map(|letter| if is_odd(letter) { ' ' } else { letter }).collect();
    let plain = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    if plain.len() <= COMMAND_BYTES_MAX {
        return plain;
    }
    let mark = " … ";
    let head = plain.floor_char_boundary(COMMAND_HEAD_BYTES);
    let tail = plain.ceil_char_boundary(plain.len() - (COMMAND_BYTES_MAX - head - mark.len()));
    format!("{}{mark}{}", &plain[..head], &plain[tail..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_list_names_the_oldest_and_counts_all() {
        let mut naps: Vec<_> =
            (0..LISTED_MAX + 3).map(|_| Command::new("sleep").arg("1000").spawn().unwrap()).collect();
        let found: Vec<_> = naps.iter().filter_map(|nap| Process::now(nap.id().cast_signed())).collect();
        let list = ProcessList::from(list(found));
        assert_eq!((list.processes as usize, list.oldest.len()), (naps.len(), LISTED_MAX));
        assert!(list.oldest.iter().all(|it| it.command == "sleep 1000" && it.age_ms < 60_000), "{list:?}");
        for nap in &mut naps {
            nap.kill().unwrap();
            nap.wait().unwrap();
        }
        let still = list.still_there();
        assert_eq!(
            (still.processes, still.oldest.len()),
            (3, 0),
            "of those that were not named nobody knows"
        );
    }

    #[test]
    fn a_command_line_is_cleaned_and_cut() {
        let mut long = Command::new("sh")
            .args(["-c", "read x", &"é".repeat(4_000)])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let of = |child: &std::process::Child| command_of(child.id().cast_signed()).unwrap();
        // Its words are there a moment after it is.
        let cut = std::iter::repeat_with(|| of(&long)).find(|words| !words.starts_with('[')).unwrap();
        assert!(cut.len() <= COMMAND_BYTES_MAX && cut.starts_with("sh -c read x é"), "{cut}");
        assert!(cut.contains(" … é") && cut.ends_with('é'), "{cut}");
        long.kill().unwrap();
        long.wait().unwrap();
        assert_eq!(cleaned("sh\0-c\0\u{1b}[2Ja\nb\u{202e}c\0"), "sh -c [2Ja b c");
        assert_eq!(cleaned("\0\0 \t"), "");
    }

    #[test]
    fn one_more_or_a_newer_one_is_more() {
        let of = |processes, newest| ProcessList { processes, newest, oldest: Vec::new() };
        assert!(!of(2, 7).has_more_than(&of(2, 7)) && !of(1, 7).has_more_than(&of(2, 7)));
        assert!(of(3, 7).has_more_than(&of(2, 7)) && of(2, 8).has_more_than(&of(2, 7)));
    }
}
