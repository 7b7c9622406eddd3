//! The engine's needs from the world besides stores and agents: the time, fresh ids, firm ground, a seal, a way for
//! agents to call back, the proof of the wall around them, and working trees with what is run in them.
//!
//! They are ports so that the simulation can run the whole engine from one seed.

use crate::{Secret, WorkProgress};
use agent::Agent;
use kernel::{GroundPath, MergeHow, Moment, NewWorktree, PersonId, SessionId, Turn, UndoFiles};
use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use store::ChainKey;
use tokio::sync::watch;

/// The time.
pub trait Clock: Debug + Send + Sync + 'static {
    /// Now.
    fn now(&self) -> Moment;
}

/// Where fresh ids and secrets come from.
pub trait Mint: Debug + Send + Sync + 'static {
    /// 128 bits that nobody has had before; later ones are greater, so that rows stay in order.
    fn bits(&self) -> u128;
    /// 32 bytes that nobody can guess.
    fn secret(&self) -> [u8; 32];
}

/// Where sessions may stand.
pub trait Ground: Debug + Send + Sync + 'static {
    /// The canonical form of a directory that a session is to work in, or why it cannot.
    fn check(&self, directory: &str) -> Result<GroundPath, GroundError>;
    /// Why a directory under a root cannot be used, if that is found without leaving the root. By a link an agent could have
    /// us look elsewhere, and hear what is there.
    fn why_not(&self, root: &str, directory: &str) -> Option<GroundError>;
    /// The name of a directory of its own, for a session that named none.
    fn own(&self, session: SessionId) -> GroundPath;
    /// Looks if a session can act there now, or why not. Makes nothing.
    fn look(&self, directory: &GroundPath) -> Result<(), NoGround>;
    /// Called before an agent starts there: makes a session's own directory, or says why there is none. Answers its true
    /// name, by which the agent will call it.
    fn prepare(&self, directory: &GroundPath) -> Result<GroundPath, GroundError>;
}

/// A session cannot act where it is. The words are for people, and say what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoGround {
    /// It is not there.
    #[error("{0}")]
    Gone(String),
    /// There is something else than what somebody was allowed to choose: a link, most likely.
    #[error("{0}")]
    Elsewhere(String),
}

/// A directory cannot be used, by what can be done about it. The words are for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GroundError {
    /// Choose another one.
    #[error("{0}")]
    Unfit(String),
    /// Put back what was there, or say where it is now.
    #[error(transparent)]
    Moved(#[from] NoGround),
    /// Look at the machine: its disk, or our rights on it.
    #[error("{0}")]
    Failed(String),
}

/// Nothing was done with a working tree, by what can be done about it. The words are for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TreesError {
    /// Install git.
    #[error("{0}")]
    NoGit(String),
    /// Put back the session's directory, or say where it is now.
    #[error(transparent)]
    Moved(#[from] NoGround),
    /// Ask for something else, or change first what is in the way.
    #[error("{0}")]
    Refused(String),
    /// Ask again later: somebody else is at it.
    #[error("{0}")]
    Busy(String),
    /// Look at the machine: git or its disk does not do what it should.
    #[error("{0}")]
    Failed(String),
}

// A fact or an answer has the words alone.
impl From<NoGround> for String {
    fn from(why: NoGround) -> Self {
        why.to_string()
    }
}

impl From<GroundError> for String {
    fn from(why: GroundError) -> Self {
        why.to_string()
    }
}

impl From<TreesError> for String {
    fn from(why: TreesError) -> Self {
        why.to_string()
    }
}

/// Nothing can be sealed: look at the server's key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SealError(pub String);

/// The agent cannot be told how to call back: look at the data directory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CallBackError(pub String);

/// Keeps secret what lies in the store, and makes the seals of the audit. The key lies elsewhere.
pub trait Seal: Debug + Send + Sync + 'static {
    /// Seals it, so that only `open` with the same `about` gives it back.
    fn seal(&self, about: &str, plain: &[u8]) -> Result<Vec<u8>, SealError>;
    /// The text that was sealed. None if it was sealed with another key or about something else, or is not what was
    /// sealed.
    fn open(&self, about: &str, sealed: &[u8]) -> Option<Vec<u8>>;
    /// The key that the audit is chained with. The same each time, as long as the key is.
    fn chain_key(&self) -> ChainKey;
}

/// The way the agent of a session finds us, and the credential of the turn that is under way.
///
/// The credential lies in a file of the session's own: a kept process outlives the turn whose environment it was given.
pub trait CallBack: Debug + Send + Sync + 'static {
    /// Puts the secret in the place of the one before, and says which variables let the agent find it.
    fn open(&self, session: SessionId, secret: &Secret) -> Result<Vec<(String, String)>, CallBackError>;
    /// Takes it away. Nothing depends on it: the secret is good only while its turn is under way.
    fn close(&self, session: SessionId);
}

/// The wall that keeps agents from what is not theirs: our data, other people's homes and sign-ins.
pub trait WallProver: Debug + Send + Sync + 'static {
    /// Tries it out from inside. May take a while.
    fn prove(&self) -> Pin<Box<dyn Future<Output = Proof> + Send + '_>>;

    /// Why nothing that this person wants may run in a session of that owner, in words; none if it may. It would run as a user that is
    /// the machine's person's alone.
    fn refusal(&self, owner: PersonId, by: PersonId) -> Option<String> {
        let _ = (owner, by);
        None
    }
}

/// The result of trying the wall.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proof {
    /// True if nothing got through.
    pub proved: bool,
    /// The attempts and what they found, for people.
    pub findings: Vec<String>,
}

/// Worktrees as they were last seen, by whose they are and what they are called.
pub type SeenTrees = BTreeMap<(SessionId, String), TreeSeen>;

/// An answer of a port that takes a while.
pub type TreeReply<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A session, as whatever touches its ground has to know it: the wall around it and the user that it runs as depend on whose
/// it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedSession {
    /// The session.
    pub session: SessionId,
    /// The id of the person whose it is.
    pub whose: String,
    /// True if nothing is started for it without a wall.
    pub walled: bool,
    /// The room that is left for worktrees of whose it is, where it was counted.
    pub tree_bytes_left: Option<u64>,
}

/// Working trees under version control: worktrees for sessions, and what turns changed in them.
///
/// What is done for a session is done on its ground, which is its agent's: behind its wall, and as its user.
/// Nothing of a repository's own (hooks, filters, configuration) is ever executed. Everything may be done again after a
/// crash and ends the same way.
pub trait Trees: Debug + Send + Sync + 'static {
    /// Makes a worktree of the repository around this directory, or finds it made, and says where the session acts in it.
    fn enter(
        &self,
        of: OwnedSession,
        directory: GroundPath,
        new: NewWorktree,
    ) -> TreeReply<'_, Result<EnteredTree, TreesError>>;
    /// Remembers how the tree is before a turn. `false` outside of version control.
    fn remember_before(
        &self,
        of: OwnedSession,
        directory: &GroundPath,
        turn: Turn,
    ) -> TreeReply<'_, Result<bool, TreesError>>;
    /// Remembers how the tree is after a turn, and says what has changed since before it; none outside of version control, or if
    /// nobody remembers how it was. `edits` are the files of which the agent has said that it changed them, if anybody has
    /// listened to it.
    fn remember_after(
        &self,
        of: OwnedSession,
        directory: &GroundPath,
        turn: Turn,
        edits: Option<Vec<String>>,
    ) -> TreeReply<'_, Result<Option<TreeChanges>, TreesError>>;
    /// True if a directory is certainly not under version control, by names alone.
    fn is_untracked(&self, directory: &GroundPath) -> bool;
    /// The changes from before one turn to after another, or the same; none if one of these sides was not remembered.
    fn changes(
        &self,
        of: OwnedSession,
        directory: &GroundPath,
        first: Turn,
        last: Turn,
    ) -> TreeReply<'_, Result<Option<TreeChanges>, TreesError>>;
    /// A piece of the patch of one file between the same; none if one of these sides was not remembered.
    fn file_changes(
        &self,
        _: OwnedSession,
        _: &GroundPath,
        _turns: (Turn, Turn),
        _: PatchPlace,
    ) -> TreeReply<'_, Result<Option<TreePatch>, TreesError>> {
        Box::pin(async { Ok(None) })
    }
    /// Everything that was done in a session's worktree since it was made.
    fn changes_since_base(
        &self,
        _: OwnedSession,
        _: &str,
    ) -> TreeReply<'_, Result<TreeSinceBase, TreesError>> {
        Box::pin(async { Err(TreesError::Refused("it is not looked at".to_owned())) })
    }
    /// A piece of that of one file.
    fn file_since_base(
        &self,
        _: OwnedSession,
        _: &str,
        _: PatchPlace,
    ) -> TreeReply<'_, Result<TreePatch, TreesError>> {
        Box::pin(async { Err(TreesError::Refused("it is not looked at".to_owned())) })
    }
    /// The work of an undo of this turn, and what is in its way. Changes nothing.
    fn preview_undo(
        &self,
        of: OwnedSession,
        directory: &GroundPath,
        turn: Turn,
    ) -> TreeReply<'_, Result<UndoPreview, TreesError>>;
    /// Puts back what a turn changed, unless something has touched the same files since, or it is not certain that the agent
    /// changed them and nobody says that they are meant.
    fn undo(
        &self,
        of: OwnedSession,
        directory: &GroundPath,
        turn: Turn,
        files: UndoFiles,
    ) -> TreeReply<'_, Result<UndoneTurn, TreesError>>;
    /// Takes the last undo of a turn back, unless something has touched the same files since.
    fn redo(
        &self,
        of: OwnedSession,
        directory: &GroundPath,
        turn: Turn,
    ) -> TreeReply<'_, Result<UndoneTurn, TreesError>>;
    /// The same for a fork: with the tree as it was after that turn of its origin, and nothing of it committed.
    fn fork(
        &self,
        of: OwnedSession,
        directory: GroundPath,
        new: NewWorktree,
        origin: SessionId,
        turn: Turn,
    ) -> TreeReply<'_, Result<EnteredTree, TreesError>>;
    /// The worktrees that there are: whose, and what they are called. Looks into none.
    fn names(&self) -> TreeReply<'_, Result<Vec<(SessionId, String)>, TreesError>>;
    /// The worktrees as they were when somebody last looked at them, as far as that was noted; nobody looks now.
    fn seen(&self) -> TreeReply<'_, Result<SeenTrees, TreesError>> {
        Box::pin(async { Ok(SeenTrees::new()) })
    }
    /// A session's worktree as it is now; none if it has none of that name.
    fn look(&self, of: OwnedSession, name: &str) -> TreeReply<'_, Result<Option<TreeSeen>, TreesError>>;
    /// The worktrees that were removed and can be had back, the newest first.
    fn removed(&self) -> TreeReply<'_, Result<Vec<RemovedTree>, TreesError>>;
    /// Removes a session's worktree, after everything in it is safe. Gone on with if it was cut short.
    fn remove(&self, of: OwnedSession, name: &str) -> TreeReply<'_, Result<RemovedTree, TreesError>>;
    /// Gives a worktree back as it was when it was removed.
    fn restore(
        &self,
        of: OwnedSession,
        removed: RemovedTree,
    ) -> TreeReply<'_, Result<EnteredTree, TreesError>>;
    /// Brings the work of a worktree back to where it was made from. Done again it goes on where it was cut short, or finds it
    /// done. A dry run changes nothing: it says what would come back, or which files are in the way.
    fn merge(
        &self,
        of: OwnedSession,
        name: &str,
        how: MergeHow,
        dry_run: bool,
    ) -> TreeReply<'_, Result<MergedTree, TreesError>>;
    /// Clears away what is left of removals, and what was remembered of turns longer ago than this. Answers how much. It is nobody's
    /// session that this is done for, so whoever asks says whether nothing is started without a wall; here and with stores.
    fn sweep(&self, age: Duration, walled: bool) -> TreeReply<'_, Result<usize, TreesError>>;
    /// Takes over the snapshots of a session that older versions have left in the repository around this directory. False if there was
    /// nothing to ask.
    fn take_over(&self, _: OwnedSession, _: &GroundPath) -> TreeReply<'_, Result<bool, TreesError>> {
        Box::pin(async { Ok(false) })
    }
    /// Words about snapshots of a session that went before their time, to be said once.
    fn gone(&self, _: SessionId) -> Option<String> {
        None
    }
    /// Waits until snapshots take more room than before.
    fn grown(&self) -> TreeReply<'_, ()> {
        Box::pin(std::future::pending())
    }
    /// Where snapshots are, as that was last counted; nobody looks now.
    fn snapshot_stores(&self) -> TreeReply<'_, Result<Vec<SnapshotStoreSeen>, TreesError>> {
        Box::pin(async { Ok(Vec::new()) })
    }
    /// The part of a store that the snapshots of these sessions reach.
    fn snapshot_share(
        &self,
        _: SnapshotStoreSeen,
        _: Vec<SessionId>,
        _walled: bool,
    ) -> TreeReply<'_, Result<SnapshotShare, TreesError>> {
        Box::pin(async { Ok(SnapshotShare::default()) })
    }
    /// Lets the oldest snapshots of these sessions in a store go, and says what is left. Those of the last hour stay, and those of
    /// removed worktrees.
    fn let_snapshots_go(
        &self,
        _: SnapshotStoreSeen,
        _: Vec<SessionId>,
        _walled: bool,
    ) -> TreeReply<'_, Result<SnapshotShare, TreesError>> {
        Box::pin(async { Ok(SnapshotShare::default()) })
    }
    /// Gives back the room of snapshots that have gone, after a while.
    fn compact_snapshots(
        &self,
        _: SnapshotStoreSeen,
        _walled: bool,
    ) -> TreeReply<'_, Result<(), TreesError>> {
        Box::pin(async { Ok(()) })
    }
    /// Those of whose sessions no snapshots are taken from here on, and why, by the person's id.
    fn set_full(&self, _: BTreeMap<String, String>) {}
    /// The files of a directory, at most so many: under version control those that are tracked or would be, elsewhere all.
    /// Links are named, and never followed.
    fn files(
        &self,
        of: OwnedSession,
        directory: &GroundPath,
        count_max: usize,
    ) -> TreeReply<'_, Result<TreeFiles, TreesError>>;
    /// The directories in a directory that may be chosen for somebody's sessions, at most so many. Links are none, and what is hidden is
    /// left out. It is of no session: `of` says for whom.
    fn directories(
        &self,
        _: OwnedSession,
        _: &GroundPath,
        _count_max: usize,
    ) -> TreeReply<'_, Result<TreeFiles, TreesError>> {
        Box::pin(async { Ok(TreeFiles::default()) })
    }
    /// The progress of whatever is being changed for that session, from now on: the last word of it. One that nobody says anything
    /// into where nobody knows.
    fn progress(&self, _: SessionId) -> watch::Receiver<Option<WorkProgress>> {
        watch::channel(None).1
    }
    /// The processes that do all this right now.
    fn workers(&self) -> usize {
        0
    }
    /// The server ends: whatever is kept for the next call goes, and nothing is started any more.
    fn close(&self) -> TreeReply<'_, ()> {
        Box::pin(async {})
    }
}

/// A place of the snapshots of one repository, as it was last counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SnapshotStoreSeen {
    /// The id of somebody as whose user it is worked in; empty if that is the server's.
    pub whose: String,
    /// Its name, among those of the same user.
    pub key: String,
    /// Of which repository.
    pub repository: GroundPath,
    /// The room that it takes on the disk.
    pub bytes: u64,
    /// The sessions that have snapshots in it.
    pub sessions: Vec<SessionId>,
}

/// The part of such a place that is some sessions'.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SnapshotShare {
    /// The room of what their snapshots reach in it.
    pub bytes: u64,
    /// When the oldest of those that may go was taken.
    pub oldest: Option<Moment>,
}

/// The scripts in the worktrees of one agent's sessions. A script is a program that is run as an agent is: behind the
/// wall, below a supervisor; it gets no words, its own words are what people are told, and exit code 0 is its success.
#[derive(Clone, Default)]
pub struct Scripts {
    /// Run when a worktree is entered, before the session acts in it.
    pub setup: Option<Arc<dyn Agent>>,
    /// Run before a worktree is removed.
    pub teardown: Option<Arc<dyn Agent>>,
    /// The longest that each may take.
    pub wait: Duration,
}

impl Debug for Scripts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { setup, teardown, wait } = self;
        let known = [("setup", setup), ("teardown", teardown)].into_iter();
        let names: Vec<_> = known.filter(|(_, script)| script.is_some()).map(|(name, _)| name).collect();
        write!(f, "Scripts({names:?}, {wait:?})")
    }
}

/// A worktree that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnteredTree {
    /// Its name.
    pub name: String,
    /// Where the session acts in it.
    pub directory: GroundPath,
    /// Its branch.
    pub branch: String,
    /// Things that people should know of it.
    pub notices: Vec<String>,
}

/// The changes of a turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TreeChanges {
    /// The files.
    pub files: Vec<TreeChange>,
    /// The same, as a patch; cut off if it is long.
    pub patch: String,
    /// True if something of the patch is missing.
    pub is_cut: bool,
    /// Sentences about what was not looked at.
    pub unseen: Vec<String>,
    /// The moves of the repository itself: commits, a switch, a stash.
    pub moves: Vec<TreeMove>,
}

/// A move of the repository itself that a turn has made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeMove {
    /// The move, in words.
    pub words: String,
    /// The command that takes it back.
    pub command: String,
}

/// A piece of the patch of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TreePatch {
    /// The file; none if it has not changed.
    pub file: Option<TreeChange>,
    /// The piece.
    pub patch: String,
    /// The byte of the patch at which the next piece begins, if there is one.
    pub next: Option<u64>,
}

/// Where a piece of a file's patch begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchPlace {
    /// The file, as it is named among changes.
    pub path: String,
    /// The byte of its patch.
    pub byte: u64,
}

/// Everything that was done in a worktree, committed or not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TreeSinceBase {
    /// The commit that it was made from.
    pub base: String,
    /// The changes since; no moves are among them.
    pub changes: TreeChanges,
}

/// One file that was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeChange {
    /// Where it is, from the top of the tree.
    pub path: String,
    /// `added`, `edited`, `removed` or `renamed`.
    pub kind: &'static str,
    /// Lines more; none of a file that is no text.
    pub plus: Option<u64>,
    /// Lines less.
    pub minus: Option<u64>,
}

/// The work of an undo that was only asked about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UndoPreview {
    /// Each file of the turn, and its fate.
    pub files: Vec<UndoStep>,
    /// The files that something has touched since, later turns or somebody by hand: with any of them nothing is undone.
    pub touched: Vec<String>,
    /// The files of which the agent has not said that it changed them: with any of them nothing is undone, unless somebody
    /// says that they are meant.
    pub unsure: Vec<String>,
    /// True if the agent has said of any file that it changed it.
    pub has_report: bool,
    /// The moves of the repository itself, which no undo takes back.
    pub moves: Vec<TreeMove>,
    /// True if there are more files.
    pub is_cut: bool,
    /// Why the turn cannot be undone at all, if so.
    pub why_not: Option<String>,
}

/// One file of an undo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoStep {
    /// Where it is, from the top of the tree.
    pub path: String,
    /// `restored`, `removed`, `brought_back`, `mode` (only that changes) or `as_before` (already).
    pub kind: &'static str,
}

/// A turn that was undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoneTurn {
    /// The files that are as they were.
    pub files: Vec<String>,
    /// The moves of the repository itself, which no undo takes back.
    pub moves: Vec<TreeMove>,
}

/// Files of a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TreeFiles {
    /// Their paths from there, in order.
    pub paths: Vec<String>,
    /// True if there are more.
    pub is_cut: bool,
}

/// A worktree that was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovedTree {
    /// The session that it was made for.
    pub session: SessionId,
    /// Its name, as it was.
    pub name: String,
    /// Of which repository.
    pub repository: GroundPath,
    /// Its branch.
    pub branch: String,
    /// The reference that keeps everything that was in it: a hidden ref of the repository's snapshot store.
    pub reference: String,
    /// When it was removed.
    pub removed_at: Moment,
}

/// The work of a worktree that came back to where it was made from, or would.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MergedTree {
    /// The directory that it came to.
    pub into: GroundPath,
    /// The branch there; none if it is on none.
    pub branch: Option<String>,
    /// The files there that changed by it; none if everything was there.
    pub files: Vec<String>,
    /// True if there are more.
    pub is_cut: bool,
    /// The commit that the branch there was on before it was moved.
    pub before: Option<String>,
    /// The reference that keeps everything there as it was just before.
    pub safety: Option<String>,
    /// The parts of the work that do not come along, in words.
    pub left_out: Vec<String>,
    /// The reason why it cannot be, and for which files.
    pub obstacle: Option<(MergeObstacle, Vec<String>)>,
}

/// The reasons why work cannot be brought back that are about files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeObstacle {
    /// They were changed on both sides.
    Conflicts,
    /// They are changed there and not committed.
    Changed,
    /// They are not committed in the worktree.
    Uncommitted,
}

/// A worktree in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeSeen {
    /// The session that it was made for.
    pub session: SessionId,
    /// Its name.
    pub name: String,
    /// Where it is.
    pub directory: GroundPath,
    /// Of which repository.
    pub repository: GroundPath,
    /// Its branch.
    pub branch: String,
    /// Commits that only it has, and that only its base has.
    pub ahead: u64,
    /// Commits that only its base has.
    pub behind: u64,
    /// Files that are changed or new and not committed.
    pub dirty: u64,
    /// The room it takes.
    pub bytes: u64,
    /// When it was made.
    pub made_at: Moment,
    /// When something was last done in it, as far as that can be seen.
    pub used_at: Moment,
    /// When it was looked at.
    pub seen_at: Moment,
    /// Its directory is not there, or not whole.
    pub is_missing: bool,
    /// Somebody has deleted it by hand, or cut it off from its repository: it can be made whole again.
    pub is_deleted: bool,
}

/// Where nothing is under version control.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoTrees;

const NO_TREES: &str = "this server has no git: install it, and start the server again";

fn none<'a, T: Send + 'a>() -> TreeReply<'a, Result<T, TreesError>> {
    Box::pin(async { Err(TreesError::NoGit(NO_TREES.to_owned())) })
}

impl Trees for NoTrees {
    fn enter(
        &self,
        _: OwnedSession,
        _: GroundPath,
        _: NewWorktree,
    ) -> TreeReply<'_, Result<EnteredTree, TreesError>> {
        none()
    }
    fn remember_before(
        &self,
        _: OwnedSession,
        _: &GroundPath,
        _: Turn,
    ) -> TreeReply<'_, Result<bool, TreesError>> {
        Box::pin(async { Ok(false) })
    }
    fn remember_after(
        &self,
        _: OwnedSession,
        _: &GroundPath,
        _: Turn,
        _: Option<Vec<String>>,
    ) -> TreeReply<'_, Result<Option<TreeChanges>, TreesError>> {
        Box::pin(async { Ok(None) })
    }
    fn is_untracked(&self, _: &GroundPath) -> bool {
        true
    }
    fn changes(
        &self,
        _: OwnedSession,
        _: &GroundPath,
        _: Turn,
        _: Turn,
    ) -> TreeReply<'_, Result<Option<TreeChanges>, TreesError>> {
        Box::pin(async { Ok(None) })
    }
    fn preview_undo(
        &self,
        _: OwnedSession,
        _: &GroundPath,
        _: Turn,
    ) -> TreeReply<'_, Result<UndoPreview, TreesError>> {
        none()
    }
    fn undo(
        &self,
        _: OwnedSession,
        _: &GroundPath,
        _: Turn,
        _: UndoFiles,
    ) -> TreeReply<'_, Result<UndoneTurn, TreesError>> {
        none()
    }
    fn redo(
        &self,
        _: OwnedSession,
        _: &GroundPath,
        _: Turn,
    ) -> TreeReply<'_, Result<UndoneTurn, TreesError>> {
        none()
    }
    fn fork(
        &self,
        _: OwnedSession,
        _: GroundPath,
        _: NewWorktree,
        _: SessionId,
        _: Turn,
    ) -> TreeReply<'_, Result<EnteredTree, TreesError>> {
        none()
    }
    fn names(&self) -> TreeReply<'_, Result<Vec<(SessionId, String)>, TreesError>> {
        Box::pin(async { Ok(Vec::new()) })
    }
    fn look(&self, _: OwnedSession, _: &str) -> TreeReply<'_, Result<Option<TreeSeen>, TreesError>> {
        Box::pin(async { Ok(None) })
    }
    fn removed(&self) -> TreeReply<'_, Result<Vec<RemovedTree>, TreesError>> {
        Box::pin(async { Ok(Vec::new()) })
    }
    fn remove(&self, _: OwnedSession, _: &str) -> TreeReply<'_, Result<RemovedTree, TreesError>> {
        none()
    }
    fn restore(&self, _: OwnedSession, _: RemovedTree) -> TreeReply<'_, Result<EnteredTree, TreesError>> {
        none()
    }
    fn merge(
        &self,
        _: OwnedSession,
        _: &str,
        _: MergeHow,
        _: bool,
    ) -> TreeReply<'_, Result<MergedTree, TreesError>> {
        none()
    }
    fn sweep(&self, _: Duration, _walled: bool) -> TreeReply<'_, Result<usize, TreesError>> {
        Box::pin(async { Ok(0) })
    }
    fn files(
        &self,
        _: OwnedSession,
        _: &GroundPath,
        _: usize,
    ) -> TreeReply<'_, Result<TreeFiles, TreesError>> {
        Box::pin(async { Ok(TreeFiles::default()) })
    }
}
