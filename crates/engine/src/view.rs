//! Reading: every list, receipt and stream, authorized like anything else.
//!
//! What a caller may not see does not exist: the answer is the same as for an id that was never minted.

use crate::fanout::{Shared, Told, newer_than};
use crate::inbound::plain_text;
use crate::{Engine, Lists, Refused};
use kernel::{
    Act, Address, ApprovalId, Found, MessageId, Number, Principal, Record, SessionId, To, Turn, authorize,
    authorize_address, route,
};
use std::sync::Arc;
use std::time::Duration;
use store::{
    ApprovalRow, BindingRow, Head, NodeRow, ReceiptRow, SessionRow, SessionsQuery, StoredEntry, Which,
};
use tokio::sync::{broadcast, watch};

/// An answer longer than this is cut in a receipt; the log has all of it.
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;
/// What of a waiting message's words a queue shows: a thousand may wait, of a mebibyte each.
const QUEUED_BYTES_MAX: usize = 4 * 1024;
/// Facts read at once while a watcher catches up, so that many slow watchers cost little memory.
const CATCH_UP_FACTS: usize = 64;
/// And how many bytes of them.
const CATCH_UP_BYTES: usize = 8 * 1024;
/// The longest that anybody may wait for a receipt in one call.
pub const WAIT_MAX: Duration = Duration::from_secs(60);

/// A receipt, and the answer once there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiptView {
    pub row: ReceiptRow,
    /// What the agent said in the message's turn, as far as it has.
    pub answer: Option<String>,
    /// Something people should read about how it went: the agent's own words for a failure.
    pub notice: Option<String>,
}

/// A waiting or running message, with the beginning of its words; `Engine::words` has all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedView {
    pub row: ReceiptRow,
    pub text: String,
}

/// Where a message would go, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// What `route` says, or why it refuses.
    pub route: Result<kernel::Route, kernel::NoRoute>,
    /// The session that was found, as far as the caller may see it.
    pub session: Option<SessionRow>,
}

/// An agent that is configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentView {
    pub name: String,
    pub is_default: bool,
    /// None while the first look at it takes its time.
    pub found: Option<agent::Found>,
    pub sign_in: agent::SignIn,
    pub setup: agent::Setup,
    pub abilities: agent::Abilities,
    /// What it last listed in any session; empty until it has.
    pub lists: Lists,
}

impl Engine {
    /// Whose credential is this? `hash` is the SHA-256 of the secret.
    pub async fn principal(&self, hash: [u8; 32]) -> Result<Option<Principal>, Refused> {
        Ok(self.store().token(hash, self.now()).await?)
    }

    /// The receipt of a message.
    pub async fn receipt(&self, by: &Principal, message: MessageId) -> Result<ReceiptView, Refused> {
        let what = "message";
        let (record, row) = self.store().receipt(message).await?.ok_or(Refused::NotFound { what })?;
        readable(by, &record, what)?;
        self.with_answer(row).await
    }

    /// The receipt of a message, once it is final or the time is over.
    pub async fn receipt_within(
        &self,
        by: &Principal,
        message: MessageId,
        wait: Duration,
    ) -> Result<ReceiptView, Refused> {
        let now = self.receipt(by, message).await?;
        if now.row.state.is_final() || wait.is_zero() {
            return Ok(now);
        }
        // Listen first, then look again: whatever happens in between is heard.
        let told = self.fanout().await_final(message);
        let now = self.receipt(by, message).await?;
        if now.row.state.is_final() {
            return Ok(now);
        }
        // Final, too late, or the node goes down: in each case the store says how it stands.
        let _ = tokio::time::timeout(wait.min(WAIT_MAX), told).await;
        self.fanout().sweep();
        self.receipt(by, message).await
    }

    async fn with_answer(&self, row: ReceiptRow) -> Result<ReceiptView, Refused> {
        let Some(turn) = row.turn else { return Ok(ReceiptView { row, answer: None, notice: None }) };
        let answer = self.said(row.session, turn, "text").await?;
        let notice = self.said(row.session, turn, "notice").await?;
        Ok(ReceiptView { row, answer: Some(answer), notice: Some(notice).filter(|words| !words.is_empty()) })
    }

    async fn said(&self, session: SessionId, turn: Turn, kind: &str) -> Result<String, Refused> {
        let facts = self.store().story(session, turn, kind.to_owned(), ANSWER_BYTES_MAX).await?;
        let bodies = facts.iter().filter_map(|fact| match &fact.entry {
            StoredEntry::Story { body: Some(body), .. } => crate::story::words_of(body),
            StoredEntry::Story { body: None, .. } | StoredEntry::Rule(_) => None,
        });
        Ok(bodies.collect())
    }

    /// A session.
    pub async fn session(&self, by: &Principal, session: SessionId) -> Result<SessionRow, Refused> {
        Ok(self.seen(by, session).await?.1)
    }

    async fn seen(&self, by: &Principal, session: SessionId) -> Result<(Record, SessionRow), Refused> {
        let what = "session";
        let (record, row) = self.store().session(session).await?.ok_or(Refused::NotFound { what })?;
        readable(by, &record, what)?;
        Ok((record, row))
    }

    /// A page of sessions, the ones with the newest activity first.
    pub async fn sessions(
        &self,
        by: &Principal,
        which: Which,
        after: Option<(kernel::Moment, SessionId)>,
        limit: usize,
    ) -> Result<Vec<SessionRow>, Refused> {
        let query = SessionsQuery { org: by.org, person: by.person, which, after, limit };
        Ok(self.store().sessions(query).await?)
    }

    /// A page of facts after a number.
    pub async fn facts(
        &self,
        by: &Principal,
        session: SessionId,
        after: Number,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<Arc<Shared>>, Refused> {
        self.seen(by, session).await?;
        let facts = self.store().facts(session, after, limit, bytes).await?;
        Ok(facts.into_iter().map(Shared::new).collect())
    }

    /// Every fact after a number, those to come included, and live words.
    pub async fn follow(&self, by: &Principal, session: SessionId, after: Number) -> Result<Follow, Refused> {
        let (_, row) = self.seen(by, session).await?;
        if after > row.at {
            // A number of another log, or of one that was given up by a restore: silence would look like an answer.
            let reason = format!("the log ends at {}: begin again from there, or from 0", row.at);
            return Err(Refused::Invalid { field: "after", reason });
        }
        // Watch first, then read: what happens in between is heard twice, and told once.
        let ring = self.fanout().watch(session).ok_or(Refused::Unavailable("shutting down".into()))?;
        Ok(Follow {
            engine: self.clone(),
            by: by.clone(),
            session,
            at: after,
            ring,
            page: Vec::new().into_iter(),
            reading: Reading::Log,
        })
    }

    /// The messages of a session that are not final, in the order in which they run, with how their words begin.
    pub async fn queue(&self, by: &Principal, session: SessionId) -> Result<Vec<QueuedView>, Refused> {
        self.seen(by, session).await?;
        let mut queue = Vec::new();
        for row in self.store().queue(session).await? {
            let words = self.store().words(row.message).await?;
            let mut text = words.and_then(|words| plain_text(&words)).unwrap_or_default();
            text.truncate(text.floor_char_boundary(QUEUED_BYTES_MAX));
            text.shrink_to_fit();
            queue.push(QueuedView { row, text });
        }
        Ok(queue)
    }

    /// What a message says, as it is now.
    pub async fn words(&self, by: &Principal, message: MessageId) -> Result<String, Refused> {
        let what = "message";
        let (record, _) = self.store().receipt(message).await?.ok_or(Refused::NotFound { what })?;
        readable(by, &record, what)?;
        let words = self.store().words(message).await?;
        Ok(words.and_then(|words| plain_text(&words)).unwrap_or_default())
    }

    /// A page of bindings.
    pub async fn bindings(
        &self,
        by: &Principal,
        after: Option<Address>,
        limit: usize,
    ) -> Result<Vec<BindingRow>, Refused> {
        Ok(self.store().bindings(by.org, by.person, after, limit).await?)
    }

    /// Where would this go? The same lookups and the same function as for a real message, and nothing is changed.
    pub async fn explain(&self, by: &Principal, to: To) -> Result<Explained, Refused> {
        if let To::Conversation(address) = &to {
            authorize_address(by, address).map_err(|denied| Refused::denied(denied, "session"))?;
        }
        let finding = self.store().find(by.org, to.clone()).await?;
        let seen = finding.record.as_ref().is_none_or(|record| readable(by, record, "session").is_ok());
        let found = if seen { finding.found } else { Found::Nothing };
        let session = match found {
            Found::Open(session) | Found::Ended(session, _) => Some(self.session(by, session).await?),
            Found::Nothing => None,
        };
        Ok(Explained { route: route(&to, found), session })
    }

    /// Open questions, oldest first.
    pub async fn approvals(&self, by: &Principal, limit: usize) -> Result<Vec<ApprovalRow>, Refused> {
        Ok(self.store().approvals(by.org, by.person, limit).await?)
    }

    /// One question.
    pub async fn approval(&self, by: &Principal, approval: ApprovalId) -> Result<ApprovalRow, Refused> {
        let what = "approval";
        let (record, row) = self.store().approval(approval).await?.ok_or(Refused::NotFound { what })?;
        readable(by, &record, what)?;
        Ok(row)
    }

    /// The newest numbers of sessions that changed after a place among all changes.
    pub async fn heads(&self, by: &Principal, after: u64, limit: usize) -> Result<Vec<Head>, Refused> {
        Ok(self.store().heads(by.org, by.person, after, limit).await?)
    }

    /// Grows whenever any session has changed: a hint to ask `heads` again.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.fanout().changes()
    }

    /// Every agent that is configured, and whether it is here, as of a while ago.
    pub async fn agents(&self) -> Vec<AgentView> {
        let mut looks = self.looks().await;
        let view = |agent: &Arc<dyn agent::Agent>| {
            let looked = looks.remove(agent.name()).flatten();
            let (found, sign_in) = looked.map(|looked| (looked.found, looked.sign_in)).unzip();
            AgentView {
                name: agent.name().to_owned(),
                is_default: agent.name() == self.default_agent(),
                found,
                sign_in: sign_in.unwrap_or_default(),
                setup: agent.setup(),
                abilities: agent.abilities(),
                lists: self.roster().lists(agent.name()),
            }
        };
        self.agents_by_name().values().map(view).collect()
    }

    /// Every node.
    pub async fn nodes(&self) -> Result<Vec<NodeRow>, Refused> {
        Ok(self.store().nodes().await?)
    }
}

fn readable(by: &Principal, record: &Record, what: &'static str) -> Result<(), Refused> {
    authorize(by, Act::Read, record, ()).map(|_| ()).map_err(|denied| Refused::denied(denied, what))
}

/// A session's facts, one after the other, without end.
#[derive(Debug)]
pub struct Follow {
    engine: Engine,
    by: Principal,
    session: SessionId,
    at: Number,
    ring: broadcast::Receiver<Told>,
    page: std::vec::IntoIter<Arc<Shared>>,
    reading: Reading,
}

/// Where a watcher reads from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// From the log; the ring runs on meanwhile.
    Log,
    /// From the ring, of which nothing has been heard yet: it may have run away while we read the log.
    RingFirst,
    /// From the ring.
    Ring,
}

impl Follow {
    /// The next thing to tell. `None` is the end: the reader lagged behind, lost its right, or the node goes down; it
    /// may come back with the last number it has.
    pub async fn next(&mut self) -> Option<Told> {
        loop {
            if let Some(shared) = self.page.next() {
                self.at = shared.fact.number;
                return Some(Told::Fact(shared));
            }
            if self.reading == Reading::Log {
                self.read_log().await?;
                continue;
            }
            let told = match self.ring.recv().await {
                Ok(told) => told,
                Err(broadcast::error::RecvError::Lagged(_)) if self.reading == Reading::RingFirst => {
                    self.reading = Reading::Log;
                    continue;
                }
                Err(_) => return None,
            };
            self.reading = Reading::Ring;
            if !newer_than(&told, self.at) {
                continue;
            }
            if let Told::Fact(shared) = &told {
                if shared.fact.number != self.at.next() {
                    // Something between was told before we watched.
                    self.reading = Reading::Log;
                    continue;
                }
                self.at = shared.fact.number;
            }
            return Some(told);
        }
    }

    async fn read_log(&mut self) -> Option<()> {
        let page =
            self.engine.facts(&self.by, self.session, self.at, CATCH_UP_FACTS, CATCH_UP_BYTES).await.ok()?;
        if page.is_empty() {
            self.reading = Reading::RingFirst;
        }
        self.page = page.into_iter();
        Some(())
    }

    /// The number up to which everything was told.
    pub fn at(&self) -> Number {
        self.at
    }

    /// Whether everything that was there has been told, so that the next fact is a new one.
    pub fn is_caught_up(&self) -> bool {
        self.reading != Reading::Log && self.page.len() == 0
    }
}
