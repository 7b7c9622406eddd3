//! Carrying a store elsewhere and back.

use crate::world::*;
use homing_store_sqlite::{CopyError, OpenError, backup, restore};
use kernel::Moment;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use store::{Store, Views};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_under_load_is_the_store_at_one_moment() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(open(dir.path()).unwrap());
    said(&store, first(session(1), 0)).await.unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let writer = tokio::spawn({
        let (store, stop) = (store.clone(), stop.clone());
        async move {
            let mut number = 1;
            while !stop.load(Ordering::Relaxed) {
                said(&store, next(session(1), number)).await.unwrap();
                number += 1;
            }
            number
        }
    });
    for round in 0..5 {
        let to = dir.path().join(format!("backup-{round}"));
        let least = store.session(session(1)).await.unwrap().unwrap().1.pending;
        let from = dir.path().to_owned();
        let target = to.clone();
        tokio::task::spawn_blocking(move || backup(&from, &target)).await.unwrap().unwrap();
        let most = store.session(session(1)).await.unwrap().unwrap().1.pending;
        assert_eq!(fs::metadata(&to).unwrap().permissions().mode() & 0o777, 0o600);
        let db = rusqlite::Connection::open(&to).unwrap();
        let count = |sql: &str| db.query_row(sql, [], |row| row.get::<_, u32>(0)).unwrap();
        let messages = count("SELECT count(*) FROM messages");
        assert!((least..=most).contains(&messages), "{least} <= {messages} <= {most}");
        for table in ["inbox", "keys", "audit", "bodies"] {
            assert_eq!(count(&format!("SELECT count(*) FROM {table}")), messages, "{table}");
        }
        assert_eq!(count("SELECT pending FROM sessions"), messages);
    }
    stop.store(true, Ordering::Relaxed);
    assert!(writer.await.unwrap() > 1);
}

#[tokio::test]
async fn a_backup_overwrites_nothing_and_leaves_no_half() {
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("there");
    assert!(matches!(backup(dir.path(), &to), Err(CopyError::NotThere(_))));
    let store = open(dir.path()).unwrap();
    said(&store, first(session(1), 1)).await.unwrap();
    fs::write(&to, b"mine").unwrap();
    assert!(matches!(backup(dir.path(), &to), Err(CopyError::Exists(_))));
    assert_eq!(fs::read(&to).unwrap(), b"mine");
    assert!(backup(dir.path(), &dir.path().join("no/such/place")).is_err());
    let names: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.iter().all(|name| !name.to_string_lossy().contains(".part")), "{names:?}");
}

#[tokio::test]
async fn a_restore_brings_the_backup_back_and_keeps_what_it_replaces() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("backup");
    let data = dir.path().join("data");
    let store = open(&data).unwrap();
    said(&store, first(session(1), 1)).await.unwrap();
    backup(&data, &file).unwrap();
    said(&store, next(session(1), 2)).await.unwrap();

    let Err(CopyError::Unusable(OpenError::Held(holder))) = restore(&file, &data, Moment(77)) else {
        panic!("a running server was replaced")
    };
    assert_eq!(holder.node, Some(NODE));
    drop(store);
    for _ in 0..3 {
        drop(open(&data).unwrap());
    }
    let term = open(&data).unwrap().node().term;

    let kept = restore(&file, &data, Moment(77)).unwrap().kept.unwrap();
    let store = open(&data).unwrap();
    assert!(store.receipt(message(1)).await.unwrap().is_some());
    assert!(store.receipt(message(2)).await.unwrap().is_none());
    assert!(store.node().term > term, "terms go on growing");
    drop(store);
    assert_eq!(integrity(&data), "ok");

    // What was replaced is whole, too.
    let other = dir.path().join("other");
    restore(&kept, &other, Moment(78)).unwrap();
    assert!(open(&other).unwrap().receipt(message(2)).await.unwrap().is_some());
}

#[tokio::test]
async fn a_bad_backup_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let store = open(&data).unwrap();
    said(&store, first(session(1), 1)).await.unwrap();
    let good = dir.path().join("good");
    backup(&data, &good).unwrap();
    drop(store);
    let before = fs::read(data.join("homing.db")).unwrap();

    let whole = fs::read(&good).unwrap();
    let bad = dir.path().join("bad");
    let damages: [fn(&mut Vec<u8>); 3] =
        [|file| file.truncate(file.len() / 2), |file| file.clear(), |file| file[8_192..12_288].fill(0xa5)];
    for damage in damages {
        let mut file = whole.clone();
        damage(&mut file);
        fs::write(&bad, &file).unwrap();
        let error = restore(&bad, &data, Moment(5)).unwrap_err();
        assert!(matches!(error, CopyError::Unusable(OpenError::Damaged(_))), "{error}");
        assert!(fs::read(data.join("homing.db")).unwrap() == before);
    }
    assert!(matches!(restore(&dir.path().join("none"), &data, Moment(5)), Err(CopyError::NotThere(_))));
    let names = fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    assert_eq!(names, ["homing.db", "lock"]);
}
