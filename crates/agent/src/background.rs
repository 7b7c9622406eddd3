//! The background of a session: processes that an agent's turns have left running, as people see them.

use std::sync::Arc;

use kernel::SessionId;

/// Processes that are named in a notice.
const NAMED_MAX: usize = 5;

/// The processes in the background of a session at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Background {
    /// The number of processes.
    pub processes: u32,
    /// The oldest of them; how many are named is the driver's bound.
    pub oldest: Vec<BackgroundProcess>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackgroundProcess {
    /// The time for which it has run.
    pub age_ms: u64,
    /// Its command line, cut and cleaned.
    pub command: String,
}

/// The ear for what people should know of a session while none of its turns runs: that what ran in the background has ended,
/// and why.
pub type SessionNotices = Arc<dyn Fn(SessionId, String) + Send + Sync>;

impl Background {
    /// True if nothing does.
    pub fn is_empty(&self) -> bool {
        self.processes == 0
    }

    /// Their commands, for people: `sleep 100`; `npm run dev` and 2 more.
    pub fn words(&self) -> String {
        let named: Vec<String> = self
            .oldest
            .iter()
            .take(NAMED_MAX)
            .map(|it| format!("`{}`", it.command.replace('`', "'")))
            .collect();
        let more = (self.processes as usize).saturating_sub(named.len());
        match (named.is_empty(), more) {
            (true, 1) => "1 process".to_owned(),
            (true, more) => format!("{more} processes"),
            (false, 0) => named.join("; "),
            (false, more) => format!("{} and {more} more", named.join("; ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn background(commands: &[&str], processes: u32) -> Background {
        let process = |command: &&str| BackgroundProcess { age_ms: 0, command: (*command).to_owned() };
        Background { processes, oldest: commands.iter().map(process).collect() }
    }

    #[test]
    fn words_name_a_few_and_count_the_rest() {
        assert_eq!(background(&["a"], 1).words(), "`a`");
        assert_eq!(background(&["a", "b`c"], 3).words(), "`a`; `b'c` and 1 more");
        assert_eq!(background(&["a"; 9], 12).words(), "`a`; `a`; `a`; `a`; `a` and 7 more");
        assert_eq!(
            (background(&[], 1).words(), background(&[], 3).words()),
            ("1 process".into(), "3 processes".into())
        );
    }
}
