//! The sessions that have changed, as heads only; clients read the session for the content.

use crate::cursor;
use crate::door::SharedDoor;
use crate::extract::{Caller, Json, Query, limit};
use crate::openapi::problems;
use crate::problem::ApiResult;
use crate::stream::{self, FrameSource};
use api::{Head, Page, PageQuery};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use engine::FollowHeads;
use http::HeaderMap;

problems! {
    HeadsProblems = [Invalid, BadCursor, RightMissing, TooManyStreams];
}

/// Read or follow what changes in all sessions
///
/// Each session that has changed, with the number of its last fact, in the order of the last changes: a page, or under
/// `Accept: text/event-stream` a stream without end whose `id`s are cursors (`Last-Event-ID` beats `cursor`). A
/// session that changes twice while nobody looks is told once.
#[utoipa::path(
    get, path = "/api/v1/facts", tag = "facts", operation_id = "heads", params(PageQuery),
    responses(
        (status = 200, description = "Sessions that have changed.", content(
            (Page<Head> = "application/json"), (String = "text/event-stream"))),
        HeadsProblems,
    ),
)]
pub(crate) async fn heads(
    State(door): State<SharedDoor>,
    caller: Caller,
    Query(query): Query<PageQuery>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let limit = limit(query.limit)?;
    let after = cursor::read_heads(query.cursor.as_deref())?;
    if stream::wanted(&headers) {
        let last = headers.get("last-event-id").map(|value| value.to_str().unwrap_or_default());
        let at = if last.is_some() { cursor::read_heads(last)? } else { after };
        let permit = stream::permit(&door, caller.by.person)?;
        let heads = door.engine.views().follow_heads(&caller.by, at).await?;
        return Ok(stream::respond(&door, permit, heads));
    }
    let heads = door.engine.views().heads(&caller.by, after, limit).await?;
    // There is always a next page, even if nothing is on it yet.
    let next = Some(cursor::heads(heads.last().map_or(after, |head| head.place)));
    Ok(Json(Page { items: heads.into_iter().map(head_form).collect(), next }).into_response())
}

fn head_form(head: engine::Head) -> Head {
    Head { session: head.session.to_string(), number: head.number.0 }
}

impl FrameSource for FollowHeads {
    async fn next(&mut self) -> Option<Bytes> {
        let engine::Head { place, session, number } = FollowHeads::next(self).await?;
        let cursor = cursor::heads(place);
        let frame = format!("id: {cursor}\ndata: {{\"session\":\"{session}\",\"number\":{number}}}\n\n");
        Some(Bytes::from(frame))
    }
}
