//! The table of docs/agents.md that the stories of the whole product make: a row for each story, which held.

use testkit::{AgentsTable, RealAgent, row_of};

use super::fail;

/// The story of which not every part applies to every agent.
const FAULTS: &str = "a_fault_of_the_model_server_changes_nothing_and_is_never_run_again";

/// The stories, in the order of the table.
const STORIES: [&str; 16] = [
    "conversations_remember_their_own_words_and_no_others_over_a_restart",
    "two_messages_at_once_are_two_turns_in_order_in_one_process",
    "each_task_has_its_own_session_and_a_named_one_is_used",
    "whoever_is_killed_the_turn_is_settled_and_the_session_remembers",
    "a_stop_leaves_nothing_and_the_session_remembers",
    FAULTS,
    "a_model_that_never_answers_ends_the_turn_and_the_session_remembers",
    "an_agent_that_nobody_set_up_is_refused_with_its_own_remedy",
    "a_conversation_deleted_under_us_is_gone_and_told",
    "a_question_is_answered_by_a_person_or_by_time",
    "a_question_lapses_with_its_turn_when_the_server_dies",
    "a_rule_by_tool_answers_and_nobody_is_asked",
    "what_a_turn_changed_is_shown_and_undone_and_the_session_goes_on",
    "a_fork_knows_what_was_said_and_figures_are_shown",
    "words_in_between_are_heard_and_an_interrupt_comes_first",
    "a_chosen_model_is_the_one_that_is_used_and_what_it_took_is_shown",
];

/// Says that a story held for that agent.
pub(crate) fn held(agent: RealAgent, story: &str) {
    assert!(STORIES.contains(&story), "{story} is not in the table");
    let seen = match (story, agent) {
        ("a_conversation_deleted_under_us_is_gone_and_told", agent) if agent.forgets() => {
            "it is told again".to_owned()
        }
        (FAULTS, agent) => format!("yes: {}", fail::faults_of(agent)),
        _ => "yes".to_owned(),
    };
    table().check(agent, &[(row_of(story), seen)]);
}

fn table() -> AgentsTable {
    AgentsTable {
        begin: "<!-- What the whole product did; `UPDATE_EXPECT=1 cargo xtask nightly --only agents` writes it. -->",
        end: "<!-- End of what the whole product did. -->",
        rows: STORIES.iter().map(|story| row_of(story)).collect(),
    }
}

#[test]
fn the_table_has_every_story_and_no_empty_cell() {
    table().assert_complete();
}
