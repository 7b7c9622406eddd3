//! The bounds on what one call writes, looked at from outside of git while it goes.
//!
//! The kernel counts what each process writes, and adds what one had written to its parent's when that has waited for it. The worker
//! looks at itself and at what it has started: whatever a repository makes git write is in there, to files or to each other.

use std::path::PathBuf;
use std::time::Duration;

use engine::TreesError;
use serde::{Deserialize, Serialize};

use crate::git::size_of;

/// The time between two looks. A fast disk takes some hundred megabytes meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The least that is written between two looks at what a new worktree takes: everything in it has to be walked over.
const TREE_LOOK_BYTES: u64 = 16 * 1024 * 1024;
/// Processes that are looked at. A worker may have fewer.
const PROCESSES_MAX: usize = 256;

/// The bounds on what one call writes.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct WrittenBounds {
    /// Everything that it writes.
    pub(super) bytes_max: u64,
    /// The room that is left for the worktree that it makes.
    pub(super) tree_bytes_left: Option<u64>,
}

impl WrittenBounds {
    /// Waits until a call that begins now has written more than it may, and says which bound that was.
    pub(super) async fn exceeded(self, tree: Option<PathBuf>) -> TreesError {
        let began = written_bytes();
        let tree = tree.zip(self.tree_bytes_left);
        let mut look_at = tree.as_ref().map_or(u64::MAX, |(_, left)| *left);
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let written = written_bytes().saturating_sub(began);
            if written > self.bytes_max {
                return too_much(self.bytes_max);
            }
            let Some((root, left)) = tree.as_ref().filter(|_| written > look_at) else { continue };
            let (root, left) = (root.clone(), *left);
            // A part of what was written is elsewhere, such as in the index.
            let taken = tokio::task::spawn_blocking(move || size_of(&root)).await.unwrap_or(0);
            if taken > left {
                return no_room(left);
            }
            look_at = written + (left - taken).max(TREE_LOOK_BYTES);
        }
    }
}

fn too_much(bytes_max: u64) -> TreesError {
    TreesError::Refused(format!(
        "it would write more than {} MiB, and limits.worker_written_bytes_max allows no more at once: something in the \
         directory, or in its repository, is larger than it should be",
        bytes_max >> 20
    ))
}

fn no_room(left: u64) -> TreesError {
    TreesError::Refused(format!(
        "the worktree takes more than the {} MiB that are left of limits.worktree_bytes_per_person_max for this session's \
         owner: `homing worktree ls` shows what there is, `homing worktree rm` removes one and keeps what is in it",
        left >> 20
    ))
}

/// The bytes that this process and everything that it has started have written.
fn written_bytes() -> u64 {
    let parents = parents();
    let (mut bytes, mut seen, mut left) = (0, 0, vec![std::process::id()]);
    // A process comes before what it has started: what ends in between is missed once, and never counted twice.
    while let Some(process) = left.pop() {
        bytes += written_by(&std::fs::read_to_string(format!("/proc/{process}/io")).unwrap_or_default());
        seen += 1;
        if seen == PROCESSES_MAX {
            break;
        }
        left.extend(parents.iter().filter(|(_, parent)| *parent == process).map(|(child, _)| *child));
    }
    bytes
}

/// The processes that there are, each with who has started it. Behind a wall these are the worker's own.
fn parents() -> Vec<(u32, u32)> {
    let names = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let parent = |name: std::ffi::OsString| {
        let process: u32 = name.to_str()?.parse().ok()?;
        let about = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // Its name is in brackets, and may have anything in it.
        let parent = about.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()?;
        Some((process, parent))
    };
    names.filter_map(|entry| parent(entry.file_name())).collect()
}

fn written_by(io: &str) -> u64 {
    let number = |line: &str| line.strip_prefix("wchar: ")?.trim().parse::<u64>().ok();
    io.lines().find_map(number).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    #[tokio::test]
    async fn what_a_process_of_ours_writes_counts_while_it_runs_and_when_it_is_over() {
        let place = tempfile::tempdir().unwrap();
        let before = written_bytes();
        let mut writer = tokio::process::Command::new("sh")
            .args([
                "-c",
                "head -c 50000000 /dev/zero > one; head -c 50000000 /dev/zero > two; echo; exec sleep 60",
            ])
            .current_dir(place.path())
            .stdout(std::process::Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let bounds = WrittenBounds { bytes_max: 60_000_000, tree_bytes_left: None };
        let why = tokio::time::timeout(Duration::from_secs(60), bounds.exceeded(None)).await.unwrap();
        assert!(why.to_string().contains("limits.worker_written_bytes_max"), "{why}");
        // Whoever still wrote would outlive its parent, and be counted by nobody.
        writer.stdout.as_mut().unwrap().read_u8().await.unwrap();
        writer.kill().await.unwrap();
        assert!(written_bytes() - before >= 100_000_000);
    }

    #[tokio::test]
    async fn a_tree_has_the_room_that_is_left_whatever_is_written_elsewhere() {
        let (tree, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let bounds = WrittenBounds { bytes_max: u64::MAX, tree_bytes_left: Some(8_000_000) };
        let exceeded = bounds.exceeded(Some(tree.path().to_owned()));
        let mut exceeded = std::pin::pin!(exceeded);
        let none = tokio::time::timeout(Duration::from_millis(10), &mut exceeded).await;
        assert!(none.is_err());
        std::fs::write(elsewhere.path().join("index"), vec![1; 40_000_000]).unwrap();
        let none = tokio::time::timeout(Duration::from_millis(500), &mut exceeded).await;
        assert!(none.is_err(), "what is written elsewhere takes no room here");
        std::fs::write(tree.path().join("large"), vec![1; 40_000_000]).unwrap();
        let why = tokio::time::timeout(Duration::from_secs(60), exceeded).await.unwrap();
        assert!(why.to_string().contains("limits.worktree_bytes_per_person_max"), "{why}");
    }
}
