//! Secrets as people and programs hold them: 256 random bits, written in letters that fit into a URL or a header.
//!
//! Nobody here keeps one: what is stored is its hash. A prefix says what it is for, so that scanners and people recognise
//! one that has got loose.

use sha2::{Digest, Sha256};
use std::fmt;
use store::Purpose;

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// A secret on its way to whoever it is for. Shows itself nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// A credential's, with its prefix; a cookie's has none, nobody copies it by hand.
    pub fn of_credential(purpose: Purpose, bytes: [u8; 32]) -> Self {
        let letter = match purpose {
            Purpose::Machine => "hmg_m_",
            Purpose::Cli => "hmg_c_",
            Purpose::Api => "hmg_a_",
            Purpose::Turn => "hmg_t_",
            Purpose::Browser => "",
        };
        Self(format!("{letter}{}", letters_of(&bytes)))
    }

    /// A link's code.
    pub fn of_link(bytes: [u8; 32]) -> Self {
        Self(letters_of(&bytes))
    }

    /// The secret itself, for whoever it is for.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The hash that is stored of it.
    pub fn hash(&self) -> [u8; 32] {
        hash_of(&self.0)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// The hash that is stored of a secret that somebody came with.
pub fn hash_of(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

/// Base64 for URLs, without padding: 43 letters for 32 bytes.
fn letters_of(bytes: &[u8]) -> String {
    let mut letters = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let at = |n: usize| u32::from(three.get(n).copied().unwrap_or_default());
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for n in 0..=three.len() {
            let six = bits >> (18 - 6 * n) & 63;
            letters.push(char::from(LETTERS[six as usize]));
        }
    }
    letters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_43_letters_behind_its_prefix_and_shows_itself_nowhere() {
        let secret = Secret::of_credential(Purpose::Api, [0xff; 32]);
        assert_eq!(secret.reveal(), format!("hmg_a_{}8", "_".repeat(42)));
        assert_eq!(format!("{secret:?}"), "Secret");
        assert_eq!(Secret::of_link([0; 32]).reveal().len(), 43);
        assert_eq!(Secret::of_credential(Purpose::Browser, [0; 32]), Secret::of_link([0; 32]));
    }

    #[test]
    fn letters_are_those_of_the_standard() {
        assert_eq!(letters_of(b"Man"), "TWFu");
        assert_eq!(letters_of(b"Ma"), "TWE");
        assert_eq!(letters_of(b"M"), "TQ");
        assert_eq!(letters_of(&[0xfb, 0xff]), "-_8");
    }
}
