//! The chores of the house, in Rust so that they run wherever the house builds: `cargo xtask CHORE`.
//!
//! A chore is a file here with a doc comment that is its help. `tidy` reads the sources and says what is out of place.
//! `quick`, `test` and `nightly` are the test commands: tables of `steps`, whose functions are in `checks` and whose numbers
//! in `counts`. `tools` fetches the programs they need, `bench` measures, `soak` kills the server until somebody is tired of
//! it, `orphans` kills everything else, too, `sim` runs the whole daemon in bad weather from many seeds,
//! `mutate-people` breaks each rule about people and looks whether every store notices, `ui` builds the browser app. A chore appears below when it works.
#![forbid(unsafe_code)]

mod bench;
mod checks;
mod counts;
mod mutate;
mod nightly;
mod orphans;
mod quick;
mod repository;
mod sim;
mod soak;
mod steps;
mod test;
mod tidy;
mod tools;
mod ui;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;

/// Chores of the Homing repository
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Chore {
    Tidy(tidy::TidyArgs),
    Quick(quick::QuickArgs),
    Test(test::TestArgs),
    Nightly(nightly::NightlyArgs),
    Tools(tools::ToolsArgs),
    Bench(bench::BenchArgs),
    Soak(soak::SoakArgs),
    Orphans(orphans::OrphansArgs),
    Sim(sim::SimArgs),
    MutatePeople(mutate::MutateArgs),
    Ui(ui::UiArgs),
}

fn main() -> ExitCode {
    let done = match Chore::parse() {
        Chore::Tidy(args) => tidy::tidy(&args, &root()),
        Chore::Quick(args) => quick::quick(&args, &root()),
        Chore::Test(args) => test::test(&args, &root()),
        Chore::Nightly(args) => nightly::nightly(&args, &root()),
        Chore::Tools(args) => tools::tools(&args),
        Chore::Bench(args) => bench::bench(&args, &root()).map(drop),
        Chore::Soak(args) => soak::soak(&args, &root()).map(drop),
        Chore::Orphans(args) => orphans::orphans(&args, &root()).map(drop),
        Chore::Sim(args) => sim::sim(&args, &root()).map(drop),
        Chore::MutatePeople(args) => mutate::mutate_people(&args, &root()).map(drop),
        Chore::Ui(args) => ui::ui(&args, &root()),
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
