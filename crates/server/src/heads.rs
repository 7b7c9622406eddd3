//! The sessions that have changed, as heads only; clients read the session for the content.

use crate::cursor;
use crate::door::{HttpDoor, SharedDoor};
use crate::extract::{Caller, Json, Query, limit};
use crate::openapi::problems;
use crate::problem::ApiResult;
use crate::stream::{self, FrameSource};
use api::{Head, Page, PageQuery};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::HeaderMap;
use kernel::Principal;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Heads read at once for a stream.
const STREAM_HEADS: usize = 100;
/// Changes within this time are read together, so that a busy server is not asked once per fact and reader.
const GATHER: Duration = Duration::from_millis(50);
/// The time between two looks at a reader's credential while nothing happens here.
const LOOK_EVERY: Duration = Duration::from_millis(600);

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
        // Whoever may not read at all is told so, and not by a stream that ends at once.
        door.engine.views().heads(&caller.by, at, 1).await?;
        let (changes, rights) = (door.engine.views().changes(), door.engine.people().rights());
        let heads =
            HeadsFrames { door: door.clone(), by: caller.by, at, changes, rights, page: VecDeque::new() };
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

struct HeadsFrames {
    door: Arc<HttpDoor>,
    by: Arc<Principal>,
    at: u64,
    changes: watch::Receiver<u64>,
    rights: watch::Receiver<u64>,
    page: VecDeque<engine::Head>,
}

impl HeadsFrames {
    /// Answers when something has changed; none when the reader's credential is good for nothing any more.
    async fn change(&mut self) -> Option<()> {
        loop {
            tokio::select! {
                changed = self.changes.changed() => return changed.ok(),
                changed = self.rights.changed() => changed.ok()?,
                // Another node may have taken it away.
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            self.door.engine.people().refreshed(&self.by).await.ok()?;
        }
    }
}

impl FrameSource for HeadsFrames {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(head) = self.page.pop_front() {
                self.at = head.place;
                let (cursor, session, number) = (cursor::heads(head.place), head.session, head.number);
                let frame =
                    format!("id: {cursor}\ndata: {{\"session\":\"{session}\",\"number\":{number}}}\n\n");
                return Some(Bytes::from(frame));
            }
            // Seen before it is read: a change in between wakes us again.
            self.changes.mark_unchanged();
            let page = self.door.engine.views().heads(&self.by, self.at, STREAM_HEADS).await.ok()?;
            self.page = page.into();
            if self.page.is_empty() {
                self.change().await?;
                tokio::time::sleep(GATHER).await;
            }
        }
    }
}
