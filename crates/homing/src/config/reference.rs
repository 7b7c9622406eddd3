//! References to secrets in the configuration: `env:NAME` is a variable of the server's, `file:PATH` what a file says.

use std::path::PathBuf;

use crate::system;

/// The longest value that is read from a file. No key is longer.
const VALUE_BYTES_MAX: usize = 64 * 1024;

/// The value that a reference stands for; itself, if it is no reference. An error never says what is in a file.
pub(crate) fn resolve(value: &str) -> Result<String, String> {
    if let Some(name) = value.strip_prefix("env:") {
        return std::env::var(name)
            .map_err(|_| format!("the variable {name} is not set where the server is started"));
    }
    let Some(path) = value.strip_prefix("file:") else { return Ok(value.to_owned()) };
    let path = in_home(path);
    if !path.is_absolute() {
        return Err(format!("{} is no path from / or ~/", path.display()));
    }
    let text = std::fs::read_to_string(&path).map_err(|why| format!("{}: {why}", path.display()))?;
    if text.len() > VALUE_BYTES_MAX {
        return Err(format!("{} has more than {VALUE_BYTES_MAX} bytes", path.display()));
    }
    Ok(text.trim_end_matches(['\n', '\r']).to_owned())
}

/// A path whose `~` is the home of whoever runs Homing.
pub(crate) fn in_home(path: &str) -> PathBuf {
    match path.strip_prefix("~/") {
        Some(rest) => system::home().join(rest),
        None => PathBuf::from(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_itself_or_what_it_refers_to() {
        assert_eq!(resolve("plain").as_deref(), Ok("plain"));
        assert_eq!(resolve("env:PATH").ok(), std::env::var("PATH").ok());
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("key"), "secret\n").unwrap();
        let file = format!("file:{}", dir.path().join("key").display());
        assert_eq!(resolve(&file).as_deref(), Ok("secret"));
        assert!(resolve("file:nowhere").unwrap_err().contains("no path"));
        assert!(resolve(&format!("{file}2")).unwrap_err().contains("key2"));
        assert!(resolve("env:HOMING_NO_SUCH_VARIABLE").unwrap_err().contains("not set"));
    }
}
