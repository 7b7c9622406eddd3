//! Promises about chores: their rows stay until they are over, and the session can end over them.

use super::Fixture;
use super::story::*;
use crate::*;
use kernel::{Chore, Denied, EndWhy, Fact, Grant, PersonId, Principal, Request, SessionId, To};

fn remove(session: SessionId) -> Request {
    Request::Chore { session, chore: Chore::Remove { name: "blue".into(), teardown: true } }
}

fn restore(session: SessionId) -> Request {
    let (name, reference) = ("blue".into(), "refs/homing/blue".into());
    Request::Chore { session, chore: Chore::Restore { name, reference } }
}

pub async fn a_chore_stays_in_the_inbox_until_its_verdict<F: Fixture>() {
    let on = peopled::<F>().await;
    open(on.store(), 1).await;
    assert_eq!(ask(on.store(), 1, remove(ses(1))).await, WriteOutcome::Done(waits(1, ses(1))));
    assert_eq!(ask(on.store(), 2, restore(ses(1))).await, WriteOutcome::Done(waits(2, ses(1))));
    let on = on.reopen().await;
    let inbox = on.store().inbox(ses(1), ALL).await.unwrap();
    let asked = |n, request| {
        let (id, by, resolved) = (req(n), me().person, Resolved::default());
        InboxItem::Request { id, by, request, resolved }
    };
    let items: Vec<_> = inbox.iter().map(|row| row.item.clone()).collect();
    assert_eq!(items, [asked(1, remove(ses(1))), asked(2, restore(ses(1)))]);
    // Whatever else is written meanwhile leaves them where they are.
    let staying: Vec<_> = inbox.iter().map(|row| row.number).collect();
    let words = told(append_to(on.store(), ses(1)).await, 0, "script", b"{}");
    written(on.store(), Append { staying: staying.clone(), ..words }).await;
    assert_eq!(on.store().inbox(ses(1), ALL).await.unwrap(), inbox);
    assert_eq!(on.store().unfinished(None, ALL).await.unwrap(), [ses(1)], "the next start looks after it");
    // The first is over, with its story; the other one is not.
    let mut over = told(append_to(on.store(), ses(1)).await, 0, "worktree", b"{}");
    (over.drained, over.staying) = (vec![staying[0]], vec![staying[1]]);
    over.verdicts = vec![(req(1), Verdict::Done)];
    written(on.store(), over).await;
    assert_eq!(on.store().inbox(ses(1), ALL).await.unwrap(), inbox[1..]);
    let on = on.reopen().await;
    assert_eq!(on.store().verdict(req(1)).await.unwrap(), Some(Verdict::Done));
    assert_eq!(on.store().verdict(req(2)).await.unwrap(), None);
}

pub async fn why_a_chore_failed_is_kept_with_its_verdict<F: Fixture>() {
    let on = peopled::<F>().await;
    open(on.store(), 1).await;
    ask(on.store(), 1, remove(ses(1))).await;
    let why = "its teardown failed: exit code 1\n“done” is not the last word".to_owned();
    let failed = Verdict::Failed { why };
    let verdicts = vec![(req(1), failed.clone())];
    written(on.store(), Append { verdicts, ..drain(on.store(), ses(1)).await }).await;
    let on = on.reopen().await;
    assert_eq!(on.store().verdict(req(1)).await.unwrap(), Some(failed));
}

pub async fn a_session_ends_over_chores_that_were_seen_and_over_nothing_else<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    open(store, 1).await;
    ask(store, 1, remove(ses(1))).await;
    let staying = inbox_numbers(store, ses(1)).await;
    let end = with(append_to(store, ses(1)).await, vec![refused(1), ended()]);
    assert_eq!(store.append(end.clone()).await.unwrap(), Appending::Undrained, "nobody has seen it");
    let end = Append { staying: staying.clone(), ..end };
    say(store, &me(), To::Session(ses(1)), line(2)).await;
    assert_eq!(store.append(end.clone()).await.unwrap(), Appending::Undrained, "a message is no chore");
    let both = inbox_numbers(store, ses(1)).await;
    let facts = vec![refused(1), refused(2), ended()];
    let end = with(append_to(store, ses(1)).await, facts);
    written(store, Append { drained: both[1..].to_vec(), staying: staying.clone(), ..end }).await;
    assert!(row(store, ses(1)).await.ended.is_some());
    assert_eq!(inbox_numbers(store, ses(1)).await, staying);
    // And its verdict comes after the end.
    let verdicts = vec![(req(1), Verdict::Done)];
    written(store, Append { verdicts, ..drain(store, ses(1)).await }).await;
    assert_eq!(store.verdict(req(1)).await.unwrap(), Some(Verdict::Done));
    assert_eq!(store.inbox(ses(1), ALL).await.unwrap(), []);
}

pub async fn an_ended_session_takes_chores_and_the_audit_names_the_worktree<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    open(store, 1).await;
    write(store, ses(1), vec![refused(1), Fact::Ended { why: EndWhy::Asked }]).await;
    let before = acts(store).await;
    assert_eq!(ask(store, 1, remove(ses(1))).await, WriteOutcome::Done(waits(1, ses(1))));
    assert_eq!(store.unfinished(None, ALL).await.unwrap(), [ses(1)]);
    assert_eq!(acts(store).await, before + 1);
    let entry = acted(store).await.into_iter().next().unwrap();
    assert_eq!((entry.session, entry.subject.as_deref()), (Some(ses(1)), Some("blue")));
}

pub async fn a_chore_needs_the_right_to_rule_and_so_does_its_beginning<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    open(store, 1).await;
    let asked = async |n| ask_as(store, &friend(), want(n, remove(ses(1)))).await;
    let may = async || store.may_rule(ses(1), friend().person).await.unwrap();
    assert_eq!((asked(1).await, may().await), (not_found("session"), false));
    share(store, ses(1), &friend(), Some(Grant::Prompt)).await;
    let needs = no(Rejection::Denied(Denied::Needs(Grant::Manage)));
    assert_eq!((asked(2).await, may().await), (needs, false));
    assert_eq!(store.inbox(ses(1), ALL).await.unwrap(), []);
    share(store, ses(1), &friend(), Some(Grant::Manage)).await;
    assert_eq!((asked(3).await, may().await), (WriteOutcome::Done(waits(3, ses(1))), true));
    // What was taken in stays there; whoever begins it asks once more.
    share(store, ses(1), &friend(), None).await;
    assert_eq!((inbox_numbers(store, ses(1)).await.len(), may().await), (1, false));
    assert!(store.may_rule(ses(1), me().person).await.unwrap());
    hand_over(store, ses(1), &me(), &friend()).await;
    assert!(may().await && !store.may_rule(ses(1), me().person).await.unwrap());
}

pub async fn homing_itself_asks_for_chores_in_the_org_that_it_acts_for<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    open(store, 1).await;
    let asked = async |org, n| ask_as(store, &Principal::house(org), want(n, remove(ses(1)))).await;
    assert_eq!(asked(stranger().org, 1).await, not_found("session"));
    assert_eq!(asked(me().org, 2).await, WriteOutcome::Done(waits(2, ses(1))));
    let entry = acted(store).await.into_iter().find(|row| row.org == me().org).unwrap();
    assert_eq!((entry.by, entry.subject.as_deref()), (Some(PersonId::ENGINE), Some("blue")));
    let on = on.reopen().await;
    let inbox = on.store().inbox(ses(1), ALL).await.unwrap();
    assert!(matches!(&inbox[..], [InboxRow { item: InboxItem::Request { by: PersonId::ENGINE, .. }, .. }]));
}
