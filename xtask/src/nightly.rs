//! The test command for the night: every count in full, and one page that says what came of it.
//!
//! A part that fails does not keep the others from running: whoever reads the page in the morning wants all of it. The
//! page is docs/nightly.md, made by `page`; a run of some parts only replaces their lines in it.

pub(crate) mod page;
mod split;
mod told;

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::bench::{self, BenchArgs, figure};
use crate::checks;
use crate::counts::{
    NIGHTLY_BENCH_ROUNDS, NIGHTLY_KILL_POINTS_MIN, NIGHTLY_KILLS, NIGHTLY_ORPHAN_ROUNDS, NIGHTLY_REQUESTS,
    NIGHTLY_SEEDS, Scale, variables,
};
use crate::mutate::{self, MutateArgs};
use crate::orphans::{self, OrphansArgs};
use crate::sim::{self, SimArgs};
use crate::soak::{self, SoakArgs};
use crate::steps::{self, CheckStep, Report, Tally};
use crate::tools;
use crate::ui;

/// Run everything in full, for hours, and write docs/nightly.md
///
/// All tests with the counts of the night, 20,000 seeds of the simulation, 300 kills of the server, 100 deaths in the
/// midst of turns, ten thousand requests made from the contract, every story of every real agent, every rule about people
/// broken, and the bench. Goes on after a part that failed.
#[derive(clap::Args)]
pub(crate) struct NightlyArgs {
    /// Run only these parts, in the order of the list (names as on the page); the page keeps the others' lines
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
}

/// The parts, in this order. The bench is last, when nothing that was started here runs any more.
const PARTS: &[CheckStep] = &[
    CheckStep { name: "fmt", run: checks::fmt },
    CheckStep { name: "tidy", run: checks::look },
    CheckStep { name: "deny", run: checks::deny },
    CheckStep { name: "ui", run: ui::check },
    CheckStep { name: "build", run: checks::build },
    CheckStep { name: "tests", run: test },
    CheckStep { name: "ground", run: ground },
    CheckStep { name: "doc tests", run: checks::doc_tests },
    CheckStep { name: "http fuzz", run: |root| checks::http_fuzz(root, &NIGHTLY_REQUESTS) },
    CheckStep { name: "browser", run: browse },
    CheckStep { name: "agents", run: |root| checks::agents(root, "agents-all") },
    CheckStep { name: "mutate-people", run: break_rules },
    CheckStep { name: "sim", run: simulate },
    CheckStep { name: "soak", run: kill },
    CheckStep { name: "orphans", run: die },
    CheckStep { name: "bench", run: measure },
];

/// The amount that a part does, for the page.
fn how_much(part: &str) -> String {
    let number = |number: u64| figure::count(number as f64);
    let counts = || {
        let each = split::counts(part).map(|count| format!("{} {}", number(count.nightly), count.what));
        each.collect::<Vec<_>>().join(", ")
    };
    match part {
        "tests" => {
            format!("all but `ground`'s; {}, at least {NIGHTLY_KILL_POINTS_MIN} kill points", counts())
        }
        "ground" => {
            format!("hostile agents and repositories, with the program as it is released; {}", counts())
        }
        "http fuzz" => format!("at least {} requests", number(NIGHTLY_REQUESTS.min)),
        "browser" => format!("all; {}", counts()),
        "agents" => "every story of every agent, beside the table in [agents.md](agents.md)".to_owned(),
        "mutate-people" => format!("each of {} rules broken", mutate::rules()),
        "sim" => format!("{} seeds, and every planted bug", number(NIGHTLY_SEEDS)),
        "soak" => format!("{NIGHTLY_KILLS} kills"),
        "orphans" => format!("{NIGHTLY_ORPHAN_ROUNDS} deaths"),
        "bench" => format!("{NIGHTLY_BENCH_ROUNDS} rounds; [performance.md](performance.md)"),
        _ => String::new(),
    }
}

pub(crate) fn nightly(args: &NightlyArgs, root: &Path) -> Result<()> {
    let parts = steps::chosen(PARTS, &args.only)?;
    let run = page::Run::now(root)?;
    let mut report = Report::default();
    for part in parts {
        report.take(part, root);
        // After each part, so that a night that is cut short has told what it knew.
        page::write(root, &run, &report).context("docs/nightly.md")?;
    }
    println!("\n{}", page::read(root));
    steps::finish(&report)
}

/// Every test but `ground`'s, with what they say of themselves on the page. Too few kill points are a failure: an operation was not
/// done. All that is cut is cut here.
fn test(root: &Path) -> Result<Tally> {
    let tally = checks::tests(root, Scale::Nightly, &["-E", &split::tests()])?;
    let told = told::read(&checks::report(root, "all"))?;
    let points = told.kill_points();
    ensure!(
        tally.failed > 0 || points >= NIGHTLY_KILL_POINTS_MIN,
        "{points} kill points, not {NIGHTLY_KILL_POINTS_MIN}: {}",
        told.words()
    );
    Ok(Tally { said: told.words(), ..tally })
}

/// Hostile agents and repositories meet the program as people get it.
fn ground(root: &Path) -> Result<Tally> {
    tools::c_compiler()?;
    tools::sandbox()?;
    let mut nextest = Command::new(tools::nextest()?);
    nextest.args(["nextest", "run", "--locked", "--release", "--package", "homing", "--profile", "all"]);
    nextest.args(["-E", &split::ground()]).current_dir(root).envs(variables(Scale::Nightly));
    let tally = checks::counted(root, "all", nextest)?;
    let told = told::read(&checks::report(root, "all"))?;
    Ok(Tally { said: told.words(), ..tally })
}

/// The app in a real browser, with what these tests say of themselves.
fn browse(root: &Path) -> Result<Tally> {
    let tally = checks::browser(root, Scale::Nightly)?;
    let told = told::read(&checks::browser_report(root))?;
    Ok(Tally { said: told.words(), ..tally })
}

fn break_rules(root: &Path) -> Result<Tally> {
    let said = mutate::mutate_people(&MutateArgs::default(), root)?;
    Ok(Tally { said, ..Tally::default() })
}

fn simulate(root: &Path) -> Result<Tally> {
    let printed = sim::sim(&SimArgs::of(NIGHTLY_SEEDS), root)?;
    let planted = printed.lines().skip_while(|line| !line.starts_with("planted bug")).skip(1).count();
    let first = printed.lines().next().unwrap_or_default();
    Ok(Tally { said: format!("{first}; every law held; {planted} planted bugs found"), ..Tally::default() })
}

fn kill(root: &Path) -> Result<Tally> {
    let printed = soak::soak(&SoakArgs { kills: NIGHTLY_KILLS, seed: None }, root)?;
    Ok(Tally { said: lines_with(&printed, &["acknowledged", "settled within"]), ..Tally::default() })
}

fn die(root: &Path) -> Result<Tally> {
    let args = OrphansArgs { rounds: NIGHTLY_ORPHAN_ROUNDS, agent: "scripted".to_owned(), debug: false };
    let printed = orphans::orphans(&args, root)?;
    let left = printed.lines().filter(|line| line.contains(": 0 left after")).count();
    Ok(Tally { said: format!("after {left} of them nothing was left"), ..Tally::default() })
}

fn measure(root: &Path) -> Result<Tally> {
    let missed = bench::bench(&BenchArgs::whole(NIGHTLY_BENCH_ROUNDS), root)?;
    let said = match missed.is_empty() {
        true => "every aim was met".to_owned(),
        false => format!("**missed**: {}", missed.join("; ")),
    };
    Ok(Tally { said, ..Tally::default() })
}

fn lines_with(printed: &str, words: &[&str]) -> String {
    let found = printed.lines().map(str::trim).filter(|line| words.iter().any(|word| line.contains(word)));
    found.collect::<Vec<_>>().join("; ")
}
