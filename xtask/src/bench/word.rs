//! From a message to the agent's first word, beside the agent's own start and the disk's fsync.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::figure::{Figure, Rounds, both, time};
use super::place::Bench;

const COUNT: &str = "20";
/// Files of the repository that a session may work in.
const FILES: usize = 1_000;
const FSYNCS: usize = 60;
/// The most we may add to the agent's own start, besides three fsyncs.
const ADDED_US: f64 = 5_000.0;

pub(crate) fn take(bench: &Bench) -> Result<Vec<Figure>> {
    let server = bench.serve("word", "log = \"warn\"\n")?;
    let repository = bench.fresh("repository")?;
    make_repository(&repository)?;
    let repository = repository.to_str().context("a path that is text")?;
    let mut rounds = Rounds::default();
    for _ in 0..bench.rounds {
        let dir = bench.fresh("agents")?;
        rounds.note("fsync", fsync_us(&dir.join("fsync"))?);
        let (exe, dir) = (bench.homing(), dir.to_str().context("a path that is text")?.to_owned());
        let took =
            bench.ask_example("start", &[exe.to_str().context("a path that is text")?, &dir, COUNT])?;
        rounds.note_all("alone", &took["alone"], &["ready_us", "word_us"])?;
        rounds.note_all("supervised", &took["supervised"], &["ready_us", "word_us"])?;
        let took = bench.load(&server, "word", &[("count", COUNT)])?;
        rounds.note_all("word", &took["word"], &["p50_us", "p99_us"])?;
        let took = bench.load(&server, "word", &[("count", COUNT), ("directory", repository)])?;
        rounds.note_all("there", &took["word"], &["p50_us", "p99_us"])?;
    }
    let median = |name: &str| rounds.median(name);
    let (word, fsync, own) = (median("word.p50_us"), median("fsync"), median("alone.word_us"));
    let limit = own + 3.0 * fsync + ADDED_US;
    Ok(vec![
        Figure::new("message → first word, p50 / p99", both(word, median("word.p99_us")))
            .beside(format!("agent's own {} + 3 fsyncs + 5 ms = {}", time(own), time(limit)), word / limit)
            .aim("≤ 1.00 ×", word <= limit),
        Figure::new(
            "message → first word, in a repository of 1,000 files, p50 / p99",
            both(median("there.p50_us"), median("there.p99_us")),
        ),
        Figure::new("the agent alone: ready / first word", both(median("alone.ready_us"), own)),
        Figure::new(
            "agent and supervisor: ready / first word",
            both(median("supervised.ready_us"), median("supervised.word_us")),
        ),
        Figure::new("an fsync of this disk", time(fsync)),
    ])
}

/// A repository with its files committed.
fn make_repository(dir: &Path) -> Result<()> {
    for number in 0..FILES {
        let path = dir.join(format!("{}/{number}.txt", number % 20));
        std::fs::create_dir_all(path.parent().unwrap_or(dir))?;
        std::fs::write(path, format!("file {number}\n"))?;
    }
    let person = ["-c", "user.name=bench", "-c", "user.email=bench@example.org"];
    for words in [&["init", "--quiet"][..], &["add", "."], &["commit", "--quiet", "--message", "all"]] {
        let status = Command::new("git").current_dir(dir).args(person).args(words).status()?;
        ensure!(status.success(), "git {words:?} ended with {status}");
    }
    Ok(())
}

/// The median of appending a page to a file and making it durable.
fn fsync_us(path: &Path) -> Result<f64> {
    let mut file = File::create(path)?;
    let mut took = Vec::new();
    for _ in 0..FSYNCS {
        let began = Instant::now();
        file.write_all(&[7; 4_096])?;
        file.sync_data()?;
        took.push(began.elapsed().as_secs_f64() * 1e6);
    }
    took.sort_by(f64::total_cmp);
    Ok(took[took.len() / 2])
}
