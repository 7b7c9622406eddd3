//! Failures of an agent, by what can be done about them, and what an agent calls a conversation.

use alloc::string::String;

/// The failure of an attempt. Drivers translate each agent's own words into one of these; what they cannot place is
/// `Transient`, because taking a network error for a death is worse than asking once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Failure {
    /// The agent itself says that this conversation no longer exists. Nothing brings it back.
    Gone,
    /// Somebody else holds this conversation. Later.
    Busy,
    /// It may work the next time: a network error, an overloaded model, a crash, anything unknown.
    Transient,
    /// The agent will not, until a person changes something: not signed in, unknown model, no such directory.
    Refused,
}

impl Failure {
    /// Every kind there is, for tables and tests.
    pub const ALL: [Self; 4] = [Self::Gone, Self::Busy, Self::Transient, Self::Refused];
}

/// The agent's own name for a conversation, and where that name means something. Opaque to us.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Native {
    /// The agent's name for it.
    pub id: String,
    /// The agent, its home and its directory, in the driver's words. Elsewhere the agent may not know the id, which
    /// does not mean that the conversation is gone. Empty when it was written down before places were.
    pub place: String,
}

impl Native {
    /// A name that holds wherever it is used.
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), place: String::new() }
    }

    /// The same name, made there.
    pub fn at(self, place: impl Into<String>) -> Self {
        Self { place: place.into(), ..self }
    }
}
