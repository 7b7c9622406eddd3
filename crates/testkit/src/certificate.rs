//! Certificates for servers under test, made when they are needed: nothing that expires lies in the repository.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};

/// Somebody who signs certificates.
#[derive(Debug)]
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    own: Signed,
}

/// A certificate and its key, as PEM.
#[derive(Debug, Clone)]
pub struct Signed {
    pub certificate: String,
    pub key: String,
}

impl Authority {
    /// A new one that nobody knows yet.
    #[expect(clippy::new_without_default, reason = "each is another one")]
    pub fn new() -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut asked = CertificateParams::new(Vec::new()).expect("no names are no wrong names");
        asked.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = asked.self_signed(&key).expect("it signs itself").pem();
        let own = Signed { certificate, key: key.serialize_pem() };
        Self { issuer: Issuer::new(asked, key), own }
    }

    /// Its own certificate, for those who shall trust it.
    pub fn pem(&self) -> &str {
        &self.own.certificate
    }

    /// The same with its key, for a server that mistakes it for one of its own.
    pub fn own(&self) -> &Signed {
        &self.own
    }

    /// A certificate for these names, good for a long time.
    pub fn sign(&self, names: &[&str]) -> Signed {
        self.sign_until(names, 2999)
    }

    /// A certificate for these names, good until the beginning of a year.
    pub fn sign_until(&self, names: &[&str], year: i32) -> Signed {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut asked = CertificateParams::new(names).expect("names that can be in a certificate");
        (asked.not_before, asked.not_after) = (date_time_ymd(2000, 1, 1), date_time_ymd(year, 1, 1));
        let key = KeyPair::generate().expect("a key");
        let certificate = asked.signed_by(&key, &self.issuer).expect("an authority signs").pem();
        Signed { certificate, key: key.serialize_pem() }
    }
}

impl Signed {
    /// Writes `certificate.pem` and `key.pem`, the key for its owner only, and says where they are. Each appears at once.
    pub fn write(&self, dir: &Path) -> (PathBuf, PathBuf) {
        let put = |name: &str, text: &str| {
            let (new, path) = (dir.join("new.pem"), dir.join(name));
            fs::write(&new, text).expect("a file");
            fs::set_permissions(&new, fs::Permissions::from_mode(0o600)).expect("our own file");
            fs::rename(&new, &path).expect("our own directory");
            path
        };
        (put("certificate.pem", &self.certificate), put("key.pem", &self.key))
    }
}
