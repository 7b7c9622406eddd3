//! The plan of a seed: how bad the weather is, what happens when, and under which limits people live.
//!
//! Everything that is decided before the story begins is decided here; what is decided along the way (which call is
//! lost, what somebody says next) comes from streams that are forked here.

use crate::dice::Dice;
use crate::grove::TreeOdds;
use engine::Limits;
use kernel::{AfterFailure, Policy, Unattended};
use std::time::Duration;

/// The whole plan of a story.
#[derive(Debug)]
pub(crate) struct Forecast {
    pub(crate) odds: Odds,
    /// The happenings, by milliseconds since the beginning, in order.
    pub(crate) happenings: Vec<(u64, Happening)>,
    pub(crate) linger_ms: u64,
    pub(crate) policy: Policy,
    pub(crate) limits: Limits,
    pub(crate) people: usize,
    /// True if the last thing before the sky clears is one more restart. Only then may a replaced node still take
    /// messages in: nobody else would look into its inbox.
    pub(crate) ends_with_restart: bool,
    /// The plan for scopes; nothing in one story of four, which is the same as before there were any.
    pub(crate) scopes: Option<Scopes>,
    /// The plan for agents' questions; nothing in half of the stories.
    pub(crate) questions: Option<Questions>,
    /// Somebody who tidies up when everybody has had their say, if there is one.
    pub(crate) tidies: Option<Dice>,
    /// The imports of the org next door; nothing in most stories.
    pub(crate) trades: Option<Trades>,
    /// The plan for replies; in half of the stories they stay in the outbox, as if their door were not there.
    pub(crate) doors: Option<Doors>,
    pub(crate) dice: Dice,
}

/// The plan for those who change where and how a session acts.
#[derive(Debug, Clone)]
pub(crate) struct Scopes {
    pub(crate) trees: TreeOdds,
    pub(crate) steering: SteerOdds,
    /// The most that each person does about scopes.
    pub(crate) moves_max: u64,
    pub(crate) dice: Dice,
}

/// The plan for those who mind the questions of agents.
#[derive(Debug, Clone)]
pub(crate) struct Questions {
    pub(crate) unattended: Unattended,
    /// The most that each person does about them.
    pub(crate) doings_max: u64,
    pub(crate) dice: Dice,
}

/// The plan for the people next door.
#[derive(Debug, Clone)]
pub(crate) struct Trades {
    pub(crate) neighbours: usize,
    /// The most that each of them does.
    pub(crate) trades_max: u64,
    pub(crate) dice: Dice,
}

/// The plan for replies on their way out, and for those who want to use a door that is not theirs.
#[derive(Debug, Clone)]
pub(crate) struct Doors {
    pub(crate) odds: DoorOdds,
    /// True if the service can be asked what it has.
    pub(crate) can_be_asked: bool,
    /// The number of times each person tries to come in by the wrong door.
    pub(crate) intrusions: u64,
    pub(crate) dice: Dice,
}

/// The odds of what a reply meets, in a thousand.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DoorOdds {
    pub(crate) slow: u64,
    pub(crate) slow_ms_max: u64,
    /// The service has it, and nobody hears so.
    pub(crate) answer_lost: u64,
    /// The service has it, and the call never ends.
    pub(crate) no_answer: u64,
    /// The service takes nothing for now, and cannot be asked.
    pub(crate) down: u64,
    /// The service will not take it.
    pub(crate) closed: u64,
    /// The daemon dies before it has sent it, or after.
    pub(crate) dies_before: u64,
    pub(crate) dies_after: u64,
}

/// The odds of what words for a running turn meet, in a thousand.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SteerOdds {
    pub(crate) slow: u64,
    /// The agent does not take them, and says so.
    pub(crate) missed: u64,
    /// The agent takes them, and the answer is an error: nobody knows.
    pub(crate) unclear: u64,
    /// The agent's memory of a conversation does not follow into another directory.
    pub(crate) left_behind: u64,
}

/// The odds of what a call meets, in a thousand.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Odds {
    pub(crate) lost_request: u64,
    pub(crate) lost_reply: u64,
    pub(crate) delay: u64,
    pub(crate) delay_ms_max: u64,
    pub(crate) die_before: u64,
    pub(crate) die_after: u64,
    /// A start or a burial of an agent takes a while.
    pub(crate) slow_agent: u64,
    /// An agent takes a question back before anybody has answered, or after.
    pub(crate) takes_back: u64,
    /// A burial cannot be made sure of at once.
    pub(crate) ending_fails: u64,
    /// An agent has not kept a conversation in which it never finished anything.
    pub(crate) unkept: u64,
    /// A ring for a keeper is not heard.
    pub(crate) lost_ring: u64,
}

/// Something that happens to the whole daemon.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Happening {
    /// It dies, and starts again after so many milliseconds.
    Crash { down_ms: u64 },
    /// It is shut down politely and started again.
    Restart,
    /// It hears nothing from its store for so long, while another one starts on the same store; later it is ended.
    Takeover { cut_off_ms: u64, ended_after_ms: u64 },
    /// The clock jumps.
    Jump { ms: i64 },
    /// The disk is full for so long.
    Full { ms: u64 },
    /// Somebody gives somebody else a grant on a session, or takes it away.
    Share,
}

impl Forecast {
    pub(crate) fn of(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        // From dice of its own: the seeds that found something once still tell the same story.
        let unkept = Dice::new(!seed).weigh(&[(1, 0), (1, 300), (1, 1_000)]);
        let lost_ring = Dice::new(seed ^ 0x0b11_a5c0_0b11_a5c0).weigh(&[(2, 0), (1, 20), (1, 200)]);
        let odds = Odds { unkept, lost_ring, ..odds(&mut dice) };
        let mut happenings = happenings(&mut dice);
        happenings.extend(shares(&mut dice));
        happenings.sort_by_key(|(at_ms, _)| *at_ms);
        let questions = questions(seed);
        let policy = Policy {
            attempts_max: dice.between(2, 4) as u16,
            backoff_ms: 250,
            backoff_ms_max: 4_000,
            turn_ms_max: dice.between(4_000, 15_000),
            hold_ms_max: dice.between(20_000, 90_000),
            ask_ms_max: dice.between(2_000, 10_000),
            crowded_ms: dice.between(2_000, 8_000),
            after_failure: dice.weigh(&[(1, AfterFailure::Hold), (1, AfterFailure::GoOn)]),
            unattended: questions.as_ref().map_or(Unattended::Deny, |questions| questions.unattended),
        };
        // From dice of its own, as above.
        let org_awake_max = Dice::new(seed.rotate_left(32)).weigh(&[(4, 256), (1, 3), (1, 1)]);
        let (scopes, shared_directories) = scopes(seed);
        let limits = Limits {
            org_open_max: 1_000,
            org_awake_max,
            open_max: dice.weigh(&[(4, 1_000), (1, 4)]),
            awake_max: dice.weigh(&[(2, 1), (3, 2), (2, 16)]),
            pending_max: dice.weigh(&[(4, 1_000), (1, 4)]),
            words_bytes_per_person_max: u64::MAX,
            worktree_bytes_per_person_max: u64::MAX,
            snapshot_bytes_per_person_max: u64::MAX,
            verdict_wait: Duration::from_millis(dice.between(50, 5_000)),
            stop_grace_ms: 2_000,
            words_ms_max: dice.weigh(&[(3, 250), (1, 20)]),
            words_bytes_max: dice.weigh(&[(3, 8 * 1024), (1, 16)]),
            commands_wait: Duration::from_secs(10),
            shared_directories,
            worktrees: engine::Collecting::default(),
        };
        Self {
            odds,
            happenings,
            linger_ms: dice.weigh(&[(2, 0), (2, 300), (2, 3_000)]),
            policy,
            limits,
            people: dice.between(1, 3) as usize,
            ends_with_restart: dice.chance(400),
            scopes,
            questions,
            trades: trades(seed),
            tidies: tidies(seed),
            doors: doors(seed),
            dice,
        }
    }
}

/// From dice of its own, as above; and whether several sessions may work in one directory.
fn scopes(seed: u64) -> (Option<Scopes>, bool) {
    let mut dice = Dice::new(seed ^ 0x5c09_e5c0_9e5c_09e5);
    if dice.chance(250) {
        return (None, false);
    }
    let mut some = |share: u64, most: u64| if dice.chance(share) { dice.between(1, most) } else { 0 };
    let trees = TreeOdds {
        slow: some(700, 700),
        slow_ms_max: 1 + some(800, 3_000),
        fails: some(400, 150),
        unheard: some(400, 150),
        dies: some(300, 30),
    };
    let steering = SteerOdds {
        slow: some(500, 500),
        missed: some(500, 400),
        unclear: some(400, 300),
        left_behind: some(400, 600),
    };
    let (moves_max, is_shared) = (dice.between(4, 20), dice.chance(125));
    (Some(Scopes { trees, steering, moves_max, dice }), is_shared)
}

/// From dice of its own, as above. The seeds that found something once are among those that it leaves alone.
fn questions(seed: u64) -> Option<Questions> {
    let mut dice = Dice::new(seed ^ 0x0a5c_a5c0_a5ca_0d53);
    if dice.chance(500) {
        return None;
    }
    let unattended = dice.weigh(&[(3, Unattended::Deny), (1, Unattended::Ask)]);
    let doings_max = dice.between(5, 14);
    Some(Questions { unattended, doings_max, dice })
}

/// The same for whoever tidies up.
fn tidies(seed: u64) -> Option<Dice> {
    let mut dice = Dice::new(seed ^ 0x71d1_e5c0_71d1_e5c0);
    dice.chance(250).then_some(dice)
}

/// The same for those next door.
fn trades(seed: u64) -> Option<Trades> {
    let mut dice = Dice::new(seed ^ 0x17ad_e17a_de17_0062);
    if dice.chance(700) {
        return None;
    }
    let (neighbours, trades_max) = (dice.between(1, 2) as usize, dice.between(3, 9));
    Some(Trades { neighbours, trades_max, dice })
}

/// The same for replies and intruders. The seeds that found something once are among those that it leaves alone.
fn doors(seed: u64) -> Option<Doors> {
    let mut dice = Dice::new(seed ^ 0xd002_50d0_0250_8b14);
    if dice.chance(500) {
        return None;
    }
    let mut some = |share: u64, most: u64| if dice.chance(share) { dice.between(1, most) } else { 0 };
    let odds = DoorOdds {
        slow: some(700, 700),
        slow_ms_max: 1 + some(800, 3_000),
        answer_lost: some(400, 200),
        no_answer: some(300, 50),
        down: some(500, 300),
        closed: some(300, 80),
        dies_before: some(300, 40),
        dies_after: some(300, 40),
    };
    let (can_be_asked, intrusions) = (dice.chance(700), dice.below(4));
    Some(Doors { odds, can_be_asked, intrusions, dice })
}

fn odds(dice: &mut Dice) -> Odds {
    let mut some = |share: u64, most: u64| if dice.chance(share) { dice.between(1, most) } else { 0 };
    Odds {
        lost_request: some(500, 40),
        lost_reply: some(500, 40),
        delay: some(700, 400),
        delay_ms_max: 1 + some(900, 400),
        die_before: some(250, 15),
        die_after: some(250, 15),
        slow_agent: some(500, 500),
        ending_fails: some(400, 400),
        takes_back: some(400, 500),
        unkept: 0,
        lost_ring: 0,
    }
}

fn happenings(dice: &mut Dice) -> Vec<(u64, Happening)> {
    let count = dice.weigh(&[(1, 0), (3, 2), (3, 4), (1, 8)]);
    let mut at_ms = 0;
    let mut happenings = Vec::new();
    for _ in 0..count {
        at_ms += dice.between(10, 6_000);
        happenings.push((at_ms, happening(dice)));
    }
    happenings
}

fn happening(dice: &mut Dice) -> Happening {
    match dice.below(11) {
        0..=3 => Happening::Crash { down_ms: dice.between(0, 2_000) },
        4 => Happening::Restart,
        5..=7 => Happening::Takeover {
            cut_off_ms: dice.between(1, 4_000),
            ended_after_ms: dice.between(4_000, 9_000),
        },
        8..=9 => Happening::Jump { ms: dice.between(0, 600_000) as i64 - 300_000 },
        _ => Happening::Full { ms: dice.between(100, 4_000) },
    }
}

/// Now and then several people talk in one session, and one of them is shut out again.
fn shares(dice: &mut Dice) -> Vec<(u64, Happening)> {
    let count = dice.weigh(&[(2, 0), (1, 4), (1, 12)]);
    (0..count).map(|_| (dice.below(12_000), Happening::Share)).collect()
}
