//! `homing whoami`: whom the server takes you for, and what your token is good for.

use anyhow::Result;
use api::{DiskUse, Me};

use crate::commands::worktree::size;
use crate::describe;
use crate::exit::Exit;
use crate::remote::{OrCliError, Remote};

/// Show who you are to the server, and what your token is good for
#[derive(clap::Args)]
pub(crate) struct WhoamiArgs {}

pub(crate) async fn whoami(_: &WhoamiArgs, remote: &Remote) -> Result<Exit> {
    let me = remote.client.me().await.or_cli_error()?;
    if remote.screen.json {
        remote.screen.object(&me)?;
        return Ok(Exit::Done);
    }
    remote.screen.pairs(&pairs(&me, remote.client.base()))?;
    Ok(Exit::Done)
}

fn pairs(me: &Me, url: &str) -> Vec<(&'static str, String)> {
    let mut pairs = vec![("you", me.handle.clone())];
    pairs.extend(me.name.clone().map(|name| ("name", name)));
    pairs.extend(me.email.clone().map(|email| ("e-mail", email)));
    let host = if me.host { ", whose machine it is" } else { "" };
    pairs.push(("role", format!("{}{host}", describe::role(me.role))));
    pairs.push(("org", me.org_name.clone()));
    pairs.push(("rights", describe::rights(&me.rights)));
    pairs.extend(
        me.bound.as_ref().map(|bound| ("only for", format!("turn {} of {}", bound.turn, bound.session))),
    );
    pairs.push(("password", if me.has_password { "yes" } else { "none; `homing user password`" }.to_owned()));
    pairs.extend(me.disk.as_ref().map(|disk| ("disk", disk_words(disk))));
    pairs.push(("id", me.person.clone()));
    pairs.push(("server", url.to_owned()));
    pairs
}

fn disk_words(disk: &DiskUse) -> String {
    let part = |used: u64, most: u64, what: &str| match most {
        u64::MAX => format!("{} of {what}", size(used)),
        most => format!("{} of {what} (at most {})", size(used), size(most)),
    };
    let words = part(disk.words_bytes, disk.words_bytes_max, "words and outputs");
    let trees = part(disk.worktree_bytes, disk.worktree_bytes_max, "worktrees");
    format!("{words}, {trees}, {}", part(disk.snapshot_bytes, disk.snapshot_bytes_max, "snapshots"))
}
