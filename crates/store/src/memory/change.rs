//! How the memory store changes who may do what: first everything that may refuse, then the change, then whom it touches.

use super::accept::Known;
use super::contents::{Contents, Kept, Outcome};
use crate::*;
use kernel::{
    Authorized, Grant, Grantee, GroupId, MessageId, Moment, OrgId, PersonId, Principal, Role, SessionId,
    TokenId, Witness,
};
use std::collections::BTreeSet;

/// Whom a change touches.
enum Touched {
    Nobody,
    /// Their standings grow, and what they have said anywhere is looked at again.
    People(Vec<PersonId>),
    /// What they have said in these sessions is looked at again.
    Within(Vec<SessionId>, Vec<PersonId>),
}

impl Contents {
    pub(super) fn change(&mut self, wish: &Authorized<NewChange>) -> Result<Changing, StoreError> {
        let (by, NewChange { change, key, trail }) = (wish.by(), wish.wish());
        match self.known(by, key.as_ref(), trail.at) {
            Known::Never => {}
            Known::Before(Outcome::Change) => return Ok(Changing::Before),
            Known::Before(_) | Known::Conflict => return Ok(Changing::Conflict),
        }
        if !self.is_still_so(by, change, wish.witness()) {
            return Ok(Changing::Moved);
        }
        if let Some(refused) = self.refuses_change(by, change)? {
            return Ok(refused);
        }
        let touched = self.put(by, change, trail.at);
        self.touch(touched, trail.at);
        self.remember(by, key.as_ref(), Outcome::Change);
        self.done(by, change.about(), trail);
        Ok(Changing::Done)
    }

    /// Is what was seen when it was authorized still so, and was it about this?
    fn is_still_so(&self, by: &Principal, change: &Change, witness: Witness) -> bool {
        let with = |session: SessionId| {
            self.sessions.get(&session).is_some_and(|kept| self.may_still(by, kept, witness))
        };
        let with_org = || witness.session.is_none() && self.people.stands(by, witness);
        match (session_of(change), self.ruled_session(by.org, change)) {
            (Some(session), _) => with(session),
            (None, Some(session)) => with_org() || with(session),
            (None, None) => with_org(),
        }
    }

    /// The session that a rule is for.
    fn ruled_session(&self, org: OrgId, change: &Change) -> Option<SessionId> {
        match change {
            Change::AddRule(rule) => rule.session,
            Change::RemoveRule(rule) => self.people.rule(org, *rule)?.session,
            _ => None,
        }
    }

    fn refuses_change(&self, by: &Principal, change: &Change) -> Result<Option<Changing>, StoreError> {
        let org = by.org;
        let found = |found: bool| if found { None } else { Some(Changing::NotFound) };
        let group = |group: &GroupId| self.people.groups.get(group).is_some_and(|(other, _)| *other == org);
        let person = |person| self.people.of(org, person).is_some();
        let to = |to: &Grantee| match to {
            Grantee::Person(id) => person(*id),
            Grantee::Group(id) => group(id),
            Grantee::Org => true,
        };
        Ok(match change {
            Change::MakeOrg { org, .. } => {
                self.unused("org", self.people.orgs.contains_key(&org.org))?;
                self.unused("person", self.people.people.contains_key(&org.owner.person))?;
                taken("name", self.people.orgs.values().any(|other| same(&other.name, &org.name)))
            }
            Change::Settings(_) => None,
            Change::AddPerson { person: new, .. } => {
                self.unused("person", self.people.people.contains_key(&new.person))?;
                let called_so = |row: &PersonRow| same(&row.handle, &new.handle);
                let handle = taken("handle", self.others(org, new.person).any(called_so));
                handle.or_else(|| self.email_taken(org, new.person, new.email.as_ref()))
            }
            Change::ChangePerson { person, was, email, role, .. } => {
                let demoted = role.is_some_and(|role| role < Role::Owner);
                (self.judged_by(org, *person, *was))
                    .or_else(|| self.last_owner(org, *person).filter(|_| demoted))
                    .or_else(|| self.email_taken(org, *person, email.as_ref()))
            }
            Change::Disable { person, was } => {
                self.judged_by(org, *person, *was).or_else(|| self.last_owner(org, *person))
            }
            Change::SetPassword { person, was, .. }
            | Change::Enable { person, was }
            | Change::MakeLink { person, was, .. } => self.judged_by(org, *person, *was),
            Change::SetIdentity { person, was, issuer, subject } => {
                let whose = self.people.identities.get(&(issuer.clone(), subject.clone()));
                let is_another = |((at, name), whose): (&(String, String), &PersonId)| {
                    at == issuer && name != subject && whose == person
                };
                // Only somebody who looks after them may put another name in the place of theirs.
                let is_kept = [*person, PersonId::ENGINE].contains(&by.person)
                    && self.people.identities.iter().any(is_another);
                let tied = taken("identity", is_kept || whose.is_some_and(|whose| whose != person));
                self.judged_by(org, *person, *was).or(tied)
            }
            Change::MakeGroup { group, name } => {
                self.unused("group", self.people.groups.contains_key(group))?;
                let ours = self.people.groups.values().filter(|(other, _)| *other == org);
                taken("name", ours.into_iter().any(|(_, row)| row.name == *name))
            }
            Change::RemoveGroup { group: id } => found(group(id)),
            Change::Join { group: id, person: who } | Change::Leave { group: id, person: who } => {
                found(group(id) && person(*who))
            }
            Change::Give { to: whom, .. } => found(to(whom)),
            // What is given to a group that is gone can still be taken back.
            Change::TakeBack { .. } => None,
            Change::HandOver { to, .. } => self.cannot_own(org, *to),
            Change::HandOverAll { from, was, to } => {
                self.judged_by(org, *from, *was).or_else(|| self.cannot_own(org, *to))
            }
            Change::AddRoot(root) | Change::RemoveRoot(root) => found(to(&root.to)),
            Change::MakeToken(row) => {
                self.unused("token", self.people.tokens.contains_key(&row.token))?;
                found(person(row.person))
            }
            Change::RevokeToken { person: whose, token } => {
                let theirs = self.people.tokens.get(token).is_some_and(|token| token.row.person == *whose);
                found(person(*whose) && theirs)
            }
            Change::AddRule(rule) => {
                self.unused("rule", self.people.rules.iter().any(|(_, other)| other.rule == rule.rule))?;
                let asks = match &rule.effect {
                    RuleEffect::Ask(whom) => to(whom),
                    RuleEffect::Allow | RuleEffect::Deny => true,
                };
                let open = |session: &SessionId| {
                    let kept = self.sessions.get(session);
                    kept.is_some_and(|kept| kept.record.org == org && kept.is_open())
                };
                found(person(rule.by) && asks && rule.session.as_ref().is_none_or(open))
            }
            Change::RemoveRule(rule) => found(self.people.rule(org, *rule).is_some()),
        })
    }

    /// A minted id that is there already is a bug of the caller.
    fn unused(&self, what: &str, used: bool) -> Result<(), StoreError> {
        if used { Err(StoreError::Unavailable(format!("this {what} was made before"))) } else { Ok(()) }
    }

    fn judged_by(&self, org: OrgId, person: PersonId, was: Role) -> Option<Changing> {
        match self.people.of(org, person) {
            None => Some(Changing::NotFound),
            Some(kept) if kept.row.role != was => Some(Changing::Moved),
            Some(_) => None,
        }
    }

    /// Who is disabled or only looks could do nothing with a session, and nobody else could for them.
    fn cannot_own(&self, org: OrgId, heir: PersonId) -> Option<Changing> {
        match self.people.of(org, heir) {
            None => Some(Changing::NotFound),
            Some(heir) => {
                let cannot = heir.row.disabled_at.is_some() || heir.row.role == Role::Viewer;
                cannot.then_some(Changing::CannotOwn)
            }
        }
    }

    /// An org whose only owner who can come in is this one.
    fn last_owner(&self, org: OrgId, person: PersonId) -> Option<Changing> {
        let can = |row: &PersonRow| row.role == Role::Owner && row.disabled_at.is_none();
        let is = self.people.of(org, person).is_some_and(|kept| can(&kept.row));
        (is && !self.others(org, person).any(can)).then_some(Changing::LastOwner)
    }

    fn others(&self, org: OrgId, person: PersonId) -> impl Iterator<Item = &PersonRow> {
        let rows = self.people.people.values().map(|kept| &kept.row);
        rows.filter(move |row| row.org == org && row.person != person)
    }

    fn email_taken(&self, org: OrgId, person: PersonId, email: Option<&String>) -> Option<Changing> {
        let same = |row: &PersonRow| row.email.is_some() && row.email.as_ref() == email;
        taken("email", self.others(org, person).any(same))
    }

    /// Everything that may refuse has been asked.
    fn put(&mut self, by: &Principal, change: &Change, at: Moment) -> Touched {
        let org = by.org;
        match change.clone() {
            Change::MakeOrg { org: new, link } => {
                self.people.links.insert(link.hash, (new.owner.person, link.expires));
                self.people.put_org(new, false, at);
                Touched::Nobody
            }
            Change::Settings(settings) => {
                self.people.orgs.entry(org).and_modify(|row| row.settings = settings);
                Touched::Nobody
            }
            Change::AddPerson { person, link } => {
                self.people.links.insert(link.hash, (person.person, link.expires));
                self.people.put_person(org, person, false, at);
                Touched::Nobody
            }
            Change::ChangePerson { person, was, name, email, role } => {
                self.with_person(person, |row| {
                    row.name = name.or(row.name.take());
                    row.email = email.or(row.email.take());
                    row.role = role.unwrap_or(was);
                });
                if role.is_some_and(|role| role != was) {
                    Touched::People(vec![person])
                } else {
                    Touched::Nobody
                }
            }
            Change::SetPassword { person, password, keep, .. } => self.set_password(person, password, keep),
            Change::Disable { person, .. } => self.disable(person, at),
            Change::Enable { person, .. } => {
                self.with_person(person, |row| row.disabled_at = None);
                Touched::People(vec![person])
            }
            Change::SetIdentity { person, issuer, subject, .. } => {
                // Somebody has one name at each provider.
                self.people.identities.retain(|(other, _), whose| *whose != person || *other != issuer);
                self.people.identities.insert((issuer, subject), person);
                Touched::People(vec![person])
            }
            Change::MakeLink { person, link, .. } => {
                self.people.links.insert(link.hash, (person, link.expires));
                Touched::Nobody
            }
            Change::MakeGroup { group, name } => {
                self.people.groups.insert(group, (org, GroupRow { group, name, people: vec![] }));
                Touched::Nobody
            }
            Change::RemoveGroup { group } => self.remove_group(org, group),
            Change::Join { group, person } => {
                self.with_group(group, |people| people.push(person));
                Touched::People(vec![person])
            }
            Change::Leave { group, person } => {
                self.with_group(group, |people| people.retain(|other| *other != person));
                Touched::People(vec![person])
            }
            Change::Give { on, to, grant } => {
                self.set_grant(org, on, to, Some(GrantRow { to, grant, by: by.person, since: at }))
            }
            Change::TakeBack { on, to } => self.set_grant(org, on, to, None),
            Change::HandOver { session, to } => self.hand_over(vec![session], to),
            Change::HandOverAll { from, to, .. } => {
                let theirs = |kept: &&Kept| kept.record.org == org && kept.record.owner == from;
                let sessions =
                    self.sessions.values().filter(theirs).map(|kept| kept.record.session).collect();
                self.hand_over(sessions, to)
            }
            Change::AddRoot(RootRow { directory, to }) => {
                self.people.roots.insert((org, directory, to));
                Touched::People(self.people.who(org, to))
            }
            Change::RemoveRoot(RootRow { directory, to }) => {
                self.people.roots.remove(&(org, directory, to));
                Touched::People(self.people.who(org, to))
            }
            Change::MakeToken(row) => {
                self.put_token(row);
                Touched::Nobody
            }
            Change::RevokeToken { person, token } => {
                self.people.tokens.remove(&token);
                Touched::People(vec![person])
            }
            Change::AddRule(rule) => {
                self.people.add_rule(org, rule, at);
                Touched::Nobody
            }
            Change::RemoveRule(rule) => {
                self.people.rules.retain(|(_, other)| other.rule != rule);
                Touched::Nobody
            }
        }
    }

    fn set_password(&mut self, person: PersonId, password: Option<String>, keep: Option<TokenId>) -> Touched {
        self.with_person(person, |row| row.has_password = password.is_some());
        self.people.people.entry(person).and_modify(|kept| kept.password = password);
        self.people.tokens.retain(|token, kept| {
            let signed_in = matches!(kept.row.purpose, Purpose::Browser | Purpose::Cli);
            kept.row.person != person || !signed_in || keep == Some(*token)
        });
        Touched::People(vec![person])
    }

    fn disable(&mut self, person: PersonId, at: Moment) -> Touched {
        self.with_person(person, |row| row.disabled_at = row.disabled_at.or(Some(at)));
        self.people.tokens.retain(|_, token| token.row.person != person);
        self.people.links.retain(|_, (whose, _)| *whose != person);
        Touched::People(vec![person])
    }

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

    fn remove_group(&mut self, org: OrgId, group: GroupId) -> Touched {
        let to = Grantee::Group(group);
        let touched = self.people.who(org, to);
        let given = |kept: &&Kept| kept.given.contains_key(&to);
        let sessions: Vec<_> = self.sessions.values().filter(given).map(|kept| kept.record.session).collect();
        for session in sessions {
            self.set_grant(org, Resource::Session(session), to, None);
        }
        for given in self.people.agents.values_mut() {
            given.remove(&to);
        }
        self.people.roots.retain(|(_, _, other)| *other != to);
        self.people.groups.remove(&group);
        Touched::People(touched)
    }

    fn set_grant(&mut self, org: OrgId, on: Resource, to: Grantee, row: Option<GrantRow>) -> Touched {
        match on {
            Resource::Session(session) => {
                if let Some(kept) = self.sessions.get_mut(&session) {
                    kept.given.remove(&to);
                    kept.given.extend(row.map(|row| (to, row)));
                    kept.record.grants = kept.given.values().map(|row| (row.to, row.grant)).collect();
                    kept.record.revision += 1;
                }
                Touched::Within(vec![session], self.people.who(org, to))
            }
            Resource::Agent(agent) => {
                if let Some(row) = row {
                    self.people.agents.entry((org, agent)).or_default().insert(to, row);
                } else if let Some(given) = self.people.agents.get_mut(&(org, agent)) {
                    // Where nothing is left it stays closed.
                    given.remove(&to);
                }
                Touched::People(self.people.who(org, Grantee::Org))
            }
        }
    }

    fn hand_over(&mut self, sessions: Vec<SessionId>, to: PersonId) -> Touched {
        let mut touched = vec![to];
        for session in &sessions {
            if let Some(kept) = self.sessions.get_mut(session) {
                touched.push(kept.record.owner);
                kept.record.owner = to;
                kept.record.revision += 1;
            }
        }
        Touched::Within(sessions, touched)
    }

    /// Standings grow, and whatever those people have said that is not finished is looked at again.
    fn touch(&mut self, touched: Touched, at: Moment) {
        let (people, within) = match touched {
            Touched::Nobody => return,
            Touched::People(people) => (people, None),
            Touched::Within(sessions, people) => (people, Some(sessions)),
        };
        for person in people.into_iter().collect::<BTreeSet<_>>() {
            if within.is_none() {
                self.people.people.entry(person).and_modify(|kept| kept.standing += 1);
            }
            let mut sessions = self.unfinished_of(person);
            sessions.retain(|session| within.as_ref().is_none_or(|within| within.contains(session)));
            for session in sessions {
                self.put_into_inbox(session, at, InboxItem::Recheck { person });
            }
        }
    }

    fn unfinished_of(&self, person: PersonId) -> BTreeSet<SessionId> {
        let unfinished =
            |message: &MessageId| self.receipt(*message).is_some_and(|row| !row.state.is_final());
        let theirs = self.messages.iter().filter(|(message, said)| said.by == person && unfinished(message));
        theirs.map(|(_, said)| said.accepted.session).collect()
    }

    pub(super) fn force_grant(&mut self, session: SessionId, person: PersonId, grant: Option<Grant>) {
        let Some(Kept { record, .. }) = self.sessions.get(&session) else { return };
        let (org, by, since, to) = (record.org, record.owner, Moment(0), Grantee::Person(person));
        let row = grant.map(|grant| GrantRow { to, grant, by, since });
        let touched = self.set_grant(org, Resource::Session(session), to, row);
        self.touch(touched, since);
    }

    pub(super) fn force_disable(&mut self, person: PersonId) {
        let Some(by) = self.people.principal_of(person) else { return };
        let touched = self.disable(by.person, Moment(0));
        self.touch(touched, Moment(0));
    }

    pub(super) fn force_root(&mut self, org: OrgId, directory: &str, to: kernel::Grantee) {
        self.people.roots.insert((org, directory.to_owned(), to));
    }

    pub(super) fn force_in(&mut self, org: OrgId, new: NewPerson) -> Principal {
        let person = new.person;
        self.people.put_person(org, new, false, Moment(0));
        self.people.principal_of(person).expect("they were put there just now")
    }
}

/// The session whose record a change is authorized by.
fn session_of(change: &Change) -> Option<SessionId> {
    match change {
        Change::Give { on: Resource::Session(session), .. }
        | Change::TakeBack { on: Resource::Session(session), .. }
        | Change::HandOver { session, .. } => Some(*session),
        _ => None,
    }
}

/// Capital letters make no other name.
fn same(one: &str, other: &str) -> bool {
    one.to_lowercase() == other.to_lowercase()
}

fn taken(what: &'static str, is: bool) -> Option<Changing> {
    is.then_some(Changing::Taken(what))
}
