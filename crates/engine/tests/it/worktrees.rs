//! Worktrees that nobody is in are removed, restored and collected; those that somebody is in are not.

use crate::puppet::Puppet;
use crate::scope::enter;
use crate::vocabulary::{of_type, stories};
use crate::world::{World, conversation, trace};
use agent::{AgentEvent, Trouble};
use engine::{
    AccessError, ChoreOutcome, CollectReason, Collecting, Engine, FollowUpdate, Limits, Look, LookResult,
    MergedTree, RemovedTree, ScopeError, Scripts, SessionUpdate, TreeFiles, TreeSeen, WorktreeError,
};
use kernel::{Change, Grant, Grantee, MergeHow, Moment, Number, Principal, Request, Role, SessionId, To};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

impl World {
    /// A session that has entered a worktree and left it.
    pub(crate) async fn left(&self) -> SessionId {
        let session = self.shop().await;
        self.change(session, enter("blue")).await.unwrap();
        self.arrived(session, 1).await;
        self.change(session, Change::Exit).await.unwrap();
        self.arrived(session, 2).await;
        session
    }

    pub(crate) async fn remove(&self, session: SessionId) -> Result<String, WorktreeError> {
        Ok(remove_whole(&self.engine, &self.me, session, "blue").await?.reference)
    }

    pub(crate) async fn restore(
        &self,
        session: SessionId,
        reference: Option<&str>,
    ) -> Result<TreeSeen, WorktreeError> {
        let (trees, key) = (self.engine.worktrees(), new_key());
        loop {
            let trace = trace(Some(&key));
            if let ChoreOutcome::Over(seen) =
                trees.restore(&self.me, session, "blue", reference, trace).await?
            {
                return Ok(seen);
            }
        }
    }

    pub(crate) async fn merge(
        &self,
        session: SessionId,
        name: &str,
        how: MergeHow,
        dry_run: bool,
    ) -> Result<MergedTree, WorktreeError> {
        let (trees, key) = (self.engine.worktrees(), new_key());
        loop {
            let trace = trace(Some(&key));
            if let ChoreOutcome::Over(merged) =
                trees.merge(&self.me, session, name, how, dry_run, trace).await?
            {
                return Ok(merged);
            }
        }
    }

    pub(crate) fn audited(&self, verb: &str) -> usize {
        let rows = self.store.snapshot().audit;
        rows.iter().filter(|row| row.verb == verb && row.refused.is_none()).count()
    }
}

/// Asks again under the same key until it is over, as a client does.
pub(crate) async fn remove_whole(
    engine: &Engine,
    by: &Principal,
    session: SessionId,
    name: &str,
) -> Result<RemovedTree, WorktreeError> {
    let (trees, key) = (engine.worktrees(), new_key());
    loop {
        if let ChoreOutcome::Over(removed) = trees.remove(by, session, name, true, trace(Some(&key))).await? {
            return Ok(removed);
        }
    }
}

fn new_key() -> String {
    static KEYS: AtomicUsize = AtomicUsize::new(0);
    format!("chore-{}", KEYS.fetch_add(1, Ordering::Relaxed))
}

pub(crate) fn teardown(says: Vec<AgentEvent>) -> Scripts {
    let script: Arc<dyn agent::Agent> = Arc::new(Puppet { says, ..Puppet::default() });
    Scripts { setup: None, teardown: Some(script), wait: Duration::from_secs(60) }
}

pub(crate) fn printed(text: &str) -> AgentEvent {
    AgentEvent::Text { text: text.to_owned() }
}

#[tokio::test(start_paused = true)]
async fn a_worktree_goes_only_when_its_session_is_not_in_it_and_nothing_goes_on() {
    let world = World::new().await;
    let session = world.shop().await;
    assert_eq!(world.remove(session).await, Err(AccessError::NotFound { what: "worktree" }.into()));
    world.change(session, enter("blue")).await.unwrap();
    world.arrived(session, 1).await;
    assert_eq!(world.remove(session).await, Err(ScopeError::InWorktree.into()));
    let view = world.engine.worktrees().list(&world.me, None).await.unwrap();
    assert_eq!(
        view.here.iter().map(|(seen, in_use)| (seen.session, *in_use)).collect::<Vec<_>>(),
        [(session, true)]
    );

    let slow = world.say(To::Session(session), "!sleep 5000").await.unwrap().accepted.message;
    world.house_has_handed(slow).await;
    world.change(session, Change::Exit).await.unwrap();
    assert_eq!(world.remove(session).await, Err(ScopeError::Busy.into()));
    world.settled(slow).await;
    world.arrived(session, 2).await;
    assert_eq!(world.times_noted("remove blue"), 0);
    let reference = world.remove(session).await.unwrap();
    let told = of_type(&stories(&world, session).await, "worktree");
    assert_eq!((&told[0]["change"], &told[0]["reference"]), (&"removed".into(), &reference.clone().into()));
    // Asked again it answers the same, and does nothing.
    assert_eq!(world.remove(session).await, Ok(reference.clone()));
    assert_eq!(world.times_noted("remove blue"), 1);
    // Like any wish it was taken in each time that there was something to remove, and the keeper has refused it twice.
    assert_eq!((world.audited("remove_worktree"), world.refusals("remove_worktree")), (3, 3));
    let view = world.engine.worktrees().list(&world.me, Some(session)).await.unwrap();
    assert_eq!((view.here.len(), view.removed[0].reference.as_str()), (0, reference.as_str()));
}

impl World {
    /// Nothing of that name, in it, and busy, say.
    fn refusals(&self, verb: &str) -> usize {
        let rows = self.store.snapshot().audit;
        rows.iter().filter(|row| row.verb == verb && row.refused.is_some()).count()
    }

    pub(crate) fn times_noted(&self, note: &str) -> usize {
        self.grove.notes().iter().filter(|other| *other == note).count()
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_said_while_a_worktree_goes_waits_and_nobody_walks_in() {
    let world = World::new().await;
    let session = world.left().await;
    world.grove.act_ms.store(10_000, Ordering::Relaxed);
    let (engine, me) = (world.engine.clone(), world.me.clone());
    let removing = tokio::spawn(async move { remove_whole(&engine, &me, session, "blue").await });
    while world.times_noted("begin remove blue") == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let said = world.say(To::Session(session), "hello").await.unwrap().accepted.message;
    assert_eq!(world.change(session, enter("blue")).await, Ok(engine::Granted::Done));
    assert!(!removing.is_finished(), "whoever asks has an answer, and what they asked for waits");
    removing.await.unwrap().unwrap();
    world.arrived(session, 3).await;
    assert!(world.settled(said).await.row.state.is_final());
    let notes = world.grove.notes();
    let at = |wanted: &str| notes.iter().rposition(|note| note == wanted).unwrap();
    assert!(at("remove blue") < at("begin enter blue from /srv/shop"), "{notes:?}");
}

#[tokio::test(start_paused = true)]
async fn a_stop_never_waits_behind_a_removal() {
    let world = World::new().await;
    let session = world.left().await;
    world.grove.act_ms.store(60_000, Ordering::Relaxed);
    let (engine, me) = (world.engine.clone(), world.me.clone());
    let removing = tokio::spawn(async move { remove_whole(&engine, &me, session, "blue").await });
    while world.times_noted("begin remove blue") == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let said = world.say(To::Session(session), "hello").await.unwrap().accepted.message;
    assert_eq!(world.ask(Request::Stop { message: said }).await, Ok(engine::Granted::Done));
    assert!(world.settled(said).await.row.state.is_final());
    assert!(!removing.is_finished());
    removing.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_worktree_of_an_ended_session_goes_and_comes_back() {
    let world = World::new().await;
    let session = world.shop().await;
    world.change(session, enter("blue")).await.unwrap();
    world.arrived(session, 1).await;
    world.ask(Request::End { session }).await.unwrap();
    let reference = world.remove(session).await.unwrap();
    let restore = async |reference: Option<&str>| world.restore(session, reference).await;
    assert_eq!(
        restore(Some("refs/homing/other")).await,
        Err(AccessError::NotFound { what: "worktree" }.into())
    );
    assert_eq!(restore(Some(&reference)).await.unwrap().name, "blue");
    assert_eq!(restore(None).await.unwrap().name, "blue", "asked again it answers the same");
    assert_eq!(world.times_noted("restore blue"), 1);
    let told = of_type(&stories(&world, session).await, "worktree");
    assert_eq!(told.iter().map(|story| story["change"].clone()).collect::<Vec<_>>(), ["removed", "restored"]);
    let ended = world.engine.views().session(&world.me, session).await.unwrap();
    assert!(ended.ended.is_some(), "and the session stays ended");
}

#[tokio::test(start_paused = true)]
async fn a_worktree_that_is_gone_comes_back_for_a_session_that_is_in_it() {
    let world = World::new().await;
    let session = world.shop().await;
    world.change(session, enter("blue")).await.unwrap();
    world.arrived(session, 1).await;
    let slow = world.say(To::Session(session), "!sleep 5000").await.unwrap().accepted.message;
    world.house_has_handed(slow).await;
    let there = world.say(To::Session(session), "there").await.unwrap().accepted.message;
    world.change(session, Change::Exit).await.unwrap();
    world.arrived(session, 2).await;
    world.remove(session).await.unwrap();
    // Nobody saw in time that there is nothing to go back to.
    world.ask(Request::Release { message: there, there: true }).await.unwrap();
    world.arrived(session, 3).await;
    world.settled(there).await;
    let back = world.restore(session, None).await;
    assert_eq!(back.unwrap().name, "blue");
    assert_eq!(world.times_noted("restore blue"), 1);
    assert_eq!(world.remove(session).await, Err(ScopeError::InWorktree.into()));
}

#[tokio::test(start_paused = true)]
async fn work_comes_back_by_a_chore_and_what_is_in_the_way_is_told_before_one_begins() {
    let world = World::new().await;
    let session = world.left().await;
    let merge = async |name: &str, how, dry_run| world.merge(session, name, how, dry_run).await;
    assert_eq!(merge("blue", MergeHow::Merge, true).await.unwrap().files, ["a.txt"]);
    assert_eq!((world.times_noted("merge blue"), world.audited("merge_worktree")), (0, 0), "only looked at");
    for (how, done, change) in
        [(MergeHow::Merge, "merge blue", "merged"), (MergeHow::Apply, "apply blue", "applied")]
    {
        merge("blue", how, false).await.unwrap();
        assert_eq!(world.times_noted(done), 1);
        let told = of_type(&stories(&world, session).await, "worktree");
        assert_eq!(told.last().unwrap()["change"], change);
        assert_eq!(told.last().unwrap()["reference"], "refs/homing/safety");
    }
    assert_eq!((world.audited("merge_worktree"), world.audited("apply_worktree")), (1, 1));
    let none = merge("none", MergeHow::Merge, false).await;
    assert_eq!(none, Err(AccessError::NotFound { what: "worktree" }.into()));
    world.change(session, enter("torn")).await.unwrap();
    world.arrived(session, 3).await;
    let refused = merge("torn", MergeHow::Merge, false).await.unwrap_err();
    assert_eq!(refused.code(), "merge_conflicts");
    assert!(refused.to_string().contains("a.txt"), "{refused}");
    assert_eq!(world.times_noted("merge torn"), 0);
}

#[tokio::test(start_paused = true)]
async fn work_does_not_come_back_under_somebody_elses_turn() {
    let world = World::new().await;
    let session = world.left().await;
    let other = world.shop().await;
    let slow = world.say(To::Session(other), "!sleep 5000").await.unwrap().accepted.message;
    world.house_has_handed(slow).await;
    let merge = async || world.merge(session, "blue", MergeHow::Merge, false).await;
    assert_eq!(merge().await, Err(ScopeError::Busy.into()));
    assert_eq!(world.times_noted("merge blue"), 0);
    world.settled(slow).await;
    merge().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_teardown_says_goodbye_and_one_that_fails_leaves_the_worktree() {
    let mut world = World::new().await;
    let session = world.left().await;
    let failed = AgentEvent::Failed(Trouble::refused("exit code 1"));
    world.scripts.insert("scripted".to_owned(), teardown(vec![printed("no\n"), failed]));
    world.restart().await;
    let Err(WorktreeError::Scope(ScopeError::WorktreeTrouble { why })) = world.remove(session).await else {
        panic!("it failed")
    };
    assert!(why.contains("exit code 1"), "{why}");
    assert_eq!(world.times_noted("remove blue"), 0);
    let done = AgentEvent::Finished { native: None, reason: String::new() };
    world.scripts.insert("scripted".to_owned(), teardown(vec![printed("bye\n"), done]));
    world.restart().await;
    world.remove(session).await.unwrap();
    let told = of_type(&stories(&world, session).await, "script");
    let told: Vec<_> = told.iter().map(|story| (&story["stage"], &story["output"])).collect();
    assert_eq!(told, [(&"teardown".into(), &"no\n".into()), (&"teardown".into(), &"bye\n".into())]);
}

#[tokio::test(start_paused = true)]
async fn only_who_manages_a_session_removes_its_worktrees_and_only_who_sees_it_sees_them() {
    let world = World::new().await;
    let session = world.left().await;
    let bob = world.let_in("bob", Role::Member).await;
    let remove = async |by| remove_whole(&world.engine, by, session, "blue").await;
    assert_eq!(remove(&bob).await, Err(AccessError::NotFound { what: "session" }.into()));
    assert_eq!(world.engine.worktrees().list(&bob, None).await.unwrap(), engine::WorktreesView::default());
    world.give(session, Grantee::Person(bob.person), Grant::Prompt).await;
    assert_eq!(world.engine.worktrees().list(&bob, None).await.unwrap().here.len(), 1);
    assert_eq!(remove(&bob).await, Err(AccessError::Needs(Grant::Manage).into()));
    assert!(world.engine.worktrees().collect(&bob, false, trace(None)).await.unwrap().is_empty());
    world.give(session, Grantee::Person(bob.person), Grant::Manage).await;
    assert!(remove(&bob).await.is_ok());
}

/// Nobody waits for a month: in a test, too, the timer looks every ten seconds of it.
pub(crate) fn collecting() -> Limits {
    let worktrees = Collecting { keep: HOUR, every: HOUR / 4, ..Collecting::default() };
    Limits { worktrees, ..Limits::default() }
}

const HOUR: Duration = Duration::from_secs(60 * 60);

#[tokio::test(start_paused = true)]
async fn the_server_collects_what_nobody_is_in_and_nobody_has_used_for_long() {
    let world = World::with(collecting(), kernel::Policy::default()).await;
    let (gone, kept) = (world.left().await, world.shop().await);
    world.change(kept, enter("red")).await.unwrap();
    world.arrived(kept, 1).await;
    let due = world.engine.worktrees().collect(&world.me, true, trace(None)).await.unwrap();
    assert!(due.is_empty(), "nothing is old: {due:?}");
    while world.times_noted("sweep") < 6 {
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    let view = world.engine.worktrees().list(&world.me, None).await.unwrap();
    assert_eq!(view.here.iter().map(|(seen, _)| seen.name.as_str()).collect::<Vec<_>>(), ["red"]);
    assert_eq!(view.removed.iter().map(|removed| removed.session).collect::<Vec<_>>(), [gone]);
    assert_eq!(world.own_acts("remove_worktree").len(), 1, "and the audit says that nobody asked");
}

/// It runs git in repositories that agents have written.
#[tokio::test(start_paused = true)]
async fn old_snapshots_are_swept_behind_the_wall_as_soon_as_there_are_two_people() {
    for (others, walled) in [(0, false), (1, true)] {
        let world = World::with(collecting(), kernel::Policy::default()).await;
        for _ in 0..others {
            world.let_in("ana", Role::Member).await;
        }
        while world.times_noted("sweep") < 2 {
            tokio::time::sleep(Duration::from_secs(60)).await;
        }
        let swept = world.grove.of_none.lock().unwrap().clone();
        assert_eq!(swept, BTreeSet::from([("sweep", walled)]), "beside {others} others");
    }
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_removes_nothing() {
    let worktrees = Collecting { keep: HOUR, every: Duration::ZERO, ..Collecting::default() };
    let world = World::with(Limits { worktrees, ..Limits::default() }, kernel::Policy::default()).await;
    let session = world.left().await;
    tokio::time::sleep(HOUR).await;
    let due = world.engine.worktrees().collect(&world.me, true, trace(None)).await.unwrap();
    let [due] = &due[..] else { panic!("{due:?}") };
    assert_eq!((due.seen.session, due.why, due.came.is_none()), (session, CollectReason::Age, true));
    assert_eq!(world.times_noted("remove blue"), 0);
    let gone = world.engine.worktrees().collect(&world.me, false, trace(None)).await.unwrap();
    assert!(
        matches!(&gone[0].came, Some(Ok(ChoreOutcome::Over(removed))) if removed.name == "blue"),
        "{gone:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_files_of_a_scope_are_those_of_its_tree_or_of_its_directory() {
    let world = World::new().await;
    let session = world.shop().await;
    let files = async |session| world.engine.views().look(&world.me, session, Look::Files).await.unwrap();
    let tree = TreeFiles { paths: vec!["/srv/shop/a".to_owned()], is_cut: false };
    assert_eq!(files(session).await, LookResult::Files(tree));
    let elsewhere = world.say(To::New, "hello").await.unwrap().accepted;
    world.settled(elsewhere.message).await;
    let plain = TreeFiles { paths: vec!["a.txt".to_owned(), "b/c.txt".to_owned()], is_cut: false };
    assert_eq!(files(elsewhere.session).await, LookResult::Files(plain));
}

#[tokio::test(start_paused = true)]
async fn whoever_follows_hears_how_ready_it_is_at_first_and_when_that_changes() {
    let world = World::new().await;
    let session = world.shop().await;
    let at = world.engine.views().session(&world.me, session).await.unwrap().at;
    let follow = world.engine.views().follow(&world.me, session, at).await.unwrap();
    let mut follow = follow.with_readiness();
    let Some(FollowUpdate::Ready(first)) = follow.next().await else { panic!("at first it is said") };
    assert_eq!(first.state, "ready");
    let said = world.say(To::Session(session), "!ask shell").await.unwrap().accepted.message;
    let mut states = Vec::new();
    while states.last() != Some(&"waiting") {
        match follow.next().await.expect("it goes on") {
            FollowUpdate::Ready(ready) => states.push(ready.state),
            FollowUpdate::Session(
                SessionUpdate::Fact(_) | SessionUpdate::Live(_) | SessionUpdate::Progress(_),
            ) => {}
        }
    }
    let open = world.engine.views().approvals(&world.me, 1).await.unwrap()[0].row.approval;
    world.ask(Request::Answer { approval: open, answer: kernel::Answer::Yes, remember: None }).await.unwrap();
    world.settled(said).await;
    loop {
        if let FollowUpdate::Ready(ready) = follow.next().await.expect("it goes on")
            && ready.state == "ready"
        {
            break;
        }
    }
    // Whoever did not ask for it hears facts and words only, as ever.
    let mut plain = world.engine.views().follow(&world.me, session, Number(0)).await.unwrap();
    assert!(matches!(plain.next().await, Some(SessionUpdate::Fact(_))));
}

/// Four bytes each, as the grove has them.
#[tokio::test(start_paused = true)]
async fn whoever_has_too_much_in_worktrees_makes_no_more_until_one_goes() {
    let limits = Limits { worktree_bytes_per_person_max: 8, ..Limits::default() };
    let world = World::with(limits, kernel::Policy::default()).await;
    let (first, second) = (world.left().await, world.left().await);
    let third = world.shop().await;
    let full = ScopeError::TooManyTreeBytes { used: 8, limit: 8 };
    let refused = world.change(third, enter("blue")).await.unwrap_err();
    assert_eq!(refused, full.clone().into());
    assert_eq!(refused.code(), "too_much_on_disk");
    assert!(refused.to_string().contains("limits.worktree_bytes_per_person_max"), "{refused}");
    // Removing one makes room, and it cannot be had back while there is none.
    let reference = world.remove(first).await.unwrap();
    world.change(third, enter("blue")).await.unwrap();
    world.arrived(third, 1).await;
    let back = world.restore(first, Some(&reference)).await;
    assert_eq!(back, Err(full.into()));
    world.remove(second).await.unwrap();
    world.restore(first, Some(&reference)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn whoever_has_too_much_in_snapshots_loses_the_oldest_of_theirs_and_nobody_elses() {
    let limits = Limits { snapshot_bytes_per_person_max: 1_000, ..Limits::default() };
    let world = World::with(limits, kernel::Policy::default()).await;
    let (mine, other) = (world.shop().await, world.left().await);
    let ana = world.let_in("ana", Role::Member).await;
    let hers = world.say_as(&ana, conversation("hers"), "hello").await.unwrap().accepted.session;
    let days = |days: u64| Moment(days * 24 * 60 * 60 * 1_000);
    // Hers are the oldest of all.
    *world.grove.snapshots.lock().unwrap() = vec![
        ("shop", hers, days(1), 400),
        ("shop", hers, days(2), 300),
        ("shop", mine, days(3), 300),
        ("site", other, days(4), 300),
        ("shop", mine, days(5), 300),
        ("site", other, days(6), 300),
    ];
    let bytes = world.engine.people().disk_use(&world.me).await.unwrap().snapshot_bytes;
    assert_eq!(bytes, 1_900, "until somebody has looked whose what is, all of a store counts");
    world.grove.grown.notify_one();
    tokio::time::sleep(Duration::from_secs(120)).await;
    let left: Vec<_> = world.grove.snapshots.lock().unwrap().iter().map(|(_, _, at, _)| at.0).collect();
    assert_eq!(
        left,
        [1, 2, 5, 6].map(|day| days(day).0),
        "down to three quarters, the oldest first, whichever store"
    );
    assert_eq!(world.engine.people().disk_use(&world.me).await.unwrap().snapshot_bytes, 600);
    assert!(world.grove.full.lock().unwrap().is_empty());
    let of_none = world.grove.of_none.lock().unwrap().clone();
    assert_eq!(of_none, BTreeSet::from([("compact", true), ("let go", true), ("share", true)]));
    // What cannot go stays, and nothing is added to it: neither by turns nor by removing.
    *world.grove.snapshots.lock().unwrap() = vec![("new", mine, days(9), 2_500)];
    let refused = world.remove(other).await.unwrap_err();
    assert_eq!(refused, ScopeError::TooManySnapshotBytes { used: 2_500, limit: 1_000 }.into());
    assert_eq!(refused.code(), "too_much_on_disk");
    assert!(refused.to_string().contains("limits.snapshot_bytes_per_person_max"), "{refused}");
    world.grove.grown.notify_one();
    tokio::time::sleep(Duration::from_secs(120)).await;
    let full = world.grove.full.lock().unwrap().clone();
    assert_eq!(full.keys().collect::<Vec<_>>(), [&world.me.person.to_string()]);
    world.remove(other).await.unwrap();
}
