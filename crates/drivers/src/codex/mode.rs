//! Codex's modes: what it may do by itself, and what it has to ask for. Codex has a policy of asking and a sandbox; a
//! mode is a pair of them that makes sense.

use agent::{Choice, Trouble};
use serde_json::Value;

/// Codex's word for that its questions are ours to answer. Its settings may name a model instead.
pub(super) const REVIEWER: &str = "user";
/// Where the answer to an opened conversation says what it may do.
pub(super) const MODE_KEYS: [&str; 3] = ["approvalPolicy", "approvalsReviewer", "sandbox"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// It reads; everything else has to be allowed.
    ReadOnly,
    /// It works in its directory; what reaches further has to be allowed.
    Auto,
    /// It does what it likes.
    FullAccess,
}

impl Mode {
    const ALL: [Self; 3] = [Self::ReadOnly, Self::Auto, Self::FullAccess];

    /// The mode of that name; without a name what the configuration stands for.
    pub(super) fn choose(wanted: Option<&str>, bypasses: bool) -> Result<Self, Trouble> {
        let Some(wanted) = wanted else {
            return Ok(if bypasses { Self::FullAccess } else { Self::Auto });
        };
        let names =
            || Self::choices(bypasses).into_iter().map(|mode| mode.name).collect::<Vec<_>>().join(", ");
        match Self::ALL.into_iter().find(|mode| mode.name() == wanted) {
            Some(Self::FullAccess) if !bypasses => Err(Trouble::refused(format!(
                "mode full-access lets codex act without asking; whoever runs Homing has to allow that for this agent. \
                 Choose one of: {}",
                names()
            ))),
            Some(mode) => Ok(mode),
            None => {
                Err(Trouble::refused(format!("codex has no mode {wanted:?}; choose one of: {}", names())))
            }
        }
    }

    /// Those that may be chosen.
    pub(super) fn choices(bypasses: bool) -> Vec<Choice> {
        let may_be_chosen = |mode: &Self| bypasses || *mode != Self::FullAccess;
        let choice =
            |mode: Self| Choice { name: mode.name().to_owned(), description: mode.words().to_owned() };
        Self::ALL.into_iter().filter(may_be_chosen).map(choice).collect()
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::Auto => "auto",
            Self::FullAccess => "full-access",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::ReadOnly => "reads files; asks before it changes anything",
            Self::Auto => "works in its directory; asks before it reaches further",
            Self::FullAccess => "does everything without asking",
        }
    }

    /// Codex's word for when it asks.
    pub(super) fn approval(self) -> &'static str {
        match self {
            Self::ReadOnly | Self::Auto => "on-request",
            Self::FullAccess => "never",
        }
    }

    /// Codex's word for what it may touch, as we say it.
    pub(super) fn sandbox(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::Auto => "workspace-write",
            Self::FullAccess => "danger-full-access",
        }
    }

    /// The mode that an opened conversation says it is in. One that says nothing is in none.
    pub(super) fn seen(opened: &Value) -> Result<Self, UnknownMode> {
        let (policy, sandbox) = (&opened["approvalPolicy"], &opened["sandbox"]["type"]);
        let reviewer = &opened["approvalsReviewer"];
        // Versions that do not know another reviewer do not name one.
        let asks_us = reviewer.is_null() || reviewer == REVIEWER;
        match (policy.as_str(), sandbox.as_str()) {
            (Some("on-request"), Some("readOnly")) if asks_us => Ok(Self::ReadOnly),
            (Some("on-request"), Some("workspaceWrite")) if asks_us => Ok(Self::Auto),
            (Some("never"), Some("dangerFullAccess")) => Ok(Self::FullAccess),
            _ => {
                let words = format!("approvalPolicy {policy}, reviewed by {reviewer}, sandbox {sandbox}");
                Err(UnknownMode(agent::bounded(&words, 200)))
            }
        }
    }
}

/// A mode that is none of ours, in codex's own words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct UnknownMode(String);

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::Failure;

    #[test]
    fn a_mode_is_what_codex_says_and_silence_is_none() {
        let seen = |policy: &str, reviewer: &str, sandbox: &str| {
            let opened = serde_json::json!({"approvalPolicy": policy, "approvalsReviewer": reviewer, "sandbox": {"type": sandbox}});
            Mode::seen(&opened).ok()
        };
        assert_eq!(seen("on-request", "user", "workspaceWrite"), Some(Mode::Auto));
        assert_eq!(seen("on-request", "user", "readOnly"), Some(Mode::ReadOnly));
        assert_eq!(seen("never", "user", "dangerFullAccess"), Some(Mode::FullAccess));
        assert_eq!(seen("on-request", "auto_review", "workspaceWrite"), None, "a model would answer");
        assert_eq!(seen("never", "user", "workspaceWrite"), None);
        let silent = Mode::seen(&serde_json::json!({"cwd": "/srv"})).unwrap_err();
        assert!(silent.to_string().contains("sandbox null"), "{silent}");
    }

    #[test]
    fn full_access_is_only_for_those_who_may() {
        assert_eq!(Mode::choose(None, false), Ok(Mode::Auto));
        assert_eq!(Mode::choose(None, true), Ok(Mode::FullAccess));
        assert_eq!(Mode::choose(Some("full-access"), true), Ok(Mode::FullAccess));
        for unknown in ["full-access", "yolo", ""] {
            let trouble = Mode::choose(Some(unknown), false).unwrap_err();
            assert_eq!(trouble.failure, Failure::Refused);
            assert!(trouble.detail.ends_with("read-only, auto"), "{trouble}");
        }
        for choice in Mode::choices(true) {
            assert_eq!(Mode::choose(Some(&choice.name), true).map(Mode::name), Ok(choice.name.as_str()));
        }
        assert_eq!(Mode::choices(false).len(), 2);
    }
}
