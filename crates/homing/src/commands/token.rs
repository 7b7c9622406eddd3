//! `homing token`: credentials of your own, for programs.

use anyhow::Result;
use api::{At, Expiry, NewToken, Right, Token, TokensQuery};

use crate::describe::RightArg;
use crate::exit::Exit;
use crate::people_lookup::person_id;
use crate::remote::{OrCliError, Remote};
use crate::{describe, system, time};

/// List tokens, make one for a program, or revoke one
#[derive(clap::Args)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    verb: Option<TokenVerb>,
}

#[derive(clap::Subcommand)]
enum TokenVerb {
    /// List them: what each is good for, and when it was last used
    Ls {
        /// Whose [default: yours]
        #[arg(long)]
        user: Option<String>,
    },
    /// Make one, and print its secret: this one time
    Make {
        /// Its name, for you
        name: String,
        /// Its rights, several with commas
        #[arg(long, short, value_enum, value_delimiter = ',', required = true)]
        rights: Vec<RightArg>,
        /// Until when: a duration such as 12h or 30d, a day, a moment, or never [default: 90d]
        #[arg(long)]
        expires: Option<String>,
        /// The only client name that it may use in addresses
        #[arg(long)]
        client: Option<String>,
    },
    /// Make one good for nothing, at once
    Revoke { token: String },
}

pub(crate) async fn token(args: TokenArgs, remote: &Remote) -> Result<Exit> {
    match args.verb.unwrap_or(TokenVerb::Ls { user: None }) {
        TokenVerb::Ls { user } => {
            let user = match user {
                Some(name) => Some(person_id(&name, remote).await?),
                None => None,
            };
            list(&TokensQuery { user }, remote).await?;
        }
        TokenVerb::Make { name, rights, expires, client } => {
            let rights: Vec<Right> = rights.into_iter().map(Right::from).collect();
            let expires = expires.as_deref().map(expiry).transpose()?;
            let new = NewToken { name, rights, expires, client };
            let made = remote.client.make_token(&new).await.or_cli_error()?;
            if remote.screen.json {
                remote.screen.object(&made)?;
            } else {
                remote.screen.line(made.secret.reveal())?;
                let until = made
                    .token
                    .expires
                    .map_or("without end".to_owned(), |at| format!("until {}", time::full(at)));
                remote.screen.say(format!("{}, good {until}; it is shown this one time", made.token.id));
            }
        }
        TokenVerb::Revoke { token } => {
            let done = remote.client.revoke_token(&token).await.or_cli_error()?;
            remote.done(&done, format!("{token} is good for nothing any more"))?;
        }
    }
    Ok(Exit::Done)
}

fn expiry(text: &str) -> Result<Expiry> {
    if text == "never" {
        return Ok(Expiry::Never);
    }
    Ok(Expiry::At(time::ahead(text, ", or never")?))
}

async fn list(query: &TokensQuery, remote: &Remote) -> Result<()> {
    let page = remote.client.tokens(query).await.or_cli_error()?;
    if remote.screen.json {
        return Ok(remote.screen.object(&page)?);
    }
    if page.items.is_empty() {
        remote.screen.say("there are none; `homing token make NAME --rights read,prompt` makes one");
        return Ok(());
    }
    let rows: Vec<Vec<String>> = page.items.iter().map(row).collect();
    Ok(remote.screen.table(&["TOKEN", "FOR", "RIGHTS", "EXPIRES", "LAST USED", "NAME"], &rows)?)
}

fn row(token: &Token) -> Vec<String> {
    let used = |at: At| time::ago(at, system::now());
    vec![
        token.id.clone(),
        describe::purpose(token.purpose).to_owned(),
        describe::rights(&token.rights),
        token.expires.map_or("never".to_owned(), time::full),
        token.last_used.map_or("never".to_owned(), used),
        token.name.clone().unwrap_or_default(),
    ]
}
