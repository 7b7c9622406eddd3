//! Bindings: the session that a conversation belongs to.

use crate::cursor;
use crate::door::SharedDoor;
use crate::extract::{Caller, Json, JsonBody, Query, address, limit, session_id};
use crate::openapi::{KeyHeader, problems};
use crate::problem::ApiResult;
use crate::wire::{at, previous};
use api::{Binding, Move, Page, PageQuery};
use axum::extract::State;
use engine::BindingRow;

problems! {
    ListProblems = [Invalid, BadCursor, RightMissing];
    MoveProblems = [BadJson, TooSlow, TooLarge, UnsupportedMediaType, Invalid, BadAddress, NotFound, NotAllowed,
        RightMissing, AddressNotYours, SessionEnded, IdempotencyConflict, Changed, DiskFull, Unclear];
}

/// List bindings
///
/// In order of their addresses.
#[utoipa::path(
    get, path = "/api/v1/bindings", tag = "bindings", operation_id = "bindings", params(PageQuery),
    responses((status = 200, description = "A page of bindings.", body = Page<Binding>), ListProblems),
)]
pub(crate) async fn list(
    State(door): State<SharedDoor>,
    caller: Caller,
    Query(query): Query<PageQuery>,
) -> ApiResult<Json<Page<Binding>>> {
    let limit = limit(query.limit)?;
    let after = cursor::read_bindings(query.cursor.as_deref())?;
    let mut rows = door.engine.views().bindings(&caller.by, after, limit + 1).await?;
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| more).map(|row| cursor::bindings(&row.address));
    Ok(Json(Page { items: rows.into_iter().map(binding_form).collect(), next }))
}

fn binding_form(row: BindingRow) -> Binding {
    Binding {
        address: row.address.to_string(),
        session: row.session.to_string(),
        since: at(row.since),
        before: previous(row.before),
    }
}

/// Let a conversation belong to another open session
///
/// Needs the right to manage that session, and the one it belongs to now. Doing it twice is fine.
#[utoipa::path(
    post, path = "/api/v1/bindings/move", tag = "bindings", operation_id = "move_binding", params(KeyHeader), request_body = Move,
    responses((status = 200, description = "It is so.", body = Move), MoveProblems),
)]
pub(crate) async fn rebind(
    State(door): State<SharedDoor>,
    caller: Caller,
    JsonBody(to): JsonBody<Move>,
) -> ApiResult<Json<Move>> {
    let address = address("address", &to.address)?;
    let session = session_id("session", &to.session, &door, &caller.by).await?;
    door.engine.way_in().rebind(&caller.by, address, session, caller.trace).await?;
    Ok(Json(to))
}
