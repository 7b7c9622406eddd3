//! Promises about the room that words take: whose it is, when it is free again, and that there is no way past its bound.

use super::Fixture;
use super::import::bring;
use super::story::*;
use crate::*;
use bytes::Bytes;
use kernel::{Principal, Refusal, Request, To};

async fn used(store: &dyn Store, by: &Principal) -> u64 {
    store.disk_use(by.org, by.person).await.unwrap().words_bytes
}

fn room_of(words: &[u8]) -> u64 {
    words.len() as u64 + WORDS_ROW_BYTES
}

fn edit(n: u32, words: &'static str) -> NewRequest {
    let request = Request::Edit { message: msg(1), revision: 0 };
    NewRequest { words: Some(Bytes::from_static(words.as_bytes())), ..want(n, request) }
}

pub async fn words_count_for_the_owner_of_their_session_as_long_as_they_are_kept<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    open(store, 1).await;
    share(store, ses(1), &friend(), Some(kernel::Grant::Prompt)).await;
    say(store, &friend(), To::Session(ses(1)), line(2)).await;
    let mut room = room_of(&line(1).words()) + room_of(&line(2).words());
    assert_eq!((used(store, &me()).await, used(store, &friend()).await), (room, 0), "whose session it is");
    write(store, ses(1), vec![queued_by(2, friend().person), started(1, 1), attempt(1)]).await;
    written(store, told(append_to(store, ses(1)).await, 1, "text", b"{\"text\":\"hi\"}")).await;
    room += room_of(b"{\"text\":\"hi\"}");
    assert_eq!(used(store, &me()).await, room);
    // Both are kept until the keeper has said which.
    for (n, words) in [(1, "better"), (2, "worse")] {
        assert_eq!(ask_as(store, &me(), edit(n, words)).await, WriteOutcome::Done(waits(n, ses(1))));
        room += room_of(words.as_bytes());
    }
    assert_eq!(used(store, &me()).await, room);
    let mut both = drain(store, ses(1)).await;
    both.verdicts = vec![(req(1), Verdict::Done), (req(2), Verdict::Refused(Refusal::Changed))];
    written(store, both).await;
    room -= room_of(&line(1).words()) + room_of(b"worse");
    let on = on.reopen().await;
    let store = on.store();
    assert_eq!(used(store, &me()).await, room);
    // Another session of somebody else does not count here; one that was handed over counts where it went.
    say(store, &friend(), To::New, line(3)).await;
    let theirs = room_of(&line(3).words());
    assert_eq!((used(store, &me()).await, used(store, &friend()).await), (room, theirs));
    let totals = store.disk_totals().await.unwrap();
    assert_eq!(totals, DiskTotals { words_bytes: room + theirs, words_bytes_top: room });
    let over = PeopleChange::HandOver { session: ses(1), to: friend().person };
    assert_eq!(change(store, &me(), over).await, "done");
    assert_eq!(change(store, &friend(), accept_offer(ses(1))).await, "done");
    assert_eq!((used(store, &me()).await, used(store, &friend()).await), (0, room + theirs));
}

pub async fn words_for_which_there_is_no_room_are_refused_and_change_nothing<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    open(store, 1).await;
    let used = used(store, &me()).await;
    let one = room_of(&line(2).words());
    let (limit, more) = (used + one - 1, used + one);
    let refused = Rejection::TooManyWords { used, limit };
    let before = picture(&on).await;
    let full = IncomingMessage { words_bytes_max: limit, ..line(2) };
    for to in [To::Session(ses(1)), To::New, conversation("a")] {
        assert_eq!(send(store, &me(), to, full.clone()).await, no(refused.clone()));
    }
    let past = Create { words_bytes_max: limit, ..bring(2, &me()) };
    assert_eq!(create(store, &me(), past).await, no(refused.clone()));
    let words = NewRequest { words_bytes_max: used + 1, ..edit(1, "better") };
    let full_now = Rejection::TooManyWords { used, limit: used + 1 };
    assert_eq!(ask_as(store, &me(), words).await, no(full_now));
    assert_eq!(picture(&on).await, before);
    let codes: Vec<_> = acted(store).await.into_iter().filter_map(|row| row.refused).collect();
    assert_eq!(codes, ["too_much_on_disk"; 5]);
    // What fits to the byte is taken, and others have room of their own.
    say(store, &friend(), To::New, IncomingMessage { words_bytes_max: one, ..line(3) }).await;
    say(store, &me(), To::Session(ses(1)), IncomingMessage { words_bytes_max: more, ..line(2) }).await;
}

pub async fn what_an_agent_says_beyond_the_room_of_its_owner_is_not_written<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    open(store, 1).await;
    write(store, ses(1), vec![started(1, 1), attempt(1)]).await;
    let used = used(store, &me()).await;
    let says = told(append_to(store, ses(1)).await, 1, "text", b"{}");
    let before = picture(&on).await;
    let limit = used + room_of(b"{}");
    let full = Append { words_bytes_max: Some(limit - 1), ..says.clone() };
    assert_eq!(store.append(full).await.unwrap(), Appending::TooManyWords { used });
    assert_eq!(picture(&on).await, before);
    written(store, Append { words_bytes_max: Some(limit), ..says }).await;
    // What has no words always fits, and so does what says that it has to be written.
    let end = with(append_to(store, ses(1)).await, vec![answered(1)]);
    written(store, Append { words_bytes_max: Some(limit), ..end }).await;
    written(store, told(append_to(store, ses(1)).await, 1, "notice", b"{}")).await;
}
