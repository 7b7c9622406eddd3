//! The browsers in which the caller is told of questions and of turns that are over.

use crate::door::{HttpDoor, SharedDoor};
use crate::extract::{Caller, Id, Json, JsonBody};
use crate::openapi::problems;
use crate::problem::{ApiError, ApiResult};
use crate::tokens::TokenName;
use crate::web_push::WebPush;
use crate::wire::at;
use api::{Code, Done, NewPush, Push, Pushes};
use axum::extract::State;
use engine::PushRow;
use kernel::{Principal, TokenId};
use openidconnect::url::Url;

problems! {
    PushesProblems = [RightMissing, BoundElsewhere];
    SetProblems = [BadJson, TooSlow, TooLarge, UnsupportedMediaType, Invalid, NotFound, RightMissing, BoundElsewhere, DiskFull, Unclear];
    RemoveProblems = [Invalid, NotFound, RightMissing, BoundElsewhere, DiskFull, Unclear];
}

/// List the browsers in which you are told
///
/// With the key of this server, which a browser needs to be told here.
#[utoipa::path(
    get, path = "/api/v1/me/pushes", tag = "people", operation_id = "pushes",
    responses((status = 200, description = "Your own, and nobody else's.", body = Pushes), PushesProblems),
)]
pub(crate) async fn list(State(door): State<SharedDoor>, caller: Caller) -> ApiResult<Json<Pushes>> {
    let rows = door.engine.people().pushes(&caller.by).await?;
    let items = rows.into_iter().map(|row| push_form(&caller.by, row)).collect();
    Ok(Json(Pushes { public_key: door.push.as_deref().map(WebPush::public_key), items }))
}

/// Be told in this browser
///
/// Of questions of agents, and of turns that are over: which session, which agent, which tool, and nothing that was said. It belongs to
/// the credential that you ask with, in place of what belonged to it before, and is over when that is revoked or you sign out. Saying
/// it twice is saying it once.
#[utoipa::path(
    put, path = "/api/v1/me/pushes", tag = "people", operation_id = "set_push", request_body = NewPush,
    responses((status = 200, description = "You are told there from now on.", body = Push), SetProblems),
)]
pub(crate) async fn set(
    State(door): State<SharedDoor>,
    caller: Caller,
    JsonBody(new): JsonBody<NewPush>,
) -> ApiResult<Json<Push>> {
    new.check()?;
    let place = place_of(&door, &new)?;
    let row = door.engine.people().set_push(&caller.by, place, caller.trace.clone()).await?;
    Ok(Json(push_form(&caller.by, row)))
}

fn place_of(door: &HttpDoor, new: &NewPush) -> ApiResult<engine::PushPlace> {
    let off = || ApiError::new(Code::NotFound, "this server tells nobody on their devices (push.enabled)");
    let push = door.push.as_deref().ok_or_else(off)?;
    let NewPush { endpoint, keys } = new;
    let place = push.place(endpoint, &keys.p256dh, &keys.auth);
    Ok(place.map_err(|(field, reason)| api::Invalid { field, reason })?)
}

/// Be told nothing more in a browser
///
/// By the credential that it belongs to. Fine to say twice.
#[utoipa::path(
    delete, path = "/api/v1/me/pushes/{id}", tag = "people", operation_id = "remove_push", params(TokenName),
    responses((status = 200, description = "You are told nothing there.", body = Done), RemoveProblems),
)]
pub(crate) async fn remove(
    State(door): State<SharedDoor>,
    caller: Caller,
    Id(token): Id<TokenId>,
) -> ApiResult<Json<Done>> {
    door.engine.people().remove_push(&caller.by, token, caller.trace).await?;
    Ok(Json(Done { id: token.to_string() }))
}

/// Without the address, which is as good as a key.
fn push_form(by: &Principal, row: PushRow) -> Push {
    let service = Url::parse(&row.place.endpoint).ok();
    let service = service.and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default();
    Push { id: row.token.to_string(), service, since: at(row.since), here: by.credential == Some(row.token) }
}
