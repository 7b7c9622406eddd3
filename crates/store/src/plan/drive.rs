//! The three steps in a row: read, plan, apply.

use super::{ThisSession, WriteTx};
use crate::{
    Accepted, Asked, Create, Mark, Marks, NewMessage, NewRequest, Rebind, Rejection, Retitle, SettleByHand,
    WriteOutcome,
};
use kernel::{Principal, SessionId};

type Came<T, X> = Result<WriteOutcome<T, Rejection>, <X as WriteTx>::Error>;

/// Takes a message in.
pub fn say<X: WriteTx>(tx: &mut X, by: &Principal, new: NewMessage) -> Came<Accepted, X> {
    let seen = tx.read_say(by, &new)?;
    tx.apply(super::say(&seen, by, new))
}

/// Makes a session.
pub fn make<X: WriteTx>(tx: &mut X, by: &Principal, new: Create) -> Came<SessionId, X> {
    let seen = tx.read_make(by, &new)?;
    tx.apply(super::make(&seen, by, new))
}

/// Takes a request in.
pub fn ask<X: WriteTx>(tx: &mut X, by: &Principal, new: NewRequest) -> Came<Asked, X> {
    let seen = tx.read_ask(by, &new)?;
    tx.apply(super::ask(&seen, by, new))
}

/// Lets a conversation belong to another session.
pub fn rebind<X: WriteTx>(tx: &mut X, by: &Principal, new: Rebind) -> Came<(), X> {
    let seen = tx.read_rebind(by, &new)?;
    tx.apply(super::rebind(&seen, by, new))
}

/// Settles a reply by hand.
pub fn settle<X: WriteTx>(tx: &mut X, by: &Principal, new: SettleByHand) -> Came<(), X> {
    let seen = tx.read_settle(by, &new)?;
    tx.apply(super::settle(&seen, by, new))
}

/// Changes what a session is called, or whether lists show it.
pub fn retitle<X: WriteTx>(tx: &mut X, by: &Principal, new: Retitle) -> Came<(), X> {
    let seen = ThisSession { asker: tx.read_asker(by)?, session: tx.read_session(new.session)? };
    tx.apply(super::retitle(&seen, by, new))
}

/// Changes somebody's own marks on a session.
pub fn mark<X: WriteTx>(tx: &mut X, by: &Principal, new: Mark) -> Came<Marks, X> {
    let seen = tx.read_mark(by, &new)?;
    tx.apply(super::mark(&seen, by, new))
}
