//! What a new session would be: its agent, its directory, and how many there may be.
//!
//! Whether somebody may make sessions at all is asked first. Of agents and directories that are not theirs nothing is said,
//! not even whether they are there.

use super::scope::check_worktree;
use crate::{Engine, IfNew, MODEL_BYTES_MAX, Refused, TITLE_BYTES_MAX, Trace};
use kernel::{
    Address, Denied, EndWhy, Fresh, Principal, Scope, SessionId, agent_grant_of, authorize_new, is_under,
};
use store::NewSession;

impl Engine {
    /// A session that cannot be made any more may have been made before, by this very wish. The store looks the key up
    /// before anything else, and makes nothing where none may be open: then the refusal is the answer.
    pub(super) async fn new_or_made_before(
        &self,
        by: &Principal,
        if_new: &IfNew,
        bind: Option<Address>,
        previous: Option<(SessionId, EndWhy)>,
        trace: &Trace,
    ) -> Result<(NewSession, Option<Refused>), Refused> {
        match self.new_session(by, if_new, bind.clone(), previous).await {
            Ok(session) => Ok((session, None)),
            Err(refused @ (Refused::UnknownAgent { .. } | Refused::BadDirectory { .. }))
                if trace.key.is_some() =>
            {
                let (directory, agent) = (String::new(), String::new());
                let scope = Scope { directory, agent, model: None, mode: None, worktree: None };
                let (session, open_max, org_open_max) = (self.mint_session(), 0, 0);
                let (title, previous, origin, enter) = (None, None, None, None);
                let never = NewSession {
                    session,
                    scope,
                    origin,
                    enter,
                    title,
                    bind,
                    previous,
                    open_max,
                    org_open_max,
                };
                Ok((never, Some(refused)))
            }
            Err(refused) => Err(refused),
        }
    }

    async fn new_session(
        &self,
        by: &Principal,
        if_new: &IfNew,
        bind: Option<Address>,
        previous: Option<(SessionId, EndWhy)>,
    ) -> Result<NewSession, Refused> {
        let agent = self.agent_for(by, if_new.agent.as_deref(), bind.as_ref())?;
        check_if_new(if_new)?;
        let session = self.mint_session();
        let directory = match &if_new.directory {
            Some(directory) => self.directory_for(by, directory)?,
            None => self.ground().own(session),
        };
        let (model, mode, worktree) = (if_new.model.clone(), if_new.mode.clone(), None);
        let scope = Scope { directory, agent, model, mode, worktree };
        let (title, open_max) = (if_new.title.clone(), self.limits().open_max);
        let org_open_max = self.org_open_max(by).await?;
        let (origin, enter) = (None, if_new.worktree.clone());
        enter.as_ref().map_or(Ok(()), check_worktree)?;
        Ok(NewSession { session, scope, origin, enter, title, bind, previous, open_max, org_open_max })
    }

    /// The agent of a new session. One that the caller may not see is called unknown, like any that is not there.
    pub(super) fn agent_for(
        &self,
        by: &Principal,
        named: Option<&str>,
        bind: Option<&Address>,
    ) -> Result<String, Refused> {
        let agent = named.unwrap_or(self.default_agent());
        let fresh = Fresh { address: bind, agent, directory: None };
        let seen = self.agents_by_name().contains_key(agent) && agent_grant_of(by, agent).is_some();
        match authorize_new(by, fresh, ()) {
            // What it is called is not told to whom it is not shown.
            Err(Denied::AgentNotYours) if !seen && named.is_none() => Err(Refused::AgentNotYours),
            Ok(_) | Err(Denied::AgentNotYours) if !seen => {
                Err(Refused::UnknownAgent { name: agent.to_owned(), known: self.agents_seen_by(by) })
            }
            Ok(_) => Ok(agent.to_owned()),
            Err(denied) => Err(Refused::denied(denied, "session")),
        }
    }

    /// The names of the agents that there are for them.
    pub(crate) fn agents_seen_by(&self, by: &Principal) -> Vec<String> {
        let seen = self.agents_by_name().keys().filter(|name| agent_grant_of(by, name).is_some());
        seen.cloned().collect()
    }

    /// The canonical form of a directory that was chosen. Outside of what the caller may choose, nothing is said of what is
    /// there.
    pub(super) fn directory_for(&self, by: &Principal, directory: &str) -> Result<String, Refused> {
        // A relative one is refused as such, before anybody looks.
        let (relative, roundabout) =
            (!directory.starts_with('/'), directory.split('/').any(|part| part == ".."));
        let near = relative || !roundabout && by.roots.iter().any(|root| is_under(directory, root));
        self.ground().check(directory).map_err(|why| {
            if near { Refused::BadDirectory { reason: why.into() } } else { Refused::DirectoryNotYours }
        })
    }

    /// How many sessions the caller's org may have open.
    pub(super) async fn org_open_max(&self, by: &Principal) -> Result<u32, Refused> {
        let most = self.limits().org_open_max;
        Ok(self.settings_of(by.org).await?.open_max.map_or(most, |wanted| wanted.min(most)))
    }
}

/// What was asked for of a session that may be made.
fn check_if_new(if_new: &IfNew) -> Result<(), Refused> {
    check_title(if_new.title.as_deref())?;
    for (field, name) in [("model", &if_new.model), ("mode", &if_new.mode)] {
        if name.as_ref().is_some_and(|name| name.is_empty() || name.len() > MODEL_BYTES_MAX) {
            let reason = format!("must have 1 to {MODEL_BYTES_MAX} bytes");
            return Err(Refused::Invalid { field, reason });
        }
    }
    Ok(())
}

pub(super) fn check_title(title: Option<&str>) -> Result<(), Refused> {
    if title.is_some_and(|title| title.len() > TITLE_BYTES_MAX) {
        let reason = format!("longer than {TITLE_BYTES_MAX} bytes");
        return Err(Refused::Invalid { field: "title", reason });
    }
    Ok(())
}

/// The directory that somebody chose, canonical. What a session gets for itself nobody has chosen.
pub(super) fn chosen_directory(if_new: &IfNew, session: &NewSession) -> Option<String> {
    let chosen = if_new.directory.is_some() && !session.scope.directory.is_empty();
    chosen.then(|| session.scope.directory.clone())
}
