//! `kill -9` at random moments, under load: nothing acknowledged is lost, doubled or out of order, and nothing is left.
//!
//! `HOMING_KILLS` says how often (10 by default; `cargo xtask soak` asks for 300), `HOMING_SEED` repeats a run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::{Homing, Http, Setup, eventually};

use crate::count;

const WRITERS: usize = 16;
/// In the end a backlog of many turns is worked off, by a machine that may have other things to do.
const BACKLOG_MAX: Duration = Duration::from_secs(180);
/// Messages of interrupted turns that are waited for after each start.
const WAITED_FOR: usize = 3;

/// Kills come faster than anybody's: a message may be caught before it was handed over many times in a row, and that is
/// not what this test is about.
const CONFIG: &str = r#"
[limits]
requests_per_second = 0
awake_max = 8

[policy]
attempts_max = 1000
backoff = "20ms"
backoff_max = "100ms"
"#;

#[test]
fn kill_9_under_16_writers_loses_nothing_doubles_nothing_and_leaves_nothing() {
    let kills = count("HOMING_KILLS", 10);
    let mut dice = Dice(count("HOMING_SEED", u64::from(std::process::id())));
    println!("HOMING_SEED={}", dice.0);
    let mut homing = Setup::new(env!("CARGO_BIN_EXE_homing")).config(CONFIG).start();
    let over = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (http, over, seed) = (homing.http(), over.clone(), dice.next());
            std::thread::spawn(move || Writer { writer, http, dice: Dice(seed) }.write(&over))
        })
        .collect();
    let mut slowest = Duration::ZERO;
    for _ in 0..kills {
        std::thread::sleep(Duration::from_millis(20 + dice.below(400)));
        homing.kill9();
        let open = begun_and_not_ended(&homing);
        homing.restart();
        let ready = Instant::now();
        for message in open.iter().take(WAITED_FOR) {
            homing.http().until_final(message);
        }
        slowest = slowest.max(ready.elapsed());
    }
    // Two seconds are promised, to a machine that has nothing else to do; here it is seen that they are settled at all.
    println!("unfinished turns were settled within {slowest:?} of the start");
    over.store(true, Ordering::Relaxed);
    let said: Vec<Said> = writers.into_iter().flat_map(|writer| writer.join().expect("a writer")).collect();
    println!("{} messages acknowledged over {kills} kills", said.len());

    let http = homing.http();
    every_receipt_is_final_and_every_key_still_names_its_message(&http, &said);
    let log = Log::read(&http, &said);
    log.holds_each_acknowledged_message_once(&said);
    log.keeps_the_order(&said);
    log.hands_over_at_most_once();
    acted_at_most_once(&homing);
    assert!(homing.terminate().success());
    homing.until_nothing_is_left();
}

#[test]
fn the_words_said_before_a_kill_are_kept_and_the_turn_is_interrupted_soon() {
    let mut homing = Homing::start(env!("CARGO_BIN_EXE_homing"));
    let receipt = homing.send("api:kill/words", "!say 100000 200");
    let (session, message) = (text(&receipt["session"]), text(&receipt["id"]));
    let mut follow = homing.http().follow(&format!("/api/v1/sessions/{session}/facts"), None).unwrap();
    let heard = follow.until(|heard| heard.json["type"] == "text");
    let words = text(&heard.last().unwrap().json["text"]);
    homing.kill9();
    homing.restart();
    let receipt = homing.http().until_final(&message);
    assert_eq!((text(&receipt["state"]), text(&receipt["why"])), ("failed".into(), "interrupted".into()));
    assert!(text(&receipt["answer"]).starts_with(&words), "{receipt}");
    // The agent remembers what it was handed; we go on in the same session, in the same conversation.
    assert_eq!(homing.converse("api:kill/words", "next"), "#2 next\n".trim_end());
}

#[test]
fn a_kill_before_handed_tries_again_by_itself() {
    let mut homing = Homing::start(env!("CARGO_BIN_EXE_homing"));
    homing.converse("api:kill/again", "!fail start 2");
    let receipt = homing.send("api:kill/again", "hello");
    homing.kill9();
    homing.restart();
    let receipt = homing.http().until_final(&text(&receipt["id"]));
    assert_eq!(text(&receipt["state"]), "answered", "{receipt}");
    assert_eq!(text(&receipt["answer"]).trim(), "#2 hello");
}

/// A message that was acknowledged.
#[derive(Debug, Clone)]
struct Said {
    conversation: String,
    key: String,
    body: Value,
    message: String,
    session: String,
}

struct Writer {
    writer: usize,
    http: Http,
    dice: Dice,
}

impl Writer {
    /// Says one thing after the other, each until it is acknowledged, as a careful program would.
    fn write(mut self, over: &AtomicBool) -> Vec<Said> {
        let mut said = Vec::new();
        while !over.load(Ordering::Relaxed) {
            let number = said.len();
            // Half of what is said goes to a conversation of one's own, half to one that four writers share.
            let conversation = match self.dice.below(2) {
                0 => format!("api:kill/own{}", self.writer),
                _ => format!("api:kill/shared{}", self.writer % 4),
            };
            let word = format!("w{}n{number}", self.writer);
            let text = match self.dice.below(6) {
                0 => format!("{word}\n!say 30 100"),
                1 => format!("{word}\n!sleep 50"),
                _ => word,
            };
            let body = json!({"to": {"conversation": conversation}, "text": text});
            let key = format!("k{}-{number}", self.writer);
            let receipt = self.until_acknowledged(&key, &body);
            let (message, session) = (self::text(&receipt["id"]), self::text(&receipt["session"]));
            said.push(Said { conversation, key, body, message, session });
            std::thread::sleep(Duration::from_millis(self.dice.below(60)));
        }
        said
    }

    fn until_acknowledged(&self, key: &str, body: &Value) -> Value {
        eventually("a message is acknowledged", || post(&self.http, key, body))
    }
}

fn post(http: &Http, key: &str, body: &Value) -> Option<Value> {
    let headers = [("Idempotency-Key", key)];
    let answered = http.ask("POST", "/api/v1/messages", &headers, Some(body)).ok()?;
    match answered.status {
        202 => Some(answered.json()),
        // Full for a moment, or going down: a careful program comes again with the same key.
        429 | 503 => None,
        _ => panic!("{}: {}", answered.status, answered.text()),
    }
}

fn every_receipt_is_final_and_every_key_still_names_its_message(http: &Http, said: &[Said]) {
    for one in said {
        let receipt = http.until_final_within(&one.message, BACKLOG_MAX);
        assert_eq!(text(&receipt["session"]), one.session);
        let again = http.post_as(&one.key, "/api/v1/messages", &one.body).expect(202);
        assert_eq!(text(&again["id"]), one.message, "the same key names the same message");
    }
}

/// Turns that the agent had begun to act on when the server was killed: each must be settled by the next start.
fn begun_and_not_ended(homing: &Homing) -> Vec<String> {
    let log = homing.agent_log();
    let of = |event| log.iter().filter(move |ran| ran.event == event).map(|ran| ran.message.clone());
    let ended: BTreeSet<String> = of("end").collect();
    // The newest first: the older ones were waited for before.
    let mut open: Vec<_> = of("start").filter(|message| !ended.contains(message)).collect();
    open.reverse();
    open
}

/// By the agent's own account: whatever it began to act on, it began once.
fn acted_at_most_once(homing: &Homing) {
    let mut starts = BTreeMap::<String, usize>::new();
    for ran in homing.agent_log().iter().filter(|ran| ran.event == "start") {
        *starts.entry(ran.message.clone()).or_default() += 1;
    }
    let twice: Vec<_> = starts.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "acted on more than once: {twice:?}");
    assert!(!starts.is_empty());
}

/// The logs of all sessions.
struct Log(BTreeMap<String, Vec<Value>>);

impl Log {
    fn read(http: &Http, said: &[Said]) -> Self {
        Self::of(http, &said.iter().map(|one| one.session.clone()).collect())
    }

    fn of(http: &Http, sessions: &BTreeSet<String>) -> Self {
        Self(sessions.iter().map(|session| (session.clone(), facts(http, session))).collect())
    }

    fn holds_each_acknowledged_message_once(&self, said: &[Said]) {
        let mut queued = BTreeMap::<String, usize>::new();
        for fact in self.0.values().flatten().filter(|fact| fact["type"] == "queued") {
            *queued.entry(text(&fact["message"])).or_default() += 1;
        }
        for one in said {
            assert_eq!(queued.remove(&one.message), Some(1), "{one:?}");
        }
        assert!(queued.is_empty(), "nobody said {queued:?}");
    }

    /// Everything one writer said to one conversation is queued in that order, and turns run in the order of the queue.
    fn keeps_the_order(&self, said: &[Said]) {
        let mut sessions = BTreeMap::<&str, &str>::new();
        for one in said {
            let session = *sessions.entry(&one.conversation).or_insert(&one.session);
            assert_eq!(session, one.session, "one conversation, one session");
        }
        for (session, facts) in &self.0 {
            let queued = messages(facts, "queued");
            let started = messages(facts, "turn_started");
            assert_eq!(queued, started, "turns run in order of acceptance in {session}");
            for writer in 0..WRITERS {
                let mine = said.iter().filter(|one| one.session == *session);
                let mine = mine.filter(|one| one.key.starts_with(&format!("k{writer}-")));
                let mine: Vec<_> = mine.map(|one| one.message.clone()).collect();
                let stored: Vec<_> = queued.iter().filter(|id| mine.contains(id)).cloned().collect();
                assert_eq!(stored, mine, "acceptance order of writer {writer} in {session}");
            }
        }
    }

    fn hands_over_at_most_once(&self) {
        for facts in self.0.values() {
            let mut handed = BTreeSet::new();
            for fact in facts.iter().filter(|fact| fact["type"] == "handed") {
                assert!(handed.insert(fact["turn"].as_u64()), "handed twice: {fact}");
            }
        }
    }
}

pub(crate) fn facts(http: &Http, session: &str) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    loop {
        let after = all.len();
        let page = http.get(&format!("/api/v1/sessions/{session}/facts?after={after}&limit=500")).expect(200);
        let items = page["items"].as_array().expect("a page has items").clone();
        if items.is_empty() {
            return all;
        }
        for fact in items {
            assert_eq!(fact["number"].as_u64(), Some(all.len() as u64 + 1), "numbers have no gap");
            all.push(fact);
        }
    }
}

fn messages(facts: &[Value], kind: &str) -> Vec<String> {
    facts.iter().filter(|fact| fact["type"] == kind).map(|fact| text(&fact["message"])).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("not a text: {value}")).to_owned()
}

/// SplitMix64: small, and the same everywhere.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}
