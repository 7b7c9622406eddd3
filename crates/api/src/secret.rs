//! A text that nobody is shown by accident: a password, a token, a link.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A secret on its way. Its `Debug` says nothing, and there is no `Display`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// The secret itself, for whoever has to use it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The secret itself, for whoever has to keep it.
    pub fn into_inner(self) -> String {
        self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_shown_by_accident() {
        assert_eq!(format!("{:?}", Some(Secret::from("hush".to_owned()))), "Some(Secret)");
    }
}
