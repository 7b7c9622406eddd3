//! The encrypted door: real certificates, real handshakes, and those who never finish one.

use crate::world::{TOKEN, World};
use api::Problem;
use api::client::{Client, ClientError, FollowItem};
use api::tls::{TlsRefusal, Trust, client_config};
use reqwest::StatusCode;
use server::{ServerConfig, Tls, TlsError, TlsFiles};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;
use testkit::{Authority, Signed};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// However slow the machine is.
const WAIT_MAX: Duration = Duration::from_secs(20);
/// Connections that never finish what they began.
const HALF_OPEN: usize = 1_000;
const LOCAL: &[&str] = &["127.0.0.1", "localhost"];

/// Files of a certificate, and the one of its authority.
struct Papers {
    dir: tempfile::TempDir,
    tls: Tls,
    trust: Trust,
}

impl Papers {
    fn new(names: &[&str]) -> Self {
        let authority = Authority::new();
        Self::of(&authority, &authority.sign(names))
    }

    fn of(authority: &Authority, signed: &Signed) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (certificate, key) = signed.write(dir.path());
        let tls = Tls::open(TlsFiles { certificate, key }).unwrap();
        let trust = Self::trusting(&dir, authority);
        Self { dir, tls, trust }
    }

    fn trusting(dir: &tempfile::TempDir, authority: &Authority) -> Trust {
        let ca = dir.path().join("ca.pem");
        std::fs::write(&ca, authority.pem()).unwrap();
        Trust::Authorities { more: Some(ca) }
    }

    async fn world(&self, set_up: impl FnOnce(&mut ServerConfig)) -> World {
        let with_tls = |config: &mut ServerConfig| {
            config.tls = Some(self.tls.clone());
            set_up(config);
        };
        World::with(Default::default(), with_tls).await
    }

    fn client(&self, world: &World) -> Client {
        Client::trusting(&world.url, TOKEN, self.trust.clone()).unwrap()
    }

    /// A browser's way: no redirects, no cookies kept.
    fn http(&self) -> reqwest::Client {
        let http = reqwest::Client::builder().tls_backend_preconfigured(client_config(&self.trust).unwrap());
        http.no_proxy().redirect(reqwest::redirect::Policy::none()).build().unwrap()
    }

    async fn connect(&self, world: &World) -> TlsStream<TcpStream> {
        let stream = TcpStream::connect(world.host()).await.unwrap();
        let connector = TlsConnector::from(Arc::new(client_config(&self.trust).unwrap()));
        connector.connect("localhost".try_into().unwrap(), stream).await.unwrap()
    }
}

/// Everything until the other side closes, however it does that.
async fn until_closed(mut stream: impl tokio::io::AsyncRead + Unpin) -> Vec<u8> {
    let mut heard = Vec::new();
    let read = tokio::time::timeout(WAIT_MAX, stream.read_to_end(&mut heard));
    let _ = read.await.expect("the server closes it in time");
    heard
}

#[tokio::test]
async fn a_server_with_a_certificate_speaks_https() {
    let papers = Papers::new(&["127.0.0.1", "homing.example"]);
    let world = papers.world(|config| config.allowed_hosts.push("homing.example".into())).await;
    assert!(world.url.starts_with("https://127.0.0.1:") && world.sign_in.starts_with(&world.url));
    assert_eq!(papers.client(&world).me().await.unwrap().handle, "ann");

    let (http, me) = (papers.http(), format!("{}/api/v1/me", world.url));
    let ask = |host: &str| http.get(&me).bearer_auth(TOKEN).header("host", host).send();
    let named = ask("homing.example").await.unwrap();
    assert_eq!(named.headers()["strict-transport-security"], "max-age=31536000");
    // What a browser remembers about these it would hold against everything else on the machine.
    for host in [world.host().to_owned(), world.host().replace("127.0.0.1", "localhost")] {
        let answer = ask(&host).await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        assert!(!answer.headers().contains_key("strict-transport-security"), "{host}");
    }
}

#[tokio::test]
async fn an_encrypted_page_gets_a_cookie_that_only_it_can_set() {
    let papers = Papers::new(LOCAL);
    let world = papers.world(|_| {}).await;
    let http = papers.http();
    let answer = http.post(&world.sign_in).send().await.unwrap();
    let cookie = answer.headers()["set-cookie"].to_str().unwrap().to_owned();
    let port = world.host().rsplit_once(':').unwrap().1;
    assert!(cookie.starts_with(&format!("__Host-homing_{port}=")), "{cookie}");
    for word in ["; Secure", "; HttpOnly", "; SameSite=Strict", "; Path=/"] {
        assert!(cookie.contains(word), "{cookie}");
    }
    assert!(!cookie.contains("Domain"), "{cookie}");

    let cookie = cookie.split(';').next().unwrap();
    let me = |cookie: &str| http.get(format!("{}/api/v1/me", world.url)).header("cookie", cookie);
    assert_eq!(me(cookie).send().await.unwrap().status(), StatusCode::OK);
    let plain = cookie.trim_start_matches("__Host-");
    let answer = me(plain).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::UNAUTHORIZED, "anybody can set one without the prefix");
    let origin = world.url.replace("https://", "http://");
    let answer = me(cookie).header("origin", origin).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::FORBIDDEN, "whoever is in between can write that page");
    let answer = me(cookie).header("origin", &world.url).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_server_that_is_not_believed_is_said_to_be_and_not_asked_again() {
    async fn distrust(papers: &Papers, trust: Trust) -> TlsRefusal {
        let world = papers.world(|_| {}).await;
        let client = Client::trusting(&world.url, TOKEN, trust).unwrap();
        match client.me().await.unwrap_err() {
            ClientError::Untrusted { why, .. } => why,
            other => panic!("{other}"),
        }
    }
    let authority = Authority::new();
    let good = Papers::of(&authority, &authority.sign(LOCAL));
    let strangers = Papers::new(LOCAL);
    assert_eq!(distrust(&strangers, good.trust.clone()).await, TlsRefusal::UnknownIssuer);
    assert_eq!(distrust(&strangers, Trust::Authorities { more: None }).await, TlsRefusal::UnknownIssuer);
    let expired = Papers::of(&authority, &authority.sign_until(LOCAL, 2001));
    assert_eq!(distrust(&expired, good.trust.clone()).await, TlsRefusal::Expired);
    let elsewhere = Papers::of(&authority, &authority.sign(&["homing.example", "192.0.2.1"]));
    let why = distrust(&elsewhere, good.trust.clone()).await;
    assert_eq!(why.to_string(), "its certificate is for homing.example, 192.0.2.1, and not for 127.0.0.1");
    let other = strangers.tls.now().fingerprint();
    assert_eq!(distrust(&good, Trust::Exactly(vec![other])).await, TlsRefusal::Another);
    let authoritys = Papers::of(&authority, authority.own());
    assert_eq!(distrust(&authoritys, good.trust.clone()).await, TlsRefusal::AuthoritysOwn);
    let plain = World::new().await;
    let client = Client::trusting(plain.url.replace("http:", "https:"), TOKEN, good.trust.clone()).unwrap();
    let error = client.me().await.unwrap_err();
    assert!(matches!(error, ClientError::Untrusted { why: TlsRefusal::NotTls, .. }), "{error}");
    assert!(Client::trusting(&plain.url, TOKEN, Trust::Nobodys).unwrap().me().await.is_ok());
}

#[tokio::test]
async fn a_certificate_that_was_written_down_is_good_whatever_its_name() {
    let papers = Papers::new(&["homing.example"]);
    let world = papers.world(|_| {}).await;
    let known = Trust::Exactly(vec![[0; 32], papers.tls.now().fingerprint()]);
    assert_eq!(Client::trusting(&world.url, TOKEN, known).unwrap().me().await.unwrap().handle, "ann");
}

#[tokio::test]
async fn who_comes_unencrypted_is_told_so() {
    let papers = Papers::new(LOCAL);
    let world = papers.world(|_| {}).await;
    let plain = Client::new(world.url.replace("https:", "http:"), TOKEN).unwrap();
    let error = plain.me().await.unwrap_err();
    let problem: &Problem = error.problem().unwrap();
    assert_eq!((problem.status, problem.code.word()), (400, "needs_tls"));
    assert!(problem.hint.contains("https://"));
    for junk in [&b"\x80\x2e\x01\x00\x02"[..], b"SSH-2.0-x\r\n", b"\0"] {
        let answer = world.raw(junk).await;
        assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    }
}

#[tokio::test]
async fn old_versions_of_the_protocol_are_refused() {
    let papers = Papers::new(LOCAL);
    let world = papers.world(|_| {}).await;
    for minor in [1, 2] {
        // A hello of TLS 1.0 or 1.1, with one suite of its time.
        let mut hello = vec![3, minor];
        hello.extend([7; 32]);
        hello.extend([0, 0, 2, 0, 0x2f, 1, 0]);
        let mut message = vec![0x16, 3, 1, 0, hello.len() as u8 + 4, 1, 0, 0, hello.len() as u8];
        message.extend(hello);
        let mut stream = TcpStream::connect(world.host()).await.unwrap();
        stream.write_all(&message).await.unwrap();
        let heard = until_closed(stream).await;
        assert_eq!((heard[0], heard[5]), (0x15, 2), "a fatal alert: {heard:?}");
    }
}

#[tokio::test]
async fn a_new_certificate_is_shown_from_then_on_and_open_streams_go_on() {
    let papers = Papers::new(LOCAL);
    let world = papers.world(|_| {}).await;
    let before = papers.client(&world);
    let made = before.make_session(&Default::default()).await.unwrap();
    let mut follow = before.follow(&made.id, 0);
    assert!(matches!(follow.next().await.unwrap(), FollowItem::Fact(_)));

    assert!(!papers.tls.has_changed());
    let authority = Authority::new();
    let signed = authority.sign(LOCAL);
    signed.write(papers.dir.path());
    assert!(papers.tls.has_changed());
    papers.tls.replace(papers.tls.read_again().unwrap());
    assert!(!papers.tls.has_changed());

    let fresh = papers.client(&world).me().await.unwrap_err();
    assert!(matches!(fresh, ClientError::Untrusted { why: TlsRefusal::UnknownIssuer, .. }), "{fresh}");
    let trust = Papers::trusting(&papers.dir, &authority);
    let after = Client::trusting(&world.url, TOKEN, trust).unwrap();
    after.end(&made.id).await.unwrap();
    let heard = tokio::time::timeout(WAIT_MAX, follow.next()).await.unwrap().unwrap();
    assert!(matches!(heard, FollowItem::Fact(_)), "the stream from before the change goes on: {heard:?}");
}

#[tokio::test]
async fn half_of_a_renewal_changes_nothing_and_a_key_for_everybody_is_refused() {
    let papers = Papers::new(LOCAL);
    let before = papers.tls.now().fingerprint();
    let other = Authority::new().sign(LOCAL);
    let half = Signed { certificate: other.certificate.clone(), key: "nothing".into() };
    let (certificate, key) = half.write(papers.dir.path());
    assert!(matches!(papers.tls.read_again(), Err(TlsError::NotPem { what: "private key", .. })));
    let mixed = Signed { certificate: other.certificate.clone(), key: Authority::new().sign(LOCAL).key };
    mixed.write(papers.dir.path());
    assert!(matches!(papers.tls.read_again(), Err(TlsError::Unusable { .. })));
    other.write(papers.dir.path());
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    let error = papers.tls.read_again().unwrap_err();
    assert!(
        matches!(error, TlsError::Exposed { mode: 0o644, .. }) && error.hint().contains("chmod"),
        "{error}"
    );
    assert_eq!(papers.tls.now().fingerprint(), before);
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o640)).unwrap();
    assert_ne!(papers.tls.read_again().unwrap().fingerprint(), before);
    std::fs::remove_file(&certificate).unwrap();
    assert!(papers.tls.has_changed());
    assert!(matches!(papers.tls.read_again(), Err(TlsError::Unreadable { .. })));
}

#[tokio::test]
async fn a_thousand_who_never_finish_the_handshake_hold_nobody_up() {
    testkit::allow_many_files();
    let papers = Papers::new(LOCAL);
    let world = papers.world(|config| config.handshake_max = Duration::from_secs(3)).await;
    let mut half_open = Vec::new();
    for n in 0..HALF_OPEN {
        let mut stream = TcpStream::connect(world.host()).await.unwrap();
        // Nothing at all, or the beginning of a record that never ends.
        let begun: &[u8] = if n % 2 == 0 { b"" } else { b"\x16\x03\x01\x02\x00\x01" };
        stream.write_all(begun).await.unwrap();
        half_open.push(stream);
    }
    let me = tokio::time::timeout(WAIT_MAX, papers.client(&world).me()).await.unwrap();
    assert_eq!(me.unwrap().handle, "ann");
    for stream in half_open {
        assert!(until_closed(stream).await.is_empty());
    }
}

#[tokio::test]
async fn heads_are_bounded_behind_the_encryption_too() {
    let papers = Papers::new(LOCAL);
    // One has all the time it needs to hear too much, the other to hear too little.
    let patient = papers.world(|_| {}).await;
    let hasty = papers.world(|config| config.head_max = Duration::from_millis(300)).await;
    let host = patient.host();
    let many: String = (0..100).map(|n| format!("X-{n}: y\r\n")).collect();
    for (what, world, request, status) in [
        (
            "long",
            &patient,
            format!("GET / HTTP/1.1\r\nHost: {host}\r\nX: {}\r\n\r\n", "x".repeat(40_000)),
            "431",
        ),
        ("many", &patient, format!("GET / HTTP/1.1\r\nHost: {host}\r\n{many}\r\n"), "431"),
        ("slow", &hasty, format!("GET / HTTP/1.1\r\nHost: {host}"), "408"),
    ] {
        let mut stream = papers.connect(world).await;
        stream.write_all(request.as_bytes()).await.unwrap();
        let heard = String::from_utf8(until_closed(stream).await).unwrap();
        let expected = format!("HTTP/1.1 {status}");
        assert!(heard.starts_with(&expected) || (status == "408" && heard.is_empty()), "{what}: {heard}");
    }
}

#[tokio::test]
async fn a_reader_behind_the_encryption_that_takes_nothing_is_cut_off_too() {
    let papers = Papers::new(LOCAL);
    let world = papers.world(|config| config.stall_max = Duration::from_millis(500)).await;
    let (client, http) = (papers.client(&world), papers.http());
    let made = client.make_session(&Default::default()).await.unwrap();
    let mut stalled = papers.connect(&world).await;
    let (host, id) = (world.host(), &made.id);
    let request = format!(
        "GET /api/v1/sessions/{id}/facts HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {TOKEN}\r\n\
         Accept: text/event-stream\r\n\r\n"
    );
    stalled.write_all(request.as_bytes()).await.unwrap();
    assert_eq!(stalled.read_u8().await.unwrap(), b'H', "the stream is open");
    let text = "!flood 16000000".to_owned();
    let message = api::NewMessage::Text(api::SayText {
        to: api::To::session(id),
        text,
        delivery: None,
        under: None,
        unattended: false,
    });
    // More than the buffers of the system and the ring hold.
    client.say(&message).await.unwrap();
    let open = async || {
        let ask = http.get(format!("{}/metrics", world.url)).bearer_auth(TOKEN);
        !ask.send().await.unwrap().text().await.unwrap().contains("homing_http_streams 0\n")
    };
    for _ in 0..2_000 {
        if !open().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the stalled reader is still there");
}

#[tokio::test]
async fn a_server_that_goes_does_not_wait_for_handshakes() {
    let papers = Papers::new(LOCAL);
    let mut world = papers.world(|config| config.grace = 3 * WAIT_MAX).await;
    let half_open = TcpStream::connect(world.host()).await.unwrap();
    assert_eq!(papers.client(&world).me().await.unwrap().handle, "ann");
    tokio::time::timeout(WAIT_MAX, world.close()).await.expect("before the grace is over");
    drop(half_open);
}
