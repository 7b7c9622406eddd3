//! From rows and facts to the wire. A rule fact is converted by an exhaustive match, so a new one does not compile
//! until it has a form here; a story fact is sent as the bytes that were stored.

use api::At;
use bytes::Bytes;
use engine::{Cause, LiveWords, ProgressUpdate, SessionProgress, SharedFact, StoredEntry, StoredFact};
use kernel::{
    Answer, Answerer, EndWhy, Fact, Failure, HoldWhy, Moment, Outcome, RefusedWhy, ReportKind, StopWhy,
};
use scope::delivery_word;
pub(crate) use scope::{change_of, delivery_form, delivery_of, origin_form, scope_form};
use serde::Serialize;
use std::io::Write;

mod scope;

pub(crate) fn at(moment: Moment) -> At {
    At(moment.0)
}

pub(crate) fn end_why(why: EndWhy) -> api::EndWhy {
    match why {
        EndWhy::Asked => api::EndWhy::Asked,
        EndWhy::Gone => api::EndWhy::Gone,
    }
}

pub(crate) fn previous(previous: Option<kernel::Previous>) -> Option<api::Previous> {
    previous.map(|previous| api::Previous {
        session: previous.session.to_string(),
        why: previous.ended.map(end_why),
    })
}

pub(crate) fn links(this: String, session: kernel::SessionId) -> api::Links {
    let session = format!("/api/v1/sessions/{session}");
    api::Links { this, facts: format!("{session}/facts"), session }
}

/// A fact as a stream sends it: `id:` is its number. Made once, by the first reader who needs it.
pub(crate) fn fact_frame(shared: &SharedFact) -> Bytes {
    shared.frame.get_or_init(|| frame(&shared.fact)).clone()
}

fn frame(fact: &StoredFact) -> Bytes {
    let mut bytes = Vec::with_capacity(256);
    let _ = write!(bytes, "id: {}\ndata: ", fact.number);
    let from = bytes.len();
    write_fact(&mut bytes, fact);
    unbroken(&mut bytes, from);
    bytes.extend_from_slice(b"\n\n");
    Bytes::from(bytes)
}

/// Words ahead of the log, as a stream sends them: without an `id:`, so that nobody resumes from them.
pub(crate) fn live_frame(live: &LiveWords) -> Bytes {
    let frame = || {
        let mut bytes = b"event: live\ndata: ".to_vec();
        let form = api::Live {
            turn: live.turn.0,
            kind: live.kind.to_owned(),
            part: live.part,
            offset: live.offset,
            text: live.text.clone(),
        };
        write_json(&mut bytes, &form);
        bytes.extend_from_slice(b"\n\n");
        Bytes::from(bytes)
    };
    live.frame.get_or_init(frame).clone()
}

/// Why something waits. A session that whoever asks may not see has no name here.
pub(crate) fn waiting_form(wait: engine::Wait) -> api::Waiting {
    use engine::WaitWhy::{
        Again, Asked, Directory, Errand, Message, OrgSlot, Scope, Slot, Starting, Stopping,
    };
    let form =
        |why: &str| api::Waiting { why: why.to_owned(), until: wait.until.map(at), ..Default::default() };
    let named = |neighbour| match neighbour {
        engine::Neighbour::Session(session) => Some(session.to_string()),
        engine::Neighbour::Hidden => None,
    };
    match wait.why {
        Message(message) => api::Waiting { message: Some(message.to_string()), ..form("message") },
        Directory { directory, neighbour } => {
            api::Waiting { directory: Some(directory), session: named(neighbour), ..form("directory") }
        }
        Slot { max, holder } => {
            api::Waiting { max: Some(max), session: holder.and_then(named), ..form("slot") }
        }
        OrgSlot { max, holder } => {
            api::Waiting { max: Some(max), session: holder.and_then(named), ..form("org_slot") }
        }
        Starting { agent } => api::Waiting { agent: Some(agent), ..form("starting") },
        Again { agent } => api::Waiting { agent: Some(agent), ..form("again") },
        Asked => form("asked"),
        Stopping => form("stopping"),
        Scope => form("scope"),
        Errand => form("errand"),
    }
}

/// The work that goes on for a session, on the wire.
pub(crate) fn progress_form(shown: SessionProgress) -> api::Progress {
    let (files, files_total) = shown.progress.files.map_or((None, None), |(done, all)| (Some(done), all));
    api::Progress {
        verb: shown.verb.to_owned(),
        subject: shown.subject,
        phase: shown.progress.phase.word().to_owned(),
        files,
        files_total,
        bytes: shown.progress.bytes,
        since: at(shown.since),
    }
}

/// The same as a stream sends it, without an `id:`; `null` once the work is over.
pub(crate) fn progress_frame(update: &ProgressUpdate) -> Bytes {
    let frame = || {
        let mut bytes = b"event: progress\ndata: ".to_vec();
        write_json(&mut bytes, &update.progress.clone().map(progress_form));
        bytes.extend_from_slice(b"\n\n");
        Bytes::from(bytes)
    };
    update.frame.get_or_init(frame).clone()
}

/// The readiness of a session, as a stream sends it: without an `id:`, too.
pub(crate) fn ready_frame(ready: &api::Readiness) -> Bytes {
    let mut bytes = b"event: readiness\ndata: ".to_vec();
    write_json(&mut bytes, ready);
    bytes.extend_from_slice(b"\n\n");
    Bytes::from(bytes)
}

/// A fact as one JSON object.
pub(crate) fn write_fact(bytes: &mut Vec<u8>, fact: &StoredFact) {
    let (number, at) = (fact.number, at(fact.at));
    let _ = write!(bytes, r#"{{"number":{number},"at":"{at}","cause":""#);
    // Ids and the three words need no escaping.
    let _ = match fact.cause {
        Cause::Message(message) => write!(bytes, "{message}"),
        Cause::Request(request) => write!(bytes, "{request}"),
        Cause::Runner => write!(bytes, "runner"),
        Cause::Timer => write!(bytes, "timer"),
        Cause::Keeper => write!(bytes, "keeper"),
    };
    bytes.extend_from_slice(b"\",");
    match &fact.entry {
        StoredEntry::Rule(rule) => write_object(bytes, &rule_fact(rule)),
        StoredEntry::Story { body: Some(body), .. } => {
            bytes.extend_from_slice(body.strip_prefix(b"{").unwrap_or(b"}"));
        }
        StoredEntry::Story { turn, kind, body: None } => {
            let story = api::Story::Forgotten { kind: kind.clone() };
            write_object(bytes, &api::StoryFact { v: 1, turn: turn.0, story });
        }
    }
}

fn write_object(bytes: &mut Vec<u8>, object: &impl Serialize) {
    let from = bytes.len();
    write_json(bytes, object);
    // The brace that opens it is ours already.
    bytes.remove(from);
}

fn write_json(bytes: &mut Vec<u8>, value: &impl Serialize) {
    serde_json::to_writer(bytes, value).expect("wire types are plain data, and a vector takes every byte");
}

/// A line break would end the field. JSON has them only between its parts, where a blank says the same.
fn unbroken(bytes: &mut [u8], from: usize) {
    for byte in &mut bytes[from..] {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
}

/// A rule fact's form on the wire.
fn rule_fact(fact: &Fact) -> api::RuleFact {
    use api::RuleFact as Wire;
    match fact {
        Fact::Opened { scope, origin, enter: _ } => {
            Wire::Opened { scope: scope_form(scope), origin: origin.map(origin_form) }
        }
        Fact::Queued { message, by, delivery, epoch } => Wire::Queued {
            message: text(message),
            by: text(by),
            delivery: delivery_word(*delivery).to_owned(),
            epoch: epoch.0,
        },
        Fact::Edited { message, revision } => Wire::Edited { message: text(message), revision: *revision },
        Fact::Withdrawn { message, by } => Wire::Withdrawn { message: text(message), by: text(by) },
        Fact::Held { message, why, expires } => {
            Wire::Held { message: text(message), why: hold_word(*why), expires: at(*expires) }
        }
        Fact::Released { message, epoch } => Wire::Released { message: text(message), epoch: epoch.0 },
        Fact::Steered { message, turn } => Wire::Steered { message: text(message), turn: turn.0 },
        Fact::Missed { message } => Wire::Missed { message: text(message) },
        Fact::Reordered { order } => Wire::Reordered { order: order.iter().map(text).collect() },
        Fact::MessageRefused { message, why } => {
            Wire::MessageRefused { message: text(message), why: refused_word(*why) }
        }
        Fact::Crowded { until } => Wire::Crowded { until: at(*until) },
        Fact::TurnStarted { turn, message } => Wire::TurnStarted { turn: turn.0, message: text(message) },
        Fact::AttemptStarted { fence, until } => {
            Wire::AttemptStarted { fence: fence_form(*fence), until: at(*until) }
        }
        Fact::Confirmed { native, epoch } => {
            Wire::Confirmed { native: native.id.clone(), place: native.place.clone(), epoch: epoch.0 }
        }
        Fact::Handed { turn, attempt } => Wire::Handed { turn: turn.0, attempt: attempt.0 },
        Fact::AttemptFailed { turn, attempt, failure, again_at } => Wire::AttemptFailed {
            turn: turn.0,
            attempt: attempt.0,
            failure: failure_form(*failure),
            again_at: at(*again_at),
        },
        Fact::Asked { approval, turn, until, terms: _ } => {
            Wire::Asked { approval: text(approval), turn: turn.0, until: at(*until) }
        }
        Fact::Answered { approval, answer, by } => {
            Wire::Answered { approval: text(approval), answer: answer_form(answer), by: answerer_word(*by) }
        }
        Fact::Lapsed { approval } => Wire::Lapsed { approval: text(approval) },
        Fact::StopAsked { turn, why } => stop_form(turn.0, *why),
        Fact::TurnEnded { turn, outcome } => outcome_form(turn.0, *outcome),
        Fact::EndAsked { by } => Wire::EndAsked { by: text(by) },
        Fact::Ended { why } => Wire::Ended { why: end_why(*why) },
        Fact::Stale { fence, kind } => Wire::Stale { fence: fence_form(*fence), kind: kind_word(*kind) },
        Fact::ChangeAsked { .. }
        | Fact::ScopeKept { .. }
        | Fact::ScopeChanged { .. }
        | Fact::ErrandStarted { .. }
        | Fact::ErrandFailed { .. }
        | Fact::Undone { .. }
        | Fact::Redone { .. }
        | Fact::Learned { .. }
        | Fact::StaleErrand { .. } => scope::fact_form(fact),
    }
}

fn text(id: impl ToString) -> String {
    id.to_string()
}

fn fence_form(fence: kernel::Fence) -> api::Fence {
    api::Fence { term: fence.term.0, epoch: fence.epoch.0, turn: fence.turn.0, attempt: fence.attempt.0 }
}

pub(crate) fn answer_form(answer: &Answer) -> api::Answer {
    match answer {
        Answer::Yes => api::Answer::Yes,
        Answer::No => api::Answer::No,
        Answer::Chose(option) => api::Answer::Chose(*option),
        Answer::Said(words) => api::Answer::Said(words.clone()),
    }
}

/// The other way round.
pub(crate) fn answer_of(answer: api::Answer) -> Answer {
    match answer {
        api::Answer::Yes => Answer::Yes,
        api::Answer::No => Answer::No,
        api::Answer::Chose(option) => Answer::Chose(option),
        api::Answer::Said(words) => Answer::Said(words),
    }
}

pub(crate) fn answerer_word(by: Answerer) -> Option<String> {
    match by {
        Answerer::Person(person) => Some(text(person)),
        Answerer::Rule(rule) => Some(text(rule)),
        Answerer::Policy => Some("policy".to_owned()),
        Answerer::Nobody => None,
    }
}

fn failure_form(failure: Failure) -> api::Failure {
    match failure {
        Failure::Gone => api::Failure::Gone,
        Failure::Busy => api::Failure::Busy,
        Failure::Transient => api::Failure::Transient,
        Failure::Refused => api::Failure::Refused,
    }
}

fn outcome_form(turn: u32, outcome: Outcome) -> api::RuleFact {
    let (outcome, failure) = outcome_words(outcome);
    api::RuleFact::TurnEnded { turn, outcome, failure }
}

pub(crate) fn outcome_words(outcome: Outcome) -> (api::Outcome, Option<api::Failure>) {
    match outcome {
        Outcome::Answered => (api::Outcome::Answered, None),
        Outcome::Stopped => (api::Outcome::Stopped, None),
        Outcome::Interrupted => (api::Outcome::Interrupted, None),
        Outcome::Failed(failure) => (api::Outcome::Failed, Some(failure_form(failure))),
        Outcome::TimedOut => (api::Outcome::TimeLimit, None),
    }
}

fn stop_form(turn: u32, why: StopWhy) -> api::RuleFact {
    let (why, by) = match why {
        StopWhy::Asked(by) => ("asked", Some(by.to_string())),
        StopWhy::TimeLimit => ("time_limit", None),
        StopWhy::Ending => ("ending", None),
        StopWhy::Revoked => ("revoked", None),
        StopWhy::HandedOver => ("handed_over", None),
    };
    api::RuleFact::StopAsked { turn, why: why.to_owned(), by }
}

fn hold_word(why: HoldWhy) -> String {
    match why {
        HoldWhy::Asked => "asked",
        HoldWhy::AfterFailure => "after_failure",
        HoldWhy::OtherScope => "other_scope",
    }
    .to_owned()
}

fn refused_word(why: RefusedWhy) -> String {
    match why {
        RefusedWhy::SessionEnded => "session_ended",
        RefusedWhy::Expired => "expired",
        RefusedWhy::NotAllowed => "not_allowed",
        RefusedWhy::HandedOver => "handed_over",
    }
    .to_owned()
}

fn kind_word(kind: ReportKind) -> String {
    match kind {
        ReportKind::Ready => "ready",
        ReportKind::Said => "said",
        ReportKind::Asked => "asked",
        ReportKind::Withdrawn => "withdrawn",
        ReportKind::Missed => "missed",
        ReportKind::Finished => "finished",
        ReportKind::Failed => "failed",
        ReportKind::Stopped => "stopped",
        ReportKind::Lost => "lost",
    }
    .to_owned()
}

#[cfg(test)]
mod tests;
