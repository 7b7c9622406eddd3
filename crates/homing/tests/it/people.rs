//! A team's story by the command line: somebody is let in, signs in, is given things and loses them, and all of it is in
//! the audit.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use testkit::{CommandOutput, Homing};

use crate::{setup, text};

/// Somebody else, with a home of their own, who knows the server only by what they were told.
pub(crate) struct Person {
    home: PathBuf,
}

impl Person {
    pub(crate) fn new(homing: &Homing, name: &str) -> Self {
        let home = homing.root().join(name);
        fs::create_dir_all(&home).unwrap();
        Self { home }
    }

    pub(crate) fn command(&self, homing: &Homing) -> Command {
        let mut command = homing.command();
        for name in ["HOMING_DATA", "XDG_DATA_HOME", "HOMING_ROOTS"] {
            command.env_remove(name);
        }
        command.env("HOME", &self.home).env("XDG_CONFIG_HOME", self.home.join("config"));
        command.current_dir(&self.home);
        command
    }

    pub(crate) fn run(&self, homing: &Homing, arguments: &[&str]) -> CommandOutput {
        self.type_in(homing, arguments, "")
    }

    pub(crate) fn type_in(&self, homing: &Homing, arguments: &[&str], read: &str) -> CommandOutput {
        speak(self.command(homing).args(arguments), read)
    }

    pub(crate) fn credentials(&self) -> PathBuf {
        self.home.join("config").join("homing").join("credentials.json")
    }
}

fn speak(command: &mut Command, read: &str) -> CommandOutput {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A command that does not read to the end is no failure of the test.
    let _ = child.stdin.take().unwrap().write_all(read.as_bytes());
    child.wait_with_output().unwrap().into()
}

pub(crate) fn url_of(homing: &Homing) -> String {
    format!("http://{}", homing.http().host)
}

pub(crate) fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Lets somebody in: their link, on one line.
pub(crate) fn add(homing: &Homing, arguments: &[&str]) -> String {
    homing.run(&[&["user", "add"], arguments].concat()).expect(0).to_owned()
}

#[test]
fn a_team_shares_a_session_and_loses_it_again() {
    let homing = setup().argument("--trust-everyone").start();
    let bob = Person::new(&homing, "bob");
    let url = url_of(&homing);

    // Bob is let in, comes in by the link, and chooses a password.
    let link = add(&homing, &["bob", "--email", "bob@example.org", "--name", "Bob"]);
    assert!(link.starts_with(&format!("{url}/in/")), "{link}");
    bob.run(&homing, &["whoami"]).expect(4);
    let signed = bob.type_in(&homing, &["login", "--link"], &link);
    assert!(signed.expect(0).contains("as bob"), "{}", signed.out);
    assert_eq!(mode(&bob.credentials()), 0o600);
    bob.type_in(&homing, &["login", "--link"], &link).expect(4);
    bob.type_in(&homing, &["user", "password"], "correct horse\n").expect(0);
    bob.run(&homing, &["logout"]).expect(0);
    assert!(!fs::read_to_string(bob.credentials()).unwrap().contains("hmg_"));
    bob.run(&homing, &["whoami"]).expect(4);
    let login = ["login", "--url", &url, "--user", "bob@example.org"];
    bob.type_in(&homing, &login, "wrong horse\n").expect(4);
    bob.type_in(&homing, &login, "correct horse\n").expect(0);
    let me = bob.run(&homing, &["whoami", "--json"]).json(0);
    assert_eq!((text(&me, "handle"), text(&me, "role")), ("bob".into(), "member".into()));

    // What is somebody else's is not there.
    homing.run(&["send", "-f", "hello"]).expect(0);
    let session = crate::sessions(&homing, &[])[0].clone();
    let session = text(&session, "id");
    bob.run(&homing, &["show", &session]).expect(3);
    assert_eq!(bob.run(&homing, &["ls", "--json"]).json(0)["items"].as_array().unwrap().len(), 0);

    // Given to a group: first to view, then to prompt.
    homing.run(&["group", "add", "team"]).expect(0);
    homing.run(&["group", "join", "team", "bob@example.org"]).expect(0);
    homing.run(&["grant", "give", &session, "group:team", "view"]).expect(0);
    assert!(homing.run(&["grant", "ls", &session]).expect(0).contains("group:team"));
    bob.run(&homing, &["show", &session]).expect(0);
    let refused = bob.run(&homing, &["send", "--session", &session, "me too"]);
    refused.expect(1);
    assert!(refused.err.contains("you were not given `prompt` on this session"), "{}", refused.err);
    assert!(refused.err.contains("its owner can give it"), "{}", refused.err);
    homing.run(&["grant", "give", &session, "group:team", "prompt"]).expect(0);
    let said = bob.run(&homing, &["send", "-f", "--session", &session, "me", "too"]);
    assert_eq!(said.expect(0), "#2 me too\n");
    let again = bob.run(&homing, &["send", "--json", "--session", &session, "more"]).json(0);
    let receipt = homing.run(&["show", &text(&again, "id"), "--wait", "30", "--json"]).json(0);
    assert_eq!(text(&receipt["by"], "handle"), "bob", "what he said is his");
    let shown = homing.run(&["show", &text(&again, "id")]).expect(0).to_owned();
    assert!(shown.lines().any(|line| line.starts_with("sender") && line.ends_with(" bob")), "{shown}");
    let owner = text(&homing.run(&["whoami", "--json"]).json(0), "handle");
    let log = bob.run(&homing, &["log", &session]).expect(0).to_owned();
    assert!(log.contains(&format!("bob says: more  ({})", text(&again, "id"))), "{log}");
    assert!(log.contains(&format!("{owner} says: hello")), "{log}");
    let shown = bob.run(&homing, &["show", &session]).expect(0).to_owned();
    assert!(shown.lines().any(|line| line.starts_with("owner") && line.ends_with(&owner)), "{shown}");

    // A viewer reads, whatever they are given.
    let vic = Person::new(&homing, "vic");
    let link = add(&homing, &["vic", "--role", "viewer"]);
    vic.type_in(&homing, &["login", "--link"], &link).expect(0);
    homing.run(&["grant", "give", &session, "vic", "manage"]).expect(0);
    assert!(vic.run(&homing, &["log", &session]).expect(0).contains("me too"));
    vic.run(&homing, &["send", "--session", &session, "may I"]).expect(1);
    vic.run(&homing, &["user", "add", "eve"]).expect(1);

    // And it is taken back.
    homing.run(&["grant", "take", &session, "group:team"]).expect(0);
    bob.run(&homing, &["show", &session]).expect(3);
    homing.run(&["user", "disable", "vic"]).expect(0);
    vic.run(&homing, &["whoami"]).expect(4);

    audited(&homing, &bob);
}

/// Everything above is in the audit, in a chain that holds, and without a secret.
fn audited(homing: &Homing, bob: &Person) {
    bob.run(homing, &["audit"]).expect(1);
    let lines = homing.run(&["audit", "--jsonl", "--since", "1h"]);
    let entries: Vec<Value> =
        lines.expect(0).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for what in
        ["add_person", "sign_in", "set_password", "make_group", "join", "give", "take_back", "disable"]
    {
        assert!(entries.iter().any(|entry| entry["what"] == what), "{what}");
    }
    let refused = homing.run(&["audit", "--json", "--who", "bob", "--what", "say"]).json(0);
    let refused = refused["items"].as_array().unwrap();
    assert!(refused.iter().any(|entry| entry["refused"] == "not_allowed"), "{refused:?}");
    assert!(!lines.out.contains("correct horse") && !lines.out.contains("hmg_"));
    assert!(!homing.server_log().contains("correct horse") && !homing.server_log().contains("hmg_"));
    let verified = homing.run(&["audit", "--verify", "--json"]).json(0);
    assert_eq!(verified["ok"], true);
    assert!(homing.run(&["audit", "--verify"]).expect(0).contains("the chain holds"));
}

#[test]
fn a_token_for_a_program_is_shown_once_and_dies_at_once() {
    let homing = setup().argument("--trust-everyone").start();
    let url = url_of(&homing);
    let bob = Person::new(&homing, "bob");
    bob.type_in(&homing, &["login", "--link"], &add(&homing, &["bob"])).expect(0);
    let made =
        bob.run(&homing, &["token", "make", "reader", "--rights", "read", "--expires", "1d", "--json"]);
    let made = made.json(0);
    let (secret, id) = (text(&made, "secret"), text(&made["token"], "id"));
    assert!(secret.starts_with("hmg_a_"), "{secret}");
    let program = |arguments: &[&str]| {
        let mut command = bob.command(&homing);
        speak(command.args(arguments).env("HOMING_URL", &url).env("HOMING_TOKEN", &secret), "")
    };
    let me = program(&["whoami", "--json"]).json(0);
    assert_eq!(me["rights"], serde_json::json!(["read"]));
    let refused = program(&["send", "hello"]);
    refused.expect(1);
    assert!(refused.err.contains("homing whoami"), "{}", refused.err);
    assert!(refused.err.contains("this credential has no right to prompt"), "{}", refused.err);
    let listed = bob.run(&homing, &["token", "ls"]);
    assert!(listed.expect(0).contains(&id) && !listed.out.contains(&secret));
    homing.run(&["token", "revoke", &id]).expect(0);
    program(&["whoami"]).expect(4);
    homing.run(&["token", "revoke", &id]).expect(3);
    bob.run(&homing, &["token", "make", "x", "--rights", "read", "--expires", "soon"]).expect(2);
}

#[test]
fn a_token_that_may_only_read_signs_itself_out() {
    let homing = setup().start();
    let made = homing.run(&["token", "make", "reader", "--rights", "read", "--json"]).json(0);
    let reader = testkit::Http::new(&url_of(&homing), &text(&made, "secret"));
    assert_eq!(reader.get("/api/v1/me").status, 200);
    assert_eq!(reader.must("POST", "/api/v1/sign-out", &[], None).status, 200);
    assert_eq!(reader.get("/api/v1/me").status, 401);
}

#[test]
fn why_a_message_of_somebody_who_lost_the_grant_went_no_further_is_said_alike() {
    let homing = setup().argument("--trust-everyone").start();
    let bob = Person::new(&homing, "bob");
    bob.type_in(&homing, &["login", "--link"], &add(&homing, &["bob"])).expect(0);
    homing.run(&["send", "-f", "hello"]).expect(0);
    let session = text(&crate::sessions(&homing, &[])[0], "id");
    homing.run(&["grant", "give", &session, "bob", "prompt"]).expect(0);
    let say = |words: &str| {
        text(&bob.run(&homing, &["send", "--json", "--session", &session, words]).json(0), "id")
    };
    let (runs, waits) = (say("!sleep 60000"), say("later"));
    testkit::eventually("the first one runs", || {
        let shown = homing.run(&["show", "--json", &runs]).json(0);
        (text(&shown, "state") == "running").then_some(())
    });
    homing.run(&["grant", "take", &session, "bob"]).expect(0);
    for (message, state, why) in [(&runs, "stopped", "revoked"), (&waits, "refused", "not_allowed")] {
        let receipt = homing.run(&["show", "--json", "--wait", "30", message]).json(0);
        assert_eq!((text(&receipt, "state"), text(&receipt, "why")), (state.to_owned(), why.to_owned()));
        assert!(text(&receipt, "hint").contains("its sender may no longer prompt here"), "{receipt}");
        let shown = homing.run(&["show", message]).expect(0).to_owned();
        let said = format!("{state} (its sender may no longer prompt here)");
        assert!(shown.contains(&said), "{shown}");
    }
    let log = homing.run(&["log", &session]).expect(0).to_owned();
    assert_eq!(log.matches("(its sender may no longer prompt here)").count(), 2, "{log}");
}

#[test]
fn a_session_is_handed_over_with_a_yes_and_what_waited_in_it_ends() {
    let homing = setup().argument("--trust-everyone").start();
    let bob = Person::new(&homing, "bob");
    bob.type_in(&homing, &["login", "--link"], &add(&homing, &["bob"])).expect(0);
    let runs = text(&homing.run(&["send", "--new", "--json", "!sleep 60000"]).json(0), "id");
    let session = text(&homing.run(&["show", &runs, "--json"]).json(0), "session");
    let waits = text(&homing.run(&["send", "--session", &session, "--json", "later"]).json(0), "id");
    homing.run(&["grant", "hand-over", &session, "bob"]).expect(0);
    bob.run(&homing, &["show", &session]).expect(3);
    let offers = bob.run(&homing, &["grant", "offers", "--json"]).json(0);
    assert_eq!(text(&offers["items"][0], "session"), session, "{offers}");
    assert!(homing.run(&["grant", "offers"]).expect(0).contains(&session));
    homing.run(&["grant", "keep", &session]).expect(0);
    bob.run(&homing, &["grant", "accept", &session]).expect(3);

    homing.run(&["grant", "hand-over", &session, "bob"]).expect(0);
    let refused = bob.run(&homing, &["grant", "accept", &session]);
    refused.expect(1);
    assert!(refused.err.contains("homing roots add"), "who accepts it could have made it: {}", refused.err);
    homing.run(&["roots", "add", homing.place().to_str().unwrap(), "--to", "bob"]).expect(0);
    bob.run(&homing, &["grant", "accept", &session]).expect(0);
    homing.run(&["show", &session]).expect(3);
    let owner = text(&bob.run(&homing, &["show", &session, "--json"]).json(0), "owner");
    assert_eq!(owner, text(&bob.run(&homing, &["whoami", "--json"]).json(0), "person"));
    let ended = |message: &str| {
        let receipt = bob.run(&homing, &["show", "--json", "--wait", "30", message]).json(0);
        (text(&receipt, "state"), receipt["why"].as_str().map(str::to_owned))
    };
    assert_eq!(ended(&runs), ("stopped".to_owned(), Some("handed_over".to_owned())));
    assert_eq!(ended(&waits), ("refused".to_owned(), Some("handed_over".to_owned())));
    let shown = homing.run(&["show", &waits]).expect(0).to_owned();
    assert!(shown.contains("refused (the session was handed over)"), "{shown}");
    let shown = homing.run(&["show", &runs]).expect(0).to_owned();
    assert!(shown.contains("stopped (the session was handed over)"), "{shown}");
    let log = bob.run(&homing, &["log", &session]).expect(0).to_owned();
    assert!(log.contains(&format!("what waited has ended: {waits} of ")), "{log}");
    let audit = homing.run(&["audit", "--jsonl"]).expect(0).to_owned();
    for verb in ["hand_over", "take_offer_back", "accept_offer", "end_with_hand_over"] {
        assert!(audit.contains(&format!("\"{verb}\"")), "{verb}: {audit}");
    }
}

#[test]
fn two_people_who_use_the_same_address_of_a_program_never_meet() {
    let mut homing = setup().argument("--trust-everyone").start();
    let bob = Person::new(&homing, "bob");
    bob.type_in(&homing, &["login", "--link"], &add(&homing, &["bob"])).expect(0);
    let made = bob.run(&homing, &["token", "make", "ci", "--rights", "read,prompt,manage", "--json"]).json(0);
    let secret = text(&made, "secret");
    for address in ["api:ci/build", "acp:zed/1", "mcp:desk/1"] {
        let to = serde_json::json!({ "conversation": address });
        let route = format!("/api/v1/route?conversation={address}");
        let (ann, his) = (homing.http(), testkit::Http::new(&url_of(&homing), &secret));
        let nothing = his.get(&route).expect(200);
        let hers = ann.send(&to, "from ann");
        // Also if she has shared it with everybody: it is hers that the words mean when she says them.
        homing.run(&["grant", "give", &text(&hers, "session"), "org", "manage"]).expect(0);
        assert_eq!(his.get(&route).expect(200), nothing, "he learns nothing of it");
        let first = his.send(&to, "from bob");
        assert_ne!(first["session"], hers["session"], "{address}");
        assert_eq!((&first["new"], &first["previous"]), (&true.into(), &Value::Null), "{first}");
        homing.terminate();
        homing.restart();
        let (ann, his) = (homing.http(), testkit::Http::new(&url_of(&homing), &secret));
        assert_eq!(ann.send(&to, "ann again")["session"], hers["session"]);
        assert_eq!(his.send(&to, "bob again")["session"], first["session"]);
        let bound = |http: &testkit::Http| {
            let items =
                http.get("/api/v1/bindings?limit=100").expect(200)["items"].as_array().unwrap().clone();
            let of =
                items.into_iter().filter(|row| row["address"] == address).map(|row| row["session"].clone());
            of.collect::<Vec<_>>()
        };
        assert_eq!(
            (bound(&ann), bound(&his)),
            (vec![hers["session"].clone()], vec![first["session"].clone()])
        );
        // He moves his own, and hers stays where it is.
        let moved = serde_json::json!({ "address": address, "session": hers["session"] });
        his.post("/api/v1/bindings/move", &moved).expect(200);
        assert_eq!(
            (bound(&ann), bound(&his)),
            (vec![hers["session"].clone()], vec![hers["session"].clone()])
        );
    }
}

#[test]
fn a_session_is_handed_over_to_nobody_who_could_do_nothing_with_it() {
    let homing = setup().argument("--trust-everyone").start();
    for (name, role) in [("vic", "viewer"), ("gus", "member")] {
        add(&homing, &[name, "--role", role]);
    }
    homing.run(&["user", "disable", "gus"]).expect(0);
    homing.run(&["send", "-f", "hello"]).expect(0);
    let session = text(&crate::sessions(&homing, &[])[0], "id");
    let me = text(&homing.run(&["whoami", "--json"]).json(0), "person");
    let id = |name: &str| {
        let found = homing.http().get(&format!("/api/v1/users?named={name}")).expect(200);
        text(&found["items"][0], "id")
    };
    for name in ["vic", "gus"] {
        let to = serde_json::json!({ "to": id(name) });
        for path in [format!("sessions/{session}"), format!("users/{me}")] {
            let refused = homing.http().post(&format!("/api/v1/{path}/hand-over"), &to).expect(409);
            assert_eq!(text(&refused, "code"), "cannot_own", "{refused}");
        }
    }
    assert_eq!(text(&homing.run(&["show", "--json", &session]).json(0), "owner"), me, "nothing was changed");
}

#[test]
fn a_name_that_two_orgs_use_signs_in_with_its_org_and_whoever_guesses_learns_nothing() {
    let homing = setup().argument("--trust-everyone").start();
    let url = url_of(&homing);
    let (one, two) = (Person::new(&homing, "one"), Person::new(&homing, "two"));
    one.type_in(&homing, &["login", "--link"], &add(&homing, &["bob"])).expect(0);
    let link = homing.run(&["org", "add", "other", "--owner", "bob"]).expect(0).to_owned();
    two.type_in(&homing, &["login", "--link"], &link).expect(0);
    for person in [&one, &two] {
        person.type_in(&homing, &["user", "password"], "correct horse\n").expect(0);
    }
    let login =
        |name: &str| two.type_in(&homing, &["login", "--url", &url, "--user", name], "correct horse\n");
    let (twice, never) = (login("bob"), login("nobody-at-all"));
    twice.expect(4);
    never.expect(4);
    assert!(twice.err.contains("ORG/NAME"), "{}", twice.err);
    assert_eq!(twice.err, never.err, "it does not say whether there is one");
    login("other/bob").expect(0);
}

#[test]
fn the_server_that_is_meant_is_found_in_one_order() {
    let homing = setup().argument("--trust-everyone").start();
    let url = url_of(&homing);
    let bob = Person::new(&homing, "bob");
    bob.type_in(&homing, &["login", "--link"], &add(&homing, &["bob"])).expect(0);
    let data = homing.data().display().to_string();
    let token = fs::read_to_string(homing.data().join("token")).unwrap().trim().to_owned();
    let owner = text(&homing.run(&["whoami", "--json"]).json(0), "handle");
    let who = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = bob.command(&homing);
        command.args(["whoami", "--json"]).args(arguments).envs(variables.iter().copied());
        text(&speak(&mut command, "").json(0), "handle")
    };
    assert_eq!(who(&[], &[]), "bob", "what `homing login` keeps, if nothing else is meant");
    assert_eq!(who(&[], &[("HOMING_URL", &url)]), "bob", "also for a server that is named");
    assert_eq!(who(&[], &[("HOMING_URL", &url), ("HOMING_TOKEN", &token)]), owner);
    let file = homing.data().join("token").display().to_string();
    assert_eq!(who(&[], &[("HOMING_URL", &url), ("HOMING_TOKEN_FILE", &file)]), owner);
    assert_eq!(who(&[], &[("HOMING_DATA", &data)]), owner);
    assert_eq!(who(&["--data", &data], &[("HOMING_URL", "http://127.0.0.1:1")]), owner);

    // A server that runs here comes before a sign-in elsewhere.
    let here = bob.home.join(".local").join("share").join("homing");
    fs::create_dir_all(&here).unwrap();
    for name in ["url", "token"] {
        fs::copy(homing.data().join(name), here.join(name)).unwrap();
    }
    assert_eq!(who(&[], &[]), owner);
    fs::remove_file(here.join("url")).unwrap();
    assert_eq!(who(&[], &[]), "bob");

    fs::set_permissions(bob.credentials(), fs::Permissions::from_mode(0o644)).unwrap();
    let refused = bob.run(&homing, &["whoami"]);
    refused.expect(2);
    assert!(refused.err.contains("chmod 600"), "{}", refused.err);
}

#[test]
fn nobody_is_let_in_without_a_wall_or_trust() {
    let homing = setup().start();
    let wall = homing.http().get("/api/v1/wall").expect(200);
    if wall["proved"] == true {
        assert!(add(&homing, &["bob"]).contains("/in/"));
        return;
    }
    let refused = homing.run(&["user", "add", "bob"]);
    refused.expect(1);
    assert!(refused.err.contains("--trust-everyone"), "{}", refused.err);
    assert_eq!(homing.run(&["user", "ls", "--json"]).expect(0).lines().count(), 1);
}

#[test]
fn the_machines_person_may_choose_their_home_and_the_first_directory_and_adds_more() {
    let mut homing = setup().variable("HOMING_ROOTS", "").start();
    let roots = |homing: &Homing| {
        let page = homing.run(&["roots", "--json"]).json(0);
        let items = page["items"].as_array().unwrap().clone();
        items.iter().map(|root| PathBuf::from(text(root, "directory"))).collect::<Vec<_>>()
    };
    let real = |path: PathBuf| fs::canonicalize(path).unwrap();
    let mut expected = vec![real(homing.home()), real(homing.place())];
    let mut found = roots(&homing);
    expected.sort();
    found.sort();
    assert_eq!(found, expected);
    let elsewhere = homing.root().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let make = ["send", "--new", "--directory", elsewhere.to_str().unwrap(), "hello"];
    let refused = homing.run(&make);
    refused.expect(1);
    assert!(refused.err.contains("homing roots add"), "{}", refused.err);
    homing.run(&["roots", "add", elsewhere.to_str().unwrap()]).expect(0);
    homing.run(&make).expect(0);
    homing.terminate();
    homing.restart();
    assert_eq!(roots(&homing).len(), 3, "a restart adds none");
    homing.run(&["roots", "rm", real(elsewhere.clone()).to_str().unwrap()]).expect(0);
    homing.run(&make).expect(1);
}

#[test]
fn the_directories_to_choose_from_are_those_below_ones_roots() {
    let homing = setup().argument("--trust-everyone").start();
    let bob = Person::new(&homing, "bob");
    bob.type_in(&homing, &["login", "--link"], &add(&homing, &["bob"])).expect(0);
    let secret = text(
        &bob.run(&homing, &["token", "make", "page", "--rights", "read,prompt", "--json"]).json(0),
        "secret",
    );
    let his = testkit::Http::new(&url_of(&homing), &secret);
    let none = serde_json::json!({"items": [], "more": false});
    assert_eq!(his.get("/api/v1/directories").expect(200), none);

    let place = fs::canonicalize(homing.place()).unwrap();
    let root = place.join("his");
    for directory in ["his/b/deep", "his/a b", "his/.hidden", "hers/secret"] {
        fs::create_dir_all(place.join(directory)).unwrap();
    }
    fs::write(root.join("file"), "").unwrap();
    std::os::unix::fs::symlink("../hers", root.join("link")).unwrap();
    let name = root.to_str().unwrap();
    let ask = |directory: &Path| {
        let written = directory.to_str().unwrap().replace(' ', "%20");
        his.get(&format!("/api/v1/directories?directory={written}"))
    };
    let refused = |directory: &Path| ask(directory).expect(403)["code"].clone();
    assert_eq!(refused(&root), "directory_not_yours", "it is not yet");
    homing.run(&["roots", "add", name, "--to", "bob"]).expect(0);
    assert_eq!(his.get("/api/v1/directories").expect(200)["items"], serde_json::json!([name]));
    let found = ask(&root).expect(200);
    let expected = [format!("{name}/a b"), format!("{name}/b")];
    assert_eq!(
        found,
        serde_json::json!({"items": expected, "more": false}),
        "no file, no link, nothing hidden"
    );
    assert_eq!(ask(&root.join("b")).expect(200)["items"], serde_json::json!([format!("{name}/b/deep")]));
    // What is beside it, whether it is there or not, and where a link leads, is nobody's but theirs.
    for beside in ["hers", "hers/secret", "nowhere", "his/link", "his/link/secret", "his/../hers"] {
        assert_eq!(refused(&place.join(beside)), "directory_not_yours", "{beside}");
    }
    for odd in ["his/nowhere", "his/file"] {
        assert_eq!(ask(&place.join(odd)).expect(409)["code"], "bad_directory", "{odd}");
    }
}

#[test]
fn a_link_in_a_root_tells_nothing_of_what_is_outside() {
    let homing = setup().variable("HOMING_ROOTS", "").start();
    let outside = homing.root().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "").unwrap();
    let link = homing.place().join("link");
    let ask = |target: &str| {
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(outside.join(target), &link).unwrap();
        let link = link.to_str().unwrap();
        let sent = homing.run(&["send", "--new", "--directory", link, "hello"]);
        sent.expect(1);
        let rule = homing.run(&["approve", "rules", "add", "--deny", "--directory", link, "--json"]).json(0);
        (sent.err.clone(), text(&rule, "directory").to_owned())
    };
    let told = ask("");
    assert_eq!(told.1, link.to_str().unwrap(), "a rule is compared as it is written");
    for target in ["file", "none", "file/none"] {
        assert_eq!(ask(target), told, "{target}");
    }
    let near = homing.place().join("none");
    let missing = homing.run(&["send", "--new", "--directory", near.to_str().unwrap(), "hello"]);
    missing.expect(1);
    assert!(missing.err.contains("does not exist"), "{}", missing.err);
}

#[test]
fn an_org_of_its_own_is_somebody_elses() {
    let homing = setup().argument("--trust-everyone").start();
    let olga = Person::new(&homing, "olga");
    let link = homing.run(&["org", "add", "other", "--owner", "olga"]).expect(0).to_owned();
    olga.type_in(&homing, &["login", "--link"], &link).expect(0);
    homing.run(&["send", "-f", "hello"]).expect(0);
    assert_eq!(olga.run(&homing, &["user", "ls", "--json"]).expect(0).lines().count(), 1);
    assert_eq!(olga.run(&homing, &["ls", "--json"]).json(0)["items"].as_array().unwrap().len(), 0);
    olga.run(&homing, &["org", "ls"]).expect(1);
    assert_eq!(homing.run(&["org", "ls", "--json"]).json(0)["items"].as_array().unwrap().len(), 2);
    let set = olga.run(&homing, &["org", "set", "--share-new", "view", "--open-max", "7", "--json"]).json(0);
    assert_eq!((&set["settings"]["share_new"], &set["settings"]["open_max"]), (&"view".into(), &7.into()));
    let unset =
        olga.run(&homing, &["org", "set", "--share-new", "none", "--open-max", "none", "--json"]).json(0);
    assert_eq!(unset["settings"], serde_json::json!({}));
}
