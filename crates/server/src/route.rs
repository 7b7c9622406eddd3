//! Where a message would go: the same lookups and the same function as for a real one.

use crate::door::SharedDoor;
use crate::extract::{Caller, Json, Query, address, session_id};
use crate::messages::expected;
use crate::openapi::problems;
use crate::problem::{ApiError, ApiResult};
use crate::sessions::{name_owner, session_form};
use crate::wire::{end_why, previous};
use api::{Code, Explained, RouteQuery};
use axum::extract::State;
use engine::{RouteChoice, Thing};
use kernel::{NoRoute, Route, To};

problems! {
    RouteProblems = [Invalid, BadAddress, AddressNotYours, NotFound, RightMissing];
}

/// Explain where a message would go
///
/// Name exactly one of `session`, `conversation` and `new=true`; with the last two together, a new session would take the
/// conversation over. With `agent` and `model` it says whether a session that is there has them. Nothing is changed.
#[utoipa::path(
    get, path = "/api/v1/route", tag = "bindings", operation_id = "explain", params(RouteQuery),
    responses((status = 200, description = "Where it would go, and why.", body = Explained), RouteProblems),
)]
pub(crate) async fn explain(
    State(door): State<SharedDoor>,
    caller: Caller,
    Query(query): Query<RouteQuery>,
) -> ApiResult<Json<Explained>> {
    query.check()?;
    let expect = query.expect();
    if query.new.is_some() && expect.is_some() {
        let detail =
            "`agent` and `model` are what a session that is there has to have: leave them out with `new`";
        return Err(ApiError::new(Code::Invalid, detail));
    }
    let to = match (query.session, query.conversation, query.new) {
        (Some(session), None, None) => To::Session(session_id("session", &session, &door, &caller.by).await?),
        (None, Some(conversation), None) => To::Conversation(address("conversation", &conversation)?),
        (None, None, Some(true)) => To::New,
        (None, Some(conversation), Some(true)) => To::NewIn(address("conversation", &conversation)?),
        _ => {
            let detail =
                "name exactly one of `session`, `conversation` and `new=true`; only the last two go together";
            return Err(ApiError::new(Code::Invalid, detail));
        }
    };
    let named = to.clone();
    let choice = RouteChoice { directory: query.directory.as_deref(), expected: expect.map(expected) };
    let explained = door.engine.views().explain(&caller.by, to, choice, &caller.trace).await?;
    let mut explained = explained_form(&named, explained);
    if let (Explained::Refused { code: Code::NotFound, .. }, To::Session(session)) = (&explained, &named) {
        let code = Code::NotFound.word();
        door.engine.views().read_refused(&caller.by, Thing::Session(*session), code, &caller.trace);
    }
    if let Explained::Existing { session, .. } = &mut explained {
        name_owner(&door, &caller, session).await?;
    }
    Ok(Json(explained))
}

fn explained_form(to: &To, explained: engine::Explained) -> Explained {
    let refused = |code, ended, why: &str| Explained::Refused { code, ended, why: why.to_owned() };
    if let Some(unfit) = explained.unfit.map(ApiError::from) {
        return refused(unfit.0.code, None, &unfit.0.detail);
    }
    match (explained.route, explained.session) {
        (Ok(Route::Existing(_)), Some(session)) if explained.is_another => {
            let (row, agent) = (&session, &session.scope.agent);
            let model =
                row.scope.model.as_ref().map(|model| format!(" with model `{model}`")).unwrap_or_default();
            let why = format!("{} has `{agent}`{model}, and another one is expected", row.session);
            refused(Code::OtherAgent, None, &why)
        }
        (Ok(Route::Existing(_)), Some(session)) => {
            let why = match to {
                To::Conversation(_) => "the conversation is bound to this open session",
                To::Session(_) | To::New | To::NewIn(_) => "this session was named, and it is open",
            };
            let before = previous(explained.before);
            Explained::Existing { session: Box::new(session_form(session)), before, why: why.to_owned() }
        }
        (Ok(Route::Create { bind, previous: before }), _) => {
            let why = match (&bind, &before) {
                _ if is_taken(to, before.as_ref()) => {
                    "a new session was asked for; the conversation will be its own, and the session that has it now goes on"
                }
                (Some(_), Some(_)) => "the session that the conversation had before has ended",
                (Some(_), None) => "the conversation has no session yet",
                (None, _) => "a new session was asked for",
            };
            let conversation = bind.map(|address| address.to_string());
            let before = previous(before.or(explained.before));
            Explained::New { conversation, previous: before, why: why.to_owned() }
        }
        (Err(NoRoute::Ended(_, why)), _) => {
            let words = "the session that was named has ended; nothing stands in for it";
            refused(Code::SessionEnded, Some(end_why(why)), words)
        }
        (Err(NoRoute::Unknown), _) | (Ok(Route::Existing(_)), None) => {
            refused(Code::NotFound, None, "there is no such session; nothing stands in for it")
        }
    }
}

/// True if a conversation would be taken over from an open session.
fn is_taken(to: &To, before: Option<&kernel::Previous>) -> bool {
    matches!(to, To::NewIn(_)) && before.is_some_and(|before| before.ended.is_none())
}
