//! A small world for one test: the real engine over the memory store, with the scripted agent in-process, in paused
//! time. It can crash and start again; what is durable stays.

use crate::disk::{Disk, Faults};
use agent::{Agent, House, HouseConfig, InProcess};
use engine::{
    CallerKey, Clock, Engine, Granted, Ground, IfNew, Inbound, Limits, Mint, Part, Receipt, ReceiptState,
    ReceiptView, Refused, Seal, StoredEntry, Trace, Verb, Wiring,
};
use kernel::{
    Address, Fact, MessageId, Moment, NodeId, Number, OrgId, PersonId, Policy, Principal, SessionId, To,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use store::MemoryStore;

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
        u128::from(self.0.fetch_add(1, Ordering::Relaxed)) + 1
    }
}

#[derive(Debug)]
struct Meadow;
impl Ground for Meadow {
    fn check(&self, directory: &str) -> Result<String, String> {
        if directory.starts_with("/gone") {
            Err("it is not there".to_owned())
        } else {
            Ok(directory.to_owned())
        }
    }
    fn own(&self, session: SessionId) -> String {
        format!("/own/{session}")
    }
    fn prepare(&self, directory: &str) -> Result<(), String> {
        if directory.starts_with("/lost") { Err("it is not there any more".to_owned()) } else { Ok(()) }
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
    fn seal(&self, about: &str, plain: &[u8]) -> Result<Vec<u8>, String> {
        let mirrored = plain.iter().rev().copied();
        Ok(self.mark(about).into_iter().chain(mirrored).collect())
    }
    fn open(&self, about: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        let mirrored = sealed.strip_prefix(self.mark(about).as_slice())?;
        Some(mirrored.iter().rev().copied().collect())
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
    pub(crate) limits: Limits,
    pub(crate) policy: Policy,
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
        let house = House::new(HouseConfig { seed: 7, linger_ms: 50 });
        let mint = Arc::new(Counter::default());
        let clock = Arc::new(TestClock(tokio::time::Instant::now()));
        let fresh = Principal {
            org: OrgId::from_bits(1),
            person: PersonId::from_bits(1),
            handle: "ann".to_owned(),
            client: None,
        };
        let faults = Arc::new(Faults::default());
        let seal = Arc::new(Wax::default());
        let disk = Disk { inner: store.clone(), faults: faults.clone() };
        let engine = start(disk, &house, &others, &mint, &clock, &seal, limits, policy).await;
        let me = engine.owner(fresh).await.unwrap();
        Self { seal, engine, store, house, others, faults, mint, clock, limits, policy, me }
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

    async fn start_again(&mut self) {
        self.store = self.store.reopen();
        let Self { store, house, others, faults, mint, clock, seal, limits, policy, .. } = &*self;
        let disk = Disk { inner: store.clone(), faults: faults.clone() };
        self.engine = start(disk, house, others, mint, clock, seal, *limits, *policy).await;
    }

    pub(crate) async fn say(&self, to: To, text: &str) -> Result<Receipt, Refused> {
        self.engine.send(self.inbound(to, text, None)).await
    }

    pub(crate) fn inbound(&self, to: To, text: &str, key: Option<&str>) -> Inbound {
        Inbound {
            by: self.me.clone(),
            to,
            if_new: IfNew::default(),
            parts: vec![Part::Text { text: text.to_owned() }],
            reply: None,
            trace: trace(key),
        }
    }

    /// Says it and waits for what becomes of it.
    pub(crate) async fn talk(&self, to: To, text: &str) -> ReceiptView {
        let receipt = self.say(to, text).await.unwrap();
        self.settled(receipt.accepted.message).await
    }

    pub(crate) async fn settled(&self, message: MessageId) -> ReceiptView {
        for _ in 0..600 {
            let view = self.engine.receipt_within(&self.me, message, Duration::from_secs(60)).await.unwrap();
            if view.row.state.is_final() {
                return view;
            }
        }
        let row = self.engine.receipt(&self.me, message).await.unwrap().row;
        panic!("{message} never reaches a final state: {row:?} {:#?}", self.rules(row.session).await);
    }

    /// Waits until the message is running and the agent has said this much.
    pub(crate) async fn until_said(&self, session: SessionId, words: &str) {
        let mut follow = self.engine.follow(&self.me, session, Number(0)).await.unwrap();
        let mut heard = String::new();
        while let Some(told) = follow.next().await {
            if let engine::Told::Live(live) = told {
                heard.push_str(&live.text);
            }
            if heard.contains(words) {
                return;
            }
        }
        panic!("the stream ended before {words:?}");
    }

    pub(crate) async fn ask(&self, verb: Verb) -> Result<Granted, Refused> {
        self.engine.ask(&self.me, verb, trace(None)).await
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
        let facts = self.engine.facts(&self.me, session, Number(0), 100_000, usize::MAX).await.unwrap();
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

pub(crate) fn trace(key: Option<&str>) -> Trace {
    Trace {
        door: "test",
        correlation: "story".to_owned(),
        key: key.map(|key| CallerKey::Idempotency(key.to_owned())),
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

#[allow(clippy::too_many_arguments)] // What a world is made of.
async fn start(
    disk: Disk,
    house: &Arc<House>,
    others: &[Arc<dyn Agent>],
    mint: &Arc<Counter>,
    clock: &Arc<TestClock>,
    seal: &Arc<Wax>,
    limits: Limits,
    policy: Policy,
) -> Engine {
    let mut agents: Vec<Arc<dyn Agent>> = vec![Arc::new(InProcess::new(house.clone()))];
    agents.extend(others.iter().cloned());
    Engine::start(Wiring {
        store: Arc::new(disk),
        agents,
        default_agent: "scripted".to_owned(),
        ground: Arc::new(Meadow),
        clock: clock.clone(),
        mint: mint.clone(),
        seal: seal.clone(),
        policy,
        limits,
    })
    .await
    .unwrap()
}
