//! The agents that are configured, and whether they are here.

use crate::asked::{Caller, Json};
use crate::door::Door;
use crate::openapi::problems;
use api::{Abilities, Agent, Choice, MemoryMove, Page, SignIn};
use axum::extract::State;
use engine::{AgentView, Found, Setup};

problems! {
    AgentsProblems = [];
}

/// List agents
#[utoipa::path(
    get, path = "/api/v1/agents", tag = "house", operation_id = "agents",
    responses((status = 200, description = "Every agent that is configured.", body = Page<Agent>), AgentsProblems),
)]
pub(crate) async fn list(State(door): State<Door>, _: Caller) -> Json<Page<Agent>> {
    let items = door.engine.agents().await.into_iter().map(agent_form).collect();
    Json(Page { items, next: None })
}

fn agent_form(view: AgentView) -> Agent {
    let (here, version, missing) = match view.found {
        Some(Found::Here { version }) => (true, Some(version), None),
        Some(Found::Missing { what }) => (false, None, Some(what)),
        None => (false, None, Some("it is still being looked at: ask again in a moment".to_owned())),
    };
    let sign_in = match view.sign_in {
        engine::SignIn::Unknown => SignIn::Unknown,
        engine::SignIn::Here { by } => SignIn::Here { by },
        engine::SignIn::Missing { how } => SignIn::Missing { how },
    };
    let Setup { kind, program, home, bypasses, is_kept, secrets } = view.setup;
    Agent {
        name: view.name,
        default: view.is_default,
        here,
        version,
        missing,
        sign_in,
        kind: kind.to_owned(),
        program,
        home,
        bypasses,
        kept: is_kept,
        secrets,
        abilities: abilities_form(view.abilities),
        models: choices(view.lists.models),
        modes: choices(view.lists.modes),
        commands: choices(view.lists.commands),
    }
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
        memory,
    } = can;
    let memory = match memory {
        engine::MemoryMove::Resume => MemoryMove::Resume,
        engine::MemoryMove::Carry => MemoryMove::Carry,
        engine::MemoryMove::Replay => MemoryMove::Replay,
    };
    Abilities { chosen_id, resume, fork, steer, asks, usage, commands, models, modes, images, memory }
}

fn choices(choices: Vec<engine::Choice>) -> Vec<Choice> {
    choices.into_iter().map(|engine::Choice { name, description }| Choice { name, description }).collect()
}
