//! `homing up`: the server and its page, for the person in front of it.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Result;
use serde_json::json;

use crate::data_dir::DataDir;
use crate::exit::Exit;
use crate::screen::{Screen, TextStyle};
use crate::wiring::{BoundDaemon, ListenArgs, ShutdownSignals, start_log};

/// Start the server and its page, and say how to get in
///
/// Everything is in this one program. Prints the address and a link that signs a browser in once; opens the browser if
/// there is one. Ctrl-C stops the server; sessions stay.
#[derive(clap::Args)]
pub(crate) struct UpArgs {
    #[command(flatten)]
    listen: ListenArgs,
    /// Do not open the browser
    #[arg(long)]
    no_browser: bool,
}

pub(crate) async fn up(args: UpArgs, data_dir: &DataDir, screen: Screen) -> Result<Exit> {
    let config = args.listen.config(data_dir)?;
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

fn welcome(ready: &BoundDaemon, link: &str, data_dir: &DataDir, screen: Screen) -> Result<()> {
    screen.line(format!("{} at {}\n", screen.out(TextStyle::Bold, "Homing is up"), ready.url()))?;
    screen.pairs(&[
        ("  sign in", format!("{link} (works once, within 10 minutes; `homing user link` makes another)")),
        ("  data", data_dir.path.display().to_string()),
        ("  agent", format!("{} for new sessions; `homing agents` lists all", ready.default_agent())),
        ("  try", format!("{}   in another terminal", screen.out(TextStyle::Good, &first_command(data_dir)))),
    ])?;
    screen.line(screen.out(TextStyle::Dim, "\nCtrl-C stops the server; sessions stay."))?;
    Ok(())
}

/// The command that a newcomer can type next, wherever the program and its data are.
fn first_command(data_dir: &DataDir) -> String {
    let program = std::env::args().next().filter(|name| name.contains('/')).unwrap_or("homing".to_owned());
    let data =
        if data_dir.is_usual() { String::new() } else { format!(" --data {}", data_dir.path.display()) };
    format!("{program}{data} send --follow \"hello\"")
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
