//! One match from a refusal to a status, a code and advice; and how a problem goes out.

use crate::wire::{answer_form, answerer_word, at};
use api::{AnsweredBefore, Code, Problem, TouchedSince};
use axum::response::{IntoResponse, Response};
use engine::{Refused, Settled};
use http::{HeaderValue, StatusCode, header};
use kernel::{EndWhy, SessionId};

/// Seconds after which a 503 may be asked again.
const RETRY_AFTER_SECONDS: u64 = 1;

/// The problem that a request is answered with when it is not granted.
#[derive(Debug, Clone)]
pub(crate) struct ApiError(pub(crate) Box<Problem>);

/// The answer of a handler.
pub(crate) type ApiResult<T> = Result<T, ApiError>;

impl ApiError {
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

impl From<Refused> for ApiError {
    fn from(refused: Refused) -> Self {
        let detail = refused.to_string();
        let error = |code| Self::new(code, detail.clone());
        match refused {
            Refused::NotFound { .. } => error(Code::NotFound),
            Refused::Unauthenticated => error(Code::Unauthenticated),
            Refused::NeedsRight(_) => error(Code::RightMissing),
            Refused::NeedsRole(_) => error(Code::RoleTooLow),
            Refused::AgentNotYours => error(Code::AgentNotYours).at("agent"),
            Refused::DirectoryNotYours => error(Code::DirectoryNotYours).at("directory"),
            Refused::BoundElsewhere => error(Code::BoundElsewhere),
            Refused::WrongSignIn => error(Code::WrongSignIn),
            Refused::Taken { what } => error(Code::Taken).at(what),
            Refused::LastOwner => error(Code::LastOwner),
            Refused::CannotOwn => error(Code::CannotOwn).at("to"),
            Refused::OrgTooManyOpen { .. } => error(Code::TooManyOrgSessions),
            Refused::WallNotProved { .. } => error(Code::WallNotProved),
            Refused::ShownOnce => {
                error(Code::IdempotencyConflict).advise("make another, with a fresh Idempotency-Key")
            }
            Refused::SessionEnded { why, .. } => error(Code::SessionEnded).advise(end_hint(why)),
            Refused::AddressNotYours => error(Code::AddressNotYours),
            Refused::Needs(_) => error(Code::NotAllowed),
            Refused::NotYourWords => error(Code::NotYourWords),
            Refused::KeyReused => error(Code::IdempotencyConflict),
            Refused::AlreadyImported { .. } => error(Code::AlreadyImported),
            Refused::BadExport { .. } => error(Code::BadExport),
            Refused::QueueFull { .. } => error(Code::QueueFull),
            Refused::TooManyOpen { .. } => error(Code::TooManyOpenSessions),
            Refused::UnknownAgent { known, .. } => {
                error(Code::UnknownAgent).at("agent").advise(format!("use one of: {}", known.join(", ")))
            }
            Refused::BadDirectory { .. } => error(Code::BadDirectory).at("directory"),
            Refused::Invalid { field, .. } => error(Code::Invalid).at(field),
            Refused::TooLate => error(Code::TooLate),
            Refused::Changed => error(Code::Changed),
            Refused::NotYoursToAnswer { .. } => error(Code::NotYoursToAnswer),
            Refused::UnfitAnswer { .. } => error(Code::UnfitAnswer).at("answer"),
            Refused::AnsweredBefore(settled) => error(Code::TooLate).answered(*settled),
            Refused::Lapsed { session, interrupted, .. } => lapsed(error(Code::Lapsed), session, interrupted),
            Refused::TooManyRules { .. } => error(Code::TooManyRules),
            Refused::Busy => error(Code::Busy),
            Refused::ScopeChanging => error(Code::ScopeChanging),
            Refused::InWorktree => error(Code::InWorktree),
            Refused::NotInWorktree => error(Code::NotInWorktree),
            Refused::OtherScope => error(Code::OtherScope),
            Refused::TouchedSince { files, more, .. } => error(Code::TouchedSince).touched(files, more),
            Refused::Stale => error(Code::Stale),
            Refused::WorktreeTrouble { .. } => error(Code::WorktreeTrouble),
            Refused::DiskFull => error(Code::DiskFull),
            Refused::Unavailable(_) => error(Code::Unavailable),
            Refused::Unclear => error(Code::Unclear),
        }
    }
}

/// The advice to an agent whose question lapsed with its turn.
const GO_ON: &str = "Go on. What you asked for is allowed once.";

/// Nothing goes on by itself, so whoever answers too late is told how to let it.
fn lapsed(error: ApiError, session: SessionId, interrupted: bool) -> ApiError {
    if !interrupted {
        return error
            .advise("nothing is left to answer; if it is still wanted, say so in a message of its own");
    }
    let body = serde_json::json!({ "to": { "session": session.to_string() }, "text": GO_ON });
    error.advise(format!(
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

impl From<api::Invalid> for ApiError {
    fn from(invalid: api::Invalid) -> Self {
        Self::new(Code::Invalid, format!("{}: {}", invalid.field, invalid.reason)).at(invalid.field)
    }
}

impl IntoResponse for ApiError {
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
            let ApiError(problem) = refused.into();
            assert_eq!((problem.status, problem.code.word()), (status, code), "{problem:?}");
            let response = ApiError(problem).into_response();
            let later = response.headers().contains_key(header::RETRY_AFTER);
            assert_eq!(later, status == 503, "a 503 says when to come back");
        }
    }
}
