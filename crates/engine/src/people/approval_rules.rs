//! The org's rules for what agents ask: what is allowed or denied without asking, and whom to ask.

use super::change::{Changed, may};
use crate::{AccessError, ConflictError, InvalidError, People, PeopleError, Trace};
use kernel::{Act, OrgAct, OrgId, Principal, RuleId, SessionId, authorize, authorize_org, grant_of};
use serde::Serialize;
use store::{PeopleChange, RuleEffect, RuleRow, StoreError, grantee_text};

/// A rule as somebody wants it. What is none holds for all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRule {
    pub agent: Option<String>,
    /// By its whole name, or by its beginning with a star at the end.
    pub tool: Option<String>,
    /// With everything under it.
    pub directory: Option<String>,
    /// It goes when this session ends.
    pub session: Option<SessionId>,
    pub effect: RuleEffect,
    /// It counts no more from then on.
    pub until: Option<kernel::Moment>,
}

impl People {
    /// The rules that count now: those for everybody, and those of sessions that the caller sees.
    pub async fn rules(&self, by: &Principal) -> Result<Vec<RuleRow>, PeopleError> {
        may(by, OrgAct::SeePeople)?;
        let mut seen = Vec::new();
        for row in self.ports.store.rules(by.org).await? {
            if row.in_force(self.ports.now()).is_some() && self.sees_rule(by, &row).await? {
                seen.push(row);
            }
        }
        Ok(seen)
    }

    async fn sees_rule(&self, by: &Principal, row: &RuleRow) -> Result<bool, StoreError> {
        let Some(session) = row.session else { return Ok(true) };
        let found = self.ports.store.session(session).await?;
        Ok(found.is_some_and(|(record, _)| grant_of(by, &record).is_some()))
    }

    /// True if whoever made it has not lost the right to make it. A yes counts only as long; a no, or whom to ask, goes
    /// on: without it something would be open that somebody closed.
    pub async fn rule_counts(&self, org: OrgId, row: &RuleRow) -> Result<bool, StoreError> {
        if row.effect != RuleEffect::Allow {
            return Ok(true);
        }
        let maker = self.ports.store.person(org, row.by).await?;
        let Some(maker) = maker.filter(|maker| maker.disabled_at.is_none()) else { return Ok(false) };
        let is_in = |group: &store::GroupRow| group.people.contains(&row.by);
        let groups = self.ports.store.groups(org).await?.into_iter().filter(is_in).map(|group| group.group);
        let maker = Principal {
            role: maker.role,
            groups: groups.collect(),
            ..Principal::member(org, maker.person, maker.handle)
        };
        let Some(session) = row.session else {
            return Ok(authorize_org(&maker, OrgAct::Rules, ()).is_ok());
        };
        let found = self.ports.store.session(session).await?;
        Ok(found.is_some_and(|(record, _)| authorize(&maker, Act::Manage, &record, ()).is_ok()))
    }

    /// Makes a rule. Whoever manages a session makes those for it, an admin makes the others.
    pub async fn add_rule(&self, by: &Principal, new: NewRule, trace: Trace) -> Result<RuleRow, PeopleError> {
        let checked = self.checked_rule(by, new);
        let rule = self.note_refusal(by, "add_rule", &trace, None, checked).await?;
        let change = PeopleChange::AddRule(rule.clone());
        match self.change(by, change, rule_body(&rule), &trace).await? {
            Changed::Now => Ok(rule),
            // Under the same key it was made before, with an id of its own.
            Changed::Before => self.made_before(by, &rule).await,
        }
    }

    /// A rule may be about a directory that is not there (any more, or yet), or to which a link leads from where its person may
    /// not look: then it is compared as it is written.
    fn rule_directory(&self, by: &Principal, path: String) -> String {
        let found = self.ground.check(&path).ok();
        let found = found.filter(|found| by.roots.iter().any(|root| found.is_under(root)));
        found.map_or(path, |found| found.for_readers().to_owned())
    }

    fn checked_rule(&self, by: &Principal, new: NewRule) -> Result<RuleRow, PeopleError> {
        let NewRule { agent, tool, directory, session, effect, until } = new;
        let directory = directory.map(|path| self.rule_directory(by, path));
        let (rule, since) = (RuleId::from_bits(self.ports.mint_bits()), self.ports.now());
        let row = RuleRow { rule, by: by.person, since, agent, tool, directory, session, effect, until };
        self.may_ask(by, &PeopleChange::AddRule(row.clone()))?;
        if let Some(name) = row.agent.as_ref().filter(|name| !self.roster.agents().contains_key(*name)) {
            return Err(
                ConflictError::UnknownAgent { name: name.clone(), known: self.roster.seen_by(by) }.into()
            );
        }
        let RuleRow { agent, tool, directory, session, .. } = &row;
        let named = agent.is_some() || tool.is_some() || directory.is_some() || session.is_some();
        if effect == RuleEffect::Allow && !named {
            let reason = "name an agent, a tool, a directory or a session: everything is too much to allow";
            return Err(InvalidError { field: "effect", reason: reason.to_owned() }.into());
        }
        Ok(row)
    }

    async fn made_before(&self, by: &Principal, wanted: &RuleRow) -> Result<RuleRow, PeopleError> {
        let rows = self.ports.store.rules(by.org).await?;
        let same = |row: &RuleRow| {
            let RuleRow { rule, since, .. } = *row;
            RuleRow { rule, since, ..wanted.clone() } == *row
        };
        rows.into_iter().find(same).ok_or(AccessError::NotFound { what: "rule" }.into())
    }

    /// Removes a rule. Whoever may make it may remove it.
    pub async fn remove_rule(&self, by: &Principal, rule: RuleId, trace: Trace) -> Result<(), PeopleError> {
        self.change(by, PeopleChange::RemoveRule(rule), rule.to_string(), &trace).await.map(drop)
    }
}

/// The body that makes two wishes for a rule the same: everything but its id.
fn rule_body(rule: &RuleRow) -> impl Serialize + use<> {
    let RuleRow { agent, tool, directory, session, effect, until, .. } = rule.clone();
    let effect = match effect {
        RuleEffect::Allow => "allow".to_owned(),
        RuleEffect::Deny => "deny".to_owned(),
        RuleEffect::Ask(whom) => format!("ask {}", grantee_text(whom)),
    };
    let session = session.map(|session| session.to_string());
    (agent, tool, directory, session, effect, until.map(|until| until.0))
}
