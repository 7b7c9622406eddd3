//! The stored form of things: pinned, because it outlives the version that wrote it, and read back without loss.

use expect_test::expect;
use kernel::*;
use proptest::prelude::*;
use store::{
    Cause, OutgoingKind, OutgoingState, Purpose, ReceiptState, RememberedRule, Resolved, StoreError, Verdict,
    project, record,
};

fn msg(n: u128) -> MessageId {
    MessageId::from_bits(n)
}

fn usr(n: u128) -> PersonId {
    PersonId::from_bits(n)
}

fn scope(model: Option<&str>) -> Scope {
    let (directory, agent) = ("/srv/\u{fc}".into(), "scripted".into());
    Scope { directory, agent, model: model.map(String::from), mode: None, worktree: None }
}

fn tree() -> Scope {
    let worktree = Some(Worktree { name: "a".into(), home: "/srv".into(), branch: None });
    Scope { worktree, ..scope(None) }
}

fn changes() -> Vec<Change> {
    let (base, branch) = (Some("main".into()), Some("b".into()));
    vec![
        Change::Enter(NewWorktree { name: "a".into(), base: None, branch: None }),
        Change::Enter(NewWorktree { name: "a".into(), base, branch }),
        Change::Exit,
        Change::Set { agent: None, model: Setting::Keep, mode: Setting::Default },
        Change::Set { agent: Some("b".into()), model: Setting::To("m".into()), mode: Setting::Keep },
        Change::Relink { directory: "/b".into() },
        Change::Back { scope: tree(), message: msg(1) },
    ]
}

fn one_of_each() -> Vec<Fact> {
    let fence = Fence { term: Term(7), epoch: Epoch(1), turn: Turn(2), attempt: Attempt(3) };
    let (turn, attempt, until) = (Turn(2), Attempt(3), Moment(1_700_000_000_000));
    let approval = ApprovalId::from_bits(5);
    let mut facts = vec![
        Fact::Opened { scope: scope(None), origin: None, enter: None },
        Fact::Opened { scope: scope(Some("m")), origin: None, enter: None },
        queued(Delivery::Queue, 0),
        Fact::Edited { message: msg(1), revision: 4 },
        Fact::Withdrawn { message: msg(1), by: usr(2) },
        Fact::Held { message: msg(1), why: HoldWhy::Asked, expires: until },
        Fact::Held { message: msg(1), why: HoldWhy::AfterFailure, expires: until },
        Fact::Released { message: msg(1), epoch: Epoch(0) },
        Fact::Reordered { order: vec![msg(2), msg(1)] },
        Fact::MessageRefused { message: msg(1), why: RefusedWhy::SessionEnded },
        Fact::MessageRefused { message: msg(1), why: RefusedWhy::Expired },
        Fact::MessageRefused { message: msg(1), why: RefusedWhy::NotAllowed },
        Fact::Crowded { until },
        Fact::TurnStarted { turn, message: msg(1) },
        Fact::AttemptStarted { fence, until },
        Fact::Confirmed { native: Native::new("a \"name\"").at("a \"place\""), epoch: Epoch(1) },
        Fact::Handed { turn, attempt },
        Fact::AttemptFailed { turn, attempt, failure: Failure::Busy, again_at: until },
        Fact::AttemptFailed { turn, attempt, failure: Failure::Gone, again_at: until },
        Fact::Asked { approval, turn, until, terms: ApprovalTerms::default() },
        Fact::Answered { approval, answer: Answer::Yes, by: Answerer::Person(usr(2)) },
        Fact::Answered { approval, answer: Answer::No, by: Answerer::Nobody },
        Fact::Lapsed { approval },
        Fact::StopAsked { turn, why: StopWhy::Asked(usr(2)) },
        Fact::StopAsked { turn, why: StopWhy::TimeLimit },
        Fact::StopAsked { turn, why: StopWhy::Ending },
        Fact::StopAsked { turn, why: StopWhy::Revoked },
        Fact::StopAsked { turn, why: StopWhy::HandedOver },
        Fact::TurnEnded { turn, outcome: Outcome::Answered },
        Fact::TurnEnded { turn, outcome: Outcome::Stopped },
        Fact::TurnEnded { turn, outcome: Outcome::Interrupted },
        Fact::TurnEnded { turn, outcome: Outcome::TimedOut },
        Fact::EndAsked { by: usr(2) },
        Fact::Ended { why: EndWhy::Asked },
        Fact::Ended { why: EndWhy::Gone },
    ];
    facts.extend(Failure::ALL.map(|failure| Fact::TurnEnded { turn, outcome: Outcome::Failed(failure) }));
    facts.extend(KINDS.map(|kind| Fact::Stale { fence, kind }));
    facts.extend(of_scopes(approval, turn));
    facts
}

fn queued(delivery: Delivery, epoch: u32) -> Fact {
    Fact::Queued { message: msg(1), by: usr(2), delivery, epoch: Epoch(epoch) }
}

/// Every form of a question but the plain one, and everybody to whom it can be left.
fn terms() -> [ApprovalTerms; 5] {
    let only = |who| Some((RuleId::from_bits(8), who));
    [
        ApprovalTerms { form: ApprovalForm::Choice { options: 3 }, only: None },
        ApprovalTerms { form: ApprovalForm::Words, only: None },
        ApprovalTerms { form: ApprovalForm::Permission, only: only(Grantee::Org) },
        ApprovalTerms { form: ApprovalForm::Permission, only: only(Grantee::Person(usr(2))) },
        ApprovalTerms { form: ApprovalForm::Words, only: only(Grantee::Group(GroupId::from_bits(4))) },
    ]
}

#[test]
fn what_a_question_is_judged_by_is_read_back() {
    assert_eq!(record::encode_terms(&ApprovalTerms::default()), None);
    assert_eq!(record::decode_terms(None), Ok(ApprovalTerms::default()));
    for terms in terms() {
        let stored = record::encode_terms(&terms).unwrap();
        assert_eq!(record::decode_terms(Some(&stored)), Ok(terms));
    }
}

/// Facts that came with scopes that change.
fn of_scopes(approval: ApprovalId, turn: Turn) -> Vec<Fact> {
    let origin = Some(Origin { session: SessionId::from_bits(9), turn });
    let (by, epoch, until) = (usr(2), Epoch(1), Moment(1_700_000_000_000));
    let errand = Errand { epoch, number: 4 };
    let mut facts = vec![
        Fact::Opened { scope: tree(), origin, enter: None },
        queued(Delivery::Interrupt, 0),
        queued(Delivery::Steer, 3),
        Fact::Held { message: msg(1), why: HoldWhy::OtherScope, expires: until },
        Fact::Released { message: msg(1), epoch },
        Fact::Steered { message: msg(1), turn },
        Fact::Missed { message: msg(1) },
        Fact::Answered { approval, answer: Answer::Chose(3), by: Answerer::Rule(RuleId::from_bits(8)) },
        Fact::Answered { approval, answer: Answer::Said("a \"word\"".into()), by: Answerer::Policy },
        Fact::ScopeKept { why: KeptWhy::Asked(by) },
        Fact::ScopeKept { why: KeptWhy::Failed },
        Fact::ScopeKept { why: KeptWhy::Moot },
        Fact::ScopeChanged { epoch, scope: tree() },
        Fact::ErrandStarted { errand, what: What::Undo { turn, files: UndoFiles::All }, by },
        Fact::ErrandFailed { errand },
        Fact::Undone { turn },
        Fact::Redone { turn },
        Fact::ErrandStarted { errand, what: What::Redo { turn }, by },
    ];
    facts.extend(terms().map(|terms| Fact::Asked { approval, turn, until, terms }));
    let asked = |(after, change)| Fact::ChangeAsked { change, after, by };
    facts.extend([None, Some(msg(3))].into_iter().cycle().zip(changes()).map(asked));
    for change in changes() {
        if let Change::Enter(wanted) = change {
            facts.push(Fact::ErrandStarted { errand, what: What::Enter(wanted), by });
        }
    }
    let enter = Some(NewWorktree { name: "a".into(), base: None, branch: None });
    facts.push(Fact::Opened { scope: scope(None), origin: None, enter });
    let branched = tree().worktree.map(|tree| Worktree { branch: Some("homing/a".into()), ..tree });
    facts.push(Fact::ScopeChanged { epoch, scope: Scope { worktree: branched, ..tree() } });
    facts.extend(ErrandKind::ALL.map(|kind| Fact::Learned { kind, epoch }));
    facts.extend(ErrandKind::ALL.map(|kind| Fact::StaleErrand { errand, kind }));
    facts
}

const KINDS: [ReportKind; 9] = [
    ReportKind::Ready,
    ReportKind::Said,
    ReportKind::Asked,
    ReportKind::Withdrawn,
    ReportKind::Finished,
    ReportKind::Failed,
    ReportKind::Stopped,
    ReportKind::Lost,
    ReportKind::Missed,
];

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

/// If this test fails, files written by earlier versions can no longer be read. Add a form; do not change one.
#[test]
fn the_stored_form_of_every_fact_is_pinned() {
    let stored: Vec<_> = one_of_each().iter().map(|fact| text(record::encode_fact(fact))).collect();
    expect![[r#"
        {"opened":{"scope":{"directory":"/srv/ü","agent":"scripted"}}}
        {"opened":{"scope":{"directory":"/srv/ü","agent":"scripted","model":"m"}}}
        {"queued":{"message":"msg_00000000000000000000000001","by":"usr_00000000000000000000000002"}}
        {"edited":{"message":"msg_00000000000000000000000001","revision":4}}
        {"withdrawn":{"message":"msg_00000000000000000000000001","by":"usr_00000000000000000000000002"}}
        {"held":{"message":"msg_00000000000000000000000001","why":"asked","expires":1700000000000}}
        {"held":{"message":"msg_00000000000000000000000001","why":"after_failure","expires":1700000000000}}
        {"released":{"message":"msg_00000000000000000000000001"}}
        {"reordered":{"order":["msg_00000000000000000000000002","msg_00000000000000000000000001"]}}
        {"message_refused":{"message":"msg_00000000000000000000000001","why":"session_ended"}}
        {"message_refused":{"message":"msg_00000000000000000000000001","why":"expired"}}
        {"message_refused":{"message":"msg_00000000000000000000000001","why":"not_allowed"}}
        {"crowded":{"until":1700000000000}}
        {"turn_started":{"turn":2,"message":"msg_00000000000000000000000001"}}
        {"attempt_started":{"fence":{"term":7,"epoch":1,"turn":2,"attempt":3},"until":1700000000000}}
        {"confirmed":{"native":"a \"name\"","place":"a \"place\"","epoch":1}}
        {"handed":{"turn":2,"attempt":3}}
        {"attempt_failed":{"turn":2,"attempt":3,"failure":"busy","again_at":1700000000000}}
        {"attempt_failed":{"turn":2,"attempt":3,"failure":"gone","again_at":1700000000000}}
        {"asked":{"approval":"apr_00000000000000000000000005","turn":2,"until":1700000000000}}
        {"answered":{"approval":"apr_00000000000000000000000005","answer":"yes","by":"usr_00000000000000000000000002"}}
        {"answered":{"approval":"apr_00000000000000000000000005","answer":"no"}}
        {"lapsed":{"approval":"apr_00000000000000000000000005"}}
        {"stop_asked":{"turn":2,"why":{"asked":{"by":"usr_00000000000000000000000002"}}}}
        {"stop_asked":{"turn":2,"why":{"time_limit":{}}}}
        {"stop_asked":{"turn":2,"why":{"ending":{}}}}
        {"stop_asked":{"turn":2,"why":{"revoked":{}}}}
        {"stop_asked":{"turn":2,"why":{"handed_over":{}}}}
        {"turn_ended":{"turn":2,"outcome":{"answered":{}}}}
        {"turn_ended":{"turn":2,"outcome":{"stopped":{}}}}
        {"turn_ended":{"turn":2,"outcome":{"interrupted":{}}}}
        {"turn_ended":{"turn":2,"outcome":{"timed_out":{}}}}
        {"end_asked":{"by":"usr_00000000000000000000000002"}}
        {"ended":{"why":"asked"}}
        {"ended":{"why":"gone"}}
        {"turn_ended":{"turn":2,"outcome":{"failed":{"failure":"gone"}}}}
        {"turn_ended":{"turn":2,"outcome":{"failed":{"failure":"busy"}}}}
        {"turn_ended":{"turn":2,"outcome":{"failed":{"failure":"transient"}}}}
        {"turn_ended":{"turn":2,"outcome":{"failed":{"failure":"refused"}}}}
        {"stale":{"fence":{"term":7,"epoch":1,"turn":2,"attempt":3},"kind":"ready"}}
        {"stale":{"fence":{"term":7,"epoch":1,"turn":2,"attempt":3},"kind":"said"}}
        {"stale":{"fence":{"term":7,"epoch":1,"turn":2,"attempt":3},"kind":"asked"}}
        {"stale":{"fence":{"term":7,"epoch":1,"turn":2,"attempt":3},"kind":"withdrawn"}}
        {"stale":{"fence":{"term":7,"epoch":1,"turn":2,"attempt":3},"kind":"finished"}}
        {"stale":{"fence":{"term":7,"epoch":1,"turn":2,"attempt":3},"kind":"failed"}}
        {"stale":{"fence":{"term":7,"epoch":1,"turn":2,"attempt":3},"kind":"stopped"}}
        {"stale":{"fence":{"term":7,"epoch":1,"turn":2,"attempt":3},"kind":"lost"}}
        {"stale":{"fence":{"term":7,"epoch":1,"turn":2,"attempt":3},"kind":"missed"}}
        {"opened":{"scope":{"directory":"/srv/ü","agent":"scripted","worktree":{"name":"a","home":"/srv"}},"origin":{"session":"ses_00000000000000000000000009","turn":2}}}
        {"queued":{"message":"msg_00000000000000000000000001","by":"usr_00000000000000000000000002","delivery":"interrupt"}}
        {"queued":{"message":"msg_00000000000000000000000001","by":"usr_00000000000000000000000002","delivery":"steer","epoch":3}}
        {"held":{"message":"msg_00000000000000000000000001","why":"other_scope","expires":1700000000000}}
        {"released":{"message":"msg_00000000000000000000000001","epoch":1}}
        {"steered":{"message":"msg_00000000000000000000000001","turn":2}}
        {"missed":{"message":"msg_00000000000000000000000001"}}
        {"answered":{"approval":"apr_00000000000000000000000005","answer":{"chose":3},"rule":"rul_00000000000000000000000008"}}
        {"answered":{"approval":"apr_00000000000000000000000005","answer":{"said":"a \"word\""},"policy":true}}
        {"scope_kept":{"why":{"asked":{"by":"usr_00000000000000000000000002"}}}}
        {"scope_kept":{"why":{"failed":{}}}}
        {"scope_kept":{"why":{"moot":{}}}}
        {"scope_changed":{"epoch":1,"scope":{"directory":"/srv/ü","agent":"scripted","worktree":{"name":"a","home":"/srv"}}}}
        {"errand_started":{"errand":{"epoch":1,"number":4},"what":{"undo":{"turn":2,"files":"all"}},"by":"usr_00000000000000000000000002"}}
        {"errand_failed":{"errand":{"epoch":1,"number":4}}}
        {"undone":{"turn":2}}
        {"redone":{"turn":2}}
        {"errand_started":{"errand":{"epoch":1,"number":4},"what":{"redo":{"turn":2}},"by":"usr_00000000000000000000000002"}}
        {"asked":{"approval":"apr_00000000000000000000000005","turn":2,"until":1700000000000,"posed":{"asks":{"choice":{"options":3}}}}}
        {"asked":{"approval":"apr_00000000000000000000000005","turn":2,"until":1700000000000,"posed":{"asks":{"words":{}}}}}
        {"asked":{"approval":"apr_00000000000000000000000005","turn":2,"until":1700000000000,"posed":{"asks":{"permission":{}},"only":{"rule":"rul_00000000000000000000000008","who":{"org":{}}}}}}
        {"asked":{"approval":"apr_00000000000000000000000005","turn":2,"until":1700000000000,"posed":{"asks":{"permission":{}},"only":{"rule":"rul_00000000000000000000000008","who":{"person":{"person":"usr_00000000000000000000000002"}}}}}}
        {"asked":{"approval":"apr_00000000000000000000000005","turn":2,"until":1700000000000,"posed":{"asks":{"words":{}},"only":{"rule":"rul_00000000000000000000000008","who":{"group":{"group":"grp_00000000000000000000000004"}}}}}}
        {"change_asked":{"change":{"enter":{"name":"a"}},"by":"usr_00000000000000000000000002"}}
        {"change_asked":{"change":{"enter":{"name":"a","base":"main","branch":"b"}},"after":"msg_00000000000000000000000003","by":"usr_00000000000000000000000002"}}
        {"change_asked":{"change":{"exit":{}},"by":"usr_00000000000000000000000002"}}
        {"change_asked":{"change":{"set":{"model":"keep","mode":"default"}},"after":"msg_00000000000000000000000003","by":"usr_00000000000000000000000002"}}
        {"change_asked":{"change":{"set":{"agent":"b","model":{"to":"m"},"mode":"keep"}},"by":"usr_00000000000000000000000002"}}
        {"change_asked":{"change":{"relink":{"directory":"/b"}},"after":"msg_00000000000000000000000003","by":"usr_00000000000000000000000002"}}
        {"change_asked":{"change":{"back":{"scope":{"directory":"/srv/ü","agent":"scripted","worktree":{"name":"a","home":"/srv"}},"message":"msg_00000000000000000000000001"}},"by":"usr_00000000000000000000000002"}}
        {"errand_started":{"errand":{"epoch":1,"number":4},"what":{"enter":{"name":"a"}},"by":"usr_00000000000000000000000002"}}
        {"errand_started":{"errand":{"epoch":1,"number":4},"what":{"enter":{"name":"a","base":"main","branch":"b"}},"by":"usr_00000000000000000000000002"}}
        {"opened":{"scope":{"directory":"/srv/ü","agent":"scripted"},"enter":{"name":"a"}}}
        {"scope_changed":{"epoch":1,"scope":{"directory":"/srv/ü","agent":"scripted","worktree":{"name":"a","home":"/srv","branch":"homing/a"}}}}
        {"learned":{"kind":"enter","epoch":1}}
        {"learned":{"kind":"undo","epoch":1}}
        {"learned":{"kind":"redo","epoch":1}}
        {"learned":{"kind":"commands","epoch":1}}
        {"learned":{"kind":"models","epoch":1}}
        {"learned":{"kind":"files","epoch":1}}
        {"learned":{"kind":"diff","epoch":1}}
        {"stale_errand":{"errand":{"epoch":1,"number":4},"kind":"enter"}}
        {"stale_errand":{"errand":{"epoch":1,"number":4},"kind":"undo"}}
        {"stale_errand":{"errand":{"epoch":1,"number":4},"kind":"redo"}}
        {"stale_errand":{"errand":{"epoch":1,"number":4},"kind":"commands"}}
        {"stale_errand":{"errand":{"epoch":1,"number":4},"kind":"models"}}
        {"stale_errand":{"errand":{"epoch":1,"number":4},"kind":"files"}}
        {"stale_errand":{"errand":{"epoch":1,"number":4},"kind":"diff"}}"#]].assert_eq(&stored.join("\n"));
}

#[test]
fn the_stored_forms_of_requests_scopes_and_checkpoints_are_pinned() {
    let stored = |(request, resolved): &(Request, Resolved)| text(record::encode_request(request, resolved));
    let mut stored: Vec<_> = requests().iter().map(stored).collect();
    stored.push(text(record::encode_checkpoint(&[
        queued(Delivery::Queue, 0),
        Fact::Ended { why: EndWhy::Gone },
    ])));
    let mode = Some("plan".into());
    stored.push(text(record::encode_scope(&Scope {
        directory: "/a".into(),
        agent: "b".into(),
        model: None,
        mode,
        worktree: None,
    })));
    stored.push(text(record::encode_scope(&tree())));
    expect![[r#"
        {"edit":{"message":"msg_00000000000000000000000001","revision":2}}
        {"withdraw":{"message":"msg_00000000000000000000000001"}}
        {"hold":{"message":"msg_00000000000000000000000001"}}
        {"release":{"message":"msg_00000000000000000000000001"}}
        {"reorder":{"order":["msg_00000000000000000000000002","msg_00000000000000000000000001"]}}
        {"stop":{"message":"msg_00000000000000000000000001"}}
        {"answer":{"approval":"apr_00000000000000000000000005","answer":"no"}}
        {"end":{}}
        {"release":{"message":"msg_00000000000000000000000001","back_in":{"directory":"/srv/ü","agent":"scripted","worktree":{"name":"a","home":"/srv"}}}}
        {"answer":{"approval":"apr_00000000000000000000000005","answer":{"chose":3}}}
        {"answer":{"approval":"apr_00000000000000000000000005","answer":{"said":"so"}}}
        {"keep_scope":{}}
        {"undo":{"turn":2,"of":1,"files":{"only":["a"]}}}
        {"remove_worktree":{"name":"a","teardown":false}}
        {"restore_worktree":{"name":"a","reference":"refs/a"}}
        {"merge_worktree":{"name":"a"}}
        {"apply_worktree":{"name":"a"}}
        {"end_background":{}}
        {"change":{"change":{"enter":{"name":"a"}},"now":false}}
        {"change":{"change":{"enter":{"name":"a","base":"main","branch":"b"}},"now":false}}
        {"change":{"change":{"exit":{}},"now":false}}
        {"change":{"change":{"set":{"model":"keep","mode":"default"}},"now":false}}
        {"change":{"change":{"set":{"agent":"b","model":{"to":"m"},"mode":"keep"}},"now":false}}
        {"change":{"change":{"relink":{"directory":"/b"}},"now":false}}
        {"change":{"change":{"back":{"scope":{"directory":"/srv/ü","agent":"scripted","worktree":{"name":"a","home":"/srv"}},"message":"msg_00000000000000000000000001"}},"now":false}}
        {"change":{"change":{"exit":{}},"now":true}}
        {"answer":{"approval":"apr_00000000000000000000000005","answer":"yes","rule":{"rule":"rul_00000000000000000000000008","tool":"Bash","session":"ses_00000000000000000000000009"}}}
        {"answer":{"approval":"apr_00000000000000000000000005","answer":"yes","rule":{"rule":"rul_00000000000000000000000008","agent":"claude","tool":"Bash","directory":"/srv"}}}
        {"version":2,"facts":[{"queued":{"message":"msg_00000000000000000000000001","by":"usr_00000000000000000000000002"}},{"ended":{"why":"gone"}}]}
        {"directory":"/a","agent":"b","mode":"plan"}
        {"directory":"/srv/ü","agent":"scripted","worktree":{"name":"a","home":"/srv"}}"#]].assert_eq(&stored.join("\n"));
}

fn requests() -> Vec<(Request, Resolved)> {
    let (approval, session) = (ApprovalId::from_bits(5), session());
    let plain = |request| (request, Resolved::default());
    let answer = |answer| plain(Request::Answer { approval, answer, remember: None });
    let there = Resolved { written_for: Some(tree()), rule: None };
    let mut requests = vec![
        plain(Request::Edit { message: msg(1), revision: 2 }),
        plain(Request::Withdraw { message: msg(1) }),
        plain(Request::Hold { message: msg(1) }),
        plain(Request::Release { message: msg(1), there: false }),
        plain(Request::Reorder { session, order: vec![msg(2), msg(1)] }),
        plain(Request::Stop { message: msg(1) }),
        answer(Answer::No),
        plain(Request::End { session }),
        (Request::Release { message: msg(1), there: true }, there),
        answer(Answer::Chose(3)),
        answer(Answer::Said("so".into())),
        plain(Request::KeepScope { session }),
        plain(Request::Undo {
            session,
            turn: Turn(2),
            under: Some(Epoch(1)),
            files: UndoFiles::Only(vec!["a".into()]),
        }),
        plain(Request::Chore { session, chore: Chore::Remove { name: "a".into(), teardown: false } }),
        plain(Request::Chore {
            session,
            chore: Chore::Restore { name: "a".into(), reference: "refs/a".into() },
        }),
        plain(Request::Chore { session, chore: Chore::Merge { name: "a".into(), how: MergeHow::Merge } }),
        plain(Request::Chore { session, chore: Chore::Merge { name: "a".into(), how: MergeHow::Apply } }),
        plain(Request::Chore { session, chore: Chore::EndBackground }),
    ];
    let change = |change, now| plain(Request::ChangeScope { session, change, now });
    requests.extend(changes().into_iter().map(|wanted| change(wanted, false)));
    requests.push(change(Change::Exit, true));
    let rule = RememberedRule {
        rule: RuleId::from_bits(8),
        agent: None,
        tool: "Bash".into(),
        directory: None,
        session: Some(SessionId::from_bits(9)),
    };
    let (agent, directory) = (Some("claude".into()), Some("/srv".into()));
    let always = RememberedRule { agent, directory, session: None, ..rule.clone() };
    let remembered = |(remember, rule)| {
        let request = Request::Answer { approval, answer: Answer::Yes, remember: Some(remember) };
        (request, Resolved { written_for: None, rule: Some(rule) })
    };
    requests.extend([(Remember::Session, rule), (Remember::Always, always)].map(remembered));
    requests
}

/// The session in whose inbox they are.
fn session() -> SessionId {
    SessionId::from_bits(7)
}

#[test]
fn requests_are_read_back() {
    // Also those of which nothing was looked up: none of them is taken for another one.
    let approval = ApprovalId::from_bits(5);
    let unresolved = [
        Request::Release { message: msg(1), there: true },
        Request::Undo { session: session(), turn: Turn(2), under: None, files: UndoFiles::All },
        Request::Redo { session: session(), turn: Turn(2), under: None },
        Request::Answer { approval, answer: Answer::No, remember: Some(Remember::Session) },
        Request::Answer { approval, answer: Answer::No, remember: Some(Remember::Always) },
    ];
    let unresolved = unresolved.map(|request| (request, Resolved::default()));
    for (request, resolved) in requests().into_iter().chain(unresolved) {
        let stored = record::encode_request(&request, &resolved);
        assert_eq!(record::decode_request(session(), &stored), Ok((request, resolved)));
    }
}

/// Rows that the version before wrote, when its inbox held wishes: an update finds them there.
#[test]
fn what_the_version_before_left_in_an_inbox_is_read() {
    let read = |row: &str| record::decode_request(session(), row.as_bytes()).expect(row);
    let plain = |request| (request, Resolved::default());
    let (approval, session) = (ApprovalId::from_bits(5), session());
    assert_eq!(
        read(r#"{"edit":{"message":"msg_00000000000000000000000001","revision":2}}"#),
        plain(Request::Edit { message: msg(1), revision: 2 })
    );
    assert_eq!(
        read(r#"{"withdraw":{"message":"msg_00000000000000000000000001"}}"#),
        plain(Request::Withdraw { message: msg(1) })
    );
    assert_eq!(
        read(r#"{"hold":{"message":"msg_00000000000000000000000001"}}"#),
        plain(Request::Hold { message: msg(1) })
    );
    assert_eq!(
        read(r#"{"release":{"message":"msg_00000000000000000000000001"}}"#),
        plain(Request::Release { message: msg(1), there: false })
    );
    assert_eq!(
        read(
            r#"{"release":{"message":"msg_00000000000000000000000001","back_in":{"directory":"/srv/ü","agent":"scripted","worktree":{"name":"a","home":"/srv"}}}}"#
        ),
        (
            Request::Release { message: msg(1), there: true },
            Resolved { written_for: Some(tree()), rule: None }
        )
    );
    assert_eq!(
        read(r#"{"reorder":{"order":["msg_00000000000000000000000002","msg_00000000000000000000000001"]}}"#),
        plain(Request::Reorder { session, order: vec![msg(2), msg(1)] })
    );
    assert_eq!(
        read(r#"{"stop":{"message":"msg_00000000000000000000000001"}}"#),
        plain(Request::Stop { message: msg(1) })
    );
    assert_eq!(
        read(r#"{"answer":{"approval":"apr_00000000000000000000000005","answer":{"chose":3}}}"#),
        plain(Request::Answer { approval, answer: Answer::Chose(3), remember: None })
    );
    let rule = RememberedRule {
        rule: RuleId::from_bits(8),
        agent: Some("claude".into()),
        tool: "Bash".into(),
        directory: Some("/srv".into()),
        session: None,
    };
    assert_eq!(
        read(
            r#"{"answer":{"approval":"apr_00000000000000000000000005","answer":"yes","rule":{"rule":"rul_00000000000000000000000008","agent":"claude","tool":"Bash","directory":"/srv"}}}"#
        ),
        (
            Request::Answer { approval, answer: Answer::Yes, remember: Some(Remember::Always) },
            Resolved { written_for: None, rule: Some(rule) }
        )
    );
    assert_eq!(
        read(r#"{"change":{"change":{"enter":{"name":"a","base":"main","branch":"b"}},"now":false}}"#),
        plain(Request::ChangeScope { session, change: changes()[1].clone(), now: false })
    );
    assert_eq!(read(r#"{"keep_scope":{}}"#), plain(Request::KeepScope { session }));
    assert_eq!(
        read(r#"{"remove_worktree":{"name":"a","teardown":true}}"#),
        plain(Request::Chore { session, chore: Chore::Remove { name: "a".into(), teardown: true } })
    );
    let restore = Chore::Restore { name: "a".into(), reference: "refs/a".into() };
    assert_eq!(
        read(r#"{"restore_worktree":{"name":"a","reference":"refs/a"}}"#),
        plain(Request::Chore { session, chore: restore })
    );
    assert_eq!(
        read(r#"{"undo":{"turn":2,"of":1}}"#),
        plain(Request::Undo { session, turn: Turn(2), under: Some(Epoch(1)), files: UndoFiles::Certain })
    );
    assert_eq!(read(r#"{"end":{}}"#), plain(Request::End { session }));
}

/// Skipping what rules depend on would be worse than stopping.
#[test]
fn an_unknown_fact_or_field_or_word_is_not_skipped() {
    for unknown in [
        r#"{"teleported":{"to":"mars"}}"#,
        r#"{"handed":{"turn":1,"attempt":1,"twice":true}}"#,
        r#"{"ended":{"why":"bored"}}"#,
        r#"{"handed":{"turn":1}}"#,
        r#"{"handed":{"turn":-1,"attempt":1}}"#,
        r#"{"turn_ended":{"turn":1,"outcome":{"failed":{"failure":"gone","how":1}}}}"#,
        r#"{"lapsed":{"approval":"msg_00000000000000000000000001"}}"#,
        r#"{"lapsed":{"approval":"apr_0000000000000000000000000I"}}"#,
        "",
        "null",
        "{}",
    ] {
        let unreadable = record::decode_fact(unknown.as_bytes()).expect_err(unknown);
        assert!(matches!(StoreError::from(unreadable), StoreError::Damaged(_)));
    }
    let unreadable = record::decode_fact(br#"{"teleported":{}}"#).unwrap_err();
    assert!(
        unreadable
            .to_string()
            .starts_with("a stored rule fact is not known to this version: unknown variant")
    );
}

#[test]
fn a_checkpoint_of_another_version_is_unreadable() {
    let ours = text(record::encode_checkpoint(&[]));
    assert_eq!(record::decode_checkpoint(ours.as_bytes()), Ok(vec![]));
    assert!(record::decode_checkpoint(ours.replace(":2", ":1").as_bytes()).is_err());
    assert!(record::decode_checkpoint(b"").is_err());
    assert!(record::decode_checkpoint(br#"{"version":2,"facts":[{"teleported":{}}]}"#).is_err());
}

#[test]
fn every_word_is_read_back() {
    use ReceiptState as R;
    for state in
        [R::Waiting, R::Held, R::Running, R::Answered, R::Failed, R::Stopped, R::Withdrawn, R::Refused]
    {
        assert_eq!(record::state_parse(record::state_word(state)), Some(state));
    }
    use OutgoingState as O;
    for state in [O::Waiting, O::Sending, O::Sent, O::Unknown, O::Parked] {
        assert_eq!(record::outgoing_state_parse(record::outgoing_state_word(state)), Some(state));
    }
    use Refusal::*;
    let refusals = [
        TooLate,
        Changed,
        Ended,
        AlreadyOpen,
        NotOpen,
        Busy,
        Changing,
        InWorktree,
        NotInWorktree,
        NoSuchTurn,
        OtherScope,
        NotListening,
        Unfit,
        NotAllowed,
    ]
    .map(Verdict::Refused);
    let failed = Verdict::Failed { why: "failed: done".to_owned() };
    assert_eq!(record::verdict_text(&failed), "failed: failed: done");
    let told = Verdict::Told { what: "failed: {}".to_owned() };
    for verdict in refusals.into_iter().chain([Verdict::Done, told, failed]) {
        assert_eq!(record::verdict_parse(&record::verdict_text(&verdict)), Some(verdict));
    }
    for grant in [Grant::View, Grant::Prompt, Grant::Manage] {
        assert_eq!(record::grant_parse(record::grant_word(grant)), Some(grant));
    }
    for role in [Role::Viewer, Role::Member, Role::Admin, Role::Owner] {
        assert_eq!(record::role_parse(record::role_word(role)), Some(role));
    }
    for right in Right::ALL {
        assert_eq!(record::right_parse(record::right_word(right)), Some(right));
    }
    use Purpose as P;
    for purpose in [P::Machine, P::Browser, P::Cli, P::Api, P::Turn] {
        assert_eq!(record::purpose_parse(record::purpose_word(purpose)), Some(purpose));
    }
    for to in [Grantee::Person(usr(2)), Grantee::Group(GroupId::from_bits(3)), Grantee::Org] {
        assert_eq!(store::grantee_parse(&store::grantee_text(to)), Some(to));
    }
    assert_eq!(store::grantee_parse("msg_00000000000000000000000001"), None);
    for delivery in [Delivery::Queue, Delivery::Interrupt, Delivery::Steer] {
        assert_eq!(record::delivery_parse(record::delivery_word(delivery)), Some(delivery));
    }
    for kind in ErrandKind::ALL {
        assert_eq!(record::errand_parse(record::errand_word(kind)), Some(kind));
    }
    let rule = Answerer::Rule(RuleId::from_bits(3));
    for by in [Answerer::Person(usr(3)), rule, Answerer::Policy, Answerer::Nobody] {
        assert_eq!(record::answerer_parse(record::answerer_text(by).as_deref()), Ok(by));
    }
    assert!(record::answerer_parse(Some("chance")).is_err());
    for why in project::WHY_WORDS {
        assert_eq!(record::why_parse(why), Some(why));
    }
    for kind in [OutgoingKind::Final, OutgoingKind::Question(ApprovalId::from_bits(9))] {
        assert_eq!(record::outgoing_kind_parse(&record::outgoing_kind_text(kind)), Ok(kind));
    }
    assert_eq!(record::state_parse("Waiting"), None);
    assert_eq!(record::why_parse("bored"), None);
    assert!(record::outgoing_kind_parse("msg_00000000000000000000000001").is_err());
    assert!(record::cause_parse("chance").is_err());
}

/// Two lists of the same words, one for people and one for the store, would drift apart.
#[test]
fn receipts_say_the_same_words_as_the_stored_facts() {
    for fact in one_of_each() {
        for change in project::project(&fact) {
            if let project::Change::Receipt { why: Some(why), .. } = change {
                assert!(text(record::encode_fact(&fact)).contains(&format!(r#""why":"{why}""#)));
                assert_eq!(record::why_parse(why), Some(why));
            }
        }
    }
}

proptest! {
    #[test]
    fn every_fact_is_read_back(fact in facts()) {
        prop_assert_eq!(record::decode_fact(&record::encode_fact(&fact)), Ok(fact));
    }

    #[test]
    fn every_checkpoint_is_read_back(facts in prop::collection::vec(facts(), 0..4)) {
        prop_assert_eq!(record::decode_checkpoint(&record::encode_checkpoint(&facts)), Ok(facts));
    }

    #[test]
    fn every_scope_is_read_back(scope in scopes()) {
        prop_assert_eq!(record::decode_scope(&record::encode_scope(&scope)), Ok(scope));
    }

    #[test]
    fn every_answer_is_read_back(words in any::<String>(), option in any::<u16>()) {
        for answer in [Answer::Yes, Answer::No, Answer::Chose(option), Answer::Said(words)] {
            prop_assert_eq!(record::decode_answer(&record::encode_answer(&answer)), Ok(answer));
        }
    }

    #[test]
    fn every_cause_is_read_back(kind in 0..5, bits in any::<u128>()) {
        let cause = match kind {
            0 => Cause::Message(msg(bits)),
            1 => Cause::Request(RequestId::from_bits(bits)),
            2 => Cause::Runner,
            3 => Cause::Timer,
            _ => Cause::Keeper,
        };
        prop_assert_eq!(record::cause_parse(&record::cause_text(cause)), Ok(cause));
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = record::decode_fact(&bytes);
        let _ = record::decode_checkpoint(&bytes);
        let _ = record::decode_request(session(), &bytes);
        let _ = record::decode_scope(&bytes);
        let _ = record::decode_answer(&bytes);
    }
}

fn scopes() -> impl Strategy<Value = Scope> {
    let words = (any::<String>(), any::<String>(), any::<Option<String>>(), any::<Option<String>>());
    let worktree = any::<Option<(String, String, Option<String>)>>();
    (words, worktree).prop_map(|((directory, agent, model, mode), worktree)| {
        let worktree =
            worktree.map(|(name, home, branch): (_, String, _)| Worktree { name, home: home.into(), branch });
        Scope { directory: directory.into(), agent, model, mode, worktree }
    })
}

/// Any fact: one of each kind, with everything in it that can vary varied.
fn facts() -> impl Strategy<Value = Fact> {
    let parts = (any::<[u128; 3]>(), any::<[u64; 2]>(), any::<[u32; 3]>(), any::<u16>(), any::<String>());
    let list = prop::collection::vec(any::<u128>(), 0..5);
    (prop::sample::select(one_of_each()), scopes(), parts, list).prop_map(|(fact, scope, parts, list)| {
        let ([a, b, c], [x, y], [i, j, k], attempt, text) = parts;
        let (message, by, approval) = (msg(a), usr(b), ApprovalId::from_bits(c));
        let (turn, epoch, attempt) = (Turn(i), Epoch(j), Attempt(attempt));
        let (until, fence) = (Moment(x), Fence { term: Term(y), epoch, turn, attempt });
        let (session, errand) = (SessionId::from_bits(a), Errand { epoch, number: k });
        match fact {
            Fact::Opened { origin, enter, .. } => {
                let enter = enter.map(|wanted| NewWorktree { name: text, ..wanted });
                Fact::Opened { scope, origin: origin.map(|_| Origin { session, turn }), enter }
            }
            Fact::Queued { delivery, .. } => Fact::Queued { message, by, delivery, epoch },
            Fact::Edited { .. } => Fact::Edited { message, revision: k },
            Fact::Withdrawn { .. } => Fact::Withdrawn { message, by },
            Fact::Held { why, .. } => Fact::Held { message, why, expires: until },
            Fact::Released { .. } => Fact::Released { message, epoch },
            Fact::Steered { .. } => Fact::Steered { message, turn },
            Fact::Missed { .. } => Fact::Missed { message },
            Fact::Reordered { .. } => Fact::Reordered { order: list.into_iter().map(msg).collect() },
            Fact::MessageRefused { why, .. } => Fact::MessageRefused { message, why },
            Fact::Crowded { .. } => Fact::Crowded { until },
            Fact::TurnStarted { .. } => Fact::TurnStarted { turn, message },
            Fact::AttemptStarted { .. } => Fact::AttemptStarted { fence, until },
            Fact::Confirmed { .. } => Fact::Confirmed { native: Native::new(text.clone()).at(text), epoch },
            Fact::Handed { .. } => Fact::Handed { turn, attempt },
            Fact::AttemptFailed { failure, .. } => {
                Fact::AttemptFailed { turn, attempt, failure, again_at: until }
            }
            Fact::Asked { terms, .. } => Fact::Asked { approval, turn, until, terms },
            Fact::Answered { answer, by: who, .. } => {
                let answer = match answer {
                    Answer::Said(_) => Answer::Said(text),
                    Answer::Chose(_) => Answer::Chose(attempt.0),
                    Answer::Yes | Answer::No => answer,
                };
                let by = match who {
                    Answerer::Person(_) => Answerer::Person(by),
                    Answerer::Rule(_) => Answerer::Rule(RuleId::from_bits(a)),
                    Answerer::Policy | Answerer::Nobody => who,
                };
                Fact::Answered { approval, answer, by }
            }
            Fact::Lapsed { .. } => Fact::Lapsed { approval },
            Fact::StopAsked { why: StopWhy::Asked(_), .. } => {
                Fact::StopAsked { turn, why: StopWhy::Asked(by) }
            }
            Fact::StopAsked { why, .. } => Fact::StopAsked { turn, why },
            Fact::TurnEnded { outcome, .. } => Fact::TurnEnded { turn, outcome },
            Fact::EndAsked { .. } => Fact::EndAsked { by },
            Fact::Ended { why } => Fact::Ended { why },
            Fact::Stale { kind, .. } => Fact::Stale { fence, kind },
            Fact::ChangeAsked { change, after, .. } => {
                Fact::ChangeAsked { change: varied(change, scope, text), after: after.map(|_| message), by }
            }
            Fact::ScopeKept { why: KeptWhy::Asked(_) } => Fact::ScopeKept { why: KeptWhy::Asked(by) },
            Fact::ScopeKept { why } => Fact::ScopeKept { why },
            Fact::ScopeChanged { .. } => Fact::ScopeChanged { epoch, scope },
            Fact::ErrandStarted { what: What::Undo { .. }, .. } => {
                Fact::ErrandStarted { errand, what: What::Undo { turn, files: UndoFiles::All }, by }
            }
            Fact::ErrandStarted { what: What::Redo { .. }, .. } => {
                Fact::ErrandStarted { errand, what: What::Redo { turn }, by }
            }
            Fact::ErrandStarted { what, .. } => Fact::ErrandStarted { errand, what, by },
            Fact::ErrandFailed { .. } => Fact::ErrandFailed { errand },
            Fact::Undone { .. } => Fact::Undone { turn },
            Fact::Redone { .. } => Fact::Redone { turn },
            Fact::Learned { kind, .. } => Fact::Learned { kind, epoch },
            Fact::StaleErrand { kind, .. } => Fact::StaleErrand { errand, kind },
        }
    })
}

fn varied(change: Change, scope: Scope, text: String) -> Change {
    match change {
        Change::Enter(wanted) => Change::Enter(NewWorktree { name: text, ..wanted }),
        Change::Exit => Change::Exit,
        Change::Set { mode, .. } => Change::Set { agent: Some(text.clone()), model: Setting::To(text), mode },
        Change::Relink { .. } => Change::Relink { directory: text.into() },
        Change::Back { message, .. } => Change::Back { scope, message },
    }
}

/// The debug form of a change, a login or a key in a log line or a failed test is never the secret in it.
#[test]
fn secrets_are_in_no_debug_output() {
    let person = usr(1);
    let password = Some("canary".into());
    let change = store::PeopleChange::SetPassword { person, password, keep: None, proved: None };
    let write = kernel::people::PeopleWrite::Password { person, password: Some("canary".into()) };
    let login = store::LoginRow {
        org: OrgId::from_bits(1),
        person,
        handle: "ada".into(),
        password: Some("canary".into()),
        standing: 1,
        is_disabled: false,
    };
    let key = store::ChainKey([0xca; 32]);
    let shown = format!("{change:?} {write:?} {login:?} {key:?}");
    assert!(!shown.contains("canary") && !shown.contains("202"), "{shown}");
    assert!(shown.contains(&person.to_string()) && shown.contains("ada"), "{shown}");
}
