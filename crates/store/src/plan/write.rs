//! The rows that plans write, as data: a backend that is far away can send all of them at once.

use crate::{
    Accepted, AuditSubject, InboxItem, Key, Marks, NewAttachment, NewSession, Outgoing, Past, Resolved, Trail,
};
use bytes::Bytes;
use kernel::{
    Address, Delivery, DoorAddress, Epoch, Grant, Moment, NewWorktree, OrgId, Origin, PersonId, Principal,
    Request, RequestId, Scheme, Scope, SessionId, address_space,
};

/// One of the rows that a plan writes, with those that cannot be without it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// A session, counted among the open ones of its owner and of the org.
    Session(Box<SessionWrite>),
    /// A binding of a conversation that has none.
    /// `whose` has the address for themselves; none is everybody.
    Bind {
        org: OrgId,
        address: Address,
        whose: Option<PersonId>,
        session: SessionId,
        owner: PersonId,
        at: Moment,
    },
    /// Another session for a conversation. The one that it has is its past from here on, and each session is in its past or
    /// present once.
    Rebind {
        org: OrgId,
        address: Address,
        whose: Option<PersonId>,
        session: SessionId,
        owner: PersonId,
        at: Moment,
    },
    /// A message with its words, its row in the inbox, and its place among the unfinished ones of its session.
    Message(Box<MessageWrite>),
    /// A request with its row in the inbox. An edit's words are kept apart under its id.
    Request(Box<RequestWrite>),
    /// Anything else for the keeper.
    Inbox { session: SessionId, at: Moment, item: Box<InboxItem> },
    /// A conversation that was had elsewhere: its messages, then the log that tells of them.
    Past { session: SessionId, org: OrgId, by: PersonId, past: Box<Past>, at: Moment },
    /// The title that a person gives a session, or takes away with an empty one, and whether lists show it; none leaves it as
    /// it is.
    Title { session: SessionId, title: Option<String>, archived: Option<bool> },
    /// The marks that somebody has put on a session for themselves, in place of those that they had.
    Marks { org: OrgId, person: PersonId, session: SessionId, marks: Marks },
    /// The session's row in this person's lists is another one from here on, and in nobody else's.
    OwnRow { person: PersonId, session: SessionId },
    /// A reply, as it stands from here on.
    Outgoing(Box<Outgoing>),
    /// A reply that is not sent any more.
    NoOutgoing { outgoing: u64 },
    /// The use of a key. One that has expired makes room for it.
    Key { org: OrgId, person: PersonId, key: Key, made: u128, at: Moment },
    /// An entry of the audit.
    Audit(AuditWrite),
}

/// A session to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionWrite {
    pub session: SessionId,
    pub org: OrgId,
    pub owner: PersonId,
    pub scope: Scope,
    pub origin: Option<Origin>,
    pub enter: Option<NewWorktree>,
    pub title: Option<String>,
    /// Messages of its past, which its log will end.
    pub pending: u32,
    /// The grant of everybody in the org on it.
    pub shared: Option<Grant>,
    pub at: Moment,
}

/// A message to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageWrite {
    pub accepted: Accepted,
    pub org: OrgId,
    pub by: PersonId,
    pub words: Bytes,
    pub attachments: Vec<NewAttachment>,
    /// The title that the session has from these words on.
    pub opening: Option<String>,
    pub delivery: Delivery,
    pub under: Option<Epoch>,
    pub unattended: bool,
    pub door: &'static str,
    pub reply: Option<Address>,
}

/// A request to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestWrite {
    pub id: RequestId,
    pub session: SessionId,
    pub at: Moment,
    pub by: PersonId,
    pub request: Request,
    pub resolved: Resolved,
    pub words: Option<Bytes>,
    /// None if those that are there stay.
    pub attachments: Option<Vec<NewAttachment>>,
    pub opening: Option<String>,
}

/// An entry of the audit to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditWrite {
    pub org: OrgId,
    pub by: PersonId,
    pub about: AuditSubject,
    pub trail: Trail,
    /// A stable code; none if it was done.
    pub refused: Option<&'static str>,
}

impl AuditWrite {
    /// That somebody did something.
    pub fn done(by: &Principal, about: AuditSubject, trail: Trail) -> Self {
        Self { org: by.org, by: by.person, about, trail, refused: None }
    }

    /// That they were refused it.
    pub fn refused(by: &Principal, about: AuditSubject, trail: Trail, code: &'static str) -> Self {
        Self { refused: Some(code), ..Self::done(by, about, trail) }
    }
}

impl Write {
    /// The row of a key, if there is one.
    pub(super) fn key(by: &Principal, key: Option<Key>, made: u128, at: Moment) -> Option<Self> {
        key.map(|key| Self::Key { org: by.org, person: by.person, key, made, at })
    }

    /// The same for a conversation that has a session: its binding becomes the past.
    pub(super) fn taking_over(self) -> Self {
        match self {
            Self::Bind { org, address, whose, session, owner, at } => {
                Self::Rebind { org, address, whose, session, owner, at }
            }
            other => other,
        }
    }

    /// The rows of a new session: itself, and its binding.
    pub(super) fn session(
        by: &Principal,
        fresh: NewSession,
        schemes: &[Scheme],
        pending: u32,
        shared: Option<Grant>,
        at: Moment,
    ) -> impl Iterator<Item = Self> + use<> {
        let NewSession { session, scope, origin, enter, title, bind, .. } = fresh;
        let (org, owner) = (by.org, by.person);
        let bind = bind.map(|address| {
            let whose = address_space(by, DoorAddress { address: &address, schemes });
            Self::Bind { org, address, whose, session, owner, at }
        });
        let row = SessionWrite { session, org, owner, scope, origin, enter, title, pending, shared, at };
        [Self::Session(Box::new(row))].into_iter().chain(bind)
    }
}
