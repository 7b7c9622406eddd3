//! Many at once: one commit carries many changes, and one that fails takes nobody along.

use crate::world::*;
use std::sync::Arc;
use store::{Log, Store, StoreError, Views, WriteOutcome};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_at_once_share_commits_and_none_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(open(dir.path()).unwrap());
    said(&store, first(session(1), 0)).await.unwrap();
    let before = store.gauges();
    let tasks: Vec<_> = (1..=1_000)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move { said(&store, next(session(1), number)).await.unwrap() })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let after = store.gauges();
    assert_eq!(after.changes - before.changes, 1_000);
    assert!(after.commits - before.commits < 250, "{} commits", after.commits - before.commits);
    let inbox = store.inbox(session(1), 2_000).await.unwrap();
    assert_eq!(inbox.len(), 1_001);
    assert!(inbox.windows(2).all(|pair| pair[0].number < pair[1].number));
    let (_, row) = store.session(session(1)).await.unwrap().unwrap();
    assert_eq!(row.pending, 1_001);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_fails_takes_nobody_in_its_group_along() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(open(dir.path()).unwrap());
    said(&store, first(session(1), 0)).await.unwrap();
    let tasks: Vec<_> = (1..=300u64)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move {
                // Every third one names a message that is there already: its session is made, then it fails.
                if number % 3 == 0 {
                    return accept(&store, first_with(session(1_000 + number), 0, |wish| wish.key = None))
                        .await;
                }
                accept(&store, next(session(1), number)).await
            })
        })
        .collect();
    let (mut done, mut failed) = (0, 0);
    for task in tasks {
        match task.await.unwrap() {
            Ok(WriteOutcome::Done(_)) => done += 1,
            Err(StoreError::Unavailable(_)) => failed += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((done, failed), (200, 100));
    for number in 1..=300 {
        assert_eq!(store.session(session(1_000 + number)).await.unwrap(), None);
    }
    assert_eq!(store.inbox(session(1), 1_000).await.unwrap().len(), 201);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_stays_short_however_much_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(open(dir.path()).unwrap());
    said(&store, first(session(1), 1)).await.unwrap();
    for after in 0..1_200 {
        store.append(story(session(1), after, 64 << 10)).await.unwrap();
    }
    let log = std::fs::metadata(dir.path().join("homing.db-wal")).unwrap().len();
    assert!(log < 40 << 20, "the log has {log} bytes after 75 MiB");
}
