//! The part of the configuration that commands at a terminal read: whether and when they tell somebody who looks elsewhere.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use toml::Table;
use utoipa::ToSchema;

use super::units::Span;
use super::{DEFAULT, find};

/// The settings of chats and of turns that are followed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TerminalTable {
    notify: bool,
    notify_after: Span,
}

impl TerminalTable {
    /// The table in force. Only it is read: what is wrong elsewhere in the file is the server's to say.
    pub(crate) fn load(data: &Path) -> Self {
        let file = find(None, data).ok().flatten().map(|(_, text)| text).unwrap_or_default();
        let table = |text: &str| {
            let all = toml::from_str::<Table>(text).unwrap_or_default();
            all.get("terminal").and_then(|table| table.as_table()).cloned().unwrap_or_default()
        };
        let mut settings = table(DEFAULT);
        settings.extend(table(&file));
        settings.try_into().unwrap_or_default()
    }

    /// The length of a turn from which on its end is told; none if nothing is.
    pub(crate) fn notifies_after(&self) -> Option<Duration> {
        self.notify.then(|| Duration::from_millis(self.notify_after.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_leaves_out_is_as_by_default() {
        let dir = tempfile::tempdir().unwrap();
        let load = |text: &str| {
            std::fs::write(dir.path().join("homing.toml"), text).unwrap();
            TerminalTable::load(dir.path()).notifies_after()
        };
        assert_eq!(load(""), Some(Duration::from_secs(10)));
        assert_eq!(load("[terminal]\nnotify = false\n"), None);
        assert_eq!(load("[terminal]\nnotify_after = \"2s\"\n"), Some(Duration::from_secs(2)));
    }
}
