//! `homing approve rules`: what is answered to agents without asking, and who may answer.

use anyhow::Result;
use api::{NewRule, Rule, RuleEffect};

use crate::completion::Completes;
use crate::exit::{CliError, Exit};
use crate::names::{self, Kind};
use crate::people_lookup::{GranteeNames, grantee};
use crate::remote::{OrCliError, Remote};
use crate::table::{self, Column};
use crate::{here, time};

const COLUMNS: [Column; 8] = [
    Column::new("").goes(5),
    Column::new("RULE"),
    Column::new("WHAT"),
    Column::new("TOOL").right(8),
    Column::new("AGENT").goes(3),
    Column::new("WHERE").left(14).goes(4),
    Column::new("UNTIL").goes(2),
    Column::new("BY").goes(1),
];

/// List, add or remove rules for what agents ask
///
/// What a rule does not name, it does not ask about. A no beats people, people beat a yes. Whoever manages a session makes
/// rules for it, an admin all others.
#[derive(clap::Args)]
pub(crate) struct RulesArgs {
    #[command(subcommand)]
    verb: Option<RulesVerb>,
}

#[derive(clap::Subcommand)]
enum RulesVerb {
    /// List them
    #[command(visible_alias = "ls")]
    List,
    /// Make one
    Add(AddArgs),
    /// Remove one
    #[command(visible_alias = "rm")]
    Remove {
        /// The rule: its id, a piece of it, or @LINE of the last list
        rule: String,
    },
}

#[derive(clap::Args)]
struct AddArgs {
    /// Only questions of this agent
    #[arg(long, add = Completes::Agents)]
    agent: Option<String>,
    /// Only questions about this tool; with a star at the end, about all whose names begin so
    #[arg(long)]
    tool: Option<String>,
    /// Only in this directory and below it
    #[arg(long, value_hint = clap::ValueHint::DirPath)]
    directory: Option<String>,
    /// Only in this session; the rule goes when it ends
    #[arg(long, add = Completes::OpenSessions)]
    session: Option<String>,
    /// Until when it counts: a duration such as 12h or 30d, a day, or a moment [default: until it is removed]
    #[arg(long)]
    until: Option<String>,
    #[command(flatten)]
    effect: EffectArgs,
}

#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct EffectArgs {
    /// Permissions are answered with yes
    #[arg(long)]
    allow: bool,
    /// They are answered with no
    #[arg(long)]
    deny: bool,
    /// Only they may answer: a person, `group:NAME`, or `org`
    #[arg(long, value_name = "WHO")]
    only: Option<String>,
}

pub(super) async fn rules(args: RulesArgs, remote: &Remote) -> Result<Exit> {
    match args.verb.unwrap_or(RulesVerb::List) {
        RulesVerb::List => list(remote).await?,
        RulesVerb::Add(args) => {
            let rule = remote.client.add_rule(&new_rule(args, remote).await?).await.or_cli_error()?;
            remote.done(&rule, names::printed(&rule.id, remote))?;
        }
        RulesVerb::Remove { rule } => {
            let rule = names::rule(&rule, remote).await?;
            let done = remote.client.remove_rule(&rule).await.or_cli_error()?;
            remote.done(&done, format!("{} counts no more", names::printed(&done.id, remote)))?;
        }
    }
    Ok(Exit::Done)
}

async fn new_rule(args: AddArgs, remote: &Remote) -> Result<NewRule> {
    let AddArgs { agent, tool, directory, session, until, effect } = args;
    let until = until.map(|text| time::ahead(&text, "")).transpose()?;
    let (effect, who) = match effect {
        EffectArgs { only: Some(who), .. } => (RuleEffect::Ask, Some(grantee(&who, remote).await?)),
        EffectArgs { deny: true, .. } => (RuleEffect::Deny, None),
        EffectArgs { .. } => (RuleEffect::Allow, None),
    };
    let directory = directory.as_deref().map(absolute).transpose()?;
    let session = match session {
        Some(typed) => Some(names::session(&typed, remote).await?),
        None => None,
    };
    Ok(NewRule { effect, who, agent, tool, directory, session, until })
}

fn absolute(directory: &str) -> Result<String> {
    let absolute = std::path::absolute(directory)?;
    absolute.to_str().map(str::to_owned).ok_or_else(|| {
        CliError::new(
            Exit::Usage,
            format!("the name of {} is not UTF-8, which this needs", absolute.display()),
        )
        .hint("rename it, or use another directory")
        .into()
    })
}

async fn list(remote: &Remote) -> Result<()> {
    let page = remote.client.rules().await.or_cli_error()?;
    if remote.screen.json {
        return Ok(remote.screen.object(&page)?);
    }
    if page.items.is_empty() {
        remote
            .screen
            .say("there are none: whoever may say something in a session answers what its agent asks");
        return Ok(());
    }
    let names = GranteeNames::load(remote).await?;
    let effect = |rule: &Rule| match (rule.effect, &rule.who) {
        (RuleEffect::Allow, _) => "allow".to_owned(),
        (RuleEffect::Deny, _) => "deny".to_owned(),
        (RuleEffect::Ask, Some(who)) => format!("only {}", names.of(who)),
        (RuleEffect::Ask, None) => "ask".to_owned(),
    };
    let ids: Vec<String> = page.items.iter().map(|rule| rule.id.clone()).collect();
    let row = |(rule, (mark, id)): (&Rule, (String, String))| {
        let any = |named: &Option<String>| named.clone().unwrap_or_else(|| "any".to_owned());
        let place = match (&rule.session, &rule.directory) {
            (Some(session), _) => Some(names::shown_id(session, remote)),
            (None, Some(directory)) if remote.screen.out_is_terminal => Some(here::with_tilde(directory)),
            (None, directory) => directory.clone(),
        };
        let by = rule.by.handle.clone().unwrap_or_else(|| rule.by.id.clone());
        let until = rule.until.map_or("removed".to_owned(), time::full);
        vec![mark, id, effect(rule), any(&rule.tool), any(&rule.agent), any(&place), until, by]
    };
    let shown = names::shown(Kind::Rule, &ids, remote);
    let rows: Vec<_> = page.items.iter().zip(shown).map(row).collect();
    Ok(table::print(remote.screen, &COLUMNS, &rows)?)
}
