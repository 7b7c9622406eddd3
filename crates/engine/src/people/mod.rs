//! People, their rights, and every way in which those change.
//!
//! The rules are `kernel::people`'s. `change` is the only way to the store's own `change`; the others are what people can wish:
//! `persons`, `groups`, `grants`, `roots`, `approval_rules` (which questions of agents are answered without asking, or by whom),
//! `tokens`, `orgs`, `audit`; and how they come in: `sign_in`, `vouched`, `links`, `passwords`, `secrets`. `rights_cache` remembers
//! for a moment what somebody may do, `uses` when they last did.

mod approval_rules;
mod audit;
mod change;
mod grants;
mod groups;
mod links;
mod orgs;
mod passwords;
mod persons;
mod rights_cache;
mod roots;
mod secrets;
mod sign_in;
mod tokens;
mod uses;
mod vouched;

pub use approval_rules::NewRule;
pub use audit::{AuditWish, Broken, ChainCheck};
pub use links::LinkSecret;
pub use orgs::MakeOrg;
pub use passwords::PASSWORD_LENGTH;
pub use persons::{AddPerson, DiskView, MeView, PersonChange};
pub use secrets::{Secret, hash_of};
pub use sign_in::{SignInFor, Signed};
pub use tokens::{Expiry, MakeToken};
pub use vouched::Vouched;

pub(crate) use change::may;
pub(crate) use passwords::Passwords;
pub(crate) use rights_cache::{LOOK_EVERY, RightsCache};
pub(crate) use uses::{Uses, write_uses_down};

use crate::engine_ports::EnginePorts;
use crate::roster::Roster;
use crate::{AccessError, Ground, InvalidError, PeopleError, Seal, WallProver};
use kernel::{PersonId, Principal};
use std::sync::Arc;
use store::{NewOrg, TokenRow};
use tokio::sync::watch;

/// The longest that a name of a person, a group or a credential may be: 200 characters, whatever they are.
pub const NAME_BYTES_MAX: usize = 800;
/// The longest that a handle or the name of an org may be.
const HANDLE_BYTES_MAX: usize = 64;
/// As long as an e-mail address can be: 254 characters, whatever they are.
const EMAIL_BYTES_MAX: usize = 1_016;

/// The times a sign-in is resolved before we give up: each further time means that somebody else was faster.
const RESOLVE_MAX: usize = 3;

/// People, and who may do what. Cheap to clone.
#[derive(Debug, Clone)]
pub struct People {
    pub(crate) ports: Arc<EnginePorts>,
    pub(crate) roster: Arc<Roster>,
    pub(crate) rights_cache: Arc<RightsCache>,
    pub(crate) ground: Arc<dyn Ground>,
    pub(crate) seal: Arc<dyn Seal>,
    pub(crate) wall: Arc<dyn WallProver>,
    pub(crate) passwords: Arc<Passwords>,
    pub(crate) uses: Arc<Uses>,
}

impl People {
    /// The machine's person, who owns the first org; made at the first start.
    pub async fn host(&self, fresh: NewOrg) -> Result<Principal, PeopleError> {
        Ok(self.ports.store.host(fresh).await?)
    }

    /// Lets the machine's own credential in. Only the hash of its secret is stored.
    pub async fn add_token(&self, token: TokenRow) -> Result<(), PeopleError> {
        self.ports.store.add_token(token).await?;
        self.ports.rights_changed();
        Ok(())
    }

    /// Grows with every change of who may do what on this node: whatever was remembered of it is to be asked again.
    pub fn rights(&self) -> watch::Receiver<u64> {
        self.ports.cluster.rights()
    }

    /// The same principal with what they may do now: for whoever has held it for a while.
    pub async fn refreshed(&self, by: &Principal) -> Result<Principal, PeopleError> {
        let now = self.rights_cache.refreshed(by).await?;
        Ok(now.ok_or(AccessError::Unauthenticated)?)
    }

    /// The handle of somebody of the caller's org, for names beside ids. None if there is nobody of this id.
    pub async fn handle_of(&self, by: &Principal, person: PersonId) -> Result<Option<String>, PeopleError> {
        Ok(self.rights_cache.handle_of(by, person).await?)
    }

    /// True if people are let in although nothing keeps their agents apart.
    pub fn trusts_everyone(&self) -> bool {
        self.rights_cache.trusts_everyone()
    }
}

/// A name for people to read.
fn check_name(field: &'static str, name: &str) -> Result<(), InvalidError> {
    let fits = (1..=NAME_BYTES_MAX).contains(&name.len()) && !name.trim().is_empty();
    if fits && !name.chars().any(char::is_control) {
        return Ok(());
    }
    Err(InvalidError { field, reason: format!("must have 1 to {NAME_BYTES_MAX} bytes, all visible") })
}

/// A name that stands in addresses and in `ORG/NAME`.
fn check_handle(field: &'static str, handle: &str) -> Result<(), InvalidError> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
    let begins = handle.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    if begins && handle.len() <= HANDLE_BYTES_MAX && handle.bytes().all(plain) {
        return Ok(());
    }
    let reason = format!(
        "must have 1 to {HANDLE_BYTES_MAX} of a-z, 0-9, dot, dash and underscore, and begin with a letter or digit"
    );
    Err(InvalidError { field, reason })
}

/// An e-mail address in the form in which it is kept.
fn email_of(typed: &str) -> Result<String, InvalidError> {
    let email = typed.trim().to_lowercase();
    let is_bad = |c: char| c.is_whitespace() || c.is_control();
    let halves = email.split_once('@').is_some_and(|(name, host)| {
        // A host of one's own network may have a short name.
        !name.is_empty() && !host.is_empty() && !host.contains('@')
    });
    if halves && email.len() <= EMAIL_BYTES_MAX && !email.contains(is_bad) {
        return Ok(email);
    }
    Err(InvalidError { field: "email", reason: "is not an e-mail address".to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_kept_in_one_form() {
        assert_eq!(email_of(" Ann@Example.org ").as_deref(), Ok("ann@example.org"));
        assert_eq!(email_of("ann@host").as_deref(), Ok("ann@host"));
        for bad in ["", "ann", "@example.org", "ann@", "a b@example.org", "a@b@example.org"] {
            assert!(email_of(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_handle_is_plain() {
        for good in ["ann", "a", "ann.b-c_1", "4711"] {
            assert!(check_handle("handle", good).is_ok(), "{good}");
        }
        for bad in ["", "Ann", "-ann", ".ann", "ann/b", "a@b", "ä", &"a".repeat(65)] {
            assert!(check_handle("handle", bad).is_err(), "{bad}");
        }
    }
}
