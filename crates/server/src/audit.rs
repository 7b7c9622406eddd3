//! The audit: a page of it, all of it as JSON Lines, and whether its chain holds.

use crate::cursor;
use crate::door::SharedDoor;
use crate::extract::{Caller, Json, Query, id, limit};
use crate::openapi::problems;
use crate::people::who;
use crate::problem::{ApiError, ApiResult};
use crate::stream;
use crate::wire::at;
use api::{AuditQuery, Broken, ChainHead, Code, Entry, LIMIT_MAX, Page, Verified};
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use engine::{AuditRow, AuditWish};
use futures_util::stream::unfold;
use http::{HeaderMap, HeaderValue, header};
use kernel::Moment;
use std::fmt::Write;

/// The longest verb, and the longest subject.
const WHAT_LENGTH_MAX: usize = 64;
const SUBJECT_LENGTH_MAX: usize = 4_096;
/// The media type of an export.
const JSON_LINES: &str = "application/jsonl";

problems! {
    AuditProblems = [Invalid, BadCursor, RightMissing, RoleTooLow, BoundElsewhere, TooManyStreams];
    VerifyProblems = [RightMissing, RoleTooLow, BoundElsewhere];
}

/// Read or export the audit
///
/// Who did what, or was refused, newest first; for admins. A page in JSON; or, under `Accept: application/jsonl`, every entry
/// that fits, one JSON object per line.
#[utoipa::path(
    get, path = "/api/v1/audit", tag = "audit", operation_id = "audit", params(AuditQuery),
    responses(
        (status = 200, description = "Entries.", content(
            (Page<Entry> = "application/json"), (String = "application/jsonl"))),
        AuditProblems,
    ),
)]
pub(crate) async fn list(
    State(door): State<SharedDoor>,
    caller: Caller,
    Query(query): Query<AuditQuery>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let limit = limit(query.limit)?;
    let wish = wish_of(query, limit + 1)?;
    if stream::accepts(&headers, JSON_LINES) {
        return export(door, caller, wish).await;
    }
    let mut rows = door.engine.people().audit(&caller.by, wish).await?;
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| more).map(|row| cursor::audit(row.entry));
    let mut items = Vec::new();
    for row in rows {
        items.push(entry_form(&door, &caller, row).await?);
    }
    Ok(Json(Page { items, next }).into_response())
}

fn wish_of(query: AuditQuery, limit: usize) -> ApiResult<AuditWish> {
    let texts = [("what", &query.what, WHAT_LENGTH_MAX), ("subject", &query.subject, SUBJECT_LENGTH_MAX)];
    for (field, text, max) in texts {
        if text.as_ref().is_some_and(|text| text.chars().nth(max).is_some()) {
            return Err(
                ApiError::new(Code::Invalid, format!("{field}: more than {max} characters")).at(field)
            );
        }
    }
    Ok(AuditWish {
        since: query.since.map(|at| Moment(at.0)),
        until: query.until.map(|at| Moment(at.0)),
        who: query.who.map(|who| id("who", &who)).transpose()?,
        what: query.what,
        subject: query.subject,
        before: cursor::read_audit(query.cursor.as_deref())?,
        limit,
    })
}

/// Everything, page after page. The right to it is asked for again with each; whoever has lost it is cut off.
async fn export(door: SharedDoor, caller: Caller, wish: AuditWish) -> ApiResult<Response> {
    let permit = stream::permit(&door, caller.by.person)?;
    let wish = AuditWish { limit: LIMIT_MAX, ..wish };
    // The first page before the head is sent: a refusal is an answer, not a broken stream.
    let first = page(&door, &caller, &wish).await?;
    let begin = Some((first, wish));
    let lines = unfold((door.clone(), caller, permit, begin), |(door, caller, permit, state)| async move {
        let ((bytes, last), wish) = state?;
        let next = match last {
            None => None,
            Some(before) => {
                let wish = AuditWish { before: Some(before), ..wish };
                match next_page(&door, &caller, &wish).await {
                    Ok(page) => Some((page, wish)),
                    Err(cut) => return Some((Err(cut), (door, caller, permit, None))),
                }
            }
        };
        Some((Ok(bytes), (door, caller, permit, next)))
    });
    let mut response = Response::new(Body::from_stream(lines));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON_LINES));
    Ok(response)
}

/// Lines, and the last entry if there may be more.
type ExportChunk = (Bytes, Option<u64>);

async fn next_page(
    door: &SharedDoor,
    caller: &Caller,
    wish: &AuditWish,
) -> Result<ExportChunk, std::io::Error> {
    let by = door.engine.people().refreshed(&caller.by).await.map_err(std::io::Error::other)?;
    let caller = Caller { by: by.into(), trace: caller.trace.clone() };
    // A break in the middle is seen by the reader: the body has no proper end.
    page(door, &caller, wish).await.map_err(|ApiError(problem)| std::io::Error::other(problem.detail))
}

async fn page(door: &SharedDoor, caller: &Caller, wish: &AuditWish) -> ApiResult<ExportChunk> {
    let rows = door.engine.people().audit(&caller.by, wish.clone()).await?;
    let last = rows.last().filter(|_| rows.len() == wish.limit).map(|row| row.entry);
    let mut lines = Vec::new();
    for row in rows {
        let entry = entry_form(door, caller, row).await?;
        let line = serde_json::to_writer(&mut lines, &entry);
        line.map_err(|error| ApiError::new(Code::Internal, error.to_string()))?;
        lines.push(b'\n');
    }
    Ok((Bytes::from(lines), last))
}

/// Verify the audit
///
/// Makes every seal of the org's chain again and compares; for admins. Names the first entry that is not as it was sealed.
#[utoipa::path(
    get, path = "/api/v1/audit/verify", tag = "audit", operation_id = "verify_audit",
    responses((status = 200, description = "Whether the chain holds.", body = Verified), VerifyProblems),
)]
pub(crate) async fn verify(State(door): State<SharedDoor>, caller: Caller) -> ApiResult<Json<Verified>> {
    let engine::ChainCheck { entries, head, broken } = door.engine.people().verify_audit(&caller.by).await?;
    let head = ChainHead { number: head.number, seal: hex(&head.seal) };
    let broken = broken.map(|broken| Broken {
        number: broken.number,
        entry: broken.entry,
        why: broken.why.to_owned(),
    });
    Ok(Json(Verified { ok: broken.is_none(), entries, head, broken }))
}

async fn entry_form(door: &SharedDoor, caller: &Caller, row: AuditRow) -> ApiResult<Entry> {
    let by = match row.by {
        Some(person) => Some(who(door, caller, person).await?),
        None => None,
    };
    let (number, seal) = row.sealed.map(|(number, seal)| (number, hex(&seal))).unzip();
    Ok(Entry {
        entry: row.entry,
        number,
        seal,
        at: at(row.at),
        by,
        what: row.verb,
        door: row.door,
        address: row.address,
        correlation: row.correlation,
        session: row.session.map(|session| session.to_string()),
        subject: row.subject,
        refused: row.refused,
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
