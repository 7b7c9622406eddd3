//! The meaning of claude's failures, by what can be done about them. Pure.
//!
//! Only claude's own word that it does not know a conversation makes it gone. What the model server or the network does
//! passes; what a person has to change is refused; what nobody understands is transient.

use agent::{Launch, Trouble};
use kernel::Failure;
use serde_json::Value;

use super::SIGN_IN_HOW;
use crate::running_agent::gone_if_here;

/// The words for a conversation it does not know, in a `result` and on its standard error.
const UNKNOWN: &str = "No conversation found";
/// The words for an id that is taken.
const EXISTS: &str = "is already in use";

/// The meaning of a `result` that is an error. `error` is what the last message of the turn said of itself.
pub(super) fn of_result(said: &Value, error: Option<&str>, launch: &Launch, place: &str) -> Trouble {
    let words = words(said);
    if words.contains(UNKNOWN) {
        return gone_if_here(launch, place, words);
    }
    let status = said["api_error_status"].as_u64();
    match (status, error) {
        (Some(401 | 403), _) | (_, Some("authentication_failed" | "oauth_org_not_allowed")) => {
            Trouble::refused(format!("claude is not signed in, or may not do this: {words}; {SIGN_IN_HOW}"))
        }
        (_, Some("billing_error")) => {
            Trouble::refused(format!("{words}; see to the account claude is signed in with"))
        }
        (Some(404), _) | (_, Some("model_not_found")) => {
            Trouble::refused(format!("{words}; choose another model"))
        }
        (Some(400 | 413 | 422), _) | (_, Some("invalid_request")) => {
            Trouble::refused(format!("the model server does not take this: {words}"))
        }
        _ => Trouble::transient(words),
    }
}

/// The meaning of it that the process went without a word but for this complaint; nothing, if nobody knows.
pub(super) fn of_complaint(complaint: &str, launch: &Launch, place: &str) -> Option<Trouble> {
    if complaint.contains(UNKNOWN) {
        return Some(gone_if_here(launch, place, complaint));
    }
    if complaint.contains(EXISTS) {
        return Some(Trouble::new(Failure::Busy, complaint));
    }
    let is_refusal = ["error: unknown option", "error: option '", "cannot be used with root"];
    is_refusal.iter().any(|words| complaint.contains(words)).then(|| {
        Trouble::refused(format!("claude does not start like this; is it a version we know? {complaint}"))
    })
}

/// Its own words: a list, a text, or at least what kind of end it was.
fn words(said: &Value) -> String {
    let errors: Vec<&str> =
        said["errors"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let text = said["result"].as_str().filter(|text| !text.is_empty());
    match text {
        _ if !errors.is_empty() => errors.join("; "),
        Some(text) => text.to_owned(),
        None => {
            let kind = said["terminal_reason"].as_str().or(said["subtype"].as_str());
            format!("claude failed without saying why ({})", kind.unwrap_or("unknown"))
        }
    }
}
