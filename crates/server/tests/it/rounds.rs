//! Messages, sessions, queue, bindings and questions, from outside.

use crate::town::SOON;
use crate::world::{ROBOT, TOKEN, World};
use api::client::{ChangeOutcome, Client, ClientError};
use api::*;
use engine::Limits;
use kernel::Grant;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

fn conversation(key: &str) -> To {
    To::conversation(format!("api:test/{key}"), None)
}

pub(crate) async fn settled(client: &Client, message: &str) -> Receipt {
    let query = MessageQuery { wait: Some(20), words: Some(true) };
    let receipt = client.receipt(message, &query).await.unwrap();
    assert!(receipt.state.is_final(), "{receipt:?}");
    receipt
}

/// Waits until the message's turn runs.
pub(crate) async fn running(client: &Client, receipt: &Receipt) {
    let mut follow = client.follow(&receipt.session, 0);
    loop {
        if let api::client::FollowItem::Fact(Fact { what: What::Rule(RuleFact::Handed { .. }), .. }) =
            follow.next().await.unwrap()
        {
            return;
        }
    }
}

pub(crate) fn code(error: ClientError) -> Code {
    error.problem().unwrap_or_else(|| panic!("{error}")).code
}

#[tokio::test]
async fn a_message_makes_the_whole_round() {
    let world = World::new().await;
    let client = world.client();
    let first = client.say(&NewMessage::text(conversation("a"), "hello")).await.unwrap();
    assert!(first.new && first.state == ReceiptState::Waiting);
    let receipt = settled(&client, &first.id).await;
    assert_eq!(receipt.state, ReceiptState::Answered);
    assert_eq!(receipt.answer.as_deref().map(str::trim), Some("#1 hello"));
    assert_eq!(receipt.text.as_deref(), Some("hello"));

    let how = IfNew { agent: Some("scripted".into()), ..IfNew::default() };
    let to = To::conversation("api:test/a", Some(how));
    let second = client.say(&NewMessage::text(to, "again")).await.unwrap();
    assert!(!second.new && second.if_new_ignored && second.session == first.session);

    let facts = client.facts(&first.session, &FactsQuery::default()).await.unwrap();
    let numbers: Vec<u64> = facts.items.iter().map(|fact| fact.number).collect();
    assert_eq!(numbers, (1..=facts.next).collect::<Vec<_>>());
    assert!(facts.items.iter().all(|fact| !matches!(fact.what, What::Other(_))));
    let session = client.session(&first.session).await.unwrap();
    assert_eq!((session.state, session.agent.as_str()), (SessionState::Open, "scripted"));
}

#[tokio::test]
async fn parts_are_said_like_one_text() {
    let world = World::new().await;
    let body = r#"{"to":{"new":{}},"parts":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}"#;
    let post =
        world.ask("POST", "/api/v1/messages").header("content-type", "application/json; charset=utf-8");
    let receipt: Receipt = post.body(body).send().await.unwrap().json().await.unwrap();
    let receipt = settled(&world.client(), &receipt.id).await;
    assert_eq!(receipt.text.as_deref(), Some("one\ntwo"));
}

#[tokio::test]
async fn the_same_key_gets_the_very_same_answer_over_a_restart() {
    let world = World::new().await;
    async fn post(world: &World, path: &str, body: &str, key: &str) -> (u16, bool, String) {
        let post = world.ask("POST", path).header("content-type", "application/json");
        let answer = post.header("idempotency-key", key).body(body.to_owned()).send().await.unwrap();
        let repeated = answer.headers().contains_key("idempotent-replayed");
        (answer.status().as_u16(), repeated, answer.text().await.unwrap())
    }
    let say = r#"{"to":{"conversation":"api:test/a"},"text":"hello"}"#;
    let same_but_spelt_otherwise = r#" {"text":"hell\u006f","to":{"conversation":"api:test/a"}} "#;
    let make = r#"{"title":"mine"}"#;
    let (status, repeated, first) = post(&world, "/api/v1/messages", say, "k").await;
    assert_eq!((status, repeated), (202, false));
    let made = post(&world, "/api/v1/sessions", make, "k").await;
    assert_eq!((made.0, made.1), (201, false));
    let receipt: Receipt = serde_json::from_str(&first).unwrap();
    settled(&world.client(), &receipt.id).await;

    let world = world.restart().await;
    for body in [say, same_but_spelt_otherwise] {
        assert_eq!(post(&world, "/api/v1/messages", body, "k").await, (202, true, first.clone()));
    }
    assert_eq!(post(&world, "/api/v1/sessions", make, "k").await, (201, true, made.2));
    let other = say.replace("hello", "other");
    let (status, _, body) = post(&world, "/api/v1/messages", &other, "k").await;
    assert_eq!(status, 409);
    assert!(body.contains("idempotency_conflict"), "{body}");
    let facts = world.client().facts(&receipt.session, &FactsQuery::default()).await.unwrap();
    let queued = facts.items.iter().filter(|fact| matches!(fact.what, What::Rule(RuleFact::Queued { .. })));
    assert_eq!(queued.count(), 1);
}

#[tokio::test]
async fn what_is_named_is_used_or_refused_and_nothing_stands_in_for_it() {
    let world = World::new().await;
    let client = world.client();
    let unknown = To::session("ses_00000000000000000000zzzzzz");
    let refused = client.say(&NewMessage::text(unknown, "x")).await.unwrap_err();
    assert_eq!(code(refused), Code::NotFound);

    let first = client.say(&NewMessage::text(conversation("a"), "one")).await.unwrap();
    settled(&client, &first.id).await;
    let new = client.say(&NewMessage::text(To::new_session(IfNew::default()), "x")).await.unwrap();
    assert!(new.new && new.session != first.session);

    let ChangeOutcome::Done(ended) = client.end(&first.session).await.unwrap() else { panic!("pending") };
    assert_eq!((ended.state, ended.why), (SessionState::Ended, Some(EndWhy::Asked)));
    let ChangeOutcome::Done(_) = client.end(&first.session).await.unwrap() else {
        panic!("ending twice is fine")
    };
    let refused = client.say(&NewMessage::text(To::session(&first.session), "x")).await.unwrap_err();
    let problem = refused.problem().unwrap();
    assert_eq!(problem.code, Code::SessionEnded);
    assert!(problem.hint.contains("start anew"), "{problem:?}");

    let explain = |query: RouteQuery| {
        let client = client.clone();
        async move { client.explain(&query).await.unwrap() }
    };
    let named = explain(RouteQuery { session: Some(first.session.clone()), ..Default::default() }).await;
    assert!(matches!(named, Explained::Refused { code: Code::SessionEnded, ended: Some(EndWhy::Asked), .. }));
    let talk = explain(RouteQuery { conversation: Some("api:test/a".into()), ..Default::default() }).await;
    assert!(
        matches!(talk, Explained::New { previous: Some(ref before), .. } if before.session == first.session)
    );
    let fresh = explain(RouteQuery { new: Some(true), ..Default::default() }).await;
    assert!(matches!(fresh, Explained::New { conversation: None, previous: None, .. }));

    let anew = client.say(&NewMessage::text(conversation("a"), "two")).await.unwrap();
    let previous = Previous { session: first.session, why: Some(EndWhy::Asked) };
    assert!(anew.new && anew.previous == Some(previous));
    let bound = explain(RouteQuery { conversation: Some("api:test/a".into()), ..Default::default() }).await;
    assert!(matches!(bound, Explained::Existing { session, .. } if session.id == anew.session));
}

#[tokio::test]
async fn a_new_session_takes_a_conversation_over_and_says_how_to_go_back() {
    let world = World::new().await;
    let client = world.client();
    let first = client.say(&NewMessage::text(conversation("a"), "one")).await.unwrap();
    let address = || Some("api:test/a".to_owned());
    let query = RouteQuery { conversation: address(), new: Some(true), ..Default::default() };
    let before = Previous { session: first.session.clone(), why: None };
    let explained = client.explain(&query).await.unwrap();
    let Explained::New { conversation: bound, previous, why } = explained else { panic!("{explained:?}") };
    assert_eq!((bound, previous.as_ref()), (address(), Some(&before)));
    assert!(why.contains("goes on"), "{why}");

    let new = || To::new_in("api:test/a", IfNew::default());
    let taken = client.say(&NewMessage::text(new(), "two")).await.unwrap();
    assert!(
        taken.new && taken.session != first.session && taken.previous == Some(before.clone()),
        "{taken:?}"
    );
    let next = client.say(&NewMessage::text(conversation("a"), "three")).await.unwrap();
    assert_eq!((next.session, next.new), (taken.session.clone(), false));
    let again = client.receipt(&taken.id, &MessageQuery::default()).await.unwrap();
    assert_eq!(again.previous, Some(before), "it can be read again");
    let go_back = Move { address: "api:test/a".into(), session: first.session.clone() };
    client.move_binding(&go_back).await.unwrap();
    let back = client.say(&NewMessage::text(conversation("a"), "four")).await.unwrap();
    assert_eq!(back.session, first.session);

    let foreign = To::new_in("api:test/a", IfNew { agent: Some("nobody".into()), ..IfNew::default() });
    assert_eq!(code(client.say(&NewMessage::text(foreign, "x")).await.unwrap_err()), Code::UnknownAgent);
    let foreign = To::new_in("slack:T1/C1/1.5", IfNew::default());
    assert_eq!(code(client.say(&NewMessage::text(foreign, "x")).await.unwrap_err()), Code::AddressNotYours);
    let kept = client.say(&NewMessage::text(conversation("a"), "five")).await.unwrap();
    assert_eq!(kept.session, first.session, "what was refused has taken nothing over");
}

#[tokio::test]
async fn a_message_for_another_agent_is_refused_and_says_what_there_is() {
    let world = World::new().await;
    let client = world.client();
    let expect = |agent: &str| {
        let expect = Some(Expect { agent: Some(agent.into()), model: None });
        To::Conversation(ToConversation { conversation: "api:test/a".into(), if_new: None, expect })
    };
    let first = client.say(&NewMessage::text(expect("scripted"), "one")).await.unwrap();
    assert!(first.new);
    let refused = client.say(&NewMessage::text(expect("other"), "two")).await.unwrap_err();
    let problem = refused.problem().unwrap();
    assert_eq!((problem.code, problem.status), (Code::OtherAgent, 409));
    assert!(problem.detail.contains("`scripted`") && problem.detail.contains(&first.session), "{problem:?}");
    // A session that is named has to have it, too, and the route says so beforehand.
    let session = first.session.clone();
    let named = |agent: &str| {
        let expect = Some(Expect { agent: Some(agent.into()), model: None });
        To::Session(ToSession { session: session.clone(), expect })
    };
    let refused = client.say(&NewMessage::text(named("other"), "three")).await.unwrap_err();
    assert_eq!(refused.problem().unwrap().code, Code::OtherAgent);
    client.say(&NewMessage::text(named("scripted"), "four")).await.unwrap();
    let route = |agent: &str, model: Option<&str>| {
        let (agent, model) = (Some(agent.into()), model.map(str::to_owned));
        RouteQuery { session: Some(session.clone()), agent, model, ..RouteQuery::default() }
    };
    for (query, fits) in [
        (route("scripted", None), true),
        (route("other", None), false),
        (route("scripted", Some("fast")), false),
    ] {
        match client.explain(&query).await.unwrap() {
            Explained::Existing { .. } => assert!(fits, "{query:?}"),
            Explained::Refused { code, why, .. } => {
                assert!(!fits && code == Code::OtherAgent && why.contains("`scripted`"), "{query:?}: {why}");
            }
            Explained::New { .. } => panic!("{query:?}"),
        }
    }
    let post = world.ask("POST", "/api/v1/messages").header("content-type", "application/json");
    let said = post.body(r#"{"to":{"new":{},"expect":{}},"text":"x"}"#).send().await.unwrap();
    let body = said.text().await.unwrap();
    assert!(body.contains("goes with `conversation`"), "{body}");
}

#[tokio::test]
async fn a_route_knows_that_a_directory_cannot_be_chosen() {
    let world = World::new().await;
    let client = world.client();
    let query = |directory: &str| RouteQuery {
        conversation: Some("api:test/a".into()),
        directory: Some(directory.into()),
        ..Default::default()
    };
    let explained = client.explain(&query("/gone/away")).await.unwrap();
    assert!(matches!(explained, Explained::Refused { .. }), "{explained:?}");
    assert!(matches!(client.explain(&query("/srv")).await.unwrap(), Explained::New { .. }));
    client.say(&NewMessage::text(conversation("a"), "one")).await.unwrap();
    let explained = client.explain(&query("/gone/away")).await.unwrap();
    assert!(matches!(explained, Explained::Existing { .. }), "no session would be made: {explained:?}");
}

#[tokio::test]
async fn a_conversation_that_was_moved_says_which_session_it_had_before() {
    let world = World::new().await;
    let client = world.client();
    let query = RouteQuery { conversation: Some("api:test/a".into()), ..Default::default() };
    let before = async || match client.explain(&query).await.unwrap() {
        Explained::Existing { before, .. } => before,
        other => panic!("{other:?}"),
    };
    let first = client.say(&NewMessage::text(conversation("a"), "one")).await.unwrap();
    assert_eq!(before().await, None);
    let other = client.say(&NewMessage::text(To::new_session(IfNew::default()), "two")).await.unwrap();
    let to = |session: &str| Move { address: "api:test/a".into(), session: session.into() };
    client.move_binding(&to(&other.session)).await.unwrap();
    assert_eq!(before().await, Some(Previous { session: first.session.clone(), why: None }), "it is open");
    let listed = client.bindings(&PageQuery::default()).await.unwrap().items;
    assert_eq!(listed[0].before, before().await, "the list says the same");
    client.move_binding(&to(&first.session)).await.unwrap();
    assert_eq!(before().await, Some(Previous { session: other.session.clone(), why: None }));
    client.end(&other.session).await.unwrap();
    assert_eq!(before().await.and_then(|before| before.why), Some(EndWhy::Asked));
}

#[tokio::test]
async fn a_failed_receipt_says_how_to_go_on() {
    let world = World::new().await;
    let client = world.client();
    let say = |text: &'static str| {
        let client = client.clone();
        async move {
            let to = To::new_session(IfNew::default());
            let receipt = client.say(&NewMessage::text(to, text)).await.unwrap();
            settled(&client, &receipt.id).await
        }
    };
    let refused = say("!refuse").await;
    assert_eq!((refused.state, refused.why.as_deref()), (ReceiptState::Failed, Some("refused")));
    assert!(refused.hint.unwrap().contains("mend that"));
    let failed = say("!fail after").await;
    assert_eq!((failed.state, failed.why.as_deref()), (ReceiptState::Failed, Some("transient")));
    assert!(failed.hint.is_some());
}

#[tokio::test]
async fn a_repeated_move_is_the_same_move() {
    let world = World::new().await;
    let client = world.client();
    let made = |title: &'static str| {
        let client = client.clone();
        async move {
            client.make_session(&NewSession { title: Some(title.into()), ..NewSession::default() }).await
        }
    };
    let (one, two) = (made("one").await.unwrap().id, made("two").await.unwrap().id);
    let to = |key: &'static str, session: &str| {
        let body = serde_json::json!({ "address": "api:test/m", "session": session }).to_string();
        let post = world.ask("POST", "/api/v1/bindings/move").header("content-type", "application/json");
        let post = post.header("idempotency-key", key).body(body);
        async move { post.send().await.unwrap().status().as_u16() }
    };
    assert_eq!((to("k1", &one).await, to("k2", &two).await), (200, 200));
    // The first one arrives once more, late: it must not undo the second one.
    assert_eq!((to("k1", &one).await, to("k1", &two).await), (200, 409));
    let bound = client.bindings(&PageQuery::default()).await.unwrap().items;
    assert_eq!(bound.iter().map(|row| &row.session).collect::<Vec<_>>(), [&two]);
}

#[tokio::test]
async fn waiting_messages_can_be_edited_held_moved_and_taken_back() {
    let world = World::new().await;
    let client = world.client();
    let long = client.say(&NewMessage::text(conversation("q"), "!sleep 60000")).await.unwrap();
    running(&client, &long).await;
    let to = || To::session(&long.session);
    let mut waiting = Vec::new();
    for word in ["one", "two", "three"] {
        waiting.push(client.say(&NewMessage::text(to(), word)).await.unwrap().id);
    }
    let edit = |revision| MessageChange::Text(EditText { text: "uno".into(), revision });
    let ChangeOutcome::Done(edited) = client.change_message(&waiting[0], &edit(0)).await.unwrap() else {
        panic!()
    };
    assert_eq!(edited.revision, 1);
    assert_eq!(code(client.change_message(&waiting[0], &edit(0)).await.unwrap_err()), Code::Changed);
    assert_eq!(code(client.change_message(&long.id, &edit(0)).await.unwrap_err()), Code::TooLate);

    let hold = |held| MessageChange::Hold(Hold { held, there: (!held).then_some(false) });
    let held = client.change_message(&waiting[1], &hold(true)).await.unwrap().into_inner();
    assert_eq!((held.state, held.why.as_deref()), (ReceiptState::Held, Some("asked")));
    assert!(held.hint.is_some());
    let released = client.change_message(&waiting[1], &hold(false)).await.unwrap().into_inner();
    assert_eq!(released.state, ReceiptState::Waiting);

    let order: Vec<String> = waiting.iter().rev().cloned().collect();
    let queue = client.reorder(&long.session, &Order { order }).await.unwrap().into_inner();
    let texts: Vec<&str> = queue.items.iter().map(|item| item.text.as_str()).collect();
    assert_eq!(texts, ["!sleep 60000", "three", "two", "uno"]);
    let short = Order { order: vec![waiting[0].clone()] };
    assert_eq!(code(client.reorder(&long.session, &short).await.unwrap_err()), Code::Changed);

    let withdrawn = client.withdraw(&waiting[2]).await.unwrap().into_inner();
    assert_eq!(withdrawn.state, ReceiptState::Withdrawn);
    assert_eq!(code(client.withdraw(&waiting[2]).await.unwrap_err()), Code::TooLate);
    assert_eq!(code(client.withdraw(&long.id).await.unwrap_err()), Code::TooLate);

    for _ in 0..2 {
        client.stop(&long.id).await.unwrap();
    }
    assert_eq!(settled(&client, &long.id).await.state, ReceiptState::Stopped);
    assert_eq!(settled(&client, &waiting[0]).await.state, ReceiptState::Answered);
    let stopped = client.stop(&long.id).await.unwrap().into_inner();
    assert_eq!(stopped.state, ReceiptState::Stopped, "stopping what is over changes nothing");
}

#[tokio::test]
async fn a_question_is_answered_once() {
    let world = World::new().await;
    let client = world.client();
    let asked = client.say(&NewMessage::text(conversation("ask"), "!ask Bash")).await.unwrap();
    let mut follow = client.follow(&asked.session, 0);
    let id = loop {
        if let api::client::FollowItem::Fact(Fact {
            what: What::Rule(RuleFact::Asked { approval, .. }),
            ..
        }) = follow.next().await.unwrap()
        {
            break approval;
        }
    };
    let open = client.approvals(&ApprovalsQuery::default()).await.unwrap().items;
    assert_eq!(open.iter().map(|one| &one.id).collect::<Vec<_>>(), [&id]);
    let answered = client.answer(&id, Answer::Yes).await.unwrap().into_inner();
    assert_eq!((answered.state, answered.answer), (ApprovalState::Answered, Some(Answer::Yes)));
    assert_eq!(code(client.answer(&id, Answer::No).await.unwrap_err()), Code::TooLate);
    let nobody = "apr_00000000000000000000zzzzzz";
    assert_eq!(code(client.answer(nobody, Answer::No).await.unwrap_err()), Code::NotFound);
    assert_eq!(settled(&client, &asked.id).await.state, ReceiptState::Answered);
}

#[tokio::test]
async fn lists_are_pages_that_show_everything_once() {
    let world = World::new().await;
    let client = world.client();
    for n in 0..7 {
        let conversation = Some(format!("api:test/%C3%A9{n}"));
        let title = Some(format!("number {n}"));
        client.make_session(&NewSession { title, conversation, ..Default::default() }).await.unwrap();
    }
    let (mut titles, mut cursor) = (Vec::new(), None);
    loop {
        let query = SessionsQuery { limit: Some(3), cursor, ..Default::default() };
        let page = client.sessions(&query).await.unwrap();
        titles.extend(page.items.into_iter().map(|session| session.title.unwrap()));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    titles.sort();
    assert_eq!(titles, (0..7).map(|n| format!("number {n}")).collect::<Vec<_>>());

    let (mut addresses, mut cursor) = (Vec::new(), None);
    loop {
        let page = client.bindings(&PageQuery { limit: Some(2), cursor }).await.unwrap();
        addresses.extend(page.items.into_iter().map(|binding| binding.address));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(addresses, (0..7).map(|n| format!("api:test/%C3%A9{n}")).collect::<Vec<_>>());

    let heads = client.heads(&PageQuery { limit: Some(500), cursor: None }).await.unwrap();
    assert_eq!(heads.items.len(), 7);
    let after = client.heads(&PageQuery { limit: None, cursor: heads.next.clone() }).await.unwrap();
    assert_eq!((after.items.len(), after.next), (0, heads.next));
}

#[tokio::test]
async fn a_session_can_be_renamed_archived_and_given_a_conversation() {
    let world = World::new().await;
    let client = world.client();
    let made = client.make_session(&NewSession::default()).await.unwrap();
    let change = SessionChange { title: Some("Ünïcode".into()), archived: Some(true) };
    let session = client.change_session(&made.id, &change).await.unwrap();
    assert_eq!((session.title.as_deref(), session.archived), (Some("Ünïcode"), true));
    assert!(client.sessions(&SessionsQuery::default()).await.unwrap().items.is_empty());
    let all = SessionsQuery { which: Some(Which::All), ..Default::default() };
    assert_eq!(client.sessions(&all).await.unwrap().items.len(), 1);

    let to = Move { address: "api:test/m".into(), session: made.id.clone() };
    for _ in 0..2 {
        assert_eq!(client.move_binding(&to).await.unwrap(), to);
    }
    let said = client.say(&NewMessage::text(conversation("m"), "x")).await.unwrap();
    assert_eq!(said.session, made.id);
    let taken = NewSession { conversation: Some("api:test/m".into()), ..Default::default() };
    assert_eq!(code(client.make_session(&taken).await.unwrap_err()), Code::Changed);
    settled(&client, &said.id).await;
    client.end(&made.id).await.unwrap();
    assert_eq!(code(client.move_binding(&to).await.unwrap_err()), Code::SessionEnded);
    let nowhere = Move { session: "ses_00000000000000000000zzzzzz".into(), ..to };
    assert_eq!(code(client.move_binding(&nowhere).await.unwrap_err()), Code::NotFound);
}

#[tokio::test]
async fn what_may_not_be_seen_does_not_exist_and_a_view_is_only_a_view() {
    let world = World::new().await;
    let client = world.client();
    let (session, message) = world.foreign("!sleep 60000").await;
    let (_, waiting) = {
        let other = world.foreign("x").await;
        (other.0, other.1)
    };
    let (id, said) = (session.to_string(), message.to_string());
    assert_eq!(code(client.session(&id).await.unwrap_err()), Code::NotFound);
    assert_eq!(code(client.receipt(&said, &MessageQuery::default()).await.unwrap_err()), Code::NotFound);
    assert_eq!(
        code(client.receipt(&waiting.to_string(), &MessageQuery::default()).await.unwrap_err()),
        Code::NotFound
    );
    assert_eq!(code(client.facts(&id, &FactsQuery::default()).await.unwrap_err()), Code::NotFound);
    assert_eq!(code(client.follow(&id, 0).next().await.unwrap_err()), Code::NotFound);
    assert_eq!(code(client.queue(&id).await.unwrap_err()), Code::NotFound);
    assert_eq!(code(client.end(&id).await.unwrap_err()), Code::NotFound);
    assert_eq!(code(client.stop(&said).await.unwrap_err()), Code::NotFound);
    assert!(client.sessions(&SessionsQuery::default()).await.unwrap().items.is_empty());
    assert!(client.heads(&PageQuery::default()).await.unwrap().items.is_empty());

    let me = crate::world::ANN;
    world.store.grant(session, me, Some(Grant::View));
    assert_eq!(client.session(&id).await.unwrap().id, id);
    let to = || NewMessage::text(To::session(&id), "x");
    assert_eq!(code(client.say(&to()).await.unwrap_err()), Code::NotAllowed);
    assert_eq!(code(client.end(&id).await.unwrap_err()), Code::NotAllowed);
    world.store.grant(session, me, Some(Grant::Prompt));
    client.say(&to()).await.unwrap();
    let edit = MessageChange::Text(EditText { text: "mine".into(), revision: 0 });
    assert_eq!(code(client.change_message(&said, &edit).await.unwrap_err()), Code::NotYourWords);
}

#[tokio::test]
async fn an_address_belongs_to_whom_it_names() {
    let world = World::new().await;
    let say = |client: Client, address: &'static str| async move {
        client.say(&NewMessage::text(To::conversation(address, None), "x")).await
    };
    let foreign = ["slack:T/C/1.5", "schedule:ann", "smtp:ann/1", "web-2:ann/1"];
    for address in ["web:bob/1", "cli:host/bob/%2Fw"].into_iter().chain(foreign) {
        assert_eq!(code(say(world.client(), address).await.unwrap_err()), Code::AddressNotYours);
    }
    for address in ["web:ann/1", "cli:host/ann/%2Fw", "api:anything/1"] {
        say(world.client(), address).await.unwrap();
    }
    let robot = Client::new(&world.url, ROBOT).unwrap();
    assert_eq!(code(say(robot.clone(), "api:other/1").await.unwrap_err()), Code::AddressNotYours);
    say(robot, "api:robot/1").await.unwrap();
}

#[tokio::test]
async fn limits_are_refusals_that_say_so() {
    let limits = Limits { open_max: 2, pending_max: 2, ..Limits::default() };
    let world = World::with(limits, |_| {}).await;
    let client = world.client();
    let long = client.say(&NewMessage::text(conversation("a"), "!sleep 60000")).await.unwrap();
    let to = || NewMessage::text(To::session(&long.session), "x");
    client.say(&to()).await.unwrap();
    assert_eq!(code(client.say(&to()).await.unwrap_err()), Code::QueueFull);
    client.make_session(&NewSession::default()).await.unwrap();
    let more = client.make_session(&NewSession::default()).await.unwrap_err();
    assert_eq!(code(more), Code::TooManyOpenSessions);
    let more = client.say(&NewMessage::text(conversation("b"), "x")).await.unwrap_err();
    assert_eq!(code(more), Code::TooManyOpenSessions);
}

#[tokio::test]
async fn the_house_can_be_asked_about_itself() {
    let world = World::new().await;
    let client = world.client();
    assert_eq!(client.me().await.unwrap().handle, "ann");
    let agents = client.agents().await.unwrap().items;
    let agent = agents.iter().find(|agent| agent.default).unwrap();
    assert_eq!((agent.name.as_str(), agent.here), ("scripted", true));
    assert_eq!(client.nodes().await.unwrap().items.len(), 1);
    let ready = world.ask("GET", "/readyz").send().await.unwrap();
    assert_eq!(ready.status().as_u16(), 200);
    let metrics = world.ask("GET", "/metrics").send().await.unwrap().text().await.unwrap();
    for figure in [
        "homing_http_requests_total{route=\"/api/v1/me\",status=\"200\"} 1",
        "homing_process_resident_memory_bytes",
        "homing_kept_sessions 0",
        "homing_http_streams 0",
        "homing_store_commits",
        "homing_audit_reads_dropped 0",
    ] {
        assert!(metrics.contains(figure), "{figure} is not in {metrics}");
    }
    let bytes = resident(&metrics);
    assert!(bytes > 1_000_000, "{bytes}");
    let document = world.ask("GET", "/api/v1/openapi.json").send().await.unwrap();
    let document: serde_json::Value = document.json().await.unwrap();
    assert_eq!(document["info"]["title"], "Homing");
}

fn resident(metrics: &str) -> u64 {
    let line = metrics.lines().find(|line| line.starts_with("homing_process_resident_memory_bytes "));
    line.unwrap().rsplit_once(' ').unwrap().1.parse().unwrap()
}

#[tokio::test]
async fn a_wait_is_cut_short_when_the_server_goes_and_requests_in_flight_are_answered() {
    // It goes before its grace is over, so nobody was waited for.
    let mut world = World::with(Default::default(), |config| config.grace = 3 * SOON).await;
    let client = world.client();
    let long = client.say(&NewMessage::text(conversation("a"), "!sleep 60000")).await.unwrap();
    running(&client, &long).await;
    let mut waiting = TcpStream::connect(world.host()).await.unwrap();
    let request = format!(
        "GET /api/v1/messages/{}?wait=60 HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n",
        long.id,
        world.host()
    );
    waiting.write_all(request.as_bytes()).await.unwrap();
    // Who came later has an answer, so the first was heard.
    world.client().me().await.unwrap();
    tokio::time::timeout(SOON, world.close()).await.unwrap();
    let mut answer = String::new();
    waiting.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"state\":\"running\""), "{answer}");
    assert!(world.http.get(&world.url).send().await.is_err());
}
