//! Stories of questions: who answers them, with what, and who is told that they came too late.

use crate::puppet::Puppet;
use crate::scope::in_directory;
use crate::world::{World, state_and_why, trace};
use agent::{AgentEvent, Form};
use engine::{
    AccessError, ApprovalState, ConflictError, Granted, InvalidError, Limits, NewRule, PeopleError,
    ReceiptState, RuleEffect, RuleRow, Settled, WayInError,
};
use kernel::{
    Answer, Answerer, ApprovalForm, ApprovalId, Fact, Grant, Grantee, Policy, Principal, Remember, Request,
    Role, SessionId, To, Unattended,
};
use std::sync::Arc;

fn says(approval: ApprovalId, answer: Answer) -> Request {
    Request::Answer { approval, answer, remember: None }
}

fn remembering(approval: ApprovalId, answer: Answer, remember: Remember) -> Request {
    Request::Answer { approval, answer, remember: Some(remember) }
}

fn about_hammer(effect: RuleEffect) -> NewRule {
    let tool = Some("hammer".to_owned());
    NewRule { agent: None, tool, directory: None, session: None, effect, until: None }
}

impl World {
    async fn rule(&self, new: NewRule) -> RuleRow {
        self.engine.people().add_rule(&self.me, new, trace(None)).await.unwrap()
    }

    async fn answered(&self, session: SessionId) -> Vec<(Answer, Answerer)> {
        let facts = self.rules(session).await.into_iter();
        let answers = facts.filter_map(|fact| match fact {
            Fact::Answered { answer, by, .. } => Some((answer, by)),
            _ => None,
        });
        answers.collect()
    }

    /// Lets the machine's person have a member beside them who may say things in this session.
    async fn friend(&self, session: SessionId, grant: Grant) -> Principal {
        let friend = self.let_in("friend", Role::Member).await;
        self.give(session, Grantee::Person(friend.person), grant).await;
        self.engine.people().refreshed(&friend).await.unwrap()
    }
}

fn answered_before(refused: Result<Granted, WayInError>) -> Settled {
    match refused {
        Err(WayInError::AnsweredBefore(settled)) => *settled,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn of_two_answers_at_once_one_counts_and_the_other_is_told_who_was_first() {
    let world = World::new().await;
    let said = world.say(To::New, "!ask hammer").await.unwrap().accepted;
    let friend = world.friend(said.session, Grant::Prompt).await;
    let approval = world.question().await;
    let (mine, theirs) = tokio::join!(
        world.ask(says(approval, Answer::Yes)),
        world.engine.way_in().ask(&friend, says(approval, Answer::No), trace(None)),
    );
    let (loser, first) = match (mine, theirs) {
        (Ok(Granted::Done), lost) => (answered_before(lost), (Answer::Yes, &world.me)),
        (lost, Ok(Granted::Done)) => (answered_before(lost), (Answer::No, &friend)),
        other => panic!("{other:?}"),
    };
    let (answer, who) = first;
    assert_eq!((&loser.answer, loser.by), (&answer, Answerer::Person(who.person)));
    assert_eq!(loser.handle.as_deref(), Some(who.handle.as_str()));
    assert!(loser.at.is_some());
    world.settled(said.message).await;
    assert_eq!(world.answered(said.session).await, [(answer, Answerer::Person(who.person))]);
}

#[tokio::test(start_paused = true)]
async fn a_question_shows_what_it_asks_in_every_form_and_takes_only_what_fits() {
    let world = World::new().await;
    let text = "!ask hammer\n!choose paint | red | blue\n!askwords name";
    let said = world.say(To::New, text).await.unwrap().accepted;
    let unfit = async |approval, answer: Answer| world.ask(says(approval, answer)).await.unwrap_err();
    let forms = [
        ("hammer", ApprovalForm::Permission, vec![Answer::Chose(0), Answer::Said("yes".into())], Answer::Yes),
        ("paint", ApprovalForm::Choice { options: 2 }, vec![Answer::Yes, Answer::Chose(2)], Answer::Chose(1)),
        ("name", ApprovalForm::Words, vec![Answer::Yes, Answer::Chose(0)], Answer::Said("Bob".into())),
    ];
    for (tool, asks, unfitting, fitting) in forms {
        let approval = world.question().await;
        let view = world.engine.views().approval(&world.me, approval).await.unwrap();
        let words = view.words.expect("its words are kept");
        assert_eq!((words.tool.as_str(), view.row.terms.form), (tool, asks));
        assert_eq!((words.agent.as_str(), words.directory), ("scripted", format!("/own/{}", said.session)));
        let names: Vec<_> = words.options.iter().map(|option| option.name.as_str()).collect();
        assert_eq!(names, if tool == "paint" { vec!["red", "blue"] } else { vec![] });
        for answer in unfitting {
            assert_eq!(unfit(approval, answer).await, WayInError::UnfitAnswer { takes: asks });
        }
        let now = world.engine.views().approval(&world.me, approval).await.unwrap();
        assert_eq!(now.row.state, ApprovalState::Open, "what does not fit changes nothing");
        assert_eq!(world.ask(says(approval, fitting)).await, Ok(Granted::Done));
    }
    let answer = world.settled(said.message).await.answer.unwrap();
    assert!(answer.contains("blue") && answer.contains("Bob"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_rule_says_yes_or_no_and_nobody_is_asked() {
    let world = World::new().await;
    for (effect, answer) in [(RuleEffect::Allow, Answer::Yes), (RuleEffect::Deny, Answer::No)] {
        let rule = world.rule(about_hammer(effect)).await;
        let view = world.talk(To::New, "!ask hammer").await;
        assert_eq!(state_and_why(&view), (ReceiptState::Answered, None));
        assert_eq!(world.answered(view.row.session).await, [(answer, Answerer::Rule(rule.rule))]);
    }
    assert_eq!(world.own_acts("answer_by_rule").len(), 2, "it is in the audit");
    let mine = world.engine.people().rules(&world.me).await.unwrap();
    for row in mine {
        world.engine.people().remove_rule(&world.me, row.rule, trace(None)).await.unwrap();
    }
    world.say(To::New, "!ask hammer").await.unwrap();
    world.question().await;
}

#[tokio::test(start_paused = true)]
async fn a_rule_for_a_kind_of_tool_fits_every_tool_that_an_agent_says_is_of_it() {
    for (kind, answer) in [("execute", Some(Answer::Yes)), ("edit", None), ("", None)] {
        let asks = AgentEvent::Asked {
            question: "q".to_owned(),
            tool: "run_shell_command".to_owned(),
            kind: kind.to_owned(),
            detail: "rm -rf /".to_owned(),
            form: Form::Permission,
        };
        let puppet = Puppet { says: vec![asks], ..Puppet::default() };
        let world = World::among(vec![Arc::new(puppet.clone())], Limits::default(), Policy::default()).await;
        let tool = Some("execute".to_owned());
        world.rule(NewRule { tool, ..about_hammer(RuleEffect::Allow) }).await;
        let mut inbound = in_directory(&world, "run it", "/srv/shop");
        inbound.if_new.agent = Some("puppet".to_owned());
        let session = world.engine.way_in().send(inbound).await.unwrap().accepted.session;
        match answer {
            None => {
                world.question().await;
                assert_eq!(world.answered(session).await, [], "{kind:?}: it is left to a person");
            }
            Some(answer) => {
                world.until_rule(session, |fact| matches!(fact, Fact::Answered { .. })).await;
                assert_eq!(
                    world.answered(session).await.iter().map(|it| it.0.clone()).collect::<Vec<_>>(),
                    [answer]
                );
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn only_the_people_of_a_rule_answer_and_whoever_manages_can_say_no() {
    let world = World::new().await;
    let session = world.talk(To::New, "hello").await.row.session;
    let friend = world.friend(session, Grant::Prompt).await;
    let rule = world.rule(about_hammer(RuleEffect::Ask(Grantee::Person(friend.person)))).await.rule;
    for (mine, theirs) in [(Answer::No, None), (Answer::Yes, Some(Answer::Yes))] {
        let said = world.say(To::Session(session), "!ask hammer").await.unwrap().accepted;
        let approval = world.question().await;
        let view = world.engine.views().approval(&world.me, approval).await.unwrap();
        assert_eq!(view.row.terms.only, Some((rule, Grantee::Person(friend.person))));
        match theirs {
            None => assert_eq!(world.ask(says(approval, mine)).await, Ok(Granted::Done)),
            Some(answer) => {
                let refused = world.ask(says(approval, mine)).await.unwrap_err();
                assert_eq!(refused, WayInError::NotYoursToAnswer { who: "friend".to_owned(), rule });
                assert_eq!(refused.code(), "not_yours_to_answer");
                let granted = world.engine.way_in().ask(&friend, says(approval, answer), trace(None)).await;
                assert_eq!(granted, Ok(Granted::Done));
            }
        }
        world.settled(said.message).await;
    }
    let by = [(Answer::No, world.me.person), (Answer::Yes, friend.person)];
    assert_eq!(world.answered(session).await, by.map(|(answer, who)| (answer, Answerer::Person(who))));
}

#[tokio::test(start_paused = true)]
async fn an_answer_for_the_session_holds_there_and_an_answer_for_good_everywhere_in_its_directory() {
    let world = World::new().await;
    let first = world.say(To::New, "!ask hammer\n!ask hammer").await.unwrap().accepted;
    let approval = world.question().await;
    world.ask(remembering(approval, Answer::Yes, Remember::Session)).await.unwrap();
    world.settled(first.message).await;
    let rules = world.engine.people().rules(&world.me).await.unwrap();
    let [rule] = &rules[..] else { panic!("{rules:?}") };
    assert_eq!((rule.session, rule.tool.as_deref()), (Some(first.session), Some("hammer")));
    assert_eq!(
        world.answered(first.session).await,
        [(Answer::Yes, Answerer::Person(world.me.person)), (Answer::Yes, Answerer::Rule(rule.rule))]
    );
    let mut there = world.inbound(To::New, "!ask hammer", None);
    there.if_new.directory = Some("/srv/shop".to_owned());
    let second = world.engine.way_in().send(there.clone()).await.unwrap().accepted;
    let approval = world.question().await;
    world.ask(remembering(approval, Answer::No, Remember::Always)).await.unwrap();
    world.settled(second.message).await;
    let third = world.engine.way_in().send(there).await.unwrap().accepted;
    world.settled(third.message).await;
    assert!(matches!(world.answered(third.session).await[..], [(Answer::No, Answerer::Rule(_))]));
    world.say(To::New, "!ask hammer").await.unwrap();
    world.question().await;
    world.ask(Request::End { session: first.session }).await.unwrap();
    world.until_ended(first.session).await;
    let left = world.engine.people().rules(&world.me).await.unwrap();
    let [rule] = &left[..] else { panic!("{left:?}") };
    assert_eq!((rule.directory.as_deref(), rule.agent.as_deref()), (Some("/srv/shop"), Some("scripted")));
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_remembered_only_by_whoever_may_make_the_rule_and_only_if_it_counts() {
    let world = World::new().await;
    let said = world.say(To::New, "!ask hammer\n!choose paint | red").await.unwrap().accepted;
    let friend = world.friend(said.session, Grant::Prompt).await;
    let approval = world.question().await;
    let try_as = async |remember| {
        let verb = remembering(approval, Answer::Yes, remember);
        world.engine.way_in().ask(&friend, verb, trace(None)).await.unwrap_err()
    };
    assert_eq!(try_as(Remember::Session).await, AccessError::Needs(Grant::Manage).into());
    assert_eq!(try_as(Remember::Always).await, AccessError::NeedsRole(Role::Admin).into());
    assert_eq!(
        world.engine.way_in().ask(&friend, says(approval, Answer::Yes), trace(None)).await,
        Ok(Granted::Done)
    );
    let late = world.ask(remembering(approval, Answer::Yes, Remember::Always)).await;
    assert_eq!(answered_before(late).by, Answerer::Person(friend.person));
    let choice = world.question().await;
    let odd = world.ask(remembering(choice, Answer::Chose(0), Remember::Session)).await;
    assert!(matches!(odd, Err(WayInError::Invalid(InvalidError { field: "remember", .. }))), "{odd:?}");
    assert_eq!(world.engine.people().rules(&world.me).await.unwrap(), [], "nothing of it was remembered");
}

#[tokio::test(start_paused = true)]
async fn the_same_answer_twice_under_one_key_is_one_answer() {
    let world = World::new().await;
    let said = world.say(To::New, "!ask hammer").await.unwrap().accepted;
    let approval = world.question().await;
    let verb = || remembering(approval, Answer::Yes, Remember::Always);
    for _ in 0..2 {
        assert_eq!(world.engine.way_in().ask(&world.me, verb(), trace(Some("k"))).await, Ok(Granted::Done));
    }
    let other = world.engine.way_in().ask(&world.me, says(approval, Answer::Yes), trace(Some("k"))).await;
    assert_eq!(other, Err(ConflictError::KeyReused.into()));
    world.settled(said.message).await;
    assert_eq!(world.engine.people().rules(&world.me).await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn without_an_answer_in_time_it_is_a_no_of_nobody_and_whoever_comes_later_is_told() {
    let world = World::new().await;
    let said = world.say(To::New, "!ask hammer\n!sleep 600000").await.unwrap().accepted;
    let approval = world.question().await;
    while !world.engine.views().approvals(&world.me, 10).await.unwrap().is_empty() {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    }
    let settled = answered_before(world.ask(says(approval, Answer::Yes)).await);
    assert_eq!((settled.answer, settled.by, settled.handle), (Answer::No, Answerer::Nobody, None));
    let view = world.engine.views().approval(&world.me, approval).await.unwrap();
    assert!(view.row.settled_at.unwrap() >= view.row.until, "not before its time was over");
    world.ask(Request::Stop { message: said.message }).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn when_the_agent_is_gone_its_question_lapses_and_says_how_to_go_on_if_it_was_cut_short() {
    let mut world = World::new().await;
    let lost = world.say(To::New, "!ask axe").await.unwrap().accepted;
    let approval = world.question().await;
    world.crash().await;
    world.settled(lost.message).await;
    let lapsed = WayInError::Lapsed { session: lost.session, turn: kernel::Turn(1), interrupted: true };
    assert_eq!(world.ask(says(approval, Answer::Yes)).await, Err(lapsed));
    let stopped = world.say(To::Session(lost.session), "!ask axe").await.unwrap().accepted;
    let approval = world.question().await;
    world.ask(Request::Stop { message: stopped.message }).await.unwrap();
    world.settled(stopped.message).await;
    let lapsed = WayInError::Lapsed { session: lost.session, turn: kernel::Turn(2), interrupted: false };
    assert_eq!(world.ask(says(approval, Answer::Yes)).await, Err(lapsed));
}

#[tokio::test(start_paused = true)]
async fn what_nobody_attends_is_answered_by_rules_and_then_by_its_policy() {
    let world = World::new().await;
    let rule = world.rule(about_hammer(RuleEffect::Allow)).await.rule;
    let mut alone = world.inbound(To::New, "!ask hammer\n!ask saw\n!choose paint | red", None);
    alone.unattended = true;
    let said = world.engine.way_in().send(alone).await.unwrap().accepted;
    assert_eq!(state_and_why(&world.settled(said.message).await), (ReceiptState::Answered, None));
    let policy = (Answer::No, Answerer::Policy);
    assert_eq!(
        world.answered(said.session).await,
        [(Answer::Yes, Answerer::Rule(rule)), policy.clone(), policy]
    );
    assert_eq!(world.own_acts("answer_by_policy").len(), 2);
    world.say(To::Session(said.session), "!ask saw").await.unwrap();
    world.question().await;
}

#[tokio::test(start_paused = true)]
async fn a_policy_may_let_what_nobody_attends_wait_for_a_person() {
    let policy = Policy { unattended: Unattended::Ask, ..Policy::default() };
    let world = World::with(Limits::default(), policy).await;
    let mut alone = world.inbound(To::New, "!ask saw", None);
    alone.unattended = true;
    let said = world.engine.way_in().send(alone).await.unwrap().accepted;
    let approval = world.question().await;
    assert_eq!(world.ask(says(approval, Answer::Yes)).await, Ok(Granted::Done));
    world.settled(said.message).await;
}

#[tokio::test(start_paused = true)]
async fn a_yes_counts_only_while_whoever_made_the_rule_could_still_make_it() {
    let world = World::new().await;
    let session = world.talk(To::New, "hello").await.row.session;
    let friend = world.friend(session, Grant::Manage).await;
    let of_session = |effect| NewRule { session: Some(session), ..about_hammer(effect) };
    let made = async |effect| {
        world.engine.people().add_rule(&friend, of_session(effect), trace(None)).await.unwrap()
    };
    let rule = made(RuleEffect::Allow).await;
    let yes = (Answer::Yes, Answerer::Rule(rule.rule));
    world.talk(To::Session(session), "!ask hammer").await;
    assert_eq!(world.answered(session).await, std::slice::from_ref(&yes));

    world.give(session, Grantee::Person(friend.person), Grant::Prompt).await;
    let asks = world.say(To::Session(session), "!ask hammer").await.unwrap().accepted.message;
    let approval = world.question().await;
    world.ask(Request::Answer { approval, answer: Answer::No, remember: None }).await.unwrap();
    world.settled(asks).await;
    assert!(!world.engine.people().rule_counts(world.me.org, &rule).await.unwrap());

    world.give(session, Grantee::Person(friend.person), Grant::Manage).await;
    world.talk(To::Session(session), "!ask hammer").await;
    assert_eq!(world.answered(session).await.last(), Some(&yes), "and again when they may again");
    let no = made(RuleEffect::Deny).await;
    world.engine.people().disable(&world.me, friend.person, trace(None)).await.unwrap();
    assert!(!world.engine.people().rule_counts(world.me.org, &rule).await.unwrap());
    world.talk(To::Session(session), "!ask hammer").await;
    assert_eq!(
        world.answered(session).await.last(),
        Some(&(Answer::No, Answerer::Rule(no.rule))),
        "a no stays"
    );
}

#[tokio::test(start_paused = true)]
async fn a_yes_for_the_org_counts_only_while_whoever_made_the_rule_is_an_admin() {
    let world = World::new().await;
    let friend = world.let_in("friend", Role::Admin).await;
    let allow = about_hammer(RuleEffect::Allow);
    let rule = world.engine.people().add_rule(&friend, allow, trace(None)).await.unwrap();
    let session = world.talk(To::New, "!ask hammer").await.row.session;
    assert_eq!(world.answered(session).await, [(Answer::Yes, Answerer::Rule(rule.rule))]);
    let member = engine::PersonChange { role: Some(Role::Member), ..engine::PersonChange::default() };
    world.engine.people().change_person(&world.me, friend.person, member, trace(None)).await.unwrap();
    world.say(To::New, "!ask hammer").await.unwrap();
    world.question().await;
}

#[tokio::test(start_paused = true)]
async fn whoever_removes_a_rule_again_with_the_same_key_is_told_that_it_is_removed() {
    let world = World::new().await;
    let session = world.talk(To::New, "hello").await.row.session;
    let of_session = NewRule { session: Some(session), ..about_hammer(RuleEffect::Allow) };
    for new in [of_session, about_hammer(RuleEffect::Deny)] {
        let rule = world.rule(new).await.rule;
        let how = trace(Some(&format!("remove {rule}")));
        assert_eq!(world.engine.people().remove_rule(&world.me, rule, how.clone()).await, Ok(()));
        assert_eq!(world.engine.people().remove_rule(&world.me, rule, how.clone()).await, Ok(()));
        let friend = world.let_in(&format!("friend_of_{rule}"), Role::Member).await;
        let theirs = world.engine.people().remove_rule(&friend, rule, how).await;
        assert_eq!(theirs, Err(AccessError::NotFound { what: "rule" }.into()));
    }
}

#[tokio::test(start_paused = true)]
async fn rules_are_seen_and_made_by_whoever_they_concern() {
    let world = World::new().await;
    let session = world.talk(To::New, "hello").await.row.session;
    let friend = world.let_in("friend", Role::Member).await;
    let of_session = NewRule { session: Some(session), ..about_hammer(RuleEffect::Allow) };
    let theirs = async |new| world.engine.people().add_rule(&friend, new, trace(None)).await.unwrap_err();
    assert_eq!(theirs(of_session.clone()).await, AccessError::NotFound { what: "session" }.into());
    assert_eq!(theirs(about_hammer(RuleEffect::Allow)).await, AccessError::NeedsRole(Role::Admin).into());
    let everything = NewRule { tool: None, ..about_hammer(RuleEffect::Allow) };
    let refused = world.engine.people().add_rule(&world.me, everything, trace(None)).await.unwrap_err();
    assert!(matches!(refused, PeopleError::Invalid(InvalidError { field: "effect", .. })), "{refused:?}");
    let nowhere = NewRule { agent: Some("nobody".to_owned()), ..about_hammer(RuleEffect::Deny) };
    let refused = world.engine.people().add_rule(&world.me, nowhere, trace(None)).await.unwrap_err();
    assert!(matches!(refused, PeopleError::Conflict(ConflictError::UnknownAgent { .. })), "{refused:?}");
    let hidden = world.rule(of_session).await;
    let shown = world.rule(about_hammer(RuleEffect::Deny)).await;
    assert_eq!(world.engine.people().rules(&friend).await.unwrap(), std::slice::from_ref(&shown));
    assert_eq!(world.engine.people().rules(&world.me).await.unwrap(), [hidden.clone(), shown.clone()]);
    let remove = async |by: &Principal, rule| world.engine.people().remove_rule(by, rule, trace(None)).await;
    assert_eq!(remove(&friend, hidden.rule).await, Err(AccessError::NotFound { what: "rule" }.into()));
    assert_eq!(remove(&friend, shown.rule).await, Err(AccessError::NeedsRole(Role::Admin).into()));
    assert_eq!(remove(&world.me, hidden.rule).await, Ok(()));
    assert_eq!(remove(&world.me, hidden.rule).await, Err(AccessError::NotFound { what: "rule" }.into()));
}

#[tokio::test(start_paused = true)]
async fn a_rule_counts_until_its_moment_and_none_is_made_for_a_moment_that_is_over() {
    let world = World::new().await;
    let made = async |until, key| {
        let new = NewRule { until: Some(until), ..about_hammer(RuleEffect::Deny) };
        world.engine.people().add_rule(&world.me, new, trace(Some(key))).await
    };
    let (now, until) = (world.engine.now(), world.engine.now().after_ms(5_000));
    let refused = made(now, "late").await.unwrap_err();
    assert!(matches!(refused, PeopleError::Invalid(InvalidError { field: "until", .. })), "{refused:?}");
    let rule = made(until, "once").await.unwrap();
    assert_eq!(world.engine.people().rules(&world.me).await.unwrap(), std::slice::from_ref(&rule));
    let denied = world.talk(To::New, "!ask hammer").await;
    assert_eq!(world.answered(denied.row.session).await.len(), 1);

    tokio::time::advance(std::time::Duration::from_secs(6)).await;
    assert_eq!(world.engine.people().rules(&world.me).await.unwrap(), []);
    let session = world.say(To::New, "!ask hammer").await.unwrap().accepted.session;
    world.until_rule(session, |fact| matches!(fact, Fact::Asked { .. })).await;
    assert_eq!(world.answered(session).await, [], "a person is asked again");
    // Whoever did not hear the answer then gets it now.
    assert_eq!(made(until, "once").await, Ok(rule));
}
