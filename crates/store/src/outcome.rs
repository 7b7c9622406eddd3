//! The outcome of a change, whatever was changed.

/// The outcome of a change. `T` is what was made, `R` the reason of a refusal.
///
/// The key is looked up before anything else: whoever repeats a change gets its answer of then, whatever has happened since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteOutcome<T, R> {
    /// It is so now.
    Done(T),
    /// It was done before, under the same key; nothing was changed now.
    Repeated(T),
    /// The key was used for something else. Nothing was changed.
    Conflict,
    /// It may not be, or cannot be. Nothing was changed but the audit, which says so.
    Refused(R),
}

impl<T, R> WriteOutcome<T, R> {
    /// The same outcome of something else.
    pub fn map<U>(self, to: impl FnOnce(T) -> U) -> WriteOutcome<U, R> {
        match self {
            Self::Done(made) => WriteOutcome::Done(to(made)),
            Self::Repeated(made) => WriteOutcome::Repeated(to(made)),
            Self::Conflict => WriteOutcome::Conflict,
            Self::Refused(why) => WriteOutcome::Refused(why),
        }
    }
}
