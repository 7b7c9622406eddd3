//! What we need from a database without naming one.
//!
//! `port` is the trait, `rows`, `people` and `audit` what goes in and comes back, `chain` the seals of the audit, `record`
//! the stored form of facts, `project` how facts become lists and receipts (`rebuild` does it for a whole log), `memory` a
//! store that forgets when it is dropped, `conformance` the suite every store must pass.

mod audit;
pub mod chain;
pub mod conformance;
mod memory;
mod people;
mod port;
pub mod project;
mod rebuild;
pub mod record;
mod rows;

pub use audit::*;
pub use chain::{ChainHead, ChainKey};
pub use memory::{MemoryStore, Snapshot};
pub use people::*;
pub use port::*;
pub use rebuild::{Projection, Question, Standing, rebuild};
pub use rows::*;
