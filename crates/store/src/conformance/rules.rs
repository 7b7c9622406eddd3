//! Promises about the rules for what agents ask: they are rows that come back as they were made, each in its org, and
//! one that is for a session goes with it.

use super::Fixture;
use super::story::*;
use crate::*;
use kernel::people::PeopleRefusal;
use kernel::{Grant, Grantee, Moment, RuleId};

pub(super) fn rul(n: u32) -> RuleId {
    RuleId::from_bits(n.into())
}

pub(super) fn rule(n: u32, effect: RuleEffect) -> RuleRow {
    let (agent, tool, directory) = (Some("scripted".into()), Some("write".into()), Some("/srv/work".into()));
    let (by, since) = (me().person, Moment(4_000));
    RuleRow { rule: rul(n), by, since, agent, tool, directory, session: None, effect, until: None }
}

async fn rules(store: &dyn Store) -> Vec<RuleRow> {
    store.rules(me().org).await.unwrap()
}

pub async fn rules_come_back_as_they_were_made<F: Fixture>() {
    let on = peopled::<F>().await;
    open(on.store(), 1).await;
    set(on.store(), PeopleChange::MakeGroup { group: grp(1), name: "ours".into() }).await;
    let bare = RuleRow { agent: None, tool: None, directory: None, ..rule(1, RuleEffect::Allow) };
    let made = [
        // Their ids are in another order than they were made in.
        rule(9, RuleEffect::Deny),
        bare,
        RuleRow { session: Some(ses(1)), until: Some(Moment(90_000)), ..rule(2, RuleEffect::Allow) },
        rule(3, RuleEffect::Ask(Grantee::Person(friend().person))),
        rule(4, RuleEffect::Ask(Grantee::Group(grp(1)))),
        rule(5, RuleEffect::Ask(Grantee::Org)),
    ];
    for row in made.clone() {
        assert_eq!(change(on.store(), &me(), PeopleChange::AddRule(row)).await, "done");
    }
    let on = on.reopen().await;
    assert_eq!(rules(on.store()).await, made);
    assert_eq!(on.store().rules(stranger().org).await.unwrap(), []);
    assert_eq!(change(on.store(), &me(), PeopleChange::RemoveRule(rul(1))).await, "done");
    assert_eq!(change(on.store(), &me(), PeopleChange::RemoveRule(rul(1))).await, "not_found");
    assert_eq!(
        rules(on.store()).await.iter().map(|row| row.rule).collect::<Vec<_>>(),
        [9, 2, 3, 4, 5].map(rul)
    );
    // A rule that asks a group outlives it: whom it kept out stays out.
    set(on.store(), PeopleChange::RemoveGroup { group: grp(1) }).await;
    assert!(rules(on.store()).await.contains(&made[4]));
    assert_eq!(change(on.store(), &me(), PeopleChange::RemoveRule(rul(4))).await, "done");
}

pub async fn rules_of_a_session_go_when_it_ends<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    for n in [1, 2] {
        open(store, n).await;
        let row = RuleRow { session: Some(ses(n)), ..rule(n, RuleEffect::Allow) };
        assert_eq!(change(store, &me(), PeopleChange::AddRule(row)).await, "done");
    }
    change(store, &me(), PeopleChange::AddRule(rule(3, RuleEffect::Deny))).await;
    write(store, ses(1), vec![refused(1), ended()]).await;
    assert_eq!(rules(store).await.iter().map(|row| row.rule).collect::<Vec<_>>(), [2, 3].map(rul));
    let late = RuleRow { session: Some(ses(1)), ..rule(4, RuleEffect::Allow) };
    assert_eq!(change(store, &me(), PeopleChange::AddRule(late)).await, "session_ended");
}

pub async fn rules_whose_time_is_over_go_with_the_next_one<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    for (n, until) in [(1, 3_999), (2, 4_000), (3, 4_001)] {
        let made = Moment(3_000);
        let row = RuleRow { since: made, until: Some(Moment(until)), ..rule(n, RuleEffect::Allow) };
        set(store, PeopleChange::AddRule(row)).await;
    }
    assert_eq!(rules(store).await.len(), 3, "nobody has looked at the clock");
    let in_force = |row: &RuleRow| row.in_force(Moment(4_000)).map(|rule| rule.rule);
    assert_eq!(rules(store).await.iter().filter_map(in_force).collect::<Vec<_>>(), [rul(3)]);
    assert_eq!(change(store, &me(), PeopleChange::AddRule(rule(4, RuleEffect::Deny))).await, "done");
    assert_eq!(rules(store).await.iter().map(|row| row.rule).collect::<Vec<_>>(), [3, 4].map(rul));
}

/// Whoever manages a session makes rules for it, and for nothing else.
pub async fn a_rule_for_a_session_is_made_by_whoever_answers_for_it<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    for n in [1, 2] {
        open(store, n).await;
    }
    share(store, ses(1), &friend(), Some(Grant::Manage)).await;
    let by = friend();
    let of = |n, session| RuleRow { session, by: by.person, ..rule(n, RuleEffect::Allow) };
    let asked = async |wanted| change(store, &by, wanted).await;
    assert_eq!(asked(PeopleChange::AddRule(of(1, Some(ses(1))))).await, "done");
    assert_eq!(
        asked(PeopleChange::AddRule(of(2, Some(ses(2))))).await,
        "not_found",
        "that is another session"
    );
    assert_eq!(asked(PeopleChange::AddRule(of(3, None))).await, "role_too_low", "that is everybody's");
    let not_mine = RuleRow { by: me().person, ..of(3, Some(ses(1))) };
    assert_eq!(asked(PeopleChange::AddRule(not_mine)).await, "not_found", "a rule is its maker's");
    set(store, PeopleChange::AddRule(rule(4, RuleEffect::Deny))).await;
    assert_eq!(
        asked(PeopleChange::RemoveRule(rul(4))).await,
        "role_too_low",
        "what the org forbids stays so"
    );
    set(store, PeopleChange::AddRule(RuleRow { session: Some(ses(2)), ..rule(5, RuleEffect::Deny) })).await;
    // The session is not named: they do not see it.
    let unseen = store.change(by.clone(), change_of(PeopleChange::RemoveRule(rul(5)))).await.unwrap();
    assert_eq!(unseen, WriteOutcome::Refused(PeopleRefusal::NotFound("rule")));
    assert_eq!(asked(PeopleChange::RemoveRule(rul(1))).await, "done");
    assert_eq!(asked(PeopleChange::AddRule(of(1, Some(ses(1))))).await, "done");
    share(store, ses(1), &friend(), Some(Grant::Prompt)).await;
    assert_eq!(asked(PeopleChange::RemoveRule(rul(1))).await, "not_allowed", "it is seen, and not theirs");
    share(store, ses(1), &friend(), None).await;
    assert_eq!(asked(PeopleChange::RemoveRule(rul(1))).await, "not_found");
    // An office is no key to a session, for rules neither: its owner removes it.
    for n in [1, 5] {
        assert_eq!(change(store, &me(), PeopleChange::RemoveRule(rul(n))).await, "done");
    }
    assert_eq!(rules(store).await, [rule(4, RuleEffect::Deny)]);
}

pub async fn a_rule_that_would_never_count_is_not_made<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    for (until, told) in [(3_999, "invalid"), (4_000, "invalid"), (4_001, "done")] {
        let row = RuleRow { until: Some(Moment(until)), ..rule(until as u32, RuleEffect::Allow) };
        let new = NewChange { key: Some(key("add_rule", "k", 7)), ..change_of(PeopleChange::AddRule(row)) };
        assert_eq!(change_with(store, &me(), new).await, told, "{until}");
    }
    // Under its key it was made in time.
    let late = RuleRow { until: Some(Moment(1)), ..rule(9, RuleEffect::Allow) };
    let late = NewChange { key: Some(key("add_rule", "k", 7)), ..change_of(PeopleChange::AddRule(late)) };
    assert_eq!(change_with(store, &me(), late).await, "repeated");
    assert_eq!(rules(store).await.len(), 1);
}

pub async fn a_rule_stays_within_its_org<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    open(store, 1).await;
    set(store, PeopleChange::AddRule(rule(1, RuleEffect::Deny))).await;
    let by = now(store, &stranger()).await;
    let theirs = RuleRow { by: by.person, ..rule(2, RuleEffect::Allow) };
    for row in [
        RuleRow { by: me().person, ..theirs.clone() },
        RuleRow { session: Some(ses(1)), ..theirs.clone() },
        RuleRow { effect: RuleEffect::Ask(Grantee::Person(me().person)), ..theirs.clone() },
        RuleRow { effect: RuleEffect::Ask(Grantee::Group(grp(1))), ..theirs.clone() },
    ] {
        assert_eq!(change(store, &by, PeopleChange::AddRule(row)).await, "not_found");
    }
    assert_eq!(change(store, &stranger(), PeopleChange::RemoveRule(rul(1))).await, "not_found");
    assert_eq!(change(store, &stranger(), PeopleChange::AddRule(theirs.clone())).await, "done");
    assert_eq!(store.rules(stranger().org).await.unwrap(), [theirs]);
    assert_eq!(rules(store).await, [rule(1, RuleEffect::Deny)]);
}

pub async fn a_rule_that_comes_with_an_answer_is_there_with_it_and_goes_with_its_session<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    open(store, 1).await;
    let of = |n, session| RuleRow { session, ..rule(n, RuleEffect::Allow) };
    let rules = [of(1, Some(ses(1))), of(2, None)];
    let moved = Append { rules: rules.to_vec(), after: kernel::Number(9_999), ..drain(store, ses(1)).await };
    assert!(matches!(store.append(moved).await.unwrap(), Appending::Moved { .. }));
    assert_eq!(store.rules(me().org).await.unwrap(), [], "nothing of an append, or all of it");
    written(store, Append { rules: rules.to_vec(), ..drain(store, ses(1)).await }).await;
    let on = on.reopen().await;
    let store = on.store();
    assert_eq!(store.rules(me().org).await.unwrap(), rules);
    let last = Append { rules: vec![of(3, Some(ses(1)))], ..drain(store, ses(1)).await };
    written(store, with(last, vec![ended()])).await;
    assert_eq!(store.rules(me().org).await.unwrap(), [of(2, None)]);
}
