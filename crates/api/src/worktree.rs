//! Worktrees that sessions have, or have had; and what is looked up in the scope of a session.

use crate::{At, Choice, FileChange, Invalid};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// The longest name of a snapshot that is kept.
const REFERENCE_LENGTH_MAX: usize = 255;

/// A worktree that a session has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Worktree {
    /// The session that it was made for.
    pub session: String,
    /// Its name.
    pub name: String,
    /// Where it is.
    pub directory: String,
    /// Of which repository.
    pub repository: String,
    /// Its branch.
    pub branch: String,
    /// Commits that only it has.
    pub ahead: u64,
    /// Commits that only its base has.
    pub behind: u64,
    /// Files that are changed or new, and not committed.
    pub dirty: u64,
    /// Its size on disk, in bytes.
    pub bytes: u64,
    /// True if the session is in it now.
    pub in_use: bool,
    /// True if its directory is gone, or not whole.
    pub missing: bool,
    /// When it was made.
    pub made_at: At,
    /// When something was last done in it, as far as that can be seen.
    pub used_at: At,
    /// When all this was seen: the list of everything shows what was last recorded, that of one session what is there now.
    pub seen_at: At,
}

/// A worktree that was removed, and can be had back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RemovedWorktree {
    /// The session that it was made for.
    pub session: String,
    /// Its name, as it was.
    pub name: String,
    /// Of which repository.
    pub repository: String,
    /// Its branch.
    pub branch: String,
    /// The snapshot in Homing's own store that keeps everything that was in it.
    pub reference: String,
    /// When it was removed.
    pub removed_at: At,
}

/// Somebody's worktrees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Worktrees {
    /// Those that are there.
    pub items: Vec<Worktree>,
    /// Those that were removed and can be had back, the newest first.
    pub removed: Vec<RemovedWorktree>,
    /// True if there are more; name a session to see all of its own.
    pub more: bool,
}

/// The choice of worktrees.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct WorktreesQuery {
    /// Only those of this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(pattern = "^ses_[0-7][0-9a-hjkmnp-tv-z]{25}$")]
    pub session: Option<String>,
}

/// Options of removing a worktree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RemoveWorktreeQuery {
    /// `false` leaves out the agent's teardown script; it runs if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub teardown: Option<bool>,
}

/// The removal of a worktree that is taken back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RestoreWorktree {
    /// The one that kept it under this ref; the last one if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255, pattern = "^refs/homing/[A-Za-z0-9_/-]+$")]
    pub reference: Option<String>,
}

impl RestoreWorktree {
    /// Checks that every field is as the schema says.
    pub fn check(&self) -> Result<(), Invalid> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_/-".contains(c);
        let is_good = |reference: &str| {
            let rest = reference.strip_prefix("refs/homing/");
            reference.len() <= REFERENCE_LENGTH_MAX
                && rest.is_some_and(|rest| !rest.is_empty() && rest.chars().all(plain))
        };
        match &self.reference {
            Some(reference) if !is_good(reference) => {
                let reason = "must be one that the list of worktrees names".to_owned();
                Err(Invalid { field: "reference", reason })
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// The work of a worktree that is to come back to where it was made from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MergeWorktree {
    /// Only say what would come of it.
    #[serde(default)]
    pub dry_run: bool,
}

/// The work of a worktree that came back, or would.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MergedWorktree {
    /// The session that the worktree was made for.
    pub session: String,
    /// The worktree.
    pub name: String,
    /// The directory that its work came to.
    pub into: String,
    /// The branch there; none if it is on none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The files there that changed by it, from the top of the tree; none if everything was there already.
    pub files: Vec<String>,
    /// True if there are more files than are named.
    pub cut: bool,
    /// The parts of the work that do not come along, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// The command that takes it back, of a merge or of an apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub take_back: Option<String>,
}

/// Everything that was done in a worktree since it was made, committed or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorktreeChanges {
    /// The commit that it was made from.
    pub base: String,
    /// The files.
    pub files: Vec<FileChange>,
    /// The same, as a patch.
    pub patch: String,
    /// True if some of the patch is missing, because it was long. That of one file is told whole (`…/changes/file`).
    pub cut: bool,
    /// Sentences about what was not looked at: large files that git does not track, repositories within, submodules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<String>,
}

/// The file of a worktree whose changes are asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct WorktreeFileQuery {
    /// The file, as it is named among changes.
    #[param(min_length = 1, max_length = 4_095)]
    pub path: String,
    /// The byte of its patch at which to begin: 0, or what `next` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(maximum = 268_435_456)]
    pub from: Option<u64>,
}

/// The directory whose directories are asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct DirectoriesQuery {
    /// A directory that you may choose; left out, those that you may choose with everything under them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(min_length = 1, max_length = 4_095, pattern = "^/")]
    pub directory: Option<String>,
}

/// Directories that one may choose for a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Directories {
    /// Their paths, in order.
    pub items: Vec<String>,
    /// True if there are more.
    pub more: bool,
}

/// Removes worktrees that nobody has used for long, or that take too much room together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CollectWorktrees {
    /// Only say which.
    #[serde(default)]
    pub dry_run: bool,
}

/// Worktrees whose time is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CollectedWorktrees {
    /// Each of them, the one that was not used for longest first.
    pub items: Vec<CollectedWorktree>,
}

/// A worktree whose time is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CollectedWorktree {
    /// The session that it was made for.
    pub session: String,
    /// Its name.
    pub name: String,
    /// Its size on disk, in bytes.
    pub bytes: u64,
    /// Why: `age` or `disk`.
    pub why: String,
    /// The reference that keeps everything that was in it, if it was removed. If there is neither a reference nor a problem, it is
    /// still being removed, or would be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// Why it is still there, if it could not be removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// The list of the agent's own choices in the scope of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Choices {
    /// True if the agent has said it in this scope; it does when a turn starts.
    pub known: bool,
    /// The list.
    pub items: Vec<Choice>,
}

/// Files of a session's directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Files {
    /// Their paths from there.
    pub items: Vec<String>,
    /// True if there are more.
    pub more: bool,
}

/// True if this can be the name of a worktree.
pub fn is_worktree_name(name: &str) -> bool {
    crate::scope::worktree_name(name).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_refs_of_ours_can_be_named() {
        let check =
            |reference: &str| RestoreWorktree { reference: Some(reference.to_owned()) }.check().is_ok();
        assert!(check("refs/homing/ses_1/0/removed-2"));
        for bad in ["", "refs/heads/main", "refs/homing/", "refs/homing/a b", "--all", "refs/homing/../x"] {
            assert!(!check(bad), "{bad}");
        }
        assert!(RestoreWorktree::default().check().is_ok());
    }
}
