//! The rows of people in a write transaction: what `store::change` reads and writes. There is no rule here.

use crate::columns::{Columns, Id, grantee, int};
use crate::error::SqliteError;
use crate::offers;
use crate::people::{self, key_of};
use crate::row_changes;
use crate::rules;
use crate::tokens;
use crate::tx::{Oid, Pid, SqliteTx, StoredSession, oid};
use crate::view;
use crate::way_in::{key_row, put_into_inbox, put_key};
use kernel::people::{
    CredentialState, HeirRoom, HostState, LinkState, LinksToDrop, PeopleWrite, PersonState, RuleState,
    SessionState, TokenHolder, TokenRow, TokensToDrop,
};
use kernel::{Grant, Grantee, GroupId, Moment, OrgId, PersonId, Principal, RuleId, SessionId, TokenId};
use rusqlite::{Connection, OptionalExtension, ToSql, params};
use store::plan::key_answer;
use store::{
    AuditEntry, AuditRow, AuditSubject, InboxItem, Key, KeyAnswer, KeyUse, LoginRow, OfferRow, OrgSettings,
    PeopleTx, RootRow, Trail, record,
};

type Read<T> = Result<T, SqliteError>;

pub(crate) const ACTIVE_OWNERS: &str =
    "SELECT count(*) FROM persons WHERE org = ?1 AND role = 'owner' AND disabled_at IS NULL";
pub(crate) const MEMBERS: &str = "SELECT p.person
    FROM groups g CROSS JOIN group_people m ON m.gid = g.gid CROSS JOIN persons p ON p.pid = m.pid
    WHERE g.id = ?1 AND g.oid = ?2";
pub(crate) const OF_ORG: &str = "SELECT person FROM persons WHERE org = ?1 AND handle IS NOT NULL";
pub(crate) const UNFINISHED_OF: &str = "SELECT s.id FROM messages m CROSS JOIN sessions s ON s.sid = m.sid
     WHERE m.by = ?1 AND m.pending = 1 GROUP BY m.sid ORDER BY m.sid";

impl PeopleTx for SqliteTx {
    type Error = SqliteError;

    fn has_org(&mut self, org: OrgId) -> Read<bool> {
        exists(self.db(), "SELECT 1 FROM orgs WHERE org = ?1 AND name IS NOT NULL", params![org.stored()])
    }

    fn credential(&mut self, token: TokenId) -> Read<Option<(TokenRow, CredentialState)>> {
        tokens::credential(self.db(), token)
    }

    fn principal_of(&mut self, person: PersonId) -> Read<Option<Principal>> {
        let somebody = people::by_id(self.db(), person)?;
        somebody.map(|somebody| people::principal(self.db(), &somebody)).transpose()
    }

    fn key_use(&mut self, by: &Principal, key: &Key, now: Moment) -> Read<KeyUse> {
        let Some(who) = self.who(by.org, by.person)? else { return Ok(KeyUse::Never) };
        let row = key_row(self.db(), who.pid, key)?;
        Ok(match key_answer(Some(key), row.as_ref(), now) {
            KeyAnswer::Never => KeyUse::Never,
            KeyAnswer::Repeated(_) => KeyUse::Repeated,
            KeyAnswer::Conflict => KeyUse::Conflict,
        })
    }

    fn person_state(&mut self, org: OrgId, person: PersonId) -> Read<Option<PersonState>> {
        Ok(people::of(self.db(), org, person)?.map(|somebody| somebody.state()))
    }

    fn has_group(&mut self, org: OrgId, group: GroupId) -> Read<bool> {
        Ok(gid(self, org, group)?.is_some())
    }

    fn session_state(&mut self, session: SessionId) -> Read<Option<SessionState>> {
        let Some((record, row)) = view::session(self.db(), session)? else { return Ok(None) };
        let words_bytes = self.stored_session(session)?.map_or(0, |kept| kept.words_bytes.unsigned_abs());
        let directory = row.scope.home().clone();
        Ok(Some(SessionState { record, ended: row.ended, directory, words_bytes }))
    }

    fn heir_room(&mut self, org: OrgId, person: PersonId) -> Read<HeirRoom> {
        let sql = "SELECT opened, words_bytes FROM persons WHERE person = ?1 AND org = ?2";
        let mut query = self.db().prepare_cached(sql)?;
        let mut rows = query.query(params![person.stored(), org.stored()])?;
        let Some(row) = rows.next()? else { return Ok(HeirRoom::default()) };
        let row = Columns(row);
        Ok(HeirRoom { open: row.small(0)?, words_bytes: row.count(1)? })
    }

    fn offer(&mut self, session: SessionId) -> Read<Option<OfferRow>> {
        offers::of_session(self.db(), session)
    }

    fn rule_state(&mut self, org: OrgId, rule: RuleId) -> Read<Option<RuleState>> {
        let Some(oid) = oid(self.db(), org)? else { return Ok(None) };
        Ok(rules::find(self.db(), oid, rule)?.map(|session| RuleState { session }))
    }

    fn rules_in_force(&mut self, org: OrgId, now: Moment) -> Read<u32> {
        let rules = rules::rules(self.db(), org)?;
        Ok(rules.iter().filter(|rule| !rule.is_over(now)).count() as u32)
    }

    fn token_holder(&mut self, org: OrgId, token: TokenId) -> Read<Option<TokenHolder>> {
        let Some((row, _)) = tokens::credential(self.db(), token)? else { return Ok(None) };
        let person = self.person_state(org, row.person)?;
        Ok(person.map(|person| TokenHolder { person, purpose: row.purpose }))
    }

    fn tokens_of(&mut self, person: PersonId) -> Read<Vec<TokenId>> {
        let Some(pid) = pid_of(self.db(), person)? else { return Ok(Vec::new()) };
        ids(self.db(), tokens::IDS_OF_PERSON, params![pid])
    }

    fn made_with(&mut self, token: TokenId) -> Read<Vec<TokenId>> {
        ids(self.db(), tokens::MADE_WITH, params![token.stored()])
    }

    fn active_owners(&mut self, org: OrgId) -> Read<u32> {
        Ok(self.db().prepare_cached(ACTIVE_OWNERS)?.query_row([org.stored()], |row| row.get(0))?)
    }

    fn has_org_named(&mut self, key: &str) -> Read<bool> {
        exists(self.db(), "SELECT 1 FROM orgs WHERE name_key = ?1", params![key])
    }

    fn has_group_named(&mut self, org: OrgId, name: &str) -> Read<bool> {
        let oid = oid(self.db(), org)?;
        exists(self.db(), "SELECT 1 FROM groups WHERE oid = ?1 AND name = ?2", params![oid, name])
    }

    fn has_handle(&mut self, org: OrgId, key: &str) -> Read<bool> {
        let found = people::somebody(self.db(), people::OF_ORG_BY_HANDLE, params![key, org.stored()])?;
        Ok(!found.is_empty())
    }

    fn email_holder(&mut self, org: OrgId, key: &str) -> Read<Option<PersonId>> {
        let found = people::somebody(self.db(), people::OF_ORG_BY_EMAIL, params![key, org.stored()])?;
        Ok(found.first().map(|somebody| somebody.row.person))
    }

    fn identity_holder(&mut self, issuer: &str, subject: &str) -> Read<Option<PersonId>> {
        Ok(tokens::identity(self.db(), issuer, subject)?.map(|login| login.person))
    }

    fn subject_at(&mut self, person: PersonId, issuer: &str) -> Read<Option<String>> {
        let Some(pid) = pid_of(self.db(), person)? else { return Ok(None) };
        let mut query =
            self.db().prepare_cached("SELECT subject FROM identities WHERE pid = ?1 AND issuer = ?2")?;
        Ok(query.query_row(params![pid, issuer], |row| row.get(0)).optional()?)
    }

    fn host_state(&mut self) -> Read<Option<HostState>> {
        let Some(host) = people::somebody(self.db(), people::HOST, &[])?.pop() else { return Ok(None) };
        let org = host.row.org;
        Ok(Some(HostState { person: host.row.person, org, has_name: self.has_org(org)? }))
    }

    fn link_state(&mut self, hash: [u8; 32]) -> Read<Option<(LinkState, LoginRow)>> {
        tokens::link_state(self.db(), hash)
    }

    fn people_of(&mut self, org: OrgId, who: Grantee) -> Read<Vec<PersonId>> {
        let db = self.db();
        match who {
            Grantee::Person(person) => Ok(people::of(db, org, person)?.map(|_| person).into_iter().collect()),
            Grantee::Group(group) => ids(db, MEMBERS, params![group.stored(), oid(db, org)?]),
            Grantee::Org => ids(db, OF_ORG, params![org.stored()]),
        }
    }

    fn sessions_of(&mut self, org: OrgId, owner: PersonId) -> Read<Vec<SessionId>> {
        let Some(owner) = people::of(self.db(), org, owner)? else { return Ok(Vec::new()) };
        // List by list: each is read by its index.
        let mut all = Vec::new();
        for list in view::LISTS {
            all.extend(ids::<SessionId>(self.db(), &owned_ids_sql(list), params![owner.pid])?);
        }
        Ok(all)
    }

    fn unfinished_of(&mut self, org: OrgId, person: PersonId) -> Read<Vec<SessionId>> {
        let Some(who) = self.who(org, person)? else { return Ok(Vec::new()) };
        ids(self.db(), UNFINISHED_OF, params![who.pid])
    }

    fn sessions_given(&mut self, org: OrgId, to: Grantee) -> Read<Vec<SessionId>> {
        row_changes::sessions_given(self.db(), org, to)
    }

    fn grow_standing(&mut self, org: OrgId, person: PersonId) -> Read<()> {
        let row = params![person.stored(), org.stored()];
        self.run("UPDATE persons SET standing = standing + 1 WHERE person = ?1 AND org = ?2", row)?;
        self.forget_people();
        Ok(())
    }

    fn recheck(&mut self, session: SessionId, person: PersonId, at: Moment) -> Read<()> {
        put_into_inbox(self, session, at, &InboxItem::Recheck { person }).map(drop)
    }

    fn write_people(&mut self, write: PeopleWrite) -> Read<()> {
        match write {
            PeopleWrite::Org { org, name, at } => people::put_org(self, org, &name, at),
            PeopleWrite::OrgName { org, name } => {
                let row = params![org.stored(), name, key_of(&name)];
                run(self, "UPDATE orgs SET name = ?2, name_key = ?3 WHERE org = ?1", row)
            }
            PeopleWrite::Settings { org, settings } => set_settings(self, org, &settings),
            PeopleWrite::Person { org, person, is_host, at } => {
                people::put_person(self, org, &person, is_host, at)
            }
            PeopleWrite::PersonFields { person, name, email, role } => run(
                self,
                "UPDATE persons SET name = coalesce(?2, name), email = coalesce(?3, email), role = coalesce(?4, role)
                 WHERE pid = ?1",
                params![pid(self, person)?, name, email, role.map(record::role_word)],
            ),
            PeopleWrite::Password { person, password } => {
                let row = params![pid(self, person)?, password];
                run(self, "UPDATE persons SET password = ?2 WHERE pid = ?1", row)
            }
            PeopleWrite::DisabledAt { person, at } => {
                self.forget_people();
                let row = params![pid(self, person)?, at.map(|at| int(at.0))];
                run(self, "UPDATE persons SET disabled_at = ?2 WHERE pid = ?1", row)
            }
            PeopleWrite::Identity { person, issuer, subject } => {
                let row = params![issuer, subject, pid(self, person)?];
                run(self, "INSERT OR REPLACE INTO identities (issuer, subject, pid) VALUES (?1, ?2, ?3)", row)
            }
            PeopleWrite::DropIdentity { person, issuer } => {
                let row = params![pid(self, person)?, issuer];
                run(self, "DELETE FROM identities WHERE pid = ?1 AND issuer = ?2", row)
            }
            PeopleWrite::Link { person, link, parent } => tokens::put_link(self, person, &link, parent),
            PeopleWrite::DropLinks(links) => drop_links(self, links),
            PeopleWrite::Token(token) => {
                let pid = pid(self, token.person)?;
                tokens::put_token(self, pid, &token)
            }
            PeopleWrite::Secret { token, hash, old_until, used } => run(
                self,
                "UPDATE tokens SET previous = hash, old_until = ?3, hash = ?2,
                    last_used = max(coalesce(last_used, 0), ?4) WHERE token = ?1",
                params![token.stored(), hash, int(old_until.0), int(used.0)],
            ),
            PeopleWrite::DropTokens(tokens) => drop_tokens(self, tokens),
            PeopleWrite::Group { org, group, name } => {
                let row = params![group.stored(), oid(self.db(), org)?, name];
                run(self, "INSERT INTO groups (id, oid, name) VALUES (?1, ?2, ?3)", row)
            }
            PeopleWrite::DropGroup { org, group } => {
                let number = gid(self, org, group)?;
                run(self, "DELETE FROM group_people WHERE gid = ?1", params![number])?;
                run(self, "DELETE FROM groups WHERE gid = ?1", params![number])
            }
            PeopleWrite::Member { group, person } => run(
                self,
                "INSERT OR IGNORE INTO group_people (gid, pid) SELECT gid, ?2 FROM groups WHERE id = ?1",
                params![group.stored(), pid(self, person)?],
            ),
            PeopleWrite::DropMember { group, person } => run(
                self,
                "DELETE FROM group_people WHERE gid = (SELECT gid FROM groups WHERE id = ?1) AND pid = ?2",
                params![group.stored(), pid(self, person)?],
            ),
            PeopleWrite::SessionGrant { session, to, grant, by, at } => {
                put_session_grant(self, session, to, grant, by, at)
            }
            PeopleWrite::DropSessionGrant { session, to } => drop_session_grant(self, session, to),
            PeopleWrite::CloseAgent { org, agent } => {
                let row = params![oid(self.db(), org)?, agent];
                run(self, "INSERT OR IGNORE INTO closed_agents (oid, agent) VALUES (?1, ?2)", row)
            }
            PeopleWrite::AgentGrant { org, agent, to, grant, by, at } => {
                let (kind, grantee) = grantee(to, org);
                let (oid, by, grant) = (oid(self.db(), org)?, pid(self, by)?, record::grant_word(grant));
                run(
                    self,
                    "INSERT OR REPLACE INTO agent_grants (oid, agent, kind, grantee, granted, by, since)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                    params![oid, agent, kind, grantee, grant, by, int(at.0)],
                )
            }
            PeopleWrite::DropAgentGrant { org, agent, to } => {
                let (kind, grantee) = grantee(to, org);
                run(
                    self,
                    "DELETE FROM agent_grants WHERE oid = ?1 AND agent = ?2 AND kind = ?3 AND grantee = ?4",
                    params![oid(self.db(), org)?, agent, kind, grantee],
                )
            }
            PeopleWrite::DropGrantsTo { org, to } => drop_grants_to(self, org, to),
            PeopleWrite::DropGrantsOn(session) => drop_grants_on(self, session),
            PeopleWrite::Owner { session, to } => set_owner(self, session, to),
            PeopleWrite::TellOwner { session, to, at } => {
                put_into_inbox(self, session, at, &InboxItem::HandOver { to }).map(drop)
            }
            PeopleWrite::Offer(offer) => {
                offers::put(self, &offer, pid(self, offer.from)?, pid(self, offer.to)?)
            }
            PeopleWrite::DropOffers(which) => offers::drop_those(self, which),
            PeopleWrite::Root { org, root: RootRow { directory, to } } => {
                people::put_root(self, org, to, &directory)
            }
            PeopleWrite::DropRoot { org, root: RootRow { directory, to } } => {
                let (kind, grantee) = grantee(to, org);
                run(
                    self,
                    "DELETE FROM roots WHERE oid = ?1 AND directory = ?2 AND kind = ?3 AND grantee = ?4",
                    params![oid(self.db(), org)?, directory, kind, grantee],
                )
            }
            PeopleWrite::DropRootsOf { org, to } => {
                let (kind, grantee) = grantee(to, org);
                let row = params![oid(self.db(), org)?, kind, grantee];
                run(self, "DELETE FROM roots WHERE oid = ?1 AND kind = ?2 AND grantee = ?3", row)
            }
            PeopleWrite::Rule { org, rule } => {
                let oid = known_oid(self, org)?;
                let kept = rule.session.map(|session| self.stored_session(session)).transpose()?.flatten();
                rules::add(self, org, oid, pid(self, rule.by)?, kept.map(|kept| kept.sid), &rule)
            }
            PeopleWrite::DropRule(rule) => rules::remove(self, rule),
            PeopleWrite::DropRulesOver { org, at } => {
                run(self, rules::CLEAR_RULES, params![oid(self.db(), org)?, int(at.0)])
            }
        }
    }

    fn change_row(&mut self, person: PersonId, session: SessionId) -> Read<()> {
        row_changes::put(self, person, session)
    }

    fn remember_change(&mut self, by: &Principal, key: &Key, now: Moment) -> Read<()> {
        let who = self.who_at_first_sight(by.org, by.person)?;
        put_key(self, who.pid, key, 0, now)
    }

    fn audit_done(&mut self, org: OrgId, person: PersonId, about: AuditSubject, trail: &Trail) -> Read<()> {
        let who = self.who_at_first_sight(org, person)?;
        self.done(who, &about, trail)
    }

    fn audit_refused(&mut self, entry: &AuditEntry) -> Read<()> {
        // Whoever was refused is known, so it is of their org.
        let hosts = entry.by.map_or(OrgId::from_bits(0), |(org, _)| org);
        self.write_down(&AuditRow::refused(entry, hosts))
    }
}

pub(crate) fn owned_ids_sql(list: &str) -> String {
    format!("SELECT s.id FROM sessions s WHERE s.owner = ?1 AND {list}")
}

fn exists(db: &Connection, sql: &str, params: &[&dyn ToSql]) -> Read<bool> {
    Ok(db.prepare_cached(sql)?.exists(params)?)
}

fn ids<T: Id>(db: &Connection, sql: &str, params: &[&dyn ToSql]) -> Read<Vec<T>> {
    view::read_all(db, sql, params, |row| Columns(row).id(0))
}

fn run(tx: &SqliteTx, sql: &str, params: &[&dyn ToSql]) -> Read<()> {
    tx.run(sql, params).map(drop)
}

fn pid_of(db: &Connection, person: PersonId) -> Read<Option<Pid>> {
    Ok(people::by_id(db, person)?.map(|somebody| somebody.pid))
}

fn pid(tx: &SqliteTx, person: PersonId) -> Read<Pid> {
    pid_of(tx.db(), person)?.ok_or_else(|| SqliteError::Damaged(format!("{person} is gone")))
}

fn known_oid(tx: &SqliteTx, org: OrgId) -> Read<Oid> {
    oid(tx.db(), org)?.ok_or_else(|| SqliteError::Damaged(format!("{org} is gone")))
}

fn gid(tx: &SqliteTx, org: OrgId, group: GroupId) -> Read<Option<i64>> {
    let mut query = tx.db().prepare_cached("SELECT gid FROM groups WHERE id = ?1 AND oid = ?2")?;
    let row = params![group.stored(), oid(tx.db(), org)?];
    Ok(query.query_row(row, |row| row.get(0)).optional()?)
}

fn set_settings(tx: &SqliteTx, org: OrgId, settings: &OrgSettings) -> Read<()> {
    let OrgSettings { share_new, open_max, awake_max } = *settings;
    run(
        tx,
        "UPDATE orgs SET share_new = ?2, open_max = ?3, awake_max = ?4 WHERE org = ?1",
        params![org.stored(), share_new.map(record::grant_word), open_max, awake_max],
    )
}

fn drop_tokens(tx: &SqliteTx, tokens: TokensToDrop) -> Read<()> {
    match tokens {
        TokensToDrop::One(token) => run(tx, "DELETE FROM tokens WHERE token = ?1", params![token.stored()]),
        TokensToDrop::Of(person) => run(tx, "DELETE FROM tokens WHERE pid = ?1", params![pid(tx, person)?]),
        TokensToDrop::SignInsOf { person, keep } => run(
            tx,
            "DELETE FROM tokens WHERE pid = ?1 AND purpose IN ('browser', 'cli') AND token IS NOT ?2",
            params![pid(tx, person)?, keep.map(Id::stored)],
        ),
        TokensToDrop::Purpose { person, purpose } => {
            run(tx, tokens::DROP_PURPOSE, params![pid(tx, person)?, record::purpose_word(purpose)])
        }
        TokensToDrop::TurnsOf(session) => run(tx, tokens::DROP_TURNS, params![session.stored()]),
        TokensToDrop::Expired(at) => run(tx, tokens::CLEAR_TOKENS, params![int(at.0)]),
    }
}

fn drop_links(tx: &SqliteTx, links: LinksToDrop) -> Read<()> {
    match links {
        LinksToDrop::One(hash) => run(tx, "DELETE FROM links WHERE hash = ?1", params![hash]),
        LinksToDrop::Of(person) => run(tx, "DELETE FROM links WHERE pid = ?1", params![pid(tx, person)?]),
        LinksToDrop::MadeWith(token) => run(tx, tokens::DROP_LINKS_MADE_WITH, params![token.stored()]),
        LinksToDrop::Expired(at) => run(tx, tokens::CLEAR_LINKS, params![int(at.0)]),
    }
}

fn put_session_grant(
    tx: &SqliteTx,
    session: SessionId,
    to: Grantee,
    grant: Grant,
    by: PersonId,
    at: Moment,
) -> Read<()> {
    let Some(kept) = tx.stored_session(session)? else { return Ok(()) };
    let (kind, grantee) = grantee(to, kept.org);
    run(
        tx,
        "INSERT OR REPLACE INTO grants (kind, grantee, sid, granted, by, since)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![kind, grantee, kept.sid, record::grant_word(grant), pid(tx, by)?, int(at.0)],
    )?;
    grow_revision(tx, &kept)
}

fn drop_session_grant(tx: &SqliteTx, session: SessionId, to: Grantee) -> Read<()> {
    let Some(kept) = tx.stored_session(session)? else { return Ok(()) };
    let (kind, grantee) = grantee(to, kept.org);
    let row = params![kind, grantee, kept.sid];
    run(tx, "DELETE FROM grants WHERE kind = ?1 AND grantee = ?2 AND sid = ?3", row)?;
    grow_revision(tx, &kept)
}

fn grow_revision(tx: &SqliteTx, kept: &StoredSession) -> Read<()> {
    run(tx, "UPDATE sessions SET revision = revision + 1 WHERE sid = ?1", params![kept.sid])
}

fn drop_grants_to(tx: &SqliteTx, org: OrgId, to: Grantee) -> Read<()> {
    let (kind, bits) = grantee(to, org);
    run(
        tx,
        "UPDATE sessions SET revision = revision + 1
         WHERE sid IN (SELECT sid FROM grants WHERE kind = ?1 AND grantee = ?2)",
        params![kind, bits],
    )?;
    run(tx, "DELETE FROM grants WHERE kind = ?1 AND grantee = ?2", params![kind, bits])?;
    let row = params![oid(tx.db(), org)?, kind, bits];
    run(tx, "DELETE FROM agent_grants WHERE oid = ?1 AND kind = ?2 AND grantee = ?3", row)
}

fn drop_grants_on(tx: &SqliteTx, session: SessionId) -> Read<()> {
    let Some(kept) = tx.stored_session(session)? else { return Ok(()) };
    run(tx, "DELETE FROM grants WHERE sid = ?1", params![kept.sid])?;
    grow_revision(tx, &kept)
}

fn set_owner(tx: &SqliteTx, session: SessionId, to: PersonId) -> Read<()> {
    let Some(kept) = tx.stored_session(session)? else { return Ok(()) };
    let heir = pid(tx, to)?;
    let row = params![kept.sid, heir];
    run(tx, "UPDATE sessions SET owner = ?2, revision = revision + 1 WHERE sid = ?1", row)?;
    // An address of somebody's own stays theirs, and means this session no more.
    run(tx, "DELETE FROM bindings WHERE sid = ?1 AND until IS NULL AND whose <> 0", params![kept.sid])?;
    run(tx, "UPDATE bindings SET owner = ?2 WHERE sid = ?1 AND until IS NULL", row)?;
    run(tx, "UPDATE approvals SET owner = ?2 WHERE sid = ?1", row)?;
    run(tx, "UPDATE usage SET owner = ?2 WHERE sid = ?1", row)?;
    for (pid, bytes) in [(kept.owner, -kept.words_bytes), (heir, kept.words_bytes)] {
        let row = params![pid, bytes];
        run(tx, "UPDATE persons SET words_bytes = words_bytes + ?2 WHERE pid = ?1", row)?;
    }
    if kept.ended.is_none() {
        run(tx, "UPDATE persons SET opened = opened - 1 WHERE pid = ?1", params![kept.owner])?;
        run(tx, "UPDATE persons SET opened = opened + 1 WHERE pid = ?1", params![heir])?;
    }
    Ok(())
}
