//! A team's agents in the home of whoever runs the server: each has what is its own there, goes on with what it keeps, and sees nothing
//! else of it.

use serde_json::json;
use testkit::{AgentFixture, RealAgent};

use super::{Acts, Trial, configuration};
use crate::setup;

const CANARY: &str = "canary-home-51c8";

impl Trial {
    /// A server with another person on it, whose agent has the home of the one who runs it.
    fn in_a_persons_home(agent: RealAgent) -> Self {
        let stage = AgentFixture::new(agent);
        let own = configuration(&stage, Acts::AtOnce, None);
        let own = own.replace(&format!("home = {:?}", stage.home()), "home = \"person\"");
        // Each turn is a process of its own, which finds what the one before has left.
        let config = format!("{own}\n[agents.{}.keep]\nkept_max = 0\n", agent.name());
        let around = stage.directory().parent().unwrap().to_path_buf();
        let [home, settings] = [stage.home(), stage.home().join(".config")];
        std::fs::write(home.join(".netrc"), CANARY).unwrap();
        // Its own program replaces this one by a new file each time; here it is a place that nothing can be put over.
        std::fs::write(home.join(".claude.json"), "{\"hasCompletedOnboarding\": true}").unwrap();
        let variables = [("HOMING_ROOTS", &around), ("HOME", &home), ("XDG_CONFIG_HOME", &settings)];
        let setup = setup().for_real_agents().config(&config);
        let setup = variables
            .into_iter()
            .fold(setup, |setup, (name, path)| setup.variable(name, path.to_str().expect("a plain name")));
        let trial = Self { homing: setup.start(), stage };
        trial.homing.run(&["user", "add", "bob"]).expect(0);
        trial
    }
}

#[track_caller]
fn an_agent_keeps_its_own(agent: RealAgent) {
    let trial = Trial::in_a_persons_home(agent);
    trial.answer("kept", "CODE:apple");
    trial.assert_recalls("kept", "apple");
    let directory = trial.stage.directory();
    let netrc = trial.stage.home().join(".netrc");
    let said = trial.answer(
        "looks",
        &format!("TOOL:bash:cat {} > {}/seen; echo over", netrc.display(), directory.display()),
    );
    let seen = std::fs::read_to_string(directory.join("seen"));
    assert!(seen.is_ok_and(|seen| seen.is_empty()), "{}: {said}", agent.name());
    let settings = std::fs::read_to_string(trial.stage.home().join(".claude.json")).unwrap();
    let settings: serde_json::Value = serde_json::from_str(&settings).expect("whole, whoever wrote it");
    assert_eq!(settings["hasCompletedOnboarding"], true);
    let to = json!({ "new": { "directory": directory, "agent": "scripted" } });
    let said = trial.homing.http().converse(&to, &format!("!run cat {} 2>&1; echo over", netrc.display()));
    assert!(said.contains("over") && !said.contains(CANARY), "{said}");
}

macro_rules! in_a_persons_home {
    ($($name:ident $agent:ident)*) => { $(
        #[test]
        fn $name() {
            an_agent_keeps_its_own(RealAgent::$agent);
        }
    )* };
}
in_a_persons_home! { claude Claude codex Codex opencode OpenCode gemini Gemini goose Goose qwen Qwen kimi Kimi claude_agent_acp ClaudeAgentAcp codex_acp CodexAcp }
