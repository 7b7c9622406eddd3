//! Small things that are stored as one stable word or one short text.

use super::Unreadable;
use crate::project::{WHY_WORDS, failure_word};
use crate::{Cause, OutgoingKind, OutgoingState, Purpose, ReceiptState, TitleBy, Verdict};
use kernel::{
    Answerer, Delivery, EndWhy, ErrandKind, Failure, Grant, HoldWhy, Outcome, Refusal, RefusedWhy,
    ReportKind, Right, Role,
};
use std::borrow::Cow;

/// Something that is stored as one word.
pub(super) trait Worded: Copy {
    fn word(self) -> &'static str;
    fn parse(text: &str) -> Option<Self>;
}

macro_rules! words {
    ($($(#[$doc:meta])* $kind:ty: $word:ident, $parse:ident { $($variant:path = $text:literal,)* })*) => {$(
        $(#[$doc])*
        pub fn $word(value: $kind) -> &'static str {
            match value { $($variant => $text,)* }
        }

        /// The other way round; none for a word this version does not know.
        pub fn $parse(text: &str) -> Option<$kind> {
            match text { $($text => Some($variant),)* _ => None }
        }

        impl Worded for $kind {
            fn word(self) -> &'static str { $word(self) }
            fn parse(text: &str) -> Option<Self> { $parse(text) }
        }
    )*};
}

words! {
    /// Where a message stands.
    ReceiptState: state_word, state_parse {
        ReceiptState::Waiting = "waiting",
        ReceiptState::Held = "held",
        ReceiptState::Running = "running",
        ReceiptState::Answered = "answered",
        ReceiptState::Failed = "failed",
        ReceiptState::Stopped = "stopped",
        ReceiptState::Withdrawn = "withdrawn",
        ReceiptState::Refused = "refused",
    }
    /// Where a reply stands.
    OutgoingState: outgoing_state_word, outgoing_state_parse {
        OutgoingState::Waiting = "waiting",
        OutgoingState::Sending = "sending",
        OutgoingState::Sent = "sent",
        OutgoingState::Unknown = "unknown",
        OutgoingState::Parked = "parked",
    }
    /// Why a wish is not granted.
    Refusal: refusal_word, refusal_parse {
        Refusal::TooLate = "too_late",
        Refusal::Changed = "changed",
        Refusal::Ended = "ended",
        Refusal::AlreadyOpen = "already_open",
        Refusal::NotOpen = "not_open",
        Refusal::Busy = "busy",
        Refusal::Changing = "changing",
        Refusal::InWorktree = "in_worktree",
        Refusal::NotInWorktree = "not_in_worktree",
        Refusal::NoSuchTurn = "no_such_turn",
        Refusal::OtherScope = "other_scope",
        Refusal::NotListening = "not_listening",
        Refusal::Unfit = "unfit",
        Refusal::NotAllowed = "not_allowed",
    }
    /// Why a session ended.
    EndWhy: end_word, end_parse {
        EndWhy::Asked = "asked",
        EndWhy::Gone = "gone",
    }
    /// The one who gave a session its title.
    TitleBy: title_by_word, title_by_parse {
        TitleBy::Person = "person",
        TitleBy::Agent = "agent",
        TitleBy::Words = "words",
    }
    /// Why a message is held.
    HoldWhy: hold_word, hold_parse {
        HoldWhy::Asked = "asked",
        HoldWhy::AfterFailure = "after_failure",
        HoldWhy::OtherScope = "other_scope",
    }
    /// Why a message was refused after it was accepted.
    RefusedWhy: refused_word, refused_parse {
        RefusedWhy::SessionEnded = "session_ended",
        RefusedWhy::Expired = "expired",
        RefusedWhy::NotAllowed = "not_allowed",
        RefusedWhy::HandedOver = "handed_over",
    }
    /// The way a message is to reach a session whose turn is under way.
    Delivery: delivery_word, delivery_parse {
        Delivery::Queue = "queue",
        Delivery::Interrupt = "interrupt",
        Delivery::Steer = "steer",
    }
    /// The kinds of what is asked of the outside.
    ErrandKind: errand_word, errand_parse {
        ErrandKind::Enter = "enter",
        ErrandKind::Undo = "undo",
        ErrandKind::Redo = "redo",
        ErrandKind::Commands = "commands",
        ErrandKind::Models = "models",
        ErrandKind::Files = "files",
        ErrandKind::Diff = "diff",
    }
    /// The grant of a person on a session.
    Grant: grant_word, grant_parse {
        Grant::View = "view",
        Grant::Prompt = "prompt",
        Grant::Manage = "manage",
    }
    /// The role of a person in their org.
    Role: role_word, role_parse {
        Role::Viewer = "viewer",
        Role::Member = "member",
        Role::Admin = "admin",
        Role::Owner = "owner",
    }
    /// The right of a credential.
    Right: right_word, right_parse {
        Right::Read = "read",
        Right::Prompt = "prompt",
        Right::Approve = "approve",
        Right::Manage = "manage",
        Right::Admin = "admin",
    }
    /// The purpose of a credential.
    Purpose: purpose_word, purpose_parse {
        Purpose::Machine = "machine",
        Purpose::Browser = "browser",
        Purpose::Cli = "cli",
        Purpose::Api = "api",
        Purpose::Turn = "turn",
    }
    /// The kinds of reports.
    ReportKind: report_word, report_parse {
        ReportKind::Ready = "ready",
        ReportKind::Said = "said",
        ReportKind::Asked = "asked",
        ReportKind::Withdrawn = "withdrawn",
        ReportKind::Missed = "missed",
        ReportKind::Finished = "finished",
        ReportKind::Failed = "failed",
        ReportKind::Stopped = "stopped",
        ReportKind::Lost = "lost",
    }
}

/// The failure of this word (`project::failure_word`); none for a word this version does not know.
pub fn failure_parse(text: &str) -> Option<Failure> {
    Failure::ALL.into_iter().find(|failure| failure_word(*failure) == text)
}

/// The outcome of a turn: of one that failed, the word of its failure.
pub fn outcome_word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Answered => "answered",
        Outcome::Stopped => "stopped",
        Outcome::Interrupted => "interrupted",
        Outcome::TimedOut => "time_limit",
        Outcome::Failed(failure) => failure_word(failure),
    }
}

/// The other way round; none for a word this version does not know.
pub fn outcome_parse(text: &str) -> Option<Outcome> {
    let plain = [Outcome::Answered, Outcome::Stopped, Outcome::Interrupted, Outcome::TimedOut];
    let plain = plain.into_iter().find(|outcome| outcome_word(*outcome) == text);
    plain.or_else(|| failure_parse(text).map(Outcome::Failed))
}

impl Worded for Failure {
    fn word(self) -> &'static str {
        failure_word(self)
    }
    fn parse(text: &str) -> Option<Self> {
        failure_parse(text)
    }
}

/// The very same word for why a message is held, failed or refused, as `project` gave it.
pub fn why_parse(text: &str) -> Option<&'static str> {
    WHY_WORDS.into_iter().find(|word| *word == text)
}

/// The prefix of the words of a verdict that something has failed.
const FAILED: &str = "failed: ";

/// The prefix of a verdict that has an answer with it.
const TOLD: &str = "told: ";

/// The keeper's verdict on a wish: `done`, `told: ` and what came of it, the word of the refusal, or `failed: ` and why.
pub fn verdict_text(verdict: &Verdict) -> Cow<'static, str> {
    match verdict {
        Verdict::Done => "done".into(),
        Verdict::Told { what } => format!("{TOLD}{what}").into(),
        Verdict::Refused(refusal) => refusal_word(*refusal).into(),
        Verdict::Failed { why } => format!("{FAILED}{why}").into(),
    }
}

/// The other way round; none for a word this version does not know.
pub fn verdict_parse(text: &str) -> Option<Verdict> {
    if let Some(what) = text.strip_prefix(TOLD) {
        return Some(Verdict::Told { what: what.to_owned() });
    }
    match (text, text.strip_prefix(FAILED)) {
        ("done", _) => Some(Verdict::Done),
        (_, Some(why)) => Some(Verdict::Failed { why: why.to_owned() }),
        (word, None) => refusal_parse(word).map(Verdict::Refused),
    }
}

/// The cause of a fact: the id of a message or a wish, or a word.
pub fn cause_text(cause: Cause) -> String {
    match cause {
        Cause::Message(message) => message.to_string(),
        Cause::Request(request) => request.to_string(),
        Cause::Runner => "runner".into(),
        Cause::Timer => "timer".into(),
        Cause::Keeper => "keeper".into(),
    }
}

/// The other way round.
pub fn cause_parse(text: &str) -> Result<Cause, Unreadable> {
    match text {
        "runner" => Ok(Cause::Runner),
        "timer" => Ok(Cause::Timer),
        "keeper" => Ok(Cause::Keeper),
        id => (id.parse().map(Cause::Message))
            .or_else(|_| id.parse().map(Cause::Request))
            .map_err(|_| Unreadable { what: "cause", why: format!("`{text}`") }),
    }
}

/// The subject of a reply: `final`, or the id of the question.
pub fn outgoing_kind_text(kind: OutgoingKind) -> String {
    match kind {
        OutgoingKind::Final => "final".into(),
        OutgoingKind::Question(approval) => approval.to_string(),
    }
}

/// The other way round.
pub fn outgoing_kind_parse(text: &str) -> Result<OutgoingKind, Unreadable> {
    match text {
        "final" => Ok(OutgoingKind::Final),
        id => (id.parse().map(OutgoingKind::Question))
            .map_err(|_| Unreadable { what: "kind of reply", why: format!("`{text}`") }),
    }
}

/// The answerer of a question: an id, or a word; nothing if nobody did.
pub fn answerer_text(by: Answerer) -> Option<String> {
    match by {
        Answerer::Person(person) => Some(person.to_string()),
        Answerer::Rule(rule) => Some(rule.to_string()),
        Answerer::Policy => Some("policy".into()),
        Answerer::Nobody => None,
    }
}

/// The other way round.
pub fn answerer_parse(text: Option<&str>) -> Result<Answerer, Unreadable> {
    match text {
        None => Ok(Answerer::Nobody),
        Some("policy") => Ok(Answerer::Policy),
        Some(id) => (id.parse().map(Answerer::Person))
            .or_else(|_| id.parse().map(Answerer::Rule))
            .map_err(|_| Unreadable { what: "answerer", why: format!("`{id}`") }),
    }
}

/// The words of a message, from their stored form; none if this version does not know that.
pub fn said_text(stored: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct SaidPart {
        text: String,
    }
    let parts: Vec<SaidPart> = serde_json::from_slice(stored).ok()?;
    Some(parts.into_iter().map(|part| part.text).collect::<Vec<_>>().join("\n"))
}
