//! The wire form of every fact, as it was promised. A change here is a change of the contract.

use super::*;
use expect_test::expect;
use kernel::{
    ApprovalId, Attempt, Change, Delivery, Epoch, Errand, ErrandKind, Fence, KeptWhy, MessageId, Native,
    NewWorktree, Number, Origin, PersonId, RequestId, RuleId, Scope, SessionId, Setting, Term, Turn,
    UndoFiles, What, Worktree,
};

const MESSAGE: MessageId = MessageId::from_bits(1);
const OTHER: MessageId = MessageId::from_bits(2);
const PERSON: PersonId = PersonId::from_bits(3);
const APPROVAL: ApprovalId = ApprovalId::from_bits(4);
const SOON: Moment = Moment(1_000_000_060_000);
const FENCE: Fence = Fence { term: Term(4_294_967_297), epoch: Epoch(1), turn: Turn(2), attempt: Attempt(1) };

fn print(fact: &StoredFact) -> String {
    let mut bytes = Vec::new();
    write_fact(&mut bytes, fact);
    let text = String::from_utf8(bytes).unwrap();
    // What we send must be what our own client reads, unknown to nobody.
    let read: api::Fact = serde_json::from_str(&text).unwrap();
    assert!(!matches!(read.what, api::What::Other(_)), "{text}");
    let again = serde_json::to_value(&read).unwrap();
    assert_eq!(again, serde_json::from_str::<serde_json::Value>(&text).unwrap());
    text
}

fn stored(number: u64, cause: Cause, entry: StoredEntry) -> StoredFact {
    StoredFact { number: Number(number), at: Moment(1_000_000_000_000 + number), cause, entry }
}

/// One of every kind. A new fact does not compile in `rule_fact`; it belongs here as well.
fn every_rule_fact() -> Vec<Fact> {
    let scope = Scope {
        directory: "/w".into(),
        agent: "scripted".into(),
        model: None,
        mode: Some("plan".into()),
        worktree: None,
    };
    let worktree = Worktree { name: "fix".into(), home: "/w".into(), branch: None };
    let inside = Scope { directory: "/w/fix".into(), worktree: Some(worktree), ..scope.clone() };
    let new = NewWorktree { name: "fix".into(), base: Some("main".into()), branch: None };
    let origin = Origin { session: SessionId::from_bits(6), turn: Turn(4) };
    let errand = Errand { epoch: Epoch(1), number: 2 };
    let set = Change::Set { agent: None, model: Setting::To("large".into()), mode: Setting::Default };
    let asked = |change| Fact::ChangeAsked { change, after: None, by: PERSON };
    let (turn, attempt) = (Turn(2), Attempt(1));
    vec![
        Fact::Opened { scope: scope.clone(), origin: None, enter: None },
        Fact::Opened { scope: scope.clone(), origin: Some(origin), enter: Some(new.clone()) },
        Fact::Queued { message: MESSAGE, by: PERSON, delivery: Delivery::Queue, epoch: Epoch(1) },
        Fact::Queued { message: MESSAGE, by: PERSON, delivery: Delivery::Steer, epoch: Epoch(2) },
        Fact::Edited { message: MESSAGE, revision: 1 },
        Fact::Withdrawn { message: MESSAGE, by: PERSON },
        Fact::Held { message: MESSAGE, why: HoldWhy::Asked, expires: SOON },
        Fact::Held { message: MESSAGE, why: HoldWhy::AfterFailure, expires: SOON },
        Fact::Held { message: MESSAGE, why: HoldWhy::OtherScope, expires: SOON },
        Fact::Released { message: MESSAGE, epoch: Epoch(2) },
        Fact::Steered { message: MESSAGE, turn },
        Fact::Missed { message: MESSAGE },
        Fact::Reordered { order: vec![OTHER, MESSAGE] },
        Fact::MessageRefused { message: MESSAGE, why: RefusedWhy::SessionEnded },
        Fact::MessageRefused { message: MESSAGE, why: RefusedWhy::Expired },
        Fact::MessageRefused { message: MESSAGE, why: RefusedWhy::NotAllowed },
        Fact::Crowded { until: SOON },
        Fact::TurnStarted { turn, message: MESSAGE },
        Fact::AttemptStarted { fence: FENCE, until: SOON },
        Fact::Confirmed { native: Native::new("n\"1"), epoch: Epoch(1) },
        Fact::Handed { turn, attempt },
        Fact::AttemptFailed { turn, attempt, failure: Failure::Busy, again_at: SOON },
        Fact::Asked { approval: APPROVAL, turn, until: SOON, terms: kernel::ApprovalTerms::default() },
        Fact::Answered { approval: APPROVAL, answer: Answer::Yes, by: Answerer::Person(PERSON) },
        Fact::Answered { approval: APPROVAL, answer: Answer::No, by: Answerer::Nobody },
        Fact::Answered { approval: APPROVAL, answer: Answer::No, by: Answerer::Policy },
        Fact::Answered {
            approval: APPROVAL,
            answer: Answer::Chose(1),
            by: Answerer::Rule(RuleId::from_bits(7)),
        },
        Fact::Answered {
            approval: APPROVAL,
            answer: Answer::Said("so".into()),
            by: Answerer::Person(PERSON),
        },
        Fact::Lapsed { approval: APPROVAL },
        Fact::StopAsked { turn, why: StopWhy::Asked(PERSON) },
        Fact::StopAsked { turn, why: StopWhy::TimeLimit },
        Fact::StopAsked { turn, why: StopWhy::Ending },
        Fact::TurnEnded { turn, outcome: Outcome::Answered },
        Fact::TurnEnded { turn, outcome: Outcome::Stopped },
        Fact::TurnEnded { turn, outcome: Outcome::Interrupted },
        Fact::TurnEnded { turn, outcome: Outcome::TimedOut },
        Fact::TurnEnded { turn, outcome: Outcome::Failed(Failure::Gone) },
        Fact::TurnEnded { turn, outcome: Outcome::Failed(Failure::Transient) },
        Fact::TurnEnded { turn, outcome: Outcome::Failed(Failure::Refused) },
        Fact::EndAsked { by: PERSON },
        Fact::Ended { why: EndWhy::Asked },
        Fact::Ended { why: EndWhy::Gone },
        Fact::Stale { fence: FENCE, kind: ReportKind::Finished },
        asked(Change::Enter(new.clone())),
        asked(Change::Exit),
        asked(set),
        asked(Change::Relink { directory: "/v".into() }),
        asked(Change::Back { scope: inside.clone(), message: MESSAGE }),
        Fact::ScopeKept { why: KeptWhy::Asked(PERSON) },
        Fact::ScopeKept { why: KeptWhy::Failed },
        Fact::ScopeKept { why: KeptWhy::Moot },
        Fact::ScopeChanged { epoch: Epoch(2), scope: inside },
        Fact::ErrandStarted { errand, what: What::Enter(new), by: PERSON },
        Fact::ErrandStarted { errand, what: What::Undo { turn, files: UndoFiles::All }, by: PERSON },
        Fact::ErrandFailed { errand },
        Fact::Undone { turn },
        Fact::Redone { turn },
        Fact::Learned { kind: ErrandKind::Commands, epoch: Epoch(2) },
        Fact::StaleErrand { errand, kind: ErrandKind::Diff },
    ]
}

#[test]
fn every_rule_fact_has_its_promised_form() {
    let printed: Vec<String> = (1..)
        .zip(every_rule_fact())
        .map(|(number, fact)| {
            let text = print(&stored(number, Cause::Keeper, StoredEntry::Rule(fact)));
            // The beginning is the same for all, and has a test of its own.
            text.split_once("\"cause\":\"keeper\",").unwrap().1.strip_suffix('}').unwrap().to_owned()
        })
        .collect();
    expect![[r#"
        "type":"opened","directory":"/w","agent":"scripted","mode":"plan"
        "type":"opened","directory":"/w","agent":"scripted","mode":"plan","origin":{"session":"ses_00000000000000000000000006","turn":4}
        "type":"queued","message":"msg_00000000000000000000000001","by":"usr_00000000000000000000000003","delivery":"queue","epoch":1
        "type":"queued","message":"msg_00000000000000000000000001","by":"usr_00000000000000000000000003","delivery":"steer","epoch":2
        "type":"edited","message":"msg_00000000000000000000000001","revision":1
        "type":"withdrawn","message":"msg_00000000000000000000000001","by":"usr_00000000000000000000000003"
        "type":"held","message":"msg_00000000000000000000000001","why":"asked","expires":"2001-09-09T01:47:40.000Z"
        "type":"held","message":"msg_00000000000000000000000001","why":"after_failure","expires":"2001-09-09T01:47:40.000Z"
        "type":"held","message":"msg_00000000000000000000000001","why":"other_scope","expires":"2001-09-09T01:47:40.000Z"
        "type":"released","message":"msg_00000000000000000000000001","epoch":2
        "type":"steered","message":"msg_00000000000000000000000001","turn":2
        "type":"missed","message":"msg_00000000000000000000000001"
        "type":"reordered","order":["msg_00000000000000000000000002","msg_00000000000000000000000001"]
        "type":"message_refused","message":"msg_00000000000000000000000001","why":"session_ended"
        "type":"message_refused","message":"msg_00000000000000000000000001","why":"expired"
        "type":"message_refused","message":"msg_00000000000000000000000001","why":"not_allowed"
        "type":"crowded","until":"2001-09-09T01:47:40.000Z"
        "type":"turn_started","turn":2,"message":"msg_00000000000000000000000001"
        "type":"attempt_started","fence":{"term":4294967297,"epoch":1,"turn":2,"attempt":1},"until":"2001-09-09T01:47:40.000Z"
        "type":"confirmed","native":"n\"1","epoch":1
        "type":"handed","turn":2,"attempt":1
        "type":"attempt_failed","turn":2,"attempt":1,"failure":"busy","again_at":"2001-09-09T01:47:40.000Z"
        "type":"asked","approval":"apr_00000000000000000000000004","turn":2,"until":"2001-09-09T01:47:40.000Z"
        "type":"answered","approval":"apr_00000000000000000000000004","answer":"yes","by":"usr_00000000000000000000000003"
        "type":"answered","approval":"apr_00000000000000000000000004","answer":"no"
        "type":"answered","approval":"apr_00000000000000000000000004","answer":"no","by":"policy"
        "type":"answered","approval":"apr_00000000000000000000000004","answer":{"chose":1},"by":"rul_00000000000000000000000007"
        "type":"answered","approval":"apr_00000000000000000000000004","answer":{"said":"so"},"by":"usr_00000000000000000000000003"
        "type":"lapsed","approval":"apr_00000000000000000000000004"
        "type":"stop_asked","turn":2,"why":"asked","by":"usr_00000000000000000000000003"
        "type":"stop_asked","turn":2,"why":"time_limit"
        "type":"stop_asked","turn":2,"why":"ending"
        "type":"turn_ended","turn":2,"outcome":"answered"
        "type":"turn_ended","turn":2,"outcome":"stopped"
        "type":"turn_ended","turn":2,"outcome":"interrupted"
        "type":"turn_ended","turn":2,"outcome":"time_limit"
        "type":"turn_ended","turn":2,"outcome":"failed","failure":"gone"
        "type":"turn_ended","turn":2,"outcome":"failed","failure":"transient"
        "type":"turn_ended","turn":2,"outcome":"failed","failure":"refused"
        "type":"end_asked","by":"usr_00000000000000000000000003"
        "type":"ended","why":"asked"
        "type":"ended","why":"gone"
        "type":"stale","fence":{"term":4294967297,"epoch":1,"turn":2,"attempt":1},"kind":"finished"
        "type":"change_asked","change":{"enter":{"name":"fix","base":"main"}},"by":"usr_00000000000000000000000003"
        "type":"change_asked","change":{"exit":true},"by":"usr_00000000000000000000000003"
        "type":"change_asked","change":{"set":{"model":"large","mode":""}},"by":"usr_00000000000000000000000003"
        "type":"change_asked","change":{"relink":"/v"},"by":"usr_00000000000000000000000003"
        "type":"change_asked","change":{"back":{"directory":"/w/fix","agent":"scripted","mode":"plan","worktree":{"name":"fix","home":"/w"}}},"by":"usr_00000000000000000000000003"
        "type":"scope_kept","why":"asked","by":"usr_00000000000000000000000003"
        "type":"scope_kept","why":"failed"
        "type":"scope_kept","why":"moot"
        "type":"scope_changed","epoch":2,"directory":"/w/fix","agent":"scripted","mode":"plan","worktree":{"name":"fix","home":"/w"}
        "type":"errand_started","errand":2,"epoch":1,"what":"enter","subject":"fix","by":"usr_00000000000000000000000003"
        "type":"errand_started","errand":2,"epoch":1,"what":"undo","subject":"2","by":"usr_00000000000000000000000003"
        "type":"errand_failed","errand":2,"epoch":1
        "type":"undone","turn":2
        "type":"redone","turn":2
        "type":"learned","kind":"commands","epoch":2
        "type":"stale_errand","errand":2,"epoch":1,"kind":"diff""#]].assert_eq(&printed.join("\n"));
}

#[test]
fn a_fact_begins_with_number_moment_and_cause() {
    let causes = [
        Cause::Message(MESSAGE),
        Cause::Request(RequestId::from_bits(5)),
        Cause::Runner,
        Cause::Timer,
        Cause::Keeper,
    ];
    let printed: Vec<String> = (7..)
        .zip(causes)
        .map(|(number, cause)| {
            print(&stored(
                number,
                cause,
                StoredEntry::Rule(Fact::Released { message: MESSAGE, epoch: Epoch(2) }),
            ))
        })
        .collect();
    expect![[r#"
        {"number":7,"at":"2001-09-09T01:46:40.007Z","cause":"msg_00000000000000000000000001","type":"released","message":"msg_00000000000000000000000001","epoch":2}
        {"number":8,"at":"2001-09-09T01:46:40.008Z","cause":"req_00000000000000000000000005","type":"released","message":"msg_00000000000000000000000001","epoch":2}
        {"number":9,"at":"2001-09-09T01:46:40.009Z","cause":"runner","type":"released","message":"msg_00000000000000000000000001","epoch":2}
        {"number":10,"at":"2001-09-09T01:46:40.010Z","cause":"timer","type":"released","message":"msg_00000000000000000000000001","epoch":2}
        {"number":11,"at":"2001-09-09T01:46:40.011Z","cause":"keeper","type":"released","message":"msg_00000000000000000000000001","epoch":2}"#]].assert_eq(&printed.join("\n"));
}

#[test]
fn a_story_is_sent_as_the_bytes_that_were_stored() {
    let body = br#"{"v":1,"turn":2,"type":"text","part":0,"offset":3,"text":"\u00e9\n"}"#;
    let entry =
        StoredEntry::Story { turn: Turn(2), kind: "text".into(), body: Some(Bytes::from_static(body)) };
    let fact = stored(9, Cause::Runner, entry);
    assert!(print(&fact).as_bytes().ends_with(&body[1..]));
    expect![[r#"
        id: 9
        data: {"number":9,"at":"2001-09-09T01:46:40.009Z","cause":"runner","v":1,"turn":2,"type":"text","part":0,"offset":3,"text":"\u00e9\n"}

    "#]].assert_eq(std::str::from_utf8(&frame(&fact)).unwrap());
}

#[test]
fn forgotten_words_leave_their_place() {
    let entry = StoredEntry::Story { turn: Turn(2), kind: "text".into(), body: None };
    expect![[r#"{"number":9,"at":"2001-09-09T01:46:40.009Z","cause":"runner","v":1,"turn":2,"type":"forgotten","kind":"text"}"#]].assert_eq(&print(&stored(9, Cause::Runner, entry)));
}

#[test]
fn a_line_break_between_parts_cannot_end_an_event() {
    let body = Bytes::from_static(b"{\"v\":1,\r\n\"turn\":2,\"type\":\"notice\",\n\"text\":\"x\"}");
    let entry = StoredEntry::Story { turn: Turn(2), kind: "notice".into(), body: Some(body) };
    let frame = frame(&stored(9, Cause::Runner, entry));
    let lines: Vec<&str> = std::str::from_utf8(&frame).unwrap().split('\n').collect();
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert!(serde_json::from_str::<api::Fact>(lines[1].strip_prefix("data: ").unwrap()).is_ok());
}

#[test]
fn live_words_have_no_id() {
    let live = LiveWords {
        turn: Turn(2),
        kind: "text",
        part: 1,
        offset: 3,
        text: "a\nb".into(),
        frame: Default::default(),
    };
    expect![[r#"
        event: live
        data: {"turn":2,"kind":"text","part":1,"offset":3,"text":"a\nb"}

    "#]]
    .assert_eq(std::str::from_utf8(&live_frame(&live)).unwrap());
}

/// `api` stands on nothing and says in a pattern of its own what the kernel says: both mean the same names.
#[test]
fn wire_and_kernel_agree_on_what_a_worktree_may_be_called() {
    let max = kernel::WORKTREE_NAME_BYTES_MAX;
    let first = (0..=0x17f).filter_map(char::from_u32).map(String::from);
    let second = (0..=0x17f).filter_map(char::from_u32).map(|odd| format!("a{odd}b"));
    let long = (0..=2 * max).map(|length| "a".repeat(length));
    for name in first.chain(second).chain(long) {
        assert_eq!(api::is_worktree_name(&name), kernel::is_worktree_name(&name, max), "{name:?}");
    }
    for schema in [schema_of::<api::EnterWorktree>(), schema_of::<api::OwnWorktree>()] {
        let name = &schema["properties"]["name"];
        assert_eq!(name["pattern"], "^[a-z0-9][a-z0-9-]*$");
        assert_eq!((&name["minLength"], &name["maxLength"]), (&1.into(), &max.into()));
    }
}

fn schema_of<T: utoipa::PartialSchema>() -> serde_json::Value {
    serde_json::to_value(T::schema()).expect("a schema is plain data")
}
