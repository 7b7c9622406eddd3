//! A session whose turns fail again and again with the same words, as a person at a terminal sees it.

use crate::{homing, text};

#[test]
fn what_fails_again_and_again_is_said_where_a_session_is_shown() {
    let homing = homing();
    let fails = |words: &str| {
        let receipt = homing.run(&["send", "--json", words]).json(0);
        assert_eq!(homing.http().until_final(&text(&receipt, "id"))["state"], "failed");
        text(&receipt, "session")
    };
    fails("!fail after");
    fails("!fail after");
    let session = fails("!fail before");
    let shown = homing.run(&["show", &session]);
    assert!(!shown.expect(0).contains("failing"), "other words are another failure: {}", shown.out);
    for _ in 0..3 {
        fails("!fail after");
    }
    let shown = homing.run(&["show", &session]);
    for part in ["agent blocked (failing)", "three times in a row", "`homing log`", "`homing send --new`"] {
        assert!(shown.expect(0).contains(part), "{part:?} in {}", shown.out);
    }
    assert_eq!(homing.run(&["send", "-f", "hello"]).code, Some(0), "the next message is tried all the same");
    assert!(!homing.run(&["show", &session]).expect(0).contains("failing"));
}
