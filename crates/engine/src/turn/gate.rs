//! Keeps the words of a message back until they may go: the agent is up, the directory has been looked at, and, if they may
//! be a command, the agent has listed its commands. Each of these has an end.

use super::AttemptOptions;
use crate::changes::TreeBefore;
use agent::AgentEvent;
use kernel::Native;
use std::pin::{Pin, pin};
use std::time::Duration;
use tokio::time::Instant;

/// The look that goes on, or what it saw.
enum Look {
    Going(Pin<Box<dyn Future<Output = TreeBefore> + Send>>),
    Over(TreeBefore),
}

/// The state of the agent's coming up.
enum Up {
    NotYet,
    /// It is, in this conversation, since then.
    Since(Instant, Option<Native>),
    /// It is, and the words were let through.
    LetThrough,
}

pub(super) struct ReadyGate {
    look: Look,
    up: Up,
    /// The time for which the words wait for the list of commands; none when it has come, or is not waited for.
    commands_wait: Option<Duration>,
    is_late: bool,
}

impl ReadyGate {
    pub(super) fn new(options: &AttemptOptions) -> Self {
        let look = match options.snapshots.clone() {
            Some(snapshots) => Look::Going(Box::pin(snapshots.before())),
            None => Look::Over(TreeBefore::NoTree),
        };
        Self { look, up: Up::NotYet, commands_wait: options.commands_wait, is_late: false }
    }

    /// Does something while the directory is looked at.
    pub(super) async fn beside<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = self.looked() => {}
        }
        work.await
    }

    /// Takes note of what the agent says.
    pub(super) fn hear(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::Ready { native } if matches!(self.up, Up::NotYet) => {
                self.up = Up::Since(Instant::now(), native.clone());
            }
            AgentEvent::About(about) if !about.commands.is_empty() => self.commands_wait = None,
            _ => {}
        }
    }

    /// Waits until the words may go; answers once, in which conversation. Cancel-safe.
    pub(super) async fn opened(&mut self) -> Option<Native> {
        let Up::Since(since, native) = &self.up else { return std::future::pending().await };
        let (since, native) = (*since, native.clone());
        self.looked().await;
        if let Some(wait) = self.commands_wait {
            tokio::time::sleep_until(since + wait).await;
            self.is_late = true;
        }
        self.up = Up::LetThrough;
        native
    }

    async fn looked(&mut self) {
        if let Look::Going(look) = &mut self.look {
            self.look = Look::Over(look.await);
        }
    }

    pub(super) fn before(&self) -> &TreeBefore {
        match &self.look {
            Look::Going(_) => &TreeBefore::NoTree,
            Look::Over(before) => before,
        }
    }

    pub(super) fn saw_tree(&self) -> bool {
        *self.before() == TreeBefore::Tree
    }

    /// Notices for people about what was waited for.
    pub(super) fn notices(&self) -> Vec<String> {
        let unseen = match self.before() {
            TreeBefore::Unseen(why) => Some(why.clone()),
            TreeBefore::Tree | TreeBefore::NoTree => None,
        };
        let late = "the agent did not list its commands in time: if this was one, it may be taken for words";
        unseen.into_iter().chain(self.is_late.then(|| late.to_owned())).collect()
    }
}
