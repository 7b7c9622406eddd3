//! Usage: sums by day, agent and person.

use crate::check::invalid;
use crate::{At, Invalid, Who};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// The most days that one answer has: a year and a day.
const DAYS_MAX: u64 = 366;
/// As many as an answer has if nothing is said: a month.
const DAYS_DEFAULT: u64 = 31;
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// The days of which one wants to know what was used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct UsageQuery {
    /// The first day, by universal time; 30 days before the last if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(pattern = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
    pub from: Option<String>,
    /// The last day; today if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(pattern = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
    pub to: Option<String>,
}

impl UsageQuery {
    /// The first and the last day, in days since 1970; `today` is another such.
    pub fn days(&self, today: u32) -> Result<(u32, u32), Invalid> {
        let read = |field, text: &Option<String>| text.as_deref().map(|text| day(field, text)).transpose();
        let to = read("to", &self.to)?.unwrap_or(today.into());
        let from = read("from", &self.from)?.unwrap_or(to.saturating_sub(DAYS_DEFAULT - 1));
        if from > to {
            invalid("from", "comes after `to`")?;
        }
        if to.saturating_sub(from) >= DAYS_MAX {
            invalid("from", format!("at most {DAYS_MAX} days at once"))?;
        }
        let small = |day| u32::try_from(day).unwrap_or(u32::MAX);
        Ok((small(from), small(to)))
    }
}

fn day(field: &'static str, text: &str) -> Result<u64, Invalid> {
    let not = || Invalid { field, reason: "must be a day, like 2026-11-15".to_owned() };
    let is_date = text.len() == 10 && text.is_ascii();
    let at: At = format!("{text}T00:00:00Z").parse().ok().filter(|_| is_date).ok_or_else(not)?;
    Ok(at.0 / DAY_MS)
}

/// A day as a text, from days since 1970.
pub fn day_text(day: u32) -> String {
    let mut text = At(u64::from(day) * DAY_MS).to_string();
    text.truncate(10);
    text
}

/// The usage of some days, in every session that you may see.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UsageOfDays {
    /// The first day.
    pub from: String,
    /// The last day.
    pub to: String,
    /// By day, agent and person, in this order. Where nothing was said to be used there is no item.
    pub items: Vec<UsageOfDay>,
    /// True if there were more items than go into one answer: then the first days are missing; ask for fewer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

/// The usage of one person's turns with one agent on one day, as far as the agent says so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UsageOfDay {
    /// The day, by universal time.
    pub day: String,
    /// The agent.
    pub agent: String,
    /// The person whose messages the turns began with; none if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Who>,
    /// Tokens that were read, those from a cache included.
    pub input_tokens: u64,
    /// Tokens that were written.
    pub output_tokens: u64,
    /// Of those read, how many came from a cache.
    pub cached_tokens: u64,
    /// In millionths of a dollar; none if the agent said no price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(from: &str, to: &str) -> UsageQuery {
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        UsageQuery { from: text(from), to: text(to) }
    }

    #[test]
    fn days_are_read_as_they_are_written() {
        assert_eq!(query("", "").days(20_000), Ok((19_970, 20_000)));
        assert_eq!(query("1970-01-02", "1970-02-01").days(9), Ok((1, 31)));
        assert_eq!((day_text(1), day_text(20_000)), ("1970-01-02".to_owned(), "2024-10-04".to_owned()));
        assert_eq!(query("2024-10-04", "2024-10-04").days(0), Ok((20_000, 20_000)));
    }

    #[test]
    fn what_is_no_day_or_too_many_is_refused() {
        for (from, to, field) in [
            ("2024-02-30", "", "from"),
            ("", "2024-1-1", "to"),
            ("", "2024-01-01T", "to"),
            ("2024-01-02", "2024-01-01", "from"),
            ("2023-01-01", "2024-06-01", "from"),
        ] {
            assert_eq!(query(from, to).days(20_000).unwrap_err().field, field, "{from} {to}");
        }
    }
}
