//! The things about sessions that need somebody: what is counted, and what a list can be narrowed to.
//!
//! One rule for every store: it says of a few columns whether a session needs somebody for this or that.

use crate::{Marks, SessionRow};
use kernel::{Number, Outcome};

/// A reason for which a session needs somebody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Questions of its agent are open.
    Questions,
    /// Messages are held.
    Held,
    /// Its last turn failed, was interrupted or took too long.
    Failed,
    /// A turn is over whose end they have not seen.
    Unread,
}

/// The columns of a session that say whether it needs somebody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attention {
    /// True if a turn is under way.
    pub awake: bool,
    /// Open questions.
    pub questions: u32,
    /// Held messages.
    pub held: u32,
    /// The end of its last turn, and the number of the fact that says so.
    pub last: Option<(Outcome, Number)>,
    /// The reader's own marks.
    pub marks: Marks,
}

impl Attention {
    /// True if it needs them for this.
    pub fn needs(&self, need: Need) -> bool {
        match need {
            Need::Questions => self.questions > 0,
            Need::Held => self.held > 0,
            Need::Failed => self.last.is_some_and(|(outcome, _)| match outcome {
                Outcome::Failed(_) | Outcome::Interrupted | Outcome::TimedOut => true,
                Outcome::Answered | Outcome::Stopped => false,
            }),
            Need::Unread => self.last.is_some_and(|(_, number)| number > self.marks.seen),
        }
    }
}

impl SessionRow {
    /// The part of it that says whether it needs its reader.
    pub fn attention(&self) -> Attention {
        let Self { awake, questions, held, last, marks, .. } = self;
        let last = last.as_ref().map(|last| (last.outcome, last.number));
        Attention { awake: *awake, questions: *questions, held: *held, last, marks: *marks }
    }
}

/// The number of open sessions that lists show somebody, and of those among them that need somebody.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SessionCounts {
    /// All of them.
    pub open: u32,
    /// Those with a turn under way.
    pub running: u32,
    /// Those with open questions.
    pub questions: u32,
    /// Those with held messages.
    pub held: u32,
    /// Those whose last turn failed.
    pub failed: u32,
    /// Those with a turn whose end they have not seen.
    pub unread: u32,
}

impl SessionCounts {
    /// Counts one.
    pub fn count(&mut self, seen: &Attention) {
        self.open += 1;
        self.running += u32::from(seen.awake);
        self.questions += u32::from(seen.needs(Need::Questions));
        self.held += u32::from(seen.needs(Need::Held));
        self.failed += u32::from(seen.needs(Need::Failed));
        self.unread += u32::from(seen.needs(Need::Unread));
    }
}
