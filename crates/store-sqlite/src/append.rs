//! The append of a keeper: facts in, inbox rows out, verdicts, claims, replies and projections, in one step or not at
//! all.

use crate::columns::{Id, Json, int};
use crate::error::SqliteError;
use crate::people;
use crate::projection::{Pending, apply};
use crate::tx::{Sid, SqliteTx, StoredSession};
use crate::usage;
use kernel::{Act, Claim, Fact, Moment, Number, SessionId, Turn};
use rusqlite::{OptionalExtension, params};
use std::sync::atomic::Ordering;
use store::project::project;
use store::{
    Append, Appending, AuditRow, Entry, LastTurn, LastWords, NewFact, NewOutgoing, PeopleTx, Verdict, record,
};

pub(crate) fn append(tx: &mut SqliteTx, append: &Append) -> Result<Appending, SqliteError> {
    let kept = tx.stored_session(append.session)?;
    let kept = kept.ok_or_else(|| SqliteError::Damaged(format!("there is no session {}", append.session)))?;
    if let Some(refused) = refuses(tx, &kept, append)? {
        match refused {
            Appending::Fenced => drop(tx.tally().fenced.fetch_add(1, Ordering::Relaxed)),
            Appending::Moved { .. } => drop(tx.tally().moved.fetch_add(1, Ordering::Relaxed)),
            _ => {}
        }
        return Ok(refused);
    }
    write(tx, &kept, append).map(Appending::Done)
}

fn refuses(tx: &SqliteTx, kept: &StoredSession, append: &Append) -> Result<Option<Appending>, SqliteError> {
    if append.term < kept.term {
        return Ok(Some(Appending::Fenced));
    }
    if append.after != kept.number {
        return Ok(Some(Appending::Moved { actual: kept.number }));
    }
    let ends = append.facts.iter().any(|new| matches!(new.entry, Entry::Rule(Fact::Ended { .. })));
    if ends && has_undrained(tx, append)? {
        return Ok(Some(Appending::Undrained));
    }
    if let Some((message, sender)) = append.starts
        && !people::may(tx.db(), append.session, sender, Act::Say)?
    {
        return Ok(Some(Appending::Revoked(message)));
    }
    for (claim, max) in &append.claims {
        if is_full(tx, claim, *max, kept.sid)? {
            return Ok(Some(Appending::Claimed(claim.clone())));
        }
    }
    Ok(append.over_words(kept.owner_words_bytes))
}

fn has_undrained(tx: &SqliteTx, append: &Append) -> Result<bool, SqliteError> {
    let mut query = tx.db().prepare_cached("SELECT number FROM inbox WHERE session = ?1 ORDER BY number")?;
    let mut rows = query.query([append.session.stored()])?;
    while let Some(row) = rows.next()? {
        let number: i64 = row.get(0)?;
        if !append.drained.iter().chain(&append.staying).any(|seen| int(*seen) == number) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A claim that the session holds stays its own, even if fewer may hold it than did before.
fn is_full(tx: &SqliteTx, claim: &Claim, max: u32, sid: Sid) -> Result<bool, SqliteError> {
    let mut query =
        tx.db().prepare_cached("SELECT count(*), coalesce(sum(sid = ?2), 0) FROM claims WHERE name = ?1")?;
    let (holders, own): (i64, i64) =
        query.query_row(params![claim.0, sid], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(own == 0 && holders >= i64::from(max))
}

/// Writes the log of a session that was made just now and was elsewhere before.
pub(crate) fn write_past(
    tx: &mut SqliteTx,
    session: SessionId,
    facts: Vec<NewFact>,
) -> Result<(), SqliteError> {
    let kept = tx.stored_session(session)?;
    let kept = kept.ok_or_else(|| SqliteError::Damaged(format!("there is no session {session}")))?;
    let append = Append {
        session,
        term: kept.term,
        after: kept.number,
        facts,
        drained: Vec::new(),
        staying: Vec::new(),
        verdicts: Vec::new(),
        claims: Vec::new(),
        starts: None,
        replies: Vec::new(),
        wake_at: None,
        awake: false,
        rules: Vec::new(),
        own_acts: Vec::new(),
        words_bytes_max: None,
        token: None,
    };
    write(tx, &kept, &append).map(drop)
}

fn write(tx: &mut SqliteTx, kept: &StoredSession, append: &Append) -> Result<Number, SqliteError> {
    // Before the facts: what is for this session only goes if they end it.
    for rule in &append.rules {
        let writes = kernel::people::rule_writes(kept.org, rule.clone(), rule.since);
        writes.into_iter().try_for_each(|write| tx.write_people(write))?;
    }
    if let Some(token) = &append.token {
        // The one of the session's last turn goes with it, and may be remembered.
        tx.forget_people();
        store::change::add_token(tx, token.clone())?;
    }
    let mut pending = Pending::new(kept);
    let mut number = append.after;
    for new in &append.facts {
        number = number.next();
        match &new.entry {
            Entry::Rule(fact) => {
                write_rule(tx, kept.sid, number, new, fact)?;
                for change in project(fact) {
                    apply(tx, kept, &mut pending, number, new.at, change)?;
                }
            }
            Entry::Story { turn, kind, body: words } => {
                let body = write_story(tx, kept.sid, number, new, (*turn, kind), words)?;
                pending.hear(*turn, kind, words, body);
                usage::hear(tx, kept, new.at, *turn, kind, words)?;
                if let Some(title) = record::title_told(kind, words) {
                    let sql = "UPDATE sessions SET title = ?2, title_by = 'agent', title_of = ?3
                         WHERE sid = ?1 AND title_by IS NOT 'person'";
                    tx.run(sql, params![kept.sid, title, body])?;
                }
            }
        }
    }
    for drained in &append.drained {
        let row = params![append.session.stored(), int(*drained)];
        tx.run("DELETE FROM inbox WHERE session = ?1 AND number = ?2", row)?;
    }
    let mut words_bytes = int(append.words_bytes());
    for (request, verdict) in &append.verdicts {
        words_bytes -= judge(tx, kept.sid, request.stored(), verdict)?;
    }
    for reply in &append.replies {
        post(tx, kept.sid, reply, append.facts.last().map_or(Moment(0), |fact| fact.at))?;
    }
    // Whoever is over holds nothing, whatever it says.
    let over = kept.ended.is_some() || pending.ended;
    hold(tx, kept.sid, if over { &[] } else { &append.claims })?;
    note(tx, kept, append, &pending, (number, words_bytes))?;
    if words_bytes != 0 {
        tx.count_owners_words(kept.sid, words_bytes)?;
    }
    for row in AuditRow::own_acts(kept.org, append) {
        tx.write_down(&row)?;
    }
    Ok(number)
}

fn write_rule(
    tx: &SqliteTx,
    sid: Sid,
    number: Number,
    new: &NewFact,
    fact: &Fact,
) -> Result<(), SqliteError> {
    let (number, at, cause) = (int(number.0), int(new.at.0), record::cause_text(new.cause));
    tx.run(
        "INSERT INTO facts (sid, number, at, cause, rule, fact) VALUES (?1, ?2, ?3, ?4, 1, ?5)",
        params![sid, number, at, cause, Json(&record::encode_fact(fact))],
    )
    .map(drop)
}

/// Says where its words are.
fn write_story(
    tx: &mut SqliteTx,
    sid: Sid,
    number: Number,
    new: &NewFact,
    (turn, kind): (Turn, &str),
    words: &[u8],
) -> Result<i64, SqliteError> {
    let (number, at, cause) = (int(number.0), int(new.at.0), record::cause_text(new.cause));
    let body = tx.keep_words(words)?;
    tx.run(
        "INSERT INTO facts (sid, number, at, cause, rule, turn, kind, body)
         VALUES (?1, ?2, ?3, ?4, 0, ?5, ?6, ?7)",
        params![sid, number, at, cause, turn.0, kind, body],
    )?;
    Ok(body)
}

/// A refused edit's words go; a granted one's become the message's. Answers the room that the words took which went.
fn judge(tx: &SqliteTx, sid: Sid, request: [u8; 16], verdict: &Verdict) -> Result<i64, SqliteError> {
    let mut query =
        tx.db().prepare_cached("SELECT message, body, opening, replaces FROM requests WHERE id = ?1")?;
    let read = |row: &rusqlite::Row<'_>| {
        let (message, body): (Option<[u8; 16]>, Option<i64>) = (row.get(0)?, row.get(1)?);
        Ok((message, body, row.get::<_, Option<String>>(2)?, row.get::<_, bool>(3)?))
    };
    let edit = query.query_row([request], read).optional()?;
    let freed = match edit {
        Some((Some(message), Some(body), opening, replaces)) if *verdict == Verdict::Done => {
            let mut query = tx.db().prepare_cached("SELECT body FROM messages WHERE id = ?1")?;
            let old: Option<Option<i64>> = query.query_row([message], |row| row.get(0)).optional()?;
            tx.run("UPDATE messages SET body = ?2 WHERE id = ?1", params![message, body])?;
            if opening.is_some() {
                let sql = "UPDATE sessions SET title = ?3, title_of = ?4 WHERE sid = ?1 AND title_of = ?2";
                tx.run(sql, params![sid, old.flatten(), opening, body])?;
            }
            if !replaces {
                tx.run("UPDATE attachments SET words = ?2 WHERE words = ?1", params![old.flatten(), body])?;
            }
            tx.forget_words(sid, old.flatten())?
        }
        Some((_, body, _, _)) => tx.forget_words(sid, body)?,
        None => 0,
    };
    tx.run(
        "INSERT INTO requests (id, sid, verdict) VALUES (?1, ?2, ?3)
         ON CONFLICT (id) DO UPDATE SET verdict = excluded.verdict, body = NULL, opening = NULL",
        params![request, sid, record::verdict_text(verdict)],
    )?;
    Ok(freed)
}

fn post(tx: &SqliteTx, sid: Sid, reply: &NewOutgoing, at: Moment) -> Result<(), SqliteError> {
    let kind = record::outgoing_kind_text(reply.kind);
    tx.run(
        "INSERT INTO outbox (sid, address, scheme, message, kind, state, tries, due_at, since)
         VALUES (?1, ?2, ?3, ?4, ?5, 'waiting', 0, 0, ?6)",
        params![sid, reply.to.to_string(), reply.to.scheme(), reply.message.stored(), kind, int(at.0)],
    )
    .map(drop)
}

/// After this the session holds these claims and no others.
fn hold(tx: &SqliteTx, sid: Sid, claims: &[(Claim, u32)]) -> Result<(), SqliteError> {
    let mut query = tx.db().prepare_cached("SELECT name FROM claims WHERE sid = ?1")?;
    let held = query.query_map([sid], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
    for name in held.iter().filter(|name| !claims.iter().any(|(claim, _)| claim.0 == **name)) {
        tx.run("DELETE FROM claims WHERE name = ?1 AND sid = ?2", params![name, sid])?;
    }
    for (claim, _) in claims.iter().filter(|(claim, _)| !held.contains(&claim.0)) {
        tx.run("INSERT OR IGNORE INTO claims (name, sid) VALUES (?1, ?2)", params![claim.0, sid])?;
    }
    Ok(())
}

/// Brings the session's own row up to date. What has not changed is not written: each column may stand in an index.
fn note(
    tx: &mut SqliteTx,
    kept: &StoredSession,
    append: &Append,
    pending: &Pending,
    (number, words_bytes): (Number, i64),
) -> Result<(), SqliteError> {
    let place = (!append.facts.is_empty()).then(|| tx.next_place());
    let (last, term) = (int(number.0), int(append.term.0));
    if pending.has_words {
        let LastWords { turn, part, text } = &pending.words;
        let row = params![kept.sid, last, term, pending.count, place, words_bytes, turn.0, part, text];
        tx.run(NOTE_WITH_WORDS, row)?;
    } else {
        tx.run(NOTE, params![kept.sid, last, term, pending.count, place, words_bytes])?;
    }
    if kept.awake != append.awake {
        tx.run("UPDATE sessions SET awake = ?2 WHERE sid = ?1", params![kept.sid, append.awake])?;
    }
    let wake_at = append.wake_at.map(|at| at.0);
    if kept.wake_at != wake_at {
        let row = params![kept.sid, wake_at.map(int)];
        tx.run("UPDATE sessions SET wake_at = ?2 WHERE sid = ?1", row)?;
    }
    if pending.questions != 0 || pending.held != 0 {
        let row = params![kept.sid, pending.questions, pending.held];
        let sql = "UPDATE sessions SET questions = questions + ?2, held = held + ?3 WHERE sid = ?1";
        tx.run(sql, row)?;
    }
    let touched_at = int(pending.touched_at.0);
    if let Some(LastTurn { outcome, number, at, words }) = &pending.last {
        let (outcome, number, at) = (record::outcome_word(*outcome), int(number.0), int(at.0));
        tx.run(TURN_OVER, params![kept.sid, touched_at, outcome, number, at, words])?;
    } else if pending.touched_at > kept.touched_at {
        tx.run("UPDATE sessions SET touched_at = ?2 WHERE sid = ?1", params![kept.sid, touched_at])?;
    }
    Ok(())
}

const NOTE: &str = "UPDATE sessions SET number = ?2, term = ?3, pending = ?4, place = coalesce(?5, place),
        words_bytes = words_bytes + ?6 WHERE sid = ?1";
const NOTE_WITH_WORDS: &str =
    "UPDATE sessions SET number = ?2, term = ?3, pending = ?4, place = coalesce(?5, place),
        words_bytes = words_bytes + ?6, words_turn = ?7, words_part = ?8, words = ?9 WHERE sid = ?1";
const TURN_OVER: &str =
    "UPDATE sessions SET touched_at = ?2, last_outcome = ?3, last_number = ?4, last_at = ?5,
        last_words = ?6 WHERE sid = ?1";

/// Keeps a short form of the session's rule facts, unless there is a newer one or the log does not go so far.
pub(crate) fn checkpoint(
    tx: &mut SqliteTx,
    session: SessionId,
    at: Number,
    facts: &[Fact],
) -> Result<(), SqliteError> {
    tx.run(
        "INSERT INTO checkpoints (sid, number, facts)
         SELECT sid, ?2, ?3 FROM sessions WHERE id = ?1 AND number >= ?2
         ON CONFLICT (sid) DO UPDATE SET number = excluded.number, facts = excluded.facts
         WHERE checkpoints.number < excluded.number",
        params![session.stored(), int(at.0), Json(&record::encode_checkpoint(facts))],
    )
    .map(drop)
}
