//! What `accept`, `create` and `find` promise.

use super::Fixture;
use super::story::*;
use crate::*;
use kernel::{EndWhy, Fact, Found, Grant, Moment, Number, To, authorize_new};

pub async fn an_accepted_message_is_there_with_all_that_belongs_to_it<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    let slack = "slack:T1/C1/17.5".parse().unwrap();
    let first = Line { reply: Some(slack), ..line(1) };
    let accepted = say(store, &me(), conversation("a"), first.clone()).await;

    let at = Moment(first.at);
    let expected = Accepted {
        message: msg(1),
        session: ses(1),
        created: true,
        previous: None,
        if_new_ignored: false,
        at,
    };
    assert_eq!(accepted, expected);
    let on = on.reopen().await;
    let store = on.store();
    let receipt = receipt(store, 1).await;
    assert_eq!((receipt.message, receipt.session, receipt.by), (msg(1), ses(1), me().person));
    assert_eq!((receipt.state, receipt.why, receipt.revision), (ReceiptState::Waiting, None, 0));
    assert_eq!((receipt.accepted_at, receipt.changed_at, receipt.created), (at, at, true));
    assert_eq!((receipt.reply, receipt.turn, receipt.first), (first.reply.clone(), None, None));
    assert_eq!(store.words(msg(1)).await.unwrap(), Some(first.words()));
    let inbox = store.inbox(ses(1), ALL).await.unwrap();
    assert_eq!(inbox.len(), 1);
    assert_eq!((inbox[0].at, &inbox[0].item), (at, &say_item(msg(1), me().person)));
    let row = row(store, ses(1)).await;
    assert_eq!((row.org, row.owner, row.scope), (me().org, me().person, scope()));
    assert_eq!((row.title.as_deref(), row.ended, row.archived), (Some("session 1"), None, false));
    assert_eq!((row.at, row.pending, row.awake), (Number(0), 1, false));
    assert_eq!((row.made_at, row.touched_at), (at, at));
    let bindings = store.bindings(Seer::of(&me()), None, ALL).await.unwrap();
    assert_eq!(bindings, [BindingRow { address: address("a"), session: ses(1), since: at }]);
    assert_eq!(acts(on.store()).await, 1);
}

/// No fact is written by it: the keeper's first one is number 1.
pub async fn accepting_writes_no_fact<F: Fixture>() {
    let on = peopled::<F>().await;
    say(on.store(), &me(), conversation("a"), line(1)).await;
    assert_eq!(log(on.store(), ses(1)).await, []);
    let loaded = on.store().load(ses(1)).await.unwrap().unwrap();
    assert_eq!((loaded.org, loaded.scope, loaded.at), (me().org, scope(), Number(0)));
    assert_eq!((loaded.facts, loaded.since_checkpoint), (vec![], 0));
    assert_eq!(write(on.store(), ses(1), vec![opened()]).await, Number(1));
}

pub async fn words_come_back_byte_for_byte<F: Fixture>() {
    let on = peopled::<F>().await;
    let words = bytes::Bytes::from_static("\u{0}\"\\ \u{1F54A}\u{fe0f} {\"a\" : 1.0}\n".as_bytes());
    let wish = aim(on.store(), &me(), To::New, line(1)).await;
    let new = NewMessage { words: words.clone(), ..wish.wish().clone() };
    on.store().accept(authorize_new(&me(), anywhere(None), new).unwrap()).await.unwrap();
    assert_eq!(on.store().words(msg(1)).await.unwrap(), Some(words));
    assert_eq!(on.store().words(msg(2)).await.unwrap(), None);
}

pub async fn the_same_key_gets_the_same_receipt<F: Fixture>() {
    let on = peopled::<F>().await;
    let first = say(on.store(), &me(), conversation("a"), line(1).keyed("k", 7)).await;
    let before = picture(&on).await;
    // Sent again, it would go into the session that it has made; it must not be told so.
    let again = send(on.store(), &me(), conversation("a"), line(2).keyed("k", 7)).await;
    assert_eq!(again, Acceptance::Before(first));
    assert_eq!(picture(&on).await, before);
    assert!(on.store().receipt(msg(2)).await.unwrap().is_none());
}

pub async fn the_same_key_gets_the_same_receipt_after_a_restart<F: Fixture>() {
    let on = peopled::<F>().await;
    let first = say(on.store(), &me(), conversation("a"), line(1).keyed("k", 7)).await;
    let on = on.reopen().await;
    let again = send(on.store(), &me(), conversation("a"), line(2).keyed("k", 7)).await;
    assert_eq!(again, Acceptance::Before(first));
}

pub async fn concurrent_uses_of_one_key_are_one_message<F: Fixture>() {
    let on = peopled::<F>().await;
    let mut sends = vec![];
    for n in 1..=8 {
        let wish = aim(on.store(), &me(), To::New, line(n).keyed("k", 7)).await;
        sends.push(on.store().accept(wish));
    }
    let answers = together(sends).await;
    let done = |answer: &&Result<Acceptance, _>| matches!(answer, Ok(Acceptance::Done(_)));
    assert_eq!(answers.iter().filter(done).count(), 1);
    let before = answers.iter().filter(|answer| matches!(answer, Ok(Acceptance::Before(_))));
    assert_eq!(before.count(), 7);
    assert_eq!(list(on.store(), &me(), Which::All).await.len(), 1);
}

pub async fn the_same_key_with_another_body_is_a_conflict<F: Fixture>() {
    let on = peopled::<F>().await;
    say(on.store(), &me(), conversation("a"), line(1).keyed("k", 7)).await;
    let before = picture(&on).await;
    let other = send(on.store(), &me(), conversation("b"), line(2).keyed("k", 8)).await;
    assert_eq!(other, Acceptance::Conflict);
    assert_eq!(picture(&on).await, before);
}

pub async fn a_key_belongs_to_an_org_a_person_and_a_verb<F: Fixture>() {
    let on = peopled::<F>().await;
    say(on.store(), &me(), conversation("a"), line(1).keyed("k", 7)).await;
    say(on.store(), &friend(), conversation("b"), line(2).keyed("k", 8)).await;
    say(on.store(), &stranger(), conversation("a"), line(3).keyed("k", 9)).await;
    let forwarded = Line { key: Some(key("forward", "k", 10)), ..line(4) };
    say(on.store(), &me(), conversation("a"), forwarded).await;
}

/// Whatever has become of the session, its limits and its record since.
pub async fn a_key_is_looked_up_before_anything_else<F: Fixture>() {
    let on = peopled::<F>().await;
    let first = say(on.store(), &me(), conversation("a"), line(1).keyed("k", 7)).await;
    let late = aim(on.store(), &me(), conversation("a"), line(2).keyed("k", 7)).await;
    let full =
        aim(on.store(), &me(), To::New, Line { open_max: 0, pending_max: 0, ..line(3).keyed("k", 7) }).await;
    let conflict = aim(on.store(), &me(), conversation("a"), line(4).keyed("k", 8)).await;
    share(on.store(), ses(1), &friend(), Some(Grant::View)).await;
    write(on.store(), ses(1), vec![opened(), refused(1), ended()]).await;
    assert_eq!(on.store().accept(late).await.unwrap(), Acceptance::Before(first.clone()));
    assert_eq!(on.store().accept(full).await.unwrap(), Acceptance::Before(first));
    assert_eq!(on.store().accept(conflict).await.unwrap(), Acceptance::Conflict);
}

pub async fn a_refusal_is_not_remembered_under_its_key<F: Fixture>() {
    let on = peopled::<F>().await;
    let crowded = Line { open_max: 0, ..line(1).keyed("k", 7) };
    assert_eq!(send(on.store(), &me(), To::New, crowded).await, Acceptance::TooManyOpen);
    let full = Line { pending_max: 0, ..line(1).keyed("full", 7) };
    say(on.store(), &me(), conversation("a"), line(2)).await;
    assert_eq!(send(on.store(), &me(), conversation("a"), full).await, Acceptance::QueueFull);
    let late = aim(on.store(), &me(), conversation("a"), line(1).keyed("late", 7)).await;
    share(on.store(), ses(2), &friend(), Some(Grant::View)).await;
    assert_eq!(on.store().accept(late).await.unwrap(), Acceptance::Moved);
    // Another body under the same key is no conflict either: the key was never used.
    for (n, key) in [(3, "k"), (4, "full"), (5, "late")] {
        say(on.store(), &me(), conversation("a"), line(n).keyed(key, 8)).await;
    }
}

pub async fn a_key_is_free_again_once_it_has_expired<F: Fixture>() {
    let on = peopled::<F>().await;
    let until = |moment| Some(Key { expires: Some(Moment(moment)), ..key("say", "k", 7) });
    say(on.store(), &me(), To::New, Line { key: until(2_000), at: 1_000, ..line(1) }).await;
    let early = Line { key: until(2_999), at: 1_999, ..line(2) };
    assert!(matches!(send(on.store(), &me(), To::New, early).await, Acceptance::Before(_)));
    let late = Line { key: until(3_000), at: 2_000, ..line(3) };
    say(on.store(), &me(), To::New, late).await;
    let again = Line { key: until(3_500), at: 2_500, ..line(4) };
    let Acceptance::Before(known) = send(on.store(), &me(), To::New, again).await else { panic!() };
    assert_eq!(known.message, msg(3));
}

pub async fn a_right_that_has_changed_since_it_was_seen_does_not_count<F: Fixture>() {
    let on = peopled::<F>().await;
    say(on.store(), &me(), conversation("a"), line(1)).await;
    share(on.store(), ses(1), &friend(), Some(Grant::Prompt)).await;
    let late = aim(on.store(), &friend(), conversation("a"), line(2)).await;
    share(on.store(), ses(1), &friend(), None).await;
    let before = picture(&on).await;
    assert_eq!(on.store().accept(late).await.unwrap(), Acceptance::Moved);
    assert_eq!(picture(&on).await, before);
    assert!(on.store().receipt(msg(2)).await.unwrap().is_none());
    assert_eq!(on.store().words(msg(2)).await.unwrap(), None);
}

pub async fn a_session_that_has_ended_since_it_was_seen_takes_nothing<F: Fixture>() {
    let on = peopled::<F>().await;
    say(on.store(), &me(), conversation("a"), line(1)).await;
    let late = aim(on.store(), &me(), To::Session(ses(1)), line(2)).await;
    write(on.store(), ses(1), vec![opened(), refused(1), ended()]).await;
    let before = picture(&on).await;
    assert_eq!(on.store().accept(late).await.unwrap(), Acceptance::Moved);
    assert_eq!(picture(&on).await, before);
}

pub async fn a_conversation_that_was_bound_in_between_is_resolved_again<F: Fixture>() {
    let on = peopled::<F>().await;
    let late = aim(on.store(), &me(), conversation("a"), line(2)).await;
    say(on.store(), &me(), conversation("a"), line(1)).await;
    let before = picture(&on).await;
    assert_eq!(on.store().accept(late).await.unwrap(), Acceptance::Moved);
    assert_eq!(picture(&on).await, before);
    assert!(on.store().session(ses(2)).await.unwrap().is_none());
}

pub async fn concurrent_first_messages_share_one_session<F: Fixture>() {
    let on = peopled::<F>().await;
    let mut firsts = vec![];
    for n in 1..=20 {
        firsts.push(aim(on.store(), &me(), conversation("a"), line(n)).await);
    }
    let firsts = firsts.into_iter().map(|first| on.store().accept(first)).collect();
    let answers: Vec<_> = together(firsts).await.into_iter().map(Result::unwrap).collect();
    let done = answers.iter().filter(|answer| matches!(answer, Acceptance::Done(_))).count();
    let moved = answers.iter().filter(|answer| **answer == Acceptance::Moved).count();
    assert_eq!((done, moved), (1, 19));
    let sessions = list(on.store(), &me(), Which::All).await;
    assert_eq!(sessions.len(), 1);
    // Resolved again, the others go where the first one went.
    for (n, answer) in (1..=20).zip(&answers) {
        if *answer == Acceptance::Moved {
            let accepted = say(on.store(), &me(), conversation("a"), line(n)).await;
            assert_eq!((accepted.session, accepted.created), (sessions[0].session, false));
        }
    }
    assert_eq!(row(on.store(), sessions[0].session).await.pending, 20);
}

pub async fn a_receipt_says_that_a_wish_for_a_new_session_was_ignored<F: Fixture>() {
    let on = peopled::<F>().await;
    say(on.store(), &me(), conversation("a"), line(1)).await;
    let second = Line { if_new_ignored: true, ..line(2).keyed("k", 1) };
    let accepted = say(on.store(), &me(), conversation("a"), second.clone()).await;
    assert!(accepted.if_new_ignored && receipt(on.store(), 2).await.if_new_ignored);
    assert!(!receipt(on.store(), 1).await.if_new_ignored);
    let on = on.reopen().await;
    let again = send(on.store(), &me(), conversation("a"), Line { n: 3, ..second }).await;
    assert_eq!(again, Acceptance::Before(accepted));
}

pub async fn one_address_in_two_orgs_is_two_conversations<F: Fixture>() {
    let on = peopled::<F>().await;
    say(on.store(), &me(), conversation("a"), line(1)).await;
    let theirs = say(on.store(), &stranger(), conversation("a"), line(2)).await;
    assert_eq!((theirs.session, theirs.created), (ses(2), true));
}

pub async fn find_tells_open_from_ended_from_nothing<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    let found = async |to| store.find(me().org, to).await.unwrap();
    let nothing = Finding { found: Found::Nothing, record: None };
    assert_eq!(found(conversation("a")).await, nothing);
    assert_eq!(found(To::Session(ses(1))).await, nothing);
    say(store, &me(), conversation("a"), line(1)).await;
    for to in [conversation("a"), To::Session(ses(1))] {
        let finding = found(to).await;
        assert_eq!(finding.found, Found::Open(ses(1)));
        let record = finding.record.unwrap();
        assert_eq!((record.session, record.org, record.owner), (ses(1), me().org, me().person));
    }
    assert_eq!(found(To::New).await, nothing);
    assert_eq!(found(conversation("b")).await, nothing);
    write(store, ses(1), vec![opened(), refused(1), Fact::Ended { why: EndWhy::Gone }]).await;
    for to in [conversation("a"), To::Session(ses(1))] {
        let finding = found(to).await;
        assert_eq!(finding.found, Found::Ended(ses(1), EndWhy::Gone));
        assert!(finding.record.is_some());
    }
}

pub async fn find_does_not_look_into_other_orgs<F: Fixture>() {
    let on = peopled::<F>().await;
    say(on.store(), &me(), conversation("a"), line(1)).await;
    for to in [conversation("a"), To::Session(ses(1))] {
        let finding = on.store().find(stranger().org, to).await.unwrap();
        assert_eq!(finding, Finding { found: Found::Nothing, record: None });
    }
}

pub async fn a_conversation_whose_session_has_ended_gets_a_new_one_and_is_told<F: Fixture>() {
    let on = peopled::<F>().await;
    say(on.store(), &me(), conversation("a"), line(1)).await;
    write(on.store(), ses(1), vec![opened(), refused(1), ended()]).await;
    let on = on.reopen().await;
    let accepted = say(on.store(), &me(), conversation("a"), line(2).keyed("k", 1)).await;
    let previous = Some((ses(1), EndWhy::Asked));
    assert_eq!((accepted.session, accepted.created, accepted.previous), (ses(2), true, previous));
    let receipt = receipt(on.store(), 2).await;
    assert_eq!((receipt.created, receipt.previous), (true, previous));
    let again = send(on.store(), &me(), conversation("a"), line(3).keyed("k", 1)).await;
    assert_eq!(again, Acceptance::Before(accepted));
    assert_eq!(on.store().find(me().org, conversation("a")).await.unwrap().found, Found::Open(ses(2)));
    // Of several that have ended, the last one is the previous one.
    write(on.store(), ses(2), vec![opened(), refused(2), ended()]).await;
    let finding = on.store().find(me().org, conversation("a")).await.unwrap();
    assert_eq!(finding.found, Found::Ended(ses(2), EndWhy::Asked));
}

pub async fn the_inbox_has_the_order_of_acceptance<F: Fixture>() {
    let on = peopled::<F>().await;
    say(on.store(), &me(), conversation("a"), line(1)).await;
    let mut rest = vec![];
    for n in 2..=30 {
        rest.push(on.store().accept(aim(on.store(), &me(), conversation("a"), line(n)).await));
    }
    together(rest).await.into_iter().for_each(|answer| assert!(matches!(answer, Ok(Acceptance::Done(_)))));
    say(on.store(), &me(), conversation("a"), line(31)).await;
    let inbox = on.store().inbox(ses(1), ALL).await.unwrap();
    assert!(inbox.is_sorted_by(|a, b| a.number < b.number));
    let said: Vec<_> = inbox.iter().map(|row| row.item.clone()).collect();
    let say = |n| say_item(msg(n), me().person);
    assert_eq!((said.len(), &said[0], &said[30]), (31, &say(1), &say(31)));
    // A page of it begins with the oldest, and the receipts have the same order.
    assert_eq!(on.store().inbox(ses(1), 5).await.unwrap(), inbox[..5]);
    let queue = on.store().queue(ses(1)).await.unwrap();
    let order: Vec<_> = queue.iter().map(|row| say_item(row.message, row.by)).collect();
    assert_eq!(order, said);
}

pub async fn a_session_can_be_made_before_anybody_says_anything<F: Fixture>() {
    let on = peopled::<F>().await;
    let create = |n, body| Create {
        session: fresh_session(n, Some(address("a")), None),
        past: None,
        key: Some(key("create", "k", body)),
        trail: trail("create", 1_000 + u64::from(n)),
    };
    let wish = |n, body| authorize_new(&me(), anywhere(Some(&address("a"))), create(n, body)).unwrap();
    assert_eq!(on.store().create(wish(1, 7)).await.unwrap(), Creation::Done(ses(1)));
    let inbox = on.store().inbox(ses(1), ALL).await.unwrap();
    assert_eq!((inbox.len(), &inbox[0].item), (1, &InboxItem::Wake));
    assert_eq!(acts(on.store()).await, 1);
    let before = picture(&on).await;
    assert_eq!(on.store().create(wish(2, 7)).await.unwrap(), Creation::Before(ses(1)));
    assert_eq!(on.store().create(wish(2, 8)).await.unwrap(), Creation::Conflict);
    let keyless = Create { key: None, ..create(2, 7) };
    let moved = authorize_new(&me(), anywhere(Some(&address("a"))), keyless).unwrap();
    assert_eq!(on.store().create(moved).await.unwrap(), Creation::Moved);
    let mut crowded = Create { key: Some(key("create", "k2", 1)), ..create(2, 7) };
    (crowded.session.bind, crowded.session.open_max) = (None, 1);
    let crowded = authorize_new(&me(), anywhere(None), crowded).unwrap();
    assert_eq!(on.store().create(crowded).await.unwrap(), Creation::TooManyOpen);
    assert_eq!(picture(&on).await, before);
    let on = on.reopen().await;
    assert_eq!(on.store().create(wish(2, 7)).await.unwrap(), Creation::Before(ses(1)));
    let accepted = say(on.store(), &me(), conversation("a"), line(5)).await;
    assert_eq!((accepted.session, accepted.created), (ses(1), false));
}

/// A minted id that is there already is a bug of the caller; the store must not pour two into one.
pub async fn an_id_is_used_once<F: Fixture>() {
    let on = peopled::<F>().await;
    say(on.store(), &me(), conversation("a"), line(1)).await;
    let before = picture(&on).await;
    let twice = aim(on.store(), &me(), conversation("a"), line(1)).await;
    assert!(on.store().accept(twice).await.is_err());
    let twice = aim(on.store(), &me(), To::New, line(1)).await;
    assert!(on.store().accept(twice).await.is_err());
    assert_eq!(picture(&on).await, before);
}
