//! The one stream of a browser: the rows of its lists that change, and what happens in the sessions that it watches.
//!
//! A browser opens few connections to a server, so that everything its tabs show comes through one. The bytes of a fact are made
//! once, by the first who needs them; here they are wrapped, and not made again for each reader.

use crate::cursor;
use crate::door::SharedDoor;
use crate::extract::Caller;
use crate::openapi::problems;
use crate::problem::{ApiError, ApiResult};
use crate::scope::ready_form;
use crate::sessions::named_form;
use crate::stream::{self, FrameSource};
use crate::wire::{fact_frame, live_frame, progress_frame, ready_frame};
use api::{BrowserBegan, BrowserGone, BrowserQuery, BrowserSession, Code, NUMBER_MAX};
use axum::extract::{RawQuery, State};
use axum::response::Response;
use bytes::Bytes;
use engine::{
    AccessError, BrowserUpdate, FollowAll, FollowUpdate, InvalidError, SessionUpdate, Thing, ViewError,
    WATCHES_MAX,
};
use http::HeaderMap;
use kernel::{Number, SessionId};
use serde::Serialize;
use std::sync::Arc;

/// Digits of a number in a watch; whatever has more is no number of ours.
const DIGITS_MAX: usize = 16;

problems! {
    BrowserProblems = [Invalid, BadCursor, RightMissing, TooManyStreams];
}

/// Follow everything that a browser shows
///
/// A stream without end, under `Accept: text/event-stream`. Its events have names, and one JSON object each: `began` (first),
/// `session` (a row of `GET /sessions` that changed or came into sight), `gone`, and of each watched session `fact` (from the number
/// given, in order, without a gap), `live`, `progress` and `readiness`. Open it first, then load lists: whatever changes after is
/// told. To go on after a break, or with other watches, open another one with the cursor and the numbers that you have; nothing is
/// lost in between. A reader that is too slow is cut off.
#[utoipa::path(
    get, path = "/api/v1/stream", tag = "facts", operation_id = "browser_stream", params(BrowserQuery),
    responses(
        (status = 200, description = "What happens, as it happens.", content((String = "text/event-stream"))),
        BrowserProblems,
    ),
)]
pub(crate) async fn stream(
    State(door): State<SharedDoor>,
    caller: Caller,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> ApiResult<Response> {
    if !stream::wanted(&headers) {
        let detail = "this is a stream: say `Accept: text/event-stream`";
        return Err(ApiError::new(Code::Invalid, detail).at("Accept"));
    }
    drop(headers);
    let BrowserQuery { cursor, watch } = read_query(query.as_deref().unwrap_or_default())?;
    let after = cursor::read_rows(cursor.as_deref())?;
    if watch.len() > WATCHES_MAX {
        return Err(bad_watch(format!("at most {WATCHES_MAX} sessions are watched by one stream")));
    }
    let permit = stream::permit(&door, caller.by.person)?;
    let mut watches = Vec::with_capacity(watch.len());
    for named in &watch {
        let (session, number) = read_watch(named)?;
        watches.push((meant(&door, &caller, session).await?, number));
    }
    let follow = door.engine.views().follow_all(&caller.by, after, watches).await.map_err(refused)?;
    for session in follow.unseen() {
        let code = Code::NotFound.word();
        door.engine.views().read_refused(&caller.by, Thing::Session(session), code, &caller.trace);
    }
    let source = BrowserStream { door: door.clone(), caller, follow, next: None };
    Ok(stream::respond(&door, permit, source))
}

/// A query in which one name may stand several times.
fn read_query(query: &str) -> ApiResult<BrowserQuery> {
    let mut read = BrowserQuery::default();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "watch" => read.watch.push(value.into_owned()),
            "cursor" if read.cursor.is_none() => read.cursor = Some(value.into_owned()),
            "cursor" => return Err(ApiError::new(Code::Invalid, "cursor: stands there twice").at("cursor")),
            _ => {
                return Err(ApiError::new(
                    Code::Invalid,
                    "in the query: only `cursor` and `watch` are known",
                ));
            }
        }
    }
    Ok(read)
}

fn read_watch(named: &str) -> ApiResult<(SessionId, Number)> {
    let is_number = |text: &&str| text.len() <= DIGITS_MAX && text.bytes().all(|byte| byte.is_ascii_digit());
    let read = named.split_once(':').and_then(|(session, number)| {
        let number: u64 = Some(number).filter(is_number)?.parse().ok()?;
        (number <= NUMBER_MAX).then_some((session.parse().ok()?, Number(number)))
    });
    read.ok_or_else(|| bad_watch("must be SESSION:NUMBER".to_owned()))
}

fn bad_watch(detail: String) -> ApiError {
    ApiError::new(Code::Invalid, format!("watch: {detail}")).at("watch")
}

/// The session that is meant; one that may not be seen stands for itself, and is gone.
async fn meant(door: &SharedDoor, caller: &Caller, id: SessionId) -> ApiResult<SessionId> {
    match door.engine.views().meant(&caller.by, id).await {
        Ok(session) => Ok(session),
        Err(ViewError::Access(AccessError::NotFound { .. })) => Ok(id),
        Err(other) => Err(other.into()),
    }
}

fn refused(error: ViewError) -> ApiError {
    match error {
        ViewError::Invalid(InvalidError { field: "cursor", reason }) => {
            ApiError::new(Code::BadCursor, reason).at("cursor")
        }
        other => other.into(),
    }
}

struct BrowserStream {
    door: SharedDoor,
    caller: Caller,
    follow: FollowAll,
    /// The update that a frame is being made of, so that nothing is lost if nobody waits for it.
    next: Option<BrowserUpdate>,
}

impl FrameSource for BrowserStream {
    async fn next(&mut self) -> Option<Bytes> {
        if self.next.is_none() {
            self.next = Some(self.follow.next().await?);
        }
        if let Some(BrowserUpdate::Row(..)) = &self.next {
            // As they were when the row was found to be theirs to see.
            self.caller.by = Arc::new(self.follow.by().clone());
        }
        let frame = frame_of(&self.door, &self.caller, self.next.as_ref()?).await?;
        self.next = None;
        Some(frame)
    }
}

/// The event of an update; none if what belongs to it cannot be read: then the reader comes back.
async fn frame_of(door: &SharedDoor, caller: &Caller, update: &BrowserUpdate) -> Option<Bytes> {
    Some(match update {
        BrowserUpdate::Began(place) => event("began", &BrowserBegan { cursor: cursor::rows(*place) }),
        BrowserUpdate::Row(place, row) => {
            let session = named_form(door, caller, (**row).clone()).await.ok()?;
            event("session", &BrowserSession { cursor: cursor::rows(*place), session })
        }
        BrowserUpdate::Gone(place, session) => {
            let (cursor, session) = (place.map(cursor::rows), session.to_string());
            event("gone", &BrowserGone { cursor, session })
        }
        BrowserUpdate::Watched(session, update) => watched(*session, update),
    })
}

fn watched(session: SessionId, update: &FollowUpdate) -> Bytes {
    match update {
        FollowUpdate::Session(SessionUpdate::Fact(shared)) => wrapped(session, "fact", &fact_frame(shared)),
        FollowUpdate::Session(SessionUpdate::Live(live)) => wrapped(session, "live", &live_frame(live)),
        FollowUpdate::Session(SessionUpdate::Progress(update)) => {
            wrapped(session, "progress", &progress_frame(update))
        }
        FollowUpdate::Ready(view) => wrapped(session, "readiness", &ready_frame(&ready_form(view))),
    }
}

fn event(name: &str, form: &impl Serialize) -> Bytes {
    let json = serde_json::to_string(form).expect("wire types are plain data");
    Bytes::from(format!("event: {name}\ndata: {json}\n\n"))
}

/// The frame of a session's own stream, as one of many sessions'. An id has nothing that JSON would escape.
fn wrapped(session: SessionId, name: &str, frame: &[u8]) -> Bytes {
    let head = format!("event: {name}\ndata: {{\"session\":\"{session}\",\"{name}\":");
    Bytes::from([head.as_bytes(), data_of(frame), b"}\n\n"].concat())
}

/// The JSON in a frame: one line.
fn data_of(frame: &[u8]) -> &[u8] {
    const FIELD: &[u8] = b"data: ";
    let line = frame.split(|byte| *byte == b'\n').find(|line| line.starts_with(FIELD));
    line.map_or(b"null", |line| &line[FIELD.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_wrapped_as_it_is() {
        let session = SessionId::from_bits(1);
        for (name, frame) in [
            ("fact", &b"id: 7\ndata: {\"number\":7}\n\n"[..]),
            ("live", b"event: live\ndata: {\"number\":7}\n\n"),
        ] {
            let told =
                format!("event: {name}\ndata: {{\"session\":\"{session}\",\"{name}\":{{\"number\":7}}}}\n\n");
            assert_eq!(wrapped(session, name, frame), told.as_bytes());
        }
        let told = format!("event: progress\ndata: {{\"session\":\"{session}\",\"progress\":null}}\n\n");
        assert_eq!(wrapped(session, "progress", b"event: progress\ndata: null\n\n"), told.as_bytes());
    }

    #[test]
    fn a_watch_is_a_session_and_a_number() {
        let session = SessionId::from_bits(5);
        assert_eq!(read_watch(&format!("{session}:12")).unwrap(), (session, Number(12)));
        for bad in [
            "",
            ":",
            "12",
            "ses_1:1",
            &format!("{session}"),
            &format!("{session}:"),
            &format!("{session}:-1"),
        ] {
            assert!(read_watch(bad).is_err(), "{bad}");
        }
        assert!(read_watch(&format!("{session}:9007199254740991")).is_ok());
        assert!(read_watch(&format!("{session}:9007199254740992")).is_err());
    }

    #[test]
    fn one_name_may_stand_several_times_and_no_other() {
        let read = read_query("watch=a%3A1&cursor=w1&watch=b").unwrap();
        assert_eq!(
            (read.cursor.as_deref(), read.watch),
            (Some("w1"), vec!["a:1".to_owned(), "b".to_owned()])
        );
        for bad in ["cursor=a&cursor=b", "after=1", "Watch=a"] {
            assert!(read_query(bad).is_err(), "{bad}");
        }
    }
}
