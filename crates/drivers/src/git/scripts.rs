//! What a person wants run in a new worktree and before it goes. Only named here: it runs behind the wall, as the agent does.

use std::path::{Path, PathBuf};

/// What the configuration of an agent says (`worktree.setup`, `worktree.teardown`): lines for a shell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScriptsConfig {
    pub setup: Option<String>,
    pub teardown: Option<String>,
}

/// The same, with where it is to be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scripts {
    pub directory: PathBuf,
    pub setup: Option<String>,
    pub teardown: Option<String>,
}

/// What to run in this worktree. Nothing a repository brings along is taken up by itself: a script is what the config says.
pub fn scripts_of(worktree: &Path, config: &ScriptsConfig) -> Scripts {
    let said = |line: &Option<String>| line.clone().filter(|line| !line.trim().is_empty());
    Scripts {
        directory: worktree.to_path_buf(),
        setup: said(&config.setup),
        teardown: said(&config.teardown),
    }
}
