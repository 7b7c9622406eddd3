//! The data directory, and the files in it that say where its server is and how to know it: `url`, `token` and, if it
//! speaks TLS, `certificate`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use engine::{Purpose, Secret};

use crate::exit::{CliError, Exit};
use crate::system;

/// A data directory. It need not be there yet.
#[derive(Debug, Clone)]
pub(crate) struct DataDir {
    pub(crate) path: PathBuf,
    /// True if `--data` named it: then nothing else points elsewhere.
    pub(crate) named: bool,
    /// True if `HOMING_DATA` did: then what `homing login` keeps is not meant.
    pub(crate) chosen: bool,
    /// A file with authorities that may have signed a server's certificate, besides those the system trusts.
    pub(crate) ca: Option<PathBuf>,
}

impl DataDir {
    /// The directory that is named, or `HOMING_DATA`, or the usual one.
    pub(crate) fn find(named: Option<PathBuf>, ca: Option<PathBuf>) -> Result<Self> {
        let (is_named, is_chosen) = (named.is_some(), variable("HOMING_DATA").is_some());
        let dir = named.or_else(|| variable("HOMING_DATA")).or_else(usual);
        let dir = dir.ok_or_else(|| {
            CliError::new(Exit::Usage, "there is no home directory to keep things in")
                .hint("name one with --data DIR")
        })?;
        // Agents get paths below it, and they stand elsewhere.
        let dir = std::path::absolute(&dir).with_context(|| dir.display().to_string())?;
        Ok(Self { path: dir, named: is_named, chosen: is_chosen, ca })
    }

    /// True if this is where every command looks by itself.
    pub(crate) fn is_usual(&self) -> bool {
        usual().is_some_and(|usual| usual == self.path)
    }

    /// Where the server said that it is, if it has.
    pub(crate) fn url(&self) -> io::Result<Option<String>> {
        read_line(&self.path.join("url"))
    }

    /// The token of the machine's person, if there is one.
    pub(crate) fn token(&self) -> io::Result<Option<String>> {
        read_line(&self.token_path())
    }

    pub(crate) fn token_path(&self) -> PathBuf {
        self.path.join("token")
    }

    /// The server's token: the one in the file, or a fresh one that is put there. Only for whoever holds the lock.
    pub(crate) fn token_or_fresh(&self) -> Result<String> {
        let path = self.token_path();
        if let Some(token) = self.token().with_context(|| path.display().to_string())? {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
            return Ok(token);
        }
        let fresh = Secret::of_credential(Purpose::Machine, system::secret());
        write_whole(&path, fresh.reveal())?;
        Ok(fresh.reveal().to_owned())
    }

    /// Says where the server is. Only for whoever holds the lock.
    pub(crate) fn announce(&self, url: &str) -> Result<()> {
        write_whole(&self.path.join("url"), url)
    }

    /// Says by which certificates the server can be known, by their SHA-256. Only for whoever holds the lock.
    pub(crate) fn announce_certificates(&self, fingerprints: &[[u8; 32]]) -> Result<()> {
        let line = |print: &[u8; 32]| print.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let lines: Vec<String> = fingerprints.iter().map(line).collect();
        write_whole(&self.path.join("certificate"), &lines.join("\n"))
    }

    /// By which certificates the server can be known.
    pub(crate) fn certificates(&self) -> Vec<[u8; 32]> {
        let text = fs::read_to_string(self.path.join("certificate")).unwrap_or_default();
        text.lines().filter_map(fingerprint).collect()
    }

    /// Says that no server is there. Only for whoever holds the lock.
    pub(crate) fn withdraw(&self) {
        // A file that stays points to nobody, and whoever reads it finds that out.
        let _ = fs::remove_file(self.path.join("url"));
        let _ = fs::remove_file(self.path.join("certificate"));
    }
}

/// `$XDG_DATA_HOME/homing`, or `~/.local/share/homing`.
fn usual() -> Option<PathBuf> {
    let in_home = || Some(variable("HOME")?.join(".local").join("share"));
    let base = variable("XDG_DATA_HOME").filter(|path| path.is_absolute()).or_else(in_home)?;
    Some(base.join("homing"))
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn fingerprint(line: &str) -> Option<[u8; 32]> {
    let byte = |at: usize| u8::from_str_radix(line.get(2 * at..2 * at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..32).map(byte).collect();
    bytes.filter(|_| line.len() == 64)?.try_into().ok()
}

fn read_line(path: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty())),
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(why) => Err(why),
    }
}

/// Lets a whole file appear at once, readable by its owner only.
pub(crate) fn write_whole(path: &Path, line: &str) -> Result<()> {
    let new = path.with_extension(format!("new-{}", std::process::id()));
    let write = || -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
        writeln!(file, "{line}")?;
        file.sync_all()?;
        fs::rename(&new, path)?;
        File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
    };
    write().with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_made_once_and_is_nobody_elses() {
        let dir = tempfile::tempdir().unwrap();
        let data_dir = DataDir { path: dir.path().to_owned(), named: true, chosen: false, ca: None };
        let token = data_dir.token_or_fresh().unwrap();
        assert!(token.starts_with("hmg_m_") && token.len() > 48);
        fs::set_permissions(data_dir.token_path(), fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(data_dir.token_or_fresh().unwrap(), token);
        assert_eq!(fs::metadata(data_dir.token_path()).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_server_is_known_by_the_certificates_it_has_written_down() {
        let dir = tempfile::tempdir().unwrap();
        let data_dir = DataDir { path: dir.path().to_owned(), named: true, chosen: false, ca: None };
        assert!(data_dir.certificates().is_empty());
        let prints = [[0xa0; 32], [7; 32]];
        data_dir.announce_certificates(&prints).unwrap();
        assert_eq!(data_dir.certificates(), prints);
        fs::write(dir.path().join("certificate"), "a0\nzz\n\u{e9}\n").unwrap();
        assert!(data_dir.certificates().is_empty());
    }
}
