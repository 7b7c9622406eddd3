//! Search of what was said.

use crate::cursor;
use crate::door::SharedDoor;
use crate::extract::{Caller, Json, Query, limit, session_id};
use crate::openapi::problems;
use crate::problem::ApiResult;
use crate::wire::at;
use api::{Hit, HitKind, Page, SearchQuery};
use axum::extract::State;
use engine::{FoundWords, PassageKind, Wanted};

problems! {
    SearchProblems = [Invalid, BadCursor, NotFound, RightMissing];
}

/// The most hits of a page, each of which is read from the log.
const HITS_MAX: usize = 50;

/// Search what was said
///
/// Messages and the agent's words, of turns that are over, in every session that you may see; the newest first. All words have to be in
/// one passage, in any order and whatever case; the last one may be the beginning of a longer one. What was said a moment ago may not
/// be found yet.
#[utoipa::path(
    get, path = "/api/v1/search", tag = "sessions", operation_id = "search", params(SearchQuery),
    responses((status = 200, description = "A page of hits.", body = Page<Hit>), SearchProblems),
)]
pub(crate) async fn search(
    State(door): State<SharedDoor>,
    caller: Caller,
    Query(query): Query<SearchQuery>,
) -> ApiResult<Json<Page<Hit>>> {
    query.check()?;
    let limit = limit(query.limit)?.min(HITS_MAX);
    let before = cursor::read_search(query.cursor.as_deref())?;
    let session = match &query.session {
        Some(session) => Some(session_id("session", session, &door, &caller.by).await?),
        None => None,
    };
    // Where nobody would know what to look for nothing is found.
    let Some(wanted) = Wanted::new(&query.q) else { return Ok(Json(Page { items: Vec::new(), next: None })) };
    // One more than asked for tells whether there is a next page.
    let mut found = door.engine.views().search(&caller.by, wanted, session, before, limit + 1).await?;
    let more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| more).map(|last| cursor::search(last.place));
    Ok(Json(Page { items: found.into_iter().map(hit).collect(), next }))
}

fn hit(found: FoundWords) -> Hit {
    let FoundWords { session, turn, kind, number, at: said_at, words, place_in_words, .. } = found;
    Hit {
        session: session.to_string(),
        turn: turn.0,
        number: number.0,
        at: at(said_at),
        kind: match kind {
            PassageKind::Said => HitKind::Said,
            PassageKind::Text => HitKind::Text,
        },
        words,
        from: place_in_words.start as u32,
        to: place_in_words.end as u32,
    }
}
