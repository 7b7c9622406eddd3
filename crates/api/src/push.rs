//! Being told on a device: of questions, and of turns that are over.

use crate::{At, Invalid};
use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// Bytes of the address of a push service.
const ENDPOINT_BYTES_MAX: usize = 2_048;
/// Bytes of a key, as text.
const KEY_BYTES_MAX: usize = 128;

/// Where you are told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Pushes {
    /// The key of this server, in base64url: what a browser asks its push service for us with. Without one this server tells nobody.
    #[schema(required)]
    pub public_key: Option<String>,
    /// The browsers in which you are told, the oldest first.
    pub items: Vec<Push>,
}

/// A browser in which you are told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Push {
    /// The credential that it belongs to, and goes with.
    pub id: String,
    /// The push service, by its name.
    pub service: String,
    /// When you asked for it.
    pub since: At,
    /// True if it is the credential that you are asking with.
    pub here: bool,
}

/// A wish to be told in a browser: its push subscription, as `PushSubscription.toJSON()` has it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPush {
    /// The address at the push service: https, and public.
    #[schema(max_length = 2048)]
    pub endpoint: String,
    /// The keys for what this browser alone can read.
    pub keys: PushKeys,
}

/// The keys of a push subscription, in base64url.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PushKeys {
    /// The browser's public key.
    #[schema(max_length = 128)]
    pub p256dh: String,
    /// The secret that it shares with us.
    #[schema(max_length = 128)]
    pub auth: String,
}

/// Nothing that lets somebody send there.
impl fmt::Debug for NewPush {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewPush").finish_non_exhaustive()
    }
}

impl fmt::Debug for PushKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PushKeys").finish_non_exhaustive()
    }
}

impl NewPush {
    /// Checks that it is no longer than such a thing is.
    pub fn check(&self) -> Result<(), Invalid> {
        let bounds = [
            ("endpoint", &self.endpoint, ENDPOINT_BYTES_MAX),
            ("keys.p256dh", &self.keys.p256dh, KEY_BYTES_MAX),
            ("keys.auth", &self.keys.auth, KEY_BYTES_MAX),
        ];
        match bounds.into_iter().find(|(_, text, max)| text.len() > *max) {
            Some((field, _, max)) => Err(Invalid { field, reason: format!("longer than {max} bytes") }),
            None => Ok(()),
        }
    }
}
