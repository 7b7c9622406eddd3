//! The caller's own view of themselves, and their changes to it.

use crate::door::SharedDoor;
use crate::extract::{Caller, Json, JsonBody, RequestMeta};
use crate::openapi::{KeyHeader, problems};
use crate::people::{person_form, right_form, role_form};
use crate::problem::ApiResult;
use crate::sign_in::SignInAttempt;
use api::{Done, Me, MyChange, NewPassword, Person};
use axum::Extension;
use axum::extract::State;
use engine::{DiskView, MeView};

problems! {
    MeProblems = [RightMissing];
    ChangeProblems = [BadJson, TooSlow, TooLarge, UnsupportedMediaType, Invalid, RightMissing, BoundElsewhere,
        IdempotencyConflict, Changed, DiskFull, Unclear];
    PasswordProblems = [BadJson, TooSlow, TooLarge, UnsupportedMediaType, Invalid, WrongSignIn, RightMissing, NeedsSignIn,
        BoundElsewhere, IdempotencyConflict, Changed, DiskFull, Unclear];
}

/// Ask whose credential this is
#[utoipa::path(
    get, path = "/api/v1/me", tag = "people", operation_id = "me",
    responses((status = 200, description = "Whose it is, and what it is good for.", body = Me), MeProblems),
)]
pub(crate) async fn me(State(door): State<SharedDoor>, caller: Caller) -> ApiResult<Json<Me>> {
    let me = door.engine.people().me(&caller.by).await?;
    let disk = door.engine.people().disk_use(&caller.by).await?;
    Ok(Json(me_form(me, disk_form(disk))))
}

fn disk_form(disk: DiskView) -> api::DiskUse {
    let DiskView { words_bytes, words_bytes_max, worktree_bytes, worktree_bytes_max, .. } = disk;
    let DiskView { snapshot_bytes, snapshot_bytes_max, .. } = disk;
    api::DiskUse {
        words_bytes,
        words_bytes_max,
        worktree_bytes,
        worktree_bytes_max,
        snapshot_bytes,
        snapshot_bytes_max,
    }
}

fn me_form(MeView { person, org, principal }: MeView, disk: api::DiskUse) -> Me {
    let bound =
        principal.bound.map(|(session, turn)| api::Bound { session: session.to_string(), turn: turn.0 });
    Me {
        person: person.person.to_string(),
        org: org.org.to_string(),
        handle: person.handle,
        org_name: org.name,
        name: person.name,
        email: person.email,
        role: role_form(person.role),
        host: person.is_host,
        has_password: person.has_password,
        groups: principal.groups.iter().map(ToString::to_string).collect(),
        roots: principal.roots,
        rights: principal.rights.iter().map(right_form).collect(),
        bound,
        disk: Some(disk),
    }
}

/// Change what you are called
#[utoipa::path(
    patch, path = "/api/v1/me", tag = "people", operation_id = "change_me", params(KeyHeader),
    request_body = MyChange,
    responses((status = 200, description = "It is so.", body = Person), ChangeProblems),
)]
pub(crate) async fn change(
    State(door): State<SharedDoor>,
    caller: Caller,
    JsonBody(change): JsonBody<MyChange>,
) -> ApiResult<Json<Person>> {
    change.check()?;
    let me = caller.by.person;
    // Who asks for nothing changes nothing, and learns how it is.
    let row = if change == MyChange::default() {
        door.engine.people().person(&caller.by, me).await?
    } else {
        let change = engine::PersonChange { name: change.name, ..engine::PersonChange::default() };
        door.engine.people().change_person(&caller.by, me, change, caller.trace).await?
    };
    Ok(Json(person_form(&caller.by, row)))
}

/// Choose another password
///
/// Every other browser and command line of yours is signed out. Doing it again under the same `Idempotency-Key` is fine.
#[utoipa::path(
    put, path = "/api/v1/me/password", tag = "people", operation_id = "set_password", params(KeyHeader),
    request_body = NewPassword,
    responses((status = 200, description = "It is the one from now on.", body = Done), PasswordProblems),
)]
pub(crate) async fn set_password(
    State(door): State<SharedDoor>,
    Extension(meta): Extension<RequestMeta>,
    caller: Caller,
    JsonBody(password): JsonBody<NewPassword>,
) -> ApiResult<Json<Done>> {
    password.check()?;
    let (current, new) = (password.current.map(api::Secret::into_inner), password.new.into_inner());
    let me = caller.by.person;
    // Whoever has got hold of a credential shall not find out the password with it.
    let attempt = SignInAttempt::begin(&door, &meta, Some(me.to_string()))?;
    let set = door.engine.people().set_password(&caller.by, me, current, Some(new), caller.trace).await;
    attempt.ended(&set);
    set?;
    Ok(Json(Done { id: me.to_string() }))
}
