//! A session's log: a page of it, or a stream.

use crate::door::SharedDoor;
use crate::extract::{Caller, Id, Query, json_bytes, limit};
use crate::openapi::problems;
use crate::problem::{ApiError, ApiResult};
use crate::scope::ready_form;
use crate::sessions::SessionName;
use crate::stream::{self, FrameSource};
use crate::wire::{fact_frame, live_frame, progress_frame, ready_frame, write_fact};
use api::{Code, Facts, FactsQuery, NUMBER_MAX};
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use engine::{Follow, FollowUpdate, ReadyFollow, SessionUpdate};
use http::{HeaderMap, StatusCode};
use kernel::{Number, SessionId};
use std::io::Write;

/// A page of facts has at most about as many bytes, and at least one fact.
const PAGE_BYTES_MAX: usize = 1024 * 1024;

/// Digits of a `Last-Event-ID`; whatever has more is no number of ours.
const LAST_DIGITS_MAX: usize = 15;

problems! {
    FactsProblems = [Invalid, NotFound, RightMissing, TooManyStreams];
}

/// Where a stream goes on.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Header)]
#[allow(dead_code)]
pub(crate) struct LastHeader {
    /// The `id` of the last event that was received, for a stream; it beats `after`.
    #[param(rename = "Last-Event-ID", nullable = false, pattern = "^[0-9]{1,15}$")]
    last: Option<String>,
}

/// Read or follow a session's facts
///
/// A page in JSON; or, under `Accept: text/event-stream`, every fact after a number and those to come, one event each,
/// whose `id` is the fact's number. Events named `live` have no `id`: words ahead of the log, which come again as facts. Nor have
/// those named `progress`: the work that goes on between turns, as the session has it, and `null` once it is over.
/// With `readiness=true`, events named `readiness` (without `id`, too) say how ready the session is whenever that changes.
/// A reader that is too slow is cut off, and comes back with the last number it has.
#[utoipa::path(
    get, path = "/api/v1/sessions/{id}/facts", tag = "facts", operation_id = "facts", params(SessionName, FactsQuery, LastHeader),
    responses(
        (status = 200, description = "Facts, in order.", content(
            (Facts = "application/json"), (String = "text/event-stream"))),
        FactsProblems,
    ),
)]
pub(crate) async fn facts(
    State(door): State<SharedDoor>,
    caller: Caller,
    Id(session): Id<SessionId>,
    Query(query): Query<FactsQuery>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let after = number("after", query.after.unwrap_or(0))?;
    let limit = limit(query.limit)?;
    let last = last_event(&headers)?;
    if stream::wanted(&headers) {
        let after = last.unwrap_or(after);
        drop(headers);
        let permit = stream::permit(&door, caller.by.person)?;
        let follow = door.engine.views().follow(&caller.by, session, after).await?;
        return Ok(match query.readiness {
            Some(true) => stream::respond(&door, permit, follow.with_readiness()),
            Some(false) | None => stream::respond(&door, permit, follow),
        });
    }
    let facts = door.engine.views().facts(&caller.by, session, after, limit, PAGE_BYTES_MAX).await?;
    let next = facts.last().map_or(after, |shared| shared.fact.number);
    let mut body = b"{\"items\":[".to_vec();
    for (index, shared) in facts.iter().enumerate() {
        if index > 0 {
            body.push(b',');
        }
        write_fact(&mut body, &shared.fact);
    }
    let _ = write!(body, "],\"next\":{next}}}");
    Ok(json_bytes(StatusCode::OK, body))
}

fn number(field: &'static str, number: u64) -> ApiResult<Number> {
    if number <= NUMBER_MAX {
        return Ok(Number(number));
    }
    Err(ApiError::new(Code::Invalid, format!("{field}: at most {NUMBER_MAX}")).at(field))
}

fn last_event(headers: &HeaderMap) -> ApiResult<Option<Number>> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let digits = value.to_str().ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let parsed = digits.filter(|text| text.len() <= LAST_DIGITS_MAX).and_then(|text| text.parse().ok());
    let not = || ApiError::new(Code::Invalid, "must be the number of a fact").at("Last-Event-ID");
    number("Last-Event-ID", parsed.ok_or_else(not)?).map(Some)
}

impl FrameSource for ReadyFollow {
    async fn next(&mut self) -> Option<Bytes> {
        Some(match ReadyFollow::next(self).await? {
            FollowUpdate::Session(told) => frame_of(&told),
            FollowUpdate::Ready(view) => ready_frame(&ready_form(&view)),
        })
    }
}

fn frame_of(told: &SessionUpdate) -> Bytes {
    match told {
        SessionUpdate::Fact(shared) => fact_frame(shared),
        SessionUpdate::Live(live) => live_frame(live),
        SessionUpdate::Progress(update) => progress_frame(update),
    }
}

impl FrameSource for Follow {
    async fn next(&mut self) -> Option<Bytes> {
        Some(frame_of(&Follow::next(self).await?))
    }
}
