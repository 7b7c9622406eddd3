//! The engine as the rest of the program holds it: one handle, cheap to clone.

use crate::cluster::{Cluster, Ring};
use crate::doors::Bell;
use crate::keeper::Keepers;
use crate::node::LocalNode;
use crate::people::{Passwords, RightsCache, Uses};
use crate::refused_reads::RefusedReads;
use crate::roster::Roster;
use crate::runner_ports::RunnerPorts;
use crate::sealer::Sealer;
use crate::tasks::Tasks;
use crate::timer::Timer;
use crate::{CallBack, Clock, Door, Ground, Mint, Refused, Scripts, Seal, Secret, Trees, Wall};
use agent::Agent;
use kernel::{AfterFailure, MessageId, Moment, Policy, Principal, RequestId, SessionId};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;
use store::{Gauges, NewOrg, Purpose, Store, TokenRow};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

/// How long turns may take to end when the node goes down, on top of the agents' own grace.
const CLOSE_MAX: Duration = Duration::from_secs(5);

/// What an engine is made of.
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
    /// What is run in worktrees, by the name of the agent.
    pub scripts: BTreeMap<String, Scripts>,
    /// What becomes of waiting messages after a failed turn, by the name of the agent; of others the policy says it.
    pub after_failure: BTreeMap<String, AfterFailure>,
    /// The doors that replies leave by.
    pub doors: Vec<Arc<dyn Door>>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Fresh ids.
    pub mint: Arc<dyn Mint>,
    /// What keeps people's sign-ins secret, and the audit whole.
    pub seal: Arc<dyn Seal>,
    /// How agents call back; none if they cannot.
    pub call_back: Option<Arc<dyn CallBack>>,
    /// What keeps agents from what is not theirs.
    pub wall: Arc<dyn Wall>,
    /// Whether people are let in although nothing keeps their agents apart.
    pub trust_everyone: bool,
    /// What sessions may count on.
    pub policy: Policy,
    /// How much of everything.
    pub limits: Limits,
}

/// How much of everything there may be.
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
    /// How long a verb waits for the keeper's verdict.
    pub verdict_wait: Duration,
    /// How long a stopped agent may take to go by itself.
    pub stop_grace_ms: u64,
    /// Words are written down at the latest after this time …
    pub words_ms_max: u64,
    /// … or when there are this many bytes of them.
    pub words_bytes_max: usize,
    /// How long a message that may be a command waits until the agent has listed its commands.
    pub commands_wait: Duration,
    /// Whether turns of several sessions may be under way in one directory.
    pub shared_directories: bool,
    /// What becomes of worktrees that nobody is in.
    pub worktrees: Collecting,
}

/// What becomes of worktrees that nobody is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Collecting {
    /// One that nobody has used for so long is removed.
    pub keep: Duration,
    /// What all may take together: with more, those that were not used for longest are removed. Zero is no bound.
    pub disk_bytes_max: u64,
    /// How long what is remembered of turns can be looked up, undone and forked.
    pub snapshots: Duration,
    /// How often it is looked. Zero is never.
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
    store: Arc<dyn Store>,
    /// Places for conversations that are being taken in or out.
    exchange: Semaphore,
    agents: BTreeMap<String, Arc<dyn Agent>>,
    default_agent: String,
    after_failure: BTreeMap<String, AfterFailure>,
    runner_ports: RunnerPorts,
    clock: Arc<dyn Clock>,
    mint: Arc<dyn Mint>,
    seal: Arc<dyn Seal>,
    call_back: Option<Arc<dyn CallBack>>,
    wall: Arc<dyn Wall>,
    trust_everyone: bool,
    policy: Policy,
    limits: Limits,
    cluster: Arc<dyn Cluster>,
    keepers: Keepers,
    timer: Timer,
    outbox_bell: Bell,
    roster: Roster,
    sealer: Sealer,
    refused_reads: RefusedReads,
    passwords: Passwords,
    rights_cache: RightsCache,
    uses: Uses,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

impl Engine {
    /// Begins to keep sessions: whatever is unfinished is settled by the same loop as anything else.
    pub async fn start(wiring: Wiring) -> Result<Self, Refused> {
        let agents = wiring.agents.into_iter().map(|agent| (agent.name().to_owned(), agent)).collect();
        let runner_ports = RunnerPorts {
            trees: wiring.trees,
            ground: wiring.ground,
            scripts: Arc::new(wiring.scripts),
            tasks: Tasks::default(),
            stop_grace_ms: wiring.limits.stop_grace_ms,
        };
        let term = wiring.store.node().term;
        let engine = Self(Arc::new(Inner {
            store: wiring.store,
            exchange: Semaphore::new(crate::export::AT_ONCE),
            agents,
            default_agent: wiring.default_agent,
            runner_ports,
            after_failure: wiring.after_failure,
            clock: wiring.clock,
            mint: wiring.mint,
            seal: wiring.seal,
            call_back: wiring.call_back,
            wall: wiring.wall,
            trust_everyone: wiring.trust_everyone,
            policy: wiring.policy,
            limits: wiring.limits,
            cluster: wiring.cluster,
            keepers: Keepers::default(),
            timer: Timer::new(),
            outbox_bell: Bell::default(),
            roster: Roster::default(),
            sealer: Sealer::default(),
            refused_reads: RefusedReads::default(),
            passwords: Passwords::default(),
            rights_cache: RightsCache::default(),
            uses: Uses::default(),
        }));
        engine.cluster().join(term, Arc::new(LocalNode(engine.downgrade())));
        engine.ring_unfinished().await?;
        crate::timer::start(&engine);
        crate::sealer::start(&engine);
        crate::refused_reads::start(&engine);
        crate::people::write_uses_down(&engine);
        crate::worktrees::start(&engine);
        crate::doors::start(&engine, wiring.doors)?;
        Ok(engine)
    }

    /// Stops keeping: running turns are stopped as interrupted, and everything is handed over to the next start.
    pub async fn shutdown(&self) {
        let grace = Duration::from_millis(self.0.limits.stop_grace_ms);
        self.0.keepers.close(grace + CLOSE_MAX).await;
        self.close_agents(grace + CLOSE_MAX).await;
        self.cluster().close();
        if tokio::time::timeout(CLOSE_MAX, self.put_in_order()).await.is_err() {
            tracing::warn!("the audit could not be sealed in time; the next start does it");
        }
        self.tasks().abort_all();
    }

    /// No turn runs any more: whatever the agents kept for the next one goes, all of it at the same time.
    async fn close_agents(&self, wait: Duration) {
        let mut closing = JoinSet::new();
        for agent in self.0.agents.values() {
            let agent = agent.clone();
            closing.spawn(async move { agent.close().await });
        }
        if tokio::time::timeout(wait, closing.join_all()).await.is_err() {
            tracing::warn!("some agents kept a process that did not go in time; their supervisors end it");
        }
    }

    async fn put_in_order(&self) {
        self.note_refused_reads().await;
        let sealed = self.seal_all().await;
        if let Err(error) = sealed.and(self.note_uses().await) {
            tracing::warn!(%error, "the audit is sealed by the next start");
        }
    }

    /// Ends everything at once, wherever it is, as if the process had died. For the simulation.
    pub fn crash(&self) {
        self.tasks().abort_all();
    }

    /// Everything the engine does by itself is done in these tasks, so that it can be ended.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks().spawn(task);
    }

    fn tasks(&self) -> &Tasks {
        &self.0.runner_ports.tasks
    }

    pub(crate) fn runner_ports(&self) -> &RunnerPorts {
        &self.0.runner_ports
    }

    /// The machine's person, who owns the first org; made at the first start.
    pub async fn host(&self, fresh: NewOrg) -> Result<Principal, Refused> {
        Ok(self.store().host(fresh).await?)
    }

    /// Lets the machine's own credential in. Only the hash of its secret is stored.
    pub async fn add_token(&self, token: TokenRow) -> Result<(), Refused> {
        self.store().add_token(token).await?;
        self.rights_changed();
        Ok(())
    }

    /// Grows with every change of who may do what on this node: whatever was remembered of it is to be asked again.
    pub fn rights(&self) -> watch::Receiver<u64> {
        self.cluster().rights()
    }

    /// Whoever remembers what somebody may do asks again, and so do the keepers of what they have said.
    pub(crate) fn rights_changed(&self) {
        self.cluster().rights_changed();
        self.timer().unsure();
    }

    pub(crate) fn rights_now(&self) -> u64 {
        *self.cluster().rights().borrow()
    }

    /// Says where this node can be reached.
    pub async fn announce(&self, url: String) -> Result<(), Refused> {
        Ok(self.store().announce(url).await?)
    }

    /// Whether the store answers: reads something small that is not remembered anywhere else.
    pub async fn ready(&self) -> Result<(), Refused> {
        self.store().next_wake().await?;
        Ok(())
    }

    /// The store's own figures.
    pub fn gauges(&self) -> Gauges {
        self.store().gauges()
    }

    /// How many sessions are being kept right now.
    pub fn kept(&self) -> usize {
        self.0.keepers.count()
    }

    /// Now.
    pub fn now(&self) -> Moment {
        self.0.clock.now()
    }

    pub(crate) fn exchange(&self) -> &Semaphore {
        &self.0.exchange
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.0.store
    }

    pub(crate) fn store_handle(&self) -> Arc<dyn Store> {
        self.0.store.clone()
    }

    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        self.0.clock.clone()
    }

    /// Rung when something was put into the outbox.
    pub(crate) fn outbox_bell(&self) -> &Bell {
        &self.0.outbox_bell
    }

    pub(crate) fn agents_by_name(&self) -> &BTreeMap<String, Arc<dyn Agent>> {
        &self.0.agents
    }

    /// What the agents are called.
    pub fn agent_names(&self) -> Vec<String> {
        self.0.agents.keys().cloned().collect()
    }

    pub(crate) fn default_agent(&self) -> &str {
        &self.0.default_agent
    }

    pub(crate) fn trees(&self) -> &dyn Trees {
        &*self.0.runner_ports.trees
    }

    /// What a session counts on while it has this agent.
    pub(crate) fn policy_with(&self, agent: &str) -> Policy {
        let policy = self.policy();
        let after_failure = self.0.after_failure.get(agent).copied().unwrap_or(policy.after_failure);
        Policy { after_failure, ..policy }
    }

    pub(crate) fn ground(&self) -> &dyn Ground {
        &*self.0.runner_ports.ground
    }

    pub(crate) fn seal(&self) -> &dyn Seal {
        &*self.0.seal
    }

    pub(crate) fn call_back(&self) -> Option<&dyn CallBack> {
        self.0.call_back.as_deref()
    }

    pub(crate) fn wall(&self) -> &dyn Wall {
        &*self.0.wall
    }

    /// Whether people are let in although nothing keeps their agents apart.
    pub fn trusts_everyone(&self) -> bool {
        self.0.trust_everyone
    }

    pub(crate) fn sealer(&self) -> &Sealer {
        &self.0.sealer
    }

    pub(crate) fn refused_reads(&self) -> &RefusedReads {
        &self.0.refused_reads
    }

    pub(crate) fn passwords(&self) -> &Passwords {
        &self.0.passwords
    }

    pub(crate) fn rights_cache(&self) -> &RightsCache {
        &self.0.rights_cache
    }

    pub(crate) fn uses(&self) -> &Uses {
        &self.0.uses
    }

    pub(crate) fn policy(&self) -> Policy {
        self.0.policy
    }

    /// The limits in force.
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    pub(crate) fn cluster(&self) -> &dyn Cluster {
        &*self.0.cluster
    }

    /// Sees to it that somebody looks at this session's inbox from now on.
    pub(crate) fn keep(&self, session: SessionId) {
        self.cluster().ring(session, Ring::Now);
    }

    /// The same for what can wait while a turn is under way.
    pub(crate) fn keep_soon(&self, session: SessionId) {
        self.cluster().ring(session, Ring::Soon);
    }

    fn downgrade(&self) -> WeakEngine {
        WeakEngine(Arc::downgrade(&self.0))
    }

    pub(crate) fn keepers(&self) -> &Keepers {
        &self.0.keepers
    }

    pub(crate) fn timer(&self) -> &Timer {
        &self.0.timer
    }

    pub(crate) fn roster(&self) -> &Roster {
        &self.0.roster
    }

    pub(crate) fn words_wait(&self) -> Duration {
        Duration::from_millis(self.0.limits.words_ms_max)
    }

    pub(crate) fn mint_session(&self) -> SessionId {
        SessionId::from_bits(self.0.mint.bits())
    }

    pub(crate) fn mint_message(&self) -> MessageId {
        MessageId::from_bits(self.0.mint.bits())
    }

    pub(crate) fn mint_request(&self) -> RequestId {
        RequestId::from_bits(self.0.mint.bits())
    }

    pub(crate) fn mint_approval(&self) -> kernel::ApprovalId {
        kernel::ApprovalId::from_bits(self.0.mint.bits())
    }

    pub(crate) fn mint_bits(&self) -> u128 {
        self.0.mint.bits()
    }

    pub(crate) fn mint_credential(&self, purpose: Purpose) -> Secret {
        Secret::of_credential(purpose, self.0.mint.secret())
    }

    pub(crate) fn mint_link(&self) -> Secret {
        Secret::of_link(self.0.mint.secret())
    }

    pub(crate) fn mint_salt(&self) -> [u8; 32] {
        self.0.mint.secret()
    }
}
