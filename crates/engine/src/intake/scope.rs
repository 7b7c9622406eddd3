//! Checks of a scope to come: the same questions as for a new session.

use crate::engine_ports::EnginePorts;
use crate::{AccessError, ConflictError, InvalidError, MODEL_BYTES_MAX, WayIn, WayInError};
use kernel::{
    BadWorktree, Change, Epoch, Fresh, MessageId, NewWorktree, Principal, Record, Request, Scope, SessionId,
    Setting, Turn, authorize_new, grant_of,
};
use store::{Seer, StoreError};

impl WayIn {
    /// Judges if this caller may have a scope changed so, as far as that can be said before it happens.
    pub(super) fn check_change(&self, by: &Principal, change: &Change) -> Result<(), WayInError> {
        match change {
            Change::Enter(wanted) => Ok(check_worktree(wanted)?),
            Change::Exit => Ok(()),
            Change::Set { agent, model, mode } => {
                check_setting("model", model)?;
                check_setting("mode", mode)?;
                agent.as_ref().map_or(Ok(()), |agent| self.agent_for(by, Some(agent), None).map(drop))
            }
            Change::Relink { directory } => {
                let directory = self.directory_for(by, directory.for_readers())?;
                // The agent is the session's own and was asked about when it was chosen.
                let fresh = Fresh { address: None, agent: "", directory: Some(&directory) };
                let allowed = authorize_new(by, fresh, ()).map(drop);
                allowed.map_err(|denied| AccessError::denied(denied, "session").into())
            }
            // Nobody can ask for this but by releasing a message.
            Change::Back { .. } => Err(InvalidError {
                field: "change",
                reason: "release the message that was written for it instead".to_owned(),
            }
            .into()),
        }
    }

    /// The request with everything in its one true form.
    pub(super) fn settled(&self, by: &Principal, request: Request) -> Result<Request, WayInError> {
        match request {
            Request::ChangeScope { session, change: Change::Relink { directory }, now } => {
                let directory = self.directory_for(by, directory.for_readers())?;
                Ok(Request::ChangeScope { session, change: Change::Relink { directory }, now })
            }
            other => Ok(other),
        }
    }

    /// The scope that a message was written for. A message that the caller may not see is none.
    pub(super) async fn written_for(
        &self,
        by: &Principal,
        message: MessageId,
    ) -> Result<(Record, Scope), WayInError> {
        let none = AccessError::NotFound { what: "message" };
        let (record, row) = self.ports.store.receipt_seen(Seer::of(by), message).await?.ok_or(none)?;
        if grant_of(by, &record).is_none() {
            return Err(none.into());
        }
        let Some(epoch) = row.epoch else { return Err(ConflictError::Changed.into()) };
        let scope = self.ports.store.scope(record.session, epoch).await?.ok_or(ConflictError::Changed)?;
        Ok((record, scope))
    }

    /// The epoch in which a turn can be undone. A turn of a session that the caller may not see is none.
    pub(super) async fn epoch_for_undo(
        &self,
        by: &Principal,
        record: &Record,
        turn: Turn,
        under: Option<Epoch>,
    ) -> Result<Epoch, WayInError> {
        if grant_of(by, record).is_none() {
            return Err(AccessError::NotFound { what: "session" }.into());
        }
        self.ports.epoch_for_undo(record.session, turn, under).await
    }
}

impl EnginePorts {
    /// The epoch in which a turn can be undone: that of now while the session acts where the turn did, whatever else has
    /// changed; else that of the turn, which is over.
    pub(crate) async fn epoch_for_undo<E: From<AccessError> + From<StoreError>>(
        &self,
        session: SessionId,
        turn: Turn,
        under: Option<Epoch>,
    ) -> Result<Epoch, E> {
        let row = self.store.turn(session, turn).await?;
        let then = row.and_then(|row| row.epoch).ok_or(AccessError::NotFound { what: "turn" })?;
        let Some((_, now)) = self.store.session(session).await? else { return Ok(then) };
        let scope = self.store.scope(session, then).await?;
        let is_there = scope.is_some_and(|scope| {
            // An imported turn ran elsewhere, with an agent that has no name here.
            !scope.agent.is_empty()
                && scope.directory == now.scope.directory
                && scope.worktree == now.scope.worktree
        });
        // The keeper compares it with the epoch that it finds, so that a change in between is no harm.
        Ok(match under {
            _ if !is_there => then,
            Some(under) => under,
            None => now.epoch,
        })
    }
}

pub(super) fn check_worktree(wanted: &NewWorktree) -> Result<(), InvalidError> {
    wanted.check().map_err(|BadWorktree { field, reason }| InvalidError { field, reason })
}

fn check_setting(field: &'static str, setting: &Setting) -> Result<(), InvalidError> {
    match setting {
        Setting::To(name) if name.is_empty() || name.len() > MODEL_BYTES_MAX => {
            let reason = format!("must have 1 to {MODEL_BYTES_MAX} bytes");
            Err(InvalidError { field, reason })
        }
        Setting::Keep | Setting::Default | Setting::To(_) => Ok(()),
    }
}
