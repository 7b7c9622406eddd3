//! Where and how a session acts changes between turns, and nothing of it is mixed up.

use crate::world::{World, trace};
use agent::Did;
use engine::{
    AccessError, Granted, IfNew, Inbound, Limits, ReceiptState, ReceiptView, ScopeError, UnavailableError,
    WayInError,
};
use kernel::{
    Change, Epoch, Fact, HoldWhy, MessageId, NewWorktree, Policy, Request, Scope, SessionId, Setting, To,
    Turn, UndoFiles,
};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

use ReceiptState::{Answered, Held, Running, Waiting, Withdrawn};

pub(crate) fn enter(name: &str) -> Change {
    Change::Enter(NewWorktree { name: name.to_owned(), base: None, branch: None })
}

pub(crate) fn set_agent(agent: &str) -> Change {
    Change::Set { agent: Some(agent.to_owned()), model: Setting::Keep, mode: Setting::Keep }
}

pub(crate) fn in_directory(world: &World, text: &str, directory: &str) -> Inbound {
    let mut inbound = world.inbound(To::New, text, None);
    inbound.if_new = IfNew { directory: Some(directory.to_owned()), ..IfNew::default() };
    inbound
}

impl World {
    pub(crate) async fn change(&self, session: SessionId, change: Change) -> Result<Granted, WayInError> {
        self.ask(Request::ChangeScope { session, change, now: false }).await
    }

    /// Where and how the session acts, once it has come to this epoch.
    pub(crate) async fn arrived(&self, session: SessionId, epoch: u32) -> Scope {
        for _ in 0..10_000 {
            let row = self.engine.views().session(&self.me, session).await.unwrap();
            if row.epoch >= Epoch(epoch) {
                return row.scope;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("it never comes to epoch {epoch}: {:#?}", self.rules(session).await);
    }

    /// A session in `/srv/shop` that has had a turn.
    pub(crate) async fn shop(&self) -> SessionId {
        let made =
            self.engine.way_in().send(in_directory(self, "hello", "/srv/shop")).await.unwrap().accepted;
        assert_eq!(self.settled(made.message).await.row.state, Answered);
        made.session
    }

    async fn queued(&self, session: SessionId, text: &str) -> MessageId {
        self.say(To::Session(session), text).await.unwrap().accepted.message
    }

    async fn state(&self, message: MessageId) -> (ReceiptState, Option<&'static str>) {
        crate::world::state_and_why(&self.engine.views().receipt(&self.me, message).await.unwrap())
    }

    async fn ran_in(&self, message: MessageId) -> String {
        let ReceiptView { row, answer, .. } = self.settled(message).await;
        assert_eq!(row.state, Answered);
        answer.unwrap_or_default().lines().last().unwrap_or_default().to_owned()
    }
}

#[tokio::test(start_paused = true)]
async fn the_long_story_each_turn_runs_in_the_directory_of_its_epoch_and_nothing_is_handed_twice() {
    let world = World::new().await;
    let session = world.shop().await;
    let mut where_it_ran = BTreeMap::new();
    for n in 0..200 {
        let message = world.queued(session, &format!("word{n}\n!pwd")).await;
        where_it_ran.insert(message, "/srv/shop");
        assert_eq!(world.ran_in(message).await, "/srv/shop");
    }
    let slow = world.queued(session, "!sleep 5000\n!pwd").await;
    world.house_has_handed(slow).await;
    let before = world.queued(session, "before\n!pwd").await;
    assert_eq!(world.change(session, enter("blue")).await, Ok(Granted::Done));
    assert_eq!(world.change(session, Change::Exit).await, Err(ScopeError::ScopeChanging.into()));
    let (after, dropped) = (world.queued(session, "a\n!pwd").await, world.queued(session, "b\n!pwd").await);
    assert_eq!(world.ran_in(slow).await, "/srv/shop", "nothing moves under a turn");
    assert_eq!(world.arrived(session, 1).await.directory, "/trees/blue");
    for message in [before, after, dropped] {
        assert_eq!(world.state(message).await, (Held, Some("other_scope")));
    }
    assert_eq!(world.own_acts("hold_for_other_scope").len(), 3);
    let there = world.queued(session, "there\n!pwd").await;
    assert_eq!(world.ran_in(there).await, "/trees/blue");
    world.ask(Request::Release { message: before, there: false }).await.unwrap();
    assert_eq!(world.ran_in(before).await, "/trees/blue", "sent here");
    world.ask(Request::Release { message: after, there: true }).await.unwrap();
    assert_eq!(world.ran_in(after).await, "/srv/shop", "sent there: the scope went back first");
    world.ask(Request::Withdraw { message: dropped }).await.unwrap();
    assert_eq!(world.settled(dropped).await.row.state, Withdrawn);
    assert_eq!(world.arrived(session, 2).await.worktree, None);
    world.change(session, enter("blue")).await.unwrap();
    world.arrived(session, 3).await;
    world.change(session, Change::Exit).await.unwrap();
    world.arrived(session, 4).await;
    let last = world.queued(session, "last\n!pwd").await;
    assert_eq!(world.ran_in(last).await, "/srv/shop");
    for (message, directory) in
        [(slow, "/srv/shop"), (before, "/trees/blue"), (after, "/srv/shop"), (there, "/trees/blue")]
    {
        where_it_ran.insert(message, directory);
    }
    where_it_ran.insert(last, "/srv/shop");
    check_epochs(&world.rules(session).await, &where_it_ran);
    let noted = world.house.noted();
    for message in where_it_ran.keys() {
        let handed = noted.iter().filter(|noted| noted.message == *message && noted.did == Did::Handed);
        assert_eq!(handed.count(), 1, "{message}");
    }
}

/// Each turn's attempt carries an epoch, and the scope of that epoch is where its words say it ran.
fn check_epochs(rules: &[Fact], where_it_ran: &BTreeMap<MessageId, &str>) {
    let (mut scopes, mut turns) = (BTreeMap::new(), BTreeMap::new());
    let mut checked = 0;
    for fact in rules {
        match fact {
            Fact::Opened { scope, .. } => drop(scopes.insert(Epoch(0), scope.directory.clone())),
            Fact::ScopeChanged { epoch, scope } => {
                assert_eq!(
                    scopes.insert(*epoch, scope.directory.clone()),
                    None,
                    "each change has a new epoch"
                );
            }
            Fact::TurnStarted { turn, message } => drop(turns.insert(*turn, *message)),
            Fact::AttemptStarted { fence, .. } => {
                if let Some(directory) = where_it_ran.get(&turns[&fence.turn]) {
                    assert_eq!(scopes[&fence.epoch], *directory);
                    checked += 1;
                }
            }
            _ => {}
        }
    }
    assert_eq!(checked, where_it_ran.len());
}

#[tokio::test(start_paused = true)]
async fn a_message_that_was_said_just_before_the_scope_changed_was_not_said_in_the_new_one() {
    let world = World::new().await;
    let session = world.shop().await;
    let slow = world.queued(session, "!sleep 1000").await;
    world.house_has_handed(slow).await;
    world.change(session, enter("blue")).await.unwrap();
    // So late that the turn is over before anybody has looked into the inbox.
    tokio::time::sleep(Duration::from_millis(950)).await;
    assert_eq!(world.state(slow).await.0, Running);
    let late = world.queued(session, "late").await;
    world.arrived(session, 1).await;
    assert_eq!(world.state(late).await, (Held, Some("other_scope")));
}

#[tokio::test(start_paused = true)]
async fn a_change_that_has_to_be_now_is_refused_while_a_turn_runs() {
    let world = World::new().await;
    let session = world.shop().await;
    let slow = world.queued(session, "!sleep 5000").await;
    let now = Request::ChangeScope { session, change: enter("blue"), now: true };
    assert_eq!(world.ask(now.clone()).await, Err(ScopeError::Busy.into()));
    world.settled(slow).await;
    assert_eq!(world.ask(now).await, Ok(Granted::Done));
    assert_eq!(world.arrived(session, 1).await.directory, "/trees/blue");
}

#[tokio::test(start_paused = true)]
async fn a_message_that_was_written_in_another_scope_is_held_until_somebody_says_where_it_belongs() {
    let world = World::new().await;
    let session = world.shop().await;
    world.change(session, enter("blue")).await.unwrap();
    world.arrived(session, 1).await;
    let mut inbound = world.inbound(To::Session(session), "!pwd", None);
    inbound.under = Some(Epoch(0));
    let message = world.engine.way_in().send(inbound).await.unwrap().accepted.message;
    while world.state(message).await.0 == Waiting {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(world.state(message).await, (Held, Some("other_scope")));
    let held = |fact: &Fact| matches!(fact, Fact::Held { why: HoldWhy::OtherScope, .. });
    assert_eq!(world.rules(session).await.iter().filter(|fact| held(fact)).count(), 1);
    world.ask(Request::Release { message, there: false }).await.unwrap();
    assert_eq!(world.ran_in(message).await, "/trees/blue");
}

#[tokio::test(start_paused = true)]
async fn one_turn_at_a_time_works_in_a_directory_and_whoever_waits_is_told_and_woken() {
    let world = World::new().await;
    let (first, second) = (world.shop().await, world.shop().await);
    let slow = world.queued(first, "!sleep 60000").await;
    world.house_has_handed(slow).await;
    let began = Instant::now();
    let other = world.queued(second, "hello").await;
    let elsewhere = in_directory(&world, "hello", "/srv/elsewhere");
    let elsewhere = world.engine.way_in().send(elsewhere).await.unwrap().accepted.message;
    assert_eq!(world.settled(elsewhere).await.row.state, Answered);
    assert_eq!(world.state(slow).await.0, Running, "another directory is free");
    assert_eq!(world.settled(other).await.row.state, Answered);
    assert_eq!(world.state(slow).await.0, Answered, "they take turns");
    assert!(began.elapsed() < Duration::from_secs(61), "it is woken at once: {:?}", began.elapsed());
    let stories = crate::vocabulary::stories(&world, second).await;
    let told = stories.iter().filter_map(|story| story["text"].as_str());
    let told: Vec<&str> = told.filter(|text| text.contains("works in /srv/shop")).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(!told[0].contains(&first.to_string()), "who reads this log may not see that session: {told:?}");
    assert!(world.store.snapshot().claims.is_empty());
}

#[tokio::test(start_paused = true)]
async fn directories_may_be_shared_if_the_configuration_says_so() {
    let world =
        World::with(Limits { shared_directories: true, ..Limits::default() }, Policy::default()).await;
    let (first, second) = (world.shop().await, world.shop().await);
    let slow = world.queued(first, "!sleep 60000").await;
    world.house_has_handed(slow).await;
    let other = world.queued(second, "hello").await;
    assert_eq!(world.settled(other).await.row.state, Answered);
    assert_eq!(world.state(slow).await.0, Running);
    let claims = world.store.snapshot().claims;
    assert!(claims.keys().all(|claim| claim.0.starts_with("slot:")), "{claims:?}");
}

#[tokio::test(start_paused = true)]
async fn a_turn_is_undone_between_turns_and_not_where_somebody_else_works() {
    let world = World::new().await;
    let (session, other) = (world.shop().await, world.shop().await);
    let undo = Request::Undo { session, turn: Turn(1), under: None, files: UndoFiles::Certain };
    assert_eq!(world.ask(undo.clone()).await, Ok(Granted::Done));
    world.until_rule(session, |fact| matches!(fact, Fact::Undone { turn: Turn(1) })).await;
    let slow = world.queued(other, "!sleep 60000").await;
    world.house_has_handed(slow).await;
    assert_eq!(world.ask(undo.clone()).await, Err(ScopeError::Busy.into()));
    assert_eq!(
        world.ask(Request::Undo { session, turn: Turn(9), under: None, files: UndoFiles::Certain }).await,
        Err(AccessError::NotFound { what: "turn" }.into())
    );
    world.change(session, enter("blue")).await.unwrap();
    world.arrived(session, 1).await;
    assert_eq!(world.ask(undo).await, Err(WayInError::OtherScope), "it ran somewhere else");
}

#[tokio::test(start_paused = true)]
async fn a_fork_has_a_tree_of_its_own_and_knows_what_was_said() {
    let world = World::new().await;
    let session = world.shop().await;
    world.talk(To::Session(session), "the second thing").await;
    let made =
        world.engine.way_in().fork(&world.me, session, Some(Turn(1)), None, trace(None)).await.unwrap();
    let view = world.talk(To::Session(made.session), "and now\n!pwd").await;
    let words = view.answer.unwrap();
    assert!(words.lines().last().unwrap().starts_with("/trees/"), "{words}");
    assert!(world.grove.notes().contains(&"fork after 1".to_owned()));
    assert!(!words.contains("the second thing"), "only what was said up to there: {words}");
    assert_eq!(way(&world, made.session).await, "told_again");
    let made = world.engine.way_in().fork(&world.me, session, None, None, trace(None)).await.unwrap();
    let words = world.talk(To::Session(made.session), "and now\n!recall").await.answer.unwrap();
    assert_eq!(way(&world, made.session).await, "forked", "nothing was said since: it does so itself");
    assert!(words.starts_with("#3 and now") && words.contains("the second thing"), "{words}");
    let origin = world.talk(To::Session(session), "!recall").await.answer.unwrap();
    assert!(!origin.contains("and now"), "the origin knows nothing of it: {origin}");
}

#[tokio::test(start_paused = true)]
async fn a_fork_that_was_told_and_has_not_answered_is_told_again() {
    let world = World::new().await;
    let session = world.shop().await;
    world.talk(To::Session(session), "the second thing").await;
    let made =
        world.engine.way_in().fork(&world.me, session, Some(Turn(1)), None, trace(None)).await.unwrap();
    let busy = world.queued(made.session, "too early\n!busy").await;
    assert_eq!(world.settled(busy).await.row.state, ReceiptState::Failed);
    let words = world.talk(To::Session(made.session), "and now\n!recall").await.answer.unwrap();
    assert!(words.contains("> hello") && words.contains("> too early"), "{words}");
    assert!(!words.contains("the second thing"), "only what was said up to there: {words}");
    let words = world.talk(To::Session(made.session), "once more").await.answer.unwrap();
    assert_eq!(words, "#2 once more", "it has answered: it knows it from here on");
}

#[tokio::test(start_paused = true)]
async fn a_fork_knows_nothing_of_what_its_origin_was_told_while_the_agent_made_it() {
    let world = World::new().await;
    let session = world.shop().await;
    let made = world.engine.way_in().fork(&world.me, session, None, None, trace(None)).await.unwrap();
    world.arrived(made.session, 1).await;
    world.grove.act_ms.store(3_000, std::sync::atomic::Ordering::Relaxed);
    let first = world.queued(made.session, "and now\n!recall").await;
    world.until_rule(made.session, |fact| matches!(fact, Fact::AttemptStarted { .. })).await;
    world.talk(To::Session(session), "the second thing").await;
    let words = world.settled(first).await.answer.unwrap();
    assert!(words.contains("> hello") && !words.contains("the second thing"), "{words}");
    let tried = |fact: &&Fact| matches!(fact, Fact::AttemptStarted { .. });
    assert_eq!(world.rules(made.session).await.iter().filter(tried).count(), 2, "once forked, once told");
}

#[tokio::test(start_paused = true)]
async fn a_fork_without_a_tree_of_its_own_waits_while_its_origin_works() {
    let world = World::new().await;
    let session = world.talk(To::New, "hello").await.row.session;
    let made = world.engine.way_in().fork(&world.me, session, None, None, trace(None)).await.unwrap();
    let slow = world.queued(session, "!sleep 5000\n!pwd").await;
    world.house_has_handed(slow).await;
    let waiting = world.queued(made.session, "beside\n!pwd").await;
    world.until_rule(made.session, |fact| matches!(fact, Fact::Crowded { .. })).await;
    assert_eq!(world.state(waiting).await, (Waiting, None));
    let directory = world.ran_in(slow).await;
    assert_eq!(world.ran_in(waiting).await, directory, "outside of version control there is one tree");
    let at = |wanted| {
        let noted = world.house.noted();
        let found = noted.iter().position(|noted| (noted.message, noted.did) == wanted);
        found.unwrap()
    };
    assert!(at((slow, Did::Finished)) < at((waiting, Did::Handed)), "one after the other");
}

#[tokio::test(start_paused = true)]
async fn there_is_no_fork_while_nobody_can_tell_how_the_tree_was() {
    let world = World::new().await;
    let session = world.shop().await;
    world.grove.is_blind.store(true, std::sync::atomic::Ordering::Relaxed);
    let fork = || world.engine.way_in().fork(&world.me, session, None, None, trace(Some("fork")));
    assert!(matches!(fork().await, Err(WayInError::Unavailable(UnavailableError::Unavailable(_)))));
    world.grove.is_blind.store(false, std::sync::atomic::Ordering::Relaxed);
    let made = fork().await.unwrap();
    let words = world.talk(To::Session(made.session), "!pwd").await.answer.unwrap();
    assert!(words.lines().last().unwrap().starts_with("/trees/"), "{words}");
}

async fn way(world: &World, session: SessionId) -> String {
    let told = crate::vocabulary::of_type(&crate::vocabulary::stories(world, session).await, "memory");
    assert_eq!(told.len(), 1);
    told[0]["way"].as_str().unwrap().to_owned()
}

impl World {
    pub(crate) async fn until_rule(&self, session: SessionId, is_it: impl Fn(&Fact) -> bool) {
        for _ in 0..10_000 {
            if self.rules(session).await.iter().any(&is_it) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("it never happens: {:#?}", self.rules(session).await);
    }
}
