//! Web Push: what people are told, encrypted for one browser (RFC 8291), signed as ours (RFC 8292) and posted to the push service
//! that the browser has named (RFC 8030).
//!
//! `encrypt` is what only the browser can read, `vapid` our key and what it says, `outside` which places may be posted to and how. A
//! browser names its push service by an address, so whoever is signed in can make us post somewhere: it is somewhere in public, by
//! HTTPS, and what it answers goes nowhere.

mod encrypt;
mod outside;
mod vapid;

use crate::web_push::encrypt::encrypt;
use crate::web_push::outside::Outside;
use crate::web_push::vapid::VapidKey;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use engine::{OutgoingPush, PushPlace, PushPort, PushReply, Pushed};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use std::time::Duration;

/// A point of P-256, not compressed.
pub(crate) const POINT_BYTES: usize = 65;
/// The secret that a browser shares with us.
pub(crate) const AUTH_BYTES: usize = 16;

/// The settings of Web Push.
#[derive(Clone)]
pub struct PushConfig {
    /// Of which our key is made: the same seed makes the same key, and browsers hold on to the key that they were given.
    pub seed: [u8; 32],
    /// Where whoever runs a push service can reach us about what we send: a `mailto:` or `https:` address; none says nothing.
    pub contact: Option<String>,
    /// Push services that may be private and need not encrypt, `HOST` or `HOST:PORT`: of one's own, or for tests.
    pub private_hosts: Vec<String>,
}

/// Without the seed.
impl std::fmt::Debug for PushConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PushConfig").field("private_hosts", &self.private_hosts).finish_non_exhaustive()
    }
}

/// Our side of Web Push.
#[derive(Debug)]
pub(crate) struct WebPush {
    key: VapidKey,
    outside: Outside,
}

impl WebPush {
    pub(crate) fn new(config: &PushConfig) -> Self {
        let key = VapidKey::of(&config.seed, config.contact.clone());
        Self { key, outside: Outside::new(&config.private_hosts) }
    }

    /// The key that browsers have to ask their push service for us with.
    pub(crate) fn public_key(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(self.key.public())
    }

    /// The place that a browser has named, or the field that is wrong and why.
    pub(crate) fn place(
        &self,
        endpoint: &str,
        p256dh: &str,
        auth: &str,
    ) -> Result<PushPlace, (&'static str, String)> {
        self.outside.check(endpoint).map_err(|why| ("endpoint", why.to_string()))?;
        let bytes = |text: &str| BASE64_URL_SAFE_NO_PAD.decode(text.trim_end_matches('='));
        let point = bytes(p256dh).ok().filter(|point| encrypt::is_point(point));
        let p256dh = point.ok_or(("keys.p256dh", "not a public key of P-256, in base64url".to_owned()))?;
        let secret = bytes(auth).ok().filter(|auth| auth.len() == AUTH_BYTES);
        let auth = secret.ok_or(("keys.auth", format!("not {AUTH_BYTES} bytes in base64url")))?;
        Ok(PushPlace { endpoint: endpoint.to_owned(), p256dh, auth })
    }

    async fn post(&self, push: OutgoingPush) -> Pushed {
        let OutgoingPush { place, words, good_for, is_urgent, topic } = push;
        let body = match encrypt(&words, &place) {
            Ok(body) => body,
            Err(reason) => return Pushed::Refused { reason: reason.to_string() },
        };
        let headers = match self.headers(&place.endpoint, good_for, is_urgent, &topic) {
            Ok(headers) => headers,
            Err(reason) => return Pushed::Refused { reason },
        };
        match self.outside.post(&place.endpoint, headers, body).await {
            Ok((status, after)) => pushed(status, after),
            Err(outside::PostError::Forbidden(why)) => Pushed::Refused { reason: why.to_string() },
            Err(outside::PostError::Unreachable(reason)) => Pushed::Later { after: None, reason },
        }
    }

    fn headers(
        &self,
        endpoint: &str,
        good_for: Duration,
        is_urgent: bool,
        topic: &[u8],
    ) -> Result<HeaderMap, String> {
        let signed = self.key.authorization(endpoint).ok_or("its address has no origin")?;
        let mut signed = HeaderValue::from_str(&signed).map_err(|error| error.to_string())?;
        signed.set_sensitive(true);
        let topic = BASE64_URL_SAFE_NO_PAD.encode(topic);
        let topic = HeaderValue::from_str(&topic).map_err(|error| error.to_string())?;
        Ok(HeaderMap::from_iter([
            (header::AUTHORIZATION, signed),
            (header::CONTENT_ENCODING, HeaderValue::from_static("aes128gcm")),
            (header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
            (header::HeaderName::from_static("ttl"), HeaderValue::from(good_for.as_secs())),
            (
                header::HeaderName::from_static("urgency"),
                HeaderValue::from_static(if is_urgent { "high" } else { "normal" }),
            ),
            (header::HeaderName::from_static("topic"), topic),
        ]))
    }
}

impl PushPort for WebPush {
    fn send(&self, push: OutgoingPush) -> PushReply<'_> {
        Box::pin(self.post(push))
    }
}

/// The meaning of an answer, by what can be done about it.
fn pushed(status: StatusCode, after: Option<Duration>) -> Pushed {
    match status {
        status if status.is_success() => Pushed::Sent,
        StatusCode::NOT_FOUND | StatusCode::GONE => Pushed::Gone,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => {
            Pushed::Later { after, reason: format!("the push service says {status}") }
        }
        status if status.is_server_error() => {
            Pushed::Later { after, reason: format!("the push service says {status}") }
        }
        // Redirects, too: nobody is followed.
        status => Pushed::Refused { reason: format!("the push service says {status}") },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_told_apart_by_what_can_be_done() {
        let of = |status: u16| pushed(StatusCode::from_u16(status).unwrap(), Some(Duration::from_secs(7)));
        assert_eq!((of(200), of(201), of(204)), (Pushed::Sent, Pushed::Sent, Pushed::Sent));
        assert_eq!((of(404), of(410)), (Pushed::Gone, Pushed::Gone));
        for later in [408, 429, 500, 503] {
            let Pushed::Later { after, .. } = of(later) else { panic!("{later}") };
            assert_eq!(after, Some(Duration::from_secs(7)));
        }
        for never in [301, 302, 307, 400, 401, 403, 413] {
            assert!(matches!(of(never), Pushed::Refused { .. }), "{never}");
        }
    }
}
