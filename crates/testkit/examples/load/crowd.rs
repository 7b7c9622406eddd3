//! One stranger and one member who take whatever they can get, and everybody else meanwhile.
//!
//! `crowd count=N`: asks as the machine's person for a list and says something, N times each, in quiet and in crowded phases by turns,
//! the first and the last of them quiet: what grows or slows down with time is in both alike. In a crowded one a stranger holds 8,192
//! connections, and a member 4,096 streams (of one session, and of all), 64 looks at four sessions that do not end, and bodies of 128 MiB
//! that do not either, each from an address of its own, as far as the server lets them. Prints the times of all phases of a kind together, those of
//! the quiet ones also in two halves, which says what they are worth; each kind with the share of a processor that the server and this
//! program had meanwhile; and how much the server has let the two have. `phases=` asks for another number of crowded ones; `idle=`,
//! `streams=`, `looks=` and `bodies=` for other numbers, to see what each of them does.

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::http::{Connection, fresh_key, get, post, rekey};
use crate::proc::cpu;
use crate::team::let_in;
use crate::{Asked, Times};

const IDLE: usize = 8_192;
const STREAMS: usize = 4_096;
/// The streams that the server lets one person have, unless it is told otherwise.
const STREAMS_PER_PERSON: usize = 1_024;
const LOOKS: usize = 64;
/// The sessions that they are of. While the worker of one starts, sixteen calls wait for it and further ones are refused: of one session
/// alone nobody gets as many at once as a person may have.
const LOOKED_AT: usize = 4;
const BODIES: usize = 128;
const BODY_BYTES: usize = 1 << 20;
/// The addresses on this machine that the stranger and the member come from.
const STRANGER: &str = "127.0.0.2:0";
const MEMBER: [&str; 3] = ["127.0.0.3:0", "127.0.0.4:0", "127.0.0.5:0"];
/// The time in which a connection that is refused is closed.
const SETTLE: Duration = Duration::from_millis(500);
/// Crowded phases, and quiet ones but the last.
const PHASES: usize = 3;
/// The connections that are left when they have gone, and the longest that this may take.
const ALONE_MAX: u64 = 8;
const ALONE_WAIT: Duration = Duration::from_secs(60);
/// Requests before the first that counts.
const WARM: usize = 50;

pub(crate) async fn crowd(asked: &Rc<Asked>) -> String {
    let count: usize = asked.number("count");
    let mut others = Others::new(asked, count).await;
    let member = asked.with("token", &let_in(asked, "greedy").await);
    let mut sessions = Vec::new();
    for _ in 0..LOOKED_AT {
        sessions.push(blocked_session(&member).await);
    }
    let mut halves = [Phases::default(), Phases::default()];
    let (mut crowded, mut had) = (Phases::default(), Had::default());
    for phase in 0..asked.number_or("phases", PHASES) {
        others.ask_all(asked, &mut halves[phase % 2]).await;
        let crowd = Crowd::come(asked, &member, &sessions).await;
        others.ask_all(asked, &mut crowded).await;
        had = crowd.had;
        drop(crowd);
        until_alone(asked).await;
    }
    others.ask_all(asked, &mut halves[1]).await;
    let mut quiet = Phases::default();
    halves.iter().for_each(|half| quiet.add(half));
    let [odd, even] = halves.map(Phases::member);
    let (quiet, crowded) = (quiet.member(), crowded.member());
    let Had { idle, streams, looks, bodies } = had;
    format!(
        r#"{{"quiet":{quiet},"odd":{odd},"even":{even},"crowded":{crowded},"idle":{idle},"streams":{streams},"looks":{looks},"bodies":{bodies}}}"#
    )
}

/// The number of each that the server lets the two have.
#[derive(Clone, Copy, Default)]
struct Had {
    idle: usize,
    streams: usize,
    looks: usize,
    bodies: usize,
}

/// Everything that the two hold. They go when it is dropped.
struct Crowd {
    had: Had,
    _held: Vec<TcpStream>,
}

impl Crowd {
    async fn come(asked: &Asked, member: &Asked, sessions: &[String]) -> Self {
        let mut held = Vec::new();
        for number in 0..asked.number_or("idle", IDLE) {
            held.extend(open(asked.host(), STRANGER, b"GET /healthz HTTP/1.1\r\n").await);
            if number % 256 == 0 {
                tokio::task::yield_now().await;
            }
        }
        let idle = still_open(&mut held).await;
        let count = asked.number_or("streams", STREAMS) / 2;
        let mut streams = 0;
        for path in [format!("/api/v1/sessions/{}/facts?after=0", sessions[0]), "/api/v1/facts".to_owned()] {
            let follow = get(member, &path, "text/event-stream");
            // Half of what one may have are of the first kind, so that there is room for the other.
            let count = if streams == 0 { count.min(STREAMS_PER_PERSON / 2) } else { count };
            streams += hold(asked.host(), &follow, count, |number| MEMBER[number % 2], &mut held).await;
        }
        let count = asked.number_or("looks", LOOKS) / sessions.len();
        let mut looks = 0;
        for session in sessions {
            let look = get(member, &format!("/api/v1/sessions/{session}/files"), "application/json");
            looks += hold(asked.host(), &look, count, |_| MEMBER[2], &mut held).await;
        }
        let body = half_a_body(member);
        let count = asked.number_or("bodies", BODIES);
        let bodies = hold(asked.host(), &body, count, |_| MEMBER[2], &mut held).await;
        Self { had: Had { idle, streams, looks, bodies }, _held: held }
    }
}

/// Waits until the server has let go of everything that they held: a quiet phase has nothing of a crowded one in it.
async fn until_alone(asked: &Asked) {
    let began = Instant::now();
    loop {
        let figures = Connection::open(asked.host()).await.ask(&get(asked, "/metrics", "text/plain")).await;
        let figures = String::from_utf8_lossy(&figures.body).into_owned();
        let figure = |name: &str| -> u64 {
            let line = figures.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.and_then(|figure| figure.parse().ok()).unwrap_or_else(|| panic!("no {name}: {figures}"))
        };
        let names =
            ["homing_http_connections", "homing_http_streams", "homing_http_looks", "homing_http_body_bytes"];
        if names.iter().map(|name| figure(name)).sum::<u64>() <= ALONE_MAX {
            return tokio::time::sleep(SETTLE).await;
        }
        assert!(began.elapsed() < ALONE_WAIT, "the server does not let go: {figures}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Everything that was measured in all phases of a kind.
#[derive(Default)]
struct Phases {
    lists: Times,
    says: Times,
    took: f64,
    /// Of the server and of this program.
    cpu: [f64; 2],
}

impl Phases {
    fn add(&mut self, others: &Self) {
        self.lists.add(&others.lists);
        self.says.add(&others.says);
        self.took += others.took;
        self.cpu = std::array::from_fn(|of| self.cpu[of] + others.cpu[of]);
    }

    fn member(self) -> String {
        let [server, own] = self.cpu.map(|cpu| cpu / self.took);
        let (lists, says) = (self.lists.members(), self.says.members());
        format!(r#"{{"lists":{{{lists}}},"says":{{{says}}},"server_cpu":{server:.2},"own_cpu":{own:.2}}}"#)
    }
}

/// Everybody else: they read a list, and say something to a session in which a turn is under way.
struct Others {
    host: String,
    list: Vec<u8>,
    say: Vec<u8>,
    count: usize,
}

impl Others {
    async fn new(asked: &Asked, count: usize) -> Self {
        let mut connection = Connection::open(asked.host()).await;
        for _ in 0..50 {
            connection.ask(&post(asked, "/api/v1/sessions", &json!({}))).await.json();
        }
        let say = |text: &str| {
            let body = json!({ "to": { "conversation": "api:bench/others" }, "text": text });
            post(asked, "/api/v1/messages", &body)
        };
        // It goes on for as long as this does, so that nothing else runs beside what is measured.
        let begun = connection.ask(&say("!sleep 3000000")).await;
        assert_eq!(begun.status, 202, "{}", String::from_utf8_lossy(&begun.body));
        let list = get(asked, "/api/v1/sessions?limit=50", "application/json");
        Self { host: asked.host().to_owned(), list, say: say("hello"), count }
    }

    async fn ask_all(&mut self, asked: &Asked, phases: &mut Phases) {
        let pids = [asked.number("pid"), std::process::id()];
        // A new connection each time: one that rested while the others came may have been closed.
        let mut connection = Connection::open(&self.host).await;
        let (mut began, mut cpu_before) = (Instant::now(), pids.map(cpu));
        for number in 0..WARM + self.count {
            if number == WARM {
                (began, cpu_before) = (Instant::now(), pids.map(cpu));
            }
            let began = Instant::now();
            let answered = connection.ask(&self.list).await;
            let listed = began.elapsed();
            assert_eq!(answered.status, 200, "{}", String::from_utf8_lossy(&answered.body));
            rekey(&mut self.say, fresh_key());
            let began = Instant::now();
            let answered = connection.ask(&self.say).await;
            let said = began.elapsed();
            // A queue that is full says so as durably as one that is not.
            assert!([202, 429].contains(&answered.status), "{}", String::from_utf8_lossy(&answered.body));
            if number >= WARM {
                phases.lists.note(listed);
                phases.says.note(said);
            }
        }
        phases.took += began.elapsed().as_secs_f64();
        phases.cpu =
            std::array::from_fn(|of| phases.cpu[of] + (cpu(pids[of]) - cpu_before[of]).as_secs_f64());
    }
}

/// A session of the member's in whose directory every look waits for ever: git asks a pipe that nobody writes to.
async fn blocked_session(asked: &Asked) -> String {
    let mut connection = Connection::open(asked.host()).await;
    let text = "!run git init -q . && rm -f .gitignore && mkfifo .gitignore && touch new";
    let body = json!({ "to": { "new": {} }, "text": text });
    let receipt = connection.ask(&post(asked, "/api/v1/messages", &body)).await.json();
    let wait = format!("/api/v1/messages/{}?wait=30", receipt["id"].as_str().expect("an id"));
    let state = connection.ask(&get(asked, &wait, "application/json")).await.json();
    assert_eq!(state["state"], "answered", "{state}");
    receipt["session"].as_str().expect("an id").to_owned()
}

/// Connects from an address of its own, and says the beginning of something. None if that was refused.
async fn open(host: &str, from: &str, said: &[u8]) -> Option<TcpStream> {
    let (host, from): (SocketAddr, SocketAddr) =
        (host.parse().expect("an address"), from.parse().expect("an address"));
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_reuseaddr(true).expect("a socket");
    socket.bind(from).expect("every 127.0.0.x is ours");
    let mut stream = socket.connect(host).await.ok()?;
    stream.write_all(said).await.ok()?;
    Some(stream)
}

/// Sends the same request so often and answers how many of them are held: neither answered with an error nor closed.
async fn hold(
    host: &str,
    request: &[u8],
    count: usize,
    from: impl Fn(usize) -> &'static str,
    held: &mut Vec<TcpStream>,
) -> usize {
    let mut own = Vec::new();
    for number in 0..count {
        own.extend(open(host, from(number), request).await);
        if number % 256 == 0 {
            tokio::task::yield_now().await;
        }
    }
    let open = still_open(&mut own).await;
    held.append(&mut own);
    open
}

/// Lets go of those that were refused, and answers how many are left.
async fn still_open(all: &mut Vec<TcpStream>) -> usize {
    tokio::time::sleep(SETTLE).await;
    let mut kept = Vec::new();
    for mut stream in all.drain(..) {
        let mut head = [0; 12];
        let read = tokio::time::timeout(Duration::from_millis(1), stream.read(&mut head)).await;
        let is_refused = match read {
            Ok(Ok(read)) => read == 0 || !head.starts_with(b"HTTP/1.1 200"),
            Ok(Err(_)) => true,
            Err(_) => false, // It waits.
        };
        if !is_refused {
            kept.push(stream);
        }
    }
    *all = kept;
    all.len()
}

/// A message whose last byte does not come.
fn half_a_body(asked: &Asked) -> Vec<u8> {
    let (host, token) = (asked.host(), asked.token());
    let head = format!(
        "POST /api/v1/messages HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {BODY_BYTES}\r\n\r\n"
    );
    let mut request = head.into_bytes();
    request.resize(request.len() + BODY_BYTES - 1, b' ');
    request
}
