//! Signing in by a password or by a link. Those for whom an identity provider vouches are in `vouched`.
//!
//! Whoever is not let in hears one and the same, whatever was wrong, after the same work.

use super::RESOLVE_MAX;
use super::Secret;
use crate::{ConflictError, InvalidError, People, PeopleError, Trace};
use kernel::{Moment, OrgId, PersonId, TokenId};
use store::{AuditEntry, LoginRow, Purpose, SignedIn, TokenRow};

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
/// The longest that what somebody types to sign in may be: 400 characters, whatever they are.
const TYPED_BYTES_MAX: usize = 1_600;

/// Where somebody signs in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignInFor {
    /// A browser or a terminal.
    pub purpose: Purpose,
    /// Its name.
    pub name: Option<String>,
}

/// Somebody who was let in, and the secret by which they are known from now on. It is shown once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signed {
    pub secret: Secret,
    pub token: TokenId,
    pub org: OrgId,
    pub person: PersonId,
    pub handle: String,
    pub expires: Option<Moment>,
}

impl People {
    /// Lets somebody in by their password. `typed` is an e-mail address, `NAME` or `ORG/NAME`.
    pub async fn sign_in_by_password(
        &self,
        typed: &str,
        password: String,
        at: SignInFor,
        trace: Trace,
    ) -> Result<Signed, PeopleError> {
        for _ in 0..RESOLVE_MAX {
            let login = if typed.len() <= TYPED_BYTES_MAX {
                self.ports.store.login(typed.trim().to_owned()).await?
            } else {
                None
            };
            let kept = login.as_ref().and_then(|login| login.password.clone());
            let is = self.passwords.is(password.clone(), kept).await?;
            let Some(login) = login.as_ref().filter(|login| is && !login.is_disabled) else {
                return self.not_let_in(login.as_ref(), &trace).await;
            };
            if let Some(signed) = self.let_in(login, &at, &trace).await? {
                return Ok(signed);
            }
        }
        Err(ConflictError::Changed.into())
    }

    /// Lets somebody in by a link, which is spent then.
    pub async fn sign_in_by_link(
        &self,
        code: &str,
        at: SignInFor,
        trace: Trace,
    ) -> Result<Signed, PeopleError> {
        let (secret, row) = self.new_sign_in(PersonId::ENGINE, &at)?;
        let token = row.token;
        let trail = self.ports.trail("sign_in", &trace);
        let spent = self.ports.store.spend_link(super::hash_of(code), Some(row.into()), trail).await?;
        let Some(login) = spent else { return self.not_let_in(None, &trace).await };
        self.ports.audited();
        let LoginRow { org, person, handle, .. } = login;
        // As it was made: by a link that was made with a token it may end earlier than is usual.
        let made = self.ports.store.tokens(org, person).await?;
        let expires = made.into_iter().find(|view| view.token == token).and_then(|view| view.expires);
        Ok(Signed { secret, token, org, person, handle, expires })
    }

    /// None if something about them has changed since they were looked up.
    pub(super) async fn let_in(
        &self,
        login: &LoginRow,
        at: &SignInFor,
        trace: &Trace,
    ) -> Result<Option<Signed>, PeopleError> {
        let (secret, token) = self.new_sign_in(login.person, at)?;
        let LoginRow { org, person, handle, standing, .. } = login.clone();
        let (id, expires) = (token.token, token.expires);
        let trail = self.ports.trail("sign_in", trace);
        if !self.ports.store.sign_in(SignedIn { standing, token, org, trail }).await? {
            return Ok(None);
        }
        self.ports.audited();
        Ok(Some(Signed { secret, token: id, org, person, handle, expires }))
    }

    fn new_sign_in(&self, person: PersonId, at: &SignInFor) -> Result<(Secret, TokenRow), InvalidError> {
        at.name.iter().try_for_each(|name| super::check_name("name", name))?;
        let (days, idle_days) = match at.purpose {
            Purpose::Browser => (30, 7),
            Purpose::Cli => (90, 30),
            Purpose::Machine | Purpose::Api | Purpose::Turn => {
                let reason = "one signs in with a browser or a terminal".to_owned();
                return Err(InvalidError { field: "for", reason });
            }
        };
        let (secret, now) = (self.ports.mint_credential(at.purpose), self.ports.now());
        let token = TokenId::from_bits(self.ports.mint_bits());
        let full = TokenRow::full(token, secret.hash(), person, at.purpose, now);
        let row = TokenRow {
            name: at.name.clone(),
            expires: Some(now.after_ms(days * DAY_MS)),
            idle_ms_max: Some(idle_days * DAY_MS),
            ..full
        };
        Ok((secret, row))
    }

    /// The typed text is not written down: it may be a password.
    pub(super) async fn not_let_in<T>(
        &self,
        login: Option<&LoginRow>,
        trace: &Trace,
    ) -> Result<T, PeopleError> {
        let refused = PeopleError::WrongSignIn;
        let by = login.map(|login| (login.org, login.person));
        let trail = self.ports.trail("sign_in", trace);
        let entry = AuditEntry { by, subject: None, trail, refused: refused.code() };
        if let Err(error) = self.ports.store.audit(entry).await {
            tracing::warn!(%error, "a refused sign-in is missing in the audit");
        }
        self.ports.audited();
        Err(refused)
    }
}
