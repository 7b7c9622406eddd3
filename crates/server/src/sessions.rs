//! Sessions: list, make, read, rename, end.

use crate::cursor;
use crate::door::SharedDoor;
use crate::extract::{Caller, Id, Json, JsonBody, Query, address, id, json_bytes, limit, session_id};
use crate::messages::{granted_response, if_new, mark_repeated};
use crate::openapi::{KeyHeader, problems};
use crate::people::{grant_form, who};
use crate::problem::{ApiError, ApiResult};
use crate::wire::{at, end_why, links, origin_form, outcome_words, progress_form, waiting_form};
use crate::worktrees::chore_response;
use api::{
    Code, Made, NewSession, Page, Session, SessionChange, SessionCounts, SessionState, SessionsQuery,
    StoppedBackground,
};
use axum::extract::State;
use axum::response::Response;
use engine::{Doing, LastTurn, Need, SessionFilter, SessionRow, TitleBy, Which, who_changed};
use http::{HeaderValue, StatusCode, header};
use kernel::{Request, SessionId};

problems! {
    ListProblems = [Invalid, BadCursor, NotFound, RightMissing];
    MakeProblems = [BadJson, TooSlow, TooLarge, UnsupportedMediaType, Invalid, BadAddress, UnknownAgent, UnknownModel, BadDirectory,
        AddressNotYours, RightMissing, RoleTooLow, AgentNotYours, DirectoryNotYours, BoundElsewhere, IdempotencyConflict,
        Changed, TooManyOpenSessions, TooManyOrgSessions, TooMuchOnDisk, DiskFull, Unclear];
    CountProblems = [RightMissing];
    ReadProblems = [NotFound, RightMissing];
    ChangeProblems = [BadJson, TooSlow, TooLarge, UnsupportedMediaType, Invalid, NotFound, NotAllowed,
        RightMissing, Changed, DiskFull, Unclear];
    EndProblems = [Invalid, NotFound, NotAllowed, RightMissing, SessionEnded, IdempotencyConflict, TooLate, Changed, DiskFull,
        Unclear];
    BackgroundProblems = [Invalid, NotFound, NotAllowed, RightMissing, BoundElsewhere, SessionEnded, IdempotencyConflict, Changed, Busy,
        ScopeChanging, DiskFull, Unclear];
}

/// Sessions of one page of which it is said why they wait: each is looked at for it.
const WAITS_LISTED_MAX: usize = 50;

/// Sessions that go by one name, of which nobody reads more.
const NAMED_MAX: usize = 20;

/// The id of a session, in a path.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code)]
pub(crate) struct SessionName {
    /// The session.
    #[param(pattern = "^ses_[0-7][0-9a-hjkmnp-tv-z]{25}$")]
    id: String,
}

/// List sessions
///
/// The ones with the newest activity first. Whatever narrows the list is looked for among the 10,000 newest.
#[utoipa::path(
    get, path = "/api/v1/sessions", tag = "sessions", operation_id = "sessions", params(SessionsQuery),
    responses((status = 200, description = "A page of sessions.", body = Page<Session>), ListProblems),
)]
pub(crate) async fn list(
    State(door): State<SharedDoor>,
    caller: Caller,
    Query(query): Query<SessionsQuery>,
) -> ApiResult<Json<Page<Session>>> {
    // Of the archived ones nobody is to ask twice.
    let which = match query.which {
        None if query.archived == Some(true) => Which::All,
        None | Some(api::Which::Open) => Which::Open,
        Some(api::Which::Ended) => Which::Ended,
        Some(api::Which::All) => Which::All,
    };
    query.check()?;
    let limit = limit(query.limit)?;
    let after = cursor::read_sessions(query.cursor.as_deref())?;
    if let Some(name) = &query.name {
        let rows = door.engine.views().sessions_named(&caller.by, name, limit.min(NAMED_MAX)).await?;
        return page(&door, &caller, rows, None).await;
    }
    let filter = filter(&door, &caller, query).await?;
    // One more than asked for tells whether there is a next page.
    let mut rows = door.engine.views().sessions(&caller.by, which, filter, after, limit + 1).await?;
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| more).map(|row| cursor::sessions((row.touched_at, row.session)));
    page(&door, &caller, rows, next).await
}

async fn filter(door: &SharedDoor, caller: &Caller, query: SessionsQuery) -> ApiResult<SessionFilter> {
    let owner = match query.owner.as_deref() {
        Some("me") => Some(caller.by.person),
        Some(text) => Some(id("owner", text)?),
        None => None,
    };
    let origin = match &query.origin {
        Some(text) => Some(session_id("origin", text, door, &caller.by).await?),
        None => None,
    };
    Ok(SessionFilter {
        agent: query.agent,
        directory: query.directory,
        doing: query.doing.map(doing),
        text: query.text,
        owner,
        archived: query.archived,
        origin,
        needs: query.needs.map(need),
    })
}

fn need(need: api::Need) -> Need {
    match need {
        api::Need::Questions => Need::Questions,
        api::Need::Held => Need::Held,
        api::Need::Failed => Need::Failed,
        api::Need::Unread => Need::Unread,
    }
}

/// Count sessions
///
/// The open ones that are not archived, as lists show them: how many there are, and how many need you, for which reason.
#[utoipa::path(
    get, path = "/api/v1/sessions/counts", tag = "sessions", operation_id = "session_counts",
    responses((status = 200, description = "The counts.", body = SessionCounts), CountProblems),
)]
pub(crate) async fn counts(State(door): State<SharedDoor>, caller: Caller) -> ApiResult<Json<SessionCounts>> {
    let counts = door.engine.views().session_counts(&caller.by).await?;
    let engine::SessionCounts { open, running, questions, held, failed, unread } = counts;
    Ok(Json(SessionCounts { open, running, questions, held, failed, unread }))
}

async fn page(
    door: &SharedDoor,
    caller: &Caller,
    rows: Vec<SessionRow>,
    next: Option<String>,
) -> ApiResult<Json<Page<Session>>> {
    let (mut items, mut waits) = (Vec::with_capacity(rows.len()), 0);
    for row in rows {
        waits += usize::from(row.pending > 0);
        items.push(match waits > WAITS_LISTED_MAX {
            true => owned_form(door, caller, row).await?,
            false => named_form(door, caller, row).await?,
        });
    }
    Ok(Json(Page { items, next }))
}

fn doing(doing: api::Doing) -> Doing {
    match doing {
        api::Doing::Running => Doing::Running,
        api::Doing::Waiting => Doing::Waiting,
        api::Doing::Dormant => Doing::Dormant,
    }
}

fn title_by(by: TitleBy) -> api::TitleBy {
    match by {
        TitleBy::Person => api::TitleBy::Person,
        TitleBy::Agent => api::TitleBy::Agent,
        TitleBy::Words => api::TitleBy::Words,
    }
}

/// Make a session that nobody has said anything to yet
///
/// A repetition under the same `Idempotency-Key` gets the very same answer.
#[utoipa::path(
    post, path = "/api/v1/sessions", tag = "sessions", operation_id = "make_session", params(KeyHeader), request_body = NewSession,
    responses(
        (status = 201, description = "It is there.", body = Made, headers(
            ("Idempotent-Replayed" = bool, description = "`true` if this answers a repetition."),
            ("Location" = String, description = "Where the session is."))),
        MakeProblems,
    ),
)]
pub(crate) async fn make(
    State(door): State<SharedDoor>,
    caller: Caller,
    JsonBody(new): JsonBody<NewSession>,
) -> ApiResult<Response> {
    let (how, conversation) = new.split();
    how.check()?;
    let bind = conversation.map(|text| address("conversation", &text)).transpose()?;
    let made = door.engine.way_in().make(&caller.by, if_new(how), bind, caller.trace).await?;
    made_response(made)
}

/// A session that is there now, and where.
pub(crate) fn made_response(made: engine::Made) -> ApiResult<Response> {
    let path = format!("/api/v1/sessions/{}", made.session);
    let location = HeaderValue::from_str(&path);
    let form = Made { id: made.session.to_string(), links: links(path, made.session) };
    let body = serde_json::to_vec(&form).map_err(|error| ApiError::new(Code::Internal, error.to_string()))?;
    let mut response = json_bytes(StatusCode::CREATED, body);
    if let Ok(location) = location {
        response.headers_mut().insert(header::LOCATION, location);
    }
    if made.repeated {
        mark_repeated(&mut response);
    }
    Ok(response)
}

/// Read a session
#[utoipa::path(
    get, path = "/api/v1/sessions/{id}", tag = "sessions", operation_id = "session", params(SessionName),
    responses((status = 200, description = "The session.", body = Session), ReadProblems),
)]
pub(crate) async fn read(
    State(door): State<SharedDoor>,
    caller: Caller,
    Id(session): Id<SessionId>,
) -> ApiResult<Json<Session>> {
    let row = door.engine.views().session(&caller.by, session).await?;
    let own_word = door.engine.views().own_word(&caller.by, session).await?;
    let own_word = Some(own_word).filter(|word| *word != engine::OwnWord::default()).map(own_word_form);
    let background =
        background_form(door.engine.views().background(&caller.by, session).await?, door.engine.now());
    Ok(Json(Session { own_word, background, ..named_form(&door, &caller, row).await? }))
}

fn background_form(seen: engine::Background, now: kernel::Moment) -> Option<api::Background> {
    let process = |it: engine::BackgroundProcess| api::BackgroundProcess {
        command: it.command,
        since: at(kernel::Moment(now.0.saturating_sub(it.age_ms))),
    };
    (!seen.is_empty()).then(|| api::Background {
        processes: seen.processes,
        oldest: seen.oldest.into_iter().map(process).collect(),
    })
}

/// End what runs in the background
///
/// What the agent's turns have left running, where its configuration keeps that. The agent's own process goes with it, and the next turn
/// goes on with the conversation in a new one. Not while a turn runs: stopping that ends everything. If it takes long, the answer is 202
/// with the session as it is now; ask again under the same key.
#[utoipa::path(
    post, path = "/api/v1/sessions/{id}/stop-background", tag = "sessions", operation_id = "stop_background",
    params(SessionName, KeyHeader),
    responses(
        (status = 200, description = "Nothing runs in the background any more.", body = StoppedBackground),
        (status = 202, description = "It is safe and goes on; the session is as it is now.", body = Session),
        BackgroundProblems,
    ),
)]
pub(crate) async fn stop_background(
    State(door): State<SharedDoor>,
    caller: Caller,
    Id(session): Id<SessionId>,
) -> ApiResult<Response> {
    let _place = door.take_look(caller.by.person)?;
    let came = door.engine.way_in().stop_background(&caller.by, session, caller.trace.clone()).await?;
    chore_response(&door, &caller, session, came, |ended| StoppedBackground {
        ended: ended.processes,
        commands: ended.oldest.into_iter().map(|it| it.command).collect(),
        gone: true,
    })
    .await
}

fn own_word_form(word: engine::OwnWord) -> api::OwnWord {
    let usage = word.cost.map(|cost| api::Usage {
        input_tokens: cost.input_tokens,
        output_tokens: cost.output_tokens,
        cached_tokens: cost.cached_tokens,
        cost_micros: cost.cost_micros,
        window_used: cost.window_used,
        window_size: cost.window_size,
    });
    api::OwnWord { native: word.native, model: word.model, usage }
}

/// Change what a session is called, or whether lists show it
#[utoipa::path(
    patch, path = "/api/v1/sessions/{id}", tag = "sessions", operation_id = "change_session", params(SessionName),
    request_body = SessionChange,
    responses((status = 200, description = "It is so.", body = Session), ChangeProblems),
)]
pub(crate) async fn change(
    State(door): State<SharedDoor>,
    caller: Caller,
    Id(session): Id<SessionId>,
    JsonBody(change): JsonBody<SessionChange>,
) -> ApiResult<Json<Session>> {
    change.check()?;
    // Who asks for nothing changes nothing, and learns how it is.
    let row = if change == SessionChange::default() {
        door.engine.views().session(&caller.by, session).await?
    } else {
        let trace = caller.trace.clone();
        door.engine.way_in().retitle(&caller.by, session, change.title, change.archived, trace).await?;
        door.engine.views().session(&who_changed(&caller.by), session).await?
    };
    Ok(Json(named_form(&door, &caller, row).await?))
}

/// End a session
///
/// What waits is refused, what runs is stopped; then the session takes no more messages. Ending twice is fine.
#[utoipa::path(
    post, path = "/api/v1/sessions/{id}/end", tag = "sessions", operation_id = "end", params(SessionName, KeyHeader),
    responses(
        (status = 200, description = "It ends as soon as its turn has, or had ended.", body = Session),
        (status = 202, description = "It is safe and will be decided; the session is as it is now.", body = Session),
        EndProblems,
    ),
)]
pub(crate) async fn end(
    State(door): State<SharedDoor>,
    caller: Caller,
    Id(session): Id<SessionId>,
) -> ApiResult<Response> {
    let granted =
        door.engine.way_in().ask(&caller.by, Request::End { session }, caller.trace.clone()).await?;
    let row = door.engine.views().session(&who_changed(&caller.by), session).await?;
    Ok(granted_response(granted, Json(named_form(&door, &caller, row).await?)))
}

/// A session with everything that a single read shows.
pub(crate) async fn named_form(door: &SharedDoor, caller: &Caller, row: SessionRow) -> ApiResult<Session> {
    let waiting = door.engine.views().wait_of(&caller.by, &row).await?.map(waiting_form);
    Ok(Session { waiting, ..owned_form(door, caller, row).await? })
}

async fn owned_form(door: &SharedDoor, caller: &Caller, row: SessionRow) -> ApiResult<Session> {
    let owner = who(door, caller, row.owner).await?;
    let progress = door.engine.views().progress_of(&row).map(progress_form);
    Ok(Session { owned_by: Some(owner), progress, ..session_form(row) })
}

/// Says whose it is by their handle, too.
pub(crate) async fn name_owner(door: &SharedDoor, caller: &Caller, session: &mut Session) -> ApiResult<()> {
    if let Ok(owner) = session.owner.parse() {
        session.owned_by = Some(who(door, caller, owner).await?);
    }
    Ok(())
}

pub(crate) fn session_form(row: SessionRow) -> Session {
    Session {
        id: row.session.to_string(),
        owner: row.owner.to_string(),
        owned_by: None,
        title: row.title,
        title_by: row.title_by.map(title_by),
        state: if row.ended.is_some() { SessionState::Ended } else { SessionState::Open },
        why: row.ended.map(end_why),
        archived: row.archived,
        awake: row.awake,
        pending: row.pending,
        held: row.held,
        questions: row.questions,
        may: row.may.map(grant_form),
        last: row.last.map(last_form),
        seen: row.may.map(|_| row.marks.seen.0),
        pinned: row.marks.pinned,
        waiting: None,
        number: row.at.0,
        agent: row.scope.agent,
        directory: row.scope.directory.for_readers().to_owned(),
        model: row.scope.model,
        mode: row.scope.mode,
        own_word: None,
        background: None,
        branch: row.scope.worktree.as_ref().and_then(|worktree| worktree.branch.clone()),
        worktree: row.scope.worktree.map(|worktree| api::ScopeWorktree {
            name: worktree.name,
            home: worktree.home.for_readers().to_owned(),
        }),
        epoch: row.epoch.0,
        origin: row.origin.map(origin_form),
        imported_as: row.import.as_ref().map(|import| import.id.to_string()),
        imported_from: row.import.map(|import| import.org),
        progress: None,
        made_at: at(row.made_at),
        touched_at: at(row.touched_at),
        links: links(format!("/api/v1/sessions/{}", row.session), row.session),
    }
}

fn last_form(last: LastTurn) -> api::LastTurn {
    let LastTurn { outcome, number, at: ended_at, words } = last;
    let (outcome, failure) = outcome_words(outcome);
    api::LastTurn { outcome, failure, at: at(ended_at), number: number.0, words }
}
