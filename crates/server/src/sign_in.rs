//! How a browser gets in: a link that works once, and the cookie that it leaves.

use crate::asked::Way;
use crate::door::{Door, Inner};
use crate::gate::too_many_requests;
use crate::page::kind_page;
use crate::problem::{Answer, No};
use api::Code;
use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use engine::TokenRow;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use kernel::PersonId;
use sha2::{Digest, Sha256};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// How long a link is good for.
const LINK_MAX: Duration = Duration::from_secs(10 * 60);
/// How many links can be good at once; the oldest goes first.
const LINKS_MAX: usize = 16;
/// How long a browser stays signed in.
const COOKIE_SECONDS: u64 = 30 * 24 * 60 * 60;

/// Links that have not been used.
#[derive(Debug)]
pub(crate) struct SignIns {
    owner: PersonId,
    cookie: String,
    secure_cookie: String,
    links: Mutex<Vec<Link>>,
}

#[derive(Debug)]
struct Link {
    hash: [u8; 32],
    since: Instant,
    /// Never sent: whoever waits hears that the link is gone.
    _there: oneshot::Sender<()>,
}

impl SignIns {
    /// Cookies do not know ports, so that ours says to which server of this machine it belongs.
    pub(crate) fn new(owner: PersonId, port: u16) -> Self {
        let (cookie, secure_cookie) = (format!("homing_{port}"), format!("__Host-homing_{port}"));
        Self { owner, cookie, secure_cookie, links: Mutex::default() }
    }

    /// The name of our cookie. Where the way is encrypted it begins so that browsers take it from an encrypted page of this
    /// very host only.
    fn cookie(&self, secure: bool) -> &str {
        if secure { &self.secure_cookie } else { &self.cookie }
    }

    /// A code that works once, within `LINK_MAX`, and an answer when it works no more.
    pub(crate) fn mint(&self) -> (String, impl Future<Output = ()> + Send + 'static) {
        let code = secret();
        let (there, gone) = oneshot::channel();
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        if links.len() == LINKS_MAX {
            links.remove(0);
        }
        links.push(Link { hash: hash(&code), since: Instant::now(), _there: there });
        let spent = async {
            let _ = tokio::time::timeout(LINK_MAX, gone).await;
        };
        (code, spent)
    }

    /// Takes a link away, so that nobody else can use it meanwhile.
    fn take(&self, code: &str) -> Option<Taken<'_>> {
        let hash = hash(code);
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        links.retain(|link| link.since.elapsed() < LINK_MAX);
        let index = links.iter().position(|link| link.hash == hash)?;
        Some(Taken { sign_ins: self, link: Some(links.remove(index)) })
    }
}

/// A link in use. Unless it is spent it works again: whoever could not be let in has not used it.
struct Taken<'a> {
    sign_ins: &'a SignIns,
    link: Option<Link>,
}

impl Taken<'_> {
    fn spend(mut self) {
        self.link = None;
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let Some(link) = self.link.take() else { return };
        let mut links = self.sign_ins.links.lock().unwrap_or_else(PoisonError::into_inner);
        // As one of the oldest it is the one that goes if there are too many.
        if links.len() < LINKS_MAX {
            links.insert(0, link);
        }
    }
}

/// The secret in our cookie, if the browser sent one. Other pages of this machine can add one of the same name, and of
/// two nobody could say which one is ours.
pub(crate) fn cookie_of<'a>(door: &Inner, headers: &'a HeaderMap, secure: bool) -> Answer<Option<&'a str>> {
    let our_name = door.sign_ins.cookie(secure);
    let cookies = headers.get_all(header::COOKIE).into_iter().filter_map(|line| line.to_str().ok());
    let pairs = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut ours = pairs.filter(|(name, _)| *name == our_name).map(|(_, secret)| secret);
    let first = ours.next();
    match ours.next() {
        None => Ok(first),
        Some(_) => Err(No::new(Code::Unauthenticated, "there are two cookies of our name").at("Cookie")),
    }
}

/// Signs a browser in.
pub(crate) async fn sign_in(
    State(door): State<Door>,
    Extension(way): Extension<Way>,
    method: Method,
    code: Result<Path<String>, PathRejection>,
) -> Response {
    let address = way.address.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    if let Err(wait) = door.guesses.check(address, None) {
        return too_many_requests(wait).into_response();
    }
    // What is not even a text is answered like any other code that is not ours.
    let taken = code.ok().and_then(|Path(code)| door.sign_ins.take(&code));
    let Some(taken) = taken else {
        door.guesses.failed(address, None);
        return kind_page(
            StatusCode::GONE,
            "This link has been used, or it is too old.",
            "A sign-in link works once, for ten minutes. Start the server again with <code>homing up</code>: it \
             prints a new one.",
        );
    };
    door.guesses.succeeded(address, None);
    // Whoever only looks, as programs do that show links, has not used it.
    if method == Method::HEAD {
        return onwards();
    }
    let secret = secret();
    let now = door.engine.now();
    let token = TokenRow {
        hash: hash(&secret),
        person: door.sign_ins.owner,
        purpose: "browser",
        client: None,
        made_at: now,
        expires: Some(now.after_ms(COOKIE_SECONDS * 1_000)),
    };
    if let Err(refused) = door.engine.add_token(token).await {
        return No::from(refused).into_response();
    }
    taken.spend();
    let cookie = format!(
        "{}={secret}; Path=/; Max-Age={COOKIE_SECONDS}; HttpOnly; SameSite=Strict{}",
        door.sign_ins.cookie(way.secure),
        if way.secure { "; Secure" } else { "" },
    );
    let mut response = onwards();
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

fn onwards() -> Response {
    (StatusCode::SEE_OTHER, [(header::LOCATION, "/")]).into_response()
}

fn hash(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

/// More than 240 random bits.
fn secret() -> String {
    format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple())
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use std::pin::pin;

    fn sign_ins() -> SignIns {
        SignIns::new(PersonId::from_bits(1), 4747)
    }

    #[tokio::test]
    async fn whoever_waits_hears_that_a_link_works_no_more() {
        let sign_ins = sign_ins();
        let (code, used) = sign_ins.mint();
        let (_, other) = sign_ins.mint();
        let mut used = pin!(used);
        assert!((&mut used).now_or_never().is_none());
        sign_ins.take(&code).unwrap().spend();
        assert!(used.now_or_never().is_some());
        assert!(other.now_or_never().is_none());
    }

    #[test]
    fn a_link_that_let_nobody_in_works_again() {
        let sign_ins = sign_ins();
        let (code, _) = sign_ins.mint();
        let failing = sign_ins.take(&code).unwrap();
        assert!(sign_ins.take(&code).is_none(), "somebody is at it");
        drop(failing);
        sign_ins.take(&code).unwrap().spend();
        assert!(sign_ins.take(&code).is_none());
    }

    #[test]
    fn links_that_come_back_do_not_add_up() {
        let sign_ins = sign_ins();
        let (code, _) = sign_ins.mint();
        let taken = sign_ins.take(&code);
        for _ in 0..LINKS_MAX {
            let _ = sign_ins.mint();
        }
        drop(taken);
        let _ = sign_ins.mint();
        assert_eq!(sign_ins.links.lock().unwrap().len(), LINKS_MAX);
    }
}
