//! `homing route explain`: where a message would go, without sending one.

use anyhow::Result;
use api::Explained;

use crate::describe;
use crate::exit::Exit;
use crate::remote::{OrCliError, Remote};
use crate::target::TargetArgs;

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
        target: TargetArgs,
    },
}

pub(crate) async fn route(args: RouteArgs, remote: &Remote) -> Result<Exit> {
    let RouteVerb::Explain { target } = args.verb;
    let query = target.query(remote).await?;
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
    remote.screen.pairs(&pairs)?;
    Ok(exit)
}

fn pairs_of(explained: &Explained) -> Vec<(&'static str, String)> {
    match explained {
        Explained::Existing { session, why } => vec![
            ("goes to", session.id.clone()),
            ("which is", format!("{}, {} in {}", describe::doing(session), session.agent, session.directory)),
            ("because", why.clone()),
        ],
        Explained::New { previous, why, .. } => {
            let mut pairs = vec![("goes to", "a new session".to_owned())];
            pairs.extend(previous.as_ref().map(|previous| {
                ("before it", format!("{} ({})", previous.session, describe::ended(previous.why)))
            }));
            pairs.push(("because", why.clone()));
            pairs
        }
        Explained::Refused { code, why, .. } => {
            vec![("goes", format!("nowhere: it would be refused ({code})")), ("because", why.clone())]
        }
    }
}
