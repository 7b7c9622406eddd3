//! The suite every store must pass. Reopening is what a restart does: close the files, take the lock again.

use crate::world::open;
use homing_store_sqlite::SqliteStore;
use rusqlite::Connection;
use store::conformance::Fixture;
use tempfile::TempDir;

struct OnDisk {
    store: Option<SqliteStore>,
    dir: TempDir,
}

impl OnDisk {
    fn db(&self) -> Connection {
        let db = Connection::open(self.dir.path().join("homing.db")).unwrap();
        db.busy_timeout(std::time::Duration::from_secs(5)).unwrap();
        db
    }
}

impl Fixture for OnDisk {
    type Store = SqliteStore;

    async fn fresh() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self { store: Some(open(dir.path()).unwrap()), dir }
    }

    fn store(&self) -> &SqliteStore {
        self.store.as_ref().unwrap()
    }

    async fn reopen(mut self) -> Self {
        drop(self.store.take());
        self.store = Some(open(self.dir.path()).unwrap());
        self
    }

    async fn tamper(&self, org: kernel::OrgId, entry: u64) {
        let changed = self.db().execute(
            "UPDATE audit SET verb = 'tampered' WHERE number = ?1 AND oid = (SELECT oid FROM orgs WHERE org = ?2)",
            rusqlite::params![entry as i64, org.bits().to_be_bytes()],
        );
        assert_eq!(changed.unwrap(), 1);
    }

    async fn spoil_checkpoints(&self) {
        self.db().execute("UPDATE checkpoints SET facts = 'spoiled'", []).unwrap();
    }
}

store::conformance!(OnDisk);
