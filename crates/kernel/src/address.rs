//! Addresses of conversations: a scheme and its parts, canonical, escaped.
//!
//! An address is printed as `scheme:part/part/…`. Whatever is not a letter, a digit or one of `. _ ~ -` is printed as `%`
//! and two upper-case hex digits per byte, so no part can look like two, and `parse(print(a)) == a`. `parse` takes the
//! canonical spelling only: two texts never name one conversation, so they may be compared, stored and indexed as texts.
//!
//! No service is named here. A door owns schemes, and says of each how many parts it has and which of them names a person
//! or a client (`Scheme`); `access` compares that with who asks. An address whose scheme no door owns stays what it is, and
//! nobody can use it.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

/// A part longer than this is nobody's thread, directory or key.
pub const PART_BYTES_MAX: usize = 1_024;
/// A conversation that takes more parts to name is none.
pub const ADDRESS_PARTS_MAX: usize = 8;
/// A scheme is a word.
pub const SCHEME_BYTES_MAX: usize = 32;

/// A name for something outside that people talk in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    scheme: String,
    parts: Vec<Part>,
}

/// An address scheme, as the door that owns it declares it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scheme {
    /// The word before the colon.
    pub name: &'static str,
    /// The form of its addresses, for people: `cli:HOST/USER/DIR`.
    pub form: &'static str,
    /// The numbers of parts that its addresses may have.
    pub parts: &'static [usize],
    /// The part that names the person whose conversation it is, if one does: they alone may use it (law 6).
    pub person: Option<usize>,
    /// The part that names the client, if one does: a credential for one client may use only its own.
    pub client: Option<usize>,
    /// True if each person has these addresses for themselves although none names them: the same words of two people are two
    /// conversations (law 6).
    pub each_person: bool,
}

impl Scheme {
    /// Checks that this is one of its addresses, or says how they are written.
    pub fn check(&self, address: &Address) -> Result<(), NotAnAddress> {
        if self.owns(address) { Ok(()) } else { Err(NotAnAddress::WrongParts { form: self.form }) }
    }

    /// True if this is one of its addresses.
    pub fn owns(&self, address: &Address) -> bool {
        address.scheme == self.name && self.parts.contains(&address.parts.len())
    }

    /// True if its addresses are somebody's own, by their words or by who uses them.
    pub fn is_personal(&self) -> bool {
        self.person.is_some() || self.each_person
    }

    /// The person to whom one of its addresses belongs by its own words.
    pub fn person_of<'a>(&self, address: &'a Address) -> Option<&'a str> {
        self.person.and_then(|at| address.parts.get(at)).map(Part::as_str)
    }

    /// The client to whom one of its addresses belongs by its own words.
    pub fn client_of<'a>(&self, address: &'a Address) -> Option<&'a str> {
        self.client.and_then(|at| address.parts.get(at)).map(Part::as_str)
    }
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
    /// The text before the colon is no word.
    BadScheme,
    /// There are more parts than `ADDRESS_PARTS_MAX`.
    TooManyParts,
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
            Self::BadScheme => write!(
                f,
                "a scheme is a lower-case letter and up to {} lower-case letters, digits and dashes",
                SCHEME_BYTES_MAX - 1
            ),
            Self::TooManyParts => write!(f, "an address has at most {ADDRESS_PARTS_MAX} parts"),
            Self::WrongParts { form } => write!(f, "wrong number of parts: write {form}"),
            Self::EmptyPart => f.write_str("a part of the address is empty"),
            Self::PartTooLong => write!(f, "a part of the address is longer than {PART_BYTES_MAX} bytes"),
            Self::BadEscape => f.write_str("a % must be followed by two hex digits that make UTF-8"),
            Self::NotCanonical { canonical } => write!(f, "not the canonical spelling: write {canonical}"),
        }
    }
}

impl Address {
    /// The address of this scheme with these parts.
    pub fn new(
        scheme: impl Into<String>,
        parts: impl IntoIterator<Item = Part>,
    ) -> Result<Self, NotAnAddress> {
        let (scheme, parts) = (scheme.into(), parts.into_iter().collect::<Vec<_>>());
        match parts.len() {
            0 => Err(NotAnAddress::EmptyPart),
            1..=ADDRESS_PARTS_MAX if is_scheme(&scheme) => Ok(Self { scheme, parts }),
            1..=ADDRESS_PARTS_MAX => Err(NotAnAddress::BadScheme),
            _ => Err(NotAnAddress::TooManyParts),
        }
    }

    /// The word before the colon.
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// The parts after it, unescaped.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }
}

fn is_scheme(word: &str) -> bool {
    let mut bytes = word.bytes();
    word.len() <= SCHEME_BYTES_MAX
        && bytes.next().is_some_and(|first| first.is_ascii_lowercase())
        && bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.scheme)?;
        for (index, part) in self.parts.iter().enumerate() {
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
        let parts = rest.split('/').take(ADDRESS_PARTS_MAX + 1).map(unescape);
        let address = Self::new(scheme, parts.collect::<Result<Vec<_>, _>>()?)?;
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
