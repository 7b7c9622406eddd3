//! Grants on a session or an agent; and the owner of a session: who it is offered to, and what they say.

use crate::agents::AgentName;
use crate::door::SharedDoor;
use crate::extract::{Caller, Id, Json, JsonBody, PathAgentName, Query, id};
use crate::openapi::{KeyHeader, problems};
use crate::people::{grant_form, grant_of, grantee_form, grantee_of, who};
use crate::problem::ApiResult;
use crate::sessions::SessionName;
use crate::wire::at;
use api::{Done, Granted, GranteeQuery, HandOver, NewGrant, Offer, Page, TakenBack};
use axum::extract::State;
use engine::Resource;
use kernel::SessionId;

problems! {
    ListProblems = [NotFound, NotAllowed, RightMissing];
    GiveProblems = [BadJson, TooSlow, TooLarge, UnsupportedMediaType, Invalid, NotFound, NotAllowed, RightMissing,
        IdempotencyConflict, Changed, DiskFull, Unclear];
    HandOverProblems = [BadJson, TooSlow, TooLarge, UnsupportedMediaType, Invalid, NotFound, NotAllowed, RightMissing,
        CannotOwn, OwnsAlready, OfferedAlready, SessionEnded, IdempotencyConflict, Changed, DiskFull, Unclear];
    OfferBackProblems = [Invalid, NotFound, NotAllowed, RightMissing, IdempotencyConflict, Changed, DiskFull, Unclear];
    AcceptProblems = [Invalid, NotFound, RightMissing, BoundElsewhere, AgentNotYours, DirectoryNotYours, CannotOwn,
        IdempotencyConflict, Changed, TooManyOpenSessions, TooMuchOnDisk, DiskFull, Unclear];
    DeclineProblems = [Invalid, NotFound, RightMissing, BoundElsewhere, IdempotencyConflict, Changed, DiskFull, Unclear];
    OffersProblems = [RightMissing, BoundElsewhere];
    TakeProblems = [Invalid, NotFound, NotAllowed, RightMissing, IdempotencyConflict, Changed, DiskFull, Unclear];
    AgentListProblems = [NotFound, RightMissing, RoleTooLow, BoundElsewhere, UnknownAgent];
    AgentGiveProblems = [BadJson, TooSlow, TooLarge, UnsupportedMediaType, Invalid, NotFound, RightMissing, RoleTooLow,
        BoundElsewhere, UnknownAgent, IdempotencyConflict, Changed, DiskFull, Unclear];
    AgentTakeProblems = [Invalid, NotFound, RightMissing, RoleTooLow, BoundElsewhere, UnknownAgent,
        IdempotencyConflict, Changed, DiskFull, Unclear];
}

/// List what was given on a session
///
/// For whoever manages it.
#[utoipa::path(
    get, path = "/api/v1/sessions/{id}/grants", tag = "sessions", operation_id = "grants", params(SessionName),
    responses((status = 200, description = "Who was given what.", body = Page<Granted>), ListProblems),
)]
pub(crate) async fn list(
    State(door): State<SharedDoor>,
    caller: Caller,
    Id(session): Id<SessionId>,
) -> ApiResult<Json<Page<Granted>>> {
    grants(&door, &caller, Resource::Session(session)).await
}

/// Give something on a session
///
/// In place of what they were given on it before. Whoever may prompt has a shell as the agent's user.
#[utoipa::path(
    put, path = "/api/v1/sessions/{id}/grants", tag = "sessions", operation_id = "give",
    params(SessionName, KeyHeader), request_body = NewGrant,
    responses((status = 200, description = "It is so.", body = NewGrant), GiveProblems),
)]
pub(crate) async fn give(
    State(door): State<SharedDoor>,
    caller: Caller,
    Id(session): Id<SessionId>,
    JsonBody(new): JsonBody<NewGrant>,
) -> ApiResult<Json<NewGrant>> {
    give_on(&door, caller, Resource::Session(session), new).await
}

/// Take back what was given on a session
///
/// Name exactly one of `user`, `group` and `org=true`. Doing it twice is fine.
#[utoipa::path(
    delete, path = "/api/v1/sessions/{id}/grants", tag = "sessions", operation_id = "take_back",
    params(SessionName, GranteeQuery, KeyHeader),
    responses((status = 200, description = "They were given nothing.", body = TakenBack), TakeProblems),
)]
pub(crate) async fn take_back(
    State(door): State<SharedDoor>,
    caller: Caller,
    Id(session): Id<SessionId>,
    Query(from): Query<GranteeQuery>,
) -> ApiResult<Json<TakenBack>> {
    take_from(&door, caller, Resource::Session(session), from).await
}

/// Offer a session to somebody
///
/// For whoever manages it. Nothing changes until they accept it, which they can for seven days. A session has one offer at a
/// time; the offer is over when the session ends, or when its owner or whom it is offered to is disabled.
#[utoipa::path(
    post, path = "/api/v1/sessions/{id}/hand-over", tag = "sessions", operation_id = "hand_over",
    params(SessionName, KeyHeader), request_body = HandOver,
    responses((status = 200, description = "It is offered to them.", body = Done), HandOverProblems),
)]
pub(crate) async fn hand_over(
    State(door): State<SharedDoor>,
    caller: Caller,
    Id(session): Id<SessionId>,
    JsonBody(over): JsonBody<HandOver>,
) -> ApiResult<Json<Done>> {
    let to = id("to", &over.to)?;
    door.engine.people().hand_over(&caller.by, session, to, caller.trace).await?;
    Ok(Json(Done { id: session.to_string() }))
}

/// Take the offer of a session back
///
/// For whoever manages it.
#[utoipa::path(
    delete, path = "/api/v1/sessions/{id}/hand-over", tag = "sessions", operation_id = "take_offer_back",
    params(SessionName, KeyHeader),
    responses((status = 200, description = "It is offered to nobody.", body = Done), OfferBackProblems),
)]
pub(crate) async fn take_offer_back(
    State(door): State<SharedDoor>,
    caller: Caller,
    Id(session): Id<SessionId>,
) -> ApiResult<Json<Done>> {
    door.engine.people().take_offer_back(&caller.by, session, caller.trace).await?;
    Ok(Json(Done { id: session.to_string() }))
}

/// Accept a session
///
/// For whom it is offered to, if they could make such a session: its agent and its directory are theirs to choose, and there is room
/// for one more. It is theirs alone from then on: what was given on it ends, and so does everything that waits (`refused`) or runs
/// (`stopped`) in it, because of `handed_over`. Whoever said it can still read its receipt.
#[utoipa::path(
    post, path = "/api/v1/sessions/{id}/hand-over/accept", tag = "sessions", operation_id = "accept_offer",
    params(SessionName, KeyHeader),
    responses((status = 200, description = "It is the caller's.", body = Done), AcceptProblems),
)]
pub(crate) async fn accept_offer(
    State(door): State<SharedDoor>,
    caller: Caller,
    Id(session): Id<SessionId>,
) -> ApiResult<Json<Done>> {
    door.engine.people().accept_offer(&caller.by, session, caller.trace).await?;
    Ok(Json(Done { id: session.to_string() }))
}

/// Decline a session
///
/// For whom it is offered to. Nothing has changed.
#[utoipa::path(
    post, path = "/api/v1/sessions/{id}/hand-over/decline", tag = "sessions", operation_id = "decline_offer",
    params(SessionName, KeyHeader),
    responses((status = 200, description = "It is offered to nobody.", body = Done), DeclineProblems),
)]
pub(crate) async fn decline_offer(
    State(door): State<SharedDoor>,
    caller: Caller,
    Id(session): Id<SessionId>,
) -> ApiResult<Json<Done>> {
    door.engine.people().decline_offer(&caller.by, session, caller.trace).await?;
    Ok(Json(Done { id: session.to_string() }))
}

/// List offers of sessions
///
/// Those to the caller, and those of the caller's own sessions, in the order in which they were made.
#[utoipa::path(
    get, path = "/api/v1/offers", tag = "sessions", operation_id = "offers",
    responses((status = 200, description = "The offers that stand.", body = Page<Offer>), OffersProblems),
)]
pub(crate) async fn offers(State(door): State<SharedDoor>, caller: Caller) -> ApiResult<Json<Page<Offer>>> {
    let mut items = Vec::new();
    for (offer, row) in door.engine.people().offers(&caller.by).await? {
        items.push(Offer {
            session: offer.session.to_string(),
            title: row.title,
            agent: row.scope.agent,
            directory: row.scope.directory.for_readers().to_owned(),
            from: who(&door, &caller, offer.from).await?,
            to: who(&door, &caller, offer.to).await?,
            since: at(offer.at),
            until: at(offer.until),
        });
    }
    Ok(Json(Page { items, next: None }))
}

/// List what was given on an agent
///
/// For admins. An agent on which nothing was ever given is open to every member.
#[utoipa::path(
    get, path = "/api/v1/agents/{name}/grants", tag = "house", operation_id = "agent_grants", params(AgentName),
    responses((status = 200, description = "Who was given what.", body = Page<Granted>), AgentListProblems),
)]
pub(crate) async fn agent_list(
    State(door): State<SharedDoor>,
    caller: Caller,
    PathAgentName(agent): PathAgentName,
) -> ApiResult<Json<Page<Granted>>> {
    grants(&door, &caller, Resource::Agent(agent)).await
}

/// Give something on an agent
///
/// For admins. From then on it is there only for those to whom something was given on it, and for admins.
#[utoipa::path(
    put, path = "/api/v1/agents/{name}/grants", tag = "house", operation_id = "give_agent",
    params(AgentName, KeyHeader), request_body = NewGrant,
    responses((status = 200, description = "It is so.", body = NewGrant), AgentGiveProblems),
)]
pub(crate) async fn agent_give(
    State(door): State<SharedDoor>,
    caller: Caller,
    PathAgentName(agent): PathAgentName,
    JsonBody(new): JsonBody<NewGrant>,
) -> ApiResult<Json<NewGrant>> {
    give_on(&door, caller, Resource::Agent(agent), new).await
}

/// Take back what was given on an agent
///
/// Name exactly one of `user`, `group` and `org=true`. When nothing is left, it is there for admins only:
/// to open it to everybody, give it to the org.
#[utoipa::path(
    delete, path = "/api/v1/agents/{name}/grants", tag = "house", operation_id = "take_back_agent",
    params(AgentName, GranteeQuery, KeyHeader),
    responses((status = 200, description = "They were given nothing.", body = TakenBack), AgentTakeProblems),
)]
pub(crate) async fn agent_take_back(
    State(door): State<SharedDoor>,
    caller: Caller,
    PathAgentName(agent): PathAgentName,
    Query(from): Query<GranteeQuery>,
) -> ApiResult<Json<TakenBack>> {
    take_from(&door, caller, Resource::Agent(agent), from).await
}

async fn grants(door: &SharedDoor, caller: &Caller, on: Resource) -> ApiResult<Json<Page<Granted>>> {
    let mut items = Vec::new();
    for row in door.engine.people().grants(&caller.by, on).await? {
        items.push(Granted {
            to: grantee_form(row.to),
            grant: grant_form(row.grant),
            by: who(door, caller, row.by).await?,
            since: at(row.since),
        });
    }
    Ok(Json(Page { items, next: None }))
}

async fn give_on(
    door: &SharedDoor,
    caller: Caller,
    on: Resource,
    new: NewGrant,
) -> ApiResult<Json<NewGrant>> {
    let to = grantee_of(&new.to)?;
    door.engine.people().give(&caller.by, on, to, grant_of(new.grant), caller.trace).await?;
    Ok(Json(new))
}

async fn take_from(
    door: &SharedDoor,
    caller: Caller,
    on: Resource,
    from: GranteeQuery,
) -> ApiResult<Json<TakenBack>> {
    let from = from.grantee()?;
    let to = grantee_of(&from)?;
    door.engine.people().take_back(&caller.by, on, to, caller.trace).await?;
    Ok(Json(TakenBack { from }))
}
