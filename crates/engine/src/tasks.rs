//! Everything that a node does by itself, as tasks that can be ended together.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::JoinSet;

/// The tasks of one node. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tasks(Arc<Mutex<JoinSet<()>>>);

impl Tasks {
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    /// Ends all of them, wherever they are.
    pub(crate) fn abort_all(&self) {
        self.tasks().abort_all();
    }

    fn tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        // Nobody panics while holding it; it holds only handles.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
