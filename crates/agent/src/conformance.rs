//! The stories every driver must survive, told through the port alone.
//!
//! A driver's tests call `agent::conformance!(candidate)` with an expression that makes a `Candidate`; each story becomes
//! one test. A story says what it wishes the agent to do (`Wish`) and what should go wrong outside (`Weather`); the
//! candidate knows by which words its agent does that, and how the answer then looks. What an agent cannot be made to do
//! makes a story inapplicable, with a reason, and the candidate is told of it: nothing is left out in silence.
//!
//! Read `wish` first, then `talk` (one attempt, with every wait bounded), then the stories: `words`, `memory`,
//! `scope`, `troubles`, `questions`, `ends`. `scripted` is the dialect of the scripted agent.

mod ends;
mod memory;
mod questions;
mod scope;
mod scripted;
mod talk;
mod troubles;
mod wish;
mod words;

use kernel::{GroundPath, Native, SessionId};
use std::future::Future;

use crate::{Agent, TreeName};
pub use ends::*;
pub use memory::*;
pub use questions::*;
pub use scope::*;
pub use scripted::ScriptedDialect;
pub use troubles::*;
pub use wish::{Blow, Cannot, Weather, Wish};
pub use words::*;

/// The outcome of a story: it held, or it does not apply.
pub type StoryResult = Result<(), Cannot>;

/// A driver on trial, with ground to stand on.
pub trait Candidate: Sync {
    /// The driver.
    fn agent(&self) -> &dyn Agent;
    /// A directory that exists.
    fn directory(&self) -> GroundPath;
    /// Another directory that exists, to which a session of the first may move.
    fn elsewhere(&self) -> GroundPath;
    /// A session that nobody else on this machine uses.
    fn session(&self) -> SessionId;
    /// The number of processes, or of whatever stands for them, that are left of that session.
    fn left(&self, tree: &TreeName) -> usize;
    /// The number of them that are children that a turn was wished to start (`Wish::Children`).
    fn children(&self, tree: &TreeName) -> usize;
    /// The dialect in which its agent is talked to.
    fn dialect(&self) -> &dyn Dialect;

    /// The words under which this weather comes over a turn that wishes this. Arranges what has to be arranged
    /// outside, until `calm`.
    fn storm(&self, weather: Weather, wishes: &[Wish<'_>]) -> Result<String, Cannot>;
    /// True if the agent makes nothing of this weather that could be seen: it goes on by itself, or takes half an answer for a
    /// whole one.
    fn hides(&self, weather: Weather) -> bool {
        let _ = weather;
        false
    }
    /// Ends every weather.
    fn calm(&self) {}
    /// Makes the agent lose a conversation behind our back. No process of it runs then.
    fn lose(&self, native: &Native) -> Result<(), Cannot>;
    /// Damages the end of what the agent wrote down about a conversation, as a power cut would. No process of it runs.
    fn tear(&self, native: &Native) -> Result<(), Cannot>;
    /// Does this to the process of that session's agent, if the agent does not do it to itself when wished to.
    fn strike(&self, tree: &TreeName, blow: Blow) -> Result<(), Cannot>;
    /// The model that was really asked in the last turn, if anybody can tell.
    fn model_used(&self) -> Option<String> {
        None
    }
    /// An id that the agent could have made, and did not.
    fn unknown_id(&self) -> String {
        "00000000-dead-4000-8000-000000000000".to_owned()
    }

    /// The longest that a story waits for one thing, in milliseconds. Generous: the machine may be busy, and only
    /// failures take this long.
    fn patience_ms(&self) -> u64 {
        20_000
    }
    /// Takes note of something that was seen, for the table of what agents do. `fact` is one of `FACTS`.
    fn note(&self, fact: &'static str, seen: &str) {
        let _ = (fact, seen);
    }
    /// Hears what came of a story, after every process that was kept has been ended.
    fn told(&self, story: &'static str, told: StoryResult);
}

/// The dialect in which one kind of agent is talked to.
pub trait Dialect: Sync {
    /// The words that make the agent do all of this in one turn, in this order.
    fn phrase(&self, wishes: &[Wish<'_>]) -> Result<String, Cannot>;
    /// The whole text of its answer, if this is the message of that number in its conversation (the first is 1), and
    /// none before it went wrong; of an answer that has no end, the beginning. Not for tools, whose words are their own.
    fn answer(&self, wishes: &[Wish<'_>], number: u32) -> String;
    /// The words it says it was told to keep, in their order, in its answer to `Wish::Recall`.
    fn recalled(&self, answer: &str) -> Vec<String>;
    /// True if the last thing it asked about was done, going by its answer or by what it left behind.
    fn was_done(&self, answer: &str) -> bool;
}

/// The facts that stories take note of, in the order of the table, and which story does.
pub const FACTS: &[(&str, &str)] = &[
    ("its id is known", "it_is_ready_before_it_is_handed_anything"),
    ("its process is kept between turns", "a_kept_process_answers_like_a_new_one"),
    ("an unknown conversation", "an_unknown_conversation_is_gone"),
    ("an id that cannot be one", "an_unknown_conversation_is_gone"),
    ("a deleted conversation", "a_conversation_that_was_deleted_is_gone"),
    ("an unknown conversation of another place", "an_unknown_conversation_of_another_place_is_not_gone"),
    ("a torn record of a conversation", "a_torn_record_is_not_gone"),
    ("a conversation that another process has", "a_conversation_that_another_process_has_is_not_gone"),
    ("no server", "bad_weather_is_never_the_end"),
    ("401", "bad_weather_is_never_the_end"),
    ("429", "bad_weather_is_never_the_end"),
    ("529", "bad_weather_is_never_the_end"),
    ("cut in the middle", "bad_weather_is_never_the_end"),
    ("not JSON in the middle", "bad_weather_is_never_the_end"),
    ("stopped in the middle, it ends", "stop_mid_turn_leaves_nothing"),
    ("after a no", "a_question_is_answered_yes_and_no"),
    ("an unknown model", "the_chosen_model_is_used_or_none"),
];

/// Tells one story and lets the candidate know. Whatever was kept is ended first.
pub async fn tell(on: &dyn Candidate, story: &'static str, told: impl Future<Output = StoryResult>) {
    let told = told.await;
    on.calm();
    talk::wait(on, on.agent().close()).await;
    on.told(story, told);
}

/// The names of all stories, in the order in which they are told.
pub const STORIES: &[&str] = crate::conformance!(@list names);

/// Makes one test of each story. The tests' crate needs tokio with `macros` and `rt`.
#[macro_export]
macro_rules! conformance {
    (@list $make:ident $($with:tt)*) => {
        $crate::conformance! { @$make [$($with)*]
            it_is_ready_before_it_is_handed_anything, it_finishes_with_its_whole_answer, a_flood_arrives_complete,
            next_can_be_dropped, a_message_too_long_is_refused, it_acts_in_the_scopes_directory,
            it_says_what_a_turn_costs, it_lists_what_it_says_it_lists,
            a_resumed_conversation_remembers, a_new_conversation_remembers_nothing,
            two_conversations_in_one_directory_never_mix, a_kept_process_answers_like_a_new_one,
            failing_after_acting_is_remembered, a_new_id_is_reported,
            an_unknown_conversation_is_gone, a_conversation_that_is_gone_stays_gone,
            a_conversation_that_was_deleted_is_gone, an_unknown_conversation_of_another_place_is_not_gone,
            a_torn_record_is_not_gone,
            words_added_to_a_turn_are_part_of_it, words_beside_a_turn_are_too_late,
            a_fork_goes_its_own_way, what_is_gone_cannot_be_forked, a_conversation_that_moved_remembers,
            the_chosen_model_is_used_or_none,
            failures_keep_their_kinds, told_starts_fail_before_ready, bad_weather_is_never_the_end,
            a_conversation_that_another_process_has_is_not_gone,
            a_question_waits_for_its_answer, a_question_is_answered_yes_and_no,
            a_file_is_written_only_after_a_yes, a_stop_withdraws_a_question,
            a_choice_is_made_of_what_is_offered, words_are_asked_for_and_given,
            stop_mid_turn_leaves_nothing, stop_before_the_message_leaves_nothing, stop_twice_is_fine,
            stop_after_the_end_is_fine, a_crash_is_a_death, a_hanging_agent_can_be_stopped,
            the_leftovers_of_a_dropped_attempt_can_be_ended, ending_leftovers_twice_or_none_is_fine,
            a_tree_runs_once_at_a_time,
            what_a_turn_leaves_running_is_gone_with_it, what_a_turn_started_is_gone_after_a_stop,
            what_a_turn_started_is_gone_after_a_kill }
    };
    (@tests [$candidate:expr] $($story:ident),*) => {
        $(#[tokio::test] async fn $story() {
            let candidate = $candidate;
            let told = $crate::conformance::$story(&candidate);
            $crate::conformance::tell(&candidate, stringify!($story), told).await;
        })*
    };
    (@names [] $($story:ident),*) => { &[$(stringify!($story)),*] };
    ($candidate:expr) => { $crate::conformance! { @list tests $candidate } };
}
