//! The ways in of the simulation, and the addresses that are theirs.

use kernel::Scheme;

/// What people of the simulation can call a conversation.
pub(crate) const SCHEMES: &[Scheme] = &[
    Scheme { name: "web", form: "web:USER/CHAT", parts: &[2], person: Some(0), client: None },
    Scheme { name: "slack", form: "slack:TEAM/CHANNEL/THREAD", parts: &[3], person: None, client: None },
];
