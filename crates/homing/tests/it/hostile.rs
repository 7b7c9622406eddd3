//! Bad input that no generator makes from the contract: bytes that are hardly HTTP, bodies that lie about their length,
//! names that are not ours, credentials where they do not belong.
//!
//! Every case is one connection to the real binary. Each is refused with the status and the code it deserves, leaves
//! every table but the audit as it was, and leaves the server as well as before. Where the code is empty, the HTTP layer
//! below us has answered: it has no words of ours, and what it refuses never reaches us.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags, types::ValueRef};
use testkit::{Homing, Http, WAIT_MAX, eventually};

use crate::homing;

const SAY: &str = "/api/v1/messages";
const GOOD: &str = r#"{"to":{"new":{}},"text":"x"}"#;
const NOBODY: &str = "msg_00000000000000000000zzzzzz";
const NOWHERE: &str = "ses_00000000000000000000zzzzzz";
/// The HTTP layer's own word: none.
const ITS: &str = "";

#[test]
fn bytes_that_are_hardly_http() {
    let it = Hostile::new();
    let get = |path: &[u8]| [b"GET ", path, b" HTTP/1.1\r\n", it.head().as_bytes(), b"\r\n"].concat();
    let with =
        |header: &[u8]| [b"GET /api/v1/me HTTP/1.1\r\n", it.head().as_bytes(), header, b"\r\n\r\n"].concat();
    it.refuses(&[
        ("no UTF-8 in the path", get(b"/api/v1/sessions/\xff\xfe"), 400, ITS),
        ("UTF-8 in the path", get("/api/v1/sessions/é".as_bytes()), 404, "not_found"),
        ("no UTF-8 in the path, escaped", get(b"/api/v1/sessions/%ff%fe"), 404, "not_found"),
        ("NUL in the path", get(b"/api/v1/sessions/\0"), 400, ITS),
        ("NUL in the path, escaped", get(b"/api/v1/sessions/%00"), 404, "not_found"),
        ("a blank in the path", get(b"/api/v1/ses sions"), 400, ITS),
        ("a backslash for a slash", get(b"\\api\\v1\\me"), 400, ITS),
        ("a code that is no text", get(b"/in/%FF"), 410, ITS),
        ("a method that nobody has", with(b"X: y").replace_first(b"GET", b"BREW"), 405, "method_not_allowed"),
        ("a method in small letters", with(b"X: y").replace_first(b"GET", b"get"), 405, "method_not_allowed"),
        ("everything", get(b"*").replace_first(b"GET", b"OPTIONS"), 404, "no_such_path"),
        ("a tunnel", get(b"evil.example:443").replace_first(b"GET", b"CONNECT"), 421, "bad_host"),
        ("HTTP/0.9", b"GET /api/v1/me\r\n\r\n".to_vec(), 400, ITS),
        ("HTTP/9.9", get(b"/api/v1/me").replace_first(b"HTTP/1.1", b"HTTP/9.9"), 400, ITS),
        ("TLS", [&b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03"[..], &[0; 160]].concat(), 400, ITS),
        ("a header without a colon", with(b"nonsense"), 400, ITS),
        ("a header with a blank before the colon", with(b"X-A : b"), 400, ITS),
        ("a header over two lines", with(b"X-A: b\r\n c"), 400, ITS),
        ("NUL in a header", with(b"X-A: a\0b"), 400, ITS),
        ("no ASCII in a header's name", with(b"X-\xff: a"), 400, ITS),
    ]);
}

#[test]
fn bodies_that_are_not_what_they_say() {
    let it = Hostile::new();
    let framed = |frame: &str, body: &[u8]| it.post(SAY, frame, body);
    let long = format!("Content-Length: {}", GOOD.len() + 3);
    for (frame, body) in [
        (long.as_str(), GOOD.as_bytes()),
        ("Transfer-Encoding: chunked", b"5\r\n{\"to\"".as_slice()),
        ("Transfer-Encoding: chunked", b"1c\r\n{\"to\":{\"new\":{}},\"text\":\"x\"}\r\n"),
    ] {
        it.refuses_half(&[("breaks off", framed(frame, body), 408, "too_slow")]);
    }
    for length in ["-1", "abc", "1e3", "+28", "0x1c", "28, 29", "99999999999999999999999999", ""] {
        let frame = format!("Content-Length: {length}");
        it.refuses(&[(&frame, framed(&frame, GOOD.as_bytes()), 400, ITS)]);
    }
    for coding in ["gzip", "xchunked", "chunked, gzip", "identity", "chunked\r\nTransfer-Encoding: x"] {
        let frame = format!("Transfer-Encoding: {coding}");
        it.refuses(&[(&frame, framed(&frame, b"5\r\nabcde\r\n0\r\n\r\n"), 400, ITS)]);
    }
    let old =
        framed("Transfer-Encoding: chunked", b"1c\r\n{\"to\":{\"new\":{}},\"text\":\"x\"}\r\n0\r\n\r\n");
    let endless = [b"5;", "x".repeat(20_000).as_bytes(), b"\r\nabcde\r\n0\r\n\r\n"].concat();
    let trailing = [b"0\r\nX: ", "y".repeat(20_000).as_bytes(), b"\r\n\r\n"].concat();
    it.refuses(&[
        ("no length at all", framed("X: y", GOOD.as_bytes()), 400, "bad_json"),
        ("two lengths", framed("Content-Length: 28\r\nContent-Length: 5", GOOD.as_bytes()), 400, ITS),
        ("a length that is too short", framed("Content-Length: 5", GOOD.as_bytes()), 400, "bad_json"),
        ("chunks in HTTP/1.0", old.replace_first(b"HTTP/1.1", b"HTTP/1.0"), 400, ITS),
        (
            "a coding we do not undo",
            framed("Transfer-Encoding: gzip, chunked", b"2\r\n{}\r\n0\r\n\r\n"),
            422,
            "invalid",
        ),
    ]);
    for chunks in [
        b"zz\r\n".as_slice(),
        b"-1\r\n",
        b"ffffffffffffffffff\r\n",
        b"5\r\nabcdeXX0\r\n\r\n",
        &endless,
        &trailing,
    ] {
        it.refuses(&[("chunks of nonsense", framed("Transfer-Encoding: chunked", chunks), 408, "too_slow")]);
    }
    it.refuses(&[
        ("no UTF-8", it.say(b"{\"to\":{\"new\":{}},\"text\":\"\xff\"}"), 400, "bad_json"),
        (
            "UTF-16",
            it.say(&GOOD.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>()),
            400,
            "bad_json",
        ),
        ("a byte order mark", it.say(&[b"\xef\xbb\xbf", GOOD.as_bytes()].concat()), 400, "bad_json"),
        ("NUL", it.say(b"{\"to\":{\"new\":{}},\"text\":\"a\0b\"}"), 400, "bad_json"),
        ("half a pair", it.say(br#"{"to":{"new":{}},"text":"\ud800"}"#), 400, "bad_json"),
        ("twice", it.say([GOOD, GOOD].concat().as_bytes()), 400, "bad_json"),
    ]);
}

/// A front that believes the length and a server that believes the chunks, or the other way round, disagree about where
/// a request ends. Whatever comes after the first answer is not a request: the connection ends there.
#[test]
fn no_request_is_smuggled_behind_another() {
    let it = Hostile::new();
    let inner = format!(
        "POST {SAY} HTTP/1.1\r\n{}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{GOOD}",
        it.head(),
        GOOD.len()
    );
    let kept_alive = it.head().replace("Connection: close\r\n", "");
    let outer = |frame: &str, body: &str| {
        let head = format!("POST {SAY} HTTP/1.1\r\n{kept_alive}Content-Type: application/json\r\n");
        format!("{head}{frame}\r\n\r\n{body}{inner}").into_bytes()
    };
    let length = 5 + inner.len();
    let both = format!("Content-Length: {length}\r\nTransfer-Encoding: chunked");
    let swapped = format!("Transfer-Encoding: chunked\r\nContent-Length: {length}");
    let hidden = format!("Content-Length: {length}\r\nTransfer-Encoding : chunked");
    let folded = format!("Content-Length: {length}\r\nTransfer-Encoding:\r\n chunked");
    it.refuses(&[
        ("length, then chunks", outer(&both, "0\r\n\r\n"), 400, "bad_json"),
        ("chunks, then length", outer(&swapped, "0\r\n\r\n"), 400, "bad_json"),
        ("chunks behind a blank", outer(&hidden, "0\r\n\r\n"), 400, ITS),
        ("chunks on the next line", outer(&folded, "0\r\n\r\n"), 400, ITS),
    ]);
}

#[test]
fn more_of_everything_than_there_may_be() {
    let it = Hostile::new();
    let get =
        |path: &str, headers: &str| format!("GET {path} HTTP/1.1\r\n{}{headers}\r\n", it.head()).into_bytes();
    let many = |count: usize| (0..count).map(|index| format!("X-{index}: y\r\n")).collect::<String>();
    let say = |length: usize| {
        it.say(format!(r#"{{"to":{{"new":{{}}}},"text":"{}"}}"#, "x".repeat(length)).as_bytes())
    };
    let id = |length: usize| format!("/api/v1/sessions/{}", "a".repeat(length));
    let me = "/api/v1/me";
    it.refuses(&[
        ("100 headers", get(me, &many(100)), 431, ITS),
        ("100,000 headers", get(me, &many(100_000)), 431, ITS),
        ("a header of a megabyte", get(me, &format!("X: {}\r\n", "y".repeat(1_000_000))), 431, ITS),
        ("an id of 4,000 letters", get(&id(4_000), ""), 404, "not_found"),
        ("an id of 100,000 letters", get(&id(100_000), ""), 431, ITS),
        ("one byte more than a text may have", say(1_048_577), 422, "invalid"),
        ("two megabytes of text", say(2_000_000), 422, "invalid"),
        ("nine megabytes", say(9_000_000), 413, "too_large"),
    ]);
    it.refuses_half(&[
        (
            "a terabyte, it says",
            it.post(SAY, "Content-Length: 1000000000000", &vec![b'x'; 9_000_000]),
            413,
            "too_large",
        ),
        (
            "a chunk of a terabyte, it says",
            it.post(
                SAY,
                "Transfer-Encoding: chunked",
                &[b"e8d4a51000\r\n", vec![b'x'; 9_000_000].as_slice()].concat(),
            ),
            413,
            "too_large",
        ),
    ]);
}

#[test]
fn json_that_goes_too_far() {
    let it = Hostile::new();
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let say = |body: &str| it.say(body.as_bytes());
    it.refuses(&[
        ("10,000 arrays", say(&deep), 422, "invalid"),
        (
            "10,000 arrays for a text",
            say(&format!(r#"{{"to":{{"new":{{}}}},"text":{deep}}}"#)),
            422,
            "invalid",
        ),
        ("10,000 arrays nobody asked for", say(&format!(r#"{{"x":{deep}}}"#)), 422, "invalid"),
        (
            "10,000 objects",
            say(&format!("{}1{}", r#"{"to":"#.repeat(10_000), "}".repeat(10_000))),
            422,
            "invalid",
        ),
        ("a field twice", say(r#"{"to":{"new":{}},"text":"x","text":"y"}"#), 422, "invalid"),
        (
            "a field twice, once in disguise",
            say(r#"{"to":{"new":{}},"text":"x","te\u0078t":"y"}"#),
            422,
            "invalid",
        ),
        ("two places", say(r#"{"to":{"new":{},"conversation":"api:a/b"},"text":"x"}"#), 422, "invalid"),
        ("a place twice", say(r#"{"to":{"new":{},"new":{}},"text":"x"}"#), 422, "invalid"),
        ("no place", say(r#"{"to":{},"text":"x"}"#), 422, "invalid"),
        ("a place in capitals", say(r#"{"to":{"NEW":{}},"text":"x"}"#), 422, "invalid"),
        ("NUL in a directory", say(r#"{"to":{"new":{"directory":"/\u0000"}},"text":"x"}"#), 422, "invalid"),
        (
            "a directory that is none",
            say(r#"{"to":{"new":{"directory":"/proc/self/mem"}},"text":"x"}"#),
            403,
            "directory_not_yours",
        ),
        (
            "a terminal's command in a title",
            say(r#"{"to":{"new":{"title":"\u001b[2J"}},"text":"x"}"#),
            422,
            "invalid",
        ),
        ("an option for an agent", say(r#"{"to":{"new":{"agent":"--help"}},"text":"x"}"#), 422, "invalid"),
        ("a path for an agent", say(r#"{"to":{"new":{"agent":"../agent"}},"text":"x"}"#), 422, "invalid"),
        (
            "an id of 100,000 letters",
            say(&format!(r#"{{"to":{{"session":"{}"}},"text":"x"}}"#, "s".repeat(100_000))),
            422,
            "invalid",
        ),
        (
            "an id in capitals",
            say(&format!(r#"{{"to":{{"session":"{}"}},"text":"x"}}"#, NOWHERE.to_uppercase())),
            422,
            "invalid",
        ),
        (
            "an id of another kind",
            say(&format!(r#"{{"to":{{"session":"{NOBODY}"}},"text":"x"}}"#)),
            422,
            "invalid",
        ),
        (
            "an id of nobody",
            say(&format!(r#"{{"to":{{"session":"{NOWHERE}"}},"text":"x"}}"#)),
            404,
            "not_found",
        ),
    ]);
}

#[test]
fn numbers_out_of_range() {
    let it = Hostile::new();
    let revision = |number: &str| {
        let body = format!(r#"{{"text":"x","revision":{number}}}"#);
        let length = format!("Content-Length: {}", body.len());
        it.post(&format!("{SAY}/{NOBODY}"), &length, body.as_bytes()).replace_first(b"POST", b"PATCH")
    };
    for number in
        ["-1", "4294967296", "18446744073709551616", "1.5", "1e300", r#""0""#, "true", "null", "[0]"]
    {
        it.refuses(&[(number, revision(number), 422, "invalid")]);
    }
    for number in ["1e400", "-1e400", "NaN", "Infinity", "01", "0x1", &"9".repeat(5_000)] {
        it.refuses(&[(number, revision(number), 400, "bad_json")]);
    }
    for query in [
        "after=-1",
        "after=1e400",
        "after=9007199254740992",
        "after=18446744073709551616",
        "after=",
        "after=%00",
        "after=%FF",
        "after=0x1",
        "after=1&after=2",
        "after[]=1",
        "%61fter=-1",
        "limit=0",
        "limit=-1",
        "limit=501",
        "limit=99999999999999999999",
        "&&&=",
        ";after=1",
    ] {
        let path = format!("/api/v1/sessions/{NOWHERE}/facts?{query}");
        it.refuses(&[(query, it.get(&path, ""), 422, "invalid")]);
    }
    for last in ["-1", "+1", "1e3", "99999999999999999999", "x", "", "\u{661}"] {
        let headers = format!("Accept: text/event-stream\r\nLast-Event-ID: {last}\r\n");
        let path = format!("/api/v1/sessions/{NOWHERE}/facts");
        it.refuses(&[(last, it.get(&path, &headers), 422, "invalid")]);
    }
}

/// DNS rebinding and its cousins: whoever calls us by another name was sent by another site.
#[test]
fn only_our_own_name_is_ours() {
    let it = Hostile::new();
    let (host, port) = (it.http.host.clone(), it.port().to_owned());
    let called = |hosts: &[String], more: &str| {
        let hosts: String = hosts.iter().map(|host| format!("Host: {host}\r\n")).collect();
        let token = &it.http.token;
        format!("GET /api/v1/me HTTP/1.1\r\n{hosts}Authorization: Bearer {token}\r\nConnection: close\r\n{more}\r\n")
            .into_bytes()
    };
    it.refuses(&[("no name", called(&[], ""), 421, "bad_host")]);
    for name in [
        String::new(),
        "evil.example".into(),
        format!("evil.example:{port}"),
        format!("localhost.:{port}"),
        format!("localhost.evil.example:{port}"),
        format!("2130706433:{port}"),
        format!("127.1:{port}"),
        format!("0x7f.1:{port}"),
        format!("[::ffff:127.0.0.1]:{port}"),
        "127.0.0.1".into(),
        format!("127.0.0.1:0{port}"),
        format!("{host}@evil.example"),
        format!("evil@{host}"),
        format!("{host}/x"),
        format!("{host},evil.example"),
    ] {
        it.refuses(&[(&name, called(std::slice::from_ref(&name), ""), 421, "bad_host")]);
    }
    let forwarded = format!("X-Forwarded-Host: {host}\r\nForwarded: host={host}\r\n");
    let absolute = it.get("http://evil.example/api/v1/me", "");
    let disguised = it.get(&format!("http://{host}@evil.example/api/v1/me"), "");
    it.refuses(&[
        ("ours, twice", called(&[host.clone(), host.clone()], ""), 421, "bad_host"),
        ("ours, and another", called(&[host.clone(), "evil.example".into()], ""), 421, "bad_host"),
        ("ours, says a header", called(&["evil.example".into()], &forwarded), 421, "bad_host"),
        ("ours in the header, another in the line", absolute, 421, "bad_host"),
        ("ours as the user of another", disguised, 421, "bad_host"),
    ]);
    for origin in [
        "null".to_owned(),
        String::new(),
        "http://evil.example".into(),
        format!("http://{host}.evil.example"),
        format!("http://evil@{host}"),
        format!("http://{host}/"),
        "http://127.0.0.1:1".into(),
        format!("file://{host}"),
        format!("http://{host}\r\nOrigin: http://evil.example"),
    ] {
        let request = it.get("/api/v1/me", &format!("Origin: {origin}\r\n"));
        it.refuses(&[(&origin, request, 403, "bad_origin")]);
    }
}

#[test]
fn credentials_where_they_do_not_belong() {
    let it = Hostile::new();
    let (host, token, port) = (&it.http.host, &it.http.token, it.port());
    let bare = |path: &str, headers: &str| {
        format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n").into_bytes()
    };
    let good = format!("Authorization: Bearer {token}\r\n");
    for name in ["token", "access_token", "bearer", "Authorization", "x=1&API_KEY", "%74oken"] {
        let path = format!("/api/v1/me?{name}={token}");
        it.refuses(&[
            (name, bare(&path, ""), 400, "token_in_query"),
            (name, bare(&path, &good), 400, "token_in_query"),
        ]);
    }
    for value in [
        String::new(),
        "Bearer".into(),
        "Bearer ".into(),
        token.clone(),
        format!("Basic {token}"),
        format!("Bearer\t{token}"),
        format!("Bearer {token}x"),
        format!("Bearer {}", &token[..token.len() - 1]),
        format!("Bearer {}", token.to_uppercase()),
        format!("Bearer {token} {token}"),
        format!("Bearer \u{feff}{token}"),
        format!("Bearer x\r\nAuthorization: Bearer {token}"),
        format!("Bearer {token}\r\nAuthorization: Bearer x"),
        format!("Bearer {token}\r\nAuthorization: Bearer {token}"),
        format!("Bearer x\r\nCookie: homing_{port}={token}"),
    ] {
        let request = bare("/api/v1/me", &format!("Authorization: {value}\r\n"));
        it.refuses(&[(&value, request, 401, "unauthenticated")]);
    }
    // The browser's cookie is as good as a token, but only from our own page: it is sent by itself.
    let cookie = format!("Cookie: homing_{port}={token}\r\n");
    let change = |from: &str| {
        let length = GOOD.len();
        format!(
            "POST {SAY} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{cookie}{from}\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{GOOD}"
        )
        .into_bytes()
    };
    let elsewhere = cookie.replace(port, "1");
    it.refuses(&[
        ("a cookie from nowhere", change(""), 403, "bad_origin"),
        ("a cookie from a file", change("Origin: null\r\n"), 403, "bad_origin"),
        ("a cookie from another port", change("Origin: http://127.0.0.1:1\r\n"), 403, "bad_origin"),
        ("a cookie from the same site", change("Sec-Fetch-Site: same-site\r\n"), 403, "bad_origin"),
        (
            "a cookie from two sites",
            change("Sec-Fetch-Site: cross-site\r\nSec-Fetch-Site: same-origin\r\n"),
            403,
            "bad_origin",
        ),
        (
            "a read from another site",
            bare("/api/v1/me", &format!("{cookie}Sec-Fetch-Site: cross-site\r\n")),
            403,
            "bad_origin",
        ),
        ("another server's cookie", bare("/api/v1/me", &elsewhere), 401, "unauthenticated"),
    ]);
}

#[test]
fn paths_that_lead_elsewhere() {
    let it = Hostile::new();
    for path in [
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/page.js/../api/v1/me",
        "/page.js%2f..%2ftoken",
        "/token",
        "/homing.db",
        "//api/v1/me",
        "/api/v1/../v1/me",
        "/api/v1/me/",
        "/api/v1/me%00",
        "/api/v1/%6de",
        "/API/V1/me",
        "/api/v1/me;x=1",
        "/in/",
    ] {
        it.refuses(&[(path, it.get(path, ""), 404, "no_such_path")]);
    }
    // What is open is open by its own name only.
    let host = &it.http.host;
    for path in ["//api/v1/me", "/healthz/../api/v1/me", "/healthz%2f../api/v1/me", "/page.js/../api/v1/me"] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        it.refuses(&[(path, request.into_bytes(), 401, "unauthenticated")]);
    }
}

#[test]
fn keys_that_are_none() {
    let it = Hostile::new();
    let length = format!("Content-Length: {}", GOOD.len());
    let long = "k".repeat(256);
    for key in [
        b"".as_slice(),
        b"two words",
        b"a\tb",
        b"\xff",
        "é".as_bytes(),
        long.as_bytes(),
        b"a\r\nIdempotency-Key: b",
    ] {
        let frame = [length.as_bytes(), b"\r\nIdempotency-Key: ", key].concat();
        let request = it.post_bytes(SAY, &frame, GOOD.as_bytes());
        it.refuses(&[(&String::from_utf8_lossy(key), request, 422, "invalid")]);
    }
}

#[test]
fn addresses_of_others_and_of_nobody() {
    let it = Hostile::new();
    let me = it.http.get("/api/v1/me").expect(200);
    let handle = me["handle"].as_str().expect("a person has a handle").to_owned();
    let say = |address: &str| {
        it.say(serde_json::json!({"to": {"conversation": address}, "text": "x"}).to_string().as_bytes())
    };
    for address in [
        "web:somebody/1".to_owned(),
        "cli:here/somebody/%2Ftmp".into(),
        format!("web:{handle}%20/1"),
        format!("web:{handle}%00/1"),
        format!("web:%20{handle}/1"),
        format!("web:{handle}%2F..%2Fsomebody/1"),
        format!("web:{handle}%E2%80%8B/1"),
        "web:./1".into(),
        "slack:T/C/1.5".into(),
        "schedule:nightly".into(),
        format!("smtp:{handle}/1"),
        format!("cli:{handle}/../{handle}"),
    ] {
        it.refuses(&[(&address, say(&address), 403, "address_not_yours")]);
        let explain = it.get(&format!("/api/v1/route?conversation={}", address.replace('%', "%25")), "");
        it.refuses(&[(&address, explain, 403, "address_not_yours")]);
    }
    for address in [
        format!("web:{handle}/1/2"),
        format!("web:%{:02X}{}/1", handle.as_bytes()[0], &handle[1..]),
        format!("web:{handle}"),
        format!("WEB:{handle}/1"),
        format!(" web:{handle}/1"),
        format!("web:{handle}/1\n"),
        format!("web://{handle}/1"),
        format!("web:{handle}//1"),
        "web:/1".into(),
        ":".into(),
        "api:a/%".into(),
        "api:a/%2f".into(),
        "api:a/%C0%AF".into(),
        "api:a/%ED%A0%80".into(),
        "api:a/\0".into(),
        "api:a/\u{202e}".into(),
        format!("api:a/{}", "b".repeat(1_025)),
        format!("api:a/{}", "%C3%A9".repeat(513)),
        format!("api:{}", "a/".repeat(5_000)),
    ] {
        it.refuses(&[(&address, say(&address), 422, "bad_address")]);
    }
}

/// Many who say a little and then nothing cost the others nothing.
#[test]
fn who_dawdles_holds_nobody_up() {
    let it = Hostile::new();
    let (head, before) = (it.head(), it.tables());
    let body = format!(
        "POST {SAY} HTTP/1.1\r\n{head}Content-Type: application/json\r\nContent-Length: 28\r\n\r\n{{"
    );
    let dawdlers: Vec<TcpStream> = (0..200)
        .map(|index| {
            let mut stream = TcpStream::connect(&it.http.host).expect("a connection");
            let said = if index % 2 == 0 { "GET /api/v1/me HTTP/1.1\r\nHost:" } else { &body };
            stream.write_all(said.as_bytes()).expect("a few bytes");
            stream
        })
        .collect();
    let began = Instant::now();
    for mut stream in &dawdlers {
        stream.write_all(b" ").expect("one byte more");
        it.http.get("/api/v1/me").expect(200);
    }
    assert!(began.elapsed() < Duration::from_secs(20), "the others waited: {:?}", began.elapsed());
    drop(dawdlers);
    assert_eq!(it.tables(), before);
    it.is_well();
}

/// A server with something in it, and what its tables hold.
struct Hostile {
    homing: Homing,
    http: Http,
    db: Connection,
}

/// A request, in words and in bytes, and the status and code that come back.
type Case<'a> = (&'a str, Vec<u8>, u16, &'a str);

impl Hostile {
    fn new() -> Self {
        let homing = homing();
        homing.converse("api:somebody/1", "hello");
        homing.until_nothing_is_left();
        let db =
            Connection::open_with_flags(homing.data().join("homing.db"), OpenFlags::SQLITE_OPEN_READ_ONLY);
        // The keeper may still have something to put away.
        let http = homing.http();
        eventually("the keeper has gone", || {
            http.get("/metrics").text().contains("homing_kept_sessions 0\n").then_some(())
        });
        Self { http, homing, db: db.expect("the database can be read beside the server") }
    }

    /// Each is refused like this, changes nothing, and is the last on its connection.
    #[track_caller]
    fn refuses(&self, cases: &[Case<'_>]) {
        self.check(cases, false);
    }

    /// The same, said by somebody who then says no more.
    #[track_caller]
    fn refuses_half(&self, cases: &[Case<'_>]) {
        self.check(cases, true);
    }

    #[track_caller]
    fn check(&self, cases: &[Case<'_>], half: bool) {
        let before = self.tables();
        for (words, bytes, status, code) in cases {
            let words: String = words.chars().take(80).collect();
            let answered = self.exchange(bytes, half);
            assert_eq!(statuses(&answered), [*status], "{words}: {}", first(&answered));
            assert_eq!(code_of(&answered), *code, "{words}: {}", first(&answered));
            let problem = answered.contains("content-type: application/problem+json");
            assert_eq!(problem, !code.is_empty(), "{words}: {}", first(&answered));
            assert_eq!(self.tables(), before, "{words} has changed something");
        }
        self.is_well();
    }

    #[track_caller]
    fn is_well(&self) {
        self.http.get("/readyz").expect(200);
        assert!(!self.homing.server_log().contains("panic"), "{}", self.homing.server_log());
    }

    /// Everything that comes back until the server ends the connection.
    fn exchange(&self, bytes: &[u8], half: bool) -> String {
        let mut stream = TcpStream::connect(&self.http.host).expect("a connection");
        stream.set_read_timeout(Some(WAIT_MAX)).expect("a time-out");
        // The server may have heard enough before the end.
        let _ = stream.write_all(bytes);
        if half {
            let _ = stream.shutdown(Shutdown::Write);
        }
        let (mut answered, mut piece) = (Vec::new(), [0; 4_096]);
        while let Ok(read @ 1..) = stream.read(&mut piece) {
            answered.extend_from_slice(&piece[..read]);
        }
        String::from_utf8_lossy(&answered).into_owned()
    }

    fn port(&self) -> &str {
        self.http.host.rsplit(':').next().expect("a host has a port")
    }

    /// Headers of a good request.
    fn head(&self) -> String {
        let Http { host, token } = &self.http;
        format!("Host: {host}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n")
    }

    fn get(&self, path: &str, headers: &str) -> Vec<u8> {
        format!("GET {path} HTTP/1.1\r\n{}{headers}\r\n", self.head()).into_bytes()
    }

    fn say(&self, body: &[u8]) -> Vec<u8> {
        self.post(SAY, &format!("Content-Length: {}", body.len()), body)
    }

    /// A body framed by these headers, whatever they say.
    fn post(&self, path: &str, frame: &str, body: &[u8]) -> Vec<u8> {
        self.post_bytes(path, frame.as_bytes(), body)
    }

    fn post_bytes(&self, path: &str, frame: &[u8], body: &[u8]) -> Vec<u8> {
        let head = format!("POST {path} HTTP/1.1\r\n{}Content-Type: application/json\r\n", self.head());
        [head.as_bytes(), frame, b"\r\n\r\n", body].concat()
    }

    /// Everything in every table, as text, but for the audit and its seals, and when a credential was last used.
    fn tables(&self) -> Vec<(String, Vec<String>)> {
        let names = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
        let mut query = self.db.prepare(names).expect("a database has a schema");
        let names = query.query_map([], |row| row.get(0)).expect("tables have names");
        let names = names.collect::<Result<Vec<String>, _>>().expect("names are texts");
        let others = names.into_iter().filter(|name| !name.starts_with("audit"));
        others.map(|name| (name.clone(), self.rows(&name).expect("a table can be read"))).collect()
    }

    fn rows(&self, table: &str) -> rusqlite::Result<Vec<String>> {
        let mut query = self.db.prepare(&format!("SELECT * FROM {table}"))?;
        let names: Vec<String> = query.column_names().map(str::to_owned).collect();
        let is_told = |column: &usize| !["sealed", "last_used"].contains(&names[*column].as_str());
        let columns: Vec<usize> = (0..names.len()).filter(is_told).collect();
        let shown = query.query_map([], |row| {
            let values = columns.iter().map(|column| row.get_ref(*column).map(show));
            values.collect::<rusqlite::Result<Vec<_>>>().map(|values| values.join(" "))
        })?;
        shown.collect()
    }
}

fn show(value: ValueRef<'_>) -> String {
    format!("{value:?}")
}

/// Where answers begin. More than one is one too many.
fn statuses(answered: &str) -> Vec<u16> {
    let heads = answered.match_indices("HTTP/1.").filter_map(|(at, _)| answered.get(at + 9..at + 12));
    heads.filter_map(|status| status.parse().ok()).collect()
}

fn code_of(answered: &str) -> &str {
    let code = answered.split_once("\"code\":\"").and_then(|(_, rest)| rest.split_once('"'));
    code.map_or("", |(code, _)| code)
}

fn first(answered: &str) -> String {
    answered.chars().take(600).collect()
}

trait ReplaceFirst {
    fn replace_first(self, from: &[u8], to: &[u8]) -> Vec<u8>;
}

impl ReplaceFirst for Vec<u8> {
    fn replace_first(self, from: &[u8], to: &[u8]) -> Vec<u8> {
        let at = self.windows(from.len()).position(|window| window == from).expect("it is there");
        [&self[..at], to, &self[at + from.len()..]].concat()
    }
}

/// The comparison above can fail: somebody who writes into the database beside the server is seen.
#[test]
fn a_planted_write_is_seen() {
    let it = Hostile::new();
    let before = it.tables();
    let other = Connection::open(it.homing.data().join("homing.db")).expect("a second writer");
    other.busy_timeout(WAIT_MAX).expect("a time-out");
    other.execute("UPDATE persons SET opened = opened + 1", []).expect("a planted write");
    assert_ne!(it.tables(), before);
}
