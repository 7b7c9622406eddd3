//! Conversations that were had elsewhere: the same id on two servers, and in two orgs of one, and nothing of one touches
//! the other. Everything by real requests, over the real store.

use crate::town::{SOON, Town, read};
use crate::world::Somebody;
use api::client::{Client, FollowItem};
use api::{EXPORT_TYPE, ExportLine, Story, What};
use kernel::{Fact, Grant, Grantee, Role, SessionId, To};
use reqwest::RequestBuilder;
use serde_json::{Value, json};

/// A session with two turns that are over, and its file.
async fn origin(town: &Town, who: &Somebody) -> (SessionId, String) {
    let (session, first) = town.say(who, To::New, "hello").await;
    let by = town.now(who).await;
    town.engine.views().receipt_within(&by, first, SOON).await.unwrap();
    let (_, second) = town.say(who, To::Session(session), "!say 2 0").await;
    town.engine.views().receipt_within(&by, second, SOON).await.unwrap();
    (session, export(town, who, &session.to_string()).await)
}

async fn export(town: &Town, who: &Somebody, session: &str) -> String {
    let path = format!("/api/v1/sessions/{session}/export");
    let response = town.ask(Some(&who.token), "GET", &path).send().await.unwrap();
    assert_eq!(
        (response.status(), &response.headers()["content-type"]),
        (200.try_into().unwrap(), &EXPORT_TYPE.parse().unwrap())
    );
    response.text().await.unwrap()
}

fn lines(file: &str) -> Vec<ExportLine> {
    file.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn importing(town: &Town, who: &Somebody, query: &str, file: impl Into<reqwest::Body>) -> RequestBuilder {
    let ask = town.ask(Some(&who.token), "POST", &format!("/api/v1/sessions/import{query}"));
    ask.header("content-type", EXPORT_TYPE).body(file)
}

async fn import(town: &Town, who: &Somebody, file: &str) -> String {
    let (status, _, made) = read(importing(town, who, "", file.to_owned()).send().await.unwrap()).await;
    assert_eq!(status, 201, "{made}");
    made["id"].as_str().unwrap().to_owned()
}

/// Says something to a session by this id, and answers with the message and the session that it has reached.
async fn say(town: &Town, who: &Somebody, session: &str, text: &str) -> (String, String) {
    let body = json!({"to": {"session": session}, "text": text});
    let (status, _, receipt) = town.answer(Some(&who.token), "POST", "/api/v1/messages", Some(&body)).await;
    assert_eq!(status, 202, "{receipt}");
    (receipt["id"].as_str().unwrap().to_owned(), receipt["session"].as_str().unwrap().to_owned())
}

async fn get(town: &Town, who: &Somebody, path: &str) -> Value {
    let (status, _, body) = town.answer(Some(&who.token), "GET", &format!("/api/v1{path}"), None).await;
    assert_eq!(status, 200, "{path}: {body}");
    body
}

async fn code(
    town: &Town,
    who: &Somebody,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> (u16, Option<String>) {
    let (status, code, _) = town.answer(Some(&who.token), method, &format!("/api/v1{path}"), body).await;
    (status, code)
}

/// Follows a session by this id until something is told, and answers with all of it as text.
async fn followed(town: &Town, who: &Somebody, session: &str, until: &str) -> String {
    let client = Client::new(&town.url, &who.token).unwrap();
    let mut follow = client.follow(session, 0);
    let mut told = String::new();
    let all = async {
        while !told.contains(until) {
            if let FollowItem::Fact(fact) = follow.next().await.unwrap() {
                told.push_str(&serde_json::to_string(&fact).unwrap());
                told.push('\n');
            }
        }
    };
    tokio::time::timeout(SOON, all).await.unwrap_or_else(|_| panic!("{session} tells {until}"));
    told
}

/// One side of the story: somebody, what the shared id means for them, and what they have going on in it.
struct Side {
    who: Somebody,
    session: String,
    runs: String,
    waits: String,
    asks: String,
    said: String,
}

/// A turn that asks, and a follow-up behind it; all of it by the shared id.
async fn side(town: &Town, who: Somebody, id: &str, session: String) -> Side {
    let said = format!("said by {}", who.by.handle);
    let (runs, reached) = say(town, &who, id, "!ask tool").await;
    assert_eq!(reached, session);
    let (waits, reached) = say(town, &who, id, &said).await;
    assert_eq!(reached, session);
    let asked = town.fact(&who, session.parse().unwrap(), |fact| matches!(fact, Fact::Asked { .. })).await;
    let Fact::Asked { approval, .. } = asked else { panic!("{asked:?}") };
    let queued = |fact: &Fact| matches!(fact, Fact::Queued { message, .. } if message.to_string() == waits);
    town.fact(&who, session.parse().unwrap(), queued).await;
    Side { asks: approval.to_string(), who, session, runs, waits, said }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_orgs_with_the_same_imported_id_do_not_touch() {
    let town = Town::new(&[]).await;
    let (origin, file) = origin(&town, &town.host).await;
    let id = origin.to_string();
    let before = get(&town, &town.host, &format!("/sessions/{id}")).await;
    let (x, y) = (town.org("xorg", "xena").await, town.org("yorg", "yves").await);
    let (in_x, in_y) = (import(&town, &x, &file).await, import(&town, &y, &file).await);
    assert!(in_x != in_y && in_x != id && in_y != id);
    for (who, own) in [(&x, &in_x), (&y, &in_y)] {
        let named = get(&town, who, &format!("/sessions/{id}")).await;
        assert_eq!(named, get(&town, who, &format!("/sessions/{own}")).await);
        assert_eq!(
            [&named["id"], &named["imported_as"], &named["imported_from"]],
            [&json!(own), &json!(id), &json!("home")]
        );
        let why = get(&town, who, &format!("/route?session={id}")).await;
        assert_eq!(why["session"]["id"], json!(own));
    }
    let x = side(&town, x, &id, in_x).await;
    let y = side(&town, y, &id, in_y).await;
    each_sees_its_own(&town, &id, &x, &y).await;
    nobody_reaches_across(&town, &x, &y).await;
    ended_in_one_lives_in_the_other(&town, &id, &x, &y).await;
    assert_eq!(
        get(&town, &town.host, &format!("/sessions/{id}")).await,
        before,
        "whose own id it is saw nothing"
    );
    town.close().await;
}

async fn each_sees_its_own(town: &Town, id: &str, x: &Side, y: &Side) {
    for (one, other) in [(x, y), (y, x)] {
        let queue = get(town, &one.who, &format!("/sessions/{id}/queue")).await;
        let waiting = queue["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap());
        assert_eq!(waiting.collect::<Vec<_>>(), [&one.runs, &one.waits]);
        let asked = get(town, &one.who, "/approvals").await;
        let asked = asked["items"].as_array().unwrap().iter().map(|item| (&item["id"], &item["session"]));
        assert_eq!(asked.collect::<Vec<_>>(), [(&json!(one.asks), &json!(one.session))]);
        let told = followed(town, &one.who, id, &one.asks).await;
        assert!(told.contains(&one.runs) && told.contains("imported"), "{told}");
        for theirs in [&other.session, &other.runs, &other.waits, &other.asks, &other.said] {
            assert!(!told.contains(theirs.as_str()), "{theirs} is nothing of {}", one.session);
            assert!(!queue.to_string().contains(theirs.as_str()));
        }
        let listed = get(town, &one.who, "/sessions?which=all").await;
        assert_eq!(listed["items"].as_array().unwrap().len(), 1, "{listed}");
    }
}

/// By the ids of the other's things, and by the shared id with them.
async fn nobody_reaches_across(town: &Town, x: &Side, y: &Side) {
    let gone = (404, Some("not_found".to_owned()));
    for (one, other) in [(x, y), (y, x)] {
        let (who, no) = (&one.who, json!({"answer": "no"}));
        assert_eq!(code(town, who, "POST", &format!("/approvals/{}", other.asks), Some(&no)).await, gone);
        assert_eq!(code(town, who, "DELETE", &format!("/messages/{}", other.waits), None).await, gone);
        assert_eq!(code(town, who, "POST", &format!("/messages/{}/stop", other.runs), None).await, gone);
        assert_eq!(code(town, who, "GET", &format!("/sessions/{}", other.session), None).await, gone);
        let order = json!({"order": [other.waits]});
        let path = format!("/sessions/{}/queue", one.session);
        assert_eq!(code(town, who, "PUT", &path, Some(&order)).await.0, 409, "not a message of theirs");
    }
}

async fn ended_in_one_lives_in_the_other(town: &Town, id: &str, x: &Side, y: &Side) {
    // An answer, a withdrawal and an end by one side.
    let (yes, path) = (json!({"answer": "no"}), format!("/approvals/{}", x.asks));
    assert_eq!(code(town, &x.who, "POST", &path, Some(&yes)).await.0, 200);
    assert_eq!(code(town, &x.who, "POST", &format!("/sessions/{id}/end"), None).await.0, 200);
    town.fact(&x.who, x.session.parse().unwrap(), |fact| matches!(fact, Fact::Ended { .. })).await;
    let more = json!({"to": {"session": id}, "text": "more"});
    let ended = (409, Some("session_ended".to_owned()));
    assert_eq!(code(town, &x.who, "POST", "/messages", Some(&more)).await, ended);
    let theirs = get(town, &y.who, &format!("/sessions/{id}")).await;
    assert_eq!((&theirs["state"], &theirs["pending"]), (&json!("open"), &json!(2)));
    let open = get(town, &y.who, "/approvals").await;
    assert_eq!(open["items"][0]["id"], json!(y.asks), "nobody has answered it for them");
    assert_eq!(say(town, &y.who, id, "more").await.1, y.session);
    for (one, other) in [(x, y), (y, x)] {
        // What they have tried with the other's ids is there as what they typed, and refused.
        let audit = get(town, &one.who, "/audit?limit=500").await;
        let done = audit["items"].as_array().unwrap().iter().filter(|entry| entry["refused"].is_null());
        let audit = Value::Array(done.cloned().collect()).to_string();
        assert!(audit.contains(&one.session) && audit.contains("\"import\""), "{audit}");
        assert!(!audit.contains(&other.session) && !audit.contains(&other.runs), "{audit}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_with_the_same_id_do_not_touch() {
    let (here, there) = (Town::new(&[]).await, Town::new(&[]).await);
    let (origin, file) = origin(&there, &there.host).await;
    let id = origin.to_string();
    let brought = import(&here, &here.host, &file).await;
    let before = get(&there, &there.host, &format!("/sessions/{id}")).await;
    let (message, session) = say(&here, &here.host, &id, "what was that?").await;
    assert_eq!(session, brought);
    let wait = format!("/messages/{message}?wait=20");
    let receipt = get(&here, &here.host, &wait).await;
    let answer = receipt["answer"].as_str().unwrap();
    // It does not remember, it was told: by whom, and what was answered.
    assert!(answer.starts_with("#1 ") && answer.contains("> ann:\n> hello"), "{answer}");
    assert!(answer.contains("> the agent:\n> #1 hello") && answer.contains("what was that?"), "{answer}");
    let told = followed(&here, &here.host, &id, "\"turn_ended\",\"turn\":3").await;
    let way = told.lines().find(|line| line.contains("told_again")).expect("the log says so");
    assert!(way.contains(r#""type":"memory""#) && way.contains(r#""turns":2"#), "{way}");
    assert_eq!(get(&there, &there.host, &format!("/sessions/{id}")).await, before);
    // And there it goes on with its own memory.
    let (message, _) = say(&there, &there.host, &id, "and you?").await;
    let receipt = get(&there, &there.host, &format!("/messages/{message}?wait=20")).await;
    assert_eq!(receipt["answer"], json!("#3 and you?"));
    here.close().await;
    there.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_said_goes_along_and_what_waits_stays() {
    let town = Town::new(&[]).await;
    let eve = town.person(&town.host, "eve", Role::Member).await;
    let (session, file) = origin(&town, &town.host).await;
    town.give(&town.host, session, Grantee::Person(eve.by.person), Grant::Prompt).await;
    town.say(&eve, To::Session(session), "!ask tool").await;
    town.say(&eve, To::Session(session), "later").await;
    town.fact(&eve, session, |fact| matches!(fact, Fact::Asked { .. })).await;
    let busy = export(&town, &eve, &session.to_string()).await;
    let [ExportLine::Header(header), ExportLine::Turn(first), ExportLine::Turn(second), ExportLine::End(end)] =
        &lines(&busy)[..]
    else {
        panic!("{busy}")
    };
    assert_eq!(
        (header.by.as_str(), header.org.as_str(), header.session.clone()),
        ("eve", "home", session.to_string())
    );
    let left = header.left_out;
    assert_eq!((left.turns, left.messages, left.questions, left.changes, end.turns), (0, 2, 1, 0, 2));
    assert!(!busy.contains("/own/"), "no directory of this machine: {busy}");
    assert!(!busy.contains("usr_") && !busy.contains("apr_") && !busy.contains("msg_"), "{busy}");
    assert_eq!((first.turn, second.turn, first.said[0].by.as_str()), (1, 2, "ann"));
    let words = |turn: &api::ExportTurn| {
        turn.story
            .iter()
            .filter_map(|told| match &told.story {
                Story::Text { text, .. } => Some(text.clone()),
                _ => None,
            })
            .collect::<String>()
    };
    assert_eq!((words(first).as_str(), words(second).as_str()), ("#1 hello", "#2\nword1 word2"));
    // Brought elsewhere and taken along from there, it says the same of the same people and moments.
    let x = town.org("xorg", "xena").await;
    let brought = import(&town, &x, &file).await;
    let again = export(&town, &x, &brought).await;
    assert_eq!(lines(&again)[1..], lines(&file)[1..]);
    let ExportLine::Header(header) = &lines(&again)[0] else { panic!("{again}") };
    assert_eq!((header.session.as_str(), header.by.as_str()), (brought.as_str(), "xena"));
    town.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_outcome_comes_along() {
    let town = Town::new(&[]).await;
    let words = |turn: u32, outcome: &str, failure: Option<&str>| {
        let moment = "2025-05-05T05:05:05.050Z";
        let said: Vec<_> = ["ada", "bea"]
            .iter()
            .map(|by| json!({"by": by, "at": moment, "parts": [{"type": "text", "text": "go"}]}))
            .collect();
        json!({"type": "turn", "turn": turn * 3, "agent": "far", "began_at": moment, "ended_at": moment, "said": said,
            "story": [{"at": moment, "type": "notice", "text": "so it was"}], "outcome": outcome, "failure": failure})
    };
    let turns = [
        words(1, "answered", None),
        words(2, "stopped", None),
        words(3, "interrupted", None),
        words(4, "time_limit", None),
        words(5, "failed", Some("gone")),
        words(6, "failed", Some("refused")),
    ];
    let file = file_of("far", &turns);
    let session = import(&town, &town.host, &file).await;
    let client = Client::new(&town.url, &town.host.token).unwrap();
    let facts = client
        .facts(&session, &api::FactsQuery { limit: Some(500), ..api::FactsQuery::default() })
        .await
        .unwrap();
    let ends: Vec<_> = facts
        .items
        .iter()
        .filter_map(|fact| match &fact.what {
            What::Rule(api::RuleFact::TurnEnded { outcome, failure, .. }) => Some((*outcome, *failure)),
            _ => None,
        })
        .collect();
    use api::{Failure, Outcome};
    // What was gone there is not gone here.
    assert_eq!(
        ends,
        [
            (Outcome::Answered, None),
            (Outcome::Stopped, None),
            (Outcome::Interrupted, None),
            (Outcome::TimeLimit, None),
            (Outcome::Failed, Some(Failure::Transient)),
            (Outcome::Failed, Some(Failure::Refused)),
        ]
    );
    assert!(facts.items.iter().all(|fact| !matches!(fact.what, What::Other(_))), "every fact has a form");
    let now = get(&town, &town.host, &format!("/sessions/{session}")).await;
    assert_eq!(
        (&now["pending"], &now["awake"], &now["state"], &now["epoch"]),
        (&json!(0), &json!(false), &json!("open"), &json!(1))
    );
    // What ran elsewhere is not undone here, and can be gone on from.
    let undo =
        code(&town, &town.host, "POST", &format!("/sessions/{session}/undo"), Some(&json!({"turn": 1})))
            .await;
    assert_eq!(undo, (409, Some("other_scope".to_owned())));
    let fork = json!({"at": 2});
    assert_eq!(
        code(&town, &town.host, "POST", &format!("/sessions/{session}/fork"), Some(&fork)).await.0,
        201
    );
    town.close().await;
}

/// A file with these turns.
fn file_of(org: &str, turns: &[Value]) -> String {
    let header = json!({
        "type": "header", "format": "homing-session", "version": 1, "org": org, "by": "ada",
        "session": SessionId::from_bits(77 << 80).to_string(), "at": "2026-01-01T00:00:00.000Z",
        "left_out": {"turns": 0, "messages": 0, "questions": 0, "changes": 0},
    });
    let lines = [header]
        .into_iter()
        .chain(turns.iter().cloned())
        .chain([json!({"type": "end", "turns": turns.len()})]);
    lines.map(|line| format!("{line}\n")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_export_changes_nothing() {
    let town = Town::new(&[]).await;
    let (_, file) = origin(&town, &town.host).await;
    let x = town.org("xorg", "xena").await;
    let parts: Vec<&str> = file.split_inclusive('\n').collect();
    let [header, first, second, end] = parts[..] else { panic!("{file}") };
    let all = |lines: &[&str]| lines.concat();
    let swap = |from: &str, to: &str| {
        assert!(file.contains(from), "{from}: {file}");
        file.replacen(from, to, 1)
    };
    let nested = format!("{header}{}", "[".repeat(100_000));
    let bad = [
        String::new(),
        "\n".to_owned(),
        "{}".to_owned(),
        "hello".to_owned(),
        all(&[first, second, end]),
        all(&[header]),
        all(&[header, first, second]),
        all(&[header, first, end]),
        all(&[header, first, first, end]),
        all(&[header, second, first, end]),
        all(&[header, header, first, second, end]),
        all(&[header, first, second, end, end]),
        all(&[header, first, "\n", second, end]),
        format!("{file}{file}"),
        nested,
        swap("homing-session", "other-session"),
        swap("\"session\":\"ses_", "\"session\":\"msg_"),
        swap("\"by\":\"ann\"", "\"by\":\"a\\nb\""),
        swap("\"outcome\":\"answered\"", "\"outcome\":\"failed\""),
        swap("\"outcome\":\"answered\"", "\"outcome\":\"won\""),
        swap("\"turn\":1", "\"turn\":0"),
        swap("\"turn\":1", "\"turn\":-1"),
        swap("\"said\":[{", "\"more\":1,\"said\":[{"),
        swap("\"said\":[{", "\"said\":[],\"_\":[{"),
        swap("\"type\":\"text\",\"part\":0", "\"type\":\"text\",\"part\":\"0\""),
        swap(
            "\"story\":[",
            "\"story\":[{\"at\":\"2026-01-01T00:00:00Z\",\"type\":\"question\",\"approval\":\"apr_1\",\"tool\":\"t\",\"detail\":\"d\"},",
        ),
        swap("\"story\":[", "\"story\":[{\"at\":\"2026-01-01T00:00:00Z\",\"type\":\"nonsense\"},"),
        swap("\"offset\":0", "\"offset\":18446744073709551615"),
    ];
    let before = town.dump();
    for file in bad {
        let shown: String = file.chars().take(300).collect();
        let (status, code, body) = read(importing(&town, &x, "", file).send().await.unwrap()).await;
        assert_eq!((status, code.as_deref()), (422, Some("bad_export")), "{shown}: {body}");
        assert!(body["detail"].as_str().unwrap().starts_with("line "), "{body}");
    }
    let newer = swap("\"version\":1", "\"version\":2");
    let huge = vec![b' '; api::IMPORT_BYTES_MAX + 1];
    let bytes = [&file.as_bytes()[..40], &[0xff, 0xfe], &file.as_bytes()[40..]].concat();
    for (request, expected) in [
        (importing(&town, &x, "", newer), (422, "unknown_version")),
        (importing(&town, &x, "", huge), (413, "too_large")),
        (importing(&town, &x, "", bytes), (422, "bad_export")),
        (importing(&town, &x, "?agent=nobody", file.clone()), (409, "unknown_agent")),
        (importing(&town, &x, "?directory=/etc", file.clone()), (403, "directory_not_yours")),
        (importing(&town, &x, "?worktree=1", file.clone()), (422, "invalid")),
        (
            town.ask(Some(&x.token), "POST", "/api/v1/sessions/import").json(&json!({})),
            (415, "unsupported_media_type"),
        ),
    ] {
        let (status, code, body) = read(request.send().await.unwrap()).await;
        assert_eq!((status, code.as_deref()), (expected.0, Some(expected.1)), "{body}");
    }
    assert_eq!(town.dump(), before, "nothing of it is there");
    town.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_happens_once_and_is_its_importers_alone() {
    let town = Town::new(&[]).await;
    let (origin, file) = origin(&town, &town.host).await;
    let id = origin.to_string();
    let x = town.org("xorg", "xena").await;
    let friend = town.person(&x, "xaver", Role::Member).await;
    let keyed = |who: &Somebody| importing(&town, who, "", file.clone()).header("idempotency-key", "once");
    let made = keyed(&x).send().await.unwrap();
    assert!(made.status() == 201 && !made.headers().contains_key("idempotent-replayed"));
    let made: Value = made.json().await.unwrap();
    let again = keyed(&x).send().await.unwrap();
    assert!(again.status() == 201 && again.headers().contains_key("idempotent-replayed"));
    assert_eq!(again.json::<Value>().await.unwrap(), made);
    let other = importing(&town, &x, "?title=other", file.clone()).header("idempotency-key", "once");
    assert_eq!(read(other.send().await.unwrap()).await.1.as_deref(), Some("idempotency_conflict"));
    let taken = async |who: &Somebody, there: &str| {
        let (status, code, body) = read(importing(&town, who, "", file.clone()).send().await.unwrap()).await;
        assert_eq!((status, code.as_deref()), (409, Some("already_imported")), "{body}");
        assert!(body["detail"].as_str().unwrap().contains(there), "{body}");
    };
    let mine = made["id"].as_str().unwrap().to_owned();
    taken(&x, &mine).await;
    taken(&town.host, &id).await;
    // Somebody of the same org who cannot see it notices nothing of it, and has one of their own.
    let gone = (404, Some("not_found".to_owned()));
    assert_eq!(code(&town, &friend, "GET", &format!("/sessions/{id}"), None).await, gone);
    assert_eq!(code(&town, &friend, "GET", &format!("/sessions/{mine}"), None).await, gone);
    let theirs = import(&town, &friend, &file).await;
    assert_ne!(theirs, mine);
    for (who, own) in [(&x, &mine), (&friend, &theirs)] {
        assert_eq!(get(&town, who, &format!("/sessions/{id}")).await["id"], json!(own));
    }
    // What is shared with them later does not take the name away.
    town.give(&x, mine.parse().unwrap(), Grantee::Org, Grant::Manage).await;
    assert_eq!(get(&town, &friend, &format!("/sessions/{id}")).await["id"], json!(theirs));
    assert_eq!(say(&town, &friend, &id, "hi").await.1, theirs);
    // Whoever sees one under the name does not bring a second.
    let late = town.person(&x, "xola", Role::Member).await;
    taken(&late, &mine).await;
    assert_eq!(get(&town, &late, &format!("/sessions/{id}")).await["id"], json!(mine));
    town.close().await;
}
