//! Imports: a new session with a conversation that was had elsewhere.
//!
//! What happened there is told to the kernel again, wish by wish and report by report, so that the session is in a state
//! that its rules allow, and all of it becomes one transaction with the session itself. Its ids are minted here. The id that
//! it had elsewhere is a name it answers to in its own org, and nothing more: nobody outside of it can notice.
//!
//! The turns ran with an agent that has no name here. Then the scope changes to the one that was asked for, and so the
//! agent of now is told the conversation again with the next message, as after any change of agents.

use super::{Declined, check_trace};
use crate::attached::{check_all, encode};
use crate::cluster::Happened;
use crate::export::{
    Export, PAST_KINDS, PAST_SAID_MAX, PAST_STORIES_MAX, PAST_TURNS_MAX, PastTurn, PastWords,
};
use crate::inbound::encode_parts;
use crate::story::{Imported, SaidThere, Story, retold};
use crate::{IfNew, MESSAGE_TEXT_BYTES_MAX, Made, PARTS_MAX, Trace, UnavailableError, WayIn, WayInError};
use kernel::{
    Change, Command, Delivery, Fact, Failure, Fence, Given, MessageId, Moment, Outcome, PersonId, Policy,
    Principal, Refusal, Report, Request, Scope, Session, SessionId, Setting, Slot, Term, Turn,
};
use store::{Cause, Create, Entry, Import, NewFact, Past, PastMessage};

/// The longest that the name of an org or a person may be.
const NAME_BYTES_MAX: usize = 400;

impl WayIn {
    /// Makes a session with this past. `digest` says which file it is, so that a repetition is recognised.
    pub async fn import(
        &self,
        by: &Principal,
        export: Export,
        if_new: IfNew,
        digest: [u8; 32],
        trace: Trace,
    ) -> Result<Made, WayInError> {
        let named = export.session.to_string();
        let result = self.import_now(by, &export, if_new, digest, &trace).await;
        self.note_refusal(by, "import", &trace, Some(named), result).await
    }

    async fn import_now(
        &self,
        by: &Principal,
        export: &Export,
        if_new: IfNew,
        digest: [u8; 32],
        trace: &Trace,
    ) -> Result<Made, Declined> {
        check_trace(trace)?;
        check(export)?;
        let key = self.ports.key("import", trace, &(&if_new, &digest));
        let if_new = IfNew { title: if_new.title.or_else(|| export.title.clone()), ..if_new };
        let mut session = match self.new_session(by, &if_new, None, trace) {
            Ok(session) => session,
            Err(refused) => return self.session_made_before(by, key, refused).await,
        };
        let here = session.scope.clone();
        // Until the log says where it acts, it does so without an agent that has a name here.
        session.scope = Scope { agent: String::new(), model: None, mode: None, ..here.clone() };
        let past = Some(ImportReplay::new(self, by.person).tell(export, here)?);
        let (subject, trail) = (Some(export.session.to_string()), self.ports.trail("import", trace));
        let (words_bytes_max, schemes) = (self.ports.limits.words_bytes_per_person_max, trace.schemes);
        let new = Create { session, past, words_bytes_max, subject, key, trail, schemes };
        let made = self.create(by, new).await?;
        self.ports.cluster.tell(Happened::Facts(made.session, Vec::new()));
        Ok(made)
    }
}

/// Checks that it is something that could have happened. The door has looked at the form of it.
fn check(export: &Export) -> Result<(), WayInError> {
    let bad = |line: usize, reason: String| Err(WayInError::BadExport { line, reason });
    if export.turns.len() > PAST_TURNS_MAX {
        return bad(1, format!("there are more than {PAST_TURNS_MAX} turns"));
    }
    if export.turns.iter().map(|past| past.story.len()).sum::<usize>() > PAST_STORIES_MAX {
        return bad(1, format!("there is more to see in it than {PAST_STORIES_MAX} facts"));
    }
    if let Some(why) = [&export.org, &export.by, &export.agent].into_iter().find_map(|name| bad_name(name)) {
        return bad(1, why);
    }
    let mut last = 0;
    for (line, past) in (2..).zip(&export.turns) {
        if past.turn <= last {
            return bad(line, format!("turn {} comes after turn {last}", past.turn));
        }
        last = past.turn;
        if let Some(why) = bad_turn(past) {
            return bad(line, why);
        }
    }
    Ok(())
}

fn bad_turn(past: &PastTurn) -> Option<String> {
    if past.said.is_empty() || past.said.len() > PAST_SAID_MAX {
        return Some(format!("a turn has 1 to {PAST_SAID_MAX} messages"));
    }
    let words = past.said.iter().map(|said| encode_parts(&said.parts).len());
    if words.max().is_some_and(|bytes| bytes > 2 * MESSAGE_TEXT_BYTES_MAX) {
        return Some(format!("a message has more than {MESSAGE_TEXT_BYTES_MAX} bytes of text"));
    }
    let attached = past.said.iter().find_map(|said| {
        let many = (said.parts.len() + said.attachments.len() > PARTS_MAX)
            .then(|| format!("more than {PARTS_MAX} parts"));
        many.or_else(|| check_all(&said.attachments).err().map(|why| why.reason))
    });
    if attached.is_some() {
        return attached;
    }
    if let Some(story) = past.story.iter().find(|story| !PAST_KINDS.contains(&story.kind.as_str())) {
        return Some(format!("{:?} is nothing that can be told elsewhere", story.kind));
    }
    past.said.iter().map(|said| &said.by).chain([&past.agent]).find_map(|name| bad_name(name))
}

/// Names stand before what was said when it is told again, on a line of their own.
fn bad_name(name: &str) -> Option<String> {
    let bad = name.len() > NAME_BYTES_MAX || name.chars().any(char::is_control);
    bad.then(|| format!("a name has more than {NAME_BYTES_MAX} bytes, or control characters"))
}

/// A conversation on its way through the kernel.
struct ImportReplay<'a> {
    way_in: &'a WayIn,
    by: PersonId,
    now: Moment,
    policy: Policy,
    session: Session,
    facts: Vec<NewFact>,
    messages: Vec<PastMessage>,
}

impl<'a> ImportReplay<'a> {
    fn new(way_in: &'a WayIn, by: PersonId) -> Self {
        let (now, policy) = (way_in.ports.now(), way_in.policy);
        let (session, facts, messages) = (Session::default(), Vec::new(), Vec::new());
        Self { way_in, by, now, policy, session, facts, messages }
    }

    fn tell(mut self, export: &Export, here: Scope) -> Result<Past, UnavailableError> {
        let there = Scope { agent: String::new(), model: None, mode: None, ..here.clone() };
        self.step(Cause::Keeper, Command::Open { scope: there, origin: None, enter: None })?;
        self.story(Turn(0), Cause::Keeper, &Story::Imported(&whole(export)));
        for past in &export.turns {
            self.turn(export.session, past)?;
        }
        let kept = |name: Option<String>| name.map_or(Setting::Keep, Setting::To);
        let (model, mode) = (kept(here.model), kept(here.mode));
        let change = Change::Set { agent: Some(here.agent), model, mode };
        self.step(
            Cause::Keeper,
            Request::ChangeScope { session: export.session, change, now: true }.by(self.by),
        )?;
        let import = Import { id: export.session, org: export.org.clone() };
        Ok(Past { import, messages: self.messages, facts: self.facts })
    }

    fn turn(&mut self, session: SessionId, past: &PastTurn) -> Result<(), UnavailableError> {
        let Some((first, steered)) = past.said.split_first() else { return Ok(()) };
        let message = self.say(Delivery::Queue, first)?;
        let fence = self.fence().ok_or_else(impossible)?;
        self.story(fence.turn, Cause::Message(message), &Story::Imported(&one(session, past)));
        self.report(fence, Report::Ready { native: None })?;
        for said in steered {
            self.say(Delivery::Steer, said)?;
        }
        for story in &past.story {
            let body = retold(fence.turn, &story.body);
            let entry = Entry::Story { turn: fence.turn, kind: story.kind.clone(), body };
            // How long something took is in these moments, and no rule reads them.
            self.facts.push(NewFact { at: story.at, cause: Cause::Runner, entry });
        }
        self.end(message, fence, past.outcome)
    }

    /// The turn ends as it did there. What was gone there is not gone here: nothing of it was ever here.
    fn end(&mut self, message: MessageId, fence: Fence, outcome: Outcome) -> Result<(), UnavailableError> {
        match outcome {
            Outcome::Answered => self.report(fence, Report::Finished { native: None }),
            Outcome::Interrupted => self.report(fence, Report::Lost),
            Outcome::Failed(Failure::Gone) => self.report(fence, Report::Failed(Failure::Transient)),
            Outcome::Failed(failure) => self.report(fence, Report::Failed(failure)),
            Outcome::Stopped => {
                self.step(Cause::Message(message), Request::Stop { message }.by(self.by))?;
                self.report(fence, Report::Stopped)
            }
            Outcome::TimedOut => {
                let late = self.now.after_ms(self.policy.turn_ms_max);
                self.step_at(late, Cause::Timer, Command::Wake)?;
                self.report(fence, Report::Stopped)
            }
        }
    }

    fn say(&mut self, delivery: Delivery, said: &PastWords) -> Result<MessageId, UnavailableError> {
        let message = self.way_in.ports.mint_message();
        let (words, attachments) = (encode_parts(&said.parts), encode(&said.attachments));
        self.messages.push(PastMessage { message, words, attachments, delivery });
        let command = Command::Say { message, by: self.by, delivery, under: None };
        self.step(Cause::Message(message), command)?;
        Ok(message)
    }

    fn report(&mut self, fence: Fence, report: Report) -> Result<(), UnavailableError> {
        self.step(Cause::Runner, Command::Report { fence, report })
    }

    fn fence(&self) -> Option<Fence> {
        self.session.running().and_then(|running| running.stage.fence())
    }

    fn step(&mut self, cause: Cause, command: Command) -> Result<(), UnavailableError> {
        self.step_at(self.now, cause, command)
    }

    fn step_at(&mut self, now: Moment, cause: Cause, command: Command) -> Result<(), UnavailableError> {
        // No keeper has had it yet, so its term is the one before all of theirs.
        let (term, slot, can_steer, forgets) = (Term(0), Slot::Free, true, false);
        let given = Given { now, term, policy: self.policy, slot, can_steer, forgets };
        let facts = self.session.decide(command, &given).map_err(|_: Refusal| impossible())?;
        for fact in facts {
            self.session.evolve(&fact);
            self.write(cause, fact);
        }
        Ok(())
    }

    fn write(&mut self, cause: Cause, fact: Fact) {
        self.facts.push(NewFact { at: self.now, cause, entry: Entry::Rule(fact) });
    }

    fn story(&mut self, turn: Turn, cause: Cause, story: &Story<'_>) {
        self.facts.push(NewFact { at: self.now, cause, entry: story.entry(turn) });
    }
}

/// Each step is one that the rules allow: if one is refused after all, nothing has been written.
fn impossible() -> UnavailableError {
    UnavailableError::Unavailable("the conversation cannot be told again".to_owned())
}

/// The word on the conversation as a whole, before anything else.
fn whole(export: &Export) -> Imported {
    let Export { session, org, by, turns, left_out, .. } = export;
    let mut text = format!("imported from {session} of {org:?}, exported by {by:?}: {} turns", turns.len());
    for (count, what) in [
        (left_out.turns, "earlier turns"),
        (left_out.messages, "messages that waited"),
        (left_out.questions, "open questions"),
        (left_out.changes, "changes of scope that waited"),
    ] {
        if count > 0 {
            text.push_str(&format!("; left out there: {count} {what}"));
        }
    }
    let at = export.at.0;
    Imported {
        text,
        session: session.to_string(),
        there: 0,
        agent: export.agent.clone(),
        began_ms: at,
        ended_ms: at,
        said: Vec::new(),
    }
}

/// The word on one turn.
fn one(session: SessionId, past: &PastTurn) -> Imported {
    let said = past.said.iter().map(|said| SaidThere { by: said.by.clone(), at_ms: said.at.0 });
    let names: Vec<_> = past.said.iter().map(|said| said.by.as_str()).collect();
    Imported {
        text: format!("turn {} there, said by {}", past.turn, names.join(", ")),
        session: session.to_string(),
        there: past.turn,
        agent: past.agent.clone(),
        began_ms: past.began_at.0,
        ended_ms: past.ended_at.0,
        said: said.collect(),
    }
}
