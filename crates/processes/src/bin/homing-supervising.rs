//! For the tests of this room alone: the hidden commands of `homing` that a tree and its wall need, and one that proves a
//! wall.

use std::process::ExitCode;
use std::sync::Arc;

use homing_processes::wall::{
    DataDirectory, ListedPaths, OsUser, ProofRequest, Wall, WallLayout, prove_wall,
};

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("supervise") => homing_processes::supervise(),
        Some("probe-wall") => homing_processes::wall::probe_wall(),
        Some("prove") => prove(),
        _ => ExitCode::FAILURE,
    }
}

/// `prove PLACE KIND TRIES [--team] [--list | --hide] [PERSON=USER]…`: proves a wall of that kind around the data directory PLACE,
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
    let proving = ProofRequest {
        exe: std::env::current_exe().expect("we were started from somewhere"),
        locks: format!("{place}/attempts").into(),
        wall: Arc::new(Wall { kind, layout, listed, data: Some(data), people, ..Wall::default() }),
        server: std::process::id().cast_signed(),
        tries: tries.parse().expect("a number"),
        must: is_said("--team"),
    };
    let proof = prove_wall(&proving).await;
    for words in proof.words() {
        println!("{words}");
    }
    if proof.proved { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
