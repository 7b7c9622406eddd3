//! The thin shell around opencode's HTTP server: does what the protocol orders and says what came of it, in lines.
//!
//! It decides nothing. One task takes orders; each request and the stream of events has a task of its own, so that an
//! order never waits for an answer. Everything ends when the protocol's end of the line is dropped. It talks to loopback
//! only, past every proxy, and it alone knows the password.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::{Client, Method, Response, redirect};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::line_reader::{Line, LineReader};
use crate::running_agent::SideChannel;

/// The name that goes with the password.
pub(super) const USER: &str = "opencode";
/// Orders that wait, and lines that wait to be read. A protocol that is slow makes the server wait, not us grow.
const ORDERS_MAX: usize = 64;
const LINES_MAX: usize = 256;
/// Requests that are going on. A turn needs one, and a few for its questions.
const REQUESTS_MAX: usize = 64;
/// The longest answer we take. Opencode cuts what its tools print to far less.
const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The longest that a connection may take, and the beginning of the stream.
const CONNECT_WAIT: Duration = Duration::from_secs(20);
/// The longest that the stream may be silent. Opencode says something every ten seconds.
const SILENCE_WAIT: Duration = Duration::from_secs(45);
/// The time for which a broken line waits for the news that the server has died: longer than a supervisor takes to end
/// what is left.
const DEATH_WAIT: Duration = Duration::from_secs(3);
/// The times the stream is tried again in a row, and the pause after the last time.
const LISTEN_TRIES_MAX: u32 = 5;
const LISTEN_PAUSE: Duration = Duration::from_millis(200);

/// An order of the protocol.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SideOrder {
    /// Where the server is. Comes first.
    Server { address: SocketAddr },
    /// Hear its events from now on.
    Listen,
    /// Ask it something. Without a bound it may take as long as the turn.
    Request { number: u64, method: HttpMethod, path: String, body: Option<Value>, wait_ms_max: Option<u64> },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum HttpMethod {
    Get,
    Post,
}

/// A report to the protocol.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SideReport<Body> {
    Answer {
        number: u64,
        status: u16,
        body: Body,
    },
    Unanswered {
        number: u64,
        why: String,
    },
    Event {
        event: Body,
    },
    /// An event was left out.
    Gap,
    /// There will be no more events.
    Deaf {
        why: String,
    },
}

/// A line to the server that goes by that password. It is silent until it gets orders.
pub(super) fn side(password: String) -> SideChannel {
    let (to, orders) = mpsc::channel(ORDERS_MAX);
    let (tell, from) = mpsc::channel(LINES_MAX);
    tokio::spawn(obey(password, orders, tell));
    SideChannel { to, from }
}

async fn obey(password: String, mut orders: mpsc::Receiver<Vec<u8>>, tell: mpsc::Sender<String>) {
    let mut server = None;
    // All of them end when this is dropped.
    let mut going_on = JoinSet::new();
    loop {
        let bytes = tokio::select! {
            order = orders.recv() => match order {
                Some(bytes) => bytes,
                None => return,
            },
            Some(_) = going_on.join_next() => continue,
        };
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            match (serde_json::from_slice(line), &server) {
                (Ok(SideOrder::Server { address }), _) => server = ServerClient::at(address, &password),
                (Ok(SideOrder::Listen), Some(server)) => {
                    going_on.spawn(listen(server.clone(), tell.clone()));
                }
                (Ok(request @ SideOrder::Request { .. }), Some(server)) if going_on.len() < REQUESTS_MAX => {
                    going_on.spawn(ask(server.clone(), request, tell.clone()));
                }
                (Ok(SideOrder::Request { number, .. }), _) => {
                    going_on.spawn(refuse(number, tell.clone()));
                }
                _ => {}
            }
        }
    }
}

#[derive(Clone)]
struct ServerClient {
    client: Client,
    address: SocketAddr,
    password: String,
}

impl ServerClient {
    fn at(address: SocketAddr, password: &str) -> Option<Self> {
        let client = Client::builder()
            .no_proxy()
            .redirect(redirect::Policy::none())
            .tls_backend_preconfigured(no_tls()?)
            .connect_timeout(CONNECT_WAIT)
            .build()
            .ok()?;
        address.ip().is_loopback().then(|| Self { client, address, password: password.to_owned() })
    }

    fn request(&self, method: HttpMethod, path: &str) -> reqwest::RequestBuilder {
        let method = match method {
            HttpMethod::Get => Method::GET,
            HttpMethod::Post => Method::POST,
        };
        let url = format!("http://{}{path}", self.address);
        self.client.request(method, url).basic_auth(USER, Some(&self.password))
    }
}

async fn refuse(number: u64, tell: mpsc::Sender<String>) {
    let why = format!("there is no server to ask, or {REQUESTS_MAX} requests are going on already");
    say(&tell, &SideReport::Unanswered::<()> { number, why }).await;
}

async fn ask(server: ServerClient, request: SideOrder, tell: mpsc::Sender<String>) {
    let SideOrder::Request { number, method, path, body, wait_ms_max } = request else { return };
    let mut request = server.request(method, &path);
    if let Some(body) = &body {
        request = request.json(body);
    }
    let answer = async {
        let response = request.send().await.map_err(|why| words(&why))?;
        let status = response.status().as_u16();
        Ok((status, whole(response).await?))
    };
    let answer = match wait_ms_max {
        None => answer.await,
        Some(ms) => {
            let late = || Err(format!("opencode's server did not answer within {ms} ms"));
            timeout(Duration::from_millis(ms), answer).await.unwrap_or_else(|_| late())
        }
    };
    match answer {
        Ok((status, body)) => say(&tell, &SideReport::Answer { number, status, body }).await,
        Err(why) => {
            // A server that dies takes its lines along, and its death is the better story. It is told a moment later.
            tokio::time::sleep(DEATH_WAIT).await;
            say(&tell, &SideReport::Unanswered::<()> { number, why }).await
        }
    };
}

/// The body, if it is not too long; `null` if it is no JSON.
async fn whole(mut response: Response) -> Result<Box<RawValue>, String> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|why| words(&why))? {
        if bytes.len() + chunk.len() > ANSWER_BYTES_MAX {
            return Err(format!("the answer has more than {ANSWER_BYTES_MAX} bytes"));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(serde_json::from_slice(&bytes).unwrap_or_else(|_| RawValue::NULL.to_owned()))
}

async fn listen(server: ServerClient, tell: mpsc::Sender<String>) {
    let mut tries = 0;
    loop {
        let (has_heard, why) = hear(&server, &tell).await;
        tries = if has_heard { 0 } else { tries + 1 };
        if tries >= LISTEN_TRIES_MAX {
            say(&tell, &SideReport::Deaf::<()> { why }).await;
            return;
        }
        tokio::time::sleep(LISTEN_PAUSE).await;
    }
}

/// Hears events until the stream ends; whether there were any, and why it ended.
async fn hear(server: &ServerClient, tell: &mpsc::Sender<String>) -> (bool, String) {
    let mut has_heard = false;
    let request = server.request(HttpMethod::Get, "/event").send();
    let mut response = match timeout(CONNECT_WAIT, request).await {
        Ok(Ok(response)) if response.status().is_success() => response,
        Ok(Ok(response)) => return (has_heard, format!("its events were refused: {}", response.status())),
        Ok(Err(why)) => return (has_heard, words(&why)),
        Err(_) => return (has_heard, format!("no events within {CONNECT_WAIT:?}")),
    };
    let mut lines = LineReader::default();
    loop {
        let chunk = match timeout(SILENCE_WAIT, response.chunk()).await {
            Ok(Ok(Some(chunk))) => chunk,
            Ok(Ok(None)) => return (has_heard, "its events ended".to_owned()),
            Ok(Err(why)) => return (has_heard, words(&why)),
            Err(_) => return (has_heard, format!("no event for {SILENCE_WAIT:?}")),
        };
        for line in lines.cut(&chunk) {
            has_heard = true;
            tell_event(&line, tell).await;
        }
    }
}

/// An event is one line of `data:`; everything else in the stream is for browsers.
async fn tell_event(line: &Line, tell: &mpsc::Sender<String>) {
    let told = match line {
        Line::TooLong { head, .. } if is_own_file(head) => return,
        Line::TooLong { .. } => SideReport::Gap,
        Line::Whole(line) => match line.strip_prefix("data:").map(serde_json::from_str::<Box<RawValue>>) {
            Some(Ok(event)) => SideReport::Event { event },
            Some(Err(_)) => SideReport::Gap,
            None => return,
        },
    };
    say(tell, &told).await;
}

/// True if a line that is too long begins like the echo of a file that we have handed over: nothing of the turn is missing without it. What a tool
/// has brought is no such thing, and in a text a quotation mark is never alone.
fn is_own_file(head: &str) -> bool {
    let has = |what: &str| head.contains(what);
    has("\"message.part.updated\"") && has("\"type\":\"file\"") && !has("\"type\":\"tool\"")
}

async fn say<Body: Serialize>(tell: &mpsc::Sender<String>, told: &SideReport<Body>) {
    let line = serde_json::to_string(told).expect("plain structures can be written");
    // If nobody listens any more, we are about to end.
    let _ = tell.send(line).await;
}

/// The reason of a failure, without the address: it says nothing to people.
/// Opencode is asked on loopback, unencrypted: no authority is trusted, and no certificate is read from the disk.
fn no_tls() -> Option<rustls::ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config =
        rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().ok()?;
    Some(config.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth())
}

fn words(why: &reqwest::Error) -> String {
    let mut words = "opencode's server does not answer".to_owned();
    let mut cause = std::error::Error::source(why);
    while let Some(next) = cause {
        words = format!("{words}: {next}");
        cause = next.source();
    }
    words
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    const WAIT: Duration = Duration::from_secs(20);

    /// A server that a test answers for by hand.
    struct RequestHandler {
        listener: TcpListener,
        side: SideChannel,
    }

    impl RequestHandler {
        async fn new() -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let side = side("secret".to_owned());
            let hand = Self { listener, side };
            hand.order(&SideOrder::Server { address: hand.listener.local_addr().unwrap() }).await;
            hand
        }

        async fn order(&self, order: &SideOrder) {
            self.side.to.send(serde_json::to_vec(order).unwrap()).await.unwrap();
        }

        async fn ask(&self, number: u64, path: &str, wait_ms_max: Option<u64>) {
            let (method, path) = (HttpMethod::Get, path.to_owned());
            self.order(&SideOrder::Request { number, method, path, body: None, wait_ms_max }).await;
        }

        /// Somebody's request, and the line to answer on.
        async fn heard(&self) -> (String, TcpStream) {
            let (mut line, _) = timeout(WAIT, self.listener.accept()).await.unwrap().unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                request.push(line.read_u8().await.unwrap());
            }
            (String::from_utf8(request).unwrap(), line)
        }

        async fn told(&mut self) -> SideReport<Value> {
            let line = timeout(WAIT, self.side.from.recv()).await.unwrap().unwrap();
            serde_json::from_str(&line).unwrap()
        }
    }

    async fn answer(mut line: TcpStream, status: &str, body: &[u8]) {
        let head =
            format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
        line.write_all(head.as_bytes()).await.unwrap();
        // Whoever has had enough hangs up.
        let _ = line.write_all(body).await;
    }

    #[test]
    fn only_the_echo_of_our_own_file_may_be_too_long() {
        let file = r#"data: {"type":"message.part.updated","properties":{"part":{"type":"file","mime":"image/png","url":"data:"#;
        assert!(is_own_file(file));
        for other in [
            r#"data: {"type":"message.part.updated","properties":{"part":{"type":"text","text":"\"type\":\"file\""#,
            r#"data: {"type":"message.part.updated","properties":{"part":{"type":"tool","state":{"attachments":[{"type":"file"#,
            r#"data: {"type":"message.updated","properties":{"info":{"role":"user"#,
        ] {
            assert!(!is_own_file(other), "{other}");
        }
    }

    #[tokio::test]
    async fn requests_carry_the_password_and_are_answered_within_bounds() {
        let mut hand = RequestHandler::new().await;
        hand.ask(1, "/one", Some(20_000)).await;
        let (request, line) = hand.heard().await;
        assert!(
            request.starts_with("GET /one ") && request.contains("authorization: Basic b3BlbmNvZGU6c2VjcmV0")
        );
        answer(line, "404 Not Found", br#"{"name": "x"}"#).await;
        let told = hand.told().await;
        assert!(
            matches!(&told, SideReport::Answer { number: 1, status: 404, body } if body["name"] == "x"),
            "{told:?}"
        );
        hand.ask(2, "/web", None).await;
        answer(hand.heard().await.1, "200 OK", b"<!doctype html>").await;
        let told = hand.told().await;
        assert!(
            matches!(&told, SideReport::Answer { number: 2, status: 200, body: Value::Null }),
            "{told:?}"
        );
        hand.ask(3, "/huge", None).await;
        answer(hand.heard().await.1, "200 OK", &vec![b'1'; ANSWER_BYTES_MAX + 1]).await;
        let told = hand.told().await;
        assert!(
            matches!(&told, SideReport::Unanswered { number: 3, why } if why.contains("more than")),
            "{told:?}"
        );
        // Nobody takes the line, so nobody can be quicker than the wait.
        hand.ask(4, "/slow", Some(10)).await;
        let told = hand.told().await;
        assert!(matches!(&told, SideReport::Unanswered { number: 4, .. }), "{told:?}");
    }

    #[tokio::test]
    async fn the_stream_is_taken_up_again_until_nobody_is_there() {
        let mut hand = RequestHandler::new().await;
        hand.order(&SideOrder::Listen).await;
        for round in 0..2 {
            let (request, mut line) = hand.heard().await;
            assert!(request.starts_with("GET /event "));
            line.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n: hello\ndata: {\"n\": 1}\n\n")
                .await
                .unwrap();
            line.write_all(b"data: no JSON\n\ndata: \"").await.unwrap();
            line.write_all(&vec![b'x'; crate::line_reader::LINE_BYTES_MAX]).await.unwrap();
            line.write_all(b"\"\n\n").await.unwrap();
            drop(line);
            let told = hand.told().await;
            assert!(matches!(&told, SideReport::Event { event } if event["n"] == 1), "{round}: {told:?}");
            assert!(matches!(hand.told().await, SideReport::Gap));
            assert!(matches!(hand.told().await, SideReport::Gap));
        }
        let RequestHandler { listener, mut side } = hand;
        drop(listener);
        let told = timeout(WAIT, side.from.recv()).await.unwrap().unwrap();
        assert!(told.starts_with(r#"{"deaf":"#), "{told}");
    }

    #[tokio::test]
    async fn everything_ends_with_the_line() {
        let hand = RequestHandler::new().await;
        hand.ask(1, "/turn", None).await;
        let (_, mut line) = hand.heard().await;
        drop(hand);
        let ended = timeout(WAIT, line.read(&mut [0; 1])).await.unwrap();
        assert!(matches!(ended, Ok(0) | Err(_)), "{ended:?}");
    }
}
