//! Finding the server and asking it. A client, never a second writer.

use std::net::{TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use api::Secret;
use api::client::{Client, ClientError};
use api::tls::Trust;
use serde::Serialize;

use crate::credentials::Credentials;
use crate::data_dir::DataDir;
use crate::exit::{CliError, Exit};
use crate::screen::Screen;

/// The longest that the first look for the server may take. Later requests are patient; this one only asks if it is
/// there.
const LOOK_MAX: Duration = Duration::from_secs(3);

/// A server that was there a moment ago.
#[derive(Debug, Clone)]
pub(crate) struct Remote {
    pub(crate) client: Client,
    /// Where it is.
    pub(crate) url: String,
    pub(crate) screen: Screen,
    /// True if it is on another machine, so that our directories are not there.
    pub(crate) is_elsewhere: bool,
    /// The data directory of whoever runs us, with their settings.
    pub(crate) data: PathBuf,
}

/// Where a server is said to be, and how to get in.
#[derive(Debug)]
pub(crate) struct ServerLocation {
    pub(crate) url: String,
    token: Secret,
    trust: Trust,
    /// The thing that said so.
    pub(crate) source: LocationSource,
}

/// The thing that says which server is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LocationSource {
    /// The files of a data directory.
    DataDir,
    /// `HOMING_URL`.
    Environment,
    /// The credentials that `homing login` keeps.
    Login,
}

impl Remote {
    /// The server that is meant.
    pub(crate) fn find(data_dir: &DataDir, screen: Screen) -> Result<Self> {
        let location = ServerLocation::read(data_dir)?;
        if !location.answers() {
            return Err(nobody(data_dir, Some(&location)).into());
        }
        let is_elsewhere = location.is_elsewhere();
        let url = location.url.clone();
        let client = Client::trusting(location.url, location.token.into_inner(), location.trust)
            .map_err(CliError::from)?;
        Ok(Self { client, url, screen, is_elsewhere, data: data_dir.path.clone() })
    }

    /// Says that it is done: the server's own answer for programs, words for people.
    pub(crate) fn done(&self, answer: &impl Serialize, words: impl AsRef<str>) -> Result<()> {
        if self.screen.json {
            self.screen.object(answer)?;
        } else {
            self.screen.hanging(0, words.as_ref())?;
        }
        Ok(())
    }
}

impl ServerLocation {
    /// The server that is meant, and the token for it. The first that says so:
    ///
    /// 1. `--data DIR`: the server of that directory, by the files in it.
    /// 2. `HOMING_URL`: that server, with `HOMING_TOKEN`, or what the file `HOMING_TOKEN_FILE` says (so it is inside an
    ///    agent), or what `homing login` keeps for it.
    /// 3. `HOMING_DATA`: the server of that directory.
    /// 4. A server of this machine's usual data directory, if its file `url` says that there is one.
    /// 5. What `homing login` keeps: the server of the last sign-in.
    ///
    /// `HOMING_TOKEN` alone comes before the token of a data directory.
    pub(crate) fn read(data_dir: &DataDir) -> Result<Self> {
        if !data_dir.named
            && let Some(url) = variable("HOMING_URL")
        {
            check(&url)?;
            let token = token_for(&url)?;
            let trust = Trust::Authorities { more: data_dir.ca.clone() };
            return Ok(Self { url, token, trust, source: LocationSource::Environment });
        }
        let is_here = file(data_dir.url(), data_dir, "url")?;
        let credentials = if data_dir.named || data_dir.chosen || is_here.is_some() {
            Credentials::default()
        } else {
            Credentials::load()?
        };
        if let Some((url, kept)) = credentials.current() {
            let token = variable("HOMING_TOKEN").map_or_else(|| kept.token.clone(), Secret::from);
            let trust = Trust::Authorities { more: data_dir.ca.clone() };
            return Ok(Self { url: url.to_owned(), token, trust, source: LocationSource::Login });
        }
        let url = is_here.ok_or_else(|| nobody(data_dir, None))?;
        let own = variable("HOMING_TOKEN").filter(|_| !data_dir.named);
        let token = match own {
            Some(token) => token,
            None => file(data_dir.token(), data_dir, "token")?.ok_or_else(|| nobody(data_dir, None))?,
        };
        Ok(Self {
            url,
            token: Secret::from(token),
            trust: trust_of(data_dir),
            source: LocationSource::DataDir,
        })
    }

    /// True if it is on another machine. Whoever is reached by a name that is this machine's own alone is not.
    fn is_elsewhere(&self) -> bool {
        let host = host_of(&self.url);
        let name = if has_port(host) { host.rsplit_once(':').map_or(host, |(name, _)| name) } else { host };
        let name = name.trim_start_matches('[').trim_end_matches(']');
        let is_local = name.eq_ignore_ascii_case("localhost")
            || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
        self.source != LocationSource::DataDir && !is_local
    }

    /// True if somebody listens there. A refused connection is known at once, without the client's patience.
    pub(crate) fn answers(&self) -> bool {
        let host = host_of(&self.url);
        let usual_port = if self.url.starts_with("https://") { 443 } else { 80 };
        let host = if has_port(host) { host.to_owned() } else { format!("{host}:{usual_port}") };
        let addresses = host.to_socket_addrs().into_iter().flatten();
        addresses.into_iter().any(|address| TcpStream::connect_timeout(&address, LOOK_MAX).is_ok())
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}

/// The token for a server that `HOMING_URL` names. The token of this machine is not for whatever server somebody names.
fn token_for(url: &str) -> Result<Secret> {
    if let Some(token) = variable("HOMING_TOKEN") {
        return Ok(Secret::from(token));
    }
    if let Some(path) = variable("HOMING_TOKEN_FILE") {
        let token = std::fs::read_to_string(&path).map_err(|why| {
            CliError::new(Exit::Unreachable, format!("{path}: {why}"))
                .hint("HOMING_TOKEN_FILE names it; an agent's token is there only while its turn lasts")
        })?;
        return Ok(Secret::from(token.trim().to_owned()));
    }
    if let Some(kept) = Credentials::load()?.at(url) {
        return Ok(kept.token.clone());
    }
    Err(CliError::new(Exit::Usage, "HOMING_URL is set and HOMING_TOKEN is not")
        .hint(
            "sign in with `homing login`, or set HOMING_TOKEN to a token that `homing token make` has shown",
        )
        .into())
}

fn file(
    read: std::io::Result<Option<String>>,
    data_dir: &DataDir,
    name: &str,
) -> Result<Option<String>, CliError> {
    read.map_err(|why| {
        CliError::new(Exit::Unreachable, format!("{}: {why}", data_dir.path.join(name).display())).hint(
            "the file belongs to the user who runs the server; sign in with `homing login --url URL`, or use HOMING_URL and HOMING_TOKEN",
        )
    })
}

/// A server of this machine has written down its certificate where only its user can write; so the name in it, which need
/// not be this machine's, does not matter.
fn trust_of(data_dir: &DataDir) -> Trust {
    let known = data_dir.certificates();
    if data_dir.ca.is_some() || known.is_empty() {
        return Trust::Authorities { more: data_dir.ca.clone() };
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

/// Checks that this is the address of a server.
pub(crate) fn check(url: &str) -> Result<(), CliError> {
    if (url.starts_with("http://") || url.starts_with("https://")) && !host_of(url).is_empty() {
        return Ok(());
    }
    Err(CliError::new(Exit::Usage, format!("{url:?} is not the address of a server"))
        .hint("write https://HOST or http://HOST:PORT"))
}

/// Nobody is there. The one trouble that every newcomer meets, so it says what to do, and how to point elsewhere.
fn nobody(data_dir: &DataDir, location: Option<&ServerLocation>) -> CliError {
    let at = location.map(|location| format!(" at {}", location.url)).unwrap_or_default();
    let no_answer = || CliError::new(Exit::Unreachable, format!("no server answers{at}"));
    match location.map(|location| location.source) {
        Some(LocationSource::Environment) => {
            no_answer().hint("HOMING_URL points there; unset it to use the server of this machine")
        }
        Some(LocationSource::Login) => no_answer()
            .hint("`homing login` was for that server; `homing logout --forget` forgets it, `homing up` starts one here"),
        Some(LocationSource::DataDir) | None => {
            CliError::new(Exit::Unreachable, format!("no server is running for {}{at}", data_dir.path.display())).hint(
                "start one with `homing up`, sign in elsewhere with `homing login --url URL`, or point elsewhere with --data DIR, or with HOMING_URL and HOMING_TOKEN",
            )
        }
    }
}

/// True if no server was found where one could be started: the data directory of this machine was meant, and nobody has it.
pub(crate) fn is_for_a_start(data_dir: &DataDir) -> bool {
    let is_free = store_sqlite::holder(&data_dir.path).is_ok_and(|holder| holder.is_none());
    let is_elsewhere = !data_dir.named && variable("HOMING_URL").is_some();
    match ServerLocation::read(data_dir) {
        _ if is_elsewhere || !is_free => false,
        Ok(location) => location.source == LocationSource::DataDir,
        // It has never been started here, or has gone properly.
        Err(error) => error.downcast_ref::<CliError>().is_some_and(|error| error.exit == Exit::Unreachable),
    }
}

/// Lets `?` turn what the client says into an error of the command.
pub(crate) trait OrCliError<T> {
    fn or_cli_error(self) -> Result<T>;
}

impl<T> OrCliError<T> for Result<T, ClientError> {
    fn or_cli_error(self) -> Result<T> {
        self.map_err(|error| CliError::from(error).into())
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

    #[test]
    fn a_server_is_elsewhere_unless_its_name_is_this_machines_own() {
        let elsewhere = |url: &str, source| {
            let location = ServerLocation {
                url: url.to_owned(),
                token: Secret::from(String::new()),
                trust: Trust::Authorities { more: None },
                source,
            };
            location.is_elsewhere()
        };
        for local in ["http://127.0.0.1:4747", "http://localhost:1", "https://[::1]:4747", "https://[::1]"] {
            assert!(!elsewhere(local, LocationSource::Login), "{local}");
        }
        for far in ["https://homing.example", "https://10.0.0.1:4747", "https://localhost.example:1"] {
            assert!(elsewhere(far, LocationSource::Login), "{far}");
            assert!(elsewhere(far, LocationSource::Environment), "{far}");
            assert!(!elsewhere(far, LocationSource::DataDir), "the files of a directory are this machine's");
        }
    }
}
