//! The simulation in the normal test run: seeds that hold the laws, and planted bugs that are found.
//!
//! The seeds are cut into a few tests so that they run beside each other. `HOMING_SIM_SEEDS` says how many there are (400 by
//! default, 50 in `cargo xtask quick`); `cargo xtask sim` runs many more.

use homing_sim::{Bug, Telling, run, sweep};

/// Within so many seeds each planted bug must be found.
const BUG_SEEDS_MAX: u64 = 300;

/// The laws hold for these seeds.
fn check(seeds: std::ops::Range<u64>) {
    let came = sweep(seeds, Telling::default(), 1);
    if let Some(failed) = came.failed {
        let broken: Vec<String> = failed.broken.iter().map(ToString::to_string).collect();
        let seed = failed.seed;
        panic!("seed {seed}:\n{}\nsee `cargo xtask sim --seed {seed} -v`", broken.join("\n"));
    }
}

/// One of the four parts into which the seeds are cut.
fn part(number: u64) -> std::ops::Range<u64> {
    let seeds = from_env("HOMING_SIM_SEEDS", 400);
    seeds * number / 4..seeds * (number + 1) / 4
}

fn from_env(name: &str, or: u64) -> u64 {
    std::env::var(name).map_or(or, |value| value.parse().expect("a number"))
}

#[test]
fn the_laws_hold_for_the_first_part_of_the_seeds() {
    check(part(0));
}

#[test]
fn the_laws_hold_for_the_second_part_of_the_seeds() {
    check(part(1));
}

#[test]
fn the_laws_hold_for_the_third_part_of_the_seeds() {
    check(part(2));
}

#[test]
fn the_laws_hold_for_the_fourth_part_of_the_seeds() {
    check(part(3));
}

/// Seeds that find what was wrong once: an endless "try again", a caller who hung up, a session that was made and a wake
/// that was written without anybody being told, an agent that came up after it had been buried; a conversation that was told
/// again to an agent that never answered, a fork that worked beside its origin, an act of ours whose append was not heard of, a fork that was
/// made while its origin went on, a daemon that was replaced and did not know the scope, another one that looked late how a
/// tree was before a turn; a session under way whose ring got lost when the daemon started.
#[test]
fn the_laws_hold_for_seeds_that_broke_them() {
    for seed in [9, 58, 87, 533, 1_162, 1_193, 1_339, 4_439, 6_662, 17_991, 33_452, 115_380, 504_932, 2_338] {
        check(seed..seed + 1);
    }
}

#[test]
fn the_same_seed_is_the_same_story() {
    let mut hashes = std::collections::BTreeSet::new();
    for seed in 0..40 {
        let (first, second) = (run(seed, Telling::default()), run(seed, Telling::default()));
        assert_eq!(first.hash, second.hash, "seed {seed}");
        hashes.insert(first.hash);
    }
    assert_eq!(hashes.len(), 40, "another seed is another story");
}

#[test]
fn a_story_told_aloud_is_the_same_story() {
    let aloud = Telling { aloud: true, ..Telling::default() };
    assert_eq!(run(5, aloud).hash, run(5, Telling::default()).hash);
}

/// Plants a bug; some law must be seen to break.
fn finds(bug: Bug) {
    let came = sweep(0..BUG_SEEDS_MAX, Telling { bug: Some(bug), aloud: false }, 1);
    assert!(came.failed.is_some(), "{bug:?} was not found in {BUG_SEEDS_MAX} seeds");
}

macro_rules! planted {
    ($($name:ident: $bug:ident;)*) => {$(
        #[test]
        fn $name() {
            finds(Bug::$bug);
        }
    )*};
}

planted! {
    finds_that_keys_are_not_looked_at: NoDedupe;
    finds_that_old_keepers_write: NoFence;
    finds_that_the_inbox_is_not_emptied: InboxKept;
    finds_that_facts_are_believed_before_they_are_durable: EvolveBeforeDurable;
    finds_that_a_stale_result_is_applied: StaleApplied;
    finds_that_messages_are_acknowledged_before_they_are_durable: AckBeforeDurable;
    finds_that_handing_over_is_not_written: HandedUnwritten;
    finds_that_nothing_is_buried: LeaveLeftovers;
    finds_that_messages_go_astray: Misrouted;
    finds_that_any_failure_is_gone: GoneForTransient;
    finds_that_claims_are_ignored: ClaimsIgnored;
    finds_that_facts_are_skipped: FactsSkipped;
    finds_that_receipts_are_old: OldReceipts;
    finds_that_wakes_are_lost: WakesLost;
    finds_that_replies_are_posted_twice: RepliesTwice;
    finds_that_nothing_is_held_when_a_scope_changes: HoldsUnwritten;
    finds_that_a_stale_list_is_applied: StaleErrandApplied;
    finds_that_the_epoch_of_a_message_is_not_compared: EpochIgnored;
    finds_that_steered_words_are_run_again: SteeredTwice;
    finds_that_a_worktree_is_entered_without_a_fact: EnteredUnwritten;
    finds_that_the_chosen_model_is_forgotten: ModelForgotten;
    finds_that_directories_are_not_claimed: DirectoriesIgnored;
    finds_that_removed_rules_are_read: RulesOutlived;
    finds_that_rules_that_say_no_are_not_read: DenialsUnread;
    finds_that_a_rule_holds_where_it_was_not_made_for: RulesWidened;
    finds_that_rules_are_made_without_the_right_to: RulesByAnybody;
    finds_that_a_ring_is_lost_for_good: RingLost;
    finds_that_a_stop_waits_behind_a_chore: ChoreBeforeStop;
    finds_that_a_question_is_answered_again: AnsweredAgain;
    finds_that_unattended_messages_wait_for_people: UnattendedForgotten;
    finds_that_questions_are_open_for_too_long: QuestionsUnbounded;
    finds_that_an_import_is_not_whole: ImportCut;
    finds_that_names_are_looked_for_in_other_orgs: NamesShared;
    finds_that_an_import_is_mixed_with_its_origin: ImportsMixed;
    finds_that_a_key_is_looked_up_after_the_limits: KeyAfterLimits;
    finds_that_replies_overtake_each_other: OutboxSwapped;
    finds_that_a_reply_is_sent_again_after_a_crash: SentAgain;
    finds_that_a_scheme_is_used_through_another_door: ForeignSchemeBound;
}

#[test]
fn every_planted_bug_has_a_test() {
    let names = include_str!("main.rs");
    for bug in Bug::ALL {
        assert!(names.contains(&format!(": {bug:?};")), "{bug:?}");
    }
}
