//! `homing logout`: make a kept token good for nothing, and forget it.

use anyhow::Result;
use api::Code;
use api::client::{Client, ClientError};
use serde_json::json;

use crate::credentials::Credentials;
use crate::exit::{CliError, Exit};
use crate::screen::Screen;

/// Sign out of a server
///
/// The token that `homing login` keeps is made good for nothing, and forgotten.
#[derive(clap::Args)]
pub(crate) struct LogoutArgs {
    /// The server [default: the one of the last `homing login`]
    #[arg(long)]
    url: Option<String>,
    /// Only forget it, without asking the server: the token stays good until it expires or somebody revokes it
    #[arg(long)]
    forget: bool,
}

pub(crate) async fn logout(args: LogoutArgs, screen: Screen) -> Result<Exit> {
    let mut credentials = Credentials::load()?;
    let current = || credentials.current().map(|(url, _)| url.to_owned());
    let url = args.url.clone().or_else(current);
    let found = url.and_then(|url| credentials.at(&url).cloned().map(|kept| (url, kept)));
    let Some((url, kept)) = found else {
        return Err(CliError::new(Exit::NotFound, "you are not signed in there")
            .hint("`homing login` signs in; the token of a server that runs here is not kept by it")
            .into());
    };
    if !args.forget {
        let client = Client::new(&url, kept.token.reveal()).map_err(CliError::from)?;
        match client.sign_out().await {
            Ok(_) => {}
            // It was good for nothing already.
            Err(ClientError::Refused(problem)) if problem.code == Code::Unauthenticated => {}
            Err(error) => {
                return Err(CliError::from(error)
                    .hint("try again later, or forget the token with --forget and have it revoked: `homing token revoke`")
                    .into());
            }
        }
    }
    credentials.forget(&url)?;
    if screen.json {
        screen.object(&json!({ "url": url, "handle": kept.handle }))?;
    } else {
        screen.line(format!("signed out of {url}"))?;
    }
    Ok(Exit::Done)
}
