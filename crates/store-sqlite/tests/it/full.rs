//! A disk that is really full: a small file system of our own, where we may make one.

use crate::world::*;
use std::path::{Path, PathBuf};
use std::process::Command;
use store::{Appending, StoreError};
use store::{Log, Views};

/// A file system of two megabytes, gone when this is.
struct Small {
    at: PathBuf,
    _parent: tempfile::TempDir,
}

impl Small {
    fn mount() -> Option<Self> {
        let parent = tempfile::tempdir().unwrap();
        let at = parent.path().join("small");
        std::fs::create_dir(&at).unwrap();
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=2m", "tmpfs"]).arg(&at).output();
        mounted.is_ok_and(|output| output.status.success()).then_some(Self { at, _parent: parent })
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.at).status();
    }
}

fn fill(path: &Path) {
    use std::io::Write;
    let mut ballast = std::fs::File::create(path).unwrap();
    while ballast.write_all(&[0; 4_096]).is_ok() {}
}

#[tokio::test]
async fn a_full_disk_refuses_keeps_reading_and_recovers_without_a_restart() {
    let Some(small) = Small::mount() else {
        eprintln!("skipped: this user may not mount; the same is told on the shim in power.rs");
        return;
    };
    let data = small.at.join("data");
    let store = open(&data).unwrap();
    said(&store, first(session(1), 1)).await.unwrap();

    let mut after = 0;
    fill(&small.at.join("ballast"));
    // Something may still fit into what the log had been given.
    let refused = loop {
        match store.append(story(session(1), after, 30_000)).await {
            Ok(Appending::Done(at)) => after = at.0,
            other => break other,
        }
        assert!(after < 100, "it never got full");
    };
    assert!(matches!(refused, Err(StoreError::Full)), "{refused:?}");
    for number in 10..20 {
        match accept(&store, next(session(1), number)).await {
            Ok(_) | Err(StoreError::Full) => {}
            other => panic!("{other:?}"),
        }
    }
    let (_, row) = store.session(session(1)).await.unwrap().unwrap();
    assert_eq!(row.at.0, after, "reading goes on, and nothing of what was refused is there");

    std::fs::remove_file(small.at.join("ballast")).unwrap();
    said(&store, next(session(1), 30)).await.unwrap();
    let appended = store.append(story(session(1), after, 30_000)).await.unwrap();
    assert_eq!(appended, Appending::Done(kernel::Number(after + 1)));
    drop(store);
    let store = open(&data).unwrap();
    assert!(store.receipt(message(30)).await.unwrap().is_some());
    drop(store);
    assert_eq!(integrity(&data), "ok");
}
