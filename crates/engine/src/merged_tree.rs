//! The answer to a merge as it is kept: it waits with the verdict of the chore for whoever asked.

use crate::MergedTree;
use serde::{Deserialize, Serialize};

/// The bytes of names that the answer to a merge has room for where it waits for whoever asked.
const TOLD_NAMES_BYTES_MAX: usize = 64 * 1024;

/// The stored form of the answer to a merge: it waits with the verdict for whoever asked.
#[derive(Debug, Serialize, Deserialize)]
struct MergedRecord {
    into: String,
    branch: Option<String>,
    files: Vec<String>,
    is_cut: bool,
    before: Option<String>,
    safety: Option<String>,
    left_out: Vec<String>,
}

/// The answer to a merge, as it is kept. Names that do not fit are left out, and that is said.
pub(crate) fn merged_text(merged: &MergedTree) -> String {
    let mut room = TOLD_NAMES_BYTES_MAX;
    let mut fitting = |names: &[String]| -> Vec<String> {
        let fits = |name: &&String| {
            let fits = name.len() <= room;
            room = room.saturating_sub(name.len());
            fits
        };
        names.iter().take_while(fits).cloned().collect()
    };
    let (files, left_out) = (fitting(&merged.files), fitting(&merged.left_out));
    let is_cut = merged.is_cut || files.len() < merged.files.len() || left_out.len() < merged.left_out.len();
    let MergedTree { into, branch, before, safety, .. } = merged.clone();
    let into = into.for_readers().to_owned();
    let record = MergedRecord { into, branch, files, is_cut, before, safety, left_out };
    serde_json::to_string(&record).expect("names are plain data")
}

/// The other way round; none of what another version has written in another way.
pub(crate) fn merged_parse(text: &str) -> Option<MergedTree> {
    let MergedRecord { into, branch, files, is_cut, before, safety, left_out } =
        serde_json::from_str(text).ok()?;
    let into = into.into();
    Some(MergedTree { into, branch, files, is_cut, before, safety, left_out, obstacle: None })
}
