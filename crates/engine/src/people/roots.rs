//! The directories that may be chosen for sessions, and by whom.

use super::change::may;
use crate::{BadDirectory, People, PeopleError, Trace};
use kernel::{OrgAct, Principal};
use store::{PeopleChange, RootRow, grantee_text};

impl People {
    /// Every directory of the org that may be chosen.
    pub async fn roots(&self, by: &Principal) -> Result<Vec<RootRow>, PeopleError> {
        may(by, OrgAct::Rules)?;
        Ok(self.ports.store.roots(by.org).await?)
    }

    /// Lets a directory and what is under it be chosen; answers its canonical form.
    pub async fn add_root(
        &self,
        by: &Principal,
        root: RootRow,
        trace: Trace,
    ) -> Result<RootRow, PeopleError> {
        let (to, subject) = (root.to, Some(root.directory.clone()));
        let may = may(by, OrgAct::Rules).map_err(PeopleError::from);
        let checked = may.and_then(|()| {
            let directory = self.ground.check(&root.directory);
            directory.map_err(|why| BadDirectory { reason: why.into() }.into())
        });
        let directory = self.note_refusal(by, "add_root", &trace, subject, checked).await?;
        let root = RootRow { directory: directory.for_readers().to_owned(), to };
        let body = (&root.directory, grantee_text(to));
        self.change(by, PeopleChange::AddRoot(root.clone()), body, &trace).await?;
        Ok(root)
    }

    /// Lets it be chosen by them no more. Named as it is listed: the directory itself may be gone.
    pub async fn remove_root(&self, by: &Principal, root: RootRow, trace: Trace) -> Result<(), PeopleError> {
        let body = (root.directory.clone(), grantee_text(root.to));
        self.change(by, PeopleChange::RemoveRoot(root), body, &trace).await.map(drop)
    }
}
