//! Replies on their way out through a door: their rows, and the rules of what may become of one.
//!
//! waiting → sending → sent | unknown | parked. *Sending* is durable before the door is asked, so that whoever starts after a
//! crash knows that it may have been sent. Nothing that may have been sent is sent again by itself: the door reads back
//! whether the service has it, or a person settles it (`plan::settle`). Backends read rows, ask here what becomes of them,
//! and write the answer.

use crate::{Key, Trail};
use kernel::{Address, ApprovalId, MessageId, Moment, NodeId, OrgId, SessionId};

/// A reply to be sent by a door.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewOutgoing {
    pub to: Address,
    pub message: MessageId,
    pub kind: OutgoingKind,
}

/// The subject of a reply. The words are in the log; they are read when it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OutgoingKind {
    /// The message has reached a final state.
    Final,
    /// The agent asks.
    Question(ApprovalId),
}

/// A reply on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// Stable: the door uses it to recognise what it sent before.
    pub outgoing: u64,
    pub org: OrgId,
    pub session: SessionId,
    pub to: Address,
    pub message: MessageId,
    pub kind: OutgoingKind,
    pub state: OutgoingState,
    /// The number of times it was sent or read back. It only grows, so it says which try an answer is about.
    pub tries: u32,
    /// When it is looked at again by itself: sent if it waits, read back if nobody knows; none if it is not.
    pub due: Option<Moment>,
    /// The node that is sending it.
    pub node: Option<NodeId>,
    /// The service's own id of it, once it was sent.
    pub service_id: Option<String>,
    /// Why it was not sent, or why nobody knows.
    pub reason: Option<String>,
    /// Since when it is in this state.
    pub since: Moment,
}

/// Where a reply stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutgoingState {
    Waiting,
    Sending,
    Sent,
    /// It may have been sent.
    Unknown,
    /// It will not be sent by itself any more.
    Parked,
}

/// The fate of a reply that was being sent, or was read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Became {
    /// The service has it, and calls it so.
    Sent { service_id: Option<String> },
    /// It may have been sent. It is read back at this moment, or settled by hand.
    Unknown { reason: String, read_back: Option<Moment> },
    /// It was certainly not sent, and trying again would not help.
    Parked { reason: String },
    /// It was certainly not sent: again, then.
    Again { due: Moment, reason: Option<String> },
}

/// The replies that a door takes from the outbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakeOutgoing {
    /// The schemes of its addresses.
    pub schemes: Vec<String>,
    /// The replies that this node has taken for it and not settled yet. Anything else of its own that is *sending* was
    /// lost sight of: the answer to an earlier take did not arrive.
    pub under_way: Vec<u64>,
    pub now: Moment,
    /// When a reply that is taken to be read back is taken again, unless it was settled by then.
    pub read_back_again: Moment,
    /// So many to send, and so many to read back, at most.
    pub limit: usize,
}

/// Replies that a door has to look after now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TakenOutgoing {
    /// To be sent: each is durably *sending*, and no two have the same address.
    pub send: Vec<Outgoing>,
    /// To be read back, because nobody knows whether they were sent.
    pub read_back: Vec<Outgoing>,
    /// When the next one is due after these.
    pub next: Option<Moment>,
}

/// The act of a person on a reply that does not go out by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hand {
    /// It is sent again, also if it may have been sent before.
    Retry,
    /// It is not sent any more, and its row goes.
    Drop,
}

/// A reply that somebody settles by hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettleByHand {
    /// The reply.
    pub outgoing: u64,
    /// The act.
    pub hand: Hand,
    /// The node that was asked for it.
    pub here: NodeId,
    /// The key that makes a repetition harmless.
    pub key: Option<Key>,
    /// The trail for the audit entry.
    pub trail: Trail,
}

impl Outgoing {
    /// True if the ones behind it to the same address have to wait for it. What waits for a person holds nobody up.
    pub fn blocks(&self) -> bool {
        self.state == OutgoingState::Sending || self.due.is_some()
    }

    /// True if the node that takes it is sending it, and does not know so.
    pub fn is_lost(&self, node: NodeId, take: &TakeOutgoing) -> bool {
        self.state == OutgoingState::Sending
            && self.node == Some(node)
            && take.schemes.iter().any(|scheme| scheme == self.to.scheme())
            && !take.under_way.contains(&self.outgoing)
    }

    /// The reply as it is taken to be sent.
    #[must_use]
    pub fn taken(&self, node: NodeId, now: Moment) -> Self {
        let (state, tries) = (OutgoingState::Sending, self.tries + 1);
        Self { state, tries, due: None, node: Some(node), since: now, ..self.clone() }
    }

    /// The reply as it is taken to be read back.
    #[must_use]
    pub fn asked_for(&self, again: Moment) -> Self {
        Self { tries: self.tries + 1, due: Some(again), ..self.clone() }
    }

    /// The reply after this became of a try; none if it cannot: only what is being sent can be anything, and what is unknown
    /// can be found, found missing, or stay so. What another try has begun since is not for an earlier one to say: a write
    /// whose answer was lost is written again, and by then it may be on its way once more.
    #[must_use]
    pub fn after(&self, tries: u32, became: Became, now: Moment) -> Option<Self> {
        let settles = match (self.state, &became) {
            _ if self.tries != tries => false,
            (OutgoingState::Sending, _) => true,
            (OutgoingState::Unknown, Became::Parked { .. }) => false,
            (OutgoingState::Unknown, _) => true,
            (OutgoingState::Waiting | OutgoingState::Sent | OutgoingState::Parked, _) => false,
        };
        let next = Self { node: None, since: now, due: None, reason: None, ..self.clone() };
        let next = match became {
            Became::Sent { service_id } => Self { state: OutgoingState::Sent, service_id, ..next },
            Became::Unknown { reason, read_back } => {
                Self { state: OutgoingState::Unknown, reason: Some(reason), due: read_back, ..next }
            }
            Became::Parked { reason } => Self { state: OutgoingState::Parked, reason: Some(reason), ..next },
            Became::Again { due, reason } => {
                Self { state: OutgoingState::Waiting, due: Some(due), reason, ..next }
            }
        };
        settles.then_some(next)
    }

    /// Nobody knows what became of it: the node that was sending it is no more, or has lost sight of it. It is read back as
    /// soon as a door can.
    #[must_use]
    pub fn orphaned(&self, now: Moment) -> Option<Self> {
        let reason = "the server went down, or lost sight of it, while it was being sent".to_owned();
        let sending = self.state == OutgoingState::Sending;
        sending
            .then(|| self.after(self.tries, Became::Unknown { reason, read_back: Some(now) }, now))
            .flatten()
    }

    /// True if it is being sent by another node than this one: a file that came here from another machine may say so of
    /// a node that is no more, and only a person can know that.
    fn is_sent_elsewhere(&self, here: NodeId) -> bool {
        self.state == OutgoingState::Sending && self.node != Some(here)
    }

    /// The reply after somebody retried it by hand on this node; none if it goes out by itself, or did.
    #[must_use]
    pub fn retried(&self, here: NodeId, now: Moment) -> Option<Self> {
        let state = OutgoingState::Waiting;
        let again = || Self { state, due: Some(now), node: None, reason: None, since: now, ..self.clone() };
        let stands = matches!(self.state, OutgoingState::Unknown | OutgoingState::Parked);
        (stands || self.is_sent_elsewhere(here)).then(again)
    }

    /// True if somebody may drop it by hand: it must not be under way, and what was sent is not taken back by that.
    pub fn is_droppable(&self, here: NodeId) -> bool {
        match self.state {
            OutgoingState::Waiting | OutgoingState::Unknown | OutgoingState::Parked => true,
            OutgoingState::Sending => self.is_sent_elsewhere(here),
            OutgoingState::Sent => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: NodeId = NodeId::from_bits(1);
    const ELSEWHERE: NodeId = NodeId::from_bits(2);

    fn waiting() -> Outgoing {
        Outgoing {
            outgoing: 1,
            org: OrgId::from_bits(1),
            session: SessionId::from_bits(1),
            to: "chat:a/b".parse().expect("it is canonical"),
            message: MessageId::from_bits(1),
            kind: OutgoingKind::Final,
            state: OutgoingState::Waiting,
            tries: 0,
            due: Some(Moment(0)),
            node: None,
            service_id: None,
            reason: None,
            since: Moment(0),
        }
    }

    /// A reply that a node is sending is its own; of one on another machine only a person can know that it is no more.
    #[test]
    fn what_another_node_sends_is_left_to_a_person() {
        let (own, foreign) = (waiting().taken(HERE, Moment(5)), waiting().taken(ELSEWHERE, Moment(5)));
        assert_eq!((own.retried(HERE, Moment(9)), own.is_droppable(HERE)), (None, false));
        assert!(foreign.is_droppable(HERE));
        let retried = foreign.retried(HERE, Moment(9)).expect("a person says so");
        assert_eq!(
            (retried.state, retried.node, retried.due),
            (OutgoingState::Waiting, None, Some(Moment(9)))
        );
    }

    #[test]
    fn whoever_waits_for_a_person_holds_nobody_up() {
        let sending = waiting().taken(HERE, Moment(5));
        assert!(waiting().blocks() && sending.blocks());
        let unknown = |read_back| Became::Unknown { reason: "lost".into(), read_back };
        let asked = sending.after(1, unknown(Some(Moment(9))), Moment(6)).expect("it was being sent");
        let left = asked.after(1, unknown(None), Moment(7)).expect("it was unknown");
        assert_eq!(asked.after(0, unknown(None), Moment(7)), None, "it is of another try");
        assert!(asked.blocks() && !left.blocks());
        assert!(
            !sending.after(1, Became::Parked { reason: "no".into() }, Moment(6)).expect("it was").blocks()
        );
    }
}
