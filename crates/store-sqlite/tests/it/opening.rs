//! PersonRef may open a directory, and what is refused untouched.

use crate::world::*;
use homing_store_sqlite::{OpenError, Options, SqliteStore};
use kernel::{Moment, NodeId};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use store::{Nodes, Store};

fn filled(dir: &Path) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let store = open(dir).unwrap();
    runtime.block_on(async {
        said(&store, first(session(1), 1)).await.unwrap();
        for number in 2..40 {
            said(&store, next(session(1), number)).await.unwrap();
        }
    });
}

/// Every file in the directory but the lock, whose words are not part of what is stored.
fn bytes(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(dir).unwrap().map(Result::unwrap).filter(|entry| entry.file_name() != "lock");
    entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
}

/// Opens the directory, which must be refused, and checks that nothing in it was changed.
fn refused(dir: &Path) -> OpenError {
    let before = bytes(dir);
    let Err(error) = open(dir) else { panic!("it was opened") };
    assert_eq!(before.keys().collect::<Vec<_>>(), bytes(dir).keys().collect::<Vec<_>>());
    assert!(before == bytes(dir), "a file was changed");
    error
}

/// It does not wait for the first one, which stays.
#[tokio::test]
async fn a_second_server_is_refused_at_once_and_told_who_has_it_since_when() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).unwrap();
    store.announce("http://127.0.0.1:4747".into()).await.unwrap();
    let second = Options::new(NodeId::from_bits(8), "elsewhere", Moment(9_000));
    let Err(OpenError::Held(holder)) = SqliteStore::open(dir.path(), &second) else { panic!("not held") };
    assert_eq!(holder.node, Some(NODE));
    assert_eq!(holder.host, "testhost");
    assert_eq!(holder.pid, std::process::id());
    assert_eq!(holder.since, Moment(1_000));
    assert_eq!(holder.url.as_deref(), Some("http://127.0.0.1:4747"));
    let words = OpenError::Held(holder).to_string();
    assert!(words.contains("testhost") && words.contains(&NODE.to_string()), "{words}");
    drop(store);
    open(dir.path()).unwrap();
}

#[test]
fn each_start_has_a_higher_term_with_room_for_keepers_below() {
    let dir = tempfile::tempdir().unwrap();
    for start in 1..4u64 {
        assert_eq!(open(dir.path()).unwrap().node().term.0, start << 32);
    }
}

#[test]
fn a_file_from_a_newer_version_is_refused_untouched() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path());
    let db = rusqlite::Connection::open(dir.path().join("homing.db")).unwrap();
    db.pragma_update(None, "user_version", 999).unwrap();
    drop(db);
    assert!(matches!(refused(dir.path()), OpenError::Newer { found: 999, known: 23 }));
}

#[test]
fn a_newer_version_that_is_still_in_the_log_is_seen() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path());
    let db = rusqlite::Connection::open(dir.path().join("homing.db")).unwrap();
    db.execute_batch("PRAGMA wal_autocheckpoint = 0; PRAGMA user_version = 999").unwrap();
    let copy = tempfile::tempdir().unwrap();
    for name in ["homing.db", "homing.db-wal"] {
        fs::copy(dir.path().join(name), copy.path().join(name)).unwrap();
    }
    assert!(matches!(refused(copy.path()), OpenError::Newer { found: 999, .. }));
}

#[test]
fn a_damaged_file_is_refused_untouched() {
    let pristine = tempfile::tempdir().unwrap();
    filled(pristine.path());
    let whole = fs::read(pristine.path().join("homing.db")).unwrap();
    type Damage = fn(&mut Vec<u8>);
    let damages: [(&str, Damage); 6] = [
        ("empty", |file| file.clear()),
        ("a header only", |file| file.truncate(100)),
        ("cut in half", |file| file.truncate(file.len() / 2)),
        ("other magic", |file| file[..16].copy_from_slice(b"definitely not a")),
        ("a garbled schema", |file| file[100..4_096].fill(0xa5)),
        ("a garbled page", |file| file[3 * 4_096..4 * 4_096].fill(0xa5)),
    ];
    for (name, damage) in damages {
        let dir = tempfile::tempdir().unwrap();
        let mut file = whole.clone();
        damage(&mut file);
        fs::write(dir.path().join("homing.db"), &file).unwrap();
        let error = refused(dir.path());
        assert!(matches!(error, OpenError::Damaged(_)), "{name}: {error}");
    }
}

#[test]
fn another_programs_database_is_refused_untouched() {
    let dir = tempfile::tempdir().unwrap();
    let db = rusqlite::Connection::open(dir.path().join("homing.db")).unwrap();
    db.execute_batch("CREATE TABLE theirs (a)").unwrap();
    drop(db);
    assert!(matches!(refused(dir.path()), OpenError::Damaged(_)));
}

#[test]
fn a_log_without_its_database_is_damage_and_not_a_new_store() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("homing.db-wal"), b"something").unwrap();
    assert!(matches!(refused(dir.path()), OpenError::Damaged(_)));
}

#[test]
fn a_start_that_was_cut_off_while_it_made_the_file_is_made_good() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("homing.db.new"), b"half a database").unwrap();
    filled(dir.path());
    assert_eq!(integrity(dir.path()), "ok");
    assert!(!dir.path().join("homing.db.new").exists());
}

#[test]
fn nobody_else_can_read_the_files() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("data");
    let store = open(&dir).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&dir), 0o700);
    for name in ["lock", "homing.db", "homing.db-wal", "homing.db-shm"] {
        assert_eq!(mode(&dir.join(name)), 0o600, "{name}");
    }
    drop(store);
}

#[test]
fn a_directory_that_others_can_read_is_closed_if_it_is_ours() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("data");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let is_at = |mode: u32| fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).unwrap();
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("homing.toml"), "").unwrap();
    for open_to in [0o755, 0o750, 0o701] {
        is_at(open_to);
        drop(open(&dir).unwrap());
        assert_eq!(mode(&dir), 0o700, "it was {open_to:o}");
    }
    // A directory with other things in it is nobody's to close but its owner's.
    let shared = parent.path().join("shared");
    fs::create_dir(&shared).unwrap();
    fs::write(shared.join("notes"), "").unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o755)).unwrap();
    let Err(error) = open(&shared) else { panic!("it was opened") };
    assert!(matches!(error, OpenError::Exposed { .. }), "{error}");
    assert_eq!((mode(&shared), fs::read_dir(&shared).unwrap().count()), (0o755, 1), "nothing was changed");
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o700)).unwrap();
    open(&shared).unwrap();
}
