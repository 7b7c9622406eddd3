//! Extractors: the body, query, ids in the path and caller of a request. Whatever is not as the schema says is a problem
//! that names the field.

use crate::door::{AGAIN_SECONDS, LATER, Sender, SharedDoor};
use crate::places::{NoPlace, Place};
use crate::problem::{ApiError, ApiResult};
use crate::schemes::SCHEMES;
use crate::sign_in_limit::network_of;
use api::{
    ADDRESS_LENGTH_MAX, AGENT_LENGTH_MAX, BODY_BYTES_MAX, Code, KEY_LENGTH_MAX, LIMIT_DEFAULT, LIMIT_MAX,
};
use axum::extract::{FromRequest, FromRequestParts, RawPathParams, Request};
use axum::response::{IntoResponse, Response};
use bytes::{Bytes, BytesMut};
use engine::{CallerKey, Trace};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use http_body_util::BodyExt;
use kernel::Principal;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// The part of a body that is too large which we still take off the wire, so that the peer can read our answer.
const DRAIN_BYTES_MAX: usize = 16 * 1024 * 1024;
/// And for how long.
const DRAIN_MAX: Duration = Duration::from_secs(5);

/// The caller: who asks, and by which way. Put there by `middleware`; without it nobody gets to a handler that wants
/// one.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) by: Arc<Principal>,
    pub(crate) trace: Trace,
}

/// The correlation id and the way in, known before anything else is.
#[derive(Debug, Clone)]
pub(crate) struct RequestMeta {
    pub(crate) door: &'static str,
    pub(crate) correlation: String,
    /// Where the request comes from; a proxy that we trust may have said so.
    pub(crate) address: Option<IpAddr>,
    /// True if it was encrypted when it left the client.
    pub(crate) secure: bool,
}

impl FromRequestParts<SharedDoor> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &SharedDoor) -> ApiResult<Self> {
        let by = parts.extensions.get::<Arc<Principal>>().cloned();
        let by = by.ok_or_else(|| ApiError::new(Code::Unauthenticated, "this needs a credential"))?;
        Ok(Self { by, trace: trace_of(parts)? })
    }
}

fn trace_of(parts: &mut Parts) -> ApiResult<Trace> {
    let meta = parts.extensions.get::<RequestMeta>().cloned().unwrap_or_else(RequestMeta::unknown);
    let key = key_of(&parts.headers)?.map(CallerKey::Idempotency);
    Ok(Trace { key, ..meta.trace() })
}

impl RequestMeta {
    /// For whoever brings no key.
    pub(crate) fn trace(&self) -> Trace {
        let Self { door, ref correlation, address, secure: _ } = *self;
        Trace { door, correlation: correlation.clone(), address, key: None, schemes: SCHEMES }
    }

    fn unknown() -> Self {
        Self { door: "http", correlation: "none".to_owned(), address: None, secure: false }
    }
}

fn key_of(headers: &HeaderMap) -> ApiResult<Option<String>> {
    let mut keys = headers.get_all("idempotency-key").iter();
    let Some(value) = keys.next() else { return Ok(None) };
    // Of two keys nobody could say which one is meant.
    let text = value.to_str().ok().filter(|_| keys.next().is_none());
    let text = text.filter(|key| (1..=KEY_LENGTH_MAX).contains(&key.len()));
    match text.filter(|key| key.bytes().all(|byte| byte.is_ascii_graphic())) {
        Some(key) => Ok(Some(key.to_owned())),
        None => {
            let detail = format!("must be one key of 1 to {KEY_LENGTH_MAX} visible ASCII characters");
            Err(ApiError::new(Code::Invalid, detail).at("Idempotency-Key"))
        }
    }
}

/// A JSON body of at most so many bytes.
pub(crate) struct JsonBody<T, const MAX: usize = BODY_BYTES_MAX>(pub(crate) T);

impl<T: DeserializeOwned, const MAX: usize> FromRequest<SharedDoor> for JsonBody<T, MAX> {
    type Rejection = ApiError;

    async fn from_request(request: Request, door: &SharedDoor) -> ApiResult<Self> {
        if !is_json(request.headers()) {
            let detail = "the body must be said to be JSON";
            return Err(ApiError::new(Code::UnsupportedMediaType, detail).at("Content-Type"));
        }
        let body = whole_body(request, door, MAX).await?;
        parse(&body.bytes).map(Self)
    }
}

/// A whole body, and the place that its bytes take for as long as they are held.
pub(crate) struct HeldBody {
    pub(crate) bytes: Bytes,
    _place: Place<Sender>,
}

/// All of a body, if it comes in time, is not longer than this, and there is room for it.
pub(crate) async fn whole_body(request: Request, door: &SharedDoor, max: usize) -> ApiResult<HeldBody> {
    let place = door.bodies.take(sender_of(&request)).map_err(no_room)?;
    let read = tokio::time::timeout(door.config.body_max, read_all(request.into_body(), place, max)).await;
    read.map_err(|_| ApiError::new(Code::TooSlow, "the body did not arrive in time"))?
}

fn sender_of(request: &Request) -> Sender {
    let extensions = request.extensions();
    match extensions.get::<Arc<Principal>>() {
        Some(by) => Sender::Person(by.person),
        None => {
            Sender::Network(extensions.get::<RequestMeta>().and_then(|meta| meta.address).map(network_of))
        }
    }
}

fn no_room(no: NoPlace) -> ApiError {
    let words = match no {
        NoPlace::Full => "as many bytes are on their way to us as may be (limits.body_bytes_max)",
        NoPlace::Own => "you send as many bytes at once as one person may (limits.body_bytes_per_person_max)",
    };
    ApiError::new(Code::TooManyRequests, words).after(AGAIN_SECONDS, LATER)
}

fn is_json(headers: &HeaderMap) -> bool {
    is_kind(headers, "application/json")
}

/// True if this is what the body is said to be.
pub(crate) fn is_kind(headers: &HeaderMap, wanted: &str) -> bool {
    let Some(kind) = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()) else {
        return false;
    };
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case(wanted)
}

async fn read_all(mut body: axum::body::Body, mut place: Place<Sender>, max: usize) -> ApiResult<HeldBody> {
    let expected =
        axum::body::HttpBody::size_hint(&body).lower().min(max.min(BODY_BYTES_MAX) as u64) as usize;
    place.grow_to(expected).map_err(no_room)?;
    let mut bytes = BytesMut::with_capacity(expected);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| ApiError::new(Code::TooSlow, "the connection broke in the body"))?;
        let Ok(chunk) = frame.into_data() else { continue };
        if bytes.len() + chunk.len() > max {
            drop(bytes);
            drain(body).await;
            return Err(ApiError::new(Code::TooLarge, format!("the body is longer than {max} bytes")));
        }
        bytes.extend_from_slice(&chunk);
        if let Err(no) = place.grow_to(bytes.capacity()) {
            drop((bytes, place));
            drain(body).await;
            return Err(no_room(no));
        }
    }
    Ok(HeldBody { bytes: bytes.freeze(), _place: place })
}

async fn drain(mut body: axum::body::Body) {
    let mut drained = 0;
    let all = async {
        while let Some(Ok(frame)) = body.frame().await {
            drained += frame.data_ref().map_or(0, Bytes::len);
            if drained > DRAIN_BYTES_MAX {
                break;
            }
        }
    };
    // If the rest does not come in time, the peer may miss our answer; that is all.
    let _ = tokio::time::timeout(DRAIN_MAX, all).await;
}

const OTHER_TYPE: &str = "a value of another type is expected here";

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> ApiResult<T> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let mut track = serde_path_to_error::Track::new();
    let tracked = serde_path_to_error::Deserializer::new(&mut json, &mut track);
    let value = api::object(tracked).map_err(|error: serde_json::Error| {
        // The decoder takes a number where one of a few words belongs for no JSON at all.
        let is_json = error.is_data() || serde_json::from_slice::<serde_json::Value>(bytes).is_ok();
        if !is_json {
            return ApiError::new(Code::BadJson, error.to_string());
        }
        let said = if error.is_data() { without_texts(&error.to_string()) } else { OTHER_TYPE.to_owned() };
        let (error, path) = (ApiError::new(Code::Invalid, said), track.path().to_string());
        if path == "." { error } else { error.at(path) }
    })?;
    json.end().map_err(|error| ApiError::new(Code::BadJson, error.to_string()))?;
    Ok(value)
}

/// The decoder's words, without the texts that it has found in the wrong place: one of them may be a secret.
fn without_texts(said: &str) -> String {
    const BEGIN: &str = "string \"";
    let Some((before, rest)) = said.split_once(BEGIN) else { return said.to_owned() };
    let mut escaped = false;
    let end = rest.find(|letter| {
        let ends = letter == '"' && !escaped;
        escaped = letter == '\\' && !escaped;
        ends
    });
    format!("{before}a string{}", without_texts(&rest[end.map_or(rest.len(), |end| end + 1)..]))
}

/// A query.
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<SharedDoor> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &SharedDoor) -> ApiResult<Self> {
        let pairs = form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes());
        let query = serde_urlencoded::Deserializer::new(pairs);
        serde_path_to_error::deserialize(query).map(Self).map_err(|error| {
            let path = error.path().to_string();
            let error = ApiError::new(Code::Invalid, format!("in the query: {}", error.inner()));
            if path == "." { error } else { error.at(path) }
        })
    }
}

/// The id in a path. What is not an id names nothing: not found.
pub(crate) struct Id<T>(pub(crate) T);

impl<T: FromStr + IdKind> FromRequestParts<SharedDoor> for Id<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, door: &SharedDoor) -> ApiResult<Self> {
        let params = RawPathParams::from_request_parts(parts, door).await;
        let id = params.ok().and_then(|params| params.iter().next().and_then(|(_, id)| id.parse().ok()));
        let id: T = id.ok_or_else(|| ApiError::not_found(T::WHAT))?;
        match parts.extensions.get::<Arc<Principal>>().cloned() {
            Some(by) => id.meant(door, &by).await.map(Self),
            None => Ok(Self(id)),
        }
    }
}

/// Two ids in a path.
pub(crate) struct IdPair<A, B>(pub(crate) A, pub(crate) B);

impl<A: FromStr + IdKind, B: FromStr + IdKind> FromRequestParts<SharedDoor> for IdPair<A, B> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, door: &SharedDoor) -> ApiResult<Self> {
        let params = RawPathParams::from_request_parts(parts, door).await;
        let params = params.map_err(|_| ApiError::not_found(A::WHAT))?;
        let mut params = params.iter().map(|(_, id)| id);
        let first =
            params.next().and_then(|id| id.parse().ok()).ok_or_else(|| ApiError::not_found(A::WHAT))?;
        let second =
            params.next().and_then(|id| id.parse().ok()).ok_or_else(|| ApiError::not_found(B::WHAT))?;
        let by = parts.extensions.get::<Arc<Principal>>().cloned();
        let (first, second): (A, B) = (first, second);
        match by {
            Some(by) => Ok(Self(first.meant(door, &by).await?, second.meant(door, &by).await?)),
            None => Ok(Self(first, second)),
        }
    }
}

/// The name of an agent in a path. What cannot be one names nothing: not found.
pub(crate) struct PathAgentName(pub(crate) String);

impl FromRequestParts<SharedDoor> for PathAgentName {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, door: &SharedDoor) -> ApiResult<Self> {
        let params = RawPathParams::from_request_parts(parts, door).await;
        let name = params.ok().and_then(|params| params.iter().next().map(|(_, name)| name.to_owned()));
        let is_name = |name: &String| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
            name.len() <= AGENT_LENGTH_MAX && name.chars().all(plain)
        };
        name.filter(is_name).map(Self).ok_or_else(|| ApiError::not_found("agent"))
    }
}

/// The name of a worktree in a path. What cannot be one names nothing.
pub(crate) struct TreeName(pub(crate) String);

impl FromStr for TreeName {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        if api::is_worktree_name(name) { Ok(Self(name.to_owned())) } else { Err(()) }
    }
}

impl IdKind for TreeName {
    const WHAT: &'static str = "worktree";
}

/// The kind of thing that an id names, for people.
pub(crate) trait IdKind: Sized + Send {
    const WHAT: &'static str;

    /// The thing that the caller means by it: an id is its own, but for sessions, which may have come here under
    /// another one.
    fn meant(self, _: &SharedDoor, _: &Principal) -> impl Future<Output = ApiResult<Self>> + Send {
        std::future::ready(Ok(self))
    }
}

impl IdKind for kernel::MessageId {
    const WHAT: &'static str = "message";
}

impl IdKind for kernel::SessionId {
    const WHAT: &'static str = "session";

    async fn meant(self, door: &SharedDoor, by: &Principal) -> ApiResult<Self> {
        Ok(door.engine.views().meant(by, self).await?)
    }
}

impl IdKind for kernel::ApprovalId {
    const WHAT: &'static str = "approval";
}
impl IdKind for kernel::RuleId {
    const WHAT: &'static str = "rule";
}

impl IdKind for kernel::PersonId {
    const WHAT: &'static str = "person";
}

impl IdKind for kernel::GroupId {
    const WHAT: &'static str = "group";
}

impl IdKind for kernel::TokenId {
    const WHAT: &'static str = "token";
}

/// An id in a body or a query: one that is not an id of its kind is invalid, not unknown.
pub(crate) fn id<T: FromStr<Err = kernel::NotAnId>>(field: &'static str, text: &str) -> ApiResult<T> {
    text.parse()
        .map_err(|error: kernel::NotAnId| ApiError::new(Code::Invalid, format!("{field}: {error}")).at(field))
}

/// The session that is meant by an id in a body or a query.
pub(crate) async fn session_id(
    field: &'static str,
    text: &str,
    door: &SharedDoor,
    by: &Principal,
) -> ApiResult<kernel::SessionId> {
    id::<kernel::SessionId>(field, text)?.meant(door, by).await
}

/// An address in a body or a query.
pub(crate) fn address(field: &'static str, text: &str) -> ApiResult<kernel::Address> {
    if text.len() > ADDRESS_LENGTH_MAX {
        let detail = format!("{field}: longer than {ADDRESS_LENGTH_MAX} characters");
        return Err(ApiError::new(Code::BadAddress, detail).at(field));
    }
    let bad =
        |why: kernel::NotAnAddress| ApiError::new(Code::BadAddress, format!("{field}: {why}")).at(field);
    let address: kernel::Address = text.parse().map_err(bad)?;
    // Whether an address of another door may be used is not a question of spelling: the engine refuses it, and says so in
    // the audit.
    let own = SCHEMES.iter().find(|scheme| scheme.name == address.scheme());
    own.map_or(Ok(()), |scheme| scheme.check(&address)).map_err(bad)?;
    Ok(address)
}

/// The number of items that a page may have.
pub(crate) fn limit(asked: Option<u32>) -> ApiResult<usize> {
    match asked.map(|limit| limit as usize) {
        None => Ok(LIMIT_DEFAULT),
        Some(limit) if (1..=LIMIT_MAX).contains(&limit) => Ok(limit),
        Some(_) => Err(ApiError::new(Code::Invalid, format!("limit: must be 1 to {LIMIT_MAX}")).at("limit")),
    }
}

/// An answer in JSON.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        match serde_json::to_vec(&self.0) {
            Ok(body) => json_bytes(StatusCode::OK, body),
            Err(error) => ApiError::new(Code::Internal, error.to_string()).into_response(),
        }
    }
}

pub(crate) fn json_bytes(status: StatusCode, body: impl Into<axum::body::Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests {
    use super::without_texts;

    #[test]
    fn what_was_found_in_the_wrong_place_is_not_repeated() {
        for (said, told) in [
            (r#"invalid type: string "hush", expected a map"#, "invalid type: a string, expected a map"),
            (r#"invalid type: string "a \"hush\\", expected u8"#, "invalid type: a string, expected u8"),
            (r#"string "a" and string "b" at line 1"#, "a string and a string at line 1"),
            (r#"invalid type: string "never ends"#, "invalid type: a string"),
            ("missing field `to` at line 1", "missing field `to` at line 1"),
        ] {
            assert_eq!(without_texts(said), told);
        }
    }
}
