//! Chores are as durable as any other wish: whoever dies, their rows stay, and whoever comes next brings them to their end.

use crate::disk::Lost;
use crate::scope::enter;
use crate::vocabulary::{of_type, stories};
use crate::worktrees::{collecting, printed, remove_whole, teardown};
use crate::world::{World, trace};
use engine::{
    AccessError, ChoreOutcome, ConflictError, FollowUpdate, Granted, Limits, ReceiptState, RemovedTree,
    Resource, ScopeError, SessionUpdate, UnavailableError, WorkPhase, WorkProgress, WorktreeError,
};
use kernel::{Change, Grant, Grantee, MergeHow, Principal, Request, Role, SessionId, To};
use std::sync::atomic::Ordering;
use std::time::Duration;
use store::{InboxItem, Verdict};
use tokio::task::JoinHandle;

type Removing = JoinHandle<Result<RemovedTree, WorktreeError>>;

impl World {
    /// Somebody has a worktree removed, and waits for it.
    fn removing(&self, by: &Principal, session: SessionId, name: &'static str) -> Removing {
        let (engine, by) = (self.engine.clone(), by.clone());
        tokio::spawn(async move { remove_whole(&engine, &by, session, name).await })
    }

    /// The same, and each removal takes so long. It has begun.
    async fn removing_slowly(&self, session: SessionId, ms: u64) -> Removing {
        self.grove.act_ms.store(ms, Ordering::Relaxed);
        let removing = self.removing(&self.me, session, "blue");
        self.until_times_noted("begin remove blue", 1).await;
        removing
    }

    async fn until_times_noted(&self, note: &str, times: usize) {
        for _ in 0..100_000 {
            if self.times_noted(note) >= times {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("{note:?} never happens: {:?}", self.grove.notes());
    }

    /// Waits until no chore is in the inbox of this session any more.
    async fn until_tidy(&self, session: SessionId) {
        for _ in 0..100_000 {
            if self.chores_waiting(session) == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("a chore never ends: {:?}", self.store.snapshot().inbox);
    }

    fn chores_waiting(&self, session: SessionId) -> usize {
        let rows = self.store.snapshot().inbox.remove(&session).unwrap_or_default();
        let is_chore =
            |item: &InboxItem| matches!(item, InboxItem::Request { request: Request::Chore { .. }, .. });
        rows.iter().filter(|row| is_chore(&row.item)).count()
    }

    /// The verdict that was said last, by the id of its request.
    fn last_verdict(&self) -> Option<Verdict> {
        self.store.snapshot().verdicts.into_iter().next_back().map(|(_, verdict)| verdict)
    }

    async fn told_of_worktrees(&self, session: SessionId) -> Vec<String> {
        let told = of_type(&stories(self, session).await, "worktree");
        told.iter().map(|story| story["change"].as_str().unwrap().to_owned()).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn a_removal_that_was_under_way_when_we_died_is_brought_to_its_end_by_the_next() {
    let mut world = World::new().await;
    let session = world.left().await;
    let removing = world.removing_slowly(session, 10_000).await;
    let said = world.say(To::Session(session), "hello").await.unwrap().accepted.message;
    removing.abort();
    world.crash().await;
    assert_eq!((world.chores_waiting(session), world.times_noted("remove blue")), (1, 0));
    world.until_times_noted("begin remove blue", 2).await;
    let waits = world.engine.views().receipt(&world.me, said).await.unwrap().row.state;
    assert_eq!(waits, ReceiptState::Waiting, "no turn starts beside a chore");
    world.until_tidy(session).await;
    assert_eq!((world.times_noted("begin remove blue"), world.times_noted("remove blue")), (2, 1));
    assert_eq!(world.last_verdict(), Some(Verdict::Done));
    assert_eq!((world.audited("remove_worktree"), world.told_of_worktrees(session).await.len()), (1, 1));
    // What waited for it went on waiting, and then had its turn.
    assert!(world.settled(said).await.row.state.is_final());
    let notes = world.grove.notes();
    let at = |wanted: &str| notes.iter().position(|note| note == wanted).unwrap();
    assert!(at("remove blue") < at("begin Before 2 in /srv/shop"), "{notes:?}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_goes_leaves_its_chores_to_the_next() {
    let mut world = World::new().await;
    let session = world.left().await;
    let removing = world.removing_slowly(session, 3_600_000).await;
    let began = tokio::time::Instant::now();
    world.engine.shutdown().await;
    assert!(began.elapsed() < Duration::from_secs(2), "nobody waits for it: {:?}", began.elapsed());
    let down = UnavailableError::Unavailable("the server goes down".to_owned()).into();
    assert_eq!(removing.await.unwrap(), Err(down));
    assert_eq!(world.chores_waiting(session), 1);
    world.grove.act_ms.store(0, Ordering::Relaxed);
    world.restart().await;
    world.until_tidy(session).await;
    assert_eq!(world.told_of_worktrees(session).await, ["removed"]);
    assert_eq!((world.times_noted("remove blue"), world.last_verdict()), (1, Some(Verdict::Done)));
}

#[tokio::test(start_paused = true)]
async fn a_removal_that_was_done_and_not_written_down_is_found_done() {
    let world = World::new().await;
    let session = world.left().await;
    *world.faults.loses_removal.lock().unwrap() = Some(Lost::Write);
    world.remove(session).await.unwrap();
    assert_eq!((world.times_noted("remove blue"), world.told_of_worktrees(session).await.len()), (1, 1));
    let reference =
        world.engine.worktrees().list(&world.me, None).await.unwrap().removed[0].reference.clone();
    *world.faults.loses_removal.lock().unwrap() = Some(Lost::Write);
    let back = world.restore(session, Some(&reference)).await;
    assert_eq!((back.unwrap().name.as_str(), world.times_noted("restore blue")), ("blue", 1));
    assert_eq!(world.told_of_worktrees(session).await, ["removed", "restored"]);
}

#[tokio::test(start_paused = true)]
async fn a_verdict_of_which_nobody_was_told_is_found_soon() {
    let world = World::new().await;
    let session = world.left().await;
    *world.faults.loses_removal.lock().unwrap() = Some(Lost::Answer);
    let began = tokio::time::Instant::now();
    world.remove(session).await.unwrap();
    assert!(began.elapsed() <= world.limits.verdict_wait, "{:?}", began.elapsed());
    assert_eq!((world.times_noted("begin remove blue"), world.audited("remove_worktree")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_stop_never_waits_behind_a_teardown_script() {
    let mut world = World::new().await;
    let session = world.left().await;
    world.scripts.insert("scripted".to_owned(), teardown(vec![printed("still at it\n")]));
    world.restart().await;
    let removing = world.removing(&world.me, session, "blue");
    while of_type(&stories(&world, session).await, "script").is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let said = world.say(To::Session(session), "hello").await.unwrap().accepted.message;
    assert_eq!(world.ask(Request::Stop { message: said }).await, Ok(Granted::Done));
    assert!(world.settled(said).await.row.state.is_final());
    assert!(!removing.is_finished());
    let Err(WorktreeError::Scope(ScopeError::WorktreeTrouble { why })) = removing.await.unwrap() else {
        panic!("it took too long")
    };
    assert!(why.contains("longer than 60 seconds"), "{why}");
    let verdicts = world.store.snapshot().verdicts;
    assert!(
        verdicts.values().any(|verdict| *verdict == Verdict::Failed { why: why.clone() }),
        "{verdicts:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_session_ends_beside_a_chore_which_goes_on() {
    let world = World::new().await;
    let session = world.left().await;
    let removing = world.removing_slowly(session, 10_000).await;
    assert_eq!(world.ask(Request::End { session }).await, Ok(Granted::Done));
    let row = world.engine.views().session(&world.me, session).await.unwrap();
    assert!(row.ended.is_some() && !removing.is_finished());
    removing.await.unwrap().unwrap();
    assert_eq!((world.chores_waiting(session), world.told_of_worktrees(session).await.len()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn the_same_chore_asked_for_twice_is_done_once_and_too_many_are_refused() {
    let world = World::new().await;
    let session = world.left().await;
    let began = tokio::time::Instant::now();
    let first = world.removing_slowly(session, 10_000).await;
    let others: Vec<_> = (0..20).map(|_| world.removing(&world.me, session, "blue")).collect();
    let removed = first.await.unwrap().unwrap();
    let (mut done, mut busy) = (0, 0);
    for other in others {
        match other.await.unwrap() {
            Ok(same) => {
                assert_eq!(same, removed);
                done += 1;
            }
            Err(refused) => {
                assert_eq!(refused, ScopeError::Busy.into());
                busy += 1;
            }
        }
    }
    assert_eq!((done, busy, world.times_noted("remove blue")), (15, 5, 1));
    assert!(
        began.elapsed() < Duration::from_secs(11),
        "each begins when the one before is over: {:?}",
        began.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_chore_is_not_begun_for_whoever_lost_the_right_while_it_waited() {
    let world = World::new().await;
    let session = world.left().await;
    world.change(session, enter("red")).await.unwrap();
    world.arrived(session, 3).await;
    world.change(session, Change::Exit).await.unwrap();
    world.arrived(session, 4).await;
    let bob = world.let_in("bob", Role::Member).await;
    world.give(session, Grantee::Person(bob.person), Grant::Manage).await;
    let mine = world.removing_slowly(session, 10_000).await;
    let bobs = world.removing(&bob, session, "red");
    while world.chores_waiting(session) < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let (on, to) = (Resource::Session(session), Grantee::Person(bob.person));
    world.engine.people().take_back(&world.me, on, to, trace(None)).await.unwrap();
    mine.await.unwrap().unwrap();
    assert_eq!(bobs.await.unwrap(), Err(AccessError::NotFound { what: "session" }.into()));
    assert_eq!((world.times_noted("begin remove red"), world.chores_waiting(session)), (0, 0));
    assert_eq!(world.last_verdict(), Some(Verdict::Refused(kernel::Refusal::NotAllowed)));
}

#[tokio::test(start_paused = true)]
async fn what_waited_for_a_slot_once_and_waits_for_a_chore_now_is_not_woken_again_and_again() {
    let policy = kernel::Policy { crowded_ms: 1_000, ..kernel::Policy::default() };
    let world = World::with(Limits { awake_max: 1, ..Limits::default() }, policy).await;
    let session = world.left().await;
    let other = world.say(To::New, "!sleep 60000").await.unwrap().accepted;
    world.house_has_handed(other.message).await;
    let crowded = world.say(To::Session(session), "hello").await.unwrap().accepted.message;
    world.until_rule(session, |fact| matches!(fact, kernel::Fact::Crowded { .. })).await;
    world.ask(Request::Stop { message: crowded }).await.unwrap();
    let removing = world.removing_slowly(session, 10_000).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let before = world.faults.appends.load(Ordering::Relaxed);
    let said = world.say(To::Session(session), "hello again").await.unwrap().accepted.message;
    // Time does not pass by itself for somebody who never rests.
    for _ in 0..3 {
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    assert_eq!(world.faults.appends.load(Ordering::Relaxed) - before, 1, "it is queued, once");
    removing.await.unwrap().unwrap();
    assert_eq!(world.settled(said).await.row.state, ReceiptState::Answered);
}

#[tokio::test(start_paused = true)]
async fn what_the_server_collects_by_itself_outlives_it() {
    let mut world = World::with(collecting(), kernel::Policy::default()).await;
    let session = world.left().await;
    world.grove.act_ms.store(60_000, Ordering::Relaxed);
    while world.times_noted("begin remove blue") == 0 {
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    world.crash().await;
    world.until_tidy(session).await;
    assert_eq!(world.told_of_worktrees(session).await, ["removed"]);
    let acts = world.own_acts("remove_worktree");
    let [act] = &acts[..] else { panic!("{acts:?}") };
    assert_eq!((act.session, act.subject.as_deref(), &*act.door), (Some(session), Some("blue"), "engine"));
}

impl World {
    /// Asks once to have it removed, under a key.
    async fn asks_to_remove(
        &self,
        session: SessionId,
        name: &str,
        key: &str,
    ) -> Result<ChoreOutcome<RemovedTree>, WorktreeError> {
        self.engine.worktrees().remove(&self.me, session, name, true, trace(Some(key))).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_chore_answers_that_it_goes_on_and_the_same_key_joins_it_until_its_end() {
    let world = World::new().await;
    let session = world.left().await;
    world.grove.act_ms.store(120_000, Ordering::Relaxed);
    let (began, mut asked) = (tokio::time::Instant::now(), 0);
    let removed = loop {
        let at = tokio::time::Instant::now();
        match world.asks_to_remove(session, "blue", "one").await.unwrap() {
            ChoreOutcome::Over(removed) => break removed,
            ChoreOutcome::GoesOn => asked += 1,
        }
        assert!(at.elapsed() <= 2 * world.limits.verdict_wait, "nobody waits for long: {:?}", at.elapsed());
        let row = world.engine.views().session(&world.me, session).await.unwrap();
        let shown = world.engine.views().progress_of(&row).unwrap();
        assert_eq!((shown.verb, shown.subject.as_str()), ("remove", "blue"));
        assert_eq!(world.chores_waiting(session), 1, "it joins, and asks for nothing more");
    };
    assert!(asked > 10 && began.elapsed() >= Duration::from_secs(120), "{asked} times");
    assert_eq!((removed.name.as_str(), world.times_noted("begin remove blue")), ("blue", 1));
    assert_eq!((world.audited("remove_worktree"), world.told_of_worktrees(session).await.len()), (1, 1));
    let again = world.asks_to_remove(session, "blue", "one").await;
    assert_eq!(again, Ok(ChoreOutcome::Over(removed)));
    let row = world.engine.views().session(&world.me, session).await.unwrap();
    assert_eq!(world.engine.views().progress_of(&row), None, "nothing goes on any more");
    let other = world.asks_to_remove(session, "red", "one").await;
    assert_eq!(other, Err(ConflictError::KeyReused.into()), "a key is for one wish");
}

#[tokio::test(start_paused = true)]
async fn a_key_that_was_given_before_a_crash_has_the_verdict_after_it() {
    let mut world = World::new().await;
    let session = world.left().await;
    world.grove.act_ms.store(20_000, Ordering::Relaxed);
    assert_eq!(world.asks_to_remove(session, "blue", "one").await, Ok(ChoreOutcome::GoesOn));
    world.crash().await;
    let row = world.engine.views().session(&world.me, session).await.unwrap();
    let removed = loop {
        if let ChoreOutcome::Over(removed) = world.asks_to_remove(session, "blue", "one").await.unwrap() {
            break removed;
        }
        let shown = world.engine.views().progress_of(&row).map(|shown| shown.verb);
        assert_eq!((shown, world.chores_waiting(session)), (Some("remove"), 1));
    };
    assert_eq!((removed.name.as_str(), world.times_noted("begin remove blue")), ("blue", 2));
    assert_eq!((world.times_noted("remove blue"), world.audited("remove_worktree")), (1, 1));
    world.restart().await;
    assert_eq!(world.asks_to_remove(session, "blue", "one").await, Ok(ChoreOutcome::Over(removed)));
}

#[tokio::test(start_paused = true)]
async fn what_a_merge_came_to_is_told_to_the_key_that_asked_for_it_however_late() {
    let mut world = World::new().await;
    let session = world.left().await;
    world.grove.act_ms.store(20_000, Ordering::Relaxed);
    let apply = async |world: &World| {
        let trees = world.engine.worktrees();
        trees.merge(&world.me, session, "blue", MergeHow::Apply, false, trace(Some("one"))).await.unwrap()
    };
    assert_eq!(apply(&world).await, ChoreOutcome::GoesOn);
    world.until_tidy(session).await;
    world.restart().await;
    let ChoreOutcome::Over(merged) = apply(&world).await else { panic!("it is over") };
    assert_eq!((merged.into.for_readers(), &merged.files[..]), ("/srv/shop", &["a.txt".to_owned()][..]));
    assert_eq!(merged.safety.as_deref(), Some("refs/homing/safety"));
    assert_eq!(world.times_noted("apply blue"), 1);
}

#[tokio::test(start_paused = true)]
async fn whoever_watches_is_told_how_far_it_is_and_when_it_is_over() {
    let world = World::new().await;
    let session = world.left().await;
    let number = world.engine.views().session(&world.me, session).await.unwrap().at;
    let mut watching =
        world.engine.views().follow(&world.me, session, number).await.unwrap().with_readiness();
    world.grove.act_ms.store(10_000, Ordering::Relaxed);
    let far =
        WorkProgress { files: Some((3, Some(7))), bytes: 4_096, ..WorkProgress::at(WorkPhase::Removing) };
    let removing = world.removing(&world.me, session, "blue");
    world.until_times_noted("begin remove blue", 1).await;
    world.grove.progress.send_replace(Some(far));
    let mut told = Vec::new();
    while told.last() != Some(&None) {
        if let Some(FollowUpdate::Session(SessionUpdate::Progress(update))) = watching.next().await {
            told.push(update.progress.clone());
        }
    }
    let phases: Vec<_> = told.iter().flatten().map(|shown| (shown.verb, shown.progress)).collect();
    assert_eq!(phases, [("remove", WorkProgress::at(WorkPhase::Begun)), ("remove", far)]);
    removing.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_script_that_takes_long_is_shown_and_its_end_is_the_answer() {
    let mut world = World::new().await;
    let session = world.left().await;
    world.scripts.insert("scripted".to_owned(), teardown(vec![printed("still at it\n")]));
    world.restart().await;
    let mut shown = Vec::new();
    let failed = loop {
        match world.asks_to_remove(session, "blue", "one").await {
            Ok(ChoreOutcome::GoesOn) => {
                let row = world.engine.views().session(&world.me, session).await.unwrap();
                shown.extend(world.engine.views().progress_of(&row).map(|shown| shown.progress));
            }
            Ok(ChoreOutcome::Over(removed)) => panic!("{removed:?}"),
            Err(why) => break why.to_string(),
        }
    };
    assert!(failed.contains("longer than 60 seconds"), "{failed}");
    assert!(shown.len() > 5 && shown.iter().all(|shown| shown.phase == WorkPhase::Teardown), "{shown:?}");
    assert_eq!(shown.last().unwrap().bytes, 12, "what it has printed");
}
