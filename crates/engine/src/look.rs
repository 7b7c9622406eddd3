//! Looks: what is only looked up outside. An agent's commands and models, the files of the directory, what a turn changed.
//!
//! A look is a call, taken by the node that has the directory, that ends when its caller goes away. It carries the epoch under
//! which it was asked. What it finds goes through the session's keeper before anybody gets it: if the scope has changed
//! meanwhile, that is recorded, and nobody gets it.

use crate::engine_ports::EnginePorts;
use crate::ground_rights::is_on_ground;
use crate::intake::directory_for;
use crate::{
    AccessError, BadDirectory, PatchPlace, TreeChanges, TreeFiles, TreePatch, TreesError, UnavailableError,
    UndoPreview, ViewError, Views,
};
use agent::Choice;
use kernel::{
    Epoch, Errand, ErrandKind, Fresh, GroundPath, Principal, Return, Scope, SessionId, Turn, authorize_new,
};
use std::collections::BTreeSet;
use store::StoreError;

/// The times a result is brought to a keeper before we give up: each further time means that one has died.
const BRING_MAX: usize = 3;

/// Files of a directory that are told at once.
pub const FILES_MAX: usize = 10_000;

/// Directories that are told at once.
const DIRECTORIES_MAX: usize = 1_000;

/// The things that can be looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// The agent's slash commands.
    Commands,
    /// The agent's models.
    Models,
    /// The files of the directory.
    Files,
    /// The changes from before one turn to after another, or the same.
    Diff { first: Turn, last: Turn },
}

/// The result of a lookup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LookResult {
    /// The agent's commands, as far as it has listed them in this scope.
    Commands(Option<Vec<Choice>>),
    /// The agent's models, as far as it has listed them in this scope.
    Models(Option<Vec<Choice>>),
    /// The files of the directory.
    Files(TreeFiles),
    /// The changes; none if the directory was not under version control then.
    Diff(Option<TreeChanges>),
}

impl LookResult {
    fn is_there(&self) -> bool {
        match self {
            Self::Commands(list) | Self::Models(list) => list.is_some(),
            Self::Diff(changes) => changes.is_some(),
            Self::Files(_) => true,
        }
    }
}

impl Views {
    /// Looks something up for somebody who may read the session.
    pub async fn look(
        &self,
        by: &Principal,
        session: SessionId,
        look: Look,
    ) -> Result<LookResult, ViewError> {
        let kind = match look {
            Look::Commands => ErrandKind::Commands,
            Look::Models => ErrandKind::Models,
            Look::Files => ErrandKind::Files,
            Look::Diff { .. } => ErrandKind::Diff,
        };
        if look == Look::Files {
            self.stands(by, session).await?;
        }
        let views = self.clone();
        let work = move |scope: Scope, errand: Errand| async move {
            match look {
                Look::Commands => {
                    let listed = views.roster.listing(session, errand.epoch, |lists| lists.commands).await;
                    Ok(LookResult::Commands(listed))
                }
                Look::Models => {
                    let listed = views.roster.listing(session, errand.epoch, |lists| lists.models).await;
                    Ok(LookResult::Models(listed))
                }
                Look::Files => {
                    let node = views.ports.cluster.node_of(session);
                    node.files(scope.directory, session, FILES_MAX).await.map(LookResult::Files)
                }
                Look::Diff { first, last } => {
                    let node = views.ports.cluster.node_of(session);
                    node.changes(scope.directory, session, first, last).await.map(LookResult::Diff)
                }
            }
        };
        // A list that the agent has not given yet is nothing that was learned of it.
        self.look_for(by, session, kind, work, LookResult::is_there).await
    }

    /// A piece of the patch of one file, from before one turn to after another, or the same; none if the directory was not under
    /// version control then.
    pub async fn file_changes(
        &self,
        by: &Principal,
        session: SessionId,
        turns: (Turn, Turn),
        place: PatchPlace,
    ) -> Result<Option<TreePatch>, ViewError> {
        let node = self.ports.cluster.node_of(session);
        let work = move |scope: Scope, _| async move {
            node.file_changes(scope.directory, session, turns, place).await
        };
        self.look_for(by, session, ErrandKind::Diff, work, Option::is_some).await
    }

    /// The directories in one that the caller may choose for a session, by their names; without one, those that they may choose and
    /// everything under them. Of others nothing is said, not even whether they are there.
    pub async fn directories(&self, by: &Principal, of: Option<&str>) -> Result<TreeFiles, ViewError> {
        // Which agent it is to be is asked when it is made.
        let fresh = |directory| Fresh { address: None, agent: "", directory };
        let denied = |denied| AccessError::denied(denied, "directory");
        authorize_new(by, fresh(None), ()).map_err(denied)?;
        let Some(directory) = of else {
            let paths: BTreeSet<String> = by.roots.iter().cloned().collect();
            return Ok(TreeFiles { paths: paths.into_iter().collect(), is_cut: false });
        };
        let directory: GroundPath = directory_for::<ViewError>(self.ground.as_ref(), by, directory)?;
        authorize_new(by, fresh(Some(&directory)), ()).map_err(denied)?;
        self.ports.may_look_at_ground(by.person, by.person)?;
        let node = self.ports.cluster.node_of(SessionId::from_bits(by.person.bits()));
        match node.directories(directory, by.person, DIRECTORIES_MAX).await {
            Ok(found) => Ok(found),
            Err(TreesError::Refused(reason)) => Err(BadDirectory { reason }.into()),
            Err(TreesError::Moved(why)) => Err(BadDirectory { reason: why.into() }.into()),
            Err(why) => Err(UnavailableError::Unavailable(why.to_string()).into()),
        }
    }

    /// The work of an undo of this turn, and what is in its way. Nothing is changed.
    pub async fn preview_undo(
        &self,
        by: &Principal,
        session: SessionId,
        turn: Turn,
    ) -> Result<UndoPreview, ViewError> {
        let (_, row) = self.seen(by, session).await?;
        let of: Epoch = self.ports.epoch_for_undo::<ViewError>(session, turn, None).await?;
        if of != row.epoch {
            return Err(ViewError::OtherScope);
        }
        let node = self.ports.cluster.node_of(session);
        let work =
            move |scope: Scope, _| async move { node.preview_undo(scope.directory, session, turn).await };
        self.look_for(by, session, ErrandKind::Diff, work, |_| true).await
    }

    /// A directory that is not there, or something else by now, is no emergency: whoever asks is told how to mend it.
    async fn stands(&self, by: &Principal, session: SessionId) -> Result<(), ViewError> {
        let (_, row) = self.seen(by, session).await?;
        let stands = self.ground.look(&row.scope.directory);
        stands.map_err(|why| BadDirectory { reason: why.into() }.into())
    }

    /// Looks something up in a way of the caller's own: `work` is given the scope of now, and what it finds is given back
    /// only if the session is still in it.
    pub async fn look_with<T, Found: Future<Output = Result<T, String>>>(
        &self,
        by: &Principal,
        session: SessionId,
        kind: ErrandKind,
        work: impl FnOnce(Scope, Errand) -> Found,
    ) -> Result<T, ViewError> {
        self.look_for(by, session, kind, work, |_| true).await
    }

    async fn look_for<T, Found: Future<Output = Result<T, String>>>(
        &self,
        by: &Principal,
        session: SessionId,
        kind: ErrandKind,
        work: impl FnOnce(Scope, Errand) -> Found,
        is_there: impl FnOnce(&T) -> bool,
    ) -> Result<T, ViewError> {
        let (record, row) = self.seen(by, session).await?;
        if is_on_ground(kind) {
            self.ports.may_look_at_ground(by.person, record.owner)?;
        }
        let errand = Errand { epoch: row.epoch, number: 0 };
        let found = work(row.scope, errand).await;
        let came = if found.as_ref().is_ok_and(is_there) { Return::Seen(kind) } else { Return::Failed(kind) };
        if !self.ports.still_counts(session, errand, came).await? {
            return Err(ViewError::Stale);
        }
        // It may have taken a while, and whoever asked may have lost the right to know meanwhile.
        self.rights_cache.may_still_read(by, session).await?;
        found.map_err(|why| UnavailableError::Unavailable(why).into())
    }
}

impl EnginePorts {
    /// A keeper that has nothing to write does not notice that it was replaced: what it says is compared with what is stored.
    async fn is_still_under(&self, session: SessionId, epoch: Epoch) -> Result<bool, StoreError> {
        Ok(self.epoch_of(session).await? == Some(epoch))
    }

    /// Checks that the session is still in the scope that this was seen in. If not, that is recorded.
    pub(crate) async fn still_counts(
        &self,
        session: SessionId,
        errand: Errand,
        came: Return,
    ) -> Result<bool, UnavailableError> {
        for _ in 0..BRING_MAX {
            match self.cluster.node_of(session).confirm(session, errand, came.clone()).await {
                Some(true) if self.is_still_under(session, errand.epoch).await? => return Ok(true),
                Some(true) => {} // Another node keeps it by now.
                Some(false) => return Ok(false),
                None => {} // That keeper has died, or was about to go.
            }
        }
        Err(UnavailableError::Unavailable("nobody keeps this session just now; ask again".to_owned()))
    }
}
