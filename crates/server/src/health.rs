//! Health: whether we live, whether we can work, and what it costs.

use crate::door::SharedDoor;
use crate::extract::{Caller, json_bytes};
use crate::openapi::problems;
use crate::problem::ApiResult;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};

problems! {
    ReadyProblems = [];
    MetricsProblems = [RightMissing, RoleTooLow, BoundElsewhere];
}

/// Ask whether the server lives
///
/// Needs no credential and says nothing else.
#[utoipa::path(
    get, path = "/healthz", tag = "house", operation_id = "healthz", security(()),
    responses((status = 200, description = "It does.", body = serde_json::Value)),
)]
pub(crate) async fn healthz() -> Response {
    json_bytes(StatusCode::OK, "{\"status\":\"ok\"}")
}

/// Ask whether the server can work
///
/// Asks the store something.
#[utoipa::path(
    get, path = "/readyz", tag = "house", operation_id = "readyz",
    responses((status = 200, description = "It can.", body = serde_json::Value), ReadyProblems),
)]
pub(crate) async fn readyz(State(door): State<SharedDoor>, _: Caller) -> ApiResult<Response> {
    door.engine.ready().await?;
    Ok(json_bytes(StatusCode::OK, "{\"status\":\"ready\"}"))
}

/// Read the server's figures
///
/// In the text form of Prometheus and OpenMetrics. They count what everybody does, so they are for the person whose machine
/// it is.
#[utoipa::path(
    get, path = "/metrics", tag = "house", operation_id = "metrics",
    responses(
        (status = 200, description = "The figures.", body = String,
            content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8"),
        MetricsProblems,
    ),
)]
pub(crate) async fn metrics(State(door): State<SharedDoor>, caller: Caller) -> ApiResult<Response> {
    let disk = door.engine.views().disk_totals(&caller.by).await?;
    let tree_bytes = door.engine.worktrees().noted_bytes().await?;
    let snapshot_bytes = door.engine.worktrees().snapshot_bytes().await?;
    let mut response = Response::new(door.metrics.text(&door, disk, tree_bytes, snapshot_bytes).into());
    let kind = HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}
