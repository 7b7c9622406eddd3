//! What we need from a database without naming one.
//!
//! `port` is the trait, `rows` what comes back, `record` the stored form of facts, `project` how facts become lists and
//! receipts, `memory` a store that forgets when it is dropped, `conformance` the suite every store must pass.

mod port;
pub mod project;
pub mod record;
mod rows;

pub use port::*;
pub use rows::*;
