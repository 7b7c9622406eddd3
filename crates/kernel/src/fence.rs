//! Small numbers that say when and under whose rule something happened.

use core::fmt;

macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident($of:ty);)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $of);

        impl $name {
            /// The one after this one.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0 + 1)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

numbers! {
    /// A fact's place in its session's log. The first fact is number 1; 0 is the place before it.
    Number(u64);
    /// Grows each time another keeper takes a session; what an older one reports is stale.
    Term(u64);
    /// Grows with every change of a session's scope.
    Epoch(u32);
    /// A turn's place among the turns of its session; the first is 1.
    Turn(u32);
    /// An attempt's place among the attempts of its turn; the first is 1.
    Attempt(u16);
}

/// A moment, in milliseconds since 1970. The kernel never asks for one: commands bring theirs along.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(pub u64);

impl Moment {
    /// The moment so many milliseconds later; the end of time if there is none.
    #[must_use]
    pub const fn after_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }
}

/// Says which attempt a report belongs to. Everything a runner reports carries one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence {
    /// The keeper's term under which the attempt was started.
    pub term: Term,
    /// The scope's epoch under which it was started.
    pub epoch: Epoch,
    /// The turn.
    pub turn: Turn,
    /// The attempt within the turn.
    pub attempt: Attempt,
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "term {} epoch {} turn {} attempt {}", self.term, self.epoch, self.turn, self.attempt)
    }
}
