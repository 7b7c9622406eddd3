//! The whole daemon in one thread from one seed, in bad weather.
//!
//! Read in this order: `story` (how a seed becomes a story and its verdict), `forecast` (what a seed has in store),
//! `town` (daemons that come and go), `weather` (their way to the store), `leash` (their way to the agent), `grove` (their
//! way to the working trees), `people` (who talk to them), `doors` (through what, and where replies go), `notes`, `ledger`
//! and `rulebook` (what is seen), `check` (the laws), `bug` (what can be planted to prove that the checks see it). The engine, the kernel and the store are the real ones; the time is virtual.
#![forbid(unsafe_code)]

mod bug;
mod check;
mod dice;
mod doors;
mod forecast;
mod ground;
mod grove;
mod leash;
mod ledger;
mod notes;
mod panics;
mod people;
mod rulebook;
mod story;
mod sweep;
mod town;
mod weather;

pub use bug::Bug;
pub use dice::Dice;
pub use notes::BrokenLaw;
pub use story::{Figures, SeedVerdict, Telling, run};
pub use sweep::{Sweep, sweep};
