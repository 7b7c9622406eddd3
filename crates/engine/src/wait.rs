//! Waiting: why a message, or a session, is not being worked on, and for whom it waits.
//!
//! Made of the session's state and of who holds what it wants, whenever somebody asks; never stored. A session that whoever asks
//! may not see is not named.

use crate::{Neighbour, ViewError, Views};
use kernel::{
    Claim, MessageId, Moment, Number, Principal, Running, Scope, Session, SessionId, Stage, TurnApproval,
    Waiting,
};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use store::{SessionRow, StoreError};

/// Sessions of which it is remembered why they wait. Whoever lists more reads them again.
const KNOWN_MAX: usize = 4_096;

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
    /// As many turns of its sender are under way as may be. One of them is in this session.
    Slot { max: u32, holder: Option<Neighbour> },
    /// As many turns of the org are.
    OrgSlot { max: u32, holder: Option<Neighbour> },
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
    /// The number of the last fact that was read, if `head` is so until the next one, whatever else happens.
    settled_at: Option<Number>,
}

/// Why sessions wait, as far as that changes with their facts alone, by the number of the last one. Lists are asked for again and
/// again, and most sessions in them have not changed.
#[derive(Debug, Default)]
pub(crate) struct KnownWaits(Mutex<BTreeMap<SessionId, (Number, Option<Wait>)>>);

impl KnownWaits {
    fn find(&self, session: SessionId, at: Number) -> Option<Option<Wait>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&session).filter(|(number, _)| *number == at).map(|(_, wait)| wait.clone())
    }

    fn keep(&self, session: SessionId, at: Number, wait: Option<Wait>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KNOWN_MAX && !known.contains_key(&session) {
            known.clear();
        }
        known.insert(session, (at, wait));
    }
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
        if let Some(known) = self.known_waits.find(seen.session, seen.at) {
            return Ok(known);
        }
        let SessionWaits { head, settled_at, .. } = self.waits(by, seen.session).await?;
        if let Some(at) = settled_at {
            self.known_waits.keep(seen.session, at, head.clone());
        }
        Ok(head)
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
        // A question may lapse, and others may make room.
        let is_settled =
            state.crowded_until().is_none() && head.as_ref().is_none_or(|head| head.until.is_none());
        Ok(SessionWaits {
            running,
            startable: startable.iter().map(|waiting| waiting.message).collect(),
            head,
            settled_at: loaded.map(|loaded| loaded.at).filter(|_| is_settled),
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
            let holder = self.holder_of(by, session, Claim::org_slot(by.org)).await?;
            WaitWhy::OrgSlot { max, holder }
        } else if is(Claim::slot(first.by)) {
            self.slot_wait(by, session, first).await?
        } else {
            let directory = scope.directory.for_readers().to_owned();
            match self.holder_of(by, session, Claim::directory(&scope.directory)).await? {
                Some(neighbour) => WaitWhy::Directory { directory, neighbour },
                None => self.slot_wait(by, session, first).await?,
            }
        };
        Ok(Some(Wait { why, until: Some(until) }))
    }

    async fn slot_wait(
        &self,
        by: &Principal,
        session: SessionId,
        first: &Waiting,
    ) -> Result<WaitWhy, StoreError> {
        let holder = self.holder_of(by, session, Claim::slot(first.by)).await?;
        Ok(WaitWhy::Slot { max: self.ports.limits.awake_max, holder })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_of_a_session_is_of_its_last_fact_and_bounded() {
        let (known, wait) = (KnownWaits::default(), Some(Wait { why: WaitWhy::Stopping, until: None }));
        let session = SessionId::from_bits;
        known.keep(session(1), Number(7), wait.clone());
        assert_eq!(known.find(session(1), Number(7)), Some(wait));
        assert_eq!(known.find(session(1), Number(8)), None, "something has happened since");
        assert_eq!(known.find(session(2), Number(7)), None);
        known.keep(session(1), Number(8), None);
        assert_eq!(known.find(session(1), Number(8)), Some(None), "it waits for nobody, and that is known");
        for bits in 0..2 * KNOWN_MAX as u128 {
            known.keep(session(bits), Number(1), None);
            assert!(known.0.lock().unwrap().len() <= KNOWN_MAX);
        }
    }
}
