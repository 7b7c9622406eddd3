//! Orgs of this machine, and what each decides for itself.

use super::change::may;
use super::{AddPerson, LinkSecret, check_handle};
use crate::{AccessError, InvalidError, People, PeopleError, Trace};
use kernel::{OrgAct, OrgId, PersonId, Principal, Role};
use store::{NewOrg, OrgRow, OrgSettings, PeopleChange};

/// An org to be made, and who owns it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MakeOrg {
    /// Its name in `ORG/NAME`.
    pub name: String,
    /// The owner's handle.
    pub handle: String,
    pub owner_name: Option<String>,
    pub email: Option<String>,
}

impl People {
    /// The orgs of this machine; for the machine's person.
    pub async fn orgs(&self, by: &Principal) -> Result<Vec<OrgRow>, PeopleError> {
        may(by, OrgAct::MakeOrg)?;
        Ok(self.ports.store.orgs().await?)
    }

    /// The caller's own.
    pub async fn org(&self, by: &Principal) -> Result<OrgRow, PeopleError> {
        may(by, OrgAct::SeePeople)?;
        self.ports.store.org(by.org).await?.ok_or(AccessError::NotFound { what: "org" }.into())
    }

    /// Makes one, with its owner (whose id is answered) and the link by which they come in: it is shown once.
    pub async fn make_org(
        &self,
        by: &Principal,
        make: MakeOrg,
        trace: Trace,
    ) -> Result<(OrgRow, PersonId, LinkSecret), PeopleError> {
        let may = may(by, OrgAct::MakeOrg).map_err(PeopleError::from);
        let checked = may.and_then(|()| Ok(self.new_org(make)?));
        let org = self.note_refusal(by, "make_org", &trace, None, checked).await?;
        let body = (org.name.clone(), org.owner.handle.clone());
        let (id, person) = (org.org, org.owner.person);
        let (wall, (secret, link)) = (self.wall_now().await, self.new_invite());
        let change = PeopleChange::MakeOrg { org, link, walled: wall.is_proved() };
        let made = wall.tell(self.change(by, change, body, &trace).await)?.only_now();
        self.note_refusal(by, "make_org", &trace, None, made).await?;
        let row = self.ports.store.org(id).await?.ok_or(AccessError::NotFound { what: "org" })?;
        Ok((row, person, self.as_made(by, secret).await?))
    }

    fn new_org(&self, make: MakeOrg) -> Result<NewOrg, InvalidError> {
        check_handle("name", &make.name)?;
        let MakeOrg { name, handle, owner_name, email } = make;
        let owner = self.new_person(AddPerson { handle, name: owner_name, email, role: Role::Owner })?;
        Ok(NewOrg { org: OrgId::from_bits(self.ports.mint_bits()), name, owner, roots: Vec::new() })
    }

    /// Changes what the org decides for itself.
    pub async fn settings(
        &self,
        by: &Principal,
        settings: OrgSettings,
        trace: Trace,
    ) -> Result<OrgRow, PeopleError> {
        self.change(by, PeopleChange::Settings(settings), format!("{settings:?}"), &trace).await?;
        self.ports.store.org(by.org).await?.ok_or(AccessError::NotFound { what: "org" }.into())
    }
}
