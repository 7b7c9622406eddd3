//! `kill -9` at random moments: everything that was acknowledged is there, once, and in order; and no change of who may do
//! what is there without its audit entry.

use crate::changes::{CHANGES, begin, each_change_has_its_entry, make_numbered};
use crate::world::*;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use store::{Log, Views};

/// Set in the child's environment: where it writes, and which message it begins with.
const DIR: &str = "HOMING_TEST_KILL_DIR";
const FROM: &str = "HOMING_TEST_KILL_FROM";
const ROUNDS: u64 = 12;
const WRITERS: u64 = 16;

/// Not a test but the child of one: writes and says what was acknowledged, until it is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child_that_writes_until_it_is_killed() {
    let Ok(dir) = std::env::var(DIR) else { return };
    let from: u64 = std::env::var(FROM).unwrap().parse().unwrap();
    let store = Arc::new(open(Path::new(&dir)).unwrap());
    if from == 0 {
        said(&store, first(session(1), 0)).await.unwrap();
    }
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let store = store.clone();
            tokio::spawn(async move {
                for number in (from + 1 + writer..).step_by(WRITERS as usize) {
                    said(&store, next(session(1), number)).await.unwrap();
                    // One write each, so that a line is whole or not there.
                    std::io::stdout().write_all(format!("\nacknowledged {number}\n").as_bytes()).unwrap();
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
}

/// The child of another one: changes who may do what, until it is killed or has made every change.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child_that_changes_until_it_is_killed() {
    let Ok(dir) = std::env::var(DIR) else { return };
    let from: u64 = std::env::var(FROM).unwrap().parse().unwrap();
    let store = open(Path::new(&dir)).unwrap();
    for number in from..CHANGES {
        make_numbered(&store, number).await.unwrap();
        std::io::stdout().write_all(format!("\nacknowledged {number}\n").as_bytes()).unwrap();
    }
}

const WRITES: &str = "kill::child_that_writes_until_it_is_killed";
const CHANGES_PEOPLE: &str = "kill::child_that_changes_until_it_is_killed";

fn child(name: &str, dir: &Path, from: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(DIR, dir)
        .env(FROM, from.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The words of the child before it was killed, so many milliseconds after its first word.
fn killed_after(mut child: Child, ms: u64) -> Vec<u64> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut numbers = lines
        .map_while(Result::ok)
        .filter_map(|line| line.strip_prefix("acknowledged ")?.parse().ok())
        .peekable();
    assert!(numbers.peek().is_some(), "the child wrote nothing");
    let killer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(ms));
        child.kill().unwrap();
        child.wait().unwrap();
    });
    let said = numbers.collect();
    killer.join().unwrap();
    said
}

#[tokio::test]
async fn everything_acknowledged_before_a_kill_is_there_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut acknowledged = vec![];
    let mut from = 0;
    for round in 0..ROUNDS {
        acknowledged.extend(killed_after(child(WRITES, dir.path(), from), round * 17 % 90));
        let store = open(dir.path()).unwrap();
        let inbox = store.inbox(session(1), usize::MAX).await.unwrap();
        let there: Vec<_> = inbox
            .iter()
            .map(|row| match &row.item {
                store::InboxItem::Say { message, .. } => message.bits() as u64,
                other => panic!("{other:?}"),
            })
            .collect();
        let mut once = there.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), there.len(), "round {round}: something is there twice");
        for number in &acknowledged {
            assert!(once.binary_search(number).is_ok(), "round {round}: {number} is lost");
        }
        // Each writer waits for its answer before it says the next thing: so its messages are in order.
        for writer in 0..WRITERS {
            let new = there.iter().filter(|number| **number > from);
            let own: Vec<_> = new.filter(|number| (*number - from - 1) % WRITERS == writer).collect();
            assert!(own.windows(2).all(|pair| pair[0] < pair[1]), "round {round}: out of order");
        }
        let (_, row) = store.session(session(1)).await.unwrap().unwrap();
        assert_eq!(row.pending as usize, there.len());
        from = once.last().copied().unwrap_or(0);
    }
    assert_eq!(integrity(dir.path()), "ok");
    println!("{} acknowledged over {ROUNDS} kills", acknowledged.len());
}

#[tokio::test]
async fn a_kill_leaves_no_change_without_its_entry_and_no_entry_without_its_change() {
    let dir = tempfile::tempdir().unwrap();
    begin(&open(dir.path()).unwrap()).await.unwrap();
    let (mut there, mut round) = (0, 0);
    while there < CHANGES {
        let acknowledged = killed_after(child(CHANGES_PEOPLE, dir.path(), there), round * 7 % 40);
        drop(open(dir.path()).unwrap());
        let now = each_change_has_its_entry(dir.path());
        let last = acknowledged.last().copied().unwrap_or(there);
        assert!(now > last, "round {round}: {last} was acknowledged, and only {now} are there");
        (there, round) = (now, round + 1);
    }
    assert_eq!(integrity(dir.path()), "ok");
    println!("{CHANGES} changes over {round} kills");
}
