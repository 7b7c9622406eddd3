//! The agents that are configured, and whether they are here.

use crate::asked::{Caller, Json};
use crate::door::Door;
use crate::openapi::problems;
use api::{Abilities, Agent, Page};
use axum::extract::State;
use engine::{AgentView, Found};

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
        Found::Here { version } => (true, Some(version), None),
        Found::Missing { what } => (false, None, Some(what)),
    };
    let can = view.abilities;
    let abilities =
        Abilities { resume: can.resume, fork: can.fork, steer: can.steer, asks: can.asks, usage: can.usage };
    Agent { name: view.name, default: view.is_default, here, version, missing, abilities }
}
