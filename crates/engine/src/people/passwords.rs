//! Passwords: argon2id, away from the threads that answer, and few at a time: each takes memory and a core.
//!
//! Whoever types a name that nobody has waits as long as whoever types a wrong password: both are compared with something.

use crate::{InvalidError, People, PeopleError, Trace, UnavailableError};
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Algorithm, Argon2, Params, Version};
use kernel::{PersonId, Principal};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use store::PeopleChange;
use tokio::sync::Semaphore;

/// The number of characters that a password may have.
pub const PASSWORD_LENGTH: RangeInclusive<usize> = 8..=1024;
/// Passwords that are worked on at once.
const AT_ONCE_MAX: usize = 2;
/// Whoever would wait longer for their turn comes again.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// KiB, passes and lanes of one hash.
const COST: (u32, u32, u32) = (19_456, 2, 1);
const SALT_BYTES: usize = 16;
/// The hash that is compared when there is nothing to compare with. The same cost, and the hash of no known password.
const NOBODYS: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// Where passwords are worked on.
#[derive(Debug)]
pub(crate) struct Passwords {
    room: Arc<Semaphore>,
    compared: AtomicU64,
}

impl Default for Passwords {
    fn default() -> Self {
        Self { room: Arc::new(Semaphore::new(AT_ONCE_MAX)), compared: AtomicU64::new(0) }
    }
}

impl Passwords {
    /// True if it is this password. Takes as long if there is none.
    pub(super) async fn is(&self, password: String, kept: Option<String>) -> Result<bool, UnavailableError> {
        self.compared.fetch_add(1, Ordering::Relaxed);
        let fits = password.chars().nth(*PASSWORD_LENGTH.end()).is_none();
        let is = self.work(move || {
            let with = kept.as_deref().unwrap_or(NOBODYS);
            let password = if fits { password.as_bytes() } else { &[] };
            argon2().verify_password(password, with).is_ok() && kept.is_some()
        });
        Ok(is.await? && fits)
    }

    /// The hash that is kept of a password.
    async fn hash(&self, password: String, salt: [u8; 32]) -> Result<String, UnavailableError> {
        let hashed = self.work(move || {
            let hash = argon2().hash_password_with_salt(password.as_bytes(), &salt[..SALT_BYTES]);
            hash.map(|hash| hash.to_string()).map_err(|why| why.to_string())
        });
        hashed.await?.map_err(UnavailableError::Unavailable)
    }

    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, UnavailableError> {
        let busy = |_| UnavailableError::Unavailable("too many people sign in at once; try again".to_owned());
        let room = tokio::time::timeout(WAIT_MAX, self.room.clone().acquire_owned()).await.map_err(busy)?;
        let room = room.expect("nobody closes it");
        let worked = tokio::task::spawn_blocking(move || {
            let _room = room;
            work()
        });
        worked.await.map_err(|why| UnavailableError::Unavailable(why.to_string()))
    }
}

fn argon2() -> Argon2<'static> {
    let (memory, passes, lanes) = COST;
    let params = Params::new(memory, passes, lanes, None).expect("these are within what it takes");
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
}

impl People {
    /// The number of passwords that were compared since the start.
    pub fn passwords_compared(&self) -> u64 {
        self.passwords.compared.load(Ordering::Relaxed)
    }

    /// Sets one's own password, which takes the one before if there is one; or removes one's own or somebody else's. Every
    /// other browser and terminal of theirs is signed out.
    pub async fn set_password(
        &self,
        by: &Principal,
        person: PersonId,
        current: Option<String>,
        new: Option<String>,
        trace: Trace,
    ) -> Result<(), PeopleError> {
        let checked = self.checked_password(by, person, current, new).await;
        let subject = Some(person.to_string());
        let (password, proved) = self.note_refusal(by, "set_password", &trace, subject, checked).await?;
        let id = person.to_string();
        let own = person == by.person;
        let body = (id.clone(), password.is_some());
        let change = PeopleChange::SetPassword { person, password, keep: by.credential, proved };
        let changed = if own {
            self.change(by, change, body, &trace).await
        } else {
            self.change(by, change, id, &trace).await
        };
        changed.map(drop)
    }

    /// The hash of the new one; and the standing under which they proved that they know the old one. Whoever was let in
    /// by the old one and has changed it meanwhile has changed that: it was another password that was proved.
    async fn checked_password(
        &self,
        by: &Principal,
        person: PersonId,
        current: Option<String>,
        new: Option<String>,
    ) -> Result<(Option<String>, Option<u64>), PeopleError> {
        let (password, keep, proved) = (new.clone(), None, None);
        self.may_ask(by, &PeopleChange::SetPassword { person, password, keep, proved })?;
        let mut proved = None;
        if person == by.person {
            let me = self.myself(by).await?;
            if let Some(new) = &new {
                check_password(new, &me.person.handle, me.person.email.as_deref())?;
            }
            let login = self.ports.store.login(format!("{}/{}", me.org.name, me.person.handle)).await?;
            proved = Some(login.as_ref().map_or(by.standing, |login| login.standing));
            let kept = login.and_then(|login| login.password);
            if me.person.has_password && !self.passwords.is(current.unwrap_or_default(), kept).await? {
                return Err(PeopleError::WrongSignIn);
            }
        }
        let password = match new {
            Some(new) => Some(self.passwords.hash(new, self.ports.mint_salt()).await?),
            None => None,
        };
        Ok((password, proved))
    }
}

fn check_password(password: &str, handle: &str, email: Option<&str>) -> Result<(), InvalidError> {
    let invalid = |reason: String| Err(InvalidError { field: "password", reason });
    if !PASSWORD_LENGTH.contains(&password.chars().count()) {
        let (least, most) = PASSWORD_LENGTH.into_inner();
        return invalid(format!("must have {least} to {most} characters"));
    }
    let is = |name: &str| password.eq_ignore_ascii_case(name);
    if is(handle) || email.is_some_and(is) {
        return invalid("must not be the name or the e-mail address".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_password_is_known_again_and_another_is_not() {
        let passwords = Passwords::default();
        let kept = passwords.hash("correct horse".to_owned(), [7; 32]).await.unwrap();
        assert!(kept.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{kept}");
        assert!(passwords.is("correct horse".to_owned(), Some(kept.clone())).await.unwrap());
        assert!(!passwords.is("correct house".to_owned(), Some(kept.clone())).await.unwrap());
        assert!(!passwords.is("correct horse".to_owned(), None).await.unwrap());
        assert!(!passwords.is("x".repeat(1_025), Some(kept)).await.unwrap());
        assert_eq!(passwords.compared.load(Ordering::Relaxed), 4);
    }

    #[test]
    fn what_nobody_has_costs_the_same_to_compare() {
        let (memory, passes, lanes) = COST;
        assert!(NOBODYS.starts_with(&format!("$argon2id$v=19$m={memory},t={passes},p={lanes}$")));
        let refused = argon2().verify_password(b"", NOBODYS).unwrap_err();
        assert_eq!(
            refused,
            argon2::password_hash::Error::PasswordInvalid,
            "it was compared, and not only read"
        );
    }

    #[test]
    fn a_name_is_no_password() {
        assert!(check_password("ann-marie", "ann-marie", None).is_err());
        assert!(check_password("Ann@Example.org", "ann", Some("ann@example.org")).is_err());
        assert!(check_password("short", "ann", None).is_err());
        assert!(check_password("long enough", "ann", None).is_ok());
    }
}
