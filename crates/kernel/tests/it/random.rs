//! Long random stories, compared step by step with the model.
//!
//! A story that tells the two apart is made as short as possible and printed with its seed. `HOMING_SEED` tells other
//! stories (or one of them again), `HOMING_STORIES` more of them.

use crate::ledger::Receipt;
use crate::model::Model;
use crate::story::{Told, World, step};
use homing_kernel::{Failure, Outcome};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, RngSeed, TestCaseError, TestError, TestRunner};
use std::cell::RefCell;
use std::collections::BTreeSet;

const STEPS_MAX: usize = 300;
const STORIES: u32 = 300;
const SEED: u64 = 4747;

#[test]
fn random_stories_go_as_the_laws_say() {
    check(any_step);
}

#[test]
fn random_stories_that_mostly_go_well_go_as_the_laws_say() {
    check(|dice| if dice.roll(4) < 3 { good_step(dice) } else { any_step(dice) });
}

fn check(step: fn(&mut Dice) -> String) {
    let story = move |rolls: Vec<u64>| rolls.into_iter().map(|roll| step(&mut Dice(roll))).collect();
    let stories = prop::collection::vec(any::<u64>(), 1..STEPS_MAX).prop_map(story);
    let seed = from_environment("HOMING_SEED").unwrap_or(SEED);
    let cases = from_environment("HOMING_STORIES").map_or(STORIES, |stories| stories as u32);
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
    let early = [Receipt::Waiting, Receipt::Held, Receipt::Running, Receipt::Withdrawn, Receipt::Refused];
    over.into_iter().chain(failed).map(Receipt::Over).chain(early).collect()
}

fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} must be a number")))
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
    same("the next alarm", &session.wake_at(world.given.term), &model.alarm())
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, kernel: &T, model: &T) -> Result<(), String> {
    if kernel == model {
        Ok(())
    } else {
        Err(format!("{what}: the kernel says {kernel:?}, the laws {model:?}"))
    }
}

/// What a good day is made of.
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
        105..107 => format!("answer {} no", dice.number()),
        107..111 => "stop".into(),
        111..117 => format!("stop {}", dice.number()),
        117..121 => format!("withdraw {}", dice.number()),
        121..126 => format!("hold {}", dice.number()),
        126..134 => format!("release {}", dice.number()),
        134..137 => format!("revoke {}", dice.number()),
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
        _ => "say".into(),
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

    /// Mostly the latest attempt, sometimes an earlier one, sometimes one that never was.
    fn of(&mut self) -> String {
        match self.roll(15) {
            0 | 1 => format!(" of {}.{}", 1 + self.roll(8), 1 + self.roll(3)),
            2 => format!(" of {}.{} term {}", 1 + self.roll(8), 1 + self.roll(3), self.roll(5)),
            _ => String::new(),
        }
    }
}
