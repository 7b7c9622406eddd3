//! Query plans: what is not on a page must not cost anything: every list is read from an index in its own order.

use crate::approvals;
use crate::audit::{self, chain_sql, keys_sql, sealed_sql, unsealed_sql};
use crate::change::{ACTIVE_OWNERS, MEMBERS, OF_ORG, UNFINISHED_OF, owned_ids_sql};
use crate::counts;
use crate::files::plan_once;
use crate::log::{ATTACHMENT, ATTACHMENTS, INBOX, RULE_FACTS, facts_before_sql, facts_sql};
use crate::migrations::migrate;
use crate::names;
use crate::offers;
use crate::past;
use crate::people::{self, somebody_sql};
use crate::projection::FIRST_SEAT;
use crate::pushes;
use crate::row_changes;
use crate::rules;
use crate::search;
use crate::sight;
use crate::timer::{AWAKE, WAITING};
use crate::tokens::{self, token_sql};
use crate::tx::{STORED_SESSION, WHO};
use crate::usage;
use crate::view::{
    self, BINDINGS_OWNED, HEADS_OWNED, QUEUE_ATTACHMENTS, owned_sql, queue_shown_sql, queue_sql,
};
use crate::way_in::{self, CLEAR_KEYS};
use rusqlite::{Connection, StatementStatus};

fn plan(db: &Connection, sql: &str) -> Vec<String> {
    let mut query = db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let count = query.parameter_count();
    let rows = query.query_map(rusqlite::params_from_iter(vec![1; count]), |row| row.get(3)).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

fn narrowed(need: usize) -> String {
    let (_, index, condition) = view::NEEDS[need];
    view::narrowed_sql(index, view::LISTS[0], condition)
}

/// Every statement that is run often, and the index that it is read by.
fn statements() -> Vec<(String, &'static str)> {
    vec![
        (owned_sql("s.archived = 0 AND s.ended IS NULL"), "sessions_open"),
        (owned_sql("s.archived = 0 AND s.ended IS NOT NULL"), "sessions_ended"),
        (owned_sql("s.archived = 1"), "sessions_archived"),
        (narrowed(0), view::NEEDS[0].1),
        (narrowed(1), view::NEEDS[1].1),
        (narrowed(2), view::NEEDS[2].1),
        (counts::owned_sql(), "sessions_open"),
        (names::TITLED_OWNED.into(), "sessions_titled"),
        (facts_sql(), "facts_number"),
        (facts_before_sql(), "facts_number"),
        (past::turns_sql(), "messages_turn"),
        (past::message_shown_sql(), "sqlite_autoindex_messages_1"),
        (RULE_FACTS.into(), "facts_rule"),
        (queue_sql(), "messages_queue"),
        (queue_shown_sql(), "messages_queue"),
        (QUEUE_ATTACHMENTS.into(), "messages_queue"),
        (ATTACHMENTS.into(), "sqlite_autoindex_messages_1"),
        (ATTACHMENT.into(), "sqlite_autoindex_messages_1"),
        (FIRST_SEAT.into(), "messages_queue"),
        (INBOX.into(), "sqlite_autoindex_messages_1"),
        (BINDINGS_OWNED.into(), "bindings_of_owner"),
        (HEADS_OWNED.into(), "sessions_place"),
        (AWAKE.into(), "sessions_awake"),
        (WAITING.into(), "PRIMARY KEY"),
        (CLEAR_KEYS.into(), "keys_expiring"),
        (STORED_SESSION.into(), "sqlite_autoindex_sessions_1"),
        ("SELECT min(wake_at) FROM sessions WHERE wake_at IS NOT NULL".into(), "sessions_wake"),
        (WHO.into(), "sqlite_autoindex_persons_1"),
        (way_in::ROOM.into(), "INTEGER PRIMARY KEY"),
        (way_in::BY_ID.into(), "sqlite_autoindex_sessions_1"),
        (way_in::BOUND.into(), "bindings_open"),
        (way_in::BOUND_BEFORE.into(), "bindings_past"),
        (way_in::SCOPE_NOW.into(), "sqlite_autoindex_sessions_1"),
        (way_in::UNBOUND.into(), "bindings_open"),
        (way_in::NO_PAST.into(), "bindings_past"),
        (way_in::OF_MESSAGE.into(), "sqlite_autoindex_messages_1"),
        (way_in::OF_APPROVAL.into(), "sqlite_autoindex_approvals_1"),
        (way_in::CREDENTIAL.into(), "PRIMARY KEY"),
        (somebody_sql(people::BY_ID), "persons_named"),
        (somebody_sql(people::BY_PID), "INTEGER PRIMARY KEY"),
        (somebody_sql(people::BY_HANDLE), "persons_login"),
        (somebody_sql(people::BY_EMAIL), "persons_email"),
        (somebody_sql(people::BY_ORG_AND_HANDLE), "persons_handle"),
        (somebody_sql(people::HOST), "persons_host"),
        (somebody_sql(people::OF_ORG_BY_HANDLE), "persons_handle"),
        (somebody_sql(people::OF_ORG_BY_EMAIL), "persons_email"),
        (somebody_sql(people::PAGE), "persons_handle"),
        (people::org_sql(), "sqlite_autoindex_orgs_1"),
        (people::GROUPS_OF.into(), "group_people_of_person"),
        (people::AGENTS.into(), "PRIMARY KEY"),
        (people::ROOTS.into(), "PRIMARY KEY"),
        (people::GROUPS.into(), "sqlite_autoindex_groups_2"),
        (people::GROUP_PEOPLE.into(), "PRIMARY KEY"),
        (people::SESSION_GRANTS.into(), "grants_of_session"),
        (people::AGENT_GRANTS.into(), "PRIMARY KEY"),
        (view::GRANTS.into(), "grants_of_session"),
        (view::LAST_TURN.into(), "messages_turn"),
        (search::OVER.into(), "INTEGER PRIMARY KEY"),
        (search::TOLD.into(), "facts_number"),
        (search::FORGET.into(), "passages_body"),
        (view::SCOPE.into(), "PRIMARY KEY"),
        (view::MARKED_BY.into(), "PRIMARY KEY (pid=? AND sid=?)"),
        (view::HOLDER.into(), "PRIMARY KEY"),
        (view::WORKTREES.into(), "sessions_in_worktree"),
        (usage::PLACE.into(), "INTEGER PRIMARY KEY"),
        (usage::owned_sql(), "PRIMARY KEY (owner=? AND day>? AND day<?)"),
        (usage::of_session_sql(), "usage_of_session (sid=? AND day>? AND day<?)"),
        (sight::SESSION.into(), "sqlite_autoindex_sessions_1"),
        (sight::MESSAGE.into(), "sqlite_autoindex_messages_1"),
        (sight::APPROVAL.into(), "sqlite_autoindex_approvals_1"),
        (sight::GIVEN.into(), "PRIMARY KEY (kind=? AND grantee=? AND sid=?)"),
        (view::NAMED[0].into(), "sqlite_autoindex_sessions_1"),
        (view::NAMED[1].into(), "sessions_imported"),
        (rules::RULES.into(), "rules_of_org"),
        (offers::OF_SESSION.into(), "INTEGER PRIMARY KEY"),
        (offers::OF_OWNER.into(), "offers_of_owner"),
        (offers::OF_HEIR.into(), "offers_of_heir"),
        (offers::DROP_OF_OWNER.into(), "offers_of_owner"),
        (offers::DROP_OF_HEIR.into(), "offers_of_heir"),
        (offers::DROP_LAPSED.into(), "offers_lapsing"),
        (rules::CLEAR_RULES.into(), "rules_of_org"),
        (token_sql(tokens::BY_HASH), "sqlite_autoindex_tokens_2"),
        (token_sql(tokens::BY_OLD_HASH), "tokens_previous"),
        (token_sql(tokens::BY_ID), "PRIMARY KEY"),
        (token_sql(tokens::OF_PERSON), "tokens_of_person"),
        (tokens::MADE_WITH.into(), "tokens_made_with"),
        (tokens::IDS_OF_PERSON.into(), "tokens_of_person"),
        (tokens::DROP_LINKS_MADE_WITH.into(), "links_made_with"),
        (tokens::UNDER_WAY.into(), "messages_turn"),
        (tokens::LINK.into(), "PRIMARY KEY"),
        (tokens::IDENTITY.into(), "PRIMARY KEY"),
        (tokens::CLEAR_TOKENS.into(), "tokens_expiring"),
        (tokens::CLEAR_LINKS.into(), "links_expiring"),
        (tokens::DROP_PURPOSE.into(), "tokens_of_person"),
        (tokens::DROP_TURNS.into(), "tokens_of_session"),
        (pushes::of_person_sql(), "pushes_of_person"),
        (pushes::of_token_sql(), "PRIMARY KEY"),
        (pushes::TAKEN_OVER.into(), "pushes_at"),
        (pushes::TOO_MANY.into(), "pushes_of_person"),
        (ACTIVE_OWNERS.into(), "persons_owners"),
        (MEMBERS.into(), "sqlite_autoindex_groups_1"),
        (OF_ORG.into(), "persons_handle"),
        (UNFINISHED_OF.into(), "messages_by"),
        (owned_ids_sql(view::LISTS[0]), "sessions_open"),
        (owned_ids_sql(view::LISTS[1]), "sessions_ended"),
        (owned_ids_sql(view::LISTS[2]), "sessions_archived"),
        (unsealed_sql("ASC"), "INTEGER PRIMARY KEY"),
        (unsealed_sql("DESC"), "INTEGER PRIMARY KEY"),
        (audit::PLACE.into(), "PRIMARY KEY"),
        (sealed_sql(), "PRIMARY KEY"),
        (keys_sql(), "PRIMARY KEY"),
        (audit::IS_ABOUT.into(), "PRIMARY KEY"),
        (audit::LAST_SEALED_OF.into(), "PRIMARY KEY"),
        (audit::LAST_UNSEALED_OF.into(), "INTEGER PRIMARY KEY"),
        (chain_sql(audit::ANY), "PRIMARY KEY"),
        (chain_sql(audit::BY), "audit_by"),
        (chain_sql(audit::VERB), "audit_verb"),
        (chain_sql(audit::ABOUT), "PRIMARY KEY"),
        (approvals::of_session_sql("a.state = 'open'", ""), "approvals_of_session"),
        (view::HEAD_BOUND.into(), "sqlite_autoindex_sessions_1"),
        (row_changes::OF_PERSON.into(), "row_changes_place"),
        (row_changes::GIVEN_TO.into(), "PRIMARY KEY"),
    ]
}

/// The grants of somebody are read by whom it was given to, then put in order: as much as was given to them, and no
/// more.
fn statements_that_sort() -> Vec<(String, &'static str)> {
    vec![
        (view::narrowed_sql(view::FORKS.0, view::LISTS[0], view::FORKS.1), "sessions_origin"),
        (counts::granted_sql(), "PRIMARY KEY (kind=? AND grantee=?)"),
        (view::granted_sql(view::LISTS[0]), "PRIMARY KEY (kind=? AND grantee=?)"),
        (view::granted_sql(view::LISTS[1]), "PRIMARY KEY (kind=? AND grantee=?)"),
        (view::granted_sql(view::LISTS[2]), "PRIMARY KEY (kind=? AND grantee=?)"),
        (view::BINDINGS_GRANTED.into(), "PRIMARY KEY (kind=? AND grantee=?)"),
        (approvals::granted_sql("a.state = 'open'", ""), "PRIMARY KEY (kind=? AND grantee=?)"),
        (view::HEADS_GRANTED.into(), "PRIMARY KEY (kind=? AND grantee=?)"),
        (view::BINDINGS_BOUND.into(), "bindings_of_session"),
        (view::turn_sql(), "messages_turn"),
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
        // Everything in these is wanted.
        let whole = |step: &str| step.contains("sessions_wake") || step.contains("sessions_in_worktree");
        let sorts_or_scans = plan
            .iter()
            .any(|step| step.contains("TEMP B-TREE") || (step.starts_with("SCAN") && !whole(step)));
        assert!(!sorts_or_scans, "{sql}\n{text}");
    }
}

#[test]
fn what_was_given_is_found_without_a_scan() {
    let db = empty();
    for (sql, index) in statements_that_sort() {
        let plan = plan(&db, &sql);
        let text = plan.join("\n");
        assert!(text.contains(index), "not by {index}:\n{sql}\n{text}");
        assert!(!plan.iter().any(|step| step.starts_with("SCAN")), "{sql}\n{text}");
    }
}

#[test]
fn no_statement_is_planned_anew_for_other_values() {
    let db = empty();
    for (sql, _) in statements().into_iter().chain(statements_that_sort()) {
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
