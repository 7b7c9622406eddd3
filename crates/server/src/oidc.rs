//! Signing in at somebody else's: OpenID Connect, the authorization code flow with PKCE, and nothing else of it.
//!
//! `provider` talks to the identity provider, `pending` remembers who has gone there, `identity` judges what it says about
//! them, `fetch` is how it is asked. What comes out is who somebody is there; whether that is anybody here is the
//! engine's to say. Neither codes nor tokens are kept, logged or shown.

mod fetch;
mod identity;
mod pending;
mod provider;
#[cfg(test)]
mod tests;

pub(crate) use identity::ProviderIdentity;

use crate::link_page::{escape, kind_page};
use axum::response::Response;
use http::StatusCode;
use openidconnect::CsrfToken;
use pending::PendingSignIns;
use provider::Provider;
use serde::Deserialize;
use std::fmt;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// The longest that somebody may take at the provider.
pub(crate) use pending::PENDING_MAX;

/// Random bytes in the cookie of a browser that is there.
const BROWSER_BYTES: u32 = 32;

/// An identity provider at which people may sign in.
#[derive(Clone)]
pub struct OidcConfig {
    /// Its address, exactly as it spells it itself. HTTPS, unless it is on this machine.
    pub issuer: String,
    /// The id under which it knows us.
    pub client_id: String,
    /// The secret that proves it; none for a public client, which has PKCE only.
    pub client_secret: Option<String>,
    /// Its name, for people: `Sign in with NAME`.
    pub name: String,
    /// The org to which people who come from there belong; none is the machine's first.
    pub org: Option<String>,
    /// The domains of e-mail addresses that may come in; all, if there are none.
    pub allowed_domains: Vec<String>,
    /// The fate of somebody who is nobody here yet.
    pub create: CreateAs,
}

/// The fate of somebody whom the provider knows and we do not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CreateAs {
    /// Nothing: somebody has to invite them first.
    #[default]
    Never,
    /// They are a member from now on.
    Member,
    /// They are a viewer from now on.
    Viewer,
}

impl OidcConfig {
    /// A provider with nobody let in who was not invited.
    pub fn new(issuer: impl Into<String>, client_id: impl Into<String>) -> Self {
        Self {
            issuer: issuer.into(),
            client_id: client_id.into(),
            client_secret: None,
            name: "your identity provider".to_owned(),
            org: None,
            allowed_domains: Vec::new(),
            create: CreateAs::Never,
        }
    }

    /// Checks that secrets may be sent to the issuer at all.
    pub fn check(&self) -> Result<(), String> {
        if fetch::is_safe(&self.issuer) {
            return Ok(());
        }
        Err("an issuer is reached by https, unless it is on this machine".to_owned())
    }
}

impl fmt::Debug for OidcConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OidcConfig").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

/// Why somebody is not signed in, by what they can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SignInFailure {
    /// Begin again: it was finished before, took too long, or was begun in another browser.
    Stale,
    /// The provider said no, in its own word.
    Refused(String),
    /// The provider cannot be asked. Later, or ask whoever runs this.
    Unreachable(String),
    /// The answer is not to be trusted. Begin again; if it stays so, ask whoever runs this.
    Untrusted(String),
    /// The provider has not checked whose e-mail address that is, or `said` none.
    Unverified { said: bool },
    /// The e-mail address is of another house.
    OtherDomain,
    /// There is nobody here for them, or nobody who may come in.
    Nobody,
    /// We could not look just now.
    Later(String),
}

/// The provider, and who is there at present.
pub(crate) struct Oidc {
    provider: Provider,
    pending: Mutex<PendingSignIns>,
}

/// The query that a browser comes back with. Providers add words of their own, which say nothing to us.
#[derive(Default, Deserialize)]
pub(crate) struct CallbackQuery {
    #[serde(default)]
    state: String,
    code: Option<String>,
    iss: Option<String>,
    error: Option<String>,
}

/// A sign-in that has begun.
pub(crate) struct ProviderRedirect {
    /// Where the browser goes.
    pub(crate) url: String,
    /// The secret that has to be in its cookie when it comes back.
    pub(crate) browser: String,
}

impl Oidc {
    pub(crate) fn new(config: OidcConfig) -> io::Result<Self> {
        let provider = Provider::new(config).map_err(io::Error::other)?;
        Ok(Self { provider, pending: Mutex::default() })
    }

    pub(crate) fn config(&self) -> &OidcConfig {
        self.provider.config()
    }

    /// Sends a browser to the provider, from where it comes back to `redirect`.
    pub(crate) async fn begin(&self, redirect: String) -> Result<ProviderRedirect, SignInFailure> {
        let begun = self.provider.begin(redirect).await?;
        let browser = CsrfToken::new_random_len(BROWSER_BYTES).into_secret();
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        pending.keep(&begun.state, &browser, begun.waiting, Instant::now());
        Ok(ProviderRedirect { url: begun.url, browser })
    }

    /// The person who came back. `browser` is what its cookie says, `here` where it came back to.
    pub(crate) async fn finish(
        &self,
        back: CallbackQuery,
        browser: Option<&str>,
        here: &str,
    ) -> Result<ProviderIdentity, SignInFailure> {
        let waiting = {
            let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
            pending.take(&back.state, browser, Instant::now())
        };
        let waiting = waiting.filter(|waiting| waiting.redirect == here).ok_or(SignInFailure::Stale)?;
        self.provider.check_sender(back.iss.as_deref()).await?;
        if let Some(error) = back.error {
            return Err(SignInFailure::Refused(error));
        }
        self.provider.finish(back.code.ok_or(SignInFailure::Stale)?, waiting).await
    }

    /// The page for somebody who did not get in.
    pub(crate) fn page(&self, why: &SignInFailure) -> Response {
        let name = escape(&self.config().name);
        let again = "<a href=\"/\">Try again</a>, or ask whoever looks after this Homing.";
        let (status, title, words) = match why {
            SignInFailure::Stale => (
                StatusCode::GONE,
                "This sign-in is over.",
                format!(
                    "It was finished before, it took longer than ten minutes, or it was begun in another browser. {again}"
                ),
            ),
            SignInFailure::Refused(word) => (
                StatusCode::UNAUTHORIZED,
                "You were not let in.",
                format!("{name} says: <code>{}</code>. {again}", escape(word)),
            ),
            SignInFailure::Unreachable(_) => (
                StatusCode::BAD_GATEWAY,
                "The identity provider does not answer.",
                format!("We could not talk to {name}; the server's log says why. {again}"),
            ),
            SignInFailure::Untrusted(_) => (
                StatusCode::UNAUTHORIZED,
                "We could not trust the answer.",
                format!("What {name} sent back is not what we asked for; the server's log says why. {again}"),
            ),
            SignInFailure::Unverified { said } => {
                let missing = if *said {
                    "has not checked that your e-mail address is yours"
                } else {
                    "did not tell us your e-mail address"
                };
                (
                    StatusCode::FORBIDDEN,
                    "We need your e-mail address.",
                    format!("{name} {missing}. Have it confirmed there, then try again. {again}"),
                )
            }
            SignInFailure::OtherDomain => (
                StatusCode::FORBIDDEN,
                "Your e-mail address is of another house.",
                format!("This Homing lets in addresses of certain domains only. {again}"),
            ),
            SignInFailure::Later(_) => (
                StatusCode::SERVICE_UNAVAILABLE,
                "Not just now.",
                format!(
                    "{name} knows you, but we could not look who you are here; the server's log says why. {again}"
                ),
            ),
            SignInFailure::Nobody => (
                StatusCode::FORBIDDEN,
                "There is nobody here whom you could be.",
                format!(
                    "{name} knows you, but nobody has invited you here, or you may come in no more. {again}"
                ),
            ),
        };
        kind_page(status, title, &words)
    }
}
