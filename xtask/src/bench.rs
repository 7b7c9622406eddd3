//! Our speed, beside the limit: each figure is taken in the same run, on the same disk, as what it is compared with.
//!
//! [`MEASURES`] is the list; each has a file in `bench/`. They share `place` (programs, directories, servers) and
//! `figure` (medians, the table, `docs/performance.md`). The load itself comes from `crates/testkit/examples/load`, the
//! limits from the examples `raw` (plain SQLite), `bare` (plain HTTP) and `start` (the agent without us): this chore only
//! starts them, in turns, because a shared machine is never equally quiet twice.

mod accepts;
mod crowd;
mod fanout;
pub(crate) mod figure;
mod kept;
mod lists;
mod memory;
mod pages;
mod people;
mod place;
mod scope;
mod stalled;
mod start;
mod stop;
mod terminal;
mod turns;
mod twins;
mod word;

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, bail, ensure};

use figure::Figure;
use place::Bench;

/// Measure the release binary against the limits of this machine, and write docs/performance.md
///
/// Builds what it needs, takes each figure several times in turns with its limit, and prints the medians in one table.
/// Close other programs first. A whole run takes about five minutes after the build.
#[derive(clap::Args)]
pub(crate) struct BenchArgs {
    /// Take only these figures (names as in the first column of the table); writes no page
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Number of measurements of each; the median counts
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Let 1 GB instead of 64 MB pass the stalled readers
    #[arg(long)]
    long: bool,
    /// Measure the programs as they were built the last time
    #[arg(long)]
    no_build: bool,
}

/// The measures, in this order.
const MEASURES: &[Measure] = &[
    Measure { name: "accepts", take: accepts::take },
    Measure { name: "people", take: people::take },
    Measure { name: "lists", take: lists::take },
    Measure { name: "pages", take: pages::take },
    Measure { name: "fanout", take: fanout::take },
    Measure { name: "stalled", take: stalled::take },
    Measure { name: "word", take: word::take },
    Measure { name: "turns", take: turns::take },
    Measure { name: "start", take: start::take },
    Measure { name: "stop", take: stop::take },
    Measure { name: "terminal", take: terminal::take },
    Measure { name: "kept", take: kept::take },
    Measure { name: "scope", take: scope::take },
    Measure { name: "twins", take: twins::take },
    Measure { name: "crowd", take: crowd::take },
    Measure { name: "memory", take: memory::take },
];

struct Measure {
    name: &'static str,
    take: fn(&Bench) -> Result<Vec<Figure>>,
}

impl BenchArgs {
    /// Everything, built anew.
    pub(crate) fn whole(rounds: usize) -> Self {
        Self { only: Vec::new(), rounds, long: false, no_build: false }
    }
}

/// Takes the figures, and answers which of them miss their aim.
pub(crate) fn bench(args: &BenchArgs, root: &Path) -> Result<Vec<String>> {
    let chosen = chosen(&args.only)?;
    ensure!(args.rounds > 0, "nothing can be said from no rounds");
    if !args.no_build {
        place::build(root)?;
    }
    let bench = Bench::prepare(root, args.rounds, args.long)?;
    let busy = place::busy_share()?;
    if busy > 0.1 {
        eprintln!(
            "others keep this machine busy ({:.0} %): the figures will be worse, and less sure",
            busy * 100.0
        );
    }
    let mut table = Vec::new();
    for measure in chosen {
        let began = Instant::now();
        eprint!("{} … ", measure.name);
        let figures = (measure.take)(&bench)?;
        eprintln!("{:.0} s", began.elapsed().as_secs_f64());
        table.extend(figures.into_iter().map(|figure| (measure.name, figure)));
    }
    print!("{}", figure::print(&table));
    if args.only.is_empty() {
        figure::write_page(root, &table, args.rounds, busy)?;
    }
    Ok(table.iter().filter_map(|(_, figure)| figure.missed()).collect())
}

fn chosen(only: &[String]) -> Result<Vec<&'static Measure>> {
    if let Some(unknown) =
        only.iter().find(|name| MEASURES.iter().all(|measure| measure.name != name.as_str()))
    {
        let names: Vec<&str> = MEASURES.iter().map(|measure| measure.name).collect();
        bail!("nothing called {unknown} is measured; there are: {}", names.join(", "));
    }
    Ok(MEASURES
        .iter()
        .filter(|measure| only.is_empty() || only.iter().any(|name| name == measure.name))
        .collect())
}
