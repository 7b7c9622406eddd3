//! Sessions that wait for claims, and who is offered one that is free.

use kernel::{Claim, SessionId};
use std::collections::{BTreeMap, VecDeque};

/// The sessions that wait, by claim.
#[derive(Debug, Default)]
pub(super) struct ClaimQueues {
    waiting: BTreeMap<Claim, VecDeque<SessionId>>,
    /// Sessions to which one was offered just now, and which one.
    offered: BTreeMap<SessionId, Claim>,
}

impl ClaimQueues {
    /// This session waits. Answers what it was offered instead, which it cannot use alone.
    pub(super) fn wait_for(&mut self, claim: Claim, session: SessionId) -> Option<Claim> {
        let unused = self.offered.remove(&session).filter(|offered| *offered != claim);
        let waiting = self.waiting.entry(claim).or_default();
        if !waiting.contains(&session) {
            waiting.push_back(session);
        }
        unused
    }

    /// The claim that this session waits for.
    pub(super) fn awaited(&self, session: SessionId) -> Option<Claim> {
        let mut waiting = self.waiting.iter();
        waiting.find(|(_, waiting)| waiting.contains(&session)).map(|(claim, _)| claim.clone())
    }

    /// The claim is free: who is offered it.
    pub(super) fn freed(&mut self, claim: &Claim) -> Option<SessionId> {
        let next = self.waiting.get_mut(claim).and_then(VecDeque::pop_front)?;
        self.offered.insert(next, claim.clone());
        Some(next)
    }

    /// This session has what it waited for.
    pub(super) fn served(&mut self, session: SessionId) {
        self.offered.remove(&session);
        self.waiting.retain(|_, waiting| {
            waiting.retain(|other| *other != session);
            !waiting.is_empty()
        });
    }

    /// The claim that was offered to this session, which does not want it any more.
    pub(super) fn declined(&mut self, session: SessionId) -> Option<Claim> {
        self.offered.remove(&session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(name: &str) -> Claim {
        Claim(name.to_owned())
    }

    #[test]
    fn what_is_free_is_offered_to_whoever_has_waited_longest() {
        let (mut queues, [a, b]) = (ClaimQueues::default(), [1, 2].map(SessionId::from_bits));
        assert_eq!(queues.wait_for(claim("x"), a), None);
        assert_eq!(queues.wait_for(claim("x"), b), None);
        assert_eq!(queues.wait_for(claim("x"), a), None, "it keeps its place");
        assert_eq!(queues.freed(&claim("x")), Some(a));
        assert_eq!(queues.freed(&claim("x")), Some(b));
        assert_eq!(queues.freed(&claim("x")), None);
    }

    #[test]
    fn what_cannot_be_used_alone_or_is_not_wanted_any_more_goes_on() {
        let (mut queues, a) = (ClaimQueues::default(), SessionId::from_bits(1));
        queues.wait_for(claim("x"), a);
        queues.freed(&claim("x"));
        assert_eq!(queues.wait_for(claim("y"), a), Some(claim("x")), "it needs y as well");
        queues.freed(&claim("y"));
        assert_eq!(queues.declined(a), Some(claim("y")));
        assert_eq!(queues.declined(a), None);
    }

    #[test]
    fn whoever_is_served_waits_for_nothing() {
        let (mut queues, a) = (ClaimQueues::default(), SessionId::from_bits(1));
        queues.wait_for(claim("x"), a);
        queues.wait_for(claim("y"), a);
        queues.served(a);
        assert_eq!(queues.freed(&claim("x")), None);
        assert_eq!(queues.freed(&claim("y")), None);
    }
}
