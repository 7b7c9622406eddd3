//! Questions over HTTP: what they show, who answers, who is told that they came too late, and the rules for them.

use crate::town::Town;
use crate::world::Somebody;
use kernel::{Fact, Grant, Grantee, Right, Rights, Role, SessionId, To};
use serde_json::{Value, json};

type Answered = (u16, Option<String>, Value);

async fn post(town: &Town, who: &Somebody, path: &str, body: Value) -> Answered {
    town.answer(Some(&who.token), "POST", &format!("/api/v1{path}"), Some(&body)).await
}

async fn get(town: &Town, who: &Somebody, path: &str) -> Value {
    let (status, _, body) = town.answer(Some(&who.token), "GET", &format!("/api/v1{path}"), None).await;
    assert_eq!(status, 200, "{body}");
    body
}

/// Says it, and waits for the question.
async fn asks(town: &Town, who: &Somebody, text: &str) -> (SessionId, String) {
    let (session, _) = town.say(who, To::New, text).await;
    let asked = town.fact(who, session, |fact| matches!(fact, Fact::Asked { .. })).await;
    let Fact::Asked { approval, .. } = asked else { panic!("{asked:?}") };
    (session, approval.to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_answers_at_once_one_counts_and_the_other_names_who_was_first() {
    let town = Town::new(&[]).await;
    let ann = town.host.clone();
    let bob = town.person(&ann, "bob", Role::Member).await;
    for round in 0..5 {
        let busy = town.busy(&ann, None).await;
        town.give(&ann, busy.session, Grantee::Person(bob.by.person), Grant::Prompt).await;
        let path = format!("/approvals/{}", busy.asks);
        let (yes, no) = tokio::join!(
            post(&town, &ann, &path, json!({"answer": "yes"})),
            post(&town, &bob, &path, json!({"answer": "no"})),
        );
        let (won, lost, first, answer) = match (yes.0, no.0) {
            (200, 409) => (yes.2, no, &ann, "yes"),
            (409, 200) => (no.2, yes, &bob, "no"),
            other => panic!("round {round}: {other:?} {yes:?} {no:?}"),
        };
        assert_eq!((&won["answer"], &won["by_handle"]), (&json!(answer), &json!(first.by.handle)));
        assert_eq!(lost.1.as_deref(), Some("too_late"));
        let told = &lost.2["answered"];
        let expected = (json!(answer), json!(first.by.person.to_string()), json!(first.by.handle));
        assert_eq!(
            (&told["answer"], &told["by"], &told["by_handle"]),
            (&expected.0, &expected.1, &expected.2)
        );
        assert_eq!(told["at"], won["settled_at"]);
        let now = get(&town, &bob, &path).await;
        assert_eq!(now, won, "everybody sees the same");
    }
    town.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settled_questions_are_listed_with_who_answered_and_when() {
    let town = Town::new(&[]).await;
    let ann = town.host.clone();
    let (first, second) = (town.busy(&ann, None).await, town.busy(&ann, None).await);
    let (status, _, settled) =
        post(&town, &ann, &format!("/approvals/{}", first.asks), json!({"answer": "no"})).await;
    assert_eq!(status, 200, "{settled}");
    let open = get(&town, &ann, &format!("/approvals/{}", second.asks)).await;
    let items = async |query: &str| get(&town, &ann, &format!("/approvals{query}")).await["items"].clone();
    assert_eq!(items("").await, json!([open]), "open ones, if nothing else is asked for");
    assert_eq!(items("?state=settled").await, json!([settled]));
    assert_eq!((&settled["by_handle"], &settled["answer"]), (&json!("ann"), &json!("no")));
    assert!(settled["settled_at"].is_string(), "{settled}");
    let (mut pages, mut cursor) = (vec![], String::new());
    loop {
        let page = get(&town, &ann, &format!("/approvals?state=all&limit=1{cursor}")).await;
        pages.extend(page["items"].as_array().unwrap().clone());
        let Some(next) = page["next"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(json!(pages), items("?state=all").await, "page by page the same");
    assert_eq!(pages.len(), 2);
    let of = |session: SessionId| format!("?state=all&session={session}");
    assert_eq!(items(&of(first.session)).await, json!([settled]));
    assert_eq!(items(&of(second.session)).await, json!([open]));
    let other = cursor.replace("&cursor=", "");
    for (query, status, code) in [
        (format!("?cursor={other}"), 422, "bad_cursor"),
        ("?state=gone".to_owned(), 422, "invalid"),
        (of(SessionId::from_bits(9)), 404, "not_found"),
    ] {
        let path = format!("/api/v1/approvals{query}");
        let told = town.answer(Some(&ann.token), "GET", &path, None).await;
        assert_eq!((told.0, told.1.as_deref()), (status, Some(code)), "{path}");
    }
    town.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_says_what_it_asks_and_takes_what_fits() {
    let town = Town::new(&[]).await;
    let ann = town.host.clone();
    let (session, approval) = asks(&town, &ann, "!choose paint | red | blue").await;
    let path = format!("/approvals/{approval}");
    let shown = get(&town, &ann, &path).await;
    assert_eq!((&shown["form"], &shown["tool"]), (&json!("choice"), &json!("paint")));
    assert_eq!(shown["options"], json!([{"name": "red"}, {"name": "blue"}]));
    assert_eq!((&shown["agent"], &shown["session"]), (&json!("scripted"), &json!(session.to_string())));
    assert!(shown["directory"].as_str().is_some_and(|place| place.starts_with('/')), "{shown}");
    assert_eq!(get(&town, &ann, "/approvals").await["items"], json!([shown]), "the list shows the same");
    for unfit in [json!("yes"), json!({"chose": 2})] {
        let (status, code, _) = post(&town, &ann, &path, json!({"answer": unfit})).await;
        assert_eq!((status, code.as_deref()), (422, Some("unfit_answer")));
    }
    for invalid in [json!({"answer": {"said": "  "}}), json!({"answer": {"chose": 1}, "remember": "session"})]
    {
        let (status, code, _) = post(&town, &ann, &path, invalid).await;
        assert_eq!((status, code.as_deref()), (422, Some("invalid")));
    }
    assert_eq!(get(&town, &ann, &path).await["state"], "open", "nothing of that changed anything");
    // To a schema that is an integer, too.
    let (status, _, now) = post(&town, &ann, &path, json!({"answer": {"chose": 1.0}})).await;
    assert_eq!((status, &now["answer"]), (200, &json!({"chose": 1})));
    town.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_not_answer_is_told_no_or_nothing() {
    let town = Town::new(&[]).await;
    let ann = town.host.clone();
    let [bob, eve] = [town.person(&ann, "bob", Role::Member).await, town.org("far", "eve").await];
    let busy = town.busy(&ann, None).await;
    let path = format!("/approvals/{}", busy.asks);
    let yes = || json!({"answer": "yes"});
    let outcome = async |who: &Somebody| {
        let (status, code, _) = post(&town, who, &path, yes()).await;
        (status, code.unwrap_or_default())
    };
    for stranger in [&bob, &eve] {
        assert_eq!(outcome(stranger).await, (404, "not_found".to_owned()));
    }
    town.give(&ann, busy.session, Grantee::Person(bob.by.person), Grant::View).await;
    assert_eq!(outcome(&bob).await, (403, "not_allowed".to_owned()));
    let reads = town.token(&ann, Rights::NONE.with(Right::Read)).await;
    assert_eq!(outcome(&reads).await, (403, "right_missing".to_owned()));
    assert_eq!(outcome(&ann).await, (200, String::new()));
    town.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rule_is_made_shown_obeyed_and_removed() {
    let town = Town::new(&[]).await;
    let ann = town.host.clone();
    let bob = town.person(&ann, "bob", Role::Member).await;
    let only_bob = json!({"effect": "ask", "who": {"user": bob.by.person.to_string()}, "tool": "tool"});
    let (status, _, rule) = post(&town, &ann, "/approvals/rules", only_bob).await;
    assert_eq!(status, 201, "{rule}");
    assert_eq!((&rule["tool"], &rule["by"]["handle"]), (&json!("tool"), &json!("ann")));
    assert_eq!(get(&town, &bob, "/approvals/rules").await["items"], json!([rule]));
    let busy = town.busy(&bob, None).await;
    town.give(&bob, busy.session, Grantee::Person(ann.by.person), Grant::Prompt).await;
    let path = format!("/approvals/{}", busy.asks);
    assert_eq!(get(&town, &ann, &path).await["only"]["rule"], rule["id"]);
    let (status, code, told) = post(&town, &ann, &path, json!({"answer": "yes"})).await;
    assert_eq!((status, code.as_deref()), (403, Some("not_yours_to_answer")));
    assert!(told["detail"].as_str().unwrap().contains("bob"), "{told}");
    let always = post(&town, &bob, &path, json!({"answer": "yes", "remember": "always"})).await;
    assert_eq!((always.0, always.1.as_deref()), (403, Some("role_too_low")));
    let (status, _, _) = post(&town, &bob, &path, json!({"answer": "yes", "remember": "session"})).await;
    assert_eq!(status, 200);
    assert_eq!(get(&town, &bob, "/approvals/rules").await["items"].as_array().unwrap().len(), 2);
    let removed = format!("/api/v1/approvals/rules/{}", rule["id"].as_str().unwrap());
    for status in [200, 404] {
        assert_eq!(town.answer(Some(&ann.token), "DELETE", &removed, None).await.0, status);
    }
    for invalid in [
        json!({"effect": "ask"}),
        json!({"effect": "allow"}),
        json!({"effect": "deny", "who": {"org": true}}),
        json!({"effect": "deny", "tool": "a*b"}),
        json!({"effect": "deny", "directory": "here"}),
        json!({"effect": "deny", "session": "that one"}),
    ] {
        let (status, code, _) = post(&town, &ann, "/approvals/rules", invalid.clone()).await;
        assert_eq!((status, code.as_deref()), (422, Some("invalid")), "{invalid}");
    }
    town.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nobody_attends_does_not_wait_for_anybody() {
    let town = Town::new(&[]).await;
    let ann = town.host.clone();
    let said = json!({"to": {"new": {}}, "text": "!ask tool", "unattended": true});
    let (status, _, receipt) = post(&town, &ann, "/messages", said).await;
    assert_eq!(status, 202, "{receipt}");
    let path = format!("/messages/{}?wait=60", receipt["id"].as_str().unwrap());
    assert_eq!(get(&town, &ann, &path).await["state"], "answered");
    let path = format!("/sessions/{}/facts", receipt["session"].as_str().unwrap());
    let facts = get(&town, &ann, &path).await;
    let answered = facts["items"].as_array().unwrap().iter().find(|fact| fact["type"] == "answered");
    let answered = answered.unwrap_or_else(|| panic!("{facts}"));
    assert_eq!((&answered["answer"], &answered["by"]), (&json!("no"), &json!("policy")));
    town.close().await;
}
