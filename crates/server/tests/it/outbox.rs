//! Replies that do not go out by themselves, from outside: who sees them, and what comes of settling one.

use crate::rounds::code;
use crate::world::{World, trace};
use api::{Code, OutboxQuery, OutgoingState};
use engine::{IfNew, OutgoingKind};
use kernel::{MessageId, Moment, Role};
use store::{Became, NewOutgoing, Outbox, TakeOutgoing};

/// A world in which one reply is parked and two wait, for a door that is not there.
async fn world() -> (World, [u64; 3]) {
    let world = World::new().await;
    let me = world.engine.people().principal(engine::hash_of(crate::world::TOKEN)).await.unwrap().unwrap();
    let made = world.engine.way_in().make(&me, IfNew::default(), None, trace()).await.unwrap();
    let post = |number: u128, to: &str| {
        let (message, kind) = (MessageId::from_bits(number), OutgoingKind::Final);
        let reply = NewOutgoing { to: to.parse().unwrap(), message, kind };
        world.store.post(me.org, made.session, reply, Moment(1_000_000_000_000))
    };
    let posted = [post(1, "chat:a"), post(2, "chat:a"), post(3, "chat:b")];
    let (schemes, under_way, now) = (vec!["chat".into()], vec![], Moment(1_000_000_000_001));
    let take = TakeOutgoing { schemes, under_way, now, read_back_again: now, limit: 1 };
    let taken = world.store.outbox_take(take).await.unwrap().send;
    let parked = Became::Parked { reason: "archived".into() };
    assert!(world.store.outbox_settle(taken[0].outgoing, 1, parked, now).await.unwrap());
    (world, posted)
}

#[tokio::test]
async fn admins_see_replies_page_by_page_and_by_state() {
    let (world, posted) = world().await;
    let client = world.client();
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let query = OutboxQuery { state: None, limit: Some(2), cursor };
        let page = client.outbox(&query).await.unwrap();
        assert!(page.items.len() <= 2);
        seen.extend(page.items);
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen.iter().map(|reply| reply.id).collect::<Vec<_>>(), posted);
    let parked = OutboxQuery { state: Some(OutgoingState::Parked), ..OutboxQuery::default() };
    let parked = client.outbox(&parked).await.unwrap().items;
    assert_eq!(parked, seen[..1]);
    assert_eq!((parked[0].to.as_str(), parked[0].reason.as_deref()), ("chat:a", Some("archived")));
    assert_eq!((parked[0].tries, parked[0].due.is_none(), parked[0].approval.is_none()), (1, true, true));
    let refused = client.outbox(&OutboxQuery { cursor: Some("x".into()), ..OutboxQuery::default() }).await;
    assert_eq!(code(refused.unwrap_err()), Code::BadCursor);
}

#[tokio::test]
async fn a_reply_is_settled_once_and_it_is_in_the_audit() {
    let (world, [first, second, third]) = world().await;
    let client = world.client();
    let bob = world.let_in("bob", Role::Member).await;
    let bob = world.client_of(&bob.token);
    assert_eq!(code(bob.outbox(&OutboxQuery::default()).await.unwrap_err()), Code::RoleTooLow);
    assert_eq!(code(bob.drop_reply(first).await.unwrap_err()), Code::RoleTooLow);
    assert_eq!(code(bob.retry_reply(999).await.unwrap_err()), Code::RoleTooLow, "nothing is said of it");
    assert_eq!(client.retry_reply(first).await.unwrap().id, first.to_string());
    assert_eq!(code(client.retry_reply(first).await.unwrap_err()), Code::TooLate, "it waits already");
    assert_eq!(code(client.retry_reply(999).await.unwrap_err()), Code::NotFound);
    client.drop_reply(second).await.unwrap();
    assert_eq!(code(client.drop_reply(second).await.unwrap_err()), Code::NotFound);
    let left = client.outbox(&OutboxQuery::default()).await.unwrap().items;
    let left: Vec<_> = left.iter().map(|reply| (reply.id, reply.state)).collect();
    assert_eq!(left, [(first, OutgoingState::Waiting), (third, OutgoingState::Waiting)]);
    let audit = world.store.snapshot().audit;
    let about = |verb: &str| -> Vec<_> {
        let those = audit.iter().filter(|row| row.verb == verb);
        those.map(|row| (row.subject.clone().unwrap(), row.refused.clone())).collect()
    };
    let entry = |id: u64, code: Option<&str>| (id.to_string(), code.map(str::to_owned));
    let retried =
        [(999, Some("role_too_low")), (first, None), (first, Some("too_late")), (999, Some("not_found"))];
    assert_eq!(about("retry_reply"), retried.map(|(id, code)| entry(id, code)));
    let dropped = [(first, Some("role_too_low")), (second, None), (second, Some("not_found"))];
    assert_eq!(about("drop_reply"), dropped.map(|(id, code)| entry(id, code)));
}

#[tokio::test]
async fn a_repeated_request_is_answered_and_changes_nothing() {
    let (world, [_, second, third]) = world().await;
    let ask = |id: u64| world.ask("DELETE", &format!("/api/v1/outbox/{id}")).header("Idempotency-Key", "k");
    for _ in 0..2 {
        assert_eq!(ask(second).send().await.unwrap().status(), 200);
    }
    assert_eq!(ask(third).send().await.unwrap().status(), 409, "the key stands for another one");
    for id in ["0", "01", "-1", "x", "1e3", "9999999999999999"] {
        let retry = world.ask("POST", &format!("/api/v1/outbox/{id}/retry")).send().await.unwrap();
        assert_eq!(retry.status(), 404, "{id}");
    }
}
