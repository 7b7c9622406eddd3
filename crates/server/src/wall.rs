//! The wall around the data, tried out.

use crate::door::SharedDoor;
use crate::extract::{Caller, Json};
use crate::openapi::problems;
use crate::problem::ApiResult;
use api::Wall;
use axum::extract::State;

problems! {
    WallProblems = [RightMissing, RoleTooLow, BoundElsewhere];
}

/// Try whether agents can reach what is not theirs
///
/// For admins. Somebody who is walled off as an agent is tries to read the server's data, other people's homes and sign-ins,
/// and says what was found.
#[utoipa::path(
    get, path = "/api/v1/wall", tag = "house", operation_id = "wall",
    responses((status = 200, description = "What was found.", body = Wall), WallProblems),
)]
pub(crate) async fn wall(State(door): State<SharedDoor>, caller: Caller) -> ApiResult<Json<Wall>> {
    let proof = door.engine.people().wall_proof(&caller.by).await?;
    let trusts_everyone = door.engine.people().trusts_everyone();
    Ok(Json(Wall { proved: proof.proved, trusts_everyone, findings: proof.findings }))
}
