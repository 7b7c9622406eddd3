//! One session's facts to many readers.
//!
//! `burst` lets many frames come at once and counts deliveries; it fits into what a reader may lag behind, so that
//! nobody is cut off. `echo` says one message after the other and waits until the last reader has heard of it.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::sync::Notify;

use crate::http::{Connection, Lines, get, post};
use crate::proc::cpu;
use crate::{Asked, Times};

/// The longest all readers together may take to hear something.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// The events that readers have heard.
#[derive(Default)]
struct Heard {
    /// Per frame of interest: how many have it, when the first had it and when the last.
    frames: Vec<(usize, Option<(Instant, Instant)>)>,
    /// Readers whose stream has ended.
    cut_off: usize,
    changed: Rc<Notify>,
}

impl Heard {
    fn note(&mut self, frame: usize, readers: usize) {
        if self.frames.len() <= frame {
            self.frames.resize(frame + 1, (0, None));
        }
        let now = Instant::now();
        let (count, times) = &mut self.frames[frame];
        *count += 1;
        *times = Some((times.map_or(now, |(first, _)| first), now));
        if *count == readers {
            self.changed.notify_waiters();
        }
    }
}

/// `burst readers=N words=M stream=PATH tell=PATH body=JSON pid=P`: opens the stream N times, posts the body, and waits
/// until each reader has had M live frames.
pub(crate) async fn burst(asked: &Rc<Asked>) -> String {
    let (readers, words): (usize, usize) = (asked.number("readers"), asked.number("words"));
    let heard = open(asked, readers, |line, count| {
        (line == b"event: live").then(|| {
            *count += 1;
            *count - 1
        })
    })
    .await;
    let before = cpu(asked.number("pid"));
    let body = serde_json::from_str(asked.text("body")).expect("a JSON body");
    let told = Connection::open(asked.host()).await.ask(&post(asked, asked.text("tell"), &body)).await;
    assert_eq!(told.status, 202);
    until(&heard, words - 1, readers).await;
    let cpu = cpu(asked.number("pid")) - before;
    let heard = heard.borrow();
    let all = heard.frames.iter().take(words).filter_map(|(_, times)| *times);
    let (first, last) = all.reduce(|(a, b), (c, d)| (a.min(c), b.max(d))).expect("something was heard");
    let deliveries: usize = heard.frames.iter().map(|(count, _)| count).sum();
    let per_second = deliveries as f64 / (last - first).as_secs_f64();
    let cpu_ns = cpu.as_nanos() / deliveries as u128;
    format!(
        r#"{{"deliveries":{deliveries},"per_second":{per_second:.0},"cpu_ns":{cpu_ns},"cut_off":{}}}"#,
        heard.cut_off
    )
}

/// `echo readers=N count=M session=ID`: M messages to a session that only queues them, each heard by N readers.
pub(crate) async fn echo(asked: &Rc<Asked>) -> String {
    let (readers, count): (usize, usize) = (asked.number("readers"), asked.number("count"));
    let session = asked.text("session");
    let heard = open(asked, readers, |line, _| id_of(line)).await;
    let mut connection = Connection::open(asked.host()).await;
    let page = get(asked, &format!("/api/v1/sessions/{session}"), "application/json");
    let number = connection.ask(&page).await.json()["number"].as_u64().expect("a number") as usize;
    let body = json!({ "to": { "session": session }, "text": "one more" });
    let (mut from_receipt, mut spread) = (Times::default(), Times::default());
    for next in number + 1..=number + count {
        let answered = connection.ask(&post(asked, "/api/v1/messages", &body)).await;
        let safe = Instant::now();
        assert_eq!(answered.status, 202);
        until(&heard, next, readers).await;
        let (first, last) = heard.borrow().frames[next].1.expect("everybody has heard it");
        from_receipt.note(last.saturating_duration_since(safe));
        spread.note(last - first);
    }
    let cut_off = heard.borrow().cut_off;
    format!(
        r#"{{"cut_off":{cut_off},"last":{{{}}},"spread":{{{}}}}}"#,
        from_receipt.members(),
        spread.members()
    )
}

fn id_of(line: &[u8]) -> Option<usize> {
    std::str::from_utf8(line.strip_prefix(b"id: ")?).ok()?.parse().ok()
}

/// Opens the stream for every reader. `frame` says which frame of interest a line begins, if any; it may count.
async fn open(
    asked: &Rc<Asked>,
    readers: usize,
    frame: impl Fn(&[u8], &mut usize) -> Option<usize> + Copy + 'static,
) -> Rc<RefCell<Heard>> {
    let heard = Rc::new(RefCell::new(Heard::default()));
    let request = get(asked, asked.text("stream"), "text/event-stream");
    for _ in 0..readers {
        let lines = Connection::open(asked.host()).await.follow(&request).await;
        tokio::task::spawn_local(listen(lines, readers, heard.clone(), frame));
    }
    heard
}

async fn listen(
    mut lines: Lines,
    readers: usize,
    heard: Rc<RefCell<Heard>>,
    frame: impl Fn(&[u8], &mut usize) -> Option<usize>,
) {
    let mut count = 0;
    let see = |line: &[u8]| {
        if let Some(frame) = frame(line, &mut count) {
            heard.borrow_mut().note(frame, readers);
        }
    };
    let mut see = see;
    while lines.read(&mut see).await {}
    heard.borrow_mut().cut_off += 1;
}

/// Waits until all readers have this frame.
async fn until(heard: &Rc<RefCell<Heard>>, frame: usize, readers: usize) {
    let changed = heard.borrow().changed.clone();
    let all = async {
        loop {
            let next = changed.notified();
            if heard.borrow().frames.get(frame).is_some_and(|(count, _)| *count >= readers) {
                return;
            }
            next.await;
        }
    };
    if tokio::time::timeout(WAIT_MAX, all).await.is_err() {
        let heard = heard.borrow();
        let count = heard.frames.get(frame).map_or(0, |(count, _)| *count);
        panic!("{count} of {readers} readers have frame {frame}; {} were cut off", heard.cut_off);
    }
}
