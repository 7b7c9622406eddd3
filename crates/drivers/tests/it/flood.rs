//! An agent that prints more than anybody wants: our memory stays as it is, the turn ends with words that say why, and
//! nothing is left. What is printed goes past the agent's own words, straight into its output.

use std::time::Duration;

use agent::AgentEvent;
use homing_drivers::{ScriptedConfig, TurnLimits};

use crate::bench::Bench;

/// Bytes that our own memory may grow by, whatever an agent prints: a line at its longest, what is read at once, and room for
/// what the allocator does not give back.
const GROWTH_BYTES_MAX: u64 = 8_000_000;

/// The outcome of a flood, without the words in between.
struct Flooded {
    last: AgentEvent,
    notices: Vec<String>,
    others: usize,
    text_bytes: usize,
}

/// Into the agent's output and its complaints, from a tool that it runs.
const OUT: &str = "> /proc/$PPID/fd/1";
const ERRORS: &str = "> /proc/$PPID/fd/2";
/// Bytes that an agent may print unless the configuration says otherwise.
const USUAL: u64 = 64 * 1024 * 1024;

/// Lets a tool print and hears the turn to its end, measuring ourselves all the while.
async fn flood(script: &str, output_bytes_max: u64) -> Flooded {
    let bench = Bench::with(|config| {
        let limits = TurnLimits { output_bytes_max, ..config.limits };
        ScriptedConfig { limits, ..config }
    });
    let launch = bench.launch();
    let mut flooded = Flooded {
        last: AgentEvent::Notice { text: String::new() },
        notices: Vec::new(),
        others: 0,
        text_bytes: 0,
    };
    let mut running = bench.attempt(&launch, &format!("!run {script}"), "#1").await;
    let before = most_bytes();
    while !flooded.last.is_last() {
        match running.next().await {
            AgentEvent::Notice { text } => flooded.notices.push(text),
            AgentEvent::Other { .. } => flooded.others += 1,
            AgentEvent::Text { text } => flooded.text_bytes += text.len(),
            event if event.is_last() => flooded.last = event,
            _ => {}
        }
    }
    let grown = most_bytes() - before;
    println!("we grew by {:.1} MB at most", grown as f64 / 1e6);
    assert!(grown < GROWTH_BYTES_MAX, "{grown}");
    bench.nothing_left_within(&launch.tree, Duration::ZERO).await;
    flooded
}

/// The most memory this process ever had, in bytes.
fn most_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1024
}

fn is_too_much(flooded: &Flooded) -> bool {
    matches!(&flooded.last, AgentEvent::Failed(trouble) if trouble.detail.contains("printed more than 67.1 MB"))
}

#[test]
fn the_usual_limit_is_what_is_flooded_here() {
    assert_eq!(TurnLimits::default().output_bytes_max, USUAL);
}

#[tokio::test]
async fn two_hundred_megabytes_of_lines_end_the_turn() {
    let line = "x".repeat(999);
    let flooded = flood(&format!("yes {line} | head -c 200000000 {OUT}"), USUAL).await;
    assert!(is_too_much(&flooded), "{:?}", flooded.last);
    assert!(flooded.others > 60_000, "what came before was heard: {}", flooded.others);
}

#[tokio::test]
async fn two_hundred_megabytes_of_lines_pass_if_they_may() {
    let line = "x".repeat(9_999);
    let flooded = flood(&format!("yes {line} | head -c 200000000 {OUT}"), u64::MAX).await;
    assert!(matches!(flooded.last, AgentEvent::Finished { .. }), "{:?}", flooded.last);
    assert_eq!(flooded.others, 20_000, "each line is kept, within its bound");
}

#[tokio::test]
async fn a_line_of_fifty_megabytes_is_left_out_and_told() {
    let flooded = flood(&format!("{{ head -c 50000000 /dev/zero | tr '\\0' x; echo; }} {OUT}"), USUAL).await;
    assert!(matches!(flooded.last, AgentEvent::Finished { .. }), "{:?}", flooded.last);
    let left_out = flooded.notices.iter().filter(|text| text.contains("it was left out")).count();
    assert_eq!(left_out, 1, "{:?}", flooded.notices);
}

#[tokio::test]
async fn what_is_no_text_is_kept_as_something_else() {
    let flooded = flood(&format!("head -c 20000000 /dev/urandom {OUT}"), USUAL).await;
    assert!(matches!(flooded.last, AgentEvent::Finished { .. }), "{:?}", flooded.last);
    // One byte in 256 ends a line.
    assert!(flooded.others > 50_000, "{}", flooded.others);
}

#[tokio::test]
async fn endless_complaints_end_the_turn() {
    let flooded = flood(&format!("yes complaint {ERRORS}"), USUAL).await;
    assert!(is_too_much(&flooded), "{:?}", flooded.last);
}

#[tokio::test]
async fn a_line_without_an_end_ends_the_turn() {
    let flooded = flood(&format!("cat /dev/zero {OUT}"), USUAL).await;
    assert!(is_too_much(&flooded), "{:?}", flooded.last);
    assert_eq!(flooded.text_bytes, 0);
}
