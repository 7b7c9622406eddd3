//! The wall of a server as it is configured, tried again and again from inside by `homing doctor --tries`: with its own data
//! directory, what its sessions have left there, its lists and its people's users.

use std::fs::{self, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use serde_json::{Value, json};
use testkit::{Homing, Setup};

use crate::wall::{come_in, id_of, users};
use crate::yard::repository;
use crate::{count, counted, setup, text};

/// A configuration of all that widens or narrows a wall: what is allowed and hidden besides, and an agent with places of its own
/// in the home of whoever runs the server.
fn configured(place: &Path) -> String {
    let at = |name: &str| place.join(name).display().to_string();
    let [shared, reference, keys] = ["shared", "reference", "keys"].map(at);
    fs::create_dir(&shared).unwrap();
    fs::create_dir(&reference).unwrap();
    format!(
        "[wall]\nallow = [{shared:?}]\nallow_read = [{reference:?}]\nhide = [\"{keys}/\", \"/run/user\", \"/tmp/tmux-{{uid}}/\"]\n\
         [agents.sh]\nenabled = true\nkind = \"command\"\nprogram = \"/bin/sh\"\nhome_places = [\".sh/\"]\n"
    )
}

/// A place that everybody may enter, outside of the server's own directory.
fn open_place() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), Permissions::from_mode(0o755)).unwrap();
    place
}

/// Sessions leave all there is of theirs in the data directory: their own directories, a worktree, snapshots.
#[track_caller]
fn work(homing: &Homing) {
    homing.converse("api:tries/own", "!run echo mine > note");
    let place = homing.place();
    // Git works in nobody's directory but that of whom it runs as.
    fs::remove_dir_all(&place).unwrap();
    repository(&place);
    homing.give_away();
    homing.run(&["send", "--follow", "!run echo work > work.txt"]).expect(0);
    homing.run(&["scope", "enter", "shed"]).expect(0);
    homing.run(&["send", "--follow", "!run echo inside > inside.txt"]).expect(0);
}

/// The wall in the words of `doctor`, which has tried all of it so often: each attack, and the verdict.
#[track_caller]
fn tried(homing: &Homing, code: i32) -> (Vec<Value>, Value) {
    let tries = count("HOMING_DOCTOR_TRIES", 20);
    let found = homing.run(&["doctor", "--tries", &tries.to_string(), "--json"]).json(code);
    let checks = found["checks"].as_array().unwrap().iter();
    let mut attacks: Vec<Value> = checks.filter(|check| check["tries"].is_u64()).cloned().collect();
    let verdict = attacks.pop().unwrap();
    for attack in &attacks {
        assert_eq!(attack["check"], "wall", "{attack}");
        assert!(attack["tries"].as_u64() >= Some(tries), "{attack}");
        let words = format!("({} tries, {} won)", attack["tries"], attack["won"]);
        assert!(text(attack, "detail").ends_with(&words), "{attack}");
    }
    (attacks, verdict)
}

/// Every attack of every wall, and none was won; nor is there anything left of the probes.
#[track_caller]
fn none_is_won(homing: &Homing, layout: &str, users: &[&str]) {
    let entries = || {
        let below = ["", "work", "agents", "turns", "worktrees/of"].map(|below| homing.data().join(below));
        let mut names: Vec<_> = below
            .iter()
            .flat_map(|below| fs::read_dir(below).into_iter().flatten().flatten())
            .map(|entry| entry.path())
            .collect();
        names.sort();
        names
    };
    let before = entries();
    let (attacks, verdict) = tried(homing, 0);
    for attack in &attacks {
        assert_eq!((&attack["state"], &attack["won"]), (&json!("ok"), &json!(0)), "{layout}: {attack}");
    }
    assert_eq!((&verdict["state"], &verdict["won"]), (&json!("ok"), &json!(0)), "{layout}: {verdict}");
    assert!(text(&verdict, "detail").starts_with("proved: agents cannot reach"), "{verdict}");
    let says = |words: &str| attacks.iter().filter(|attack| text(attack, "detail").contains(words)).count();
    for user in users {
        assert!(says(&format!(" tries to as {user}: ")) > 40, "{layout}: as {user} in both walls");
    }
    assert!(says("tries to read what other sessions left here: cannot") > 0, "{layout}: {attacks:#?}");
    assert!(says("see what is listed nowhere: cannot") > 0, "{layout}: a team has a list");
    let after: Vec<_> = entries().into_iter().filter(|path| !before.contains(path)).collect();
    // The locks of attempts are reused, and so is the directory of credentials.
    assert!(after.iter().all(|path| path.ends_with("turns") || path.ends_with("agents")), "{after:?}");
    counted(format_args!("{layout}: {} of the wall, {}", attacks.len(), text(&verdict, "detail")));
}

#[test]
fn no_attack_is_won_on_a_server_of_one_person() {
    let place = open_place();
    let homing = setup().config(&configured(place.path())).start();
    work(&homing);
    none_is_won(&homing, "alone", &[]);
}

#[test]
fn no_attack_is_won_on_a_server_of_a_team_of_one_user() {
    let place = open_place();
    let homing = setup().ordinary().config(&configured(place.path())).start();
    homing.run(&["user", "add", "bob"]).expect(0);
    work(&homing);
    none_is_won(&homing, "a team as one user", &[]);
}

/// Only root can give people users of their own.
#[test]
fn no_attack_is_won_on_a_server_of_a_team_with_users_of_their_own() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let place = open_place();
    // The program and the way to it have to be there for these users, too.
    let exe = place.path().join("homing");
    fs::copy(crate::EXE, &exe).unwrap();
    let config = configured(place.path());
    let mut homing = Setup::new(&exe).config(&config).start();
    fs::set_permissions(homing.root(), Permissions::from_mode(0o755)).unwrap();
    let log = homing.root().join("agent.log");
    fs::write(&log, "").unwrap();
    fs::set_permissions(&log, Permissions::from_mode(0o666)).unwrap();
    let [bob, _] = ["bob", "eve"].map(|name| come_in(&homing, name));
    // Users that every machine has.
    let people = users(&[(&id_of(&homing, "bob"), "nobody"), (&id_of(&homing, "eve"), "mail")]);
    homing.terminate();
    fs::write(homing.data().join("homing.toml"), format!("{config}{people}")).unwrap();
    homing.restart();
    work(&homing);
    bob.converse(&json!({ "conversation": "api:tries/bob" }), "!run echo his > note");
    none_is_won(&homing, "a team as root with users of their own", &["nobody", "mail"]);
}

/// So the three before can fail: what is hidden unless the configuration says otherwise is allowed by it here.
#[test]
fn a_way_out_that_the_configuration_leaves_is_won_each_time_and_fails() {
    let user = match rustix::process::geteuid() {
        root if root.is_root() => 65_534,
        other => other.as_raw(),
    };
    let terminals = Path::new("/tmp").join(format!("tmux-{user}"));
    let _ = fs::DirBuilder::new().mode(0o755).create(&terminals);
    let socket = terminals.join("default");
    let listener = UnixStream::connect(&socket).is_err().then(|| {
        let _ = fs::remove_file(&socket);
        let listener = UnixListener::bind(&socket).unwrap();
        fs::set_permissions(&socket, Permissions::from_mode(0o777)).unwrap();
        fs::set_permissions(&terminals, Permissions::from_mode(0o755)).unwrap();
        listener
    });
    let homing =
        setup().ordinary().config("[wall]\nhide = []\nallow = [\"/tmp\"]\nlayout = \"list\"\n").start();
    let (attacks, verdict) = tried(&homing, 1);
    let (said, refused) = (homing.run(&["doctor"]), homing.run(&["user", "add", "bob"]));
    if listener.is_some() {
        let _ = fs::remove_file(&socket);
    }
    let (won, held): (Vec<_>, Vec<_>) = attacks.iter().partition(|attack| attack["won"] != json!(0));
    assert_eq!(won.len(), 1, "{won:#?}");
    assert!(text(won[0], "detail").contains("reach programs that start others: OPEN"), "{won:#?}");
    assert_eq!((&won[0]["won"], &won[0]["state"]), (&won[0]["tries"], &json!("fail")));
    assert!(held.len() > 15, "{held:#?}");
    assert_eq!((&verdict["won"], &verdict["state"]), (&won[0]["won"], &json!("fail")), "{verdict}");
    assert!(text(&verdict, "detail").starts_with("NOT proved"), "{verdict}");
    // Whoever has not asked for so many is warned; and nobody else is let in.
    assert!(refused.code != Some(0) && refused.err.contains("nobody else can be let in"), "{}", refused.err);
    assert!(said.expect(0).contains("(5 tries, 5 won)"), "{}", said.out);
}

#[test]
fn tries_have_bounds() {
    let homing = setup().start();
    for tries in ["0", "10001", "many"] {
        let said = homing.run(&["doctor", "--tries", tries]);
        said.expect(2);
        assert!(said.err.contains("--tries"), "{}", said.err);
    }
}
