//! Promises of `mark`: what somebody notes about a session is theirs alone, and goes forward only.

use super::Fixture;
use super::story::*;
use crate::*;
use kernel::{Denied, Grant, Number, Principal, Right, Rights};

/// Puts these marks on session 1.
async fn mark(
    store: &dyn Store,
    by: &Principal,
    seen: Option<u64>,
    pinned: Option<bool>,
) -> WriteOutcome<Marks, Rejection> {
    mark_with(store, by, seen, pinned, None).await
}

async fn mark_with(
    store: &dyn Store,
    by: &Principal,
    seen: Option<u64>,
    pinned: Option<bool>,
    key: Option<Key>,
) -> WriteOutcome<Marks, Rejection> {
    let (seen, trail) = (seen.map(Number), trail("mark", 3_000));
    store.mark(arc(by), Mark { session: ses(1), seen, pinned, key, trail }).await.unwrap()
}

fn is(seen: u64, pinned: bool) -> Marks {
    Marks { seen: Number(seen), pinned }
}

/// The marks in the row of session 1, as a list and a single read have them for somebody.
async fn shown(store: &dyn Store, by: &Principal) -> Option<Marks> {
    let row = list(store, by, Which::All).await.into_iter().find(|row| row.session == ses(1));
    let read = store.session_seen(Seer::of(by), ses(1)).await.unwrap();
    assert_eq!(row, read.map(|(_, row)| row));
    row.map(|row| row.marks)
}

pub async fn marks_are_ones_own_and_what_was_seen_is_never_unseen<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    open(store, 1).await;
    share(store, ses(1), &friend(), Some(Grant::View)).await;
    assert_eq!(shown(store, &me()).await, Some(Marks::default()));
    assert_eq!(mark(store, &me(), Some(1), None).await, WriteOutcome::Done(is(1, false)));
    assert_eq!(mark(store, &me(), None, Some(true)).await, WriteOutcome::Done(is(1, true)));
    assert_eq!(
        mark(store, &me(), Some(99), None).await,
        WriteOutcome::Done(is(2, true)),
        "there are two facts"
    );
    assert_eq!(mark(store, &me(), Some(0), Some(false)).await, WriteOutcome::Done(is(2, false)));
    assert_eq!(shown(store, &friend()).await, Some(Marks::default()), "nobody else's");
    let theirs = now(store, &friend()).await;
    assert_eq!(mark(store, &theirs, Some(1), Some(true)).await, WriteOutcome::Done(is(1, true)));
    let before = (row(store, ses(1)).await, log(store, ses(1)).await);
    let on = on.reopen().await;
    let store = on.store();
    assert_eq!(shown(store, &friend()).await, Some(is(1, true)));
    assert_eq!(shown(store, &me()).await, Some(is(2, false)));
    assert_eq!(
        (row(store, ses(1)).await, log(store, ses(1)).await),
        before,
        "the session knows nothing of them"
    );
    write(store, ses(1), vec![started(1, 1)]).await;
    assert_eq!(mark(store, &me(), Some(3), None).await, WriteOutcome::Done(is(3, false)));
    assert_eq!(store.inbox(ses(1), ALL).await.unwrap(), []);
}

pub async fn whoever_sees_a_session_may_mark_it_and_nobody_else<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    open(store, 1).await;
    let before = acts(store).await;
    for by in [friend(), stranger()] {
        let refused = mark(store, &by, Some(1), Some(true)).await;
        assert_eq!(refused, WriteOutcome::Refused(Rejection::NotFound { what: "session" }));
    }
    assert_eq!(acts(store).await, before + 2, "a refusal is in the audit");
    let mut reads = me();
    reads.rights = Rights::NONE.with(Right::Read);
    assert_eq!(mark(store, &reads, Some(1), None).await, WriteOutcome::Done(is(1, false)));
    reads.rights = Rights::NONE.with(Right::Prompt);
    let refused = mark(store, &reads, Some(2), None).await;
    assert_eq!(refused, WriteOutcome::Refused(Rejection::Denied(Denied::NeedsRight(Right::Read))));
    assert_eq!(acts(store).await, before + 3, "and what was done is not");

    // Who loses sight of a session finds their marks again with it, and until then neither.
    share(store, ses(1), &friend(), Some(Grant::View)).await;
    let theirs = now(store, &friend()).await;
    assert_eq!(mark(store, &theirs, None, Some(true)).await, WriteOutcome::Done(is(0, true)));
    share(store, ses(1), &friend(), None).await;
    assert_eq!(shown(store, &friend()).await, None);
    let theirs = now(store, &friend()).await;
    let refused = mark(store, &theirs, None, Some(false)).await;
    assert_eq!(refused, WriteOutcome::Refused(Rejection::NotFound { what: "session" }));
    share(store, ses(1), &friend(), Some(Grant::View)).await;
    assert_eq!(shown(store, &friend()).await, Some(is(0, true)));
}

pub async fn marks_put_again_under_their_key_are_as_they_are_by_then<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    open(store, 1).await;
    let keyed = |body| Some(key("mark", "k", body));
    let first = mark_with(store, &me(), Some(1), Some(true), keyed(1)).await;
    assert_eq!(first, WriteOutcome::Done(is(1, true)));
    mark(store, &me(), Some(2), Some(false)).await;
    let again = mark_with(store, &me(), Some(1), Some(true), keyed(1)).await;
    assert_eq!(again, WriteOutcome::Repeated(is(2, false)), "a late repetition pins nothing again");
    assert_eq!(mark_with(store, &me(), Some(2), None, keyed(2)).await, WriteOutcome::Conflict);
    assert_eq!(shown(store, &me()).await, Some(is(2, false)));
}
