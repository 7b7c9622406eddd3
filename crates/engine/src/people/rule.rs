//! What each change of who may do what needs, and the only way to the store's `change`.
//!
//! The role of whoever it is about comes from the stored row, never from the request; the store compares it again in the
//! transaction. What was seen and has changed is looked at again, at most `RESOLVE_MAX` times.

use crate::intake::{RESOLVE_MAX, check_trace};
use crate::{Engine, Refused, Trace};
use kernel::{
    Act, Authorized, OrgAct, PersonId, Principal, Record, Right, Rights, Role, RuleId, authorize,
    authorize_right, authorize_rule,
};
use serde::Serialize;
use store::{Change, Changing, NewChange, PersonRow, Resource, RuleRow, StoreError};

/// No rule is ever called so.
const NO_RULE: RuleId = RuleId::from_bits(0);

/// What a change is about, as far as rights are concerned.
enum Needs {
    Org(OrgAct),
    /// To rule this session.
    Session(Record),
}

/// What came of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Changed {
    Now,
    /// It was done before, under the same key.
    Before,
}

impl Changed {
    /// For changes that show a secret: it is shown once.
    pub(super) fn only_now(self) -> Result<(), Refused> {
        match self {
            Self::Now => Ok(()),
            Self::Before => Err(Refused::ShownOnce),
        }
    }
}

impl Engine {
    /// Changes who may do what; a refusal is written down. `body` is what makes two wishes the same: no secrets.
    pub(super) async fn change(
        &self,
        by: &Principal,
        change: Change,
        body: impl Serialize,
        trace: Trace,
    ) -> Result<Changed, Refused> {
        let (verb, about) = (verb_of(&change), change.about());
        let subject = about.session.map(|session| session.to_string()).or(about.subject);
        let result = self.change_now(by, change, body, &trace).await;
        self.note_refusal(by, verb, &trace, subject, result).await
    }

    /// The same, for whoever writes refusals down themselves.
    pub(super) async fn change_now(
        &self,
        by: &Principal,
        change: Change,
        body: impl Serialize,
        trace: &Trace,
    ) -> Result<Changed, Refused> {
        check_trace(trace)?;
        let key = self.key(verb_of(&change), trace, &body);
        let mut by = by.clone();
        for _ in 0..RESOLVE_MAX {
            let trail = self.trail(verb_of(&change), trace);
            let new = NewChange { change: change.clone(), key: key.clone(), trail };
            match self.change_once(&by, new).await? {
                Changing::Done => return Ok(Changed::Now),
                Changing::Before => return Ok(Changed::Before),
                Changing::Conflict => return Err(Refused::KeyReused),
                Changing::Moved => by = self.again(&by).await?,
                Changing::NotFound => return Err(Refused::NotFound { what: what_of(&change) }),
                Changing::Taken(what) => return Err(Refused::Taken { what }),
                Changing::LastOwner => return Err(Refused::LastOwner),
                Changing::CannotOwn => return Err(Refused::CannotOwn),
            }
        }
        Err(Refused::Changed)
    }

    async fn change_once(&self, by: &Principal, new: NewChange) -> Result<Changing, Refused> {
        let allowed = self.authorize_change(by, new).await?;
        let engine = self.clone();
        // Whoever hangs up does not keep others from hearing of it.
        self.surely(async move {
            let changing = engine.store().change(allowed).await;
            if let Ok(Changing::Done) | Err(StoreError::Unknown(_)) = changing {
                engine.rights_changed();
                engine.audited();
            }
            Ok(changing?)
        })
        .await
    }

    async fn authorize_change(
        &self,
        by: &Principal,
        mut new: NewChange,
    ) -> Result<Authorized<NewChange>, Refused> {
        let allowed = match self.needs_of(by, &mut new.change).await? {
            Needs::Org(act) => authorize_rule(by, act, new),
            Needs::Session(record) => authorize(by, Act::Rule, &record, new),
        };
        allowed.map_err(|denied| Refused::denied(denied, "session"))
    }

    /// What lets a person in (a link, a password) makes a credential that is good for everything, so a lesser one cannot
    /// make it: it would be a way to get more out of it than was put in.
    pub(super) fn may_let_in(&self, by: &Principal) -> Result<(), Refused> {
        self.may(by, OrgAct::Mint { rights: Rights::ALL })?;
        if by.client.is_none() {
            return Ok(());
        }
        let reason = "this credential is for one client name: use one that is for all".to_owned();
        Err(Refused::Invalid { field: "client", reason })
    }

    /// The rule: who may change what.
    async fn needs_of(&self, by: &Principal, change: &mut Change) -> Result<Needs, Refused> {
        let is_me = |person: &PersonId| *person == by.person;
        if let Change::MakeLink { .. } | Change::SetPassword { password: Some(_), .. } = change {
            self.may_let_in(by)?;
        }
        Ok(Needs::Org(match change {
            Change::MakeOrg { .. } => OrgAct::MakeOrg,
            Change::Settings(_)
            | Change::MakeGroup { .. }
            | Change::RemoveGroup { .. }
            | Change::AddRoot(_)
            | Change::RemoveRoot(_)
            | Change::Give { on: Resource::Agent(_), .. }
            | Change::TakeBack { on: Resource::Agent(_), .. } => OrgAct::Rules,
            Change::Give { on: Resource::Session(session), .. }
            | Change::TakeBack { on: Resource::Session(session), .. }
            | Change::HandOver { session, .. } => {
                authorize_right(by, Act::Rule).map_err(|denied| Refused::denied(denied, "session"))?;
                return Ok(Needs::Session(self.record(*session).await?));
            }
            // Whoever manages a session says what may be done in it without asking, and nobody else does.
            Change::AddRule(RuleRow { session: Some(session), .. }) => {
                authorize_right(by, Act::Rule).map_err(|denied| Refused::denied(denied, "session"))?;
                return Ok(Needs::Session(self.record(*session).await?));
            }
            Change::AddRule(_) => OrgAct::Rules,
            Change::RemoveRule(rule) => match self.rule_of(by, *rule).await {
                // Removed before, perhaps by this very wish, of which the caller has not heard: the store knows by its key.
                // What is asked of it for that can remove nothing.
                Err(Refused::NotFound { .. }) if self.may(by, OrgAct::SeePeople).is_ok() => {
                    *rule = NO_RULE;
                    OrgAct::SeePeople
                }
                found => match found?.session {
                    Some(session) => return Ok(Needs::Session(self.record(session).await?)),
                    None => OrgAct::Rules,
                },
            },
            Change::AddPerson { person, .. } => {
                OrgAct::Person { role: Role::Viewer, becomes: Some(person.role) }
            }
            Change::ChangePerson { person, was, email: None, role: None, .. } if is_me(person) => {
                *was = by.role;
                OrgAct::Myself
            }
            Change::ChangePerson { person, was, role, .. } => {
                *was = self.person_of(by, *person).await?.role;
                OrgAct::Person { role: *was, becomes: *role }
            }
            Change::SetPassword { person, was, .. }
            | Change::SetIdentity { person, was, .. }
            | Change::MakeLink { person, was, .. }
            | Change::HandOverAll { from: person, was, .. }
                if is_me(person) =>
            {
                *was = by.role;
                OrgAct::Myself
            }
            Change::SetPassword { person, was, .. }
            | Change::SetIdentity { person, was, .. }
            | Change::MakeLink { person, was, .. }
            | Change::HandOverAll { from: person, was, .. }
            | Change::Disable { person, was }
            | Change::Enable { person, was } => {
                *was = self.person_of(by, *person).await?.role;
                OrgAct::Person { role: *was, becomes: None }
            }
            Change::Join { person, .. } | Change::Leave { person, .. } => {
                OrgAct::Person { role: self.person_of(by, *person).await?.role, becomes: None }
            }
            Change::MakeToken(token) => OrgAct::Mint { rights: token.rights },
            Change::RevokeToken { person, token } if is_me(person) => OrgAct::GiveUp { credential: *token },
            Change::RevokeToken { person, .. } => {
                OrgAct::Person { role: self.person_of(by, *person).await?.role, becomes: None }
            }
        }))
    }

    /// The stored row of somebody whom the caller wishes to change. Whoever could change nobody is told so before anybody
    /// is looked up.
    pub(super) async fn person_of(&self, by: &Principal, person: PersonId) -> Result<PersonRow, Refused> {
        self.may(by, OrgAct::Person { role: Role::Viewer, becomes: None })?;
        self.store().person(by.org, person).await?.ok_or(Refused::NotFound { what: "person" })
    }

    /// The stored row of a rule of their org. One of a session that they do not see is none.
    pub(super) async fn rule_of(&self, by: &Principal, rule: RuleId) -> Result<RuleRow, Refused> {
        // Which right it takes depends on what it is for; whoever has neither is told so before it is looked up.
        if by.bound.is_some() {
            return Err(Refused::BoundElsewhere);
        }
        if !by.rights.has(Right::Admin) {
            authorize_right(by, Act::Rule).map_err(|denied| Refused::denied(denied, "rule"))?;
        }
        let rows = self.store().rules(by.org).await?;
        let none = Refused::NotFound { what: "rule" };
        let row = rows.into_iter().find(|row| row.rule == rule).ok_or(none.clone())?;
        if self.sees_rule(by, &row).await? { Ok(row) } else { Err(none) }
    }

    /// Whether they may do this with their org.
    pub(crate) fn may(&self, by: &Principal, act: OrgAct) -> Result<(), Refused> {
        authorize_rule(by, act, ()).map(drop).map_err(|denied| Refused::denied(denied, "org"))
    }
}

/// What the audit calls a change.
fn verb_of(change: &Change) -> &'static str {
    match change {
        Change::MakeOrg { .. } => "make_org",
        Change::Settings(_) => "settings",
        Change::AddPerson { .. } => "add_person",
        Change::ChangePerson { .. } => "change_person",
        Change::SetPassword { .. } => "set_password",
        Change::Disable { .. } => "disable",
        Change::Enable { .. } => "enable",
        Change::SetIdentity { .. } => "set_identity",
        Change::MakeLink { .. } => "make_link",
        Change::MakeGroup { .. } => "make_group",
        Change::RemoveGroup { .. } => "remove_group",
        Change::Join { .. } => "join",
        Change::Leave { .. } => "leave",
        Change::Give { .. } => "give",
        Change::TakeBack { .. } => "take_back",
        Change::HandOver { .. } => "hand_over",
        Change::HandOverAll { .. } => "hand_over_all",
        Change::AddRoot(_) => "add_root",
        Change::RemoveRoot(_) => "remove_root",
        Change::MakeToken(_) => "make_token",
        Change::RevokeToken { .. } => "revoke_token",
        Change::AddRule(_) => "add_rule",
        Change::RemoveRule(_) => "remove_rule",
    }
}

/// What is not there when the store finds nothing.
fn what_of(change: &Change) -> &'static str {
    match change {
        Change::RevokeToken { .. } | Change::MakeToken(_) => "token",
        Change::AddRule(_) | Change::RemoveRule(_) => "rule",
        Change::RemoveGroup { .. } | Change::MakeGroup { .. } => "group",
        Change::Join { .. } | Change::Leave { .. } => "group or person",
        Change::Give { .. } | Change::TakeBack { .. } | Change::AddRoot(_) | Change::RemoveRoot(_) => {
            "person or group"
        }
        Change::MakeOrg { .. } | Change::Settings(_) => "org",
        Change::AddPerson { .. }
        | Change::ChangePerson { .. }
        | Change::SetPassword { .. }
        | Change::Disable { .. }
        | Change::Enable { .. }
        | Change::SetIdentity { .. }
        | Change::MakeLink { .. }
        | Change::HandOver { .. }
        | Change::HandOverAll { .. } => "person",
    }
}
