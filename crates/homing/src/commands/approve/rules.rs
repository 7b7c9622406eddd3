//! `homing approve rules`: what is answered to agents without asking, and who may answer.

use anyhow::Result;
use api::{NewRule, Rule, RuleEffect};

use crate::completion::Completes;
use crate::exit::{CliError, Exit};
use crate::people_lookup::{GranteeNames, grantee};
use crate::remote::{OrCliError, Remote};
use crate::time;

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
        /// The rule
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
            remote.done(&rule, &rule.id)?;
        }
        RulesVerb::Remove { rule } => {
            let done = remote.client.remove_rule(&rule).await.or_cli_error()?;
            remote.done(&done, format!("{} counts no more", done.id))?;
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
    let rows: Vec<_> = page
        .items
        .iter()
        .map(|rule| {
            let any = |named: &Option<String>| named.clone().unwrap_or_else(|| "any".to_owned());
            let place = rule.session.clone().or(rule.directory.clone());
            let by = rule.by.handle.clone().unwrap_or_else(|| rule.by.id.clone());
            let until = rule.until.map_or("removed".to_owned(), time::full);
            vec![rule.id.clone(), effect(rule), any(&rule.tool), any(&rule.agent), any(&place), until, by]
        })
        .collect();
    Ok(remote.screen.table(&["RULE", "WHAT", "TOOL", "AGENT", "WHERE", "UNTIL", "BY"], &rows)?)
}
