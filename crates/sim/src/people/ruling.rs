//! People's doings about the questions of agents: have something done that asks, attended or not; make rules and remove
//! them; answer for now, for the session, or for good.
//!
//! It has dice of its own, so that everything else of a story stays as it was.

use super::Person;
use crate::doors::SCHEMES;
use engine::{CallerKey, MessagePart, NewRule, PeopleError, RuleEffect, Trace};
use kernel::{Answer, Grantee, Moment, Remember, Request, RuleId, To};
use std::time::Duration;

/// Where rules hold: where people meet, above it, where sessions have their own directories, and nowhere.
const PLACES: [&str; 5] = ["/srv/shop", "/srv", "/sim", "/srv/sho", "/trees"];

impl Person {
    /// Lives through the story beside oneself, minding only what agents ask.
    pub(crate) async fn mind_questions(mut self, doings_max: u64) {
        for _ in 0..self.dice.between(3, doings_max) {
            let think_ms = self.dice.weigh(&[(2, 20), (3, 400), (2, 2_500)]);
            let think_ms = self.dice.below(think_ms);
            tokio::time::sleep(Duration::from_millis(think_ms)).await;
            match self.dice.below(100) {
                0..45 => self.have_asked().await,
                45..66 => self.make_rule().await,
                66..76 => self.remove_rule().await,
                76..92 => self.answer_for_good().await,
                _ => self.answer_questions().await,
            }
        }
        while self.errands.join_next().await.is_some() {}
    }

    /// Something that an agent will ask about, now or in a while, once or several times.
    async fn have_asked(&mut self) {
        let to = self.some_session().filter(|_| self.dice.chance(600)).map(To::Session);
        let mut inbound = self.inbound(to);
        let mut words = "hello".to_owned();
        for _ in 0..self.dice.between(1, 3) {
            if self.dice.chance(500) {
                words.push_str(&format!("\n!sleep {}", self.dice.between(1, 1_500)));
            }
            words.push_str("\n!ask shell");
        }
        inbound.parts = vec![MessagePart::Text { text: words }];
        inbound.unattended = self.dice.chance(500);
        if self.dice.chance(200) {
            inbound.delivery = kernel::Delivery::Steer;
        }
        self.deliver(inbound).await;
    }

    async fn make_rule(&mut self) {
        let new = self.some_rule();
        let trace = self.rule_trace("rule");
        let mut tries = 0;
        while !self.town.is_enough(&mut tries) {
            let daemon = self.town.some_daemon(self.dice.roll()).await;
            let (engine, me, how, wanted) =
                (daemon.engine.clone(), self.me.clone(), trace.clone(), new.clone());
            let made = daemon.call(async move { engine.people().add_rule(&me, wanted, how).await }).await;
            self.town.notes.tell(|| format!("{} rules {new:?}: {made:?}", self.me.handle));
            if !is_lost(&made) {
                return;
            }
            self.wait_a_little().await;
        }
    }

    fn some_rule(&mut self) -> NewRule {
        let someone = self.dice.pick(&self.town.people).map(|person| person.person);
        let whom = someone.map_or(Grantee::Org, Grantee::Person);
        let effect = self.dice.weigh(&[
            (4, RuleEffect::Allow),
            (3, RuleEffect::Deny),
            (1, RuleEffect::Ask(whom)),
            (1, RuleEffect::Ask(Grantee::Org)),
        ]);
        let tool = self.dice.weigh(&[(3, Some("shell")), (2, Some("sh*")), (2, None), (1, Some("git"))]);
        let is_for_session = self.dice.chance(500);
        let session = self.some_session().filter(|_| is_for_session);
        let agent = self.dice.weigh(&[(4, None), (1, Some("scripted")), (1, Some("plain"))]);
        let place = self.dice.pick(&PLACES).copied();
        let directory = place.filter(|_| session.is_none() && self.dice.chance(500));
        let now = engine::Clock::now(&*self.town.clock);
        let until = self.dice.chance(150).then(|| Moment(now.0 + self.dice.between(1, 8_000)));
        let (agent, tool) = (agent.map(str::to_owned), tool.map(str::to_owned));
        NewRule { agent, tool, directory: directory.map(str::to_owned), session, effect, until }
    }

    /// Removes one of the rules that they see.
    async fn remove_rule(&mut self) {
        let daemon = self.town.some_daemon(self.dice.roll()).await;
        let (engine, me) = (daemon.engine.clone(), self.me.clone());
        let rules = daemon.call(async move { engine.people().rules(&me).await }).await;
        let rules = rules.and_then(Result::ok).unwrap_or_default();
        let Some(rule) = self.dice.pick(&rules).map(|row| row.rule) else { return };
        let trace = self.rule_trace("unrule");
        let mut tries = 0;
        while !self.town.is_enough(&mut tries) {
            let daemon = self.town.some_daemon(self.dice.roll()).await;
            let (engine, me, how) = (daemon.engine.clone(), self.me.clone(), trace.clone());
            let done = daemon.call(async move { engine.people().remove_rule(&me, rule, how).await }).await;
            self.town.notes.tell(|| format!("{} removes {rule}: {done:?}", self.me.handle));
            if !is_lost(&done) {
                return self.is_told_so(rule, &trace, done);
            }
            self.wait_a_little().await;
        }
    }

    /// Whoever has removed it is not told that it was never there, however often they had to ask.
    fn is_told_so(&self, rule: RuleId, trace: &Trace, done: Option<Result<(), PeopleError>>) {
        let Some(CallerKey::Idempotency(key)) = &trace.key else { return };
        let mine = (self.me.person, key.clone());
        let by_me = {
            let seen = self.town.notes.seen();
            let mut gone = seen.rulebook.rules.iter().filter(|standing| standing.row.rule == rule);
            gone.any(|standing| standing.removed_by.as_ref() == Some(&mine))
        };
        if by_me && done != Some(Ok(())) {
            self.town.notes.broken("the same key gets the same answer", format!("{rule} {done:?}"));
        }
    }

    /// Answers what is open, so that it holds for a while.
    async fn answer_for_good(&mut self) {
        let daemon = self.town.some_daemon(self.dice.roll()).await;
        let (engine, me) = (daemon.engine.clone(), self.me.clone());
        let open = daemon.call(async move { engine.views().approvals(&me, 8).await }).await;
        for view in open.and_then(Result::ok).into_iter().flatten() {
            let answer = if self.dice.chance(500) { Answer::Yes } else { Answer::No };
            let remember =
                self.dice.weigh(&[(3, Some(Remember::Session)), (2, Some(Remember::Always)), (1, None)]);
            self.ask(Request::Answer { approval: view.row.approval, answer, remember }).await;
        }
    }

    fn rule_trace(&mut self, word: &str) -> Trace {
        let key = Some(CallerKey::Idempotency(format!("{word}{}", self.dice.roll())));
        Trace { door: "sim", correlation: "sim".to_owned(), address: None, key, schemes: SCHEMES }
    }

    pub(super) async fn wait_a_little(&mut self) {
        tokio::time::sleep(Duration::from_millis(self.dice.between(10, 400))).await;
    }
}

/// True if whoever asked has to ask again: nobody answered, or nobody knows.
fn is_lost<T>(answer: &Option<Result<T, PeopleError>>) -> bool {
    matches!(answer, None | Some(Err(PeopleError::Unavailable(_))))
}
