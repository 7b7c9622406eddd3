//! The drivers with the real programs behind them, on testkit's stage.

use homing_drivers::ShellConfig;
use testkit::{RealAgent, Stage};

use crate::bench::far_side;

/// How that agent's program is run on its stage: the program and its settings are the real ones, the model is the stub.
pub(crate) fn shell_config(stage: &Stage) -> ShellConfig {
    let home = stage.home().to_str().unwrap().to_owned();
    let mut config = ShellConfig::new(stage.agent.name(), far_side(), stage.locks(), stage.program(), home);
    config.args = stage.args();
    config.env.extend(stage.env());
    config
}

#[test]
fn every_agent_is_here() {
    for agent in RealAgent::ALL {
        let config = shell_config(&Stage::new(agent));
        assert!(std::path::Path::new(&config.program).is_file());
    }
}
