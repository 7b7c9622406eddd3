//! Credentials that people make, see and revoke; and the secrets of browsers, which are replaced as they age.

use super::change::may;
use super::{Secret, check_name};
use crate::{AccessError, InvalidError, People, PeopleError, Trace};
use kernel::{Moment, OrgAct, PersonId, Principal, Rights, Role, TokenId};
use std::sync::PoisonError;
use store::{NewToken, PeopleChange, Purpose, TokenView};

/// A browser's secret is replaced when it is so old.
const RENEW_MS: u64 = 24 * 60 * 60 * 1_000;
/// The old one is good for so long after that: requests may be under way.
const GRACE_MS: u64 = 60 * 1_000;
/// Browsers of which we remember when they are next; beyond them we look again.
const RENEWALS_MAX: usize = 4_096;

/// The time for which a credential is good if nobody says.
const EXPIRES_DEFAULT_MS: u64 = 90 * 24 * 60 * 60 * 1_000;

/// The end that a credential is to have, as it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    /// Nothing was said: so long as is usual.
    Usual,
    At(Moment),
    Never,
}

impl Expiry {
    fn counted_from(self, now: Moment) -> Option<Moment> {
        match self {
            Self::Usual => Some(now.after_ms(EXPIRES_DEFAULT_MS)),
            Self::At(at) => Some(at),
            Self::Never => None,
        }
    }
}

/// A credential that somebody wants for a program of theirs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MakeToken {
    /// Its name.
    pub name: String,
    /// Its rights.
    pub rights: Rights,
    /// Until when it is good.
    pub expires: Expiry,
    /// The only client name it may use in addresses.
    pub client: Option<String>,
}

impl People {
    /// Somebody's credentials, the newest first; the caller's own if nobody is named.
    pub async fn tokens(
        &self,
        by: &Principal,
        person: Option<PersonId>,
    ) -> Result<Vec<TokenView>, PeopleError> {
        let person = person.unwrap_or(by.person);
        if person == by.person {
            may(by, OrgAct::Myself)?;
        } else {
            // Whoever could change nobody is told so before anybody is looked up.
            may(by, OrgAct::Person { role: Role::Viewer, becomes: None })?;
            let row = self.ports.store.person(by.org, person).await?;
            let row = row.ok_or(AccessError::NotFound { what: "person" })?;
            may(by, OrgAct::Person { role: row.role, becomes: None })?;
        }
        Ok(self.ports.store.tokens(by.org, person).await?)
    }

    /// Makes a credential of the caller's own. Its secret is shown once. One that is made with a token ends with that one at
    /// the latest.
    pub async fn make_token(
        &self,
        by: &Principal,
        make: MakeToken,
        trace: Trace,
    ) -> Result<(TokenView, Secret), PeopleError> {
        let checked = self.check_token(by, &make);
        self.note_refusal(by, "make_token", &trace, None, checked).await?;
        let secret = self.ports.mint_credential(Purpose::Api);
        let (token, now) = (TokenId::from_bits(self.ports.mint_bits()), self.ports.now());
        let MakeToken { name, rights, expires, client } = make;
        // Who asks again a moment later asks for the same, although what is usual ends a moment later.
        let asked = match expires {
            Expiry::Usual => "usual".to_owned(),
            Expiry::At(at) => at.0.to_string(),
            Expiry::Never => "never".to_owned(),
        };
        let body = (name.clone(), rights.bits(), asked, client.clone());
        let expires = expires.counted_from(now);
        let (purpose, idle_ms_max, name) = (Purpose::Api, None, Some(name));
        let hash = secret.hash();
        let new = NewToken { token, hash, purpose, name, rights, client, expires, idle_ms_max };
        self.change(by, PeopleChange::MakeToken(new), body, &trace).await?.only_now()?;
        // As it was made: with a token it may end earlier than was asked.
        let made = self.ports.store.tokens(by.org, by.person).await?;
        let view = made.into_iter().find(|view| view.token == token);
        Ok((view.ok_or(AccessError::NotFound { what: "token" })?, secret))
    }

    fn check_token(&self, by: &Principal, make: &MakeToken) -> Result<(), PeopleError> {
        let invalid = |field, reason: &str| Err(InvalidError { field, reason: reason.to_owned() }.into());
        may(by, OrgAct::Mint { rights: make.rights })?;
        check_name("name", &make.name)?;
        if make.rights == Rights::NONE {
            return invalid("rights", "name at least one: read, prompt, approve, manage, admin");
        }
        let now = self.ports.now();
        if make.expires.counted_from(now).is_some_and(|at| at <= now) {
            return invalid("expires", "lies in the past");
        }
        if let Some(client) = &make.client {
            super::check_handle("client", client)?;
        }
        Ok(())
    }

    /// Makes a credential good for nothing: one's own, or one of somebody whom one may change. Whatever was made with it goes
    /// along.
    pub async fn revoke_token(
        &self,
        by: &Principal,
        token: TokenId,
        trace: Trace,
    ) -> Result<(), PeopleError> {
        let change = PeopleChange::RevokeToken { token };
        self.change(by, change, token.to_string(), &trace).await.map(drop)
    }

    /// Makes the credential that the caller came with good for nothing. It needs no right: whoever holds it may end it.
    pub async fn sign_out(&self, by: &Principal, trace: Trace) -> Result<(), PeopleError> {
        let Some(token) = by.credential else { return Ok(()) };
        let change = PeopleChange::RevokeToken { token };
        self.change(by, change, token.to_string(), &trace).await.map(drop)
    }

    /// Another secret for a browser whose secret has aged; none if it has not, or is no browser's. The old one stays good
    /// for a minute.
    pub async fn rotate(&self, by: &Principal) -> Result<Option<Secret>, PeopleError> {
        let Some(token) = by.credential else { return Ok(None) };
        let now = self.ports.now();
        let due = match self.renewal(token) {
            Some(due) => due,
            None => {
                let rows = self.ports.store.tokens(by.org, by.person).await?;
                let row = rows.into_iter().find(|row| row.token == token);
                let made = row.filter(|row| row.purpose == Purpose::Browser).map(|row| row.made_at);
                made.map_or(Moment(u64::MAX), |at| at.after_ms(RENEW_MS))
            }
        };
        // Whoever comes at the same time finds that it was done.
        self.renew_at(token, if due <= now { now.after_ms(RENEW_MS) } else { due });
        if due > now {
            return Ok(None);
        }
        let secret = self.ports.mint_credential(Purpose::Browser);
        let old_until = now.after_ms(GRACE_MS);
        let rotated = self.ports.store.rotate_token(token, secret.hash(), now, old_until).await;
        // What could not be done is still due: the next answer tries again.
        let there = rotated.inspect_err(|_| self.renew_at(token, due))?;
        Ok(there.then_some(secret))
    }

    fn renewal(&self, token: TokenId) -> Option<Moment> {
        self.uses.renewals.lock().unwrap_or_else(PoisonError::into_inner).get(&token).copied()
    }

    fn renew_at(&self, token: TokenId, at: Moment) {
        let mut renewals = self.uses.renewals.lock().unwrap_or_else(PoisonError::into_inner);
        if renewals.len() >= RENEWALS_MAX {
            renewals.clear();
        }
        renewals.insert(token, at);
    }
}
