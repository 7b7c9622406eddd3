//! Keys, which make a repeated wish the same wish.

use crate::{HashForm, Key};
use kernel::Moment;

/// The row that is stored under a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyRow {
    /// Of what was asked for.
    pub hash: [u8; 32],
    /// Of which form of it.
    pub form: HashForm,
    /// The id of what came of it.
    pub made: u128,
    /// Until when it is remembered.
    pub expires: Option<Moment>,
}

/// The answer of a key, before anything else is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyAnswer {
    /// Nothing was done under it, or that is forgotten.
    Never,
    /// This very wish was done under it, and this is the id of what came of it.
    Repeated(u128),
    /// Something else was done under it.
    Conflict,
}

/// The answer for a key. A hash of another form than today's cannot be compared: then the key alone counts.
pub fn key_answer(key: Option<&Key>, row: Option<&KeyRow>, now: Moment) -> KeyAnswer {
    let (Some(key), Some(row)) = (key, row) else { return KeyAnswer::Never };
    if row.expires.is_some_and(|until| until <= now) {
        return KeyAnswer::Never;
    }
    match row.form {
        HashForm::Debug => KeyAnswer::Repeated(row.made),
        HashForm::Stored if row.hash == key.hash => KeyAnswer::Repeated(row.made),
        HashForm::Stored => KeyAnswer::Conflict,
    }
}
