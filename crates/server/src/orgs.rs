//! Orgs: your own and what it has decided, and those of the machine.

use crate::door::SharedDoor;
use crate::extract::{Caller, Json, JsonBody};
use crate::openapi::{KeyHeader, problems};
use crate::people::{grant_form, grant_of, link_form};
use crate::problem::ApiResult;
use crate::wire::at;
use api::{MadeOrg, NewOrg, Org, OrgChange, OrgSettings, Page};
use axum::extract::State;
use engine::{MakeOrg, OrgRow, who_changed};

problems! {
    ListProblems = [RightMissing, RoleTooLow, BoundElsewhere];
    ReadProblems = [RightMissing, BoundElsewhere];
    MakeProblems = [BadJson, TooSlow, TooLarge, UnsupportedMediaType, Invalid, RightMissing, RoleTooLow, BoundElsewhere,
        Taken, WallNotProved, IdempotencyConflict, Changed, DiskFull, Unclear];
    ChangeProblems = [BadJson, TooSlow, TooLarge, UnsupportedMediaType, Invalid, RightMissing, RoleTooLow,
        BoundElsewhere, IdempotencyConflict, Changed, DiskFull, Unclear];
}

/// List orgs
///
/// Every org of the machine; for the person whose machine it is.
#[utoipa::path(
    get, path = "/api/v1/orgs", tag = "people", operation_id = "orgs",
    responses((status = 200, description = "Every org.", body = Page<Org>), ListProblems),
)]
pub(crate) async fn list(State(door): State<SharedDoor>, caller: Caller) -> ApiResult<Json<Page<Org>>> {
    let rows = door.engine.people().orgs(&caller.by).await?;
    Ok(Json(Page { items: rows.into_iter().map(org_form).collect(), next: None }))
}

/// Make another org on this machine
///
/// For the person whose machine it is. Answers with a link by which its owner comes in, once, within seven days; it is shown
/// this one time.
#[utoipa::path(
    post, path = "/api/v1/orgs", tag = "people", operation_id = "make_org", params(KeyHeader), request_body = NewOrg,
    responses((status = 200, description = "It is there.", body = MadeOrg), MakeProblems),
)]
pub(crate) async fn make(
    State(door): State<SharedDoor>,
    caller: Caller,
    JsonBody(new): JsonBody<NewOrg>,
) -> ApiResult<Json<MadeOrg>> {
    new.check()?;
    let NewOrg { name, owner } = new;
    let make = MakeOrg { name, handle: owner.handle, owner_name: owner.name, email: owner.email };
    let (row, owner, link) = door.engine.people().make_org(&caller.by, make, caller.trace).await?;
    let link = link_form(owner, &link.secret, link.expires);
    Ok(Json(MadeOrg { org: org_form(row), link }))
}

/// Read your org
#[utoipa::path(
    get, path = "/api/v1/org", tag = "people", operation_id = "org",
    responses((status = 200, description = "Your org.", body = Org), ReadProblems),
)]
pub(crate) async fn read(State(door): State<SharedDoor>, caller: Caller) -> ApiResult<Json<Org>> {
    Ok(Json(org_form(door.engine.people().org(&caller.by).await?)))
}

/// Change what your org has decided
///
/// For admins. What is left out stays as it is; `null` is as if it had never been said.
#[utoipa::path(
    patch, path = "/api/v1/org", tag = "people", operation_id = "change_org", params(KeyHeader),
    request_body = OrgChange,
    responses((status = 200, description = "It is so.", body = Org), ChangeProblems),
)]
pub(crate) async fn change(
    State(door): State<SharedDoor>,
    caller: Caller,
    JsonBody(change): JsonBody<OrgChange>,
) -> ApiResult<Json<Org>> {
    change.check()?;
    let now = door.engine.people().org(&who_changed(&caller.by)).await?.settings;
    let settings = engine::OrgSettings {
        share_new: change.share_new.map_or(now.share_new, |grant| grant.map(grant_of)),
        open_max: change.open_max.unwrap_or(now.open_max),
        awake_max: change.awake_max.unwrap_or(now.awake_max),
    };
    Ok(Json(org_form(door.engine.people().settings(&caller.by, settings, caller.trace).await?)))
}

fn org_form(row: OrgRow) -> Org {
    let engine::OrgSettings { share_new, open_max, awake_max } = row.settings;
    Org {
        id: row.org.to_string(),
        name: row.name,
        settings: OrgSettings { share_new: share_new.map(grant_form), open_max, awake_max },
        people: row.people,
        made_at: at(row.made_at),
    }
}
