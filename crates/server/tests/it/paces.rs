//! Rate limits, where a request is said to come from, and what every answer tells browsers.

use crate::world::{ROBOT, World};
use api::Problem;
use api::client::Client;
use reqwest::{Response, StatusCode};
use server::ServerConfig;

async fn world(set_up: impl FnOnce(&mut ServerConfig)) -> World {
    World::with(Default::default(), set_up).await
}

/// A refusal for having asked too often, which says when to go on.
async fn is_too_fast(answer: Response) -> bool {
    if answer.status() != StatusCode::TOO_MANY_REQUESTS {
        return false;
    }
    let wait: u64 = answer.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    let problem: Problem = answer.json().await.unwrap();
    assert_eq!((problem.code.word(), problem.retry_after), ("too_many_requests", Some(wait)));
    assert!(wait >= 1 && problem.hint.contains(&format!("in {wait} s")), "{problem:?}");
    true
}

/// Asks until that is too fast; how often it was not. Who asks once a second is never too fast, and no machine is as slow.
async fn until_too_fast(ask: impl AsyncFn() -> Response, otherwise: StatusCode) -> usize {
    for times in 0..1_000 {
        let answer = ask().await;
        let status = answer.status();
        if is_too_fast(answer).await {
            return times;
        }
        assert_eq!(status, otherwise);
    }
    panic!("it was never too fast");
}

#[tokio::test]
async fn a_credential_that_asks_too_fast_is_told_when_to_go_on_and_holds_up_no_other() {
    let world = world(|config| config.requests_per_second = 1).await;
    let ask = async || world.ask("GET", "/api/v1/me").send().await.unwrap();
    assert!(until_too_fast(ask, StatusCode::OK).await >= 5);
    assert!(Client::new(&world.url, ROBOT).unwrap().me().await.is_ok());
    assert_eq!(
        world.client().me().await.unwrap().handle,
        "ann",
        "our client waits as long as it is asked to"
    );
}

#[tokio::test]
async fn who_has_no_good_credential_has_a_pace_and_holds_up_nobody_who_has_one() {
    let world = world(|config| config.strangers_per_second = 1).await;
    let without = || world.http.get(format!("{}/api/v1/me", world.url));
    let wrong = async || without().bearer_auth("a guess").send().await.unwrap();
    assert!(until_too_fast(wrong, StatusCode::UNAUTHORIZED).await >= 5);
    // Both are the same stranger.
    let none = async || without().send().await.unwrap();
    assert!(until_too_fast(none, StatusCode::UNAUTHORIZED).await < 5);
    assert_eq!(world.client().me().await.unwrap().handle, "ann");
    let page = world.http.get(&world.url).send().await.unwrap();
    assert_eq!(page.status(), StatusCode::OK, "what is open stays open");
}

#[tokio::test]
async fn links_cannot_be_guessed_without_end() {
    let world = world(|config| config.sign_ins_per_minute = 3).await;
    let guess = |n: usize| world.http.get(format!("{}/in/{n}", world.url));
    for n in 0..3 {
        assert_eq!(guess(n).send().await.unwrap().status(), StatusCode::GONE);
    }
    assert!(is_too_fast(guess(3).send().await.unwrap()).await);
    assert!(is_too_fast(world.http.get(&world.sign_in).send().await.unwrap()).await);
}

#[tokio::test]
async fn no_limit_is_none() {
    let world = world(|config| {
        (config.requests_per_second, config.strangers_per_second, config.sign_ins_per_minute) = (0, 0, 0);
    })
    .await;
    for n in 0..50 {
        let answer = world.http.get(format!("{}/in/{n}", world.url)).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::GONE);
        let answer = world.http.get(format!("{}/api/v1/me", world.url)).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
    }
}

#[tokio::test]
async fn a_proxy_is_believed_if_it_is_trusted_and_nobody_else_is() {
    for trusted in [false, true] {
        let world = world(|config| {
            config.sign_ins_per_minute = 1;
            if trusted {
                config.trusted_proxies.push("127.0.0.0/8".parse().unwrap());
            }
        })
        .await;
        // What the client wrote itself stands to the left of what the proxy has added.
        let guess = |client: &str| {
            let ask = world.http.get(format!("{}/in/x", world.url));
            ask.header("x-forwarded-for", format!("203.0.113.9, {client}")).send()
        };
        let mut refused = Vec::new();
        for client in ["192.0.2.1", "192.0.2.2", "192.0.2.1"] {
            refused.push(is_too_fast(guess(client).await.unwrap()).await);
        }
        assert_eq!(refused, if trusted { [false, false, true] } else { [false, true, true] });

        let ask = world.http.post(&world.sign_in).header("x-forwarded-proto", "https");
        let answer = ask.header("x-forwarded-for", "192.0.2.3").send().await.unwrap();
        if trusted {
            let cookie = answer.headers()["set-cookie"].to_str().unwrap();
            assert!(cookie.starts_with("__Host-") && cookie.ends_with("; Secure"), "{cookie}");
        } else {
            assert!(is_too_fast(answer).await);
        }
    }
}

#[tokio::test]
async fn a_proxy_that_encrypts_makes_only_encrypted_pages_ours() {
    let world = world(|config| {
        config.trusted_proxies.push("127.0.0.1".parse().unwrap());
        config.allowed_hosts.push("homing.example".into());
    })
    .await;
    let from = |origin: &str| {
        let ask = world.ask("GET", "/api/v1/me").header("host", "homing.example");
        ask.header("x-forwarded-proto", "https").header("origin", origin).send()
    };
    let answer = from("https://homing.example").await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert!(answer.headers().contains_key("strict-transport-security"));
    assert_eq!(from("http://homing.example").await.unwrap().status(), StatusCode::FORBIDDEN);
    let plain = world.ask("GET", "/api/v1/me").header("host", "homing.example").send().await.unwrap();
    assert!(!plain.headers().contains_key("strict-transport-security"));
}

#[tokio::test]
async fn every_answer_tells_browsers_to_keep_to_themselves() {
    let world = World::new().await;
    let expected = [
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cache-control", "no-store"),
    ];
    for (method, path) in [
        ("GET", "/"),
        ("GET", "/settings"),
        ("GET", "/page.css"),
        ("GET", "/in/x"),
        ("GET", "/healthz"),
        ("GET", "/api/v1/me"),
        ("OPTIONS", "/api/v1/messages"),
        ("GET", "/nowhere"),
    ] {
        let ask = world.ask(method, path).header("access-control-request-method", "POST");
        let answer = ask.send().await.unwrap();
        let headers = answer.headers();
        for (name, value) in expected {
            assert_eq!(headers[name], value, "{method} {path}");
        }
        let policy = headers["content-security-policy"].to_str().unwrap();
        for part in ["default-src 'none'", "base-uri 'none'", "form-action", "frame-ancestors 'none'"] {
            assert!(policy.contains(part), "{method} {path}: {policy}");
        }
        assert!(!policy.contains("unsafe") && !policy.contains('*'), "{policy}");
        assert!(headers.contains_key("permissions-policy"));
        let allows = headers.keys().any(|name| name.as_str().starts_with("access-control-"));
        assert!(!allows, "{method} {path}: nothing is for other sites");
    }
}

#[tokio::test]
async fn a_stream_is_for_our_own_page_too() {
    let world = World::new().await;
    let made = world.client().make_session(&Default::default()).await.unwrap();
    let answer = world.http.post(&world.sign_in).send().await.unwrap();
    let cookie = answer.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    for path in [format!("/api/v1/sessions/{}/facts", made.id), "/api/v1/facts".to_owned()] {
        let stream = |name: &'static str, value: &str| {
            let ask = world.http.get(format!("{}{path}", world.url)).header("cookie", &cookie);
            ask.header("accept", "text/event-stream").header(name, value).send()
        };
        for (name, value) in [
            ("origin", "null"),
            ("origin", "http://evil.example"),
            ("origin", "http://127.0.0.1:1"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
        ] {
            let problem: Problem = stream(name, value).await.unwrap().json().await.unwrap();
            assert_eq!((problem.status, problem.code.word()), (403, "bad_origin"), "{name}: {value}");
        }
        let ours = stream("origin", &world.url).await.unwrap();
        assert_eq!(ours.status(), StatusCode::OK);
        assert_eq!(ours.headers()["content-type"], "text/event-stream");
    }
}
