//! One match for each of the engine's errors, from a refusal to a status, a code and advice; and how a problem goes out.

use crate::wire::{answer_form, answerer_word, at};
use api::{AnsweredBefore, Code, FilesInTheWay, Problem, TouchedSince, UnsureChanges};
use axum::response::{IntoResponse, Response};
use engine::{
    AccessError, BadDirectory, ConflictError, InvalidError, MergeObstacle, PeopleError, ScopeError, Settled,
    Taken, UnavailableError, ViewError, WayInError, WorktreeError,
};
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

    /// With the files of which it is not certain whose changes they are.
    fn unsure(mut self, files: Vec<String>, more: usize) -> Self {
        self.0.unsure = Some(Box::new(UnsureChanges { files, more: more as u64 }));
        self
    }

    /// With the files because of which nothing was brought back.
    fn in_the_way(mut self, files: Vec<String>, more: usize) -> Self {
        self.0.in_the_way = Some(Box::new(FilesInTheWay { files, more: more as u64 }));
        self
    }

    pub(crate) fn not_found(what: &'static str) -> Self {
        AccessError::NotFound { what }.into()
    }
}

impl From<WayInError> for ApiError {
    fn from(refused: WayInError) -> Self {
        let detail = refused.to_string();
        let error = |code| Self::new(code, detail);
        match refused {
            WayInError::Access(part) => part.into(),
            WayInError::Unavailable(part) => part.into(),
            WayInError::Invalid(part) => part.into(),
            WayInError::Conflict(part) => part.into(),
            WayInError::Scope(part) => part.into(),
            WayInError::BadDirectory(part) => part.into(),
            WayInError::AlreadyImported { .. } => error(Code::AlreadyImported),
            WayInError::BadExport { .. } => error(Code::BadExport),
            WayInError::NotTaken { .. } => error(Code::AttachmentNotTaken).at("parts"),
            WayInError::QueueFull { .. } => error(Code::QueueFull),
            WayInError::TooManyOpen { .. } => error(Code::TooManyOpenSessions),
            WayInError::OrgTooManyOpen { .. } => error(Code::TooManyOrgSessions),
            WayInError::TooManyWords { .. } => error(Code::TooMuchOnDisk),
            WayInError::NotYoursToAnswer { .. } => error(Code::NotYoursToAnswer),
            WayInError::UnfitAnswer { .. } => error(Code::UnfitAnswer).at("answer"),
            WayInError::AnsweredBefore(settled) => error(Code::TooLate).answered(*settled),
            WayInError::Lapsed { session, interrupted, .. } => {
                lapsed(error(Code::Lapsed), session, interrupted)
            }
            WayInError::NotInWorktree => error(Code::NotInWorktree),
            WayInError::OtherScope => error(Code::OtherScope),
            WayInError::OtherAgent { .. } => error(Code::OtherAgent).at("expect"),
            WayInError::TouchedSince { files, more, .. } => error(Code::TouchedSince).touched(files, more),
            WayInError::UnsureChanges { files, more, .. } => error(Code::UnsureChanges).unsure(files, more),
        }
    }
}

impl From<ViewError> for ApiError {
    fn from(refused: ViewError) -> Self {
        match refused {
            ViewError::Access(part) => part.into(),
            ViewError::Unavailable(part) => part.into(),
            ViewError::Invalid(part) => part.into(),
            ViewError::BadDirectory(part) => part.into(),
            ViewError::Scope(part) => part.into(),
            ViewError::Stale => Self::new(Code::Stale, refused.to_string()),
            ViewError::OtherScope => Self::new(Code::OtherScope, refused.to_string()),
        }
    }
}

impl From<PeopleError> for ApiError {
    fn from(refused: PeopleError) -> Self {
        let detail = refused.to_string();
        let error = |code| Self::new(code, detail);
        match refused {
            PeopleError::Access(part) => part.into(),
            PeopleError::Unavailable(part) => part.into(),
            PeopleError::Invalid(part) => part.into(),
            PeopleError::Conflict(part) => part.into(),
            PeopleError::Taken(part) => part.into(),
            PeopleError::BadDirectory(part) => part.into(),
            PeopleError::WrongSignIn => error(Code::WrongSignIn),
            PeopleError::LastOwner => error(Code::LastOwner),
            PeopleError::CannotOwn => error(Code::CannotOwn).at("to"),
            PeopleError::OwnsAlready => error(Code::OwnsAlready).at("to"),
            PeopleError::OfferedAlready => error(Code::OfferedAlready),
            PeopleError::NeedsSignIn => error(Code::NeedsSignIn),
            PeopleError::TooManyOpen { .. } => error(Code::TooManyOpenSessions),
            PeopleError::TooManyWords { .. } => error(Code::TooMuchOnDisk),
            PeopleError::WallNotProved { .. } => error(Code::WallNotProved),
            PeopleError::ShownOnce => {
                error(Code::IdempotencyConflict).advise("make another, with a fresh Idempotency-Key")
            }
        }
    }
}

impl From<WorktreeError> for ApiError {
    fn from(refused: WorktreeError) -> Self {
        let detail = refused.to_string();
        match refused {
            WorktreeError::Merge { kind, files, more } => {
                let code = match kind {
                    MergeObstacle::Conflicts => Code::MergeConflicts,
                    MergeObstacle::Changed => Code::TargetChanged,
                    MergeObstacle::Uncommitted => Code::Uncommitted,
                };
                Self::new(code, detail).in_the_way(files, more)
            }
            WorktreeError::Access(part) => part.into(),
            WorktreeError::Unavailable(part) => part.into(),
            WorktreeError::Conflict(part) => part.into(),
            WorktreeError::Scope(part) => part.into(),
            WorktreeError::Taken(part) => part.into(),
        }
    }
}

impl From<AccessError> for ApiError {
    fn from(refused: AccessError) -> Self {
        let error = |code| Self::new(code, refused.to_string());
        match refused {
            AccessError::NotFound { .. } => error(Code::NotFound),
            AccessError::Unauthenticated => error(Code::Unauthenticated),
            AccessError::NeedsRight(_) => error(Code::RightMissing),
            AccessError::NeedsRole(_) => error(Code::RoleTooLow),
            AccessError::Needs(_) => error(Code::NotAllowed),
            AccessError::AgentNotYours => error(Code::AgentNotYours).at("agent"),
            AccessError::DirectoryNotYours => error(Code::DirectoryNotYours).at("directory"),
            AccessError::BoundElsewhere => error(Code::BoundElsewhere),
            AccessError::AddressNotYours => error(Code::AddressNotYours),
            AccessError::NotYourWords => error(Code::NotYourWords),
        }
    }
}

impl From<UnavailableError> for ApiError {
    fn from(refused: UnavailableError) -> Self {
        let code = match refused {
            UnavailableError::DiskFull => Code::DiskFull,
            UnavailableError::Unavailable(_) => Code::Unavailable,
            UnavailableError::Unclear => Code::Unclear,
        };
        Self::new(code, refused.to_string())
    }
}

impl From<ConflictError> for ApiError {
    fn from(refused: ConflictError) -> Self {
        let detail = refused.to_string();
        let error = |code| Self::new(code, detail);
        match refused {
            ConflictError::KeyReused => error(Code::IdempotencyConflict),
            ConflictError::TooLate => error(Code::TooLate),
            ConflictError::Changed => error(Code::Changed),
            ConflictError::NotListening => error(Code::NotListening),
            ConflictError::SessionEnded { why, .. } => error(Code::SessionEnded).advise(end_hint(why)),
            ConflictError::UnknownAgent { known, .. } => {
                error(Code::UnknownAgent).at("agent").advise(format!("use one of: {}", known.join(", ")))
            }
            ConflictError::UnknownModel { offered, .. } => {
                error(Code::UnknownModel).at("model").advise(format!("it offers {}", offered.join(", ")))
            }
            ConflictError::AgentLeft { known, .. } => error(Code::UnknownAgent)
                .at("agent")
                .advise(format!("name another one in `if_new.agent`, one of: {}", known.join(", "))),
            ConflictError::TreeForgotten { .. } => error(Code::TreeForgotten)
                .advise("fork after another turn (`homing diff TURN` tells whether it is remembered), or begin anew in a worktree"),
            ConflictError::TooManyRules { .. } => error(Code::TooManyRules),
        }
    }
}

impl From<ScopeError> for ApiError {
    fn from(refused: ScopeError) -> Self {
        let code = match refused {
            ScopeError::Busy => Code::Busy,
            ScopeError::ScopeChanging => Code::ScopeChanging,
            ScopeError::InWorktree => Code::InWorktree,
            ScopeError::WorktreeTrouble { .. } => Code::WorktreeTrouble,
            ScopeError::TooManyTreeBytes { .. } | ScopeError::TooManySnapshotBytes { .. } => {
                Code::TooMuchOnDisk
            }
        };
        Self::new(code, refused.to_string())
    }
}

impl From<InvalidError> for ApiError {
    fn from(refused: InvalidError) -> Self {
        Self::new(Code::Invalid, refused.to_string()).at(refused.field)
    }
}

impl From<BadDirectory> for ApiError {
    fn from(refused: BadDirectory) -> Self {
        Self::new(Code::BadDirectory, refused.to_string()).at("directory")
    }
}

impl From<Taken> for ApiError {
    fn from(refused: Taken) -> Self {
        Self::new(Code::Taken, refused.to_string()).at(refused.what)
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

    /// Every error with its status: as itself, or through the handle whose part it is.
    fn refusals() -> Vec<(u16, &'static str, ApiError)> {
        let session = SessionId::from_bits(1);
        let (answer, by) = (kernel::Answer::No, kernel::Answerer::Nobody);
        let settled = Settled { answer, by, handle: None, at: None };
        let (name, known) = ("x".to_owned(), vec!["scripted".to_owned()]);
        let (agent, offered) = ("scripted".to_owned(), vec!["small".to_owned()]);
        let unknown_model = ConflictError::UnknownModel { name: name.clone(), agent, offered };
        let (files, more) = (vec!["a.txt".into()], 0);
        let unsure = WayInError::UnsureChanges { turn: Turn(1), files, more, has_report: true };
        let way_in = [
            (403, WayInError::NotYoursToAnswer { who: "ann".into(), rule: RuleId::from_bits(1) }),
            (422, WayInError::UnfitAnswer { takes: ApprovalForm::Words }),
            (409, WayInError::AnsweredBefore(Box::new(settled))),
            (409, WayInError::Lapsed { session, turn: Turn(1), interrupted: true }),
            (409, WayInError::Lapsed { session, turn: Turn(1), interrupted: false }),
            (429, WayInError::OrgTooManyOpen { limit: 1 }),
            (409, WayInError::AlreadyImported { session }),
            (422, WayInError::BadExport { line: 1, reason: "no header".into() }),
            (409, WayInError::NotTaken { agent: "x".into(), attachment: "image a.png".into() }),
            (429, WayInError::QueueFull { limit: 1 }),
            (429, WayInError::TooManyOpen { limit: 1 }),
            (429, WayInError::TooManyWords { used: 1, limit: 1 }),
            (409, WayInError::NotInWorktree),
            (409, WayInError::OtherScope),
            (409, WayInError::TouchedSince { turn: Turn(1), files: vec!["a.txt".into()], more: 2 }),
            (409, unsure),
            (404, AccessError::NotFound { what: "session" }.into()),
            (401, AccessError::Unauthenticated.into()),
            (403, AccessError::NeedsRight(Right::Manage).into()),
            (403, AccessError::NeedsRole(Role::Admin).into()),
            (403, AccessError::AgentNotYours.into()),
            (403, AccessError::DirectoryNotYours.into()),
            (403, AccessError::BoundElsewhere.into()),
            (403, AccessError::AddressNotYours.into()),
            (403, AccessError::Needs(Grant::Manage).into()),
            (403, AccessError::NotYourWords.into()),
            (409, ConflictError::SessionEnded { session, why: EndWhy::Asked }.into()),
            (409, ConflictError::SessionEnded { session, why: EndWhy::Gone }.into()),
            (409, ConflictError::KeyReused.into()),
            (409, ConflictError::UnknownAgent { name, known }.into()),
            (409, unknown_model.into()),
            (409, ConflictError::TooLate.into()),
            (409, ConflictError::Changed.into()),
            (409, ConflictError::NotListening.into()),
            (409, ConflictError::TreeForgotten { turn: kernel::Turn(1) }.into()),
            (429, ConflictError::TooManyRules { limit: 1 }.into()),
            (409, BadDirectory { reason: "not there".into() }.into()),
            (422, InvalidError { field: "title", reason: "too long".into() }.into()),
            (409, ScopeError::Busy.into()),
            (409, ScopeError::ScopeChanging.into()),
            (409, ScopeError::InWorktree.into()),
            (429, ScopeError::TooManyTreeBytes { used: 1, limit: 1 }.into()),
            (429, ScopeError::TooManySnapshotBytes { used: 1, limit: 1 }.into()),
            (409, ScopeError::WorktreeTrouble { why: "a script failed".into() }.into()),
            (503, UnavailableError::DiskFull.into()),
            (503, UnavailableError::Unavailable("later".into()).into()),
            (503, UnavailableError::Unclear.into()),
        ];
        let views = [
            (409, ViewError::Stale),
            (409, ViewError::OtherScope),
            (404, AccessError::NotFound { what: "session" }.into()),
            (503, UnavailableError::DiskFull.into()),
            (422, InvalidError { field: "after", reason: "too far".into() }.into()),
            (409, BadDirectory { reason: "not there".into() }.into()),
        ];
        let people = [
            (401, PeopleError::WrongSignIn),
            (409, PeopleError::LastOwner),
            (409, PeopleError::CannotOwn),
            (409, PeopleError::OwnsAlready),
            (409, PeopleError::OfferedAlready),
            (403, PeopleError::NeedsSignIn),
            (429, PeopleError::TooManyOpen { limit: 1 }),
            (429, PeopleError::TooManyWords { used: 1, limit: 1 }),
            (409, PeopleError::WallNotProved { findings: vec!["it can read the database".into()] }),
            (409, PeopleError::ShownOnce),
            (409, Taken { what: "handle" }.into()),
            (403, AccessError::NeedsRole(Role::Admin).into()),
            (503, UnavailableError::Unclear.into()),
            (422, InvalidError { field: "name", reason: "too long".into() }.into()),
            (409, ConflictError::Changed.into()),
            (409, BadDirectory { reason: "not there".into() }.into()),
        ];
        let merge = |kind| WorktreeError::Merge { kind, files: vec!["a.txt".into()], more: 1 };
        let worktrees: [(u16, WorktreeError); 8] = [
            (409, merge(MergeObstacle::Conflicts)),
            (409, merge(MergeObstacle::Changed)),
            (409, merge(MergeObstacle::Uncommitted)),
            (404, AccessError::NotFound { what: "worktree" }.into()),
            (503, UnavailableError::Unclear.into()),
            (409, ConflictError::Changed.into()),
            (409, ScopeError::Busy.into()),
            (409, Taken { what: "worktree" }.into()),
        ];
        let way_in = way_in.into_iter().map(|(status, error)| (status, error.code(), error.into()));
        let views = views.into_iter().map(|(status, error)| (status, error.code(), error.into()));
        let people = people.into_iter().map(|(status, error)| (status, error.code(), error.into()));
        let worktrees = worktrees.into_iter().map(|(status, error)| (status, error.code(), error.into()));
        way_in.chain(views).chain(people).chain(worktrees).collect()
    }

    #[test]
    fn every_refusal_has_its_status_and_the_engines_own_code() {
        for (status, code, ApiError(problem)) in refusals() {
            assert_eq!((problem.status, problem.code.word()), (status, code), "{problem:?}");
            let response = ApiError(problem).into_response();
            let later = response.headers().contains_key(header::RETRY_AFTER);
            assert_eq!(later, status == 503, "a 503 says when to come back");
        }
    }
}
