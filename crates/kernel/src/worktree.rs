//! A worktree that is to be made or gone into, and what it may be called; and what is done with one that is there.
//!
//! This is the only place where such a name is judged. The wire's schema says the same in a pattern of its own, because
//! `api` stands on nothing; a test of the server compares both.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;

/// The longest name of a worktree: with a session's own beside it, it still fits into a file's name.
pub const WORKTREE_NAME_BYTES_MAX: usize = 40;
/// The longest revision or branch.
const REVISION_BYTES_MAX: usize = 255;
/// The part that every name of a snapshot has in it, and no branch that is named after a worktree.
const SNAPSHOTS: &str = "homing/ses_";
/// A worktree without a name: nobody else's is in its way, because a worktree belongs to its session.
const OWN_NAME: &str = "tree";

/// A worktree to be made or gone into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewWorktree {
    /// Its name.
    pub name: String,
    /// The revision that it begins with; the repository's current one if none is named.
    pub base: Option<String>,
    /// The branch; one named after the worktree if none is named.
    pub branch: Option<String>,
}

/// Something that is done outside for a session, mostly with a worktree of it, while nothing else of the session goes on. It changes
/// nothing of the session itself, and ends the same way however often it is begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chore {
    /// Remove the worktree of this name, after the agent's teardown script or without it.
    Remove { name: String, teardown: bool },
    /// Give the worktree of this name back, as it is kept under this reference.
    Restore { name: String, reference: String },
    /// Bring the work of the worktree of this name back to where it was made from.
    Merge { name: String, how: MergeHow },
    /// End what the agent's turns have left running in the background.
    EndBackground,
}

/// The way in which the work of a worktree comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeHow {
    /// The commits of its branch become part of the branch there.
    Merge,
    /// Everything, committed or not, becomes uncommitted changes there.
    Apply,
}

impl Chore {
    /// The worktree that it is about; empty if it is about none.
    pub fn name(&self) -> &str {
        match self {
            Self::Remove { name, .. } | Self::Restore { name, .. } | Self::Merge { name, .. } => name,
            Self::EndBackground => "",
        }
    }
}

/// The field of a worktree to be made that cannot be as it is, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct BadWorktree {
    pub field: &'static str,
    pub reason: String,
}

impl NewWorktree {
    /// The worktree of a session that asked for one of its own; a name is given if it said none.
    pub fn own(name: Option<String>, base: Option<String>, branch: Option<String>) -> Self {
        Self { name: name.unwrap_or_else(|| OWN_NAME.to_owned()), base, branch }
    }

    /// True if its name is the one that is given to a worktree without one.
    pub fn has_own_name(&self) -> bool {
        self.name == OWN_NAME
    }

    /// The first field that cannot be as it is.
    pub fn check(&self) -> Result<(), BadWorktree> {
        if !is_worktree_name(&self.name, WORKTREE_NAME_BYTES_MAX) {
            let reason = format!(
                "must have 1 to {WORKTREE_NAME_BYTES_MAX} of a-z, 0-9 and -, and begin with none of the last"
            );
            return Err(BadWorktree { field: "name", reason });
        }
        check_revision("base", self.base.as_deref())?;
        check_revision("branch", self.branch.as_deref())
    }
}

/// True if this can be the name of a worktree: small letters, digits and dashes, and no dash first. It is a directory's
/// name and a part of a branch's.
pub fn is_worktree_name(name: &str, bytes_max: usize) -> bool {
    let plain = |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    name.len() <= bytes_max
        && name.bytes().next().is_some_and(plain)
        && name.bytes().all(|letter| plain(letter) || letter == b'-')
}

fn check_revision(field: &'static str, named: Option<&str>) -> Result<(), BadWorktree> {
    let Some(named) = named else { return Ok(()) };
    // Whoever may not see a session does not get its tree, either; whoever may makes a fork of it.
    if named.contains(SNAPSHOTS) {
        return Err(BadWorktree { field, reason: "a session's snapshot: fork the session".to_owned() });
    }
    let odd = |character: char| character.is_control() || character == ' ';
    if named.is_empty() || named.len() > REVISION_BYTES_MAX || named.starts_with('-') || named.contains(odd) {
        let reason =
            format!("must have 1 to {REVISION_BYTES_MAX} bytes without blanks, and not begin with -");
        return Err(BadWorktree { field, reason });
    }
    Ok(())
}
