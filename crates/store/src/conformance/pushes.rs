//! Promises of pushes: where somebody is told is theirs and their credential's, and goes with it.

use super::Fixture;
use super::story::*;
use crate::*;
use kernel::{Moment, PersonId, Principal, TokenId};

/// Somebody, with a credential of theirs.
async fn with(store: &dyn Store, by: &Principal, n: u8, purpose: Purpose) -> Principal {
    let row = TokenRow {
        expires: Some(Moment(50_000)),
        ..TokenRow::full(tok(n), [n; 32], by.person, purpose, Moment(1))
    };
    store.add_token(row).await.unwrap();
    Principal { credential: Some(tok(n)), ..now(store, by).await }
}

fn place(n: u8) -> PushPlace {
    PushPlace { endpoint: format!("https://push.example/{n}"), p256dh: vec![4, n], auth: vec![n; 16] }
}

async fn tell(store: &dyn Store, by: &Principal, place: PushPlace, at: u64) -> bool {
    let trail = Trail { at: Moment(at), ..trail("set_push", at) };
    store.set_push(by.clone(), NewPush { place, trail }).await.unwrap()
}

async fn told(store: &dyn Store, by: &Principal) -> Vec<TokenId> {
    let rows = store.pushes(by.org, Some(by.person)).await.unwrap();
    for row in &rows {
        assert_eq!(store.push(row.token).await.unwrap().as_ref(), Some(row), "whichever way it is looked up");
    }
    rows.into_iter().map(|row| row.token).collect()
}

pub async fn a_push_is_one_credentials_and_outlives_a_restart<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    let (mine, theirs) =
        (with(store, &me(), 1, Purpose::Browser).await, with(store, &friend(), 2, Purpose::Browser).await);
    let before = acts(store).await;
    assert!(tell(store, &mine, place(1), 5).await);
    assert!(tell(store, &theirs, place(2), 6).await);
    assert!(tell(store, &mine, place(3), 7).await, "in place of the one before");
    assert!(!tell(store, &me(), place(4), 8).await, "a part of Homing has no browser");
    let unknown = Principal { credential: Some(tok(9)), ..me() };
    assert!(!tell(store, &unknown, place(5), 8).await);
    assert_eq!(acts(store).await, before + 3);
    let on = on.reopen().await;
    let store = on.store();
    let row = PushRow { token: tok(1), person: me().person, place: place(3), since: Moment(7) };
    assert_eq!(store.push(tok(1)).await.unwrap(), Some(row.clone()));
    assert_eq!(store.pushes(me().org, Some(me().person)).await.unwrap(), [row]);
    let all: Vec<_> = store.pushes(me().org, None).await.unwrap().into_iter().map(|row| row.person).collect();
    assert_eq!(all, [friend().person, me().person], "the oldest first");
    assert_eq!(store.pushes(stranger().org, None).await.unwrap(), []);
    assert_eq!(store.pushes(stranger().org, Some(me().person)).await.unwrap(), []);

    let trail = || trail("remove_push", 9);
    assert!(!store.remove_push(theirs.clone(), tok(1), trail()).await.unwrap(), "it is somebody else's");
    assert!(store.remove_push(mine.clone(), tok(1), trail()).await.unwrap());
    assert!(!store.remove_push(mine, tok(1), trail()).await.unwrap());
    assert_eq!((told(store, &me()).await, told(store, &friend()).await), (vec![], vec![tok(2)]));
}

pub async fn a_push_goes_with_its_credential_whichever_way_that_goes<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    for n in 1..=3 {
        let by = with(store, &friend(), n, Purpose::Browser).await;
        assert!(tell(store, &by, place(n), n.into()).await);
    }
    set(store, PeopleChange::RevokeToken { token: tok(1) }).await;
    assert_eq!(told(store, &friend()).await, [tok(2), tok(3)]);
    set(store, PeopleChange::Disable { person: friend().person }).await;
    assert_eq!(told(store, &friend()).await, []);
    assert_eq!(store.push(tok(3)).await.unwrap(), None);
}

pub async fn a_browser_tells_one_person_and_a_person_has_so_many_browsers<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    let (mine, theirs) =
        (with(store, &me(), 1, Purpose::Browser).await, with(store, &friend(), 2, Purpose::Browser).await);
    assert!(tell(store, &mine, place(1), 5).await);
    let guessed = PushPlace { auth: vec![0; 16], ..place(1) };
    assert!(tell(store, &theirs, guessed, 6).await);
    assert_eq!(told(store, &me()).await, [tok(1)], "an address alone takes nothing away");
    assert!(tell(store, &theirs, place(1), 7).await);
    assert_eq!((told(store, &me()).await, told(store, &friend()).await), (vec![], vec![tok(2)]));

    for n in 0..=PUSHES_MAX as u8 {
        let by = with(store, &me(), 100 + n, Purpose::Browser).await;
        assert!(tell(store, &by, place(100 + n), 100 + u64::from(n)).await);
    }
    let left: Vec<_> = (1..=PUSHES_MAX as u8).map(|n| tok(100 + n)).collect();
    assert_eq!(told(store, &me()).await, left, "the oldest went");
    assert_eq!(told(store, &friend()).await, [tok(2)]);
}

pub async fn a_dead_push_is_forgotten_and_not_what_took_its_place<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    let mine = with(store, &me(), 1, Purpose::Browser).await;
    assert!(tell(store, &mine, place(1), 5).await);
    assert!(tell(store, &mine, place(2), 6).await);
    store.forget_push(tok(1), place(1).endpoint).await.unwrap();
    assert_eq!(told(store, &me()).await, [tok(1)]);
    store.forget_push(tok(1), place(2).endpoint).await.unwrap();
    assert_eq!(told(store, &me()).await, []);
    assert_eq!(store.pushes(me().org, Some(PersonId::from_bits(99))).await.unwrap(), []);
}
