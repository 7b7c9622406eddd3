//! A server that goes on without its terminal: how it is started and stopped.
//!
//! `start` runs our own program once more, as `up --as-background`, with pipes in place of standard output and standard error. The
//! child leaves the terminal's session, takes the directory, opens its log there, says in one line of JSON where it is, and has
//! nothing to do with us from then on. If it fails before, its words and its exit code are ours. Nothing is written into the data
//! directory by the parent, so a directory that is refused stays as it was.

use std::ffi::OsString;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};
use store_sqlite::Holder;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStderr, Command};

use crate::data_dir::DataDir;
use crate::exit::{CliError, Exit};
use crate::log_file::LogFile;
use crate::remote::{self, Remote};
use crate::screen::Screen;
use crate::{system, terminal_prompt};

/// The longest that a start is waited for. A large database of an older version takes a while to be brought up to date.
const START_WAIT: Duration = Duration::from_secs(120);
/// The time for what a child printed last to arrive.
const LAST_WORDS_WAIT: Duration = Duration::from_millis(300);
/// The most of a child's words before its start is over that is kept.
const WORDS_BYTES_MAX: u64 = 64 * 1024;
/// The longest that a hand-over is waited for. Agents have their grace in it.
const STOP_WAIT: Duration = Duration::from_secs(60);
/// The pause between two looks whether a server has gone.
const STOP_LOOK: Duration = Duration::from_millis(20);

/// A server in the background, as it says itself.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct BackgroundServer {
    pub(crate) url: String,
    /// A link that signs a browser in once.
    pub(crate) sign_in: String,
    pub(crate) data: String,
    pub(crate) pid: u32,
    pub(crate) agent: String,
    pub(crate) log: String,
}

/// Starts a server and answers once commands find it.
pub(crate) async fn start(
    listen: Vec<OsString>,
    data_dir: &DataDir,
    screen: Screen,
) -> Result<BackgroundServer> {
    // By its name, so that it is found by it; an upgrade may have taken the name away since we were started.
    let by_name = std::env::current_exe().and_then(|exe| spawn(&exe, &listen, data_dir));
    let child = by_name.or_else(|_| spawn(&system::exe()?, &listen, data_dir));
    let mut child = child.context("our own program cannot be started")?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let words = tokio::spawn(read_words(err.context("it is piped")?));
    let mut line = String::new();
    let mut out = BufReader::new(out.context("it is piped")?);
    let said = tokio::time::timeout(START_WAIT, out.read_line(&mut line)).await;
    let words = async || tokio::time::timeout(LAST_WORDS_WAIT, words).await;
    if said.is_err() {
        let still = format!("the server is still starting (process {})", child.id().unwrap_or_default());
        return Err(CliError::new(Exit::Later, still)
            .hint(format!("`homing doctor` says how it stands; its log is {}", log_of(data_dir)))
            .into());
    }
    let server: Option<BackgroundServer> = serde_json::from_str(&line).ok();
    let words = words().await.ok().and_then(Result::ok).unwrap_or_default();
    let Some(server) = server else { return Err(failed(&mut child, &words).await.into()) };
    if !words.is_empty() {
        screen.say(words.trim_end());
    }
    // What it says of itself is only half of it: the other commands have to find it.
    let here = DataDir { named: true, ..data_dir.clone() };
    let remote = Remote::find(&here, screen)?;
    remote.client.me().await.map_err(CliError::from)?;
    Ok(server)
}

fn spawn(exe: &Path, listen: &[OsString], data_dir: &DataDir) -> io::Result<Child> {
    let mut command = Command::new(exe);
    command.arg("--data").arg(&data_dir.path).args(["up", "--as-background"]).args(listen);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn()
}

/// Offers to start a server where none runs, to somebody who sits in front of a terminal and meant the one of this machine.
/// Everybody else gets the error as it is.
pub(crate) async fn offer(error: anyhow::Error, data_dir: &DataDir, screen: Screen) -> Result<Remote> {
    let is_asked = !screen.json && screen.err_is_terminal && io::stdin().is_terminal();
    if !is_asked || !remote::is_for_a_start(data_dir) {
        return Err(error);
    }
    screen.say(format!("{error}."));
    let typed = terminal_prompt::line_or_nothing("Start one in the background now? [Y/n]", screen).await?;
    if !matches!(typed.to_ascii_lowercase().as_str(), "" | "y" | "yes") {
        return Err(error);
    }
    let server = start(Vec::new(), data_dir, screen).await?;
    screen.say(format!("Homing is up at {}; `homing down` stops it", server.url));
    Remote::find(data_dir, screen)
}

/// The child's words, as far as they came.
async fn read_words(err: ChildStderr) -> String {
    let mut words = Vec::new();
    let _ = err.take(WORDS_BYTES_MAX).read_to_end(&mut words).await;
    String::from_utf8_lossy(&words).into_owned()
}

/// A start that came to nothing, in the child's own words, which have an error and a hint of their own.
async fn failed(child: &mut Child, words: &str) -> CliError {
    let ended = child.wait().await.ok();
    let exit = ended.and_then(exit_of).unwrap_or(Exit::Failed);
    let line = |name: &str| words.lines().rev().find_map(|line| line.strip_prefix(name));
    match (line("error: "), line("hint: ")) {
        (Some(what), Some(hint)) => CliError::new(exit, what).hint(hint),
        (Some(what), None) => CliError::new(exit, what),
        (None, _) => CliError::new(exit, format!("the server did not start: {}", words.trim()))
            .hint("`homing up` shows what it does; `homing doctor` looks for what is wrong"),
    }
}

fn exit_of(ended: ExitStatus) -> Option<Exit> {
    let known = [Exit::Usage, Exit::NotFound, Exit::Unreachable, Exit::InUse, Exit::Later];
    known.into_iter().find(|exit| ended.code() == Some(*exit as i32))
}

/// Leaves the terminal that we were started from: its Ctrl-C and its end are not for us.
pub(crate) fn leave_terminal() {
    // Whoever leads a session already has none to leave.
    let _ = rustix::process::setsid();
}

/// Tells whoever started us, and goes on without them. That they may have gone already is no reason to.
pub(crate) fn announce(server: &BackgroundServer, log: &LogFile) -> Result<()> {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{}", serde_json::to_string(server)?);
    let _ = out.flush();
    drop(out);
    Ok(log.take_output()?)
}

fn log_of(data_dir: &DataDir) -> String {
    LogFile::path(&data_dir.path).display().to_string()
}

/// The end of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// It has handed everything over and is gone.
    Gone { pid: u32 },
    /// It was told to go, and is still handing over.
    Going { pid: u32 },
    /// There was none.
    Nobody,
}

/// Tells the server of a directory to go, and waits for it.
pub(crate) async fn stop(data_dir: &DataDir) -> Result<Stopped> {
    let Some(holder) = holder(data_dir)? else { return Ok(Stopped::Nobody) };
    let pid = holder.pid;
    let told = tell(&holder, data_dir)?;
    if !told {
        return Ok(Stopped::Gone { pid });
    }
    let gone = async {
        while holder_is(pid, data_dir)? {
            tokio::time::sleep(STOP_LOOK).await;
        }
        Ok::<(), anyhow::Error>(())
    };
    match tokio::time::timeout(STOP_WAIT, gone).await {
        Ok(gone) => gone.map(|()| Stopped::Gone { pid }),
        Err(_) => Ok(Stopped::Going { pid }),
    }
}

/// The server that has the directory, if one does.
pub(crate) fn holder(data_dir: &DataDir) -> Result<Option<Holder>> {
    Ok(store_sqlite::holder(&data_dir.path)?)
}

fn holder_is(pid: u32, data_dir: &DataDir) -> Result<bool> {
    Ok(holder(data_dir)?.is_some_and(|holder| holder.pid == pid))
}

/// Sends the server the word to go. False if it is gone by itself.
///
/// The process is held on to first, and then whether it still has the directory is asked again: so the word never goes to
/// another process that has got its number meanwhile.
fn tell(holder: &Holder, data_dir: &DataDir) -> Result<bool> {
    let (pid, host) = (holder.pid, &holder.host);
    let Some(number) = Pid::from_raw(pid.cast_signed()).filter(|_| pid > 0) else {
        return Err(CliError::new(Exit::Later, "a server is just starting there; nothing was done")
            .hint("say it again in a moment")
            .into());
    };
    if *host != system::host() {
        return Err(CliError::new(Exit::Failed, format!("the server of this directory runs on another machine, {host}, as process {pid}; nothing was done"))
            .hint(format!("stop it there: `homing down` on {host}"))
            .into());
    }
    match signal(number, || holder_is(pid, data_dir)) {
        Ok(told) => Ok(told),
        Err(error) if error.downcast_ref() == Some(&Errno::PERM) => Err(CliError::new(
            Exit::Failed,
            format!("the server (process {pid}) is another user's; nothing was done"),
        )
        .hint("its own user can stop it with `homing down`")
        .into()),
        Err(error) if error.downcast_ref() == Some(&Errno::SRCH) => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(target_os = "linux")]
fn signal(pid: Pid, is_it: impl Fn() -> Result<bool>) -> Result<bool> {
    use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
    let process = pidfd_open(pid, PidfdFlags::empty())?;
    if !is_it()? {
        return Ok(false);
    }
    pidfd_send_signal(&process, Signal::TERM)?;
    Ok(true)
}

#[cfg(not(target_os = "linux"))]
fn signal(pid: Pid, is_it: impl Fn() -> Result<bool>) -> Result<bool> {
    if !is_it()? {
        return Ok(false);
    }
    rustix::process::kill_process(pid, Signal::TERM)?;
    Ok(true)
}
