//! Where and how a session acts, from outside: worktrees, follow-ups that were written elsewhere, undo, forks, readiness.

use crate::rounds::{code, running, settled};
use crate::town::SOON;
use crate::world::World;
use api::client::{ChangeOutcome, Client, FollowItem};
use api::*;
use kernel::{Grant, Role};
use std::sync::atomic::Ordering;

fn enter(name: &str, now: bool) -> ScopeRequest {
    let enter = EnterWorktree { name: name.to_owned(), base: None, branch: None };
    ScopeRequest::Enter(ScopeEnter { enter, now })
}

const EXIT: ScopeRequest = ScopeRequest::Exit(ScopeExit { exit: true, now: false });

fn set(agent: Option<&str>, model: Option<&str>) -> ScopeRequest {
    let set =
        ScopeSet { agent: agent.map(str::to_owned), model: model.map(str::to_owned), ..ScopeSet::default() };
    ScopeRequest::Set(ScopeSetting { set, now: false })
}

fn release(there: bool) -> MessageChange {
    MessageChange::Hold(Hold { held: false, there: Some(there) })
}

/// Waits for a fact of a session.
async fn fact(client: &Client, session: &str, is_it: impl Fn(&RuleFact) -> bool) -> RuleFact {
    let mut follow = client.follow(session, 0);
    let wait = async {
        loop {
            if let FollowItem::Fact(Fact { what: What::Rule(rule), .. }) = follow.next().await.unwrap()
                && is_it(&rule)
            {
                return rule;
            }
        }
    };
    tokio::time::timeout(SOON, wait).await.expect("it happens")
}

/// The session, once it has come to this epoch.
pub(crate) async fn arrived(client: &Client, session: &str, epoch: u32) -> Session {
    fact(client, session, |fact| matches!(fact, RuleFact::ScopeChanged { epoch: to, .. } if *to == epoch))
        .await;
    client.session(session).await.unwrap()
}

/// A session in this directory that has had a turn.
pub(crate) async fn shop(client: &Client, directory: &str) -> String {
    let new = IfNew { directory: Some(directory.to_owned()), ..IfNew::default() };
    let said = client.say(&NewMessage::text(To::new_session(new), "hello")).await.unwrap();
    assert_eq!(settled(client, &said.id).await.state, ReceiptState::Answered);
    said.session
}

pub(crate) async fn say(client: &Client, session: &str, text: &str) -> Receipt {
    client.say(&NewMessage::text(To::session(session), text)).await.unwrap()
}

/// Something that runs until it is stopped.
async fn long_turn(client: &Client, session: &str) -> Receipt {
    let long = say(client, session, "!sleep 60000").await;
    let starts =
        |fact: &RuleFact| matches!(fact, RuleFact::TurnStarted { message, .. } if *message == long.id);
    fact(client, session, starts).await;
    long
}

pub(crate) async fn ran_in(client: &Client, message: &str) -> String {
    let receipt = settled(client, message).await;
    assert_eq!(receipt.state, ReceiptState::Answered, "{receipt:?}");
    receipt.answer.unwrap_or_default().trim().lines().last().unwrap_or_default().to_owned()
}

async fn state(client: &Client, message: &str) -> (ReceiptState, Option<String>) {
    let receipt = client.receipt(message, &MessageQuery::default()).await.unwrap();
    (receipt.state, receipt.why)
}

#[tokio::test]
async fn a_change_waits_for_the_turn_and_follow_ups_wait_for_somebody_to_say_where_they_belong() {
    let world = World::new().await;
    let client = world.client();
    let session = shop(&client, "/srv/shop").await;
    let long = long_turn(&client, &session).await;
    let mut texts = Vec::new();
    for word in ["here", "there", "nowhere"] {
        texts.push(say(&client, &session, &format!("{word}\n!pwd")).await.id);
    }
    assert_eq!(code(client.change_scope(&session, &enter("blue", true)).await.unwrap_err()), Code::Busy);
    let ChangeOutcome::Done(asked) = client.change_scope(&session, &enter("blue", false)).await.unwrap()
    else {
        panic!("pending")
    };
    assert_eq!((asked.epoch, asked.worktree), (0, None), "nothing moves under a turn");
    for another in [enter("red", false), set(None, Some("small"))] {
        assert_eq!(code(client.change_scope(&session, &another).await.unwrap_err()), Code::ScopeChanging);
    }
    client.stop(&long.id).await.unwrap();
    let there = arrived(&client, &session, 1).await;
    assert_eq!(there.directory, "/trees/blue");
    assert_eq!(
        there.worktree,
        Some(ScopeWorktree { name: "blue".to_owned(), home: "/srv/shop".to_owned() }),
        "it knows where it goes back to"
    );
    assert_eq!(
        code(client.change_scope(&session, &enter("red", false)).await.unwrap_err()),
        Code::InWorktree
    );
    for message in &texts {
        assert_eq!(state(&client, message).await, (ReceiptState::Held, Some("other_scope".to_owned())));
    }
    let receipt = client.receipt(&texts[0], &MessageQuery::default()).await.unwrap();
    assert_eq!(receipt.epoch, Some(0), "it says for which scope it was written");
    assert!(receipt.hint.unwrap().contains("there"), "and what can be done");
    let ready = client.readiness(&session).await.unwrap();
    let queue = ready.parts.iter().find(|part| part.name == "queue").unwrap();
    assert_eq!((ready.state, queue.state.as_str()), (Ready::Blocked, "blocked"), "{ready:?}");
    assert!(queue.remedy.is_some());

    client.change_message(&texts[0], &release(false)).await.unwrap();
    assert_eq!(ran_in(&client, &texts[0]).await, "/trees/blue", "sent here");
    client.change_message(&texts[1], &release(true)).await.unwrap();
    assert_eq!(ran_in(&client, &texts[1]).await, "/srv/shop", "sent there");
    assert_eq!(client.session(&session).await.unwrap().epoch, 2, "and the session went along");
    let withdrawn = client.withdraw(&texts[2]).await.unwrap().into_inner();
    assert_eq!(withdrawn.state, ReceiptState::Withdrawn, "or nowhere");
    assert_eq!(client.readiness(&session).await.unwrap().state, Ready::Ready);
    assert_eq!(code(client.change_scope(&session, &EXIT).await.unwrap_err()), Code::NotInWorktree);
}

#[tokio::test]
async fn a_change_that_waits_can_be_given_up_once() {
    let world = World::new().await;
    let client = world.client();
    let session = shop(&client, "/srv/shop").await;
    let long = long_turn(&client, &session).await;
    client.change_scope(&session, &set(Some("keyed"), None)).await.unwrap();
    let waits = say(&client, &session, "after it").await;
    client.keep_scope(&session).await.unwrap();
    assert_eq!(code(client.keep_scope(&session).await.unwrap_err()), Code::TooLate);
    client.stop(&long.id).await.unwrap();
    assert_eq!(settled(&client, &waits.id).await.state, ReceiptState::Answered, "nothing was held");
    let session = client.session(&session).await.unwrap();
    assert_eq!((session.epoch, session.agent.as_str()), (0, "scripted"));
}

#[tokio::test]
async fn a_worktree_that_cannot_be_made_leaves_the_scope_as_it_was_and_says_why() {
    let world = World::new().await;
    let client = world.client();
    let session = shop(&client, "/srv/shop").await;
    client.change_scope(&session, &enter("broken", false)).await.unwrap();
    fact(&client, &session, |fact| matches!(fact, RuleFact::ErrandFailed { .. })).await;
    let now = client.session(&session).await.unwrap();
    assert_eq!((now.epoch, now.directory.as_str()), (0, "/srv/shop"));
    let facts = client.facts(&session, &FactsQuery::default()).await.unwrap();
    assert!(notices(&facts).iter().any(|notice| notice.contains("it is broken")), "{facts:?}");
}

fn notices(facts: &Facts) -> Vec<&str> {
    let told = facts.items.iter().filter_map(|fact| match &fact.what {
        What::Story(told) => match &told.story {
            Story::Notice { text } => Some(text.as_str()),
            _ => None,
        },
        _ => None,
    });
    told.collect()
}

#[tokio::test]
async fn a_new_session_begins_in_its_worktree_and_what_is_said_meanwhile_belongs_there() {
    let world = World::new().await;
    world.grove.act_ms.store(50, Ordering::Relaxed);
    let client = world.client();
    let worktree = |name: &str| Some(OwnWorktree { name: Some(name.to_owned()), ..OwnWorktree::default() });
    let new = IfNew { directory: Some("/srv/shop".into()), worktree: worktree("blue"), ..IfNew::default() };
    let said = client.say(&NewMessage::text(To::new_session(new), "!pwd")).await.unwrap();
    assert_eq!(ran_in(&client, &said.id).await, "/trees/blue");
    let directory = Some("/srv/shop".to_owned());
    let new = NewSession { directory, worktree: worktree("red"), ..NewSession::default() };
    let made = client.make_session(&new).await.unwrap().id;
    assert_eq!(arrived(&client, &made, 1).await.directory, "/trees/red");
    let to =
        To::conversation("api:test/tree", Some(IfNew { worktree: worktree("green"), ..IfNew::default() }));
    let said = client.say(&NewMessage::text(to.clone(), "!pwd")).await.unwrap();
    assert_eq!(ran_in(&client, &said.id).await, "/trees/green");
    let again = client.say(&NewMessage::text(to, "!pwd")).await.unwrap();
    assert!(again.if_new_ignored && again.session == said.session);
}

#[tokio::test]
async fn what_was_written_for_an_earlier_epoch_is_held_and_an_epoch_that_never_was_is_refused() {
    let world = World::new().await;
    let client = world.client();
    let session = shop(&client, "/srv/shop").await;
    client.change_scope(&session, &enter("blue", true)).await.unwrap();
    arrived(&client, &session, 1).await;
    client.change_scope(&session, &EXIT).await.unwrap();
    assert_eq!(arrived(&client, &session, 2).await.directory, "/srv/shop");
    let under = |epoch| NewMessage::text(To::session(&session), "!pwd").delivered(None, Some(epoch));
    let now = client.say(&under(2)).await.unwrap();
    assert_eq!(ran_in(&client, &now.id).await, "/srv/shop");
    // The same place as at first, and another epoch all the same.
    let stale = client.say(&under(0)).await.unwrap();
    fact(&client, &session, |fact| matches!(fact, RuleFact::Held { message, .. } if *message == stale.id))
        .await;
    assert_eq!(state(&client, &stale.id).await, (ReceiptState::Held, Some("other_scope".to_owned())));
    client.change_message(&stale.id, &release(true)).await.unwrap();
    assert_eq!(ran_in(&client, &stale.id).await, "/srv/shop");
    assert_eq!(code(client.say(&under(3)).await.unwrap_err()), Code::OtherScope);
    let new = NewMessage::text(To::new_session(IfNew::default()), "x").delivered(None, Some(1));
    assert_eq!(code(client.say(&new).await.unwrap_err()), Code::OtherScope);
}

#[tokio::test]
async fn words_go_into_the_turn_where_the_agent_takes_them_and_else_wait_and_say_so() {
    let world = World::new().await;
    let client = world.client();
    for (agent, goes_in) in [("scripted", true), ("keyed", false)] {
        let new = IfNew { agent: Some(agent.to_owned()), ..IfNew::default() };
        let long = client.say(&NewMessage::text(To::new_session(new), "!sleep 60000")).await.unwrap();
        running(&client, &long).await;
        let words = NewMessage::text(To::session(&long.session), "also this");
        let added = client.say(&words.delivered(Some(Delivery::Steer), None)).await.unwrap();
        assert_eq!(added.delivery, Delivery::Steer);
        fact(&client, &long.session, |fact| match fact {
            RuleFact::Steered { message, .. } => goes_in && *message == added.id,
            RuleFact::Queued { message, .. } => !goes_in && *message == added.id,
            _ => false,
        })
        .await;
        let receipt = client.receipt(&added.id, &MessageQuery::default()).await.unwrap();
        let expected = if goes_in { ReceiptState::Running } else { ReceiptState::Waiting };
        assert_eq!((receipt.state, receipt.turn), (expected, goes_in.then_some(1)), "{agent}");
        assert_eq!(receipt.hint.is_some(), !goes_in, "it says that it waits: {receipt:?}");
        client.stop(&long.id).await.unwrap();
        settled(&client, &long.id).await;
    }
}

#[tokio::test]
async fn an_interruption_stops_the_turn_and_comes_before_what_waits() {
    let world = World::new().await;
    let client = world.client();
    let session = shop(&client, "/srv/shop").await;
    let long = long_turn(&client, &session).await;
    let waits = say(&client, &session, "later").await;
    let words = NewMessage::text(To::session(&session), "instead");
    let instead = client.say(&words.delivered(Some(Delivery::Interrupt), None)).await.unwrap();
    assert_eq!(settled(&client, &long.id).await.state, ReceiptState::Stopped);
    let (first, second) = (settled(&client, &instead.id).await, settled(&client, &waits.id).await);
    assert_eq!((first.state, second.state), (ReceiptState::Answered, ReceiptState::Answered));
    assert!(first.turn < second.turn, "{first:?} {second:?}");
}

#[tokio::test]
async fn what_a_turn_changed_is_shown_and_put_back_between_turns() {
    let world = World::new().await;
    let client = world.client();
    let session = shop(&client, "/srv/shop").await;
    let changes = client.changes(&session, 1).await.unwrap();
    assert!(changes.known && changes.cut, "a long patch is cut: {}", changes.patch.len());
    let paths: Vec<_> = changes.files.iter().map(|file| (file.path.as_str(), file.plus)).collect();
    assert_eq!(paths, [("a.txt", Some(1))]);
    assert_eq!(code(client.changes(&session, 2).await.unwrap_err()), Code::NotFound);

    let long = long_turn(&client, &session).await;
    assert_eq!(code(client.undo(&session, &undo_of(1)).await.unwrap_err()), Code::Busy);
    client.stop(&long.id).await.unwrap();
    settled(&client, &long.id).await;
    let number = client.session(&session).await.unwrap().number;
    let preview = client.preview_undo(&session, 1).await.unwrap();
    let files: Vec<_> = preview.files.iter().map(|file| (file.path.as_str(), file.kind.as_str())).collect();
    assert_eq!((preview.possible, files), (true, vec![("a.txt", "restored")]));
    assert_eq!(client.session(&session).await.unwrap().number, number, "nothing was written");
    client.undo(&session, &undo_of(1)).await.unwrap();
    fact(&client, &session, |fact| matches!(fact, RuleFact::Undone { turn: 1 })).await;

    *world.grove.trodden.lock().unwrap() = vec!["a.txt".to_owned(), "b.txt".to_owned()];
    let before = client.session(&session).await.unwrap().number;
    let refused = client.undo(&session, &undo_of(1)).await.unwrap_err();
    let problem = refused.problem().unwrap();
    assert_eq!((problem.status, problem.code), (409, Code::TouchedSince));
    let touched = problem.touched.as_ref().unwrap();
    assert_eq!((touched.files.join(" "), touched.more), ("a.txt b.txt".to_owned(), 0));
    assert!(problem.detail.contains("a.txt, b.txt"), "each is named: {}", problem.detail);
    let preview = client.preview_undo(&session, 1).await.unwrap();
    assert_eq!((preview.possible, preview.touched.join(" ")), (false, "a.txt b.txt".to_owned()));
    let facts = client.facts(&session, &FactsQuery::default()).await.unwrap();
    assert_eq!(client.session(&session).await.unwrap().number, before, "nothing was written: {facts:?}");
    let undone =
        facts.items.iter().filter(|fact| matches!(fact.what, What::Rule(RuleFact::Undone { .. }))).count();
    assert_eq!(undone, 1);

    client.change_scope(&session, &enter("blue", true)).await.unwrap();
    arrived(&client, &session, 1).await;
    assert_eq!(code(client.undo(&session, &undo_of(1)).await.unwrap_err()), Code::OtherScope);
    assert_eq!(code(client.preview_undo(&session, 1).await.unwrap_err()), Code::OtherScope);
    let outside = shop(&client, "/elsewhere").await;
    assert!(!client.changes(&outside, 1).await.unwrap().known, "without version control nobody can tell");
}

#[tokio::test]
async fn a_fork_is_made_once_under_its_key_and_acts_in_a_tree_of_its_own() {
    let world = World::new().await;
    let client = world.client();
    let session = shop(&client, "/srv/shop").await;
    let ask = || {
        let post = world.ask("POST", &format!("/api/v1/sessions/{session}/fork"));
        post.header("idempotency-key", "k").json(&serde_json::json!({"at": 1, "title": "mine"})).send()
    };
    let first = ask().await.unwrap();
    assert_eq!(first.status().as_u16(), 201);
    let location = first.headers()["location"].to_str().unwrap().to_owned();
    let made: Made = first.json().await.unwrap();
    assert_eq!(location, format!("/api/v1/sessions/{}", made.id));
    let again = ask().await.unwrap();
    assert!(again.headers().contains_key("idempotent-replayed"));
    assert_eq!(again.json::<Made>().await.unwrap(), made);
    let fork = arrived(&client, &made.id, 1).await;
    assert!(world.grove.notes().contains(&"fork after 1".to_owned()));
    assert_eq!(fork.origin, Some(Origin { session: session.clone(), turn: 1 }));
    assert_eq!((fork.title.as_deref(), fork.worktree.unwrap().home.as_str()), (Some("mine"), "/srv/shop"));
    let said = say(&client, &made.id, "!pwd").await;
    assert!(ran_in(&client, &said.id).await.starts_with("/trees/"));
    let long = long_turn(&client, &session).await;
    let running = NewFork { at: Some(2), title: None };
    assert_eq!(code(client.fork(&session, &running).await.unwrap_err()), Code::NotFound, "it is not over");
    client.stop(&long.id).await.unwrap();
}

#[tokio::test]
async fn a_fork_needs_the_right_to_act_there_and_a_place_that_is_theirs_to_choose() {
    let world = World::new().await;
    let client = world.client();
    let session = shop(&client, "/srv/shop").await;
    let bob = world.let_in("bob", Role::Member).await;
    let bobs = world.client_of(&bob.token);
    let fork = async || bobs.fork(&session, &NewFork::default()).await.map_err(code);
    assert_eq!(fork().await.unwrap_err(), Code::NotFound);
    let id = session.parse().unwrap();
    world.store.grant(id, bob.by.person, Some(Grant::View));
    assert_eq!(fork().await.unwrap_err(), Code::NotAllowed, "who may look gets no shell by it");
    world.store.grant(id, bob.by.person, Some(Grant::Prompt));
    assert_eq!(
        fork().await.unwrap_err(),
        Code::DirectoryNotYours,
        "a fork stays when the grant is taken back"
    );
    let body = serde_json::json!({"directory": "/srv", "to": {"user": bob.by.person.to_string()}});
    let given = world.ask("PUT", "/api/v1/roots").json(&body).send().await.unwrap();
    assert_eq!(given.status().as_u16(), 200);
    let made = fork().await.unwrap();
    assert_eq!(bobs.session(&made.id).await.unwrap().owner, bob.by.person.to_string());
    assert_eq!(code(client.session(&made.id).await.unwrap_err()), Code::NotFound, "it is bob's alone");
}

#[tokio::test]
async fn going_back_with_a_held_message_takes_the_right_to_change_the_scope() {
    let world = World::new().await;
    let client = world.client();
    let session = shop(&client, "/srv/shop").await;
    let bob = world.let_in("bob", Role::Member).await;
    let bobs = world.client_of(&bob.token);
    world.store.grant(session.parse().unwrap(), bob.by.person, Some(Grant::Prompt));
    assert_eq!(code(bobs.change_scope(&session, &enter("blue", false)).await.unwrap_err()), Code::NotAllowed);
    let long = long_turn(&client, &session).await;
    let mine = bobs.say(&NewMessage::text(To::session(&session), "!pwd")).await.unwrap();
    client.change_scope(&session, &enter("blue", false)).await.unwrap();
    client.stop(&long.id).await.unwrap();
    arrived(&client, &session, 1).await;
    assert_eq!(code(bobs.change_message(&mine.id, &release(true)).await.unwrap_err()), Code::NotAllowed);
    bobs.change_message(&mine.id, &release(false)).await.unwrap();
    assert_eq!(ran_in(&bobs, &mine.id).await, "/trees/blue", "sent here, as whoever said it may");
    assert_eq!(client.session(&session).await.unwrap().epoch, 1);
}

fn undo_of(turn: u32) -> UndoTurn {
    UndoTurn { turn, ..UndoTurn::default() }
}

#[tokio::test]
async fn an_undo_of_what_is_not_certain_to_be_the_agents_is_asked_for_and_can_be_taken_back() {
    let world = World::new().await;
    let client = world.client();
    let session = shop(&client, "/srv/shop").await;
    *world.grove.unsure.lock().unwrap() = vec!["mine.txt".to_owned()];
    let before = client.session(&session).await.unwrap().number;
    let refused = client.undo(&session, &undo_of(1)).await.unwrap_err();
    let problem = refused.problem().unwrap();
    assert_eq!((problem.status, problem.code), (409, Code::UnsureChanges));
    assert_eq!(problem.unsure.as_ref().unwrap().files, ["mine.txt"]);
    assert!(problem.detail.contains("mine.txt") && problem.hint.contains("`all`"), "{problem:?}");
    assert_eq!(client.session(&session).await.unwrap().number, before, "nothing was written");
    let preview = client.preview_undo(&session, 1).await.unwrap();
    assert_eq!((preview.possible, preview.unsure.join(" ")), (true, "mine.txt".to_owned()));
    client.undo(&session, &UndoTurn { all: true, ..undo_of(1) }).await.unwrap();
    fact(&client, &session, |fact| matches!(fact, RuleFact::Undone { turn: 1 })).await;
    client.redo(&session, 1).await.unwrap();
    fact(&client, &session, |fact| matches!(fact, RuleFact::Redone { turn: 1 })).await;
    let only = Some(vec!["a.txt".to_owned()]);
    client.undo(&session, &UndoTurn { only, ..undo_of(1) }).await.unwrap();
    fact(&client, &session, |fact| matches!(fact, RuleFact::ErrandStarted { errand: 3, .. })).await;
    let notes = world.grove.notes();
    assert!(["undo 1 all", "redo 1"].iter().all(|note| notes.iter().any(|other| other == note)), "{notes:?}");
}

#[tokio::test]
async fn what_waits_is_heard_at_once_when_somebody_says_so() {
    let world = World::new().await;
    let client = world.client();
    let asks = client.say(&NewMessage::text(To::new_session(IfNew::default()), "!ask Shell")).await.unwrap();
    let RuleFact::Asked { approval: question, .. } =
        fact(&client, &asks.session, |fact| matches!(fact, RuleFact::Asked { .. })).await
    else {
        panic!("it was looked for")
    };
    let mut waiting = Vec::new();
    for words in ["one", "two", "three"] {
        let to = To::session(&asks.session);
        waiting.push(client.say(&NewMessage::text(to, words)).await.unwrap().id);
    }
    let now = |delivery| MessageChange::Deliver(DeliverNow { delivery });
    let hold = MessageChange::Hold(Hold { held: true, there: None });
    client.change_message(&waiting[1], &hold).await.unwrap();
    // What is held is let go by the same word.
    let steered = client.change_message(&waiting[1], &now(DeliveryNow::Steer)).await.unwrap().into_inner();
    assert_eq!((steered.state, steered.turn), (ReceiptState::Running, Some(1)));
    assert_eq!(steered.delivery, Delivery::Queue, "what its sender wanted stays as it was");
    let again = client.change_message(&waiting[1], &now(DeliveryNow::Steer)).await.unwrap_err();
    assert_eq!(code(again), Code::TooLate);
    client.answer(&question, Answer::Yes).await.unwrap();
    let heard = settled(&client, &waiting[1]).await.answer.unwrap();
    assert!(heard.contains("+two"), "it was heard in that turn: {heard:?}");
    assert_eq!(settled(&client, &waiting[2]).await.state, ReceiptState::Answered);

    // Where nobody listens it waits as before, and can come first all the same.
    let new = IfNew { agent: Some("keyed".to_owned()), ..IfNew::default() };
    let long = client.say(&NewMessage::text(To::new_session(new), "!sleep 60000")).await.unwrap();
    running(&client, &long).await;
    let said =
        async |words| client.say(&NewMessage::text(To::session(&long.session), words)).await.unwrap().id;
    let (first, second) = (said("first").await, said("second").await);
    let deaf = client.change_message(&second, &now(DeliveryNow::Steer)).await.unwrap_err();
    assert_eq!(code(deaf), Code::NotListening);
    assert_eq!(state(&client, &second).await, (ReceiptState::Waiting, None));
    client.change_message(&second, &now(DeliveryNow::Interrupt)).await.unwrap();
    assert_eq!(settled(&client, &long.id).await.state, ReceiptState::Stopped);
    let (first, second) = (settled(&client, &first).await, settled(&client, &second).await);
    assert_eq!((second.turn, first.turn), (Some(2), Some(3)));
}

#[tokio::test]
async fn what_was_written_for_another_scope_is_not_heard_at_once() {
    let world = World::new().await;
    let client = world.client();
    let session = shop(&client, "/srv/shop").await;
    client.change_scope(&session, &enter("blue", true)).await.unwrap();
    arrived(&client, &session, 1).await;
    let words = NewMessage::text(To::session(&session), "hello").delivered(None, Some(0));
    let stale = client.say(&words).await.unwrap();
    fact(&client, &session, |fact| matches!(fact, RuleFact::Held { message, .. } if *message == stale.id))
        .await;
    for delivery in [DeliveryNow::Steer, DeliveryNow::Interrupt] {
        let change = MessageChange::Deliver(DeliverNow { delivery });
        assert_eq!(code(client.change_message(&stale.id, &change).await.unwrap_err()), Code::OtherScope);
    }
    assert_eq!(state(&client, &stale.id).await, (ReceiptState::Held, Some("other_scope".to_owned())));
}
