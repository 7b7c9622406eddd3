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

use kernel::{SessionId, TreeName};
use uuid::Uuid;

use super::probe::{ProbeOrder, ProbeResult, ProbeTargets, RenameTargets};
use super::{DataDirectory, HiddenPath, Wall, WalledSession};
use crate::error::ProcessError;
use crate::tree::{ProcessTree, TreeEvent, TreePlan};

/// The longest that one probe may take.
const PROBE_WAIT: Duration = Duration::from_secs(20);
/// The starts while another probe renames. Tests have more.
const STARTS_MEANWHILE: usize = 5;
/// The name of the directory that is hidden from a probe that renames.
const HIDDEN: &str = "hidden";
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
}

/// The verdict on the wall, and what was tried.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WallProof {
    /// Every way out was shut.
    pub proved: bool,
    /// The attempts to get out.
    pub tried: Vec<ProbeResult>,
}

impl WallProof {
    /// The attempts, in words.
    pub fn words(&self) -> Vec<String> {
        let words = |tried: &ProbeResult| format!("{}: {}", tried.what, tried.seen);
        self.tried.iter().map(words).collect()
    }
}

/// Tries the wall from inside: as the server's user, then as each user that somebody's sessions run as.
pub async fn prove_wall(proving: &ProofRequest) -> WallProof {
    let mut tried = Vec::new();
    let people = proving.wall.people.keys().cloned();
    for whose in std::iter::once(String::new()).chain(people) {
        let as_whom = proving
            .wall
            .people
            .get(&whose)
            .map(|os_user| format!("as {}: ", os_user.user))
            .unwrap_or_default();
        let ways = async {
            let mut ways = one(proving, &whose).await?;
            ways.extend(renaming(proving, &whose).await?);
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
                tried.push(ProbeResult { what, held: false, seen: why.to_string() });
            }
        }
    }
    WallProof { proved: tried.iter().all(|tried| tried.held), tried }
}

async fn one(proving: &ProofRequest, whose: &str) -> Result<Vec<ProbeResult>, ProcessError> {
    let no_data = || ProcessError::refused("there is no data directory");
    let data = proving.wall.data.clone().ok_or_else(no_data)?;
    fs::create_dir_all(&proving.locks).map_err(ProcessError::failed)?;
    let stage = ProofStage::set(&data, proving)
        .map_err(|why| ProcessError::failed(format!("{}: {why}", data.path.display())))?;
    let of = WalledSession { session: stage.session, whose, directory: &stage.work, must: false };
    let wall = proving.wall.around(&of, &stage.work, &proving.locks)?;
    if let Some(os_user) = proving.wall.os_user(&of) {
        os_user.chown(&stage.targets.own).map_err(ProcessError::failed)?;
    }
    let plan = TreePlan { wall, ..plan(proving, stage.session, &stage.work) };
    let tree = begin(&plan, &ProbeOrder::TryAll(stage.targets.clone())).await?;
    let mut tried = vec![stage.links()];
    tried.extend(hear(tree).await?);
    Ok(tried)
}

/// Lets a probe rename a directory above something hidden, again and again and in the end for good, while others start and try
/// to read what is hidden.
async fn renaming(proving: &ProofRequest, whose: &str) -> Result<Vec<ProbeResult>, ProcessError> {
    let stage = RenameStage::set(proving, whose).map_err(ProcessError::failed)?;
    let wall = &stage.wall;
    let plan_of = |session| {
        let of = WalledSession { session, whose, directory: &stage.open, must: false };
        let wall = wall.around(&of, &stage.open, &proving.locks)?;
        Ok::<_, ProcessError>(TreePlan { wall, ..plan(proving, session, &stage.open) })
    };
    let [renames, reads] = stage.sessions;
    let renaming = begin(&plan_of(renames)?, &ProbeOrder::Rename(stage.targets.clone())).await?;
    let mut found = Vec::new();
    for _ in 0..STARTS_MEANWHILE {
        let tree = begin(&plan_of(reads)?, &ProbeOrder::Read(stage.secrets())).await?;
        found.extend(hear(tree).await?);
    }
    renaming.end_input().await?;
    let mut tried = hear(renaming).await?;
    let after = begin(&plan_of(reads)?, &ProbeOrder::Read(stage.secrets())).await?;
    found.extend(hear(after).await?);
    // One that got it says more than all that did not.
    found.sort_by_key(|found| found.held);
    tried.extend(found.into_iter().next());
    Ok(tried)
}

/// The probe, started as an agent is.
fn plan(proving: &ProofRequest, session: SessionId, directory: &Path) -> TreePlan {
    let argv = vec![proving.exe.to_string_lossy().into_owned(), "probe-wall".to_owned()];
    let (exe, locks) = (proving.exe.clone(), proving.locks.clone());
    TreePlan::new(exe, locks, TreeName::of(session), argv, directory.to_path_buf())
}

/// Starts a probe and says what it has to do.
async fn begin(plan: &TreePlan, order: &ProbeOrder) -> Result<ProcessTree, ProcessError> {
    let tree = ProcessTree::start(plan).await?;
    let mut line = serde_json::to_vec(order).map_err(ProcessError::failed)?;
    line.push(b'\n');
    tree.input(&line).await?;
    Ok(tree)
}

/// Hears a probe to its end.
async fn hear(mut tree: ProcessTree) -> Result<Vec<ProbeResult>, ProcessError> {
    let mut said = (Vec::new(), Vec::new());
    let hear = async {
        loop {
            match tree.next().await {
                TreeEvent::Output(bytes) => said.0.extend(bytes),
                TreeEvent::Errors(bytes) => said.1.extend(bytes),
                TreeEvent::Counted(_) => {}
                TreeEvent::Exited(exit) => return Ok(exit),
                TreeEvent::Lost => return Err(ProcessError::failed("the probe's supervisor is gone")),
            }
        }
    };
    let late = |_| ProcessError::failed("the probe takes too long");
    let exit = tokio::time::timeout(PROBE_WAIT, hear).await.map_err(late)??;
    if exit.code != Some(0) {
        let why = String::from_utf8_lossy(&said.1);
        return Err(ProcessError::failed(format!("the probe failed: {} {}", exit.words(), why.trim())));
    }
    let said = String::from_utf8(said.0).map_err(ProcessError::failed)?;
    let tried: Result<Vec<ProbeResult>, _> = said.lines().map(serde_json::from_str).collect();
    match tried.map_err(ProcessError::failed)? {
        none if none.is_empty() => Err(ProcessError::failed("the probe said nothing")),
        tried => Ok(tried),
    }
}

/// Something hidden in a directory that the probe may rename, and one to exchange that with. Gone when dropped.
struct RenameStage {
    sessions: [SessionId; 2],
    /// The wall of all agents, with this hidden besides.
    wall: Wall,
    place: PathBuf,
    open: PathBuf,
    targets: RenameTargets,
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
            place,
        };
        let RenameTargets { first, second, .. } = &stage.targets;
        let directories =
            [&stage.place, &stage.open, first, second, &first.join(HIDDEN), &second.join(HIDDEN)];
        for directory in directories {
            fs::create_dir(directory)?;
            fs::set_permissions(directory, fs::Permissions::from_mode(0o755))?;
            if let Some(os_user) = proving.wall.people.get(whose) {
                os_user.chown(directory)?;
            }
        }
        let secret = first.join(HIDDEN).join("secret");
        fs::write(&secret, "found\n")?;
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o644))?;
        stage.wall.hide.push(HiddenPath::of(first.join(HIDDEN)));
        Ok(stage)
    }

    /// Wherever the secret may be by now.
    fn secrets(&self) -> Vec<PathBuf> {
        let RenameTargets { first, second, aside } = &self.targets;
        [first, second, aside].map(|above| above.join(HIDDEN).join("secret")).to_vec()
    }
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
    _socket: UnixListener,
    litter: Vec<PathBuf>,
}

impl ProofStage {
    fn set(data: &DataDirectory, proving: &ProofRequest) -> io::Result<Self> {
        let name = Uuid::new_v4().simple().to_string();
        let fresh = || SessionId::from_bits(Uuid::new_v4().as_u128());
        let (session, other) = (fresh(), fresh());
        let (work, other) = (data.work(session), data.work(other));
        let (planted, elsewhere) = (
            data.path.join(format!("probe-{name}")),
            std::env::temp_dir().join(format!("homing-probe-{name}")),
        );
        let litter =
            vec![work.clone(), other.clone(), planted.clone(), elsewhere.clone(), data.turns(session)];
        let socket = UnixListener::bind_addr(&SocketAddr::from_abstract_name(format!("homing-{name}"))?)?;
        let targets = ProbeTargets {
            data: data.path.clone(),
            private: Vec::new(),
            hidden: proving.wall.hide.iter().map(HiddenPath::name).filter(|path| path.exists()).collect(),
            other: other.join("other"),
            own: work.join("own"),
            elsewhere: elsewhere.join("elsewhere"),
            server: proving.server,
            socket: format!("homing-{name}"),
        };
        // From here on whatever was made is taken away again, also when the rest fails.
        let mut stage = Self { session, work, targets, _socket: socket, litter };
        for directory in [&stage.work, &other] {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        }
        fs::create_dir(&elsewhere)?;
        fs::set_permissions(&elsewhere, fs::Permissions::from_mode(0o755))?;
        for (file, mode) in [
            (&planted, 0o600),
            (&stage.targets.own, 0o600),
            (&stage.targets.other, 0o600),
            (&stage.targets.elsewhere, 0o644),
        ] {
            let file = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(file)?;
            file.set_permissions(fs::Permissions::from_mode(mode))?;
            io::Write::write_all(&mut &file, b"found\n")?;
        }
        std::os::unix::fs::symlink(&data.path, stage.work.join("link"))?;
        let private = PRIVATE.iter().map(|name| data.path.join(name));
        // What we cannot read ourselves would prove nothing.
        let has_words = |path: &PathBuf| {
            path.metadata().is_ok_and(|found| found.len() > 0) && fs::File::open(path).is_ok()
        };
        stage.targets.private = std::iter::once(planted).chain(private).filter(has_words).collect();
        Ok(stage)
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
        ProbeResult { what: "use second names of what is private".to_owned(), held: open.is_empty(), seen }
    }
}

impl Drop for ProofStage {
    fn drop(&mut self) {
        for path in &self.litter {
            let _ = fs::remove_file(path).or_else(|_| fs::remove_dir_all(path));
        }
        let _ = fs::remove_dir(Path::new(&self.targets.data).join("turns"));
    }
}
