//! Conversations from elsewhere come whole or not at all, and once.

use crate::disk::Lost;
use crate::world::{World, trace};
use engine::{Export, IfNew, Made, MessagePart, WayInError};
use kernel::{Fact, SessionId, To};
use std::collections::BTreeMap;
use store::StoredFact;

/// Another place, and a conversation of three turns from there.
async fn elsewhere() -> Export {
    let world = World::new().await;
    let session = world.talk(To::New, "one").await.row.session;
    for words in ["two", "!say 3 0"] {
        world.talk(To::Session(session), words).await;
    }
    // Nothing here may have the id that it has there.
    let far = SessionId::from_bits(u128::MAX);
    Export { session: far, ..world.engine.views().export(&world.me, session).await.unwrap() }
}

impl World {
    async fn import(&self, export: &Export, key: Option<&str>) -> Result<Made, WayInError> {
        self.engine.way_in().import(&self.me, export.clone(), IfNew::default(), [7; 32], trace(key)).await
    }

    /// The log of every session that there is.
    fn logs(&self) -> BTreeMap<SessionId, Vec<StoredFact>> {
        self.store.snapshot().facts
    }

    /// It is there with all of its turns, and with nothing that waits.
    async fn is_whole(&self, session: SessionId, turns: usize) {
        let rules = self.rules(session).await;
        let ended = rules.iter().filter(|fact| matches!(fact, Fact::TurnEnded { .. })).count();
        assert_eq!(ended, turns, "{rules:#?}");
        assert_eq!(self.logs().len(), 1, "and nothing else is");
        let snapshot = self.store.snapshot();
        assert!(snapshot.inbox.values().all(Vec::is_empty) && snapshot.claims.is_empty());
        assert_eq!(snapshot.receipts.len(), turns);
    }
}

#[tokio::test(start_paused = true)]
async fn an_import_whose_write_was_lost_left_nothing_and_can_be_asked_again() {
    let (export, world) = (elsewhere().await, World::new().await);
    *world.faults.loses_create.lock().unwrap() = Some(Lost::Write);
    let unclear = world.import(&export, Some("k")).await;
    assert!(unclear.is_err(), "{unclear:?}");
    assert!(world.logs().is_empty() && world.store.snapshot().receipts.is_empty());
    let made = world.import(&export, Some("k")).await.unwrap();
    assert!(!made.repeated);
    world.is_whole(made.session, 3).await;
}

#[tokio::test(start_paused = true)]
async fn an_import_whose_answer_was_lost_is_there_whole_and_once() {
    let export = elsewhere().await;
    for dies in [false, true] {
        let mut world = World::new().await;
        *world.faults.loses_create.lock().unwrap() = Some(Lost::Answer);
        let unclear = world.import(&export, Some("k")).await;
        assert!(unclear.is_err(), "{unclear:?}");
        if dies {
            world.crash().await;
        }
        let made = world.import(&export, Some("k")).await.unwrap();
        assert!(made.repeated, "it was made before");
        world.is_whole(made.session, 3).await;
        // It goes on from there, and the agent is told what was said.
        let answer = world.talk(To::Session(made.session), "four").await.answer.unwrap();
        assert!(answer.contains("> one") && answer.contains("> two") && answer.contains("four"), "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_conversation_comes_once_and_a_broken_one_not_at_all() {
    let (export, world) = (elsewhere().await, World::new().await);
    let backwards = Export { turns: export.turns.iter().rev().cloned().collect(), ..export.clone() };
    let mut silent = export.clone();
    silent.turns[2].said.clear();
    let mut alien = export.clone();
    alien.turns[1].story[0].kind = "launched".to_owned();
    let mut long = export.clone();
    long.turns[0].said[0].parts =
        vec![MessagePart::Text { text: "x".repeat(3 * engine::MESSAGE_TEXT_BYTES_MAX) }];
    for (broken, at) in [(backwards, 3), (silent, 4), (alien, 3), (long, 2)] {
        let refused = world.import(&broken, None).await;
        assert!(
            matches!(refused, Err(WayInError::BadExport { line, .. }) if line == at),
            "{at}: {refused:?}"
        );
        assert!(world.logs().is_empty() && world.store.snapshot().receipts.is_empty());
    }
    let made = world.import(&export, Some("k")).await.unwrap();
    let logs = world.logs();
    assert_eq!(world.import(&export, Some("k")).await, Ok(Made { repeated: true, ..made }));
    let again = world.import(&export, None).await;
    assert_eq!(again, Err(WayInError::AlreadyImported { session: made.session }));
    let own = Export { session: made.session, ..export };
    assert_eq!(world.import(&own, None).await, Err(WayInError::AlreadyImported { session: made.session }));
    assert_eq!(world.logs(), logs, "nothing was added");
    world.is_whole(made.session, 3).await;
}
