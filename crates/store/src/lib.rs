//! The ports of the store: what we need from a database without naming one.
//!
//! `ports` are the traits by who asks, `wrap` the one place between the engine and a store, `way_in`, `log`, `rows`,
//! `people` and `audit` what goes in and comes back, `plan` the rules of the way in and `change` those of people, once for every store, `attachment` what goes
//! along with a message, `disk` the room that words take, `last` the last turn of a session, `marks` what somebody notes about one, `attention` what
//! needs somebody, `pushes` where people are told, `passages` what can be found of what was said, by which `keywords`, `chain` the seals of the audit, `record`
//! the stored form of facts, `project` how facts become lists and receipts (`rebuild` does it for a whole log), `memory` a
//! store that forgets when it is dropped, `conformance` the suite every store must pass.

mod attachment;
mod attention;
mod audit;
pub mod chain;
pub mod change;
pub mod conformance;
mod disk;
mod keywords;
mod last;
mod log;
mod marks;
mod memory;
mod outbox;
mod outcome;
mod passages;
mod people;
pub mod plan;
mod ports;
pub mod project;
mod pushes;
mod rebuild;
pub mod record;
mod row_changes;
mod rows;
mod search;
mod usage;
mod way_in;
mod wrap;

pub use attachment::*;
pub use attention::*;
pub use audit::*;
pub use chain::{ChainHead, ChainKey};
pub use change::{KeyUse, PeopleTx};
pub use disk::*;
pub use keywords::*;
pub use last::*;
pub use log::*;
pub use marks::*;
pub use memory::{MemoryStore, Snapshot};
pub use outbox::*;
pub use outcome::WriteOutcome;
pub use passages::*;
pub use people::*;
pub use plan::{KeyAnswer, Plan, WriteTx};
pub use ports::*;
pub use pushes::*;
pub use rebuild::{ApprovalStanding, Projection, Standing, rebuild};
pub use rows::*;
pub use search::*;
pub use usage::*;
pub use way_in::*;
pub use wrap::{Call, Sort, Wrapped};
