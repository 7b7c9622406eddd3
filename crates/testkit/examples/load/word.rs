//! From a message to the agent's first word, and from there to the end of its turn, as a reader hears both: `word count=N`, one
//! after the other, in a directory of the session's own or in `directory=PATH`, with `text=WORDS` or any. `warm=N` more come first, which
//! do not count.

use std::rc::Rc;
use std::time::Instant;

use serde_json::json;

use crate::http::{Connection, get, post};
use crate::{Asked, Times};

pub(crate) async fn word(asked: &Rc<Asked>) -> String {
    let (count, warm): (usize, usize) = (asked.number("count"), asked.number_or("warm", 0));
    let mut connection = Connection::open(asked.host()).await;
    let new = json!({ "directory": asked.0.get("directory") });
    let session = connection.ask(&post(asked, "/api/v1/sessions", &new)).await.json();
    let session = session["id"].as_str().expect("an id").to_owned();
    let request = get(asked, &format!("/api/v1/sessions/{session}/facts?after=0"), "text/event-stream");
    let mut lines = Connection::open(asked.host()).await.follow(&request).await;
    let (mut words, mut ends, mut receipts) = (Times::default(), Times::default(), Times::default());
    for number in 0..warm + count {
        let text = asked.0.get("text").cloned().unwrap_or_else(|| format!("message {number}"));
        let body = json!({ "to": { "session": session }, "text": text });
        let request = post(asked, "/api/v1/messages", &body);
        let began = Instant::now();
        assert_eq!(connection.ask(&request).await.status, 202);
        let received = began.elapsed();
        let (mut first, mut ended) = (None, false);
        while !ended {
            let open = lines
                .read(|line| {
                    if first.is_none() && line == b"event: live" {
                        first = Some(began.elapsed());
                    }
                    ended = ended || line.windows(22).any(|bytes| bytes == b"\"type\":\"turn_ended\",\"t");
                })
                .await;
            assert!(open, "the stream ended");
        }
        let first = first.expect("it said something");
        if number >= warm {
            receipts.note(received);
            words.note(first);
            ends.note(began.elapsed() - first);
        }
    }
    let (words, ends, receipts) = (words.members(), ends.members(), receipts.members());
    format!(r#"{{"word":{{{words}}},"end":{{{ends}}},"receipt":{{{receipts}}}}}"#)
}
