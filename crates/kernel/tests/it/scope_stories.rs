//! Where and how a session acts: one story per promise, told as in `stories`.
//!
//! A worktree is called `w1` and is made at `/srv/w1`; everything begins in `/srv/shop` with the agent `scripted`.

use crate::story::{World, step, tell};
use expect_test::{Expect, expect};
use homing_kernel::*;

fn check(story: &str, told: Expect) {
    told.assert_eq(&tell(story));
}

// A scope changes only between turns (law 12).

#[test]
fn a_change_that_waits_is_given_up_when_the_session_is_handed_over() {
    check(
        "say; ready; enter; hand over; stopped; enter; hand over; entered",
        expect![[r#"
            say         queued m1, turn 1 of m1, attempt 1.1            start 1.1 m1
            ready       handed 1.1                                      work 1.1 m1
            enter       to enter w1                                     work 1.1 m1
            hand over   scope kept (asked), stop turn 1 (handed over)   stop 1.1 m1
            stopped     turn 1 stopped                                  nothing
            enter       to enter w1, errand 0.1 to enter w1             errand 0.1 to enter w1
            hand over                                                   errand 0.1 to enter w1
            entered     epoch 1 in /srv/w1                              nothing
        "#]],
    );
}

#[test]
fn an_idle_session_changes_its_scope_at_once() {
    check(
        "set model big; set model big; set model default now; relink /srv/new; set agent other",
        expect![[r#"
            set model big           to set model big, epoch 1 in /srv/shop model big      nothing
            set model big                                                                 nothing
            set model default now   to set model default, epoch 2 in /srv/shop            nothing
            relink /srv/new         to relink /srv/new, epoch 3 in /srv/new               nothing
            set agent other         to set agent other, epoch 4 in /srv/new agent other   nothing
        "#]],
    );
}

#[test]
fn a_change_that_is_asked_for_during_a_turn_waits_for_its_end() {
    check(
        "say; ready; set model big; set mode plan; finished; say; ready; finished",
        expect![[r#"
        say             queued m1, turn 1 of m1, attempt 1.1                   start 1.1 m1
        ready           handed 1.1                                             work 1.1 m1
        set model big   to set model big                                       work 1.1 m1
        set mode plan   no: another change waits                               work 1.1 m1
        finished        turn 1 answered, epoch 1 in /srv/shop model big        nothing
        say             queued m2 under 1, turn 2 of m2, attempt 2.1 epoch 1   start 2.1 epoch 1 m2
        ready           handed 2.1                                             work 2.1 epoch 1 m2
        finished        turn 2 answered                                        nothing
    "#]],
    );
}

#[test]
fn a_change_that_must_be_now_is_refused_while_something_is_under_way() {
    check(
        "say; set model big now; ready; finished; undo 1; set model big now; undone; set model big now; no slot; say; \
         set model default now",
        expect![[r#"
            say                     queued m1, turn 1 of m1, attempt 1.1               start 1.1 m1
            set model big now       no: busy                                           start 1.1 m1
            ready                   handed 1.1                                         work 1.1 m1
            finished                turn 1 answered                                    nothing
            undo 1                  errand 0.1 to undo 1                               errand 0.1 to undo 1
            set model big now       no: busy                                           errand 0.1 to undo 1
            undone                  turn 1 undone                                      nothing
            set model big now       to set model big, epoch 1 in /srv/shop model big   nothing
            no slot                                                                    nothing
            say                     queued m2 under 1, crowded until 50                nothing until 50
            set model default now   no: busy                                           nothing until 50
        "#]],
    );
}

#[test]
fn a_change_waits_for_the_message_that_would_have_been_next_and_no_other() {
    check(
        "no slot; say; say; set model big; a slot; wake; ready; finished; release 2",
        expect![[r#"
        no slot                                                                                              nothing
        say             queued m1, crowded until 50                                                          nothing until 50
        say             queued m2                                                                            nothing until 50
        set model big   to set model big after m1                                                            nothing until 50
        a slot                                                                                               nothing until 50
        wake            turn 1 of m1, attempt 1.1                                                            start 1.1 m1
        ready           handed 1.1                                                                           work 1.1 m1
        finished        turn 1 answered, epoch 1 in /srv/shop model big, held m2 (other scope, until 5050)   nothing until 5050
        release 2       released m2 under 1, turn 2 of m2, attempt 2.1 epoch 1                               start 2.1 epoch 1 m2
    "#]],
    );
}

#[test]
fn a_change_never_waits_for_a_message_that_is_not_started_any_more() {
    for story in ["withdraw 1", "hold 1", "revoke 1", "stop 1"] {
        let mut world = World::after("no slot; say; say; set model big");
        assert_eq!(world.session.epoch(), Epoch(0));
        world.tell(&step(story)).expect("every promise is kept");
        assert_eq!(world.session.epoch(), Epoch(1), "after `{story}`");
        assert!(world.session.pending().is_none());
    }
}

#[test]
fn whoever_is_put_before_the_message_that_a_change_waits_for_comes_first() {
    check(
        "no slot; say; say; set model big; reorder 2 1; a slot; wake; ready; finished; ready; finished",
        expect![[r#"
            no slot                                                           nothing
            say             queued m1, crowded until 50                       nothing until 50
            say             queued m2                                         nothing until 50
            set model big   to set model big after m1                         nothing until 50
            reorder 2 1     reordered m2 m1                                   nothing until 50
            a slot                                                            nothing until 50
            wake            turn 1 of m2, attempt 1.1                         start 1.1 m2
            ready           handed 1.1                                        work 1.1 m2
            finished        turn 1 answered, turn 2 of m1, attempt 2.1        start 2.1 m1
            ready           handed 2.1                                        work 2.1 m1
            finished        turn 2 answered, epoch 1 in /srv/shop model big   nothing
        "#]],
    );
}

#[test]
fn a_change_can_be_given_up_until_it_has_begun() {
    check(
        "say; ready; enter; keep; keep; finished; enter; keep; in vain enter; keep; end; keep",
        expect![[r#"
            say             queued m1, turn 1 of m1, attempt 1.1     start 1.1 m1
            ready           handed 1.1                               work 1.1 m1
            enter           to enter w1                              work 1.1 m1
            keep            scope kept (asked)                       work 1.1 m1
            keep            no: too late                             work 1.1 m1
            finished        turn 1 answered                          nothing
            enter           to enter w1, errand 0.1 to enter w1      errand 0.1 to enter w1
            keep            no: too late                             errand 0.1 to enter w1
            in vain enter   errand 0.1 failed, scope kept (failed)   nothing
            keep            no: too late                             nothing
            end             ended (asked)                            nothing
            keep            no: too late                             nothing
        "#]],
    );
}

#[test]
fn a_change_that_waits_for_an_undo_can_be_given_up() {
    check(
        "say; ready; finished; undo 1; enter; keep; undone",
        expect![[r#"
        say        queued m1, turn 1 of m1, attempt 1.1   start 1.1 m1
        ready      handed 1.1                             work 1.1 m1
        finished   turn 1 answered                        nothing
        undo 1     errand 0.1 to undo 1                   errand 0.1 to undo 1
        enter      to enter w1                            errand 0.1 to undo 1
        keep       scope kept (asked)                     errand 0.1 to undo 1
        undone     turn 1 undone                          nothing
    "#]],
    );
}

#[test]
fn one_change_waits_at_a_time() {
    check(
        "say; set model big; exit; set model other; enter; keep; enter",
        expect![[r#"
        say               queued m1, turn 1 of m1, attempt 1.1   start 1.1 m1
        set model big     to set model big                       start 1.1 m1
        exit              no: another change waits               start 1.1 m1
        set model other   no: another change waits               start 1.1 m1
        enter             no: another change waits               start 1.1 m1
        keep              scope kept (asked)                     start 1.1 m1
        enter             to enter w1                            start 1.1 m1
    "#]],
    );
}

#[test]
fn another_agent_begins_with_its_own_model_and_mode() {
    check(
        "set model big; set mode plan; set agent other",
        expect![[r#"
        set model big     to set model big, epoch 1 in /srv/shop model big             nothing
        set mode plan     to set mode plan, epoch 2 in /srv/shop model big mode plan   nothing
        set agent other   to set agent other, epoch 3 in /srv/shop agent other         nothing
    "#]],
    );
}

#[test]
fn a_change_survives_the_keeper() {
    check(
        "say; ready; set model big; crash; lost; say",
        expect![[r#"
        say             queued m1, turn 1 of m1, attempt 1.1                          start 1.1 m1
        ready           handed 1.1                                                    work 1.1 m1
        set model big   to set model big                                              work 1.1 m1
        crash                                                                         bury 1.1
        lost            turn 1 interrupted, epoch 1 in /srv/shop model big            nothing
        say             queued m2 under 1, turn 2 of m2, attempt 2.1 term 2 epoch 1   start 2.1 term 2 epoch 1 m2
    "#]],
    );
}

#[test]
fn ending_while_a_change_waits_ends() {
    check(
        "say; ready; set model big; end; stopped; keep; set model big",
        expect![[r#"
        say             queued m1, turn 1 of m1, attempt 1.1      start 1.1 m1
        ready           handed 1.1                                work 1.1 m1
        set model big   to set model big                          work 1.1 m1
        end             to end, stop turn 1 (session is ending)   stop 1.1 m1
        stopped         turn 1 stopped, ended (asked)             nothing
        keep            no: too late                              nothing
        set model big   no: the session has ended                 nothing
    "#]],
    );
}

// Worktrees.

#[test]
fn a_worktree_is_entered_when_it_is_there_and_left_for_where_it_was_entered_from() {
    check(
        "enter; say; entered; exit; exit; enter; entered; enter",
        expect![[r#"
        enter     to enter w1, errand 0.1 to enter w1                     errand 0.1 to enter w1
        say       queued m1                                               errand 0.1 to enter w1
        entered   epoch 1 in /srv/w1, held m1 (other scope, until 5000)   nothing until 5000
        exit      to exit, epoch 2 in /srv/shop                           nothing until 5000
        exit      no: in no worktree                                      nothing until 5000
        enter     to enter w1, errand 2.2 to enter w1                     errand 2.2 to enter w1
        entered   epoch 3 in /srv/w1                                      nothing until 5000
        enter     no: in a worktree already                               nothing until 5000
    "#]],
    );
}

#[test]
fn a_worktree_that_cannot_be_entered_leaves_all_as_it_was() {
    check(
        "enter; say; in vain enter; release 1; ready",
        expect![[r#"
            enter           to enter w1, errand 0.1 to enter w1                                           errand 0.1 to enter w1
            say             queued m1                                                                     errand 0.1 to enter w1
            in vain enter   errand 0.1 failed, scope kept (failed), held m1 (after failure, until 5000)   nothing until 5000
            release 1       released m1, turn 1 of m1, attempt 1.1                                        start 1.1 m1
            ready           handed 1.1                                                                    work 1.1 m1
        "#]],
    );
}

#[test]
fn a_session_that_is_made_for_a_worktree_says_nothing_before_it_is_there() {
    check(
        "open into w1; say; say; crash; entered; ready; finished; exit",
        expect![[r#"
        open into w1   opened into w1, errand 0.1 to enter w1                                                                   errand 0.1 to enter w1
        say            queued m1                                                                                                errand 0.1 to enter w1
        say            queued m2                                                                                                errand 0.1 to enter w1
        crash                                                                                                                   errand 0.1 to enter w1
        entered        epoch 1 in /srv/w1, released m1 under 1, released m2 under 1, turn 1 of m1, attempt 1.1 term 2 epoch 1   start 1.1 term 2 epoch 1 m1
        ready          handed 1.1                                                                                               work 1.1 term 2 epoch 1 m1
        finished       turn 1 answered, turn 2 of m2, attempt 2.1 term 2 epoch 1                                                start 2.1 term 2 epoch 1 m2
        exit           to exit                                                                                                  start 2.1 term 2 epoch 1 m2
    "#]],
    );
    check(
        "open into w1; keep; say; in vain enter; release 1; say",
        expect![[r#"
        open into w1    opened into w1, errand 0.1 to enter w1                                        errand 0.1 to enter w1
        keep            no: too late                                                                  errand 0.1 to enter w1
        say             queued m1                                                                     errand 0.1 to enter w1
        in vain enter   errand 0.1 failed, scope kept (failed), held m1 (after failure, until 5000)   nothing until 5000
        release 1       released m1, turn 1 of m1, attempt 1.1                                        start 1.1 m1
        say             queued m2                                                                     start 1.1 m1
    "#]],
    );
    check(
        "open into w1; say; end; entered",
        expect![[r#"
        open into w1   opened into w1, errand 0.1 to enter w1                         errand 0.1 to enter w1
        say            queued m1                                                      errand 0.1 to enter w1
        end            to end                                                         errand 0.1 to enter w1
        entered        errand 0.1 failed, refused m1 (session ended), ended (asked)   nothing
    "#]],
    );
}

#[test]
fn the_next_keeper_goes_on_with_the_errand_and_only_one_return_counts() {
    check(
        "enter; crash; entered of 0.1; entered of 0.1; entered of 0.1; exit; entered of 0.1",
        expect![[r#"
            enter            to enter w1, errand 0.1 to enter w1   errand 0.1 to enter w1
            crash                                                  errand 0.1 to enter w1
            entered of 0.1   epoch 1 in /srv/w1                    nothing
            entered of 0.1   stale enter of 0.1                    nothing
            entered of 0.1                                         nothing
            exit             to exit, epoch 2 in /srv/shop         nothing
            entered of 0.1                                         nothing
        "#]],
    );
}

#[test]
fn ending_while_away_ends_when_it_is_back() {
    check(
        "enter; say; end; say; entered; entered",
        expect![[r#"
        enter     to enter w1, errand 0.1 to enter w1                            errand 0.1 to enter w1
        say       queued m1                                                      errand 0.1 to enter w1
        end       to end                                                         errand 0.1 to enter w1
        say       refused m2 (session ended)                                     errand 0.1 to enter w1
        entered   errand 0.1 failed, refused m1 (session ended), ended (asked)   nothing
        entered   stale enter of 0.1                                             nothing
    "#]],
    );
    check(
        "say; ready; finished; undo 1; end; in vain undo",
        expect![[r#"
        say            queued m1, turn 1 of m1, attempt 1.1   start 1.1 m1
        ready          handed 1.1                             work 1.1 m1
        finished       turn 1 answered                        nothing
        undo 1         errand 0.1 to undo 1                   errand 0.1 to undo 1
        end            to end                                 errand 0.1 to undo 1
        in vain undo   errand 0.1 failed, ended (asked)       nothing
    "#]],
    );
}

#[test]
fn a_full_house_is_not_asked_while_away() {
    check(
        "no slot; say; say; enter; withdraw 1; wake +100; in vain enter; release 2; a slot; wake",
        expect![[r#"
            no slot                                                                                       nothing
            say             queued m1, crowded until 50                                                   nothing until 50
            say             queued m2                                                                     nothing until 50
            enter           to enter w1 after m1                                                          nothing until 50
            withdraw 1      withdrawn m1, errand 0.1 to enter w1                                          errand 0.1 to enter w1
            wake +100                                                                                     errand 0.1 to enter w1
            in vain enter   errand 0.1 failed, scope kept (failed), held m2 (after failure, until 5100)   nothing until 5100
            release 2       released m2, crowded until 150                                                nothing until 150
            a slot                                                                                        nothing until 150
            wake            turn 1 of m2, attempt 1.1                                                     start 1.1 m2
        "#]],
    );
}

// Undo.

#[test]
fn a_turn_is_undone_in_its_own_scope_while_nothing_else_is_to_be_done() {
    check(
        "undo 1; say; undo 1; ready; undo 1; finished; undo 0; undo 2; undo 1; undo 1; undone; set model big; undo 1; \
         undo 1 of epoch 1",
        expect![[r#"
            undo 1              no: no such turn                                   nothing
            say                 queued m1, turn 1 of m1, attempt 1.1               start 1.1 m1
            undo 1              no: busy                                           start 1.1 m1
            ready               handed 1.1                                         work 1.1 m1
            undo 1              no: busy                                           work 1.1 m1
            finished            turn 1 answered                                    nothing
            undo 0              no: no such turn                                   nothing
            undo 2              no: no such turn                                   nothing
            undo 1              errand 0.1 to undo 1                               errand 0.1 to undo 1
            undo 1              no: busy                                           errand 0.1 to undo 1
            undone              turn 1 undone                                      nothing
            set model big       to set model big, epoch 1 in /srv/shop model big   nothing
            undo 1              no: another scope                                  nothing
            undo 1 of epoch 1   errand 1.2 to undo 1                               errand 1.2 to undo 1
        "#]],
    );
}

#[test]
fn an_undo_is_taken_back_as_it_was_done_between_turns_and_in_its_scope() {
    check(
        "redo 1 of epoch 0; say; ready; redo 1 of epoch 0; finished; undo 1; redo 1 of epoch 0; undone; \
         redo 1 of epoch 0; undone; redone; redo 1 of epoch 0; in vain redo; redo 1 of epoch 1",
        expect![[r#"
            redo 1 of epoch 0   no: no such turn                       nothing
            say                 queued m1, turn 1 of m1, attempt 1.1   start 1.1 m1
            ready               handed 1.1                             work 1.1 m1
            redo 1 of epoch 0   no: busy                               work 1.1 m1
            finished            turn 1 answered                        nothing
            undo 1              errand 0.1 to undo 1                   errand 0.1 to undo 1
            redo 1 of epoch 0   no: busy                               errand 0.1 to undo 1
            undone              turn 1 undone                          nothing
            redo 1 of epoch 0   errand 0.2 to redo 1                   errand 0.2 to redo 1
            undone              stale undo of 0.2                      errand 0.2 to redo 1
            redone              turn 1 redone                          nothing
            redo 1 of epoch 0   errand 0.3 to redo 1                   errand 0.3 to redo 1
            in vain redo        errand 0.3 failed                      nothing
            redo 1 of epoch 1   no: another scope                      nothing
        "#]],
    );
}

#[test]
fn a_message_that_comes_during_an_undo_is_started_after_it() {
    check(
        "say; ready; finished; undo 1; say; in vain undo; ready; finished; no slot; undo 2",
        expect![[r#"
        say            queued m1, turn 1 of m1, attempt 1.1           start 1.1 m1
        ready          handed 1.1                                     work 1.1 m1
        finished       turn 1 answered                                nothing
        undo 1         errand 0.1 to undo 1                           errand 0.1 to undo 1
        say            queued m2                                      errand 0.1 to undo 1
        in vain undo   errand 0.1 failed, turn 2 of m2, attempt 2.1   start 2.1 m2
        ready          handed 2.1                                     work 2.1 m2
        finished       turn 2 answered                                nothing
        no slot                                                       nothing
        undo 2         no: busy                                       nothing
    "#]],
    );
}

#[test]
fn the_number_of_an_errand_is_never_given_twice() {
    check(
        "say; ready; finished; undo 1; undone; crash; undo 1; undone of 0.1; undone of 0.2",
        expect![[r#"
        say             queued m1, turn 1 of m1, attempt 1.1   start 1.1 m1
        ready           handed 1.1                             work 1.1 m1
        finished        turn 1 answered                        nothing
        undo 1          errand 0.1 to undo 1                   errand 0.1 to undo 1
        undone          turn 1 undone                          nothing
        crash                                                  nothing
        undo 1          errand 0.2 to undo 1                   errand 0.2 to undo 1
        undone of 0.1   stale undo of 0.1                      errand 0.2 to undo 1
        undone of 0.2   turn 1 undone                          nothing
    "#]],
    );
    let mut world = World::after("say; ready; finished; undo 1; undone");
    let condensed = world.session.condense().expect("it is idle");
    world.session = crate::story::replay(&condensed);
    world.tell(&step("undo 1")).expect("the numbers go on after a checkpoint");
    assert_eq!(world.session.away().map(|away| away.errand.number), Some(2));
}

// What comes back too late (law 12, LESSONS 4.1).

#[test]
fn what_was_seen_under_another_epoch_is_recorded_once_and_not_applied() {
    check(
        "saw diff; saw commands; saw commands; set model big; saw diff under 0; saw diff under 0; saw models under 0; \
         set model default; saw commands under 0; saw commands under 1; saw commands; in vain files; in vain files under 1",
        expect![[r#"
            saw diff                                                                   nothing
            saw commands            learned commands                                   nothing
            saw commands                                                               nothing
            set model big           to set model big, epoch 1 in /srv/shop model big   nothing
            saw diff under 0        stale diff of 0.0                                  nothing
            saw diff under 0                                                           nothing
            saw models under 0      stale models of 0.0                                nothing
            set model default       to set model default, epoch 2 in /srv/shop         nothing
            saw commands under 0    stale commands of 0.0                              nothing
            saw commands under 1    stale commands of 1.0                              nothing
            saw commands            learned commands under 2                           nothing
            in vain files                                                              nothing
            in vain files under 1   stale files of 1.0                                 nothing
        "#]],
    );
}

#[test]
fn of_the_wrong_errand_nothing_is_applied() {
    check(
        "enter; undone; undone of 0.1; entered of 0.2; entered of 1.1; saw enter of 0.1; in vain undo of 0.1; saw diff; entered",
        expect![[r#"
            enter                 to enter w1, errand 0.1 to enter w1   errand 0.1 to enter w1
            undone                stale undo of 0.1                     errand 0.1 to enter w1
            undone of 0.1                                               errand 0.1 to enter w1
            entered of 0.2        stale enter of 0.2                    errand 0.1 to enter w1
            entered of 1.1        stale enter of 1.1                    errand 0.1 to enter w1
            saw enter of 0.1      stale enter of 0.1                    errand 0.1 to enter w1
            in vain undo of 0.1                                         errand 0.1 to enter w1
            saw diff                                                    errand 0.1 to enter w1
            entered               epoch 1 in /srv/w1                    nothing
        "#]],
    );
}

#[test]
fn what_comes_back_to_an_ended_session_changes_nothing() {
    check(
        "set model big; enter; end; entered; entered; saw commands; saw commands under 0; crash; saw diff",
        expect![[r#"
            set model big          to set model big, epoch 1 in /srv/shop model big   nothing
            enter                  to enter w1, errand 1.1 to enter w1                errand 1.1 to enter w1
            end                    to end                                             errand 1.1 to enter w1
            entered                errand 1.1 failed, ended (asked)                   nothing
            entered                stale enter of 1.1                                 nothing
            saw commands                                                              nothing
            saw commands under 0   stale commands of 0.0                              nothing
            crash                                                                     nothing
            saw diff                                                                  nothing
        "#]],
    );
}

// Follow-ups (LESSONS 3.4).

#[test]
fn what_waits_when_the_scope_changes_is_held_and_a_person_says_where_it_belongs() {
    check(
        "say; say; say; say; ready; set model big; finished; release 2; ready; finished; release 3 there; ready; finished; \
         withdraw 4; say; ready; finished",
        expect![[r#"
            say               queued m1, turn 1 of m1, attempt 1.1                                                                                                                       start 1.1 m1
            say               queued m2                                                                                                                                                  start 1.1 m1
            say               queued m3                                                                                                                                                  start 1.1 m1
            say               queued m4                                                                                                                                                  start 1.1 m1
            ready             handed 1.1                                                                                                                                                 work 1.1 m1
            set model big     to set model big                                                                                                                                           work 1.1 m1
            finished          turn 1 answered, epoch 1 in /srv/shop model big, held m2 (other scope, until 5000), held m3 (other scope, until 5000), held m4 (other scope, until 5000)   nothing until 5000
            release 2         released m2 under 1, turn 2 of m2, attempt 2.1 epoch 1                                                                                                     start 2.1 epoch 1 m2
            ready             handed 2.1                                                                                                                                                 work 2.1 epoch 1 m2
            finished          turn 2 answered                                                                                                                                            nothing until 5000
            release 3 there   to go back for m3, epoch 2 in /srv/shop, released m3 under 2, turn 3 of m3, attempt 3.1 epoch 2                                                            start 3.1 epoch 2 m3
            ready             handed 3.1                                                                                                                                                 work 3.1 epoch 2 m3
            finished          turn 3 answered                                                                                                                                            nothing until 5000
            withdraw 4        withdrawn m4                                                                                                                                               nothing
            say               queued m5 under 2, turn 4 of m5, attempt 4.1 epoch 2                                                                                                       start 4.1 epoch 2 m5
            ready             handed 4.1                                                                                                                                                 work 4.1 epoch 2 m5
            finished          turn 4 answered                                                                                                                                            nothing
        "#]],
    );
}

#[test]
fn what_was_written_for_another_scope_is_held_when_it_comes() {
    check(
        "set model big; say under 0; say under 7; say under 1; interrupt under 0; steer under 0; release 1",
        expect![[r#"
            set model big       to set model big, epoch 1 in /srv/shop model big       nothing
            say under 0         queued m1, held m1 (other scope, until 5000)           nothing until 5000
            say under 7         queued m2 under 7, held m2 (other scope, until 5000)   nothing until 5000
            say under 1         queued m3 under 1, turn 1 of m3, attempt 1.1 epoch 1   start 1.1 epoch 1 m3
            interrupt under 0   queued m4, held m4 (other scope, until 5000)           start 1.1 epoch 1 m3
            steer under 0       queued m5, held m5 (other scope, until 5000)           start 1.1 epoch 1 m3
            release 1           released m1 under 1                                    start 1.1 epoch 1 m3
        "#]],
    );
}

#[test]
fn sending_something_there_waits_for_the_turn_and_holds_what_was_written_here() {
    check(
        "say; set model big; ready; say; finished; say; release 2 there; say; ready; finished; ready; finished",
        expect![[r#"
            say               queued m1, turn 1 of m1, attempt 1.1                                                                                               start 1.1 m1
            set model big     to set model big                                                                                                                   start 1.1 m1
            ready             handed 1.1                                                                                                                         work 1.1 m1
            say               queued m2                                                                                                                          work 1.1 m1
            finished          turn 1 answered, epoch 1 in /srv/shop model big, held m2 (other scope, until 5000)                                                 nothing until 5000
            say               queued m3 under 1, turn 2 of m3, attempt 2.1 epoch 1                                                                               start 2.1 epoch 1 m3
            release 2 there   to go back for m2                                                                                                                  start 2.1 epoch 1 m3
            say               queued m4 under 1                                                                                                                  start 2.1 epoch 1 m3
            ready             handed 2.1                                                                                                                         work 2.1 epoch 1 m3
            finished          turn 2 answered, epoch 2 in /srv/shop, held m4 (other scope, until 5000), released m2 under 2, turn 3 of m2, attempt 3.1 epoch 2   start 3.1 epoch 2 m2
            ready             handed 3.1                                                                                                                         work 3.1 epoch 2 m2
            finished          turn 3 answered                                                                                                                    nothing until 5000
        "#]],
    );
}

#[test]
fn nobody_goes_back_for_a_message_that_does_not_need_it_any_more() {
    check(
        "say; say; set model big; ready; finished; say; release 2 there; withdraw 2; ready; finished",
        expect![[r#"
            say               queued m1, turn 1 of m1, attempt 1.1                                                 start 1.1 m1
            say               queued m2                                                                            start 1.1 m1
            set model big     to set model big                                                                     start 1.1 m1
            ready             handed 1.1                                                                           work 1.1 m1
            finished          turn 1 answered, epoch 1 in /srv/shop model big, held m2 (other scope, until 5000)   nothing until 5000
            say               queued m3 under 1, turn 2 of m3, attempt 2.1 epoch 1                                 start 2.1 epoch 1 m3
            release 2 there   to go back for m2                                                                    start 2.1 epoch 1 m3
            withdraw 2        withdrawn m2                                                                         start 2.1 epoch 1 m3
            ready             handed 2.1                                                                           work 2.1 epoch 1 m3
            finished          turn 2 answered, scope kept (moot)                                                   nothing
        "#]],
    );
    check(
        "say; say; set model big; ready; finished; say; release 2 there; release 2; ready; finished",
        expect![[r#"
            say               queued m1, turn 1 of m1, attempt 1.1                                                 start 1.1 m1
            say               queued m2                                                                            start 1.1 m1
            set model big     to set model big                                                                     start 1.1 m1
            ready             handed 1.1                                                                           work 1.1 m1
            finished          turn 1 answered, epoch 1 in /srv/shop model big, held m2 (other scope, until 5000)   nothing until 5000
            say               queued m3 under 1, turn 2 of m3, attempt 2.1 epoch 1                                 start 2.1 epoch 1 m3
            release 2 there   to go back for m2                                                                    start 2.1 epoch 1 m3
            release 2         released m2 under 1                                                                  start 2.1 epoch 1 m3
            ready             handed 2.1                                                                           work 2.1 epoch 1 m3
            finished          turn 2 answered, scope kept (moot), turn 3 of m2, attempt 3.1 epoch 1                start 3.1 epoch 1 m2
        "#]],
    );
    check(
        "back 7 now",
        expect![[r#"
        back 7 now      nothing
    "#]],
    );
}

#[test]
fn going_back_to_where_it_is_already_is_being_released() {
    check(
        "say; say; set model big; ready; finished; set model default; release 2 there",
        expect![[r#"
        say                 queued m1, turn 1 of m1, attempt 1.1                                                 start 1.1 m1
        say                 queued m2                                                                            start 1.1 m1
        set model big       to set model big                                                                     start 1.1 m1
        ready               handed 1.1                                                                           work 1.1 m1
        finished            turn 1 answered, epoch 1 in /srv/shop model big, held m2 (other scope, until 5000)   nothing until 5000
        set model default   to set model default, epoch 2 in /srv/shop                                           nothing until 5000
        release 2 there     released m2 under 2, turn 2 of m2, attempt 2.1 epoch 2                               start 2.1 epoch 2 m2
    "#]],
    );
}

#[test]
fn a_hold_that_somebody_asked_for_outlives_a_change_and_then_means_here() {
    check(
        "no slot; say; hold 1; set model big; a slot; release 1",
        expect![[r#"
        no slot                                                                  nothing
        say             queued m1, crowded until 50                              nothing until 50
        hold 1          held m1 (asked, until 5000)                              nothing until 5000
        set model big   to set model big, epoch 1 in /srv/shop model big         nothing until 5000
        a slot                                                                   nothing until 5000
        release 1       released m1 under 1, turn 1 of m1, attempt 1.1 epoch 1   start 1.1 epoch 1 m1
    "#]],
    );
}

#[test]
fn what_is_held_for_another_scope_expires_like_anything_held() {
    check(
        "no slot; say; say; set model big; withdraw 1; wake +5000",
        expect![[r#"
        no slot                                                                                           nothing
        say             queued m1, crowded until 50                                                       nothing until 50
        say             queued m2                                                                         nothing until 50
        set model big   to set model big after m1                                                         nothing until 50
        withdraw 1      withdrawn m1, epoch 1 in /srv/shop model big, held m2 (other scope, until 5000)   nothing until 5000
        wake +5000      refused m2 (expired)                                                              nothing
    "#]],
    );
}

// Delivery.

#[test]
fn an_interruption_stops_the_turn_and_comes_before_all_that_waits() {
    check(
        "say; ready; say; interrupt; stopped; ready; finished; ready; finished",
        expect![[r#"
        say         queued m1, turn 1 of m1, attempt 1.1              start 1.1 m1
        ready       handed 1.1                                        work 1.1 m1
        say         queued m2                                         work 1.1 m1
        interrupt   queued m3, reordered m3 m2, stop turn 1 (asked)   stop 1.1 m1
        stopped     turn 1 stopped, turn 2 of m3, attempt 2.1         start 2.1 m3
        ready       handed 2.1                                        work 2.1 m3
        finished    turn 2 answered, turn 3 of m2, attempt 3.1        start 3.1 m2
        ready       handed 3.1                                        work 3.1 m2
        finished    turn 3 answered                                   nothing
    "#]],
    );
}

#[test]
fn an_interruption_of_nothing_is_just_the_next_message() {
    check(
        "interrupt; ready; finished; no slot; say; interrupt; undo 1; a slot; wake",
        expect![[r#"
        interrupt   queued m1, turn 1 of m1, attempt 1.1   start 1.1 m1
        ready       handed 1.1                             work 1.1 m1
        finished    turn 1 answered                        nothing
        no slot                                            nothing
        say         queued m2, crowded until 50            nothing until 50
        interrupt   queued m3, reordered m3 m2             nothing until 50
        undo 1      no: busy                               nothing until 50
        a slot                                             nothing until 50
        wake        turn 2 of m3, attempt 2.1              start 2.1 m3
    "#]],
    );
    check(
        "say; failed transient; interrupt; ready",
        expect![[r#"
        say                queued m1, turn 1 of m1, attempt 1.1                   start 1.1 m1
        failed transient   attempt 1.1 failed (transient), again at 10            nothing until 10
        interrupt          queued m2, turn 1 stopped, turn 2 of m2, attempt 2.1   start 2.1 m2
        ready              handed 2.1                                             work 2.1 m2
    "#]],
    );
}

#[test]
fn words_go_into_the_turn_while_the_agent_works_and_listens() {
    check(
        "say; steer; ready; steer; say; steer; finished; ready",
        expect![[r#"
        say        queued m1, turn 1 of m1, attempt 1.1         start 1.1 m1
        steer      queued m2                                    start 1.1 m1
        ready      handed 1.1                                   work 1.1 m1
        steer      queued m3, steered m3 into turn 1            work 1.1 m1 +m3
        say        queued m4                                    work 1.1 m1 +m3
        steer      queued m5, steered m5 into turn 1            work 1.1 m1 +m3 +m5
        finished   turn 1 answered, turn 2 of m2, attempt 2.1   start 2.1 m2
        ready      handed 2.1                                   work 2.1 m2
    "#]],
    );
    check(
        "the agent is deaf; say; ready; steer; finished; steer; stop 2; steer",
        expect![[r#"
        the agent is deaf                                                nothing
        say                 queued m1, turn 1 of m1, attempt 1.1         start 1.1 m1
        ready               handed 1.1                                   work 1.1 m1
        steer               queued m2                                    work 1.1 m1
        finished            turn 1 answered, turn 2 of m2, attempt 2.1   start 2.1 m2
        steer               queued m3                                    start 2.1 m2
        stop 2              stop turn 2 (asked)                          stop 2.1 m2
        steer               queued m4                                    stop 2.1 m2
    "#]],
    );
}

#[test]
fn words_that_did_not_get_there_come_first_and_have_a_turn_of_their_own() {
    check(
        "say; ready; say; steer; missed 3; missed 3; missed 2; finished; ready; missed 3; finished; ready",
        expect![[r#"
            say        queued m1, turn 1 of m1, attempt 1.1         start 1.1 m1
            ready      handed 1.1                                   work 1.1 m1
            say        queued m2                                    work 1.1 m1
            steer      queued m3, steered m3 into turn 1            work 1.1 m1 +m3
            missed 3   missed m3                                    work 1.1 m1
            missed 3                                                work 1.1 m1
            missed 2                                                work 1.1 m1
            finished   turn 1 answered, turn 2 of m3, attempt 2.1   start 2.1 m3
            ready      handed 2.1                                   work 2.1 m3
            missed 3                                                work 2.1 m3
            finished   turn 2 answered, turn 3 of m2, attempt 3.1   start 3.1 m2
            ready      handed 3.1                                   work 3.1 m2
        "#]],
    );
}

#[test]
fn of_several_that_did_not_get_there_the_first_comes_first() {
    check(
        "say; ready; steer; steer; say; steer; missed 2; missed 3; missed 5; finished",
        expect![[r#"
        say        queued m1, turn 1 of m1, attempt 1.1         start 1.1 m1
        ready      handed 1.1                                   work 1.1 m1
        steer      queued m2, steered m2 into turn 1            work 1.1 m1 +m2
        steer      queued m3, steered m3 into turn 1            work 1.1 m1 +m2 +m3
        say        queued m4                                    work 1.1 m1 +m2 +m3
        steer      queued m5, steered m5 into turn 1            work 1.1 m1 +m2 +m3 +m5
        missed 2   missed m2                                    work 1.1 m1 +m3 +m5
        missed 3   missed m3, reordered m2 m3 m4                work 1.1 m1 +m5
        missed 5   missed m5, reordered m2 m3 m5 m4             work 1.1 m1
        finished   turn 1 answered, turn 2 of m2, attempt 2.1   start 2.1 m2
    "#]],
    );
}

#[test]
fn what_waits_can_be_said_into_the_turn_after_all() {
    check(
        "say; say; say; hold 3; put 2 in; ready; put 2 in; put 3 in; put 3 in; put 9 in; finished",
        expect![[r#"
            say        queued m1, turn 1 of m1, attempt 1.1   start 1.1 m1
            say        queued m2                              start 1.1 m1
            say        queued m3                              start 1.1 m1
            hold 3     held m3 (asked, until 5000)            start 1.1 m1
            put 2 in   no: nobody listens                     start 1.1 m1
            ready      handed 1.1                             work 1.1 m1
            put 2 in   steered m2 into turn 1                 work 1.1 m1 +m2
            put 3 in   released m3, steered m3 into turn 1    work 1.1 m1 +m2 +m3
            put 3 in   no: too late                           work 1.1 m1 +m2 +m3
            put 9 in   no: too late                           work 1.1 m1 +m2 +m3
            finished   turn 1 answered                        nothing
        "#]],
    );
    check(
        "the agent is deaf; say; ready; say; put 2 in; stop; put 2 in",
        expect![[r#"
        the agent is deaf                                          nothing
        say                 queued m1, turn 1 of m1, attempt 1.1   start 1.1 m1
        ready               handed 1.1                             work 1.1 m1
        say                 queued m2                              work 1.1 m1
        put 2 in            no: nobody listens                     work 1.1 m1
        stop                stop turn 1 (asked)                    stop 1.1 m1
        put 2 in            no: nobody listens                     stop 1.1 m1
    "#]],
    );
    // What was kept back from the turn once waits for one of its own; or for the next one, if somebody keeps it until then.
    check(
        "say; ready; steer; missed 2; put 2 in; hold 2; say; finished; ready; put 2 in; missed 2; finished",
        expect![[r#"
            say        queued m1, turn 1 of m1, attempt 1.1         start 1.1 m1
            ready      handed 1.1                                   work 1.1 m1
            steer      queued m2, steered m2 into turn 1            work 1.1 m1 +m2
            missed 2   missed m2                                    work 1.1 m1
            put 2 in   no: nobody listens                           work 1.1 m1
            hold 2     held m2 (asked, until 5000)                  work 1.1 m1
            say        queued m3                                    work 1.1 m1
            finished   turn 1 answered, turn 2 of m3, attempt 2.1   start 2.1 m3
            ready      handed 2.1                                   work 2.1 m3
            put 2 in   released m2, steered m2 into turn 2          work 2.1 m3 +m2
            missed 2   missed m2                                    work 2.1 m3
            finished   turn 2 answered, turn 3 of m2, attempt 3.1   start 3.1 m2
        "#]],
    );
    check(
        "say; ready; say; set model big; stop; stopped; ready; put 2 in; release 2; put 2 in",
        expect![[r#"
            say             queued m1, turn 1 of m1, attempt 1.1                                                start 1.1 m1
            ready           handed 1.1                                                                          work 1.1 m1
            say             queued m2                                                                           work 1.1 m1
            set model big   to set model big                                                                    work 1.1 m1
            stop            stop turn 1 (asked)                                                                 stop 1.1 m1
            stopped         turn 1 stopped, epoch 1 in /srv/shop model big, held m2 (other scope, until 5000)   nothing until 5000
            ready           stale ready of 1.1                                                                  nothing until 5000
            put 2 in        no: another scope                                                                   nothing until 5000
            release 2       released m2 under 1, turn 2 of m2, attempt 2.1 epoch 1                              start 2.1 epoch 1 m2
            put 2 in        no: too late                                                                        start 2.1 epoch 1 m2
        "#]],
    );
}

#[test]
fn what_waits_can_come_before_all_others_after_all() {
    check(
        "say; say; say; put 3 first; ready; put 3 first; stopped; ready; hold 2; put 2 first; put 2 first; stopped",
        expect![[r#"
            say           queued m1, turn 1 of m1, attempt 1.1        start 1.1 m1
            say           queued m2                                   start 1.1 m1
            say           queued m3                                   start 1.1 m1
            put 3 first   reordered m3 m2, stop turn 1 (asked)        stop 1.1 m1
            ready                                                     stop 1.1 m1
            put 3 first                                               stop 1.1 m1
            stopped       turn 1 stopped, turn 2 of m3, attempt 2.1   start 2.1 m3
            ready         handed 2.1                                  work 2.1 m3
            hold 2        held m2 (asked, until 5000)                 work 2.1 m3
            put 2 first   released m2, stop turn 2 (asked)            stop 2.1 m3
            put 2 first                                               stop 2.1 m3
            stopped       turn 2 stopped, turn 3 of m2, attempt 3.1   start 3.1 m2
        "#]],
    );
    // What is under way outside goes on, and what is to come first does.
    check(
        "say; ready; finished; undo 1; say; say; put 3 first; undone",
        expect![[r#"
        say           queued m1, turn 1 of m1, attempt 1.1       start 1.1 m1
        ready         handed 1.1                                 work 1.1 m1
        finished      turn 1 answered                            nothing
        undo 1        errand 0.1 to undo 1                       errand 0.1 to undo 1
        say           queued m2                                  errand 0.1 to undo 1
        say           queued m3                                  errand 0.1 to undo 1
        put 3 first   reordered m3 m2                            errand 0.1 to undo 1
        undone        turn 1 undone, turn 2 of m3, attempt 2.1   start 2.1 m3
    "#]],
    );
    check(
        "say; ready; say; set model big; stop; stopped; ready; put 2 first; end; put 2 first",
        expect![[r#"
            say             queued m1, turn 1 of m1, attempt 1.1                                                start 1.1 m1
            ready           handed 1.1                                                                          work 1.1 m1
            say             queued m2                                                                           work 1.1 m1
            set model big   to set model big                                                                    work 1.1 m1
            stop            stop turn 1 (asked)                                                                 stop 1.1 m1
            stopped         turn 1 stopped, epoch 1 in /srv/shop model big, held m2 (other scope, until 5000)   nothing until 5000
            ready           stale ready of 1.1                                                                  nothing until 5000
            put 2 first     no: another scope                                                                   nothing until 5000
            end             refused m2 (session ended), ended (asked)                                           nothing
            put 2 first     no: the session has ended                                                           nothing
        "#]],
    );
}

#[test]
fn what_was_said_into_a_turn_ends_with_it_however_that_ends() {
    for (story, outcome) in [
        ("finished", Outcome::Answered),
        ("lost", Outcome::Interrupted),
        ("crash; lost", Outcome::Interrupted),
        ("failed transient", Outcome::Failed(Failure::Transient)),
        ("stop 2; missed 2; stopped", Outcome::Stopped),
        ("revoke 2; missed 2; stopped", Outcome::Stopped),
        ("end; missed 2; stopped", Outcome::Stopped),
        ("wake; stopped", Outcome::TimedOut),
    ] {
        let world = World::after(&format!("say; ready; steer; {story}"));
        let over = crate::ledger::Receipt::Over(outcome);
        assert!(world.ledger.messages.values().all(|receipt| *receipt == over), "after `{story}`");
    }
}

#[test]
fn words_that_missed_a_turn_that_took_too_long_wait_like_the_others() {
    check(
        "say; ready; steer; wake; missed 2; stopped; release 2",
        expect![[r#"
        say         queued m1, turn 1 of m1, attempt 1.1                    start 1.1 m1
        ready       handed 1.1                                              work 1.1 m1
        steer       queued m2, steered m2 into turn 1                       work 1.1 m1 +m2
        wake        stop turn 1 (time limit)                                stop 1.1 m1 +m2
        missed 2    missed m2                                               stop 1.1 m1
        stopped     turn 1 timed out, held m2 (after failure, until 6000)   nothing until 6000
        release 2   released m2, turn 2 of m2, attempt 2.1                  start 2.1 m2
    "#]],
    );
}

// The agent's memory.

#[test]
fn its_memory_follows_into_another_scope_if_it_can() {
    check(
        "say; ready as n1; finished; enter; entered; say; ready as n1; finished; exit; say; ready; finished",
        expect![[r#"
            say           queued m1, turn 1 of m1, attempt 1.1                   start 1.1 m1
            ready as n1   confirmed n1, handed 1.1                               work 1.1 m1 as n1
            finished      turn 1 answered                                        nothing
            enter         to enter w1, errand 0.1 to enter w1                    errand 0.1 to enter w1
            entered       epoch 1 in /srv/w1                                     nothing
            say           queued m2 under 1, turn 2 of m2, attempt 2.1 epoch 1   start 2.1 epoch 1 m2 after n1
            ready as n1   confirmed n1 under 1, handed 2.1                       work 2.1 epoch 1 m2 as n1
            finished      turn 2 answered                                        nothing
            exit          to exit, epoch 2 in /srv/shop                          nothing
            say           queued m3 under 2, turn 3 of m3, attempt 3.1 epoch 2   start 3.1 epoch 2 m3 after n1
            ready         handed 3.1                                             work 3.1 epoch 2 m3 after n1
            finished      turn 3 answered                                        nothing
        "#]],
    );
}

#[test]
fn a_memory_that_did_not_follow_is_told_again() {
    check(
        "say; ready as n1; finished; enter; entered; say; failed gone; wake; ready as n2; finished; say",
        expect![[r#"
            say           queued m1, turn 1 of m1, attempt 1.1                   start 1.1 m1
            ready as n1   confirmed n1, handed 1.1                               work 1.1 m1 as n1
            finished      turn 1 answered                                        nothing
            enter         to enter w1, errand 0.1 to enter w1                    errand 0.1 to enter w1
            entered       epoch 1 in /srv/w1                                     nothing
            say           queued m2 under 1, turn 2 of m2, attempt 2.1 epoch 1   start 2.1 epoch 1 m2 after n1
            failed gone   attempt 2.1 failed (gone), again at 10                 nothing until 10
            wake          attempt 2.2 epoch 1                                    start 2.2 epoch 1 m2 told again
            ready as n2   confirmed n2 under 1, handed 2.2                       work 2.2 epoch 1 m2 as n2
            finished      turn 2 answered                                        nothing
            say           queued m3 under 1, turn 3 of m3, attempt 3.1 epoch 1   start 3.1 epoch 1 m3 as n2
        "#]],
    );
}

#[test]
fn what_was_told_again_and_came_to_no_answer_is_told_again_in_another_conversation() {
    check(
        "say; ready as n1; finished; set agent other; say; ready as n2; failed busy; say; ready as n3; lost; \
         set model big; say; ready as n4; finished as n4; say",
        expect![[r#"
            say               queued m1, turn 1 of m1, attempt 1.1                           start 1.1 m1
            ready as n1       confirmed n1, handed 1.1                                       work 1.1 m1 as n1
            finished          turn 1 answered                                                nothing
            set agent other   to set agent other, epoch 1 in /srv/shop agent other           nothing
            say               queued m2 under 1, turn 2 of m2, attempt 2.1 epoch 1           start 2.1 epoch 1 m2 told again
            ready as n2       confirmed n2 under 1, handed 2.1                               work 2.1 epoch 1 m2 as n2
            failed busy       turn 2 failed (busy)                                           nothing
            say               queued m3 under 1, turn 3 of m3, attempt 3.1 epoch 1           start 3.1 epoch 1 m3 told again
            ready as n3       confirmed n3 under 1, handed 3.1                               work 3.1 epoch 1 m3 as n3
            lost              turn 3 interrupted                                             nothing
            set model big     to set model big, epoch 2 in /srv/shop agent other model big   nothing
            say               queued m4 under 2, turn 4 of m4, attempt 4.1 epoch 2           start 4.1 epoch 2 m4 told again
            ready as n4       confirmed n4 under 2, handed 4.1                               work 4.1 epoch 2 m4 as n4
            finished as n4    turn 4 answered                                                nothing
            say               queued m5 under 2, turn 5 of m5, attempt 5.1 epoch 2           start 5.1 epoch 2 m5 as n4
        "#]],
    );
}

#[test]
fn a_memory_that_has_followed_and_came_to_no_answer_is_still_its_own() {
    check(
        "say; ready as n1; finished; enter; entered; say; ready as n1; failed busy; say",
        expect![[r#"
        say           queued m1, turn 1 of m1, attempt 1.1                   start 1.1 m1
        ready as n1   confirmed n1, handed 1.1                               work 1.1 m1 as n1
        finished      turn 1 answered                                        nothing
        enter         to enter w1, errand 0.1 to enter w1                    errand 0.1 to enter w1
        entered       epoch 1 in /srv/w1                                     nothing
        say           queued m2 under 1, turn 2 of m2, attempt 2.1 epoch 1   start 2.1 epoch 1 m2 after n1
        ready as n1   confirmed n1 under 1, handed 2.1                       work 2.1 epoch 1 m2 as n1
        failed busy   turn 2 failed (busy)                                   nothing
        say           queued m3 under 1, turn 3 of m3, attempt 3.1 epoch 1   start 3.1 epoch 1 m3 as n1
    "#]],
    );
}

#[test]
fn a_memory_that_is_lost_before_it_answered_here_is_told_again() {
    check(
        "say; ready as n1; finished; set model big; say; ready as n1; lost; say; failed gone; wake",
        expect![[r#"
            say             queued m1, turn 1 of m1, attempt 1.1                   start 1.1 m1
            ready as n1     confirmed n1, handed 1.1                               work 1.1 m1 as n1
            finished        turn 1 answered                                        nothing
            set model big   to set model big, epoch 1 in /srv/shop model big       nothing
            say             queued m2 under 1, turn 2 of m2, attempt 2.1 epoch 1   start 2.1 epoch 1 m2 after n1
            ready as n1     confirmed n1 under 1, handed 2.1                       work 2.1 epoch 1 m2 as n1
            lost            turn 2 interrupted                                     nothing
            say             queued m3 under 1, turn 3 of m3, attempt 3.1 epoch 1   start 3.1 epoch 1 m3 as n1
            failed gone     attempt 3.1 failed (gone), again at 10                 nothing until 10
            wake            attempt 3.2 epoch 1                                    start 3.2 epoch 1 m3 told again
        "#]],
    );
}

#[test]
fn another_agent_is_told_what_was_said_and_going_back_revives_no_name() {
    check(
        "set agent b; say; ready as n1; finished; set agent scripted; say; ready as n2; lost; set agent b; say",
        expect![[r#"
            set agent b          to set agent b, epoch 1 in /srv/shop agent b           nothing
            say                  queued m1 under 1, turn 1 of m1, attempt 1.1 epoch 1   start 1.1 epoch 1 m1
            ready as n1          confirmed n1 under 1, handed 1.1                       work 1.1 epoch 1 m1 as n1
            finished             turn 1 answered                                        nothing
            set agent scripted   to set agent scripted, epoch 2 in /srv/shop            nothing
            say                  queued m2 under 2, turn 2 of m2, attempt 2.1 epoch 2   start 2.1 epoch 2 m2 told again
            ready as n2          confirmed n2 under 2, handed 2.1                       work 2.1 epoch 2 m2 as n2
            lost                 turn 2 interrupted                                     nothing
            set agent b          to set agent b, epoch 3 in /srv/shop agent b           nothing
            say                  queued m3 under 3, turn 3 of m3, attempt 3.1 epoch 3   start 3.1 epoch 3 m3 told again
        "#]],
    );
}

#[test]
fn gone_counts_only_for_a_name_confirmed_under_this_epoch() {
    check(
        "say; ready as n1; finished; set model big; say; ready; failed gone; say; ready as n2; finished; say; failed gone",
        expect![[r#"
            say             queued m1, turn 1 of m1, attempt 1.1                   start 1.1 m1
            ready as n1     confirmed n1, handed 1.1                               work 1.1 m1 as n1
            finished        turn 1 answered                                        nothing
            set model big   to set model big, epoch 1 in /srv/shop model big       nothing
            say             queued m2 under 1, turn 2 of m2, attempt 2.1 epoch 1   start 2.1 epoch 1 m2 after n1
            ready           handed 2.1                                             work 2.1 epoch 1 m2 after n1
            failed gone     turn 2 failed (transient)                              nothing
            say             queued m3 under 1, turn 3 of m3, attempt 3.1 epoch 1   start 3.1 epoch 1 m3 after n1
            ready as n2     confirmed n2 under 1, handed 3.1                       work 3.1 epoch 1 m3 as n2
            finished        turn 3 answered                                        nothing
            say             queued m4 under 1, turn 4 of m4, attempt 4.1 epoch 1   start 4.1 epoch 1 m4 as n2
            failed gone     turn 4 failed (gone), ended (gone)                     nothing
        "#]],
    );
}

#[test]
fn a_fork_has_the_memory_of_its_origin_until_it_has_its_own() {
    check(
        "open as a fork; say; failed transient; wake; ready; finished; say",
        expect![[r#"
        open as a fork     opened as a fork of s9 after 4                nothing
        say                queued m1, turn 1 of m1, attempt 1.1          start 1.1 m1 forked of s9 after 4
        failed transient   attempt 1.1 failed (transient), again at 10   nothing until 10
        wake               attempt 1.2                                   start 1.2 m1 forked of s9 after 4
        ready              handed 1.2                                    work 1.2 m1 forked of s9 after 4
        finished           turn 1 answered                               nothing
        say                queued m2, turn 2 of m2, attempt 2.1          start 2.1 m2
    "#]],
    );
    check(
        "open as a fork; say; ready as n1; lost; say; failed gone; wake",
        expect![[r#"
            open as a fork   opened as a fork of s9 after 4                nothing
            say              queued m1, turn 1 of m1, attempt 1.1          start 1.1 m1 forked of s9 after 4
            ready as n1      confirmed n1, handed 1.1                      work 1.1 m1 as n1
            lost             turn 1 interrupted                            nothing
            say              queued m2, turn 2 of m2, attempt 2.1          start 2.1 m2 forked of s9 after 4
            failed gone      attempt 2.1 failed (transient), again at 10   nothing until 10
            wake             attempt 2.2                                   start 2.2 m2 forked of s9 after 4
        "#]],
    );
}

// Answers.

#[test]
fn a_rule_a_policy_and_a_person_answer_alike_and_the_first_one_wins() {
    check(
        "say; ready; asks; asks; offers 3; wonders; answer 1 yes by rule 3; answer 1 no; answer 2 no by policy; answer 3 chose 2; \
         answer 4 said the blue one; answer 4 yes by rule 3",
        expect![[r#"
            say                          queued m1, turn 1 of m1, attempt 1.1   start 1.1 m1
            ready                        handed 1.1                             work 1.1 m1
            asks                         asked a1 until 200                     work 1.1 m1
            asks                         asked a2 until 200                     work 1.1 m1
            offers 3                     asked a3 until 200                     work 1.1 m1
            wonders                      asked a4 until 200                     work 1.1 m1
            answer 1 yes by rule 3       answered a1 yes (rule 3)               work 1.1 m1 a1: yes
            answer 1 no                  no: too late                           work 1.1 m1 a1: yes
            answer 2 no by policy        answered a2 no (policy)                work 1.1 m1 a1: yes a2: no
            answer 3 chose 2             answered a3 option 2                   work 1.1 m1 a1: yes a2: no a3: option 2
            answer 4 said the blue one   answered a4 "the blue one"             work 1.1 m1 a1: yes a2: no a3: option 2 a4: "the blue one"
            answer 4 yes by rule 3       no: too late                           work 1.1 m1 a1: yes a2: no a3: option 2 a4: "the blue one"
        "#]],
    );
}

#[test]
fn what_is_no_answer_to_a_question_leaves_it_open() {
    check(
        "say; ready; asks; offers 2; wonders; answer 1 said yes; answer 1 chose 0; answer 2 yes by rule 3; answer 2 chose 2; \
         answer 3 chose 0; answer 3 no; answer 2 chose 1; answer 2 said late",
        expect![[r#"
            say                      queued m1, turn 1 of m1, attempt 1.1   start 1.1 m1
            ready                    handed 1.1                             work 1.1 m1
            asks                     asked a1 until 200                     work 1.1 m1
            offers 2                 asked a2 until 200                     work 1.1 m1
            wonders                  asked a3 until 200                     work 1.1 m1
            answer 1 said yes        no: no answer to that                  work 1.1 m1
            answer 1 chose 0         no: no answer to that                  work 1.1 m1
            answer 2 yes by rule 3   no: no answer to that                  work 1.1 m1
            answer 2 chose 2         no: no answer to that                  work 1.1 m1
            answer 3 chose 0         no: no answer to that                  work 1.1 m1
            answer 3 no              answered a3 no                         work 1.1 m1 a3: no
            answer 2 chose 1         answered a2 option 1                   work 1.1 m1 a3: no a2: option 1
            answer 2 said late       no: too late                           work 1.1 m1 a3: no a2: option 1
        "#]],
    );
}

#[test]
fn nobody_can_be_made_to_say_something() {
    check(
        "say; ready; asks; answer 1 yes by nobody; answer 1 no by nobody; wake",
        expect![[r#"
        say                      queued m1, turn 1 of m1, attempt 1.1   start 1.1 m1
        ready                    handed 1.1                             work 1.1 m1
        asks                     asked a1 until 200                     work 1.1 m1
        answer 1 yes by nobody                                          work 1.1 m1
        answer 1 no by nobody                                           work 1.1 m1
        wake                     answered a1 no (nobody answered)       work 1.1 m1 a1: no
    "#]],
    );
}

// A chore changes nothing of the session: it is begun while nothing goes on, or refused.

#[test]
fn a_worktree_goes_and_comes_back_only_while_nothing_goes_on() {
    check(
        "enter w1; remove w1; entered; remove w1; remove w2; restore w1; exit; remove w1; say; remove w1; set model big; ready; \
         restore w1; finished; no slot; say; set model small; remove w1",
        expect![[r#"
            enter w1          to enter w1, errand 0.1 to enter w1                    errand 0.1 to enter w1
            remove w1         no: busy                                               errand 0.1 to enter w1
            entered           epoch 1 in /srv/w1                                     nothing
            remove w1         no: in a worktree already                              nothing
            remove w2                                                                nothing
            restore w1                                                               nothing
            exit              to exit, epoch 2 in /srv/shop                          nothing
            remove w1                                                                nothing
            say               queued m1 under 2, turn 1 of m1, attempt 1.1 epoch 2   start 1.1 epoch 2 m1
            remove w1         no: busy                                               start 1.1 epoch 2 m1
            set model big     to set model big                                       start 1.1 epoch 2 m1
            ready             handed 1.1                                             work 1.1 epoch 2 m1
            restore w1        no: busy                                               work 1.1 epoch 2 m1
            finished          turn 1 answered, epoch 3 in /srv/shop model big        nothing
            no slot                                                                  nothing
            say               queued m2 under 3, crowded until 50                    nothing until 50
            set model small   to set model small after m2                            nothing until 50
            remove w1         no: another change waits                               nothing until 50
        "#]],
    );
}

#[test]
fn an_ended_session_has_worktrees_too() {
    check(
        "enter w1; entered; end; remove w1; restore w1",
        expect![[r#"
            enter w1     to enter w1, errand 0.1 to enter w1   errand 0.1 to enter w1
            entered      epoch 1 in /srv/w1                    nothing
            end          ended (asked)                         nothing
            remove w1                                          nothing
            restore w1                                         nothing
        "#]],
    );
}
