//! One match from a refusal to a status, a code and advice; and how a problem goes out.

use crate::wire::{answer_form, answerer_word, at};
use api::{AnsweredBefore, Code, Problem, TouchedSince};
use axum::response::{IntoResponse, Response};
use engine::{Refused, Settled};
use http::{HeaderValue, StatusCode, header};
use kernel::{EndWhy, SessionId};

/// Seconds after which a 503 may be asked again.
const RETRY_AFTER_SECONDS: u64 = 1;

/// A request that was not granted.
#[derive(Debug, Clone)]
pub(crate) struct No(pub(crate) Box<Problem>);

/// What a handler answers.
pub(crate) type Answer<T> = Result<T, No>;

impl No {
    pub(crate) fn new(code: Code, detail: impl Into<String>) -> Self {
        Self(Box::new(Problem::new(code, detail)))
    }

    /// With the field that is wrong.
    pub(crate) fn at(self, field: impl Into<String>) -> Self {
        Self(Box::new(self.0.at(field)))
    }

    /// With better advice.
    pub(crate) fn advise(self, hint: impl Into<String>) -> Self {
        Self(Box::new(self.0.advise(hint)))
    }

    /// With the seconds after which it is worth asking again, and advice that says so.
    pub(crate) fn after(self, seconds: u64, hint: impl Into<String>) -> Self {
        Self(Box::new(self.0.advise(hint).after(seconds)))
    }

    /// With how the question was answered before.
    fn answered(mut self, settled: Settled) -> Self {
        self.0.answered = Some(Box::new(AnsweredBefore {
            answer: answer_form(&settled.answer),
            by: answerer_word(settled.by),
            by_handle: settled.handle,
            at: settled.at.map(at),
        }));
        self.advise("it is settled; GET /api/v1/approvals/{id} shows how")
    }

    /// With the files that are in the way.
    fn touched(mut self, files: Vec<String>, more: usize) -> Self {
        self.0.touched = Some(Box::new(TouchedSince { files, more: more as u64 }));
        self
    }

    pub(crate) fn not_found(what: &'static str) -> Self {
        Refused::NotFound { what }.into()
    }
}

impl From<Refused> for No {
    fn from(refused: Refused) -> Self {
        let detail = refused.to_string();
        let no = |code| Self::new(code, detail.clone());
        match refused {
            Refused::NotFound { .. } => no(Code::NotFound),
            Refused::Unauthenticated => no(Code::Unauthenticated),
            Refused::NeedsRight(_) => no(Code::RightMissing),
            Refused::NeedsRole(_) => no(Code::RoleTooLow),
            Refused::AgentNotYours => no(Code::AgentNotYours).at("agent"),
            Refused::DirectoryNotYours => no(Code::DirectoryNotYours).at("directory"),
            Refused::BoundElsewhere => no(Code::BoundElsewhere),
            Refused::WrongSignIn => no(Code::WrongSignIn),
            Refused::Taken { what } => no(Code::Taken).at(what),
            Refused::LastOwner => no(Code::LastOwner),
            Refused::CannotOwn => no(Code::CannotOwn).at("to"),
            Refused::OrgTooManyOpen { .. } => no(Code::TooManyOrgSessions),
            Refused::WallNotProved { .. } => no(Code::WallNotProved),
            Refused::ShownOnce => {
                no(Code::IdempotencyConflict).advise("make another, with a fresh Idempotency-Key")
            }
            Refused::SessionEnded { why, .. } => no(Code::SessionEnded).advise(end_hint(why)),
            Refused::AddressNotYours => no(Code::AddressNotYours),
            Refused::Needs(_) => no(Code::NotAllowed),
            Refused::NotYourWords => no(Code::NotYourWords),
            Refused::KeyReused => no(Code::IdempotencyConflict),
            Refused::AlreadyImported { .. } => no(Code::AlreadyImported),
            Refused::BadExport { .. } => no(Code::BadExport),
            Refused::QueueFull { .. } => no(Code::QueueFull),
            Refused::TooManyOpen { .. } => no(Code::TooManyOpenSessions),
            Refused::UnknownAgent { known, .. } => {
                no(Code::UnknownAgent).at("agent").advise(format!("use one of: {}", known.join(", ")))
            }
            Refused::BadDirectory { .. } => no(Code::BadDirectory).at("directory"),
            Refused::Invalid { field, .. } => no(Code::Invalid).at(field),
            Refused::TooLate => no(Code::TooLate),
            Refused::Changed => no(Code::Changed),
            Refused::NotYoursToAnswer { .. } => no(Code::NotYoursToAnswer),
            Refused::UnfitAnswer { .. } => no(Code::UnfitAnswer).at("answer"),
            Refused::AnsweredBefore(settled) => no(Code::TooLate).answered(*settled),
            Refused::Lapsed { session, interrupted, .. } => lapsed(no(Code::Lapsed), session, interrupted),
            Refused::TooManyRules { .. } => no(Code::TooManyRules),
            Refused::Busy => no(Code::Busy),
            Refused::ScopeChanging => no(Code::ScopeChanging),
            Refused::InWorktree => no(Code::InWorktree),
            Refused::NotInWorktree => no(Code::NotInWorktree),
            Refused::OtherScope => no(Code::OtherScope),
            Refused::TouchedSince { files, more, .. } => no(Code::TouchedSince).touched(files, more),
            Refused::Stale => no(Code::Stale),
            Refused::WorktreeTrouble { .. } => no(Code::WorktreeTrouble),
            Refused::DiskFull => no(Code::DiskFull),
            Refused::Unavailable(_) => no(Code::Unavailable),
            Refused::Unclear => no(Code::Unclear),
        }
    }
}

/// What to say to an agent whose question lapsed with its turn.
const GO_ON: &str = "Go on. What you asked for is allowed once.";

/// Nothing goes on by itself, so whoever answers too late is told how to let it.
fn lapsed(no: No, session: SessionId, interrupted: bool) -> No {
    if !interrupted {
        return no.advise("nothing is left to answer; if it is still wanted, say so in a message of its own");
    }
    let body = serde_json::json!({ "to": { "session": session.to_string() }, "text": GO_ON });
    no.advise(format!(
        "to go on: homing send --session {session} \"{GO_ON}\", or POST /api/v1/messages {body}"
    ))
}

fn end_hint(why: EndWhy) -> &'static str {
    match why {
        EndWhy::Asked => "somebody ended it; start anew: say it to its conversation, or to {\"new\": {}}",
        EndWhy::Gone => {
            "the agent's own conversation is gone; start anew: say it to its conversation, or to {\"new\": {}}"
        }
    }
}

impl From<api::Invalid> for No {
    fn from(invalid: api::Invalid) -> Self {
        Self::new(Code::Invalid, format!("{}: {}", invalid.field, invalid.reason)).at(invalid.field)
    }
}

impl IntoResponse for No {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&*self.0).unwrap_or_default();
        let mut response = (status, body).into_response();
        // For whoever it passes on its way out.
        response.extensions_mut().insert(self.0.code);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        let later = (status == StatusCode::SERVICE_UNAVAILABLE).then_some(RETRY_AFTER_SECONDS);
        if let Some(seconds) = self.0.retry_after.or(later) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::{ApprovalForm, Grant, Right, Role, RuleId, Turn};

    #[test]
    fn every_refusal_has_its_status_and_the_engines_own_code() {
        let session = SessionId::from_bits(1);
        let (answer, by) = (kernel::Answer::No, kernel::Answerer::Nobody);
        let settled = Settled { answer, by, handle: None, at: None };
        let refusals = [
            (404, Refused::NotFound { what: "session" }),
            (403, Refused::NotYoursToAnswer { who: "ann".into(), rule: RuleId::from_bits(1) }),
            (422, Refused::UnfitAnswer { takes: ApprovalForm::Words }),
            (409, Refused::AnsweredBefore(Box::new(settled))),
            (409, Refused::Lapsed { session, turn: Turn(1), interrupted: true }),
            (409, Refused::Lapsed { session, turn: Turn(1), interrupted: false }),
            (429, Refused::TooManyRules { limit: 1 }),
            (401, Refused::Unauthenticated),
            (403, Refused::NeedsRight(Right::Manage)),
            (403, Refused::NeedsRole(Role::Admin)),
            (403, Refused::AgentNotYours),
            (403, Refused::DirectoryNotYours),
            (403, Refused::BoundElsewhere),
            (401, Refused::WrongSignIn),
            (409, Refused::Taken { what: "handle" }),
            (409, Refused::LastOwner),
            (409, Refused::CannotOwn),
            (429, Refused::OrgTooManyOpen { limit: 1 }),
            (409, Refused::WallNotProved { findings: vec!["it can read the database".into()] }),
            (409, Refused::ShownOnce),
            (409, Refused::SessionEnded { session, why: EndWhy::Asked }),
            (409, Refused::SessionEnded { session, why: EndWhy::Gone }),
            (403, Refused::AddressNotYours),
            (403, Refused::Needs(Grant::Manage)),
            (403, Refused::NotYourWords),
            (409, Refused::KeyReused),
            (409, Refused::AlreadyImported { session }),
            (422, Refused::BadExport { line: 1, reason: "no header".into() }),
            (429, Refused::QueueFull { limit: 1 }),
            (429, Refused::TooManyOpen { limit: 1 }),
            (409, Refused::UnknownAgent { name: "x".into(), known: vec!["scripted".into()] }),
            (409, Refused::BadDirectory { reason: "not there".into() }),
            (422, Refused::Invalid { field: "title", reason: "too long".into() }),
            (409, Refused::TooLate),
            (409, Refused::Changed),
            (409, Refused::Busy),
            (409, Refused::ScopeChanging),
            (409, Refused::InWorktree),
            (409, Refused::NotInWorktree),
            (409, Refused::OtherScope),
            (409, Refused::TouchedSince { turn: Turn(1), files: vec!["a.txt".into()], more: 2 }),
            (409, Refused::Stale),
            (409, Refused::WorktreeTrouble { why: "a script failed".into() }),
            (503, Refused::DiskFull),
            (503, Refused::Unavailable("later".into())),
            (503, Refused::Unclear),
        ];
        for (status, refused) in refusals {
            let code = refused.code();
            let No(problem) = refused.into();
            assert_eq!((problem.status, problem.code.word()), (status, code), "{problem:?}");
            let response = No(problem).into_response();
            let later = response.headers().contains_key(header::RETRY_AFTER);
            assert_eq!(later, status == 503, "a 503 says when to come back");
        }
    }
}
