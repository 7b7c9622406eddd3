//! The whole way through a real provider's pages and back, and everything that somebody could do to it on the way.

use super::*;
use serde_json::json;
use testkit::{Browser, Provider};
use tokio::runtime::{Builder, Runtime};

/// Where the browser is sent back to. Nobody listens there: the test does what the door would do.
const HERE: &str = "http://127.0.0.1:9/in/oidc/back";

struct World {
    runtime: Runtime,
    provider: Provider,
    oidc: Oidc,
    browser: Browser,
}

impl World {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(set_up: impl FnOnce(&mut OidcConfig)) -> Self {
        let mut provider = Provider::start();
        provider.allow(HERE);
        provider.know(&json!({
            "ann": { "email": "Ann@Example.org", "email_verified": true, "name": "Ann", "preferred_username": "ann" },
            "bob": { "email": "bob@example.org", "email_verified": false },
            "eve": { "email": "eve@evil.example", "email_verified": true },
            "dan": {},
        }));
        let mut config = OidcConfig::new(&provider.issuer, Provider::CLIENT);
        config.client_secret = Some(Provider::SECRET.to_owned());
        set_up(&mut config);
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        Self { runtime, provider, oidc: Oidc::new(config).unwrap(), browser: Browser::default() }
    }

    fn begin(&self) -> ProviderRedirect {
        self.runtime.block_on(self.oidc.begin(HERE.to_owned())).unwrap()
    }

    /// Goes to the provider as somebody, and answers the address with which the browser comes back.
    fn go(&mut self, sent: &ProviderRedirect, name: &str) -> String {
        let back = self.provider.sign_in(&mut self.browser, &sent.url, name);
        assert!(back.starts_with(HERE), "{back}");
        back
    }

    fn finish(&self, back: &str, browser: Option<&str>) -> Result<ProviderIdentity, SignInFailure> {
        self.runtime.block_on(self.oidc.finish(parse(back), browser, HERE))
    }

    /// The whole way, as somebody whom the provider does not know yet.
    fn sign_in(&mut self, name: &str) -> Result<ProviderIdentity, SignInFailure> {
        self.browser = Browser::default();
        let sent = self.begin();
        let back = self.go(&sent, name);
        self.finish(&back, Some(&sent.browser))
    }
}

fn parse(back: &str) -> CallbackQuery {
    let query = back.split_once('?').unwrap().1;
    serde_urlencoded::from_str(query).unwrap()
}

fn with(back: &str, name: &str, value: Option<&str>) -> String {
    let (path, query) = back.split_once('?').unwrap();
    let rest = form_urlencoded::parse(query.as_bytes()).filter(|(known, _)| known != name);
    let mut changed = form_urlencoded::Serializer::new(String::new());
    changed.extend_pairs(rest);
    if let Some(value) = value {
        changed.append_pair(name, value);
    }
    format!("{path}?{}", changed.finish())
}

fn untrusted(answered: Result<ProviderIdentity, SignInFailure>, word: &str) {
    match answered {
        Err(SignInFailure::Untrusted(why)) => assert!(why.to_lowercase().contains(word), "{why}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn somebody_whom_the_provider_knows_is_asserted() {
    let mut world = World::new();
    let ann = world.sign_in("ann").unwrap();
    assert_eq!((ann.issuer.as_str(), ann.subject.as_str()), (world.provider.issuer.as_str(), "ann"));
    assert_eq!(ann.email.as_deref(), Some("ann@example.org"), "asked for, as it is not in the token");
    assert_eq!((ann.name.as_deref(), ann.nickname.as_deref()), (Some("Ann"), Some("ann")));
    world.provider.say_all_in_the_token();
    assert_eq!(world.sign_in("ann").unwrap(), ann, "the same if it is");
}

#[test]
fn the_browser_is_sent_off_with_a_challenge_a_state_and_a_nonce_of_its_own() {
    let world = World::new();
    let (one, two) = (world.begin(), world.begin());
    let word = |sent: &ProviderRedirect, name: &str| {
        let query = sent.url.split_once('?').unwrap().1.to_owned();
        let found = form_urlencoded::parse(query.as_bytes()).find(|(known, _)| known == name);
        found.map(|(_, value)| value.into_owned()).unwrap_or_default()
    };
    assert_eq!((word(&one, "response_type").as_str(), word(&one, "redirect_uri").as_str()), ("code", HERE));
    assert_eq!(word(&one, "code_challenge_method"), "S256");
    for name in ["state", "nonce", "code_challenge"] {
        assert!(word(&one, name).len() >= 43, "{name}");
        assert_ne!(word(&one, name), word(&two, name), "{name}");
    }
    assert!(one.browser.len() >= 43 && one.browser != two.browser && !one.url.contains(&one.browser));
    assert!(!one.url.contains("secret"), "{}", one.url);
}

#[test]
fn another_state_or_none_lets_nobody_in() {
    let mut world = World::new();
    let sent = world.begin();
    let back = world.go(&sent, "ann");
    for state in [Some("forged"), Some(""), None] {
        let forged = with(&back, "state", state);
        assert_eq!(world.finish(&forged, Some(&sent.browser)), Err(SignInFailure::Stale));
    }
    assert!(world.finish(&back, Some(&sent.browser)).is_ok(), "and the right one was not spent by that");
}

#[test]
fn a_sign_in_is_finished_once() {
    let mut world = World::new();
    let sent = world.begin();
    let back = world.go(&sent, "ann");
    assert!(world.finish(&back, Some(&sent.browser)).is_ok());
    assert_eq!(world.finish(&back, Some(&sent.browser)), Err(SignInFailure::Stale));
    // The same code with a state that is good: the provider does not take it twice, and it was not meant for this one.
    let other = world.begin();
    let state = form_urlencoded::parse(other.url.split_once('?').unwrap().1.as_bytes())
        .find(|(name, _)| name == "state")
        .unwrap()
        .1
        .into_owned();
    let replayed = with(&back, "state", Some(&state));
    untrusted(world.finish(&replayed, Some(&other.browser)), "did not take the code");
}

#[test]
fn a_code_that_was_meant_for_another_sign_in_is_not_taken() {
    let mut world = World::new();
    let (mine, theirs) = (world.begin(), world.begin());
    let back = world.go(&theirs, "ann");
    let code = parse(&back).code.unwrap();
    let own = world.go(&mine, "ann");
    let swapped = with(&own, "code", Some(&code));
    untrusted(world.finish(&swapped, Some(&mine.browser)), "did not take the code");
}

#[test]
fn who_began_in_another_browser_does_not_get_in() {
    let mut world = World::new();
    for browser in [None, Some(""), Some("secret of another browser")] {
        let sent = world.begin();
        let back = world.go(&sent, "ann");
        assert_eq!(world.finish(&back, browser), Err(SignInFailure::Stale));
        assert_eq!(
            world.finish(&back, Some(&sent.browser)),
            Err(SignInFailure::Stale),
            "what leaked is spent"
        );
    }
}

#[test]
fn a_browser_comes_back_to_where_it_was_sent_from() {
    let mut world = World::new();
    let sent = world.begin();
    let back = world.go(&sent, "ann");
    let elsewhere = world.oidc.finish(parse(&back), Some(&sent.browser), "http://localhost:9/in/oidc/back");
    assert_eq!(world.runtime.block_on(elsewhere), Err(SignInFailure::Stale));
    // And the provider sends nobody to an address that it was not told of.
    let changed = sent.url.replace("127.0.0.1%3A9", "evil.example");
    assert_ne!(changed, sent.url);
    let refused = Browser::default().open(&changed);
    assert_eq!((refused.answered.status, refused.away), (400, None));
}

#[test]
fn another_provider_cannot_send_a_browser_back() {
    let mut world = World::new();
    for named in [Some("https://evil.example"), Some(""), None] {
        let sent = world.begin();
        let back = world.go(&sent, "ann");
        untrusted(world.finish(&with(&back, "iss", named), Some(&sent.browser)), "somebody else");
    }
}

#[test]
fn what_the_provider_refuses_is_refused() {
    let world = World::new();
    let sent = world.begin();
    let state = sent.url.split_once("state=").unwrap().1.split('&').next().unwrap();
    let iss: String = form_urlencoded::byte_serialize(world.provider.issuer.as_bytes()).collect();
    let back = format!("{HERE}?error=access_denied&state={state}&iss={iss}");
    assert_eq!(world.finish(&back, Some(&sent.browser)), Err(SignInFailure::Refused("access_denied".into())));
    let sent = world.begin();
    let state = sent.url.split_once("state=").unwrap().1.split('&').next().unwrap();
    let nothing = format!("{HERE}?state={state}&iss={iss}");
    assert_eq!(world.finish(&nothing, Some(&sent.browser)), Err(SignInFailure::Stale));
}

#[test]
fn a_forged_token_lets_nobody_in() {
    let mut world = World::new();
    let forgeries = [
        ("nonce", "nonce"),
        ("no nonce", "nonce"),
        ("audience", "audience"),
        ("two audiences", "not a trusted audience"),
        ("party", "another client"),
        ("issuer", "issuer"),
        ("expired", "expired"),
        ("another key", "signature"),
        ("unknown key", "no matching key"),
        ("none", "signature"),
        ("hmac by secret", "algorithm"),
        ("hmac by public key", "algorithm"),
        ("another subject", "signature"),
        ("no token", "no id token"),
    ];
    for (how, word) in forgeries {
        world.provider.tamper(Some(how));
        eprintln!("{how}");
        untrusted(world.sign_in("eve"), word);
    }
    // What stands in between changes nothing by itself.
    world.provider.tamper(Some("nothing"));
    assert_eq!(world.sign_in("eve").unwrap().subject, "eve");
}

#[test]
fn other_keys_are_asked_for_and_other_algorithms_known() {
    let mut world = World::new();
    world.sign_in("ann").unwrap();
    // As often as they change.
    for _ in 0..2 {
        world.provider.rotate();
        world.sign_in("ann").unwrap();
    }
    for algorithm in ["ES256", "PS256", "EdDSA"] {
        world.provider.sign_by(algorithm);
        world.sign_in("ann").unwrap_or_else(|why| panic!("{algorithm}: {why:?}"));
        world.provider.tamper(Some("another key"));
        untrusted(world.sign_in("ann"), "signature");
        world.provider.tamper(None);
    }
}

#[test]
fn an_address_that_the_provider_has_not_checked_does_not_count() {
    let mut world = World::new();
    assert_eq!(world.sign_in("bob").unwrap().email, None);
    assert_eq!(world.sign_in("dan").unwrap().email, None);
    world.provider.say_all_in_the_token();
    assert_eq!(world.sign_in("bob").unwrap().email, None);
}

#[test]
fn only_addresses_of_the_house_come_in() {
    let mut world = World::with(|config| config.allowed_domains.push("example.org".into()));
    assert!(world.sign_in("ann").is_ok());
    assert_eq!(world.sign_in("eve"), Err(SignInFailure::OtherDomain));
    assert_eq!(world.sign_in("bob"), Err(SignInFailure::Unverified { said: true }));
    assert_eq!(world.sign_in("dan"), Err(SignInFailure::Unverified { said: false }));
}

#[test]
fn a_wrong_client_secret_gets_nobody() {
    let mut world = World::with(|config| config.client_secret = Some("wrong".into()));
    untrusted(world.sign_in("ann"), "invalid_client");
}

#[test]
fn a_provider_that_is_not_there_is_said_to_be_so() {
    let world = World::new();
    let issuer = world.provider.issuer.clone();
    drop(world);
    let oidc = Oidc::new(OidcConfig::new(&issuer, "homing")).unwrap();
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let begun = runtime.block_on(oidc.begin(HERE.to_owned()));
    assert!(matches!(begun, Err(SignInFailure::Unreachable(_))));
    assert!(Oidc::new(OidcConfig::new("http://id.example", "homing")).is_err(), "not without TLS");
}

#[test]
fn nothing_shows_the_secret() {
    let mut config = OidcConfig::new("https://id.example", "homing");
    config.client_secret = Some("canary".into());
    assert!(!format!("{config:?}").contains("canary"));
}

#[test]
fn every_page_says_what_to_do_and_escapes_what_others_said() {
    let mut config = OidcConfig::new("https://id.example", "homing");
    config.name = "<b>Example</b>".into();
    let oidc = Oidc::new(config).unwrap();
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    for why in [
        SignInFailure::Stale,
        SignInFailure::Refused("<script>".into()),
        SignInFailure::Unreachable("inner words".into()),
        SignInFailure::Untrusted("inner words".into()),
        SignInFailure::Unverified { said: true },
        SignInFailure::Unverified { said: false },
        SignInFailure::OtherDomain,
        SignInFailure::Nobody,
        SignInFailure::Later("inner words".into()),
    ] {
        let page = oidc.page(&why);
        assert!(page.status().is_client_error() || page.status().is_server_error());
        let body = runtime.block_on(axum::body::to_bytes(page.into_body(), 10_000)).unwrap();
        let body = String::from_utf8(body.to_vec()).unwrap();
        assert!(body.contains("Try again") && !body.contains("<b>") && !body.contains("<script>"), "{body}");
        assert!(!body.contains("inner words"), "{body}");
    }
}
