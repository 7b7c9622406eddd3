//! Promises of what a row of a list says at a glance: what its reader may do, what waits for people, and how the last turn ended.

use super::Fixture;
use super::story::*;
use crate::*;
use kernel::{
    Answer, Answerer, ApprovalTerms, Fact, Failure, Grant, Grantee, HoldWhy, Moment, Number, Outcome,
    Principal, Role, SessionId, To, Turn,
};

/// The row of a session as a list has it for somebody; the single read has to say the same.
async fn listed(store: &dyn Store, by: &Principal, session: SessionId) -> Option<SessionRow> {
    let row = list(store, by, Which::All).await.into_iter().find(|row| row.session == session);
    let read = store.session_seen(Seer::of(by), session).await.unwrap().map(|(_, row)| row);
    assert_eq!(row, read);
    row
}

pub async fn a_row_says_what_its_reader_may_do<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    say(store, &me(), To::New, line(1)).await;
    let may = async |by: &Principal| listed(store, by, ses(1)).await.map(|row| row.may);
    assert_eq!(may(&me()).await, Some(Some(Grant::Manage)));
    assert_eq!(may(&friend()).await, None);
    for grant in [Grant::View, Grant::Prompt, Grant::Manage] {
        share(store, ses(1), &friend(), Some(grant)).await;
        assert_eq!(may(&friend()).await, Some(Some(grant)));
    }
    share(store, ses(1), &friend(), Some(Grant::View)).await;
    let everybody =
        PeopleChange::Give { on: Resource::Session(ses(1)), to: Grantee::Org, grant: Grant::Prompt };
    set(store, everybody).await;
    assert_eq!(may(&friend()).await, Some(Some(Grant::Prompt)), "the stronger one counts");
    let looks = Principal { role: Role::Viewer, ..friend() };
    assert_eq!(may(&looks).await, Some(Some(Grant::View)), "whoever is a viewer only looks");
    assert_eq!(may(&Principal { role: Role::Viewer, ..me() }).await, Some(Some(Grant::View)));
    let bound = Principal { bound: Some((ses(1), Turn(1))), ..me() };
    assert_eq!(may(&bound).await, Some(Some(Grant::Manage)));
    assert_eq!(store.session(ses(1)).await.unwrap().unwrap().1.may, None, "nobody in particular asked");
}

pub async fn a_row_counts_what_waits_for_people<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    for n in 1..=4 {
        let to = if n == 1 { To::New } else { To::Session(ses(1)) };
        say(store, &me(), to, line(n)).await;
    }
    let counts = async || {
        let row = listed(store, &me(), ses(1)).await.unwrap();
        (row.questions, row.held, row.pending)
    };
    let facts = vec![opened(), queued(1), queued(2), queued(3), queued(4), started(1, 1), attempt(1)];
    write(store, ses(1), facts).await;
    assert_eq!(counts().await, (0, 0, 4));
    write(store, ses(1), vec![asked(1), asked(2), asked(3), held(2), held(3), held(4)]).await;
    assert_eq!(counts().await, (3, 3, 4));
    let yes = Fact::Answered { approval: apr(1), answer: Answer::Yes, by: Answerer::Person(me().person) };
    let released = Fact::Released { message: msg(2), epoch: kernel::Epoch(0) };
    let withdrawn = Fact::Withdrawn { message: msg(3), by: me().person };
    write(store, ses(1), vec![yes.clone(), released, withdrawn]).await;
    assert_eq!(counts().await, (2, 1, 3));
    write(store, ses(1), vec![yes, Fact::Lapsed { approval: apr(2) }, held(4)]).await;
    assert_eq!(counts().await, (1, 1, 3), "what is said twice counts once");
    let on = on.reopen().await;
    let store = on.store();
    write(store, ses(1), vec![Fact::Lapsed { approval: apr(3) }, refused(4)]).await;
    let row = listed(store, &me(), ses(1)).await.unwrap();
    assert_eq!((row.questions, row.held, row.pending), (0, 0, 2));
}

pub async fn a_row_says_how_the_last_turn_ended_and_how_its_last_words_begin<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    for n in 1..=3 {
        let to = if n == 1 { To::New } else { To::Session(ses(1)) };
        say(store, &me(), to, line(n)).await;
    }
    let facts = vec![opened(), queued(1), queued(2), queued(3), started(1, 1), attempt(1)];
    write(store, ses(1), facts).await;
    assert_eq!(last_turn(store).await, None, "no turn is over yet");
    tell(store, 1, 0, 0, "let me look").await;
    tell(store, 1, 2, 0, "here ").await;
    tell(store, 1, 2, 5, "it is").await;
    assert_eq!(last_turn(store).await, None);
    let over = write(store, ses(1), vec![answered(1), started(2, 2), attempt(2)]).await;
    let expected = LastTurn {
        outcome: Outcome::Answered,
        number: Number(over.0 - 2),
        at: Moment(5_000 + 10 * (over.0 - 3)),
        words: Some("here it is".to_owned()),
    };
    assert_eq!(last_turn(store).await, Some(expected));

    // Across a restart, and with more words than a row shows.
    let on = on.reopen().await;
    let store = on.store();
    tell(store, 2, 0, 0, &"\u{e4}".repeat(60)).await;
    tell(store, 2, 0, 120, &"x\u{e4}".repeat(60)).await;
    tell(store, 2, 0, 300, "and so on").await;
    let failed = Fact::TurnEnded { turn: Turn(2), outcome: Outcome::Failed(Failure::Refused) };
    write(store, ses(1), vec![failed]).await;
    let shown = last_turn(store).await.unwrap();
    assert_eq!(shown.outcome, Outcome::Failed(Failure::Refused));
    let words = shown.words.unwrap();
    assert_eq!(words, format!("{}{}x", "\u{e4}".repeat(60), "x\u{e4}".repeat(26)));
    assert!(words.len() < LAST_WORDS_BYTES_MAX, "no character is cut");

    let stopped = Fact::TurnEnded { turn: Turn(3), outcome: Outcome::Stopped };
    write(store, ses(1), vec![started(3, 3), attempt(3), stopped]).await;
    let shown = last_turn(store).await.unwrap();
    assert_eq!(
        (shown.outcome, shown.words),
        (Outcome::Stopped, None),
        "another turn's words are not its own"
    );
}

async fn last_turn(store: &dyn Store) -> Option<LastTurn> {
    listed(store, &me(), ses(1)).await.unwrap().last
}

async fn tell(store: &dyn Store, turn: u32, part: u32, offset: u64, text: &str) {
    let body =
        format!(r#"{{"v":1,"turn":{turn},"type":"text","part":{part},"offset":{offset},"text":"{text}"}}"#);
    let append = append_to(store, ses(1)).await;
    written(store, told(append, turn, "text", body.as_bytes())).await;
}

fn asked(n: u32) -> Fact {
    Fact::Asked { approval: apr(n), turn: Turn(1), until: Moment(60_000), terms: ApprovalTerms::default() }
}

fn held(n: u32) -> Fact {
    Fact::Held { message: msg(n), why: HoldWhy::Asked, expires: Moment(90_000) }
}
