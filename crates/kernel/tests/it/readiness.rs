//! Readiness, part by part: it waits, it passes, it times out, and what is advisory never blocks.

use crate::story::World;
use homing_kernel::*;

/// Everything outside is as it should be.
const FINE: Seen = Seen {
    directory: Look::Fine,
    agent: Look::Fine,
    commands: Look::Fine,
    model: Look::Fine,
    lease: Look::Fine,
    quota: Look::Fine,
    is_slash: false,
};

/// Somebody has been looking since 5 and does so until 100.
const LOOKING: Look = Look::Unknown { since: Moment(5), until: Moment(100) };
const MISSING: Look = Look::Bad { why: Trouble::Missing };

/// After this story, with this seen, at this moment: `ready`, or what is in the way, why, until when and what to do.
fn check(story: &str, seen: &Seen, now: u64, expected: &str) {
    let world = World::after(story);
    let told = match readiness(&world.session, seen, Moment(now)) {
        Readiness::Ready => "ready".into(),
        Readiness::Waiting { parts } => format!("waiting: {}", in_words(&parts)),
        Readiness::Blocked { parts } => format!("blocked: {}", in_words(&parts)),
    };
    assert_eq!(told, expected, "after `{story}` at {now} with {seen:?}");
}

fn in_words(parts: &[ReadinessPart]) -> String {
    let words = parts.iter().map(|part| {
        let why = part.why.expect("what is not fine has a reason").word();
        let remedy = part.remedy.expect("what is in the way has a remedy").word();
        let until = part.until.map(|until| format!(" until {}", until.0)).unwrap_or_default();
        format!("{} {why}{until} ({remedy})", part.name.word())
    });
    words.collect::<Vec<_>>().join(", ")
}

fn part(story: &str, seen: &Seen, now: u64, name: PartName) -> ReadinessPart {
    let parts = readiness_parts(&World::after(story).session, seen, Moment(now));
    *parts.iter().find(|part| part.name == name).expect("every part is told")
}

#[test]
fn a_session_with_nothing_in_its_way_is_ready() {
    for story in
        ["", "say", "say; ready", "say; say", "say; ready; finished", "set model big", "enter; entered"]
    {
        check(story, &FINE, 0, "ready");
    }
}

#[test]
fn every_part_is_told_once_and_in_one_order() {
    let parts = readiness_parts(&World::after("").session, &FINE, Moment(0));
    assert_eq!(parts.map(|part| part.name), PartName::ALL);
    assert!(parts.iter().all(|part| part.state == PartState::Fine && part.why.is_none()));
}

#[test]
fn a_directory_waits_passes_and_times_out() {
    let looking = Seen { directory: LOOKING, ..FINE };
    check("", &looking, 99, "waiting: directory unknown until 100 (wait)");
    check("", &FINE, 99, "ready");
    check("", &looking, 100, "blocked: directory timed_out until 100 (relink)");
    check("", &Seen { directory: MISSING, ..FINE }, 0, "blocked: directory missing (relink)");
    assert_eq!(part("", &looking, 0, PartName::Directory).since, Some(Moment(5)));
}

#[test]
fn a_change_that_waits_and_an_errand_under_way_are_waited_for() {
    let missing = Seen { directory: MISSING, ..FINE };
    check("say; ready; set model big", &FINE, 0, "waiting: directory changing (keep_scope)");
    check("say; ready; set model big; finished", &FINE, 0, "ready");
    check("say; ready; set model big; keep", &FINE, 0, "ready");
    check("enter", &FINE, 0, "waiting: directory errand (wait)");
    check("say; ready; finished; undo 1", &FINE, 0, "waiting: directory errand (wait)");
    check("say; ready; finished; undo 1; undone", &FINE, 0, "ready");
    // Another model does not bring the directory back; another directory does.
    check("say; ready; set model big", &missing, 0, "blocked: directory missing (relink)");
    check("say; ready; relink /srv/new", &missing, 0, "waiting: directory changing (keep_scope)");
}

#[test]
fn an_agent_waits_passes_and_times_out() {
    let looking = Seen { agent: LOOKING, ..FINE };
    check("", &looking, 99, "waiting: agent unknown until 100 (wait)");
    check("", &FINE, 99, "ready");
    check("", &looking, 100, "blocked: agent timed_out until 100 (mend_agent)");
    check("", &Seen { agent: MISSING, ..FINE }, 0, "blocked: agent missing (mend_agent)");
    let signed_out = Look::Bad { why: Trouble::SignedOut };
    check("", &Seen { agent: signed_out, ..FINE }, 0, "blocked: agent signed_out (sign_in)");
    let failing = Look::Bad { why: Trouble::Failing };
    check("", &Seen { agent: failing, ..FINE }, 0, "blocked: agent failing (read_failure)");
}

#[test]
fn a_command_of_the_agent_waits_for_the_list_of_them_passes_and_goes_on_without() {
    let looking = Seen { commands: LOOKING, is_slash: true, ..FINE };
    check("", &looking, 99, "waiting: commands unknown until 100 (wait)");
    check("saw commands", &looking, 99, "ready");
    check("", &looking, 100, "ready");
    let overlooked = part("", &looking, 100, PartName::Commands);
    assert_eq!((overlooked.state, overlooked.why), (PartState::Overlooked, Some(PartWhy::TimedOut)));
    // What was learned in another scope is not known here.
    check("saw commands; set model big", &looking, 99, "waiting: commands unknown until 100 (wait)");
}

#[test]
fn a_list_of_commands_that_never_comes_blocks_nobody() {
    let never = Look::Unknown { since: Moment(0), until: Moment(u64::MAX) };
    for commands in [never, LOOKING, MISSING] {
        for now in [0, 99, 100, 1_000_000] {
            check("", &Seen { commands, ..FINE }, now, "ready");
            assert!(part("", &Seen { commands, ..FINE }, now, PartName::Commands).advisory);
        }
    }
    for (commands, now) in [(LOOKING, 100), (LOOKING, 1_000_000), (MISSING, 0)] {
        check("", &Seen { commands, is_slash: true, ..FINE }, now, "ready");
    }
}

#[test]
fn a_model_that_was_chosen_waits_passes_and_times_out_and_any_other_does_not_matter() {
    let looking = Seen { model: LOOKING, ..FINE };
    check("set model big", &looking, 99, "waiting: model unknown until 100 (wait)");
    check("set model big", &FINE, 99, "ready");
    check("set model big", &looking, 100, "blocked: model timed_out until 100 (choose_model)");
    check("set model big", &Seen { model: MISSING, ..FINE }, 0, "blocked: model missing (choose_model)");
    for model in [LOOKING, MISSING] {
        check("", &Seen { model, ..FINE }, 1_000, "ready");
        check("set model big; set model default", &Seen { model, ..FINE }, 1_000, "ready");
    }
}

#[test]
fn a_lease_waits_passes_and_times_out() {
    let looking = Seen { lease: LOOKING, ..FINE };
    check("", &looking, 99, "waiting: lease unknown until 100 (wait)");
    check("", &FINE, 99, "ready");
    check("", &looking, 100, "blocked: lease timed_out until 100 (mend_server)");
}

#[test]
fn a_queue_in_which_all_is_held_blocks_passes_and_runs_out() {
    let failed = "say; say; ready; failed refused";
    check(failed, &FINE, 0, "blocked: queue held_after_failure until 5000 (release)");
    check(&format!("{failed}; release 2"), &FINE, 0, "ready");
    check(failed, &FINE, 5_000, "ready");
    check("say; ready; say; hold 2", &FINE, 0, "blocked: queue held_asked until 5000 (release)");
    let moved = "say; ready; say; set model big; finished";
    check(moved, &FINE, 0, "blocked: queue held_other_scope until 5000 (place)");
    // Whoever comes after it is not kept from anything.
    check("say; ready; say; say; hold 2", &FINE, 0, "ready");
    check(&format!("{moved}; say"), &FINE, 0, "blocked: queue held_other_scope until 5000 (place)");
}

#[test]
fn a_question_is_waited_for_until_it_is_answered_or_its_time_is_over() {
    let asked = "say; ready; asks";
    check(asked, &FINE, 199, "waiting: approvals asked until 200 (answer)");
    check(&format!("{asked}; answer 1 yes"), &FINE, 199, "ready");
    check(&format!("{asked}; takes back"), &FINE, 199, "ready");
    check(asked, &FINE, 200, "ready");
    check(
        &format!("{asked}; wake +50; asks; answer 1 no"),
        &FINE,
        60,
        "waiting: approvals asked until 250 (answer)",
    );
}

#[test]
fn a_full_house_is_waited_for_until_it_is_asked_again() {
    check("no slot; say", &FINE, 49, "waiting: quota crowded until 50 (make_room)");
    check("no slot; say; a slot; wake", &FINE, 50, "ready");
    check("no slot; say", &FINE, 50, "ready");
    check("no slot; say; withdraw 1", &FINE, 0, "ready");
    let looking = Seen { quota: LOOKING, ..FINE };
    check("", &looking, 99, "waiting: quota unknown until 100 (wait)");
    check("", &looking, 100, "blocked: quota timed_out until 100 (make_room)");
    let full = Look::Bad { why: Trouble::Full };
    check("", &Seen { quota: full, ..FINE }, 0, "blocked: quota full (make_room)");
}

#[test]
fn an_ended_session_is_blocked_whatever_else_is_seen() {
    let bad = Seen { directory: MISSING, agent: MISSING, ..FINE };
    for story in ["end", "say; ready; end", "enter; end"] {
        check(story, &FINE, 0, "blocked: queue ended (begin_anew)");
        check(story, &bad, 0, "blocked: queue ended (begin_anew)");
    }
}

#[test]
fn what_blocks_is_told_before_what_is_waited_for() {
    let seen = Seen { directory: MISSING, agent: LOOKING, model: LOOKING, ..FINE };
    check("", &seen, 0, "blocked: directory missing (relink)");
    check(
        "",
        &Seen { directory: LOOKING, ..seen },
        0,
        "waiting: directory unknown until 100 (wait), agent unknown until 100 (wait)",
    );
    check("", &seen, 100, "blocked: directory missing (relink), agent timed_out until 100 (mend_agent)");
}

/// Every combination of looks: only what is required and bad, or unknown for too long, blocks.
#[test]
fn in_every_combination_only_what_is_required_blocks() {
    let looks = [Look::Fine, LOOKING, MISSING];
    let session = World::after("set model big").session;
    let mut combinations = 0;
    for number in 0..3_usize.pow(6) * 2 {
        let look = |place: u32| looks[number / 2 / 3_usize.pow(place) % 3];
        let seen = Seen {
            directory: look(0),
            agent: look(1),
            commands: look(2),
            model: look(3),
            lease: look(4),
            quota: look(5),
            is_slash: number % 2 == 1,
        };
        let required = [seen.directory, seen.agent, seen.model, seen.lease, seen.quota];
        for now in [Moment(99), Moment(100)] {
            let late = |look: &Look| *look == LOOKING && now == Moment(100);
            let blocked = required.iter().any(|look| *look == MISSING || late(look));
            let slash_waits = seen.is_slash && seen.commands == LOOKING && now == Moment(99);
            let waits = required.contains(&LOOKING) || slash_waits;
            let told = readiness(&session, &seen, now);
            assert_eq!(matches!(told, Readiness::Blocked { .. }), blocked, "{seen:?} at {now:?}");
            assert_eq!(matches!(told, Readiness::Waiting { .. }), !blocked && waits, "{seen:?} at {now:?}");
            combinations += 1;
        }
    }
    assert_eq!(combinations, 2_916);
}
