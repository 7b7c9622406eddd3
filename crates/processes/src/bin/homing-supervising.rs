//! For the tests of this room alone: the hidden commands of `homing` that a tree and its wall need, one that proves a
//! wall, and a server with nothing but a spare.

use std::process::ExitCode;
use std::sync::Arc;

use homing_processes::wall::{
    DataDirectory, ListedPaths, OsUser, ProofRequest, Wall, WallKind, WallLayout, WalledSession, prove_wall,
};
use homing_processes::{ProcessTree, SpareSupervisor, TreeEvent, TreePlan};
use kernel::{GroundPath, SessionId, TreeName};

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("supervise") => homing_processes::supervise(),
        Some("probe-wall") => homing_processes::wall::probe_wall(),
        Some("prove") => prove(),
        Some("spare") => spare(),
        _ => ExitCode::FAILURE,
    }
}

/// `prove PLACE KIND TRIES [--team] [--list | --hide] [--spare] [PERSON=USER]…`: proves a wall of that kind around the data directory PLACE,
/// and says what was tried.
#[tokio::main(flavor = "current_thread")]
async fn prove() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(2).collect();
    let [place, kind, tries, others @ ..] = &arguments[..] else { return ExitCode::FAILURE };
    let data = DataDirectory::of(place.as_ref()).expect("a directory");
    let kind = serde_json::from_value(serde_json::Value::String(kind.clone())).expect("a kind of wall");
    let users = others.iter().filter_map(|other| other.split_once('='));
    let people =
        users.map(|(person, user)| (person.to_owned(), OsUser::named(user).expect("a user"))).collect();
    let is_said = |word: &str| others.iter().any(|other| other == word);
    let layout = match (is_said("--list"), is_said("--hide")) {
        (true, _) => WallLayout::List,
        (_, true) => WallLayout::Hide,
        (false, false) => WallLayout::Auto,
    };
    let listed = ListedPaths::system();
    let exe = std::env::current_exe().expect("we were started from somewhere");
    let spare = is_said("--spare").then(|| SpareSupervisor::new(&exe, kind));
    let proving = ProofRequest {
        exe,
        locks: format!("{place}/attempts").into(),
        wall: Arc::new(Wall { kind, layout, listed, data: Some(data), people, ..Wall::default() }),
        server: std::process::id().cast_signed(),
        tries: tries.parse().expect("a number"),
        must: is_said("--team"),
        for_team: is_said("--team"),
        spare,
    };
    let proof = prove_wall(&proving).await;
    for words in proof.words() {
        println!("{words}");
    }
    if proof.proved { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// `spare PLACE`: has a spare, says its process, and then for each line that it is told runs that in a shell behind a wall, with the
/// directory PLACE/locks for its lock, and says what the shell printed.
#[tokio::main(flavor = "current_thread")]
async fn spare() -> ExitCode {
    let place = std::path::PathBuf::from(std::env::args().nth(2).expect("a place"));
    let exe = std::env::current_exe().expect("we were started from somewhere");
    let spare = SpareSupervisor::new(&exe, WallKind::Mounts);
    spare.fill();
    assert!(spare.is_ready().await);
    println!("{}", spare.pid().expect("it waits"));
    for line in std::io::stdin().lines() {
        let (session, locks) = (SessionId::from_bits(1), place.join("locks"));
        let directory = GroundPath::from(&*place.to_string_lossy());
        let of = WalledSession { session, whose: "", directory: &directory, must: false };
        let wall = Wall { kind: WallKind::Mounts, ..Wall::default() };
        let wall = wall.around(&of, &place, &locks).expect("a wall");
        let argv = vec!["/bin/sh".to_owned(), "-c".to_owned(), line.expect("a line")];
        let plan = TreePlan::new(exe.clone(), locks, TreeName::of(session), argv, directory);
        let plan = TreePlan { wall, spare: Some(spare.clone()), ..plan };
        let mut tree = ProcessTree::start(&plan).await.expect("it can be started");
        loop {
            match tree.next().await {
                TreeEvent::Output(bytes) | TreeEvent::Errors(bytes) => {
                    print!("{}", String::from_utf8_lossy(&bytes))
                }
                TreeEvent::Exited(_) | TreeEvent::Lost => break,
                TreeEvent::Counted(_) | TreeEvent::Listed(_) => {}
            }
        }
        println!("over");
    }
    spare.close().await;
    ExitCode::SUCCESS
}
