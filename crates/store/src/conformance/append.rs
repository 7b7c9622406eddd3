//! Promises of `append`, `load`, `checkpoint` and `facts` to a keeper.

use super::Fixture;
use super::story::*;
use crate::*;
use bytes::Bytes;
use kernel::{Fact, Grant, Moment, Number, Outcome, Request, Session, Term, To, Turn};
use std::future::Future;
use std::pin::Pin;

pub async fn an_older_term_is_fenced<F: Fixture>() {
    let on = peopled::<F>().await;
    open(on.store(), 1).await;
    let stale = with(drain(on.store(), ses(1)).await, vec![started(1, 1), attempt(1)]);
    let on = on.reopen().await;
    assert!(on.store().node().term > stale.term);
    // Until the new keeper writes, nobody is fenced; its first append shuts the old one out, whatever the number.
    let taken = append_to(on.store(), ses(1)).await;
    assert_eq!(written(on.store(), taken).await, Number(2));
    say(on.store(), &me(), To::Session(ses(1)), line(2)).await;
    let before = picture(&on).await;
    assert_eq!(on.store().append(stale.clone()).await.unwrap(), Appending::Fenced);
    let also_moved = Append { after: Number(77), ..stale };
    assert_eq!(on.store().append(also_moved).await.unwrap(), Appending::Fenced);
    assert_eq!(picture(&on).await, before);
    assert_eq!(on.store().gauges().fenced, 2);
}

pub async fn the_same_term_goes_on_and_a_newer_one_takes_over<F: Fixture>() {
    let on = peopled::<F>().await;
    open(on.store(), 1).await;
    let first = append_to(on.store(), ses(1)).await;
    let newer = Append { term: Term(first.term.0 + 5), ..first.clone() };
    written(on.store(), with(newer.clone(), vec![started(1, 1)])).await;
    let same = Append { after: Number(3), ..newer };
    assert_eq!(written(on.store(), with(same, vec![attempt(1)])).await, Number(4));
    assert_eq!(on.store().append(Append { after: Number(4), ..first }).await.unwrap(), Appending::Fenced);
    assert_eq!(on.store().load(ses(1)).await.unwrap().unwrap().term.0, on.store().node().term.0 + 5);
}

pub async fn another_number_than_the_keeper_knows_is_moved<F: Fixture>() {
    let on = peopled::<F>().await;
    open(on.store(), 1).await;
    let right = with(append_to(on.store(), ses(1)).await, vec![started(1, 1)]);
    let before = picture(&on).await;
    for wrong in [0, 1, 3] {
        let wrong = Append { after: Number(wrong), ..right.clone() };
        assert_eq!(on.store().append(wrong).await.unwrap(), Appending::Moved { actual: Number(2) });
    }
    assert_eq!(picture(&on).await, before);
    assert_eq!(on.store().gauges().moved, 3);
    assert_eq!(written(on.store(), right.clone()).await, Number(3));
    let twice = on.store().append(right).await.unwrap();
    assert_eq!(twice, Appending::Moved { actual: Number(3) }, "an append happens once");
}

pub async fn nothing_can_be_appended_to_a_session_that_does_not_exist<F: Fixture>() {
    let on = peopled::<F>().await;
    open(on.store(), 1).await;
    let append = Append { session: ses(2), after: Number(0), ..append_to(on.store(), ses(1)).await };
    assert!(on.store().append(append).await.is_err());
    assert!(on.store().load(ses(2)).await.unwrap().is_none());
    assert_eq!(log(on.store(), ses(2)).await, []);
}

pub async fn inbox_rows_go_with_the_facts_that_answer_them<F: Fixture>() {
    let on = peopled::<F>().await;
    for n in 1..=3 {
        say(on.store(), &me(), conversation("a"), line(n)).await;
    }
    let numbers = inbox_numbers(on.store(), ses(1)).await;
    let two = Append { drained: numbers[..2].to_vec(), ..append_to(on.store(), ses(1)).await };
    written(on.store(), with(two, vec![opened(), queued(1), queued(2)])).await;
    assert_eq!(inbox_numbers(on.store(), ses(1)).await, numbers[2..]);
    let on = on.reopen().await;
    assert_eq!(inbox_numbers(on.store(), ses(1)).await, numbers[2..]);
    // A number is never used again, so an answer can never take a later row with it.
    write(on.store(), ses(1), vec![queued(3)]).await;
    say(on.store(), &me(), conversation("a"), line(4)).await;
    assert!(inbox_numbers(on.store(), ses(1)).await[0] > numbers[2]);
}

pub async fn an_append_without_facts_only_empties_the_inbox<F: Fixture>() {
    let on = peopled::<F>().await;
    open(on.store(), 1).await;
    ask(on.store(), 1, Request::Stop { message: msg(1) }).await;
    let mut idle = drain(on.store(), ses(1)).await;
    idle.verdicts = vec![(req(1), Verdict::Done)];
    assert_eq!(written(on.store(), idle).await, Number(2));
    assert_eq!(on.store().inbox(ses(1), ALL).await.unwrap(), []);
    assert_eq!(log(on.store(), ses(1)).await.len(), 2);
}

pub async fn facts_come_back_as_they_were_written<F: Fixture>() {
    let on = peopled::<F>().await;
    open(on.store(), 1).await;
    let bodies = [
        &br#"{"v":1,"text":"a\u0000b"}"#[..],
        b"{ \"v\" : 1.50 , \"v\":2}",
        "{\"t\":\"\u{fe0f}\u{1F54A}\"}".as_bytes(),
    ];
    let causes = [Cause::Message(msg(1)), Cause::Request(req(1)), Cause::Runner, Cause::Timer, Cause::Keeper];
    let mut append = with(append_to(on.store(), ses(1)).await, vec![started(1, 1), attempt(1)]);
    for body in bodies {
        append = told(append, 1, "words", body);
    }
    for (index, (new, cause)) in append.facts.iter_mut().zip(causes).enumerate() {
        (new.cause, new.at) = (cause, Moment(6_000 + index as u64));
    }
    let expected: Vec<_> = (3..).zip(append.facts.clone()).map(|(number, new)| stored(number, new)).collect();
    assert_eq!(written(on.store(), append).await, Number(7));
    let on = on.reopen().await;
    assert_eq!(log(on.store(), ses(1)).await[2..], expected);
}

fn stored(number: u64, new: NewFact) -> StoredFact {
    let entry = match new.entry {
        Entry::Rule(fact) => StoredEntry::Rule(fact),
        Entry::Story { turn, kind, body } => StoredEntry::Story { turn, kind, body: Some(body) },
    };
    StoredFact { number: Number(number), at: new.at, cause: new.cause, entry }
}

pub async fn a_log_has_no_gaps_and_is_paged_by_number<F: Fixture>() {
    let on = peopled::<F>().await;
    open(on.store(), 1).await;
    for n in 0..50_u8 {
        let append = told(append_to(on.store(), ses(1)).await, 1, "words", &[b'x'; 100]);
        written(on.store(), told(append, 1, "tool", &[n; 3])).await;
    }
    let all = log(on.store(), ses(1)).await;
    assert_eq!(all.iter().map(|fact| fact.number.0).collect::<Vec<_>>(), (1..=102).collect::<Vec<_>>());
    let page =
        async |after, limit, bytes| on.store().facts(ses(1), Number(after), limit, bytes).await.unwrap();
    assert_eq!(page(0, 10, usize::MAX).await, all[..10]);
    assert_eq!(page(95, 10, usize::MAX).await, all[95..]);
    assert_eq!(page(102, 10, usize::MAX).await, []);
    assert_eq!(page(500, 10, usize::MAX).await, []);
    let some = page(2, 100, 1_000).await;
    assert!((5..=25).contains(&some.len()), "about a thousand bytes, not {} facts", some.len());
    assert_eq!(some, all[2..2 + some.len()]);
    assert_eq!(page(2, 100, 1).await, all[2..3], "at least one, or its reader would stand still for ever");
}

pub async fn a_log_is_paged_backwards_too<F: Fixture>() {
    let on = peopled::<F>().await;
    open(on.store(), 1).await;
    for n in 0..50_u8 {
        written(on.store(), told(append_to(on.store(), ses(1)).await, 1, "tool", &[n; 100])).await;
    }
    let all = log(on.store(), ses(1)).await;
    let page = async |before, limit, bytes| {
        on.store().facts_before(ses(1), Number(before), limit, bytes).await.unwrap()
    };
    assert_eq!(page(u64::from(u32::MAX), 10, usize::MAX).await, all[42..], "the last ones, in their order");
    assert_eq!(page(43, 10, usize::MAX).await, all[32..42]);
    assert_eq!(page(5, 10, usize::MAX).await, all[..4]);
    assert_eq!((page(1, 10, usize::MAX).await, page(0, 10, usize::MAX).await), (vec![], vec![]));
    let some = page(53, 100, 1_000).await;
    assert!((5..=25).contains(&some.len()), "about a thousand bytes, not {} facts", some.len());
    assert_eq!(some, all[52 - some.len()..]);
    assert_eq!(page(53, 100, 1).await, all[51..], "at least one, or its reader would stand still for ever");
    assert_eq!(on.store().facts_before(ses(9), Number(5), 10, usize::MAX).await.unwrap(), []);
}

pub async fn a_turns_story_is_read_without_the_others<F: Fixture>() {
    let on = peopled::<F>().await;
    open(on.store(), 1).await;
    open(on.store(), 2).await;
    for (turn, kind, body) in
        [(1, "words", "one"), (1, "tool", "saw"), (1, "words", "two"), (2, "words", "three")]
    {
        written(on.store(), told(append_to(on.store(), ses(1)).await, turn, kind, body.as_bytes())).await;
    }
    written(on.store(), told(append_to(on.store(), ses(2)).await, 1, "words", b"elsewhere")).await;
    let told_of = async |turn, kinds: &[&'static str], bytes| {
        let told = on.store().story(ses(1), Turn(turn), kinds.to_vec(), bytes).await.unwrap();
        let bodies = |facts: Vec<StoredFact>| facts.into_iter().map(|fact| body(fact.entry)).collect();
        told.into_iter().map(bodies).collect::<Vec<Vec<_>>>()
    };
    let story = async |turn, kind: &'static str, bytes| told_of(turn, &[kind], bytes).await.remove(0);
    assert_eq!(story(1, "words", 1_000).await, ["one", "two"]);
    assert_eq!(story(1, "tool", 1_000).await, ["saw"]);
    assert_eq!(story(2, "words", 1_000).await, ["three"]);
    assert_eq!(story(1, "words", 4).await, ["one"]);
    assert_eq!(story(3, "words", 1_000).await, Vec::<Bytes>::new());
    let each = told_of(1, &["words", "noise", "tool"], 4).await;
    assert_eq!(each, [vec!["one"], vec![], vec!["saw"]], "each kind by itself, with room of its own");
    let stories = async |kind: &str, bytes| {
        let facts = on.store().stories(ses(1), kind.into(), bytes).await.unwrap();
        facts.into_iter().map(|fact| body(fact.entry)).collect::<Vec<_>>()
    };
    assert_eq!(stories("words", 1_000).await, ["three", "two", "one"], "of all turns, the newest first");
    assert_eq!(stories("words", 8).await, ["three", "two"]);
    assert_eq!(stories("words", 1).await, ["three"], "at least one");
    assert_eq!(stories("noise", 1_000).await, Vec::<Bytes>::new());
    // A turn that is long is as one that is short.
    for n in 0..10 {
        let append =
            (0..10).fold(append_to(on.store(), ses(1)).await, |append, _| told(append, 2, "noise", b"psst"));
        written(on.store(), append).await;
        assert_eq!(story(2, "noise", 1_000).await.len(), 10 * (n + 1));
    }
    assert_eq!(told_of(2, &["words", "noise"], 8).await, [vec!["three"], vec!["psst", "psst"]]);
}

fn body(entry: StoredEntry) -> Bytes {
    match entry {
        StoredEntry::Story { body: Some(body), .. } => body,
        other => panic!("not a story: {other:?}"),
    }
}

pub async fn a_keeper_loads_rule_facts_only<F: Fixture>() {
    let on = peopled::<F>().await;
    open(on.store(), 1).await;
    let append = with(append_to(on.store(), ses(1)).await, vec![started(1, 1), attempt(1)]);
    written(on.store(), told(append, 1, "words", b"{}")).await;
    written(on.store(), with(append_to(on.store(), ses(1)).await, vec![answered(1)])).await;
    let on = on.reopen().await;
    let loaded = on.store().load(ses(1)).await.unwrap().unwrap();
    assert_eq!(loaded.facts, [opened(), queued(1), started(1, 1), attempt(1), answered(1)]);
    assert_eq!((loaded.at, loaded.since_checkpoint, loaded.scope), (Number(6), 5, scope()));
}

fn folded(facts: &[Fact]) -> Session {
    let mut session = Session::default();
    facts.iter().for_each(|fact| session.evolve(fact));
    session
}

pub async fn a_checkpoint_is_used_and_can_be_lost<F: Fixture>() {
    let on = peopled::<F>().await;
    open(on.store(), 1).await;
    write(on.store(), ses(1), vec![started(1, 1), attempt(1), answered(1)]).await;
    let loaded = on.store().load(ses(1)).await.unwrap().unwrap();
    let short = folded(&loaded.facts).condense().expect("it is idle");
    on.store().checkpoint(ses(1), loaded.at, short.clone()).await.unwrap();
    say(on.store(), &me(), To::Session(ses(1)), line(2)).await;
    write(on.store(), ses(1), vec![queued(2)]).await;

    let on = on.reopen().await;
    let from_checkpoint = on.store().load(ses(1)).await.unwrap().unwrap();
    let expected: Vec<_> = short.into_iter().chain([queued(2)]).collect();
    assert_eq!((&from_checkpoint.facts, from_checkpoint.since_checkpoint), (&expected, 1));
    on.spoil_checkpoints().await;
    let from_log = on.store().load(ses(1)).await.unwrap().unwrap();
    assert_eq!((from_log.facts.len(), from_log.since_checkpoint), (6, 6));
    assert_eq!(folded(&from_log.facts), folded(&from_checkpoint.facts));
    assert_eq!(from_log.at, from_checkpoint.at);
}

pub async fn a_checkpoint_of_what_is_not_in_the_log_is_not_believed<F: Fixture>() {
    let on = peopled::<F>().await;
    open(on.store(), 1).await;
    on.store().checkpoint(ses(1), Number(3), vec![ended()]).await.unwrap();
    let loaded = on.store().load(ses(1)).await.unwrap().unwrap();
    assert_eq!(loaded.facts, [opened(), queued(1)]);
    // Nor one that is older than the one there is.
    write(on.store(), ses(1), vec![started(1, 1), answered(1)]).await;
    on.store().checkpoint(ses(1), Number(4), vec![opened(), answered(1)]).await.unwrap();
    on.store().checkpoint(ses(1), Number(2), vec![opened(), queued(1)]).await.unwrap();
    let loaded = on.store().load(ses(1)).await.unwrap().unwrap();
    assert_eq!((loaded.facts, loaded.since_checkpoint), (vec![opened(), answered(1)], 0));
}

pub async fn a_message_is_not_started_for_whoever_may_no_longer_say_it<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    open(store, 1).await;
    share(on.store(), ses(1), &friend(), Some(Grant::Prompt)).await;
    say(store, &friend(), To::Session(ses(1)), line(2)).await;
    let theirs = queued_by(2, friend().person);
    write(store, ses(1), vec![theirs, started(1, 1), answered(1)]).await;
    share(on.store(), ses(1), &friend(), Some(Grant::View)).await;
    let before = picture(&on).await;
    let start = with(append_to(store, ses(1)).await, vec![started(2, 2), attempt(2)]);
    let start = Append { starts: Some((msg(2), friend().person)), awake: true, ..start };
    assert_eq!(store.append(start.clone()).await.unwrap(), Appending::Revoked(msg(2)));
    assert_eq!(picture(&on).await, before);
    share(on.store(), ses(1), &friend(), Some(Grant::Prompt)).await;
    written(store, start).await;
}

pub async fn a_session_does_not_end_over_an_inbox_that_was_not_drained<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    open(store, 1).await;
    let end = with(drain(store, ses(1)).await, vec![refused(1), ended()]);
    // It is accepted after the keeper has looked, and before it writes.
    say(store, &me(), To::Session(ses(1)), line(2)).await;
    let before = picture(&on).await;
    assert_eq!(store.append(end.clone()).await.unwrap(), Appending::Undrained);
    assert_eq!(picture(&on).await, before);
    // Anything but an end does not mind.
    let other = with(append_to(store, ses(1)).await, vec![started(1, 1), attempt(1)]);
    written(store, Append { awake: true, ..other }).await;
    let stopped = Fact::TurnEnded { turn: Turn(1), outcome: Outcome::Stopped };
    write(store, ses(1), vec![stopped, refused(2), ended()]).await;
    assert_eq!(store.inbox(ses(1), ALL).await.unwrap(), []);
    assert_eq!(receipt(store, 2).await.state, ReceiptState::Refused);
}

/// Whatever wins, no message is accepted into a session that is over, and none is left behind in its inbox.
pub async fn an_end_and_a_message_never_pass_each_other<F: Fixture>() {
    for before_end in 0..6 {
        let on = peopled::<F>().await;
        let store = on.store();
        open(store, 1).await;
        let end = with(drain(store, ses(1)).await, vec![refused(1), ended()]);
        let mut messages = vec![];
        for n in 2..=7 {
            messages.push(aim(&me(), To::Session(ses(1)), line(n)));
        }
        let mut race: Vec<Pin<Box<dyn Future<Output = Raced>>>> = vec![];
        for message in messages {
            race.push(Box::pin(async { Raced::Message(accept(store, message).await) }));
        }
        let end = store.append(end);
        race.insert(before_end, Box::pin(async { Raced::End(end.await.unwrap()) }));
        let (mut safe, mut over) = (0, false);
        for raced in together(race).await {
            match raced {
                Raced::Message(crate::WriteOutcome::Done(_)) => safe += 1,
                Raced::Message(crate::WriteOutcome::Refused(Rejection::Ended { .. })) => {}
                Raced::End(Appending::Done(_)) => over = true,
                Raced::End(Appending::Undrained) => {}
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(store.inbox(ses(1), ALL).await.unwrap().len(), safe);
        assert_eq!(row(store, ses(1)).await.ended.is_some(), over);
        assert!(over == (safe == 0), "{safe} messages are in a session that is over");
    }
}

#[derive(Debug)]
enum Raced {
    Message(crate::WriteOutcome<Accepted, Rejection>),
    End(Appending),
}
