//! The ports of whatever works outside for a session: attempts, errands, chores and looks.
//!
//! There is no store among them. What a runner has to know of a session it is given when it is started, and what it finds
//! out it reports to whoever started it.

use crate::tasks::Tasks;
use crate::{Ground, Scripts, Trees};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The ports that runners work with. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct RunnerPorts {
    pub(crate) trees: Arc<dyn Trees>,
    pub(crate) ground: Arc<dyn Ground>,
    /// The scripts of worktrees, by the name of the agent.
    pub(crate) scripts: Arc<BTreeMap<String, Scripts>>,
    pub(crate) tasks: Tasks,
    /// The longest that a stopped agent may take to go by itself.
    pub(crate) stop_grace_ms: u64,
}
