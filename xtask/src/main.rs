//! The chores of the house, in Rust so that they run wherever the house builds: `cargo xtask CHORE`.
//!
//! A chore is a file here with a doc comment that is its help. `tidy` reads the sources and says what is out of place,
//! `test` is the one test command, `tools` fetches the programs `test` needs, `bench` measures, `soak` kills the server until
//! somebody is tired of it, `orphans` kills everything else, too, `sim` runs the whole daemon in bad weather from many seeds. A chore appears below when it works.
#![forbid(unsafe_code)]

mod bench;
mod house;
mod orphans;
mod sim;
mod soak;
mod test;
mod tidy;
mod tools;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;

/// Chores of the Homing repository
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Chore {
    Tidy(tidy::TidyArgs),
    Test(test::TestArgs),
    Tools(tools::ToolsArgs),
    Bench(bench::BenchArgs),
    Soak(soak::SoakArgs),
    Orphans(orphans::OrphansArgs),
    Sim(sim::SimArgs),
}

fn main() -> ExitCode {
    let done = match Chore::parse() {
        Chore::Tidy(args) => tidy::tidy(&args, &root()),
        Chore::Test(args) => test::test(&args, &root()),
        Chore::Tools(args) => tools::tools(&args),
        Chore::Bench(args) => bench::bench(&args, &root()),
        Chore::Soak(args) => soak::soak(&args, &root()),
        Chore::Orphans(args) => orphans::orphans(&args, &root()),
        Chore::Sim(args) => sim::sim(&args, &root()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The repository's root, wherever in it the chore was called.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("xtask is a folder of the root").to_path_buf()
}
