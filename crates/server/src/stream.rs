//! Event streams: ready-made frames, comments in the silence, a clean end.

use crate::door::SharedDoor;
use crate::places::{NoPlace, Place};
use crate::problem::{ApiError, ApiResult};
use api::Code;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, HeaderValue, header};
use kernel::PersonId;
use std::convert::Infallible;
use std::pin::Pin;

/// The time a browser waits before it comes back, in milliseconds; sent first, so that the head leaves at once.
const HELLO: &[u8] = b"retry: 1000\n\n";
/// Says only that somebody is there.
const STILL_HERE: &[u8] = b":\n\n";

/// Where a stream's frames come from. Dropping `next` half-way must lose nothing.
pub(crate) trait FrameSource: Send + 'static {
    /// The next frame; none is the end.
    fn next(&mut self) -> impl Future<Output = Option<Bytes>> + Send;
}

struct EventStream<S> {
    source: S,
    hello: Option<Bytes>,
    door: SharedDoor,
    closing: Pin<Box<dyn Future<Output = ()> + Send>>,
    _permit: Place<PersonId>,
}

/// True if the caller wants a stream.
pub(crate) fn wanted(headers: &HeaderMap) -> bool {
    accepts(headers, "text/event-stream")
}

/// True if the caller asks for this kind of answer by name.
pub(crate) fn accepts(headers: &HeaderMap, wanted: &str) -> bool {
    let mut kinds = headers.get_all(header::ACCEPT).iter().filter_map(|accept| accept.to_str().ok());
    kinds.any(|accept| {
        let mut kinds = accept.split(',').map(|kind| kind.split(';').next().unwrap_or_default().trim());
        kinds.any(|kind| kind.eq_ignore_ascii_case(wanted))
    })
}

/// Takes a place for a stream of that person. Before anything is read for it.
pub(crate) fn permit(door: &SharedDoor, person: PersonId) -> ApiResult<Place<PersonId>> {
    let words = |no| match no {
        NoPlace::Full => "as many streams are open as there may be (limits.streams_max)",
        NoPlace::Own => "you have as many streams open as one person may (limits.streams_per_person_max)",
    };
    door.streams.take(person).map_err(|no| ApiError::new(Code::TooManyStreams, words(no)))
}

/// The stream itself.
pub(crate) fn respond(door: &SharedDoor, permit: Place<PersonId>, source: impl FrameSource) -> Response {
    let flow = EventStream {
        source,
        hello: Some(Bytes::from_static(HELLO)),
        door: door.clone(),
        closing: Box::pin(door.closing()),
        _permit: permit,
    };
    let frames = stream::unfold(flow, |mut flow| async move {
        let frame = flow.frame().await?;
        Some((Ok::<_, Infallible>(frame), flow))
    });
    let mut response = Response::new(Body::from_stream(frames));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    // For proxies that would collect it first.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

impl<S: FrameSource> EventStream<S> {
    async fn frame(&mut self) -> Option<Bytes> {
        if let Some(hello) = self.hello.take() {
            return Some(hello);
        }
        tokio::select! {
            biased;
            () = self.closing.as_mut() => None,
            next = tokio::time::timeout(self.door.config.keep_alive, self.source.next()) => match next {
                Ok(frame) => frame,
                Err(_) => Some(Bytes::from_static(STILL_HERE)),
            },
        }
    }
}
