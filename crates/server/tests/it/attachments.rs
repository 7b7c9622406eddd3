//! Images and files on the wire: what is taken, what is refused, and who gets the bytes back.

use crate::town::{IMAGE, SOON, Town, read};
use crate::world::Somebody;
use api::{ATTACHED_BYTES_MAX, Base64, ExportLine, MESSAGE_BODY_BYTES_MAX, PARTS_MAX, Part};
use kernel::{Grant, Grantee, MessageId, Role};
use serde_json::{Value, json};

fn data(bytes: &[u8]) -> Value {
    serde_json::to_value(Base64(bytes.to_vec())).unwrap()
}

fn image(name: &str) -> Value {
    json!({"type": "image", "name": name, "media_type": "image/png", "data": data(IMAGE)})
}

async fn say(town: &Town, who: &Somebody, parts: Value) -> (u16, Option<String>, Value) {
    let body = json!({"to": {"new": {}}, "parts": parts});
    town.answer(Some(&who.token), "POST", "/api/v1/messages", Some(&body)).await
}

async fn settled(town: &Town, who: &Somebody, message: &str) -> String {
    let message: MessageId = message.parse().unwrap();
    let view = town.engine.views().receipt_within(&town.now(who).await, message, SOON).await.unwrap();
    view.answer.unwrap_or_default()
}

async fn bytes(town: &Town, who: &Somebody, path: &str) -> (u16, reqwest::header::HeaderMap, Vec<u8>) {
    let response = town.ask(Some(&who.token), "GET", path).send().await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    (status, headers, response.bytes().await.unwrap().to_vec())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_and_a_file_come_back_as_they_went_and_are_to_be_saved() {
    let town = Town::new(&[]).await;
    let odd = b"<script>\0\xff</script>";
    let parts = json!([
        {"type": "text", "text": "look"},
        image("shot.png"),
        {"type": "file", "name": "ä \"x\".html", "media_type": "text/html", "data": data(odd)},
        {"type": "file", "name": "notes.md", "media_type": "text/markdown", "text": "# grüße"},
        {"type": "image", "media_type": "image/png", "data": data(IMAGE)},
    ]);
    let (status, _, receipt) = say(&town, &town.host, parts).await;
    assert_eq!(status, 202, "{receipt}");
    assert!(receipt.get("attachments").is_none(), "only where somebody asks for the words: {receipt}");
    let id = receipt["id"].as_str().unwrap();
    let answer = settled(&town, &town.host, id).await;
    assert!(answer.contains("--- file notes.md\n# grüße\n--- end of notes.md"), "{answer}");
    assert_eq!(answer.matches("got image image/png 13 bytes").count(), 2, "{answer}");
    let path = format!("/api/v1/messages/{id}?words=true");
    let (_, _, receipt) = town.answer(Some(&town.host.token), "GET", &path, None).await;
    assert_eq!(receipt["text"], "look");
    let attached = receipt["attachments"].as_array().unwrap();
    let said: Vec<_> =
        attached.iter().map(|it| (it["kind"].as_str().unwrap(), it["bytes"].as_u64())).collect();
    assert_eq!(said, [("image", Some(13)), ("file", Some(19)), ("file", Some(9)), ("image", Some(13))]);
    assert!(attached[3].get("name").is_none(), "{}", attached[3]);
    for (at, content) in [(0, IMAGE), (1, odd), (2, "# grüße".as_bytes()), (3, IMAGE)] {
        let (status, headers, got) = bytes(&town, &town.host, attached[at]["link"].as_str().unwrap()).await;
        assert_eq!((status, &got[..]), (200, content));
        assert_eq!(headers["content-type"], attached[at]["media_type"].as_str().unwrap());
        assert_eq!(headers["x-content-type-options"], "nosniff");
        assert!(headers["content-disposition"].to_str().unwrap().starts_with("attachment"));
        assert!(headers["content-security-policy"].to_str().unwrap().contains("sandbox"));
    }
    let (_, headers, _) = bytes(&town, &town.host, attached[1]["link"].as_str().unwrap()).await;
    let name = headers["content-disposition"].to_str().unwrap();
    assert_eq!(name, "attachment; filename*=UTF-8''%C3%A4%20%22x%22.html");
    for none in ["0", "5", "-1", "01", "1.0", "x", "4294967296"] {
        let (status, _, _) =
            bytes(&town, &town.host, &format!("/api/v1/messages/{id}/attachments/{none}")).await;
        assert_eq!(status, 404, "{none}");
    }
    town.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_as_it_is_said_is_refused_and_changes_nothing() {
    let town = Town::new(&[]).await;
    let before = town.dump();
    let file = |name: &str| json!({"type": "file", "name": name, "media_type": "text/plain", "text": "x"});
    let image = |media_type: &str, bytes: &[u8]| json!({"type": "image", "media_type": media_type, "data": data(bytes)});
    let kind = |kind: &str| json!({"type": "file", "name": "a", "media_type": kind, "data": ""});
    let long = "x".repeat(256);
    let wrong = [
        image("image/png", b"\xff\xd8\xff"),
        image("image/png", b""),
        image("image/svg+xml", b"<svg/>"),
        image("text/html", IMAGE),
        image("image/PNG", IMAGE),
        json!({"type": "image", "media_type": "image/png", "data": "not base64!"}),
        json!({"type": "image", "media_type": "image/png", "data": "iVBORw0KGgo"}),
        json!({"type": "image", "media_type": "image/png"}),
        json!({"type": "image", "media_type": "image/png", "url": "http://example.com/a.png"}),
        json!({"type": "file", "name": "a", "media_type": "text/plain", "path": "/etc/passwd"}),
        json!({"type": "file", "name": "a", "media_type": "text/plain", "text": "", "data": ""}),
        json!({"type": "audio", "media_type": "audio/wav", "data": ""}),
        file(""),
        file("."),
        file(".."),
        file("../../etc/passwd"),
        file("a\\b"),
        file("a\nb"),
        file("a\u{1b}[2J"),
        file("\u{202e}gnp.exe"),
        file(&long),
        kind("text"),
        kind("text/plain; charset=utf-8"),
        kind("a/b\r\nX-Evil: 1"),
        kind("application/pdf"),
        kind("image/png"),
    ];
    for part in &wrong {
        let (status, code, body) =
            say(&town, &town.host, json!([{"type": "text", "text": "look"}, part])).await;
        assert_eq!((status, code.as_deref()), (422, Some("invalid")), "{part}: {body}");
        assert!(!body.to_string().contains("not base64!"), "{body}");
    }
    let half = vec![b'x'; ATTACHED_BYTES_MAX / 2 + 1];
    let half = json!({"type": "file", "name": "a", "media_type": "a/b", "data": data(&half)});
    let (status, code, _) = say(&town, &town.host, json!([half, half])).await;
    assert_eq!((status, code.as_deref()), (422, Some("invalid")), "together more than fits");
    let (status, code, _) = say(&town, &town.host, json!(vec![file("a"); PARTS_MAX + 1])).await;
    assert_eq!((status, code.as_deref()), (422, Some("invalid")));
    let body = format!("{{\"to\":{{\"new\":{{}}}},\"text\":\"{}\"}}", "x".repeat(MESSAGE_BODY_BYTES_MAX));
    let ask = town.ask(Some(&town.host.token), "POST", "/api/v1/messages");
    let (status, code, _) =
        read(ask.header("content-type", "application/json").body(body).send().await.unwrap()).await;
    assert_eq!((status, code.as_deref()), (413, Some("too_large")));
    assert_eq!(town.dump(), before, "nothing was changed");
    town.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_may_not_read_the_message_gets_no_byte_of_it() {
    let town = Town::new(&[]).await;
    let (_, _, receipt) = say(&town, &town.host, json!([image("shot.png")])).await;
    let (id, session) = (receipt["id"].as_str().unwrap(), receipt["session"].as_str().unwrap());
    settled(&town, &town.host, id).await;
    let path = format!("/api/v1/messages/{id}/attachments/1");
    let friend = town.person(&town.host, "ben", Role::Member).await;
    let stranger = town.org("other", "cat").await;
    let never = MessageId::from_bits(1 << 90);
    for who in [&friend, &stranger] {
        let (status, code, hidden) = town.answer(Some(&who.token), "GET", &path, None).await;
        let never = format!("/api/v1/messages/{never}/attachments/1");
        let (_, _, absent) = town.answer(Some(&who.token), "GET", &never, None).await;
        assert_eq!((status, code.as_deref()), (404, Some("not_found")));
        assert_eq!((&hidden["detail"], &hidden["title"]), (&absent["detail"], &absent["title"]));
    }
    let (status, _, _) = town.answer(None, "GET", &path, None).await;
    assert_eq!(status, 401);
    let session = session.parse().unwrap();
    town.give(&town.host, session, Grantee::Person(friend.by.person), Grant::View).await;
    assert_eq!(bytes(&town, &friend, &path).await.2, IMAGE);
    town.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_takes_its_images_and_files_along() {
    let town = Town::new(&[]).await;
    let parts = json!([{"type": "text", "text": "look"}, image("shot.png"),
        {"type": "file", "name": "a.bin", "media_type": "application/x-thing", "data": data(b"\0\x01")}]);
    let (_, _, receipt) = say(&town, &town.host, parts).await;
    let (id, session) = (receipt["id"].as_str().unwrap(), receipt["session"].as_str().unwrap());
    settled(&town, &town.host, id).await;
    let path = format!("/api/v1/sessions/{session}/export");
    let file = town.ask(Some(&town.host.token), "GET", &path).send().await.unwrap().text().await.unwrap();
    let turn = file.lines().find_map(|line| match serde_json::from_str(line).unwrap() {
        ExportLine::Turn(turn) => Some(turn),
        _ => None,
    });
    let said = turn.unwrap().said.remove(0).parts;
    assert!(
        matches!(&said[1], Part::Image { name: Some(name), data, .. } if name == "shot.png" && data.0 == IMAGE)
    );
    let stranger = town.org("other", "cat").await;
    let ask = town.ask(Some(&stranger.token), "POST", "/api/v1/sessions/import");
    let bent = file.replace(data(IMAGE).as_str().unwrap(), data(b"no image").as_str().unwrap());
    let bent =
        ask.try_clone().unwrap().header("content-type", api::EXPORT_TYPE).body(bent).send().await.unwrap();
    let (status, code, _) = read(bent).await;
    assert_eq!((status, code.as_deref()), (422, Some("bad_export")), "what is said is looked at there, too");
    let made = ask.header("content-type", api::EXPORT_TYPE).body(file).send().await.unwrap();
    let (status, _, made) = read(made).await;
    assert_eq!(status, 201, "{made}");
    let path = format!("/api/v1/sessions/{}/export", made["id"].as_str().unwrap());
    let again = town.ask(Some(&stranger.token), "GET", &path).send().await.unwrap().text().await.unwrap();
    let turn = again.lines().find_map(|line| match serde_json::from_str(line).unwrap() {
        ExportLine::Turn(turn) => Some(turn),
        _ => None,
    });
    assert_eq!(turn.unwrap().said.remove(0).parts, said);
    town.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_an_edit_replaced_are_gone_from_the_api_the_database_and_the_export() {
    let town = Town::new(&[]).await;
    let token = Some(town.host.token.as_str());
    let file = |name: &str, bytes: &[u8]| json!({"type": "file", "name": name, "media_type": "a/b", "data": data(bytes)});
    let (old, new) = (b"\0the old bytes\xff", b"\0the new bytes\xff");
    let is_kept = |bytes: &[u8]| {
        let listed = format!("{bytes:?}");
        let listed = listed.trim_matches(['[', ']']);
        town.dump().values().flatten().any(|row| row.contains(listed))
    };
    let (_, _, first) = say(&town, &town.host, json!([{"type": "text", "text": "!ask tool"}])).await;
    let session = first["session"].as_str().unwrap();
    let parts = json!([{"type": "text", "text": "look"}, file("old.bin", old)]);
    let body = json!({"to": {"session": session}, "parts": parts});
    let (status, _, second) = town.answer(token, "POST", "/api/v1/messages", Some(&body)).await;
    assert_eq!(status, 202, "{second}");
    let message = format!("/api/v1/messages/{}", second["id"].as_str().unwrap());
    let attached = format!("{message}/attachments/1");
    assert_eq!(bytes(&town, &town.host, &attached).await.2, old);
    assert!(is_kept(old) && is_kept(b"old.bin"), "the test can see what is kept");

    let parts = json!([{"type": "text", "text": "look"}, file("new.bin", new)]);
    let edit = json!({"parts": parts, "revision": 0});
    let (status, _, edited) = town.answer(token, "PATCH", &message, Some(&edit)).await;
    assert_eq!(status, 200, "{edited}");
    assert_eq!(bytes(&town, &town.host, &attached).await.2, new);
    assert!(!is_kept(old) && !is_kept(b"old.bin") && is_kept(new));

    let edit = json!({"parts": [{"type": "text", "text": "look"}], "revision": 1});
    let (status, _, edited) = town.answer(token, "PATCH", &message, Some(&edit)).await;
    assert_eq!(status, 200, "{edited}");
    assert_eq!(bytes(&town, &town.host, &attached).await.0, 404);
    assert!(!is_kept(new) && !is_kept(b"new.bin"));

    let stop = format!("/api/v1/messages/{}/stop", first["id"].as_str().unwrap());
    town.answer(token, "POST", &stop, None).await;
    settled(&town, &town.host, second["id"].as_str().unwrap()).await;
    let path = format!("/api/v1/sessions/{session}/export");
    let export = town.ask(token, "GET", &path).send().await.unwrap().text().await.unwrap();
    assert!(export.contains("\"look\"") && !export.contains(".bin"), "{export}");
    for gone in [&old[..], new] {
        assert!(!export.contains(data(gone).as_str().unwrap()), "{export}");
    }
    town.close().await;
}
