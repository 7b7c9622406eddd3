//! Groups: people who are given things together.

use crate::door::SharedDoor;
use crate::extract::{Caller, Id, IdPair, Json, JsonBody};
use crate::openapi::{KeyHeader, problems};
use crate::people::who;
use crate::problem::ApiResult;
use api::{Done, Group, Membership, NewGroup, Page};
use axum::extract::State;
use engine::GroupRow;
use kernel::{GroupId, PersonId};

problems! {
    ListProblems = [RightMissing, BoundElsewhere];
    MakeProblems = [BadJson, TooSlow, TooLarge, UnsupportedMediaType, Invalid, RightMissing, RoleTooLow, BoundElsewhere,
        Taken, IdempotencyConflict, Changed, DiskFull, Unclear];
    ChangeProblems = [Invalid, NotFound, RightMissing, RoleTooLow, BoundElsewhere, IdempotencyConflict, Changed,
        DiskFull, Unclear];
}

/// The id of a group, in a path.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code)]
pub(crate) struct GroupName {
    /// The group.
    #[param(pattern = "^grp_[0-7][0-9a-hjkmnp-tv-z]{25}$")]
    id: String,
}

/// The ids of a group and a person, in a path.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code)]
pub(crate) struct MemberName {
    /// The group.
    #[param(pattern = "^grp_[0-7][0-9a-hjkmnp-tv-z]{25}$")]
    id: String,
    /// The person.
    #[param(pattern = "^usr_[0-7][0-9a-hjkmnp-tv-z]{25}$")]
    person: String,
}

/// List groups
///
/// Those of your org, and who is in them.
#[utoipa::path(
    get, path = "/api/v1/groups", tag = "people", operation_id = "groups",
    responses((status = 200, description = "Every group.", body = Page<Group>), ListProblems),
)]
pub(crate) async fn list(State(door): State<SharedDoor>, caller: Caller) -> ApiResult<Json<Page<Group>>> {
    let mut items = Vec::new();
    for row in door.engine.people().groups(&caller.by).await? {
        items.push(group_form(&door, &caller, row).await?);
    }
    Ok(Json(Page { items, next: None }))
}

async fn group_form(door: &SharedDoor, caller: &Caller, row: GroupRow) -> ApiResult<Group> {
    let mut people = Vec::new();
    for person in row.people {
        people.push(who(door, caller, person).await?);
    }
    Ok(Group { id: row.group.to_string(), name: row.name, people })
}

/// Make a group
#[utoipa::path(
    post, path = "/api/v1/groups", tag = "people", operation_id = "make_group", params(KeyHeader),
    request_body = NewGroup,
    responses((status = 200, description = "It is there; nobody is in it yet.", body = Group), MakeProblems),
)]
pub(crate) async fn make(
    State(door): State<SharedDoor>,
    caller: Caller,
    JsonBody(new): JsonBody<NewGroup>,
) -> ApiResult<Json<Group>> {
    new.check()?;
    let row = door.engine.people().make_group(&caller.by, new.name, caller.trace.clone()).await?;
    Ok(Json(group_form(&door, &caller, row).await?))
}

/// Remove a group
///
/// What was given to it is taken back with it.
#[utoipa::path(
    delete, path = "/api/v1/groups/{id}", tag = "people", operation_id = "remove_group",
    params(GroupName, KeyHeader),
    responses((status = 200, description = "It is gone.", body = Done), ChangeProblems),
)]
pub(crate) async fn remove(
    State(door): State<SharedDoor>,
    caller: Caller,
    Id(group): Id<GroupId>,
) -> ApiResult<Json<Done>> {
    door.engine.people().remove_group(&caller.by, group, caller.trace).await?;
    Ok(Json(Done { id: group.to_string() }))
}

/// Put somebody into a group
///
/// Doing it twice is fine.
#[utoipa::path(
    put, path = "/api/v1/groups/{id}/people/{person}", tag = "people", operation_id = "join",
    params(MemberName, KeyHeader),
    responses((status = 200, description = "They are in it.", body = Membership), ChangeProblems),
)]
pub(crate) async fn join(
    State(door): State<SharedDoor>,
    caller: Caller,
    IdPair(group, person): IdPair<GroupId, PersonId>,
) -> ApiResult<Json<Membership>> {
    door.engine.people().join(&caller.by, group, person, caller.trace).await?;
    Ok(Json(Membership { group: group.to_string(), user: person.to_string() }))
}

/// Take somebody out of a group
///
/// Doing it twice is fine.
#[utoipa::path(
    delete, path = "/api/v1/groups/{id}/people/{person}", tag = "people", operation_id = "leave",
    params(MemberName, KeyHeader),
    responses((status = 200, description = "They are not in it any more.", body = Membership), ChangeProblems),
)]
pub(crate) async fn leave(
    State(door): State<SharedDoor>,
    caller: Caller,
    IdPair(group, person): IdPair<GroupId, PersonId>,
) -> ApiResult<Json<Membership>> {
    door.engine.people().leave(&caller.by, group, person, caller.trace).await?;
    Ok(Json(Membership { group: group.to_string(), user: person.to_string() }))
}
