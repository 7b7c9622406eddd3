//! Orgs of this machine, and what each decides for itself.

use super::{AddPerson, LinkSecret, check_handle};
use crate::{Engine, Refused, Trace};
use kernel::{OrgAct, OrgId, PersonId, Principal, Role};
use store::{Change, NewOrg, OrgRow, OrgSettings};

/// An org to be made, and who owns it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MakeOrg {
    /// How it is called in `ORG/NAME`.
    pub name: String,
    /// The owner's handle.
    pub handle: String,
    pub owner_name: Option<String>,
    pub email: Option<String>,
}

impl Engine {
    /// The orgs of this machine; for the machine's person.
    pub async fn orgs(&self, by: &Principal) -> Result<Vec<OrgRow>, Refused> {
        self.may(by, OrgAct::MakeOrg)?;
        Ok(self.store().orgs().await?)
    }

    /// The caller's own.
    pub async fn org(&self, by: &Principal) -> Result<OrgRow, Refused> {
        self.may(by, OrgAct::SeePeople)?;
        self.store().org(by.org).await?.ok_or(Refused::NotFound { what: "org" })
    }

    /// Makes one, with its owner (whose id is answered) and the link by which they come in: it is shown once.
    pub async fn make_org(
        &self,
        by: &Principal,
        make: MakeOrg,
        trace: Trace,
    ) -> Result<(OrgRow, PersonId, LinkSecret), Refused> {
        let result = self.make_org_now(by, make, &trace).await;
        self.note_refusal(by, "make_org", &trace, None, result).await
    }

    async fn make_org_now(
        &self,
        by: &Principal,
        make: MakeOrg,
        trace: &Trace,
    ) -> Result<(OrgRow, PersonId, LinkSecret), Refused> {
        self.may(by, OrgAct::MakeOrg)?;
        check_handle("name", &make.name)?;
        let MakeOrg { name, handle, owner_name, email } = make;
        let owner = self.new_person(AddPerson { handle, name: owner_name, email, role: Role::Owner })?;
        self.prove_wall().await?;
        let body = (name.clone(), owner.handle.clone());
        let (org, person) = (OrgId::from_bits(self.mint_bits()), owner.person);
        let (secret, link) = self.new_invite();
        let new = NewOrg { org, name, owner, roots: Vec::new() };
        self.change_now(by, Change::MakeOrg { org: new, link }, body, trace).await?.only_now()?;
        let row = self.store().org(org).await?.ok_or(Refused::NotFound { what: "org" })?;
        Ok((row, person, secret))
    }

    /// Changes what the org decides for itself.
    pub async fn settings(
        &self,
        by: &Principal,
        settings: OrgSettings,
        trace: Trace,
    ) -> Result<OrgRow, Refused> {
        self.change(by, Change::Settings(settings), format!("{settings:?}"), trace).await?;
        self.store().org(by.org).await?.ok_or(Refused::NotFound { what: "org" })
    }
}
