//! The wall around an agent: what it must not see, and as whom it runs.
//!
//! Here is what the server says about it (`Wall`) and what comes of that for one start (`SessionWall`), which travels to the
//! supervisor; `held` has what is hidden by descriptor, because names can be led elsewhere, `listed` what is there, if not
//! everything is, and `look` the wall of somebody's look at an agent's program. `enforce` builds it, in the agent's own process just before it becomes the agent: `mounts` covers what is
//! hidden in a mount namespace, `new_root` leaves of that what is listed, `landlock_rules` does the same where there can be none, and bounds signals and sockets in either case; `syscalls` does
//! so with limits and priorities; `os_user` is the change of user. `prove` starts `probe` under the very same wall and lets it try to get out.

mod enforce;
mod held;
mod landlock_rules;
mod listed;
mod look;
mod mounts;
mod new_root;
mod os_user;
mod probe;
mod prove;
mod syscalls;

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kernel::{GroundPath, SessionId};
use serde::{Deserialize, Serialize};

use crate::error::ProcessError;

pub(crate) use enforce::{FirstNamespaces, PreparedWall, Separation, Unenforced};
use held::HeldFile;
pub use held::HiddenPath;
pub use listed::{ListedAccess, ListedPath, ListedPaths, WallLayout, tree_around};
use new_root::SessionList;
pub use os_user::{NoSuchUser, OsUser};
pub use probe::{AttackCount, ProbeResult, probe_wall};
pub use prove::{Attacks, PROOF_TRIES, ProofRequest, WallProof, prove_wall};

/// The kind of wall.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WallKind {
    /// By mounts where we may make them, else by Landlock, else not at all.
    #[default]
    Auto,
    /// By mounts; an agent that cannot have them is not started.
    Mounts,
    /// By Landlock alone; an agent that cannot have it is not started.
    Landlock,
    /// There is none.
    Off,
}

/// The wall as the server knows it. The same for all agents.
#[derive(Debug, Clone, Default)]
pub struct Wall {
    /// The options it is made with.
    pub kind: WallKind,
    /// The layout of it.
    pub layout: WallLayout,
    /// Everything that is there for all sessions where it lists: the system, programs, homes, and what `[wall]` allows.
    pub listed: ListedPaths,
    /// The parts of `home` that these agents have where it lists, in the place of all of it: an agent's own files there.
    pub home_places: Vec<ListedPath>,
    /// The repositories of our worktrees, as our own records have them.
    pub repositories: Option<Arc<dyn WorktreeRepositories>>,
    /// The data directory, hidden but for what belongs to the session.
    pub data: Option<DataDirectory>,
    /// Everything else that is hidden: directories, or single files and sockets. What is not there is no matter.
    pub hide: Vec<HiddenPath>,
    /// The home of whoever runs the server. Somebody with a user of their own gets that user's home in its place.
    pub home: PathBuf,
    /// The operating system's users that people's sessions run as, by the person's id.
    pub people: BTreeMap<String, OsUser>,
    /// Those who run as the server does although they are not among these.
    pub unmapped: Unmapped,
}

/// The repositories that our worktrees are of. Not what git's files in a worktree say: those are the agent's.
pub trait WorktreeRepositories: std::fmt::Debug + Send + Sync + 'static {
    /// The common directory of the repository of the worktree of ours with that root.
    fn common_of(&self, root: &Path) -> Option<PathBuf>;
}

/// Those whose sessions may run as the server's own user, by the person's id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Unmapped {
    /// Everybody for whom no other user is configured.
    #[default]
    Anybody,
    /// Nobody but this person: the server's user is root, and its sessions would be.
    Only(String),
}

/// The data directory as it was when the server started, held since.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DataDirectory {
    pub(crate) path: PathBuf,
    held: HeldFile,
}

impl DataDirectory {
    /// The directory that is there now, under its one true name.
    pub fn of(path: &Path) -> std::io::Result<Self> {
        let held = HeldFile::open(&path.canonicalize()?)?;
        Ok(Self { path: held.name.clone(), held })
    }

    /// True if it still has its name. Everything that an agent is told about its own directories begins with that.
    pub(crate) fn is_in_place(&self) -> bool {
        let found = HeldFile::open(&self.path);
        found.is_ok_and(|found| found.is_same(&self.held))
            && self.held.name_now().is_ok_and(|name| name == self.path)
    }

    /// A path of it, as it leads into the directory that is held. For what the server makes there itself: whatever is
    /// renamed meanwhile, it is made there and nowhere else.
    fn within(&self, path: &Path) -> PathBuf {
        match path.strip_prefix(&self.path) {
            Ok(inside) => self.held.through().join(inside),
            Err(_) => path.to_path_buf(),
        }
    }

    /// The directory as something that is hidden.
    fn hidden(&self) -> HiddenPath {
        HiddenPath { path: self.path.clone(), held: Some(self.held.clone()) }
    }

    /// Where a session without a directory of its own acts.
    pub(crate) fn work(&self, session: SessionId) -> PathBuf {
        self.path.join("work").join(session.to_string())
    }

    /// The root of the worktree that a directory is in, if it is one of that session's.
    pub(crate) fn worktree(&self, session: SessionId, directory: &Path) -> Option<PathBuf> {
        let root = worktree_root(&self.path, directory)?;
        own_worktree(session, root.file_name()?.to_str()?)?;
        Some(root)
    }

    /// Where an agent finds what it needs to call back.
    pub(crate) fn turns(&self, session: SessionId) -> PathBuf {
        self.path.join("turns").join(session.to_string())
    }
}

/// The letters of a session's id that make the names of its worktrees its own. The beginning is the time, which others
/// share.
const WORKTREE_SUFFIX_LETTERS: usize = 12;

/// The end of the directory names of a session's worktrees: two sessions that call theirs the same have two.
pub fn worktree_suffix(session: SessionId) -> String {
    let id = session.to_string();
    format!("-{}", &id[id.len() - WORKTREE_SUFFIX_LETTERS..])
}

/// The session's own name for the worktree in a directory of that name, if it is one of its own.
pub fn own_worktree(session: SessionId, directory_name: &str) -> Option<&str> {
    directory_name.strip_suffix(&worktree_suffix(session)).filter(|name| !name.is_empty())
}

/// In the directory of worktrees: a directory for those of each session. It is no name that a worktree has.
const BY_SESSION: &str = "of";

/// The directory of a session's worktrees, which nobody sees but its own agent and worker. A session that still has one in the
/// directory of all, where older versions made them, has all of its own there until that one is gone.
pub fn worktrees_of(data: &Path, session: SessionId) -> PathBuf {
    let all = data.join("worktrees");
    let names = std::fs::read_dir(&all).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let mut older =
        names.filter(|name| name.to_str().is_some_and(|name| own_worktree(session, name).is_some()));
    match older.next() {
        Some(_) => all,
        None => all.join(BY_SESSION).join(worktree_suffix(session).trim_start_matches('-')),
    }
}

/// The root of the worktree of ours that a directory is in, by its name.
pub fn worktree_root(data: &Path, directory: &Path) -> Option<PathBuf> {
    let all = data.join("worktrees");
    let mut names = directory.strip_prefix(&all).ok()?.iter();
    match names.next()? {
        first if first == BY_SESSION => Some(all.join(first).join(names.next()?).join(names.next()?)),
        name => Some(all.join(name)),
    }
}

/// The parts that a worker has besides those of its session.
#[derive(Debug, Clone, Copy, Default)]
pub struct GroundParts<'a> {
    /// The directories that it is asked about, where a wall lists what is there.
    pub grounds: &'a [PathBuf],
    /// Worktrees of other sessions that its call names.
    pub besides: &'a [PathBuf],
    /// The parts of its user's own files that it has nothing to do with.
    pub hidden: &'a [PathBuf],
}

/// Where the parts of the data directory are that a worker has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroundPlaces {
    /// Our own files of git, of its user.
    pub own: PathBuf,
    /// The worktrees of its session.
    pub worktrees: PathBuf,
}

/// The wall of one start, as it travels to the supervisor.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SessionWall {
    pub(crate) kind: WallKind,
    pub(crate) data: Option<DataDirectory>,
    pub(crate) hide: Vec<HiddenPath>,
    /// The paths that stay although it is inside of something hidden.
    pub(crate) keep: Vec<PathBuf>,
    /// Everything that is there, if not everything is.
    #[serde(default)]
    pub(crate) list: Option<SessionList>,
    pub(crate) os_user: Option<OsUser>,
    /// Nothing is started without it.
    #[serde(default)]
    pub(crate) must: bool,
}

/// The session that a wall is for.
#[derive(Debug, Clone, Copy)]
pub struct WalledSession<'a> {
    /// The session.
    pub session: SessionId,
    /// The id of the person it belongs to; empty if it is nobody's, as a probe is.
    pub whose: &'a str,
    /// Its directory.
    pub directory: &'a GroundPath,
    /// Nothing is started without a wall.
    pub must: bool,
}

/// Why an agent is not started without a wall, and what to do.
const MUST: &str = "the wall around agents is not there, and more than one person uses this server: `homing doctor` says \
                    what is missing; `homing up --trust-everyone` goes on without it";

/// Why an agent is not started as root, and what to do.
const UNMAPPED: &str = "the server runs as root, and no user of this machine is configured for whose session this is: whoever \
                        runs the server writes one into [wall.people] (`homing user ls` has the ids), or starts it as an \
                        ordinary user";

impl Wall {
    /// The user that session runs as, if not as we do.
    pub(crate) fn os_user(&self, of: &WalledSession<'_>) -> Option<&OsUser> {
        self.people.get(of.whose)
    }

    /// The home that agent gets: its own, or that of the user it runs as where the server's was meant.
    pub fn home(&self, of: &WalledSession<'_>, home: String) -> String {
        match self.os_user(of) {
            Some(os_user) if Path::new(&home) == self.home => os_user.home.to_string_lossy().into_owned(),
            _ => home,
        }
    }

    /// The variables of a session that runs as another user: that user's name, and nothing that leads to the server's home.
    pub fn set_user_variables(&self, of: &WalledSession<'_>, env: &mut Vec<(String, String)>) {
        let Some(os_user) = self.os_user(of) else { return };
        let leads_home =
            |value: &str| !self.home.as_os_str().is_empty() && Path::new(value).starts_with(&self.home);
        env.retain(|(name, value)| name == "PATH" || !leads_home(value));
        for name in ["USER", "LOGNAME"] {
            env.retain(|(known, _)| known != name);
            env.push((name.to_owned(), os_user.user.clone()));
        }
    }

    /// The wall around one session's agent with that home. Makes the directories that are the session's alone.
    pub fn around(
        &self,
        of: &WalledSession<'_>,
        home: &Path,
        locks: &Path,
    ) -> Result<SessionWall, ProcessError> {
        self.refuse_unmapped(of)?;
        let os_user = self.os_user(of).cloned();
        let ground = Path::new(of.directory.for_holding());
        let (directory, given, home) = (true_name(ground), home, self.home_name(home));
        let (hide, mut keep) = (self.hidden(of, &home, locks), Vec::new());
        let mut grounds = vec![ground.to_path_buf()];
        if let Some(data) = &self.data {
            let turns = data.turns(of.session);
            own_directory(&data.within(&turns), os_user.as_ref())?;
            if let Some(os_user) = &os_user {
                let token = data.within(&turns).join("token");
                // It is there already if the agent may call back.
                let _ = os_user.chown(&token);
            }
            keep.push(turns);
            let work = data.work(of.session);
            if directory.starts_with(&work) {
                own_directory(&data.within(&work), os_user.as_ref())?;
                keep.push(work);
            }
            if let Some(worktree) = data.worktree(of.session, &directory) {
                grounds.extend(self.repositories.as_ref().and_then(|all| all.common_of(&worktree)));
                if let Some(os_user) = &os_user {
                    let inside = data.within(&worktree);
                    os_user.chown_all(&inside).map_err(|why| unreadable(&worktree, &why))?;
                }
                keep.push(worktree);
            }
            if home.starts_with(&data.path) {
                own_directory(&data.within(&home), os_user.as_ref())?;
            }
        }
        keep.push(home);
        let around = self.keeping(of, hide, keep, os_user)?;
        around.refuse_hidden(&directory)?;
        self.listing(of, around, &grounds, (given, ListedAccess::Write))
    }

    /// The wall around whatever of ours works on a session's ground, and where behind it our own files are. It sees what the
    /// session's agent sees, the session's worktrees, and those files; of what is listed, the directories that it is asked about, and
    /// of the data directory those besides that its call names.
    pub fn around_ground(
        &self,
        of: &WalledSession<'_>,
        locks: &Path,
        parts: &GroundParts<'_>,
    ) -> Result<(GroundPlaces, SessionWall), ProcessError> {
        self.refuse_unmapped(of)?;
        let no_data = || ProcessError::refused("there is no data directory");
        let data = self.data.as_ref().ok_or_else(no_data)?;
        let os_user = self.os_user(of).cloned();
        let (all_trees, all) = (data.path.join("worktrees"), data.path.join("git"));
        let own = match &os_user {
            Some(os_user) => all.join("users").join(&os_user.user),
            None => all,
        };
        own_directory(&data.within(&own), os_user.as_ref())?;
        let by_session = all_trees.join(BY_SESSION);
        for path in [all_trees.as_path(), by_session.as_path(), locks] {
            own_directory(&data.within(path), None)?;
        }
        let worktrees = worktrees_of(&data.path, of.session);
        let mut hide = self.hidden(of, &own, locks);
        if worktrees != all_trees {
            own_directory(&data.within(&worktrees), os_user.as_ref())?;
        } else {
            // Of the others, those that are in the same old place are still seen.
            hide.push(HiddenPath { path: by_session, held: None });
        }
        if worktrees == all_trees && !self.people.is_empty() {
            // Each user makes worktrees there, and neither lists nor removes those of others. Nobody comes here who does not
            // work behind such a wall.
            let mode = Permissions::from_mode(0o1733);
            std::fs::set_permissions(data.within(&worktrees), mode)
                .map_err(|why| unreadable(&worktrees, &why))?;
        }
        let mut keep = vec![own.clone(), worktrees.clone(), data.work(of.session)];
        keep.extend(parts.besides.iter().filter(|path| path.starts_with(&all_trees)).cloned());
        let own_hidden = parts.hidden.iter().filter(|path| path.starts_with(&own)).cloned();
        hide.extend(own_hidden.map(|path| HiddenPath { path, held: None }));
        let around = self.keeping(of, hide, keep, os_user)?;
        // Its own ignore file counts.
        let home = self.os_user(of).map_or(&self.home, |os_user| &os_user.home);
        let around = self.listing(of, around, parts.grounds, (home, ListedAccess::Read))?;
        Ok((GroundPlaces { own, worktrees }, around))
    }

    /// True if something is there for all sessions, where a wall lists.
    pub fn lists_for_all(&self, path: &Path) -> bool {
        self.listed.paths.iter().any(|listed| path.starts_with(listed.name()))
    }

    /// The ids of those whose sessions have an operating system's user of their own, and an empty one for all others.
    pub fn os_users(&self) -> Vec<String> {
        std::iter::once(String::new()).chain(self.people.keys().cloned()).collect()
    }

    /// The id of somebody whose sessions run as the operating system's user of that name; an empty one if that is nobody's but ours.
    pub fn whose_user(&self, user: &std::ffi::OsStr) -> String {
        let of = |(person, known): (&String, &OsUser)| (known.user.as_str() == user).then(|| person.clone());
        self.people.iter().find_map(of).unwrap_or_default()
    }

    /// Everything that is hidden from a session with that home.
    fn hidden(&self, of: &WalledSession<'_>, home: &Path, locks: &Path) -> Vec<HiddenPath> {
        let mut hide = self.hide.clone();
        // Those that are not held are looked up by the supervisor.
        let by_name = |path: &Path| HiddenPath { path: path.to_path_buf(), held: None };
        hide.push(by_name(locks));
        let others = self.people.iter().filter(|(person, _)| *person != of.whose);
        hide.extend(others.map(|(_, other)| by_name(&other.home)).filter(|other| other.path != home));
        hide.extend(self.data.as_ref().map(DataDirectory::hidden));
        hide
    }

    /// The home by its one true name. Inside of the data directory, which has its own, no link is followed: one that
    /// somebody had put there in a directory's place would make that session keep what is another's.
    fn home_name(&self, home: &Path) -> PathBuf {
        match &self.data {
            Some(data) if home.starts_with(&data.path) => home.to_path_buf(),
            _ => true_name(home),
        }
    }

    fn keeping(
        &self,
        of: &WalledSession<'_>,
        hide: Vec<HiddenPath>,
        mut keep: Vec<PathBuf>,
        os_user: Option<OsUser>,
    ) -> Result<SessionWall, ProcessError> {
        let names: Vec<PathBuf> = hide.iter().map(HiddenPath::name).collect();
        keep.retain(|kept| names.iter().any(|hidden| kept.starts_with(hidden) && kept != hidden));
        let (kind, must) = (self.kind, of.must);
        if kind == WallKind::Off && must {
            return Err(ProcessError::refused(MUST));
        }
        Ok(SessionWall { kind, data: self.data.clone(), hide, keep, list: None, os_user, must })
    }

    /// True if a wall around a session has a list, for whoever must have a wall or need not.
    pub fn lists(&self, must: bool) -> bool {
        match (self.kind, self.layout) {
            (WallKind::Off, _) | (_, WallLayout::Hide) => false,
            (_, WallLayout::List) => true,
            (_, WallLayout::Auto) => must,
        }
    }

    /// The same wall with a list, if it has one: what is there for all, these directories with the working trees around them,
    /// and a home.
    fn listing(
        &self,
        of: &WalledSession<'_>,
        around: SessionWall,
        grounds: &[PathBuf],
        (home, access): (&Path, ListedAccess),
    ) -> Result<SessionWall, ProcessError> {
        if !self.lists(of.must) || grounds.iter().any(|ground| ground.parent().is_none()) {
            // Who was let choose / has all of it.
            return Ok(around);
        }
        let mut paths = self.listed.paths.clone();
        let homes = self.homes();
        let hidden: Vec<PathBuf> = around.hide.iter().map(HiddenPath::name).collect();
        // Whatever is inside of something hidden comes along with its cover, if it is kept.
        let is_listed = |path: &Path| !hidden.iter().any(|hidden| path.starts_with(hidden));
        for ground in grounds.iter().filter(|ground| is_listed(&self.home_name(ground))) {
            let tree = listed::tree_around(ground, &homes).filter(|tree| is_listed(tree));
            for path in std::iter::once(ground).chain(&tree) {
                match ListedPath::strictly(path, ListedAccess::Write) {
                    Ok(listed) => paths.push(listed),
                    // Whoever looks for it finds nothing.
                    Err(why) if why.kind() == std::io::ErrorKind::NotFound => {}
                    Err(_) => return Err(leads_elsewhere(path)),
                }
            }
        }
        let name = self.home_name(home);
        let mut in_memory = None;
        if self.is_of_server(of, &name) {
            // It belongs to whoever runs the server. A worker needs nothing of it but what is there for all.
            if access == ListedAccess::Write {
                paths.extend(self.home_places.iter().cloned());
                in_memory = Some(name);
            }
        } else {
            // One that is not there the agent has not got either way.
            let known = self.listed.homes.iter().find(|known| known.name() == name).cloned();
            let home = known.or_else(|| ListedPath::strictly(home, access).ok());
            let home = home.filter(|home| home.name().parent().is_some());
            paths.extend(home.map(|home| ListedPath { access, ..home }));
        }
        paths.retain(|listed| is_listed(listed.name()));
        Ok(SessionWall { list: Some(self.list_of(paths, in_memory)), ..around })
    }

    /// The list of these, and the home in memory.
    fn list_of(&self, paths: Vec<ListedPath>, home: Option<PathBuf>) -> SessionList {
        let paths = listed::pinned(listed::outermost(paths));
        SessionList { paths, links: self.listed.links.clone(), home }
    }

    /// True if that is the home of whoever runs the server, and the session runs as they do.
    fn is_of_server(&self, of: &WalledSession<'_>, home: &Path) -> bool {
        let own = Some(&self.home).filter(|own| own.parent().is_some());
        self.os_user(of).is_none() && own.is_some_and(|own| true_name(own) == home)
    }

    /// The homes of everybody whom this knows, and the data directory: whatever is around one of them is listed by nobody's name
    /// but its own.
    pub fn homes(&self) -> Vec<PathBuf> {
        let people = self.people.values().map(|os_user| os_user.home.clone());
        let own = Some(self.home.clone()).filter(|home| home.is_absolute());
        people.chain(own).chain(self.data.as_ref().map(|data| data.path.clone())).collect()
    }

    /// Nobody's session runs as the server's user who may not.
    fn refuse_unmapped(&self, of: &WalledSession<'_>) -> Result<(), ProcessError> {
        match &self.unmapped {
            Unmapped::Only(host)
                if !of.whose.is_empty() && of.whose != host && self.os_user(of).is_none() =>
            {
                Err(ProcessError::refused(UNMAPPED))
            }
            Unmapped::Only(_) | Unmapped::Anybody => Ok(()),
        }
    }
}

/// Why somebody is not heard in a session that runs as root, and what to do.
const UNMAPPED_SENDER: &str = "the server runs as root, and so would this session: nobody but the machine's person is heard in it, until \
                               its owner has a user of this machine in [wall.people] (`homing user ls` has the ids), or the server \
                               runs as an ordinary user";

impl Wall {
    /// Why nothing that this person wants runs in a session of that owner; none if it may. Both by their ids.
    pub fn refusal(&self, whose: &str, by: &str) -> Option<&'static str> {
        match &self.unmapped {
            Unmapped::Only(host) if !self.people.contains_key(whose) && by != host => Some(UNMAPPED_SENDER),
            Unmapped::Only(_) | Unmapped::Anybody => None,
        }
    }
}

impl SessionWall {
    /// Everything that it holds: what is hidden, what is listed, and the data directory.
    fn held(&self) -> impl Iterator<Item = &HeldFile> {
        let hidden = self.hide.iter().filter_map(|hidden| hidden.held.as_ref());
        let listed = self.list.iter().flat_map(|list| &list.paths).map(|listed| &listed.held);
        hidden.chain(listed).chain(self.data.as_ref().map(|data| &data.held))
    }

    /// The descriptors that a supervisor has to be sent, in this order.
    pub(crate) fn descriptors(&self) -> Vec<Arc<OwnedFd>> {
        held::open_files(self.held()).into_values().collect()
    }

    /// Takes them over, in the supervisor.
    pub(crate) fn adopt(&mut self, sent: Vec<OwnedFd>) -> std::io::Result<()> {
        let numbers = held::numbers(self.held());
        let sent = numbers.into_iter().zip(sent.into_iter().map(Arc::new)).collect();
        let hidden = self.hide.iter_mut().filter_map(|hidden| hidden.held.as_mut());
        let listed = self.list.iter_mut().flat_map(|list| &mut list.paths).map(|listed| &mut listed.held);
        held::adopt(hidden.chain(listed).chain(self.data.as_mut().map(|data| &mut data.held)), &sent)
    }

    /// True if there is a list.
    pub(crate) fn has_list(&self) -> bool {
        self.list.is_some()
    }

    /// True if there is a list, and neither that, nor something in it, nor a way to something in it is of that name.
    pub(crate) fn leaves_out(&self, path: &Path) -> bool {
        let Some(list) = &self.list else { return false };
        let listed = list.paths.iter().map(ListedPath::name);
        let links = list.links.iter().map(|link| link.path.as_path());
        let own = self.keep.iter().map(PathBuf::as_path).chain(["/proc", "/dev"].map(Path::new));
        let is_way = |there: &Path| there.starts_with(path);
        let mut in_memory = new_root::SCRATCH.map(Path::new).into_iter().chain(list.home.as_deref());
        !listed.chain(own).chain(links).any(|there| is_way(there) || path.starts_with(there))
            && !in_memory.any(is_way)
    }

    /// Everything that is listed, for people.
    pub(crate) fn listed_words(&self) -> Vec<String> {
        let words = |listed: &ListedPath| match listed.access {
            ListedAccess::Read => format!("{} (to read)", listed.name().display()),
            ListedAccess::Write => listed.name().display().to_string(),
        };
        self.list.iter().flat_map(|list| list.paths.iter().map(words)).collect()
    }

    /// A session cannot act where its agent sees nothing.
    fn refuse_hidden(&self, directory: &Path) -> Result<(), ProcessError> {
        let names: Vec<PathBuf> = self.hide.iter().map(HiddenPath::name).collect();
        if self.kind == WallKind::Off || !is_hidden(directory, &names, &self.keep) {
            return Ok(());
        }
        let here = directory.display();
        Err(ProcessError::refused(format!(
            "{here} is hidden from agents; give the session another directory"
        )))
    }
}

/// By its one true name, or what is hidden could be missed.
fn true_name(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}

/// True if the innermost of what is hidden or kept around a path is hidden.
fn is_hidden(path: &Path, hide: &[PathBuf], keep: &[PathBuf]) -> bool {
    let innermost = |places: &[PathBuf]| {
        places.iter().filter(|place| path.starts_with(place)).map(|place| place.components().count()).max()
    };
    innermost(hide) > innermost(keep)
}

fn leads_elsewhere(path: &Path) -> ProcessError {
    let here = path.display();
    ProcessError::refused(format!(
        "{here} leads elsewhere by now: put it back, or say where it is now with `homing scope relink DIR`"
    ))
}

fn unreadable(path: &Path, why: &std::io::Error) -> ProcessError {
    ProcessError::failed(format!("{}: {why}", path.display()))
}

/// Makes a directory that nobody but the agent's user may enter.
fn own_directory(path: &Path, os_user: Option<&OsUser>) -> Result<(), ProcessError> {
    let trouble = |why: std::io::Error| unreadable(path, &why);
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(trouble)?;
    match os_user {
        Some(os_user) => os_user.chown(path).map_err(trouble),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ground(path: &Path) -> GroundPath {
        path.to_str().unwrap().into()
    }

    fn session_in(directory: &GroundPath) -> WalledSession<'_> {
        WalledSession { session: SessionId::from_bits(1), whose: "", directory, must: false }
    }

    #[test]
    fn a_session_keeps_its_own_and_nothing_of_another() {
        let place = tempfile::tempdir().unwrap();
        let data = DataDirectory::of(place.path()).unwrap();
        let wall = Wall { data: Some(data.clone()), ..Wall::default() };
        let own = data.work(SessionId::from_bits(1));
        let locks = data.path.join("attempts");
        let around = wall.around(&session_in(&ground(&own)), Path::new("/home/x"), &locks).unwrap();
        let hidden: Vec<PathBuf> = around.hide.iter().map(HiddenPath::name).collect();
        assert_eq!(hidden, [locks.clone(), data.path.clone()]);
        assert_eq!(around.keep, [data.turns(SessionId::from_bits(1)), own]);
        let other = data.work(SessionId::from_bits(2));
        for hidden in [&other, &data.path, &locks] {
            let why = wall.around(&session_in(&ground(hidden)), Path::new("/home/x"), &locks).unwrap_err();
            assert!(why.to_string().contains("hidden from agents"), "{why:?}");
        }
    }

    #[test]
    fn a_session_keeps_its_own_worktree_and_no_other() {
        let place = tempfile::tempdir().unwrap();
        let data = DataDirectory::of(place.path()).unwrap();
        let wall = Wall { data: Some(data.clone()), ..Wall::default() };
        let root = |session: u128, name: &str| {
            let suffix = worktree_suffix(SessionId::from_bits(session));
            data.path.join("worktrees").join(format!("{name}{suffix}"))
        };
        let (mine, other) = (root(1, "blue"), root(2, "blue"));
        std::fs::create_dir_all(mine.join("crates")).unwrap();
        std::fs::create_dir_all(&other).unwrap();
        let locks = data.path.join("attempts");
        let around = |path: &Path| {
            wall.around(&session_in(&ground(path)), Path::new("/home/x"), &locks).map(|around| around.keep)
        };
        let turns = data.turns(SessionId::from_bits(1));
        assert_eq!(around(&mine.join("crates")).unwrap(), [turns.clone(), mine.clone()]);
        // A link in one's own leads nowhere.
        std::os::unix::fs::symlink(&other, mine.join("link")).unwrap();
        for hidden in [other, mine.join("link"), data.path.join("worktrees"), mine.join("..")] {
            let why = around(&hidden).unwrap_err();
            assert!(why.to_string().contains("hidden from agents"), "{}: {why:?}", hidden.display());
        }
    }

    #[test]
    fn a_worker_keeps_the_worktrees_of_its_session_and_those_that_its_call_names() {
        let place = tempfile::tempdir().unwrap();
        let data = DataDirectory::of(place.path()).unwrap();
        let wall = Wall { data: Some(data.clone()), ..Wall::default() };
        let (mine, other) = (SessionId::from_bits(1), SessionId::from_bits(2));
        let (all, locks, root) =
            (data.path.join("worktrees"), data.path.join("attempts"), GroundPath::from("/"));
        let keeps = |besides: &[PathBuf]| {
            let (places, around) = wall
                .around_ground(&session_in(&root), &locks, &GroundParts { besides, ..GroundParts::default() })
                .unwrap();
            let trees: Vec<_> = around.keep.into_iter().filter(|kept| kept.starts_with(&all)).collect();
            let hidden = around.hide.iter().any(|hidden| hidden.path == all.join("of"));
            (places.worktrees, trees, hidden)
        };
        let own = worktrees_of(&data.path, mine);
        assert_eq!(keeps(&[]), (own.clone(), vec![own.clone()], false));
        let named = worktrees_of(&data.path, other).join("blue");
        let elsewhere = data.path.join("token");
        assert_eq!(keeps(&[named.clone(), elsewhere]).1, [own, named], "nothing else of the data directory");
        // One from before is where it was; those that are apart by now are not seen with it.
        std::fs::create_dir(all.join(format!("red{}", worktree_suffix(mine)))).unwrap();
        assert_eq!(keeps(&[]), (all.clone(), vec![all.clone()], true));
    }

    #[test]
    fn nothing_starts_without_a_wall_where_there_has_to_be_one() {
        let place = tempfile::tempdir().unwrap();
        let here = |kind, walled| {
            let wall = Wall { kind, ..Wall::default() };
            let ground = ground(place.path());
            let of = WalledSession { must: walled, ..session_in(&ground) };
            wall.around(&of, Path::new("/home/x"), Path::new("/locks"))
        };
        let why = here(WallKind::Off, true).unwrap_err();
        assert!(matches!(why, ProcessError::Refused(_)));
        assert!(
            why.to_string().contains("homing doctor") && why.to_string().contains("--trust-everyone"),
            "{why:?}"
        );
        assert!(!here(WallKind::Off, false).unwrap().must);
        assert!(here(WallKind::Auto, true).unwrap().must);
    }

    #[test]
    fn nobody_but_the_machines_person_runs_as_root() {
        let place = tempfile::tempdir().unwrap();
        let bobs = OsUser { user: "bob".into(), uid: 1, gid: 1, groups: vec![1], home: "/home/bob".into() };
        let people = BTreeMap::from([("usr_bob".to_owned(), bobs)]);
        let starts = |unmapped: &Unmapped, whose| {
            let wall = Wall { people: people.clone(), unmapped: unmapped.clone(), ..Wall::default() };
            let ground = ground(place.path());
            let of = WalledSession { whose, ..session_in(&ground) };
            wall.around(&of, Path::new("/home/x"), Path::new("/locks")).map(|around| around.os_user.is_some())
        };
        let root = Unmapped::Only("usr_host".to_owned());
        for (whose, has_own) in [("usr_host", false), ("usr_bob", true), ("", false)] {
            assert_eq!(starts(&root, whose).unwrap(), has_own, "{whose}");
        }
        let why = starts(&root, "usr_eve").unwrap_err();
        assert!(
            matches!(why, ProcessError::Refused(_)) && why.to_string().contains("[wall.people]"),
            "{why:?}"
        );
        assert!(!starts(&Unmapped::Anybody, "usr_eve").unwrap());
        // Nor does anybody else speak where the machine's person runs.
        let heard = |unmapped: &Unmapped, whose, by| {
            let wall = Wall { people: people.clone(), unmapped: unmapped.clone(), ..Wall::default() };
            wall.refusal(whose, by).is_none()
        };
        assert!(heard(&root, "usr_host", "usr_host") && heard(&root, "usr_bob", "usr_eve"));
        assert!(!heard(&root, "usr_host", "usr_eve") && !heard(&root, "usr_host", "usr_bob"));
        assert!(heard(&Unmapped::Anybody, "usr_host", "usr_eve"));
    }

    #[test]
    fn the_innermost_of_hidden_and_kept_counts() {
        let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
        let (hide, keep) = (paths(&["/home", "/home/me/data"]), paths(&["/home/me", "/home/me/data/work/1"]));
        let hidden = |path: &str| is_hidden(Path::new(path), &hide, &keep);
        assert!(
            hidden("/home")
                && hidden("/home/you")
                && hidden("/home/me/data")
                && hidden("/home/me/data/work/2")
        );
        assert!(
            !hidden("/") && !hidden("/home/me") && !hidden("/home/me/data/work/1/x") && !hidden("/homes")
        );
    }

    #[test]
    fn a_directory_that_was_replaced_is_not_in_its_place() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("data");
        std::fs::create_dir(&path).unwrap();
        let data = DataDirectory::of(&path).unwrap();
        assert!(data.is_in_place());
        std::fs::rename(&path, place.path().join("elsewhere")).unwrap();
        assert!(!data.is_in_place());
        std::fs::create_dir(&path).unwrap();
        assert!(!data.is_in_place());
    }
}
