//! One person of a team, or a stranger, takes whatever there is: the others have theirs, and whoever is beyond a bound is told which.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use testkit::{Homing, Http, eventually};

use crate::wall::come_in;
use crate::{setup, text};

/// The first line of an answer, and the connection on which it came.
fn ask_on_its_own(host: &str, request: &str) -> std::io::Result<(TcpStream, String)> {
    let mut stream = TcpStream::connect(host)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    stream.write_all(request.as_bytes())?;
    let mut head = [0; 12];
    stream.read_exact(&mut head)?;
    Ok((stream, String::from_utf8_lossy(&head).into_owned()))
}

fn figure(homing: &Homing, name: &str) -> u64 {
    let figures = homing.http().get("/metrics").text();
    let line = figures.lines().find_map(|line| line.strip_prefix(&format!("homing_{name} ")));
    line.unwrap_or_else(|| panic!("no {name}: {figures}")).parse().unwrap()
}

/// Sockets of a test: as many as the system lets it have.
fn files_max() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    getrlimit(Resource::Nofile).current.map_or(usize::MAX, |files| files as usize)
}

/// With the bounds that everybody has: 8,192 connections of a stranger, on which nothing is said.
#[test]
fn a_stranger_who_opens_every_connection_there_is_shuts_nobody_out() {
    const CONNECTIONS: usize = 8_192;
    assert!(files_max() > CONNECTIONS + 200, "the system lets a test have too few files");
    let homing = setup().start();
    let session = text(&homing.send("api:crowd/a", "hello"), "session");
    let mut follow = homing.http().follow(&format!("/api/v1/sessions/{session}/facts"), None).unwrap();
    let held: Vec<_> = (0..CONNECTIONS).map(|_| TcpStream::connect(&homing.http().host).unwrap()).collect();
    assert!(homing.converse("api:crowd/a", "still here").contains("still here"));
    follow.until(|heard| heard.json.to_string().contains("still here"));
    homing.run(&["ls"]).expect(0);
    let strangers = figure(&homing, "http_connections_strangers");
    assert!((1..=2_048).contains(&strangers), "{strangers}");
    assert!(figure(&homing, "http_connections_closed") >= (CONNECTIONS - 2_048) as u64);
    drop(held);
}

/// With the bounds that everybody has: 4,096 streams of one member, each on a connection of its own.
#[test]
fn a_member_who_opens_every_stream_there_is_shuts_nobody_out() {
    const STREAMS: usize = 4_096;
    const OWN: usize = 1_024;
    assert!(files_max() > STREAMS + 200, "the system lets a test have too few files");
    let homing = setup().argument("--trust-everyone").start();
    let bob = come_in(&homing, "bob");
    let session = text(&bob.send(&json!({ "new": {} }), "hello"), "session");
    let request = format!(
        "GET /api/v1/sessions/{session}/facts HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nAccept: text/event-stream\r\n\r\n",
        bob.host, bob.token
    );
    let (mut held, mut refused) = (Vec::new(), Vec::new());
    for _ in 0..STREAMS {
        let (stream, head) = ask_on_its_own(&bob.host, &request).unwrap();
        if head == "HTTP/1.1 200" { held.push(stream) } else { refused.push((stream, head)) }
    }
    assert_eq!((held.len(), refused.len()), (OWN, STREAMS - OWN));
    assert_eq!(figure(&homing, "http_streams"), OWN as u64);
    assert!(figure(&homing, "http_streams_refused") > 0);
    let (mut first, head) = refused.remove(0);
    let mut why = String::new();
    let _ = first.set_read_timeout(Some(Duration::from_millis(500)));
    let _ = first.read_to_string(&mut why);
    assert_eq!(head, "HTTP/1.1 503");
    assert!(why.contains("too_many_streams") && why.contains("limits.streams_per_person_max"), "{why}");
    // Whoever keeps all these connections is told of that bound, too, and nobody else notices.
    assert!(refused.iter().any(|(_, head)| head == "HTTP/1.1 429"), "{:?}", refused.last());
    let own = text(&homing.send("api:crowd/a", "hello"), "session");
    let mut follow = homing.http().follow(&format!("/api/v1/sessions/{own}/facts"), None).unwrap();
    assert!(homing.converse("api:crowd/a", "still here").contains("still here"));
    follow.until(|heard| heard.json.to_string().contains("still here"));
}

/// The stores of snapshots, and in them what a session has.
fn turns_of(homing: &Homing, session: &str) -> Vec<(u64, PathBuf)> {
    let stores = fs::read_dir(homing.data().join("git/snapshots")).into_iter().flatten().flatten();
    let turns = stores.flat_map(|store| {
        fs::read_dir(store.path().join("refs/homing").join(session)).into_iter().flatten().flatten()
    });
    let number = |turn: fs::DirEntry| Some((turn.file_name().to_str()?.parse().ok()?, turn.path()));
    let mut turns: Vec<_> = turns.filter_map(number).collect();
    turns.sort();
    turns
}

/// As if the turn had been so many hours ago.
fn set_age(turn: &Path, hours: u64) {
    let at = SystemTime::now() - Duration::from_secs(hours * 3_600);
    for moment in fs::read_dir(turn).unwrap().flatten() {
        fs::File::options().append(true).open(moment.path()).unwrap().set_modified(at).unwrap();
    }
}

/// Each turn writes a megabyte that nobody else has.
#[track_caller]
fn work(http: &Http, to: &Value, turns: usize) -> String {
    let mut session = String::new();
    let mut to = to.clone();
    for _ in 0..turns {
        let said = http.send(&to, "!run rm -f *.bin; head -c 1000000 /dev/urandom > some.bin; echo done");
        assert_eq!(text(&http.until_final(&text(&said, "id")), "state"), "answered");
        session = text(&said, "session");
        to = json!({ "session": session });
    }
    session
}

#[test]
fn the_oldest_snapshots_of_whoever_has_too_many_go_and_nobody_elses() {
    let config = "[limits]\nsnapshot_bytes_per_person_max = \"6MiB\"\n";
    let mut homing = setup().argument("--trust-everyone").config(config).start();
    let place = homing.place().canonicalize().unwrap();
    crate::yard::repository(&place);
    let bob = come_in(&homing, "bob");
    homing.run(&["roots", "add", place.to_str().unwrap(), "--to", "bob"]).expect(0);
    let there = json!({ "new": { "directory": place } });
    // Hers are older, in the same repository.
    let hers = work(&homing.http(), &there, 3);
    let his = work(&bob, &there, 8);
    let disk = |http: &Http| http.get("/api/v1/me").expect(200)["disk"].clone();
    eventually("everything is copied", || {
        (disk(&bob)["snapshot_bytes"].as_u64().unwrap() > 10_000_000).then_some(())
    });
    homing.terminate();
    for (age, session) in [(40, &hers), (20, &his)] {
        for (turn, path) in turns_of(&homing, session) {
            set_age(&path, age - turn);
        }
    }
    // It is looked at after each start.
    homing.restart();
    let left =
        |session: &str| turns_of(&homing, session).into_iter().map(|(turn, _)| turn).collect::<Vec<_>>();
    eventually("his oldest go", || (disk(&bob)["snapshot_bytes"].as_u64()? < 6 << 20).then_some(()));
    let his_left = left(&his);
    assert!((1..8).contains(&his_left.len()), "{his_left:?}");
    assert_eq!(his_left.last(), Some(&8), "the oldest went: {his_left:?}");
    assert_eq!(left(&hers), [1, 2, 3], "hers are older, and stay");
    assert_eq!(disk(&bob)["snapshot_bytes_max"], 6 << 20);

    // He is told once, and why a turn that went cannot be undone; hers are all remembered.
    let notices = |http: &Http, session: &str| -> Vec<String> {
        let facts = crate::kill::facts(http, session);
        let told = facts.iter().filter(|fact| fact["type"] == "notice").map(|fact| text(fact, "text"));
        told.filter(|words| words.contains("limits.snapshot_bytes_per_person_max")).collect()
    };
    work(&bob, &json!({ "session": his }), 2);
    work(&homing.http(), &json!({ "session": hers }), 1);
    let told = notices(&bob, &his);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("cannot be undone any more") && told[0].contains("the oldest went"), "{told:?}");
    assert_eq!(notices(&homing.http(), &hers), [""; 0]);
    let undo = |http: &Http, session: &str, turn: u64| {
        http.get(&format!("/api/v1/sessions/{session}/undo?turn={turn}")).expect(200)
    };
    let gone = undo(&bob, &his, 1);
    let why = text(&gone, "why");
    assert!(gone["possible"] == false && why.contains("limits.snapshot_bytes_per_person_max"), "{gone}");
    // What her first one wrote, others have written over since.
    let first = undo(&homing.http(), &hers, 1);
    assert_eq!((&first["files"][0]["path"], &first["touched"]), (&json!("some.bin"), &json!(["some.bin"])));
    assert_eq!(undo(&homing.http(), &hers, 4)["possible"], true);
    let doctor = homing.run(&["doctor"]);
    assert!(doctor.out.contains(&his) && !doctor.out.contains(&hers), "{}", doctor.out);
    assert!(doctor.out.contains("limits.snapshot_bytes_per_person_max"), "{}", doctor.out);

    // With as much of the last hour, nothing may go, and nothing is kept besides: it is refused by its name.
    let at = format!("/api/v1/sessions/{his}");
    bob.post(&format!("{at}/scope"), &json!({ "enter": { "name": "blue" } })).expect(200);
    eventually("it is entered", || (bob.get(&at).expect(200)["worktree"]["name"] == "blue").then_some(()));
    bob.post(&format!("{at}/scope"), &json!({ "exit": true })).expect(200);
    work(&bob, &json!({ "session": his }), 6);
    eventually("it is counted", || (disk(&bob)["snapshot_bytes"].as_u64()? >= 6 << 20).then_some(()));
    let refused = bob.must("DELETE", &format!("{at}/worktrees/blue"), &[], None);
    assert_eq!(
        (refused.status, &refused.json()["code"]),
        (429, &json!("too_much_on_disk")),
        "{}",
        refused.text()
    );
    assert!(refused.text().contains("limits.snapshot_bytes_per_person_max"), "{}", refused.text());
}
