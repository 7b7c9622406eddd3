//! Signing in by way of the identity provider: off to it, and back.
//!
//! The browser comes back from another site, so its cookie meanwhile is one that browsers send along then; it is good for
//! nothing but finishing this very sign-in.

use super::{Guess, let_browser_in};
use crate::asked::Way;
use crate::door::{Door, Inner};
use crate::oidc::{Asserted, Back, CreateAs, Oidc, PENDING_MAX, Why};
use crate::page::kind_page;
use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Response};
use engine::{Purpose, Refused, SignInFor, Signed, Vouched};
use http::{HeaderMap, StatusCode, header};
use kernel::Role;

/// Where a browser comes back to.
const BACK: &str = "/in/oidc/back";

/// Sends a browser to the identity provider.
pub(crate) async fn go(
    State(door): State<Door>,
    Extension(way): Extension<Way>,
    headers: HeaderMap,
) -> Response {
    let Some(oidc) = &door.oidc else { return no_provider() };
    // It counts as a try until they are back.
    if let Err(no) = Guess::begin(&door, &way, None) {
        return no.into_response();
    }
    match oidc.begin(here(&headers, &way)).await {
        Ok(sent) => {
            let mut response = (StatusCode::SEE_OTHER, [(header::LOCATION, sent.url)]).into_response();
            door.cookies.put_away(response.headers_mut(), &sent.browser, PENDING_MAX, way.secure);
            response
        }
        Err(why) => refuse(oidc, &why),
    }
}

/// Lets a browser in that comes back from there.
pub(crate) async fn back(
    State(door): State<Door>,
    Extension(way): Extension<Way>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let Some(oidc) = &door.oidc else { return no_provider() };
    let mut response = match come_in(&door, oidc, &way, query.as_deref(), &headers).await {
        Ok(signed) => {
            Guess::of(&door, &way).succeeded();
            let mut response = (StatusCode::SEE_OTHER, [(header::LOCATION, "/")]).into_response();
            let_browser_in(&door, &way, &headers, &mut response, &signed).await;
            response
        }
        Err(why) => refuse(oidc, &why),
    };
    door.cookies.clear_away(response.headers_mut(), way.secure);
    response
}

async fn come_in(
    door: &Inner,
    oidc: &Oidc,
    way: &Way,
    query: Option<&str>,
    headers: &HeaderMap,
) -> Result<Signed, Why> {
    // What cannot be read was not sent by the provider.
    let back: Back = serde_urlencoded::from_str(query.unwrap_or_default()).map_err(|_| Why::Stale)?;
    let browser = door.cookies.away(headers, way.secure);
    let asserted = oidc.finish(back, browser, &here(headers, way)).await?;
    let unknown = match asserted.email {
        None => Why::Unverified { said: asserted.said_email },
        Some(_) => Why::Nobody,
    };
    let at = SignInFor { purpose: Purpose::Browser, name: None };
    let vouched = vouched(oidc, asserted);
    door.engine.sign_in_by_identity(&vouched, at, way.trace()).await.map_err(|refused| match refused {
        Refused::WrongSignIn => unknown,
        other => Why::Later(other.to_string()),
    })
}

fn vouched(oidc: &Oidc, asserted: Asserted) -> Vouched {
    let Asserted { issuer, subject, email, name, nickname, .. } = asserted;
    let create = match oidc.config().create {
        CreateAs::Never => None,
        CreateAs::Member => Some(Role::Member),
        CreateAs::Viewer => Some(Role::Viewer),
    };
    Vouched { issuer, subject, email, name, nickname, org: oidc.config().org.clone(), create }
}

/// Our own address, as this browser calls us. The gate has seen to it that the name is one of ours.
fn here(headers: &HeaderMap, way: &Way) -> String {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    format!("{}://{host}{BACK}", if way.secure { "https" } else { "http" })
}

fn refuse(oidc: &Oidc, why: &Why) -> Response {
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
