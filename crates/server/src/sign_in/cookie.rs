//! The two cookies of ours: the one that a signed-in browser is known by, and the one of a browser that is away at the
//! identity provider.
//!
//! Cookies do not know ports, so that ours say to which server of this machine they belong. Where the way is encrypted
//! their names begin so that browsers take them from an encrypted page of this very host only.

use crate::problem::{ApiError, ApiResult};
use api::Code;
use http::{HeaderMap, HeaderValue, header};
use std::time::Duration;

/// The time for which a browser keeps its cookie; the server may forget it sooner.
const SIGNED_IN_MAX: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The names of our cookies.
#[derive(Debug)]
pub(crate) struct Cookies {
    signed_in: CookieNames,
    away: CookieNames,
}

#[derive(Debug)]
struct CookieNames {
    plain: String,
    secure: String,
    /// `SameSite`, and no more.
    from: &'static str,
}

impl Cookies {
    pub(crate) fn new(port: u16) -> Self {
        let names = |name: &str, from| CookieNames {
            plain: format!("{name}_{port}"),
            secure: format!("__Host-{name}_{port}"),
            from,
        };
        Self { signed_in: names("homing", "Strict"), away: names("homing_away", "Lax") }
    }

    /// The secret of a signed-in browser, if it sent one.
    pub(crate) fn signed_in<'a>(&self, headers: &'a HeaderMap, secure: bool) -> ApiResult<Option<&'a str>> {
        self.signed_in.read(headers, secure)
    }

    /// The secret that ties a browser to the sign-in that it has begun at the provider.
    pub(crate) fn away<'a>(&self, headers: &'a HeaderMap, secure: bool) -> Option<&'a str> {
        self.away.read(headers, secure).ok().flatten()
    }

    pub(crate) fn put_signed_in(&self, headers: &mut HeaderMap, secret: &str, secure: bool) {
        self.signed_in.put(headers, secret, SIGNED_IN_MAX, secure);
    }

    pub(crate) fn clear_signed_in(&self, headers: &mut HeaderMap, secure: bool) {
        self.signed_in.put(headers, "", Duration::ZERO, secure);
    }

    pub(crate) fn put_away(&self, headers: &mut HeaderMap, secret: &str, lasts: Duration, secure: bool) {
        self.away.put(headers, secret, lasts, secure);
    }

    pub(crate) fn clear_away(&self, headers: &mut HeaderMap, secure: bool) {
        self.away.put(headers, "", Duration::ZERO, secure);
    }
}

impl CookieNames {
    fn name(&self, secure: bool) -> &str {
        if secure { &self.secure } else { &self.plain }
    }

    /// Other pages of this machine can add one of the same name, and of two nobody could say which one is ours.
    fn read<'a>(&self, headers: &'a HeaderMap, secure: bool) -> ApiResult<Option<&'a str>> {
        let our_name = self.name(secure);
        let cookies = headers.get_all(header::COOKIE).into_iter().filter_map(|line| line.to_str().ok());
        let pairs = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let mut ours = pairs.filter(|(name, _)| *name == our_name).map(|(_, secret)| secret);
        let first = ours.next();
        match ours.next() {
            None => Ok(first),
            Some(_) => {
                Err(ApiError::new(Code::Unauthenticated, "there are two cookies of our name").at("Cookie"))
            }
        }
    }

    fn put(&self, headers: &mut HeaderMap, secret: &str, lasts: Duration, secure: bool) {
        let cookie = format!(
            "{}={secret}; Path=/; Max-Age={}; HttpOnly; SameSite={}{}",
            self.name(secure),
            lasts.as_secs(),
            self.from,
            if secure { "; Secure" } else { "" },
        );
        if let Ok(cookie) = HeaderValue::from_str(&cookie) {
            headers.append(header::SET_COOKIE, cookie);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(secure: bool) -> Vec<String> {
        let (cookies, mut headers) = (Cookies::new(4747), HeaderMap::new());
        cookies.put_signed_in(&mut headers, "secret", secure);
        cookies.put_away(&mut headers, "other", Duration::from_secs(600), secure);
        cookies.clear_away(&mut headers, secure);
        headers.get_all(header::SET_COOKIE).iter().map(|line| line.to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn scripts_and_other_sites_get_nothing_and_over_tls_nobody_in_between() {
        let rest = "; Path=/; Max-Age=2592000; HttpOnly; SameSite=Strict";
        assert_eq!(put(false)[0], format!("homing_4747=secret{rest}"));
        assert_eq!(put(true)[0], format!("__Host-homing_4747=secret{rest}; Secure"));
        assert_eq!(put(false)[1], "homing_away_4747=other; Path=/; Max-Age=600; HttpOnly; SameSite=Lax");
        assert_eq!(
            put(true)[2],
            "__Host-homing_away_4747=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax; Secure"
        );
    }

    #[test]
    fn only_one_cookie_of_the_right_name_counts() {
        let cookies = Cookies::new(4747);
        let read = |line: &'static str, secure| {
            let headers = HeaderMap::from_iter([(header::COOKIE, HeaderValue::from_static(line))]);
            cookies.signed_in(&headers, secure).map(|found| found.map(str::to_owned)).map_err(|_| ())
        };
        assert_eq!(read("a=b; homing_4747=x", false), Ok(Some("x".to_owned())));
        assert_eq!(read("homing_4748=x; homing_away_4747=y", false), Ok(None));
        assert_eq!(read("homing_4747=x; homing_4747=y", false), Err(()));
        assert_eq!(read("homing_4747=x", true), Ok(None), "what came unencrypted is not ours there");
    }
}
