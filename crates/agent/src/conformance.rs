//! The stories every driver must survive, told through the port alone.
//!
//! A driver's tests call `agent::conformance!(candidate)` with an expression that makes a `Candidate`; each story
//! becomes one test. The agent behind the driver has to understand the directives of the scripted agent. Every wait
//! is bounded by `WAIT_MS_MAX`, so a story that hangs fails.

use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

use kernel::{Attempt, Epoch, Failure, Fence, MessageId, Native, SessionId, Term, Turn};

use crate::scripted::flood_byte;
use crate::{Agent, AgentEvent, Answer, Launch, Message, Running, TEXT_BYTES_MAX, TreeName, Trouble};

/// How long a story waits for one thing. Generous: the machine may be busy, and only failures take this long.
const WAIT_MS_MAX: u64 = 20_000;
/// The polite part of a stop. Short, because some stories make it wait in vain.
const GRACE_MS: u64 = 200;
/// More than any pipe or channel between an agent and us holds.
const FLOOD_BYTES: u64 = 3_000_000;

/// A driver on trial, with ground to stand on.
pub trait Candidate: Sync {
    /// The driver.
    fn agent(&self) -> &dyn Agent;
    /// A directory that exists.
    fn directory(&self) -> PathBuf;
    /// A session that nobody else on this machine uses.
    fn session(&self) -> SessionId;
    /// How many processes, or whatever stands for them, are left of that attempt.
    fn left(&self, tree: &TreeName) -> usize;
}

/// Makes one test of each story. The tests' crate needs tokio with `macros` and `rt`.
#[macro_export]
macro_rules! conformance {
    ($candidate:expr) => {
        $crate::conformance!(@ $candidate;
            it_is_ready_before_it_is_handed_anything, it_finishes_with_its_whole_answer, a_resumed_conversation_remembers,
            a_new_conversation_remembers_nothing, failures_keep_their_kinds, failing_after_acting_is_remembered,
            told_starts_fail_before_ready, a_conversation_that_is_gone_stays_gone, an_unknown_conversation_is_gone,
            a_new_id_is_reported, a_question_waits_for_its_answer, stop_mid_turn_leaves_nothing,
            stop_before_the_message_leaves_nothing, stop_twice_is_fine, stop_after_the_end_is_fine, a_crash_is_a_death,
            a_hanging_agent_can_be_stopped, a_flood_arrives_complete, next_can_be_dropped, a_dropped_attempt_can_be_buried,
            burying_twice_or_nothing_is_fine, a_tree_runs_once_at_a_time, a_message_too_long_is_refused,
            it_acts_in_the_scopes_directory);
    };
    (@ $candidate:expr; $($story:ident),*) => {
        $(#[tokio::test] async fn $story() { $crate::conformance::$story(&$candidate).await; })*
    };
}

/// Nothing of the message is needed for the agent to come up, and it comes up with the id it will go by.
pub async fn it_is_ready_before_it_is_handed_anything(on: &dyn Candidate) {
    let mut talk = Talk::begin(on, 1, None).await;
    assert!(matches!(talk.next().await, AgentEvent::Ready { native: Some(_) }));
    talk.hand("hello").await;
    assert_eq!(talk.hear_out().await.text, "#1 hello");
}

pub async fn it_finishes_with_its_whole_answer(on: &dyn Candidate) {
    let ended = turn(on, "one\ntwo\n!say 3 0\n!unheard-of").await;
    assert_eq!(ended.text, "#1 one\ntwo\nword1 word2 word3\nunknown directive: !unheard-of");
    assert!(matches!(&ended.last, AgentEvent::Finished { native, .. } if *native == ended.native));
    assert_eq!(on.left(&ended.tree), 0);
}

pub async fn a_resumed_conversation_remembers(on: &dyn Candidate) {
    let first = turn(on, "apple").await;
    let second = first.and_then(on, "pear").await;
    let third = second.and_then(on, "!recall").await;
    assert_eq!((second.text.as_str(), third.text.as_str()), ("#2 pear", "#3\napple\npear"));
}

pub async fn a_new_conversation_remembers_nothing(on: &dyn Candidate) {
    let first = turn(on, "apple").await;
    let other = turn(on, "pear\n!recall").await;
    assert_eq!(other.text, "#1 pear");
    assert_ne!(first.native, other.native);
}

pub async fn failures_keep_their_kinds(on: &dyn Candidate) {
    let first = turn(on, "apple").await;
    for (text, failure) in
        [("!fail before", Failure::Transient), ("!busy", Failure::Busy), ("!refuse", Failure::Refused)]
    {
        let failed = first.and_then(on, text).await;
        assert_eq!(failed.failure(), Some(failure), "{text}");
        assert_eq!(on.left(&failed.tree), 0);
    }
    assert_eq!(first.and_then(on, "pear").await.text, "#2 pear", "nothing of this was acted on");
}

pub async fn failing_after_acting_is_remembered(on: &dyn Candidate) {
    let failed = turn(on, "apple\n!fail after").await;
    assert_eq!(failed.failure(), Some(Failure::Transient));
    assert_eq!(failed.and_then(on, "pear").await.text, "#2 pear");
}

pub async fn told_starts_fail_before_ready(on: &dyn Candidate) {
    let first = turn(on, "!fail start 2\n!busy start 1").await;
    for failure in [Failure::Transient, Failure::Transient, Failure::Busy] {
        let mut talk = Talk::begin(on, 2, first.native.clone()).await;
        assert!(matches!(talk.next().await, AgentEvent::Failed(Trouble { failure: f, .. }) if f == failure));
        assert_eq!(on.left(&talk.tree), 0);
    }
    assert_eq!(first.and_then(on, "pear").await.text, "#2 pear");
}

pub async fn a_conversation_that_is_gone_stays_gone(on: &dyn Candidate) {
    let gone = turn(on, "apple").await.and_then(on, "!gone").await;
    assert_eq!(gone.failure(), Some(Failure::Gone));
    assert_eq!(gone.and_then(on, "pear").await.failure(), Some(Failure::Gone));
}

pub async fn an_unknown_conversation_is_gone(on: &dyn Candidate) {
    for id in ["00000000-dead-4000-8000-000000000000", "../../etc/passwd", ""] {
        let mut talk = Talk::begin(on, 1, Some(Native::new(id))).await;
        assert!(
            matches!(talk.next().await, AgentEvent::Failed(Trouble { failure: Failure::Gone, .. })),
            "{id}"
        );
    }
}

pub async fn a_new_id_is_reported(on: &dyn Candidate) {
    let first = turn(on, "apple").await;
    let second = first.and_then(on, "pear\n!newid").await;
    assert_eq!(second.text, "#2 pear");
    assert_ne!(first.native, second.native);
    assert!(matches!(&second.last, AgentEvent::Finished { native, .. } if *native == second.native));
    assert_eq!(second.and_then(on, "plum").await.text, "#3 plum");
    assert_eq!(first.and_then(on, "fig").await.text, "#2 fig", "the old id keeps what it knew");
}

pub async fn a_question_waits_for_its_answer(on: &dyn Candidate) {
    let mut talk = Talk::ready(on, 1, None).await;
    talk.hand("!ask Shell\n!ask Write").await;
    let first = talk.asked().await;
    let _ = talk.running.answer("no such question", Answer::Allow).await;
    assert!(soon(300, talk.running.next()).await.is_none(), "it went on without an answer");
    talk.running.answer(&first, Answer::Allow).await.expect("it waits for this");
    let second = talk.asked().await;
    assert_ne!(first, second);
    talk.running
        .answer(&second, Answer::Deny { reason: "not now".to_owned() })
        .await
        .expect("it waits for this");
    assert_eq!(talk.hear_out().await.text, "#1\nShell: allowed\nWrite: denied: not now");
}

pub async fn stop_mid_turn_leaves_nothing(on: &dyn Candidate) {
    let mut talk = Talk::ready(on, 1, None).await;
    talk.hand("hello\n!sleep 60000").await;
    talk.until_text("#1 hello").await;
    assert!(wait(talk.running.stop(GRACE_MS)).await.gone);
    assert_eq!(on.left(&talk.tree), 0);
    assert!(matches!(talk.next().await, AgentEvent::Died { verified, .. } if verified.gone));
}

pub async fn stop_before_the_message_leaves_nothing(on: &dyn Candidate) {
    let mut talk = Talk::begin(on, 1, None).await;
    assert!(wait(talk.running.stop(0)).await.gone);
    assert_eq!(on.left(&talk.tree), 0);
}

pub async fn stop_twice_is_fine(on: &dyn Candidate) {
    let mut talk = Talk::ready(on, 1, None).await;
    talk.hand("!sleep 60000").await;
    let first = wait(talk.running.stop(GRACE_MS)).await;
    assert_eq!(wait(talk.running.stop(GRACE_MS)).await, first);
}

pub async fn stop_after_the_end_is_fine(on: &dyn Candidate) {
    let mut talk = Talk::ready(on, 1, None).await;
    talk.hand("hello").await;
    while !talk.next().await.is_last() {}
    assert!(wait(talk.running.stop(GRACE_MS)).await.gone);
    assert!(matches!(talk.next().await, AgentEvent::Died { .. }), "it is over");
}

pub async fn a_crash_is_a_death(on: &dyn Candidate) {
    let crashed = turn(on, "hello\n!crash").await;
    assert!(
        matches!(&crashed.last, AgentEvent::Died { verified, .. } if verified.gone),
        "{:?}",
        crashed.last
    );
    assert_eq!(crashed.text, "#1 hello", "what it said before is not lost");
    assert_eq!(on.left(&crashed.tree), 0);
    assert_eq!(crashed.and_then(on, "again").await.text, "#2 again");
}

pub async fn a_hanging_agent_can_be_stopped(on: &dyn Candidate) {
    let mut talk = Talk::ready(on, 1, None).await;
    talk.hand("hello\n!hang").await;
    talk.until_text("#1 hello\nhanging").await;
    let verified = wait(talk.running.stop(GRACE_MS)).await;
    assert!(verified.gone && verified.killed > 0, "{verified:?}");
    assert_eq!(on.left(&talk.tree), 0);
}

pub async fn a_flood_arrives_complete(on: &dyn Candidate) {
    let flooded = turn(on, &format!("!flood {FLOOD_BYTES}")).await;
    assert!(matches!(flooded.last, AgentEvent::Finished { .. }));
    let flood = flooded.text.strip_prefix("#1\n").expect("the answer comes first").as_bytes();
    assert_eq!(flood.len() as u64, FLOOD_BYTES);
    assert!(
        flood.iter().enumerate().all(|(at, byte)| *byte == flood_byte(at as u64)),
        "in order, nothing twice"
    );
}

/// A future of `next` that is polled once and dropped, over and over, loses no word.
pub async fn next_can_be_dropped(on: &dyn Candidate) {
    let mut talk = Talk::ready(on, 1, None).await;
    talk.hand("hello\n!say 300 3000\n!flood 200000").await;
    let mut text = String::new();
    let finished = wait(async {
        loop {
            match soon(0, talk.running.next()).await {
                Some(AgentEvent::Text { text: more }) => text.push_str(&more),
                Some(event) if event.is_last() => return event,
                Some(_) => {}
                None => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        }
    })
    .await;
    assert!(matches!(finished, AgentEvent::Finished { .. }));
    let words: Vec<String> = (1..=300).map(|word| format!("word{word}")).collect();
    let flood: String = (0..200_000).map(|at| char::from(flood_byte(at))).collect();
    assert_eq!(text, format!("#1 hello\n{}\n{flood}", words.join(" ")));
}

pub async fn a_dropped_attempt_can_be_buried(on: &dyn Candidate) {
    let mut talk = Talk::ready(on, 1, None).await;
    talk.hand("hello\n!sleep 60000").await;
    talk.until_text("#1 hello").await;
    let tree = talk.tree.clone();
    drop(talk);
    wait(on.agent().bury(tree.clone())).await.expect("it can be buried");
    assert_eq!(on.left(&tree), 0);
}

pub async fn burying_twice_or_nothing_is_fine(on: &dyn Candidate) {
    let ended = turn(on, "hello").await;
    let never = TreeName::of(on.session());
    for tree in [&ended.tree, &ended.tree, &never, &never] {
        assert_eq!(wait(on.agent().bury(tree.clone())).await.expect("nothing hinders it").killed, 0);
    }
}

pub async fn a_tree_runs_once_at_a_time(on: &dyn Candidate) {
    let mut talk = Talk::ready(on, 1, None).await;
    let again = wait(on.agent().start(talk.launch.clone())).await;
    assert_eq!(again.err().map(|trouble| trouble.failure), Some(Failure::Busy));
    talk.hand("hello").await;
    assert_eq!(talk.hear_out().await.text, "#1 hello", "the first one did not notice");
}

pub async fn a_message_too_long_is_refused(on: &dyn Candidate) {
    let mut talk = Talk::ready(on, 1, None).await;
    let text = "x".repeat(crate::MESSAGE_BYTES_MAX + 1);
    let refused = talk.running.hand(Message { id: talk.launch.message, text }).await;
    assert_eq!(refused.err().map(|trouble| trouble.failure), Some(Failure::Refused));
    wait(talk.running.stop(0)).await;
}

pub async fn it_acts_in_the_scopes_directory(on: &dyn Candidate) {
    assert_eq!(turn(on, "!pwd").await.text, format!("#1\n{}", on.directory().display()));
}

/// An attempt in the middle of its story.
struct Talk {
    running: Box<dyn Running>,
    launch: Launch,
    tree: TreeName,
    native: Option<Native>,
    text: String,
}

impl Talk {
    async fn begin(on: &dyn Candidate, turn: u32, native: Option<Native>) -> Self {
        Self::begin_in(on, on.session(), turn, native).await
    }

    async fn begin_in(on: &dyn Candidate, session: SessionId, turn: u32, native: Option<Native>) -> Self {
        let message = MessageId::from_bits(session.bits() + u128::from(turn));
        let launch = Launch { native, ..Launch::new(session, fence(turn), message, on.directory()) };
        let running = wait(on.agent().start(launch.clone())).await.expect("it can be started");
        let tree = launch.tree.clone();
        Self { running, tree, native: launch.native.clone(), launch, text: String::new() }
    }

    async fn ready(on: &dyn Candidate, turn: u32, native: Option<Native>) -> Self {
        let mut talk = Self::begin(on, turn, native).await;
        match talk.next().await {
            AgentEvent::Ready { native } => talk.native = native,
            other => panic!("not ready: {other:?}"),
        }
        talk
    }

    async fn next(&mut self) -> AgentEvent {
        let event = wait(self.running.next()).await;
        if let AgentEvent::Text { text } = &event {
            assert!(text.len() <= TEXT_BYTES_MAX);
            self.text.push_str(text);
        }
        event
    }

    async fn hand(&mut self, text: &str) {
        let message = Message { id: self.launch.message, text: text.to_owned() };
        wait(self.running.hand(message)).await.expect("it waits for this");
    }

    async fn until_text(&mut self, text: &str) {
        while self.text != text {
            let event = self.next().await;
            assert!(!event.is_last(), "ended with {event:?} before it said {text:?}");
        }
    }

    async fn asked(&mut self) -> String {
        loop {
            match self.next().await {
                AgentEvent::Asked { question, .. } => return question,
                event => assert!(!event.is_last(), "ended with {event:?} without asking"),
            }
        }
    }

    async fn hear_out(mut self) -> Ended {
        loop {
            let event = self.next().await;
            match &event {
                AgentEvent::Native(native) | AgentEvent::Ready { native: Some(native) } => {
                    self.native = Some(native.clone());
                }
                event if event.is_last() => break self.ended(event.clone()),
                _ => {}
            }
        }
    }

    fn ended(self, last: AgentEvent) -> Ended {
        let Launch { session, fence, .. } = self.launch;
        Ended { session, turn: fence.turn.0, tree: self.tree, native: self.native, text: self.text, last }
    }
}

/// A turn that is over.
struct Ended {
    session: SessionId,
    turn: u32,
    tree: TreeName,
    native: Option<Native>,
    text: String,
    last: AgentEvent,
}

impl Ended {
    fn failure(&self) -> Option<Failure> {
        if let AgentEvent::Failed(trouble) = &self.last { Some(trouble.failure) } else { None }
    }

    /// The next turn of the same conversation.
    async fn and_then(&self, on: &dyn Candidate, text: &str) -> Ended {
        whole(Talk::begin_in(on, self.session, self.turn + 1, self.native.clone()).await, text).await
    }
}

/// The first turn of a new conversation.
async fn turn(on: &dyn Candidate, text: &str) -> Ended {
    whole(Talk::begin(on, 1, None).await, text).await
}

async fn whole(mut talk: Talk, text: &str) -> Ended {
    match talk.next().await {
        AgentEvent::Ready { native } => talk.native = native,
        last if last.is_last() => return talk.ended(last),
        other => panic!("neither ready nor over: {other:?}"),
    }
    talk.hand(text).await;
    talk.hear_out().await
}

fn fence(turn: u32) -> Fence {
    Fence { term: Term(1), epoch: Epoch(1), turn: Turn(turn), attempt: Attempt(1) }
}

async fn wait<T>(reply: impl Future<Output = T>) -> T {
    soon(WAIT_MS_MAX, reply).await.expect("it takes too long")
}

async fn soon<T>(ms: u64, reply: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(Duration::from_millis(ms), reply).await.ok()
}
