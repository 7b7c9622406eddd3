//! The one stream of a browser: rows of lists and watched sessions together, from where one was, and nothing that one may not see.

use crate::town::{SOON, Town};
use crate::world::{Somebody, TOKEN, World, trace};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use kernel::{Grant, Grantee, Rights, Role, SessionId, To};
use serde_json::{Value, json};
use std::time::Duration;

/// A stream that somebody listens to.
struct Listener {
    frames: BoxStream<'static, reqwest::Result<bytes::Bytes>>,
    text: String,
    /// The place and the numbers that are known.
    cursor: String,
}

/// One event: its name, and what it says.
type Told = (String, Value);

impl Listener {
    async fn open(town: &Town, who: &Somebody, query: &str) -> Self {
        let path = format!("/api/v1/stream?{query}");
        let ask = town.ask(Some(&who.token), "GET", &path).header("accept", "text/event-stream");
        let response = ask.send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let mut listener =
            Self { frames: response.bytes_stream().boxed(), text: String::new(), cursor: String::new() };
        let (name, told) = listener.next().await.unwrap();
        assert_eq!(name, "began", "{told}");
        listener
    }

    /// The next event; none is the end.
    async fn next(&mut self) -> Option<Told> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.text = rest;
                let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
                let (Some(name), Some(told)) = (field("event: "), field("data: ")) else { continue };
                assert_eq!(field("id: "), None, "a browser has its own places");
                let told: Value = serde_json::from_str(told).unwrap();
                if let Some(cursor) = told["cursor"].as_str() {
                    self.cursor = cursor.to_owned();
                }
                return Some((name.to_owned(), told));
            }
            let frame = tokio::time::timeout(SOON, self.frames.next()).await.expect("something is told")?;
            self.text.push_str(std::str::from_utf8(&frame.ok()?).unwrap());
        }
    }

    /// The first event that is this; those before it are returned, too.
    async fn until(&mut self, is: impl Fn(&str, &Value) -> bool) -> (Value, Vec<Told>) {
        let mut before = Vec::new();
        loop {
            let (name, told) = self.next().await.expect("the stream goes on");
            if is(&name, &told) {
                return (told, before);
            }
            before.push((name, told));
        }
    }

    /// The row of this session, once it is like this.
    async fn row(&mut self, session: SessionId, is: impl Fn(&Value) -> bool) -> Value {
        let id = session.to_string();
        let is = |name: &str, told: &Value| {
            name == "session" && told["session"]["id"] == id.as_str() && is(&told["session"])
        };
        self.until(is).await.0["session"].clone()
    }

    async fn gone(&mut self, session: SessionId) -> Vec<Told> {
        let id = session.to_string();
        self.until(|name, told| name == "gone" && told["session"] == id.as_str()).await.1
    }

    /// The numbers of this session's facts up to one.
    async fn numbers(&mut self, session: SessionId, last: u64) -> Vec<u64> {
        let id = session.to_string();
        let of = |told: &Value| told["session"] == id.as_str();
        let is = |name: &str, told: &Value| name == "fact" && of(told) && told["fact"]["number"] == last;
        let (_, before) = self.until(is).await;
        let facts = before.iter().filter(|(name, told)| name == "fact" && of(told));
        facts.map(|(_, told)| told["fact"]["number"].as_u64().unwrap()).chain([last]).collect()
    }
}

async fn patch(town: &Town, who: &Somebody, session: SessionId, body: Value) {
    let path = format!("/api/v1/sessions/{session}");
    let (status, _, told) = town.answer(Some(&who.token), "PATCH", &path, Some(&body)).await;
    assert_eq!(status, 200, "{told}");
}

/// A session of theirs with a turn that is over, and its last number.
async fn answered(town: &Town, who: &Somebody, to: To, text: &str) -> (SessionId, u64) {
    let (session, message) = town.say(who, to, text).await;
    let by = town.now(who).await;
    let receipt = town.engine.views().receipt_within(&by, message, SOON).await.unwrap();
    (session, receipt.row.last.expect("it is answered").0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_browser_hears_of_every_row_and_of_what_it_watches() {
    let town = Town::new(&[]).await;
    let ann = town.host.clone();
    let (old, last) = answered(&town, &ann, To::New, "hello").await;
    let mut all = Listener::open(&town, &ann, &format!("watch={old}:{}", last - 2)).await;
    let mut ready = false;
    let numbers = async {
        let mut numbers = Vec::new();
        while numbers.len() < 2 || !ready {
            let (name, told) = all.next().await.unwrap();
            ready |= name == "readiness" && told["readiness"]["state"] == "ready";
            numbers.extend(told["fact"]["number"].as_u64());
        }
        numbers
    };
    assert_eq!(numbers.await, [last - 1, last], "from the number that was said");
    let (new, _) = answered(&town, &ann, To::New, "another").await;
    let row = all.row(new, |row| row["awake"] == false && row["pending"] == 0).await;
    assert_eq!((row["agent"].as_str(), row["title"].as_str()), (Some("scripted"), Some("another")));
    patch(&town, &ann, new, json!({"title": "given"})).await;
    assert_eq!(all.row(new, |row| row["title"] == "given").await["title_by"], "person");
    patch(&town, &ann, old, json!({"archived": true})).await;
    all.row(old, |row| row["archived"] == true).await;
    // What she marks in one tab is so in the others.
    let marks = format!("/api/v1/sessions/{new}/marks");
    let (status, _, told) =
        town.answer(Some(&ann.token), "PUT", &marks, Some(&json!({"seen": 1, "pinned": true}))).await;
    assert_eq!(status, 200, "{told}");
    assert_eq!(all.row(new, |row| row["pinned"] == true).await["seen"], 1);
    town.say(&ann, To::Session(old), "!say 20 50").await;
    let (live, _) = all.until(|name, _| name == "live").await;
    assert_eq!(live["session"], old.to_string());
    assert!(live["live"]["text"].is_string() && live["live"]["offset"].is_u64(), "{live}");
    let ended = |name: &str, told: &Value| name == "fact" && told["fact"]["type"] == "turn_ended";
    all.until(ended).await;
    town.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_comes_back_hears_everything_once() {
    let town = Town::new(&[]).await;
    let ann = town.host.clone();
    let (first, last) = answered(&town, &ann, To::New, "one").await;
    let (second, second_last) = answered(&town, &ann, To::New, "two").await;
    let mut all = Listener::open(&town, &ann, &format!("watch={first}:0&watch={second}:0")).await;
    assert_eq!(all.numbers(first, 3).await, [1, 2, 3]);
    let cursor = all.cursor.clone();
    drop(all);
    // While nobody looks.
    let (_, newer) = answered(&town, &ann, To::Session(first), "three").await;
    patch(&town, &ann, second, json!({"title": "meanwhile"})).await;
    let (third, _) = answered(&town, &ann, To::New, "four").await;
    let query = format!("cursor={cursor}&watch={first}:3&watch={second}:{second_last}");
    let mut back = Listener::open(&town, &ann, &query).await;
    let (mut numbers, mut rows) = (Vec::new(), Vec::new());
    while rows.len() < 3 || numbers.last() != Some(&newer) {
        let (name, told) = back.next().await.unwrap();
        match name.as_str() {
            "fact" => {
                assert_eq!(told["session"], first.to_string(), "there is nothing new in the other");
                numbers.push(told["fact"]["number"].as_u64().unwrap());
            }
            "session" => rows.push(told["session"]["id"].as_str().unwrap().to_owned()),
            _ => {}
        }
    }
    assert!(newer > last);
    assert_eq!(numbers, (4..=newer).collect::<Vec<_>>(), "no gap, and no repeat");
    assert_eq!(rows, [first, second, third].map(|session| session.to_string()), "each once");
    let cursor = back.cursor.clone();
    drop(back);
    let mut again = Listener::open(&town, &ann, &format!("cursor={cursor}")).await;
    patch(&town, &ann, second, json!({"archived": true})).await;
    let (told, before) = again.until(|name, _| name == "session").await;
    assert_eq!((told["session"]["id"].as_str(), before.len()), (Some(second.to_string().as_str()), 0));
    town.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_comes_into_sight_and_goes_out_of_it() {
    let town = Town::new(&[]).await;
    let ann = town.host.clone();
    let bob = town.person(&ann, "bob", Role::Member).await;
    let (hidden, last) = answered(&town, &ann, To::New, "hidden").await;
    let (own, own_last) = answered(&town, &bob, To::New, "mine").await;
    let mut rows = Listener::open(&town, &bob, "").await;
    town.give(&ann, hidden, Grantee::Person(bob.by.person), Grant::View).await;
    assert_eq!(rows.row(hidden, |_| true).await["title"], "hidden");
    let watch = format!("watch={hidden}:{last}&watch={own}:{own_last}");
    let mut all = Listener::open(&town, &bob, &watch).await;
    let cursor = all.cursor.clone();
    let grants = format!("/api/v1/sessions/{hidden}/grants?user={}", bob.by.person);
    assert_eq!(town.answer(Some(&ann.token), "DELETE", &grants, None).await.0, 200);
    answered(&town, &ann, To::Session(hidden), "a secret").await;
    let before = all.gone(hidden).await;
    assert!(!before.iter().any(|(_, told)| told.to_string().contains("a secret")), "{before:?}");
    rows.gone(hidden).await;
    // The other goes on.
    let (_, newer) = answered(&town, &bob, To::Session(own), "still here").await;
    assert_eq!(all.numbers(own, newer).await, (own_last + 1..=newer).collect::<Vec<_>>());
    drop((all, rows));
    // Who was away when it went hears so, too, and of nothing that happened there.
    let mut back = Listener::open(&town, &bob, &format!("cursor={cursor}")).await;
    let before = back.gone(hidden).await;
    assert!(!before.iter().any(|(_, told)| told.to_string().contains(&hidden.to_string())), "{before:?}");
    // By a group, and out of it again.
    let by = town.now(&ann).await;
    let group = town.engine.people().make_group(&by, "crew".into(), trace()).await.unwrap().group;
    town.give(&ann, hidden, Grantee::Group(group), Grant::View).await;
    town.engine.people().join(&by, group, bob.by.person, trace()).await.unwrap();
    back.row(hidden, |_| true).await;
    town.engine.people().leave(&by, group, bob.by.person, trace()).await.unwrap();
    back.gone(hidden).await;
    // And as theirs, for good.
    town.hand_over(&ann, hidden, &bob).await;
    back.row(hidden, |row| row["owner"] == bob.by.person.to_string()).await;
    town.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_credential_that_ends_ends_the_stream() {
    let town = Town::new(&[]).await;
    let ann = town.host.clone();
    let token = town.token(&ann, Rights::ALL).await;
    let (session, last) = answered(&town, &ann, To::New, "hello").await;
    for watch in [String::new(), format!("watch={session}:{last}")] {
        let token = town.token(&ann, Rights::ALL).await;
        let mut all = Listener::open(&town, &token, &watch).await;
        let path = format!("/api/v1/tokens/{}", token.by.credential.unwrap());
        assert_eq!(town.answer(Some(&ann.token), "DELETE", &path, None).await.0, 200);
        let by = town.now(&ann).await;
        let at = town.engine.views().session(&by, session).await.unwrap().at.0;
        answered(&town, &ann, To::Session(session), "after").await;
        while let Some((name, told)) = all.next().await {
            let number = told["fact"]["number"].as_u64().or(told["session"]["number"].as_u64());
            assert!(number.is_none_or(|number| number <= at), "nothing that happened after: {name} {told}");
            assert_ne!(name, "live");
        }
    }
    // Another one of the same person goes on.
    let mut all = Listener::open(&town, &token, "").await;
    patch(&town, &ann, session, json!({"title": "given"})).await;
    all.row(session, |row| row["title"] == "given").await;
    town.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_may_not_watch_is_gone_as_if_it_had_never_been() {
    let town = Town::new(&[]).await;
    let ann = town.host.clone();
    let bob = town.person(&ann, "bob", Role::Member).await;
    let (hidden, _) = answered(&town, &ann, To::New, "hidden").await;
    let never = SessionId::from_bits((5 << 110) + 0x5_5555);
    let mut told = Vec::new();
    for session in [hidden, never] {
        // Also a number that its log has not come to, which would be refused of one that may be seen.
        for number in [0, 1_000_000] {
            let mut all = Listener::open(&town, &bob, &format!("watch={session}:{number}")).await;
            let (name, gone) = all.next().await.unwrap();
            told.push(format!("{name} {gone}").replace(&session.to_string(), "SESSION"));
        }
    }
    assert!(told.iter().all(|one| *one == told[0]), "{told:?}");
    assert_eq!(told[0], r#"gone {"session":"SESSION"}"#);
    town.close().await;
}

#[tokio::test]
async fn what_is_no_place_or_watch_is_refused() {
    let town = Town::new(&[]).await;
    let ann = town.host.clone();
    let (session, last) = answered(&town, &ann, To::New, "hello").await;
    let many = |count: u64| {
        let watches =
            (0..count).map(|n| format!("watch={}:0", SessionId::from_bits((5 << 110) + u128::from(n))));
        watches.collect::<Vec<_>>().join("&")
    };
    for (query, code) in [
        ("cursor=h1".to_owned(), "bad_cursor"),
        ("cursor=wx".to_owned(), "bad_cursor"),
        ("cursor=wffffffffff".to_owned(), "bad_cursor"),
        ("cursor=w0&cursor=w0".to_owned(), "invalid"),
        ("watch=".to_owned(), "invalid"),
        (format!("watch={session}"), "invalid"),
        (format!("watch={session}:x"), "invalid"),
        (format!("watch={session}:{}", last + 1), "invalid"),
        (format!("watch={session}:0&watch={session}:1"), "invalid"),
        (many(33), "invalid"),
        ("since=1".to_owned(), "invalid"),
    ] {
        let path = format!("/api/v1/stream?{query}");
        let ask = town.ask(Some(&ann.token), "GET", &path).header("accept", "text/event-stream");
        let (status, told, problem) = crate::town::read(ask.send().await.unwrap()).await;
        assert_eq!((status, told.as_deref()), (422, Some(code)), "{query}: {problem}");
    }
    let (status, code, _) = town.answer(Some(&ann.token), "GET", "/api/v1/stream", None).await;
    assert_eq!((status, code.as_deref()), (422, Some("invalid")), "it has no other form than a stream");
    let mut most = Listener::open(&town, &ann, &many(32)).await;
    for _ in 0..32 {
        assert_eq!(most.next().await.unwrap().0, "gone");
    }
    town.close().await;
}

#[tokio::test]
async fn it_is_one_stream_however_much_it_watches() {
    let world = World::with(Default::default(), |config| config.streams_per_person_max = 1).await;
    let made = world.client().make_session(&api::NewSession::default()).await.unwrap();
    let open = async || {
        let ask = world.ask("GET", &format!("/api/v1/stream?watch={}:0", made.id));
        ask.header("accept", "text/event-stream").send().await.unwrap()
    };
    let one = open().await;
    assert_eq!(one.status(), 200);
    let refused = open().await;
    assert_eq!(refused.status(), 503);
    assert!(refused.text().await.unwrap().contains("too_many_streams"));
}

#[tokio::test]
async fn a_browser_that_takes_nothing_is_cut_off() {
    use tokio::io::AsyncWriteExt;
    let set_up = |config: &mut server::ServerConfig| config.stall_max = Duration::from_millis(500);
    let world = World::with(Default::default(), set_up).await;
    let made = world.client().make_session(&api::NewSession::default()).await.unwrap();
    let mut stalled = tokio::net::TcpStream::connect(world.host()).await.unwrap();
    let request = format!(
        "GET /api/v1/stream?watch={}:0 HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\n\
         Accept: text/event-stream\r\n\r\n",
        made.id,
        world.host()
    );
    stalled.write_all(request.as_bytes()).await.unwrap();
    let streams = async |count: &str| {
        let line = format!("homing_http_streams {count}\n");
        loop {
            let metrics = world.ask("GET", "/metrics").send().await.unwrap().text().await.unwrap();
            if metrics.contains(&line) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(SOON, streams("1")).await.expect("it is open");
    // More than the buffers of the system and the ring hold.
    let to = api::To::session(&made.id);
    let flood = world.client().say(&api::NewMessage::text(to, "!flood 16000000")).await.unwrap();
    let query = api::MessageQuery { wait: Some(20), words: None };
    assert_eq!(world.client().receipt(&flood.id, &query).await.unwrap().state, api::ReceiptState::Answered);
    tokio::time::timeout(Duration::from_secs(60), streams("0")).await.expect("it is cut off");
    drop(stalled);
}
