//! What the outbox promises to the doors.

use super::Fixture;
use super::story::*;
use crate::*;
use kernel::Moment;

/// A session with three replies in the outbox.
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
    store.outbox_list(OutgoingState::Waiting, ALL).await.unwrap()
}

pub async fn a_reply_is_in_the_outbox_with_the_facts_it_follows_from<F: Fixture>() {
    let on = peopled::<F>().await;
    let waiting = three(on.store()).await;
    let first = &waiting[0];
    assert_eq!((waiting.len(), first.session, first.message), (3, ses(1), msg(1)));
    assert_eq!((first.to.to_string(), first.tries), ("slack:T1/C1/1.5".into(), 0));
    let kinds: Vec<_> = waiting.iter().map(|reply| reply.kind).collect();
    assert_eq!(kinds, [OutgoingKind::Final, OutgoingKind::Question(apr(7)), OutgoingKind::Final]);
    let on = on.reopen().await;
    assert_eq!(on.store().outbox_list(OutgoingState::Waiting, ALL).await.unwrap(), waiting);
    assert_eq!(on.store().outbox_list(OutgoingState::Waiting, 2).await.unwrap(), waiting[..2]);
}

pub async fn a_reply_is_taken_once_and_settled_once<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    let waiting = three(store).await;
    let taken = store.outbox_take(Moment(1), 2).await.unwrap();
    let ids = |replies: &[Outgoing]| replies.iter().map(|reply| reply.outgoing).collect::<Vec<_>>();
    assert_eq!(ids(&taken), ids(&waiting[..2]));
    assert!(taken.iter().all(|reply| reply.state == OutgoingState::Sending && reply.tries == 1));
    assert_eq!(ids(&store.outbox_take(Moment(1), ALL).await.unwrap()), ids(&waiting[2..]));
    assert_eq!(store.outbox_take(Moment(u64::MAX >> 1), ALL).await.unwrap(), []);
    assert!(store.outbox_settle(waiting[0].outgoing, Became::Sent).await.unwrap());
    assert!(!store.outbox_settle(waiting[0].outgoing, Became::Parked).await.unwrap(), "sent is sent");
    assert!(store.outbox_settle(waiting[1].outgoing, Became::Parked).await.unwrap());
    assert!(store.outbox_settle(waiting[2].outgoing, Became::Unknown).await.unwrap());
    assert!(!store.outbox_settle(999, Became::Sent).await.unwrap());
    for (state, reply) in [(OutgoingState::Sent, 0), (OutgoingState::Parked, 1), (OutgoingState::Unknown, 2)]
    {
        let those = store.outbox_list(state, ALL).await.unwrap();
        assert_eq!(ids(&those), [waiting[reply].outgoing]);
    }
    assert_eq!(store.outbox_take(Moment(u64::MAX >> 1), ALL).await.unwrap(), []);
}

pub async fn a_reply_that_is_waiting_cannot_be_settled<F: Fixture>() {
    let on = peopled::<F>().await;
    let waiting = three(on.store()).await;
    assert!(!on.store().outbox_settle(waiting[0].outgoing, Became::Sent).await.unwrap());
    assert_eq!(on.store().outbox_list(OutgoingState::Waiting, ALL).await.unwrap(), waiting);
}

pub async fn a_reply_that_was_not_sent_waits_for_its_moment<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    let waiting = three(store).await;
    store.outbox_take(Moment(1), 1).await.unwrap();
    assert!(store.outbox_settle(waiting[0].outgoing, Became::Again(Moment(500))).await.unwrap());
    let ids: Vec<_> = store.outbox_take(Moment(499), ALL).await.unwrap();
    assert!(ids.iter().all(|reply| reply.outgoing != waiting[0].outgoing));
    let again = store.outbox_take(Moment(500), ALL).await.unwrap();
    assert_eq!((again[0].outgoing, again[0].tries), (waiting[0].outgoing, 2));
}

/// It may have been sent: nobody can say, so nobody sends it again by itself.
pub async fn what_was_being_sent_at_a_crash_is_unknown<F: Fixture>() {
    let on = peopled::<F>().await;
    let waiting = three(on.store()).await;
    let taken = on.store().outbox_take(Moment(1), 2).await.unwrap();
    on.store().outbox_settle(taken[0].outgoing, Became::Sent).await.unwrap();
    let on = on.reopen().await;
    let unknown = on.store().outbox_list(OutgoingState::Unknown, ALL).await.unwrap();
    assert_eq!((unknown.len(), unknown[0].outgoing), (1, taken[1].outgoing));
    assert_eq!(on.store().outbox_list(OutgoingState::Sending, ALL).await.unwrap(), []);
    let rest = on.store().outbox_take(Moment(u64::MAX >> 1), ALL).await.unwrap();
    assert_eq!((rest.len(), rest[0].outgoing), (1, waiting[2].outgoing));
}
