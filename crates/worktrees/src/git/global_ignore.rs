//! The ignore file that a person has for all of their repositories, as git would find it: `core.excludesFile` of their own
//! configuration, or `git/ignore` beside it; and the name that their commits have (`user.name`, `user.email`).
//!
//! Only these keys of their configuration are read, by ourselves. Both files are read up to a bound, and git is given a copy in our own
//! directory: what it reads is what was looked at.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::Git;
use super::error::GitError;
use super::repository::{Repository, bytes_path, open_plain};
use super::shadow::write_note;

/// Larger configurations and ignore files were not written by people.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// The copy, in our own directory.
const COPY: &str = "global-ignore";

/// Where a person's own configuration of git is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonHome {
    pub home: PathBuf,
    /// `XDG_CONFIG_HOME`, if it is another place than `.config` in the home.
    pub config: Option<PathBuf>,
}

impl Git {
    /// The same, with regard to somebody's own ignore file.
    pub fn for_person(mut self, person: Option<PersonHome>) -> Self {
        self.person = person;
        self
    }

    /// The name and the address of the person, as the repository or their own configuration says.
    pub(super) fn identity(&self, of: &Repository) -> Option<(String, String)> {
        let theirs = self.person.iter().flat_map(configurations);
        let texts = std::iter::once(of.common.join("config")).chain(theirs);
        let texts: Vec<Vec<u8>> = texts.filter_map(|path| read_bounded(&path)).collect();
        let find = |key: &[u8]| {
            let value = texts.iter().find_map(|text| value_of(text, b"[user]", key))?;
            let value = String::from_utf8(value).ok()?;
            let is_plain = !value.is_empty() && !value.contains(|c: char| c.is_control() || "<>".contains(c));
            is_plain.then_some(value)
        };
        Some((find(b"name")?, find(b"email")?))
    }

    /// A copy of the person's own ignore file, if they have one.
    pub(super) fn global_ignore(&self) -> Result<Option<PathBuf>, GitError> {
        let Some(text) = self.person.as_ref().and_then(ignore_of) else { return Ok(None) };
        let copy = self.places.own.join(COPY);
        if fs::read(&copy).ok().as_ref() != Some(&text) {
            write_note(&copy, &text)?;
        }
        Ok(Some(copy))
    }
}

fn config_of(person: &PersonHome) -> PathBuf {
    person.config.clone().unwrap_or_else(|| person.home.join(".config")).join("git")
}

/// A person's own configurations: the first one in which something is said counts.
fn configurations(person: &PersonHome) -> [PathBuf; 2] {
    [person.home.join(".gitconfig"), config_of(person).join("config")]
}

fn ignore_of(person: &PersonHome) -> Option<Vec<u8>> {
    let texts = configurations(person).map(|path| read_bounded(&path));
    let named = texts.into_iter().flatten().find_map(|text| value_of(&text, b"[core]", b"excludesfile"));
    let path = match named {
        Some(named) => from_home(&person.home, &named),
        None => config_of(person).join("ignore"),
    };
    read_bounded(&path)
}

fn read_bounded(path: &Path) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    open_plain(path).ok()?.take(FILE_BYTES_MAX).read_to_end(&mut text).ok()?;
    Some(text)
}

/// The value of a key, the last one that there is.
fn value_of(config: &[u8], section: &[u8], wanted: &[u8]) -> Option<Vec<u8>> {
    let (mut is_it, mut found) = (false, None);
    for line in config.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii) {
        if line.first() == Some(&b'[') {
            is_it = line.to_ascii_lowercase().starts_with(section);
            continue;
        }
        let Some(at) = line.iter().position(|byte| *byte == b'=').filter(|_| is_it) else { continue };
        let (key, value) = (line[..at].trim_ascii(), line[at + 1..].trim_ascii());
        if key.eq_ignore_ascii_case(wanted) {
            let value =
                value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value);
            found = Some(value.to_vec());
        }
    }
    found
}

fn from_home(home: &Path, path: &[u8]) -> PathBuf {
    match path.strip_prefix(b"~/") {
        Some(rest) => home.join(bytes_path(rest)),
        None => home.join(bytes_path(path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ignore_file_is_the_one_that_git_would_use() {
        let place = tempfile::tempdir().unwrap();
        let home = place.path().to_path_buf();
        let person = PersonHome { home: home.clone(), config: None };
        assert_eq!(ignore_of(&person), None);
        fs::create_dir_all(home.join(".config/git")).unwrap();
        fs::write(home.join(".config/git/ignore"), "*.usual").unwrap();
        assert_eq!(ignore_of(&person).as_deref(), Some(&b"*.usual"[..]));
        fs::write(home.join(".mine"), "*.mine").unwrap();
        let config =
            "[user]\n\texcludesfile = /no\n[Core]\n\teditor = vi\n\tExcludesFile = ~/.mine\n[alias]\n";
        fs::write(home.join(".gitconfig"), config).unwrap();
        assert_eq!(ignore_of(&person).as_deref(), Some(&b"*.mine"[..]));
        fs::write(home.join(".gitconfig"), "[core]\nexcludesFile = \"~/.none\"\n").unwrap();
        assert_eq!(ignore_of(&person), None, "one that is named and not there is none");
    }
}
