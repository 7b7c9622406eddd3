//! A turn that takes too much ends with words that say so and name the key to raise, and nothing is left of it.

use std::time::Duration;

use agent::{AgentEvent, QuestionAnswer};
use homing_drivers::{ScriptedConfig, TurnLimits};

use crate::bench::{Bench, Turned, to_the_end};

/// One turn with these limits, with a control group and without.
async fn turns(change: impl Fn(TurnLimits) -> TurnLimits, text: &str) -> Vec<Turned> {
    let mut turned = Vec::new();
    for group in [true, false] {
        let bench = Bench::with(|config| {
            let limits = change(config.limits);
            ScriptedConfig { group, limits, ..config }
        });
        let launch = bench.launch();
        turned.push(bench.turn(&launch, text).await);
        bench.nothing_left_within(&launch.tree, Duration::ZERO).await;
    }
    turned
}

#[tokio::test]
async fn memory_of_the_whole_tree_is_bounded() {
    // A child in a session of its own, which holds as much as it is told to.
    let hog = "!run (head -c 150000000 /dev/zero; sleep 1000) | setsid tail -c 150000000";
    let limited = |limits| TurnLimits { memory_bytes_max: Some(64_000_000), ..limits };
    for turned in turns(limited, hog).await {
        let words = turned.failure();
        assert!(words.contains("used more than 64.0 MB of memory"), "{words}");
        assert!(words.contains("agents.scripted.limits.memory_max"), "{words}");
    }
}

#[tokio::test]
async fn processes_of_the_whole_tree_are_bounded() {
    let limited = |limits| TurnLimits { processes_max: Some(20), ..limits };
    for turned in turns(limited, "!fork-bomb 40\n!hang").await {
        let words = turned.failure();
        assert!(words.contains("more than 20 processes"), "{words}");
        assert!(words.contains("agents.scripted.limits.processes_max"), "{words}");
    }
}

#[tokio::test]
async fn the_time_of_a_turn_is_bounded() {
    let limited = |limits| TurnLimits { turn_max: Duration::from_millis(500), ..limits };
    for turned in turns(limited, "!fork-bomb 3\n!hang").await {
        let words = turned.failure();
        assert!(words.contains("took more than 500ms"), "{words}");
        assert!(words.contains("agents.scripted.limits.turn_max"), "{words}");
    }
}

#[tokio::test]
async fn an_agent_that_says_nothing_for_too_long_is_ended_for_that() {
    let limited = |limits| TurnLimits { silence_max: Some(Duration::from_millis(500)), ..limits };
    for turned in turns(limited, "!fork-bomb 3\n!hang").await {
        let words = turned.failure();
        assert!(words.contains("said and did nothing for 500ms"), "{words}");
        assert!(words.contains("agents.scripted.limits.silence_max"), "{words}");
    }
}

#[tokio::test]
async fn an_agent_that_goes_on_saying_something_is_not_silent() {
    let limited = |limits| TurnLimits { silence_max: Some(Duration::from_millis(1_000)), ..limits };
    for turned in turns(limited, "!say 15 10").await {
        assert!(turned.native().is_some());
    }
}

#[tokio::test]
async fn an_agent_that_waits_for_an_answer_is_not_silent() {
    let bench = Bench::with(|config| {
        let limits = TurnLimits { silence_max: Some(Duration::from_millis(300)), ..config.limits };
        ScriptedConfig { limits, ..config }
    });
    let launch = bench.launch();
    let mut running = bench.attempt(&launch, "hello\n!ask paint", "hello").await;
    let AgentEvent::Asked { question, .. } = running.next().await else { panic!("it asks") };
    let nothing = tokio::time::timeout(Duration::from_millis(900), running.next()).await;
    assert!(nothing.is_err(), "{nothing:?}");
    running.answer(&question, QuestionAnswer::Allow).await.unwrap();
    let (events, text) = to_the_end(&mut *running).await;
    assert!(text.contains("paint: allowed"), "{events:?}");
}

#[tokio::test]
async fn what_a_turn_prints_is_bounded() {
    let limited = |limits| TurnLimits { output_bytes_max: 2_000_000, ..limits };
    for turned in turns(limited, "!flood 500000000").await {
        let words = turned.failure();
        assert!(words.contains("printed more than 2.0 MB"), "{words}");
        assert!(words.contains("agents.scripted.limits.output_max"), "{words}");
        assert!(turned.text.len() <= 2_000_000);
    }
}

/// A limit is for one turn: a process that stays does not print itself to death over many.
#[tokio::test]
async fn output_is_counted_for_each_turn_of_a_process_that_stays() {
    let bench = Bench::with(|config| {
        let limits = TurnLimits { output_bytes_max: 300_000, ..config.limits };
        ScriptedConfig { kept_max: 1, limits, ..config }
    });
    let mut launch = bench.launch();
    let first = bench.turn(&launch, "!flood 200000").await;
    launch.native = first.native();
    let second = bench.turn(&launch, "!flood 200000").await;
    assert!(second.native().is_some());
    assert_eq!(first.pid, second.pid);
}

#[tokio::test]
async fn a_turn_within_its_limits_is_left_alone() {
    let limited = |limits| TurnLimits {
        memory_bytes_max: Some(500_000_000),
        processes_max: Some(20),
        turn_max: Duration::from_secs(60),
        output_bytes_max: 1_000_000,
        ..limits
    };
    for turned in turns(limited, "!flood 200000\n!run sleep 1.2").await {
        assert!(turned.native().is_some());
    }
}
