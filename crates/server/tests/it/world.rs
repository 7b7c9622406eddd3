//! A small world for one test: a server on a port of its own, with somebody who may ask.

use crate::grove::Grove;
use agent::{House, HouseConfig, InProcess};
use api::client::Client;
use api::tls::Trust;
use engine::{
    AddPerson, ChainKey, Clock, Engine, Ground, IfNew, Inbound, Limits, LocalCluster, MessagePart, Mint,
    NewOrg, NewPerson, Proof, Purpose, SignInFor, TokenRow, Trace, WallProver, Wiring, hash_of,
};
use kernel::{
    GroundPath, MessageId, Moment, NodeId, OrgId, PersonId, Policy, Principal, Role, SessionId, To, TokenId,
};
use server::{Server, ServerConfig};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use store::{MemoryStore, Store};
use testkit::Port;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{OnceCell, oneshot};
use tokio::task::JoinHandle;

pub(crate) const TOKEN: &str = "secret-of-ann";
/// The token of a program that may only call itself `robot`.
pub(crate) const ROBOT: &str = "secret-of-a-robot";

/// Goes like any clock, and further if a test wants it to.
#[derive(Debug)]
pub(crate) struct TestClock {
    began: Instant,
    ahead_ms: AtomicU64,
}

impl TestClock {
    pub(crate) fn new() -> Self {
        Self { began: Instant::now(), ahead_ms: AtomicU64::new(0) }
    }

    pub(crate) fn pass(&self, time: Duration) {
        self.ahead_ms.fetch_add(time.as_millis() as u64, Ordering::Relaxed);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Moment {
        let ahead = self.ahead_ms.load(Ordering::Relaxed);
        Moment(1_000_000_000_000 + ahead + self.began.elapsed().as_millis() as u64)
    }
}

#[derive(Debug, Default)]
struct Counter(AtomicU64);
impl Mint for Counter {
    fn bits(&self) -> u128 {
        u128::from(self.0.fetch_add(1, Ordering::Relaxed)) + 1
    }
    fn secret(&self) -> [u8; 32] {
        let mut bytes = [7; 32];
        bytes[..16].copy_from_slice(&self.bits().to_be_bytes());
        bytes
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
        assert_ne!(directory, "/panic", "as the test wants it");
        if directory.starts_with("/gone") {
            Err(engine::GroundError::Unfit("it is not there".into()))
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
        Ok(directory.clone())
    }
}

/// Hides nothing from a test.
#[derive(Debug)]
struct Wax;
impl engine::Seal for Wax {
    fn seal(&self, about: &str, plain: &[u8]) -> Result<Vec<u8>, engine::SealError> {
        Ok([about.as_bytes(), plain].concat())
    }
    fn open(&self, about: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        sealed.strip_prefix(about.as_bytes()).map(<[u8]>::to_vec)
    }
    fn chain_key(&self) -> ChainKey {
        ChainKey([3; 32])
    }
}

pub(crate) struct World {
    pub(crate) url: String,
    pub(crate) sign_in: String,
    pub(crate) engine: Engine,
    pub(crate) store: MemoryStore,
    pub(crate) http: reqwest::Client,
    pub(crate) fence: Arc<Fence>,
    pub(crate) grove: Arc<Grove>,
    clock: Arc<TestClock>,
    port: Arc<Port>,
    bob: OnceCell<Somebody>,
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<()>,
}

/// Ann, whose machine it is.
pub(crate) const ANN: PersonId = PersonId::from_bits(1);

/// Somebody who is in, and how the server knows them.
#[derive(Debug, Clone)]
pub(crate) struct Somebody {
    pub(crate) token: String,
    pub(crate) by: Principal,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(Limits::default(), |_| {}).await
    }

    pub(crate) async fn with(limits: Limits, set_up: impl FnOnce(&mut ServerConfig)) -> Self {
        let store = MemoryStore::new(NodeId::from_bits(1));
        let fence = Arc::new(Fence::default());
        let (clock, grove) = (Arc::new(TestClock::new()), Arc::new(Grove::default()));
        let engine = start(&store, limits, fence.clone(), clock.clone(), grove.clone()).await;
        let owner =
            NewPerson { person: ANN, handle: "ann".into(), name: None, email: None, role: Role::Owner };
        let org = OrgId::from_bits(1);
        // In a test one may work anywhere.
        let me = NewOrg { org, name: "ann".into(), owner, roots: vec!["/".into()] };
        engine.people().host(me).await.unwrap();
        for (id, secret, purpose, client) in
            [(1, TOKEN, Purpose::Machine, None), (2, ROBOT, Purpose::Api, Some("robot".to_owned()))]
        {
            let token = TokenId::from_bits(id);
            let full = TokenRow::full(token, hash_of(secret), ANN, purpose, engine.now());
            engine.people().add_token(TokenRow { client, ..full }).await.unwrap();
        }
        Self::open(engine, store, fence, clock, grove, Arc::new(Port::reserve()), set_up).await
    }

    async fn open(
        engine: Engine,
        store: MemoryStore,
        fence: Arc<Fence>,
        clock: Arc<TestClock>,
        grove: Arc<Grove>,
        port: Arc<Port>,
        set_up: impl FnOnce(&mut ServerConfig),
    ) -> Self {
        let me = engine.people().principal(hash_of(TOKEN)).await.unwrap().unwrap();
        let mut config = ServerConfig::new(port.address().to_string(), me);
        config.grace = Duration::from_secs(3);
        set_up(&mut config);
        let bound = Server { engine: engine.clone(), config }.bind().await.unwrap();
        let (url, sign_in) = (bound.url(), bound.sign_in().await.unwrap().0);
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn(bound.serve(async {
            let _ = stopped.await;
        }));
        let redirect = reqwest::redirect::Policy::none();
        let tls = api::tls::client_config(&Trust::Nobodys).unwrap();
        let http = reqwest::Client::builder().tls_backend_preconfigured(tls);
        let http = http.no_proxy().redirect(redirect).build().unwrap();
        let bob = OnceCell::new();
        Self { url, sign_in, engine, store, http, fence, grove, clock, port, bob, stop: Some(stop), served }
    }

    /// The server goes, and another one comes on the same port with what was durable.
    pub(crate) async fn restart(mut self) -> Self {
        self.close().await;
        self.engine.shutdown().await;
        let store = self.store.reopen();
        let (fence, clock, grove) = (self.fence.clone(), self.clock.clone(), self.grove.clone());
        let engine = start(&store, Limits::default(), fence.clone(), clock.clone(), grove.clone()).await;
        Self::open(engine, store, fence, clock, grove, self.port.clone(), |_| {}).await
    }

    /// Lets time pass, for the engine and its credentials.
    pub(crate) fn pass(&self, time: Duration) {
        self.clock.pass(time);
    }

    /// Closes the door, and waits until it is closed.
    pub(crate) async fn close(&mut self) {
        let _ = self.stop.take().map(|stop| stop.send(()));
        (&mut self.served).await.unwrap();
    }

    pub(crate) fn host(&self) -> &str {
        self.url.split_once("://").unwrap().1
    }

    pub(crate) fn client(&self) -> Client {
        self.client_of(TOKEN)
    }

    pub(crate) fn client_of(&self, token: &str) -> Client {
        Client::new(&self.url, token).unwrap()
    }

    /// Lets somebody in, by a link.
    pub(crate) async fn let_in(&self, handle: &str, role: Role) -> Somebody {
        let me = self.engine.people().principal(hash_of(TOKEN)).await.unwrap().unwrap();
        let add = AddPerson { handle: handle.into(), name: None, email: None, role };
        let (_, link) = self.engine.people().add_person(&me, add, trace()).await.unwrap();
        let at = SignInFor { purpose: Purpose::Cli, name: None };
        let signed = self.engine.people().sign_in_by_link(link.reveal(), at, trace()).await.unwrap();
        let by = self.engine.people().principal(signed.secret.hash()).await.unwrap().unwrap();
        Somebody { token: signed.secret.reveal().to_owned(), by }
    }

    /// Asks with the right token.
    pub(crate) fn ask(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        let method = method.parse().unwrap();
        self.http.request(method, format!("{}{path}", self.url)).bearer_auth(TOKEN)
    }

    /// Sends bytes as they are, and reads until the server closes the connection.
    pub(crate) async fn raw(&self, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.host()).await.unwrap();
        stream.write_all(request).await.unwrap();
        let mut answer = Vec::new();
        let read = stream.read_to_end(&mut answer);
        tokio::time::timeout(Duration::from_secs(20), read).await.unwrap().unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Somebody else's session, with a message in it.
    pub(crate) async fn foreign(&self, text: &str) -> (SessionId, MessageId) {
        let bob = self.bob.get_or_init(|| self.let_in("bob", Role::Member)).await;
        let parts = vec![MessagePart::Text { text: text.into() }];
        let (to, if_new) = (To::New, IfNew::default());
        let inbound = Inbound {
            by: bob.by.clone(),
            to,
            if_new,
            expected: None,
            parts,
            reply: None,
            delivery: kernel::Delivery::Queue,
            attachments: Vec::new(),
            unattended: false,
            under: None,
            trace: trace(),
        };
        let accepted = self.engine.way_in().send(inbound).await.unwrap().accepted;
        (accepted.session, accepted.message)
    }
}

pub(crate) fn trace() -> Trace {
    Trace { door: "test", correlation: "test".into(), address: None, key: None, schemes: server::SCHEMES }
}

async fn start(
    store: &MemoryStore,
    limits: Limits,
    fence: Arc<Fence>,
    clock: Arc<TestClock>,
    trees: Arc<Grove>,
) -> Engine {
    let wiring = Wiring { trees, ..wiring(Arc::new(store.clone()), limits, fence, clock) };
    Engine::start(wiring).await.unwrap()
}

/// The wiring of an engine in a test.
pub(crate) fn wiring(
    store: Arc<dyn Store>,
    limits: Limits,
    fence: Arc<Fence>,
    clock: Arc<TestClock>,
) -> Wiring {
    // Ids go on where those before a restart ended.
    static MINTED: AtomicU64 = AtomicU64::new(0);
    let mint = Counter(AtomicU64::new(MINTED.fetch_add(1_000_000, Ordering::Relaxed)));
    let agent = InProcess::new(House::new(HouseConfig { seed: 7, linger_ms: 50, ..HouseConfig::default() }));
    Wiring {
        store,
        cluster: LocalCluster::new(),
        agents: vec![Arc::new(agent), Arc::new(crate::accounts::Keyed::new())],
        default_agent: "scripted".to_owned(),
        ground: Arc::new(Meadow),
        trees: Arc::new(Grove::default()),
        scripts: std::collections::BTreeMap::new(),
        after_failure: std::collections::BTreeMap::new(),
        doors: Vec::new(),
        clock,
        mint: Arc::new(mint),
        seal: Arc::new(Wax),
        call_back: None,
        wall: fence,
        trust_everyone: false,
        policy: Policy::default(),
        limits,
    }
}
