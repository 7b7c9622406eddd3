//! `homing doctor`: looks at the machine, the data directory and the agents, and says what to do.
//!
//! Each check is a function that makes findings; those about agents are in `agents`, those that a start would fail at in `start`,
//! those about a server that runs in `as_server`.
//! Doctor changes nothing: what it writes to try things out is below a directory of its own, or where the data directory is or would
//! be, and is removed. It costs no money either, unless a turn is asked for.

mod agents;
mod as_server;
mod start;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use processes::wall::{AttackCount, Attacks, PROOF_TRIES, ProbeResult, WallProof};
use rustix::fs::{FlockOperation, flock};
use serde::Serialize;
use store::{AuditLog, AuditRow, ChainHead, People, chain};
use store_sqlite::{Options, SqliteStore};

use crate::completion::Completes;
use crate::config::Config;
use crate::data_dir::DataDir;
use crate::exit::Exit;
use crate::remote::{Remote, ServerLocation};
use crate::roster::scripted;
use crate::screen::{Screen, TextStyle};
use crate::seal::FileSeal;
use crate::wall::WallFor;
use crate::wiring::cannot_open;
use crate::{system, time};

/// Below this the next message may be refused.
const FREE_BYTES_FAIL: u64 = 64 * 1024 * 1024;
/// Below this somebody should make room.
const FREE_BYTES_WARN: u64 = 1024 * 1024 * 1024;
/// A larger database is not read from end to end; that would take minutes.
const CHECKED_BYTES_MAX: u64 = 512 * 1024 * 1024;
/// The longest that one scripted turn under the supervisor may take on a busy machine.
const TURN_WAIT: Duration = Duration::from_secs(20);
/// Snapshots that are named one by one.
const SNAPSHOTS_SHOWN: usize = 10;
/// The beginning of 2026: a clock before that was never set.
const CLOCK_MS_MIN: u64 = 1_767_225_600_000;
/// The most tries of each attack on the wall. A thousand take minutes.
const TRIES_MAX: i64 = 10_000;
/// A file from the future by more than this means that the clock was set back.
const CLOCK_MS_SLACK: u64 = 60_000;

/// Look for what is wrong, and say what to do
///
/// Checks the data directory, its lock, its files' modes, the database, its key, the disk, the clock, the configuration, the
/// server and what it sees otherwise than this shell, the agents, and the supervisor by running one scripted turn. Exits with 1 if something fails.
///
/// Real agents are looked at but not talked to, because their turns may cost money: `--agent NAME` runs one short turn of
/// that agent, `--turns` one of each agent that is here.
#[derive(clap::Args)]
pub(crate) struct DoctorArgs {
    /// The configuration to look at, if not the usual one
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Only this agent, with one real turn, which may cost money
    #[arg(long, value_name = "NAME", add = Completes::Agents)]
    agent: Option<String>,
    /// Run one real turn of each agent that is here, which may cost money
    #[arg(long)]
    turns: bool,
    /// Try each way out of the wall around agents this often, and exit with 1 if one leads out [default: 5 times, and a warning]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=TRIES_MAX), conflicts_with = "agent")]
    tries: Option<u32>,
    /// Look whether a server could listen there [default: as the configuration says]
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
enum CheckState {
    Ok,
    Warn,
    Fail,
}

#[derive(Debug, Serialize)]
struct Finding {
    check: String,
    state: CheckState,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
    /// Of an attack on the wall: how often it was tried, and won.
    #[serde(flatten)]
    attack: Option<AttackCount>,
}

impl Finding {
    fn ok(check: &str, detail: impl Into<String>) -> Self {
        let (check, detail) = (check.to_owned(), detail.into());
        Self { check, state: CheckState::Ok, detail, remedy: None, attack: None }
    }

    fn warn(check: &str, detail: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            check: check.to_owned(),
            state: CheckState::Warn,
            detail: detail.into(),
            remedy: Some(remedy.into()),
            attack: None,
        }
    }

    fn fail(check: &str, detail: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            check: check.to_owned(),
            state: CheckState::Fail,
            detail: detail.into(),
            remedy: Some(remedy.into()),
            attack: None,
        }
    }
}

pub(crate) async fn doctor(args: &DoctorArgs, data_dir: &DataDir, screen: Screen) -> Result<Exit> {
    let scratch = ScratchDir::make()?;
    let wanted = agents::AgentChoice { name: args.agent.as_deref(), turns: args.turns };
    let mut config = Config::load(args.config.as_deref(), &data_dir.path);
    if let (Ok((config, _)), Some(listen)) = (&mut config, &args.listen) {
        config.listen = listen.clone();
    }
    let mut findings = match args.agent {
        Some(_) => Vec::new(),
        None => machine(&config, data_dir, &scratch, args.tries, screen).await,
    };
    match &config {
        Ok((config, _)) => {
            if wanted.name.is_none() {
                findings.push(network(config, data_dir));
            }
            if wanted.turns || wanted.name.is_some() {
                screen.progress("running real turns; they may cost money");
            }
            let (found, shell) = agents::look(wanted, config, &scratch).await;
            findings.extend(found);
            if wanted.name.is_none() {
                findings.extend(server_view(&shell, config, data_dir, screen).await);
            }
        }
        Err(error) if args.agent.is_some() => findings.push(wrong_config(error)),
        Err(_) => {}
    }
    let worst = findings.iter().map(|finding| finding.state).max().unwrap_or(CheckState::Ok);
    if screen.json {
        screen.object(&serde_json::json!({ "state": worst, "checks": findings }))?;
    } else {
        // Dozens of ways out that are closed are for whoever wants to read them all.
        let is_detail = |finding: &&Finding| {
            let is_closed = finding.check == "wall" && finding.state == CheckState::Ok;
            screen.out_is_terminal && is_closed && !finding.detail.starts_with("proved")
        };
        findings
            .iter()
            .filter(|finding| !is_detail(finding))
            .try_for_each(|finding| show(finding, screen))?;
        let details = findings.iter().filter(is_detail).count();
        if details > 0 {
            screen.progress(format!(
                "{details} more lines about the wall say ok; `homing doctor | cat` has them"
            ));
        }
    }
    Ok(if worst == CheckState::Fail { Exit::Failed } else { Exit::Done })
}

/// Everything but the agents.
async fn machine(
    config: &Result<Loaded>,
    data_dir: &DataDir,
    scratch: &ScratchDir,
    tries: Option<u32>,
    screen: Screen,
) -> Vec<Finding> {
    let mut findings = vec![
        start::directory(data_dir),
        lock(data_dir),
        modes(data_dir),
        database(data_dir, scratch),
        key(data_dir, scratch).await,
        disk(data_dir),
        clock(data_dir),
        snapshots(data_dir),
        snapshot_room(data_dir),
        self::config(config),
        server(data_dir, screen).await,
        supervisor(scratch).await,
        groups(),
    ];
    if let Ok((config, _)) = config {
        if let Some(tries) = tries {
            screen
                .progress(format!("trying each way out of the wall {tries} times; a thousand take minutes"));
        }
        findings.extend(wall(config, data_dir, scratch, tries).await);
    }
    findings
}

/// The columns before what a check found.
const MARGIN: usize = 24;

fn show(finding: &Finding, screen: Screen) -> Result<()> {
    let state = match finding.state {
        CheckState::Ok => screen.out(TextStyle::Good, "ok  "),
        CheckState::Warn => screen.out(TextStyle::Doubtful, "warn"),
        CheckState::Fail => screen.out(TextStyle::Bad, "fail"),
    };
    screen.hanging(MARGIN, &format!("{state}  {:<16}  {}", finding.check, finding.detail))?;
    if let Some(remedy) = &finding.remedy {
        let arrow = screen.out(TextStyle::Good, "→");
        screen.hanging(MARGIN + 2, &format!("{:MARGIN$}{arrow} {remedy}", ""))?;
    }
    Ok(())
}

fn lock(data_dir: &DataDir) -> Finding {
    let check = "lock";
    let Ok(file) = fs::File::open(data_dir.path.join("lock")) else {
        return Finding::ok(check, "nobody has taken the directory yet");
    };
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Finding::ok(check, "free: no server has the directory"),
        Err(rustix::io::Errno::WOULDBLOCK) => Finding::ok(check, "held by a running server"),
        Err(why) => Finding::fail(
            check,
            format!("files cannot be locked here: {why}"),
            "put the data directory on a local disk",
        ),
    }
}

fn modes(data_dir: &DataDir) -> Finding {
    let check = "modes";
    let is_open =
        |path: &PathBuf| fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o077 != 0);
    let private = ["token", "key", "homing.db", "homing.db-wal", "lock"].map(|name| data_dir.path.join(name));
    let open: Vec<String> =
        private.iter().filter(|path| is_open(path)).map(|path| path.display().to_string()).collect();
    if open.is_empty() {
        return Finding::ok(check, "what is private can be read by nobody else");
    }
    Finding::fail(
        check,
        format!("others can read {}", open.join(", ")),
        format!(
            "chmod 600 {}; then remove the token and restart the server, which makes a new one",
            open.join(" ")
        ),
    )
}

/// A backup reads every page, checks every index, and refuses what this version does not know: the best check there is.
fn database(data_dir: &DataDir, scratch: &ScratchDir) -> Finding {
    let check = "database";
    let path = data_dir.path.join("homing.db");
    let Ok(found) = fs::metadata(&path) else { return Finding::ok(check, "none yet") };
    if found.len() > CHECKED_BYTES_MAX {
        let detail = format!("{} MiB; too large to be read from end to end here", found.len() >> 20);
        return Finding::warn(check, detail, "`homing backup FILE` checks all of it");
    }
    match store_sqlite::backup(&data_dir.path, &scratch.dir.join("copy.db")) {
        Ok(()) => {
            Finding::ok(check, format!("{} KiB, whole, of a format this version knows", found.len() >> 10))
        }
        Err(store_sqlite::CopyError::Unusable(error)) => {
            let error = cannot_open(error, data_dir);
            Finding::fail(check, error.what, error.hint.unwrap_or_default())
        }
        Err(error) => Finding::fail(check, error.to_string(), "look at the file's owner and mode"),
    }
}

/// The key that is in no backup. With another one the audit does not verify, and people's own sign-ins stay closed.
async fn key(data_dir: &DataDir, scratch: &ScratchDir) -> Finding {
    let check = "key";
    let not_yet = || Finding::ok(check, "none is needed yet; the first start makes it");
    if !data_dir.path.join("homing.db").exists() {
        return not_yet();
    }
    let path = data_dir.path.join("key");
    let seal = match FileSeal::there(&data_dir.path) {
        Ok(seal) => seal,
        Err(error) => return Finding::fail(check, format!("{error:#}"), "put the right file back"),
    };
    let firsts = match first_sealed(scratch).await {
        Ok(firsts) => firsts,
        Err(error) => {
            return Finding::warn(
                check,
                format!("it could not be tried: {error:#}"),
                "look at the line above",
            );
        }
    };
    let Some(seal) = seal else {
        // A start that failed before it did anything has a database and nothing in it.
        return match firsts.is_empty() {
            true => not_yet(),
            false => Finding::fail(
                check,
                format!("{} is missing, and the database was begun with one", path.display()),
                "put your copy back before the next start: that makes a NEW one, with which the audit so far does not verify",
            ),
        };
    };
    let key = engine::Seal::chain_key(&seal);
    let is_ours =
        |first: &AuditRow| first.sealed == Some((1, chain::seal(&key, ChainHead::default(), 1, first)));
    match firsts.iter().all(is_ours) {
        true => Finding::ok(check, "the audit was begun with it"),
        false => Finding::warn(
            check,
            "the audit was begun with ANOTHER key: it does not verify, and sign-ins given before stay closed",
            format!("stop the server and put the old key back at {}, if you have it", path.display()),
        ),
    }
}

/// The first entry of each chain in the copy that `database` has made.
async fn first_sealed(scratch: &ScratchDir) -> Result<Vec<AuditRow>> {
    let (copy, dir) = (scratch.dir.join("copy.db"), scratch.dir.join("sealed"));
    anyhow::ensure!(copy.exists(), "the database was not read");
    fs::create_dir(&dir)?;
    fs::rename(copy, dir.join("homing.db"))?;
    let options = Options::new(kernel::NodeId::from_bits(1), system::host(), system::now());
    let store = SqliteStore::open(&dir, &options)?;
    let mut firsts = Vec::new();
    for org in store.orgs().await? {
        firsts.extend(store.sealed(org.org, 0, 1).await?);
    }
    Ok(firsts)
}

fn disk(data_dir: &DataDir) -> Finding {
    let check = "disk";
    let there = data_dir.path.ancestors().find(|dir| dir.exists()).unwrap_or(Path::new("/"));
    let free = match rustix::fs::statvfs(there) {
        Ok(disk) => disk.f_bavail.saturating_mul(disk.f_frsize),
        Err(why) => return Finding::warn(check, format!("cannot be asked: {why}"), "look with `df`"),
    };
    let detail = format!("{} MiB free", free >> 20);
    match free {
        0..FREE_BYTES_FAIL => {
            Finding::fail(check, detail, "make room: new messages are refused when the disk is full")
        }
        FREE_BYTES_FAIL..FREE_BYTES_WARN => Finding::warn(check, detail, "make room soon"),
        _ => Finding::ok(check, detail),
    }
}

fn clock(data_dir: &DataDir) -> Finding {
    let (check, now) = ("clock", system::now().0);
    let remedy = "set the clock, and keep it set (NTP)";
    if now < CLOCK_MS_MIN {
        return Finding::fail(check, format!("it says {}", time::full(api::At(now))), remedy);
    }
    let written = fs::metadata(data_dir.path.join("homing.db")).and_then(|found| found.modified());
    let ahead = written.ok().and_then(|at| at.duration_since(std::time::SystemTime::now()).ok());
    if ahead.is_some_and(|ahead| ahead.as_millis() > u128::from(CLOCK_MS_SLACK)) {
        return Finding::warn(check, "it was set back: the database is from the future", remedy);
    }
    Finding::ok(check, time::full(api::At(now)))
}

/// Older versions kept snapshots on refs of people's repositories. Those that were not whole are still there.
fn snapshots(data_dir: &DataDir) -> Finding {
    let check = "snapshots";
    let left = match worktrees::snapshots_left_behind(&data_dir.path) {
        Ok(left) => left,
        Err(why) => return Finding::warn(check, why.to_string(), "make the data directory readable for you"),
    };
    let named = left.iter().flat_map(|left| {
        left.references.iter().map(|reference| format!("{reference} in {}", left.repository.display()))
    });
    let named: Vec<String> = named.collect();
    if named.is_empty() {
        return Finding::ok(check, "none is left in people's repositories");
    }
    let shown = some_of(&named);
    let detail = format!("something of these is missing, so they stay where they are: {shown}");
    Finding::warn(
        check,
        detail,
        "look with `git fsck`; delete those that nobody needs with `git update-ref -d REF`",
    )
}

/// Repositories and people whose snapshots take more than they may: old turns there cannot be undone any more, or not for long.
fn snapshot_room(data_dir: &DataDir) -> Finding {
    let check = "snapshot room";
    let crowded = match worktrees::crowded_snapshots(&data_dir.path) {
        Ok(crowded) => crowded,
        Err(why) => return Finding::warn(check, why.to_string(), "make the data directory readable for you"),
    };
    let worktrees::CrowdedSnapshots { repositories, sessions } = crowded;
    let repositories: Vec<String> = repositories.iter().map(|path| path.display().to_string()).collect();
    let sessions: Vec<String> = sessions.iter().map(ToString::to_string).collect();
    let mut said = Vec::new();
    if !repositories.is_empty() {
        let shown = some_of(&repositories);
        said.push(format!("old turns went, or are not copied any more, in {shown} (limits.snapshot_bytes_per_repository_max)"));
    }
    if !sessions.is_empty() {
        let shown = some_of(&sessions);
        said.push(format!("old turns went of these sessions, whose owner has more than may be kept of one person: {shown} (limits.snapshot_bytes_per_person_max)"));
    }
    match said.is_empty() {
        true => Finding::ok(check, "neither a repository nor a person has more than may be kept"),
        false => Finding::warn(
            check,
            said.join("; "),
            "nothing has to be done; large files that change often are better ignored by git",
        ),
    }
}

/// The first of these, and how many more there are.
fn some_of(names: &[String]) -> String {
    let shown = names.iter().take(SNAPSHOTS_SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SNAPSHOTS_SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

type Loaded = (Config, Option<PathBuf>);

fn config(loaded: &Result<Loaded>) -> Finding {
    let check = "config";
    let (config, file) = match loaded {
        Ok(loaded) => loaded,
        Err(error) => return wrong_config(error),
    };
    let refused = start::refused_config(config);
    match (refused, file) {
        (Some(refused), _) => Finding::fail(check, refused.what, refused.hint.unwrap_or_default()),
        (None, Some(file)) => Finding::ok(check, file.display().to_string()),
        (None, None) => Finding::ok(check, "no file; the defaults are in force"),
    }
}

fn wrong_config(error: &anyhow::Error) -> Finding {
    Finding::fail("config", format!("{error:#}"), "`homing config` prints every key")
}

/// The server's reach: what stops a start, and what makes it weaker than it looks.
fn network(config: &Config, data_dir: &DataDir) -> Finding {
    let (check, listen) = ("network", listening(config, data_dir));
    if let Some(taken) = start::taken(config, data_dir) {
        return Finding::fail(check, taken.what, taken.hint.unwrap_or_default());
    }
    if let Some(files) = config.tls.files() {
        let shown = files.certificate.display().to_string();
        return match server::Tls::open(files) {
            Ok(_) => Finding::ok(check, format!("{listen}, encrypted with {shown}")),
            Err(why) => Finding::fail(check, why.to_string(), why.hint()),
        };
    }
    if config.hides_clients() {
        let remedy = "name the proxy in `trusted_proxies`";
        return Finding::warn(check, "behind a proxy that is not trusted: all clients look like it", remedy);
    }
    match crate::wiring::refuse_exposure(&config.listen) {
        _ if config.behind_proxy => Finding::ok(check, format!("{listen}, behind a proxy")),
        Ok(()) => Finding::ok(check, format!("{listen}, from this machine only")),
        Err(error) => Finding::fail(check, error.to_string(), error.hint.unwrap_or_default()),
    }
}

/// Where the next start listens, and the server that runs, if that is elsewhere.
fn listening(config: &Config, data_dir: &DataDir) -> String {
    let running =
        ServerLocation::read(data_dir).ok().filter(ServerLocation::answers).map(|location| location.url);
    match running {
        Some(url) if !url.ends_with(&config.listen) => {
            format!("the server is at {url}; by its configuration {}", config.listen)
        }
        Some(_) | None => config.listen.clone(),
    }
}

async fn server(data_dir: &DataDir, screen: Screen) -> Finding {
    let check = "server";
    let Ok(location) = ServerLocation::read(data_dir) else {
        return Finding::ok(check, "none is running; `homing up` starts one");
    };
    if !location.answers() {
        return Finding::warn(check, format!("none answers at {}", location.url), "`homing up` starts one");
    }
    let me = match Remote::find(data_dir, screen) {
        Ok(remote) => remote.client.me().await.map_err(|error| crate::exit::CliError::from(error).into()),
        Err(error) => Err(error),
    };
    match me {
        Ok(me) => Finding::ok(check, format!("{} knows you as {}", location.url, me.handle)),
        Err(error) => {
            let known = error.downcast_ref::<crate::exit::CliError>();
            let remedy = known.and_then(|known| known.hint.clone()).unwrap_or_default();
            Finding::fail(check, format!("{}: {error:#}", location.url), remedy)
        }
    }
}

/// The view of the server that runs, and where this shell differs.
async fn server_view(
    shell: &[agents::ShellAgent],
    config: &Config,
    data_dir: &DataDir,
    screen: Screen,
) -> Vec<Finding> {
    match as_server::ask(data_dir, screen).await {
        None => Vec::new(),
        Some(Err(error)) => {
            let error = crate::exit::CliError::from(error);
            vec![Finding::warn("server's view", error.what, error.hint.unwrap_or_default())]
        }
        Some(Ok(view)) => {
            let mut findings = vec![as_server::program(&view)];
            findings.extend(as_server::path(&view));
            findings.extend(as_server::agents(&view, shell, config));
            findings
        }
    }
}

/// One scripted turn under the supervisor: processes can be started, talked to, ended and seen gone.
async fn supervisor(scratch: &ScratchDir) -> Finding {
    let check = "supervisor";
    let remedy = "agents cannot be run here: look at limits on processes (`ulimit -u`) and at /proc";
    let answer = match scripted_turn(scratch).await {
        Ok(answer) => answer,
        Err(error) => return Finding::fail(check, format!("{error:#}"), remedy),
    };
    if answer.trim() != "#1 hello" {
        return Finding::fail(check, format!("an unexpected answer: {answer:?}"), remedy);
    }
    if cfg!(target_os = "linux") {
        return Finding::ok(check, "one scripted turn was run, and nothing of it is left");
    }
    Finding::warn(check, "one scripted turn was run", "only Linux can end whole process trees for sure")
}

async fn scripted_turn(scratch: &ScratchDir) -> Result<String> {
    let agent = scripted("scripted", &scratch.dir)?;
    agents::one_turn(&agent, &scratch.dir, "hello", TURN_WAIT).await
}

/// Checks that the trees of agents get control groups, which end them at once and bound their memory.
fn groups() -> Finding {
    let check = "groups";
    if !cfg!(target_os = "linux") {
        return Finding::ok(check, "there are none on this system");
    }
    let line = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = line.lines().find_map(|line| line.strip_prefix("0::/"));
    let Some(own) = own.map(|own| Path::new("/sys/fs/cgroup").join(own)) else {
        let detail = "no control groups (version 2): processes are found by their parents and a mark";
        return Finding::ok(check, detail);
    };
    let may_make = rustix::fs::access(&own, rustix::fs::Access::WRITE_OK).is_ok();
    if may_make {
        return Finding::ok(check, format!("agents get control groups below {}", own.display()));
    }
    let remedy = "let systemd delegate one (`Delegate=memory pids` and `DelegateSubgroup=server` in the unit) for an exact limit of memory";
    Finding::warn(check, format!("no control groups may be made below {}", own.display()), remedy)
}

/// The wall around agents, tried from inside one: a finding for each way out. Whoever has asked for so many tries has a failure
/// where somebody alone has a warning.
async fn wall(config: &Config, data_dir: &DataDir, scratch: &ScratchDir, tries: Option<u32>) -> Vec<Finding> {
    let check = "wall";
    let remedy = "keep to one person whom you trust, or see \"The wall\" in docs/operating.md";
    let own = std::process::id();
    let holder = store_sqlite::holder(&data_dir.path).ok().flatten().map(|holder| holder.pid);
    let (data, server) = match data_dir.path.is_dir() {
        true => (&data_dir.path, holder.filter(|pid| *pid > 0).unwrap_or(own).cast_signed()),
        // Nothing is there to be hidden yet; the machine can be tried all the same.
        false => (&scratch.dir, own.cast_signed()),
    };
    let (mut findings, mut is_proved, mut all) = (Vec::new(), true, Vec::new());
    for whom in crate::wall::walls(config) {
        match crate::wall::prove(config, data, server, *whom, tries.unwrap_or(PROOF_TRIES)).await {
            Ok(proof) => {
                is_proved &= proof.proved;
                all.push(proof.attacks());
                findings.extend(wall_findings(*whom, &proof, remedy));
            }
            Err(error) => {
                return vec![Finding::fail(check, format!("{error:#}"), "mend [wall] in the configuration")];
            }
        }
    }
    let (count, words) = attacks_words(&all);
    let verdict = match is_proved {
        true => Finding::ok(check, format!("proved: agents cannot reach what is the server's ({words})")),
        false => {
            let detail = format!("NOT proved: whoever may prompt can reach what is the server's ({words})");
            Finding::warn(check, detail, remedy)
        }
    };
    findings.push(Finding { attack: Some(count), ..verdict });
    let is_worse = |finding: &&mut Finding| tries.is_some() && finding.state == CheckState::Warn;
    findings.iter_mut().filter(is_worse).for_each(|finding| finding.state = CheckState::Fail);
    findings
}

/// All attacks of these proofs together: the fewest tries that one had, and all that were won.
fn attacks_words(all: &[Attacks]) -> (AttackCount, String) {
    let kinds: usize = all.iter().map(|attacks| attacks.kinds).sum();
    let tries = all.iter().map(|attacks| attacks.tries_min).min().unwrap_or_default();
    let won = all.iter().map(|attacks| attacks.won).sum();
    let words = format!("{kinds} attacks, each tried at least {tries} times, {won} won");
    (AttackCount { tries, won }, words)
}

/// The findings about the wall of one layout.
fn wall_findings(whom: WallFor, proof: &WallProof, remedy: &'static str) -> Vec<Finding> {
    let check = "wall";
    let whose = match whom {
        WallFor::One => "",
        WallFor::Team => "for a team: ",
    };
    let one = |tried: &ProbeResult| {
        let count = tried.attack.map(|count| format!(" ({} tries, {} won)", count.tries, count.won));
        let count = count.unwrap_or_default();
        let detail = format!("{whose}an agent tries to {}: {}{count}", tried.what, tried.seen);
        let found =
            if tried.held { Finding::ok(check, detail) } else { Finding::warn(check, detail, remedy) };
        Finding { attack: tried.attack, ..found }
    };
    let lack = |lack: &String| match proof.proved {
        // The other parts keep what it would.
        true => Finding::ok(check, lack.clone()),
        false => Finding::warn(check, lack.clone(), remedy),
    };
    let layout = match proof.listed.is_empty() {
        true => format!("{whose}agents see everything but what is hidden"),
        false => format!(
            "{whose}agents see their own, a /tmp that goes with them, and what is listed: {}",
            proof.listed.join(", ")
        ),
    };
    let mut findings = vec![Finding::ok(check, layout)];
    findings.extend(proof.lacks.iter().map(lack));
    findings.extend(proof.tried.iter().map(one));
    findings
}

/// A directory to try things out in, gone when it is dropped.
struct ScratchDir {
    dir: PathBuf,
}

impl ScratchDir {
    fn make() -> Result<Self> {
        use std::os::unix::fs::DirBuilderExt;
        let dir = std::env::temp_dir().join(format!("homing-doctor-{}", uuid::Uuid::new_v4().simple()));
        fs::DirBuilder::new().mode(0o700).create(&dir)?;
        Ok(Self { dir: dir.canonicalize()? })
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}
