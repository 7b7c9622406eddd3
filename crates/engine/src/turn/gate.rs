//! Keeps the words of a message back until they may go: the agent is up, the directory has been looked at, and, if they may
//! be a command, the agent has listed its commands. Each of these has an end.

use super::AttemptOptions;
use crate::changes::TreeBefore;
use crate::slash_command::{is_listed, unknown_command};
use agent::{AgentEvent, Choice};
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

/// The command that the words may begin with.
#[derive(Debug, Clone)]
pub(crate) struct AwaitedCommand {
    /// Its name, without the slash.
    pub(crate) name: String,
    /// The commands that the agent has listed in this scope before; may be none.
    pub(crate) listed: Vec<Choice>,
    /// The longest that the words wait for the list.
    pub(crate) wait: Duration,
}

/// The state of the words that may be a command.
enum CommandState {
    /// They are none, or one that the agent has listed.
    Fine,
    /// They wait for the list.
    Awaited(AwaitedCommand),
    /// The agent has listed others.
    Unknown { name: String, refusal: String },
}

pub(super) struct ReadyGate {
    look: Look,
    up: Up,
    command: CommandState,
    is_late: bool,
}

impl ReadyGate {
    pub(super) fn new(options: &AttemptOptions) -> Self {
        let look = match options.snapshots.clone() {
            Some(snapshots) => Look::Going(Box::pin(snapshots.before())),
            None => Look::Over(TreeBefore::NoTree),
        };
        let command = options.command.clone().map_or(CommandState::Fine, CommandState::Awaited);
        Self { look, up: Up::NotYet, command, is_late: false }
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
            AgentEvent::About(about) if !about.commands.is_empty() => self.judge(&about.commands),
            _ => {}
        }
    }

    /// Judges the command by a list of the agent's. Some list again when they know more.
    fn judge(&mut self, listed: &[Choice]) {
        let (CommandState::Awaited(AwaitedCommand { name, .. }) | CommandState::Unknown { name, .. }) =
            &self.command
        else {
            return;
        };
        self.command = match is_listed(name, listed) {
            true => CommandState::Fine,
            false => CommandState::Unknown { name: name.clone(), refusal: unknown_command(name, listed) },
        };
    }

    /// Waits until the words may go; answers once, in which conversation, or why they may not. Cancel-safe.
    pub(super) async fn opened(&mut self) -> Result<Option<Native>, String> {
        let Up::Since(since, native) = &self.up else { return std::future::pending().await };
        let (since, native) = (*since, native.clone());
        self.looked().await;
        if let CommandState::Awaited(AwaitedCommand { wait, listed, .. }) = &self.command {
            tokio::time::sleep_until(since + *wait).await;
            let listed = listed.clone();
            self.is_late = listed.is_empty();
            if !listed.is_empty() {
                self.judge(&listed);
            }
        }
        self.up = Up::LetThrough;
        match &self.command {
            CommandState::Fine | CommandState::Awaited(_) => Ok(native),
            CommandState::Unknown { refusal, .. } => Err(refusal.clone()),
        }
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
