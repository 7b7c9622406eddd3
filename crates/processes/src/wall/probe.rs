//! An agent that does nothing but try to get past the wall: `homing probe-wall`. It reads what to try for from its input
//! and prints a line for each way, whether that way was shut.
//!
//! It is started by `prove` exactly as an agent is. Each way is tried for real; a few leave the process changed, so they
//! come last. It has one thread and no runtime, because a namespace of users can only be made so.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{CWD, FlockOperation, RenameFlags, flock};
use rustix::mount::UnmountFlags;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, Signal};
use rustix::thread::{CapabilitySet, UnshareFlags};
use serde::{Deserialize, Serialize};

use crate::reaper::Process;

/// Powers with which a process leaves a wall: by mounts, tracing, disks, files by number, devices, modules.
const POWERS: CapabilitySet = CapabilitySet::SYS_ADMIN
    .union(CapabilitySet::SYS_PTRACE)
    .union(CapabilitySet::SYS_RAWIO)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::MKNOD)
    .union(CapabilitySet::SYS_MODULE)
    .union(CapabilitySet::BPF);
/// Sockets of programs that start others for whoever asks, outside of the wall. `UID` is the asker's number.
const STARTERS: [&str; 8] = [
    "/run/docker.sock",
    "/var/run/docker.sock",
    "/run/containerd/containerd.sock",
    "/run/podman/podman.sock",
    "/run/user/UID/bus",
    "/run/user/UID/systemd/private",
    "/run/user/UID/podman/podman.sock",
    "/tmp/tmux-UID/default",
];
/// The reads of each path by a probe that does nothing else: some milliseconds.
const READS: usize = 200;
/// The file that a probe writes in a directory for what does not stay.
const SCRATCH_NAME: &str = "homing-probe-scratch";
/// Those that listen to root only.
const ROOT_STARTERS: [&str; 2] = ["/run/systemd/private", "/run/dbus/system_bus_socket"];

/// The part that a probe has to play.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum ProbeOrder {
    /// Tries every way there is, so many times.
    TryAll(Box<ProbeTargets>, u32),
    /// Renames, until its input ends.
    Rename(RenameTargets),
    /// Reads these, again and again.
    Read(Vec<PathBuf>),
    /// Reads each path that comes by its input, and says at once what it found.
    ReadAsTold,
    /// Leaves a program behind that has left everything else, and holds a lock on that file.
    LeaveDaemon(PathBuf),
    /// Is that program.
    Daemon(PathBuf),
}

/// The directories of a probe that renames: two are exchanged in a loop, and in the end the first gets another name.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RenameTargets {
    pub(super) first: PathBuf,
    pub(super) second: PathBuf,
    pub(super) aside: PathBuf,
}

/// The targets of the probe.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ProbeTargets {
    pub(super) data: PathBuf,
    /// Files in the data directory that are nobody's but the server's.
    pub(super) private: Vec<PathBuf>,
    /// Everything else that is hidden.
    pub(super) hidden: Vec<PathBuf>,
    /// The things in the data directory that are other sessions' and were there before.
    pub(super) neighbours: Vec<PathBuf>,
    /// A file of another session, and one in its agent's home.
    pub(super) other: PathBuf,
    pub(super) other_home: PathBuf,
    /// A file of its own, which it has to be able to read.
    pub(super) own: PathBuf,
    /// A file elsewhere, which it has to be able to read unless there is a list.
    pub(super) elsewhere: PathBuf,
    /// Where there is a list: what is there outside, and listed nowhere.
    pub(super) unlisted: Vec<PathBuf>,
    /// True if it cannot even be asked whether there is something of these names.
    pub(super) has_own_root: bool,
    /// The processes that must stay out of reach: the server's, and the supervisor's.
    pub(super) server: Outsider,
    pub(super) supervisor: Outsider,
    /// The name of an abstract socket of the server's.
    pub(super) socket: String,
}

/// A process outside of the wall.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Outsider {
    pid: i32,
    started: u64,
}

impl Outsider {
    /// The one that has this number for whoever asks.
    pub(super) fn now(pid: i32) -> Self {
        Self { pid, started: Process::now(pid).map_or(0, |process| process.started) }
    }

    /// Its number, unless that is somebody else's here, as it may be in a namespace of processes: a server can be number 1.
    fn number(self) -> Result<i32, String> {
        match Process::now(self.pid) {
            Some(found) if self.started != 0 && found.started != self.started => {
                Err("it has no number here".to_owned())
            }
            Some(_) | None => Ok(self.pid),
        }
    }

    fn tried(self, way: fn(i32) -> ProbeOutcome) -> ProbeOutcome {
        self.number().and_then(way)
    }
}

/// One way that was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeResult {
    /// The attempts to get out.
    pub what: String,
    /// True if it came out as it should.
    pub held: bool,
    /// The finding.
    pub seen: String,
    /// The count of its tries, if it is an attack. A need of the agent is none.
    pub attack: Option<AttackCount>,
}

/// A count of tries of something that must not work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttackCount {
    /// The tries, in each of which every way was gone that there is to the same end.
    pub tries: u32,
    /// Those of them that got through.
    pub won: u32,
}

impl AttackCount {
    fn and(self, more: Self) -> Self {
        Self { tries: self.tries.saturating_add(more.tries), won: self.won.saturating_add(more.won) }
    }
}

impl ProbeResult {
    /// The same, tried more often. A try that got through says more than all that did not.
    pub(super) fn and(self, more: Self) -> Self {
        let attack = match (self.attack, more.attack) {
            (Some(count), Some(others)) => Some(count.and(others)),
            (one, other) => one.or(other),
        };
        let worse = if self.held && !more.held { more } else { self };
        Self { attack, ..worse }
    }
}

/// `homing probe-wall`. Call it before anything that starts a thread.
pub fn probe_wall() -> ExitCode {
    let mut line = String::new();
    let order =
        io::stdin().read_line(&mut line).ok().and_then(|_| serde_json::from_str::<ProbeOrder>(&line).ok());
    let Some(order) = order else {
        eprintln!("this is started by `homing doctor`; it tries the wall around agents from inside");
        return ExitCode::FAILURE;
    };
    let tried = match order {
        ProbeOrder::TryAll(targets, tries) => targets.try_often(tries),
        ProbeOrder::Rename(targets) => vec![targets.rename_all()],
        ProbeOrder::Read(paths) => vec![read_often(&paths)],
        ProbeOrder::ReadAsTold => return read_as_told(),
        ProbeOrder::LeaveDaemon(lock) => vec![needs("start programs", [leave_daemon(&lock)])],
        ProbeOrder::Daemon(lock) => return be_daemon(&lock),
    };
    for tried in tried {
        println!("{}", serde_json::to_string(&tried).unwrap_or_default());
    }
    ExitCode::SUCCESS
}

/// A line with nothing in it, for whoever waits: everything was tried once more.
fn say_alive() {
    println!();
}

/// The outcome of one attempt: what was got, or why nothing was.
type ProbeOutcome = Result<String, String>;

impl ProbeTargets {
    /// Each way so many times; the last one changes us for good, so it comes last.
    fn try_often(&self, tries: u32) -> Vec<ProbeResult> {
        let mut all = self.try_all();
        for _ in 1..tries {
            say_alive();
            all = all.into_iter().zip(self.try_all()).map(|(known, found)| known.and(found)).collect();
        }
        say_alive();
        let uncovered = self.uncover(tries).into_iter().map(|ways| shut("take the cover away", ways));
        all.extend(uncovered.reduce(ProbeResult::and));
        all
    }

    fn try_all(&self) -> Vec<ProbeResult> {
        let mut all = match self.unlisted.is_empty() {
            true => vec![needs("read a file elsewhere", [read(&self.elsewhere)])],
            false => self.try_list(),
        };
        all.extend([
            needs("read its own files", [read(&self.own)]),
            needs("write beside its own files", [write(&self.own.with_extension("written"))]),
            shut("read what is the server's alone", self.private.iter().map(|path| read(path))),
            shut("list the data directory", [self.list_data()]),
            shut(
                "read another session's files",
                [read(&self.other), list(self.other.parent().unwrap_or(&self.data))],
            ),
            shut(
                "read another session's home",
                [read(&self.other_home), list(self.other_home.parent().unwrap_or(&self.data))],
            ),
            shut("read what is hidden besides", self.hidden.iter().map(|path| read_or_list(path))),
            shut("read what other sessions left here", self.neighbours.iter().map(|path| read_or_list(path))),
            shut(
                "write into the data directory",
                [write(&self.data.join("written")), write(&self.data.join("attempts/written"))],
            ),
            shut("move the data directory away", [moved(&self.data)]),
            shut("rename a directory above what is hidden", self.rename_above()),
            shut("get there by links and by /proc", self.roundabout()),
            shut("look into the server", look_into(self.server, &self.data)),
            shut("look into the supervisor", look_into(self.supervisor, &self.data)),
            shut("trace the server or the supervisor", self.outsiders(&[trace, take_file])),
            shut("signal the server or the supervisor", self.outsiders(&[signal])),
            shut("end the server by its control group", [self.server.tried(group_of)]),
            shut("change the limits of the server or the supervisor", self.outsiders(&[limit, slow_down])),
            shut("choose processors for the server or the supervisor", self.outsiders(&[bind, reschedule])),
            shut("reach an abstract socket of the server's", [self.abstract_socket()]),
            shut("reach programs that start others", starters().iter().map(|path| connect(path))),
            shut("have powers that lead out", [powers()]),
            shut("read a disk", disks()),
        ]);
        all
    }

    /// The ways to what is listed nowhere.
    fn try_list(&self) -> Vec<ProbeResult> {
        let own = self.own.parent().unwrap_or(Path::new("/"));
        let see = |path: &Path| if self.has_own_root { seen(path) } else { read_or_list(path) };
        let links = self.unlisted.iter().flat_map(|path| {
            let bare = path.strip_prefix("/").unwrap_or(path);
            let link = own.join("unlisted");
            let by_link = std::os::unix::fs::symlink(path, &link).map_err(words).and_then(|()| {
                let got = read_or_list(&link.join("."));
                let _ = fs::remove_file(&link);
                got
            });
            let up = Path::new("/proc/self/cwd").join("../".repeat(own.components().count()));
            let roots = ["/proc/self/root", "/proc/1/root"].map(|root| see(&Path::new(root).join(bare)));
            roots.into_iter().chain([see(&up.join(bare)), by_link])
        });
        // With Landlock alone nothing can be added to a directory above something hidden.
        let scratch = self.has_own_root.then(|| write(&Path::new("/tmp").join(SCRATCH_NAME)));
        vec![
            needs("read what belongs to the system", [read(Path::new("/etc/passwd"))]),
            needs("write where it does not stay", scratch),
            shut("see what is listed nowhere", self.unlisted.iter().map(|path| see(path))),
            shut("get to what is listed nowhere by links and by /proc", links),
            shut("learn from the list of mounts what is not there", [self.mount_of_elsewhere()]),
            shut(
                "write into the system",
                [write(Path::new("/usr/homing-probe")), write(Path::new("/homing-probe"))],
            ),
        ]
    }

    fn mount_of_elsewhere(&self) -> ProbeOutcome {
        let mounts = fs::read_to_string("/proc/self/mountinfo").map_err(words)?;
        let outside = self.elsewhere.parent().unwrap_or(&self.elsewhere).to_string_lossy().into_owned();
        let is_named = |line: &&str| line.contains(&outside);
        mounts.lines().find(is_named).map(str::to_owned).ok_or_else(|| "it is not named".to_owned())
    }

    /// Each way with each process outside.
    fn outsiders(&self, ways: &[fn(i32) -> ProbeOutcome]) -> Vec<ProbeOutcome> {
        let each = |outsider: Outsider| ways.iter().map(move |way| outsider.tried(*way));
        [self.server, self.supervisor].into_iter().flat_map(each).collect()
    }

    /// Each directory above something hidden.
    fn rename_above(&self) -> Vec<ProbeOutcome> {
        let hidden = self.hidden.iter().chain([&self.data]);
        let above: BTreeSet<&Path> = hidden.flat_map(|path| path.ancestors().skip(1)).collect();
        let has_name = |path: &&Path| path.file_name().is_some();
        above.into_iter().filter(has_name).map(renamed).collect()
    }

    fn list_data(&self) -> ProbeOutcome {
        let names = names_in(&self.data)?;
        let private = self.private.iter().filter_map(|path| path.file_name()?.to_str());
        let seen: Vec<&str> = private.filter(|name| names.iter().any(|there| there == name)).collect();
        if seen.is_empty() { Err("only what is its own".to_owned()) } else { Ok(seen.join(" ")) }
    }

    /// To the same files by other names. A link that was made before, one that is made now, and through our own process.
    fn roundabout(&self) -> Vec<ProbeOutcome> {
        let own = self.own.parent().unwrap_or(Path::new("/"));
        let mut all = Vec::new();
        for path in &self.private {
            all.push(read(&Path::new("/proc/self/root").join(path.strip_prefix("/").unwrap_or(path))));
            let name = path.file_name().unwrap_or_default();
            all.push(read(&Path::new("/proc/self/cwd/../..").join(name)));
            all.push(read(&own.join("link").join(name)));
            let hard = own.join("hard");
            all.push(fs::hard_link(path, &hard).map_err(words).and_then(|()| read(&hard)));
        }
        all
    }

    fn abstract_socket(&self) -> ProbeOutcome {
        let address = SocketAddr::from_abstract_name(self.socket.as_bytes()).map_err(words)?;
        UnixStream::connect_addr(&address).map(|_| format!("@{}", self.socket)).map_err(words)
    }

    /// Directly, and from a namespace of our own, in which we may do anything: for each try both.
    fn uncover(&self, tries: u32) -> Vec<Vec<ProbeOutcome>> {
        let take =
            || rustix::mount::unmount(&self.data, UnmountFlags::DETACH).map_err(|why| words(why.into()));
        let look = || take().and_then(|()| self.first_private());
        let mut all: Vec<Vec<ProbeOutcome>> = (0..tries.max(1)).map(|_| vec![look()]).collect();
        // SAFETY: there is no other thread with which descriptors could be shared.
        #[allow(unsafe_code)]
        let alone = unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER | UnshareFlags::NEWNS) };
        if alone.is_ok() {
            let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
            let _ = fs::write("/proc/self/setgroups", "deny");
            let _ = fs::write("/proc/self/uid_map", format!("0 {uid} 1"));
            let _ = fs::write("/proc/self/gid_map", format!("0 {gid} 1"));
        }
        for ways in &mut all {
            say_alive();
            ways.extend([look(), self.first_private()]);
            if self.has_own_root {
                // What lies below the root, if anything does.
                let below =
                    rustix::mount::unmount("/", UnmountFlags::DETACH).map_err(|why| words(why.into()));
                ways.extend(self.unlisted.iter().map(|path| below.clone().and_then(|()| seen(path))));
                ways.push(self.first_private());
            }
        }
        all
    }

    fn first_private(&self) -> ProbeOutcome {
        self.private
            .iter()
            .map(|path| read(path))
            .find(Result::is_ok)
            .unwrap_or_else(|| Err("still hidden".to_owned()))
    }
}

impl RenameTargets {
    fn rename_all(&self) -> ProbeResult {
        let (mut tries, mut exchanged, mut why) = (1_u32, 0_u32, None);
        while !input_has_ended() {
            tries = tries.saturating_add(1);
            let flags = RenameFlags::EXCHANGE;
            match rustix::fs::renameat_with(CWD, &self.first, CWD, &self.second, flags) {
                Ok(()) => exchanged = exchanged.saturating_add(1),
                Err(errno) => why = Some(words(errno.into())),
            }
        }
        let moved = fs::rename(&self.first, &self.aside).map(|()| "it has another name".to_owned());
        let won = exchanged.saturating_add(u32::from(moved.is_ok()));
        let exchanged = match (exchanged, why) {
            (0, why) => Err(why.unwrap_or_else(|| "not tried".to_owned())),
            (times, _) => Ok(format!("exchanged {times} times")),
        };
        let what = "rename a directory above something hidden in a loop";
        let attack = Some(AttackCount { tries, won });
        ProbeResult { attack, ..shut(what, [exchanged, moved.map_err(words)]) }
    }
}

fn input_has_ended() -> bool {
    let stdin = io::stdin();
    let mut ready = [PollFd::new(&stdin, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    rustix::event::poll(&mut ready, Some(&now)).is_ok() && ready[0].revents().contains(PollFlags::HUP)
}

/// Answers a line for each path.
/// Beside what is read as told: somebody who listens, as a `tmux` does that was started meanwhile.
pub(super) const LATE_SOCKET: &str = "socket";

fn read_as_told() -> ExitCode {
    for path in io::stdin().lines().map_while(Result::ok) {
        let path = Path::new(&path);
        let reached = connect(&path.with_file_name(LATE_SOCKET));
        let tried = shut("read or reach what was made while it runs", [read_or_list(path), reached]);
        println!("{}", serde_json::to_string(&tried).unwrap_or_default());
    }
    ExitCode::SUCCESS
}

/// Starts a program with nothing of ours in its environment, and waits until it has the lock.
fn leave_daemon(lock: &Path) -> ProbeOutcome {
    let mut command = Command::new(std::env::current_exe().map_err(words)?);
    command.arg("probe-wall").env_clear().stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut first = command.spawn().map_err(words)?;
    let order = serde_json::to_string(&ProbeOrder::Daemon(lock.to_path_buf())).unwrap_or_default();
    if let Some(mut stdin) = first.stdin.take() {
        writeln!(stdin, "{order}").map_err(words)?;
    }
    let mut said = String::new();
    if let Some(stdout) = first.stdout.take() {
        BufReader::new(stdout).read_line(&mut said).map_err(words)?;
    }
    let _ = first.wait();
    if said.trim() == LOCKED { Ok(said) } else { Err("it does not run".to_owned()) }
}

/// The word of a daemon that has its lock, which it has for as long as it lives. A socket it may not be able to make.
const LOCKED: &str = "locked";

/// In a session of its own, without a parent, deaf to polite signals; until somebody kills it.
fn be_daemon(lock: &Path) -> ExitCode {
    // SAFETY: there is no other thread, so the copy may do what any process may; ignoring signals runs no code of ours.
    #[allow(unsafe_code)]
    let is_parent = unsafe {
        for polite in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
            libc::signal(polite, libc::SIG_IGN);
        }
        rustix::process::setsid().is_err() || libc::fork() != 0
    };
    if is_parent {
        return ExitCode::SUCCESS;
    }
    let Ok(file) = File::create(lock) else { return ExitCode::FAILURE };
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return ExitCode::FAILURE;
    }
    println!("{LOCKED}");
    loop {
        std::thread::park();
    }
}

fn read_often(paths: &[PathBuf]) -> ProbeResult {
    let tries = (0..READS).flat_map(|_| paths);
    let mut seen: Vec<ProbeOutcome> = tries.map(|path| read(path)).collect();
    seen.sort();
    seen.dedup();
    shut("read what is hidden while it is renamed", seen)
}

/// Something that an agent must be able to do.
fn needs(what: &str, got: impl IntoIterator<Item = ProbeOutcome>) -> ProbeResult {
    let failed: Vec<String> = got.into_iter().filter_map(Result::err).collect();
    let seen = if failed.is_empty() { "can".to_owned() } else { failed.join("; ") };
    ProbeResult { what: what.to_owned(), held: failed.is_empty(), seen, attack: None }
}

/// Something that must not work in any of these ways.
fn shut(what: &str, got: impl IntoIterator<Item = ProbeOutcome>) -> ProbeResult {
    let (mut open, mut reasons) = (Vec::new(), Vec::new());
    for got in got {
        match got {
            Ok(got) => open.push(got),
            Err(why) if reasons.contains(&why) => {}
            Err(why) => reasons.push(why),
        }
    }
    let held = open.is_empty();
    let seen = match (held, reasons.is_empty()) {
        (false, _) => format!("OPEN: {}", open.join("; ")),
        (true, true) => "there is nothing of the kind".to_owned(),
        (true, false) => format!("cannot: {}", reasons.join(", ")),
    };
    let attack = Some(AttackCount { tries: 1, won: u32::from(!held) });
    ProbeResult { what: what.to_owned(), held, seen, attack }
}

fn words(why: io::Error) -> String {
    match why.kind() {
        io::ErrorKind::NotFound => "not there".to_owned(),
        io::ErrorKind::PermissionDenied => "not allowed".to_owned(),
        _ => why.to_string(),
    }
}

fn read(path: &Path) -> ProbeOutcome {
    let mut byte = [0];
    match File::open(path).and_then(|mut file| file.read(&mut byte)) {
        Ok(0) => Err("empty".to_owned()),
        Ok(_) => Ok(path.display().to_string()),
        Err(why) => Err(words(why)),
    }
}

fn seen(path: &Path) -> ProbeOutcome {
    path.symlink_metadata().map(|_| path.display().to_string()).map_err(words)
}

fn names_in(path: &Path) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(path).map_err(words)?;
    Ok(entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
}

fn list(path: &Path) -> ProbeOutcome {
    let names = names_in(path)?;
    if names.is_empty() { Err("empty".to_owned()) } else { Ok(path.display().to_string()) }
}

fn read_or_list(path: &Path) -> ProbeOutcome {
    match path.symlink_metadata() {
        Ok(found) if found.is_dir() => list(path),
        Ok(found) if found.file_type().is_socket() => connect(path),
        Ok(found) if found.file_type().is_char_device() => Err("empty".to_owned()),
        _ => read(path),
    }
}

fn write(path: &Path) -> ProbeOutcome {
    fs::write(path, "written").map_err(words)?;
    let _ = fs::remove_file(path);
    Ok(path.display().to_string())
}

fn moved(path: &Path) -> ProbeOutcome {
    let aside = path.with_extension("moved-by-probe");
    fs::rename(path, &aside).map_err(words)?;
    let _ = fs::rename(&aside, path);
    Ok(path.display().to_string())
}

/// Tries to rename a directory onto one that has something in it, which never works. How it does not work says whether
/// another name would have done.
fn renamed(path: &Path) -> ProbeOutcome {
    let beside = path.with_file_name(format!(".homing-probe-{}", std::process::id()));
    fs::create_dir_all(beside.join("full")).map_err(words)?;
    let tried = fs::rename(path, &beside);
    let _ = fs::remove_dir(beside.join("full")).and_then(|()| fs::remove_dir(&beside));
    match tried {
        Err(why) if why.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(path.display().to_string()),
        Err(why) => Err(words(why)),
        Ok(()) => Ok(format!("{} was renamed", path.display())),
    }
}

/// Everything by which the files, the memory or the view of a process could be had.
fn look_into(outsider: Outsider, data: &Path) -> Vec<ProbeOutcome> {
    let pid = match outsider.number() {
        Ok(pid) => pid,
        Err(why) => return vec![Err(why)],
    };
    let proc = PathBuf::from(format!("/proc/{pid}"));
    let link = |name: &str| {
        fs::read_link(proc.join(name)).map(|_| proc.join(name).display().to_string()).map_err(words)
    };
    let open = |name: &str| {
        File::open(proc.join(name)).map(|_| proc.join(name).display().to_string()).map_err(words)
    };
    let inside = proc.join("root").join(data.strip_prefix("/").unwrap_or(data));
    // Root may see how many files are open, but not which.
    let files = names_in(&proc.join("fd")).unwrap_or_default();
    let mut all: Vec<ProbeOutcome> = files.iter().map(|name| link(&format!("fd/{name}"))).collect();
    all.extend([read(&proc.join("environ")), open("mem"), list(&inside)]);
    all.extend(["root", "cwd", "exe", "ns/mnt"].map(link));
    all.push(open("ns/mnt"));
    all
}

fn trace(pid: i32) -> ProbeOutcome {
    // SAFETY: neither address is used for this request.
    #[allow(unsafe_code)]
    let seized = unsafe { libc::ptrace(libc::PTRACE_SEIZE, pid, 0, 0) };
    if seized == 0 { Ok(format!("process {pid}")) } else { Err(words(io::Error::last_os_error())) }
}

/// Takes a descriptor out of another process.
fn take_file(pid: i32) -> ProbeOutcome {
    let no = |why: rustix::io::Errno| words(why.into());
    let process = Pid::from_raw(pid).ok_or("no process")?;
    let process = rustix::process::pidfd_open(process, PidfdFlags::empty()).map_err(no)?;
    rustix::process::pidfd_getfd(&process, 0, PidfdGetfdFlags::empty()).map_err(no)?;
    Ok(format!("a file of process {pid}"))
}

fn signal(pid: i32) -> ProbeOutcome {
    let no = |why: rustix::io::Errno| words(why.into());
    let process = Pid::from_raw(pid).ok_or("no process")?;
    let asked = rustix::process::test_kill_process(process);
    // One that does nothing to a process that runs.
    let sent = rustix::process::pidfd_open(process, PidfdFlags::empty())
        .and_then(|process| rustix::process::pidfd_send_signal(&process, Signal::CONT));
    asked.or(sent).map(|()| format!("process {pid}")).map_err(no)
}

/// Sets a limit of another process to what it is.
fn limit(pid: i32) -> ProbeOutcome {
    // SAFETY: a structure of plain numbers.
    #[allow(unsafe_code)]
    let mut known: libc::rlimit64 = unsafe { std::mem::zeroed() };
    // SAFETY: writes into a structure of ours.
    #[allow(unsafe_code)]
    let asked = unsafe { libc::prlimit64(pid, libc::RLIMIT_NOFILE, std::ptr::null(), &raw mut known) };
    if asked != 0 {
        return Err(words(io::Error::last_os_error()));
    }
    // SAFETY: reads a structure of ours.
    #[allow(unsafe_code)]
    let set = unsafe { libc::prlimit64(pid, libc::RLIMIT_NOFILE, &raw const known, std::ptr::null_mut()) };
    if set == 0 { Ok(format!("process {pid}")) } else { Err(words(io::Error::last_os_error())) }
}

/// Sets the priority of another process to what it is.
fn slow_down(pid: i32) -> ProbeOutcome {
    let no = |why: rustix::io::Errno| words(why.into());
    let process = Pid::from_raw(pid);
    let known = rustix::process::getpriority_process(process).map_err(no)?;
    rustix::process::setpriority_process(process, known).map_err(no)?;
    Ok(format!("process {pid}"))
}

/// Sets the processors of another process to those that it has.
fn bind(pid: i32) -> ProbeOutcome {
    // SAFETY: a set of plain bits.
    #[allow(unsafe_code)]
    let mut known: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: writes into a set of ours, then reads it, each of the length it is told.
    #[allow(unsafe_code)]
    let set = unsafe {
        let asked = libc::sched_getaffinity(pid, size_of_val(&known), &raw mut known);
        if asked == 0 { libc::sched_setaffinity(pid, size_of_val(&known), &raw const known) } else { asked }
    };
    if set == 0 { Ok(format!("process {pid}")) } else { Err(words(io::Error::last_os_error())) }
}

/// Sets the scheduler of another process to the one that it has.
fn reschedule(pid: i32) -> ProbeOutcome {
    // SAFETY: a structure of plain numbers; the calls read and write it, and nothing else of ours.
    #[allow(unsafe_code)]
    let set = unsafe {
        let mut known: libc::sched_param = std::mem::zeroed();
        match libc::sched_getscheduler(pid) {
            -1 => -1,
            _ if libc::sched_getparam(pid, &raw mut known) != 0 => -1,
            policy => libc::sched_setscheduler(pid, policy, &raw const known),
        }
    };
    if set >= 0 { Ok(format!("process {pid}")) } else { Err(words(io::Error::last_os_error())) }
}

fn group_of(pid: i32) -> ProbeOutcome {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).map_err(words)?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/")).ok_or("no groups")?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").map_err(words)?;
    let is_unified = |line: &&str| line.contains(" - cgroup2 ");
    let place = mounts.lines().find(is_unified).and_then(|line| line.split(' ').nth(4)).ok_or("no groups")?;
    let lever = Path::new(place).join(own).join("cgroup.kill");
    File::options().write(true).open(&lever).map(|_| lever.display().to_string()).map_err(words)
}

fn starters() -> Vec<PathBuf> {
    let uid = rustix::process::getuid();
    let for_root = ROOT_STARTERS.iter().filter(|_| uid.is_root());
    let all = STARTERS.iter().chain(for_root);
    all.map(|path| PathBuf::from(path.replace("UID", &uid.as_raw().to_string()))).collect()
}

fn connect(path: &Path) -> ProbeOutcome {
    UnixStream::connect(path).map(|_| path.display().to_string()).map_err(words)
}

fn powers() -> ProbeOutcome {
    let has = rustix::thread::capabilities(None).map_err(|why| words(why.into()))?;
    let lead_out = has.permitted & POWERS;
    if lead_out.is_empty() { Err("none".to_owned()) } else { Ok(format!("{lead_out:?}")) }
}

fn disks() -> Vec<ProbeOutcome> {
    super::mounts::disks().iter().map(|path| read(path)).collect()
}
