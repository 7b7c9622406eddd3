//! Failures inside, and the errors that the caller is told.
//!
//! SQLite's errors end here. An error of one change, before the commit, is certain: nothing was changed. An error of the
//! commit itself is not, with one exception: a commit that SQLite refused because there was no room never wrote the
//! frame that would have made it one.

use rusqlite::ErrorCode;
use store::StoreError;
use store::record::Unreadable;

/// Why a change or a question came to nothing.
#[derive(Debug)]
pub(crate) enum SqliteError {
    Sql(rusqlite::Error),
    Damaged(String),
}

impl From<rusqlite::Error> for SqliteError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<Unreadable> for SqliteError {
    fn from(unreadable: Unreadable) -> Self {
        Self::Damaged(unreadable.to_string())
    }
}

impl SqliteError {
    /// For a change that was rolled back, or a question: nothing was changed.
    pub(crate) fn unchanged(&self) -> StoreError {
        let error = match self {
            Self::Damaged(what) => return StoreError::Damaged(what.clone()),
            Self::Sql(error) => error,
        };
        match error {
            rusqlite::Error::SqliteFailure(code, _) => match code.code {
                ErrorCode::DiskFull => StoreError::Full,
                ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => {
                    StoreError::Damaged(error.to_string())
                }
                _ => StoreError::Unavailable(error.to_string()),
            },
            rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::Utf8Error(..) => StoreError::Damaged(error.to_string()),
            _ => StoreError::Unavailable(error.to_string()),
        }
    }

    /// For a commit that reported an error.
    pub(crate) fn of_commit(&self) -> StoreError {
        match self.unchanged() {
            StoreError::Full => StoreError::Full,
            StoreError::Unavailable(why) | StoreError::Unknown(why) | StoreError::Damaged(why) => {
                StoreError::Unknown(why)
            }
        }
    }

    /// True if the connection that said so should be replaced before it is used again.
    pub(crate) fn taints_connection(&self) -> bool {
        match self {
            Self::Damaged(_) => false,
            Self::Sql(rusqlite::Error::SqliteFailure(code, _)) => !matches!(
                code.code,
                ErrorCode::DiskFull | ErrorCode::ConstraintViolation | ErrorCode::DatabaseBusy
            ),
            Self::Sql(_) => false,
        }
    }
}
