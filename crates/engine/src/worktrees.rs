//! The fate of worktrees when nobody is in them: they are listed, removed, restored, and collected.
//!
//! A worktree belongs to its session, so whoever may see or manage the session may see or manage it. Removing keeps
//! everything as a snapshot; it is a chore, which is asked for like anything else (`intake`) and done by the session's keeper
//! (`keeper/chores.rs`), so that nobody walks in meanwhile. What has become of it is then looked at.

use crate::engine_ports::EnginePorts;
use crate::intake::Declined;
use crate::view::{may_read, readable};
use crate::{
    AccessError, Collecting, ConflictError, Granted, MergedTree, RemovedTree, ScopeError, SeenTrees, Taken,
    Trace, TreeSeen, Trees, TreesError, UnavailableError, WayIn, WorktreeError,
};
use kernel::{
    Act, Chore, Claim, MergeHow, Moment, Principal, Request, SessionId, authorize, authorize_right,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use store::{Seer, SessionRow};

/// Worktrees that are looked into for one list, and removed ones that it names.
pub const WORKTREES_MAX: usize = 200;

/// Files in the way of a merge that are told.
const FILES_TOLD_MAX: usize = 100;

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
    /// The reference that keeps what was in it; or why it is still there. None if it was only asked what would go.
    pub came: Option<Result<RemovedTree, WorktreeError>>,
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
            let seen = match noted.remove(&(session, name.clone())).filter(|_| of.is_none()) {
                Some(seen) => Some(seen),
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

    /// Removes a worktree that its session is not in. Everything in it can be had back. Asked again, it answers the same.
    pub async fn remove(
        &self,
        by: &Principal,
        session: SessionId,
        name: &str,
        teardown: bool,
        trace: Trace,
    ) -> Result<RemovedTree, WorktreeError> {
        let result = self.remove_now(by, session, name, teardown, &trace).await;
        self.note_refusal(by, "remove_worktree", &trace, Some(session.to_string()), result).await
    }

    async fn remove_now(
        &self,
        by: &Principal,
        session: SessionId,
        name: &str,
        teardown: bool,
        trace: &Trace,
    ) -> Result<RemovedTree, Declined<WorktreeError>> {
        self.may_rule(by, session).await?;
        if !self.has_worktree(session, name).await? {
            let before = self.removed_of(session, name).await?.into_iter().next();
            return Ok(before.ok_or(AccessError::NotFound { what: "worktree" })?);
        }
        self.chore(by, session, Chore::Remove { name: name.to_owned(), teardown }, trace).await?;
        let removed = self.removed_of(session, name).await?.into_iter().next();
        Ok(removed.ok_or(ConflictError::Changed)?)
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
    ) -> Result<TreeSeen, WorktreeError> {
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
    ) -> Result<TreeSeen, Declined<WorktreeError>> {
        self.may_rule(by, session).await?;
        let mut removed = self.removed_of(session, name).await?.into_iter();
        let removed = removed.find(|removed| reference.is_none_or(|wanted| removed.reference == wanted));
        match (removed, self.is_whole(session, name).await?) {
            (_, Wholeness::Deleted) if reference.is_none() => {
                // Nothing is kept under a reference: it was never removed.
                let (name, reference) = (name.to_owned(), String::new());
                self.chore(by, session, Chore::Restore { name, reference }, trace).await?;
            }
            (Some(_), Wholeness::Whole) => return Err(Taken { what: "worktree" }.into()),
            // One whose removal or restoring was cut short is gone on with.
            (Some(RemovedTree { name, reference, .. }), Wholeness::Deleted | Wholeness::Missing) => {
                let record =
                    self.ports.record(session).await?.ok_or(AccessError::NotFound { what: "session" })?;
                self.ports.room_for_worktree::<WorktreeError>(record.org, record.owner).await?;
                self.chore(by, session, Chore::Restore { name, reference }, trace).await?;
            }
            // Whoever asks again has it.
            (None, Wholeness::Whole) if reference.is_none() => {}
            (None, _) => return Err(AccessError::NotFound { what: "worktree" }.into()),
        }
        let seen = self.worktree_now(session, name).await?;
        Ok(seen.ok_or(AccessError::NotFound { what: "worktree" })?)
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
    ) -> Result<MergedTree, WorktreeError> {
        let verb = match how {
            MergeHow::Merge => "merge_worktree",
            MergeHow::Apply => "apply_worktree",
        };
        let result = self.merge_now(by, session, name, how, dry_run, &trace).await;
        self.note_refusal(by, verb, &trace, Some(session.to_string()), result).await
    }

    /// It is looked at first, so that the answer itself names the files that are in the way; the chore looks again.
    async fn merge_now(
        &self,
        by: &Principal,
        session: SessionId,
        name: &str,
        how: MergeHow,
        dry_run: bool,
        trace: &Trace,
    ) -> Result<MergedTree, Declined<WorktreeError>> {
        self.may_rule(by, session).await?;
        if !self.has_worktree(session, name).await? {
            return Err(AccessError::NotFound { what: "worktree" }.into());
        }
        let node = self.ports.cluster.node_of(session);
        let seen = node.preview_merge(session, name.to_owned(), how).await.map_err(trouble)?;
        if let Some((kind, mut files)) = seen.obstacle {
            let more = files.len().saturating_sub(FILES_TOLD_MAX);
            files.truncate(FILES_TOLD_MAX);
            return Err(WorktreeError::Merge { kind, files, more }.into());
        }
        if dry_run {
            return Ok(seen);
        }
        // The ground does not move under a turn: not under somebody else's, either.
        let holder =
            self.ports.store.holder(Claim::directory(&seen.into)).await.map_err(UnavailableError::from)?;
        if holder.is_some_and(|(holder, _)| holder != session) {
            return Err(WorktreeError::from(ScopeError::Busy).into());
        }
        self.chore(by, session, Chore::Merge { name: name.to_owned(), how }, trace).await?;
        Ok(seen)
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
        Ok(())
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

    /// Has it done, and waits until it is over. Asked again it ends the same way, so it has no key.
    async fn chore(
        &self,
        by: &Principal,
        session: SessionId,
        chore: Chore,
        trace: &Trace,
    ) -> Result<(), Declined<WorktreeError>> {
        let (request, trace) = (Request::Chore { session, chore }, Trace { key: None, ..trace.clone() });
        match self.way_in.ask_now(by, &request, &[], &trace).await.map_err(Declined::into_part)? {
            Granted::Done => Ok(()),
            Granted::Pending if self.ports.is_closing() => {
                Err(UnavailableError::Unavailable("the server goes down".to_owned()).into())
            }
            Granted::Pending => {
                let why = "it has not come to its end yet, and goes on: ask again later";
                Err(UnavailableError::Unavailable(why.to_owned()).into())
            }
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
        let mut gone = Vec::new();
        for (seen, why) in self.due_to_go().await? {
            if self.may_rule(by, seen.session).await.is_err() {
                continue;
            }
            let came = match dry_run {
                true => None,
                false => {
                    let (session, name) = (seen.session, seen.name.as_str());
                    Some(self.remove(by, session, name, true, trace.clone()).await)
                }
            };
            gone.push(CollectedTree { seen, why, came });
        }
        Ok(gone)
    }

    /// Removes every worktree whose time is over, and what is remembered of turns for longer than it should be.
    async fn collect_all(&self) {
        match self.due_to_go().await {
            Ok(due) => {
                for (seen, why) in due {
                    self.collect_one(&seen, why).await;
                }
            }
            Err(error) => tracing::warn!(%error, "worktrees could not be looked at; later again"),
        }
        match self.trees.sweep(self.ports.limits.worktrees.snapshots).await {
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
                self.remove(&house, session, name, true, trace).await
            }
            Ok(None) => Err(AccessError::NotFound { what: "session" }.into()),
            Err(error) => Err(error.into()),
        };
        match removed {
            Ok(RemovedTree { reference, .. }) => {
                tracing::info!(%session, name, bytes, ?why, reference, "a worktree was collected");
            }
            Err(error) => tracing::warn!(%session, name, %error, "a worktree could not be collected"),
        }
    }

    /// The worktrees whose time is over, with why. None of those that a session is in.
    async fn due_to_go(&self) -> Result<Vec<(TreeSeen, CollectReason)>, UnavailableError> {
        let names = self.worktree_names().await?;
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let in_use = self.ports.store.worktrees_in_use().await?;
        let in_use: BTreeSet<_> = in_use.into_iter().map(|row| (row.session, row.name)).collect();
        let mut all = Vec::new();
        for (session, name) in names {
            // One that a removal was quicker to take is gone; one that cannot be looked into stays.
            let Ok(Some(mut seen)) = self.worktree_now(session, &name).await else { continue };
            match self.ports.store.session(session).await? {
                Some((_, row)) => seen.used_at = seen.used_at.max(row.touched_at),
                // Whose it is, nobody knows: no keeper could remove it.
                None => continue,
            }
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
