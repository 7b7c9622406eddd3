//! The suite every store must pass, the memory store included.
//!
//! Each promise is one `pub async fn`, generic over a `Fixture`, which makes stores and reaches behind the port where
//! the port, rightly, does not. `store::conformance!(MyFixture)` turns every promise into one test. `story` is the
//! language they are told in; the other files are the promises, by subject.

mod accept;
mod append;
mod life;
mod limits;
mod outbox;
mod people;
mod reading;
mod requests;
mod story;
mod time;

pub use accept::*;
pub use append::*;
pub use life::*;
pub use limits::*;
pub use outbox::*;
pub use people::*;
pub use reading::*;
pub use requests::*;
pub use time::*;

use crate::Store;
use kernel::{Grant, PersonId, SessionId};
use std::future::Future;

/// Makes stores for the suite, and does what the port has no method for.
pub trait Fixture: Sized + Send + Sync {
    /// The store on trial.
    type Store: Store;

    /// A new, empty store. Whatever it needs (a directory, say) lives as long as the fixture.
    fn fresh() -> impl Future<Output = Self> + Send;

    /// The store.
    fn store(&self) -> &Self::Store;

    /// What a restart of the process does: the same contents, a higher term.
    fn reopen(self) -> impl Future<Output = Self> + Send;

    /// How many audit entries there are.
    fn audit_len(&self) -> impl Future<Output = usize> + Send;

    /// Gives somebody a grant on a session, or takes it away; the access record's revision grows.
    fn grant(
        &self,
        session: SessionId,
        person: PersonId,
        grant: Option<Grant>,
    ) -> impl Future<Output = ()> + Send;

    /// From here on this person may do nothing. The person may be one that the store has never heard of.
    fn disable(&self, person: PersonId) -> impl Future<Output = ()> + Send;

    /// Makes every checkpoint unreadable, or takes it away.
    fn spoil_checkpoints(&self) -> impl Future<Output = ()> + Send;
}
