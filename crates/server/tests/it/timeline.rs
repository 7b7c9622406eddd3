//! The past of a session, backwards: pages of facts that meet, the words of their messages, and the turns as a list.

use crate::town::{SOON, Town};
use crate::world::Somebody;
use kernel::{Fact, SessionId, To};
use serde_json::{Value, json};

async fn get(town: &Town, who: &Somebody, path: &str) -> Value {
    let (status, _, told) = town.answer(Some(&who.token), "GET", path, None).await;
    assert_eq!(status, 200, "{path}: {told}");
    told
}

/// A session with these turns.
async fn spoken(town: &Town, who: &Somebody, words: &[&str]) -> SessionId {
    let (session, mut last) = town.say(who, To::New, words[0]).await;
    let by = town.now(who).await;
    for words in &words[1..] {
        town.engine.views().receipt_within(&by, last, SOON).await.unwrap();
        last = town.say(who, To::Session(session), words).await.1;
    }
    town.engine.views().receipt_within(&by, last, SOON).await.unwrap();
    session
}

#[tokio::test]
async fn pages_backwards_are_the_pages_forwards_and_end_at_the_beginning() {
    let town = Town::new(&[]).await;
    let ann = town.host.clone();
    let session = spoken(&town, &ann, &["one", "two", "three"]).await;
    let facts = format!("/api/v1/sessions/{session}/facts");
    let all = get(&town, &ann, &format!("{facts}?limit=500")).await["items"].as_array().unwrap().clone();
    let (mut before, mut pages, mut backwards) = (9_007_199_254_740_991_u64, 0, Vec::new());
    while before > 1 {
        let page = get(&town, &ann, &format!("{facts}?before={before}&limit=4")).await;
        assert_eq!(page["messages"], Value::Null, "nobody asked for words");
        let items = page["items"].as_array().unwrap().clone();
        assert!((1..=4).contains(&items.len()));
        backwards.splice(0..0, items);
        before = page["next"].as_u64().unwrap();
        pages += 1;
    }
    assert_eq!(backwards, all, "without a gap or a repeat");
    assert_eq!(pages, all.len().div_ceil(4));
    let none = get(&town, &ann, &format!("{facts}?before=1")).await;
    assert_eq!((&none["items"], &none["next"]), (&json!([]), &json!(1)));
    for bad in ["before=3&after=1", "before=x", "before=9007199254740992"] {
        let (status, code, _) = town.answer(Some(&ann.token), "GET", &format!("{facts}?{bad}"), None).await;
        assert_eq!((status, code.as_deref()), (422, Some("invalid")), "{bad}");
    }
    for page_only in ["before=3", "words=true"] {
        let ask = town.ask(Some(&ann.token), "GET", &format!("{facts}?{page_only}"));
        let answer = ask.header("accept", "text/event-stream").send().await.unwrap();
        assert_eq!(answer.status(), 422, "{page_only}");
    }
    town.close().await;
}

#[tokio::test]
async fn words_come_with_their_facts_and_say_if_they_are_cut() {
    let town = Town::new(&[]).await;
    let ann = town.host.clone();
    let long = "ä".repeat(300_000);
    // None of them is answered, or the answers would fill the page.
    let busy = town.busy(&ann, None).await;
    let session = busy.session;
    for words in [&long, &long, "last"] {
        let (_, waits) = town.say(&ann, To::Session(session), words).await;
        town.fact(&ann, session, |fact| matches!(fact, Fact::Queued { message, .. } if *message == waits))
            .await;
    }
    let page = get(&town, &ann, &format!("/api/v1/sessions/{session}/facts?limit=500&words=true")).await;
    let named: Vec<_> =
        page["items"].as_array().unwrap().iter().filter(|fact| fact["type"] == "queued").collect();
    assert_eq!(page["messages"].as_object().unwrap().len(), 4);
    let of = |index: usize| &page["messages"][named[index]["message"].as_str().unwrap()];
    assert_eq!((&of(0)["text"], &of(0)["cut"]), (&json!("!ask tool"), &Value::Null));
    assert_eq!((of(0)["by"]["handle"].as_str(), of(3)["text"].as_str()), (Some("ann"), Some("last")));
    assert_eq!(of(0)["attachments"][0]["kind"], "image");
    assert_eq!(of(0)["door"], "test", "by which door it came");
    let lengths = [1, 2].map(|index| of(index)["text"].as_str().unwrap().len());
    assert_eq!(lengths, [600_000, 4_096], "the second does not fit beside the first");
    assert_eq!((&of(1)["cut"], &of(2)["cut"]), (&Value::Null, &json!(true)));
    let one = get(&town, &ann, &format!("/api/v1/sessions/{session}/facts?before=3&words=true")).await;
    assert_eq!(one["messages"].as_object().unwrap().len(), 1, "only those that the page names");
    town.close().await;
}

/// The door that a program says it is, of those that there are.
#[tokio::test]
async fn a_message_says_by_which_door_it_came() {
    let town = Town::new(&[]).await;
    let ann = town.host.clone();
    for (said, door) in [("cli", "cli"), ("browser", "browser"), ("moon", "http")] {
        let body = json!({"to": {"new": {}}, "text": "hello"});
        let ask = town.ask(Some(&ann.token), "POST", "/api/v1/messages").header("x-homing-door", said);
        let (status, _, receipt) = crate::town::read(ask.json(&body).send().await.unwrap()).await;
        assert_eq!(status, 202, "{receipt}");
        let message =
            get(&town, &ann, &format!("/api/v1/messages/{}", receipt["id"].as_str().unwrap())).await;
        assert_eq!(message["door"], door, "{said}");
    }
    town.close().await;
}

/// The scripted agent reads as many tokens as it is told words.
#[tokio::test]
async fn what_turns_used_is_added_up_for_whoever_sees_them() {
    let town = Town::new(&[]).await;
    let ann = town.host.clone();
    let bob = town.person(&ann, "bob", kernel::Role::Member).await;
    let session = spoken(&town, &ann, &["one two three", "four five"]).await;
    let told = get(&town, &ann, "/api/v1/usage").await;
    let items = told["items"].as_array().unwrap();
    let input: u64 = items.iter().map(|item| item["input_tokens"].as_u64().unwrap()).sum();
    let own = get(&town, &ann, &format!("/api/v1/sessions/{session}")).await["own_word"]["usage"].clone();
    assert_eq!(Some(input), own["input_tokens"].as_u64(), "as much as the session says: {told}");
    assert!(input > 0);
    for item in items {
        assert_eq!((&item["agent"], &item["by"]["handle"]), (&json!("scripted"), &json!("ann")));
        assert!(item["day"].as_str() >= told["from"].as_str() && item["day"].as_str() <= told["to"].as_str());
    }
    assert_eq!(get(&town, &bob, "/api/v1/usage").await["items"], json!([]), "none of what others used");
    let none = get(&town, &ann, "/api/v1/usage?from=2001-01-01&to=2001-01-31").await;
    assert_eq!(none, json!({"from": "2001-01-01", "to": "2001-01-31", "items": []}));
    for bad in ["from=yesterday", "from=2001-01-02&to=2001-01-01", "from=2001-01-01&to=2003-01-01", "day=1"] {
        let (status, code, _) =
            town.answer(Some(&ann.token), "GET", &format!("/api/v1/usage?{bad}"), None).await;
        assert_eq!((status, code.as_deref()), (422, Some("invalid")), "{bad}");
    }
    town.close().await;
}

#[tokio::test]
async fn turns_are_listed_from_the_newest_on() {
    let town = Town::new(&[]).await;
    let ann = town.host.clone();
    let long = "x".repeat(1_000);
    let session = spoken(&town, &ann, &["one", &long, "!fail after"]).await;
    let turns = format!("/api/v1/sessions/{session}/turns");
    let all = get(&town, &ann, &turns).await;
    let items = all["items"].as_array().unwrap();
    let told: Vec<_> = items.iter().map(|turn| (turn["turn"].as_u64(), turn["outcome"].as_str())).collect();
    assert_eq!(told, [(Some(3), Some("failed")), (Some(2), Some("answered")), (Some(1), Some("answered"))]);
    assert_eq!((items[2]["words"].as_str(), &items[2]["cut"]), (Some("one"), &Value::Null));
    assert_eq!((items[1]["words"].as_str().unwrap().len(), &items[1]["cut"]), (256, &json!(true)));
    assert_eq!((&items[1]["by"]["handle"], &items[1]["door"]), (&json!("ann"), &json!("test")));
    let facts = get(&town, &ann, &format!("/api/v1/sessions/{session}/facts?limit=500")).await;
    for turn in items {
        let fact = |number: &Value| &facts["items"][number.as_u64().unwrap() as usize - 1];
        let (first, last) = (fact(&turn["first"]), fact(&turn["last"]));
        assert_eq!(
            (&first["type"], &first["turn"], &first["at"]),
            (&json!("turn_started"), &turn["turn"], &turn["at"])
        );
        assert_eq!((&last["type"], &last["at"]), (&json!("turn_ended"), &turn["ended_at"]));
    }
    let page = get(&town, &ann, &format!("{turns}?limit=1")).await;
    assert_eq!((&page["items"][0], &page["next"]), (&items[0], &json!(3)));
    let rest = get(&town, &ann, &format!("{turns}?limit=1&before=2")).await;
    assert_eq!((&rest["items"], &rest["next"]), (&json!([items[2]]), &Value::Null));
    town.close().await;
}
