//! Our share in a turn of an agent whose process is up: `turns agent=NAME count=N`, one after the other. The agent says
//! when it read a message and when it spoke (`clock-agent`), on the clock that we read here, too.

use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::http::{Connection, get, post};
use crate::{Asked, Times};

pub(crate) async fn turns(asked: &Rc<Asked>) -> String {
    let count: usize = asked.number("count");
    let mut connection = Connection::open(asked.host()).await;
    let session = json!({ "agent": asked.text("agent") });
    let session = connection.ask(&post(asked, "/api/v1/sessions", &session)).await.json();
    let session = session["id"].as_str().unwrap_or_else(|| panic!("no id in {session}")).to_owned();
    let request = get(asked, &format!("/api/v1/sessions/{session}/facts?after=0"), "text/event-stream");
    let mut lines = Connection::open(asked.host()).await.follow(&request).await;
    let (mut there, mut back) = (Times::default(), Times::default());
    // The first turn starts the process.
    for number in 0..=count {
        let body = json!({ "to": { "session": session }, "text": format!("message {number}") });
        assert_eq!(connection.ask(&post(asked, "/api/v1/messages", &body)).await.status, 202);
        let accepted = nanoseconds();
        let (mut heard, mut ended) = (None, false);
        while !ended {
            let open = lines
                .read(|line| {
                    let now = nanoseconds();
                    if heard.is_none()
                        && let Some(said) = said(line)
                    {
                        heard = Some((said, now));
                    }
                    ended = ended || line.windows(22).any(|bytes| bytes == b"\"type\":\"turn_ended\",\"t");
                })
                .await;
            assert!(open, "the stream ended");
        }
        let ((read, spoke), now) = heard.expect("it said what the time was");
        if number > 0 {
            there.note(between(accepted, read));
            back.note(between(spoke, now));
        }
    }
    format!(r#"{{"there":{{{}}},"back":{{{}}}}}"#, there.members(), back.members())
}

/// The two moments in a line of the stream, if it has the agent's words.
fn said(line: &[u8]) -> Option<(i128, i128)> {
    let data: Value = serde_json::from_slice(line.strip_prefix(b"data: ")?).ok()?;
    let (read, spoke) = data["text"].as_str()?.split_once(' ')?;
    Some((read.parse().ok()?, spoke.parse().ok()?))
}

/// A message may reach the agent before its receipt reaches us: then we added nothing.
fn between(from: i128, to: i128) -> Duration {
    Duration::from_nanos(u64::try_from((to - from).max(0)).unwrap_or(u64::MAX))
}

fn nanoseconds() -> i128 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec)
}
