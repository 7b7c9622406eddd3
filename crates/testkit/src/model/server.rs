//! Sockets and threads of the stub: one thread accepts, one serves each connection, one request after the other.
//!
//! Whatever is decided is decided by pure functions next door; this file reads requests, writes down what was asked,
//! keeps the switches, and writes answers: whole, or in chunks with their pauses and flaws.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::brain::{self, Fault, ModelAnswer, ReplyContent};
use super::chat_request::{ChatRequest, string};
use super::form::{Draft, Frame};
use super::{ModelRequest, Protocol, RequestPurpose, anthropic, chat, gemini, responses};
use crate::Port;

/// The largest request that is read. Real ones have some hundred kilobytes.
const BODY_BYTES_MAX: usize = 64 << 20;
/// The longest line of a request's head, against a client that never ends it.
const LINE_BYTES_MAX: u64 = 64 << 10;
/// The time between two looks of a pause whether the server has ended.
const PAUSE_SLICE: Duration = Duration::from_millis(20);
/// The longest until the port is free again after `refuse`.
const BIND_WAIT: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct ModelServer {
    address: SocketAddr,
    _port: Option<Port>,
    shared: Arc<ServerState>,
    door: Mutex<Option<OpenPort>>,
}

/// An open port: the flag that closes it, and the thread that accepts.
#[derive(Debug)]
struct OpenPort {
    closed: Arc<AtomicBool>,
    accepting: JoinHandle<()>,
}

/// The state that all connections and the test see.
#[derive(Debug)]
pub(super) struct ServerState {
    book: Mutex<RequestLog>,
    /// The next number of a line or an answer.
    numbers: AtomicU64,
    /// Set at the start: two stubs one after the other must not use the same ids.
    began_ms: u128,
}

#[derive(Debug, Default)]
struct RequestLog {
    asked: Vec<ModelRequest>,
    answer_all: Option<u16>,
    /// The number of times a conversation as it stands was answered with a fault.
    faults: HashMap<String, u32>,
    /// Open connections by number, so that they can be cut from outside.
    lines: HashMap<u64, TcpStream>,
    telling: bool,
    bodies: Option<PathBuf>,
}

impl ModelServer {
    pub(super) fn start(address: SocketAddr) -> io::Result<Self> {
        // While it refuses, nobody else may be given its port.
        let port = (address.port() == 0 && address.ip().is_loopback()).then(Port::reserve);
        let listener = TcpListener::bind(port.as_ref().map_or(address, Port::address))?;
        let address = listener.local_addr()?;
        let began_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let shared = Arc::new(ServerState { book: Mutex::default(), numbers: AtomicU64::new(0), began_ms });
        let door = Mutex::new(Some(OpenPort::open(listener, Arc::clone(&shared))));
        Ok(Self { address, _port: port, shared, door })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn shared(&self) -> &ServerState {
        &self.shared
    }

    pub(super) fn refuse(&self) {
        if let Some(door) = lock(&self.door).take() {
            door.close(self.address);
        }
        self.shared.cut_lines();
    }

    pub(super) fn listen(&self) -> io::Result<()> {
        let mut door = lock(&self.door);
        if door.is_none() {
            let listener = bind_again(self.address)?;
            *door = Some(OpenPort::open(listener, Arc::clone(&self.shared)));
        }
        Ok(())
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.refuse();
    }
}

fn bind_again(address: SocketAddr) -> io::Result<TcpListener> {
    let began = Instant::now();
    loop {
        match TcpListener::bind(address) {
            Err(_) if began.elapsed() < BIND_WAIT => std::thread::sleep(PAUSE_SLICE),
            bound => return bound,
        }
    }
}

impl OpenPort {
    fn open(listener: TcpListener, shared: Arc<ServerState>) -> Self {
        let closed = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&closed);
        let accepting = std::thread::spawn(move || accept(&listener, &shared, &seen));
        Self { closed, accepting }
    }

    fn close(self, address: SocketAddr) {
        self.closed.store(true, Ordering::SeqCst);
        // `accept` only returns when somebody comes.
        drop(TcpStream::connect(address));
        drop(self.accepting.join());
    }
}

fn accept(listener: &TcpListener, shared: &Arc<ServerState>, closed: &Arc<AtomicBool>) {
    for stream in listener.incoming() {
        if closed.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else { continue };
        let (shared, closed) = (Arc::clone(shared), Arc::clone(closed));
        // Here and not in its thread: `refuse` waits for this loop and then cuts every line there is.
        let number = shared.keep_line(&stream);
        std::thread::spawn(move || {
            // A line that breaks off is the agent's affair: it was killed, or it hung up.
            drop(Connection::new(stream, Arc::clone(&shared), closed).and_then(Connection::serve));
            shared.let_go(number);
        });
    }
}

impl ServerState {
    pub(super) fn asked(&self) -> Vec<ModelRequest> {
        lock(&self.book).asked.clone()
    }

    pub(super) fn forget(&self) {
        lock(&self.book).asked.clear();
    }

    pub(super) fn answer_all(&self, status: Option<u16>) {
        lock(&self.book).answer_all = status;
    }

    pub(super) fn tell(&self, bodies: Option<PathBuf>) {
        let mut book = lock(&self.book);
        (book.telling, book.bodies) = (true, bodies);
    }

    fn keep_line(&self, stream: &TcpStream) -> u64 {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        lock(&self.book).lines.extend(stream.try_clone().map(|line| (number, line)));
        number
    }

    /// Hangs up. The other end would wait for ever on a line that we only forget.
    fn let_go(&self, number: u64) {
        if let Some(line) = lock(&self.book).lines.remove(&number) {
            drop(line.shutdown(Shutdown::Both));
        }
    }

    fn cut_lines(&self) {
        for (_, line) in lock(&self.book).lines.drain() {
            drop(line.shutdown(Shutdown::Both));
        }
    }

    fn next_id(&self) -> String {
        format!("{:x}{:04}", self.began_ms, self.numbers.fetch_add(1, Ordering::Relaxed))
    }

    /// Decides about a request and writes it down.
    fn decide(&self, request: &Request, understood: &ParsedRequest) -> ModelAnswer {
        let mut book = lock(&self.book);
        let answer = match (book.answer_all, understood.purpose) {
            (Some(status), _) => ModelAnswer::status(status),
            (None, RequestPurpose::Turn) => {
                let faults = book.faults.entry(conversation(&understood.talk)).or_default();
                let answer = brain::answer(&understood.talk, *faults);
                *faults += u32::from(matches!(answer.say, ReplyContent::Status(_)));
                answer
            }
            (None, RequestPurpose::Side) => brain::answer_side_call(),
            (None, RequestPurpose::Count) => ModelAnswer::status(200),
            (None, RequestPurpose::Other) => {
                ModelAnswer::status(if request.lists_models() { 200 } else { 404 })
            }
        };
        let asked = understood.asked(request, &answer);
        book.write_down(asked);
        answer
    }
}

/// The conversation as it stands, so that the faults of one do not count for another.
fn conversation(talk: &ChatRequest) -> String {
    talk.people().collect::<Vec<_>>().join("\n")
}

impl RequestLog {
    fn write_down(&mut self, asked: ModelRequest) {
        if self.telling {
            println!(
                "{:?} {:?} {} {} streamed={} turns={} tools={} status={} {:?}",
                asked.protocol,
                asked.purpose,
                asked.path,
                asked.model,
                asked.streamed,
                asked.user_turns,
                asked.tools.len(),
                asked.status,
                asked.last_text
            );
        }
        if let Some(bodies) = &self.bodies {
            let path = bodies.join(format!("{:04}.json", self.asked.len()));
            let text = format!("{:#}", asked.body);
            std::fs::write(&path, text).unwrap_or_else(|why| eprintln!("{}: {why}", path.display()));
        }
        self.asked.push(asked);
    }
}

/// A connection.
struct Connection {
    reader: BufReader<TcpStream>,
    writer: TcpStream,
    shared: Arc<ServerState>,
    closed: Arc<AtomicBool>,
}

impl Connection {
    fn new(stream: TcpStream, shared: Arc<ServerState>, closed: Arc<AtomicBool>) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        let reader = BufReader::new(stream.try_clone()?);
        Ok(Self { reader, writer: stream, shared, closed })
    }

    fn serve(mut self) -> io::Result<()> {
        while let Some(request) = self.read_request()? {
            let understood = ParsedRequest::from(&request);
            let answer = self.shared.decide(&request, &understood);
            self.pause(answer.delay)?;
            self.write_answer(&request, &understood, &answer)?;
            if request.closes || answer.flaw == Fault::Cut {
                break;
            }
        }
        Ok(())
    }

    /// Waits, but not longer than anybody would listen.
    fn pause(&self, pause: Duration) -> io::Result<()> {
        let began = Instant::now();
        while let Some(left) = pause.checked_sub(began.elapsed()).filter(|left| !left.is_zero()) {
            if self.closed.load(Ordering::SeqCst) {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            std::thread::sleep(left.min(PAUSE_SLICE));
        }
        Ok(())
    }

    /// The next request; none when the other side has hung up.
    fn read_request(&mut self) -> io::Result<Option<Request>> {
        let first = self.read_line()?;
        if first.is_empty() {
            return Ok(None);
        }
        let mut words = first.split(' ');
        let method = words.next().unwrap_or_default().to_owned();
        let target = words.next().unwrap_or("/");
        let path = target.split('?').next().unwrap_or(target).to_owned();
        let mut request = Request { method, path, ..Request::default() };
        let (mut length, mut chunked) = (0, false);
        loop {
            let line = self.read_line()?;
            let Some((name, value)) = line.split_once(':') else { break };
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse().map_err(|_| broken("length"))?,
                "transfer-encoding" => chunked = value.eq_ignore_ascii_case("chunked"),
                "connection" => request.closes = value.eq_ignore_ascii_case("close"),
                "expect" => self.writer.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?,
                _ => {}
            }
        }
        let body = if chunked { self.read_chunks()? } else { self.read_bytes(length)? };
        request.bytes = body.len();
        request.body = serde_json::from_slice(&body).unwrap_or_default();
        Ok(Some(request))
    }

    fn read_line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        (&mut self.reader).take(LINE_BYTES_MAX).read_line(&mut line)?;
        Ok(line.trim_end_matches(['\r', '\n']).to_owned())
    }

    fn read_bytes(&mut self, length: usize) -> io::Result<Vec<u8>> {
        if length > BODY_BYTES_MAX {
            return Err(broken("too long"));
        }
        let mut bytes = vec![0; length];
        self.reader.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn read_chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = self.read_line()?;
            let size = usize::from_str_radix(line.split(';').next().unwrap_or_default().trim(), 16);
            let size = size.map_err(|_| broken("chunk size"))?;
            if body.len() + size > BODY_BYTES_MAX {
                return Err(broken("too long"));
            }
            body.extend(self.read_bytes(size)?);
            self.read_line()?;
            if size == 0 {
                return Ok(body);
            }
        }
    }

    fn write_answer(
        &mut self,
        request: &Request,
        understood: &ParsedRequest,
        answer: &ModelAnswer,
    ) -> io::Result<()> {
        if let ReplyContent::Status(status) = answer.say {
            let body = understood.plain(request, status);
            let body = if request.method == "HEAD" { String::new() } else { body.to_string() };
            return self.write_whole(status, body.as_bytes(), Fault::None);
        }
        let id = self.shared.next_id();
        let draft = Draft { id: &id, talk: &understood.talk, say: &answer.say };
        if !understood.talk.streamed {
            let body = understood.whole(draft).to_string();
            return self.write_whole(200, body.as_bytes(), answer.flaw);
        }
        let pause = match answer.say {
            ReplyContent::Text { pause, .. } => pause,
            ReplyContent::Call { .. } | ReplyContent::Status(_) => Duration::ZERO,
        };
        self.write_stream(&understood.stream(draft), pause, answer.flaw)
    }

    fn write_whole(&mut self, status: u16, body: &[u8], flaw: Fault) -> io::Result<()> {
        let retry = if status == 429 { "Retry-After: 1\r\n" } else { "" };
        let sent = match flaw {
            Fault::None => body,
            Fault::Cut | Fault::Garbled => &body[..body.len() / 2],
        };
        // A cut answer has promised more than it brings; a garbled one brings what it promised.
        let length = if flaw == Fault::Cut { body.len() } else { sent.len() };
        let head = format!(
            "HTTP/1.1 {status} {}\r\nContent-Type: application/json\r\n{retry}Content-Length: {length}\r\n\r\n",
            reason(status)
        );
        self.writer.write_all(&[head.as_bytes(), sent].concat())
    }

    fn write_stream(&mut self, frames: &[Frame], pause: Duration, flaw: Fault) -> io::Result<()> {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n\
                    Transfer-Encoding: chunked\r\n\r\n";
        self.writer.write_all(head.as_bytes())?;
        let mut pieces = 0;
        for frame in frames {
            if matches!(frame, Frame::Piece(_)) {
                match flaw {
                    Fault::None => {}
                    Fault::Cut if pieces == 1 => return Ok(()),
                    Fault::Garbled if pieces == 1 => {
                        self.write_chunk("data: {\"type\": \"content_block_delta\", \"del\n\n")?;
                        return self.write_chunk("");
                    }
                    Fault::Cut | Fault::Garbled => {}
                }
                if pieces > 0 {
                    self.pause(pause)?;
                }
                pieces += 1;
            }
            self.write_chunk(frame.bytes())?;
        }
        self.write_chunk("")
    }

    /// A chunk; an empty one is the end.
    fn write_chunk(&mut self, text: &str) -> io::Result<()> {
        self.writer.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())
    }
}

#[derive(Debug, Default)]
struct Request {
    method: String,
    path: String,
    body: Value,
    bytes: usize,
    closes: bool,
}

impl Request {
    fn lists_models(&self) -> bool {
        self.method == "GET" && (self.path.ends_with("/models") || self.path.contains("/models/"))
    }
}

/// A request and what it is about.
struct ParsedRequest {
    protocol: Protocol,
    purpose: RequestPurpose,
    talk: ChatRequest,
}

impl ParsedRequest {
    fn from(request: &Request) -> Self {
        let body = &request.body;
        let path = request.path.trim_end_matches('/');
        let (protocol, mut talk) = if request.method != "POST" {
            (Protocol::Other, ChatRequest::default())
        } else if path.ends_with("/messages") || path.ends_with("/messages/count_tokens") {
            (Protocol::Anthropic, anthropic::read(body))
        } else if path.ends_with("/chat/completions") {
            (Protocol::Chat, chat::read(body))
        } else if path.ends_with("/responses") {
            (Protocol::Responses, responses::read(body))
        } else if let Some((model, verb)) = path.rsplit('/').next().and_then(|last| last.split_once(':')) {
            (Protocol::Gemini, gemini::read(body, model, verb == "streamGenerateContent"))
        } else {
            (Protocol::Other, ChatRequest { model: string(&body["model"]), ..ChatRequest::default() })
        };
        talk.bytes = request.bytes;
        let purpose = match protocol {
            Protocol::Other => RequestPurpose::Other,
            _ if path.ends_with("/count_tokens") || path.ends_with(":countTokens") => RequestPurpose::Count,
            _ if brain::is_side_call(&talk) => RequestPurpose::Side,
            _ => RequestPurpose::Turn,
        };
        Self { protocol, purpose, talk }
    }

    fn asked(&self, request: &Request, answer: &ModelAnswer) -> ModelRequest {
        ModelRequest {
            protocol: self.protocol,
            purpose: self.purpose,
            path: request.path.clone(),
            model: self.talk.model.clone(),
            streamed: self.talk.streamed,
            user_turns: self.talk.people().count(),
            last_text: self.talk.last_text().to_owned(),
            tools: self.talk.tools.iter().map(|tool| tool.name.clone()).collect(),
            status: if let ReplyContent::Status(status) = answer.say { status } else { 200 },
            body: request.body.clone(),
        }
    }

    /// The body of an answer that is no words of a model.
    fn plain(&self, request: &Request, status: u16) -> Value {
        match (self.protocol, status) {
            (Protocol::Anthropic, 200) => anthropic::count(&self.talk),
            (Protocol::Gemini, 200) => gemini::count(&self.talk),
            (Protocol::Other, 200) => models(request),
            (Protocol::Anthropic, _) => anthropic::fault(status),
            (Protocol::Gemini, _) => gemini::fault(status),
            (Protocol::Chat | Protocol::Responses | Protocol::Other, _) => chat::fault(status),
        }
    }

    fn whole(&self, draft: Draft<'_>) -> Value {
        match self.protocol {
            Protocol::Anthropic => anthropic::whole(draft),
            Protocol::Responses => responses::whole(draft),
            Protocol::Gemini => gemini::whole(draft),
            Protocol::Chat | Protocol::Other => chat::whole(draft),
        }
    }

    fn stream(&self, draft: Draft<'_>) -> Vec<Frame> {
        match self.protocol {
            Protocol::Anthropic => anthropic::stream(draft),
            Protocol::Responses => responses::stream(draft),
            Protocol::Gemini => gemini::stream(draft),
            Protocol::Chat | Protocol::Other => chat::stream(draft),
        }
    }
}

/// The list of models, in a form that both OpenAI's and Anthropic's clients read; Google's has its own path.
fn models(request: &Request) -> Value {
    if request.path.starts_with("/v1beta") {
        let model = json!({"name": "models/stub-1", "displayName": "Stub 1", "inputTokenLimit": 200_000,
            "outputTokenLimit": 8_192, "supportedGenerationMethods": ["generateContent"]});
        return json!({ "models": [model] });
    }
    let model = json!({
        "id": "stub-1", "object": "model", "created": 1_700_000_000, "owned_by": "stub",
        "type": "model", "display_name": "Stub 1", "created_at": "2026-01-01T00:00:00Z",
    });
    json!({"object": "list", "data": [model], "has_more": false, "first_id": "stub-1", "last_id": "stub-1"})
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        401 => "Unauthorized",
        404 => "Not Found",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        _ => "Stub",
    }
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// A test that failed elsewhere must not make this one fail, too.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
