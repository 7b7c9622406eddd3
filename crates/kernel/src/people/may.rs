//! The rule of who may change rights, in two steps: `may_ask` before anything is looked up, `may_change` on the rows.

use super::{ChangeRows, PeopleChange, PersonState, Resource, RuleRow};
use crate::{
    Act, Denied, EndWhy, OrgAct, PersonId, Principal, Right, Rights, Role, SessionId, authorize,
    authorize_org, authorize_right, grant_of,
};

/// Why a change of who may do what is not made. Nothing was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeopleRefusal {
    /// The credential is good for nothing any more, or its person is disabled.
    Unauthenticated,
    /// They may not. Never `Unseen`, which is `NotFound`.
    Denied(Denied),
    /// There is no such thing in the org, or not for them.
    NotFound(&'static str),
    /// Somebody or something is called so already.
    Taken(&'static str),
    /// An org keeps owners who can come in.
    LastOwner,
    /// Whoever is to own a session is disabled, or a viewer.
    CannotOwn,
    /// Whoever is to own it owns it.
    OwnsAlready,
    /// It is offered to somebody, who has not answered yet.
    OfferedAlready,
    /// Whoever is to own it has so many open sessions that there is no room for one more.
    TooManyOpen { limit: u32 },
    /// The words in the sessions of whoever is to own it take so much that there is no room for its own.
    TooManyWords { used: u64, limit: u64 },
    /// Nobody is let in while agents can reach what is not theirs.
    NotWalled,
    /// A credential for one client name lets nobody in for all of them.
    OneClient,
    /// A credential for one client name makes none for another.
    OtherClient,
    /// A password is set by whoever signs in with it.
    NotTheirPassword,
    /// A token makes no way in that would outlast it.
    NeedsSignIn,
    /// Something about them was changed since they proved who they are.
    Changed,
    /// The session that a rule is to be for has ended.
    Ended(SessionId, EndWhy),
    /// The rule would never count.
    Over,
    /// The org has too many rules.
    TooManyRules,
}

impl PeopleRefusal {
    /// The stable code of this refusal, as audit entries have it.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Unauthenticated => "unauthenticated",
            Self::Denied(denied) => denied.code(),
            Self::NotFound(_) => "not_found",
            Self::Taken(_) => "taken",
            Self::LastOwner => "last_owner",
            Self::CannotOwn => "cannot_own",
            Self::OwnsAlready => "owns_already",
            Self::OfferedAlready => "offered_already",
            Self::TooManyOpen { .. } => "too_many_open_sessions",
            Self::TooManyWords { .. } => "too_much_on_disk",
            Self::NotWalled => "wall_not_proved",
            Self::OneClient | Self::OtherClient | Self::NotTheirPassword | Self::Over => "invalid",
            Self::NeedsSignIn => "needs_sign_in",
            Self::Changed => "changed",
            Self::Ended(..) => "session_ended",
            Self::TooManyRules => "too_many_rules",
        }
    }

    fn denied(denied: Denied, what: &'static str) -> Self {
        match denied {
            Denied::Unseen => Self::NotFound(what),
            denied => Self::Denied(denied),
        }
    }
}

/// Could whoever holds this credential make such a change at all? Asked before anything is looked up, so that it tells
/// nothing of what there is.
pub fn may_ask(by: &Principal, change: &PeopleChange) -> Result<(), PeopleRefusal> {
    let is_me = |person: &PersonId| *person == by.person;
    match change {
        PeopleChange::MakeOrg { .. } => may(by, OrgAct::MakeOrg),
        PeopleChange::Settings(_)
        | PeopleChange::MakeGroup { .. }
        | PeopleChange::RemoveGroup { .. }
        | PeopleChange::AddRoot(_)
        | PeopleChange::RemoveRoot(_)
        | PeopleChange::Give { on: Resource::Agent(_), .. }
        | PeopleChange::TakeBack { on: Resource::Agent(_), .. }
        | PeopleChange::AddRule(RuleRow { session: None, .. }) => may(by, OrgAct::Rules),
        // Whoever manages a session says what may be done in it without asking, and nobody else does.
        PeopleChange::Give { on: Resource::Session(_), .. }
        | PeopleChange::TakeBack { on: Resource::Session(_), .. }
        | PeopleChange::HandOver { .. }
        | PeopleChange::TakeOfferBack { .. }
        | PeopleChange::AddRule(RuleRow { session: Some(_), .. }) => may_rule_some(by),
        PeopleChange::AcceptOffer { .. } | PeopleChange::DeclineOffer { .. } => {
            // It is said for whoever would own the session, and not for a turn of some other one.
            if by.bound.is_some() {
                return Err(PeopleRefusal::Denied(Denied::BoundElsewhere));
            }
            may_rule_some(by)
        }
        PeopleChange::RemoveRule(_) => {
            // Which right it takes depends on what it is for; whoever has neither is told so before it is looked up.
            if by.bound.is_some() {
                return Err(PeopleRefusal::Denied(Denied::BoundElsewhere));
            }
            if by.rights.has(Right::Admin) { Ok(()) } else { may_rule_some(by) }
        }
        PeopleChange::AddPerson { person, .. } => {
            may(by, OrgAct::Person { role: Role::Viewer, becomes: Some(person.role) })
        }
        PeopleChange::MakeLink { person, .. } => {
            may_let_in(by)?;
            if is_me(person) { may(by, OrgAct::Myself) } else { may_change_some(by) }
        }
        PeopleChange::SetPassword { person, password: Some(_), .. } if is_me(person) => may_let_in(by),
        PeopleChange::ChangePerson { person, email: None, role: None, .. }
        | PeopleChange::SetPassword { person, .. }
        | PeopleChange::SetIdentity { person, .. }
        | PeopleChange::HandOverAll { from: person, .. }
            if is_me(person) =>
        {
            may(by, OrgAct::Myself)
        }
        PeopleChange::ChangePerson { .. }
        | PeopleChange::SetPassword { .. }
        | PeopleChange::SetIdentity { .. }
        | PeopleChange::HandOverAll { .. }
        | PeopleChange::Disable { .. }
        | PeopleChange::Enable { .. }
        | PeopleChange::Join { .. }
        | PeopleChange::Leave { .. } => may_change_some(by),
        PeopleChange::MakeToken(token) => {
            may(by, OrgAct::Mint { rights: token.rights })?;
            // A credential that may use one client name cannot make one that may use others.
            if by.client.is_some() && by.client != token.client {
                return Err(PeopleRefusal::OtherClient);
            }
            Ok(())
        }
        PeopleChange::RevokeToken { token } => may(by, OrgAct::GiveUp { credential: *token }),
    }
}

/// May they make this change, as things are? What they may not see is not there.
pub fn may_change(by: &Principal, change: &PeopleChange, rows: &ChangeRows) -> Result<(), PeopleRefusal> {
    let is_me = |person: &PersonId| *person == by.person;
    match change {
        PeopleChange::Give { on: Resource::Session(_), .. }
        | PeopleChange::TakeBack { on: Resource::Session(_), .. }
        | PeopleChange::HandOver { .. }
        | PeopleChange::TakeOfferBack { .. }
        | PeopleChange::AddRule(RuleRow { session: Some(_), .. }) => may_rule(by, rows),
        // An offer to somebody else is none, whether the session is there or not.
        PeopleChange::AcceptOffer { .. } | PeopleChange::DeclineOffer { .. } => {
            let theirs = rows.offer.filter(|offer| offer.to == by.person);
            theirs.map(drop).ok_or(PeopleRefusal::NotFound("offer"))
        }
        PeopleChange::RemoveRule(_) => may_remove_rule(by, rows),
        PeopleChange::ChangePerson { person, email: None, role: None, .. }
        | PeopleChange::SetPassword { person, .. }
        | PeopleChange::SetIdentity { person, .. }
        | PeopleChange::MakeLink { person, .. }
        | PeopleChange::HandOverAll { from: person, .. }
            if is_me(person) =>
        {
            there(rows).map(drop)
        }
        PeopleChange::ChangePerson { role: becomes, .. } => {
            let role = there(rows)?.role;
            may(by, OrgAct::Person { role, becomes: *becomes })
        }
        PeopleChange::SetPassword { .. }
        | PeopleChange::SetIdentity { .. }
        | PeopleChange::MakeLink { .. }
        | PeopleChange::HandOverAll { .. }
        | PeopleChange::Disable { .. }
        | PeopleChange::Enable { .. }
        | PeopleChange::Join { .. }
        | PeopleChange::Leave { .. } => {
            let role = there(rows)?.role;
            may(by, OrgAct::Person { role, becomes: None })
        }
        PeopleChange::RevokeToken { token } => {
            // The credentials of somebody whom they may not change are none for them, and neither are those that nobody sees.
            let holder = rows.token.ok_or(PeopleRefusal::NotFound("token"))?;
            let office = OrgAct::Person { role: holder.person.role, becomes: None };
            let own = holder.person.person == by.person;
            let found = holder.purpose.is_listed() && (own || may(by, office).is_ok());
            if found || by.credential == Some(*token) {
                Ok(())
            } else {
                Err(PeopleRefusal::NotFound("token"))
            }
        }
        PeopleChange::MakeOrg { .. }
        | PeopleChange::Settings(_)
        | PeopleChange::AddPerson { .. }
        | PeopleChange::MakeGroup { .. }
        | PeopleChange::RemoveGroup { .. }
        | PeopleChange::Give { on: Resource::Agent(_), .. }
        | PeopleChange::TakeBack { on: Resource::Agent(_), .. }
        | PeopleChange::AddRoot(_)
        | PeopleChange::RemoveRoot(_)
        | PeopleChange::MakeToken(_)
        | PeopleChange::AddRule(RuleRow { session: None, .. }) => Ok(()),
    }
}

pub(super) fn there(rows: &ChangeRows) -> Result<PersonState, PeopleRefusal> {
    rows.person.ok_or(PeopleRefusal::NotFound("person"))
}

fn may(by: &Principal, act: OrgAct) -> Result<(), PeopleRefusal> {
    authorize_org(by, act, ()).map(drop).map_err(|denied| PeopleRefusal::denied(denied, "org"))
}

/// Whoever could change nobody is told so before anybody is looked up.
fn may_change_some(by: &Principal) -> Result<(), PeopleRefusal> {
    may(by, OrgAct::Person { role: Role::Viewer, becomes: None })
}

fn may_rule_some(by: &Principal) -> Result<(), PeopleRefusal> {
    authorize_right(by, Act::Manage).map_err(|denied| PeopleRefusal::denied(denied, "session"))
}

fn may_rule(by: &Principal, rows: &ChangeRows) -> Result<(), PeopleRefusal> {
    let session = rows.session.as_ref().ok_or(PeopleRefusal::NotFound("session"))?;
    let ruled = authorize(by, Act::Manage, &session.record, ());
    ruled.map(drop).map_err(|denied| PeopleRefusal::denied(denied, "session"))
}

/// Whoever may make a rule may remove it. One of a session that they do not see is none.
fn may_remove_rule(by: &Principal, rows: &ChangeRows) -> Result<(), PeopleRefusal> {
    let none = PeopleRefusal::NotFound("rule");
    let rule = rows.rule.ok_or(none)?;
    if rule.session.is_none() {
        return may(by, OrgAct::Rules);
    }
    let session = rows.session.as_ref().filter(|session| grant_of(by, &session.record).is_some());
    session.ok_or(none)?;
    may_rule(by, rows)
}

/// A link or a password, which lets a person in, makes a credential that is good for everything, so a lesser one cannot
/// make it: it would be a way to get more out of it than was put in.
fn may_let_in(by: &Principal) -> Result<(), PeopleRefusal> {
    may(by, OrgAct::Mint { rights: Rights::ALL })?;
    if by.client.is_none() { Ok(()) } else { Err(PeopleRefusal::OneClient) }
}
