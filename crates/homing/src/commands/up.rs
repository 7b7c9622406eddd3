//! `homing up`: the server and its page, for the person in front of it.

use std::process::{Command, Stdio};

use anyhow::Result;
use serde_json::json;

use crate::exit::Exit;
use crate::place::Place;
use crate::screen::{Look, Screen};
use crate::wiring::{GoWords, ListenArgs, Ready, start_log};

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

pub(crate) async fn up(args: UpArgs, place: &Place, screen: Screen) -> Result<Exit> {
    let config = args.listen.config(place)?;
    start_log(&config, screen)?;
    let words = GoWords::listen()?;
    let ready = Ready::start(&config, place).await?;
    let (url, link) = (ready.url(), ready.sign_in_link());
    if screen.json {
        screen
            .object(&json!({ "url": url, "sign_in": link, "data": place.dir, "pid": std::process::id() }))?;
    } else if screen.out_is_terminal {
        welcome(&url, &link, place, screen)?;
    } else {
        screen.line(&url)?;
        screen.line(&link)?;
    }
    if screen.out_is_terminal && !args.no_browser && has_display() {
        open(&link);
    }
    ready.until_told_to_go(words).await;
    screen.progress("everything is handed over; `homing up` goes on from here");
    Ok(Exit::Done)
}

fn welcome(url: &str, link: &str, place: &Place, screen: Screen) -> Result<()> {
    screen.line(format!("{} at {url}\n", screen.out(Look::Bold, "Homing is up")))?;
    screen.pairs(&[
        ("  sign in", format!("{link} (works once)")),
        ("  data", place.dir.display().to_string()),
        ("  try", format!("{}   in another terminal", screen.out(Look::Good, &first_command(place)))),
    ])?;
    screen.line(screen.out(Look::Dim, "\nCtrl-C stops the server; sessions stay."))?;
    Ok(())
}

/// What a newcomer can type next, wherever the program and its data are.
fn first_command(place: &Place) -> String {
    let program = std::env::args().next().filter(|name| name.contains('/')).unwrap_or("homing".to_owned());
    let data = if place.is_usual() { String::new() } else { format!(" --data {}", place.dir.display()) };
    format!("{program}{data} send --follow \"hello\"")
}

fn has_display() -> bool {
    cfg!(target_os = "macos")
        || ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some())
}

/// Opens the link with whatever the desktop uses. If that fails, the link is on the screen.
fn open(link: &str) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let quiet = || Stdio::null();
    let _ = Command::new(program).arg(link).stdin(quiet()).stdout(quiet()).stderr(quiet()).spawn();
}
