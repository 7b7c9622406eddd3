//! The caller's own marks on a session.

use crate::door::SharedDoor;
use crate::extract::{Caller, Id, Json, JsonBody};
use crate::openapi::{KeyHeader, problems};
use crate::problem::ApiResult;
use crate::sessions::SessionName;
use api::{Marks, MarksChange};
use axum::extract::State;
use kernel::{Number, SessionId};

problems! {
    MarkProblems = [BadJson, TooSlow, TooLarge, UnsupportedMediaType, Invalid, NotFound, RightMissing, IdempotencyConflict, Changed,
        DiskFull, Unclear];
}

/// Note how far you have seen a session, and whether it is pinned
///
/// Marks are yours alone: nobody else sees them, and nothing comes of them but what lists show you. `seen` only grows, up to the number
/// of the session's last fact.
#[utoipa::path(
    put, path = "/api/v1/sessions/{id}/marks", tag = "sessions", operation_id = "mark", params(SessionName, KeyHeader),
    request_body = MarksChange,
    responses((status = 200, description = "Your marks on it, as they are now.", body = Marks), MarkProblems),
)]
pub(crate) async fn mark(
    State(door): State<SharedDoor>,
    caller: Caller,
    Id(session): Id<SessionId>,
    JsonBody(change): JsonBody<MarksChange>,
) -> ApiResult<Json<Marks>> {
    change.check()?;
    let MarksChange { seen, pinned } = change;
    let marks =
        door.engine.way_in().mark(&caller.by, session, seen.map(Number), pinned, caller.trace).await?;
    Ok(Json(Marks { seen: marks.seen.0, pinned: marks.pinned }))
}
