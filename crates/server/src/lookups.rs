//! Lookups in the scope of a session: its agent's commands and models, the files of its directory.
//!
//! What was looked up in one scope is given to nobody when the session is in another one meanwhile: 409 `stale`.

use crate::door::SharedDoor;
use crate::extract::{Caller, Id, Json, Query};
use crate::openapi::problems;
use crate::problem::{ApiError, ApiResult};
use crate::sessions::SessionName;
use api::{Choices, Code, Directories, DirectoriesQuery, Files};
use axum::extract::State;
use engine::{Choice, Look, LookResult};
use kernel::SessionId;

problems! {
    LookProblems = [NotFound, RightMissing, Stale];
    DirectoriesProblems = [Invalid, RightMissing, RoleTooLow, BoundElsewhere, DirectoryNotYours, BadDirectory, WorktreeTrouble];
    FilesProblems = [NotFound, RightMissing, Stale, BadDirectory, WorktreeTrouble];
}

/// See the agent's slash commands
///
/// While a turn is under way whose agent has not listed them yet, they are waited for, as long as a command would wait for them.
#[utoipa::path(
    get, path = "/api/v1/sessions/{id}/commands", tag = "sessions", operation_id = "commands", params(SessionName),
    responses((status = 200, description = "What the agent has listed in this scope.", body = Choices), LookProblems),
)]
pub(crate) async fn commands(
    State(door): State<SharedDoor>,
    caller: Caller,
    Id(session): Id<SessionId>,
) -> ApiResult<Json<Choices>> {
    match door.engine.views().look(&caller.by, session, Look::Commands).await? {
        LookResult::Commands(listed) => Ok(Json(choices_form(listed))),
        _ => Err(other_result()),
    }
}

/// See the agent's models
///
/// While a turn is under way whose agent has not listed them yet, they are waited for, as long as a command would wait for them.
#[utoipa::path(
    get, path = "/api/v1/sessions/{id}/models", tag = "sessions", operation_id = "models", params(SessionName),
    responses((status = 200, description = "What the agent has listed in this scope.", body = Choices), LookProblems),
)]
pub(crate) async fn models(
    State(door): State<SharedDoor>,
    caller: Caller,
    Id(session): Id<SessionId>,
) -> ApiResult<Json<Choices>> {
    match door.engine.views().look(&caller.by, session, Look::Models).await? {
        LookResult::Models(listed) => Ok(Json(choices_form(listed))),
        _ => Err(other_result()),
    }
}

/// See the files of a session's directory
///
/// Under version control those that are tracked or could be; elsewhere all of them. Links are named, and never followed.
#[utoipa::path(
    get, path = "/api/v1/sessions/{id}/files", tag = "sessions", operation_id = "files", params(SessionName),
    responses((status = 200, description = "The first ten thousand of them.", body = Files), FilesProblems),
)]
pub(crate) async fn files(
    State(door): State<SharedDoor>,
    caller: Caller,
    Id(session): Id<SessionId>,
) -> ApiResult<Json<Files>> {
    let _place = door.take_look(caller.by.person)?;
    match door.engine.views().look(&caller.by, session, Look::Files).await? {
        LookResult::Files(files) => Ok(Json(Files { items: files.paths, more: files.is_cut })),
        _ => Err(other_result()),
    }
}

/// See which directories there are to choose from
///
/// The directories in one that you may choose for a session, as your sessions would see them; without one, those that you may choose with
/// everything under them. Links, and names that begin with a dot, are left out.
#[utoipa::path(
    get, path = "/api/v1/directories", tag = "sessions", operation_id = "directories", params(DirectoriesQuery),
    responses((status = 200, description = "The first thousand of them.", body = Directories), DirectoriesProblems),
)]
pub(crate) async fn directories(
    State(door): State<SharedDoor>,
    caller: Caller,
    Query(query): Query<DirectoriesQuery>,
) -> ApiResult<Json<Directories>> {
    query.check()?;
    let _place = door.take_look(caller.by.person)?;
    let of = query.directory.as_deref();
    let found = door.engine.views().directories(&caller.by, of).await?;
    let above = of.unwrap_or_default().trim_end_matches('/');
    let whole = |name: String| if of.is_none() { name } else { format!("{above}/{name}") };
    Ok(Json(Directories { items: found.paths.into_iter().map(whole).collect(), more: found.is_cut }))
}

fn choices_form(listed: Option<Vec<Choice>>) -> Choices {
    let form = |choice: Choice| api::Choice { name: choice.name, description: choice.description };
    let known = listed.is_some();
    Choices { known, items: listed.unwrap_or_default().into_iter().map(form).collect() }
}

fn other_result() -> ApiError {
    ApiError::new(Code::Internal, "something else was looked up than was asked")
}
