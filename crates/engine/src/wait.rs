//! Waiting: why a message, or a session, is not being worked on, and for whom it waits.
//!
//! Made of the session's state and of who holds what it wants, whenever somebody asks; never stored. A session that whoever asks
//! may not see is not named.

use crate::{Neighbour, ViewError, Views};
use kernel::{
    Claim, MessageId, Moment, Principal, Running, Scope, Session, SessionId, Stage, TurnApproval, Waiting,
};
use store::{SessionRow, StoreError};

/// The reason why something waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    pub why: WaitWhy,
    /// Until when at most, where that is known.
    pub until: Option<Moment>,
}

/// Why something waits, and for whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitWhy {
    /// This message of the same session is before it.
    Message(MessageId),
    /// A turn of another session works in the directory.
    Directory { directory: String, neighbour: Neighbour },
    /// As many turns of its sender are under way as may be.
    Slot { max: u32 },
    /// As many turns of the org are.
    OrgSlot { max: u32 },
    /// The agent is being started.
    Starting { agent: String },
    /// The agent could not be started, and is tried again.
    Again { agent: String },
    /// The agent asks something.
    Asked,
    /// The turn is being stopped.
    Stopping,
    /// The scope is about to change.
    Scope,
    /// Something is done outside that no turn may run beside.
    Errand,
}

/// Everything that waits in a session, at one moment.
#[derive(Debug)]
pub(crate) struct SessionWaits {
    /// The messages of the turn under way.
    running: Vec<MessageId>,
    /// The messages that will be started, in order.
    startable: Vec<MessageId>,
    /// Why the turn under way, or the first of those, does not go on.
    head: Option<Wait>,
}

impl SessionWaits {
    /// Why this message waits. What is held says so itself, and what the keeper has not seen yet waits for nobody.
    pub(crate) fn of(&self, message: MessageId) -> Option<Wait> {
        if self.running.contains(&message) {
            return self.head.clone();
        }
        let place = self.startable.iter().position(|other| *other == message)?;
        let before = match place {
            0 => self.running.first(),
            place => self.startable.get(place - 1),
        };
        match before {
            Some(before) => Some(Wait { why: WaitWhy::Message(*before), until: None }),
            None => self.head.clone(),
        }
    }
}

impl Views {
    /// Why a session that the caller was shown does not go on, if something of it waits.
    pub async fn wait_of(&self, by: &Principal, seen: &SessionRow) -> Result<Option<Wait>, ViewError> {
        if seen.ended.is_some() || seen.pending == 0 {
            return Ok(None);
        }
        Ok(self.waits(by, seen.session).await?.head)
    }

    /// Everything that waits in a session that the caller may see.
    pub(crate) async fn waits(&self, by: &Principal, session: SessionId) -> Result<SessionWaits, StoreError> {
        let mut state = Session::default();
        let loaded = self.ports.store.load(session).await?;
        loaded.iter().flat_map(|loaded| &loaded.facts).for_each(|fact| state.evolve(fact));
        let startable: Vec<&Waiting> =
            state.queue().iter().filter(|waiting| waiting.is_startable()).collect();
        let head = match (state.running(), state.scope(), startable.first()) {
            (Some(running), Some(scope), _) => running_wait(running, scope, self.ports.now()),
            (None, Some(_), Some(_)) if state.away().is_some() => {
                Some(Wait { why: WaitWhy::Errand, until: None })
            }
            // What was refused room has its turn before the change.
            (None, Some(_), Some(_)) if state.pending().is_some() && state.crowded_until().is_none() => {
                Some(Wait { why: WaitWhy::Scope, until: None })
            }
            (None, Some(scope), Some(first)) => self.crowded_wait(by, session, &state, scope, first).await?,
            (_, None, _) | (None, Some(_), None) => None,
        };
        let running = state.running().map(|running| running.messages().collect()).unwrap_or_default();
        Ok(SessionWaits {
            running,
            startable: startable.iter().map(|waiting| waiting.message).collect(),
            head,
        })
    }

    /// Why the next message is not started although nothing of its own session is in its way.
    async fn crowded_wait(
        &self,
        by: &Principal,
        session: SessionId,
        state: &Session,
        scope: &Scope,
        first: &Waiting,
    ) -> Result<Option<Wait>, StoreError> {
        // Nobody has refused it anything: it starts in a moment.
        let Some(until) = state.crowded_until() else { return Ok(None) };
        let limits = &self.ports.limits;
        let awaited = self.ports.cluster.awaited(session);
        let is = |claim: Claim| awaited.as_ref() == Some(&claim);
        let why = if is(Claim::org_slot(by.org)) {
            let own = self.rights_cache.settings_of(by.org).await?.awake_max;
            let max = own.map_or(limits.org_awake_max, |own| own.min(limits.org_awake_max));
            WaitWhy::OrgSlot { max }
        } else if is(Claim::slot(first.by)) {
            WaitWhy::Slot { max: limits.awake_max }
        } else {
            let directory = scope.directory.for_readers().to_owned();
            let neighbour = self.neighbour(by, session, scope).await?;
            neighbour.map_or(WaitWhy::Slot { max: limits.awake_max }, |neighbour| WaitWhy::Directory {
                directory,
                neighbour,
            })
        };
        Ok(Some(Wait { why, until: Some(until) }))
    }
}

/// Why the turn under way does not go on by itself; none while the agent works.
fn running_wait(running: &Running, scope: &Scope, now: Moment) -> Option<Wait> {
    let agent = scope.agent.clone();
    let asked = running.approvals.iter().filter_map(|approval| match approval {
        TurnApproval::Open { until, .. } if *until > now => Some(*until),
        TurnApproval::Open { .. } | TurnApproval::Answered { .. } | TurnApproval::Lapsed { .. } => None,
    });
    let (why, until) = match running.stage {
        Stage::Resting { again_at, .. } => (WaitWhy::Again { agent }, Some(again_at)),
        Stage::Starting { .. } => (WaitWhy::Starting { agent }, None),
        Stage::Working { .. } => (WaitWhy::Asked, Some(asked.min()?)),
        Stage::Stopping { .. } => (WaitWhy::Stopping, None),
    };
    Some(Wait { why, until })
}
