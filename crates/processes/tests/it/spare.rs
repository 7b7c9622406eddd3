//! The spare supervisor: it is used, it is in nobody's way, it goes with its server, and a wall that is raised in it is as good as any.
//!
//! These need root, or namespaces of users.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use homing_processes::wall::{DataDirectory, HiddenPath, Wall, WallKind, WalledSession};
use homing_processes::{ProcessTree, SpareSupervisor, TreePlan, end_tree};
use kernel::SessionId;
use rustix::fs::{CWD, RenameFlags};
use rustix::process::{Pid, Signal};

use crate::bench::{Bench, WAIT, ground, supervising};
use crate::namespaces::end_of;
use crate::wall::Exchanging;

async fn a_spare() -> SpareSupervisor {
    let spare = SpareSupervisor::new(supervising(), WallKind::Mounts);
    spare.fill();
    assert!(spare.is_ready().await);
    spare
}

fn plan(bench: &Bench, wall: &Wall, spare: &SpareSupervisor, script: &str) -> TreePlan {
    let home = bench.directory();
    let directory = ground(&home);
    let of =
        WalledSession { session: SessionId::from_bits(1), whose: "", directory: &directory, must: false };
    let wall = wall.around(&of, &home, &bench.locks()).unwrap();
    let argv = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
    let env = vec![("PATH".to_owned(), "/usr/sbin:/usr/bin:/sbin:/bin".to_owned())];
    let plan = TreePlan::new(supervising().into(), bench.locks(), bench.tree.clone(), argv, directory);
    TreePlan { wall, env, spare: Some(spare.clone()), ..plan }
}

fn mounts() -> Wall {
    Wall { kind: WallKind::Mounts, ..Wall::default() }
}

/// The first process that a spare has prepared, once there is one.
async fn first_of(spare: u32) -> i32 {
    until(|| children_of(spare).first().copied()).await
}

async fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = std::time::Instant::now() + WAIT;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(std::time::Instant::now() < deadline, "nothing came of it");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

fn children_of(pid: u32) -> Vec<i32> {
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

fn is_there(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.rsplit(')').next().unwrap().trim_start().starts_with('Z'))
}

fn kill(pid: i32) {
    rustix::process::kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
}

#[tokio::test]
async fn a_spare_becomes_the_supervisor_and_its_first_process_the_trees() {
    let (bench, spare) = (Bench::new(), a_spare().await);
    let (supervisor, first) = (spare.pid().unwrap(), first_of(spare.pid().unwrap()).await);
    let script = "echo $$ $PPID; ulimit -n; ulimit -c; read x; exit 7";
    let limited = TreePlan { files_max: Some(123), ..plan(&bench, &mounts(), &spare, script) };
    let mut tree = ProcessTree::start(&limited).await.unwrap();
    assert_eq!(bench.supervisor(), supervisor as i32);
    assert_eq!(tree.pid(), first);
    assert_eq!(spare.pid(), None, "it is nobody's spare any more");
    if let Some(group) = bench.holder()["group"].as_str() {
        let inside = std::fs::read_to_string(Path::new(group).join("cgroup.procs")).unwrap();
        let inside: Vec<i32> = inside.lines().map(|pid| pid.parse().unwrap()).collect();
        assert_eq!(inside, children_of(first as u32), "the agent was born in the tree's group");
        assert!(group.contains(bench.tree.as_str()), "{group}");
    }
    tree.input(b"\n").await.unwrap();
    let (said, exit) = end_of(&mut tree).await;
    assert_eq!((exit.code, exit.killed, exit.gone), (Some(7), 0, true), "{said}");
    assert_eq!(said, format!("{first} 1\n123\n0\n"));
    assert_eq!(std::fs::read_dir(bench.locks()).unwrap().count(), 0, "nobody holds the tree");
}

#[tokio::test]
async fn the_next_spare_is_made_once_the_program_has_answered() {
    let (bench, spare) = (Bench::new(), a_spare().await);
    let script = "echo up; read x; echo $x; read y";
    let mut tree = ProcessTree::start(&plan(&bench, &mounts(), &spare, script)).await.unwrap();
    tree.next().await;
    assert!(!spare.is_ready().await, "not before it was told anything");
    tree.input(b"words\n").await.unwrap();
    tree.next().await;
    assert!(spare.is_ready().await);
    tree.end_input().await.unwrap();
    assert!(end_of(&mut tree).await.1.gone);
    // And once what was started is over, whether or not it has said anything.
    let mut tree = ProcessTree::start(&plan(&bench, &mounts(), &spare, "exit 3")).await.unwrap();
    assert_eq!(end_of(&mut tree).await.1.code, Some(3));
    drop(tree);
    assert!(spare.is_ready().await);
    let missing =
        TreePlan { argv: vec!["/no/such/program".to_owned()], ..plan(&bench, &mounts(), &spare, "") };
    let why = ProcessTree::start(&missing).await.unwrap_err();
    assert!(why.to_string().contains("/no/such/program: No such file"), "{why}");
    assert!(spare.is_ready().await);
}

#[tokio::test]
async fn a_spare_holds_nothing_of_anybodys() {
    let spare = a_spare().await;
    let supervisor = spare.pid().unwrap();
    let first = first_of(supervisor).await;
    for pid in [supervisor as i32, first] {
        assert_eq!(std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default(), b"");
        // Closed to its own user, too: only root can look.
        let Ok(held) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { continue };
        for held in held.flatten() {
            // What was closed since the list was read is not held.
            let Ok(target) = std::fs::read_link(held.path()) else { continue };
            let target = target.to_string_lossy();
            let is_own = target.starts_with("socket:")
                || target.starts_with("pipe:")
                || target.starts_with("anon_inode:")
                || target == "/dev/null"
                || target.ends_with("/mountinfo");
            assert!(is_own, "{pid} holds {target}");
        }
        assert_eq!(std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap(), Path::new("/"));
    }
}

#[tokio::test]
async fn a_spare_is_gone_when_it_was_closed() {
    let spare = a_spare().await;
    let supervisor = spare.pid().unwrap();
    let first = first_of(supervisor).await;
    spare.close().await;
    assert!(!is_there(supervisor as i32) && !is_there(first));
    spare.fill();
    assert!(!spare.is_ready().await, "no other one is made");
}

/// A server in a process of its own that has nothing but a spare.
struct SpareServer {
    server: Child,
    says: BufReader<ChildStdout>,
    spare: u32,
}

impl SpareServer {
    fn begin(mut command: Command, place: &Path) -> Self {
        command.arg("spare").arg(place).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut server = command.spawn().unwrap();
        let mut says = BufReader::new(server.stdout.take().unwrap());
        let mut line = String::new();
        says.read_line(&mut line).unwrap();
        Self { server, says, spare: line.trim().parse().unwrap() }
    }

    fn run(&mut self, script: &str) -> String {
        writeln!(self.server.stdin.as_mut().unwrap(), "{script}").unwrap();
        let mut said = String::new();
        while !said.ends_with("over\n") {
            assert!(self.says.read_line(&mut said).unwrap() > 0, "{said}");
        }
        said
    }
}

#[tokio::test]
async fn a_spare_goes_with_its_server_however_that_ends() {
    let place = tempfile::tempdir().unwrap();
    for polite in [true, false] {
        let SpareServer { mut server, spare, .. } =
            SpareServer::begin(Command::new(supervising()), place.path());
        let first = first_of(spare).await;
        if polite {
            drop(server.stdin.take());
            assert!(server.wait().unwrap().success());
            assert!(!is_there(spare as i32) && !is_there(first), "it has waited for it");
        } else {
            server.kill().unwrap();
            server.wait().unwrap();
            until(|| (!is_there(spare as i32) && !is_there(first)).then_some(())).await;
        }
    }
}

#[tokio::test]
async fn a_first_process_goes_with_a_spare_that_was_killed() {
    let (bench, spare) = (Bench::new(), a_spare().await);
    let supervisor = spare.pid().unwrap();
    let first = first_of(supervisor).await;
    kill(supervisor as i32);
    until(|| (!is_there(supervisor as i32) && !is_there(first)).then_some(())).await;
    // Nobody misses it.
    let mut tree = ProcessTree::start(&plan(&bench, &mounts(), &spare, "echo here")).await.unwrap();
    assert_eq!(end_of(&mut tree).await.0, "here\n");
}

#[tokio::test]
async fn a_start_does_without_a_first_process_that_was_killed() {
    let (bench, spare) = (Bench::new(), a_spare().await);
    let supervisor = spare.pid().unwrap();
    let first = first_of(supervisor).await;
    kill(first);
    let mut tree = ProcessTree::start(&plan(&bench, &mounts(), &spare, "echo $PPID; read x")).await.unwrap();
    assert!(bench.supervisor() == supervisor as i32 && tree.pid() != first);
    tree.input(b"\n").await.unwrap();
    assert_eq!(end_of(&mut tree).await.0, "1\n");
}

/// The processes of a tree that began with a spare go with its supervisor, and it is known which they were.
#[tokio::test]
async fn a_tree_that_began_with_a_spare_ends_with_its_supervisor() {
    let (bench, spare) = (Bench::new(), a_spare().await);
    let nap = format!("32{}.1", std::process::id());
    let script = format!("(setsid env -i sleep {nap} >/dev/null 2>&1 &); echo up; read x; exec sleep {nap}");
    let mut tree = ProcessTree::start(&plan(&bench, &mounts(), &spare, &script)).await.unwrap();
    tree.next().await;
    let sleeping = || crate::namespaces::sleeping(&nap).len();
    until(|| (sleeping() == 1).then_some(())).await;
    kill(bench.supervisor());
    until(|| (sleeping() == 0).then_some(())).await;
    end_tree(bench.locks(), bench.tree.clone()).await.unwrap();
    assert_eq!(std::fs::read_dir(bench.locks()).unwrap().count(), 0);
}

/// A place with something hidden in it, and a wall that hides it.
struct HidingPlace {
    bench: Bench,
    place: PathBuf,
    wall: Wall,
}

impl HidingPlace {
    fn new() -> Self {
        let bench = Bench::new();
        let place = bench.directory();
        for directory in ["first/data", "second/data", "beside"] {
            std::fs::create_dir_all(place.join(directory)).unwrap();
        }
        for file in ["first/data/token", "beside/key"] {
            std::fs::write(place.join(file), "a secret\n").unwrap();
        }
        let data = DataDirectory::of(&place.join("first/data")).unwrap();
        let hide = vec![HiddenPath::of(place.join("beside")), HiddenPath::of(place.join("late"))];
        Self { wall: Wall { data: Some(data), hide, ..mounts() }, place, bench }
    }

    /// Everything that an agent finds which begins with this spare.
    async fn look(&self, spare: &SpareSupervisor) -> Option<String> {
        let script =
            format!("cd {}; find . -name token -o -name key | xargs -r cat; echo over", self.place.display());
        let plan = plan(&self.bench, &self.wall, spare, &script);
        let mut tree = ProcessTree::start(&plan).await.ok()?;
        Some(end_of(&mut tree).await.0)
    }
}

/// Covers are made when the tree is started, by descriptor: what became of names since the spare was made does not matter.
#[tokio::test]
async fn what_is_hidden_stays_hidden_whatever_became_of_it_since_the_spare_was_made() {
    type Change = fn(&Path);
    let changes: [(&str, Change); 5] = [
        ("nothing", |_| {}),
        ("another name", |place| std::fs::rename(place.join("beside"), place.join("elsewhere")).unwrap()),
        ("made later", |place| {
            std::fs::create_dir(place.join("late")).unwrap();
            std::fs::write(place.join("late/key"), "a secret\n").unwrap();
        }),
        ("put into something else", |place| {
            std::fs::rename(place.join("beside"), place.join("second/beside")).unwrap();
        }),
        ("replaced", |place| {
            std::fs::rename(place.join("beside"), place.join("second/data/other")).unwrap();
            std::fs::create_dir(place.join("beside")).unwrap();
            std::fs::write(place.join("beside/key"), "a secret\n").unwrap();
        }),
    ];
    for (what, change) in changes {
        let (hiding, spare) = (HidingPlace::new(), a_spare().await);
        first_of(spare.pid().unwrap()).await;
        change(&hiding.place);
        assert_eq!(hiding.look(&spare).await.as_deref(), Some("over\n"), "{what}");
    }
}

/// A data directory that has another name is put back by somebody before anything is started, with a spare as without.
#[tokio::test]
async fn a_data_directory_that_was_exchanged_is_not_covered_in_vain() {
    let (hiding, spare) = (HidingPlace::new(), a_spare().await);
    let (first, second) = (hiding.place.join("first"), hiding.place.join("second"));
    first_of(spare.pid().unwrap()).await;
    rustix::fs::renameat_with(CWD, &first, CWD, &second, RenameFlags::EXCHANGE).unwrap();
    assert_eq!(hiding.look(&spare).await, None, "nothing is started");
    rustix::fs::renameat_with(CWD, &first, CWD, &second, RenameFlags::EXCHANGE).unwrap();
    assert!(spare.is_ready().await);
    let exchanging = Exchanging::begin(first, second);
    let mut started = 0;
    for _ in 0..20 {
        let said = hiding.look(&spare).await;
        started += u32::from(said.is_some());
        assert!(!said.unwrap_or_default().contains("secret"));
        spare.is_ready().await;
    }
    assert!(exchanging.end() > 20 && started > 0, "{started} were started");
}

/// Where nothing that is mounted comes in by itself.
#[tokio::test]
async fn what_is_mounted_after_the_spare_was_made_is_there() {
    let place = tempfile::tempdir().unwrap();
    for directory in ["locks", "mounted"] {
        std::fs::create_dir(place.path().join(directory)).unwrap();
    }
    let mut unshare = Command::new("unshare");
    let (users, entered): (&[&str], &[&str]) = match rustix::process::geteuid().is_root() {
        true => (&[], &[]),
        false => (&["-Ur"], &["--user", "--preserve-credentials"]),
    };
    unshare.args(users).args(["--mount", "--propagation", "private"]).arg(supervising());
    // The whole group goes if the test does.
    unshare.process_group(0);
    let mut server = SpareServer::begin(unshare, place.path());
    let first = first_of(server.spare).await;
    let mounted = place.path().join("mounted");
    let status = Command::new("nsenter")
        .args(["--target", &server.server.id().to_string(), "--mount"])
        .args(entered)
        .args(["--", "sh", "-c"])
        .arg(format!("mount -t tmpfs none {0} && echo words > {0}/file", mounted.display()))
        .status();
    assert!(status.unwrap().success());
    let said = server.run(&format!("cat {}/file", mounted.display()));
    assert_eq!(said, "words\nover\n");
    until(|| (!is_there(first)).then_some(())).await;
    drop(server.server.stdin.take());
    assert!(server.server.wait().unwrap().success());
}
