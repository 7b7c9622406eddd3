//! Promises of `ask`, `verdict`, `rebind`, `retitle` and `audit`.

use super::Fixture;
use super::story::*;
use crate::*;
use bytes::Bytes;
use kernel::{
    Answer, ApprovalTerms, Change as ScopeChange, Denied, EndWhy, Fact, Grant, Grantee, Moment, Refusal,
    Request, Role, RuleId, SessionId, Setting, To, Turn,
};

pub async fn a_wish_waits_in_the_inbox_until_the_keeper_has_judged_it<F: Fixture>() {
    let on = peopled::<F>().await;
    open(on.store(), 1).await;
    let wishes = [
        Request::Withdraw { message: msg(1) },
        Request::Hold { message: msg(1) },
        Request::Release { message: msg(1), there: false },
        Request::Steer { message: msg(1) },
        Request::Interrupt { message: msg(1) },
        Request::Reorder { session: ses(1), order: vec![msg(2), msg(1)] },
        Request::Stop { message: msg(1) },
        Request::KeepScope { session: ses(1) },
        Request::End { session: ses(1) },
    ];
    for (n, wish) in (1..).zip(&wishes) {
        assert_eq!(ask(on.store(), n, wish.clone()).await, WriteOutcome::Done(waits(n, ses(1))));
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
    let asking = ask_with(store, n, request, Resolved::default(), Some(words)).await;
    assert_eq!(asking, WriteOutcome::Done(waits(n, ses(1))));
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

pub async fn a_wish_asked_again_under_its_key_is_the_same_wish<F: Fixture>() {
    let on = peopled::<F>().await;
    open(on.store(), 1).await;
    let under = |n, body| NewRequest {
        key: Some(key("ask", "k", body)),
        ..want(n, Request::KeepScope { session: ses(1) })
    };
    let first = waits(1, ses(1));
    assert_eq!(ask_as(on.store(), &me(), under(1, 7)).await, WriteOutcome::Done(first));
    let before = picture(&on).await;
    assert_eq!(ask_as(on.store(), &me(), under(2, 7)).await, WriteOutcome::Repeated(first));
    assert_eq!(ask_as(on.store(), &me(), under(2, 8)).await, WriteOutcome::Conflict);
    assert_eq!(picture(&on).await, before);
    // Even when the session is over and the record another.
    share(on.store(), ses(1), &friend(), Some(Grant::View)).await;
    write(on.store(), ses(1), vec![refused(1), ended()]).await;
    let on = on.reopen().await;
    assert_eq!(ask_as(on.store(), &me(), under(2, 7)).await, WriteOutcome::Repeated(first));
    assert_eq!(ask_as(on.store(), &me(), under(2, 8)).await, WriteOutcome::Conflict);
}

pub async fn a_session_that_has_ended_can_be_asked_for_nothing<F: Fixture>() {
    let on = peopled::<F>().await;
    open(on.store(), 1).await;
    write(on.store(), ses(1), vec![refused(1), Fact::Ended { why: EndWhy::Gone }]).await;
    let before = picture(&on).await;
    assert_eq!(
        ask(on.store(), 1, Request::KeepScope { session: ses(1) }).await,
        is_ended(ses(1), EndWhy::Gone)
    );
    // That it is over, or that nothing runs in it, is so.
    for wish in [Request::End { session: ses(1) }, Request::Stop { message: msg(1) }] {
        assert_eq!(ask(on.store(), 1, wish).await, WriteOutcome::Done(Asked::Over));
    }
    assert_eq!(picture(&on).await, before);
}

pub async fn a_wish_whose_right_was_taken_away_is_refused<F: Fixture>() {
    let on = peopled::<F>().await;
    open(on.store(), 1).await;
    share(on.store(), ses(1), &friend(), Some(Grant::Prompt)).await;
    let late = want(1, Request::Stop { message: msg(1) });
    share(on.store(), ses(1), &friend(), Some(Grant::View)).await;
    let needs = Rejection::Denied(Denied::Needs(Grant::Prompt));
    assert_eq!(ask_as(on.store(), &friend(), late.clone()).await, no(needs));
    share(on.store(), ses(1), &friend(), None).await;
    let before = picture(&on).await;
    assert_eq!(ask_as(on.store(), &friend(), late).await, not_found("message"));
    assert_eq!(picture(&on).await, before);
}

/// The subject of a request is looked up in the store: its session, and who said the message.
pub async fn who_said_a_message_has_a_say_in_who_may_change_it<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    open(store, 1).await;
    share(store, ses(1), &friend(), Some(Grant::Prompt)).await;
    say(store, &friend(), To::Session(ses(1)), line(2)).await;
    let manage = no(Rejection::Denied(Denied::Needs(Grant::Manage)));
    let words = no(Rejection::Denied(Denied::NotYourWords));
    let hold = |n, message| want(n, Request::Hold { message });
    let edit = |n, message| want(n, Request::Edit { message, revision: 0 });
    let done = |n| WriteOutcome::Done(waits(n, ses(1)));
    assert_eq!(ask_as(store, &friend(), hold(1, msg(2))).await, done(1));
    assert_eq!(ask_as(store, &friend(), hold(2, msg(1))).await, manage);
    assert_eq!(
        ask_as(store, &friend(), want(2, Request::Release { message: msg(2), there: true })).await,
        manage
    );
    assert_eq!(ask_as(store, &friend(), edit(2, msg(1))).await, words);
    assert_eq!(ask_as(store, &me(), edit(2, msg(2))).await, words, "not even whoever manages it");
    assert_eq!(ask_as(store, &friend(), edit(2, msg(2))).await, done(2));
    assert_eq!(ask_as(store, &me(), hold(3, msg(2))).await, done(3));
    let answer = Request::Answer { approval: apr(9), answer: Answer::No, remember: None };
    for (request, what) in [
        (Request::Stop { message: msg(9) }, "message"),
        (answer, "approval"),
        (Request::End { session: ses(9) }, "session"),
    ] {
        assert_eq!(ask(store, 4, request).await, not_found(what));
    }
    assert_eq!(ask_as(store, &stranger(), hold(4, msg(2))).await, not_found("message"));
    let end = want(4, Request::End { session: ses(1) });
    assert_eq!(ask_as(store, &friend(), end).await, manage);
}

/// A session does not come to act where, with whom, or by which rule whoever asks could not have made it so.
pub async fn a_request_needs_what_it_brings_about<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    open(store, 1).await;
    share(store, ses(1), &friend(), Some(Grant::Manage)).await;
    let give = PeopleChange::Give {
        on: Resource::Agent("closed".into()),
        to: kernel::Grantee::Person(me().person),
        grant: Grant::Prompt,
    };
    set(store, give).await;
    let terms = kernel::ApprovalTerms::default();
    let asks = Fact::Asked { approval: apr(1), turn: Turn(1), until: Moment(60_000), terms };
    write(store, ses(1), vec![started(1, 1), attempt(1), asks]).await;
    let change = |change| Request::ChangeScope { session: ses(1), change, now: false };
    let (model, mode) = (Setting::Keep, Setting::Keep);
    let agent = ScopeChange::Set { agent: Some("closed".into()), model, mode };
    let rule = |session| RememberedRule {
        rule: RuleId::from_bits(1),
        agent: None,
        tool: "shell".into(),
        directory: None,
        session,
    };
    let answer = |n, session| {
        let request = Request::Answer { approval: apr(1), answer: Answer::Yes, remember: None };
        let resolved = Resolved { written_for: None, rule: Some(rule(session)) };
        NewRequest { resolved, ..want(n, request) }
    };
    let denied = [
        (want(1, change(agent)), Denied::AgentNotYours),
        (want(2, change(ScopeChange::Relink { directory: "/srv/other".into() })), Denied::DirectoryNotYours),
        (answer(3, None), Denied::NeedsRole(Role::Admin)),
    ];
    for (new, denied) in denied.clone() {
        assert_eq!(ask_as(store, &friend(), new).await, no(Rejection::Denied(denied)));
    }
    for (n, (new, _)) in (1..).zip(denied) {
        assert_eq!(ask_as(store, &me(), new).await, WriteOutcome::Done(waits(n, ses(1))));
    }
    assert_eq!(ask_as(store, &friend(), answer(4, Some(ses(1)))).await, WriteOutcome::Done(waits(4, ses(1))));
    share(store, ses(1), &friend(), Some(Grant::Prompt)).await;
    let prompts = ask_as(store, &friend(), answer(5, Some(ses(1)))).await;
    assert_eq!(prompts, no(Rejection::Denied(Denied::Needs(Grant::Manage))));
}

/// A question that a rule leaves to some people is theirs while the answer is written, not while somebody looked.
pub async fn only_whom_a_rule_names_answers<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    open(store, 1).await;
    share(store, ses(1), &friend(), Some(Grant::Prompt)).await;
    set(store, PeopleChange::MakeGroup { group: grp(1), name: "ours".into() }).await;
    set(store, PeopleChange::Join { group: grp(1), person: friend().person }).await;
    let (rule, whom) = (RuleId::from_bits(1), Grantee::Group(grp(1)));
    let terms = ApprovalTerms { only: Some((rule, whom)), ..ApprovalTerms::default() };
    let asks = Fact::Asked { approval: apr(1), turn: Turn(1), until: Moment(60_000), terms };
    write(store, ses(1), vec![started(1, 1), attempt(1), asks]).await;
    let answer = |n, answer| want(n, Request::Answer { approval: apr(1), answer, remember: None });
    let done = |n| WriteOutcome::Done(waits(n, ses(1)));
    let not_theirs = no(Rejection::NotYoursToAnswer { rule, whom });
    let member = kernel::Principal { groups: vec![grp(1)], ..now(store, &friend()).await };
    assert_eq!(ask_as(store, &member, answer(1, Answer::Yes)).await, done(1));
    assert_eq!(ask_as(store, &me(), answer(2, Answer::Yes)).await, not_theirs);
    assert_eq!(ask_as(store, &me(), answer(2, Answer::No)).await, done(2), "who manages it can say no");
    set(store, PeopleChange::Leave { group: grp(1), person: friend().person }).await;
    for words in [Answer::Yes, Answer::No] {
        assert_eq!(
            ask_as(store, &member, answer(3, words)).await,
            not_theirs,
            "they were one when they looked"
        );
    }
}

async fn rebind(store: &dyn Store, to: SessionId) -> WriteOutcome<(), Rejection> {
    rebind_as(store, &me(), to, None).await
}

async fn rebind_as(
    store: &dyn Store,
    by: &kernel::Principal,
    to: SessionId,
    key: Option<Key>,
) -> WriteOutcome<(), Rejection> {
    let (address, trail) = (address("a"), trail("rebind", 3_000));
    let new = Rebind { address, to, key, trail, schemes: SCHEMES };
    store.rebind(arc(by), new).await.unwrap()
}

pub async fn a_conversation_can_be_moved_to_another_open_session<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    let found = async || bound(store, &me(), "a").await;
    say(store, &me(), conversation("a"), line(1)).await;
    open(store, 2).await;
    assert_eq!(rebind(store, ses(2)).await, WriteOutcome::Done(()));
    assert_eq!(found().await, Some(ses(2)));
    let later = say(store, &me(), conversation("a"), line(3)).await;
    assert_eq!(later.session, ses(2), "what comes later goes to where it is by now");
    assert_eq!(rebind(store, ses(2)).await, WriteOutcome::Done(()), "it is so already");
    // The end of the session that it left does not touch it; the end of the one that it has does.
    write(store, ses(1), vec![opened(), refused(1), ended()]).await;
    assert_eq!(found().await, Some(ses(2)));
    assert_eq!(rebind(store, ses(1)).await, is_ended(ses(1), EndWhy::Asked));
    assert_eq!(rebind(store, ses(9)).await, not_found("session"));
    write(store, ses(2), vec![refused(2), refused(3), ended()]).await;
    assert_eq!(found().await, None);
    open(store, 4).await;
    assert_eq!(rebind(store, ses(4)).await, WriteOutcome::Done(()));
    assert_eq!(found().await, Some(ses(4)));
}

pub async fn a_repeated_rebinding_changes_nothing<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    for n in 1..=2 {
        open(store, n).await;
    }
    let keyed = |body| Some(key("rebind", "k", body));
    assert_eq!(rebind_as(store, &me(), ses(1), keyed(1)).await, WriteOutcome::Done(()));
    assert_eq!(rebind(store, ses(2)).await, WriteOutcome::Done(()));
    let on = on.reopen().await;
    let before = picture(&on).await;
    let again = async |to, body| rebind_as(on.store(), &me(), to, keyed(body)).await;
    assert_eq!(again(ses(1), 1).await, WriteOutcome::Repeated(()), "somebody has moved it on since");
    assert_eq!(again(ses(1), 2).await, WriteOutcome::Conflict);
    assert_eq!(picture(&on).await, before);
    write(on.store(), ses(1), vec![refused(1), ended()]).await;
    assert_eq!(again(ses(1), 1).await, WriteOutcome::Repeated(()), "whatever has become of the session");
}

/// To take a conversation away from a session needs the right to rule it, and so does to give it to one.
pub async fn small_changes_need_the_right_to_rule<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    say(store, &me(), conversation("a"), line(1)).await;
    say(store, &friend(), To::New, line(2)).await;
    let before = picture(&on).await;
    let title =
        |n| Retitle { session: ses(n), title: None, archived: Some(true), trail: trail("retitle", 3_000) };
    let retitle = async |n| store.retitle(arc(&friend()), title(n)).await.unwrap();
    assert_eq!(rebind_as(store, &friend(), ses(2), None).await, not_found("session"), "it is bound to mine");
    assert_eq!(retitle(1).await, not_found("session"));
    share(store, ses(1), &friend(), Some(Grant::Prompt)).await;
    let needs = || no(Rejection::Denied(Denied::Needs(Grant::Manage)));
    assert_eq!(rebind_as(store, &friend(), ses(2), None).await, needs());
    assert_eq!(retitle(1).await, needs());
    assert_eq!(picture(&on).await.lines().next(), before.lines().next(), "nothing was done");
    assert_eq!(retitle(9).await, not_found("session"));
    share(store, ses(1), &friend(), Some(Grant::Manage)).await;
    assert_eq!(rebind_as(store, &friend(), ses(2), None).await, WriteOutcome::Done(()));
}

pub async fn a_title_and_the_archive_can_be_changed_one_by_one<F: Fixture>() {
    let on = peopled::<F>().await;
    open(on.store(), 1).await;
    let shown = async |title: Option<&str>, archived| {
        let title = title.map(String::from);
        let new = Retitle { session: ses(1), title, archived, trail: trail("retitle", 3_000) };
        assert_eq!(on.store().retitle(arc(&me()), new).await.unwrap(), WriteOutcome::Done(()));
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
    assert_eq!(acts(on.store()).await, 2, "a refusal brings its own");
    let refusal = |by: kernel::Principal, session: Option<SessionId>| AuditEntry {
        by: Some((by.org, by.person)),
        subject: session.map(|session| session.to_string()),
        trail: trail("say", 1),
        refused: "conflict",
    };
    store.audit(refusal(me(), None)).await.unwrap();
    store.audit(refusal(friend(), Some(ses(1)))).await.unwrap();
    assert_eq!(
        acts(on.store()).await,
        4,
        "what was refused before it came to the store is written by `audit`"
    );
    ask(store, 1, Request::End { session: ses(1) }).await;
    assert_eq!(acts(on.store()).await, 5);
    write(store, ses(1), vec![opened(), queued(1)]).await;
    store.wake(kernel::Moment(u64::MAX >> 1), ALL).await.unwrap();
    assert_eq!(acts(on.store()).await, 5, "what the keeper and the timer do is in the log");
    rebind(store, ses(9)).await;
    assert_eq!(acts(on.store()).await, 6, "refused");
    rebind(store, ses(1)).await;
    assert_eq!(acts(on.store()).await, 7);
    say(store, &me(), To::New, line(3)).await;
    let on = on.reopen().await;
    assert_eq!(acts(on.store()).await, 8);
}
