//! Bugs that can be planted, to prove that the checks would find them.
//!
//! None of them touches the product: each is a lie of the store's or the agent's wrapper, in the place where a careless
//! engine would have gone wrong. What it does stands beside its name; where it is told is `weather` or `leash`.

/// A planted bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bug {
    /// The key of a message is not looked at.
    NoDedupe,
    /// An append with an old term and number is written all the same.
    NoFence,
    /// Inbox rows stay when their facts are written.
    InboxKept,
    /// Facts are believed and acted on although they were never written.
    EvolveBeforeDurable,
    /// The end of one attempt is taken for the end of the next.
    StaleApplied,
    /// A message is acknowledged and not stored.
    AckBeforeDurable,
    /// The message goes to the agent, and the log does not say so.
    HandedUnwritten,
    /// An attempt of an earlier term is declared gone without a look.
    LeaveLeftovers,
    /// A message lands in another session of the same person.
    Misrouted,
    /// Any failure of the agent counts as the death of the conversation.
    GoneForTransient,
    /// More sessions are awake than may be.
    ClaimsIgnored,
    /// A reader of the log is told a page with a hole.
    FactsSkipped,
    /// A receipt is answered from an old copy.
    OldReceipts,
    /// Nobody remembers that a session wanted to be woken.
    WakesLost,
    /// A reply is put into the outbox twice.
    RepliesTwice,
    /// A message that waits when a scope changes is not held.
    HoldsUnwritten,
    /// A lookup under another epoch is remembered as if it were of now.
    StaleErrandApplied,
    /// Nobody compares the epoch that a sender saw.
    EpochIgnored,
    /// Words that an agent took into its turn get a turn of their own, too.
    SteeredTwice,
    /// An agent is started in a worktree that no fact says was entered.
    EnteredUnwritten,
    /// An agent is started with its own model in place of the chosen one.
    ModelForgotten,
    /// Several sessions work in one directory.
    DirectoriesIgnored,
    /// Rules that were removed are still read.
    RulesOutlived,
    /// Rules that say no are not read.
    DenialsUnread,
    /// A rule that was made for a session holds in all of them.
    RulesWidened,
    /// Whoever may answer makes rules for everybody by it.
    RulesByAnybody,
    /// A question that was answered is answered again, otherwise.
    AnsweredAgain,
    /// Nobody remembers that a message is unattended.
    UnattendedForgotten,
    /// Nobody looks at the deadline of a question.
    QuestionsUnbounded,
    /// An import stops in the middle.
    ImportCut,
    /// A name that came with an import is looked for in all orgs.
    NamesShared,
    /// The words of an import land in the session that it was made from.
    ImportsMixed,
    /// A ring for a keeper gets lost, and nobody looks again for what it was about.
    RingLost,
    /// Nobody looks into the inbox of a session while a worktree of it is removed.
    ChoreBeforeStop,
    /// A full queue refuses a message that it has in it: the key is looked up after the limits.
    KeyAfterLimits,
    /// A reply overtakes the one before it to the same address.
    OutboxSwapped,
    /// A reply that may have been sent when the daemon died is sent again without a look.
    SentAgain,
    /// Nobody asks whose the scheme of an address is.
    ForeignSchemeBound,
}

impl Bug {
    /// Every one of them.
    pub const ALL: [Self; 38] = [
        Self::NoDedupe,
        Self::NoFence,
        Self::InboxKept,
        Self::EvolveBeforeDurable,
        Self::StaleApplied,
        Self::AckBeforeDurable,
        Self::HandedUnwritten,
        Self::LeaveLeftovers,
        Self::Misrouted,
        Self::GoneForTransient,
        Self::ClaimsIgnored,
        Self::FactsSkipped,
        Self::OldReceipts,
        Self::WakesLost,
        Self::RepliesTwice,
        Self::HoldsUnwritten,
        Self::StaleErrandApplied,
        Self::EpochIgnored,
        Self::SteeredTwice,
        Self::EnteredUnwritten,
        Self::ModelForgotten,
        Self::DirectoriesIgnored,
        Self::RulesOutlived,
        Self::DenialsUnread,
        Self::RulesWidened,
        Self::RulesByAnybody,
        Self::AnsweredAgain,
        Self::UnattendedForgotten,
        Self::QuestionsUnbounded,
        Self::ImportCut,
        Self::NamesShared,
        Self::ImportsMixed,
        Self::RingLost,
        Self::ChoreBeforeStop,
        Self::KeyAfterLimits,
        Self::OutboxSwapped,
        Self::SentAgain,
        Self::ForeignSchemeBound,
    ];

    /// The fault, in words for a table.
    pub fn words(self) -> &'static str {
        match self {
            Self::NoDedupe => "no dedupe",
            Self::NoFence => "no fence",
            Self::InboxKept => "inbox not emptied with the facts",
            Self::EvolveBeforeDurable => "evolve before durable",
            Self::StaleApplied => "stale result applied",
            Self::AckBeforeDurable => "acknowledged before durable",
            Self::HandedUnwritten => "handed over without a fact",
            Self::LeaveLeftovers => "leftovers ended without a look",
            Self::Misrouted => "into another session of the same person",
            Self::GoneForTransient => "any failure is Gone",
            Self::ClaimsIgnored => "claims ignored",
            Self::FactsSkipped => "a page of facts with a hole",
            Self::OldReceipts => "receipts from an old copy",
            Self::WakesLost => "wakes forgotten",
            Self::RepliesTwice => "replies posted twice",
            Self::HoldsUnwritten => "no hold after a change of scope",
            Self::StaleErrandApplied => "stale list of another scope applied",
            Self::EpochIgnored => "the sender's epoch not compared",
            Self::SteeredTwice => "steered words run again",
            Self::EnteredUnwritten => "worktree entered without a fact",
            Self::ModelForgotten => "another model than the chosen one",
            Self::DirectoriesIgnored => "directory claims ignored",
            Self::RulesOutlived => "removed rules still read",
            Self::DenialsUnread => "rules that say no not read",
            Self::RulesWidened => "a session's rule for all sessions",
            Self::RulesByAnybody => "rules without the right to make them",
            Self::AnsweredAgain => "a question answered again",
            Self::UnattendedForgotten => "unattended messages attended",
            Self::QuestionsUnbounded => "deadlines of questions forgotten",
            Self::ImportCut => "half of an import",
            Self::NamesShared => "names of imports from all orgs",
            Self::ImportsMixed => "an import mixed with its origin",
            Self::RingLost => "a ring lost, and nobody looks again",
            Self::ChoreBeforeStop => "a stop waits behind a chore",
            Self::KeyAfterLimits => "a key looked up after the limits",
            Self::OutboxSwapped => "order of the outbox swapped",
            Self::SentAgain => "a reply sent again after a crash",
            Self::ForeignSchemeBound => "a foreign scheme bound",
        }
    }
}
