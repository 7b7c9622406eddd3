//! `homing approve`: questions of agents, answers to them, and the rules that answer some of them.

mod rules;

use anyhow::Result;
use api::client::ClientError;
use api::{Answer, Approval, ApprovalAnswer, ApprovalState, ApprovalsQuery, QuestionForm, Remember};

use crate::completion::Completes;
use crate::exit::{CliError, Exit};
use crate::follow::answering_command;
use crate::names::{self, Kind};
use crate::remote::{OrCliError, Remote};
use crate::table::{self, Column};
use crate::{describe, system, time};

const COLUMNS: [Column; 5] = [
    Column::new("").goes(4),
    Column::new("QUESTION"),
    Column::new("SESSION").goes(2),
    Column::new("ASKED").goes(1),
    Column::new("WORDS").right(12),
];

/// List the questions of agents, answer one, or see to the rules for them
///
/// `homing approve ID` shows a question; with `--yes`, `--no`, `--choose` or `--say` it is answered. The first answer counts,
/// and whoever comes later is told who was first.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ApproveArgs {
    #[command(subcommand)]
    verb: Option<ApproveVerb>,
    /// The question
    #[arg(value_name = "QUESTION", add = Completes::Approvals)]
    approval: Option<String>,
    #[command(flatten)]
    answer: AnswerArgs,
    #[command(flatten)]
    remember: RememberArgs,
}

#[derive(clap::Subcommand)]
enum ApproveVerb {
    /// Go ahead
    Yes {
        /// The question
        #[arg(value_name = "QUESTION", add = Completes::Approvals)]
        approval: String,
        #[command(flatten)]
        remember: RememberArgs,
    },
    /// Do not
    No {
        /// The question
        #[arg(value_name = "QUESTION", add = Completes::Approvals)]
        approval: String,
        #[command(flatten)]
        remember: RememberArgs,
    },
    /// Rules for what is answered without asking, and who may answer
    Rules(rules::RulesArgs),
}

#[derive(clap::Args)]
#[group(multiple = false, requires = "approval")]
struct AnswerArgs {
    /// Go ahead
    #[arg(long)]
    yes: bool,
    /// Do not
    #[arg(long)]
    no: bool,
    /// This one of the options, counted from 0
    #[arg(long, value_name = "N")]
    choose: Option<u16>,
    /// These words
    #[arg(long, value_name = "TEXT")]
    say: Option<String>,
}

impl AnswerArgs {
    fn answer(self) -> Option<Answer> {
        match self {
            Self { yes: true, .. } => Some(Answer::Yes),
            Self { no: true, .. } => Some(Answer::No),
            Self { choose: Some(option), .. } => Some(Answer::Chose(option)),
            Self { say: Some(words), .. } => Some(Answer::Said(words)),
            Self { .. } => None,
        }
    }
}

#[derive(clap::Args)]
struct RememberArgs {
    /// Let the same hold for this tool: in this session, or always for this agent in this directory
    #[arg(long, value_name = "HOW LONG")]
    remember: Option<RememberFor>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum RememberFor {
    Session,
    Always,
}

impl RememberArgs {
    fn remember(&self) -> Option<Remember> {
        self.remember.map(|remember| match remember {
            RememberFor::Session => Remember::Session,
            RememberFor::Always => Remember::Always,
        })
    }
}

pub(crate) async fn approve(args: ApproveArgs, remote: &Remote) -> Result<Exit> {
    match args.verb {
        Some(ApproveVerb::Yes { approval, remember }) => {
            answer(&approval, Answer::Yes, remember.remember(), remote).await
        }
        Some(ApproveVerb::No { approval, remember }) => {
            answer(&approval, Answer::No, remember.remember(), remote).await
        }
        Some(ApproveVerb::Rules(args)) => rules::rules(args, remote).await,
        None => match (args.approval, args.answer.answer()) {
            (None, _) => list(remote).await,
            (Some(approval), Some(said)) => answer(&approval, said, args.remember.remember(), remote).await,
            (Some(_), None) if args.remember.remember.is_some() => {
                let hint =
                    "say what is to be remembered, too: `homing approve QUESTION --yes --remember session`";
                Err(CliError::new(Exit::Usage, "there is no answer to remember").hint(hint).into())
            }
            (Some(approval), None) => show(&approval, remote).await,
        },
    }
}

async fn answer(approval: &str, answer: Answer, remember: Option<Remember>, remote: &Remote) -> Result<Exit> {
    let approval = names::approval(approval, remote).await?;
    let said = ApprovalAnswer { answer, remember };
    let (words, remembers) = (describe::answer(&said.answer), said.remember);
    let now = remote.client.answer(&approval, said).await.map_err(|refused| too_late(refused, &approval))?;
    let now = now.into_inner();
    remote.done(&now, format!("{} {words}", names::printed(&now.id, remote)))?;
    if remembers.is_some() {
        remote.screen.say(
            "a rule remembers it: `homing approve rules` lists it, `homing approve rules remove RULE` forgets it",
        );
    }
    Ok(Exit::Done)
}

/// Whoever comes too late is told who was first, what they said and when.
fn too_late(refused: ClientError, approval: &str) -> CliError {
    let before = match &refused {
        ClientError::Refused(problem) => problem.answered.clone(),
        _ => None,
    };
    let error = CliError::from(refused);
    let Some(before) = before else { return error };
    let by = before.by_handle.or(before.by).unwrap_or_else(|| "nobody in time".to_owned());
    let at = before.at.map(|at| format!(" at {}", time::clock(at))).unwrap_or_default();
    error.hint(format!(
        "the answer was {}, by {by}{at}, and stands; `homing approve {approval}` shows the question",
        describe::answer(&before.answer)
    ))
}

async fn list(remote: &Remote) -> Result<Exit> {
    let page = remote.client.approvals(&ApprovalsQuery::default()).await.or_cli_error()?;
    if remote.screen.json {
        remote.screen.object(&page)?;
        return Ok(Exit::Done);
    }
    if page.items.is_empty() {
        remote.screen.say("no agent asks anything");
        return Ok(Exit::Done);
    }
    let ids = page.items.iter().map(|approval| approval.id.clone()).collect::<Vec<_>>();
    let row = |(approval, (mark, id)): (&Approval, (String, String))| {
        let asked = time::ago(approval.asked_at, system::now());
        vec![mark, id, names::shown_id(&approval.session, remote), asked, question(approval)]
    };
    let shown = names::shown(Kind::Approval, &ids, remote);
    let rows: Vec<_> = page.items.iter().zip(shown).map(row).collect();
    table::print(remote.screen, &COLUMNS, &rows)?;
    remote
        .screen
        .say("`homing approve QUESTION` shows one; answer with --yes, --no, --choose N or --say TEXT");
    Ok(Exit::Done)
}

async fn show(approval: &str, remote: &Remote) -> Result<Exit> {
    let approval = names::approval(approval, remote).await?;
    let approval = remote.client.approval(&approval).await.or_cli_error()?;
    if remote.screen.json {
        remote.screen.object(&approval)?;
        return Ok(Exit::Done);
    }
    remote.screen.hanging(0, &question(&approval))?;
    for (number, option) in approval.options.iter().enumerate() {
        remote.screen.line(format!("  {number}  {}  {}", option.name, option.description).trim_end())?;
    }
    let session = format!("turn {} of {}", approval.turn, names::shown_id(&approval.session, remote));
    let place = [approval.agent.clone(), approval.directory.clone()].into_iter().flatten();
    remote.screen.hanging(0, &[session].into_iter().chain(place).collect::<Vec<_>>().join(", "))?;
    remote.screen.hanging(0, &standing(&approval))?;
    if approval.state == ApprovalState::Open {
        let words = format!("answer with {}", answering_command(&approval.id, approval.form));
        remote.screen.progress(names::said(&words, remote));
    }
    Ok(Exit::Done)
}

fn standing(approval: &Approval) -> String {
    let by = approval.by_handle.clone().or(approval.by.clone());
    match (approval.state, &approval.answer) {
        (ApprovalState::Open, _) => {
            let only = match &approval.only {
                Some(only) => format!("; only those of rule {} may answer", only.rule),
                None => String::new(),
            };
            format!("open; without an answer by {} it is a no{only}", time::full(approval.until))
        }
        (ApprovalState::Answered, Some(answer)) => {
            format!(
                "answered: {}, by {}",
                describe::answer(answer),
                by.unwrap_or_else(|| "nobody in time".into())
            )
        }
        (ApprovalState::Answered, None) => "answered".to_owned(),
        (ApprovalState::Lapsed, _) => "lapsed: its turn is over, or the agent took it back".to_owned(),
    }
}

/// The question, in a line.
pub(crate) fn question(approval: &Approval) -> String {
    let tool = approval.tool.as_deref().unwrap_or_default();
    let detail = approval.detail.as_deref().unwrap_or_default();
    let wants = match approval.form {
        QuestionForm::Permission => "",
        QuestionForm::Choice => " (choose one)",
        QuestionForm::Words => " (in words)",
    };
    match (tool.is_empty(), detail.is_empty()) {
        (true, _) => format!("{detail}{wants}"),
        (false, true) => format!("{tool}{wants}"),
        (false, false) => format!("{tool}: {detail}{wants}"),
    }
}
