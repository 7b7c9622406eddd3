//! One story per promise. Columns: what happens, which facts follow, what is due then.
//!
//! The limits are small (see `story::POLICY`): three attempts with rests of 10 and 30 ms, a turn takes at most
//! 1,000 ms, a held message is kept 5,000 ms, a question 200 ms, a full house is asked again after 50 ms. An outcome is
//! a policy's default unless the story says otherwise.

use crate::story::{Told, World, step, tell};
use expect_test::{Expect, expect};
use homing_kernel::*;

fn check(story: &str, told: Expect) {
    told.assert_eq(&tell(story));
}

// Order and turns (law 3).

#[test]
fn the_order_of_acceptance_is_the_order_of_turns() {
    check(
        "say 1; say 2; say 3; ready; finished; ready; finished; ready; finished",
        expect![[r#"
            say 1      queued m1, turn 1 of m1, attempt 1.1         start 1.1 m1
            say 2      queued m2                                    start 1.1 m1
            say 3      queued m3                                    start 1.1 m1
            ready      handed 1.1                                   work 1.1 m1
            finished   turn 1 answered, turn 2 of m2, attempt 2.1   start 2.1 m2
            ready      handed 2.1                                   work 2.1 m2
            finished   turn 2 answered, turn 3 of m3, attempt 3.1   start 3.1 m3
            ready      handed 3.1                                   work 3.1 m3
            finished   turn 3 answered                              nothing
        "#]],
    );
}

#[test]
fn a_late_finish_cannot_end_the_next_turn() {
    check(
        "say 1; say 2; ready; finished; finished of 1.1; ready of 1.1; ready; finished of 1.1",
        expect![[r#"
            say 1             queued m1, turn 1 of m1, attempt 1.1         start 1.1 m1
            say 2             queued m2                                    start 1.1 m1
            ready             handed 1.1                                   work 1.1 m1
            finished          turn 1 answered, turn 2 of m2, attempt 2.1   start 2.1 m2
            finished of 1.1   stale finished of 1.1                        start 2.1 m2
            ready of 1.1      stale ready of 1.1                           start 2.1 m2
            ready             handed 2.1                                   work 2.1 m2
            finished of 1.1                                                work 2.1 m2
        "#]],
    );
}

#[test]
fn a_person_may_put_the_waiting_messages_into_another_order() {
    check(
        "say 1; say 2; say 3; reorder 3 2; ready; finished; ready; finished",
        expect![[r#"
            say 1         queued m1, turn 1 of m1, attempt 1.1         start 1.1 m1
            say 2         queued m2                                    start 1.1 m1
            say 3         queued m3                                    start 1.1 m1
            reorder 3 2   reordered m3 m2                              start 1.1 m1
            ready         handed 1.1                                   work 1.1 m1
            finished      turn 1 answered, turn 2 of m3, attempt 2.1   start 2.1 m3
            ready         handed 2.1                                   work 2.1 m3
            finished      turn 2 answered, turn 3 of m2, attempt 3.1   start 3.1 m2
        "#]],
    );
}

#[test]
fn an_order_must_name_each_waiting_message_once() {
    check(
        "say 1; say 2; say 3; reorder 3; reorder 3 3; reorder 3 2 4; reorder 1 2 3; reorder; reorder 2 3",
        expect![[r#"
            say 1           queued m1, turn 1 of m1, attempt 1.1   start 1.1 m1
            say 2           queued m2                              start 1.1 m1
            say 3           queued m3                              start 1.1 m1
            reorder 3       no: changed in between                 start 1.1 m1
            reorder 3 3     no: changed in between                 start 1.1 m1
            reorder 3 2 4   no: changed in between                 start 1.1 m1
            reorder 1 2 3   no: changed in between                 start 1.1 m1
            reorder         no: changed in between                 start 1.1 m1
            reorder 2 3     reordered m2 m3                        start 1.1 m1
        "#]],
    );
}

#[test]
fn the_first_command_opens_and_nothing_else_comes_before_it() {
    check(
        "say 1; end; reorder; wake; open; open",
        expect![[r#"
            say 1     no: not open       nothing
            end       no: not open       nothing
            reorder   no: not open       nothing
            wake                         nothing
            open      opened             nothing
            open      no: already open   nothing
        "#]],
    );
}

// Stopping (LESSONS 2.6, 2.7).

#[test]
fn stopping_twice_is_fine() {
    check(
        "say 1; ready; stop 1; stop 1; stopped; stop 1",
        expect![[r#"
            say 1     queued m1, turn 1 of m1, attempt 1.1   start 1.1 m1
            ready     handed 1.1                             work 1.1 m1
            stop 1    stop turn 1 (asked)                    stop 1.1 m1
            stop 1                                           stop 1.1 m1
            stopped   turn 1 stopped                         nothing
            stop 1                                           nothing
        "#]],
    );
}

#[test]
fn stopping_one_turn_never_touches_the_next() {
    check(
        "say 1; say 2; ready; finished; stop 1; ready; stop 1; stopped of 1.1; finished",
        expect![[r#"
            say 1            queued m1, turn 1 of m1, attempt 1.1         start 1.1 m1
            say 2            queued m2                                    start 1.1 m1
            ready            handed 1.1                                   work 1.1 m1
            finished         turn 1 answered, turn 2 of m2, attempt 2.1   start 2.1 m2
            stop 1                                                        start 2.1 m2
            ready            handed 2.1                                   work 2.1 m2
            stop 1                                                        work 2.1 m2
            stopped of 1.1   stale stopped of 1.1                         work 2.1 m2
            finished         turn 2 answered                              nothing
        "#]],
    );
}

#[test]
fn stopping_a_waiting_message_withdraws_it() {
    check(
        "say 1; say 2; stop 2; hold 2; ready; finished",
        expect![[r#"
            say 1      queued m1, turn 1 of m1, attempt 1.1   start 1.1 m1
            say 2      queued m2                              start 1.1 m1
            stop 2     withdrawn m2                           start 1.1 m1
            hold 2     no: too late                           start 1.1 m1
            ready      handed 1.1                             work 1.1 m1
            finished   turn 1 answered                        nothing
        "#]],
    );
}

#[test]
fn stopping_a_turn_that_rests_ends_it_at_once() {
    check(
        "say 1; failed transient; stop 1; wake +10",
        expect![[r#"
            say 1              queued m1, turn 1 of m1, attempt 1.1          start 1.1 m1
            failed transient   attempt 1.1 failed (transient), again at 10   nothing until 10
            stop 1             turn 1 stopped                                nothing
            wake +10                                                         nothing
        "#]],
    );
}

#[test]
fn a_stop_that_comes_too_late_does_not_take_the_answer_away() {
    check(
        "say 1; ready; stop 1; finished",
        expect![[r#"
            say 1      queued m1, turn 1 of m1, attempt 1.1   start 1.1 m1
            ready      handed 1.1                             work 1.1 m1
            stop 1     stop turn 1 (asked)                    stop 1.1 m1
            finished   turn 1 answered                        nothing
        "#]],
    );
}

#[test]
fn a_turn_stopped_before_it_was_handed_over_cannot_be_answered() {
    check(
        "say 1; stop 1; finished as n1",
        expect![[r#"
            say 1            queued m1, turn 1 of m1, attempt 1.1   start 1.1 m1
            stop 1           stop turn 1 (asked)                    stop 1.1 m1
            finished as n1   turn 1 stopped                         nothing
        "#]],
    );
}

#[test]
fn whatever_a_stopped_turn_dies_of_it_was_stopped() {
    check(
        "say 1; say 2; say 3; ready as n1; stop 1; failed gone; ready; stop 2; lost; ready; stop 3; failed transient",
        expect![[r#"
            say 1              queued m1, turn 1 of m1, attempt 1.1        start 1.1 m1
            say 2              queued m2                                   start 1.1 m1
            say 3              queued m3                                   start 1.1 m1
            ready as n1        confirmed n1, handed 1.1                    work 1.1 m1 as n1
            stop 1             stop turn 1 (asked)                         stop 1.1 m1 as n1
            failed gone        turn 1 stopped, turn 2 of m2, attempt 2.1   start 2.1 m2 as n1
            ready              handed 2.1                                  work 2.1 m2 as n1
            stop 2             stop turn 2 (asked)                         stop 2.1 m2 as n1
            lost               turn 2 stopped, turn 3 of m3, attempt 3.1   start 3.1 m3 as n1
            ready              handed 3.1                                  work 3.1 m3 as n1
            stop 3             stop turn 3 (asked)                         stop 3.1 m3 as n1
            failed transient   turn 3 stopped                              nothing
        "#]],
    );
}

// Stale reports (law 5).

#[test]
fn stale_reports_are_recorded_once_per_attempt_and_kind_and_never_applied() {
    check(
        "say 1; failed transient; ready of 1.1; ready of 1.1; lost of 1.1; wake; ready of 1.1; finished of 1.1; ready; \
         asks 1 of 1.1; failed gone of 1.1; finished of 7.7",
        expect![[r#"
            say 1                queued m1, turn 1 of m1, attempt 1.1          start 1.1 m1
            failed transient     attempt 1.1 failed (transient), again at 10   nothing until 10
            ready of 1.1         stale ready of 1.1                            nothing until 10
            ready of 1.1                                                       nothing until 10
            lost of 1.1          stale lost of 1.1                             nothing until 10
            wake                 attempt 1.2                                   start 1.2 m1
            ready of 1.1                                                       start 1.2 m1
            finished of 1.1      stale finished of 1.1                         start 1.2 m1
            ready                handed 1.2                                    work 1.2 m1
            asks 1 of 1.1        stale asked of 1.1                            work 1.2 m1
            failed gone of 1.1   stale failed of 1.1                           work 1.2 m1
            finished of 7.7      stale finished of 7.7                         work 1.2 m1
        "#]],
    );
}

#[test]
fn a_report_of_another_term_is_stale_even_if_turn_and_attempt_fit() {
    check(
        "say 1; ready of 1.1 term 2; ready; finished of 1.1 term 0; finished",
        expect![[r#"
            say 1                    queued m1, turn 1 of m1, attempt 1.1   start 1.1 m1
            ready of 1.1 term 2      stale ready of 1.1 term 2              start 1.1 m1
            ready                    handed 1.1                             work 1.1 m1
            finished of 1.1 term 0   stale finished of 1.1 term 0           work 1.1 m1
            finished                 turn 1 answered                        nothing
        "#]],
    );
}

#[test]
fn of_an_earlier_keepers_attempt_only_its_loss_is_heard() {
    check(
        "say 1; crash; ready as n1 of 1.1; failed gone of 1.1; finished of 1.1; lost of 1.1; wake; ready; finished",
        expect![[r#"
            say 1                queued m1, turn 1 of m1, attempt 1.1          start 1.1 m1
            crash                                                              bury 1.1
            ready as n1 of 1.1   stale ready of 1.1                            bury 1.1
            failed gone of 1.1   stale failed of 1.1                           bury 1.1
            finished of 1.1      stale finished of 1.1                         bury 1.1
            lost of 1.1          attempt 1.1 failed (transient), again at 10   nothing until 10
            wake                 attempt 1.2 term 2                            start 1.2 term 2 m1
            ready                handed 1.2                                    work 1.2 term 2 m1
            finished             turn 1 answered                               nothing
        "#]],
    );
}

#[test]
fn stale_reports_to_an_ended_session_are_recorded_once_and_change_nothing() {
    check(
        "say 1; ready; end; stopped; finished; finished; ready",
        expect![[r#"
            say 1      queued m1, turn 1 of m1, attempt 1.1      start 1.1 m1
            ready      handed 1.1                                work 1.1 m1
            end        to end, stop turn 1 (session is ending)   stop 1.1 m1
            stopped    turn 1 stopped, ended (asked)             nothing
            finished   stale finished of 1.1                     nothing
            finished                                             nothing
            ready      stale ready of 1.1                        nothing
        "#]],
    );
}

#[test]
fn stale_reports_are_recorded_once_even_when_the_first_ones_are_forgotten() {
    let mut world = World::after("say 1; ready; finished");
    let mut recorded = 0;
    for _ in 0..3 {
        for attempt in 1..=20 {
            for report in ["ready", "lost", "finished"] {
                // A second record of the same report would break a promise of the ledger.
                let told = world.tell(&step(&format!("{report} of 7.{attempt}"))).unwrap();
                recorded += usize::from(told != Told::Facts(vec![]));
            }
        }
    }
    assert_eq!(recorded, 60);
}

// The point of no return (law 13).

#[test]
fn a_message_is_handed_over_once() {
    check(
        "say 1; ready; ready; ready as n1; finished; ready",
        expect![[r#"
            say 1         queued m1, turn 1 of m1, attempt 1.1   start 1.1 m1
            ready         handed 1.1                             work 1.1 m1
            ready                                                work 1.1 m1
            ready as n1                                          work 1.1 m1
            finished      turn 1 answered                        nothing
            ready         stale ready of 1.1                     nothing
        "#]],
    );
}

#[test]
fn nothing_is_handed_over_after_a_stop() {
    check(
        "say 1; stop 1; ready; stopped",
        expect![[r#"
            say 1     queued m1, turn 1 of m1, attempt 1.1   start 1.1 m1
            stop 1    stop turn 1 (asked)                    stop 1.1 m1
            ready                                            stop 1.1 m1
            stopped   turn 1 stopped                         nothing
        "#]],
    );
}

#[test]
fn a_failure_before_it_was_handed_over_is_tried_again_with_growing_rests_and_then_fails() {
    check(
        "say 1; failed transient; wake +9; wake +1; failed busy; wake +10; wake +20; failed transient",
        expect![[r#"
            say 1              queued m1, turn 1 of m1, attempt 1.1          start 1.1 m1
            failed transient   attempt 1.1 failed (transient), again at 10   nothing until 10
            wake +9                                                          nothing until 10
            wake +1            attempt 1.2                                   start 1.2 m1
            failed busy        attempt 1.2 failed (busy), again at 40        nothing until 40
            wake +10                                                         nothing until 40
            wake +20           attempt 1.3                                   start 1.3 m1
            failed transient   turn 1 failed (transient)                     nothing
        "#]],
    );
}

#[test]
fn a_crash_before_it_was_handed_over_is_tried_again() {
    check(
        "say 1; crash; lost; wake; ready; finished",
        expect![[r#"
            say 1      queued m1, turn 1 of m1, attempt 1.1          start 1.1 m1
            crash                                                    bury 1.1
            lost       attempt 1.1 failed (transient), again at 10   nothing until 10
            wake       attempt 1.2 term 2                            start 1.2 term 2 m1
            ready      handed 1.2                                    work 1.2 term 2 m1
            finished   turn 1 answered                               nothing
        "#]],
    );
}

#[test]
fn crashes_before_it_was_handed_over_are_bounded_too() {
    check(
        "say 1; crash; lost; wake; crash; lost; wake; crash; lost",
        expect![[r#"
            say 1   queued m1, turn 1 of m1, attempt 1.1          start 1.1 m1
            crash                                                 bury 1.1
            lost    attempt 1.1 failed (transient), again at 10   nothing until 10
            wake    attempt 1.2 term 2                            start 1.2 term 2 m1
            crash                                                 bury 1.2 term 2
            lost    attempt 1.2 failed (transient), again at 40   nothing until 40
            wake    attempt 1.3 term 3                            start 1.3 term 3 m1
            crash                                                 bury 1.3 term 3
            lost    turn 1 failed (transient)                     nothing
        "#]],
    );
}

#[test]
fn a_crash_after_it_was_handed_over_interrupts_and_never_runs_it_again() {
    check(
        "say 1; ready as n1; crash; ready; lost; lost; wake",
        expect![[r#"
            say 1         queued m1, turn 1 of m1, attempt 1.1   start 1.1 m1
            ready as n1   confirmed n1, handed 1.1               work 1.1 m1 as n1
            crash                                                bury 1.1
            ready         stale ready of 1.1                     bury 1.1
            lost          turn 1 interrupted                     nothing
            lost          stale lost of 1.1                      nothing
            wake                                                 nothing
        "#]],
    );
}

#[test]
fn a_failure_after_it_was_handed_over_is_not_tried_again() {
    check(
        "say 1; ready; failed transient; wake +100",
        expect![[r#"
            say 1              queued m1, turn 1 of m1, attempt 1.1   start 1.1 m1
            ready              handed 1.1                             work 1.1 m1
            failed transient   turn 1 failed (transient)              nothing
            wake +100                                                 nothing
        "#]],
    );
}

#[test]
fn what_was_never_handed_over_cannot_have_finished() {
    check(
        "say 1; finished as n1; wake; ready; finished",
        expect![[r#"
            say 1            queued m1, turn 1 of m1, attempt 1.1          start 1.1 m1
            finished as n1   attempt 1.1 failed (transient), again at 10   nothing until 10
            wake             attempt 1.2                                   start 1.2 m1
            ready            handed 1.2                                    work 1.2 m1
            finished         turn 1 answered                               nothing
        "#]],
    );
}

// Takeover (law 14).

#[test]
fn a_new_keeper_buries_before_it_starts_anything() {
    check(
        "say 1; say 2; ready; crash; say 3; stop 3; wake +5; lost; ready; finished",
        expect![[r#"
            say 1      queued m1, turn 1 of m1, attempt 1.1                   start 1.1 m1
            say 2      queued m2                                              start 1.1 m1
            ready      handed 1.1                                             work 1.1 m1
            crash                                                             bury 1.1
            say 3      queued m3                                              bury 1.1
            stop 3     withdrawn m3                                           bury 1.1
            wake +5                                                           bury 1.1
            lost       turn 1 interrupted, turn 2 of m2, attempt 2.1 term 2   start 2.1 term 2 m2
            ready      handed 2.1                                             work 2.1 term 2 m2
            finished   turn 2 answered                                        nothing
        "#]],
    );
}

#[test]
fn a_stop_survives_the_keeper() {
    check(
        "say 1; say 2; ready; stop 1; crash; lost; ready",
        expect![[r#"
            say 1    queued m1, turn 1 of m1, attempt 1.1               start 1.1 m1
            say 2    queued m2                                          start 1.1 m1
            ready    handed 1.1                                         work 1.1 m1
            stop 1   stop turn 1 (asked)                                stop 1.1 m1
            crash                                                       bury 1.1
            lost     turn 1 stopped, turn 2 of m2, attempt 2.1 term 2   start 2.1 term 2 m2
            ready    handed 2.1                                         work 2.1 term 2 m2
        "#]],
    );
}

#[test]
fn a_turn_that_rests_goes_on_under_the_next_keeper() {
    check(
        "say 1; failed transient; crash; wake; ready; finished",
        expect![[r#"
            say 1              queued m1, turn 1 of m1, attempt 1.1          start 1.1 m1
            failed transient   attempt 1.1 failed (transient), again at 10   nothing until 10
            crash                                                            nothing until 10
            wake               attempt 1.2 term 2                            start 1.2 term 2 m1
            ready              handed 1.2                                    work 1.2 term 2 m1
            finished           turn 1 answered                               nothing
        "#]],
    );
}

// Failures by remedy (law 7).

#[test]
fn gone_ends_the_session_frees_the_slot_and_refuses_what_waits() {
    check(
        "say 1; say 2; say 3; hold 3; ready as n1; failed gone; say 4",
        expect![[r#"
            say 1         queued m1, turn 1 of m1, attempt 1.1                                                         start 1.1 m1
            say 2         queued m2                                                                                    start 1.1 m1
            say 3         queued m3                                                                                    start 1.1 m1
            hold 3        held m3 (asked, until 5000)                                                                  start 1.1 m1
            ready as n1   confirmed n1, handed 1.1                                                                     work 1.1 m1 as n1
            failed gone   turn 1 failed (gone), refused m2 (session ended), refused m3 (session ended), ended (gone)   nothing
            say 4         refused m4 (session ended)                                                                   nothing
        "#]],
    );
}

#[test]
fn what_an_agent_that_loses_conversations_no_longer_knows_is_begun_anew_and_told_again() {
    check(
        "the agent forgets; say 1; ready as n1; finished; say 2; failed gone; wake; ready as n2; finished; \
         say 3; ready; failed gone; say 4",
        expect![[r#"
            the agent forgets                                            nothing
            say 1               queued m1, turn 1 of m1, attempt 1.1     start 1.1 m1
            ready as n1         confirmed n1, handed 1.1                 work 1.1 m1 as n1
            finished            turn 1 answered                          nothing
            say 2               queued m2, turn 2 of m2, attempt 2.1     start 2.1 m2 as n1
            failed gone         attempt 2.1 failed (gone), again at 10   nothing until 10
            wake                attempt 2.2                              start 2.2 m2 told again
            ready as n2         confirmed n2, handed 2.2                 work 2.2 m2 as n2
            finished            turn 2 answered                          nothing
            say 3               queued m3, turn 3 of m3, attempt 3.1     start 3.1 m3 as n2
            ready               handed 3.1                               work 3.1 m3 as n2
            failed gone         turn 3 failed (gone)                     nothing
            say 4               queued m4, turn 4 of m4, attempt 4.1     start 4.1 m4 told again
        "#]],
    );
}

#[test]
fn gone_before_the_message_was_handed_over_ends_the_session_too() {
    check(
        "say 1; ready as n1; finished; say 2; failed gone",
        expect![[r#"
            say 1         queued m1, turn 1 of m1, attempt 1.1   start 1.1 m1
            ready as n1   confirmed n1, handed 1.1               work 1.1 m1 as n1
            finished      turn 1 answered                        nothing
            say 2         queued m2, turn 2 of m2, attempt 2.1   start 2.1 m2 as n1
            failed gone   turn 2 failed (gone), ended (gone)     nothing
        "#]],
    );
}

#[test]
fn a_conversation_that_was_never_proven_is_begun_anew_and_one_that_was_is_not() {
    check(
        "say 1; ready as n1; lost; say 2; failed gone; wake; ready as n2; finished as n2; say 3; failed gone",
        expect![[r#"
            say 1            queued m1, turn 1 of m1, attempt 1.1     start 1.1 m1
            ready as n1      confirmed n1, handed 1.1                 work 1.1 m1 as n1
            lost             turn 1 interrupted                       nothing
            say 2            queued m2, turn 2 of m2, attempt 2.1     start 2.1 m2 as n1
            failed gone      attempt 2.1 failed (gone), again at 10   nothing until 10
            wake             attempt 2.2                              start 2.2 m2
            ready as n2      confirmed n2, handed 2.2                 work 2.2 m2 as n2
            finished as n2   turn 2 answered                          nothing
            say 3            queued m3, turn 3 of m3, attempt 3.1     start 3.1 m3 as n2
            failed gone      turn 3 failed (gone), ended (gone)       nothing
        "#]],
    );
}

#[test]
fn an_unproven_conversation_that_is_still_there_is_gone_on_with() {
    check(
        "say 1; ready as n1; stop 1; stopped; say 2; ready as n1; finished as n1; say 3; failed gone",
        expect![[r#"
            say 1            queued m1, turn 1 of m1, attempt 1.1   start 1.1 m1
            ready as n1      confirmed n1, handed 1.1               work 1.1 m1 as n1
            stop 1           stop turn 1 (asked)                    stop 1.1 m1 as n1
            stopped          turn 1 stopped                         nothing
            say 2            queued m2, turn 2 of m2, attempt 2.1   start 2.1 m2 as n1
            ready as n1      handed 2.1                             work 2.1 m2 as n1
            finished as n1   turn 2 answered                        nothing
            say 3            queued m3, turn 3 of m3, attempt 3.1   start 3.1 m3 as n1
            failed gone      turn 3 failed (gone), ended (gone)     nothing
        "#]],
    );
}

#[test]
fn a_name_that_comes_with_an_answer_is_proven_by_it() {
    check(
        "say 1; ready as n1; finished as n2; say 2; failed gone",
        expect![[r#"
        say 1            queued m1, turn 1 of m1, attempt 1.1   start 1.1 m1
        ready as n1      confirmed n1, handed 1.1               work 1.1 m1 as n1
        finished as n2   confirmed n2, turn 1 answered          nothing
        say 2            queued m2, turn 2 of m2, attempt 2.1   start 2.1 m2 as n2
        failed gone      turn 2 failed (gone), ended (gone)     nothing
    "#]],
    );
}

#[test]
fn where_no_attempt_is_left_the_next_turn_begins_the_new_conversation() {
    check(
        "say 1; ready as n1; lost; say 2; failed busy; wake; failed busy; wake; failed gone; say 3; ready as n2; finished",
        expect![[r#"
            say 1         queued m1, turn 1 of m1, attempt 1.1     start 1.1 m1
            ready as n1   confirmed n1, handed 1.1                 work 1.1 m1 as n1
            lost          turn 1 interrupted                       nothing
            say 2         queued m2, turn 2 of m2, attempt 2.1     start 2.1 m2 as n1
            failed busy   attempt 2.1 failed (busy), again at 10   nothing until 10
            wake          attempt 2.2                              start 2.2 m2 as n1
            failed busy   attempt 2.2 failed (busy), again at 40   nothing until 40
            wake          attempt 2.3                              start 2.3 m2 as n1
            failed gone   turn 2 failed (gone)                     nothing
            say 3         queued m3, turn 3 of m3, attempt 3.1     start 3.1 m3
            ready as n2   confirmed n2, handed 3.1                 work 3.1 m3 as n2
            finished      turn 3 answered                          nothing
        "#]],
    );
}

#[test]
fn the_next_keeper_knows_which_conversation_was_given_up() {
    check(
        "say 1; ready as n1; crash; lost; say 2; failed gone; crash; wake; failed gone; wake; ready as n2; lost",
        expect![[r#"
            say 1         queued m1, turn 1 of m1, attempt 1.1          start 1.1 m1
            ready as n1   confirmed n1, handed 1.1                      work 1.1 m1 as n1
            crash                                                       bury 1.1
            lost          turn 1 interrupted                            nothing
            say 2         queued m2, turn 2 of m2, attempt 2.1 term 2   start 2.1 term 2 m2 as n1
            failed gone   attempt 2.1 failed (gone), again at 10        nothing until 10
            crash                                                       nothing until 10
            wake          attempt 2.2 term 3                            start 2.2 term 3 m2
            failed gone   attempt 2.2 failed (transient), again at 40   nothing until 40
            wake          attempt 2.3 term 3                            start 2.3 term 3 m2
            ready as n2   confirmed n2, handed 2.3                      work 2.3 term 3 m2 as n2
            lost          turn 2 interrupted                            nothing
        "#]],
    );
}

#[test]
fn gone_after_the_message_was_handed_over_ends_the_session_without_proof_too() {
    check(
        "say 1; ready as n1; lost; say 2; ready; failed gone",
        expect![[r#"
        say 1         queued m1, turn 1 of m1, attempt 1.1   start 1.1 m1
        ready as n1   confirmed n1, handed 1.1               work 1.1 m1 as n1
        lost          turn 1 interrupted                     nothing
        say 2         queued m2, turn 2 of m2, attempt 2.1   start 2.1 m2 as n1
        ready         handed 2.1                             work 2.1 m2 as n1
        failed gone   turn 2 failed (gone), ended (gone)     nothing
    "#]],
    );
}

/// Before proof was asked for, checkpoints said of every idle session that its last turn was answered.
#[test]
fn a_name_in_an_old_checkpoint_is_proven() {
    let mut world = World::open();
    let native = Native::new("n1");
    let old = [
        Fact::Confirmed { native, epoch: Epoch(0) },
        Fact::TurnEnded { turn: Turn(4), outcome: Outcome::Answered },
    ];
    old.iter().for_each(|fact| world.session.evolve(fact));
    let say = Command::Say {
        message: MessageId::from_bits(1),
        by: PersonId::from_bits(1),
        delivery: Delivery::Queue,
        under: None,
    };
    let mut tell = |command| {
        let facts = world.session.decide(command, &world.given).expect("an open session takes it");
        facts.iter().for_each(|fact| world.session.evolve(fact));
    };
    tell(say);
    let fence = Fence { term: Term(1), epoch: Epoch(0), turn: Turn(5), attempt: Attempt(1) };
    tell(Command::Report { fence, report: Report::Failed(Failure::Gone) });
    assert_eq!(world.session.ended(), Some(EndWhy::Gone));
}

#[test]
fn gone_without_a_confirmed_name_is_transient() {
    check(
        "say 1; failed gone; wake; ready; failed gone; say 2",
        expect![[r#"
            say 1         queued m1, turn 1 of m1, attempt 1.1          start 1.1 m1
            failed gone   attempt 1.1 failed (transient), again at 10   nothing until 10
            wake          attempt 1.2                                   start 1.2 m1
            ready         handed 1.2                                    work 1.2 m1
            failed gone   turn 1 failed (transient)                     nothing
            say 2         queued m2, turn 2 of m2, attempt 2.1          start 2.1 m2
        "#]],
    );
}

#[test]
fn busy_is_tried_again_and_later_fails() {
    check(
        "say 1; failed busy; wake; failed busy; wake; failed busy",
        expect![[r#"
            say 1         queued m1, turn 1 of m1, attempt 1.1     start 1.1 m1
            failed busy   attempt 1.1 failed (busy), again at 10   nothing until 10
            wake          attempt 1.2                              start 1.2 m1
            failed busy   attempt 1.2 failed (busy), again at 40   nothing until 40
            wake          attempt 1.3                              start 1.3 m1
            failed busy   turn 1 failed (busy)                     nothing
        "#]],
    );
}

#[test]
fn refused_is_not_tried_again() {
    check(
        "say 1; say 2; failed refused; wake +100",
        expect![[r#"
            say 1            queued m1, turn 1 of m1, attempt 1.1                           start 1.1 m1
            say 2            queued m2                                                      start 1.1 m1
            failed refused   turn 1 failed (refused), held m2 (after failure, until 5000)   nothing until 5000
            wake +100                                                                       nothing until 5000
        "#]],
    );
}

// After a bad turn.

#[test]
fn after_a_failed_turn_what_waits_is_held_until_released() {
    check(
        "say 1; say 2; say 3; ready; failed transient; release 3; ready; finished; release 2",
        expect![[r#"
            say 1              queued m1, turn 1 of m1, attempt 1.1                                                                  start 1.1 m1
            say 2              queued m2                                                                                             start 1.1 m1
            say 3              queued m3                                                                                             start 1.1 m1
            ready              handed 1.1                                                                                            work 1.1 m1
            failed transient   turn 1 failed (transient), held m2 (after failure, until 5000), held m3 (after failure, until 5000)   nothing until 5000
            release 3          released m3, turn 2 of m3, attempt 2.1                                                                start 2.1 m3
            ready              handed 2.1                                                                                            work 2.1 m3
            finished           turn 2 answered                                                                                       nothing until 5000
            release 2          released m2, turn 3 of m2, attempt 3.1                                                                start 3.1 m2
        "#]],
    );
}

#[test]
fn what_is_said_after_a_failed_turn_goes_on() {
    check(
        "say 1; say 2; ready; failed transient; say 3",
        expect![[r#"
            say 1              queued m1, turn 1 of m1, attempt 1.1                             start 1.1 m1
            say 2              queued m2                                                        start 1.1 m1
            ready              handed 1.1                                                       work 1.1 m1
            failed transient   turn 1 failed (transient), held m2 (after failure, until 5000)   nothing until 5000
            say 3              queued m3, turn 2 of m3, attempt 2.1                             start 2.1 m3
        "#]],
    );
}

#[test]
fn where_the_policy_says_so_what_waits_goes_on_after_a_failure() {
    check(
        "policy go on; say 1; say 2; ready; failed transient",
        expect![[r#"
            policy go on                                                              nothing
            say 1              queued m1, turn 1 of m1, attempt 1.1                   start 1.1 m1
            say 2              queued m2                                              start 1.1 m1
            ready              handed 1.1                                             work 1.1 m1
            failed transient   turn 1 failed (transient), turn 2 of m2, attempt 2.1   start 2.1 m2
        "#]],
    );
}

#[test]
fn after_a_stopped_turn_what_waits_goes_on() {
    check(
        "say 1; say 2; ready; stop 1; stopped",
        expect![[r#"
            say 1     queued m1, turn 1 of m1, attempt 1.1        start 1.1 m1
            say 2     queued m2                                   start 1.1 m1
            ready     handed 1.1                                  work 1.1 m1
            stop 1    stop turn 1 (asked)                         stop 1.1 m1
            stopped   turn 1 stopped, turn 2 of m2, attempt 2.1   start 2.1 m2
        "#]],
    );
}

#[test]
fn after_an_interrupted_turn_what_waits_goes_on() {
    check(
        "say 1; say 2; ready; crash; lost",
        expect![[r#"
            say 1   queued m1, turn 1 of m1, attempt 1.1                   start 1.1 m1
            say 2   queued m2                                              start 1.1 m1
            ready   handed 1.1                                             work 1.1 m1
            crash                                                          bury 1.1
            lost    turn 1 interrupted, turn 2 of m2, attempt 2.1 term 2   start 2.1 term 2 m2
        "#]],
    );
}

#[test]
fn held_messages_expire_as_refused() {
    check(
        "say 1; say 2; hold 2; ready; wake +100; say 3; hold 3; finished; wake; release 2; wake",
        expect![[r#"
            say 1       queued m1, turn 1 of m1, attempt 1.1   start 1.1 m1
            say 2       queued m2                              start 1.1 m1
            hold 2      held m2 (asked, until 5000)            start 1.1 m1
            ready       handed 1.1                             work 1.1 m1
            wake +100                                          work 1.1 m1
            say 3       queued m3                              work 1.1 m1
            hold 3      held m3 (asked, until 5100)            work 1.1 m1
            finished    turn 1 answered                        nothing until 5000
            wake        refused m2 (expired)                   nothing until 5100
            release 2   no: too late                           nothing until 5100
            wake        refused m3 (expired)                   nothing
        "#]],
    );
}

// Tending the queue.

#[test]
fn a_held_message_is_passed_over_until_it_is_released() {
    check(
        "say 1; say 2; say 3; hold 2; hold 2; ready; finished; release 2; release 2; ready; finished",
        expect![[r#"
            say 1       queued m1, turn 1 of m1, attempt 1.1         start 1.1 m1
            say 2       queued m2                                    start 1.1 m1
            say 3       queued m3                                    start 1.1 m1
            hold 2      held m2 (asked, until 5000)                  start 1.1 m1
            hold 2                                                   start 1.1 m1
            ready       handed 1.1                                   work 1.1 m1
            finished    turn 1 answered, turn 2 of m3, attempt 2.1   start 2.1 m3
            release 2   released m2                                  start 2.1 m3
            release 2                                                start 2.1 m3
            ready       handed 2.1                                   work 2.1 m3
            finished    turn 2 answered, turn 3 of m2, attempt 3.1   start 3.1 m2
        "#]],
    );
}

#[test]
fn an_edit_must_have_seen_the_latest_words() {
    check(
        "say 1; say 2; edit 2 seen 0; edit 2 seen 0; edit 2 seen 1; edit 2 seen 7",
        expect![[r#"
            say 1           queued m1, turn 1 of m1, attempt 1.1   start 1.1 m1
            say 2           queued m2                              start 1.1 m1
            edit 2 seen 0   edited m2 to revision 1                start 1.1 m1
            edit 2 seen 0   no: changed in between                 start 1.1 m1
            edit 2 seen 1   edited m2 to revision 2                start 1.1 m1
            edit 2 seen 7   no: changed in between                 start 1.1 m1
        "#]],
    );
}

#[test]
fn what_has_started_can_no_longer_be_changed() {
    check(
        "say 1; edit 1 seen 0; withdraw 1; hold 1; release 1; ready; finished; edit 1 seen 0; withdraw 1; revoke 1",
        expect![[r#"
            say 1           queued m1, turn 1 of m1, attempt 1.1   start 1.1 m1
            edit 1 seen 0   no: too late                           start 1.1 m1
            withdraw 1      no: too late                           start 1.1 m1
            hold 1          no: too late                           start 1.1 m1
            release 1       no: too late                           start 1.1 m1
            ready           handed 1.1                             work 1.1 m1
            finished        turn 1 answered                        nothing
            edit 1 seen 0   no: too late                           nothing
            withdraw 1      no: too late                           nothing
            revoke 1        no: too late                           nothing
        "#]],
    );
}

#[test]
fn what_was_withdrawn_stays_withdrawn() {
    check(
        "say 1; say 2; withdraw 2; withdraw 2; edit 2 seen 0; stop 2; ready; finished",
        expect![[r#"
            say 1           queued m1, turn 1 of m1, attempt 1.1   start 1.1 m1
            say 2           queued m2                              start 1.1 m1
            withdraw 2      withdrawn m2                           start 1.1 m1
            withdraw 2      no: too late                           start 1.1 m1
            edit 2 seen 0   no: too late                           start 1.1 m1
            stop 2                                                 start 1.1 m1
            ready           handed 1.1                             work 1.1 m1
            finished        turn 1 answered                        nothing
        "#]],
    );
}

#[test]
fn a_message_whose_sender_lost_the_right_is_refused() {
    check(
        "no slot; say 1 by 2; say 2; a slot; revoke 1; revoke 1",
        expect![[r#"
            no slot                                                            nothing
            say 1 by 2   queued m1, crowded until 50                           nothing until 50
            say 2        queued m2                                             nothing until 50
            a slot                                                             nothing until 50
            revoke 1     refused m1 (not allowed), turn 1 of m2, attempt 1.1   start 1.1 m2
            revoke 1     no: too late                                          start 1.1 m2
        "#]],
    );
}

#[test]
fn a_session_that_is_handed_over_ends_what_waits_and_what_runs_whoever_said_it() {
    check(
        "say 1 by 2; ready; asks; say 2; say 3 by 2; hold 3; hand over; answer 1 yes; stopped; say 4 by 2; hand over",
        expect![[r#"
            say 1 by 2     queued m1, turn 1 of m1, attempt 1.1                                            start 1.1 m1
            ready          handed 1.1                                                                      work 1.1 m1
            asks           asked a1 until 200                                                              work 1.1 m1
            say 2          queued m2                                                                       work 1.1 m1
            say 3 by 2     queued m3                                                                       work 1.1 m1
            hold 3         held m3 (asked, until 5000)                                                     work 1.1 m1
            hand over      refused m2 (handed over), refused m3 (handed over), stop turn 1 (handed over)   stop 1.1 m1
            answer 1 yes   answered a1 yes                                                                 stop 1.1 m1 a1: yes
            stopped        turn 1 stopped                                                                  nothing
            say 4 by 2     queued m4, turn 2 of m4, attempt 2.1                                            start 2.1 m4
            hand over      stop turn 2 (handed over)                                                       stop 2.1 m4
        "#]],
    );
}

#[test]
fn a_turn_that_rests_is_over_when_its_session_is_handed_over() {
    check(
        "say 1; say 2; failed transient; hand over; wake +5000; hand over",
        expect![[r#"
            say 1              queued m1, turn 1 of m1, attempt 1.1          start 1.1 m1
            say 2              queued m2                                     start 1.1 m1
            failed transient   attempt 1.1 failed (transient), again at 10   nothing until 10
            hand over          refused m2 (handed over), turn 1 stopped      nothing
            wake +5000                                                       nothing
            hand over                                                        nothing
        "#]],
    );
}

#[test]
fn a_turn_whose_sender_lost_the_right_while_it_starts_is_stopped() {
    check(
        "say 1 by 2; say 2; revoke 1; revoke 1; ready; stopped",
        expect![[r#"
        say 1 by 2   queued m1, turn 1 of m1, attempt 1.1        start 1.1 m1
        say 2        queued m2                                   start 1.1 m1
        revoke 1     stop turn 1 (revoked)                       stop 1.1 m1
        revoke 1                                                 stop 1.1 m1
        ready                                                    stop 1.1 m1
        stopped      turn 1 stopped, turn 2 of m2, attempt 2.1   start 2.1 m2
    "#]],
    );
}

#[test]
fn a_turn_whose_sender_lost_the_right_while_it_works_is_stopped() {
    check(
        "say 1 by 2; say 2; ready; asks; revoke 1; answer 1 yes; stopped",
        expect![[r#"
        say 1 by 2     queued m1, turn 1 of m1, attempt 1.1        start 1.1 m1
        say 2          queued m2                                   start 1.1 m1
        ready          handed 1.1                                  work 1.1 m1
        asks           asked a1 until 200                          work 1.1 m1
        revoke 1       stop turn 1 (revoked)                       stop 1.1 m1
        answer 1 yes   answered a1 yes                             stop 1.1 m1 a1: yes
        stopped        turn 1 stopped, turn 2 of m2, attempt 2.1   start 2.1 m2
    "#]],
    );
}

#[test]
fn a_turn_that_is_being_stopped_already_is_stopped_once() {
    check(
        "say 1 by 2; ready; stop 1; revoke 1; wake +1000; revoke 1; lost",
        expect![[r#"
        say 1 by 2   queued m1, turn 1 of m1, attempt 1.1   start 1.1 m1
        ready        handed 1.1                             work 1.1 m1
        stop 1       stop turn 1 (asked)                    stop 1.1 m1
        revoke 1                                            stop 1.1 m1
        wake +1000                                          stop 1.1 m1
        revoke 1                                            stop 1.1 m1
        lost         turn 1 stopped                         nothing
    "#]],
    );
}

#[test]
fn a_turn_that_answers_before_it_can_be_stopped_has_answered() {
    check(
        "say 1 by 2; ready; revoke 1; finished",
        expect![[r#"
        say 1 by 2   queued m1, turn 1 of m1, attempt 1.1   start 1.1 m1
        ready        handed 1.1                             work 1.1 m1
        revoke 1     stop turn 1 (revoked)                  stop 1.1 m1
        finished     turn 1 answered                        nothing
    "#]],
    );
}

#[test]
fn what_an_earlier_keeper_started_for_somebody_without_the_right_is_buried() {
    check(
        "say 1 by 2; ready; crash; revoke 1; lost",
        expect![[r#"
        say 1 by 2   queued m1, turn 1 of m1, attempt 1.1   start 1.1 m1
        ready        handed 1.1                             work 1.1 m1
        crash                                               bury 1.1
        revoke 1     stop turn 1 (revoked)                  bury 1.1
        lost         turn 1 stopped                         nothing
    "#]],
    );
}

#[test]
fn losing_the_right_while_the_session_ends_changes_nothing() {
    check(
        "say 1 by 2; ready; end; revoke 1; stopped; revoke 1",
        expect![[r#"
        say 1 by 2   queued m1, turn 1 of m1, attempt 1.1      start 1.1 m1
        ready        handed 1.1                                work 1.1 m1
        end          to end, stop turn 1 (session is ending)   stop 1.1 m1
        revoke 1                                               stop 1.1 m1
        stopped      turn 1 stopped, ended (asked)             nothing
        revoke 1     no: too late                              nothing
    "#]],
    );
}

// The end (law 8).

#[test]
fn an_idle_session_ends_at_once_and_refuses_what_it_holds() {
    check(
        "say 1; say 2; hold 2; ready; finished; end; end",
        expect![[r#"
            say 1      queued m1, turn 1 of m1, attempt 1.1        start 1.1 m1
            say 2      queued m2                                   start 1.1 m1
            hold 2     held m2 (asked, until 5000)                 start 1.1 m1
            ready      handed 1.1                                  work 1.1 m1
            finished   turn 1 answered                             nothing until 5000
            end        refused m2 (session ended), ended (asked)   nothing
            end                                                    nothing
        "#]],
    );
}

#[test]
fn a_running_session_ends_after_its_turn_and_refuses_what_waits_in_the_same_append() {
    check(
        "say 1; say 2; ready; end; end; say 3; stopped",
        expect![[r#"
            say 1     queued m1, turn 1 of m1, attempt 1.1                        start 1.1 m1
            say 2     queued m2                                                   start 1.1 m1
            ready     handed 1.1                                                  work 1.1 m1
            end       to end, stop turn 1 (session is ending)                     stop 1.1 m1
            end                                                                   stop 1.1 m1
            say 3     refused m3 (session ended)                                  stop 1.1 m1
            stopped   turn 1 stopped, refused m2 (session ended), ended (asked)   nothing
        "#]],
    );
}

#[test]
fn a_session_whose_turn_rests_ends_at_once() {
    check(
        "say 1; say 2; failed transient; end; wake",
        expect![[r#"
            say 1              queued m1, turn 1 of m1, attempt 1.1                                start 1.1 m1
            say 2              queued m2                                                           start 1.1 m1
            failed transient   attempt 1.1 failed (transient), again at 10                         nothing until 10
            end                to end, turn 1 stopped, refused m2 (session ended), ended (asked)   nothing
            wake                                                                                   nothing
        "#]],
    );
}

#[test]
fn an_answer_that_comes_while_the_session_is_ending_counts() {
    check(
        "say 1; ready; end; finished as n1",
        expect![[r#"
            say 1            queued m1, turn 1 of m1, attempt 1.1           start 1.1 m1
            ready            handed 1.1                                     work 1.1 m1
            end              to end, stop turn 1 (session is ending)        stop 1.1 m1
            finished as n1   confirmed n1, turn 1 answered, ended (asked)   nothing
        "#]],
    );
}

#[test]
fn a_session_that_is_ending_ends_under_the_next_keeper() {
    check(
        "say 1; say 2; ready; end; crash; lost",
        expect![[r#"
            say 1   queued m1, turn 1 of m1, attempt 1.1                        start 1.1 m1
            say 2   queued m2                                                   start 1.1 m1
            ready   handed 1.1                                                  work 1.1 m1
            end     to end, stop turn 1 (session is ending)                     stop 1.1 m1
            crash                                                               bury 1.1
            lost    turn 1 stopped, refused m2 (session ended), ended (asked)   nothing
        "#]],
    );
}

#[test]
fn messages_to_an_ended_session_are_refused_for_good() {
    check(
        "end; say 1; say 2; withdraw 1; stop 1",
        expect![[r#"
            end          ended (asked)                nothing
            say 1        refused m1 (session ended)   nothing
            say 2        refused m2 (session ended)   nothing
            withdraw 1   no: too late                 nothing
            stop 1                                    nothing
        "#]],
    );
}

#[test]
fn ended_never_changes() {
    check(
        "say 1; ready; asks 1; end; stopped; end; edit 1 seen 0; hold 1; release 1; reorder; answer 1 yes; stop 1; wake; \
         finished; crash; wake +9999",
        expect![[r#"
            say 1           queued m1, turn 1 of m1, attempt 1.1       start 1.1 m1
            ready           handed 1.1                                 work 1.1 m1
            asks 1          asked a1 until 200                         work 1.1 m1
            end             to end, stop turn 1 (session is ending)    stop 1.1 m1
            stopped         lapsed a1, turn 1 stopped, ended (asked)   nothing
            end                                                        nothing
            edit 1 seen 0   no: too late                               nothing
            hold 1          no: too late                               nothing
            release 1       no: too late                               nothing
            reorder         no: the session has ended                  nothing
            answer 1 yes    no: too late                               nothing
            stop 1                                                     nothing
            wake                                                       nothing
            finished        stale finished of 1.1                      nothing
            crash                                                      nothing
            wake +9999                                                 nothing
        "#]],
    );
}

// Questions of the agent.

#[test]
fn a_question_is_answered_and_the_first_answer_wins() {
    check(
        "say 1; ready; asks 1; answer 1 yes; answer 1 no; finished; answer 1 no",
        expect![[r#"
            say 1          queued m1, turn 1 of m1, attempt 1.1   start 1.1 m1
            ready          handed 1.1                             work 1.1 m1
            asks 1         asked a1 until 200                     work 1.1 m1
            answer 1 yes   answered a1 yes                        work 1.1 m1 a1: yes
            answer 1 no    no: too late                           work 1.1 m1 a1: yes
            finished       turn 1 answered                        nothing
            answer 1 no    no: too late                           nothing
        "#]],
    );
}

#[test]
fn a_question_that_was_answered_cannot_be_asked_again() {
    check(
        "say 1; ready; asks 1; asks 1; answer 1 no; asks 1; answer 1 yes; wake",
        expect![[r#"
            say 1          queued m1, turn 1 of m1, attempt 1.1   start 1.1 m1
            ready          handed 1.1                             work 1.1 m1
            asks 1         asked a1 until 200                     work 1.1 m1
            asks 1                                                work 1.1 m1
            answer 1 no    answered a1 no                         work 1.1 m1 a1: no
            asks 1                                                work 1.1 m1 a1: no
            answer 1 yes   no: too late                           work 1.1 m1 a1: no
            wake           stop turn 1 (time limit)               stop 1.1 m1 a1: no
        "#]],
    );
}

#[test]
fn silence_means_no() {
    check(
        "say 1; ready; asks 1; wake +199; asks 2; wake; answer 1 yes; wake; finished",
        expect![[r#"
            say 1          queued m1, turn 1 of m1, attempt 1.1   start 1.1 m1
            ready          handed 1.1                             work 1.1 m1
            asks 1         asked a1 until 200                     work 1.1 m1
            wake +199                                             work 1.1 m1
            asks 2         asked a2 until 399                     work 1.1 m1
            wake           answered a1 no (nobody answered)       work 1.1 m1 a1: no
            answer 1 yes   no: too late                           work 1.1 m1 a1: no
            wake           answered a2 no (nobody answered)       work 1.1 m1 a1: no a2: no
            finished       turn 1 answered                        nothing
        "#]],
    );
}

#[test]
fn open_questions_lapse_with_their_turn() {
    check(
        "say 1; ready; asks 1; asks 2; answer 2 yes; finished; answer 1 yes; say 2; ready; answer 1 yes",
        expect![[r#"
            say 1          queued m1, turn 1 of m1, attempt 1.1   start 1.1 m1
            ready          handed 1.1                             work 1.1 m1
            asks 1         asked a1 until 200                     work 1.1 m1
            asks 2         asked a2 until 200                     work 1.1 m1
            answer 2 yes   answered a2 yes                        work 1.1 m1 a2: yes
            finished       lapsed a1, turn 1 answered             nothing
            answer 1 yes   no: too late                           nothing
            say 2          queued m2, turn 2 of m2, attempt 2.1   start 2.1 m2
            ready          handed 2.1                             work 2.1 m2
            answer 1 yes   no: too late                           work 2.1 m2
        "#]],
    );
}

#[test]
fn a_question_that_the_agent_takes_back_lapses() {
    check(
        "say; ready; asks; takes back; answer 1 yes; takes back; asks 1; wake; finished",
        expect![[r#"
        say            queued m1, turn 1 of m1, attempt 1.1   start 1.1 m1
        ready          handed 1.1                             work 1.1 m1
        asks           asked a1 until 200                     work 1.1 m1
        takes back     lapsed a1                              work 1.1 m1
        answer 1 yes   no: too late                           work 1.1 m1
        takes back                                            work 1.1 m1
        asks 1                                                work 1.1 m1
        wake           stop turn 1 (time limit)               stop 1.1 m1
        finished       turn 1 answered                        nothing
    "#]],
    );
}

#[test]
fn an_answer_that_came_first_is_not_taken_back() {
    check(
        "say; ready; asks; answer 1 yes; takes back; takes back 1 of 1.1 term 7; finished",
        expect![[r#"
        say                          queued m1, turn 1 of m1, attempt 1.1   start 1.1 m1
        ready                        handed 1.1                             work 1.1 m1
        asks                         asked a1 until 200                     work 1.1 m1
        answer 1 yes                 answered a1 yes                        work 1.1 m1 a1: yes
        takes back                                                          work 1.1 m1 a1: yes
        takes back 1 of 1.1 term 7   stale withdrawn of 1.1 term 7          work 1.1 m1 a1: yes
        finished                     turn 1 answered                        nothing
    "#]],
    );
}

#[test]
fn the_questions_of_an_interrupted_turn_lapse() {
    check(
        "say 1; ready; asks 1; crash; lost; answer 1 yes",
        expect![[r#"
            say 1          queued m1, turn 1 of m1, attempt 1.1   start 1.1 m1
            ready          handed 1.1                             work 1.1 m1
            asks 1         asked a1 until 200                     work 1.1 m1
            crash                                                 bury 1.1
            lost           lapsed a1, turn 1 interrupted          nothing
            answer 1 yes   no: too late                           nothing
        "#]],
    );
}

#[test]
fn only_an_agent_at_work_asks() {
    check(
        "say 1; asks 1; ready; stop 1; asks 2; answer 1 yes; answer 2 yes",
        expect![[r#"
            say 1          queued m1, turn 1 of m1, attempt 1.1   start 1.1 m1
            asks 1                                                start 1.1 m1
            ready          handed 1.1                             work 1.1 m1
            stop 1         stop turn 1 (asked)                    stop 1.1 m1
            asks 2                                                stop 1.1 m1
            answer 1 yes   no: too late                           stop 1.1 m1
            answer 2 yes   no: too late                           stop 1.1 m1
        "#]],
    );
}

// Time and room.

#[test]
fn a_hang_ends_as_timed_out() {
    check(
        "say 1; ready; wake +999; wake; wake; stopped",
        expect![[r#"
            say 1       queued m1, turn 1 of m1, attempt 1.1   start 1.1 m1
            ready       handed 1.1                             work 1.1 m1
            wake +999                                          work 1.1 m1
            wake        stop turn 1 (time limit)               stop 1.1 m1
            wake                                               stop 1.1 m1
            stopped     turn 1 timed out                       nothing
        "#]],
    );
}

#[test]
fn a_hang_before_the_message_was_handed_over_ends_as_timed_out_too() {
    check(
        "say 1; wake; ready; lost; wake",
        expect![[r#"
            say 1   queued m1, turn 1 of m1, attempt 1.1   start 1.1 m1
            wake    stop turn 1 (time limit)               stop 1.1 m1
            ready                                          stop 1.1 m1
            lost    turn 1 timed out                       nothing
            wake                                           nothing
        "#]],
    );
}

#[test]
fn after_a_time_out_what_waits_is_held_like_after_any_failure() {
    check(
        "say 1; say 2; ready; wake; stopped; say 3",
        expect![[r#"
        say 1     queued m1, turn 1 of m1, attempt 1.1                    start 1.1 m1
        say 2     queued m2                                               start 1.1 m1
        ready     handed 1.1                                              work 1.1 m1
        wake      stop turn 1 (time limit)                                stop 1.1 m1
        stopped   turn 1 timed out, held m2 (after failure, until 6000)   nothing until 6000
        say 3     queued m3, turn 2 of m3, attempt 2.1                    start 2.1 m3
    "#]],
    );
}

#[test]
fn time_that_we_were_away_is_not_the_turns() {
    check(
        "say 1; ready; crash; wake +5000; lost",
        expect![[r#"
        say 1        queued m1, turn 1 of m1, attempt 1.1   start 1.1 m1
        ready        handed 1.1                             work 1.1 m1
        crash                                               bury 1.1
        wake +5000                                          bury 1.1
        lost         turn 1 interrupted                     nothing
    "#]],
    );
    check(
        "say 1; crash; wake +5000; lost; wake",
        expect![[r#"
        say 1        queued m1, turn 1 of m1, attempt 1.1            start 1.1 m1
        crash                                                        bury 1.1
        wake +5000                                                   bury 1.1
        lost         attempt 1.1 failed (transient), again at 5010   nothing until 5010
        wake         attempt 1.2 term 2                              start 1.2 term 2 m1
    "#]],
    );
}

#[test]
fn a_message_whose_sender_lost_the_right_is_not_tried_again() {
    check(
        "say 1; say 2; failed transient; revoke 1; wake",
        expect![[r#"
        say 1              queued m1, turn 1 of m1, attempt 1.1                           start 1.1 m1
        say 2              queued m2                                                      start 1.1 m1
        failed transient   attempt 1.1 failed (transient), again at 10                    nothing until 10
        revoke 1           turn 1 failed (refused), held m2 (after failure, until 5000)   nothing until 5000
        wake               refused m2 (expired)                                           nothing
    "#]],
    );
}

#[test]
fn a_crowded_session_waits_and_starts_when_a_slot_is_free() {
    check(
        "no slot; say 1; say 2; wake +20; wake; a slot; wake; no slot; ready; finished",
        expect![[r#"
            no slot                                         nothing
            say 1      queued m1, crowded until 50          nothing until 50
            say 2      queued m2                            nothing until 50
            wake +20                                        nothing until 50
            wake       crowded until 100                    nothing until 100
            a slot                                          nothing until 100
            wake       turn 1 of m1, attempt 1.1            start 1.1 m1
            no slot                                         start 1.1 m1
            ready      handed 1.1                           work 1.1 m1
            finished   turn 1 answered, crowded until 150   nothing until 150
        "#]],
    );
}

#[test]
fn a_slot_is_waited_for_only_while_there_is_something_to_start() {
    check(
        "no slot; say 1; hold 1; release 1; withdraw 1",
        expect![[r#"
            no slot                                    nothing
            say 1        queued m1, crowded until 50   nothing until 50
            hold 1       held m1 (asked, until 5000)   nothing until 5000
            release 1    released m1                   nothing until 50
            withdraw 1   withdrawn m1                  nothing
        "#]],
    );
}

#[test]
fn what_is_decided_together_starts_once_and_at_the_end() {
    check(
        "slot unasked; say 1; say 2; stop 1; say 3; reorder 3 2; a slot; wake",
        expect![[r#"
            slot unasked                               nothing
            say 1          queued m1                   nothing
            say 2          queued m2                   nothing
            stop 1         withdrawn m1                nothing
            say 3          queued m3                   nothing
            reorder 3 2    reordered m3 m2             nothing
            a slot                                     nothing
            wake           turn 1 of m3, attempt 1.1   start 1.1 m3
        "#]],
    );
}

// The agent's own name (law 2).

#[test]
fn the_agents_name_is_confirmed_when_it_is_first_heard_and_used_from_then_on() {
    check(
        "say 1; ready as n1; crash; lost; say 2; ready; finished",
        expect![[r#"
            say 1         queued m1, turn 1 of m1, attempt 1.1          start 1.1 m1
            ready as n1   confirmed n1, handed 1.1                      work 1.1 m1 as n1
            crash                                                       bury 1.1
            lost          turn 1 interrupted                            nothing
            say 2         queued m2, turn 2 of m2, attempt 2.1 term 2   start 2.1 term 2 m2 as n1
            ready         handed 2.1                                    work 2.1 term 2 m2 as n1
            finished      turn 2 answered                               nothing
        "#]],
    );
}

#[test]
fn the_name_of_a_failed_turn_never_overwrites() {
    check(
        "say 1; ready as n1; finished; say 2; ready as n2; failed transient; say 3; ready as n3; stop 3; stopped",
        expect![[r#"
            say 1              queued m1, turn 1 of m1, attempt 1.1   start 1.1 m1
            ready as n1        confirmed n1, handed 1.1               work 1.1 m1 as n1
            finished           turn 1 answered                        nothing
            say 2              queued m2, turn 2 of m2, attempt 2.1   start 2.1 m2 as n1
            ready as n2        handed 2.1                             work 2.1 m2 as n1
            failed transient   turn 2 failed (transient)              nothing
            say 3              queued m3, turn 3 of m3, attempt 3.1   start 3.1 m3 as n1
            ready as n3        handed 3.1                             work 3.1 m3 as n1
            stop 3             stop turn 3 (asked)                    stop 3.1 m3 as n1
            stopped            turn 3 stopped                         nothing
        "#]],
    );
}

#[test]
fn a_changed_name_counts_when_the_turn_succeeded() {
    check(
        "say 1; ready as n1; finished as n1; say 2; ready as n2; finished as n2; say 3; ready; finished; say 4",
        expect![[r#"
            say 1            queued m1, turn 1 of m1, attempt 1.1   start 1.1 m1
            ready as n1      confirmed n1, handed 1.1               work 1.1 m1 as n1
            finished as n1   turn 1 answered                        nothing
            say 2            queued m2, turn 2 of m2, attempt 2.1   start 2.1 m2 as n1
            ready as n2      handed 2.1                             work 2.1 m2 as n1
            finished as n2   confirmed n2, turn 2 answered          nothing
            say 3            queued m3, turn 3 of m3, attempt 3.1   start 3.1 m3 as n2
            ready            handed 3.1                             work 3.1 m3 as n2
            finished         turn 3 answered                        nothing
            say 4            queued m4, turn 4 of m4, attempt 4.1   start 4.1 m4 as n2
        "#]],
    );
}

#[test]
fn only_the_attempt_that_runs_is_heard() {
    let world = World::after("say 1; ready");
    let fence = world.session.running().and_then(|running| running.stage.fence()).expect("an attempt runs");
    assert!(world.session.hears(fence));
    assert!(!world.session.hears(Fence { term: Term(fence.term.0 + 1), ..fence }));
    assert!(!World::after("say 1; ready; finished").session.hears(fence));
}

#[test]
fn what_is_held_here_is_released_here_even_if_nobody_knows_where_it_was_written() {
    let world = World::after("no slot; say 1; hold 1");
    let message = world.session.queue().first().expect("it waits").message;
    let request = Request::Release { message, there: true };
    let command = Command::Request { request, by: PersonId::from_bits(1), written_for: None };
    let released = Fact::Released { message, epoch: Epoch::default() };
    assert_eq!(world.session.decide(command, &world.given), Ok(vec![released]));
}
