//! The file of a service: whose it is, and how it is written and taken away.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::unit::MARK;
use crate::data_dir::write_whole;
use crate::exit::{CliError, Exit};

/// The file at the place of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ServiceFile {
    Missing,
    /// We have written it.
    Ours(String),
    /// Somebody else has, or it is a link.
    Theirs,
}

/// Looks without following a link: what a link leads to is not ours to replace.
pub(super) fn look(path: &Path) -> Result<ServiceFile> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(ServiceFile::Missing),
        Err(why) => return Err(why).with_context(|| path.display().to_string()),
    };
    let text = if found.is_file() { fs::read_to_string(path).unwrap_or_default() } else { String::new() };
    Ok(if text.contains(MARK) { ServiceFile::Ours(text) } else { ServiceFile::Theirs })
}

/// Writes it whole, or not at all. What was there before, if it was something else, stays beside it; the answer is where.
pub(super) fn install(path: &Path, text: &str, force: bool) -> Result<Option<PathBuf>> {
    let before = look(path)?;
    if before == ServiceFile::Theirs && !force {
        return Err(theirs(path, "nothing was written").into());
    }
    let dir = path.parent().context("a service has a directory")?;
    fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
    let kept = match before {
        ServiceFile::Missing => None,
        ServiceFile::Ours(before) if before == text => None,
        ServiceFile::Ours(_) | ServiceFile::Theirs => Some(keep(path)?),
    };
    write_whole(path, text.trim_end_matches('\n'))?;
    Ok(kept)
}

/// A second name for what is there, so that it is never away for a moment.
fn keep(path: &Path) -> Result<PathBuf> {
    let kept = path.with_extension("before");
    let copy = || -> io::Result<()> {
        match fs::remove_file(&kept) {
            Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(why),
            _ => {}
        }
        fs::hard_link(path, &kept).or_else(|_| fs::rename(path, &kept))
    };
    copy().with_context(|| kept.display().to_string())?;
    Ok(kept)
}

/// Takes it away. False if there was none.
pub(super) fn remove(path: &Path, force: bool) -> Result<bool> {
    match look(path)? {
        ServiceFile::Missing => return Ok(false),
        ServiceFile::Theirs if !force => return Err(theirs(path, "nothing was removed").into()),
        ServiceFile::Ours(_) | ServiceFile::Theirs => {}
    }
    fs::remove_file(path).with_context(|| path.display().to_string())?;
    Ok(true)
}

fn theirs(path: &Path, and: &str) -> CliError {
    CliError::new(Exit::Failed, format!("{} is not ours; {and}", path.display()))
        .hint("look at it; --force replaces or removes it all the same, and a replaced one is kept beside it")
}
