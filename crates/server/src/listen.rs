//! Connections: taking the address, accepting, encrypting, bounding what each may cost, and closing the door in order.

use crate::ServerConfig;
use crate::connections::{ConnectionPlace, Evicted};
use crate::door::{HttpDoor, SharedDoor};
use crate::proxies::Peer;
use crate::tls::Tls;
use api::{Code, Problem};
use axum::{Extension, Router};
use engine::{Engine, PeopleError, Trace};
use http::StatusCode;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinSet;
use tokio::time::Sleep;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tower::Layer;

/// The bytes that one connection may buffer in each direction, and so the longest head of a request. The least that
/// hyper allows: a reader that has stopped reading keeps as much of the log in memory.
const BUFFER_BYTES_MAX: usize = 8 * 1024;
/// Header fields in a request.
const HEADERS_MAX: usize = 64;
/// The time between two looks at a link, for whoever waits for it to be used.
const LINK_LOOK: Duration = Duration::from_secs(1);
/// The bytes that may wait to be encrypted and sent, for one connection; one record of TLS.
const TLS_BUFFER_BYTES_MAX: usize = 16 * 1024;
/// The first byte of every TLS connection.
const HANDSHAKE: u8 = 0x16;
/// The bytes that we still take from somebody who speaks unencrypted, so that they can read our answer.
const PLAIN_BYTES_MAX: u64 = 64 * 1024;
/// Connections that are told at once that they are too many, and how long that may take.
const FAREWELLS_MAX: usize = 64;
const FAREWELL_WAIT: Duration = Duration::from_secs(1);
/// The pause after the system could not accept a connection, usually for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The door at its address.
pub struct BoundServer {
    door: SharedDoor,
    listener: TcpListener,
    local_addr: SocketAddr,
    router: Router,
}

impl std::fmt::Debug for BoundServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BoundServer").field("local_addr", &self.local_addr).finish_non_exhaustive()
    }
}

impl BoundServer {
    pub(crate) fn new(engine: Engine, config: ServerConfig, listener: TcpListener) -> io::Result<Self> {
        let local_addr = listener.local_addr()?;
        let door = Arc::new(HttpDoor::new(engine, config, local_addr.port())?);
        if let Some(push) = &door.push {
            door.engine.start_pushes(push.clone());
        }
        let router = crate::openapi::finish(crate::openapi::routes(), &door);
        Ok(Self { door, listener, local_addr, router })
    }

    /// The address in use.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// The base URL in use.
    pub fn url(&self) -> String {
        url_of(self.local_addr, self.door.config.tls.is_some())
    }

    /// A link that signs the machine's person in, once, within ten minutes; and an answer when it works no more: it was
    /// used, or its time is over.
    pub async fn sign_in(&self) -> Result<(String, impl Future<Output = ()> + Send + 'static), PeopleError> {
        let HttpDoor { engine, config, .. } = &*self.door;
        let people = engine.people().clone();
        let trace =
            Trace { door: "start", correlation: "start".to_owned(), address: None, key: None, schemes: &[] };
        let owner = people.refreshed(&config.owner).await?;
        let link = people.make_link(&owner, owner.person, trace).await?;
        let url = format!("{}/in/{}", self.url(), link.reveal());
        let spent = async move {
            while let Ok(Some(_)) = people.look_at_link(link.reveal()).await {
                tokio::time::sleep(LINK_LOOK).await;
            }
        };
        Ok((url, spent))
    }

    /// Answers until `shutdown` does; then accepts nothing more, ends streams, and lets requests finish for a while.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) {
        let Self { door, listener, router, .. } = self;
        let mut shutdown = pin!(shutdown);
        let mut connections = JoinSet::new();
        let farewells = Arc::new(Semaphore::new(FAREWELLS_MAX));
        loop {
            tokio::select! {
                () = &mut shutdown => break,
                accepted = listener.accept() => match accepted {
                    Ok((stream, address)) => {
                        let (place, goes) = door.take_connection(address.ip());
                        let opened = OpenedConnection { place, goes, farewells: farewells.clone() };
                        connections.spawn(talk(door.clone(), stream, address, router.clone(), opened));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a connection");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
                Some(_) = connections.join_next() => {}
            }
        }
        drop(listener);
        door.close();
        let all = async { while connections.join_next().await.is_some() {} };
        if tokio::time::timeout(door.config.grace, all).await.is_err() {
            tracing::warn!("some requests did not finish in time");
        }
        connections.shutdown().await;
    }
}

/// The base URL of a server at this address. One that listens everywhere is reached on loopback.
pub fn url_of(mut address: SocketAddr, is_encrypted: bool) -> String {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        IpAddr::V4(_) | IpAddr::V6(_) => {}
    }
    let scheme = if is_encrypted { "https" } else { "http" };
    format!("{scheme}://{address}")
}

/// A connection with its place, until it has to go.
struct OpenedConnection {
    place: ConnectionPlace,
    goes: oneshot::Receiver<Evicted>,
    farewells: Arc<Semaphore>,
}

/// Tells whoever is at the other end of a connection that has to go why, unless too many are being told: then it just ends.
async fn tell_why(farewells: &Semaphore, evicted: Evicted, mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let Ok(_place) = farewells.try_acquire() else { return };
    let telling = async {
        stream.write_all(&answer_of(&too_many_connections(evicted.bound))).await?;
        stream.shutdown().await?;
        // What is unread when we close would take our answer back.
        tokio::io::copy(&mut stream.take(PLAIN_BYTES_MAX), &mut tokio::io::sink()).await?;
        io::Result::Ok(())
    };
    // Whoever does not listen has heard enough.
    let _ = tokio::time::timeout(FAREWELL_WAIT, telling).await;
}

fn too_many_connections(bound: &str) -> Problem {
    let detail =
        format!("others wanted to come in, and no credential was shown on this connection ({bound})");
    Problem::new(Code::TooManyRequests, detail)
}

async fn talk(
    door: SharedDoor,
    stream: TcpStream,
    address: SocketAddr,
    router: Router,
    mut opened: OpenedConnection,
) {
    // Small answers should not wait for company; if that cannot be had, they do.
    let _ = stream.set_nodelay(true);
    let stream = StallTimeoutStream { stream, stall_max: door.config.stall_max, stalled: None };
    let Some(tls) = &door.config.tls else {
        return serve_http(&door, stream, Peer::new(address, false), router, opened).await;
    };
    let shaken = tokio::select! {
        shaken = tokio::time::timeout(door.config.handshake_max, shake_hands(tls, stream)) => shaken,
        () = door.closing() => return,
        _ = &mut opened.goes => return,
    };
    match shaken {
        Ok(Ok(Some(stream))) => serve_http(&door, stream, Peer::new(address, true), router, opened).await,
        Ok(Ok(None)) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a connection could not be encrypted"),
        Err(_) => tracing::debug!("a connection took too long to be encrypted"),
    }
}

/// Encrypts a connection. Who comes unencrypted is told so in their own language.
async fn shake_hands(
    tls: &Tls,
    mut stream: StallTimeoutStream,
) -> io::Result<Option<TlsStream<StallTimeoutStream>>> {
    let mut first = [0];
    if stream.stream.peek(&mut first).await? == 0 {
        return Ok(None);
    }
    if first != [HANDSHAKE] {
        stream.write_all(&answer_of(&use_https())).await?;
        stream.shutdown().await?;
        // What is unread when we close would take our answer back.
        tokio::io::copy(&mut stream.take(PLAIN_BYTES_MAX), &mut tokio::io::sink()).await?;
        return Ok(None);
    }
    let acceptor = TlsAcceptor::from(tls.now().config());
    let shaking =
        acceptor.accept_with(stream, |session| session.set_buffer_limit(Some(TLS_BUFFER_BYTES_MAX)));
    shaking.await.map(Some)
}

fn use_https() -> Problem {
    Problem::new(Code::NeedsTls, "this server speaks TLS here, and the request was not encrypted")
}

/// A whole answer, for somebody with whom we do not speak HTTP any further.
fn answer_of(problem: &Problem) -> Vec<u8> {
    let body = serde_json::to_vec(problem).unwrap_or_default();
    let head = format!(
        "HTTP/1.1 {} {}\r\nContent-Type: application/problem+json\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nConnection: close\r\n\r\n",
        problem.status,
        StatusCode::from_u16(problem.status)
            .ok()
            .and_then(|status| status.canonical_reason())
            .unwrap_or("No"),
        body.len()
    );
    [head.into_bytes(), body].concat()
}

async fn serve_http(
    door: &SharedDoor,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send,
    peer: Peer,
    router: Router,
    OpenedConnection { place, goes, farewells }: OpenedConnection,
) {
    let router = Extension(place.handle()).layer(router);
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(door.config.head_max)
        .max_buf_size(BUFFER_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(Extension(peer).layer(router)));
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = door.closing() => {
            Pin::new(&mut connection).graceful_shutdown();
            connection.await
        }
        Ok(evicted) = goes => {
            if evicted.is_idle {
                tell_why(&farewells, evicted, connection.into_parts().io.into_inner()).await;
            }
            return;
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// A connection whose peer has to take what is ready for it within a time. Nothing else would end a reader that has
/// stopped reading: it is not polled, so it never learns that it has lagged behind.
struct StallTimeoutStream {
    stream: TcpStream,
    stall_max: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl StallTimeoutStream {
    fn with_timeout<T>(&mut self, cx: &mut Context<'_>, wrote: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if wrote.is_ready() {
            self.stalled = None;
            return wrote;
        }
        let stall_max = self.stall_max;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(stall_max)));
        ready!(stalled.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the peer takes nothing")))
    }
}

impl AsyncRead for StallTimeoutStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for StallTimeoutStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.with_timeout(cx, wrote)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.with_timeout(cx, wrote)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
