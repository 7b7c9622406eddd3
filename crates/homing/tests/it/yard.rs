//! A server in front of a real git repository, for tests about scopes: what to say to it, and what its log says.
//!
//! `Gate` holds something up until the test lets it go on, and `Cut` ends the server at a run of git that the test chose.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Homing, Setup, eventually};

use crate::{kill, text};

/// Where a session begins: the epoch of a scope that was never changed.
pub(crate) const FIRST: u64 = 0;
/// A long queue is worked off by a machine that may have other things to do.
pub(crate) const BACKLOG_MAX: Duration = Duration::from_secs(240);

pub(crate) struct Yard {
    pub(crate) homing: Homing,
    /// The session that `homing` means in the repository.
    pub(crate) session: String,
    /// The repository.
    pub(crate) place: PathBuf,
}

impl Yard {
    pub(crate) fn new() -> Self {
        Self::of(Setup::new(crate::EXE))
    }

    /// A repository with one commit, and a session that has said one thing in it.
    #[track_caller]
    pub(crate) fn of(setup: Setup) -> Self {
        let homing = setup.start();
        let place = homing.place().canonicalize().unwrap();
        repository(&place);
        let said = homing.run(&["send", "--json", "hello"]).json(0);
        homing.http().until_final(&text(&said, "id"));
        Self { session: text(&said, "session"), homing, place }
    }

    pub(crate) fn place_text(&self) -> String {
        self.place.to_str().unwrap().to_owned()
    }

    /// The session as it is now.
    #[track_caller]
    pub(crate) fn now(&self) -> Value {
        self.homing.http().get(&format!("/api/v1/sessions/{}", self.session)).expect(200)
    }

    /// The session once it is so.
    #[track_caller]
    pub(crate) fn until(&self, is_so: impl Fn(&Value) -> bool) -> Value {
        until(&self.homing, &self.session, is_so)
    }

    #[track_caller]
    pub(crate) fn until_epoch(&self, epoch: u64) -> Value {
        self.until(|session| session["epoch"].as_u64() == Some(epoch))
    }

    /// Says something to the session, and answers the message.
    #[track_caller]
    pub(crate) fn say(&self, words: &str) -> String {
        text(&self.homing.http().send(&json!({ "session": self.session }), words), "id")
    }

    /// Says something, and waits until it is over.
    #[track_caller]
    pub(crate) fn ask(&self, words: &str) -> String {
        self.homing.http().converse(&json!({ "session": self.session }), words)
    }

    /// In which directory a turn works now, by what a tool of the agent prints.
    #[track_caller]
    pub(crate) fn works_in(&self) -> String {
        last(&self.ask("where\n!run pwd"))
    }

    /// Asks for a change of scope, and does not wait for it.
    #[track_caller]
    pub(crate) fn change(&self, wanted: &Value) -> Value {
        self.homing.http().post(&format!("/api/v1/sessions/{}/scope", self.session), wanted).expect(200)
    }

    #[track_caller]
    pub(crate) fn receipt(&self, message: &str) -> Value {
        self.homing.http().get(&format!("/api/v1/messages/{message}")).expect(200)
    }

    #[track_caller]
    pub(crate) fn is_held(&self, message: &str) {
        let receipt = eventually("it is held", || {
            Some(self.receipt(message)).filter(|receipt| receipt["state"] == "held")
        });
        assert_eq!(receipt["why"], "other_scope", "{receipt}");
    }

    /// Every fact of the session; without a gap in their numbers.
    #[track_caller]
    pub(crate) fn facts(&self) -> Vec<Value> {
        kill::facts(&self.homing.http(), &self.session)
    }

    /// The number of facts of a kind.
    #[track_caller]
    pub(crate) fn count(&self, kind: &str) -> usize {
        self.facts().iter().filter(|fact| fact["type"] == kind).count()
    }

    /// Waits until the message's words have been handed to the agent, and it has begun to act on them.
    #[track_caller]
    pub(crate) fn until_handed(&self, message: &str) {
        eventually("it is handed over", || {
            let facts = self.facts();
            let started = |fact: &&Value| fact["type"] == "turn_started" && fact["message"] == message;
            let turn = &facts.iter().find(started)?["turn"];
            facts.iter().any(|fact| fact["type"] == "handed" && fact["turn"] == *turn).then_some(())
        });
        // The fact comes first: a server that is ended right after it has handed over nothing yet.
        eventually("the agent begins", || {
            let mut begun = self.homing.agent_log().into_iter();
            begun.any(|ran| ran.event == "start" && ran.message == message).then_some(())
        });
    }

    pub(crate) fn git(&self, words: &[&str]) -> String {
        git(&self.place, words)
    }

    pub(crate) fn write(&self, file: &str, words: &str) {
        fs::write(self.place.join(file), words).unwrap();
    }

    pub(crate) fn read(&self, file: &str) -> String {
        fs::read_to_string(self.place.join(file)).unwrap()
    }

    pub(crate) fn gate(&self, name: &str) -> Gate {
        Gate::at(&self.homing.root().join(name))
    }

    /// By the log and by what each answer says its tool printed: every turn ran once, in the directory of its epoch.
    #[track_caller]
    pub(crate) fn each_turn_ran_in_its_scope(&self) -> Told {
        self.turns_ran(|times, _| times == 1)
    }

    /// The same where the server may have ended right after a turn was handed over: such a turn may not have begun.
    #[track_caller]
    pub(crate) fn each_turn_that_began_ran_in_its_scope(&self) -> Told {
        self.turns_ran(|times, receipt| times == 1 || (times == 0 && receipt["why"] == "interrupted"))
    }

    #[track_caller]
    fn turns_ran(&self, is_well: impl Fn(usize, &Value) -> bool) -> Told {
        let told = Told::of(&self.facts());
        let begun = self.homing.agent_log().into_iter().filter(|ran| ran.event == "start");
        let mut begun_times = BTreeMap::<String, usize>::new();
        begun.for_each(|ran| *begun_times.entry(ran.message).or_default() += 1);
        for (message, ran) in &told.ran {
            let (times, receipt) = (begun_times.get(message).copied().unwrap_or(0), self.receipt(message));
            assert!(is_well(times, &receipt), "acted on {times} times: {receipt}");
            let answer = receipt["answer"].as_str().unwrap_or_default();
            if let Some(printed) = answer.lines().find(|line| line.starts_with('/')) {
                assert_eq!(printed, ran.directory, "turn {} ran elsewhere: {receipt}", ran.turn);
            }
        }
        told
    }
}

/// A session once it is so.
#[track_caller]
pub(crate) fn until(homing: &Homing, session: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    eventually("the session is so", || {
        let path = format!("/api/v1/sessions/{session}");
        let answered = homing.http().ask("GET", &path, &[], None).ok()?;
        Some(answered.expect(200)).filter(|session| is_so(session))
    })
}

/// Where a turn ran.
#[derive(Debug, Clone)]
pub(crate) struct Ran {
    pub(crate) turn: u64,
    pub(crate) epoch: u64,
    pub(crate) directory: String,
}

/// The turns that a log tells of.
#[derive(Debug)]
pub(crate) struct Told {
    /// By message.
    pub(crate) ran: BTreeMap<String, Ran>,
    /// The directory of each epoch.
    pub(crate) directories: BTreeMap<u64, String>,
}

impl Told {
    /// Fails the test if a message has two turns, or a turn was begun under an epoch that was not the one of then.
    #[track_caller]
    pub(crate) fn of(facts: &[Value]) -> Self {
        let mut told = Self { ran: BTreeMap::new(), directories: BTreeMap::new() };
        let mut now = FIRST;
        let mut running = String::new();
        for fact in facts {
            match fact["type"].as_str().unwrap_or_default() {
                "opened" => drop(told.directories.insert(FIRST, text(fact, "directory"))),
                "scope_changed" => {
                    assert_eq!(fact["epoch"].as_u64(), Some(now + 1), "epochs have no gap: {fact}");
                    now += 1;
                    told.directories.insert(now, text(fact, "directory"));
                }
                "turn_started" => {
                    running = text(fact, "message");
                    let turn = fact["turn"].as_u64().unwrap();
                    let ran = Ran { turn, epoch: now, directory: told.directories[&now].clone() };
                    assert!(told.ran.insert(running.clone(), ran).is_none(), "a second turn: {fact}");
                }
                "attempt_started" => {
                    assert_eq!(fact["fence"]["epoch"].as_u64(), Some(now), "under another epoch: {fact}");
                    assert_eq!(fact["fence"]["turn"].as_u64(), Some(told.ran[&running].turn), "{fact}");
                }
                _ => {}
            }
        }
        told
    }
}

/// A repository with one commit.
#[track_caller]
pub(crate) fn repository(place: &Path) {
    fs::create_dir_all(place).unwrap();
    git(place, &["init", "-q", "-b", "main"]);
    fs::write(place.join("kept.txt"), "one\ntwo\n").unwrap();
    fs::write(place.join(".gitignore"), "*.ignored\n").unwrap();
    git(place, &["add", "."]);
    git(place, &["commit", "-q", "-m", "first"]);
}

/// Git as a person runs it, with nobody's configuration.
#[track_caller]
pub(crate) fn git(place: &Path, words: &[&str]) -> String {
    let mut command = Command::new("git");
    for name in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{name}_NAME"), "somebody");
        command.env(format!("GIT_{name}_EMAIL"), "somebody@example.org");
    }
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    // What an ordinary server's agents work in is another user's where the tests run as root.
    command.args(["-c", "safe.directory=*"]);
    let said = command.current_dir(place).args(words).output().expect("there is git");
    assert!(said.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&said.stderr));
    String::from_utf8_lossy(&said.stdout).trim_end().to_owned()
}

/// Every file below a directory with what is in it, but for git's own.
pub(crate) fn everything(place: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(place).unwrap().map(Result::unwrap).filter(|entry| entry.file_name() != ".git")
    {
        let path = entry.path();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            all.extend(everything(&path));
        } else if kind.is_symlink() {
            all.insert(path.clone(), fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes());
        } else {
            all.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    all
}

/// The last line.
pub(crate) fn last(said: &str) -> String {
    crate::last_line(said).to_owned()
}

/// Something to wait at. It is a pipe with a name that we keep open, so that nobody waits for us but at a `read`.
pub(crate) struct Gate {
    path: PathBuf,
    pipe: File,
}

impl Gate {
    #[track_caller]
    pub(crate) fn at(path: &Path) -> Self {
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
        let pipe = File::options().read(true).write(true).open(path).unwrap();
        Self { path: path.to_owned(), pipe }
    }

    /// For a shell: waits here.
    pub(crate) fn wait(&self) -> String {
        format!("read line < '{}'", self.path.display())
    }

    /// Lets one through.
    pub(crate) fn open(&mut self) {
        self.pipe.write_all(b"on\n").unwrap();
    }
}

/// A git in front of the real one that stops at a chosen run, so that the server can be ended there, or waits at a gate.
///
/// Git runs behind a wall, from where nobody ends a server: the test does.
pub(crate) struct Cut {
    place: tempfile::TempDir,
    /// Whoever ends the server when that run is reached; it answers whether it was.
    watcher: Mutex<Option<JoinHandle<bool>>>,
}

/// The fate of the run of git at which the server is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Orphan {
    /// It never begins.
    Never,
    /// It goes on while the server ends.
    GoesOn,
}

impl Cut {
    #[track_caller]
    pub(crate) fn new() -> Self {
        let (directory, real) = (tempfile::tempdir().unwrap(), real_git());
        let place = directory.path();
        // An agent's own git does not count: ours reads no configuration of the machine.
        let lines = format!(
            "#!/bin/sh\nplace='{place}'\n\
             if [ -e \"$place/slow\" ]; then\nread word gate < \"$place/slow\"\n\
             case \" $* \" in *\" $word \"*) echo >> \"$place/waiting\"; read line < \"$gate\" ;; esac\nfi\n\
             if [ -e \"$place/armed\" ] && [ -n \"$GIT_CONFIG_NOSYSTEM\" ]; then\n\
             echo >> \"$place/runs\"\nread at orphan < \"$place/armed\"\n\
             if [ \"$(wc -l < \"$place/runs\")\" -ge \"$at\" ]; then\n\
             mv \"$place/armed\" \"$place/reached\" && echo reached > \"$place/tell\"\n\
             [ \"$orphan\" = goes-on ] || read line < \"$place/never\"\nfi\nfi\n\
             exec '{real}' \"$@\"\n",
            place = place.display(),
            real = real.display(),
        );
        let program = place.join("git");
        fs::write(&program, lines).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let pipes = ["never", "tell"].map(|name| place.join(name));
        assert!(Command::new("mkfifo").args(pipes).status().unwrap().success());
        Self { place: directory, watcher: Mutex::default() }
    }

    /// The usual server, with this git.
    pub(crate) fn setup(&self) -> Setup {
        let rest = std::env::var("PATH").unwrap_or_default();
        Setup::new(crate::EXE).variable("PATH", &format!("{}:{rest}", self.place.path().display()))
    }

    /// Ends the server at our run of git with this number, counted from now.
    pub(crate) fn arm(&self, run: usize, orphan: Orphan, server: u32) {
        self.arm_with(run, orphan, move || {
            assert!(Command::new("kill").args(["-9", &server.to_string()]).status().unwrap().success());
        });
    }

    /// Ends something at our run of git with this number, counted from now.
    pub(crate) fn arm_with(&self, run: usize, orphan: Orphan, end: impl FnOnce() + Send + 'static) {
        let place = self.place.path();
        for file in ["runs", "reached"] {
            let _ = fs::remove_file(place.join(file));
        }
        let tell = place.join("tell");
        let watcher = std::thread::spawn(move || {
            let is_reached = fs::read_to_string(tell).unwrap() == "reached\n";
            if is_reached {
                end();
            }
            is_reached
        });
        *self.watcher.lock().unwrap() = Some(watcher);
        let orphan = if orphan == Orphan::GoesOn { "goes-on" } else { "never" };
        let written = place.join("arming");
        fs::write(&written, format!("{run} {orphan}\n")).unwrap();
        fs::rename(written, place.join("armed")).unwrap();
    }

    /// From now on every run of git with this word waits at the gate.
    pub(crate) fn hold(&self, word: &str, gate: &Gate) {
        let _ = fs::remove_file(self.place.path().join("waiting"));
        fs::write(self.place.path().join("slow"), format!("{word} {}\n", gate.path.display())).unwrap();
    }

    /// The number of those who have come to the gate.
    pub(crate) fn waiting(&self) -> usize {
        fs::read_to_string(self.place.path().join("waiting")).unwrap_or_default().lines().count()
    }

    /// No run of git waits from now on, but for those that do already.
    pub(crate) fn hold_no_more(&self) {
        fs::remove_file(self.place.path().join("slow")).unwrap();
    }

    /// True if that run was reached.
    pub(crate) fn is_reached(&self) -> bool {
        self.place.path().join("reached").exists()
    }

    /// Takes it back; answers whether the server was ended.
    pub(crate) fn disarm(&self) -> bool {
        let place = self.place.path();
        if fs::rename(place.join("armed"), place.join("disarmed")).is_ok() {
            fs::write(place.join("tell"), "no").unwrap();
        }
        let watcher = self.watcher.lock().unwrap().take().expect("it is armed");
        watcher.join().expect("it does not panic")
    }
}

fn real_git() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|place| place.join("git"))
        .find(|git| git.is_file())
        .expect("there is git")
}
