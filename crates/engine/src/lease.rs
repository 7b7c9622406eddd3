//! Under which term a keeper works.
//!
//! A node's term grows with each of its starts; the low half counts the keepers within one start. So every keeper has
//! a term of its own, greater than that of any keeper before it, and taking a session costs no write: the first append
//! tells the store, which then refuses whoever is older.

use kernel::Term;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug)]
pub(crate) struct Lease {
    node: Term,
    taken: AtomicU64,
}

impl Lease {
    pub(crate) fn new(node: Term) -> Self {
        Self { node, taken: AtomicU64::new(0) }
    }

    /// A term that nobody has had before.
    pub(crate) fn next(&self) -> Term {
        Term(self.node.0 + 1 + self.taken.fetch_add(1, Ordering::Relaxed))
    }
}
