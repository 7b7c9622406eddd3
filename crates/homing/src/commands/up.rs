//! `homing up`: the server and its page, for the person in front of it.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Result;
use serde_json::json;

use crate::background::{self, BackgroundServer};
use crate::config::Config;
use crate::data_dir::DataDir;
use crate::exit::Exit;
use crate::log_file::LogFile;
use crate::screen::{Screen, TextStyle};
use crate::system;
use crate::wiring::{BoundDaemon, ListenArgs, ShutdownSignals, start_log, start_log_to};

/// Start the server and its page, and say how to get in
///
/// Everything is in this one program. Prints the address and a link that signs a browser in once; opens the browser if
/// there is one. Ctrl-C stops the server; sessions stay. With `--background` it goes on without this terminal, logs to
/// `server.log` in the data directory, and `homing down` stops it.
#[derive(clap::Args)]
pub(crate) struct UpArgs {
    #[command(flatten)]
    listen: ListenArgs,
    /// Do not open the browser
    #[arg(long)]
    no_browser: bool,
    /// Leave it running and come back once it answers; `homing down` stops it
    #[arg(long)]
    background: bool,
    /// The process that `--background` starts
    #[arg(long, hide = true, conflicts_with = "background")]
    as_background: bool,
}

pub(crate) async fn up(args: UpArgs, data_dir: &DataDir, screen: Screen) -> Result<Exit> {
    if args.background {
        return start_in_background(&args.listen, data_dir, screen).await;
    }
    let config = args.listen.config(data_dir)?;
    if args.as_background {
        return go_on_in_background(&config, data_dir).await;
    }
    start_log(&config, screen)?;
    let words = ShutdownSignals::listen()?;
    let ready = BoundDaemon::start(&config, data_dir).await?;
    let (url, (link, spent)) = (ready.url(), ready.sign_in().await?);
    if screen.json {
        let (agent, pid) = (ready.default_agent(), std::process::id());
        screen.object(
            &json!({ "url": url, "sign_in": link, "data": data_dir.path, "pid": pid, "agent": agent }),
        )?;
    } else if screen.out_is_terminal {
        welcome(&ready, &link, data_dir, screen)?;
    } else {
        screen.line(&url)?;
        screen.line(&link)?;
    }
    let page = if screen.out_is_terminal && !args.no_browser && has_display() {
        open_browser(&link, data_dir)
    } else {
        None
    };
    let tidying = tokio::spawn(async {
        spent.await;
        drop(page);
    });
    let looking = ready.look_around(move |found| screen.say(found));
    ready.until_told_to_go(words).await;
    looking.abort();
    tidying.abort();
    // Its page is gone when it is.
    let _ = tidying.await;
    screen.progress("everything is handed over; `homing up` goes on from here");
    Ok(Exit::Done)
}

/// Starts a server that goes on without us, if none has the directory.
async fn start_in_background(listen: &ListenArgs, data_dir: &DataDir, screen: Screen) -> Result<Exit> {
    // What is wrong with the configuration is told before anything is started.
    listen.config(data_dir)?;
    if let Some(holder) = background::holder(data_dir)? {
        let (pid, url) = (holder.pid, holder.url.clone().unwrap_or_default());
        let words = format!("a server is already running for {} (process {pid})", data_dir.path.display());
        if screen.json {
            screen.object(&json!({ "url": url, "data": data_dir.path, "pid": pid, "already": true }))?;
        } else {
            screen.say(format!("{words}; `homing down` stops it"));
            screen.line(url)?;
        }
        return Ok(Exit::Done);
    }
    let server = background::start(listen.arguments()?, data_dir, screen).await?;
    if screen.json {
        screen.object(&server)?;
    } else if screen.out_is_terminal {
        let words =
            Welcome { url: &server.url, link: &server.sign_in, agent: &server.agent, where_to_try: "" };
        let down = format!("{}   stops it; sessions stay", command(data_dir, "down"));
        words.show(data_dir, vec![("  log", server.log), ("  stop", down)], screen)?;
    } else {
        screen.line(&server.url)?;
        screen.line(&server.sign_in)?;
    }
    Ok(Exit::Done)
}

/// The far side of `start_in_background`: a server whose log is a file.
async fn go_on_in_background(config: &Config, data_dir: &DataDir) -> Result<Exit> {
    background::leave_terminal();
    let log = LogFile::new();
    start_log_to(config, false, log.clone())?;
    let words = ShutdownSignals::for_service(config)?;
    let ready = BoundDaemon::start(config, data_dir).await?;
    let (link, _) = ready.sign_in().await?;
    let path = log.open(&data_dir.path)?;
    tracing::info!(url = ready.url(), data = %data_dir.path.display(), version = system::VERSION, "ready");
    let server = BackgroundServer {
        url: ready.url(),
        sign_in: link,
        data: data_dir.path.display().to_string(),
        pid: std::process::id(),
        agent: ready.default_agent().to_owned(),
        log: path.display().to_string(),
    };
    background::announce(&server, &log)?;
    let looking = ready.look_around(|found| tracing::info!("{found}"));
    ready.until_told_to_go(words).await;
    looking.abort();
    tracing::info!("everything is handed over");
    Ok(Exit::Done)
}

fn welcome(ready: &BoundDaemon, link: &str, data_dir: &DataDir, screen: Screen) -> Result<()> {
    let url = ready.url();
    let words =
        Welcome { url: &url, link, agent: ready.default_agent(), where_to_try: "   in another terminal" };
    words.show(data_dir, Vec::new(), screen)?;
    screen.line(screen.out(TextStyle::Dim, "\nCtrl-C stops the server; sessions stay."))?;
    Ok(())
}

/// The words on the screen of whoever has started a server.
struct Welcome<'a> {
    url: &'a str,
    link: &'a str,
    agent: &'a str,
    where_to_try: &'a str,
}

impl Welcome<'_> {
    fn show(&self, data_dir: &DataDir, more: Vec<(&str, String)>, screen: Screen) -> Result<()> {
        let Self { url, link, agent, where_to_try } = self;
        screen.line(format!("{} at {url}\n", screen.out(TextStyle::Bold, "Homing is up")))?;
        let try_it = command(data_dir, "send --follow \"hello\"");
        let mut pairs = vec![
            (
                "  sign in",
                format!("{link} (works once, within 10 minutes; `homing user link` makes another)"),
            ),
            ("  data", data_dir.path.display().to_string()),
            ("  agent", format!("{agent} for new sessions; `homing agents` lists all")),
            ("  try", format!("{try_it}{where_to_try}")),
        ];
        pairs.extend(more);
        Ok(screen.pairs(&pairs)?)
    }
}

/// A command that somebody can type next, wherever the program and its data are.
fn command(data_dir: &DataDir, words: &str) -> String {
    let program = std::env::args().next().filter(|name| name.contains('/')).unwrap_or("homing".to_owned());
    let data =
        if data_dir.is_usual() { String::new() } else { format!(" --data {}", data_dir.path.display()) };
    format!("{program}{data} {words}")
}

fn has_display() -> bool {
    cfg!(target_os = "macos")
        || ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some())
}

/// Opens the link with whatever the desktop uses. If that fails, the link is on the screen.
fn open_browser(link: &str, data_dir: &DataDir) -> Option<SignInPage> {
    let own = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|dir| dir.is_absolute());
    let page = SignInPage::write(own.as_deref().unwrap_or(&data_dir.path), link).ok()?;
    page.opener().spawn().ok()?;
    Some(page)
}

/// A page that leads to the sign-in link, for its owner's eyes; removed when dropped. What a program was started with
/// can be read by everybody on the machine, so the browser gets the name of this file and not the link.
#[derive(Debug)]
struct SignInPage(PathBuf);

impl SignInPage {
    fn write(dir: &Path, link: &str) -> io::Result<Self> {
        let page = Self(dir.join(format!("homing-sign-in-{}.html", std::process::id())));
        // Left by a process of the same number that was killed.
        let _ = fs::remove_file(&page.0);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&page.0)?;
        writeln!(
            file,
            "<!doctype html><meta charset=\"utf-8\"><title>Homing</title>\
             <meta http-equiv=\"refresh\" content=\"0; url={link}\"><a href=\"{link}\">Sign in</a>"
        )?;
        Ok(page)
    }

    fn opener(&self) -> Command {
        let mut command = Command::new(if cfg!(target_os = "macos") { "open" } else { "xdg-open" });
        command.arg(&self.0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }
}

impl Drop for SignInPage {
    fn drop(&mut self) {
        // A page that stays leads nowhere: its link has been used, is too old, or went with its server.
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_browser_is_told_of_a_page_that_only_its_owner_can_read() {
        let dir = tempfile::tempdir().unwrap();
        let page = SignInPage::write(dir.path(), "http://127.0.0.1:4747/in/secret").unwrap();
        let again = SignInPage::write(dir.path(), "http://127.0.0.1:4747/in/secret").unwrap();
        let path = page.0.clone();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(fs::read_to_string(&path).unwrap().contains("url=http://127.0.0.1:4747/in/secret"));
        let opener = again.opener();
        assert_eq!(opener.get_args().collect::<Vec<_>>(), [path.as_os_str()]);
        drop(page);
        assert!(!path.exists());
    }
}
