//! Coming in by way of a real identity provider: through our door, through its pages, and back.
//!
//! What could be done to the token on the way is tried in `server::oidc`; here it is who comes in as whom.

use crate::world::World;
use serde_json::{Value, json};
use server::{CreateAs, OidcConfig};
use testkit::{Browser, HttpAnswer, Provider};

struct House {
    world: World,
    provider: Provider,
}

impl House {
    async fn new(set_up: impl FnOnce(&mut OidcConfig)) -> Self {
        let mut provider = Provider::start();
        let mut oidc = OidcConfig::new(&provider.issuer, Provider::CLIENT);
        oidc.client_secret = Some(Provider::SECRET.to_owned());
        oidc.name = "Example ID".to_owned();
        set_up(&mut oidc);
        let world = World::with(Default::default(), |config| {
            config.oidc = Some(oidc);
            config.sign_ins_per_minute = 0;
        });
        let world = world.await;
        provider.allow(&format!("{}/in/oidc/back", world.url));
        provider.know(&json!({
            "1": { "email": "Bob@Example.org", "email_verified": true, "name": "Bob", "preferred_username": "bob" },
            "2": { "email": "bob@example.org", "email_verified": true },
            "3": { "email": "bob@example.org", "email_verified": false },
            "4": { "email": "new@example.org", "email_verified": true, "name": "New", "preferred_username": "ann" },
        }));
        Self { world, provider }
    }

    /// Goes off in this browser, and answers the address with which it is sent back.
    fn go(&self, browser: &mut Browser, name: &str) -> String {
        let page = browser.open(&format!("{}/in/oidc", self.world.url));
        self.provider.sign_in(browser, &page.away.expect("it is sent to the provider"), name)
    }

    /// The whole way in a browser of its own. Answers what it is told in the end, and who it is then.
    fn come(&self, name: &str) -> (HttpAnswer, Option<Value>) {
        let mut browser = Browser::default();
        let back = self.go(&mut browser, name);
        let answered = browser.arrive(&back).answered;
        let me = browser.fetch("GET", &format!("{}/api/v1/me", self.world.url), None);
        (answered, (me.status == 200).then(|| me.json()))
    }

    #[track_caller]
    fn refused(&self, name: &str, status: u16, word: &str) {
        let (page, me) = self.come(name);
        assert_eq!((page.status, me), (status, None), "{}", page.text());
        assert!(page.text().contains(word) && page.text().contains("Try again"), "{}", page.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_was_invited_is_known_by_their_address_once_and_by_the_providers_name_from_then_on() {
    let mut house = House::new(|_| {}).await;
    let (bob, _) = house.world.invite("bob", json!({ "email": "bob@example.org" })).await;
    let (page, me) = house.come("1");
    assert_eq!(page.status, 200, "the page at /");
    assert_eq!(me.unwrap()["person"], *bob);
    // The address is somebody else's now, and the person has another one.
    house.provider.know(&json!({
        "1": { "email": "robert@example.org", "email_verified": true },
        "2": { "email": "bob@example.org", "email_verified": true },
    }));
    assert_eq!(house.come("1").1.unwrap()["person"], *bob);
    house.refused("2", 403, "nobody here whom you could be");
    let audit: Value = house.world.ask("GET", "/api/v1/audit").send().await.unwrap().json().await.unwrap();
    let what =
        |verb: &str| audit["items"].as_array().unwrap().iter().filter(|entry| entry["what"] == verb).count();
    assert!(what("set_identity") >= 1 && what("sign_in") >= 3, "{audit:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_is_not_checked_lets_nobody_in() {
    let house = House::new(|oidc| oidc.create = CreateAs::Member).await;
    house.world.invite("bob", json!({ "email": "bob@example.org" })).await;
    house.refused("3", 403, "has not checked");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_becomes_anybody_unless_it_is_said_so() {
    let house = House::new(|_| {}).await;
    house.refused("4", 403, "nobody here whom you could be");
    let house = House::new(|oidc| oidc.create = CreateAs::Viewer).await;
    let (page, me) = house.come("4");
    assert_eq!(page.status, 200);
    let me = me.unwrap();
    assert_eq!(
        (&me["handle"], &me["role"], &me["email"]),
        (&json!("ann-2"), &json!("viewer"), &json!("new@example.org"))
    );
    assert_eq!(house.come("4").1.unwrap()["person"], me["person"], "once");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_new_comes_in_while_the_wall_has_a_hole() {
    let house = House::new(|oidc| oidc.create = CreateAs::Member).await;
    house.world.fence.0.store(true, std::sync::atomic::Ordering::Relaxed);
    house.refused("4", 503, "Not just now");
    house.world.fence.0.store(false, std::sync::atomic::Ordering::Relaxed);
    assert!(house.come("4").1.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn who_was_shut_out_does_not_come_in_this_way_either() {
    let house = House::new(|oidc| oidc.create = CreateAs::Member).await;
    let (bob, _) = house.world.invite("bob", json!({ "email": "bob@example.org" })).await;
    assert!(house.come("1").1.is_some());
    house.world.disable(&bob).await;
    house.refused("1", 403, "nobody here whom you could be");
    // Not as somebody whom the provider has never named, nor as somebody new with the same address.
    house.refused("2", 403, "nobody here whom you could be");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_org_that_is_named_gets_people_from_there() {
    let house = House::new(|oidc| oidc.org = Some("elsewhere".into())).await;
    house.world.invite("bob", json!({ "email": "bob@example.org" })).await;
    house.refused("1", 403, "nobody here whom you could be");
    let made = json!({ "name": "elsewhere", "owner": { "handle": "eve", "email": "bob@example.org" } });
    let made = house.world.ask("POST", "/api/v1/orgs").json(&made).send().await.unwrap();
    assert_eq!(made.status(), 200, "{}", made.text().await.unwrap());
    assert_eq!(
        house.come("1").1.unwrap()["handle"],
        "eve",
        "the one of that org, not the one of the same address"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_browser_that_went_comes_in_and_only_once() {
    let house = House::new(|oidc| oidc.create = CreateAs::Member).await;
    let (mut mine, mut yours) = (Browser::default(), Browser::default());
    let back = house.go(&mut mine, "4");
    // What a forged link would do to somebody else: sign them in as me.
    let stolen = yours.arrive(&back).answered;
    assert_eq!(stolen.status, 410, "{}", stolen.text());
    assert_eq!(yours.cookie(&house.world.url, "homing_"), None);
    let back = house.go(&mut mine, "4");
    let mut copy = mine.clone();
    assert_eq!(mine.arrive(&back).answered.status, 200);
    assert!(mine.cookie(&house.world.url, "homing_away").is_none(), "it is taken away");
    assert_eq!(copy.arrive(&back).answered.status, 410, "a second time");
    for odd in ["", "?state=x&code=y", "?code=a&code=b", "?error=%3Cscript%3E&state=x", "?%ff=%ff&state"] {
        let page = mine.clone().arrive(&format!("{}/in/oidc/back{odd}", house.world.url)).answered;
        assert_eq!(page.status, 410, "{odd}");
        assert!(!page.text().contains("<script>"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_planted_cookie_is_neither_kept_nor_believed() {
    let house = House::new(|oidc| oidc.create = CreateAs::Member).await;
    let (url, mut browser) = (house.world.url.clone(), Browser::default());
    let port = url.rsplit_once(':').unwrap().1;
    browser.plant(&url, &format!("homing_{port}"), "chosen-by-somebody-else");
    browser.plant(&url, &format!("homing_away_{port}"), "chosen-by-somebody-else");
    let back = house.go(&mut browser, "4");
    assert_eq!(browser.arrive(&back).answered.status, 200);
    let secret = browser.cookie(&url, &format!("homing_{port}")).unwrap();
    assert_ne!(secret, "chosen-by-somebody-else");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cookies_of_the_way_say_what_they_are_for() {
    let house = House::new(|oidc| oidc.create = CreateAs::Member).await;
    let url = &house.world.url;
    let gone = house.world.http.get(format!("{url}/in/oidc")).send().await.unwrap();
    assert_eq!(gone.status(), 303);
    let line = gone.headers()["set-cookie"].to_str().unwrap();
    for word in ["homing_away_", "HttpOnly", "SameSite=Lax", "Max-Age=600", "Path=/"] {
        assert!(line.contains(word), "{line}");
    }
    let ways: Value =
        house.world.http.get(format!("{url}/api/v1/sign-in")).send().await.unwrap().json().await.unwrap();
    assert_eq!(ways, json!({ "provider": "Example ID" }));
    let mut browser = Browser::default();
    let back = house.go(&mut browser, "4");
    let cookie = format!(
        "homing_away_{}={}",
        url.rsplit_once(':').unwrap().1,
        browser.cookie(url, "homing_away").unwrap()
    );
    let answer = house.world.http.get(back).header("cookie", cookie).send().await.unwrap();
    let lines: Vec<_> =
        answer.headers().get_all("set-cookie").iter().map(|line| line.to_str().unwrap()).collect();
    assert!(lines[0].contains("SameSite=Strict") && lines[0].contains("HttpOnly"), "{lines:?}");
    assert!(lines[1].starts_with("homing_away_") && lines[1].contains("Max-Age=0"), "{lines:?}");
    assert_eq!(answer.headers()["location"], "/", "without the code in the address");
}

#[tokio::test]
async fn without_a_provider_nobody_is_sent_anywhere() {
    let world = World::new().await;
    for path in ["/in/oidc", "/in/oidc/back?code=x&state=y"] {
        let page = world.http.get(format!("{}{path}", world.url)).send().await.unwrap();
        assert_eq!(page.status(), 404);
        assert!(page.text().await.unwrap().contains("no identity provider"));
    }
}
