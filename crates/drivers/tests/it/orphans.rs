//! Nothing outlives its attempt: children that are double-forked, in sessions of their own and deaf to SIGTERM are gone
//! after every way an attempt can end, with a control group and without.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use agent::conformance::Candidate;
use agent::{Agent, AgentEvent, Launch, TreeName};
use homing_drivers::ScriptedConfig;
use processes::wall::{Wall, WallKind};
use rustix::process::Signal;

use crate::bench::{Bench, WAIT, count_commands, far_side, signal, until};

/// Leaves five of them and then does nothing, deaf to polite signals itself.
const STUBBORN: &str = "!fork-bomb 5\n!hang";
const STARTED: &str = "started 5 children";
const HANGING: &str = "hanging";
/// A silence, in milliseconds, that no test waits for.
const NEVER_SILENT: &str = "600000";

/// Each way in which a tree is held: by a namespace of its own or not, by a group or not; and one that began with a spare.
fn benches() -> [Bench; 5] {
    let without_group = || Bench::with(|config| ScriptedConfig { group: false, ..config });
    [Bench::new(), without_group(), without_namespace(true), without_namespace(false), Bench::with_spare()]
}

/// Found and ended by our own hands alone.
fn without_namespace(group: bool) -> Bench {
    let wall = Arc::new(Wall { kind: WallKind::Off, ..Wall::default() });
    Bench::with(|config| ScriptedConfig { group, wall, ..config })
}

#[tokio::test]
async fn they_are_gone_after_a_stop() {
    for bench in benches() {
        let launch = bench.launch();
        let mut running = bench.attempt(&launch, STUBBORN, HANGING).await;
        assert!(bench.left(&launch.tree) >= 6);
        let verified = running.stop(100).await;
        assert!(verified.gone && verified.killed >= 6, "{verified:?}");
        assert_eq!(bench.left(&launch.tree), 0);
        assert_no_group(&launch.tree);
    }
}

#[tokio::test]
async fn they_are_gone_when_the_agent_has_finished() {
    for bench in benches() {
        let launch = bench.launch();
        let mut running = bench.attempt(&launch, "!fork-bomb 5", STARTED).await;
        let mut notices = 0;
        let last = loop {
            match running.next().await {
                AgentEvent::Notice { text } if text.starts_with("ended 5 processes") => notices += 1,
                event if event.is_last() => break event,
                _ => {}
            }
        };
        assert!(matches!(last, AgentEvent::Finished { .. }), "{last:?}");
        assert_eq!(notices, 1);
        assert_eq!(bench.left(&launch.tree), 0);
        assert_no_group(&launch.tree);
    }
}

#[tokio::test]
async fn they_are_gone_after_the_agent_was_killed() {
    for bench in benches() {
        let launch = bench.launch();
        let mut running = bench.attempt(&launch, STUBBORN, HANGING).await;
        let own = bench.log()[0]["pid"].as_u64().unwrap() as u32;
        signal(bench.number_outside(&launch.tree, own).unwrap(), Signal::KILL);
        let last = last_of(&mut running).await;
        assert!(
            matches!(&last, AgentEvent::Died { verified, .. } if verified.gone && verified.killed >= 5),
            "{last:?}"
        );
        assert_eq!(bench.left(&launch.tree), 0);
    }
}

#[tokio::test]
async fn they_are_gone_after_the_supervisor_was_killed_and_what_is_left_ended() {
    for bench in benches() {
        let launch = bench.launch();
        let running = bench.attempt(&launch, STUBBORN, HANGING).await;
        signal(bench.supervisor_of(&launch.tree), Signal::KILL);
        let ended = bench.agent.end_leftovers(launch.tree.clone()).await.unwrap();
        // Where they had a namespace, the kernel has ended them.
        assert!(ended.killed >= 5 || bench.has_namespace, "{ended:?}");
        assert_eq!(bench.left(&launch.tree), 0);
        assert_no_group(&launch.tree);
        assert_eq!(std::fs::read_dir(bench.locks()).unwrap().count(), 0);
        drop(running);
    }
}

/// A listener hears of a death only after the rest was ended.
#[tokio::test]
async fn a_killed_supervisor_is_a_death_with_a_burial() {
    for bench in benches() {
        let launch = bench.launch();
        let mut running = bench.attempt(&launch, STUBBORN, HANGING).await;
        signal(bench.supervisor_of(&launch.tree), Signal::KILL);
        let last = last_of(&mut running).await;
        assert!(matches!(last, AgentEvent::Died { verified, .. } if verified.gone));
        assert_eq!(bench.left(&launch.tree), 0);
    }
}

#[tokio::test]
async fn a_supervisor_that_does_not_move_is_ended_with_its_tree() {
    let bench = Bench::new();
    let launch = bench.launch();
    let running = bench.attempt(&launch, STUBBORN, HANGING).await;
    signal(bench.supervisor_of(&launch.tree), Signal::STOP);
    drop(running);
    bench.agent.end_leftovers(launch.tree.clone()).await.unwrap();
    bench.nothing_left_within(&launch.tree, Duration::ZERO).await;
}

#[tokio::test]
async fn stop_works_though_the_supervisor_does_not_move() {
    let bench = Bench::new();
    let launch = bench.launch();
    let mut running = bench.attempt(&launch, STUBBORN, HANGING).await;
    signal(bench.supervisor_of(&launch.tree), Signal::STOP);
    assert!(running.stop(0).await.gone);
    bench.nothing_left_within(&launch.tree, Duration::ZERO).await;
}

/// They go because the line was closed: nobody waits for beats that long. How long it takes is measured where nothing else
/// runs, by `cargo xtask orphans`.
#[tokio::test]
async fn they_are_gone_soon_after_the_daemon_was_killed() {
    let bench = Bench::new();
    let (mut daemon, tree) = daemon(&bench, NEVER_SILENT);
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    bench.nothing_left_within(&tree, WAIT).await;
    assert_no_group(&tree);
}

#[tokio::test]
async fn they_are_gone_after_the_daemon_missed_its_beats() {
    let bench = Bench::new();
    let (mut daemon, tree) = daemon(&bench, "1500");
    signal(daemon.id() as i32, Signal::STOP);
    bench.nothing_left_within(&tree, WAIT).await;
    signal(daemon.id() as i32, Signal::CONT);
    assert!(daemon.wait().unwrap().success(), "it hears of the death and goes");
}

/// A freeze of the whole machine is no silence, whoever is woken first.
#[tokio::test]
async fn they_live_on_after_everything_was_frozen() {
    let bench = Bench::new();
    let (mut daemon, tree) = daemon(&bench, "3000");
    let supervisor = bench.supervisor_of(&tree);
    signal(daemon.id() as i32, Signal::STOP);
    // It hears the last beat.
    tokio::time::sleep(Duration::from_millis(100)).await;
    signal(supervisor, Signal::STOP);
    tokio::time::sleep(Duration::from_millis(3_500)).await;
    signal(supervisor, Signal::CONT);
    tokio::time::sleep(Duration::from_millis(300)).await;
    signal(daemon.id() as i32, Signal::CONT);
    tokio::time::sleep(Duration::from_millis(3_500)).await;
    assert!(bench.left(&tree) >= 6, "it beats again, and its tree is there");
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    bench.nothing_left_within(&tree, WAIT).await;
}

#[tokio::test]
async fn a_daemon_that_beats_is_left_alone() {
    let bench = Bench::with(|config| ScriptedConfig { silence_ms_max: 3_000, ..config });
    let mut running = bench.attempt(&bench.launch(), "!sleep 5000\nhello", "#1 hello").await;
    // Nobody asks for the next event meanwhile: the beats do not depend on it.
    tokio::time::sleep(Duration::from_millis(4_000)).await;
    assert!(matches!(last_of(&mut running).await, AgentEvent::Finished { .. }));
}

/// A service manager tells everything at once to end; the supervisor still has its work before it.
#[tokio::test]
async fn a_supervisor_is_deaf_to_polite_signals_and_its_agent_is_not() {
    let bench = Bench::new();
    let launch = bench.launch();
    let mut running = bench.attempt(&launch, "!sleep 60000", "#1").await;
    for polite in [Signal::TERM, Signal::INT, Signal::HUP] {
        signal(bench.supervisor_of(&launch.tree), polite);
    }
    let verified = running.stop(10_000).await;
    assert!(verified.gone && verified.killed == 0, "it went by itself: {verified:?}");
}

/// No mark and no parent of ours: still a descendant.
#[tokio::test]
async fn children_that_shed_the_mark_are_gone_after_a_stop() {
    for (bench, tail) in benches().into_iter().zip([25, 75, 26, 76, 27]) {
        // A command line that no other test on this machine has.
        let naps = format!("9{}.{tail}", std::process::id());
        let launch = bench.launch();
        let text = format!("!run (setsid env -i sleep {naps} >/dev/null 2>&1 &)\n!sleep 60000");
        let mut running = bench.attempt(&launch, &text, "#1").await;
        let deadline = Instant::now() + WAIT;
        while count_commands(&format!("sleep {naps}")) == 0 {
            assert!(Instant::now() < deadline);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert!(running.stop(0).await.gone);
        assert_eq!(count_commands(&format!("sleep {naps}")), 0);
    }
}

/// No mark, no parent of ours, and a supervisor that was killed before it could do anything: it had written them down.
#[tokio::test]
async fn children_that_shed_the_mark_are_gone_after_the_supervisor_was_killed_and_what_is_left_ended() {
    for (bench, tail) in benches().into_iter().zip([35, 85, 36, 86, 37]) {
        let naps = format!("9{}.{tail}", std::process::id());
        let command = format!("sleep {naps}");
        let launch = bench.launch();
        let text = format!("!run (setsid env -i {command} >/dev/null 2>&1 &)\n!say 1 0\n!sleep 60000");
        let running = bench.attempt(&launch, &text, "word1").await;
        until("it is seen", WAIT, || count_commands(&command) == 1).await;
        // The agent, the one that left it, and the first process of their namespace.
        let seen = || bench.holder_of(&launch.tree)["seen"].as_array().unwrap().len();
        until("it is written down", WAIT, || seen() == 2 + usize::from(bench.has_namespace)).await;
        signal(bench.supervisor_of(&launch.tree), Signal::KILL);
        bench.agent.end_leftovers(launch.tree.clone()).await.unwrap();
        assert_eq!(count_commands(&command), 0);
        bench.nothing_left_within(&launch.tree, Duration::ZERO).await;
        drop(running);
    }
}

/// An agent may be able to write into its lock file. Nothing that was there before its supervisor can be meant.
#[tokio::test]
async fn a_record_that_names_an_older_process_names_none() {
    let bench = Bench::new();
    let launch = bench.launch();
    let mut bystander = Command::new("sleep").arg("1000").spawn().unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", bystander.id())).unwrap();
    let started: u64 = stat.rsplit(')').next().unwrap().split_whitespace().nth(19).unwrap().parse().unwrap();
    let record = serde_json::json!({
        "pid": 1, "started": started + 1, "group": null, "seen": [[bystander.id(), started]],
    });
    std::fs::write(bench.locks().join(format!("{}.lock", launch.tree)), record.to_string()).unwrap();
    assert_eq!(bench.agent.end_leftovers(launch.tree.clone()).await.unwrap().killed, 0);
    assert!(bystander.try_wait().unwrap().is_none(), "it has nothing to do with us");
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

/// A daemon may die between turns, too, when it keeps a process that does nothing.
#[tokio::test]
async fn what_a_killed_daemon_kept_is_gone_soon() {
    let bench = Bench::new();
    let (mut keeper, tree) = keeper(&bench, NEVER_SILENT);
    keeper.kill().unwrap();
    keeper.wait().unwrap();
    bench.nothing_left_within(&tree, WAIT).await;
    assert_no_group(&tree);
}

#[tokio::test]
async fn what_a_stopped_daemon_kept_is_gone_after_its_beats_were_missed() {
    let bench = Bench::new();
    let (mut keeper, tree) = keeper(&bench, "1500");
    signal(keeper.id() as i32, Signal::STOP);
    bench.nothing_left_within(&tree, WAIT).await;
    keeper.kill().unwrap();
    keeper.wait().unwrap();
}

/// Children that fork all the time and leave at once are caught, too.
#[tokio::test]
async fn a_tree_that_keeps_forking_is_gone_after_a_stop() {
    for bench in benches() {
        let launch = bench.launch();
        let hop = "i=0; while [ $i -lt 8 ]; do (setsid sh -c 'while :; do (sleep 0.01 &); done' >/dev/null 2>&1 &); i=$((i+1)); done";
        let mut running = bench.attempt(&launch, &format!("!run {hop}\n!say 1 0\n!hang"), "word1").await;
        let verified = running.stop(0).await;
        assert!(verified.gone, "{verified:?}");
        assert_eq!(bench.left(&launch.tree), 0);
    }
}

/// A daemon in a process of its own whose agent has left its children; and the name of that tree.
fn daemon(bench: &Bench, silence_ms: &str) -> (Child, TreeName) {
    let session = bench.session();
    let mut command = Command::new(far_side());
    command.args([
        "daemon",
        bench.place.path().to_str().unwrap(),
        silence_ms,
        &session.to_string(),
        STUBBORN,
    ]);
    let mut daemon = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(daemon.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains(HANGING)));
    let tree = TreeName::of(session);
    assert!(bench.left(&tree) >= 6);
    (daemon, tree)
}

/// A daemon in a process of its own that keeps an idle one; and the name of its tree.
fn keeper(bench: &Bench, silence_ms: &str) -> (Child, TreeName) {
    let session = bench.session();
    let mut command = Command::new(far_side());
    let place = bench.place.path().to_str().unwrap();
    command.args(["keeper", place, silence_ms, &session.to_string(), "hello"]);
    let mut keeper = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(keeper.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "idle");
    let tree = TreeName::of(session);
    assert_eq!(bench.left(&tree), 1, "the process is kept");
    (keeper, tree)
}

async fn last_of(running: &mut Box<dyn agent::Running>) -> AgentEvent {
    loop {
        let event = tokio::time::timeout(WAIT, running.next()).await.unwrap();
        if event.is_last() {
            return event;
        }
    }
}

fn assert_no_group(tree: &TreeName) {
    let groups =
        std::fs::read_dir("/sys/fs/cgroup/unified").into_iter().chain(std::fs::read_dir("/sys/fs/cgroup"));
    let name = tree.to_string();
    assert!(!groups.flatten().flatten().any(|entry| entry.file_name().to_string_lossy().contains(&name)));
}

/// The launch the daemon above makes and the one a bench makes have the same fence; nothing else ties them.
#[test]
fn benches_and_daemons_name_trees_alike() {
    let bench = Bench::new();
    let launch: Launch = bench.launch();
    assert_eq!(launch.tree, TreeName::of(launch.session));
}
