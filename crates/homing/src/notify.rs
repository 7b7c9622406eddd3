//! Telling somebody who looks elsewhere that a turn is over, or that the agent asks: by the terminal (OSC 9 or 777), and
//! on this desktop (`notify-send`). Whether it arrives is not our concern.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use api::Receipt;

use crate::config::terminal::TerminalTable;
use crate::describe;
use crate::follow::OpenApproval;
use crate::remote::Remote;
use crate::screen::cut;

/// Characters of a notification.
const WORDS_MAX: usize = 120;

/// The turn of a message is over.
pub(crate) fn turn_is_over(receipt: &Receipt, took: Duration, remote: &Remote) {
    let words = format!("the turn is over: {}", describe::state(receipt.state));
    tell(&words, Some(took), remote);
}

/// The agent waits for an answer.
pub(crate) fn agent_asks(asked: &OpenApproval, remote: &Remote) {
    tell(&format!("the agent asks: {}", asked.detail), None, remote);
}

/// Tells it, unless it took so short that whoever waits for it still looks on.
fn tell(words: &str, took: Option<Duration>, remote: &Remote) {
    if remote.screen.json || !remote.screen.err_is_terminal {
        return;
    }
    let Some(after) = TerminalTable::load(&remote.data).notifies_after() else { return };
    if took.is_some_and(|took| took < after) {
        return;
    }
    let words = cut(words, WORDS_MAX).replace(';', ",");
    let _ = io::stderr().lock().write_all(sequence(&words, variable("TERM").as_deref()).as_bytes());
    if variable("WAYLAND_DISPLAY").or_else(|| variable("DISPLAY")).is_some() {
        show_on_desktop(&words);
    }
}

/// The terminals that know neither take no notice of them.
fn sequence(words: &str, term: Option<&str>) -> String {
    let is_777 = term.is_some_and(|term| ["rxvt", "foot", "urxvt"].iter().any(|name| term.starts_with(name)));
    match is_777 {
        true => format!("\x1b]777;notify;Homing;{words}\x07"),
        false => format!("\x1b]9;Homing: {words}\x07"),
    }
}

fn show_on_desktop(words: &str) {
    let mut command = Command::new("notify-send");
    command.args(["--app-name=Homing", "Homing", words]);
    // The end of our terminal is not its end: it may have nothing but its start behind it when we go.
    command.process_group(0);
    let started = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    if let Ok(mut child) = started {
        // It ends soon; somebody has to take its end.
        std::thread::spawn(move || child.wait());
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_terminal_is_told_in_its_own_way() {
        assert_eq!(sequence("done", Some("xterm-256color")), "\x1b]9;Homing: done\x07");
        assert_eq!(sequence("done", Some("foot-extra")), "\x1b]777;notify;Homing;done\x07");
    }
}
