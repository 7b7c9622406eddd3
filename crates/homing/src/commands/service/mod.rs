//! `homing service`: the server as a service of its user, by systemd, or by launchd on macOS.
//!
//! `unit` has the texts, `file` the file. The service manager's own program is run if it is there and answers; if not, the commands
//! are printed for whoever can type them.

mod file;
mod unit;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use clap::Subcommand;
use serde_json::json;

use crate::background;
use crate::data_dir::DataDir;
use crate::exit::{CliError, Exit};
use crate::screen::Screen;
use crate::system;
use crate::wiring::ListenArgs;
use file::ServiceFile;
use unit::ServiceSetup;

/// The service's name.
const NAME: &str = "homing";

/// Run the server as a service of your user
///
/// By systemd, or by launchd on macOS: it starts with you and is started again when it fails. The service looks for agents on the
/// PATH that this shell has when it is installed.
#[derive(clap::Args)]
pub(crate) struct ServiceArgs {
    #[command(subcommand)]
    verb: ServiceVerb,
}

#[derive(Subcommand)]
enum ServiceVerb {
    /// Write the service, start it, and have it started from now on
    Install {
        #[command(flatten)]
        listen: ListenArgs,
        /// Replace a file that is not ours; it is kept beside it
        #[arg(long)]
        force: bool,
    },
    /// Say whether there is one, and whether it runs
    Status,
    /// Stop the service and take it away; data and sessions stay
    Remove {
        /// Remove a file that is not ours, too
        #[arg(long)]
        force: bool,
    },
}

pub(crate) fn service(args: ServiceArgs, data_dir: &DataDir, screen: Screen) -> Result<Exit> {
    let manager = ServiceRunner::of_this_system()?;
    match args.verb {
        ServiceVerb::Install { listen, force } => install(&manager, &listen, force, data_dir, screen),
        ServiceVerb::Status => status(&manager, data_dir, screen),
        ServiceVerb::Remove { force } => remove(&manager, force, screen),
    }
}

/// Whoever runs services here, and the file that tells them.
#[derive(Debug)]
enum ServiceRunner {
    Systemd { file: PathBuf },
    Launchd { file: PathBuf },
}

impl ServiceRunner {
    fn of_this_system() -> Result<Self> {
        let home = system::home();
        if home == Path::new("/") {
            return Err(CliError::new(Exit::Usage, "there is no home directory to write the service to")
                .hint("run it as the user whose service it is to be, with HOME set")
                .into());
        }
        Ok(if cfg!(target_os = "macos") {
            Self::Launchd { file: home.join("Library/LaunchAgents").join(format!("{NAME}.plist")) }
        } else {
            // Not XDG_CONFIG_HOME: the user's systemd need not have the shell's.
            Self::Systemd { file: home.join(".config/systemd/user").join(format!("{NAME}.service")) }
        })
    }

    fn file(&self) -> &Path {
        match self {
            Self::Systemd { file } | Self::Launchd { file } => file,
        }
    }

    fn text(&self, setup: &ServiceSetup) -> String {
        match self {
            Self::Systemd { .. } => setup.systemd(),
            Self::Launchd { .. } => setup.launchd(NAME),
        }
    }

    /// The commands that bring a written file into force; without starting it, if another server has the directory.
    fn install_commands(&self, starts: bool) -> Vec<Vec<String>> {
        match self {
            Self::Systemd { .. } if starts => vec![
                systemctl(&["daemon-reload"]),
                systemctl(&["enable", NAME]),
                systemctl(&["restart", NAME]),
            ],
            Self::Systemd { .. } => vec![systemctl(&["daemon-reload"]), systemctl(&["enable", NAME])],
            Self::Launchd { file } if starts => {
                vec![words(&["launchctl", "bootstrap", &domain(), &file.to_string_lossy()])]
            }
            Self::Launchd { .. } => Vec::new(),
        }
    }

    fn start_command(&self) -> String {
        match self {
            Self::Systemd { .. } => systemctl(&["start", NAME]).join(" "),
            Self::Launchd { file } => format!("launchctl bootstrap {} {}", domain(), file.display()),
        }
    }

    fn stop_command(&self) -> Vec<String> {
        match self {
            Self::Systemd { .. } => systemctl(&["disable", "--now", NAME]),
            Self::Launchd { .. } => words(&["launchctl", "bootout", &format!("{}/{NAME}", domain())]),
        }
    }

    fn removed_commands(&self) -> Vec<Vec<String>> {
        match self {
            Self::Systemd { .. } => vec![systemctl(&["daemon-reload"])],
            Self::Launchd { .. } => Vec::new(),
        }
    }

    fn state_command(&self) -> Vec<String> {
        match self {
            Self::Systemd { .. } => systemctl(&["is-active", NAME]),
            Self::Launchd { .. } => words(&["launchctl", "print", &format!("{}/{NAME}", domain())]),
        }
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

fn systemctl(verb: &[&str]) -> Vec<String> {
    words(&[&["systemctl", "--user"], verb].concat())
}

fn domain() -> String {
    format!("gui/{}", rustix::process::getuid().as_raw())
}

/// The end of a service manager's command.
enum Ran {
    Well(String),
    /// With its own words.
    Badly(String),
}

fn run(command: &[String]) -> Ran {
    let (program, arguments) = command.split_first().expect("a command has a program");
    match Command::new(program).args(arguments).stdin(Stdio::null()).output() {
        Ok(ended) if ended.status.success() => {
            Ran::Well(String::from_utf8_lossy(&ended.stdout).trim().to_owned())
        }
        Ok(ended) => {
            let said = [ended.stdout, ended.stderr].concat();
            Ran::Badly(String::from_utf8_lossy(&said).trim().to_owned())
        }
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => {
            Ran::Badly(format!("there is no `{program}` here"))
        }
        Err(why) => Ran::Badly(format!("{program}: {why}")),
    }
}

/// Runs them in order; the answer is why the rest has to be typed, and what that is.
fn run_all(commands: &[Vec<String>]) -> Option<(String, Vec<String>)> {
    commands.iter().enumerate().find_map(|(at, command)| match run(command) {
        Ran::Well(_) => None,
        Ran::Badly(why) => Some((why, commands[at..].iter().map(|command| command.join(" ")).collect())),
    })
}

fn install(
    manager: &ServiceRunner,
    listen: &ListenArgs,
    force: bool,
    data_dir: &DataDir,
    screen: Screen,
) -> Result<Exit> {
    // A service that could not start would only be found out later.
    listen.config(data_dir)?;
    let text = manager.text(&setup(listen, data_dir)?);
    let path = manager.file();
    let kept = file::install(path, &text, force)?;
    let holder = background::holder(data_dir)?.filter(|holder| !is_the_service(holder.pid));
    let undone = run_all(&manager.install_commands(holder.is_none()));
    if screen.json {
        let undone = undone.as_ref().map(|(why, commands)| json!({ "why": why, "commands": commands }));
        let running = holder.map(|holder| holder.pid);
        screen.object(&json!({ "file": path, "kept": kept, "undone": undone, "other_server": running }))?;
        return Ok(Exit::Done);
    }
    screen.hanging(0, &format!("written: {}", path.display()))?;
    if let Some(kept) = kept {
        screen.hanging(0, &format!("what was there before is kept as {}", kept.display()))?;
    }
    match (&undone, &holder) {
        (Some((why, commands)), _) => say_what_to_type(why, commands, screen)?,
        (None, None) => {
            screen.hanging(0, "it runs, and starts with you; `homing service status` says how it is")?
        }
        (None, Some(_)) => screen.hanging(0, "it starts with you from the next time on")?,
    }
    if let Some(holder) = holder {
        let start = manager.start_command();
        let words = format!(
            "a server that is not the service has the data directory now (process {}): `homing down`, then `{start}`",
            holder.pid
        );
        screen.hanging(0, &words)?;
    }
    if matches!(manager, ServiceRunner::Systemd { .. }) {
        screen.hanging(0, "to have it run while you are not logged in: loginctl enable-linger")?;
    }
    Ok(Exit::Done)
}

fn say_what_to_type(why: &str, commands: &[String], screen: Screen) -> Result<()> {
    screen.hanging(0, &format!("the service manager was not told: {why}"))?;
    screen.line("type, as this user in a login session:")?;
    commands.iter().try_for_each(|command| screen.line(format!("  {command}")))?;
    Ok(())
}

fn setup(listen: &ListenArgs, data_dir: &DataDir) -> Result<ServiceSetup> {
    let exe = std::env::current_exe().context("our own program cannot be found")?;
    let arguments = listen.arguments()?.into_iter().map(|word| word.to_string_lossy().into_owned());
    Ok(ServiceSetup {
        exe,
        data: data_dir.path.clone(),
        arguments: arguments.collect(),
        path: std::env::var("PATH").unwrap_or_else(|_| processes::PATH_FALLBACK.to_owned()),
    })
}

/// True if that process is the service's, by its control group.
fn is_the_service(pid: u32) -> bool {
    let group = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    group.contains(&format!("/{NAME}.service"))
}

fn status(manager: &ServiceRunner, data_dir: &DataDir, screen: Screen) -> Result<Exit> {
    let path = manager.file();
    let found = file::look(path)?;
    let installed = match &found {
        ServiceFile::Missing => "no",
        ServiceFile::Ours(_) => "yes",
        ServiceFile::Theirs => "not by us",
    };
    let state = match run(&manager.state_command()) {
        Ran::Well(said) | Ran::Badly(said) => said.lines().next().unwrap_or_default().to_owned(),
    };
    let holder = background::holder(data_dir)?;
    let by_service = holder.as_ref().is_some_and(|holder| is_the_service(holder.pid));
    if screen.json {
        let server =
            holder.map(|holder| json!({ "pid": holder.pid, "url": holder.url, "service": by_service }));
        screen.object(&json!({ "file": path, "installed": installed, "state": state, "server": server }))?;
    } else {
        let server = match &holder {
            None => "none is running".to_owned(),
            Some(holder) => {
                let url = holder.url.as_deref().unwrap_or("an address that it has not said yet");
                let by = if by_service { "the service" } else { "not the service; `homing down` stops it" };
                format!("process {} at {url}, {by}", holder.pid)
            }
        };
        screen.pairs(&[
            ("file", path.display().to_string()),
            ("installed", installed.to_owned()),
            ("manager says", state),
            ("server", server),
        ])?;
    }
    if found == ServiceFile::Missing {
        screen.progress("`homing service install` makes one");
        return Ok(Exit::NotFound);
    }
    Ok(Exit::Done)
}

fn remove(manager: &ServiceRunner, force: bool, screen: Screen) -> Result<Exit> {
    let path = manager.file();
    let found = file::look(path)?;
    // First it stops: without its file the manager would not know it any more. One that is not ours is not stopped either.
    let stops = matches!(found, ServiceFile::Ours(_)) || (found == ServiceFile::Theirs && force);
    let stopped = if stops { run(&manager.stop_command()) } else { Ran::Well(String::new()) };
    let removed = file::remove(path, force)?;
    let reloaded = if removed { run_all(&manager.removed_commands()) } else { None };
    let undone = match stopped {
        Ran::Badly(why) => {
            let rest = [vec![manager.stop_command()], manager.removed_commands()].concat();
            Some((why, rest.iter().map(|command| command.join(" ")).collect::<Vec<_>>()))
        }
        Ran::Well(_) => reloaded,
    };
    if screen.json {
        let undone = undone.map(|(why, commands)| json!({ "why": why, "commands": commands }));
        screen.object(&json!({ "file": path, "removed": removed, "undone": undone }))?;
        return Ok(Exit::Done);
    }
    match removed {
        true => screen.hanging(0, &format!("removed: {}; data and sessions stay", path.display()))?,
        false => screen.hanging(0, &format!("there is no service: {} is not there", path.display()))?,
    }
    if let Some((why, commands)) = undone {
        say_what_to_type(&why, &commands, screen)?;
    }
    Ok(Exit::Done)
}
