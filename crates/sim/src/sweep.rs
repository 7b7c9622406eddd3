//! Many seeds, over several threads: each story has a thread to itself from its beginning to its end.

use crate::story::{Figures, SeedVerdict, Telling, run};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The outcome of many seeds.
#[derive(Debug, Default)]
pub struct Sweep {
    /// The number of seeds that were run.
    pub seeds: u64,
    /// Counts of what happened in them.
    pub figures: Figures,
    /// The smallest seed whose story broke a law, if one did.
    pub failed: Option<SeedVerdict>,
}

/// Runs the stories of these seeds over so many threads, until one breaks a law.
pub fn sweep(seeds: Range<u64>, telling: Telling, threads: usize) -> Sweep {
    let next = AtomicU64::new(seeds.start);
    let stop = AtomicBool::new(false);
    let came = Mutex::new(Sweep::default());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    let verdict = run(seed, telling);
                    let mut came = came.lock().expect("nothing panics while it is held");
                    came.seeds += 1;
                    came.figures.add(verdict.figures);
                    if !verdict.broken.is_empty() {
                        stop.store(true, Ordering::Relaxed);
                        came.fail(verdict);
                    }
                }
            });
        }
    });
    came.into_inner().expect("every thread has ended well")
}

impl Sweep {
    fn fail(&mut self, verdict: SeedVerdict) {
        if self.failed.as_ref().is_none_or(|failed| verdict.seed < failed.seed) {
            self.failed = Some(verdict);
        }
    }
}

impl Figures {
    fn add(&mut self, other: Self) {
        self.messages += other.messages;
        self.sessions += other.sessions;
        self.facts += other.facts;
        self.attempts += other.attempts;
        self.starts += other.starts;
        self.takeovers += other.takeovers;
        self.moves += other.moves;
        self.errands += other.errands;
        self.forks += other.forks;
        self.steered += other.steered;
        self.held += other.held;
        self.stale += other.stale;
        self.questions += other.questions;
        self.ruled += other.ruled;
        self.unattended += other.unattended;
        self.imports += other.imports;
        self.delivered += other.delivered;
        self.unsure += other.unsure;
    }
}
