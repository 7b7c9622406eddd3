//! Promises about images and files that go along with a message: kept beside its words, forgotten with them, and counted.

use super::Fixture;
use super::import::brought;
use super::story::*;
use crate::*;
use bytes::Bytes;
use kernel::{Fact, Refusal, Request, To};

fn two() -> IncomingMessage {
    IncomingMessage { attachments: vec![attached("a"), attached("b")], ..line(1) }
}

/// The words about what goes along with a message, and the bytes of each.
async fn all_of(store: &dyn Store, n: u32) -> Vec<(Bytes, Bytes)> {
    let mut all = Vec::new();
    for (number, about) in (1..).zip(store.attachments(msg(n)).await.unwrap()) {
        let content = store.attachment(msg(n), number).await.unwrap();
        all.push((about, content.expect("what is said to be there is there")));
    }
    assert_eq!(store.attachment(msg(n), all.len() as u32 + 1).await.unwrap(), None);
    assert_eq!(store.attachment(msg(n), 0).await.unwrap(), None);
    all
}

fn pair(name: &str) -> (Bytes, Bytes) {
    let NewAttachment { about, content } = attached(name);
    (about, content)
}

fn edit(n: u32, attachments: Option<Vec<NewAttachment>>) -> NewRequest {
    let request = Request::Edit { message: msg(1), revision: n - 1 };
    NewRequest { words: Some(Bytes::from(format!("edit {n}"))), attachments, ..want(n, request) }
}

async fn judge(store: &dyn Store, n: u32, verdict: Verdict) {
    let edited = Fact::Edited { message: msg(1), revision: n };
    let facts = if verdict == Verdict::Done { vec![edited] } else { Vec::new() };
    let judged = with(drain(store, ses(1)).await, facts);
    written(store, Append { verdicts: vec![(req(n), verdict)], ..judged }).await;
}

async fn used(store: &dyn Store) -> u64 {
    store.disk_use(me().org, me().person).await.unwrap().words_bytes
}

pub async fn what_goes_along_comes_back_byte_for_byte_and_in_order<F: Fixture>() {
    let on = peopled::<F>().await;
    let odd =
        NewAttachment { about: Bytes::from_static(b"{}"), content: Bytes::from_static(&[0, 255, 10, 0]) };
    let (sent, more) = (IncomingMessage { attachments: vec![odd.clone()], ..line(2) }, two());
    say(on.store(), &me(), To::New, more).await;
    say(on.store(), &me(), To::Session(ses(1)), sent).await;
    write(on.store(), ses(1), vec![opened(), queued(1), queued(2)]).await;
    let on = on.reopen().await;
    assert_eq!(all_of(on.store(), 1).await, [pair("a"), pair("b")]);
    assert_eq!(all_of(on.store(), 2).await, [(odd.about.clone(), odd.content)]);
    assert_eq!(all_of(on.store(), 3).await, [], "there is no such message");
    assert_eq!(on.store().words(msg(1)).await.unwrap(), Some(line(1).words()), "apart from the words");
    let shown = on.store().queue_shown(ses(1), ALL).await.unwrap();
    let abouts: Vec<_> = shown.into_iter().map(|queued| queued.attachments).collect();
    assert_eq!(abouts, [vec![pair("a").0, pair("b").0], vec![odd.about]]);
}

pub async fn an_edit_of_the_words_keeps_what_goes_along_and_one_that_brings_other_replaces_it<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    say(store, &me(), To::New, two()).await;
    write(store, ses(1), vec![opened(), queued(1)]).await;
    ask_as(store, &me(), edit(1, None)).await;
    judge(store, 1, Verdict::Done).await;
    assert_eq!(all_of(store, 1).await, [pair("a"), pair("b")]);
    assert_eq!(store.words(msg(1)).await.unwrap(), Some("edit 1".into()));
    ask_as(store, &me(), edit(2, Some(vec![attached("c")]))).await;
    assert_eq!(all_of(store, 1).await, [pair("a"), pair("b")], "nobody has said yes yet");
    judge(store, 2, Verdict::Done).await;
    assert_eq!(all_of(store, 1).await, [pair("c")]);
    ask_as(store, &me(), edit(3, Some(vec![attached("d")]))).await;
    judge(store, 3, Verdict::Refused(Refusal::Changed)).await;
    assert_eq!(all_of(store, 1).await, [pair("c")]);
    ask_as(store, &me(), edit(4, Some(Vec::new()))).await;
    judge(store, 4, Verdict::Done).await;
    assert_eq!(all_of(on.reopen().await.store(), 1).await, []);
}

pub async fn what_goes_along_counts_as_long_as_it_is_kept<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    let room_of = |bytes: &[u8]| bytes.len() as u64 + WORDS_ROW_BYTES;
    let room = |name: &str| room_of(&attached(name).content);
    let all = room_of(&line(1).words()) + room("a") + room("b");
    let full = IncomingMessage { words_bytes_max: all - 1, ..two() };
    let before = picture(&on).await;
    assert_eq!(
        send(store, &me(), To::New, full).await,
        no(Rejection::TooManyWords { used: 0, limit: all - 1 })
    );
    assert_eq!(picture(&on).await, before);
    say(store, &me(), To::New, IncomingMessage { words_bytes_max: all, ..two() }).await;
    write(store, ses(1), vec![opened(), queued(1)]).await;
    assert_eq!(used(store).await, all);
    let more = room_of(b"edit 1") + room("c");
    let limit = all + more - 1;
    let refused = NewRequest { words_bytes_max: limit, ..edit(1, Some(vec![attached("c")])) };
    assert_eq!(ask_as(store, &me(), refused).await, no(Rejection::TooManyWords { used: all, limit }));
    ask_as(store, &me(), edit(1, Some(vec![attached("c")]))).await;
    assert_eq!(used(store).await, all + more);
    judge(store, 1, Verdict::Done).await;
    assert_eq!(used(store).await, more, "the old words went, and what went along with them");
    ask_as(store, &me(), edit(2, Some(vec![attached("d")]))).await;
    judge(store, 2, Verdict::Refused(Refusal::Changed)).await;
    assert_eq!(used(store).await, more);
    ask_as(store, &me(), edit(3, None)).await;
    judge(store, 3, Verdict::Refused(Refusal::Changed)).await;
    assert_eq!(used(store).await, more);
}

pub async fn what_the_sessions_agent_does_not_take_is_refused_and_changes_nothing<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    open(store, 1).await;
    let unfit = vec![
        UnfitAgent { agent: "another".into(), attachment: "x".into() },
        UnfitAgent { agent: scope().agent, attachment: "the image a".into() },
    ];
    let refused = Rejection::NotTaken(unfit[1].clone());
    let before = picture(&on).await;
    let said = IncomingMessage { unfit: unfit.clone(), attachments: vec![attached("a")], ..line(2) };
    for to in [To::Session(ses(1)), To::New, conversation("a")] {
        assert_eq!(send(store, &me(), to, said.clone()).await, no(refused.clone()));
    }
    let edited = NewRequest { unfit: unfit.clone(), ..edit(1, Some(vec![attached("a")])) };
    assert_eq!(ask_as(store, &me(), edited).await, no(refused));
    assert_eq!(picture(&on).await, before);
    let codes: Vec<_> = acted(store).await.into_iter().filter_map(|row| row.refused).collect();
    assert_eq!(codes, ["attachment_not_taken"; 4]);
    // Whoever may not see the session learns nothing of its agent.
    let hidden = send(store, &stranger(), To::Session(ses(1)), said.clone()).await;
    assert_eq!(hidden, no(Rejection::NotFound { what: "session" }));
    let others = vec![unfit[0].clone()];
    say(store, &me(), To::Session(ses(1)), IncomingMessage { unfit: others, ..said }).await;
}

pub async fn what_went_along_elsewhere_comes_along<F: Fixture>() {
    let on = peopled::<F>().await;
    brought(on.store(), 1, &me()).await;
    assert_eq!(all_of(on.reopen().await.store(), 1).await, [pair("past")]);
}
