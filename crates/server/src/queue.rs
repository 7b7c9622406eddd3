//! The queue of a session, and its order.

use crate::attachments::attached_form;
use crate::door::SharedDoor;
use crate::extract::{Caller, Id, Json, JsonBody, id};
use crate::messages::{granted_response, state_form};
use crate::openapi::{KeyHeader, problems};
use crate::problem::ApiResult;
use crate::sessions::SessionName;
use crate::wire::{at, delivery_form, waiting_form};
use api::{Order, Queue, Queued, Who};
use axum::extract::State;
use axum::response::Response;
use engine::{QueuedView, who_changed};
use kernel::{Principal, Request, SessionId};

problems! {
    QueueProblems = [NotFound, RightMissing];
    OrderProblems = [BadJson, TooSlow, TooLarge, UnsupportedMediaType, Invalid, NotFound, NotAllowed, RightMissing,
        SessionEnded, IdempotencyConflict, TooLate, Changed, DiskFull, Unclear];
}

/// See what waits in a session
///
/// The one that runs first, then those that wait, in the order in which they will run.
#[utoipa::path(
    get, path = "/api/v1/sessions/{id}/queue", tag = "queue", operation_id = "queue", params(SessionName),
    responses((status = 200, description = "What is not final.", body = Queue), QueueProblems),
)]
pub(crate) async fn queue(
    State(door): State<SharedDoor>,
    caller: Caller,
    Id(session): Id<SessionId>,
) -> ApiResult<Json<Queue>> {
    read(&door, &caller.by, session).await.map(Json)
}

/// Put what waits into another order
///
/// Names every waiting message once; if they are not the ones that wait by then, it is a 409 `changed`.
#[utoipa::path(
    put, path = "/api/v1/sessions/{id}/queue", tag = "queue", operation_id = "reorder", params(SessionName, KeyHeader), request_body = Order,
    responses(
        (status = 200, description = "It is so.", body = Queue),
        (status = 202, description = "It is safe and will be decided; the queue is as it is now.", body = Queue),
        OrderProblems,
    ),
)]
pub(crate) async fn reorder(
    State(door): State<SharedDoor>,
    caller: Caller,
    Id(session): Id<SessionId>,
    JsonBody(order): JsonBody<Order>,
) -> ApiResult<Response> {
    order.check()?;
    let order = order.order.iter().map(|text| id("order", text)).collect::<ApiResult<Vec<_>>>()?;
    let granted =
        door.engine.way_in().ask(&caller.by, Request::Reorder { session, order }, caller.trace).await?;
    let now = read(&door, &who_changed(&caller.by), session).await?;
    Ok(granted_response(granted, Json(now)))
}

async fn read(door: &SharedDoor, by: &Principal, session: SessionId) -> ApiResult<Queue> {
    let queue = door.engine.views().queue(by, session).await?;
    Ok(Queue { items: queue.into_iter().map(queued_form).collect() })
}

fn queued_form(view: QueuedView) -> Queued {
    let QueuedView { row, sender, text, attachments, wait } = view;
    Queued {
        id: row.message.to_string(),
        state: state_form(row.state),
        why: row.why.map(str::to_owned),
        waiting: wait.map(waiting_form),
        by: row.by.to_string(),
        said_by: Some(Who { id: row.by.to_string(), handle: sender }),
        revision: row.revision,
        delivery: delivery_form(row.delivery),
        epoch: row.epoch.map(|epoch| epoch.0),
        text,
        attachments: attached_form(row.message, attachments),
        accepted_at: at(row.accepted_at),
    }
}
