//! A small world for one test: a server on a port of its own, with somebody who may ask.

use agent::{House, HouseConfig, InProcess};
use api::client::Client;
use api::tls::Trust;
use engine::{Clock, Engine, Ground, IfNew, Inbound, Limits, Mint, Part, TokenRow, Trace, Wiring};
use kernel::{MessageId, Moment, NodeId, OrgId, PersonId, Policy, Principal, SessionId, To};
use server::{Server, ServerConfig};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use store::MemoryStore;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub(crate) const TOKEN: &str = "secret-of-ann";
/// The token of a program that may only call itself `robot`.
pub(crate) const ROBOT: &str = "secret-of-a-robot";

#[derive(Debug)]
struct TestClock(Instant);
impl Clock for TestClock {
    fn now(&self) -> Moment {
        Moment(1_000_000_000_000 + self.0.elapsed().as_millis() as u64)
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
        assert_ne!(directory, "/panic", "as the test wants it");
        if directory.starts_with("/gone") { Err("it is not there".into()) } else { Ok(directory.into()) }
    }
    fn own(&self, session: SessionId) -> String {
        format!("/own/{session}")
    }
    fn prepare(&self, _: &str) -> Result<(), String> {
        Ok(())
    }
}

/// Hides nothing from a test.
#[derive(Debug)]
struct Wax;
impl engine::Seal for Wax {
    fn seal(&self, about: &str, plain: &[u8]) -> Result<Vec<u8>, String> {
        Ok([about.as_bytes(), plain].concat())
    }
    fn open(&self, about: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        sealed.strip_prefix(about.as_bytes()).map(<[u8]>::to_vec)
    }
}

pub(crate) struct World {
    pub(crate) url: String,
    pub(crate) sign_in: String,
    pub(crate) engine: Engine,
    pub(crate) store: MemoryStore,
    pub(crate) http: reqwest::Client,
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<()>,
}

pub(crate) fn me() -> Principal {
    let (org, person) = (OrgId::from_bits(1), PersonId::from_bits(1));
    Principal { org, person, handle: "ann".into(), client: None }
}

pub(crate) fn somebody_else() -> Principal {
    Principal { person: PersonId::from_bits(2), handle: "bob".into(), ..me() }
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(Limits::default(), |_| {}).await
    }

    pub(crate) async fn with(limits: Limits, set_up: impl FnOnce(&mut ServerConfig)) -> Self {
        let store = MemoryStore::new(NodeId::from_bits(1));
        let engine = start(&store, limits).await;
        let me = engine.owner(me()).await.unwrap();
        for (secret, purpose, client) in
            [(TOKEN, TokenRow::MACHINE, None), (ROBOT, "client", Some("robot".to_owned()))]
        {
            let hash = Sha256::digest(secret.as_bytes()).into();
            let (person, made_at) = (me.person, engine.now());
            let token = TokenRow { hash, person, purpose, client, made_at, expires: None };
            engine.add_token(token).await.unwrap();
        }
        Self::open(engine, store, "127.0.0.1:0", set_up).await
    }

    async fn open(
        engine: Engine,
        store: MemoryStore,
        listen: &str,
        set_up: impl FnOnce(&mut ServerConfig),
    ) -> Self {
        let mut config = ServerConfig::new(listen, me().person);
        config.grace = Duration::from_secs(3);
        set_up(&mut config);
        let bound = Server { engine: engine.clone(), config }.bind().await.unwrap();
        let (url, sign_in) = (bound.url(), bound.sign_in_link());
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn(bound.serve(async {
            let _ = stopped.await;
        }));
        let redirect = reqwest::redirect::Policy::none();
        let tls = api::tls::client_config(&Trust::Nobodys).unwrap();
        let http = reqwest::Client::builder().tls_backend_preconfigured(tls);
        let http = http.no_proxy().redirect(redirect).build().unwrap();
        Self { url, sign_in, engine, store, http, stop: Some(stop), served }
    }

    /// The server goes, and another one comes on the same port with what was durable.
    pub(crate) async fn restart(mut self) -> Self {
        self.close().await;
        self.engine.shutdown().await;
        let store = self.store.reopen();
        let engine = start(&store, Limits::default()).await;
        Self::open(engine, store, self.host(), |_| {}).await
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
        Client::new(&self.url, TOKEN).unwrap()
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
        let trace = Trace { door: "test", correlation: "other".into(), key: None };
        let parts = vec![Part::Text { text: text.into() }];
        let (to, if_new) = (To::New, IfNew::default());
        let inbound = Inbound { by: somebody_else(), to, if_new, parts, reply: None, trace };
        let accepted = self.engine.send(inbound).await.unwrap().accepted;
        (accepted.session, accepted.message)
    }
}

async fn start(store: &MemoryStore, limits: Limits) -> Engine {
    // Ids go on where those before a restart ended.
    static MINTED: AtomicU64 = AtomicU64::new(0);
    let mint = Counter(AtomicU64::new(MINTED.fetch_add(1_000_000, Ordering::Relaxed)));
    let agent = InProcess::new(House::new(HouseConfig { seed: 7, linger_ms: 50 }));
    let wiring = Wiring {
        store: Arc::new(store.clone()),
        agents: vec![Arc::new(agent), Arc::new(crate::accounts::Keyed::new())],
        default_agent: "scripted".to_owned(),
        ground: Arc::new(Meadow),
        clock: Arc::new(TestClock(Instant::now())),
        mint: Arc::new(mint),
        seal: Arc::new(Wax),
        policy: Policy::default(),
        limits,
    };
    Engine::start(wiring).await.unwrap()
}
