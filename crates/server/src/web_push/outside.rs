//! Where may be posted to, and how: in public, by HTTPS, without following anybody anywhere. What the answer says beyond its status
//! is not read.
//!
//! The address is judged when somebody names it, and each of its IP addresses again when a connection is made: the resolver here gives
//! public ones alone, so that a name that means another address by then reaches nothing private either.

use api::tls::{Trust, client_config};
use http::{HeaderMap, StatusCode, header};
use openidconnect::url::{Host, Url};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The longest address of a place. Those of the services that there are have a few hundred bytes.
const ENDPOINT_BYTES_MAX: usize = 2_048;
/// The longest that a post may take.
const POST_MAX: Duration = Duration::from_secs(10);

/// Why nobody posts there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Forbidden {
    #[error("longer than {ENDPOINT_BYTES_MAX} bytes")]
    TooLong,
    #[error("not an https address of a push service, at its usual port and without a password")]
    NotPlain,
    #[error("an address that is not public; the server's configuration can allow it (push.private_hosts)")]
    Private,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum PostError {
    Forbidden(Forbidden),
    Unreachable(String),
}

/// The clients for what is public, and for what the configuration allows besides. Each is made when it is first needed: reading whom
/// this system trusts takes a while.
#[derive(Debug)]
pub(super) struct Outside {
    public: OnceLock<reqwest::Client>,
    private: OnceLock<reqwest::Client>,
    private_hosts: Vec<String>,
}

/// The sort of place that an address names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    Public,
    /// Named in the configuration.
    Private,
}

impl Outside {
    pub(super) fn new(private_hosts: &[String]) -> Self {
        Self { public: OnceLock::new(), private: OnceLock::new(), private_hosts: private_hosts.to_vec() }
    }

    /// Checks an address as far as it can be without asking anybody.
    pub(super) fn check(&self, endpoint: &str) -> Result<(), Forbidden> {
        self.reach(endpoint).map(drop)
    }

    fn reach(&self, endpoint: &str) -> Result<(Reach, Url), Forbidden> {
        if endpoint.len() > ENDPOINT_BYTES_MAX {
            return Err(Forbidden::TooLong);
        }
        let url = Url::parse(endpoint).map_err(|_| Forbidden::NotPlain)?;
        let has_password = !url.username().is_empty() || url.password().is_some();
        if has_password || !matches!(url.scheme(), "https" | "http") || url.fragment().is_some() {
            return Err(Forbidden::NotPlain);
        }
        if self.is_allowed(&url) {
            return Ok((Reach::Private, url));
        }
        if url.scheme() != "https" || url.port().is_some() {
            return Err(Forbidden::NotPlain);
        }
        // The resolver is not asked about what is an IP address already.
        let is_public = match url.host() {
            Some(Host::Domain(name)) => !is_local_name(name),
            Some(Host::Ipv4(ip)) => is_public(ip.into()),
            Some(Host::Ipv6(ip)) => is_public(ip.into()),
            None => return Err(Forbidden::NotPlain),
        };
        if is_public { Ok((Reach::Public, url)) } else { Err(Forbidden::Private) }
    }

    fn client(&self, reach: Reach) -> Result<reqwest::Client, String> {
        let kept = match reach {
            Reach::Public => &self.public,
            Reach::Private => &self.private,
        };
        if let Some(client) = kept.get() {
            return Ok(client.clone());
        }
        let builder = match reach {
            Reach::Public => client()?.https_only(true).dns_resolver(Arc::new(PublicOnly)),
            Reach::Private => client()?,
        };
        let made = builder.build().map_err(|error| error.to_string())?;
        Ok(kept.get_or_init(|| made).clone())
    }

    fn is_allowed(&self, url: &Url) -> bool {
        let Some(host) = url.host_str() else { return false };
        let named = format!("{host}:{}", url.port_or_known_default().unwrap_or_default());
        self.private_hosts.iter().any(|allowed| *allowed == host || *allowed == named)
    }

    /// The status of the answer, and after which time to come again if it says so.
    pub(super) async fn post(
        &self,
        endpoint: &str,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<(StatusCode, Option<Duration>), PostError> {
        let (reach, url) = self.reach(endpoint).map_err(PostError::Forbidden)?;
        let client = self.client(reach).map_err(PostError::Unreachable)?;
        let sent = client.post(url).headers(headers).body(body).send().await;
        let answer = sent.map_err(|error| {
            let mut last: &dyn std::error::Error = &error;
            while let Some(source) = last.source() {
                if source.is::<NothingPublic>() {
                    return PostError::Forbidden(Forbidden::Private);
                }
                last = source;
            }
            // The address is as good as a key, so it is not said.
            PostError::Unreachable(last.to_string())
        })?;
        let after = answer.headers().get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
        Ok((answer.status(), after.and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs)))
    }
}

fn client() -> Result<reqwest::ClientBuilder, String> {
    let tls = client_config(&Trust::Authorities { more: None })?;
    let builder = reqwest::Client::builder()
        .timeout(POST_MAX)
        .tls_backend_preconfigured(tls)
        .redirect(reqwest::redirect::Policy::none())
        // A proxy would look names up in our place, and reach what we must not.
        .no_proxy();
    Ok(builder)
}

/// A name that is nowhere in public.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the name has no public address")]
struct NothingPublic;

/// Looks names up, and gives public addresses alone.
struct PublicOnly;

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        let name = name.as_str().to_owned();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let public: Vec<SocketAddr> = found.filter(|found| is_public(found.ip())).collect();
            if public.is_empty() {
                return Err(NothingPublic.into());
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

/// True of names that never mean anything in public.
fn is_local_name(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let local = ["localhost", "local", "internal", "home.arpa", "localdomain"];
    !name.contains('.') || local.iter().any(|end| name == *end || name.ends_with(&format!(".{end}")))
}

/// True of an address that everybody can reach, and nobody on this machine or in its networks alone.
fn is_public(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    let is_special = ip.is_private()
        || ip.is_loopback()
        || ip.is_link_local()
        || ip.is_documentation()
        || a == 0
        // Between a provider and its customers.
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 192 && b == 88 && c == 99)
        || (a == 198 && (b == 18 || b == 19))
        // Groups, and what is reserved.
        || a >= 224;
    !is_special
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    let segments = ip.segments();
    // A translator stands for an address of IPv4.
    if segments[..6] == [0x64, 0xff9b, 0, 0, 0, 0] {
        let [.., a, b, c, d] = ip.octets();
        return is_public_v4(Ipv4Addr::new(a, b, c, d));
    }
    let is_special = match segments[0] {
        // Protocols, and what documents give as examples.
        0x2001 => segments[1] < 0x200 || segments[1] == 0xdb8,
        0x3fff => segments[1] < 0x1000,
        // 6to4 stands for an address of IPv4, through somebody else's relay.
        0x2002 => true,
        _ => false,
    };
    let is_global = segments[0] & 0xe000 == 0x2000;
    is_global && !is_special
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_public_is_public() {
        for public in [
            "1.1.1.1",
            "142.250.1.1",
            "100.63.0.1",
            "172.32.0.1",
            "2606:4700::1111",
            "64:ff9b::101:101",
            "::ffff:8.8.8.8",
        ] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        for private in [
            "127.0.0.1",
            "127.8.8.8",
            "0.0.0.0",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "192.0.0.8",
            "198.18.0.1",
            "192.0.2.1",
            "224.0.0.1",
            "255.255.255.255",
            "240.0.0.1",
            "::",
            "::1",
            "fe80::1",
            "fc00::1",
            "fd12::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::a00:1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "2001:db8::1",
            "2001::1",
            "fec0::1",
        ] {
            assert!(!is_public(private.parse().unwrap()), "{private}");
        }
    }

    #[test]
    fn an_address_that_is_not_public_is_refused_when_it_is_named() {
        let outside = Outside::new(&["127.0.0.1:9".to_owned(), "push.lan".to_owned()]);
        for fine in [
            "https://push.example/1",
            "https://1.1.1.1/x",
            "http://127.0.0.1:9/x",
            "https://push.lan/x",
            "http://push.lan:8080/x",
        ] {
            assert_eq!(outside.check(fine), Ok(()), "{fine}");
        }
        for private in [
            "https://127.0.0.1/x",
            "https://[::1]/x",
            "https://localhost/x",
            "https://a.localhost/x",
            "https://2130706433/x",
            "https://0x7f.1/x",
            "https://10.0.0.1/",
            "https://[fd00::1]/",
            "https://[::ffff:192.168.0.1]/",
            "https://printer/",
            "https://a.local./",
            "https://db.internal/",
        ] {
            assert_eq!(outside.check(private), Err(Forbidden::Private), "{private}");
        }
        for not in [
            "http://push.example/1",
            "http://127.0.0.1:10/x",
            "https://push.example:444/",
            "https://a:b@push.example/",
            "ftp://push.example/",
            "https://",
            "x",
            "",
            "https://push.example/#x",
            "file:///etc/passwd",
        ] {
            assert_eq!(outside.check(not), Err(Forbidden::NotPlain), "{not}");
        }
        let long = format!("https://push.example/{}", "x".repeat(ENDPOINT_BYTES_MAX));
        assert_eq!(outside.check(&long), Err(Forbidden::TooLong));
    }

    #[tokio::test]
    async fn a_name_that_means_something_private_reaches_nothing() {
        // As an address that is rebound: it was fine when it was named, and means this machine when it is looked up.
        let name: Name = "localhost".parse().unwrap();
        let refused = PublicOnly.resolve(name).await.err().expect("loopback is not public");
        assert!(refused.is::<NothingPublic>(), "{refused}");
    }
}
