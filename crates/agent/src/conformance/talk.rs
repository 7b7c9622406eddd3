//! One attempt in the middle of its story, and what is left to say of it afterwards. Every wait is bounded.

use std::future::Future;
use std::time::Duration;

use kernel::{Attempt, Epoch, Failure, Fence, MessageId, Native, SessionId, Term, Turn};

use super::{Candidate, Cannot, Wish};
use crate::{
    AgentEvent, Form, Launch, Message, QuestionAnswer, Reply, Running, TEXT_BYTES_MAX, TreeEnd, TreeName,
    Trouble,
};

/// The polite part of a stop. Short, because some stories make it wait in vain.
pub(super) const GRACE_MS: u64 = 200;
/// The polite part of a stop that has to be heeded.
pub(super) const LONG_GRACE_MS: u64 = 10_000;

pub(super) struct Talk<'a> {
    pub(super) on: &'a dyn Candidate,
    pub(super) running: Box<dyn Running>,
    pub(super) launch: Launch,
    pub(super) native: Option<Native>,
    pub(super) text: String,
    /// Everything since the start, words included.
    pub(super) events: Vec<AgentEvent>,
    /// The number of them when the message was handed over.
    handed_at: usize,
}

impl<'a> Talk<'a> {
    /// The first attempt of a new session.
    pub(super) async fn begin(on: &'a dyn Candidate, native: Option<Native>) -> Self {
        Self::begin_in(on, on.session(), 1, native).await
    }

    pub(super) async fn begin_in(
        on: &'a dyn Candidate,
        session: SessionId,
        turn: u32,
        native: Option<Native>,
    ) -> Self {
        Self::begin_with(on, Launch { native, ..Self::launch(on, session, turn) }).await
    }

    /// The launch of that turn, in a new conversation.
    pub(super) fn launch(on: &dyn Candidate, session: SessionId, turn: u32) -> Launch {
        let message = MessageId::from_bits(session.bits() + u128::from(turn));
        Launch::new(session, fence(turn), message, on.directory())
    }

    pub(super) async fn begin_with(on: &'a dyn Candidate, launch: Launch) -> Self {
        let running = match wait(on, on.agent().start(launch.clone())).await {
            Ok(running) => running,
            Err(trouble) => Box::new(NeverStarted(Some(trouble))),
        };
        let native = launch.native.clone();
        Self { on, running, native, launch, text: String::new(), events: Vec::new(), handed_at: 0 }
    }

    /// The first attempt of a new session, ready for its message.
    pub(super) async fn ready(on: &'a dyn Candidate) -> Self {
        let mut talk = Self::begin(on, None).await;
        talk.be_ready().await;
        talk
    }

    pub(super) async fn be_ready(&mut self) {
        if let Some(last) = self.ready_or_over().await {
            panic!("not ready: {last:?}");
        }
    }

    /// Waits until it is ready; answers its last word if it never will be.
    async fn ready_or_over(&mut self) -> Option<AgentEvent> {
        loop {
            match self.next().await {
                AgentEvent::Ready { .. } => return None,
                last if last.is_last() => return Some(last),
                AgentEvent::Text { text } => panic!("it said {text:?} before it was asked"),
                _ => {}
            }
        }
    }

    pub(super) async fn next(&mut self) -> AgentEvent {
        let event = wait(self.on, self.running.next()).await;
        self.heed(&event);
        event
    }

    pub(super) fn heed(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::Text { text } => {
                assert!(text.len() <= TEXT_BYTES_MAX);
                self.text.push_str(text);
            }
            AgentEvent::Native(native)
            | AgentEvent::Ready { native: Some(native) }
            | AgentEvent::Finished { native: Some(native), .. } => self.native = Some(native.clone()),
            _ => {}
        }
        self.events.push(event.clone());
    }

    pub(super) async fn hand(&mut self, wishes: &[Wish<'_>]) -> Result<(), Cannot> {
        let text = self.on.dialect().phrase(wishes)?;
        self.hand_text(text).await;
        Ok(())
    }

    pub(super) async fn hand_text(&mut self, text: String) {
        self.handed_at = self.events.len();
        let message = Message::new(self.launch.message, text);
        wait(self.on, self.running.hand(message)).await.expect("it waits for this");
    }

    /// Until it has begun to speak.
    pub(super) async fn until_it_speaks(&mut self) {
        self.until(|talk| !talk.text.trim().is_empty()).await;
    }

    /// Until this is so. Questions are answered with yes.
    pub(super) async fn until(&mut self, is_so: impl Fn(&Self) -> bool) {
        while !is_so(self) {
            let event = self.next().await;
            assert!(!event.is_last(), "ended with {event:?} after {:?}", self.text);
            self.allow(&event).await;
        }
    }

    pub(super) async fn asked(&mut self) -> String {
        self.asked_how().await.0
    }

    /// Its question, and which answers fit.
    pub(super) async fn asked_how(&mut self) -> (String, Form) {
        loop {
            match self.next().await {
                AgentEvent::Asked { question, form, .. } => return (question, form),
                event => assert!(!event.is_last(), "ended with {event:?} without asking"),
            }
        }
    }

    pub(super) async fn allow(&mut self, event: &AgentEvent) {
        if let AgentEvent::Asked { question, .. } = event {
            self.answer(question, QuestionAnswer::Allow).await;
        }
    }

    pub(super) async fn answer(&mut self, question: &str, answer: QuestionAnswer) {
        wait(self.on, self.running.answer(question, answer)).await.expect("it waits for this");
    }

    /// To the end. Questions are answered with yes.
    pub(super) async fn hear_out(mut self) -> Ended {
        loop {
            let event = self.next().await;
            if event.is_last() {
                return self.ended(event);
            }
            self.allow(&event).await;
        }
    }

    /// The end after a stop that was polite for so long: whether the whole tree is gone, and what was said until then.
    pub(super) async fn stop(mut self, grace_ms: u64) -> Ended {
        let verified = wait(self.on, self.running.stop(grace_ms)).await;
        assert!(verified.gone, "{verified:?}");
        self.on.assert_nothing_left(&self.launch.tree);
        self.hear_out().await
    }

    pub(super) fn ended(self, last: AgentEvent) -> Ended {
        let Launch { session, fence, tree, .. } = self.launch;
        let said = self.events.into_iter().skip(self.handed_at).collect();
        Ended { session, turn: fence.turn.0, tree, native: self.native, text: self.text, said, last }
    }

    /// The whole turn. Ends early if it never gets ready.
    pub(super) async fn whole_text(mut self, text: String) -> Ended {
        if let Some(last) = self.ready_or_over().await {
            return self.ended(last);
        }
        self.hand_text(text).await;
        self.hear_out().await
    }
}

/// An attempt whose driver knew at once that it would fail.
struct NeverStarted(Option<Trouble>);

impl Running for NeverStarted {
    fn next(&mut self) -> Reply<'_, AgentEvent> {
        let verified = TreeEnd { killed: 0, gone: true };
        let died = AgentEvent::Died { detail: "it was never started".to_owned(), verified };
        let event = self.0.take().map_or(died, AgentEvent::Failed);
        Box::pin(async { event })
    }

    fn hand(&mut self, _message: Message) -> Reply<'_, Result<(), Trouble>> {
        Box::pin(async { Err(Trouble::transient("it was never started")) })
    }

    fn answer(&mut self, _question: &str, _answer: QuestionAnswer) -> Reply<'_, Result<(), Trouble>> {
        Box::pin(async { Ok(()) })
    }

    fn stop(&mut self, _grace_ms: u64) -> Reply<'_, TreeEnd> {
        Box::pin(async { TreeEnd { killed: 0, gone: true } })
    }
}

/// A turn that is over.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) session: SessionId,
    pub(super) turn: u32,
    pub(super) tree: TreeName,
    pub(super) native: Option<Native>,
    pub(super) text: String,
    /// Everything since the message was handed over, the last word included.
    pub(super) said: Vec<AgentEvent>,
    pub(super) last: AgentEvent,
}

impl Ended {
    pub(super) fn failure(&self) -> Option<Failure> {
        if let AgentEvent::Failed(trouble) = &self.last { Some(trouble.failure) } else { None }
    }

    #[track_caller]
    pub(super) fn assert_finished(&self) {
        assert!(matches!(self.last, AgentEvent::Finished { .. }), "{:?} after {:?}", self.last, self.text);
    }

    /// In a word, for the table.
    pub(super) fn outcome(&self) -> String {
        match &self.last {
            AgentEvent::Failed(trouble) => format!("{:?}", trouble.failure),
            AgentEvent::Finished { .. } => "Finished".to_owned(),
            _ => "Died".to_owned(),
        }
    }

    /// The next turn of the same conversation, about to begin.
    pub(super) async fn go_on<'a>(&self, on: &'a dyn Candidate) -> Talk<'a> {
        Talk::begin_in(on, self.session, self.turn + 1, self.native.clone()).await
    }

    /// The next turn of the same conversation.
    pub(super) async fn and_then(&self, on: &dyn Candidate, wishes: &[Wish<'_>]) -> Result<Ended, Cannot> {
        let text = on.dialect().phrase(wishes)?;
        Ok(self.go_on(on).await.whole_text(text).await)
    }

    /// The words it recalls in the next turn.
    pub(super) async fn recall(&self, on: &dyn Candidate) -> Result<Vec<String>, Cannot> {
        let ended = self.and_then(on, &[Wish::Recall]).await?;
        ended.assert_finished();
        Ok(on.dialect().recalled(&ended.text))
    }

    /// This word, which was the first to be kept, is known in a new process. An agent that is known to forget says Gone there, so
    /// that somebody tells it again: it never goes on as if nothing had been said.
    pub(super) async fn assert_still_known(&self, on: &dyn Candidate, word: &str) -> Result<(), Cannot> {
        if on.agent().abilities().forgets {
            let again = self.and_then(on, &[Wish::Recall]).await?;
            assert_eq!(again.failure(), Some(Failure::Gone), "{:?}", again.last);
            return Ok(());
        }
        let recalled = self.recall(on).await?;
        assert_eq!(recalled.first().map(String::as_str), Some(word), "{recalled:?}");
        Ok(())
    }

    /// Ends the process that is kept for this session, if one is, and looks that it is gone.
    pub(super) async fn release(&self, on: &dyn Candidate) {
        wait(on, on.agent().release(self.session)).await;
        on.assert_nothing_left(&self.tree);
    }
}

/// The first turn of a new conversation.
pub(super) async fn turn(on: &dyn Candidate, wishes: &[Wish<'_>]) -> Result<Ended, Cannot> {
    turn_of(on, None, wishes).await
}

/// The first turn of a new session with a conversation that exists, or does not.
pub(super) async fn turn_of(
    on: &dyn Candidate,
    native: Option<Native>,
    wishes: &[Wish<'_>],
) -> Result<Ended, Cannot> {
    // Before anything is started: a wish that is not granted should leave nothing running.
    let text = on.dialect().phrase(wishes)?;
    Ok(Talk::begin(on, native).await.whole_text(text).await)
}

/// Stories of which nothing is to be seen where no other process ever goes on with a conversation.
pub(super) fn goes_on_elsewhere(on: &dyn Candidate) -> Result<(), Cannot> {
    match on.agent().abilities().forgets {
        true => Err(Cannot::because("a new process begins anew and is told again what was said")),
        false => Ok(()),
    }
}

impl dyn Candidate + '_ {
    #[track_caller]
    pub(super) fn assert_nothing_left(&self, tree: &TreeName) {
        assert_eq!(self.left(tree), 0, "processes left of {tree}");
    }
}

pub(super) async fn wait<T>(on: &dyn Candidate, reply: impl Future<Output = T>) -> T {
    soon(on.patience_ms(), reply).await.expect("it takes too long")
}

pub(super) async fn soon<T>(ms: u64, reply: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(Duration::from_millis(ms), reply).await.ok()
}

fn fence(turn: u32) -> Fence {
    Fence { term: Term(1), epoch: Epoch(1), turn: Turn(turn), attempt: Attempt(1) }
}
