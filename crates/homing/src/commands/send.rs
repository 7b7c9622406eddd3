//! `homing send`: say something to a session.

use std::io::{self, IsTerminal, Read};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use api::{Delivery, NewMessage, Receipt, SayParts};

use crate::commands::stop::stop_message;
use crate::exit::{CliError, Exit};
use crate::follow::{FollowStep, Follower, OpenApproval, answered_elsewhere, conclude};
use crate::here::quoted;
use crate::keyboard::Interrupts;
use crate::line_editor::{self, LineEditor, Typed};
use crate::remote::Remote;
use crate::target::{MakeArgs, TargetArgs};
use crate::{answering, attached, describe, names, notify};

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
    /// Send this file along, an image, a text or any other that the agent takes; may be said several times
    #[arg(long, value_name = "FILE")]
    attach: Vec<PathBuf>,
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    make: MakeArgs,
}

impl SendArgs {
    /// Refuses what cannot be meant, before a server is looked for or started.
    pub(crate) fn check(&self) -> Result<()> {
        match self.text.as_slice() {
            [] if self.attach.is_empty() && io::stdin().is_terminal() => Err(nothing_to_say().into()),
            [name, words @ ..]
                if !words.is_empty() && is_name_of_session(name) && !self.target.names_session() =>
            {
                let what =
                    format!("{name} names a session, and stands where the words begin; nothing was said");
                let words = words.join(" ");
                let hint = format!(
                    "`homing send -s {name} {}` says the rest to that session; between quotes it is words, too: `homing send {}`",
                    quoted(&words),
                    quoted(&format!("{name} {words}"))
                );
                Err(CliError::new(Exit::Usage, what).hint(hint).into())
            }
            _ => Ok(()),
        }
    }

    fn delivery(&self) -> Option<Delivery> {
        match (self.steer, self.interrupt) {
            (true, _) => Some(Delivery::Steer),
            (false, true) => Some(Delivery::Interrupt),
            (false, false) => None,
        }
    }
}

pub(crate) async fn send(args: SendArgs, remote: &Remote) -> Result<Exit> {
    let text = words_of(&args.text, !args.attach.is_empty())?;
    let parts = attached::parts(text, &args.attach)?;
    let target = args.target.resolve(&args.make, remote).await?;
    let (to, delivery, unattended) = (target.to.clone(), args.delivery(), args.unattended);
    let message = NewMessage::Parts(SayParts { to, parts, delivery, under: None, unattended });
    let receipt = target.say(&message, remote).await?;
    target.announce(&receipt, remote);
    if let Some(hint) = &receipt.hint {
        remote.screen.say(names::said(hint, remote));
    }
    if args.follow {
        return watch(remote, &receipt).await;
    }
    if remote.screen.json {
        remote.screen.object(&receipt)?;
    } else {
        remote.screen.line(names::printed(&receipt.id, remote))?;
        let standing = describe::standing(&receipt);
        let words = format!("{standing}; `homing show {}` has the answer once there is one", receipt.id);
        remote.screen.progress(names::said(&words, remote));
    }
    Ok(Exit::Done)
}

/// The text from the arguments, or what is piped in. A file may go without a word.
fn words_of(arguments: &[String], has_files: bool) -> Result<String> {
    let mut text = arguments.join(" ");
    if arguments == ["-"] || (arguments.is_empty() && !io::stdin().is_terminal()) {
        text.clear();
        io::stdin().read_to_string(&mut text).context("standard input")?;
    }
    if text.trim().is_empty() && !has_files {
        return Err(nothing_to_say().into());
    }
    Ok(text.trim_end_matches(['\n', '\r']).to_owned())
}

fn nothing_to_say() -> CliError {
    CliError::new(Exit::Usage, "there is nothing to say")
        .hint("`homing send \"your message\"` says something, `homing chat` begins a conversation")
}

/// True of what names a session in other commands and would be the first word of a message here: a line of a list, or `-`.
fn is_name_of_session(word: &str) -> bool {
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    word == "-" || word.strip_prefix('@').is_some_and(is_number)
}

async fn watch(remote: &Remote, receipt: &Receipt) -> Result<Exit> {
    // Where somebody looks on and can type, questions are answered in place.
    let prompted = line_editor::is_possible(remote.screen).then(|| remote.screen.with_area());
    let (screen, area) = prompted.map_or((remote.screen, None), |(screen, area)| (screen, Some(area)));
    let remote = &Remote { screen, ..remote.clone() };
    let (began, mut interrupts) = (Instant::now(), Interrupts::listen()?);
    let mut follower = Follower::begin(remote, receipt).await?;
    let mut question: Option<(OpenApproval, LineEditor)> = None;
    loop {
        tokio::select! {
            step = follower.step() => match step? {
                FollowStep::On => {}
                FollowStep::Settled(by_person) => {
                    // Whoever answered here has seen it.
                    if let (Some(_), Some(answer)) = (question.take(), by_person) {
                        remote.screen.say(answered_elsewhere(&answer));
                    }
                }
                FollowStep::Question(asked) => {
                    remote.screen.say(asked.words());
                    notify::agent_asks(&asked, remote);
                    question = match area {
                        Some(area) => {
                            let mut editor = LineEditor::begin(area, "")?;
                            answering::ask(&asked, &mut editor)?;
                            Some((asked, editor))
                        }
                        None => {
                            remote.screen.say(names::said(&asked.how(), remote));
                            None
                        }
                    };
                }
                FollowStep::Over(receipt) => {
                    drop(question);
                    notify::turn_is_over(&receipt, began.elapsed(), remote);
                    return conclude(&receipt, remote);
                }
            },
            typed = next_typed(&mut question) => {
                let words = match typed? {
                    Typed::Interrupt | Typed::Leave => {
                        let asked = question.take().map(|(asked, _)| asked);
                        return leave(&mut follower, asked, remote, receipt, &mut interrupts).await;
                    }
                    Typed::Unfold => continue,
                    Typed::Answer(key) => key.to_string(),
                    Typed::Said(text) => text,
                };
                if let Some((asked, editor)) = question.take() {
                    remote.screen.say(format!("> {words}"));
                    let is_settled = answering::answer(&asked, &words, remote).await?;
                    question = Some((asked, editor)).filter(|_| !is_settled);
                }
            }
            () = interrupts.next() => {
                let asked = question.take().map(|(asked, _)| asked);
                return leave(&mut follower, asked, remote, receipt, &mut interrupts).await;
            }
        }
    }
}

/// The next word or key while a question is open. Without one the keyboard is the shell's.
async fn next_typed(question: &mut Option<(OpenApproval, LineEditor)>) -> Result<Typed> {
    match question {
        Some((_, editor)) => editor.next().await,
        None => std::future::pending().await,
    }
}

/// Ctrl-C once detaches and says how to answer what is asked, and how to stop; twice stops.
async fn leave(
    follower: &mut Follower<'_>,
    asked: Option<OpenApproval>,
    remote: &Remote,
    receipt: &Receipt,
    interrupts: &mut Interrupts,
) -> Result<Exit> {
    follower.leave_line()?;
    if follower.is_away {
        let words = format!(
            "left while the server is away; once it is back, `homing show {}` says what came of this",
            receipt.id
        );
        remote.screen.say(names::said(&words, remote));
        return Ok(Exit::Detached);
    }
    remote.screen.say(match asked {
        Some(_) => "detached: the turn waits for an answer. Ctrl-C again stops it",
        None => "detached: the turn goes on. Ctrl-C again stops it",
    });
    if tokio::time::timeout(SECOND_WAIT, interrupts.next()).await.is_ok() {
        let stopped = stop_message(remote, &receipt.id).await?;
        remote.screen.say(stopped.words());
        if remote.screen.json {
            remote.screen.object(&stopped.receipt)?;
        }
        return Ok(Exit::Failed);
    }
    if let Some(asked) = asked {
        remote.screen.say(names::said(&asked.how(), remote));
    }
    remote.screen.say(names::said(&format!("to stop it later: `homing stop {}`", receipt.id), remote));
    Ok(Exit::Detached)
}
