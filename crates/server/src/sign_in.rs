//! How somebody gets in: by password, or by a link that works once; and the cookie that it leaves in a browser.
//!
//! Whoever only looks at a link, as programs do that show links, has not used it: the page has a button, and the button
//! spends it.

use crate::asked::{Body, Caller, Came, Json};
use crate::door::{Door, Inner};
use crate::openapi::problems;
use crate::page::kind_page;
use crate::problem::{Answer, No};
use crate::wire::at;
use api::{Code, Done, NewSignIn, SignedIn};
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use engine::{Purpose, Refused, SignInFor, Signed};
use http::{HeaderMap, HeaderValue, StatusCode, header};

/// How long a browser keeps its cookie; the server may forget it sooner.
const COOKIE_SECONDS: u64 = 30 * 24 * 60 * 60;
/// The page of a link: it has a button, and nothing else.
const LINK_POLICY: &str = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'self'; \
                           frame-ancestors 'none'";

problems! {
    SignInProblems = [BadJson, TooSlow, TooLarge, UnsupportedMediaType, Invalid, WrongSignIn, TooManyRequests, Changed,
        DiskFull, Unclear];
    SignOutProblems = [Invalid, RightMissing, BoundElsewhere, IdempotencyConflict, Changed, DiskFull, Unclear];
}

/// The secret in our cookie, if the browser sent one. Other pages of this machine can add one of the same name, and of
/// two nobody could say which one is ours.
pub(crate) fn cookie_of<'a>(door: &Inner, headers: &'a HeaderMap) -> Answer<Option<&'a str>> {
    let cookies = headers.get_all(header::COOKIE).into_iter().filter_map(|line| line.to_str().ok());
    let pairs = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut ours = pairs.filter(|(name, _)| *name == door.cookie).map(|(_, secret)| secret);
    let first = ours.next();
    match ours.next() {
        None => Ok(first),
        Some(_) => Err(No::new(Code::Unauthenticated, "there are two cookies of our name").at("Cookie")),
    }
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
    State(door): State<Door>,
    Came(trace): Came,
    Body(proof): Body<NewSignIn>,
) -> Answer<Response> {
    proof.check()?;
    let (purpose, name) = proof.parts();
    let purpose = match purpose {
        api::SignInFor::Browser => Purpose::Browser,
        api::SignInFor::Cli => Purpose::Cli,
    };
    let at = SignInFor { purpose, name: name.map(str::to_owned) };
    let signed = match proof {
        NewSignIn::Password(by) => {
            let password = by.password.into_inner();
            door.engine.sign_in_by_password(&by.login, password, at, trace).await?
        }
        NewSignIn::Link(by) => door.engine.sign_in_by_link(by.link.reveal(), at, trace).await?,
    };
    Ok(let_in(&door, purpose, &signed))
}

fn let_in(door: &Inner, purpose: Purpose, signed: &Signed) -> Response {
    let is_browser = purpose == Purpose::Browser;
    let secret = (!is_browser).then(|| signed.secret.reveal().to_owned().into());
    let (person, handle, expires) =
        (signed.person.to_string(), signed.handle.clone(), signed.expires.map(at));
    let mut response = Json(SignedIn { person, handle, secret, expires }).into_response();
    if is_browser {
        set_cookie(door, &mut response, signed.secret.reveal(), COOKIE_SECONDS);
    }
    response
}

/// Sign out
///
/// The credential of this very request is good for nothing any more.
#[utoipa::path(
    post, path = "/api/v1/sign-out", tag = "people", operation_id = "sign_out",
    responses((status = 200, description = "You are out.", body = Done), SignOutProblems),
)]
pub(crate) async fn sign_out(State(door): State<Door>, caller: Caller) -> Answer<Response> {
    let id = caller.by.credential.map_or_else(String::new, |token| token.to_string());
    door.engine.sign_out(&caller.by, caller.trace).await?;
    let mut response = Json(Done { id }).into_response();
    set_cookie(&door, &mut response, "", 0);
    Ok(response)
}

/// Shows a link's page, and spends nothing.
pub(crate) async fn look(
    State(door): State<Door>,
    code: Result<Path<String>, PathRejection>,
) -> Answer<Response> {
    // What is not even a text is answered like any other code that is not ours.
    let Ok(Path(code)) = code else { return Ok(too_late()) };
    let Some(login) = door.engine.look_at_link(&code).await? else { return Ok(too_late()) };
    let words = format!(
        "This link lets you in as <strong>{}</strong>, once.</p><form method=\"post\"><button>Sign in</button></form><p>",
        escaped(&login.handle)
    );
    let mut page = kind_page(StatusCode::OK, "Sign in to Homing", &words);
    page.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(LINK_POLICY));
    Ok(page)
}

/// Spends a link: the browser is in.
pub(crate) async fn spend(
    State(door): State<Door>,
    Came(trace): Came,
    code: Result<Path<String>, PathRejection>,
) -> Answer<Response> {
    let Ok(Path(code)) = code else { return Ok(too_late()) };
    let at = SignInFor { purpose: Purpose::Browser, name: None };
    let signed = match door.engine.sign_in_by_link(&code, at, trace).await {
        Err(Refused::WrongSignIn) => return Ok(too_late()),
        signed => signed?,
    };
    let mut response = (StatusCode::SEE_OTHER, [(header::LOCATION, "/")]).into_response();
    set_cookie(&door, &mut response, signed.secret.reveal(), COOKIE_SECONDS);
    Ok(response)
}

fn set_cookie(door: &Inner, response: &mut Response, secret: &str, seconds: u64) {
    let cookie = format!("{}={secret}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict", door.cookie);
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
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

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}
