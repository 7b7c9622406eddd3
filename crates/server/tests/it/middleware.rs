//! Closed by default: who gets in, under which name, from which page.

use crate::world::{TOKEN, World};
use api::Problem;
use reqwest::{Response, StatusCode};

async fn problem(answer: Response, status: u16, code: &str) -> Problem {
    assert_eq!(answer.status().as_u16(), status);
    assert_eq!(answer.headers()["content-type"], "application/problem+json");
    let problem: Problem = answer.json().await.unwrap();
    assert_eq!((problem.code.word(), problem.status), (code, status), "{problem:?}");
    problem
}

/// Every path that needs a credential, with a method it knows.
const CLOSED: &[(&str, &str)] = &[
    ("GET", "/api/v1/me"),
    ("POST", "/api/v1/messages"),
    ("GET", "/api/v1/messages/msg_00000000000000000000000001"),
    ("PATCH", "/api/v1/messages/msg_00000000000000000000000001"),
    ("DELETE", "/api/v1/messages/msg_00000000000000000000000001"),
    ("POST", "/api/v1/messages/msg_00000000000000000000000001/stop"),
    ("GET", "/api/v1/sessions"),
    ("POST", "/api/v1/sessions"),
    ("GET", "/api/v1/sessions/ses_00000000000000000000000001/facts"),
    ("GET", "/api/v1/facts"),
    ("GET", "/api/v1/openapi.json"),
    ("GET", "/readyz"),
    ("GET", "/metrics"),
    ("GET", "/no/such/path"),
];

#[tokio::test]
async fn without_a_credential_nothing_is_told_not_even_on_loopback() {
    let world = World::new().await;
    for (method, path) in CLOSED {
        let url = format!("{}{path}", world.url);
        let ask = || world.http.request(method.parse().unwrap(), &url);
        let answer = ask().send().await.unwrap();
        assert_eq!(answer.headers()["www-authenticate"], "Bearer", "{method} {path}");
        problem(answer, 401, "unauthenticated").await;
        problem(ask().bearer_auth("wrong").send().await.unwrap(), 401, "unauthenticated").await;
        problem(ask().basic_auth("ann", Some(TOKEN)).send().await.unwrap(), 401, "unauthenticated").await;
    }
}

#[tokio::test]
async fn what_is_open_says_nothing() {
    let world = World::new().await;
    for path in ["/healthz", "/", "/s/ses_anything", "/sign-in", "/page.css"] {
        let answer = world.http.get(format!("{}{path}", world.url)).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
        assert_eq!(answer.headers()["x-content-type-options"], "nosniff");
        assert!(answer.headers()["content-security-policy"].to_str().unwrap().contains("default-src 'none'"));
        let body = answer.text().await.unwrap();
        assert!(!body.contains("usr_") && !body.contains("ses_"), "{path}");
    }
}

#[tokio::test]
async fn a_server_is_called_by_its_own_name_only() {
    let world =
        World::with(Default::default(), |config| config.allowed_hosts.push("homing.example".into())).await;
    let port = world.host().rsplit_once(':').unwrap().1.to_owned();
    for name in ["evil.example", &format!("evil.example:{port}"), "127.0.0.1", "localhost:1"] {
        for path in ["/api/v1/me", "/", "/in/x"] {
            let answer = world.ask("GET", path).header("host", name).send().await.unwrap();
            problem(answer, 421, "bad_host").await;
        }
    }
    for name in ["homing.example", &format!("homing.example:{port}"), &format!("localhost:{port}")] {
        let answer = world.ask("GET", "/api/v1/me").header("host", name).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK, "{name}");
    }
    let nameless = world.raw(b"GET /api/v1/me HTTP/1.0\r\n\r\n").await;
    assert!(nameless.contains("421") && nameless.contains("bad_host"), "{nameless}");
}

#[tokio::test]
async fn a_page_of_another_site_may_not_use_us() {
    let world = World::new().await;
    let other_port = "http://127.0.0.1:1";
    for origin in ["http://evil.example", "null", other_port, "https://127.0.0.1", "http://", "file://"] {
        for (method, path) in CLOSED {
            let answer = world.ask(method, path).header("origin", origin).send().await.unwrap();
            problem(answer, 403, "bad_origin").await;
        }
    }
    let answer = world.ask("GET", "/api/v1/me").header("origin", &world.url).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_sign_in_link_works_once() {
    let world = World::new().await;
    for look in [world.http.head(&world.sign_in), world.http.get(&world.sign_in)] {
        let looked = look.send().await.unwrap();
        assert_eq!(looked.status(), StatusCode::OK);
        assert!(!looked.headers().contains_key("set-cookie"), "who only looks does not use it");
    }
    let foreign = world.http.post(&world.sign_in).header("origin", "http://evil.example");
    problem(foreign.send().await.unwrap(), 403, "bad_origin").await;
    let answer = world.http.post(&world.sign_in).header("origin", &world.url).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
    assert_eq!(answer.headers()["location"], "/");
    let cookie = answer.headers()["set-cookie"].to_str().unwrap().to_owned();
    for word in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(word), "{cookie}");
    }
    let cookie = cookie.split(';').next().unwrap();
    let me =
        world.http.get(format!("{}/api/v1/me", world.url)).header("cookie", cookie).send().await.unwrap();
    assert_eq!(me.status(), StatusCode::OK);
    let name = cookie.split('=').next().unwrap();
    for lines in [vec![format!("{name}=x; {cookie}")], vec![cookie.to_owned(), format!("{name}=x")]] {
        let ask = world.http.get(format!("{}/api/v1/me", world.url));
        let ask = lines.iter().fold(ask, |ask, line| ask.header("cookie", line));
        problem(ask.send().await.unwrap(), 401, "unauthenticated").await;
    }

    for link in [world.sign_in.clone(), format!("{}/in/never-minted", world.url)] {
        for ask in [world.http.get(&link), world.http.post(&link)] {
            let answer = ask.send().await.unwrap();
            assert_eq!(answer.status(), StatusCode::GONE);
            assert!(!answer.headers().contains_key("set-cookie"));
            assert!(answer.text().await.unwrap().contains("works once"));
        }
    }
}

#[tokio::test]
async fn a_signed_in_browser_changes_things_from_our_own_page_only() {
    let world = World::new().await;
    let answer = world.http.post(&world.sign_in).send().await.unwrap();
    let cookie = answer.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let say = || {
        let body = r#"{"to":{"conversation":"web:ann/1"},"text":"hello"}"#;
        let post = world.http.post(format!("{}/api/v1/messages", world.url)).header("cookie", &cookie);
        post.header("content-type", "application/json").body(body)
    };
    problem(say().send().await.unwrap(), 403, "bad_origin").await;
    for site in ["cross-site", "same-site", "none"] {
        let answer = say().header("sec-fetch-site", site).send().await.unwrap();
        problem(answer, 403, "bad_origin").await;
    }
    let answer = say().header("sec-fetch-site", "same-origin").send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::ACCEPTED);
    let answer = say().header("origin", &world.url).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::ACCEPTED);

    // Another port of this machine is the same site to a cookie, but not to us; not even to read.
    let read = || world.http.get(format!("{}/api/v1/sessions", world.url)).header("cookie", &cookie);
    let answer = read().header("sec-fetch-site", "same-site").send().await.unwrap();
    problem(answer, 403, "bad_origin").await;
    assert_eq!(read().send().await.unwrap().status(), StatusCode::OK);
    problem(
        world
            .http
            .get(format!("{}/api/v1/me", world.url))
            .header("cookie", "homing_1=x")
            .send()
            .await
            .unwrap(),
        401,
        "unauthenticated",
    )
    .await;
}

#[tokio::test]
async fn every_answer_has_its_correlation_id() {
    let world = World::new().await;
    let answer = world.ask("GET", "/api/v1/me").header("x-correlation-id", "abc-1.2_3").send().await.unwrap();
    assert_eq!(answer.headers()["x-correlation-id"], "abc-1.2_3");
    for odd in ["with blank", "", &"x".repeat(65)] {
        let answer = world.ask("GET", "/nowhere").header("x-correlation-id", odd).send().await.unwrap();
        let minted = answer.headers()["x-correlation-id"].to_str().unwrap();
        assert_eq!(minted.len(), 32, "{minted}");
    }
}
