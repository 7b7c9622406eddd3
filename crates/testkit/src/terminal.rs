//! Somebody at a terminal: a pseudo-terminal with a command in it, keys that are pressed, and what can be seen. `picture`
//! is the screen as a person would see it. Everything that is shown is recorded with its time, and can be played again.

mod picture;

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::eventually;
use picture::Picture;

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalSize {
    pub columns: u16,
    pub rows: u16,
}

/// Something that was sent to a terminal, and when: since the command was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownPiece {
    pub at: Duration,
    pub bytes: Vec<u8>,
}

/// A command that runs in a terminal of its own. It is ended when this is dropped.
#[derive(Debug)]
pub struct Terminal {
    keyboard: File,
    child: Child,
    seen: Arc<Mutex<Picture>>,
    shown: Arc<Mutex<Vec<ShownPiece>>>,
    reader: Option<JoinHandle<()>>,
}

impl Terminal {
    /// Starts a command in a terminal of this size.
    #[track_caller]
    pub fn start(mut command: Command, size: TerminalSize) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
        grantpt(&ours).expect("it is ours");
        unlockpt(&ours).expect("it can be used");
        let name = ptsname(&ours, Vec::new()).expect("it has a name").into_string().expect("it is text");
        let theirs = File::options().read(true).write(true).open(name).expect("the other side");
        resize(&ours, size);
        let end = || Stdio::from(theirs.try_clone().expect("one more descriptor"));
        command.stdin(end()).stdout(end()).stderr(end()).env("TERM", "xterm-256color");
        // No desktop of whoever runs the tests is told anything.
        command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
        let child = command.spawn().expect("the binary can be started");
        drop((command, theirs));
        let ours = File::from(ours);
        let seen = Arc::new(Mutex::new(Picture::new(usize::from(size.columns), usize::from(size.rows))));
        let (mut from, to) = (ours.try_clone().expect("one more descriptor"), Arc::clone(&seen));
        let (began, shown) = (Instant::now(), Arc::new(Mutex::new(Vec::new())));
        let recorder = Arc::clone(&shown);
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4_096];
            // It fails once the other side is closed.
            while let Ok(count) = from.read(&mut bytes) {
                let bytes = &bytes[..count];
                let piece = ShownPiece { at: began.elapsed(), bytes: bytes.to_vec() };
                recorder.lock().unwrap_or_else(PoisonError::into_inner).push(piece);
                to.lock().unwrap_or_else(PoisonError::into_inner).draw(bytes);
            }
        });
        Self { keyboard: ours, child, seen, shown, reader: Some(reader) }
    }

    /// Presses keys: text, with `\r` for Enter and the usual sequences for others.
    #[track_caller]
    pub fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("somebody reads");
    }

    /// Gives it another size, as a window that is dragged does.
    pub fn resize(&self, size: TerminalSize) {
        self.picture(|picture| picture.resize(usize::from(size.columns), usize::from(size.rows)));
        resize(&self.keyboard, size);
        let pid = Pid::from_raw(self.child.id().cast_signed()).expect("a process has a number");
        let _ = kill_process(pid, Signal::WINCH);
    }

    /// All lines there are, those that have scrolled away included. A line that the terminal broke is one.
    pub fn lines(&self) -> Vec<String> {
        self.picture(|picture| picture.lines())
    }

    /// The rows that can be seen now, without the empty ones at the end.
    pub fn rows(&self) -> Vec<String> {
        self.picture(|picture| picture.rows())
    }

    /// Every row there is, those that have scrolled away included. A line that the terminal broke is several.
    pub fn all_rows(&self) -> Vec<String> {
        self.picture(|picture| picture.all_rows())
    }

    /// Everything that was shown so far, with its times.
    pub fn recorded(&self) -> Vec<ShownPiece> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The row and the column of the cursor.
    pub fn cursor(&self) -> (usize, usize) {
        self.picture(|picture| picture.cursor())
    }

    /// Everything that was sent, as it was sent.
    pub fn raw(&self) -> String {
        self.picture(|picture| picture.raw())
    }

    /// Waits until a line has this, and answers all lines.
    #[track_caller]
    pub fn until(&self, words: &str) -> Vec<String> {
        self.until_lines(words, |lines| lines.iter().any(|line| line.contains(words)))
    }

    /// Waits until the lines are so.
    #[track_caller]
    pub fn until_lines(&self, what: &str, is_so: impl Fn(&[String]) -> bool) -> Vec<String> {
        let seen = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            eventually(what, || Some(self.lines()).filter(|lines| is_so(lines)))
        }));
        seen.unwrap_or_else(|_| {
            panic!("never seen: {what}\n{}\nraw: {:?}", self.lines().join("\n"), self.raw())
        })
    }

    /// Waits until the row at the bottom is this.
    #[track_caller]
    pub fn until_last(&self, row: &str) {
        self.until_lines(&format!("the last row is {row:?}"), |_| {
            self.rows().last().is_some_and(|last| last.trim_end() == row)
        });
    }

    /// Waits until the command has ended.
    #[track_caller]
    pub fn until_ended(&mut self) -> ExitStatus {
        let child = &mut self.child;
        eventually("the command ends", || child.try_wait().expect("it is our child"))
    }

    fn picture<T>(&self, look: impl FnOnce(&mut Picture) -> T) -> T {
        look(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

/// The rows of a terminal to which this was sent.
pub fn replayed(size: TerminalSize, bytes: &[u8]) -> Vec<String> {
    let mut picture = Picture::new(usize::from(size.columns), usize::from(size.rows));
    picture.draw(bytes);
    picture.all_rows()
}

fn resize(terminal: &impl std::os::fd::AsFd, size: TerminalSize) {
    let size = Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(terminal, size).expect("it can have another size");
}
