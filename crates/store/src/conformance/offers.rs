//! Promises of offers: a session is handed over by the yes of whom it is offered to, and nothing changes before.

use super::Fixture;
use super::story::*;
use crate::*;
use kernel::people::OFFER_MS_MAX;
use kernel::{Fact, Grant, Grantee, GroundPath, Moment, PersonId, Principal, RefusedWhy, Role, To};

/// Somebody of my org, to whom nothing is offered.
fn third() -> Principal {
    Principal { person: PersonId::from_bits(4), handle: "third".into(), ..friend() }
}

/// Session 1 is mine, given to everybody and to my friend, who has something that waits in it. Another one is theirs.
async fn given<F: Fixture>() -> F {
    let on = peopled::<F>().await;
    let store = on.store();
    set(store, add_person(newcomer(&third()), link(0xb1))).await;
    open(store, 1).await;
    share(store, ses(1), &friend(), Some(Grant::Manage)).await;
    let all = Resource::Session(ses(1));
    set(store, PeopleChange::Give { on: all, to: Grantee::Org, grant: Grant::View }).await;
    say(store, &friend(), To::Session(ses(1)), line(12)).await;
    write(store, ses(1), vec![queued_by(12, friend().person)]).await;
    say(store, &friend(), To::New, line(2)).await;
    on
}

fn becomes(of: &Principal, role: Role) -> PeopleChange {
    PeopleChange::ChangePerson { person: of.person, name: None, email: None, role: Some(role) }
}

fn over(to: &Principal) -> PeopleChange {
    PeopleChange::HandOver { session: ses(1), to: to.person }
}

fn accept() -> PeopleChange {
    accept_offer(ses(1))
}

fn decline() -> PeopleChange {
    PeopleChange::DeclineOffer { session: ses(1) }
}

fn keep() -> PeopleChange {
    PeopleChange::TakeOfferBack { session: ses(1) }
}

/// The last thing that somebody did is in the audit, about this session.
async fn is_written_down(store: &dyn Store, by: &Principal) {
    let row = acted(store).await.into_iter().find(|row| row.org == by.org).unwrap();
    assert_eq!((row.by, row.session, row.refused), (Some(by.person), Some(ses(1)), None));
}

/// The owner of session 1, the number of grants on it, and how many offers somebody has.
async fn stands(store: &dyn Store, whose: &Principal) -> (PersonId, usize, usize) {
    let (record, _) = store.session(ses(1)).await.unwrap().unwrap();
    let offers = store.offers(whose.org, whose.person).await.unwrap();
    (record.owner, record.grants.len(), offers.len())
}

async fn at(store: &dyn Store, by: &Principal, change: PeopleChange, at: u64) -> String {
    let new = change_of(change);
    change_with(store, by, NewChange { trail: Trail { at: Moment(at), ..new.trail }, ..new }).await
}

async fn told(store: &dyn Store) -> Vec<PersonId> {
    let rows = store.inbox(ses(1), ALL).await.unwrap();
    let to = rows.into_iter().filter_map(|row| match row.item {
        InboxItem::HandOver { to } => Some(to),
        _ => None,
    });
    to.collect()
}

pub async fn an_offer_changes_nothing_until_it_is_accepted<F: Fixture>() {
    let on = given::<F>().await;
    let store = on.store();
    let before = store.session(ses(1)).await.unwrap();
    assert_eq!(change(store, &me(), over(&friend())).await, "done");
    is_written_down(store, &me()).await;
    assert_eq!(store.session(ses(1)).await.unwrap(), before);
    assert_eq!(told(store).await, []);
    let made = change_of(over(&friend())).trail.at;
    let until = Moment(made.0 + OFFER_MS_MAX);
    let offer = OfferRow { session: ses(1), from: me().person, to: friend().person, at: made, until };
    let on = on.reopen().await;
    let store = on.store();
    for whose in [me(), friend()] {
        assert_eq!(store.offers(whose.org, whose.person).await.unwrap(), [offer], "{}", whose.handle);
    }
    for nobody in [third(), stranger()] {
        assert_eq!(store.offers(nobody.org, nobody.person).await.unwrap(), []);
    }
    assert_eq!(change(store, &friend(), accept()).await, "done");
    is_written_down(store, &friend()).await;
    let (record, row) = store.session(ses(1)).await.unwrap().unwrap();
    assert_eq!((record.owner, row.owner), (friend().person, friend().person));
    assert_eq!(record.grants, [], "what was given on it ends, the org's too");
    assert!(record.revision > before.unwrap().0.revision);
    assert_eq!(told(store).await, [friend().person]);
    assert!(store.unfinished(None, ALL).await.unwrap().contains(&ses(1)));
    for by in [me(), third()] {
        assert!(!store.may_say(ses(1), by.person).await.unwrap(), "{}", by.handle);
        assert!(!store.may_rule(ses(1), by.person).await.unwrap(), "{}", by.handle);
    }
    assert_eq!(stands(store, &friend()).await, (friend().person, 0, 0));
    let on = on.reopen().await;
    assert_eq!(stands(on.store(), &friend()).await, (friend().person, 0, 0));
    assert_eq!(told(on.store()).await, [friend().person]);
    // It is accepted once.
    assert_eq!(change(on.store(), &friend(), accept()).await, "not_found");
}

pub async fn what_waited_in_a_session_that_was_handed_over_ends_with_its_reason<F: Fixture>() {
    let on = given::<F>().await;
    let store = on.store();
    set(store, over(&friend())).await;
    assert_eq!(change(store, &friend(), accept()).await, "done");
    let why = RefusedWhy::HandedOver;
    write(store, ses(1), vec![Fact::MessageRefused { message: msg(12), why }]).await;
    let on = on.reopen().await;
    let row = receipt(on.store(), 12).await;
    assert_eq!((row.state, row.why, row.by), (ReceiptState::Refused, Some("handed_over"), friend().person));
    assert_eq!(told(on.store()).await, [], "it is drained like anything else");
}

/// Whoever it is not offered to learns nothing of it: there is none, as of a session that there is not.
pub async fn an_offer_is_answered_by_whom_it_is_to_and_taken_back_by_who_manages_it<F: Fixture>() {
    let on = given::<F>().await;
    let store = on.store();
    for change in [accept(), decline()] {
        assert_eq!(self::change(store, &friend(), change.clone()).await, "not_found", "{change:?}");
    }
    assert_eq!(change(store, &me(), keep()).await, "not_found");
    set(store, over(&friend())).await;
    for by in [me(), third(), stranger()] {
        for change in [accept(), decline()] {
            assert_eq!(self::change(store, &by, change.clone()).await, "not_found", "{}", by.handle);
        }
    }
    assert_eq!(change(store, &third(), keep()).await, "not_allowed", "they only look");
    assert_eq!(change(store, &stranger(), keep()).await, "not_found");
    assert_eq!(stands(store, &friend()).await, (me().person, 2, 1));
    assert_eq!(change(store, &friend(), decline()).await, "done");
    is_written_down(store, &friend()).await;
    assert_eq!(stands(store, &friend()).await, (me().person, 2, 0));
    assert_eq!(change(store, &friend(), accept()).await, "not_found");
    set(store, over(&friend())).await;
    assert_eq!(change(store, &me(), keep()).await, "done");
    is_written_down(store, &me()).await;
    assert_eq!(change(store, &friend(), accept()).await, "not_found");
    assert_eq!(stands(store, &friend()).await, (me().person, 2, 0));
}

pub async fn a_session_is_offered_to_one_person_at_a_time_until_that_lapses<F: Fixture>() {
    let on = given::<F>().await;
    let store = on.store();
    assert_eq!(change(store, &me(), over(&me())).await, "owns_already");
    assert_eq!(at(store, &me(), over(&friend()), 5_000).await, "done");
    for to in [friend(), third()] {
        assert_eq!(at(store, &me(), over(&to), 5_001).await, "offered_already", "{}", to.handle);
    }
    let last = 5_000 + OFFER_MS_MAX;
    assert_eq!(at(store, &me(), over(&third()), last - 1).await, "offered_already");
    assert_eq!(at(store, &friend(), accept(), last).await, "not_found", "it has lapsed");
    assert_eq!(at(store, &me(), over(&third()), last).await, "done");
    assert_eq!(stands(store, &friend()).await, (me().person, 2, 0));
    assert_eq!(stands(store, &third()).await, (me().person, 2, 1));
    assert_eq!(at(store, &third(), accept(), last + OFFER_MS_MAX - 1).await, "done");
    assert_eq!(stands(store, &third()).await, (third().person, 0, 0));
    // Those that have lapsed make room, whosever they were.
    let theirs = |session, to: &Principal| PeopleChange::HandOver { session, to: to.person };
    assert_eq!(at(store, &friend(), theirs(ses(2), &third()), last).await, "done");
    let later = last + 2 * OFFER_MS_MAX;
    assert_eq!(at(store, &third(), theirs(ses(1), &me()), later).await, "done");
    assert_eq!(stands(store, &friend()).await, (third().person, 0, 0));
}

pub async fn an_offer_is_over_with_its_session_and_with_either_person<F: Fixture>() {
    for gone in [friend(), me()] {
        let on = given::<F>().await;
        let store = on.store();
        // Another owner, so that I can be disabled.
        set(store, becomes(&third(), Role::Owner)).await;
        set(store, over(&friend())).await;
        let person = gone.person;
        assert_eq!(change(store, &third(), PeopleChange::Disable { person }).await, "done");
        assert_eq!(change(store, &third(), PeopleChange::Enable { person, walled: true }).await, "done");
        assert_eq!(change(store, &friend(), accept()).await, "not_found", "who comes back has no offer");
        assert_eq!(stands(store, &friend()).await.2, 0);
    }
    let on = given::<F>().await;
    let store = on.store();
    set(store, over(&friend())).await;
    write(store, ses(1), vec![refused(1), refused(12), ended()]).await;
    for change in [accept(), decline()] {
        assert_eq!(self::change(store, &friend(), change.clone()).await, "not_found", "{change:?}");
    }
    assert!(change(store, &me(), over(&third())).await.starts_with("session_ended"));
    // A viewer cannot own what was offered to them when they were more.
    let on = given::<F>().await;
    let store = on.store();
    set(store, over(&friend())).await;
    set(store, becomes(&friend(), Role::Viewer)).await;
    assert_eq!(change(store, &friend(), accept()).await, "cannot_own");
    assert_eq!(change(store, &friend(), decline()).await, "done");
}

pub async fn all_sessions_of_somebody_are_offered_and_handed_over_once_they_have_left<F: Fixture>() {
    let on = given::<F>().await;
    let store = on.store();
    let all = || PeopleChange::HandOverAll { from: friend().person, to: third().person };
    say(store, &friend(), To::New, line(3)).await;
    let theirs = PeopleChange::HandOver { session: ses(3), to: me().person };
    assert_eq!(change(store, &friend(), theirs).await, "done");
    assert_eq!(change(store, &me(), all()).await, "done");
    let offered = store.offers(me().org, friend().person).await.unwrap();
    let mut offered: Vec<_> = offered.into_iter().map(|offer| (offer.session, offer.to)).collect();
    offered.sort();
    assert_eq!(offered, [(ses(2), third().person), (ses(3), me().person)], "what is offered stays so");
    let owner = async |n| store.session(ses(n)).await.unwrap().unwrap().0.owner;
    assert_eq!((owner(2).await, owner(3).await), (friend().person, friend().person));
    let same = PeopleChange::HandOverAll { from: friend().person, to: friend().person };
    assert_eq!(change(store, &me(), same).await, "owns_already");
    set(store, PeopleChange::Disable { person: friend().person }).await;
    assert_eq!(change(store, &me(), all()).await, "done");
    assert_eq!((owner(2).await, owner(3).await), (third().person, third().person));
    assert_eq!(owner(1).await, me().person);
    for session in [ses(2), ses(3)] {
        let rows = store.inbox(session, ALL).await.unwrap();
        let last = rows.last().map(|row| row.item.clone());
        assert_eq!(last, Some(InboxItem::HandOver { to: third().person }), "{session}");
    }
}

/// Whoever takes it over could have made it: the counts and the directory are those of the rows in the transaction.
pub async fn an_offer_is_accepted_only_by_who_has_room_for_it_and_may_use_its_directory<F: Fixture>() {
    let on = given::<F>().await;
    let store = on.store();
    assert_eq!(change(store, &me(), over(&friend())).await, "done");
    let words = |by: Principal| async move { store.disk_use(by.org, by.person).await.unwrap().words_bytes };
    let both = words(me()).await + words(friend()).await;
    let yes = |own_directory: &GroundPath, open_max, words_bytes_max| PeopleChange::AcceptOffer {
        session: ses(1),
        within: HeirLimits { own_directory: own_directory.clone(), open_max, words_bytes_max },
    };
    let here = scope().directory;
    let before = (picture(&on).await, stands(store, &friend()).await);
    for (no, code) in [
        (yes(&here, 1, both), "too_many_open_sessions"),
        (yes(&here, 2, both - 1), "too_much_on_disk"),
        (yes(&"/elsewhere".into(), 2, both), "directory_not_yours"),
    ] {
        assert_eq!(change(store, &friend(), no).await, code);
        assert_eq!((picture(&on).await, stands(store, &friend()).await), before, "{code}");
        assert_eq!(acted(store).await[0].refused.as_deref(), Some(code));
    }
    assert_eq!(change(store, &friend(), yes(&here, 2, both)).await, "done");
    assert_eq!(words(friend()).await, both);
}
