//! A conversation told again, to an agent that was not there: what people said and what was answered, turn by turn.
//!
//! Read from the log and never stored. It is bounded: the newest turns are kept, whole, and what is left out is said. Every
//! line is quoted, so that nothing of it is taken for a command or for an end of the quotation.

use crate::Engine;
use crate::attached::AttachmentView;
use crate::inbound::plain_text;
use crate::story::{imported_of, words_of};
use kernel::{Fact, MessageId, Number, OrgId, Outcome, SessionId, Turn};
use std::collections::VecDeque;
use std::fmt::Write;
use store::{StoreError, StoredEntry, StoredFact};

/// The most that is told of a conversation. More would crowd out what is to be done now.
const BYTES_MAX: usize = 64 * 1024;
/// The most that the frame around it takes.
const FRAME_BYTES: usize = 512;
/// Facts read at once, and bytes of them.
const PAGE: (usize, usize) = (512, 1024 * 1024);
/// Forks of forks that are followed back to where the conversation began.
pub(crate) const ORIGINS_MAX: usize = 16;

/// The turns that are told, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    turns: VecDeque<String>,
    left_out: usize,
}

/// One turn, as it is read from a log.
#[derive(Debug, Default)]
struct TranscriptTurn {
    turn: Turn,
    /// The message it began with, and those that were said into it.
    messages: Vec<MessageId>,
    /// Their speakers, if that was elsewhere.
    there: Vec<String>,
    answer: String,
    outcome: Option<Outcome>,
}

impl Transcript {
    /// The conversation of a session before a turn, and before it those of which it is a fork; as much as there is room for.
    pub(crate) async fn read(
        engine: &Engine,
        org: OrgId,
        session: SessionId,
        before: Turn,
        room: usize,
    ) -> Result<Self, StoreError> {
        let mut transcript = Self::default();
        let mut room = BYTES_MAX.min(room.saturating_sub(FRAME_BYTES));
        let mut next = Some((session, before));
        for _ in 0..ORIGINS_MAX {
            let Some((session, before)) = next else { break };
            let read = Reading::of(engine, session, before).await?;
            for (index, turned) in read.turns.iter().enumerate().rev() {
                let told = tell(engine, org, turned).await?;
                let told = if transcript.turns.is_empty() { cut(told, room) } else { told };
                if told.len() > room {
                    transcript.left_out = read.dropped + index + 1;
                    return Ok(transcript);
                }
                room -= told.len();
                transcript.turns.push_front(told);
            }
            if read.dropped > 0 {
                transcript.left_out = read.dropped;
                return Ok(transcript);
            }
            next = origin_of(engine, org, session).await?;
        }
        Ok(transcript)
    }

    /// The number of turns that are told.
    pub(crate) fn turns(&self) -> usize {
        self.turns.len()
    }

    /// The words before the message; none if there is nothing to tell.
    pub(crate) fn preamble(&self) -> Option<String> {
        if self.turns.is_empty() {
            return None;
        }
        let mut text =
            "You take over this conversation. What was said in it so far is quoted here.\n\n".to_owned();
        if self.left_out > 0 {
            let _ = writeln!(text, "> ({} earlier turns are left out)\n>", self.left_out);
        }
        text.extend(self.turns.iter().map(String::as_str));
        text.push_str("\nThat was the conversation so far. This is what is said to you now:\n\n");
        Some(text)
    }
}

/// Of which session it is a fork, and before which turn of it.
async fn origin_of(
    engine: &Engine,
    org: OrgId,
    session: SessionId,
) -> Result<Option<(SessionId, Turn)>, StoreError> {
    let found = engine.store().session(session).await?;
    // Nobody's conversation is told in another org.
    let row = found.filter(|(record, _)| record.org == org).map(|(_, row)| row);
    Ok(row.and_then(|row| row.origin).map(|origin| (origin.session, origin.turn.next())))
}

/// A log on its way through: of the turns before one, the newest, and not more of them than can be told.
#[derive(Debug)]
struct Reading {
    before: Turn,
    turns: VecDeque<TranscriptTurn>,
    answer_bytes: usize,
    dropped: usize,
    is_over: bool,
}

impl Reading {
    async fn of(engine: &Engine, session: SessionId, before: Turn) -> Result<Self, StoreError> {
        let turns = VecDeque::new();
        let mut read = Self { before, turns, answer_bytes: 0, dropped: 0, is_over: false };
        let mut after = Number(0);
        loop {
            let page = engine.store().facts(session, after, PAGE.0, PAGE.1).await?;
            let Some(last) = page.last().filter(|_| !read.is_over) else { return Ok(read) };
            after = last.number;
            page.into_iter().for_each(|fact| read.take(fact));
        }
    }

    fn take(&mut self, fact: StoredFact) {
        match fact.entry {
            _ if self.is_over => {}
            StoredEntry::Rule(Fact::TurnStarted { turn, .. }) if turn >= self.before => self.is_over = true,
            StoredEntry::Rule(Fact::TurnStarted { turn, message }) => {
                self.turns.push_back(TranscriptTurn {
                    turn,
                    messages: vec![message],
                    ..TranscriptTurn::default()
                });
            }
            StoredEntry::Rule(Fact::Steered { message, .. }) => {
                self.turns.back_mut().into_iter().for_each(|turned| turned.messages.push(message));
            }
            StoredEntry::Rule(Fact::Missed { message }) => {
                let turned = self.turns.back_mut().into_iter();
                turned.for_each(|turned| turned.messages.retain(|other| *other != message));
            }
            StoredEntry::Rule(Fact::TurnEnded { outcome, .. }) => {
                self.turns.back_mut().into_iter().for_each(|turned| turned.outcome = Some(outcome));
            }
            StoredEntry::Story { turn, kind, body: Some(body) } if kind == "imported" => {
                let ours = self.turns.back_mut().filter(|turned| turned.turn == turn);
                let said = imported_of(&body).map(|there| there.said).unwrap_or_default();
                ours.into_iter()
                    .for_each(|turned| turned.there = said.iter().map(|s| s.by.clone()).collect());
            }
            StoredEntry::Story { turn, kind, body: Some(body) } if kind == "text" => {
                self.take_answer(turn, &words_of(&body).unwrap_or_default());
            }
            StoredEntry::Rule(_) | StoredEntry::Story { .. } => {}
        }
    }

    fn take_answer(&mut self, turn: Turn, words: &str) {
        let Some(turned) = self.turns.back_mut().filter(|turned| turned.turn == turn) else { return };
        if turned.answer.len() > BYTES_MAX {
            return;
        }
        turned.answer.push_str(words);
        self.answer_bytes += words.len();
        while self.answer_bytes > BYTES_MAX && self.turns.len() > 1 {
            let oldest = self.turns.pop_front();
            self.answer_bytes -= oldest.map_or(0, |turned| turned.answer.len());
            self.dropped += 1;
        }
    }
}

/// As much as there is room for of the one turn that is told in any case.
fn cut(mut told: String, room: usize) -> String {
    const CUT: &str = "> (the rest is left out)\n>\n";
    if told.len() > room {
        let end = told.floor_char_boundary(room.saturating_sub(CUT.len()));
        let end = told[..end].rfind('\n').map_or(0, |at| at + 1);
        told.truncate(end);
        told.push_str(CUT);
    }
    told
}

async fn tell(engine: &Engine, org: OrgId, turned: &TranscriptTurn) -> Result<String, StoreError> {
    let mut told = String::new();
    for (at, message) in turned.messages.iter().enumerate() {
        let words = engine.store().words(*message).await?;
        let by = engine.store().receipt(*message).await?.map(|(_, row)| row.by);
        let handle = match by {
            Some(by) => engine.rights_cache().handle_in(org, by).await?,
            None => None,
        };
        let words = words.and_then(|words| plain_text(&words));
        let words = words.unwrap_or_else(|| "(these words were forgotten)".to_owned());
        let who = turned.there.get(at).or(handle.as_ref());
        let attached = AttachmentView::read_all(&engine.store().attachments(*message).await?);
        // Their bytes are not told again: an agent that was there may remember them, and for any other the names say what there was.
        let named = attached.iter().map(|view| format!("(went along: {view})"));
        let words = [words].into_iter().chain(named).collect::<Vec<_>>().join("\n");
        quote(&mut told, who.map_or("somebody", String::as_str), &words);
    }
    quote(&mut told, "the agent", &turned.answer);
    if let Some(how) = turned.outcome.and_then(how_it_ended) {
        let _ = writeln!(told, "> ({how})");
    }
    told.push_str(">\n");
    Ok(told)
}

fn quote(told: &mut String, who: &str, words: &str) {
    if words.trim().is_empty() {
        return;
    }
    let _ = writeln!(told, "> {who}:");
    for line in words.trim().lines() {
        let _ = writeln!(told, "> {line}");
    }
}

fn how_it_ended(outcome: Outcome) -> Option<&'static str> {
    match outcome {
        Outcome::Answered => None,
        Outcome::Stopped => Some("this turn was stopped"),
        Outcome::Interrupted => Some("this turn was interrupted"),
        Outcome::Failed(_) => Some("this turn failed"),
        Outcome::TimedOut => Some("this turn took too long and was stopped"),
    }
}
