//! The seal of a data directory: authenticated encryption with the key in `DIR/key`, which no backup of the database
//! holds, and the keys that are made of it: the audit's, and ours at push services. Made at the first start; without it, what was sealed stays closed.

use std::fmt;
use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use anyhow::{Context, Result};
use chacha20poly1305::aead::{Aead, Generate, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use engine::ChainKey;
use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::exit::{CliError, Exit};

/// The file's name in the data directory.
const FILE: &str = "key";
const KEY_BYTES: usize = 32;
/// Random ones of this length never meet.
const NONCE_BYTES: usize = 24;
/// The form of what is sealed: this byte, the nonce, the rest.
const FORM: u8 = 1;

/// Seals with one directory's key.
pub(crate) struct FileSeal {
    cipher: XChaCha20Poly1305,
    chain_key: ChainKey,
    push_seed: [u8; 32],
    is_new: bool,
}

impl fmt::Debug for FileSeal {
    /// Never the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FileSeal")
    }
}

impl FileSeal {
    /// The seal of a data directory that this process holds, with a fresh key if there is none.
    pub(crate) fn of(dir: &Path) -> Result<Self> {
        let path = dir.join(FILE);
        let (bytes, is_new) = match fs::read(&path) {
            Ok(bytes) => (bytes, false),
            Err(why) if why.kind() == ErrorKind::NotFound => (make(&path)?, true),
            Err(why) => return Err(why).context(format!("{} cannot be read", path.display())),
        };
        let mode = fs::metadata(&path)?.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(CliError::new(Exit::Failed, format!("{} can be read by others", path.display()))
                .hint(format!("chmod 600 {}, and think about who may have read it", path.display()))
                .into());
        }
        let Ok(key) = <[u8; KEY_BYTES]>::try_from(bytes.as_slice()) else {
            return Err(CliError::new(Exit::Failed, format!("{} is not a key", path.display()))
                .hint(
                    "put the right file back; or move it away, and people have to give their sign-ins again",
                )
                .into());
        };
        let cipher = XChaCha20Poly1305::new(&Key::from(key));
        let push_seed = made_of(&key, b"web push");
        Ok(Self { cipher, chain_key: chain_key(&key), push_seed, is_new })
    }

    /// The key of a directory that may have none: nothing is made.
    pub(crate) fn there(dir: &Path) -> Result<Option<Self>> {
        if dir.join(FILE).exists() { Self::of(dir).map(Some) } else { Ok(None) }
    }

    /// The seed of our key at push services.
    pub(crate) fn push_seed(&self) -> [u8; 32] {
        self.push_seed
    }

    /// True if the key was made just now.
    pub(crate) fn is_new(&self) -> bool {
        self.is_new
    }
}

/// The audit's key is made of this one, and not the same: whoever learns the one does not know the other.
fn chain_key(key: &[u8; KEY_BYTES]) -> ChainKey {
    ChainKey(made_of(key, b"audit chain"))
}

fn made_of(key: &[u8; KEY_BYTES], purpose: &[u8]) -> [u8; 32] {
    let mut mac = <Hmac<Sha256> as hmac::KeyInit>::new_from_slice(key).expect("a key of any length will do");
    mac.update(purpose);
    mac.finalize().into_bytes().into()
}

/// Written whole under another name first: a key of which half was lost would open nothing.
fn make(path: &Path) -> Result<Vec<u8>> {
    let key = Key::generate();
    let part = path.with_extension("part");
    let _ = fs::remove_file(&part);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part)?;
    file.write_all(&key)?;
    file.sync_all()?;
    fs::rename(&part, path)?;
    if let Some(dir) = path.parent() {
        fs::File::open(dir)?.sync_all()?;
    }
    Ok(key.to_vec())
}

impl engine::Seal for FileSeal {
    fn seal(&self, about: &str, plain: &[u8]) -> Result<Vec<u8>, engine::SealError> {
        let nonce = XNonce::generate();
        let payload = Payload { msg: plain, aad: about.as_bytes() };
        let sealed = self.cipher.encrypt(&nonce, payload);
        let sealed = sealed.map_err(|_| engine::SealError("it cannot be sealed".to_owned()))?;
        Ok([&[FORM], nonce.as_slice(), &sealed].concat())
    }

    fn chain_key(&self) -> ChainKey {
        self.chain_key.clone()
    }

    fn open(&self, about: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        let (form, rest) = sealed.split_first()?;
        let (nonce, sealed) = rest.split_at_checked(NONCE_BYTES)?;
        let nonce = XNonce::try_from(nonce).ok().filter(|_| *form == FORM)?;
        self.cipher.decrypt(&nonce, Payload { msg: sealed, aad: about.as_bytes() }).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::Seal;

    #[test]
    fn what_was_sealed_is_opened_with_the_same_key_about_the_same_thing_and_not_otherwise() {
        let dir = tempfile::tempdir().unwrap();
        let seal = FileSeal::of(dir.path()).unwrap();
        let sealed = seal.seal("ann's", b"hush").unwrap();
        assert!(!sealed.windows(4).any(|bytes| bytes == b"hush"));
        assert_ne!(seal.seal("ann's", b"hush").unwrap(), sealed, "never the same twice");
        let again = FileSeal::of(dir.path()).unwrap();
        assert_eq!(again.open("ann's", &sealed).as_deref(), Some(&b"hush"[..]));
        assert_eq!(again.open("bob's", &sealed), None);
        let mut bent = sealed.clone();
        *bent.last_mut().unwrap() ^= 1;
        assert_eq!(again.open("ann's", &bent), None);
        for length in 0..sealed.len() {
            assert_eq!(again.open("ann's", &sealed[..length]), None);
        }
        fs::remove_file(dir.path().join(FILE)).unwrap();
        assert_eq!(FileSeal::of(dir.path()).unwrap().open("ann's", &sealed), None, "another key");
    }

    #[test]
    fn a_key_is_its_owners_alone_and_is_never_replaced_by_itself() {
        let dir = tempfile::tempdir().unwrap();
        FileSeal::of(dir.path()).unwrap();
        let path = dir.path().join(FILE);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(FileSeal::of(dir.path()).is_err());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, b"short").unwrap();
        assert!(FileSeal::of(dir.path()).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"short", "damage is told, and nothing is overwritten");
    }
}
