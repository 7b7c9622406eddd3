//! The people in the memory store, what lets them in, and what they may do: always `kernel`'s rule on the rows as they
//! are.

use super::contents::{Contents, Kept};
use crate::*;
use kernel::people::{CredentialState, LinkState, PersonState, lets_in, link_lets_in, name_key};
use kernel::{
    Act, Grantee, GroupId, Moment, OrgId, PersonId, Principal, SessionId, TokenId, Turn, authorize,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The people, and their grants.
#[derive(Default)]
pub(super) struct People {
    pub(super) orgs: BTreeMap<OrgId, OrgRow>,
    pub(super) people: BTreeMap<PersonId, Somebody>,
    pub(super) groups: BTreeMap<GroupId, (OrgId, GroupRow)>,
    /// The agents that are not open to everybody, also if nothing is given on them any more.
    pub(super) closed_agents: BTreeSet<(OrgId, String)>,
    /// The grants on agents, by org and name.
    pub(super) agents: BTreeMap<(OrgId, String), BTreeMap<Grantee, GrantRow>>,
    pub(super) roots: BTreeSet<(OrgId, String, Grantee)>,
    pub(super) tokens: BTreeMap<TokenId, StoredToken>,
    pub(super) links: BTreeMap<[u8; 32], (PersonId, Moment, Option<TokenId>)>,
    /// By issuer and subject.
    pub(super) identities: BTreeMap<(String, String), PersonId>,
    /// In the order in which they were made.
    pub(super) rules: Vec<(OrgId, RuleRow)>,
    pub(super) offers: BTreeMap<SessionId, OfferRow>,
}

/// Somebody, with what nobody is shown of them.
pub(super) struct Somebody {
    pub(super) row: PersonRow,
    pub(super) password: Option<String>,
    pub(super) standing: u64,
}

/// A credential, and what became of it.
pub(super) struct StoredToken {
    pub(super) row: TokenRow,
    pub(super) last_used: Option<Moment>,
    /// The secret before this one, and until when it counts.
    pub(super) before: Option<([u8; 32], Moment)>,
    /// Where its person is told, with it.
    pub(super) push: Option<PushRow>,
}

impl Somebody {
    fn login(&self) -> LoginRow {
        LoginRow {
            org: self.row.org,
            person: self.row.person,
            handle: self.row.handle.clone(),
            password: self.password.clone(),
            standing: self.standing,
            is_disabled: self.is_disabled(),
        }
    }

    /// As far as the rules look at them.
    pub(super) fn state(&self) -> PersonState {
        let PersonRow { person, role, disabled_at, .. } = self.row;
        PersonState { person, role, disabled_at, standing: self.standing }
    }

    pub(super) fn is_disabled(&self) -> bool {
        self.row.disabled_at.is_some()
    }

    /// True if they are meant by this, which is a handle or an address.
    fn is_called(&self, name: &str) -> bool {
        let name = name_key(name);
        name_key(&self.row.handle) == name || self.row.email.as_ref() == Some(&name)
    }
}

impl People {
    pub(super) fn hosts_org(&self) -> Option<OrgId> {
        self.people.values().find(|kept| kept.row.is_host).map(|host| host.row.org)
    }

    /// One of an org's people.
    pub(super) fn of(&self, org: OrgId, person: PersonId) -> Option<&Somebody> {
        self.people.get(&person).filter(|kept| kept.row.org == org)
    }

    pub(super) fn in_org(&self, org: OrgId) -> impl Iterator<Item = &Somebody> {
        self.people.values().filter(move |kept| kept.row.org == org)
    }

    /// Everybody of the org to whom something is given that is given so.
    pub(super) fn who(&self, org: OrgId, to: Grantee) -> Vec<PersonId> {
        match to {
            Grantee::Person(person) => self.of(org, person).map(|_| person).into_iter().collect(),
            Grantee::Group(group) => {
                self.groups.get(&group).map(|(_, row)| row.people.clone()).unwrap_or_default()
            }
            Grantee::Org => self.in_org(org).map(|kept| kept.row.person).collect(),
        }
    }

    /// The principal of this person now, as if they had no credential.
    pub(super) fn principal_of(&self, person: PersonId) -> Option<Principal> {
        let Somebody { row, standing, .. } = self.people.get(&person)?;
        let member = |(_, group): &&(OrgId, GroupRow)| group.people.contains(&person);
        let closed = self.closed_agents.iter().filter(|(org, _)| *org == row.org);
        let each = |agent: &(OrgId, String)| {
            let given = self.agents.get(agent).into_iter().flat_map(BTreeMap::values);
            let given = given.map(|row| Some((row.to, row.grant)));
            given.chain([None]).map(|given| (agent.1.clone(), given)).collect::<Vec<_>>()
        };
        let stands = Stands {
            row,
            standing: *standing,
            groups: self.groups.values().filter(member).map(|(_, group)| group.group).collect(),
            agents: closed.flat_map(each).collect(),
            roots: self.roots_of(row.org),
        };
        Some(stands.principal())
    }

    pub(super) fn login(&self, typed: &str) -> Option<LoginRow> {
        let meant = |kept: &&Somebody| {
            let org = self.orgs.get(&kept.row.org).map_or("", |org| org.name.as_str());
            let full = format!("{org}/{}", kept.row.handle);
            kept.is_called(typed) || name_key(typed) == name_key(&full)
        };
        let mut meant = self.people.values().filter(meant);
        let first = meant.next()?;
        meant.next().is_none().then(|| first.login())
    }

    pub(super) fn identity(&self, issuer: String, subject: String) -> Option<LoginRow> {
        self.identities
            .get(&(issuer, subject))
            .and_then(|person| self.people.get(person))
            .map(Somebody::login)
    }

    /// A link, and whoever it would let in.
    pub(super) fn link_state(&self, hash: [u8; 32]) -> Option<(LinkState, LoginRow)> {
        let (person, expires, parent) = *self.links.get(&hash)?;
        let kept = self.people.get(&person)?;
        Some((LinkState { person, expires, is_disabled: kept.is_disabled(), parent }, kept.login()))
    }

    pub(super) fn link(&self, hash: [u8; 32], now: Moment) -> Option<LoginRow> {
        let (link, login) = self.link_state(hash)?;
        link_lets_in(link, now).then_some(login)
    }

    pub(super) fn orgs(&self) -> Vec<OrgRow> {
        self.orgs.keys().filter_map(|org| self.org(*org)).collect()
    }

    pub(super) fn org(&self, org: OrgId) -> Option<OrgRow> {
        let people = self.in_org(org).filter(|kept| !kept.is_disabled()).count() as u32;
        self.orgs.get(&org).map(|row| OrgRow { people, ..row.clone() })
    }

    pub(super) fn page(&self, org: OrgId, after: Option<&str>, limit: usize) -> Vec<PersonRow> {
        let mut rows: Vec<_> = self.in_org(org).map(|kept| kept.row.clone()).collect();
        rows.retain(|row| after.is_none_or(|after| row.handle.as_str() > after));
        rows.sort_by(|a, b| a.handle.cmp(&b.handle));
        rows.truncate(limit);
        rows
    }

    pub(super) fn named(&self, org: OrgId, name: &str) -> Option<PersonRow> {
        self.in_org(org).find(|kept| kept.is_called(name)).map(|kept| kept.row.clone())
    }

    pub(super) fn groups_of(&self, org: OrgId) -> Vec<GroupRow> {
        let ours = self.groups.values().filter(|(other, _)| *other == org);
        let mut rows: Vec<_> = ours.map(|(_, row)| row.clone()).collect();
        rows.sort_by(|a, b| a.name.cmp(&b.name));
        rows
    }

    pub(super) fn roots_of(&self, org: OrgId) -> Vec<RootRow> {
        let ours = self.roots.iter().filter(|(other, ..)| *other == org);
        ours.map(|(_, directory, to)| RootRow { directory: directory.clone(), to: *to }).collect()
    }

    pub(super) fn offers_of(&self, org: OrgId, person: PersonId) -> Vec<OfferRow> {
        let theirs = |offer: &&OfferRow| [offer.from, offer.to].contains(&person);
        let known = self.of(org, person).is_some();
        let mut all: Vec<_> = self.offers.values().filter(theirs).filter(|_| known).copied().collect();
        all.sort_by_key(|offer| (offer.at, offer.session));
        all
    }

    pub(super) fn rules_of(&self, org: OrgId) -> Vec<RuleRow> {
        let ours = self.rules.iter().filter(|(other, _)| *other == org);
        ours.map(|(_, rule)| rule.clone()).collect()
    }

    pub(super) fn tokens_of(&self, org: OrgId, person: PersonId) -> Vec<TokenView> {
        let theirs = self.tokens.values().filter(|token| token.row.person == person);
        let shown = theirs.filter(|token| token.row.purpose.is_listed());
        let mut views: Vec<_> = shown.map(|token| TokenView::of(&token.row, token.last_used)).collect();
        views.retain(|_| self.of(org, person).is_some());
        views.sort_by_key(|view| Reverse((view.made_at, view.token)));
        views
    }

    pub(super) fn pushes(&self, org: OrgId, person: Option<PersonId>) -> Vec<PushRow> {
        let all = self.tokens.values().filter_map(|token| token.push.as_ref());
        let theirs = all.filter(|push| person.is_none_or(|person| person == push.person));
        let mut rows: Vec<_> = theirs.filter(|push| self.of(org, push.person).is_some()).cloned().collect();
        rows.sort_by_key(|push| (push.since, push.token));
        rows
    }

    pub(super) fn push(&self, token: TokenId) -> Option<PushRow> {
        self.tokens.get(&token)?.push.clone()
    }

    pub(super) fn put_person(&mut self, org: OrgId, new: NewPerson, is_host: bool, made_at: Moment) {
        let NewPerson { person, handle, name, email, role } = new;
        let (has_password, disabled_at) = (false, None);
        let row =
            PersonRow { person, org, handle, name, email, role, is_host, has_password, disabled_at, made_at };
        self.people.insert(person, Somebody { row, password: None, standing: FIRST_STANDING });
    }
}

impl Contents {
    pub(super) fn token(&self, hash: [u8; 32], now: Moment) -> Option<Principal> {
        let mut tokens = self.people.tokens.values();
        if let Some(token) = tokens.clone().find(|token| token.row.hash == hash) {
            return self.principal_by(token, None, now);
        }
        let token = tokens.find(|token| token.before.is_some_and(|(old, _)| old == hash))?;
        self.principal_by(token, token.before.map(|(_, until)| until), now)
    }

    pub(super) fn principal(&self, credential: TokenId, now: Moment) -> Option<Principal> {
        self.people.tokens.get(&credential).and_then(|token| self.principal_by(token, None, now))
    }

    pub(super) fn credential_state(&self, token: &StoredToken, old_until: Option<Moment>) -> CredentialState {
        let person = self.people.people.get(&token.row.person);
        CredentialState {
            last_used: token.last_used,
            old_until,
            is_under_way: token.row.bound.is_none_or(|(session, turn)| self.is_under_way(session, turn)),
            is_disabled: person.is_none_or(Somebody::is_disabled),
        }
    }

    fn principal_by(&self, token: &StoredToken, old_until: Option<Moment>, now: Moment) -> Option<Principal> {
        let state = self.credential_state(token, old_until);
        let person =
            self.people.principal_of(token.row.person).filter(|_| lets_in(&token.row, state, now))?;
        Some(token.row.of(person))
    }

    pub(super) fn is_under_way(&self, session: SessionId, turn: Turn) -> bool {
        let running =
            |standing: &Standing| standing.turn == Some(turn) && standing.state == ReceiptState::Running;
        self.sessions.get(&session).is_some_and(|kept| kept.projection.receipts.values().any(running))
    }

    pub(super) fn may_do(&self, session: SessionId, person: PersonId, act: Act) -> bool {
        self.sessions.get(&session).is_some_and(|kept| self.does(kept, person, act))
    }

    pub(super) fn does(&self, kept: &Kept, person: PersonId, act: Act) -> bool {
        let enabled = self.people.people.get(&person).is_some_and(|kept| !kept.is_disabled());
        let by = self.people.principal_of(person).filter(|_| enabled);
        by.is_some_and(|by| authorize(&by, act, &kept.record, ()).is_ok())
    }

    pub(super) fn touch_tokens(&mut self, used: Vec<(TokenId, Moment)>) {
        for (token, at) in used {
            if let Some(token) = self.people.tokens.get_mut(&token) {
                token.last_used = token.last_used.max(Some(at));
            }
        }
        self.committed();
    }

    pub(super) fn set_push(&mut self, by: &Principal, push: NewPush) -> bool {
        let NewPush { place, trail } = push;
        let Some(token) = by.credential.filter(|token| self.people.tokens.contains_key(token)) else {
            return false;
        };
        let taken = |push: &PushRow| push.place.endpoint == place.endpoint && push.place.auth == place.auth;
        for other in self.people.tokens.values_mut() {
            other.push = other.push.take().filter(|push| !taken(push));
        }
        let row = PushRow { token, person: by.person, place, since: trail.at };
        self.people.tokens.entry(token).and_modify(|token| token.push = Some(row));
        let theirs = self.people.pushes(by.org, Some(by.person));
        for old in &theirs[..theirs.len().saturating_sub(PUSHES_MAX)] {
            self.people.tokens.entry(old.token).and_modify(|token| token.push = None);
        }
        self.done(by, AuditSubject::named(token), &trail);
        true
    }

    pub(super) fn remove_push(&mut self, by: &Principal, token: TokenId, trail: &Trail) -> bool {
        let theirs = self.people.tokens.get_mut(&token).filter(|token| token.row.person == by.person);
        let gone = theirs.and_then(|token| token.push.take());
        self.done(by, AuditSubject::named(token), trail);
        gone.is_some()
    }

    pub(super) fn forget_push(&mut self, token: TokenId, endpoint: &str) {
        if let Some(token) = self.people.tokens.get_mut(&token) {
            token.push = token.push.take().filter(|push| push.place.endpoint != endpoint);
        }
        self.committed();
    }

    pub(super) fn grants(&self, org: OrgId, on: Resource) -> Vec<GrantRow> {
        let given = match on {
            Resource::Session(session) => {
                let kept = self.sessions.get(&session).filter(|kept| kept.record.org == org);
                kept.map(|kept| &kept.given)
            }
            Resource::Agent(agent) => self.people.agents.get(&(org, agent)),
        };
        given.into_iter().flat_map(|given| given.values()).copied().collect()
    }
}
