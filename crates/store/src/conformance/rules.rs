//! What holds of the rules for what agents ask: they are rows that come back as they were made, each in its org, and one
//! that is for a session goes with it.

use super::Fixture;
use super::story::*;
use crate::*;
use kernel::{Act, Grant, Grantee, Moment, RuleId, authorize, authorize_rule};

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
    set(on.store(), Change::MakeGroup { group: grp(1), name: "ours".into() }).await;
    let bare = RuleRow { agent: None, tool: None, directory: None, ..rule(1, RuleEffect::Allow) };
    let made = [
        // Their ids are in another order than they were made in.
        rule(9, RuleEffect::Deny),
        bare,
        RuleRow { session: Some(ses(1)), until: Some(Moment(90_000)), ..rule(2, RuleEffect::Allow) },
        RuleRow { by: friend().person, ..rule(3, RuleEffect::Ask(Grantee::Person(friend().person))) },
        rule(4, RuleEffect::Ask(Grantee::Group(grp(1)))),
        rule(5, RuleEffect::Ask(Grantee::Org)),
    ];
    for row in made.clone() {
        assert_eq!(change(on.store(), &me(), Change::AddRule(row)).await, Changing::Done);
    }
    let on = on.reopen().await;
    assert_eq!(rules(on.store()).await, made);
    assert_eq!(on.store().rules(stranger().org).await.unwrap(), []);
    assert_eq!(change(on.store(), &me(), Change::RemoveRule(rul(1))).await, Changing::Done);
    assert_eq!(change(on.store(), &me(), Change::RemoveRule(rul(1))).await, Changing::NotFound);
    assert_eq!(
        rules(on.store()).await.iter().map(|row| row.rule).collect::<Vec<_>>(),
        [9, 2, 3, 4, 5].map(rul)
    );
    // A rule that asks a group outlives it: whom it kept out stays out.
    set(on.store(), Change::RemoveGroup { group: grp(1) }).await;
    assert!(rules(on.store()).await.contains(&made[4]));
    assert_eq!(change(on.store(), &me(), Change::RemoveRule(rul(4))).await, Changing::Done);
}

pub async fn rules_of_a_session_go_when_it_ends<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    for n in [1, 2] {
        open(store, n).await;
        let row = RuleRow { session: Some(ses(n)), ..rule(n, RuleEffect::Allow) };
        assert_eq!(change(store, &me(), Change::AddRule(row)).await, Changing::Done);
    }
    change(store, &me(), Change::AddRule(rule(3, RuleEffect::Deny))).await;
    write(store, ses(1), vec![refused(1), ended()]).await;
    assert_eq!(rules(store).await.iter().map(|row| row.rule).collect::<Vec<_>>(), [2, 3].map(rul));
    let late = RuleRow { session: Some(ses(1)), ..rule(4, RuleEffect::Allow) };
    assert_eq!(change(store, &me(), Change::AddRule(late)).await, Changing::NotFound, "it is over");
}

pub async fn rules_whose_time_is_over_go_with_the_next_one<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    for (n, until) in [(1, 3_999), (2, 4_000), (3, 4_001)] {
        let row = RuleRow { until: Some(Moment(until)), ..rule(n, RuleEffect::Allow) };
        set(store, Change::AddRule(row)).await;
    }
    assert_eq!(rules(store).await.len(), 3, "nobody has looked at the clock");
    let in_force = |row: &RuleRow| row.in_force(Moment(4_000)).map(|rule| rule.rule);
    assert_eq!(rules(store).await.iter().filter_map(in_force).collect::<Vec<_>>(), [rul(3)]);
    assert_eq!(change(store, &me(), Change::AddRule(rule(4, RuleEffect::Deny))).await, Changing::Done);
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
    let (record, _) = store.session(ses(1)).await.unwrap().unwrap();
    let by = now(store, &friend()).await;
    let with_session = |change| authorize(&by, Act::Rule, &record, change_of(change)).unwrap();
    let of = |n, session| RuleRow { session, by: by.person, ..rule(n, RuleEffect::Allow) };
    let asked = async |change| store.change(with_session(change)).await.unwrap();
    assert_eq!(asked(Change::AddRule(of(1, Some(ses(1))))).await, Changing::Done);
    assert_eq!(asked(Change::AddRule(of(2, Some(ses(2))))).await, Changing::Moved, "that is another session");
    assert_eq!(asked(Change::AddRule(of(3, None))).await, Changing::Moved, "that is everybody's");
    set(store, Change::AddRule(rule(4, RuleEffect::Deny))).await;
    assert_eq!(asked(Change::RemoveRule(rul(4))).await, Changing::Moved, "what the org forbids stays so");
    assert_eq!(asked(Change::RemoveRule(rul(1))).await, Changing::Done);
    assert_eq!(asked(Change::AddRule(of(1, Some(ses(1))))).await, Changing::Done);
    let late = with_session(Change::RemoveRule(rul(1)));
    share(store, ses(1), &friend(), None).await;
    assert_eq!(store.change(late).await.unwrap(), Changing::Moved);
    assert_eq!(change(store, &me(), Change::RemoveRule(rul(1))).await, Changing::Done);
    assert_eq!(rules(store).await, [rule(4, RuleEffect::Deny)]);
}

pub async fn a_rule_stays_within_its_org<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    open(store, 1).await;
    set(store, Change::AddRule(rule(1, RuleEffect::Deny))).await;
    let by = now(store, &stranger()).await;
    let theirs = RuleRow { by: by.person, ..rule(2, RuleEffect::Allow) };
    for row in [
        RuleRow { by: me().person, ..theirs.clone() },
        RuleRow { session: Some(ses(1)), ..theirs.clone() },
        RuleRow { effect: RuleEffect::Ask(Grantee::Person(me().person)), ..theirs.clone() },
        RuleRow { effect: RuleEffect::Ask(Grantee::Group(grp(1))), ..theirs.clone() },
    ] {
        let wish = authorize_rule(&by, kernel::OrgAct::Rules, change_of(Change::AddRule(row))).unwrap();
        assert_eq!(store.change(wish).await.unwrap(), Changing::NotFound);
    }
    assert_eq!(change(store, &stranger(), Change::RemoveRule(rul(1))).await, Changing::NotFound);
    assert_eq!(change(store, &stranger(), Change::AddRule(theirs.clone())).await, Changing::Done);
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
