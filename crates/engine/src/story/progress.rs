//! The output of tools while they run, gathered into few facts. A flood of it becomes a bounded number of them: the
//! result says what came of the tool, and progress is only for whoever watches meanwhile.

use super::Story;
use kernel::Turn;
use std::collections::BTreeMap;
use std::time::Duration;
use store::Entry;
use tokio::time::Instant;

/// Bytes that are kept of what one tool call prints …
const CALL_BYTES_MAX: usize = 64 * 1024;
/// … and of all calls of one attempt.
const ATTEMPT_BYTES_MAX: usize = 1024 * 1024;
/// Facts about one call.
const CALL_FACTS_MAX: u32 = 256;
/// Calls that print at the same time.
const CALLS_MAX: usize = 64;
/// The time for which something that was printed waits for more.
const WAIT: Duration = Duration::from_secs(1);
/// Stands where the rest was not kept.
const CUT: char = '…';

/// The output of the tools of one attempt.
#[derive(Debug, Default)]
pub(crate) struct ToolProgress {
    calls: BTreeMap<String, Printed>,
    taken: usize,
    since: Option<Instant>,
}

#[derive(Debug, Default)]
struct Printed {
    written: u64,
    facts: u32,
    taken: usize,
    is_cut: bool,
    pending: String,
}

impl ToolProgress {
    /// Takes more of what a call prints, as far as there is room.
    pub(crate) fn hear(&mut self, call: &str, output: &str) {
        if self.calls.len() >= CALLS_MAX && !self.calls.contains_key(call) {
            return;
        }
        let printed = self.calls.entry(call.to_owned()).or_default();
        if printed.is_cut || output.is_empty() {
            return;
        }
        let room = (CALL_BYTES_MAX - printed.taken).min(ATTEMPT_BYTES_MAX - self.taken);
        let kept = &output[..output.floor_char_boundary(room.min(output.len()))];
        printed.pending.push_str(kept);
        printed.taken += kept.len();
        self.taken += kept.len();
        if kept.len() < output.len() || printed.facts + 1 >= CALL_FACTS_MAX {
            printed.pending.push(CUT);
            printed.is_cut = true;
        }
        self.since.get_or_insert_with(Instant::now);
    }

    pub(crate) fn pending_bytes(&self) -> usize {
        self.calls.values().map(|printed| printed.pending.len()).sum()
    }

    /// When it is to be written down at the latest.
    pub(crate) fn cut_at(&self) -> Option<Instant> {
        self.since.map(|since| since + WAIT)
    }

    /// Everything that is to be written down.
    pub(crate) fn cut(&mut self, turn: Turn) -> Vec<Entry> {
        self.since = None;
        self.calls.iter_mut().filter_map(|(call, printed)| printed.cut(call, turn)).collect()
    }

    /// A call is over: what is left of it.
    pub(crate) fn end(&mut self, call: &str, turn: Turn) -> Option<Entry> {
        self.calls.remove(call).and_then(|mut printed| printed.cut(call, turn))
    }
}

impl Printed {
    fn cut(&mut self, call: &str, turn: Turn) -> Option<Entry> {
        if self.pending.is_empty() {
            return None;
        }
        let output = std::mem::take(&mut self.pending);
        let offset = self.written;
        self.written += output.len() as u64;
        self.facts += 1;
        Some(Story::ToolProgress { call, offset, output: &output }.entry(turn))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_progress_becomes_a_bounded_number_of_bytes_and_facts() {
        let mut progress = ToolProgress::default();
        let mut facts = 0;
        for n in 0..100_000 {
            progress.hear(&format!("call {}", n % 1_000), &"ä".repeat(500));
            facts += progress.cut(Turn(1)).len();
        }
        let per_call = CALL_BYTES_MAX.min(ATTEMPT_BYTES_MAX / CALLS_MAX);
        assert!(progress.taken <= ATTEMPT_BYTES_MAX && progress.taken + per_call >= ATTEMPT_BYTES_MAX);
        assert!(facts <= CALLS_MAX * CALL_FACTS_MAX as usize, "{facts} facts");
    }

    #[test]
    fn a_trickle_of_progress_ends_with_a_mark() {
        let mut progress = ToolProgress::default();
        let mut bodies = Vec::new();
        for _ in 0..1_000 {
            progress.hear("a", "x");
            bodies.extend(progress.cut(Turn(1)));
        }
        assert_eq!(bodies.len(), CALL_FACTS_MAX as usize);
        let Some(Entry::Story { body, .. }) = bodies.last() else { panic!("a story") };
        assert!(String::from_utf8_lossy(body).contains(CUT));
        assert!(progress.end("a", Turn(1)).is_none());
        progress.hear("a", "again");
        assert!(progress.end("a", Turn(1)).is_some(), "a call of the same name is another call");
    }
}
