//! Questions of agents that wait for a person, and the rules for them.

use crate::cursor;
use crate::door::SharedDoor;
use crate::extract::{Caller, Id, Json, JsonBody, Query, limit, session_id};
use crate::messages::granted_response;
use crate::openapi::{KeyHeader, problems};
use crate::people::{grantee_form, grantee_of, who};
use crate::problem::{ApiError, ApiResult};
use crate::wire::{answer_form, answer_of, answerer_word, at};
use api::{
    Approval, ApprovalAnswer, ApprovalState, ApprovalsQuery, ApprovalsState, Choice, Code, Done, NewRule,
    OnlyThese, Page, QuestionForm, Rule, RuleEffect,
};
use axum::extract::State;
use axum::response::Response;
use engine::{ApprovalView, ApprovalWords, RuleRow, WhichApprovals, who_changed};
use http::StatusCode;
use kernel::{ApprovalForm, ApprovalId, Remember, Request, RuleId};

problems! {
    ListProblems = [Invalid, BadCursor, NotFound, RightMissing];
    ReadProblems = [NotFound, RightMissing];
    AnswerProblems = [BadJson, TooSlow, TooLarge, UnsupportedMediaType, Invalid, UnfitAnswer, NotFound, NotAllowed,
        RightMissing, RoleTooLow, BoundElsewhere, NotYoursToAnswer, SessionEnded, IdempotencyConflict, TooLate, Lapsed,
        Changed, TooManyRules, DiskFull, Unclear];
    RulesProblems = [RightMissing, BoundElsewhere];
    AddRuleProblems = [BadJson, TooSlow, TooLarge, UnsupportedMediaType, Invalid, NotFound, NotAllowed, RightMissing,
        RoleTooLow, BoundElsewhere, UnknownAgent, SessionEnded, TooManyRules, IdempotencyConflict, Changed, DiskFull,
        Unclear];
    RemoveRuleProblems = [Invalid, NotFound, NotAllowed, RightMissing, RoleTooLow, BoundElsewhere, IdempotencyConflict, Changed,
        DiskFull, Unclear];
}

/// The id of an approval, in a path.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code)]
pub(crate) struct ApprovalName {
    /// The question.
    #[param(pattern = "^apr_[0-7][0-9a-hjkmnp-tv-z]{25}$")]
    id: String,
}

/// The id of a rule, in a path.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code)]
pub(crate) struct RuleName {
    /// The rule.
    #[param(pattern = "^rul_[0-7][0-9a-hjkmnp-tv-z]{25}$")]
    id: String,
}

/// List questions
///
/// The open ones, the oldest first; with `state=settled` those that were answered or have lapsed, with `state=all` both, the newest first
/// and each with who answered, what and when. With `session`, those of one session.
#[utoipa::path(
    get, path = "/api/v1/approvals", tag = "approvals", operation_id = "approvals", params(ApprovalsQuery),
    responses((status = 200, description = "A page of questions.", body = Page<Approval>), ListProblems),
)]
pub(crate) async fn list(
    State(door): State<SharedDoor>,
    caller: Caller,
    Query(query): Query<ApprovalsQuery>,
) -> ApiResult<Json<Page<Approval>>> {
    let which = match query.state.unwrap_or_default() {
        ApprovalsState::Open => WhichApprovals::Open,
        ApprovalsState::Settled => WhichApprovals::Settled,
        ApprovalsState::All => WhichApprovals::All,
    };
    let (limit, after) = (limit(query.limit)?, cursor::read_approvals(which, query.cursor.as_deref())?);
    let session = match &query.session {
        Some(session) => Some(session_id("session", session, &door, &caller.by).await?),
        None => None,
    };
    // One more than asked for tells whether there is a next page.
    let views = door.engine.views();
    let mut found = views.approvals_page(&caller.by, which, session, after, limit + 1).await?;
    let more = found.len() > limit;
    found.truncate(limit);
    let last = found.last().filter(|_| more).map(|last| (last.row.asked_at, last.row.approval));
    let next = last.map(|last| cursor::approvals(which, last));
    Ok(Json(Page { items: found.into_iter().map(approval_form).collect(), next }))
}

/// Show a question
///
/// Also one that is settled: who answered, what, and when.
#[utoipa::path(
    get, path = "/api/v1/approvals/{id}", tag = "approvals", operation_id = "approval", params(ApprovalName),
    responses((status = 200, description = "The question as it is now.", body = Approval), ReadProblems),
)]
pub(crate) async fn read(
    State(door): State<SharedDoor>,
    caller: Caller,
    Id(approval): Id<ApprovalId>,
) -> ApiResult<Json<Approval>> {
    Ok(Json(approval_form(door.engine.views().approval(&caller.by, approval).await?)))
}

/// Answer a question
///
/// The first answer wins; a later one is a 409 `too_late` that says in `answered` who was first. A question whose turn was
/// interrupted has lapsed: a 409 `lapsed`, whose hint is the message that lets the agent go on. With `remember` a yes or no
/// about a tool becomes a rule in the same step.
#[utoipa::path(
    post, path = "/api/v1/approvals/{id}", tag = "approvals", operation_id = "answer", params(ApprovalName, KeyHeader),
    request_body = ApprovalAnswer,
    responses(
        (status = 200, description = "It is answered.", body = Approval),
        (status = 202, description = "It is safe and will be decided; the question is as it is now.", body = Approval),
        AnswerProblems,
    ),
)]
pub(crate) async fn answer(
    State(door): State<SharedDoor>,
    caller: Caller,
    Id(approval): Id<ApprovalId>,
    JsonBody(said): JsonBody<ApprovalAnswer>,
) -> ApiResult<Response> {
    said.check()?;
    let answer = answer_of(said.answer);
    let remember = said.remember.map(|remember| match remember {
        api::Remember::Session => Remember::Session,
        api::Remember::Always => Remember::Always,
    });
    let request = Request::Answer { approval, answer, remember };
    let granted = door.engine.way_in().ask(&caller.by, request, caller.trace).await?;
    // Whoever may answer it is shown how it is.
    let now = door.engine.views().approval(&who_changed(&caller.by), approval).await?;
    Ok(granted_response(granted, Json(approval_form(now))))
}

/// List the rules for questions
///
/// The org's, and those of sessions that you see, until their time is over. An `allow` whose maker could no longer make it
/// does not count, and says so.
#[utoipa::path(
    get, path = "/api/v1/approvals/rules", tag = "approvals", operation_id = "rules",
    responses((status = 200, description = "The rules, the oldest first.", body = Page<Rule>), RulesProblems),
)]
pub(crate) async fn rules(State(door): State<SharedDoor>, caller: Caller) -> ApiResult<Json<Page<Rule>>> {
    let mut items = Vec::new();
    for row in door.engine.people().rules(&caller.by).await? {
        items.push(rule_form(&door, &caller, row).await?);
    }
    Ok(Json(Page { items, next: None }))
}

/// Make a rule for questions
///
/// Whoever manages a session makes those for it, an admin all others. An `allow` names at least an agent, a tool, a directory
/// or a session.
#[utoipa::path(
    post, path = "/api/v1/approvals/rules", tag = "approvals", operation_id = "add_rule", params(KeyHeader),
    request_body = NewRule,
    responses((status = 201, description = "It counts from now on.", body = Rule), AddRuleProblems),
)]
pub(crate) async fn add_rule(
    State(door): State<SharedDoor>,
    caller: Caller,
    JsonBody(new): JsonBody<NewRule>,
) -> ApiResult<(StatusCode, Json<Rule>)> {
    new.check()?;
    let NewRule { effect, who, agent, tool, directory, session, until } = new;
    let effect = match (effect, who) {
        (RuleEffect::Allow, _) => engine::RuleEffect::Allow,
        (RuleEffect::Deny, _) => engine::RuleEffect::Deny,
        (RuleEffect::Ask, Some(who)) => engine::RuleEffect::Ask(grantee_of(&who)?),
        (RuleEffect::Ask, None) => {
            return Err(ApiError::new(Code::Invalid, "who: say who may answer").at("who"));
        }
    };
    let session = match session {
        Some(session) => Some(session_id("session", &session, &door, &caller.by).await?),
        None => None,
    };
    let until = until.map(|until| kernel::Moment(until.0));
    let wanted = engine::NewRule { agent, tool, directory, session, effect, until };
    let row = door.engine.people().add_rule(&caller.by, wanted, caller.trace.clone()).await?;
    Ok((StatusCode::CREATED, Json(rule_form(&door, &caller, row).await?)))
}

/// Remove a rule for questions
///
/// Whoever may make it may remove it. What was answered by it stays so.
#[utoipa::path(
    delete, path = "/api/v1/approvals/rules/{id}", tag = "approvals", operation_id = "remove_rule",
    params(RuleName, KeyHeader),
    responses((status = 200, description = "It counts no more.", body = Done), RemoveRuleProblems),
)]
pub(crate) async fn remove_rule(
    State(door): State<SharedDoor>,
    caller: Caller,
    Id(rule): Id<RuleId>,
) -> ApiResult<Json<Done>> {
    door.engine.people().remove_rule(&caller.by, rule, caller.trace).await?;
    Ok(Json(Done { id: rule.to_string() }))
}

fn approval_form(view: ApprovalView) -> Approval {
    let ApprovalView { row, words, answered_by } = view;
    let (state, answer, by) = match row.state {
        engine::ApprovalState::Open => (ApprovalState::Open, None, None),
        engine::ApprovalState::Answered { answer, by } => {
            (ApprovalState::Answered, Some(answer_form(&answer)), answerer_word(by))
        }
        engine::ApprovalState::Lapsed => (ApprovalState::Lapsed, None, None),
    };
    let form = match row.terms.form {
        ApprovalForm::Permission => QuestionForm::Permission,
        ApprovalForm::Choice { .. } => QuestionForm::Choice,
        ApprovalForm::Words => QuestionForm::Words,
    };
    let only = row.terms.only.map(|(rule, who)| OnlyThese { rule: rule.to_string(), who: grantee_form(who) });
    let options = words.as_ref().map(options_form).unwrap_or_default();
    let (agent, directory, tool, detail) = match words {
        Some(ApprovalWords { agent, directory, tool, detail, .. }) => {
            (Some(agent), Some(directory), Some(tool), Some(detail))
        }
        None => (None, None, None, None),
    };
    Approval {
        id: row.approval.to_string(),
        session: row.session.to_string(),
        turn: row.turn.0,
        state,
        form,
        tool,
        detail,
        options,
        agent,
        directory,
        only,
        answer,
        by,
        by_handle: answered_by,
        asked_at: at(row.asked_at),
        until: at(row.until),
        settled_at: row.settled_at.map(at),
    }
}

fn options_form(words: &ApprovalWords) -> Vec<Choice> {
    let options = words.options.iter();
    options.map(|o| Choice { name: o.name.clone(), description: o.description.clone() }).collect()
}

async fn rule_form(door: &SharedDoor, caller: &Caller, row: RuleRow) -> ApiResult<Rule> {
    let counts = door
        .engine
        .people()
        .rule_counts(caller.by.org, &row)
        .await
        .map_err(engine::UnavailableError::from)?;
    let RuleRow { rule, by, since, agent, tool, directory, session, effect, until } = row;
    let (effect, whom) = match effect {
        engine::RuleEffect::Allow => (RuleEffect::Allow, None),
        engine::RuleEffect::Deny => (RuleEffect::Deny, None),
        engine::RuleEffect::Ask(whom) => (RuleEffect::Ask, Some(grantee_form(whom))),
    };
    Ok(Rule {
        id: rule.to_string(),
        effect,
        who: whom,
        agent,
        tool,
        directory,
        session: session.map(|session| session.to_string()),
        by: who(door, caller, by).await?,
        since: at(since),
        until: until.map(at),
        counts,
    })
}
