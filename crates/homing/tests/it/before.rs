//! A database that an earlier version made, opened by this one: every list and receipt says what it said, and every key gets the
//! answer that it got.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use testkit::Homing;

/// The database, and what the version that made it answered, are kept with the store.
fn kept(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../store-sqlite/testdata").join(name)
}

#[test]
fn a_database_of_before_answers_as_it_did() {
    let mut homing = Homing::start(crate::EXE);
    homing.kill9();
    for left in ["homing.db", "homing.db-wal", "homing.db-shm"] {
        let _ = fs::remove_file(homing.data().join(left));
    }
    fs::copy(kept("438251b.db"), homing.data().join("homing.db")).unwrap();
    homing.restart();
    let told: Value = serde_json::from_slice(&fs::read(kept("438251b.json")).unwrap()).unwrap();
    same_reads(&homing, &told);
    for repeat in told["repeats"].as_array().unwrap() {
        let (method, path) = (repeat["method"].as_str().unwrap(), repeat["path"].as_str().unwrap());
        let key = repeat["key"].as_str().unwrap();
        let body = Some(&repeat["body"]).filter(|body| !body.is_null());
        let answered =
            homing.http().must(method, &format!("/api/v1{path}"), &[("Idempotency-Key", key)], body);
        assert_eq!(
            u64::from(answered.status),
            repeat["status"].as_u64().unwrap(),
            "{method} {path}: {}",
            answered.text()
        );
        if !repeat["answer"].is_null() {
            let answered = answered.json();
            assert!(says_as_much(&answered, &repeat["answer"]), "{method} {path}: {answered}");
        }
    }
    // A key of then cannot be compared with what is asked now: it stands for what was asked then, whatever that was.
    let first = &told["repeats"][0];
    let mut other = first["body"].clone();
    other["text"] = "something else".into();
    let answered = homing.http().post_as(first["key"].as_str().unwrap(), "/api/v1/messages", &other);
    assert_eq!(answered.json()["id"], first["answer"]["id"]);
    same_reads(&homing, &told);
}

#[track_caller]
fn same_reads(homing: &Homing, told: &Value) {
    for read in told["reads"].as_array().unwrap() {
        let path = read["path"].as_str().unwrap();
        let answered = homing.http().get(&format!("/api/v1{path}")).json();
        assert!(
            says_as_much(&answered, &read["answer"]),
            "{path}\n  now: {answered}\n then: {}",
            read["answer"]
        );
    }
}

/// The type of a refusal begins so.
const PROBLEM: &str = "urn:homing:problem:";

/// True if everything that was told then is told now, word for word. What an answer says besides, by a field that there was not
/// then, is not a change for whoever reads it.
fn says_as_much(now: &Value, then: &Value) -> bool {
    match (now, then) {
        (Value::Object(now), Value::Object(then)) => {
            // The sentences of a refusal are for people, and may become plainer; programs read its code.
            let is_sentence = |field: &str| ["title", "detail", "hint"].contains(&field);
            let is_refusal =
                then.get("type").and_then(Value::as_str).is_some_and(|of| of.starts_with(PROBLEM));
            let counts = |field: &str| !(is_refusal && is_sentence(field));
            let mut then = then.iter().filter(|(field, _)| counts(field));
            then.all(|(field, then)| now.get(field).is_some_and(|now| says_as_much(now, then)))
        }
        (Value::Array(now), Value::Array(then)) => {
            now.len() == then.len() && now.iter().zip(then).all(|(now, then)| says_as_much(now, then))
        }
        (now, then) => now == then,
    }
}
