//! The attempt that is under way, as its keeper has it: made when the attempt begins, dropped when it is over.
//!
//! Whatever belongs to one attempt and to no other stands here: its runner, the words that grow, what its tools print, how
//! it was started and what it still has to be told. So nothing of it can be met by the next one.

use crate::attached::AttachmentView;
use crate::fanout::LiveWords;
use crate::story::{ToolProgress, WordKind, Words};
use crate::turn::{Runner, RunnerOutput};
use agent::{AgentEvent, Message};
use kernel::{Fence, Origin};
use std::time::Duration;
use store::Entry;
use tokio::time::Instant;

/// Stories that wait for others. Each is short; an agent that says more of them is heard as it speaks.
const PUT_OFF_MAX: usize = 64;

/// An attempt, or the burial of one of an earlier term.
pub(super) struct RunningAttempt {
    pub(super) runner: Runner,
    /// The run of words that grows.
    words: Option<Words>,
    /// Runs of words that are complete.
    parts: u32,
    /// The output of tools while they run.
    pub(super) progress: ToolProgress,
    /// The story of its start, until the first thing is heard of it.
    preface: Vec<Entry>,
    /// Stories that wait for others, and since when.
    put_off: Vec<Entry>,
    put_off_since: Option<Instant>,
    handover: Handover,
    pub(super) fork: Fork,
    /// The hash of the last notice: a failure is told in one.
    pub(super) last_notice: Option<u64>,
    /// The reason for which nothing that it says is written down any more.
    cut_off: Option<String>,
}

/// The words of a message with the files that are text, and what is said about all that goes along. The bytes are read when it is handed.
pub(super) struct MessageWords {
    pub(super) text: String,
    pub(super) attached: Vec<AttachmentView>,
}

/// The state of the message's way to the runner.
pub(super) enum Handover {
    /// Not yet.
    Waiting {
        /// The words from before, for an agent that does not know it.
        preamble: Option<String>,
        /// The words of the message, as they were read when it began.
        words: Option<MessageWords>,
    },
    Done,
}

/// The copy of another session's conversation that the agent goes on with, if it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fork {
    /// It does not, or nothing of a later turn is in the copy.
    Clean,
    /// Nobody has looked yet.
    Unchecked(Origin),
    /// The origin has gone on meanwhile: this attempt is given up.
    GoneOn,
}

impl RunningAttempt {
    /// One that is told nothing but to go away: a burial, or one that was refused before it began.
    pub(super) fn bare(runner: Runner) -> Self {
        let handover = Handover::Waiting { preamble: None, words: None };
        Self::new(runner, Vec::new(), handover, Fork::Clean)
    }

    pub(super) fn new(runner: Runner, preface: Vec<Entry>, handover: Handover, fork: Fork) -> Self {
        let (words, progress, cut_off) = (None, ToolProgress::default(), None);
        let (put_off, put_off_since, last_notice) = (Vec::new(), None, None);
        Self {
            runner,
            words,
            parts: 0,
            progress,
            preface,
            put_off,
            put_off_since,
            handover,
            fork,
            last_notice,
            cut_off,
        }
    }

    pub(super) fn fence(&self) -> Fence {
        self.runner.fence
    }

    /// Nothing that it says is written down from here on: it is to end for this reason.
    pub(super) fn cut_off(&mut self, why: String) {
        (self.words, self.progress) = (None, ToolProgress::default());
        drop(self.take_put_off());
        self.cut_off = Some(why);
    }

    pub(super) fn cut_off_why(&self) -> Option<&str> {
        self.cut_off.as_deref()
    }

    /// True if this is to be heard: after the cut only what it ended for.
    pub(super) fn is_heard(&self, output: &RunnerOutput) -> bool {
        match (&self.cut_off, output) {
            (Some(why), RunnerOutput::Event(AgentEvent::Notice { text })) => text == why,
            (Some(_), RunnerOutput::Event(_)) => false,
            _ => true,
        }
    }

    /// The next output of its runner; none if it has gone without a report. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<RunnerOutput> {
        self.runner.output.recv().await
    }

    /// The story of its start, once.
    pub(super) fn take_preface(&mut self) -> Vec<Entry> {
        std::mem::take(&mut self.preface)
    }

    /// Puts stories off that nobody waits for: they are written with what follows, or when their time has come. Answers those that
    /// have to be written now, because there are so many.
    pub(super) fn put_off(&mut self, stories: Vec<Entry>, bytes_max: usize) -> Vec<Entry> {
        if !stories.is_empty() {
            self.put_off_since.get_or_insert_with(Instant::now);
            self.put_off.extend(stories);
        }
        let bytes: usize = self.put_off.iter().map(story_bytes).sum();
        if bytes >= bytes_max || self.put_off.len() >= PUT_OFF_MAX { self.take_put_off() } else { Vec::new() }
    }

    /// The stories that were put off: they stand before whatever is written now.
    pub(super) fn take_put_off(&mut self) -> Vec<Entry> {
        self.put_off_since = None;
        std::mem::take(&mut self.put_off)
    }

    /// Takes words of the agent. Answers those that watchers hear ahead of the log.
    pub(super) fn take_words(
        &mut self,
        kind: WordKind,
        text: &str,
        bytes_max: usize,
        stories: &mut Vec<Entry>,
    ) -> Option<LiveWords> {
        let turn = self.fence().turn;
        if self.words.as_ref().is_some_and(|words| words.kind != kind) {
            self.end_words(stories);
        }
        let part = self.parts;
        let words = self.words.get_or_insert_with(|| Words::new(kind, part));
        let offset = words.hear(text);
        if words.pending_bytes() >= bytes_max {
            // These are written at once: watchers hear them as a fact, and need no second copy ahead of it.
            stories.extend(words.cut(turn));
            return None;
        }
        let (text, frame) = (text.to_owned(), std::sync::OnceLock::new());
        Some(LiveWords { turn, kind: kind.word(), part, offset, text, frame })
    }

    /// Takes what a tool prints. It is no part of the answer, whose words may go on meanwhile.
    pub(super) fn take_progress(
        &mut self,
        call: &str,
        output: &str,
        bytes_max: usize,
        stories: &mut Vec<Entry>,
    ) {
        self.progress.hear(call, output);
        if self.progress.pending_bytes() >= bytes_max {
            stories.extend(self.progress.cut(self.runner.fence.turn));
        }
    }

    /// The run of words is complete.
    pub(super) fn end_words(&mut self, stories: &mut Vec<Entry>) {
        let Some(mut words) = self.words.take() else { return };
        let turn = self.fence().turn;
        self.parts += 1;
        stories.extend(words.cut(turn));
        stories.push(words.close(turn));
    }

    /// When what was heard is to be written down at the latest.
    pub(super) fn cut_at(&self, words_wait: Duration) -> Option<Instant> {
        let words = self.words.as_ref().and_then(Words::unwritten_since).map(|since| since + words_wait);
        let put_off = self.put_off_since.map(|since| since + words_wait);
        words.into_iter().chain(self.progress.cut_at()).chain(put_off).min()
    }

    /// The entries that were heard and are to be written down by now.
    pub(super) fn unwritten(&mut self) -> Vec<Entry> {
        let turn = self.fence().turn;
        let mut stories = self.take_put_off();
        stories.extend(self.words.as_mut().and_then(|words| words.cut(turn)));
        stories.extend(self.progress.cut(turn));
        stories
    }

    pub(super) fn has_handed(&self) -> bool {
        matches!(self.handover, Handover::Done)
    }

    /// The words of the message, if they were read when it began, once.
    pub(super) fn take_kept_words(&mut self) -> Option<MessageWords> {
        match &mut self.handover {
            Handover::Waiting { words, .. } => words.take(),
            Handover::Done => None,
        }
    }

    /// Hands the message to the runner. What does not fit is handed next time.
    pub(super) fn hand(&mut self, mut message: Message) {
        let Handover::Waiting { preamble, .. } = &self.handover else { return };
        if let Some(preamble) = preamble {
            message.text.insert_str(0, preamble);
        }
        if self.runner.hand(message) {
            self.handover = Handover::Done;
        }
    }
}

fn story_bytes(story: &Entry) -> usize {
    match story {
        Entry::Story { body, .. } => body.len(),
        Entry::Rule(_) => 0,
    }
}
