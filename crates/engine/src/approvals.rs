//! Approvals, as people meet them: what is asked, whom it is left to, and what an answer is before the keeper
//! decides about it.
//!
//! What an approval says comes with its row. What its answers are judged by was fixed when it was asked, so an answer that does
//! not fit, or is not its giver's to give, is refused here with words for people. Whether it is theirs is asked once more in the
//! transaction that writes the request (`store::plan::ask`); whether it fits and comes first is the keeper's to say
//! (`kernel::decide`).

use crate::people::may;
use crate::view::{may_read, readable};
use crate::{AccessError, ConflictError, InvalidError, ViewError, Views, WayIn, WayInError};
use kernel::{
    Act, Answer, Answerer, ApprovalForm, ApprovalId, Grantee, Moment, OrgAct, Principal, Record, Remember,
    RuleId, SessionId, Turn, authorize, grant_of, may_answer, people::RULES_MAX,
};
use serde::Deserialize;
use store::{ApprovalRow, ApprovalState, ApprovalsQuery, RememberedRule, Seer, StoreError, WhichApprovals};

/// The longest name of a tool that a rule can be made for.
const TOOL_BYTES_MAX: usize = 256;

/// A question of an agent, with its words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalView {
    pub row: ApprovalRow,
    /// Its words; none if its words were forgotten, or it was asked before they were kept with it.
    pub words: Option<ApprovalWords>,
    /// The handle of whoever answered, if a person did.
    pub answered_by: Option<String>,
}

/// The words of a question.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ApprovalWords {
    /// The agent that asks.
    pub agent: String,
    /// Where it works.
    pub directory: String,
    /// The tool that it is about; empty if it names none.
    pub tool: String,
    /// In its own words.
    pub detail: String,
    /// The options, in its order.
    pub options: Vec<ApprovalOption>,
    /// In a worktree: where the session came from.
    home: Option<String>,
}

/// Something that can be chosen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ApprovalOption {
    pub name: String,
    pub description: String,
}

/// The way a question was settled before this answer came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    pub answer: Answer,
    pub by: Answerer,
    /// Their handle, if a person did.
    pub handle: Option<String>,
    pub at: Option<Moment>,
}

impl Views {
    /// Open questions, oldest first.
    pub async fn approvals(&self, by: &Principal, limit: usize) -> Result<Vec<ApprovalView>, ViewError> {
        self.approvals_page(by, WhichApprovals::Open, None, None, limit).await
    }

    /// A page of questions: of one session, if one is named, and after the last one of the page before.
    pub async fn approvals_page(
        &self,
        by: &Principal,
        which: WhichApprovals,
        session: Option<SessionId>,
        after: Option<(Moment, ApprovalId)>,
        limit: usize,
    ) -> Result<Vec<ApprovalView>, ViewError> {
        may_read(by, "approval")?;
        if let Some(session) = session {
            self.seen(by, session).await?;
        }
        let query = ApprovalsQuery { by: Seer::of(by), which, session, after, limit };
        let mut views = Vec::new();
        for row in self.ports.store.approvals(query).await? {
            views.push(self.approval_view(by, row).await?);
        }
        Ok(views)
    }

    /// One question.
    pub async fn approval(&self, by: &Principal, approval: ApprovalId) -> Result<ApprovalView, ViewError> {
        let what = "approval";
        may_read(by, what)?;
        let found = self.ports.store.approval_seen(Seer::of(by), approval).await?;
        let (record, row) = found.ok_or(AccessError::NotFound { what })?;
        readable(by, &record, what)?;
        Ok(self.approval_view(by, row).await?)
    }

    async fn approval_view(&self, by: &Principal, row: ApprovalRow) -> Result<ApprovalView, StoreError> {
        let words = ApprovalWords::of(&row);
        let answered_by = match row.state {
            ApprovalState::Answered { by: Answerer::Person(person), .. } => {
                self.rights_cache.handle_of(by, person).await?
            }
            ApprovalState::Answered { .. } | ApprovalState::Open | ApprovalState::Lapsed => None,
        };
        Ok(ApprovalView { row, words, answered_by })
    }
}

impl WayIn {
    /// Checks that this answer fits the question and is theirs to give; and the rule that it becomes, if it is to be
    /// one. The session is one that they see and may answer in.
    pub(crate) async fn check_answer(
        &self,
        by: &Principal,
        record: &Record,
        row: &ApprovalRow,
        answer: &Answer,
        remember: Option<Remember>,
    ) -> Result<Option<RememberedRule>, WayInError> {
        let terms = row.terms;
        let grant = grant_of(by, record).ok_or(AccessError::NotFound { what: "approval" })?;
        let whom = terms.only.map(|(_, whom)| whom);
        if !may_answer(by, grant, whom, answer) {
            return Err(self.not_yours(by, terms.only).await?);
        }
        if !terms.form.takes(answer) {
            return Err(WayInError::UnfitAnswer { takes: terms.form });
        }
        match remember {
            Some(remember) => self.remembered(by, record, row, answer, remember).await.map(Some),
            None => Ok(None),
        }
    }

    async fn not_yours(
        &self,
        by: &Principal,
        only: Option<(RuleId, Grantee)>,
    ) -> Result<WayInError, StoreError> {
        let Some((rule, whom)) = only else { return Ok(AccessError::Needs(kernel::Grant::Prompt).into()) };
        let who = match whom {
            Grantee::Person(person) => {
                self.rights_cache.handle_of(by, person).await?.unwrap_or_else(|| person.to_string())
            }
            Grantee::Group(group) => {
                let groups = self.ports.store.groups(by.org).await?;
                let named = groups.into_iter().find(|row| row.group == group);
                format!("the group {}", named.map_or(group.to_string(), |row| row.name))
            }
            Grantee::Org => "people of the org".to_owned(),
        };
        Ok(WayInError::NotYoursToAnswer { who, rule })
    }

    /// Whoever makes a rule needs the right to, also if it comes with an answer.
    async fn remembered(
        &self,
        by: &Principal,
        record: &Record,
        row: &ApprovalRow,
        answer: &Answer,
        remember: Remember,
    ) -> Result<RememberedRule, WayInError> {
        match remember {
            Remember::Session => authorize(by, Act::Manage, record, ())
                .map(drop)
                .map_err(|denied| AccessError::denied(denied, "approval"))?,
            Remember::Always => may(by, OrgAct::Rules)?,
        }
        let plain = row.terms.form == ApprovalForm::Permission && answer.as_rule().is_some();
        let words = ApprovalWords::of(row).unwrap_or_default();
        // A tool's name is the agent's to choose, and a star at its end would make a rule for all tools that begin so.
        let is_odd = words.tool.ends_with('*') || words.tool.contains(char::is_control);
        if !plain || words.tool.is_empty() || words.tool.len() > TOOL_BYTES_MAX || is_odd {
            let reason = "only a yes or no about a tool with a plain name can be remembered".to_owned();
            return Err(InvalidError { field: "remember", reason }.into());
        }
        self.room_for_rules(by).await?;
        let rule = RuleId::from_bits(self.ports.mint_bits());
        let tool = words.tool;
        Ok(match remember {
            Remember::Session => {
                RememberedRule { rule, agent: None, tool, directory: None, session: Some(row.session) }
            }
            Remember::Always => {
                let directory = Some(words.home.unwrap_or(words.directory));
                RememberedRule { rule, agent: Some(words.agent), tool, directory, session: None }
            }
        })
    }

    async fn room_for_rules(&self, by: &Principal) -> Result<(), WayInError> {
        let now = self.ports.now();
        let rules = self.ports.store.rules(by.org).await?;
        let limit = RULES_MAX as usize;
        if rules.iter().filter(|rule| !rule.is_over(now)).count() >= limit {
            return Err(ConflictError::TooManyRules { limit }.into());
        }
        Ok(())
    }

    /// The refusal of whoever answers too late: who was first, or that nobody can answer any more and how to go on.
    pub(crate) async fn too_late_to_answer(
        &self,
        by: &Principal,
        approval: ApprovalId,
    ) -> Result<WayInError, StoreError> {
        let Some((_, row)) = self.ports.store.approval(approval).await? else {
            return Ok(ConflictError::TooLate.into());
        };
        match row.state {
            ApprovalState::Open => Ok(ConflictError::TooLate.into()),
            ApprovalState::Answered { answer, by: answerer } => {
                let handle = match answerer {
                    Answerer::Person(person) => self.rights_cache.handle_of(by, person).await?,
                    Answerer::Rule(_) | Answerer::Policy | Answerer::Nobody => None,
                };
                let settled = Settled { answer, by: answerer, handle, at: row.settled_at };
                Ok(WayInError::AnsweredBefore(Box::new(settled)))
            }
            ApprovalState::Lapsed => {
                let interrupted = self.was_interrupted(row.session, row.turn).await?;
                Ok(WayInError::Lapsed { session: row.session, turn: row.turn, interrupted })
            }
        }
    }

    async fn was_interrupted(&self, session: SessionId, turn: Turn) -> Result<bool, StoreError> {
        let receipt = self.ports.store.turn(session, turn).await?;
        Ok(receipt.is_some_and(|row| row.why == Some("interrupted")))
    }
}

impl ApprovalWords {
    pub(crate) fn of(row: &ApprovalRow) -> Option<Self> {
        serde_json::from_slice(row.words.as_ref()?).ok()
    }
}

impl Settled {
    /// The answerer, in words.
    pub fn whom(&self) -> String {
        match (self.by, &self.handle) {
            (Answerer::Person(_), Some(handle)) => handle.clone(),
            (Answerer::Person(person), None) => person.to_string(),
            (Answerer::Rule(rule), _) => format!("the rule {rule}"),
            (Answerer::Policy, _) => "the policy for what nobody attends".to_owned(),
            (Answerer::Nobody, _) => "nobody: its time was over".to_owned(),
        }
    }
}

/// The answers that a question takes, in words.
pub(crate) fn takes_words(form: ApprovalForm) -> String {
    match form {
        ApprovalForm::Permission => "yes or no".to_owned(),
        ApprovalForm::Choice { options: 0 } => "words, or no".to_owned(),
        ApprovalForm::Choice { options } => {
            format!("one of its options (0 to {}), other words, or no", options - 1)
        }
        ApprovalForm::Words => "words, or no".to_owned(),
    }
}
