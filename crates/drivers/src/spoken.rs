//! An agent that talks in lines, as a `Running`: one process for one turn.
//!
//! Everything that is particular to an agent is in its `Tongue`, which is pure. What is the same for all is here: lines
//! are cut to a bound, the terminal event is held back until the whole tree is gone, an end without one is a death, and
//! a stop is polite before it is not.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::Duration;

use agent::{
    AgentEvent, Answer, Buried, MESSAGE_BYTES_MAX, Message, Reply, Running, TreeName, Trouble, Verified,
    bounded,
};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::bury::bury;
use crate::tree::{Exit, Tree, TreeEvent};

/// The longest line of an agent. What is longer is left out, and a notice says so.
pub(crate) const LINE_BYTES_MAX: usize = 1024 * 1024;
/// How much of what an agent complained about is kept, for the story of its death.
const COMPLAINT_BYTES_MAX: usize = 4 * 1024;
/// How long an agent may take to leave after it said that it is done. Then it is ended, and nobody is hurt.
const LEAVE_WAIT: Duration = Duration::from_millis(2_000);
/// How long the supervisor may take to end a tree. It promises two seconds; then we do it ourselves.
const KILL_WAIT: Duration = Duration::from_millis(4_000);
/// Events that are kept while an attempt is being stopped. What it says after that is no part of any answer.
const EVENTS_WHILE_STOPPING_MAX: usize = 4_096;

/// How one agent's lines are read and written. Knows nothing of processes.
pub(crate) trait Tongue: Send + 'static {
    /// What a line says. Never fails: what cannot be understood is `Other`.
    fn read(&mut self, line: &str) -> Vec<AgentEvent>;
    /// The bytes that hand over a message.
    fn message(&mut self, message: &Message) -> Vec<u8>;
    /// The bytes that answer a question.
    fn answer(&mut self, question: &str, answer: &Answer) -> Vec<u8>;
}

/// One turn of an agent that talks in lines.
pub(crate) struct Spoken<T> {
    tongue: T,
    tree: Tree,
    name: TreeName,
    locks: PathBuf,
    lines: Lines,
    complaint: Vec<u8>,
    said: VecDeque<AgentEvent>,
    /// The agent's terminal event, held back until everything is gone.
    last: Option<AgentEvent>,
    phase: Phase,
    /// The burial, once it was begun; a dropped future does not begin another.
    burial: Option<JoinHandle<Result<Buried, Trouble>>>,
    /// Somebody waits for the end and nobody takes what is said.
    is_stopping: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// It runs.
    Talking,
    /// It has said its last; it may leave by itself until then.
    Leaving { until: Instant },
    /// It was told to end; the supervisor has until then to see it gone.
    Ending { until: Instant },
    /// Its supervisor is gone, so it has to be buried.
    Lost,
    /// Nothing is left, or what is left cannot be ended.
    Over(Verified),
}

impl<T: Tongue> Spoken<T> {
    pub(crate) fn new(tongue: T, tree: Tree, name: TreeName, locks: PathBuf) -> Self {
        let (lines, complaint, said) = (Lines::default(), Vec::new(), VecDeque::new());
        Self {
            tongue,
            tree,
            name,
            locks,
            lines,
            complaint,
            said,
            last: None,
            phase: Phase::Talking,
            burial: None,
            is_stopping: false,
        }
    }

    async fn hear(&mut self) -> AgentEvent {
        loop {
            if let Some(event) = self.said.pop_front() {
                return event;
            }
            if let Phase::Over(verified) = self.phase {
                return self.end(verified);
            }
            self.go_on().await;
        }
    }

    /// One step towards the end. Cancel-safe: what has happened is in `self` before the next await.
    async fn go_on(&mut self) {
        match self.phase {
            Phase::Talking => {
                let event = self.tree.next().await;
                self.take(event);
            }
            Phase::Leaving { until } => tokio::select! {
                event = self.tree.next() => self.take(event),
                () = tokio::time::sleep_until(until) => self.kill(),
            },
            Phase::Ending { until } => tokio::select! {
                event = self.tree.next() => self.take(event),
                () = tokio::time::sleep_until(until) => self.phase = Phase::Lost,
            },
            Phase::Lost => {
                let begin = || tokio::spawn(bury(self.locks.clone(), self.name.clone()));
                let buried = self.burial.get_or_insert_with(begin).await;
                self.burial = None;
                self.phase = Phase::Over(match buried {
                    Ok(Ok(buried)) => Verified { killed: buried.killed, gone: true },
                    _ => Verified { killed: 0, gone: false },
                });
            }
            Phase::Over(_) => {}
        }
    }

    fn take(&mut self, event: TreeEvent) {
        match event {
            TreeEvent::Output(bytes) => {
                for line in self.lines.cut(&bytes) {
                    self.read(line);
                }
            }
            TreeEvent::Errors(bytes) => {
                self.complaint.extend_from_slice(&bytes);
                let excess = self.complaint.len().saturating_sub(COMPLAINT_BYTES_MAX);
                self.complaint.drain(..excess);
            }
            TreeEvent::Exited(exit) => {
                if let Some(line) = self.lines.rest() {
                    self.read(line);
                }
                if self.last.is_none() {
                    self.complain(exit);
                } else if exit.killed > 0 && !self.is_stopping {
                    let text = format!("ended {} processes that the agent had left behind", exit.killed);
                    self.said.push_back(AgentEvent::Notice { text });
                }
                self.phase = Phase::Over(Verified { killed: exit.killed, gone: exit.gone });
            }
            TreeEvent::Lost => self.phase = Phase::Lost,
        }
    }

    fn read(&mut self, line: Line) {
        let events = match line {
            Line::Whole(text) => self.tongue.read(&text),
            Line::TooLong => {
                let text =
                    format!("the agent printed a line of more than {LINE_BYTES_MAX} bytes; it was left out");
                vec![AgentEvent::Notice { text }]
            }
        };
        for event in events {
            // After its last word an agent has nothing to say.
            if self.last.is_some() {
                return;
            }
            if event.is_last() {
                self.last = Some(event);
                if self.phase == Phase::Talking {
                    self.tree.close_input();
                    self.phase = Phase::Leaving { until: Instant::now() + LEAVE_WAIT };
                }
            } else if !self.is_stopping || self.said.len() < EVENTS_WHILE_STOPPING_MAX {
                self.said.push_back(event);
            }
        }
    }

    fn complain(&mut self, exit: Exit) {
        let how = match (exit.code, exit.signal) {
            (Some(code), _) => format!("exit code {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "an unknown end".to_owned(),
        };
        let complaint = format!("{how}\n{}", String::from_utf8_lossy(&self.complaint));
        self.complaint = complaint.into_bytes();
    }

    fn end(&mut self, verified: Verified) -> AgentEvent {
        match self.last.take() {
            Some(event) if verified.gone => event,
            Some(_) => died("the agent said its last word, but processes of it cannot be ended", verified),
            None => {
                let complaint = String::from_utf8_lossy(&self.complaint).trim().to_owned();
                died(&format!("the agent went away without a last word: {complaint}"), verified)
            }
        }
    }

    fn kill(&mut self) {
        self.tree.kill();
        self.phase = Phase::Ending { until: Instant::now() + KILL_WAIT };
    }

    async fn stop_now(&mut self, grace: Duration) -> Verified {
        self.is_stopping = true;
        if self.phase == Phase::Talking && !grace.is_zero() {
            self.tree.interrupt();
            let _ = tokio::time::timeout(grace, self.go_on_until_over()).await;
        }
        if matches!(self.phase, Phase::Talking | Phase::Leaving { .. }) {
            self.kill();
        }
        self.go_on_until_over().await
    }

    async fn go_on_until_over(&mut self) -> Verified {
        loop {
            if let Phase::Over(verified) = self.phase {
                return verified;
            }
            self.go_on().await;
        }
    }
}

impl<T: Tongue> Running for Spoken<T> {
    fn next(&mut self) -> Reply<'_, AgentEvent> {
        Box::pin(self.hear())
    }

    fn hand(&mut self, message: Message) -> Reply<'_, Result<(), Trouble>> {
        Box::pin(async move {
            if message.text.len() > MESSAGE_BYTES_MAX {
                return Err(Trouble::refused(format!("a message has at most {MESSAGE_BYTES_MAX} bytes")));
            }
            let bytes = self.tongue.message(&message);
            self.tree.input(&bytes).await
        })
    }

    fn answer(&mut self, question: &str, answer: Answer) -> Reply<'_, Result<(), Trouble>> {
        let bytes = self.tongue.answer(question, &answer);
        Box::pin(async move { self.tree.input(&bytes).await })
    }

    fn stop(&mut self, grace_ms: u64) -> Reply<'_, Verified> {
        Box::pin(self.stop_now(Duration::from_millis(grace_ms)))
    }
}

fn died(detail: &str, verified: Verified) -> AgentEvent {
    AgentEvent::Died { detail: bounded(detail, agent::DETAIL_BYTES_MAX), verified }
}

/// A line of an agent, made harmless.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Line {
    Whole(String),
    TooLong,
}

/// Cuts bytes into lines and never holds more than one line and its bound.
#[derive(Debug, Default)]
struct Lines {
    partial: Vec<u8>,
    is_too_long: bool,
}

impl Lines {
    /// The lines that end in these bytes.
    fn cut(&mut self, bytes: &[u8]) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut parts = bytes.split(|byte| *byte == b'\n').peekable();
        while let Some(part) = parts.next() {
            self.add(part);
            if parts.peek().is_some() {
                lines.extend(self.rest());
            }
        }
        lines
    }

    /// What has come since the last end of a line. Empty lines say nothing.
    fn rest(&mut self) -> Option<Line> {
        let partial = std::mem::take(&mut self.partial);
        if std::mem::take(&mut self.is_too_long) {
            return Some(Line::TooLong);
        }
        let text = String::from_utf8_lossy(&partial);
        (!text.trim().is_empty()).then(|| Line::Whole(text.into_owned()))
    }

    fn add(&mut self, part: &[u8]) {
        if self.is_too_long || self.partial.len() + part.len() > LINE_BYTES_MAX {
            self.is_too_long = true;
            self.partial = Vec::new();
        } else {
            self.partial.extend_from_slice(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> Line {
        Line::Whole(text.to_owned())
    }

    #[test]
    fn lines_are_whole_however_they_are_cut() {
        let mut lines = Lines::default();
        let seen: Vec<Line> = b"one\n\ntwo\xff\nthr".chunks(1).flat_map(|bytes| lines.cut(bytes)).collect();
        assert_eq!(seen, [whole("one"), whole("two\u{fffd}")]);
        assert_eq!(lines.rest(), Some(whole("thr")));
        assert_eq!(lines.rest(), None);
    }

    #[test]
    fn an_endless_line_takes_no_room_and_the_next_one_is_read() {
        let mut lines = Lines::default();
        for _ in 0..100 {
            assert!(lines.cut(&[b'x'; 64 * 1024]).is_empty());
            assert!(lines.partial.capacity() <= 2 * LINE_BYTES_MAX);
        }
        assert_eq!(lines.cut(b"\nnext\n"), [Line::TooLong, whole("next")]);
    }
}
