//! `homing org`: your org and what it has decided, and the orgs of a machine.

use anyhow::Result;
use api::{Grant, NewOrg, NewOwner, Org, OrgChange};

use crate::exit::{CliError, Exit};
use crate::remote::{OrCliError, Remote};
use crate::{describe, time};

/// Show your org, change what it has decided, or see to the orgs of your machine
#[derive(clap::Args)]
pub(crate) struct OrgArgs {
    #[command(subcommand)]
    verb: Option<OrgVerb>,
}

#[derive(clap::Subcommand)]
enum OrgVerb {
    /// Show your org
    Show,
    /// List the orgs of this machine; only for the person whose machine it is
    Ls,
    /// Make another org on this machine, and print the link by which its owner comes in
    Add {
        name: String,
        /// The handle of its owner
        #[arg(long)]
        owner: String,
        /// The name of the owner, for people
        #[arg(long)]
        owner_name: Option<String>,
        /// The owner's e-mail address
        #[arg(long)]
        email: Option<String>,
    },
    /// Change what your org has decided
    Set {
        /// The grant of everybody in the org on sessions that are made from now on: view, prompt, manage or none
        #[arg(long, value_name = "GRANT")]
        share_new: Option<String>,
        /// The most sessions that may be open: a number, or none for as many as the machine allows
        #[arg(long, value_name = "N")]
        open_max: Option<String>,
        /// In how many of them a turn may be under way: a number, or none for as many as the machine allows
        #[arg(long, value_name = "N")]
        awake_max: Option<String>,
    },
}

pub(crate) async fn org(args: OrgArgs, remote: &Remote) -> Result<Exit> {
    match args.verb.unwrap_or(OrgVerb::Show) {
        OrgVerb::Show => show(&remote.client.org().await.or_cli_error()?, remote)?,
        OrgVerb::Ls => list(remote).await?,
        OrgVerb::Add { name, owner, owner_name, email } => {
            let owner = NewOwner { handle: owner, name: owner_name, email };
            add(&NewOrg { name, owner }, remote).await?;
        }
        OrgVerb::Set { share_new, open_max, awake_max } => {
            let change = OrgChange {
                share_new: share_new.as_deref().map(grant_or_none).transpose()?,
                open_max: open_max.as_deref().map(count_or_none).transpose()?,
                awake_max: awake_max.as_deref().map(count_or_none).transpose()?,
            };
            show(&remote.client.change_org(&change).await.or_cli_error()?, remote)?;
        }
    }
    Ok(Exit::Done)
}

fn grant_or_none(text: &str) -> Result<Option<Grant>> {
    match text {
        "none" => Ok(None),
        "view" => Ok(Some(Grant::View)),
        "prompt" => Ok(Some(Grant::Prompt)),
        "manage" => Ok(Some(Grant::Manage)),
        _ => Err(CliError::new(Exit::Usage, format!("{text:?} is nothing that can be given"))
            .hint("write view, prompt, manage or none")
            .into()),
    }
}

fn count_or_none(text: &str) -> Result<Option<u32>> {
    match (text, text.parse()) {
        ("none", _) => Ok(None),
        (_, Ok(count)) => Ok(Some(count)),
        (_, Err(_)) => Err(CliError::new(Exit::Usage, format!("{text:?} is not a number"))
            .hint("write a number, or none")
            .into()),
    }
}

fn show(org: &Org, remote: &Remote) -> Result<()> {
    if remote.screen.json {
        return Ok(remote.screen.object(org)?);
    }
    let share = org.settings.share_new.map_or("private to their maker".to_owned(), |grant| {
        format!("everybody may {}", describe::grant(grant))
    });
    let count =
        |count: Option<u32>| count.map_or("as many as the machine allows".to_owned(), |n| n.to_string());
    Ok(remote.screen.pairs(&[
        ("org", org.name.clone()),
        ("people", org.people.to_string()),
        ("new sessions", share),
        ("open sessions", count(org.settings.open_max)),
        ("turns at once", count(org.settings.awake_max)),
        ("made", time::full(org.made_at)),
        ("id", org.id.clone()),
    ])?)
}

async fn list(remote: &Remote) -> Result<()> {
    let page = remote.client.orgs().await.or_cli_error()?;
    if remote.screen.json {
        return Ok(remote.screen.object(&page)?);
    }
    let rows: Vec<Vec<String>> = page
        .items
        .into_iter()
        .map(|org| vec![org.name, org.people.to_string(), time::full(org.made_at), org.id])
        .collect();
    Ok(remote.screen.table(&["ORG", "PEOPLE", "MADE", "ID"], &rows)?)
}

async fn add(new: &NewOrg, remote: &Remote) -> Result<()> {
    let made = remote.client.make_org(new).await.or_cli_error()?;
    if remote.screen.json {
        return Ok(remote.screen.object(&made)?);
    }
    remote.screen.say(format!("{} is made. This link lets its owner in:", made.org.name));
    remote.screen.line(format!("{}{}", remote.client.base(), made.link.path.reveal()))?;
    let until = time::full(made.link.expires);
    remote.screen.say(format!("it works once, until {until}, for whoever has it: hand it over in private"));
    Ok(())
}
