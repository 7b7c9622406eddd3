//! The turns of a session, as a list: the newest first.

use crate::door::SharedDoor;
use crate::extract::{Caller, Id, Json, Query, limit};
use crate::openapi::problems;
use crate::problem::ApiResult;
use crate::sessions::SessionName;
use crate::wire::at;
use api::{Outcome, TurnSummary, Turns, TurnsQuery, Who};
use axum::extract::State;
use engine::{ReceiptRow, ReceiptState, TurnView};
use kernel::{SessionId, Turn};

problems! {
    TurnsProblems = [Invalid, NotFound, RightMissing];
}

/// List a session's turns
///
/// The newest first, each with how its message begins and the numbers of its first and last fact, so that one may go there at once.
#[utoipa::path(
    get, path = "/api/v1/sessions/{id}/turns", tag = "facts", operation_id = "turns", params(SessionName, TurnsQuery),
    responses((status = 200, description = "A page of turns.", body = Turns), TurnsProblems),
)]
pub(crate) async fn turns(
    State(door): State<SharedDoor>,
    caller: Caller,
    Id(session): Id<SessionId>,
    Query(query): Query<TurnsQuery>,
) -> ApiResult<Json<Turns>> {
    let (limit, before) = (limit(query.limit)?, query.before.map(Turn));
    // One more than asked for tells whether there is a next page.
    let mut views = door.engine.views().turns(&caller.by, session, before, limit + 1).await?;
    let more = views.len() > limit;
    views.truncate(limit);
    let items: Vec<_> = views.into_iter().filter_map(turn_form).collect();
    let next = items.last().filter(|_| more).map(|last| last.turn);
    Ok(Json(Turns { items, next }))
}

/// None of a message without a turn, of which a list of turns has none.
fn turn_form(view: TurnView) -> Option<TurnSummary> {
    let TurnView { row, sender, began_at, words, is_cut } = view;
    let outcome = outcome_of(&row);
    Some(TurnSummary {
        turn: row.turn?.0,
        message: row.message.to_string(),
        by: Who { id: row.by.to_string(), handle: sender },
        door: row.door,
        at: at(began_at),
        ended_at: outcome.map(|_| at(row.changed_at)),
        outcome,
        first: row.first?.0,
        last: row.last.map(|last| last.0),
        words,
        cut: is_cut,
    })
}

/// The outcome of a turn, as the receipt of the message that it began with has it.
fn outcome_of(row: &ReceiptRow) -> Option<Outcome> {
    row.last?;
    Some(match (row.state, row.why) {
        (ReceiptState::Answered, _) => Outcome::Answered,
        (ReceiptState::Failed, Some("interrupted")) => Outcome::Interrupted,
        (ReceiptState::Failed, Some("time_limit")) => Outcome::TimeLimit,
        (ReceiptState::Failed, _) => Outcome::Failed,
        _ => Outcome::Stopped,
    })
}
