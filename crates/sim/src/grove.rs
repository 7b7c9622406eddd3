//! Working trees of a story, and a daemon's way to them in bad weather.
//!
//! `Grove` is the ground itself: it survives every daemon. A tree is the list of what turns did in it, a snapshot is a copy
//! of that list. `FaultyTrees` is one daemon's way there: slow, failing before anything was done, done although the answer got
//! lost, and the daemon dying on either side of it. Who acts where, and when, is judged here in the moment.

use crate::dice::Dice;
use crate::notes::short;
use crate::weather::{Sky, Weather};
use agent::House;
use engine::{
    Clock, EnteredTree, MergedTree, OwnedSession, RemovedTree, TreeChange, TreeChanges, TreeFiles, TreeReply,
    TreeSeen, Trees, TreesError, UndoPreview, UndoneTurn,
};
use kernel::{Fence, GroundPath, MergeHow, NewWorktree, SessionId, Turn, UndoFiles};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The odds of what git's work meets, in a thousand.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TreeOdds {
    pub(crate) slow: u64,
    pub(crate) slow_ms_max: u64,
    /// It fails, and nothing was done.
    pub(crate) fails: u64,
    /// It was done, and the answer is an error.
    pub(crate) unheard: u64,
    /// The daemon dies, before it was done or after.
    pub(crate) dies: u64,
}

/// The time the removal of a worktree takes: longer than whoever stops something waits.
const REMOVAL: Duration = Duration::from_secs(20);

/// The work of one turn of one session.
pub(crate) type Mark = (SessionId, Turn);

/// Everything that grows.
#[derive(Debug, Default)]
pub(crate) struct Grown {
    /// The work that was done in each directory, in order.
    pub(crate) trees: BTreeMap<String, Vec<Mark>>,
    /// Worktrees by session and name.
    pub(crate) worktrees: BTreeMap<(SessionId, String), String>,
    /// The first content of a fork's tree.
    pub(crate) forked: BTreeMap<SessionId, Vec<Mark>>,
    /// The trees before a turn and after (`true`).
    sides: BTreeMap<(SessionId, Turn, bool), Vec<Mark>>,
    /// Turns that were under way when a replaced daemon looked how it was before them.
    pub(crate) late: BTreeSet<(SessionId, Turn)>,
    /// Those who got words, and where, the last one last.
    at_work: Vec<(String, SessionId, Fence)>,
}

/// The ground of a story.
pub(crate) struct Grove {
    sky: Arc<Sky>,
    house: Arc<House>,
    odds: TreeOdds,
    dice: Mutex<Dice>,
    /// True if anything is under version control here.
    is_wooded: bool,
    /// True if several sessions may work in one directory.
    is_shared: bool,
    grown: Mutex<Grown>,
}

impl fmt::Debug for Grove {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grove").field("grown", &self.grown).finish_non_exhaustive()
    }
}

impl Grove {
    pub(crate) fn new(
        sky: Arc<Sky>,
        house: Arc<House>,
        odds: Option<TreeOdds>,
        dice: Dice,
        is_shared: bool,
    ) -> Arc<Self> {
        let (is_wooded, odds) = (odds.is_some(), odds.unwrap_or_default());
        let (dice, grown) = (Mutex::new(dice), Mutex::default());
        Arc::new(Self { sky, house, odds, dice, is_wooded, is_shared, grown })
    }

    pub(crate) fn grown(&self) -> MutexGuard<'_, Grown> {
        self.grown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Half of what sessions have for themselves is a tree, and everything that people choose.
    fn is_tree(&self, directory: &str) -> bool {
        let own = directory.strip_prefix("/sim/").and_then(|own| own.bytes().last());
        self.is_wooded
            && (directory.starts_with("/srv")
                || directory.starts_with("/trees")
                || own.is_some_and(|b| b % 2 == 0))
    }

    fn strikes(&self, odds: impl Fn(&TreeOdds) -> u64) -> bool {
        let odds = odds(&self.odds);
        odds > 0 && !self.sky.is_clear() && self.dice().chance(odds)
    }

    fn dice(&self) -> MutexGuard<'_, Dice> {
        self.dice.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A turn gets its words, and does something in its directory.
    pub(crate) fn work(&self, directory: &str, session: SessionId, fence: Fence) {
        let mut grown = self.grown();
        let beside = |(there, other, theirs): &&(String, SessionId, Fence)| {
            there == directory && *other != session && self.house.runs(*other, *theirs)
        };
        if let Some((_, other, _)) = grown.at_work.iter().find(beside).filter(|_| !self.is_shared) {
            let how = format!("{} and {} in {directory}", short(session), short(other));
            self.sky.notes.broken("one turn at a time works in a directory", how);
        }
        grown.at_work.push((directory.to_owned(), session, fence));
        if self.is_tree(directory) {
            grown.trees.entry(directory.to_owned()).or_default().push((session, fence.turn));
        }
    }

    /// Nothing of these runs while an errand is carried out. A daemon that was replaced may be late with its own.
    fn must_rest(&self, grown: &Grown, what: &str, who: impl Fn(&str, SessionId) -> bool) {
        let runs = |(directory, session, fence): &&(String, SessionId, Fence)| {
            who(directory, *session) && self.house.runs(*session, *fence)
        };
        let runs = grown.at_work.iter().find(runs).filter(|_| self.sky.notes.seen().takeovers == 0);
        if let Some((directory, session, fence)) = runs {
            let how = format!("{what} while {} {fence} works in {directory}", short(session));
            self.sky.notes.broken("no turn runs beside an errand", how);
        }
    }
}

/// One daemon's way to the trees.
pub(crate) struct FaultyTrees {
    pub(crate) grove: Arc<Grove>,
    pub(crate) weather: Arc<Weather>,
}

impl fmt::Debug for FaultyTrees {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultyTrees").field("grove", &self.grove).finish_non_exhaustive()
    }
}

impl FaultyTrees {
    async fn act<T>(
        &self,
        what: String,
        does: impl FnOnce(&mut Grown) -> Result<T, TreesError>,
    ) -> Result<T, TreesError> {
        let grove = &self.grove;
        self.dawdle().await;
        if grove.strikes(|odds| odds.fails) {
            grove.sky.notes.tell(|| format!("      git: {what} fails"));
            return Err(TreesError::Failed("git did not answer".to_owned()));
        }
        self.maybe_die(&what).await;
        let done = does(&mut grove.grown());
        let error = done.as_ref().err().map(ToString::to_string);
        grove.sky.notes.tell(|| format!("      git: {what} {}", error.unwrap_or_default()));
        self.maybe_die(&what).await;
        self.dawdle().await;
        if grove.strikes(|odds| odds.unheard) {
            grove.sky.notes.tell(|| format!("      git: nobody hears of {what}"));
            return Err(TreesError::Failed("git was cut off".to_owned()));
        }
        done
    }

    async fn dawdle(&self) {
        if self.grove.strikes(|odds| odds.slow) {
            let ms = self.grove.dice().between(1, self.grove.odds.slow_ms_max);
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
    }

    async fn maybe_die(&self, what: &str) {
        if self.grove.strikes(|odds| odds.dies) {
            self.grove.sky.notes.tell(|| format!("      the daemon dies beside {what}"));
            self.weather.kill();
            std::future::pending::<()>().await;
        }
    }
}

fn refused(words: &str) -> TreesError {
    TreesError::Refused(words.to_owned())
}

fn entered(name: String, directory: String) -> EnteredTree {
    EnteredTree { branch: format!("homing/{name}"), name, directory: directory.into(), notices: Vec::new() }
}

impl Grown {
    /// Where the worktree is; made with these marks if it is not there.
    fn enter(&mut self, session: SessionId, name: &str, marks: Vec<Mark>) -> EnteredTree {
        let place = || format!("/trees/{session}.{name}");
        let directory = self.worktrees.entry((session, name.to_owned())).or_insert_with(place).clone();
        self.trees.entry(directory.clone()).or_insert(marks);
        entered(name.to_owned(), directory)
    }

    fn changes(&self, session: SessionId, first: Turn, last: Turn) -> Option<Vec<Mark>> {
        let before = self.sides.get(&(session, first, false))?;
        let after = self.sides.get(&(session, last, true))?;
        Some(after.iter().filter(|mark| !before.contains(mark)).copied().collect())
    }

    /// The files of a turn that a later one has touched.
    fn touched(&self, directory: &str, session: SessionId, turn: Turn) -> Result<Vec<String>, TreesError> {
        let changes = self
            .changes(session, turn, turn)
            .ok_or_else(|| refused("nobody remembers how the tree was before it"))?;
        let tree = self.trees.get(directory).map_or(&[][..], Vec::as_slice);
        let later =
            tree.iter().skip_while(|mark| !changes.contains(mark)).filter(|mark| !changes.contains(mark));
        let touched = later.filter(|mark| changes.iter().any(|own| file_of(own) == file_of(mark)));
        Ok(touched.map(file_of).collect())
    }

    /// Takes out what a turn did, unless a later one has touched the same file. Done twice it is done once.
    fn undo(&mut self, directory: &str, session: SessionId, turn: Turn) -> Result<Vec<Mark>, TreesError> {
        if let Some(file) = self.touched(directory, session, turn)?.first() {
            return Err(refused(&format!("{file} was changed again since")));
        }
        let changes = self.changes(session, turn, turn).unwrap_or_default();
        let tree = self.trees.entry(directory.to_owned()).or_default();
        tree.retain(|mark| !changes.contains(mark));
        Ok(changes)
    }
}

/// The file that a turn touches.
fn file_of((_, turn): &Mark) -> String {
    format!("{}.txt", turn.0 % 3)
}

impl Trees for FaultyTrees {
    fn enter(
        &self,
        of: OwnedSession,
        directory: GroundPath,
        new: NewWorktree,
    ) -> TreeReply<'_, Result<EnteredTree, TreesError>> {
        let session = of.session;
        Box::pin(async move {
            let (grove, directory) = (&self.grove, directory.for_readers());
            let what = format!("enter {} of {} from {}", new.name, short(session), directory);
            self.act(what, |grown| {
                if !grove.is_tree(directory) {
                    return Err(refused(&format!("{} is no repository", directory)));
                }
                grove.must_rest(grown, "a worktree is made", |_, other| other == session);
                let marks = grown.trees.get(directory).cloned().unwrap_or_default();
                Ok(grown.enter(session, &new.name, marks))
            })
            .await
        })
    }

    fn remember_before(
        &self,
        of: OwnedSession,
        directory: &GroundPath,
        turn: Turn,
    ) -> TreeReply<'_, Result<bool, TreesError>> {
        let session = of.session;
        let directory = directory.for_readers().to_owned();
        Box::pin(async move {
            if !self.grove.is_tree(&directory) {
                return Ok(false);
            }
            self.act(format!("remember Before {turn} of {}", short(session)), |grown| {
                // A daemon that was replaced is late. Once the turn is over that changes nothing.
                if grown.sides.contains_key(&(session, turn, true)) {
                    return Ok(true);
                }
                let marks = grown.trees.get(&directory).cloned().unwrap_or_default();
                if marks.contains(&(session, turn)) {
                    grown.late.insert((session, turn));
                }
                grown.sides.insert((session, turn, false), marks);
                Ok(true)
            })
            .await
        })
    }

    /// Two steps, as on a real ground: whoever dies between them has remembered.
    fn remember_after(
        &self,
        of: OwnedSession,
        directory: &GroundPath,
        turn: Turn,
        _: Option<Vec<String>>,
    ) -> TreeReply<'_, Result<Option<TreeChanges>, TreesError>> {
        let (session, directory) = (of.session, directory.clone());
        Box::pin(async move {
            let there = directory.for_readers().to_owned();
            if !self.grove.is_tree(&there) {
                return Ok(None);
            }
            self.act(format!("remember After {turn} of {}", short(session)), |grown| {
                let marks = grown.trees.get(&there).cloned().unwrap_or_default();
                grown.sides.insert((session, turn, true), marks);
                Ok(())
            })
            .await?;
            self.changes(of, &directory, turn, turn).await
        })
    }

    fn is_untracked(&self, directory: &GroundPath) -> bool {
        !self.grove.is_tree(directory.for_readers())
    }

    fn changes(
        &self,
        of: OwnedSession,
        directory: &GroundPath,
        first: Turn,
        last: Turn,
    ) -> TreeReply<'_, Result<Option<TreeChanges>, TreesError>> {
        let session = of.session;
        let directory = directory.for_readers().to_owned();
        Box::pin(async move {
            if !self.grove.is_tree(&directory) {
                return Ok(None);
            }
            self.act(format!("changes {last} of {}", short(session)), |grown| {
                let form = |mark: &Mark| TreeChange {
                    path: file_of(mark),
                    kind: "edited",
                    plus: Some(1),
                    minus: Some(0),
                };
                let changes = grown.changes(session, first, last);
                Ok(changes.map(|marks| TreeChanges {
                    files: marks.iter().map(form).collect(),
                    patch: String::new(),
                    is_cut: false,
                    unseen: Vec::new(),
                    moves: Vec::new(),
                }))
            })
            .await
        })
    }

    fn preview_undo(
        &self,
        of: OwnedSession,
        directory: &GroundPath,
        turn: Turn,
    ) -> TreeReply<'_, Result<UndoPreview, TreesError>> {
        let session = of.session;
        let directory = directory.for_readers().to_owned();
        Box::pin(async move {
            let what = format!("preview of undo {turn} of {} in {directory}", short(session));
            self.act(what, |grown| {
                let touched = grown.touched(&directory, session, turn)?;
                Ok(UndoPreview { touched, ..UndoPreview::default() })
            })
            .await
        })
    }

    fn undo(
        &self,
        of: OwnedSession,
        directory: &GroundPath,
        turn: Turn,
        _: UndoFiles,
    ) -> TreeReply<'_, Result<UndoneTurn, TreesError>> {
        let session = of.session;
        let directory = directory.for_readers().to_owned();
        Box::pin(async move {
            let grove = &self.grove;
            self.act(format!("undo {turn} of {} in {directory}", short(session)), |grown| {
                let own = |there: &str, other| other == session || (there == directory && !grove.is_shared);
                grove.must_rest(grown, "a turn is undone", own);
                let files = grown.undo(&directory, session, turn)?.iter().map(file_of).collect();
                Ok(UndoneTurn { files, moves: Vec::new() })
            })
            .await
        })
    }

    // Nobody asks for it in a story: taking an undo back is proved elsewhere, with the real git.
    fn redo(
        &self,
        _: OwnedSession,
        _: &GroundPath,
        _: Turn,
    ) -> TreeReply<'_, Result<UndoneTurn, TreesError>> {
        Box::pin(async { Err(refused("nothing of it was undone here")) })
    }

    fn fork(
        &self,
        of: OwnedSession,
        _: GroundPath,
        new: NewWorktree,
        origin: SessionId,
        turn: Turn,
    ) -> TreeReply<'_, Result<EnteredTree, TreesError>> {
        let session = of.session;
        Box::pin(async move {
            self.act(format!("fork {} after {turn} of {}", short(session), short(origin)), |grown| {
                let marks = grown.sides.get(&(origin, turn, true)).cloned();
                let marks = marks.ok_or_else(|| refused("nobody remembers the tree after this turn"))?;
                grown.forked.entry(session).or_insert(marks.clone());
                Ok(grown.enter(session, &new.name, marks))
            })
            .await
        })
    }

    // Whoever tidies up in a story waits, and hears no: removing worktrees is proved elsewhere, with the real git.

    fn names(&self) -> TreeReply<'_, Result<Vec<(SessionId, String)>, TreesError>> {
        Box::pin(async { Ok(self.grove.grown().worktrees.keys().cloned().collect()) })
    }

    fn look(&self, of: OwnedSession, name: &str) -> TreeReply<'_, Result<Option<TreeSeen>, TreesError>> {
        let session = of.session;
        let name = name.to_owned();
        Box::pin(async move {
            let grown = self.grove.grown();
            let directory = grown.worktrees.get(&(session, name.clone())).cloned();
            let now = self.grove.sky.notes.clock.now();
            Ok(directory.map(|directory| TreeSeen {
                session,
                name,
                directory: directory.into(),
                repository: GroundPath::nowhere(),
                branch: String::new(),
                ahead: 0,
                behind: 0,
                dirty: 0,
                bytes: 0,
                made_at: now,
                used_at: now,
                seen_at: now,
                is_missing: false,
                is_deleted: false,
            }))
        })
    }

    fn removed(&self) -> TreeReply<'_, Result<Vec<RemovedTree>, TreesError>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn remove(&self, of: OwnedSession, name: &str) -> TreeReply<'_, Result<RemovedTree, TreesError>> {
        let session = of.session;
        let name = name.to_owned();
        Box::pin(async move {
            let notes = &self.grove.sky.notes;
            notes.seen().removing.insert(session);
            tokio::time::sleep(REMOVAL).await;
            notes.seen().removing.remove(&session);
            let grown = self.grove.grown();
            self.grove.must_rest(&grown, "a worktree is removed", |_, other| other == session);
            Err(refused(&format!("{name} stays: nobody tidies up in a story")))
        })
    }

    fn restore(
        &self,
        _: OwnedSession,
        removed: RemovedTree,
    ) -> TreeReply<'_, Result<EnteredTree, TreesError>> {
        Box::pin(async move { Err(refused(&format!("{} was never removed", removed.name))) })
    }

    fn merge(
        &self,
        _: OwnedSession,
        name: &str,
        _: MergeHow,
        _: bool,
    ) -> TreeReply<'_, Result<MergedTree, TreesError>> {
        let name = name.to_owned();
        Box::pin(async move { Err(refused(&format!("nobody merges {name} in a story"))) })
    }

    fn sweep(&self, _: Duration, _walled: bool) -> TreeReply<'_, Result<usize, TreesError>> {
        Box::pin(async { Ok(0) })
    }

    fn files(
        &self,
        _: OwnedSession,
        directory: &GroundPath,
        _: usize,
    ) -> TreeReply<'_, Result<TreeFiles, TreesError>> {
        let directory = directory.for_readers().to_owned();
        Box::pin(async move {
            self.act(format!("files in {directory}"), |grown| {
                let marks = grown.trees.get(&directory).cloned().unwrap_or_default();
                Ok(TreeFiles { paths: marks.iter().map(file_of).collect(), is_cut: false })
            })
            .await
        })
    }
}
