//! Signing in because an identity provider vouches for somebody.
//!
//! They are known by the provider's own name for them, and by nothing else. Whoever has none yet is found once, by an
//! e-mail address that the provider has checked, or is let in as somebody new if the machine's person wants it so; from
//! then on that name is theirs. An address that goes to somebody else later opens nothing: who has a name at the provider
//! is not found by an address any more.

use super::RESOLVE_MAX;
use super::{SignInFor, Signed, check_handle};
use crate::{AddPerson, ConflictError, People, PeopleError, Trace};
use kernel::{OrgId, PersonId, Principal, Role};
use store::{NewLink, OrgRow, PeopleChange, StoreError};

/// The number of handles that are tried for somebody new.
const HANDLES_MAX: usize = 20;
/// The rest of a handle before a number is put behind it.
const STEM_MAX: usize = 40;

/// Somebody for whom an identity provider vouches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vouched {
    pub issuer: String,
    /// The provider's own name for them, which never changes.
    pub subject: String,
    /// Only if the provider has checked that it is theirs.
    pub email: Option<String>,
    pub name: Option<String>,
    /// The name they would like to have in addresses.
    pub nickname: Option<String>,
    /// The org that they belong to, by its name; none is the first one of the machine.
    pub org: Option<String>,
    /// Their role if they are new; none lets in nobody who was not invited.
    pub create: Option<Role>,
}

impl People {
    /// Lets somebody in for whom an identity provider vouches.
    pub async fn sign_in_by_identity(
        &self,
        vouched: &Vouched,
        at: SignInFor,
        trace: Trace,
    ) -> Result<Signed, PeopleError> {
        let Some(org) = self.org_of(vouched).await? else { return self.not_let_in(None, &trace).await };
        for _ in 0..RESOLVE_MAX {
            let known = self.ports.store.identity(vouched.issuer.clone(), vouched.subject.clone()).await?;
            let Some(login) = known else {
                match self.tie_somebody(&org, vouched, &trace).await? {
                    true => continue,
                    false => return self.not_let_in(None, &trace).await,
                }
            };
            // Another org's people do not come in through this one's provider.
            if login.is_disabled || login.org != org.org {
                return self.not_let_in(Some(&login), &trace).await;
            }
            if let Some(signed) = self.let_in(&login, &at, &trace).await? {
                return Ok(signed);
            }
        }
        Err(ConflictError::Changed.into())
    }

    async fn org_of(&self, vouched: &Vouched) -> Result<Option<OrgRow>, StoreError> {
        let orgs = self.ports.store.orgs().await?;
        Ok(match &vouched.org {
            Some(name) => orgs.into_iter().find(|org| org.name.eq_ignore_ascii_case(name)),
            None => orgs.into_iter().min_by_key(|org| (org.made_at, org.org)),
        })
    }

    /// Gives the provider's name to whoever it is meant for. Answers whether there is anybody.
    async fn tie_somebody(
        &self,
        org: &OrgRow,
        vouched: &Vouched,
        trace: &Trace,
    ) -> Result<bool, PeopleError> {
        let Some(email) = &vouched.email else { return Ok(false) };
        let found = self.ports.store.person_named(org.org, email.clone()).await?;
        // A handle that looks like an address is not one.
        let found = found.filter(|row| row.email.as_ref() == Some(email));
        let person = match (found, vouched.create) {
            (Some(row), _) if row.disabled_at.is_some() => return Ok(false),
            (Some(row), _) => row.person,
            (None, Some(role)) => self.add_vouched(org, vouched, role, trace).await?,
            (None, None) => return Ok(false),
        };
        let (issuer, subject) = (vouched.issuer.clone(), vouched.subject.clone());
        let body = (issuer.clone(), subject.clone());
        let change = PeopleChange::SetIdentity { person, issuer, subject };
        match self.change(&self.house(org.org), change, body, &without_key(trace)).await {
            Ok(_) => Ok(true),
            // They have another name there already, so this is somebody else.
            Err(PeopleError::Taken(_)) => Ok(false),
            Err(refused) => Err(refused),
        }
    }

    /// Somebody new, under a handle that is free.
    async fn add_vouched(
        &self,
        org: &OrgRow,
        vouched: &Vouched,
        role: Role,
        trace: &Trace,
    ) -> Result<PersonId, PeopleError> {
        let (name, email, handle) = (vouched.name.clone(), vouched.email.clone(), stem_of(vouched));
        let or_handles = (2..=HANDLES_MAX).map(|number| format!("{handle}-{number}")).collect();
        let person = self.new_person(AddPerson { handle, name, email, role })?;
        let (id, body) = (person.person, person.handle.clone());
        // They need no link; whoever is new has one, so this one is over before anybody has seen it.
        let link = NewLink { hash: self.ports.mint_link().hash(), expires: self.ports.now() };
        let wall = self.wall_now().await;
        let change = PeopleChange::AddPerson { person, or_handles, link, walled: wall.is_proved() };
        let added = self.change(&self.house(org.org), change, body, &without_key(trace)).await;
        wall.tell(added).map(|_| id)
    }

    /// Homing itself, as somebody who looks after the people of an org, its owners too. The audit says so.
    fn house(&self, org: OrgId) -> Principal {
        Principal::house(org)
    }
}

fn without_key(trace: &Trace) -> Trace {
    Trace { key: None, ..trace.clone() }
}

/// A handle made of what they would like to be called, or of their address.
fn stem_of(vouched: &Vouched) -> String {
    let local = vouched.email.as_ref().and_then(|email| email.split('@').next());
    let wished = [vouched.nickname.as_deref(), local].into_iter().flatten();
    let plain = |text: &str| {
        let letters = text.to_lowercase();
        let letters =
            letters.chars().filter(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(*c));
        let letters: String = letters.take(STEM_MAX).collect();
        letters.trim_start_matches(['.', '_', '-']).to_owned()
    };
    let mut stems = wished.map(plain).filter(|stem| check_handle("handle", stem).is_ok());
    stems.next().unwrap_or_else(|| "somebody".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vouched(nickname: Option<&str>, email: &str) -> Vouched {
        Vouched {
            issuer: "https://id.example".into(),
            subject: "7".into(),
            email: Some(email.into()),
            name: None,
            nickname: nickname.map(str::to_owned),
            org: None,
            create: None,
        }
    }

    #[test]
    fn a_handle_is_made_of_what_there_is() {
        for (nickname, email, stem) in [
            (Some("Ann.B"), "x@example.org", "ann.b"),
            (Some("../etc"), "x@example.org", "etc"),
            (Some("\u{e4}\u{f6}"), "Ann+tag@example.org", "anntag"),
            (None, "ann@example.org", "ann"),
            (Some("!!"), "\u{e4}@example.org", "somebody"),
        ] {
            assert_eq!(stem_of(&vouched(nickname, email)), stem);
        }
        assert!(stem_of(&vouched(Some(&"x".repeat(100)), "a@b")).len() <= STEM_MAX);
    }
}
