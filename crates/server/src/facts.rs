//! A session's log: a page of it, or a stream.

use crate::attachments::attached_form;
use crate::door::SharedDoor;
use crate::extract::{Caller, Id, Query, json_bytes, limit};
use crate::openapi::problems;
use crate::problem::{ApiError, ApiResult};
use crate::scope::ready_form;
use crate::sessions::SessionName;
use crate::stream::{self, FrameSource};
use crate::wire::{at, fact_frame, live_frame, progress_frame, ready_frame, write_fact};
use api::{Code, Facts, FactsQuery, NUMBER_MAX, SaidMessage, Who};
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use engine::{Follow, FollowUpdate, ReadyFollow, SaidView, SessionUpdate, SharedFact};
use http::{HeaderMap, StatusCode};
use kernel::{Number, SessionId};
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

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
/// A page may also go backwards (`before`), and have the words of the messages that its facts name (`words=true`).
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
    let before = query.before.map(|before| number("before", before)).transpose()?;
    let limit = limit(query.limit)?;
    let last = last_event(&headers)?;
    if before.is_some() && query.after.is_some() {
        return Err(ApiError::new(Code::Invalid, "before: goes without `after`").at("before"));
    }
    if stream::wanted(&headers) {
        if before.is_some() || query.words.is_some() {
            let detail = "a stream goes on from `after` and has no words: ask for a page";
            return Err(ApiError::new(Code::Invalid, detail).at("Accept"));
        }
        let after = last.unwrap_or(after);
        drop(headers);
        let permit = stream::permit(&door, caller.by.person)?;
        let follow = door.engine.views().follow(&caller.by, session, after).await?;
        return Ok(match query.readiness {
            Some(true) => stream::respond(&door, permit, follow.with_readiness()),
            Some(false) | None => stream::respond(&door, permit, follow),
        });
    }
    let views = door.engine.views();
    let (facts, next) = match before {
        Some(before) => {
            let facts = views.facts_before(&caller.by, session, before, limit, PAGE_BYTES_MAX).await?;
            let next = facts.first().map_or(before, |shared| shared.fact.number);
            (facts, next)
        }
        None => {
            let facts = views.facts(&caller.by, session, after, limit, PAGE_BYTES_MAX).await?;
            let next = facts.last().map_or(after, |shared| shared.fact.number);
            (facts, next)
        }
    };
    let said = match query.words {
        Some(true) => Some(views.said_in(&caller.by, session, &facts).await?),
        Some(false) | None => None,
    };
    Ok(json_bytes(StatusCode::OK, page(&facts, next, said)))
}

fn page(facts: &[Arc<SharedFact>], next: Number, said: Option<Vec<SaidView>>) -> Vec<u8> {
    let mut body = b"{\"items\":[".to_vec();
    for (index, shared) in facts.iter().enumerate() {
        if index > 0 {
            body.push(b',');
        }
        write_fact(&mut body, &shared.fact);
    }
    let _ = write!(body, "],\"next\":{next}");
    if let Some(said) = said {
        let said: BTreeMap<_, _> = said.into_iter().map(said_form).collect();
        body.extend_from_slice(b",\"messages\":");
        serde_json::to_writer(&mut body, &said).expect("wire types are plain data");
    }
    body.push(b'}');
    body
}

fn said_form(said: SaidView) -> (String, SaidMessage) {
    let SaidView { message, by, sender, door, at: accepted_at, text, is_cut, attachments } = said;
    let form = SaidMessage {
        text,
        cut: is_cut,
        by: Who { id: by.to_string(), handle: sender },
        door,
        at: at(accepted_at),
        attachments: attached_form(message, attachments),
    };
    (message.to_string(), form)
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
