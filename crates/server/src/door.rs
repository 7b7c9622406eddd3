//! The state that every handler can reach: the engine, the bounds, and the door's own few things that change.

use crate::ServerConfig;
use crate::connections::{ConnectionBounds, ConnectionPlace, Connections, Evicted};
use crate::hosts::Hosts;
use crate::metrics::Metrics;
use crate::middleware::CredentialCache;
use crate::oidc::Oidc;
use crate::places::{NoPlace, Place, Places};
use crate::problem::{ApiError, ApiResult};
use crate::rate_limit::RateLimiter;
use crate::sign_in::Cookies;
use crate::sign_in_limit::{SignInLimiter, network_of};
use crate::web_push::WebPush;
use api::Code;
use engine::Engine;
use kernel::PersonId;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{oneshot, watch};

/// After a rest, requests of so many seconds may come at once.
const BURST_SECONDS: u32 = 5;

/// Whoever finds no place may ask again after this time.
pub(crate) const AGAIN_SECONDS: u64 = 1;
pub(crate) const LATER: &str = "wait until something of it is over, then ask again";

/// The door, as handlers hold it. Cheap to clone.
pub(crate) type SharedDoor = Arc<HttpDoor>;

/// Whoever sends a body: a person, or, of those who are nobody yet, a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Sender {
    Person(PersonId),
    Network(Option<IpAddr>),
}

pub(crate) struct HttpDoor {
    pub(crate) engine: Engine,
    pub(crate) config: ServerConfig,
    pub(crate) hosts: Hosts,
    pub(crate) credentials: CredentialCache,
    /// The limit on requests of a credential, by its hash.
    pub(crate) requests: RateLimiter<[u8; 32]>,
    /// The limit on requests of an address without a good one.
    pub(crate) strangers: RateLimiter<IpAddr>,
    /// The limit on tries to sign in.
    pub(crate) sign_in_limiter: SignInLimiter,
    pub(crate) cookies: Cookies,
    /// The identity provider, if there is one.
    pub(crate) oidc: Option<Oidc>,
    /// Our side of Web Push, if people are told on their devices.
    pub(crate) push: Option<Arc<WebPush>>,
    pub(crate) metrics: Metrics,
    pub(crate) connections: Arc<Connections>,
    pub(crate) streams: Arc<Places<PersonId>>,
    pub(crate) looks: Arc<Places<PersonId>>,
    /// By bytes.
    pub(crate) bodies: Arc<Places<Sender>>,
    closing: watch::Sender<bool>,
}

impl HttpDoor {
    pub(crate) fn new(engine: Engine, config: ServerConfig, port: u16) -> std::io::Result<Self> {
        let limit_of = |count: u32| (count, Duration::from_secs(1), count.saturating_mul(BURST_SECONDS));
        let (requests, strangers) =
            (limit_of(config.requests_per_second), limit_of(config.strangers_per_second));
        Ok(Self {
            hosts: Hosts::new(&config.allowed_hosts, &config.listen, port, config.tls.is_some()),
            credentials: CredentialCache::new(engine.people()),
            requests: RateLimiter::new(requests.0, requests.1, requests.2),
            strangers: RateLimiter::new(strangers.0, strangers.1, strangers.2),
            sign_in_limiter: SignInLimiter::new(config.sign_ins_per_minute),
            cookies: Cookies::new(port),
            oidc: config.oidc.clone().map(Oidc::new).transpose()?,
            push: config.push.as_ref().map(|push| Arc::new(WebPush::new(push))),
            metrics: Metrics::new(),
            connections: Connections::new(ConnectionBounds::new(
                config.connections_max,
                config.connections_strangers_max,
                config.connections_per_address_max,
                config.connections_per_person_max,
            )),
            streams: Places::new(config.streams_max, config.streams_per_person_max),
            looks: Places::new(config.looks_max, config.looks_per_person_max),
            bodies: Places::new(config.body_bytes_max, config.body_bytes_per_person_max),
            closing: watch::Sender::new(false),
            engine,
            config,
        })
    }

    /// From now on streams end and waits are cut short.
    pub(crate) fn close(&self) {
        self.closing.send_replace(true);
    }

    /// Answers when the door is being closed.
    pub(crate) fn closing(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut closing = self.closing.subscribe();
        async move {
            // The sender lives as long as the door; if it is gone, so is the door.
            let _ = closing.wait_for(|closing| *closing).await;
        }
    }

    /// A place for one more look of that person at somebody's directory.
    pub(crate) fn take_look(&self, person: PersonId) -> ApiResult<Place<PersonId>> {
        self.looks.take(person).map_err(|no| {
            let words = match no {
                NoPlace::Full => "as many directories are being looked at as may be (limits.looks_max)",
                NoPlace::Own => {
                    "you are having as many directories looked at as one person may (limits.looks_per_person_max)"
                }
            };
            ApiError::new(Code::TooManyRequests, words).after(AGAIN_SECONDS, LATER)
        })
    }

    /// A place for one more connection from there, and the word if it has to go again. Whoever comes through a proxy that we trust
    /// is counted by nobody here: the proxy speaks for many.
    pub(crate) fn take_connection(&self, address: IpAddr) -> (ConnectionPlace, oneshot::Receiver<Evicted>) {
        let is_proxy = self.config.trusted_proxies.iter().any(|proxy| proxy.has(address.to_canonical()));
        self.connections.add(network_of(address), is_proxy)
    }
}
