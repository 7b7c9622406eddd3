//! Conversations in and out as files: `export` writes one, `import` reads it, line by line.
//!
//! Whatever is not as the format says is refused with the number of its line, and nothing is made of the rest.

use crate::attachments::{parts_form, parts_of};
use crate::door::SharedDoor;
use crate::extract::{Caller, Id, Query, is_kind, whole_body};
use crate::messages::if_new;
use crate::openapi::{KeyHeader, problems};
use crate::problem::{ApiError, ApiResult};
use crate::sessions::{SessionName, made_response};
use crate::wire::{at, outcome_words};
use api::{
    Code, EXPORT_FORMAT, EXPORT_TYPE, EXPORT_VERSION, ExportEnd, ExportHeader, ExportLine, ExportStory,
    ExportTurn, ExportWords, IMPORT_BYTES_MAX, ImportQuery, LeftOut, Made,
};
use axum::extract::{Request, State};
use axum::response::Response;
use engine::{Export, PAST_KINDS, PAST_TURNS_MAX, PastStory, PastTurn, PastWords};
use http::{HeaderValue, header};
use kernel::{Failure, Moment, Outcome, SessionId};
use serde::Deserialize;
use sha2::{Digest, Sha256};

problems! {
    ExportProblems = [NotFound, RightMissing];
    ImportProblems = [TooSlow, TooLarge, UnsupportedMediaType, Invalid, BadExport, UnknownVersion, AlreadyImported, UnknownAgent,
        BadDirectory, RightMissing, RoleTooLow, AgentNotYours, DirectoryNotYours, BoundElsewhere, IdempotencyConflict, Changed,
        TooManyOpenSessions, TooManyOrgSessions, TooMuchOnDisk,
        DiskFull, Unclear];
}

/// Take a conversation along as a file
///
/// JSON Lines: a header, each turn that is over, the end (`ExportLine`). Messages that wait, open questions and changes that
/// have not happened yet stay; the header says how many there are. Of a very long conversation the newest turns are kept. Of a
/// fork, what was said before it was made goes along, as far as whoever asks may have it.
#[utoipa::path(
    get, path = "/api/v1/sessions/{id}/export", tag = "sessions", operation_id = "export", params(SessionName),
    responses(
        (status = 200, description = "The file.", body = ExportLine, content_type = "application/jsonl"),
        ExportProblems,
    ),
)]
pub(crate) async fn export(
    State(door): State<SharedDoor>,
    caller: Caller,
    Id(session): Id<SessionId>,
) -> ApiResult<Response> {
    let export = door.engine.views().export(&caller.by, session).await?;
    let mut file = Vec::new();
    let turns = export.turns.len() as u32;
    write_line(&mut file, &ExportLine::Header(Box::new(header_form(&export))))?;
    for past in export.turns {
        write_line(&mut file, &ExportLine::Turn(Box::new(turn_form(past))))?;
    }
    write_line(&mut file, &ExportLine::End(ExportEnd { turns }))?;
    let mut response = Response::new(file.into());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(EXPORT_TYPE));
    Ok(response)
}

/// Make a session with the conversation of a file
///
/// The session is the caller's own, whatever it was elsewhere, and nobody else's until they share it. It gets an id of its
/// own, and in its org it answers to the one that it had, too (`imported_as`). The agent is told the conversation again with
/// the next message. A repetition under the same `Idempotency-Key` gets the very same answer.
#[utoipa::path(
    post, path = "/api/v1/sessions/import", tag = "sessions", operation_id = "import", params(ImportQuery, KeyHeader),
    request_body(content = ExportLine, content_type = "application/jsonl", description = "The file, as `export` gives it."),
    responses(
        (status = 201, description = "It is there.", body = Made, headers(
            ("Idempotent-Replayed" = bool, description = "`true` if this answers a repetition."),
            ("Location" = String, description = "Where the session is."))),
        ImportProblems,
    ),
)]
pub(crate) async fn import(
    State(door): State<SharedDoor>,
    caller: Caller,
    Query(query): Query<ImportQuery>,
    request: Request,
) -> ApiResult<Response> {
    let how = query.into_if_new();
    how.check()?;
    if !is_kind(request.headers(), EXPORT_TYPE) {
        let error = ApiError::new(Code::UnsupportedMediaType, "the body must be said to be JSON Lines");
        return Err(error.at("Content-Type").advise(format!("send `Content-Type: {EXPORT_TYPE}`")));
    }
    let _place = door.engine.way_in().place_for_import(&caller.by).await?;
    let file = whole_body(request, &door, IMPORT_BYTES_MAX).await.map_err(|error| match error.0.code {
        Code::TooLarge => {
            error.advise("export it again: of a long conversation only the newest turns are kept")
        }
        _ => error,
    })?;
    let digest: [u8; 32] = Sha256::digest(&file.bytes).into();
    let export = read(&file.bytes)?;
    let made = door.engine.way_in().import(&caller.by, export, if_new(how), digest, caller.trace).await?;
    made_response(made)
}

fn write_line(file: &mut Vec<u8>, line: &ExportLine) -> ApiResult<()> {
    let written = serde_json::to_writer(&mut *file, line);
    written.map_err(|error| ApiError::new(Code::Internal, error.to_string()))?;
    file.push(b'\n');
    Ok(())
}

fn header_form(export: &Export) -> ExportHeader {
    let engine::LeftOut { turns, messages, questions, changes, attachments } = export.left_out;
    ExportHeader {
        format: EXPORT_FORMAT.to_owned(),
        version: EXPORT_VERSION,
        session: export.session.to_string(),
        org: export.org.clone(),
        title: export.title.clone(),
        agent: export.agent.clone(),
        model: export.model.clone(),
        mode: export.mode.clone(),
        by: export.by.clone(),
        at: at(export.at),
        left_out: LeftOut { turns, messages, questions, changes, attachments },
    }
}

fn turn_form(past: PastTurn) -> ExportTurn {
    let (outcome, failure) = outcome_words(past.outcome);
    let said = past.said.into_iter().map(|said| ExportWords {
        by: said.by,
        at: at(said.at),
        parts: parts_form(said.parts, said.attachments),
    });
    // What an older or newer version told in another form stays here.
    let told = past.story.into_iter().filter_map(|told| {
        let story = serde_json::from_slice(&told.body).ok()?;
        Some(ExportStory { at: at(told.at), story })
    });
    ExportTurn {
        turn: past.turn,
        agent: past.agent,
        began_at: at(past.began_at),
        ended_at: at(past.ended_at),
        said: said.collect(),
        story: told.collect(),
        outcome,
        failure,
    }
}

/// The fields that every version of the header has.
#[derive(Deserialize)]
struct AnyHeader {
    format: String,
    version: u32,
}

fn bad(line: usize, reason: impl std::fmt::Display) -> ApiError {
    ApiError::new(Code::BadExport, format!("line {line}: {reason}"))
}

fn read(file: &[u8]) -> ApiResult<Export> {
    let text = file.strip_suffix(b"\n").unwrap_or(file);
    let mut lines = (1..).zip(text.split(|byte| *byte == b'\n'));
    let first = lines.next().map(|(_, line)| line).unwrap_or_default();
    let any: AnyHeader = serde_json::from_slice(first).map_err(|_| bad(1, "not the header of an export"))?;
    if any.format != EXPORT_FORMAT {
        return Err(bad(1, format!("the format is not {EXPORT_FORMAT}")));
    }
    if any.version != EXPORT_VERSION {
        let detail = format!("version {} is not known here, only {EXPORT_VERSION}", any.version);
        return Err(ApiError::new(Code::UnknownVersion, detail));
    }
    let ExportLine::Header(header) = line_form(1, first)? else {
        return Err(bad(1, "not the header of an export"));
    };
    let mut export = export_of(&header)?;
    for (number, line) in &mut lines {
        match line_form(number, line)? {
            ExportLine::Header(_) => {
                return Err(bad(number, "a second header: this is more than one export"));
            }
            ExportLine::Turn(turn) if export.turns.len() < PAST_TURNS_MAX => {
                turn.check().map_err(|why| bad(number, format!("{}: {}", why.field, why.reason)))?;
                export.turns.push(turn_of(number, *turn)?);
            }
            ExportLine::Turn(_) => return Err(bad(number, format!("more than {PAST_TURNS_MAX} turns"))),
            ExportLine::End(end) if end.turns as usize == export.turns.len() => {
                return match lines.next() {
                    None => Ok(export),
                    Some((number, _)) => Err(bad(number, "something stands after the end")),
                };
            }
            ExportLine::End(end) => {
                let found = export.turns.len();
                return Err(bad(
                    number,
                    format!("there should be {} turns, and there are {found}", end.turns),
                ));
            }
        }
    }
    Err(bad(export.turns.len() + 2, "the file has no end: it was cut on its way"))
}

/// The decoder's words may quote what stands there; where it is, is enough.
fn line_form(number: usize, line: &[u8]) -> ApiResult<ExportLine> {
    serde_json::from_slice(line).map_err(|error| match error.is_data() {
        true => bad(number, "not a line of an export: a field is missing, unknown or of another kind"),
        false => bad(number, format!("not JSON, from column {} on", error.column())),
    })
}

fn export_of(header: &ExportHeader) -> ApiResult<Export> {
    header.check().map_err(|why| bad(1, format!("{}: {}", why.field, why.reason)))?;
    let session = header.session.parse().map_err(|_| bad(1, "session: not the id of a session"))?;
    let LeftOut { turns, messages, questions, changes, attachments } = header.left_out;
    Ok(Export {
        session,
        org: header.org.clone(),
        title: header.title.clone(),
        agent: header.agent.clone(),
        model: header.model.clone(),
        mode: header.mode.clone(),
        by: header.by.clone(),
        at: Moment(header.at.0),
        left_out: engine::LeftOut { turns, messages, questions, changes, attachments },
        turns: Vec::new(),
    })
}

fn turn_of(line: usize, turn: ExportTurn) -> ApiResult<PastTurn> {
    let outcome = outcome_of(turn.outcome, turn.failure)
        .ok_or_else(|| bad(line, "failure: goes with the outcome `failed`, and with no other"))?;
    let said = turn.said.into_iter().map(|said| {
        let (parts, attachments) = parts_of(said.parts);
        PastWords { by: said.by, at: Moment(said.at.0), parts, attachments }
    });
    let story = turn.story.into_iter().map(|told| story_of(line, told)).collect::<ApiResult<_>>()?;
    Ok(PastTurn {
        turn: turn.turn,
        agent: turn.agent,
        began_at: Moment(turn.began_at.0),
        ended_at: Moment(turn.ended_at.0),
        said: said.collect(),
        story,
        outcome,
    })
}

/// Written anew, so that nothing is stored but what this version knows. The number of the turn is not known before the
/// engine has told it to the rules.
fn story_of(line: usize, told: ExportStory) -> ApiResult<PastStory> {
    let form = serde_json::to_value(&told.story).ok();
    let kind =
        form.as_ref().and_then(|form| form.get("type")).and_then(|kind| kind.as_str()).unwrap_or_default();
    if !PAST_KINDS.contains(&kind) {
        return Err(bad(line, "story: something that means nothing elsewhere"));
    }
    let (kind, body) = (kind.to_owned(), serde_json::to_vec(&told.story).unwrap_or_default());
    Ok(PastStory { at: Moment(told.at.0), kind, body: body.into() })
}

fn outcome_of(outcome: api::Outcome, failure: Option<api::Failure>) -> Option<Outcome> {
    Some(match (outcome, failure) {
        (api::Outcome::Answered, None) => Outcome::Answered,
        (api::Outcome::Stopped, None) => Outcome::Stopped,
        (api::Outcome::Interrupted, None) => Outcome::Interrupted,
        (api::Outcome::TimeLimit, None) => Outcome::TimedOut,
        (api::Outcome::Failed, Some(failure)) => Outcome::Failed(match failure {
            api::Failure::Gone => Failure::Gone,
            api::Failure::Busy => Failure::Busy,
            api::Failure::Transient => Failure::Transient,
            api::Failure::Refused => Failure::Refused,
        }),
        _ => return None,
    })
}
