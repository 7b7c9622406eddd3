//! The fate of worktrees when nobody is in them: they are listed, removed, restored, and collected.
//!
//! A worktree belongs to its session, so whoever may see or manage the session may see or manage it. Removing keeps
//! everything as a snapshot; it is a chore, which is asked for like anything else (`intake`) and done by the session's keeper
//! (`keeper/chores.rs`), so that nobody walks in meanwhile. Whoever asks waits a little: what takes longer goes on without them, and
//! under the same key they join it again. What has become of it is then looked at, or was told with the verdict.

use crate::engine_ports::EnginePorts;
use crate::intake::{ChoreVerdict, Declined, check_trace};
use crate::merged_tree::merged_parse;
use crate::view::{may_read, readable};
use crate::{
    AccessError, Collecting, ConflictError, MergedTree, PatchPlace, RemovedTree, ScopeError, SeenTrees,
    Taken, Trace, TreePatch, TreeSeen, TreeSinceBase, Trees, TreesError, UnavailableError, WayIn, WayInError,
    WorktreeError,
};
use kernel::{
    Act, Chore, Claim, GroundPath, MergeHow, Moment, PersonId, Principal, RequestId, SessionId, authorize,
    authorize_right,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use store::{KeyAnswer, Seer, SessionRow};
use tokio::time::Instant;

/// Worktrees that are looked into for one list, and removed ones that it names.
pub const WORKTREES_MAX: usize = 200;

/// Files in the way of a merge that are told.
const FILES_TOLD_MAX: usize = 100;
/// The longest that a list of one session waits for a look at a worktree; then it shows what was noted.
const LIST_LOOK_WAIT: Duration = Duration::from_secs(5);
/// The longest that we wait for a removal of our own. What takes longer goes on, and is found done the next time.
const COLLECT_WAIT: Duration = Duration::from_secs(30 * 60);

/// A chore within the time that somebody waits for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChoreOutcome<T> {
    /// This has come of it.
    Over(T),
    /// It is safe, and goes on. Whoever asks again under the same key joins it.
    GoesOn,
}

/// Somebody's worktrees.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorktreesView {
    /// Those that are there, and whether their session is in them now.
    pub here: Vec<(TreeSeen, bool)>,
    /// Those that were removed and can be had back, the newest first.
    pub removed: Vec<RemovedTree>,
    /// True if there are more.
    pub is_cut: bool,
}

/// A worktree that was collected, or would be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectedTree {
    /// The worktree as it was.
    pub seen: TreeSeen,
    /// Why it goes.
    pub why: CollectReason,
    /// The reference that keeps what was in it; or that it is going; or why it is still there. None if it was only asked what would go.
    pub came: Option<Result<ChoreOutcome<RemovedTree>, WorktreeError>>,
}

/// Why a worktree goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CollectReason {
    /// Nobody has used it for long.
    Age,
    /// All of them together take too much.
    Disk,
}

/// Collects from time to time, as long as the engine lives.
pub(crate) fn start(worktrees: &Worktrees) {
    let every = worktrees.ports.limits.worktrees.every;
    if every.is_zero() {
        return;
    }
    let collecting = worktrees.clone();
    worktrees.ports.tasks.spawn(async move {
        loop {
            tokio::time::sleep(every).await;
            collecting.collect_all().await;
        }
    });
}

/// The worktrees that nobody is in. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Worktrees {
    pub(crate) ports: Arc<EnginePorts>,
    /// Removing and restoring are asked for like anything else.
    pub(crate) way_in: WayIn,
    pub(crate) trees: Arc<dyn Trees>,
}

impl Worktrees {
    /// The processes that look at directories right now.
    pub fn workers(&self) -> usize {
        self.trees.workers()
    }

    /// The room that all worktrees took when they were last looked at.
    pub async fn noted_bytes(&self) -> Result<u64, WorktreeError> {
        Ok(self.seen_before().await?.values().map(|seen| seen.bytes).sum())
    }

    /// The worktrees of the sessions that the caller may see, as they were last seen; or those of one session, as they are now.
    /// Where the caller's looks are not taken, both are as they were last seen.
    pub async fn list(&self, by: &Principal, of: Option<SessionId>) -> Result<WorktreesView, WorktreeError> {
        may_read(by, "session")?;
        if let Some(session) = of {
            let record = self.ports.record_seen(by, session).await?;
            let record = record.ok_or(AccessError::NotFound { what: "session" })?;
            readable(by, &record, "session")?;
        }
        let mut visible = Visible { ports: &self.ports, by, known: BTreeMap::new() };
        let mut view = WorktreesView::default();
        let mut noted = self.seen_before().await?;
        for (session, name) in self.worktree_names().await? {
            let Some(row) = visible.row(session, of).await? else { continue };
            if view.here.len() == WORKTREES_MAX {
                view.is_cut = true;
                break;
            }
            let in_use = is_in(&row, &name);
            let is_looked_at = self.ports.may_look_at_ground(by.person, row.owner).is_ok();
            let seen = match noted.remove(&(session, name.clone())) {
                noted if !is_looked_at => noted,
                Some(noted) if of.is_none() => Some(noted),
                Some(noted) => {
                    match tokio::time::timeout(LIST_LOOK_WAIT, self.worktree_now(session, &name)).await {
                        Ok(seen) => seen?,
                        Err(_) => Some(noted),
                    }
                }
                None => self.worktree_now(session, &name).await?,
            };
            view.here.extend(seen.map(|seen| (seen, in_use)));
        }
        for removed in self.removed_worktrees().await? {
            if visible.row(removed.session, of).await?.is_none() {
                continue;
            }
            if view.removed.len() == WORKTREES_MAX {
                view.is_cut = true;
                break;
            }
            view.removed.push(removed);
        }
        Ok(view)
    }

    /// Everything that was done in a worktree since it was made, for somebody who may read its session.
    pub async fn changes(
        &self,
        by: &Principal,
        session: SessionId,
        name: &str,
    ) -> Result<TreeSinceBase, WorktreeError> {
        self.may_look(by, session, name).await?;
        let node = self.ports.cluster.node_of(session);
        let seen = node.changes_since_base(session, name.to_owned()).await.map_err(trouble)?;
        // It may have taken a while, and whoever asked may have lost the right to know meanwhile.
        self.may_look(by, session, name).await?;
        Ok(seen)
    }

    /// A piece of the patch of one file of that.
    pub async fn file_changes(
        &self,
        by: &Principal,
        session: SessionId,
        name: &str,
        place: PatchPlace,
    ) -> Result<TreePatch, WorktreeError> {
        self.may_look(by, session, name).await?;
        let node = self.ports.cluster.node_of(session);
        let seen = node.file_since_base(session, name.to_owned(), place).await.map_err(trouble)?;
        self.may_look(by, session, name).await?;
        Ok(seen)
    }

    /// Judges if they may look at what is in a worktree, and if there is one.
    async fn may_look(&self, by: &Principal, session: SessionId, name: &str) -> Result<(), WorktreeError> {
        may_read(by, "session")?;
        let record = self.ports.record_seen(by, session).await?;
        let record = record.ok_or(AccessError::NotFound { what: "session" })?;
        readable(by, &record, "session")?;
        self.must_have(session, name).await?;
        Ok(self.ports.may_look_at_ground(by.person, record.owner)?)
    }

    /// Removes a worktree that its session is not in. Everything in it can be had back. Asked again, it answers the same.
    pub async fn remove(
        &self,
        by: &Principal,
        session: SessionId,
        name: &str,
        teardown: bool,
        trace: Trace,
    ) -> Result<ChoreOutcome<RemovedTree>, WorktreeError> {
        self.remove_within(self.ports.limits.verdict_wait, by, session, name, teardown, trace).await
    }

    async fn remove_within(
        &self,
        wait: Duration,
        by: &Principal,
        session: SessionId,
        name: &str,
        teardown: bool,
        trace: Trace,
    ) -> Result<ChoreOutcome<RemovedTree>, WorktreeError> {
        let result = self.remove_now(wait, by, session, name, teardown, &trace).await;
        self.note_refusal(by, "remove_worktree", &trace, Some(session.to_string()), result).await
    }

    async fn remove_now(
        &self,
        wait: Duration,
        by: &Principal,
        session: SessionId,
        name: &str,
        teardown: bool,
        trace: &Trace,
    ) -> Result<ChoreOutcome<RemovedTree>, Declined<WorktreeError>> {
        check_trace(trace).map_err(WayInError::from)?;
        self.may_rule(by, session).await?;
        let key = self.ports.key("remove_worktree", trace, &(session.to_string(), name, teardown));
        let request = match self.asked_before(by, key.clone()).await? {
            Some(request) => Some(request),
            None if !self.has_worktree(session, name).await? => {
                let before = self.removed_of(session, name).await?.into_iter().next();
                return Ok(ChoreOutcome::Over(before.ok_or(AccessError::NotFound { what: "worktree" })?));
            }
            None => {
                let record =
                    self.ports.record(session).await?.ok_or(AccessError::NotFound { what: "session" })?;
                self.ports.room_for_snapshot::<WorktreeError>(record.org, record.owner).await?;
                let chore = Chore::Remove { name: name.to_owned(), teardown };
                self.ask_chore(by, session, chore, key, trace).await?
            }
        };
        match self.verdict(by, session, request, wait).await? {
            ChoreVerdict::GoesOn => Ok(ChoreOutcome::GoesOn),
            ChoreVerdict::Over { .. } => {
                let removed = self.removed_of(session, name).await?.into_iter().next();
                Ok(ChoreOutcome::Over(removed.ok_or(ConflictError::Changed)?))
            }
        }
    }

    /// Gives a worktree back as it was when it was removed: the last time, or that of a reference. One that was deleted by hand
    /// is made again as far as it is known. Asked again, it answers the same.
    pub async fn restore(
        &self,
        by: &Principal,
        session: SessionId,
        name: &str,
        reference: Option<&str>,
        trace: Trace,
    ) -> Result<ChoreOutcome<TreeSeen>, WorktreeError> {
        let result = self.restore_now(by, session, name, reference, &trace).await;
        self.note_refusal(by, "restore_worktree", &trace, Some(session.to_string()), result).await
    }

    async fn restore_now(
        &self,
        by: &Principal,
        session: SessionId,
        name: &str,
        reference: Option<&str>,
        trace: &Trace,
    ) -> Result<ChoreOutcome<TreeSeen>, Declined<WorktreeError>> {
        check_trace(trace).map_err(WayInError::from)?;
        self.may_rule(by, session).await?;
        let key = self.ports.key("restore_worktree", trace, &(session.to_string(), name, reference));
        let request = match self.asked_before(by, key.clone()).await? {
            Some(request) => Some(request),
            None => match self.restoring(session, name, reference).await? {
                Some(chore) => self.ask_chore(by, session, chore, key, trace).await?,
                None => None,
            },
        };
        match self.verdict(by, session, request, self.ports.limits.verdict_wait).await? {
            ChoreVerdict::GoesOn => Ok(ChoreOutcome::GoesOn),
            ChoreVerdict::Over { .. } => {
                let seen = self.worktree_now(session, name).await?;
                Ok(ChoreOutcome::Over(seen.ok_or(AccessError::NotFound { what: "worktree" })?))
            }
        }
    }

    /// The chore that gives a worktree back; none if it is there.
    async fn restoring(
        &self,
        session: SessionId,
        name: &str,
        reference: Option<&str>,
    ) -> Result<Option<Chore>, WorktreeError> {
        let mut removed = self.removed_of(session, name).await?.into_iter();
        let removed = removed.find(|removed| reference.is_none_or(|wanted| removed.reference == wanted));
        match (removed, self.is_whole(session, name).await?) {
            (_, Wholeness::Deleted) if reference.is_none() => {
                // Nothing is kept under a reference: it was never removed.
                Ok(Some(Chore::Restore { name: name.to_owned(), reference: String::new() }))
            }
            (Some(_), Wholeness::Whole) => Err(Taken { what: "worktree" }.into()),
            // One whose removal or restoring was cut short is gone on with.
            (Some(RemovedTree { name, reference, .. }), Wholeness::Deleted | Wholeness::Missing) => {
                let record =
                    self.ports.record(session).await?.ok_or(AccessError::NotFound { what: "session" })?;
                self.ports.room_for_worktree::<WorktreeError>(record.org, record.owner).await?;
                Ok(Some(Chore::Restore { name, reference }))
            }
            // Whoever asks again has it.
            (None, Wholeness::Whole) if reference.is_none() => Ok(None),
            (None, _) => Err(AccessError::NotFound { what: "worktree" }.into()),
        }
    }

    /// Brings the work of a worktree back to where it was made from, or says what would come of it. Asked again, it finds everything
    /// there.
    pub async fn merge(
        &self,
        by: &Principal,
        session: SessionId,
        name: &str,
        how: MergeHow,
        dry_run: bool,
        trace: Trace,
    ) -> Result<ChoreOutcome<MergedTree>, WorktreeError> {
        let verb = merge_verb(how);
        let result = match dry_run {
            true => self.preview_merge(by, session, name, how).await.map(ChoreOutcome::Over),
            false => self.merge_now(by, session, name, how, &trace).await,
        };
        self.note_refusal(by, verb, &trace, Some(session.to_string()), result).await
    }

    async fn preview_merge(
        &self,
        by: &Principal,
        session: SessionId,
        name: &str,
        how: MergeHow,
    ) -> Result<MergedTree, Declined<WorktreeError>> {
        self.may_rule(by, session).await?;
        self.must_have(session, name).await?;
        let look = self.ports.cluster.node_of(session);
        let seen = look.preview_merge(session, name.to_owned(), how).await.map_err(trouble)?;
        Ok(nothing_in_the_way(seen)?)
    }

    async fn merge_now(
        &self,
        by: &Principal,
        session: SessionId,
        name: &str,
        how: MergeHow,
        trace: &Trace,
    ) -> Result<ChoreOutcome<MergedTree>, Declined<WorktreeError>> {
        check_trace(trace).map_err(WayInError::from)?;
        self.may_rule(by, session).await?;
        let key = self.ports.key(merge_verb(how), trace, &(session.to_string(), name));
        let request = match self.asked_before(by, key.clone()).await? {
            Some(request) => Some(request),
            None => {
                self.must_have(session, name).await?;
                self.must_be_mergeable(session, name, how).await?;
                let chore = Chore::Merge { name: name.to_owned(), how };
                self.ask_chore(by, session, chore, key, trace).await?
            }
        };
        match self.verdict(by, session, request, self.ports.limits.verdict_wait).await? {
            ChoreVerdict::GoesOn => Ok(ChoreOutcome::GoesOn),
            ChoreVerdict::Over { told } => {
                let merged = told.as_deref().and_then(merged_parse);
                Ok(ChoreOutcome::Over(merged.ok_or(ConflictError::Changed)?))
            }
        }
    }

    /// It is looked at first, so that the answer itself names the files that are in the way; the chore looks again, and says so in
    /// words if nobody could tell so quickly.
    async fn must_be_mergeable(
        &self,
        session: SessionId,
        name: &str,
        how: MergeHow,
    ) -> Result<(), WorktreeError> {
        let node = self.ports.cluster.node_of(session);
        let look = node.preview_merge(session, name.to_owned(), how);
        let into = match tokio::time::timeout(self.ports.limits.verdict_wait, look).await {
            Ok(seen) => Some(nothing_in_the_way(seen.map_err(trouble)?)?.into),
            Err(_) => self.home_of(session, name).await?,
        };
        // The ground does not move under a turn: not under somebody else's, either.
        let Some(into) = into else { return Err(ConflictError::Changed.into()) };
        let holder =
            self.ports.store.holder(Claim::directory(&into)).await.map_err(UnavailableError::from)?;
        match holder {
            Some((holder, _)) if holder != session => Err(ScopeError::Busy.into()),
            Some(_) | None => Ok(()),
        }
    }

    /// The directory that a worktree was made from, as it was last recorded.
    async fn home_of(&self, session: SessionId, name: &str) -> Result<Option<GroundPath>, UnavailableError> {
        let noted = self.seen_before().await?.remove(&(session, name.to_owned()));
        let seen = match noted {
            Some(seen) => Some(seen),
            None => self.worktree_now(session, name).await?,
        };
        Ok(seen.map(|seen| seen.repository))
    }

    async fn must_have(&self, session: SessionId, name: &str) -> Result<(), WorktreeError> {
        match self.has_worktree(session, name).await? {
            true => Ok(()),
            false => Err(AccessError::NotFound { what: "worktree" }.into()),
        }
    }

    /// The worktrees of all nodes: whose, and what they are called.
    async fn worktree_names(&self) -> Result<Vec<(SessionId, String)>, UnavailableError> {
        let mut names = Vec::new();
        for node in self.ports.cluster.nodes() {
            names.extend(node.worktrees().await.map_err(UnavailableError::Unavailable)?);
        }
        Ok(names)
    }

    /// The worktrees of all nodes as they were last seen.
    async fn seen_before(&self) -> Result<SeenTrees, UnavailableError> {
        let mut seen = SeenTrees::new();
        for node in self.ports.cluster.nodes() {
            seen.extend(node.worktrees_seen().await.map_err(UnavailableError::Unavailable)?);
        }
        Ok(seen)
    }

    /// A worktree as it is now.
    async fn worktree_now(
        &self,
        session: SessionId,
        name: &str,
    ) -> Result<Option<TreeSeen>, UnavailableError> {
        let node = self.ports.cluster.node_of(session);
        node.worktree(session, name.to_owned()).await.map_err(UnavailableError::Unavailable)
    }

    /// The worktrees of all nodes that were removed and can be had back, the newest of each node first.
    async fn removed_worktrees(&self) -> Result<Vec<RemovedTree>, UnavailableError> {
        let mut removed = Vec::new();
        for node in self.ports.cluster.nodes() {
            removed.extend(node.removed().await.map_err(UnavailableError::Unavailable)?);
        }
        Ok(removed)
    }

    async fn may_rule(&self, by: &Principal, session: SessionId) -> Result<(), WorktreeError> {
        let denied = |denied| AccessError::denied(denied, "session");
        authorize_right(by, Act::Manage).map_err(denied)?;
        let record = self.ports.record_seen(by, session).await?;
        let record = record.ok_or(AccessError::NotFound { what: "session" })?;
        authorize(by, Act::Manage, &record, ()).map_err(denied)?;
        Ok(self.ports.may_look_at_ground(by.person, record.owner)?)
    }

    async fn has_worktree(&self, session: SessionId, name: &str) -> Result<bool, UnavailableError> {
        let names = self.worktree_names().await?;
        Ok(names.iter().any(|(of, known)| *of == session && known == name))
    }

    async fn is_whole(&self, session: SessionId, name: &str) -> Result<Wholeness, UnavailableError> {
        if !self.has_worktree(session, name).await? {
            return Ok(Wholeness::Missing);
        }
        Ok(match self.worktree_now(session, name).await? {
            Some(seen) if seen.is_deleted => Wholeness::Deleted,
            Some(seen) if !seen.is_missing => Wholeness::Whole,
            Some(_) | None => Wholeness::Missing,
        })
    }

    async fn removed_of(&self, session: SessionId, name: &str) -> Result<Vec<RemovedTree>, UnavailableError> {
        let mut removed = self.removed_worktrees().await?;
        removed.retain(|removed| removed.session == session && removed.name == name);
        Ok(removed)
    }

    async fn note_refusal<T>(
        &self,
        by: &Principal,
        verb: &'static str,
        trace: &Trace,
        subject: Option<String>,
        result: Result<T, Declined<WorktreeError>>,
    ) -> Result<T, WorktreeError> {
        self.ports.noted((by.org, by.person), verb, trace, subject, result).await
    }

    /// The chore that was asked for under this key before.
    async fn asked_before(
        &self,
        by: &Principal,
        key: Option<store::Key>,
    ) -> Result<Option<RequestId>, WorktreeError> {
        let Some(key) = key else { return Ok(None) };
        match self.ports.store.answer_for(by.org, by.person, key, self.ports.now()).await? {
            KeyAnswer::Never => Ok(None),
            KeyAnswer::Repeated(made) => Ok(Some(RequestId::from_bits(made))),
            KeyAnswer::Conflict => Err(ConflictError::KeyReused.into()),
        }
    }

    async fn ask_chore(
        &self,
        by: &Principal,
        session: SessionId,
        chore: Chore,
        key: Option<store::Key>,
        trace: &Trace,
    ) -> Result<Option<RequestId>, Declined<WorktreeError>> {
        self.way_in.ask_chore(by, session, chore, key, trace).await.map_err(Declined::into_part)
    }

    /// The end of a chore, if it comes within that time. One that was never needed is over.
    async fn verdict(
        &self,
        by: &Principal,
        session: SessionId,
        request: Option<RequestId>,
        wait: Duration,
    ) -> Result<ChoreVerdict, WorktreeError> {
        let Some(request) = request else { return Ok(ChoreVerdict::Over { told: None }) };
        match self.way_in.chore_verdict(by, session, request, wait).await? {
            ChoreVerdict::GoesOn if self.ports.is_closing() => {
                Err(UnavailableError::Unavailable("the server goes down".to_owned()).into())
            }
            verdict => Ok(verdict),
        }
    }

    /// Removes the worktrees whose time is over, of the sessions that the caller may manage; or says which those are.
    pub async fn collect(
        &self,
        by: &Principal,
        dry_run: bool,
        trace: Trace,
    ) -> Result<Vec<CollectedTree>, WorktreeError> {
        let result = self.collect_now(by, dry_run, &trace).await;
        self.note_refusal(by, "collect_worktrees", &trace, None, result).await
    }

    async fn collect_now(
        &self,
        by: &Principal,
        dry_run: bool,
        trace: &Trace,
    ) -> Result<Vec<CollectedTree>, Declined<WorktreeError>> {
        if by.bound.is_some() {
            return Err(AccessError::BoundElsewhere.into());
        }
        authorize_right(by, Act::Manage).map_err(|denied| AccessError::denied(denied, "session"))?;
        let (mut gone, until) = (Vec::new(), Instant::now() + self.ports.limits.verdict_wait);
        for (seen, why) in self.due_to_go(by.person).await? {
            if self.may_rule(by, seen.session).await.is_err() {
                continue;
            }
            let came = match dry_run {
                true => None,
                false => {
                    // Each has a row of its own, so they have no key; whoever asks again finds those that are left.
                    let (session, name) = (seen.session, seen.name.as_str());
                    let (wait, trace) = (
                        until.saturating_duration_since(Instant::now()),
                        Trace { key: None, ..trace.clone() },
                    );
                    Some(self.remove_within(wait, by, session, name, true, trace).await)
                }
            };
            gone.push(CollectedTree { seen, why, came });
        }
        Ok(gone)
    }

    /// Removes every worktree whose time is over, and what is remembered of turns for longer than it should be.
    async fn collect_all(&self) {
        match self.due_to_go(PersonId::ENGINE).await {
            Ok(due) => {
                for (seen, why) in due {
                    self.collect_one(&seen, why).await;
                }
            }
            Err(error) => tracing::warn!(%error, "worktrees could not be looked at; later again"),
        }
        let walled = match self.way_in.rights_cache.needs_wall().await {
            Ok(walled) => walled,
            Err(error) => return tracing::warn!(%error, "snapshots could not be cleared away; later again"),
        };
        match self.trees.sweep(self.ports.limits.worktrees.snapshots, walled).await {
            Ok(0) => {}
            Ok(snapshots) => tracing::info!(snapshots, "snapshots of turns have expired"),
            Err(error) => tracing::warn!(%error, "snapshots could not be cleared away; later again"),
        }
    }

    /// Asks for it as Homing itself: as durable as anybody's wish, and in the audit.
    async fn collect_one(&self, seen: &TreeSeen, why: CollectReason) {
        let (session, name, bytes) = (seen.session, seen.name.as_str(), seen.bytes);
        let (correlation, address, key, schemes) = (session.to_string(), None, None, [].as_slice());
        let trace = Trace { door: "engine", correlation, address, key, schemes };
        let removed = match self.ports.record(session).await {
            Ok(Some(record)) => {
                let house = Principal::house(record.org);
                self.remove_within(COLLECT_WAIT, &house, session, name, true, trace).await
            }
            Ok(None) => Err(AccessError::NotFound { what: "session" }.into()),
            Err(error) => Err(error.into()),
        };
        match removed {
            Ok(ChoreOutcome::Over(RemovedTree { reference, .. })) => {
                tracing::info!(%session, name, bytes, ?why, reference, "a worktree was collected");
            }
            Ok(ChoreOutcome::GoesOn) => tracing::warn!(%session, name, "a worktree is still being collected"),
            Err(error) => tracing::warn!(%session, name, %error, "a worktree could not be collected"),
        }
    }

    /// The worktrees whose time is over, with why. None of those that a session is in. Those at which this person's looks are not
    /// taken are as they were last seen.
    async fn due_to_go(&self, by: PersonId) -> Result<Vec<(TreeSeen, CollectReason)>, UnavailableError> {
        let names = self.worktree_names().await?;
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let in_use = self.ports.store.worktrees_in_use().await?;
        let in_use: BTreeSet<_> = in_use.into_iter().map(|row| (row.session, row.name)).collect();
        let (mut all, mut noted) = (Vec::new(), self.seen_before().await?);
        for (session, name) in names {
            // Whose it is, nobody knows: no keeper could remove it.
            let Some((record, row)) = self.ports.store.session(session).await? else { continue };
            let seen = match self.ports.may_look_at_ground(by, record.owner) {
                Ok(()) => self.worktree_now(session, &name).await.ok().flatten(),
                Err(_) => noted.remove(&(session, name.clone())),
            };
            // One that a removal was quicker to take is gone; one that cannot be looked into stays.
            let Some(mut seen) = seen else { continue };
            seen.used_at = seen.used_at.max(row.touched_at);
            let stays = in_use.contains(&(session, name));
            all.push((seen, stays));
        }
        Ok(to_go(all, &self.ports.limits.worktrees, self.ports.now()))
    }
}

fn trouble(why: TreesError) -> WorktreeError {
    match why {
        TreesError::Refused(why) => ScopeError::WorktreeTrouble { why }.into(),
        why => UnavailableError::Unavailable(why.to_string()).into(),
    }
}

fn merge_verb(how: MergeHow) -> &'static str {
    match how {
        MergeHow::Merge => "merge_worktree",
        MergeHow::Apply => "apply_worktree",
    }
}

/// The same if it can be, or a refusal with the files.
fn nothing_in_the_way(mut seen: MergedTree) -> Result<MergedTree, WorktreeError> {
    let Some((kind, mut files)) = seen.obstacle.take() else { return Ok(seen) };
    let more = files.len().saturating_sub(FILES_TOLD_MAX);
    files.truncate(FILES_TOLD_MAX);
    Err(WorktreeError::Merge { kind, files, more })
}

/// The state of a worktree that somebody wants to have back.
enum Wholeness {
    Whole,
    /// Somebody has deleted it by hand.
    Deleted,
    /// It is not there, or half of it.
    Missing,
}

fn is_in(row: &SessionRow, name: &str) -> bool {
    let inside = row.scope.worktree.as_ref().is_some_and(|worktree| worktree.name == name);
    inside && row.ended.is_none()
}

/// Those of these that go, those that were not used for longest first. Those that stay count for the disk all the same.
fn to_go(all: Vec<(TreeSeen, bool)>, limits: &Collecting, now: Moment) -> Vec<(TreeSeen, CollectReason)> {
    let mut bytes: u64 = all.iter().map(|(seen, _)| seen.bytes).sum();
    let mut free: Vec<_> = all.into_iter().filter(|(_, stays)| !stays).map(|(seen, _)| seen).collect();
    free.sort_by_key(|seen| (seen.used_at, seen.session));
    let mut due = Vec::new();
    for seen in free {
        let unused = Duration::from_millis(now.0.saturating_sub(seen.used_at.0));
        let why = if unused >= limits.keep {
            CollectReason::Age
        } else if limits.disk_bytes_max > 0 && bytes > limits.disk_bytes_max {
            CollectReason::Disk
        } else {
            continue;
        };
        bytes = bytes.saturating_sub(seen.bytes);
        due.push((seen, why));
    }
    due
}

/// The sessions that the caller may see, each looked up once.
struct Visible<'a> {
    ports: &'a EnginePorts,
    by: &'a Principal,
    known: BTreeMap<SessionId, Option<SessionRow>>,
}

impl Visible<'_> {
    async fn row(
        &mut self,
        session: SessionId,
        of: Option<SessionId>,
    ) -> Result<Option<SessionRow>, WorktreeError> {
        if of.is_some_and(|of| of != session) {
            return Ok(None);
        }
        if let Some(known) = self.known.get(&session) {
            return Ok(known.clone());
        }
        let found = self.ports.store.session_seen(Seer::of(self.by), session).await?;
        let may = |record: &kernel::Record| readable(self.by, record, "session").is_ok();
        let row = found.filter(|(record, _)| may(record)).map(|(_, row)| row);
        self.known.insert(session, row.clone());
        Ok(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::GroundPath;

    const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

    fn tree(session: u128, used_days: u64, bytes: u64) -> TreeSeen {
        TreeSeen {
            session: SessionId::from_bits(session),
            name: "blue".to_owned(),
            directory: GroundPath::nowhere(),
            repository: GroundPath::nowhere(),
            branch: String::new(),
            ahead: 0,
            behind: 0,
            dirty: 0,
            bytes,
            made_at: Moment(0),
            used_at: Moment(used_days * DAY_MS),
            seen_at: Moment(used_days * DAY_MS),
            is_missing: false,
            is_deleted: false,
        }
    }

    fn gone(all: &[(u128, u64, u64, bool)], disk_bytes_max: u64) -> Vec<(u128, CollectReason)> {
        let limits = Collecting { disk_bytes_max, ..Collecting::default() };
        let all = all.iter().map(|(session, used, bytes, stays)| (tree(*session, *used, *bytes), *stays));
        let due = to_go(all.collect(), &limits, Moment(100 * DAY_MS));
        due.into_iter().map(|(seen, why)| (seen.session.bits(), why)).collect()
    }

    #[test]
    fn what_nobody_has_used_for_long_goes_and_what_somebody_is_in_stays() {
        let all = [(1, 70, 1, false), (2, 71, 1, false), (3, 0, 1, true), (4, 0, 1, false)];
        assert_eq!(gone(&all, 0), [(4, CollectReason::Age), (1, CollectReason::Age)]);
    }

    #[test]
    fn beyond_the_quota_the_longest_unused_go_first_and_no_more_than_needed() {
        let all = [(1, 90, 10, false), (2, 95, 10, false), (3, 99, 10, true), (4, 80, 10, false)];
        assert_eq!(gone(&all, 40), []);
        assert_eq!(gone(&all, 39), [(4, CollectReason::Disk)]);
        assert_eq!(gone(&all, 20), [(4, CollectReason::Disk), (1, CollectReason::Disk)]);
        assert_eq!(
            gone(&all, 1),
            [(4, CollectReason::Disk), (1, CollectReason::Disk), (2, CollectReason::Disk)]
        );
        // What goes by its age makes room, too.
        assert_eq!(gone(&[(1, 0, 30, false), (2, 90, 10, false)], 20), [(1, CollectReason::Age)]);
    }
}
