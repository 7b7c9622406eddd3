//! Whose replies a start looks after: those of its own machine, and of no other that had the file before.

use crate::world::*;
use homing_store_sqlite::{Options, SqliteStore};
use kernel::{Moment, NodeId, OrgId};
use std::path::Path;
use std::sync::Arc;
use store::{
    Appending, Hand, Log, NewOutgoing, Outbox, Outgoing, OutgoingKind, OutgoingState, SettleByHand, Store,
    TakeOutgoing, WriteOutcome,
};

const ELSEWHERE: NodeId = NodeId::from_bits(8);

/// A file in which this node is sending a reply.
async fn sending(dir: &Path) -> Outgoing {
    let store = open(dir).unwrap();
    said(&store, first(session(1), 1)).await.unwrap();
    let to = "chat:general".parse().unwrap();
    let replies = vec![NewOutgoing { to, message: message(1), kind: OutgoingKind::Final }];
    let append = store::Append { replies, ..story(session(1), 0, 10) };
    assert!(matches!(store.append(append).await.unwrap(), Appending::Done(_)));
    let (schemes, under_way, now) = (vec!["chat".into()], vec![], Moment(6_000));
    let take = TakeOutgoing { schemes, under_way, now, read_back_again: now, limit: 10 };
    let taken = store.outbox_take(take).await.unwrap().send;
    let [sending] = &taken[..] else { panic!("{taken:?}") };
    assert_eq!((sending.state, sending.node), (OutgoingState::Sending, Some(NODE)));
    sending.clone()
}

async fn only_row(store: &SqliteStore) -> Outgoing {
    let org: OrgId = somebody().org;
    let rows = store.outbox_list(org, None, 0, 10).await.unwrap();
    let [row] = &rows[..] else { panic!("{rows:?}") };
    row.clone()
}

#[tokio::test]
async fn a_start_looks_after_what_its_own_machine_was_sending() {
    let dir = tempfile::tempdir().unwrap();
    sending(dir.path()).await;
    // Another process on the same machine has another id: the one before is no more, or it would hold the file.
    let again = Options::new(ELSEWHERE, "testhost", Moment(9_000));
    let store = SqliteStore::open(dir.path(), &again).unwrap();
    let row = only_row(&store).await;
    assert_eq!((row.state, row.node, row.due), (OutgoingState::Unknown, None, Some(Moment(9_000))));
    assert!(row.reason.is_some());
}

#[tokio::test]
async fn what_another_machine_was_sending_is_left_to_a_person() {
    let dir = tempfile::tempdir().unwrap();
    let sent = sending(dir.path()).await;
    let other = Options::new(ELSEWHERE, "elsewhere", Moment(9_000));
    let store = SqliteStore::open(dir.path(), &other).unwrap();
    assert_eq!(only_row(&store).await, sent, "it may be on its way there");
    let new = SettleByHand {
        outgoing: sent.outgoing,
        hand: Hand::Retry,
        here: store.node().node,
        key: None,
        trail: trail("retry_reply", 7),
    };
    assert_eq!(store.outbox_by_hand(Arc::new(somebody()), new).await.unwrap(), WriteOutcome::Done(()));
    assert_eq!(only_row(&store).await.state, OutgoingState::Waiting);
}
