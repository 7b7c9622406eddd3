//! A change of who may do what, and what lets somebody in: read, plan, write, in the transaction of a backend.
//!
//! A backend is a `PeopleTx`: it reads the rows that it is asked for and writes the ones that it is given, and knows no rule.
//! Which rows, in which order they are asked about, and what follows from them is here and in `kernel::people`.

use crate::people::{LoginRow, NewChange, SignedIn};
use crate::row_changes::rows_changed;
use crate::{AuditEntry, AuditSubject, Key, Trail, WriteOutcome};
use kernel::people::{
    self, ChangeRows, CredentialState, HeirRoom, HostState, LinkState, NewOrg, NewToken, OfferRow,
    OwnCredential, PeopleChange, PeoplePlan, PeopleRefusal, PeopleWrite, PersonState, RuleState,
    SessionState, TokenHolder, TokenRow, Touched,
};
use kernel::{Grantee, GroupId, Moment, OrgId, PersonId, Principal, RuleId, SessionId, TokenId};
use std::collections::BTreeSet;

/// The use that was made of the key of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyUse {
    /// Nothing, or it is forgotten.
    Never,
    /// This very change.
    Repeated,
    /// Something else.
    Conflict,
}

/// A transaction of a backend, as far as people are concerned. All rows are of the org that is named, or they are not there.
pub trait PeopleTx {
    type Error;

    // Who asks.

    /// True if there is such an org.
    fn has_org(&mut self, org: OrgId) -> Result<bool, Self::Error>;
    /// A credential, with what decides whether it lets its person in.
    fn credential(&mut self, token: TokenId) -> Result<Option<(TokenRow, CredentialState)>, Self::Error>;
    /// The principal of somebody, as if they had no credential.
    fn principal_of(&mut self, person: PersonId) -> Result<Option<Principal>, Self::Error>;
    /// The use of a key of this person's.
    fn key_use(&mut self, by: &Principal, key: &Key, now: Moment) -> Result<KeyUse, Self::Error>;

    // The rows that a change is judged by.

    fn person_state(&mut self, org: OrgId, person: PersonId) -> Result<Option<PersonState>, Self::Error>;
    fn has_group(&mut self, org: OrgId, group: GroupId) -> Result<bool, Self::Error>;
    fn session_state(&mut self, session: SessionId) -> Result<Option<SessionState>, Self::Error>;
    /// The sessions and words that somebody has.
    fn heir_room(&mut self, org: OrgId, person: PersonId) -> Result<HeirRoom, Self::Error>;
    /// The offer of a session that was made last and is not gone.
    fn offer(&mut self, session: SessionId) -> Result<Option<OfferRow>, Self::Error>;
    fn rule_state(&mut self, org: OrgId, rule: RuleId) -> Result<Option<RuleState>, Self::Error>;
    /// The number of the org's rules whose time is not over.
    fn rules_in_force(&mut self, org: OrgId, now: Moment) -> Result<u32, Self::Error>;
    fn token_holder(&mut self, org: OrgId, token: TokenId) -> Result<Option<TokenHolder>, Self::Error>;
    /// Every credential of somebody, in any order.
    fn tokens_of(&mut self, person: PersonId) -> Result<Vec<TokenId>, Self::Error>;
    /// The tokens that were made with this one, in the order of their ids; not those that were made with these.
    fn made_with(&mut self, token: TokenId) -> Result<Vec<TokenId>, Self::Error>;
    /// The number of owners who can come in.
    fn active_owners(&mut self, org: OrgId) -> Result<u32, Self::Error>;
    /// True if an org of this machine has this name; as `name_key` makes it.
    fn has_org_named(&mut self, key: &str) -> Result<bool, Self::Error>;
    fn has_group_named(&mut self, org: OrgId, name: &str) -> Result<bool, Self::Error>;
    /// True if somebody has this handle; as `name_key` makes it.
    fn has_handle(&mut self, org: OrgId, key: &str) -> Result<bool, Self::Error>;
    /// The holder of this e-mail address; as `name_key` makes it.
    fn email_holder(&mut self, org: OrgId, key: &str) -> Result<Option<PersonId>, Self::Error>;
    /// The holder of this name at this identity provider, of whichever org.
    fn identity_holder(&mut self, issuer: &str, subject: &str) -> Result<Option<PersonId>, Self::Error>;
    /// The name that somebody has at this identity provider.
    fn subject_at(&mut self, person: PersonId, issuer: &str) -> Result<Option<String>, Self::Error>;

    // What lets somebody in.

    /// The machine's person.
    fn host_state(&mut self) -> Result<Option<HostState>, Self::Error>;
    /// A link, and whoever it would let in.
    fn link_state(&mut self, hash: [u8; 32]) -> Result<Option<(LinkState, LoginRow)>, Self::Error>;

    // Whom a plan touches.

    /// Everybody of the org who is meant by this.
    fn people_of(&mut self, org: OrgId, who: Grantee) -> Result<Vec<PersonId>, Self::Error>;
    /// Every session of theirs, open or ended.
    fn sessions_of(&mut self, org: OrgId, owner: PersonId) -> Result<Vec<SessionId>, Self::Error>;
    /// The sessions in which they have something unfinished.
    fn unfinished_of(&mut self, org: OrgId, person: PersonId) -> Result<Vec<SessionId>, Self::Error>;
    /// The sessions on which this one was given something.
    fn sessions_given(&mut self, org: OrgId, to: Grantee) -> Result<Vec<SessionId>, Self::Error>;
    fn grow_standing(&mut self, org: OrgId, person: PersonId) -> Result<(), Self::Error>;
    /// Puts a recheck of this person into a session's inbox.
    fn recheck(&mut self, session: SessionId, person: PersonId, at: Moment) -> Result<(), Self::Error>;

    // What is written.

    fn write_people(&mut self, write: PeopleWrite) -> Result<(), Self::Error>;
    /// Writes down that the row of this session is another one for this person from now on.
    fn change_row(&mut self, person: PersonId, session: SessionId) -> Result<(), Self::Error>;
    /// Remembers that a change was made under a key.
    fn remember_change(&mut self, by: &Principal, key: &Key, now: Moment) -> Result<(), Self::Error>;
    /// Writes down that somebody did something.
    fn audit_done(
        &mut self,
        org: OrgId,
        person: PersonId,
        about: AuditSubject,
        trail: &Trail,
    ) -> Result<(), Self::Error>;
    /// Writes down that something was refused.
    fn audit_refused(&mut self, entry: &AuditEntry) -> Result<(), Self::Error>;
}

/// Changes who may do what. The right of the credential is asked about before anything is looked up, then the answer for its
/// key, then the rows. A refusal is in the audit.
pub fn change<X: PeopleTx>(
    tx: &mut X,
    by: &Principal,
    new: NewChange,
) -> Result<WriteOutcome<(), PeopleRefusal>, X::Error> {
    let NewChange { change, key, trail } = new;
    let now = match caller(tx, by, trail.at)? {
        Some(now) => now,
        None => return refused(tx, by, &change, trail, PeopleRefusal::Unauthenticated),
    };
    if let Err(why) = people::may_ask(&now, &change) {
        return refused(tx, &now, &change, trail, why);
    }
    let used = key.as_ref().map_or(Ok(KeyUse::Never), |key| tx.key_use(&now, key, trail.at))?;
    // Whoever repeats a change gets its answer of then, whatever has happened since.
    if used == KeyUse::Repeated {
        return Ok(WriteOutcome::Repeated(()));
    }
    let rows = read(tx, &now, &change, trail.at)?;
    // That a key was used for something else is told only to whoever may do this: to others it does not exist.
    if used == KeyUse::Conflict && people::may_change(&now, &change, &rows).is_ok() {
        note_refusal(tx, &now, &change, trail, "idempotency_conflict")?;
        return Ok(WriteOutcome::Conflict);
    }
    match people::plan_change(&now, &change, &rows, trail.at) {
        Err(why) => refused(tx, &now, &change, trail, why),
        Ok(plan) => {
            let taken_along = plan.taken_along().to_vec();
            apply(tx, now.org, plan, trail.at)?;
            if let Some(key) = &key {
                tx.remember_change(&now, key, trail.at)?;
            }
            tx.audit_done(now.org, now.person, crate::about_change(&change), &trail)?;
            for token in taken_along {
                tx.audit_done(now.org, now.person, crate::about_taken_along(token, &change), &trail)?;
            }
            Ok(WriteOutcome::Done(()))
        }
    }
}

/// Whoever asks, as they are in this transaction; none if they cannot come in any more.
pub fn caller<X: PeopleTx>(tx: &mut X, by: &Principal, now: Moment) -> Result<Option<Principal>, X::Error> {
    if by.person == PersonId::ENGINE {
        // Homing itself is always as it was.
        return Ok(tx.has_org(by.org)?.then(|| by.clone()));
    }
    let Some(token) = by.credential else {
        let Some(person) = tx.person_state(by.org, by.person)? else { return Ok(None) };
        // A part of Homing that acts for them, within what it was given.
        let within = |now: Principal| Principal {
            rights: by.rights,
            client: by.client.clone(),
            bound: by.bound,
            ..now
        };
        let now = if person.is_disabled() { None } else { tx.principal_of(by.person)? };
        return Ok(now.map(within));
    };
    let Some((row, state)) = tx.credential(token)? else { return Ok(None) };
    if row.person != by.person || !people::lets_in(&row, state, now) {
        return Ok(None);
    }
    let person = tx.principal_of(by.person)?.filter(|person| person.org == by.org);
    Ok(person.map(|person| row.of(person)))
}

/// The rows that `reads_of` names.
fn read<X: PeopleTx>(
    tx: &mut X,
    by: &Principal,
    change: &PeopleChange,
    now: Moment,
) -> Result<ChangeRows, X::Error> {
    let (org, reads) = (by.org, people::reads_of(change));
    let mut rows = ChangeRows::default();
    if let Some(person) = reads.person {
        rows.person = tx.person_state(org, person)?;
    }
    if let Some(heir) = reads.heir {
        rows.heir = tx.person_state(org, heir)?;
    }
    if let Some(grantee) = reads.grantee {
        rows.grantee = is_there(tx, org, grantee)?;
    }
    if let Some(group) = reads.group {
        rows.group = tx.has_group(org, group)?;
    }
    if let Some(rule) = reads.rule {
        rows.rule = tx.rule_state(org, rule)?;
    }
    let ruled = rows.rule.and_then(|rule| rule.session);
    if let Some(session) = reads.session.or(ruled) {
        rows.session = tx.session_state(session)?;
    }
    if let Some(session) = reads.offer {
        rows.offer = tx.offer(session)?;
    }
    if reads.heir_room {
        rows.heir_room = tx.heir_room(org, by.person)?;
    }
    if let Some(owner) = reads.owner {
        rows.owned = owned_by(tx, org, owner)?;
    }
    if reads.rules {
        rows.rules = tx.rules_in_force(org, now)?;
    }
    if let Some(token) = reads.token {
        rows.token = tx.token_holder(org, token)?;
        rows.made_with = all_made_with(tx, &[token])?;
    }
    // Of somebody who is not of the org there are none.
    if let Some(person) = reads.tokens_of.filter(|_| rows.person.is_some()) {
        rows.tokens = tx.tokens_of(person)?;
        rows.tokens.sort_unstable();
        rows.made_with = all_made_with(tx, &rows.tokens)?;
        rows.made_with.retain(|token| !rows.tokens.contains(token));
    }
    if reads.own_credential
        && let Some(token) = by.credential
    {
        rows.own_credential = own_credential(tx, token)?;
    }
    if reads.owners {
        rows.owners = tx.active_owners(org)?;
    }
    if let Some(name) = &reads.org_name {
        rows.org_name = tx.has_org_named(name)?;
    }
    if let Some(name) = reads.group_name {
        rows.group_name = tx.has_group_named(org, name)?;
    }
    for handle in &reads.handles {
        rows.handles.push(tx.has_handle(org, handle)?);
    }
    if let Some(email) = &reads.email {
        rows.email = tx.email_holder(org, email)?;
    }
    if let Some((issuer, subject)) = reads.identity {
        rows.identity = tx.identity_holder(issuer, subject)?;
        rows.subject = reads.person.map_or(Ok(None), |person| tx.subject_at(person, issuer))?;
    }
    Ok(rows)
}

/// Every session of somebody, with its offer.
fn owned_by<X: PeopleTx>(
    tx: &mut X,
    org: OrgId,
    owner: PersonId,
) -> Result<Vec<(SessionState, Option<OfferRow>)>, X::Error> {
    let mut owned = Vec::new();
    for session in tx.sessions_of(org, owner)? {
        if let Some(state) = tx.session_state(session)? {
            owned.push((state, tx.offer(session)?));
        }
    }
    Ok(owned)
}

fn own_credential<X: PeopleTx>(tx: &mut X, token: TokenId) -> Result<Option<OwnCredential>, X::Error> {
    let own = |(row, _): (TokenRow, CredentialState)| {
        let TokenRow { token, purpose, expires, parent, .. } = row;
        OwnCredential { token, purpose, expires, parent }
    };
    Ok(tx.credential(token)?.map(own))
}

/// Every token that goes with these. There is no circle in it: each was made with one that was there before.
fn all_made_with<X: PeopleTx>(tx: &mut X, tokens: &[TokenId]) -> Result<Vec<TokenId>, X::Error> {
    let mut all = Vec::new();
    for token in tokens {
        all.extend(tx.made_with(*token)?);
    }
    let mut next = 0;
    while let Some(token) = all.get(next).copied() {
        all.extend(tx.made_with(token)?);
        next += 1;
    }
    Ok(all)
}

fn is_there<X: PeopleTx>(tx: &mut X, org: OrgId, who: Grantee) -> Result<bool, X::Error> {
    match who {
        Grantee::Person(person) => Ok(tx.person_state(org, person)?.is_some()),
        Grantee::Group(group) => tx.has_group(org, group),
        Grantee::Org => Ok(true),
    }
}

fn apply<X: PeopleTx>(tx: &mut X, org: OrgId, plan: PeoplePlan, at: Moment) -> Result<(), X::Error> {
    if let Some(touched) = plan.touched() {
        touch(tx, org, touched, at)?;
    }
    // Whoever loses something is looked up while they still have it.
    let changed = rows_changed(tx, org, plan.writes())?;
    write_all(tx, plan.into_writes())?;
    changed.into_iter().try_for_each(|(person, session)| tx.change_row(person, session))
}

fn write_all<X: PeopleTx>(tx: &mut X, writes: Vec<PeopleWrite>) -> Result<(), X::Error> {
    writes.into_iter().try_for_each(|write| tx.write_people(write))
}

/// Standings grow, and whatever those people have said that is not finished is looked at again.
pub(crate) fn touch<X: PeopleTx>(
    tx: &mut X,
    org: OrgId,
    touched: &Touched,
    at: Moment,
) -> Result<(), X::Error> {
    let mut people = BTreeSet::new();
    for who in &touched.people {
        people.extend(tx.people_of(org, *who)?);
    }
    for person in people {
        if touched.within.is_none() {
            tx.grow_standing(org, person)?;
        }
        for session in tx.unfinished_of(org, person)? {
            if touched.within.is_none_or(|within| within == session) {
                tx.recheck(session, person, at)?;
            }
        }
    }
    Ok(())
}

fn refused<X: PeopleTx>(
    tx: &mut X,
    by: &Principal,
    change: &PeopleChange,
    trail: Trail,
    why: PeopleRefusal,
) -> Result<WriteOutcome<(), PeopleRefusal>, X::Error> {
    note_refusal(tx, by, change, trail, why.code())?;
    Ok(WriteOutcome::Refused(why))
}

fn note_refusal<X: PeopleTx>(
    tx: &mut X,
    by: &Principal,
    change: &PeopleChange,
    trail: Trail,
    refused: &'static str,
) -> Result<(), X::Error> {
    let about = crate::about_change(change);
    let subject = match change {
        // Its id was minted for it, and names nobody.
        PeopleChange::AddPerson { .. } | PeopleChange::MakeOrg { .. } => None,
        _ => about.session.map(|session| session.to_string()).or(about.subject),
    };
    tx.audit_refused(&AuditEntry { by: Some((by.org, by.person)), subject, trail, refused })
}

/// The machine's person: the one who is stored, or this one if there is none yet.
pub fn host<X: PeopleTx>(tx: &mut X, fresh: NewOrg, at: Moment) -> Result<Option<Principal>, X::Error> {
    let known = tx.host_state()?;
    let (host, writes) = people::make_host(known, fresh, at);
    write_all(tx, writes)?;
    tx.principal_of(host)
}

/// A credential that nobody wished for. `org` is its person's; none if they are not there.
pub fn add_token<X: PeopleTx>(tx: &mut X, token: TokenRow) -> Result<(), X::Error> {
    let is_there = tx.principal_of(token.person)?.is_some();
    write_all(tx, people::add_token(token, is_there))
}

/// Another secret for a credential. Answers whether it was there.
pub fn rotate_token<X: PeopleTx>(
    tx: &mut X,
    token: TokenId,
    hash: [u8; 32],
    now: Moment,
    old_until: Moment,
) -> Result<bool, X::Error> {
    let Some((row, state)) = tx.credential(token)? else { return Ok(false) };
    let write = people::rotate_token(&row, state.last_used, hash, now, old_until);
    let is_there = write.is_some();
    write_all(tx, write.into_iter().collect())?;
    Ok(is_there)
}

/// Lets somebody in who has proved who they are. Answers whether they are as they were seen.
pub fn sign_in<X: PeopleTx>(tx: &mut X, sign_in: SignedIn) -> Result<bool, X::Error> {
    let SignedIn { standing, token, org, trail } = sign_in;
    let (id, person) = (token.token, token.person);
    let who = tx.person_state(org, person)?;
    let Some(writes) = people::come_in(who, standing, token) else { return Ok(false) };
    write_all(tx, writes)?;
    tx.audit_done(org, person, AuditSubject::default().and(Some(id)), &trail)?;
    Ok(true)
}

/// Spends a link, and lets in whose it is if there is a credential for them.
pub fn spend_link<X: PeopleTx>(
    tx: &mut X,
    hash: [u8; 32],
    token: Option<NewToken>,
    trail: &Trail,
) -> Result<Option<LoginRow>, X::Error> {
    let Some((link, login)) = tx.link_state(hash)? else { return Ok(None) };
    let about = AuditSubject::default().and(token.as_ref().map(|token| token.token));
    let maker = link.parent.map_or(Ok(None), |token| own_credential(tx, token))?;
    let Some(writes) = people::spend_link(link, hash, token, maker, trail.at) else { return Ok(None) };
    write_all(tx, writes)?;
    tx.audit_done(login.org, login.person, about, trail)?;
    Ok(Some(login))
}
