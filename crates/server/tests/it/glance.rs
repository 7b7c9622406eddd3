//! Rows of lists: all that they say of a session at a glance, and the marks that people put on it for themselves.

use crate::town::Town;
use crate::world::{Somebody, trace};
use kernel::{Fact, Grant, Grantee, Role, SessionId, To};
use serde_json::{Value, json};

/// The row of a session in somebody's list; the single read has to say the same.
async fn row(town: &Town, who: &Somebody, session: SessionId) -> Value {
    let (status, _, page) = town.answer(Some(&who.token), "GET", "/api/v1/sessions", None).await;
    assert_eq!(status, 200);
    let rows = page["items"].as_array().unwrap();
    let row = rows.iter().find(|row| row["id"] == session.to_string()).cloned().unwrap_or_default();
    let path = format!("/api/v1/sessions/{session}");
    let (_, _, read) = town.answer(Some(&who.token), "GET", &path, None).await;
    for field in ["may", "questions", "held", "last", "branch", "seen", "pinned"] {
        assert_eq!(row[field], read[field], "{field}");
    }
    row
}

async fn mark(town: &Town, who: &Somebody, session: SessionId, marks: Value) -> (u16, Option<String>, Value) {
    let path = format!("/api/v1/sessions/{session}/marks");
    town.answer(Some(&who.token), "PUT", &path, Some(&marks)).await
}

#[tokio::test]
async fn a_row_says_what_one_may_do_what_waits_and_how_the_last_turn_ended() {
    let town = Town::new(&[]).await;
    let host = town.host.clone();
    let eve = town.person(&host, "eve", Role::Member).await;
    let (session, message) = town.say(&host, To::New, "hello there").await;
    let by = town.now(&host).await;
    town.engine.views().receipt_within(&by, message, crate::town::SOON).await.unwrap();
    let first = row(&town, &host, session).await;
    assert_eq!(
        (&first["may"], &first["questions"], &first["held"]),
        (&json!("manage"), &json!(0), &json!(0))
    );
    assert_eq!(
        (&first["last"]["outcome"], &first["last"]["words"]),
        (&json!("answered"), &json!("#1 hello there"))
    );
    assert!(first["last"]["number"].as_u64().unwrap() <= first["number"].as_u64().unwrap());
    assert_eq!(row(&town, &eve, session).await, Value::Null);
    town.give(&host, session, Grantee::Person(eve.by.person), Grant::View).await;
    assert_eq!(row(&town, &eve, session).await["may"], json!("view"));

    town.busy_in(&host, To::Session(session), None).await;
    let (_, waits) = town.say(&host, To::Session(session), "later").await;
    let by = town.now(&host).await;
    town.engine.way_in().ask(&by, kernel::Request::Hold { message: waits }, trace()).await.unwrap();
    town.fact(&host, session, |fact| matches!(fact, Fact::Held { .. })).await;
    let busy = row(&town, &eve, session).await;
    assert_eq!((&busy["questions"], &busy["held"], &busy["pending"]), (&json!(1), &json!(1), &json!(2)));
    assert_eq!(busy["last"], first["last"], "the turn under way is not over");
    town.close().await;
}

#[tokio::test]
async fn marks_are_ones_own_go_forward_and_are_shown_in_rows() {
    let town = Town::new(&[]).await;
    let host = town.host.clone();
    let eve = town.person(&host, "eve", Role::Member).await;
    let (session, message) = town.say(&host, To::New, "hello").await;
    let by = town.now(&host).await;
    town.engine.views().receipt_within(&by, message, crate::town::SOON).await.unwrap();
    town.give(&host, session, Grantee::Person(eve.by.person), Grant::View).await;
    let before = row(&town, &host, session).await;
    assert_eq!((&before["seen"], &before["pinned"]), (&json!(0), &json!(false)));

    assert_eq!(mark(&town, &eve, session, json!({"seen": 2})).await.2, json!({"seen": 2, "pinned": false}));
    assert_eq!(
        mark(&town, &eve, session, json!({"pinned": true, "seen": 1})).await.2,
        json!({"seen": 2, "pinned": true})
    );
    let last = before["number"].clone();
    let far = mark(&town, &eve, session, json!({"seen": 1_000_000})).await;
    assert_eq!((far.0, &far.2["seen"]), (200, &last), "nobody has seen what is not there");
    let theirs = row(&town, &eve, session).await;
    assert_eq!((&theirs["seen"], &theirs["pinned"]), (&last, &json!(true)));
    let mine = row(&town, &host, session).await;
    assert_eq!(mine, before, "nobody else sees them, and the session is as it was");

    let (status, code, _) = mark(&town, &eve, session, json!({})).await;
    assert_eq!((status, code.as_deref()), (422, Some("invalid")));
    let (status, ..) = mark(&town, &eve, session, json!({"seen": -1})).await;
    assert_eq!(status, 422);
    let path = format!("/api/v1/sessions/{session}/marks");
    for (body, expected) in
        [(json!({"pinned": false}), 200), (json!({"pinned": false}), 200), (json!({"pinned": true}), 409)]
    {
        let ask = town.ask(Some(&eve.token), "PUT", &path).header("idempotency-key", "k").json(&body);
        assert_eq!(ask.send().await.unwrap().status(), expected, "{body}");
    }
    assert_eq!(row(&town, &eve, session).await["pinned"], json!(false));
    town.close().await;
}
