//! Forks: a new session with the conversation of another one up to a turn, and a tree of its own as it was then.

use super::fresh::check_title;
use super::{Declined, check_trace};
use crate::{AccessError, ConflictError, Made, Trace, UnavailableError, WayIn, WayInError};
use kernel::{
    Act, Fresh, NewWorktree, Origin, Principal, Scope, SessionId, Turn, authorize, authorize_new,
    authorize_right,
};
use store::{Chosen, Create, NewSession, StoreError};

impl WayIn {
    /// Makes a fork of a session, after a turn of it or after its last one.
    pub async fn fork(
        &self,
        by: &Principal,
        session: SessionId,
        at: Option<Turn>,
        title: Option<String>,
        trace: Trace,
    ) -> Result<Made, WayInError> {
        let result = self.fork_now(by, session, at, title, &trace).await;
        self.note_refusal(by, "fork", &trace, Some(session.to_string()), result).await
    }

    async fn fork_now(
        &self,
        by: &Principal,
        session: SessionId,
        at: Option<Turn>,
        title: Option<String>,
        trace: &Trace,
    ) -> Result<Made, Declined> {
        let denied = |denied| AccessError::denied(denied, "session");
        check_trace(trace)?;
        check_title(title.as_deref())?;
        authorize_right(by, Act::Say).map_err(denied)?;
        let key = self.ports.key("fork", trace, &(session.to_string(), at.map(|turn| turn.0), &title));
        let record = self.record(by, session).await?;
        // Asked before anything of it is looked at; asked again where it is made.
        authorize(by, Act::Say, &record, ()).map_err(denied)?;
        let fresh = Fresh { address: None, agent: &record.agent, directory: None };
        authorize_new(by, fresh, ()).map_err(denied)?;
        // Which tree the fork works in is looked up on the ground.
        if let Err(refused) = self.ports.may_look_at_ground(by.person, record.owner) {
            return self.made_under(by, key, refused.into()).await;
        }
        let new = match self.forked(session, at, title).await {
            Ok(new) => new,
            // The origin's directory may be gone by now, and its turn forgotten.
            Err(refused) => return self.made_under(by, key, refused).await,
        };
        if let Err(refused) = self.may_enter(by, new.enter.is_some()).await {
            return self.made_under(by, key, refused).await;
        }
        let (past, subject, trail) = (None, Some(session.to_string()), self.ports.trail("fork", trace));
        let words_bytes_max = self.ports.limits.words_bytes_per_person_max;
        let schemes = trace.schemes;
        self.create(by, Create { session: new, past, words_bytes_max, subject, key, trail, schemes }).await
    }

    async fn forked(
        &self,
        of: SessionId,
        at: Option<Turn>,
        title: Option<String>,
    ) -> Result<NewSession, WayInError> {
        let no_turn = AccessError::NotFound { what: "turn" };
        let row = match at {
            Some(turn) => self.ports.store.turn(of, turn).await?,
            None => self.ports.store.last_turn(of).await?,
        };
        let row = row.filter(|row| row.state.is_final()).ok_or(no_turn)?;
        let (Some(turn), Some(epoch)) = (row.turn, row.epoch) else { return Err(no_turn.into()) };
        let ran_in = self.ports.store.scope(of, epoch).await?.ok_or(no_turn)?;
        // A turn that ran elsewhere is gone on with where its session is now.
        let ran_in = if ran_in.agent.is_empty() { self.scope_now(of).await?.ok_or(no_turn)? } else { ran_in };
        let session = self.ports.mint_session();
        let enter = self.tree_after(of, turn, &ran_in).await?;
        let directory = ran_in.home().clone();
        let chosen = Chosen { agent: ran_in.agent.clone(), directory: Some(directory.clone()) };
        Ok(NewSession {
            session,
            scope: Scope { directory, worktree: None, ..ran_in },
            origin: Some(Origin { session: of, turn }),
            enter,
            title,
            bind: None,
            chosen,
            open_max: self.ports.limits.open_max,
            org_open_max: self.ports.limits.org_open_max,
        })
    }

    async fn scope_now(&self, session: SessionId) -> Result<Option<Scope>, StoreError> {
        Ok(self.ports.store.session(session).await?.map(|(_, row)| row.scope))
    }

    /// A worktree of its own, of the tree after that turn. Outside of version control there is only one tree. When nobody
    /// remembers it, or can tell just now, there is no fork: it must not come to work in its origin's tree by accident.
    async fn tree_after(
        &self,
        of: SessionId,
        turn: Turn,
        ran_in: &Scope,
    ) -> Result<Option<NewWorktree>, WayInError> {
        let (node, directory) = (self.ports.cluster.node_of(of), ran_in.directory.clone());
        let remembered = node.changes(directory.clone(), of, turn, turn).await;
        match remembered.map_err(UnavailableError::Unavailable)? {
            Some(_) => Ok(Some(NewWorktree::own(None, None, None))),
            None if node.is_untracked(directory).await => Ok(None),
            None => Err(ConflictError::TreeForgotten { turn }.into()),
        }
    }
}
