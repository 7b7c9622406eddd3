//! A question of an agent before a person sees it: what the org's rules and the policy for what nobody attends say to it.
//!
//! Answers of people are judged elsewhere: whose they are in `store::plan::ask`, whether they fit and come first in
//! `Session::answer_ask` (`kernel::decide`).

use super::{Keeper, Stop};
use agent::Form;
use kernel::{Answer, Answerer, ApprovalForm, ApprovalSubject, ApprovalTerms, Judgement, Unattended, judge};

impl Keeper {
    /// The terms by which its answers will be judged, and what is answered without asking anybody. Rules come first: a
    /// session that nobody attends can do what they allow.
    pub(super) async fn judge(
        &self,
        tool: &str,
        kind: &str,
        form: &Form,
    ) -> Result<(ApprovalTerms, Option<(Answer, Answerer)>), Stop> {
        let form = form_of(form);
        let now = self.engine.now();
        let rows = self.engine.store().rules(self.org).await?;
        let mut rules: Vec<_> = rows.iter().filter_map(|rule| rule.in_force(now)).collect();
        let subject = ApprovalSubject {
            form,
            agent: &self.scope.agent,
            tool,
            kind,
            directory: &self.scope.directory,
            home: self.scope.worktree.as_ref().map(|worktree| &worktree.home),
            session: self.session,
        };
        let judgement = loop {
            let judgement = judge(&rules, &subject);
            let Judgement::Allow(rule) = judgement else { break judgement };
            let row = rows.iter().find(|row| row.rule == rule);
            match row {
                Some(row) if !self.engine.people().rule_counts(self.org, row).await? => {
                    rules.retain(|other| other.rule != rule);
                }
                Some(_) | None => break judgement,
            }
        };
        let (only, answer) = match judgement {
            Judgement::Allow(rule) => (None, Some((Answer::Yes, Answerer::Rule(rule)))),
            Judgement::Deny(rule) => (None, Some((Answer::No, Answerer::Rule(rule)))),
            Judgement::Ask { who } => (who, self.unattended_answer().await?),
        };
        Ok((ApprovalTerms { form, only }, answer))
    }

    async fn unattended_answer(&self) -> Result<Option<(Answer, Answerer)>, Stop> {
        match self.engine.policy().unattended {
            Unattended::Deny if self.is_unattended().await? => Ok(Some((Answer::No, Answerer::Policy))),
            Unattended::Deny | Unattended::Ask => Ok(None),
        }
    }

    /// Whoever says something into a turn that nobody attended attends it.
    async fn is_unattended(&self) -> Result<bool, Stop> {
        let Some(running) = self.state.running() else { return Ok(false) };
        for message in running.messages() {
            let receipt = self.engine.store().receipt(message).await?;
            if !receipt.is_some_and(|(_, row)| row.unattended) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn form_of(form: &Form) -> ApprovalForm {
    match form {
        Form::Permission => ApprovalForm::Permission,
        Form::Choice { options } => {
            ApprovalForm::Choice { options: u16::try_from(options.len()).unwrap_or(u16::MAX) }
        }
        Form::Words => ApprovalForm::Words,
    }
}
