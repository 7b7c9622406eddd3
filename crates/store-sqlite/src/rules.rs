//! The org's rules for what agents ask, as rows. What follows from them is the kernel's.

use crate::columns::{Columns, Id, grantee, int};
use crate::error::SqliteError;
use crate::tx::{Oid, Pid, Sid, SqliteTx, oid};
use crate::view::read_all;
use kernel::{Moment, OrgId, RuleId, SessionId};
use rusqlite::{Connection, Row, params};
use store::{RuleEffect, RuleRow};

pub(crate) const RULES: &str =
    "SELECT r.id, p.person, r.since, r.agent, r.tool, r.directory, s.id, r.until, r.effect,
        r.kind, r.grantee
    FROM rules r JOIN persons p ON p.pid = r.by LEFT JOIN sessions s ON s.sid = r.sid
    WHERE r.oid = ?1 ORDER BY r.rid";

pub(crate) fn rules(db: &Connection, org: OrgId) -> Result<Vec<RuleRow>, SqliteError> {
    match oid(db, org)? {
        Some(oid) => read_all(db, RULES, params![oid], rule_row),
        None => Ok(Vec::new()),
    }
}

fn rule_row(row: &Row<'_>) -> Result<RuleRow, SqliteError> {
    let row = Columns(row);
    let text = |column| Ok::<_, SqliteError>(row.text_maybe(column)?.map(str::to_owned));
    let effect = match row.text(8)? {
        "allow" => RuleEffect::Allow,
        "deny" => RuleEffect::Deny,
        "ask" => RuleEffect::Ask(row.grantee(9)?),
        other => return Err(SqliteError::Damaged(format!("a rule says {other:?}"))),
    };
    Ok(RuleRow {
        rule: row.id(0)?,
        by: row.id(1)?,
        since: row.moment(2)?,
        agent: text(3)?,
        tool: text(4)?,
        directory: text(5)?,
        session: row.id_maybe(6)?,
        effect,
        until: row.count_maybe(7)?.map(Moment),
    })
}

/// The rule, if the org has it, and the session that it is for.
pub(crate) fn find(
    db: &Connection,
    oid: Oid,
    rule: RuleId,
) -> Result<Option<Option<SessionId>>, SqliteError> {
    let sql = "SELECT s.id FROM rules r LEFT JOIN sessions s ON s.sid = r.sid WHERE r.id = ?1 AND r.oid = ?2";
    Ok(read_all(db, sql, params![rule.stored(), oid], |row| Columns(row).id_maybe(0))?.pop())
}

pub(crate) fn add(
    tx: &SqliteTx,
    org: OrgId,
    oid: Oid,
    by: Pid,
    sid: Option<Sid>,
    rule: &RuleRow,
) -> Result<(), SqliteError> {
    let (effect, whom) = match rule.effect {
        RuleEffect::Allow => ("allow", None),
        RuleEffect::Deny => ("deny", None),
        RuleEffect::Ask(whom) => ("ask", Some(grantee(whom, org))),
    };
    tx.run(
        "INSERT INTO rules (id, oid, by, since, agent, tool, directory, sid, effect, kind, grantee, until)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        params![
            rule.rule.stored(),
            oid,
            by,
            int(rule.since.0),
            rule.agent,
            rule.tool,
            rule.directory,
            sid,
            effect,
            whom.map(|(kind, _)| kind),
            whom.map(|(_, grantee)| grantee),
            rule.until.map(|until| int(until.0)),
        ],
    )
    .map(drop)
}

pub(crate) const CLEAR_RULES: &str = "DELETE FROM rules WHERE oid = ?1 AND until <= ?2";

pub(crate) fn remove(tx: &SqliteTx, rule: RuleId) -> Result<(), SqliteError> {
    tx.run("DELETE FROM rules WHERE id = ?1", [rule.stored()]).map(drop)
}
