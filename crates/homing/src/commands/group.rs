//! `homing group`: people who are given things together.

use anyhow::Result;
use api::NewGroup;

use crate::exit::Exit;
use crate::people_lookup::{group as group_named, person_id};
use crate::remote::{OrCliError, Remote};

/// List the groups of your org, or change who is in them
///
/// Groups are named by name or id, people by handle, e-mail address or id.
#[derive(clap::Args)]
pub(crate) struct GroupArgs {
    #[command(subcommand)]
    verb: Option<GroupVerb>,
}

#[derive(clap::Subcommand)]
enum GroupVerb {
    /// List them, and who is in them
    Ls,
    /// Make one
    Add { name: String },
    /// Remove one, with all that was given to it
    Rm { group: String },
    /// Put people into one
    Join {
        group: String,
        #[arg(required = true)]
        people: Vec<String>,
    },
    /// Take people out of one
    Leave {
        group: String,
        #[arg(required = true)]
        people: Vec<String>,
    },
}

pub(crate) async fn group(args: GroupArgs, remote: &Remote) -> Result<Exit> {
    match args.verb.unwrap_or(GroupVerb::Ls) {
        GroupVerb::Ls => list(remote).await?,
        GroupVerb::Add { name } => {
            let made = remote.client.make_group(&NewGroup { name }).await.or_cli_error()?;
            remote.done(&made, format!("{} {}", made.id, made.name))?;
        }
        GroupVerb::Rm { group } => {
            let id = group_named(&group, remote).await?.id;
            let done = remote.client.remove_group(&id).await.or_cli_error()?;
            remote.done(&done, format!("{group} is gone"))?;
        }
        GroupVerb::Join { group, people } => {
            let id = group_named(&group, remote).await?.id;
            for name in people {
                let person = person_id(&name, remote).await?;
                let joined = remote.client.join(&id, &person).await.or_cli_error()?;
                remote.done(&joined, format!("{name} is in {group}"))?;
            }
        }
        GroupVerb::Leave { group, people } => {
            let id = group_named(&group, remote).await?.id;
            for name in people {
                let person = person_id(&name, remote).await?;
                let left = remote.client.leave(&id, &person).await.or_cli_error()?;
                remote.done(&left, format!("{name} is not in {group} any more"))?;
            }
        }
    }
    Ok(Exit::Done)
}

async fn list(remote: &Remote) -> Result<()> {
    let page = remote.client.groups().await.or_cli_error()?;
    if remote.screen.json {
        return Ok(remote.screen.object(&page)?);
    }
    if page.items.is_empty() {
        remote.screen.say("there are none; `homing group add NAME` makes one");
        return Ok(());
    }
    let rows: Vec<Vec<String>> = page
        .items
        .into_iter()
        .map(|group| {
            let people = group.people.into_iter().map(|who| who.handle.unwrap_or(who.id));
            vec![group.name, group.id, people.collect::<Vec<_>>().join(", ")]
        })
        .collect();
    Ok(remote.screen.table(&["GROUP", "ID", "PEOPLE"], &rows)?)
}
