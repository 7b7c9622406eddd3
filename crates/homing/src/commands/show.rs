//! `homing show`: one session, or one message with its answer.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::Result;
use api::{MessageQuery, Readiness, Receipt, Session, TitleBy};

use crate::completion::Completes;
use crate::exit::{CliError, Exit};
use crate::names::{self, SessionOrMessage, session_or_message};
use crate::remote::{OrCliError, Remote};
use crate::screen::{TextStyle, tame};
use crate::target::session_or_here;
use crate::{describe, system, time};

/// Show a session, or a message with its answer
#[derive(clap::Args)]
pub(crate) struct ShowArgs {
    /// A session or a message [default: this directory's session]
    #[arg(add = Completes::SessionsAndMessages)]
    what: Option<String>,
    /// Wait up to so many seconds for a message to become final
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(..=60))]
    wait: Option<u64>,
    /// Write an image or a file that went along with a message, by its number, into a new file
    #[arg(long, num_args = 2, value_names = ["N", "FILE"], requires = "what", conflicts_with = "wait", value_hint = clap::ValueHint::FilePath)]
    save: Option<Vec<String>>,
}

pub(crate) async fn show(args: &ShowArgs, remote: &Remote) -> Result<Exit> {
    let what = match args.what.as_deref() {
        Some(typed) => session_or_message(typed, remote).await?,
        None => SessionOrMessage::Session(session_or_here(None, remote).await?),
    };
    if let Some([number, file]) = args.save.as_deref() {
        return match what {
            SessionOrMessage::Message(message) => save(&message, number, Path::new(file), remote).await,
            SessionOrMessage::Session(session) => Err(CliError::new(
                Exit::Usage,
                format!("{session} is a session; images and files go along with messages"),
            )
            .hint("name a message: `homing show MESSAGE --save N FILE`; `homing log` names them")
            .into()),
        };
    }
    match what {
        SessionOrMessage::Message(message) => {
            let query = MessageQuery { wait: args.wait, words: Some(true) };
            let receipt = remote.client.receipt(&message, &query).await.or_cli_error()?;
            if remote.screen.json { remote.screen.object(&receipt)? } else { show_message(&receipt, remote)? }
        }
        SessionOrMessage::Session(session) => {
            let session = remote.client.session(&session).await.or_cli_error()?;
            if remote.screen.json {
                remote.screen.object(&session)?
            } else {
                let ready = remote.client.readiness(&session.id).await.or_cli_error()?;
                show_session(&session, &ready, remote)?
            }
        }
    }
    Ok(Exit::Done)
}

/// Writes what went along with a message into a new file of this name. What it was called elsewhere is nobody's path here.
async fn save(message: &str, number: &str, file: &Path, remote: &Remote) -> Result<Exit> {
    let query = MessageQuery { wait: None, words: Some(true) };
    let attached = remote.client.receipt(message, &query).await.or_cli_error()?.attachments;
    let Some(one) = attached.iter().find(|one| one.number.to_string() == number) else {
        let what = match attached.len() {
            0 => format!("nothing went along with {message}"),
            1 => format!("{message} has no attachment {number}: one thing went along with it, number 1"),
            count => format!("{message} has no attachment {number}: there are 1 to {count}"),
        };
        let hint = format!("`homing show {message}` names what went along");
        return Err(CliError::new(Exit::NotFound, what).hint(hint).into());
    };
    let refused = |why: io::Error| {
        let hint = match why.kind() {
            io::ErrorKind::AlreadyExists => "nothing is overwritten: name a file that is not there yet",
            _ => "name a new file in a directory that is there and yours to write",
        };
        CliError::new(Exit::Usage, format!("{} cannot be written: {why}", file.display())).hint(hint)
    };
    // Before anything is fetched: only its owner reads it, as whoever sent it meant it for this session.
    let mut into = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file).map_err(refused)?;
    let written = match remote.client.attachment(message, one.number).await.or_cli_error() {
        Ok(bytes) => into.write_all(&bytes).map_err(|why| refused(why).into()),
        Err(error) => Err(error),
    };
    if let Err(error) = written {
        // It is ours, and it is not whole.
        let _ = fs::remove_file(file);
        return Err(error);
    }
    remote.done(one, format!("{} is the {one}", file.display()))?;
    Ok(Exit::Done)
}

fn show_session(session: &Session, ready: &Readiness, remote: &Remote) -> Result<()> {
    let short = |words: String| names::printed(&words, remote);
    let mut pairs = vec![("session", session.id.clone())];
    pairs.extend(session.title.clone().map(|title| ("title", titled(session.title_by, title))));
    let why = session.why.map(|why| format!(" ({})", describe::ended(why))).unwrap_or_default();
    pairs.push(("state", format!("{}{why}", describe::doing(session))));
    pairs.extend(session.waiting.as_ref().map(|waiting| ("waits", short(describe::waiting(waiting)))));
    pairs.extend(session.owned_by.clone().map(|who| ("owner", who.handle.unwrap_or(who.id))));
    pairs.push(("agent", session.agent.clone()));
    let own_word = session.own_word.clone().unwrap_or_default();
    let says = own_word.model.map(|model| format!("{model} (the agent's own word)"));
    pairs.extend(session.model.clone().or(says).map(|model| ("model", model)));
    pairs.extend(own_word.native.map(|native| ("agent's id", native)));
    pairs.extend(own_word.usage.map(|usage| ("used", describe::used(&usage))));
    pairs.extend(session.mode.clone().map(|mode| ("mode", mode)));
    let background =
        session.background.iter().flat_map(|background| describe::background(background, system::now()));
    pairs.extend(background.map(|line| ("background", line)));
    pairs.push(("directory", session.directory.clone()));
    pairs.extend(
        session.worktree.clone().map(|tree| ("worktree", format!("{} (from {})", tree.name, tree.home))),
    );
    let fork =
        session.origin.clone().map(|origin| format!("of {} after turn {}", origin.session, origin.turn));
    pairs.extend(fork.map(|fork| ("fork", short(fork))));
    let imported = session.imported_as.as_ref().map(|there| {
        let org = session.imported_from.as_deref().unwrap_or_default();
        format!("as {there}, from {org}")
    });
    pairs.extend(imported.map(|imported| ("imported", imported)));
    // What it waits for was said above.
    if session.waiting.is_none() || ready.state == api::Ready::Blocked {
        pairs.extend(describe::readiness(ready).into_iter().map(|line| ("ready", short(line))));
    }
    pairs.push(("made", time::full(session.made_at)));
    pairs.push(("last", time::full(session.touched_at)));
    pairs.push(("facts", short(format!("{} (`homing log {}`)", session.number, session.id))));
    Ok(remote.screen.pairs(&pairs)?)
}

/// The title, and whose it is unless a person gave it.
fn titled(by: Option<TitleBy>, title: String) -> String {
    match by {
        Some(TitleBy::Words) => format!("{title} (its first words; `homing rename` names it)"),
        Some(TitleBy::Agent) => format!("{title} (by the agent)"),
        Some(TitleBy::Person) | None => title,
    }
}

fn show_message(receipt: &Receipt, remote: &Remote) -> Result<()> {
    let screen = remote.screen;
    names::met(vec![receipt.id.clone()], remote);
    let mut pairs = vec![("message", receipt.id.clone()), ("session", receipt.session.clone())];
    pairs.extend(receipt.by.clone().map(|who| ("sender", who.handle.unwrap_or(who.id))));
    pairs.extend([
        ("state", names::printed(&describe::standing(receipt), remote)),
        ("accepted", time::full(receipt.accepted_at)),
        ("changed", time::full(receipt.changed_at)),
    ]);
    pairs.extend(receipt.attachments.iter().map(|attached| ("attached", attached.to_string())));
    pairs.extend(receipt.notice.clone().map(|notice| ("notice", notice)));
    pairs.extend(describe::hint(receipt).map(|hint| ("hint", names::printed(&hint, remote))));
    screen.pairs(&pairs)?;
    for (name, text) in [("said", &receipt.text), ("answer", &receipt.answer)] {
        if let Some(text) = text.as_deref().filter(|text| !text.is_empty()) {
            screen.line(format!("\n{}\n{}", screen.out(TextStyle::Dim, name), tame(text.trim_end())))?;
        }
    }
    Ok(())
}
