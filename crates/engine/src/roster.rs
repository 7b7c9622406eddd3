//! The agents, and what the engine remembers of them: what `look` saw a while ago, and what they last said about themselves.
//!
//! What is remembered is in memory and none of it is needed: after a restart it is empty, and grows again. Asking a program for
//! its version may take seconds, so nobody waits for it longer than `LOOK_WAIT`; what is old is told while it is looked
//! at again.

use crate::engine_ports::EnginePorts;
use crate::story::choices_of;
use crate::view::WAIT_MAX;
use agent::{About, Agent, Choice, Presence, SignIn};
use kernel::{Epoch, Principal, SessionId, agent_grant_of};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The time for which a look is believed.
const LOOK_FRESH: Duration = Duration::from_secs(60);
/// The time for which somebody who asks waits for the first look.
pub(crate) const LOOK_WAIT: Duration = Duration::from_secs(2);
/// The longest that a look may take.
pub(crate) const LOOK_MAX: Duration = Duration::from_secs(30);
/// Sessions of which we remember what was told last, and of which we remember what was listed.
const TOLD_MAX: usize = 4_096;
/// Different warnings of the agent of one session that are remembered.
const WARNINGS_MAX: usize = 32;
const LISTED_MAX: usize = 1_024;
/// Sessions of which we remember how their last attempts failed.
const FAILING_MAX: usize = 1_024;
/// Failures in a row with the same words, after which nobody is told any more that the next one may do.
const SAME_FAILURES_MAX: u32 = 3;

/// The agents, and what is remembered of them.
pub(crate) struct Roster {
    ports: Arc<EnginePorts>,
    agents: BTreeMap<String, Arc<dyn Agent>>,
    default_agent: String,
    rows: Mutex<Rows>,
    looked: Notify,
    heard: Notify,
    waiting: AtomicUsize,
}

impl fmt::Debug for Roster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Roster").field("default_agent", &self.default_agent).finish_non_exhaustive()
    }
}

/// Somebody who waits for a list, as long as they do.
struct WaitingCount<'a>(&'a AtomicUsize);

impl<'a> WaitingCount<'a> {
    fn new(waiting: &'a AtomicUsize) -> Self {
        waiting.fetch_add(1, Ordering::Relaxed);
        Self(waiting)
    }
}

impl Drop for WaitingCount<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Debug, Default)]
struct Rows {
    looks: BTreeMap<String, (Instant, Looked)>,
    looking: BTreeSet<String>,
    lists: BTreeMap<String, Lists>,
    told: BTreeMap<SessionId, ToldHashes>,
    /// The lists of a session, and their epoch.
    listed: BTreeMap<SessionId, (Epoch, Lists)>,
    /// The failures of a session in a row: the hash of their words, and how many there were.
    failing: BTreeMap<SessionId, (u64, u32)>,
}

/// The look at an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Looked {
    pub(crate) found: Presence,
    pub(crate) sign_in: SignIn,
}

/// The lists of an agent, as it last did so in any session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lists {
    /// The version it says it has; may be empty.
    pub version: String,
    /// Its models.
    pub models: Vec<Choice>,
    /// Its modes.
    pub modes: Vec<Choice>,
    /// Its slash commands, without the slash.
    pub commands: Vec<Choice>,
}

impl Lists {
    fn hear(&mut self, about: &About) {
        if !about.version.is_empty() {
            self.version.clone_from(&about.version);
        }
        let kept = [
            (&mut self.models, &about.models),
            (&mut self.modes, &about.modes),
            (&mut self.commands, &about.commands),
        ];
        for (known, said) in kept.into_iter().filter(|(_, said)| !said.is_empty()) {
            *known = choices_of(said).cloned().collect();
        }
    }
}

/// The stories that were told last in a session, so that it is not told again each turn. Lost with the process; then it
/// is told once more.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ToldHashes {
    pub(crate) launch: Option<u64>,
    pub(crate) about: Option<u64>,
    /// The warnings of its agent that were told.
    warnings: BTreeSet<u64>,
}

impl ToldHashes {
    /// True if this warning was not told before. What comes beyond those that are remembered is told each time.
    pub(crate) fn is_new_warning(&mut self, text: &str) -> bool {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let hash = hasher.finish();
        match self.warnings.len() < WARNINGS_MAX {
            true => self.warnings.insert(hash),
            false => !self.warnings.contains(&hash),
        }
    }
}

impl Roster {
    /// These agents, of which nothing is known yet.
    pub(crate) fn new(ports: Arc<EnginePorts>, agents: Vec<Arc<dyn Agent>>, default_agent: String) -> Self {
        let agents = agents.into_iter().map(|agent| (agent.name().to_owned(), agent)).collect();
        let (rows, looked, heard) = (Mutex::default(), Notify::new(), Notify::new());
        Self { ports, agents, default_agent, rows, looked, heard, waiting: AtomicUsize::new(0) }
    }

    /// The agents, by the names that they give themselves.
    pub(crate) fn agents(&self) -> &BTreeMap<String, Arc<dyn Agent>> {
        &self.agents
    }

    /// The one that is used when none is named.
    pub(crate) fn default_agent(&self) -> &str {
        &self.default_agent
    }

    /// The names of the agents that there are for somebody.
    pub(crate) fn seen_by(&self, by: &Principal) -> Vec<String> {
        let seen = self.agents.keys().filter(|name| agent_grant_of(by, name).is_some());
        seen.cloned().collect()
    }

    /// An agent said something about itself in a session. A list that it does not mention stays as it was.
    pub(crate) fn hear(&self, agent: &str, session: SessionId, epoch: Epoch, about: &About) {
        let mut rows = self.rows();
        rows.lists.entry(agent.to_owned()).or_default().hear(about);
        // What was listed in another scope says nothing about this one.
        let listed = rows.listed.entry(session).or_insert_with(|| (epoch, Lists::default()));
        if listed.0 != epoch {
            *listed = (epoch, Lists::default());
        }
        listed.1.hear(about);
        while rows.listed.len() > LISTED_MAX {
            rows.listed.pop_first();
        }
        drop(rows);
        self.heard.notify_waiters();
    }

    /// The lists of a session under this epoch, as far as it is remembered.
    pub(crate) fn listed(&self, session: SessionId, epoch: Epoch) -> Option<Lists> {
        let rows = self.rows();
        rows.listed.get(&session).filter(|(heard, _)| *heard == epoch).map(|(_, lists)| lists.clone())
    }

    /// The lists of that agent, as far as anybody has heard.
    pub(crate) fn lists(&self, agent: &str) -> Lists {
        self.rows().lists.get(agent).cloned().unwrap_or_default()
    }

    /// The version of that agent, if somebody has looked or it has said so.
    pub(crate) fn version(&self, agent: &str) -> Option<String> {
        let rows = self.rows();
        let seen = rows.looks.get(agent).and_then(|(_, looked)| match &looked.found {
            Presence::Here { version } => Some(version.clone()),
            Presence::Missing { .. } => None,
        });
        let said = || rows.lists.get(agent).map(|lists| lists.version.clone());
        seen.or_else(said).filter(|version| !version.is_empty())
    }

    pub(crate) fn told(&self, session: SessionId) -> ToldHashes {
        self.rows().told.get(&session).cloned().unwrap_or_default()
    }

    pub(crate) fn remember_told(&self, session: SessionId, told: ToldHashes) {
        let mut rows = self.rows();
        rows.told.insert(session, told);
        while rows.told.len() > TOLD_MAX {
            rows.told.pop_first();
        }
    }

    pub(crate) fn forget_told(&self, session: SessionId) {
        let mut rows = self.rows();
        rows.told.remove(&session);
        rows.listed.remove(&session);
    }

    /// An attempt in a session failed as it may pass, with words of this hash.
    pub(crate) fn failed(&self, session: SessionId, words: u64) {
        let mut rows = self.rows();
        let count =
            rows.failing.get(&session).filter(|(known, _)| *known == words).map_or(0, |(_, count)| *count);
        rows.failing.insert(session, (words, count.saturating_add(1)));
        while rows.failing.len() > FAILING_MAX {
            rows.failing.pop_first();
        }
    }

    /// An attempt in a session did not fail in that way.
    pub(crate) fn forget_failures(&self, session: SessionId) {
        self.rows().failing.remove(&session);
    }

    /// True if the attempts in a session fail again and again with the same words.
    pub(crate) fn is_failing(&self, session: SessionId) -> bool {
        self.rows().failing.get(&session).is_some_and(|(_, count)| *count >= SAME_FAILURES_MAX)
    }

    fn saw(&self, agent: &str, looked: Looked) {
        let mut rows = self.rows();
        rows.looking.remove(agent);
        rows.looks.insert(agent.to_owned(), (Instant::now(), looked));
        drop(rows);
        self.looked.notify_waiters();
    }

    /// The last look at an agent, and whether somebody should look again.
    fn known(&self, agent: &str) -> (Option<Looked>, bool) {
        let mut rows = self.rows();
        let known = rows.looks.get(agent).cloned();
        let is_old = known.as_ref().is_none_or(|(at, _)| at.elapsed() >= LOOK_FRESH);
        let is_ours = is_old && rows.looking.insert(agent.to_owned());
        (known.map(|(_, looked)| looked), is_ours)
    }

    fn rows(&self) -> MutexGuard<'_, Rows> {
        // Nobody panics while holding it; it holds only what was seen.
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Roster {
    /// The list of the agent in a session under this epoch. While it is at work there and may yet list it, that is
    /// waited for, as long as a command would wait for it; once the session is elsewhere, it is not.
    pub(crate) async fn listing(
        &self,
        session: SessionId,
        epoch: Epoch,
        list: impl Fn(Lists) -> Vec<Choice>,
    ) -> Option<Vec<Choice>> {
        let until = Instant::now() + self.ports.limits.commands_wait.min(WAIT_MAX);
        let mut waiting = None;
        loop {
            // Listen first, then look: whatever is heard in between is heard.
            let mut heard = std::pin::pin!(self.heard.notified());
            heard.as_mut().enable();
            // A list with nothing in it is one that has not come.
            let listed = self.listed(session, epoch).map(&list).filter(|list| !list.is_empty());
            if listed.is_some() || !self.may_yet_list(session, epoch).await {
                return listed;
            }
            waiting.get_or_insert_with(|| WaitingCount::new(&self.waiting));
            if tokio::time::timeout_at(until, heard).await.is_err() {
                return None;
            }
        }
    }

    /// True if a turn is under way in that scope, with an agent that lists things. If it cannot be seen, nobody waits.
    async fn may_yet_list(&self, session: SessionId, epoch: Epoch) -> bool {
        let found = self.ports.store.session(session).await.ok().flatten();
        found.is_some_and(|(_, row)| {
            let lists = self.agents.get(&row.scope.agent).map(|agent| agent.abilities());
            row.awake && row.epoch == epoch && lists.is_some_and(|able| able.commands || able.models)
        })
    }

    /// The number of those who wait for a list of an agent right now.
    pub(crate) fn lists_awaited(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// The last look at every agent; none of those at which the first look takes too long.
    pub(crate) async fn looks(self: &Arc<Self>) -> BTreeMap<String, Option<Looked>> {
        let until = Instant::now() + LOOK_WAIT;
        loop {
            // Listen first, then look: whatever is seen in between is heard.
            let mut seen = std::pin::pin!(self.looked.notified());
            seen.as_mut().enable();
            let names = self.agents.keys();
            let looks: BTreeMap<_, _> = names.map(|name| (name.clone(), self.look_at(name))).collect();
            if looks.values().all(Option::is_some) || tokio::time::timeout_at(until, seen).await.is_err() {
                return looks;
            }
        }
    }

    /// The last look at one agent. Looks at it in the background if that is old.
    fn look_at(self: &Arc<Self>, name: &str) -> Option<Looked> {
        let (known, is_ours) = self.known(name);
        if is_ours && let Some(agent) = self.agents.get(name).cloned() {
            let (roster, name) = (self.clone(), name.to_owned());
            self.ports.tasks.spawn(async move {
                let found = tokio::time::timeout(LOOK_MAX, agent.look()).await;
                let what = "it does not answer when it is asked for its version".to_owned();
                let found = found.unwrap_or(Presence::Missing { what });
                roster.saw(&name, Looked { found, sign_in: agent.sign_in() });
            });
        }
        known
    }
}
