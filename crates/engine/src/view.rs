//! Reading: every list and receipt, authorized like anything else.
//!
//! What a caller may not see does not exist: the answer is the same as for an id that was never minted.

use crate::fanout::Shared;
use crate::inbound::plain_text;
use crate::people::LOOK_EVERY;
use crate::{Engine, Lists, Refused, Trace};
use kernel::{
    Act, Address, Found, MessageId, Number, Principal, Record, Right, Role, SessionId, To, Turn,
    agent_grant_of, authorize, authorize_address, authorize_right, grant_of, meant, route,
};
use std::sync::Arc;
use std::time::Duration;
use store::{
    BindingRow, Head, NodeRow, QueuedRow, ReceiptRow, Seer, SessionRow, SessionsQuery, StoredEntry, Which,
};
use tokio::sync::watch;
use tokio::time::Instant;

/// An answer longer than this is cut in a receipt; the log has all of it.
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;
/// What of a waiting message's words a queue shows: a thousand may wait, of a mebibyte each.
const QUEUED_BYTES_MAX: usize = 4 * 1024;
/// Words that are read together with their queue. Longer ones are read one by one, so that no more than one of them is in
/// memory.
const QUEUED_READ_BYTES_MAX: usize = 2 * QUEUED_BYTES_MAX;
/// The longest that anybody may wait for a receipt in one call.
pub const WAIT_MAX: Duration = Duration::from_secs(60);

/// A receipt, and the answer once there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiptView {
    pub row: ReceiptRow,
    /// How its sender is called.
    pub sender: Option<String>,
    /// What the agent said in the message's turn, as far as it has.
    pub answer: Option<String>,
    /// Something people should read about how it went: the agent's own words for a failure.
    pub notice: Option<String>,
}

/// A waiting or running message, with the beginning of its words; `Engine::words` has all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedView {
    pub row: ReceiptRow,
    /// How its sender is called.
    pub sender: Option<String>,
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
    /// The receipt of a message.
    pub async fn receipt(&self, by: &Principal, message: MessageId) -> Result<ReceiptView, Refused> {
        let what = "message";
        may_read(by, what)?;
        let (record, row) = self.store().receipt(message).await?.ok_or(Refused::NotFound { what })?;
        readable(by, &record, what)?;
        self.with_answer(by, row).await
    }

    /// The receipt of a message, once it is final or the time is over.
    pub async fn receipt_within(
        &self,
        by: &Principal,
        message: MessageId,
        wait: Duration,
    ) -> Result<ReceiptView, Refused> {
        let until = Instant::now() + wait.min(WAIT_MAX);
        // Whoever waits may lose the right to: it is asked anew.
        let mut by = by.clone();
        loop {
            // Listen first, then look: whatever happens in between is heard.
            let (told, rights) = (self.cluster().await_final(message), self.rights_now());
            let now = self.receipt(&by, message).await?;
            let Some(told) = told else { return Ok(now) };
            if now.row.state.is_final() || Instant::now() >= until {
                return Ok(now);
            }
            self.until_final(&mut by, now.row.session, told, until, rights).await?;
        }
    }

    /// Waits until it is final, too late, or the node goes down; or until the caller may not know any more.
    async fn until_final(
        &self,
        by: &mut Principal,
        session: SessionId,
        mut told: tokio::sync::oneshot::Receiver<()>,
        until: Instant,
        mut rights: u64,
    ) -> Result<(), Refused> {
        while Instant::now() < until {
            tokio::select! {
                biased;
                _ = &mut told => return Ok(()),
                () = self.cluster().rights_after(rights) => {}
                () = tokio::time::sleep_until(until.min(Instant::now() + LOOK_EVERY)) => {}
            }
            rights = self.rights_now();
            *by = self.refreshed(by).await?;
            self.may_still_read(by, session).await?;
        }
        Ok(())
    }

    async fn with_answer(&self, by: &Principal, row: ReceiptRow) -> Result<ReceiptView, Refused> {
        let sender = self.handle_of(by, row.by).await?;
        let Some(turn) = row.turn else { return Ok(ReceiptView { row, sender, answer: None, notice: None }) };
        let answer = self.said(row.session, turn, "text").await?;
        let notice = self.said(row.session, turn, "notice").await?;
        let notice = Some(notice).filter(|words| !words.is_empty());
        Ok(ReceiptView { row, sender, answer: Some(answer), notice })
    }

    pub(crate) async fn said(&self, session: SessionId, turn: Turn, kind: &str) -> Result<String, Refused> {
        let facts = self.store().story(session, turn, kind.to_owned(), ANSWER_BYTES_MAX).await?;
        let bodies = facts.iter().filter_map(|fact| match &fact.entry {
            StoredEntry::Story { body: Some(body), .. } => crate::story::words_of(body),
            StoredEntry::Story { body: None, .. } | StoredEntry::Rule(_) => None,
        });
        Ok(bodies.collect())
    }

    /// Which session the caller means by an id: it may be a name that one of their org came here with. Whatever they may not
    /// see makes no difference.
    pub async fn meant(&self, by: &Principal, id: SessionId) -> Result<SessionId, Refused> {
        let named = self.store().named(by.org, id).await?;
        meant(by, id, &named).map_err(|_| Refused::NotFound { what: "session" })
    }

    /// A session.
    pub async fn session(&self, by: &Principal, session: SessionId) -> Result<SessionRow, Refused> {
        Ok(self.seen(by, session).await?.1)
    }

    pub(crate) async fn seen(
        &self,
        by: &Principal,
        session: SessionId,
    ) -> Result<(Record, SessionRow), Refused> {
        let what = "session";
        may_read(by, what)?;
        let (record, row) = self.store().session(session).await?.ok_or(Refused::NotFound { what })?;
        readable(by, &record, what)?;
        Ok((record, row))
    }

    /// The epoch of a session's scope, as it is stored.
    pub(crate) async fn epoch_of(&self, session: SessionId) -> Result<Option<kernel::Epoch>, Refused> {
        Ok(self.store().session(session).await?.map(|(_, row)| row.epoch))
    }

    /// A page of sessions, the ones with the newest activity first.
    pub async fn sessions(
        &self,
        by: &Principal,
        which: Which,
        after: Option<(kernel::Moment, SessionId)>,
        limit: usize,
    ) -> Result<Vec<SessionRow>, Refused> {
        may_read(by, "session")?;
        let query = SessionsQuery { by: Seer::of(by), which, after, limit };
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

    /// What a turn changed in the tree, as the log tells it; none if nobody could tell.
    pub async fn turn_changes(
        &self,
        by: &Principal,
        session: SessionId,
        turn: Turn,
    ) -> Result<Option<bytes::Bytes>, Refused> {
        let what = "session";
        may_read(by, what)?;
        let record = self.record(session).await?;
        readable(by, &record, what)?;
        self.store().turn(session, turn).await?.ok_or(Refused::NotFound { what: "turn" })?;
        let told = self.store().story(session, turn, "changes".to_owned(), ANSWER_BYTES_MAX).await?;
        Ok(told.into_iter().rev().find_map(|fact| match fact.entry {
            StoredEntry::Story { body, .. } => body,
            StoredEntry::Rule(_) => None,
        }))
    }

    /// The messages of a session that are not final, in the order in which they run, with how their words begin.
    pub async fn queue(&self, by: &Principal, session: SessionId) -> Result<Vec<QueuedView>, Refused> {
        self.seen(by, session).await?;
        let mut queue = Vec::new();
        for QueuedRow { receipt: row, sender, words } in
            self.store().queue_shown(session, QUEUED_READ_BYTES_MAX).await?
        {
            let words = match words {
                Some(words) => Some(words),
                None => self.store().words(row.message).await?,
            };
            let mut text = words.and_then(|words| plain_text(&words)).unwrap_or_default();
            text.truncate(text.floor_char_boundary(QUEUED_BYTES_MAX));
            text.shrink_to_fit();
            queue.push(QueuedView { row, sender, text });
        }
        Ok(queue)
    }

    /// What a message says, as it is now.
    pub async fn words(&self, by: &Principal, message: MessageId) -> Result<String, Refused> {
        let what = "message";
        may_read(by, what)?;
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
        may_read(by, "session")?;
        Ok(self.store().bindings(Seer::of(by), after, limit).await?)
    }

    /// Where would this go? The same lookups and the same function as for a real message, and nothing is changed.
    pub async fn explain(&self, by: &Principal, to: To, trace: &Trace) -> Result<Explained, Refused> {
        may_read(by, "session")?;
        if let To::Conversation(address) = &to {
            authorize_address(by, trace.address(address))
                .map_err(|denied| Refused::denied(denied, "session"))?;
        }
        let finding = self.store().find(by.org, to.clone()).await?;
        let seen = finding.record.as_ref().is_none_or(|record| grant_of(by, record).is_some());
        let found = if seen { finding.found } else { Found::Nothing };
        let session = match found {
            Found::Open(session) | Found::Ended(session, _) => Some(self.session(by, session).await?),
            Found::Nothing => None,
        };
        Ok(Explained { route: route(&to, found), session })
    }

    /// The newest numbers of sessions that changed after a place among all changes. Whoever asks again and again is asked
    /// each time what they may see now.
    pub async fn heads(&self, by: &Principal, after: u64, limit: usize) -> Result<Vec<Head>, Refused> {
        let by = self.refreshed(by).await?;
        may_read(&by, "session")?;
        Ok(self.store().heads(Seer::of(&by), after, limit).await?)
    }

    /// Grows whenever any session has changed: a hint to ask `heads` again.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.cluster().changes()
    }

    /// Every agent that there is for the caller, and whether it is here, as of a while ago.
    pub async fn agents(&self, by: &Principal) -> Result<Vec<AgentView>, Refused> {
        may_read(by, "agent")?;
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
        let seen = self.agents_by_name().values();
        Ok(seen.filter(|agent| agent_grant_of(by, agent.name()).is_some()).map(view).collect())
    }

    /// Whether they may see figures of everything that goes on here, whoever's it is: for the machine's person.
    pub fn may_see_figures(&self, by: &Principal) -> Result<(), Refused> {
        may_read(by, "figures")?;
        match by {
            Principal { bound: Some(_), .. } => Err(Refused::BoundElsewhere),
            Principal { is_host: false, .. } => Err(Refused::NeedsRole(Role::Owner)),
            Principal { .. } => Ok(()),
        }
    }

    /// Every node.
    pub async fn nodes(&self, by: &Principal) -> Result<Vec<NodeRow>, Refused> {
        may_read(by, "node")?;
        Ok(self.store().nodes().await?)
    }
}

/// Whoever was allowed to change something is shown how it is now, also by a credential that is not good for reading.
pub fn who_changed(by: &Principal) -> Principal {
    Principal { rights: by.rights.with(Right::Read), ..by.clone() }
}

pub(crate) fn readable(by: &Principal, record: &Record, what: &'static str) -> Result<(), Refused> {
    authorize(by, Act::Read, record, ()).map(|_| ()).map_err(|denied| Refused::denied(denied, what))
}

/// Whether the credential is good for reading at all. Asked before anything is looked up.
pub(crate) fn may_read(by: &Principal, what: &'static str) -> Result<(), Refused> {
    authorize_right(by, Act::Read).map_err(|denied| Refused::denied(denied, what))
}
