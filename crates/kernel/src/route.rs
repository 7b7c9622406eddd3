//! Which session a message belongs to. Decided here, once; nothing after it may decide again.
//!
//! Whoever sends says one of three things, and there is no fourth and no default. `route` looks at what the store found
//! for it and names the session, or refuses. It never puts another session in the place of the one that was named.

use crate::{Address, SessionId};

/// What the sender wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum To {
    /// This session and no other.
    Session(SessionId),
    /// Whatever session this conversation is bound to; a new one if there is none.
    Conversation(Address),
    /// A new session, always.
    New,
}

/// What the store found for a `To`.
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
        /// The session this conversation had before, and why it ended.
        previous: Option<(SessionId, EndWhy)>,
    },
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
            Ok(Route::Create { bind: Some(address.clone()), previous: Some((session, why)) })
        }
        (To::Conversation(address), Found::Nothing) => {
            Ok(Route::Create { bind: Some(address.clone()), previous: None })
        }
        (To::New, _) => Ok(Route::Create { bind: None, previous: None }),
    }
}
