//! The layer that every request passes before anybody looks at what it wants: our name, its origin, its credential.
//!
//! Closed by default: only what `is_open` lists can be had without a credential, from the same machine too. The order
//! is name, origin, credential, so that a page of another site learns nothing, not even whether a credential is good.

use crate::browser_app;
use crate::connections::ConnectionHandle;
use crate::door::{AGAIN_SECONDS, HttpDoor, LATER, SharedDoor};
use crate::extract::RequestMeta;
use crate::places::NoPlace;
use crate::problem::{ApiError, ApiResult};
use crate::proxies::{Peer, RequestSource};
use crate::rate_limit::RetryAfter;
use crate::sign_in_limit::network_of;
use api::Code;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use engine::{People, Thing, Trace};
use futures_util::FutureExt;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use kernel::Principal;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tracing::Instrument;

/// The time for which a credential that was found good is taken for good without asking the store.
const KNOWN_MAX: Duration = Duration::from_millis(500);
/// The number of them that are kept.
const KNOWN_COUNT_MAX: usize = 256;
/// Names under which others take a secret from the query. We never do.
const SECRET_NAMES: [&str; 7] =
    ["token", "access_token", "auth_token", "bearer", "api_key", "apikey", "authorization"];
/// The time for which a browser that was here encrypted shall come back encrypted only.
const STRICT: &str = "max-age=31536000";
/// The longest correlation id that we take over from a caller.
const CORRELATION_LENGTH_MAX: usize = 64;

/// Every request passes here, in and out.
pub(crate) async fn middleware(State(door): State<SharedDoor>, mut request: Request, next: Next) -> Response {
    let began = Instant::now();
    let connection = request.extensions().get::<ConnectionHandle>().cloned();
    let _under_way = connection.as_ref().map(ConnectionHandle::begin);
    let meta = meta_of(&door, &request);
    let is_strict = meta.secure && has_public_name(request.headers());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let span = tracing::info_span!(
        "request",
        correlation = %meta.correlation,
        method = %request.method(),
        route = route.as_ref().map_or("none", MatchedPath::as_str),
    );
    let correlation = HeaderValue::from_str(&meta.correlation);
    request.extensions_mut().insert(meta);
    let passed = AssertUnwindSafe(pass(&door, request, next)).catch_unwind();
    let mut response =
        match tokio::time::timeout(door.config.request_max, passed).instrument(span.clone()).await {
            Ok(Ok(response)) => response,
            Ok(Err(_)) => {
                // The hook has said where; this says for whom. The others must not suffer.
                span.in_scope(|| tracing::error!("a handler panicked"));
                ApiError::new(Code::Internal, "something went wrong that should not").into_response()
            }
            Err(_) => ApiError::new(Code::Unavailable, "this took too long").into_response(),
        };
    if let Ok(correlation) = correlation {
        response.headers_mut().insert(HeaderName::from_static("x-correlation-id"), correlation);
    }
    guard(response.headers_mut(), is_strict);
    let status = response.status();
    span.in_scope(|| {
        if status.is_server_error() {
            tracing::warn!(status = status.as_u16(), "answered");
        } else {
            tracing::debug!(status = status.as_u16(), "answered");
        }
    });
    door.metrics.count(route.as_ref().map_or("none", MatchedPath::as_str), status.as_u16(), began.elapsed());
    response
}

async fn pass(door: &SharedDoor, mut request: Request, next: Next) -> Response {
    let meta = request.extensions().get::<RequestMeta>();
    let (address, secure) = (meta.and_then(|meta| meta.address), meta.is_some_and(|meta| meta.secure));
    let admitted = admit(door, &request, secure);
    let is_cookie = matches!(admitted, Ok(Admitted::Holder { is_cookie: true, .. }));
    let by = match who(door, admitted, address).await {
        Ok(by) => by,
        Err(error) => return error.into_response(),
    };
    if let Some(by) = &by {
        if let Some(connection) = request.extensions().get::<ConnectionHandle>()
            && let Err(no) = connection.is_of(by.person)
        {
            return too_many_connections(no).into_response();
        }
        request.extensions_mut().insert(by.clone());
    }
    let wish = read_of(&request);
    let mut response = next.run(request).await;
    if let (Some((thing, trace)), Some(by)) = (wish, &by) {
        note_refused_read(door, by, thing, &trace, &response);
    }
    if let Some(by) = by.filter(|_| is_cookie) {
        renew(door, &by, &mut response, secure).await;
    }
    response
}

/// The thing to be read, if it is named by its id in the path; and by which way.
fn read_of(request: &Request) -> Option<(Thing, Trace)> {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    let path = request.uri().path().strip_prefix("/api/v1/").filter(|_| reads)?;
    let thing = path.split('/').nth(1).and_then(Thing::parse)?;
    Some((thing, request.extensions().get::<RequestMeta>()?.trace()))
}

/// That somebody may not read this is in the audit a moment later, so that the answer takes as long as for what is not there.
fn note_refused_read(door: &HttpDoor, by: &Principal, thing: Thing, trace: &Trace, response: &Response) {
    let code = response.extensions().get::<Code>();
    if let Some(code @ (Code::NotFound | Code::NotAllowed | Code::RightMissing)) = code {
        door.engine.views().read_refused(by, thing, code.word(), trace);
    }
}

/// Gives a browser another secret if its own has aged. If that fails, the next answer tries again.
async fn renew(door: &HttpDoor, by: &Principal, response: &mut Response, secure: bool) {
    match door.engine.people().rotate(by).await {
        Ok(Some(secret)) => door.cookies.put_signed_in(response.headers_mut(), secret.reveal(), secure),
        Ok(None) => {}
        Err(refused) => tracing::debug!(%refused, "a browser keeps its secret for now"),
    }
}

/// The principal who asks, if they have to say so. Each credential has its limit; so has each address for requests
/// without a good one, which never get in the way of those with one.
async fn who(
    door: &HttpDoor,
    admitted: ApiResult<Admitted>,
    address: Option<IpAddr>,
) -> ApiResult<Option<Arc<Principal>>> {
    let error = match admitted {
        Ok(Admitted::Anybody) => return Ok(None),
        Ok(Admitted::Holder { hash, .. }) => match door.credentials.who(door, hash).await? {
            Some(by) => {
                return door
                    .requests
                    .take(&hash, Instant::now())
                    .map(|()| Some(by))
                    .map_err(too_many_requests);
            }
            None => missing("this credential is not known, or has expired"),
        },
        Err(error) => error,
    };
    if let (Code::Unauthenticated, Some(address)) = (error.0.code, address) {
        door.strangers.take(&network_of(address), Instant::now()).map_err(too_many_requests)?;
    }
    Err(error)
}

fn too_many_connections(no: NoPlace) -> ApiError {
    let words = match no {
        NoPlace::Full => "there are as many connections of people as may be (limits.connections_max)",
        NoPlace::Own => {
            "you have as many connections open as one person may (limits.connections_per_person_max)"
        }
    };
    ApiError::new(Code::TooManyRequests, words).after(AGAIN_SECONDS, LATER)
}

pub(crate) fn too_many_requests(wait: RetryAfter) -> ApiError {
    let seconds = wait.seconds();
    ApiError::new(Code::TooManyRequests, "this is more than we answer in so short a time").after(
        seconds,
        format!("go on in {seconds} s, and more slowly; whoever runs the server can raise the limit in its configuration"),
    )
}

/// Those who may go on.
enum Admitted {
    /// Nobody needs to say who they are.
    Anybody,
    /// Whoever holds the secret with this hash, if we know it.
    Holder { hash: [u8; 32], is_cookie: bool },
}

fn admit(door: &HttpDoor, request: &Request, secure: bool) -> ApiResult<Admitted> {
    let path = request.uri().path();
    if path == "/healthz" {
        return Ok(Admitted::Anybody);
    }
    let host = check_host(door, request)?;
    check_origin(host, request.headers(), secure)?;
    check_query(request)?;
    if is_open(path) {
        check_no_other_site(request)?;
        return Ok(Admitted::Anybody);
    }
    // Whoever is in between might have looked at the other one.
    if request.headers().get_all(header::AUTHORIZATION).iter().nth(1).is_some() {
        return Err(missing("there are two credentials: send one"));
    }
    let (secret, is_cookie) = match bearer(request.headers()) {
        Some(token) => (token, false),
        None => {
            let cookie = door.cookies.signed_in(request.headers(), secure)?;
            let cookie = cookie.ok_or_else(|| missing("this needs a credential"))?;
            check_same_site(host, request, secure)?;
            (cookie, true)
        }
    };
    Ok(Admitted::Holder { hash: Sha256::digest(secret.as_bytes()).into(), is_cookie })
}

fn missing(detail: &str) -> ApiError {
    ApiError::new(Code::Unauthenticated, detail)
}

/// Paths that can be had without a credential: whether we live, the ways to sign in, and the app, which is empty.
fn is_open(path: &str) -> bool {
    matches!(path, "/page.css" | "/api/v1/sign-in") || path.starts_with("/in/") || browser_app::has(path)
}

fn check_host<'a>(door: &HttpDoor, request: &'a Request) -> ApiResult<&'a str> {
    let mut named = request.headers().get_all(header::HOST).iter();
    let host = named.next().and_then(|host| host.to_str().ok()).unwrap_or_default();
    let asked = request.uri().authority().map_or(host, |authority| authority.as_str());
    if named.next().is_none() && asked == host && door.hosts.know(host) {
        return Ok(host);
    }
    Err(ApiError::new(Code::BadHost, format!("we do not answer under the name {asked:?}")).at("Host"))
}

/// A page of another site may not use us, whatever it sends along. Programs send no `Origin`.
fn check_origin(host: &str, headers: &HeaderMap, secure: bool) -> ApiResult<()> {
    if headers.get_all(header::ORIGIN).iter().all(|origin| is_ours(host, origin, secure)) {
        return Ok(());
    }
    Err(ApiError::new(Code::BadOrigin, "the request comes from a page of another site").at("Origin"))
}

/// Our own page, which was encrypted if the request is: whoever is in between could have written the other one. Where the
/// request is not, a proxy that we know nothing of may have taken the encryption off.
fn is_ours(host: &str, origin: &HeaderValue, secure: bool) -> bool {
    let origin = origin.to_str().unwrap_or_default();
    let plain = || origin.strip_prefix("http://").filter(|_| !secure);
    let authority = origin.strip_prefix("https://").or_else(plain);
    authority.is_some_and(|authority| authority.eq_ignore_ascii_case(host))
}

/// Addresses are written down by browsers, proxies and logs, so a secret in one is not taken, not even a good one.
fn check_query(request: &Request) -> ApiResult<()> {
    let query = request.uri().query().unwrap_or_default();
    let mut names = form_urlencoded::parse(query.as_bytes()).map(|(name, _)| name);
    match names.find(|name| SECRET_NAMES.iter().any(|secret| name.eq_ignore_ascii_case(secret))) {
        None => Ok(()),
        Some(name) => {
            Err(ApiError::new(Code::TokenInQuery, "a secret stands in the address of the request").at(name))
        }
    }
}

/// Signing in changes something without a credential. A page of another site may not do that for anybody: they
/// would find themselves in somebody else's account.
fn check_no_other_site(request: &Request) -> ApiResult<()> {
    let site = request.headers().get("sec-fetch-site").map(HeaderValue::as_bytes);
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    match site {
        Some(b"cross-site" | b"same-site") if !reads => {
            Err(ApiError::new(Code::BadOrigin, "the request comes from a page of another site")
                .at("Sec-Fetch-Site"))
        }
        _ => Ok(()),
    }
}

/// A browser sends the cookie by itself, so its request must prove that our own page made it. Other ports of this
/// machine are other sites to us, although a cookie does not know ports.
fn check_same_site(host: &str, request: &Request, secure: bool) -> ApiResult<()> {
    let headers = request.headers();
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    let ours = match site {
        Some(b"same-origin") => true,
        Some(b"none") | None if reads => true,
        // An older browser: the origin must be there, and ours.
        None => headers.get(header::ORIGIN).is_some_and(|origin| is_ours(host, origin, secure)),
        Some(_) => false,
    };
    if ours {
        return Ok(());
    }
    Err(ApiError::new(Code::BadOrigin, "a signed-in browser may change things from our own page only")
        .at("Origin"))
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

fn meta_of(door: &HttpDoor, request: &Request) -> RequestMeta {
    let headers = request.headers();
    let peer = request.extensions().get::<Peer>();
    let source = peer.map(|peer| RequestSource::of(*peer, headers, &door.config.trusted_proxies));
    let said = headers.get("x-correlation-id").and_then(|value| value.to_str().ok());
    let sane = said.filter(|id| {
        (1..=CORRELATION_LENGTH_MAX).contains(&id.len())
            && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    });
    let correlation = sane.map_or_else(|| uuid::Uuid::new_v4().simple().to_string(), str::to_owned);
    let entry = match headers.get("x-homing-door").map(HeaderValue::as_bytes) {
        Some(b"cli") => "cli",
        Some(b"browser") => "browser",
        _ => "http",
    };
    let (address, secure) = (source.map(|source| source.address), source.is_some_and(|source| source.secure));
    RequestMeta { door: entry, correlation, address, secure }
}

/// True if we were called by a name that is ours alone. `localhost` belongs to everything on a machine, and what a
/// browser remembers about a name holds for all its ports.
fn has_public_name(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = host.split(':').next().unwrap_or_default().to_ascii_lowercase();
    let is_local = name == "localhost" || name.ends_with(".localhost");
    !is_local && !host.starts_with('[') && name.parse::<std::net::Ipv4Addr>().is_err()
}

/// The headers that every answer has for browsers. The page says more about itself. That another site may use us,
/// nothing says.
fn guard(headers: &mut HeaderMap, is_strict: bool) {
    let mut set = |name: HeaderName, value: &'static str| {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    };
    set(
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(header::X_FRAME_OPTIONS, "DENY");
    set(header::REFERRER_POLICY, "no-referrer");
    set(header::CACHE_CONTROL, "no-store");
    set(HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    set(HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
    set(
        HeaderName::from_static("permissions-policy"),
        "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
    );
    if is_strict {
        set(header::STRICT_TRANSPORT_SECURITY, STRICT);
    }
}

/// Credentials that were found good a moment ago. All are asked about again when what anybody may do has changed here, and
/// each after `KNOWN_MAX`, because another node may have changed it.
#[derive(Debug)]
pub(crate) struct CredentialCache {
    recent: Mutex<HashMap<[u8; 32], CachedPrincipal>>,
    rights: watch::Receiver<u64>,
}

#[derive(Debug)]
struct CachedPrincipal {
    since: Instant,
    rights: u64,
    by: Arc<Principal>,
}

impl CredentialCache {
    pub(crate) fn new(people: &People) -> Self {
        Self { recent: Mutex::default(), rights: people.rights() }
    }

    async fn who(&self, door: &HttpDoor, hash: [u8; 32]) -> ApiResult<Option<Arc<Principal>>> {
        // Seen before the store is asked: a change in between makes the answer old at once.
        let rights = *self.rights.borrow();
        if let Some(by) = self.recent(&hash, rights) {
            return Ok(Some(by));
        }
        let Some(by) = door.engine.people().principal(hash).await?.map(Arc::new) else { return Ok(None) };
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.len() >= KNOWN_COUNT_MAX {
            recent.clear();
        }
        recent.insert(hash, CachedPrincipal { since: Instant::now(), rights, by: by.clone() });
        Ok(Some(by))
    }

    fn recent(&self, hash: &[u8; 32], rights: u64) -> Option<Arc<Principal>> {
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let known = recent.get(hash)?;
        (known.rights == rights && known.since.elapsed() < KNOWN_MAX).then(|| known.by.clone())
    }
}
