//! Links that let somebody in, once.

use super::Secret;
use crate::{People, PeopleError, Trace};
use kernel::{Moment, PersonId, Principal};
use store::{LoginRow, NewLink, PeopleChange, Purpose};

/// The time for which a link is good that somebody makes for themselves.
const OWN_LINK_MS_MAX: u64 = 10 * 60 * 1_000;
/// The time for which one is good that somebody else made for them: it has to reach them first.
const INVITE_MS_MAX: u64 = 7 * 24 * 60 * 60 * 1_000;

/// A link on its way to whoever it is for. It is shown once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkSecret {
    /// The secret in it.
    pub secret: Secret,
    /// Until when it works.
    pub expires: Moment,
}

impl LinkSecret {
    /// The secret itself, for whoever it is for.
    pub fn reveal(&self) -> &str {
        self.secret.reveal()
    }
}

impl People {
    /// A link by which they sign in, once. It is shown once.
    pub async fn make_link(
        &self,
        by: &Principal,
        person: PersonId,
        trace: Trace,
    ) -> Result<LinkSecret, PeopleError> {
        let (secret, link) =
            if person == by.person { self.new_link(OWN_LINK_MS_MAX) } else { self.new_link(INVITE_MS_MAX) };
        let change = PeopleChange::MakeLink { person, link };
        self.change(by, change, person.to_string(), &trace).await?.only_now()?;
        self.as_made(by, secret).await
    }

    /// Whose link this is, without spending it; none if it lets nobody in any more.
    pub async fn look_at_link(&self, code: &str) -> Result<Option<LoginRow>, PeopleError> {
        Ok(self.ports.store.link(super::hash_of(code), self.ports.now()).await?)
    }

    /// A link that somebody has made, with its end: made with a token, it ends with that one at the latest.
    pub(super) async fn as_made(&self, by: &Principal, made: LinkSecret) -> Result<LinkSecret, PeopleError> {
        let own = self.ports.store.tokens(by.org, by.person).await?;
        let own = own.into_iter().find(|view| Some(view.token) == by.credential);
        let ends = own.filter(|view| view.purpose == Purpose::Api || view.parent.is_some());
        let ends = ends.and_then(|view| view.expires).unwrap_or(made.expires);
        Ok(LinkSecret { expires: made.expires.min(ends), ..made })
    }

    pub(super) fn new_invite(&self) -> (LinkSecret, NewLink) {
        self.new_link(INVITE_MS_MAX)
    }

    fn new_link(&self, ms: u64) -> (LinkSecret, NewLink) {
        let (secret, expires) = (self.ports.mint_link(), self.ports.now().after_ms(ms));
        let link = NewLink { hash: secret.hash(), expires };
        (LinkSecret { secret, expires }, link)
    }
}
