//! The meaning of codex's errors, by what can be done about them. What is not known here may work the next time.

use agent::Trouble;
use kernel::Failure;
use serde_json::Value;

/// The advice when codex is not signed in, or no longer.
pub(super) const SIGN_IN: &str = "sign in with `codex login`, or set OPENAI_API_KEY";

/// Why a conversation could not be opened or a turn not be begun.
#[derive(Debug, PartialEq)]
pub(super) enum Refusal {
    /// Codex says that it does not know the conversation. It has to say so twice.
    Unknown(String),
    /// Anything else.
    Else(Trouble),
}

/// The meaning of the answer to `thread/start`, `thread/resume` or `turn/start` says, when it is an error.
pub(super) fn refusal(error: &Value) -> Refusal {
    let words = words_of(error);
    let says = |part: &str| words.contains(part);
    Refusal::Else(if is_unknown(&words) {
        return Refusal::Unknown(words);
    } else if says("already has an active writer") {
        Trouble::new(Failure::Busy, format!("another codex has this conversation open: {words}"))
    } else if says("is archived") || says("maximum length") {
        Trouble::refused(words)
    } else if says("failed to load configuration") {
        Trouble::refused(format!("{words}; mend codex's config.toml"))
    } else if says("nauthorized") || says("ot logged in") {
        Trouble::refused(format!("{words}; {SIGN_IN}"))
    } else {
        Trouble::transient(words)
    })
}

/// True if these are codex's words for a conversation it does not know: those of `thread/resume` and of `turn/start`,
/// and those of `thread/turns/list` for one it has never heard of and for one whose file is no more.
pub(super) fn is_unknown(words: &str) -> bool {
    let known = ["no rollout found", "thread not found", "thread not loaded", "missing source rollout"];
    known.iter().any(|known| words.contains(known))
}

/// An error of codex in its own words.
pub(super) fn words_of(error: &Value) -> String {
    let words = error["message"].as_str().unwrap_or_default();
    if words.is_empty() { "codex does not say why".to_owned() } else { words.to_owned() }
}

/// Why a turn failed.
pub(super) fn of_turn(error: &Value) -> Trouble {
    let (words, info) = (words_of(error), &error["codexErrorInfo"]);
    // A variable that its settings want, and that only a person can set.
    if words.starts_with("Missing environment variable") {
        return Trouble::refused(format!("{words} Set it in the environment of this agent"));
    }
    match (info.as_str(), status_in(info)) {
        (Some("unauthorized"), _) | (_, Some(401 | 403)) => Trouble::refused(format!("{words}; {SIGN_IN}")),
        (Some("usageLimitExceeded" | "sessionBudgetExceeded"), _) | (_, Some(402)) => {
            Trouble::refused(format!("{words}; wait until the limit is over, or use another account"))
        }
        (Some("contextWindowExceeded"), _) => {
            Trouble::refused(format!("{words}; start a new session, or choose a model with a larger window"))
        }
        (Some("modelNotFound"), _) => Trouble::refused(format!("{words}; choose another model")),
        (
            Some(
                "badRequest"
                | "cyberPolicy"
                | "misalignmentPolicyViolation"
                | "tooManyDenials"
                | "sandboxError",
            ),
            _,
        )
        | (_, Some(400 | 404 | 413 | 422)) => Trouble::refused(words),
        _ => Trouble::transient(words),
    }
}

/// The status of the model's server, if the error is about its answer.
fn status_in(info: &Value) -> Option<u64> {
    info.as_object()?.values().find_map(|about| about["httpStatusCode"].as_u64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn errors_of_turns_are_told_apart_by_remedy() {
        let of = |info: Value| of_turn(&json!({"message": "no", "codexErrorInfo": info})).failure;
        for info in [
            json!("unauthorized"),
            json!("usageLimitExceeded"),
            json!("contextWindowExceeded"),
            json!("modelNotFound"),
            json!("badRequest"),
            json!({"httpConnectionFailed": {"httpStatusCode": 401}}),
            json!({"responseStreamConnectionFailed": {"httpStatusCode": 403}}),
        ] {
            assert_eq!(of(info.clone()), Failure::Refused, "{info}");
        }
        for info in [
            json!("other"),
            json!("serverOverloaded"),
            json!("internalServerError"),
            json!("something new"),
            json!(null),
            json!(7),
            json!({"httpConnectionFailed": {"httpStatusCode": null}}),
            json!({"httpConnectionFailed": {"httpStatusCode": 529}}),
            json!({"responseTooManyFailedAttempts": {"httpStatusCode": 429}}),
            json!({"new": {"httpStatusCode": 500}}),
        ] {
            assert_eq!(of(info.clone()), Failure::Transient, "{info}");
        }
    }

    #[test]
    fn whoever_has_to_sign_in_is_told_how() {
        let error =
            json!({"message": "401", "codexErrorInfo": {"httpConnectionFailed": {"httpStatusCode": 401}}});
        assert!(of_turn(&error).detail.contains("codex login"));
        let refused = refusal(&json!({"message": "Not logged in"}));
        assert!(matches!(refused, Refusal::Else(trouble) if trouble.detail.contains("codex login")));
    }

    #[test]
    fn what_is_not_known_is_transient() {
        for error in [json!({"message": "boom"}), json!(null), json!({"message": 5}), json!([1])] {
            let refused = refusal(&error);
            assert!(
                matches!(&refused, Refusal::Else(trouble) if trouble.failure == Failure::Transient),
                "{error}"
            );
            assert_eq!(of_turn(&error).failure, Failure::Transient);
        }
    }
}
