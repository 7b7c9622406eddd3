//! Errands outside between turns: they survive whoever does it, and what comes too late is recorded and not applied.

use crate::puppet::Puppet;
use crate::scope::{enter, in_directory};
use crate::vocabulary::{of_type, stories};
use crate::world::{World, state_and_why, trace};
use agent::{AgentEvent, Trouble};
use engine::{
    AccessError, Granted, Look, LookResult, ReceiptState, ScopeError, Scripts, UnavailableError, ViewError,
    WayInError,
};
use kernel::{Change, Epoch, ErrandKind, Fact, KeptWhy, Request, SessionId, To, Turn, UndoFiles};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::Notify;

impl World {
    async fn until_noted(&self, note: &str) {
        self.until_times(note, 1).await;
    }

    async fn until_times(&self, note: &str, times: usize) {
        for _ in 0..100_000 {
            if self.times(note) >= times {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("{note:?} never happens: {:?}", self.grove.notes());
    }

    fn times(&self, note: &str) -> usize {
        self.grove.notes().iter().filter(|other| *other == note).count()
    }

    async fn count(&self, session: SessionId, is_it: impl Fn(&Fact) -> bool) -> usize {
        self.rules(session).await.iter().filter(|fact| is_it(fact)).count()
    }
}

const ENTER: &str = "enter blue from /srv/shop";

#[tokio::test(start_paused = true)]
async fn a_worktree_that_was_being_made_when_we_died_is_made_by_the_next() {
    let mut world = World::new().await;
    let session = world.shop().await;
    world.grove.act_ms.store(5_000, Ordering::Relaxed);
    world.change(session, enter("blue")).await.unwrap();
    world.until_noted(&format!("begin {ENTER}")).await;
    assert_eq!(world.change(session, Change::Exit).await, Err(ScopeError::ScopeChanging.into()));
    world.crash().await;
    assert_eq!(world.arrived(session, 1).await.directory, "/trees/blue");
    assert_eq!((world.times(&format!("begin {ENTER}")), world.times(ENTER)), (2, 1));
    assert_eq!(world.count(session, |fact| matches!(fact, Fact::ErrandStarted { .. })).await, 1);
    assert_eq!(world.count(session, |fact| matches!(fact, Fact::ScopeChanged { .. })).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_goes_leaves_its_errands_to_the_next() {
    let mut world = World::new().await;
    let session = world.shop().await;
    world.grove.act_ms.store(3_600_000, Ordering::Relaxed);
    world.change(session, enter("blue")).await.unwrap();
    world.until_noted(&format!("begin {ENTER}")).await;
    let began = tokio::time::Instant::now();
    world.engine.shutdown().await;
    assert!(began.elapsed() < Duration::from_secs(2), "nobody waits for it: {:?}", began.elapsed());
    world.grove.act_ms.store(0, Ordering::Relaxed);
    world.restart().await;
    assert_eq!(world.arrived(session, 1).await.directory, "/trees/blue");
    assert_eq!(world.times(ENTER), 1);
}

#[tokio::test(start_paused = true)]
async fn a_worktree_that_cannot_be_entered_leaves_the_scope_and_says_why() {
    let world = World::new().await;
    let session = world.shop().await;
    world.grove.act_ms.store(1_000, Ordering::Relaxed);
    world.change(session, enter("broken")).await.unwrap();
    let waiting = world.say(To::Session(session), "meanwhile").await.unwrap().accepted.message;
    world.until_rule(session, |fact| matches!(fact, Fact::ScopeKept { why: KeptWhy::Failed })).await;
    let row = world.engine.views().session(&world.me, session).await.unwrap();
    assert_eq!((row.scope.directory.for_readers(), row.epoch), ("/srv/shop", Epoch(0)));
    let notices = of_type(&stories(&world, session).await, "notice");
    assert!(notices.iter().any(|story| story["text"].as_str().unwrap().contains("it is broken")));
    let view = world.engine.views().receipt(&world.me, waiting).await.unwrap();
    assert_eq!(state_and_why(&view).0, ReceiptState::Held, "somebody counted on the worktree");
    assert_eq!(world.own_acts("keep_scope").len(), 1);
}

fn script(says: Vec<AgentEvent>) -> Scripts {
    let setup: Arc<dyn agent::Agent> = Arc::new(Puppet { says, ..Puppet::default() });
    Scripts { setup: Some(setup.clone()), teardown: Some(setup), wait: Duration::from_secs(60) }
}

fn text(text: &str) -> AgentEvent {
    AgentEvent::Text { text: text.to_owned() }
}

#[tokio::test(start_paused = true)]
async fn what_setting_up_a_worktree_prints_is_told_and_its_failure_keeps_the_scope() {
    let mut world = World::new().await;
    let session = world.shop().await;
    let done = AgentEvent::Finished { native: None, reason: String::new() };
    world.scripts.insert("scripted".to_owned(), script(vec![text("one\n"), text("two\n"), done]));
    world.restart().await;
    world.change(session, enter("blue")).await.unwrap();
    assert_eq!(world.arrived(session, 1).await.directory, "/trees/blue");
    let printed = of_type(&stories(&world, session).await, "script");
    assert_eq!((&printed[0]["stage"], &printed[0]["output"]), (&"setup".into(), &"one\ntwo\n".into()));
    world.change(session, Change::Exit).await.unwrap();
    world.arrived(session, 2).await;
    let failed = AgentEvent::Failed(Trouble::refused("exit code 1"));
    world.scripts.insert("scripted".to_owned(), script(vec![text("no rule to make it\n"), failed]));
    world.restart().await;
    world.change(session, enter("red")).await.unwrap();
    world.until_rule(session, |fact| matches!(fact, Fact::ScopeKept { why: KeptWhy::Failed })).await;
    assert_eq!(world.engine.views().session(&world.me, session).await.unwrap().scope.directory, "/srv/shop");
    let stories = stories(&world, session).await;
    assert_eq!(of_type(&stories, "script")[1]["output"], "no rule to make it\n");
    let why = of_type(&stories, "notice").pop().unwrap();
    assert!(why["text"].as_str().unwrap().contains("exit code 1"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn a_setup_that_takes_too_long_is_ended() {
    let mut world = World::new().await;
    let session = world.shop().await;
    world.scripts.insert("scripted".to_owned(), script(vec![text("still building\n")]));
    world.restart().await;
    let began = tokio::time::Instant::now();
    world.change(session, enter("blue")).await.unwrap();
    world.until_rule(session, |fact| matches!(fact, Fact::ScopeKept { why: KeptWhy::Failed })).await;
    assert!(began.elapsed() < Duration::from_secs(70), "{:?}", began.elapsed());
    let why = of_type(&stories(&world, session).await, "notice").pop().unwrap();
    assert!(why["text"].as_str().unwrap().contains("longer than 60 seconds"), "{why}");
}

/// Asks under the scope of now, and delivers when the session has come to that epoch.
async fn look_late(
    world: &World,
    session: SessionId,
    kind: ErrandKind,
    epoch: u32,
) -> Result<u32, ViewError> {
    let (asked, deliver) = (Notify::new(), Notify::new());
    let asking = world.engine.views().look_with(&world.me, session, kind, |_, _| async {
        asked.notify_one();
        deliver.notified().await;
        Ok(7)
    });
    let moving = async {
        asked.notified().await;
        if epoch > 0 {
            world.change(session, enter("blue")).await.unwrap();
            world.arrived(session, 1).await;
        }
        if epoch > 1 {
            world.change(session, Change::Exit).await.unwrap();
            world.arrived(session, 2).await;
        }
        deliver.notify_one();
    };
    tokio::join!(asking, moving).0
}

#[tokio::test(start_paused = true)]
async fn a_node_that_was_replaced_gives_nobody_what_it_looked_up_in_another_scope() {
    let mut world = World::new().await;
    let session = world.shop().await;
    world.grove.act_ms.store(60_000, Ordering::Relaxed);
    world.change(session, enter("blue")).await.unwrap();
    let (old, me) = (world.engine.clone(), world.me.clone());
    let (asked, deliver) = (Notify::new(), Notify::new());
    let asking = old.views().look_with(&me, session, ErrandKind::Files, |_, _| async {
        asked.notify_one();
        deliver.notified().await;
        Ok(7)
    });
    let moving = async {
        asked.notified().await;
        world.grove.act_ms.store(0, Ordering::Relaxed);
        world.start_again().await;
        world.arrived(session, 1).await;
        deliver.notify_one();
    };
    let seen = tokio::join!(asking, moving).0;
    assert!(matches!(seen, Err(ViewError::Unavailable(UnavailableError::Unavailable(_)))), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn what_was_looked_up_in_another_scope_reaches_nobody_and_is_recorded_once() {
    let kinds = [ErrandKind::Commands, ErrandKind::Models, ErrandKind::Files, ErrandKind::Diff];
    for kind in kinds {
        for (epoch, seen) in [(0, Ok(7)), (1, Err(ViewError::Stale)), (2, Err(ViewError::Stale))] {
            let world = World::new().await;
            let session = world.shop().await;
            assert_eq!(look_late(&world, session, kind, epoch).await, seen, "{kind:?} after {epoch} changes");
            let stale = |fact: &Fact| matches!(fact, Fact::StaleErrand { kind: other, .. } if *other == kind);
            assert_eq!(world.count(session, stale).await, usize::from(epoch > 0), "{kind:?} after {epoch}");
            // The first turn has listed them in the scope of then; a late list teaches nothing about another one.
            let learned = |fact: &Fact| matches!(fact, Fact::Learned { epoch, .. } if *epoch > Epoch(0));
            assert_eq!(world.count(session, learned).await, 0, "{kind:?} after {epoch}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_diff_that_is_looked_up_while_the_scope_changes_is_stale() {
    let world = World::new().await;
    let session = world.shop().await;
    let diff = Look::Diff { first: Turn(1), last: Turn(1) };
    let seen = world.engine.views().look(&world.me, session, diff).await.unwrap();
    assert!(matches!(seen, LookResult::Diff(Some(_))), "{seen:?}");
    world.grove.act_ms.store(5_000, Ordering::Relaxed);
    let looked = world.times("begin changes 1");
    let (engine, me) = (world.engine.clone(), world.me.clone());
    let late = tokio::spawn(async move { engine.views().look(&me, session, diff).await });
    world.until_times("begin changes 1", looked + 1).await;
    world.grove.act_ms.store(0, Ordering::Relaxed);
    world.change(session, enter("blue")).await.unwrap();
    world.arrived(session, 1).await;
    assert_eq!(late.await.unwrap().map(drop), Err(ViewError::Stale));
    let stranger = world.let_in("bob", kernel::Role::Member).await;
    let unseen = world.engine.views().look(&stranger, session, diff).await;
    assert_eq!(unseen, Err(AccessError::NotFound { what: "session" }.into()));
}

#[tokio::test(start_paused = true)]
async fn an_undo_that_was_going_on_when_we_died_is_done_again_and_counts_once() {
    let mut world = World::new().await;
    let session = world.shop().await;
    world.grove.act_ms.store(5_000, Ordering::Relaxed);
    let undo = Request::Undo { session, turn: Turn(1), under: None, files: UndoFiles::Certain };
    assert_eq!(world.ask(undo).await, Ok(Granted::Done));
    world.until_noted("begin undo 1").await;
    let waiting = world.say(To::Session(session), "meanwhile").await.unwrap().accepted.message;
    world.crash().await;
    world.until_rule(session, |fact| matches!(fact, Fact::Undone { .. })).await;
    assert_eq!((world.times("begin undo 1"), world.times("undo 1")), (2, 1));
    assert_eq!(world.settled(waiting).await.row.state, ReceiptState::Answered, "then it goes on");
    assert_eq!(world.count(session, |fact| matches!(fact, Fact::Undone { .. })).await, 1);
}

fn trodden(world: &World, files: &[&str]) {
    *world.grove.trodden.lock().unwrap() = files.iter().map(|file| (*file).to_owned()).collect();
}

#[tokio::test(start_paused = true)]
async fn an_undo_of_what_was_touched_since_is_refused_at_once_and_nothing_is_written() {
    let world = World::new().await;
    let session = world.shop().await;
    let many: Vec<String> = (0..103).map(|number| format!("{number:03}.txt")).collect();
    *world.grove.trodden.lock().unwrap() = many.clone();
    let facts = world.rules(session).await;
    let undo = Request::Undo { session, turn: Turn(1), under: None, files: UndoFiles::Certain };
    let refused = world.ask(undo).await.unwrap_err();
    let words = refused.to_string();
    assert!(words.contains("009.txt and 93 more") && !words.contains("010.txt"), "{words}");
    assert_eq!(refused, WayInError::TouchedSince { turn: Turn(1), files: many[..100].to_vec(), more: 3 });
    assert_eq!(world.rules(session).await, facts, "no errand was made");
    assert_eq!(world.times("begin undo 1"), 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_touched_after_the_answer_stops_the_undo_itself() {
    let world = World::new().await;
    let session = world.shop().await;
    world.grove.act_ms.store(1_000, Ordering::Relaxed);
    let undo = Request::Undo { session, turn: Turn(1), under: None, files: UndoFiles::Certain };
    assert_eq!(world.ask(undo).await, Ok(Granted::Done));
    world.until_noted("begin undo 1").await;
    trodden(&world, &["a.txt"]);
    world.until_rule(session, |fact| matches!(fact, Fact::ErrandFailed { .. })).await;
    assert_eq!(world.count(session, |fact| matches!(fact, Fact::Undone { .. })).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_look_that_takes_too_long_leaves_it_to_the_undo_itself() {
    let world = World::new().await;
    let session = world.shop().await;
    trodden(&world, &["a.txt"]);
    world.grove.act_ms.store(60_000, Ordering::Relaxed);
    let undo = Request::Undo { session, turn: Turn(1), under: None, files: UndoFiles::Certain };
    assert_eq!(world.ask(undo).await, Ok(Granted::Done));
    world.until_rule(session, |fact| matches!(fact, Fact::ErrandFailed { .. })).await;
}

#[tokio::test(start_paused = true)]
async fn an_undo_that_was_granted_under_its_key_stays_so_and_one_that_was_refused_may_be_asked_again() {
    let world = World::new().await;
    let session = world.shop().await;
    let undo = |key: &'static str| {
        let verb = Request::Undo { session, turn: Turn(1), under: None, files: UndoFiles::Certain };
        world.engine.way_in().ask(&world.me, verb, trace(Some(key)))
    };
    assert_eq!(undo("first").await, Ok(Granted::Done));
    world.until_rule(session, |fact| matches!(fact, Fact::Undone { .. })).await;
    trodden(&world, &["a.txt"]);
    assert_eq!(undo("first").await, Ok(Granted::Done), "it was done");
    assert!(matches!(undo("second").await, Err(WayInError::TouchedSince { .. })));
    trodden(&world, &[]);
    assert_eq!(undo("second").await, Ok(Granted::Done));
    world.until_times("undo 1", 2).await;
}

#[tokio::test(start_paused = true)]
async fn what_was_seen_of_an_undo_in_another_scope_refuses_nothing_and_is_recorded() {
    let world = World::new().await;
    let session = world.shop().await;
    trodden(&world, &["a.txt"]);
    world.grove.act_ms.store(3_000, Ordering::Relaxed);
    let (engine, me) = (world.engine.clone(), world.me.clone());
    let undo = Request::Undo { session, turn: Turn(1), under: None, files: UndoFiles::Certain };
    let late = tokio::spawn(async move { engine.way_in().ask(&me, undo, trace(None)).await });
    world.until_noted("begin preview of undo 1").await;
    world.grove.act_ms.store(0, Ordering::Relaxed);
    world.change(session, enter("blue")).await.unwrap();
    world.arrived(session, 1).await;
    assert_eq!(late.await.unwrap(), Err(WayInError::OtherScope));
    let stale = |fact: &Fact| matches!(fact, Fact::StaleErrand { kind: ErrandKind::Diff, .. });
    assert_eq!(world.count(session, stale).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_made_for_a_worktree_says_nothing_before_it_is_there() {
    let world = World::new().await;
    let mut inbound = in_directory(&world, "!pwd", "/srv/shop");
    let (name, base, branch) = (Some("blue".to_owned()), None, None);
    inbound.if_new.worktree = Some(kernel::NewWorktree::own(name, base, branch));
    let made = world.engine.way_in().send(inbound).await.unwrap().accepted;
    let words = world.settled(made.message).await.answer.unwrap();
    assert!(words.lines().last().unwrap().starts_with("/trees/"), "{words}");
}
