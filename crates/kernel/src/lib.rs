//! The rules of Homing and nothing else.
//!
//! Read in this order: `id` and `fence` (the names of things), `address` and `route` (which session a message belongs
//! to), `access` (who may), `session` (what a session is), then `decide`, `evolve` and `due` (what happens to it).
//! There is no clock, no randomness, no I/O and no serialization here; `no_std` lets the compiler check that.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod failure;
mod fence;
mod id;

pub use failure::{Failure, Native};
pub use fence::{Attempt, Epoch, Fence, Moment, Number, Term, Turn};
pub use id::{ApprovalId, MessageId, NodeId, NotAnId, OrgId, PersonId, RequestId, SessionId};
