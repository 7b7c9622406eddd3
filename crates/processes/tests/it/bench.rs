//! A place for one test: a directory with the locks of its trees, and eyes for what the lock of one says.

use std::path::{Path, PathBuf};
use std::time::Duration;

use kernel::{GroundPath, SessionId, TreeName};
use tempfile::TempDir;

/// The longest that a test waits for one thing.
pub(crate) const WAIT: Duration = Duration::from_secs(20);

pub(crate) struct Bench {
    pub(crate) place: TempDir,
    pub(crate) tree: TreeName,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(place.path().join("locks")).unwrap();
        let session = SessionId::from_bits(uuid::Uuid::now_v7().as_u128());
        Self { place, tree: TreeName::of(session) }
    }

    pub(crate) fn locks(&self) -> PathBuf {
        self.place.path().join("locks")
    }

    pub(crate) fn directory(&self) -> PathBuf {
        self.place.path().canonicalize().unwrap()
    }

    /// The supervisor of the tree, by its lock file. While that is written, what is left of the record before stands behind the
    /// new one.
    pub(crate) fn supervisor(&self) -> i32 {
        self.holder()["pid"].as_i64().unwrap() as i32
    }

    /// The record in its lock file.
    pub(crate) fn holder(&self) -> serde_json::Value {
        let text = std::fs::read_to_string(self.locks().join(format!("{}.lock", self.tree))).unwrap();
        let mut records = serde_json::Deserializer::from_str(&text).into_iter::<serde_json::Value>();
        records.next().unwrap().unwrap()
    }
}

/// Where an agent is to run.
pub(crate) fn ground(path: impl AsRef<Path>) -> GroundPath {
    path.as_ref().to_str().unwrap().into()
}

/// The program that has `supervise`.
pub(crate) fn supervising() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_homing-supervising"))
}
