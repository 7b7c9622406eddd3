//! The findings of `doctor` about a server that runs: whether it is the program that is here, and what it sees otherwise than this
//! shell does. It is the server's eyes that count: its `PATH`, its home and its variables are the ones agents are started with.

use std::collections::BTreeSet;
use std::path::PathBuf;

use api::client::ClientError;
use api::{RunningProgram, SignIn};

use super::agents::ShellAgent;
use super::{CheckState, Finding};
use crate::config::Config;
use crate::data_dir::DataDir;
use crate::remote::{LocationSource, Remote, ServerLocation};
use crate::screen::Screen;
use crate::system;

/// The way to bring another program, or another `PATH`, into force.
const RESTART: &str =
    "`homing down`, then `homing up --background` from this shell; for a service, `homing service install`";

/// The server's own view of its machine.
#[derive(Debug)]
pub(super) struct ServerView {
    program: Option<RunningProgram>,
    agents: Vec<api::Agent>,
}

/// Asks the server of this machine, if one answers and lets us.
pub(super) async fn ask(data_dir: &DataDir, screen: Screen) -> Option<Result<ServerView, ClientError>> {
    let location = ServerLocation::read(data_dir).ok()?;
    if location.source != LocationSource::DataDir || !location.answers() {
        return None;
    }
    let client = Remote::find(data_dir, screen).ok()?.client;
    let program = match client.running_program().await {
        Ok(program) => Some(program),
        // A server from before this could be asked.
        Err(ClientError::Refused(_)) => None,
        Err(error) => return Some(Err(error)),
    };
    Some(client.agents().await.map(|page| ServerView { program, agents: page.items }))
}

/// The finding about the program that the server is: this one, or another.
pub(super) fn program(view: &ServerView) -> Finding {
    let check = "program";
    let (own_version, own_build) = (system::VERSION, system::build());
    let Some(program) = &view.program else {
        let detail = format!("the server that runs does not say its version; this is {own_version}");
        return Finding::warn(check, detail, RESTART);
    };
    let RunningProgram { version, build, program: file, replaced, pid, .. } = program;
    if *version != own_version {
        let detail = format!(
            "the server (process {pid}) is version {version} of {file}; this is version {own_version}"
        );
        return Finding::warn(check, detail, RESTART);
    }
    if *replaced {
        let detail = format!(
            "{file} was replaced since the server (process {pid}) was started: it still runs the old one"
        );
        return Finding::warn(check, detail, RESTART);
    }
    if !build.is_empty() && *build != own_build {
        let detail = format!(
            "the server (process {pid}) is another build of version {version}, {build} of {file}; this is {own_build}"
        );
        return Finding::warn(check, detail, RESTART);
    }
    Finding::ok(check, format!("the server is this program, version {version}, build {build}"))
}

/// The finding about where the server looks for agents.
pub(super) fn path(view: &ServerView) -> Option<Finding> {
    let check = "path";
    let theirs = directories(&view.program.as_ref()?.path);
    let ours = directories(&std::env::var("PATH").unwrap_or_default());
    let missing: Vec<&PathBuf> = ours.difference(&theirs).collect();
    if missing.is_empty() {
        return Some(Finding::ok(check, "the server looks for agents wherever this shell does"));
    }
    let missing: Vec<String> = missing.iter().map(|dir| dir.display().to_string()).collect();
    // What is missing there matters only for an agent that is in it, which has a finding of its own.
    Some(Finding::ok(
        check,
        format!("on the PATH of this shell, and not on the server's: {}", missing.join(", ")),
    ))
}

fn directories(path: &str) -> BTreeSet<PathBuf> {
    std::env::split_paths(path).filter(|dir| dir.is_absolute() && dir.is_dir()).collect()
}

/// One line about what the server sees, and one for each agent that this shell sees otherwise.
pub(super) fn agents(view: &ServerView, shell: &[ShellAgent], config: &Config) -> Vec<Finding> {
    let real = |agent: &&api::Agent| agent.here && agent.kind != "scripted";
    let seen = view.agents.iter().filter(real).map(|agent| {
        let version = agent.version.as_deref().unwrap_or("no version");
        format!("{} {version} ({})", agent.name, sign_in(&agent.sign_in))
    });
    let seen: Vec<String> = seen.collect();
    let default = view.agents.iter().find(|agent| agent.default).map_or("none", |agent| agent.name.as_str());
    let mut findings = vec![Finding::ok(
        "server's agents",
        match seen.is_empty() {
            true => format!("the server finds no agent; new sessions use {default}"),
            false => format!("the server finds {}; new sessions use {default}", seen.join(", ")),
        },
    )];
    findings.extend(shell.iter().filter_map(|own| {
        let theirs = view.agents.iter().find(|agent| agent.name == own.name)?;
        difference(own, theirs)
    }));
    let known = |name: &String| view.agents.iter().any(|agent| agent.name == *name);
    let unknown: Vec<&str> = config.agents.keys().filter(|name| !known(name)).map(String::as_str).collect();
    let unknown: Vec<&str> =
        unknown.into_iter().filter(|name| shell.iter().any(|own| own.name == *name)).collect();
    if !unknown.is_empty() {
        let detail = format!("in the configuration, and not known to the server: {}", unknown.join(", "));
        findings.push(Finding::warn("server's agents", detail, RESTART));
    }
    findings
}

/// The way in which shell and server see an agent differently.
fn difference(own: &ShellAgent, theirs: &api::Agent) -> Option<Finding> {
    let name = &own.name;
    let told = |state, detail: String, remedy: &str| {
        let remedy = Some(remedy.to_owned());
        Some(Finding { check: name.clone(), state, detail, remedy, attack: None })
    };
    match (&own.version, theirs.here) {
        (Some(version), false) => {
            let why = theirs.missing.clone().unwrap_or_default();
            let detail = format!("this shell finds {version}, the server does not: {why}");
            return told(CheckState::Warn, detail, RESTART);
        }
        (None, true) => {
            let version = theirs.version.as_deref().unwrap_or("one");
            let detail = format!("the server finds {version}, this shell does not");
            return told(CheckState::Ok, detail, "nothing has to be done: the server's is used");
        }
        (None, false) => return None,
        (Some(version), true) if theirs.version.as_ref().is_some_and(|theirs| theirs != version) => {
            let theirs = theirs.version.as_deref().unwrap_or_default();
            let detail = format!("the server finds {theirs}, this shell {version}");
            return told(CheckState::Warn, detail, "have one of them only, or set `program` in its table");
        }
        (Some(_), true) => {}
    }
    match (&own.sign_in, &theirs.sign_in) {
        (agent::SignIn::Here { by }, SignIn::Missing { .. }) => {
            let is_variable = !by.contains('/');
            let remedy = match is_variable {
                true => format!(
                    "start the server where {by} is set; for a service, put {by}=… into ~/.config/homing/environment and restart it"
                ),
                false => RESTART.to_owned(),
            };
            let detail = format!("signed in for this shell by {by}, and NOT for the server");
            told(CheckState::Warn, detail, &remedy)
        }
        (agent::SignIn::Missing { .. }, SignIn::Here { by }) => told(
            CheckState::Ok,
            format!("signed in for the server by {by}, and not for this shell"),
            "nothing has to be done: the server's is used",
        ),
        _ => None,
    }
}

fn sign_in(sign_in: &SignIn) -> &'static str {
    match sign_in {
        SignIn::Here { .. } => "signed in",
        SignIn::Missing { .. } => "not signed in",
        SignIn::Unknown => "sign-in unknown",
    }
}
