//! Long random stories, compared step by step with the model.
//!
//! A story that tells the two apart is made as short as possible and printed with its seed. `HOMING_SEED` tells other
//! stories (or one of them again), `HOMING_STORIES` more of them.

use crate::ledger::Receipt;
use crate::model::Model;
use crate::story::{Told, World, step};
use homing_kernel::{Due, Failure, HoldWhy, Outcome};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, RngSeed, TestCaseError, TestError, TestRunner};
use std::cell::RefCell;
use std::collections::BTreeSet;

const STEPS_MAX: usize = 300;
const SEED: u64 = 4747;

#[test]
fn random_stories_go_as_the_laws_say() {
    check(any_step);
}

#[test]
fn random_stories_about_scopes_go_as_the_laws_say() {
    check(|dice| match dice.roll(4) {
        0 | 1 => scope_step(dice),
        2 => good_step(dice),
        _ => any_step(dice),
    });
}

#[test]
fn random_stories_that_mostly_go_well_go_as_the_laws_say() {
    check(|dice| if dice.roll(4) < 3 { good_step(dice) } else { any_step(dice) });
}

fn check(step: fn(&mut Dice) -> String) {
    let story = move |rolls: Vec<u64>| rolls.into_iter().map(|roll| step(&mut Dice(roll))).collect();
    let stories = prop::collection::vec(any::<u64>(), 1..STEPS_MAX).prop_map(story);
    let seed = from_env("HOMING_SEED", SEED);
    let cases = from_env("HOMING_STORIES", 300) as u32;
    let config = Config {
        cases,
        rng_algorithm: RngAlgorithm::ChaCha,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        ..Config::default()
    };
    let reached = RefCell::new(BTreeSet::new());
    let outcome = TestRunner::new(config).run(&stories, |story: Vec<String>| {
        let world = compare(&story).map_err(TestCaseError::fail)?;
        reached.borrow_mut().extend(world.ledger.messages.into_values());
        Ok(())
    });
    match outcome {
        Ok(()) => {
            let reached = reached.into_inner();
            assert!(reached.is_superset(&everywhere()), "the stories reach no more than {reached:?}");
        }
        Err(TestError::Fail(why, story)) => {
            panic!("{why}\nin the story `{}`\nfound with HOMING_SEED={seed}", story.join("; "))
        }
        Err(TestError::Abort(why)) => panic!("gave up: {why}"),
    }
}

/// Where a message can come to. Stories that do not get there prove nothing about it.
fn everywhere() -> BTreeSet<Receipt> {
    let failed = Failure::ALL.map(Outcome::Failed);
    let over = [Outcome::Answered, Outcome::Stopped, Outcome::Interrupted, Outcome::TimedOut];
    let early = [Receipt::Waiting, Receipt::Running, Receipt::Withdrawn, Receipt::Refused];
    let held = [HoldWhy::Asked, HoldWhy::AfterFailure, HoldWhy::OtherScope].map(Receipt::Held);
    over.into_iter().chain(failed).map(Receipt::Over).chain(early).chain(held).collect()
}

fn from_env(name: &str, or: u64) -> u64 {
    std::env::var(name)
        .map_or(or, |value| value.parse().unwrap_or_else(|_| panic!("{name} must be a number")))
}

fn compare(story: &[String]) -> Result<World, String> {
    let mut world = World::open();
    let mut model = Model::open();
    for (place, text) in story.iter().enumerate() {
        let event = world.event(&step(text));
        let expected = model.happen(&event);
        let at = |why: String| format!("at step {} (`{text}`), {why}", place + 1);
        let told = world.happen(event).map_err(&at)?;
        let refused = match told {
            Told::Facts(_) => Ok(()),
            Told::Refused(refusal) => Err(refusal),
        };
        same("the answer", &refused, &expected).map_err(&at)?;
        agree(&world, &model).map_err(&at)?;
    }
    Ok(world)
}

fn agree(world: &World, model: &Model) -> Result<(), String> {
    let session = &world.session;
    same("the receipts", &world.ledger.messages, &model.messages)?;
    same("the turns", &world.ledger.turns, &model.turns)?;
    same("the running message", &session.running().map(|running| running.message), &model.running())?;
    same("the end", &session.ended(), &model.ended)?;
    same("the questions", &world.ledger.questions, &model.questions)?;
    same("the agent's name", &world.ledger.name(), &model.name())?;
    same("the epoch", &session.epoch(), &model.epoch)?;
    same("the scope", &session.scope(), &Some(&model.here).filter(|_| model.ended.is_none()))?;
    same("the change that waits", &session.pending().map(|pending| &pending.change), &model.wanted())?;
    let away = session.away().map(|away| (away.errand.number, &away.what));
    same("what is done outside", &away, &model.away())?;
    same("what came too late", &world.ledger.stale_errands.len(), &model.late_count)?;
    if let Due::Run(run) = session.due(world.given.term) {
        same("how it begins", &run.begin, &model.begin())?;
        same("what was said into it", &run.steered, &model.also())?;
    }
    same("the next alarm", &session.wake_at(world.given.term), &model.alarm())
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, kernel: &T, model: &T) -> Result<(), String> {
    if kernel == model {
        Ok(())
    } else {
        Err(format!("{what}: the kernel says {kernel:?}, the laws {model:?}"))
    }
}

/// A step of a good day.
fn good_step(dice: &mut Dice) -> String {
    match dice.roll(12) {
        0..3 => "say".into(),
        3..6 => "ready as n1".into(),
        6..9 => "finished as n1".into(),
        9 => "asks".into(),
        10 => format!("answer {} yes", dice.number()),
        _ => "wake +7".into(),
    }
}

/// Anything that may happen. Ends are rare, for little can happen after them.
fn any_step(dice: &mut Dice) -> String {
    match dice.roll(200) {
        0..30 => "say".into(),
        30..55 => format!("ready{}{}", dice.native(), dice.of()),
        55..70 => format!("finished{}{}", dice.native(), dice.of()),
        70..75 => format!("failed transient{}", dice.of()),
        75..79 => format!("failed busy{}", dice.of()),
        79..81 => format!("failed refused{}", dice.of()),
        81 if dice.roll(2) == 0 => format!("failed gone{}", dice.of()),
        82..90 => format!("lost{}", dice.of()),
        90..95 => format!("stopped{}", dice.of()),
        95..100 => "asks".into(),
        100..102 => "asks again".into(),
        102 => "takes back".into(),
        103..105 => format!("answer {} yes", dice.number()),
        105 => format!("answer {} no", dice.number()),
        106 => format!("answer last {}", dice.answer()),
        107..111 => "stop".into(),
        111..117 => format!("stop {}", dice.number()),
        117..121 => format!("withdraw {}", dice.number()),
        121..126 => format!("hold {}", dice.number()),
        126..134 => format!("release {}", dice.number()),
        134..136 => format!("revoke {}", dice.number()),
        136 => "hand over".into(),
        137..142 => format!("edit {} seen {}", dice.number(), dice.roll(3)),
        142..145 => "reorder back to front".into(),
        145..147 => format!("reorder {} {}", dice.number(), dice.number()),
        147..162 => "wake".into(),
        162..170 => format!("wake +{}", dice.roll(300)),
        170 => format!("wake +{}", dice.roll(6_000)),
        171..180 => "crash".into(),
        180..183 => "no slot".into(),
        183..188 => "a slot".into(),
        188 => format!("takes back {}{}", dice.number(), dice.of()),
        189 => "slot unasked".into(),
        190 => "policy go on".into(),
        191..193 => "policy hold".into(),
        193 if dice.roll(3) == 0 => "end".into(),
        194..199 => scope_step(dice),
        _ => "say".into(),
    }
}

/// Where and how, what is asked of the outside, and words that know where they belong.
fn scope_step(dice: &mut Dice) -> String {
    let now = if dice.roll(5) == 0 { " now" } else { "" };
    match dice.roll(54) {
        0..4 => format!("enter{now}"),
        4..6 => format!("exit{now}"),
        6..8 => format!("set model m{}{now}", dice.roll(3)),
        8 => format!("set model default{now}"),
        9 => format!("set agent a{}{now}", dice.roll(2)),
        10 => format!("set mode m{}{now}", dice.roll(2)),
        11 => format!("relink /srv/d{}{now}", dice.roll(2)),
        12 => format!("back {} now", dice.number()),
        13 => "keep".into(),
        14..17 => format!("undo {}", 1 + dice.roll(4)),
        17 => format!("undo {} of epoch {}", dice.roll(9), dice.roll(6)),
        18..21 => format!("entered{}", dice.errand()),
        21..23 => format!("undone{}", dice.errand()),
        23 => format!("in vain enter{}", dice.errand()),
        24 => format!("in vain undo{}", dice.errand()),
        25..28 => format!("saw {}{}", dice.kind(), dice.under()),
        28 => format!("in vain {}{}", dice.kind(), dice.under()),
        29..31 => format!("release {} there", dice.number()),
        31 => format!("release {}", dice.number()),
        32 => format!("say{}", dice.under()),
        33 => format!("interrupt{}", dice.under()),
        34..36 => "steer".into(),
        36 => format!("steer{}", dice.under()),
        37..39 => format!("missed {}{}", dice.number(), dice.of()),
        39 => {
            let agents =
                ["the agent listens", "the agent is deaf", "the agent forgets", "the agent remembers"];
            agents[dice.roll(4) as usize].into()
        }
        40..42 => "missed".into(),
        42 => "stop".into(),
        43 => "asks".into(),
        44 => format!("answer last {}", dice.answer()),
        45 => ["remove w1", "restore w1", "end background"][dice.roll(3) as usize].into(),
        46..48 => "failed gone".into(),
        48 => "lost".into(),
        49..51 => format!("put {} in", dice.number()),
        51..53 => format!("put {} first", dice.number()),
        _ => "wake".into(),
    }
}

/// One large random number, used up roll by roll: proptest can make it smaller, and the story simpler.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        let rolled = self.0 % sides;
        self.0 /= sides;
        rolled
    }

    /// Of a message or a question: mostly an early one, so that names meet.
    fn number(&mut self) -> u64 {
        match self.roll(4) {
            0 => 1 + self.roll(60),
            _ => 1 + self.roll(15),
        }
    }

    fn native(&mut self) -> &'static str {
        ["", " as n1", " as n2", " as n3"][self.roll(4) as usize]
    }

    fn answer(&mut self) -> String {
        let answer = ["yes", "no", "chose 2", "said go on"][self.roll(4) as usize];
        let by = ["", " by rule 3", " by policy", " by nobody"][self.roll(4) as usize];
        format!("{answer}{by}")
    }

    /// Mostly the latest errand, sometimes an earlier one or one that never was.
    fn errand(&mut self) -> String {
        match self.roll(6) {
            0 => format!(" of {}.{}", self.roll(6), self.roll(6)),
            _ => String::new(),
        }
    }

    fn kind(&mut self) -> &'static str {
        ["commands", "models", "files", "diff", "enter", "undo"][self.roll(6) as usize]
    }

    fn under(&mut self) -> String {
        match self.roll(3) {
            0 => String::new(),
            _ => format!(" under {}", self.roll(6)),
        }
    }

    /// Mostly the latest attempt, sometimes an earlier one, sometimes one that never was.
    fn of(&mut self) -> String {
        match self.roll(15) {
            0 | 1 => format!(" of {}.{}", 1 + self.roll(8), 1 + self.roll(3)),
            2 => format!(" of {}.{} term {}", 1 + self.roll(8), 1 + self.roll(3), self.roll(5)),
            _ => String::new(),
        }
    }
}
