//! Promises of what needs somebody: lists are narrowed to it, counts agree with lists, and both with the rule of reads.

use super::Fixture;
use super::story::*;
use crate::*;
use kernel::{
    ApprovalTerms, Fact, Failure, Grant, Grantee, HoldWhy, Moment, Number, Origin, Outcome, Principal,
    SessionId, Turn,
};

/// The sessions of a list that is narrowed so, the newest first, read in pages of two.
async fn narrowed(store: &dyn Store, by: &Principal, which: Which, filter: &SessionFilter) -> Vec<SessionId> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let query = SessionsQuery { by: Seer::of(by), which, filter: filter.clone(), after, limit: 2 };
        let page = store.sessions(query).await.unwrap();
        let Some(last) = page.last() else { return found };
        after = Some((last.touched_at, last.session));
        found.extend(page.iter().map(|row| row.session));
    }
}

fn need(need: Need) -> SessionFilter {
    SessionFilter { needs: Some(need), ..SessionFilter::default() }
}

/// Session 1 has a question, 2 holds a message, 3 failed, 4 is unread, 5 runs, 6 is quiet and seen, 7 is archived with a question.
async fn busy_scene(store: &dyn Store) {
    for n in 1..=7 {
        open(store, n).await;
    }
    let over = |outcome| Fact::TurnEnded { turn: Turn(1), outcome };
    write(store, ses(1), vec![started(1, 1), attempt(1), asked(1)]).await;
    write(store, ses(2), vec![held(2)]).await;
    write(store, ses(3), vec![started(1, 3), attempt(1), over(Outcome::Failed(Failure::Transient))]).await;
    write(store, ses(4), vec![started(1, 4), attempt(1), over(Outcome::Answered)]).await;
    let runs = Append { awake: true, ..with(drain(store, ses(5)).await, vec![started(1, 5), attempt(1)]) };
    written(store, runs).await;
    write(store, ses(6), vec![started(1, 6), attempt(1), over(Outcome::Stopped)]).await;
    write(store, ses(7), vec![started(1, 7), attempt(1), asked(7)]).await;
    let archive = Retitle { session: ses(7), title: None, archived: Some(true), trail: trail("retitle", 1) };
    store.retitle(arc(&me()), archive).await.unwrap();
    for n in [3, 6] {
        see(store, &me(), n).await;
    }
}

async fn see(store: &dyn Store, by: &Principal, n: u32) {
    let (seen, pinned, key) = (Some(Number(u64::MAX)), None, None);
    let new = Mark { session: ses(n), seen, pinned, key, trail: trail("mark", 1) };
    assert!(matches!(store.mark(arc(by), new).await.unwrap(), WriteOutcome::Done(_)));
}

pub async fn a_list_is_narrowed_to_what_needs_somebody<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    busy_scene(store).await;
    for (needed, sessions) in [
        (Need::Questions, vec![ses(1)]),
        (Need::Held, vec![ses(2)]),
        (Need::Failed, vec![ses(3)]),
        (Need::Unread, vec![ses(4)]),
    ] {
        assert_eq!(narrowed(store, &me(), Which::Open, &need(needed)).await, sessions, "{needed:?}");
        assert_eq!(narrowed(store, &friend(), Which::Open, &need(needed)).await, [], "{needed:?}");
    }
    assert_eq!(narrowed(store, &me(), Which::All, &need(Need::Questions)).await, [ses(7), ses(1)]);
    // Whoever it was given to has marks of their own, and is asked what the owner is asked.
    for n in [1, 4, 6] {
        share(store, ses(n), &friend(), Some(Grant::View)).await;
    }
    let theirs = now(store, &friend()).await;
    assert_eq!(narrowed(store, &theirs, Which::Open, &need(Need::Questions)).await, [ses(1)]);
    assert_eq!(narrowed(store, &theirs, Which::Open, &need(Need::Unread)).await, [ses(6), ses(4)]);
    see(store, &theirs, 6).await;
    assert_eq!(narrowed(store, &theirs, Which::Open, &need(Need::Unread)).await, [ses(4)]);
    // What is answered, let go or tried again needs nobody any more.
    write(store, ses(1), vec![Fact::Lapsed { approval: apr(1) }]).await;
    write(store, ses(2), vec![Fact::Released { message: msg(2), epoch: kernel::Epoch(0) }]).await;
    assert_eq!(narrowed(store, &me(), Which::Open, &need(Need::Questions)).await, []);
    assert_eq!(narrowed(store, &me(), Which::Open, &need(Need::Held)).await, []);
}

pub async fn a_list_is_narrowed_to_owner_archive_and_origin<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    busy_scene(store).await;
    let origin = Some(Origin { session: ses(4), turn: Turn(1) });
    for n in [21, 22] {
        let session = NewSession { origin, ..fresh_session(n, None) };
        let (past, subject, key) = (None, None, None);
        let trail = trail("make", 2_000 + u64::from(n));
        let new = Create { session, past, words_bytes_max: u64::MAX, subject, key, trail, schemes: SCHEMES };
        assert_eq!(store.create(arc(&me()), new).await.unwrap(), WriteOutcome::Done(ses(n)));
    }
    let forks = SessionFilter { origin: Some(ses(4)), ..SessionFilter::default() };
    assert_eq!(narrowed(store, &me(), Which::Open, &forks).await, [ses(22), ses(21)]);
    assert_eq!(narrowed(store, &friend(), Which::Open, &forks).await, []);
    share(store, ses(21), &friend(), Some(Grant::View)).await;
    let theirs = now(store, &friend()).await;
    assert_eq!(narrowed(store, &theirs, Which::Open, &forks).await, [ses(21)]);

    let archived = |is| SessionFilter { archived: Some(is), ..SessionFilter::default() };
    assert_eq!(narrowed(store, &me(), Which::All, &archived(true)).await, [ses(7)]);
    assert_eq!(narrowed(store, &me(), Which::Open, &archived(true)).await, [ses(7)]);
    assert_eq!(narrowed(store, &me(), Which::Ended, &archived(true)).await, []);
    assert_eq!(narrowed(store, &me(), Which::All, &archived(false)).await.len(), 8);
    assert_eq!(narrowed(store, &me(), Which::Open, &archived(false)).await.len(), 8);

    let of = |person| SessionFilter { owner: Some(person), ..SessionFilter::default() };
    assert_eq!(narrowed(store, &theirs, Which::Open, &of(me().person)).await, [ses(21)]);
    assert_eq!(narrowed(store, &theirs, Which::Open, &of(friend().person)).await, []);
    assert_eq!(narrowed(store, &me(), Which::All, &of(me().person)).await.len(), 9);
    assert_eq!(narrowed(store, &me(), Which::All, &of(stranger().person)).await, []);
}

pub async fn sessions_are_counted_by_the_rule_of_lists<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    let counts = async |by: &Principal| store.session_counts(Seer::of(by)).await.unwrap();
    assert_eq!(counts(&me()).await, SessionCounts::default());
    busy_scene(store).await;
    let all = SessionCounts { open: 6, running: 1, questions: 1, held: 1, failed: 1, unread: 1 };
    assert_eq!(counts(&me()).await, all);
    assert_eq!(counts(&friend()).await, SessionCounts::default());
    // Given to them, and to everybody: still one.
    share(store, ses(3), &friend(), Some(Grant::View)).await;
    let everybody =
        PeopleChange::Give { on: Resource::Session(ses(3)), to: Grantee::Org, grant: Grant::Prompt };
    set(store, everybody).await;
    share(store, ses(7), &friend(), Some(Grant::View)).await;
    let theirs = now(store, &friend()).await;
    let one = SessionCounts { open: 1, failed: 1, unread: 1, ..SessionCounts::default() };
    assert_eq!(counts(&theirs).await, one, "what is archived is not counted");
    assert_eq!(counts(&stranger()).await, SessionCounts::default());
    let bound = |n| Principal { bound: Some((ses(n), Turn(1))), ..me() };
    assert_eq!(counts(&bound(1)).await, SessionCounts { open: 1, questions: 1, ..SessionCounts::default() });
    assert_eq!(counts(&bound(7)).await, SessionCounts::default());
    // Every count is what a list of the same has.
    for by in [me(), theirs] {
        for (needed, count) in [
            (Need::Questions, counts(&by).await.questions),
            (Need::Held, counts(&by).await.held),
            (Need::Failed, counts(&by).await.failed),
            (Need::Unread, counts(&by).await.unread),
        ] {
            let listed = narrowed(store, &by, Which::Open, &need(needed)).await;
            assert_eq!(listed.len(), count as usize, "{needed:?}");
        }
    }
}

fn asked(n: u32) -> Fact {
    Fact::Asked { approval: apr(n), turn: Turn(1), until: Moment(60_000), terms: ApprovalTerms::default() }
}

fn held(n: u32) -> Fact {
    Fact::Held { message: msg(n), why: HoldWhy::Asked, expires: Moment(90_000) }
}
