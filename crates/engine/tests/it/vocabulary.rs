//! The words of agents about themselves and their work become facts, in one vocabulary for all of them; and what is
//! done with their processes when a session or the server goes.

use crate::puppet::Puppet;
use crate::world::World;
use agent::{
    About, AgentEvent, Choice, FileChangeKind, PlanStep, Presence, Progress, QuestionAnswer, Setup, Usage,
};
use engine::{
    ApprovalState, Granted, IfNew, Inbound, InvalidError, Limits, ReceiptState, StoredEntry, WayInError,
};
use kernel::{Fact, Number, Policy, Request, SessionId, To};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

pub(crate) async fn world_of(puppet: &Puppet) -> World {
    World::among(vec![Arc::new(puppet.clone())], Limits::default(), Policy::default()).await
}

pub(crate) fn said(world: &World, to: To) -> Inbound {
    let mut inbound = world.inbound(to, "go", None);
    inbound.if_new = IfNew {
        agent: Some("puppet".to_owned()),
        directory: Some("/srv/shop".to_owned()),
        model: Some("m-1".to_owned()),
        mode: Some("plan".to_owned()),
        title: None,
        worktree: None,
    };
    inbound
}

/// Says something to the puppet and waits for the end of the turn.
pub(crate) async fn turn(world: &World, to: To) -> SessionId {
    let receipt = world.engine.way_in().send(said(world, to)).await.unwrap();
    world.settled(receipt.accepted.message).await.row.session
}

/// The stories of a session, as readers get them.
pub(crate) async fn stories(world: &World, session: SessionId) -> Vec<Value> {
    let facts = world.engine.views().facts(&world.me, session, Number(0), 100_000, usize::MAX).await.unwrap();
    let body = |entry: &StoredEntry| match entry {
        StoredEntry::Story { body: Some(body), .. } => Some(serde_json::from_slice(body).unwrap()),
        StoredEntry::Story { body: None, .. } | StoredEntry::Rule(_) => None,
    };
    facts.iter().filter_map(|shared| body(&shared.fact.entry)).collect()
}

pub(crate) fn of_type(stories: &[Value], kind: &str) -> Vec<Value> {
    stories.iter().filter(|story| story["type"] == kind).cloned().collect()
}

pub(crate) fn finished(reason: &str) -> AgentEvent {
    AgentEvent::Finished { native: None, reason: reason.to_owned() }
}

pub(crate) fn speaking(events: Vec<AgentEvent>) -> Puppet {
    let setup = Setup {
        kind: "acp",
        program: "/bin/puppet".to_owned(),
        home: "/home/puppet".to_owned(),
        bypasses: true,
        is_kept: true,
        keeps_background: false,
        secrets: vec!["PUPPET_KEY".to_owned()],
        tried: None,
    };
    Puppet { says: events, setup, ..Puppet::default() }
}

fn asked(question: &str) -> AgentEvent {
    let (tool, form) = ("shell".to_owned(), agent::Form::Permission);
    AgentEvent::Asked {
        question: question.to_owned(),
        tool,
        kind: String::new(),
        detail: String::new(),
        form,
    }
}

#[tokio::test(start_paused = true)]
async fn everything_an_agent_says_becomes_a_fact() {
    let call = "c1".to_owned();
    let step = |text: &str, progress| PlanStep { text: text.to_owned(), progress };
    let puppet = speaking(vec![
        AgentEvent::ToolCall { call: call.clone(), tool: "shell".to_owned(), input: "ls".to_owned() },
        AgentEvent::ToolProgress { call: call.clone(), output: "a\n".to_owned() },
        AgentEvent::ToolProgress { call: call.clone(), output: "b\n".to_owned() },
        AgentEvent::ToolResult { call, output: "a b".to_owned(), failed: false },
        AgentEvent::Plan { steps: vec![step("look", Progress::Done), step("mend", Progress::Active)] },
        AgentEvent::FileChanged { path: "src/a.rs".to_owned(), change: FileChangeKind::Edited },
        AgentEvent::Usage(Usage {
            input_tokens: 10,
            output_tokens: 2,
            cached_tokens: 7,
            cost_micros: Some(1_500),
            window: Some((12, 200_000)),
        }),
        finished("end_turn"),
    ]);
    let world = world_of(&puppet).await;
    let session = turn(&world, To::New).await;
    let stories = stories(&world, session).await;
    let kinds: Vec<&str> = stories.iter().map(|story| story["type"].as_str().unwrap()).collect();
    let expected = ["launch", "tool_call", "tool_progress", "tool_result", "plan", "file_changed", "usage"];
    assert_eq!(kinds, [&expected[..], &["finished", "changes"]].concat());
    assert_eq!(
        stories[2],
        json!({"v": 1, "turn": 1, "type": "tool_progress", "call": "c1", "offset": 0, "output": "a\nb\n"})
    );
    assert_eq!(stories[4]["steps"][1], json!({"text": "mend", "progress": "active"}));
    assert_eq!(
        stories[5],
        json!({"v": 1, "turn": 1, "type": "file_changed", "path": "src/a.rs", "change": "edited"})
    );
    assert_eq!(
        stories[6],
        json!({
            "v": 1, "turn": 1, "type": "usage", "input_tokens": 10, "output_tokens": 2, "cached_tokens": 7,
            "cost_micros": 1500, "window_used": 12, "window_size": 200_000,
        })
    );
    assert_eq!(stories[7], json!({"v": 1, "turn": 1, "type": "finished", "reason": "end_turn"}));
}

#[tokio::test(start_paused = true)]
async fn progress_is_seen_while_the_tool_runs_and_a_flood_of_it_stays_small() {
    let call = |output: String| AgentEvent::ToolProgress { call: "c1".to_owned(), output };
    let world = world_of(&speaking(vec![call("one".to_owned())])).await;
    let receipt = world.engine.way_in().send(said(&world, To::New)).await.unwrap().accepted;
    let mut follow = world.engine.views().follow(&world.me, receipt.session, Number(0)).await.unwrap();
    let is_progress = |told: &engine::SessionUpdate| match told {
        engine::SessionUpdate::Fact(shared) => {
            matches!(&shared.fact.entry, StoredEntry::Story { kind, .. } if kind == "tool_progress")
        }
        engine::SessionUpdate::Live(_) | engine::SessionUpdate::Progress(_) => false,
    };
    while !is_progress(&follow.next().await.expect("the tool still runs")) {}

    let mut flood: Vec<AgentEvent> = (0..5_000).map(|_| call("x".repeat(1_000))).collect();
    flood.push(finished(""));
    let world = world_of(&speaking(flood)).await;
    let session = turn(&world, To::New).await;
    let stories = stories(&world, session).await;
    let bytes: usize = of_type(&stories, "tool_progress").iter().map(|story| story.to_string().len()).sum();
    assert!(bytes < 128 * 1024, "5 MB of progress became {bytes} bytes of facts");
}

#[tokio::test(start_paused = true)]
async fn how_an_attempt_was_started_is_told_once_until_it_differs_and_so_is_what_the_agent_says_of_itself() {
    let command = Choice { name: "review".to_owned(), description: "looks at the diff".to_owned() };
    let about = About {
        version: "9.1".to_owned(),
        model: "m-1".to_owned(),
        commands: vec![command.clone()],
        ..About::default()
    };
    let puppet = speaking(vec![AgentEvent::About(Box::new(about)), finished("")]);
    let mut world = world_of(&puppet).await;
    let session = turn(&world, To::New).await;
    turn(&world, To::Session(session)).await;
    let told = stories(&world, session).await;
    let expected = json!({
        "v": 1, "turn": 1, "type": "launch", "agent": "puppet", "kind": "acp", "program": "/bin/puppet",
        "home": "/home/puppet", "directory": "/srv/shop", "model": "m-1", "mode": "plan", "bypasses": true,
        "account": "house",
    });
    assert_eq!(of_type(&told, "launch")[0], expected);
    assert_eq!(of_type(&told, "launch")[1]["version"], "9.1", "now it is known, and was not before");
    assert_eq!(of_type(&told, "about").len(), 1, "the second turn says nothing new");
    turn(&world, To::Session(session)).await;
    let again = stories(&world, session).await;
    assert_eq!((of_type(&again, "launch").len(), of_type(&again, "about").len()), (2, 1));

    world.restart().await;
    turn(&world, To::Session(session)).await;
    let again = stories(&world, session).await;
    assert_eq!(of_type(&again, "about").len(), 2, "after a restart it is told once more");
    let view = world
        .engine
        .views()
        .agents(&world.me)
        .await
        .unwrap()
        .into_iter()
        .find(|view| view.name == "puppet")
        .unwrap();
    assert_eq!(view.lists.commands, [command]);
}

#[tokio::test(start_paused = true)]
async fn what_an_agent_warns_of_with_every_turn_is_told_once_and_what_happens_again_is_told_again() {
    let warned = || AgentEvent::Warned { text: "no metadata of this model".to_owned() };
    let notice = AgentEvent::Notice { text: "it tries again".to_owned() };
    let puppet = speaking(vec![warned(), notice, warned(), finished("")]);
    let mut world = world_of(&puppet).await;
    let session = turn(&world, To::New).await;
    turn(&world, To::Session(session)).await;
    let told = |told: &[Value]| -> Vec<(u64, String)> {
        let notices = of_type(told, "notice");
        let plain = notices.iter().map(|it| {
            (it["turn"].as_u64().unwrap_or_default(), it["text"].as_str().unwrap_or_default().to_owned())
        });
        plain.collect()
    };
    let (warning, again) = ("no metadata of this model".to_owned(), "it tries again".to_owned());
    let both = vec![(1, warning.clone()), (1, again.clone()), (2, again.clone())];
    assert_eq!(told(&stories(&world, session).await), both);
    let other = turn(&world, To::New).await;
    assert_eq!(told(&stories(&world, other).await), both[..2], "another session is told, too");

    world.restart().await;
    turn(&world, To::Session(session)).await;
    let after = told(&stories(&world, session).await);
    assert_eq!(after[3..], [(3, warning), (3, again)], "after a restart it is told once more");
}

#[tokio::test(start_paused = true)]
async fn the_model_and_the_mode_that_were_chosen_reach_every_start_of_the_agent() {
    let puppet = speaking(vec![finished("")]);
    let world = world_of(&puppet).await;
    let session = turn(&world, To::New).await;
    turn(&world, To::Session(session)).await;
    let scope = world.engine.views().session(&world.me, session).await.unwrap().scope;
    assert_eq!((scope.model.as_deref(), scope.mode.as_deref()), (Some("m-1"), Some("plan")));
    let launches = puppet.notes.launches.lock().unwrap().clone();
    assert_eq!(launches.len(), 2);
    for launch in launches {
        assert_eq!((launch.model.as_deref(), launch.mode.as_deref()), (Some("m-1"), Some("plan")));
    }
    let mut inbound = said(&world, To::New);
    inbound.if_new.model = Some("x".repeat(engine::MODEL_BYTES_MAX + 1));
    let refused = world.engine.way_in().send(inbound).await.unwrap_err();
    assert!(matches!(refused, WayInError::Invalid(InvalidError { field: "model", .. })), "{refused:?}");
}

#[tokio::test(start_paused = true)]
async fn a_question_that_the_agent_takes_back_lapses_while_the_turn_goes_on() {
    let back = AgentEvent::Withdrawn { question: "q1".to_owned() };
    let world = world_of(&speaking(vec![asked("q1"), back])).await;
    let receipt = world.engine.way_in().send(said(&world, To::New)).await.unwrap().accepted;
    let mut follow = world.engine.views().follow(&world.me, receipt.session, Number(0)).await.unwrap();
    let is_lapsed = |told: &engine::SessionUpdate| match told {
        engine::SessionUpdate::Fact(shared) => {
            matches!(shared.fact.entry, StoredEntry::Rule(Fact::Lapsed { .. }))
        }
        engine::SessionUpdate::Live(_) | engine::SessionUpdate::Progress(_) => false,
    };
    while !is_lapsed(&follow.next().await.expect("the turn goes on")) {}
    let rules = world.rules(receipt.session).await;
    let approval = rules.iter().find_map(|fact| match fact {
        Fact::Asked { approval, .. } => Some(*approval),
        _ => None,
    });
    let approval = approval.unwrap();
    assert!(rules.contains(&Fact::Lapsed { approval }), "{rules:#?}");
    let row = world.engine.views().approval(&world.me, approval).await.unwrap();
    assert_eq!(row.row.state, ApprovalState::Lapsed);
    let receipt = world.engine.views().receipt(&world.me, receipt.message).await.unwrap();
    assert_eq!(receipt.row.state, ReceiptState::Running);
    let yes = Request::Answer { approval, answer: kernel::Answer::Yes, remember: None };
    let refused = world.ask(yes).await;
    assert!(matches!(refused, Err(WayInError::Lapsed { interrupted: false, .. })), "{refused:?}");
}

#[tokio::test(start_paused = true)]
async fn questions_without_end_are_answered_with_no() {
    let mut events: Vec<AgentEvent> = (1..=300).map(|n| asked(&format!("q{n}"))).collect();
    events.push(finished(""));
    let puppet = speaking(events);
    let world = world_of(&puppet).await;
    let session = turn(&world, To::New).await;
    let rules = world.rules(session).await;
    assert_eq!(rules.iter().filter(|fact| matches!(fact, Fact::Asked { .. })).count(), 256);
    assert_eq!(rules.iter().filter(|fact| matches!(fact, Fact::Lapsed { .. })).count(), 256);
    let answers = puppet.notes.answers.lock().unwrap().clone();
    assert_eq!(answers.len(), 44);
    assert!(answers.iter().all(|(_, answer)| matches!(answer, QuestionAnswer::Deny { .. })));
    assert_eq!(of_type(&stories(&world, session).await, "notice").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_an_agent_keeps_goes_with_its_session_and_with_the_server() {
    let puppet = speaking(vec![finished("")]);
    let world = world_of(&puppet).await;
    let (first, second) = (turn(&world, To::New).await, turn(&world, To::New).await);
    assert!(puppet.notes.released.lock().unwrap().is_empty(), "the process is kept for the next turn");
    assert_eq!(world.ask(Request::End { session: first }).await, Ok(Granted::Done));
    while world.engine.kept() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(*puppet.notes.released.lock().unwrap(), [first]);
    world.engine.shutdown().await;
    assert_eq!(puppet.notes.closed.load(Ordering::Relaxed), 1, "{second} is still open, and nothing is left");
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_long_for_the_version_of_an_agent() {
    let puppet = Puppet { look_ms: 10_000, ..speaking(vec![]) };
    let world = world_of(&puppet).await;
    let view = async |world: &World| {
        let views = world.engine.views().agents(&world.me).await.unwrap();
        views.into_iter().find(|view| view.name == "puppet").unwrap().found
    };
    let begun = tokio::time::Instant::now();
    assert_eq!(view(&world).await, None);
    assert!(begun.elapsed() <= Duration::from_secs(2));
    tokio::time::sleep(Duration::from_secs(9)).await;
    let here = |version: &str| Some(Presence::Here { version: version.to_owned() });
    assert_eq!(view(&world).await, here("1.0"));
    assert_eq!(puppet.notes.looks.load(Ordering::Relaxed), 1, "who asks meanwhile does not look again");
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(view(&world).await, here("1.0"), "what is old is told, and looked at in the background");
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!(view(&world).await, here("1.1"));
}
