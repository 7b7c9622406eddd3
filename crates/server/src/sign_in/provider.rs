//! Signing in by way of the identity provider: off to it, and back.
//!
//! The browser comes back from another site, so its cookie meanwhile is one that browsers send along then; it is good for
//! nothing but finishing this very sign-in.

use super::{SignInAttempt, let_browser_in};
use crate::door::{HttpDoor, SharedDoor};
use crate::extract::RequestMeta;
use crate::link_page::kind_page;
use crate::oidc::{CallbackQuery, CreateAs, Oidc, PENDING_MAX, ProviderIdentity, SignInFailure};
use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Response};
use engine::{PeopleError, Purpose, SignInFor, Signed, Vouched};
use http::{HeaderMap, StatusCode, header};
use kernel::Role;

/// Where a browser comes back to.
const BACK: &str = "/in/oidc/back";

/// Sends a browser to the identity provider.
pub(crate) async fn go(
    State(door): State<SharedDoor>,
    Extension(meta): Extension<RequestMeta>,
    headers: HeaderMap,
) -> Response {
    let Some(oidc) = &door.oidc else { return no_provider() };
    // It counts as a try until they are back.
    if let Err(error) = SignInAttempt::begin(&door, &meta, None) {
        return error.into_response();
    }
    match oidc.begin(here(&headers, &meta)).await {
        Ok(sent) => {
            let mut response = (StatusCode::SEE_OTHER, [(header::LOCATION, sent.url)]).into_response();
            door.cookies.put_away(response.headers_mut(), &sent.browser, PENDING_MAX, meta.secure);
            response
        }
        Err(why) => refuse(oidc, &why),
    }
}

/// Lets a browser in that comes back from there.
pub(crate) async fn back(
    State(door): State<SharedDoor>,
    Extension(meta): Extension<RequestMeta>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let Some(oidc) = &door.oidc else { return no_provider() };
    let mut response = match come_in(&door, oidc, &meta, query.as_deref(), &headers).await {
        Ok(signed) => {
            SignInAttempt::of(&door, &meta).succeeded();
            let mut response = (StatusCode::SEE_OTHER, [(header::LOCATION, "/")]).into_response();
            let_browser_in(&door, &meta, &headers, &mut response, &signed).await;
            response
        }
        Err(why) => refuse(oidc, &why),
    };
    door.cookies.clear_away(response.headers_mut(), meta.secure);
    response
}

async fn come_in(
    door: &HttpDoor,
    oidc: &Oidc,
    meta: &RequestMeta,
    query: Option<&str>,
    headers: &HeaderMap,
) -> Result<Signed, SignInFailure> {
    // What cannot be read was not sent by the provider.
    let back: CallbackQuery =
        serde_urlencoded::from_str(query.unwrap_or_default()).map_err(|_| SignInFailure::Stale)?;
    let browser = door.cookies.away(headers, meta.secure);
    let identity = oidc.finish(back, browser, &here(headers, meta)).await?;
    let unknown = match identity.email {
        None => SignInFailure::Unverified { said: identity.said_email },
        Some(_) => SignInFailure::Nobody,
    };
    let at = SignInFor { purpose: Purpose::Browser, name: None };
    let vouched = vouched(oidc, identity);
    door.engine.people().sign_in_by_identity(&vouched, at, meta.trace()).await.map_err(
        |refused| match refused {
            PeopleError::WrongSignIn => unknown,
            other => SignInFailure::Later(other.to_string()),
        },
    )
}

fn vouched(oidc: &Oidc, identity: ProviderIdentity) -> Vouched {
    let ProviderIdentity { issuer, subject, email, name, nickname, .. } = identity;
    let create = match oidc.config().create {
        CreateAs::Never => None,
        CreateAs::Member => Some(Role::Member),
        CreateAs::Viewer => Some(Role::Viewer),
    };
    Vouched { issuer, subject, email, name, nickname, org: oidc.config().org.clone(), create }
}

/// Our own address, as this browser calls us. The gate has seen to it that the name is one of ours.
fn here(headers: &HeaderMap, meta: &RequestMeta) -> String {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    format!("{}://{host}{BACK}", if meta.secure { "https" } else { "http" })
}

fn refuse(oidc: &Oidc, why: &SignInFailure) -> Response {
    tracing::warn!(
        ?why,
        issuer = oidc.config().issuer,
        "a sign-in by way of the identity provider was not finished"
    );
    oidc.page(why)
}

fn no_provider() -> Response {
    kind_page(
        StatusCode::NOT_FOUND,
        "There is no identity provider here.",
        "Nobody has set one up (<code>[oidc]</code> in the configuration). <a href=\"/\">Sign in with a password</a>.",
    )
}
