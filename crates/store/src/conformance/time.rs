//! Promises of wakes and of the list of unfinished work.

use super::Fixture;
use super::story::*;
use crate::*;
use kernel::{Moment, Request, SessionId};

async fn due(store: &dyn Store, session: SessionId, at: Option<u64>) {
    let append = Append { wake_at: at.map(Moment), ..append_to(store, session).await };
    written(store, append).await;
}

pub async fn a_session_is_woken_when_it_is_due_and_not_before<F: Fixture>() {
    let on = peopled::<F>().await;
    assert_eq!(on.store().next_wake().await.unwrap(), None);
    for (n, at) in [(1, 300), (2, 100), (3, 200)] {
        open(on.store(), n).await;
        due(on.store(), ses(n), Some(at)).await;
    }
    let on = on.reopen().await;
    let store = on.store();
    assert_eq!(store.next_wake().await.unwrap(), Some(Moment(100)));
    assert_eq!(store.wake(Moment(99), ALL).await.unwrap(), []);
    assert_eq!(store.wake(Moment(200), ALL).await.unwrap(), [ses(2), ses(3)]);
    let inbox = store.inbox(ses(2), ALL).await.unwrap();
    assert_eq!((inbox.len(), inbox[0].at, &inbox[0].item), (1, Moment(200), &InboxItem::Wake));
    assert_eq!(store.inbox(ses(1), ALL).await.unwrap(), []);
    // Once woken, it is the keeper's turn to say when again.
    assert_eq!(store.next_wake().await.unwrap(), Some(Moment(300)));
    assert_eq!(store.wake(Moment(200), ALL).await.unwrap(), []);
    assert_eq!(store.unfinished(None, ALL).await.unwrap(), [ses(2), ses(3)]);
}

pub async fn only_so_many_are_woken_at_once<F: Fixture>() {
    let on = peopled::<F>().await;
    for n in 1..=5 {
        open(on.store(), n).await;
        due(on.store(), ses(n), Some(u64::from(60 - n))).await;
    }
    assert_eq!(on.store().wake(Moment(100), 2).await.unwrap(), [ses(5), ses(4)]);
    assert_eq!(on.store().wake(Moment(100), 2).await.unwrap(), [ses(3), ses(2)]);
    assert_eq!(on.store().wake(Moment(100), 2).await.unwrap(), [ses(1)]);
}

pub async fn each_append_says_anew_when_the_session_is_due<F: Fixture>() {
    let on = peopled::<F>().await;
    open(on.store(), 1).await;
    due(on.store(), ses(1), Some(100)).await;
    due(on.store(), ses(1), Some(50)).await;
    assert_eq!(on.store().next_wake().await.unwrap(), Some(Moment(50)));
    due(on.store(), ses(1), None).await;
    assert_eq!(on.store().next_wake().await.unwrap(), None);
    assert_eq!(on.store().wake(Moment(u64::MAX >> 1), ALL).await.unwrap(), []);
}

pub async fn only_unfinished_sessions_are_listed_as_unfinished<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    for n in 1..=5 {
        open(store, n).await;
    }
    assert_eq!(store.unfinished(None, ALL).await.unwrap(), [], "waiting in the queue is dormant");
    let awake = async |n| {
        let start = with(append_to(store, ses(n)).await, vec![started(1, n), attempt(1)]);
        written(store, Append { awake: true, ..start }).await
    };
    awake(4).await;
    awake(2).await;
    ask(store, 1, Request::End { session: ses(5) }).await;
    say(store, &me(), kernel::To::New, line(6)).await;
    due(store, ses(3), Some(100)).await;
    assert_eq!(store.unfinished(None, ALL).await.unwrap(), [ses(2), ses(4), ses(5), ses(6)]);
    assert_eq!(store.unfinished(None, 2).await.unwrap(), [ses(2), ses(4)]);
    assert_eq!(store.unfinished(Some(ses(4)), 2).await.unwrap(), [ses(5), ses(6)]);
    let on = on.reopen().await;
    write(on.store(), ses(2), vec![answered(1)]).await;
    write(on.store(), ses(5), vec![refused(5), ended()]).await;
    assert_eq!(on.store().unfinished(None, ALL).await.unwrap(), [ses(4), ses(6)]);
}
