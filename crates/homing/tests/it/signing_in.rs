//! Signing in at a real identity provider, set up as the handbook says.

use serde_json::json;
use testkit::{Browser, Homing, Provider};

const HANDBOOK: &str = include_str!("../../../../docs/operating.md");

/// The example of the handbook, with the addresses of this test in the place of its own.
fn example(provider: &Provider) -> String {
    let (_, section) = HANDBOOK.split_once("## An identity provider").expect("the section is there");
    let (_, example) = section.split_once("```toml\n").expect("it has an example");
    let example = example.split_once("```").expect("it ends").0;
    let here = example.replace("https://id.example.org", &provider.issuer);
    assert_ne!(here, example, "the example names an issuer");
    format!("trust_everyone = true\n{here}")
}

fn start(provider: &mut Provider) -> (Homing, String) {
    let setup = crate::setup().config(&example(provider));
    let homing = setup.variable("HOMING_OIDC_SECRET", Provider::SECRET).start();
    let url = format!("http://{}", homing.http().host);
    provider.allow(&format!("{url}/in/oidc/back"));
    (homing, url)
}

#[test]
fn the_handbooks_example_lets_people_in_and_keeps_its_secrets() {
    let mut provider = Provider::start();
    provider.know(&json!({
        "ann": { "email": "ann@example.org", "email_verified": true, "name": "Ann", "preferred_username": "ann.a" },
        "eve": { "email": "eve@evil.example", "email_verified": true },
    }));
    let (mut homing, url) = start(&mut provider);
    let mut browser = Browser::default();
    assert_eq!(
        browser.fetch("GET", &format!("{url}/api/v1/sign-in"), None).json(),
        json!({ "provider": "Example ID" })
    );
    let sent = browser.open(&format!("{url}/in/oidc")).away.expect("it is sent to the provider");
    let back = provider.sign_in(&mut browser, &sent, "ann");
    assert_eq!(browser.arrive(&back).answered.status, 200);
    let me = browser.fetch("GET", &format!("{url}/api/v1/me"), None).expect(200);
    assert_eq!((&me["handle"], &me["role"]), (&json!("ann.a"), &json!("member")));

    let mut stranger = Browser::default();
    let sent = stranger.open(&format!("{url}/in/oidc")).away.expect("it is sent to the provider");
    let back = provider.sign_in(&mut stranger, &sent, "eve");
    let page = stranger.arrive(&back).answered;
    assert_eq!((page.status, page.text().contains("another house")), (403, true), "{}", page.text());

    // Who is in stays in when the server comes back, and goes when they want to.
    homing.restart();
    assert_eq!(browser.fetch("GET", &format!("{url}/api/v1/me"), None).status, 200);
    assert_eq!(browser.fetch("POST", &format!("{url}/api/v1/sign-out"), None).status, 200);
    assert_eq!(browser.fetch("GET", &format!("{url}/api/v1/me"), None).status, 401);

    let code = back.split_once("code=").expect("it has a code").1.split('&').next().unwrap_or_default();
    let log = homing.server_log();
    assert!(log.contains("was not finished"), "{log}");
    for secret in [Provider::SECRET, code] {
        assert!(!log.contains(secret), "the log has {secret}");
    }
}

#[test]
fn a_provider_that_is_written_wrong_stops_the_start_and_is_told_with_its_line() {
    let homing = crate::homing();
    let wrong = "[oidc]\nissuer = \"http://id.example.org\"\nclient_id = \"homing\"\n";
    let path = homing.root().join("wrong.toml");
    std::fs::write(&path, wrong).unwrap();
    let path = path.to_str().unwrap();
    let other = homing.root().join("other");
    let spoken = homing.run(&[
        "serve",
        "--data",
        other.to_str().unwrap(),
        "--config",
        path,
        "--listen",
        "127.0.0.1:0",
    ]);
    assert_eq!(spoken.code, Some(2), "{}", spoken.err);
    assert!(spoken.err.contains("line 2") && spoken.err.contains("https"), "{}", spoken.err);
}
