//! Promises of `row_changes`: whoever is shown a list hears of each of its rows that is another one, has come into it or has left
//! it, after a restart, too; and of nothing else.

use super::Fixture;
use super::story::*;
use crate::*;
use kernel::{Grant, Grantee, Number, Principal, SessionId};

/// Everything that has changed for somebody after a place, in order.
async fn changes(store: &dyn Store, by: &Principal, after: u64) -> Vec<(SessionId, ChangedRow)> {
    let changes = store.row_changes(Seer::of(by), after, ALL).await.unwrap();
    assert!(changes.is_sorted_by(|a, b| after < a.place && a.place < b.place));
    assert!(changes.last().map_or(after, |last| last.place) <= store.last_place().await.unwrap());
    changes.into_iter().map(|change| (change.session, change.row)).collect()
}

pub async fn a_row_that_no_fact_changes_is_among_the_changed<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    assert_eq!(changes(store, &me(), 0).await, []);
    open(store, 1).await;
    open(store, 2).await;
    let (first, second) = ((ses(1), ChangedRow::At(Number(2))), (ses(2), ChangedRow::At(Number(2))));
    assert_eq!(changes(store, &me(), 0).await, [first, second]);
    let last = store.last_place().await.unwrap();
    let trail = || trail("retitle", 1);
    for (title, archived) in [(Some("another".to_owned()), None), (None, Some(true))] {
        let before = store.last_place().await.unwrap();
        store
            .retitle(arc(&me()), Retitle { session: ses(1), title, archived, trail: trail() })
            .await
            .unwrap();
        assert_eq!(changes(store, &me(), before).await, [first], "the title, then the archive");
    }
    let on = on.reopen().await;
    let store = on.store();
    assert_eq!(changes(store, &me(), last).await, [first]);
    assert_eq!(changes(store, &me(), 0).await, [second, first], "each once");
    assert_eq!(store.row_changes(Seer::of(&me()), 0, 1).await.unwrap()[0].session, ses(2));
    assert_eq!(changes(store, &friend(), 0).await, []);
}

pub async fn ones_own_marks_change_ones_own_row_and_nobody_elses<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    open(store, 1).await;
    share(store, ses(1), &friend(), Some(Grant::View)).await;
    let theirs = now(store, &friend()).await;
    let mark = async |by: &Principal, seen, pinned| {
        let (before, trail) = (store.last_place().await.unwrap(), trail("mark", 3_000));
        let mark = Mark { session: ses(1), seen: Some(Number(seen)), pinned, key: None, trail };
        assert!(matches!(store.mark(arc(by), mark).await.unwrap(), WriteOutcome::Done(_)));
        (changes(store, &me(), before).await, changes(store, &theirs, before).await)
    };
    let own = || vec![(ses(1), ChangedRow::Other)];
    assert_eq!(mark(&me(), 1, None).await, (own(), vec![]));
    assert_eq!(mark(&me(), 1, Some(true)).await, (own(), vec![]));
    assert_eq!(mark(&me(), 1, Some(true)).await, (vec![], vec![]), "it was so already");
    assert_eq!(mark(&theirs, 1, Some(true)).await, (vec![], own()));
}

pub async fn whoever_gains_or_loses_a_session_is_told_and_nobody_else<F: Fixture>() {
    let on = peopled::<F>().await;
    open(on.store(), 1).await;
    open(on.store(), 2).await;
    let (group, on_one) = (Grantee::Group(grp(1)), Resource::Session(ses(1)));
    let join = || PeopleChange::Join { group: grp(1), person: friend().person };
    let leave = || PeopleChange::Leave { group: grp(1), person: friend().person };
    let give = |to| PeopleChange::Give { on: on_one.clone(), to, grant: Grant::View };
    let take = |to| PeopleChange::TakeBack { on: on_one.clone(), to };
    let (person, org) = (Grantee::Person(friend().person), Grantee::Org);
    set(on.store(), PeopleChange::MakeGroup { group: grp(1), name: "ours".into() }).await;
    let (here, gone) = (ChangedRow::Other, ChangedRow::Gone);
    let steps = [
        (take(person), None),
        (leave(), None),
        (give(group), None),
        (leave(), None),
        (join(), Some(here)),
        (leave(), Some(gone)),
        (join(), Some(here)),
        (give(person), Some(here)),
        (leave(), Some(here)),
        (take(person), Some(gone)),
        (take(person), None),
        (give(org), Some(here)),
        (take(org), Some(gone)),
        (join(), Some(here)),
        (PeopleChange::RemoveGroup { group: grp(1) }, Some(gone)),
    ];
    for (step, told) in steps {
        let before = on.store().last_place().await.unwrap();
        set(on.store(), step.clone()).await;
        // A change of groups is read as whoever is in them sees it.
        let groups = on.store().groups(me().org).await.unwrap();
        let theirs = groups.iter().filter(|group| group.people.contains(&friend().person));
        let friends = Principal { groups: theirs.map(|group| group.group).collect(), ..friend() };
        let told: Vec<_> = told.into_iter().map(|row| (ses(1), row)).collect();
        assert_eq!(changes(on.store(), &friends, before).await, told, "{step:?}");
        assert_eq!(changes(on.store(), &stranger(), 0).await, [], "{step:?}");
    }
    let on = on.reopen().await;
    let told = changes(on.store(), &friend(), 0).await;
    assert_eq!(told, [(ses(1), gone)], "once, and nothing of the other one");
}

pub async fn a_session_that_is_handed_over_leaves_one_list_and_comes_into_another<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    open(store, 1).await;
    set(store, PeopleChange::Give { on: Resource::Session(ses(1)), to: Grantee::Org, grant: Grant::View })
        .await;
    let before = store.last_place().await.unwrap();
    set_by(store, &me(), PeopleChange::HandOver { session: ses(1), to: friend().person }).await;
    assert_eq!(changes(store, &friend(), before).await, [], "an offer changes nothing");
    set_by(store, &friend(), accept_offer(ses(1))).await;
    assert_eq!(changes(store, &me(), before).await, [(ses(1), ChangedRow::Gone)]);
    assert_eq!(changes(store, &friend(), before).await, [(ses(1), ChangedRow::Other)]);
    set(store, PeopleChange::Disable { person: friend().person }).await;
    let before = store.last_place().await.unwrap();
    let all = PeopleChange::HandOverAll { from: friend().person, to: me().person };
    assert_eq!(change(store, &me(), all).await, "done");
    assert_eq!(changes(store, &me(), before).await, [(ses(1), ChangedRow::Other)]);
}
