//! Messages and their receipts.

use crate::attachments::{attached_form, parts_of};
use crate::door::SharedDoor;
use crate::extract::{Caller, Id, Json, JsonBody, Query, address, json_bytes, session_id};
use crate::openapi::{KeyHeader, problems};
use crate::problem::{ApiError, ApiResult};
use crate::wire::{at, delivery_form, delivery_of, links, previous, waiting_form};
use api::{
    Code, DeliveryNow, MESSAGE_BODY_BYTES_MAX, MessageChange, MessageQuery, NewMessage, Receipt,
    ReceiptState, To, WAIT_SECONDS_MAX, Who,
};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use engine::{AttachedFile, Granted, Inbound, MessagePart, ReceiptView, who_changed};
use http::{HeaderName, HeaderValue, StatusCode};
use kernel::{MessageId, Principal, Request};
use std::time::Duration;

problems! {
    SayProblems = [BadJson, TooSlow, TooLarge, UnsupportedMediaType, Invalid, BadAddress, UnknownAgent, UnknownModel, BadDirectory,
        NotFound, NotAllowed, AddressNotYours, RightMissing, RoleTooLow, AgentNotYours, DirectoryNotYours, BoundElsewhere,
        SessionEnded, IdempotencyConflict, OtherScope, OtherAgent, AttachmentNotTaken, QueueFull, TooManyOpenSessions, TooManyOrgSessions, TooMuchOnDisk,
        DiskFull, Unclear];
    ReceiptProblems = [Invalid, NotFound, RightMissing];
    ChangeProblems = [BadJson, TooSlow, TooLarge, UnsupportedMediaType, Invalid, NotFound, NotAllowed, NotYourWords,
        RightMissing, AgentNotYours, SessionEnded, IdempotencyConflict, TooLate, Changed, NotListening, OtherScope, ScopeChanging,
        BadDirectory, WorktreeTrouble, AttachmentNotTaken, TooMuchOnDisk, DiskFull, Unclear];
    VerbProblems = [Invalid, NotFound, NotAllowed, RightMissing, AgentNotYours, SessionEnded, IdempotencyConflict, TooLate, Changed, DiskFull,
        Unclear];
}

/// Say something
///
/// Answers as soon as the message is safe: from then on a power cut cannot lose it. What became of it is in its receipt.
/// A repetition under the same `Idempotency-Key` gets the very same answer.
#[utoipa::path(
    post, path = "/api/v1/messages", tag = "messages", operation_id = "say", params(KeyHeader), request_body = NewMessage,
    responses(
        (status = 202, description = "The message is safe.", body = Receipt, headers(
            ("Idempotent-Replayed" = bool, description = "`true` if this answers a repetition."))),
        SayProblems,
    ),
)]
pub(crate) async fn say(
    State(door): State<SharedDoor>,
    caller: Caller,
    JsonBody(message): JsonBody<NewMessage, MESSAGE_BODY_BYTES_MAX>,
) -> ApiResult<Response> {
    message.check()?;
    let (delivery, under) = message.delivery();
    let unattended = message.is_unattended();
    let (to, parts) = message.into_parts();
    let (parts, attachments) = parts_of(parts);
    let expected = expected_of(&to);
    let (to, if_new) = destination(&door, &caller.by, to).await?;
    let inbound = Inbound {
        by: caller.by.as_ref().clone(),
        to,
        if_new,
        expected,
        parts,
        attachments,
        delivery: delivery_of(delivery),
        under: under.map(kernel::Epoch),
        unattended,
        reply: None,
        trace: caller.trace,
    };
    let by = Who { id: caller.by.person.to_string(), handle: Some(caller.by.handle.clone()) };
    let receipt = door.engine.way_in().send(inbound).await?;
    let body = serde_json::to_vec(&accepted_form(by, delivery, &receipt));
    let body = body.map_err(|error| ApiError::new(Code::Internal, error.to_string()))?;
    let mut response = json_bytes(StatusCode::ACCEPTED, body);
    if receipt.repeated {
        mark_repeated(&mut response);
    }
    Ok(response)
}

pub(crate) fn mark_repeated(response: &mut Response) {
    let name = HeaderName::from_static("idempotent-replayed");
    response.headers_mut().insert(name, HeaderValue::from_static("true"));
}

async fn destination(door: &SharedDoor, by: &Principal, to: To) -> ApiResult<(kernel::To, engine::IfNew)> {
    Ok(match to {
        To::Session(to) => {
            let session = session_id("session", &to.session, door, by).await?;
            (kernel::To::Session(session), engine::IfNew::default())
        }
        To::Conversation(to) => {
            let address = address("conversation", &to.conversation)?;
            (kernel::To::Conversation(address), to.if_new.map(if_new).unwrap_or_default())
        }
        To::New(to) => {
            let (options, conversation) = to.new.split();
            let to = match conversation {
                Some(conversation) => kernel::To::NewIn(address("conversation", &conversation)?),
                None => kernel::To::New,
            };
            (to, if_new(options))
        }
    })
}

/// The agent and model that a session that is there has to have.
fn expected_of(to: &To) -> Option<engine::Expected> {
    let expect = match to {
        To::Session(to) => &to.expect,
        To::Conversation(to) => &to.expect,
        To::New(_) => &None,
    };
    expect.clone().map(expected).filter(|expected| *expected != engine::Expected::default())
}

pub(crate) fn expected(wire: api::Expect) -> engine::Expected {
    let api::Expect { agent, model } = wire;
    engine::Expected { agent, model }
}

pub(crate) fn if_new(wire: api::IfNew) -> engine::IfNew {
    let api::IfNew { agent, directory, model, mode, title, worktree } = wire;
    let worktree = worktree.map(|wanted| {
        let api::OwnWorktree { name, base, branch } = wanted;
        kernel::NewWorktree::own(name, base, branch)
    });
    engine::IfNew { agent, directory, model, mode, title, worktree }
}

/// Ask how a message stands
///
/// With `wait` the answer comes as soon as the receipt is final, or when the time is over.
#[utoipa::path(
    get, path = "/api/v1/messages/{id}", tag = "messages", operation_id = "receipt", params(MessageName, MessageQuery),
    responses((status = 200, description = "The receipt as it is now.", body = Receipt), ReceiptProblems),
)]
pub(crate) async fn receipt(
    State(door): State<SharedDoor>,
    caller: Caller,
    Id(message): Id<MessageId>,
    Query(query): Query<MessageQuery>,
) -> ApiResult<Json<Receipt>> {
    let wait = query.wait.unwrap_or(0);
    if wait > WAIT_SECONDS_MAX {
        return Err(
            ApiError::new(Code::Invalid, format!("wait: at most {WAIT_SECONDS_MAX} seconds")).at("wait")
        );
    }
    let view = if wait == 0 {
        door.engine.views().receipt(&caller.by, message).await?
    } else {
        let waited = door.engine.views().receipt_within(&caller.by, message, Duration::from_secs(wait));
        tokio::select! {
            view = waited => view?,
            // Whoever waits learns how it stands now, and asks the next server.
            () = door.closing() => door.engine.views().receipt(&caller.by, message).await?,
        }
    };
    let mut receipt = receipt_form(view);
    if query.words == Some(true) {
        receipt.text = Some(door.engine.views().words(&caller.by, message).await?);
        let attachments = door.engine.views().attachments(&caller.by, message).await?;
        receipt.attachments = attached_form(message, attachments);
    }
    Ok(Json(receipt))
}

/// Change a message that has not been started
///
/// Other words (by its sender, naming the revision they saw), or hold and release. With `text` its images and files stay; `parts` replace
/// everything. Released `there`, it stays held if there
/// is nothing to go back to any more: a 409 `worktree_trouble` or `bad_directory`. With `delivery` it is heard at once: said into the turn
/// under way, or in a turn that stops that one and comes before all others.
#[utoipa::path(
    patch, path = "/api/v1/messages/{id}", tag = "messages", operation_id = "change_message", params(MessageName, KeyHeader),
    request_body = MessageChange,
    responses(
        (status = 200, description = "It is so.", body = Receipt),
        (status = 202, description = "It is safe and will be decided; the receipt says how it stands now.", body = Receipt),
        ChangeProblems,
    ),
)]
pub(crate) async fn change(
    State(door): State<SharedDoor>,
    caller: Caller,
    Id(message): Id<MessageId>,
    JsonBody(change): JsonBody<MessageChange, MESSAGE_BODY_BYTES_MAX>,
) -> ApiResult<Response> {
    change.check()?;
    match change {
        MessageChange::Text(change) => {
            let parts = vec![MessagePart::Text { text: change.text }];
            edit(&door, caller, message, change.revision, parts, None).await
        }
        MessageChange::Parts(change) => {
            let (parts, attachments) = parts_of(change.parts);
            edit(&door, caller, message, change.revision, parts, Some(attachments)).await
        }
        MessageChange::Hold(change) if change.held => {
            ask(&door, caller, message, Request::Hold { message }).await
        }
        MessageChange::Hold(change) => {
            ask(&door, caller, message, Request::Release { message, there: change.there == Some(true) }).await
        }
        MessageChange::Deliver(change) => {
            let request = match change.delivery {
                DeliveryNow::Steer => Request::Steer { message },
                DeliveryNow::Interrupt => Request::Interrupt { message },
            };
            ask(&door, caller, message, request).await
        }
    }
}

/// Take a message back
///
/// Only while it has not been started; to stop its turn, use `stop`.
#[utoipa::path(
    delete, path = "/api/v1/messages/{id}", tag = "messages", operation_id = "withdraw", params(MessageName, KeyHeader),
    responses(
        (status = 200, description = "It was taken back.", body = Receipt),
        (status = 202, description = "It is safe and will be decided; the receipt says how it stands now.", body = Receipt),
        VerbProblems,
    ),
)]
pub(crate) async fn withdraw(
    State(door): State<SharedDoor>,
    caller: Caller,
    Id(message): Id<MessageId>,
) -> ApiResult<Response> {
    ask(&door, caller, message, Request::Withdraw { message }).await
}

/// Stop the turn of a message, or take it back
///
/// A waiting message is withdrawn, a running turn is stopped, and nothing happens to what is over. Stopping twice is
/// fine.
#[utoipa::path(
    post, path = "/api/v1/messages/{id}/stop", tag = "messages", operation_id = "stop", params(MessageName, KeyHeader),
    responses(
        (status = 200, description = "It is stopped, being stopped, withdrawn, or was over.", body = Receipt),
        (status = 202, description = "It is safe and will be decided; the receipt says how it stands now.", body = Receipt),
        VerbProblems,
    ),
)]
pub(crate) async fn stop(
    State(door): State<SharedDoor>,
    caller: Caller,
    Id(message): Id<MessageId>,
) -> ApiResult<Response> {
    ask(&door, caller, message, Request::Stop { message }).await
}

async fn edit(
    door: &SharedDoor,
    caller: Caller,
    message: MessageId,
    revision: u32,
    parts: Vec<MessagePart>,
    attachments: Option<Vec<AttachedFile>>,
) -> ApiResult<Response> {
    let (way_in, by, trace) = (door.engine.way_in(), &caller.by, caller.trace);
    let granted = match attachments {
        None => way_in.edit(by, message, revision, &parts, trace).await?,
        Some(attached) => way_in.rewrite(by, message, revision, &parts, &attached, trace).await?,
    };
    receipt_now(door, &caller.by, message, granted).await
}

async fn ask(door: &SharedDoor, caller: Caller, message: MessageId, request: Request) -> ApiResult<Response> {
    let granted = door.engine.way_in().ask(&caller.by, request, caller.trace).await?;
    receipt_now(door, &caller.by, message, granted).await
}

async fn receipt_now(
    door: &SharedDoor,
    by: &Principal,
    message: MessageId,
    granted: Granted,
) -> ApiResult<Response> {
    let view = door.engine.views().receipt(&who_changed(by), message).await?;
    Ok(granted_response(granted, Json(receipt_form(view))))
}

/// 200 if the keeper said yes, 202 if it has not said anything yet.
pub(crate) fn granted_response(granted: Granted, now: impl IntoResponse) -> Response {
    let mut response = now.into_response();
    match granted {
        Granted::Done => {}
        Granted::Pending => *response.status_mut() = StatusCode::ACCEPTED,
    }
    response
}

/// The id of a message, in a path.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code)]
pub(crate) struct MessageName {
    /// The message.
    #[param(pattern = "^msg_[0-7][0-9a-hjkmnp-tv-z]{25}$")]
    id: String,
}

fn accepted_form(by: Who, delivery: api::Delivery, receipt: &engine::Receipt) -> Receipt {
    let engine::Receipt { accepted, deaf, .. } = receipt;
    let hint = deaf.as_ref().map(|agent| {
        format!("{agent} takes no words while it works: this is no part of the turn under way, and waits for a turn of its own")
    });
    Receipt {
        id: accepted.message.to_string(),
        session: accepted.session.to_string(),
        by: Some(by),
        door: None,
        state: ReceiptState::Waiting,
        why: None,
        hint,
        waiting: None,
        new: accepted.created,
        previous: previous(accepted.previous),
        if_new_ignored: accepted.if_new_ignored,
        revision: 0,
        delivery,
        epoch: None,
        turn: None,
        first: None,
        last: None,
        answer: None,
        notice: None,
        text: None,
        attachments: Vec::new(),
        accepted_at: at(accepted.at),
        changed_at: at(accepted.at),
        links: links(format!("/api/v1/messages/{}", accepted.message), accepted.session),
    }
}

fn receipt_form(view: ReceiptView) -> Receipt {
    let ReceiptView { row, sender, answer, notice, wait } = view;
    let state = state_form(row.state);
    // It has its place in the queue, where it would be if nobody had wanted it to be said into a turn.
    let fell_back = row.delivery == kernel::Delivery::Steer && row.epoch.is_some();
    Receipt {
        id: row.message.to_string(),
        session: row.session.to_string(),
        by: Some(Who { id: row.by.to_string(), handle: sender }),
        door: row.door,
        state,
        why: row.why.map(str::to_owned),
        hint: hint(state, row.why, fell_back).map(str::to_owned),
        waiting: wait.map(waiting_form),
        new: row.created,
        previous: previous(row.previous),
        if_new_ignored: row.if_new_ignored,
        revision: row.revision,
        delivery: delivery_form(row.delivery),
        epoch: row.epoch.map(|epoch| epoch.0),
        turn: row.turn.map(|turn| turn.0),
        first: row.first.map(|number| number.0),
        last: row.last.map(|number| number.0),
        answer,
        notice,
        text: None,
        attachments: Vec::new(),
        accepted_at: at(row.accepted_at),
        changed_at: at(row.changed_at),
        links: links(format!("/api/v1/messages/{}", row.message), row.session),
    }
}

pub(crate) fn state_form(state: engine::ReceiptState) -> ReceiptState {
    match state {
        engine::ReceiptState::Waiting => ReceiptState::Waiting,
        engine::ReceiptState::Held => ReceiptState::Held,
        engine::ReceiptState::Running => ReceiptState::Running,
        engine::ReceiptState::Answered => ReceiptState::Answered,
        engine::ReceiptState::Failed => ReceiptState::Failed,
        engine::ReceiptState::Stopped => ReceiptState::Stopped,
        engine::ReceiptState::Withdrawn => ReceiptState::Withdrawn,
        engine::ReceiptState::Refused => ReceiptState::Refused,
    }
}

/// Advice on going on, for somebody whose message is not on its way any more.
fn hint(state: ReceiptState, why: Option<&str>, fell_back: bool) -> Option<&'static str> {
    match (state, why.unwrap_or_default()) {
        (ReceiptState::Waiting, _) if fell_back => {
            Some("it could not be said into the turn under way, so it waits like any other message")
        }
        (ReceiptState::Held, "other_scope") => Some(
            "the session acts elsewhere now: release it here, release it `there` (the session goes back first), or \
             withdraw it",
        ),
        (ReceiptState::Held, "after_failure") => {
            Some("what came before it failed: look at that, then release this one or withdraw it")
        }
        (ReceiptState::Held, _) => Some("it waits until somebody releases it"),
        (ReceiptState::Failed, "interrupted") => Some(
            "the agent was lost while it worked, and may have acted: look at what it did, then say how to go on",
        ),
        (ReceiptState::Failed, "time_limit") => {
            Some("it took longer than a turn may; what it did so far stands: say how to go on")
        }
        (ReceiptState::Failed, "gone") => Some(
            "the agent's own conversation is gone, and the session has ended: start anew with a message to its \
             conversation, or to {\"new\": {}}",
        ),
        (ReceiptState::Failed, "busy") => {
            Some("something else uses the agent's conversation: close it there, then say it again")
        }
        (ReceiptState::Failed, "refused") => {
            Some("it was not done: the notice says why; mend that, then say it again")
        }
        (ReceiptState::Failed, _) => {
            Some("it failed for now: look whether it has acted (the facts say), then say it again")
        }
        (ReceiptState::Refused, "session_ended") => Some(
            "the session ended while it waited: start anew with a message to its conversation, or to {\"new\": {}}",
        ),
        (ReceiptState::Refused, "expired") => Some("it was held for too long: say it again"),
        (ReceiptState::Refused, "not_allowed") | (ReceiptState::Stopped, "revoked") => Some(
            "its sender may no longer prompt here: the session's owner, or an admin where the person or the agent is \
             concerned, can change that; then say it again",
        ),
        (ReceiptState::Refused, _) => Some("it will never be started: say it again if it still matters"),
        (
            ReceiptState::Waiting
            | ReceiptState::Running
            | ReceiptState::Answered
            | ReceiptState::Stopped
            | ReceiptState::Withdrawn,
            _,
        ) => None,
    }
}
