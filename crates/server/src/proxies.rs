//! Where a request comes from: the peer of its connection, or whom a proxy that we were told to trust names.
//!
//! Only `X-Forwarded-For` and `X-Forwarded-Proto` are read, and only from such a proxy: anybody else could write them. A
//! second header of the same meaning (`Forwarded`) is not: a proxy that sets one of the two lets a caller's other one
//! through.

use http::HeaderMap;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// Entries of `X-Forwarded-For` that are looked at. Nobody has more proxies in a row.
const HOPS_MAX: usize = 16;

/// The other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) address: IpAddr,
    /// True if the connection is encrypted.
    pub(crate) tls: bool,
}

impl Peer {
    /// An IPv4 address is one, however a socket of the newer protocol writes it.
    pub(crate) fn new(address: SocketAddr, tls: bool) -> Self {
        Self { address: address.ip().to_canonical(), tls }
    }
}

/// The sender of a request, as far as the network knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestSource {
    pub(crate) address: IpAddr,
    /// True if the request was encrypted where it left the client.
    pub(crate) secure: bool,
}

impl RequestSource {
    /// Reads the forwarded headers from the right: each proxy adds whom it heard, so the first that is no proxy of ours
    /// is the client, and whatever stands further left is what the client said itself.
    pub(crate) fn of(peer: Peer, headers: &HeaderMap, trusted: &[Network]) -> Self {
        let is_proxy = |address: IpAddr| trusted.iter().any(|network| network.has(address));
        let mut source = Self { address: peer.address, secure: peer.tls };
        if !is_proxy(peer.address) {
            return source;
        }
        for hop in hops(headers).take(HOPS_MAX) {
            // What is no address was not written by a proxy of ours: the nearest known one is all we know.
            let Some(address) = hop else { break };
            source.address = address;
            if !is_proxy(address) {
                break;
            }
        }
        source.secure |= is_https(headers);
        source
    }
}

/// The addresses that proxies have written down, the nearest first.
fn hops(headers: &HeaderMap) -> impl Iterator<Item = Option<IpAddr>> {
    let lines = headers.get_all("x-forwarded-for").iter().rev();
    lines.flat_map(|line| line.to_str().unwrap_or_default().rsplit(',')).map(|hop| address_of(hop.trim()))
}

/// An address, with or without a port and brackets.
fn address_of(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let address = bare.parse().or_else(|_| text.parse().map(|address: SocketAddr| address.ip()));
    address.ok().map(|address: IpAddr| address.to_canonical())
}

/// True if the nearest proxy says that the scheme is https.
fn is_https(headers: &HeaderMap) -> bool {
    let said = headers.get_all("x-forwarded-proto").iter().next_back().and_then(|line| line.to_str().ok());
    let nearest = said.and_then(|line| line.rsplit(',').next()).unwrap_or_default();
    nearest.trim().eq_ignore_ascii_case("https")
}

/// Addresses that belong together: `10.0.0.0/8`, `fd00::/8`, or one address alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    first: IpAddr,
    bits: u8,
}

impl Network {
    pub(crate) fn has(&self, address: IpAddr) -> bool {
        match (self.first, address) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                same_start(first.to_bits().into(), address.to_bits().into(), 32 - self.bits)
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                same_start(first.to_bits(), address.to_bits(), 128 - self.bits)
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

fn same_start(one: u128, other: u128, ignored_bits: u8) -> bool {
    (one ^ other).checked_shr(ignored_bits.into()).unwrap_or(0) == 0
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("{text:?} is no network: write an address, or one with a length as in 10.0.0.0/8");
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u8>().map_err(|_| wrong())?)),
            None => (text, None),
        };
        let first: IpAddr = address.parse().map_err(|_| wrong())?;
        let bits_max = if first.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(bits_max);
        if bits > bits_max {
            return Err(wrong());
        }
        Ok(Self { first, bits })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(peer: &str, headers: &[(&'static str, &str)], trusted: &[&str]) -> (String, bool) {
        let trusted: Vec<Network> = trusted.iter().map(|network| network.parse().unwrap()).collect();
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        let peer = Peer::new(SocketAddr::new(peer.parse().unwrap(), 9), false);
        let source = RequestSource::of(peer, &map, &trusted);
        (source.address.to_string(), source.secure)
    }

    const FORGED: &[(&str, &str)] = &[("x-forwarded-for", "6.6.6.6"), ("x-forwarded-proto", "https")];

    #[test]
    fn nobody_is_believed_who_is_not_trusted() {
        assert_eq!(source("1.2.3.4", FORGED, &[]), ("1.2.3.4".into(), false));
        assert_eq!(source("1.2.3.4", FORGED, &["10.0.0.0/8", "::/0"]), ("1.2.3.4".into(), false));
        assert_eq!(source("10.9.9.9", FORGED, &["10.0.0.0/8"]), ("6.6.6.6".into(), true));
        assert_eq!(source("::ffff:10.9.9.9", FORGED, &["10.0.0.0/8"]), ("6.6.6.6".into(), true));
    }

    #[test]
    fn what_a_client_wrote_itself_stands_left_of_where_we_stop() {
        let trusted = &["10.0.0.0/8", "fd00::/8"];
        let seen = |lines: &[&str]| {
            let headers: Vec<_> = lines.iter().map(|line| ("x-forwarded-for", *line)).collect();
            source("10.0.0.1", &headers, trusted).0
        };
        assert_eq!(seen(&["6.6.6.6, 1.2.3.4"]), "1.2.3.4");
        assert_eq!(seen(&["6.6.6.6", "1.2.3.4, 10.0.0.7"]), "1.2.3.4");
        assert_eq!(seen(&["10.0.0.9, 1.2.3.4:5678, fd00::2"]), "1.2.3.4");
        assert_eq!(seen(&["[2001:db8::1]:443"]), "2001:db8::1");
        assert_eq!(seen(&["[2001:db8::1]"]), "2001:db8::1");
        assert_eq!(seen(&["1.2.3.4, unknown, 10.0.0.7"]), "10.0.0.7");
        assert_eq!(seen(&["1.2.3.4,"]), "10.0.0.1");
        assert_eq!(seen(&[]), "10.0.0.1");
        assert_eq!(seen(&["10.0.0.3, 10.0.0.2"]), "10.0.0.3");
        assert_eq!(seen(&[&vec!["10.0.0.2"; 1_000].join(",")]), "10.0.0.2");
    }

    #[test]
    fn the_nearest_proxy_says_whether_it_was_encrypted() {
        let seen = |said: &str| source("10.0.0.1", &[("x-forwarded-proto", said)], &["10.0.0.1"]).1;
        assert!(seen("https") && seen("HTTPS") && seen("http, https"));
        assert!(!seen("http") && !seen("https, http") && !seen(""));
    }

    #[test]
    fn a_network_is_an_address_and_a_length() {
        for text in ["", "10.0.0.0/33", "::/129", "10.0.0/8", "a/8", "10.0.0.0/", "10.0.0.0/-1"] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
        let all: Network = "0.0.0.0/0".parse().unwrap();
        assert!(all.has("255.1.2.3".parse().unwrap()) && !all.has("::1".parse().unwrap()));
        let one: Network = "::1".parse().unwrap();
        assert!(one.has("::1".parse().unwrap()) && !one.has("::2".parse().unwrap()));
    }
}
