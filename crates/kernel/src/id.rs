//! Names of things: 128 random-enough bits with a prefix that says what they name.
//!
//! The kernel mints nothing (it has no randomness); whoever mints gives us the bits. An id prints as its prefix, an
//! underscore and 26 lower-case base-32 digits, so ids of one kind sort as their bits do, and there is exactly one
//! spelling of each.

use core::fmt;
use core::str::FromStr;

/// A text that is not an id of the kind that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAnId {
    /// The prefix that the id should have had.
    pub prefix: &'static str,
}

impl fmt::Display for NotAnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not an id: expected {}_ and 26 characters of 0-9, a-z without i, l, o, u", self.prefix)
    }
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u128);

        impl $name {
            /// The prefix of every id of this kind.
            pub const PREFIX: &'static str = $prefix;

            /// Names something by bits that somebody else minted.
            pub const fn from_bits(bits: u128) -> Self {
                Self(bits)
            }

            /// The bits alone, as stores keep them.
            pub const fn bits(self) -> u128 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                print(f, $prefix, self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                print(f, $prefix, self.0)
            }
        }

        impl FromStr for $name {
            type Err = NotAnId;
            fn from_str(text: &str) -> Result<Self, NotAnId> {
                parse($prefix, text).map(Self).ok_or(NotAnId { prefix: $prefix })
            }
        }
    )*};
}

ids! {
    /// People, sessions and agents that belong together.
    OrgId = "org";
    /// Somebody who may ask for things: a person, or a part of Homing with a narrow errand.
    PersonId = "usr";
    /// People who are given things together.
    GroupId = "grp";
    /// A credential. Not its secret.
    TokenId = "tok";
    /// A rule that answers questions of agents.
    RuleId = "rul";
    /// One conversation with an agent. Never contains a directory, a node or an agent's own id.
    SessionId = "ses";
    /// Something somebody said to a session.
    MessageId = "msg";
    /// One wish to change a session that is not a message: stop, edit, end …
    RequestId = "req";
    /// A question of an agent that waits for a person.
    ApprovalId = "apr";
    /// One running copy of Homing.
    NodeId = "nod";
}

impl PersonId {
    /// The engine itself, where it acts without being asked: it is in the audit like anybody else.
    pub const ENGINE: Self = Self(0);
}

const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const DIGITS_IN_ID: usize = 26;

fn print(f: &mut fmt::Formatter<'_>, prefix: &str, bits: u128) -> fmt::Result {
    let mut text = [0u8; DIGITS_IN_ID];
    let mut rest = bits;
    for digit in text.iter_mut().rev() {
        *digit = DIGITS[(rest & 31) as usize];
        rest >>= 5;
    }
    f.write_str(prefix)?;
    f.write_str("_")?;
    f.write_str(core::str::from_utf8(&text).expect("the digits are ASCII"))
}

fn parse(prefix: &str, text: &str) -> Option<u128> {
    let digits = text.strip_prefix(prefix)?.strip_prefix('_')?.as_bytes();
    if digits.len() != DIGITS_IN_ID {
        return None;
    }
    // 26 digits hold 130 bits: a first digit above 7 would be a second spelling of a smaller id.
    if !(b'0'..=b'7').contains(&digits[0]) {
        return None;
    }
    digits.iter().try_fold(0u128, |bits, digit| {
        let value = DIGITS.iter().position(|d| d == digit)?;
        Some(bits << 5 | value as u128)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn every_id_has_one_spelling_and_sorts_like_its_bits() {
        let mut before: Option<alloc::string::String> = None;
        for bits in [0, 1, 31, 32, u64::MAX as u128, u128::MAX / 3, u128::MAX] {
            let text = SessionId::from_bits(bits).to_string();
            assert_eq!(text.parse::<SessionId>(), Ok(SessionId::from_bits(bits)));
            assert!(before.is_none_or(|b| b < text));
            before = Some(text);
        }
    }

    #[test]
    fn an_id_of_another_kind_or_spelling_is_not_an_id() {
        let text = SessionId::from_bits(7).to_string();
        assert!(text.parse::<MessageId>().is_err());
        assert!(text.to_uppercase().parse::<SessionId>().is_err());
        assert!("ses_".parse::<SessionId>().is_err());
        assert!("ses_8zzzzzzzzzzzzzzzzzzzzzzzzz".parse::<SessionId>().is_err());
        assert!("ses_0000000000000000000000000i".parse::<SessionId>().is_err());
    }
}
