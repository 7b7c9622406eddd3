//! Everything that is in one story, and how daemons come and go in it.
//!
//! A `Daemon` is one start of the whole engine on the shared contents. Whatever somebody asks of it runs in a task of
//! its own that dies with it, as a connection does; whoever asked hears nothing, and asks the next one again.

use crate::bug::Bug;
use crate::dice::Dice;
use crate::doors::{ChatDoor, ChatRoom};
use crate::forecast::Forecast;
use crate::ground::{CountingMint, FirmGround, JumpyClock, NoSeal, NoWall};
use crate::grove::{FaultyTrees, Grove};
use crate::leash::{AgentKind, Leash};
use crate::ledger::Ledger;
use crate::notes::Notes;
use crate::weather::{Sky, Weather};
use agent::{Agent, House, HouseConfig};
use engine::{Door, Engine, Limits, LocalCluster, Wiring};
use kernel::{Grantee, NodeId, OrgId, PersonId, Policy, Principal, Role};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use store::{MemoryStore, NewPerson, Outgoing, Store, Wrap, Wrapped};
use tokio::task::AbortHandle;

/// Nobody waits longer for a daemon to come up before asking again.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

pub(crate) const ORG: OrgId = OrgId::from_bits(1);
/// The org next door.
pub(crate) const NEXT_DOOR: OrgId = OrgId::from_bits(2);
/// Its people are counted from here.
const NEIGHBOURS_FROM: u128 = 101;

/// One start of the engine.
pub(crate) struct Daemon {
    pub(crate) engine: Engine,
    pub(crate) weather: Arc<Weather>,
    calls: Mutex<Vec<AbortHandle>>,
}

/// Everything that is in one story.
pub(crate) struct Town {
    pub(crate) notes: Arc<Notes>,
    pub(crate) clock: Arc<JumpyClock>,
    pub(crate) house: Arc<House>,
    pub(crate) sky: Arc<Sky>,
    pub(crate) people: Vec<Principal>,
    /// Those of the org next door.
    pub(crate) neighbours: Vec<Principal>,
    pub(crate) policy: Policy,
    pub(crate) limits: Limits,
    mint: Arc<CountingMint>,
    agents: Vec<Arc<dyn Agent>>,
    pub(crate) grove: Arc<Grove>,
    /// Where replies go, if their door is there.
    pub(crate) chat: Option<Arc<ChatRoom>>,
    /// The newest start.
    store: Mutex<MemoryStore>,
    /// Every daemon that answers, the newest last.
    up: Mutex<Vec<Arc<Daemon>>>,
}

impl Town {
    pub(crate) fn build(seed: u64, forecast: &mut Forecast, bug: Option<Bug>, tells: bool) -> Arc<Self> {
        let clock = Arc::new(JumpyClock::new());
        let notes = Arc::new(Notes::new(clock.clone(), tells));
        let house = House::new(HouseConfig { seed, linger_ms: forecast.linger_ms, ..HouseConfig::default() });
        let ledger = Ledger::new(notes.clone(), house.clone(), &forecast.limits);
        let (odds, doors) = (forecast.odds, forecast.ends_with_restart);
        let sky = Arc::new(Sky::new(odds, forecast.dice.fork(), doors, bug, ledger));
        let store = MemoryStore::new(NodeId::from_bits(1));
        let (trees, dice) = match &mut forecast.scopes {
            Some(scopes) => (Some(scopes.trees), scopes.dice.fork()),
            None => (None, Dice::new(0)),
        };
        let shared = forecast.limits.shared_directories;
        let grove = Grove::new(sky.clone(), house.clone(), trees, dice, shared);
        let mut leash = |kind| {
            let steering = forecast.scopes.as_mut().map(|scopes| (scopes.steering, scopes.dice.fork()));
            Arc::new(Leash::new(kind, house.clone(), store.clone(), grove.clone(), sky.clone(), steering))
                as Arc<dyn Agent>
        };
        let agents = match trees {
            Some(_) => vec![leash(AgentKind::Able), leash(AgentKind::Plain)],
            None => vec![leash(AgentKind::Able)],
        };
        let chat = forecast
            .doors
            .as_mut()
            .map(|doors| ChatRoom::new(doors.odds, doors.can_be_asked, doors.dice.fork(), sky.clone()));
        if trees.is_some() {
            store.root(ORG, "/srv", Grantee::Org);
        }
        Arc::new(Self {
            notes,
            clock,
            house,
            sky,
            people: (0..forecast.people).map(|at| store.let_in(ORG, person(at))).collect(),
            neighbours: (0..forecast.trades.as_ref().map_or(0, |trades| trades.neighbours))
                .map(|at| store.let_in(NEXT_DOOR, neighbour(at)))
                .collect(),
            policy: forecast.policy,
            limits: forecast.limits,
            mint: Arc::default(),
            agents,
            grove,
            chat,
            store: Mutex::new(store),
            up: Mutex::default(),
        })
    }

    pub(crate) fn store(&self) -> MemoryStore {
        self.store.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Starts a daemon under the next term, as often as it takes.
    pub(crate) async fn start(&self) -> Arc<Daemon> {
        loop {
            let store = self.store().reopen();
            *self.store.lock().unwrap_or_else(PoisonError::into_inner) = store.clone();
            let weather = Arc::new(Weather::new(store, self.sky.clone()));
            self.notes.tell(|| format!("a daemon starts, term {:x}", weather.inner().node().term.0));
            tokio::select! {
                biased;
                started = Engine::start(self.wiring(weather.clone())) => match started {
                    Ok(engine) => {
                        let daemon = Arc::new(Daemon { engine, weather, calls: Mutex::default() });
                        self.up().push(daemon.clone());
                        return daemon;
                    }
                    Err(refused) => self.notes.tell(|| format!("it could not: {refused}")),
                },
                () = weather.death() => {}
            }
            // A program that could not start is no more, whatever it had begun.
            weather.kill();
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    fn wiring(&self, weather: Arc<Weather>) -> Wiring {
        let open = |room: &Arc<ChatRoom>| ChatDoor::open(room.clone(), weather.clone()) as Arc<dyn Door>;
        let doors = self.chat.iter().map(open).collect();
        Wiring {
            store: Arc::new(Wrapped(weather.clone())),
            cluster: self.cluster(),
            agents: self.agents.clone(),
            default_agent: self.agents[0].name().to_owned(),
            ground: Arc::new(FirmGround),
            trees: Arc::new(FaultyTrees { grove: self.grove.clone(), weather }),
            scripts: std::collections::BTreeMap::new(),
            after_failure: std::collections::BTreeMap::new(),
            doors,
            clock: self.clock.clone(),
            mint: self.mint.clone(),
            seal: Arc::new(NoSeal),
            call_back: None,
            wall: Arc::new(NoWall),
            trust_everyone: false,
            policy: self.policy,
            limits: self.limits,
        }
    }

    /// Rings get lost like anything else.
    fn cluster(&self) -> Arc<LocalCluster> {
        let sky = self.sky.clone();
        LocalCluster::losing(move |session| sky.loses_ring(session))
    }

    /// True if every reply has left that goes by itself.
    pub(crate) fn is_delivered(&self) -> bool {
        self.chat.is_none() || !self.store().snapshot().outbox.iter().any(Outgoing::blocks)
    }

    /// The number of times a daemon was started.
    pub(crate) fn starts(&self) -> u64 {
        (self.store().node().term.0 >> 32) - 1
    }

    /// Ends a daemon at once, wherever it is.
    pub(crate) fn crash(&self, daemon: &Arc<Daemon>) {
        self.notes
            .tell(|| format!("the daemon of term {:x} is no more", daemon.weather.inner().node().term.0));
        daemon.weather.kill();
        daemon.engine.crash();
        daemon.calls().drain(..).for_each(|call| call.abort());
        self.up().retain(|other| !Arc::ptr_eq(other, daemon));
    }

    /// Asks some daemon that answers: mostly the newest, now and then one that does not know yet that it was replaced.
    pub(crate) async fn some_daemon(&self, roll: u64) -> Arc<Daemon> {
        loop {
            {
                let up = self.up();
                let newest = up.len().checked_sub(1);
                if let Some(newest) = newest {
                    let at = if roll.is_multiple_of(4) { roll as usize / 4 % up.len() } else { newest };
                    return up[at].clone();
                }
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    pub(crate) fn up(&self) -> MutexGuard<'_, Vec<Arc<Daemon>>> {
        self.up.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Daemon {
    /// Runs a call inside the daemon. None if the daemon died meanwhile.
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        call: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        if self.weather.is_dead() {
            return None;
        }
        let task = tokio::spawn(call);
        {
            let mut calls = self.calls();
            calls.retain(|call| !call.is_finished());
            calls.push(task.abort_handle());
        }
        task.await.ok()
    }

    /// The same for a call that ends, wherever it is, when the caller goes away.
    pub(crate) async fn call_while_here<T: Send + 'static>(
        &self,
        call: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let (gone, leaves) = tokio::sync::oneshot::channel::<()>();
        let answer = self.call(async move {
            tokio::select! {
                biased;
                _ = leaves => None,
                answer = call => Some(answer),
            }
        });
        let answer = answer.await.flatten();
        drop(gone);
        answer
    }

    fn calls(&self) -> MutexGuard<'_, Vec<AbortHandle>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whose org somebody is in.
pub(crate) fn org_of(person: PersonId) -> OrgId {
    if person.bits() < NEIGHBOURS_FROM { ORG } else { NEXT_DOOR }
}

fn neighbour(at: usize) -> NewPerson {
    let (person, handle) = (PersonId::from_bits(NEIGHBOURS_FROM + at as u128), format!("neighbour{at}"));
    let role = if at == 0 { Role::Owner } else { Role::Member };
    NewPerson { person, handle, name: None, email: None, role }
}

/// The first of them owns the org.
fn person(at: usize) -> NewPerson {
    let (person, handle) = (PersonId::from_bits(at as u128 + 1), format!("person{at}"));
    let role = if at == 0 { Role::Owner } else { Role::Member };
    NewPerson { person, handle, name: None, email: None, role }
}
