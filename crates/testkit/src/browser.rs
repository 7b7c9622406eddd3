//! As much of a browser as signing in takes: a jar of cookies, redirects, forms, and the rule about other sites.

use std::collections::BTreeMap;

use crate::{Http, HttpAnswer};

/// Redirects in a row.
const REDIRECTS_MAX: usize = 10;

/// A browser with its cookies. Like a real one it does not know ports in cookies, and two names are two sites.
#[derive(Debug, Clone, Default)]
pub struct Browser {
    jar: BTreeMap<(String, String), Cookie>,
}

#[derive(Debug, Clone)]
struct Cookie {
    value: String,
    path: String,
    is_strict: bool,
}

/// Where a browser has got to.
#[derive(Debug)]
pub struct Page {
    /// The last answer.
    pub answered: HttpAnswer,
    /// The address on another server to which it was sent, if that is why it stopped.
    pub away: Option<String>,
}

impl Browser {
    /// Opens an address as a person does who types it, and follows redirects on the same server.
    #[track_caller]
    pub fn open(&mut self, url: &str) -> Page {
        self.follow(url, false)
    }

    /// Opens an address because a page of another site sent the browser there.
    #[track_caller]
    pub fn arrive(&mut self, url: &str) -> Page {
        self.follow(url, true)
    }

    /// The same on one server only, whichever page sent us there.
    #[track_caller]
    pub(crate) fn follow_within(&mut self, server: &str, url: &str) -> Page {
        assert!(url.starts_with(server), "{url} is not at {server}");
        self.follow(url, true)
    }

    /// Sends a form, and follows redirects on the same server.
    #[track_caller]
    pub(crate) fn send_within(&mut self, server: &str, url: &str, typed: &[(&str, &str)]) -> Page {
        let url = absolute(server, url);
        let body = typed.iter().map(|(name, value)| format!("{}={}", escape(name), escape(value)));
        let body = body.collect::<Vec<_>>().join("&");
        let kind = ("application/x-www-form-urlencoded", body.as_bytes());
        let answered = self.request("POST", &url, &[], Some(kind), false);
        self.go_on(&url, answered, false)
    }

    /// Asks as a script of the server's own page does.
    #[track_caller]
    pub fn fetch(&mut self, method: &str, url: &str, body: Option<&serde_json::Value>) -> HttpAnswer {
        let body = body.map(|body| body.to_string().into_bytes());
        let kind = body.as_deref().map(|body| ("application/json", body));
        let origin = format!("http://{}", split(url).0);
        self.request(method, url, &[("Sec-Fetch-Site", "same-origin"), ("Origin", &origin)], kind, false)
    }

    /// The value of a cookie for this server, by how its name begins.
    pub fn cookie(&self, url: &str, begins: &str) -> Option<String> {
        let host = name_of(url);
        let found = self.jar.iter().find(|((of, name), _)| *of == host && name.starts_with(begins));
        found.map(|(_, cookie)| cookie.value.clone())
    }

    /// Puts a cookie there, as another page of the same machine could.
    pub fn plant(&mut self, url: &str, name: &str, value: &str) {
        let cookie = Cookie { value: value.to_owned(), path: "/".to_owned(), is_strict: false };
        self.jar.insert((name_of(url), name.to_owned()), cookie);
    }

    #[track_caller]
    fn follow(&mut self, url: &str, from_elsewhere: bool) -> Page {
        let answered = self.request("GET", url, &[], None, from_elsewhere);
        self.go_on(url, answered, from_elsewhere)
    }

    #[track_caller]
    fn go_on(&mut self, url: &str, mut answered: HttpAnswer, from_elsewhere: bool) -> Page {
        let mut here = url.to_owned();
        for _ in 0..REDIRECTS_MAX {
            let Some(to) = answered.header("location").filter(|_| (300..400).contains(&answered.status))
            else {
                return Page { answered, away: None };
            };
            let next = absolute(&here, to);
            if split(&next).0 != split(&here).0 {
                return Page { answered, away: Some(next) };
            }
            answered = self.request("GET", &next, &[], None, from_elsewhere);
            here = next;
        }
        panic!("redirects without end from {url}");
    }

    #[track_caller]
    fn request(
        &mut self,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        body: Option<(&str, &[u8])>,
        from_elsewhere: bool,
    ) -> HttpAnswer {
        let (server, path) = split(url);
        let cookies = self.cookies(url, path, from_elsewhere);
        let mut all = headers.to_vec();
        if !cookies.is_empty() {
            all.push(("Cookie", &cookies));
        }
        let http = Http { host: server.to_owned(), token: String::new() };
        let answered = http.ask_with(method, path, &all, body);
        let answered = answered.unwrap_or_else(|why| panic!("{method} {url}: {why}"));
        for (_, line) in answered.headers.iter().filter(|(name, _)| name == "set-cookie") {
            self.keep(url, line);
        }
        answered
    }

    fn cookies(&self, url: &str, path: &str, from_elsewhere: bool) -> String {
        let host = name_of(url);
        let fits = |cookie: &Cookie| path.starts_with(&cookie.path) && !(from_elsewhere && cookie.is_strict);
        let ours = self.jar.iter().filter(|((of, _), cookie)| *of == host && fits(cookie));
        ours.map(|((_, name), cookie)| format!("{name}={}", cookie.value)).collect::<Vec<_>>().join("; ")
    }

    fn keep(&mut self, url: &str, line: &str) {
        let mut words = line.split(';').map(str::trim);
        let Some((name, value)) = words.next().and_then(|pair| pair.split_once('=')) else { return };
        let says: Vec<String> = words.map(str::to_ascii_lowercase).collect();
        let key = (name_of(url), name.to_owned());
        let is_over =
            value.is_empty() || says.iter().any(|word| word == "max-age=0" || word.contains("01 jan 1970"));
        if is_over {
            self.jar.remove(&key);
            return;
        }
        let path = line.split(';').map(str::trim).find(|word| word.to_ascii_lowercase().starts_with("path="));
        let path = path.map_or("/", |word| &word["path=".len()..]).to_owned();
        let is_strict = says.iter().any(|word| word == "samesite=strict");
        self.jar.insert(key, Cookie { value: value.to_owned(), path, is_strict });
    }
}

/// Server and path of an address.
fn split(url: &str) -> (&str, &str) {
    let rest = url.strip_prefix("http://").unwrap_or_else(|| panic!("{url} is not of this machine"));
    match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, "/"),
    }
}

fn name_of(url: &str) -> String {
    let server = split(url).0;
    server.rsplit_once(':').map_or(server, |(name, _)| name).to_owned()
}

fn absolute(here: &str, to: &str) -> String {
    if to.contains("://") { to.to_owned() } else { format!("http://{}{to}", split(here).0) }
}

fn escape(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}
