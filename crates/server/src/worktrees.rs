//! Worktrees: list them, remove them safely, have them back.

use crate::door::SharedDoor;
use crate::extract::{Caller, IdPair, Json, JsonBody, Query, TreeName, session_id};
use crate::messages::granted_response;
use crate::openapi::{KeyHeader, problems};
use crate::problem::ApiResult;
use crate::scope::{file_form, patch_form};
use crate::sessions::named_form;
use crate::wire::at;
use api::{
    CollectWorktrees, CollectedWorktree, CollectedWorktrees, FilePatch, MergeWorktree, MergedWorktree,
    RemoveWorktreeQuery, RemovedWorktree, RestoreWorktree, Session, Worktree, WorktreeChanges,
    WorktreeFileQuery, Worktrees, WorktreesQuery,
};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use engine::{
    ChoreOutcome, CollectReason, CollectedTree, Granted, MergedTree, RemovedTree, TreeSeen, who_changed,
};
use http::{HeaderValue, header};
use kernel::{MergeHow, SessionId};

/// The names of files in a command that somebody is to copy. If there are more, it reads them from a file, one to a line.
const TAKE_BACK_BYTES_MAX: usize = 4 * 1024;

problems! {
    ListProblems = [Invalid, NotFound, RightMissing];
    LookProblems = [Invalid, NotFound, RightMissing, WorktreeTrouble];
    RemoveProblems = [Invalid, NotFound, NotAllowed, RightMissing, BoundElsewhere, IdempotencyConflict, Changed, Busy,
        ScopeChanging, InWorktree, WorktreeTrouble, TooMuchOnDisk, DiskFull, Unclear];
    RestoreProblems = [BadJson, TooSlow, TooLarge, UnsupportedMediaType, Invalid, NotFound, NotAllowed, RightMissing,
        BoundElsewhere, IdempotencyConflict, Changed, Busy, ScopeChanging, Taken, WorktreeTrouble, TooMuchOnDisk,
        DiskFull, Unclear];
    MergeProblems = [BadJson, TooSlow, TooLarge, UnsupportedMediaType, Invalid, NotFound, NotAllowed, RightMissing,
        BoundElsewhere, IdempotencyConflict, Changed, Busy, ScopeChanging, MergeConflicts, TargetChanged, Uncommitted, WorktreeTrouble, DiskFull,
        Unclear];
    CollectProblems = [BadJson, TooSlow, TooLarge, UnsupportedMediaType, Invalid, RightMissing, BoundElsewhere,
        DiskFull, Unclear];
}

/// A worktree in a path.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code)]
pub(crate) struct WorktreePath {
    /// The session that it was made for.
    #[param(pattern = "^ses_[0-7][0-9a-hjkmnp-tv-z]{25}$")]
    id: String,
    /// Its name.
    #[param(min_length = 1, max_length = 40, pattern = "^[a-z0-9][a-z0-9-]*$")]
    name: String,
}

/// List worktrees
///
/// Those of every session that you may see: how much is in them, whether their session is in them now, and those that were
/// removed and can be had back. Of all sessions it is as it was last recorded, after a turn or a look (`seen_at`); of one session it is
/// looked at now.
#[utoipa::path(
    get, path = "/api/v1/worktrees", tag = "worktrees", operation_id = "worktrees", params(WorktreesQuery),
    responses((status = 200, description = "The worktrees.", body = Worktrees), ListProblems),
)]
pub(crate) async fn list(
    State(door): State<SharedDoor>,
    caller: Caller,
    Query(query): Query<WorktreesQuery>,
) -> ApiResult<Json<Worktrees>> {
    let of = match &query.session {
        Some(session) => Some(session_id("session", session, &door, &caller.by).await?),
        None => None,
    };
    let _place = door.take_look(caller.by.person)?;
    let view = door.engine.worktrees().list(&caller.by, of).await?;
    Ok(Json(Worktrees {
        items: view.here.into_iter().map(|(seen, in_use)| seen_form(seen, in_use)).collect(),
        removed: view.removed.into_iter().map(removed_form).collect(),
        more: view.is_cut,
    }))
}

/// See everything that was done in a worktree
///
/// Since it was made, committed or not: the files, and the beginning of the patch. It is looked at now, whether its session is in it or
/// not.
#[utoipa::path(
    get, path = "/api/v1/sessions/{id}/worktrees/{name}/changes", tag = "worktrees", operation_id = "worktree_changes",
    params(WorktreePath),
    responses((status = 200, description = "What was done in it.", body = WorktreeChanges), LookProblems),
)]
pub(crate) async fn changes(
    State(door): State<SharedDoor>,
    caller: Caller,
    IdPair(session, TreeName(name)): IdPair<SessionId, TreeName>,
) -> ApiResult<Json<WorktreeChanges>> {
    let _place = door.take_look(caller.by.person)?;
    let seen = door.engine.worktrees().changes(&caller.by, session, &name).await?;
    let engine::TreeSinceBase { base, changes } = seen;
    let engine::TreeChanges { files, patch, is_cut, unseen, moves: _ } = changes;
    let files = files.into_iter().map(file_form).collect();
    Ok(Json(WorktreeChanges { base, files, patch, cut: is_cut, unseen }))
}

/// See what was done in one file of a worktree, whole
///
/// The patch of that file alone, in pieces of at most 256 KiB that end with a line where they can. Each piece is looked at now.
#[utoipa::path(
    get, path = "/api/v1/sessions/{id}/worktrees/{name}/changes/file", tag = "worktrees",
    operation_id = "worktree_file_changes", params(WorktreePath, WorktreeFileQuery),
    responses((status = 200, description = "A piece of it.", body = FilePatch), LookProblems),
)]
pub(crate) async fn file_changes(
    State(door): State<SharedDoor>,
    caller: Caller,
    IdPair(session, TreeName(name)): IdPair<SessionId, TreeName>,
    Query(query): Query<WorktreeFileQuery>,
) -> ApiResult<Json<FilePatch>> {
    query.check()?;
    let _place = door.take_look(caller.by.person)?;
    let place = engine::PatchPlace { path: query.path, byte: query.from.unwrap_or(0) };
    let seen = door.engine.worktrees().file_changes(&caller.by, session, &name, place).await?;
    Ok(Json(patch_form(Some(seen))))
}

/// Remove a worktree
///
/// Only if its session is not in it. The agent's teardown script runs first, then everything that is in it, committed or
/// not, is kept in Homing's own store of snapshots, and nothing in its repository. Asked again, it answers the same.
#[utoipa::path(
    delete, path = "/api/v1/sessions/{id}/worktrees/{name}", tag = "worktrees", operation_id = "remove_worktree",
    params(WorktreePath, RemoveWorktreeQuery, KeyHeader),
    responses(
        (status = 200, description = "It is gone, and can be had back.", body = RemovedWorktree),
        (status = 202, description = "It is safe and goes on; the session says how far it is (`progress`). Ask again under the same key.",
            body = Session, headers(("Location" = String, description = "Where the session is."))),
        RemoveProblems,
    ),
)]
pub(crate) async fn remove(
    State(door): State<SharedDoor>,
    caller: Caller,
    IdPair(session, TreeName(name)): IdPair<SessionId, TreeName>,
    Query(query): Query<RemoveWorktreeQuery>,
) -> ApiResult<Response> {
    let teardown = query.teardown.unwrap_or(true);
    let _place = door.take_look(caller.by.person)?;
    let trace = caller.trace.clone();
    let came = door.engine.worktrees().remove(&caller.by, session, &name, teardown, trace).await?;
    chore_response(&door, &caller, session, came, removed_form).await
}

/// The answer to a chore: what came of it, or that it goes on, with the session that says how far it is.
pub(crate) async fn chore_response<T, Form: serde::Serialize>(
    door: &SharedDoor,
    caller: &Caller,
    session: SessionId,
    came: ChoreOutcome<T>,
    form: impl FnOnce(T) -> Form,
) -> ApiResult<Response> {
    match came {
        ChoreOutcome::Over(over) => Ok(Json(form(over)).into_response()),
        ChoreOutcome::GoesOn => {
            let row = door.engine.views().session(&who_changed(&caller.by), session).await?;
            let now = named_form(door, caller, row).await?;
            let location = HeaderValue::from_str(&now.links.this);
            let mut response = granted_response(Granted::Pending, Json(now));
            if let Ok(location) = location {
                response.headers_mut().insert(header::LOCATION, location);
            }
            Ok(response)
        }
    }
}

/// Have a worktree back that was removed
///
/// Every file is as it was, also what was never committed. One that somebody has deleted by hand is made again as it was when it was
/// last recorded. Asked again, it answers the same.
#[utoipa::path(
    post, path = "/api/v1/sessions/{id}/worktrees/{name}/restore", tag = "worktrees",
    operation_id = "restore_worktree", params(WorktreePath, KeyHeader), request_body = RestoreWorktree,
    responses(
        (status = 200, description = "It is there again.", body = Worktree),
        (status = 202, description = "It is safe and goes on; the session says how far it is (`progress`). Ask again under the same key.",
            body = Session, headers(("Location" = String, description = "Where the session is."))),
        RestoreProblems,
    ),
)]
pub(crate) async fn restore(
    State(door): State<SharedDoor>,
    caller: Caller,
    IdPair(session, TreeName(name)): IdPair<SessionId, TreeName>,
    JsonBody(restore): JsonBody<RestoreWorktree>,
) -> ApiResult<Response> {
    restore.check()?;
    let reference = restore.reference.as_deref();
    let _place = door.take_look(caller.by.person)?;
    let trace = caller.trace.clone();
    let came = door.engine.worktrees().restore(&caller.by, session, &name, reference, trace).await?;
    chore_response(&door, &caller, session, came, |seen| seen_form(seen, false)).await
}

/// Merge a worktree into the branch that it was made from
///
/// Its branch becomes part of the branch that is checked out where it was made from, as `git merge` would do; no hook runs. Files that were
/// changed on both sides, that are changed there, or that are not committed in the worktree are named, and nothing is changed. Asked
/// again, it finds everything there.
#[utoipa::path(
    post, path = "/api/v1/sessions/{id}/worktrees/{name}/merge", tag = "worktrees", operation_id = "merge_worktree",
    params(WorktreePath, KeyHeader), request_body = MergeWorktree,
    responses(
        (status = 200, description = "It is there, or would be.", body = MergedWorktree),
        (status = 202, description = "It is safe and goes on; the session says how far it is (`progress`). Ask again under the same key.",
            body = Session, headers(("Location" = String, description = "Where the session is."))),
        MergeProblems,
    ),
)]
pub(crate) async fn merge(
    State(door): State<SharedDoor>,
    caller: Caller,
    IdPair(session, TreeName(name)): IdPair<SessionId, TreeName>,
    JsonBody(wanted): JsonBody<MergeWorktree>,
) -> ApiResult<Response> {
    bring_back(&door, caller, session, name, MergeHow::Merge, wanted).await
}

/// Bring everything of a worktree back as uncommitted changes
///
/// Committed or not, it becomes changes of the files where the worktree was made from; the branch and what is staged there stay as they
/// are. Files that were changed on both sides, or that are changed there, are named, and nothing is changed. Asked again, it finds
/// everything there.
#[utoipa::path(
    post, path = "/api/v1/sessions/{id}/worktrees/{name}/apply", tag = "worktrees", operation_id = "apply_worktree",
    params(WorktreePath, KeyHeader), request_body = MergeWorktree,
    responses(
        (status = 200, description = "It is there, or would be.", body = MergedWorktree),
        (status = 202, description = "It is safe and goes on; the session says how far it is (`progress`). Ask again under the same key.",
            body = Session, headers(("Location" = String, description = "Where the session is."))),
        MergeProblems,
    ),
)]
pub(crate) async fn apply(
    State(door): State<SharedDoor>,
    caller: Caller,
    IdPair(session, TreeName(name)): IdPair<SessionId, TreeName>,
    JsonBody(wanted): JsonBody<MergeWorktree>,
) -> ApiResult<Response> {
    bring_back(&door, caller, session, name, MergeHow::Apply, wanted).await
}

async fn bring_back(
    door: &SharedDoor,
    caller: Caller,
    session: SessionId,
    name: String,
    how: MergeHow,
    MergeWorktree { dry_run }: MergeWorktree,
) -> ApiResult<Response> {
    let _place = door.take_look(caller.by.person)?;
    let trace = caller.trace.clone();
    let came = door.engine.worktrees().merge(&caller.by, session, &name, how, dry_run, trace).await?;
    let form = |merged: MergedTree| MergedWorktree {
        session: session.to_string(),
        take_back: take_back(&name, how, &merged),
        name,
        into: merged.into.for_readers().to_owned(),
        branch: merged.branch,
        files: merged.files,
        cut: merged.is_cut,
        left_out: merged.left_out,
    };
    chore_response(door, &caller, session, came, form).await
}

/// The command that takes it back. A merge: the branch goes back to where it was. An apply: the files that it has changed were as committed
/// before, and become so again; what it brought is in a stash, so that nothing is lost by it.
fn take_back(name: &str, how: MergeHow, merged: &MergedTree) -> Option<String> {
    let into = quoted(merged.into.for_readers());
    match (how, &merged.before) {
        (MergeHow::Merge, before) => {
            before.as_ref().map(|before| format!("git -C {into} reset --keep {before}"))
        }
        (MergeHow::Apply, _) if merged.files.is_empty() => None,
        (MergeHow::Apply, _) => {
            let stash = format!(
                "git -C {into} --literal-pathspecs stash push --include-untracked -m 'applied from {name}'"
            );
            let files: String = merged.files.iter().map(|file| format!(" {}", quoted(file))).collect();
            match merged.is_cut || files.len() > TAKE_BACK_BYTES_MAX {
                true => Some(format!("{stash} --pathspec-from-file=FILES")),
                false => Some(format!("{stash} --{files}")),
            }
        }
    }
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Remove worktrees whose time is over
///
/// Those of sessions that you manage, which nobody is in, and which were not used for long or take too much room. The
/// server does the same from time to time.
#[utoipa::path(
    post, path = "/api/v1/worktrees/collect", tag = "worktrees", operation_id = "collect_worktrees", params(KeyHeader),
    request_body = CollectWorktrees,
    responses((status = 200, description = "Which went, or would go.", body = CollectedWorktrees), CollectProblems),
)]
pub(crate) async fn collect(
    State(door): State<SharedDoor>,
    caller: Caller,
    JsonBody(CollectWorktrees { dry_run }): JsonBody<CollectWorktrees>,
) -> ApiResult<Json<CollectedWorktrees>> {
    let _place = door.take_look(caller.by.person)?;
    let gone = door.engine.worktrees().collect(&caller.by, dry_run, caller.trace).await?;
    Ok(Json(CollectedWorktrees { items: gone.into_iter().map(gone_form).collect() }))
}

fn seen_form(seen: TreeSeen, in_use: bool) -> Worktree {
    Worktree {
        session: seen.session.to_string(),
        name: seen.name,
        directory: seen.directory.for_readers().to_owned(),
        repository: seen.repository.for_readers().to_owned(),
        branch: seen.branch,
        ahead: seen.ahead,
        behind: seen.behind,
        dirty: seen.dirty,
        bytes: seen.bytes,
        in_use,
        missing: seen.is_missing,
        made_at: at(seen.made_at),
        used_at: at(seen.used_at),
        seen_at: at(seen.seen_at),
    }
}

fn removed_form(removed: RemovedTree) -> RemovedWorktree {
    RemovedWorktree {
        session: removed.session.to_string(),
        name: removed.name,
        repository: removed.repository.for_readers().to_owned(),
        branch: removed.branch,
        reference: removed.reference,
        removed_at: at(removed.removed_at),
    }
}

fn gone_form(CollectedTree { seen, why, came }: CollectedTree) -> CollectedWorktree {
    let (reference, problem) = match came {
        Some(Ok(ChoreOutcome::Over(removed))) => (Some(removed.reference), None),
        Some(Ok(ChoreOutcome::GoesOn)) => (None, None),
        Some(Err(refused)) => (None, Some(refused.to_string())),
        None => (None, None),
    };
    let why = match why {
        CollectReason::Age => "age",
        CollectReason::Disk => "disk",
    };
    CollectedWorktree {
        session: seen.session.to_string(),
        name: seen.name,
        bytes: seen.bytes,
        why: why.to_owned(),
        reference,
        problem,
    }
}
