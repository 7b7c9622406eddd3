//! `homing send`: say something to a session.

use std::io::{self, IsTerminal, Read};
use std::time::Duration;

use anyhow::{Context, Result};
use api::{Delivery, NewMessage, Receipt};

use crate::commands::stop::stop_message;
use crate::describe;
use crate::exit::{CliError, Exit};
use crate::follow::{FollowStep, Follower, conclude};
use crate::keyboard::Interrupts;
use crate::remote::{OrCliError, Remote};
use crate::target::{MakeArgs, TargetArgs};

/// The time for which a detached follower waits for a second Ctrl-C before it goes.
const SECOND_WAIT: Duration = Duration::from_secs(2);

/// Say something to a session
///
/// Prints the message's id as soon as the message is safe; use `--follow` to watch the turn. Without a target it goes to
/// the conversation of this directory in your terminals; the first message opens a session for it.
#[derive(clap::Args)]
pub(crate) struct SendArgs {
    /// The message; `-`, or nothing, reads standard input
    text: Vec<String>,
    /// Stay, and show the words as they come; Ctrl-C detaches, twice stops the turn
    #[arg(long, short)]
    follow: bool,
    /// Put it into the turn under way, if the agent takes words while it works; else it waits like any other
    #[arg(long, conflicts_with = "interrupt")]
    steer: bool,
    /// Stop the turn under way, then run this first
    #[arg(long)]
    interrupt: bool,
    /// Nobody is there to answer what the agent asks: rules decide, then the policy for that (`policy.unattended`)
    #[arg(long)]
    unattended: bool,
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    make: MakeArgs,
}

impl SendArgs {
    fn delivery(&self) -> Option<Delivery> {
        match (self.steer, self.interrupt) {
            (true, _) => Some(Delivery::Steer),
            (false, true) => Some(Delivery::Interrupt),
            (false, false) => None,
        }
    }
}

pub(crate) async fn send(args: SendArgs, remote: &Remote) -> Result<Exit> {
    let text = words_of(&args.text)?;
    let target = args.target.resolve(&args.make, remote).await?;
    let message = NewMessage::text(target.to.clone(), text).delivered(args.delivery(), None);
    let message = message.left_alone(args.unattended);
    let receipt = remote.client.say(&message).await.or_cli_error()?;
    target.announce(&receipt, remote);
    if args.follow {
        return watch(remote, &receipt).await;
    }
    if remote.screen.json {
        remote.screen.object(&receipt)?;
    } else {
        remote.screen.line(&receipt.id)?;
        remote.screen.progress(format!(
            "{}; `homing show {}` has the answer once there is one",
            describe::standing(&receipt),
            receipt.id
        ));
    }
    Ok(Exit::Done)
}

/// The text from the arguments, or what is piped in.
fn words_of(arguments: &[String]) -> Result<String> {
    let mut text = arguments.join(" ");
    if arguments == ["-"] || (arguments.is_empty() && !io::stdin().is_terminal()) {
        text.clear();
        io::stdin().read_to_string(&mut text).context("standard input")?;
    }
    if text.trim().is_empty() {
        return Err(CliError::new(Exit::Usage, "there is nothing to say")
            .hint("homing send \"your message\", or `homing chat` for a conversation")
            .into());
    }
    Ok(text.trim_end_matches(['\n', '\r']).to_owned())
}

async fn watch(remote: &Remote, receipt: &Receipt) -> Result<Exit> {
    let mut interrupts = Interrupts::listen()?;
    let mut follower = Follower::begin(remote, receipt).await?;
    loop {
        let step = tokio::select! {
            step = follower.step() => step?,
            () = interrupts.next() => {
                follower.leave_line()?;
                return leave(remote, receipt, &mut interrupts).await;
            }
        };
        match step {
            FollowStep::On => {}
            FollowStep::Question(asked) => {
                remote.screen.say(asked.words());
                remote.screen.say(asked.how());
            }
            FollowStep::Over(receipt) => return conclude(&receipt, remote.screen),
        }
    }
}

/// Ctrl-C once detaches and says how to stop; twice stops.
async fn leave(remote: &Remote, receipt: &Receipt, interrupts: &mut Interrupts) -> Result<Exit> {
    remote.screen.say("detached: the turn goes on. Ctrl-C again stops it");
    if tokio::time::timeout(SECOND_WAIT, interrupts.next()).await.is_ok() {
        let stopped = stop_message(remote, &receipt.id).await?;
        remote.screen.say(stopped.words());
        if remote.screen.json {
            remote.screen.object(&stopped.receipt)?;
        }
        return Ok(Exit::Failed);
    }
    remote.screen.say(format!("later: homing stop {}", receipt.id));
    Ok(Exit::Detached)
}
