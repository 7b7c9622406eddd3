//! Readiness: what the kernel's rule needs to know of the outside, and the answer in words.
//!
//! Nothing is started for it. What takes long to see is told as unknown, with a deadline.

use crate::roster::{LOOK_MAX, LOOK_WAIT};
use crate::view::{may_read, readable};
use crate::{AccessError, NoGround, ViewError, Views};
use agent::{Presence, SignIn};
use kernel::{
    Act, Claim, Look, Moment, PartWhy, Principal, Readiness, ReadinessPart, Remedy, Scope, Seen, Session,
    SessionId, Stage, Trouble, authorize, readiness, readiness_parts,
};
use store::{Seer, StoreError};

/// The readiness of a session, and each part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadyView {
    /// `ready`, `waiting` or `blocked`.
    pub state: &'static str,
    /// All of its parts, the fine ones included.
    pub parts: Vec<ReadinessPart>,
    /// Whose turn works in the directory, if this session has to wait for it.
    pub neighbour: Option<Neighbour>,
}

/// A session whose turn works where another one wants to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Neighbour {
    /// This one.
    Session(SessionId),
    /// One that whoever asks may not see.
    Hidden,
}

impl Views {
    /// The readiness of a session for the next message.
    pub async fn readiness(&self, by: &Principal, session: SessionId) -> Result<ReadyView, ViewError> {
        let what = "session";
        may_read(by, what)?;
        let found = self.ports.store.session_with_log(Seer::of(by), session).await?;
        let (record, row, loaded) = found.ok_or(AccessError::NotFound { what })?;
        readable(by, &record, what)?;
        let mut state = Session::default();
        loaded.facts.iter().for_each(|fact| state.evolve(fact));
        let scope = state.scope().cloned().unwrap_or(loaded.scope);
        let now = self.ports.now();
        let seen = self.seen_outside(session, &state, &scope, row.touched_at, now).await?;
        let parts = readiness_parts(&state, &seen, now);
        let is_crowded = parts.iter().any(|part| part.why == Some(PartWhy::Crowded));
        let neighbour = if is_crowded { self.neighbour(by, session, &scope).await? } else { None };
        let state = match readiness(&state, &seen, now) {
            Readiness::Ready => "ready",
            Readiness::Waiting { .. } => "waiting",
            Readiness::Blocked { .. } => "blocked",
        };
        Ok(ReadyView { state, parts: parts.to_vec(), neighbour })
    }

    /// The one who works in the directory of a session, if it is somebody else.
    pub(crate) async fn neighbour(
        &self,
        by: &Principal,
        session: SessionId,
        scope: &Scope,
    ) -> Result<Option<Neighbour>, StoreError> {
        self.holder_of(by, session, Claim::directory(&scope.directory)).await
    }

    /// The first of the other sessions that hold a claim.
    pub(crate) async fn holder_of(
        &self,
        by: &Principal,
        session: SessionId,
        claim: Claim,
    ) -> Result<Option<Neighbour>, StoreError> {
        let holder = self.ports.store.holder(claim).await?;
        let Some((other, _)) = holder.filter(|(other, _)| *other != session) else { return Ok(None) };
        let found = self.ports.store.session(other).await?;
        let is_seen = found.is_some_and(|(record, _)| authorize(by, Act::Read, &record, ()).is_ok());
        Ok(Some(if is_seen { Neighbour::Session(other) } else { Neighbour::Hidden }))
    }

    async fn seen_outside(
        &self,
        session: SessionId,
        state: &Session,
        scope: &Scope,
        said_at: Moment,
        now: Moment,
    ) -> Result<Seen, StoreError> {
        let directory = match self.ground.look(&scope.directory) {
            Ok(()) => Look::Fine,
            Err(NoGround::Gone(_)) => Look::Bad { why: Trouble::Missing },
            Err(NoGround::Elsewhere(_)) => Look::Bad { why: Trouble::Elsewhere },
        };
        Ok(Seen {
            directory,
            agent: self.agent_seen(session, &scope.agent, now).await,
            commands: self.commands_seen(scope, said_at),
            model: self.model_seen(scope, state),
            // One node holds the store; several share it one day, and then somebody else may have the session.
            lease: Look::Fine,
            quota: Look::Fine,
            is_slash: self.is_slash_next(state).await?,
        })
    }

    async fn agent_seen(&self, session: SessionId, name: &str, now: Moment) -> Look {
        if !self.roster.agents().contains_key(name) {
            return Look::Bad { why: Trouble::Missing };
        }
        match self.roster.looks().await.remove(name).flatten() {
            Some(looked) => match (looked.found, looked.sign_in) {
                (Presence::Missing { .. }, _) => Look::Bad { why: Trouble::Broken },
                (Presence::Here { .. }, SignIn::Missing { .. }) => Look::Bad { why: Trouble::SignedOut },
                (Presence::Here { .. }, _) if self.roster.is_failing(session) => {
                    Look::Bad { why: Trouble::Failing }
                }
                (Presence::Here { .. }, SignIn::Here { .. } | SignIn::Unknown) => Look::Fine,
            },
            None => {
                let since = Moment(now.0.saturating_sub(LOOK_WAIT.as_millis() as u64));
                Look::Unknown { since, until: since.after_ms(LOOK_MAX.as_millis() as u64) }
            }
        }
    }

    /// The list comes with an attempt; it is waited for from when something was last said.
    fn commands_seen(&self, scope: &Scope, said_at: Moment) -> Look {
        let lists = self.roster.agents().get(&scope.agent).is_some_and(|agent| agent.abilities().commands);
        if !lists || !self.roster.lists(&scope.agent).commands.is_empty() {
            return Look::Fine;
        }
        let wait_ms = self.ports.limits.commands_wait.as_millis() as u64;
        Look::Unknown { since: said_at, until: said_at.after_ms(wait_ms) }
    }

    /// A model that the agent lists is there; one that it does not list is not, unless it takes such. Without a list, the
    /// start tells.
    fn model_seen(&self, scope: &Scope, state: &Session) -> Look {
        let models = self.roster.lists(&scope.agent).models;
        let agent = self.roster.agents().get(&scope.agent);
        let takes = |model: &str| agent.is_none_or(|agent| agent.takes_model(model, &models));
        match (&scope.model, state.running().map(|running| running.stage)) {
            (None, _) => Look::Fine,
            (Some(chosen), _) if !takes(chosen) => Look::Bad { why: Trouble::Missing },
            (Some(_), _) if !models.is_empty() => Look::Fine,
            (Some(_), Some(Stage::Starting { until, .. })) => Look::Unknown { since: Moment(0), until },
            (Some(_), _) => Look::Fine,
        }
    }

    async fn is_slash_next(&self, state: &Session) -> Result<bool, StoreError> {
        let next = state.queue().iter().find(|waiting| waiting.is_startable());
        let running = state.running().filter(|running| matches!(running.stage, Stage::Starting { .. }));
        let message = running.map(|running| running.message).or(next.map(|waiting| waiting.message));
        let Some(message) = message else { return Ok(false) };
        let words = self.ports.store.words(message).await?;
        let text = words.and_then(|words| crate::inbound::plain_text(&words)).unwrap_or_default();
        Ok(text.starts_with('/'))
    }
}

/// The remedy of a part, for people.
pub fn remedy_words(remedy: Remedy) -> &'static str {
    match remedy {
        Remedy::Wait => "nothing: it passes",
        Remedy::Relink => "name the directory anew (`homing scope relink DIR`), or put it back",
        Remedy::MendAgent => {
            "`homing agents` says what is wrong with it; mend that, or choose another agent (`homing scope set --agent NAME`)"
        }
        Remedy::SignIn => "sign in to the agent",
        Remedy::ReadFailure => {
            "it has failed three times in a row with the same words: read them (`homing log`), mend that and send again, or \
             go on in a new session (`homing send --new`)"
        }
        Remedy::ChooseModel => "choose another model (`homing scope set --model NAME`)",
        Remedy::Release => "release or withdraw what is held (`homing queue`)",
        Remedy::Place => {
            "say where each held message belongs (`homing queue release --here` or `--there`), or withdraw it"
        }
        Remedy::Answer => "answer the question (`homing approve`)",
        Remedy::KeepScope => "wait, or give the change up (`homing scope keep`)",
        Remedy::MakeRoom => "wait, or end something else",
        Remedy::MendServer => "look at the server's log",
        Remedy::BeginAnew => "begin another session",
    }
}
