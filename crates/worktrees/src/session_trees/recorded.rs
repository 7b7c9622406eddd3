//! The server's own reading of what workers have recorded and noted: it looks into no worktree and no repository.

use std::path::{Path, PathBuf};

use engine::{RemovedTree, SnapshotStoreSeen, TreeSeen, TreesError};
use kernel::SessionId;

use super::{GitTrees, ground, removed_form, seen_form, tree_error};
use crate::git::{StoreRoom, WorktreeName, WorktreeStatus};
use crate::seen_notes::SeenNotes;
use crate::session_directory::SessionDirectories;

/// Where our own files of git are: the server's, and those of each user that people's sessions run as.
pub(crate) fn own_places(data: &Path) -> Vec<PathBuf> {
    let git = data.join("git");
    let users = std::fs::read_dir(git.join("users")).into_iter().flatten().flatten();
    std::iter::once(git).chain(users.map(|user| user.path())).collect()
}

/// The stores of snapshots in all places, as they were last counted, and as whose user each is worked in.
pub(crate) fn snapshot_stores(
    data: &Path,
    whose: impl Fn(&Path) -> String,
) -> Result<Vec<SnapshotStoreSeen>, TreesError> {
    let mut stores = Vec::new();
    for place in
        own_places(data).into_iter().filter(|place| place.join("snapshots").symlink_metadata().is_ok())
    {
        let user = if place == data.join("git") { String::new() } else { whose(&place) };
        for room in GitTrees::open_at(data, &place)?.git.store_rooms() {
            let StoreRoom { key, repository, bytes, sessions } = room;
            let (whose, repository) = (user.clone(), ground(repository));
            stores.push(SnapshotStoreSeen { whose, key, repository, bytes, sessions });
        }
    }
    Ok(stores)
}

/// The worktrees that our own records name: whose, and what they are called. Looks into none.
pub(crate) fn worktree_names(data: &Path) -> Result<Vec<(SessionId, String)>, TreesError> {
    let own = |(name, session): (WorktreeName, Option<SessionId>)| {
        let session = session?;
        Some((session, name.own(session)?.to_owned()))
    };
    let mut names = Vec::new();
    for place in own_places(data) {
        names.extend(
            GitTrees::open_at(data, &place)?.git.names().map_err(tree_error)?.into_iter().filter_map(own),
        );
    }
    Ok(names)
}

/// The worktrees as they were last seen, as far as that was noted. Of one that was deleted by hand, its name is missing.
pub(crate) fn worktrees_seen(data: &Path) -> Result<engine::SeenTrees, TreesError> {
    let mut seen = engine::SeenTrees::new();
    for place in own_places(data) {
        let recorded = GitTrees::open_at(data, &place)?.git.recorded().map_err(tree_error)?;
        let notes = SeenNotes::at(&place);
        let trees = recorded.into_iter().filter_map(|status| as_noted(data, &notes, status));
        seen.extend(trees.map(|tree| ((tree.session, tree.name.clone()), tree)));
    }
    let directories = SessionDirectories::of(data);
    for tree in seen.values_mut() {
        tree.is_missing |= directories.hold(&tree.directory).is_err();
    }
    Ok(seen)
}

/// A worktree as it was noted, or as it was made if nobody has looked at it since.
fn as_noted(data: &Path, notes: &SeenNotes, mut status: WorktreeStatus) -> Option<TreeSeen> {
    let (session, made_at_ms) = (status.session?, status.made_at_ms);
    status.directory = processes::wall::worktrees_of(data, session).join(status.name.as_str());
    let own = status.name.own(session)?.to_owned();
    let noted = notes.read(session, &status.name);
    Some(noted.unwrap_or_else(|| TreeSeen {
        seen_at: kernel::Moment(made_at_ms),
        ..seen_form(session, own, status)
    }))
}

/// The removed worktrees that our own records name, the newest first.
pub(crate) fn worktrees_removed(data: &Path) -> Result<Vec<RemovedTree>, TreesError> {
    let mut removed = Vec::new();
    for place in own_places(data) {
        let noted = GitTrees::open_at(data, &place)?.git.removed().map_err(tree_error)?;
        removed.extend(noted.into_iter().filter_map(removed_form));
    }
    removed.sort_by_key(|removed| std::cmp::Reverse(removed.removed_at));
    Ok(removed)
}
