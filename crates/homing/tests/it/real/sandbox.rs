//! The sandbox that codex brings along, behind the wall in both of its layouts: it starts, and closes what it should.

use serde_json::json;
use testkit::RealAgent;

use super::{Acts, Trial};

#[test]
fn codex_has_its_own_sandbox_behind_either_layout() {
    let trial = Trial::new(RealAgent::Codex, Acts::AtOnce);
    let codex = RealAgent::Codex.program();
    let codex = codex.to_str().expect("a plain name");
    let directory = trial.homing.place().canonicalize().unwrap();
    for layout in ["hide", "list"] {
        let to = json!({ "new": { "directory": directory, "agent": "scripted" } });
        let command = format!("{codex} sandbox sh -c 'echo inside; touch made 2>/dev/null || echo closed'");
        let said = trial.homing.http().converse(&to, &format!("!run {command} 2>&1"));
        assert!(said.contains("inside\nclosed"), "{layout}: {said}");
        assert!(!directory.join("made").exists(), "{layout}: {said}");
        trial.homing.run(&["user", "add", layout]).expect(0);
    }
}
