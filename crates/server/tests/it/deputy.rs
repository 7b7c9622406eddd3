//! The confused deputy: whoever manages one session reaches nothing of another by naming the one they manage, wherever they
//! name it. And what is named by its own id needs no session beside it.

use crate::town::{Busy, SOON, Town, read};
use crate::world::{Somebody, trace};
use engine::{AuditRow, AuditWish, IfNew, Resource};
use kernel::{Fact, Grant, Grantee, MessageId, PersonId, Role, To};
use serde_json::{Value, json};

/// A session in which a turn asks something and a message waits, and what belongs to it.
struct Prey {
    owner: Somebody,
    busy: Busy,
    waits: MessageId,
    /// A conversation whose address names the owner, and one of a program's that each person has their own of.
    conversations: [String; 2],
}

async fn prey(town: &Town, owner: Somebody, name: &str) -> Prey {
    let busy = town.busy(&owner, None).await;
    let (_, waits) = town.say(&owner, To::Session(busy.session), "later").await;
    let queued = |fact: &Fact| matches!(fact, Fact::Queued { message, .. } if *message == waits);
    town.fact(&owner, busy.session, queued).await;
    let conversations = [format!("web:{}/{name}", owner.by.handle), format!("api:app/{name}")];
    for address in &conversations {
        let (by, bind) = (town.now(&owner).await, Some(address.parse().unwrap()));
        let made = town.engine.way_in().make(&by, IfNew::default(), bind, trace()).await.unwrap();
        town.fact(&owner, made.session, |fact| matches!(fact, Fact::Opened { .. })).await;
    }
    Prey { owner, busy, waits, conversations }
}

/// One try: what the audit calls it, and the request.
struct Try {
    verb: &'static str,
    method: &'static str,
    path: String,
    body: Option<Value>,
    /// Where another one's id is already named in a field that the operation knows.
    wears: bool,
}

fn tries(mine: &Prey, theirs: &Prey, by: &Somebody) -> Vec<Try> {
    let eve = by.by.person;
    let (a, b) = (mine.busy.session, theirs.busy.session);
    let (runs, waits, asks) = (theirs.busy.runs, theirs.waits, theirs.busy.asks);
    let vic = theirs.owner.by.person;
    let token = theirs.owner.by.credential.unwrap();
    let mut all = Vec::new();
    let mut add = |verb, method, path: String, body: Option<Value>| {
        let wears = body.as_ref().is_some_and(|body| body.to_string().contains(&a.to_string()));
        all.push(Try { verb, method, path: format!("/api/v1{path}"), body, wears });
    };
    add(
        "say",
        "POST",
        "/messages".into(),
        Some(json!({"to": {"session": b.to_string()}, "text": format!("for {a}")})),
    );
    // An address of a program's is a conversation of one's own, whoever else has it.
    for address in theirs.conversations.iter().filter(|address| address.starts_with("web:")) {
        add("say", "POST", "/messages".into(), Some(json!({"to": {"conversation": address}, "text": "x"})));
        let moves = json!({"address": address, "session": a.to_string()});
        add("rebind", "POST", "/bindings/move".into(), Some(moves));
    }
    let own = format!("web:{}/own", by.by.handle);
    add("rebind", "POST", "/bindings/move".into(), Some(json!({"address": own, "session": b.to_string()})));
    add("retitle", "PATCH", format!("/sessions/{b}"), Some(json!({"title": format!("{a}")})));
    add("retitle", "PATCH", format!("/sessions/{b}"), Some(json!({"archived": true})));
    add("end", "POST", format!("/sessions/{b}/end"), None);
    add("stop_background", "POST", format!("/sessions/{b}/stop-background"), None);
    for order in [json!([waits.to_string()]), json!([mine.waits.to_string()])] {
        add("reorder", "PUT", format!("/sessions/{b}/queue"), Some(json!({"order": order})));
    }
    for change in [
        json!({"enter": {"name": "blue", "base": format!("refs/homing/{b}/1/after")}}),
        json!({"exit": true}),
        json!({"set": {"model": "small"}}),
        json!({"relink": "/elsewhere"}),
    ] {
        add("change_scope", "POST", format!("/sessions/{b}/scope"), Some(change));
    }
    add("keep_scope", "DELETE", format!("/sessions/{b}/scope"), None);
    add("undo", "POST", format!("/sessions/{b}/undo"), Some(json!({"turn": 1})));
    add("redo", "POST", format!("/sessions/{b}/redo"), Some(json!({"turn": 1})));
    add("fork", "POST", format!("/sessions/{b}/fork"), Some(json!({})));
    add("fork", "POST", format!("/sessions/{b}/fork"), Some(json!({"at": 1, "title": format!("of {a}")})));
    for delivery in ["interrupt", "steer"] {
        let words = json!({"to": {"session": b.to_string()}, "text": "x", "delivery": delivery, "under": 9});
        add("say", "POST", "/messages".into(), Some(words));
    }
    let gift = json!({"to": {"user": eve.to_string()}, "grant": "manage"});
    add("give", "PUT", format!("/sessions/{b}/grants"), Some(gift));
    add("give", "PUT", format!("/sessions/{b}/grants"), Some(json!({"to": {"org": true}, "grant": "view"})));
    add("take_back", "DELETE", format!("/sessions/{b}/grants?user={vic}"), None);
    add("hand_over", "POST", format!("/sessions/{b}/hand-over"), Some(json!({"to": eve.to_string()})));
    add("take_offer_back", "DELETE", format!("/sessions/{b}/hand-over"), None);
    add("accept_offer", "POST", format!("/sessions/{b}/hand-over/accept"), None);
    add("decline_offer", "POST", format!("/sessions/{b}/hand-over/decline"), None);
    for message in [runs, waits] {
        add("withdraw", "DELETE", format!("/messages/{message}"), None);
        add("stop", "POST", format!("/messages/{message}/stop"), None);
        add("hold", "PATCH", format!("/messages/{message}"), Some(json!({"held": true})));
        add("release", "PATCH", format!("/messages/{message}"), Some(json!({"held": false, "there": false})));
        add("release", "PATCH", format!("/messages/{message}"), Some(json!({"held": false, "there": true})));
        add("steer", "PATCH", format!("/messages/{message}"), Some(json!({"delivery": "steer"})));
        add("interrupt_for", "PATCH", format!("/messages/{message}"), Some(json!({"delivery": "interrupt"})));
        let words = json!({"text": format!("say this in {a}"), "revision": 0});
        add("edit", "PATCH", format!("/messages/{message}"), Some(words));
    }
    for answer in ["yes", "no"] {
        add("answer", "POST", format!("/approvals/{asks}"), Some(json!({"answer": answer})));
    }
    add("revoke_token", "DELETE", format!("/tokens/{token}"), None);
    let change = json!({"name": "Eve"});
    add("change_person", "PATCH", format!("/users/{vic}"), Some(change));
    add("change_person", "PATCH", format!("/users/{vic}"), Some(json!({"role": "viewer"})));
    add("disable", "POST", format!("/users/{vic}/disable"), None);
    add("enable", "POST", format!("/users/{vic}/enable"), None);
    add("make_link", "POST", format!("/users/{vic}/link"), None);
    add("set_password", "DELETE", format!("/users/{vic}/password"), None);
    let over = json!({"to": eve.to_string()});
    add("hand_over_all", "POST", format!("/users/{vic}/hand-over"), Some(over));
    all
}

/// Ways to name the session that one manages beside a request: none, in the query, in headers, under a key of an earlier
/// call on it, in the body.
const GUISES: [&str; 5] = ["plain", "query", "headers", "key", "body"];

async fn last_entry(town: &Town, org: &Somebody, who: PersonId) -> Option<AuditRow> {
    let wish = AuditWish { who: Some(who), limit: 1, ..AuditWish::default() };
    town.engine.people().audit(&town.now(org).await, wish).await.unwrap().pop()
}

/// Everything on the session that eve manages, once, so that its keys are known.
async fn earlier_calls(town: &Town, eve: &Somebody, mine: &Prey) {
    let a = mine.busy.session;
    let calls = [
        ("POST", "/messages".to_owned(), Some(json!({"to": {"session": a.to_string()}, "text": "more"}))),
        ("PUT", format!("/sessions/{a}/grants"), Some(json!({"to": {"org": true}, "grant": "view"}))),
        ("DELETE", format!("/sessions/{a}/grants?org=true"), None),
        ("POST", format!("/sessions/{a}/scope"), Some(json!({"enter": {"name": "blue"}}))),
        ("DELETE", format!("/sessions/{a}/scope"), None),
        // The last: its answer says that the keeper has seen all that came before.
        ("PATCH", format!("/messages/{}", mine.waits), Some(json!({"held": true}))),
    ];
    for (method, path, body) in calls {
        let ask =
            town.ask(Some(&eve.token), method, &format!("/api/v1{path}")).header("idempotency-key", "k");
        let ask = match body {
            Some(body) => ask.json(&body),
            None => ask,
        };
        let (status, ..) = read(ask.send().await.unwrap()).await;
        assert!(status < 300, "{method} {path}: {status}");
    }
}

fn disguised(
    town: &Town,
    eve: &Somebody,
    one: &Try,
    mine: &Prey,
    guise: &str,
) -> Option<reqwest::RequestBuilder> {
    let a = mine.busy.session.to_string();
    let mut path = one.path.clone();
    let mut body = one.body.clone();
    match guise {
        "query" => {
            path.push_str(&format!("{}session={a}&id={a}", if path.contains('?') { '&' } else { '?' }))
        }
        "body" => {
            let fields = body.as_mut()?.as_object_mut().unwrap();
            fields.insert("session".to_owned(), json!(a)).is_none().then_some(())?;
        }
        _ => {}
    }
    let mut ask = town.ask(Some(&eve.token), one.method, &path);
    if guise == "headers" {
        for name in
            ["x-session", "x-session-id", "x-homing-session", "x-original-url", "x-http-method-override"]
        {
            ask = ask.header(name, &a);
        }
        ask = ask.header("referer", format!("{}/api/v1/sessions/{a}", town.url));
    }
    if guise == "key" {
        ask = ask.header("idempotency-key", "k");
    }
    Some(match body {
        Some(body) => ask.json(&body),
        None => ask,
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_manages_one_session_reaches_nothing_of_another() {
    let town = Town::new(&[]).await;
    let ann = town.host.clone();
    let olga = town.org("second", "olga").await;
    let vic = prey(&town, town.person(&ann, "vic", Role::Member).await, "b").await;
    // It is offered to somebody else, who has not answered.
    town.offer(&vic.owner, vic.busy.session, ann.by.person).await;
    let mut count = 0;
    for (boss, eve) in [(ann.clone(), town.person(&ann, "eve", Role::Member).await), (olga.clone(), olga)] {
        // Hers is the session of somebody else, which she manages.
        let sam = town.person(&boss, "sam", Role::Member).await;
        let mine = prey(&town, sam, "a").await;
        let to = Grantee::Person(eve.by.person);
        town.give(&mine.owner, mine.busy.session, to, Grant::Manage).await;
        earlier_calls(&town, &eve, &mine).await;
        let before = town.dump();
        let mut last = last_entry(&town, &boss, eve.by.person).await.map_or(0, |row| row.entry);
        for one in tries(&mine, &vic, &eve) {
            for guise in GUISES {
                let Some(ask) = disguised(&town, &eve, &one, &mine, guise) else { continue };
                let (status, code, body) = read(ask.send().await.unwrap()).await;
                let told = format!("{} {} ({guise}) by {}: {body}", one.method, one.path, eve.by.handle);
                count += 1;
                // A field or parameter that nobody knows is no way in, either: the request is not even read to its end.
                let unknown = status == 422 && matches!(guise, "body" | "query");
                let not_hers = one.wears
                    || one.path.contains("/users/")
                    || one.body.as_ref().is_some_and(|body| {
                        body["to"]["conversation"].as_str().is_some_and(|to| to.starts_with("web:"))
                    });
                assert!(status == 404 || unknown || (status == 403 && not_hers), "{told}");
                if unknown {
                    continue;
                }
                let entry = last_entry(&town, &boss, eve.by.person).await.unwrap();
                assert!(entry.entry > last, "it is in the audit: {told}");
                last = entry.entry;
                assert_eq!((entry.verb.as_str(), entry.refused), (one.verb, code), "{told}");
            }
        }
        let after = town.dump();
        for (table, rows) in &before {
            let (gone, new): (Vec<_>, Vec<_>) = (
                rows.iter().filter(|row| !after[table].contains(row)).collect(),
                after[table].iter().filter(|row| !rows.contains(row)).collect(),
            );
            assert!(gone.is_empty() && new.is_empty(), "{table} was changed: from {gone:#?} to {new:#?}");
        }
        assert_eq!(after, before, "nothing was changed");
        // What is theirs cannot be drawn into what one manages, either.
        let order = json!({"order": [vic.waits.to_string()]});
        let path = format!("/api/v1/sessions/{}/queue", mine.busy.session);
        let (status, code, _) = town.answer(Some(&eve.token), "PUT", &path, Some(&order)).await;
        assert_eq!((status, code.as_deref()), (409, Some("changed")));
        let queue = town.engine.views().queue(&town.now(&vic.owner).await, vic.busy.session).await.unwrap();
        let waiting: Vec<_> = queue.iter().map(|queued| queued.row.message).collect();
        assert_eq!(waiting, [vic.busy.runs, vic.waits]);
    }
    println!("{count} tries");
    town.close().await;
}

#[tokio::test]
async fn what_is_named_by_its_own_id_needs_no_session_beside_it() {
    let town = Town::new(&[]).await;
    let ann = town.host.clone();
    let bob = town.person(&ann, "bob", Role::Member).await;
    let mine = prey(&town, ann.clone(), "a").await;
    town.give(&ann, mine.busy.session, Grantee::Person(bob.by.person), Grant::Prompt).await;
    let (_, bobs) = town.say(&bob, To::Session(mine.busy.session), "from bob").await;
    let (_, second) = town.say(&ann, To::Session(mine.busy.session), "second").await;
    let ask = async |who: &Somebody, method, path: String, body: Option<Value>| {
        town.answer(Some(&who.token), method, &format!("/api/v1{path}"), body.as_ref()).await
    };
    let (waits, asks) = (mine.waits, mine.busy.asks);
    let (status, _, receipt) =
        ask(&ann, "PATCH", format!("/messages/{waits}"), Some(json!({"held": true}))).await;
    assert_eq!((status, receipt["state"].as_str()), (200, Some("held")), "{receipt}");
    let (status, _, receipt) = ask(&ann, "DELETE", format!("/messages/{second}"), None).await;
    assert_eq!((status, receipt["state"].as_str()), (200, Some("withdrawn")), "{receipt}");
    assert_eq!(receipt["session"], mine.busy.session.to_string(), "it was found from the stored record");

    // What waits for somebody who lost the right to say it is refused by the engine itself.
    let (on, to) = (Resource::Session(mine.busy.session), Grantee::Person(bob.by.person));
    town.engine.people().take_back(&town.now(&ann).await, on, to, trace()).await.unwrap();
    let path = format!("/messages/{bobs}?wait=20");
    let (_, _, receipt) = ask(&ann, "GET", path, None).await;
    assert_eq!(receipt["state"], "refused", "{receipt}");
    let engine = PersonId::ENGINE;
    let (status, _, page) = ask(&ann, "GET", format!("/audit?who={engine}"), None).await;
    assert_eq!(status, 200);
    let mut own = page["items"].as_array().unwrap().iter();
    let own = own.find(|entry| entry["subject"] == bobs.to_string()).unwrap_or_else(|| panic!("{page}"));
    assert_eq!(
        (own["by"]["id"].as_str(), own["door"].as_str()),
        (Some(&*engine.to_string()), Some("engine"))
    );
    assert_eq!(
        (own["what"].as_str(), own["session"].as_str()),
        (Some("revoke"), Some(&*mine.busy.session.to_string()))
    );

    let (status, _, answered) =
        ask(&ann, "POST", format!("/approvals/{asks}"), Some(json!({"answer": "yes"}))).await;
    assert_eq!((status, answered["state"].as_str()), (200, Some("answered")), "{answered}");
    let busy = tokio::time::timeout(SOON, town.busy(&ann, None)).await.unwrap();
    let (status, ..) = ask(&ann, "POST", format!("/messages/{}/stop", busy.runs), None).await;
    assert_eq!(status, 200);
    let (_, _, receipt) = ask(&ann, "GET", format!("/messages/{}?wait=20", busy.runs), None).await;
    assert_eq!(receipt["state"], "stopped", "{receipt}");
    town.close().await;
}
