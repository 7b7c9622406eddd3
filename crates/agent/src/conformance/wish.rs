//! The wishes of a story: of the agent, of the world outside, and of its process.

use kernel::Failure;

/// One thing the agent is to do in a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish<'a> {
    /// Keep this word in mind, and say it back.
    Keep(&'a str),
    /// Say which words it was told to keep in earlier turns.
    Recall,
    /// Say so many words at once.
    Words(u32),
    /// Say so many things, one soon after the other.
    Stream(u32),
    /// Say more than a pipe holds.
    Flood,
    /// Begin to speak, and go on for longer than any story waits.
    Dawdle,
    /// Begin to speak, and go on for a second or two.
    Linger,
    /// Use a tool about which it asks first.
    Ask,
    /// Write a file below its directory, with the tool that it has for that.
    Write,
    /// Ask which of `red` and `blue` it is to be, and say what was answered.
    Choose,
    /// Ask for words, and say them.
    AskWords,
    /// Say in which directory it works.
    Directory,
    /// Start so many children that are double-forked, in sessions of their own and deaf to SIGTERM; then end the turn.
    Children(u32),
    /// The same, and then do nothing.
    ChildrenAndDawdle(u32),
    /// Begin to speak, and be gone without a last word. The story strikes, too.
    Crash,
    /// Begin to speak, and then be deaf to everything polite. The story strikes, too.
    Hang,
    /// Go on under a new id.
    NewId,
    /// Fail like this without having acted.
    Fail(Failure),
    /// Act, then fail as Transient.
    FailAfter,
    /// Let so many of the next starts fail as Transient, then so many as Busy.
    FailStarts { transient: u32, busy: u32 },
}

/// The faults between an agent and its model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weather {
    /// Nobody listens there.
    NoServer,
    /// 401.
    Unauthorized,
    /// 429.
    TooMany,
    /// 529.
    Overloaded,
    /// The line is cut in the middle of the answer.
    Cut,
    /// In the middle of the answer comes something that is no JSON.
    Garbled,
}

impl Weather {
    /// All of it.
    pub const ALL: [Self; 6] =
        [Self::NoServer, Self::Unauthorized, Self::TooMany, Self::Overloaded, Self::Cut, Self::Garbled];

    /// The failure it has to come out as: a person can mend a sign-in, the rest passes by itself.
    pub fn failure(self) -> Failure {
        if self == Self::Unauthorized { Failure::Refused } else { Failure::Transient }
    }

    /// Its name in the table.
    pub fn fact(self) -> &'static str {
        match self {
            Self::NoServer => "no server",
            Self::Unauthorized => "401",
            Self::TooMany => "429",
            Self::Overloaded => "529",
            Self::Cut => "cut in the middle",
            Self::Garbled => "not JSON in the middle",
        }
    }
}

/// The blows to an agent's process from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blow {
    /// SIGKILL.
    Kill,
    /// SIGSTOP.
    Freeze,
}

/// Why a story does not apply, in words for the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cannot(pub String);

impl Cannot {
    /// A wish that is not granted.
    pub fn because(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}
