//! Asking a server by raw JSON: a small HTTP/1.1 client that keeps nothing between two requests.

use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use crate::WAIT_MAX;

/// The longest `?wait=` that a request asks for; the socket waits a little longer.
const ANSWER_WAIT: Duration = Duration::from_secs(90);
/// The length of one `?wait=`; `until_final` asks again.
const RECEIPT_WAIT_S: u32 = 10;

/// Where a server is, and the credential to use. Cheap to clone, for threads.
#[derive(Debug, Clone)]
pub struct Http {
    /// `HOST:PORT`.
    pub host: String,
    /// Sent as a bearer token; empty sends none.
    pub token: String,
}

/// The answer of a server.
#[derive(Debug, Clone)]
pub struct HttpAnswer {
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl HttpAnswer {
    /// The body; `null` if it is empty.
    pub fn json(&self) -> Value {
        if self.body.is_empty() {
            return Value::Null;
        }
        serde_json::from_slice(&self.body).unwrap_or_else(|why| panic!("not JSON ({why}): {}", self.text()))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The body, if the status is this one; else the test fails and shows what came instead.
    #[track_caller]
    pub fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        self.json()
    }
}

impl Http {
    /// A client of a server at `http://HOST:PORT`.
    pub fn new(url: &str, token: &str) -> Self {
        let url = url.trim().trim_end_matches('/');
        let host = url.split_once("://").map_or(url, |(_, host)| host);
        Self { host: host.to_owned(), token: token.trim().to_owned() }
    }

    #[track_caller]
    pub fn get(&self, path: &str) -> HttpAnswer {
        self.must("GET", path, &[], None)
    }

    #[track_caller]
    pub fn post(&self, path: &str, body: &Value) -> HttpAnswer {
        self.must("POST", path, &[], Some(body))
    }

    /// A POST under an Idempotency-Key.
    #[track_caller]
    pub fn post_as(&self, key: &str, path: &str, body: &Value) -> HttpAnswer {
        self.must("POST", path, &[("Idempotency-Key", key)], Some(body))
    }

    #[track_caller]
    pub fn must(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> HttpAnswer {
        self.ask(method, path, headers, body).unwrap_or_else(|why| panic!("{method} {path}: {why}"))
    }

    /// Asks, and says honestly if there was no whole answer: for tests that kill the server meanwhile.
    pub fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> io::Result<HttpAnswer> {
        let body = body.map(|body| body.to_string().into_bytes());
        self.ask_with(method, path, headers, body.as_deref().map(|body| ("application/json", body)))
    }

    /// Asks with a body of any kind.
    pub(crate) fn ask_with(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<(&str, &[u8])>,
    ) -> io::Result<HttpAnswer> {
        let mut reader = self.open(method, path, headers, body)?;
        let (status, headers) = read_head(&mut reader)?;
        let body = read_body(&mut reader, &headers)?;
        Ok(HttpAnswer { status, headers, body })
    }

    /// Sends a request and hands over the line, nothing of the answer read.
    pub(crate) fn open(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<(&str, &[u8])>,
    ) -> io::Result<BufReader<TcpStream>> {
        let mut stream = TcpStream::connect(&self.host)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_WAIT))?;
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", self.host);
        if !self.token.is_empty() {
            head += &format!("Authorization: Bearer {}\r\n", self.token);
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        if let Some((kind, body)) = body {
            head += &format!("Content-Type: {kind}\r\nContent-Length: {}\r\n", body.len());
        }
        head += "\r\n";
        stream.write_all(&[head.as_bytes(), body.map_or(&[][..], |(_, body)| body)].concat())?;
        Ok(BufReader::new(stream))
    }

    /// Says something and answers the receipt. `to` is the API's own: `{"conversation": …}` and so on.
    #[track_caller]
    pub fn send(&self, to: &Value, text: &str) -> Value {
        self.post("/api/v1/messages", &serde_json::json!({ "to": to, "text": text })).expect(202)
    }

    /// The receipt of a message once it is final.
    #[track_caller]
    pub fn until_final(&self, message: &str) -> Value {
        self.until_final_within(message, WAIT_MAX)
    }

    /// The receipt of a message once it is final, where much stands before it.
    #[track_caller]
    pub fn until_final_within(&self, message: &str, wait: Duration) -> Value {
        let began = std::time::Instant::now();
        loop {
            let receipt = self.get(&format!("/api/v1/messages/{message}?wait={RECEIPT_WAIT_S}")).expect(200);
            if is_final(&receipt) {
                return receipt;
            }
            assert!(began.elapsed() < wait, "not final in {wait:?}: {receipt}");
        }
    }

    /// Says something, waits, and answers what the agent said.
    #[track_caller]
    pub fn converse(&self, to: &Value, text: &str) -> String {
        let receipt = self.send(to, text);
        let receipt = self.until_final(receipt["id"].as_str().expect("a receipt has an id"));
        assert_eq!(receipt["state"], "answered", "{receipt}");
        receipt["answer"].as_str().unwrap_or_default().to_owned()
    }
}

/// True if a receipt will not change any more.
pub(crate) fn is_final(receipt: &Value) -> bool {
    let state = receipt["state"].as_str().unwrap_or_default();
    ["answered", "failed", "stopped", "withdrawn", "refused", "interrupted"].contains(&state)
}

pub(crate) type Headers = Vec<(String, String)>;

pub(crate) fn read_head(reader: &mut impl BufRead) -> io::Result<(u16, Headers)> {
    let first = read_line(reader)?;
    let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| broken(format!("not an answer: {first:?}")))?;
    let mut headers = Headers::new();
    loop {
        let line = read_line(reader)?;
        if line.is_empty() {
            return Ok((status, headers));
        }
        let (name, value) = line.split_once(':').ok_or_else(|| broken(format!("not a header: {line:?}")))?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
}

fn read_body(reader: &mut impl BufRead, headers: &Headers) -> io::Result<Vec<u8>> {
    let header =
        |name: &str| headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    let mut body = Vec::new();
    if is_chunked(headers) {
        while let Some(chunk) = read_chunk(reader)? {
            body.extend(chunk);
        }
    } else if let Some(length) = header("content-length") {
        body.resize(length.parse().map_err(|_| broken(format!("length {length:?}")))?, 0);
        reader.read_exact(&mut body)?;
    } else {
        reader.read_to_end(&mut body)?;
    }
    Ok(body)
}

pub(crate) fn is_chunked(headers: &Headers) -> bool {
    headers.iter().any(|(name, value)| name == "transfer-encoding" && value.eq_ignore_ascii_case("chunked"))
}

/// The next piece of a chunked body; none at its end. A line that breaks off is an error, not an end.
pub(crate) fn read_chunk(reader: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let line = read_line(reader)?;
    let size = line.split(';').next().unwrap_or_default();
    let size = usize::from_str_radix(size, 16).map_err(|_| broken(format!("chunk size {size:?}")))?;
    let mut chunk = vec![0; size];
    reader.read_exact(&mut chunk)?;
    read_line(reader)?;
    Ok((size > 0).then_some(chunk))
}

fn read_line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

fn broken(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
