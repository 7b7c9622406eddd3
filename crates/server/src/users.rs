//! The people of an org: see them, let somebody in, change them, shut them out.

use crate::cursor;
use crate::door::SharedDoor;
use crate::extract::{Caller, Id, Json, JsonBody, Query, limit};
use crate::openapi::{KeyHeader, problems};
use crate::people::{link_form, person_form, role_of};
use crate::problem::ApiResult;
use api::{AddedPerson, Done, HandOver, Link, NewPerson, Page, PeopleQuery, Person, PersonChange, Role};
use axum::extract::State;
use engine::{AccessError, AddPerson, PeopleError};
use kernel::PersonId;

problems! {
    ListProblems = [Invalid, BadCursor, RightMissing, BoundElsewhere];
    ReadProblems = [NotFound, RightMissing, BoundElsewhere];
    AddProblems = [BadJson, TooSlow, TooLarge, UnsupportedMediaType, Invalid, RightMissing, RoleTooLow, BoundElsewhere,
        Taken, WallNotProved, IdempotencyConflict, Changed, DiskFull, Unclear];
    ChangeProblems = [BadJson, TooSlow, TooLarge, UnsupportedMediaType, Invalid, NotFound, RightMissing, NeedsSignIn, RoleTooLow,
        BoundElsewhere, Taken, LastOwner, IdempotencyConflict, Changed, DiskFull, Unclear];
    VerbProblems = [Invalid, NotFound, RightMissing, RoleTooLow, BoundElsewhere, LastOwner, WallNotProved,
        IdempotencyConflict, Changed, DiskFull, Unclear];
    HandOverProblems = [BadJson, TooSlow, TooLarge, UnsupportedMediaType, Invalid, NotFound, RightMissing, RoleTooLow,
        BoundElsewhere, CannotOwn, OwnsAlready, IdempotencyConflict, Changed, DiskFull, Unclear];
}

/// The id of a person, in a path.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code)]
pub(crate) struct PersonName {
    /// The person.
    #[param(pattern = "^usr_[0-7][0-9a-hjkmnp-tv-z]{25}$")]
    id: String,
}

/// List people
///
/// Those of your org, in order of their handles; or the one of a handle (for admins also of an e-mail address), if there is
/// one.
#[utoipa::path(
    get, path = "/api/v1/users", tag = "people", operation_id = "people", params(PeopleQuery),
    responses((status = 200, description = "A page of people.", body = Page<Person>), ListProblems),
)]
pub(crate) async fn list(
    State(door): State<SharedDoor>,
    caller: Caller,
    Query(query): Query<PeopleQuery>,
) -> ApiResult<Json<Page<Person>>> {
    query.check()?;
    let limit = limit(query.limit)?;
    let after = cursor::read_people(query.cursor.as_deref())?;
    if let Some(named) = query.named {
        let found = match door.engine.people().person_named(&caller.by, &named).await {
            Err(PeopleError::Access(AccessError::NotFound { .. })) => None,
            found => Some(found?),
        };
        let items = found.into_iter().map(|row| person_form(&caller.by, row)).collect();
        return Ok(Json(Page { items, next: None }));
    }
    let mut rows = door.engine.people().people(&caller.by, after, limit + 1).await?;
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| more).map(|row| cursor::people(&row.handle));
    Ok(Json(Page { items: rows.into_iter().map(|row| person_form(&caller.by, row)).collect(), next }))
}

/// Read a person
#[utoipa::path(
    get, path = "/api/v1/users/{id}", tag = "people", operation_id = "person", params(PersonName),
    responses((status = 200, description = "The person.", body = Person), ReadProblems),
)]
pub(crate) async fn read(
    State(door): State<SharedDoor>,
    caller: Caller,
    Id(person): Id<PersonId>,
) -> ApiResult<Json<Person>> {
    Ok(Json(person_form(&caller.by, door.engine.people().person(&caller.by, person).await?)))
}

/// Let somebody in
///
/// Answers with a link by which they come in, once, within seven days; it is shown this one time. Refused unless it is
/// proved that agents cannot reach what is not theirs (`GET /api/v1/wall`), or the server trusts everyone.
#[utoipa::path(
    post, path = "/api/v1/users", tag = "people", operation_id = "add_person", params(KeyHeader),
    request_body = NewPerson,
    responses((status = 200, description = "They may come in.", body = AddedPerson), AddProblems),
)]
pub(crate) async fn add(
    State(door): State<SharedDoor>,
    caller: Caller,
    JsonBody(new): JsonBody<NewPerson>,
) -> ApiResult<Json<AddedPerson>> {
    new.check()?;
    let role = role_of(new.role.unwrap_or(Role::Member));
    let add = AddPerson { handle: new.handle, name: new.name, email: new.email, role };
    let (row, link) = door.engine.people().add_person(&caller.by, add, caller.trace).await?;
    let link = link_form(row.person, &link.secret, link.expires);
    Ok(Json(AddedPerson { link, user: person_form(&caller.by, row) }))
}

/// Change what somebody is called, or what they are in the org
#[utoipa::path(
    patch, path = "/api/v1/users/{id}", tag = "people", operation_id = "change_person",
    params(PersonName, KeyHeader), request_body = PersonChange,
    responses((status = 200, description = "It is so.", body = Person), ChangeProblems),
)]
pub(crate) async fn change(
    State(door): State<SharedDoor>,
    caller: Caller,
    Id(person): Id<PersonId>,
    JsonBody(change): JsonBody<PersonChange>,
) -> ApiResult<Json<Person>> {
    change.check()?;
    // Who asks for nothing changes nothing, and learns how it is.
    if change == PersonChange::default() {
        return Ok(Json(person_form(&caller.by, door.engine.people().person(&caller.by, person).await?)));
    }
    let PersonChange { name, email, role } = change;
    let change = engine::PersonChange { name, email, role: role.map(role_of) };
    let row = door.engine.people().change_person(&caller.by, person, change, caller.trace).await?;
    Ok(Json(person_form(&caller.by, row)))
}

/// Shut somebody out
///
/// Their credentials and links are good for nothing any more, what waits of what they said is refused, what runs is
/// stopped. Doing it twice is fine.
#[utoipa::path(
    post, path = "/api/v1/users/{id}/disable", tag = "people", operation_id = "disable",
    params(PersonName, KeyHeader),
    responses((status = 200, description = "They may do nothing any more.", body = Done), VerbProblems),
)]
pub(crate) async fn disable(
    State(door): State<SharedDoor>,
    caller: Caller,
    Id(person): Id<PersonId>,
) -> ApiResult<Json<Done>> {
    door.engine.people().disable(&caller.by, person, caller.trace).await?;
    Ok(Json(Done { id: person.to_string() }))
}

/// Let somebody in again
///
/// They sign in anew, by their password or by a link. Doing it twice is fine.
#[utoipa::path(
    post, path = "/api/v1/users/{id}/enable", tag = "people", operation_id = "enable",
    params(PersonName, KeyHeader),
    responses((status = 200, description = "They may come in.", body = Done), VerbProblems),
)]
pub(crate) async fn enable(
    State(door): State<SharedDoor>,
    caller: Caller,
    Id(person): Id<PersonId>,
) -> ApiResult<Json<Done>> {
    door.engine.people().enable(&caller.by, person, caller.trace).await?;
    Ok(Json(Done { id: person.to_string() }))
}

/// Make a link by which somebody signs in, once
///
/// For yourself it works for ten minutes, for somebody else for seven days. It is shown this one time.
#[utoipa::path(
    post, path = "/api/v1/users/{id}/link", tag = "people", operation_id = "make_link",
    params(PersonName, KeyHeader),
    responses((status = 200, description = "The way in.", body = Link), VerbProblems),
)]
pub(crate) async fn link(
    State(door): State<SharedDoor>,
    caller: Caller,
    Id(person): Id<PersonId>,
) -> ApiResult<Json<Link>> {
    let link = door.engine.people().make_link(&caller.by, person, caller.trace).await?;
    Ok(Json(link_form(person, &link.secret, link.expires)))
}

/// Take somebody's password away
///
/// Links and sign-in elsewhere still work. Doing it twice is fine.
#[utoipa::path(
    delete, path = "/api/v1/users/{id}/password", tag = "people", operation_id = "remove_password",
    params(PersonName, KeyHeader),
    responses((status = 200, description = "They have none.", body = Done), VerbProblems),
)]
pub(crate) async fn remove_password(
    State(door): State<SharedDoor>,
    caller: Caller,
    Id(person): Id<PersonId>,
) -> ApiResult<Json<Done>> {
    door.engine.people().set_password(&caller.by, person, None, None, caller.trace).await?;
    Ok(Json(Done { id: person.to_string() }))
}

/// Offer all sessions of somebody to somebody else
///
/// Every open one that is not offered yet; each is the other's when they accept it. The sessions of somebody who is disabled,
/// ended ones too, are the other's at once.
#[utoipa::path(
    post, path = "/api/v1/users/{id}/hand-over", tag = "people", operation_id = "hand_over_all",
    params(PersonName, KeyHeader), request_body = HandOver,
    responses((status = 200, description = "They are offered, or the other's.", body = Done), HandOverProblems),
)]
pub(crate) async fn hand_over(
    State(door): State<SharedDoor>,
    caller: Caller,
    Id(person): Id<PersonId>,
    JsonBody(over): JsonBody<HandOver>,
) -> ApiResult<Json<Done>> {
    let to = crate::extract::id("to", &over.to)?;
    door.engine.people().hand_over_all(&caller.by, person, to, caller.trace).await?;
    Ok(Json(Done { id: person.to_string() }))
}
