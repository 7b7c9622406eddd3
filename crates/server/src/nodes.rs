//! Running copies of Homing.

use crate::door::SharedDoor;
use crate::extract::{Caller, Json};
use crate::openapi::problems;
use crate::problem::ApiResult;
use crate::wire::at;
use api::{Node, Page};
use axum::extract::State;

problems! {
    NodesProblems = [RightMissing];
}

/// List nodes
#[utoipa::path(
    get, path = "/api/v1/nodes", tag = "house", operation_id = "nodes",
    responses((status = 200, description = "Every running copy of Homing.", body = Page<Node>), NodesProblems),
)]
pub(crate) async fn list(State(door): State<SharedDoor>, caller: Caller) -> ApiResult<Json<Page<Node>>> {
    let nodes = door.engine.views().nodes(&caller.by).await?;
    let items = nodes.into_iter().map(|row| Node {
        id: row.node.to_string(),
        term: row.term.0,
        host: row.host,
        pid: row.pid,
        since: at(row.since),
        url: row.url,
    });
    Ok(Json(Page { items: items.collect(), next: None }))
}
