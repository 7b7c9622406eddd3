//! The rows of lists that a change of who may do what makes others of, although no fact says so: for whom, and of which sessions.
//!
//! They are noted person by person, so that whoever could see a session hears that it is gone, and nobody hears of one that they
//! never saw. There are as many as the change itself takes rights from or gives rights to.

use crate::change::PeopleTx;
use kernel::people::PeopleWrite;
use kernel::{Grantee, OrgId, PersonId, Record, SessionId};
use std::collections::BTreeSet;

/// Whose row of which session is another one after these writes. Asked before they are made.
pub(crate) fn rows_changed<X: PeopleTx>(
    tx: &mut X,
    org: OrgId,
    writes: &[PeopleWrite],
) -> Result<BTreeSet<(PersonId, SessionId)>, X::Error> {
    let mut changed = BTreeSet::new();
    for write in writes {
        match write {
            PeopleWrite::SessionGrant { session, to, .. } => {
                changed.extend(of_sessions(tx, org, *to, &[*session])?);
            }
            PeopleWrite::DropSessionGrant { session, to } if has_grant(tx, *session, *to)? => {
                changed.extend(of_sessions(tx, org, *to, &[*session])?);
            }
            PeopleWrite::DropGrantsOn(session) => {
                for (to, _) in record_of(tx, *session)?.map_or_else(Vec::new, |record| record.grants) {
                    changed.extend(of_sessions(tx, org, to, &[*session])?);
                }
            }
            PeopleWrite::Owner { session, to } => {
                let before = record_of(tx, *session)?.map(|record| record.owner);
                changed.extend(before.into_iter().chain([*to]).map(|person| (person, *session)));
            }
            PeopleWrite::DropGrantsTo { org, to } => {
                let sessions = tx.sessions_given(*org, *to)?;
                changed.extend(of_sessions(tx, *org, *to, &sessions)?);
            }
            PeopleWrite::Member { group, person } => {
                changed.extend(of_group(tx, org, Grantee::Group(*group), *person)?);
            }
            PeopleWrite::DropMember { group, person } => {
                let group = Grantee::Group(*group);
                // Who was not in it loses nothing, and hears nothing of what it was given.
                if tx.people_of(org, group)?.contains(person) {
                    changed.extend(of_group(tx, org, group, *person)?);
                }
            }
            // Nothing else says who sees what: whoever is disabled has no credential to look with.
            _ => {}
        }
    }
    Ok(changed)
}

fn of_sessions<X: PeopleTx>(
    tx: &mut X,
    org: OrgId,
    to: Grantee,
    sessions: &[SessionId],
) -> Result<Vec<(PersonId, SessionId)>, X::Error> {
    let people = tx.people_of(org, to)?;
    Ok(people.iter().flat_map(|person| sessions.iter().map(|session| (*person, *session))).collect())
}

fn of_group<X: PeopleTx>(
    tx: &mut X,
    org: OrgId,
    group: Grantee,
    person: PersonId,
) -> Result<Vec<(PersonId, SessionId)>, X::Error> {
    Ok(tx.sessions_given(org, group)?.into_iter().map(|session| (person, session)).collect())
}

fn has_grant<X: PeopleTx>(tx: &mut X, session: SessionId, to: Grantee) -> Result<bool, X::Error> {
    Ok(record_of(tx, session)?.is_some_and(|record| record.grants.iter().any(|(other, _)| *other == to)))
}

fn record_of<X: PeopleTx>(tx: &mut X, session: SessionId) -> Result<Option<Record>, X::Error> {
    Ok(tx.session_state(session)?.map(|state| state.record))
}
