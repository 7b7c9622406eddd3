//! Agents that try for what is not theirs: the real binary, and the scripted agent with a shell.
//!
//! A canary stands for each secret, and must not come back in what the agent says.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};
use testkit::{Homing, Http, Setup, eventually};

use crate::yard::Yard;
use crate::{homing, setup, text};

/// In the server's environment, which no agent gets.
const CANARY: &str = "canary-9f27c1";

/// The output of a shell of an agent in that conversation.
#[track_caller]
fn shell(homing: &Homing, conversation: &str, command: &str) -> String {
    homing.converse(conversation, &format!("!run {command}; echo over"))
}

#[test]
fn an_agent_cannot_read_what_is_the_servers() {
    let homing = homing();
    let data = homing.data();
    let token = std::fs::read_to_string(data.join("token")).unwrap();
    for path in ["token", "key", "homing.db", "homing.db-wal", "url", "lock"] {
        let path = data.join(path);
        assert!(path.metadata().unwrap().len() > 0, "there is something to read");
        let said = shell(&homing, "api:wall/read", &format!("head -c 1 {} && echo got it", path.display()));
        assert!(said.contains("over") && !said.contains("got it"), "{}: {said}", path.display());
    }
    let by = |way: &str| shell(&homing, "api:wall/read", way);
    let here = data.display();
    for way in [
        format!("cat /proc/self/root{here}/token"),
        format!("ln -s {here} /tmp/link-$$; cat /tmp/link-$$/token; rm /tmp/link-$$"),
        "cat ../../token".to_owned(),
        format!("ln {here}/token hard; cat hard"),
        format!("umount {here}; cat {here}/token"),
        format!("unshare -Urm sh -c 'umount {here}; cat {here}/token'"),
        format!("mkdir m; mount --bind {here} m; cat m/token"),
        format!("grep -rs hom_ {}", homing.root().display()),
    ] {
        let said = by(&way);
        assert!(said.contains("over") && !said.contains(token.trim()), "{way}: {said}");
    }
    let said = by(&format!("echo x > {here}/homing.db; rm -rf {here}/*; ls {here}"));
    assert!(said.contains("over"), "{said}");
    // All of it is still there.
    assert_eq!(std::fs::read_to_string(data.join("token")).unwrap(), token);
    assert_eq!(crate::sessions(&homing, &[]).len(), 1);
}

#[test]
fn an_agent_cannot_read_another_session() {
    let homing = homing();
    let said = shell(&homing, "api:wall/a", &format!("echo {CANARY} > note; pwd"));
    let place = said.lines().find(|line| line.contains("/ses_")).unwrap();
    let place = place.trim_start_matches("#1 ").trim();
    assert!(std::fs::read_to_string(format!("{place}/note")).unwrap().contains(CANARY));
    let said =
        shell(&homing, "api:wall/b", &format!("cat {place}/note; ls {place}; grep -r canary $HOME/.. ../.."));
    assert!(said.contains("over") && !said.contains("9f27c1"), "{said}");
    // Nor be sent there.
    let scope = json!({ "new": { "directory": place } });
    let answer = homing.http().post("/api/v1/messages", &json!({ "to": scope, "text": "x" }));
    assert!(answer.text().contains("own directory"), "{}", answer.text());
    // The first still has what it made.
    assert!(shell(&homing, "api:wall/a", "cat note").contains(CANARY));
}

#[test]
fn an_agent_cannot_look_into_or_end_the_server() {
    let homing = setup().variable("HOMING_CANARY", CANARY).start();
    let pid = homing.pid();
    let environment = std::fs::read_to_string(format!("/proc/{pid}/environ"));
    assert!(environment.is_ok_and(|text| text.contains(CANARY)) || !rustix::process::geteuid().is_root());
    let proc = format!("/proc/{pid}");
    for way in [
        format!("tr '\\0' ' ' < {proc}/environ"),
        format!("cat {proc}/root{}/token", homing.data().display()),
        format!("ls -l {proc}/fd {proc}/cwd {proc}/exe"),
        format!("for f in {proc}/fd/*; do head -c 100 $f; done"),
        format!("kill -9 {pid}; kill -STOP {pid}; kill -TERM {pid}"),
        "S=$(sed 's/.*) . \\([0-9]*\\).*/\\1/' /proc/$PPID/stat); kill -9 $S; cat /proc/$S/environ"
            .to_owned(),
        "kill -9 -1".to_owned(),
    ] {
        // The last one ends the shell, too.
        let receipt = homing.send("api:wall/look", &format!("!run {way}; echo over"));
        let receipt = homing.http().until_final(&text(&receipt, "id"));
        assert!(["answered", "failed"].contains(&text(&receipt, "state").as_str()), "{receipt}");
        assert!(!receipt.to_string().contains(CANARY), "{receipt}");
        let facts = homing.run(&["log", &text(&receipt, "session"), "--json"]);
        assert!(facts.expect(0).contains("handed") && !facts.out.contains(CANARY), "{}", facts.out);
    }
    assert_eq!(homing.pid(), pid);
    assert!(shell(&homing, "api:wall/after", "true").contains("over"));
    homing.until_nothing_is_left();
}

#[test]
fn what_is_hidden_stays_hidden_when_a_directory_above_it_gets_another_name() {
    let homing = homing();
    let config = homing.root().join("config");
    let own = config.join("homing");
    assert!(own.is_dir(), "made at the start, so that it can be held");
    std::fs::write(own.join("token"), CANARY).unwrap();
    let [from, to] = [config.clone(), config.with_extension("x")].map(|path| path.display().to_string());
    let ways = format!("mv {from} {to}; cat {from}/homing/token {to}/homing/token");
    // Each is a start of its own: in the second everything is where the first has left it.
    for conversation in ["api:wall/first", "api:wall/second"] {
        let said = shell(&homing, conversation, &ways);
        assert!(said.contains("over") && !said.contains(CANARY), "{conversation}: {said}");
    }
    // Somebody outside may rename it, and it is hidden there, too.
    std::fs::rename(&config, config.with_extension("x")).unwrap();
    let said = shell(&homing, "api:wall/third", &ways);
    assert!(said.contains("over") && !said.contains(CANARY), "{said}");
}

#[test]
fn an_agent_cannot_change_the_limits_of_the_server() {
    let homing = homing();
    let pid = homing.pid();
    let limits = || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let processors = status.lines().find(|line| line.starts_with("Cpus_allowed:")).unwrap();
        std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap() + processors
    };
    let niceness = || -> i32 {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit(") ").next().unwrap().split(' ').nth(16).unwrap().parse().unwrap()
    };
    let before = (limits(), niceness());
    for way in [
        format!("prlimit --pid {pid} --nofile=4:4"),
        format!("prlimit --pid {pid} --cpu=1:1"),
        format!("prlimit --pid {pid} --fsize=0:0"),
        format!("renice -n 19 -p {pid}"),
        "renice -n 19 -u $(id -u)".to_owned(),
        format!("ionice -c 3 -p {pid}"),
        format!("taskset -p 1 {pid}"),
        format!("chrt -i -p 0 {pid}"),
    ] {
        let said = shell(&homing, "api:wall/limits", &way).to_lowercase();
        // It has no number in there, or it is refused.
        let is_refused = ["not permitted", "no such process"].iter().any(|words| said.contains(words));
        assert!(said.contains("over") && is_refused, "{way}: {said}");
    }
    assert_eq!((limits(), niceness()), before);
    // An agent sees to itself as it likes.
    let said = shell(&homing, "api:wall/limits", "ulimit -n 50 && nice -n 5 sh -c 'ulimit -n; nice'");
    let expected = format!("50\n{}\n", (before.1 + 5).min(19));
    assert!(said.contains(&expected), "{said}");
}

#[test]
fn doctor_proves_the_wall_from_inside() {
    let homing = homing();
    let found = homing.run(&["doctor", "--json"]).json(0);
    let walls: Vec<_> =
        found["checks"].as_array().unwrap().iter().filter(|check| check["check"] == "wall").collect();
    assert!(walls.len() > 15, "{found:#}");
    assert!(walls.iter().all(|check| check["state"] == "ok"), "{walls:#?}");
    assert!(homing.run(&["doctor"]).expect(0).contains("proved: agents cannot reach"));
}

#[test]
fn doctor_says_when_there_is_no_wall() {
    let homing = setup().config("[wall]\nkind = \"off\"\n").start();
    let said = homing.run(&["doctor"]);
    assert!(said.expect(0).contains("NOT proved") && said.out.contains("OPEN"), "{}", said.out);
}

/// Blocked by a filter for everything that is started from here.
#[test]
fn where_the_kernel_lacks_what_a_wall_is_made_of_nobody_else_is_let_in() {
    testkit::lose_walls();
    let homing = homing();
    // Alone one may do without.
    assert!(shell(&homing, "api:wall/alone", "true").contains("over"));
    let lacks = ["the kernel lets agents have no namespaces", "the kernel has no Landlock"];
    let said = homing.run(&["user", "add", "bob"]);
    assert_ne!(said.code, Some(0), "{}", said.out);
    for part in lacks.iter().chain(&["nobody else can be let in", "OPEN"]) {
        assert!(said.err.contains(part), "no {part:?} in {}", said.err);
    }
    let answer = homing.http().post("/api/v1/users", &json!({ "handle": "bob" }));
    assert!(answer.text().contains("wall_not_proved"), "{}", answer.text());
    let said = homing.run(&["doctor"]);
    for part in lacks.iter().chain(&["NOT proved"]) {
        assert!(said.expect(0).contains(part), "no {part:?} in {}", said.out);
    }
    let people = homing.run(&["user", "ls"]);
    assert!(!people.expect(0).contains("bob"), "{}", people.out);
}

/// Mounts and namespaces alone leave sockets without a name open, through which a program outside could be asked for things.
#[test]
fn where_the_kernel_has_namespaces_and_no_landlock_nobody_else_is_let_in() {
    testkit::lose_landlock();
    let homing = homing();
    let token = homing.data().join("token");
    let said = shell(&homing, "api:wall/alone", &format!("cat {}", token.display()));
    assert!(
        said.contains("over") && !said.contains(&homing.http().token),
        "what is hidden is hidden: {said}"
    );
    let lacks = ["the kernel has no Landlock", "OPEN"];
    let said = homing.run(&["user", "add", "bob"]);
    assert_ne!(said.code, Some(0), "{}", said.out);
    for part in lacks.iter().chain(&["nobody else can be let in"]) {
        assert!(said.err.contains(part), "no {part:?} in {}", said.err);
    }
    let said = homing.run(&["doctor"]);
    for part in lacks.iter().chain(&["NOT proved"]) {
        assert!(said.expect(0).contains(part), "no {part:?} in {}", said.out);
    }
    assert!(!said.out.contains("the kernel lets agents have no namespaces"), "{}", said.out);
}

/// A listener in a hidden place could be reached by its name.
#[test]
fn where_only_landlock_hides_nobody_else_is_let_in() {
    testkit::lose_namespaces();
    let homing = setup().config("[wall]\nlayout = \"hide\"\n").start();
    assert!(shell(&homing, "api:wall/alone", "true").contains("over"));
    let open = "read or reach what was made while it runs: OPEN";
    let said = homing.run(&["user", "add", "bob"]);
    assert_ne!(said.code, Some(0), "{}", said.out);
    for part in ["the kernel lets agents have no namespaces", "nobody else can be let in", open] {
        assert!(said.err.contains(part), "no {part:?} in {}", said.err);
    }
    assert_eq!(said.err.matches("OPEN").count(), 1, "nothing else is open: {}", said.err);
    let said = homing.run(&["doctor"]);
    assert!(said.expect(0).contains("NOT proved") && said.out.contains(open), "{}", said.out);
    let people = homing.run(&["user", "ls"]);
    assert!(!people.expect(0).contains("bob"), "{}", people.out);
}

/// A team's agents can make no socket with which they could.
#[test]
fn where_only_landlock_lists_no_listener_is_reached_by_name() {
    testkit::lose_namespaces();
    for setup in [setup(), setup().ordinary()] {
        let homing = setup.start();
        homing.run(&["user", "add", "bob"]).expect(0);
        let found = homing.run(&["doctor", "--json"]).json(0);
        let told = |words: &str| {
            let checks = found["checks"].as_array().unwrap().iter();
            let mut told = checks.filter(|check| text(check, "detail").contains(words));
            told.next().unwrap_or_else(|| panic!("no {words:?} in {found:#}")).clone()
        };
        told("agents make no Unix sockets");
        let tried = told("for a team: an agent tries to read or reach what was made while it runs");
        assert_eq!((&tried["tries"], &tried["won"]), (&json!(5), &json!(0)), "{tried}");
        assert!(!text(&tried, "detail").contains("not there"), "there was a listener: {tried}");
        let verdict = told("proved: agents cannot reach");
        assert_eq!((&verdict["state"], &verdict["won"]), (&json!("ok"), &json!(0)), "{verdict}");
        // Everything else goes on: git, and programs that talk to each other.
        let said = shell(&homing, "api:wall/team", "git init -q . && git status --short | wc -l");
        assert!(said.contains("0\nover"), "{said}");
    }
}

#[test]
fn a_hidden_directory_that_is_not_there_is_made_empty_and_hidden_when_it_is_filled() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path().canonicalize().unwrap();
    let hide = format!("[wall]\nhide = [\"{0}/keys/\", \"{0}/named\"]\n", place.display());
    let homing = setup().config(&hide).start();
    let keys = place.join("keys");
    assert!(keys.is_dir() && !place.join("named").exists());
    let mode = std::fs::metadata(&keys).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    // One turn during which it is filled, and the next.
    let (began, go_on) = (place.join("began"), place.join("go-on"));
    let wait = format!(
        "touch {}; while [ ! -e {} ]; do sleep 0.01; done; cat {}/key; ls {1}",
        began.display(),
        go_on.display(),
        keys.display()
    );
    let receipt = homing.send("api:wall/late", &format!("!run {wait}; echo over"));
    testkit::eventually("it runs", || began.exists().then_some(()));
    std::fs::write(keys.join("key"), CANARY).unwrap();
    std::fs::write(&go_on, "").unwrap();
    let receipt = homing.http().until_final(&text(&receipt, "id"));
    assert_eq!(text(&receipt, "state"), "answered", "{receipt}");
    let facts = homing.run(&["log", &text(&receipt, "session"), "--json"]);
    assert!(facts.expect(0).contains("over") && !facts.out.contains(CANARY), "{}", facts.out);
    let said = shell(&homing, "api:wall/late", &format!("cat {}/key", keys.display()));
    assert!(said.contains("over") && !said.contains(CANARY), "{said}");
}

#[test]
fn a_user_that_cannot_be_worn_stops_the_start() {
    let mut homing = homing();
    let host = text(&homing.http().get("/api/v1/me").expect(200), "person");
    homing.terminate();
    std::fs::write(homing.data().join("homing.toml"), users(&[(&host, "no-such-user")])).unwrap();
    let said = homing.run(&["serve", "--listen", "127.0.0.1:0"]);
    said.expect(2);
    let named = format!("wall.people.{host}");
    assert!(said.err.contains(&named) && said.err.contains("no-such-user"), "{}", said.err);
}

/// `[wall.people]` as people write it.
pub(crate) fn users(people: &[(&str, &str)]) -> String {
    let lines = people.iter().map(|(person, user)| format!("{person} = {user:?}\n"));
    format!("[wall.people]\n{}", lines.collect::<String>())
}

pub(crate) fn id_of(homing: &Homing, handle: &str) -> String {
    text(&homing.run(&["user", "show", handle, "--json"]).json(0), "id")
}

#[test]
fn who_has_which_user_is_said_by_ids_and_each_user_is_one_persons_own() {
    let mut homing = homing();
    let people = ["bob", "eve"].map(|name| {
        homing.run(&["user", "add", name]).expect(0);
        id_of(&homing, name)
    });
    homing.terminate();
    let refuses = |people: &[(&str, &str)], parts: &[&str]| {
        std::fs::write(homing.data().join("homing.toml"), users(people)).unwrap();
        let said = homing.run(&["serve", "--listen", "127.0.0.1:0"]);
        said.expect(2);
        for part in parts {
            assert!(said.err.contains(part), "no {part:?} in {}", said.err);
        }
    };
    refuses(&[("bob", "nobody")], &["wall.people.bob", "by their ids", &people[0], "hint:"]);
    refuses(&[("zoe", "nobody")], &["wall.people.zoe", "there is no such person", "homing user ls"]);
    let unknown = "usr_00000000000000000000000000";
    refuses(&[(unknown, "nobody")], &[unknown, "there is no such person"]);
    if rustix::process::geteuid().is_root() {
        let shared = [(&*people[0], "nobody"), (&*people[1], "nobody")];
        refuses(&shared, &["\"nobody\" is the user of", "a user of their own"]);
    }
}

#[test]
fn nothing_is_started_for_several_people_when_the_wall_is_gone() {
    let mut homing = homing();
    homing.run(&["user", "add", "bob"]).expect(0);
    assert!(shell(&homing, "api:wall/two", "true").contains("over"));
    homing.terminate();
    let config = homing.data().join("homing.toml");
    std::fs::write(&config, "[wall]\nkind = \"off\"\n").unwrap();
    homing.restart();
    let receipt = homing.send("api:wall/two", "!run touch was-here");
    let receipt = homing.http().until_final(&text(&receipt, "id"));
    assert_eq!((text(&receipt, "state"), text(&receipt, "why")), ("failed".into(), "refused".into()));
    let notice = text(&receipt, "notice");
    assert!(notice.contains("homing doctor") && notice.contains("--trust-everyone"), "{notice}");
    // Alone again, or with everybody trusted, it goes on.
    homing.run(&["user", "disable", "bob"]).expect(0);
    assert!(shell(&homing, "api:wall/alone", "true").contains("over"));
    homing.terminate();
    std::fs::write(&config, "trust_everyone = true\n[wall]\nkind = \"off\"\n").unwrap();
    homing.restart();
    homing.run(&["user", "enable", "bob"]).expect(0);
    assert!(shell(&homing, "api:wall/trusted", "true").contains("over"));
}

/// Whoever runs us as somebody else than root hears why people cannot have users of their own.
fn is_refused_without_root() {
    let mut homing = homing();
    let host = text(&homing.http().get("/api/v1/me").expect(200), "person");
    homing.terminate();
    std::fs::write(homing.data().join("homing.toml"), users(&[(&host, "nobody")])).unwrap();
    let said = homing.run(&["serve", "--listen", "127.0.0.1:0"]);
    said.expect(2);
    assert!(
        said.err.contains("wall.people.") && said.err.contains("start the server as root"),
        "{}",
        said.err
    );
}

/// The server may have as many open as the system allows; what it starts may not.
#[test]
fn agents_and_workers_have_a_bound_on_open_files() {
    let yard = crate::yard::Yard::of(setup().config("[agents.scripted]\nlimits.files_max = 512\n"));
    let said = yard.ask("!run ulimit -n; ulimit -Hn; ulimit -n 600; echo over");
    assert!(said.contains("512\n512\n") && said.ends_with("over"), "{said}");
    yard.homing.run(&["diff"]).expect(0);
    let data = yard.homing.data().canonicalize().unwrap();
    let is_worker = |pid: &std::path::PathBuf| {
        let command = std::fs::read(pid.join("cmdline")).unwrap_or_default();
        command.ends_with(b"\0ground\0")
            && std::fs::read_link(pid.join("cwd")).is_ok_and(|at| at.starts_with(&data))
    };
    let all = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let workers: Vec<_> = all.filter(is_worker).collect();
    assert!(!workers.is_empty(), "one rests");
    for worker in workers {
        let limits = std::fs::read_to_string(worker.join("limits")).unwrap();
        let files = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
        let most: Vec<u64> = files.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        assert!(most.iter().all(|most| *most <= 65_536) && most.len() == 2, "{files}");
    }
}

/// Whoever may prompt has a shell as the session's user, and the machine's person's is root.
#[test]
fn nobody_else_is_heard_in_a_session_that_runs_as_root() {
    if !rustix::process::geteuid().is_root() {
        return is_refused_without_root();
    }
    let config = "[agents.scripted]\nbackground = \"kept\"\nworktree.setup = \"id -un > by\"\n";
    let homing = setup().config(config).start();
    let bob = come_in(&homing, "bob");
    let receipt = homing.send("api:root/host", "!run id -un");
    let (session, message) = (text(&receipt, "session"), text(&receipt, "id"));
    assert!(text(&homing.http().until_final(&message), "answer").contains("root"));
    homing.run(&["grant", "give", &session, "bob", "manage"]).expect(0);
    // His own turn, while a process of hers is kept; and words into a turn of hers.
    let to = json!({ "session": session });
    let refused = |receipt: &serde_json::Value| {
        let receipt = bob.until_final(&text(receipt, "id"));
        assert_eq!((text(&receipt, "state"), text(&receipt, "why")), ("failed".into(), "refused".into()));
        assert!(text(&receipt, "notice").contains("[wall.people]"), "{receipt}");
        assert!(!receipt.to_string().contains("root:"), "{receipt}");
    };
    refused(&bob.send(&to, "!run head -1 /etc/shadow"));
    homing.run(&["queue", "release", &session]);
    let running = homing.http().send(&to, "!sleep 3000");
    let steered = json!({ "to": to, "text": "!run head -1 /etc/shadow", "delivery": "steer" });
    let steered = bob.post("/api/v1/messages", &steered).expect(202);
    let running = homing.http().until_final(&text(&running, "id"));
    assert!(!running.to_string().contains("shadow"), "{running}");
    refused(&steered);
    // Whatever is done on the ground is done as root, too, and so is a script there.
    let path = format!("/api/v1/sessions/{session}/scope");
    let entered = bob.post(&path, &json!({ "enter": { "name": "blue" } }));
    assert!(entered.status >= 400 && entered.text().contains("[wall.people]"), "{}", entered.text());
    // The machine's person is heard as before.
    assert!(shell(&homing, "api:root/other", "id -un").contains("root"));
}

/// A look is a process on the ground, as that user. What was recorded is shown all the same.
#[test]
fn nobody_elses_looks_are_taken_in_a_session_that_runs_as_root() {
    if !rustix::process::geteuid().is_root() {
        return is_refused_without_root();
    }
    let yard = Yard::of(setup());
    let (http, bob) = (yard.homing.http(), come_in(&yard.homing, "bob"));
    yard.ask("!run echo work > work.txt");
    yard.homing.run(&["scope", "enter", "shed"]).expect(0);
    yard.ask("!run echo inside > inside.txt");
    yard.homing.run(&["scope", "exit"]).expect(0);
    yard.until_epoch(2);
    yard.ask("!run echo more > more.txt");
    yard.homing.run(&["grant", "give", &yard.session, "bob", "manage"]).expect(0);
    // Only a look tells this.
    yard.write(CANARY, "");
    let at = |what: &str| format!("/api/v1/sessions/{}/{what}", yard.session);
    assert!(http.get(&at("files")).text().contains(CANARY));
    let (nothing, all) = (json!({}), json!({ "turn": 4, "all": true }));
    let enter = json!({ "enter": { "name": "blue" } });
    for (method, what, body) in [
        ("GET", "files", None),
        ("GET", "changes?turn=4&since=4", None),
        ("GET", "changes/file?turn=4&path=more.txt", None),
        ("GET", "worktrees/shed/changes", None),
        ("GET", "worktrees/shed/changes/file?path=inside.txt", None),
        ("GET", "undo?turn=4", None),
        ("POST", "undo", Some(&all)),
        ("POST", "fork", Some(&nothing)),
        ("POST", "scope", Some(&enter)),
        ("POST", "worktrees/shed/merge", Some(&json!({ "dry_run": true }))),
        ("POST", "worktrees/shed/apply", Some(&nothing)),
        ("DELETE", "worktrees/shed", None),
        ("POST", "worktrees/shed/restore", Some(&nothing)),
    ] {
        let answer = bob.must(method, &at(what), &[], body);
        let told = answer.text();
        assert!(
            told.contains("worktree_trouble") && told.contains("[wall.people]"),
            "{method} {what}: {told}"
        );
        assert_eq!(answer.status, 409, "{method} {what}: {told}");
        assert!(!told.contains(CANARY), "{method} {what}: {told}");
    }
    // Nor are directories below what he may choose, of which the list itself takes no look.
    let place = yard.place.parent().unwrap().canonicalize().unwrap();
    let place = place.to_str().unwrap();
    yard.homing.run(&["roots", "add", place, "--to", "bob"]).expect(0);
    assert_eq!(bob.get("/api/v1/directories").expect(200)["items"], json!([place]));
    let below = format!("/api/v1/directories?directory={place}");
    let told = bob.get(&below).expect(409).to_string();
    assert!(told.contains("worktree_trouble") && told.contains("[wall.people]"), "{told}");
    assert!(http.get(&below).expect(200)["items"].as_array().is_some_and(|items| !items.is_empty()));
    // Nothing of all that has come to pass, and what is in the log and in our own records is there for him.
    let facts = bob.get(&at("facts")).expect(200).to_string();
    assert!(!facts.contains("blue"), "{facts}");
    let changes = bob.get(&at("changes?turn=2")).expect(200);
    assert_eq!((&changes["known"], &changes["files"][0]["path"]), (&json!(true), &json!("work.txt")));
    let trees = format!("/api/v1/worktrees?session={}", yard.session);
    let recorded = bob.get(&trees).expect(200);
    assert_eq!(recorded["items"][0]["name"], "shed", "{recorded}");
    assert_eq!(http.get(&trees).expect(200)["items"][0]["name"], "shed");
    // The machine's person has it looked at as before.
    assert_eq!(http.get(&at("undo?turn=4")).expect(200)["turn"], 4);
}

/// Lets somebody in, and answers them.
#[track_caller]
pub(crate) fn come_in(homing: &Homing, name: &str) -> Http {
    let link = crate::people::add(homing, &[name]);
    let code = link.rsplit('/').next().unwrap().trim();
    let signed = homing.http().post("/api/v1/sign-in", &json!({ "link": code, "for": "cli" })).expect(200);
    Http::new(&homing.http().host, &text(&signed, "secret"))
}

#[test]
fn two_people_with_users_of_their_own_run_as_these_and_reach_nothing_of_each_other() {
    if !rustix::process::geteuid().is_root() {
        return is_refused_without_root();
    }
    // The program and the way to it have to be there for these users, too.
    let open = |path: &Path, mode| std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    let bin = tempfile::tempdir().unwrap();
    let exe = bin.path().join("homing");
    std::fs::copy(crate::EXE, &exe).unwrap();
    open(bin.path(), 0o755);
    let mut homing = Setup::new(&exe).start();
    open(homing.root(), 0o755);
    let log = homing.root().join("agent.log");
    std::fs::write(&log, "").unwrap();
    open(&log, 0o666);
    // Each session works in a directory of its own, below the data directory.
    let [bob, eve, carl] = ["bob", "eve", "carl"].map(|name| come_in(&homing, name));
    // Users that every machine has.
    let config = users(&[(&id_of(&homing, "bob"), "nobody"), (&id_of(&homing, "eve"), "mail")]);
    homing.terminate();
    std::fs::write(homing.data().join("homing.toml"), config).unwrap();
    homing.restart();
    let shell = |who: &Http, name: &str, command: &str| {
        let to = json!({ "conversation": format!("api:own/{name}") });
        who.converse(&to, &format!("!run {command}; echo over"))
    };
    let said = shell(&bob, "bob", &format!("id -un; echo $USER; echo {CANARY} > note; chmod 666 note; pwd"));
    assert!(said.matches("nobody").count() >= 2, "{said}");
    let place = said.lines().map(str::trim).find(|line| line.contains("/ses_")).unwrap().to_owned();
    let uid = |path: &str| std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(path).unwrap());
    assert_eq!((uid(&place), uid(&format!("{place}/note"))), (65_534, 65_534));
    let said = shell(
        &eve,
        "eve",
        &format!("id -un; cat {place}/note; ls {place}; cat /etc/shadow {}/token", homing.data().display()),
    );
    assert!(said.contains("mail") && said.contains("over"), "{said}");
    assert!(!said.contains(CANARY) && !said.contains("note\n") && !said.contains("root:"), "{said}");
    assert!(!said.contains(homing.http().token.as_str()), "{said}");
    // Whoever has none runs nothing, because it would be as root; only the machine's person does. And bob still has what he
    // made.
    let receipt = carl.send(&json!({ "conversation": "api:own/carl" }), "!run id -un");
    let receipt = carl.until_final(&text(&receipt, "id"));
    assert_eq!((text(&receipt, "state"), text(&receipt, "why")), ("failed".into(), "refused".into()));
    assert!(text(&receipt, "notice").contains("[wall.people]"), "{receipt}");
    assert!(self::shell(&homing, "api:own/host", "id -un").contains("root"));
    assert!(shell(&bob, "bob", "cat note").contains(CANARY));
    homing.until_nothing_is_left();
}

/// Everything that looks at a repository or changes something in it runs as the person's own user, and what is kept of it is that
/// user's, too.
#[test]
fn a_person_with_a_user_of_their_own_has_turns_undone_and_worktrees_as_that_user() {
    if !rustix::process::geteuid().is_root() {
        return is_refused_without_root();
    }
    let open = |path: &Path, mode| std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    let bin = tempfile::tempdir().unwrap();
    let exe = bin.path().join("homing");
    std::fs::copy(crate::EXE, &exe).unwrap();
    open(bin.path(), 0o755);
    let mut homing = Setup::new(&exe).start();
    open(homing.root(), 0o755);
    let log = homing.root().join("agent.log");
    std::fs::write(&log, "").unwrap();
    open(&log, 0o666);
    let link = crate::people::add(&homing, &["bob"]);
    let code = link.rsplit('/').next().unwrap().trim().to_owned();
    let signed = homing.http().post("/api/v1/sign-in", &json!({ "link": code, "for": "cli" })).expect(200);
    let secret = text(&signed, "secret");
    let bob = id_of(&homing, "bob");
    let place = homing.root().join("bobs");
    crate::yard::repository(&place);
    let owned = std::process::Command::new("chown").args(["-R", "nobody"]).arg(&place).status().unwrap();
    assert!(owned.success());
    homing
        .http()
        .must("PUT", "/api/v1/roots", &[], Some(&json!({ "directory": place, "to": { "user": bob } })))
        .expect(200);
    homing.terminate();
    std::fs::write(homing.data().join("homing.toml"), users(&[(&bob, "nobody")])).unwrap();
    homing.restart();
    let http = Http::new(&homing.http().host, &secret);
    let to = json!({ "new": { "directory": place } });
    let said = http.send(&to, "!run id -un; echo work > work.txt; echo three >> kept.txt");
    http.until_final(&text(&said, "id"));
    let session = text(&said, "session");
    let at = |what: &str| format!("/api/v1/sessions/{session}/{what}");
    let changes = http.get(&at("changes?turn=1")).expect(200);
    assert_eq!(changes["files"].as_array().map(Vec::len), Some(2), "{changes}");
    let until = |is_so: &dyn Fn(&Value) -> bool| {
        eventually("it is so", || {
            let now = http.get(&format!("/api/v1/sessions/{session}")).expect(200);
            is_so(&now).then_some(now)
        })
    };
    http.post(&at("undo"), &json!({ "turn": 1, "all": true })).expect(200);
    eventually("it is undone", || (!place.join("work.txt").exists()).then_some(()));
    http.post(&at("scope"), &json!({ "enter": { "name": "shed" } })).expect(200);
    let entered = until(&|now| now["epoch"] == 1);
    let shed = std::path::PathBuf::from(text(&entered, "directory"));
    let said = http.send(&json!({ "session": session }), "!run echo inside > inside.txt; id -un");
    http.until_final(&text(&said, "id"));
    let forked = text(&http.post(&at("fork"), &json!({})).expect(201), "id");
    eventually("the fork has its worktree", || {
        let fork = http.get(&format!("/api/v1/sessions/{forked}")).expect(200);
        fork["worktree"].is_object().then_some(())
    });
    let uid = |path: &Path| std::os::unix::fs::MetadataExt::uid(&std::fs::symlink_metadata(path).unwrap());
    let nobody = 65_534;
    assert_eq!([uid(&shed), uid(&shed.join("inside.txt")), uid(&place.join("kept.txt"))], [nobody; 3]);
    // All that is kept of the repository is that user's, and no other user's to read.
    let kept = homing.data().join("git/users/nobody");
    let stores: Vec<_> = std::fs::read_dir(kept.join("snapshots")).unwrap().map(Result::unwrap).collect();
    assert!(!stores.is_empty());
    for store in &stores {
        assert_eq!(uid(&store.path()), nobody, "{:?}", store.path());
        let mode = std::fs::metadata(store.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{mode:o}");
    }
    http.post(&at("scope"), &json!({ "exit": true })).expect(200);
    until(&|now| now["epoch"] == 2);
    http.must("DELETE", &at("worktrees/shed"), &[], None).expect(200);
    http.post(&at("worktrees/shed/restore"), &json!({})).expect(200);
    assert_eq!(std::fs::read_to_string(shed.join("inside.txt")).unwrap(), "inside\n");
    assert_eq!(uid(&shed.join("inside.txt")), nobody);
    homing.until_nothing_is_left();
}
