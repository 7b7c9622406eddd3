//! The session that a message belongs to. Decided here, once; nothing after it may decide again.
//!
//! Whoever sends says one of three things (a new session may take over a conversation), and there is no fourth and no default. `route` looks at what the store found
//! for it and names the session, or refuses. It never puts another session in the place of the one that was named.
//!
//! An id may be a name that a session brought along from elsewhere. `meant` says which session of the caller's own org is
//! meant by it, before anything else is asked; from there on there is only the id that was minted here.

use crate::{Address, PersonId, Principal, Record, SessionId, grant_of};

/// The destination that the sender wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum To {
    /// This session and no other.
    Session(SessionId),
    /// Whatever session this conversation is bound to; a new one if there is none.
    Conversation(Address),
    /// A new session, always.
    New,
    /// A new session, always, which this conversation belongs to from here on, whatever session it had.
    NewIn(Address),
}

/// The store's findings for a `To`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// No such session, or no binding.
    Nothing,
    /// An open session.
    Open(SessionId),
    /// A session that has ended: the one that was named, or the last one this conversation had.
    Ended(SessionId, EndWhy),
}

/// Where the message goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// Into a session that exists.
    Existing(SessionId),
    /// Into a session that is made for it, and bound to the address if there is one.
    Create {
        /// The conversation it will belong to.
        bind: Option<Address>,
        /// The session this conversation had before.
        previous: Option<Previous>,
    },
}

/// The session that a conversation had before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Previous {
    /// The session.
    pub session: SessionId,
    /// Why it ended; none if it is open, and the conversation was given to another one.
    pub ended: Option<EndWhy>,
}

/// Why a message has nowhere to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoRoute {
    /// The session that was named does not exist.
    Unknown,
    /// The session that was named has ended.
    Ended(SessionId, EndWhy),
}

/// Why a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EndWhy {
    /// Somebody ended it.
    Asked,
    /// The agent confirmed that its conversation is gone.
    Gone,
}

/// A session that can be meant by an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The session, and who may touch it.
    pub record: Record,
    /// The person who brought it here under this name; none if the id is its own.
    pub imported_by: Option<PersonId>,
}

/// Nobody can say which session is meant: several that the caller may see came here under this name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ambiguous;

/// The session that this caller means by an id, of all that answer to it. What they may not see does not count, so it makes
/// no difference to them that it is there. What they have brought themselves comes first, then whose own id it is: whatever
/// others share with them later, the id goes on to mean the same.
pub fn meant(by: &Principal, id: SessionId, named: &[Named]) -> Result<SessionId, Ambiguous> {
    let seen = |named: &&Named| grant_of(by, &named.record).is_some();
    let ranks: [&dyn Fn(&Named) -> bool; 3] =
        [&|named| named.imported_by == Some(by.person), &|named| named.imported_by.is_none(), &|named| {
            named.imported_by.is_some_and(|other| other != by.person)
        }];
    for rank in ranks {
        let mut those = named.iter().filter(|named| rank(named)).filter(seen);
        match (those.next(), those.next()) {
            (None, _) => {}
            (Some(one), None) => return Ok(one.record.session),
            (Some(_), Some(_)) => return Err(Ambiguous),
        }
    }
    Ok(id)
}

/// The one resolver.
pub fn route(to: &To, found: Found) -> Result<Route, NoRoute> {
    match (to, found) {
        (To::Session(named), Found::Open(session)) if *named == session => Ok(Route::Existing(session)),
        (To::Session(named), Found::Ended(session, why)) if *named == session => {
            Err(NoRoute::Ended(session, why))
        }
        // Explicit beats implicit: whatever else was found, it is not what was named.
        (To::Session(_), _) => Err(NoRoute::Unknown),
        (To::Conversation(_), Found::Open(session)) => Ok(Route::Existing(session)),
        (To::Conversation(address), Found::Ended(session, why)) => {
            let previous = Some(Previous { session, ended: Some(why) });
            Ok(Route::Create { bind: Some(address.clone()), previous })
        }
        (To::Conversation(address), Found::Nothing) => {
            Ok(Route::Create { bind: Some(address.clone()), previous: None })
        }
        (To::New, _) => Ok(Route::Create { bind: None, previous: None }),
        (To::NewIn(address), found) => {
            let previous = match found {
                Found::Nothing => None,
                Found::Open(session) => Some(Previous { session, ended: None }),
                Found::Ended(session, why) => Some(Previous { session, ended: Some(why) }),
            };
            Ok(Route::Create { bind: Some(address.clone()), previous })
        }
    }
}
