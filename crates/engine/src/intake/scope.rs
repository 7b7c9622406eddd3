//! Checks of a scope to come: the same questions as for a new session.

use crate::engine_ports::EnginePorts;
use crate::slash_command::near;
use crate::{AccessError, ConflictError, InvalidError, MODEL_BYTES_MAX, WayIn, WayInError};
use kernel::{
    BadWorktree, Change, Epoch, Fresh, MessageId, NewWorktree, Principal, Record, Request, Scope, SessionId,
    Setting, Turn, authorize_new, grant_of,
};
use store::{Seer, StoreError};

/// The models that are named to somebody who has named none of them, where none is near.
const MODELS_NAMED_MAX: usize = 10;

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

    /// Judges if the agent that is to be offers the model that is to be.
    pub(super) fn check_model_of_change(&self, agent_now: &str, change: &Change) -> Result<(), WayInError> {
        let Change::Set { agent, model: Setting::To(model), .. } = change else { return Ok(()) };
        self.check_model(agent.as_deref().unwrap_or(agent_now), model)
    }

    /// Refuses a model that nobody offers, as far as the agent has listed those that it does.
    pub(super) fn check_model(&self, agent: &str, model: &str) -> Result<(), WayInError> {
        let Some(known) = self.roster.agents().get(agent) else { return Ok(()) };
        let listed = self.roster.lists(agent).models;
        if known.takes_model(model, &listed) {
            return Ok(());
        }
        let names = || listed.iter().map(|choice| choice.name.as_str());
        let mut offered = near(model, names());
        if offered.is_empty() {
            offered = names().take(MODELS_NAMED_MAX).collect();
        }
        let offered = offered.into_iter().map(str::to_owned).collect();
        let (name, agent) = (model.to_owned(), agent.to_owned());
        Err(ConflictError::UnknownModel { name, agent, offered }.into())
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
