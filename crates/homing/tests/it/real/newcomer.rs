//! Agents that nobody has set up, without a key, a provider or a model: the first message is refused, and the words say what to do
//! as the agent itself has it.

use testkit::{AgentFixture, RealAgent};

use super::{Acts, Trial, each_agent};
use crate::text;

each_agent! {
    an_agent_that_nobody_set_up_is_refused_with_its_own_remedy
}

fn an_agent_that_nobody_set_up_is_refused_with_its_own_remedy(agent: RealAgent) {
    let trial = Trial::on(AgentFixture::not_set_up(agent), Acts::AfterAsking, "", None);
    let receipt = trial.say("one", "hello");
    let told = trial.facts(&text(&receipt, "session"));
    let told = told.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    assert_eq!((&receipt["state"], &receipt["why"]), (&"failed".into(), &"refused".into()), "{told}");
    assert!(remedies(agent).iter().all(|remedy| told.contains(remedy)), "{:?} in {told}", remedies(agent));
    assert_eq!(
        trial.facts_of(&text(&receipt, "session"), "ended").len(),
        0,
        "it can go on when that is mended"
    );
}

/// The words by which a person finds out what to do.
fn remedies(agent: RealAgent) -> &'static [&'static str] {
    match agent {
        RealAgent::Claude => &["/login"],
        RealAgent::Codex => &["STUB_KEY"],
        RealAgent::OpenCode => &["opencode auth login"],
        RealAgent::ClaudeAgentAcp => &["ANTHROPIC_API_KEY"],
        RealAgent::Goose => &["goose configure"],
        RealAgent::Gemini => &["GEMINI_API_KEY"],
        RealAgent::Qwen => &["OPENAI_API_KEY"],
        RealAgent::Kimi => &["~/.kimi-code/config.toml"],
        RealAgent::CodexAcp => &["codex login"],
    }
}
