//! Credentials: see them, make one for a program, revoke one.

use crate::door::SharedDoor;
use crate::extract::{Caller, Id, Json, JsonBody, Query, id};
use crate::openapi::{KeyHeader, problems};
use crate::people::{right_form, right_of};
use crate::problem::ApiResult;
use crate::wire::at;
use api::{Done, MadeToken, NewToken, Page, Purpose, Token, TokensQuery};
use axum::extract::State;
use engine::{Expiry, MakeToken, TokenView};
use kernel::{Moment, TokenId};

problems! {
    ListProblems = [Invalid, NotFound, RightMissing, RoleTooLow, BoundElsewhere];
    MakeProblems = [BadJson, TooSlow, TooLarge, UnsupportedMediaType, Invalid, RightMissing, BoundElsewhere,
        IdempotencyConflict, Changed, DiskFull, Unclear];
    RevokeProblems = [Invalid, NotFound, RightMissing, RoleTooLow, BoundElsewhere, IdempotencyConflict, Changed,
        DiskFull, Unclear];
}

/// The id of a credential, in a path.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code)]
pub(crate) struct TokenName {
    /// The credential.
    #[param(pattern = "^tok_[0-7][0-9a-hjkmnp-tv-z]{25}$")]
    id: String,
}

/// List credentials
///
/// Your own, or those of somebody whom you look after; the newest first, without the machine's and those of turns.
#[utoipa::path(
    get, path = "/api/v1/tokens", tag = "people", operation_id = "tokens", params(TokensQuery),
    responses((status = 200, description = "What can be seen of them.", body = Page<Token>), ListProblems),
)]
pub(crate) async fn list(
    State(door): State<SharedDoor>,
    caller: Caller,
    Query(query): Query<TokensQuery>,
) -> ApiResult<Json<Page<Token>>> {
    let person = query.user.map(|user| id("user", &user)).transpose()?;
    let rows = door.engine.people().tokens(&caller.by, person).await?;
    Ok(Json(Page { items: rows.into_iter().map(token_form).collect(), next: None }))
}

/// Make a credential for a program of yours
///
/// It may do what you may, within its rights, as long as you may. Its secret is shown this one time. Made with such a
/// token itself, it ends with that one at the latest, whatever was asked for, and is revoked with it.
#[utoipa::path(
    post, path = "/api/v1/tokens", tag = "people", operation_id = "make_token", params(KeyHeader),
    request_body = NewToken,
    responses((status = 200, description = "It is good from now on.", body = MadeToken), MakeProblems),
)]
pub(crate) async fn make(
    State(door): State<SharedDoor>,
    caller: Caller,
    JsonBody(new): JsonBody<NewToken>,
) -> ApiResult<Json<MadeToken>> {
    new.check()?;
    let rights = new.rights.into_iter().map(right_of).collect();
    let expires = match new.expires {
        None => Expiry::Usual,
        Some(api::Expiry::At(at)) => Expiry::At(Moment(at.0)),
        Some(api::Expiry::Never) => Expiry::Never,
    };
    let make = MakeToken { name: new.name, rights, expires, client: new.client };
    let (view, secret) = door.engine.people().make_token(&caller.by, make, caller.trace).await?;
    Ok(Json(MadeToken { token: token_form(view), secret: secret.reveal().to_owned().into() }))
}

/// Make a credential good for nothing
///
/// One of your own, or of somebody whom you look after. Within a second nobody gets in with it, nor with any that was made
/// with it.
#[utoipa::path(
    delete, path = "/api/v1/tokens/{id}", tag = "people", operation_id = "revoke_token",
    params(TokenName, KeyHeader),
    responses((status = 200, description = "It is good for nothing.", body = Done), RevokeProblems),
)]
pub(crate) async fn revoke(
    State(door): State<SharedDoor>,
    caller: Caller,
    Id(token): Id<TokenId>,
) -> ApiResult<Json<Done>> {
    door.engine.people().revoke_token(&caller.by, token, caller.trace).await?;
    Ok(Json(Done { id: token.to_string() }))
}

fn token_form(view: TokenView) -> Token {
    Token {
        id: view.token.to_string(),
        user: view.person.to_string(),
        purpose: purpose_form(view.purpose),
        name: view.name,
        rights: view.rights.into_iter().map(right_form).collect(),
        made_at: at(view.made_at),
        expires: view.expires.map(at),
        last_used: view.last_used.map(at),
        made_with: view.parent.map(|parent| parent.to_string()),
    }
}

fn purpose_form(purpose: engine::Purpose) -> Purpose {
    match purpose {
        engine::Purpose::Machine => Purpose::Machine,
        engine::Purpose::Browser => Purpose::Browser,
        engine::Purpose::Cli => Purpose::Cli,
        engine::Purpose::Api => Purpose::Api,
        engine::Purpose::Turn => Purpose::Turn,
    }
}
