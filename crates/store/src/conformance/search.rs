//! Promises of `search`: what was said is found by whoever may read it, once its turn is over, and by nobody else.

use super::Fixture;
use super::story::*;
use crate::*;
use kernel::{Fact, Grant, Grantee, Number, Principal, SessionId, To, Turn};

/// The index comes up with the log.
async fn indexed(store: &dyn Store) {
    while store.index_passages(2).await.unwrap() {}
}

fn query(by: &Principal, typed: &str) -> PassagesQuery {
    let wanted = Wanted::new(typed).expect("there is something to look for");
    PassagesQuery { by: Seer::of(by), wanted, session: None, before: None, limit: ALL }
}

async fn found(store: &dyn Store, by: &Principal, typed: &str) -> Vec<(SessionId, PassageKind, String)> {
    let found = store.search(query(by, typed)).await.unwrap();
    assert!(found.is_sorted_by(|a, b| a.place > b.place), "the newest first");
    found.into_iter().map(|found| (found.session, found.passage.kind, found.passage.words)).collect()
}

/// One turn of a session: a line is said, and these runs of words are the answer, each in two pieces.
async fn turn(store: &dyn Store, n: u32, answers: &[&str]) {
    say(store, &me(), To::New, line(n)).await;
    write(store, ses(n), vec![opened(), queued(n), started(1, n), attempt(1)]).await;
    let mut append = append_to(store, ses(n)).await;
    for (part, answer) in (0..).zip(answers) {
        let half = answer.floor_char_boundary(answer.len() / 2);
        for (offset, piece) in [(0, &answer[..half]), (half, &answer[half..])] {
            let body = format!(r#"{{"type":"text","part":{part},"offset":{offset},"text":"{piece}"}}"#);
            append = told(append, 1, "text", body.as_bytes());
        }
        append = told(append, 1, "tool_result", br#"{"output":"hidden in a tool"}"#);
    }
    written(store, append).await;
}

async fn over(store: &dyn Store, n: u32) {
    write(store, ses(n), vec![answered(1)]).await;
    indexed(store).await;
}

pub async fn what_was_said_is_found_once_its_turn_is_over<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    turn(store, 1, &["The answer is FORTYTWO", "and stra\u{df}e, \u{6771}\u{4eac}\u{90fd}"]).await;
    indexed(store).await;
    assert_eq!(found(store, &me(), "fortytwo").await, [], "the turn is not over");
    over(store, 1).await;
    let answer = (ses(1), PassageKind::Text, "The answer is FORTYTWO".to_owned());
    for typed in ["fortytwo", "FORTY", "is the ans", "answer: fortyt"] {
        assert_eq!(found(store, &me(), typed).await, std::slice::from_ref(&answer), "{typed}");
    }
    for typed in ["ortytwo", "fort answer", "fortytwo stra\u{df}e", "hidden", "o1", "s1"] {
        assert_eq!(found(store, &me(), typed).await, [], "{typed}");
    }
    for typed in ["STRA\u{df}E", "\u{6771}\u{4eac}", "\u{90fd}"] {
        assert_eq!(found(store, &me(), typed).await.len(), 1, "{typed}");
    }
    assert_eq!(found(store, &me(), "line").await, [(ses(1), PassageKind::Said, "line 1".to_owned())]);
    let hit = store.search(query(&me(), "fortytwo")).await.unwrap().pop().unwrap();
    assert_eq!((hit.turn, hit.passage.first, hit.passage.last), (Turn(1), Number(5), Number(6)));
    // Across a restart, and not a second time.
    let on = on.reopen().await;
    indexed(on.store()).await;
    assert_eq!(found(on.store(), &me(), "fortytwo").await, [answer]);
}

pub async fn only_what_may_be_read_is_found<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    for n in [1, 2] {
        turn(store, n, &["a needle"]).await;
        over(store, n).await;
    }
    let sessions = async |by: &Principal| {
        found(store, by, "needle").await.into_iter().map(|(session, ..)| session).collect::<Vec<_>>()
    };
    assert_eq!(sessions(&me()).await, [ses(2), ses(1)]);
    for by in [friend(), stranger(), Principal { org: stranger().org, ..me() }] {
        assert_eq!(sessions(&by).await, [], "{by:?}");
    }
    share(store, ses(1), &friend(), Some(Grant::View)).await;
    assert_eq!(sessions(&friend()).await, [ses(1)]);
    share(store, ses(1), &friend(), None).await;
    assert_eq!(sessions(&friend()).await, []);
    let everybody =
        PeopleChange::Give { on: Resource::Session(ses(2)), to: Grantee::Org, grant: Grant::View };
    set(store, everybody).await;
    assert_eq!(sessions(&friend()).await, [ses(2)]);
    let bound = |n| Principal { bound: Some((ses(n), Turn(1))), ..me() };
    assert_eq!(sessions(&bound(1)).await, [ses(1)]);
    // Of one session, and page by page.
    let of = PassagesQuery { session: Some(ses(1)), ..query(&me(), "needle") };
    assert_eq!(store.search(of).await.unwrap().len(), 1);
    let of = PassagesQuery { session: Some(ses(9)), ..query(&me(), "needle") };
    assert_eq!(store.search(of).await.unwrap(), []);
    let first = store.search(PassagesQuery { limit: 1, ..query(&me(), "needle") }).await.unwrap();
    let rest = PassagesQuery { before: Some(first[0].place), ..query(&me(), "needle") };
    let rest = store.search(rest).await.unwrap();
    assert_eq!((first[0].session, rest[0].session, rest.len()), (ses(2), ses(1), 1));
}

pub async fn words_are_found_as_they_were_when_their_turn_began<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    say(store, &me(), To::New, line(1)).await;
    say(store, &me(), To::Session(ses(1)), line(2)).await;
    write(store, ses(1), vec![opened(), queued(1), queued(2), started(1, 1), attempt(1)]).await;
    // Another one's words change while it waits.
    let words = Some(bytes::Bytes::from_static(br#"[{"text":"other words"}]"#));
    let edit = kernel::Request::Edit { message: msg(2), revision: 0 };
    ask_with(store, 5, edit, Resolved::default(), words).await;
    let mut append = drain(store, ses(1)).await;
    append.verdicts.push((req(5), Verdict::Done));
    written(store, with(append, vec![Fact::Edited { message: msg(2), revision: 1 }, answered(1)])).await;
    write(store, ses(1), vec![started(2, 2), attempt(2), answered(2)]).await;
    indexed(store).await;
    let said = |words: &str| (ses(1), PassageKind::Said, words.to_owned());
    assert_eq!(found(store, &me(), "line").await, [said("line 1")]);
    assert_eq!(found(store, &me(), "other").await, [said("other words")]);
}
