//! Checks for what stands in the way of an undo, or of a way back, asked before anything of it is written.
//!
//! Whoever asks gets the refusal as the answer: with the files, or with what to put back. The look is a courtesy: what it
//! does not see, or what happens after it, the errand or the turn itself finds, while nothing else goes on in the tree.

use crate::{BadDirectory, ScopeError, WayIn, WayInError};
use kernel::{Epoch, Errand, ErrandKind, Request, Return, Scope, SessionId, Turn};
use store::Resolved;

/// Files that are told with a refusal.
const TOUCHED_MAX: usize = 100;

impl WayIn {
    /// The refusal of what would come to nothing as far as can be seen.
    pub(super) async fn in_the_way(
        &self,
        request: &Request,
        resolved: &Resolved,
    ) -> Result<Option<WayInError>, WayInError> {
        match (request, &resolved.written_for) {
            (Request::Undo { session, turn, under: Some(of) }, _) => {
                self.touched_since(*session, *turn, *of).await
            }
            (Request::Release { there: true, .. }, Some(scope)) => Ok(self.no_way_back(scope)),
            _ => Ok(None),
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

    /// The refusal of an undo of which it can be seen that it would change what somebody else has done since.
    async fn touched_since(
        &self,
        session: SessionId,
        turn: Turn,
        of: Epoch,
    ) -> Result<Option<WayInError>, WayInError> {
        let Some((_, row)) = self.ports.store.session(session).await? else { return Ok(None) };
        // The keeper refuses these by itself, and files that are being worked on tell nothing.
        if row.epoch != of || row.awake || row.ended.is_some() {
            return Ok(None);
        }
        let node = self.ports.cluster.node_of(session);
        let look = node.touched(row.scope.directory.clone(), session, turn);
        let mut files = match tokio::time::timeout(self.ports.limits.verdict_wait, look).await {
            Ok(Ok(files)) if !files.is_empty() => files,
            // Nothing is in the way, or nobody can tell so quickly.
            Ok(Ok(_) | Err(_)) | Err(_) => return Ok(None),
        };
        let seen = Return::Seen(ErrandKind::Diff);
        if !self.ports.still_counts(session, Errand { epoch: of, number: 0 }, seen).await? {
            return Ok(None); // The turn is of another scope by now: the keeper says so.
        }
        let more = files.len().saturating_sub(TOUCHED_MAX);
        files.truncate(TOUCHED_MAX);
        Ok(Some(WayInError::TouchedSince { turn, files, more }))
    }
}
