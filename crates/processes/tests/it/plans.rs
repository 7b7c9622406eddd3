//! A supervisor with a plan, whatever the program: its environment, its directory, its input, its end.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use homing_processes::wall::{DataDirectory, HiddenPath, Wall, WalledSession};
use homing_processes::{ProcessError, ProcessTree, ResourceLimit, TreeEvent, TreeExit, TreePlan};

use kernel::SessionId;

use crate::bench::{Bench, WAIT, ground, supervising};

fn plan(bench: &Bench, argv: &[&str]) -> TreePlan {
    let argv = argv.iter().map(|&word| word.to_owned()).collect();
    TreePlan::new(supervising().into(), bench.locks(), bench.tree.clone(), argv, ground(bench.directory()))
}

/// The output of it, and how it ended.
async fn end_of(tree: &mut ProcessTree) -> (String, TreeExit) {
    let mut printed = Vec::new();
    loop {
        match tokio::time::timeout(WAIT, tree.next()).await.unwrap() {
            TreeEvent::Output(bytes) => printed.extend(bytes),
            TreeEvent::Exited(exit) => return (String::from_utf8(printed).unwrap(), exit),
            TreeEvent::Lost => panic!("lost"),
            TreeEvent::Errors(_) | TreeEvent::Counted(_) | TreeEvent::Listed(_) => {}
        }
    }
}

#[tokio::test]
async fn a_program_gets_the_environment_of_its_plan_and_nothing_else() {
    let bench = Bench::new();
    let env = vec![("ONLY".to_owned(), "this".to_owned()), ("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
    let mut tree = ProcessTree::start(&TreePlan { env, ..plan(&bench, &["env"]) }).await.unwrap();
    let (printed, exit) = end_of(&mut tree).await;
    assert_eq!(exit.code, Some(0));
    let names: BTreeSet<&str> = printed.lines().filter_map(|line| line.split('=').next()).collect();
    assert_eq!(names, BTreeSet::from(["ONLY", "PATH", "HOMING_TREE", "HOMING_TREE_HOME"]));
}

#[tokio::test]
async fn a_program_that_waits_for_the_end_of_its_input_gets_it_at_once_if_the_plan_says_so() {
    let bench = Bench::new();
    let closed = TreePlan { closes_input: true, ..plan(&bench, &["cat"]) };
    let (printed, exit) = end_of(&mut ProcessTree::start(&closed).await.unwrap()).await;
    assert_eq!((printed.as_str(), exit.code, exit.killed), ("", Some(0), 0));
}

#[tokio::test]
async fn a_program_that_waits_for_the_end_of_its_input_gets_it_after_its_words() {
    let bench = Bench::new();
    let mut tree = ProcessTree::start(&plan(&bench, &["cat"])).await.unwrap();
    let nothing = tokio::time::timeout(Duration::from_millis(200), tree.next()).await;
    assert!(nothing.is_err(), "it waits: {nothing:?}");
    tree.input(b"words").await.unwrap();
    tree.end_input().await.unwrap();
    let (printed, exit) = end_of(&mut tree).await;
    assert_eq!((printed.as_str(), exit.code, exit.killed), ("words", Some(0), 0));
}

#[tokio::test]
async fn a_directory_may_be_named_by_a_link() {
    let bench = Bench::new();
    let link = bench.place.path().join("link");
    std::os::unix::fs::symlink(bench.directory(), &link).unwrap();
    let mut tree = ProcessTree::start(&TreePlan { directory: ground(link), ..plan(&bench, &["pwd", "-P"]) })
        .await
        .unwrap();
    assert_eq!(end_of(&mut tree).await.0.trim(), bench.directory().to_str().unwrap());
}

#[tokio::test]
async fn a_program_does_not_inherit_what_is_held_for_its_wall() {
    let bench = Bench::new();
    let data = DataDirectory::of(&bench.directory().join("locks")).unwrap();
    let hide = [bench.directory(), "/etc/passwd".into()].map(HiddenPath::of).to_vec();
    let wall = Wall { data: Some(data), hide, ..Wall::default() };
    let (session, root) = (SessionId::from_bits(1), Path::new("/"));
    let of = WalledSession { session, whose: "", directory: &ground(root), must: false };
    let wall = wall.around(&of, root, &bench.locks()).unwrap();
    let argv = ["sh", "-c", "for f in /proc/$$/fd/*; do readlink $f; done"];
    let plan = TreePlan { wall, directory: ground(root), ..plan(&bench, &argv) };
    let (printed, _) = end_of(&mut ProcessTree::start(&plan).await.unwrap()).await;
    let here = bench.directory().display().to_string();
    assert!(
        printed.contains("pipe:") && !printed.contains(&here) && !printed.contains("passwd"),
        "{printed}"
    );
}

/// A supervisor that says what it is told to, and leaves with its line.
fn supervisor_that_says(frame: &str, place: &Path) -> std::path::PathBuf {
    let path = place.join("supervisor");
    let script = format!(
        "#!/bin/sh\nprintf 's\\{:03o}\\000\\000\\000%s' '{frame}'\nexec cat >/dev/null\n",
        frame.len()
    );
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[tokio::test]
async fn an_agent_that_is_elsewhere_is_refused() {
    let bench = Bench::new();
    let start = async |directory: &str| -> Result<ProcessTree, ProcessError> {
        let frame = format!(r#"{{"pid":1,"directory":{directory}}}"#);
        let supervisor = supervisor_that_says(&frame, bench.place.path());
        ProcessTree::start(&TreePlan { supervisor, ..plan(&bench, &["true"]) }).await
    };
    let here = format!("{:?}", bench.directory());
    assert!(start(&here).await.is_ok());
    assert!(start("null").await.is_ok(), "one that has ended already is nowhere");
    let trouble = start(r#""/elsewhere""#).await.unwrap_err();
    assert!(
        matches!(&trouble, ProcessError::Refused(why) if why.contains("started in /elsewhere")),
        "{trouble}"
    );
}

#[tokio::test]
async fn a_tree_that_was_ended_for_a_limit_says_which() {
    let bench = Bench::new();
    let script = "for i in 1 2 3 4 5 6 7 8 9; do sleep 1000 & done; wait";
    let limited = TreePlan { processes_max: Some(5), ..plan(&bench, &["sh", "-c", script]) };
    let (_, exit) = end_of(&mut ProcessTree::start(&limited).await.unwrap()).await;
    assert_eq!(exit.limit, Some(ResourceLimit::Processes));
    assert!(exit.gone && exit.killed >= 6, "{exit:?}");
}

#[tokio::test]
async fn a_tree_that_writes_too_much_is_ended_whoever_in_it_writes() {
    let bench = Bench::new();
    // Children of its own, one after the other; those of one that has lost its parent; those of one that never waits for them.
    let zeros = "head -c 6000000 /dev/zero";
    let scripts = [
        format!("{zeros} > one; {zeros} > two; {zeros} > three; sleep 1000"),
        format!("(setsid sh -c '{zeros} > one; {zeros} > two; {zeros} > three; sleep 1000' &); sleep 1000"),
        format!("for each in one two three; do {zeros} > $each & done; exec sleep 1000"),
    ];
    for script in scripts {
        let limited =
            TreePlan { written_bytes_max: Some(16_000_000), ..plan(&bench, &["sh", "-c", &script]) };
        let (_, exit) = end_of(&mut ProcessTree::start(&limited).await.unwrap()).await;
        assert_eq!(exit.limit, Some(ResourceLimit::Written), "{script}");
        assert!(exit.gone && exit.killed >= 1, "{exit:?}");
        let within = TreePlan {
            written_bytes_max: Some(64_000_000),
            ..plan(&bench, &["sh", "-c", &script.replace("sleep 1000", "true")])
        };
        let (_, exit) = end_of(&mut ProcessTree::start(&within).await.unwrap()).await;
        assert_eq!((exit.limit, exit.code), (None, Some(0)), "{script}");
    }
}

/// The cost of each running agent besides itself, also after much has passed. The program's own pages are the daemon's, too;
/// the bench has the whole figure.
#[tokio::test]
async fn a_supervisor_is_small() {
    const PRINTED_BYTES: usize = 20_000_000;
    let bench = Bench::new();
    let script = format!("head -c {PRINTED_BYTES} /dev/zero; exec sleep 1000");
    let mut tree = ProcessTree::start(&plan(&bench, &["sh", "-c", &script])).await.unwrap();
    let mut printed = 0;
    while printed < PRINTED_BYTES {
        match tokio::time::timeout(WAIT, tree.next()).await.unwrap() {
            TreeEvent::Output(bytes) => printed += bytes.len(),
            other => panic!("{other:?} after {printed} bytes"),
        }
    }
    let bytes = own_bytes(bench.supervisor());
    println!("a supervisor takes {:.2} MB for itself", bytes as f64 / 1e6);
    assert!(bytes < 1_500_000, "{bytes}");
    tree.kill();
    assert!(end_of(&mut tree).await.1.gone);
}

/// Memory that a process has filled itself, in bytes: without its program and libraries.
fn own_bytes(pid: i32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("Pss_Anon:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1024
}
