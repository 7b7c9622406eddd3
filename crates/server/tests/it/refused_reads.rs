//! Refused reads of what is not theirs: in the audit of their org, and nothing else is. That it is there within a
//! second is shown where time stands still, by the engine's own tests.

use crate::town::{SOON, Town};
use crate::world::Somebody;
use kernel::{MessageId, Right, Rights, Role, SessionId, To};
use serde_json::Value;
use std::time::{Duration, Instant};

/// Every refused read that the audit has, newest first: who, what, with which result.
async fn reads(town: &Town, boss: &Somebody) -> Vec<(String, String, String)> {
    let (status, _, page) = town.answer(Some(&boss.token), "GET", "/api/v1/audit?what=read", None).await;
    assert_eq!(status, 200, "{page}");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let line = |entry: &Value| {
        let about = format!("{} {}", text(&entry["session"]), text(&entry["subject"]));
        (text(&entry["by"]["handle"]), about.trim().to_owned(), text(&entry["refused"]))
    };
    page["items"].as_array().unwrap().iter().map(line).collect()
}

/// The same, once there are so many.
async fn so_many_reads(town: &Town, boss: &Somebody, count: usize) -> Vec<(String, String, String)> {
    let until = Instant::now() + SOON;
    loop {
        let reads = reads(town, boss).await;
        if reads.len() >= count || Instant::now() > until {
            return reads;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_reads_what_is_not_theirs_is_in_the_audit() {
    let town = Town::new(&[]).await;
    let ann = town.host.clone();
    let bob = town.person(&ann, "bob", Role::Member).await;
    let (session, message) = town.say(&ann, To::New, "hush").await;
    let get = async |who: &Somebody, path: String| {
        town.answer(Some(&who.token), "GET", &format!("/api/v1{path}"), None).await
    };
    let (status, code, _) = get(&bob, format!("/sessions/{session}")).await;
    assert_eq!((status, code.as_deref()), (404, Some("not_found")));
    let entry = so_many_reads(&town, &ann, 1).await;
    assert_eq!(entry, [("bob".to_owned(), session.to_string(), "not_found".to_owned())]);
    let (_, _, page) = get(&ann, "/audit?what=read".to_owned()).await;
    assert_eq!(page["items"][0]["door"], "http");
    assert_eq!(page["items"][0]["address"], "127.0.0.1");

    // However often and in whatever part of it he looks: once in a minute.
    for part in ["", "/facts", "/queue", "/grants"] {
        assert_eq!(get(&bob, format!("/sessions/{session}{part}")).await.0, 404, "{part}");
    }
    assert_eq!(get(&bob, format!("/route?session={session}")).await.0, 200);
    // What was never minted is no news.
    let (never, nothing) = (SessionId::from_bits(5 << 110), MessageId::from_bits(5 << 110));
    assert_eq!(get(&bob, format!("/sessions/{never}")).await.0, 404);
    assert_eq!(get(&bob, format!("/messages/{nothing}")).await.0, 404);
    assert_eq!(get(&bob, "/sessions/nonsense".to_owned()).await.0, 404);
    // Nor is what one may read, or what is not in it.
    assert_eq!(get(&ann, format!("/sessions/{session}")).await.0, 200);
    for part in ["/changes?turn=9", "/undo?turn=9"] {
        assert_eq!(get(&ann, format!("/sessions/{session}{part}")).await.0, 404, "{part}");
    }
    // A credential that is not good for it, and a message by its own id.
    let prompts = town.token(&ann, Rights::NONE.with(Right::Prompt)).await;
    assert_eq!(get(&prompts, format!("/sessions/{session}")).await.0, 403);
    assert_eq!(get(&bob, format!("/messages/{message}")).await.0, 404);
    let told = |who: &str, about: String, refused: &str| (who.to_owned(), about, refused.to_owned());
    let expected = [
        told("bob", format!("{session} {message}"), "not_found"),
        told("ann", session.to_string(), "right_missing"),
        told("bob", session.to_string(), "not_found"),
    ];
    assert_eq!(so_many_reads(&town, &ann, 3).await, expected);
    town.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_across_orgs_is_told_to_neither() {
    let town = Town::new(&[]).await;
    let ann = town.host.clone();
    let olga = town.org("second", "olga").await;
    let (theirs, _) = town.say(&olga, To::New, "hush").await;
    let (mine, _) = town.say(&ann, To::New, "hush").await;
    let bob = town.person(&ann, "bob", Role::Member).await;
    let look = async |who: &Somebody, session: SessionId| {
        town.answer(Some(&who.token), "GET", &format!("/api/v1/sessions/{session}"), None).await.0
    };
    assert_eq!(look(&ann, theirs).await, 404);
    assert_eq!(look(&olga, mine).await, 404);
    // They are looked up one after the other: when this one is there, those are through.
    assert_eq!(look(&bob, mine).await, 404);
    let entries = so_many_reads(&town, &ann, 1).await;
    assert_eq!(entries, [("bob".to_owned(), mine.to_string(), "not_found".to_owned())]);
    assert_eq!(reads(&town, &olga).await, []);
    town.close().await;
}
