//! Requests that are not as the contract says: every answer is a problem with a code, and nothing is changed.

use crate::world::World;
use api::Problem;
use reqwest::StatusCode;

const SAY: &str = "/api/v1/messages";
const NOBODY: &str = "msg_00000000000000000000zzzzzz";

async fn refused(world: &World, method: &str, path: &str, body: &[u8]) -> (u16, String, Option<String>) {
    let ask = world.ask(method, path).header("content-type", "application/json").body(body.to_vec());
    let answer = ask.send().await.unwrap();
    let status = answer.status().as_u16();
    assert_eq!(answer.headers()["content-type"], "application/problem+json", "{method} {path}");
    let problem: Problem = answer.json().await.unwrap();
    assert_eq!(problem.status, status);
    assert!(!problem.hint.is_empty() && problem.kind.ends_with(problem.code.word()));
    (status, problem.code.word().to_owned(), problem.field)
}

/// Method, path and body; and the status, the code and the field of the problem.
type Case<'a> = (&'a str, &'a str, &'a [u8], u16, &'a str, Option<&'a str>);

/// Each is refused like this, and leaves everything as it was but the audit.
async fn check(cases: &[Case<'_>]) {
    let world = World::new().await;
    let before = world.store.snapshot();
    for (method, path, body, status, code, field) in cases {
        let shown = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
        let answer = refused(&world, method, path, body).await;
        let expected = (*status, code.to_string(), field.map(str::to_owned));
        assert_eq!(answer, expected, "{method} {path} {shown}");
    }
    let mut after = world.store.snapshot();
    after.audit = before.audit.clone();
    assert_eq!(format!("{after:?}"), format!("{before:?}"));
}

#[tokio::test]
async fn a_body_that_is_not_json_is_a_400() {
    check(&[
        ("POST", SAY, b"", 400, "bad_json", None),
        ("POST", SAY, b"{", 400, "bad_json", None),
        ("POST", SAY, b"{\"to\":{\"new\":{}},\"text\":\"\xff\"}", 400, "bad_json", None),
        ("POST", SAY, b"{\"to\":{\"new\":{}},\"text\":\"\\ud800\"}", 400, "bad_json", None),
        ("POST", SAY, b"{\"to\":{\"new\":{}},\"text\":\"x\"} {}", 400, "bad_json", None),
        ("POST", "/api/v1/sessions", br#"{"title":"#, 400, "bad_json", None),
    ])
    .await;
}

#[tokio::test]
async fn a_body_that_is_not_as_the_schema_says_is_a_422_that_names_the_field() {
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    check(&[
        ("POST", SAY, b"[]", 422, "invalid", None),
        ("POST", SAY, b"null", 422, "invalid", None),
        ("POST", SAY, b"{}", 422, "invalid", None),
        ("POST", SAY, br#"{"to":{"new":{}}}"#, 422, "invalid", None),
        ("POST", SAY, br#"{"to":{"new":{}},"text":"x","parts":[]}"#, 422, "invalid", None),
        ("POST", SAY, br#"{"to":{"new":{}},"text":null}"#, 422, "invalid", Some("text")),
        ("POST", SAY, br#"{"to":{"new":{}},"text":7}"#, 422, "invalid", Some("text")),
        ("POST", SAY, br#"{"to":{"new":{}},"text":"x","txet":1}"#, 422, "invalid", Some("txet")),
        ("POST", SAY, br#"{"to":{"new":{}},"text":"x","text":"y"}"#, 422, "invalid", None),
        ("POST", SAY, br#"{"to":{},"text":"x"}"#, 422, "invalid", Some("to")),
        ("POST", SAY, br#"{"to":{"new":{},"session":"x"},"text":"x"}"#, 422, "invalid", Some("to")),
        ("POST", SAY, br#"{"to":{"new":{"agnet":"x"}},"text":"x"}"#, 422, "invalid", Some("to.new.agnet")),
        ("POST", SAY, br#"{"to":{"session":"ses_1"},"text":"x"}"#, 422, "invalid", Some("session")),
        ("POST", SAY, br#"{"to":{"new":{}},"text":" \n"}"#, 422, "invalid", Some("text")),
        ("POST", SAY, br#"{"to":{"new":{}},"parts":[]}"#, 422, "invalid", Some("parts")),
        (
            "POST",
            SAY,
            br#"{"to":{"new":{}},"parts":[{"type":"song","text":"x"}]}"#,
            422,
            "invalid",
            Some("parts[0].type"),
        ),
        ("POST", SAY, br#"{"to":{"new":{"agent":"-x"}},"text":"x"}"#, 422, "invalid", Some("agent")),
        ("POST", SAY, br#"{"to":{"new":{"agent":"none"}},"text":"x"}"#, 409, "unknown_agent", Some("agent")),
        ("POST", SAY, br#"{"to":{"new":{"directory":"w"}},"text":"x"}"#, 422, "invalid", Some("directory")),
        (
            "POST",
            SAY,
            br#"{"to":{"new":{"directory":"/gone"}},"text":"x"}"#,
            409,
            "bad_directory",
            Some("directory"),
        ),
        ("POST", SAY, br#"{"to":{"new":{"model":"--x"}},"text":"x"}"#, 422, "invalid", Some("model")),
        ("POST", SAY, br#"{"to":{"new":{"title":"\u0000"}},"text":"x"}"#, 422, "invalid", Some("title")),
        ("POST", SAY, br#"{"to":{"new":[]},"text":"x"}"#, 422, "invalid", Some("to.new")),
        ("POST", SAY, br#"{"to":[],"text":"x"}"#, 422, "invalid", Some("to")),
        (
            "POST",
            SAY,
            br#"{"to":{"conversation":"api:a/b","if_new":null},"text":"x"}"#,
            422,
            "invalid",
            Some("to.if_new"),
        ),
        ("POST", SAY, br#"{"to":{"new":{}},"parts":[["text","x"]]}"#, 422, "invalid", Some("parts[0]")),
        ("POST", "/api/v1/sessions", b"[]", 422, "invalid", None),
        ("POST", "/api/v1/sessions", br#"{"x":1}"#, 422, "invalid", Some("x")),
        ("POST", "/api/v1/sessions", deep.as_bytes(), 422, "invalid", None),
        (
            "POST",
            "/api/v1/bindings/move",
            br#"{"address":"api:a/b","session":"x"}"#,
            422,
            "invalid",
            Some("session"),
        ),
        (
            "POST",
            "/api/v1/approvals/apr_00000000000000000000000001",
            br#"{"answer":"maybe"}"#,
            422,
            "invalid",
            Some("answer"),
        ),
        ("PATCH", &format!("{SAY}/{NOBODY}"), br#"{"text":"x"}"#, 422, "invalid", None),
        ("PATCH", &format!("{SAY}/{NOBODY}"), br#"{"held":true,"revision":0}"#, 422, "invalid", None),
        (
            "PATCH",
            &format!("{SAY}/{NOBODY}"),
            br#"{"text":"x","revision":-1}"#,
            422,
            "invalid",
            Some("revision"),
        ),
        (
            "PATCH",
            &format!("{SAY}/{NOBODY}"),
            br#"{"text":"x","revision":2147483648}"#,
            422,
            "invalid",
            Some("revision"),
        ),
        ("PATCH", "/api/v1/sessions/ses_00000000000000000000zzzzzz", b"{}", 404, "not_found", None),
        (
            "PUT",
            "/api/v1/sessions/ses_00000000000000000000zzzzzz/queue",
            br#"{"order":["x"]}"#,
            422,
            "invalid",
            Some("order"),
        ),
    ])
    .await;
}

/// The same, where `SES` and `MSG` stand for a session and a message in it.
type WrongAbout<'a> = (&'a str, &'a str, &'a str, u16, &'a str, Option<&'a str>);

/// The session that is asked about is there, so that nothing but the request itself is wrong.
async fn check_on_a_session(cases: &[WrongAbout<'_>]) {
    let world = World::new().await;
    let made = world.client().make_session(&Default::default()).await.unwrap();
    let said = world.client().say(&api::NewMessage::text(api::To::session(&made.id), "hello")).await.unwrap();
    crate::rounds::settled(&world.client(), &said.id).await;
    let before = world.store.snapshot();
    for (method, part, body, status, code, field) in cases {
        let path = format!("/api/v1/{}", part.replace("SES", &made.id).replace("MSG", &said.id));
        let body = body.replace("SES", &made.id);
        let answer = refused(&world, method, &path, body.as_bytes()).await;
        assert_eq!(answer, (*status, code.to_string(), field.map(str::to_owned)), "{method} {part} {body}");
    }
    let mut after = world.store.snapshot();
    after.audit = before.audit.clone();
    // A keeper's no is remembered for whoever asks again, and changes nothing else.
    after.verdicts = before.verdicts.clone();
    assert_eq!(format!("{after:?}"), format!("{before:?}"));
}

#[tokio::test]
async fn a_wish_about_a_scope_that_is_not_as_the_contract_says_is_refused_and_changes_nothing() {
    let (scope, long) = ("sessions/SES/scope", "a".repeat(300));
    let enter = |field: &str, value: &str| match field {
        "name" => format!(r#"{{"enter":{{"name":"{value}"}}}}"#),
        field => format!(r#"{{"enter":{{"name":"a","{field}":"{value}"}}}}"#),
    };
    let mut hostile = Vec::new();
    let names =
        ["", "-a", "--force", "A", "a/b", "..", "../a", "a..b", ".", "a.b", "a b", "a\\n", "\\u0000", "ä"];
    for name in names.into_iter().chain([&long[..41]]) {
        hostile.push((enter("name", name), "name"));
    }
    for (field, odd) in [("base", "~1"), ("branch", "a~1")] {
        for value in
            ["", "-a", "--all", "/a", "../a", ".a", "a b", "a\\tb", "a\\u0000", "a:b", "ä", odd, &long]
        {
            hostile.push((enter(field, value), field));
        }
    }
    let (invalid, post) = ("invalid", "POST");
    let mut cases: Vec<_> = hostile
        .iter()
        .map(|(body, field)| (post, scope, body.as_str(), 422, invalid, Some(*field)))
        .collect();
    let long_model = format!(r#"{{"set":{{"model":"{}"}}}}"#, "m".repeat(129));
    let long_path = format!(r#"{{"relink":"/{}"}}"#, "d".repeat(4_095));
    cases.extend([
        (post, scope, "[]", 422, invalid, None),
        (post, scope, "{}", 422, invalid, None),
        (post, scope, r#"{"now":true}"#, 422, invalid, None),
        (post, scope, r#"{"enter":{"name":"a"},"exit":true}"#, 422, invalid, None),
        (post, scope, r#"{"set":{},"relink":"/srv"}"#, 422, invalid, None),
        (post, scope, r#"{"enter":null}"#, 422, invalid, Some("enter")),
        (post, scope, r#"{"enter":"a"}"#, 422, invalid, Some("enter")),
        (post, scope, r#"{"enter":["a"]}"#, 422, invalid, Some("enter")),
        (post, scope, r#"{"enter":{}}"#, 422, invalid, Some("enter")),
        (post, scope, r#"{"enter":{"name":7}}"#, 422, invalid, Some("enter.name")),
        (post, scope, r#"{"enter":{"name":"a","nmae":"b"}}"#, 422, invalid, Some("enter.nmae")),
        (post, scope, r#"{"enter":{"name":"a"},"now":"yes"}"#, 422, invalid, Some("now")),
        (post, scope, r#"{"enter":{"name":"a"},"new":true}"#, 422, invalid, Some("new")),
        (
            post,
            scope,
            r#"{"enter":{"name":"a","base":"refs/homing/SES/1/after"}}"#,
            422,
            invalid,
            Some("base"),
        ),
        (
            post,
            scope,
            r#"{"enter":{"name":"a","branch":"homing/SES/1/after"}}"#,
            422,
            invalid,
            Some("branch"),
        ),
        (post, scope, r#"{"exit":false}"#, 422, invalid, Some("exit")),
        (post, scope, r#"{"exit":1}"#, 422, invalid, Some("exit")),
        (post, scope, r#"{"exit":true}"#, 409, "not_in_worktree", None),
        (post, scope, r#"{"set":{"agent":"-x"}}"#, 422, invalid, Some("agent")),
        (post, scope, r#"{"set":{"agent":""}}"#, 422, invalid, Some("agent")),
        (post, scope, r#"{"set":{"agent":"nobody"}}"#, 409, "unknown_agent", Some("agent")),
        (post, scope, r#"{"set":{"model":"--x"}}"#, 422, invalid, Some("model")),
        (post, scope, r#"{"set":{"mode":"a b"}}"#, 422, invalid, Some("mode")),
        (post, scope, &long_model, 422, invalid, Some("model")),
        (post, scope, r#"{"set":{"modle":"x"}}"#, 422, invalid, Some("set.modle")),
        (post, scope, r#"{"relink":"srv"}"#, 422, invalid, Some("relink")),
        (post, scope, r#"{"relink":"/a\u0000b"}"#, 422, invalid, Some("relink")),
        (post, scope, &long_path, 422, invalid, Some("relink")),
        (post, scope, r#"{"relink":"/gone"}"#, 409, "bad_directory", Some("directory")),
        (post, "sessions/ses_1/scope", r#"{"exit":true}"#, 404, "not_found", None),
        ("DELETE", scope, "", 409, "too_late", None),
        ("GET", scope, "", 405, "method_not_allowed", None),
    ]);
    check_on_a_session(&cases).await;
}

#[tokio::test]
async fn turns_epochs_and_deliveries_that_there_are_not_are_refused_and_change_nothing() {
    let (post, patch, invalid, gone) = ("POST", "PATCH", "invalid", "not_found");
    let (undo, fork, changes) = ("sessions/SES/undo", "sessions/SES/fork", "sessions/SES/changes");
    let long = format!(r#"{{"title":"{}"}}"#, "t".repeat(201));
    check_on_a_session(&[
        (post, undo, "{}", 422, invalid, None),
        (post, undo, "[1]", 422, invalid, None),
        (post, undo, r#"{"turn":0}"#, 422, invalid, Some("turn")),
        (post, undo, r#"{"turn":-1}"#, 422, invalid, Some("turn")),
        (post, undo, r#"{"turn":1.5}"#, 422, invalid, Some("turn")),
        (post, undo, r#"{"turn":2147483648}"#, 422, invalid, Some("turn")),
        (post, undo, r#"{"turn":"1"}"#, 422, invalid, Some("turn")),
        (post, undo, r#"{"turn":1,"now":true}"#, 422, invalid, Some("now")),
        (post, undo, r#"{"turn":2147483647}"#, 404, gone, None),
        (post, undo, r#"{"turn":1,"only":[]}"#, 422, invalid, Some("only")),
        (post, undo, r#"{"turn":1,"only":[""]}"#, 422, invalid, Some("only")),
        (post, undo, r#"{"turn":1,"only":"a"}"#, 422, invalid, Some("only")),
        (post, "sessions/SES/redo", r#"{"turn":0}"#, 422, invalid, Some("turn")),
        (post, "sessions/SES/redo", r#"{"turn":1,"all":true}"#, 422, invalid, Some("all")),
        (post, "sessions/SES/redo", r#"{"turn":9}"#, 404, gone, None),
        (post, fork, "null", 422, invalid, None),
        (post, fork, r#"{"at":0}"#, 422, invalid, Some("at")),
        (post, fork, r#"{"at":"last"}"#, 422, invalid, Some("at")),
        (post, fork, r#"{"at":9}"#, 404, gone, None),
        (post, fork, r#"{"title":"\u0007"}"#, 422, invalid, Some("title")),
        (post, fork, &long, 422, invalid, Some("title")),
        (post, fork, r#"{"turn":1}"#, 422, invalid, Some("turn")),
        ("GET", changes, "", 422, invalid, None),
        ("GET", "sessions/SES/changes?turn=0", "", 422, invalid, Some("turn")),
        ("GET", "sessions/SES/changes?turn=x", "", 422, invalid, Some("turn")),
        ("GET", "sessions/SES/changes?turn=1&epoch=0", "", 422, invalid, Some("epoch")),
        ("GET", "sessions/SES/changes?turn=9", "", 404, gone, None),
        ("GET", "directories?directory=srv", "", 422, invalid, Some("directory")),
        ("GET", "directories?directory=/gone", "", 409, "bad_directory", Some("directory")),
        ("GET", "directories?below=/", "", 422, invalid, Some("below")),
        ("GET", "sessions/SES/changes/file?turn=0&path=a", "", 422, invalid, Some("turn")),
        ("GET", "sessions/SES/changes/file?turn=1&since=0&path=a", "", 422, invalid, Some("since")),
        ("GET", "sessions/SES/changes/file?turn=1", "", 422, invalid, None),
        ("GET", "sessions/SES/changes/file?turn=1&path=", "", 422, invalid, Some("path")),
        ("GET", "sessions/SES/changes/file?turn=1&path=a&from=268435457", "", 422, invalid, Some("from")),
        ("GET", "sessions/SES/worktrees/blue/changes", "", 404, gone, None),
        ("GET", "sessions/SES/worktrees/blue/changes/file", "", 422, invalid, None),
        ("GET", "sessions/SES/worktrees/blue/changes/file?path=", "", 422, invalid, Some("path")),
        ("GET", "sessions/SES/worktrees/blue/changes/file?path=a&from=-1", "", 422, invalid, Some("from")),
        (patch, "messages/MSG", r#"{"delivery":"queue"}"#, 422, invalid, Some("delivery")),
        (patch, "messages/MSG", r#"{"delivery":"steer","held":false}"#, 422, invalid, None),
        (patch, "messages/MSG", r#"{"delivery":"steer"}"#, 409, "too_late", None),
        ("GET", undo, "", 422, invalid, None),
        ("GET", "sessions/SES/undo?turn=0", "", 422, invalid, Some("turn")),
        ("GET", "sessions/SES/undo?turn=1&dry_run=true", "", 422, invalid, Some("dry_run")),
        ("GET", "sessions/SES/undo?turn=9", "", 404, gone, None),
        ("GET", "sessions/ses_1/readiness", "", 404, gone, None),
        (patch, "messages/MSG", r#"{"held":true,"there":true}"#, 422, invalid, Some("there")),
        (patch, "messages/MSG", r#"{"held":false,"there":"b"}"#, 422, invalid, Some("there")),
        (patch, "messages/MSG", r#"{"there":true}"#, 422, invalid, None),
        (patch, "messages/MSG", r#"{"held":false}"#, 422, invalid, Some("there")),
        (patch, "messages/MSG", r#"{"text":"x","revision":0,"there":true}"#, 422, invalid, None),
        (patch, "messages/MSG", r#"{"held":false,"there":true}"#, 409, "too_late", None),
        (
            post,
            "messages",
            r#"{"to":{"session":"SES"},"text":"x","delivery":"now"}"#,
            422,
            invalid,
            Some("delivery"),
        ),
        (
            post,
            "messages",
            r#"{"to":{"session":"SES"},"text":"x","delivery":1}"#,
            422,
            invalid,
            Some("delivery"),
        ),
        (post, "messages", r#"{"to":{"session":"SES"},"text":"x","under":-1}"#, 422, invalid, Some("under")),
        (
            post,
            "messages",
            r#"{"to":{"session":"SES"},"text":"x","under":2147483648}"#,
            422,
            invalid,
            Some("under"),
        ),
        (post, "messages", r#"{"to":{"session":"SES"},"text":"x","under":1}"#, 409, "other_scope", None),
        (post, "messages", r#"{"to":{"new":{}},"text":"x","under":1}"#, 409, "other_scope", None),
        (
            post,
            "messages",
            r#"{"to":{"new":{"worktree":[]}},"text":"x"}"#,
            422,
            invalid,
            Some("to.new.worktree"),
        ),
        (
            post,
            "messages",
            r#"{"to":{"new":{"worktree":{"path":"/"}}},"text":"x"}"#,
            422,
            invalid,
            Some("to.new.worktree.path"),
        ),
        (
            post,
            "messages",
            r#"{"to":{"new":{"worktree":{"name":"../a"}}},"text":"x"}"#,
            422,
            invalid,
            Some("name"),
        ),
        (
            post,
            "messages",
            r#"{"to":{"new":{"worktree":{"base":"-a"}}},"text":"x"}"#,
            422,
            invalid,
            Some("base"),
        ),
        (post, "sessions", r#"{"worktree":{"base":"homing/SES/1/before"}}"#, 422, invalid, Some("base")),
        (post, "sessions", r#"{"worktree":{"name":"-a"}}"#, 422, invalid, Some("name")),
        (post, "sessions", r#"{"worktree":{"branch":"a b"}}"#, 422, invalid, Some("branch")),
        (post, "sessions", r#"{"worktree":true}"#, 422, invalid, Some("worktree")),
    ])
    .await;
}

#[tokio::test]
async fn hostile_addresses_are_refused() {
    let long = format!(r#"{{"to":{{"conversation":"api:a/{}"}},"text":"x"}}"#, "b".repeat(5_000));
    let say = |address: &str| format!(r#"{{"to":{{"conversation":"{address}"}},"text":"x"}}"#).into_bytes();
    let addresses = [
        "",
        "api",
        "api:",
        "api:a",
        "api:a/",
        "api:/b",
        "api:a/b/c",
        "api:a/b c",
        "api:a/%41",
        "api:a/%2f",
        "api:a/%FF",
        "api:a/%",
        "API:a/b",
        "api:a/b/..",
        "api:a/\\u0000",
        "web:ann/\\u202e",
    ];
    let bodies: Vec<Vec<u8>> = addresses.iter().map(|address| say(address)).collect();
    let field = Some("conversation");
    let mut cases: Vec<_> =
        bodies.iter().map(|body| ("POST", SAY, body.as_slice(), 422, "bad_address", field)).collect();
    cases.push(("POST", SAY, long.as_bytes(), 422, "bad_address", field));
    check(&cases).await;
}

#[tokio::test]
async fn paths_queries_and_cursors_are_checked() {
    let after = format!("/api/v1/sessions/ses_00000000000000000000000001/facts?after={}", u64::MAX);
    check(&[
        ("GET", "/api/v1/nothing", b"", 404, "no_such_path", None),
        ("GET", "/api/v1/messages/", b"", 404, "no_such_path", None),
        ("GET", "/api/v1/messages/msg_1", b"", 404, "not_found", None),
        ("GET", "/api/v1/messages/%FF", b"", 404, "not_found", None),
        ("GET", "/api/v1/messages/ses_00000000000000000000000001", b"", 404, "not_found", None),
        ("GET", "/api/v1/messages/../../etc", b"", 404, "no_such_path", None),
        ("GET", &format!("{SAY}/{NOBODY}?wait=61"), b"", 422, "invalid", Some("wait")),
        ("GET", &format!("{SAY}/{NOBODY}?wait=-1"), b"", 422, "invalid", Some("wait")),
        ("GET", &format!("{SAY}/{NOBODY}?wiat=1"), b"", 422, "invalid", Some("wiat")),
        ("GET", &format!("{SAY}/{NOBODY}?wait=1&wait=2"), b"", 422, "invalid", None),
        ("GET", &format!("{SAY}/{NOBODY}?wait=1"), b"", 404, "not_found", None),
        ("GET", "/api/v1/sessions?limit=0", b"", 422, "invalid", Some("limit")),
        ("GET", "/api/v1/sessions?limit=501", b"", 422, "invalid", Some("limit")),
        ("GET", "/api/v1/sessions?which=mine", b"", 422, "invalid", Some("which")),
        ("GET", "/api/v1/sessions?cursor=x", b"", 422, "bad_cursor", Some("cursor")),
        ("GET", "/api/v1/bindings?cursor=s1", b"", 422, "bad_cursor", Some("cursor")),
        ("GET", "/api/v1/facts?cursor=hzz", b"", 422, "bad_cursor", Some("cursor")),
        ("GET", "/api/v1/approvals?cursor=h0", b"", 422, "bad_cursor", Some("cursor")),
        ("GET", &after, b"", 422, "invalid", Some("after")),
        ("GET", "/api/v1/route", b"", 422, "invalid", None),
        ("GET", "/api/v1/route?new=false", b"", 422, "invalid", None),
        ("GET", "/api/v1/route?new=true&session=x", b"", 422, "invalid", None),
        ("GET", "/api/v1/route?session=x", b"", 422, "invalid", Some("session")),
        ("GET", "/api/v1/route?conversation=x", b"", 422, "bad_address", Some("conversation")),
        ("GET", "/api/v1/route?conversation=web:bob/1", b"", 403, "address_not_yours", None),
        ("GET", &format!("/api/v1/users?named={}", "x".repeat(255)), b"", 422, "invalid", Some("named")),
        ("GET", &format!("/api/v1/audit?what={}", "x".repeat(65)), b"", 422, "invalid", Some("what")),
        (
            "GET",
            &format!("/api/v1/audit?subject={}", "x".repeat(4_097)),
            b"",
            422,
            "invalid",
            Some("subject"),
        ),
        ("GET", "/api/v1/audit?since=2026-02-30T00:00:00Z", b"", 422, "invalid", Some("since")),
        ("GET", "/api/v1/audit?who=x", b"", 422, "invalid", Some("who")),
        ("GET", "/api/v1/tokens?user=x", b"", 422, "invalid", Some("user")),
        ("DELETE", "/api/v1/roots?directory=/", b"", 422, "invalid", Some("user")),
        ("DELETE", "/api/v1/roots?directory=/&org=false", b"", 422, "invalid", Some("user")),
        ("DELETE", "/api/v1/roots?directory=w&org=true", b"", 422, "invalid", Some("directory")),
        ("PUT", SAY, b"", 405, "method_not_allowed", None),
        ("DELETE", "/healthz", b"", 405, "method_not_allowed", None),
        ("POST", &format!("{SAY}/{NOBODY}/stop"), b"", 404, "not_found", None),
        ("DELETE", &format!("{SAY}/{NOBODY}"), b"", 404, "not_found", None),
    ])
    .await;
    let world = World::new().await;
    let answer = world.ask("PUT", SAY).send().await.unwrap();
    assert_eq!(answer.headers()["allow"], "POST");
}

#[tokio::test]
async fn a_body_must_be_said_to_be_json_and_a_key_must_be_a_key() {
    let world = World::new().await;
    for kind in
        [None, Some("text/plain"), Some("application/x-www-form-urlencoded"), Some("application/jsonx")]
    {
        let mut ask = world.ask("POST", SAY).body(r#"{"to":{"new":{}},"text":"x"}"#);
        if let Some(kind) = kind {
            ask = ask.header("content-type", kind);
        }
        let problem: Problem = ask.send().await.unwrap().json().await.unwrap();
        assert_eq!((problem.status, problem.code.word()), (415, "unsupported_media_type"));
    }
    for key in ["", "two words", "\u{e9}", &"k".repeat(256)] {
        let ask = world.ask("POST", SAY).header("content-type", "application/json");
        let ask = ask.header("idempotency-key", key.as_bytes()).body(r#"{"to":{"new":{}},"text":"x"}"#);
        let problem: Problem = ask.send().await.unwrap().json().await.unwrap();
        assert_eq!((problem.status, problem.field.as_deref()), (422, Some("Idempotency-Key")), "{key:?}");
    }
    let sessions = world.client().sessions(&Default::default()).await.unwrap();
    assert!(sessions.items.is_empty());
}

#[tokio::test]
async fn a_huge_body_is_a_413_and_the_longest_text_is_not() {
    let world = World::new().await;
    let say = |text: String| {
        let body = serde_json::json!({"to": {"new": {}}, "text": text}).to_string();
        world.ask("POST", SAY).header("content-type", "application/json").body(body).send()
    };
    let answer = say("x".repeat(api::TEXT_LENGTH_MAX)).await.unwrap();
    assert_eq!(answer.status(), StatusCode::ACCEPTED);
    let answer = say("x".repeat(api::TEXT_LENGTH_MAX + 1)).await.unwrap();
    assert_eq!(answer.status(), StatusCode::UNPROCESSABLE_ENTITY);
    let answer = say("x".repeat(api::BODY_BYTES_MAX)).await.unwrap();
    assert_eq!(
        answer.status(),
        StatusCode::UNPROCESSABLE_ENTITY,
        "there is room for images, and none for words"
    );
    for length in [api::MESSAGE_BODY_BYTES_MAX, 10 * 1024 * 1024] {
        let problem: Problem = say("x".repeat(length)).await.unwrap().json().await.unwrap();
        assert_eq!((problem.status, problem.code.word()), (413, "too_large"));
    }
}

#[tokio::test]
async fn who_sends_too_slowly_is_not_waited_for() {
    let hasty = std::time::Duration::from_millis(200);
    let world = World::with(Default::default(), |config| config.body_max = hasty).await;
    let (host, token) = (world.host(), crate::world::TOKEN);
    let head = format!(
        "POST {SAY} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: 50\r\n\r\n{{"
    );
    let answer = world.raw(head.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("too_slow"), "{answer}");
    let other = World::with(Default::default(), |config| config.head_max = hasty).await;
    let answer = other.raw(b"GET / HTTP/1.1\r\nHost: ").await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{answer}");
    let huge = format!("GET / HTTP/1.1\r\nHost: {host}\r\nX: {}\r\n\r\n", "x".repeat(40_000));
    let answer = world.raw(huge.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
}

#[tokio::test]
async fn a_panic_is_one_callers_problem_and_nobody_elses() {
    let world = World::new().await;
    let body: &[u8] = br#"{"to":{"new":{"directory":"/panic"}},"text":"x"}"#;
    for _ in 0..3 {
        assert_eq!(refused(&world, "POST", SAY, body).await, (500, "internal".to_owned(), None));
    }
    assert_eq!(world.client().me().await.unwrap().handle, "ann");
}
