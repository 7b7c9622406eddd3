//! `homing roots`: the directories that people may choose for a session.

use anyhow::Result;
use api::{Grantee, Page, Role, Root};

use crate::exit::{CliError, Exit};
use crate::people_lookup::{GranteeNames, grantee};
use crate::remote::{OrCliError, Remote};

/// List the directories that may be chosen for a session, or change who may choose which
///
/// A directory stands for everything under it. TO is a person (handle, e-mail address or id), `group:NAME`, or `org` for
/// everybody in your org.
#[derive(clap::Args)]
pub(crate) struct RootsArgs {
    #[command(subcommand)]
    verb: Option<RootsVerb>,
}

#[derive(clap::Subcommand)]
enum RootsVerb {
    /// List them
    Ls,
    /// Let somebody choose a directory
    Add {
        #[arg(value_hint = clap::ValueHint::DirPath)]
        directory: String,
        /// The person, group or org that may [default: you]
        #[arg(long)]
        to: Option<String>,
    },
    /// Let them no more
    Rm {
        #[arg(value_hint = clap::ValueHint::DirPath)]
        directory: String,
        /// The person, group or org that may not [default: you]
        #[arg(long)]
        to: Option<String>,
    },
}

pub(crate) async fn roots(args: RootsArgs, remote: &Remote) -> Result<Exit> {
    match args.verb.unwrap_or(RootsVerb::Ls) {
        RootsVerb::Ls => list(remote).await?,
        RootsVerb::Add { directory, to } => {
            let root = root(&directory, to.as_deref(), remote).await?;
            let added = remote.client.add_root(&root).await.or_cli_error()?;
            remote.done(&added, format!("{} may be chosen", added.directory))?;
        }
        RootsVerb::Rm { directory, to } => {
            let root = root(&directory, to.as_deref(), remote).await?;
            let removed = remote.client.remove_root(root).await.or_cli_error()?;
            remote.done(&removed, format!("{} may not be chosen any more", removed.directory))?;
        }
    }
    Ok(Exit::Done)
}

async fn root(directory: &str, to: Option<&str>, remote: &Remote) -> Result<Root> {
    let absolute = std::path::absolute(directory)?;
    let directory = absolute.to_str().map(str::to_owned).ok_or_else(|| {
        CliError::new(
            Exit::Usage,
            format!("the name of {} is not UTF-8, which this needs", absolute.display()),
        )
        .hint("rename it, or use another directory")
    })?;
    let to = match to {
        Some(to) => grantee(to, remote).await?,
        None => Grantee::user(remote.client.me().await.or_cli_error()?.person),
    };
    Ok(Root { directory, to })
}

/// Admins see everybody's, the others their own.
async fn list(remote: &Remote) -> Result<()> {
    let me = remote.client.me().await.or_cli_error()?;
    if me.role < Role::Admin {
        let to = Grantee::user(me.person);
        let items = me.roots.into_iter().map(|directory| Root { directory, to: to.clone() });
        let items: Vec<Root> = items.collect();
        if remote.screen.json {
            return Ok(remote.screen.object(&Page { items, next: None })?);
        }
        return Ok(items.iter().try_for_each(|root| remote.screen.line(&root.directory))?);
    }
    let page = remote.client.roots().await.or_cli_error()?;
    if remote.screen.json {
        return Ok(remote.screen.object(&page)?);
    }
    if page.items.is_empty() {
        remote.screen.say("there are none: sessions get a directory of their own");
        return Ok(());
    }
    let names = GranteeNames::load(remote).await?;
    let rows: Vec<Vec<String>> =
        page.items.into_iter().map(|root| vec![names.of(&root.to), root.directory]).collect();
    Ok(remote.screen.table(&["TO", "DIRECTORY"], &rows)?)
}
