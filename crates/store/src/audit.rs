//! Audit entries and queries for them: made here for every store, so that they all say the same.

use crate::{Append, AuditEntry, Trail};
use kernel::{MessageId, Moment, OrgId, PersonId, Request, SessionId, Subject};
use std::collections::BTreeSet;
use std::fmt;

/// The subject of an audit entry: a session, and the ids or names of what else, with spaces between them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditSubject {
    pub session: Option<SessionId>,
    pub subject: Option<String>,
}

impl AuditSubject {
    /// A session and nothing else.
    pub fn session(session: SessionId) -> Self {
        Self { session: Some(session), subject: None }
    }

    /// The subject of a request to this session.
    pub fn request(session: SessionId, request: &Request) -> Self {
        match request.subject() {
            Subject::Session(_) => match request {
                Request::Chore { chore, .. } => {
                    Self::session(session).and(Some(chore.name()).filter(|name| !name.is_empty()))
                }
                _ => Self::session(session),
            },
            subject @ (Subject::Message(_) | Subject::Approval(_)) => {
                Self::session(session).and(Some(subject))
            }
        }
    }

    /// Something that has this id or name.
    pub fn named(subject: impl fmt::Display) -> Self {
        let subject = subject.to_string();
        match subject.parse() {
            Ok(session) => Self::session(session),
            Err(_) => Self { session: None, subject: Some(subject) },
        }
    }

    /// And something else, too.
    #[must_use]
    pub fn and(self, subject: Option<impl fmt::Display>) -> Self {
        Self { subject: subject.map(|subject| subject.to_string()).or(self.subject), ..self }
    }
}

/// The choice of audit entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditQuery {
    pub org: OrgId,
    /// At this moment or later.
    pub since: Option<Moment>,
    /// Before this moment.
    pub until: Option<Moment>,
    pub who: Option<PersonId>,
    /// A verb.
    pub what: Option<String>,
    /// Anything it may have been about: the session's id, or one of the ids and names in its subject.
    pub subject: Option<String>,
    /// Continue before this entry of the page before.
    pub before: Option<u64>,
    pub limit: usize,
}

/// Something that somebody did, or was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRow {
    /// Its number in its org, which counts its own.
    pub entry: u64,
    /// Its number in the org's chain, and its seal; none until it is sealed.
    pub sealed: Option<(u64, [u8; 32])>,
    pub at: Moment,
    pub org: OrgId,
    pub by: Option<PersonId>,
    pub verb: String,
    pub door: String,
    pub address: Option<String>,
    pub correlation: String,
    pub session: Option<SessionId>,
    /// The ids or names of what else it was about, with spaces between them.
    pub subject: Option<String>,
    /// A stable code; none if it was done.
    pub refused: Option<String>,
}

/// The columns by which a sealed entry is found. A backend may keep them beside the entry; an entry that is not found by them
/// is hidden from whoever asks for a part of the audit, so they are verified with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditKeys {
    /// The latest moment in the chain up to here.
    pub at: Moment,
    pub by: Option<PersonId>,
    pub verb: String,
    /// The session's id, the subject, and each word of it.
    pub about: BTreeSet<String>,
}

impl AuditKeys {
    /// Those of an entry, of which no entry before it in the chain is later than this.
    pub fn of(row: &AuditRow, latest: Moment) -> Self {
        let session = row.session.map(|session| session.to_string());
        let subject = row.subject.iter().flat_map(|subject| subject.split(' ').chain([subject.as_str()]));
        let about = session.into_iter().chain(subject.map(str::to_owned)).collect();
        Self { at: latest.max(row.at), by: row.by, verb: row.verb.clone(), about }
    }
}

impl AuditRow {
    /// That somebody did something; `entry` is for the store to say.
    pub fn done(org: OrgId, by: PersonId, about: AuditSubject, trail: &Trail) -> Self {
        Self {
            entry: 0,
            sealed: None,
            at: trail.at,
            org,
            by: Some(by),
            verb: trail.verb.into(),
            door: trail.door.into(),
            address: trail.address.map(|address| address.to_string()),
            correlation: trail.correlation.clone(),
            session: about.session,
            subject: about.subject,
            refused: None,
        }
    }

    /// That something was refused. What nobody known did is kept by the org of the machine's person.
    pub fn refused(entry: &AuditEntry, hosts: OrgId) -> Self {
        let about = entry.subject.as_ref().map(AuditSubject::named).unwrap_or_default();
        let (org, by) = entry.by.map_or((hosts, None), |(org, person)| (org, Some(person)));
        let done = Self::done(org, PersonId::ENGINE, about, &entry.trail);
        Self { by, refused: Some(entry.refused.into()), ..done }
    }

    /// The acts of the engine itself in this append.
    pub fn own_acts(org: OrgId, append: &Append) -> impl Iterator<Item = Self> {
        let at = append.facts.last().map_or(Moment(0), |fact| fact.at);
        let session = append.session;
        append.own_acts.iter().map(move |(verb, message): &(&'static str, Option<MessageId>)| {
            let (door, correlation) = ("engine", session.to_string());
            let trail = Trail { verb, door, correlation, address: None, at };
            Self::done(org, PersonId::ENGINE, AuditSubject::session(session).and(*message), &trail)
        })
    }

    /// True if it is one of those that are wanted.
    pub fn fits(&self, query: &AuditQuery) -> bool {
        let named = |subject: &String| {
            let is_session = self.session.is_some_and(|session| session.to_string() == *subject);
            let words = self.subject.iter().flat_map(|subject| subject.split(' '));
            is_session
                || self.subject.as_ref() == Some(subject)
                || words.into_iter().any(|word| word == subject)
        };
        self.org == query.org
            && query.since.is_none_or(|since| self.at >= since)
            && query.until.is_none_or(|until| self.at < until)
            && query.who.is_none_or(|who| self.by == Some(who))
            && query.what.as_ref().is_none_or(|what| self.verb == *what)
            && query.subject.as_ref().is_none_or(named)
            && query.before.is_none_or(|before| self.entry < before)
    }
}
