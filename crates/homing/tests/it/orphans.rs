//! Every part may die in the midst of a turn: the agent, its supervisor, the server; the server may be stopped and come
//! back; a person may stop the turn. Each time the turn is settled, the session remembers, and within two seconds nothing
//! is left of an agent whose tools have left it, its session and its environment, and are deaf to polite signals.
//!
//! `HOMING_ROUNDS` says how often (each death once by default; `cargo xtask orphans` asks for 100), `HOMING_AGENT` with
//! which agent. Two seconds are measured there, where nothing else runs; among other tests it is seen that nothing stays.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use serde_json::Value;
use testkit::{Homing, Setup, WAIT_MAX, eventually, spare_of};

use crate::{EXE, text};

/// The longest until everything is gone once it is known that it has to go.
const GONE_MAX: Duration = Duration::from_secs(2);
/// The longest that a server may be silent before its agents are ended.
const SILENCE_MAX: Duration = Duration::from_secs(5);
/// The longest that a stopped agent may take to go by itself.
const GRACE: Duration = Duration::from_millis(200);
/// The number of careless tools of each kind.
const TOOLS: usize = 5;
/// Processes of each kind: the tool itself, one of its own, and one that has shed its environment.
const PROCESSES: usize = 3 * TOOLS;
const CONVERSATION: &str = "api:orphans/all";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Death {
    Agent,
    Supervisor,
    Server,
    /// The server is stopped for longer than its supervisors wait, and goes on.
    Silence,
    Stop,
}

impl Death {
    const ALL: [Self; 5] = [Self::Agent, Self::Supervisor, Self::Server, Self::Silence, Self::Stop];

    fn words(self) -> &'static str {
        match self {
            Self::Agent => "kill -9 of the agent",
            Self::Supervisor => "kill -9 of the supervisor",
            Self::Server => "kill -9 of the server",
            Self::Silence => "server stopped for longer than the heartbeat",
            Self::Stop => "homing stop",
        }
    }

    /// The longest until it is known that everything has to go.
    fn known_after(self) -> Duration {
        match self {
            Self::Silence => SILENCE_MAX,
            Self::Stop => GRACE,
            Self::Agent | Self::Supervisor | Self::Server => Duration::ZERO,
        }
    }
}

#[test]
fn every_part_may_die_and_nothing_is_left() {
    let asked = from_env("HOMING_ROUNDS").and_then(|rounds| rounds.parse().ok());
    let (rounds, gone_max) = asked.map_or((Death::ALL.len(), WAIT_MAX), |rounds| (rounds, GONE_MAX));
    let agent = Nasty::called(&from_env("HOMING_AGENT").unwrap_or_else(|| "scripted".to_owned()));
    let mut homing = agent.setup().start();
    homing.converse(CONVERSATION, &agent.remember("owl"));
    let mut seen = Vec::new();
    for round in 0..rounds {
        let death = Death::ALL[round % Death::ALL.len()];
        let gone = die(&mut homing, &agent, death, round, gone_max);
        println!("{round}: {}: {} left after {} ms", death.words(), gone.left, gone.took.as_millis());
        seen.push((death, gone));
        let recalled = homing.converse(CONVERSATION, &agent.recall());
        assert!(recalled.contains("owl"), "it has forgotten: {recalled}");
    }
    print(&seen);
    assert_eq!(seen.iter().map(|(_, gone)| gone.left).sum::<usize>(), 0, "orphans");
}

/// No session's, so no list of what is left of one has it; it is looked for by itself.
#[test]
fn a_spare_waits_for_the_next_start_and_goes_with_its_server() {
    let mut homing = Homing::start(EXE);
    let spare = |homing: &Homing| eventually("a spare waits", || spare_of(homing.pid()));
    let is_there = |pid: u32| std::fs::metadata(format!("/proc/{pid}/exe")).is_ok();
    let [first, _] = spare(&homing);
    homing.converse(CONVERSATION, "hello");
    let next = eventually("the next one waits", || spare_of(homing.pid()).filter(|[next, _]| *next != first));
    assert_eq!(homing.leftovers(), [], "it is nobody's");
    assert!(homing.terminate().success());
    assert!(!next.into_iter().any(is_there), "a server that ends politely has seen it go");
    homing.restart();
    let last = spare(&homing);
    homing.kill9();
    eventually("it is gone", || (!last.into_iter().any(is_there)).then_some(()));
}

/// The time until everything was gone, and what was not when it should have been.
struct Gone {
    took: Duration,
    left: usize,
}

/// One round.
fn die(homing: &mut Homing, agent: &Nasty, death: Death, round: usize, gone_max: Duration) -> Gone {
    // A command line that no other process on this machine has.
    let nap = format!("7{}.{round}", std::process::id());
    let receipt = homing.send(CONVERSATION, &agent.be_nasty(&nap));
    let (session, message) = (text(&receipt, "session"), text(&receipt, "id"));
    eventually("its tools run", || (sleeping(&nap) == PROCESSES).then_some(()));
    let lock = homing.data().join("attempts").join(format!("{session}.lock"));
    let supervisor = holder(&lock);
    // What has left everything is known by nothing but the supervisor's list, which is made once a second.
    eventually("they are written down", || (holder(&lock).1 > PROCESSES).then_some(()));
    let began = Instant::now();
    match death {
        Death::Agent => kill(agent.process(homing, supervisor.0, &message)),
        Death::Supervisor => kill(supervisor.0),
        Death::Server => homing.kill9(),
        Death::Silence => homing.signal(Signal::STOP),
        Death::Stop => {
            homing.run(&["stop", &message]).expect(0);
        }
    }
    let gone = until_gone(homing, &nap, began, death.known_after() + gone_max);
    match death {
        Death::Server => homing.restart(),
        // A server that was stopped goes on, or is killed, by turns.
        Death::Silence if (round / Death::ALL.len()).is_multiple_of(2) => homing.signal(Signal::CONT),
        Death::Silence => homing.restart(),
        Death::Agent | Death::Supervisor | Death::Stop => {}
    }
    let receipt = homing.http().until_final(&message);
    let expected = if death == Death::Stop { "stopped" } else { "failed" };
    assert_eq!(text(&receipt, "state"), expected, "{receipt}");
    assert!(!lock.exists(), "nobody holds the session");
    gone
}

fn until_gone(homing: &Homing, nap: &str, began: Instant, wait_max: Duration) -> Gone {
    loop {
        let (asleep, others) = (sleeping(nap), homing.leftovers());
        let (left, took) = (asleep.max(others.len()), began.elapsed());
        if left == 0 {
            return Gone { took, left };
        }
        if took >= wait_max {
            println!("{asleep} of its tools and {others:?} are left after {wait_max:?}");
            return Gone { took, left };
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// An agent that can be made to run careless tools. One that is no program of ours needs a model that does as it is told;
/// what it takes is all in here.
struct Nasty;

impl Nasty {
    fn called(name: &str) -> Self {
        assert_eq!(name, "scripted", "nobody knows how to make {name} nasty yet");
        Self
    }

    fn setup(&self) -> Setup {
        let grace = GRACE.as_millis();
        Setup::new(EXE)
            .config(&format!("[limits]\nstop_grace = \"{grace}ms\"\n[policy]\nafter_failure = \"go_on\"\n"))
    }

    fn remember(&self, word: &str) -> String {
        format!("the word is {word}")
    }

    fn recall(&self) -> String {
        "!recall".to_owned()
    }

    /// Tools that leave it for sessions of their own, twice forked, deaf; some without any environment. Then it hangs.
    fn be_nasty(&self, nap: &str) -> String {
        let deaf = "trap '' TERM INT HUP;";
        let away = "</dev/null >/dev/null 2>&1 &";
        format!(
            "!run i=0; while [ $i -lt {TOOLS} ]; do (setsid sh -c \"{deaf} sleep {nap} & sleep {nap}; :\" {away}); \
             (setsid env -i sh -c \"{deaf} exec sleep {nap}\" {away}); i=$((i+1)); done\n!hang"
        )
    }

    /// Its process, for this message.
    fn process(&self, homing: &Homing, supervisor: i32, message: &str) -> i32 {
        let log = homing.agent_log();
        let ran = log.iter().find(|ran| ran.event == "start" && ran.message == message);
        let own = ran.expect("it has begun").pid;
        testkit::number_outside(supervisor.cast_unsigned(), own).expect("it runs").cast_signed()
    }
}

/// The supervisor's process, and how many processes it has seen.
fn holder(lock: &PathBuf) -> (i32, usize) {
    let read = || serde_json::from_slice::<Value>(&std::fs::read(lock).ok()?).ok();
    let holder = eventually("the lock can be read", read);
    let seen = holder["seen"].as_array().map_or(0, Vec::len);
    (i32::try_from(holder["pid"].as_i64().expect("a pid")).expect("a pid"), seen)
}

/// The number of processes that sleep so.
fn sleeping(nap: &str) -> usize {
    let wanted = format!("sleep\0{nap}\0");
    let processes = std::fs::read_dir("/proc").expect("there is a /proc").flatten();
    let lines = processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| *line == wanted.as_bytes()).count()
}

fn kill(pid: i32) {
    let pid = Pid::from_raw(pid).expect("a process has a number");
    rustix::process::kill_process(pid, Signal::KILL).expect("it is there");
}

fn print(seen: &[(Death, Gone)]) {
    println!("{:<46} {:>6} {:>10} {:>10} {:>8}", "death", "rounds", "median", "longest", "orphans");
    for death in Death::ALL {
        let of: Vec<&Gone> = seen.iter().filter(|(of, _)| *of == death).map(|(_, gone)| gone).collect();
        let mut took: Vec<u128> = of.iter().map(|gone| gone.took.as_millis()).collect();
        took.sort_unstable();
        let (Some(median), Some(longest)) = (took.get(took.len() / 2), took.last()) else { continue };
        let left: usize = of.iter().map(|gone| gone.left).sum();
        println!("{:<46} {:>6} {median:>7} ms {longest:>7} ms {left:>8}", death.words(), of.len());
    }
}

fn from_env(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
