//! Runs many seeds and says what came of them: `homing-sim [--seeds N] [--from N] [--seed S] [-v] [--bug NAME]`.
//!
//! `cargo xtask sim` builds it optimized and calls it. Ends with 1 if a law was broken or a planted bug not found.
#![forbid(unsafe_code)]

use homing_sim::{Bug, Figures, SeedVerdict, Telling, run, sweep};
use std::process::ExitCode;
use std::time::Instant;

/// Within so many seeds each planted bug must be found.
const BUG_SEEDS_MAX: u64 = 300;

#[derive(Debug)]
struct SimOptions {
    from: u64,
    seeds: u64,
    /// Only this one, told line by line if `aloud`.
    seed: Option<u64>,
    aloud: bool,
    bug: Option<Bug>,
}

fn main() -> ExitCode {
    let wanted = match wanted(std::env::args().skip(1)) {
        Ok(wanted) => wanted,
        Err(why) => {
            eprintln!("error: {why}\nusage: homing-sim [--seeds N] [--from N] [--seed S] [-v] [--bug NAME]");
            return ExitCode::FAILURE;
        }
    };
    let fine = match wanted.seed {
        Some(seed) => one(seed, &wanted),
        None => many(&wanted) && (wanted.bug.is_some() || planted()),
    };
    if fine { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn wanted(mut args: impl Iterator<Item = String>) -> Result<SimOptions, String> {
    let mut wanted = SimOptions { from: 0, seeds: 10_000, seed: None, aloud: false, bug: None };
    while let Some(arg) = args.next() {
        let mut number = || {
            let text = args.next().ok_or(format!("{arg} needs a number"))?;
            text.parse::<u64>().map_err(|_| format!("not a number: {text}"))
        };
        match arg.as_str() {
            "--seeds" => wanted.seeds = number()?,
            "--from" => wanted.from = number()?,
            "--seed" => wanted.seed = Some(number()?),
            "-v" => wanted.aloud = true,
            "--bug" => {
                let name = args.next().unwrap_or_default();
                let bug = Bug::ALL.into_iter().find(|bug| format!("{bug:?}") == name);
                wanted.bug = Some(bug.ok_or(format!("no such bug: {name}; one of {:?}", Bug::ALL))?);
            }
            _ => return Err(format!("what is {arg}?")),
        }
    }
    Ok(wanted)
}

fn one(seed: u64, wanted: &SimOptions) -> bool {
    let verdict = run(seed, Telling { bug: wanted.bug, aloud: wanted.aloud });
    verdict.story.iter().for_each(|line| println!("{line}"));
    println!("seed {seed}: hash {:016x}, {}", verdict.hash, figures(&verdict.figures));
    verdict.broken.iter().for_each(|broken| println!("BROKEN {broken}"));
    verdict.broken.is_empty()
}

fn many(wanted: &SimOptions) -> bool {
    let began = Instant::now();
    let telling = Telling { bug: wanted.bug, aloud: false };
    let came = sweep(wanted.from..wanted.from + wanted.seeds, telling, threads());
    let took = began.elapsed().as_secs_f64();
    println!("{} seeds in {took:.1} s, {:.0} seeds/s", came.seeds, came.seeds as f64 / took);
    println!("{}", figures(&came.figures));
    match came.failed {
        Some(failed) => {
            told(&failed, wanted.bug);
            false
        }
        None => {
            println!("every law held");
            true
        }
    }
}

/// The story of a seed that failed, told again line by line.
fn told(failed: &SeedVerdict, bug: Option<Bug>) {
    let again = run(failed.seed, Telling { bug, aloud: true });
    again.story.iter().for_each(|line| println!("{line}"));
    again.broken.iter().for_each(|broken| println!("BROKEN {broken}"));
    println!("seed {} fails; see it again with --seed {} -v", failed.seed, failed.seed);
}

fn planted() -> bool {
    println!("\n{:<42} {:>5}  found by", "planted bug", "seed");
    let mut all = true;
    for bug in Bug::ALL {
        let came = sweep(0..BUG_SEEDS_MAX, Telling { bug: Some(bug), aloud: false }, 1);
        match came.failed {
            Some(failed) => println!("{:<42} {:>5}  {}", bug.words(), failed.seed, laws(&failed)),
            None => {
                println!("{:<42}     –  NOT FOUND in {BUG_SEEDS_MAX} seeds", bug.words());
                all = false;
            }
        }
    }
    all
}

/// The first few laws that were seen to break.
fn laws(failed: &SeedVerdict) -> String {
    let mut laws: Vec<&str> = Vec::new();
    for broken in &failed.broken {
        if !laws.contains(&broken.law) && laws.len() < 3 {
            laws.push(broken.law);
        }
    }
    laws.join("; ")
}

fn figures(figures: &Figures) -> String {
    let Figures { messages, sessions, facts, attempts, starts, takeovers, .. } = figures;
    let Figures { moves, errands, forks, steered, held, stale, .. } = figures;
    let Figures { questions, ruled, unattended, imports, delivered, unsure, .. } = figures;
    format!(
        "{messages} messages in {sessions} sessions, {facts} facts, {attempts} attempts, {starts} starts of the \
         daemon, {takeovers} takeovers; {moves} changes of scope, {errands} errands, {forks} forks, {steered} \
         messages into running turns, {held} held for another scope, {stale} stale results; {questions} \
         questions, {ruled} answered by rules, {unattended} by the policy for what nobody attends; {imports} \
         imports; {delivered} replies delivered, {unsure} left to a person"
    )
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
