//! Certificates: read from files, read again when the files change, and never in the way of connections that are open.

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// The most bytes in a file of certificates or a key. A long chain has a few thousand bytes.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// Everybody who is neither the owner nor of the file's group.
const OTHERS: u32 = 0o007;

/// Where the certificate and its key are, as PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, and after it those that lead to its authority.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// The certificate in use. Cheap to clone; all clones are the same.
#[derive(Debug, Clone)]
pub struct Tls(Arc<TlsState>);

#[derive(Debug)]
struct TlsState {
    files: TlsFiles,
    /// The files when they were last read, successfully or not.
    seen: Mutex<Option<[FileStamp; 2]>>,
    now: RwLock<Certificate>,
}

/// A certificate that can be used.
#[derive(Debug, Clone)]
pub struct Certificate {
    config: Arc<ServerConfig>,
    fingerprint: [u8; 32],
}

/// By what one sees that a file is another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileStamp {
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

/// Why a certificate cannot be used, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// See that it is there, and readable for the server.
    #[error("{}: {why}", path.display())]
    Unreadable { path: PathBuf, why: io::Error },
    /// Only its owner, and at most a group, may read a private key: `chmod 600`.
    #[error("{} is a private key that everybody on this machine can reach (its mode is {mode:o})", path.display())]
    Exposed { path: PathBuf, mode: u32 },
    /// Name the right file.
    #[error("{} has no {what} in PEM form", path.display())]
    NotPem { path: PathBuf, what: &'static str },
    /// Get another one: it cannot be used, or the two do not belong together.
    #[error("{}: {why}", path.display())]
    Unusable { path: PathBuf, why: rustls::Error },
}

impl TlsError {
    /// The remedy.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => {
                "the file must be there, and readable for the user who runs the server"
            }
            Self::Exposed { .. } => "take the right away with `chmod 600`, and think about a new key",
            Self::NotPem { .. } => {
                "`certificate` names the file with the chain (often fullchain.pem), `key` the one with the private key"
            }
            Self::Unusable { .. } => {
                "the certificate and the key must belong together; renewing writes one after the other"
            }
        }
    }
}

impl Tls {
    /// Reads the files.
    pub fn open(files: TlsFiles) -> Result<Self, TlsError> {
        let seen = stamps(&files);
        let now = read(&files)?;
        Ok(Self(Arc::new(TlsState { files, seen: Mutex::new(seen), now: RwLock::new(now) })))
    }

    /// True if the files are others than when they were last read.
    pub fn has_changed(&self) -> bool {
        *self.0.seen.lock().unwrap_or_else(PoisonError::into_inner) != stamps(&self.0.files)
    }

    /// Reads the files again. Nothing is used before `replace`.
    pub fn read_again(&self) -> Result<Certificate, TlsError> {
        // Looked at before they are read: whoever writes meanwhile is seen the next time.
        *self.0.seen.lock().unwrap_or_else(PoisonError::into_inner) = stamps(&self.0.files);
        read(&self.0.files)
    }

    /// Uses another one from now on. Connections that are open keep theirs.
    pub fn replace(&self, certificate: Certificate) {
        *self.0.now.write().unwrap_or_else(PoisonError::into_inner) = certificate;
    }

    /// The one in use.
    pub fn now(&self) -> Certificate {
        self.0.now.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Certificate {
    /// The SHA-256 of the certificate itself.
    pub fn fingerprint(&self) -> [u8; 32] {
        self.fingerprint
    }

    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        self.config.clone()
    }
}

fn read(files: &TlsFiles) -> Result<Certificate, TlsError> {
    let TlsFiles { certificate, key } = files;
    let not_pem = |path: &Path, what| TlsError::NotPem { path: path.to_owned(), what };
    let text = read_file(certificate, |_| Ok(()))?;
    let chain: Result<Vec<CertificateDer<'static>>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let chain = chain.map_err(|_| not_pem(certificate, "certificate"))?;
    let own = chain.first().ok_or_else(|| not_pem(certificate, "certificate"))?;
    let fingerprint = Sha256::digest(own).into();
    let text = read_file(key, |mode| {
        if mode & OTHERS == 0 { Ok(()) } else { Err(TlsError::Exposed { path: key.clone(), mode }) }
    })?;
    let private = PrivateKeyDer::from_pem_slice(&text).map_err(|_| not_pem(key, "private key"))?;
    let unusable = |why| TlsError::Unusable { path: certificate.clone(), why };
    let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(unusable)?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(unusable)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Certificate { config: Arc::new(config), fingerprint })
}

/// The content of a file, if its mode is right. Mode and words are those of one and the same file.
fn read_file(path: &Path, check: impl FnOnce(u32) -> Result<(), TlsError>) -> Result<Vec<u8>, TlsError> {
    let unreadable = |why| TlsError::Unreadable { path: path.to_owned(), why };
    let file = File::open(path).map_err(unreadable)?;
    check(file.metadata().map_err(unreadable)?.mode() & 0o777)?;
    let mut text = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut text).map_err(unreadable)?;
    Ok(text)
}

fn stamps(files: &TlsFiles) -> Option<[FileStamp; 2]> {
    Some([stamp(&files.certificate)?, stamp(&files.key)?])
}

fn stamp(path: &Path) -> Option<FileStamp> {
    let there = std::fs::metadata(path).ok()?;
    Some(FileStamp { inode: there.ino(), bytes: there.size(), changed: (there.ctime(), there.ctime_nsec()) })
}
