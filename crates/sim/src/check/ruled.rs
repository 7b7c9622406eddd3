//! The fate of agents' questions before a person saw them, against the rules that stood and the policy.

use super::{Findings, Scene};
use crate::notes::short;
use crate::rulebook::{AskedQuestion, Standing};
use kernel::{Answer, Answerer, ApprovalForm, ApprovalId, Grantee, OrgId, RuleId, Scope, Unattended};
use store::RuleEffect;

/// The time until somebody looks for what a lost ring was about.
const LOOK_AGAIN_MS: u64 = 10_000;
/// Beyond its time, and whatever the clock was set back, a question is open no longer: that is the weather's.
const WEATHER_MS_MAX: u64 = 20_000;

pub(super) fn check(scene: &Scene<'_>, findings: &mut Findings) {
    let book = &scene.seen.rulebook;
    for Standing { row, is_rightful, is_as_asked, .. } in &book.rules {
        findings.must(*is_rightful, "a rule is made by somebody who may make it", || format!("{row:?}"));
        findings.must(*is_as_asked, "a rule is what its maker asked for", || format!("{row:?}"));
    }
    for (session, approval, by) in &book.belated {
        let how = || format!("{} {} by {by:?}", short(session), short(approval));
        findings.must(false, "rules and policy answer when something is asked, and never later", how);
    }
    for question in &book.questions {
        judged_by_what_stood(scene, question, findings);
        policy_is_kept(scene, question, findings);
        named_people_answer(scene, question, findings);
        in_time(scene, question, findings);
    }
}

/// The word of the rules, as plainly as can be.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Says {
    /// One of these answers it so.
    Answer(Answer, Vec<RuleId>),
    /// One of these names who answers.
    People(Vec<(RuleId, Grantee)>),
    Nothing,
}

/// There was a moment, from the agent's asking to the log's saying so, in which the rules said what was done.
fn judged_by_what_stood(scene: &Scene<'_>, question: &AskedQuestion, findings: &mut Findings) {
    let Some(scope) = scene.scope_of(question) else { return };
    let steps = question.heard.step..=question.written.step;
    let moments = steps.flat_map(|step| [question.heard.now, question.written.now].map(|now| (step, now)));
    let said: Vec<Says> = moments
        .map(|(step, now)| {
            let stands = |standing: &&Standing| {
                let row = &standing.row;
                standing.since <= step
                    && standing.until.is_none_or(|until| step < until)
                    && row.until.is_none_or(|until| now < until)
                    && scene.store.sessions.get(&question.session).is_some_and(|row| row.org == standing.org)
                    && speaks_of(standing, question, scope)
                    && scene.seen.rulebook.counts(standing, step)
            };
            says(scene.seen.rulebook.rules.iter().filter(stands), question.asks)
        })
        .collect();
    let how = || format!("{question:?} in {scope:?}; the rules said {said:?}");
    let (fits, law) = match &question.at_once {
        Some((answer, Answerer::Rule(rule))) => {
            let fits = said.iter().any(
                |says| matches!(says, Says::Answer(own, rules) if own == answer && rules.contains(rule)),
            );
            (fits, "a question is answered by a rule only if that stood when it was asked")
        }
        _ => {
            let fits = said.iter().any(|says| match says {
                Says::Answer(..) => false,
                Says::People(whom) => question.only.is_some_and(|only| whom.contains(&only)),
                Says::Nothing => question.only.is_none(),
            });
            (fits, "what a rule decides is asked of nobody")
        }
    };
    findings.must(fits, law, how);
}

/// A no beats people, people beat a yes, and a yes is an answer only to whether something may be done.
fn says<'a>(rules: impl Iterator<Item = &'a Standing>, asks: ApprovalForm) -> Says {
    let (mut yes, mut no, mut people) = (Vec::new(), Vec::new(), Vec::new());
    for Standing { row, .. } in rules {
        match row.effect {
            RuleEffect::Allow => yes.push(row.rule),
            RuleEffect::Deny => no.push(row.rule),
            RuleEffect::Ask(whom) => people.push((row.rule, whom)),
        }
    }
    if !no.is_empty() {
        Says::Answer(Answer::No, no)
    } else if !people.is_empty() {
        Says::People(people)
    } else if !yes.is_empty() && asks == ApprovalForm::Permission {
        Says::Answer(Answer::Yes, yes)
    } else {
        Says::Nothing
    }
}

fn speaks_of(standing: &Standing, question: &AskedQuestion, scope: &Scope) -> bool {
    let row = &standing.row;
    let is_under = |place: &str, above: &str| {
        place.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let home = scope.worktree.as_ref().map(|worktree| worktree.home.for_readers());
    let is_there = |above: &String| {
        [Some(scope.directory.for_readers()), home].iter().flatten().any(|p| is_under(p, above))
    };
    let is_about = |tool: &String| match tool.strip_suffix('*') {
        Some(beginning) => question.tool.starts_with(beginning),
        None => *tool == question.tool,
    };
    row.agent.as_ref().is_none_or(|agent| *agent == scope.agent)
        && row.tool.as_ref().is_none_or(is_about)
        && row.directory.as_ref().is_none_or(is_there)
        && row.session.is_none_or(|session| session == question.session)
}

/// A turn that nobody attends never waits for people beyond its policy, and what somebody attends is not answered by
/// policy.
fn policy_is_kept(scene: &Scene<'_>, question: &AskedQuestion, findings: &mut Findings) {
    let is_unattended = scene.said(question.message).is_some_and(|said| said.unattended);
    let by_policy = matches!(question.at_once, Some((_, Answerer::Policy)));
    let is_denied = question.at_once.as_ref().is_none_or(|(answer, _)| *answer == Answer::No);
    let how = || format!("{question:?}, unattended {is_unattended}");
    findings.must(!by_policy || is_denied, "the policy for what nobody attends says no", how);
    let denies = is_unattended && scene.town.policy.unattended == Unattended::Deny;
    findings.must(!by_policy || denies, "the policy answers only what nobody attends", how);
    // Whoever says something into a turn attends it; whether that was before the question is not known here.
    let waits = question.at_once.is_none() && denies && !question.is_mixed;
    findings.must(!waits, "what nobody attends never waits for people beyond its policy", how);
}

/// Of those whom a rule names; and a no of whoever manages the session.
fn named_people_answer(scene: &Scene<'_>, question: &AskedQuestion, findings: &mut Findings) {
    let Some((answer, Answerer::Person(person))) = &question.later else { return };
    let fits = match question.only {
        Some((_, Grantee::Person(named))) => named == *person || *answer == Answer::No,
        Some((_, Grantee::Group(_))) => *answer == Answer::No,
        Some((_, Grantee::Org)) | None => {
            scene.org_of(*person) == scene.store.sessions.get(&question.session).map(|row| row.org)
        }
    };
    findings.must(fits, "only those whom a rule names answer", || format!("{question:?}"));
}

fn in_time(scene: &Scene<'_>, question: &AskedQuestion, findings: &mut Findings) {
    let town = scene.town;
    let lost = scene.seen.lost_rings.get(&question.session).copied().unwrap_or_default();
    let longest_ms = town.policy.ask_ms_max + town.clock.jumped_ms() + WEATHER_MS_MAX + lost * LOOK_AGAIN_MS;
    let Some(settled_ms) = question.settled_ms else { return };
    let open_ms = settled_ms - question.written.elapsed_ms;
    let how = || format!("{open_ms} ms of {longest_ms}: {question:?}");
    findings.must(open_ms <= longest_ms, "no question is open longer than it may be", how);
}

impl Scene<'_> {
    /// By a rule or by policy: nobody is asked.
    pub(super) fn is_answered_at_once(&self, approval: ApprovalId) -> bool {
        let mut questions = self.seen.rulebook.questions.iter();
        questions.any(|question| question.approval == approval && question.at_once.is_some())
    }

    fn scope_of(&self, question: &AskedQuestion) -> Option<&Scope> {
        self.told.get(&question.session)?.scopes.get(question.fence.epoch.0 as usize)
    }

    pub(super) fn org_of(&self, person: kernel::PersonId) -> Option<OrgId> {
        self.town.principal(person).map(|principal| principal.org)
    }
}
