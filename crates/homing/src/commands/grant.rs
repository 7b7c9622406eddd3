//! `homing grant`: who may do what with a session or an agent.

use anyhow::Result;
use api::{HandOver, NewGrant};

use crate::completion::Completes;
use crate::describe::GrantArg;
use crate::exit::{CliError, Exit};
use crate::names::{self, Kind};
use crate::people_lookup::{GranteeNames, grantee, person_id};
use crate::remote::{OrCliError, Remote};
use crate::table::{self, Column};
use crate::{describe, system, time};

const OFFER_COLUMNS: [Column; 6] = [
    Column::new("").goes(5),
    Column::new("SESSION"),
    Column::new("FROM").goes(2),
    Column::new("TO").goes(1),
    Column::new("UNTIL").goes(3),
    Column::new("TITLE").right(14).goes(4),
];

/// List what was given on a session or an agent, give something, or take it back
///
/// ON is a session or `agent:NAME`. TO is a person (handle, e-mail address or id), `group:NAME`, or `org` for
/// everybody in your org.
#[derive(clap::Args)]
pub(crate) struct GrantArgs {
    #[command(subcommand)]
    verb: GrantVerb,
}

#[derive(clap::Subcommand)]
enum GrantVerb {
    /// List what was given on it
    Ls {
        #[arg(add = Completes::SessionsAndAgents)]
        on: String,
    },
    /// Give something, in place of what they were given before
    ///
    /// Whoever may prompt has a shell as the agent's user. An agent on which something was given is no longer open to
    /// everybody else.
    Give {
        #[arg(add = Completes::SessionsAndAgents)]
        on: String,
        to: String,
        #[arg(value_enum)]
        grant: GrantArg,
    },
    /// Take it back
    Take {
        #[arg(add = Completes::SessionsAndAgents)]
        on: String,
        from: String,
    },
    /// Offer a session to somebody, whose it is when they accept it
    ///
    /// They have seven days. Nothing changes until then.
    HandOver {
        #[arg(add = Completes::Sessions)]
        session: String,
        to: String,
    },
    /// List the sessions that are offered to you, and those of yours that you have offered
    Offers,
    /// Accept a session that is offered to you
    ///
    /// It is yours alone from then on: what was given on it ends, and so does everything that waits or runs in it.
    Accept {
        /// As `homing grant offers` lists it
        session: String,
    },
    /// Decline a session that is offered to you
    Decline {
        /// As `homing grant offers` lists it
        session: String,
    },
    /// Take back the offer of a session that you manage
    Keep {
        #[arg(add = Completes::Sessions)]
        session: String,
    },
}

pub(crate) async fn grant(args: GrantArgs, remote: &Remote) -> Result<Exit> {
    match args.verb {
        GrantVerb::Ls { on } => list(&resource(&on, remote).await?, remote).await?,
        GrantVerb::Give { on, to, grant } => {
            let new = NewGrant { to: grantee(&to, remote).await?, grant: grant.into() };
            let given = remote.client.give(&resource(&on, remote).await?, &new).await.or_cli_error()?;
            remote.done(&given, format!("{to} may {} {on}", describe::grant(given.grant)))?;
        }
        GrantVerb::Take { on, from } => {
            let grantee = grantee(&from, remote).await?;
            let taken =
                remote.client.take_back(&resource(&on, remote).await?, grantee).await.or_cli_error()?;
            remote.done(&taken, format!("{from} has nothing on {on} any more"))?;
        }
        GrantVerb::HandOver { session, to } => {
            let session = names::session(&session, remote).await?;
            let over = HandOver { to: person_id(&to, remote).await? };
            let done = remote.client.hand_over(&session, &over).await.or_cli_error()?;
            remote.done(
                &done,
                format!("{} is {to}'s when they accept it", names::shown_id(&session, remote)),
            )?;
        }
        GrantVerb::Offers => offers(remote).await?,
        GrantVerb::Accept { session } => {
            let session = names::offer(&session, remote).await?;
            let done = remote.client.accept_offer(&session).await.or_cli_error()?;
            remote.done(&done, format!("{} is yours", names::shown_id(&session, remote)))?;
        }
        GrantVerb::Decline { session } => {
            let session = names::offer(&session, remote).await?;
            let done = remote.client.decline_offer(&session).await.or_cli_error()?;
            remote.done(&done, format!("{} stays whose it is", names::shown_id(&session, remote)))?;
        }
        GrantVerb::Keep { session } => {
            let session = names::session(&session, remote).await?;
            let done = remote.client.take_offer_back(&session).await.or_cli_error()?;
            remote.done(&done, format!("{} is offered to nobody", names::shown_id(&session, remote)))?;
        }
    }
    Ok(Exit::Done)
}

/// The path of what is given something on.
async fn resource(on: &str, remote: &Remote) -> Result<String> {
    match on.strip_prefix("agent:") {
        Some(name) if is_name(name) => Ok(format!("agents/{name}")),
        None => Ok(format!("sessions/{}", names::session(on, remote).await?)),
        Some(_) => Err(CliError::new(Exit::Usage, format!("{on:?} is neither a session nor an agent"))
            .hint("name a session (`homing ls` lists them) or an agent, as agent:NAME (`homing agents`)")
            .into()),
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
}

async fn offers(remote: &Remote) -> Result<()> {
    let page = remote.client.offers().await.or_cli_error()?;
    if remote.screen.json {
        return Ok(remote.screen.object(&page)?);
    }
    if page.items.is_empty() {
        remote.screen.say("no session is offered to you or by you");
        return Ok(());
    }
    let name = |who: api::Who| who.handle.unwrap_or(who.id);
    let ids = page.items.iter().map(|offer| offer.session.clone()).collect::<Vec<_>>();
    let row = |(offer, (mark, id)): (api::Offer, (String, String))| {
        let (until, title) = (time::full(offer.until), offer.title.unwrap_or_default());
        vec![mark, id, name(offer.from), name(offer.to), until, title]
    };
    let shown = names::shown(Kind::Offer, &ids, remote);
    let rows: Vec<Vec<String>> = page.items.into_iter().zip(shown).map(row).collect();
    Ok(table::print(remote.screen, &OFFER_COLUMNS, &rows)?)
}

async fn list(on: &str, remote: &Remote) -> Result<()> {
    let page = remote.client.grants(on).await.or_cli_error()?;
    if remote.screen.json {
        return Ok(remote.screen.object(&page)?);
    }
    if page.items.is_empty() {
        remote.screen.say("nobody but its owner has a grant on it; `homing grant give` shares it");
        return Ok(());
    }
    let names = GranteeNames::load(remote).await?;
    let rows: Vec<Vec<String>> = page
        .items
        .into_iter()
        .map(|given| {
            let (by, since) = (given.by.handle.unwrap_or(given.by.id), time::ago(given.since, system::now()));
            vec![names.of(&given.to), describe::grant(given.grant).to_owned(), by, since]
        })
        .collect();
    Ok(remote.screen.table(&["TO", "MAY", "GIVEN BY", "SINCE"], &rows)?)
}
