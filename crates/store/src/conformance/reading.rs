//! Promises of lists and pages to readers.

use super::Fixture;
use super::story::*;
use crate::*;
use kernel::{Address, ApprovalTerms, Fact, Grant, Grantee, Moment, Number, Principal, SessionId, To, Turn};
use std::collections::BTreeSet;

async fn page(store: &dyn Store, after: Option<&SessionRow>, limit: usize) -> Vec<SessionRow> {
    let after = after.map(|row| (row.touched_at, row.session));
    let by = Seer::of(&me());
    store
        .sessions(SessionsQuery { by, which: Which::Open, filter: SessionFilter::default(), after, limit })
        .await
        .unwrap()
}

pub async fn sessions_are_listed_with_the_newest_activity_first<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    for n in 1..=4 {
        open(store, n).await;
    }
    let order = async || list(store, &me(), Which::Open).await.iter().map(|r| r.session).collect::<Vec<_>>();
    assert_eq!(order().await, [ses(4), ses(3), ses(2), ses(1)]);
    say(store, &me(), To::Session(ses(2)), line(5)).await;
    assert_eq!(order().await, [ses(2), ses(4), ses(3), ses(1)], "somebody said something");
    write(store, ses(1), vec![started(1, 1), attempt(1)]).await;
    assert_eq!(order().await, [ses(2), ses(4), ses(3), ses(1)], "that it works is no news");
    write(store, ses(1), vec![answered(1)]).await;
    assert_eq!(order().await, [ses(1), ses(2), ses(4), ses(3)], "the agent has answered");
}

pub async fn pages_of_sessions_have_no_gap_and_no_repeat<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    for n in 1..=23 {
        // Many at the same moment, so that a page ends among them.
        say(store, &me(), To::New, IncomingMessage { at: 1_000 + u64::from(n) / 5, ..line(n) }).await;
    }
    let all = page(store, None, ALL).await;
    assert_eq!(all.len(), 23);
    let mut rows: Vec<SessionRow> = vec![];
    while rows.len() < 23 {
        let next = page(store, rows.last(), 4).await;
        assert!(!next.is_empty() && next.len() <= 4);
        rows.extend(next);
    }
    assert_eq!(rows, all);
    assert_eq!(page(store, rows.last(), 4).await, []);
    // What moves to the front meanwhile is not shown twice, and hides nothing.
    let moved = all[20].session;
    say(store, &me(), To::Session(moved), line(30)).await;
    let rest: Vec<_> = page(store, Some(&all[9]), ALL).await.iter().map(|row| row.session).collect();
    let expected: Vec<_> = all[10..].iter().map(|row| row.session).filter(|s| *s != moved).collect();
    assert_eq!(rest, expected);
}

pub async fn a_list_shows_open_ended_or_all<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    for n in 1..=4 {
        open(store, n).await;
    }
    write(store, ses(1), vec![refused(1), ended()]).await;
    write(store, ses(2), vec![refused(2), ended()]).await;
    for session in [ses(2), ses(3)] {
        let new = Retitle { session, title: None, archived: Some(true), trail: trail("retitle", 1) };
        store.retitle(arc(&me()), new).await.unwrap();
    }
    let shown =
        async |which| list(store, &me(), which).await.iter().map(|r| r.session).collect::<BTreeSet<_>>();
    assert_eq!(shown(Which::Open).await, [ses(4)].into());
    assert_eq!(shown(Which::Ended).await, [ses(1)].into());
    assert_eq!(shown(Which::All).await, [ses(1), ses(2), ses(3), ses(4)].into());
}

/// Everything that any list shows to this person.
async fn seen(store: &dyn Store, by: &Principal) -> [usize; 4] {
    [
        list(store, by, Which::All).await.len(),
        store.bindings(Seer::of(by), None, ALL).await.unwrap().len(),
        store.approvals(ApprovalsQuery::open(Seer::of(by), ALL)).await.unwrap().len(),
        store.heads(Seer::of(by), 0, ALL).await.unwrap().len(),
    ]
}

pub async fn what_you_may_not_see_is_in_no_list<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    say(store, &me(), conversation("a"), line(1)).await;
    write(store, ses(1), vec![opened(), queued(1), started(1, 1), attempt(1), asked(1)]).await;
    say(store, &me(), conversation("b"), line(2)).await;
    write(store, ses(2), vec![opened(), queued(2)]).await;
    let twin = Principal { org: stranger().org, ..me() };
    assert_eq!(seen(store, &me()).await, [2, 2, 1, 2]);
    for other in [friend(), stranger(), twin.clone()] {
        assert_eq!(seen(store, &other).await, [0, 0, 0, 0]);
    }
    share(on.store(), ses(1), &friend(), Some(Grant::View)).await;
    assert_eq!(seen(store, &friend()).await, [1, 1, 1, 1]);
    share(on.store(), ses(1), &friend(), None).await;
    assert_eq!(seen(store, &friend()).await, [0, 0, 0, 0]);
    // A list that is short because of what is left out is still a full page of what is not.
    share(on.store(), ses(1), &friend(), Some(Grant::View)).await;
    let (by, filter) = (Seer::of(&friend()), SessionFilter::default());
    let query = SessionsQuery { by, which: Which::Open, filter, after: None, limit: 1 };
    let first = store.sessions(query).await.unwrap();
    assert_eq!(first.iter().map(|row| row.session).collect::<Vec<_>>(), [ses(1)]);
}

/// The things that this person gets by their ids, of session 1, message 1 and question 1, and whether they are told where those are.
async fn read_by_id(store: &dyn Store, by: &Principal) -> [bool; 8] {
    let seer = || Seer::of(by);
    let found = |finding: Finding| finding.found != kernel::Found::Nothing && finding.record.is_some();
    let told = async |thing| store.whereabouts(seer(), thing).await.unwrap().is_some_and(|told| told.is_seen);
    [
        store.session_seen(seer(), ses(1)).await.unwrap().is_some(),
        store.session_with_log(seer(), ses(1)).await.unwrap().is_some(),
        store.receipt_seen(seer(), msg(1)).await.unwrap().is_some(),
        store.approval_seen(seer(), apr(1)).await.unwrap().is_some(),
        found(store.find(seer(), None, To::Session(ses(1))).await.unwrap()),
        found(store.find(seer(), None, conversation("a")).await.unwrap()),
        told(Thing::Session(ses(1))).await,
        told(Thing::Message(msg(1))).await && told(Thing::Approval(apr(1))).await,
    ]
}

pub async fn what_you_may_not_see_is_not_read_by_its_id<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    say(store, &me(), conversation("a"), line(1)).await;
    write(store, ses(1), vec![opened(), queued(1), started(1, 1), attempt(1), asked(1)]).await;
    say(store, &me(), conversation("b"), line(2)).await;
    let bound = |by: Principal, n| Principal { bound: Some((ses(n), Turn(1))), ..by };
    for by in [me(), bound(me(), 1), Principal::house(me().org)] {
        assert_eq!(read_by_id(store, &by).await, [true; 8], "{by:?}");
    }
    let twin = Principal { org: stranger().org, ..me() };
    for by in [friend(), stranger(), twin, bound(me(), 2), Principal::house(stranger().org)] {
        assert_eq!(read_by_id(store, &by).await, [false; 8], "{by:?}");
    }
    share(store, ses(1), &friend(), Some(Grant::View)).await;
    assert_eq!(read_by_id(store, &friend()).await, [true; 8]);
    let (read, all) = (Seer::of(&friend()), store.session(ses(1)).await.unwrap());
    let all = all.map(|(record, row)| (record, SessionRow { may: Some(Grant::View), ..row }));
    assert_eq!(store.session_seen(read.clone(), ses(1)).await.unwrap(), all);
    assert_eq!(store.receipt_seen(read.clone(), msg(1)).await.unwrap(), store.receipt(msg(1)).await.unwrap());
    assert_eq!(store.approval_seen(read, apr(1)).await.unwrap(), store.approval(apr(1)).await.unwrap());
    share(store, ses(1), &friend(), None).await;
    assert_eq!(read_by_id(store, &friend()).await, [false; 8]);
    let (on_it, to) = (Resource::Session(ses(1)), Grantee::Org);
    set(store, PeopleChange::Give { on: on_it, to, grant: Grant::View }).await;
    assert_eq!(read_by_id(store, &friend()).await, [true; 8], "it is everybody's in the org");
    assert_eq!(read_by_id(store, &stranger()).await, [false; 8]);
}

pub async fn where_something_is_is_told_in_its_org_only<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    let told = async |by: &Principal, thing| store.whereabouts(Seer::of(by), thing).await.unwrap();
    for thing in [Thing::Session(ses(1)), Thing::Message(msg(1)), Thing::Approval(apr(1))] {
        assert_eq!(told(&me(), thing).await, None, "there is nothing at all");
    }
    say(store, &me(), conversation("a"), line(1)).await;
    write(store, ses(1), vec![opened(), queued(1), started(1, 1), attempt(1), asked(1)]).await;
    let here = |is_seen| Some(Whereabouts { session: ses(1), is_seen });
    for thing in [Thing::Session(ses(1)), Thing::Message(msg(1)), Thing::Approval(apr(1))] {
        assert_eq!(told(&me(), thing).await, here(true));
        assert_eq!(told(&friend(), thing).await, here(false));
        assert_eq!(told(&stranger(), thing).await, None);
    }
    for thing in [Thing::Session(ses(9)), Thing::Message(msg(9)), Thing::Approval(apr(9))] {
        assert_eq!(told(&me(), thing).await, None, "another stands in for it, and is not told");
    }
}

pub async fn whoever_lost_a_message_with_its_session_is_told_so<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    say(store, &me(), conversation("a"), line(1)).await;
    share(store, ses(1), &friend(), Some(Grant::Prompt)).await;
    for n in [2, 3] {
        say(store, &friend(), To::Session(ses(1)), line(n)).await;
    }
    let handed_over = Fact::MessageRefused { message: msg(2), why: kernel::RefusedWhy::HandedOver };
    write(store, ses(1), vec![opened(), queued(1), handed_over, refused(3)]).await;
    share(store, ses(1), &friend(), None).await;
    let read = async |by: &Principal, n| store.receipt_seen(Seer::of(by), msg(n)).await.unwrap().is_some();
    assert!(read(&friend(), 2).await);
    assert!(!read(&friend(), 3).await, "it ended for another reason");
    let bound = Principal { bound: Some((ses(1), Turn(1))), ..friend() };
    assert!(!read(&bound, 2).await, "a turn's credential is told nothing");
    assert!(!read(&stranger(), 2).await);
}

pub async fn a_record_says_who_may<F: Fixture>() {
    let on = peopled::<F>().await;
    open(on.store(), 1).await;
    let record = async || on.store().session(ses(1)).await.unwrap().unwrap().0;
    let first = record().await;
    assert_eq!((first.owner, first.org, first.grants.clone()), (me().person, me().org, vec![]));
    share(on.store(), ses(1), &friend(), Some(Grant::Prompt)).await;
    let second = record().await;
    assert_eq!(second.grants, [(Grantee::Person(friend().person), Grant::Prompt)]);
    assert!(second.revision > first.revision);
    let (of_message, _) = on.store().receipt(msg(1)).await.unwrap().unwrap();
    assert_eq!(of_message, second);
    assert!(on.store().session(ses(9)).await.unwrap().is_none());
    assert!(on.store().receipt(msg(9)).await.unwrap().is_none());
    assert!(on.store().approval(apr(9)).await.unwrap().is_none());
}

fn asked(n: u32) -> Fact {
    Fact::Asked { approval: apr(n), turn: Turn(1), until: Moment(60_000), terms: ApprovalTerms::default() }
}

pub async fn heads_name_each_changed_session_once<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    let heads = async |after, limit| store.heads(Seer::of(&me()), after, limit).await.unwrap();
    let places = |heads: &[Head]| heads.iter().map(|h| (h.session, h.number)).collect::<Vec<_>>();
    say(store, &me(), To::New, line(9)).await;
    assert_eq!(heads(0, ALL).await, [], "no fact, no head");
    for n in 1..=3 {
        open(store, n).await;
    }
    let first = heads(0, ALL).await;
    assert_eq!(places(&first), [(ses(1), Number(2)), (ses(2), Number(2)), (ses(3), Number(2))]);
    assert!(first.is_sorted_by(|a, b| a.place < b.place));
    assert_eq!(heads(0, 2).await, first[..2]);
    assert_eq!(heads(first[1].place, ALL).await, first[2..]);
    write(store, ses(1), vec![started(1, 1), attempt(1)]).await;
    assert_eq!(places(&heads(first[2].place, ALL).await), [(ses(1), Number(4))]);
    let all = heads(0, ALL).await;
    assert_eq!(places(&all), [(ses(2), Number(2)), (ses(3), Number(2)), (ses(1), Number(4))]);
    written(store, append_to(store, ses(2)).await).await;
    assert_eq!(heads(0, ALL).await, all, "an append without facts is no change");
    let on = on.reopen().await;
    write(on.store(), ses(3), vec![started(1, 3)]).await;
    let later = on.store().heads(Seer::of(&me()), all[2].place, ALL).await.unwrap();
    assert_eq!(places(&later), [(ses(3), Number(3))], "places go on growing after a restart");
}

pub async fn bindings_are_paged_in_the_order_of_their_texts<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    let texts = ["web:me/b", "api:test/b", "cli:h/me/%2Fsrv", "api:test/a", "schedule:x", "api:test/B"];
    for (n, text) in (1..).zip(texts) {
        say(store, &me(), To::Conversation(text.parse().unwrap()), line(n)).await;
    }
    write(store, ses(2), vec![opened(), refused(2), ended()]).await;
    let mut expected: Vec<_> = texts.into_iter().filter(|text| *text != "api:test/b").collect();
    expected.sort_unstable();
    let mut rows: Vec<BindingRow> = vec![];
    loop {
        let after: Option<Address> = rows.last().map(|row| row.address.clone());
        let next = store.bindings(Seer::of(&me()), after, 2).await.unwrap();
        if next.is_empty() {
            break;
        }
        rows.extend(next);
    }
    assert_eq!(rows.iter().map(|row| row.address.to_string()).collect::<Vec<_>>(), expected);
}

pub async fn questions_are_listed_until_they_are_settled<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    open(store, 1).await;
    write(store, ses(1), vec![started(1, 1), attempt(1), asked(3), asked(1), asked(2)]).await;
    let open = async || {
        let rows = store.approvals(ApprovalsQuery::open(Seer::of(&me()), ALL)).await.unwrap();
        rows.into_iter().map(|row| row.approval).collect::<Vec<_>>()
    };
    assert_eq!(open().await, [apr(3), apr(1), apr(2)], "the oldest first");
    let first = store.approvals(ApprovalsQuery::open(Seer::of(&me()), 1)).await.unwrap();
    let expected = ApprovalRow {
        approval: apr(3),
        session: ses(1),
        turn: Turn(1),
        state: ApprovalState::Open,
        asked_at: Moment(5_040),
        until: Moment(60_000),
        terms: ApprovalTerms::default(),
        words: None,
        settled_at: None,
    };
    assert_eq!(first, [expected]);
    let yes = Fact::Answered {
        approval: apr(3),
        answer: kernel::Answer::Yes,
        by: kernel::Answerer::Person(me().person),
    };
    let late = Fact::Answered { approval: apr(1), answer: kernel::Answer::No, by: kernel::Answerer::Nobody };
    write(store, ses(1), vec![yes, late]).await;
    assert_eq!(open().await, [apr(2)]);
    write(store, ses(1), vec![Fact::Lapsed { approval: apr(2) }, answered(1)]).await;
    assert!(open().await.is_empty());
    let on = on.reopen().await;
    let states = [
        (
            3,
            ApprovalState::Answered {
                answer: kernel::Answer::Yes,
                by: kernel::Answerer::Person(me().person),
            },
        ),
        (1, ApprovalState::Answered { answer: kernel::Answer::No, by: kernel::Answerer::Nobody }),
        (2, ApprovalState::Lapsed),
    ];
    for (n, state) in states {
        let (record, row) = on.store().approval(apr(n)).await.unwrap().unwrap();
        assert_eq!((record.session, row.session, row.state), (ses(1), ses(1), state));
    }
}

pub async fn a_queue_is_shown_with_senders_and_words<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    for n in 1..=3 {
        say(store, &me(), conversation("a"), line(n)).await;
    }
    write(store, ses(1), vec![opened(), queued(1), queued(2), queued(3)]).await;
    write(store, ses(1), vec![Fact::Reordered { order: vec![msg(3), msg(1), msg(2)] }, started(1, 3)]).await;
    let mut rows = Vec::new();
    for receipt in store.queue(ses(1)).await.unwrap() {
        let words = store.words(receipt.message).await.unwrap();
        rows.push(QueuedRow { sender: Some(me().handle), words, receipt, attachments: Vec::new() });
    }
    assert_eq!(rows.len(), 3);
    assert!(rows.iter().all(|row| row.words.is_some()));
    assert_eq!(store.queue_shown(ses(1), 1_000).await.unwrap(), rows);
    // What is longer than was asked for is left out, and nothing else of it.
    rows.iter_mut().for_each(|row| row.words = None);
    assert_eq!(store.queue_shown(ses(1), 1).await.unwrap(), rows);
    assert_eq!(store.queue_shown(ses(9), 1_000).await.unwrap(), []);
}

pub async fn turns_are_listed_with_what_they_began_with<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    for n in 1..=4 {
        say(store, &me(), conversation("a"), line(n)).await;
    }
    // The fourth was said into the second turn.
    let steered = Fact::Steered { message: msg(4), turn: Turn(2) };
    write(store, ses(1), vec![opened(), queued(1), queued(2), queued(3), started(1, 1), answered(1)]).await;
    write(store, ses(1), vec![started(2, 2), steered, answered(2), started(3, 3)]).await;
    let on = on.reopen().await;
    let store = on.store();
    let turns = async |before, limit| store.turns(ses(1), before, limit, 1_000).await.unwrap();
    let all = turns(None, ALL).await;
    let told = |row: &TurnRow| {
        let TurnRow { message: QueuedRow { receipt, sender, words, .. }, began_at } = row;
        let numbers = (receipt.first.unwrap().0, receipt.last.map(|last| last.0));
        assert_eq!((sender.as_deref(), words.is_some()), (Some("me"), true));
        (receipt.turn.unwrap().0, receipt.message, numbers, began_at.0)
    };
    assert_eq!(
        all.iter().map(told).collect::<Vec<_>>(),
        [(3, msg(3), (10, None), 5_090), (2, msg(2), (7, Some(9)), 5_060), (1, msg(1), (5, Some(6)), 5_040),]
    );
    assert_eq!(
        (turns(None, 1).await, turns(Some(Turn(3)), ALL).await),
        (all[..1].to_vec(), all[1..].to_vec())
    );
    assert_eq!(turns(Some(Turn(1)), ALL).await, []);
    assert!(store.turns(ses(1), None, ALL, 1).await.unwrap().iter().all(|row| row.message.words.is_none()));
    assert_eq!(store.turns(ses(9), None, ALL, 1_000).await.unwrap(), []);
    let shown = store.messages_shown(ses(1), vec![msg(4), msg(1), msg(9)], 1_000).await.unwrap();
    assert_eq!(shown.iter().map(|row| row.receipt.message).collect::<Vec<_>>(), [msg(4), msg(1)]);
    assert_eq!(shown[1], all[2].message);
    assert_eq!(
        store.messages_shown(ses(2), vec![msg(1)], 1_000).await.unwrap(),
        [],
        "it is another session's"
    );
}

pub async fn a_session_is_read_with_its_log<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    say(store, &me(), conversation("a"), line(1)).await;
    write(store, ses(1), vec![opened(), queued(1), started(1, 1)]).await;
    let (record, row) = store.session_seen(Seer::of(&me()), ses(1)).await.unwrap().unwrap();
    let loaded = store.load(ses(1)).await.unwrap().unwrap();
    assert_eq!(loaded.facts.len(), 3);
    let read = async |session| store.session_with_log(Seer::of(&me()), session).await.unwrap();
    assert_eq!(read(ses(1)).await, Some((record, row, loaded)));
    assert_eq!(read(ses(9)).await, None);
}

pub async fn the_queue_has_the_order_in_which_messages_will_run<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    let queue = async |session: SessionId| {
        let rows = store.queue(session).await.unwrap();
        rows.into_iter().map(|row| (row.message, row.state)).collect::<Vec<_>>()
    };
    use ReceiptState::*;
    for n in 1..=4 {
        say(store, &me(), conversation("a"), line(n)).await;
    }
    write(store, ses(1), vec![opened(), queued(1), queued(2), queued(3), queued(4)]).await;
    let order = vec![msg(3), msg(1), msg(4), msg(2)];
    write(store, ses(1), vec![Fact::Reordered { order }]).await;
    say(store, &me(), conversation("a"), line(5)).await;
    let expected = [(3, Waiting), (1, Waiting), (4, Waiting), (2, Waiting), (5, Waiting)];
    assert_eq!(queue(ses(1)).await, expected.map(|(n, state)| (msg(n), state)));
    // Held and released, a message keeps its place; what runs comes first; what is final is gone.
    let held = |n| Fact::Held { message: msg(n), why: kernel::HoldWhy::Asked, expires: Moment(70_000) };
    let by = me().person;
    let withdrawn = Fact::Withdrawn { message: msg(1), by };
    let facts = vec![held(4), held(2), released(4), started(1, 3), withdrawn, queued(5)];
    write(store, ses(1), facts).await;
    let expected = [(3, Running), (4, Waiting), (2, Held), (5, Waiting)];
    assert_eq!(queue(ses(1)).await, expected.map(|(n, state)| (msg(n), state)));
    let order = vec![msg(5), msg(2), msg(4)];
    write(store, ses(1), vec![Fact::Reordered { order }, answered(1)]).await;
    let expected = [(5, Waiting), (2, Held), (4, Waiting)];
    assert_eq!(queue(ses(1)).await, expected.map(|(n, state)| (msg(n), state)));
    assert_eq!(queue(ses(9)).await, []);
}

/// The questions on a page of a list.
async fn listed(store: &dyn Store, query: ApprovalsQuery) -> Vec<kernel::ApprovalId> {
    store.approvals(query).await.unwrap().into_iter().map(|row| row.approval).collect()
}

pub async fn settled_questions_are_listed_page_by_page<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    open(store, 1).await;
    write(store, ses(1), vec![started(1, 1), attempt(1), asked(3), asked(1), asked(5)]).await;
    say(store, &me(), To::New, line(2)).await;
    write(store, ses(2), vec![opened(), queued(2), started(1, 2), attempt(1), asked(2), asked(4)]).await;
    let yes = |n| Fact::Answered {
        approval: apr(n),
        answer: kernel::Answer::Yes,
        by: kernel::Answerer::Person(me().person),
    };
    write(store, ses(1), vec![yes(1), Fact::Lapsed { approval: apr(3) }]).await;
    write(store, ses(2), vec![yes(4)]).await;
    let query = |which| ApprovalsQuery { which, ..ApprovalsQuery::open(Seer::of(&me()), ALL) };
    use WhichApprovals::{All, Open, Settled};
    let in_order = async |which| {
        let all = store.approvals(query(which)).await.unwrap();
        // Page by page it is the same list.
        let mut paged: Vec<ApprovalRow> = vec![];
        loop {
            let after = paged.last().map(|row| (row.asked_at, row.approval));
            let page = store.approvals(ApprovalsQuery { after, limit: 1, ..query(which) }).await.unwrap();
            let Some(row) = page.first() else { break };
            assert_eq!(page.len(), 1);
            paged.push(row.clone());
        }
        assert_eq!(paged, all);
        let place = |row: &ApprovalRow| (row.asked_at, row.approval);
        let ascends = all.windows(2).all(|pair| place(&pair[0]) < place(&pair[1]));
        let descends = all.windows(2).all(|pair| place(&pair[0]) > place(&pair[1]));
        assert!(if which == Open { ascends } else { descends }, "{which:?}: {all:?}");
        let mut all: Vec<_> = all.into_iter().map(|row| row.approval).collect();
        all.sort_unstable();
        all
    };
    assert_eq!(in_order(Open).await, [apr(2), apr(5)]);
    assert_eq!(in_order(Settled).await, [apr(1), apr(3), apr(4)]);
    assert_eq!(in_order(All).await, [1, 2, 3, 4, 5].map(apr));
    let row = store.approvals(query(Settled)).await.unwrap().into_iter().find(|row| row.approval == apr(1));
    let row = row.unwrap();
    let by_me =
        ApprovalState::Answered { answer: kernel::Answer::Yes, by: kernel::Answerer::Person(me().person) };
    assert!(row.state == by_me && row.settled_at.is_some(), "who answered, what and when: {row:?}");
    let of = |which, n| ApprovalsQuery { session: Some(ses(n)), ..query(which) };
    assert_eq!(listed(store, of(Open, 1)).await, [apr(5)]);
    assert_eq!(listed(store, of(Settled, 2)).await, [apr(4)]);
    assert_eq!(listed(store, of(All, 1)).await.len(), 3);
    assert_eq!(listed(store, of(All, 9)).await, []);
}

pub async fn settled_questions_out_of_sight_are_in_no_list<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    open(store, 1).await;
    let lapsed = Fact::Lapsed { approval: apr(1) };
    write(store, ses(1), vec![started(1, 1), attempt(1), asked(1), asked(2), lapsed]).await;
    let seen = async |by: &Principal| {
        let all = ApprovalsQuery { which: WhichApprovals::All, ..ApprovalsQuery::open(Seer::of(by), ALL) };
        let of = ApprovalsQuery { session: Some(ses(1)), ..all.clone() };
        (listed(store, all).await, listed(store, of).await)
    };
    let (both, none) = (|| (vec![apr(2), apr(1)], vec![apr(2), apr(1)]), || (vec![], vec![]));
    assert_eq!(seen(&me()).await, both());
    for other in [friend(), stranger(), Principal { org: stranger().org, ..me() }] {
        assert_eq!(seen(&other).await, none());
    }
    share(store, ses(1), &friend(), Some(Grant::View)).await;
    let everybody =
        PeopleChange::Give { on: Resource::Session(ses(1)), to: Grantee::Org, grant: Grant::View };
    set(store, everybody).await;
    assert_eq!(seen(&friend()).await, both(), "each once");
    let bound = |n| Principal { bound: Some((ses(n), Turn(1))), ..me() };
    assert_eq!(seen(&bound(1)).await, both());
    assert_eq!(seen(&bound(9)).await, none());
    set(store, PeopleChange::TakeBack { on: Resource::Session(ses(1)), to: Grantee::Org }).await;
    share(store, ses(1), &friend(), None).await;
    hand_over(store, ses(1), &me(), &friend()).await;
    assert_eq!(seen(&friend()).await, both(), "they go along with their session");
    assert_eq!(seen(&me()).await, none());
}
