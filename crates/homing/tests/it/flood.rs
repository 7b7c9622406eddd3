//! An agent that floods: the server's memory stays as it is, and every word arrives, or the turn ends and says why.
//!
//! `HOMING_FLOOD` says how many bytes shall arrive (20 MB by default).

use std::time::{Duration, Instant};

use testkit::Homing;

use crate::{count, setup, text};

/// The growth of the server's memory at its peak, however many bytes pass: the pages that the database keeps at
/// hand, and what waits to be written or read.
const GROWTH_BYTES_MAX: u64 = 64_000_000;
const FLOOD_MAX: Duration = Duration::from_secs(240);

#[test]
fn a_flood_leaves_the_server_as_it_was() {
    let bytes = count("HOMING_FLOOD", 20_000_000);
    let homing = setup().config("[agents.scripted]\nlimits.output_max = \"1GiB\"\n").start();
    homing.converse("api:flood/all", "hello");
    let (before, began) = (most_bytes(&homing), Instant::now());
    let receipt = homing.send("api:flood/all", &format!("!flood {bytes}"));
    let receipt = homing.http().until_final_within(&text(&receipt, "id"), FLOOD_MAX);
    let grown = most_bytes(&homing) - before;
    println!("{bytes} bytes took {:?}, and the server grew by {grown} at most", began.elapsed());
    assert_eq!(text(&receipt, "state"), "answered");
    assert!(grown < GROWTH_BYTES_MAX, "{grown}");
    assert_eq!(homing.converse("api:flood/all", "next"), "#3 next");
    homing.until_nothing_is_left();
}

#[test]
fn a_flood_that_is_too_much_ends_the_turn_and_leaves_the_server_as_it_was() {
    let homing = setup()
        .config("[agents.scripted]\nlimits.output_max = \"4MiB\"\n[policy]\nafter_failure = \"go_on\"\n")
        .start();
    homing.converse("api:flood/all", "hello");
    let before = most_bytes(&homing);
    let receipt = homing.send("api:flood/all", "!flood 200000000");
    let (session, message) = (text(&receipt, "session"), text(&receipt, "id"));
    let mut follow = homing.http().follow(&format!("/api/v1/sessions/{session}/facts"), None).unwrap();
    let why = |heard: &testkit::StreamEvent| {
        let said = heard.json["text"].as_str().unwrap_or_default();
        heard.json["type"] == "notice"
            && said.contains("printed more than 4.2 MB")
            && said.contains("limits.output_max")
    };
    follow.until(why);
    assert_eq!(text(&homing.http().until_final(&message), "state"), "failed");
    let grown = most_bytes(&homing) - before;
    assert!(grown < GROWTH_BYTES_MAX, "{grown}");
    assert_eq!(homing.converse("api:flood/all", "next"), "#3 next");
    homing.until_nothing_is_left();
}

#[test]
fn a_flood_ends_at_the_room_of_its_person_who_is_told_which_bound_it_was() {
    let config = "[limits]\nwords_bytes_per_person_max = \"8MiB\"\n\
        [agents.scripted]\nlimits.output_max = \"1GiB\"\n[policy]\nafter_failure = \"go_on\"\n";
    let homing = setup().config(config).start();
    let receipt = homing.send("api:flood/all", "!flood 200000000");
    let (session, message) = (text(&receipt, "session"), text(&receipt, "id"));
    let mut follow = homing.http().follow(&format!("/api/v1/sessions/{session}/facts"), None).unwrap();
    follow.until(|heard| {
        let said = heard.json["text"].as_str().unwrap_or_default();
        heard.json["type"] == "notice" && said.contains("limits.words_bytes_per_person_max allows 8.0 MiB")
    });
    let receipt = homing.http().until_final(&message);
    assert_eq!((text(&receipt, "state"), text(&receipt, "why")), ("failed".into(), "refused".into()));
    // What does not fit any more is refused by the same name, and changes nothing.
    let disk = || homing.run(&["whoami", "--json"]).json(0)["disk"].clone();
    let before = disk();
    let used = before["words_bytes"].as_u64().unwrap();
    assert!((7 << 20..=8 << 20).contains(&used), "{before}");
    assert_eq!(before["words_bytes_max"], 8 << 20);
    let body = serde_json::json!({ "to": { "new": {} }, "text": "x".repeat(400_000) });
    let refused = homing.http().post("/api/v1/messages", &body);
    assert_eq!((refused.status, refused.json()["code"].as_str()), (429, Some("too_much_on_disk")));
    assert!(refused.text().contains("limits.words_bytes_per_person_max"), "{}", refused.text());
    assert_eq!(disk(), before);
    let figures = homing.http().get("/metrics").text();
    assert!(figures.contains(&format!("homing_disk_words_bytes {used}")), "{figures}");
    homing.until_nothing_is_left();
}

/// The most memory that the server ever had.
fn most_bytes(homing: &Homing) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", homing.pid())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    line.split_whitespace().next().and_then(|kilobytes| kilobytes.parse::<u64>().ok()).expect("a number")
        * 1024
}
