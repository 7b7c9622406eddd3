//! Rights that are taken away while requests and streams run: each of them notices.
//!
//! How soon is for the engine's tests to say, where a machine that is busy with something else does not slow the clock
//! down. Here everything has to notice by itself while nothing else happens.

use crate::town::{Busy, SOON, Town, read};
use crate::world::{Somebody, trace};
use engine::{Purpose, SignInFor};
use futures_util::StreamExt;
use kernel::{Grant, Grantee, GroupId, MessageId, Rights, Role, To};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::task::JoinHandle;

/// A session of ann's in which bob's turn runs and a message of his waits, with bob listening in every way.
struct Stage {
    town: Town,
    group: GroupId,
    bob: Somebody,
    /// A credential of bob's besides the one that he came with.
    token: Somebody,
    busy: Busy,
    waits: MessageId,
}

/// The end of a stream or a waiting request.
type Ended = JoinHandle<Value>;

impl Stage {
    async fn new(to_group: bool) -> Self {
        let town = Town::new(&[]).await;
        let ann = town.host.clone();
        let bob = town.person(&ann, "bob", Role::Member).await;
        let by = town.now(&ann).await;
        let group = town.engine.people().make_group(&by, "crew".into(), trace()).await.unwrap().group;
        town.engine.people().join(&by, group, bob.by.person, trace()).await.unwrap();
        let (session, first) = town.say(&ann, To::New, "hello").await;
        town.engine.views().receipt_within(&by, first, SOON).await.unwrap();
        let to = if to_group { Grantee::Group(group) } else { Grantee::Person(bob.by.person) };
        town.give(&ann, session, to, Grant::Prompt).await;
        let (_, runs) = town.say(&bob, To::Session(session), "!ask tool").await;
        let asked = town.fact(&ann, session, |fact| matches!(fact, kernel::Fact::Asked { .. })).await;
        let kernel::Fact::Asked { approval: asks, .. } = asked else { panic!("{asked:?}") };
        let (_, waits) = town.say(&bob, To::Session(session), "later").await;
        let token = town.token(&bob, Rights::ALL).await;
        Self { town, group, bob, token, busy: Busy { session, runs, asks }, waits }
    }

    /// Opens a stream; it is open when this answers. The end is told by the handle.
    async fn stream(&self, path: &str) -> Ended {
        let ask = self.town.ask(Some(&self.token.token), "GET", path).header("accept", "text/event-stream");
        let response = ask.send().await.unwrap();
        assert_eq!(response.status(), 200);
        let mut frames = response.bytes_stream();
        let first = tokio::time::timeout(SOON, frames.next()).await.unwrap();
        assert!(first.unwrap().unwrap().starts_with(b"retry:"), "it is open");
        tokio::spawn(async move {
            while let Some(Ok(_)) = frames.next().await {}
            Value::Null
        })
    }

    /// A request that waits for bob's turn to end.
    fn wait(&self) -> Ended {
        let path = format!("/api/v1/messages/{}?wait=60", self.busy.runs);
        let ask = self.town.ask(Some(&self.token.token), "GET", &path);
        tokio::spawn(async move {
            let (status, code, body) = read(ask.send().await.unwrap()).await;
            json!([status, code, body["state"]])
        })
    }

    async fn facts_stream(&self) -> Ended {
        self.stream(&format!("/api/v1/sessions/{}/facts", self.busy.session)).await
    }

    /// Asks as bob, with the other credential.
    async fn bob_reads(&self) -> (u16, Option<String>) {
        let path = format!("/api/v1/sessions/{}", self.busy.session);
        let (status, code, _) = self.town.answer(Some(&self.token.token), "GET", &path, None).await;
        (status, code)
    }

    /// Asks as ann, who may.
    async fn ann(&self, method: &str, path: &str, body: Option<Value>) {
        let path = format!("/api/v1{path}");
        let (status, _, told) =
            self.town.answer(Some(&self.town.host.token), method, &path, body.as_ref()).await;
        assert_eq!(status, 200, "{method} {path}: {told}");
    }

    /// The fate of one of bob's messages, as ann sees it.
    async fn became(&self, message: MessageId) -> (String, Option<String>) {
        let path = format!("/api/v1/messages/{message}?wait=20");
        let (status, _, receipt) = self.town.answer(Some(&self.town.host.token), "GET", &path, None).await;
        assert_eq!(status, 200, "{receipt}");
        (receipt["state"].as_str().unwrap().to_owned(), receipt["why"].as_str().map(str::to_owned))
    }

    /// Nothing of it runs on, and nothing of it waits.
    async fn nothing_of_bobs_goes_on(&self) {
        assert_eq!(self.became(self.busy.runs).await.0, "stopped");
        let (state, why) = self.became(self.waits).await;
        assert_eq!(state, "refused");
        assert!(matches!(why.as_deref(), Some("revoked" | "not_allowed")), "{why:?}");
    }
}

/// It ends, though nothing else happens.
async fn cut(what: &str, ended: Ended) -> Value {
    tokio::time::timeout(SOON, ended).await.unwrap_or_else(|_| panic!("{what} ends")).unwrap()
}

const UNKNOWN: (u16, Option<&str>) = (401, Some("unauthenticated"));
const UNSEEN: (u16, Option<&str>) = (404, Some("not_found"));

fn same(is: &(u16, Option<String>), expected: (u16, Option<&str>)) {
    assert_eq!((is.0, is.1.as_deref()), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_token_is_good_for_nothing_at_once_and_its_streams_end() {
    let stage = Stage::new(false).await;
    let (facts, heads) = (stage.facts_stream().await, stage.stream("/api/v1/facts").await);
    let waits = stage.wait();
    same(&stage.bob_reads().await, (200, None));
    let token = stage.token.by.credential.unwrap();
    stage.ann("DELETE", &format!("/tokens/{token}"), None).await;
    same(&stage.bob_reads().await, UNKNOWN);
    cut("the stream of facts", facts).await;
    cut("the stream of heads", heads).await;
    assert_eq!(cut("the request that waits", waits).await, json!([401, "unauthenticated", null]));
    // What he said with another credential, or before, he is still allowed to say.
    let (status, ..) = stage.town.answer(Some(&stage.bob.token), "GET", "/api/v1/me", None).await;
    assert_eq!(status, 200);
    let path = format!("/api/v1/messages/{}", stage.busy.runs);
    let (_, _, receipt) = stage.town.answer(Some(&stage.bob.token), "GET", &path, None).await;
    assert_eq!(receipt["state"], "running", "{receipt}");
    stage.town.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_that_is_taken_back_or_a_group_that_is_left_ends_all_that_hung_on_it() {
    for by_group in [false, true] {
        let stage = Stage::new(by_group).await;
        let (facts, waits) = (stage.facts_stream().await, stage.wait());
        let (session, bob) = (stage.busy.session, stage.bob.by.person);
        match by_group {
            false => stage.ann("DELETE", &format!("/sessions/{session}/grants?user={bob}"), None).await,
            true => stage.ann("DELETE", &format!("/groups/{}/people/{bob}", stage.group), None).await,
        }
        same(&stage.bob_reads().await, UNSEEN);
        cut("the stream of facts", facts).await;
        assert_eq!(cut("the request that waits", waits).await, json!([404, "not_found", null]));
        stage.nothing_of_bobs_goes_on().await;
        let body = json!({"to": {"session": session.to_string()}, "text": "again"});
        let (status, ..) =
            stage.town.answer(Some(&stage.token.token), "POST", "/api/v1/messages", Some(&body)).await;
        assert_eq!(status, 404);
        stage.town.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disabled_persons_turn_is_stopped_and_all_their_credentials_and_links_are_dead() {
    let stage = Stage::new(false).await;
    let (facts, heads) = (stage.facts_stream().await, stage.stream("/api/v1/facts").await);
    let bob = stage.bob.by.person;
    let by = stage.town.now(&stage.town.host).await;
    let link = stage.town.engine.people().make_link(&by, bob, trace()).await.unwrap();
    let to_spend = stage.town.engine.people().make_link(&by, bob, trace()).await.unwrap();
    let at = SignInFor { purpose: Purpose::Browser, name: None };
    let browser = stage.town.engine.people().sign_in_by_link(to_spend.reveal(), at, trace()).await.unwrap();
    stage.ann("POST", &format!("/users/{bob}/disable"), None).await;
    for secret in [&stage.token.token, &stage.bob.token, browser.secret.reveal()] {
        let (status, ..) = stage.town.answer(Some(secret), "GET", "/api/v1/me", None).await;
        assert_eq!(status, 401);
    }
    cut("the stream of facts", facts).await;
    cut("the stream of heads", heads).await;
    stage.nothing_of_bobs_goes_on().await;
    let spend = json!({"link": link.reveal(), "for": "cli"});
    let (status, code, _) = stage.town.answer(None, "POST", "/api/v1/sign-in", Some(&spend)).await;
    same(&(status, code), (401, Some("wrong_sign_in")));
    stage.town.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_becomes_a_viewer_reads_on_and_says_nothing_more() {
    let stage = Stage::new(false).await;
    let facts = stage.facts_stream().await;
    let bob = stage.bob.by.person;
    stage.ann("PATCH", &format!("/users/{bob}"), Some(json!({"role": "viewer"}))).await;
    stage.nothing_of_bobs_goes_on().await;
    same(&stage.bob_reads().await, (200, None));
    let body = json!({"to": {"session": stage.busy.session.to_string()}, "text": "again"});
    let (status, code, _) =
        stage.town.answer(Some(&stage.token.token), "POST", "/api/v1/messages", Some(&body)).await;
    same(&(status, code), (403, Some("not_allowed")));
    assert!(!facts.is_finished(), "what may be read goes on");
    facts.abort();
    stage.town.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_works_once_and_not_for_ever_and_a_token_until_its_time() {
    let stage = Stage::new(false).await;
    let (town, bob) = (&stage.town, stage.bob.by.person);
    let link = async || {
        let path = format!("/api/v1/users/{bob}/link");
        let (status, _, link) = town.answer(Some(&town.host.token), "POST", &path, None).await;
        assert_eq!(status, 200);
        link["path"].as_str().unwrap().strip_prefix("/in/").unwrap().to_owned()
    };
    let spend = async |link: &str| {
        let body = json!({"link": link, "for": "cli"});
        let (status, code, _) = town.answer(None, "POST", "/api/v1/sign-in", Some(&body)).await;
        (status, code)
    };
    let (used, old) = (link().await, link().await);
    same(&spend(&used).await, (200, None));
    same(&spend(&used).await, (401, Some("wrong_sign_in")));
    let until = api::At(town.engine.now().0 + 60_000);
    let body = json!({"name": "for a minute", "rights": ["read"], "expires": until});
    let (status, _, made) = town.answer(Some(&stage.bob.token), "POST", "/api/v1/tokens", Some(&body)).await;
    assert_eq!(status, 200, "{made}");
    let token = made["secret"].as_str().unwrap().to_owned();
    let stage = Stage { token: Somebody { token, by: stage.token.by.clone() }, ..stage };
    let facts = stage.facts_stream().await;
    same(&stage.bob_reads().await, (200, None));
    stage.town.clock.pass(Duration::from_secs(61));
    cut("the stream of facts", facts).await;
    // What is remembered of a credential is forgotten, too.
    let forgotten = async { while stage.bob_reads().await.0 == 200 {} };
    tokio::time::timeout(SOON, forgotten).await.expect("it is good no longer");
    same(&stage.bob_reads().await, UNKNOWN);
    let spend = async |link: &str| {
        let body = json!({"link": link, "for": "cli"});
        let (status, code, _) = stage.town.answer(None, "POST", "/api/v1/sign-in", Some(&body)).await;
        (status, code)
    };
    stage.town.clock.pass(Duration::from_secs(7 * 24 * 60 * 60));
    same(&spend(&old).await, (401, Some("wrong_sign_in")));
    stage.town.close().await;
}

/// A token that somebody found is good until it ends. It must not become a way in that stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_makes_nobody_a_way_in_that_outlasts_it() {
    let town = Town::new(&[]).await;
    let amy = town.person(&town.host, "amy", Role::Admin).await;
    let token = town.token(&amy, Rights::ALL).await;
    let me = format!("/api/v1/users/{}", amy.by.person);
    let wishes = [
        ("PUT", "/api/v1/me/password", json!({"new": "a long enough password"})),
        ("PATCH", me.as_str(), json!({"email": "somebody@else.example"})),
    ];
    for (method, path, body) in &wishes {
        let (status, _, told) = town.answer(Some(&token.token), method, path, Some(body)).await;
        assert_eq!((status, told["code"].as_str()), (403, Some("needs_sign_in")), "{path}");
    }
    let (_, _, me_now) = town.answer(Some(&token.token), "GET", "/api/v1/me", None).await;
    assert_eq!((&me_now["has_password"], &me_now["email"]), (&json!(false), &Value::Null));
    let (_, _, audit) = town.answer(Some(&town.host.token), "GET", "/api/v1/audit?limit=20", None).await;
    let refused: Vec<_> =
        audit["items"].as_array().unwrap().iter().map(|row| row["refused"].clone()).collect();
    assert_eq!(refused.iter().filter(|code| **code == json!("needs_sign_in")).count(), 2, "{audit}");
    // Who has signed in may.
    for (method, path, body) in &wishes {
        let (status, _, told) = town.answer(Some(&amy.token), method, path, Some(body)).await;
        assert_eq!(status, 200, "{path}: {told}");
    }
    town.close().await;
}
