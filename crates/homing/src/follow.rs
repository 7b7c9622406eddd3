//! Watching the turn of one message: its words as they come, and what became of it.
//!
//! Words come twice, live and as facts; each part is shown once, by its offset. Watching is not owning: a follower that
//! goes away changes nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use api::client::{FactStream, FollowItem};
use api::{
    Answer, Delivery, Fact, MessageQuery, QuestionForm, Receipt, ReceiptState, RuleFact, Story, StoryFact,
    Waiting, What,
};
use tokio::time::{Instant, timeout_at};

use crate::describe::{self, AutomaticAnswerer};
use crate::exit::Exit;
use crate::markdown::MarkdownStream;
use crate::names;
use crate::remote::{OrCliError, Remote};
use crate::screen::{Screen, TextStyle, tame, terminal_width};
use crate::tool_calls::ToolCalls;

/// The longest single wait for the last word about a message; its fact has been seen already.
const FINAL_WAIT_S: u64 = 10;
/// The time for which a question may be open before it is for people: rules and policies answer at once.
const RULE_WAIT: Duration = Duration::from_millis(500);

/// The time within which a start is nothing to tell: most are over before.
const START_WAIT: Duration = Duration::from_secs(2);

/// Follows one message.
#[derive(Debug)]
pub(crate) struct Follower<'a> {
    remote: &'a Remote,
    session: String,
    message: String,
    turn: Option<u32>,
    /// True if it was to be said into a turn, and nobody was told yet what became of that.
    steers: bool,
    facts: FactStream,
    shown: ShownParts,
    /// The tool calls, so that one can be unfolded.
    pub(crate) tools: ToolCalls,
    /// The last question.
    asked: Option<OpenApproval>,
    /// True while the server is looked for.
    pub(crate) is_away: bool,
    /// Until when a rule may answer it, if nobody was told of it yet.
    untold: Option<Instant>,
    /// When it is to be told that the agent is still being started, as long as the words are not handed over.
    starts: Option<Instant>,
    /// It was final, without a turn, before we came.
    over: bool,
    /// The last word about why it waits, so that it is told once.
    waits: String,
    /// The last word of an errand that is under way.
    notice: Option<String>,
    /// The worktree that it is to enter.
    enters: Option<String>,
}

/// A step while following.
#[derive(Debug)]
pub(crate) enum FollowStep {
    /// Something was shown, or was not for us.
    On,
    /// The agent asks a person.
    Question(OpenApproval),
    /// The last question needs no answer any more. A person's answer is told only to those who did not give it.
    Settled(Option<String>),
    /// The message is final, or held until somebody does something.
    Over(Box<Receipt>),
}

/// The question of the agent.
#[derive(Debug, Clone)]
pub(crate) struct OpenApproval {
    pub(crate) approval: String,
    pub(crate) detail: String,
    pub(crate) form: QuestionForm,
    pub(crate) options: Vec<String>,
}

/// Says what somebody else answered to a question that is open here.
pub(crate) fn answered_elsewhere(answer: &str) -> String {
    tame(&format!("answered elsewhere: {answer}"))
}

impl OpenApproval {
    /// The question, for people.
    pub(crate) fn words(&self) -> String {
        let options = self.options.iter().enumerate().map(|(number, name)| format!("\n  {number}  {name}"));
        tame(&format!("the agent asks: {}{}", self.detail, options.collect::<String>()))
    }

    /// The command that answers it.
    pub(crate) fn how(&self) -> String {
        format!("answer with {}", answering_command(&self.approval, self.form))
    }
}

/// The command that answers a question of this form, or says no to it.
pub(crate) fn answering_command(approval: &str, form: QuestionForm) -> String {
    let answer = match form {
        QuestionForm::Permission => "--yes",
        QuestionForm::Choice => "--choose N",
        QuestionForm::Words => "--say TEXT",
    };
    format!("`homing approve {approval} {answer}`, or --no")
}

impl<'a> Follower<'a> {
    /// Begins where the turn begins, wherever that is by now.
    pub(crate) async fn begin(remote: &'a Remote, receipt: &Receipt) -> Result<Self> {
        let (after, over, now) =
            if receipt.new { (0, false, None) } else { place_of(remote, receipt).await? };
        let facts = remote.client.follow(&receipt.session, after);
        let (message, mut shown) = (receipt.id.clone(), ShownParts::new(remote.screen));
        shown.wait_for("waiting for the agent …");
        let (turn, asked, untold, starts, waits) = (None, None, None, None, String::new());
        // Where it cannot be, the receipt has said so.
        let steers = receipt.delivery == Delivery::Steer && receipt.hint.is_none();
        let tools = ToolCalls::default();
        let mut follower = Self {
            remote,
            session: receipt.session.clone(),
            message,
            turn,
            steers,
            facts,
            shown,
            tools,
            asked,
            untold,
            starts,
            over,
            waits,
            is_away: false,
            notice: None,
            enters: None,
        };
        if let Some(now) = now {
            follower.say_waits(now)?;
        }
        Ok(follower)
    }

    /// Says why it is not being worked on yet, and for whom it waits. A server that cannot say so now is no reason to leave: the
    /// stream of facts tells that it is away, and goes on when it is back.
    async fn say_why(&mut self) -> Result<()> {
        match self.remote.client.receipt(&self.message, &MessageQuery::default()).await {
            Ok(now) => self.say_waits(now),
            Err(_) => Ok(()),
        }
    }

    fn say_waits(&mut self, now: Receipt) -> Result<()> {
        // What it waits for in its turn is shown there, once the agent is there.
        let is_told = |waiting: &Waiting| now.turn.is_none() || is_about_start(waiting);
        let Some(waiting) = now.waiting.filter(is_told) else { return Ok(()) };
        let words = describe::waits(&waiting);
        let words = names::said(&words, self.remote);
        if waiting.why == "starting" && self.remote.screen.err_is_terminal {
            // It is over soon, and then nobody wants to read it.
            self.shown.end_line()?;
            self.shown.wait_for(&format!("{words} …"));
        } else if words != self.waits {
            self.shown.aside(&words)?;
            self.shown.wait_for("waiting …");
            self.waits = words;
        }
        Ok(())
    }

    /// The next thing that happens. May be cancelled and called again.
    pub(crate) async fn step(&mut self) -> Result<FollowStep> {
        if self.over {
            return self.end().await;
        }
        let heard = match [self.untold, self.starts].into_iter().flatten().min() {
            None => self.facts.next().await,
            Some(until) => match timeout_at(until, self.facts.next()).await {
                Ok(heard) => heard,
                Err(_) if self.untold == Some(until) => {
                    return Ok(self.untold_question().map_or(FollowStep::On, FollowStep::Question));
                }
                Err(_) => {
                    self.say_why().await?;
                    self.starts = None;
                    return Ok(FollowStep::On);
                }
            },
        };
        match heard.or_cli_error()? {
            FollowItem::Live(live) if Some(live.turn) == self.turn && live.kind == "text" => {
                self.shown.text(live.part, live.offset, &live.text)?;
                Ok(FollowStep::On)
            }
            FollowItem::Live(_) | FollowItem::Progress(_) => Ok(FollowStep::On),
            FollowItem::Fact(fact) => self.fact(&fact).await,
            FollowItem::Away { reason } => {
                self.is_away = true;
                self.shown.aside(&describe::away(&reason))?;
                self.shown.wait_for("waiting for the server …");
                Ok(FollowStep::On)
            }
            FollowItem::Back => {
                self.is_away = false;
                self.shown.aside(describe::BACK)?;
                Ok(FollowStep::On)
            }
        }
    }

    /// The question that nobody was told of.
    fn untold_question(&mut self) -> Option<OpenApproval> {
        self.untold.take().and(self.asked.clone())
    }

    async fn fact(&mut self, fact: &Fact) -> Result<FollowStep> {
        if let What::Rule(rule) = &fact.what {
            self.find_turn(rule)?;
            self.find_start(rule);
        }
        if self.turn.is_none() && is_about_waiting(&fact.what) {
            self.say_why().await?;
        }
        if self.turn.is_none() {
            self.errand(fact)?;
        }
        if !self.is_ours(fact) {
            return Ok(FollowStep::On);
        }
        if self.remote.screen.json {
            self.remote.screen.object(fact)?;
        }
        match &fact.what {
            What::Story(told) => self.story(&told.story),
            What::Rule(RuleFact::Answered { answer, by, .. }) => self.answered(answer, by.as_deref()),
            What::Rule(RuleFact::Lapsed { .. }) => {
                self.untold = None;
                Ok(FollowStep::Settled(None))
            }
            What::Rule(
                RuleFact::TurnEnded { .. } | RuleFact::Withdrawn { .. } | RuleFact::MessageRefused { .. },
            )
            | What::Rule(RuleFact::Held { .. }) => {
                self.over = true;
                if let Some(asked) = self.untold_question() {
                    self.shown.aside(&asked.words())?;
                }
                self.end().await
            }
            What::Rule(rule @ RuleFact::AttemptFailed { .. }) => {
                let fact = Fact { what: What::Rule(rule.clone()), ..fact.clone() };
                self.shown.progress(&describe::fact(&fact))?;
                Ok(FollowStep::On)
            }
            What::Rule(_) | What::Other(_) => Ok(FollowStep::On),
        }
    }

    /// Tells what came of the errand that a message waits for: a worktree was entered, or why not.
    fn errand(&mut self, fact: &Fact) -> Result<()> {
        match &fact.what {
            What::Rule(RuleFact::ErrandStarted { what, subject, .. }) if what == "enter" => {
                self.enters = Some(subject.clone());
            }
            What::Story(StoryFact { turn: 0, story: Story::Notice { text }, .. }) => {
                self.notice = Some(text.clone());
            }
            What::Rule(RuleFact::ErrandFailed { .. } | RuleFact::ScopeChanged { .. }) => {
                if let Some(told) = self.notice.take() {
                    self.shown.aside(&told)?;
                }
                let entered = self.enters.take();
                if let (What::Rule(RuleFact::ErrandFailed { .. }), Some(name)) = (&fact.what, entered) {
                    let session = &self.session;
                    let words = format!("`homing scope {session} enter {name}` tries it again");
                    self.shown.aside(&names::said(&words, self.remote))?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A message begins a turn, or goes into one that is under way.
    fn find_turn(&mut self, rule: &RuleFact) -> Result<()> {
        match rule {
            RuleFact::TurnStarted { turn, message } if *message == self.message => {
                self.turn = Some(*turn);
                if std::mem::take(&mut self.steers) {
                    self.shown.aside("could not be said into a turn; it has one of its own")?;
                }
            }
            RuleFact::Steered { turn, message } if *message == self.message => {
                self.turn = Some(*turn);
                self.steers = false;
                self.shown.join();
                self.shown.aside(&format!("goes into turn {turn}, which is under way"))?;
            }
            RuleFact::Missed { message } if *message == self.message => {
                self.turn = None;
                self.shown.aside("came too late for that turn; it is next")?;
            }
            _ => {}
        }
        Ok(())
    }

    /// An agent is started for the turn, again perhaps; until it has the words, somebody waits for that.
    fn find_start(&mut self, rule: &RuleFact) {
        let is_ours = |turn: u32| Some(turn) == self.turn;
        match rule {
            RuleFact::TurnStarted { turn, .. } | RuleFact::AttemptFailed { turn, .. } if is_ours(*turn) => {
                self.starts = Some(Instant::now() + START_WAIT);
            }
            RuleFact::Handed { turn, .. }
            | RuleFact::StopAsked { turn, .. }
            | RuleFact::TurnEnded { turn, .. }
                if is_ours(*turn) =>
            {
                self.starts = None;
            }
            _ => {}
        }
    }

    /// Says what became of a question that no person has answered. Who did knows it.
    fn answered(&mut self, answer: &Answer, by: Option<&str>) -> Result<FollowStep> {
        let answer = describe::answer(answer);
        let told = AutomaticAnswerer::of(by).map(|instead| match instead {
            AutomaticAnswerer::Nobody => format!("nobody answered in time: {answer}"),
            AutomaticAnswerer::Policy => format!("nobody attends: {answer}"),
            AutomaticAnswerer::Rule(rule) => format!("answered by rule {rule}: {answer}"),
        });
        if let Some(asked) = self.untold_question() {
            self.shown.aside(&asked.words())?;
        }
        let by_person = told.is_none().then_some(answer);
        if let Some(told) = told {
            self.shown.aside(&names::said(&told, self.remote))?;
        }
        Ok(FollowStep::Settled(by_person))
    }

    fn story(&mut self, story: &Story) -> Result<FollowStep> {
        match story {
            Story::Text { part, offset, text } => self.shown.text(*part, *offset, text)?,
            Story::Notice { text } | Story::Memory { text, .. } => self.shown.aside(text)?,
            Story::ToolCall { call, tool, input } => {
                let line = self.tools.begin(call, tool, input, terminal_width().saturating_sub(1));
                self.shown.progress(&line)?;
            }
            Story::ToolResult { call, output, failed } => {
                if let Some(line) = self.tools.end(call, output, *failed) {
                    self.shown.progress(&line)?;
                }
            }
            Story::Plan { .. } | Story::FileChanged { .. } => {
                self.shown.progress(&format!("· {}", describe::story(story)))?;
            }
            Story::Question { approval, tool, detail, form, options } => {
                self.shown.end_line()?;
                let detail = if detail.is_empty() { format!("may I use {tool}?") } else { detail.clone() };
                let options = options.iter().map(|option| option.name.clone()).collect();
                let before = self.untold_question();
                self.asked = Some(OpenApproval { approval: approval.clone(), detail, form: *form, options });
                self.untold = Some(Instant::now() + RULE_WAIT);
                return Ok(before.map_or(FollowStep::On, FollowStep::Question));
            }
            Story::Launch(_)
            | Story::About(_)
            | Story::ToolProgress { .. }
            | Story::Title { .. }
            | Story::Finished { .. }
            | Story::Reasoning { .. }
            | Story::Said { .. }
            | Story::Usage(_)
            | Story::Stopped { .. }
            | Story::Changes { .. }
            | Story::Script { .. }
            | Story::Worktree { .. }
            | Story::Imported(_)
            | Story::Other { .. }
            | Story::Forgotten { .. } => {}
        }
        Ok(FollowStep::On)
    }

    /// True if a fact is about this message or its turn.
    fn is_ours(&self, fact: &Fact) -> bool {
        let of_turn = |turn: u32| Some(turn) == self.turn;
        match &fact.what {
            What::Story(told) => of_turn(told.turn),
            What::Rule(rule) => match rule {
                RuleFact::Queued { message, .. }
                | RuleFact::Edited { message, .. }
                | RuleFact::Withdrawn { message, .. }
                | RuleFact::Held { message, .. }
                | RuleFact::Released { message, .. }
                | RuleFact::Steered { message, .. }
                | RuleFact::Missed { message }
                | RuleFact::MessageRefused { message, .. } => *message == self.message,
                RuleFact::Answered { approval, .. } | RuleFact::Lapsed { approval } => {
                    self.asked.as_ref().is_some_and(|asked| asked.approval == *approval)
                }
                RuleFact::TurnStarted { turn, .. }
                | RuleFact::Handed { turn, .. }
                | RuleFact::AttemptFailed { turn, .. }
                | RuleFact::Asked { turn, .. }
                | RuleFact::StopAsked { turn, .. }
                | RuleFact::TurnEnded { turn, .. } => of_turn(*turn),
                RuleFact::AttemptStarted { fence, .. } => of_turn(fence.turn),
                RuleFact::Crowded { .. } => self.turn.is_none(),
                _ => false,
            },
            What::Other(_) => false,
        }
    }

    /// Stops showing; whatever is said next begins on a line of its own.
    pub(crate) fn leave_line(&mut self) -> Result<()> {
        self.shown.end_line()
    }

    async fn end(&mut self) -> Result<FollowStep> {
        self.shown.end_line()?;
        let query = MessageQuery { wait: Some(FINAL_WAIT_S), words: None };
        let held_or_final =
            |receipt: &Receipt| receipt.state.is_final() || receipt.state == ReceiptState::Held;
        let now = self.remote.client.receipt(&self.message, &MessageQuery::default()).await.or_cli_error()?;
        let receipt = if held_or_final(&now) {
            now
        } else {
            self.remote.client.receipt(&self.message, &query).await.or_cli_error()?
        };
        Ok(FollowStep::Over(Box::new(receipt)))
    }
}

/// True if it waits for its agent to be there.
fn is_about_start(waiting: &Waiting) -> bool {
    matches!(waiting.why.as_str(), "starting" | "again")
}

/// True of facts after which something may wait for somebody else than before.
fn is_about_waiting(what: &What) -> bool {
    matches!(
        what,
        What::Rule(
            RuleFact::Crowded { .. }
                | RuleFact::TurnStarted { .. }
                | RuleFact::TurnEnded { .. }
                | RuleFact::Reordered { .. }
                | RuleFact::ErrandStarted { .. }
                | RuleFact::ChangeAsked { .. }
        )
    )
}

/// Where to begin to read: right before the turn, if it has begun; else where the log ends. And whether it is all over, and how it
/// stands.
async fn place_of(remote: &Remote, receipt: &Receipt) -> Result<(u64, bool, Option<Receipt>)> {
    // In this order: a turn that begins in between has a higher number.
    let number = remote.client.session(&receipt.session).await.or_cli_error()?.number;
    let now = remote.client.receipt(&receipt.id, &MessageQuery::default()).await.or_cli_error()?;
    match now.first {
        Some(first) => Ok((first.saturating_sub(1), false, None)),
        None => Ok((number, now.state.is_final() || now.state == ReceiptState::Held, Some(now))),
    }
}

/// Says how it ended, unless the answer says that itself.
pub(crate) fn conclude(receipt: &Receipt, remote: &Remote) -> Result<Exit> {
    let screen = remote.screen;
    if screen.json {
        screen.object(receipt)?;
    }
    if receipt.state == ReceiptState::Answered {
        return Ok(Exit::Done);
    }
    let (standing, id) = (describe::standing(receipt), names::said(&receipt.id, remote));
    screen.say(format!("{} {id}", screen.err(TextStyle::Bad, &standing)));
    if let Some(hint) = describe::hint(receipt) {
        screen.say(format!("{} {}", screen.err(TextStyle::Good, "hint:"), names::said(&hint, remote)));
    }
    Ok(Exit::Failed)
}

/// The part of a turn that has been shown.
#[derive(Debug)]
struct ShownParts {
    screen: Screen,
    /// The reader of markdown, where somebody looks on who can see styles.
    markdown: Option<MarkdownStream>,
    /// Bytes of each part.
    parts: BTreeMap<u32, u64>,
    /// The part that was written last, if its line is still open.
    open: Option<u32>,
    /// True if the line says what we wait for; whatever comes next replaces it.
    passing: bool,
    /// True if what comes next may begin in the middle of a part.
    joins: bool,
}

impl ShownParts {
    fn new(screen: Screen) -> Self {
        let markdown = (!screen.json && screen.out_has_colours()).then(MarkdownStream::default);
        Self { screen, markdown, parts: BTreeMap::new(), open: None, passing: false, joins: false }
    }

    /// From here on: what was said before is not ours.
    fn join(&mut self) {
        self.joins = true;
    }

    /// Says what we wait for, until something else is shown.
    fn wait_for(&mut self, what: &str) {
        self.screen.passing(what);
        self.passing = true;
    }

    /// The line is ours again.
    fn clear(&mut self) {
        if std::mem::take(&mut self.passing) {
            self.screen.clear_passing();
        }
    }

    /// Shows what is new of these words. Words after a gap are not shown: they come again, as a fact, behind the rest.
    fn text(&mut self, part: u32, offset: u64, text: &str) -> Result<()> {
        let begin = if std::mem::take(&mut self.joins) { offset } else { 0 };
        let shown = self.parts.entry(part).or_insert(begin);
        let Some(fresh) = fresh_of(*shown, offset, text) else { return Ok(()) };
        *shown += fresh.len() as u64;
        if self.screen.json {
            return Ok(());
        }
        if self.open.is_some_and(|open| open != part) {
            self.end_line()?;
        }
        self.clear();
        // A program that reads gets the answer as it is.
        match (&mut self.markdown, self.screen.out_is_terminal) {
            (Some(markdown), _) => self.screen.piece(&markdown.write(&tame(fresh)))?,
            (None, true) => self.screen.piece(&tame(fresh))?,
            (None, false) => self.screen.piece(fresh)?,
        }
        self.open = (!fresh.ends_with('\n')).then_some(part);
        Ok(())
    }

    /// Words that are not the answer.
    fn aside(&mut self, text: &str) -> Result<()> {
        self.end_line()?;
        self.screen.say(tame(text));
        Ok(())
    }

    fn progress(&mut self, text: &str) -> Result<()> {
        self.end_line()?;
        self.screen.progress(tame(text));
        Ok(())
    }

    fn end_line(&mut self) -> Result<()> {
        self.clear();
        if let Some(rest) = self.markdown.as_mut().map(MarkdownStream::end).filter(|rest| !rest.is_empty()) {
            self.screen.piece(&rest)?;
        }
        if self.open.take().is_some() {
            self.screen.piece("\n")?;
        }
        Ok(())
    }
}

/// The rest of `text`, which stands at `offset`, that is not among the first `shown` bytes. None if it begins behind
/// them.
fn fresh_of(shown: u64, offset: u64, text: &str) -> Option<&str> {
    let known = usize::try_from(shown.checked_sub(offset)?).ok()?;
    text.get(known..).filter(|fresh| !fresh.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_is_shown_once() {
        assert_eq!(fresh_of(0, 0, "one "), Some("one "));
        assert_eq!(fresh_of(4, 0, "one two "), Some("two "), "the fact brings more than the live words did");
        assert_eq!(fresh_of(8, 4, "two "), None, "a repetition");
        assert_eq!(fresh_of(4, 8, "three"), None, "something is missing in between");
    }
}
