//! `homing login`: sign in to a server, and keep the token that comes of it.

use anyhow::Result;
use api::client::Client;
use api::{Code, LinkSignIn, NewSignIn, PasswordSignIn, Secret, SignInFor};
use serde_json::json;

use crate::credentials::{Credentials, StoredCredential};
use crate::data_dir::DataDir;
use crate::exit::{CliError, Exit};
use crate::remote::{OrCliError, check};
use crate::screen::Screen;
use crate::{system, terminal_prompt};

/// Sign in to a server
///
/// Asks for the password, or for a link that somebody gave you, without showing it; from a pipe it is the next line. What
/// comes of it is a token for this machine, kept for you alone in ~/.config/homing/credentials.json. The other commands use
/// it when nothing else says which server is meant: not --data, not HOMING_URL, not HOMING_DATA, and no server runs here.
#[derive(clap::Args)]
pub(crate) struct LoginArgs {
    /// The server, http://HOST:PORT [default: $HOMING_URL, or the one that runs here]
    #[arg(long)]
    url: Option<String>,
    /// Your handle or e-mail address; ORG/NAME where several orgs have one like it [default: it is asked for]
    #[arg(long, short, value_name = "NAME")]
    user: Option<String>,
    /// Sign in with a link that works once, instead of a password
    #[arg(long, conflicts_with = "user")]
    link: bool,
}

pub(crate) async fn login(args: LoginArgs, data_dir: &DataDir, screen: Screen) -> Result<Exit> {
    // Before a secret is spent: if it could not be kept, there would be no use for it.
    let mut credentials = Credentials::load()?;
    let (url, proof) = if args.link {
        by_link(&args, data_dir, screen).await?
    } else {
        by_password(&args, data_dir, screen).await?
    };
    let signed = Client::new(&url, "").map_err(CliError::from)?.sign_in(&proof).await.or_cli_error();
    let signed = if args.link { signed.map_err(of_link)? } else { signed? };
    let token = signed.secret.ok_or_else(|| {
        CliError::new(Exit::Unreachable, format!("{url} let us in without a token")).hint(
            "that is no server of this version: check the address, or use a program of the server's version",
        )
    })?;
    credentials.keep(&url, StoredCredential { token, handle: signed.handle.clone() })?;
    if screen.json {
        screen.object(&json!({
            "url": url, "person": signed.person, "handle": signed.handle, "expires": signed.expires
        }))?;
    } else {
        screen.hanging(0, &format!("signed in to {url} as {}", signed.handle))?;
    }
    if args.link {
        screen.say("the link is used up; `homing user password` gives you a password for the next time");
    }
    Ok(Exit::Done)
}

/// Whoever came with a link is told of links alone.
fn of_link(error: anyhow::Error) -> anyhow::Error {
    match error.downcast::<CliError>() {
        Ok(error) if error.is(Code::WrongSignIn) => error
            .saying("this link lets nobody in")
            .hint(
                "it works once and for a time, and has to be whole: ask whoever gave it to you for another (`homing user link NAME`)",
            )
            .into(),
        Ok(error) => error.into(),
        Err(error) => error,
    }
}

async fn by_password(args: &LoginArgs, data_dir: &DataDir, screen: Screen) -> Result<(String, NewSignIn)> {
    let url = url_of(args, data_dir)?;
    let login = match &args.user {
        Some(login) => login.clone(),
        None => terminal_prompt::line("your name", screen).await?,
    };
    let password = terminal_prompt::secret("your password", screen).await?;
    let (purpose, name) = (SignInFor::Cli, Some(system::host()));
    Ok((url, NewSignIn::Password(PasswordSignIn { login, password, purpose, name })))
}

async fn by_link(args: &LoginArgs, data_dir: &DataDir, screen: Screen) -> Result<(String, NewSignIn)> {
    let link = terminal_prompt::secret("the link", screen).await?;
    let (base, code) = match link.reveal().trim().rsplit_once("/in/") {
        Some((base, code)) => (base.to_owned(), code.to_owned()),
        None => (String::new(), link.reveal().trim().to_owned()),
    };
    let url = if base.is_empty() || args.url.is_some() { url_of(args, data_dir)? } else { base };
    check(&url)?;
    let (purpose, name) = (SignInFor::Cli, Some(system::host()));
    Ok((url, NewSignIn::Link(LinkSignIn { link: Secret::from(code), purpose, name })))
}

fn url_of(args: &LoginArgs, data_dir: &DataDir) -> Result<String> {
    let variable =
        || std::env::var("HOMING_URL").ok().filter(|url| !url.trim().is_empty() && !data_dir.named);
    let here = || data_dir.url().ok().flatten();
    let url = args.url.clone().or_else(variable).or_else(here).ok_or_else(|| {
        CliError::new(Exit::Usage, "no server is named, and none runs here").hint(
            "name one with `--url http://HOST:PORT`; whoever was given a link says `homing login --link`",
        )
    })?;
    check(&url)?;
    Ok(url.trim().trim_end_matches('/').to_owned())
}
