//! Names that are safe to hand to git and to the file system, because nothing else can be made into one.

use std::fmt;
use std::str::FromStr;

use kernel::{SessionId, is_worktree_name};
use processes::wall::{own_worktree, worktree_suffix};
use serde::{Deserialize, Serialize};

use super::error::GitError;

/// The longest name of a worktree among all of them: a session's own, and what tells it from those of others.
const WORKTREE_BYTES_MAX: usize = 63;
/// The longest branch name: one more component of a path has to fit a file's name.
const BRANCH_BYTES_MAX: usize = 200;
/// The longest revision that somebody may state.
const REVISION_BYTES_MAX: usize = 250;

/// The name of a worktree: `[a-z0-9][a-z0-9-]{0,62}`. It is a directory's name and a part of a branch's.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct WorktreeName(String);

impl TryFrom<String> for WorktreeName {
    type Error = GitError;

    fn try_from(text: String) -> Result<Self, GitError> {
        text.parse()
    }
}

impl From<WorktreeName> for String {
    fn from(WorktreeName(name): WorktreeName) -> Self {
        name
    }
}

impl WorktreeName {
    /// The full name of the worktree that a session calls `name`: two sessions that call theirs the same have two.
    pub fn of(session: SessionId, name: &str) -> Result<Self, GitError> {
        format!("{name}{}", worktree_suffix(session)).parse()
    }

    /// True if it is one of that session's.
    pub fn is_of(&self, session: SessionId) -> bool {
        self.own(session).is_some()
    }

    /// The name its session gives it, if it is one of that session's.
    pub fn own(&self, session: SessionId) -> Option<&str> {
        own_worktree(session, &self.0)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for WorktreeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for WorktreeName {
    type Err = GitError;

    fn from_str(text: &str) -> Result<Self, GitError> {
        if is_worktree_name(text, WORKTREE_BYTES_MAX) {
            return Ok(Self(text.to_owned()));
        }
        let why = "use up to 63 small letters, digits and dashes, and begin with a letter or digit";
        Err(GitError::BadName { what: "the worktree's name", name: text.to_owned(), why })
    }
}

/// A branch, by the name people use (`topic/a`, not `refs/heads/topic/a`). Stricter than git.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BranchName(String);

impl BranchName {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn reference(&self) -> String {
        format!("refs/heads/{}", self.0)
    }

    /// The branch that a worktree gets if nobody says otherwise.
    pub(super) fn of(worktree: &WorktreeName) -> Self {
        Self(format!("homing/{worktree}"))
    }
}

impl fmt::Display for BranchName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for BranchName {
    type Err = GitError;

    fn from_str(text: &str) -> Result<Self, GitError> {
        let no = |why| Err(GitError::BadName { what: "the branch", name: text.to_owned(), why });
        if text.is_empty() || text.len() > BRANCH_BYTES_MAX {
            return no("use 1 to 200 bytes");
        }
        if text == "HEAD" || text == "@" || text.starts_with("refs/") {
            return no("git means something else by it");
        }
        if text.contains("..") || text.contains("//") || text.contains("@{") {
            return no("it contains `..`, `//` or `@{`");
        }
        if text
            .chars()
            .any(|letter| letter.is_control() || letter.is_whitespace() || "~^:?*[\\".contains(letter))
        {
            return no("it contains a space, a control character or one of ~^:?*[\\");
        }
        let bad_part =
            |part: &str| part.starts_with(['.', '-']) || part.ends_with(['.']) || part.ends_with(".lock");
        if text.ends_with('/') || text.starts_with('/') || text.split('/').any(bad_part) {
            return no("no part may begin with `.` or `-`, or end with `.` or `.lock`");
        }
        Ok(Self(text.to_owned()))
    }
}

/// Something that names a commit, as somebody stated it. Git still has to find it.
pub(super) fn check_revision(text: &str) -> Result<(), GitError> {
    let is_bad = text.is_empty()
        || text.len() > REVISION_BYTES_MAX
        || text.starts_with('-')
        || text.contains("..")
        // `:/words` searches the whole history, and `:path` is no commit.
        || text.contains(':')
        || text.chars().any(|letter| letter.is_control() || letter.is_whitespace());
    if is_bad {
        let why = "give a branch, a tag or a commit";
        return Err(GitError::BadName { what: "the revision", name: text.to_owned(), why });
    }
    Ok(())
}

/// When a snapshot was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SnapshotMoment {
    /// Before a turn.
    Before,
    /// After a turn.
    After,
    /// Before an undo changed something; each has its own.
    Safety,
    /// Before a worktree was removed; each has its own.
    Removed,
}

impl SnapshotMoment {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::After => "after",
            Self::Safety => "safety",
            Self::Removed => "removed",
        }
    }

    /// True if an older one of the same name is kept beside it.
    pub(super) fn is_kept_apart(self) -> bool {
        matches!(self, Self::Safety | Self::Removed)
    }
}

/// The name of a snapshot: it becomes the hidden ref `refs/homing/SESSION/TURN/MOMENT`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SnapshotName {
    pub session: SessionId,
    pub turn: u64,
    pub moment: SnapshotMoment,
}

/// Where all hidden refs are.
pub(super) const HIDDEN: &str = "refs/homing/";

impl SnapshotName {
    /// The hidden ref. Snapshots that are kept apart have more, with a number at the end.
    pub fn reference(&self) -> String {
        format!("{HIDDEN}{}/{}/{}", self.session, self.turn, self.moment.word())
    }

    /// The session whose snapshot a hidden ref is.
    pub(super) fn session_in(reference: &str) -> Option<SessionId> {
        reference.strip_prefix(HIDDEN)?.split('/').next()?.parse().ok()
    }

    pub(super) fn numbered(&self, number: usize) -> String {
        match number {
            1 => self.reference(),
            number => format!("{}-{number}", self.reference()),
        }
    }
}

/// Makes sure that this can be a hidden ref of ours: from outside comes text.
pub(super) fn check_hidden(reference: &str) -> Result<(), GitError> {
    let is_known = |letter: u8| letter.is_ascii_alphanumeric() || b"_-/".contains(&letter);
    let is_ours = reference.strip_prefix(HIDDEN).is_some_and(|rest| {
        rest.split('/').all(|part| !part.is_empty() && !part.starts_with('-')) && rest.bytes().all(is_known)
    });
    if is_ours { Ok(()) } else { Err(GitError::NoSuchSnapshot(reference.to_owned())) }
}

/// True if git printed the id of an object, and nothing else.
pub(super) fn is_object_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|letter| matches!(letter, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worktree_is_called_by_small_letters_digits_and_dashes() {
        let long = "a".repeat(64);
        for bad in
            ["", "-a", "A", "a/b", "..", ".", "a.b", "a_b", "ä", "a b", "a\n", "a\0", "/etc", long.as_str()]
        {
            assert!(bad.parse::<WorktreeName>().is_err(), "{bad:?}");
        }
        for good in ["a", "0", "a-b", "fix-42-", &long[1..]] {
            assert_eq!(good.parse::<WorktreeName>().unwrap().as_str(), good);
        }
    }

    #[test]
    fn a_worktree_is_its_sessions_and_nobody_elses() {
        let (mine, other) = (SessionId::from_bits(7), SessionId::from_bits(8));
        let name = WorktreeName::of(mine, "blue").unwrap();
        assert_eq!((name.own(mine), name.own(other)), (Some("blue"), None));
        assert!(name.is_of(mine) && !name.is_of(other));
        assert!(WorktreeName::of(mine, "../blue").is_err());
    }

    #[test]
    fn a_branch_cannot_be_taken_for_anything_else() {
        for bad in [
            "",
            "-b",
            "a/-b",
            "a..b",
            "../a",
            "a//b",
            "/a",
            "a/",
            ".a",
            "a/.b",
            "a.lock",
            "a.lock/b",
            "a.",
            "HEAD",
            "@",
            "a@{1}",
            "refs/heads/a",
            "a b",
            "a\tb",
            "a\u{7f}",
            "a~1",
            "a^",
            "a:b",
            "a?",
            "a*",
            "a[",
            "a\\b",
            "a\u{a0}b",
        ] {
            assert!(bad.parse::<BranchName>().is_err(), "{bad:?}");
        }
        for good in ["a", "topic/a", "homing/x", "ünïcode", "a-b_c.d", "日本"] {
            assert_eq!(good.parse::<BranchName>().unwrap().as_str(), good);
        }
    }

    #[test]
    fn a_revision_is_no_option_and_no_range() {
        for bad in ["", "-n", "--all", "a..b", ":/words", "HEAD:file", "a b", "a\n"] {
            assert!(check_revision(bad).is_err(), "{bad:?}");
        }
        for good in ["HEAD", "HEAD~2", "main", "v1.0^{commit}", "origin/main"] {
            check_revision(good).unwrap();
        }
    }

    #[test]
    fn only_hidden_refs_of_ours_are_snapshots() {
        let name =
            SnapshotName { session: SessionId::from_bits(7), turn: 3, moment: SnapshotMoment::Removed };
        check_hidden(&name.reference()).unwrap();
        check_hidden(&name.numbered(2)).unwrap();
        for bad in [
            "refs/heads/main",
            "refs/homing/",
            "refs/homing/../heads/x",
            "refs/homing/a//b",
            "refs/homing/-a",
        ] {
            assert!(check_hidden(bad).is_err(), "{bad}");
        }
    }
}
