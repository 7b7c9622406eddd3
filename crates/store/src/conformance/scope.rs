//! Promises when a session acts somewhere else: epochs, how messages are delivered, forks, answers of every form, and
//! who has which directory and worktree.

use super::Fixture;
use super::story::*;
use crate::*;
use kernel::{
    Answer, Answerer, ApprovalForm, ApprovalTerms, Claim, Delivery, Denied, Epoch, Fact, Grant, Grantee,
    HoldWhy, Moment, NewWorktree, Number, Origin, Outcome, Request, RuleId, Scope, StopWhy, To, Turn,
    Worktree,
};

fn steered(turn: u32, n: u32) -> Fact {
    Fact::Steered { message: msg(n), turn: Turn(turn) }
}

fn missed(n: u32) -> Fact {
    Fact::Missed { message: msg(n) }
}

fn moved(epoch: u32, scope: Scope) -> Fact {
    Fact::ScopeChanged { epoch: Epoch(epoch), scope }
}

fn within(name: &str) -> Scope {
    let (directory, home) = (format!("/srv/trees/{name}/sub").into(), "/srv/work".into());
    Scope {
        directory,
        worktree: Some(Worktree { name: name.into(), home, branch: Some(format!("homing/{name}")) }),
        ..scope()
    }
}

/// A session whose first message is being worked on, and to which these were said besides.
async fn running<F: Fixture>(others: &[u32]) -> F {
    let on = peopled::<F>().await;
    let store = on.store();
    open(store, 1).await;
    write(store, ses(1), vec![started(1, 1), attempt(1)]).await;
    for n in others {
        say(store, &me(), To::Session(ses(1)), line(*n)).await;
        write(store, ses(1), vec![queued(*n)]).await;
    }
    on
}

async fn order(store: &dyn Store) -> Vec<u32> {
    let queue = store.queue(ses(1)).await.unwrap();
    queue.into_iter().map(|row| (row.message.bits() >> 64) as u32).collect()
}

pub async fn what_was_said_into_a_turn_ends_with_it<F: Fixture>() {
    // The later id is said into the turn first, so that no order of ids can be taken for the order of what happened.
    let on = running::<F>(&[2, 3, 4]).await;
    let store = on.store();
    let first = write(store, ses(1), vec![steered(1, 4), steered(1, 2)]).await;
    assert_eq!(order(store).await, [1, 4, 2, 3]);
    let row = receipt(store, 2).await;
    assert_eq!((row.state, row.turn, row.first), (ReceiptState::Running, Some(Turn(1)), Some(first)));
    assert_eq!(row.last, None);
    assert_eq!(self::row(store, ses(1)).await.pending, 4);
    let last = write(store, ses(1), vec![answered(1)]).await;
    let over = receipt(store, 1).await;
    for n in [1, 2, 4] {
        let row = receipt(store, n).await;
        assert_eq!((row.state, row.turn, row.why), (ReceiptState::Answered, Some(Turn(1)), None), "{n}");
        assert_eq!((row.last, row.changed_at), (Some(last), over.changed_at), "{n}");
    }
    assert_eq!(receipt(store, 3).await.state, ReceiptState::Waiting);
    assert_eq!((order(store).await, self::row(store, ses(1)).await.pending), (vec![3], 1));
    let on = on.reopen().await;
    assert_eq!(receipt(on.store(), 2).await.state, ReceiptState::Answered);
}

pub async fn what_was_said_into_a_turn_shares_why_it_ended<F: Fixture>() {
    let on = running::<F>(&[2]).await;
    let store = on.store();
    let revoked = Fact::StopAsked { turn: Turn(1), why: StopWhy::Revoked };
    let stopped = Fact::TurnEnded { turn: Turn(1), outcome: Outcome::Stopped };
    write(store, ses(1), vec![steered(1, 2), revoked, stopped]).await;
    for n in [1, 2] {
        let row = receipt(store, n).await;
        assert_eq!((row.state, row.why), (ReceiptState::Stopped, Some("revoked")), "{n}");
    }
    assert_eq!(row(store, ses(1)).await.pending, 0);
}

pub async fn what_missed_its_turn_waits_before_all_others_and_has_none<F: Fixture>() {
    let on = running::<F>(&[2, 3, 4, 5]).await;
    let store = on.store();
    write(store, ses(1), vec![steered(1, 4), steered(1, 5)]).await;
    write(store, ses(1), vec![missed(4)]).await;
    assert_eq!(order(store).await, [1, 5, 4, 2, 3]);
    write(store, ses(1), vec![missed(5)]).await;
    assert_eq!(order(store).await, [1, 5, 4, 2, 3], "whoever misses it later waits before");
    for n in [4, 5] {
        let row = receipt(store, n).await;
        assert_eq!((row.state, row.why, row.turn), (ReceiptState::Waiting, None, None), "{n}");
        assert_eq!((row.first, row.last), (None, None), "{n}");
    }
    assert_eq!(self::row(store, ses(1)).await.pending, 5);
    // One that the keeper has not seen comes last all the same.
    say(store, &me(), To::Session(ses(1)), line(6)).await;
    assert_eq!(order(store).await, [1, 5, 4, 2, 3, 6]);
    write(store, ses(1), vec![queued(6), answered(1)]).await;
    assert_eq!(order(store).await, [5, 4, 2, 3, 6], "the turn ended without them");
    let on = on.reopen().await;
    let store = on.store();
    let order_now = [3, 5, 6, 2, 4].map(msg).to_vec();
    write(store, ses(1), vec![Fact::Reordered { order: order_now }]).await;
    assert_eq!(order(store).await, [3, 5, 6, 2, 4]);
    // Missed again, and again: first again.
    write(store, ses(1), vec![started(2, 3), attempt(2), steered(2, 2), missed(2), steered(2, 2)]).await;
    assert_eq!(receipt(store, 2).await.turn, Some(Turn(2)));
    write(store, ses(1), vec![missed(2), answered(2)]).await;
    assert_eq!(order(store).await, [2, 5, 6, 4]);
    assert_eq!(receipt(store, 2).await.state, ReceiptState::Waiting);
}

pub async fn a_scope_that_has_changed_is_in_every_row<F: Fixture>() {
    let on = peopled::<F>().await;
    open(on.store(), 1).await;
    assert_eq!(
        (row(on.store(), ses(1)).await.scope, row(on.store(), ses(1)).await.epoch),
        (scope(), Epoch(0))
    );
    let there = Scope { model: Some("other".into()), ..within("a") };
    write(on.store(), ses(1), vec![moved(1, there.clone())]).await;
    let on = on.reopen().await;
    let store = on.store();
    let (record, row) = store.session_seen(Seer::of(&me()), ses(1)).await.unwrap().unwrap();
    assert_eq!((&row.scope, row.epoch), (&there, Epoch(1)));
    assert_eq!((record.agent.as_str(), record.revision), ("scripted", 1), "the same agent, the same record");
    assert_eq!(list(store, &me(), Which::Open).await, [row]);
    assert_eq!(store.load(ses(1)).await.unwrap().unwrap().scope, there);
    // Two changes in one append: the last one counts.
    write(store, ses(1), vec![moved(2, scope()), moved(3, within("b"))]).await;
    let row = self::row(store, ses(1)).await;
    assert_eq!((row.scope, row.epoch), (within("b"), Epoch(3)));
}

pub async fn a_scope_that_was_left_is_still_known<F: Fixture>() {
    let on = peopled::<F>().await;
    say(on.store(), &me(), To::New, line(1)).await;
    assert_eq!(on.store().scope(ses(1), Epoch(0)).await.unwrap(), None, "it has not begun");
    write(on.store(), ses(1), vec![opened(), queued(1), moved(1, within("a")), moved(2, scope())]).await;
    let on = on.reopen().await;
    let known = async |session, epoch| on.store().scope(session, Epoch(epoch)).await.unwrap();
    assert_eq!(known(ses(1), 0).await, Some(scope()));
    assert_eq!(known(ses(1), 1).await, Some(within("a")));
    assert_eq!(known(ses(1), 2).await, Some(scope()));
    assert_eq!(known(ses(1), 3).await, None);
    assert_eq!(known(ses(2), 0).await, None, "there is no such session");
    write(on.store(), ses(1), vec![refused(1), ended()]).await;
    assert_eq!(known(ses(1), 1).await, Some(within("a")), "also when it is over");
}

pub async fn a_turn_is_known_by_what_it_began_with<F: Fixture>() {
    let on = running::<F>(&[2, 3]).await;
    let store = on.store();
    let began = async |turn| store.turn(ses(1), Turn(turn)).await.unwrap().map(|row| row.message);
    let last = async || store.last_turn(ses(1)).await.unwrap().map(|row| row.message);
    assert_eq!((began(1).await, began(2).await, last().await), (Some(msg(1)), None, None));
    write(store, ses(1), vec![answered(1), started(2, 3), attempt(2), steered(2, 2)]).await;
    assert_eq!((began(2).await, last().await), (Some(msg(3)), Some(msg(1))), "what runs is not over");
    write(store, ses(1), vec![answered(2)]).await;
    assert_eq!((began(2).await, last().await), (Some(msg(3)), Some(msg(3))));
    assert_eq!(store.last_turn(ses(9)).await.unwrap(), None);
}

pub async fn another_agent_is_another_record<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    say(store, &friend(), To::New, line(1)).await;
    write(store, ses(1), vec![opened(), queued_by(1, friend().person)]).await;
    let (to, person) = (Grantee::Person(me().person), friend().person);
    set(store, PeopleChange::Give { on: Resource::Agent("closed".into()), to, grant: Grant::Prompt }).await;
    let by = friend();
    let stop = |n| want(n, Request::Stop { message: msg(1) });
    assert!(store.may_say(ses(1), person).await.unwrap());
    write(store, ses(1), vec![moved(1, Scope { agent: "closed".into(), ..scope() })]).await;
    let (record, _) = store.session(ses(1)).await.unwrap().unwrap();
    assert_eq!((record.agent.as_str(), record.revision), ("closed", 2));
    let denied = no(Rejection::Denied(Denied::AgentNotYours));
    assert_eq!(ask_as(store, &by, stop(1)).await, denied, "what was seen before does not count");
    assert!(!store.may_say(ses(1), person).await.unwrap(), "this agent is not open to them");
    let append = Append { starts: Some((msg(1), person)), ..append_to(store, ses(1)).await };
    assert_eq!(store.append(append).await.unwrap(), Appending::Revoked(msg(1)));
    write(store, ses(1), vec![moved(2, scope())]).await;
    let (record, _) = store.session(ses(1)).await.unwrap().unwrap();
    assert_eq!((record.agent.as_str(), record.revision), ("scripted", 3), "back is a change, too");
    assert!(store.may_say(ses(1), person).await.unwrap());
    assert_eq!(ask_as(store, &by, stop(2)).await, crate::WriteOutcome::Done(waits(2, ses(1))));
}

pub async fn a_message_says_how_and_for_which_scope_it_was_written<F: Fixture>() {
    let on = peopled::<F>().await;
    open(on.store(), 1).await;
    write(on.store(), ses(1), vec![moved(1, within("a")), moved(2, scope())]).await;
    let wanted = [
        (2, Delivery::Queue, None),
        (3, Delivery::Interrupt, Some(Epoch(0))),
        (4, Delivery::Steer, Some(Epoch(1))),
    ];
    for (n, delivery, under) in wanted {
        say(on.store(), &me(), To::Session(ses(1)), IncomingMessage { delivery, under, ..line(n) }).await;
    }
    let on = on.reopen().await;
    let store = on.store();
    let inbox = store.inbox(ses(1), ALL).await.unwrap();
    let expected = wanted.map(|(n, delivery, under)| InboxItem::Say {
        message: msg(n),
        by: me().person,
        delivery,
        under,
    });
    assert_eq!(inbox.into_iter().map(|row| row.item).collect::<Vec<_>>(), expected);
    for (n, delivery, _) in wanted {
        let row = receipt(store, n).await;
        assert_eq!((row.delivery, row.epoch), (delivery, None), "no keeper has seen it");
    }
    let seen = |n, delivery, epoch| Fact::Queued { message: msg(n), by: me().person, delivery, epoch };
    let held = Fact::Held { message: msg(4), why: HoldWhy::OtherScope, expires: Moment(80_000) };
    let queued = wanted.map(|(n, delivery, under)| seen(n, delivery, under.unwrap_or(Epoch(2))));
    write(store, ses(1), queued.into_iter().chain([held]).collect()).await;
    let epochs = async |store: &dyn Store| {
        let mut epochs = vec![];
        for (n, _, _) in wanted {
            epochs.push(receipt(store, n).await.epoch);
        }
        epochs
    };
    assert_eq!(epochs(store).await, [Some(Epoch(2)), Some(Epoch(0)), Some(Epoch(1))]);
    assert_eq!(receipt(store, 4).await.why, Some("other_scope"));
    write(store, ses(1), vec![Fact::Released { message: msg(4), epoch: Epoch(2) }]).await;
    let on = on.reopen().await;
    assert_eq!(epochs(on.store()).await, [Some(Epoch(2)), Some(Epoch(0)), Some(Epoch(2))]);
    let row = receipt(on.store(), 4).await;
    assert_eq!((row.state, row.why, row.delivery), (ReceiptState::Waiting, None, Delivery::Steer));
}

pub async fn a_fork_knows_what_it_came_from<F: Fixture>() {
    let on = peopled::<F>().await;
    open(on.store(), 1).await;
    let origin = Some(Origin { session: ses(1), turn: Turn(3) });
    let (base, branch) = (Some("main".into()), None);
    let enter = Some(NewWorktree { name: "fork".into(), base, branch });
    let fork = |n| {
        // Its place was chosen by whoever made the origin.
        let chosen = Chosen { agent: scope().agent, directory: Some("/elsewhere".into()) };
        let session = NewSession { origin, enter: enter.clone(), chosen, ..fresh_session(n, None) };
        Create { trail: trail("fork", 1_100), ..create_of("fork", session) }
    };
    assert_eq!(create(on.store(), &friend(), fork(2)).await, not_found("session"));
    share(on.store(), ses(1), &friend(), Some(Grant::View)).await;
    let needs = no(Rejection::Denied(Denied::Needs(Grant::Prompt)));
    assert_eq!(create(on.store(), &friend(), fork(2)).await, needs, "a shell where the origin has one");
    share(on.store(), ses(1), &friend(), Some(Grant::Prompt)).await;
    let elsewhere = no(Rejection::Denied(Denied::DirectoryNotYours));
    assert_eq!(create(on.store(), &friend(), fork(2)).await, elsewhere);
    assert_eq!(create(on.store(), &me(), fork(2)).await, crate::WriteOutcome::Done(ses(2)));
    let on = on.reopen().await;
    let store = on.store();
    let loaded = store.load(ses(2)).await.unwrap().unwrap();
    assert_eq!((loaded.origin, loaded.scope.clone(), &loaded.enter), (origin, scope(), &enter));
    let begun = Fact::Opened { scope: loaded.scope, origin, enter };
    write(store, ses(2), vec![begun, moved(1, within("a"))]).await;
    assert_eq!(row(store, ses(2)).await.origin, origin);
    let listed = list(store, &me(), Which::Open).await;
    let origins: Vec<_> = listed.iter().map(|row| (row.session, row.origin)).collect();
    assert_eq!(origins, [(ses(2), origin), (ses(1), None)]);
    let loaded = store.load(ses(1)).await.unwrap().unwrap();
    assert_eq!((loaded.origin, loaded.enter), (None, None));
}

pub async fn every_answer_comes_back_as_it_was_given<F: Fixture>() {
    let on = peopled::<F>().await;
    open(on.store(), 1).await;
    write(on.store(), ses(1), vec![started(1, 1), attempt(1)]).await;
    let words = Answer::Said("\"yes\", but\nnot \u{1f512} \\ here".into());
    let answers = [Answer::Yes, Answer::No, Answer::Chose(0), Answer::Chose(65_535), words];
    let rule = Answerer::Rule(RuleId::from_bits(0xabc));
    let answerers = [Answerer::Person(me().person), rule, Answerer::Policy, Answerer::Nobody];
    let mut given = vec![];
    for (n, answer) in (1_u32..).zip(&answers) {
        for (m, by) in (0_u32..).zip(answerers) {
            given.push((apr(10 * n + m), answer.clone(), by));
        }
    }
    for (approval, answer, by) in given.clone() {
        let asked = Fact::Asked {
            approval,
            turn: Turn(1),
            until: Moment(60_000),
            terms: kernel::ApprovalTerms::default(),
        };
        write(on.store(), ses(1), vec![asked, Fact::Answered { approval, answer, by }]).await;
    }
    let on = on.reopen().await;
    for (approval, answer, by) in given {
        let (_, row) = on.store().approval(approval).await.unwrap().unwrap();
        assert_eq!(row.state, ApprovalState::Answered { answer, by });
        assert!(row.settled_at.is_some_and(|settled| settled >= row.asked_at));
    }
    assert_eq!(on.store().approvals(ApprovalsQuery::open(Seer::of(&me()), ALL)).await.unwrap(), []);
}

pub async fn what_a_question_is_judged_by_is_kept_with_it<F: Fixture>() {
    let on = peopled::<F>().await;
    open(on.store(), 1).await;
    write(on.store(), ses(1), vec![started(1, 1), attempt(1)]).await;
    let only = |who| Some((RuleId::from_bits(0xabc), who));
    let terms = [
        ApprovalTerms::default(),
        ApprovalTerms { form: ApprovalForm::Choice { options: 65_535 }, only: None },
        ApprovalTerms { form: ApprovalForm::Words, only: only(Grantee::Person(me().person)) },
        ApprovalTerms { form: ApprovalForm::Permission, only: only(Grantee::Org) },
    ];
    for (n, terms) in (1_u32..).zip(terms) {
        let asked = Fact::Asked { approval: apr(n), turn: Turn(1), until: Moment(60_000), terms };
        write(on.store(), ses(1), vec![asked]).await;
    }
    let on = on.reopen().await;
    for (n, terms) in (1_u32..).zip(terms) {
        let (_, row) = on.store().approval(apr(n)).await.unwrap().unwrap();
        assert_eq!((row.terms, row.words, row.settled_at), (terms, None, None));
    }
    assert_eq!(
        on.store().approvals(ApprovalsQuery::open(Seer::of(&me()), ALL)).await.unwrap().len(),
        terms.len()
    );
}

/// Not by where they stand in the log, nor by what another session says of it.
pub async fn what_an_approval_says_is_kept_under_its_id<F: Fixture>() {
    let on = peopled::<F>().await;
    let says = |n: u32, detail: &str| format!(r#"{{"approval":"{}","detail":"{detail}"}}"#, apr(n));
    let asked = |n| {
        let (turn, until, terms) = (Turn(1), Moment(60_000), ApprovalTerms::default());
        Fact::Asked { approval: apr(n), turn, until, terms }
    };
    let question = |append, n, detail: &str| told(append, 1, "question", says(n, detail).as_bytes());
    open(on.store(), 1).await;
    write(on.store(), ses(1), vec![started(1, 1), attempt(1)]).await;
    let both = question(question(append_to(on.store(), ses(1)).await, 1, "one"), 2, "two");
    let notice = told(both, 1, "notice", says(3, "is no question").as_bytes());
    written(on.store(), with(notice, vec![asked(2), asked(1), asked(3)])).await;
    open(on.store(), 2).await;
    let lie = question(append_to(on.store(), ses(2)).await, 1, "a lie");
    written(on.store(), told(lie, 1, "question", b"no object")).await;
    let on = on.reopen().await;
    for (n, words) in [(1, Some(says(1, "one"))), (2, Some(says(2, "two"))), (3, None)] {
        let (_, row) = on.store().approval(apr(n)).await.unwrap().unwrap();
        assert_eq!(row.words, words.map(bytes::Bytes::from));
    }
    let listed = on.store().approvals(ApprovalsQuery::open(Seer::of(&me()), ALL)).await.unwrap();
    let listed: Vec<_> = listed.into_iter().map(|row| (row.approval, row.words.is_some())).collect();
    assert_eq!(listed, [(apr(2), true), (apr(1), true), (apr(3), false)], "the oldest first");
}

pub async fn whether_somebody_attends_is_kept_with_a_message<F: Fixture>() {
    let on = peopled::<F>().await;
    for (n, unattended) in [(1, false), (2, true)] {
        say(on.store(), &me(), To::New, IncomingMessage { unattended, ..line(n) }).await;
    }
    let on = on.reopen().await;
    for (n, unattended) in [(1, false), (2, true)] {
        let (_, row) = on.store().receipt(msg(n)).await.unwrap().unwrap();
        assert_eq!(row.unattended, unattended);
    }
}

pub async fn whoever_holds_a_claim_is_known<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    open(store, 1).await;
    say(store, &stranger(), To::New, line(2)).await;
    let claim = || Claim::directory(&"/srv/work".into());
    assert_eq!(store.holder(claim()).await.unwrap(), None);
    let wants = async |n| Append { claims: vec![(claim(), 1)], ..drain(store, ses(n)).await };
    written(store, with(wants(2).await, vec![opened()])).await;
    assert_eq!(store.holder(claim()).await.unwrap(), Some((ses(2), stranger().org)));
    assert_eq!(store.append(wants(1).await).await.unwrap(), Appending::Claimed(claim()));
    assert_eq!(store.holder(Claim::directory(&"/srv/wor".into())).await.unwrap(), None);
    let on = on.reopen().await;
    let store = on.store();
    assert_eq!(store.holder(claim()).await.unwrap(), Some((ses(2), stranger().org)));
    write(store, ses(2), vec![ended()]).await;
    assert_eq!(store.holder(claim()).await.unwrap(), None);
}

pub async fn worktrees_are_in_use_until_they_are_left<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    for n in [1, 2] {
        open(store, n).await;
    }
    say(store, &stranger(), To::New, line(3)).await;
    let create = Create {
        session: NewSession { scope: within("made"), ..fresh_session(4, None) },
        words_bytes_max: u64::MAX,
        past: None,
        subject: None,
        key: None,
        trail: trail("create", 1_100),
        schemes: SCHEMES,
    };
    store.create(arc(&me()), create).await.unwrap();
    let used = async |store: &dyn Store| {
        let rows = store.worktrees_in_use().await.unwrap();
        rows.into_iter().map(|row| (row.session, row.name)).collect::<Vec<_>>()
    };
    assert_eq!(used(store).await, [(ses(4), "made".to_owned())], "also before any keeper has seen it");
    write(store, ses(3), vec![opened(), moved(1, within("theirs"))]).await;
    write(store, ses(1), vec![moved(1, within("a"))]).await;
    let on = on.reopen().await;
    let store = on.store();
    let rows = store.worktrees_in_use().await.unwrap();
    let expected = WorktreeRow {
        org: me().org,
        session: ses(1),
        name: "a".into(),
        directory: "/srv/trees/a/sub".into(),
        home: "/srv/work".into(),
    };
    assert_eq!(rows[0], expected);
    let named = |n, name: &str| (ses(n), name.to_owned());
    assert_eq!(used(store).await, [named(1, "a"), named(3, "theirs"), named(4, "made")]);
    assert_eq!(rows[1].org, stranger().org);
    write(store, ses(1), vec![moved(2, scope())]).await;
    write(store, ses(2), vec![moved(1, within("a"))]).await;
    assert_eq!(used(store).await, [named(2, "a"), named(3, "theirs"), named(4, "made")]);
    write(store, ses(3), vec![ended()]).await;
    assert_eq!(used(store).await, [named(2, "a"), named(4, "made")], "whoever is over uses nothing");
    assert_eq!(row(store, ses(3)).await.at, Number(3));
}
