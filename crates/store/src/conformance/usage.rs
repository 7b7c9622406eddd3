//! Promises of the sums of what turns have used.

use super::Fixture;
use super::story::*;
use crate::*;
use kernel::{Fact, Grant, Grantee, Moment, Principal, Scope, SessionId, To, Turn};

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// The agent of a turn says that it has used so much, on this day.
async fn used(store: &dyn Store, session: SessionId, turn: u32, day: u32, body: &str) {
    let mut append = told(append_to(store, session).await, turn, "usage", body.as_bytes());
    append.facts.iter_mut().for_each(|new| new.at = Moment(u64::from(day) * DAY_MS + 5));
    written(store, append).await;
}

fn tokens(input: u64, output: u64) -> String {
    format!(r#"{{"input_tokens":{input},"output_tokens":{output}}}"#)
}

/// Day, agent, sender and tokens of what this person sees of these days.
async fn sums(store: &dyn Store, by: &Principal, days: (u32, u32)) -> Vec<(u32, String, String, u64)> {
    let query = UsageQuery { by: Seer::of(by), from: Day(days.0), to: Day(days.1) };
    let rows = store.usage(query).await.unwrap();
    let said = |row: UsageRow| (row.day.0, row.agent, row.handle.unwrap_or_default(), row.sum.input_tokens);
    rows.into_iter().map(said).collect()
}

fn sum(day: u32, agent: &str, who: &str, tokens: u64) -> (u32, String, String, u64) {
    (day, agent.to_owned(), who.to_owned(), tokens)
}

/// Sessions 1 and 2 are mine; in the first, my friend has the second turn.
async fn two_sessions(store: &dyn Store) {
    open(store, 1).await;
    write(store, ses(1), vec![started(1, 1), attempt(1)]).await;
    used(store, ses(1), 1, 20, &tokens(100, 1)).await;
    used(store, ses(1), 1, 20, &tokens(10, 1)).await;
    used(store, ses(1), 1, 21, &tokens(7, 1)).await;
    share(store, ses(1), &friend(), Some(Grant::Prompt)).await;
    say(store, &friend(), To::Session(ses(1)), line(3)).await;
    let other = Scope { agent: "other".into(), ..scope() };
    let changed = Fact::ScopeChanged { epoch: kernel::Epoch(1), scope: other };
    write(
        store,
        ses(1),
        vec![answered(1), queued_by(3, friend().person), changed, started(2, 3), attempt(2)],
    )
    .await;
    used(store, ses(1), 2, 21, &tokens(2_000, 1)).await;
    say(store, &me(), To::New, line(2)).await;
    write(store, ses(2), vec![opened(), queued(2), started(1, 2), attempt(1)]).await;
    used(store, ses(2), 1, 20, &tokens(30_000, 1)).await;
}

pub async fn what_turns_used_is_added_up_by_day_agent_and_person<F: Fixture>() {
    let on = peopled::<F>().await;
    two_sessions(on.store()).await;
    let all =
        [sum(20, "scripted", "me", 30_110), sum(21, "other", "friend", 2_000), sum(21, "scripted", "me", 7)];
    assert_eq!(sums(on.store(), &me(), (0, 99)).await, all);
    assert_eq!(sums(on.store(), &me(), (21, 21)).await, all[1..]);
    assert_eq!(sums(on.store(), &me(), (22, 99)).await, []);
    // Across a restart, and with what has a price, or is more than can be.
    let on = on.reopen().await;
    let store = on.store();
    assert_eq!(sums(store, &me(), (0, 20)).await, all[..1]);
    used(store, ses(2), 1, 30, r#"{"input_tokens":1,"output_tokens":2,"cached_tokens":1,"cost_micros":5}"#)
        .await;
    used(store, ses(2), 1, 30, &tokens(0, 0)).await;
    used(store, ses(2), 1, 30, &format!(r#"{{"output_tokens":{},"cost_micros":6}}"#, u64::MAX)).await;
    let query = UsageQuery { by: Seer::of(&me()), from: Day(30), to: Day(30) };
    let priced =
        UsageSum { input_tokens: 1, output_tokens: USAGE_MAX, cached_tokens: 1, cost_micros: Some(11) };
    assert_eq!(store.usage(query).await.unwrap().pop().map(|row| row.sum), Some(priced));
    used(store, ses(2), 1, 31, "not even JSON").await;
    assert_eq!(sums(store, &me(), (31, 31)).await, []);
}

pub async fn what_was_used_out_of_sight_is_in_no_sum<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    two_sessions(store).await;
    let of_first =
        [sum(20, "scripted", "me", 110), sum(21, "other", "friend", 2_000), sum(21, "scripted", "me", 7)];
    assert_eq!(
        sums(store, &friend(), (0, 99)).await,
        of_first,
        "the session that they were given, and no other"
    );
    let everybody =
        PeopleChange::Give { on: Resource::Session(ses(1)), to: Grantee::Org, grant: Grant::View };
    set(store, everybody).await;
    assert_eq!(sums(store, &friend(), (0, 99)).await, of_first, "what is given twice counts once");
    for other in [stranger(), Principal { org: stranger().org, ..me() }] {
        assert_eq!(sums(store, &other, (0, 99)).await, []);
    }
    let bound = |n| Principal { bound: Some((ses(n), Turn(1))), ..me() };
    assert_eq!(sums(store, &bound(1), (0, 99)).await, of_first);
    assert_eq!(sums(store, &bound(9), (0, 99)).await, []);
    set(store, PeopleChange::TakeBack { on: Resource::Session(ses(1)), to: Grantee::Org }).await;
    share(store, ses(1), &friend(), None).await;
    assert_eq!(sums(store, &friend(), (0, 99)).await, [], "not even what they used themselves");
}

pub async fn what_was_used_is_seen_by_whoever_has_the_session_now<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    two_sessions(store).await;
    hand_over(store, ses(2), &me(), &friend()).await;
    assert!(sums(store, &friend(), (20, 20)).await.contains(&sum(20, "scripted", "me", 30_110)));
    assert_eq!(sums(store, &me(), (20, 20)).await, [sum(20, "scripted", "me", 110)]);
    used(store, ses(2), 1, 20, &tokens(400_000, 1)).await;
    assert_eq!(sums(store, &friend(), (20, 20)).await, [sum(20, "scripted", "me", 430_110)]);
}
