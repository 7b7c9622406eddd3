//! An approval: a question of an agent that waits for a person.
//!
//! It is called so from here to the screen. Which answers it takes, and whose, are its terms, fixed when it is asked; what it
//! says is words, which the kernel never sees and the store keeps under its id. `rules` says what becomes of it before a person
//! sees it, `decide` who comes first.

use crate::rules::Effect;
use crate::{ApprovalId, Grantee, Moment, PersonId, RuleId};
use alloc::string::String;

/// The answer to an approval.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Answer {
    /// Go ahead.
    Yes,
    /// Do not. Also the answer to a choice or a free question that nobody answers.
    No,
    /// This one of the options, counted from 0.
    Chose(u16),
    /// These words.
    Said(String),
}

/// Whoever answers an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Answerer {
    /// A person.
    Person(PersonId),
    /// A rule that somebody has made for such questions.
    Rule(RuleId),
    /// The policy for sessions that nobody attends.
    Policy,
    /// Nobody: its time was over.
    Nobody,
}

/// The kind of answer that an approval takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum ApprovalForm {
    /// Yes or no.
    #[default]
    Permission,
    /// One of so many options.
    Choice {
        /// The number of options.
        options: u16,
    },
    /// Words.
    Words,
}

/// The terms by which the answers to an approval are judged, as long as it is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ApprovalTerms {
    /// The form of answer it takes.
    pub form: ApprovalForm,
    /// The rule that names who may answer, and those people.
    pub only: Option<(RuleId, Grantee)>,
}

/// An approval within a running turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnApproval {
    /// Nobody has answered yet.
    Open { approval: ApprovalId, until: Moment, form: ApprovalForm },
    /// It was answered.
    Answered { approval: ApprovalId, answer: Answer },
    /// The agent took it back.
    Lapsed { approval: ApprovalId },
}

impl Answer {
    /// The effect on such questions if this answer is remembered: only a yes or a no can be.
    pub fn as_rule(&self) -> Option<Effect> {
        match self {
            Self::Yes => Some(Effect::Allow),
            Self::No => Some(Effect::Deny),
            Self::Chose(_) | Self::Said(_) => None,
        }
    }
}

impl ApprovalForm {
    /// True if this is an answer to such an approval. A no always is: whoever need not choose may decline.
    pub fn takes(self, answer: &Answer) -> bool {
        match (self, answer) {
            (_, Answer::No)
            | (Self::Permission, Answer::Yes)
            // To a choice: when none of the options is right.
            | (Self::Words | Self::Choice { .. }, Answer::Said(_)) => true,
            (Self::Choice { options }, Answer::Chose(option)) => *option < options,
            (Self::Permission, Answer::Chose(_) | Answer::Said(_))
            | (Self::Choice { .. }, Answer::Yes)
            | (Self::Words, Answer::Yes | Answer::Chose(_)) => false,
        }
    }
}
