//! Addresses of conversations: typed, canonical, escaped.
//!
//! An address is a scheme and its parts, printed as `scheme:part/part/…`. Whatever is not a letter, a digit or one of
//! `. _ ~ -` is printed as `%` and two upper-case hex digits per byte, so no part can look like two, and
//! `parse(print(a)) == a`. `parse` takes the canonical spelling only: two texts never name one conversation, so they
//! may be compared, stored and indexed as texts.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

/// A part longer than this is nobody's thread, directory or key.
pub const PART_BYTES_MAX: usize = 1_024;

/// A name for something outside that people talk in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// One thread in one channel of one Slack team.
    Slack { team: Part, channel: Part, thread: Part },
    /// One chat of one person in the browser.
    Web { user: Part, chat: Part },
    /// One directory in one person's terminals on one host.
    Cli { host: Part, user: Part, directory: Part },
    /// A schedule that keeps one conversation.
    Schedule { name: Part },
    /// One firing of a schedule that starts anew each time.
    Firing { name: Part, time: Part },
    /// Whatever a program behind the HTTP API calls a conversation.
    Api { client: Part, key: Part },
    /// One conversation of an editor.
    Acp { client: Part, id: Part },
    /// One conversation of a tool caller.
    Mcp { client: Part, id: Part },
}

/// One part of an address: some text, never empty, never longer than `PART_BYTES_MAX`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Part(String);

impl Part {
    /// Takes any text that can be part of an address.
    pub fn new(text: impl Into<String>) -> Result<Self, NotAnAddress> {
        let text = text.into();
        match text.len() {
            0 => Err(NotAnAddress::EmptyPart),
            1..=PART_BYTES_MAX => Ok(Self(text)),
            _ => Err(NotAnAddress::PartTooLong),
        }
    }

    /// The text, unescaped.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Why a text is not an address, in words for the person who typed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotAnAddress {
    /// There is no `scheme:` in front.
    NoScheme,
    /// The scheme is not one of ours.
    UnknownScheme,
    /// The scheme takes another number of parts.
    WrongParts { form: &'static str },
    /// A part is empty.
    EmptyPart,
    /// A part is longer than `PART_BYTES_MAX`.
    PartTooLong,
    /// A `%` is not followed by two hex digits, or the bytes are not UTF-8.
    BadEscape,
    /// It means something, but that has another spelling.
    NotCanonical { canonical: String },
}

impl fmt::Display for NotAnAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoScheme => {
                f.write_str("an address begins with a scheme and a colon, as in api:CLIENT/KEY")
            }
            Self::UnknownScheme => {
                f.write_str("unknown scheme: use one of slack, web, cli, schedule, api, acp, mcp")
            }
            Self::WrongParts { form } => write!(f, "wrong number of parts: write {form}"),
            Self::EmptyPart => f.write_str("a part of the address is empty"),
            Self::PartTooLong => write!(f, "a part of the address is longer than {PART_BYTES_MAX} bytes"),
            Self::BadEscape => f.write_str("a % must be followed by two hex digits that make UTF-8"),
            Self::NotCanonical { canonical } => write!(f, "not the canonical spelling: write {canonical}"),
        }
    }
}

impl Address {
    /// The person this address belongs to by its own words, if it names one. A credential of somebody else must not
    /// use it (law 6). What a program calls itself (`api:CLIENT`) is checked against the credential's client name.
    pub fn principal(&self) -> Option<&Part> {
        match self {
            Self::Web { user, .. } | Self::Cli { user, .. } => Some(user),
            Self::Slack { .. }
            | Self::Schedule { .. }
            | Self::Firing { .. }
            | Self::Api { .. }
            | Self::Acp { .. }
            | Self::Mcp { .. } => None,
        }
    }

    /// The client this address belongs to by its own words, if it names one.
    pub fn client(&self) -> Option<&Part> {
        match self {
            Self::Api { client, .. } | Self::Acp { client, .. } | Self::Mcp { client, .. } => Some(client),
            Self::Slack { .. }
            | Self::Web { .. }
            | Self::Cli { .. }
            | Self::Schedule { .. }
            | Self::Firing { .. } => None,
        }
    }

    /// The word before the colon.
    pub fn scheme(&self) -> &'static str {
        self.split().0
    }

    fn split(&self) -> (&'static str, Vec<&Part>) {
        use alloc::vec;
        match self {
            Self::Slack { team, channel, thread } => ("slack", vec![team, channel, thread]),
            Self::Web { user, chat } => ("web", vec![user, chat]),
            Self::Cli { host, user, directory } => ("cli", vec![host, user, directory]),
            Self::Schedule { name } => ("schedule", vec![name]),
            Self::Firing { name, time } => ("schedule", vec![name, time]),
            Self::Api { client, key } => ("api", vec![client, key]),
            Self::Acp { client, id } => ("acp", vec![client, id]),
            Self::Mcp { client, id } => ("mcp", vec![client, id]),
        }
    }

    fn join(scheme: &str, parts: Vec<Part>) -> Result<Self, NotAnAddress> {
        let mut parts = parts.into_iter();
        let mut part = || parts.next();
        let (address, form) = match scheme {
            "slack" => (
                (|| Some(Self::Slack { team: part()?, channel: part()?, thread: part()? }))(),
                "slack:TEAM/CHANNEL/THREAD_TS",
            ),
            "web" => ((|| Some(Self::Web { user: part()?, chat: part()? }))(), "web:USER/CHAT"),
            "cli" => (
                (|| Some(Self::Cli { host: part()?, user: part()?, directory: part()? }))(),
                "cli:HOST/USER/DIR",
            ),
            "schedule" => (
                (|| {
                    let name = part()?;
                    Some(match part() {
                        Some(time) => Self::Firing { name, time },
                        None => Self::Schedule { name },
                    })
                })(),
                "schedule:NAME or schedule:NAME/TIME",
            ),
            "api" => ((|| Some(Self::Api { client: part()?, key: part()? }))(), "api:CLIENT/KEY"),
            "acp" => ((|| Some(Self::Acp { client: part()?, id: part()? }))(), "acp:CLIENT/ID"),
            "mcp" => ((|| Some(Self::Mcp { client: part()?, id: part()? }))(), "mcp:CLIENT/ID"),
            _ => return Err(NotAnAddress::UnknownScheme),
        };
        match (address, parts.next()) {
            (Some(address), None) => Ok(address),
            _ => Err(NotAnAddress::WrongParts { form }),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, parts) = self.split();
        f.write_str(scheme)?;
        for (index, part) in parts.into_iter().enumerate() {
            f.write_str(if index == 0 { ":" } else { "/" })?;
            escape(f, &part.0)?;
        }
        Ok(())
    }
}

impl FromStr for Address {
    type Err = NotAnAddress;

    fn from_str(text: &str) -> Result<Self, NotAnAddress> {
        let (scheme, rest) = text.split_once(':').ok_or(NotAnAddress::NoScheme)?;
        let parts = rest.split('/').map(unescape).collect::<Result<Vec<_>, _>>()?;
        let address = Self::join(scheme, parts)?;
        let canonical = alloc::format!("{address}");
        if canonical == text { Ok(address) } else { Err(NotAnAddress::NotCanonical { canonical }) }
    }
}

fn escape(f: &mut fmt::Formatter<'_>, part: &str) -> fmt::Result {
    for byte in part.bytes() {
        if byte.is_ascii_alphanumeric() || b"._~-".contains(&byte) {
            write!(f, "{}", byte as char)?;
        } else {
            write!(f, "%{byte:02X}")?;
        }
    }
    Ok(())
}

fn unescape(text: &str) -> Result<Part, NotAnAddress> {
    // An escaped byte is three characters: nothing longer can come down to a part of the allowed length.
    if text.len() > 3 * PART_BYTES_MAX {
        return Err(NotAnAddress::PartTooLong);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if *first != b'%' {
            bytes.push(*first);
            rest = after;
            continue;
        }
        let (high, low) = match after {
            [high, low, ..] => (hex(*high)?, hex(*low)?),
            _ => return Err(NotAnAddress::BadEscape),
        };
        bytes.push(high << 4 | low);
        rest = &after[2..];
    }
    Part::new(String::from_utf8(bytes).map_err(|_| NotAnAddress::BadEscape)?)
}

fn hex(digit: u8) -> Result<u8, NotAnAddress> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        b'A'..=b'F' => Ok(digit - b'A' + 10),
        _ => Err(NotAnAddress::BadEscape),
    }
}
