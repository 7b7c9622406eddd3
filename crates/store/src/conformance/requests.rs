//! What `ask`, `verdict`, `rebind`, `retitle` and `audit` promise.

use super::Fixture;
use super::story::*;
use crate::*;
use bytes::Bytes;
use kernel::{
    Act, Answer, Authorized, EndWhy, Fact, Found, Grant, Refusal, Request, SessionId, To, authorize,
};

pub async fn a_wish_waits_in_the_inbox_until_the_keeper_has_judged_it<F: Fixture>() {
    let on = peopled::<F>().await;
    open(on.store(), 1).await;
    let wishes = [
        Request::Withdraw { message: msg(1) },
        Request::Hold { message: msg(1) },
        Request::Release { message: msg(1), there: false },
        Request::Reorder { session: ses(1), order: vec![msg(2), msg(1)] },
        Request::Stop { message: msg(1) },
        Request::Answer { approval: apr(1), answer: Answer::No, remember: None },
        Request::End { session: ses(1) },
    ];
    for (n, wish) in (1..).zip(&wishes) {
        assert_eq!(ask(on.store(), ses(1), n, wish.clone()).await, Asking::Done(req(n)));
    }
    let on = on.reopen().await;
    let inbox = on.store().inbox(ses(1), ALL).await.unwrap();
    let request = |(n, request)| {
        let (id, by, resolved) = (req(n), me().person, Resolved::default());
        InboxItem::Request { id, by, request, resolved }
    };
    let expected: Vec<_> = (1..).zip(wishes).map(request).collect();
    assert_eq!(inbox.iter().map(|row| row.item.clone()).collect::<Vec<_>>(), expected);
    assert_eq!(on.store().verdict(req(1)).await.unwrap(), None);
    let verdicts = [
        (req(1), Verdict::Done),
        (req(2), Verdict::Refused(Refusal::TooLate)),
        (req(3), Verdict::Refused(Refusal::Changed)),
        (req(4), Verdict::Refused(Refusal::Ended)),
    ];
    let mut judged = append_to(on.store(), ses(1)).await;
    judged.drained = inbox[..4].iter().map(|row| row.number).collect();
    judged.verdicts = verdicts.to_vec();
    written(on.store(), judged).await;
    assert_eq!(on.store().inbox(ses(1), ALL).await.unwrap(), inbox[4..]);
    let on = on.reopen().await;
    for (request, verdict) in verdicts {
        assert_eq!(on.store().verdict(request).await.unwrap(), Some(verdict));
    }
    assert_eq!(on.store().verdict(req(5)).await.unwrap(), None);
    assert_eq!(on.store().verdict(req(99)).await.unwrap(), None);
}

async fn edit(store: &dyn Store, n: u32, words: &'static str) {
    let words = Bytes::from_static(words.as_bytes());
    let request = Request::Edit { message: msg(1), revision: 0 };
    let asking = ask_with(store, ses(1), n, request, Resolved::default(), Some(words)).await;
    assert_eq!(asking, Asking::Done(req(n)));
}

pub async fn edited_words_count_once_the_keeper_has_said_yes<F: Fixture>() {
    let on = peopled::<F>().await;
    open(on.store(), 1).await;
    edit(on.store(), 1, "better").await;
    // The keeper has no use for them; they are with the store.
    let inbox = on.store().inbox(ses(1), ALL).await.unwrap();
    let (id, request) = (req(1), Request::Edit { message: msg(1), revision: 0 });
    let (by, resolved) = (me().person, Resolved::default());
    assert_eq!(inbox[0].item, InboxItem::Request { id, by, request, resolved });
    assert_eq!(on.store().words(msg(1)).await.unwrap(), Some(line(1).words()));
    let on = on.reopen().await;
    let edited = Fact::Edited { message: msg(1), revision: 1 };
    let yes = with(drain(on.store(), ses(1)).await, vec![edited]);
    written(on.store(), Append { verdicts: vec![(req(1), Verdict::Done)], ..yes }).await;
    assert_eq!(on.store().words(msg(1)).await.unwrap(), Some("better".into()));
    assert_eq!(receipt(on.store(), 1).await.revision, 1);
}

pub async fn edited_words_are_dropped_once_the_keeper_has_said_no<F: Fixture>() {
    let on = peopled::<F>().await;
    open(on.store(), 1).await;
    edit(on.store(), 1, "first").await;
    edit(on.store(), 2, "second").await;
    let edited = Fact::Edited { message: msg(1), revision: 1 };
    let mut both = with(drain(on.store(), ses(1)).await, vec![edited]);
    both.verdicts = vec![(req(1), Verdict::Done), (req(2), Verdict::Refused(Refusal::Changed))];
    written(on.store(), both).await;
    assert_eq!(on.store().words(msg(1)).await.unwrap(), Some("first".into()));
    assert_eq!(receipt(on.store(), 1).await.revision, 1);
}

fn keyed(
    wish: Authorized<NewRequest>,
    n: u32,
    body: u8,
    store_record: kernel::Record,
) -> Authorized<NewRequest> {
    let key = Some(key("ask", "k", body));
    let request = NewRequest { id: req(n), key, ..wish.wish().clone() };
    authorize(&me(), Act::Say, &store_record, request).unwrap()
}

pub async fn a_wish_asked_again_under_its_key_is_the_same_wish<F: Fixture>() {
    let on = peopled::<F>().await;
    open(on.store(), 1).await;
    let (record, _) = on.store().session(ses(1)).await.unwrap().unwrap();
    let wish = want(on.store(), &me(), ses(1), 1, Request::End { session: ses(1) }).await;
    let under = |n, body| keyed(wish.clone(), n, body, record.clone());
    assert_eq!(on.store().ask(under(1, 7)).await.unwrap(), Asking::Done(req(1)));
    let before = picture(&on).await;
    assert_eq!(on.store().ask(under(2, 7)).await.unwrap(), Asking::Before(req(1)));
    assert_eq!(on.store().ask(under(2, 8)).await.unwrap(), Asking::Conflict);
    assert_eq!(picture(&on).await, before);
    // Even when the session is over and the record another.
    share(on.store(), ses(1), &friend(), Some(Grant::View)).await;
    write(on.store(), ses(1), vec![refused(1), ended()]).await;
    let on = on.reopen().await;
    assert_eq!(on.store().ask(under(2, 7)).await.unwrap(), Asking::Before(req(1)));
    assert_eq!(on.store().ask(under(2, 8)).await.unwrap(), Asking::Conflict);
}

pub async fn a_session_that_has_ended_can_be_asked_for_nothing<F: Fixture>() {
    let on = peopled::<F>().await;
    open(on.store(), 1).await;
    write(on.store(), ses(1), vec![refused(1), Fact::Ended { why: EndWhy::Gone }]).await;
    let before = picture(&on).await;
    assert_eq!(
        ask(on.store(), ses(1), 1, Request::End { session: ses(1) }).await,
        Asking::Ended(EndWhy::Gone)
    );
    assert_eq!(picture(&on).await, before);
}

pub async fn a_wish_whose_right_has_changed_is_moved<F: Fixture>() {
    let on = peopled::<F>().await;
    open(on.store(), 1).await;
    share(on.store(), ses(1), &friend(), Some(Grant::Prompt)).await;
    let late = want(on.store(), &friend(), ses(1), 1, Request::Stop { message: msg(1) }).await;
    share(on.store(), ses(1), &friend(), Some(Grant::View)).await;
    let before = picture(&on).await;
    assert_eq!(on.store().ask(late).await.unwrap(), Asking::Moved);
    assert_eq!(picture(&on).await, before);
}

async fn rebind(store: &dyn Store, from: Option<SessionId>, to: SessionId) -> Rebinding {
    rebind_as(store, from, to, None).await
}

async fn rebind_as(store: &dyn Store, from: Option<SessionId>, to: SessionId, key: Option<Key>) -> Rebinding {
    let (record, _) = store.session(to).await.unwrap().unwrap();
    let wish = Rebind { address: address("a"), from, to, key, trail: trail("rebind", 3_000) };
    store.rebind(authorize(&me(), Act::Rule, &record, wish).unwrap()).await.unwrap()
}

pub async fn a_conversation_can_be_moved_to_another_open_session<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    let found = async || store.find(me().org, conversation("a")).await.unwrap().found;
    say(store, &me(), conversation("a"), line(1)).await;
    open(store, 2).await;
    let late = aim(store, &me(), conversation("a"), line(3)).await;
    assert_eq!(rebind(store, Some(ses(1)), ses(2)).await, Rebinding::Done);
    assert_eq!(found().await, Found::Open(ses(2)));
    assert_eq!(
        store.accept(late).await.unwrap(),
        Acceptance::Moved,
        "it was routed to where it no longer is"
    );
    let before = picture(&on).await;
    assert_eq!(rebind(store, Some(ses(1)), ses(1)).await, Rebinding::Moved, "somebody was faster");
    assert_eq!(rebind(store, None, ses(1)).await, Rebinding::Moved);
    assert_eq!(picture(&on).await, before);
    // The end of the session that it left does not touch it; the end of the one that it has does.
    write(store, ses(1), vec![opened(), refused(1), ended()]).await;
    assert_eq!(found().await, Found::Open(ses(2)));
    assert_eq!(rebind(store, Some(ses(2)), ses(1)).await, Rebinding::Ended(EndWhy::Asked));
    write(store, ses(2), vec![refused(2), ended()]).await;
    assert_eq!(found().await, Found::Ended(ses(2), EndWhy::Asked));
    open(store, 4).await;
    assert_eq!(rebind(store, None, ses(4)).await, Rebinding::Done);
    assert_eq!(found().await, Found::Open(ses(4)));
}

pub async fn a_repeated_rebinding_changes_nothing<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    for n in 1..=2 {
        open(store, n).await;
    }
    let keyed = |body| Some(key("rebind", "k", body));
    assert_eq!(rebind_as(store, None, ses(1), keyed(1)).await, Rebinding::Done);
    assert_eq!(rebind(store, Some(ses(1)), ses(2)).await, Rebinding::Done);
    let on = on.reopen().await;
    let before = picture(&on).await;
    let again = async |to, body| rebind_as(on.store(), Some(ses(2)), to, keyed(body)).await;
    assert_eq!(again(ses(1), 1).await, Rebinding::Before, "somebody has moved it on since");
    assert_eq!(again(ses(1), 2).await, Rebinding::Conflict);
    assert_eq!(picture(&on).await, before);
    write(on.store(), ses(1), vec![opened(), ended()]).await;
    assert_eq!(again(ses(1), 1).await, Rebinding::Before, "whatever has become of the session");
}

pub async fn rebinding_compares_the_right<F: Fixture>() {
    let on = peopled::<F>().await;
    open(on.store(), 1).await;
    let (record, _) = on.store().session(ses(1)).await.unwrap().unwrap();
    share(on.store(), ses(1), &friend(), Some(Grant::View)).await;
    let before = picture(&on).await;
    let wish =
        Rebind { address: address("a"), from: None, to: ses(1), key: None, trail: trail("rebind", 3_000) };
    let wish = authorize(&me(), Act::Rule, &record, wish).unwrap();
    assert_eq!(on.store().rebind(wish).await.unwrap(), Rebinding::Moved);
    let wish = Retitle { session: ses(1), title: None, archived: Some(true), trail: trail("retitle", 3_000) };
    let wish = authorize(&me(), Act::Rule, &record, wish).unwrap();
    assert_eq!(on.store().retitle(wish).await.unwrap(), Retitling::Moved);
    let permit =
        || Permit { session: ses(1), subject: "blue".into(), trail: trail("remove_worktree", 3_000) };
    let wish = authorize(&me(), Act::Rule, &record, permit()).unwrap();
    assert_eq!(on.store().permit(wish).await.unwrap(), Permitting::Moved);
    assert_eq!(picture(&on).await, before);
    let (record, _) = on.store().session(ses(1)).await.unwrap().unwrap();
    let (acts_before, wish) =
        (acts(on.store()).await, authorize(&me(), Act::Rule, &record, permit()).unwrap());
    assert_eq!(on.store().permit(wish).await.unwrap(), Permitting::Done);
    assert_eq!(acts(on.store()).await, acts_before + 1, "what is done elsewhere leaves its trace here");
}

pub async fn a_title_and_the_archive_can_be_changed_one_by_one<F: Fixture>() {
    let on = peopled::<F>().await;
    open(on.store(), 1).await;
    let shown = async |title: Option<&str>, archived| {
        let (record, _) = on.store().session(ses(1)).await.unwrap().unwrap();
        let title = title.map(String::from);
        let wish = Retitle { session: ses(1), title, archived, trail: trail("retitle", 3_000) };
        let wish = authorize(&me(), Act::Rule, &record, wish).unwrap();
        assert_eq!(on.store().retitle(wish).await.unwrap(), Retitling::Done);
        let row = row(on.store(), ses(1)).await;
        (row.title, row.archived)
    };
    assert_eq!(shown(Some("new"), None).await, (Some("new".into()), false));
    assert_eq!(shown(None, Some(true)).await, (Some("new".into()), true));
    assert_eq!(shown(Some("newer"), Some(false)).await, (Some("newer".into()), false));
}

pub async fn there_is_one_audit_entry_per_command_or_refusal<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    say(store, &me(), conversation("a"), line(1).keyed("k", 1)).await;
    assert_eq!(acts(on.store()).await, 1);
    send(store, &me(), conversation("a"), line(2).keyed("k", 1)).await;
    assert_eq!(acts(on.store()).await, 1, "a repeated command is the same command");
    send(store, &me(), conversation("a"), line(2).keyed("k", 2)).await;
    assert_eq!(acts(on.store()).await, 1, "whoever refuses writes it down with `audit`");
    let refusal = |by: kernel::Principal, session: Option<SessionId>| AuditEntry {
        by: Some((by.org, by.person)),
        subject: session.map(|session| session.to_string()),
        trail: trail("say", 1),
        refused: "conflict",
    };
    store.audit(refusal(me(), None)).await.unwrap();
    store.audit(refusal(friend(), Some(ses(1)))).await.unwrap();
    assert_eq!(acts(on.store()).await, 3);
    ask(store, ses(1), 1, Request::End { session: ses(1) }).await;
    assert_eq!(acts(on.store()).await, 4);
    write(store, ses(1), vec![opened(), queued(1)]).await;
    store.wake(kernel::Moment(u64::MAX >> 1), ALL).await.unwrap();
    assert_eq!(acts(on.store()).await, 4, "what the keeper and the timer do is in the log");
    rebind(store, None, ses(1)).await;
    assert_eq!(acts(on.store()).await, 4, "refused");
    rebind(store, Some(ses(1)), ses(1)).await;
    assert_eq!(acts(on.store()).await, 5);
    say(store, &me(), To::New, line(3)).await;
    let on = on.reopen().await;
    assert_eq!(acts(on.store()).await, 6);
}
