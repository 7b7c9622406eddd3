//! The port on one SQLite file: one writer that commits in groups, a few readers, and an OS lock on the directory.
//!
//! Begin with `open` (what a start looks at, in which order), then `writer` (what a commit promises; `wal` and `wal_buffer` are
//! what becomes of it in the file). `way_in`, `append`
//! and `projection` are what is written, `change` how it changes who may do what; `view`, `log`, `outbox`, `timer`,
//! `people`, `tokens`, `pushes` and `audit` are what is read or small;
//! `migrations` is how the tables came to be, `backup` how they are carried elsewhere and back. Nothing of SQLite leaves this room.

mod append;
mod approvals;
mod audit;
mod backup;
mod change;
mod columns;
mod counts;
mod error;
mod files;
mod lock;
mod log;
mod migrations;
mod names;
mod offers;
mod open;
mod outbox;
mod past;
mod people;
mod projection;
mod pushes;
#[cfg(test)]
mod query_plan_tests;
mod reader;
mod row_changes;
mod rules;
mod search;
mod sight;
mod sqlite;
mod timer;
mod tokens;
mod tx;
mod usage;
mod view;
mod wal;
mod wal_buffer;
mod way_in;
mod writer;

pub use backup::{CopyError, Restored, backup, restore};
#[doc(hidden)]
pub use files::Rig;
pub use lock::{Holder, holder};
pub use open::{OpenError, Options, look_at_directory};
pub use sqlite::SqliteStore;
