//! Making sessions, and making them busy or letting them answer.

use std::cell::RefCell;
use std::rc::Rc;

use serde_json::json;

use crate::Asked;
use crate::http::{Connection, get, post};

/// `make count=N [text=…]`: makes sessions; with a text, it is said to each of them, and they are running when this ends.
pub(crate) async fn make(asked: &Rc<Asked>) -> String {
    let count: usize = asked.number("count");
    let text = asked.0.get("text").cloned();
    let made = Rc::new(RefCell::new(Vec::new()));
    let connections = count.min(16);
    let mut under_way = Vec::new();
    for number in 0..connections {
        let share = count / connections + usize::from(number < count % connections);
        under_way.push(tokio::task::spawn_local(make_some(asked.clone(), share, text.clone(), made.clone())));
    }
    for one in under_way {
        one.await.expect("it does not panic");
    }
    json!({ "sessions": made.take() }).to_string()
}

async fn make_some(asked: Rc<Asked>, count: usize, text: Option<String>, made: Rc<RefCell<Vec<String>>>) {
    let mut connection = Connection::open(asked.host()).await;
    for _ in 0..count {
        let session = match &text {
            None => {
                let answered = connection.ask(&post(&asked, "/api/v1/sessions", &json!({}))).await.json();
                answered["id"].as_str().expect("a session has an id").to_owned()
            }
            Some(text) => say_first(&asked, &mut connection, text).await,
        };
        made.borrow_mut().push(session);
    }
}

/// Says something to a new session and waits until its agent has been handed it.
async fn say_first(asked: &Asked, connection: &mut Connection, text: &str) -> String {
    let body = json!({ "to": { "new": {} }, "text": text });
    let receipt = connection.ask(&post(asked, "/api/v1/messages", &body)).await.json();
    let session = receipt["session"].as_str().expect("a receipt names a session").to_owned();
    let path = format!("/api/v1/sessions/{session}/facts?limit=100");
    let request = get(asked, &path, "application/json");
    loop {
        let facts = connection.ask(&request).await;
        if String::from_utf8_lossy(&facts.body).contains("\"type\":\"handed\"") {
            return session;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

/// `talk sessions=N rounds=M`: so many conversations, each with so many messages that are answered.
pub(crate) async fn talk(asked: &Rc<Asked>) -> String {
    let (sessions, rounds): (usize, usize) = (asked.number("sessions"), asked.number("rounds"));
    let mut under_way = Vec::new();
    for number in 0..sessions {
        under_way.push(tokio::task::spawn_local(converse(asked.clone(), number, rounds)));
    }
    for one in under_way {
        one.await.expect("it does not panic");
    }
    json!({ "messages": sessions * rounds }).to_string()
}

async fn converse(asked: Rc<Asked>, number: usize, rounds: usize) {
    let mut connection = Connection::open(asked.host()).await;
    for round in 0..rounds {
        let to = json!({ "conversation": format!("api:bench/{number}") });
        let body = json!({ "to": to, "text": format!("message {round}") });
        let receipt = connection.ask(&post(&asked, "/api/v1/messages", &body)).await.json();
        let id = receipt["id"].as_str().expect("a receipt has an id");
        let path = format!("/api/v1/messages/{id}?wait=30");
        let receipt = connection.ask(&get(&asked, &path, "application/json")).await.json();
        assert_eq!(receipt["state"], "answered", "{receipt}");
    }
}
