//! Power cuts and failing disks: what was acknowledged is there afterwards, and nothing is poisoned for good.

use crate::shim::{self, Disk, lock};
use crate::world::*;
use homing_store_sqlite::{Rig, SqliteStore};
use kernel::Number;
use rusqlite::ffi;
use std::path::Path;
use std::sync::{Arc, Mutex};
use store::{Appending, Log, StoreError, Views, WriteOutcome};

/// Writers at once, so that commits carry several changes.
const WRITERS: u64 = 4;
/// Numbers from here on stand for facts, the ones below for messages.
const FACTS: u64 = 1 << 32;

pub(crate) fn rig(pragmas: &'static str) -> Rig {
    // The log is copied and begun anew every few commits, so that cuts fall into that, too.
    Rig { vfs: Some(shim::NAME), pragmas, copy_frames: Some(60) }
}

pub(crate) fn open_on_shim(dir: &Path, rig: Rig) -> SqliteStore {
    let mut options = options();
    options.rig = rig;
    SqliteStore::open(dir, &options).unwrap()
}

/// Messages and facts come in until the power fails.
async fn write_until_cut(store: Arc<SqliteStore>, disk: Arc<Mutex<Disk>>) {
    said(&store, first(session(1), 0)).await.unwrap();
    lock(&disk).acknowledge(0);
    let mut tasks: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (store, disk) = (store.clone(), disk.clone());
            tokio::spawn(async move {
                let mut number = 1 + writer;
                while !lock(&disk).is_cut() {
                    said(&store, next(session(1), number)).await.unwrap();
                    lock(&disk).acknowledge(number);
                    number += WRITERS;
                }
            })
        })
        .collect();
    tasks.push(tokio::spawn(async move {
        let mut after = 0;
        while !lock(&disk).is_cut() {
            let bytes = (after as usize * 977) % 20_000;
            let appended = store.append(story(session(1), after, bytes)).await.unwrap();
            assert_eq!(appended, Appending::Done(Number(after + 1)));
            after += 1;
            lock(&disk).acknowledge(FACTS + after);
        }
    }));
    for task in tasks {
        task.await.unwrap();
    }
}

/// The missing ones, of all that was acknowledged before the cut.
async fn missing_after_cut(seed: u64, pragmas: &'static str) -> Result<Vec<u64>, String> {
    cut(seed, pragmas).await.map(|(missing, _)| missing)
}

/// The same, and whether the cut came after the log had begun to be copied into the database.
async fn cut(seed: u64, pragmas: &'static str) -> Result<(Vec<u64>, bool), String> {
    let before = tempfile::tempdir().unwrap();
    drop(open(before.path()).unwrap());
    let disk = Disk::watch(before.path(), seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let store = Arc::new(open_on_shim(before.path(), rig(pragmas)));
    lock(&disk).cut_after(20 + seed * 37 % 1_500);
    write_until_cut(store, disk.clone()).await;

    let after = tempfile::tempdir().unwrap();
    lock(&disk).write_left(after.path());
    let acknowledged = lock(&disk).acknowledged.clone();
    let store = open(after.path()).map_err(|error| format!("not opened: {error}"))?;
    let failed = |error: StoreError| format!("not read: {error}");
    let last = store.session(session(1)).await.map_err(failed)?.map_or(0, |(_, row)| row.at.0);
    let mut missing = Vec::new();
    for acknowledged in &acknowledged {
        let there = match acknowledged.checked_sub(FACTS) {
            Some(number) => number <= last,
            None => {
                store.words(message(*acknowledged)).await.map_err(failed)?.is_some()
                    && store.receipt(message(*acknowledged)).await.map_err(failed)?.is_some()
            }
        };
        if !there {
            missing.push(*acknowledged);
        }
    }
    let facts = store.facts(session(1), Number(0), usize::MAX, usize::MAX).await.map_err(failed)?;
    if facts.len() as u64 != last {
        return Err(format!("{} of {last} facts", facts.len()));
    }
    drop(store);
    match integrity(after.path()) {
        ok if ok == "ok" => Ok((missing, lock(&disk).copied)),
        damage => Err(damage),
    }
}

/// The number of seeds a run tries; the long run may ask for more.
pub(crate) fn seeds() -> u64 {
    from_env("HOMING_POWER_SEEDS", 40)
}

fn from_env(name: &str, or: u64) -> u64 {
    std::env::var(name).map_or(or, |value| value.parse().expect("a number"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_in_a_power_cut() {
    let mut copied = 0;
    for seed in 1..=seeds() {
        let (missing, was_copied) =
            cut(seed, "").await.unwrap_or_else(|damage| panic!("seed {seed}: {damage}"));
        assert_eq!(missing, Vec::<u64>::new(), "seed {seed}");
        copied += u64::from(was_copied);
    }
    assert!(copied > seeds() / 4, "only {copied} cuts fell into or after copying the log");
}

/// The planted bugs: were this test's disk too kind, it would not see them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_does_not_sync_is_found_out() {
    for pragmas in ["PRAGMA synchronous = OFF", "PRAGMA synchronous = NORMAL"] {
        let mut found = None;
        for seed in 1..=seeds() {
            if missing_after_cut(seed, pragmas).await != Ok(vec![]) {
                found = Some(seed);
                break;
            }
        }
        assert!(found.is_some(), "{pragmas} was not found out");
        println!("{pragmas}: found out by seed {}", found.unwrap());
    }
}

async fn store_on_shim() -> (tempfile::TempDir, Arc<Mutex<Disk>>, SqliteStore) {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()).unwrap());
    let disk = Disk::watch(dir.path(), 1);
    let store = open_on_shim(dir.path(), rig(""));
    said(&store, first(session(1), 1)).await.unwrap();
    (dir, disk, store)
}

/// Tells a story twice: to the thread that writes, and to a caller who may commit by themselves.
fn both_ways<F: Future<Output = ()>>(story: impl Fn() -> F) {
    let mut runtimes =
        [tokio::runtime::Builder::new_current_thread(), tokio::runtime::Builder::new_multi_thread()];
    for runtime in &mut runtimes {
        runtime.enable_all().build().unwrap().block_on(story());
    }
}

#[test]
fn a_commit_that_fails_is_unknown_and_the_store_goes_on() {
    both_ways(commit_that_fails);
}

async fn commit_that_fails() {
    let (dir, disk, store) = store_on_shim().await;
    lock(&disk).failing_syncs = 1;
    let answer = accept(&store, next(session(1), 2)).await;
    assert!(matches!(answer, Err(StoreError::Unknown(_))), "{answer:?}");

    // Looked up by its id it is there or it is not, and the same wish again makes exactly one of it.
    let there = store.receipt(message(2)).await.unwrap().is_some();
    match accept(&store, next(session(1), 2)).await.unwrap() {
        WriteOutcome::Done(_) => assert!(!there),
        WriteOutcome::Repeated(_) => assert!(there),
        other => panic!("{other:?}"),
    }
    said(&store, next(session(1), 3)).await.unwrap();
    drop(store);
    let store = open(dir.path()).unwrap();
    assert_eq!(store.inbox(session(1), 10).await.unwrap().len(), 3);
    assert_eq!(store.session(session(1)).await.unwrap().unwrap().1.pending, 3);
}

#[test]
fn a_disk_that_fails_for_a_while_poisons_nothing() {
    both_ways(disk_that_fails);
}

async fn disk_that_fails() {
    let (_dir, disk, store) = store_on_shim().await;
    for code in [ffi::SQLITE_IOERR_WRITE, ffi::SQLITE_IOERR] {
        lock(&disk).write_says = Some(code);
        for number in 10..13 {
            let answer = accept(&store, next(session(1), number)).await;
            assert!(
                matches!(answer, Err(StoreError::Unknown(_) | StoreError::Unavailable(_))),
                "{number}: {answer:?}"
            );
        }
        assert!(store.receipt(message(1)).await.unwrap().is_some(), "reading goes on");
        lock(&disk).write_says = None;
        for number in 10..13 {
            assert!(store.receipt(message(number)).await.unwrap().is_none());
        }
    }
    said(&store, next(session(1), 10)).await.unwrap();
    assert_eq!(store.inbox(session(1), 10).await.unwrap().len(), 2);
}

#[test]
fn without_room_nothing_is_changed_and_with_room_it_goes_on() {
    both_ways(without_room);
}

async fn without_room() {
    let (_dir, disk, store) = store_on_shim().await;
    lock(&disk).write_says = Some(ffi::SQLITE_FULL);
    for number in 2..5 {
        let answer = accept(&store, next(session(1), number)).await;
        assert!(matches!(answer, Err(StoreError::Full)), "{answer:?}");
        assert!(store.receipt(message(number)).await.unwrap().is_none());
    }
    lock(&disk).write_says = None;
    said(&store, next(session(1), 2)).await.unwrap();
    assert_eq!(store.inbox(session(1), 10).await.unwrap().len(), 2);
}

#[test]
fn a_commit_is_handed_to_the_log_in_one_write() {
    both_ways(one_write);
}

async fn one_write() {
    let (_dir, disk, store) = store_on_shim().await;
    // What the first messages bring along (pages that are split, the log that begins anew) is over.
    for number in 2..10 {
        said(&store, next(session(1), number)).await.unwrap();
    }
    let before = lock(&disk).log_writes;
    for number in 10..20 {
        said(&store, next(session(1), number)).await.unwrap();
    }
    let writes = lock(&disk).log_writes - before;
    // One for each, and one more for each time that the log begins anew.
    assert!((10..=14).contains(&writes), "{writes} writes for ten commits");
}
