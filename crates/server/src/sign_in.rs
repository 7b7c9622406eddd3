//! Signing in: by password, by a link that works once, or by way of the identity provider; and out again.
//!
//! Every try asks `sign_in_limit` first. Whoever gets in gets a secret of their own, never one that they have brought along.
//! `cookie` is where a browser keeps it; `provider` is the way by the identity provider. Whoever only looks at a link, as
//! programs do that show links, has not used it: the page has a button, and the button spends it.

mod cookie;
pub(crate) mod provider;

pub(crate) use cookie::Cookies;

use crate::door::{HttpDoor, SharedDoor};
use crate::extract::{Caller, Json, JsonBody, RequestMeta};
use crate::link_page::{button_page, escape, kind_page};
use crate::middleware::too_many_requests;
use crate::openapi::problems;
use crate::problem::ApiResult;
use crate::wire::at;
use api::{Done, NewSignIn, SignInWays, SignedIn};
use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use engine::{PeopleError, Purpose, SignInFor, Signed};
use http::{HeaderMap, StatusCode, header};
use std::net::{IpAddr, Ipv4Addr};

problems! {
    WaysProblems = [];
    SignInProblems = [BadJson, TooSlow, TooLarge, UnsupportedMediaType, Invalid, WrongSignIn, TooManyRequests, Changed,
        DiskFull, Unclear];
    SignOutProblems = [Invalid, IdempotencyConflict, Changed, DiskFull, Unclear];
}

/// Ask how one can sign in
///
/// A password and a link always work, for whoever has one.
#[utoipa::path(
    get, path = "/api/v1/sign-in", tag = "people", operation_id = "sign_in_ways", security(()),
    responses((status = 200, description = "What else there is.", body = SignInWays), WaysProblems),
)]
pub(crate) async fn ways(State(door): State<SharedDoor>) -> Json<SignInWays> {
    Json(SignInWays { provider: door.oidc.as_ref().map(|oidc| oidc.config().name.clone()) })
}

/// Sign in
///
/// By `login` and `password`, or by the last part of a `link`. A browser gets a cookie, a command line a token. Whatever was
/// wrong, the answer is the same.
#[utoipa::path(
    post, path = "/api/v1/sign-in", tag = "people", operation_id = "sign_in", request_body = NewSignIn,
    security(()),
    responses((status = 200, description = "You are in.", body = SignedIn), SignInProblems),
)]
pub(crate) async fn sign_in(
    State(door): State<SharedDoor>,
    Extension(meta): Extension<RequestMeta>,
    headers: HeaderMap,
    JsonBody(proof): JsonBody<NewSignIn>,
) -> ApiResult<Response> {
    proof.check()?;
    let (purpose, name) = proof.parts();
    let purpose = match purpose {
        api::SignInFor::Browser => Purpose::Browser,
        api::SignInFor::Cli => Purpose::Cli,
    };
    let at = SignInFor { purpose, name: name.map(str::to_owned) };
    let signed = prove(&door, &meta, proof, at).await?;
    Ok(welcome(&door, &meta, &headers, purpose, &signed).await)
}

/// Tries a proof, as often as one may.
async fn prove(door: &HttpDoor, meta: &RequestMeta, proof: NewSignIn, at: SignInFor) -> ApiResult<Signed> {
    let login = match &proof {
        NewSignIn::Password(by) => Some(by.login.clone()),
        NewSignIn::Link(_) => None,
    };
    let attempt = SignInAttempt::begin(door, meta, login)?;
    let signed = match proof {
        NewSignIn::Password(by) => {
            let password = by.password.into_inner();
            door.engine.people().sign_in_by_password(&by.login, password, at, meta.trace()).await
        }
        NewSignIn::Link(by) => door.engine.people().sign_in_by_link(by.link.reveal(), at, meta.trace()).await,
    };
    attempt.ended(&signed);
    Ok(signed?)
}

async fn welcome(
    door: &HttpDoor,
    meta: &RequestMeta,
    headers: &HeaderMap,
    purpose: Purpose,
    signed: &Signed,
) -> Response {
    let is_browser = purpose == Purpose::Browser;
    let secret = (!is_browser).then(|| signed.secret.reveal().to_owned().into());
    let (person, handle, expires) =
        (signed.person.to_string(), signed.handle.clone(), signed.expires.map(at));
    let mut response = Json(SignedIn { person, handle, secret, expires }).into_response();
    if is_browser {
        let_browser_in(door, meta, headers, &mut response, signed).await;
    }
    response
}

/// Gives a browser its cookie. Whoever was signed in there before is not any more.
async fn let_browser_in(
    door: &HttpDoor,
    meta: &RequestMeta,
    headers: &HeaderMap,
    response: &mut Response,
    signed: &Signed,
) {
    door.cookies.put_signed_in(response.headers_mut(), signed.secret.reveal(), meta.secure);
    let Ok(Some(before)) = door.cookies.signed_in(headers, meta.secure) else { return };
    let left = async {
        match door.engine.people().principal(engine::hash_of(before)).await? {
            Some(by) => door.engine.people().sign_out(&by, meta.trace()).await,
            None => Ok(()),
        }
    };
    if let Err(refused) = left.await {
        tracing::warn!(%refused, "who was signed in there before is still, until that ends by itself");
    }
}

/// Sign out
///
/// The credential of this very request is good for nothing any more. That takes no right: whoever holds it may end it.
#[utoipa::path(
    post, path = "/api/v1/sign-out", tag = "people", operation_id = "sign_out",
    responses((status = 200, description = "You are out.", body = Done), SignOutProblems),
)]
pub(crate) async fn sign_out(
    State(door): State<SharedDoor>,
    Extension(meta): Extension<RequestMeta>,
    caller: Caller,
) -> ApiResult<Response> {
    let id = caller.by.credential.map_or_else(String::new, |token| token.to_string());
    door.engine.people().sign_out(&caller.by, caller.trace).await?;
    let mut response = Json(Done { id }).into_response();
    door.cookies.clear_signed_in(response.headers_mut(), meta.secure);
    Ok(response)
}

/// Shows a link's page, and spends nothing.
pub(crate) async fn look(
    State(door): State<SharedDoor>,
    Extension(meta): Extension<RequestMeta>,
    code: Result<Path<String>, PathRejection>,
) -> ApiResult<Response> {
    let attempt = SignInAttempt::begin(&door, &meta, None)?;
    // What is not even a text is answered like any other code that is not ours.
    let Ok(Path(code)) = code else { return Ok(too_late()) };
    let Some(login) = door.engine.people().look_at_link(&code).await? else { return Ok(too_late()) };
    attempt.succeeded();
    let words = format!("This link lets you in as <strong>{}</strong>, once.", escape(&login.handle));
    Ok(button_page("Sign in to Homing", &words, "Sign in"))
}

/// Spends a link: the browser is in.
pub(crate) async fn spend(
    State(door): State<SharedDoor>,
    Extension(meta): Extension<RequestMeta>,
    headers: HeaderMap,
    code: Result<Path<String>, PathRejection>,
) -> ApiResult<Response> {
    let attempt = SignInAttempt::begin(&door, &meta, None)?;
    let Ok(Path(code)) = code else { return Ok(too_late()) };
    let at = SignInFor { purpose: Purpose::Browser, name: None };
    let signed = door.engine.people().sign_in_by_link(&code, at, meta.trace()).await;
    attempt.ended(&signed);
    let signed = match signed {
        Err(PeopleError::WrongSignIn) => return Ok(too_late()),
        signed => signed?,
    };
    let mut response = (StatusCode::SEE_OTHER, [(header::LOCATION, "/")]).into_response();
    let_browser_in(&door, &meta, &headers, &mut response, &signed).await;
    Ok(response)
}

/// A try that the limiter has let through.
pub(crate) struct SignInAttempt<'a> {
    door: &'a HttpDoor,
    address: IpAddr,
    login: Option<String>,
}

impl<'a> SignInAttempt<'a> {
    /// A link or a code that names nobody has no login.
    pub(crate) fn begin(door: &'a HttpDoor, meta: &RequestMeta, login: Option<String>) -> ApiResult<Self> {
        let attempt = Self { login, ..Self::of(door, meta) };
        door.sign_in_limiter.check(attempt.address, attempt.login.as_deref()).map_err(too_many_requests)?;
        Ok(attempt)
    }

    /// One that was let through before.
    pub(crate) fn of(door: &'a HttpDoor, meta: &RequestMeta) -> Self {
        Self { door, address: meta.address.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)), login: None }
    }

    /// Tells what came of it. Only a wrong sign-in is a guess; what we could not do says nothing about who asked.
    pub(crate) fn ended<T>(self, came_of_it: &Result<T, PeopleError>) {
        match came_of_it {
            Ok(_) => self.succeeded(),
            Err(PeopleError::WrongSignIn) => {
                self.door.sign_in_limiter.failed(self.address, self.login.as_deref())
            }
            Err(_) => self.door.sign_in_limiter.given_up(self.address, self.login.as_deref()),
        }
    }

    pub(crate) fn succeeded(self) {
        self.door.sign_in_limiter.succeeded(self.address, self.login.as_deref());
    }
}

fn too_late() -> Response {
    kind_page(
        StatusCode::GONE,
        "This link has been used, or it is too old.",
        "A sign-in link works once, for a while. An admin makes another with <code>homing user link NAME</code>, and \
         <code>homing up</code> prints one for the person of its machine.",
    )
}
