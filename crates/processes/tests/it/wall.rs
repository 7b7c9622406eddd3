//! The wall around an agent, tried from inside by the probe: each way it can be made, and as whoever we may be.
//!
//! These need a kernel with Landlock that bounds signals (6.12), and either root or namespaces of users.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use homing_processes::wall::{DataDirectory, Wall, WallKind, WalledSession};
use homing_processes::{ProcessTree, TreeEvent, TreePlan};
use kernel::{SessionId, TreeName};
use rustix::fs::{CWD, RenameFlags};
use tempfile::TempDir;

use crate::bench::{ground, supervising};

/// A user that every machine has, and nothing belongs to.
const NOBODY: u32 = 65_534;

/// The tries where it matters how a wall is made, and not how long it holds.
const FEW_TRIES: u64 = 3;

fn are_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A data directory with secrets in it, below a directory that anybody may enter.
struct Home {
    place: TempDir,
}

impl Home {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let data = place.path().join("data");
        std::fs::create_dir(&data).unwrap();
        std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o700)).unwrap();
        for name in ["token", "key", "homing.db"] {
            std::fs::write(data.join(name), "a secret").unwrap();
            std::fs::set_permissions(data.join(name), std::fs::Permissions::from_mode(0o600)).unwrap();
        }
        Self { place }
    }

    fn data(&self) -> PathBuf {
        self.place.path().canonicalize().unwrap().join("data")
    }

    /// The program that supervises, where everybody may start it. Put there once: a supervisor may outlive a proof for a moment,
    /// and a program that runs cannot be written.
    fn exe(&self) -> PathBuf {
        let exe = self.place.path().join("supervising");
        if !exe.exists() {
            std::fs::copy(supervising(), &exe).unwrap();
        }
        exe
    }

    /// Everything of the data directory given to somebody.
    fn chown(&self, uid: u32) {
        let chown = |path: &Path| std::os::unix::fs::chown(path, Some(uid), Some(uid)).unwrap();
        chown(&self.data());
        std::fs::read_dir(self.data()).unwrap().for_each(|entry| chown(&entry.unwrap().path()));
    }

    /// The output of the proof of such a wall.
    fn prove(&self, kind: &str, user: Option<u32>) -> Output {
        self.prove_often(kind, user, FEW_TRIES, &[])
    }

    /// The same with so many tries of each attack, for a team or with people's users.
    fn prove_often(&self, kind: &str, user: Option<u32>, tries: u64, others: &[&str]) -> Output {
        let mut command = Command::new(self.exe());
        command.args(["prove", self.data().to_str().unwrap(), kind, &tries.to_string()]).args(others);
        if let Some(uid) = user {
            command.uid(uid).gid(uid);
        }
        command.output().unwrap()
    }
}

#[track_caller]
fn assert_proved(output: &Output) {
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && !said.contains("OPEN"),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(said.lines().count() > 15, "it has tried little: {said}");
}

#[test]
fn no_way_leads_out_past_mounts() {
    assert_proved(&Home::new().prove("mounts", None));
}

#[test]
fn no_way_leads_out_past_landlock() {
    assert_proved(&Home::new().prove("landlock", None));
}

#[test]
fn no_way_leads_out_for_an_ordinary_user() {
    let home = Home::new();
    let user = are_root().then_some(NOBODY);
    if let Some(uid) = user {
        home.chown(uid);
    }
    for kind in ["auto", "mounts", "landlock"] {
        assert_proved(&home.prove(kind, user));
    }
}

/// With a supervisor, and a first process of its namespaces, that were there before.
#[test]
fn no_way_leads_out_of_what_began_with_a_spare() {
    let home = Home::new();
    for layout in ["--hide", "--list"] {
        assert_proved(&home.prove_often("mounts", None, FEW_TRIES, &["--spare", layout]));
    }
    let user = are_root().then_some(NOBODY);
    if let Some(uid) = user {
        home.chown(uid);
        assert_proved(&home.prove_often("mounts", user, FEW_TRIES, &["--spare"]));
    }
    assert_proved(&home.prove_often("landlock", user, FEW_TRIES, &["--spare"]));
}

/// True of a proof that found a list, and not everything but what is hidden.
fn has_a_list(proof: &Output) -> bool {
    String::from_utf8_lossy(&proof.stdout).contains("see what is listed nowhere: cannot")
}

#[test]
fn no_way_leads_out_of_a_list() {
    let home = Home::new();
    for kind in ["mounts", "landlock"] {
        let proof = home.prove_often(kind, None, FEW_TRIES, &["--list"]);
        assert_proved(&proof);
        assert!(has_a_list(&proof), "{kind}: {}", String::from_utf8_lossy(&proof.stdout));
    }
}

#[test]
fn no_way_leads_an_ordinary_user_out_of_a_list() {
    let home = Home::new();
    let user = are_root().then_some(NOBODY);
    if let Some(uid) = user {
        home.chown(uid);
    }
    for kind in ["auto", "mounts", "landlock"] {
        let proof = home.prove_often(kind, user, FEW_TRIES, &["--list"]);
        assert_proved(&proof);
        assert!(has_a_list(&proof), "{kind}: {}", String::from_utf8_lossy(&proof.stdout));
    }
}

/// A listener in a hidden place is reached by whoever knows its name, unless agents can make no socket for that.
#[test]
fn landlock_alone_is_good_enough_for_a_team_if_it_lists() {
    let home = Home::new();
    let way = "read or reach what was made while it runs";
    let words = |proof: &Output| String::from_utf8_lossy(&proof.stdout).into_owned();
    let hidden = home.prove_often("landlock", None, FEW_TRIES, &["--team", "--hide"]);
    let said = words(&hidden);
    assert!(!hidden.status.success() && said.contains(&format!("{way}: OPEN")), "{said}");
    assert_eq!(said.matches("OPEN").count(), 1, "nothing else is open: {said}");
    let listed = home.prove_often("landlock", None, FEW_TRIES, &["--team"]);
    assert_proved(&listed);
    let said = words(&listed);
    assert!(said.contains(&format!("{way}: cannot")) && said.contains("no Unix sockets"), "{said}");
    // One who is alone does without, and hears of it.
    let alone = home.prove("landlock", None);
    assert_proved(&alone);
    assert!(words(&alone).contains("can be reached by whoever knows its name"), "{}", words(&alone));
}

/// A team that wants no list.
#[test]
fn no_way_leads_out_for_a_team_that_sees_what_is_not_hidden() {
    let home = Home::new();
    let proof = home.prove_often("auto", None, FEW_TRIES, &["--team", "--hide"]);
    assert_proved(&proof);
    assert!(!has_a_list(&proof));
}

/// The tries of each attack in each layout.
fn tries() -> u64 {
    count("HOMING_PROBES", 5)
}

#[test]
fn no_way_leads_out_for_one_who_is_alone() {
    assert_proved(&Home::new().prove_often("auto", None, tries(), &[]));
}

#[test]
fn no_way_leads_out_for_a_team_of_one_user() {
    let home = Home::new();
    let user = are_root().then_some(NOBODY);
    if let Some(uid) = user {
        home.chown(uid);
    }
    let proof = home.prove_often("auto", user, tries(), &["--team"]);
    assert_proved(&proof);
    assert!(has_a_list(&proof), "a team has a list");
}

/// Only root can give people users of their own.
#[test]
fn no_way_leads_out_for_a_team_with_users_of_their_own() {
    if are_root() {
        // Users that every machine has.
        let people = ["--team", "usr_bob=nobody", "usr_eve=mail"];
        let proof = Home::new().prove_often("auto", None, tries(), &people);
        assert_proved(&proof);
        assert!(has_a_list(&proof), "a team has a list");
        for user in ["as nobody: ", "as mail: "] {
            let said = String::from_utf8_lossy(&proof.stdout).into_owned();
            assert!(said.lines().filter(|line| line.starts_with(user)).count() > 15, "{said}");
        }
    }
}

/// As in a container whose `/proc` cannot be mounted anew: mounts hide, a filter keeps others' processors, and it is said.
#[test]
fn no_way_leads_out_where_there_are_no_namespaces_of_processes() {
    testkit::lose_namespaces_of_processes();
    let proof = Home::new().prove("mounts", None);
    assert_proved(&proof);
    let said = String::from_utf8_lossy(&proof.stdout).into_owned();
    assert!(said.contains("no namespaces of processes"), "{said}");
    let proof = Home::new().prove_often("mounts", None, FEW_TRIES, &["--list"]);
    assert_proved(&proof);
    assert!(has_a_list(&proof), "{}", String::from_utf8_lossy(&proof.stdout));
}

#[test]
fn where_there_is_no_wall_the_probe_finds_everything() {
    let home = Home::new();
    let output = home.prove("off", None);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success(), "{said}");
    for what in [
        "read what is the server's alone: OPEN",
        "list the data directory: OPEN",
        "read another session's files: OPEN",
        "write into the data directory: OPEN",
        "get there by links and by /proc: OPEN",
        "look into the server: OPEN",
        "signal the server or the supervisor: OPEN",
        "change the limits of the server or the supervisor: OPEN",
        "choose processors for the server or the supervisor: OPEN",
        "read another session's home: OPEN",
        "read what is hidden while it is renamed: OPEN",
        "read or reach what was made while it runs: OPEN",
        "reach an abstract socket of the server's: OPEN",
    ] {
        assert!(said.contains(what), "not {what:?} in {said}");
    }
    // And it leaves nothing behind.
    let mut left: Vec<_> =
        std::fs::read_dir(home.data()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["attempts", "homing.db", "key", "token", "work"]);
    assert_eq!(std::fs::read_dir(home.data().join("work")).unwrap().count(), 0);
}

#[test]
fn a_second_name_of_a_secret_is_found() {
    let home = Home::new();
    std::fs::hard_link(home.data().join("token"), home.place.path().join("copy")).unwrap();
    let output = home.prove("auto", None);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success() && said.contains("token has another name"), "{said}");
}

/// Exchanges two directories for as long as it is held.
pub(crate) struct Exchanging {
    is_over: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<u64>>,
}

impl Exchanging {
    pub(crate) fn begin(first: PathBuf, second: PathBuf) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let until = is_over.clone();
        let exchange = move || {
            let mut times = 0;
            while !until.load(Ordering::Relaxed) {
                rustix::fs::renameat_with(CWD, &first, CWD, &second, RenameFlags::EXCHANGE).unwrap();
                times += 1;
            }
            times
        };
        Self { is_over, thread: Some(std::thread::spawn(exchange)) }
    }

    pub(crate) fn end(mut self) -> u64 {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

/// The output of a shell behind a wall, or nothing if it was not started.
async fn shell(wall: &Wall, place: &Path, session: SessionId, script: &str) -> Option<String> {
    let (open, locks) = (place.join("open"), place.join("locks"));
    let of = WalledSession { session, whose: "", directory: &ground(&open), must: false };
    let wall = wall.around(&of, &open, &locks).ok()?;
    let argv = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
    let plan = TreePlan::new(supervising().into(), locks, TreeName::of(session), argv, ground(&open));
    let mut tree = ProcessTree::start(&TreePlan { wall, ..plan }).await.ok()?;
    let mut said = Vec::new();
    loop {
        match tree.next().await {
            TreeEvent::Output(bytes) | TreeEvent::Errors(bytes) => said.extend(bytes),
            TreeEvent::Counted(_) | TreeEvent::Listed(_) => {}
            TreeEvent::Exited(_) => return Some(String::from_utf8(said).unwrap()),
            TreeEvent::Lost => return None,
        }
    }
}

/// Renamed from outside of every wall, where nothing is pinned. What is hidden must be hidden all the same, wherever it is when
/// a wall is made and wherever it goes then.
#[tokio::test]
async fn directories_that_are_exchanged_in_a_loop_open_nothing() {
    let starts = count("HOMING_EXCHANGES", 100);
    let place = tempfile::tempdir().unwrap();
    let place = place.path().canonicalize().unwrap();
    for directory in ["first/data", "second/data", "open", "locks"] {
        std::fs::create_dir_all(place.join(directory)).unwrap();
    }
    std::fs::write(place.join("first/data/token"), "a secret\n").unwrap();
    let data = DataDirectory::of(&place.join("first/data")).unwrap();
    let wall = Wall { kind: WallKind::Mounts, data: Some(data), ..Wall::default() };
    let script = format!(
        "i=0; while [ $i -lt 50 ]; do for d in first second; do \
         [ -e {0}/$d/data/token ] && read x < {0}/$d/data/token && echo $x; done; i=$((i+1)); done; echo over",
        place.display()
    );
    let exchanging = Exchanging::begin(place.join("first"), place.join("second"));
    let (mut started, mut open) = (0, 0);
    for start in 0..starts {
        let said = shell(&wall, &place, SessionId::from_bits(u128::from(start)), &script).await;
        started += u64::from(said.as_ref().is_some_and(|said| said.contains("over")));
        open += u64::from(said.is_some_and(|said| said.contains("secret")));
    }
    let exchanged = exchanging.end();
    println!("{started} of {starts} were started, {open} of them read the secret, {exchanged} exchanges");
    assert!(
        exchanged > 10 * starts && started > starts / 2,
        "{started} were started in {exchanged} exchanges"
    );
    assert_eq!(open, 0, "of {started}");
}

/// The number of times a test does something: as the environment says, or so often. `xtask/src/counts.rs` has all of them.
pub(crate) fn count(name: &str, or: u64) -> u64 {
    std::env::var(name).map_or(or, |value| value.parse().expect("a number"))
}
