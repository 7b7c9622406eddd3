//! Promises about conversations that were had elsewhere.

use super::Fixture;
use super::story::*;
use crate::*;
use bytes::Bytes;
use kernel::{
    Change, Delivery, Fact, Grant, Grantee, Moment, Named, Number, Principal, Scope, SessionId, Setting, To,
    Turn,
};

/// The id that everything here had elsewhere.
fn there() -> SessionId {
    ses(900)
}

/// A past of one turn, in which message `n` was answered with a word.
fn past(n: u32, by: &Principal) -> Past {
    let elsewhere = Scope { agent: String::new(), ..scope() };
    let change = Change::Set { agent: Some(scope().agent), model: Setting::Keep, mode: Setting::Keep };
    let rules = [
        Fact::Opened { scope: elsewhere, origin: None, enter: None },
        queued_by(n, by.person),
        started(1, n),
        attempt(1),
        answered(1),
        Fact::ChangeAsked { change, after: None, by: by.person },
        Fact::ScopeChanged { epoch: kernel::Epoch(1), scope: scope() },
    ];
    let fact = |entry| NewFact { at: Moment(1_000), cause: Cause::Keeper, entry };
    let mut facts: Vec<_> = rules.into_iter().map(|rule| fact(Entry::Rule(rule))).collect();
    let body = Bytes::from_static(br#"{"v":1,"turn":1,"type":"text","part":0,"offset":0,"text":"hi"}"#);
    facts.insert(4, fact(Entry::Story { turn: Turn(1), kind: "text".into(), body }));
    let said = PastMessage {
        message: msg(n),
        words: line(n).words(),
        attachments: vec![attached("past")],
        delivery: Delivery::Queue,
    };
    Past { import: Import { id: there(), org: "far".into() }, messages: vec![said], facts }
}

pub(super) fn bring(n: u32, by: &Principal) -> Create {
    let elsewhere = Scope { agent: String::new(), ..scope() };
    let session = NewSession { scope: elsewhere, ..fresh_session(n, None) };
    Create { past: Some(past(n, by)), ..create_of("import", session) }
}

pub(super) async fn brought(store: &dyn Store, n: u32, by: &Principal) {
    assert_eq!(create(store, by, bring(n, by)).await, WriteOutcome::Done(ses(n)));
}

async fn named(store: &dyn Store, by: &Principal) -> Vec<(SessionId, bool)> {
    let named = store.named(Seer::of(by), there()).await.unwrap();
    named.iter().map(|Named { record, imported_by }| (record.session, imported_by.is_some())).collect()
}

pub async fn an_import_is_there_with_its_whole_past<F: Fixture>() {
    let on = peopled::<F>().await;
    brought(on.store(), 1, &me()).await;
    assert_eq!(acts(on.store()).await, 1);
    let on = on.reopen().await;
    let store = on.store();
    let now = row(store, ses(1)).await;
    assert_eq!(now.import, Some(Import { id: there(), org: "far".into() }));
    assert_eq!((now.at, now.pending, now.awake, now.ended), (Number(8), 0, false, None));
    assert_eq!((now.scope, now.epoch), (scope(), kernel::Epoch(1)));
    let said = receipt(store, 1).await;
    assert_eq!((said.state, said.turn, said.by), (ReceiptState::Answered, Some(Turn(1)), me().person));
    assert_eq!(store.words(msg(1)).await.unwrap(), Some(line(1).words()));
    let facts = log(store, ses(1)).await;
    let numbers: Vec<_> = facts.iter().map(|fact| fact.number.0).collect();
    assert_eq!(numbers, (1..=8).collect::<Vec<_>>());
    assert_eq!(store.inbox(ses(1), ALL).await.unwrap(), [], "it has been opened");
    assert_eq!(store.unfinished(None, ALL).await.unwrap(), []);
    let heads = store.heads(Seer::of(&me()), 0, ALL).await.unwrap();
    assert_eq!(
        heads.iter().map(|head| (head.session, head.number)).collect::<Vec<_>>(),
        [(ses(1), Number(8))]
    );
    // It goes on like any other.
    say(store, &me(), To::Session(ses(1)), line(2)).await;
    write(store, ses(1), vec![queued(2), started(2, 2)]).await;
    assert_eq!(receipt(store, 2).await.turn, Some(Turn(2)));
}

pub async fn an_imports_name_is_known_in_its_org_only<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    assert_eq!(named(store, &me()).await, []);
    brought(store, 1, &me()).await;
    brought(store, 2, &stranger()).await;
    assert_eq!(named(store, &me()).await, [(ses(1), true)]);
    assert_eq!(named(store, &stranger()).await, [(ses(2), true)]);
    brought(store, 3, &friend()).await;
    assert_eq!(named(store, &me()).await, [(ses(1), true)]);
    assert_eq!(named(store, &friend()).await, [(ses(3), true)], "each has their own");
    share(store, ses(1), &friend(), Some(Grant::View)).await;
    assert_eq!(named(store, &friend()).await, [(ses(1), true), (ses(3), true)], "and what they see");
    let on = on.reopen().await;
    assert_eq!(named(on.store(), &stranger()).await, [(ses(2), true)]);
    write(on.store(), ses(1), vec![ended()]).await;
    assert_eq!(named(on.store(), &friend()).await, [(ses(1), true), (ses(3), true)], "final is final");
    // Its own id is a name, too, and not one of another org.
    let own = async |by: &Principal| on.store().named(Seer::of(by), ses(1)).await.unwrap();
    assert_eq!(own(&me()).await.iter().map(|named| named.imported_by).collect::<Vec<_>>(), [None]);
    assert_eq!(own(&stranger()).await, []);
}

pub async fn what_somebody_has_imported_they_import_once<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    brought(store, 1, &me()).await;
    let before = picture(&on).await;
    let here = || no(Rejection::AlreadyHere { session: ses(1) });
    assert_eq!(create(store, &me(), bring(2, &me())).await, here());
    let mut crowded = bring(2, &me());
    crowded.session.open_max = 0;
    assert_eq!(create(store, &me(), crowded).await, here(), "whether or not there is room");
    assert_eq!(picture(&on).await, before, "nothing of it is left");
    assert!(store.receipt(msg(2)).await.unwrap().is_none());
    let keyed = |n| Create { key: Some(key("import", "k", 1)), ..bring(n, &stranger()) };
    assert_eq!(create(store, &stranger(), keyed(3)).await, WriteOutcome::Done(ses(3)));
    assert_eq!(create(store, &stranger(), keyed(4)).await, WriteOutcome::Repeated(ses(3)));
    // What somebody else has brought is in the way of whoever sees it, and of nobody else.
    share(store, ses(1), &friend(), Some(Grant::View)).await;
    assert_eq!(create(store, &friend(), bring(5, &friend())).await, here());
    share(store, ses(1), &friend(), None).await;
    assert_eq!(create(store, &friend(), bring(5, &friend())).await, WriteOutcome::Done(ses(5)));
}

pub async fn an_import_is_nobody_elses_whatever_the_org_shares<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    let settings = OrgSettings { share_new: Some(kernel::Grant::View), ..OrgSettings::default() };
    set(store, crate::PeopleChange::Settings(settings)).await;
    let by = now(store, &me()).await;
    brought(store, 1, &by).await;
    let (record, _) = store.session(ses(1)).await.unwrap().unwrap();
    assert_eq!(record.grants, []);
    assert_eq!(list(store, &friend(), Which::Open).await.len(), 0);
    open(store, 2).await;
    let (record, _) = store.session(ses(2)).await.unwrap().unwrap();
    assert_eq!(record.grants, [(Grantee::Org, kernel::Grant::View)]);
}
