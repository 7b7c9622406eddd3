//! Repositories that lie, by the real binary: the server opens nothing of them, and what does is behind the session's wall.
//!
//! Each was seen to work against a server that ran git itself.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use testkit::{eventually, leftovers};

use crate::cut_points::workers_of;
use crate::liars::{Pulse, SECRET, holds};
use crate::yard::{Yard, git, repository};

/// More than a worker may have, and nothing on the disk.
pub(crate) const GIANT_BYTES: u64 = 3 << 30;
/// The server's memory may grow by so much while something is looked at.
pub(crate) const GROWTH_KB_MAX: u64 = 32 * 1024;

/// Alternates alone bring objects, and a reference alone names what is not there: together they are a colleague's tree.
#[test]
fn a_colleagues_commits_cannot_be_borrowed_behind_a_wall_that_lists() {
    for is_linked in [false, true] {
        let yard = Yard::of(crate::setup().config("[wall]\nlayout = \"list\"\n"));
        let colleague = yard.homing.root().join("colleague");
        repository(&colleague);
        fs::write(colleague.join("private.txt"), SECRET).unwrap();
        git(&colleague, &["add", "."]);
        git(&colleague, &["commit", "-q", "-m", "private"]);
        let theirs = colleague.join(".git");
        yard.ask("!run echo work > work.txt");
        fs::write(dot_git(&yard).join("objects/info/alternates"), format!("{}/objects\n", theirs.display()))
            .unwrap();
        let main = dot_git(&yard).join("refs/heads/main");
        fs::remove_file(&main).unwrap();
        if is_linked {
            symlink(theirs.join("refs/heads/main"), &main).unwrap();
        } else {
            fs::copy(theirs.join("refs/heads/main"), &main).unwrap();
        }
        // Whoever sees both has it: this is what a worker that sees too much would take along.
        assert_eq!(yard.git(&["show", "main:private.txt"]), SECRET);
        let heard = look_at_everything(&yard);
        assert!(!heard.contains(SECRET), "{heard}");
        assert!(!holds(&yard.homing.data(), SECRET), "linked: {is_linked}");
    }
}

/// A server that waits for a giant to be read stands still for longer; one on a machine that is busy does not.
const STALL: Duration = Duration::from_secs(1);

/// Everything that looks at a repository or changes something in it, by its answers.
#[track_caller]
fn look_at_everything(yard: &Yard) -> String {
    let http = yard.homing.http();
    let at = |what: &str| format!("/api/v1/sessions/{}/{what}", yard.session);
    let mut heard = String::new();
    for what in ["changes?turn=1", "files", "readiness"] {
        heard += &http.get(&at(what)).text();
    }
    heard += &http.get("/api/v1/worktrees").text();
    heard += &http.post(&at("undo"), &json!({ "turn": 1, "all": true })).text();
    yard.ask("!run echo again > again.txt");
    heard += &http.post(&at("scope"), &json!({ "enter": { "name": "shed" } })).text();
    heard += &eventually("it is entered, or not", || {
        let facts = yard.facts();
        let is_over = |fact: &Value| fact["type"] == "errand_failed" || fact["type"] == "scope_changed";
        facts.iter().any(is_over).then(|| facts.iter().map(Value::to_string).collect::<String>())
    });
    heard + &yard.homing.server_log()
}

/// A yard whose first turn has changed a file.
#[track_caller]
fn worked_in() -> Yard {
    let yard = Yard::new();
    yard.ask("!run echo work > work.txt");
    yard
}

fn dot_git(yard: &Yard) -> PathBuf {
    yard.place.join(".git")
}

#[test]
fn a_link_to_the_servers_token_tells_nothing_of_it() {
    for part in ["commondir", "shallow", "index", "HEAD", "packed-refs", "config", "info/exclude"] {
        let yard = worked_in();
        let token_path = yard.homing.root().join("data/token");
        let token = fs::read_to_string(&token_path).unwrap();
        let path = dot_git(&yard).join(part);
        let _ = fs::remove_file(&path);
        symlink(&token_path, &path).unwrap();
        let heard = look_at_everything(&yard);
        assert!(!heard.contains(token.trim()), "{part}: {heard}");
    }
}

#[test]
fn giants_cost_the_server_neither_time_nor_memory() {
    for part in ["index", "config", "packed-refs", "shallow"] {
        let yard = worked_in();
        let path = dot_git(&yard).join(part);
        let _ = fs::remove_file(&path);
        File::create(&path).unwrap().set_len(GIANT_BYTES).unwrap();
        let before = memory_kb(yard.homing.pid());
        let pulse = Pulse::of(yard.homing.http());
        let heard = look_at_everything(&yard);
        let (slowest, beats) = pulse.stop();
        assert!(slowest < STALL, "{part}: {slowest:?} of {beats}");
        let grown = memory_kb(yard.homing.pid()).saturating_sub(before);
        assert!(grown < GROWTH_KB_MAX, "{part}: {grown} kB more; {heard}");
    }
}

/// A worker that rests is kept for the next call, and goes before the server does.
#[test]
fn a_server_that_ends_politely_leaves_no_worker_behind() {
    let mut yard = worked_in();
    assert!(yard.homing.terminate().success());
    assert_eq!(yard.homing.leftovers(), []);
}

#[test]
fn a_pipe_in_the_place_of_a_file_leaves_nothing_behind() {
    for part in [".gitignore", ".gitattributes", ".git/info/exclude", ".git/packed-refs", ".worktreeinclude"]
    {
        let yard = worked_in();
        let path = yard.place.join(part);
        let _ = fs::remove_file(&path);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        for _ in 0..3 {
            leave_early(&yard);
        }
        if part == ".gitignore" {
            // It is one that git reads when it is asked for the files: there was something to be left behind.
            eventually("a git is at it", || {
                leave_early(&yard);
                (gits_in(&yard.place) > 0).then_some(())
            });
        }
        fs::remove_file(&path).unwrap();
        eventually("no git is left", || (gits_in(&yard.place) == 0).then_some(()));
    }
}

/// One look at a directory that never ends leaves no place for a second one of the same person, and says so.
#[test]
fn one_person_does_not_have_everything_looked_at_at_once() {
    let yard = Yard::of(crate::setup().config("[limits]\nlooks_per_person_max = 1\n"));
    // Git asks it about what it does not know.
    yard.write("new.txt", "new");
    let pipe = yard.place.join(".gitignore");
    fs::remove_file(&pipe).unwrap();
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let http = yard.homing.http();
    let files = format!("/api/v1/sessions/{}/files", yard.session);
    let first = std::thread::spawn({
        let (http, files) = (yard.homing.http(), files.clone());
        move || http.get(&files).status
    });
    eventually("it is being looked at", || {
        http.get("/metrics").text().contains("homing_http_looks 1\n").then_some(())
    });
    let refused = http.get("/api/v1/worktrees");
    assert_eq!(refused.status, 429);
    assert!(refused.text().contains("limits.looks_per_person_max"), "{}", refused.text());
    assert_eq!(first.join().unwrap(), 503, "the look itself is ended");
    assert_eq!(http.get("/api/v1/worktrees").status, 200, "its place is free");
}

/// With one worker for all sessions of a person each waits its turn, and none is left out.
#[test]
fn sessions_share_the_workers_of_their_person() {
    let homing = crate::setup().config("[limits]\nworkers_per_person_max = 1\n").start();
    let http = homing.http();
    let sessions: Vec<String> = (0..3)
        .map(|number| {
            let place = homing.root().join(format!("place{number}"));
            crate::yard::repository(&place);
            let to = json!({ "new": { "directory": place } });
            crate::text(&http.send(&to, "!run echo work > work.txt"), "session")
        })
        .collect();
    for session in &sessions {
        let changes = eventually("its changes are known", || {
            let answer = http.get(&format!("/api/v1/sessions/{session}/changes?turn=1")).json();
            (answer["known"] == true).then_some(answer)
        });
        assert_eq!(changes["files"][0]["path"], "work.txt", "{changes}");
    }
}

/// Neither names the other, or anybody else.
#[test]
fn a_worker_has_processes_of_its_own_beside_the_agents() {
    let yard = Yard::new();
    let said = yard.ask("!run readlink /proc/self/ns/pid; echo work > work.txt");
    let agents = said[said.find("pid:[").expect("a namespace")..].lines().next().unwrap().to_owned();
    let namespace = |pid: u32| fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
    let server = yard.homing.pid();
    // It rests for a while after each call.
    let workers = eventually("a worker is there", || {
        let _ = yard.homing.http().get(&format!("/api/v1/sessions/{}/files", yard.session));
        let all = leftovers(&yard.homing.data(), &[server]);
        let worker = all.into_iter().find(|process| process.arguments.ends_with(" ground"))?;
        namespace(worker.pid)
    });
    assert_ne!(Some(&workers), namespace(server).as_ref());
    assert_ne!(workers, PathBuf::from(agents));
}

/// Everything that a turn needs of its directory, and what is looked at after it, is one start of a worker. It rests for a while, and
/// then the next turn needs none.
#[test]
fn a_turn_starts_one_worker_at_most_and_none_where_one_rests() {
    for people in [1, 2] {
        let homing = crate::homing();
        if people > 1 {
            // In a team the wall lists, and a worker is of its directory, too.
            homing.run(&["user", "add", "bob"]).expect(0);
        }
        let (http, server) = (homing.http(), homing.pid());
        let starts = Starts::below(server);
        let place = homing.root().join("place");
        repository(&place);
        let to = json!({ "new": { "directory": place } });
        let said = http.send(&to, "!run echo work > work.txt");
        http.until_final(&crate::text(&said, "id"));
        let session = crate::text(&said, "session");
        for turn in 1..=4 {
            let known = eventually("its changes are known", || {
                let answer = http.get(&format!("/api/v1/sessions/{session}/changes?turn={turn}")).json();
                (answer["known"] == true).then_some(answer)
            });
            assert_eq!(known["files"][0]["path"], "work.txt", "{known}");
            http.get(&format!("/api/v1/sessions/{session}/files")).expect(200);
            http.get(&format!("/api/v1/sessions/{session}/undo?turn={turn}")).expect(200);
            let started = starts.take();
            // Those who are slower than a worker rests have it started once more.
            assert!(started.len() <= 1, "looks at turn {turn} of {people} people: {started:?}");
            assert!(turn > 1 || started.len() == 1, "{people} people: nobody looked");
            let before = workers_of(server);
            let again = http.send(&json!({ "session": session }), &format!("!run echo {turn} > work.txt"));
            http.until_final(&crate::text(&again, "id"));
            let started = starts.take();
            let is_rested = before.is_subset(&workers_of(server)) && !before.is_empty();
            let most = usize::from(!is_rested);
            assert!(started.len() <= most, "turn {turn} of {people} people: {started:?} beside {before:?}");
        }
    }
}

/// Whoever watches which workers are started below a server, as long as it is there.
struct Starts {
    server: u32,
    is_over: Arc<AtomicBool>,
    /// All that have been there, and those that came since somebody asked.
    seen: Arc<Mutex<[BTreeSet<u32>; 2]>>,
    watching: Option<std::thread::JoinHandle<()>>,
}

impl Starts {
    fn below(server: u32) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let seen = Arc::new(Mutex::new([workers_of(server), BTreeSet::new()]));
        let (over, noted) = (is_over.clone(), seen.clone());
        // A worker that has done its work rests before it goes, so that none is too short to be seen.
        let watching = std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                note(&noted, server);
            }
        });
        Self { server, is_over, seen, watching: Some(watching) }
    }

    /// Those that were started since this was asked last.
    fn take(&self) -> BTreeSet<u32> {
        note(&self.seen, self.server);
        std::mem::take(&mut self.seen.lock().unwrap()[1])
    }
}

fn note(seen: &Mutex<[BTreeSet<u32>; 2]>, server: u32) {
    let [all, new] = &mut *seen.lock().unwrap();
    let now = workers_of(server);
    new.extend(now.difference(all));
    all.extend(now);
}

impl Drop for Starts {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(watching) = self.watching.take() {
            let _ = watching.join();
        }
    }
}

/// Asks for the files, and goes away before there is an answer.
fn leave_early(yard: &Yard) {
    let http = yard.homing.http();
    let mut line = TcpStream::connect(&http.host).unwrap();
    let asked = format!(
        "GET /api/v1/sessions/{}/files HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
        yard.session, http.host, http.token
    );
    line.write_all(asked.as_bytes()).unwrap();
    line.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let _ = line.read(&mut [0]);
}

/// Processes of git that have this directory open or in their words.
fn gits_in(place: &Path) -> usize {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let words = all.filter_map(|entry| {
        let words = fs::read(entry.path().join("cmdline")).ok()?;
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        Some([words, environment].concat())
    });
    let place = place.to_str().unwrap().to_owned();
    words
        .filter(|words| {
            let words = String::from_utf8_lossy(words);
            let program = words.split('\0').next().unwrap_or_default();
            Path::new(program).file_name().is_some_and(|name| name == "git") && words.contains(&place)
        })
        .count()
}

/// The most memory that a process has had.
pub(crate) fn memory_kb(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Names of the worktrees that a process sees, in whichever layout.
fn trees_seen_by(pid: u32, data: &Path) -> Vec<String> {
    let within = format!("/proc/{pid}/root{}", data.join("worktrees").display());
    let (mut found, mut left) = (Vec::new(), vec![(PathBuf::from(within), 0)]);
    while let Some((place, depth)) = left.pop() {
        for entry in fs::read_dir(place).into_iter().flatten().flatten() {
            found.push(entry.file_name().to_string_lossy().into_owned());
            if depth < 2 {
                left.push((entry.path(), depth + 1));
            }
        }
    }
    found
}

#[test]
fn a_worker_sees_the_worktrees_of_its_session_and_no_other() {
    let yard = Yard::new();
    let (http, data) = (yard.homing.http(), yard.homing.data());
    let enter = |session: &str, name: &str| {
        let wish = json!({ "enter": { "name": name } });
        http.post(&format!("/api/v1/sessions/{session}/scope"), &wish).expect(200);
        let entered = crate::yard::until(&yard.homing, session, |now| now["epoch"] == 1);
        PathBuf::from(crate::text(&entered, "directory"))
    };
    enter(&yard.session, "blue");
    let place = yard.homing.root().join("other");
    crate::yard::repository(&place);
    let said = http.send(&json!({ "new": { "directory": place } }), "hello");
    http.until_final(&crate::text(&said, "id"));
    let other = crate::text(&said, "session");
    let red = enter(&other, "red");
    // What is entered later is seen neither.
    let seen = |session: &str, own: &str| {
        eventually("its worker is there", || {
            http.get(&format!("/api/v1/sessions/{session}/files")).expect(200);
            let all = leftovers(&data, &[yard.homing.pid()]);
            let workers = all.into_iter().filter(|process| process.arguments.ends_with(" ground"));
            let mut seen = workers.map(|worker| trees_seen_by(worker.pid, &data));
            seen.find(|names| names.iter().any(|name| name.starts_with(own)))
        })
    };
    for (session, own, foreign) in [(&yard.session, "blue-", "red-"), (&other, "red-", "blue-")] {
        let names = seen(session, own);
        assert!(!names.iter().any(|name| name.starts_with(foreign)), "{names:?}");
    }
    // A fork is made from another session's worktree, which its worker sees for that.
    fs::write(red.join("work.txt"), "work").unwrap();
    let said = http.send(&json!({ "session": other }), "!run echo more >> work.txt");
    http.until_final(&crate::text(&said, "id"));
    let fork = http.post(&format!("/api/v1/sessions/{other}/fork"), &json!({})).expect(201);
    let fork = crate::text(&fork, "id");
    let forked = crate::yard::until(&yard.homing, &fork, |now| now["worktree"].is_object());
    let forked = PathBuf::from(crate::text(&forked, "directory"));
    assert_eq!(fs::read_to_string(forked.join("work.txt")).unwrap(), "workmore\n");
    assert_ne!(forked, red);
}

#[test]
fn behind_a_wall_that_lists_a_worker_sees_the_snapshots_of_its_own_repository_alone() {
    let yard = Yard::of(crate::setup().config("[wall]\nlayout = \"list\"\n"));
    let (http, data) = (yard.homing.http(), yard.homing.data());
    let place = yard.homing.root().join("other");
    crate::yard::repository(&place);
    let said = http.send(&json!({ "new": { "directory": place } }), "!run echo new > new.txt");
    http.until_final(&crate::text(&said, "id"));
    let other = crate::text(&said, "session");
    let stores = data.join("git/snapshots");
    assert_eq!(fs::read_dir(&stores).unwrap().count(), 2);
    for (session, place) in [(&yard.session, &yard.place), (&other, &place.canonicalize().unwrap())] {
        eventually("its worker sees one store", || {
            http.get(&format!("/api/v1/sessions/{session}/files")).expect(200);
            let all = leftovers(&data, &[yard.homing.pid()]);
            let workers = all.into_iter().filter(|process| process.arguments.ends_with(" ground"));
            let mut seen = workers.map(|worker| {
                let within = format!("/proc/{}/root{}", worker.pid, stores.display());
                let entries = fs::read_dir(within).into_iter().flatten().flatten();
                let of = |entry: fs::DirEntry| fs::read_to_string(entry.path().join("of")).ok();
                entries.filter_map(of).collect::<Vec<_>>()
            });
            let own = place.join(".git").display().to_string();
            // One that was started before the other repository had any goes with its next call.
            seen.find(|seen| seen.len() == 1 && seen[0].starts_with(&own))
        });
    }
    // Whatever is done in either goes on as before.
    yard.ask("!run echo changed > kept.txt");
    let changes = http.get(&format!("/api/v1/sessions/{}/changes?turn=2", yard.session)).expect(200);
    assert_eq!(changes["files"][0]["path"], "kept.txt", "{changes}");
}
