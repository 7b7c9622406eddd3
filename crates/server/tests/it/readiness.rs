//! The readiness of a session, in the stream of its facts: told at first and when it changes, to those who may read it.
//!
//! The server says in every silence that it is still there. A silence is longer than it takes to look again, so what has
//! not been told when that is heard is not told any more.

use crate::rounds::code;
use crate::scope::{ran_in, say, shop};
use crate::town::SOON;
use crate::world::{TOKEN, World};
use api::client::Client;
use api::*;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use kernel::Role;
use std::time::Duration;

/// The time in which nothing happens; well above the time after which readiness is looked at.
const SILENCE: Duration = Duration::from_millis(700);

/// One frame of a stream that matters here.
#[derive(Debug)]
enum Frame {
    Ready(Readiness),
    Fact,
    Silence,
}

/// A stream, as it comes over the wire.
struct Reader {
    bytes: BoxStream<'static, Vec<u8>>,
    unread: String,
}

impl Reader {
    async fn open(world: &World, token: &str, session: &str, after: u64) -> Self {
        let path = format!("{}/api/v1/sessions/{session}/facts?after={after}&readiness=true", world.url);
        let ask = world.http.get(path).bearer_auth(token).header("accept", "text/event-stream");
        let response = ask.send().await.unwrap();
        assert_eq!(response.status().as_u16(), 200);
        let bytes = response.bytes_stream().map(|piece| piece.map(Into::into).unwrap_or_default());
        Self { bytes: bytes.boxed(), unread: String::new() }
    }

    /// The next frame; none is the end.
    async fn next(&mut self) -> Option<Frame> {
        loop {
            while let Some((text, rest)) = self.unread.split_once("\n\n") {
                let frame = read_frame(text);
                self.unread = rest.to_owned();
                if frame.is_some() {
                    return frame;
                }
            }
            let piece =
                tokio::time::timeout(SOON, self.bytes.next()).await.expect("a stream is never silent")?;
            self.unread.push_str(std::str::from_utf8(&piece).unwrap());
        }
    }

    /// The events up to the next silence, oldest first.
    async fn told(&mut self) -> Vec<Readiness> {
        let mut told = Vec::new();
        loop {
            match self.next().await.expect("it goes on") {
                Frame::Ready(ready) => told.push(ready),
                Frame::Fact => {}
                Frame::Silence => return told,
            }
        }
    }

    /// The next that is told.
    async fn ready(&mut self) -> Readiness {
        loop {
            if let Frame::Ready(ready) = self.next().await.expect("it goes on") {
                return ready;
            }
        }
    }
}

fn read_frame(text: &str) -> Option<Frame> {
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
    match field("event: ") {
        _ if text == ":" => Some(Frame::Silence),
        Some("readiness") => {
            assert_eq!(field("id: "), None, "it has no number, and moves nobody's");
            Some(Frame::Ready(serde_json::from_str(field("data: ").unwrap()).unwrap()))
        }
        _ if field("id: ").is_some() => Some(Frame::Fact),
        _ => None,
    }
}

/// The states that were told, and why it was not ready.
fn words(told: &[Readiness]) -> Vec<(Ready, Vec<&str>)> {
    let whys =
        |ready: &'_ Readiness| -> Vec<&'static str> { ready.parts.iter().filter_map(why_of).collect() };
    told.iter().map(|ready| (ready.state, whys(ready))).collect()
}

fn why_of(part: &ReadyPart) -> Option<&'static str> {
    let known = ["asked", "held_asked", "crowded", "changing", "errand"];
    let why = part.why.as_deref()?;
    Some(known.into_iter().find(|known| *known == why).unwrap_or_else(|| panic!("{part:?}")))
}

async fn world() -> World {
    World::with(Default::default(), |config| config.keep_alive = SILENCE).await
}

async fn last(client: &Client, session: &str) -> u64 {
    client.facts(session, &FactsQuery::default()).await.unwrap().next
}

fn hold(held: bool) -> MessageChange {
    MessageChange::Hold(Hold { held, there: (!held).then_some(false) })
}

async fn question(client: &Client) -> Approval {
    let asked = async {
        loop {
            if let Some(asks) = client.approvals(&ApprovalsQuery::default()).await.unwrap().items.pop() {
                return asks;
            }
        }
    };
    tokio::time::timeout(SOON, asked).await.expect("it asks")
}

#[tokio::test]
async fn a_reader_is_told_when_a_session_waits_is_blocked_and_is_ready_again_and_nothing_else() {
    let world = world().await;
    let client = world.client();
    let session = shop(&client, "/srv/shop").await;
    let mut reader = Reader::open(&world, TOKEN, &session, last(&client, &session).await).await;
    assert_eq!(words(&reader.told().await), [(Ready::Ready, vec![])], "at first, once");

    // A turn like any other changes nothing.
    let plain = say(&client, &session, "!pwd").await;
    assert_eq!(ran_in(&client, &plain.id).await, "/srv/shop");
    assert_eq!(words(&reader.told().await), []);

    // A question is waited for, until it is answered.
    let asks = say(&client, &session, "!ask shell").await;
    let approval = question(&client).await;
    let waits = reader.told().await;
    assert_eq!(words(&waits), [(Ready::Waiting, vec!["asked"])]);
    let part = waits[0].parts.iter().find(|part| part.name == "approvals").unwrap();
    assert!(part.until.is_some() && part.remedy.is_some(), "until when, and what can be done: {part:?}");
    assert_eq!(part.remedy_code.as_deref(), Some("answer"), "as a word for programs, too");
    assert_eq!(waits[0], client.readiness(&session).await.unwrap(), "the same as for those who ask");

    // What waits behind it is nobody's trouble; once it is held, somebody has to do something.
    let waiting = say(&client, &session, "later").await;
    assert_eq!(words(&reader.told().await), []);
    client.change_message(&waiting.id, &hold(true)).await.unwrap();
    assert_eq!(words(&reader.told().await), [(Ready::Blocked, vec!["held_asked", "asked"])]);
    client.answer(&approval.id, Answer::Yes).await.unwrap();
    ran_in(&client, &asks.id).await;
    assert_eq!(words(&reader.told().await), [(Ready::Blocked, vec!["held_asked"])]);
    client.change_message(&waiting.id, &hold(false)).await.unwrap();
    ran_in(&client, &waiting.id).await;
    assert_eq!(words(&reader.told().await), [(Ready::Ready, vec![])]);

    // Whoever comes back is told how it is, whatever they knew.
    let mut again = Reader::open(&world, TOKEN, &session, last(&client, &session).await).await;
    assert_eq!(words(&again.told().await), [(Ready::Ready, vec![])]);
}

#[tokio::test]
async fn an_agent_that_never_stops_talking_keeps_nobody_from_hearing_that_it_asks() {
    let world = world().await;
    let client = world.client();
    let session = shop(&client, "/srv/shop").await;
    let mut reader = Reader::open(&world, TOKEN, &session, last(&client, &session).await).await;
    assert_eq!(reader.ready().await.state, Ready::Ready);
    // It talks without a pause, and a message that is held lies behind it.
    let talks = say(&client, &session, "!say 1000000 1").await;
    let waiting = say(&client, &session, "later").await;
    client.change_message(&waiting.id, &hold(true)).await.unwrap();
    assert_eq!(reader.ready().await.state, Ready::Blocked);
    let receipt = client.receipt(&talks.id, &MessageQuery::default()).await.unwrap();
    assert_eq!(receipt.state, ReceiptState::Running, "it still talks");
    client.stop(&talks.id).await.unwrap();
}

#[tokio::test]
async fn whoever_may_not_read_a_session_is_told_nothing_of_how_ready_it_is() {
    let world = world().await;
    let client = world.client();
    let session = shop(&client, "/srv/shop").await;
    let bob = world.let_in("bob", Role::Member).await;
    let bobs = world.client_of(&bob.token);
    for path in ["facts?readiness=true", "readiness"] {
        let path = format!("{}/api/v1/sessions/{session}/{path}", world.url);
        let ask = world.http.get(path).bearer_auth(&bob.token).header("accept", "text/event-stream");
        let problem: Problem = ask.send().await.unwrap().json().await.unwrap();
        assert_eq!(problem.code, Code::NotFound);
    }
    // While he may look he hears it, and nothing after that.
    let (on, to) = (format!("sessions/{session}"), Grantee::user(bob.by.person.to_string()));
    client.give(&on, &NewGrant { to: to.clone(), grant: Grant::View }).await.unwrap();
    let mut reader = Reader::open(&world, &bob.token, &session, last(&client, &session).await).await;
    assert_eq!(words(&reader.told().await), [(Ready::Ready, vec![])]);
    client.take_back(&on, to).await.unwrap();
    let asks = say(&client, &session, "!ask shell").await;
    question(&client).await;
    while let Some(frame) = reader.next().await {
        assert!(matches!(frame, Frame::Silence), "{frame:?}");
    }
    assert_eq!(code(bobs.readiness(&session).await.unwrap_err()), Code::NotFound);
    client.stop(&asks.id).await.unwrap();
}

#[tokio::test]
async fn who_works_in_the_directory_is_named_to_those_who_may_see_them() {
    let world = world().await;
    let client = world.client();
    let session = shop(&client, "/srv/shop").await;
    let bob = world.let_in("bob", Role::Member).await;
    let bobs = world.client_of(&bob.token);
    let to = Grantee::user(bob.by.person.to_string());
    client.add_root(&Root { directory: "/srv".into(), to: to.clone() }).await.unwrap();
    let theirs = shop(&bobs, "/srv/shop").await;
    let mut reader = Reader::open(&world, &bob.token, &theirs, last(&bobs, &theirs).await).await;
    assert_eq!(words(&reader.told().await), [(Ready::Ready, vec![])]);
    let long = say(&client, &session, "!ask shell").await;
    let approval = question(&client).await;

    let waits = say(&bobs, &theirs, "!pwd").await;
    let crowded = reader.ready().await;
    assert_eq!(words(std::slice::from_ref(&crowded)), [(Ready::Waiting, vec!["crowded"])]);
    let neighbour = |ready: &Readiness| ready.parts.iter().find_map(|part| part.session.clone());
    assert_eq!(neighbour(&crowded), None, "whose it is is not bob's to know");
    assert_eq!(waited_for(&bobs, &theirs, &waits.id).await, None, "nor in any other place");
    let told = bobs.facts(&theirs, &FactsQuery::default()).await.unwrap();
    assert!(!serde_json::to_string(&told).unwrap().contains(&session), "nor in the log: {told:?}");
    let (on, grant) = (format!("sessions/{session}"), Grant::View);
    client.give(&on, &NewGrant { to, grant }).await.unwrap();
    let mut again = Reader::open(&world, &bob.token, &theirs, 0).await;
    assert_eq!(neighbour(&again.ready().await), Some(session.clone()));
    assert_eq!(waited_for(&bobs, &theirs, &waits.id).await, Some(session));
    client.answer(&approval.id, Answer::Yes).await.unwrap();
    ran_in(&client, &long.id).await;
    assert_eq!(ran_in(&bobs, &waits.id).await, "/srv/shop");
    let told = reader.told().await;
    assert_eq!(told.last().map(|ready| ready.state), Some(Ready::Ready), "{told:?}");
}

/// For which session a message waits: receipt, queue, session and list say the same.
async fn waited_for(client: &Client, session: &str, message: &str) -> Option<String> {
    let receipt = client.receipt(message, &MessageQuery::default()).await.unwrap().waiting;
    let waiting = receipt.clone().unwrap();
    assert_eq!((waiting.why.as_str(), waiting.directory.as_deref()), ("directory", Some("/srv/shop")));
    assert_eq!(client.queue(session).await.unwrap().items[0].waiting, receipt);
    assert_eq!(client.session(session).await.unwrap().waiting, receipt);
    let listed = client.sessions(&SessionsQuery::default()).await.unwrap().items;
    assert_eq!(listed.into_iter().find(|listed| listed.id == session).unwrap().waiting, receipt);
    waiting.session
}
