//! Moments, as RFC 3339 texts in UTC with milliseconds: `2026-11-15T12:34:56.789Z`.
//!
//! People read them in answers and logs, programs sort them as texts, and there is exactly one spelling of each.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::str::FromStr;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{RefOr, Schema};

/// The last moment that has a spelling: the end of the year 9999.
const MS_MAX: u64 = 253_402_300_799_999;
const DAY_MS: u64 = 86_400_000;

/// A moment, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct At(pub u64);

/// A text that is not a moment in our spelling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a moment: expected something like 2026-11-15T12:34:56.789Z")]
pub struct NotAMoment;

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A deadline may lie at the end of time; it is spelt as the last moment that can be.
        let ms = self.0.min(MS_MAX);
        let (year, month, day) = civil(ms / DAY_MS);
        let of_day = ms % DAY_MS;
        let (hour, minute) = (of_day / 3_600_000, of_day / 60_000 % 60);
        let (second, milli) = (of_day / 1_000 % 60, of_day % 1_000);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
    }
}

impl FromStr for At {
    type Err = NotAMoment;

    fn from_str(text: &str) -> Result<Self, NotAMoment> {
        let number =
            |from: usize, to: usize| text.get(from..to).and_then(|digits| digits.parse::<u64>().ok());
        let parsed = (|| {
            let days = days(number(0, 4)?, number(5, 7)?, number(8, 10)?)?;
            let of_day = number(11, 13)? * 3_600_000 + number(14, 16)? * 60_000;
            Some(Self(days * DAY_MS + of_day + number(17, 19)? * 1_000 + number(20, 23)?))
        })();
        // Whatever does not print as it was written was not in our spelling.
        parsed.filter(|at| at.to_string() == text).ok_or(NotAMoment)
    }
}

/// Year, month and day of a day counted from 1970, in the Gregorian calendar; years are taken to begin in March, so
/// that the leap day is the last one.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    let shifted_year = year.checked_sub(u64::from(month <= 2))?;
    let shifted_month = if month > 2 { month - 3 } else { month + 9 };
    let (era, year_of_era) = (shifted_year / 400, shifted_year % 400);
    let day_of_year = (153 * shifted_month + 2) / 5 + day.checked_sub(1)?;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    (era * 146_097 + day_of_era).checked_sub(719_468)
}

impl Serialize for At {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for At {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl utoipa::PartialSchema for At {
    fn schema() -> RefOr<Schema> {
        let text = ObjectBuilder::new().schema_type(Type::String);
        text.format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
            .description(Some("A moment in UTC with milliseconds (RFC 3339)."))
            .examples(["2026-11-15T12:34:56.789Z"])
            .into()
    }
}

impl utoipa::ToSchema for At {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_spelt_as_the_calendar_says() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_000_000_000_000, "2001-09-09T01:46:40.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (MS_MAX, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(At(ms).to_string(), text);
            assert_eq!(text.parse(), Ok(At(ms)));
        }
        assert_eq!(At(u64::MAX).to_string(), "9999-12-31T23:59:59.999Z");
    }

    #[test]
    fn every_day_of_four_centuries_comes_back() {
        let mut before = String::new();
        for day in 0..146_097 + 400 {
            let text = At(day * DAY_MS).to_string();
            assert_eq!(text.parse(), Ok(At(day * DAY_MS)));
            assert!(before < text);
            before = text;
        }
    }

    #[test]
    fn other_spellings_are_no_moments() {
        for text in ["", "2001-02-29T00:00:00.000Z", "2001-09-09 01:46:40.000Z", "2001-09-09T01:46:40Z", "é"]
        {
            assert_eq!(text.parse::<At>(), Err(NotAMoment), "{text:?}");
        }
    }
}
