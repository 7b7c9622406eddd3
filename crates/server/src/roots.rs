//! The directories that people may choose for a session.

use crate::door::SharedDoor;
use crate::extract::{Caller, Json, JsonBody, Query};
use crate::openapi::{KeyHeader, problems};
use crate::people::{grantee_form, grantee_of};
use crate::problem::ApiResult;
use api::{Page, Root, RootQuery};
use axum::extract::State;
use engine::RootRow;

problems! {
    ListProblems = [RightMissing, RoleTooLow, BoundElsewhere];
    AddProblems = [BadJson, TooSlow, TooLarge, UnsupportedMediaType, Invalid, NotFound, RightMissing, RoleTooLow,
        BoundElsewhere, BadDirectory, IdempotencyConflict, Changed, DiskFull, Unclear];
    RemoveProblems = [Invalid, NotFound, RightMissing, RoleTooLow, BoundElsewhere, IdempotencyConflict, Changed,
        DiskFull, Unclear];
}

/// List the directories that may be chosen
///
/// All of the org's, and by whom; for admins. Your own are in `GET /api/v1/me`.
#[utoipa::path(
    get, path = "/api/v1/roots", tag = "people", operation_id = "roots",
    responses((status = 200, description = "Every directory.", body = Page<Root>), ListProblems),
)]
pub(crate) async fn list(State(door): State<SharedDoor>, caller: Caller) -> ApiResult<Json<Page<Root>>> {
    let rows = door.engine.people().roots(&caller.by).await?;
    Ok(Json(Page { items: rows.into_iter().map(root_form).collect(), next: None }))
}

/// Let a directory be chosen, with everything under it
///
/// Answers with the place that it leads to. Doing it twice is fine.
#[utoipa::path(
    put, path = "/api/v1/roots", tag = "people", operation_id = "add_root", params(KeyHeader), request_body = Root,
    responses((status = 200, description = "It may be chosen.", body = Root), AddProblems),
)]
pub(crate) async fn add(
    State(door): State<SharedDoor>,
    caller: Caller,
    JsonBody(root): JsonBody<Root>,
) -> ApiResult<Json<Root>> {
    root.check()?;
    let row = RootRow { to: grantee_of(&root.to)?, directory: root.directory };
    Ok(Json(root_form(door.engine.people().add_root(&caller.by, row, caller.trace).await?)))
}

/// Let a directory be chosen no more
///
/// As the list has it; exactly one of `user`, `group` and `org=true`. Doing it twice is fine.
#[utoipa::path(
    delete, path = "/api/v1/roots", tag = "people", operation_id = "remove_root", params(RootQuery, KeyHeader),
    responses((status = 200, description = "It may not be chosen any more.", body = Root), RemoveProblems),
)]
pub(crate) async fn remove(
    State(door): State<SharedDoor>,
    caller: Caller,
    Query(query): Query<RootQuery>,
) -> ApiResult<Json<Root>> {
    let root = query.root()?;
    let row = RootRow { to: grantee_of(&root.to)?, directory: root.directory.clone() };
    door.engine.people().remove_root(&caller.by, row, caller.trace).await?;
    Ok(Json(root))
}

fn root_form(row: RootRow) -> Root {
    Root { directory: row.directory, to: grantee_form(row.to) }
}
