//! Reading: every list and receipt, authorized like anything else.
//!
//! What a caller may not see does not exist: the answer is the same as for an id that was never minted.

mod search;
mod usage;

pub use search::FoundWords;

use crate::attached::AttachmentView;
use crate::engine_ports::EnginePorts;
use crate::fanout::SharedFact;
use crate::follow::{SharedReadiness, WatchedRights};
use crate::follow_rows::WatchedRows;
use crate::inbound::plain_text;
use crate::intake::directory_for;
use crate::people::{LOOK_EVERY, RightsCache};
use crate::refused_reads::RefusedReads;
use crate::roster::Roster;
use crate::wait::KnownWaits;
use crate::{AccessError, Ground, Lists, SessionProgress, Trace, ViewError, Wait};
use kernel::{
    Act, Address, Found, GroundPath, MessageId, Number, Previous, Principal, Record, Right, Role, Route,
    SessionId, To, Turn, address_space, agent_grant_of, authorize, authorize_address, authorize_right, meant,
    route,
};
use std::sync::Arc;
use std::time::Duration;
use store::{
    BindingRow, DiskTotals, Expected, Finding, Head, NodeRow, QueuedRow, ReceiptRow, Seer, SessionCounts,
    SessionFilter, SessionRow, SessionsQuery, StoreError, StoredEntry, StoredFact, TypedName, Which,
};
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// An answer longer than this is cut in a receipt; the log has all of it.
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The part of a waiting message's words that a queue shows: a thousand may wait, of a mebibyte each.
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
    /// The handle of its sender.
    pub sender: Option<String>,
    /// The agent's answer in the message's turn, as far as there is one.
    pub answer: Option<String>,
    /// Something people should read about how it went: the agent's own words for a failure.
    pub notice: Option<String>,
    /// Why it is not being worked on, if it will be.
    pub wait: Option<Wait>,
}

/// The row of a receipt, as far as whoever asks may see it.
enum SeenReceipt {
    Whole(ReceiptRow),
    /// The message ended because the session is somebody else's: its sender is told so, although they see nothing else of it.
    Lost(ReceiptRow),
}

impl SeenReceipt {
    fn row(&self) -> &ReceiptRow {
        match self {
            Self::Whole(row) | Self::Lost(row) => row,
        }
    }
}

/// A waiting or running message, with the beginning of its words; `Views::words` has all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedView {
    pub row: ReceiptRow,
    /// The handle of its sender.
    pub sender: Option<String>,
    pub text: String,
    /// The images and files that go along.
    pub attachments: Vec<AttachmentView>,
    /// Why it is not being worked on, if it will be.
    pub wait: Option<Wait>,
}

/// Where a message would go, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// The result of `route`, or the reason of its refusal.
    pub route: Result<kernel::Route, kernel::NoRoute>,
    /// The session that was found, as far as the caller may see it.
    pub session: Option<SessionRow>,
    /// The session that the conversation had before, as far as the caller may see it.
    pub before: Option<Previous>,
    /// Why a session could not be made in the directory that was named for it, if there would be a new one.
    pub unfit: Option<ViewError>,
    /// True if the session that was found has another agent or model than is expected.
    pub is_another: bool,
}

/// The choices that come along with the question where something would go.
#[derive(Debug, Clone, Default)]
pub struct RouteChoice<'a> {
    /// The directory of the session, if one would be made.
    pub directory: Option<&'a str>,
    /// The agent and model that a session that is there has to have.
    pub expected: Option<Expected>,
}

/// An agent that is configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentView {
    pub name: String,
    pub is_default: bool,
    /// None while the first look at it takes its time.
    pub found: Option<agent::Presence>,
    pub sign_in: agent::SignIn,
    pub setup: agent::Setup,
    pub abilities: agent::Abilities,
    /// Its last lists in any session; empty until it has.
    pub lists: Lists,
}

/// Whatever can be read of sessions, messages, approvals and agents. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Views {
    pub(crate) ports: Arc<EnginePorts>,
    pub(crate) roster: Arc<Roster>,
    pub(crate) rights_cache: Arc<RightsCache>,
    pub(crate) ground: Arc<dyn Ground>,
    /// Places for conversations that are being taken in or out.
    pub(crate) exchange: Arc<Semaphore>,
    pub(crate) refused_reads: Arc<RefusedReads>,
    pub(crate) watched_rights: WatchedRights,
    pub(crate) watched_rows: WatchedRows,
    pub(crate) shared_readiness: SharedReadiness,
    pub(crate) known_waits: Arc<KnownWaits>,
}

impl Views {
    /// The receipt of a message.
    pub async fn receipt(&self, by: &Principal, message: MessageId) -> Result<ReceiptView, ViewError> {
        let seen = self.receipt_seen(by, message).await?;
        Ok(self.shown(by, seen).await?)
    }

    /// The receipt of a message, once it is final or the time is over.
    pub async fn receipt_within(
        &self,
        by: &Principal,
        message: MessageId,
        wait: Duration,
    ) -> Result<ReceiptView, ViewError> {
        let until = Instant::now() + wait.min(WAIT_MAX);
        // Whoever waits may lose the right to: it is asked anew.
        let mut by = by.clone();
        loop {
            // Listen first, then look: whatever happens in between is heard.
            let (told, rights) = (self.ports.cluster.await_final(message), self.ports.rights_now());
            let now = self.receipt_seen(&by, message).await?;
            let row = now.row();
            // Why it waits is worked out for whoever is told, not for whoever goes on waiting.
            match told.filter(|_| !row.state.is_final() && Instant::now() < until) {
                Some(told) => self.until_final(&mut by, row.session, told, until, rights).await?,
                None => return Ok(self.shown(&by, now).await?),
            }
        }
    }

    async fn receipt_seen(&self, by: &Principal, message: MessageId) -> Result<SeenReceipt, ViewError> {
        let what = "message";
        may_read(by, what)?;
        let found = self.ports.store.receipt_seen(Seer::of(by), message).await?;
        let (record, row) = found.ok_or(AccessError::NotFound { what })?;
        match readable(by, &record, what) {
            Ok(()) => Ok(SeenReceipt::Whole(row)),
            Err(_) if Seer::of(by).lost(&record, row.by, row.why) => Ok(SeenReceipt::Lost(row)),
            Err(refused) => Err(refused.into()),
        }
    }

    async fn shown(&self, by: &Principal, seen: SeenReceipt) -> Result<ReceiptView, StoreError> {
        match seen {
            SeenReceipt::Whole(row) => self.with_answer(by, row).await,
            SeenReceipt::Lost(row) => {
                let sender = self.rights_cache.handle_of(by, row.by).await?;
                Ok(ReceiptView { row, sender, answer: None, notice: None, wait: None })
            }
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
    ) -> Result<(), ViewError> {
        while Instant::now() < until {
            tokio::select! {
                biased;
                _ = &mut told => return Ok(()),
                () = self.ports.cluster.rights_after(rights) => {}
                () = tokio::time::sleep_until(until.min(Instant::now() + LOOK_EVERY)) => {}
            }
            rights = self.ports.rights_now();
            *by = self.refreshed(by).await?;
            // What they may still know of it, if anything, the next look says.
            if self.rights_cache.may_still_read(by, session).await.is_err() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The same principal with what they may do now.
    pub(crate) async fn refreshed(&self, by: &Principal) -> Result<Principal, ViewError> {
        let now = self.rights_cache.refreshed(by).await?;
        Ok(now.ok_or(AccessError::Unauthenticated)?)
    }

    async fn with_answer(&self, by: &Principal, row: ReceiptRow) -> Result<ReceiptView, StoreError> {
        let sender = self.rights_cache.handle_of(by, row.by).await?;
        let wait = match row.state.is_final() {
            true => None,
            false => self.waits(by, row.session).await?.of(row.message),
        };
        let Some(turn) = row.turn else {
            return Ok(ReceiptView { row, sender, answer: None, notice: None, wait });
        };
        let [answer, notice] = self.said(row.session, turn, ["text", "notice"]).await?;
        let notice = Some(notice).filter(|words| !words.is_empty());
        Ok(ReceiptView { row, sender, answer: Some(answer), notice, wait })
    }

    /// The words of a turn, of each of these kinds.
    pub(crate) async fn said<const KINDS: usize>(
        &self,
        session: SessionId,
        turn: Turn,
        kinds: [&'static str; KINDS],
    ) -> Result<[String; KINDS], StoreError> {
        let told = self.ports.store.story(session, turn, kinds.to_vec(), ANSWER_BYTES_MAX).await?;
        let word = |fact: &StoredFact| match &fact.entry {
            StoredEntry::Story { body: Some(body), .. } => crate::story::words_of(body),
            StoredEntry::Story { body: None, .. } | StoredEntry::Rule(_) => None,
        };
        let mut said = told.iter().map(|facts| facts.iter().filter_map(word).collect());
        Ok(kinds.map(|_| said.next().unwrap_or_default()))
    }

    /// The session that the caller means by an id: it may be a name that one of their org came here with. Whatever they
    /// may not see makes no difference.
    pub async fn meant(&self, by: &Principal, id: SessionId) -> Result<SessionId, ViewError> {
        let named = self.ports.store.named(Seer::of(by), id).await?;
        meant(by, id, &named).map_err(|_| AccessError::NotFound { what: "session" }.into())
    }

    /// A session.
    pub async fn session(&self, by: &Principal, session: SessionId) -> Result<SessionRow, ViewError> {
        Ok(self.seen(by, session).await?.1)
    }

    /// The work that goes on outside for a session that the caller was shown.
    pub fn progress_of(&self, seen: &SessionRow) -> Option<SessionProgress> {
        self.ports.cluster.progress(seen.session)
    }

    pub(crate) async fn seen(
        &self,
        by: &Principal,
        session: SessionId,
    ) -> Result<(Record, SessionRow), ViewError> {
        let what = "session";
        may_read(by, what)?;
        let found = self.ports.store.session_seen(Seer::of(by), session).await?;
        let (record, row) = found.ok_or(AccessError::NotFound { what })?;
        readable(by, &record, what)?;
        Ok((record, row))
    }

    /// A page of sessions, the ones with the newest activity first.
    pub async fn sessions(
        &self,
        by: &Principal,
        which: Which,
        filter: SessionFilter,
        after: Option<(kernel::Moment, SessionId)>,
        limit: usize,
    ) -> Result<Vec<SessionRow>, ViewError> {
        may_read(by, "session")?;
        let query = SessionsQuery { by: Seer::of(by), which, filter, after, limit };
        Ok(self.ports.store.sessions(query).await?)
    }

    /// The number of open sessions, and of those that need the caller.
    pub async fn session_counts(&self, by: &Principal) -> Result<SessionCounts, ViewError> {
        may_read(by, "session")?;
        Ok(self.ports.store.session_counts(Seer::of(by)).await?)
    }

    /// The sessions that somebody may mean by this name, also ended ones.
    pub async fn sessions_named(
        &self,
        by: &Principal,
        name: &str,
        limit: usize,
    ) -> Result<Vec<SessionRow>, ViewError> {
        may_read(by, "session")?;
        let name = TypedName::new(SessionId::PREFIX, name);
        Ok(self.ports.store.sessions_named(Seer::of(by), name, limit).await?)
    }

    /// A page of facts after a number.
    pub async fn facts(
        &self,
        by: &Principal,
        session: SessionId,
        after: Number,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<Arc<SharedFact>>, ViewError> {
        self.seen(by, session).await?;
        let facts = self.ports.store.facts(session, after, limit, bytes).await?;
        Ok(facts.into_iter().map(SharedFact::new).collect())
    }

    /// The changes of a turn in the tree, as the log tells it; none if nobody could tell.
    pub async fn turn_changes(
        &self,
        by: &Principal,
        session: SessionId,
        turn: Turn,
    ) -> Result<Option<bytes::Bytes>, ViewError> {
        self.seen(by, session).await?;
        self.ports.store.turn(session, turn).await?.ok_or(AccessError::NotFound { what: "turn" })?;
        let told = self.ports.store.story(session, turn, vec!["changes"], ANSWER_BYTES_MAX).await?;
        Ok(told.into_iter().flatten().rev().find_map(|fact| match fact.entry {
            StoredEntry::Story { body, .. } => body,
            StoredEntry::Rule(_) => None,
        }))
    }

    /// The messages of a session that are not final, in the order in which they run, with how their words begin.
    pub async fn queue(&self, by: &Principal, session: SessionId) -> Result<Vec<QueuedView>, ViewError> {
        self.seen(by, session).await?;
        let (mut queue, waits) = (Vec::new(), self.waits(by, session).await?);
        for QueuedRow { receipt: row, sender, words, attachments } in
            self.ports.store.queue_shown(session, QUEUED_READ_BYTES_MAX).await?
        {
            let words = match words {
                Some(words) => Some(words),
                None => self.ports.store.words(row.message).await?,
            };
            let mut text = words.and_then(|words| plain_text(&words)).unwrap_or_default();
            text.truncate(text.floor_char_boundary(QUEUED_BYTES_MAX));
            text.shrink_to_fit();
            let wait = waits.of(row.message);
            let attachments = AttachmentView::read_all(&attachments);
            queue.push(QueuedView { row, sender, text, attachments, wait });
        }
        Ok(queue)
    }

    /// The words of a message, as they are now.
    pub async fn words(&self, by: &Principal, message: MessageId) -> Result<String, ViewError> {
        self.may_read_words(by, message).await?;
        let words = self.ports.store.words(message).await?;
        Ok(words.and_then(|words| plain_text(&words)).unwrap_or_default())
    }

    /// The images and files that go along with a message, as they are now, without their bytes.
    pub async fn attachments(
        &self,
        by: &Principal,
        message: MessageId,
    ) -> Result<Vec<AttachmentView>, ViewError> {
        self.may_read_words(by, message).await?;
        Ok(AttachmentView::read_all(&self.ports.store.attachments(message).await?))
    }

    /// One of them with its bytes, by its number from 1 on.
    pub async fn attachment(
        &self,
        by: &Principal,
        message: MessageId,
        number: u32,
    ) -> Result<(AttachmentView, bytes::Bytes), ViewError> {
        let views = self.attachments(by, message).await?;
        let view = (number as usize).checked_sub(1).and_then(|at| views.into_iter().nth(at));
        let content = match view {
            Some(_) => self.ports.store.attachment(message, number).await?,
            None => None,
        };
        Ok(view.zip(content).ok_or(AccessError::NotFound { what: "attachment" })?)
    }

    /// Judges if they may read what a message says, and whatever goes along with it.
    async fn may_read_words(&self, by: &Principal, message: MessageId) -> Result<(), ViewError> {
        let what = "message";
        may_read(by, what)?;
        let found = self.ports.store.receipt_seen(Seer::of(by), message).await?;
        let (record, row) = found.ok_or(AccessError::NotFound { what })?;
        // Nobody but its sender can have put words in it.
        if !Seer::of(by).lost(&record, row.by, row.why) {
            readable(by, &record, what)?;
        }
        Ok(())
    }

    /// A page of bindings.
    pub async fn bindings(
        &self,
        by: &Principal,
        after: Option<Address>,
        limit: usize,
    ) -> Result<Vec<BindingRow>, ViewError> {
        may_read(by, "session")?;
        Ok(self.ports.store.bindings(Seer::of(by), after, limit).await?)
    }

    /// Where would this go? The same lookups and the same function as for a real message, and nothing is changed.
    /// `directory` is where a session would work that is made for it.
    pub async fn explain(
        &self,
        by: &Principal,
        to: To,
        RouteChoice { directory, expected }: RouteChoice<'_>,
        trace: &Trace,
    ) -> Result<Explained, ViewError> {
        may_read(by, "session")?;
        let mut whose = None;
        if let To::Conversation(address) | To::NewIn(address) = &to {
            let brought = trace.address(address);
            authorize_address(by, brought).map_err(|denied| AccessError::denied(denied, "session"))?;
            whose = address_space(by, brought);
        }
        let Finding { found, before, .. } = self.ports.store.find(Seer::of(by), whose, to.clone()).await?;
        let session = match found {
            Found::Open(session) | Found::Ended(session, _) => Some(self.session(by, session).await?),
            Found::Nothing => None,
        };
        let route = route(&to, found);
        let unfit = match (&route, directory) {
            (Ok(Route::Create { .. }), Some(directory)) => self.choose(by, directory).err(),
            _ => None,
        };
        let is_another = match (&session, &expected) {
            (Some(session), Some(expected)) => !expected.fits(&session.scope),
            _ => false,
        };
        Ok(Explained { route, session, before, unfit, is_another })
    }

    /// Judges if a directory could be chosen for a session, as for a real one.
    fn choose(&self, by: &Principal, directory: &str) -> Result<(), ViewError> {
        let directory: GroundPath = directory_for::<ViewError>(self.ground.as_ref(), by, directory)?;
        match by.roots.iter().any(|root| directory.is_under(root)) {
            true => Ok(()),
            false => Err(AccessError::DirectoryNotYours.into()),
        }
    }

    /// The newest numbers of sessions that changed after a place among all changes. Whoever asks again and again is asked
    /// each time what they may see now.
    pub async fn heads(&self, by: &Principal, after: u64, limit: usize) -> Result<Vec<Head>, ViewError> {
        let by = self.refreshed(by).await?;
        may_read(&by, "session")?;
        Ok(self.ports.store.heads(Seer::of(&by), after, limit).await?)
    }

    /// Every agent that there is for the caller, and whether it is here, as of a while ago.
    pub async fn agents(&self, by: &Principal) -> Result<Vec<AgentView>, ViewError> {
        may_read(by, "agent")?;
        let mut looks = self.roster.looks().await;
        let view = |agent: &Arc<dyn agent::Agent>| {
            let looked = looks.remove(agent.name()).flatten();
            let (found, sign_in) = looked.map(|looked| (looked.found, looked.sign_in)).unzip();
            AgentView {
                name: agent.name().to_owned(),
                is_default: agent.name() == self.roster.default_agent(),
                found,
                sign_in: sign_in.unwrap_or_default(),
                setup: agent.setup(),
                abilities: agent.abilities(),
                lists: self.roster.lists(agent.name()),
            }
        };
        let seen = self.roster.agents().values();
        Ok(seen.filter(|agent| agent_grant_of(by, agent.name()).is_some()).map(view).collect())
    }

    /// The number of those who wait for a list of an agent right now.
    pub fn lists_awaited(&self) -> usize {
        self.roster.lists_awaited()
    }

    /// Checks that they may see figures of everything that goes on here, whoever's it is: for the machine's person.
    pub fn may_see_figures(&self, by: &Principal) -> Result<(), AccessError> {
        may_read(by, "figures")?;
        match by {
            Principal { bound: Some(_), .. } => Err(AccessError::BoundElsewhere),
            Principal { is_host: false, .. } => Err(AccessError::NeedsRole(Role::Owner)),
            Principal { .. } => Ok(()),
        }
    }

    /// The room that everybody's words take, for the figures.
    pub async fn disk_totals(&self, by: &Principal) -> Result<DiskTotals, ViewError> {
        self.may_see_figures(by)?;
        Ok(self.ports.store.disk_totals().await?)
    }

    /// Every node.
    pub async fn nodes(&self, by: &Principal) -> Result<Vec<NodeRow>, ViewError> {
        may_read(by, "node")?;
        Ok(self.ports.store.nodes().await?)
    }
}

impl EnginePorts {
    /// The epoch of a session's scope, as it is stored.
    pub(crate) async fn epoch_of(&self, session: SessionId) -> Result<Option<kernel::Epoch>, StoreError> {
        Ok(self.store.session(session).await?.map(|(_, row)| row.epoch))
    }
}

/// Whoever was allowed to change something is shown how it is now, also by a credential that is not good for reading.
pub fn who_changed(by: &Principal) -> Principal {
    Principal { rights: by.rights.with(Right::Read), ..by.clone() }
}

pub(crate) fn readable(by: &Principal, record: &Record, what: &'static str) -> Result<(), AccessError> {
    authorize(by, Act::Read, record, ()).map(|_| ()).map_err(|denied| AccessError::denied(denied, what))
}

/// Checks that the credential is good for reading at all. Asked before anything is looked up.
pub(crate) fn may_read(by: &Principal, what: &'static str) -> Result<(), AccessError> {
    authorize_right(by, Act::Read).map_err(|denied| AccessError::denied(denied, what))
}
