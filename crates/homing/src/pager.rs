//! Long output: through the person's own pager where one looks on, as it is everywhere else.

use std::io::{self, Write};
use std::process::{Command, Stdio};

use anyhow::Result;

use crate::keyboard::Interrupts;
use crate::screen::Screen;

/// The pager of a person who has not said which.
const USUAL: &str = "less";
/// The options of `less` for whoever has not chosen any: leave if it fits, let colours through, keep it on the screen.
const LESS: &str = "FRX";
/// The exit code of a shell that has not found the program.
const NOT_FOUND: i32 = 127;

/// Shows a text: through `PAGER` if standard output is a terminal, unless that is empty.
pub(crate) fn page(text: &str, screen: Screen) -> Result<()> {
    let pager = std::env::var("PAGER").unwrap_or_else(|_| USUAL.to_owned());
    if !screen.out_is_terminal || pager.trim().is_empty() || !is_paged(&pager, text)? {
        screen.piece(text)?;
    }
    Ok(())
}

/// True if the pager has shown it.
fn is_paged(pager: &str, text: &str) -> Result<bool> {
    // Ctrl-C is the pager's while it runs.
    let _ours = Interrupts::listen()?;
    let mut command = Command::new("sh");
    command.args(["-c", pager]).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        command.env("LESS", LESS);
    }
    let Ok(mut child) = command.spawn() else { return Ok(false) };
    if let Some(mut stdin) = child.stdin.take() {
        match stdin.write_all(text.as_bytes()) {
            // Whoever has read enough leaves.
            Err(why) if why.kind() != io::ErrorKind::BrokenPipe => return Err(why.into()),
            _ => {}
        }
    }
    Ok(child.wait()?.code() != Some(NOT_FOUND))
}
