//! What is not on a page must not cost anything: every list is read from an index in its own order.

use crate::desk::KEPT;
use crate::files::plan_once;
use crate::intake::CLEAR_KEYS;
use crate::log::{RULE_FACTS, facts_sql};
use crate::migrations::migrate;
use crate::timer::{AWAKE, WAITING};
use crate::view::{BINDINGS_OWNED, HEADS_OWNED, approvals_owned_sql, owned_sql, queue_sql};
use rusqlite::{Connection, StatementStatus};

fn plan(db: &Connection, sql: &str) -> Vec<String> {
    let mut query = db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let count = query.parameter_count();
    let rows = query.query_map(rusqlite::params_from_iter(vec![1; count]), |row| row.get(3)).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

/// Every statement that is run often, and the index that it is read by.
fn statements() -> Vec<(String, &'static str)> {
    vec![
        (owned_sql("s.archived = 0 AND s.ended IS NULL"), "sessions_open"),
        (owned_sql("s.archived = 0 AND s.ended IS NOT NULL"), "sessions_ended"),
        (owned_sql("s.archived = 1"), "sessions_archived"),
        (facts_sql(), "facts_number"),
        (RULE_FACTS.into(), "facts_rule"),
        (queue_sql(), "messages_queue"),
        (BINDINGS_OWNED.into(), "bindings_of_owner"),
        (approvals_owned_sql(), "approvals_open"),
        (HEADS_OWNED.into(), "sessions_place"),
        (AWAKE.into(), "sessions_awake"),
        (WAITING.into(), "PRIMARY KEY"),
        (CLEAR_KEYS.into(), "keys_expiring"),
        (KEPT.into(), "sqlite_autoindex_sessions_1"),
        ("SELECT min(wake_at) FROM sessions WHERE wake_at IS NOT NULL".into(), "sessions_wake"),
    ]
}

fn empty() -> Connection {
    let mut db = Connection::open_in_memory().unwrap();
    plan_once(&db).unwrap();
    migrate(&mut db, 0).unwrap();
    db
}

#[test]
fn no_list_scans_a_table_or_sorts() {
    let db = empty();
    for (sql, index) in statements() {
        let plan = plan(&db, &sql);
        let text = plan.join("\n");
        assert!(text.contains(index), "not by {index}:\n{sql}\n{text}");
        let sorts_or_scans = plan.iter().any(|step| {
            step.contains("TEMP B-TREE") || (step.starts_with("SCAN") && !step.contains("sessions_wake"))
        });
        assert!(!sorts_or_scans, "{sql}\n{text}");
    }
}

#[test]
fn no_statement_is_planned_anew_for_other_values() {
    let db = empty();
    for (sql, _) in statements() {
        let mut query = db.prepare(&sql).unwrap();
        for value in 0..3 {
            query.clear_bindings();
            let values = vec![value; query.parameter_count()];
            let mut rows = query.query(rusqlite::params_from_iter(values)).unwrap();
            while rows.next().unwrap().is_some() {}
        }
        assert_eq!(query.get_status(StatementStatus::RePrepare), 0, "{sql}");
    }
}
