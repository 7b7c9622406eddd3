//! A conversation as it leaves for elsewhere, and as it comes from there: what was said in turns that are over, by whom,
//! and what came of it.
//!
//! What still waits or is asked stays where it is, and it is said how much of it there is. Nothing goes along that means
//! something only here: no directory, no id of a person, no name that an agent has for the conversation.
//!
//! Of a fork, what was said before it was made goes along: elsewhere there is nobody who could be asked for it, and an agent
//! that takes the conversation over there is to know what the one here knows.

use crate::attached::{AttachedFile, AttachmentView};
use crate::inbound::MessagePart;
use crate::transcript::ORIGINS_MAX;
use crate::view::readable;
use crate::{AccessError, UnavailableError, ViewError, Views, WayIn, WayInError};
use bytes::Bytes;
use kernel::{
    Act, Fact, MessageId, Moment, Number, Origin, Outcome, Principal, Scope, SessionId, Turn, authorize,
    authorize_right,
};
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;
use store::{StoreError, StoredEntry, StoredFact};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Exports and imports that may be under way at once: each is held in memory as a whole.
pub(crate) const AT_ONCE: usize = 4;
/// The time for which one more waits for its place.
const PLACE_WAIT: Duration = Duration::from_secs(5);
/// The most that an export holds, in bytes of words. The newest turns are kept.
pub const PAST_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Turns in an export or an import: it becomes one transaction, for which others wait.
pub const PAST_TURNS_MAX: usize = 2_000;
/// The story of all these turns together, in facts.
pub const PAST_STORIES_MAX: usize = 20_000;
/// Messages of one turn.
pub const PAST_SAID_MAX: usize = 64;
/// Facts read at once, and bytes of them.
const PAGE: (usize, usize) = (512, 1024 * 1024);

/// The kinds of stories of a turn that mean something elsewhere, too. How the agent was started, what it asked, and
/// what it was told of earlier turns does not.
pub const PAST_KINDS: [&str; 14] = [
    "text",
    "reasoning",
    "said",
    "tool_call",
    "tool_progress",
    "tool_result",
    "plan",
    "file_changed",
    "usage",
    "notice",
    "finished",
    "stopped",
    "changes",
    "other",
];

/// A conversation, as far as it is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// The session, where it comes from.
    pub session: SessionId,
    /// The org that it was in.
    pub org: String,
    /// Its title, for people.
    pub title: Option<String>,
    /// The agent that was there last.
    pub agent: String,
    /// Its model, where one was chosen.
    pub model: Option<String>,
    /// Its mode, where one was chosen.
    pub mode: Option<String>,
    /// The person who took it along, by their handle.
    pub by: String,
    /// When.
    pub at: Moment,
    /// The part that did not go along.
    pub left_out: LeftOut,
    /// The turns, oldest first.
    pub turns: Vec<PastTurn>,
}

/// The part that did not go along.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Turns for which there was no room: the oldest.
    pub turns: u32,
    /// Messages that wait, are held, or are being worked on.
    pub messages: u32,
    /// Questions that nobody has answered yet.
    pub questions: u32,
    /// Changes of scope that have not happened yet.
    pub changes: u32,
    /// Images and files of turns that went along, for which there was no room.
    pub attachments: u32,
}

/// A turn that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastTurn {
    /// Its number, where it ran; in a fork, counted from the beginning of the conversation.
    pub turn: u32,
    /// The agent that ran it; empty if nobody knows.
    pub agent: String,
    /// When it began.
    pub began_at: Moment,
    /// When it was over.
    pub ended_at: Moment,
    /// The words it began with, and those that were said into it.
    pub said: Vec<PastWords>,
    /// The story.
    pub story: Vec<PastStory>,
    /// Its outcome.
    pub outcome: Outcome,
}

/// Words of somebody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastWords {
    /// Their speaker, by the handle that they had there.
    pub by: String,
    /// When it was accepted.
    pub at: Moment,
    /// The parts. None if the words were forgotten.
    pub parts: Vec<MessagePart>,
    /// The images and files that went along.
    pub attachments: Vec<AttachedFile>,
}

/// Something that people were shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastStory {
    /// When.
    pub at: Moment,
    /// One of `PAST_KINDS`.
    pub kind: String,
    /// A JSON object with its `type`. Version and turn, which are in it where it is stored, mean nothing elsewhere.
    pub body: Bytes,
}

impl Views {
    /// A session's conversation, as far as it is over, for whoever may read it. Of a fork, what was said before it was made
    /// goes along, as far as whoever asks could have it anyway.
    pub async fn export(&self, by: &Principal, session: SessionId) -> Result<Export, ViewError> {
        let (record, row) = self.seen(by, session).await?;
        let _place = place_at(&self.exchange).await?;
        let read = self.read_past(session, row.at, Turn(u32::MAX)).await?;
        let org = self.ports.store.org(by.org).await?.map(|org| org.name).unwrap_or_default();
        let Scope { agent, model, mode, .. } = row.scope;
        let waiting = self.ports.store.queue(session).await?.len() as u32;
        let left_out = read.left_out(waiting);
        let mut packed = ExportPack::default();
        self.pack(by, read, ExportDepth::Whole, &mut packed).await?;
        let can_ask = authorize(by, Act::Say, &record, ()).is_ok();
        self.pack_origins(by, row.origin, can_ask, &mut packed).await?;
        self.pack_attachments(&mut packed).await?;
        let left_out =
            LeftOut { turns: packed.left_out, attachments: packed.attachments_left_out, ..left_out };
        let (title, by, at) = (row.title, by.handle.clone(), self.ports.now());
        Ok(Export { session, org, title, agent, model, mode, by, at, left_out, turns: packed.in_order() })
    }

    /// The words before a fork was made, from the session of which it is one, and so on back to where it all began.
    ///
    /// Whoever may read that session gets all of it. Whoever may only say something in the fork gets what its agent is told
    /// again, and would tell them: the words, and nothing of what else there was to see. Nobody else gets anything.
    async fn pack_origins(
        &self,
        by: &Principal,
        mut origin: Option<Origin>,
        can_ask: bool,
        packed: &mut ExportPack,
    ) -> Result<(), StoreError> {
        for _ in 0..ORIGINS_MAX {
            let Some(Origin { session, turn }) = origin else { return Ok(()) };
            // Nobody's conversation is told in another org.
            let found = self.ports.store.session(session).await?.filter(|(record, _)| record.org == by.org);
            let Some((record, row)) = found else { return Ok(()) };
            let depth = match readable(by, &record, "session") {
                _ if packed.left_out > 0 => None,
                Ok(()) => Some(ExportDepth::Whole),
                Err(_) => can_ask.then_some(ExportDepth::Words),
            };
            packed.forks.push(turn.0);
            match depth {
                Some(depth) => {
                    let read = self.read_past(session, row.at, turn).await?;
                    self.pack(by, read, depth, packed).await?;
                }
                None => packed.left_out = packed.left_out.saturating_add(turn.0),
            }
            origin = row.origin;
        }
        Ok(())
    }

    /// A session's turns up to one, as far as its log goes now.
    async fn read_past(&self, session: SessionId, at: Number, last: Turn) -> Result<Reading, StoreError> {
        let mut read = Reading { last, ..Reading::default() };
        let mut after = Number(0);
        while after < at && !read.is_over {
            let page = self.ports.store.facts(session, after, PAGE.0, PAGE.1).await?;
            let Some(newest) = page.last() else { break };
            after = newest.number;
            let seen = page.into_iter().filter(|fact| fact.number <= at);
            seen.for_each(|fact| read.take(fact));
        }
        Ok(read)
    }

    /// From the newest on: what does not fit any more is older than what does.
    async fn pack(
        &self,
        by: &Principal,
        mut read: Reading,
        depth: ExportDepth,
        packed: &mut ExportPack,
    ) -> Result<(), StoreError> {
        while let Some(over) = read.over.pop_back() {
            let (mut past, messages) = self.past(by, over).await?;
            if depth == ExportDepth::Words {
                past.story.retain(|story| story.kind == "text");
            }
            let Some(at) = packed.take(past) else {
                packed.left_out = read.over.len() as u32 + 1;
                break;
            };
            packed.attached.push((at, messages, depth));
        }
        packed.left_out = packed.left_out.saturating_add(read.dropped);
        Ok(())
    }

    /// The images and files of the turns that go along, from the newest on, as far as there is room beside the words of all. What does not
    /// fit is named in the words; so is everything where only words go along, because no more of it is told again to an agent.
    async fn pack_attachments(&self, packed: &mut ExportPack) -> Result<(), StoreError> {
        let turns = std::mem::take(&mut packed.attached);
        let all = turns.into_iter().flat_map(|(turn, messages, depth)| {
            messages.into_iter().enumerate().map(move |(at, message)| (turn, at, message, depth))
        });
        for (turn, at, message, depth) in all {
            let views = AttachmentView::read_all(&self.ports.store.attachments(message).await?);
            for (number, view) in (1..).zip(views) {
                let content = match depth == ExportDepth::Whole && packed.has_room_for(&view) {
                    true => self.ports.store.attachment(message, number).await?,
                    false => None,
                };
                packed.attach(turn, at, view, content);
            }
        }
        Ok(())
    }

    /// A turn without what went along with its messages, and which messages those are.
    async fn past(&self, by: &Principal, over: EndedTurn) -> Result<(PastTurn, Vec<MessageId>), StoreError> {
        let EndedTurn { mut past, messages, mut there, .. } = over;
        let mut said = Vec::new();
        for message in messages {
            let Some((_, row)) = self.ports.store.receipt(message).await? else { continue };
            let words = self.ports.store.words(message).await?;
            let parts = words.and_then(|words| serde_json::from_slice(&words).ok()).unwrap_or_default();
            let handle =
                self.rights_cache.handle_of(by, row.by).await?.unwrap_or_else(|| "somebody".to_owned());
            // What came from elsewhere goes on with the names and the moments that it came with.
            let (by, at) = there.pop_front().unwrap_or((handle, row.accepted_at));
            past.said.push(PastWords { by, at, parts, attachments: Vec::new() });
            said.push(message);
        }
        Ok((past, said))
    }
}

impl WayIn {
    /// Room for one more conversation in memory, for whoever may make sessions at all.
    pub async fn place_for_import(&self, by: &Principal) -> Result<SemaphorePermit<'_>, WayInError> {
        authorize_right(by, Act::Say).map_err(|denied| AccessError::denied(denied, "session"))?;
        Ok(place_at(&self.exchange).await?)
    }
}

async fn place_at(exchange: &Semaphore) -> Result<SemaphorePermit<'_>, UnavailableError> {
    let place = tokio::time::timeout(PLACE_WAIT, exchange.acquire()).await;
    let busy = || UnavailableError::Unavailable("other conversations are being taken in or out".to_owned());
    place.ok().and_then(Result::ok).ok_or_else(busy)
}

impl PastTurn {
    /// The number of bytes of words in it.
    pub(crate) fn bytes(&self) -> usize {
        let said =
            self.said.iter().flat_map(|said| said.parts.iter().map(|MessagePart::Text { text }| text.len()));
        said.sum::<usize>() + self.story.iter().map(|story| story.body.len()).sum::<usize>()
    }
}

/// The bytes that an attachment takes in a file, where it is text in base64.
fn written_len(bytes: u64) -> usize {
    (bytes as usize).div_ceil(3) * 4
}

/// The part of a turn that goes along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExportDepth {
    /// All that there was to see.
    Whole,
    /// The words and the answer.
    Words,
}

/// The turns that go along, the newest first.
#[derive(Debug, Default)]
struct ExportPack {
    /// With how many forks lie between each of them and the session itself.
    turns: Vec<(usize, PastTurn)>,
    /// After which turn of its origin each fork was made, the session's own first.
    forks: Vec<u32>,
    stories: usize,
    bytes: usize,
    left_out: u32,
    /// The messages of each turn, whose images and files come last.
    attached: Vec<(usize, Vec<MessageId>, ExportDepth)>,
    attachments_left_out: u32,
}

impl ExportPack {
    /// Takes a turn that is older than all the others, if there is room for it. Answers which one it is here.
    fn take(&mut self, past: PastTurn) -> Option<usize> {
        let (stories, bytes) = (self.stories + past.story.len(), self.bytes + past.bytes());
        // The newest goes along in any case: one turn alone is never too much.
        let is_first = self.turns.is_empty();
        let fits = self.turns.len() < PAST_TURNS_MAX && stories <= PAST_STORIES_MAX;
        if !is_first && !fits || bytes > PAST_BYTES_MAX {
            return None;
        }
        (self.stories, self.bytes) = (stories, bytes);
        self.turns.push((self.forks.len(), past));
        Some(self.turns.len() - 1)
    }

    fn has_room_for(&self, view: &AttachmentView) -> bool {
        self.bytes.saturating_add(written_len(view.bytes)) <= PAST_BYTES_MAX
    }

    /// Adds what went along with a message of a turn; what has no bytes any more, or no room, is named in its words.
    fn attach(&mut self, turn: usize, at: usize, view: AttachmentView, content: Option<Bytes>) {
        let Some(said) = self.turns.get_mut(turn).and_then(|(_, past)| past.said.get_mut(at)) else { return };
        match content {
            Some(content) => {
                self.bytes += written_len(content.len() as u64);
                let AttachmentView { kind, name, media_type, .. } = view;
                said.attachments.push(AttachedFile { kind, name, media_type, content });
            }
            None => {
                self.attachments_left_out += 1;
                said.parts.push(MessagePart::Text { text: format!("(left out: {view})") });
            }
        }
    }

    /// The oldest first. A fork counts its turns from 1 on; here they go on where those before it ended.
    fn in_order(self) -> Vec<PastTurn> {
        let Self { turns, forks, .. } = self;
        let before = |depth: usize| forks[depth..].iter().fold(0_u32, |sum, turn| sum.saturating_add(*turn));
        let numbered = turns.into_iter().rev().map(|(depth, past)| {
            let turn = past.turn.saturating_add(before(depth));
            PastTurn { turn, ..past }
        });
        numbered.collect()
    }
}

/// A turn that is over, with the names of its messages.
#[derive(Debug)]
struct EndedTurn {
    past: PastTurn,
    messages: Vec<MessageId>,
    /// Their speakers, and the times, if that was elsewhere.
    there: VecDeque<(String, Moment)>,
    story_bytes: usize,
}

/// A log on its way through.
#[derive(Debug, Default)]
struct Reading {
    /// The last turn that is read.
    last: Turn,
    is_over: bool,
    over: VecDeque<EndedTurn>,
    running: Option<EndedTurn>,
    scope_agent: String,
    dropped: u32,
    stories: usize,
    story_bytes: usize,
    questions: BTreeSet<kernel::ApprovalId>,
    changes: u32,
}

impl Reading {
    fn left_out(&self, messages: u32) -> LeftOut {
        let questions = self.questions.len() as u32;
        LeftOut { turns: 0, messages, questions, changes: self.changes, attachments: 0 }
    }

    fn take(&mut self, fact: StoredFact) {
        match fact.entry {
            _ if self.is_over => {}
            StoredEntry::Rule(Fact::TurnStarted { turn, .. }) if turn > self.last => self.is_over = true,
            StoredEntry::Rule(rule) => self.take_rule(fact.at, rule),
            StoredEntry::Story { turn, kind, body: Some(body) } => self.take_story(fact.at, turn, kind, body),
            StoredEntry::Story { .. } => {}
        }
    }

    fn take_rule(&mut self, at: Moment, fact: Fact) {
        match fact {
            Fact::Opened { scope, .. } => self.scope_agent = scope.agent,
            Fact::ScopeChanged { scope, .. } => (self.scope_agent, self.changes) = (scope.agent, 0),
            Fact::ChangeAsked { .. } => self.changes = 1,
            Fact::ScopeKept { .. } => self.changes = 0,
            Fact::TurnStarted { turn, message } => self.begin(at, turn, message),
            Fact::Steered { message, .. } => {
                self.running.iter_mut().for_each(|over| over.messages.push(message));
            }
            Fact::Missed { message } => {
                self.running.iter_mut().for_each(|over| over.messages.retain(|other| *other != message));
            }
            Fact::Asked { approval, .. } => {
                self.questions.insert(approval);
            }
            Fact::Answered { approval, .. } | Fact::Lapsed { approval } => {
                self.questions.remove(&approval);
            }
            Fact::TurnEnded { outcome, .. } => self.end(at, outcome),
            _ => {}
        }
    }

    fn begin(&mut self, at: Moment, turn: Turn, message: MessageId) {
        let (said, story, outcome) = (Vec::new(), Vec::new(), Outcome::Answered);
        let agent = self.scope_agent.clone();
        let past = PastTurn { turn: turn.0, agent, began_at: at, ended_at: at, said, story, outcome };
        self.running =
            Some(EndedTurn { past, messages: vec![message], there: VecDeque::new(), story_bytes: 0 });
    }

    fn end(&mut self, at: Moment, outcome: Outcome) {
        let Some(mut over) = self.running.take() else { return };
        over.past.outcome = outcome;
        if over.there.is_empty() {
            over.past.ended_at = at;
        }
        self.stories += over.past.story.len();
        self.story_bytes += over.story_bytes;
        self.over.push_back(over);
        while self.over.len() > PAST_TURNS_MAX
            || self.over.len() > 1 && (self.stories > PAST_STORIES_MAX || self.story_bytes > PAST_BYTES_MAX)
        {
            let Some(oldest) = self.over.pop_front() else { break };
            self.stories -= oldest.past.story.len();
            self.story_bytes -= oldest.story_bytes;
            self.dropped += 1;
        }
    }

    fn take_story(&mut self, at: Moment, turn: Turn, kind: String, body: Bytes) {
        let Some(over) = self.running.as_mut().filter(|over| over.past.turn == turn.0) else { return };
        if kind == "imported" {
            return over.came_from(&body);
        }
        // One turn alone never takes more than there is room for.
        let room =
            over.past.story.len() < PAST_STORIES_MAX && over.story_bytes + body.len() <= PAST_BYTES_MAX / 2;
        if PAST_KINDS.contains(&kind.as_str()) && room {
            over.story_bytes += body.len();
            over.past.story.push(PastStory { at, kind, body });
        }
    }
}

impl EndedTurn {
    /// The turn did not run here.
    fn came_from(&mut self, body: &[u8]) {
        let Some(there) = crate::story::imported_of(body) else { return };
        (self.past.agent, self.past.began_at, self.past.ended_at) =
            (there.agent, Moment(there.began_ms), Moment(there.ended_ms));
        self.there = there.said.into_iter().map(|said| (said.by, Moment(said.at_ms))).collect();
    }
}
