//! Our key at push services, and what it says of us: RFC 8292. It is made of a seed, so that it needs no place of its own and is the
//! same after every start.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use openidconnect::url::Url;
use p256::ecdsa::signature::Signer;
use p256::ecdsa::{Signature, SigningKey};
use sha2::{Digest, Sha256};
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The time for which what we say of ourselves counts; a push service takes a day at most.
const GOOD_FOR: Duration = Duration::from_secs(12 * 60 * 60);
/// Of so many numbers one is a key: all but one in four thousand million are.
const CANDIDATES_MAX: u8 = 8;

pub(super) struct VapidKey {
    key: SigningKey,
    contact: Option<String>,
}

impl fmt::Debug for VapidKey {
    /// Never the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("VapidKey")
    }
}

impl VapidKey {
    pub(super) fn of(seed: &[u8; 32], contact: Option<String>) -> Self {
        let candidates = (0..CANDIDATES_MAX).map(|n| {
            let mut digest = Sha256::new();
            digest.update(b"web push key\n");
            digest.update([n]);
            digest.update(seed);
            <[u8; 32]>::from(digest.finalize())
        });
        let key = candidates.filter_map(|bytes| SigningKey::from_slice(&bytes).ok()).next();
        Self { key: key.expect("eight numbers that are no key in a row do not occur"), contact }
    }

    /// The public key, as browsers want it: a point, not compressed.
    pub(super) fn public(&self) -> Vec<u8> {
        self.key.verifying_key().to_sec1_point(false).as_bytes().to_vec()
    }

    /// The header that says who posts there; none if the address has no origin.
    pub(super) fn authorization(&self, endpoint: &str) -> Option<String> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let token = self.token(endpoint, now)?;
        Some(format!("vapid t={token}, k={}", BASE64_URL_SAFE_NO_PAD.encode(self.public())))
    }

    fn token(&self, endpoint: &str, now: Duration) -> Option<String> {
        let origin = Url::parse(endpoint).ok()?.origin();
        let audience = origin.is_tuple().then(|| origin.ascii_serialization())?;
        let mut claims = serde_json::json!({ "aud": audience, "exp": (now + GOOD_FOR).as_secs() });
        if let Some(contact) = &self.contact {
            claims["sub"] = contact.as_str().into();
        }
        let part = |json: String| BASE64_URL_SAFE_NO_PAD.encode(json);
        let head = serde_json::json!({ "typ": "JWT", "alg": "ES256" });
        let said = format!("{}.{}", part(head.to_string()), part(claims.to_string()));
        let signature: Signature = self.key.sign(said.as_bytes());
        Some(format!("{said}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature.to_bytes())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};

    #[test]
    fn another_library_believes_it_and_it_names_the_services_origin_alone() {
        let key = VapidKey::of(&[5; 32], Some("mailto:ops@example.org".to_owned()));
        let token =
            key.token("https://push.example:8443/secret/place?x=1", Duration::from_secs(1_000)).unwrap();
        let (said, signature) = token.rsplit_once('.').unwrap();
        let signature = BASE64_URL_SAFE_NO_PAD.decode(signature).unwrap();
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key.public());
        public.verify(said.as_bytes(), &signature).unwrap();
        assert!(public.verify(format!("{said}x").as_bytes(), &signature).is_err());
        let parts: Vec<serde_json::Value> = said
            .split('.')
            .map(|part| serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap())
            .collect();
        assert_eq!(parts[0], serde_json::json!({ "typ": "JWT", "alg": "ES256" }));
        assert_eq!(
            parts[1],
            serde_json::json!({ "aud": "https://push.example:8443", "exp": 44_200, "sub": "mailto:ops@example.org" })
        );
        assert_eq!(key.token("data:x", Duration::ZERO), None);
    }

    #[test]
    fn the_same_seed_makes_the_same_key() {
        let public = |seed: u8| VapidKey::of(&[seed; 32], None).public();
        assert_eq!(public(1), public(1));
        assert_ne!(public(1), public(2));
        assert_eq!((public(1).len(), public(1)[0]), (super::super::POINT_BYTES, 4));
    }
}
