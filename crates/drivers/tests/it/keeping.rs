//! Processes that are kept between turns: used again by their own session for the same, replaced when they are not there
//! or not what is wanted, and gone when nobody waits for them.

use std::time::{Duration, Instant};

use agent::conformance::{Blow, Candidate};
use agent::{Account, Agent, AgentEvent, Launch};
use homing_drivers::ScriptedConfig;
use kernel::{Native, PersonId};
use rustix::process::Signal;

use crate::bench::{Bench, WAIT, ground, is_alive, signal, until};

fn bench() -> Bench {
    Bench::with(|config| ScriptedConfig { kept_max: 2, ..config })
}

/// A turn, after which the launch goes on with its conversation; the process it was in.
async fn turn(bench: &Bench, launch: &mut Launch, text: &str) -> i32 {
    let turned = bench.turn(launch, text).await;
    launch.native = turned.native();
    turned.pid
}

#[tokio::test]
async fn a_kept_process_is_used_again_and_remembers() {
    let bench = bench();
    let mut launch = bench.launch();
    let first = turn(&bench, &mut launch, "the word is owl").await;
    assert_eq!(bench.left(&launch.tree), 1);
    let second = bench.turn(&launch, "!recall").await;
    assert_eq!(second.pid, first);
    assert!(second.text.contains("the word is owl"), "{}", second.text);
    let ups = bench.log().iter().filter(|entry| entry["event"] == "up").count();
    assert_eq!(ups, 1, "it came up once");
}

/// The log of what ran names each message by its own turn, though the process is the same.
#[tokio::test]
async fn each_turn_in_a_kept_process_is_its_own() {
    let bench = bench();
    let mut launch = bench.launch();
    turn(&bench, &mut launch, "one").await;
    launch.fence.turn = kernel::Turn(2);
    launch.message = kernel::MessageId::from_bits(2);
    turn(&bench, &mut launch, "two").await;
    let starts: Vec<_> = bench.log().into_iter().filter(|entry| entry["event"] == "start").collect();
    assert_eq!([&starts[0]["turn"], &starts[1]["turn"]], [1, 2]);
    assert_eq!(starts[1]["message"], launch.message.to_string());
}

#[tokio::test]
async fn a_kept_process_that_was_killed_is_replaced_and_remembers() {
    let bench = bench();
    let mut launch = bench.launch();
    let first = turn(&bench, &mut launch, "the word is owl").await;
    signal(first, Signal::KILL);
    // A signal is sent before it is obeyed.
    let stat = || std::fs::read_to_string(format!("/proc/{first}/stat")).unwrap_or_default();
    testkit::eventually("it is dead", || (stat().is_empty() || stat().contains(") Z ")).then_some(()));
    let second = bench.turn(&launch, "!recall").await;
    assert_ne!(second.pid, first);
    assert!(second.text.contains("the word is owl"), "{}", second.text);
}

#[tokio::test]
async fn a_kept_process_whose_supervisor_was_killed_is_gone_and_replaced() {
    let bench = bench();
    let mut launch = bench.launch();
    let first = turn(&bench, &mut launch, "the word is owl").await;
    signal(bench.supervisor_of(&launch.tree), Signal::KILL);
    bench.nothing_left_within(&launch.tree, WAIT).await;
    let second = bench.turn(&launch, "!recall").await;
    assert_ne!(second.pid, first);
    assert!(second.text.contains("the word is owl"), "{}", second.text);
}

/// It is there, and does not say so: it is ended, seen gone, and replaced.
#[tokio::test]
async fn a_kept_process_whose_supervisor_does_not_move_is_replaced() {
    let bench = bench();
    let mut launch = bench.launch();
    let first = turn(&bench, &mut launch, "the word is owl").await;
    signal(bench.supervisor_of(&launch.tree), Signal::STOP);
    let second = bench.turn(&launch, "!recall").await;
    assert!(!is_alive(first) && second.pid != first);
    assert!(second.text.contains("the word is owl"), "{}", second.text);
}

/// Whoever says that an attempt is about to begin has the process looked at before anybody waits for it.
#[tokio::test]
async fn a_kept_process_that_hangs_when_it_is_expected_is_ended_before_anybody_comes() {
    let bench = bench();
    let mut launch = bench.launch();
    let first = turn(&bench, &mut launch, "the word is owl").await;
    bench.strike(&launch.tree, Blow::Freeze).unwrap();
    // A hint that comes before the process rests is heard by nobody.
    let hints = async {
        loop {
            bench.agent.expect(launch.session);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        () = bench.nothing_left_within(&launch.tree, WAIT) => {}
        () = hints => {}
    }
    let second = bench.turn(&launch, "!recall").await;
    assert_ne!(second.pid, first);
    assert!(second.text.contains("the word is owl"), "{}", second.text);
}

#[tokio::test]
async fn a_process_that_was_expected_and_has_died_since_is_replaced() {
    let bench = bench();
    let mut launch = bench.launch();
    let first = turn(&bench, &mut launch, "the word is owl").await;
    bench.agent.expect(launch.session);
    signal(first, Signal::KILL);
    bench.nothing_left_within(&launch.tree, WAIT).await;
    let second = bench.turn(&launch, "!recall").await;
    assert_ne!(second.pid, first);
    assert!(second.text.contains("the word is owl"), "{}", second.text);
}

#[tokio::test]
async fn an_attempt_that_is_expected_starts_nothing_and_one_that_comes_later_is_served() {
    let bench = bench();
    let mut launch = bench.launch();
    bench.agent.expect(launch.session);
    assert_eq!(bench.left(&launch.tree), 0, "there is nothing to look at");
    let first = turn(&bench, &mut launch, "one").await;
    for _ in 0..5 {
        bench.agent.expect(launch.session);
    }
    assert_eq!(turn(&bench, &mut launch, "two").await, first);
    // One that was expected and is not wanted makes room like any other.
    bench.agent.expect(launch.session);
    let mut others = [bench.launch(), bench.launch()];
    for other in &mut others {
        turn(&bench, other, "three").await;
    }
    bench.nothing_left_within(&launch.tree, WAIT).await;
}

#[tokio::test]
async fn a_kept_process_is_not_used_for_anything_else() {
    let bench = bench();
    let elsewhere = tempfile::tempdir().unwrap();
    let person = || PersonId::from_bits(7);
    let secrets = |value: &str| vec![("TOKEN".to_owned(), value.to_owned())];
    let changes: [&dyn Fn(&mut Launch); 6] = [
        &|launch| launch.model = Some("large".to_owned()),
        &|launch| launch.mode = Some("other".to_owned()),
        &|launch| launch.directory = ground(elsewhere.path().canonicalize().unwrap()),
        &|launch| launch.account = Account::Person { person: person(), secrets: secrets("a") },
        &|launch| launch.account = Account::Person { person: person(), secrets: secrets("b") },
        &|launch| launch.native = None,
    ];
    let mut launch = bench.launch();
    let mut before = turn(&bench, &mut launch, "one").await;
    for (number, change) in changes.iter().enumerate() {
        change(&mut launch);
        let mut running = bench.agent.start(launch.clone()).await.unwrap();
        assert!(!is_alive(before), "{number}: it is gone before another one is started");
        assert!(running.stop(0).await.gone);
        before = turn(&bench, &mut launch, "next").await;
    }
    // The same again is the same process.
    assert_eq!(turn(&bench, &mut launch, "last").await, before);
    // Another conversation in the place of ours is another one, too.
    launch.native = Some(Native::new("11111111-1111-4111-8111-111111111111"));
    let _ = bench.agent.start(launch.clone()).await;
    assert!(!is_alive(before));
}

#[tokio::test]
async fn a_kept_process_goes_when_nobody_came_for_it() {
    let bench =
        Bench::with(|config| ScriptedConfig { kept_max: 2, idle_max: Duration::from_millis(300), ..config });
    let mut launch = bench.launch();
    let before = Instant::now();
    let first = turn(&bench, &mut launch, "one").await;
    bench.nothing_left_within(&launch.tree, WAIT).await;
    assert!(before.elapsed() >= Duration::from_millis(300));
    assert_ne!(turn(&bench, &mut launch, "two").await, first);
}

#[tokio::test]
async fn the_one_that_waits_longest_goes_when_there_are_too_many() {
    let bench = bench();
    let mut launches = [bench.launch(), bench.launch(), bench.launch()];
    let mut pids = Vec::new();
    for launch in &mut launches {
        pids.push(turn(&bench, launch, "one").await);
    }
    bench.nothing_left_within(&launches[0].tree, WAIT).await;
    for at in [1, 2] {
        assert_eq!(turn(&bench, &mut launches[at], "two").await, pids[at]);
    }
}

#[tokio::test]
async fn released_and_closed_means_gone() {
    let bench = bench();
    let mut launches = [bench.launch(), bench.launch()];
    for launch in &mut launches {
        turn(&bench, launch, "one").await;
    }
    bench.agent.release(launches[0].session).await;
    assert_eq!(bench.left(&launches[0].tree), 0);
    assert_eq!(bench.left(&launches[1].tree), 1, "the other one is not meant");
    bench.agent.close().await;
    assert_eq!(bench.left(&launches[1].tree), 0);
    // Twice is fine.
    bench.agent.release(launches[0].session).await;
    bench.agent.close().await;
}

/// A deaf process, which stays when its input ends, is ended all the same.
#[tokio::test]
async fn what_a_turn_leaves_running_is_ended_with_it_and_told() {
    let bench = bench();
    let mut launch = bench.launch();
    let turned = bench.turn(&launch, "the word is owl\n!fork-bomb 5").await;
    launch.native = turned.native();
    let is_notice =
        |event: &AgentEvent| matches!(event, AgentEvent::Notice { text } if text.contains("left behind"));
    assert!(turned.events.iter().any(is_notice), "{:?}", turned.events);
    assert_eq!(bench.left(&launch.tree), 0);
    let next = bench.turn(&launch, "!recall").await;
    assert!(next.text.contains("the word is owl"), "{}", next.text);
}

#[tokio::test]
async fn the_leftovers_of_a_tree_with_a_kept_process_can_be_ended() {
    let bench = bench();
    let mut launch = bench.launch();
    let first = turn(&bench, &mut launch, "one").await;
    bench.agent.end_leftovers(launch.tree.clone()).await.unwrap();
    bench.nothing_left_within(&launch.tree, Duration::ZERO).await;
    assert_ne!(turn(&bench, &mut launch, "two").await, first);
}

#[tokio::test]
async fn two_sessions_do_not_touch() {
    let bench = bench();
    let (mut one, mut other) = (bench.launch(), bench.launch());
    let (first, second) =
        (turn(&bench, &mut one, "the word is owl").await, turn(&bench, &mut other, "the word is fox").await);
    signal(first, Signal::KILL);
    until("it is gone", WAIT, || !is_alive(first)).await;
    for _ in 0..3 {
        let (recalled, others) = (bench.turn(&one, "!recall").await, bench.turn(&other, "!recall").await);
        assert!(recalled.text.contains("owl") && !recalled.text.contains("fox"), "{}", recalled.text);
        assert!(others.text.contains("fox") && !others.text.contains("owl"), "{}", others.text);
        assert_eq!(others.pid, second);
    }
}

/// Nothing that is stopped or has failed is kept.
#[tokio::test]
async fn only_a_turn_that_ended_well_leaves_a_process() {
    let bench = bench();
    let launch = bench.launch();
    let mut running = bench.attempt(&launch, "!sleep 60000", "#1").await;
    assert!(running.stop(5_000).await.gone);
    assert_eq!(bench.left(&launch.tree), 0);
    let turned = bench.turn(&launch, "!refuse").await;
    assert!(matches!(turned.last(), AgentEvent::Failed(_)), "{:?}", turned.last());
    assert_eq!(bench.left(&launch.tree), 0);
}
