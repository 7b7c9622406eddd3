//! Facts as they happen: no gap, no repeat, and no memory for who does not read.

use crate::world::{TOKEN, World};
use api::client::FollowItem;
use api::*;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Opens a stream and reads until `until` is in what was read, or the server ends it.
async fn read(world: &World, path: &str, headers: &str, until: &str) -> String {
    let mut stream = open(world, path, headers).await;
    let mut text = String::new();
    let mut buffer = [0; 4096];
    let reading = async {
        while !text.contains(until) {
            match stream.read(&mut buffer).await.unwrap() {
                0 => break,
                n => text.push_str(&String::from_utf8_lossy(&buffer[..n])),
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), reading).await.unwrap();
    text
}

/// Opens a stream; when this answers, the server has opened it, too.
async fn opened(world: &World, path: &str) -> TcpStream {
    let mut stream = open(world, path, "").await;
    let (mut heard, mut byte) = (Vec::new(), [0]);
    let reading = async {
        while !heard.ends_with(b"retry: 1000\n\n") {
            stream.read_exact(&mut byte).await.unwrap();
            heard.extend_from_slice(&byte);
        }
    };
    tokio::time::timeout(Duration::from_secs(20), reading).await.unwrap();
    stream
}

async fn open(world: &World, path: &str, headers: &str) -> TcpStream {
    let mut stream = TcpStream::connect(world.host()).await.unwrap();
    let host = world.host();
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {TOKEN}\r\n\
         Accept: text/event-stream\r\n{headers}\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

fn ids(text: &str) -> Vec<u64> {
    text.lines().filter_map(|line| line.strip_prefix("id: ")).map(|id| id.parse().unwrap()).collect()
}

async fn answered(world: &World, to: To, text: &str) -> Receipt {
    let client = world.client();
    let receipt = client.say(&NewMessage::text(to, text)).await.unwrap();
    let query = MessageQuery { wait: Some(20), words: None };
    let receipt = client.receipt(&receipt.id, &query).await.unwrap();
    assert_eq!(receipt.state, ReceiptState::Answered);
    receipt
}

#[tokio::test]
async fn a_stream_resumes_after_the_last_event_without_a_gap_or_a_repeat() {
    let world = World::new().await;
    let receipt = answered(&world, To::new_session(IfNew::default()), "hello").await;
    let last = receipt.last.unwrap();
    let path = format!("/api/v1/sessions/{}/facts", receipt.session);
    let end = format!("id: {last}\n");
    let all = read(&world, &path, "", &end).await;
    assert!(all.starts_with("HTTP/1.1 200"), "{all}");
    assert!(all.contains("content-type: text/event-stream") && all.contains("retry: 1000"), "{all}");
    assert_eq!(ids(&all), (1..=last).collect::<Vec<_>>());
    let rest = read(&world, &path, "Last-Event-ID: 3\r\n", &end).await;
    assert_eq!(ids(&rest), (4..=last).collect::<Vec<_>>());
    let rest = read(&world, &format!("{path}?after=5"), "", &end).await;
    assert_eq!(ids(&rest), (6..=last).collect::<Vec<_>>());
    let rest = read(&world, &format!("{path}?after=5"), "Last-Event-ID: 2\r\n", &end).await;
    assert_eq!(ids(&rest), (3..=last).collect::<Vec<_>>(), "Last-Event-ID beats after");
    let bad = read(&world, &path, "Last-Event-ID: x\r\n", "\"status\"").await;
    assert!(bad.starts_with("HTTP/1.1 422"), "{bad}");
}

#[tokio::test]
async fn a_follower_hears_every_fact_once_over_a_restart_of_the_server() {
    let mut world = World::new().await;
    let first = answered(&world, To::new_session(IfNew::default()), "one").await;
    let mut follow = world.client().follow(&first.session, 0);
    let heard = tokio::spawn(async move {
        let (mut numbers, mut turns) = (Vec::new(), 0);
        while turns < 3 {
            if let FollowItem::Fact(fact) = follow.next().await.unwrap() {
                numbers.push(fact.number);
                turns += u32::from(matches!(fact.what, What::Rule(RuleFact::TurnEnded { .. })));
            }
        }
        numbers
    });
    answered(&world, To::session(&first.session), "two").await;
    world = world.restart().await;
    let receipt = world.client().say(&NewMessage::text(To::session(&first.session), "three")).await.unwrap();
    let query = MessageQuery { wait: Some(20), words: None };
    let receipt = world.client().receipt(&receipt.id, &query).await.unwrap();
    assert!(receipt.state.is_final());
    let numbers = tokio::time::timeout(Duration::from_secs(20), heard).await.unwrap().unwrap();
    assert_eq!(numbers, (1..=receipt.last.unwrap()).collect::<Vec<_>>());
}

#[tokio::test]
async fn live_words_come_ahead_and_again_as_facts() {
    let world = World::new().await;
    let client = world.client();
    let made = client.make_session(&NewSession::default()).await.unwrap();
    let mut follow = client.follow(&made.id, 0);
    // The stream is there before anything is said.
    follow.next().await.unwrap();
    client.say(&NewMessage::text(To::session(&made.id), "!say 40 200")).await.unwrap();
    let (mut live, mut text) = (String::new(), String::new());
    loop {
        match follow.next().await.unwrap() {
            FollowItem::Live(words) => {
                assert_eq!(words.offset as usize, live.len());
                live.push_str(&words.text);
            }
            FollowItem::Fact(Fact { what: What::Story(story), .. }) => {
                if let Story::Text { offset, text: words, .. } = story.story {
                    assert_eq!(offset as usize, text.len());
                    text.push_str(&words);
                    assert!(live.len() >= text.len());
                }
            }
            FollowItem::Fact(Fact { what: What::Rule(RuleFact::TurnEnded { .. }), .. }) => break,
            FollowItem::Fact(_) | FollowItem::Progress(_) => {}
            gone @ (FollowItem::Away { .. } | FollowItem::Back) => panic!("the server stays: {gone:?}"),
        }
    }
    assert!(!text.is_empty());
    assert_eq!(text, live);
}

#[tokio::test]
async fn the_stream_of_heads_tells_which_sessions_changed() {
    let world = World::new().await;
    let first = answered(&world, To::new_session(IfNew::default()), "one").await;
    let text = read(&world, "/api/v1/facts", "", &first.session).await;
    let cursor = text.lines().find_map(|line| line.strip_prefix("id: ")).unwrap().to_owned();
    let world_ref = &world;
    let resume = format!("Last-Event-ID: {cursor}\r\n");
    // It listens before or after the second is made: it hears the same.
    let (text, second) = tokio::join!(
        read(world_ref, "/api/v1/facts", &resume, "\"number\""),
        answered(world_ref, To::new_session(IfNew::default()), "two")
    );
    assert!(text.contains(&second.session) && !text.contains(&first.session), "{text}");
}

#[tokio::test]
async fn an_idle_stream_says_that_it_is_still_there_and_ends_cleanly() {
    let set_up = |config: &mut server::ServerConfig| config.keep_alive = Duration::from_millis(50);
    let mut world = World::with(Default::default(), set_up).await;
    let receipt = answered(&world, To::new_session(IfNew::default()), "one").await;
    let path = format!("/api/v1/sessions/{}/facts?after={}", receipt.session, receipt.last.unwrap());
    let text = read(&world, &path, "", "\n:\n").await;
    assert!(text.contains("\n:\n"), "{text}");
    let mut stream = opened(&world, &path).await;
    let mut text = String::new();
    let reading = tokio::spawn(async move {
        stream.read_to_string(&mut text).await.unwrap();
        text
    });
    world.close().await;
    let text = reading.await.unwrap();
    assert!(text.ends_with("0\r\n\r\n"), "the body is complete: {text:?}");
}

#[tokio::test]
async fn there_are_only_so_many_streams_and_a_closed_one_frees_its_place() {
    let set_up = |config: &mut server::ServerConfig| {
        config.streams_max = 2;
        config.keep_alive = Duration::from_millis(20);
    };
    let world = World::with(Default::default(), set_up).await;
    let first = opened(&world, "/api/v1/facts").await;
    let _second = opened(&world, "/api/v1/facts").await;
    let refused = read(&world, "/api/v1/facts", "", "\r\n\r\n").await;
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("retry-after: 1"), "{refused}");
    drop(first);
    let free = async {
        while !read(&world, "/api/v1/facts", "", "\r\n\r\n").await.starts_with("HTTP/1.1 200") {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), free).await.expect("the place of a closed stream is free");
}

#[tokio::test]
async fn one_person_with_many_streams_shuts_nobody_out() {
    let set_up = |config: &mut server::ServerConfig| {
        config.streams_max = 8;
        config.streams_per_person_max = 2;
    };
    let world = World::with(Default::default(), set_up).await;
    let _both = [opened(&world, "/api/v1/facts").await, opened(&world, "/api/v1/facts").await];
    let refused = read(&world, "/api/v1/facts", "", "\"status\"").await;
    assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
    assert!(refused.contains("too_many_streams") && refused.contains("streams_per_person_max"), "{refused}");
    let bob = world.let_in("bob", kernel::Role::Member).await;
    let answer = world.http.get(format!("{}/api/v1/facts", world.url)).bearer_auth(&bob.token);
    let answer = answer.header("accept", "text/event-stream").send().await.unwrap();
    assert_eq!(answer.status(), 200, "somebody else has places of their own");
    let figures = world.ask("GET", "/metrics").send().await.unwrap().text().await.unwrap();
    assert!(
        figures.contains("homing_http_streams 3\n") && figures.contains("homing_http_streams_refused 1\n"),
        "{figures}"
    );
}

#[tokio::test]
async fn one_person_with_large_bodies_leaves_room_for_others() {
    let set_up = |config: &mut server::ServerConfig| config.body_bytes_per_person_max = 64 * 1024;
    let world = World::with(Default::default(), set_up).await;
    let say = |length: usize| {
        let body = serde_json::json!({ "to": { "conversation": "api:a/large" }, "text": "x".repeat(length) });
        world.ask("POST", "/api/v1/messages").json(&body).send()
    };
    let refused = say(100 * 1024).await.unwrap();
    assert_eq!((refused.status().as_u16(), refused.headers()["retry-after"].to_str().unwrap()), (429, "1"));
    let words = refused.text().await.unwrap();
    assert!(words.contains("limits.body_bytes_per_person_max"), "{words}");
    assert_eq!(say(10 * 1024).await.unwrap().status(), 202);
    let figures = world.ask("GET", "/metrics").send().await.unwrap().text().await.unwrap();
    assert!(
        figures.contains("homing_http_body_bytes 0\n") && figures.contains("homing_http_bodies_refused 1\n"),
        "{figures}"
    );
}

#[tokio::test]
async fn one_address_with_many_connections_shuts_nobody_out() {
    let world = World::with(Default::default(), |config| config.connections_per_address_max = 4).await;
    let from = async |address: &str| {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(format!("{address}:0").parse().unwrap()).unwrap();
        let mut stream = socket.connect(world.host().parse().unwrap()).await.unwrap();
        let request = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", world.host());
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut head = [0; 12];
        stream.read_exact(&mut head).await.unwrap();
        (stream, String::from_utf8_lossy(&head).into_owned())
    };
    let mut idle = Vec::new();
    for _ in 0..4 {
        let (stream, head) = from("127.0.0.2").await;
        assert_eq!(head, "HTTP/1.1 200");
        idle.push(stream);
    }
    // The next one gets in, and the oldest goes and is told which bound it was.
    let (fifth, head) = from("127.0.0.2").await;
    assert_eq!(head, "HTTP/1.1 200");
    let mut rest = String::new();
    idle.remove(0).read_to_string(&mut rest).await.unwrap();
    assert!(rest.contains("HTTP/1.1 429") && rest.contains("connections_per_address_max"), "{rest}");
    idle.push(fifth);
    let figures = world.ask("GET", "/metrics").send().await.unwrap().text().await.unwrap();
    assert!(figures.contains("homing_http_connections_strangers 4\n"), "{figures}");
    assert!(figures.contains("homing_http_connections_closed 1\n"), "{figures}");
    assert_eq!(from("127.0.0.3").await.1, "HTTP/1.1 200", "another address has places of its own");
    idle.clear();
    let free = async { while from("127.0.0.2").await.1 != "HTTP/1.1 200" {} };
    tokio::time::timeout(Duration::from_secs(20), free).await.expect("a closed one frees its place");
}

#[tokio::test]
async fn a_reader_that_takes_nothing_is_cut_off_and_the_others_hear_everything() {
    let set_up = |config: &mut server::ServerConfig| config.stall_max = Duration::from_millis(500);
    let world = World::with(Default::default(), set_up).await;
    let client = world.client();
    let made = client.make_session(&NewSession::default()).await.unwrap();
    let path = format!("/api/v1/sessions/{}/facts", made.id);
    let mut stalled = Vec::new();
    for _ in 0..20 {
        stalled.push(open(&world, &path, "").await);
    }
    // More than the buffers of the system and the ring hold.
    let flood = answered(&world, To::session(&made.id), "!flood 16000000").await;
    let mut follow = client.follow(&made.id, 0);
    while follow.at() < flood.last.unwrap() {
        follow.next().await.unwrap();
    }
    let cut = async {
        loop {
            let metrics = world.ask("GET", "/metrics").send().await.unwrap().text().await.unwrap();
            if metrics.contains("homing_http_streams 1\n") {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), cut).await.expect("stalled readers are cut off");
}
