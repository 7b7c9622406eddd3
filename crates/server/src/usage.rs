//! Usage: sums by day, agent and person.

use crate::door::SharedDoor;
use crate::extract::{Caller, Json, Query};
use crate::openapi::problems;
use crate::problem::ApiResult;
use api::{UsageOfDay, UsageOfDays, UsageQuery, Who, day_text};
use axum::extract::State;
use engine::{Day, UsageRow};

problems! {
    UsageProblems = [Invalid, RightMissing];
}

/// The most items of an answer: a year of what a dozen people do with a few agents.
const ITEMS_MAX: usize = 10_000;

/// See what was used
///
/// Tokens and cost as agents have said them, added up by day, agent and person, in every session that you may see. What a turn used
/// counts for whoever said what it began with, on the day (by universal time) on which its agent said so.
#[utoipa::path(
    get, path = "/api/v1/usage", tag = "sessions", operation_id = "usage", params(UsageQuery),
    responses((status = 200, description = "The sums of these days.", body = UsageOfDays), UsageProblems),
)]
pub(crate) async fn usage(
    State(door): State<SharedDoor>,
    caller: Caller,
    Query(query): Query<UsageQuery>,
) -> ApiResult<Json<UsageOfDays>> {
    let views = door.engine.views();
    let (from, to) = query.days(views.today().0)?;
    let mut rows = views.usage(&caller.by, Day(from), Day(to)).await?;
    let over = rows.len().saturating_sub(ITEMS_MAX);
    rows.drain(..over);
    let items = rows.into_iter().map(item).collect();
    Ok(Json(UsageOfDays { from: day_text(from), to: day_text(to), items, cut: over > 0 }))
}

fn item(row: UsageRow) -> UsageOfDay {
    let UsageRow { day, agent, by, handle, sum } = row;
    UsageOfDay {
        day: day_text(day.0),
        agent,
        by: by.map(|by| Who { id: by.to_string(), handle }),
        input_tokens: sum.input_tokens,
        output_tokens: sum.output_tokens,
        cached_tokens: sum.cached_tokens,
        cost_micros: sum.cost_micros,
    }
}
