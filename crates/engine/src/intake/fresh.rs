//! A new session as it would be: its agent, its directory, and how many there may be.
//!
//! Whether somebody may make sessions at all is asked first. Of agents and directories that are not theirs nothing is said,
//! not even whether they are there.

use super::scope::check_worktree;
use crate::{
    AccessError, BadDirectory, ConflictError, Ground, IfNew, InvalidError, MODEL_BYTES_MAX, TITLE_BYTES_MAX,
    Trace, WayIn, WayInError,
};
use kernel::{
    Address, Denied, DoorAddress, Fresh, GroundPath, Principal, Scope, agent_grant_of, authorize_new,
    is_under,
};
use store::{Chosen, NewSession, Predecessor};

impl WayIn {
    /// The session that would be made, if agent and directory are there and theirs to choose.
    pub(super) fn new_session(
        &self,
        by: &Principal,
        if_new: &IfNew,
        bind: Option<Address>,
        trace: &Trace,
    ) -> Result<NewSession, WayInError> {
        let address = bind.as_ref().map(|address| trace.address(address));
        let agent = self.agent_for(by, if_new.agent.as_deref(), address)?;
        check_if_new(if_new)?;
        if_new.model.as_ref().map_or(Ok(()), |model| self.check_model(&agent, model))?;
        let session = self.ports.mint_session();
        let chosen = match &if_new.directory {
            Some(directory) => Some(self.directory_for(by, directory)?),
            None => None,
        };
        let directory = chosen.clone().unwrap_or_else(|| self.ground.own(session));
        let chosen = Chosen { agent: agent.clone(), directory: chosen };
        let (model, mode, worktree) = (if_new.model.clone(), if_new.mode.clone(), None);
        let scope = Scope { directory, agent, model, mode, worktree };
        let (origin, enter) = (None, if_new.worktree.clone());
        enter.as_ref().map_or(Ok(()), check_worktree)?;
        let (title, open_max) = (if_new.title.clone(), self.ports.limits.open_max);
        let org_open_max = self.ports.limits.org_open_max;
        Ok(NewSession { session, scope, origin, enter, title, bind, chosen, open_max, org_open_max })
    }

    /// The session that would come after another one of its conversation: with the same agent, unless another one is named.
    pub(super) fn next_session(
        &self,
        by: &Principal,
        if_new: &IfNew,
        before: Option<&Predecessor>,
        bind: Option<Address>,
        trace: &Trace,
    ) -> Result<NewSession, WayInError> {
        let Some(before) = before else { return self.new_session(by, if_new, bind, trace) };
        let made = self.new_session(by, &if_new.after(before), bind, trace);
        made.map_err(|refused| match refused {
            // Nothing stands in for it.
            WayInError::Conflict(ConflictError::UnknownAgent { name, known }) if if_new.agent.is_none() => {
                ConflictError::AgentLeft { name, known, session: before.session }.into()
            }
            refused => refused,
        })
    }

    /// The agent of a new session. One that the caller may not see is called unknown, like any that is not there.
    pub(super) fn agent_for(
        &self,
        by: &Principal,
        named: Option<&str>,
        address: Option<DoorAddress<'_>>,
    ) -> Result<String, WayInError> {
        let agent = named.unwrap_or(self.roster.default_agent());
        let fresh = Fresh { address, agent, directory: None };
        let seen = self.roster.agents().contains_key(agent) && agent_grant_of(by, agent).is_some();
        match authorize_new(by, fresh, ()) {
            // What it is called is not told to whom it is not shown.
            Err(Denied::AgentNotYours) if !seen && named.is_none() => Err(AccessError::AgentNotYours.into()),
            Ok(_) | Err(Denied::AgentNotYours) if !seen => {
                Err(ConflictError::UnknownAgent { name: agent.to_owned(), known: self.roster.seen_by(by) }
                    .into())
            }
            Ok(_) => Ok(agent.to_owned()),
            Err(denied) => Err(AccessError::denied(denied, "session").into()),
        }
    }

    pub(super) fn directory_for(&self, by: &Principal, directory: &str) -> Result<GroundPath, WayInError> {
        directory_for(self.ground.as_ref(), by, directory)
    }
}

/// The canonical form of a directory that was chosen. Outside of what the caller may choose, nothing is said of what is there.
/// Whether it is theirs to choose is judged with everything else.
pub(crate) fn directory_for<E: From<AccessError> + From<BadDirectory>>(
    ground: &dyn Ground,
    by: &Principal,
    directory: &str,
) -> Result<GroundPath, E> {
    let why = match ground.check(directory) {
        Ok(directory) => return Ok(directory),
        Err(why) => why,
    };
    // A relative one is refused as such, before anybody looks.
    let relative = !directory.starts_with('/');
    let roundabout = directory.split('/').any(|part| part == "..");
    let mut near = by.roots.iter().filter(|root| !roundabout && is_under(directory, root));
    let told = near.find_map(|root| ground.why_not(root, directory)).or(relative.then_some(why));
    Err(match told {
        Some(why) => BadDirectory { reason: why.into() }.into(),
        None => AccessError::DirectoryNotYours.into(),
    })
}

/// Checks the options of a session that may be made.
fn check_if_new(if_new: &IfNew) -> Result<(), InvalidError> {
    check_title(if_new.title.as_deref())?;
    for (field, name) in [("model", &if_new.model), ("mode", &if_new.mode)] {
        if name.as_ref().is_some_and(|name| name.is_empty() || name.len() > MODEL_BYTES_MAX) {
            let reason = format!("must have 1 to {MODEL_BYTES_MAX} bytes");
            return Err(InvalidError { field, reason });
        }
    }
    Ok(())
}

pub(super) fn check_title(title: Option<&str>) -> Result<(), InvalidError> {
    if title.is_some_and(|title| title.len() > TITLE_BYTES_MAX) {
        let reason = format!("longer than {TITLE_BYTES_MAX} bytes");
        return Err(InvalidError { field: "title", reason });
    }
    Ok(())
}
