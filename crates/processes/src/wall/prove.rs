//! Proves the wall: starts the probe exactly as an agent is started, in a session of its own, with things beside it that it
//! must not find, and asks what it found. The wall is proved if every way out was shut and what an agent needs was not.

use std::fs;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kernel::{GroundPath, SessionId, TreeName};
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;
use tokio::time::Instant;
use uuid::Uuid;

use super::enforce::Separation;
use super::probe::{
    AttackCount, LATE_SOCKET, Outsider, ProbeOrder, ProbeResult, ProbeTargets, RenameTargets,
};
use super::{
    DataDirectory, HiddenPath, ListedAccess, Wall, WallKind, WalledSession, landlock_rules, new_root,
    syscalls,
};
use crate::error::ProcessError;
use crate::spare::SpareSupervisor;
use crate::tree::{ProcessTree, TreeEvent, TreePlan};

/// The longest that nothing may be heard of a probe: it says when it has tried everything once more. How long a try takes depends on
/// what else the machine does, and on the sessions beside it.
const PROBE_SILENCE_MAX: Duration = Duration::from_secs(30);
/// The longest that one probe may take, whatever it says.
const PROBE_TIME_MAX: Duration = Duration::from_secs(60 * 60);
/// The tries of each attack. Tests have more.
pub const PROOF_TRIES: u32 = 5;
/// The name of the directory that is hidden from a probe that renames.
const HIDDEN: &str = "hidden";
/// The directories in the data directory of which each entry is one session's or one user's.
const SEPARATE: [&str; 7] =
    ["work", "agents", "turns", "worktrees/of", "git/snapshots", "git/users", "attempts"];
/// So many entries of each are tried for.
const NEIGHBOURS_MAX: usize = 32;
/// Files that are the server's alone, where it is there.
const PRIVATE: [&str; 8] =
    ["homing.db", "homing.db-wal", "homing.db-shm", "token", "key", "url", "lock", "homing.toml"];

/// The wall that is to be proved.
#[derive(Debug, Clone)]
pub struct ProofRequest {
    /// The program that has `supervise` and `probe-wall`: our own.
    pub exe: PathBuf,
    /// The directory of the locks.
    pub locks: PathBuf,
    /// The wall that agents get. Without a data directory there is nothing to prove.
    pub wall: Arc<Wall>,
    /// The process that must stay out of reach: the server's, or our own.
    pub server: i32,
    /// The tries of each attack, and the starts while another probe renames.
    pub tries: u32,
    /// Nothing is started without a wall, as if several people used the server.
    pub must: bool,
    /// The wall is to be good enough for several people. One who is alone may do without what a kernel lacks.
    pub for_team: bool,
    /// Probes begin with a spare supervisor, as a server's agents do.
    pub spare: Option<SpareSupervisor>,
}

/// The verdict on the wall, and what was tried.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WallProof {
    /// Every way out was shut.
    pub proved: bool,
    /// The attempts to get out.
    pub tried: Vec<ProbeResult>,
    /// The parts of a wall that this kernel does not let us have.
    pub lacks: Vec<String>,
    /// Everything besides its own that was there for the first probe, if that was a list.
    pub listed: Vec<String>,
}

impl WallProof {
    /// The lacks and the attempts, in words.
    pub fn words(&self) -> Vec<String> {
        let words = |tried: &ProbeResult| format!("{}: {}", tried.what, tried.seen);
        self.lacks.iter().cloned().chain(self.tried.iter().map(words)).collect()
    }

    /// Counts of the tries: of the attack that was tried least, and of all that were won.
    pub fn attacks(&self) -> Attacks {
        let counts = || self.tried.iter().filter_map(|tried| tried.attack);
        Attacks {
            kinds: counts().count(),
            tries_min: counts().map(|count| count.tries).min().unwrap_or_default(),
            won: counts().map(|count| count.won).sum(),
        }
    }
}

/// All attacks of a proof together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Attacks {
    /// The number of different ones, for each user that sessions run as.
    pub kinds: usize,
    /// The tries of the one that was tried least.
    pub tries_min: u32,
    /// The tries that got through, of all of them.
    pub won: u32,
}

/// Tries the wall from inside: as the server's user, then as each user that somebody's sessions run as.
pub async fn prove_wall(proving: &ProofRequest) -> WallProof {
    let (mut tried, mut lacks, mut listed) = (Vec::new(), kernel_lacks(), Vec::new());
    let proving = &proving.with_program();
    let people = proving.wall.people.keys().cloned();
    for whose in std::iter::once(String::new()).chain(people) {
        let as_whom = proving
            .wall
            .people
            .get(&whose)
            .map(|os_user| format!("as {}: ", os_user.user))
            .unwrap_or_default();
        let ways = async {
            let FirstProbe { tried: mut ways, separation, listed: names } = one(proving, &whose).await?;
            let lists = !names.is_empty();
            lacks.extend(separation.and_then(|has| has.lacks(lists)).map(str::to_owned));
            if listed.is_empty() {
                listed = names;
            }
            ways.extend(renaming(proving, &whose).await?);
            ways.push(made_late(proving, &whose).await?);
            ways.push(left_behind(proving, &whose).await?);
            Ok::<_, ProcessError>(ways)
        };
        match ways.await {
            Ok(found) => tried.extend(
                found
                    .into_iter()
                    .map(|found| ProbeResult { what: format!("{as_whom}{}", found.what), ..found }),
            ),
            Err(why) => {
                let what = format!("{as_whom}run a probe as an agent is run");
                tried.push(ProbeResult { what, held: false, seen: why.to_string(), attack: None });
            }
        }
    }
    if proving.wall.kind == WallKind::Off {
        lacks = vec!["the wall is off, as [wall] says".to_owned()];
    }
    lacks.dedup();
    WallProof { proved: tried.iter().all(|tried| tried.held), tried, lacks, listed }
}

impl ProofRequest {
    /// The home of a probe: where there is a list, that of whoever runs the server, of which agents have their own places alone.
    fn home(&self, of: &WalledSession<'_>, work: &Path) -> PathBuf {
        let has_home = self.wall.home.parent().is_some() && self.wall.lists(self.must);
        let home = if has_home { &self.wall.home } else { work };
        PathBuf::from(self.wall.home(of, home.to_string_lossy().into_owned()))
    }

    /// The same, with the probe's own program listed.
    fn with_program(&self) -> Self {
        let mut wall = Wall::clone(&self.wall);
        wall.listed.add(super::true_name(&self.exe), ListedAccess::Read);
        Self { wall: Arc::new(wall), ..self.clone() }
    }
}

/// The parts of a wall besides namespaces that this kernel does not have, or keeps from us.
fn kernel_lacks() -> Vec<String> {
    let landlock = match landlock_rules::version() {
        None => Some("the kernel has no Landlock, or keeps it from us".to_owned()),
        Some(version) if version < landlock_rules::BOUNDS_SIGNALS => Some(format!(
            "the kernel's Landlock (version {version}) bounds neither signals nor abstract sockets; Linux 6.12 does"
        )),
        Some(_) => None,
    };
    let filters = (!syscalls::can_filter()).then(|| "the kernel has no filters for system calls".to_owned());
    landlock.into_iter().chain(filters).collect()
}

/// The first probe of each user.
struct FirstProbe {
    tried: Vec<ProbeResult>,
    /// The namespaces that it had.
    separation: Option<Separation>,
    /// Everything that was there, if there was a list.
    listed: Vec<String>,
}

async fn one(proving: &ProofRequest, whose: &str) -> Result<FirstProbe, ProcessError> {
    let no_data = || ProcessError::refused("there is no data directory");
    let data = proving.wall.data.clone().ok_or_else(no_data)?;
    fs::create_dir_all(&proving.locks).map_err(ProcessError::failed)?;
    let stage = ProofStage::set(&data, proving, whose)
        .map_err(|why| ProcessError::failed(format!("{}: {why}", data.path.display())))?;
    let ground = ground_at(&stage.work);
    let of = WalledSession { session: stage.session, whose, directory: &ground, must: proving.must };
    let home = proving.home(&of, &stage.work);
    let wall = proving.wall.around(&of, &home, &proving.locks)?;
    if let Some(os_user) = proving.wall.os_user(&of) {
        os_user.chown(&stage.targets.own).map_err(ProcessError::failed)?;
    }
    let mut unlisted = stage.beside(&proving.wall);
    unlisted.retain(|path| wall.leaves_out(path));
    unlisted.extend(stage.in_home.clone().filter(|_| wall.has_list()));
    let listed = wall.listed_words();
    let plan = TreePlan { wall, ..plan(proving, stage.session, &stage.work) };
    let tree = start(&plan).await?;
    let supervisor = Outsider::now(tree.supervisor().unwrap_or_default());
    let has_own_root = !listed.is_empty() && tree.separation() != Some(Separation::Nothing);
    if !has_own_root {
        // Without, everybody has the same places for what does not stay.
        unlisted.retain(|path| !new_root::SCRATCH.iter().any(|place| path.starts_with(place)));
    }
    let targets = ProbeTargets { supervisor, unlisted, has_own_root, ..stage.targets.clone() };
    order(&tree, &ProbeOrder::TryAll(Box::new(targets), proving.tries)).await?;
    let separation = tree.separation();
    let mut tried = hear(tree).await?;
    tried.extend((0..proving.tries).map(|_| stage.links()).reduce(ProbeResult::and));
    Ok(FirstProbe { tried, separation, listed })
}

/// Lets a probe rename a directory above something hidden, again and again and in the end for good, while others start and try
/// to read what is hidden. Between their starts somebody outside gives another directory above something hidden another name.
async fn renaming(proving: &ProofRequest, whose: &str) -> Result<Vec<ProbeResult>, ProcessError> {
    let stage = RenameStage::set(proving, whose).map_err(ProcessError::failed)?;
    let [renames, reads] = stage.sessions;
    let plan = stage.plan(proving, whose, renames)?;
    let renaming = begin(&plan, &ProbeOrder::Rename(stage.targets.clone())).await?;
    let mut found = Vec::new();
    for number in 0..proving.tries {
        stage.rename_between(number).map_err(ProcessError::failed)?;
        let tree = begin(&stage.plan(proving, whose, reads)?, &ProbeOrder::Read(stage.secrets())).await?;
        found.extend(hear(tree).await?);
    }
    renaming.end_input().await?;
    let mut tried = hear(renaming).await?;
    let after = begin(&stage.plan(proving, whose, reads)?, &ProbeOrder::Read(stage.secrets())).await?;
    found.extend(hear(after).await?);
    tried.extend(found.into_iter().reduce(ProbeResult::and));
    Ok(tried)
}

/// Makes something in a hidden place, which was not there when the server started, while a probe runs, and lets that look.
async fn made_late(proving: &ProofRequest, whose: &str) -> Result<ProbeResult, ProcessError> {
    let stage = RenameStage::set(proving, whose).map_err(ProcessError::failed)?;
    let plan = stage.plan(proving, whose, stage.sessions[0])?;
    let mut tree = begin(&plan, &ProbeOrder::ReadAsTold).await?;
    let (mut said, mut found) = (Vec::new(), Vec::<ProbeResult>::new());
    // Landlock keeps nobody from a socket whose name they know. Where that is all there is, and no list, it is said among what is
    // missing to one who is alone; nobody else is let in.
    let has_names = tree.separation() != Some(Separation::Nothing) || plan.wall.has_list();
    let listens = has_names || proving.for_team;
    for number in 0..proving.tries {
        let (secret, _listener) = stage.make_late(number, listens).map_err(ProcessError::failed)?;
        tree.input(format!("{}\n", secret.display()).as_bytes()).await?;
        while !said.contains(&b'\n') {
            match tree.next().await {
                TreeEvent::Output(bytes) => said.extend(bytes),
                TreeEvent::Errors(_) | TreeEvent::Counted(_) | TreeEvent::Listed(_) => {}
                TreeEvent::Exited(_) | TreeEvent::Lost => {
                    return Err(ProcessError::failed("the probe ended"));
                }
            }
        }
        found.push(serde_json::from_slice(&said).map_err(ProcessError::failed)?);
        said.clear();
    }
    let nothing = || ProcessError::failed("nothing was tried");
    found.into_iter().reduce(ProbeResult::and).ok_or_else(nothing)
}

/// Lets probes leave a daemon behind, and looks for it when they have ended.
async fn left_behind(proving: &ProofRequest, whose: &str) -> Result<ProbeResult, ProcessError> {
    let stage = RenameStage::set(proving, whose).map_err(ProcessError::failed)?;
    let mut open = Vec::new();
    for number in 0..proving.tries {
        let lock = stage.open.join(format!("daemon-{number}"));
        let plan = stage.plan(proving, whose, stage.sessions[0])?;
        let tree = begin(&plan, &ProbeOrder::LeaveDaemon(lock.clone())).await?;
        let started = hear(tree).await?;
        if let Some(not) = started.into_iter().find(|started| !started.held) {
            return Err(ProcessError::failed(format!("{}: {}", not.what, not.seen)));
        }
        if is_locked(&lock).map_err(ProcessError::failed)? {
            open.push(lock.display().to_string());
        }
    }
    let seen = match open.first() {
        None => "cannot: it ends with its agent".to_owned(),
        Some(lock) => format!("OPEN: {} of them still run, one has the lock on {lock}", open.len()),
    };
    let won = u32::try_from(open.len()).unwrap_or(u32::MAX);
    let attack = Some(AttackCount { tries: proving.tries, won });
    Ok(ProbeResult { what: "leave a daemon behind".to_owned(), held: open.is_empty(), seen, attack })
}

/// True if somebody holds a lock on that file. Agents may write where it lies: what they put in its place keeps nobody waiting and leads
/// nowhere.
fn is_locked(path: &Path) -> io::Result<bool> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = fs::File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("somebody has put something else in the place of a probe's lock"));
    }
    match flock(file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Ok(false),
        Err(Errno::WOULDBLOCK) => Ok(true),
        Err(why) => Err(why.into()),
    }
}

/// The probe, started as an agent is.
fn plan(proving: &ProofRequest, session: SessionId, directory: &Path) -> TreePlan {
    let argv = vec![proving.exe.to_string_lossy().into_owned(), "probe-wall".to_owned()];
    let (exe, locks) = (proving.exe.clone(), proving.locks.clone());
    let spare = proving.spare.clone();
    TreePlan { spare, ..TreePlan::new(exe, locks, TreeName::of(session), argv, ground_at(directory)) }
}

/// A probe stands where an agent would.
fn ground_at(directory: &Path) -> GroundPath {
    GroundPath::from(&*directory.to_string_lossy())
}

/// Starts it; with the spare, if there is to be one.
async fn start(plan: &TreePlan) -> Result<ProcessTree, ProcessError> {
    if let Some(spare) = &plan.spare {
        spare.fill();
        if !spare.is_ready().await {
            return Err(ProcessError::failed("no spare supervisor can be made"));
        }
    }
    ProcessTree::start(plan).await
}

/// Starts a probe and says what it has to do.
async fn begin(plan: &TreePlan, part: &ProbeOrder) -> Result<ProcessTree, ProcessError> {
    let tree = start(plan).await?;
    order(&tree, part).await?;
    Ok(tree)
}

async fn order(tree: &ProcessTree, part: &ProbeOrder) -> Result<(), ProcessError> {
    let mut line = serde_json::to_vec(part).map_err(ProcessError::failed)?;
    line.push(b'\n');
    tree.input(&line).await
}

/// Hears a probe to its end.
async fn hear(mut tree: ProcessTree) -> Result<Vec<ProbeResult>, ProcessError> {
    let mut said = (Vec::new(), Vec::new());
    let late = |_| ProcessError::failed("the probe takes too long");
    let exit = {
        let mut silent_since = Instant::now();
        let end = silent_since + PROBE_TIME_MAX;
        loop {
            let until = end.min(silent_since + PROBE_SILENCE_MAX);
            let heard = tokio::time::timeout_at(until, tree.next()).await;
            match heard.map_err(late)? {
                TreeEvent::Output(bytes) => {
                    said.0.extend(bytes);
                    silent_since = Instant::now();
                }
                TreeEvent::Errors(bytes) => said.1.extend(bytes),
                // How many processes it has is said whether it goes on or hangs.
                TreeEvent::Counted(_) | TreeEvent::Listed(_) => {}
                TreeEvent::Exited(exit) => break exit,
                TreeEvent::Lost => return Err(ProcessError::failed("the probe's supervisor is gone")),
            }
        }
    };
    if exit.code != Some(0) {
        let why = String::from_utf8_lossy(&said.1);
        return Err(ProcessError::failed(format!("the probe failed: {} {}", exit.words(), why.trim())));
    }
    let said = String::from_utf8(said.0).map_err(ProcessError::failed)?;
    // A line with nothing in it is a sign of life.
    let lines = said.lines().filter(|line| !line.is_empty());
    let tried: Result<Vec<ProbeResult>, _> = lines.map(serde_json::from_str).collect();
    match tried.map_err(ProcessError::failed)? {
        none if none.is_empty() => Err(ProcessError::failed("the probe said nothing")),
        tried => Ok(tried),
    }
}

/// Something hidden in a directory that the probe may rename, and one to exchange that with; the same in one that only
/// somebody outside renames; and something hidden that was not there. Gone when dropped.
struct RenameStage {
    sessions: [SessionId; 2],
    /// The wall of all agents, with this hidden besides.
    wall: Wall,
    place: PathBuf,
    open: PathBuf,
    targets: RenameTargets,
    /// The two names of the directory that is renamed between starts.
    between: [PathBuf; 2],
    late: PathBuf,
    turns: Vec<PathBuf>,
}

impl RenameStage {
    fn set(proving: &ProofRequest, whose: &str) -> io::Result<Self> {
        let name = Uuid::new_v4().simple().to_string();
        let sessions = [Uuid::new_v4(), Uuid::new_v4()].map(|id| SessionId::from_bits(id.as_u128()));
        let place = std::env::temp_dir().canonicalize()?.join(format!("homing-probe-{name}"));
        let [first, second, aside, open] = ["first", "second", "aside", "open"].map(|name| place.join(name));
        let turns = proving.wall.data.iter().flat_map(|data| sessions.map(|session| data.turns(session)));
        let mut stage = Self {
            sessions,
            wall: Wall::clone(&proving.wall),
            turns: turns.collect(),
            open,
            targets: RenameTargets { first, second, aside },
            between: ["here", "there"].map(|name| place.join(name)),
            late: place.join("late").join(HIDDEN),
            place,
        };
        let (RenameTargets { first, second, .. }, [between, _]) = (&stage.targets, &stage.between);
        let [in_first, in_second, in_between] = [first, second, between].map(|above| above.join(HIDDEN));
        let directories =
            [&stage.place, &stage.open, first, second, between, &in_first, &in_second, &in_between];
        for directory in directories {
            fs::create_dir(directory)?;
            fs::set_permissions(directory, fs::Permissions::from_mode(0o755))?;
            if let Some(os_user) = proving.wall.people.get(whose) {
                os_user.chown(directory)?;
            }
        }
        for hidden in [in_first, in_between] {
            plant(&hidden.join("secret"))?;
            stage.wall.hide.push(HiddenPath::of(hidden));
        }
        stage.wall.hide.push(HiddenPath::directory(&stage.late));
        // In a list there would be nothing to be renamed.
        stage.wall.listed.add(&stage.place, ListedAccess::Write);
        // Nothing but the wall keeps anybody out.
        for directory in [stage.late.parent(), Some(stage.late.as_path())].into_iter().flatten() {
            fs::set_permissions(directory, fs::Permissions::from_mode(0o755))?;
        }
        Ok(stage)
    }

    /// Wherever the secrets may be by now.
    fn secrets(&self) -> Vec<PathBuf> {
        let (RenameTargets { first, second, aside }, [here, there]) = (&self.targets, &self.between);
        [first, second, aside, here, there].map(|above| above.join(HIDDEN).join("secret")).to_vec()
    }

    /// Gives the directory its other name.
    fn rename_between(&self, number: u32) -> io::Result<()> {
        let [here, there] = &self.between;
        if number.is_multiple_of(2) { fs::rename(here, there) } else { fs::rename(there, here) }
    }

    /// Makes something in the place that was not there: a file, and perhaps somebody who listens beside it.
    fn make_late(&self, number: u32, listens: bool) -> io::Result<(PathBuf, Option<UnixListener>)> {
        let above = self.late.join(number.to_string());
        fs::create_dir_all(&above)?;
        fs::set_permissions(&above, fs::Permissions::from_mode(0o755))?;
        plant(&above.join("secret"))?;
        if !listens {
            return Ok((above.join("secret"), None));
        }
        let socket = above.join(LATE_SOCKET);
        let listener = UnixListener::bind(&socket)?;
        fs::set_permissions(&socket, fs::Permissions::from_mode(0o777))?;
        Ok((above.join("secret"), Some(listener)))
    }

    /// A probe in that session, behind this wall.
    fn plan(
        &self,
        proving: &ProofRequest,
        whose: &str,
        session: SessionId,
    ) -> Result<TreePlan, ProcessError> {
        let ground = ground_at(&self.open);
        let of = WalledSession { session, whose, directory: &ground, must: proving.must };
        let wall = self.wall.around(&of, &self.open, &proving.locks)?;
        Ok(TreePlan { wall, ..plan(proving, session, &self.open) })
    }
}

/// A file that everybody may read who gets there.
fn plant(path: &Path) -> io::Result<()> {
    fs::write(path, "found\n")?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o644))
}

impl Drop for RenameStage {
    fn drop(&mut self) {
        for path in self.turns.iter().chain([&self.place]) {
            let _ = fs::remove_dir_all(path);
        }
        // Only if nobody else has anything in it.
        let _ = self.turns.first().and_then(|turns| turns.parent()).map(fs::remove_dir);
    }
}

/// The things around the probe. Gone when dropped.
struct ProofStage {
    session: SessionId,
    work: PathBuf,
    targets: ProbeTargets,
    /// A file in the home of whoever runs the server, where we may make one and it is nobody's who has all of it.
    in_home: Option<PathBuf>,
    _socket: UnixListener,
    litter: Vec<PathBuf>,
}

impl ProofStage {
    fn set(data: &DataDirectory, proving: &ProofRequest, whose: &str) -> io::Result<Self> {
        let name = Uuid::new_v4().simple().to_string();
        let fresh = || SessionId::from_bits(Uuid::new_v4().as_u128());
        let (session, other) = (fresh(), fresh());
        let other_home = data.path.join("agents").join(other.to_string());
        let (work, other) = (data.work(session), data.work(other));
        let (planted, elsewhere) = (
            data.path.join(format!("probe-{name}")),
            std::env::temp_dir().join(format!("homing-probe-{name}")),
        );
        let litter = vec![
            work.clone(),
            other.clone(),
            other_home.clone(),
            planted.clone(),
            elsewhere.clone(),
            data.turns(session),
        ];
        let socket = UnixListener::bind_addr(&SocketAddr::from_abstract_name(format!("homing-{name}"))?)?;
        let targets = ProbeTargets {
            data: data.path.clone(),
            private: Vec::new(),
            hidden: hidden_besides(&proving.wall, whose),
            neighbours: neighbours(&data.path),
            other: other.join("other"),
            other_home: other_home.join("home"),
            own: work.join("own"),
            elsewhere: elsewhere.join("elsewhere"),
            unlisted: Vec::new(),
            has_own_root: false,
            server: Outsider::now(proving.server),
            supervisor: Outsider::now(0),
            socket: format!("homing-{name}"),
        };
        // From here on whatever was made is taken away again, also when the rest fails.
        let mut stage = Self { session, work, targets, in_home: None, _socket: socket, litter };
        for directory in [&stage.work, &other, &other_home] {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        }
        fs::create_dir(&elsewhere)?;
        fs::set_permissions(&elsewhere, fs::Permissions::from_mode(0o755))?;
        for (file, mode) in [
            (&planted, 0o600),
            (&stage.targets.own, 0o600),
            (&stage.targets.other, 0o600),
            (&stage.targets.other_home, 0o600),
            (&stage.targets.elsewhere, 0o644),
        ] {
            let file = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(file)?;
            file.set_permissions(fs::Permissions::from_mode(mode))?;
            io::Write::write_all(&mut &file, b"found\n")?;
        }
        stage.plant_in_home(&proving.wall, &format!(".homing-probe-{name}"));
        std::os::unix::fs::symlink(&data.path, stage.work.join("link"))?;
        let private = PRIVATE.iter().map(|name| data.path.join(name));
        // What we cannot read ourselves would prove nothing.
        let has_words = |path: &PathBuf| {
            path.metadata().is_ok_and(|found| found.len() > 0) && fs::File::open(path).is_ok()
        };
        stage.targets.private = std::iter::once(planted).chain(private).filter(has_words).collect();
        Ok(stage)
    }

    /// Puts a file into the home of whoever runs the server, unless somebody has said that all of that is listed.
    fn plant_in_home(&mut self, wall: &Wall, name: &str) {
        let home = super::true_name(&wall.home);
        if home.parent().is_none() || wall.lists_for_all(&home) {
            return;
        }
        let path = home.join(name);
        self.litter.push(path.clone());
        self.in_home = plant(&path).is_ok().then_some(path);
    }

    /// Things outside that a list may leave out: what was put elsewhere, what is beside the data directory, everything in `/`, the
    /// homes that are here, and everything in that of whoever runs the server.
    fn beside(&self, wall: &Wall) -> Vec<PathBuf> {
        let elsewhere = [self.targets.elsewhere.clone(), self.targets.elsewhere.with_file_name("")];
        let around = [Path::new("/"), Path::new("/home")].into_iter().chain(self.targets.data.parent());
        let around = around.chain(Some(wall.home.as_path()).filter(|home| home.parent().is_some()));
        let entries = around.flat_map(|above| fs::read_dir(above).into_iter().flatten().flatten());
        let homes = wall.people.values().map(|os_user| os_user.home.clone());
        let all = elsewhere.into_iter().chain(entries.map(|entry| entry.path())).chain(homes);
        all.filter(|path| path.symlink_metadata().is_ok()).collect()
    }

    /// A second name of a private file, made when there was no wall, would lead past it.
    fn links(&self) -> ProbeResult {
        let has_two = |path: &&PathBuf| path.metadata().is_ok_and(|found| found.nlink() > 1);
        let open: Vec<String> =
            self.targets.private.iter().filter(has_two).map(|path| path.display().to_string()).collect();
        let seen = match open.is_empty() {
            true => "none".to_owned(),
            false => format!(
                "OPEN: {} has another name: find it with `find / -samefile`, and remove it",
                open.join(", ")
            ),
        };
        let (what, held) = ("use second names of what is private".to_owned(), open.is_empty());
        let attack = Some(AttackCount { tries: 1, won: u32::from(!held) });
        ProbeResult { what, held, seen, attack }
    }
}

impl Drop for ProofStage {
    fn drop(&mut self) {
        for path in &self.litter {
            let _ = fs::remove_file(path).or_else(|_| fs::remove_dir_all(path));
        }
        // Only if nobody else has anything in them.
        for name in ["turns", "agents"] {
            let _ = fs::remove_dir(Path::new(&self.targets.data).join(name));
        }
    }
}

/// The things in the data directory that are one session's or one user's alone, as far as there are any yet.
fn neighbours(data: &Path) -> Vec<PathBuf> {
    let places = SEPARATE.iter().map(|place| data.join(place));
    let some = |place: PathBuf| fs::read_dir(place).into_iter().flatten().flatten().take(NEIGHBOURS_MAX);
    places.flat_map(some).map(|entry| entry.path()).collect()
}

/// Everything but the data directory that is hidden from that person's agents: as configured, and the homes of others.
fn hidden_besides(wall: &Wall, whose: &str) -> Vec<PathBuf> {
    let configured = wall.hide.iter().map(HiddenPath::name);
    let own = wall.people.get(whose).map(|os_user| os_user.home.clone());
    let others =
        wall.people.values().map(|os_user| os_user.home.clone()).filter(|home| Some(home) != own.as_ref());
    configured.chain(others).filter(|path| path.exists()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_or_a_link_in_the_place_of_a_lock_keeps_nobody_waiting() {
        let place = tempfile::tempdir().unwrap();
        let [lock, pipe, link] = ["lock", "pipe", "link"].map(|name| place.path().join(name));
        let file = fs::File::create(&lock).unwrap();
        assert!(!is_locked(&lock).unwrap());
        flock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
        assert!(is_locked(&lock).unwrap());
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        std::os::unix::fs::symlink(&lock, &link).unwrap();
        for other in [link, pipe] {
            let (say, heard) = std::sync::mpsc::channel();
            std::thread::spawn(move || say.send(is_locked(&other).is_err()));
            assert_eq!(heard.recv_timeout(PROBE_SILENCE_MAX), Ok(true));
        }
    }
}
