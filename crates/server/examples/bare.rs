//! The limit for the HTTP side of the bench: the same router, runtime and JSON, and nothing behind them.
//!
//! `POST /api/v1/messages` parses the message and answers a receipt of the usual size. `GET /stream` is a stream without
//! a log: `POST /tell` sends COUNT ready-made frames of BYTES bytes to every reader. Prints its address; runs until its
//! standard input is closed.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::stream;
use std::collections::HashMap;
use std::convert::Infallible;
use tokio::sync::broadcast;

/// As many as a watcher of ours may lag behind.
const LAG_MAX: usize = 256;

type Ring = broadcast::Sender<Bytes>;

#[tokio::main]
async fn main() {
    let router = Router::new()
        .route("/api/v1/messages", post(say))
        .route("/stream", get(follow))
        .route("/tell", post(tell))
        .with_state(Ring::new(LAG_MAX));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    println!("http://{}", listener.local_addr().expect("it is bound"));
    let gone = async {
        let read = tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new()));
        let _ = read.await;
    };
    tokio::select! {
        served = async { axum::serve(listener, router).await } => served.expect("it serves"),
        () = gone => {}
    }
    // The thread that reads standard input may still be there.
    std::process::exit(0);
}

async fn say(body: Bytes) -> Response {
    let Ok(message) = serde_json::from_slice::<api::NewMessage>(&body) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let (to, parts) = message.into_parts();
    let api::To::Session(to) = to else { return StatusCode::BAD_REQUEST.into_response() };
    assert!(!parts.is_empty());
    let body = serde_json::to_vec(&receipt(to.session)).expect("plain data");
    (StatusCode::ACCEPTED, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

fn receipt(session: String) -> api::Receipt {
    let id = "msg_01m7e0j47g00000000000001yg".to_owned();
    let this = format!("/api/v1/messages/{id}");
    let of_session = format!("/api/v1/sessions/{session}");
    api::Receipt {
        by: None,
        id,
        session,
        door: None,
        state: api::ReceiptState::Waiting,
        why: None,
        hint: None,
        waiting: None,
        new: false,
        previous: None,
        if_new_ignored: false,
        revision: 0,
        delivery: api::Delivery::Queue,
        epoch: None,
        turn: None,
        first: None,
        last: None,
        answer: None,
        notice: None,
        text: None,
        attachments: Vec::new(),
        accepted_at: api::At(1_800_000_000_000),
        changed_at: api::At(1_800_000_000_000),
        links: api::Links { this, facts: format!("{of_session}/facts"), session: of_session },
    }
}

async fn follow(State(ring): State<Ring>) -> Response {
    let frames = stream::unfold(ring.subscribe(), |mut ring| async move {
        ring.recv().await.ok().map(|frame| (Ok::<_, Infallible>(frame), ring))
    });
    let hello = stream::once(async { Ok(Bytes::from_static(b"retry: 1000\n\n")) });
    let body = Body::from_stream(futures_util::StreamExt::chain(hello, frames));
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}

async fn tell(State(ring): State<Ring>, Query(asked): Query<HashMap<String, usize>>) -> StatusCode {
    let (count, bytes) =
        (asked.get("count").copied().unwrap_or(1), asked.get("bytes").copied().unwrap_or(100));
    let frame = Bytes::from(format!("event: live\ndata: {}\n\n", "x".repeat(bytes)));
    for _ in 0..count.min(LAG_MAX) {
        let _ = ring.send(frame.clone());
    }
    StatusCode::ACCEPTED
}
