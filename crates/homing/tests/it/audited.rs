//! Trust in the audit: what is changed in it by hand is named, and a power cut leaves no change without its
//! entry and no entry without its change.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};
use testkit::{Homing, Http, eventually};

use crate::{setup, text};

#[test]
fn whatever_is_changed_by_hand_is_named() {
    let mut homing = setup().argument("--trust-everyone").start();
    for number in 0..8 {
        homing.run(&["group", "add", &format!("team-{number}")]).expect(0);
    }
    homing.run(&["group", "rm", "nobody"]).expect(3);
    let chain = until_sealed(&homing);
    assert!(homing.terminate().success());
    let whole = homing.root().join("whole");
    copy(&homing.data(), &whole);

    let (middle, next) = (chain[4], chain[5]);
    let last = *chain.last().unwrap();
    let cases: [(&str, String, u64); 12] = [
        ("another deed", format!("UPDATE audit SET verb = 'view' WHERE entry = {middle}"), 5),
        ("somebody else", format!("UPDATE audit SET by = NULL WHERE entry = {middle}"), 5),
        ("another time", format!("UPDATE audit SET at = at + 1 WHERE entry = {middle}"), 5),
        ("about something else", format!("UPDATE audit SET subject = subject || 'x' WHERE entry = {middle}"), 5),
        ("it was refused", format!("UPDATE audit SET refused = 'not_allowed' WHERE entry = {middle}"), 5),
        ("another seal", format!("UPDATE audit_chain SET seal = zeroblob(32) WHERE entry = {middle}"), 5),
        ("not found by its deed", format!("UPDATE audit_chain SET verb = 'view' WHERE entry = {middle}"), 5),
        ("not found by what it is about", "DELETE FROM audit_about WHERE oid = 1 AND number = 5".to_owned(), 5),
        ("taken out", format!("DELETE FROM audit WHERE entry = {middle}"), 5),
        (
            "taken out with its seal",
            format!("DELETE FROM audit WHERE entry = {middle}; DELETE FROM audit_chain WHERE entry = {middle}"),
            5,
        ),
        (
            "two in each other's place",
            format!(
                "UPDATE audit SET entry = -1 WHERE entry = {middle}; UPDATE audit SET entry = {middle} WHERE entry = {next};
                 UPDATE audit SET entry = {next} WHERE entry = -1"
            ),
            5,
        ),
        (
            "the last ones cut off",
            format!("DELETE FROM audit WHERE entry = {last}; DELETE FROM audit_chain WHERE entry = {last}"),
            chain.len() as u64,
        ),
    ];
    for (what, sql, number) in cases {
        copy(&whole, &homing.data());
        let db = Connection::open(homing.data().join("homing.db")).unwrap();
        db.execute_batch(&sql).unwrap();
        assert!(db.close().is_ok());
        homing.restart();
        let verified = homing.run(&["audit", "--verify", "--json"]).json(1);
        assert_eq!(
            (&verified["ok"], &verified["broken"]["number"]),
            (&json!(false), &json!(number)),
            "{what}"
        );
        assert_eq!(verified["entries"], number - 1, "{what}: all before it hold");
        let entry = &verified["broken"]["entry"];
        if !what.contains("out") && !what.contains("off") {
            // The one that was found there.
            let found = if what.contains("place") { next } else { middle };
            assert_eq!(entry, &json!(found), "{what}");
        }
        let said = homing.run(&["audit", "--verify"]);
        assert!(said.expect(1).contains(&format!("broken at number {number}")), "{what}: {}", said.out);
        assert!(homing.terminate().success());
    }
    copy(&whole, &homing.data());
    homing.restart();
    homing.run(&["audit", "--verify"]).expect(0);
}

/// The entries of the chain in their order, once every entry is in it.
fn until_sealed(homing: &Homing) -> Vec<u32> {
    eventually("every entry is sealed", || {
        let db = look(homing);
        let count = |sql: &str| db.query_row(sql, [], |row| row.get::<_, u32>(0)).unwrap();
        let mut chain = db.prepare("SELECT entry FROM audit_chain WHERE oid = 1 ORDER BY number").unwrap();
        let chain: Vec<u32> = chain.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        (count("SELECT count(*) FROM audit WHERE oid = 1") == chain.len() as u32).then_some(chain)
    })
}

fn look(homing: &Homing) -> Connection {
    Connection::open_with_flags(homing.data().join("homing.db"), OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap()
}

/// The database and what belongs to it.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for name in ["homing.db", "homing.db-wal", "homing.db-shm"] {
        let _ = fs::remove_file(to.join(name));
        if from.join(name).exists() {
            fs::copy(from.join(name), to.join(name)).unwrap();
        }
    }
}

const WRITERS: usize = 4;
const CHANGES: usize = 200;
const KILLS: u64 = 20;

#[test]
fn kill_9_during_200_changes_leaves_no_change_without_its_entry_and_no_entry_without_its_change() {
    let config = "[limits]\nrequests_per_second = 0\n";
    let mut homing = setup().argument("--trust-everyone").config(config).start();
    let session = text(&homing.send("api:audited/one", "hello"), "session");
    let done = Arc::new(AtomicUsize::new(0));
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (http, done, session) = (homing.http(), done.clone(), session.clone());
            std::thread::spawn(move || Writer { writer, http, session, done }.write())
        })
        .collect();
    let mut kills = 0;
    while done.load(Ordering::Relaxed) < CHANGES || kills < KILLS {
        // Different moments: that is the point of it.
        std::thread::sleep(Duration::from_millis(30 + kills * 37 % 170));
        homing.kill9();
        kills += 1;
        homing.restart();
        compare(&homing);
    }
    done.store(usize::MAX / 2, Ordering::Relaxed);
    let acknowledged: BTreeSet<String> =
        writers.into_iter().flat_map(|writer| writer.join().expect("a writer")).collect();
    println!("{} changes acknowledged over {kills} kills", acknowledged.len());
    let recorded = compare(&homing);
    let missing: Vec<_> = acknowledged.difference(&recorded).collect();
    assert!(acknowledged.len() >= CHANGES && missing.is_empty(), "not in the audit: {missing:?}");
    until_sealed(&homing);
    homing.run(&["audit", "--verify"]).expect(0);
}

/// Changes who may do what, one thing after the other, each until it is acknowledged, as a careful program would.
struct Writer {
    writer: usize,
    http: Http,
    session: String,
    done: Arc<AtomicUsize>,
}

impl Writer {
    /// The words of the audit for what was acknowledged.
    fn write(self) -> Vec<String> {
        let mut acknowledged = Vec::new();
        let mut note = |words: String| {
            acknowledged.push(words);
            self.done.fetch_add(1, Ordering::Relaxed)
        };
        for round in 0.. {
            let name = format!("w{}r{round}", self.writer);
            let person = self.person(&name);
            note(format!("add_person {person}"));
            let group = json!({ "name": name });
            let group = match self.change("group", &name, "POST", "/api/v1/groups", Some(&group)) {
                Some(made) => text(&made, "id"),
                None => continue,
            };
            note(format!("make_group {group}"));
            let member = format!("/api/v1/groups/{group}/people/{person}");
            self.change("join", &name, "PUT", &member, None);
            note(format!("join {group} {person}"));
            let grants = format!("/api/v1/sessions/{}/grants", self.session);
            let give = json!({ "to": { "user": person }, "grant": "view" });
            self.change("give", &name, "PUT", &grants, Some(&give));
            note(format!("give {} {person}", self.session));
            if round % 2 == 0 {
                self.change("take", &name, "DELETE", &format!("{grants}?user={person}"), None);
                note(format!("take_back {} {person}", self.session));
                self.change("disable", &name, "POST", &format!("/api/v1/users/{person}/disable"), None);
                note(format!("disable {person}"));
            }
            let token = json!({ "name": name, "rights": ["read"] });
            if let Some(made) = self.change("token", &name, "POST", "/api/v1/tokens", Some(&token)) {
                let token = text(&made["token"], "id");
                note(format!("make_token {token}"));
                self.change("revoke", &name, "DELETE", &format!("/api/v1/tokens/{token}"), None);
                if note(format!("revoke_token {token}")) >= usize::MAX / 2 {
                    break;
                }
            }
            if self.done.load(Ordering::Relaxed) >= usize::MAX / 2 {
                break;
            }
        }
        acknowledged
    }

    /// Somebody new. Their link is shown once: whoever has missed it finds them by their name.
    fn person(&self, name: &str) -> String {
        let new = json!({ "handle": name });
        match self.change("person", name, "POST", "/api/v1/users", Some(&new)) {
            Some(added) => text(&added["user"], "id"),
            // The server may have been killed again meanwhile.
            None => text(&self.until_found(name)["items"][0], "id"),
        }
    }

    fn until_found(&self, name: &str) -> Value {
        eventually("somebody is found", || {
            let answered = self.http.ask("GET", &format!("/api/v1/users?named={name}"), &[], None).ok()?;
            (answered.status == 200).then(|| answered.json())
        })
    }

    /// None if it was done before and its answer is shown once.
    fn change(
        &self,
        what: &str,
        name: &str,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Option<Value> {
        let key = format!("{what}-{name}");
        eventually("a change is acknowledged", || {
            let answered = self.http.ask(method, path, &[("Idempotency-Key", &key)], body).ok()?;
            match answered.status {
                200 => Some(Some(answered.json())),
                // Nothing of it is sure yet.
                503 => None,
                _ => was_done(&answered.json()).then_some(None),
            }
        })
    }
}

/// True if it was done before. If the others were too fast, it is tried again.
#[track_caller]
fn was_done(problem: &Value) -> bool {
    let code = text(problem, "code");
    assert!(["idempotency_conflict", "not_found", "changed"].contains(&code.as_str()), "{problem}");
    code != "changed"
}

/// Things that are there and those that the audit says were done, in one moment; and every deed that it has.
fn compare(homing: &Homing) -> BTreeSet<String> {
    let mut db = look(homing);
    let moment = db.transaction().unwrap();
    let mut entries = moment
        .prepare("SELECT verb, session, subject FROM audit WHERE refused IS NULL AND oid = 1 ORDER BY entry")
        .unwrap();
    let entries = entries.query_map([], |row| {
        let session: Option<Vec<u8>> = row.get(1)?;
        let subject: Option<String> = row.get(2)?;
        let about = [session.map(|bits| id("ses", &bits)), subject].into_iter().flatten().collect::<Vec<_>>();
        // How much was given stands behind the ids.
        let about = about.join(" ");
        let ids: Vec<_> = about.split(' ').filter(|word| word.contains('_')).collect();
        Ok((row.get::<_, String>(0)?, ids.join(" ")))
    });
    let entries: Vec<(String, String)> = entries.unwrap().map(Result::unwrap).collect();
    let ids = |sql: &str, kinds: &[&str]| -> BTreeSet<String> {
        let mut rows = moment.prepare(sql).unwrap();
        let rows = rows.query_map([], |row| {
            let words =
                kinds.iter().enumerate().map(|(column, kind)| Ok(id(kind, &row.get::<_, Vec<u8>>(column)?)));
            Ok(words.collect::<Result<Vec<_>, rusqlite::Error>>()?.join(" "))
        });
        rows.unwrap().map(Result::unwrap).collect()
    };
    for (made, gone, sql, kinds) in [
        ("add_person", "", "SELECT person FROM persons WHERE handle IS NOT NULL AND host = 0", &["usr"][..]),
        ("make_group", "remove_group", "SELECT id FROM groups", &["grp"]),
        (
            "join",
            "leave",
            "SELECT g.id, p.person FROM group_people m JOIN groups g USING (gid) JOIN persons p USING (pid)",
            &["grp", "usr"],
        ),
        (
            "give",
            "take_back",
            "SELECT s.id, g.grantee FROM grants g JOIN sessions s USING (sid) WHERE g.kind = 0",
            &["ses", "usr"],
        ),
        ("disable", "enable", "SELECT person FROM persons WHERE disabled_at IS NOT NULL", &["usr"]),
        ("make_token", "revoke_token", "SELECT token FROM tokens WHERE purpose = 'api'", &["tok"]),
    ] {
        let mut recorded: BTreeMap<&str, i32> = BTreeMap::new();
        for (verb, about) in &entries {
            match verb {
                verb if verb == made => *recorded.entry(about).or_default() += 1,
                verb if verb == gone => drop(recorded.remove(about.as_str())),
                _ => {}
            }
        }
        let twice: Vec<_> = recorded.iter().filter(|(_, times)| **times > 1).collect();
        assert!(twice.is_empty(), "{made} is recorded twice: {twice:?}");
        let recorded: BTreeSet<String> = recorded.into_keys().map(str::to_owned).collect();
        assert_eq!(ids(sql, kinds), recorded, "what {made} has made, and what the audit says of it");
    }
    entries.into_iter().map(|(verb, about)| format!("{verb} {about}")).collect()
}

/// An id as people see it.
fn id(kind: &str, bits: &[u8]) -> String {
    const LETTERS: &[u8] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let bits = u128::from_be_bytes(bits.try_into().unwrap());
    let letters = (0..26).rev().map(|place| char::from(LETTERS[(bits >> (5 * place) & 31) as usize]));
    format!("{kind}_{}", letters.collect::<String>())
}
