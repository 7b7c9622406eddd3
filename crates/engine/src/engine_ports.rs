//! The ports that every handle of the engine works with: the store, the cluster, the time, fresh ids, and the audit's trail.
//!
//! A handle holds these and whatever else it needs, and no more: views have no way to a keeper, people no trees.

use crate::cluster::{Cluster, Ring};
use crate::doors::Bell;
use crate::sealer::Sealer;
use crate::snapshot_room::SnapshotShares;
use crate::tasks::Tasks;
use crate::timer::Timer;
use crate::{Clock, Limits, Mint, Secret, WallProver};
use kernel::{ApprovalId, MessageId, Moment, RequestId, SessionId};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use store::{Purpose, Store};

/// The ports that every handle works with.
pub(crate) struct EnginePorts {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) cluster: Arc<dyn Cluster>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) mint: Arc<dyn Mint>,
    pub(crate) limits: Limits,
    /// Says who is not heard where a session runs as a user that is somebody else's alone.
    pub(crate) wall: Arc<dyn WallProver>,
    pub(crate) tasks: Tasks,
    pub(crate) timer: Timer,
    pub(crate) sealer: Sealer,
    /// Rung when something was put into the outbox.
    pub(crate) outbox_bell: Bell,
    /// Whose of what snapshots take.
    pub(crate) snapshot_shares: SnapshotShares,
    /// True if the node goes down.
    pub(crate) is_closing: AtomicBool,
}

impl fmt::Debug for EnginePorts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnginePorts").finish_non_exhaustive()
    }
}

impl EnginePorts {
    pub(crate) fn now(&self) -> Moment {
        self.clock.now()
    }

    /// The node goes down: nobody waits any longer for what a keeper would say.
    pub(crate) fn close(&self) {
        self.is_closing.store(true, Ordering::Release);
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }

    /// Sees to it that somebody looks at this session's inbox from now on.
    pub(crate) fn keep(&self, session: SessionId) {
        self.cluster.ring(session, Ring::Now);
    }

    /// The same for what can wait while a turn is under way.
    pub(crate) fn keep_soon(&self, session: SessionId) {
        self.cluster.ring(session, Ring::Soon);
    }

    /// Whoever remembers what somebody may do asks again, and so do the keepers of what they have said.
    pub(crate) fn rights_changed(&self) {
        self.cluster.rights_changed();
        self.timer.unsure();
    }

    pub(crate) fn rights_now(&self) -> u64 {
        *self.cluster.rights().borrow()
    }

    pub(crate) fn mint_session(&self) -> SessionId {
        SessionId::from_bits(self.mint.bits())
    }

    pub(crate) fn mint_message(&self) -> MessageId {
        MessageId::from_bits(self.mint.bits())
    }

    pub(crate) fn mint_request(&self) -> RequestId {
        RequestId::from_bits(self.mint.bits())
    }

    pub(crate) fn mint_approval(&self) -> ApprovalId {
        ApprovalId::from_bits(self.mint.bits())
    }

    pub(crate) fn mint_bits(&self) -> u128 {
        self.mint.bits()
    }

    pub(crate) fn mint_credential(&self, purpose: Purpose) -> Secret {
        Secret::of_credential(purpose, self.mint.secret())
    }

    pub(crate) fn mint_link(&self) -> Secret {
        Secret::of_link(self.mint.secret())
    }

    pub(crate) fn mint_salt(&self) -> [u8; 32] {
        self.mint.secret()
    }
}
