//! The wall around agents that do what agents do. What the probe finds from inside is tried in `processes`.
//!
//! These need a kernel with Landlock that bounds signals (6.12), and either root or namespaces of users.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::sync::Arc;

use agent::conformance::Candidate;
use agent::{Agent, AgentEvent, Launch, Message};
use homing_drivers::ScriptedConfig;
use kernel::{Failure, MessageId, SessionId};
use processes::count_marked;
use processes::wall::{DataDirectory, HiddenPath, NoSuchUser, OsUser, Wall, WallKind};
use tempfile::TempDir;

use crate::bench::{Bench, be_ready, far_side, fence, ground, to_the_end};

/// A user that every machine has, and nothing belongs to.
const NOBODY: (&str, u32) = ("nobody", 65_534);

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

    /// The far side where everybody may start it.
    fn exe(&self) -> PathBuf {
        let exe = self.place.path().join("far-side");
        std::fs::copy(far_side(), &exe).unwrap();
        exe
    }
}

/// A bench whose agents have a wall around that data directory.
fn bench(home: &Home, change: impl FnOnce(Wall) -> Wall) -> Bench {
    let wall = change(Wall { data: Some(DataDirectory::of(&home.data()).unwrap()), ..Wall::default() });
    let (agents, locks) = (home.data().join("agents/{session}"), home.data().join("attempts"));
    Bench::with(|config| ScriptedConfig { home: agents, locks, wall: Arc::new(wall), ..config })
}

#[tokio::test]
async fn an_agent_works_beside_what_it_does_not_see() {
    let home = Home::new();
    let bench = bench(&home, |wall| wall);
    let (beside, data) = (bench.directory(), home.data());
    let script = format!(
        "cd {beside} && echo one > new && cat new && ls -d {beside}/new && ls -A {data} && echo $HOME && \
         echo two > {above}/made && cat {above}/made; cat {data}/token {data}/homing.db",
        beside = beside.display(),
        data = data.display(),
        above = home.place.path().display(),
    );
    let launch = bench.launch();
    let turned = bench.turn(&launch, &format!("!run {script}")).await;
    // Also directly above what is hidden, which is where homes have their data.
    assert!(turned.text.contains("one\n") && turned.text.contains("two\n"), "{}", turned.text);
    assert!(!turned.text.contains("a secret"), "{}", turned.text);
    assert!(turned.text.contains("agents\n") && turned.text.contains("turns\n"), "{}", turned.text);
    assert!(home.place.path().join("made").exists(), "what it writes is there for everybody");
    assert!(home.data().join("agents").join(launch.session.to_string()).join("memory").exists());
}

#[tokio::test]
async fn what_is_hidden_besides_is_not_there() {
    let home = Home::new();
    let (directory, file) = (home.place.path().join("others"), home.place.path().join("credentials"));
    std::fs::create_dir(&directory).unwrap();
    for path in [&directory.join("letter"), &file] {
        std::fs::write(path, "a secret").unwrap();
    }
    for kind in [WallKind::Auto, WallKind::Landlock] {
        let nowhere = PathBuf::from("/nowhere/at/all");
        let hide = [&directory, &file, &nowhere].map(HiddenPath::of).to_vec();
        let bench = bench(&home, |wall| Wall { kind, hide, ..wall });
        let script = format!("cat {}/letter {}; echo done", directory.display(), file.display());
        let turned = bench.turn(&bench.launch(), &format!("!run {script}")).await;
        assert!(
            turned.text.contains("done") && !turned.text.contains("a secret"),
            "{kind:?}: {}",
            turned.text
        );
        let there = Launch { directory: ground(&directory), ..bench.launch() };
        let trouble = bench.agent.start(there).await.err().unwrap();
        assert!(trouble.failure == Failure::Refused && trouble.detail.contains("hidden"), "{trouble}");
    }
}

#[tokio::test]
async fn another_sessions_directory_is_no_place_to_be() {
    let home = Home::new();
    let bench = bench(&home, |wall| wall);
    let other = home.data().join("work").join(SessionId::from_bits(7).to_string());
    std::fs::create_dir_all(&other).unwrap();
    let trouble =
        bench.agent.start(Launch { directory: ground(other), ..bench.launch() }).await.err().unwrap();
    assert!(trouble.detail.contains("hidden"), "{trouble}");
}

#[tokio::test]
async fn nothing_starts_when_the_data_directory_was_moved() {
    let home = Home::new();
    let bench = bench(&home, |wall| wall);
    let launch = bench.launch();
    std::fs::rename(home.data(), home.place.path().join("moved")).unwrap();
    std::fs::create_dir_all(home.data()).unwrap();
    let trouble = bench.agent.start(launch).await.err().unwrap();
    assert!(trouble.detail.contains("not the directory that the server was started with"), "{trouble}");
}

#[tokio::test]
async fn an_agent_that_signals_everybody_reaches_only_its_own() {
    // Above it is its supervisor, or the first process of its namespace, to which nothing from inside is fatal.
    for (kind, heard) in [(WallKind::Landlock, "not permitted"), (WallKind::Mounts, "mine")] {
        let home = Home::new();
        let bench = bench(&home, |wall| Wall { kind, ..wall });
        let launch = bench.launch();
        // What it may signal are its own children, and it may do so.
        let script = "S=$(sed 's/.*) . \\([0-9]*\\).*/\\1/' /proc/$PPID/stat); kill -9 $S; kill -STOP $S; \
                      sleep 100 & kill -9 $! && echo mine";
        let turned = bench.turn(&launch, &format!("!run {script}")).await;
        assert!(turned.text.contains("mine"), "{}", turned.text);
        assert!(turned.text.to_lowercase().contains(heard), "{}", turned.text);
        assert!(matches!(turned.last(), AgentEvent::Finished { .. }), "{:?}", turned.last());
        assert_eq!(count_marked(&launch.tree, &home.data().join("attempts")), 0);
    }
}

#[tokio::test]
async fn a_person_with_a_user_of_their_own_runs_as_that_user() {
    let nobody = match OsUser::named(NOBODY.0) {
        Ok(nobody) => nobody,
        Err(why) => {
            assert!(!are_root() && why == NoSuchUser::MayNot, "{why}");
            return;
        }
    };
    let home = Home::new();
    let wall = Wall {
        data: Some(DataDirectory::of(&home.data()).unwrap()),
        home: "/the/servers/home".into(),
        people: BTreeMap::from([("ana".to_owned(), nobody)]),
        ..Wall::default()
    };
    let (agents, locks) = (home.data().join("agents/{session}"), home.data().join("attempts"));
    let bench = Bench::with(|config| {
        let (exe, wall) = (home.exe(), Arc::new(wall));
        ScriptedConfig { exe, home: agents, locks, log: None, wall, ..config }
    });
    let session = bench.session();
    let work = home.data().join("work").join(session.to_string());
    std::fs::create_dir_all(&work).unwrap();
    let own = Launch::new(session, fence(), MessageId::from_bits(1), ground(&work));
    let anas = Launch { whose: "ana".to_owned(), ..own };
    let said =
        talk(&bench, &anas, "!run id -u; echo user $USER; touch mine; cat /etc/shadow; ls ../..").await;
    assert!(said.contains(&NOBODY.1.to_string()) && said.contains("user nobody"), "{said}");
    assert!(!said.contains("root:"), "{said}");
    assert_eq!(work.join("mine").metadata().unwrap().uid(), NOBODY.1);
    assert_eq!(bench.left(&anas.tree), 0);
    // Whoever has none runs as we do.
    let said = talk(&bench, &bench.launch(), "!run id -u; cat /etc/shadow").await;
    assert!(said.contains("root:"), "{said}");
}

/// The answer of the agent to these words.
async fn talk(bench: &Bench, launch: &Launch, text: &str) -> String {
    let mut running = bench.agent.start(launch.clone()).await.unwrap();
    be_ready(&mut *running).await;
    running.hand(Message::new(launch.message, text.to_owned())).await.unwrap();
    to_the_end(&mut *running).await.1
}
