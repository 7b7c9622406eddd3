//! A directory with a store in it, and the few things tests want from one.

use homing_store_sqlite::{OpenError, Options, SqliteStore};
use kernel::{Moment, NodeId};
use std::path::Path;

/// The node that every test opens its store as, unless it says otherwise.
pub(crate) const NODE: NodeId = NodeId::from_bits(7);

pub(crate) fn options() -> Options {
    Options::new(NODE, "testhost", Moment(1_000))
}

pub(crate) fn open(dir: &Path) -> Result<SqliteStore, OpenError> {
    SqliteStore::open(dir, &options())
}
