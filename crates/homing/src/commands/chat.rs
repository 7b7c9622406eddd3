//! `homing chat`: a conversation in the terminal.
//!
//! What is typed is sent at once, also while a turn runs: it waits in the session's queue, not here. Answers are shown
//! in order, above the line that is being typed. There is nothing in this process that could be lost. A file or a pipe is
//! read one line per turn. `input` is where words come from, `slash` which of them are commands, `ours` what ours do.

mod input;
mod ours;
mod slash;

use std::collections::VecDeque;
use std::path::Path;
use std::pin::Pin;
use std::time::Instant;

use anyhow::Result;
use api::{Choices, Explained, NewMessage, Part, Receipt, SayParts, To};

use crate::answering;
use crate::attached;
use crate::commands::stop::stop_message;
use crate::exit::{CliError, Exit, without_os_error};
use crate::follow::{FollowStep, Follower, OpenApproval, answered_elsewhere, conclude};
use crate::line_editor::Typed;
use crate::remote::{OrCliError, Remote};
use crate::screen::{TextStyle, tame};
use crate::target::{FirstTargetArgs, MakeArgs, Target, TargetArgs};
use crate::tool_calls::ToolCalls;
use crate::{here, names, notify};
use input::ChatInput;
use slash::{ChatLine, OURS, in_chat, near};

/// Talk to a session, line by line
///
/// Shows the words as they come, above the line that you type. Arrows, history and paste work as usual; Alt-Enter or
/// Ctrl-J begins a new line. `/help` lists what there is. What you type while a turn runs waits in the session's queue.
/// Ctrl-C says how to stop the turn, and stops it the second time; Ctrl-D leaves.
#[derive(clap::Args)]
pub(crate) struct ChatArgs {
    #[command(flatten)]
    target: FirstTargetArgs,
}

pub(crate) async fn chat(args: ChatArgs, remote: &Remote) -> Result<Exit> {
    let mut target = args.target.resolve(remote).await?;
    let session = greet(&target, remote).await?;
    if session.is_some() {
        target.say_ignored_now(remote);
    }
    // Whoever looks on has just read where the words go.
    let announced = session.clone().filter(|_| remote.screen.err_is_terminal);
    let (input, screen) = ChatInput::begin(remote.screen)?;
    let remote = &Remote { screen, ..remote.clone() };
    let mut talk = ChatLoop {
        remote,
        target,
        input,
        waiting: VecDeque::new(),
        session,
        announced,
        commands: Choices { known: false, items: Vec::new() },
        tools: ToolCalls::default(),
        attached: Vec::new(),
        side: None,
        has_warned: false,
        exit: Exit::Done,
    };
    talk.learn_commands().await;
    talk.until_the_end().await
}

/// Says beforehand where the words will go; a session that cannot be talked to is refused before anything is typed.
async fn greet(target: &Target, remote: &Remote) -> Result<Option<String>> {
    let session = match remote.client.explain(&target.query()).await.or_cli_error()? {
        Explained::Existing { session, .. } => {
            let directory = here::with_tilde(&session.directory);
            let id = names::short_id(&session.id);
            remote.screen.progress(format!("{id} ({} in {directory})", session.agent));
            Some(session.id)
        }
        Explained::New { .. } => {
            remote.screen.progress("the first message opens a new session");
            None
        }
        Explained::Refused { why, code, .. } => {
            let exit = if code == api::Code::NotFound { Exit::NotFound } else { Exit::Failed };
            let mend = target.how_to_mend(Some(code), remote).await?;
            let hint = mend.unwrap_or_else(|| "`homing ls` lists your sessions; --new makes one".to_owned());
            return Err(CliError::new(exit, why).hint(hint).into());
        }
    };
    remote.screen.progress("/help lists commands, Ctrl-D leaves");
    Ok(session)
}

/// A command of ours that runs beside the talk.
type SideCommand<'a> = Pin<Box<dyn Future<Output = Result<Exit>> + 'a>>;

struct ChatLoop<'a> {
    remote: &'a Remote,
    target: Target,
    input: ChatInput,
    /// Said, and not answered yet.
    waiting: VecDeque<Receipt>,
    /// Where the words go, once that is known.
    session: Option<String>,
    /// Where the last message went, so that a change is told.
    announced: Option<String>,
    /// The agent's own commands.
    commands: Choices,
    tools: ToolCalls,
    /// Files that go along with the next message.
    attached: Vec<Part>,
    side: Option<SideCommand<'a>>,
    /// Ctrl-C was pressed once.
    has_warned: bool,
    exit: Exit,
}

/// The next step of the conversation: on, or away.
#[derive(PartialEq, Eq)]
enum ChatStep {
    Continue,
    Leave,
}

/// The next step while a turn is watched.
enum TurnStep {
    Watch,
    /// It is over.
    Next,
    Leave,
}

impl<'a> ChatLoop<'a> {
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
        self.input.prompt(self.remote.screen)?;
        let typed = tokio::select! {
            typed = self.input.next() => typed?,
            done = side_result(&mut self.side) => {
                self.side = None;
                self.report(done);
                return Ok(ChatStep::Continue);
            }
        };
        match typed {
            Typed::Said(text) => {
                self.has_warned = false;
                self.input.echo(&text, self.remote.screen);
                self.hear_line(&text).await
            }
            Typed::Interrupt if self.side.take().is_some() => {
                self.remote.screen.say("left; what was asked for may still happen");
                Ok(ChatStep::Continue)
            }
            Typed::Interrupt if self.input.has_editor() && !self.has_warned => {
                self.has_warned = true;
                self.remote.screen.say("nothing runs; Ctrl-C again or Ctrl-D leaves");
                Ok(ChatStep::Continue)
            }
            Typed::Interrupt | Typed::Leave => {
                self.input.close(self.remote.screen);
                Ok(ChatStep::Leave)
            }
            Typed::Unfold => self.unfold(None),
            Typed::Answer(_) => Ok(ChatStep::Continue),
        }
    }

    /// A line: words, or a command.
    async fn hear_line(&mut self, line: &str) -> Result<ChatStep> {
        match ChatLine::read(line) {
            ChatLine::Words(words) => self.say(words).await,
            ChatLine::Ours("quit", _) => Ok(ChatStep::Leave),
            ChatLine::Ours("attach", file) => Ok(self.attach(file)),
            ChatLine::Ours("unfold", number) => self.unfold(number.parse().ok()),
            ChatLine::Ours("new", _) => {
                self.target = TargetArgs::anew().resolve(&MakeArgs::default(), self.remote).await?;
                (self.session, self.announced) = (None, None);
                self.remote.screen.say("the next message opens a new session");
                Ok(ChatStep::Continue)
            }
            ChatLine::Ours(name, rest) => {
                if self.side.is_some() {
                    self.remote.screen.say("the command before is not done yet; Ctrl-C leaves it");
                } else {
                    if name == "model" && !rest.is_empty() {
                        self.target.expect_any();
                    }
                    self.side =
                        Some(Box::pin(ours::run(name, rest.to_owned(), self.session.clone(), self.remote)));
                }
                Ok(ChatStep::Continue)
            }
            ChatLine::Named(name) => {
                self.learn_commands().await;
                match self.why_not(name) {
                    None => self.say(line).await,
                    Some(why) => {
                        self.remote.screen.say(why);
                        Ok(ChatStep::Continue)
                    }
                }
            }
        }
    }

    /// Why a line that begins with this name is not sent, if it is not.
    fn why_not(&self, name: &str) -> Option<String> {
        let theirs = || self.commands.items.iter().map(|choice| choice.name.trim_start_matches('/'));
        if theirs().any(|known| known == name) {
            return None;
        }
        let ours = OURS.iter().map(|(ours, _)| *ours);
        let near: Vec<String> =
            near(name, ours.chain(theirs())).iter().map(|near| format!("/{near}")).collect();
        // An agent that lists none may still know some: only what looks like one of ours is a typing error.
        if !self.commands.known && near.is_empty() {
            return None;
        }
        let instead = match near.as_slice() {
            [] => "/help lists ours, /agent the agent's".to_owned(),
            near => format!("did you mean {}?", near.join(" or ")),
        };
        Some(format!(
            "/{name} is no command; {instead} (//{name} sends it all the same, a space in front makes it words)"
        ))
    }

    /// Reads a file for the next message; without one it says what goes along with it.
    fn attach(&mut self, file: &str) -> ChatStep {
        if !file.is_empty() {
            let with = |part: Part| {
                let parts = [&self.attached[..], &[part]].concat();
                attached::check(&parts).map(|()| parts)
            };
            match attached::read(Path::new(file)).and_then(with) {
                Ok(parts) => self.attached = parts,
                Err(why) => self.report(Err(why)),
            }
        }
        for named in self.attached.iter().filter_map(attached::named) {
            self.remote.screen.say(format!("goes along with the next message: {}", tame(&named)));
        }
        if self.attached.is_empty() {
            self.remote
                .screen
                .say("nothing goes along with the next message; /attach FILE sends a file along");
        }
        ChatStep::Continue
    }

    async fn say(&mut self, text: &str) -> Result<ChatStep> {
        let to = self.target.to.clone();
        let message = match self.attached.as_slice() {
            [] => NewMessage::text(to, text.to_owned()),
            files => {
                let parts = [&[Part::Text { text: text.to_owned() }][..], files].concat();
                NewMessage::Parts(SayParts { to, parts, delivery: None, under: None, unattended: false })
            }
        };
        let receipt = match self.target.say(&message, self.remote).await {
            Ok(receipt) => receipt,
            // Whoever types can say it again; it is in their history.
            Err(why) if self.input.has_editor() => {
                self.report(Err(why));
                return Ok(ChatStep::Continue);
            }
            Err(why) => return Err(why),
        };
        self.attached.clear();
        if self.announced.as_ref() != Some(&receipt.session) {
            self.target.announce(&receipt, self.remote);
            self.announced = Some(receipt.session.clone());
        }
        self.session = Some(receipt.session.clone());
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
        follower.tools = std::mem::take(&mut self.tools);
        let watched = self.watch_with(&mut follower, &receipt).await;
        self.tools = std::mem::take(&mut follower.tools);
        self.input.ask_nothing()?;
        self.has_warned = false;
        self.learn_commands().await;
        watched
    }

    async fn watch_with(&mut self, follower: &mut Follower<'_>, receipt: &Receipt) -> Result<ChatStep> {
        let (began, mut question) = (Instant::now(), None);
        loop {
            tokio::select! {
                step = follower.step() => match step? {
                    FollowStep::On => {}
                    FollowStep::Question(asked) => {
                        self.ask(&asked)?;
                        question = Some(asked);
                    }
                    FollowStep::Settled(by_person) => {
                        self.input.ask_nothing()?;
                        if let (Some(_), Some(answer)) = (question.take(), by_person) {
                            self.remote.screen.say(answered_elsewhere(&answer));
                        }
                    }
                    FollowStep::Over(receipt) => {
                        if conclude(&receipt, self.remote)? == Exit::Failed && !self.input.is_by_hand() {
                            self.exit = Exit::Failed;
                        }
                        notify::turn_is_over(&receipt, began.elapsed(), self.remote);
                        return Ok(ChatStep::Continue);
                    }
                },
                done = side_result(&mut self.side) => {
                    self.side = None;
                    follower.leave_line()?;
                    self.report(done);
                }
                typed = self.input.next_in_turn() => {
                    follower.leave_line()?;
                    match self.typed_in_turn(typed?, follower, &mut question, receipt).await? {
                        TurnStep::Watch => {}
                        TurnStep::Next => return Ok(ChatStep::Continue),
                        TurnStep::Leave => return self.leave(receipt),
                    }
                }
            }
        }
    }

    /// Words and keys that are typed while a turn runs: words wait for their turn, unless the agent has asked something.
    async fn typed_in_turn(
        &mut self,
        typed: Typed,
        follower: &Follower<'_>,
        question: &mut Option<OpenApproval>,
        receipt: &Receipt,
    ) -> Result<TurnStep> {
        let text = match typed {
            Typed::Leave => return Ok(TurnStep::Leave),
            Typed::Unfold => {
                self.show_unfolded(follower.tools.unfold(None));
                return Ok(TurnStep::Watch);
            }
            Typed::Interrupt => {
                let is_over = self.interrupt(receipt).await?;
                return Ok(if is_over { TurnStep::Next } else { TurnStep::Watch });
            }
            Typed::Answer(key) => key.to_string(),
            Typed::Said(text) => text,
        };
        self.input.echo(&text, self.remote.screen);
        match (ChatLine::read(&text), question.take()) {
            (ChatLine::Words(words), Some(asked)) => *question = self.answer(asked, words).await?,
            (ChatLine::Ours("unfold", number), asked) => {
                *question = asked;
                self.show_unfolded(follower.tools.unfold(number.parse().ok()));
            }
            (_, asked) => {
                *question = asked;
                if self.hear_line(&text).await? == ChatStep::Leave {
                    return Ok(TurnStep::Leave);
                }
            }
        }
        Ok(TurnStep::Watch)
    }

    fn ask(&mut self, asked: &OpenApproval) -> Result<()> {
        self.remote.screen.say(asked.words());
        match &mut self.input {
            ChatInput::Editor(editor) => answering::ask(asked, editor)?,
            ChatInput::Lines { typed, .. } if typed.by_hand => self.remote.screen.say(answering::how(asked)),
            ChatInput::Lines { .. } => self.remote.screen.say(names::said(&asked.how(), self.remote)),
        }
        notify::agent_asks(asked, self.remote);
        Ok(())
    }

    /// Answers the agent's question, or asks again.
    async fn answer(&mut self, asked: OpenApproval, typed: &str) -> Result<Option<OpenApproval>> {
        if answering::answer(&asked, typed, self.remote).await? {
            self.input.ask_nothing()?;
            return Ok(None);
        }
        Ok(Some(asked))
    }

    /// Ctrl-C while a turn runs: says how the first time, and stops it the second time. True if it is over.
    async fn interrupt(&mut self, receipt: &Receipt) -> Result<bool> {
        if !self.has_warned {
            self.has_warned = true;
            self.remote.screen.say("Ctrl-C again stops this turn; Ctrl-D leaves and lets it go on");
            return Ok(false);
        }
        let stopped = stop_message(self.remote, &receipt.id).await?;
        self.remote.screen.say(stopped.words());
        Ok(stopped.receipt.state.is_final())
    }

    fn leave(&mut self, receipt: &Receipt) -> Result<ChatStep> {
        self.input.close(self.remote.screen);
        let words = format!("the turn goes on; stop it with `homing stop {}`", receipt.id);
        self.remote.screen.say(names::said(&words, self.remote));
        Ok(ChatStep::Leave)
    }

    fn unfold(&mut self, number: Option<usize>) -> Result<ChatStep> {
        self.show_unfolded(self.tools.unfold(number));
        Ok(ChatStep::Continue)
    }

    fn show_unfolded(&self, call: Option<String>) {
        match call {
            Some(whole) => self.remote.screen.say(whole),
            None => {
                self.remote.screen.say("there is no such tool call; /unfold N shows the one with that number")
            }
        }
    }

    /// Says what became of a command, if nobody has seen it yet.
    fn report(&self, done: Result<Exit>) {
        let Err(why) = done else { return };
        let error =
            why.downcast::<CliError>().unwrap_or_else(|why| CliError::new(Exit::Failed, format!("{why:#}")));
        let screen = self.remote.screen;
        let what = names::said(&without_os_error(&error.what), self.remote);
        screen.say(format!("{} {what}", screen.err(TextStyle::Bad, "error:")));
        if let Some(hint) = &error.hint {
            let hint = names::said(&in_chat(hint), self.remote);
            screen.say(format!("{} {hint}", screen.err(TextStyle::Good, "hint:")));
        }
    }

    /// Learns the agent's commands for Tab, and for what is typed wrongly. Without them a chat works, too.
    async fn learn_commands(&mut self) {
        let Some(session) = self.session.clone().filter(|_| self.input.is_by_hand()) else { return };
        if let Ok(commands) = self.remote.client.commands(&session).await {
            self.commands = commands;
        }
        let models = self.remote.client.models(&session).await.map(|models| models.items).unwrap_or_default();
        let name = |choice: &api::Choice| crate::screen::tame_name(choice.name.trim_start_matches('/'));
        let ours = OURS.iter().map(|(ours, _)| format!("/{ours}"));
        let is_ours = |name: &String| OURS.iter().any(|(ours, _)| ours == name);
        let theirs = self.commands.items.iter().map(name);
        let plain = theirs.clone().filter(|name| !is_ours(name)).map(|name| format!("/{name}"));
        let doubled = theirs.map(|name| format!("//{name}"));
        let models = models.iter().map(|model| format!("/model {}", name(model)));
        self.input.complete_with(ours.chain(plain).chain(doubled).chain(models).collect());
    }
}

/// The end of the command that runs beside the talk, if one does.
async fn side_result(side: &mut Option<SideCommand<'_>>) -> Result<Exit> {
    match side {
        Some(running) => running.await,
        None => std::future::pending().await,
    }
}
