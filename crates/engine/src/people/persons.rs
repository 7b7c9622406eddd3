//! People of an org: who they are, who is let in, and who no longer.

use super::change::may;
use super::{LinkSecret, check_handle, check_name, email_of};
use crate::{AccessError, InvalidError, People, PeopleError, Trace};
use kernel::{Act, OrgAct, PersonId, Principal, Role, authorize_right};
use store::{DiskUse, NewPerson, OrgRow, PeopleChange, PersonRow};

/// Somebody to be let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddPerson {
    /// Their name in addresses.
    pub handle: String,
    pub name: Option<String>,
    pub email: Option<String>,
    pub role: Role,
}

/// A change of somebody. A field that is none stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PersonChange {
    pub name: Option<String>,
    pub email: Option<String>,
    pub role: Option<Role>,
}

/// The person who is asking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeView {
    pub person: PersonRow,
    pub org: OrgRow,
    /// With what the credential is good for.
    pub principal: Principal,
}

/// The room that somebody's sessions take on the disk, and the bounds on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskView {
    pub words_bytes: u64,
    pub words_bytes_max: u64,
    pub worktree_bytes: u64,
    pub worktree_bytes_max: u64,
    pub snapshot_bytes: u64,
    pub snapshot_bytes_max: u64,
}

impl People {
    /// The person who is asking, and their rights.
    pub async fn me(&self, by: &Principal) -> Result<MeView, PeopleError> {
        authorize_right(by, Act::Read).map_err(|denied| AccessError::denied(denied, "person"))?;
        self.myself(by).await
    }

    /// The room that the sessions of whoever asks take on the disk, and the bounds on it.
    pub async fn disk_use(&self, by: &Principal) -> Result<DiskView, PeopleError> {
        authorize_right(by, Act::Read).map_err(|denied| AccessError::denied(denied, "person"))?;
        let DiskUse { words_bytes } = self.ports.store.disk_use(by.org, by.person).await?;
        Ok(DiskView {
            words_bytes,
            words_bytes_max: self.ports.limits.words_bytes_per_person_max,
            worktree_bytes: self.ports.tree_bytes_of(by.org, by.person).await?,
            worktree_bytes_max: self.ports.limits.worktree_bytes_per_person_max,
            snapshot_bytes: self.ports.snapshot_bytes_of(by.org, by.person).await?,
            snapshot_bytes_max: self.ports.limits.snapshot_bytes_per_person_max,
        })
    }

    /// The stored rows of whoever asks.
    pub(super) async fn myself(&self, by: &Principal) -> Result<MeView, PeopleError> {
        let person = self.ports.store.person(by.org, by.person).await?.ok_or(AccessError::Unauthenticated)?;
        let org = self.ports.store.org(by.org).await?.ok_or(AccessError::Unauthenticated)?;
        Ok(MeView { person, org, principal: by.clone() })
    }

    /// A page of the org's people, in order of their handles.
    pub async fn people(
        &self,
        by: &Principal,
        after: Option<String>,
        limit: usize,
    ) -> Result<Vec<PersonRow>, PeopleError> {
        may(by, OrgAct::SeePeople)?;
        let rows = self.ports.store.people(by.org, after, limit).await?;
        Ok(rows.into_iter().map(|row| as_seen(by, row)).collect())
    }

    /// One of the org's people.
    pub async fn person(&self, by: &Principal, person: PersonId) -> Result<PersonRow, PeopleError> {
        may(by, OrgAct::SeePeople)?;
        let row = self.ports.store.person(by.org, person).await?;
        row.map(|row| as_seen(by, row)).ok_or(AccessError::NotFound { what: "person" }.into())
    }

    /// One of the org's people, by their handle; for admins by their e-mail address, too.
    pub async fn person_named(&self, by: &Principal, name: &str) -> Result<PersonRow, PeopleError> {
        may(by, OrgAct::SeePeople)?;
        let row = self.ports.store.person_named(by.org, name.to_owned()).await?;
        let row = row.filter(|row| row.handle == name || sees_all_of(by, row));
        row.map(|row| as_seen(by, row)).ok_or(AccessError::NotFound { what: "person" }.into())
    }

    /// Lets somebody in, by the link that comes with it: it is shown once. Refused while agents are not walled off.
    pub async fn add_person(
        &self,
        by: &Principal,
        add: AddPerson,
        trace: Trace,
    ) -> Result<(PersonRow, LinkSecret), PeopleError> {
        let may = may(by, OrgAct::Person { role: Role::Viewer, becomes: Some(add.role) });
        let person = may.map_err(PeopleError::from).and_then(|()| Ok(self.new_person(add)?));
        let person = self.note_refusal(by, "add_person", &trace, None, person).await?;
        let (id, body) = (person.person, format!("{} {:?}", person.handle, person.role));
        let (wall, (secret, link)) = (self.wall_now().await, self.new_invite());
        let change =
            PeopleChange::AddPerson { person, or_handles: Vec::new(), link, walled: wall.is_proved() };
        let added = wall.tell(self.change(by, change, body, &trace).await)?.only_now();
        self.note_refusal(by, "add_person", &trace, None, added).await?;
        let row =
            self.ports.store.person(by.org, id).await?.ok_or(AccessError::NotFound { what: "person" })?;
        Ok((row, self.as_made(by, secret).await?))
    }

    pub(super) fn new_person(&self, add: AddPerson) -> Result<NewPerson, InvalidError> {
        check_handle("handle", &add.handle)?;
        add.name.iter().try_for_each(|name| check_name("name", name))?;
        let email = add.email.as_deref().map(email_of).transpose()?;
        let person = PersonId::from_bits(self.ports.mint_bits());
        Ok(NewPerson { person, handle: add.handle, name: add.name, email, role: add.role })
    }

    /// Nobody else is let in while agents can read what is not theirs: that is tried out before.
    pub(super) async fn wall_now(&self) -> WallNow {
        if self.rights_cache.trusts_everyone() {
            return WallNow(None);
        }
        let proof = self.wall.prove().await;
        WallNow((!proof.proved).then_some(proof.findings))
    }

    /// The proof that agents are kept from what is not theirs, tried out now.
    pub async fn wall_proof(&self, by: &Principal) -> Result<crate::Proof, PeopleError> {
        may(by, OrgAct::Rules)?;
        Ok(self.wall.prove().await)
    }

    /// Changes what somebody is called, or what they are in the org. Their own name anybody may change.
    pub async fn change_person(
        &self,
        by: &Principal,
        person: PersonId,
        to: PersonChange,
        trace: Trace,
    ) -> Result<PersonRow, PeopleError> {
        let checked = to.name.iter().try_for_each(|name| check_name("name", name));
        let email = checked.and_then(|()| to.email.as_deref().map(email_of).transpose());
        let subject = Some(person.to_string());
        let email = self.note_refusal(by, "change_person", &trace, subject, email).await?;
        let body = (person.to_string(), &to.name, &email, to.role.map(|role| format!("{role:?}")));
        let (name, role) = (to.name.clone(), to.role);
        let change = PeopleChange::ChangePerson { person, name, email: email.clone(), role };
        self.change(by, change, body, &trace).await?;
        let row = self.ports.store.person(by.org, person).await?;
        row.map(|row| as_seen(by, row)).ok_or(AccessError::NotFound { what: "person" }.into())
    }

    /// From now on they may do nothing: what waits of them is refused, and what runs is stopped.
    pub async fn disable(&self, by: &Principal, person: PersonId, trace: Trace) -> Result<(), PeopleError> {
        let change = PeopleChange::Disable { person };
        self.change(by, change, person.to_string(), &trace).await.map(drop)
    }

    /// Lets them come in again. Their credentials and links are gone: they need a new link.
    pub async fn enable(&self, by: &Principal, person: PersonId, trace: Trace) -> Result<(), PeopleError> {
        let enable = |walled| PeopleChange::Enable { person, walled };
        // Whoever could not does not make us try the wall.
        let may = self.may_ask(by, &enable(true));
        self.note_refusal(by, "enable", &trace, Some(person.to_string()), may).await?;
        let wall = self.wall_now().await;
        let changed = self.change(by, enable(wall.is_proved()), person.to_string(), &trace).await;
        wall.tell(changed).map(drop)
    }
}

/// The findings when it was tried whether agents are walled off: none if they are.
pub(super) struct WallNow(Option<Vec<String>>);

impl WallNow {
    pub(super) fn is_proved(&self) -> bool {
        self.0.is_none()
    }

    /// A refusal for it says what was found.
    pub(super) fn tell<T>(self, result: Result<T, PeopleError>) -> Result<T, PeopleError> {
        result.map_err(|refused| match refused {
            PeopleError::WallNotProved { .. } => {
                PeopleError::WallNotProved { findings: self.0.unwrap_or_default() }
            }
            refused => refused,
        })
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
