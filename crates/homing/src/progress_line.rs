//! Watching work that takes long: a line of how far it is on a terminal, nothing on a pipe, and Ctrl-C that stops the watching.
//!
//! The work is the server's. Whoever stops watching, or loses the connection, changes nothing: asked again under the same key it is
//! joined, and its end is the answer.

use std::time::Duration;

use anyhow::Result;
use api::Progress;
use api::client::{ChangeKey, ChoreAnswer, ClientError, FactStream, FollowItem};
use tokio::time::Instant;

use crate::commands::worktree::size;
use crate::keyboard::Interrupts;
use crate::remote::{OrCliError, Remote};
use crate::screen::tame_name;

/// The time between two lines, so that the seconds go on.
const TICK: Duration = Duration::from_secs(1);
/// The time before the first line: what is over sooner needs none.
const QUIET: Duration = Duration::from_secs(1);

/// The pause before it is asked again. The server waits itself; this is for one that does not.
const AGAIN: Duration = Duration::from_millis(100);

/// The end of watching.
#[derive(Debug)]
pub(crate) enum Watched<T> {
    /// The work is over, with this.
    Over(T),
    /// Nothing goes on, and it is not over either.
    NotYet,
    /// Somebody has pressed Ctrl-C; the work goes on.
    Left,
}

/// Said after Ctrl-C.
pub(crate) const LEFT: &str = "it goes on without you; `homing log -f` tells what comes of it";

/// Asks again under one key until there is an answer; none if somebody has stopped watching.
pub(crate) async fn until_over<T>(
    session: &str,
    remote: &Remote,
    ask: impl AsyncFn(&ChangeKey) -> Result<ChoreAnswer<T>, ClientError>,
) -> Result<Option<Result<T, ClientError>>> {
    let key = ChangeKey::new();
    let asking = async {
        loop {
            if let ChoreAnswer::Over(over) = ask(&key).await? {
                return Ok(over);
            }
            tokio::time::sleep(AGAIN).await;
        }
    };
    match watch(session, None, remote, asking).await? {
        Watched::Over(answer) => Ok(Some(answer)),
        Watched::NotYet | Watched::Left => {
            remote.screen.say(LEFT);
            Ok(None)
        }
    }
}

/// Waits for it, and shows how far it is. If `wait` is said, it is given up after that time as soon as nothing goes on for the session.
pub(crate) async fn watch<T>(
    session: &str,
    wait: Option<Duration>,
    remote: &Remote,
    work: impl Future<Output = T>,
) -> Result<Watched<T>> {
    let (mut work, mut interrupts) = (std::pin::pin!(work), Interrupts::listen()?);
    let mut line = std::pin::pin!(show(session, remote));
    let mut until = wait.map(|wait| Instant::now() + wait);
    let watched = loop {
        tokio::select! {
            biased;
            over = &mut work => break Watched::Over(over),
            () = interrupts.next() => break Watched::Left,
            () = &mut line => {}
            () = tokio::time::sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => {
                if remote.client.session(session).await.or_cli_error()?.progress.is_none() {
                    break Watched::NotYet;
                }
                until = wait.map(|wait| Instant::now() + wait);
            }
        }
    };
    remote.screen.clear_passing();
    Ok(watched)
}

/// Shows the line as long as it is let, with the last that was heard. Where nobody looks it does nothing.
async fn show(session: &str, remote: &Remote) {
    if !remote.screen.err_is_terminal {
        return std::future::pending().await;
    }
    let began = Instant::now();
    tokio::time::sleep(QUIET).await;
    // Whether it can be heard is not worth an error: the work is watched otherwise.
    let Ok(now) = remote.client.session(session).await else { return std::future::pending().await };
    let mut facts = remote.client.follow(session, now.number);
    let (mut shown, mut ticks) = (now.progress, tokio::time::interval(TICK));
    loop {
        let mut next = std::pin::pin!(next_progress(&mut facts));
        let heard = loop {
            tokio::select! {
                heard = &mut next => break heard,
                _ = ticks.tick() => {}
            }
            say(shown.as_ref(), began, remote);
        };
        shown = heard;
        say(shown.as_ref(), began, remote);
    }
}

fn say(progress: Option<&Progress>, began: Instant, remote: &Remote) {
    if let Some(progress) = progress {
        remote.screen.passing(&words(progress, began.elapsed()));
    }
}

/// The next word about it. If nobody can be heard any more there is none, and the seconds go on.
async fn next_progress(facts: &mut FactStream) -> Option<Progress> {
    loop {
        match facts.next().await {
            Ok(FollowItem::Progress(progress)) => return progress,
            // The work is asked for otherwise, and that says if nobody answers.
            Ok(FollowItem::Fact(_) | FollowItem::Live(_) | FollowItem::Away { .. } | FollowItem::Back) => {}
            Err(_) => return std::future::pending().await,
        }
    }
}

/// The line: what, in which phase, how far, for how long.
fn words(progress: &Progress, elapsed: Duration) -> String {
    let phase = match progress.phase.as_str() {
        "begun" => "begins",
        "waiting" => "waits for others who work on the same tree",
        "looking" => "looks what is to be done",
        "snapshot" => "remembers the files",
        "copying" => "copies",
        "checking_out" => "writes files",
        "removing" => "removes files",
        "setup" => "runs the setup script",
        "teardown" => "runs the teardown script",
        other => other,
    };
    let what = match progress.verb.as_str() {
        verb @ ("undo" | "redo") => format!("{verb} of turn {}", progress.subject),
        "stop_background" => "end of what runs in the background".to_owned(),
        verb => format!("{verb} {}", progress.subject),
    };
    let mut words = format!("{what}: {phase}");
    match (progress.files, progress.files_total) {
        (Some(done), Some(all)) => words.push_str(&format!(", {done} of {all}")),
        (Some(done), None) => words.push_str(&format!(", {done}")),
        (None, _) => {}
    }
    if progress.bytes > 0 {
        words.push_str(&format!(", {}", size(progress.bytes)));
    }
    words.push_str(&format!(" ({} s)", elapsed.as_secs()));
    tame_name(&words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(verb: &str, phase: &str, files: (Option<u64>, Option<u64>), bytes: u64) -> String {
        let progress = Progress {
            verb: verb.to_owned(),
            subject: "3".to_owned(),
            phase: phase.to_owned(),
            files: files.0,
            files_total: files.1,
            bytes,
            since: api::At(0),
        };
        words(&progress, Duration::from_secs(35))
    }

    #[test]
    fn a_line_says_what_how_far_and_for_how_long() {
        assert_eq!(
            line("undo", "checking_out", (Some(2), Some(7)), 0),
            "undo of turn 3: writes files, 2 of 7 (35 s)"
        );
        assert_eq!(
            line("remove", "snapshot", (None, None), 3 << 20),
            "remove 3: remembers the files, 3 MiB (35 s)"
        );
        assert_eq!(line("enter", "new\x1bphase", (None, None), 0), "enter 3: new phase (35 s)");
    }
}
