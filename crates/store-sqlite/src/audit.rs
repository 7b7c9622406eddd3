//! The audit as it is read: pages for people, and each org's chain for whoever verifies it.
//!
//! Entries are written with the change that they tell of, and are found by their number alone. The sealer comes a moment
//! later, chains them, and writes down what they can be found by. So a page is the few that are not sealed yet, then the
//! chain, backwards, by whatever of the question narrows it most. What an entry says is always read from the entry.

use crate::columns::{Columns, int, rows};
use crate::error::SqliteError;
use crate::tx::{Oid, SqliteTx, oid, who};
use kernel::{Moment, OrgId};
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};
use std::collections::{BTreeMap, BTreeSet};
use store::{AuditKeys, AuditQuery, AuditRow, ChainHead, ChainKey, chain};

/// The columns of an entry, in the order in which `entry_row` reads them.
const ENTRY: &str =
    "a.number, a.at, o.org, p.person, a.verb, a.door, a.address, a.correlation, a.session, a.subject,
    a.refused, a.oid, a.by, a.entry";
const NAMES: &str = "JOIN orgs o ON o.oid = a.oid LEFT JOIN persons p ON p.pid = a.by";

fn entry_row(row: &Row<'_>) -> Result<AuditRow, SqliteError> {
    let row = Columns(row);
    Ok(AuditRow {
        entry: row.count(0)?,
        sealed: None,
        at: row.moment(1)?,
        org: row.id(2)?,
        by: row.id_maybe(3)?,
        verb: row.string(4)?,
        door: row.string(5)?,
        address: row.string_maybe(6)?,
        correlation: row.string(7)?,
        session: row.id_maybe(8)?,
        subject: row.string_maybe(9)?,
        refused: row.string_maybe(10)?,
    })
}

pub(crate) fn unsealed_sql(order: &str) -> String {
    format!("SELECT {ENTRY} FROM audit a {NAMES} WHERE a.entry > ?1 ORDER BY a.entry {order} LIMIT ?2")
}

fn last_sealed(db: &Connection) -> Result<i64, SqliteError> {
    Ok(db.prepare_cached("SELECT sealed FROM counters")?.query_row([], |row| row.get(0))?)
}

// Sealing.

/// Where a chain is while entries are added to it.
struct End {
    head: ChainHead,
    /// The latest moment in it.
    at: Moment,
}

pub(crate) fn seal(tx: &mut SqliteTx, key: &ChainKey, limit: usize) -> Result<usize, SqliteError> {
    let mut ends = BTreeMap::new();
    let (mut sealed, mut last) = (0, None);
    let mut query = tx.db().prepare_cached(&unsealed_sql("ASC"))?;
    let mut found = query.query(params![last_sealed(tx.db())?, rows(limit)])?;
    while let Some(row) = found.next()? {
        let (entry, oid, by, place) = (entry_row(row)?, row.get(11)?, row.get(12)?, row.get(13)?);
        let end = match ends.entry(oid) {
            std::collections::btree_map::Entry::Occupied(end) => end.into_mut(),
            std::collections::btree_map::Entry::Vacant(place) => place.insert(end_of(tx.db(), oid)?),
        };
        link(tx, key, (oid, by, place), end, &entry)?;
        (sealed, last) = (sealed + 1, Some(place));
    }
    drop(found);
    drop(query);
    for (oid, End { head, at }) in ends {
        tx.run(
            "INSERT OR REPLACE INTO audit_heads (oid, number, seal, at) VALUES (?1, ?2, ?3, ?4)",
            params![oid, int(head.number), head.seal, int(at.0)],
        )?;
    }
    if let Some(last) = last {
        tx.run("UPDATE counters SET sealed = ?1", [last])?;
    }
    Ok(sealed)
}

fn end_of(db: &Connection, oid: Oid) -> Result<End, SqliteError> {
    let mut query = db.prepare_cached("SELECT number, seal, at FROM audit_heads WHERE oid = ?1")?;
    let mut found = query.query([oid])?;
    let Some(row) = found.next()? else { return Ok(End { head: ChainHead::default(), at: Moment(0) }) };
    let row = Columns(row);
    Ok(End { head: ChainHead { number: row.count(0)?, seal: row.hash(1)? }, at: row.moment(2)? })
}

/// Adds one entry to its org's chain, and writes down what it can be found by. `place` is where the entry is in the file.
fn link(
    tx: &SqliteTx,
    key: &ChainKey,
    (oid, by, place): (Oid, Option<i64>, i64),
    end: &mut End,
    entry: &AuditRow,
) -> Result<(), SqliteError> {
    let number = end.head.number + 1;
    let seal = chain::seal(key, end.head, number, entry);
    let keys = AuditKeys::of(entry, end.at);
    *end = End { head: ChainHead { number, seal }, at: keys.at };
    tx.run(
        "INSERT INTO audit_chain (oid, number, entry, seal, at, by, verb) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![oid, int(number), place, seal, int(keys.at.0), by, keys.verb],
    )?;
    for about in keys.about {
        tx.run(
            "INSERT OR IGNORE INTO audit_about (oid, about, number) VALUES (?1, ?2, ?3)",
            params![oid, about, int(number)],
        )?;
    }
    Ok(())
}

// Pages.

pub(crate) fn page(db: &Connection, query: &AuditQuery) -> Result<Vec<AuditRow>, SqliteError> {
    let Some(oid) = oid(db, query.org)? else { return Ok(Vec::new()) };
    let mut page = Vec::new();
    gather(db, &unsealed_sql("DESC"), params![last_sealed(db)?, i64::MAX], query, &mut page)?;
    let head = end_of(db, oid)?.head.number;
    let to = match query.before {
        Some(before) => first_after(db, oid, head, |entry, _| entry >= int(before))? - 1,
        None => int(head),
    };
    let from = match query.since {
        Some(since) => first_after(db, oid, head, |_, at| at >= int(since.0))?,
        None => 0,
    };
    if let Some(about) = &query.subject {
        gather(db, &chain_sql(ABOUT), params![oid, from, to, about], query, &mut page)?;
    } else if let Some(person) = query.who {
        let Some(who) = who(db, query.org, person)? else { return Ok(page) };
        gather(db, &chain_sql(BY), params![oid, from, to, who.pid], query, &mut page)?;
    } else if let Some(verb) = &query.what {
        gather(db, &chain_sql(VERB), params![oid, from, to, verb], query, &mut page)?;
    } else {
        gather(db, &chain_sql(ANY), params![oid, from, to], query, &mut page)?;
    }
    Ok(page)
}

/// Ways along the chain.
pub(crate) const ANY: &str = "audit_chain c WHERE c.oid = ?1 AND c.number BETWEEN ?2 AND ?3";
pub(crate) const BY: &str =
    "audit_chain c WHERE c.oid = ?1 AND c.by IS NOT NULL AND c.by = ?4 AND c.number BETWEEN ?2 AND ?3";
pub(crate) const VERB: &str = "audit_chain c WHERE c.oid = ?1 AND c.verb = ?4 AND c.number BETWEEN ?2 AND ?3";
pub(crate) const ABOUT: &str =
    "audit_about c WHERE c.oid = ?1 AND c.about = ?4 AND c.number BETWEEN ?2 AND ?3";

/// The newest first.
pub(crate) fn chain_sql(way: &str) -> String {
    let (way, condition) = way.split_once(" WHERE ").expect("every way has a condition");
    format!(
        "SELECT {ENTRY}, l.number, l.seal FROM {way} CROSS JOIN audit_chain l ON l.oid = c.oid AND l.number = c.number
         CROSS JOIN audit a ON a.entry = l.entry {NAMES} WHERE {condition} ORDER BY c.number DESC"
    )
}

/// Puts entries that fit onto the page, until it is full.
fn gather(
    db: &Connection,
    sql: &str,
    params: &[&dyn ToSql],
    query: &AuditQuery,
    page: &mut Vec<AuditRow>,
) -> Result<(), SqliteError> {
    let mut statement = db.prepare_cached(sql)?;
    let mut found = statement.query(params)?;
    while page.len() < query.limit {
        let Some(row) = found.next()? else { break };
        let entry = sealed_row(row)?;
        if entry.fits(query) {
            page.push(entry);
        }
    }
    Ok(())
}

/// An entry, with its place in the chain if that was read, too.
fn sealed_row(row: &Row<'_>) -> Result<AuditRow, SqliteError> {
    let entry = entry_row(row)?;
    if row.as_ref().column_count() <= 14 {
        return Ok(entry);
    }
    let columns = Columns(row);
    Ok(AuditRow { sealed: Some((columns.count(14)?, columns.hash(15)?)), ..entry })
}

pub(crate) const PLACE: &str =
    "SELECT c.number, a.number, c.at FROM audit_chain c CROSS JOIN audit a ON a.entry = c.entry
    WHERE c.oid = ?1 AND c.number >= ?2 ORDER BY c.number LIMIT 1";

/// The first number of a chain from which on this is so: entries and moments only grow along it.
fn first_after(
    db: &Connection,
    oid: Oid,
    head: u64,
    is_so: impl Fn(i64, i64) -> bool,
) -> Result<i64, SqliteError> {
    let (mut low, mut high) = (1, int(head) + 1);
    while low < high {
        let middle = low + (high - low) / 2;
        let mut query = db.prepare_cached(PLACE)?;
        let found: Option<(i64, i64)> =
            query.query_row([oid, middle], |row| Ok((row.get(1)?, row.get(2)?))).optional()?;
        if found.is_none_or(|(entry, at)| is_so(entry, at)) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Ok(low)
}

pub(crate) const LAST_SEALED_OF: &str =
    "SELECT a.number FROM audit_chain c CROSS JOIN audit a ON a.entry = c.entry
    WHERE c.oid = ?1 ORDER BY c.number DESC LIMIT 1";
pub(crate) const LAST_UNSEALED_OF: &str = "SELECT max(number) FROM audit WHERE entry > ?1 AND oid = ?2";

/// The number of an org's last entry; 0 if it has none.
pub(crate) fn last_number(db: &Connection, oid: Oid) -> Result<i64, SqliteError> {
    let sealed: Option<i64> =
        db.prepare_cached(LAST_SEALED_OF)?.query_row([oid], |row| row.get(0)).optional()?;
    let after = last_sealed(db)?;
    let unsealed: Option<i64> =
        db.prepare_cached(LAST_UNSEALED_OF)?.query_row([after, oid], |row| row.get(0))?;
    Ok(sealed.max(unsealed).unwrap_or(0))
}

// Verifying.

pub(crate) fn sealed_sql() -> String {
    format!(
        "SELECT {ENTRY}, c.number, c.seal FROM audit_chain c CROSS JOIN audit a ON a.entry = c.entry {NAMES}
         WHERE c.oid = ?1 AND c.number > ?2 ORDER BY c.number LIMIT ?3"
    )
}

pub(crate) fn sealed(
    db: &Connection,
    org: OrgId,
    after: u64,
    limit: usize,
) -> Result<Vec<AuditRow>, SqliteError> {
    let Some(oid) = oid(db, org)? else { return Ok(Vec::new()) };
    crate::view::read_all(db, &sealed_sql(), params![oid, int(after), rows(limit)], sealed_row)
}

pub(crate) fn keys_sql() -> String {
    format!(
        "SELECT {ENTRY}, c.number, c.seal, c.at, k.person, c.verb FROM audit_chain c
         CROSS JOIN audit a ON a.entry = c.entry {NAMES} LEFT JOIN persons k ON k.pid = c.by
         WHERE c.oid = ?1 AND c.number > ?2 ORDER BY c.number LIMIT ?3"
    )
}

pub(crate) const IS_ABOUT: &str = "SELECT 1 FROM audit_about WHERE oid = ?1 AND about = ?2 AND number = ?3";

/// The columns by which sealed entries are found. More words than these find nothing: a page is made of entries that fit.
pub(crate) fn sealed_keys(
    db: &Connection,
    org: OrgId,
    after: u64,
    limit: usize,
) -> Result<Vec<AuditKeys>, SqliteError> {
    let Some(oid) = oid(db, org)? else { return Ok(Vec::new()) };
    crate::view::read_all(db, &keys_sql(), params![oid, int(after), rows(limit)], |row| {
        let (entry, columns) = (entry_row(row)?, Columns(row));
        let number = columns.count(14)?;
        let mut about = BTreeSet::new();
        for word in AuditKeys::of(&entry, Moment(0)).about {
            if db.prepare_cached(IS_ABOUT)?.exists(params![oid, word, int(number)])? {
                about.insert(word);
            }
        }
        let (at, by, verb) = (columns.moment(16)?, columns.id_maybe(17)?, columns.string(18)?);
        Ok(AuditKeys { at, by, verb, about })
    })
}

pub(crate) fn chain_head(db: &Connection, org: OrgId) -> Result<ChainHead, SqliteError> {
    Ok(match oid(db, org)? {
        Some(oid) => end_of(db, oid)?.head,
        None => ChainHead::default(),
    })
}
