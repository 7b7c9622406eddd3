//! The engine as a node starts and ends it, and the handles that the rest of the program holds of it.
//!
//! A handle is cheap to clone and has only what it needs: `WayIn` (what is brought in), `Views` (what is read), `People`
//! (who there is and may do what), `Worktrees`. Each has errors of its own. Keepers hold the engine itself.

use crate::cluster::Cluster;
use crate::doors::Bell;
use crate::engine_ports::EnginePorts;
use crate::follow::{SharedReadiness, WatchedRights};
use crate::follow_rows::WatchedRows;
use crate::keeper::Keepers;
use crate::node::LocalNode;
use crate::people::RightsCache;
use crate::roster::Roster;
use crate::runner_ports::RunnerPorts;
use crate::sealer::Sealer;
use crate::snapshot_room::SnapshotShares;
use crate::tasks::Tasks;
use crate::timer::Timer;
use crate::{
    CallBack, Clock, Door, Ground, Mint, OwnedSession, People, Scripts, Seal, Trees, UnavailableError, Views,
    WallProver, WayIn, Worktrees,
};
use agent::Agent;
use kernel::{AfterFailure, Moment, Policy, SessionId};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};
use std::time::Duration;
use store::{Gauges, Store, StoreError};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// The longest that turns may take to end when the node goes down, on top of the agents' own grace.
const CLOSE_MAX: Duration = Duration::from_secs(5);

/// The parts that an engine is made of.
pub struct Wiring {
    /// Where everything is kept.
    pub store: Arc<dyn Store>,
    /// The nodes that share it, and how they reach each other.
    pub cluster: Arc<dyn Cluster>,
    /// The agents, by whatever names they give themselves.
    pub agents: Vec<Arc<dyn Agent>>,
    /// The one that is used when none is named.
    pub default_agent: String,
    /// Where sessions may stand.
    pub ground: Arc<dyn Ground>,
    /// Working trees under version control.
    pub trees: Arc<dyn Trees>,
    /// Scripts in worktrees, by the name of the agent.
    pub scripts: BTreeMap<String, Scripts>,
    /// The fate of waiting messages after a failed turn, by the name of the agent; of others the policy says it.
    pub after_failure: BTreeMap<String, AfterFailure>,
    /// The doors that replies leave by.
    pub doors: Vec<Arc<dyn Door>>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Fresh ids.
    pub mint: Arc<dyn Mint>,
    /// The seal that keeps people's sign-ins secret, and the audit whole.
    pub seal: Arc<dyn Seal>,
    /// The way agents call back; none if they cannot.
    pub call_back: Option<Arc<dyn CallBack>>,
    /// The wall that keeps agents from what is not theirs.
    pub wall: Arc<dyn WallProver>,
    /// True if people are let in although nothing keeps their agents apart.
    pub trust_everyone: bool,
    /// The policy that sessions may count on.
    pub policy: Policy,
    /// The bounds of everything.
    pub limits: Limits,
}

/// The bounds of everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Sessions that one person may have open.
    pub open_max: u32,
    /// Sessions that one org may have open; it may want fewer.
    pub org_open_max: u32,
    /// Sessions of one person in which a turn may be under way at once.
    pub awake_max: u32,
    /// Sessions of one org in which a turn may be under way at once; it may want fewer.
    pub org_awake_max: u32,
    /// Messages of one session that may be unfinished.
    pub pending_max: u32,
    /// The room that words in the sessions of one person may take on the disk.
    pub words_bytes_per_person_max: u64,
    /// The room that the worktrees of one person's sessions may take: with so much there are no more.
    pub worktree_bytes_per_person_max: u64,
    /// The room that the snapshots of one person's sessions may take: with more, the oldest of theirs go.
    pub snapshot_bytes_per_person_max: u64,
    /// The time for which a verb waits for the keeper's verdict.
    pub verdict_wait: Duration,
    /// The longest that a stopped agent may take to go by itself.
    pub stop_grace_ms: u64,
    /// Words are written down at the latest after this time …
    pub words_ms_max: u64,
    /// … or when there are this many bytes of them.
    pub words_bytes_max: usize,
    /// The longest that a message that may be a command waits until the agent has listed its commands.
    pub commands_wait: Duration,
    /// True if turns of several sessions may be under way in one directory.
    pub shared_directories: bool,
    /// The fate of worktrees that nobody is in.
    pub worktrees: Collecting,
}

/// The fate of worktrees that nobody is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Collecting {
    /// One that nobody has used for so long is removed.
    pub keep: Duration,
    /// The room that all may take together: with more, those that were not used for longest are removed. Zero is no
    /// bound.
    pub disk_bytes_max: u64,
    /// The time for which what is remembered of turns can be looked up, undone and forked.
    pub snapshots: Duration,
    /// The time between two looks. Zero is never.
    pub every: Duration,
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl Default for Collecting {
    fn default() -> Self {
        Self {
            keep: 30 * DAY,
            disk_bytes_max: 20 * 1024 * 1024 * 1024,
            snapshots: 120 * DAY,
            every: Duration::from_secs(6 * 60 * 60),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            open_max: 100_000,
            org_open_max: 1_000_000,
            awake_max: 16,
            org_awake_max: 256,
            pending_max: 1_000,
            words_bytes_per_person_max: 4 * 1024 * 1024 * 1024,
            worktree_bytes_per_person_max: 10 * 1024 * 1024 * 1024,
            snapshot_bytes_per_person_max: 10 * 1024 * 1024 * 1024,
            verdict_wait: Duration::from_secs(5),
            stop_grace_ms: 2_000,
            words_ms_max: 250,
            words_bytes_max: 8 * 1024,
            commands_wait: Duration::from_secs(10),
            shared_directories: false,
            worktrees: Collecting::default(),
        }
    }
}

/// The engine.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

/// The engine, for whoever does not keep it alive.
#[derive(Clone)]
pub(crate) struct WeakEngine(Weak<Inner>);

impl WeakEngine {
    pub(crate) fn upgrade(&self) -> Option<Engine> {
        self.0.upgrade().map(Engine)
    }
}

impl fmt::Debug for WeakEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakEngine").finish_non_exhaustive()
    }
}

struct Inner {
    ports: Arc<EnginePorts>,
    runner_ports: RunnerPorts,
    roster: Arc<Roster>,
    rights_cache: Arc<RightsCache>,
    seal: Arc<dyn Seal>,
    call_back: Option<Arc<dyn CallBack>>,
    after_failure: BTreeMap<String, AfterFailure>,
    policy: Policy,
    keepers: Keepers,
    way_in: WayIn,
    views: Views,
    people: People,
    worktrees: Worktrees,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

impl Inner {
    /// Everything in its place, and nothing under way yet.
    fn new(wiring: Wiring) -> Self {
        let tasks = Tasks::default();
        let ports = Arc::new(EnginePorts {
            store: wiring.store,
            cluster: wiring.cluster,
            clock: wiring.clock,
            mint: wiring.mint,
            limits: wiring.limits,
            wall: wiring.wall.clone(),
            tasks: tasks.clone(),
            timer: Timer::new(),
            sealer: Sealer::default(),
            outbox_bell: Bell::default(),
            snapshot_shares: SnapshotShares::default(),
            is_closing: AtomicBool::new(false),
        });
        let (trees, ground) = (wiring.trees, wiring.ground);
        let roster = Arc::new(Roster::new(ports.clone(), wiring.agents, wiring.default_agent));
        let rights_cache = Arc::new(RightsCache::new(ports.clone(), wiring.trust_everyone));
        let exchange = Arc::new(Semaphore::new(crate::export::AT_ONCE));
        let views = Views {
            ports: ports.clone(),
            roster: roster.clone(),
            rights_cache: rights_cache.clone(),
            ground: ground.clone(),
            exchange: exchange.clone(),
            refused_reads: Arc::default(),
            watched_rights: WatchedRights::default(),
            watched_rows: WatchedRows::default(),
            shared_readiness: SharedReadiness::default(),
            known_waits: Arc::default(),
        };
        let people = People {
            ports: ports.clone(),
            roster: roster.clone(),
            rights_cache: rights_cache.clone(),
            ground: ground.clone(),
            seal: wiring.seal.clone(),
            wall: wiring.wall,
            passwords: Arc::default(),
            uses: Arc::default(),
        };
        let way_in = WayIn {
            ports: ports.clone(),
            roster: roster.clone(),
            rights_cache: rights_cache.clone(),
            ground: ground.clone(),
            exchange,
            policy: wiring.policy,
        };
        let worktrees = Worktrees { ports: ports.clone(), way_in: way_in.clone(), trees: trees.clone() };
        let stop_grace_ms = wiring.limits.stop_grace_ms;
        Self {
            ports,
            runner_ports: RunnerPorts {
                trees,
                ground,
                scripts: Arc::new(wiring.scripts),
                tasks,
                stop_grace_ms,
            },
            roster,
            rights_cache,
            seal: wiring.seal,
            call_back: wiring.call_back,
            after_failure: wiring.after_failure,
            policy: wiring.policy,
            keepers: Keepers::default(),
            way_in,
            views,
            people,
            worktrees,
        }
    }
}

impl Engine {
    /// Begins to keep sessions: whatever is unfinished is settled by the same loop as anything else.
    pub async fn start(mut wiring: Wiring) -> Result<Self, UnavailableError> {
        let doors = std::mem::take(&mut wiring.doors);
        let term = wiring.store.node().term;
        let engine = Self(Arc::new(Inner::new(wiring)));
        engine.cluster().join(term, Arc::new(LocalNode(engine.downgrade())));
        engine.listen_to_agents();
        engine.ring_unfinished().await?;
        crate::timer::start(&engine);
        crate::sealer::start(&engine);
        crate::indexer::start(&engine);
        crate::refused_reads::start(engine.views());
        crate::people::write_uses_down(engine.people());
        crate::worktrees::start(engine.worktrees());
        crate::snapshot_room::start(engine.worktrees());
        crate::old_snapshots::start(engine.worktrees());
        crate::doors::start(&engine, doors)?;
        Ok(engine)
    }

    /// The way in: whatever changes a session.
    pub fn way_in(&self) -> &WayIn {
        &self.0.way_in
    }

    /// Whatever can be read of sessions, messages, approvals and agents.
    pub fn views(&self) -> &Views {
        &self.0.views
    }

    /// People, and who may do what.
    pub fn people(&self) -> &People {
        &self.0.people
    }

    /// The worktrees that nobody is in.
    pub fn worktrees(&self) -> &Worktrees {
        &self.0.worktrees
    }

    /// Stops keeping: running turns are stopped as interrupted, and everything is handed over to the next start.
    pub async fn shutdown(&self) {
        let grace = Duration::from_millis(self.limits().stop_grace_ms);
        self.ports().close();
        self.0.keepers.close(grace + CLOSE_MAX).await;
        self.close_kept(grace + CLOSE_MAX).await;
        self.cluster().close();
        if tokio::time::timeout(CLOSE_MAX, self.put_in_order()).await.is_err() {
            tracing::warn!("the audit could not be sealed in time; the next start does it");
        }
        self.ports().tasks.abort_all();
    }

    /// No turn runs any more: whatever agents and ground workers kept for the next one goes, all of it at the same time.
    async fn close_kept(&self, wait: Duration) {
        let mut closing = JoinSet::new();
        for agent in self.agents_by_name().values() {
            let agent = agent.clone();
            closing.spawn(async move { agent.close().await });
        }
        let trees = self.0.worktrees.trees.clone();
        closing.spawn(async move { trees.close().await });
        if tokio::time::timeout(wait, closing.join_all()).await.is_err() {
            tracing::warn!("some processes that were kept did not go in time; their supervisors end them");
        }
    }

    async fn put_in_order(&self) {
        self.views().note_refused_reads().await;
        let sealed = self.seal_all().await;
        if let Err(error) = sealed.and(self.people().note_uses().await) {
            tracing::warn!(%error, "the audit is sealed by the next start");
        }
    }

    /// Ends everything at once, wherever it is, as if the process had died. For the simulation.
    pub fn crash(&self) {
        self.ports().tasks.abort_all();
    }

    /// Says where this node can be reached.
    pub async fn announce(&self, url: String) -> Result<(), UnavailableError> {
        Ok(self.store().announce(url).await?)
    }

    /// Checks that the store answers: reads something small that is not remembered anywhere else.
    pub async fn ready(&self) -> Result<(), UnavailableError> {
        self.store().next_wake().await?;
        Ok(())
    }

    /// The store's own figures.
    pub fn gauges(&self) -> Gauges {
        self.store().gauges()
    }

    /// The number of sessions that are being kept right now.
    pub fn kept(&self) -> usize {
        self.0.keepers.count()
    }

    /// Now.
    pub fn now(&self) -> Moment {
        self.ports().now()
    }

    /// The limits in force.
    pub fn limits(&self) -> &Limits {
        &self.ports().limits
    }

    pub(crate) fn ports(&self) -> &Arc<EnginePorts> {
        &self.0.ports
    }

    pub(crate) fn runner_ports(&self) -> &RunnerPorts {
        &self.0.runner_ports
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.ports().store
    }

    pub(crate) fn cluster(&self) -> &dyn Cluster {
        &*self.ports().cluster
    }

    pub(crate) fn timer(&self) -> &Timer {
        &self.ports().timer
    }

    pub(crate) fn roster(&self) -> &Roster {
        &self.0.roster
    }

    pub(crate) fn rights_cache(&self) -> &RightsCache {
        &self.0.rights_cache
    }

    /// A session with whose it is by now. One that is not there is nobody's.
    pub(crate) async fn owned(&self, session: SessionId) -> Result<OwnedSession, StoreError> {
        let found = self.store().session(session).await?;
        let whose = found.map(|(record, _)| record.owner.to_string()).unwrap_or_default();
        let walled = self.rights_cache().needs_wall().await?;
        Ok(OwnedSession { session, whose, walled, tree_bytes_left: None })
    }

    pub(crate) fn keepers(&self) -> &Keepers {
        &self.0.keepers
    }

    pub(crate) fn seal(&self) -> &dyn Seal {
        &*self.0.seal
    }

    pub(crate) fn call_back(&self) -> Option<&dyn CallBack> {
        self.0.call_back.as_deref()
    }

    pub(crate) fn agents_by_name(&self) -> &BTreeMap<String, Arc<dyn Agent>> {
        self.0.roster.agents()
    }

    pub(crate) fn policy(&self) -> Policy {
        self.0.policy
    }

    /// The policy of a session while it has this agent.
    pub(crate) fn policy_with(&self, agent: &str) -> Policy {
        let policy = self.policy();
        let after_failure = self.0.after_failure.get(agent).copied().unwrap_or(policy.after_failure);
        Policy { after_failure, ..policy }
    }

    pub(crate) fn words_wait(&self) -> Duration {
        Duration::from_millis(self.limits().words_ms_max)
    }

    /// Everything the engine does by itself is done in these tasks, so that it can be ended.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.ports().tasks.spawn(task);
    }

    /// Something was written into the audit.
    pub(crate) fn audited(&self) {
        self.ports().audited();
    }

    /// Sees to it that somebody looks at this session's inbox from now on.
    pub(crate) fn keep(&self, session: SessionId) {
        self.ports().keep(session);
    }

    pub(crate) fn downgrade(&self) -> WeakEngine {
        WeakEngine(Arc::downgrade(&self.0))
    }
}
