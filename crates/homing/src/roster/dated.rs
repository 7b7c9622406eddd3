//! One attempt of a program that may be older than any that was tried: what fails before it is ready is then *refused*, with how
//! to update it, because trying the same program again would fail again.
//!
//! Its version is asked for only when it has failed, so a start that goes well costs nothing more.

use std::sync::Arc;

use agent::{
    Agent, AgentEvent, Message, Presence, QuestionAnswer, Reply, Running, Steered, TreeEnd, Trouble,
};
use kernel::Failure;

/// An attempt, and the driver that knows which versions were tried.
pub(super) struct DatedAttempt {
    running: Box<dyn Running>,
    driver: Arc<dyn Agent>,
    stage: AttemptStage,
    /// A failure whose cause is being looked for. It is kept here, so that a dropped future does not lose it.
    failed: Option<AgentEvent>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AttemptStage {
    Starting,
    /// It speaks as it should. What fails from now on is its own affair.
    Ready,
    /// Somebody ended it: no failure of its own.
    Stopped,
}

impl DatedAttempt {
    pub(super) fn new(running: Box<dyn Running>, driver: Arc<dyn Agent>) -> Self {
        Self { running, driver, stage: AttemptStage::Starting, failed: None }
    }

    async fn next_event(&mut self) -> AgentEvent {
        if self.failed.is_none() {
            let event = self.running.next().await;
            if matches!(event, AgentEvent::Ready { .. }) {
                self.stage = AttemptStage::Ready;
            }
            if self.stage != AttemptStage::Starting || !may_be_due_to_age(&event) {
                return event;
            }
            self.failed = Some(event);
        }
        let old = too_old(self.driver.as_ref()).await;
        let failed = self.failed.take().expect("it was put there above, and nothing else takes it");
        match (old, failed) {
            (Some(old), AgentEvent::Failed(trouble)) => AgentEvent::Failed(refused(&trouble.detail, &old)),
            (Some(old), AgentEvent::Died { detail, .. }) => AgentEvent::Failed(refused(&detail, &old)),
            (_, failed) => failed,
        }
    }
}

/// A start that failed as it may pass, of a driver that knows which versions were tried.
pub(super) async fn explained(trouble: Trouble, driver: &dyn Agent) -> Trouble {
    if trouble.failure != Failure::Transient {
        return trouble;
    }
    match too_old(driver).await {
        Some(old) => refused(&trouble.detail, &old),
        None => trouble,
    }
}

fn may_be_due_to_age(event: &AgentEvent) -> bool {
    match event {
        AgentEvent::Failed(trouble) => trouble.failure == Failure::Transient,
        // What could not be ended has to be told as such.
        AgentEvent::Died { verified, .. } => verified.gone,
        _ => false,
    }
}

/// The words about the program, if it is older than any that was tried.
async fn too_old(driver: &dyn Agent) -> Option<String> {
    let tried = driver.setup().tried?;
    match driver.look().await {
        Presence::Here { version } => tried.too_old(&version),
        Presence::Missing { .. } => None,
    }
}

fn refused(detail: &str, old: &str) -> Trouble {
    Trouble::refused(format!("{}\nThis program is older than any that was tried: {old}", detail.trim_end()))
}

impl Running for DatedAttempt {
    fn next(&mut self) -> Reply<'_, AgentEvent> {
        Box::pin(self.next_event())
    }

    fn hand(&mut self, message: Message) -> Reply<'_, Result<(), Trouble>> {
        self.running.hand(message)
    }

    fn steer(&mut self, message: Message) -> Reply<'_, Result<Steered, Trouble>> {
        self.running.steer(message)
    }

    fn answer(&mut self, question: &str, answer: QuestionAnswer) -> Reply<'_, Result<(), Trouble>> {
        self.running.answer(question, answer)
    }

    fn stop(&mut self, grace_ms: u64) -> Reply<'_, TreeEnd> {
        if self.stage == AttemptStage::Starting {
            self.stage = AttemptStage::Stopped;
        }
        self.running.stop(grace_ms)
    }
}
