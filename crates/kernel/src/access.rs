//! Who may do what with a session, and the only way to prove that it was asked.
//!
//! `authorize` compares a principal with a session's stored record and makes an `Authorized<T>`; nothing else can. The
//! store takes only `Authorized` wishes, and compares the witness inside the transaction of the write, so a right that
//! was taken away in between does not count.

use crate::{Address, OrgId, PersonId, SessionId};
use alloc::string::String;
use alloc::vec::Vec;

/// What a person may do with a session. Each includes the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Grant {
    /// Read it.
    View,
    /// Say something to it: a shell as the agent's user.
    Prompt,
    /// End it, reorder it, hand it on.
    Manage,
}

/// Who asks. Made from a credential by a door, never from a request's body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// The org the credential belongs to.
    pub org: OrgId,
    /// The person, or the part of Homing, that it stands for.
    pub person: PersonId,
    /// The name that addresses use for this person (`web:USER/…`).
    pub handle: String,
    /// The only client name the credential may use in addresses; `None` lets it choose.
    pub client: Option<String>,
}

/// What the store knows of who may touch a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The session.
    pub session: SessionId,
    /// The org it belongs to.
    pub org: OrgId,
    /// Who made it.
    pub owner: PersonId,
    /// What others were given.
    pub grants: Vec<(PersonId, Grant)>,
    /// Grows with each change of the above.
    pub revision: u64,
}

/// What somebody wishes to do, as far as rights are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Read anything of the session.
    Read,
    /// Say something to it, stop a turn, answer a question.
    Say,
    /// Change the words of a waiting message: only its sender may.
    Reword { sender: PersonId },
    /// Withdraw, hold or release a waiting message: its sender, or whoever manages the session.
    Tend { sender: PersonId },
    /// Change the session itself: order, title, end.
    Rule,
}

/// Why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// For this principal it does not exist; answer as if it did not.
    Unseen,
    /// It may be seen, but not this.
    Needs(Grant),
    /// Only whoever said it may change its words.
    NotYourWords,
    /// The address names another person or client.
    AddressNotYours,
}

/// What was seen when the right was found; the store compares it again when it writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Witness {
    /// The session whose record was read; none if the wish makes a new one.
    pub session: Option<SessionId>,
    /// The record's revision then.
    pub revision: u64,
}

/// A wish that was found to be allowed. Only this module can make one:
///
/// ```compile_fail,E0451
/// use homing_kernel::{Authorized, Principal, Witness};
///
/// fn forge(by: Principal, witness: Witness) -> Authorized<&'static str> {
///     Authorized { wish: "end it", by, witness }
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authorized<T> {
    wish: T,
    by: Principal,
    witness: Witness,
}

impl<T> Authorized<T> {
    /// The wish.
    pub fn wish(&self) -> &T {
        &self.wish
    }
    /// Who wishes.
    pub fn by(&self) -> &Principal {
        &self.by
    }
    /// What was seen.
    pub fn witness(&self) -> Witness {
        self.witness
    }
}

/// May `by` do `act` with the session of `record`?
pub fn authorize<T>(by: &Principal, act: Act, record: &Record, wish: T) -> Result<Authorized<T>, Denied> {
    let grant = grant_of(by, record).ok_or(Denied::Unseen)?;
    match act {
        Act::Read => {}
        Act::Say => needs(grant, Grant::Prompt)?,
        Act::Reword { sender } => {
            needs(grant, Grant::Prompt)?;
            if sender != by.person {
                return Err(Denied::NotYourWords);
            }
        }
        Act::Tend { sender } if sender == by.person => needs(grant, Grant::Prompt)?,
        Act::Tend { .. } | Act::Rule => needs(grant, Grant::Manage)?,
    }
    let witness = Witness { session: Some(record.session), revision: record.revision };
    Ok(Authorized { wish, by: by.clone(), witness })
}

/// May `by` make a new session, bound to `address` if there is one? (Where sessions may be made is the people issue's
/// question; whether the address is theirs is asked here.)
pub fn authorize_new<T>(by: &Principal, address: Option<&Address>, wish: T) -> Result<Authorized<T>, Denied> {
    if let Some(address) = address {
        authorize_address(by, address)?;
    }
    Ok(Authorized { wish, by: by.clone(), witness: Witness { session: None, revision: 0 } })
}

/// Is this address theirs to use, bound or not?
pub fn authorize_address(by: &Principal, address: &Address) -> Result<(), Denied> {
    let person_fits = address.principal().is_none_or(|part| part.as_str() == by.handle);
    let client_fits = match (address.client(), &by.client) {
        (Some(part), Some(client)) => part.as_str() == client,
        _ => true,
    };
    if person_fits && client_fits { Ok(()) } else { Err(Denied::AddressNotYours) }
}

/// The strongest thing `by` may do with the session; none means that it does not exist for them.
pub fn grant_of(by: &Principal, record: &Record) -> Option<Grant> {
    if by.org != record.org {
        return None;
    }
    if by.person == record.owner {
        return Some(Grant::Manage);
    }
    record.grants.iter().filter(|(person, _)| *person == by.person).map(|(_, grant)| *grant).max()
}

fn needs(has: Grant, needed: Grant) -> Result<(), Denied> {
    if has >= needed { Ok(()) } else { Err(Denied::Needs(needed)) }
}
