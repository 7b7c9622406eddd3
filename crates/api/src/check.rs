//! The checks behind the schema: what a request's fields may hold. Addresses and ids are parsed by the server.

use crate::bounds::*;
use crate::{IfNew, Invalid, MessageChange, NewSession, Order, Part, SessionChange};

/// Marks in the names of models and modes: agents use paths, dates, variants in brackets, and whole URLs.
const MODEL_MARKS: &str = "._:/@+#=,[]-";

/// The most files that an undo can name, and the longest path.
const UNDO_FILES_MAX: usize = 100;
const PATH_LENGTH_MAX: usize = 4_095;

impl IfNew {
    /// Checks that every field is as the schema says.
    pub fn check(&self) -> Result<(), Invalid> {
        name("agent", &self.agent, AGENT_LENGTH_MAX, "._-")?;
        self.directory.as_deref().map_or(Ok(()), directory)?;
        name("model", &self.model, MODEL_LENGTH_MAX, MODEL_MARKS)?;
        name("mode", &self.mode, MODEL_LENGTH_MAX, MODEL_MARKS)?;
        title(&self.title)?;
        self.worktree.as_ref().map_or(Ok(()), crate::OwnWorktree::check)
    }
}

impl NewSession {
    /// The options it is made with, and the conversation it will belong to.
    pub fn split(self) -> (IfNew, Option<String>) {
        let Self { agent, directory, model, mode, title, worktree, conversation } = self;
        (IfNew { agent, directory, model, mode, title, worktree }, conversation)
    }
}

impl From<IfNew> for NewSession {
    fn from(options: IfNew) -> Self {
        let IfNew { agent, directory, model, mode, title, worktree } = options;
        Self { agent, directory, model, mode, title, worktree, conversation: None }
    }
}

impl crate::Expect {
    /// Checks that every field is as the schema says.
    pub fn check(&self) -> Result<(), Invalid> {
        name("agent", &self.agent, AGENT_LENGTH_MAX, "._-")?;
        name("model", &self.model, MODEL_LENGTH_MAX, MODEL_MARKS)
    }
}

impl SessionChange {
    /// Checks that every field is as the schema says.
    pub fn check(&self) -> Result<(), Invalid> {
        title(&self.title)
    }
}

impl Order {
    /// Checks that every field is as the schema says.
    pub fn check(&self) -> Result<(), Invalid> {
        if self.order.len() > ORDER_MAX {
            return invalid("order", format!("more than {ORDER_MAX} messages"));
        }
        Ok(())
    }
}

impl MessageChange {
    /// Checks that its words, if it has any, are as the schema says.
    pub fn check(&self) -> Result<(), Invalid> {
        match self {
            Self::Text(edit) => words("text", &edit.text),
            Self::Parts(edit) => check_parts(&edit.parts),
            Self::Hold(hold) if hold.held && hold.there == Some(true) => {
                invalid("there", "goes with `held: false`: what is held goes nowhere")
            }
            Self::Hold(hold) if !hold.held && hold.there.is_none() => invalid(
                "there",
                "say where: `false` runs it where the session is now, `true` takes the session back to where it was written for",
            ),
            Self::Hold(_) | Self::Deliver(_) => Ok(()),
        }
    }
}

impl crate::SessionsQuery {
    /// Checks the lengths of what a list is narrowed to, and that a name stands alone.
    pub fn check(&self) -> Result<(), Invalid> {
        let Self {
            which,
            agent,
            directory,
            doing,
            text,
            owner,
            archived,
            origin,
            needs,
            name,
            limit: _,
            cursor,
        } = self;
        if agent.as_ref().is_some_and(|agent| is_longer(agent, AGENT_LENGTH_MAX)) {
            return invalid("agent", format!("must have at most {AGENT_LENGTH_MAX} characters"));
        }
        for (field, value) in [("text", text), ("name", name)] {
            if value.as_ref().is_some_and(|value| value.is_empty() || is_longer(value, TITLE_LENGTH_MAX)) {
                return invalid(field, format!("must have 1 to {TITLE_LENGTH_MAX} characters"));
            }
        }
        if directory.as_ref().is_some_and(|path| !path.starts_with('/') || path.len() > 4_095) {
            return invalid("directory", "must be absolute, and at most 4095 bytes".to_owned());
        }
        let narrowed = [agent, directory, text, owner, origin, cursor].into_iter().any(Option::is_some);
        let sorted = which.is_some() || doing.is_some() || archived.is_some() || needs.is_some();
        if name.is_some() && (narrowed || sorted) {
            return invalid("name", "stands alone: nothing else can be chosen with it".to_owned());
        }
        Ok(())
    }
}

impl crate::NewMessage {
    /// Checks that every field is as the schema says.
    pub fn check(&self) -> Result<(), Invalid> {
        let to = match self {
            Self::Text(said) => {
                words("text", &said.text)?;
                &said.to
            }
            Self::Parts(said) => {
                check_parts(&said.parts)?;
                &said.to
            }
        };
        match to {
            crate::To::Session(to) => to.expect.as_ref().map_or(Ok(()), crate::Expect::check),
            crate::To::Conversation(to) => {
                to.if_new.as_ref().map_or(Ok(()), IfNew::check)?;
                to.expect.as_ref().map_or(Ok(()), crate::Expect::check)
            }
            crate::To::New(to) => to.new.clone().split().0.check(),
        }
    }
}

fn check_parts(parts: &[Part]) -> Result<(), Invalid> {
    if parts.is_empty() || parts.len() > PARTS_MAX {
        return invalid("parts", format!("must be 1 to {PARTS_MAX} parts"));
    }
    parts.iter().try_for_each(Part::check)
}

pub(crate) fn words(field: &'static str, text: &str) -> Result<(), Invalid> {
    if text.len() > TEXT_LENGTH_MAX {
        return invalid(field, format!("more than {TEXT_LENGTH_MAX} bytes of text"));
    }
    if !text.contains(|c: char| !c.is_whitespace()) {
        return invalid(field, "there are no words in it");
    }
    Ok(())
}

/// A name that can stand in a command line without being taken for an option.
fn name(field: &'static str, name: &Option<String>, max: usize, marks: &str) -> Result<(), Invalid> {
    let Some(name) = name else { return Ok(()) };
    let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    let goes_on = name.chars().all(|c| c.is_ascii_alphanumeric() || marks.contains(c));
    if begins && goes_on && name.len() <= max {
        return Ok(());
    }
    invalid(
        field,
        format!(
            "must begin with a letter or digit and go on with letters, digits or {marks} (at most {max})"
        ),
    )
}

/// A directory. Whether the machine can have one of such a name is seen when it is looked for.
pub(crate) fn directory(path: &str) -> Result<(), Invalid> {
    if path.starts_with('/') && !path.contains('\0') && !is_longer(path, DIRECTORY_LENGTH_MAX) {
        return Ok(());
    }
    invalid("directory", format!("must be an absolute path of at most {DIRECTORY_LENGTH_MAX} characters"))
}

fn title(title: &Option<String>) -> Result<(), Invalid> {
    let Some(title) = title else { return Ok(()) };
    if !is_longer(title, TITLE_LENGTH_MAX) && !title.contains(|c: char| c.is_ascii_control()) {
        return Ok(());
    }
    invalid("title", format!("must have at most {TITLE_LENGTH_MAX} characters and no control characters"))
}

/// A handle: it stands in addresses and is typed, so it is small and plain.
pub(crate) fn handle(field: &'static str, text: &str) -> Result<(), Invalid> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c);
    let begins = text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    if begins && text.len() <= HANDLE_LENGTH_MAX && text.chars().all(is_plain) {
        return Ok(());
    }
    invalid(
        field,
        format!(
            "must begin with a small letter or digit and go on with those, dots, dashes or underscores (at most {HANDLE_LENGTH_MAX})"
        ),
    )
}

/// The name of a group, an org or a client.
pub(crate) fn word(field: &'static str, text: &str) -> Result<(), Invalid> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    if begins && text.len() <= HANDLE_LENGTH_MAX && text.chars().all(is_plain) {
        return Ok(());
    }
    invalid(
        field,
        format!(
            "must begin with a letter or digit and go on with those, dots, dashes or underscores (at most {HANDLE_LENGTH_MAX})"
        ),
    )
}

/// The name of somebody or something: one line.
pub(crate) fn plain_line(field: &'static str, text: Option<&str>, max: usize) -> Result<(), Invalid> {
    match text {
        Some(text) if is_longer(text, max) || text.contains(|c: char| c.is_ascii_control()) => {
            invalid(field, format!("must have at most {max} characters and no control characters"))
        }
        Some(_) | None => Ok(()),
    }
}

/// An e-mail address, as far as one can tell by looking.
pub(crate) fn mail(text: Option<&str>) -> Result<(), Invalid> {
    let Some(text) = text else { return Ok(()) };
    let is_odd = |c: char| c.is_whitespace() || c.is_control();
    let halves = text.split_once('@');
    let whole =
        halves.is_some_and(|(name, host)| !name.is_empty() && !host.is_empty() && !host.contains('@'));
    if whole && !is_longer(text, MAIL_LENGTH_MAX) && !text.contains(is_odd) {
        return Ok(());
    }
    invalid("email", format!("must be NAME@HOST without spaces, of at most {MAIL_LENGTH_MAX} characters"))
}

/// True if it has more characters than that, which is how schemas count.
pub(crate) fn is_longer(text: &str, max: usize) -> bool {
    text.chars().nth(max).is_some()
}

pub(crate) fn invalid(field: &'static str, reason: impl Into<String>) -> Result<(), Invalid> {
    Err(Invalid { field, reason: reason.into() })
}

impl crate::ScopeRequest {
    /// Checks that every field is as the schema says.
    pub fn check(&self) -> Result<(), Invalid> {
        match self {
            Self::Enter(request) => request.enter.check(),
            Self::Exit(request) if !request.exit => invalid("exit", "must be true"),
            Self::Exit(_) => Ok(()),
            Self::Set(request) => {
                let named = |name: &Option<String>| name.clone().filter(|name| !name.is_empty());
                name("agent", &request.set.agent, AGENT_LENGTH_MAX, "._-")?;
                name("model", &named(&request.set.model), MODEL_LENGTH_MAX, MODEL_MARKS)?;
                name("mode", &named(&request.set.mode), MODEL_LENGTH_MAX, MODEL_MARKS)
            }
            Self::Relink(request) => {
                directory(&request.relink).map_err(|invalid| Invalid { field: "relink", ..invalid })
            }
        }
    }
}

impl crate::UndoTurn {
    /// Checks that every field is as the schema says.
    pub fn check(&self) -> Result<(), Invalid> {
        turn("turn", self.turn)?;
        let Some(only) = &self.only else { return Ok(()) };
        let is_path =
            |path: &String| (1..=PATH_LENGTH_MAX).contains(&path.chars().count()) && !path.contains('\0');
        match (1..=UNDO_FILES_MAX).contains(&only.len()) && only.iter().all(is_path) {
            true => Ok(()),
            false => invalid("only", format!("must name 1 to {UNDO_FILES_MAX} files")),
        }
    }
}

impl crate::RedoTurn {
    /// Checks that every field is as the schema says.
    pub fn check(&self) -> Result<(), Invalid> {
        turn("turn", self.turn)
    }
}

impl crate::NewFork {
    /// Checks that every field is as the schema says.
    pub fn check(&self) -> Result<(), Invalid> {
        self.at.map_or(Ok(()), |at| turn("at", at))?;
        title(&self.title)
    }
}

impl crate::ChangesQuery {
    /// Checks that every field is as the schema says.
    pub fn check(&self) -> Result<(), Invalid> {
        turn("turn", self.turn)
    }
}

impl crate::DiffQuery {
    /// Checks that every field is as the schema says.
    pub fn check(&self) -> Result<(), Invalid> {
        turn("turn", self.turn)?;
        self.since.map_or(Ok(()), |since| turn("since", since))
    }
}

impl crate::FileChangesQuery {
    /// Checks that every field is as the schema says.
    pub fn check(&self) -> Result<(), Invalid> {
        turn("turn", self.turn)?;
        self.since.map_or(Ok(()), |since| turn("since", since))?;
        patch_place(&self.path, self.from)
    }
}

impl crate::DirectoriesQuery {
    /// Checks that every field is as the schema says.
    pub fn check(&self) -> Result<(), Invalid> {
        self.directory.as_deref().map_or(Ok(()), directory)
    }
}

impl crate::WorktreeFileQuery {
    /// Checks that every field is as the schema says.
    pub fn check(&self) -> Result<(), Invalid> {
        patch_place(&self.path, self.from)
    }
}

fn patch_place(path: &str, from: Option<u64>) -> Result<(), Invalid> {
    if path.is_empty() || is_longer(path, DIRECTORY_LENGTH_MAX) {
        return invalid("path", format!("must have 1 to {DIRECTORY_LENGTH_MAX} characters"));
    }
    if from.is_some_and(|from| from > PATCH_BYTES_MAX) {
        return invalid("from", format!("must be at most {PATCH_BYTES_MAX}"));
    }
    Ok(())
}

fn turn(field: &'static str, turn: u32) -> Result<(), Invalid> {
    if (1..=WHOLE_MAX).contains(&turn) {
        return Ok(());
    }
    invalid(field, format!("must be a whole number from 1 to {WHOLE_MAX}"))
}
