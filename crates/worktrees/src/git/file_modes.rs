//! The modes of files, which a tree of git's does not hold: it knows whether a file can be executed, and nothing else.
//!
//! Nearly all files of a working tree have one of two modes; the few others (a secret, say) are noted one by one. Finding them
//! takes a look at every file (`survey_modes`), with the first snapshot of a working tree, which reads everything anyhow. From
//! then on each snapshot looks at the files that git has found to look otherwise from outside than in our index: a change of its
//! mode changes a file's times, too. Where the clock of the files is too coarse for that, they are looked at once more
//! (`recent`). Whoever else writes our index (an undo, say) makes what is known of modes unsure: then the next snapshot looks at
//! those that had a mode of their own and those that were changed, and after the turn every file is looked at, with nobody waiting.
//! What narrows the usual mode of a file is kept then, because somebody may have closed it to others meanwhile.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::directory_handle::DirectoryHandle;
use super::error::GitError;
use super::note::NotedPath;
use super::repository::{Repository, bytes_path};
use super::shadow::{ShadowRepository, write_note};
use super::snapshot::{IndexStamp, SnapshotTrees};
use super::{Git, blocking, now_ms};

/// Files with a mode of their own that are noted. Where there are more, most have none that is worth it.
const SPECIAL_MAX: usize = 2_000;
/// A file whose times are so near to now may be changed once more without a change of its times: git compares whole seconds,
/// and there are file systems that count in steps of two.
const RECENT_SECONDS: i64 = 3;
/// The note of what is known.
const SURVEY: &str = "modes.json";
const EXECUTABLE: u32 = 0o100;

/// The modes of the files of a working tree.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileModes {
    /// The mode of nearly all files that cannot be executed, and of those that can; none if there is no such file.
    usual: Option<u32>,
    usual_executable: Option<u32>,
    /// Files with another one.
    special: BTreeMap<NotedPath, u32>,
    /// True if every other file had the usual one when this was noted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_sure: bool,
}

/// The modes as the last snapshot of a turn has found them.
#[derive(Debug, Serialize, Deserialize)]
struct ModeSurvey {
    /// The tree that the files were then.
    tree: String,
    modes: FileModes,
    /// Our index as it was then. None: not every file was looked at.
    #[serde(default)]
    index: Option<IndexStamp>,
    /// Files that were changed so shortly before that one more change need not have changed their times.
    #[serde(default)]
    recent: Vec<NotedPath>,
}

/// The modes of some files.
#[derive(Debug, Default)]
pub(super) struct SeenModes {
    pub(super) modes: Vec<(Vec<u8>, u32)>,
    /// Those that were changed just before.
    recent: Vec<NotedPath>,
}

impl FileModes {
    /// The modes of these files alone, each noted by itself.
    pub(super) fn of(root: &Path, paths: impl IntoIterator<Item = Vec<u8>>) -> Result<Self, GitError> {
        let seen = look_at(root, paths.into_iter().take(SPECIAL_MAX).collect())?;
        Ok(Self {
            special: seen.modes.into_iter().map(|(path, mode)| (NotedPath(path), mode)).collect(),
            ..Self::default()
        })
    }

    /// These modes, and nothing of other files.
    pub(super) fn listed(special: BTreeMap<NotedPath, u32>) -> Self {
        Self { special, ..Self::default() }
    }

    /// The modes of all of these, and those files that were changed just before.
    fn of_all(root: &Path, paths: Vec<Vec<u8>>) -> Result<(Self, Vec<NotedPath>), GitError> {
        let SeenModes { modes: seen, recent } = look_at(root, paths)?;
        let mut counts: [HashMap<u32, usize>; 2] = Default::default();
        for (_, mode) in &seen {
            *counts[usize::from(is_executable(*mode))].entry(*mode).or_default() += 1;
        }
        let [usual, usual_executable] = counts.map(|counts| {
            counts.into_iter().max_by_key(|(mode, count)| (*count, *mode)).map(|(mode, _)| mode)
        });
        let mut all = Self { usual, usual_executable, ..Self::default() };
        let special = seen.into_iter().filter(|(_, mode)| all.usual_of(is_executable(*mode)) != Some(*mode));
        all.special = special.take(SPECIAL_MAX).map(|(path, mode)| (NotedPath(path), mode)).collect();
        Ok((all, recent))
    }

    /// Looks again at the files that had a mode of their own, and at these. Gives those that were changed just before.
    fn again(&mut self, root: &Path, changed: BTreeSet<Vec<u8>>) -> Result<Vec<NotedPath>, GitError> {
        let mut paths = changed;
        paths.extend(self.special.keys().map(|path| path.0.clone()));
        self.special.clear();
        let seen = look_at(root, paths.into_iter().collect())?;
        for (path, mode) in seen.modes {
            if self.usual_of(is_executable(mode)) != Some(mode) && self.special.len() < SPECIAL_MAX {
                self.special.insert(NotedPath(path), mode);
            }
        }
        Ok(seen.recent)
    }

    /// True if there may be more than are noted, or another mode is the usual one by now.
    fn is_full(&self) -> bool {
        self.special.len() >= SPECIAL_MAX
    }

    fn usual_of(&self, is_executable: bool) -> Option<u32> {
        let readable = |mode: u32| mode | (mode & 0o444) >> 2;
        match is_executable {
            true => self.usual_executable.or(self.usual.map(readable)),
            false => self.usual,
        }
    }

    /// The mode of a file that has one of its own.
    pub(super) fn special(&self, path: &[u8]) -> Option<u32> {
        self.special.get(&NotedPath(path.to_vec())).copied()
    }

    /// True if every file that has none of its own has the usual one.
    pub(super) fn is_sure(&self) -> bool {
        self.is_sure
    }

    /// The mode that a file had which has this one now, and which git takes for as executable as it was.
    pub(super) fn known(&self, path: &[u8], now: u32) -> Option<u32> {
        self.special(path).or_else(|| self.usual_of(is_executable(now)).filter(|_| self.is_sure))
    }

    /// The files that have one of their own.
    pub(super) fn specials(&self) -> impl Iterator<Item = (&[u8], u32)> {
        self.special.iter().map(|(path, mode)| (path.0.as_slice(), *mode))
    }

    /// True if the file was seen with this mode, or could not be told from those that had it.
    pub(super) fn is_known_as(&self, path: &[u8], mode: u32) -> bool {
        self.special(path).or_else(|| self.usual_of(is_executable(mode))) == Some(mode)
    }

    /// The mode that this file is to get again, as far as anybody knows. `now` is the one that it has.
    pub(super) fn wanted(&self, path: &[u8], is_executable: bool, now: Option<u32>) -> Option<u32> {
        let now = now.filter(|now| self::is_executable(*now) == is_executable);
        match (self.special(path), self.usual_of(is_executable)) {
            (Some(special), _) if self::is_executable(special) == is_executable => Some(special),
            // It may have been closed to others after the last look at all of them.
            (_, Some(usual)) => Some(now.filter(|now| now & !usual == 0).unwrap_or(usual)),
            (_, None) => now,
        }
    }
}

impl Git {
    /// The modes of the files of these trees.
    pub(super) async fn modes_now(
        &self,
        repository: &Repository,
        shadow: &ShadowRepository,
        trees: &SnapshotTrees,
    ) -> Result<FileModes, GitError> {
        let Some(last) = ModeSurvey::read(shadow) else {
            return self.survey_modes(repository, shadow, &trees.tree).await;
        };
        let is_sure = last.index.is_some() && last.index == trees.ours_before;
        let changed: BTreeSet<Vec<u8>> = match is_sure {
            true => trees.touched.iter().cloned().chain(last.recent.into_iter().map(|path| path.0)).collect(),
            false if last.tree == trees.tree => BTreeSet::new(),
            // The tree of then may be gone: it is only a note.
            false => match self.steps(shadow, &last.tree, &trees.tree).await {
                Ok(steps) => steps.into_keys().collect(),
                Err(_) => return self.survey_modes(repository, shadow, &trees.tree).await,
            },
        };
        let (root, mut modes) = (repository.top.clone(), last.modes);
        let (modes, recent) =
            blocking(move || modes.again(&root, changed).map(|recent| (modes, recent))).await?;
        ModeSurvey { tree: trees.tree.clone(), modes, index: None, recent }.write(shadow, is_sure)
    }

    /// A look at every file of the last snapshot, remembered for `modes_now`.
    pub(super) async fn survey_modes(
        &self,
        repository: &Repository,
        shadow: &ShadowRepository,
        tree: &str,
    ) -> Result<FileModes, GitError> {
        let index = shadow.raw.join("index");
        let out = self.raw(shadow, "ls-files").words(["-z"]).index(&index).out().await?;
        let root = repository.top.clone();
        let (modes, recent) = blocking(move || {
            let paths = out.split(|byte| *byte == 0).filter(|path| !path.is_empty());
            FileModes::of_all(&root, paths.map(<[u8]>::to_vec).collect())
        })
        .await?;
        ModeSurvey { tree: tree.to_owned(), modes, index: None, recent }.write(shadow, true)
    }

    /// True if the last snapshot of a turn knows the mode of every file that our index has.
    pub(super) fn knows_all_modes(&self, shadow: &ShadowRepository) -> bool {
        let index = IndexStamp::of(&shadow.raw.join("index"));
        index.is_some() && ModeSurvey::read(shadow).is_some_and(|last| last.index == index)
    }
}

impl ModeSurvey {
    fn read(shadow: &ShadowRepository) -> Option<Self> {
        serde_json::from_slice(&fs::read(shadow.dir.join(SURVEY)).ok()?).ok()
    }

    /// Writes it, with our index as it is now if everything that it has was looked at.
    fn write(mut self, shadow: &ShadowRepository, is_sure: bool) -> Result<FileModes, GitError> {
        let is_sure = is_sure && self.recent.len() <= SPECIAL_MAX && !self.modes.is_full();
        self.index = IndexStamp::of(&shadow.raw.join("index")).filter(|_| is_sure);
        self.modes.is_sure = self.index.is_some();
        self.recent.truncate(if is_sure { SPECIAL_MAX } else { 0 });
        let text = serde_json::to_vec(&self).unwrap_or_default();
        let path = shadow.dir.join(SURVEY);
        if fs::read(&path).ok().as_ref() != Some(&text) {
            write_note(&path, &text)?;
        }
        Ok(self.modes)
    }
}

/// Gives files their modes. What is not there any more, or no plain file, is left as it is.
pub(super) fn set_modes(root: &Path, modes: &BTreeMap<NotedPath, u32>) -> Result<(), GitError> {
    let inside = DirectoryHandle::open(root).map_err(GitError::disk(root))?;
    for (NotedPath(path), mode) in modes {
        let path = bytes_path(path);
        let Ok((parent, name)) = inside.parent(&path) else { continue };
        match parent.mode(name) {
            Ok(Some(now)) if now != *mode => {
                parent.set_mode(name, *mode).map_err(GitError::disk(&path))?;
            }
            Ok(_) | Err(_) => {}
        }
    }
    Ok(())
}

/// The modes of those of these paths that are plain files. No link is followed.
pub(super) fn look_at(root: &Path, paths: Vec<Vec<u8>>) -> Result<SeenModes, GitError> {
    let inside = DirectoryHandle::open(root).map_err(GitError::disk(root))?;
    let mut seen = SeenModes::default();
    let now_s = i64::try_from(now_ms() / 1_000).unwrap_or(i64::MAX);
    // Paths come in order, so those of one directory stand together.
    let mut last: Option<(Vec<u8>, Option<DirectoryHandle>)> = None;
    for path in paths {
        let slash = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        if last.as_ref().is_none_or(|(above, _)| *above != path[..slash]) {
            let handle = inside.parent(&bytes_path(&path)).ok().map(|(parent, _)| parent);
            last = Some((path[..slash].to_vec(), handle));
        }
        let Some((_, Some(parent))) = &last else { continue };
        let whole = bytes_path(&path);
        let Some(name) = whole.file_name() else { continue };
        if let Ok(Some((mode, changed_s))) = parent.mode_and_change(name) {
            if changed_s > now_s - RECENT_SECONDS {
                seen.recent.push(NotedPath(path.clone()));
            }
            seen.modes.push((path, mode));
        }
    }
    Ok(seen)
}

fn is_executable(mode: u32) -> bool {
    mode & EXECUTABLE != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_most_files_have_is_noted_once_and_the_others_each() {
        let here = tempfile::tempdir().unwrap();
        let files = [("a", 0o664), ("b", 0o664), ("deep/c", 0o664), ("deep/run", 0o775), ("secret", 0o600)];
        fs::create_dir(here.path().join("deep")).unwrap();
        for (name, mode) in files {
            fs::write(here.path().join(name), "").unwrap();
            fs::set_permissions(here.path().join(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        let paths = files.map(|(name, _)| name.as_bytes().to_vec()).to_vec();
        let (modes, recent) = FileModes::of_all(here.path(), paths).unwrap();
        assert_eq!(recent.len(), files.len(), "all of them are young");
        assert_eq!(modes.specials().collect::<Vec<_>>(), [(b"secret".as_slice(), 0o600)]);
        assert_eq!(modes.wanted(b"secret", false, Some(0o644)), Some(0o600));
        assert_eq!(modes.wanted(b"a", false, None), Some(0o664));
        assert_eq!(modes.wanted(b"a", true, None), Some(0o775));
        assert_eq!(modes.wanted(b"a", false, Some(0o666)), Some(0o664), "wider than it was");
        assert_eq!(modes.wanted(b"a", false, Some(0o600)), Some(0o600), "somebody may have closed it");
        let text = serde_json::to_string(&modes).unwrap();
        assert_eq!(serde_json::from_str::<FileModes>(&text).unwrap(), modes);
    }
}
