//! Moments and ages, as people read them.

use api::At;
use jiff::Timestamp;
use jiff::tz::TimeZone;

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

/// How long ago that was.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_rough() {
        let ago = |seconds: u64| ago(At(1_000_000), kernel::Moment(1_000_000 + seconds * 1_000));
        assert_eq!(
            [0, 61, 7_200, 90_000, 400_000].map(ago),
            ["just now", "1 min ago", "2 h ago", "yesterday", "4 days ago"]
        );
    }
}
