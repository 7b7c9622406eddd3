//! Agents behind a wall have namespaces of their own: they name no process outside, and their tree ends with the first
//! process in it.
//!
//! These need root, or namespaces of users.

use std::collections::BTreeSet;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use homing_processes::wall::{Wall, WallKind, WalledSession};
use homing_processes::{ProcessTree, TreeEvent, TreeExit, TreePlan, end_tree};
use kernel::SessionId;
use rustix::process::{Pid, Signal};

use crate::bench::{Bench, WAIT, ground, supervising};

fn plan(bench: &Bench, kind: WallKind, script: &str) -> TreePlan {
    let directory = bench.directory();
    let of = WalledSession {
        session: SessionId::from_bits(1),
        whose: "",
        directory: &ground(&directory),
        must: false,
    };
    let wall = Wall { kind, ..Wall::default() }.around(&of, &directory, &bench.locks()).unwrap();
    let argv = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
    let plan =
        TreePlan::new(supervising().into(), bench.locks(), bench.tree.clone(), argv, ground(&directory));
    let env = vec![("PATH".to_owned(), "/usr/sbin:/usr/bin:/sbin:/bin".to_owned())];
    TreePlan { wall, env, ..plan }
}

async fn start(bench: &Bench, script: &str) -> ProcessTree {
    ProcessTree::start(&plan(bench, WallKind::Mounts, script)).await.unwrap()
}

/// Its words until it says that, or to its end.
async fn said(tree: &mut ProcessTree, until: &str) -> (String, Option<TreeExit>) {
    let mut said = Vec::new();
    loop {
        match tokio::time::timeout(WAIT, tree.next()).await.unwrap() {
            TreeEvent::Output(bytes) | TreeEvent::Errors(bytes) => said.extend(bytes),
            TreeEvent::Exited(exit) => return (String::from_utf8(said).unwrap(), Some(exit)),
            TreeEvent::Lost => panic!("lost"),
            TreeEvent::Counted(_) | TreeEvent::Listed(_) => {}
        }
        let so_far = String::from_utf8_lossy(&said).into_owned();
        if !until.is_empty() && so_far.contains(until) {
            return (so_far, None);
        }
    }
}

pub(crate) async fn end_of(tree: &mut ProcessTree) -> (String, TreeExit) {
    let (said, exit) = said(tree, "").await;
    (said, exit.unwrap())
}

/// Somebody who has nothing to do with the agent, and is of the same user.
struct Bystander(Child);

impl Bystander {
    fn begin() -> Self {
        Self(Command::new("sleep").arg("1000").process_group(0).spawn().unwrap())
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[tokio::test]
async fn an_agent_names_no_process_outside() {
    let (bench, bystander) = (Bench::new(), Bystander::begin());
    let pid = bystander.0.id();
    let script = format!(
        "for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline; echo; done; \
         for way in 'kill -0' 'taskset -p 1' 'chrt -b -p 0' 'renice -n 5 -p' 'ionice -c 3 -p' 'prlimit --nofile --pid'; do \
         $way {pid} >/dev/null 2>&1 && echo \"wo\"\"n: $way\"; done; echo over"
    );
    let (said, exit) = end_of(&mut start(&bench, &script).await).await;
    assert!(said.ends_with("over\n") && !said.contains("won: "), "{said}");
    let seen = said.lines().filter(|line| line.contains("sleep 1000")).count();
    assert_eq!(seen, 0, "{said}");
    assert_eq!((exit.code, exit.killed, exit.gone), (Some(0), 0, true));
}

#[tokio::test]
async fn threads_of_its_own_run_where_the_agent_likes() {
    let bench = Bench::new();
    let script = "sleep 1000 & taskset -p 1 $! && taskset -p 1 $$ && chrt -b -p 0 $! && echo done; kill $!";
    let (said, _) = end_of(&mut start(&bench, script).await).await;
    assert!(said.contains("done"), "{said}");
}

/// Where there is no namespace of processes, a filter refuses the numbers of others.
#[tokio::test]
async fn without_a_namespace_nobody_elses_processors_are_chosen() {
    let (bench, bystander) = (Bench::new(), Bystander::begin());
    let pid = bystander.0.id();
    let script = format!(
        "for way in 'taskset -p 1' 'chrt -b -p 0'; do $way {pid} && echo \"wo\"\"n: $way\"; done; \
         taskset -c 0 echo own"
    );
    let plan = plan(&bench, WallKind::Landlock, &script);
    let (said, _) = end_of(&mut ProcessTree::start(&plan).await.unwrap()).await;
    assert!(said.contains("own\n") && !said.contains("won: "), "{said}");
    assert_eq!(said.matches("not permitted").count(), 2, "{said}");
}

#[tokio::test]
async fn an_agent_shares_no_memory_and_no_messages_with_others() {
    let bench = Bench::new();
    let (said, _) = end_of(&mut start(&bench, "readlink /proc/self/ns/ipc /proc/self/ns/pid").await).await;
    let ours = ["ipc", "pid"].map(|name| std::fs::read_link(format!("/proc/self/ns/{name}")).unwrap());
    let theirs: Vec<&str> = said.lines().collect();
    assert_eq!(theirs.len(), 2, "{said}");
    for (theirs, ours) in theirs.into_iter().zip(ours) {
        assert_ne!(theirs, ours.to_str().unwrap());
    }
}

#[tokio::test]
async fn an_end_is_the_agents_own() {
    let bench = Bench::new();
    let code = end_of(&mut start(&bench, "exit 7").await).await.1;
    assert_eq!((code.code, code.signal, code.killed), (Some(7), None, 0));
    let signal = end_of(&mut start(&bench, "kill -9 $$").await).await.1;
    assert_eq!((signal.code, signal.signal, signal.killed), (None, Some(9), 0));
    // What it has left behind is ended with it, and counted; the first process is not.
    let left =
        end_of(&mut start(&bench, "for i in 1 2 3; do setsid sleep 1000 & done; exit 0").await).await.1;
    assert_eq!((left.code, left.killed, left.gone), (Some(0), 3, true));
    let argv = vec!["/no/such/program".to_owned()];
    let missing = TreePlan { argv, ..plan(&bench, WallKind::Mounts, "") };
    let why = ProcessTree::start(&missing).await.unwrap_err();
    assert!(why.to_string().contains("/no/such/program: No such file"), "{why}");
    assert_eq!(std::fs::read_dir(bench.locks()).unwrap().count(), 0, "nobody holds the tree");
}

#[tokio::test]
async fn an_interrupt_reaches_the_agent() {
    let bench = Bench::new();
    let script = "trap 'echo heard; exit 3' INT; echo ready; while :; do sleep 0.05; done";
    let mut tree = start(&bench, script).await;
    said(&mut tree, "ready").await;
    tree.interrupt();
    let (said, exit) = end_of(&mut tree).await;
    assert!(said.contains("heard") && exit.code == Some(3), "{said} {exit:?}");
}

/// Tools that have left the agent, its session and its environment, twice forked and deaf.
fn careless(nap: &str) -> String {
    format!(
        "for i in 1 2 3; do (setsid env -i sh -c \"trap '' TERM INT HUP; sleep {nap}; :\" >/dev/null 2>&1 &); done; \
         while [ $(ps ax | grep -c '[s]leep {nap}$') -lt 3 ]; do sleep 0.01; done; echo ready; sleep 1000"
    )
}

pub(crate) fn sleeping(nap: &str) -> BTreeSet<i32> {
    let wanted = format!("sleep\0{nap}\0");
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_it =
        |pid: &i32| std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line == wanted.as_bytes());
    pids.filter(is_it).collect()
}

/// The processes in a namespace; one that is on its way out is in none.
fn inside(namespace: &std::path::Path) -> BTreeSet<i32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_it =
        |pid: &i32| std::fs::read_link(format!("/proc/{pid}/ns/pid")).is_ok_and(|link| link == namespace);
    pids.filter(is_it).collect()
}

fn kill(pid: i32) {
    rustix::process::kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
}

#[tokio::test]
async fn a_tree_ends_with_its_first_process() {
    let (bench, nap) = (Bench::new(), format!("31{}.1", std::process::id()));
    let mut tree = start(&bench, &careless(&nap)).await;
    said(&mut tree, "ready").await;
    assert_eq!(sleeping(&nap).len(), 3);
    kill(tree.pid());
    let (_, exit) = end_of(&mut tree).await;
    assert_eq!((exit.signal, exit.gone), (Some(9), true), "{exit:?}");
    assert_eq!(sleeping(&nap).len(), 0);
}

/// By the kernel alone: nobody looks for anything.
#[tokio::test]
async fn a_tree_ends_with_its_supervisor() {
    let (bench, nap) = (Bench::new(), format!("31{}.2", std::process::id()));
    let mut tree = start(&bench, &careless(&nap)).await;
    said(&mut tree, "ready").await;
    let first = tree.pid();
    let one = *sleeping(&nap).first().expect("somebody sleeps");
    let namespace = std::fs::read_link(format!("/proc/{one}/ns/pid")).unwrap();
    kill(bench.supervisor());
    loop {
        if let TreeEvent::Lost = tokio::time::timeout(WAIT, tree.next()).await.unwrap() {
            break;
        }
    }
    let deadline = std::time::Instant::now() + WAIT;
    while !inside(&namespace).is_empty() || std::fs::metadata(format!("/proc/{first}/exe")).is_ok() {
        assert!(std::time::Instant::now() < deadline, "{:?} are left", inside(&namespace));
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert_eq!(end_tree(bench.locks(), bench.tree.clone()).await.unwrap().killed, 0);
}

/// Its number inside is the one that its first process has outside, so that no two agents call something alike.
#[tokio::test]
async fn agents_have_numbers_of_their_own() {
    let bench = Bench::new();
    let mut tree = start(&bench, "echo $$ $PPID").await;
    let pid = tree.pid();
    assert_eq!(end_of(&mut tree).await.0, format!("{pid} 1\n"));
}

#[tokio::test]
async fn the_first_process_is_closed_and_holds_nothing() {
    let bench = Bench::new();
    let script = "ls -l /proc/1/fd; cat /proc/1/environ; readlink /proc/1/cwd /proc/1/exe; head -c 1 /proc/1/mem; \
                  kill -9 1; kill -STOP 1; echo over";
    let mut tree = start(&bench, &format!("{script}; read x; echo again")).await;
    let (said_first, _) = said(&mut tree, "over").await;
    assert!(!said_first.contains("pipe:") && !said_first.contains("homing"), "{said_first}");
    // Closed to its own user, too: only root can count.
    if let Ok(held) = std::fs::read_dir(format!("/proc/{}/fd", tree.pid())) {
        assert_eq!(held.count(), 1, "the line on which it says how the agent ended");
    }
    tree.input(b"\n").await.unwrap();
    assert!(end_of(&mut tree).await.0.contains("again"));
}

/// Agents bring sandboxes along: namespaces of users, of processes, of mounts.
#[tokio::test]
async fn sandboxes_of_an_agents_own_work_inside() {
    let script = "unshare -Ur sh -c 'echo users $(id -u)'; unshare -Urm sh -c 'mount -t tmpfs none /mnt && echo mounts'; \
                  unshare -Urpf sh -c 'echo processes $$'; unshare -Urpf --kill-child sh -c 'sleep 0.01 & wait; echo ended'";
    let expected = ["users 0", "mounts", "processes 1", "ended"];
    let bench = Bench::new();
    let (said, _) = end_of(&mut start(&bench, script).await).await;
    for part in expected {
        assert!(said.contains(part), "no {part:?} in {said}");
    }
}
