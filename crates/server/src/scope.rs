//! Where and how a session acts: change it, undo a turn, see what one changed, fork.

use crate::door::SharedDoor;
use crate::extract::{Caller, Id, Json, JsonBody, Query};
use crate::messages::granted_response;
use crate::openapi::{KeyHeader, problems};
use crate::problem::{ApiError, ApiResult};
use crate::sessions::{SessionName, made_response, named_form};
use crate::wire::{at, change_of};
use api::{
    Changes, ChangesQuery, Code, DiffQuery, FileChangesQuery, FilePatch, Made, NewFork, Readiness, Ready,
    ReadyPart, RedoTurn, RepositoryMove, ScopeRequest, Session, UndoFile, UndoPreview, UndoTurn,
};
use axum::extract::State;
use axum::response::Response;
use engine::{Look, LookResult, Neighbour, ReadyView, who_changed};
use kernel::{Epoch, Request, SessionId, Turn, UndoFiles};

problems! {
    ScopeProblems = [BadJson, TooSlow, TooLarge, UnsupportedMediaType, Invalid, NotFound, NotAllowed, RightMissing,
        RoleTooLow, AgentNotYours, DirectoryNotYours, BoundElsewhere, UnknownAgent, UnknownModel, BadDirectory, SessionEnded,
        IdempotencyConflict, TooLate, Changed, Busy, ScopeChanging, InWorktree, NotInWorktree, WorktreeTrouble, TooMuchOnDisk,
        DiskFull, Unclear];
    KeepProblems = [Invalid, NotFound, NotAllowed, RightMissing, SessionEnded, IdempotencyConflict, TooLate, Changed,
        DiskFull, Unclear];
    UndoProblems = [BadJson, TooSlow, TooLarge, UnsupportedMediaType, Invalid, NotFound, NotAllowed, RightMissing,
        SessionEnded, IdempotencyConflict, TooLate, Changed, Busy, OtherScope, TouchedSince,
        UnsureChanges, WorktreeTrouble, DiskFull, Unclear];
    RedoProblems = [BadJson, TooSlow, TooLarge, UnsupportedMediaType, Invalid, NotFound, NotAllowed, RightMissing,
        SessionEnded, IdempotencyConflict, TooLate, Changed, Busy, OtherScope, WorktreeTrouble, DiskFull, Unclear];
    ForkProblems = [BadJson, TooSlow, TooLarge, UnsupportedMediaType, Invalid, NotFound, NotAllowed, RightMissing,
        RoleTooLow, AgentNotYours, DirectoryNotYours, BoundElsewhere, IdempotencyConflict, Changed, TreeForgotten,
        WorktreeTrouble, TooManyOpenSessions, TooManyOrgSessions, TooMuchOnDisk, DiskFull, Unclear];
    ChangesProblems = [Invalid, NotFound, RightMissing, BadDirectory, Stale, WorktreeTrouble];
    PreviewProblems = [Invalid, NotFound, RightMissing, OtherScope, Stale, WorktreeTrouble];
    ReadyProblems = [NotFound, RightMissing];
}

/// Let a session act somewhere or somehow else
///
/// Into a worktree or out of it, with another agent, model or mode, or in a directory that has moved. It happens when the
/// turn under way is over; follow the facts, or read the session again. What waits then is held until somebody says where
/// it belongs.
#[utoipa::path(
    post, path = "/api/v1/sessions/{id}/scope", tag = "sessions", operation_id = "change_scope", params(SessionName, KeyHeader),
    request_body = ScopeRequest,
    responses(
        (status = 200, description = "It is so, or will be when what is under way is over.", body = Session),
        (status = 202, description = "It is safe and will be decided; the session is as it is now.", body = Session),
        ScopeProblems,
    ),
)]
pub(crate) async fn change(
    State(door): State<SharedDoor>,
    caller: Caller,
    Id(session): Id<SessionId>,
    JsonBody(request): JsonBody<ScopeRequest>,
) -> ApiResult<Response> {
    request.check()?;
    let (change, now) = change_of(request);
    ask(&door, caller, session, Request::ChangeScope { session, change, now }).await
}

/// Give up a change of scope that has not begun
#[utoipa::path(
    delete, path = "/api/v1/sessions/{id}/scope", tag = "sessions", operation_id = "keep_scope", params(SessionName, KeyHeader),
    responses(
        (status = 200, description = "It stays as it is.", body = Session),
        (status = 202, description = "It is safe and will be decided; the session is as it is now.", body = Session),
        KeepProblems,
    ),
)]
pub(crate) async fn keep(
    State(door): State<SharedDoor>,
    caller: Caller,
    Id(session): Id<SessionId>,
) -> ApiResult<Response> {
    ask(&door, caller, session, Request::KeepScope { session }).await
}

/// Put back what a turn has changed
///
/// Refused while a turn runs, and if something has touched the same files since: later turns, or somebody by hand. Refused, too, if
/// files changed during the turn of which the agent has not said that it changed them, unless you say that they are meant. The
/// problem names them, and nothing is changed. What happens while it is being done ends it the same way, with a notice.
#[utoipa::path(
    post, path = "/api/v1/sessions/{id}/undo", tag = "sessions", operation_id = "undo", params(SessionName, KeyHeader),
    request_body = UndoTurn,
    responses(
        (status = 200, description = "It is being done; the log says what came of it.", body = Session),
        (status = 202, description = "It is safe and will be decided; the session is as it is now.", body = Session),
        UndoProblems,
    ),
)]
pub(crate) async fn undo(
    State(door): State<SharedDoor>,
    caller: Caller,
    Id(session): Id<SessionId>,
    JsonBody(undo): JsonBody<UndoTurn>,
) -> ApiResult<Response> {
    undo.check()?;
    let (turn, under) = (Turn(undo.turn), undo.under.map(Epoch));
    let files = match (undo.only, undo.all) {
        (Some(only), _) => UndoFiles::Only(only),
        (None, true) => UndoFiles::All,
        (None, false) => UndoFiles::Certain,
    };
    ask(&door, caller, session, Request::Undo { session, turn, under, files }).await
}

/// Take an undo back
///
/// The files that the last undo of this turn has changed become what they were just before it. Refused while a turn runs; if
/// something has touched the same files since, nothing is changed, and a notice in the log names them.
#[utoipa::path(
    post, path = "/api/v1/sessions/{id}/redo", tag = "sessions", operation_id = "redo", params(SessionName, KeyHeader),
    request_body = RedoTurn,
    responses(
        (status = 200, description = "It is being done; the log says what came of it.", body = Session),
        (status = 202, description = "It is safe and will be decided; the session is as it is now.", body = Session),
        RedoProblems,
    ),
)]
pub(crate) async fn redo(
    State(door): State<SharedDoor>,
    caller: Caller,
    Id(session): Id<SessionId>,
    JsonBody(redo): JsonBody<RedoTurn>,
) -> ApiResult<Response> {
    redo.check()?;
    let (turn, under) = (Turn(redo.turn), redo.under.map(Epoch));
    ask(&door, caller, session, Request::Redo { session, turn, under }).await
}

/// See what an undo would do
///
/// Each file of the turn with its fate, and those that something has touched since. Nothing is changed.
#[utoipa::path(
    get, path = "/api/v1/sessions/{id}/undo", tag = "sessions", operation_id = "preview_undo", params(SessionName, ChangesQuery),
    responses((status = 200, description = "What would happen, or why nothing would.", body = UndoPreview), PreviewProblems),
)]
pub(crate) async fn preview_undo(
    State(door): State<SharedDoor>,
    caller: Caller,
    Id(session): Id<SessionId>,
    Query(query): Query<ChangesQuery>,
) -> ApiResult<Json<UndoPreview>> {
    query.check()?;
    let _place = door.take_look(caller.by.person)?;
    let seen = door.engine.views().preview_undo(&caller.by, session, Turn(query.turn)).await?;
    Ok(Json(preview_form(query.turn, seen)))
}

fn preview_form(turn: u32, seen: engine::UndoPreview) -> UndoPreview {
    let file = |step: engine::UndoStep| UndoFile { path: step.path, kind: step.kind.to_owned() };
    let engine::UndoPreview { files, touched, unsure, has_report: _, moves, is_cut, why_not } = seen;
    let in_the_way = (!touched.is_empty()).then(|| "some of its files were changed since".to_owned());
    let why = why_not.or(in_the_way);
    let files = files.into_iter().map(file).collect();
    let moves = moves.into_iter().map(|one| RepositoryMove { words: one.words, command: one.command });
    let moves = moves.collect();
    UndoPreview { turn, possible: why.is_none(), why, files, touched, unsure, moves, cut: is_cut }
}

/// Make a fork of a session
///
/// A new session with the conversation up to a turn, and a worktree of its own with the tree as it was after it.
#[utoipa::path(
    post, path = "/api/v1/sessions/{id}/fork", tag = "sessions", operation_id = "fork", params(SessionName, KeyHeader),
    request_body = NewFork,
    responses(
        (status = 201, description = "It is there.", body = Made, headers(
            ("Idempotent-Replayed" = bool, description = "`true` if this answers a repetition."),
            ("Location" = String, description = "Where the session is."))),
        ForkProblems,
    ),
)]
pub(crate) async fn fork(
    State(door): State<SharedDoor>,
    caller: Caller,
    Id(session): Id<SessionId>,
    JsonBody(new): JsonBody<NewFork>,
) -> ApiResult<Response> {
    new.check()?;
    let made =
        door.engine.way_in().fork(&caller.by, session, new.at.map(Turn), new.title, caller.trace).await?;
    made_response(made)
}

/// See what a turn changed, or several of them
///
/// Of one turn the log tells. Of several the snapshots do: what changed from before the first to after the last, if both ran where the
/// session acts now.
#[utoipa::path(
    get, path = "/api/v1/sessions/{id}/changes", tag = "sessions", operation_id = "changes", params(SessionName, DiffQuery),
    responses((status = 200, description = "What it changed, if anybody can tell.", body = Changes), ChangesProblems),
)]
pub(crate) async fn changes(
    State(door): State<SharedDoor>,
    caller: Caller,
    Id(session): Id<SessionId>,
    Query(query): Query<DiffQuery>,
) -> ApiResult<Json<Changes>> {
    query.check()?;
    let turn = query.turn;
    if let Some(since) = query.since {
        let _place = door.take_look(caller.by.person)?;
        let look = Look::Diff { first: Turn(since), last: Turn(turn) };
        let LookResult::Diff(seen) = door.engine.views().look(&caller.by, session, look).await? else {
            return Err(ApiError::new(Code::Internal, "a look at something else".to_owned()));
        };
        let changes = seen.map_or_else(|| unknown_changes(turn), |seen| seen_changes(turn, seen));
        return Ok(Json(Changes { since: Some(since), ..changes }));
    }
    let stored = door.engine.views().turn_changes(&caller.by, session, Turn(turn)).await?;
    let told = stored.and_then(|body| serde_json::from_slice::<api::Story>(&body).ok());
    Ok(Json(match told {
        Some(api::Story::Changes { files, patch, cut, unseen, moves }) => {
            Changes { turn, since: None, known: true, files, patch, cut, unseen, moves }
        }
        _ => unknown_changes(turn),
    }))
}

/// See what a turn changed in one file, whole
///
/// The patch of that file alone, in pieces of at most 256 KiB that end with a line where they can. It is looked at in the snapshots, so
/// that the turn, or both of several, have to have run in the repository in which the session acts now.
#[utoipa::path(
    get, path = "/api/v1/sessions/{id}/changes/file", tag = "sessions", operation_id = "file_changes",
    params(SessionName, FileChangesQuery),
    responses((status = 200, description = "A piece of it, if anybody can tell.", body = FilePatch), ChangesProblems),
)]
pub(crate) async fn file_changes(
    State(door): State<SharedDoor>,
    caller: Caller,
    Id(session): Id<SessionId>,
    Query(query): Query<FileChangesQuery>,
) -> ApiResult<Json<FilePatch>> {
    query.check()?;
    let _place = door.take_look(caller.by.person)?;
    let turns = (Turn(query.since.unwrap_or(query.turn)), Turn(query.turn));
    let place = engine::PatchPlace { path: query.path, byte: query.from.unwrap_or(0) };
    let seen = door.engine.views().file_changes(&caller.by, session, turns, place).await?;
    Ok(Json(patch_form(seen)))
}

pub(crate) fn patch_form(seen: Option<engine::TreePatch>) -> FilePatch {
    let known = seen.is_some();
    let engine::TreePatch { file, patch, next } = seen.unwrap_or_default();
    FilePatch { known, file: file.map(file_form), patch, next }
}

pub(crate) fn file_form(file: engine::TreeChange) -> api::FileChange {
    api::FileChange { path: file.path, kind: file.kind.to_owned(), plus: file.plus, minus: file.minus }
}

fn unknown_changes(turn: u32) -> Changes {
    let (files, patch, unseen, moves) = (Vec::new(), String::new(), Vec::new(), Vec::new());
    Changes { turn, since: None, known: false, files, patch, cut: false, unseen, moves }
}

fn seen_changes(turn: u32, seen: engine::TreeChanges) -> Changes {
    let engine::TreeChanges { files, patch, is_cut, unseen, moves } = seen;
    let moves = moves.into_iter().map(|one| RepositoryMove { words: one.words, command: one.command });
    let (files, moves) = (files.into_iter().map(file_form).collect(), moves.collect());
    Changes { turn, since: None, known: true, files, patch, cut: is_cut, unseen, moves }
}

/// See whether a session can go on
///
/// One value, and of each part how it is, since when, until when at most, and what can be done.
#[utoipa::path(
    get, path = "/api/v1/sessions/{id}/readiness", tag = "sessions", operation_id = "readiness", params(SessionName),
    responses((status = 200, description = "How ready it is.", body = Readiness), ReadyProblems),
)]
pub(crate) async fn readiness(
    State(door): State<SharedDoor>,
    caller: Caller,
    Id(session): Id<SessionId>,
) -> ApiResult<Json<Readiness>> {
    Ok(Json(ready_form(&door.engine.views().readiness(&caller.by, session).await?)))
}

/// The readiness of a session, on the wire.
pub(crate) fn ready_form(view: &ReadyView) -> Readiness {
    let state = match view.state {
        "ready" => Ready::Ready,
        "waiting" => Ready::Waiting,
        _ => Ready::Blocked,
    };
    let parts = view.parts.iter().map(|part| part_form(part, view.neighbour)).collect();
    Readiness { state, parts }
}

fn part_form(part: &kernel::ReadinessPart, neighbour: Option<Neighbour>) -> ReadyPart {
    let neighbour = neighbour.filter(|_| part.why == Some(kernel::PartWhy::Crowded));
    ReadyPart {
        name: part.name.word().to_owned(),
        state: part.state.word().to_owned(),
        why: part.why.map(|why| why.word().to_owned()),
        remedy: match neighbour {
            Some(_) => {
                Some("nothing: it goes on when the turn that works in its directory is over".to_owned())
            }
            None => part.remedy.map(|remedy| engine::remedy_words(remedy).to_owned()),
        },
        remedy_code: match neighbour {
            Some(_) => Some(kernel::Remedy::Wait.word().to_owned()),
            None => part.remedy.map(|remedy| remedy.word().to_owned()),
        },
        session: neighbour.and_then(|neighbour| match neighbour {
            Neighbour::Session(session) => Some(session.to_string()),
            Neighbour::Hidden => None,
        }),
        since: part.since.map(at),
        until: part.until.map(at),
        advisory: part.advisory,
    }
}

async fn ask(door: &SharedDoor, caller: Caller, session: SessionId, request: Request) -> ApiResult<Response> {
    let granted = door.engine.way_in().ask(&caller.by, request, caller.trace.clone()).await?;
    let row = door.engine.views().session(&who_changed(&caller.by), session).await?;
    Ok(granted_response(granted, Json(named_form(door, &caller, row).await?)))
}
