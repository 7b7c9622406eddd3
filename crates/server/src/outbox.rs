//! Replies on their way out through a door: list them, send one again, send one no more.

use crate::cursor;
use crate::door::SharedDoor;
use crate::extract::{Caller, Id, IdKind, Json, Query, limit};
use crate::openapi::{KeyHeader, problems};
use crate::problem::ApiResult;
use crate::wire::at;
use api::{Done, OutboxQuery, Outgoing, OutgoingState, Page};
use axum::extract::State;
use engine::{Hand, OutgoingKind};
use std::str::FromStr;

problems! {
    ListProblems = [Invalid, BadCursor, RightMissing, RoleTooLow, BoundElsewhere];
    SettleProblems = [Invalid, NotFound, RightMissing, RoleTooLow, BoundElsewhere, IdempotencyConflict, TooLate, DiskFull,
        Unclear];
}

/// A reply in a path.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code)]
pub(crate) struct OutgoingName {
    /// Its number.
    #[param(pattern = "^[1-9][0-9]{0,14}$")]
    id: String,
}

/// The number of a reply. What cannot be one names nothing.
pub(crate) struct OutgoingNumber(u64);

impl FromStr for OutgoingNumber {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let plain =
            text.len() <= 15 && !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
        if plain { text.parse().map(Self).map_err(|_| ()) } else { Err(()) }
    }
}

impl IdKind for OutgoingNumber {
    const WHAT: &'static str = "reply";
}

/// List replies on their way out
///
/// Those of your org that leave by a door, the oldest first; for admins. What is *unknown* may have been sent.
#[utoipa::path(
    get, path = "/api/v1/outbox", tag = "house", operation_id = "outbox", params(OutboxQuery),
    responses((status = 200, description = "A page of replies.", body = Page<Outgoing>), ListProblems),
)]
pub(crate) async fn list(
    State(door): State<SharedDoor>,
    caller: Caller,
    Query(query): Query<OutboxQuery>,
) -> ApiResult<Json<Page<Outgoing>>> {
    let limit = limit(query.limit)?;
    let after = cursor::read_outbox(query.cursor.as_deref())?;
    let state = query.state.map(state_of);
    let mut rows = door.engine.views().outbox(&caller.by, state, after, limit + 1).await?;
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| more).map(|row| cursor::outbox(row.outgoing));
    Ok(Json(Page { items: rows.into_iter().map(outgoing_form).collect(), next }))
}

/// Send a reply again
///
/// One that is *unknown* or *parked*, also if it may have been sent before. For admins.
#[utoipa::path(
    post, path = "/api/v1/outbox/{id}/retry", tag = "house", operation_id = "retry_reply",
    params(OutgoingName, KeyHeader),
    responses((status = 200, description = "It waits to be sent.", body = Done), SettleProblems),
)]
pub(crate) async fn retry(
    State(door): State<SharedDoor>,
    caller: Caller,
    Id(OutgoingNumber(outgoing)): Id<OutgoingNumber>,
) -> ApiResult<Json<Done>> {
    door.engine.way_in().settle_outgoing(&caller.by, outgoing, Hand::Retry, caller.trace).await?;
    Ok(Json(Done { id: outgoing.to_string() }))
}

/// Send a reply no more
///
/// One that is not being sent, and was not. It leaves the list. For admins.
#[utoipa::path(
    delete, path = "/api/v1/outbox/{id}", tag = "house", operation_id = "drop_reply", params(OutgoingName, KeyHeader),
    responses((status = 200, description = "It is not sent any more.", body = Done), SettleProblems),
)]
pub(crate) async fn remove(
    State(door): State<SharedDoor>,
    caller: Caller,
    Id(OutgoingNumber(outgoing)): Id<OutgoingNumber>,
) -> ApiResult<Json<Done>> {
    door.engine.way_in().settle_outgoing(&caller.by, outgoing, Hand::Drop, caller.trace).await?;
    Ok(Json(Done { id: outgoing.to_string() }))
}

fn outgoing_form(row: engine::Outgoing) -> Outgoing {
    let approval = match row.kind {
        OutgoingKind::Final => None,
        OutgoingKind::Question(approval) => Some(approval.to_string()),
    };
    let state = match row.state {
        engine::OutgoingState::Waiting => OutgoingState::Waiting,
        engine::OutgoingState::Sending => OutgoingState::Sending,
        engine::OutgoingState::Sent => OutgoingState::Sent,
        engine::OutgoingState::Unknown => OutgoingState::Unknown,
        engine::OutgoingState::Parked => OutgoingState::Parked,
    };
    Outgoing {
        id: row.outgoing,
        session: row.session.to_string(),
        message: row.message.to_string(),
        approval,
        to: row.to.to_string(),
        state,
        since: at(row.since),
        tries: row.tries,
        due: row.due.map(at),
        service_id: row.service_id,
        reason: row.reason,
    }
}

fn state_of(state: OutgoingState) -> engine::OutgoingState {
    match state {
        OutgoingState::Waiting => engine::OutgoingState::Waiting,
        OutgoingState::Sending => engine::OutgoingState::Sending,
        OutgoingState::Sent => engine::OutgoingState::Sent,
        OutgoingState::Unknown => engine::OutgoingState::Unknown,
        OutgoingState::Parked => engine::OutgoingState::Parked,
    }
}
