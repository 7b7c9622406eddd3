//! A small world for one test: the real engine over the memory store, with the scripted agent in-process, in paused
//! time. It can crash and start again; what is durable stays.

use crate::disk::{Disk, Faults};
use crate::grove::Grove;
use agent::{Agent, House, HouseConfig, InProcess};
use engine::{
    AddPerson, AuditRow, CallBack, CallerKey, ChainKey, Clock, Door, Engine, Granted, Ground, IfNew, Inbound,
    Limits, LocalCluster, MessagePart, Mint, NewOrg, NewPerson, Proof, Purpose, Receipt, ReceiptState,
    ReceiptView, Resource, Scripts, Seal, Secret, SignInFor, StoredEntry, TokenRow, Trace, WallProver,
    WayInError, Wiring,
};
use kernel::{
    Address, Delivery, Fact, Grant, Grantee, GroundPath, MessageId, Moment, NodeId, Number, OrgId, PersonId,
    Policy, Principal, Role, Scheme, SessionId, To, TokenId,
};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::{MemoryStore, Wrapped};

#[derive(Debug)]
struct TestClock(tokio::time::Instant);
impl Clock for TestClock {
    fn now(&self) -> Moment {
        Moment(1_000_000 + self.0.elapsed().as_millis() as u64)
    }
}

#[derive(Debug, Default)]
struct Counter(AtomicU64);
impl Mint for Counter {
    fn bits(&self) -> u128 {
        u128::from(self.0.fetch_add(1, Ordering::Relaxed)) + 1_000
    }
    fn secret(&self) -> [u8; 32] {
        let mut bytes = [7; 32];
        bytes[..16].copy_from_slice(&self.bits().to_be_bytes());
        bytes
    }
}

/// Where agents find their secrets.
#[derive(Debug, Default)]
pub(crate) struct Letterbox(pub(crate) Mutex<BTreeMap<SessionId, Secret>>);
impl CallBack for Letterbox {
    fn open(
        &self,
        session: SessionId,
        secret: &Secret,
    ) -> Result<Vec<(String, String)>, engine::CallBackError> {
        self.0.lock().unwrap().insert(session, secret.clone());
        Ok(vec![("HOMING_TOKEN_FILE".to_owned(), format!("/turns/{session}/token"))])
    }
    fn close(&self, session: SessionId) {
        self.0.lock().unwrap().remove(&session);
    }
}

/// A wall that stands until somebody makes a hole.
#[derive(Debug, Default)]
pub(crate) struct Fence(pub(crate) AtomicBool);
impl WallProver for Fence {
    fn prove(&self) -> Pin<Box<dyn Future<Output = Proof> + Send + '_>> {
        let proved = !self.0.load(Ordering::Relaxed);
        let findings = if proved { Vec::new() } else { vec!["there is a hole".to_owned()] };
        Box::pin(std::future::ready(Proof { proved, findings }))
    }
}

#[derive(Debug)]
struct Meadow;
impl Ground for Meadow {
    fn check(&self, directory: &str) -> Result<GroundPath, engine::GroundError> {
        if directory.starts_with("/gone") {
            Err(engine::GroundError::Unfit("it is not there".to_owned()))
        } else {
            Ok(directory.into())
        }
    }
    fn own(&self, session: SessionId) -> GroundPath {
        format!("/own/{session}").into()
    }
    fn look(&self, _: &GroundPath) -> Result<(), engine::NoGround> {
        Ok(())
    }
    fn why_not(&self, _: &str, directory: &str) -> Option<engine::GroundError> {
        self.check(directory).err()
    }
    fn prepare(&self, directory: &GroundPath) -> Result<GroundPath, engine::GroundError> {
        if directory.for_readers().starts_with("/lost") {
            Err(engine::GroundError::Failed("it is not there any more".to_owned()))
        } else {
            Ok(directory.clone())
        }
    }
}

/// Opens what was sealed under the same number.
#[derive(Debug, Default)]
pub(crate) struct Wax(AtomicU64);
impl Wax {
    pub(crate) fn change(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
    fn mark(&self, about: &str) -> Vec<u8> {
        format!("{}|{about}|", self.0.load(Ordering::Relaxed)).into_bytes()
    }
}
impl Seal for Wax {
    fn seal(&self, about: &str, plain: &[u8]) -> Result<Vec<u8>, engine::SealError> {
        let mirrored = plain.iter().rev().copied();
        Ok(self.mark(about).into_iter().chain(mirrored).collect())
    }
    fn open(&self, about: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        let mirrored = sealed.strip_prefix(self.mark(about).as_slice())?;
        Some(mirrored.iter().rev().copied().collect())
    }
    fn chain_key(&self) -> ChainKey {
        ChainKey([3; 32])
    }
}

pub(crate) struct World {
    pub(crate) seal: Arc<Wax>,
    pub(crate) engine: Engine,
    pub(crate) store: MemoryStore,
    pub(crate) house: Arc<House>,
    pub(crate) others: Vec<Arc<dyn Agent>>,
    pub(crate) faults: Arc<Faults>,
    mint: Arc<Counter>,
    clock: Arc<TestClock>,
    pub(crate) letterbox: Arc<Letterbox>,
    pub(crate) fence: Arc<Fence>,
    pub(crate) grove: Arc<Grove>,
    pub(crate) scripts: BTreeMap<String, Scripts>,
    /// Opened with the next start.
    pub(crate) doors: Vec<Arc<dyn Door>>,
    pub(crate) limits: Limits,
    pub(crate) policy: Policy,
    /// The machine's person, with the machine's credential.
    pub(crate) me: Principal,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(Limits::default(), Policy::default()).await
    }

    pub(crate) async fn with(limits: Limits, policy: Policy) -> Self {
        Self::among(Vec::new(), limits, policy).await
    }

    /// With other agents beside the scripted one.
    pub(crate) async fn among(others: Vec<Arc<dyn Agent>>, limits: Limits, policy: Policy) -> Self {
        let store = MemoryStore::new(NodeId::from_bits(1));
        let house = House::new(HouseConfig { seed: 7, linger_ms: 50, ..HouseConfig::default() });
        let mint = Arc::new(Counter::default());
        let clock = Arc::new(TestClock(tokio::time::Instant::now()));
        let faults = Arc::new(Faults::default());
        let seal = Arc::new(Wax::default());
        let (letterbox, fence) = (Arc::default(), Arc::default());
        let disk = Disk { inner: store.clone(), faults: faults.clone() };
        let (grove, scripts) = (Arc::default(), BTreeMap::new());
        let parts = Parts {
            house: &house,
            others: &others,
            mint: &mint,
            clock: &clock,
            seal: &seal,
            grove: &grove,
            scripts: &scripts,
            doors: &[],
        };
        let engine = start(disk, parts, &letterbox, &fence, limits, policy).await;
        let me = let_host_in(&engine).await;
        Self {
            seal,
            engine,
            store,
            house,
            others,
            faults,
            mint,
            clock,
            letterbox,
            fence,
            grove,
            scripts,
            doors: Vec::new(),
            limits,
            policy,
            me,
        }
    }

    /// Somebody new, who came in by the link they were given, with a terminal's credential.
    pub(crate) async fn let_in(&self, handle: &str, role: Role) -> Principal {
        let add = AddPerson { handle: handle.to_owned(), name: None, email: None, role };
        let (_, link) = self.engine.people().add_person(&self.me, add, trace(None)).await.unwrap();
        let at = SignInFor { purpose: Purpose::Cli, name: None };
        let signed = self.engine.people().sign_in_by_link(link.reveal(), at, trace(None)).await.unwrap();
        self.engine.people().principal(signed.secret.hash()).await.unwrap().unwrap()
    }

    /// The process dies here, and another one starts.
    pub(crate) async fn crash(&mut self) {
        self.engine.crash();
        self.start_again().await;
    }

    /// The process is asked to go, goes, and another one starts.
    pub(crate) async fn restart(&mut self) {
        self.engine.shutdown().await;
        self.start_again().await;
    }

    /// Another one starts, whatever has become of this one.
    pub(crate) async fn start_again(&mut self) {
        self.store = self.store.reopen();
        let Self {
            store,
            house,
            others,
            faults,
            mint,
            clock,
            seal,
            grove,
            scripts,
            doors,
            limits,
            policy,
            ..
        } = &*self;
        let disk = Disk { inner: store.clone(), faults: faults.clone() };
        let parts = Parts { house, others, mint, clock, seal, grove, scripts, doors };
        self.engine = start(disk, parts, &self.letterbox, &self.fence, *limits, *policy).await;
    }

    pub(crate) async fn say(&self, to: To, text: &str) -> Result<Receipt, WayInError> {
        self.engine.way_in().send(self.inbound(to, text, None)).await
    }

    pub(crate) fn inbound(&self, to: To, text: &str, key: Option<&str>) -> Inbound {
        Inbound {
            by: self.me.clone(),
            to,
            if_new: IfNew::default(),
            expected: None,
            parts: vec![MessagePart::Text { text: text.to_owned() }],
            delivery: Delivery::Queue,
            attachments: Vec::new(),
            unattended: false,
            under: None,
            reply: None,
            trace: trace(key),
        }
    }

    /// Somebody else says it.
    pub(crate) async fn say_as(&self, by: &Principal, to: To, text: &str) -> Result<Receipt, WayInError> {
        self.engine.way_in().send(Inbound { by: by.clone(), ..self.inbound(to, text, None) }).await
    }

    /// Lets somebody else do this with a session of mine.
    pub(crate) async fn give(&self, session: SessionId, to: Grantee, grant: Grant) {
        let on = Resource::Session(session);
        self.engine.people().give(&self.me, on, to, grant, trace(None)).await.unwrap();
    }

    /// Says it and waits for what becomes of it.
    pub(crate) async fn talk(&self, to: To, text: &str) -> ReceiptView {
        let receipt = self.say(to, text).await.unwrap();
        self.settled(receipt.accepted.message).await
    }

    pub(crate) async fn settled(&self, message: MessageId) -> ReceiptView {
        for _ in 0..600 {
            let view =
                self.engine.views().receipt_within(&self.me, message, Duration::from_secs(60)).await.unwrap();
            if view.row.state.is_final() {
                return view;
            }
        }
        let row = self.engine.views().receipt(&self.me, message).await.unwrap().row;
        panic!("{message} never reaches a final state: {row:?} {:#?}", self.rules(row.session).await);
    }

    /// Waits until the message is running and the agent has said this much.
    pub(crate) async fn until_said(&self, session: SessionId, words: &str) {
        let mut follow = self.engine.views().follow(&self.me, session, Number(0)).await.unwrap();
        let mut heard = String::new();
        while let Some(told) = follow.next().await {
            if let engine::SessionUpdate::Live(live) = told {
                heard.push_str(&live.text);
            }
            if heard.contains(words) {
                return;
            }
        }
        panic!("the stream ended before {words:?}");
    }

    pub(crate) async fn ask(&self, verb: kernel::Request) -> Result<Granted, WayInError> {
        self.engine.way_in().ask(&self.me, verb, trace(None)).await
    }

    /// The acts of the engine itself, as the audit has them.
    pub(crate) fn own_acts(&self, verb: &str) -> Vec<AuditRow> {
        let is_own = |row: &AuditRow| row.by == Some(PersonId::ENGINE) && row.verb == verb;
        self.store.snapshot().audit.into_iter().filter(is_own).collect()
    }

    /// The agent loses the conversation of this session.
    pub(crate) async fn lose_conversation(&self, session: SessionId) {
        let rules = self.rules(session).await;
        let native = rules.iter().rev().find_map(|fact| match fact {
            Fact::Confirmed { native, .. } => Some(native),
            _ => None,
        });
        self.house.lose(native.expect("the agent has a name for it"));
    }

    pub(crate) async fn rules(&self, session: SessionId) -> Vec<Fact> {
        let facts =
            self.engine.views().facts(&self.me, session, Number(0), 100_000, usize::MAX).await.unwrap();
        let numbers: Vec<u64> = facts.iter().map(|shared| shared.fact.number.0).collect();
        assert_eq!(
            numbers,
            (1..=numbers.len() as u64).collect::<Vec<_>>(),
            "facts are numbered without a gap"
        );
        let rule = |entry: &StoredEntry| match entry {
            StoredEntry::Rule(fact) => Some(fact.clone()),
            StoredEntry::Story { .. } => None,
        };
        facts.iter().filter_map(|shared| rule(&shared.fact.entry)).collect()
    }
}

/// The schemes that the door of these stories owns.
pub(crate) const SCHEMES: &[Scheme] = &[
    Scheme {
        name: "api",
        form: "api:CLIENT/KEY",
        parts: &[2],
        person: None,
        client: Some(0),
        each_person: true,
    },
    Scheme {
        name: "web",
        form: "web:USER/CHAT",
        parts: &[2],
        person: Some(0),
        client: None,
        each_person: false,
    },
];

pub(crate) fn trace(key: Option<&str>) -> Trace {
    Trace {
        door: "test",
        correlation: "story".to_owned(),
        address: None,
        key: key.map(|key| CallerKey::Idempotency(key.to_owned())),
        schemes: SCHEMES,
    }
}

pub(crate) fn conversation(key: &str) -> To {
    To::Conversation(address(key))
}

pub(crate) fn address(key: &str) -> Address {
    format!("api:test/{key}").parse().unwrap()
}

pub(crate) fn state_and_why(view: &ReceiptView) -> (ReceiptState, Option<&'static str>) {
    (view.row.state, view.row.why)
}

async fn let_host_in(engine: &Engine) -> Principal {
    let (org, person) = (OrgId::from_bits(1), PersonId::from_bits(1));
    let (name, handle, role) = ("home".to_owned(), "ann".to_owned(), Role::Owner);
    let owner = NewPerson { person, handle, name: None, email: None, role };
    let roots = ["/srv", "/elsewhere", "/gone", "/lost"].map(String::from).to_vec();
    engine.people().host(NewOrg { org, name, owner, roots }).await.unwrap();
    let token = TokenRow::full(TokenId::from_bits(1), [1; 32], person, Purpose::Machine, engine.now());
    engine.people().add_token(token).await.unwrap();
    engine.people().principal([1; 32]).await.unwrap().unwrap()
}

/// The parts that stay when a process goes.
struct Parts<'a> {
    house: &'a Arc<House>,
    others: &'a [Arc<dyn Agent>],
    mint: &'a Arc<Counter>,
    clock: &'a Arc<TestClock>,
    seal: &'a Arc<Wax>,
    grove: &'a Arc<Grove>,
    scripts: &'a BTreeMap<String, Scripts>,
    doors: &'a [Arc<dyn Door>],
}

async fn start(
    disk: Disk,
    parts: Parts<'_>,
    letterbox: &Arc<Letterbox>,
    fence: &Arc<Fence>,
    limits: Limits,
    policy: Policy,
) -> Engine {
    let mut agents: Vec<Arc<dyn Agent>> = vec![Arc::new(InProcess::new(parts.house.clone()))];
    agents.extend(parts.others.iter().cloned());
    Engine::start(Wiring {
        store: Arc::new(Wrapped(Arc::new(disk))),
        cluster: LocalCluster::new(),
        agents,
        default_agent: "scripted".to_owned(),
        ground: Arc::new(Meadow),
        trees: parts.grove.clone(),
        scripts: parts.scripts.clone(),
        after_failure: BTreeMap::new(),
        doors: parts.doors.to_vec(),
        clock: parts.clock.clone(),
        mint: parts.mint.clone(),
        seal: parts.seal.clone(),
        call_back: Some(letterbox.clone()),
        wall: fence.clone(),
        trust_everyone: false,
        policy,
        limits,
    })
    .await
    .unwrap()
}
