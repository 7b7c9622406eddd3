//! The agents that are configured, whether they are here, and people's own sign-ins for them.

use crate::door::SharedDoor;
use crate::extract::{Caller, Json, JsonBody, PathAgentName};
use crate::openapi::problems;
use crate::problem::ApiResult;
use crate::wire::at;
use api::{
    Abilities, Account, Agent, Choice, FilesTaken, MemoryMove, NewAccount, Page, SignIn, TriedVersions,
    VersionAge,
};
use axum::extract::State;
use engine::{AccountView, AgentView, Presence, Setup};

problems! {
    AgentsProblems = [RightMissing];
    AccountProblems = [NotFound, RightMissing, BoundElsewhere];
    SetAccountProblems = [BadJson, TooSlow, TooLarge, UnsupportedMediaType, Invalid, NotFound, RightMissing,
        BoundElsewhere, DiskFull, Unclear];
    RemoveAccountProblems = [Invalid, NotFound, RightMissing, BoundElsewhere, DiskFull, Unclear];
}

/// List agents
#[utoipa::path(
    get, path = "/api/v1/agents", tag = "house", operation_id = "agents",
    responses((status = 200, description = "Every agent that there is for you.", body = Page<Agent>), AgentsProblems),
)]
pub(crate) async fn list(State(door): State<SharedDoor>, caller: Caller) -> ApiResult<Json<Page<Agent>>> {
    let items = door.engine.views().agents(&caller.by).await?.into_iter().map(agent_form).collect();
    Ok(Json(Page { items, next: None }))
}

/// The name of an agent, in a path.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code)]
pub(crate) struct AgentName {
    /// The agent.
    #[param(max_length = 64, pattern = "^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    name: String,
}

/// Show your own sign-in for an agent
///
/// Which variables you gave, and when. What they hold cannot be read back.
#[utoipa::path(
    get, path = "/api/v1/agents/{name}/account", tag = "house", operation_id = "account", params(AgentName),
    responses((status = 200, description = "Whose sign-in your turns use.", body = Account), AccountProblems),
)]
pub(crate) async fn account(
    State(door): State<SharedDoor>,
    caller: Caller,
    PathAgentName(agent): PathAgentName,
) -> ApiResult<Json<Account>> {
    let view = door.engine.people().account(&caller.by, &agent).await?;
    Ok(Json(account_form(&caller, agent, view)))
}

/// Give your own sign-in for an agent
///
/// It is kept sealed, and handed to the agent in turns of your own messages only. It stands in place of everything you
/// gave before; saying it twice is saying it once.
#[utoipa::path(
    put, path = "/api/v1/agents/{name}/account", tag = "house", operation_id = "set_account", params(AgentName),
    request_body = NewAccount,
    responses((status = 200, description = "Your turns use it from now on.", body = Account), SetAccountProblems),
)]
pub(crate) async fn set_account(
    State(door): State<SharedDoor>,
    caller: Caller,
    PathAgentName(agent): PathAgentName,
    JsonBody(given): JsonBody<NewAccount>,
) -> ApiResult<Json<Account>> {
    given.check()?;
    let trace = caller.trace.clone();
    let view = door.engine.people().set_account(&caller.by, &agent, given.secrets, trace).await?;
    Ok(Json(account_form(&caller, agent, Some(view))))
}

/// Take your own sign-in for an agent away
///
/// Your turns use the house's again. Fine to say twice.
#[utoipa::path(
    delete, path = "/api/v1/agents/{name}/account", tag = "house", operation_id = "remove_account",
    params(AgentName),
    responses((status = 200, description = "It is forgotten.", body = Account), RemoveAccountProblems),
)]
pub(crate) async fn remove_account(
    State(door): State<SharedDoor>,
    caller: Caller,
    PathAgentName(agent): PathAgentName,
) -> ApiResult<Json<Account>> {
    door.engine.people().remove_account(&caller.by, &agent, caller.trace.clone()).await?;
    Ok(Json(account_form(&caller, agent, None)))
}

fn account_form(caller: &Caller, agent: String, view: Option<AccountView>) -> Account {
    match view {
        Some(AccountView { names, since }) => {
            Account { agent, account: caller.by.person.to_string(), secrets: names, since: Some(at(since)) }
        }
        None => Account { agent, account: "house".to_owned(), secrets: Vec::new(), since: None },
    }
}

fn agent_form(view: AgentView) -> Agent {
    let (here, version, missing) = match view.found {
        Some(Presence::Here { version }) => (true, Some(version).filter(|version| !version.is_empty()), None),
        Some(Presence::Missing { what }) => (false, None, Some(what)),
        None => (false, None, Some("it is still being looked at: ask again in a moment".to_owned())),
    };
    let sign_in = match view.sign_in {
        engine::SignIn::Unknown => SignIn::Unknown,
        engine::SignIn::Here { by } => SignIn::Here { by },
        engine::SignIn::Missing { how } => SignIn::Missing { how },
    };
    let Setup { kind, program, home, bypasses, is_kept, keeps_background, secrets, tried } = view.setup;
    let tried = tried.map(|tried| tried_form(tried, version.as_deref().unwrap_or_default()));
    Agent {
        name: view.name,
        default: view.is_default,
        here,
        version,
        tried,
        missing,
        sign_in,
        kind: kind.to_owned(),
        program,
        home,
        bypasses,
        kept: is_kept,
        keeps_background,
        secrets,
        abilities: abilities_form(view.abilities),
        models: choices(view.lists.models),
        modes: choices(view.lists.modes),
        commands: choices(view.lists.commands),
    }
}

/// The versions that were tried, and what this one is beside them.
fn tried_form(tried: engine::TriedVersions, version: &str) -> TriedVersions {
    let age = match tried.age(version) {
        engine::VersionAge::Older => VersionAge::Older,
        engine::VersionAge::Tried => VersionAge::Tried,
        engine::VersionAge::Newer => VersionAge::Newer,
        engine::VersionAge::Unknown => VersionAge::Unknown,
    };
    let engine::TriedVersions { oldest, newest, update } = tried;
    TriedVersions { oldest, newest, age, update }
}

fn abilities_form(can: engine::Abilities) -> Abilities {
    let engine::Abilities {
        chosen_id,
        resume,
        fork,
        steer,
        asks,
        usage,
        commands,
        models,
        modes,
        images,
        files,
        // How a lost memory is mended is in the story of the turn, and nothing to choose by.
        forgets: _,
        memory,
    } = can;
    let memory = match memory {
        engine::MemoryMove::Resume => MemoryMove::Resume,
        engine::MemoryMove::Carry => MemoryMove::Carry,
        engine::MemoryMove::Replay => MemoryMove::Replay,
    };
    let files = match files {
        engine::FilesTaken::Text => FilesTaken::Text,
        engine::FilesTaken::Pdf => FilesTaken::Pdf,
        engine::FilesTaken::Any => FilesTaken::Any,
    };
    Abilities { chosen_id, resume, fork, steer, asks, usage, commands, models, modes, images, files, memory }
}

fn choices(choices: Vec<engine::Choice>) -> Vec<Choice> {
    choices.into_iter().map(|engine::Choice { name, description }| Choice { name, description }).collect()
}
