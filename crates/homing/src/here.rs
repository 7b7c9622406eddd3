//! The directory in which a command is typed: which conversation it has, or whose worktree it is.
//!
//! A repository is one conversation, wherever in it somebody stands, unless the directory has one of its own. Looking for the
//! repository is done here, in the process of whoever types; the server looks at nothing.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Result;
use api::{Explained, Me, Role, RouteQuery, WorktreesQuery};
use kernel::{Address, Part};

use crate::config::{Config, Conversations};
use crate::exit::{CliError, Exit};
use crate::remote::{OrCliError, Remote};
use crate::system;
use crate::target::path_text;

/// The directory in which a command is typed.
#[derive(Debug, Clone)]
pub(crate) struct Here {
    /// The directory that its conversation belongs to, and that a session made here works in.
    pub(crate) directory: String,
    /// Its conversation.
    pub(crate) address: String,
    /// The session whose worktree it is, unless the directory has an open session of its own.
    pub(crate) worktree_of: Option<String>,
}

impl Here {
    pub(crate) async fn find(remote: &Remote) -> Result<Self> {
        let place = std::env::current_dir()?;
        let top = shared_top(&place, &remote.data)?;
        let worktree_of = worktree_of(&place, remote).await?;
        let me = remote.client.me().await.or_cli_error()?;
        let (own, top) = (conversation(&place, &me)?, top.map(|top| conversation(&top, &me)).transpose()?);
        // Only where something else could be meant is it asked.
        let is_asked = top.is_some() || worktree_of.is_some();
        if is_asked && own.is_bound(remote).await? {
            return Ok(own);
        }
        let shared = top.unwrap_or(own);
        if worktree_of.is_some() && shared.is_bound(remote).await? {
            return Ok(shared);
        }
        Ok(Self { worktree_of, ..shared })
    }

    async fn is_bound(&self, remote: &Remote) -> Result<bool> {
        let query = RouteQuery { conversation: Some(self.address.clone()), ..RouteQuery::default() };
        let explained = remote.client.explain(&query).await.or_cli_error()?;
        Ok(matches!(explained, Explained::Existing { .. }))
    }
}

/// The conversation of a directory in this person's terminals.
fn conversation(directory: &Path, me: &Me) -> Result<Here> {
    let part = |text: String| {
        Part::new(text).map_err(|why| {
            CliError::new(Exit::Usage, format!("this directory cannot name a conversation: {why}"))
                .hint("name one with --conversation api:CLIENT/KEY")
        })
    };
    let directory = path_text(directory)?;
    let parts = [part(system::host())?, part(me.handle.clone())?, part(directory.clone())?];
    let address = Address::new("cli", parts).expect("a word and three parts");
    Ok(Here { directory, address: address.to_string(), worktree_of: None })
}

/// The conversation of a directory that somebody names: its own, and no other one's.
pub(crate) async fn conversation_of(directory: &str, remote: &Remote) -> Result<String> {
    let path = std::path::absolute(directory)?;
    // As whoever stands there would have it; what is not there is refused by the server.
    let path = path.canonicalize().unwrap_or(path);
    let me = remote.client.me().await.or_cli_error()?;
    Ok(conversation(&path, &me)?.address)
}

/// The top of the repository that this is a directory of, if that is the one that is meant.
fn shared_top(place: &Path, data: &Path) -> Result<Option<PathBuf>> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let home = home.map(|home| home.canonicalize().unwrap_or(home));
    let us = rustix::process::geteuid().as_raw();
    let Some(top) = repository_top(place, us) else { return Ok(None) };
    let is_homes = home.is_some_and(|home| home.starts_with(top));
    if top == place || is_homes {
        return Ok(None);
    }
    Ok(match Config::conversations(data)? {
        Conversations::Repository => Some(top.to_owned()),
        Conversations::Directory => None,
    })
}

/// The nearest directory above with a `.git`. One of somebody else's is none: they could lead us anywhere.
fn repository_top(place: &Path, us: u32) -> Option<&Path> {
    let top = place.ancestors().find(|above| above.join(".git").symlink_metadata().is_ok())?;
    top.metadata().is_ok_and(|top| top.uid() == us).then_some(top)
}

/// The session that the worktree belongs to in which a command is typed.
async fn worktree_of(place: &Path, remote: &Remote) -> Result<Option<String>> {
    let trees = remote.data.join("worktrees");
    let trees = trees.canonicalize().unwrap_or(trees);
    if remote.is_elsewhere || !place.starts_with(&trees) {
        return Ok(None);
    }
    let listed = remote.client.worktrees(&WorktreesQuery::default()).await.or_cli_error()?;
    let mine = listed.items.into_iter().find(|tree| place.starts_with(&tree.directory));
    Ok(mine.map(|tree| tree.session))
}

/// The command that lets somebody choose a directory that is under none of their roots.
pub(crate) fn how_to_choose(directory: &str, me: &Me) -> String {
    let directory = quoted(directory);
    match me.role >= Role::Admin {
        true => format!(
            "`homing roots add {directory}` lets you in, there and below; `homing roots` lists what you may choose"
        ),
        false => format!(
            "an admin can let you in: `homing roots add {directory} --to {}`; `homing roots` lists what you may choose",
            me.handle
        ),
    }
}

/// A directory as people read it: what is below their own home begins with `~`.
pub(crate) fn with_tilde(directory: &str) -> String {
    let home = std::env::var("HOME").ok().filter(|home| home.len() > 1);
    below_home(directory, home.as_deref())
}

fn below_home(directory: &str, home: Option<&str>) -> String {
    let below = home.and_then(|home| directory.strip_prefix(home.trim_end_matches('/')));
    match below {
        Some(below) if below.is_empty() || below.starts_with('/') => format!("~{below}"),
        _ => directory.to_owned(),
    }
}

/// A word as a shell takes it.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-:@+,%=".contains(c);
    match word.chars().all(is_plain) && !word.is_empty() {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_of_somebody_elses_is_none() {
        let scratch = tempfile::tempdir().unwrap();
        let (top, deep) = (scratch.path(), scratch.path().join("a/b"));
        std::fs::create_dir_all(&deep).unwrap();
        let us = rustix::process::geteuid().as_raw();
        assert_eq!(repository_top(&deep, us), None);
        std::fs::create_dir(top.join(".git")).unwrap();
        assert_eq!(repository_top(&deep, us), Some(top));
        assert_eq!(repository_top(&deep, us + 1), None);
        // The nearest one counts, also if its `.git` is a file, as in a worktree.
        std::fs::write(deep.join(".git"), "gitdir: elsewhere").unwrap();
        assert_eq!(repository_top(&deep, us), Some(deep.as_path()));
    }

    #[test]
    fn what_is_below_home_begins_with_a_tilde() {
        let shown = |directory| below_home(directory, Some("/home/ana/"));
        assert_eq!((shown("/home/ana").as_str(), shown("/home/ana/shop").as_str()), ("~", "~/shop"));
        assert_eq!((shown("/home/anabel").as_str(), shown("/srv").as_str()), ("/home/anabel", "/srv"));
        assert_eq!(below_home("/srv", None), "/srv");
    }

    #[test]
    fn a_word_is_quoted_where_a_shell_would_take_it_apart() {
        assert_eq!(quoted("/srv/shop"), "/srv/shop");
        assert_eq!(quoted("/srv/my shop"), "'/srv/my shop'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
