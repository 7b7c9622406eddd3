//! Starts and ends of servers: one per directory, everything kept, nobody let in without a token.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use serde_json::json;

use crate::{homing, sessions, setup, text};

/// It does not wait for the first one, which stays.
#[test]
fn a_second_server_is_refused_at_once_and_told_who_has_it() {
    let homing = homing();
    let second = homing.run(&["serve", "--listen", "127.0.0.1:0"]);
    second.expect(5);
    let url = format!("http://{}", homing.http().host);
    for part in [&format!("process {}", homing.pid()), &url, "since 20", "hint:"] {
        assert!(second.err.contains(part), "no {part:?} in {}", second.err);
    }
    // And the first one has not noticed.
    assert_eq!(homing.run(&["send", "-f", "hello"]).expect(0), "#1 hello\n");
}

#[test]
fn up_prints_its_address_and_a_link_that_works_once() {
    let homing = homing();
    let mut command = homing.command();
    command.args(["up", "--listen", "127.0.0.1:0", "--data"]).arg(homing.root().join("other"));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let printed = BufReader::new(child.stdout.take().unwrap());
    let lines: Vec<String> = printed.lines().take(2).map(Result::unwrap).collect();
    let [url, link] = &lines[..] else { panic!("{lines:?}") };
    let path = link.strip_prefix(url).unwrap();
    let browser = testkit::Http::new(url, "");
    assert_eq!(browser.get(path).status, 200, "who only looks has not used it");
    let signed_in = browser.must("POST", path, &[], None);
    assert_eq!((signed_in.status, signed_in.header("location")), (303, Some("/")));
    assert!(signed_in.header("set-cookie").unwrap().contains("HttpOnly"));
    assert_eq!(browser.get(path).status, 410);
    assert_eq!(browser.get("/api/v1/sessions").status, 401);
    let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_restart_keeps_sessions_and_what_was_promised() {
    let mut homing = homing();
    let body = json!({ "to": { "conversation": "api:tests/1" }, "text": "hello" });
    let first = homing.http().post_as("key-1", "/api/v1/messages", &body).expect(202);
    homing.http().until_final(&text(&first, "id"));
    for round in 0..2 {
        if round == 0 {
            assert!(homing.terminate().success());
        }
        homing.restart();
        let same = homing.http().post_as("key-1", "/api/v1/messages", &body).expect(202);
        assert_eq!((&same["id"], &same["session"]), (&first["id"], &first["session"]));
    }
    assert_eq!(homing.converse("api:tests/1", "again"), "#2 again");
    let other = json!({ "to": { "conversation": "api:tests/1" }, "text": "other" });
    let conflict = homing.http().post_as("key-1", "/api/v1/messages", &other).expect(409);
    assert_eq!(conflict["code"], "idempotency_conflict");
    assert_eq!(sessions(&homing, &["--all"]).len(), 1);
}

#[test]
fn a_token_that_was_thrown_away_lets_nobody_in() {
    let mut homing = homing();
    let old = homing.http().token.clone();
    assert!(homing.terminate().success());
    std::fs::remove_file(homing.data().join("token")).unwrap();
    homing.restart();
    assert_ne!(homing.http().token, old);
    let asks = |token: &str| testkit::Http::new(&homing.http().host, token).get("/api/v1/me").status;
    assert_eq!((asks(&old), asks(&homing.http().token)), (401, 200));
}

#[test]
fn a_server_whose_file_cannot_be_read_is_not_ready() {
    let homing = homing();
    homing.http().get("/readyz").expect(200);
    let file = rusqlite::Connection::open(homing.data().join("homing.db")).unwrap();
    file.execute_batch("PRAGMA foreign_keys = OFF; DROP TABLE sessions").unwrap();
    assert_eq!(homing.http().get("/readyz").status, 503);
}

#[test]
fn sigterm_hands_everything_over() {
    let mut homing = homing();
    let running = homing.send("api:tests/1", "!hang");
    let waiting = homing.send("api:tests/1", "next");
    testkit::eventually("it acts", || homing.agent_log().iter().find(|ran| ran.event == "start").map(drop));
    let status = homing.terminate();
    assert_eq!(status.code(), Some(0), "{}", homing.server_log());
    assert!(!homing.data().join("url").exists());
    homing.until_nothing_is_left();
    homing.restart();
    let interrupted = homing.http().until_final(&text(&running, "id"));
    assert_eq!(
        (&interrupted["state"], &interrupted["why"]),
        (&json!("failed"), &json!("interrupted")),
        "{interrupted}"
    );
    assert_eq!(homing.http().until_final(&text(&waiting, "id"))["state"], "answered");
    let starts = homing
        .agent_log()
        .into_iter()
        .filter(|ran| ran.event == "start" && ran.message == text(&running, "id"));
    assert_eq!(starts.count(), 1, "a turn that may have acted is not run again");
}

#[test]
fn a_second_signal_ends_it_at_once() {
    // An agent that takes its time to go keeps the first word waiting.
    let mut homing = setup().config("[limits]\nstop_grace = \"10m\"\n").start();
    homing.send("api:tests/1", "!hang");
    testkit::eventually("it acts", || homing.agent_log().iter().find(|ran| ran.event == "start").map(drop));
    homing.signal(rustix::process::Signal::TERM);
    testkit::eventually("it is going", || homing.server_log().contains("going:").then_some(()));
    assert_eq!(homing.terminate().code(), Some(1));
    homing.until_nothing_is_left();
}

#[test]
fn a_kill_leaves_nothing_running_and_nothing_undecided() {
    let mut homing = homing();
    let running = homing.send("api:tests/1", "!fork-bomb 3\n!hang");
    // It speaks when it has written down what it was told.
    testkit::eventually("it has said something", || {
        let facts = crate::kill::facts(&homing.http(), &text(&running, "session"));
        facts.iter().any(|fact| fact["type"] == "text").then_some(())
    });
    homing.kill9();
    homing.until_nothing_is_left();
    homing.restart();
    assert_eq!(homing.http().until_final(&text(&running, "id"))["why"], "interrupted");
    assert_eq!(homing.converse("api:tests/1", "next"), "#2 next");
}

#[test]
fn without_a_server_one_is_told_how_to_start_one() {
    let mut homing = homing();
    homing.terminate();
    for arguments in [&["send", "hello"][..], &["ls"], &["chat"]] {
        let said = homing.run(arguments);
        said.expect(4);
        assert!(said.err.contains("no server is running") && said.err.contains("homing up"), "{}", said.err);
    }
    // The same if it was killed, and left its address behind.
    homing.restart();
    homing.kill9();
    let said = homing.run(&["ls", "--json"]);
    assert_eq!(said.json(4)["code"], "unreachable");
}

#[test]
fn the_environment_points_elsewhere_and_needs_a_token() {
    let homing = homing();
    let url = format!("http://{}", homing.http().host);
    let elsewhere = |token: Option<&str>, url: &str| {
        let mut command = homing.command();
        command.env("HOMING_DATA", homing.root().join("nowhere")).env("HOMING_URL", url).arg("ls");
        command.envs(token.map(|token| ("HOMING_TOKEN", token)));
        testkit::CommandOutput::from(command.output().unwrap())
    };
    elsewhere(Some(&homing.http().token), &url).expect(0);
    elsewhere(Some("wrong"), &url).expect(4);
    elsewhere(None, &url).expect(2);
    elsewhere(Some("x"), "ftp://example.org").expect(2);
    // What is named comes first.
    let mut command = homing.command();
    command.env("HOMING_URL", "http://127.0.0.1:1").env("HOMING_TOKEN", "x");
    command.args(["ls", "--data"]).arg(homing.data());
    testkit::CommandOutput::from(command.output().unwrap()).expect(0);
}

#[test]
fn other_machines_are_kept_out_unless_somebody_says_so() {
    let homing = homing();
    let said = homing.run(&["serve", "--listen", "0.0.0.0:0"]);
    said.expect(2);
    for part in ["can be reached from other machines", "--tls-certificate", "--behind-proxy"] {
        assert!(said.err.contains(part), "{}", said.err);
    }
    let listen = homing.http().host;
    let mut command = homing.command();
    command.args(["serve", "--listen", &listen, "--data"]).arg(homing.root().join("other"));
    let taken = testkit::CommandOutput::from(command.output().unwrap());
    taken.expect(2);
    assert!(taken.err.contains("127.0.0.1:0 takes a free port"), "{}", taken.err);
}

#[test]
fn what_is_private_is_private() {
    let homing = homing();
    homing.converse("api:tests/1", "hello");
    for name in ["", "token", "url", "lock", "homing.db"] {
        let path = homing.data().join(name);
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o007, 0, "{} is {mode:o}", path.display());
    }
    let token = std::fs::metadata(homing.data().join("token")).unwrap().permissions().mode();
    assert_eq!(token & 0o777, 0o600);
}

#[test]
fn the_configuration_is_used() {
    let homing = setup().config("[policy]\nturn_max = \"1s\"\n[limits]\nopen_max = 1\n").start();
    let receipt = homing.send("api:tests/1", "!hang");
    assert_eq!(homing.http().until_final(&text(&receipt, "id"))["why"], "time_limit");
    let second = homing.run(&["send", "--new", "hello"]);
    second.expect(1);
    assert!(second.err.contains("homing end"), "{}", second.err);
}

#[test]
fn a_wrong_configuration_is_told_with_its_line() {
    let homing = homing();
    let path = homing.root().join("wrong.toml");
    std::fs::write(&path, "log = \"info\"\n\nlisen = \"127.0.0.1:1\"\n").unwrap();
    let other = homing.root().join("other");
    let (path, other) = (path.to_str().unwrap(), other.to_str().unwrap());
    let said = homing.run(&["serve", "--config", path, "--data", other]);
    said.expect(2);
    assert!(
        said.err.contains("line 3") && said.err.contains("lisen") && said.err.contains("homing config"),
        "{}",
        said.err
    );
    homing.run(&["serve", "--config", "/nowhere.toml", "--data", other]).expect(2);
}

#[test]
fn a_data_directory_that_others_can_read_is_closed_or_refused() {
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let set_mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    // Somebody made it to put the configuration there.
    let mut homing = setup().config("").start();
    for open_to in [0o755, 0o770, 0o705] {
        homing.terminate();
        set_mode(&homing.data(), open_to);
        homing.restart();
        assert_eq!(mode(&homing.data()), 0o700);
    }
    assert!(homing.server_log().matches("it is closed to them now").count() >= 3, "{}", homing.server_log());
    let refuses = |path: &Path, why: &str| {
        let said = homing.run(&["serve", "--listen", "127.0.0.1:0", "--data", path.to_str().unwrap()]);
        said.expect(2);
        for part in [why, "hint:", "chmod 700"] {
            assert!(said.err.contains(part), "no {part:?} in {}", said.err);
        }
        assert_eq!(mode(path), 0o755, "it was left as it is");
    };
    let place = |name: &str| {
        let path = homing.root().join(name);
        fs::create_dir(&path).unwrap();
        set_mode(&path, 0o755);
        path
    };
    let shared = place("shared");
    fs::write(shared.join("notes"), "of somebody else").unwrap();
    refuses(&shared, "it holds other things");
    let theirs = place("theirs");
    if std::os::unix::fs::chown(&theirs, Some(65_534), None).is_ok() {
        refuses(&theirs, "it belongs to another user");
    }
}
