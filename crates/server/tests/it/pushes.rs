//! Pushes to people's devices, as a push service gets them and as their browser reads them: by a double of a push service on
//! loopback, which the configuration allows, and a library of somebody else's for what only a browser can read.

use crate::town::{SOON, Town};
use crate::world::{Somebody, trace};
use axum::Router;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use kernel::{Grant, Grantee, Request, Role, SessionId, To};
use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use web_push_native::p256::SecretKey;
use web_push_native::p256::elliptic_curve::sec1::ToEncodedPoint;
use web_push_native::{Auth, decrypt};

/// A push as the service got it.
struct Posted {
    browser: String,
    headers: HeaderMap,
    body: Vec<u8>,
}

/// A push service on loopback that says what it is told to say, and else 201.
struct Service {
    url: String,
    answers: Arc<Mutex<VecDeque<Response>>>,
    posted: mpsc::UnboundedReceiver<Posted>,
    served: JoinHandle<()>,
}

type Shared = (Arc<Mutex<VecDeque<Response>>>, mpsc::UnboundedSender<Posted>);

impl Service {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (tell, posted) = mpsc::unbounded_channel();
        let answers = Arc::new(Mutex::new(VecDeque::new()));
        let router = Router::new().route("/to/{browser}", post(take)).with_state((answers.clone(), tell));
        let served = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, answers, posted, served }
    }

    fn answer(&self, status: StatusCode, headers: &[(&'static str, &'static str)]) {
        let headers: HeaderMap =
            headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        self.answers.lock().unwrap().push_back((status, headers).into_response());
    }

    async fn next(&mut self) -> Posted {
        tokio::time::timeout(SOON, self.posted.recv())
            .await
            .expect("it is posted")
            .expect("the service is up")
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.served.abort();
    }
}

async fn take(
    State((answers, tell)): State<Shared>,
    Path(browser): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let _ = tell.send(Posted { browser, headers, body: body.to_vec() });
    let answer = answers.lock().unwrap().pop_front();
    answer.unwrap_or_else(|| StatusCode::CREATED.into_response())
}

/// A browser, with the keys that only it has.
struct Browser {
    name: &'static str,
    secret: SecretKey,
}

const AUTH: [u8; 16] = [9; 16];

impl Browser {
    fn new(name: &'static str) -> Self {
        let mut scalar = [7; 32];
        scalar[..name.len()].copy_from_slice(name.as_bytes());
        Self { name, secret: SecretKey::from_slice(&scalar).unwrap() }
    }

    fn wish(&self, at: &str) -> Value {
        let public = self.secret.public_key().to_encoded_point(false);
        let keys = json!({ "p256dh": base64(public.as_bytes()), "auth": base64(&AUTH) });
        json!({ "endpoint": format!("{at}/to/{}", self.name), "keys": keys })
    }

    async fn ask(&self, town: &Town, who: &Somebody, service: &Service) {
        let (status, code, _) =
            town.answer(Some(&who.token), "PUT", "/api/v1/me/pushes", Some(&self.wish(&service.url))).await;
        assert_eq!((status, code), (200, None));
    }

    /// The words of a push that is for this browser.
    fn read(&self, posted: &Posted) -> Value {
        assert_eq!(posted.browser, self.name);
        let plain = decrypt(posted.body.clone(), &self.secret, &Auth::clone_from_slice(&AUTH)).unwrap();
        serde_json::from_slice(&plain).unwrap()
    }
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::prelude::BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

fn from_base64(text: &str) -> Vec<u8> {
    use base64::Engine as _;
    base64::prelude::BASE64_URL_SAFE_NO_PAD.decode(text).unwrap()
}

fn header<'a>(posted: &'a Posted, name: &str) -> &'a str {
    posted.headers.get(name).unwrap_or_else(|| panic!("no {name}")).to_str().unwrap()
}

async fn pushes(town: &Town, who: &Somebody) -> Value {
    let (status, _, answer) = town.answer(Some(&who.token), "GET", "/api/v1/me/pushes", None).await;
    assert_eq!(status, 200);
    answer
}

/// A turn of theirs that is over: the next thing that they are told, if nothing comes before it.
async fn finish(town: &Town, who: &Somebody) -> SessionId {
    let (session, message) = town.say(who, To::New, "hello").await;
    town.engine.views().receipt_within(&town.now(who).await, message, SOON).await.unwrap();
    session
}

#[tokio::test]
async fn a_question_is_told_to_its_browser_alone_and_replaced_by_who_answered() {
    let town = Town::new(&[]).await;
    let ann = town.host.clone();
    let eve = town.person(&ann, "eve", Role::Member).await;
    let mut service = Service::start().await;
    let (phone, laptop) = (Browser::new("phone"), Browser::new("laptop"));
    phone.ask(&town, &ann, &service).await;
    laptop.ask(&town, &eve, &service).await;
    let busy = town.busy(&ann, None).await;
    town.give(&ann, busy.session, Grantee::Person(eve.by.person), Grant::Prompt).await;

    let asks = service.next().await;
    let told = phone.read(&asks);
    assert_eq!((&told["kind"], &told["session"]), (&json!("asks"), &json!(busy.session.to_string())));
    assert_eq!((&told["title"], &told["version"]), (&Value::Null, &json!(1)), "its first words are no title");
    assert_eq!(told["agent"], json!("scripted"));
    let known = ["version", "kind", "session", "title", "agent", "tool", "open"];
    assert!(told.as_object().unwrap().keys().all(|key| known.contains(&key.as_str())), "{told}");
    assert!(decrypt(asks.body.clone(), &laptop.secret, &Auth::clone_from_slice(&AUTH)).is_err());
    assert_eq!((header(&asks, "content-encoding"), header(&asks, "urgency")), ("aes128gcm", "high"));
    let ttl: u64 = header(&asks, "ttl").parse().unwrap();
    assert!((1..=24 * 60 * 60).contains(&ttl), "{ttl}");

    // Signed by the key that the browser was given, for this service.
    let public = from_base64(pushes(&town, &ann).await["public_key"].as_str().unwrap());
    let signed = header(&asks, "authorization").strip_prefix("vapid t=").unwrap();
    let (token, key) = signed.split_once(", k=").unwrap();
    assert_eq!(from_base64(key), public);
    let (said, signature) = token.rsplit_once('.').unwrap();
    let believed = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, &public);
    believed.verify(said.as_bytes(), &from_base64(signature)).unwrap();
    let claims: Value = serde_json::from_slice(&from_base64(said.split_once('.').unwrap().1)).unwrap();
    assert_eq!(claims["aud"], json!(service.url));

    let path = format!("/api/v1/approvals/{}", busy.asks);
    let (status, code, _) =
        town.answer(Some(&eve.token), "POST", &path, Some(&json!({ "answer": "yes" }))).await;
    assert_eq!((status, code), (200, None));
    let settled = service.next().await;
    let told = phone.read(&settled);
    assert!(told["kind"] == "settled" || told["kind"] == "ended", "{told}");
    assert_eq!((&told["by"], &told["open"]), (&json!("eve"), &json!(0)));
    assert_eq!(header(&settled, "topic"), header(&asks, "topic"), "it replaces the question");
    assert_eq!(header(&asks, "topic").len(), 32, "as long as a topic may be");
    assert!(!header(&asks, "topic").contains(&busy.session.to_string()[4..]));
    town.close().await;
}

#[tokio::test]
async fn the_end_of_a_turn_is_told_with_the_name_that_a_person_gave() {
    let town = Town::new(&[]).await;
    let ann = town.host.clone();
    let mut service = Service::start().await;
    let phone = Browser::new("phone");
    phone.ask(&town, &ann, &service).await;
    let session = finish(&town, &ann).await;
    let told = phone.read(&service.next().await);
    assert_eq!(
        (&told["kind"], &told["outcome"], &told["title"]),
        (&json!("ended"), &json!("answered"), &Value::Null)
    );
    assert!(!told.to_string().contains("hello"), "{told}");

    let named = json!({ "title": "Mending\u{202e} the  roof" });
    let path = format!("/api/v1/sessions/{session}");
    let (status, code, _) = town.answer(Some(&ann.token), "PATCH", &path, Some(&named)).await;
    assert_eq!((status, code), (200, None));
    town.say(&ann, To::Session(session), "again").await;
    let told = phone.read(&service.next().await);
    assert_eq!(told["title"], json!("Mending the roof"));
    town.close().await;
}

#[tokio::test]
async fn nothing_is_told_to_whoever_may_not_know_it_any_more_or_did_it_themselves() {
    let town = Town::new(&[]).await;
    let ann = town.host.clone();
    let eve = town.person(&ann, "eve", Role::Member).await;
    let mut service = Service::start().await;
    let laptop = Browser::new("laptop");
    laptop.ask(&town, &eve, &service).await;
    let (session, first) = town.say(&ann, To::New, "hello").await;
    town.engine.views().receipt_within(&town.now(&ann).await, first, SOON).await.unwrap();
    town.give(&ann, session, Grantee::Person(eve.by.person), Grant::Prompt).await;
    // Her question is asked; before she is told, it is not hers to see any more.
    town.say(&eve, To::Session(session), "!ask tool").await;
    town.fact(&ann, session, |fact| matches!(fact, kernel::Fact::Asked { .. })).await;
    let on = engine::Resource::Session(session);
    let by = town.now(&ann).await;
    town.engine.people().take_back(&by, on, Grantee::Person(eve.by.person), trace()).await.unwrap();

    // And what she stops herself is no news to her: its question lapses before she is told of it.
    let busy = town.busy(&eve, None).await;
    let by = town.now(&eve).await;
    town.engine.way_in().ask(&by, Request::Stop { message: busy.runs }, trace()).await.unwrap();
    town.fact(&eve, busy.session, |fact| matches!(fact, kernel::Fact::TurnEnded { .. })).await;

    let later = finish(&town, &eve).await;
    let told = laptop.read(&service.next().await);
    assert_eq!((&told["session"], &told["kind"]), (&json!(later.to_string()), &json!("ended")), "{told}");

    // Whoever signs out is told nothing from then on, nor what happened just before.
    finish(&town, &eve).await;
    let (status, ..) = town.answer(Some(&eve.token), "POST", "/api/v1/sign-out", None).await;
    assert!(status < 300, "{status}");
    let phone = Browser::new("phone");
    phone.ask(&town, &ann, &service).await;
    let mine = finish(&town, &ann).await;
    assert_eq!(phone.read(&service.next().await)["session"], json!(mine.to_string()));
    town.close().await;
}

#[tokio::test]
async fn a_browser_that_is_gone_is_forgotten_and_a_busy_service_is_asked_again() {
    let town = Town::new(&[]).await;
    let ann = town.host.clone();
    let mut service = Service::start().await;
    let phone = Browser::new("phone");
    phone.ask(&town, &ann, &service).await;
    service.answer(StatusCode::TOO_MANY_REQUESTS, &[("retry-after", "1")]);
    let session = finish(&town, &ann).await;
    let (first, second) = (service.next().await, service.next().await);
    for posted in [&first, &second] {
        assert_eq!(phone.read(posted)["session"], json!(session.to_string()));
    }
    assert_ne!(first.body, second.body, "encrypted anew");

    // Nobody is followed anywhere, and nothing is concluded from that.
    service.answer(StatusCode::TEMPORARY_REDIRECT, &[("location", "/to/elsewhere")]);
    finish(&town, &ann).await;
    phone.read(&service.next().await);
    service.answer(StatusCode::GONE, &[]);
    let last = finish(&town, &ann).await;
    assert_eq!(
        phone.read(&service.next().await)["session"],
        json!(last.to_string()),
        "and nothing before it"
    );
    let forgotten = async {
        while pushes(&town, &ann).await["items"] != json!([]) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(SOON, forgotten).await.expect("it is forgotten");
    town.close().await;
}

#[tokio::test]
async fn only_a_public_push_service_is_taken_unless_the_configuration_names_it() {
    let town = Town::new(&[]).await;
    let ann = town.host.clone();
    let phone = Browser::new("phone");
    for private in [
        "https://10.0.0.1",
        "https://[::1]",
        "https://localhost",
        "https://169.254.169.254",
        "https://[fd00::1]",
        "http://push.example",
        "https://push.example:22",
    ] {
        let (status, code, answer) =
            town.answer(Some(&ann.token), "PUT", "/api/v1/me/pushes", Some(&phone.wish(private))).await;
        assert_eq!((status, code.as_deref()), (422, Some("invalid")), "{private}");
        assert_eq!(answer["field"], json!("endpoint"), "{private}");
    }
    let mut short = phone.wish("https://push.example");
    short["keys"]["auth"] = json!("AAAA");
    let (status, _, answer) = town.answer(Some(&ann.token), "PUT", "/api/v1/me/pushes", Some(&short)).await;
    assert_eq!((status, &answer["field"]), (422, &json!("keys.auth")));
    assert_eq!(pushes(&town, &ann).await["items"], json!([]));

    // What is fine is shown without its address, and is one's own.
    let (status, _, made) = town
        .answer(Some(&ann.token), "PUT", "/api/v1/me/pushes", Some(&phone.wish("https://push.example")))
        .await;
    assert_eq!((status, &made["service"], &made["here"]), (200, &json!("push.example"), &json!(true)));
    let eve = town.person(&ann, "eve", Role::Member).await;
    assert_eq!(pushes(&town, &eve).await["items"], json!([]));
    let path = format!("/api/v1/me/pushes/{}", made["id"].as_str().unwrap());
    assert_eq!(
        town.answer(Some(&eve.token), "DELETE", &path, None).await.0,
        200,
        "fine, and nothing happens"
    );
    assert_eq!(pushes(&town, &ann).await["items"], json!([made]));
    assert_eq!(town.answer(Some(&ann.token), "DELETE", &path, None).await.0, 200);
    assert_eq!(pushes(&town, &ann).await["items"], json!([]));
    town.close().await;
}
