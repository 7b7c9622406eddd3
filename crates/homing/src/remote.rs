//! Finding the server and asking it. A client, never a second writer.

use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use anyhow::Result;
use api::client::{Client, ClientError};
use api::tls::Trust;

use crate::exit::{Exit, Trouble};
use crate::place::Place;
use crate::screen::Screen;

/// How long the first look for the server may take. Later requests are patient; this one only asks if it is there.
const LOOK_MAX: Duration = Duration::from_secs(3);

/// A server that was there a moment ago.
#[derive(Debug)]
pub(crate) struct Remote {
    pub(crate) client: Client,
    pub(crate) screen: Screen,
}

/// Where a server is said to be, and how to get in.
#[derive(Debug)]
pub(crate) struct Pointer {
    pub(crate) url: String,
    token: String,
    trust: Trust,
}

impl Remote {
    /// The server of this data directory, or the one that the environment points to.
    pub(crate) fn find(place: &Place, screen: Screen) -> Result<Self> {
        let pointer = Pointer::read(place)?;
        if !pointer.answers() {
            return Err(nobody(place, Some(&pointer.url)).into());
        }
        let client = Client::trusting(pointer.url, pointer.token, pointer.trust).map_err(Trouble::from)?;
        Ok(Self { client, screen })
    }
}

impl Pointer {
    /// `HOMING_URL` and `HOMING_TOKEN` come before the files of the data directory, unless `--data` named it.
    pub(crate) fn read(place: &Place) -> Result<Self, Trouble> {
        let variable =
            |name| std::env::var(name).ok().filter(|value| !value.trim().is_empty() && !place.named);
        let file = |read: std::io::Result<Option<String>>, name: &str| {
            read.map_err(|why| {
                Trouble::new(Exit::Unreachable, format!("{}: {why}", place.dir.join(name).display()))
                    .hint("the file belongs to the user who runs the server; use HOMING_URL and HOMING_TOKEN otherwise")
            })
        };
        if let Some(url) = variable("HOMING_URL") {
            check(&url)?;
            // The token of this machine is not for whatever server somebody names.
            let token = variable("HOMING_TOKEN").ok_or_else(|| {
                Trouble::new(Exit::Usage, "HOMING_URL is set and HOMING_TOKEN is not")
                    .hint("set HOMING_TOKEN to what the file `token` of that server's data directory says")
            })?;
            return Ok(Self { url, token, trust: Trust::Authorities { more: place.ca.clone() } });
        }
        let url = file(place.url(), "url")?.ok_or_else(|| nobody(place, None))?;
        let token = match variable("HOMING_TOKEN") {
            Some(token) => token,
            None => file(place.token(), "token")?.ok_or_else(|| nobody(place, None))?,
        };
        Ok(Self { url, token, trust: trust_of(place) })
    }

    /// Whether somebody listens there. A refused connection is known at once, without the client's patience.
    pub(crate) fn answers(&self) -> bool {
        let host = host_of(&self.url);
        let usual_port = if self.url.starts_with("https://") { 443 } else { 80 };
        let host = if has_port(host) { host.to_owned() } else { format!("{host}:{usual_port}") };
        let addresses = host.to_socket_addrs().into_iter().flatten();
        addresses.into_iter().any(|address| TcpStream::connect_timeout(&address, LOOK_MAX).is_ok())
    }
}

/// A server of this machine has written down its certificate where only its user can write; so the name in it, which need
/// not be this machine's, does not matter.
fn trust_of(place: &Place) -> Trust {
    let known = place.certificates();
    if place.ca.is_some() || known.is_empty() {
        return Trust::Authorities { more: place.ca.clone() };
    }
    Trust::Exactly(known)
}

fn has_port(host: &str) -> bool {
    host.rsplit_once(':')
        .is_some_and(|(_, port)| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()))
}

fn host_of(url: &str) -> &str {
    let url = url.trim();
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")).unwrap_or(url);
    rest.split('/').next().unwrap_or(rest)
}

fn check(url: &str) -> Result<(), Trouble> {
    if (url.starts_with("http://") || url.starts_with("https://")) && !host_of(url).is_empty() {
        return Ok(());
    }
    Err(Trouble::new(Exit::Usage, format!("HOMING_URL is {url:?}, which is not an address of a server"))
        .hint("write https://HOST or http://HOST:PORT"))
}

/// Nobody is there. The one trouble that every newcomer meets, so it says what to do, and how to point elsewhere.
fn nobody(place: &Place, url: Option<&str>) -> Trouble {
    let at = url.map(|url| format!(" at {url}")).unwrap_or_default();
    let elsewhere = std::env::var_os("HOMING_URL").is_some() && !place.named;
    if elsewhere {
        return Trouble::new(Exit::Unreachable, format!("no server answers{at}"))
            .hint("HOMING_URL points there; unset it to use the server of this machine");
    }
    Trouble::new(Exit::Unreachable, format!("no server is running for {}{at}", place.dir.display())).hint(
        "start one with `homing up`, or point elsewhere with --data DIR, or with HOMING_URL and HOMING_TOKEN",
    )
}

/// Lets `?` turn what the client says into a trouble.
pub(crate) trait Told<T> {
    fn told(self) -> Result<T>;
}

impl<T> Told<T> for Result<T, ClientError> {
    fn told(self) -> Result<T> {
        self.map_err(|error| Trouble::from(error).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_http_or_https() {
        assert!(check("http://127.0.0.1:4747").is_ok() && check("https://example.org").is_ok());
        for wrong in ["ftp://example.org", "127.0.0.1:4747", "http://", "https:///x"] {
            assert!(check(wrong).is_err(), "{wrong}");
        }
        assert_eq!(host_of("http://[::1]:4747/"), "[::1]:4747");
        assert_eq!(host_of("https://example.org/x"), "example.org");
        assert!(has_port("[::1]:4747") && has_port("a:1") && !has_port("example.org") && !has_port("[::1]"));
    }
}
