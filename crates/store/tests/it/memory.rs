//! The memory store passes the suite that every store must pass.

use kernel::NodeId;
use store::MemoryStore;
use store::conformance::Fixture;

struct Memory(MemoryStore);

impl Fixture for Memory {
    type Store = MemoryStore;

    async fn fresh() -> Self {
        Self(MemoryStore::new(NodeId::from_bits(1)))
    }

    fn store(&self) -> &MemoryStore {
        &self.0
    }

    async fn reopen(self) -> Self {
        Self(self.0.reopen())
    }

    async fn tamper(&self, org: kernel::OrgId, entry: u64) {
        self.0.tamper(org, entry);
    }

    async fn spoil_checkpoints(&self) {
        self.0.drop_checkpoints();
    }
}

store::conformance!(Memory);

/// A promise that nobody put into the macro would be tested by no store.
#[test]
fn every_promise_is_in_the_suite() {
    let listed = include_str!("../../src/conformance/mod.rs");
    let (_, listed) = listed.split_once("macro_rules! conformance").expect("the macro is in this file");
    let promises = [
        include_str!("../../src/conformance/accept.rs"),
        include_str!("../../src/conformance/append.rs"),
        include_str!("../../src/conformance/chain.rs"),
        include_str!("../../src/conformance/grants.rs"),
        include_str!("../../src/conformance/life.rs"),
        include_str!("../../src/conformance/limits.rs"),
        include_str!("../../src/conformance/outbox.rs"),
        include_str!("../../src/conformance/people.rs"),
        include_str!("../../src/conformance/reading.rs"),
        include_str!("../../src/conformance/rechecks.rs"),
        include_str!("../../src/conformance/requests.rs"),
        include_str!("../../src/conformance/rules.rs"),
        include_str!("../../src/conformance/scope.rs"),
        include_str!("../../src/conformance/time.rs"),
        include_str!("../../src/conformance/tokens.rs"),
    ];
    let words: Vec<_> = listed.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    for file in promises {
        for promise in file.lines().filter_map(|line| line.strip_prefix("pub async fn ")) {
            let name = promise.split('<').next().expect("split gives at least one");
            assert!(words.contains(&name), "{name} is not in store::conformance!");
        }
    }
}
