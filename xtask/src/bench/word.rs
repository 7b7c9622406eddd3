//! From a message to the agent's first word, beside the agent's own start and the disk's fsync; and what version control adds
//! to a turn, in time and on the disk.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::figure::{Figure, Rounds, both, time};
use super::place::{Bench, BenchServer};

const COUNT: &str = "20";
/// Files of the repositories that a session may work in.
const FILES: [usize; 3] = [1_000, 20_000, 100_000];
/// Turns in a round, in each of them and in a directory of no repository, and looks of the person's own: as many of each, by turns, each
/// after one that does not count.
const TURNS: &str = "11";
/// A snapshot may take so many times as long as the person's own look at the repository.
const STATUS_RATIO_MAX: f64 = 1.5;
/// Turns that each change something, to see what that takes of the disk.
const CHANGES: &str = "10";
/// Bytes of a file that a turn changes, and how many such files one changes.
const CHANGED_BYTES: u64 = 10_000;
const CHANGED_FILES: [u64; 2] = [1, 100];
/// The disk may grow by so many times what changed.
const DISK_RATIO_MAX: f64 = 2.0;
const FSYNCS: usize = 60;
/// The most we may add to the agent's own start, besides three fsyncs.
const ADDED_US: f64 = 5_000.0;

pub(crate) fn take(bench: &Bench) -> Result<Vec<Figure>> {
    let server = bench.serve("word", "log = \"warn\"\n")?;
    let mut rounds = Rounds::default();
    for _ in 0..bench.rounds {
        let dir = bench.fresh("agents")?;
        rounds.note("fsync", fsync_us(&dir.join("fsync"))?);
        let (exe, dir) = (bench.homing(), dir.to_str().context("a path that is text")?.to_owned());
        let took =
            bench.ask_example("start", &[exe.to_str().context("a path that is text")?, &dir, COUNT])?;
        rounds.note_all("alone", &took["alone"], &["ready_us", "word_us"])?;
        rounds.note_all("supervised", &took["supervised"], &["ready_us", "word_us"])?;
        rounds.note_all("cold", &took["cold"], &["ready_us", "word_us"])?;
        let took = bench.load(&server, "word", &[("count", COUNT)])?;
        rounds.note_all("word", &took["word"], &["p50_us", "p99_us"])?;
    }
    let median = |name: &str| rounds.median(name);
    let (word, fsync, own) = (median("word.p50_us"), median("fsync"), median("alone.word_us"));
    let limit = own + 3.0 * fsync + ADDED_US;
    let mut figures = vec![
        Figure::new("message → first word, p50 / p99", both(word, median("word.p99_us")))
            .beside(format!("agent's own {} + 3 fsyncs + 5 ms = {}", time(own), time(limit)), word / limit)
            .aim("≤ 1.00 ×", word <= limit),
        Figure::new("the agent alone: ready / first word", both(median("alone.ready_us"), own)),
        Figure::new(
            "agent and supervisor: ready / first word",
            both(median("supervised.ready_us"), median("supervised.word_us")),
        ),
        Figure::new(
            "the same without a spare: ready / first word",
            both(median("cold.ready_us"), median("cold.word_us")),
        ),
        Figure::new("an fsync of this disk", time(fsync)),
    ];
    for files in FILES {
        figures.extend(in_repository(bench, &server, files)?);
    }
    server.stop().context("after the words")?;
    figures.extend(disk(bench)?);
    Ok(figures)
}

/// The time that a repository of so many files adds to a turn, before its first word and after its last one. Turns there, turns in a
/// directory of no repository and the person's own looks are taken by turns, in an order that changes from round to round; each round
/// gives the medians of as many of each.
fn in_repository(bench: &Bench, server: &BenchServer, files: usize) -> Result<Vec<Figure>> {
    let repository = bench.fresh(&format!("repository-{files}"))?;
    make_repository(&repository, files)?;
    let there = repository.to_str().context("a path that is text")?;
    // The first turn has everything to look at, and its snapshot everything to copy.
    bench.load(server, "word", &[("count", "1"), ("directory", there)])?;
    let mut rounds = Rounds::default();
    for round in 0..bench.rounds {
        for part in 0..3 {
            match (round + part) % 3 {
                0 => rounds.note("status", statuses_us(&repository)?),
                1 => note_turns(&mut rounds, "plain", bench.load(server, "word", &turns(None))?)?,
                _ => note_turns(&mut rounds, "there", bench.load(server, "word", &turns(Some(there)))?)?,
            }
        }
    }
    let status = rounds.median("status");
    let added = |what: &str, to: &str| {
        let [there, plain] = ["there", "plain"].map(|place| rounds.median(&format!("{place}.{what}.p50_us")));
        let more = (there - plain).max(0.0);
        Figure::new(format!("a repository of {files} files adds {to}"), time(more))
            .beside(format!("git status {}", time(status)), more / status)
            .aim("≤ 1.50 ×", more / status <= STATUS_RATIO_MAX)
    };
    Ok(vec![added("word", "before the first word"), added("end", "after the last one")])
}

fn turns(directory: Option<&str>) -> Vec<(&str, &str)> {
    let directory = directory.map(|directory| ("directory", directory));
    [("count", TURNS), ("warm", "1")].into_iter().chain(directory).collect()
}

fn note_turns(rounds: &mut Rounds, place: &str, took: Value) -> Result<()> {
    for part in ["word", "end"] {
        rounds.note_all(&format!("{place}.{part}"), &took[part], &["p50_us"])?;
    }
    Ok(())
}

/// The median of as many looks as there are turns, after one that does not count.
fn statuses_us(repository: &Path) -> Result<f64> {
    status_us(repository)?;
    let count: usize = TURNS.parse().context("a number")?;
    let mut took = (0..count).map(|_| status_us(repository)).collect::<Result<Vec<f64>>>()?;
    took.sort_by(f64::total_cmp);
    Ok(took[took.len() / 2])
}

/// The person's own look at their repository.
fn status_us(repository: &Path) -> Result<f64> {
    let began = Instant::now();
    let status = Command::new("git").current_dir(repository).args(["status", "--porcelain"]).status()?;
    ensure!(status.success(), "git status ended with {status}");
    Ok(began.elapsed().as_secs_f64() * 1e6)
}

/// The bytes that a turn adds to the disk, beside those that it changes.
fn disk(bench: &Bench) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for changed in CHANGED_FILES {
        let repository = bench.fresh(&format!("changed-{changed}"))?;
        make_repository(&repository, FILES[0])?;
        let there = repository.to_str().context("a path that is text")?;
        let data = bench.fresh("disk")?;
        let work =
            format!("for f in $(seq {changed}); do head -c {CHANGED_BYTES} /dev/urandom > new$f.bin; done");
        let text = format!("!run {work}; echo done");
        let turn = |count: &str| {
            let server = bench.serve_in(&data)?;
            bench.load(&server, "word", &[("count", count), ("directory", there), ("text", &text)])?;
            // Whoever ends politely has copied what it began to copy.
            server.stop().context("after the turns")
        };
        turn("1")?;
        let before = held_bytes(&data)? + held_bytes(&repository.join(".git"))?;
        turn(CHANGES)?;
        let turns: u64 = CHANGES.parse().context("a number")?;
        let after = held_bytes(&data)? + held_bytes(&repository.join(".git"))?;
        let (each, wanted) = (after.saturating_sub(before) / turns, changed * CHANGED_BYTES);
        let what = format!("disk that a turn adds which changes {changed} × 10 kB of 1,000 files");
        let ratio = each as f64 / wanted as f64;
        figures.push(
            Figure::new(what, format!("{} kB", each / 1_000))
                .beside(format!("changed {} kB", wanted / 1_000), ratio)
                .aim("≤ 2.00 ×", ratio <= DISK_RATIO_MAX),
        );
    }
    Ok(figures)
}

/// The bytes of all files below a directory, but those of the database: what is said is counted elsewhere.
fn held_bytes(dir: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let (path, about) = (entry.path(), entry.metadata()?);
        if about.is_dir() {
            bytes += held_bytes(&path)?;
        } else if !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("homing.db")) {
            bytes += about.len();
        }
    }
    Ok(bytes)
}

/// A repository with its files committed.
fn make_repository(dir: &Path, files: usize) -> Result<()> {
    for number in 0..files {
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
