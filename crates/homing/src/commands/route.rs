//! `homing route explain`: where a message would go, without sending one.

use anyhow::Result;
use api::{Explained, Previous};

use crate::describe;
use crate::exit::Exit;
use crate::remote::{OrCliError, Remote};
use crate::target::{FirstTargetArgs, Target};

/// Explain where a message would go
#[derive(clap::Args)]
pub(crate) struct RouteArgs {
    #[command(subcommand)]
    verb: RouteVerb,
}

#[derive(clap::Subcommand)]
enum RouteVerb {
    /// Say where a message would go and why, without sending one
    Explain {
        #[command(flatten)]
        target: Box<FirstTargetArgs>,
    },
}

pub(crate) async fn route(args: RouteArgs, remote: &Remote) -> Result<Exit> {
    let RouteVerb::Explain { target } = args.verb;
    let target = target.resolve(remote).await?;
    let query = target.query();
    let explained = remote.client.explain(&query).await.or_cli_error()?;
    let exit = match &explained {
        Explained::Existing { .. } | Explained::New { .. } => Exit::Done,
        Explained::Refused { code, .. } if *code == api::Code::NotFound => Exit::NotFound,
        Explained::Refused { .. } => Exit::Failed,
    };
    if remote.screen.json {
        remote.screen.object(&explained)?;
        return Ok(exit);
    }
    let mut pairs = Vec::new();
    pairs.extend(query.conversation.map(|address| ("conversation", address)));
    pairs.extend(pairs_of(&explained));
    pairs.extend(remedy(&explained, &target, remote).await?);
    remote.screen.pairs(&pairs)?;
    Ok(exit)
}

/// The command that leads out of it, or back.
async fn remedy(
    explained: &Explained,
    target: &Target,
    remote: &Remote,
) -> Result<Option<(&'static str, String)>> {
    Ok(match explained {
        Explained::New { previous: Some(Previous { session, why: None }), .. } => {
            target.way_back(session).map(|back| ("way back", back))
        }
        Explained::Refused { code, .. } => {
            target.how_to_mend(Some(*code), remote).await?.map(|how| ("to mend it", how))
        }
        Explained::Existing { .. } | Explained::New { .. } => None,
    })
}

fn pairs_of(explained: &Explained) -> Vec<(&'static str, String)> {
    match explained {
        Explained::Existing { session, before, why } => {
            let is = format!("{}, {} in {}", describe::doing(session), session.agent, session.directory);
            let mut pairs = vec![("goes to", session.id.clone()), ("which is", is)];
            pairs.extend(before.as_ref().map(|before| ("before it", describe::previous(before))));
            pairs.push(("because", why.clone()));
            pairs
        }
        Explained::New { previous, why, .. } => {
            let mut pairs = vec![("goes to", "a new session".to_owned())];
            pairs.extend(previous.as_ref().map(|previous| ("before it", describe::previous(previous))));
            pairs.push(("because", why.clone()));
            pairs
        }
        Explained::Refused { code, why, .. } => {
            vec![("goes", format!("nowhere: it would be refused ({code})")), ("because", why.clone())]
        }
    }
}
