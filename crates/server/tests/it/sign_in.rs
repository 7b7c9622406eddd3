//! Signing in by password and by link, the cookie that comes of it, and what others could try with either.

use crate::town::SOON;
use crate::world::{TOKEN, World};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use server::Network;
use std::time::{Duration, Instant};

const PASSWORD: &str = "correct horse battery";
const GOOD: StatusCode = StatusCode::OK;
const GONE: StatusCode = StatusCode::UNAUTHORIZED;
/// The wait after the first failure that is one too many …
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// … and the longest that the limiter makes anybody wait in these tests, in seconds.
const WAIT_MAX: u64 = 60;

/// Somebody's first credential comes from the machine's file; a browser's comes from here.
impl World {
    pub(crate) async fn with_password() -> Self {
        Self::with_password_and(|_| {}).await
    }

    async fn with_password_and(set_up: impl FnOnce(&mut server::ServerConfig)) -> Self {
        let world = Self::with(Default::default(), set_up).await;
        let set = world.ask("PUT", "/api/v1/me/password").json(&json!({ "new": PASSWORD }));
        assert_eq!(set.send().await.unwrap().status(), 200);
        world
    }

    /// As our own page asks.
    pub(crate) fn by_page(&self, method: Method, path: &str) -> RequestBuilder {
        let ask = self.http.request(method, format!("{}{path}", self.url));
        ask.header("origin", &self.url).header("sec-fetch-site", "same-origin")
    }

    async fn try_password(&self, login: &str, password: &str) -> Response {
        let body = json!({ "login": login, "password": password, "for": "browser" });
        self.by_page(Method::POST, "/api/v1/sign-in").json(&body).send().await.unwrap()
    }

    pub(crate) async fn sign_in(&self) -> String {
        cookie_in(&self.try_password("ann", PASSWORD).await).unwrap()
    }

    /// The server's word to a browser with this cookie about itself.
    pub(crate) async fn who(&self, cookie: &str) -> Response {
        self.by_page(Method::GET, "/api/v1/me").header("cookie", cookie).send().await.unwrap()
    }

    /// Until a browser with this cookie is nobody. A credential that was found good is taken for good for a moment more.
    pub(crate) async fn until_unknown(&self, cookie: &str) {
        let unknown = async {
            while self.who(cookie).await.status() != 401 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(SOON, unknown).await.expect("it is nobody's");
    }

    /// Somebody who was let in by ann, and the link for them.
    pub(crate) async fn invite(&self, handle: &str, more: Value) -> (String, String) {
        let mut body = json!({ "handle": handle });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let added = self.ask("POST", "/api/v1/users").json(&body).send().await.unwrap();
        assert_eq!(added.status(), 200);
        let added: Value = added.json().await.unwrap();
        let code = added["link"]["path"].as_str().unwrap().strip_prefix("/in/").unwrap().to_owned();
        (added["user"]["id"].as_str().unwrap().to_owned(), code)
    }

    pub(crate) async fn disable(&self, person: &str) {
        let path = format!("/api/v1/users/{person}/disable");
        assert_eq!(self.ask("POST", &path).send().await.unwrap().status(), 200);
    }
}

/// Name and secret of the cookie that an answer leaves.
pub(crate) fn cookie_in(answer: &Response) -> Option<String> {
    let line = answer.headers().get("set-cookie")?.to_str().unwrap();
    line.split(';').next().filter(|pair| !pair.ends_with('=')).map(str::to_owned)
}

fn secret(cookie: &str) -> &str {
    cookie.split_once('=').unwrap().1
}

#[tokio::test]
async fn a_password_lets_a_browser_in_with_a_secret_that_only_its_cookie_has() {
    let world = World::with_password().await;
    let answer = world.try_password("ann", PASSWORD).await;
    assert_eq!(answer.status(), 200);
    let line = answer.headers()["set-cookie"].to_str().unwrap().to_owned();
    for word in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=2592000"] {
        assert!(line.contains(word), "{line}");
    }
    let cookie = cookie_in(&answer).unwrap();
    let body = answer.text().await.unwrap();
    assert!(!body.contains(secret(&cookie)) && body.contains("\"ann\""), "{body}");
    let me: Value = world.who(&cookie).await.json().await.unwrap();
    assert_eq!(me["handle"], "ann");
    for login in ["ANN", " ann ", "ann@example.org"] {
        let expected = if login.contains('@') { 401 } else { 200 };
        assert_eq!(world.try_password(login, PASSWORD).await.status(), expected, "{login}");
    }
}

#[tokio::test]
async fn a_command_line_gets_a_token_and_no_cookie() {
    let world = World::with_password().await;
    let body = json!({ "login": "ann", "password": PASSWORD, "for": "cli", "name": "laptop" });
    let ask = world.http.post(format!("{}/api/v1/sign-in", world.url)).json(&body);
    let answer = ask.send().await.unwrap();
    assert!(!answer.headers().contains_key("set-cookie"));
    let signed: Value = answer.json().await.unwrap();
    let token = signed["secret"].as_str().unwrap();
    assert!(token.starts_with("hmg_c_"), "{token}");
    let me = || world.http.get(format!("{}/api/v1/me", world.url)).bearer_auth(token);
    assert_eq!(me().send().await.unwrap().status(), 200);
    let out = world.http.post(format!("{}/api/v1/sign-out", world.url)).bearer_auth(token);
    assert_eq!(out.send().await.unwrap().status(), 200);
    assert_eq!(me().send().await.unwrap().status(), 401, "at once");
}

#[tokio::test]
async fn signing_out_ends_it_at_once_and_takes_the_cookie_away() {
    let world = World::with_password().await;
    let (cookie, other) = (world.sign_in().await, world.sign_in().await);
    let out = world.by_page(Method::POST, "/api/v1/sign-out").header("cookie", &cookie);
    let answer = out.send().await.unwrap();
    assert_eq!(answer.status(), 200);
    let line = answer.headers()["set-cookie"].to_str().unwrap();
    assert!(line.contains("Max-Age=0") && line.contains(cookie.split('=').next().unwrap()), "{line}");
    assert_eq!(world.who(&cookie).await.status(), 401);
    assert_eq!(world.who(&other).await.status(), 200, "the other browser is still in");
}

#[tokio::test]
async fn a_secret_that_was_planted_before_is_not_taken_over() {
    let world = World::with_password().await;
    let name = world.sign_in().await.split('=').next().unwrap().to_owned();
    let planted = format!("{name}=chosen-by-somebody-else");
    let body = json!({ "login": "ann", "password": PASSWORD, "for": "browser" });
    let ask = world.by_page(Method::POST, "/api/v1/sign-in").header("cookie", &planted);
    let fresh = cookie_in(&ask.json(&body).send().await.unwrap()).unwrap();
    assert_ne!(fresh, planted);
    assert_eq!(world.who(&planted).await.status(), 401);
    assert_eq!(world.who(&fresh).await.status(), 200);
    // Who signs in again in the same browser leaves nothing behind.
    let ask = world.by_page(Method::POST, "/api/v1/sign-in").header("cookie", &fresh);
    let again = cookie_in(&ask.json(&body).send().await.unwrap()).unwrap();
    assert_ne!(again, fresh);
    assert_eq!((world.who(&fresh).await.status(), world.who(&again).await.status()), (GONE, GOOD));
}

#[tokio::test]
async fn another_site_can_neither_sign_anybody_in_nor_out() {
    let world = World::with_password().await;
    let body = json!({ "login": "ann", "password": PASSWORD, "for": "browser" });
    let sign_in = || world.http.post(format!("{}/api/v1/sign-in", world.url)).json(&body);
    for origin in ["https://evil.example", "null", "http://127.0.0.1:1"] {
        let answer = sign_in().header("origin", origin).send().await.unwrap();
        assert_eq!((answer.status().as_u16(), cookie_in(&answer)), (403, None), "{origin}");
    }
    for site in ["cross-site", "same-site"] {
        let answer = sign_in().header("sec-fetch-site", site).send().await.unwrap();
        assert_eq!((answer.status().as_u16(), cookie_in(&answer)), (403, None), "{site}");
    }
    // What a form of another page can send without asking first.
    let form = world.http.post(format!("{}/api/v1/sign-in", world.url));
    for kind in ["text/plain", "application/x-www-form-urlencoded"] {
        let form = form.try_clone().unwrap().header("content-type", kind).body(body.to_string());
        assert_eq!(form.send().await.unwrap().status(), 415, "{kind}");
    }
    let cookie = world.sign_in().await;
    let out = || world.http.post(format!("{}/api/v1/sign-out", world.url)).header("cookie", &cookie);
    assert_eq!(out().send().await.unwrap().status(), 403, "without an origin");
    assert_eq!(out().header("origin", "https://evil.example").send().await.unwrap().status(), 403);
    assert_eq!(out().header("sec-fetch-site", "cross-site").send().await.unwrap().status(), 403);
    assert_eq!(world.who(&cookie).await.status(), 200);
}

#[tokio::test]
async fn whatever_was_wrong_the_answer_and_the_work_are_the_same() {
    const TRIES: usize = 15;
    let world = World::with_password_and(|config| config.sign_ins_per_minute = 0).await;
    let (_, _) = world.invite("passwordless", json!({})).await;
    let (gone, link) = world.invite("gone", json!({})).await;
    give_password(&world, &link).await;
    world.disable(&gone).await;
    let cases = [
        ("wrong", "ann"),
        ("unknown", "nobody-of-this-name"),
        ("passwordless", "passwordless"),
        ("disabled", "gone"),
    ];
    let (mut seen, mut times) = (Vec::new(), vec![Vec::new(); cases.len()]);
    // In turns, so that a machine that becomes slower does so for all of them.
    for _ in 0..TRIES {
        for ((case, login), times) in cases.iter().zip(&mut times) {
            let password = if *case == "disabled" { PASSWORD } else { "not the right one" };
            let (before, began) = (world.engine.people().passwords_compared(), Instant::now());
            let answer = world.try_password(login, password).await;
            times.push(began.elapsed());
            assert_eq!((answer.status().as_u16(), cookie_in(&answer)), (401, None), "{case}");
            assert_eq!(world.engine.people().passwords_compared() - before, 1, "{case}: one argon2 each");
            let mut problem: Value = answer.json().await.unwrap();
            problem.as_object_mut().unwrap().remove("correlation");
            seen.push(problem);
        }
    }
    for ((case, _), mut times) in cases.iter().zip(times) {
        times.sort();
        println!("{case:<13} median {:>8.2?}  of {TRIES}", times[TRIES / 2]);
    }
    seen.dedup();
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert_eq!(seen[0]["code"], "wrong_sign_in");
}

/// Signs in by a link and sets the usual password.
async fn give_password(world: &World, link: &str) {
    let body = json!({ "link": link, "for": "cli" });
    let signed = world.http.post(format!("{}/api/v1/sign-in", world.url)).json(&body).send().await.unwrap();
    let signed: Value = signed.json().await.unwrap();
    let set = world.http.put(format!("{}/api/v1/me/password", world.url)).json(&json!({ "new": PASSWORD }));
    let set = set.bearer_auth(signed["secret"].as_str().unwrap()).send().await.unwrap();
    assert_eq!(set.status(), 200);
}

#[tokio::test]
async fn who_guesses_waits_and_nobody_else_does() {
    let here: Network = "127.0.0.1".parse().unwrap();
    let world = World::with_password_and(|config| config.trusted_proxies.push(here)).await;
    let from = |address: &'static str, password: &'static str| {
        let body = json!({ "login": "ann", "password": password, "for": "browser" });
        let ask = world.by_page(Method::POST, "/api/v1/sign-in").header("x-forwarded-for", address);
        let ask = ask.json(&body);
        async { ask.send().await.unwrap() }
    };
    let (mut tries, mut guessed) = (0, Instant::now());
    let wait = loop {
        let asked = Instant::now();
        let answer = from("192.0.2.1", "guess").await;
        if answer.status() == 429 {
            let wait = answer.headers()["retry-after"].to_str().unwrap().parse::<u64>().unwrap();
            assert!((1..=WAIT_MAX).contains(&wait), "{wait}");
            let compared = world.engine.people().passwords_compared();
            let (right, wrong) = (from("192.0.2.1", PASSWORD).await, from("192.0.2.1", "guess").await);
            // If that took us longer than the wait, it says nothing.
            if guessed.elapsed() < FIRST_WAIT {
                assert_eq!(right.status(), 429, "not even with the right one, which could be a guess");
                assert_eq!(wrong.status(), 429);
                assert_eq!(world.engine.people().passwords_compared(), compared, "who waits costs nothing");
                break wait;
            }
        } else {
            assert_eq!(answer.status(), 401);
            guessed = asked;
        }
        tries += 1;
        assert!(tries < 20, "nobody stopped it");
    };
    assert_eq!(from("198.51.100.7", PASSWORD).await.status(), 200, "from elsewhere one may");
    tokio::time::sleep(Duration::from_secs(wait)).await;
    assert_eq!(from("192.0.2.1", PASSWORD).await.status(), 200, "after the wait");
}

#[tokio::test]
async fn a_stolen_credential_does_not_find_out_the_password() {
    let world = World::with_password().await;
    let change = |current: &'static str, new: &'static str| {
        let ask = world.ask("PUT", "/api/v1/me/password").json(&json!({ "current": current, "new": new }));
        async { ask.send().await.unwrap().status().as_u16() }
    };
    let (mut tries, mut guessed) = (0, Instant::now());
    loop {
        let asked = Instant::now();
        if change("guess", "another password").await == 429 {
            let compared = world.engine.people().passwords_compared();
            let right = change(PASSWORD, PASSWORD).await;
            // If that took us longer than the wait, it says nothing.
            if guessed.elapsed() < FIRST_WAIT {
                assert_eq!(right, 429, "it could be a guess");
                assert_eq!(world.engine.people().passwords_compared(), compared, "who waits costs nothing");
                return;
            }
        } else {
            guessed = asked;
            // What is refused for another reason forgives nothing.
            assert!([422, 429].contains(&change("guess", "short").await));
        }
        tries += 1;
        assert!(tries < 20, "nobody stopped it");
    }
}

#[tokio::test]
async fn a_link_is_spent_by_its_button_and_by_nothing_else() {
    let world = World::with_password().await;
    let (_, code) = world.invite("bob", json!({ "name": "<b>Bob</b>" })).await;
    let link = format!("{}/in/{code}", world.url);
    for _ in 0..2 {
        assert_eq!(world.http.head(&link).send().await.unwrap().status(), 200);
        let page = world.http.get(&link).send().await.unwrap();
        assert_eq!((page.status().as_u16(), cookie_in(&page)), (200, None));
        let policy = page.headers()["content-security-policy"].to_str().unwrap();
        assert!(policy.contains("form-action 'self'") && policy.contains("default-src 'none'"), "{policy}");
        // With `no-referrer` a browser would send `Origin: null` when the button is pressed.
        assert_eq!(page.headers()["referrer-policy"], "same-origin");
        let text = page.text().await.unwrap();
        assert!(text.contains("bob") && text.contains("method=\"post\"") && !text.contains("<b>"), "{text}");
    }
    for (name, value) in
        [("origin", "https://evil.example"), ("origin", "null"), ("sec-fetch-site", "cross-site")]
    {
        let answer = world.http.post(&link).header(name, value).send().await.unwrap();
        assert_eq!((answer.status().as_u16(), cookie_in(&answer)), (403, None), "{name}: {value}");
    }
    let path = format!("/in/{code}");
    let answer = world.by_page(Method::POST, &path).send().await.unwrap();
    assert_eq!((answer.status().as_u16(), &answer.headers()["location"]), (303, &"/".parse().unwrap()));
    let me: Value = world.who(&cookie_in(&answer).unwrap()).await.json().await.unwrap();
    assert_eq!(me["handle"], "bob");
    for method in [Method::GET, Method::POST] {
        let again = world.by_page(method, &path).send().await.unwrap();
        assert_eq!((again.status().as_u16(), cookie_in(&again)), (410, None));
        assert!(again.text().await.unwrap().contains("works once"));
    }
}

#[tokio::test]
async fn a_browsers_secret_is_replaced_after_a_day_and_the_old_one_soon_ends() {
    const HOUR: Duration = Duration::from_secs(60 * 60);
    let world = World::with_password().await;
    let first = world.sign_in().await;
    world.pass(HOUR * 23);
    assert_eq!(cookie_in(&world.who(&first).await), None, "not yet");
    world.pass(HOUR * 2);
    let answer = world.who(&first).await;
    let second = cookie_in(&answer).expect("another secret");
    assert_eq!(answer.status(), 200);
    assert_ne!(first, second);
    let line = answer.headers()["set-cookie"].to_str().unwrap();
    assert!(line.contains("HttpOnly") && line.contains("SameSite=Strict"), "{line}");
    assert_eq!(
        (world.who(&first).await.status(), world.who(&second).await.status()),
        (GOOD, GOOD),
        "requests may be under way"
    );
    world.pass(Duration::from_secs(61));
    world.until_unknown(&first).await;
    assert_eq!(world.who(&second).await.status(), 200);
}

#[tokio::test]
async fn a_browser_that_is_not_used_for_a_week_is_out() {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    let world = World::with_password().await;
    let cookie = world.sign_in().await;
    world.pass(DAY * 7 + Duration::from_secs(60));
    world.until_unknown(&cookie).await;
    let mut cookie = world.sign_in().await;
    // And one that is used every few days, after thirty.
    for _ in 0..5 {
        world.pass(DAY * 5);
        let answer = world.who(&cookie).await;
        assert_eq!(answer.status(), 200);
        cookie = cookie_in(&answer).unwrap_or(cookie);
    }
    world.pass(DAY * 5);
    world.until_unknown(&cookie).await;
}

#[tokio::test]
async fn the_page_can_ask_how_one_can_sign_in_and_says_nothing_itself() {
    let world = World::new().await;
    let answer = world.http.get(format!("{}/api/v1/sign-in", world.url)).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.json::<Value>().await.unwrap(), json!({}));
    let page = world.http.get(&world.url).send().await.unwrap();
    let policy = page.headers()["content-security-policy"].to_str().unwrap().to_owned();
    assert!(!policy.contains("unsafe") && policy.contains("default-src 'none'"), "{policy}");
    let page = page.text().await.unwrap();
    assert!(!page.contains("style=") && !page.contains("onclick") && !page.contains(TOKEN));
}
