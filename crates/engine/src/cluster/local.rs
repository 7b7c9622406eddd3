//! The cluster of one process: channels and maps in memory.

use super::claims::ClaimQueues;
use super::{Cluster, ClusterReply, Happened, Node, Ring};
use crate::fanout::{Fanout, SessionUpdate};
use crate::lease::Lease;
use crate::progress::SessionProgress;
use kernel::{Claim, Fact, MessageId, RequestId, SessionId, Term};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use store::Verdict;
use tokio::sync::{Notify, broadcast, mpsc, oneshot, watch};

/// The cluster of one process, whose only node keeps everything.
#[derive(Debug, Default)]
pub struct LocalCluster {
    node: OnceLock<(Lease, Arc<dyn Node>)>,
    loses: LostRings,
    fanout: Fanout,
    claims: Mutex<ClaimQueues>,
    /// Grows with every change of who may do what.
    rights: watch::Sender<u64>,
    /// Rung with each. Unlike the number's own waiters, these are woken in the order in which they came: a story of the
    /// simulation is the same each time.
    rights_bell: Notify,
}

impl LocalCluster {
    /// One that waits for its node.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// One that loses the rings of which this says so. For the simulation: rings between machines get lost.
    pub fn losing(loses: impl Fn(SessionId) -> bool + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { loses: LostRings(Some(Box::new(loses))), ..Self::default() })
    }

    fn joined(&self) -> &(Lease, Arc<dyn Node>) {
        self.node.get().expect("a node joins before anything else")
    }

    fn claims(&self) -> MutexGuard<'_, ClaimQueues> {
        // Nobody panics while holding it; it holds only who waits.
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The rings that get lost.
#[derive(Default)]
struct LostRings(Option<Box<dyn Fn(SessionId) -> bool + Send + Sync>>);

impl LostRings {
    fn ring_of(&self, session: SessionId) -> bool {
        self.0.as_ref().is_some_and(|loses| loses(session))
    }
}

impl fmt::Debug for LostRings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loses").finish_non_exhaustive()
    }
}

impl Cluster for LocalCluster {
    fn join(&self, term: Term, node: Arc<dyn Node>) {
        // One process is one node: a second one would have a store of its own.
        let _ = self.node.set((Lease::new(term), node));
    }

    fn close(&self) {
        self.fanout.close();
    }

    fn node_of(&self, _: SessionId) -> Arc<dyn Node> {
        self.joined().1.clone()
    }

    fn nodes(&self) -> Vec<Arc<dyn Node>> {
        vec![self.joined().1.clone()]
    }

    fn next_term(&self, _: SessionId) -> Term {
        self.joined().0.next()
    }

    fn ring(&self, session: SessionId, ring: Ring) {
        if !self.loses.ring_of(session) {
            self.joined().1.rung(session, ring);
        }
    }

    fn tell(&self, happened: Happened) {
        match happened {
            Happened::Facts(session, facts) => self.fanout.tell_facts(session, facts),
            Happened::Row(_) => self.fanout.tell_row(),
            Happened::Live(session, live) => self.fanout.tell_live(session, live),
            Happened::Progress(session, progress) => self.fanout.tell_progress(session, progress),
            Happened::Unclear(session) => self.fanout.cut(session),
            Happened::Final(messages) => self.fanout.tell_final(&messages),
            Happened::Verdicts(verdicts) => self.fanout.tell_verdicts(&verdicts),
        }
    }

    fn follow(&self, session: SessionId) -> Option<broadcast::Receiver<SessionUpdate>> {
        self.fanout.watch(session)
    }

    fn progress(&self, session: SessionId) -> Option<SessionProgress> {
        self.fanout.progress(session)
    }

    fn await_final(&self, message: MessageId) -> Option<oneshot::Receiver<()>> {
        self.fanout.await_final(message)
    }

    fn await_verdict(&self, request: RequestId) -> oneshot::Receiver<Verdict> {
        self.fanout.await_verdict(request)
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.fanout.changes()
    }

    fn news(&self) -> Option<mpsc::Receiver<(SessionId, Fact)>> {
        self.fanout.news()
    }

    fn wait_for(&self, claim: Claim, session: SessionId) {
        let unused = self.claims().wait_for(claim, session);
        if let Some(unused) = unused {
            self.freed(&unused);
        }
    }

    fn awaited(&self, session: SessionId) -> Option<Claim> {
        self.claims().awaited(session)
    }

    fn freed(&self, claim: &Claim) {
        let next = self.claims().freed(claim);
        if let Some(next) = next {
            self.ring(next, Ring::Now);
        }
    }

    fn served(&self, session: SessionId) {
        self.claims().served(session);
    }

    fn pass_on(&self, session: SessionId) {
        let unused = self.claims().declined(session);
        if let Some(claim) = unused {
            self.freed(&claim);
        }
    }

    fn rights_changed(&self) {
        self.rights.send_modify(|count| *count += 1);
        self.rights_bell.notify_waiters();
    }

    fn rights(&self) -> watch::Receiver<u64> {
        self.rights.subscribe()
    }

    fn rights_after(&self, seen: u64) -> ClusterReply<'_, ()> {
        Box::pin(async move {
            loop {
                // Listen first, then look: whatever changes in between is heard.
                let mut rung = std::pin::pin!(self.rights_bell.notified());
                rung.as_mut().enable();
                if *self.rights.borrow() != seen {
                    return;
                }
                rung.await;
            }
        })
    }
}
