//! Readers that open a stream and never read it, while a lot passes them: what does the server keep for them?
//!
//! `stall readers=N bytes=B pid=P`: makes a session, lets N readers open its stream and stop, lets the agent say B
//! bytes, and watches the server's memory meanwhile.

use std::rc::Rc;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};

use crate::Asked;
use crate::http::{Connection, get, post};
use crate::proc::pss_bytes;

/// The bytes the system may take for a reader that does not read; a small window stalls soonest.
const WINDOW_BYTES: u32 = 4_096;
/// The time between two looks at memory.
const LOOK: Duration = Duration::from_millis(50);
/// The time for which things are left alone before memory is taken for settled.
const SETTLE: Duration = Duration::from_millis(1_500);
/// The longest flood.
const WAIT_MAX: Duration = Duration::from_secs(1_200);

pub(crate) async fn stall(asked: &Rc<Asked>) -> String {
    let (readers, bytes, pid): (usize, u64, u32) =
        (asked.number("readers"), asked.number("bytes"), asked.number("pid"));
    let mut connection = Connection::open(asked.host()).await;
    let session = connection.ask(&post(asked, "/api/v1/sessions", &json!({}))).await.json();
    let session = session["id"].as_str().expect("an id").to_owned();
    // Memory that the first flood needs whoever listens is not the readers'.
    let quiet = flood(asked, &mut connection, &session, bytes.min(4 << 20), pid).await;
    let row =
        connection.ask(&get(asked, &format!("/api/v1/sessions/{session}"), "application/json")).await.json();
    let path = format!("/api/v1/sessions/{session}/facts?after={}", row["number"]);
    let request = get(asked, &path, "text/event-stream");
    let mut stalled = Vec::new();
    for _ in 0..readers {
        stalled.push(stop_reading(asked.host(), &request).await);
    }
    tokio::time::sleep(SETTLE).await;
    let before = pss_bytes(pid);
    let (peak, took) = flood(asked, &mut connection, &session, bytes, pid).await;
    tokio::time::sleep(SETTLE).await;
    let after = pss_bytes(pid);
    drop(stalled);
    let per_second = bytes as f64 / took.as_secs_f64();
    format!(
        r#"{{"quiet":{},"before":{before},"peak":{peak},"after":{after},"bytes_per_second":{per_second:.0}}}"#,
        quiet.0
    )
}

async fn stop_reading(host: &str, request: &[u8]) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(WINDOW_BYTES).expect("a socket");
    let mut stream = socket.connect(host.parse().expect("an address")).await.expect("the server listens");
    stream.write_all(request).await.expect("the server reads");
    stream
}

/// Lets the agent say so many bytes; answers the most memory that was seen, and how long it took.
async fn flood(
    asked: &Asked,
    connection: &mut Connection,
    session: &str,
    bytes: u64,
    pid: u32,
) -> (u64, Duration) {
    let body = json!({ "to": { "session": session }, "text": format!("!flood {bytes}") });
    let began = Instant::now();
    let receipt = connection.ask(&post(asked, "/api/v1/messages", &body)).await.json();
    let id = receipt["id"].as_str().expect("an id").to_owned();
    // With `wait` the answer would bring megabytes along; its state is in the queue, too.
    let request = get(asked, &format!("/api/v1/sessions/{session}"), "application/json");
    let mut peak = 0;
    loop {
        tokio::time::sleep(LOOK).await;
        peak = peak.max(pss_bytes(pid));
        let row = connection.ask(&request).await.json();
        if row["pending"].as_u64() == Some(0) {
            return (peak, began.elapsed());
        }
        assert!(began.elapsed() < WAIT_MAX, "{id} takes too long");
    }
}
