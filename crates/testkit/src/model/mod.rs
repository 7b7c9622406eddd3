//! A model server without a model: real agents talk to it on loopback and get answers that a test can foresee.
//!
//! Read in this order: this file (start it, look at what was asked, turn its switches), `brain` (what is answered, pure),
//! `talk` (what a request says, whichever protocol it came in), one file for each protocol (`anthropic`, `chat`,
//! `responses`, `gemini`: JSON in, JSON or a stream out, pure), `form` (what their answers have in common) and `server` (sockets and threads). It never leaves
//! loopback and never forgets a request, because a test that does not know what was asked proves nothing.
//!
//! What it answers is decided by the **last line** of the last thing a person said, since several agents glue a failed
//! turn's message to the next one. Most lines are echoed: `ECHO: LINE [turn=N]`, N being the number of things a person
//! said in this request, so that a test sees what the agent remembers. These lines are directives:
//!
//! | Line | Answer |
//! |---|---|
//! | `RECALL` | `RECALL: a, b [turn=N]`: the word after each `CODE:` in everything said before |
//! | `TOOL:bash:COMMAND` | a call of the shell tool the agent offers, whatever it is called |
//! | `TOOL:write:PATH:TEXT` | a call of the tool that writes files; of the shell where there is none |
//! | `TOOL:raw:NAME:JSON` | a call of this tool with these arguments |
//! | `SLEEP:S` | the echo, after S seconds (fractions are fine) without a byte |
//! | `CHUNKS:N:MS` | N pieces with MS milliseconds between them |
//! | `WORDS:N` | N words at once |
//! | `ERR:STATUS[:TIMES]` | this status, with `retry-after: 1` for 429; after TIMES of them the echo |
//! | `DROP` | the first half of an answer, then the line is cut |
//! | `MALFORMED` | the first half of an answer, then something that is not JSON |
//!
//! After a tool's result it says `TOOL SAID: FIRST LINE` and ends. Requests an agent makes for itself (titles, summaries)
//! get a short harmless answer, are marked [`RequestPurpose::Side`], and no directive in them is obeyed.

mod anthropic;
mod brain;
mod chat;
mod chat_request;
mod form;
mod gemini;
mod responses;
mod server;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use serde_json::Value;

/// A model server on loopback. It ends when it is dropped.
#[derive(Debug)]
pub struct StubModel {
    server: server::ModelServer,
}

/// A request as a test wants to know it.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRequest {
    pub protocol: Protocol,
    pub purpose: RequestPurpose,
    /// The path, without its query.
    pub path: String,
    /// The model's name; empty if none was given.
    pub model: String,
    pub streamed: bool,
    /// The number of things a person said in this request: the N of the echo.
    pub user_turns: usize,
    /// The last thing a person said, without what the agent wrapped around it; empty if nobody said anything.
    pub last_text: String,
    /// The names of the tools the agent offered.
    pub tools: Vec<String>,
    /// The status it was answered with.
    pub status: u16,
    /// The request itself; `null` if it was no JSON.
    pub body: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Messages of Anthropic.
    Anthropic,
    /// Chat completions of OpenAI.
    Chat,
    /// Responses of OpenAI.
    Responses,
    Gemini,
    /// None of them: lists of models, probes, paths we do not know.
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestPurpose {
    /// Part of a turn.
    Turn,
    /// Something the agent wants for itself, such as a title.
    Side,
    /// Counting tokens.
    Count,
    Other,
}

impl StubModel {
    /// Starts one on a free port.
    #[track_caller]
    pub fn start() -> Self {
        Self::start_at(0)
    }

    /// Starts one on this port, for trying an agent by hand.
    #[track_caller]
    pub fn start_at(port: u16) -> Self {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Self { server: server::ModelServer::start(address).unwrap_or_else(|why| panic!("{address}: {why}")) }
    }

    /// `http://127.0.0.1:PORT`, without a path: what Anthropic's, Google's and goose's settings want.
    pub fn url(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// The address with the path that OpenAI's settings want.
    pub fn url_v1(&self) -> String {
        format!("{}/v1", self.url())
    }

    /// Everything that was asked so far, in the order in which the answers began.
    pub fn asked(&self) -> Vec<ModelRequest> {
        self.server.shared().asked()
    }

    /// Only what belongs to turns.
    pub fn turns(&self) -> Vec<ModelRequest> {
        self.asked().into_iter().filter(|asked| asked.purpose == RequestPurpose::Turn).collect()
    }

    /// Waits until something was asked, and answers it. For tests that act in the middle of a turn.
    #[track_caller]
    pub fn until_asked(&self, what: &str, found: impl Fn(&ModelRequest) -> bool) -> ModelRequest {
        crate::eventually(what, || self.asked().into_iter().find(&found))
    }

    /// Forgets what was asked.
    pub fn forget(&self) {
        self.server.shared().forget();
    }

    /// From now on every request gets this status; `None` ends that.
    pub fn answer_all(&self, status: Option<u16>) {
        self.server.shared().answer_all(status);
    }

    /// From now on nobody listens at the port, and every line is cut.
    pub fn refuse(&self) {
        self.server.refuse();
    }

    /// Listens again, at the same port.
    #[track_caller]
    pub fn listen(&self) {
        self.server.listen().unwrap_or_else(|why| panic!("{}: {why}", self.url()));
    }

    /// Prints each request in one line, and keeps its body in this directory, for trying an agent by hand.
    pub fn tell_about_requests(&self, bodies: Option<PathBuf>) {
        self.server.shared().tell(bodies);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Http;
    use serde_json::json;

    fn client(stub: &StubModel) -> Http {
        Http::new(&stub.url(), "")
    }

    /// Says one thing in every protocol, whole and streamed, and answers what came back: status and text.
    fn everywhere(stub: &StubModel, text: &str) -> Vec<(u16, String)> {
        let http = client(stub);
        let message = json!([{"role": "user", "content": text}]);
        let parts = json!([{"role": "user", "parts": [{"text": text}]}]);
        let mut said = Vec::new();
        for streamed in [false, true] {
            let verb = if streamed { "streamGenerateContent?alt=sse" } else { "generateContent" };
            for (path, body) in [
                ("/v1/messages".to_owned(), json!({"messages": message, "stream": streamed})),
                ("/v1/chat/completions".to_owned(), json!({"messages": message, "stream": streamed})),
                ("/v1/responses".to_owned(), json!({"input": message, "stream": streamed})),
                (format!("/v1beta/models/stub-1:{verb}"), json!({ "contents": parts })),
            ] {
                let answered = http.ask("POST", &path, &[], Some(&body));
                said.push(answered.map_or((0, String::new()), |got| (got.status, got.text())));
            }
        }
        said
    }

    #[test]
    fn every_protocol_echoes() {
        let stub = StubModel::start();
        let said = everywhere(&stub, "hello");
        for (status, text) in &said {
            assert_eq!(*status, 200, "{text}");
        }
        // A stream has the echo in two pieces; whole answers have it in one.
        assert!(said[..4].iter().all(|(_, text)| text.contains("ECHO: hello [turn=1]")), "{said:#?}");
        assert!(said[4..].iter().all(|(_, text)| text.contains("ECHO: hell")), "{said:#?}");
        for (at, last) in ["message_stop", "[DONE]", "response.completed", "STOP"].iter().enumerate() {
            assert!(said[4 + at].1.contains(last), "{}", said[4 + at].1);
        }
        let asked = stub.asked();
        assert_eq!(asked.len(), 8);
        assert!(asked.iter().all(|asked| (asked.user_turns, asked.last_text.as_str()) == (1, "hello")));
    }

    #[test]
    fn every_protocol_has_its_faults() {
        let stub = StubModel::start();
        for status in [401, 429, 500, 529] {
            let said = everywhere(&stub, &format!("ERR:{status}"));
            let want = format!("stub error {status}");
            assert!(said.iter().all(|said| said.0 == status && said.1.contains(&want)), "{said:?}");
        }
        // A line that is cut is no answer, and what is not JSON is one.
        assert!(everywhere(&stub, "DROP").iter().all(|said| said.0 == 0));
        assert!(everywhere(&stub, "MALFORMED").iter().all(|said| said.0 == 200));
    }

    #[test]
    fn a_fault_passes_after_so_many_times_and_says_when_to_come_back() {
        let stub = StubModel::start();
        let body = json!({"messages": [{"role": "user", "content": "ERR:429:2"}]});
        let ask = || client(&stub).post("/v1/messages", &body);
        let first = ask();
        assert_eq!((first.status, first.header("retry-after")), (429, Some("1")));
        assert_eq!((ask().status, ask().status), (429, 200));
    }

    #[test]
    fn a_connection_is_used_again() {
        use std::io::{Read, Write};
        let stub = StubModel::start();
        let mut line = std::net::TcpStream::connect(stub.url().trim_start_matches("http://")).unwrap();
        let body = r#"{"stream":true,"messages":[{"role":"user","content":"hi"}]}"#;
        for _ in 0..2 {
            let head = format!("POST /v1/messages HTTP/1.1\r\nContent-Length: {}\r\n\r\n", body.len());
            line.write_all(format!("{head}{body}").as_bytes()).unwrap();
            let mut seen = String::new();
            while !seen.ends_with("\r\n0\r\n\r\n") {
                let mut bytes = [0; 1_024];
                let read = line.read(&mut bytes).unwrap();
                assert!(read > 0, "{seen}");
                seen += &String::from_utf8_lossy(&bytes[..read]);
            }
        }
        assert_eq!(stub.turns().len(), 2);
    }

    #[test]
    fn switches_are_obeyed_until_they_are_turned_back() {
        let stub = StubModel::start();
        let http = client(&stub);
        let models = || http.ask("GET", "/v1/models", &[], None).map(|answered| answered.status);
        stub.answer_all(Some(503));
        assert_eq!(models().unwrap(), 503);
        stub.answer_all(None);
        assert_eq!(models().unwrap(), 200);
        stub.refuse();
        assert_eq!(models().unwrap_err().kind(), std::io::ErrorKind::ConnectionRefused);
        stub.listen();
        assert_eq!(models().unwrap(), 200);
        stub.forget();
        assert_eq!(stub.asked(), []);
    }

    #[test]
    fn tokens_are_counted_and_titles_are_harmless() {
        let stub = StubModel::start();
        let body = json!({"messages": [{"role": "user", "content": "ERR:500"}], "system": "Write a title."});
        let counted = client(&stub).post("/v1/messages/count_tokens", &body).expect(200);
        assert!(counted["input_tokens"].as_u64() > Some(10), "{counted}");
        let title = client(&stub).post("/v1/messages", &body).expect(200);
        assert_eq!(title["content"][0]["text"], "A stubborn title");
        let purposes: Vec<RequestPurpose> = stub.asked().iter().map(|asked| asked.purpose).collect();
        assert_eq!(purposes, [RequestPurpose::Count, RequestPurpose::Side]);
        assert_eq!(client(&stub).get("/v1/nothing").status, 404);
    }
}
