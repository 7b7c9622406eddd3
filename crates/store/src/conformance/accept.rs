//! Promises of `accept`, `create` and `answer_for`.

use super::Fixture;
use super::story::*;
use crate::*;
use kernel::{
    Address, Denied, EndWhy, Epoch, Fact, Found, Grant, Grantee, GroundPath, Moment, Number, Principal,
    Right, Rights, Role, Scheme, SessionId, To,
};

pub async fn an_accepted_message_is_there_with_all_that_belongs_to_it<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    let slack = "slack:T1/C1/17.5".parse().unwrap();
    let first = IncomingMessage { reply: Some(slack), ..line(1) };
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
    assert_eq!(bindings, [BindingRow { address: address("a"), session: ses(1), since: at, before: None }]);
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
    let (by, new) = aim(&me(), To::New, line(1));
    on.store().accept(by, NewMessage { words: words.clone(), ..new }).await.unwrap();
    assert_eq!(on.store().words(msg(1)).await.unwrap(), Some(words));
    assert_eq!(on.store().words(msg(2)).await.unwrap(), None);
}

pub async fn the_same_key_gets_the_same_receipt<F: Fixture>() {
    let on = peopled::<F>().await;
    let first = say(on.store(), &me(), conversation("a"), line(1).keyed("k", 7)).await;
    let before = picture(&on).await;
    // Sent again, it would go into the session that it has made; it must not be told so.
    let again = send(on.store(), &me(), conversation("a"), line(2).keyed("k", 7)).await;
    assert_eq!(again, WriteOutcome::Repeated(first));
    assert_eq!(picture(&on).await, before);
    assert!(on.store().receipt(msg(2)).await.unwrap().is_none());
}

pub async fn the_same_key_gets_the_same_receipt_after_a_restart<F: Fixture>() {
    let on = peopled::<F>().await;
    let first = say(on.store(), &me(), conversation("a"), line(1).keyed("k", 7)).await;
    let on = on.reopen().await;
    let again = send(on.store(), &me(), conversation("a"), line(2).keyed("k", 7)).await;
    assert_eq!(again, WriteOutcome::Repeated(first));
}

pub async fn concurrent_uses_of_one_key_are_one_message<F: Fixture>() {
    let on = peopled::<F>().await;
    let mut sends = vec![];
    for n in 1..=8 {
        sends.push(accept(on.store(), aim(&me(), To::New, line(n).keyed("k", 7))));
    }
    let answers = together(sends).await;
    let done = answers.iter().filter(|answer| matches!(answer, WriteOutcome::Done(_)));
    assert_eq!(done.count(), 1);
    let before = answers.iter().filter(|answer| matches!(answer, WriteOutcome::Repeated(_)));
    assert_eq!(before.count(), 7);
    assert_eq!(list(on.store(), &me(), Which::All).await.len(), 1);
}

pub async fn the_same_key_with_another_body_is_a_conflict<F: Fixture>() {
    let on = peopled::<F>().await;
    say(on.store(), &me(), conversation("a"), line(1).keyed("k", 7)).await;
    let before = picture(&on).await;
    let other = send(on.store(), &me(), conversation("b"), line(2).keyed("k", 8)).await;
    assert_eq!(other, WriteOutcome::Conflict);
    assert_eq!(picture(&on).await, before);
}

pub async fn a_key_belongs_to_an_org_a_person_and_a_verb<F: Fixture>() {
    let on = peopled::<F>().await;
    say(on.store(), &me(), conversation("a"), line(1).keyed("k", 7)).await;
    say(on.store(), &friend(), conversation("b"), line(2).keyed("k", 8)).await;
    say(on.store(), &stranger(), conversation("a"), line(3).keyed("k", 9)).await;
    let forwarded = IncomingMessage { key: Some(key("forward", "k", 10)), ..line(4) };
    say(on.store(), &me(), conversation("a"), forwarded).await;
}

/// Whatever has become of the session, its limits and its record since.
pub async fn a_key_is_looked_up_before_anything_else<F: Fixture>() {
    let on = peopled::<F>().await;
    let first = say(on.store(), &me(), conversation("a"), line(1).keyed("k", 7)).await;
    let late = aim(&me(), conversation("a"), line(2).keyed("k", 7));
    let full = aim(&me(), To::New, IncomingMessage { open_max: 0, pending_max: 0, ..line(3).keyed("k", 7) });
    let gone = aim(&me(), To::Session(ses(9)), line(4).keyed("k", 7));
    let conflict = aim(&me(), conversation("a"), line(4).keyed("k", 8));
    share(on.store(), ses(1), &friend(), Some(Grant::View)).await;
    write(on.store(), ses(1), vec![opened(), refused(1), ended()]).await;
    for again in [late, full, gone] {
        assert_eq!(accept(on.store(), again).await, WriteOutcome::Repeated(first.clone()));
    }
    assert_eq!(accept(on.store(), conflict).await, WriteOutcome::Conflict);
    // Nor does it matter what has become of whoever asks.
    let nobody = Principal { rights: Rights::NONE, standing: 0, ..me() };
    let again = send(on.store(), &nobody, To::New, line(5).keyed("k", 7)).await;
    assert_eq!(again, WriteOutcome::Repeated(first));
}

/// A queue and a person's sessions are full: whoever repeats gets the answer of then, whoever asks anew is refused.
pub async fn a_key_is_looked_up_before_the_limits<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    let first = say(store, &me(), conversation("a"), line(1).keyed("k", 7)).await;
    let full = |n| IncomingMessage { pending_max: 1, open_max: 1, org_open_max: 1, ..line(n) };
    assert_eq!(send(store, &me(), conversation("a"), full(2)).await, queue_full(1));
    assert_eq!(send(store, &me(), To::New, full(2)).await, too_many_open(1));
    assert_eq!(send(store, &friend(), To::New, full(2)).await, org_too_many_open(1));
    for to in [conversation("a"), To::New, To::Session(ses(1))] {
        assert_eq!(
            send(store, &me(), to, full(2).keyed("k", 7)).await,
            WriteOutcome::Repeated(first.clone())
        );
    }
    let made = |n, max| {
        let session = NewSession { open_max: max, ..fresh_session(n, None) };
        Create { key: Some(key("make", "k", 1)), ..create_of("make", session) }
    };
    assert_eq!(create(store, &me(), made(3, 2)).await, WriteOutcome::Done(ses(3)));
    assert_eq!(create(store, &me(), made(4, 2)).await, WriteOutcome::Repeated(ses(3)));
}

/// Asked for its own sake, by whoever cannot ask for the thing itself any more.
pub async fn what_was_done_under_a_key_can_be_asked<F: Fixture>() {
    let on = peopled::<F>().await;
    let first = say(on.store(), &me(), conversation("a"), line(1).keyed("k", 7)).await;
    let until = Key { expires: Some(Moment(2_000)), ..key("make", "k", 1) };
    let made = Create { key: Some(until.clone()), ..create_of("make", fresh_session(2, None)) };
    assert_eq!(create(on.store(), &me(), made).await, WriteOutcome::Done(ses(2)));
    let on = on.reopen().await;
    let answer = async |by: Principal, key: Key, now| {
        on.store().answer_for(by.org, by.person, key, Moment(now)).await.unwrap()
    };
    let said = KeyAnswer::Repeated(first.message.bits());
    assert_eq!(answer(me(), key("say", "k", 7), 1_500).await, said);
    assert_eq!(answer(me(), key("say", "k", 8), 1_500).await, KeyAnswer::Conflict);
    assert_eq!(answer(me(), key("say", "l", 7), 1_500).await, KeyAnswer::Never);
    assert_eq!(answer(friend(), key("say", "k", 7), 1_500).await, KeyAnswer::Never);
    assert_eq!(answer(me(), until.clone(), 1_999).await, KeyAnswer::Repeated(ses(2).bits()));
    assert_eq!(answer(me(), until, 2_000).await, KeyAnswer::Never, "it is forgotten");
}

/// The need of a new session is told before anybody has looked at a directory; nothing is written, not even that it was
/// asked.
pub async fn a_message_that_needs_a_new_session_is_told_so_before_it_brings_one<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    let first_trip = |by: &Principal, to| {
        let (by, new) = aim(by, to, line(1));
        (by, NewMessage { fresh: None, ..new })
    };
    for to in [conversation("a"), To::New] {
        assert_eq!(
            accept(store, first_trip(&me(), to)).await,
            no(Rejection::WouldBeNew { by: None, like: None })
        );
    }
    assert_eq!(acts(store).await, 0);
    say(store, &me(), conversation("a"), line(2)).await;
    assert_eq!(
        accept(store, first_trip(&me(), conversation("a"))).await.map(|it| it.created),
        WriteOutcome::Done(false)
    );
    // Who they are by now is said with it, so that whoever looks does not look with old eyes.
    let old = me();
    set(store, PeopleChange::AddRoot(RootRow { directory: "/new".into(), to: Grantee::Person(me().person) }))
        .await;
    let WriteOutcome::Refused(Rejection::WouldBeNew { by: Some(by), .. }) =
        accept(store, first_trip(&old, To::New)).await
    else {
        panic!("somebody has changed")
    };
    assert!(by.roots.contains(&"/new".to_owned()) && by.standing > old.standing);
}

/// Whatever the caller thought they were: the rule is asked with who they are in the transaction.
pub async fn whoever_asks_is_who_they_are_now<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    let old = friend();
    say(store, &old, To::New, line(1)).await;
    let member = friend().person;
    let become_viewer =
        PeopleChange::ChangePerson { person: member, name: None, email: None, role: Some(Role::Viewer) };
    set(store, become_viewer).await;
    let needs = no(Rejection::Denied(Denied::Needs(Grant::Prompt)));
    assert_eq!(send(store, &old, To::Session(ses(1)), line(2)).await, needs);
    let role = Rejection::Denied(Denied::NeedsRole(Role::Member));
    assert_eq!(send(store, &old, To::New, line(2)).await, no(role));
    // And what they were given in between counts, too.
    say(store, &me(), conversation("b"), line(3)).await;
    assert_eq!(send(store, &stranger(), To::Session(ses(3)), line(4)).await, not_found("session"));
    let unknown = Principal { person: per(77), ..friend() };
    assert_eq!(send(store, &unknown, To::New, line(4)).await, no(Rejection::Unauthenticated));
    let read_only = Principal { rights: [Right::Read].into_iter().collect(), ..me() };
    let right = Rejection::Denied(Denied::NeedsRight(Right::Prompt));
    assert_eq!(send(store, &read_only, conversation("b"), line(4)).await, no(right.clone()));
    assert_eq!(send(store, &read_only, To::New, line(4)).await, no(right));
}

pub async fn an_epoch_that_has_not_been_is_no_scope<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    open(store, 1).await;
    let under = |n, epoch| IncomingMessage { under: Some(Epoch(epoch)), ..line(n) };
    assert_eq!(send(store, &me(), To::Session(ses(1)), under(2, 1)).await, no(Rejection::OtherScope));
    assert_eq!(send(store, &me(), To::New, under(2, 1)).await, no(Rejection::OtherScope));
    assert_eq!(send(store, &friend(), To::Session(ses(1)), under(2, 1)).await, not_found("session"));
    say(store, &me(), To::Session(ses(1)), under(2, 0)).await;
    say(store, &me(), To::New, under(3, 0)).await;
}

pub async fn a_refusal_is_in_the_audit_with_its_code<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    say(store, &me(), conversation("a"), line(1).keyed("k", 1)).await;
    send(store, &me(), conversation("a"), IncomingMessage { pending_max: 1, ..line(2) }).await;
    send(store, &friend(), To::Session(ses(1)), line(3)).await;
    send(store, &me(), To::New, line(4).keyed("k", 2)).await;
    send(store, &me(), To::New, IncomingMessage { open_max: 1, ..line(5) }).await;
    let rows = acted(store).await;
    let told: Vec<_> = rows.iter().rev().map(|row| (row.by, row.session, row.refused.as_deref())).collect();
    let (mine, theirs) = (Some(me().person), Some(friend().person));
    assert_eq!(
        told,
        [
            (mine, Some(ses(1)), None),
            (mine, None, Some("queue_full")),
            (theirs, Some(ses(1)), Some("not_found")),
            (mine, None, Some("idempotency_conflict")),
            (mine, None, Some("too_many_open_sessions")),
        ]
    );
    assert_eq!(rows[3].subject, Some(address("a").to_string()), "what it was sent to");
}

pub async fn a_refusal_is_not_remembered_under_its_key<F: Fixture>() {
    let on = peopled::<F>().await;
    let crowded = IncomingMessage { open_max: 0, ..line(1).keyed("k", 7) };
    assert_eq!(send(on.store(), &me(), To::New, crowded).await, too_many_open(0));
    let full = IncomingMessage { pending_max: 0, ..line(1).keyed("full", 7) };
    say(on.store(), &me(), conversation("a"), line(2)).await;
    assert_eq!(send(on.store(), &me(), conversation("a"), full).await, queue_full(0));
    let unseen = send(on.store(), &friend(), To::Session(ses(2)), line(1).keyed("late", 7)).await;
    assert_eq!(unseen, not_found("session"));
    say(on.store(), &friend(), To::New, line(6).keyed("late", 8)).await;
    // Another body under the same key is no conflict either: the key was never used.
    for (n, key) in [(3, "k"), (4, "full"), (5, "late")] {
        say(on.store(), &me(), conversation("a"), line(n).keyed(key, 8)).await;
    }
}

pub async fn a_key_is_free_again_once_it_has_expired<F: Fixture>() {
    let on = peopled::<F>().await;
    let until = |moment| Some(Key { expires: Some(Moment(moment)), ..key("say", "k", 7) });
    say(on.store(), &me(), To::New, IncomingMessage { key: until(2_000), at: 1_000, ..line(1) }).await;
    let early = IncomingMessage { key: until(2_999), at: 1_999, ..line(2) };
    assert!(matches!(send(on.store(), &me(), To::New, early).await, WriteOutcome::Repeated(_)));
    let late = IncomingMessage { key: until(3_000), at: 2_000, ..line(3) };
    say(on.store(), &me(), To::New, late).await;
    let again = IncomingMessage { key: until(3_500), at: 2_500, ..line(4) };
    let WriteOutcome::Repeated(known) = send(on.store(), &me(), To::New, again).await else { panic!() };
    assert_eq!(known.message, msg(3));
}

pub async fn a_right_that_was_taken_away_does_not_count<F: Fixture>() {
    let on = peopled::<F>().await;
    say(on.store(), &me(), conversation("a"), line(1)).await;
    share(on.store(), ses(1), &friend(), Some(Grant::Prompt)).await;
    let late = aim(&friend(), conversation("a"), line(2));
    share(on.store(), ses(1), &friend(), None).await;
    let before = picture(&on).await;
    assert_eq!(accept(on.store(), late).await, not_found("session"));
    assert_eq!(picture(&on).await, before);
    assert!(on.store().receipt(msg(2)).await.unwrap().is_none());
    assert_eq!(on.store().words(msg(2)).await.unwrap(), None);
    share(on.store(), ses(1), &friend(), Some(Grant::View)).await;
    let needs = Rejection::Denied(Denied::Needs(Grant::Prompt));
    assert_eq!(send(on.store(), &friend(), conversation("a"), line(2)).await, no(needs));
}

pub async fn a_session_that_has_ended_takes_nothing<F: Fixture>() {
    let on = peopled::<F>().await;
    say(on.store(), &me(), conversation("a"), line(1)).await;
    let late = aim(&me(), To::Session(ses(1)), line(2));
    write(on.store(), ses(1), vec![opened(), refused(1), ended()]).await;
    let before = picture(&on).await;
    assert_eq!(accept(on.store(), late).await, is_ended(ses(1), EndWhy::Asked));
    assert_eq!(send(on.store(), &friend(), To::Session(ses(1)), line(2)).await, not_found("session"));
    assert_eq!(send(on.store(), &me(), To::Session(ses(9)), line(2)).await, not_found("session"));
    assert_eq!(picture(&on).await, before);
}

pub async fn a_conversation_that_was_bound_in_between_gets_no_second_session<F: Fixture>() {
    let on = peopled::<F>().await;
    let late = aim(&me(), conversation("a"), IncomingMessage { asks_for_new: true, ..line(2) });
    say(on.store(), &me(), conversation("a"), line(1)).await;
    let WriteOutcome::Done(accepted) = accept(on.store(), late).await else { panic!() };
    assert_eq!((accepted.session, accepted.created, accepted.if_new_ignored), (ses(1), false, true));
    assert!(on.store().session(ses(2)).await.unwrap().is_none());
}

pub async fn concurrent_first_messages_share_one_session<F: Fixture>() {
    let on = peopled::<F>().await;
    let firsts = (1..=20).map(|n| accept(on.store(), aim(&me(), conversation("a"), line(n)))).collect();
    let answers: Vec<_> = together(firsts).await;
    let accepted = |answer| match answer {
        WriteOutcome::Done(accepted) => accepted,
        other => panic!("not accepted: {other:?}"),
    };
    let accepted: Vec<Accepted> = answers.into_iter().map(accepted).collect();
    assert_eq!(accepted.iter().filter(|accepted| accepted.created).count(), 1);
    let sessions = list(on.store(), &me(), Which::All).await;
    assert_eq!(sessions.len(), 1);
    assert!(accepted.iter().all(|accepted| accepted.session == sessions[0].session));
    assert_eq!(row(on.store(), sessions[0].session).await.pending, 20);
}

pub async fn a_receipt_says_that_a_wish_for_a_new_session_was_ignored<F: Fixture>() {
    let on = peopled::<F>().await;
    say(on.store(), &me(), conversation("a"), line(1)).await;
    let second = IncomingMessage { asks_for_new: true, ..line(2).keyed("k", 1) };
    let accepted = say(on.store(), &me(), conversation("a"), second.clone()).await;
    assert!(accepted.if_new_ignored && receipt(on.store(), 2).await.if_new_ignored);
    assert!(!receipt(on.store(), 1).await.if_new_ignored);
    let on = on.reopen().await;
    let again = send(on.store(), &me(), conversation("a"), IncomingMessage { n: 3, ..second }).await;
    assert_eq!(again, WriteOutcome::Repeated(accepted));
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
    let found = async |to| store.find(Seer::of(&me()), None, to).await.unwrap();
    let nothing = Finding { found: Found::Nothing, record: None, before: None };
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
        let finding = on.store().find(Seer::of(&stranger()), None, to).await.unwrap();
        assert_eq!(finding, Finding { found: Found::Nothing, record: None, before: None });
    }
}

pub async fn an_address_of_somebody_else_is_not_used<F: Fixture>() {
    let on = peopled::<F>().await;
    let theirs = To::Conversation("web:friend/1".parse().unwrap());
    let denied = no(Rejection::Denied(Denied::AddressNotYours));
    assert_eq!(send(on.store(), &me(), theirs.clone(), line(1)).await, denied);
    say(on.store(), &friend(), theirs.clone(), line(1)).await;
    assert_eq!(send(on.store(), &me(), theirs, line(2)).await, denied, "bound or not");
}

/// Each door has schemes of its own. What belongs to another one is closed to whoever comes through this one, also if it is
/// bound to a session of theirs: to be spoken to, bound, moved and answered to.
pub async fn an_address_of_another_door_is_neither_used_nor_bound<F: Fixture>() {
    const CHAT: &[Scheme] = &[Scheme {
        name: "chat",
        form: "chat:ROOM",
        parts: &[1],
        person: None,
        client: None,
        each_person: false,
    }];
    let on = peopled::<F>().await;
    let (store, room) = (on.store(), "chat:kitchen".parse::<Address>().unwrap());
    let used = || no::<Accepted>(Rejection::Denied(Denied::AddressNotYours));
    let to_room = || To::Conversation(room.clone());
    let (by, theirs) = aim(&me(), to_room(), line(1));
    let before = acts(store).await;
    // Nobody has said anything there yet, and from here nobody will.
    assert_eq!(store.accept(by.clone(), theirs.clone()).await.unwrap(), used());
    let bind = create_of("make", fresh_session(2, Some(room.clone())));
    assert_eq!(create(store, &me(), bind).await, no(Rejection::Denied(Denied::AddressNotYours)));
    // Its own door lets it in, and what is bound then is still closed to the others.
    let accepted = store.accept(by, NewMessage { schemes: CHAT, ..theirs }).await.unwrap();
    assert!(matches!(accepted, WriteOutcome::Done(_)), "{accepted:?}");
    assert_eq!(send(store, &me(), to_room(), line(3)).await, used());
    let replied = IncomingMessage { reply: Some(room.clone()), ..line(4) };
    assert_eq!(send(store, &me(), To::Session(ses(1)), replied).await, used());
    say(store, &me(), To::New, line(5)).await;
    let moving = |schemes| Rebind {
        address: room.clone(),
        to: ses(5),
        key: None,
        trail: trail("rebind", 3_000),
        schemes,
    };
    let moved = store.rebind(arc(&me()), moving(SCHEMES)).await.unwrap();
    assert_eq!(moved, no(Rejection::Denied(Denied::AddressNotYours)));
    let bindings = store.bindings(Seer::of(&me()), None, ALL).await.unwrap();
    let at = Moment(1_001);
    assert_eq!(
        bindings,
        [BindingRow { address: room.clone(), session: ses(1), since: at, before: None }],
        "it is listed"
    );
    assert_eq!(store.rebind(arc(&me()), moving(CHAT)).await.unwrap(), WriteOutcome::Done(()));
    let codes: Vec<_> = acted(store).await.into_iter().filter_map(|row| row.refused).collect();
    assert_eq!(codes, ["address_not_yours"; 5], "each refusal is in the audit");
    assert_eq!(acts(store).await, before + 8);
}

fn own() -> Address {
    "own:a".parse().expect("an address")
}

/// The session that somebody's own address is bound to.
async fn own_of(store: &dyn Store, by: &Principal) -> Option<SessionId> {
    let rows = store.bindings(Seer::of(by), None, ALL).await.unwrap();
    let theirs: Vec<_> = rows.into_iter().filter(|row| row.address == own()).map(|row| row.session).collect();
    assert!(theirs.len() < 2, "each of them has one");
    let finding = store.find(Seer::of(by), Some(by.person), To::Conversation(own())).await.unwrap();
    let found = match finding.found {
        kernel::Found::Open(session) => Some(session),
        kernel::Found::Ended(..) | kernel::Found::Nothing => None,
    };
    assert_eq!(theirs.first().copied(), found);
    found
}

/// Law 6: the same words of two people are two conversations, and neither learns of the other.
pub async fn an_address_that_each_person_has_for_themselves_meets_nobody_elses<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    let to = || To::Conversation(own());
    let mine = say(store, &me(), to(), line(1)).await;
    assert_eq!((mine.session, mine.created), (ses(1), true));
    // Not even somebody who may do everything with my session meets it by these words.
    share(store, ses(1), &friend(), Some(Grant::Manage)).await;
    let theirs = say(store, &friend(), to(), line(2)).await;
    assert_eq!((theirs.session, theirs.created, theirs.previous), (ses(2), true, None));
    assert_eq!((own_of(store, &me()).await, own_of(store, &friend()).await), (Some(ses(1)), Some(ses(2))));
    for (by, n, session) in [(me(), 3, ses(1)), (friend(), 4, ses(2))] {
        assert_eq!(say(store, &by, to(), line(n)).await.session, session, "{}", by.handle);
    }
    // What is made or moved is bound among one's own.
    let bind = create_of("make", fresh_session(5, Some(own())));
    assert_eq!(create(store, &me(), bind).await, no(Rejection::Changed), "I have one");
    let moving =
        Rebind { address: own(), to: ses(1), key: None, trail: trail("rebind", 3_000), schemes: SCHEMES };
    assert_eq!(store.rebind(arc(&friend()), moving).await.unwrap(), WriteOutcome::Done(()));
    assert_eq!((own_of(store, &me()).await, own_of(store, &friend()).await), (Some(ses(1)), Some(ses(1))));
    // What has ended is one's own past only.
    let on = on.reopen().await;
    let store = on.store();
    write(store, ses(1), vec![opened(), refused(1), refused(3), ended()]).await;
    assert_eq!((own_of(store, &me()).await, own_of(store, &friend()).await), (None, None));
    let next = say(store, &stranger(), to(), line(6)).await;
    assert_eq!((next.created, next.previous), (true, None));
    let next = say(store, &me(), to(), line(7)).await;
    assert_eq!((next.created, next.previous), (true, previous(ses(1), EndWhy::Asked)));
}

pub async fn an_address_of_ones_own_stays_ones_own_when_its_session_is_handed_over<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    for (by, n) in [(me(), 1), (friend(), 2)] {
        say(store, &by, To::Conversation(own()), line(n)).await;
    }
    // One that is everybody's goes along.
    let shared = Rebind {
        address: address("a"),
        to: ses(1),
        key: None,
        trail: trail("rebind", 3_000),
        schemes: SCHEMES,
    };
    assert_eq!(store.rebind(arc(&me()), shared).await.unwrap(), WriteOutcome::Done(()));
    hand_over(store, ses(1), &me(), &friend()).await;
    assert_eq!((own_of(store, &me()).await, own_of(store, &friend()).await), (None, Some(ses(2))));
    assert_eq!(bound(store, &friend(), "a").await, Some(ses(1)));
    let on = on.reopen().await;
    let next = say(on.store(), &me(), To::Conversation(own()), line(3)).await;
    assert_eq!((next.session, next.created, next.previous), (ses(3), true, None), "I am not refused");
}

pub async fn a_session_of_another_org_is_not_found<F: Fixture>() {
    let on = peopled::<F>().await;
    say(on.store(), &me(), conversation("a"), line(1)).await;
    assert_eq!(send(on.store(), &stranger(), To::Session(ses(1)), line(2)).await, not_found("session"));
    write(on.store(), ses(1), vec![opened(), refused(1), ended()]).await;
    assert_eq!(send(on.store(), &stranger(), To::Session(ses(1)), line(2)).await, not_found("session"));
}

/// A past that somebody may not see is none.
pub async fn a_previous_session_is_told_only_to_whom_it_may_be_shown<F: Fixture>() {
    let on = peopled::<F>().await;
    say(on.store(), &me(), conversation("a"), line(1)).await;
    write(on.store(), ses(1), vec![opened(), refused(1), ended()]).await;
    let theirs = say(on.store(), &friend(), conversation("a"), line(2)).await;
    assert_eq!((theirs.created, theirs.previous), (true, None));
}

pub async fn a_conversation_whose_session_has_ended_gets_a_new_one_and_is_told<F: Fixture>() {
    let on = peopled::<F>().await;
    say(on.store(), &me(), conversation("a"), line(1)).await;
    write(on.store(), ses(1), vec![opened(), refused(1), ended()]).await;
    let on = on.reopen().await;
    let accepted = say(on.store(), &me(), conversation("a"), line(2).keyed("k", 1)).await;
    let first = previous(ses(1), EndWhy::Asked);
    assert_eq!((accepted.session, accepted.created, accepted.previous), (ses(2), true, first));
    let receipt = receipt(on.store(), 2).await;
    assert_eq!((receipt.created, receipt.previous), (true, first));
    let again = send(on.store(), &me(), conversation("a"), line(3).keyed("k", 1)).await;
    assert_eq!(again, WriteOutcome::Repeated(accepted));
    assert_eq!(bound(on.store(), &me(), "a").await, Some(ses(2)));
    // Of several that have ended, the last one is the previous one.
    write(on.store(), ses(2), vec![opened(), refused(2), ended()]).await;
    let accepted = say(on.store(), &me(), conversation("a"), line(4)).await;
    assert_eq!(accepted.previous, previous(ses(2), EndWhy::Asked));
}

pub async fn the_inbox_has_the_order_of_acceptance<F: Fixture>() {
    let on = peopled::<F>().await;
    say(on.store(), &me(), conversation("a"), line(1)).await;
    let mut rest = vec![];
    for n in 2..=30 {
        rest.push(accept(on.store(), aim(&me(), conversation("a"), line(n))));
    }
    together(rest).await.into_iter().for_each(|answer| assert!(matches!(answer, WriteOutcome::Done(_))));
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
    let new = |n, body| Create {
        key: Some(key("create", "k", body)),
        ..create_of("create", fresh_session(n, Some(address("a"))))
    };
    assert_eq!(create(on.store(), &me(), new(1, 7)).await, WriteOutcome::Done(ses(1)));
    let inbox = on.store().inbox(ses(1), ALL).await.unwrap();
    assert_eq!((inbox.len(), &inbox[0].item), (1, &InboxItem::Wake));
    assert_eq!(acts(on.store()).await, 1);
    let before = picture(&on).await;
    assert_eq!(create(on.store(), &me(), new(2, 7)).await, WriteOutcome::Repeated(ses(1)));
    assert_eq!(create(on.store(), &me(), new(2, 8)).await, WriteOutcome::Conflict);
    let keyless = Create { key: None, ..new(2, 7) };
    assert_eq!(create(on.store(), &me(), keyless).await, no(Rejection::Changed), "it is bound by now");
    let mut crowded = Create { key: Some(key("create", "k2", 1)), ..new(2, 7) };
    (crowded.session.bind, crowded.session.open_max) = (None, 1);
    assert_eq!(create(on.store(), &me(), crowded).await, too_many_open(1));
    assert_eq!(picture(&on).await, before);
    let on = on.reopen().await;
    assert_eq!(create(on.store(), &me(), new(2, 7)).await, WriteOutcome::Repeated(ses(1)));
    let accepted = say(on.store(), &me(), conversation("a"), line(5)).await;
    assert_eq!((accepted.session, accepted.created), (ses(1), false));
}

/// Agent and directory have to be theirs to choose, as things are when it is made.
pub async fn a_session_is_made_of_what_is_theirs_to_choose<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    let chosen = |n, agent: &str, directory: Option<&str>| {
        let chosen = Chosen { agent: agent.into(), directory: directory.map(GroundPath::from) };
        create_of("make", NewSession { chosen, ..fresh_session(n, None) })
    };
    let elsewhere = no(Rejection::Denied(Denied::DirectoryNotYours));
    assert_eq!(create(store, &me(), chosen(1, "scripted", Some("/etc"))).await, elsewhere);
    assert_eq!(create(store, &me(), chosen(1, "scripted", Some("/srv/x"))).await, WriteOutcome::Done(ses(1)));
    assert_eq!(create(store, &friend(), chosen(2, "scripted", Some("/srv/x"))).await, elsewhere);
    let give = PeopleChange::Give {
        on: Resource::Agent("closed".into()),
        to: Grantee::Person(me().person),
        grant: Grant::Prompt,
    };
    set(store, give).await;
    let agent = no(Rejection::Denied(Denied::AgentNotYours));
    assert_eq!(create(store, &friend(), chosen(2, "closed", None)).await, agent);
    assert_eq!(create(store, &me(), chosen(2, "closed", None)).await, WriteOutcome::Done(ses(2)));
    let (by, new) = aim(&friend(), To::New, line(3));
    let closed = Chosen { agent: "closed".into(), directory: None };
    let fresh = NewSession { chosen: closed, ..fresh_session(3, None) };
    let new = NewMessage { fresh: Some(Box::new(fresh)), ..new };
    assert_eq!(store.accept(by, new).await.unwrap(), no(Rejection::Denied(Denied::AgentNotYours)));
}

/// A minted id that is there already is a bug of the caller; the store must not pour two into one.
pub async fn an_id_is_used_once<F: Fixture>() {
    let on = peopled::<F>().await;
    say(on.store(), &me(), conversation("a"), line(1)).await;
    let before = picture(&on).await;
    for to in [conversation("a"), To::New] {
        let (by, twice) = aim(&me(), to, line(1));
        assert!(on.store().accept(by, twice).await.is_err());
    }
    assert_eq!(picture(&on).await, before);
}
