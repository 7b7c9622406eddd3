//! The suite every store must pass, the memory store included.
//!
//! Each promise is one `pub async fn`, generic over a `Fixture`, which makes stores and reaches behind the port where
//! the port, rightly, does not. `store::conformance!(MyFixture)` turns every promise into one test. `story` is the
//! language they are told in; the other files are the promises, by subject.

mod accept;
mod append;
mod attached;
mod chain;
mod chores;
mod disk;
mod glance;
mod grants;
mod import;
mod life;
mod limits;
mod marks;
mod naming;
mod needs;
mod offers;
mod outbox;
mod past;
mod people;
mod pushes;
mod reading;
mod rechecks;
mod requests;
mod row_changes;
mod rules;
mod scope;
mod search;
mod story;
mod time;
mod tokens;
mod usage;

pub use accept::*;
pub use append::*;
pub use attached::*;
pub use chain::*;
pub use chores::*;
pub use disk::*;
pub use glance::*;
pub use grants::*;
pub use import::*;
pub use life::*;
pub use limits::*;
pub use marks::*;
pub use naming::*;
pub use needs::*;
pub use offers::*;
pub use outbox::*;
pub use past::*;
pub use people::*;
pub use pushes::*;
pub use reading::*;
pub use rechecks::*;
pub use requests::*;
pub use row_changes::*;
pub use rules::*;
pub use scope::*;
pub use search::*;
pub use time::*;
pub use tokens::*;
pub use usage::*;

use crate::Store;
use kernel::OrgId;
use std::future::Future;

/// Makes stores for the suite, and does what the port has no method for.
pub trait Fixture: Sized + Send + Sync {
    /// The store on trial.
    type Store: Store;

    /// A new, empty store. Whatever it needs (a directory, say) lives as long as the fixture.
    fn fresh() -> impl Future<Output = Self> + Send;

    /// The store.
    fn store(&self) -> &Self::Store;

    /// A restart of the process: the same contents, a higher term.
    fn reopen(self) -> impl Future<Output = Self> + Send;

    /// Changes the verb of an audit entry behind the port's back, as somebody with the database in their hands could.
    fn tamper(&self, org: OrgId, entry: u64) -> impl Future<Output = ()> + Send;

    /// Makes every checkpoint unreadable, or takes it away.
    fn spoil_checkpoints(&self) -> impl Future<Output = ()> + Send;
}

/// Makes one test of each promise: `store::conformance!(MyFixture);`. The tests' crate needs tokio with `macros` and `rt`.
#[macro_export]
macro_rules! conformance {
    ($fixture:ty) => {
        $crate::conformance!(@ $fixture;
            // accept
            an_accepted_message_is_there_with_all_that_belongs_to_it,
            accepting_writes_no_fact,
            words_come_back_byte_for_byte,
            the_same_key_gets_the_same_receipt,
            the_same_key_gets_the_same_receipt_after_a_restart,
            concurrent_uses_of_one_key_are_one_message,
            the_same_key_with_another_body_is_a_conflict,
            a_key_belongs_to_an_org_a_person_and_a_verb,
            a_key_is_looked_up_before_anything_else,
            a_key_is_looked_up_before_the_limits,
            what_was_done_under_a_key_can_be_asked,
            a_message_that_needs_a_new_session_is_told_so_before_it_brings_one,
            whoever_asks_is_who_they_are_now,
            an_epoch_that_has_not_been_is_no_scope,
            a_refusal_is_in_the_audit_with_its_code,
            a_refusal_is_not_remembered_under_its_key,
            a_key_is_free_again_once_it_has_expired,
            a_right_that_was_taken_away_does_not_count,
            a_session_that_has_ended_takes_nothing,
            a_conversation_that_was_bound_in_between_gets_no_second_session,
            concurrent_first_messages_share_one_session,
            a_receipt_says_that_a_wish_for_a_new_session_was_ignored,
            one_address_in_two_orgs_is_two_conversations,
            find_tells_open_from_ended_from_nothing,
            find_does_not_look_into_other_orgs,
            an_address_of_somebody_else_is_not_used,
            an_address_of_another_door_is_neither_used_nor_bound,
            a_session_of_another_org_is_not_found,
            an_address_that_each_person_has_for_themselves_meets_nobody_elses,
            an_address_of_ones_own_stays_ones_own_when_its_session_is_handed_over,
            a_previous_session_is_told_only_to_whom_it_may_be_shown,
            a_session_is_made_of_what_is_theirs_to_choose,
            a_conversation_whose_session_has_ended_gets_a_new_one_and_is_told,
            the_inbox_has_the_order_of_acceptance,
            a_session_can_be_made_before_anybody_says_anything,
            an_id_is_used_once,
            // attached
            what_goes_along_comes_back_byte_for_byte_and_in_order,
            an_edit_of_the_words_keeps_what_goes_along_and_one_that_brings_other_replaces_it,
            what_goes_along_counts_as_long_as_it_is_kept,
            what_the_sessions_agent_does_not_take_is_refused_and_changes_nothing,
            what_went_along_elsewhere_comes_along,
            // disk
            words_count_for_the_owner_of_their_session_as_long_as_they_are_kept,
            words_for_which_there_is_no_room_are_refused_and_change_nothing,
            what_an_agent_says_beyond_the_room_of_its_owner_is_not_written,
            // glance
            a_row_says_what_its_reader_may_do,
            a_row_counts_what_waits_for_people,
            a_row_says_how_the_last_turn_ended_and_how_its_last_words_begin,
            // usage
            what_turns_used_is_added_up_by_day_agent_and_person,
            what_was_used_out_of_sight_is_in_no_sum,
            what_was_used_is_seen_by_whoever_has_the_session_now,
            // limits
            only_open_sessions_count_as_open,
            the_limit_of_open_sessions_holds_against_all_at_once,
            an_org_has_only_so_many_open_sessions,
            an_orgs_own_limit_counts_if_it_is_lower,
            the_orgs_limit_holds_against_all_at_once,
            only_unfinished_messages_count_as_pending,
            the_limit_of_pending_messages_holds_against_all_at_once,
            a_claim_has_only_so_many_holders,
            a_claim_is_freed_by_the_end,
            a_claim_outlives_a_restart,
            a_claim_that_is_held_stays_held_when_fewer_may,
            different_claims_do_not_count_together,
            a_claim_is_raced_for_by_all_and_won_by_so_many,
            // marks
            marks_are_ones_own_and_what_was_seen_is_never_unseen,
            whoever_sees_a_session_may_mark_it_and_nobody_else,
            marks_put_again_under_their_key_are_as_they_are_by_then,
            // pushes
            a_push_is_one_credentials_and_outlives_a_restart,
            a_push_goes_with_its_credential_whichever_way_that_goes,
            a_browser_tells_one_person_and_a_person_has_so_many_browsers,
            a_dead_push_is_forgotten_and_not_what_took_its_place,
            // requests
            a_wish_waits_in_the_inbox_until_the_keeper_has_judged_it,
            edited_words_count_once_the_keeper_has_said_yes,
            edited_words_are_dropped_once_the_keeper_has_said_no,
            a_wish_asked_again_under_its_key_is_the_same_wish,
            a_session_that_has_ended_can_be_asked_for_nothing,
            a_wish_whose_right_was_taken_away_is_refused,
            who_said_a_message_has_a_say_in_who_may_change_it,
            a_request_needs_what_it_brings_about,
            only_whom_a_rule_names_answers,
            a_conversation_can_be_moved_to_another_open_session,
            a_repeated_rebinding_changes_nothing,
            small_changes_need_the_right_to_rule,
            a_conversation_that_was_moved_knows_the_session_that_it_had,
            a_past_that_somebody_may_not_see_is_none,
            what_a_conversation_had_before_never_stands_in,
            a_new_session_takes_a_conversation_over_and_the_one_before_goes_on,
            whoever_may_use_an_address_may_take_it_over,
            takers_of_one_conversation_are_one_after_the_other,
            a_message_that_expects_another_agent_is_refused,
            a_session_after_another_one_is_made_like_it,
            a_title_and_the_archive_can_be_changed_one_by_one,
            there_is_one_audit_entry_per_command_or_refusal,
            // chores
            a_chore_stays_in_the_inbox_until_its_verdict,
            why_a_chore_failed_is_kept_with_its_verdict,
            a_session_ends_over_chores_that_were_seen_and_over_nothing_else,
            an_ended_session_takes_chores_and_the_audit_names_the_worktree,
            a_chore_needs_the_right_to_rule_and_so_does_its_beginning,
            homing_itself_asks_for_chores_in_the_org_that_it_acts_for,
            // append
            an_older_term_is_fenced,
            the_same_term_goes_on_and_a_newer_one_takes_over,
            another_number_than_the_keeper_knows_is_moved,
            nothing_can_be_appended_to_a_session_that_does_not_exist,
            inbox_rows_go_with_the_facts_that_answer_them,
            an_append_without_facts_only_empties_the_inbox,
            facts_come_back_as_they_were_written,
            a_log_has_no_gaps_and_is_paged_by_number,
            a_log_is_paged_backwards_too,
            a_turns_story_is_read_without_the_others,
            a_keeper_loads_rule_facts_only,
            a_checkpoint_is_used_and_can_be_lost,
            a_checkpoint_of_what_is_not_in_the_log_is_not_believed,
            a_message_is_not_started_for_whoever_may_no_longer_say_it,
            a_session_does_not_end_over_an_inbox_that_was_not_drained,
            an_end_and_a_message_never_pass_each_other,
            // time
            a_session_is_woken_when_it_is_due_and_not_before,
            only_so_many_are_woken_at_once,
            each_append_says_anew_when_the_session_is_due,
            only_unfinished_sessions_are_listed_as_unfinished,
            // life
            a_receipt_tells_a_messages_whole_life,
            every_outcome_has_its_words,
            an_ended_session_is_unbound_and_stays_readable,
            other_sessions_are_not_touched_by_an_append,
            the_projections_can_be_made_again_from_the_log,
            // scope
            what_was_said_into_a_turn_ends_with_it,
            what_was_said_into_a_turn_shares_why_it_ended,
            what_missed_its_turn_waits_before_all_others_and_has_none,
            a_scope_that_has_changed_is_in_every_row,
            a_scope_that_was_left_is_still_known,
            a_turn_is_known_by_what_it_began_with,
            another_agent_is_another_record,
            a_message_says_how_and_for_which_scope_it_was_written,
            a_fork_knows_what_it_came_from,
            every_answer_comes_back_as_it_was_given,
            whoever_holds_a_claim_is_known,
            worktrees_are_in_use_until_they_are_left,
            // rules
            rules_come_back_as_they_were_made,
            rules_of_a_session_go_when_it_ends,
            rules_whose_time_is_over_go_with_the_next_one,
            a_rule_that_would_never_count_is_not_made,
            a_rule_for_a_session_is_made_by_whoever_answers_for_it,
            a_rule_stays_within_its_org,
            // naming
            the_first_words_are_a_title_until_somebody_gives_one,
            a_title_goes_with_the_words_that_it_is_of,
            an_agents_title_takes_the_place_of_any_but_a_persons,
            a_session_is_found_by_a_piece_of_its_id_or_its_given_title,
            a_list_is_narrowed_to_agent_directory_state_and_title,
            // needs
            a_list_is_narrowed_to_what_needs_somebody,
            a_list_is_narrowed_to_owner_archive_and_origin,
            sessions_are_counted_by_the_rule_of_lists,
            // reading
            sessions_are_listed_with_the_newest_activity_first,
            pages_of_sessions_have_no_gap_and_no_repeat,
            a_list_shows_open_ended_or_all,
            what_you_may_not_see_is_in_no_list,
            a_record_says_who_may,
            what_you_may_not_see_is_not_read_by_its_id,
            where_something_is_is_told_in_its_org_only,
            whoever_lost_a_message_with_its_session_is_told_so,
            heads_name_each_changed_session_once,
            bindings_are_paged_in_the_order_of_their_texts,
            questions_are_listed_until_they_are_settled,
            settled_questions_are_listed_page_by_page,
            settled_questions_out_of_sight_are_in_no_list,
            what_a_question_is_judged_by_is_kept_with_it,
            what_an_approval_says_is_kept_under_its_id,
            whether_somebody_attends_is_kept_with_a_message,
            a_rule_that_comes_with_an_answer_is_there_with_it_and_goes_with_its_session,
            the_queue_has_the_order_in_which_messages_will_run,
            a_queue_is_shown_with_senders_and_words,
            a_session_is_read_with_its_log,
            turns_are_listed_with_what_they_began_with,
            // row_changes
            a_row_that_no_fact_changes_is_among_the_changed, ones_own_marks_change_ones_own_row_and_nobody_elses,
            whoever_gains_or_loses_a_session_is_told_and_nobody_else,
            a_session_that_is_handed_over_leaves_one_list_and_comes_into_another,
            // search
            what_was_said_is_found_once_its_turn_is_over,
            only_what_may_be_read_is_found,
            words_are_found_as_they_were_when_their_turn_began,
            // outbox
            a_reply_is_in_the_outbox_with_the_facts_it_follows_from,
            a_reply_is_taken_once_and_settled_once,
            a_reply_that_is_waiting_cannot_be_settled,
            a_reply_that_was_not_sent_waits_for_its_moment,
            a_door_takes_only_what_is_its_own,
            what_was_being_sent_at_a_crash_is_unknown,
            what_its_node_lost_sight_of_is_unknown,
            what_is_unknown_is_found_or_found_missing_or_left_to_a_person,
            what_became_of_a_try_says_nothing_of_the_next_one,
            a_reply_is_settled_by_hand_once_and_by_its_own_org,
            only_admins_settle_replies_and_a_repetition_changes_nothing,
            what_was_sent_is_forgotten_in_the_end,
            // tokens
            a_credential_is_its_person_with_what_it_is_good_for,
            a_principal_is_as_things_are_now,
            a_credential_lets_in_until_it_expires,
            a_credential_that_was_not_used_for_too_long_lets_nobody_in,
            a_machines_credential_replaces_the_one_before,
            a_turns_credential_is_good_while_its_turn_is_under_way,
            a_turns_credential_is_written_with_its_attempt_or_not_at_all,
            a_message_with_a_credential_that_is_no_longer_good_is_refused,
            a_rotated_secret_counts_for_a_moment_longer,
            a_revoked_credential_is_gone_at_once,
            what_was_made_with_a_token_ends_with_it_at_the_latest_and_is_revoked_with_it,
            credentials_are_listed_without_the_machines_and_the_turns,
            somebody_is_found_by_what_they_type_unless_others_could_be_meant,
            somebody_who_has_proved_who_they_are_is_let_in_as_they_were_seen,
            another_password_signs_out_everything_but_the_one_that_is_kept,
            a_link_works_once,
            a_link_that_was_made_with_a_token_goes_with_it_and_so_does_who_came_in_by_it,
            a_link_works_once_even_if_all_come_at_once,
            a_link_that_has_expired_works_no_more,
            those_who_are_invited_come_in_by_their_link,
            what_let_a_disabled_person_in_is_gone_for_good,
            a_name_at_an_identity_provider_is_one_persons,
            homing_itself_lets_people_in_and_ties_each_to_one_name,
            // grants
            every_change_is_made_once_under_its_key_with_one_audit_entry,
            only_the_standings_of_those_whom_a_change_touches_grow,
            a_change_by_somebody_who_may_no_longer_make_it_is_refused,
            a_key_that_was_used_for_something_else_is_told_only_to_whoever_may,
            a_change_with_a_credential_that_is_gone_is_refused,
            a_change_needs_the_rights_of_the_stored_credential,
            a_change_of_a_session_is_judged_by_its_record_as_it_is,
            nobody_changes_somebody_above_them,
            what_is_allowed_with_a_session_is_not_allowed_with_the_org,
            one_may_do_to_oneself_what_takes_nothing_from_others,
            a_password_is_set_by_whoever_proved_the_old_one,
            nobody_is_let_in_while_agents_are_not_walled_off,
            an_org_is_made_by_the_machines_person,
            what_belongs_to_another_org_is_not_found,
            what_is_called_so_already_is_taken,
            an_org_keeps_an_owner_who_can_come_in,
            an_org_keeps_an_owner_even_if_all_go_at_once,
            who_there_is_can_be_read,
            what_was_given_is_replaced_and_taken_back,
            what_a_group_was_given_goes_with_it,
            an_agent_on_which_nothing_is_left_stays_closed_until_it_is_given_to_the_org,
            a_new_session_is_shared_as_the_org_says,
            a_session_that_is_handed_over_is_the_others_in_every_list_and_count,
            everything_of_somebody_who_leaves_can_be_handed_over,
            a_bound_credential_sees_one_session,
            lists_show_what_the_rule_allows,
            nothing_is_handed_over_to_whoever_could_do_nothing_with_it,
            // offers
            an_offer_changes_nothing_until_it_is_accepted,
            what_waited_in_a_session_that_was_handed_over_ends_with_its_reason,
            an_offer_is_accepted_only_by_who_has_room_for_it_and_may_use_its_directory,
            an_offer_is_answered_by_whom_it_is_to_and_taken_back_by_who_manages_it,
            a_session_is_offered_to_one_person_at_a_time_until_that_lapses,
            an_offer_is_over_with_its_session_and_with_either_person,
            all_sessions_of_somebody_are_offered_and_handed_over_once_they_have_left,
            // rechecks
            those_touched_are_looked_at_again_where_something_of_theirs_is_unfinished,
            a_recheck_is_drained_like_anything_else,
            a_turn_that_was_stopped_for_a_lost_right_says_so,
            nothing_is_started_for_whoever_may_no_longer_say_it,
            whoever_handed_a_session_over_starts_nothing_in_it,
            nobody_says_anything_where_they_are_not,
            a_disabled_persons_wishes_are_refused,
            // chain
            an_entry_says_who_did_what_from_where,
            what_nobody_known_did_is_in_the_audit_of_the_machines_person,
            what_the_engine_does_by_itself_is_in_the_audit_under_its_own_name,
            the_audit_is_found_by_time_person_verb_and_subject,
            each_org_has_a_chain_of_its_own_without_gaps,
            each_org_counts_its_own_entries,
            an_entry_is_sealed_once_even_if_two_seal_at_once,
            an_entry_that_was_changed_is_found,
            // import
            an_import_is_there_with_its_whole_past,
            an_imports_name_is_known_in_its_org_only,
            what_somebody_has_imported_they_import_once,
            an_import_is_nobody_elses_whatever_the_org_shares,
            // people
            the_machines_person_is_made_once,

            a_sign_in_is_one_persons_for_one_agent_and_outlives_a_restart,
            a_sign_in_is_replaced_and_forgotten_with_an_audit_entry_each,
            each_start_has_a_higher_term
        );
    };
    (@ $fixture:ty; $($promise:ident),*) => {
        $(#[tokio::test] async fn $promise() { $crate::conformance::$promise::<$fixture>().await; })*
    };
}
