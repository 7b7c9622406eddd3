//! Moments, as RFC 3339 texts in UTC with milliseconds: `2026-11-15T12:34:56.789Z`.
//!
//! People read them in answers and logs, programs sort them as texts: we write each in exactly one way. Whoever asks may
//! use every spelling that RFC 3339 has, other offsets and fractions too.

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

/// A text that is not a moment.
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
        parse(text).ok_or(NotAMoment)
    }
}

fn parse(text: &str) -> Option<At> {
    let (date, rest) = text.split_at_checked(10)?;
    let (time, rest) = rest.strip_prefix(['T', 't'])?.split_at_checked(8)?;
    let (milli, offset) = fraction(rest)?;
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let [hour, minute, second] = numbers(time, ':', [2, 2, 2])?;
    // The sixtieth second is a leap second.
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let of_day = hour * 3_600_000 + minute * 60_000 + second * 1_000 + milli;
    let ms = days(year, month, day)? * DAY_MS as i64 + of_day - offset_ms(offset)?;
    // What was before 1970 was before everything that we know of, and no year has five digits.
    Some(At(u64::try_from(ms).unwrap_or(0).min(MS_MAX)))
}

/// Milliseconds, and what follows them. Finer fractions are cut off.
fn fraction(text: &str) -> Option<(i64, &str)> {
    let Some(digits) = text.strip_prefix('.') else { return Some((0, text)) };
    let end = digits.find(|c: char| !c.is_ascii_digit())?;
    let (digits, rest) = digits.split_at_checked(end).filter(|(digits, _)| !digits.is_empty())?;
    let milli = format!("{digits:0<3}");
    Some((milli[..3].parse().ok()?, rest))
}

fn offset_ms(text: &str) -> Option<i64> {
    if matches!(text, "Z" | "z") {
        return Some(0);
    }
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let [hour, minute] = numbers(text.strip_prefix(['+', '-'])?, ':', [2, 2])?;
    (hour <= 23 && minute <= 59).then_some(sign * (hour * 3_600_000 + minute * 60_000))
}

/// Numbers of so many digits each, with a mark between them.
fn numbers<const N: usize>(text: &str, mark: char, digits: [usize; N]) -> Option<[i64; N]> {
    let mut numbers = [0; N];
    let mut parts = text.split(mark);
    for (number, digits) in numbers.iter_mut().zip(digits) {
        let part = parts.next().filter(|part| part.len() == digits)?;
        *number = part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok())??;
    }
    parts.next().is_none().then_some(numbers)
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

/// The other way round; none if the month does not have that day. Days before 1970 are less than nothing.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=last).contains(&day) {
        return None;
    }
    let shifted_year = year - i64::from(month <= 2);
    let shifted_month = if month > 2 { month - 3 } else { month + 9 };
    let (era, year_of_era) = (shifted_year.div_euclid(400), shifted_year.rem_euclid(400));
    let day_of_year = (153 * shifted_month + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * 146_097 + day_of_era - 719_468)
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
            .description(Some("A moment (RFC 3339). Answers have it in UTC with milliseconds."))
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
    fn every_spelling_of_a_moment_is_read() {
        for (text, ms) in [
            ("2001-09-09T01:46:40Z", 1_000_000_000_000),
            ("2001-09-09t01:46:40z", 1_000_000_000_000),
            ("2001-09-09T01:46:40.5Z", 1_000_000_000_500),
            ("2001-09-09T01:46:40.123999Z", 1_000_000_000_123),
            ("2001-09-09T03:46:40+02:00", 1_000_000_000_000),
            ("2001-09-08T20:16:40.000-05:30", 1_000_000_000_000),
            ("1990-12-31T23:59:60Z", 662_688_000_000),
            ("1970-01-01T00:00:00+00:01", 0),
            ("1969-12-31T23:59:59.999Z", 0),
            ("0000-02-29T00:00:00Z", 0),
            ("9999-12-31T23:59:59-23:59", MS_MAX),
        ] {
            assert_eq!(text.parse(), Ok(At(ms)), "{text:?}");
        }
    }

    #[test]
    fn what_is_not_in_the_calendar_is_no_moment() {
        for text in [
            "",
            "é",
            "2001-02-29T00:00:00.000Z",
            "2100-02-29T00:00:00Z",
            "2001-04-31T00:00:00Z",
            "2001-13-01T00:00:00Z",
            "2001-00-01T00:00:00Z",
            "2001-09-00T00:00:00Z",
            "2001-09-09 01:46:40.000Z",
            "2001-09-09T01:46:40",
            "2001-09-09T01:46:40.Z",
            "2001-09-09T01:46:40.5",
            "2001-09-09T24:00:00Z",
            "2001-09-09T01:60:00Z",
            "2001-09-09T01:46:61Z",
            "2001-09-09T01:46:40+0200",
            "2001-09-09T01:46:40+24:00",
            "2001-09-09T01:46:40Z ",
            "+001-09-09T01:46:40Z",
            "2001-9-009T01:46:40Z",
            "2001-09-0éT01:46:40Z",
        ] {
            assert_eq!(text.parse::<At>(), Err(NotAMoment), "{text:?}");
        }
    }
}
