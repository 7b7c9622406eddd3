//! Durations and sizes, as people write them: a number and a unit.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A duration in milliseconds, written as a number and a unit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, pattern = "^[0-9]+ *(ms|s|m|h|d)$", examples("30s"))]
pub(crate) struct Span(pub(crate) u64);

/// A number of bytes, written as a number and a unit; `"0"` is no bound.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, pattern = "^(0|[0-9]+ *(B|KiB|MiB|GiB))$", examples("64MiB"))]
pub(crate) struct Size(pub(crate) u64);

const SPANS: [(&str, u64); 5] =
    [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 60 * 60_000), ("d", 24 * 60 * 60_000)];
const SIZES: [(&str, u64); 4] = [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];

impl TryFrom<String> for Span {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        measure(&text, &SPANS).map(Self).ok_or_else(|| {
            format!("{text:?} is not a duration: write a number and one of ms, s, m, h, d, as in \"30s\"")
        })
    }
}

impl TryFrom<String> for Size {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text == "0" {
            return Ok(Self(0));
        }
        measure(&text, &SIZES).map(Self).ok_or_else(|| {
            format!("{text:?} is not a size: write a number and one of B, KiB, MiB, GiB, as in \"64MiB\"")
        })
    }
}

fn measure(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let (_, each) = units.iter().find(|(name, _)| *name == unit.trim())?;
    number.parse::<u64>().ok()?.checked_mul(*each)
}

impl From<Span> for String {
    fn from(Span(ms): Span) -> Self {
        format!("{ms}ms")
    }
}

impl From<Size> for String {
    fn from(Size(bytes): Size) -> Self {
        format!("{bytes}B")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        let span = |text: &str| Span::try_from(text.to_owned()).map(|Span(ms)| ms).ok();
        assert_eq!(
            ["0ms", "2s", "3m", "1h", "7d"].map(span),
            [0, 2_000, 180_000, 3_600_000, 604_800_000].map(Some)
        );
        assert_eq!(["", "5", "s", "-1s", "1.5s", "99999999999999999d"].map(span), [None; 6]);
    }

    #[test]
    fn sizes_have_units() {
        let size = |text: &str| Size::try_from(text.to_owned()).map(|Size(bytes)| bytes).ok();
        assert_eq!(["0", "7B", "2 KiB", "1GiB"].map(size), [0, 7, 2_048, 1 << 30].map(Some));
        assert_eq!(["", "5", "MiB", "1MB", "99999999999999GiB"].map(size), [None; 5]);
    }
}
