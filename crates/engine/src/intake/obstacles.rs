//! Checks for what stands in the way of an undo, or of a way back, asked before anything of it is written.
//!
//! Whoever asks gets the refusal as the answer: with the files, or with what to put back. The look is a courtesy: what it
//! does not see, or what happens after it, the errand or the turn itself finds, while nothing else goes on in the tree.

use crate::{AccessError, BadDirectory, ScopeError, UndoPreview, WayIn, WayInError};
use kernel::{
    Change, Epoch, Errand, ErrandKind, Principal, Request, Return, Scope, SessionId, Turn, UndoFiles,
};
use store::Resolved;

/// Files that are told with a refusal.
const TOUCHED_MAX: usize = 100;

impl WayIn {
    /// The refusal of what would come to nothing as far as can be seen.
    pub(super) async fn in_the_way(
        &self,
        by: &Principal,
        request: &Request,
        resolved: &Resolved,
    ) -> Result<Option<WayInError>, WayInError> {
        match (request, &resolved.written_for) {
            (Request::Undo { session, turn, under: Some(of), files }, _) => {
                self.no_undo(by, *session, *turn, *of, files).await
            }
            (Request::Release { there: true, .. }, Some(scope)) => Ok(self.no_way_back(scope)),
            (Request::ChangeScope { session, change: Change::Enter(new), .. }, _) => {
                self.no_room(by, *session, &new.name).await
            }
            _ => Ok(None),
        }
    }

    /// One more worktree takes room of the session's owner; one that is there is only entered.
    async fn no_room(
        &self,
        by: &Principal,
        session: SessionId,
        name: &str,
    ) -> Result<Option<WayInError>, WayInError> {
        let record = self.ports.record(session).await?.ok_or(AccessError::NotFound { what: "session" })?;
        if let Err(refused) = self.ports.may_look_at_ground(by.person, record.owner) {
            return Ok(Some(refused.into()));
        }
        match self.ports.room_for_worktree::<WayInError>(record.org, record.owner).await {
            Err(refused @ WayInError::Scope(_)) => {
                let is_there = self.ports.has_worktree(session, name).await?;
                Ok((!is_there).then_some(refused))
            }
            Err(unknown) => Err(unknown),
            Ok(()) => Ok(None),
        }
    }

    /// Nobody goes back to where nothing is: the message would fail there for good, and the session would be stuck.
    fn no_way_back(&self, scope: &Scope) -> Option<WayInError> {
        let reason = String::from(self.ground.look(&scope.directory).err()?);
        Some(match &scope.worktree {
            Some(worktree) => {
                let name = &worktree.name;
                let why = format!(
                    "the message was written for the worktree {name}, which is not there: `homing worktree restore \
                     {name}` gives it back; or release the message here"
                );
                ScopeError::WorktreeTrouble { why }.into()
            }
            None => {
                let reason = format!("{reason}; put it back, or release the message here");
                BadDirectory { reason }.into()
            }
        })
    }

    /// The refusal of an undo of which it can be seen that it would change what somebody else has done, since or meanwhile.
    async fn no_undo(
        &self,
        by: &Principal,
        session: SessionId,
        turn: Turn,
        of: Epoch,
        wanted: &UndoFiles,
    ) -> Result<Option<WayInError>, WayInError> {
        let Some((record, row)) = self.ports.store.session(session).await? else { return Ok(None) };
        if let Err(refused) = self.ports.may_look_at_ground(by.person, record.owner) {
            return Ok(Some(refused.into()));
        }
        // The keeper refuses these by itself, and files that are being worked on tell nothing.
        if row.epoch != of || row.awake || row.ended.is_some() {
            return Ok(None);
        }
        let node = self.ports.cluster.node_of(session);
        let look = node.preview_undo(row.scope.directory.clone(), session, turn);
        let seen = match tokio::time::timeout(self.ports.limits.verdict_wait, look).await {
            Ok(Ok(preview)) => preview,
            // Nobody can tell so quickly: the errand finds it.
            Ok(Err(_)) | Err(_) => return Ok(None),
        };
        let Some(why) = in_the_way_of(turn, seen, wanted) else { return Ok(None) };
        let seen = Return::Seen(ErrandKind::Diff);
        if !self.ports.still_counts(session, Errand { epoch: of, number: 0 }, seen).await? {
            return Ok(None); // The turn is of another scope by now: the keeper says so.
        }
        Ok(Some(why))
    }
}

fn in_the_way_of(turn: Turn, seen: UndoPreview, wanted: &UndoFiles) -> Option<WayInError> {
    let mut touched = seen.touched;
    if let UndoFiles::Only(names) = wanted {
        touched.retain(|path| names.contains(path));
    }
    if !touched.is_empty() {
        let (files, more) = first_of(touched);
        return Some(WayInError::TouchedSince { turn, files, more });
    }
    if *wanted != UndoFiles::Certain || seen.unsure.is_empty() {
        return None;
    }
    let (files, more) = first_of(seen.unsure);
    Some(WayInError::UnsureChanges { turn, files, more, has_report: seen.has_report })
}

/// The files that are told, and how many more there are.
fn first_of(mut files: Vec<String>) -> (Vec<String>, usize) {
    let more = files.len().saturating_sub(TOUCHED_MAX);
    files.truncate(TOUCHED_MAX);
    (files, more)
}
