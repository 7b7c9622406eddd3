//! Repositories that lie, in numbers: at each place that git reads something else stands than should, and everything that looks
//! at a repository or changes something in it is asked for.
//!
//! Nothing of the server's or of another directory is told or copied, nothing that a repository says is executed, the server stays small and
//! answers meanwhile. The stories of single lies, each as it was seen, are in `ground`.

use std::fs::{self, File};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::inotify;
use serde_json::{Value, json};
use testkit::{Homing, Http, eventually_within};

use crate::ground::{GIANT_BYTES, GROWTH_KB_MAX, memory_kb};
use crate::yard::{git, repository};
use crate::{count, counted, kill, text};

/// Directories within directories.
const DEPTH: usize = 600;
/// The longest that one thing may take that is asked of a repository: a few runs of git, each of which may wait in vain, or has
/// a giant to read while the machine has other things to do.
const LONG: Duration = Duration::from_secs(300);
/// The time within which 99 of 100 answers of `/healthz` come from the program as it is released.
const HEALTHZ_P99_MAX: Duration = Duration::from_millis(50);
/// Words that stand only where nobody may look.
pub(crate) const SECRET: &str = "words-of-a-colleague-that-stay-there";

/// The places that git reads, or that we do.
const PLACES: &[&str] = &[
    ".git/HEAD",
    ".git/config",
    ".git/config.worktree",
    ".git/index",
    ".git/packed-refs",
    ".git/shallow",
    ".git/commondir",
    ".git/gitdir",
    ".git/info/exclude",
    ".git/info/attributes",
    ".git/info/grafts",
    ".git/info/sparse-checkout",
    ".git/objects",
    ".git/objects/info/alternates",
    ".git/objects/info/http-alternates",
    ".git/objects/info/commit-graph",
    ".git/objects/pack",
    ".git/refs",
    ".git/refs/heads/main",
    ".git/refs/stash",
    ".git/refs/homing",
    ".git/logs/HEAD",
    ".git/MERGE_HEAD",
    ".git/ORIG_HEAD",
    ".git/hooks/post-checkout",
    ".git/hooks/reference-transaction",
    ".git/worktrees",
    ".git/modules",
    ".git",
    ".gitignore",
    ".gitattributes",
    ".gitmodules",
    ".worktreeinclude",
    "kept.txt",
];

/// The things that stand there instead.
#[derive(Debug, Clone, Copy)]
enum Lie {
    /// A link to the server's token.
    Token,
    /// A link to the same place of a colleague's repository.
    Colleague,
    Giant,
    Pipe,
    Socket,
    Deep,
    Garbage,
    /// Words that would have something run, or read from elsewhere.
    Orders,
}

const LIES: &[Lie] =
    &[Lie::Token, Lie::Colleague, Lie::Giant, Lie::Pipe, Lie::Socket, Lie::Deep, Lie::Garbage, Lie::Orders];

/// A server, a colleague's repository beside it, and what would be there if something had been executed.
struct Stage {
    homing: Homing,
    colleague: PathBuf,
    canary: PathBuf,
    token: String,
}

#[test]
fn repositories_that_lie_gain_nothing() {
    let stage = Stage::of(crate::homing());
    stage.gain_nothing("behind a wall that hides", count("HOMING_LIARS", 16), 2);
}

/// Where a wall lists, nothing of a colleague's is even opened. The first lie are alternates that name a colleague's objects: behind a wall
/// that hides, git opens them.
#[test]
fn repositories_that_lie_gain_nothing_in_a_team() {
    let stage = Stage::of(crate::homing());
    stage.homing.run(&["user", "add", "bob"]).expect(0);
    let opened = Opened::below(&stage.colleague);
    stage.gain_nothing("behind a team's wall, which lists", count("HOMING_LIARS_LISTED", 6), 251);
    assert_eq!(opened.names(), Vec::<String>::new(), "something of a colleague's was opened");
    // It would have been seen.
    fs::read_to_string(stage.colleague.join(".git/config")).unwrap();
    assert_eq!(opened.names(), ["config"]);
}

impl Stage {
    fn of(homing: Homing) -> Self {
        let colleague = homing.root().join("colleague");
        repository(&colleague);
        fs::write(colleague.join("private.txt"), SECRET).unwrap();
        git(&colleague, &["add", "."]);
        git(&colleague, &["commit", "-q", "-m", SECRET]);
        for (file, words) in [(".worktreeinclude", "*"), (".gitmodules", SECRET), (".gitattributes", SECRET)]
        {
            fs::write(colleague.join(file), words).unwrap();
        }
        let token = fs::read_to_string(homing.data().join("token")).unwrap().trim().to_owned();
        let canary = homing.root().join("executed");
        Self { homing, colleague, canary, token }
    }

    /// Tells so many lies, one after another, beginning with one of all.
    fn gain_nothing(&self, behind: &str, wanted: u64, first: usize) {
        let all = PLACES.len() * LIES.len();
        let wanted = usize::try_from(wanted).unwrap().min(all);
        let before = memory_kb(self.homing.pid());
        let pulse = Pulse::of(self.homing.http());
        for number in 0..wanted {
            // Spread over both lists: it shares no divisor with their number. A file of theirs that is a giant, which takes minutes
            // to be kept, comes late.
            let at = (number * 101 + first) % all;
            let (place, lie) = (PLACES[at % PLACES.len()], LIES[at / PLACES.len()]);
            let begun = Instant::now();
            let heard = self.try_one(number, place, lie);
            let told = format!("{place} as {lie:?}");
            assert!(!heard.contains(&self.token), "{told} told the token: {heard}");
            assert!(!heard.contains(SECRET), "{told} told a colleague's words: {heard}");
            assert!(!self.canary.exists(), "{told} had something executed");
            let worktrees = self.homing.data().join("worktrees");
            assert!(!holds(&worktrees, SECRET), "{told} copied a colleague's words");
            println!("{told}: {} ms", begun.elapsed().as_millis());
        }
        let slowest = pulse.stop();
        let grown = memory_kb(self.homing.pid()).saturating_sub(before);
        counted(format_args!(
            "beside {wanted} repositories that lie {behind} the server has grown by {grown} kB, /healthz p99 {:.1} ms of {}",
            slowest.0.as_secs_f64() * 1_000.0,
            slowest.1
        ));
        assert!(grown < GROWTH_KB_MAX, "{grown} kB more");
        // What the program for tests takes says nothing of the one that people have: `ground` of the night runs that.
        let is_released = !cfg!(debug_assertions);
        assert!(!is_released || slowest.0 <= HEALTHZ_P99_MAX, "/healthz p99 {slowest:?}");
    }

    /// Tells one lie, asks for everything, and answers all that was heard.
    fn try_one(&self, number: usize, place: &str, lie: Lie) -> String {
        let at = self.homing.root().join(format!("liar{number}"));
        repository(&at);
        let http = self.homing.http();
        let to = json!({ "new": { "directory": at } });
        let first = http.send(&to, "!run echo work > work.txt");
        http.until_final_within(&text(&first, "id"), LONG);
        let session = text(&first, "session");
        self.tell(&at, place, lie);
        self.ask_everything(&http, &session, &at)
    }

    fn tell(&self, at: &Path, place: &str, lie: Lie) {
        let path = at.join(place);
        let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match lie {
            Lie::Token => symlink(self.homing.data().join("token"), &path).unwrap(),
            Lie::Colleague => symlink(self.colleague.join(place), &path).unwrap(),
            Lie::Giant => File::create(&path).unwrap().set_len(GIANT_BYTES).unwrap(),
            Lie::Pipe => assert!(Command::new("mkfifo").arg(&path).status().unwrap().success()),
            // A socket's name stays when nobody listens any more.
            Lie::Socket => drop(bind(&path)),
            Lie::Deep => fs::create_dir_all(path.join("d/".repeat(DEPTH))).unwrap(),
            Lie::Garbage => {
                let noise = |at: u32| (at.wrapping_mul(2_654_435_761) >> 13).to_le_bytes()[0];
                fs::write(&path, (0..65_536).map(noise).collect::<Vec<u8>>()).unwrap();
            }
            Lie::Orders => fs::write(&path, self.orders(place)).unwrap(),
        }
    }

    fn orders(&self, place: &str) -> String {
        let (run, elsewhere) = (format!("touch {}", self.canary.display()), self.colleague.display());
        match place {
            ".git/config" | ".git/config.worktree" => format!(
                "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = {run}\n\thooksPath = {elsewhere}\n\teditor = {run}\n\
                 \tsshCommand = {run}\n\talternateRefsCommand = {run}\n\tworktree = {elsewhere}\n\texcludesFile = {elsewhere}/private.txt\n\
                 [filter \"x\"]\n\tclean = {run}\n\tsmudge = {run}\n\tprocess = {run}\n\trequired\n[diff]\n\texternal = {run}\n\
                 [diff \"x\"]\n\ttextconv = {run}\n\tcommand = {run}\n[merge \"x\"]\n\tdriver = {run}\n[include]\n\tpath = {elsewhere}/private.txt\n\
                 [extensions]\n\tworktreeConfig = true\n"
            ),
            ".gitattributes" | ".git/info/attributes" => "* filter=x diff=x merge=x ident\n".to_owned(),
            ".gitmodules" => {
                format!("[submodule \"x\"]\n\tpath = x\n\turl = {elsewhere}\n\tupdate = !{run}\n")
            }
            ".git/objects/info/alternates" => format!("{elsewhere}/.git/objects\n"),
            ".git/commondir" | ".git/gitdir" | ".git/worktrees" => format!("{elsewhere}/.git\n"),
            ".git" => format!("gitdir: {elsewhere}/.git\n"),
            ".git/HEAD" | ".git/refs/heads/main" | ".git/refs/stash" => {
                "ref: refs/../../../colleague/.git/refs/heads/main\n".to_owned()
            }
            ".git/hooks/post-checkout" | ".git/hooks/reference-transaction" => format!("#!/bin/sh\n{run}\n"),
            ".worktreeinclude" => format!("../colleague/*\n{elsewhere}/private.txt\n/etc/shadow\n*\n"),
            _ => format!("{elsewhere}/private.txt\n../colleague/private.txt\n"),
        }
    }

    /// Everything that looks at the repository or changes something in it. Each may be refused; none may be left without an answer.
    fn ask_everything(&self, http: &Http, session: &str, directory: &Path) -> String {
        let at = |what: &str| format!("/api/v1/sessions/{session}/{what}");
        let mut heard = String::new();
        for what in ["changes?turn=1", "changes/file?turn=1&path=work.txt", "files", "readiness"] {
            heard += &http.get(&at(what)).text();
        }
        for asked in [directory.to_path_buf(), directory.join(".git")] {
            // Who asks by a link for a directory that they may choose is shown that one: the repository did not lead there, they did.
            if !asked.is_symlink() {
                heard += &http.get(&format!("/api/v1/directories?directory={}", asked.display())).text();
            }
        }
        heard += &http.get(&at("undo?turn=1")).text();
        heard += &http.post(&at("undo"), &json!({ "turn": 1, "all": true })).text();
        heard += &http.post(&at("redo"), &json!({ "turn": 1 })).text();
        let again = http.send(&json!({ "session": session }), "!run echo again > again.txt");
        heard += &http.until_final_within(&text(&again, "id"), LONG).to_string();
        for what in [
            "changes?turn=2",
            "changes/file?turn=2&path=again.txt",
            "changes/file?turn=2&since=1&path=kept.txt",
        ] {
            heard += &http.get(&at(what)).text();
        }
        heard += &http.get(&at("undo?turn=2")).text();
        heard += &http.post(&at("undo"), &json!({ "turn": 2, "all": true })).text();
        heard += &http.post(&at("fork"), &json!({})).text();
        let entered = http.post(&at("scope"), &json!({ "enter": { "name": "shed" } }));
        heard += &entered.text();
        if entered.status == 200 && self.is_in_shed(session) {
            heard += &http.get("/api/v1/worktrees").text();
            heard += &http.get(&at("files")).text();
            heard += &self.ask_of_shed(http, session);
            heard += &http.post(&at("scope"), &json!({ "exit": true })).text();
            self.until_out(session);
            heard += &self.ask_of_shed(http, session);
            for verb in ["merge", "apply"] {
                heard +=
                    &http.post(&at(&format!("worktrees/shed/{verb}")), &json!({ "dry_run": true })).text();
                heard += &http.post(&at(&format!("worktrees/shed/{verb}")), &json!({})).text();
            }
            heard += &http.must("DELETE", &at("worktrees/shed"), &[], None).text();
            heard += &http.post(&at("worktrees/shed/restore"), &json!({})).text();
        }
        heard += &kill::facts(http, session).iter().map(Value::to_string).collect::<String>();
        heard + &self.homing.server_log()
    }

    /// The changes of the worktree, and of single files of it.
    fn ask_of_shed(&self, http: &Http, session: &str) -> String {
        let of = |what: &str| format!("/api/v1/sessions/{session}/worktrees/shed/{what}");
        let looks = ["changes", "changes/file?path=kept.txt", "changes/file?path=.gitattributes"];
        looks.map(|what| http.get(&of(what)).text()).concat()
    }

    fn until_out(&self, session: &str) {
        eventually_within(LONG, "it is left, or not", || {
            let facts = kill::facts(&self.homing.http(), session);
            let changes = facts.iter().filter(|fact| fact["type"] == "scope_changed").count();
            let failed = facts.last().is_some_and(|fact| fact["type"] == "errand_failed");
            (changes > 1 || failed).then_some(())
        });
    }

    fn is_in_shed(&self, session: &str) -> bool {
        eventually_within(LONG, "it is entered, or not", || {
            let facts = kill::facts(&self.homing.http(), session);
            facts.iter().rev().find_map(|fact| match fact["type"].as_str() {
                Some("errand_failed") => Some(false),
                Some("scope_changed") => Some(true),
                _ => None,
            })
        })
    }
}

/// Whatever is opened below a directory from now on, in the order in which that happens.
struct Opened {
    events: OwnedFd,
}

impl Opened {
    fn below(root: &Path) -> Self {
        let flags = inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC;
        let events = inotify::init(flags).unwrap();
        let mut left = vec![root.to_path_buf()];
        while let Some(directory) = left.pop() {
            inotify::add_watch(&events, &directory, inotify::WatchFlags::OPEN).unwrap();
            let entries = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path());
            left.extend(entries.filter(|path| path.is_dir() && !path.is_symlink()));
        }
        let opened = Self { events };
        // We have looked ourselves.
        opened.names();
        opened
    }

    /// The names since this was asked last; none of a directory itself.
    fn names(&self) -> Vec<String> {
        let mut room = [MaybeUninit::uninit(); 16 * 1_024];
        let mut reader = inotify::Reader::new(&self.events, &mut room);
        let mut names = Vec::new();
        while let Ok(event) = reader.next() {
            let name = event.file_name().map_or_else(|| ".".into(), |name| name.to_string_lossy());
            names.push(name.into_owned());
        }
        names
    }
}

/// The name of a socket may be long; whoever binds it stands beside it.
fn bind(path: &Path) -> UnixListener {
    let place = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(place.path().join("s")).unwrap();
    fs::rename(place.path().join("s"), path).unwrap();
    listener
}

/// True if a file below a directory has these words in it. Links are not followed.
pub(crate) fn holds(root: &Path, words: &str) -> bool {
    let mut left = vec![root.to_path_buf()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let about = fs::symlink_metadata(entry.path()).unwrap();
            if about.is_dir() {
                left.push(entry.path());
            } else if about.is_file() && about.len() < 1 << 20 {
                let bytes = fs::read(entry.path()).unwrap_or_default();
                if bytes.windows(words.len()).any(|part| part == words.as_bytes()) {
                    return true;
                }
            }
        }
    }
    false
}

/// Somebody who asks all the time whether the server is well.
pub(crate) struct Pulse {
    is_over: Arc<AtomicBool>,
    beats: std::thread::JoinHandle<Vec<Duration>>,
}

impl Pulse {
    pub(crate) fn of(http: Http) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let over = is_over.clone();
        let beats = std::thread::spawn(move || {
            let mut took = Vec::new();
            while !over.load(Ordering::Relaxed) {
                let begun = Instant::now();
                assert_eq!(http.get("/healthz").status, 200);
                took.push(begun.elapsed());
                std::thread::park_timeout(Duration::from_millis(20));
            }
            took
        });
        Self { is_over, beats }
    }

    /// The time within which 99 of 100 answers came, and how many there were.
    pub(crate) fn stop(self) -> (Duration, usize) {
        self.is_over.store(true, Ordering::Relaxed);
        let mut took = self.beats.join().expect("the server answers");
        took.sort();
        (took[took.len() * 99 / 100], took.len())
    }
}
