//! Two things that somebody asks for: one that is there and hidden from them, and one that never was. Do they take equally long?
//!
//! `twins pairs=N`: for each of the main verbs N pairs on one connection, in an order that changes from pair to pair, and as many
//! of two things of which neither ever was, which says how much is noise. One object of times for each verb.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::http::{Connection, fresh_key, get, keyed, post, rekey};
use crate::team::let_in;
use crate::{Asked, Times};

/// The longest until the agent has asked.
const QUESTION_WAIT: Duration = Duration::from_secs(30);
/// Pairs before the first that counts.
const WARM: usize = 50;

/// The ids that are asked for: a session, a message in it, and a question of its agent. An offer is made to whoever asks.
#[derive(Clone)]
struct Target {
    session: String,
    message: String,
    approval: String,
    asker: String,
}

pub(crate) async fn twins(asked: &Asked) -> String {
    let pairs: usize = asked.number("pairs");
    let hidden = hidden(asked).await;
    let asked = asked.with("token", &let_in(asked, "nosy").await);
    let me = Connection::open(asked.host()).await.ask(&read(&asked, "me")).await.json();
    let asker = me["person"].as_str().expect("an id").to_owned();
    let hidden = Target { asker, ..hidden };
    let [absent, other] = [1, 2].map(|salt| absent(&hidden, salt));
    let mut connection = Connection::open(asked.host()).await;
    let mut told = Vec::new();
    for (verb, request) in VERBS {
        let [hidden, absent, other] =
            [&hidden, &absent, &other].map(|target| Asker::new(request(&asked, target)));
        let (there, gone) = pairs_of(&mut connection, [hidden, absent.clone()], pairs).await;
        let (one, another) = pairs_of(&mut connection, [absent, other], pairs).await;
        let [there, gone, one, another] = [there, gone, one, another].map(Times::members);
        told.push(format!(
            r#""{verb}":{{"hidden":{{{there}}},"absent":{{{gone}}},"one":{{{one}}},"another":{{{another}}}}}"#
        ));
    }
    format!("{{{}}}", told.join(","))
}

type MakeRequest = fn(&Asked, &Target) -> Vec<u8>;

/// Reads first; then wishes, each of which leaves its refusal in the audit.
const VERBS: [(&str, MakeRequest); 32] = [
    ("session", |asked, target| read(asked, &format!("sessions/{}", target.session))),
    ("facts", |asked, target| read(asked, &format!("sessions/{}/facts", target.session))),
    ("preview_undo", |asked, target| read(asked, &format!("sessions/{}/undo?turn=1", target.session))),
    ("queue", |asked, target| read(asked, &format!("sessions/{}/queue", target.session))),
    ("readiness", |asked, target| read(asked, &format!("sessions/{}/readiness", target.session))),
    ("files", |asked, target| read(asked, &format!("sessions/{}/files", target.session))),
    ("grants", |asked, target| read(asked, &format!("sessions/{}/grants", target.session))),
    ("export", |asked, target| read(asked, &format!("sessions/{}/export", target.session))),
    ("worktrees", |asked, target| read(asked, &format!("worktrees?session={}", target.session))),
    ("changes", |asked, target| read(asked, &format!("sessions/{}/changes?turn=1", target.session))),
    ("file_changes", |asked, target| {
        read(asked, &format!("sessions/{}/changes/file?turn=1&path=work.txt", target.session))
    }),
    ("worktree_changes", |asked, target| {
        read(asked, &format!("sessions/{}/worktrees/fix/changes", target.session))
    }),
    ("worktree_file_changes", |asked, target| {
        read(asked, &format!("sessions/{}/worktrees/fix/changes/file?path=work.txt", target.session))
    }),
    ("approval", |asked, target| read(asked, &format!("approvals/{}", target.approval))),
    ("receipt", |asked, target| read(asked, &format!("messages/{}", target.message))),
    ("say", |asked, target| {
        let body = json!({ "to": { "session": target.session }, "text": "hello" });
        post(asked, "/api/v1/messages", &body)
    }),
    ("stop", |asked, target| wish(asked, &format!("messages/{}/stop", target.message))),
    ("change_message", |asked, target| {
        keyed(asked, "PATCH", &format!("/api/v1/messages/{}", target.message), &json!({ "held": true }))
    }),
    ("withdraw", |asked, target| remove(asked, &format!("messages/{}", target.message))),
    ("answer", |asked, target| {
        post(asked, &format!("/api/v1/approvals/{}", target.approval), &json!({ "answer": "yes" }))
    }),
    ("offer", |asked, target| of_session(asked, target, "hand-over", &json!({ "to": target.asker }))),
    ("end", |asked, target| wish(asked, &format!("sessions/{}/end", target.session))),
    ("accept_offer", |asked, target| wish(asked, &format!("sessions/{}/hand-over/accept", target.session))),
    ("undo", |asked, target| of_session(asked, target, "undo", &json!({ "turn": 1 }))),
    ("redo", |asked, target| of_session(asked, target, "redo", &json!({ "turn": 1 }))),
    ("fork", |asked, target| wish(asked, &format!("sessions/{}/fork", target.session))),
    ("scope", |asked, target| of_session(asked, target, "scope", &json!({ "exit": true }))),
    ("merge", |asked, target| wish(asked, &format!("sessions/{}/worktrees/fix/merge", target.session))),
    ("apply", |asked, target| wish(asked, &format!("sessions/{}/worktrees/fix/apply", target.session))),
    ("remove", |asked, target| remove(asked, &format!("sessions/{}/worktrees/fix", target.session))),
    ("restore", |asked, target| wish(asked, &format!("sessions/{}/worktrees/fix/restore", target.session))),
    ("stop_background", |asked, target| wish(asked, &format!("sessions/{}/stop-background", target.session))),
];

fn read(asked: &Asked, path: &str) -> Vec<u8> {
    get(asked, &format!("/api/v1/{path}"), "application/json")
}

fn wish(asked: &Asked, path: &str) -> Vec<u8> {
    post(asked, &format!("/api/v1/{path}"), &json!({}))
}

fn remove(asked: &Asked, path: &str) -> Vec<u8> {
    keyed(asked, "DELETE", &format!("/api/v1/{path}"), &json!({}))
}

fn of_session(asked: &Asked, target: &Target, verb: &str, body: &Value) -> Vec<u8> {
    post(asked, &format!("/api/v1/sessions/{}/{verb}", target.session), body)
}

/// One request, again and again: a wish under another key each time.
#[derive(Clone)]
struct Asker {
    request: Vec<u8>,
    is_wish: bool,
}

impl Asker {
    fn new(request: Vec<u8>) -> Self {
        let is_wish = !request.starts_with(b"GET ");
        Self { request, is_wish }
    }

    async fn ask(&mut self, connection: &mut Connection) -> Duration {
        if self.is_wish {
            rekey(&mut self.request, fresh_key());
        }
        let began = Instant::now();
        let answered = connection.ask(&self.request).await;
        let took = began.elapsed();
        assert_eq!(answered.status, 404, "{}", String::from_utf8_lossy(&answered.body));
        took
    }
}

async fn pairs_of(connection: &mut Connection, of: [Asker; 2], pairs: usize) -> (Times, Times) {
    let [mut first, mut second] = of;
    let (mut of_first, mut of_second) = (Times::default(), Times::default());
    for number in 0..WARM + pairs {
        // Neither is always the one that comes after the other. The bits of a multiple of an odd number do not repeat soon.
        let is_swapped = number.wrapping_mul(0x9E37_79B9) & 0x100 != 0;
        let (one, other) = if is_swapped {
            let other = second.ask(connection).await;
            (first.ask(connection).await, other)
        } else {
            let one = first.ask(connection).await;
            (one, second.ask(connection).await)
        };
        if number >= WARM {
            of_first.note(one);
            of_second.note(other);
        }
    }
    (of_first, of_second)
}

/// A session of the machine's person with a turn that was answered, and one whose agent asks.
async fn hidden(asked: &Asked) -> Target {
    let mut connection = Connection::open(asked.host()).await;
    let body = json!({ "to": { "new": {} }, "text": "mine" });
    let receipt = connection.ask(&post(asked, "/api/v1/messages", &body)).await.json();
    let text = |name: &str| receipt[name].as_str().expect("an id").to_owned();
    let asks = json!({ "to": { "new": {} }, "text": "!ask hammer" });
    connection.ask(&post(asked, "/api/v1/messages", &asks)).await.json();
    let approval = question(asked, &mut connection).await;
    let target = Target { session: text("session"), message: text("id"), approval, asker: String::new() };
    let request = read(asked, &format!("messages/{}?wait=30", target.message));
    let state: Value = connection.ask(&request).await.json();
    assert_eq!(state["state"], "answered", "{state}");
    target
}

/// The id of the question that is open, as soon as there is one.
async fn question(asked: &Asked, connection: &mut Connection) -> String {
    let began = Instant::now();
    loop {
        let page = connection.ask(&read(asked, "approvals")).await.json();
        if let Some(id) = page["items"][0]["id"].as_str() {
            return id.to_owned();
        }
        assert!(began.elapsed() < QUESTION_WAIT, "nobody asks: {page}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Ids of the same form that were never given to anything.
fn absent(like: &Target, salt: u8) -> Target {
    let other = |id: &str| {
        let (kept, end) = id.split_at(id.len() - 6);
        let end: String = end.bytes().map(|byte| char::from(b'0' + (byte + salt) % 10)).collect();
        format!("{kept}{end}")
    };
    let [session, message, approval] = [&like.session, &like.message, &like.approval].map(|id| other(id));
    Target { session, message, approval, asker: like.asker.clone() }
}
