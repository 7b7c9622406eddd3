//! Who is asking.

use crate::asked::{Caller, Json};
use crate::openapi::problems;
use api::Me;

problems! {
    MeProblems = [];
}

/// Ask whose credential this is
#[utoipa::path(
    get, path = "/api/v1/me", tag = "house", operation_id = "me",
    responses((status = 200, description = "Whose it is.", body = Me), MeProblems),
)]
pub(crate) async fn me(caller: Caller) -> Json<Me> {
    let by = caller.by;
    Json(Me { person: by.person.to_string(), org: by.org.to_string(), handle: by.handle.clone() })
}
