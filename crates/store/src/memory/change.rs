//! The rows of people in the memory store, as `change` reads and writes them. There is no rule here.

use super::contents::{Contents, Kept};
use super::people::StoredToken;
use crate::*;
use kernel::people::{
    CredentialState, HeirRoom, HostState, LinkState, PeopleWrite, PersonState, RuleState, SessionState,
    TokenHolder, Touched, name_key,
};
use kernel::{
    Grant, Grantee, GroupId, MessageId, Moment, OrgId, PersonId, Principal, RuleId, SessionId, TokenId,
};
use std::collections::BTreeSet;

type Read<T> = Result<T, StoreError>;

impl PeopleTx for Contents {
    type Error = StoreError;

    fn has_org(&mut self, org: OrgId) -> Read<bool> {
        Ok(self.people.orgs.contains_key(&org))
    }

    fn credential(&mut self, token: TokenId) -> Read<Option<(TokenRow, CredentialState)>> {
        let token = self.people.tokens.get(&token);
        Ok(token.map(|token| (token.row.clone(), self.credential_state(token, None))))
    }

    fn principal_of(&mut self, person: PersonId) -> Read<Option<Principal>> {
        Ok(self.people.principal_of(person))
    }

    fn key_use(&mut self, by: &Principal, key: &Key, now: Moment) -> Read<KeyUse> {
        let row = self.key_row(by.org, by.person, key);
        Ok(match plan::key_answer(Some(key), row.as_ref(), now) {
            KeyAnswer::Never => KeyUse::Never,
            KeyAnswer::Repeated(_) => KeyUse::Repeated,
            KeyAnswer::Conflict => KeyUse::Conflict,
        })
    }

    fn person_state(&mut self, org: OrgId, person: PersonId) -> Read<Option<PersonState>> {
        Ok(self.people.of(org, person).map(|kept| kept.state()))
    }

    fn has_group(&mut self, org: OrgId, group: GroupId) -> Read<bool> {
        Ok(self.people.groups.get(&group).is_some_and(|(other, _)| *other == org))
    }

    fn session_state(&mut self, session: SessionId) -> Read<Option<SessionState>> {
        let kept = self.sessions.get(&session);
        Ok(kept.map(|kept| SessionState {
            record: kept.record.clone(),
            ended: kept.projection.ended,
            directory: kept.scope.home().clone(),
            words_bytes: kept.words_bytes,
        }))
    }

    fn heir_room(&mut self, org: OrgId, person: PersonId) -> Read<HeirRoom> {
        let theirs = |kept: &&Kept| kept.record.org == org && kept.record.owner == person && kept.is_open();
        let open = self.sessions.values().filter(theirs).count() as u32;
        Ok(HeirRoom { open, words_bytes: self.disk_use(org, person).words_bytes })
    }

    fn offer(&mut self, session: SessionId) -> Read<Option<OfferRow>> {
        Ok(self.people.offers.get(&session).copied())
    }

    fn rule_state(&mut self, org: OrgId, rule: RuleId) -> Read<Option<RuleState>> {
        let mut rules = self.people.rules.iter().filter(|(other, _)| *other == org).map(|(_, rule)| rule);
        Ok(rules.find(|other| other.rule == rule).map(|rule| RuleState { session: rule.session }))
    }

    fn rules_in_force(&mut self, org: OrgId, now: Moment) -> Read<u32> {
        let in_force = |(other, rule): &&(OrgId, RuleRow)| *other == org && !rule.is_over(now);
        Ok(self.people.rules.iter().filter(in_force).count() as u32)
    }

    fn token_holder(&mut self, org: OrgId, token: TokenId) -> Read<Option<TokenHolder>> {
        let Some(StoredToken { row, .. }) = self.people.tokens.get(&token) else { return Ok(None) };
        let person = self.people.of(org, row.person).map(|kept| kept.state());
        Ok(person.map(|person| TokenHolder { person, purpose: row.purpose }))
    }

    fn tokens_of(&mut self, person: PersonId) -> Read<Vec<TokenId>> {
        let theirs = self.people.tokens.values().filter(|kept| kept.row.person == person);
        Ok(theirs.map(|kept| kept.row.token).collect())
    }

    fn made_with(&mut self, token: TokenId) -> Read<Vec<TokenId>> {
        let made = self.people.tokens.values().filter(|kept| kept.row.parent == Some(token));
        Ok(made.map(|kept| kept.row.token).collect())
    }

    fn active_owners(&mut self, org: OrgId) -> Read<u32> {
        let owners = self.people.in_org(org).filter(|kept| kept.row.role == kernel::Role::Owner);
        Ok(owners.filter(|kept| !kept.is_disabled()).count() as u32)
    }

    fn has_org_named(&mut self, key: &str) -> Read<bool> {
        Ok(self.people.orgs.values().any(|org| name_key(&org.name) == key))
    }

    fn has_group_named(&mut self, org: OrgId, name: &str) -> Read<bool> {
        Ok(self.people.groups.values().any(|(other, row)| *other == org && row.name == name))
    }

    fn has_handle(&mut self, org: OrgId, key: &str) -> Read<bool> {
        Ok(self.people.in_org(org).any(|kept| name_key(&kept.row.handle) == key))
    }

    fn email_holder(&mut self, org: OrgId, key: &str) -> Read<Option<PersonId>> {
        let holder = self.people.in_org(org).find(|kept| kept.row.email.as_deref() == Some(key));
        Ok(holder.map(|kept| kept.row.person))
    }

    fn identity_holder(&mut self, issuer: &str, subject: &str) -> Read<Option<PersonId>> {
        Ok(self.people.identities.get(&(issuer.to_owned(), subject.to_owned())).copied())
    }

    fn subject_at(&mut self, person: PersonId, issuer: &str) -> Read<Option<String>> {
        let theirs = self.people.identities.iter().find(|((at, _), whose)| at == issuer && **whose == person);
        Ok(theirs.map(|((_, subject), _)| subject.clone()))
    }

    fn host_state(&mut self) -> Read<Option<HostState>> {
        let host = self.people.people.values().find(|kept| kept.row.is_host);
        let of = |kept: &super::people::Somebody| (kept.row.person, kept.row.org);
        Ok(host.map(of).map(|(person, org)| HostState { person, org, has_name: true }))
    }

    fn link_state(&mut self, hash: [u8; 32]) -> Read<Option<(LinkState, LoginRow)>> {
        Ok(self.people.link_state(hash))
    }

    fn people_of(&mut self, org: OrgId, who: Grantee) -> Read<Vec<PersonId>> {
        Ok(self.people.who(org, who))
    }

    fn sessions_of(&mut self, org: OrgId, owner: PersonId) -> Read<Vec<SessionId>> {
        let theirs = |kept: &&Kept| (kept.record.org, kept.record.owner) == (org, owner);
        Ok(self.sessions.values().filter(theirs).map(|kept| kept.record.session).collect())
    }

    fn unfinished_of(&mut self, _: OrgId, person: PersonId) -> Read<Vec<SessionId>> {
        let unfinished =
            |message: &MessageId| self.receipt(*message).is_some_and(|row| !row.state.is_final());
        let theirs = self.messages.iter().filter(|(message, said)| said.by == person && unfinished(message));
        let sessions: BTreeSet<_> = theirs.map(|(_, said)| said.accepted.session).collect();
        Ok(sessions.into_iter().collect())
    }

    fn sessions_given(&mut self, org: OrgId, to: Grantee) -> Read<Vec<SessionId>> {
        let given = |kept: &&Kept| kept.record.org == org && kept.given.contains_key(&to);
        Ok(self.sessions.values().filter(given).map(|kept| kept.record.session).collect())
    }

    fn grow_standing(&mut self, _: OrgId, person: PersonId) -> Read<()> {
        self.people.people.entry(person).and_modify(|kept| kept.standing += 1);
        Ok(())
    }

    fn recheck(&mut self, session: SessionId, person: PersonId, at: Moment) -> Read<()> {
        self.put_into_inbox(session, at, InboxItem::Recheck { person });
        Ok(())
    }

    fn write_people(&mut self, write: PeopleWrite) -> Read<()> {
        let people = &mut self.people;
        match write {
            PeopleWrite::Org { org, name, at } => {
                unused("org", people.orgs.contains_key(&org))?;
                let settings = OrgSettings::default();
                people.orgs.insert(org, OrgRow { org, name, settings, made_at: at, people: 0 });
            }
            PeopleWrite::OrgName { org, name } => {
                people.orgs.entry(org).and_modify(|row| row.name = name);
            }
            PeopleWrite::Settings { org, settings } => {
                people.orgs.entry(org).and_modify(|row| row.settings = settings);
            }
            PeopleWrite::Person { org, person, is_host, at } => {
                unused("person", people.people.contains_key(&person.person))?;
                people.put_person(org, person, is_host, at);
            }
            PeopleWrite::PersonFields { person, name, email, role } => self.with_person(person, |row| {
                row.name = name.or(row.name.take());
                row.email = email.or(row.email.take());
                row.role = role.unwrap_or(row.role);
            }),
            PeopleWrite::Password { person, password } => {
                self.with_person(person, |row| row.has_password = password.is_some());
                self.people.people.entry(person).and_modify(|kept| kept.password = password);
            }
            PeopleWrite::DisabledAt { person, at } => {
                self.with_person(person, |row| row.disabled_at = at);
            }
            PeopleWrite::Identity { person, issuer, subject } => {
                people.identities.insert((issuer, subject), person);
            }
            PeopleWrite::DropIdentity { person, issuer } => {
                people.identities.retain(|(at, _), whose| *whose != person || *at != issuer);
            }
            PeopleWrite::Link { person, link, parent } => {
                people.links.insert(link.hash, (person, link.expires, parent));
            }
            PeopleWrite::DropLinks(links) => people.links.retain(|hash, (person, expires, parent)| {
                let link =
                    LinkState { person: *person, expires: *expires, is_disabled: false, parent: *parent };
                !links.has(hash, link)
            }),
            PeopleWrite::Token(row) => {
                unused("token", people.tokens.contains_key(&row.token))?;
                people
                    .tokens
                    .insert(row.token, StoredToken { row, last_used: None, before: None, push: None });
            }
            PeopleWrite::Secret { token, hash, old_until, used } => {
                people.tokens.entry(token).and_modify(|token| {
                    token.before = Some((token.row.hash, old_until));
                    token.row.hash = hash;
                    token.last_used = token.last_used.max(Some(used));
                });
            }
            PeopleWrite::DropTokens(tokens) => people.tokens.retain(|_, token| !tokens.has(&token.row)),
            PeopleWrite::Group { org, group, name } => {
                unused("group", people.groups.contains_key(&group))?;
                people.groups.insert(group, (org, GroupRow { group, name, people: vec![] }));
            }
            PeopleWrite::DropGroup { group, .. } => drop(people.groups.remove(&group)),
            PeopleWrite::Member { group, person } => self.with_group(group, |people| people.push(person)),
            PeopleWrite::DropMember { group, person } => {
                self.with_group(group, |people| people.retain(|other| *other != person));
            }
            PeopleWrite::SessionGrant { session, to, grant, by, at } => {
                self.set_grant(session, to, Some(GrantRow { to, grant, by, since: at }));
            }
            PeopleWrite::DropSessionGrant { session, to } => self.set_grant(session, to, None),
            PeopleWrite::CloseAgent { org, agent } => {
                people.closed_agents.insert((org, agent));
            }
            PeopleWrite::AgentGrant { org, agent, to, grant, by, at } => {
                let row = GrantRow { to, grant, by, since: at };
                people.agents.entry((org, agent)).or_default().insert(to, row);
            }
            PeopleWrite::DropAgentGrant { org, agent, to } => {
                people.agents.entry((org, agent)).and_modify(|given| {
                    given.remove(&to);
                });
            }
            PeopleWrite::DropGrantsTo { org, to } => self.drop_grants_to(org, to),
            PeopleWrite::DropGrantsOn(session) => self.drop_grants_on(session),
            PeopleWrite::Owner { session, to } => {
                self.set_owner(session, to);
                // An address of somebody's own stays theirs, and means this session no more.
                self.bound.retain(|(_, _, whose), row| whose.is_none() || row.session != session);
            }
            PeopleWrite::TellOwner { session, to, at } => {
                self.put_into_inbox(session, at, InboxItem::HandOver { to });
            }
            PeopleWrite::Offer(offer) => drop(people.offers.insert(offer.session, offer)),
            PeopleWrite::DropOffers(offers) => people.offers.retain(|_, offer| !offers.has(offer)),
            PeopleWrite::Root { org, root: RootRow { directory, to } } => {
                people.roots.insert((org, directory, to));
            }
            PeopleWrite::DropRoot { org, root: RootRow { directory, to } } => {
                people.roots.remove(&(org, directory, to));
            }
            PeopleWrite::DropRootsOf { org, to } => {
                people.roots.retain(|(other, _, whose)| *other != org || *whose != to);
            }
            PeopleWrite::Rule { org, rule } => {
                unused("rule", people.rules.iter().any(|(_, other)| other.rule == rule.rule))?;
                people.rules.push((org, rule));
            }
            PeopleWrite::DropRule(rule) => people.rules.retain(|(_, other)| other.rule != rule),
            PeopleWrite::DropRulesOver { org, at } => {
                people.rules.retain(|(other, rule)| *other != org || !rule.is_over(at));
            }
        }
        Ok(())
    }

    fn change_row(&mut self, person: PersonId, session: SessionId) -> Read<()> {
        let place = self.next_place();
        self.row_changes.insert((person, session), place);
        Ok(())
    }

    fn remember_change(&mut self, by: &Principal, key: &Key, _: Moment) -> Read<()> {
        self.remember(by.org, by.person, key, 0);
        Ok(())
    }

    fn audit_done(&mut self, org: OrgId, person: PersonId, about: AuditSubject, trail: &Trail) -> Read<()> {
        self.write_down(AuditRow::done(org, person, about, trail));
        self.committed();
        Ok(())
    }

    fn audit_refused(&mut self, entry: &AuditEntry) -> Read<()> {
        self.refused(entry);
        Ok(())
    }
}

/// A minted id that is there already is a mistake of the caller's.
fn unused(what: &str, used: bool) -> Read<()> {
    if used { Err(StoreError::Unavailable(format!("this {what} was made before"))) } else { Ok(()) }
}

impl Contents {
    fn with_person(&mut self, person: PersonId, change: impl FnOnce(&mut PersonRow)) {
        if let Some(kept) = self.people.people.get_mut(&person) {
            change(&mut kept.row);
        }
    }

    fn with_group(&mut self, group: GroupId, change: impl FnOnce(&mut Vec<PersonId>)) {
        if let Some((_, row)) = self.people.groups.get_mut(&group) {
            change(&mut row.people);
            row.people.sort_unstable();
            row.people.dedup();
        }
    }

    fn set_grant(&mut self, session: SessionId, to: Grantee, row: Option<GrantRow>) {
        if let Some(kept) = self.sessions.get_mut(&session) {
            kept.given.remove(&to);
            kept.given.extend(row.map(|row| (to, row)));
            kept.record.grants = kept.given.values().map(|row| (row.to, row.grant)).collect();
            kept.record.revision += 1;
        }
    }

    fn drop_grants_to(&mut self, org: OrgId, to: Grantee) {
        for session in self.sessions_given(org, to).expect("memory can be read") {
            self.set_grant(session, to, None);
        }
        for (_, given) in self.people.agents.iter_mut().filter(|((other, _), _)| *other == org) {
            given.remove(&to);
        }
    }

    fn drop_grants_on(&mut self, session: SessionId) {
        if let Some(kept) = self.sessions.get_mut(&session) {
            kept.given.clear();
            kept.record.grants.clear();
            kept.record.revision += 1;
        }
    }

    fn set_owner(&mut self, session: SessionId, to: PersonId) {
        if let Some(kept) = self.sessions.get_mut(&session) {
            kept.record.owner = to;
            kept.record.revision += 1;
        }
    }

    pub(super) fn force_grant(&mut self, session: SessionId, person: PersonId, grant: Option<Grant>) {
        let Some(Kept { record, .. }) = self.sessions.get(&session) else { return };
        let (org, by, since, to) = (record.org, record.owner, Moment(0), Grantee::Person(person));
        let row = grant.map(|grant| GrantRow { to, grant, by, since });
        self.set_grant(session, to, row);
        self.force_touch(org, Touched { people: vec![to], within: Some(session) });
    }

    pub(super) fn force_disable(&mut self, person: PersonId) {
        let Some(by) = self.people.principal_of(person) else { return };
        self.with_person(person, |row| row.disabled_at = row.disabled_at.or(Some(Moment(0))));
        self.people.tokens.retain(|_, token| token.row.person != person);
        self.people.links.retain(|_, (whose, ..)| *whose != person);
        self.force_touch(by.org, Touched { people: vec![Grantee::Person(person)], within: None });
    }

    fn force_touch(&mut self, org: OrgId, touched: Touched) {
        crate::change::touch(self, org, &touched, Moment(0)).expect("memory has room");
    }

    pub(super) fn force_root(&mut self, org: OrgId, directory: &str, to: Grantee) {
        self.people.roots.insert((org, directory.to_owned(), to));
    }

    pub(super) fn force_in(&mut self, org: OrgId, new: NewPerson) -> Principal {
        let person = new.person;
        self.people.put_person(org, new, false, Moment(0));
        self.people.principal_of(person).expect("they were put there just now")
    }
}
