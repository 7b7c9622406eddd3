//! Whom we believe when a server shows its certificate, and how we say that we do not.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls_platform_verifier::Verifier;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Whose certificates we believe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// Nobody's: nothing is encrypted on this way, and no certificate is read.
    Nobodys,
    /// Those of the authorities that this system trusts and, if a file is named, of those in it.
    Authorities { more: Option<PathBuf> },
    /// Exactly these, by their SHA-256, whatever name they are for: we were told about them by a better way.
    Exactly(Vec<[u8; 32]>),
}

/// Why a server is not believed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsRefusal {
    /// Name the authority's certificate, if it is a good one.
    #[error("its certificate is signed by nobody we trust")]
    UnknownIssuer,
    /// Call it by one of its names.
    #[error("its certificate is for {}, and not for {asked}", names.join(", "))]
    WrongName { asked: String, names: Vec<String> },
    /// It has to be renewed.
    #[error("its certificate has expired")]
    Expired,
    /// One of the two clocks is wrong.
    #[error("its certificate is not valid yet")]
    NotYetValid,
    /// It is an authority's own: those are not for servers.
    #[error("its certificate is one of an authority, and not of a server")]
    AuthoritysOwn,
    /// It is not the one that the server has written down.
    #[error("its certificate is not the one of the server that was started here")]
    Another,
    /// Is it http instead?
    #[error("it does not speak TLS")]
    NotTls,
    #[error("{0}")]
    Other(String),
}

impl TlsRefusal {
    /// If this is why a connection failed.
    pub(crate) fn of(error: &(dyn std::error::Error + 'static)) -> Option<Self> {
        let mut cause = Some(error);
        while let Some(error) = cause {
            if let Some(error) = error.downcast_ref::<Error>() {
                return Some(Self::from(error));
            }
            // An error of the system does not name the one that it was made of as its source.
            let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
            cause =
                wrapped.map(|error| error as &(dyn std::error::Error + 'static)).or_else(|| error.source());
        }
        None
    }
}

impl From<&Error> for TlsRefusal {
    fn from(error: &Error) -> Self {
        let certificate = match error {
            Error::InvalidCertificate(certificate) => certificate,
            Error::InvalidMessage(_) => return Self::NotTls,
            other => return Self::Other(other.to_string()),
        };
        match certificate {
            // An authority of the same name as one we know, with another key, is another one.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => Self::UnknownIssuer,
            CertificateError::NotValidForNameContext { expected, presented } => {
                Self::WrongName { asked: expected.to_str().into_owned(), names: plain_names(presented) }
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => Self::Expired,
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => Self::NotYetValid,
            CertificateError::ApplicationVerificationFailure => Self::Another,
            other if other.to_string().contains("CaUsedAsEndEntity") => Self::AuthoritysOwn,
            other => Self::Other(other.to_string()),
        }
    }
}

/// Names as people write them; the library says of what kind each is.
fn plain_names(presented: &[String]) -> Vec<String> {
    let plain = |name: &String| {
        let inner = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')')).unwrap_or(name);
        inner.trim_matches('"').to_owned()
    };
    presented.iter().map(plain).collect()
}

/// The configuration of a client of TLS. An error says which file cannot be used.
pub fn client_config(trust: &Trust) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let words = |error: Error| error.to_string();
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(words)?;
    let config = match trust {
        Trust::Nobodys => builder.with_root_certificates(RootCertStore::empty()),
        Trust::Authorities { more } => {
            let more = more.as_deref().map(authorities).transpose()?.unwrap_or_default();
            let verifier = Verifier::new_with_extra_roots(more, provider).map_err(words)?;
            builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
        }
        Trust::Exactly(known) => {
            let verifier = PinnedCertificates { known: known.clone(), provider };
            builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
        }
    };
    Ok(config.with_no_client_auth())
}

fn authorities(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let named = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
    let text = std::fs::read(path).map_err(|why| named(&why))?;
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match all {
        Ok(all) if !all.is_empty() => Ok(all),
        Ok(_) => Err(named(&"there is no certificate in PEM form in it")),
        Err(why) => Err(named(&why)),
    }
}

/// Believes whoever has one of a few certificates and proves that the key is theirs. Names and dates do not matter.
#[derive(Debug)]
struct PinnedCertificates {
    known: Vec<[u8; 32]>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for PinnedCertificates {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let shown: [u8; 32] = Sha256::digest(end_entity).into();
        if self.known.contains(&shown) {
            return Ok(ServerCertVerified::assertion());
        }
        Err(CertificateError::ApplicationVerificationFailure.into())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
