//! Promises of the outbox to the doors.

use super::Fixture;
use super::story::*;
use crate::*;
use kernel::{Denied, Moment, Principal, Role};

/// The end of time, as far as replies are concerned.
const LATE: Moment = Moment(u64::MAX >> 2);

/// A session with three replies in the outbox, two of them to one address.
async fn three(store: &dyn Store) -> Vec<Outgoing> {
    open(store, 1).await;
    let reply = |to: &str, kind| NewOutgoing { to: to.parse().unwrap(), message: msg(1), kind };
    let mut append = append_to(store, ses(1)).await;
    append.replies = vec![
        reply("slack:T1/C1/1.5", OutgoingKind::Final),
        reply("slack:T1/C1/1.5", OutgoingKind::Question(apr(7))),
        reply("slack:T1/C2/2.5", OutgoingKind::Final),
    ];
    written(store, append).await;
    in_state(store, OutgoingState::Waiting).await
}

async fn in_state(store: &dyn Store, state: OutgoingState) -> Vec<Outgoing> {
    store.outbox_list(me().org, Some(state), 0, ALL).await.unwrap()
}

/// Takes what is due, and knows of everything that is being sent.
async fn take(store: &dyn Store, now: Moment, limit: usize) -> TakenOutgoing {
    let under_way = ids(&in_state(store, OutgoingState::Sending).await);
    take_beside(store, under_way, now, limit).await
}

async fn take_beside(store: &dyn Store, under_way: Vec<u64>, now: Moment, limit: usize) -> TakenOutgoing {
    let (schemes, read_back_again) = (vec!["mail".into(), "slack".into()], Moment(now.0 + 100));
    store.outbox_take(TakeOutgoing { schemes, under_way, now, read_back_again, limit }).await.unwrap()
}

/// Settles the try that is under way.
async fn settle(store: &dyn Store, outgoing: u64, became: Became) -> bool {
    let rows = store.outbox_list(me().org, None, 0, ALL).await.unwrap();
    let tries = rows.iter().find(|row| row.outgoing == outgoing).map_or(0, |row| row.tries);
    store.outbox_settle(outgoing, tries, became, Moment(70)).await.unwrap()
}

async fn hand(store: &dyn Store, by: &Principal, outgoing: u64, hand: Hand) -> WriteOutcome<(), Rejection> {
    hand_with(store, by, outgoing, hand, None).await
}

async fn hand_with(
    store: &dyn Store,
    by: &Principal,
    outgoing: u64,
    hand: Hand,
    key: Option<Key>,
) -> WriteOutcome<(), Rejection> {
    let (here, trail) = (store.node().node, trail("retry_reply", 60));
    store.outbox_by_hand(arc(by), SettleByHand { outgoing, hand, here, key, trail }).await.unwrap()
}

fn sent(id: &str) -> Became {
    Became::Sent { service_id: Some(id.into()) }
}

fn parked() -> Became {
    Became::Parked { reason: "archived".into() }
}

fn unknown(read_back: Option<Moment>) -> Became {
    Became::Unknown { reason: "lost".into(), read_back }
}

fn ids(replies: &[Outgoing]) -> Vec<u64> {
    replies.iter().map(|reply| reply.outgoing).collect()
}

pub async fn a_reply_is_in_the_outbox_with_the_facts_it_follows_from<F: Fixture>() {
    let on = peopled::<F>().await;
    let waiting = three(on.store()).await;
    let first = &waiting[0];
    assert_eq!((waiting.len(), first.org, first.session, first.message), (3, me().org, ses(1), msg(1)));
    assert_eq!((first.to.to_string(), first.tries), ("slack:T1/C1/1.5".into(), 0));
    let kinds: Vec<_> = waiting.iter().map(|reply| reply.kind).collect();
    assert_eq!(kinds, [OutgoingKind::Final, OutgoingKind::Question(apr(7)), OutgoingKind::Final]);
    let on = on.reopen().await;
    assert_eq!(in_state(on.store(), OutgoingState::Waiting).await, waiting);
    let (org, after) = (me().org, waiting[0].outgoing);
    assert_eq!(on.store().outbox_list(org, None, after, 1).await.unwrap(), waiting[1..2]);
    assert_eq!(on.store().outbox_list(stranger().org, None, 0, ALL).await.unwrap(), []);
}

pub async fn a_reply_is_taken_once_and_settled_once<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    let waiting = three(store).await;
    let [a1, a2, b] = ids(&waiting)[..] else { panic!("three replies") };
    // One at a time to one address.
    let taken = take(store, Moment(1), ALL).await;
    assert_eq!(ids(&taken.send), [a1, b]);
    assert!(taken.send.iter().all(|reply| reply.state == OutgoingState::Sending && reply.tries == 1));
    assert!(taken.send.iter().all(|reply| reply.node == Some(store.node().node)));
    assert_eq!((taken.next, take(store, LATE, ALL).await), (None, TakenOutgoing::default()));
    assert!(settle(store, a1, sent("1.1")).await);
    assert!(!settle(store, a1, parked()).await, "sent is sent");
    assert_eq!(ids(&take(store, Moment(1), ALL).await.send), [a2]);
    assert!(settle(store, a2, parked()).await);
    assert!(!settle(store, a2, sent("1.2")).await, "what is parked is settled by hand");
    assert!(settle(store, b, unknown(None)).await);
    assert!(!settle(store, 999, sent("1.3")).await);
    for (state, reply) in
        [(OutgoingState::Sent, a1), (OutgoingState::Parked, a2), (OutgoingState::Unknown, b)]
    {
        assert_eq!(ids(&in_state(store, state).await), [reply]);
    }
    let row = in_state(store, OutgoingState::Sent).await.remove(0);
    assert_eq!((row.service_id.as_deref(), row.node, row.since), (Some("1.1"), None, Moment(70)));
    let row = in_state(store, OutgoingState::Parked).await.remove(0);
    assert_eq!((row.reason.as_deref(), row.due), (Some("archived"), None));
    assert_eq!(take(store, LATE, ALL).await, TakenOutgoing::default(), "nothing goes by itself any more");
}

pub async fn a_reply_that_is_waiting_cannot_be_settled<F: Fixture>() {
    let on = peopled::<F>().await;
    let waiting = three(on.store()).await;
    assert!(!settle(on.store(), waiting[0].outgoing, sent("1")).await);
    assert_eq!(in_state(on.store(), OutgoingState::Waiting).await, waiting);
}

pub async fn a_reply_that_was_not_sent_waits_for_its_moment<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    let [a1, a2, b] = ids(&three(store).await)[..] else { panic!("three replies") };
    take(store, Moment(1), 1).await;
    let again = Became::Again { due: Moment(500), reason: Some("down".into()) };
    assert!(settle(store, a1, again).await);
    let taken = take(store, Moment(499), ALL).await;
    assert_eq!((ids(&taken.send), taken.next), (vec![b], Some(Moment(500))), "nothing overtakes it");
    let again = take(store, Moment(500), ALL).await;
    assert_eq!((ids(&again.send), again.send[0].tries), (vec![a1], 2));
    settle(store, a1, sent("1")).await;
    assert_eq!(ids(&take(store, Moment(500), ALL).await.send), [a2]);
}

pub async fn a_door_takes_only_what_is_its_own<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    let waiting = three(store).await;
    for schemes in [vec![], vec!["slac".to_owned()], vec!["slack2".to_owned(), "lack".to_owned()]] {
        let (under_way, now, read_back_again) = (vec![], LATE, LATE);
        let take = TakeOutgoing { schemes, under_way, now, read_back_again, limit: ALL };
        assert_eq!(store.outbox_take(take).await.unwrap(), TakenOutgoing::default());
    }
    assert_eq!(in_state(store, OutgoingState::Waiting).await, waiting);
}

/// It may have been sent: nobody can say, so nobody sends it again by itself.
pub async fn what_was_being_sent_at_a_crash_is_unknown<F: Fixture>() {
    let on = peopled::<F>().await;
    let [a1, a2, b] = ids(&three(on.store()).await)[..] else { panic!("three replies") };
    take(on.store(), Moment(1), ALL).await;
    assert!(settle(on.store(), b, sent("1")).await);
    let on = on.reopen().await;
    let store = on.store();
    let unknown = in_state(store, OutgoingState::Unknown).await;
    assert_eq!((ids(&unknown), unknown[0].reason.is_some(), unknown[0].node), (vec![a1], true, None));
    assert_eq!(in_state(store, OutgoingState::Sending).await, []);
    // It is read back, and holds up what comes after it until then.
    let taken = take(store, LATE, ALL).await;
    assert_eq!((ids(&taken.send), ids(&taken.read_back)), (vec![], vec![a1]));
    assert_eq!(taken.next, Some(Moment(LATE.0 + 100)), "whoever dies while asking is followed by somebody");
    assert_eq!(take(store, LATE, ALL).await.read_back, []);
    assert!(settle(store, a1, sent("2")).await);
    assert_eq!(ids(&take(store, LATE, ALL).await.send), [a2]);
}

/// The answer to a take may be lost, and with it what was to be sent.
pub async fn what_its_node_lost_sight_of_is_unknown<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    let [a1, a2, b] = ids(&three(store).await)[..] else { panic!("three replies") };
    assert_eq!(ids(&take(store, Moment(1), ALL).await.send), [a1, b]);
    let (schemes, under_way) = (vec!["mail".into()], vec![]);
    let other = TakeOutgoing { schemes, under_way, now: LATE, read_back_again: LATE, limit: ALL };
    assert_eq!(store.outbox_take(other).await.unwrap(), TakenOutgoing::default(), "it is another door's");
    let taken = take_beside(store, vec![b], Moment(2), ALL).await;
    assert_eq!((ids(&taken.send), ids(&taken.read_back)), (vec![], vec![a1]));
    assert_eq!(ids(&in_state(store, OutgoingState::Sending).await), [b]);
    assert!(settle(store, a1, Became::Again { due: Moment(3), reason: None }).await);
    assert_eq!(ids(&take(store, Moment(3), ALL).await.send), [a1]);
    assert_eq!(ids(&in_state(store, OutgoingState::Waiting).await), [a2]);
}

pub async fn what_is_unknown_is_found_or_found_missing_or_left_to_a_person<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    let [a1, a2, b] = ids(&three(store).await)[..] else { panic!("three replies") };
    take(store, Moment(1), ALL).await;
    assert!(
        settle(store, a1, unknown(Some(Moment(10)))).await
            && settle(store, b, unknown(Some(Moment(10)))).await
    );
    let asked = take(store, Moment(10), ALL).await;
    assert_eq!((ids(&asked.read_back), asked.send.len()), (vec![a1, b], 0));
    assert!(!settle(store, a1, parked()).await, "nobody knows that it was not sent");
    assert!(settle(store, b, Became::Again { due: Moment(11), reason: None }).await);
    assert!(settle(store, a1, unknown(None)).await);
    let taken = take(store, Moment(11), ALL).await;
    assert_eq!(ids(&taken.send), [a2, b], "what waits for a person holds nobody up");
    assert_eq!(ids(&in_state(store, OutgoingState::Unknown).await), [a1]);
}

/// The answer to a write may be lost, so it is written again; by then another try may be under way.
pub async fn what_became_of_a_try_says_nothing_of_the_next_one<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    let [a1, _, b] = ids(&three(store).await)[..] else { panic!("three replies") };
    let again = || Became::Again { due: Moment(2), reason: None };
    take(store, Moment(1), ALL).await;
    assert!(store.outbox_settle(a1, 1, again(), Moment(1)).await.unwrap());
    let taken = take(store, Moment(2), ALL).await.send;
    assert_eq!((ids(&taken), taken[0].tries), (vec![a1], 2));
    assert!(!store.outbox_settle(a1, 1, again(), Moment(3)).await.unwrap());
    assert_eq!(ids(&in_state(store, OutgoingState::Sending).await), [a1, b], "else it would be sent twice");
    assert!(store.outbox_settle(a1, 2, sent("1"), Moment(3)).await.unwrap());
}

pub async fn a_reply_is_settled_by_hand_once_and_by_its_own_org<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    let [a1, a2, b] = ids(&three(store).await)[..] else { panic!("three replies") };
    take(store, Moment(1), ALL).await;
    let too_late = || no(Rejection::TooLate);
    assert_eq!(hand(store, &me(), a1, Hand::Drop).await, too_late(), "it is under way");
    settle(store, a1, parked()).await;
    settle(store, b, sent("1")).await;
    assert_eq!(hand(store, &stranger(), a1, Hand::Drop).await, not_found("reply"));
    assert_eq!(hand(store, &me(), 999, Hand::Retry).await, not_found("reply"));
    assert_eq!(hand(store, &me(), b, Hand::Retry).await, too_late());
    assert_eq!(hand(store, &me(), b, Hand::Drop).await, too_late());
    assert_eq!(hand(store, &me(), a1, Hand::Retry).await, WriteOutcome::Done(()));
    let retried = in_state(store, OutgoingState::Waiting).await.remove(0);
    assert_eq!((retried.outgoing, retried.reason, retried.due), (a1, None, Some(Moment(60))));
    assert_eq!(hand(store, &me(), a1, Hand::Retry).await, too_late());
    assert_eq!(hand(store, &me(), a2, Hand::Drop).await, WriteOutcome::Done(()));
    let entries = acted(store).await;
    let codes = entries.iter().map(|row| row.refused.as_deref());
    let expected = [None, Some("too_late"), None, Some("too_late"), Some("too_late"), Some("not_found")];
    assert_eq!(codes.take(6).collect::<Vec<_>>(), expected, "each is in the audit, done or refused");
    let left = store.outbox_list(me().org, None, 0, ALL).await.unwrap();
    assert_eq!(ids(&left), [a1, b]);
    assert_eq!(ids(&take(store, Moment(60), ALL).await.send), [a1]);
}

pub async fn only_admins_settle_replies_and_a_repetition_changes_nothing<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    let [a1, a2, _] = ids(&three(store).await)[..] else { panic!("three replies") };
    let low = no(Rejection::Denied(Denied::NeedsRole(Role::Admin)));
    // Also if it is not there: whoever may not settle is not told.
    for outgoing in [a1, 999] {
        assert_eq!(hand(store, &friend(), outgoing, Hand::Drop).await, low);
    }
    let keyed = || Some(key("drop_reply", "k", 1));
    assert_eq!(hand_with(store, &me(), a1, Hand::Drop, keyed()).await, WriteOutcome::Done(()));
    assert_eq!(hand_with(store, &me(), a1, Hand::Drop, keyed()).await, WriteOutcome::Repeated(()));
    let other = Some(key("drop_reply", "k", 2));
    assert_eq!(hand_with(store, &me(), a2, Hand::Drop, other).await, WriteOutcome::Conflict);
    assert_eq!(hand(store, &me(), a1, Hand::Drop).await, not_found("reply"));
    let on = on.reopen().await;
    assert_eq!(hand_with(on.store(), &me(), a1, Hand::Drop, keyed()).await, WriteOutcome::Repeated(()));
}

pub async fn what_was_sent_is_forgotten_in_the_end<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    let [a1, a2, b] = ids(&three(store).await)[..] else { panic!("three replies") };
    take(store, Moment(1), ALL).await;
    settle(store, a1, sent("1")).await;
    settle(store, b, parked()).await;
    assert_eq!(store.outbox_clear(Moment(70), ALL).await.unwrap(), 0);
    assert_eq!(store.outbox_clear(Moment(71), ALL).await.unwrap(), 1);
    assert_eq!(store.outbox_clear(Moment(71), ALL).await.unwrap(), 0);
    let left = store.outbox_list(me().org, None, 0, ALL).await.unwrap();
    assert_eq!(ids(&left), [a2, b], "and nothing else is");
}
