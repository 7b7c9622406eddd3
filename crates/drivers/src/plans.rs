//! Plans that an agent shows before it acts on them, and the mode that it is in afterwards. Pure.
//!
//! A yes to a plan lets the agent leave the mode in which it plans, for the rest of that turn. The mode that a person has chosen
//! for the session holds again from the next turn on, and people are told both.

use agent::{AgentEvent, DETAIL_BYTES_MAX, bounded};
use serde_json::Value;

/// The plan in what a tool is to be used with, as the agent wrote it.
pub(crate) fn plan_in(input: &Value) -> Option<String> {
    let plan = input["plan"].as_str().filter(|plan| !plan.trim().is_empty())?;
    Some(bounded(plan, DETAIL_BYTES_MAX))
}

/// The word to people about an agent that goes on in another mode.
pub(crate) fn other_mode(now: &str, chosen: &str) -> AgentEvent {
    let now_words = format!("the agent goes on in the mode {now}");
    let text = match chosen.is_empty() || chosen == now {
        true => now_words,
        false => format!(
            "{now_words} for the rest of this turn; the next one begins in {chosen} again, which is the session's \
             (`homing scope set --mode` changes that)"
        ),
    };
    AgentEvent::Notice { text: bounded(&text, DETAIL_BYTES_MAX) }
}
