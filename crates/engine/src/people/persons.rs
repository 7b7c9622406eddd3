//! People of an org: who they are, who is let in, and who no longer.

use super::{LinkSecret, check_handle, check_name, email_of};
use crate::{Engine, Refused, Trace};
use kernel::{Act, OrgAct, PersonId, Principal, Role, authorize_right};
use store::{Change, NewPerson, OrgRow, PersonRow};

/// Somebody to be let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddPerson {
    /// How they are called in addresses.
    pub handle: String,
    pub name: Option<String>,
    pub email: Option<String>,
    pub role: Role,
}

/// What of somebody is to be otherwise. What is none stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PersonChange {
    pub name: Option<String>,
    pub email: Option<String>,
    pub role: Option<Role>,
}

/// Who is asking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeView {
    pub person: PersonRow,
    pub org: OrgRow,
    /// With what the credential is good for.
    pub principal: Principal,
}

impl Engine {
    /// Who is asking, and what they may do.
    pub async fn me(&self, by: &Principal) -> Result<MeView, Refused> {
        authorize_right(by, Act::Read).map_err(|denied| Refused::denied(denied, "person"))?;
        self.myself(by).await
    }

    /// The stored rows of whoever asks.
    pub(super) async fn myself(&self, by: &Principal) -> Result<MeView, Refused> {
        let person = self.store().person(by.org, by.person).await?.ok_or(Refused::Unauthenticated)?;
        let org = self.store().org(by.org).await?.ok_or(Refused::Unauthenticated)?;
        Ok(MeView { person, org, principal: by.clone() })
    }

    /// A page of the org's people, in order of their handles.
    pub async fn people(
        &self,
        by: &Principal,
        after: Option<String>,
        limit: usize,
    ) -> Result<Vec<PersonRow>, Refused> {
        self.may(by, OrgAct::SeePeople)?;
        let rows = self.store().people(by.org, after, limit).await?;
        Ok(rows.into_iter().map(|row| as_seen(by, row)).collect())
    }

    /// One of the org's people.
    pub async fn person(&self, by: &Principal, person: PersonId) -> Result<PersonRow, Refused> {
        self.may(by, OrgAct::SeePeople)?;
        let row = self.store().person(by.org, person).await?;
        row.map(|row| as_seen(by, row)).ok_or(Refused::NotFound { what: "person" })
    }

    /// One of the org's people, by their handle; for admins by their e-mail address, too.
    pub async fn person_named(&self, by: &Principal, name: &str) -> Result<PersonRow, Refused> {
        self.may(by, OrgAct::SeePeople)?;
        let row = self.store().person_named(by.org, name.to_owned()).await?;
        let row = row.filter(|row| row.handle == name || sees_all_of(by, row));
        row.map(|row| as_seen(by, row)).ok_or(Refused::NotFound { what: "person" })
    }

    /// Lets somebody in, by the link that comes with it: it is shown once. Refused while agents are not walled off.
    pub async fn add_person(
        &self,
        by: &Principal,
        add: AddPerson,
        trace: Trace,
    ) -> Result<(PersonRow, LinkSecret), Refused> {
        let result = self.add_person_now(by, add, &trace).await;
        self.note_refusal(by, "add_person", &trace, None, result).await
    }

    async fn add_person_now(
        &self,
        by: &Principal,
        add: AddPerson,
        trace: &Trace,
    ) -> Result<(PersonRow, LinkSecret), Refused> {
        self.may(by, OrgAct::Person { role: Role::Viewer, becomes: Some(add.role) })?;
        let person = self.new_person(add)?;
        self.prove_wall().await?;
        let (id, body) = (person.person, format!("{} {:?}", person.handle, person.role));
        let (secret, link) = self.new_invite();
        let change = Change::AddPerson { person, link };
        self.change_now(by, change, body, trace).await?.only_now()?;
        let row = self.store().person(by.org, id).await?.ok_or(Refused::NotFound { what: "person" })?;
        Ok((row, secret))
    }

    pub(super) fn new_person(&self, add: AddPerson) -> Result<NewPerson, Refused> {
        check_handle("handle", &add.handle)?;
        add.name.iter().try_for_each(|name| check_name("name", name))?;
        let email = add.email.as_deref().map(email_of).transpose()?;
        let person = PersonId::from_bits(self.mint_bits());
        Ok(NewPerson { person, handle: add.handle, name: add.name, email, role: add.role })
    }

    /// Nobody else is let in while agents can read what is not theirs.
    pub(super) async fn prove_wall(&self) -> Result<(), Refused> {
        if self.trusts_everyone() {
            return Ok(());
        }
        let proof = self.wall().prove().await;
        if proof.proved { Ok(()) } else { Err(Refused::WallNotProved { findings: proof.findings }) }
    }

    /// Whether agents are kept from what is not theirs, tried out now.
    pub async fn wall_proof(&self, by: &Principal) -> Result<crate::Proof, Refused> {
        self.may(by, OrgAct::Rules)?;
        Ok(self.wall().prove().await)
    }

    /// Changes what somebody is called, or what they are in the org. Their own name anybody may change.
    pub async fn change_person(
        &self,
        by: &Principal,
        person: PersonId,
        to: PersonChange,
        trace: Trace,
    ) -> Result<PersonRow, Refused> {
        let checked = to.name.iter().try_for_each(|name| check_name("name", name));
        let email = checked.and_then(|()| to.email.as_deref().map(email_of).transpose());
        let subject = Some(person.to_string());
        let email = self.note_refusal(by, "change_person", &trace, subject, email).await?;
        let body = (person.to_string(), &to.name, &email, to.role.map(|role| format!("{role:?}")));
        let (name, role, was) = (to.name.clone(), to.role, Role::Viewer);
        let change = Change::ChangePerson { person, was, name, email: email.clone(), role };
        self.change(by, change, body, trace).await?;
        let row = self.store().person(by.org, person).await?;
        row.map(|row| as_seen(by, row)).ok_or(Refused::NotFound { what: "person" })
    }

    /// From now on they may do nothing: what waits of them is refused, and what runs is stopped.
    pub async fn disable(&self, by: &Principal, person: PersonId, trace: Trace) -> Result<(), Refused> {
        let change = Change::Disable { person, was: Role::Viewer };
        self.change(by, change, person.to_string(), trace).await.map(drop)
    }

    /// Lets them come in again. Their credentials and links are gone: they need a new link.
    pub async fn enable(&self, by: &Principal, person: PersonId, trace: Trace) -> Result<(), Refused> {
        let result = self.enable_now(by, person, &trace).await;
        self.note_refusal(by, "enable", &trace, Some(person.to_string()), result).await
    }

    async fn enable_now(&self, by: &Principal, person: PersonId, trace: &Trace) -> Result<(), Refused> {
        let row = self.person_of(by, person).await?;
        self.may(by, OrgAct::Person { role: row.role, becomes: None })?;
        self.prove_wall().await?;
        let change = Change::Enable { person, was: Role::Viewer };
        self.change_now(by, change, person.to_string(), trace).await.map(drop)
    }
}

fn sees_all_of(by: &Principal, row: &PersonRow) -> bool {
    by.role >= Role::Admin || row.person == by.person
}

/// People of one org see each other's names, and whether they are still here. The rest is for them and their admins.
fn as_seen(by: &Principal, row: PersonRow) -> PersonRow {
    if sees_all_of(by, &row) {
        return row;
    }
    PersonRow { email: None, has_password: false, is_host: false, ..row }
}
