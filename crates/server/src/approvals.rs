//! Questions of agents that wait for a person.

use crate::asked::{Body, Caller, Id, Json, Query, limit};
use crate::door::Door;
use crate::messages::granted_response;
use crate::openapi::{KeyHeader, problems};
use crate::problem::{Answer, No};
use crate::wire::{answer_form, answerer_word, at};
use api::{Approval, ApprovalAnswer, ApprovalState, Code, Page, PageQuery};
use axum::extract::State;
use axum::response::Response;
use engine::{ApprovalRow, Refused, Verb, who_changed};
use kernel::ApprovalId;

/// What to say to an agent whose question lapsed with its turn.
const GO_ON: &str = "Go on. What you asked for is allowed once.";

problems! {
    ListProblems = [Invalid, BadCursor, RightMissing];
    AnswerProblems = [BadJson, TooSlow, TooLarge, UnsupportedMediaType, Invalid, NotFound, NotAllowed, RightMissing,
        SessionEnded, IdempotencyConflict, TooLate, Lapsed, Changed, DiskFull, Unclear];
}

/// The id of an approval, in a path.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code)]
pub(crate) struct ApprovalName {
    /// The question.
    #[param(pattern = "^apr_[0-7][0-9a-hjkmnp-tv-z]{25}$")]
    id: String,
}

/// List open questions
///
/// The oldest first. Answered ones leave the list, so there is no next page.
#[utoipa::path(
    get, path = "/api/v1/approvals", tag = "approvals", operation_id = "approvals", params(PageQuery),
    responses((status = 200, description = "Open questions.", body = Page<Approval>), ListProblems),
)]
pub(crate) async fn list(
    State(door): State<Door>,
    caller: Caller,
    Query(query): Query<PageQuery>,
) -> Answer<Json<Page<Approval>>> {
    if query.cursor.is_some() {
        return Err(No::new(Code::BadCursor, "this list has one page").at("cursor"));
    }
    let rows = door.engine.approvals(&caller.by, limit(query.limit)?).await?;
    Ok(Json(Page { items: rows.into_iter().map(approval_form).collect(), next: None }))
}

/// Answer a question
///
/// The first answer wins; a later one is a 409 `too_late`. A question whose turn was interrupted has lapsed: a 409 `lapsed`, whose
/// hint is the message that lets the agent go on.
#[utoipa::path(
    post, path = "/api/v1/approvals/{id}", tag = "approvals", operation_id = "answer", params(ApprovalName, KeyHeader),
    request_body = ApprovalAnswer,
    responses(
        (status = 200, description = "It is answered.", body = Approval),
        (status = 202, description = "It is safe and will be decided; the question is as it is now.", body = Approval),
        AnswerProblems,
    ),
)]
pub(crate) async fn answer(
    State(door): State<Door>,
    caller: Caller,
    Id(approval): Id<ApprovalId>,
    Body(said): Body<ApprovalAnswer>,
) -> Answer<Response> {
    let answer = match said.answer {
        api::Answer::Yes => kernel::Answer::Yes,
        api::Answer::No => kernel::Answer::No,
        api::Answer::Chose(option) => kernel::Answer::Chose(option),
        api::Answer::Said(words) => kernel::Answer::Said(words),
    };
    let granted = door.engine.ask(&caller.by, Verb::Answer { approval, answer }, caller.trace).await;
    if let Err(refused) = &granted
        && *refused != Refused::TooLate
    {
        return Err(refused.clone().into());
    }
    // Whoever may answer it is shown how it is.
    let now = door.engine.approval(&who_changed(&caller.by), approval).await?;
    match granted {
        Err(Refused::TooLate) if now.state == engine::ApprovalState::Lapsed => Err(lapsed(&now)),
        granted => Ok(granted_response(granted?, Json(approval_form(now)))),
    }
}

/// Nothing goes on by itself, so whoever answers too late is told how to let it.
fn lapsed(row: &ApprovalRow) -> No {
    let ApprovalRow { session, turn, .. } = row;
    let detail =
        format!("turn {turn} of {session} was interrupted before anybody answered; nothing was done");
    let body = serde_json::json!({ "to": { "session": session.to_string() }, "text": GO_ON });
    No::new(Code::Lapsed, detail).advise(format!("to go on, POST /api/v1/messages {body}"))
}

fn approval_form(row: ApprovalRow) -> Approval {
    let (state, answer, by) = match row.state {
        engine::ApprovalState::Open => (ApprovalState::Open, None, None),
        engine::ApprovalState::Answered { answer, by } => {
            (ApprovalState::Answered, Some(answer_form(&answer)), answerer_word(by))
        }
        engine::ApprovalState::Lapsed => (ApprovalState::Lapsed, None, None),
    };
    Approval {
        id: row.approval.to_string(),
        session: row.session.to_string(),
        turn: row.turn.0,
        state,
        answer,
        by,
        asked_at: at(row.asked_at),
        until: at(row.until),
    }
}
