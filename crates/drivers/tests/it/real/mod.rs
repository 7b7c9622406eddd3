//! The drivers with the real programs behind them, on testkit's stage: the same stories for each, and what was seen in
//! the table of docs/agents.md.
//!
//! `candidate` says how a real agent is talked to, `attached` hands it images and files, `table` compares what was seen with what is written down.

mod attached;
mod candidate;
mod table;

use homing_drivers::ProgramConfig;
use testkit::{AgentFixture, RealAgent};

use crate::bench::far_side;

/// The settings of that agent's program on its stage: the program and its settings are the real ones, the model is the
/// stub.
pub(crate) fn program_config(stage: &AgentFixture) -> ProgramConfig {
    let home = stage.home().to_str().unwrap().to_owned();
    let mut config = ProgramConfig::new(stage.agent.name(), far_side(), stage.locks(), stage.program(), home);
    config.args = stage.args();
    config.env.extend(stage.env());
    config
}

#[test]
fn every_agent_is_here() {
    for agent in RealAgent::ALL {
        let config = program_config(&AgentFixture::new(agent));
        assert!(std::path::Path::new(&config.program).is_file());
    }
}

/// All stories for one agent.
macro_rules! stories {
    ($module:ident, $agent:ident, $make:expr) => {
        mod $module {
            use super::candidate::Real;

            agent::conformance!(Real::new(testkit::RealAgent::$agent, $make));

            #[tokio::test]
            async fn it_is_what_the_table_says() {
                Real::new(testkit::RealAgent::$agent, $make).is_what_the_table_says().await;
            }

            #[tokio::test]
            async fn what_goes_along_reaches_its_model_or_is_refused_by_name() {
                super::attached::goes_along(testkit::RealAgent::$agent, $make).await;
            }
        }
    };
}

stories!(claude, Claude, super::claude);
stories!(claude_agent_acp, ClaudeAgentAcp, super::acp);
stories!(goose, Goose, super::acp);
stories!(codex, Codex, super::codex);
stories!(opencode, OpenCode, super::opencode);
stories!(gemini, Gemini, super::acp);
stories!(qwen, Qwen, super::acp);
stories!(kimi, Kimi, super::acp);
stories!(codex_acp, CodexAcp, super::acp);

fn acp(stage: &AgentFixture) -> Box<dyn agent::Agent> {
    use homing_drivers::acp::{Acp, AcpConfig, Quirks};
    let quirks = Quirks::of(stage.agent.name()).unwrap();
    Box::new(Acp::new(AcpConfig { program: program_config(stage), quirks }))
}

fn codex(stage: &AgentFixture) -> Box<dyn agent::Agent> {
    Box::new(homing_drivers::codex::Codex::new(program_config(stage)))
}

fn opencode(stage: &AgentFixture) -> Box<dyn agent::Agent> {
    // It waits two seconds before it tries again, then four.
    Box::new(homing_drivers::opencode::OpenCode::new(program_config(stage)).with_tries_max(1))
}

fn claude(stage: &AgentFixture) -> Box<dyn agent::Agent> {
    Box::new(homing_drivers::claude::Claude::new(program_config(stage)))
}
