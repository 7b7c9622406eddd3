//! The memory store's outbox. What may become of a reply is `Outgoing`'s to say.

use super::contents::Contents;
use crate::*;
use kernel::{Moment, OrgId, SessionId};

impl Contents {
    pub(super) fn post(&mut self, org: OrgId, session: SessionId, reply: NewOutgoing, now: Moment) -> u64 {
        self.last_outgoing += 1;
        let NewOutgoing { to, message, kind } = reply;
        let posted = Outgoing {
            outgoing: self.last_outgoing,
            org,
            session,
            to,
            message,
            kind,
            state: OutgoingState::Waiting,
            tries: 0,
            due: Some(Moment(0)),
            node: None,
            service_id: None,
            reason: None,
            since: now,
        };
        self.outbox.insert(posted.outgoing, posted);
        self.last_outgoing
    }

    pub(super) fn outbox_take(&mut self, by: &NodeRow, take: &TakeOutgoing) -> TakenOutgoing {
        if by.term != self.node.term {
            return TakenOutgoing::default();
        }
        let lost = self.outbox.values().filter(|row| row.is_lost(by.node, take));
        let lost: Vec<_> = lost.filter_map(|row| row.orphaned(take.now)).collect();
        let is_changed = !lost.is_empty();
        lost.into_iter().for_each(|row| drop(self.outbox.insert(row.outgoing, row)));
        let due = |row: &&Outgoing| row.due.is_some_and(|due| due <= take.now);
        let in_state = |state: OutgoingState| {
            let those = self.first_of(take).into_iter().filter(due);
            those.filter(|row| row.state == state).take(take.limit).cloned().collect::<Vec<_>>()
        };
        let send = in_state(OutgoingState::Waiting);
        let send: Vec<_> = send.iter().map(|row| row.taken(by.node, take.now)).collect();
        let read_back = in_state(OutgoingState::Unknown);
        let read_back: Vec<_> = read_back.iter().map(|row| row.asked_for(take.read_back_again)).collect();
        for row in send.iter().chain(&read_back) {
            self.outbox.insert(row.outgoing, row.clone());
        }
        if is_changed || !send.is_empty() || !read_back.is_empty() {
            self.committed();
        }
        let next = self.first_of(take).into_iter().filter_map(|row| row.due).min();
        TakenOutgoing { send, read_back, next }
    }

    /// In order per address: nothing overtakes what is being sent, or is still to be sent or read back. The one that has been
    /// due for longest comes first.
    fn first_of(&self, take: &TakeOutgoing) -> Vec<&Outgoing> {
        let mut seen = std::collections::BTreeSet::new();
        let blocking = self.outbox.values().filter(|row| row.blocks());
        let own = blocking.filter(|row| take.schemes.iter().any(|scheme| scheme == row.to.scheme()));
        let mut first: Vec<_> = own.filter(|row| seen.insert(&row.to)).collect();
        first.sort_by_key(|row| (row.due, row.outgoing));
        first
    }

    pub(super) fn outbox_settle(&mut self, outgoing: u64, tries: u32, became: Became, now: Moment) -> bool {
        let next = self.outbox.get(&outgoing).and_then(|row| row.after(tries, became, now));
        let Some(next) = next else { return false };
        self.outbox.insert(outgoing, next);
        self.committed();
        true
    }

    pub(super) fn outbox_list(
        &self,
        org: OrgId,
        state: Option<OutgoingState>,
        after: u64,
        limit: usize,
    ) -> Vec<Outgoing> {
        let those = self.outbox.values().filter(|row| row.org == org && row.outgoing > after);
        let those = those.filter(|row| state.is_none_or(|state| row.state == state));
        those.take(limit).cloned().collect()
    }

    pub(super) fn outbox_clear(&mut self, before: Moment, limit: usize) -> usize {
        let old = |row: &&Outgoing| row.state == OutgoingState::Sent && row.since < before;
        let old: Vec<u64> = self.outbox.values().filter(old).map(|row| row.outgoing).take(limit).collect();
        old.iter().for_each(|outgoing| drop(self.outbox.remove(outgoing)));
        if !old.is_empty() {
            self.committed();
        }
        old.len()
    }

    /// Nobody knows what became of a reply that was being sent when the process died. Other nodes look after their own.
    pub(super) fn outbox_orphan(&mut self) {
        let node = self.node.node;
        for row in self.outbox.values_mut().filter(|row| row.node == Some(node)) {
            if let Some(orphaned) = row.orphaned(Moment(0)) {
                *row = orphaned;
            }
        }
    }
}
