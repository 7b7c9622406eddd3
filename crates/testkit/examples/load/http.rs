//! HTTP/1.1 as far as a load generator needs it: requests that are bytes already, answers that are a status and a body,
//! and streams that are lines.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A connection that is kept.
pub(crate) struct Connection {
    stream: TcpStream,
    /// The bytes that have been read and not been looked at.
    read: Vec<u8>,
}

/// An answer.
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl Answered {
    /// The body as JSON, if the status is a good one.
    pub(crate) fn json(&self) -> serde_json::Value {
        assert!(self.status < 300, "status {}: {}", self.status, String::from_utf8_lossy(&self.body));
        serde_json::from_slice(&self.body).expect("answers are JSON")
    }
}

impl Connection {
    pub(crate) async fn open(host: &str) -> Self {
        let stream = TcpStream::connect(host).await.expect("the server listens");
        stream.set_nodelay(true).expect("a socket");
        Self { stream, read: Vec::with_capacity(16 * 1024) }
    }

    /// Sends a request and reads the whole answer.
    pub(crate) async fn ask(&mut self, request: &[u8]) -> Answered {
        self.stream.write_all(request).await.expect("the server reads");
        loop {
            if let Some((answered, length)) = parse(&self.read) {
                self.read.drain(..length);
                return answered;
            }
            let read = self.stream.read_buf(&mut self.read).await.expect("the server answers");
            assert_ne!(read, 0, "the server hung up: {}", String::from_utf8_lossy(&self.read));
        }
    }

    /// Sends a request whose answer is a stream, and waits for its first bytes.
    pub(crate) async fn follow(mut self, request: &[u8]) -> Lines {
        self.stream.write_all(request).await.expect("the server reads");
        while !self.read.windows(7).any(|bytes| bytes == b"retry: ") {
            let read = self.stream.read_buf(&mut self.read).await.expect("the server answers");
            assert_ne!(read, 0, "no stream: {}", String::from_utf8_lossy(&self.read));
        }
        Lines { stream: self.stream, block: vec![0; 16 * 1024], line: Vec::with_capacity(LINE_BYTES_MAX) }
    }
}

fn parse(read: &[u8]) -> Option<(Answered, usize)> {
    let head = read.windows(4).position(|bytes| bytes == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&read[..head]).expect("heads are ASCII");
    let status = text.get(9..12)?.parse().expect("a status");
    let length = text
        .lines()
        .find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length")
                .then(|| value.trim().parse::<usize>().expect("a length"))
        })
        .unwrap_or(0);
    let body = read.get(head..head + length)?.to_vec();
    Some((Answered { status, body }, head + length))
}

/// The part of a line that is looked at: enough for `id: ` and a number, or a fact's type.
const LINE_BYTES_MAX: usize = 192;

/// A stream of lines. Most of a line is thrown away unseen.
pub(crate) struct Lines {
    stream: TcpStream,
    block: Vec<u8>,
    line: Vec<u8>,
}

impl Lines {
    /// Reads once and shows the beginning of each line that has ended. False is the end of the stream.
    pub(crate) async fn read(&mut self, mut see: impl FnMut(&[u8])) -> bool {
        let read = self.stream.read(&mut self.block).await.unwrap_or(0);
        let mut rest = &self.block[..read];
        while let Some(at) = rest.iter().position(|byte| *byte == b'\n') {
            keep(&mut self.line, &rest[..at]);
            see(&self.line);
            self.line.clear();
            rest = &rest[at + 1..];
        }
        keep(&mut self.line, rest);
        read > 0
    }
}

fn keep(line: &mut Vec<u8>, more: &[u8]) {
    let room = LINE_BYTES_MAX - line.len();
    line.extend_from_slice(&more[..more.len().min(room)]);
}

/// A GET.
pub(crate) fn get(asked: &crate::Asked, path: &str, accept: &str) -> Vec<u8> {
    let (host, token) = (asked.host(), asked.token());
    format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nAccept: {accept}\r\n\r\n"
    )
    .into_bytes()
}

/// A POST under an idempotency key.
pub(crate) fn post(asked: &crate::Asked, path: &str, body: &serde_json::Value) -> Vec<u8> {
    keyed(asked, "POST", path, body)
}

/// A request that changes something, under an idempotency key; `rekey` gives it another.
pub(crate) fn keyed(asked: &crate::Asked, method: &str, path: &str, body: &serde_json::Value) -> Vec<u8> {
    let (host, token, body) = (asked.host(), asked.token(), body.to_string());
    let length = body.len();
    let mut request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nIdempotency-Key: {:032}\r\nAuthorization: Bearer {token}\r\n\
         X-Homing-Door: cli\r\nContent-Type: application/json\r\nAccept: */*\r\nContent-Length: {length}\r\n\r\n{body}",
        0
    )
    .into_bytes();
    rekey(&mut request, fresh_key());
    request
}

/// Gives a request another idempotency key, in place.
pub(crate) fn rekey(request: &mut [u8], key: u128) {
    const NAME: &[u8] = b"Idempotency-Key: ";
    let at =
        request.windows(NAME.len()).position(|bytes| bytes == NAME).expect("a wish has a key") + NAME.len();
    request[at..at + 32].copy_from_slice(format!("{key:032x}").as_bytes());
}

/// A key as random as the command line's.
pub(crate) fn fresh_key() -> u128 {
    use std::hash::{BuildHasher, RandomState};
    let roll = |salt: u8| u128::from(RandomState::new().hash_one(salt));
    roll(0) << 64 | roll(1)
}
