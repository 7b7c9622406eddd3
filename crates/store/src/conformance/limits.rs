//! Counts of the store: open sessions, unfinished messages, claims. All of it inside the transaction that needs it.

use super::Fixture;
use super::story::*;
use crate::*;
use kernel::{SessionId, To};

pub async fn only_open_sessions_count_as_open<F: Fixture>() {
    let on = peopled::<F>().await;
    let two = |n| IncomingMessage { open_max: 2, ..line(n) };
    say(on.store(), &me(), To::New, two(1)).await;
    say(on.store(), &me(), conversation("a"), two(2)).await;
    let before = picture(&on).await;
    assert_eq!(send(on.store(), &me(), To::New, two(3)).await, too_many_open(2));
    assert_eq!(send(on.store(), &me(), conversation("b"), two(3)).await, too_many_open(2));
    assert_eq!(picture(&on).await, before);
    // A session that is there takes messages; others have their own count.
    say(on.store(), &me(), conversation("a"), two(4)).await;
    say(on.store(), &friend(), To::New, two(5)).await;
    write(on.store(), ses(1), vec![opened(), refused(1), ended()]).await;
    say(on.store(), &me(), To::New, two(6)).await;
}

pub async fn the_limit_of_open_sessions_holds_against_all_at_once<F: Fixture>() {
    let on = peopled::<F>().await;
    let mut sends = vec![];
    for n in 1..=12 {
        sends.push(accept(on.store(), aim(&me(), To::New, IncomingMessage { open_max: 3, ..line(n) })));
    }
    let answers = together(sends).await;
    let done = answers.iter().filter(|answer| matches!(answer, WriteOutcome::Done(_))).count();
    let refused = answers
        .iter()
        .filter(|answer| matches!(answer, WriteOutcome::Refused(Rejection::TooManyOpen { .. })))
        .count();
    assert_eq!((done, refused), (3, 9));
    assert_eq!(list(on.store(), &me(), Which::All).await.len(), 3);
}

pub async fn an_org_has_only_so_many_open_sessions<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    let three = |n| IncomingMessage { org_open_max: 3, open_max: 2, ..line(n) };
    say(store, &me(), To::New, three(1)).await;
    say(store, &me(), To::New, three(2)).await;
    assert_eq!(send(store, &me(), To::New, three(3)).await, too_many_open(2), "their own limit first");
    say(store, &friend(), conversation("a"), three(3)).await;
    let before = picture(&on).await;
    assert_eq!(send(store, &friend(), To::New, three(4)).await, org_too_many_open(3));
    let fresh = NewSession { org_open_max: 3, ..fresh_session(4, None) };
    assert_eq!(create(store, &friend(), create_of("create", fresh)).await, org_too_many_open(3));
    assert_eq!(picture(&on).await, before);
    // Another org has its own count; a session that is there takes messages; one that has ended makes room.
    say(store, &stranger(), To::New, three(5)).await;
    say(store, &friend(), conversation("a"), three(6)).await;
    let on = on.reopen().await;
    write(on.store(), ses(1), vec![opened(), refused(1), ended()]).await;
    say(on.store(), &friend(), To::New, three(7)).await;
    assert_eq!(send(on.store(), &me(), To::New, three(8)).await, org_too_many_open(3));
}

pub async fn the_orgs_limit_holds_against_all_at_once<F: Fixture>() {
    let on = peopled::<F>().await;
    let mut sends = vec![];
    for n in 1..=12 {
        let by = if n % 2 == 0 { me() } else { friend() };
        sends.push(accept(on.store(), aim(&by, To::New, IncomingMessage { org_open_max: 5, ..line(n) })));
    }
    let answers = together(sends).await;
    let done = answers.iter().filter(|answer| matches!(answer, WriteOutcome::Done(_))).count();
    let refused = answers
        .iter()
        .filter(|answer| matches!(answer, WriteOutcome::Refused(Rejection::OrgTooManyOpen { .. })))
        .count();
    assert_eq!((done, refused), (5, 7));
}

pub async fn only_unfinished_messages_count_as_pending<F: Fixture>() {
    let on = peopled::<F>().await;
    let two = |n| IncomingMessage { pending_max: 2, ..line(n) };
    say(on.store(), &me(), conversation("a"), two(1)).await;
    say(on.store(), &me(), conversation("a"), two(2)).await;
    let before = picture(&on).await;
    assert_eq!(send(on.store(), &me(), conversation("a"), two(3)).await, queue_full(2));
    assert_eq!(picture(&on).await, before);
    assert_eq!(on.store().words(msg(3)).await.unwrap(), None);
    // Seen by the keeper, or even running, it is unfinished all the same.
    write(on.store(), ses(1), vec![opened(), queued(1), queued(2), started(1, 1), attempt(1)]).await;
    assert_eq!(row(on.store(), ses(1)).await.pending, 2);
    assert_eq!(send(on.store(), &me(), conversation("a"), two(3)).await, queue_full(2));
    write(on.store(), ses(1), vec![answered(1)]).await;
    assert_eq!(row(on.store(), ses(1)).await.pending, 1);
    say(on.store(), &me(), conversation("a"), two(3)).await;
}

pub async fn the_limit_of_pending_messages_holds_against_all_at_once<F: Fixture>() {
    let on = peopled::<F>().await;
    say(on.store(), &me(), conversation("a"), line(1)).await;
    let mut sends = vec![];
    for n in 2..=12 {
        sends.push(accept(
            on.store(),
            aim(&me(), conversation("a"), IncomingMessage { pending_max: 4, ..line(n) }),
        ));
    }
    let answers = together(sends).await;
    let full = answers
        .iter()
        .filter(|answer| matches!(answer, WriteOutcome::Refused(Rejection::QueueFull { .. })))
        .count();
    assert_eq!((row(on.store(), ses(1)).await.pending, full), (4, 8));
}

/// Starts the first turn of a session of one message, and takes a claim for it.
async fn start(store: &dyn Store, session: SessionId, n: u32, max: u32) -> Append {
    let append = with(append_to(store, session).await, vec![started(1, n), attempt(1)]);
    let starts = Some((msg(n), me().person));
    Append { claims: vec![(slot("me"), max)], starts, awake: true, ..append }
}

pub async fn a_claim_has_only_so_many_holders<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    for n in 1..=3 {
        open(store, n).await;
    }
    written(store, start(store, ses(1), 1, 2).await).await;
    written(store, start(store, ses(2), 2, 2).await).await;
    say(store, &me(), To::Session(ses(3)), line(4)).await;
    let before = picture(&on).await;
    // The whole append is refused: no fact, no row out of the inbox, no reply.
    let mut third = start(store, ses(3), 3, 2).await;
    third.drained = inbox_numbers(store, ses(3)).await;
    third.wake_at = Some(kernel::Moment(9));
    third.replies = vec![NewOutgoing { to: address("a"), message: msg(3), kind: OutgoingKind::Final }];
    assert_eq!(store.append(third.clone()).await.unwrap(), Appending::Claimed(slot("me")));
    assert_eq!(picture(&on).await, before);
    // Freed by the append that no longer lists it.
    write(store, ses(1), vec![answered(1)]).await;
    written(store, third).await;
    assert!(row(store, ses(3)).await.awake);
}

pub async fn a_claim_is_freed_by_the_end<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    for n in 1..=2 {
        open(store, n).await;
    }
    written(store, start(store, ses(1), 1, 1).await).await;
    let second = start(store, ses(2), 2, 1).await;
    assert_eq!(store.append(second.clone()).await.unwrap(), Appending::Claimed(slot("me")));
    // Even if the last append still lists it.
    let last = with(append_to(store, ses(1)).await, vec![answered(1), ended()]);
    written(store, Append { claims: vec![(slot("me"), 1)], ..last }).await;
    written(store, second).await;
}

pub async fn a_claim_outlives_a_restart<F: Fixture>() {
    let on = peopled::<F>().await;
    for n in 1..=2 {
        open(on.store(), n).await;
    }
    written(on.store(), start(on.store(), ses(1), 1, 1).await).await;
    let on = on.reopen().await;
    let second = start(on.store(), ses(2), 2, 1).await;
    assert_eq!(on.store().append(second).await.unwrap(), Appending::Claimed(slot("me")));
}

/// Otherwise a turn that runs could not even be ended once the limit was lowered.
pub async fn a_claim_that_is_held_stays_held_when_fewer_may<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    for n in 1..=3 {
        open(store, n).await;
    }
    written(store, start(store, ses(1), 1, 2).await).await;
    written(store, start(store, ses(2), 2, 2).await).await;
    let goes_on = Append { claims: vec![(slot("me"), 1)], awake: true, ..append_to(store, ses(1)).await };
    written(store, told(goes_on, 1, "words", b"{}")).await;
    let third = start(store, ses(3), 3, 1).await;
    assert_eq!(store.append(third).await.unwrap(), Appending::Claimed(slot("me")));
}

pub async fn different_claims_do_not_count_together<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    for n in 1..=3 {
        open(store, n).await;
    }
    written(store, start(store, ses(1), 1, 1).await).await;
    let other = Append { claims: vec![(slot("friend"), 1)], ..start(store, ses(2), 2, 1).await };
    written(store, other).await;
    // One of several is enough to refuse; the others are not taken then.
    let both = Append { claims: vec![(slot("new"), 1), (slot("me"), 1)], ..start(store, ses(3), 3, 1).await };
    assert_eq!(store.append(both).await.unwrap(), Appending::Claimed(slot("me")));
    let new = Append { claims: vec![(slot("new"), 1)], ..start(store, ses(3), 3, 1).await };
    written(store, new).await;
}

pub async fn a_claim_is_raced_for_by_all_and_won_by_so_many<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    let mut appends = vec![];
    for n in 1..=8 {
        open(store, n).await;
        appends.push(store.append(start(store, ses(n), n, 3).await));
    }
    let answers = together(appends).await;
    let done = answers.iter().filter(|answer| matches!(answer, Ok(Appending::Done(_)))).count();
    let refused = answers.iter().filter(|answer| matches!(answer, Ok(Appending::Claimed(_)))).count();
    assert_eq!((done, refused), (3, 5));
}

/// An org may want fewer sessions than the machine allows, and never gets more.
pub async fn an_orgs_own_limit_counts_if_it_is_lower<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    let wants = |open_max| PeopleChange::Settings(OrgSettings { open_max, ..OrgSettings::default() });
    set(store, wants(Some(1))).await;
    say(store, &me(), To::New, line(1)).await;
    assert_eq!(send(store, &me(), To::New, line(2)).await, org_too_many_open(1));
    assert_eq!(create(store, &me(), create_of("create", fresh_session(2, None))).await, org_too_many_open(1));
    say(store, &stranger(), To::New, line(2)).await;
    set(store, wants(Some(9))).await;
    let few = |n| IncomingMessage { org_open_max: 2, ..line(n) };
    say(store, &me(), To::New, few(3)).await;
    assert_eq!(send(store, &me(), To::New, few(4)).await, org_too_many_open(2));
}
