//! Moments and ages, as people read them.

use api::At;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::config::units::Span;
use crate::exit::{CliError, Exit};
use crate::system;

/// The time of day here, for logs.
pub(crate) fn clock(at: At) -> String {
    local(at, "%H:%M:%S")
}

/// Day and time here.
pub(crate) fn full(at: At) -> String {
    local(at, "%Y-%m-%d %H:%M:%S")
}

fn local(at: At, format: &str) -> String {
    let ms = i64::try_from(at.0).unwrap_or(i64::MAX);
    let moment = Timestamp::from_millisecond(ms).unwrap_or(Timestamp::MAX);
    moment.to_zoned(TimeZone::system()).strftime(format).to_string()
}

/// The time since then, in words.
pub(crate) fn ago(at: At, now: kernel::Moment) -> String {
    let seconds = now.0.saturating_sub(at.0) / 1_000;
    match seconds {
        0..60 => "just now".to_owned(),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..86_400 => format!("{} h ago", seconds / 3_600),
        86_400..172_800 => "yesterday".to_owned(),
        _ => format!("{} days ago", seconds / 86_400),
    }
}

/// A moment that lies ahead, as people write it: a duration from now, a day here, or a moment.
pub(crate) fn later(text: &str, now: kernel::Moment) -> Option<At> {
    span(text).map(|ms| At(now.0.saturating_add(ms))).or_else(|| moment(text))
}

/// The same for whoever typed it: what is no time is told with what would be, and what else could be written.
pub(crate) fn ahead(text: &str, or: &str) -> Result<At, CliError> {
    later(text, system::now()).ok_or_else(|| {
        CliError::new(Exit::Usage, format!("{text:?} is not a time"))
            .hint(format!("write 12h, 30d, 2026-12-24, 2026-12-24T18:00:00Z{or}"))
    })
}

/// A moment that has been, as people write it: a duration before now, a day here, or a moment.
pub(crate) fn earlier(text: &str, now: kernel::Moment) -> Option<At> {
    span(text).map(|ms| At(now.0.saturating_sub(ms))).or_else(|| moment(text))
}

fn span(text: &str) -> Option<u64> {
    Span::try_from(text.to_owned()).ok().map(|Span(ms)| ms)
}

fn moment(text: &str) -> Option<At> {
    let stamp = match text.parse::<Timestamp>() {
        Ok(stamp) => stamp,
        Err(_) => text.parse::<Date>().ok()?.to_zoned(TimeZone::system()).ok()?.timestamp(),
    };
    u64::try_from(stamp.as_millisecond()).ok().map(At)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_in_several_ways() {
        let now = kernel::Moment(10_000_000_000);
        assert_eq!(later("2h", now), Some(At(10_007_200_000)));
        assert_eq!(earlier("1d", now), Some(At(9_913_600_000)));
        assert_eq!(earlier("1970-01-02T00:00:00Z", now), Some(At(86_400_000)));
        assert!(earlier("2026-12-24", now).is_some());
        assert_eq!(["", "soon", "5", "2026-13-01"].map(|text| later(text, now)), [None; 4]);
    }

    #[test]
    fn ages_are_rough() {
        let ago = |seconds: u64| ago(At(1_000_000), kernel::Moment(1_000_000 + seconds * 1_000));
        assert_eq!(
            [0, 61, 7_200, 90_000, 400_000].map(ago),
            ["just now", "1 min ago", "2 h ago", "yesterday", "4 days ago"]
        );
    }
}
