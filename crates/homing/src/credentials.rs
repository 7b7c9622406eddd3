//! Credentials that `homing login` keeps: for each server that somebody has signed in to, the token to use there.
//!
//! The file is `$XDG_CONFIG_HOME/homing/credentials.json` (`~/.config/homing/credentials.json`), for its owner alone, and
//! it appears whole or not at all. One that others can read is refused: whoever could read it may have.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use api::Secret;
use serde::{Deserialize, Serialize};

use crate::data_dir::write_whole;
use crate::exit::{CliError, Exit};

/// Every server that somebody has signed in to.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Credentials {
    /// The one that is used if none is named: the one of the last sign-in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    current: Option<String>,
    /// By their URLs.
    #[serde(default)]
    servers: BTreeMap<String, StoredCredential>,
}

/// The credential of one sign-in, as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredCredential {
    /// The secret to send.
    pub(crate) token: Secret,
    /// Its person, for people.
    pub(crate) handle: String,
}

impl Credentials {
    /// The file's content; nothing if there is no file.
    pub(crate) fn load() -> Result<Self> {
        match path() {
            Some(path) => Self::read(&path),
            None => Ok(Self::default()),
        }
    }

    fn read(path: &Path) -> Result<Self> {
        let mode = match fs::metadata(path) {
            Ok(found) => found.permissions().mode(),
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(why) => return Err(why).with_context(|| path.display().to_string()),
        };
        if mode & 0o077 != 0 {
            return Err(CliError::new(Exit::Usage, format!("{} can be read by others", path.display()))
                .hint(format!(
                    "chmod 600 {}, and if somebody may have read it: `homing logout` and sign in again",
                    path.display()
                ))
                .into());
        }
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        // What serde says about it may quote what stands there.
        serde_json::from_str(&text).map_err(|_| {
            CliError::new(Exit::Usage, format!("{} is not what `homing login` writes", path.display()))
                .hint("remove it and sign in again with `homing login`")
                .into()
        })
    }

    /// The server that is used if none is named.
    pub(crate) fn current(&self) -> Option<(&str, &StoredCredential)> {
        let url = self.current.as_deref()?;
        Some((url, self.servers.get(url)?))
    }

    /// The sign-in at this server.
    pub(crate) fn at(&self, url: &str) -> Option<&StoredCredential> {
        self.servers.get(plain(url))
    }

    /// Keeps a sign-in, in place of the one that this server had; it is the one that is used from now on.
    pub(crate) fn keep(&mut self, url: &str, kept: StoredCredential) -> Result<()> {
        self.servers.insert(plain(url).to_owned(), kept);
        self.current = Some(plain(url).to_owned());
        self.write()
    }

    /// Forgets a sign-in.
    pub(crate) fn forget(&mut self, url: &str) -> Result<()> {
        self.servers.remove(plain(url));
        if self.current.as_deref() == Some(plain(url)) {
            self.current = None;
        }
        self.write()
    }

    fn write(&self) -> Result<()> {
        let path = path().ok_or_else(|| {
            CliError::new(Exit::Usage, "there is no home directory to keep a sign-in in")
                .hint("set HOME, or use HOMING_URL and HOMING_TOKEN")
        })?;
        if let Some(dir) = path.parent() {
            let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(dir);
            made.with_context(|| dir.display().to_string())?;
        }
        write_whole(&path, &serde_json::to_string_pretty(self)?)
    }
}

fn path() -> Option<PathBuf> {
    let named = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = named("XDG_CONFIG_HOME").or_else(|| Some(named("HOME")?.join(".config")))?;
    Some(base.join("homing").join("credentials.json"))
}

fn plain(url: &str) -> &str {
    url.trim().trim_end_matches('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_others_can_read_is_refused_and_one_that_is_broken_is_not_quoted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("credentials.json");
        assert_eq!(Credentials::read(&path).unwrap(), Credentials::default());
        write_whole(
            &path,
            r#"{"current":"http://a","servers":{"http://a":{"token":"hush","handle":"ann"}}}"#,
        )
        .unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let read = Credentials::read(&path).unwrap();
        assert_eq!(read.current().unwrap().1.token.reveal(), "hush");
        assert!(!format!("{read:?}").contains("hush"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(Credentials::read(&path).unwrap_err().to_string().contains("read by others"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, r#"{"current":{"hush":1}}"#).unwrap();
        let why = format!("{:#}", Credentials::read(&path).unwrap_err());
        assert!(!why.contains("hush"), "{why}");
    }
}
