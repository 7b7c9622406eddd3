//! Typing at a terminal, as people are used to it: arrows, history, several lines, paste, completion.
//!
//! The terminal is asked for single keys and the line is drawn by `prompt_area`, so that what an agent says can come
//! above it at any time. `keys` makes keys of bytes, `edit_line` is what they do, `history` what was typed before. Docs:
//! docs/decisions/0041-a-line-editor-of-our-own.md says why this is no library.

mod edit_line;
mod history;
mod keys;

use std::collections::VecDeque;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::time::Duration;

use anyhow::Result;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::termios::{InputModes, LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use crate::prompt_area::{PromptArea, TypedLine};
use crate::screen::Screen;
use edit_line::{EditLine, Edited};
use history::History;
use keys::{Key, KeyReader};

/// The time within which the rest of a key follows its escape.
const SEQUENCE_PAUSE: Duration = Duration::from_millis(60);
/// The time for which a question is on the screen before a key can be its answer: what is typed sooner was meant for
/// something else.
const ANSWER_GUARD: Duration = Duration::from_millis(400);
/// Bytes that are read at once.
const READ_BYTES: usize = 4_096;
/// Reads that may wait for us.
const READS_AHEAD_MAX: usize = 64;

/// Something that was typed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    /// A message.
    Said(String),
    /// One of the keys that answer.
    Answer(char),
    /// Ctrl-C on an empty line.
    Interrupt,
    /// Ctrl-D on an empty line, or nobody is there any more.
    Leave,
    /// Ctrl-O.
    Unfold,
}

/// A terminal at which somebody types.
pub(crate) struct LineEditor {
    area: &'static PromptArea,
    bytes: TerminalBytes,
    mode: KeyMode,
    reader: KeyReader,
    keys: VecDeque<Key>,
    line: EditLine,
    prompt: &'static str,
    /// The keys that answer a question, and since when they do.
    answers: Option<(String, Instant)>,
    resized: Signal,
    ended: [Signal; 2],
}

/// True if somebody types and looks on, at a terminal that can be drawn on.
pub(crate) fn is_possible(screen: Screen) -> bool {
    let can_draw = std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb");
    can_draw && !screen.json && screen.out_is_terminal && screen.err_is_terminal && io::stdin().is_terminal()
}

impl LineEditor {
    /// Begins to hear keys. The area is to be the one that the screen writes to.
    pub(crate) fn begin(area: &'static PromptArea, prompt: &'static str) -> Result<Self> {
        let mode = KeyMode::begin()?;
        let mut editor = Self {
            area,
            bytes: TerminalBytes::read()?,
            mode,
            reader: KeyReader::default(),
            keys: VecDeque::new(),
            line: EditLine::new(History::load()),
            prompt,
            answers: None,
            resized: signal(SignalKind::window_change())?,
            ended: [signal(SignalKind::terminate())?, signal(SignalKind::hangup())?],
        };
        editor.show()?;
        Ok(editor)
    }

    /// Tab completes to these, each a whole line.
    pub(crate) fn complete_with(&mut self, lines: Vec<String>) {
        self.line.complete_with(lines);
    }

    /// A question is open, or is not: with one of these keys on an empty line it is answered.
    pub(crate) fn ask(&mut self, prompt: &'static str, keys: &str) -> Result<()> {
        self.answers = Some((keys.to_owned(), Instant::now() + ANSWER_GUARD));
        self.prompt = prompt;
        self.show()
    }

    /// No question is open.
    pub(crate) fn ask_nothing(&mut self, prompt: &'static str) -> Result<()> {
        self.answers = None;
        self.prompt = prompt;
        self.show()
    }

    /// The next thing that is typed. May be cancelled and called again.
    pub(crate) async fn next(&mut self) -> Result<Typed> {
        loop {
            while let Some(key) = self.keys.pop_front() {
                if let Some(typed) = self.press(key)? {
                    return Ok(typed);
                }
            }
            let [terminated, hung_up] = &mut self.ended;
            let pause = if self.reader.is_waiting() { SEQUENCE_PAUSE } else { Duration::MAX };
            tokio::select! {
                read = timeout(pause, self.bytes.next()) => match read {
                    Err(_) => self.keys.extend(self.reader.give_up()),
                    Ok(Some(bytes)) => self.keys.extend(self.reader.read(&bytes)),
                    Ok(None) => return Ok(Typed::Leave),
                },
                _ = self.resized.recv() => self.area.redraw()?,
                _ = terminated.recv() => return Ok(Typed::Leave),
                _ = hung_up.recv() => return Ok(Typed::Leave),
            }
        }
    }

    fn press(&mut self, key: Key) -> Result<Option<Typed>> {
        if let (Key::Char(c), Some((answers, since))) = (&key, &self.answers)
            && self.line.is_empty()
            && answers.contains(*c)
            && Instant::now() >= *since
        {
            return Ok(Some(Typed::Answer(*c)));
        }
        let edited = self.line.press(key);
        self.show()?;
        Ok(match edited {
            Edited::Shown => None,
            Edited::Said(text) => Some(Typed::Said(text)),
            Edited::Several(lines) => {
                self.area.write_lines(&lines.join("  "))?;
                None
            }
            Edited::Interrupt => Some(Typed::Interrupt),
            Edited::Leave => Some(Typed::Leave),
            Edited::Unfold => Some(Typed::Unfold),
            Edited::Redraw => {
                self.area.clear_screen()?;
                None
            }
            Edited::Suspend => {
                self.suspend()?;
                None
            }
        })
    }

    /// Lets the shell have the terminal until it gives it back.
    fn suspend(&mut self) -> Result<()> {
        self.area.show(None)?;
        self.mode.leave();
        rustix::process::kill_current_process_group(rustix::process::Signal::TSTP)?;
        self.mode = KeyMode::begin()?;
        self.show()
    }

    fn show(&mut self) -> Result<()> {
        let (text, cursor, wanted) = self.line.look();
        let prompt = match wanted {
            None => self.prompt.to_owned(),
            Some(wanted) => format!("search {wanted:?}: "),
        };
        self.area.show(Some(TypedLine { prompt, text: text.to_owned(), cursor }))?;
        Ok(())
    }
}

impl Drop for LineEditor {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing back.
        let _ = self.area.show(None);
        self.mode.leave();
    }
}

/// The bytes that a terminal sends, read by a thread that ends when this is dropped: then the keyboard is somebody else's again.
struct TerminalBytes {
    read: mpsc::Receiver<Vec<u8>>,
    /// Closed, it wakes the thread.
    _open: io::PipeWriter,
}

impl TerminalBytes {
    fn read() -> io::Result<Self> {
        let (tell, read) = mpsc::channel(READS_AHEAD_MAX);
        let (closed, open) = io::pipe()?;
        std::thread::spawn(move || {
            // Whatever fails, nobody types there any more.
            while let Ok(Some(bytes)) = read_some(&closed) {
                if tell.blocking_send(bytes).is_err() {
                    return;
                }
            }
        });
        Ok(Self { read, _open: open })
    }

    /// None if nobody is there any more.
    async fn next(&mut self) -> Option<Vec<u8>> {
        self.read.recv().await
    }
}

/// The next bytes; none at the end, or if nobody wants them.
fn read_some(closed: &io::PipeReader) -> io::Result<Option<Vec<u8>>> {
    let stdin = io::stdin();
    loop {
        let mut ready =
            [PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN), PollFd::new(closed, PollFlags::IN)];
        match poll(&mut ready, None) {
            Err(rustix::io::Errno::INTR) => continue,
            polled => polled?,
        };
        if !ready[1].revents().is_empty() {
            return Ok(None);
        }
        let mut bytes = vec![0; READ_BYTES];
        match rustix::io::read(&stdin, &mut bytes) {
            Ok(0) => return Ok(None),
            Ok(count) => {
                bytes.truncate(count);
                return Ok(Some(bytes));
            }
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            Err(why) => return Err(why.into()),
        }
    }
}

/// A terminal that gives each key as it is pressed, and marks what is pasted. Ctrl-C is a key; the ends of lines that are
/// printed stay the terminal's work.
struct KeyMode(Termios);

impl KeyMode {
    fn begin() -> io::Result<Self> {
        let before = tcgetattr(io::stdin().as_fd())?;
        let mut by_key = before.clone();
        by_key
            .local_modes
            .remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG | LocalModes::IEXTEN);
        by_key.input_modes.remove(InputModes::ICRNL | InputModes::INLCR | InputModes::IXON);
        by_key.special_codes[rustix::termios::SpecialCodeIndex::VMIN] = 1;
        by_key.special_codes[rustix::termios::SpecialCodeIndex::VTIME] = 0;
        tcsetattr(io::stdin().as_fd(), OptionalActions::Now, &by_key)?;
        write_now("\x1b[?2004h")?;
        Ok(Self(before))
    }

    fn leave(&self) {
        let _ = write_now("\x1b[?2004l");
        let _ = tcsetattr(io::stdin().as_fd(), OptionalActions::Now, &self.0);
    }
}

fn write_now(sequence: &str) -> io::Result<()> {
    use io::Write;
    let mut stdout = io::stdout().lock();
    stdout.write_all(sequence.as_bytes())?;
    stdout.flush()
}
