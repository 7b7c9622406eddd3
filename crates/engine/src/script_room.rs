//! The room that a script may take in its worktree, of what its person has left: looked at while it runs, and once more when it is done.
//!
//! The look is a ground worker's: this side of the wall nobody walks over a directory of an agent's. What a script writes elsewhere, or
//! hides from the look, is bounded by its supervisor (`agents.NAME.worktree.scripts_written_max`).

use std::time::Duration;

use kernel::SessionId;
use tokio::time::Instant;

use crate::{OwnedSession, Trees};

/// The shortest time between two looks. A look that takes long makes it longer: a large worktree is walked over a quarter of the time.
const LOOK_EVERY: Duration = Duration::from_secs(1);
const LOOK_SHARE: u32 = 3;
/// The room that a script has although its person has none left: one that is there already can be entered and removed.
const LEAST_BYTES: u64 = 16 * 1024 * 1024;

pub(crate) struct ScriptRoom<'a> {
    trees: &'a dyn Trees,
    of: &'a OwnedSession,
    name: &'a str,
    bytes_max: u64,
}

impl<'a> ScriptRoom<'a> {
    /// The room of a worktree that took so much before; none if there is no bound.
    pub(crate) fn of(trees: &'a dyn Trees, of: &'a OwnedSession, name: &'a str, before: u64) -> Option<Self> {
        let left = of.tree_bytes_left?;
        Some(Self { trees, of, name, bytes_max: before.saturating_add(left.max(LEAST_BYTES)) })
    }

    /// Waits until the worktree takes more than it may, and says so.
    pub(crate) async fn exceeded(&self) -> String {
        let mut pause = LOOK_EVERY;
        loop {
            tokio::time::sleep(pause).await;
            let began = Instant::now();
            if let Some(why) = self.look().await {
                return why;
            }
            pause = (began.elapsed() * LOOK_SHARE).max(LOOK_EVERY);
        }
    }

    /// The words if it takes more than it may. What cannot be looked at now is looked at later.
    pub(crate) async fn look(&self) -> Option<String> {
        let seen = self.trees.look(self.of.clone(), self.name).await.ok()??;
        (seen.bytes > self.bytes_max).then(|| {
            format!(
                "the worktree takes {} MiB, and its owner's worktrees may take no more than limits.worktree_bytes_per_person_max: \
                 `homing worktree ls` shows what there is, `homing worktree rm` removes one and keeps what is in it; if that is as \
                 it should be, raise limits.worktree_bytes_per_person_max",
                seen.bytes >> 20
            )
        })
    }
}

/// The bytes that a worktree had when somebody last looked; none if nobody has.
pub(crate) async fn bytes_noted(trees: &dyn Trees, session: SessionId, name: &str) -> u64 {
    let seen = trees.seen().await.unwrap_or_default();
    seen.get(&(session, name.to_owned())).map_or(0, |seen| seen.bytes)
}
