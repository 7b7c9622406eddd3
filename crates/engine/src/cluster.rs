//! The port for whatever crosses sessions or nodes.
//!
//! A session's loop reaches another session, another node, or those who follow, through `Cluster` and through nothing
//! else: who keeps a session, ringing its keeper, telling followers and waiters, freed claims, changed rights. `Node` is
//! what a node does when it is asked through the port: it looks into the inboxes of its sessions, and at what lies on its
//! disk. Everything is ids and values, so that it can be said between machines. What is said here are hints, which may get
//! lost, and looks, which die with their caller. What must not be lost, and whatever changes something on a disk, is a row
//! in the store, and `timer` looks for rows that nobody was rung for.
//! `LocalCluster` is the cluster of one process.

mod claims;
mod local;

pub use local::LocalCluster;

use crate::fanout::{LiveWords, SessionUpdate};
use crate::progress::SessionProgress;
use crate::{
    MergedTree, PatchPlace, RemovedTree, SeenTrees, SnapshotStoreSeen, TreeChanges, TreeFiles, TreePatch,
    TreeSeen, TreeSinceBase, TreesError, UndoPreview,
};
use agent::Background;
use kernel::{
    Claim, Errand, Fact, GroundPath, MergeHow, MessageId, PersonId, RequestId, Return, SessionId, Term, Turn,
};
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::pin::Pin;
use std::sync::Arc;
use store::{StoredFact, Verdict};
use tokio::sync::{broadcast, mpsc, oneshot, watch};

/// An answer of the port that takes a while. A look is given up when its caller drops it.
pub type ClusterReply<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The urgency with which a keeper should look at its session's inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ring {
    /// At once.
    Now,
    /// Within a moment, if a turn is under way: several messages then become facts in one append.
    Soon,
}

/// Something that happened in a session, for those who follow it or wait for it.
#[derive(Debug)]
pub enum Happened {
    /// These facts are durable.
    Facts(SessionId, Vec<StoredFact>),
    /// Its row in lists is another one than before, and no fact says so.
    Row(SessionId),
    /// The agent says words that are not in the log yet.
    Live(SessionId, LiveWords),
    /// So far is what is done outside between its turns; none if it is over.
    Progress(SessionId, Option<SessionProgress>),
    /// Facts may have been written that nobody was told of: whoever follows comes back and reads the log.
    Unclear(SessionId),
    /// These messages are final.
    Final(BTreeSet<MessageId>),
    /// These requests have a verdict.
    Verdicts(Vec<(RequestId, Verdict)>),
}

/// The nodes that share a store, as one of them reaches the others and itself.
pub trait Cluster: Debug + Send + Sync + 'static {
    /// Lets a node take part, with the term of its start. Called once, before anything else.
    fn join(&self, term: Term, node: Arc<dyn Node>);
    /// The node goes down: nobody follows or waits here any more.
    fn close(&self);

    /// The node that keeps this session if anybody does, and has its directory.
    fn node_of(&self, session: SessionId) -> Arc<dyn Node>;
    /// All of them.
    fn nodes(&self) -> Vec<Arc<dyn Node>>;
    /// A term for a keeper of this session, greater than that of any keeper before it.
    fn next_term(&self, session: SessionId) -> Term;
    /// Lets whoever keeps this session look at its inbox; if nobody keeps it, somebody does from now on. A ring may get
    /// lost: then the session is found by whoever looks for rows that nobody was rung for.
    fn ring(&self, session: SessionId, ring: Ring);

    /// Tells whoever follows or waits.
    fn tell(&self, happened: Happened);
    /// Everything that happens in this session from now on; none if the node goes down.
    fn follow(&self, session: SessionId) -> Option<broadcast::Receiver<SessionUpdate>>;
    /// The last word about what is done outside for this session between its turns; none if nothing is.
    fn progress(&self, session: SessionId) -> Option<SessionProgress>;
    /// Tells when the message is final. Whoever waits asks for this first and looks then; none if the node goes down.
    fn await_final(&self, message: MessageId) -> Option<oneshot::Receiver<()>>;
    /// Tells the verdict. Whoever waits asks for this first and looks then. An error means that nobody will tell.
    fn await_verdict(&self, request: RequestId) -> oneshot::Receiver<Verdict>;
    /// A number that grows whenever any session has changed.
    fn changes(&self) -> watch::Receiver<u64>;
    /// The news that people may be told elsewhere, of every session that this node keeps, from now on: questions and what becomes of them,
    /// stops, ends of turns. For one listener: none if there is one. What it is too slow for is lost to it.
    fn news(&self) -> Option<mpsc::Receiver<(SessionId, Fact)>>;

    /// This session was refused the claim: it is rung when the claim is free. One that it was offered and cannot use
    /// without this one goes to the next.
    fn wait_for(&self, claim: Claim, session: SessionId);
    /// The claim that this session waits for, if it was refused one here.
    fn awaited(&self, session: SessionId) -> Option<Claim>;
    /// The claim is free: whoever has waited longest for it is rung.
    fn freed(&self, claim: &Claim);
    /// This session has what it waited for.
    fn served(&self, session: SessionId);
    /// This session rests without having used what it was offered: the next one is rung.
    fn pass_on(&self, session: SessionId);

    /// Somebody may do something else than before: whoever remembers what they may do asks again.
    fn rights_changed(&self);
    /// A number that grows with every change of who may do what.
    fn rights(&self) -> watch::Receiver<u64>;
    /// Waits until somebody may do something else than when this number was read.
    fn rights_after(&self, seen: u64) -> ClusterReply<'_, ()>;
}

/// The work of one node for the others: it keeps sessions, and has their directories.
pub trait Node: Debug + Send + Sync + 'static {
    /// Looks at the inbox of a session, and keeps it if nobody does.
    fn rung(&self, session: SessionId, ring: Ring);
    /// Asks if the session is still in the scope that something was seen in. If not, its keeper records that. None if
    /// no keeper has said so.
    fn confirm(&self, session: SessionId, errand: Errand, came: Return) -> ClusterReply<'_, Option<bool>>;

    /// The processes in the background of a session with this agent.
    fn background(&self, session: SessionId, agent: String) -> ClusterReply<'_, Background>;
    /// The files of a directory, at most so many.
    fn files(
        &self,
        directory: GroundPath,
        session: SessionId,
        count_max: usize,
    ) -> ClusterReply<'_, Result<TreeFiles, String>>;
    /// The directories in a directory, at most so many, as somebody's sessions would see them.
    fn directories(
        &self,
        directory: GroundPath,
        by: PersonId,
        count_max: usize,
    ) -> ClusterReply<'_, Result<TreeFiles, TreesError>>;
    /// True if a directory is certainly not under version control.
    fn is_untracked(&self, directory: GroundPath) -> ClusterReply<'_, bool>;
    /// The changes from before one turn to after another, or the same; none if nothing was remembered of them.
    fn changes(
        &self,
        directory: GroundPath,
        session: SessionId,
        first: Turn,
        last: Turn,
    ) -> ClusterReply<'_, Result<Option<TreeChanges>, String>>;
    /// A piece of the patch of one file between the same.
    fn file_changes(
        &self,
        directory: GroundPath,
        session: SessionId,
        turns: (Turn, Turn),
        place: PatchPlace,
    ) -> ClusterReply<'_, Result<Option<TreePatch>, String>>;
    /// Everything that was done in a session's worktree since it was made.
    fn changes_since_base(
        &self,
        session: SessionId,
        name: String,
    ) -> ClusterReply<'_, Result<TreeSinceBase, TreesError>>;
    /// A piece of that of one file.
    fn file_since_base(
        &self,
        session: SessionId,
        name: String,
        place: PatchPlace,
    ) -> ClusterReply<'_, Result<TreePatch, TreesError>>;
    /// The work of an undo of a turn, and what is in its way.
    fn preview_undo(
        &self,
        directory: GroundPath,
        session: SessionId,
        turn: Turn,
    ) -> ClusterReply<'_, Result<UndoPreview, String>>;
    /// The worktrees on this node: whose, and what they are called.
    fn worktrees(&self) -> ClusterReply<'_, Result<Vec<(SessionId, String)>, String>>;
    /// The same, as they were when somebody last looked at them.
    fn worktrees_seen(&self) -> ClusterReply<'_, Result<SeenTrees, String>>;
    /// The places of snapshots on this node, as they were last counted.
    fn snapshot_stores(&self) -> ClusterReply<'_, Result<Vec<SnapshotStoreSeen>, String>>;
    /// A session's worktree as it is now; none if it has none of that name.
    fn worktree(
        &self,
        session: SessionId,
        name: String,
    ) -> ClusterReply<'_, Result<Option<TreeSeen>, String>>;
    /// The work of a session's worktree as it would come back to where it was made from, or why it cannot.
    fn preview_merge(
        &self,
        session: SessionId,
        name: String,
        how: MergeHow,
    ) -> ClusterReply<'_, Result<MergedTree, TreesError>>;
    /// The worktrees that were removed and can be had back, the newest first.
    fn removed(&self) -> ClusterReply<'_, Result<Vec<RemovedTree>, String>>;
}
