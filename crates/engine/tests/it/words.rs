//! The room that words take on the disk: a turn that says more than its owner has room for ends, and says which bound it was.

use crate::world::{World, conversation, state_and_why};
use engine::{Limits, ReceiptState, StoredEntry, WayInError};
use kernel::{Policy, Role, SessionId, To};
use store::{MemoryStore, People};

const ROOM: u64 = 1 << 20;

fn notices(world: &World, session: SessionId) -> Vec<String> {
    let facts = world.store.snapshot().facts.remove(&session).unwrap();
    let told = facts.into_iter().filter_map(|fact| match fact.entry {
        StoredEntry::Story { kind, body: Some(body), .. } if kind == "notice" => {
            Some(String::from_utf8_lossy(&body).into_owned())
        }
        _ => None,
    });
    told.collect()
}

async fn used(store: &MemoryStore, by: &kernel::Principal) -> u64 {
    store.disk_use(by.org, by.person).await.unwrap().words_bytes
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_says_more_than_there_is_room_for_fails_with_the_name_of_the_bound() {
    let limits = Limits { words_bytes_per_person_max: ROOM, ..Limits::default() };
    let world = World::with(limits, Policy::default()).await;
    let bob = world.let_in("bob", Role::Member).await;
    let flood = world.say(To::New, "!flood 8000000").await.unwrap().accepted;
    let view = world.settled(flood.message).await;
    assert_eq!(state_and_why(&view), (ReceiptState::Failed, Some("refused")));
    let told = notices(&world, flood.session);
    assert_eq!(told.len(), 1, "once: {told:?}");
    assert!(told[0].contains("limits.words_bytes_per_person_max allows 1.0 MiB"), "{told:?}");
    let used = used(&world.store, &world.me).await;
    assert!(used > ROOM / 2 && used < ROOM + 64 * 1024, "it ends at the bound: {used}");
    // What would not fit is refused, wherever it goes, and leaves a trace; nothing else is changed.
    let much = "x".repeat(400_000);
    for to in [To::Session(flood.session), To::New, conversation("other")] {
        let refused = world.say(to, &much).await.unwrap_err();
        assert_eq!(refused.code(), "too_much_on_disk");
        assert!(matches!(refused, WayInError::TooManyWords { limit: ROOM, .. }), "{refused}");
    }
    assert_eq!(world.store.disk_use(world.me.org, world.me.person).await.unwrap().words_bytes, used);
    let refused = world.store.snapshot().audit.into_iter().filter_map(|row| row.refused);
    assert_eq!(refused.collect::<Vec<_>>(), ["too_much_on_disk"; 3]);
    // Others have room of their own.
    let theirs = world.say_as(&bob, To::New, &much).await.unwrap().accepted;
    world.engine.views().receipt(&bob, theirs.message).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_which_the_end_does_not_fit_is_none() {
    let limits = Limits { words_bytes_per_person_max: 6_000, ..Limits::default() };
    let world = World::with(limits, Policy::default()).await;
    let said = world.say(To::New, "!flood 6000").await.unwrap().accepted;
    let view = world.settled(said.message).await;
    assert_eq!(state_and_why(&view), (ReceiptState::Failed, Some("refused")));
    assert_eq!(notices(&world, said.session).len(), 1);
}
