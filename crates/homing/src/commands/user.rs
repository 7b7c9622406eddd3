//! `homing user`: the people of your org.

use anyhow::Result;
use api::{HandOver, Link, NewPassword, NewPerson, Person, PersonChange};

use crate::describe::RoleArg;
use crate::exit::{CliError, Exit};
use crate::people_lookup::{everybody, person, person_id};
use crate::remote::{OrCliError, Remote};
use crate::{describe, system, terminal_prompt, time};

/// List the people of your org, let somebody in, or change somebody
///
/// People are named by handle, e-mail address or id.
#[derive(clap::Args)]
pub(crate) struct UserArgs {
    #[command(subcommand)]
    verb: Option<UserVerb>,
}

#[derive(clap::Subcommand)]
enum UserVerb {
    /// List everybody
    Ls,
    /// Show somebody
    Show { name: String },
    /// Let somebody in: prints the link by which they come in, once, within seven days
    Add {
        /// The name that will stand in their addresses; it never changes
        handle: String,
        /// Their name, for people
        #[arg(long)]
        name: Option<String>,
        #[arg(long)]
        email: Option<String>,
        /// Their role
        #[arg(long, value_enum, default_value = "member")]
        role: RoleArg,
    },
    /// Change what somebody is called
    Set {
        name: String,
        /// Their name, for people
        #[arg(long = "name", value_name = "NAME")]
        called: Option<String>,
        #[arg(long)]
        email: Option<String>,
    },
    /// Change what somebody is in the org
    Role {
        name: String,
        #[arg(value_enum)]
        role: RoleArg,
    },
    /// Shut somebody out: their tokens die, what they said and waits is refused, what runs is stopped
    Disable { name: String },
    /// Let somebody in again; they sign in anew
    Enable { name: String },
    /// Print a link by which somebody signs in, once
    Link {
        /// The person [default: you]
        name: Option<String>,
    },
    /// Choose another password of your own, or take somebody's away
    ///
    /// Asks without showing it; from a pipe it is one line for the present one, if there is one, and one for the new one.
    Password {
        /// Whose is taken away
        #[arg(requires = "remove")]
        name: Option<String>,
        /// Take it away; links and sign-in elsewhere still work
        #[arg(long, requires = "name")]
        remove: bool,
    },
    /// Offer all sessions of somebody to somebody else
    ///
    /// Each is the other's when they accept it (`homing grant accept`). Those of somebody who is shut out are at once.
    HandOver { from: String, to: String },
}

pub(crate) async fn user(args: UserArgs, remote: &Remote) -> Result<Exit> {
    match args.verb.unwrap_or(UserVerb::Ls) {
        UserVerb::Ls => list(remote).await?,
        UserVerb::Show { name } => show(&person(&name, remote).await?, remote)?,
        UserVerb::Add { handle, name, email, role } => {
            let new = NewPerson { handle, name, email, role: Some(role.into()) };
            add(&new, remote).await?;
        }
        UserVerb::Set { name, called, email } => {
            change(&name, PersonChange { name: called, email, role: None }, remote).await?;
        }
        UserVerb::Role { name, role } => {
            let role = Some(role.into());
            change(&name, PersonChange { role, ..PersonChange::default() }, remote).await?;
        }
        UserVerb::Disable { name } => {
            let id = person_id(&name, remote).await?;
            let done = remote.client.disable(&id).await.or_cli_error()?;
            remote.done(&done, format!("{name} is shut out"))?;
        }
        UserVerb::Enable { name } => {
            let id = person_id(&name, remote).await?;
            let done = remote.client.enable(&id).await.or_cli_error()?;
            remote.done(&done, format!("{name} may come in again; `homing user link {name}` is a way"))?;
        }
        UserVerb::Link { name } => {
            let id = match name {
                Some(name) => person_id(&name, remote).await?,
                None => remote.client.me().await.or_cli_error()?.person,
            };
            let link = remote.client.make_link(&id).await.or_cli_error()?;
            tell_link(&link, remote)?;
        }
        UserVerb::Password { name: Some(name), .. } => {
            let id = person_id(&name, remote).await?;
            let done = remote.client.remove_password(&id).await.or_cli_error()?;
            remote.done(&done, format!("{name} has no password any more"))?;
        }
        UserVerb::Password { name: None, .. } => own_password(remote).await?,
        UserVerb::HandOver { from, to } => {
            let (whose, to_id) = (person(&from, remote).await?, person_id(&to, remote).await?);
            let done =
                remote.client.hand_over_all(&whose.id, &HandOver { to: to_id }).await.or_cli_error()?;
            let words = match whose.disabled_at {
                Some(_) => format!("all sessions of {from} are {to}'s now"),
                None => format!(
                    "all sessions of {from} are offered to {to}, and are {to}'s with `homing grant accept`"
                ),
            };
            remote.done(&done, words)?;
        }
    }
    Ok(Exit::Done)
}

async fn list(remote: &Remote) -> Result<()> {
    let people = everybody(remote).await?;
    if remote.screen.json {
        return Ok(people.iter().try_for_each(|person| remote.screen.object(person))?);
    }
    let rows: Vec<Vec<String>> = people
        .iter()
        .map(|person| {
            vec![
                person.handle.clone(),
                describe::role(person.role).to_owned(),
                person.disabled_at.map_or("", |_| "shut out").to_owned(),
                person.email.clone().unwrap_or_default(),
                person.name.clone().unwrap_or_default(),
                person.id.clone(),
            ]
        })
        .collect();
    Ok(remote.screen.table(&["USER", "ROLE", "STATE", "E-MAIL", "NAME", "ID"], &rows)?)
}

fn show(person: &Person, remote: &Remote) -> Result<()> {
    if remote.screen.json {
        return Ok(remote.screen.object(person)?);
    }
    let mut pairs = vec![("user", person.handle.clone())];
    pairs.extend(person.name.clone().map(|name| ("name", name)));
    pairs.extend(person.email.clone().map(|email| ("e-mail", email)));
    pairs.push(("role", describe::role(person.role).to_owned()));
    let password = |has: bool| if has { "yes" } else { "none" }.to_owned();
    pairs.extend(person.has_password.map(|has| ("password", password(has))));
    pairs.push(("since", time::full(person.made_at)));
    pairs.extend(person.disabled_at.map(|at| ("shut out", time::ago(at, system::now()))));
    pairs.push(("id", person.id.clone()));
    Ok(remote.screen.pairs(&pairs)?)
}

async fn add(new: &NewPerson, remote: &Remote) -> Result<()> {
    let added = remote.client.add_person(new).await.or_cli_error()?;
    if remote.screen.json {
        return Ok(remote.screen.object(&added)?);
    }
    remote.screen.say(format!("{} is in your org. This link lets them in:", added.user.handle));
    tell_link(&added.link, remote)
}

/// The link is data; the words around it are not.
fn tell_link(link: &Link, remote: &Remote) -> Result<()> {
    if remote.screen.json {
        return Ok(remote.screen.object(link)?);
    }
    remote.screen.line(format!("{}{}", remote.client.base(), link.path.reveal()))?;
    let until = time::full(link.expires);
    remote.screen.say(format!("it works once, until {until}, for whoever has it: hand it over in private"));
    Ok(())
}

async fn change(name: &str, change: PersonChange, remote: &Remote) -> Result<()> {
    if change == PersonChange::default() {
        return Err(CliError::new(Exit::Usage, "there is nothing to change")
            .hint("use --name or --email")
            .into());
    }
    let id = person_id(name, remote).await?;
    let changed = remote.client.change_person(&id, &change).await.or_cli_error()?;
    show(&changed, remote)
}

async fn own_password(remote: &Remote) -> Result<()> {
    let me = remote.client.me().await.or_cli_error()?;
    let current = match me.has_password {
        true => Some(terminal_prompt::secret("your present password", remote.screen).await?),
        false => None,
    };
    let new = terminal_prompt::new_secret("your new password", remote.screen).await?;
    let done = remote.client.set_password(&NewPassword { current, new }).await.or_cli_error()?;
    remote.done(&done, "your password is changed; other browsers and command lines of yours are signed out")
}
