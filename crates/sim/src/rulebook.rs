//! The rules that stood at each time, by what got through to the store; and each question of an agent with the time in
//! which it was judged.
//!
//! Rules are counted in steps: each change of them is one. Whoever judges a question reads all rules at one moment between
//! the agent's asking and the append that says so; the checks look for such a moment.

use kernel::{
    Answer, Answerer, ApprovalForm, ApprovalId, Fact, Fence, Grantee, MessageId, Moment, OrgId, PersonId,
    Principal, Record, Request, Role, RuleId, SessionId,
};
use std::collections::{BTreeMap, VecDeque};
use store::{Append, Entry, NewChange, NewRequest, PeopleChange, RememberedRule, RuleEffect, RuleRow};

/// A moment of the story.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct At {
    /// The number of changes of the rules before.
    pub(crate) step: u64,
    /// The time on the clock.
    pub(crate) now: Moment,
    /// Since the beginning, whatever the clock says.
    pub(crate) elapsed_ms: u64,
}

/// A rule, and when it stood.
#[derive(Debug)]
pub(crate) struct Standing {
    /// As its maker asked for it.
    pub(crate) row: RuleRow,
    pub(crate) org: OrgId,
    pub(crate) since: u64,
    pub(crate) until: Option<u64>,
    /// True if its maker might make it then.
    pub(crate) is_rightful: bool,
    /// True if it is stored as it was asked for.
    pub(crate) is_as_asked: bool,
    /// The person who removed it, with their key.
    pub(crate) removed_by: Option<(PersonId, String)>,
}

/// A question that an agent has asked.
#[derive(Debug)]
pub(crate) struct AskedQuestion {
    pub(crate) session: SessionId,
    pub(crate) fence: Fence,
    pub(crate) approval: ApprovalId,
    pub(crate) tool: String,
    /// When the agent asked, and when the log said so.
    pub(crate) heard: At,
    pub(crate) written: At,
    pub(crate) asks: ApprovalForm,
    /// Whom a rule leaves it to.
    pub(crate) only: Option<(RuleId, Grantee)>,
    /// The answer in the same append, without asking anybody.
    pub(crate) at_once: Option<(Answer, Answerer)>,
    /// The answer that came later.
    pub(crate) later: Option<(Answer, Answerer)>,
    pub(crate) settled_ms: Option<u64>,
    /// The message its turn began with, and whether something was ever said into it.
    pub(crate) message: MessageId,
    pub(crate) is_mixed: bool,
}

/// A question that no log has yet: when, and about which tool.
type UnwrittenQuestion = (At, String);

/// Everything that is known of rules and questions.
#[derive(Debug, Default)]
pub(crate) struct Rulebook {
    step: u64,
    pub(crate) rules: Vec<Standing>,
    pub(crate) questions: Vec<AskedQuestion>,
    /// Answers by a rule or by policy to what was asked before.
    pub(crate) belated: Vec<(SessionId, ApprovalId, Answerer)>,
    heard: BTreeMap<(SessionId, Fence), VecDeque<UnwrittenQuestion>>,
    turns: BTreeMap<SessionId, TurnNow>,
    /// From which step on who may do what with a session.
    records: Vec<(u64, Record)>,
    /// Rules that will come with an answer.
    promised: BTreeMap<RuleId, (RuleRow, OrgId, bool)>,
}

/// The turn that runs in a session.
#[derive(Debug, Clone, Copy)]
struct TurnNow {
    message: MessageId,
    fence: Option<Fence>,
    is_mixed: bool,
}

impl Rulebook {
    pub(crate) fn at(&self, now: Moment, elapsed_ms: u64) -> At {
        At { step: self.step, now, elapsed_ms }
    }

    /// An agent asks.
    pub(crate) fn hear(&mut self, session: SessionId, fence: Fence, tool: &str, at: At) {
        self.heard.entry((session, fence)).or_default().push_back((at, tool.to_owned()));
    }

    /// Somebody has changed the rules, or who may make them. `record` is that of the session which it is about.
    pub(crate) fn change(&mut self, by: &Principal, new: &NewChange, record: Option<&Record>) {
        match &new.change {
            PeopleChange::AddRule(row) => {
                self.forget(by.org, new.trail.at);
                self.add(row.clone(), by.org, is_rightful(by, row.session, record), true);
            }
            PeopleChange::RemoveRule(rule) => {
                self.step += 1;
                let standing = self.rules.iter_mut().find(|standing| standing.row.rule == *rule);
                if let Some(standing) = standing.filter(|standing| standing.until.is_none()) {
                    standing.until = Some(self.step);
                    standing.removed_by = new.key.as_ref().map(|key| (by.person, key.key.clone()));
                }
            }
            PeopleChange::Give { .. } | PeopleChange::TakeBack { .. } => {
                self.step += 1;
                self.records.extend(record.map(|record| (self.step, record.clone())));
            }
            _ => {}
        }
    }

    /// True if its maker might still make it then. A yes counts only as long; a no, or whom to ask, goes on.
    pub(crate) fn counts(&self, standing: &Standing, step: u64) -> bool {
        let RuleRow { session: Some(session), effect: RuleEffect::Allow, by, .. } = standing.row else {
            return true;
        };
        let mut then = self.records.iter().rev().filter(|(since, _)| *since <= step);
        then.find(|(_, record)| record.session == session).is_none_or(|(_, record)| manages(by, record))
    }

    /// Somebody's answer is to become a rule.
    pub(crate) fn promise(&mut self, by: &Principal, new: &NewRequest, record: Option<&Record>) {
        let (Request::Answer { answer, .. }, Some(remembered)) = (&new.request, &new.resolved.rule) else {
            return;
        };
        let since = new.trail.at;
        let RememberedRule { rule, agent, tool, directory, session } = remembered.clone();
        let effect = if *answer == Answer::Yes { RuleEffect::Allow } else { RuleEffect::Deny };
        let (by_whom, tool, until) = (by.person, Some(tool), None);
        let row = RuleRow { rule, by: by_whom, since, agent, tool, directory, session, effect, until };
        self.promised.insert(rule, (row, by.org, is_rightful(by, session, record)));
    }

    /// These facts are in the log now.
    pub(crate) fn write(&mut self, append: &Append, now: Moment, elapsed_ms: u64) {
        let session = append.session;
        let at = self.at(now, elapsed_ms);
        let first = self.questions.len();
        let mut ends = false;
        for new in &append.facts {
            let Entry::Rule(fact) = &new.entry else { continue };
            ends |= matches!(fact, Fact::Ended { .. });
            self.note(session, fact, at, first);
        }
        for row in &append.rules {
            // One that nobody asked for is found by that.
            let Some((asked, org, is_rightful)) = self.promised.remove(&row.rule) else {
                self.add(row.clone(), OrgId::from_bits(0), false, false);
                continue;
            };
            let is_as_asked = RuleRow { since: row.since, ..asked.clone() } == *row;
            self.forget(org, row.since);
            self.add(asked, org, is_rightful, is_as_asked);
        }
        if ends {
            self.step += 1;
            let own = |standing: &&mut Standing| standing.row.session == Some(session);
            let standing = self.rules.iter_mut().filter(own).filter(|standing| standing.until.is_none());
            standing.for_each(|standing| standing.until = Some(self.step));
        }
    }

    fn note(&mut self, session: SessionId, fact: &Fact, at: At, first: usize) {
        match fact {
            Fact::TurnStarted { message, .. } => {
                let (message, fence, is_mixed) = (*message, None, false);
                self.turns.insert(session, TurnNow { message, fence, is_mixed });
            }
            Fact::AttemptStarted { fence, .. } => {
                self.turns.entry(session).and_modify(|turn| turn.fence = Some(*fence));
            }
            Fact::Steered { .. } | Fact::Missed { .. } => {
                self.turns.entry(session).and_modify(|turn| turn.is_mixed = true);
            }
            Fact::Asked { approval, terms, .. } => {
                let Some(TurnNow { message, fence: Some(fence), is_mixed }) =
                    self.turns.get(&session).copied()
                else {
                    return;
                };
                let heard = self.heard.get_mut(&(session, fence)).and_then(VecDeque::pop_front);
                let (heard, tool) = heard.unwrap_or((at, String::new()));
                let (approval, written, asks, only) = (*approval, at, terms.form, terms.only);
                let (at_once, later, settled_ms) = (None, None, None);
                self.questions.push(AskedQuestion {
                    session,
                    fence,
                    approval,
                    tool,
                    heard,
                    written,
                    asks,
                    only,
                    at_once,
                    later,
                    settled_ms,
                    message,
                    is_mixed,
                });
            }
            Fact::Answered { approval, answer, by } => {
                self.settle(session, *approval, Some((answer.clone(), *by)), at, first);
            }
            Fact::Lapsed { approval } => self.settle(session, *approval, None, at, first),
            _ => {}
        }
    }

    fn settle(
        &mut self,
        session: SessionId,
        approval: ApprovalId,
        said: Option<(Answer, Answerer)>,
        at: At,
        first: usize,
    ) {
        let place = self.questions.iter().position(|question| question.approval == approval);
        let is_now = place.is_some_and(|place| place >= first);
        let by_itself = said.as_ref().map(|(_, by)| *by);
        if let Some(by @ (Answerer::Rule(_) | Answerer::Policy)) = by_itself.filter(|_| !is_now) {
            self.belated.push((session, approval, by));
        }
        let Some(question) = place.map(|place| &mut self.questions[place]) else { return };
        question.settled_ms.get_or_insert(at.elapsed_ms);
        match by_itself {
            Some(Answerer::Rule(_) | Answerer::Policy) if is_now => question.at_once = said,
            _ => question.later = said,
        }
    }

    /// With a new rule the store forgets those whose time is over: a clock that is set back does not bring them back.
    fn forget(&mut self, org: OrgId, at: Moment) {
        let is_over = |standing: &&mut Standing| {
            let over = standing.row.until.is_some_and(|until| until <= at);
            standing.org == org && standing.until.is_none() && over
        };
        let step = self.step + 1;
        self.rules.iter_mut().filter(is_over).for_each(|standing| standing.until = Some(step));
    }

    fn add(&mut self, row: RuleRow, org: OrgId, is_rightful: bool, is_as_asked: bool) {
        self.step += 1;
        let (since, until, removed_by) = (self.step, None, None);
        self.rules.push(Standing { row, org, since, until, is_rightful, is_as_asked, removed_by });
    }
}

/// Whoever manages a session makes rules for it; an admin, or the owner of the org, makes all others.
fn is_rightful(by: &Principal, session: Option<SessionId>, record: Option<&Record>) -> bool {
    match (session, record) {
        (None, _) => by.role >= Role::Admin,
        (Some(session), Some(record)) => record.session == session && manages(by.person, record),
        (Some(_), None) => false,
    }
}

fn manages(person: PersonId, record: &Record) -> bool {
    let given = |(to, grant): &(Grantee, kernel::Grant)| {
        (*to == Grantee::Person(person) || *to == Grantee::Org) && *grant == kernel::Grant::Manage
    };
    record.owner == person || record.grants.iter().any(given)
}
