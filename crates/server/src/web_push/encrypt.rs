//! Encryption for one browser alone: RFC 8291, one record of `aes128gcm` (RFC 8188) with a fresh key pair and salt each time.

use super::{AUTH_BYTES, POINT_BYTES};
use engine::PushPlace;
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::agreement::{ECDH_P256, EphemeralPrivateKey, UnparsedPublicKey, agree_ephemeral};
use ring::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};
use ring::rand::{SecureRandom, SystemRandom};

/// Whatever is said has this length before it is encrypted: its length says nothing.
const PADDED_BYTES: usize = 1_024;
const SALT_BYTES: usize = 16;
const TAG_BYTES: usize = 16;
/// Ends the last record; what follows it is padding.
const LAST: u8 = 2;

/// Why nothing was encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum EncryptError {
    #[error("there is too much to say")]
    TooLong,
    #[error("the browser's key is none")]
    BadKey,
    #[error("this machine has no randomness")]
    NoRandomness,
}

/// True if it can be a browser's public key.
pub(super) fn is_point(bytes: &[u8]) -> bool {
    bytes.len() == POINT_BYTES && p256::PublicKey::from_sec1_bytes(bytes).is_ok()
}

/// The body of a post: a header with salt and our public key, and one record.
pub(super) fn encrypt(words: &[u8], place: &PushPlace) -> Result<Vec<u8>, EncryptError> {
    let padding = PADDED_BYTES.checked_sub(words.len() + 1).ok_or(EncryptError::TooLong)?;
    if place.auth.len() != AUTH_BYTES {
        return Err(EncryptError::BadKey);
    }
    let random = SystemRandom::new();
    let none = |_| EncryptError::NoRandomness;
    let mut salt = [0; SALT_BYTES];
    random.fill(&mut salt).map_err(none)?;
    let ours = EphemeralPrivateKey::generate(&ECDH_P256, &random).map_err(none)?;
    let public = ours.compute_public_key().map_err(none)?;
    let theirs = UnparsedPublicKey::new(&ECDH_P256, place.p256dh.as_slice());
    let info = [b"WebPush: info\0", place.p256dh.as_slice(), public.as_ref()].concat();
    let secret: [u8; 32] = agree_ephemeral(ours, &theirs, |shared| {
        expand(&Salt::new(HKDF_SHA256, &place.auth).extract(shared), &info)
    })
    .map_err(|_| EncryptError::BadKey)?;
    let prk = Salt::new(HKDF_SHA256, &salt).extract(&secret);
    let key: [u8; 16] = expand(&prk, b"Content-Encoding: aes128gcm\0");
    let nonce: [u8; 12] = expand(&prk, b"Content-Encoding: nonce\0");

    let mut record = words.to_vec();
    record.push(LAST);
    record.resize(record.len() + padding, 0);
    let cipher = UnboundKey::new(&AES_128_GCM, &key).expect("the key has the cipher's length");
    LessSafeKey::new(cipher)
        .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut record)
        .expect("a record is far shorter than the cipher can take");

    let record_bytes = (PADDED_BYTES + TAG_BYTES) as u32;
    let mut body = salt.to_vec();
    body.extend(record_bytes.to_be_bytes());
    body.push(POINT_BYTES as u8);
    body.extend(public.as_ref());
    body.extend(record);
    Ok(body)
}

/// So many bytes of HKDF's output.
struct OutputBytes(usize);

impl KeyType for OutputBytes {
    fn len(&self) -> usize {
        self.0
    }
}

fn expand<const BYTES: usize>(prk: &Prk, info: &[u8]) -> [u8; BYTES] {
    let mut output = [0; BYTES];
    let info = [info];
    let expanded = prk.expand(&info, OutputBytes(BYTES)).expect("a few bytes are no more than HKDF gives");
    expanded.fill(&mut output).expect("the output has the length that was asked for");
    output
}

#[cfg(test)]
mod tests {
    use super::*;
    use web_push_native::p256::SecretKey;
    use web_push_native::p256::elliptic_curve::sec1::ToEncodedPoint;
    use web_push_native::{Auth, decrypt};

    fn browser(n: u8) -> (SecretKey, PushPlace) {
        let secret = SecretKey::from_slice(&[n; 32]).unwrap();
        let p256dh = secret.public_key().to_encoded_point(false).as_bytes().to_vec();
        let endpoint = "https://push.example/1".to_owned();
        (secret, PushPlace { endpoint, p256dh, auth: vec![n; AUTH_BYTES] })
    }

    #[test]
    fn an_independent_library_reads_it_with_the_browsers_keys_and_no_others() {
        let (secret, place) = browser(7);
        let body = encrypt("für dich allein".as_bytes(), &place).unwrap();
        let read = |secret: &SecretKey, auth: u8| {
            decrypt(body.clone(), secret, &Auth::clone_from_slice(&[auth; AUTH_BYTES]))
        };
        assert_eq!(read(&secret, 7).unwrap(), "für dich allein".as_bytes());
        assert!(read(&secret, 8).is_err(), "another secret");
        assert!(read(&browser(8).0, 7).is_err(), "another key");
        for place in [0, 20, 90, body.len() - 1] {
            let mut bent = body.clone();
            bent[place] ^= 1;
            assert!(decrypt(bent, &secret, &Auth::clone_from_slice(&[7; AUTH_BYTES])).is_err(), "{place}");
        }
    }

    #[test]
    fn its_length_says_nothing_and_it_is_never_the_same_twice() {
        let (secret, place) = browser(9);
        let (short, long) =
            (encrypt(b"", &place).unwrap(), encrypt(&[b'x'; PADDED_BYTES - 1], &place).unwrap());
        assert_eq!(short.len(), long.len());
        assert!(short.len() <= 4_096, "as much as every push service takes");
        let auth = Auth::clone_from_slice(&place.auth);
        assert_eq!(decrypt(long, &secret, &auth).unwrap(), [b'x'; PADDED_BYTES - 1]);
        let again = encrypt(b"", &place).unwrap();
        assert_ne!(again[..SALT_BYTES], short[..SALT_BYTES]);
        assert_ne!(again[21..86], short[21..86]);
        assert_eq!(encrypt(&[0; PADDED_BYTES], &place), Err(EncryptError::TooLong));
    }

    #[test]
    fn a_key_that_is_none_is_refused() {
        let (_, place) = browser(3);
        assert!(is_point(&place.p256dh));
        let mut bent = place.p256dh.clone();
        bent[40] ^= 1;
        for not in [vec![], vec![4; POINT_BYTES], bent, place.p256dh[..33].to_vec()] {
            assert!(!is_point(&not));
            assert_eq!(encrypt(b"x", &PushPlace { p256dh: not, ..place.clone() }), Err(EncryptError::BadKey));
        }
        assert_eq!(encrypt(b"x", &PushPlace { auth: vec![1; 15], ..place }), Err(EncryptError::BadKey));
    }
}
