//! For whom a session's ground is looked at, where that is done as a user who is the machine's person's alone.
//!
//! A look is a process there, as a turn is. What runs is refused by the session's keeper (`keeper/plan.rs`); what is only looked at, also
//! before anything is asked of the keeper, is refused here, with the same words and the same code. What was recorded is shown to
//! whoever may read it.

use crate::ScopeError;
use crate::engine_ports::EnginePorts;
use kernel::{ErrandKind, PersonId};

impl EnginePorts {
    /// Refuses a look at the ground of a session of that owner to whom it is not taken for. Ask it after whether they may know of
    /// the session at all.
    pub(crate) fn may_look_at_ground(&self, by: PersonId, owner: PersonId) -> Result<(), ScopeError> {
        let is_ours = by == PersonId::ENGINE;
        match (!is_ours).then(|| self.wall.refusal(owner, by)).flatten() {
            Some(why) => Err(ScopeError::WorktreeTrouble { why }),
            None => Ok(()),
        }
    }
}

/// True of what is looked up on the ground, and not in what the agent has said.
pub(crate) fn is_on_ground(kind: ErrandKind) -> bool {
    match kind {
        ErrandKind::Commands | ErrandKind::Models => false,
        ErrandKind::Enter | ErrandKind::Undo | ErrandKind::Redo | ErrandKind::Files | ErrandKind::Diff => {
            true
        }
    }
}
