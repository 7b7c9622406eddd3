//! Input at the keyboard: lines, pasted ones kept together, and Ctrl-C.

use std::io::{self, BufRead, IsTerminal};
use std::os::fd::AsFd;
use std::time::Duration;

use anyhow::Result;
use rustix::event::{PollFd, PollFlags, Timespec};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

/// Lines that come so soon after each other were pasted. Nobody types that fast.
const PASTE_PAUSE: Duration = Duration::from_millis(40);
/// Lines that may be typed ahead of us.
const TYPED_AHEAD_MAX: usize = 16;

/// Ctrl-C, each time.
#[derive(Debug)]
pub(crate) struct Interrupts(Signal);

impl Interrupts {
    /// From now on Ctrl-C is a word to us and no longer the end.
    pub(crate) fn listen() -> Result<Self> {
        Ok(Self(signal(SignalKind::interrupt())?))
    }

    pub(crate) async fn next(&mut self) {
        // It ends only with the runtime.
        if self.0.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

/// The messages that are typed, one after the other, until Ctrl-D.
#[derive(Debug)]
pub(crate) struct TypedMessages {
    lines: mpsc::Receiver<String>,
    /// True if a person types; else it is a file or a pipe.
    pub(crate) by_hand: bool,
}

impl TypedMessages {
    /// Reads in a thread of its own, which ends with the process: a read from a terminal cannot be taken back.
    pub(crate) fn start() -> Self {
        let (tell, lines) = mpsc::channel(TYPED_AHEAD_MAX);
        let by_hand = io::stdin().is_terminal();
        std::thread::spawn(move || {
            while let Ok(Some(text)) = read_message(by_hand) {
                if tell.blocking_send(text).is_err() {
                    return;
                }
            }
        });
        Self { lines, by_hand }
    }

    /// The next message; none after Ctrl-D. Empty lines are nothing.
    pub(crate) async fn next(&mut self) -> Option<String> {
        loop {
            let text = self.lines.recv().await?;
            if !text.trim().is_empty() {
                return Some(text);
            }
        }
    }
}

/// A line, and those that were pasted with it. A terminal gives one line per read, so what waits is the next one.
fn read_message(by_hand: bool) -> io::Result<Option<String>> {
    let mut text = String::new();
    loop {
        if io::stdin().lock().read_line(&mut text)? == 0 {
            return Ok(Some(text).filter(|text| !text.is_empty()).map(trimmed));
        }
        if !by_hand || !more_waits()? {
            return Ok(Some(trimmed(text)));
        }
    }
}

fn trimmed(text: String) -> String {
    text.trim_end_matches(['\n', '\r']).to_owned()
}

fn more_waits() -> io::Result<bool> {
    let stdin = io::stdin();
    let mut ready = [PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN)];
    let pause = Timespec::try_from(PASTE_PAUSE).map_err(io::Error::other)?;
    Ok(rustix::event::poll(&mut ready, Some(&pause))? > 0)
}
