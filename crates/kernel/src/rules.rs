//! The fate of an agent's question before a person sees it: rules, as data.
//!
//! A rule says of which questions it speaks and what is to become of them. `judge` reads all rules of an org and gives one
//! judgement; `may_answer` says whether somebody may give this answer to what is left for people. Nothing here knows what
//! a tool does: a rule compares names.

use crate::approval::{Answer, ApprovalForm};
use crate::{Grant, Grantee, GroundPath, Principal, RuleId, SessionId};
use alloc::string::String;

/// A rule: what is to become of some questions. Whatever a rule does not name, it does not ask about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Its id; an older rule has a smaller one.
    pub rule: RuleId,
    /// Only questions of this agent.
    pub agent: Option<String>,
    /// Only questions about this tool, or about tools of this kind; with a star at the end, about every tool whose name
    /// begins so.
    pub tool: Option<String>,
    /// Only questions of sessions that act in this directory or below it. Canonical.
    pub directory: Option<String>,
    /// Only questions of this session.
    pub session: Option<SessionId>,
    /// Its effect on them.
    pub effect: Effect,
}

/// The effect on a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// It is answered with yes.
    Allow,
    /// It is answered with no.
    Deny,
    /// Only these people may answer it.
    Ask {
        /// Those who may answer.
        who: Grantee,
    },
}

/// The subject of an approval, as far as rules look at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApprovalSubject<'a> {
    /// The form of answer it takes.
    pub form: ApprovalForm,
    /// The agent that asks.
    pub agent: &'a str,
    /// The tool that it is about; empty if it names none.
    pub tool: &'a str,
    /// The kind of thing that the tool does, in the agent's word; empty if it says none.
    pub kind: &'a str,
    /// Where the session acts, canonical.
    pub directory: &'a GroundPath,
    /// In a worktree: the directory that it came from, and whose rules count for it, too.
    pub home: Option<&'a GroundPath>,
    /// The session.
    pub session: SessionId,
}

/// The word of the rules on a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgement {
    /// Yes, by this rule.
    Allow(RuleId),
    /// No, by this rule.
    Deny(RuleId),
    /// A person answers: those of a rule, or whoever may answer in this session.
    Ask {
        /// The rule and its people, if one names some.
        who: Option<(RuleId, Grantee)>,
    },
}

/// The judgement of the rules on this question: a no beats people, people beat a yes; of rules that say the same kind
/// of thing the more particular one is named, then the older one. A yes is an answer to a permission and to nothing
/// else.
pub fn judge(rules: &[Rule], subject: &ApprovalSubject<'_>) -> Judgement {
    let strongest = rules
        .iter()
        .filter(|rule| rule.speaks_of(subject))
        .filter(|rule| rule.effect != Effect::Allow || subject.form == ApprovalForm::Permission)
        .max_by_key(|rule| (rule.effect.strength(), rule.particularity(), core::cmp::Reverse(rule.rule)));
    match strongest.map(|rule| (rule.rule, rule.effect)) {
        Some((rule, Effect::Allow)) => Judgement::Allow(rule),
        Some((rule, Effect::Deny)) => Judgement::Deny(rule),
        Some((rule, Effect::Ask { who })) => Judgement::Ask { who: Some((rule, who)) },
        None => Judgement::Ask { who: None },
    }
}

/// May `by`, who has this grant on the session, give this answer to a question that was left to `who`? Whoever manages the
/// session can always say no.
pub fn may_answer(by: &Principal, grant: Grant, who: Option<Grantee>, answer: &Answer) -> bool {
    let named = who.is_none_or(|grantee| by.is(grantee));
    grant >= Grant::Prompt && (named || (grant == Grant::Manage && *answer == Answer::No))
}

impl Rule {
    /// True if the question is one of those that it is about.
    fn speaks_of(&self, subject: &ApprovalSubject<'_>) -> bool {
        self.agent.as_ref().is_none_or(|agent| agent == subject.agent)
            && self.tool.as_ref().is_none_or(|tool| names(tool, subject.tool) || is_kind(tool, subject.kind))
            && self.directory.as_ref().is_none_or(|directory| {
                let mut places = [subject.directory].into_iter().chain(subject.home);
                places.any(|place| place.is_under(directory))
            })
            && self.session.is_none_or(|session| session == subject.session)
    }

    /// The rank by how few questions it is about: one session before a directory, a deeper directory before one above
    /// it, then the tool by its whole name, by a longer beginning, and the agent.
    fn particularity(&self) -> (bool, usize, bool, usize, bool) {
        let tool = self.tool.as_deref().unwrap_or("*");
        let trunk = |path: &String| path.trim_end_matches('/').len() + 1;
        (
            self.session.is_some(),
            self.directory.as_ref().map_or(0, trunk),
            !tool.ends_with('*'),
            tool.len(),
            self.agent.is_some(),
        )
    }
}

impl Effect {
    /// The strength: what is careful beats what is not.
    const fn strength(self) -> u8 {
        match self {
            Self::Allow => 0,
            Self::Ask { .. } => 1,
            Self::Deny => 2,
        }
    }
}

fn names(pattern: &str, tool: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => tool.starts_with(beginning),
        None => tool == pattern,
    }
}

/// A kind is a whole word: no beginning of one says anything about a tool.
fn is_kind(pattern: &str, kind: &str) -> bool {
    !kind.is_empty() && pattern == kind
}
