//! The programs the test commands need beyond Rust itself, each with its version, fetched once into a cache outside the
//! checkout.
//!
//! Everything comes from a package registry by name, through that registry's own client; nothing is downloaded by
//! address. A program that is on the machine in the right version is used as it is. The agents are in `agents`, the
//! identity provider in `provider`, what both have from npm in `npm`.

mod agents;
mod npm;
mod provider;

pub(crate) use agents::agents;
pub(crate) use provider::{VARIABLE as PROVIDER_VARIABLE, provider};

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

/// The pauses before a fetch is tried again: a registry that is busy is so for seconds or a minute.
const FETCH_PAUSES: [Duration; 3] =
    [Duration::from_secs(5), Duration::from_secs(20), Duration::from_secs(60)];

/// Fetch the programs the test commands need and print where they are
///
/// The test commands do this by themselves; this is for preparing a machine, and for calling the programs by hand.
#[derive(clap::Args)]
pub(crate) struct ToolsArgs {
    /// Fetch the real agents instead (3.4 GB), and print the variables that tell tests where they are
    #[arg(long)]
    agents: bool,
}

pub(crate) fn tools(args: &ToolsArgs) -> Result<()> {
    if args.agents {
        print!("{}", agents()?);
        return Ok(());
    }
    println!("cargo-nextest  {}", nextest()?.display());
    println!("cargo-deny     {}", deny()?.display());
    println!("schemathesis   {}", schemathesis()?.display());
    println!("oidc-provider  {}", provider()?.display());
    println!("shells         {}", shells()?);
    sandbox()?;
    println!("sandbox        bwrap");
    println!("chromium       {}", chromium()?.display());
    Ok(())
}

/// The test runner. Any 0.9 will do: our configuration asks for nothing newer.
pub(crate) fn nextest() -> Result<PathBuf> {
    CargoTool { name: "cargo-nextest", version: "0.9.143", good_enough: "cargo-nextest 0.9." }.get()
}

/// Checks the licences, sources and bans of `deny.toml`.
pub(crate) fn deny() -> Result<PathBuf> {
    CargoTool { name: "cargo-deny", version: "0.20.2", good_enough: "cargo-deny 0.20." }.get()
}

/// Makes requests from the OpenAPI document. Returns the path of its command, `st`.
pub(crate) fn schemathesis() -> Result<PathBuf> {
    const VERSION: &str = "4.32.5";
    let home = cache()?.join(format!("schemathesis-{VERSION}"));
    let command = home.join("bin/st");
    once(&home, || {
        let python = python_with_venv()?;
        run(Command::new(&python).args(["-m", "venv", "--clear"]).arg(&home))?;
        let pip = home.join("bin/python");
        fetch(
            Command::new(&pip)
                .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
                .arg(format!("schemathesis=={VERSION}")),
        )
    })?;
    ensure!(
        answers(&command, VERSION),
        "{} does not say it is {VERSION}; remove {} and try again",
        command.display(),
        home.display()
    );
    Ok(command)
}

/// rustfmt and clippy come with most toolchains, and with rustup where they do not.
pub(crate) fn component(program: &str, component: &str) -> Result<()> {
    if answers(Path::new(program), "") {
        return Ok(());
    }
    fetch(Command::new("rustup").args(["component", "add", component]))
        .with_context(|| format!("{program} is missing; install the toolchain's component {component}"))
}

/// SQLite is compiled from C.
pub(crate) fn c_compiler() -> Result<()> {
    if ["cc", "gcc", "clang"].iter().any(|name| answers(Path::new(name), "")) {
        return Ok(());
    }
    apt_install("build-essential").context("a C compiler is missing; install one")
}

/// The shells whose completion is tested, in whatever version the system has.
pub(crate) fn shells() -> Result<String> {
    const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];
    for shell in SHELLS.into_iter().filter(|shell| !answers(Path::new(shell), "")) {
        apt_install(shell).with_context(|| format!("{shell} is missing; install it"))?;
    }
    Ok(SHELLS.join(", "))
}

/// The sandbox that agents bring along which is tried behind the wall, as far as the system has it.
pub(crate) fn sandbox() -> Result<()> {
    if answers(Path::new("bwrap"), "") {
        return Ok(());
    }
    apt_install("bubblewrap").context("bubblewrap is missing; install it")
}

/// The browser in which the app is tried: the system's, which nothing but its packages brings up to date.
pub(crate) fn chromium() -> Result<PathBuf> {
    if !answers(Path::new("chromium"), "Chromium ") {
        apt_install("chromium").context("Chromium is missing; install it")?;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|dir| dir.join("chromium")).find(|path| path.is_file());
    found.context("chromium is installed and not on the PATH")
}

struct CargoTool {
    name: &'static str,
    /// Built when there is none.
    version: &'static str,
    /// The beginning of the output of `--version` when the one on the machine can be used.
    good_enough: &'static str,
}

impl CargoTool {
    fn get(&self) -> Result<PathBuf> {
        let on_path = PathBuf::from(self.name);
        if answers(&on_path, self.good_enough) {
            return Ok(on_path);
        }
        let home = cache()?.join(format!("{}-{}", self.name, self.version));
        once(&home, || self.build(&home))?;
        Ok(home.join("bin").join(self.name))
    }

    fn build(&self, home: &Path) -> Result<()> {
        println!("building {} {} (once; kept in {})", self.name, self.version, home.display());
        let mut cargo = cargo();
        // Unoptimized it is ready sooner, and its work here is a matter of seconds anyway.
        cargo.args(["install", "--quiet", "--locked", "--profile", "dev", "--root"]).arg(home);
        cargo.arg(format!("{}@{}", self.name, self.version));
        // Away from the checkout, so that its settings do not shape a program that is none of its rooms.
        fetch(cargo.current_dir(home).env_remove("CARGO_TARGET_DIR"))
    }
}

/// `cargo`, without what `cargo run` told us about ourselves.
pub(crate) fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    let ours = |name: &OsStr| {
        let name = name.to_string_lossy();
        name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
    };
    for (name, _) in std::env::vars_os().filter(|(name, _)| ours(name)) {
        cargo.env_remove(name);
    }
    cargo
}

/// `cargo` with clippy's compiler: whatever it builds of the workspace is linted in the same go, and no warning is let
/// through. Packages from elsewhere are compiled as always.
pub(crate) fn linting_cargo() -> Result<Command> {
    let mut cargo = cargo();
    lint(&mut cargo)?;
    Ok(cargo)
}

/// Lets the cargo that this command is, or starts, build with clippy's compiler.
pub(crate) fn lint(command: &mut Command) -> Result<()> {
    component("cargo-clippy", "clippy")?;
    let printed = Command::new("rustc").args(["--print", "sysroot"]).output().context("rustc")?;
    let sysroot = PathBuf::from(String::from_utf8(printed.stdout).context("rustc's directory")?.trim());
    let driver = sysroot.join("bin/clippy-driver");
    ensure!(driver.is_file(), "{} is missing; install the toolchain's component clippy", driver.display());
    // What `cargo clippy -- -D warnings` tells its compiler, in the form in which it does.
    const ARGUMENTS: &str = "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__";
    command.env("RUSTC_WORKSPACE_WRAPPER", driver).env("CLIPPY_ARGS", ARGUMENTS);
    Ok(())
}

/// Runs a command to its end, its output going where ours goes.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let said = said(command);
    let status =
        command.stdin(Stdio::null()).status().with_context(|| format!("could not start `{said}`"))?;
    if !status.success() {
        bail!("`{said}` ended with {status}");
    }
    Ok(())
}

/// Runs a command to its end, and answers what it printed after passing it on line by line.
pub(crate) fn run_aloud(command: &mut Command) -> Result<(ExitStatus, String)> {
    let said = said(command);
    let starting = || format!("could not start `{said}`");
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().with_context(starting)?;
    let mut printed = String::new();
    for line in BufReader::new(child.stdout.take().expect("it is piped")).lines() {
        let line = line?;
        println!("{line}");
        printed += &line;
        printed.push('\n');
    }
    Ok((child.wait()?, printed))
}

/// Runs a command that gets something over the network, and again after a pause if it fails: one lost connection must not
/// be the end of everything. Only for commands that go on where they were, or begin anew.
fn fetch(command: &mut Command) -> Result<()> {
    fetch_with(command, &FETCH_PAUSES)
}

fn fetch_with(command: &mut Command, pauses: &[Duration]) -> Result<()> {
    for pause in pauses {
        match run(command) {
            Ok(()) => return Ok(()),
            Err(error) => println!("{error:#}; once more in {pause:?}"),
        }
        std::thread::sleep(*pause);
    }
    run(command)
}

/// A command as a person would type it.
fn said(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(command.get_program());
    let words = std::iter::once(name).chain(command.get_args()).map(OsStr::to_string_lossy);
    words.collect::<Vec<_>>().join(" ")
}

/// True if `PROGRAM --version` works and its output has these words.
fn answers(program: &Path, words: &str) -> bool {
    let output = Command::new(program).arg("--version").stdin(Stdio::null()).output();
    output.is_ok_and(|output| {
        output.status.success() && String::from_utf8_lossy(&output.stdout).contains(words)
    })
}

fn cache() -> Result<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
    Ok(base
        .context("neither XDG_CACHE_HOME nor HOME is set; set one, tools are kept below it")?
        .join("homing-tools"))
}

/// Writes down where programs are, so that a test that is run by hand finds them, too.
fn write_down(cache: &Path, file: &str, lines: &str) -> Result<()> {
    let (written, whole) = (cache.join(format!("{file}.{}", std::process::id())), cache.join(file));
    std::fs::write(&written, lines)?;
    std::fs::rename(&written, &whole).with_context(|| format!("could not write {}", whole.display()))
}

/// Fills a directory once: at the same time by one process only, and again if the last one did not get to the end.
fn once(home: &Path, fill: impl FnOnce() -> Result<()>) -> Result<()> {
    std::fs::create_dir_all(home).with_context(|| format!("could not make {}", home.display()))?;
    let lock = File::create(home.with_added_extension("lock"))?;
    lock.lock()?;
    let done = home.join("complete");
    if !done.exists() {
        fill()?;
        std::fs::write(done, "")?;
    }
    Ok(())
}

fn python_with_venv() -> Result<PathBuf> {
    let python = PathBuf::from("python3");
    let has_venv = || {
        let probe =
            Command::new("python3").args(["-c", "import venv, ensurepip"]).stderr(Stdio::null()).status();
        probe.is_ok_and(|status| status.success())
    };
    if !has_venv() {
        apt_install("python3-venv").context("Python with venv is missing; install it")?;
    }
    Ok(python)
}

fn apt_install(package: &str) -> Result<()> {
    fetch(Command::new("apt-get").args(["update", "--quiet"]))?;
    fetch(
        Command::new("apt-get")
            .args(["install", "--yes", "--quiet", package])
            .env("DEBIAN_FRONTEND", "noninteractive"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_filled_once_and_again_after_a_failure() {
        let home = std::env::temp_dir().join(format!("homing-once-{}", std::process::id()));
        let mut calls = 0;
        assert!(once(&home, || bail!("cut off")).is_err());
        for _ in 0..2 {
            once(&home, || {
                calls += 1;
                Ok(())
            })
            .unwrap();
        }
        assert_eq!(calls, 1);
        std::fs::remove_file(home.with_added_extension("lock")).unwrap();
        std::fs::remove_dir_all(home).unwrap();
    }

    #[test]
    fn what_could_not_be_fetched_is_tried_again_and_not_for_ever() {
        let place = std::env::temp_dir().join(format!("homing-fetch-{}", std::process::id()));
        let mut command = Command::new("sh");
        // Works the third time.
        command.args(["-c", "echo x >> \"$0\"; test $(wc -l < \"$0\") -ge 3"]).arg(&place);
        assert!(fetch_with(&mut command, &[Duration::ZERO]).is_err());
        fetch_with(&mut command, &[Duration::ZERO]).unwrap();
        std::fs::remove_file(place).unwrap();
    }

    /// A package of one file is built as the tests are, then run.
    fn lint_and_run(name: &str, main: &str) -> bool {
        let place = std::env::temp_dir().join(format!("homing-lint-{name}-{}", std::process::id()));
        std::fs::create_dir_all(place.join("src")).unwrap();
        std::fs::write(place.join("Cargo.toml"), "[package]\nname = \"linted\"\nedition = \"2024\"\n")
            .unwrap();
        std::fs::write(place.join("src/main.rs"), main).unwrap();
        let mut cargo = linting_cargo().unwrap();
        cargo.args(["run", "--quiet"]).current_dir(&place).env("CARGO_TARGET_DIR", place.join("target"));
        let ran = cargo.stderr(Stdio::null()).status().unwrap().success();
        std::fs::remove_dir_all(place).unwrap();
        ran
    }

    #[test]
    fn one_build_lints_and_makes_programs_that_run() {
        assert!(lint_and_run("clean", "fn main() {}\n"));
        // The first is clippy's alone, the second rustc's.
        assert!(!lint_and_run("clippy", "fn main() {\n    let one = 1 * 1_u32;\n    drop(one + 0);\n}\n"));
        assert!(!lint_and_run("rustc", "fn main() {\n    let unused = 1;\n}\n"));
    }

    #[test]
    fn what_a_command_prints_is_kept_with_how_it_ended() {
        let (ended, printed) = run_aloud(Command::new("sh").args(["-c", "echo a; echo b; exit 3"])).unwrap();
        assert_eq!((ended.code(), printed.as_str()), (Some(3), "a\nb\n"));
    }

    #[test]
    fn a_command_that_fails_is_named_with_its_arguments() {
        let error = run(Command::new("false").arg("--loudly")).unwrap_err().to_string();
        assert!(error.starts_with("`false --loudly` ended with"), "{error}");
    }
}
