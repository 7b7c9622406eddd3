//! The state of the machine, for the person whose machine it is.

use crate::door::SharedDoor;
use crate::extract::{Caller, Json};
use crate::openapi::problems;
use crate::problem::ApiResult;
use api::{DoctorFindings, FindingState};
use axum::extract::State;
use engine::UnavailableError;
use std::fmt::Debug;
use std::pin::Pin;

problems! {
    DoctorProblems = [RightMissing, RoleTooLow, BoundElsewhere];
}

/// Whoever looks the machine over, and says in words why not.
pub trait Doctor: Debug + Send + Sync + 'static {
    /// Looks now. Given up when its caller drops it.
    fn look(&self) -> Pin<Box<dyn Future<Output = Result<DoctorFindings, String>> + Send + '_>>;
}

/// Look for what is wrong on the machine
///
/// What `homing doctor` would say where the server runs, with what the server sees: its data directory, disk and clock, the
/// configuration, the wall, and the agents, of which no turn is run. It takes some seconds. It tells of the machine, so it is for the person whose machine it is.
#[utoipa::path(
    get, path = "/api/v1/doctor", tag = "house", operation_id = "doctor",
    responses((status = 200, description = "What was found.", body = DoctorFindings), DoctorProblems),
)]
pub(crate) async fn doctor(
    State(door): State<SharedDoor>,
    caller: Caller,
) -> ApiResult<Json<DoctorFindings>> {
    door.engine.views().may_see_figures(&caller.by)?;
    let _place = door.take_look(caller.by.person)?;
    let Some(doctor) = door.config.doctor.clone() else {
        return Ok(Json(DoctorFindings { state: FindingState::Ok, checks: Vec::new() }));
    };
    Ok(Json(doctor.look().await.map_err(UnavailableError::Unavailable)?))
}
