//! `homing chat`: a conversation in the terminal, line by line.
//!
//! What is typed is sent at once, also while a turn runs: it waits in the session's queue, not here. Answers are shown
//! in order. There is nothing in this process that could be lost. A file or a pipe is read one line per turn.

use std::collections::VecDeque;

use anyhow::Result;
use api::client::ClientError;
use api::{Answer, Code, Explained, NewMessage, QuestionForm, Receipt, To};

use crate::commands::stop::stop_message;
use crate::exit::{CliError, Exit};
use crate::follow::{FollowStep, Follower, OpenApproval, conclude};
use crate::keyboard::{Interrupts, TypedMessages};
use crate::remote::{OrCliError, Remote};
use crate::target::{MakeArgs, Target, TargetArgs};

/// Talk to a session, line by line
///
/// Shows the words as they come. Pasted lines stay together. What you type while a turn runs waits in the session's
/// queue. Ctrl-C says how to stop the turn, and stops it the second time; Ctrl-D leaves.
#[derive(clap::Args)]
pub(crate) struct ChatArgs {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    make: MakeArgs,
}

pub(crate) async fn chat(args: ChatArgs, remote: &Remote) -> Result<Exit> {
    let target = args.target.resolve(&args.make, remote).await?;
    greet(&args.target, remote).await?;
    let mut talk = ChatLoop {
        remote,
        target,
        typed: TypedMessages::start(),
        interrupts: Interrupts::listen()?,
        waiting: VecDeque::new(),
        session: None,
        exit: Exit::Done,
    };
    talk.until_the_end().await
}

/// Says beforehand where the words will go; a session that cannot be talked to is refused before anything is typed.
async fn greet(target: &TargetArgs, remote: &Remote) -> Result<()> {
    match remote.client.explain(&target.query(remote).await?).await.or_cli_error()? {
        Explained::Existing { session, .. } => {
            remote.screen.progress(format!("{} ({} in {})", session.id, session.agent, session.directory));
        }
        Explained::New { .. } => remote.screen.progress("the first message opens a new session"),
        Explained::Refused { why, code, .. } => {
            let exit = if code == api::Code::NotFound { Exit::NotFound } else { Exit::Failed };
            return Err(CliError::new(exit, why)
                .hint("`homing ls` lists your sessions; --new makes one")
                .into());
        }
    }
    remote.screen.progress("Ctrl-D leaves");
    Ok(())
}

struct ChatLoop<'a> {
    remote: &'a Remote,
    target: Target,
    typed: TypedMessages,
    interrupts: Interrupts,
    /// Said, and not answered yet.
    waiting: VecDeque<Receipt>,
    /// Where the last message went, so that a change is told.
    session: Option<String>,
    exit: Exit,
}

/// The next step of the conversation: on, or away.
#[derive(PartialEq, Eq)]
enum ChatStep {
    Continue,
    Leave,
}

impl ChatLoop<'_> {
    async fn until_the_end(&mut self) -> Result<Exit> {
        loop {
            let go = match self.waiting.pop_front() {
                Some(receipt) => self.watch(receipt).await?,
                None => self.hear().await?,
            };
            if go == ChatStep::Leave {
                return Ok(self.exit);
            }
        }
    }

    /// Waits for something to be typed.
    async fn hear(&mut self) -> Result<ChatStep> {
        self.prompt()?;
        let typed = tokio::select! {
            typed = self.typed.next() => typed,
            () = self.interrupts.next() => None,
        };
        match typed {
            Some(text) => self.say(text).await,
            None => {
                if self.typed.by_hand {
                    self.remote.screen.say("");
                }
                Ok(ChatStep::Leave)
            }
        }
    }

    fn prompt(&self) -> Result<()> {
        if self.typed.by_hand && self.remote.screen.out_is_terminal && !self.remote.screen.json {
            self.remote.screen.piece("> ")?;
        }
        Ok(())
    }

    async fn say(&mut self, text: String) -> Result<ChatStep> {
        let receipt =
            self.remote.client.say(&NewMessage::text(self.target.to.clone(), text)).await.or_cli_error()?;
        if self.session.as_ref() != Some(&receipt.session) {
            self.target.announce(&receipt, self.remote);
            self.session = Some(receipt.session.clone());
        }
        // A new session was asked for once, and here it is.
        if matches!(self.target.to, To::New(_)) {
            self.target.to = To::session(&receipt.session);
        }
        self.waiting.push_back(receipt);
        Ok(ChatStep::Continue)
    }

    /// Shows one turn, and takes what is typed meanwhile.
    async fn watch(&mut self, receipt: Receipt) -> Result<ChatStep> {
        let mut follower = Follower::begin(self.remote, &receipt).await?;
        let (mut warned, mut question) = (false, None);
        loop {
            tokio::select! {
                step = follower.step() => match step? {
                    FollowStep::On => {}
                    FollowStep::Question(asked) => question = Some(self.ask(asked)),
                    FollowStep::Over(receipt) => {
                        if conclude(&receipt, self.remote.screen)? == Exit::Failed && !self.typed.by_hand {
                            self.exit = Exit::Failed;
                        }
                        return Ok(ChatStep::Continue);
                    }
                },
                typed = self.typed.next(), if self.typed.by_hand => match (typed, question.take()) {
                    (None, _) => return Ok(self.leave(&receipt)),
                    (Some(text), Some(asked)) => question = self.answer(asked, &text).await?,
                    (Some(text), None) => { self.say(text).await?; }
                },
                () = self.interrupts.next() => {
                    follower.leave_line()?;
                    if warned {
                        let stopped = stop_message(self.remote, &receipt.id).await?;
                        self.remote.screen.say(stopped.words());
                        if stopped.receipt.state.is_final() {
                            return Ok(ChatStep::Continue);
                        }
                    } else {
                        self.remote.screen.say("Ctrl-C again stops this turn; Ctrl-D leaves and lets it go on");
                        warned = true;
                    }
                },
            }
        }
    }

    fn ask(&self, asked: OpenApproval) -> OpenApproval {
        self.remote.screen.say(asked.words());
        match (self.typed.by_hand, asked.form) {
            (true, QuestionForm::Permission) => self.remote.screen.say("type y or n"),
            (true, QuestionForm::Choice) => self.remote.screen.say("type a number, other words, or n"),
            (true, QuestionForm::Words) => self.remote.screen.say("type your words, or n"),
            (false, _) => self.remote.screen.say(asked.how()),
        }
        asked
    }

    /// Answers the agent's question, or asks again.
    async fn answer(&mut self, asked: OpenApproval, text: &str) -> Result<Option<OpenApproval>> {
        let Some(answer) = answer_of(asked.form, text.trim()) else {
            self.remote.screen.say("the agent waits for y or n");
            return Ok(Some(asked));
        };
        match self.remote.client.answer(&asked.approval, answer).await {
            // A rule or somebody else was faster, or the turn is over: the talk goes on.
            Err(ClientError::Refused(problem)) if matches!(problem.code, Code::TooLate | Code::Lapsed) => {
                self.remote.screen.say(problem.detail);
            }
            Err(ClientError::Refused(problem)) if problem.code == Code::UnfitAnswer => {
                self.remote.screen.say(problem.detail);
                return Ok(Some(asked));
            }
            answered => drop(answered.or_cli_error()?),
        }
        Ok(None)
    }

    fn leave(&self, receipt: &Receipt) -> ChatStep {
        self.remote.screen.say(format!("\nthe turn goes on; stop it with `homing stop {}`", receipt.id));
        ChatStep::Leave
    }
}

/// Text that somebody typed, as an answer to a question of this form.
fn answer_of(form: QuestionForm, text: &str) -> Option<Answer> {
    let no = matches!(text.to_lowercase().as_str(), "n" | "no");
    match form {
        _ if no => Some(Answer::No),
        QuestionForm::Permission => {
            matches!(text.to_lowercase().as_str(), "y" | "yes").then_some(Answer::Yes)
        }
        QuestionForm::Choice => {
            Some(text.parse().map_or_else(|_| Answer::Said(text.to_owned()), Answer::Chose))
        }
        QuestionForm::Words => Some(Answer::Said(text.to_owned())),
    }
}
