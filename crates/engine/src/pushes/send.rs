//! The task that tells people on their devices: news in, whom they concern, and, after a moment, a post to each of their places.
//!
//! Read in this order: `run`, `hear` (whom something concerns), `words` (whether they may still know, and what is said), `done`
//! (what became of it). Whether somebody may know is asked when it is sent, of the store as it is then. For each place and session
//! only the newest waits, and one post at most is under way, so that what is told last is what is true.

use super::{OutgoingPush, PushPort, Pushed, topic_of};
use crate::approvals::ApprovalWords;
use crate::engine_ports::EnginePorts;
use crate::inbound::title_of;
use crate::view::readable;
use crate::{ViewError, Views};
use kernel::{
    Answer, Answerer, ApprovalId, Fact, Grantee, Moment, Outcome, PersonId, Principal, Record, SessionId,
    StopWhy, TokenId, Turn, grant_of, may_answer,
};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use store::{ApprovalState, PushRow, Seer, SessionRow, StoreError, TitleBy, record};
use tokio::sync::mpsc;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::Instant;

/// The time before something is told: a rule, or somebody who sits in front of it, may be faster.
const PAUSE: Duration = Duration::from_secs(1);
/// Posts that are under way at once.
const AT_ONCE_MAX: usize = 16;
/// Posts that wait. What comes beyond is not told: it stands in the list of sessions.
const WAITING_MAX: usize = 4_096;
/// Sessions of which we remember what was told where.
const TOLD_MAX: usize = 4_096;
/// Turns of which we remember who stopped them.
const STOPPED_MAX: usize = 1_024;
/// The tries of one post.
const TRIES_MAX: u32 = 5;
/// The wait after the first try that failed; after each further one four times as long …
const AGAIN_FIRST: Duration = Duration::from_secs(2);
/// … and never longer than this, whatever the push service says.
const AGAIN_MAX: Duration = Duration::from_secs(10 * 60);
/// A question, or that a turn is over, is news for so long.
const NEWS_FOR: Duration = Duration::from_secs(24 * 60 * 60);
/// That a question is settled is told to whoever still has the question before their eyes.
const SETTLED_FOR: Duration = Duration::from_secs(60 * 60);
/// Characters of a tool's name.
const TOOL_LENGTH_MAX: usize = 40;

/// A place, and the session that it is told about.
type PushKey = (TokenId, SessionId);

/// Something that people are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum News {
    Asked {
        approval: ApprovalId,
        until: Moment,
        only: Option<Grantee>,
    },
    Settled {
        by: Option<Answerer>,
    },
    /// With whoever settled a question just before, where that was not told yet.
    Ended {
        outcome: Outcome,
        answered_by: Option<Answerer>,
    },
}

/// Something that is to be told at one place about one session.
#[derive(Debug, Clone, Copy)]
struct WaitingPush {
    news: News,
    /// Whose message the turn began with.
    sender: Option<PersonId>,
    tries: u32,
    due: Instant,
}

/// The words of a push, as the page's worker reads them (`ui/src/push/worker.ts`).
#[derive(Debug, Serialize)]
struct PushWords<'a> {
    version: u8,
    kind: &'static str,
    session: String,
    title: Option<String>,
    agent: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<&'static str>,
    /// Questions of this session that are still open.
    open: u32,
}

pub(super) struct PushSender {
    ports: Arc<EnginePorts>,
    views: Views,
    port: Arc<dyn PushPort>,
    waiting: BTreeMap<PushKey, WaitingPush>,
    under_way: BTreeMap<Id, PushKey>,
    posts: JoinSet<TriedPush>,
    /// The questions that were told somewhere and are not known to be settled.
    told: BTreeMap<PushKey, BTreeSet<ApprovalId>>,
    stopped_by: BTreeMap<(SessionId, Turn), PersonId>,
}

/// The push that was tried, and what came of it.
type TriedPush = (WaitingPush, Result<Posted, ViewError>);

/// The end of a try.
enum Posted {
    /// They may not know it any more, or it is not so any more.
    Moot,
    Tried {
        endpoint: String,
        pushed: Pushed,
    },
}

impl PushSender {
    pub(super) fn new(ports: Arc<EnginePorts>, views: Views, port: Arc<dyn PushPort>) -> Self {
        let (waiting, under_way, posts) = (BTreeMap::new(), BTreeMap::new(), JoinSet::new());
        let (told, stopped_by) = (BTreeMap::new(), BTreeMap::new());
        Self { ports, views, port, waiting, under_way, posts, told, stopped_by }
    }

    /// Tells what it hears until the node ends.
    pub(super) async fn run(mut self, mut news: mpsc::Receiver<(SessionId, Fact)>) {
        loop {
            let due = self.next_due();
            tokio::select! {
                biased;
                Some(done) = self.posts.join_next_with_id() => self.done(done).await,
                heard = news.recv() => {
                    let Some((session, fact)) = heard else { return };
                    if let Err(error) = self.hear(session, fact).await {
                        tracing::warn!(%error, %session, "nobody is told on their devices");
                    }
                }
                () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => self.post_due(),
            }
        }
    }

    /// When something can be posted; none if nothing waits, or too much is under way.
    fn next_due(&self) -> Option<Instant> {
        let is_full = self.posts.len() >= AT_ONCE_MAX;
        let free = self.waiting.iter().filter(|(key, _)| !is_full && !self.is_under_way(key));
        free.map(|(_, waiting)| waiting.due).min()
    }

    fn is_under_way(&self, key: &PushKey) -> bool {
        self.under_way.values().any(|other| other == key)
    }

    /// Notes whom something concerns.
    async fn hear(&mut self, session: SessionId, fact: Fact) -> Result<(), StoreError> {
        match fact {
            Fact::Asked { approval, turn, until, terms } => {
                let only = terms.only.map(|(_, whom)| whom);
                self.concern(session, turn, News::Asked { approval, until, only }, None).await
            }
            Fact::Answered { approval, by, .. } => {
                self.settle(session, approval, Some(by));
                Ok(())
            }
            Fact::Lapsed { approval } => {
                self.settle(session, approval, None);
                Ok(())
            }
            Fact::StopAsked { turn, why: StopWhy::Asked(person) } => {
                if self.stopped_by.len() >= STOPPED_MAX {
                    self.stopped_by.pop_first();
                }
                self.stopped_by.insert((session, turn), person);
                Ok(())
            }
            Fact::TurnEnded { turn, outcome } => {
                self.told.retain(|(_, told), _| *told != session);
                let stopped_by = self.stopped_by.remove(&(session, turn));
                let by_hand = stopped_by.filter(|_| outcome == Outcome::Stopped);
                self.concern(session, turn, News::Ended { outcome, answered_by: None }, by_hand).await
            }
            _ => Ok(()),
        }
    }

    /// Lets it wait for every place of whomever it concerns: whose session it is, whose message it is about, and whoever a question was
    /// left to. Not of `but`, who did it themselves.
    async fn concern(
        &mut self,
        session: SessionId,
        turn: Turn,
        news: News,
        but: Option<PersonId>,
    ) -> Result<(), StoreError> {
        let store = self.ports.store.clone();
        let Some((record, _)) = store.session(session).await? else { return Ok(()) };
        let places = store.pushes(record.org, None).await?;
        if places.is_empty() {
            return Ok(());
        }
        let sender = store.turn(session, turn).await?.map(|row| row.by);
        let is_left = matches!(news, News::Asked { only: Some(_), .. });
        for place in places {
            let is_theirs = record.owner == place.person || sender == Some(place.person);
            if (is_theirs || is_left) && but != Some(place.person) {
                self.wait((place.token, session), news, sender);
            }
        }
        Ok(())
    }

    /// A question is settled: whoever was not told of it need not be, and whoever was is told that.
    fn settle(&mut self, session: SessionId, approval: ApprovalId, by: Option<Answerer>) {
        let asks = |news: News| matches!(news, News::Asked { approval: asked, .. } if asked == approval);
        self.waiting.retain(|(_, about), waiting| *about != session || !asks(waiting.news));
        let mut told_of = Vec::new();
        for (key, told) in self.told.iter_mut().filter(|((_, about), _)| *about == session) {
            if told.remove(&approval) {
                told_of.push(*key);
            }
        }
        for key in told_of {
            self.wait(key, News::Settled { by }, None);
        }
    }

    fn wait(&mut self, key: PushKey, news: News, sender: Option<PersonId>) {
        if self.waiting.len() >= WAITING_MAX && !self.waiting.contains_key(&key) {
            return;
        }
        let before = self.waiting.get(&key).map(|waiting| waiting.news);
        let news = match (news, before) {
            // It replaces that, too, and says it instead.
            (News::Ended { outcome, .. }, Some(News::Settled { by })) => {
                News::Ended { outcome, answered_by: by }
            }
            (news, _) => news,
        };
        self.waiting.insert(key, WaitingPush { news, sender, tries: 0, due: Instant::now() + PAUSE });
    }

    fn post_due(&mut self) {
        let now = Instant::now();
        let room = AT_ONCE_MAX.saturating_sub(self.posts.len());
        let due = self.waiting.iter().filter(|(key, waiting)| waiting.due <= now && !self.is_under_way(key));
        let due: Vec<_> = due.take(room).map(|(key, _)| *key).collect();
        for key in due {
            let Some(mut waiting) = self.waiting.remove(&key) else { continue };
            waiting.tries += 1;
            if let News::Asked { approval, .. } = waiting.news {
                // Before it is known whether it arrives: if it does, it has to be replaced one day.
                self.remember(key, approval);
            }
            let post =
                PushPost { ports: self.ports.clone(), views: self.views.clone(), port: self.port.clone() };
            let task = self.posts.spawn(async move { (waiting, post.post(key, waiting).await) });
            self.under_way.insert(task.id(), key);
        }
    }

    fn remember(&mut self, key: PushKey, approval: ApprovalId) {
        if self.told.len() >= TOLD_MAX {
            self.told.pop_first();
        }
        self.told.entry(key).or_default().insert(approval);
    }

    async fn done(&mut self, done: Result<(Id, TriedPush), JoinError>) {
        let (task, (tried, posted)) = match done {
            Ok(done) => done,
            Err(panicked) => {
                self.under_way.remove(&panicked.id());
                return;
            }
        };
        let Some(key) = self.under_way.remove(&task) else { return };
        match posted {
            Ok(Posted::Moot) => self.forget_question(key, tried.news),
            Ok(Posted::Tried { pushed: Pushed::Sent, .. }) => {}
            Ok(Posted::Tried { endpoint, pushed: Pushed::Gone }) => self.forget_place(key.0, endpoint).await,
            Ok(Posted::Tried { pushed: Pushed::Later { after, reason }, .. }) => {
                self.again(key, tried, after, &reason);
            }
            Ok(Posted::Tried { pushed: Pushed::Refused { reason }, .. }) => {
                tracing::warn!(reason, token = %key.0, "a push service takes nothing from us for this browser");
                self.forget_question(key, tried.news);
            }
            Err(error) => self.again(key, tried, None, &error.to_string()),
        }
    }

    /// It was not told, and so there is nothing to replace.
    fn forget_question(&mut self, key: PushKey, news: News) {
        let News::Asked { approval, .. } = news else { return };
        if let Some(told) = self.told.get_mut(&key) {
            told.remove(&approval);
        }
    }

    /// There is no such browser any more.
    async fn forget_place(&mut self, token: TokenId, endpoint: String) {
        self.waiting.retain(|(other, _), _| *other != token);
        self.told.retain(|(other, _), _| *other != token);
        if let Err(error) = self.ports.store.forget_push(token, endpoint).await {
            tracing::warn!(%error, "a browser that is gone is forgotten the next time");
        }
    }

    /// Tries it once more after a while, unless there is something newer to say, or it was tried often enough.
    fn again(&mut self, key: PushKey, tried: WaitingPush, after: Option<Duration>, reason: &str) {
        if self.waiting.contains_key(&key) {
            return;
        }
        if tried.tries >= TRIES_MAX {
            tracing::warn!(reason, tries = tried.tries, "somebody is not told on their device");
            return;
        }
        let wait = AGAIN_FIRST.saturating_mul(4_u32.saturating_pow(tried.tries - 1));
        let wait = after.map_or(wait, |after| after.max(wait)).min(AGAIN_MAX);
        self.waiting.insert(key, WaitingPush { due: Instant::now() + wait, ..tried });
    }
}

/// One try to tell something at one place.
struct PushPost {
    ports: Arc<EnginePorts>,
    views: Views,
    port: Arc<dyn PushPort>,
}

impl PushPost {
    async fn post(self, (token, session): PushKey, waiting: WaitingPush) -> Result<Posted, ViewError> {
        let store = &self.ports.store;
        let Some(PushRow { place, .. }) = store.push(token).await? else { return Ok(Posted::Moot) };
        // Not as anybody remembers it: as it is.
        let Some(by) = store.principal(token, self.ports.now()).await? else { return Ok(Posted::Moot) };
        let Some((record, row)) = store.session_seen(Seer::of(&by), session).await? else {
            return Ok(Posted::Moot);
        };
        if readable(&by, &record, "session").is_err() {
            return Ok(Posted::Moot);
        }
        let Some((words, good_for)) = self.words(&by, &record, &row, waiting).await? else {
            return Ok(Posted::Moot);
        };
        let endpoint = place.endpoint.clone();
        let words = serde_json::to_vec(&words).expect("words are plain data");
        let is_urgent = matches!(waiting.news, News::Asked { .. });
        let topic = topic_of(session);
        let pushed = self.port.send(OutgoingPush { place, words, good_for, is_urgent, topic }).await;
        Ok(Posted::Tried { endpoint, pushed })
    }

    /// The words for somebody who may read the session; none if it does not concern them any more, or is not so any more.
    async fn words<'a>(
        &self,
        by: &Principal,
        record: &'a Record,
        row: &SessionRow,
        waiting: WaitingPush,
    ) -> Result<Option<(PushWords<'a>, Duration)>, ViewError> {
        let is_theirs = record.owner == by.person || waiting.sender == Some(by.person);
        // A title that a person has given is a name. What an agent made of the conversation, and how it begins, is not.
        let title = row.title.as_deref().filter(|_| row.title_by == Some(TitleBy::Person)).and_then(title_of);
        let (session, agent, open) = (row.session.to_string(), record.agent.as_str(), row.questions);
        let words = PushWords {
            version: 1,
            kind: "",
            session,
            title,
            agent,
            tool: None,
            by: None,
            outcome: None,
            open,
        };
        match waiting.news {
            News::Asked { approval, until, only } => {
                let grant = grant_of(by, record);
                let may = grant.is_some_and(|grant| may_answer(by, grant, only, &Answer::Yes));
                let left = Duration::from_millis(until.0.saturating_sub(self.ports.now().0));
                if !may || !(is_theirs || only.is_some()) || left.is_zero() {
                    return Ok(None);
                }
                let found = self.ports.store.approval_seen(Seer::of(by), approval).await?;
                let Some((_, row)) = found.filter(|(_, row)| row.state == ApprovalState::Open) else {
                    return Ok(None);
                };
                let tool = ApprovalWords::of(&row).and_then(|words| tool_name(&words.tool));
                Ok(Some((PushWords { kind: "asks", tool, ..words }, left.min(NEWS_FOR))))
            }
            News::Settled { by: answerer } => {
                let answered_by = self.answerer(by, answerer).await?;
                Ok(Some((PushWords { kind: "settled", by: answered_by, ..words }, SETTLED_FOR)))
            }
            News::Ended { outcome, answered_by } => {
                let answered_by = self.answerer(by, answered_by).await?;
                let outcome = Some(record::outcome_word(outcome));
                let words = PushWords { kind: "ended", outcome, by: answered_by, ..words };
                Ok(is_theirs.then_some((words, NEWS_FOR)))
            }
        }
    }

    /// Whoever answered, as somebody is told; none if nobody did.
    async fn answerer(
        &self,
        by: &Principal,
        answerer: Option<Answerer>,
    ) -> Result<Option<String>, StoreError> {
        match answerer {
            Some(Answerer::Person(person)) if person == by.person => Ok(Some("you".to_owned())),
            Some(Answerer::Person(person)) => self.views.rights_cache.handle_of(by, person).await,
            Some(Answerer::Rule(_) | Answerer::Policy) => Ok(Some("a rule".to_owned())),
            Some(Answerer::Nobody) | None => Ok(None),
        }
    }
}

/// The name of a tool, as an agent has it: on one line, without what commands a screen or turns its lines, and short. What does not
/// look like a name may be words, and is not told.
fn tool_name(tool: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '/');
    let is_name = !tool.is_empty() && tool.len() <= TOOL_LENGTH_MAX && tool.chars().all(is_plain);
    is_name.then(|| tool.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_looks_like_a_tools_name_is_told() {
        for name in ["Bash", "mcp__files__read", "fs/write_text_file", "apply-patch"] {
            assert_eq!(tool_name(name).as_deref(), Some(name));
        }
        for not in ["", "rm -rf /home", "Bash\u{202e}", "a\nb", "x\u{1b}[2J", &"x".repeat(41)] {
            assert_eq!(tool_name(not), None, "{not:?}");
        }
    }
}
