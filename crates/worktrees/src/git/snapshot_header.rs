//! The header that a snapshot's commit has of itself: what was HEAD, what was staged, what is not in it.

use serde::{Deserialize, Serialize};

use super::names::{SnapshotName, is_object_id};
use super::objects::SeenCommit;
use super::unseen::UnseenPart;

/// The header that a snapshot's commit has of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SnapshotHeader {
    pub(super) head: Option<String>,
    pub(super) branch: Option<String>,
    pub(super) staged: Option<Staged>,
    pub(super) kept: Option<String>,
    /// Commits that nothing else might hold: the parents after what was kept.
    pub(super) commits: Vec<String>,
    pub(super) unseen: Vec<UnseenPart>,
    pub(super) note: Option<String>,
}

/// The staged files: a tree, or in the midst of a merge a tree for each stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Staged {
    Tree(String),
    Stages(String),
}

impl Staged {
    pub(super) fn tree(&self) -> &str {
        match self {
            Self::Tree(tree) | Self::Stages(tree) => tree,
        }
    }
}

impl SeenCommit {
    pub(super) fn read(commit: &str, text: &str) -> Self {
        let tree = text.lines().next().and_then(|line| line.strip_prefix("tree ")).unwrap_or_default();
        Self { commit: commit.to_owned(), tree: tree.to_owned(), header: SnapshotHeader::read(text) }
    }
}

impl SnapshotHeader {
    pub(super) fn write(&self, name: &SnapshotName) -> String {
        let mut text = format!("homing: {} turn {} of {}\n\n", name.moment.word(), name.turn, name.session);
        let mut say = |key: &str, value: Option<&str>| {
            if let Some(value) = value {
                text.push_str(&format!("{key} {value}\n"));
            }
        };
        say("head", self.head.as_deref());
        say("branch", self.branch.as_deref());
        match &self.staged {
            Some(Staged::Tree(tree)) => say("staged", Some(tree)),
            Some(Staged::Stages(tree)) => say("stages", Some(tree)),
            None => {}
        }
        say("kept", self.kept.as_deref());
        for part in &self.unseen {
            say("unseen", Some(&part.line()));
        }
        say("note", self.note.as_deref());
        text
    }

    fn read(commit: &str) -> Self {
        let mut told = Self::default();
        let (about, message) = commit.split_once("\n\n").unwrap_or((commit, ""));
        for (key, value) in message.lines().skip(1).filter_map(|line| line.split_once(' ')) {
            let value = value.to_owned();
            match key {
                "head" if is_object_id(&value) => told.head = Some(value),
                "branch" => told.branch = Some(value),
                "staged" if is_object_id(&value) => told.staged = Some(Staged::Tree(value)),
                "stages" if is_object_id(&value) => told.staged = Some(Staged::Stages(value)),
                "unseen" => told.unseen.extend(UnseenPart::read(&value)),
                "kept" if is_object_id(&value) => told.kept = Some(value),
                "note" => told.note = Some(value),
                _ => {}
            }
        }
        if let Some(kept) = &told.kept {
            let parents = about.lines().filter_map(|line| line.strip_prefix("parent "));
            told.commits = parents.skip_while(|id| id != kept).skip(1).map(str::to_owned).collect();
        }
        told
    }
}
