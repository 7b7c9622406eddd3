//! Conversions between values and columns.
//!
//! Ids are their 16 bytes, moments and counts are SQLite's signed integers, texts are what `store::record` writes.
//! What cannot be read back is `SqliteError::Damaged`: it names the column, and nothing is guessed.

use crate::error::SqliteError;
use kernel::{
    Address, ApprovalId, Epoch, Grantee, GroupId, MessageId, Moment, NodeId, Number, OrgId, Origin, PersonId,
    Previous, RequestId, RuleId, SessionId, TokenId, Turn,
};
use rusqlite::Row;
use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use store::record;

/// The bits of an id as they are stored.
pub(crate) type Bits = [u8; 16];

/// An id that is stored as its bits.
pub(crate) trait Id: Copy {
    fn stored(self) -> Bits;
    fn read(bits: Bits) -> Self;
}

macro_rules! ids {
    ($($id:ty),*) => {$(
        impl Id for $id {
            fn stored(self) -> Bits {
                self.bits().to_be_bytes()
            }
            fn read(bits: Bits) -> Self {
                Self::from_bits(u128::from_be_bytes(bits))
            }
        }
    )*};
}
ids!(ApprovalId, GroupId, MessageId, NodeId, OrgId, PersonId, RequestId, RuleId, SessionId, TokenId);

/// Whom something is given to, as its two columns. The org is named, too: in an index all orgs stand side by side.
pub(crate) fn grantee(to: Grantee, org: OrgId) -> (i64, Bits) {
    match to {
        Grantee::Person(person) => (0, person.stored()),
        Grantee::Group(group) => (1, group.stored()),
        Grantee::Org => (2, org.stored()),
    }
}

/// JSON that was encoded before, stored as text so that a person can read it.
pub(crate) struct Json<'a>(pub(crate) &'a [u8]);

impl ToSql for Json<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Text(self.0)))
    }
}

/// SQLite's integers are signed. Nothing we count comes near the end of them; the end of time stays the end of time.
pub(crate) fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// The number of rows that a page may have.
pub(crate) fn rows(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// Columns of a row, read by their numbers.
pub(crate) struct Columns<'a>(pub(crate) &'a Row<'a>);

impl Columns<'_> {
    pub(crate) fn id<T: Id>(&self, column: usize) -> Result<T, SqliteError> {
        Ok(T::read(self.0.get(column)?))
    }

    pub(crate) fn id_maybe<T: Id>(&self, column: usize) -> Result<Option<T>, SqliteError> {
        Ok(self.0.get::<_, Option<Bits>>(column)?.map(T::read))
    }

    pub(crate) fn int(&self, column: usize) -> Result<i64, SqliteError> {
        Ok(self.0.get(column)?)
    }

    pub(crate) fn count(&self, column: usize) -> Result<u64, SqliteError> {
        let stored = self.int(column)?;
        u64::try_from(stored).map_err(|_| self.damaged(column))
    }

    pub(crate) fn count_maybe(&self, column: usize) -> Result<Option<u64>, SqliteError> {
        match self.0.get::<_, Option<i64>>(column)? {
            Some(stored) => u64::try_from(stored).map(Some).map_err(|_| self.damaged(column)),
            None => Ok(None),
        }
    }

    pub(crate) fn small(&self, column: usize) -> Result<u32, SqliteError> {
        u32::try_from(self.int(column)?).map_err(|_| self.damaged(column))
    }

    pub(crate) fn small_maybe(&self, column: usize) -> Result<Option<u32>, SqliteError> {
        let stored = self.0.get::<_, Option<i64>>(column)?;
        stored.map(|value| u32::try_from(value).map_err(|_| self.damaged(column))).transpose()
    }

    pub(crate) fn flag(&self, column: usize) -> Result<bool, SqliteError> {
        Ok(self.0.get(column)?)
    }

    pub(crate) fn moment(&self, column: usize) -> Result<Moment, SqliteError> {
        self.count(column).map(Moment)
    }

    pub(crate) fn number(&self, column: usize) -> Result<Number, SqliteError> {
        self.count(column).map(Number)
    }

    pub(crate) fn number_maybe(&self, column: usize) -> Result<Option<Number>, SqliteError> {
        Ok(self.count_maybe(column)?.map(Number))
    }

    pub(crate) fn text(&self, column: usize) -> Result<&str, SqliteError> {
        self.0.get_ref(column)?.as_str().map_err(|_| self.damaged(column))
    }

    pub(crate) fn text_maybe(&self, column: usize) -> Result<Option<&str>, SqliteError> {
        self.0.get_ref(column)?.as_str_or_null().map_err(|_| self.damaged(column))
    }

    pub(crate) fn bytes(&self, column: usize) -> Result<&[u8], SqliteError> {
        self.0.get_ref(column)?.as_bytes().map_err(|_| self.damaged(column))
    }

    pub(crate) fn bytes_maybe(&self, column: usize) -> Result<Option<&[u8]>, SqliteError> {
        self.0.get_ref(column)?.as_bytes_or_null().map_err(|_| self.damaged(column))
    }

    /// A word that one of `store::record`'s parsers knows.
    pub(crate) fn word<T>(&self, column: usize, parse: fn(&str) -> Option<T>) -> Result<T, SqliteError> {
        parse(self.text(column)?).ok_or_else(|| self.damaged(column))
    }

    pub(crate) fn word_maybe<T>(
        &self,
        column: usize,
        parse: fn(&str) -> Option<T>,
    ) -> Result<Option<T>, SqliteError> {
        self.text_maybe(column)?.map(|text| parse(text).ok_or_else(|| self.damaged(column))).transpose()
    }

    pub(crate) fn address(&self, column: usize) -> Result<Address, SqliteError> {
        self.word(column, |text| text.parse().ok())
    }

    pub(crate) fn address_maybe(&self, column: usize) -> Result<Option<Address>, SqliteError> {
        self.word_maybe(column, |text| text.parse().ok())
    }

    /// A session and why it ended, if it had, in two columns; none if the first is null.
    pub(crate) fn previous(&self, column: usize) -> Result<Option<Previous>, SqliteError> {
        match self.id_maybe(column)? {
            Some(session) => {
                Ok(Some(Previous { session, ended: self.word_maybe(column + 1, record::end_parse)? }))
            }
            None => Ok(None),
        }
    }

    pub(crate) fn epoch(&self, column: usize) -> Result<Epoch, SqliteError> {
        self.small(column).map(Epoch)
    }

    pub(crate) fn epoch_maybe(&self, column: usize) -> Result<Option<Epoch>, SqliteError> {
        Ok(self.small_maybe(column)?.map(Epoch))
    }

    /// Of which session, and after which of its turns, something is a fork, in two columns; none if the first is null.
    pub(crate) fn origin(&self, column: usize) -> Result<Option<Origin>, SqliteError> {
        match self.id_maybe(column)? {
            Some(session) => Ok(Some(Origin { session, turn: Turn(self.small(column + 1)?) })),
            None => Ok(None),
        }
    }

    /// Whom something is given to, in two columns.
    pub(crate) fn grantee(&self, column: usize) -> Result<Grantee, SqliteError> {
        match self.int(column)? {
            0 => Ok(Grantee::Person(self.id(column + 1)?)),
            1 => Ok(Grantee::Group(self.id(column + 1)?)),
            2 => Ok(Grantee::Org),
            _ => Err(self.damaged(column)),
        }
    }

    pub(crate) fn string(&self, column: usize) -> Result<String, SqliteError> {
        self.text(column).map(str::to_owned)
    }

    pub(crate) fn string_maybe(&self, column: usize) -> Result<Option<String>, SqliteError> {
        Ok(self.text_maybe(column)?.map(str::to_owned))
    }

    pub(crate) fn moment_maybe(&self, column: usize) -> Result<Option<Moment>, SqliteError> {
        Ok(self.count_maybe(column)?.map(Moment))
    }

    pub(crate) fn hash(&self, column: usize) -> Result<[u8; 32], SqliteError> {
        Ok(self.0.get(column)?)
    }

    fn damaged(&self, column: usize) -> SqliteError {
        let name = self.0.as_ref().column_name(column).unwrap_or("unknown");
        SqliteError::Damaged(format!("the column {name} holds what this version cannot read"))
    }
}
