//! The client of the command line: one method per endpoint, and a follower of facts.
//!
//! Every change carries an `Idempotency-Key` of its own, so asking again is harmless: when the server cannot be
//! reached, says 503 or goes away in the middle, the same request is sent again with the same key, a few times, each
//! wait longer than the one before. What the server refuses is an answer and comes back as a `Problem`.

mod endpoints;
mod export;
mod follow;
mod people;
mod sse;

pub use endpoints::{ChangeOutcome, ChoreAnswer};
pub use export::AuditExport;
pub use follow::{FactStream, FollowItem};

use crate::tls::{TlsRefusal, Trust, client_config};
use crate::{Code, Problem};
use reqwest::{Method, RequestBuilder, StatusCode, header};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// The times a request is sent before we give up.
const TRIES_MAX: u32 = 6;
/// The wait before the second try; it doubles each time.
const BACK_OFF: Duration = Duration::from_millis(100);
/// The longest wait that a server may ask for and that we keep; who is asked to wait longer is told so.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(5);
/// The longest time for connecting.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// The silence of a connection after which the other side is probed, and the time that it has to answer. The system counts seconds.
const PROBE_EVERY: Duration = Duration::from_secs(1);
/// The longest time for a request; above the longest wait for a receipt.
const REQUEST_MAX: Duration = Duration::from_secs(90);
/// The longest answer that we read.
const ANSWER_BYTES_MAX: usize = 32 * 1024 * 1024;

/// A server, and the credential to use there. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    base: String,
    token: String,
    door: &'static str,
}

impl std::fmt::Debug for Client {
    /// Never the credential.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("base", &self.base).finish_non_exhaustive()
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server said no. An answer, with a code and a hint.
    #[error("{0}")]
    Refused(Box<Problem>),
    /// The server cannot be reached. Is it running?
    #[error("cannot reach {url}: {reason}")]
    Unreachable { url: String, reason: String },
    /// Somebody answered who may not be the server.
    #[error("cannot trust {url}: {why}")]
    Untrusted { url: String, why: TlsRefusal },
    /// Something answered that does not speak our language. Is it another program, or another version?
    #[error("{url} answered something we do not understand: {reason}")]
    Garbled { url: String, reason: String },
}

impl ClientError {
    /// The problem, if it is one.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Refused(problem) => Some(problem),
            Self::Unreachable { .. } | Self::Untrusted { .. } | Self::Garbled { .. } => None,
        }
    }
}

/// A key for one wish: sent again under the same key it is the same wish, and what goes on for it is joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeKey(String);

impl ChangeKey {
    /// One that nobody has used.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Self(uuid::Uuid::new_v4().simple().to_string())
    }
}

/// The answer of an endpoint.
pub(crate) struct ClientResponse<T> {
    pub(crate) status: StatusCode,
    pub(crate) repeated: bool,
    pub(crate) body: T,
}

/// The same before it is read.
struct RawResponse {
    status: StatusCode,
    repeated: bool,
    bytes: Vec<u8>,
}

impl Client {
    /// A client of the server at `base` (`http://127.0.0.1:4747`, without a path), which believes the authorities of this
    /// system.
    pub fn new(base: impl Into<String>, token: impl Into<String>) -> Result<Self, ClientError> {
        Self::trusting(base, token, Trust::Authorities { more: None })
    }

    /// The same, which believes these. Where nothing is encrypted, there is nobody to believe.
    pub fn trusting(
        base: impl Into<String>,
        token: impl Into<String>,
        trust: Trust,
    ) -> Result<Self, ClientError> {
        let base = base.into().trim_end_matches('/').to_owned();
        let trust = if base.starts_with("https://") { trust } else { Trust::Nobodys };
        let tls = client_config(&trust)
            .map_err(|why| ClientError::Untrusted { url: base.clone(), why: TlsRefusal::Other(why) })?;
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT_MAX)
            .tcp_nodelay(true)
            // A machine that is gone says no word of it; whoever follows is to know within two seconds.
            .tcp_keepalive(PROBE_EVERY)
            .tcp_keepalive_interval(PROBE_EVERY)
            .tcp_keepalive_retries(1)
            .tls_backend_preconfigured(tls)
            // A local server is asked directly, whatever the environment says about proxies.
            .no_proxy()
            .build()
            .map_err(|error| ClientError::Unreachable { url: base.clone(), reason: words(&error) })?;
        Ok(Self { http, base, token: token.into().trim().to_owned(), door: "cli" })
    }

    /// Where the server is.
    pub fn base(&self) -> &str {
        &self.base
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request =
            self.http.request(method, format!("{}{path}", self.base)).header("X-Homing-Door", self.door);
        match self.token.as_str() {
            // Whoever signs in has none yet.
            "" => request,
            token => request.header(header::AUTHORIZATION, format!("Bearer {token}")),
        }
    }

    async fn get<T: DeserializeOwned>(&self, path: &str, query: &impl Serialize) -> Result<T, ClientError> {
        let request = self.request(Method::GET, path).query(query);
        Ok(self.send(request).await?.body)
    }

    /// Sends a change, with a key of its own.
    async fn change<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<ClientResponse<T>, ClientError> {
        self.change_under(&ChangeKey::new(), method, path, body).await
    }

    /// Sends a change under a key that it may have been sent under before.
    async fn change_under<T: DeserializeOwned>(
        &self,
        key: &ChangeKey,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<ClientResponse<T>, ClientError> {
        let mut request = self.request(method, path).header("Idempotency-Key", &key.0);
        if let Some(body) = body {
            request = request.json(body);
        }
        self.send(request).await
    }

    /// Takes something away; what exactly, the query says.
    async fn take<T: DeserializeOwned>(&self, path: &str, query: &impl Serialize) -> Result<T, ClientError> {
        let key = uuid::Uuid::new_v4().simple().to_string();
        let request = self.request(Method::DELETE, path).query(query).header("Idempotency-Key", key);
        Ok(self.send(request).await?.body)
    }

    async fn send<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
    ) -> Result<ClientResponse<T>, ClientError> {
        let mut wait = BACK_OFF;
        for _ in 1..TRIES_MAX {
            let again =
                request.try_clone().ok_or_else(|| self.garbled("a request that cannot be repeated"))?;
            match self.send_once(again).await {
                Err(ClientError::Unreachable { .. }) => tokio::time::sleep(wait).await,
                Err(ClientError::Refused(problem)) if is_passing(&problem) => {
                    tokio::time::sleep(wait.max(asked_for(&problem))).await;
                }
                answered => return answered,
            }
            wait *= 2;
        }
        self.send_once(request).await
    }

    async fn send_once<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
    ) -> Result<ClientResponse<T>, ClientError> {
        let RawResponse { status, repeated, bytes } = self.fetch(request).await?;
        let body = serde_json::from_slice(&bytes).map_err(|error| self.garbled(&error.to_string()))?;
        Ok(ClientResponse { status, repeated, body })
    }

    async fn fetch(&self, request: RequestBuilder) -> Result<RawResponse, ClientError> {
        let mut response = request.timeout(REQUEST_MAX).send().await.map_err(|error| self.failed(&error))?;
        let status = response.status();
        let repeated = response.headers().contains_key("Idempotent-Replayed");
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.failed(&error))? {
            if bytes.len() + chunk.len() > ANSWER_BYTES_MAX {
                return Err(self.garbled("an answer without end"));
            }
            bytes.extend_from_slice(&chunk);
        }
        if !status.is_success() {
            return Err(self.refused(status, &bytes));
        }
        Ok(RawResponse { status, repeated, bytes })
    }

    fn refused(&self, status: StatusCode, body: &[u8]) -> ClientError {
        match serde_json::from_slice::<Problem>(body) {
            Ok(problem) => ClientError::Refused(Box::new(problem)),
            Err(_) => self.garbled(&format!("status {status} without a problem in it")),
        }
    }

    /// Why there is no answer.
    fn failed(&self, error: &reqwest::Error) -> ClientError {
        match TlsRefusal::of(error) {
            Some(why) => ClientError::Untrusted { url: self.base.clone(), why },
            None => self.unreachable(words(error)),
        }
    }

    fn unreachable(&self, reason: String) -> ClientError {
        ClientError::Unreachable { url: self.base.clone(), reason }
    }

    fn garbled(&self, reason: &str) -> ClientError {
        ClientError::Garbled { url: self.base.clone(), reason: reason.to_owned() }
    }
}

/// True if the same request may be answered soon.
fn is_passing(problem: &Problem) -> bool {
    match problem.code {
        Code::TooManyRequests => asked_for(problem) <= RETRY_AFTER_MAX,
        _ => problem.status == 503,
    }
}

fn asked_for(problem: &Problem) -> Duration {
    Duration::from_secs(problem.retry_after.unwrap_or_default())
}

/// The innermost cause says what happened; the outer ones repeat the URL.
fn words(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
