//! The HTTP door: who is asking, conversion to and from the wire, one match from refusal to status, metrics.
//!
//! A request comes in through `listen` (connections, `tls`, their bounds), passes `middleware` (name, origin, credential,
//! rate; with `hosts`, `proxies`, `rate_limit` and `sign_in_limit`), is read by `extract` and answered by the file of its
//! resource: `messages`, `sessions`, `facts` and so on. `wire` turns facts into bytes, once for all readers; `problem` turns
//! refusals into problems. `web_push` posts what people are told on their devices. `openapi` is the contract. Nothing here decides anything about sessions: that is the engine's.

mod agents;
mod approvals;
mod attachments;
mod audit;
mod bindings;
mod browser_app;
mod browser_stream;
mod connections;
mod cursor;
mod doctor;
mod door;
mod export_import;
mod extract;
mod facts;
mod grants;
mod groups;
mod heads;
mod health;
mod hosts;
mod link_page;
mod listen;
mod lookups;
mod marks;
mod me;
mod messages;
mod metrics;
mod middleware;
mod nodes;
mod oidc;
mod openapi;
mod orgs;
mod outbox;
mod people;
mod places;
mod problem;
mod proxies;
mod pushes;
mod queue;
mod rate_limit;
mod roots;
mod route;
mod schemes;
mod scope;
mod search;
mod sessions;
mod sign_in;
mod sign_in_limit;
mod stream;
mod tls;
mod tokens;
mod turns;
mod usage;
mod users;
mod wall;
mod web_push;
mod wire;
mod worktrees;

pub use doctor::Doctor;
pub use listen::{BoundServer, url_of};
pub use nodes::OwnProgram;
pub use oidc::{CreateAs, OidcConfig};
pub use openapi::document as openapi_document;
pub use proxies::Network;
pub use schemes::SCHEMES;
pub use tls::{Certificate, Tls, TlsError, TlsFiles};
pub use web_push::PushConfig;

use engine::Engine;
use kernel::Principal;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// The HTTP door, before it is opened.
#[derive(Debug, Clone)]
pub struct Server {
    /// The engine that it leads to.
    pub engine: Engine,
    /// Its settings.
    pub config: ServerConfig,
}

/// The settings of the HTTP door.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Where to listen, `HOST:PORT`; port 0 takes any free one.
    pub listen: String,
    /// The certificate to show; without one, connections are not encrypted.
    pub tls: Option<Tls>,
    /// Names besides localhost and the listening address under which clients may call us: `NAME` or `NAME:PORT`.
    pub allowed_hosts: Vec<String>,
    /// Whom the first link signs in: the person of this machine.
    pub owner: Principal,
    /// The program that we are.
    pub program: OwnProgram,
    /// Whoever looks the machine over when its person asks; without one nothing is found.
    pub doctor: Option<Arc<dyn Doctor>>,
    /// An identity provider at which people may sign in, too.
    pub oidc: Option<OidcConfig>,
    /// The settings of telling people on their devices; without them nobody is told.
    pub push: Option<PushConfig>,
    /// Proxies whose word on where a request comes from is taken.
    pub trusted_proxies: Vec<Network>,
    /// Requests of one credential in a second, five times as many at once; 0 is no limit.
    pub requests_per_second: u32,
    /// Requests without a good credential in a second, for each address, five times as many at once; 0 is no limit.
    pub strangers_per_second: u32,
    /// Tries to sign in, for each address, in a minute; 0 is no limit.
    pub sign_ins_per_minute: u32,
    /// Connections at once.
    pub connections_max: usize,
    /// Those that have shown no good credential, at most half of all; with more, the oldest of whoever has the most goes.
    pub connections_strangers_max: usize,
    /// Those of them from one address, of IPv6 of one /64; with more, the oldest of these goes. 0 is no bound of its own. A trusted
    /// proxy has none.
    pub connections_per_address_max: usize,
    /// Those on which one person has shown a credential; on further ones they are refused. 0 is no bound of its own.
    pub connections_per_person_max: usize,
    /// Streams at once; further ones are refused.
    pub streams_max: usize,
    /// Those of one person. 0 is no bound of its own.
    pub streams_per_person_max: usize,
    /// Requests at once that look at sessions' directories, or wait for something done there.
    pub looks_max: usize,
    /// Those of one person. 0 is no bound of its own.
    pub looks_per_person_max: usize,
    /// Bytes of bodies that are held at once.
    pub body_bytes_max: usize,
    /// Those of one person, or without a good credential of one address. 0 is no bound of its own.
    pub body_bytes_per_person_max: usize,
    /// The longest a peer may take to agree on encryption.
    pub handshake_max: Duration,
    /// The longest a peer may take to send a request's head, and a connection may be idle.
    pub head_max: Duration,
    /// The longest a peer may take to send a body.
    pub body_max: Duration,
    /// The longest a request may take, streams apart; above the longest wait for a receipt.
    pub request_max: Duration,
    /// The longest a peer may refuse to take bytes that are ready for it.
    pub stall_max: Duration,
    /// The longest silence on a stream.
    pub keep_alive: Duration,
    /// The longest requests may take to finish once the door is closed.
    pub grace: Duration,
}

impl ServerConfig {
    /// The usual bounds.
    pub fn new(listen: impl Into<String>, owner: Principal) -> Self {
        Self {
            listen: listen.into(),
            tls: None,
            allowed_hosts: Vec::new(),
            owner,
            program: OwnProgram::unknown(),
            doctor: None,
            oidc: None,
            push: None,
            trusted_proxies: Vec::new(),
            requests_per_second: 1_000,
            strangers_per_second: 20,
            sign_ins_per_minute: 10,
            connections_max: 8_192,
            connections_strangers_max: 2_048,
            connections_per_address_max: 2_048,
            connections_per_person_max: 2_048,
            streams_max: 4_096,
            streams_per_person_max: 1_024,
            looks_max: 256,
            looks_per_person_max: 32,
            body_bytes_max: 512 << 20,
            body_bytes_per_person_max: 64 << 20,
            handshake_max: Duration::from_secs(10),
            head_max: Duration::from_secs(30),
            body_max: Duration::from_secs(30),
            request_max: Duration::from_secs(75),
            stall_max: Duration::from_secs(30),
            keep_alive: Duration::from_secs(15),
            grace: Duration::from_secs(10),
        }
    }
}

impl Server {
    /// Takes the address. Nobody is answered before `BoundServer::serve`, but connections may already queue up.
    pub async fn bind(self) -> std::io::Result<BoundServer> {
        let listener = TcpListener::bind(&self.config.listen).await?;
        self.take(listener)
    }

    /// The same with an address that was taken before.
    pub fn take(self, listener: TcpListener) -> std::io::Result<BoundServer> {
        BoundServer::new(self.engine, self.config, listener)
    }
}
