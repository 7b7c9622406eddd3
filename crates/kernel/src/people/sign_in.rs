//! Proofs that let somebody in, and what becomes of credentials and links when it does: without anybody's wish, or with
//! a proof.

use super::plan::{made_with, org_writes};
use super::{
    LinksToDrop, NewOrg, NewToken, OfferRow, OffersToDrop, OwnCredential, PeopleWrite, PersonState, Purpose,
    RootRow, TokenRow, TokensToDrop,
};
use crate::{Grantee, Moment, OrgId, PersonId, TokenId};
use alloc::vec;
use alloc::vec::Vec;

/// A credential, as far as it matters whether it lets somebody in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CredentialState {
    pub last_used: Option<Moment>,
    /// Until when the secret that was shown counts, if it is the one before.
    pub old_until: Option<Moment>,
    /// The turn that it is for runs; true of one that is for no turn.
    pub is_under_way: bool,
    pub is_disabled: bool,
}

/// Does this credential let its person in at this moment?
pub fn lets_in(token: &TokenRow, state: CredentialState, now: Moment) -> bool {
    token.is_fresh(state.last_used, now)
        && state.old_until.is_none_or(|until| now < until)
        && (token.bound.is_none() || state.is_under_way)
        && !state.is_disabled
}

/// Somebody who has proved who they are: none if they were changed since they were looked up, or cannot come in.
pub fn come_in(who: Option<PersonState>, standing: u64, token: TokenRow) -> Option<Vec<PeopleWrite>> {
    let who = who.filter(|who| who.standing == standing && !who.is_disabled())?;
    (who.person == token.person).then(|| vec![PeopleWrite::Token(token)])
}

/// A link, and whose it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkState {
    pub person: PersonId,
    pub expires: Moment,
    pub is_disabled: bool,
    /// The token that it was made with.
    pub parent: Option<TokenId>,
}

/// Would this link let its person in at this moment?
pub fn link_lets_in(link: LinkState, now: Moment) -> bool {
    now < link.expires && !link.is_disabled
}

/// A link works once: none if it lets nobody in. Whoever comes in by one that was made with a token (`maker`, if it is still
/// there) is let in for as long as that at most.
pub fn spend_link(
    link: LinkState,
    hash: [u8; 32],
    token: Option<NewToken>,
    maker: Option<OwnCredential>,
    now: Moment,
) -> Option<Vec<PeopleWrite>> {
    if link.parent.is_some() && maker.is_none() {
        return None;
    }
    let token = token.map(|token| PeopleWrite::Token(made_with(maker, token.row(link.person, now))));
    let spent = PeopleWrite::DropLinks(LinksToDrop::One(hash));
    link_lets_in(link, now).then(|| [spent].into_iter().chain(token).collect())
}

/// Another secret for a credential: none if it lets nobody in any more.
pub fn rotate_token(
    token: &TokenRow,
    last_used: Option<Moment>,
    hash: [u8; 32],
    now: Moment,
    old_until: Moment,
) -> Option<PeopleWrite> {
    let TokenRow { token: id, .. } = *token;
    token.is_fresh(last_used, now).then_some(PeopleWrite::Secret { token: id, hash, old_until, used: now })
}

/// A credential that nobody wished for: the machine's own, a turn's. One of somebody who is not there is nobody's, and is
/// not kept.
pub fn add_token(token: TokenRow, is_there: bool) -> Vec<PeopleWrite> {
    if !is_there {
        return Vec::new();
    }
    let TokenRow { token: id, person, made_at, .. } = token;
    let drop = |tokens: TokensToDrop| PeopleWrite::DropTokens(tokens);
    let mut writes = match (token.purpose, token.bound) {
        // In place of every other one of its person, and whatever has expired goes with it.
        (purpose @ Purpose::Machine, _) => vec![
            drop(TokensToDrop::Purpose { person, purpose }),
            drop(TokensToDrop::Expired(made_at)),
            PeopleWrite::DropLinks(LinksToDrop::Expired(made_at)),
        ],
        (Purpose::Turn, Some((session, _))) => vec![drop(TokensToDrop::TurnsOf(session))],
        (Purpose::Turn | Purpose::Browser | Purpose::Cli | Purpose::Api, _) => Vec::new(),
    };
    writes.push(drop(TokensToDrop::One(id)));
    writes.push(PeopleWrite::Token(token));
    writes
}

/// The machine's person, as they are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostState {
    pub person: PersonId,
    pub org: OrgId,
    /// It has none in a file from before orgs had names.
    pub has_name: bool,
}

/// The rows to be written so that there is a machine's person; and that person. An org without a name gets the name and
/// the directories that a fresh one would.
pub fn make_host(host: Option<HostState>, fresh: NewOrg, at: Moment) -> (PersonId, Vec<PeopleWrite>) {
    let NewOrg { org, name, owner, roots } = fresh;
    let Some(host) = host else { return (owner.person, org_writes(org, name, owner, roots, true, at)) };
    if host.has_name {
        return (host.person, Vec::new());
    }
    let (org, to) = (host.org, Grantee::Person(host.person));
    let named = PeopleWrite::OrgName { org, name };
    let roots = roots.into_iter().map(|directory| {
        let root = RootRow { directory, to };
        PeopleWrite::Root { org, root }
    });
    (host.person, [named].into_iter().chain(roots).collect())
}

/// The credential of a link, or of whoever signs in.
impl From<TokenRow> for NewToken {
    fn from(row: TokenRow) -> Self {
        let TokenRow { token, hash, purpose, name, rights, client, expires, idle_ms_max, .. } = row;
        Self { token, hash, purpose, name, rights, client, expires, idle_ms_max }
    }
}

impl TokensToDrop {
    /// True if this credential is among them.
    pub fn has(&self, token: &TokenRow) -> bool {
        match *self {
            Self::One(id) => token.token == id,
            Self::Of(person) => token.person == person,
            Self::SignInsOf { person, keep } => {
                token.person == person && token.purpose.is_sign_in() && keep != Some(token.token)
            }
            Self::Purpose { person, purpose } => token.person == person && token.purpose == purpose,
            Self::TurnsOf(session) => {
                token.purpose == Purpose::Turn && token.bound.is_some_and(|(bound, _)| bound == session)
            }
            Self::Expired(at) => token.expires.is_some_and(|until| until <= at),
        }
    }
}

impl OffersToDrop {
    /// True if this offer is among them.
    pub fn has(&self, offer: &OfferRow) -> bool {
        match *self {
            Self::One(session) => offer.session == session,
            Self::Of(person) => [offer.from, offer.to].contains(&person),
            Self::Lapsed(at) => offer.until <= at,
        }
    }
}

impl LinksToDrop {
    /// True if this link is among them.
    pub fn has(&self, hash: &[u8; 32], link: LinkState) -> bool {
        match *self {
            Self::One(one) => *hash == one,
            Self::Of(whose) => link.person == whose,
            Self::MadeWith(token) => link.parent == Some(token),
            Self::Expired(at) => link.expires <= at,
        }
    }
}
