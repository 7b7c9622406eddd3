//! The suite every store must pass. Reopening is what a restart does: close the files, take the lock again.

use crate::world::open;
use homing_store_sqlite::SqliteStore;
use kernel::{Grant, PersonId, SessionId};
use rusqlite::{Connection, params};
use store::conformance::Fixture;
use store::record::grant_word;
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

    async fn audit_len(&self) -> usize {
        let count: u32 = self.db().query_row("SELECT count(*) FROM audit", [], |row| row.get(0)).unwrap();
        count as usize
    }

    async fn grant(&self, session: SessionId, person: PersonId, grant: Option<Grant>) {
        let (db, session, person) = (self.db(), session.bits().to_be_bytes(), person.bits().to_be_bytes());
        let sid: i64 =
            db.query_row("SELECT sid FROM sessions WHERE id = ?1", [session], |row| row.get(0)).unwrap();
        match grant {
            Some(grant) => db.execute(
                "INSERT OR REPLACE INTO grants (person, sid, granted) VALUES (?1, ?2, ?3)",
                params![person, sid, grant_word(grant)],
            ),
            None => db.execute("DELETE FROM grants WHERE person = ?1 AND sid = ?2", params![person, sid]),
        }
        .unwrap();
        db.execute("UPDATE sessions SET revision = revision + 1 WHERE sid = ?1", [sid]).unwrap();
    }

    async fn disable(&self, person: PersonId) {
        let row = [person.bits().to_be_bytes()];
        self.db().execute("INSERT OR IGNORE INTO disabled (person) VALUES (?1)", row).unwrap();
    }

    async fn spoil_checkpoints(&self) {
        self.db().execute("UPDATE checkpoints SET facts = 'spoiled'", []).unwrap();
    }
}

store::conformance!(OnDisk);
