//! Asking whoever types: a word, or a secret that is not shown. From a pipe it is the next line. Never an argument: what
//! a program was started with can be read by everybody on the machine.

use std::io::{self, BufRead, IsTerminal, Read};
use std::os::fd::AsFd;

use anyhow::Result;
use api::Secret;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::sync::oneshot;

use crate::exit::{CliError, Exit};
use crate::keyboard::Interrupts;
use crate::screen::Screen;

/// The most that is read: more than anything that is asked for.
const READ_BYTES_MAX: u64 = 64 * 1024;

/// Something that may be seen.
pub(crate) async fn line(what: &str, screen: Screen) -> Result<String> {
    if io::stdin().is_terminal() {
        screen.say(format!("{what}:"));
    }
    let typed = typed_line().await?;
    if typed.trim().is_empty() {
        return Err(nothing_typed(what).into());
    }
    Ok(typed.trim().to_owned())
}

fn nothing_typed(what: &str) -> CliError {
    CliError::new(Exit::Usage, format!("{what}: nothing was typed"))
        .hint("type it, or pipe it in, one line for each thing that is asked for")
}

/// The same where nothing is an answer, too.
pub(crate) async fn line_or_nothing(what: &str, screen: Screen) -> Result<String> {
    screen.ask(what);
    Ok(typed_line().await?.trim().to_owned())
}

/// Something that nobody is shown.
pub(crate) async fn secret(what: &str, screen: Screen) -> Result<Secret> {
    let typed = if io::stdin().is_terminal() {
        let mut interrupts = Interrupts::listen()?;
        let hidden = EchoOff::begin()?;
        screen.say(format!("{what}, which is not shown:"));
        let typed = tokio::select! {
            typed = typed_line() => typed?,
            () = interrupts.next() => {
                drop(hidden);
                return Err(CliError::new(Exit::Failed, "you left; nothing was changed")
                    .hint("say the command again when you know what to type")
                    .into());
            }
        };
        drop(hidden);
        typed
    } else {
        typed_line().await?
    };
    if typed.is_empty() {
        return Err(nothing_typed(what).into());
    }
    Ok(Secret::from(typed))
}

/// A new secret: typed twice by hand, so that a slip is found; once from a pipe.
pub(crate) async fn new_secret(what: &str, screen: Screen) -> Result<Secret> {
    let first = secret(what, screen).await?;
    if io::stdin().is_terminal() && secret(&format!("{what} again"), screen).await? != first {
        return Err(CliError::new(Exit::Usage, "the two are not the same; nothing was changed")
            .hint("say the command again, and type the same twice")
            .into());
    }
    Ok(first)
}

/// A read from a terminal cannot be taken back, so it has a thread of its own, which ends with the process.
async fn typed_line() -> io::Result<String> {
    let (tell, told) = oneshot::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = io::stdin().lock().take(READ_BYTES_MAX).read_line(&mut line);
        let _ = tell.send(read.map(|_| line));
    });
    let line = told.await.map_err(io::Error::other)??;
    Ok(line.trim_end_matches(['\n', '\r']).to_owned())
}

/// Everything that is piped in.
pub(crate) fn piped() -> io::Result<String> {
    let mut text = String::new();
    io::stdin().lock().take(READ_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
}

/// A terminal that does not show what is typed, until this is dropped.
struct EchoOff(Termios);

impl EchoOff {
    fn begin() -> io::Result<Self> {
        let before = tcgetattr(io::stdin().as_fd())?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        tcsetattr(io::stdin().as_fd(), OptionalActions::Flush, &silent)?;
        Ok(Self(before))
    }
}

impl Drop for EchoOff {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing back.
        let _ = tcsetattr(io::stdin().as_fd(), OptionalActions::Now, &self.0);
    }
}
