//! The OpenAPI document: complete, self-consistent, and the one that is committed.

use serde_json::Value;
use std::collections::BTreeSet;

fn document() -> Value {
    serde_json::to_value(server::openapi_document()).unwrap()
}

fn operations(document: &Value) -> Vec<(String, String, Value)> {
    let mut all = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            all.push((path.clone(), method.clone(), operation.clone()));
        }
    }
    all
}

#[test]
fn the_committed_document_is_the_one_that_is_served() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
    let now = serde_json::to_string_pretty(&document()).unwrap() + "\n";
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(path, &now).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(committed == now, "docs/openapi.json is not up to date: run the tests with UPDATE_EXPECT=1");
}

#[test]
fn no_schema_forbids_in_one_part_what_another_part_demands() {
    let document = serde_json::to_value(document()).unwrap();
    let schemas = &document["components"]["schemas"];
    let (mut left, mut seen) = (vec![&document], 0);
    while let Some(value) = left.pop() {
        left.extend(value.as_array().into_iter().flatten());
        left.extend(value.as_object().into_iter().flat_map(|object| object.values()));
        let Some(parts) = value.get("allOf").and_then(Value::as_array) else { continue };
        let whole = |part: &'_ Value| match part["$ref"].as_str() {
            Some(named) => schemas[named.rsplit('/').next().unwrap()].clone(),
            None => part.clone(),
        };
        let parts: Vec<Value> = parts.iter().map(whole).collect();
        let names = |part: &Value| part["properties"].as_object().cloned().unwrap_or_default();
        for closed in parts.iter().filter(|part| part["additionalProperties"] == false) {
            let other = parts.iter().flat_map(names).find(|(name, _)| !names(closed).contains_key(name));
            assert_eq!(other, None, "nothing can be both: {value}");
        }
        seen += 1;
    }
    assert!(seen > 5, "{seen} schemas are made of parts");
}

#[test]
fn every_path_is_there() {
    let expected = [
        "delete /api/v1/agents/{name}/account",
        "delete /api/v1/agents/{name}/grants",
        "delete /api/v1/approvals/rules/{id}",
        "delete /api/v1/groups/{id}",
        "delete /api/v1/groups/{id}/people/{person}",
        "delete /api/v1/me/pushes/{id}",
        "delete /api/v1/messages/{id}",
        "delete /api/v1/outbox/{id}",
        "delete /api/v1/roots",
        "delete /api/v1/sessions/{id}/grants",
        "delete /api/v1/sessions/{id}/hand-over",
        "delete /api/v1/sessions/{id}/scope",
        "delete /api/v1/sessions/{id}/worktrees/{name}",
        "delete /api/v1/tokens/{id}",
        "delete /api/v1/users/{id}/password",
        "get /api/v1/agents",
        "get /api/v1/agents/{name}/account",
        "get /api/v1/agents/{name}/grants",
        "get /api/v1/approvals",
        "get /api/v1/approvals/rules",
        "get /api/v1/approvals/{id}",
        "get /api/v1/audit",
        "get /api/v1/audit/verify",
        "get /api/v1/bindings",
        "get /api/v1/directories",
        "get /api/v1/doctor",
        "get /api/v1/facts",
        "get /api/v1/groups",
        "get /api/v1/me",
        "get /api/v1/me/pushes",
        "get /api/v1/messages/{id}",
        "get /api/v1/messages/{id}/attachments/{number}",
        "get /api/v1/nodes",
        "get /api/v1/offers",
        "get /api/v1/org",
        "get /api/v1/orgs",
        "get /api/v1/outbox",
        "get /api/v1/program",
        "get /api/v1/roots",
        "get /api/v1/route",
        "get /api/v1/search",
        "get /api/v1/sessions",
        "get /api/v1/sessions/counts",
        "get /api/v1/sessions/{id}",
        "get /api/v1/sessions/{id}/changes",
        "get /api/v1/sessions/{id}/changes/file",
        "get /api/v1/sessions/{id}/commands",
        "get /api/v1/sessions/{id}/export",
        "get /api/v1/sessions/{id}/facts",
        "get /api/v1/sessions/{id}/files",
        "get /api/v1/sessions/{id}/grants",
        "get /api/v1/sessions/{id}/models",
        "get /api/v1/sessions/{id}/queue",
        "get /api/v1/sessions/{id}/readiness",
        "get /api/v1/sessions/{id}/turns",
        "get /api/v1/sessions/{id}/undo",
        "get /api/v1/sessions/{id}/worktrees/{name}/changes",
        "get /api/v1/sessions/{id}/worktrees/{name}/changes/file",
        "get /api/v1/sign-in",
        "get /api/v1/stream",
        "get /api/v1/tokens",
        "get /api/v1/usage",
        "get /api/v1/users",
        "get /api/v1/users/{id}",
        "get /api/v1/wall",
        "get /api/v1/worktrees",
        "get /healthz",
        "get /metrics",
        "get /readyz",
        "patch /api/v1/me",
        "patch /api/v1/messages/{id}",
        "patch /api/v1/org",
        "patch /api/v1/sessions/{id}",
        "patch /api/v1/users/{id}",
        "post /api/v1/approvals/rules",
        "post /api/v1/approvals/{id}",
        "post /api/v1/bindings/move",
        "post /api/v1/groups",
        "post /api/v1/messages",
        "post /api/v1/messages/{id}/stop",
        "post /api/v1/orgs",
        "post /api/v1/outbox/{id}/retry",
        "post /api/v1/sessions",
        "post /api/v1/sessions/import",
        "post /api/v1/sessions/{id}/end",
        "post /api/v1/sessions/{id}/fork",
        "post /api/v1/sessions/{id}/hand-over",
        "post /api/v1/sessions/{id}/hand-over/accept",
        "post /api/v1/sessions/{id}/hand-over/decline",
        "post /api/v1/sessions/{id}/redo",
        "post /api/v1/sessions/{id}/scope",
        "post /api/v1/sessions/{id}/stop-background",
        "post /api/v1/sessions/{id}/undo",
        "post /api/v1/sessions/{id}/worktrees/{name}/apply",
        "post /api/v1/sessions/{id}/worktrees/{name}/merge",
        "post /api/v1/sessions/{id}/worktrees/{name}/restore",
        "post /api/v1/sign-in",
        "post /api/v1/sign-out",
        "post /api/v1/tokens",
        "post /api/v1/users",
        "post /api/v1/users/{id}/disable",
        "post /api/v1/users/{id}/enable",
        "post /api/v1/users/{id}/hand-over",
        "post /api/v1/users/{id}/link",
        "post /api/v1/worktrees/collect",
        "put /api/v1/agents/{name}/account",
        "put /api/v1/agents/{name}/grants",
        "put /api/v1/groups/{id}/people/{person}",
        "put /api/v1/me/password",
        "put /api/v1/me/pushes",
        "put /api/v1/roots",
        "put /api/v1/sessions/{id}/grants",
        "put /api/v1/sessions/{id}/marks",
        "put /api/v1/sessions/{id}/queue",
    ];
    let document = document();
    let there: BTreeSet<String> =
        operations(&document).into_iter().map(|(path, method, _)| format!("{method} {path}")).collect();
    assert_eq!(there, expected.map(String::from).into());
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
}

#[test]
fn every_operation_documents_its_problems_and_has_a_name_of_its_own() {
    let document = document();
    let mut names = BTreeSet::new();
    for (path, method, operation) in operations(&document) {
        assert!(names.insert(operation["operationId"].as_str().unwrap().to_owned()), "{method} {path}");
        assert!(operation["summary"].is_string(), "{method} {path}");
        let responses = operation["responses"].as_object().unwrap();
        assert!(responses.keys().any(|status| status.starts_with('2')), "{method} {path}");
        if path == "/healthz" {
            continue;
        }
        for status in ["401", "403", "421", "503"] {
            assert!(responses.contains_key(status), "{method} {path} lacks {status}");
        }
        if operation.get("requestBody").is_some() {
            for status in ["400", "408", "413", "415", "422"] {
                assert!(responses.contains_key(status), "{method} {path} lacks {status}");
            }
        }
        for (status, response) in responses.iter().filter(|(status, _)| !status.starts_with('2')) {
            let schema = &response["content"]["application/problem+json"]["schema"]["$ref"];
            assert_eq!(schema, "#/components/schemas/Problem", "{method} {path} {status}");
        }
    }
}

#[test]
fn every_reference_leads_somewhere() {
    let document = document();
    let mut stack = vec![&document];
    while let Some(value) = stack.pop() {
        match value {
            Value::Object(object) => {
                if let Some(Value::String(reference)) = object.get("$ref") {
                    let pointer = reference.strip_prefix('#').unwrap();
                    assert!(document.pointer(pointer).is_some(), "{reference}");
                }
                stack.extend(object.values());
            }
            Value::Array(items) => stack.extend(items),
            _ => {}
        }
    }
}

#[test]
fn requests_refuse_what_they_do_not_know() {
    let document = document();
    let schemas = &document["components"]["schemas"];
    for name in [
        "ToSession",
        "ToConversation",
        "ToNew",
        "SayText",
        "SayParts",
        "EditText",
        "EditParts",
        "Hold",
        "IfNew",
        "NewSession",
        "SessionChange",
        "MarksChange",
        "Order",
        "Move",
        "ApprovalAnswer",
        "NewRule",
        "NewAccount",
        "MyChange",
        "NewPassword",
        "NewPush",
        "PushKeys",
        "NewPerson",
        "PersonChange",
        "HandOver",
        "NewGroup",
        "ToUser",
        "ToGroup",
        "ToOrg",
        "NewGrant",
        "Root",
        "NewToken",
        "OrgChange",
        "NewOrg",
        "NewOwner",
        "EnterWorktree",
        "OwnWorktree",
        "ScopeEnter",
        "ScopeExit",
        "ScopeSet",
        "ScopeSetting",
        "ScopeRelink",
        "UndoTurn",
        "NewFork",
        "PasswordSignIn",
        "LinkSignIn",
        "RestoreWorktree",
        "CollectWorktrees",
    ] {
        assert_eq!(schemas[name]["additionalProperties"], Value::Bool(false), "{name}: {}", schemas[name]);
    }
    for part in schemas["Part"]["oneOf"].as_array().unwrap() {
        assert_eq!(part["additionalProperties"], Value::Bool(false), "{part}");
    }
}

#[test]
fn every_code_is_documented_where_it_can_be_met() {
    let document = document();
    let words: Vec<&str> = document["components"]["schemas"]["Code"]["enum"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(Value::as_str)
        .collect();
    let known: Vec<&str> = api::Code::ALL.iter().map(|code| code.word()).collect();
    assert_eq!(words, known);
    // Met by no operation, but where there is none or before there is one; and one that must not be met at all.
    let elsewhere = ["no_such_path", "method_not_allowed", "needs_tls", "internal"];
    let described = document["paths"].to_string();
    for word in known.iter().filter(|word| !elsewhere.contains(word)) {
        assert!(described.contains(&format!("`{word}`")), "{word}");
    }
}
