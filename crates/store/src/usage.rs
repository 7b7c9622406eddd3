//! Usage, as agents say what their turns have used: added up by day, agent and person.
//!
//! The sums are a projection like any other: a story fact of the kind `usage` adds to one of them, and they can be made again from the
//! log. What cannot be added (a window's fill, say) is not in them.

use crate::Seer;
use kernel::{MessageId, Moment, PersonId};
use serde::Deserialize;

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// No amount is more than this, however often it is added to: the largest whole number that everybody who reads JSON can hold.
pub const USAGE_MAX: u64 = (1 << 53) - 1;

/// A day, in days since 1970, by universal time: the same for everybody who looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day(pub u32);

impl Day {
    /// The day of a moment.
    pub fn of(at: Moment) -> Self {
        Self(u32::try_from(at.0 / DAY_MS).unwrap_or(u32::MAX))
    }

    /// Its first moment.
    pub fn begins(self) -> Moment {
        Moment(u64::from(self.0) * DAY_MS)
    }
}

/// An amount that was used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct UsageSum {
    /// Tokens that were read, those from a cache included.
    pub input_tokens: u64,
    /// Tokens that were written.
    pub output_tokens: u64,
    /// Of those read, how many came from a cache.
    pub cached_tokens: u64,
    /// In millionths of a dollar; none if nobody said a price.
    pub cost_micros: Option<u64>,
}

impl UsageSum {
    /// The amount that a story fact tells, if it tells one.
    pub fn told(kind: &str, body: &[u8]) -> Option<Self> {
        let told: Self = (kind == "usage").then(|| serde_json::from_slice(body).ok()).flatten()?;
        Some(Self::default().and(told))
    }

    /// Both together.
    pub fn and(self, more: Self) -> Self {
        let add = |a: u64, b: u64| a.saturating_add(b).min(USAGE_MAX);
        Self {
            input_tokens: add(self.input_tokens, more.input_tokens),
            output_tokens: add(self.output_tokens, more.output_tokens),
            cached_tokens: add(self.cached_tokens, more.cached_tokens),
            cost_micros: self
                .cost_micros
                .into_iter()
                .chain(more.cost_micros)
                .reduce(&add)
                .map(|cost| add(cost, 0)),
        }
    }
}

/// The place of an amount in one session's sums.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct UsageKey {
    /// The day on which it was told.
    pub day: Day,
    /// The agent that said so.
    pub agent: String,
    /// The message that its turn began with; none if the log does not know any.
    pub message: Option<MessageId>,
}

/// The days of which somebody wants to know what was used, in everything that they may see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageQuery {
    /// For whom.
    pub by: Seer,
    /// The first day.
    pub from: Day,
    /// The last one.
    pub to: Day,
}

/// The usage of one person's turns with one agent on one day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageRow {
    /// The day.
    pub day: Day,
    /// The agent.
    pub agent: String,
    /// The sender of what the turns began with; none if that is not known.
    pub by: Option<PersonId>,
    /// Their handle.
    pub handle: Option<String>,
    /// The amount.
    pub sum: UsageSum,
}

impl UsageRow {
    /// These amounts, each of one session, as rows: by day, agent and person.
    pub fn added_up(amounts: impl IntoIterator<Item = Self>) -> Vec<Self> {
        let mut rows: Vec<Self> = amounts.into_iter().collect();
        rows.sort_by(|a, b| (a.day, &a.agent, a.by).cmp(&(b.day, &b.agent, b.by)));
        rows.dedup_by(|row, kept| {
            let is_same = (row.day, &row.agent, row.by) == (kept.day, &kept.agent, kept.by);
            kept.sum = if is_same { kept.sum.and(row.sum) } else { kept.sum };
            is_same
        });
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_stays_one_that_can_be_written_down() {
        let told = format!(r#"{{"input_tokens":{},"output_tokens":1,"cost_micros":{}}}"#, u64::MAX, u64::MAX);
        let told = UsageSum::told("usage", told.as_bytes()).unwrap();
        assert_eq!((told.input_tokens, told.cost_micros), (USAGE_MAX, Some(USAGE_MAX)));
        assert_eq!(told.and(told).input_tokens, USAGE_MAX);
        assert_eq!(UsageSum::told("text", b"{}"), None);
        assert_eq!(UsageSum::told("usage", br#"{"input_tokens":-1}"#), None);
    }

    #[test]
    fn a_day_ends_where_the_next_begins() {
        assert_eq!(Day::of(Moment(DAY_MS - 1)), Day(0));
        assert_eq!(Day::of(Moment(DAY_MS)), Day(1));
        assert_eq!(Day(20_000).begins(), Moment(20_000 * DAY_MS));
    }
}
