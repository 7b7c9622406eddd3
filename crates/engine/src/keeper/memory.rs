//! The ways an agent comes to know what was said before: it remembers, its memory follows, or it is told again.

use super::{Keeper, Stop};
use crate::slash_command::command_name;
use crate::story::Story;
use crate::transcript::Transcript;
use agent::{Abilities, Agent, Launch, MESSAGE_BYTES_MAX, MemoryMove};
use kernel::{Attempt, Begin, Fact, Fence, Native, Origin, Run, Session, Turn};
use store::Entry;

/// The way that was taken.
enum MemorySource {
    /// Its memory of an earlier scope goes along.
    Follows,
    /// It goes on with its own memory of the origin, under another name.
    Forks,
    /// It is told again what was said, so many turns of it.
    ToldAgain { turns: usize },
    /// It would be told again, but the message has to come first.
    Untold,
}

/// The reminder of an attempt of what was said before.
#[derive(Debug, Default)]
pub(super) struct Reminder {
    /// The words for the agent with the message, if it has to be.
    pub(super) preamble: Option<String>,
    /// The story for people.
    pub(super) story: Option<Entry>,
}

impl Keeper {
    /// Settles which conversation an attempt goes on with, and what it has to be told.
    pub(super) async fn remind(
        &self,
        agent: &dyn Agent,
        run: &Run,
        text: &str,
        launch: &mut Launch,
    ) -> Result<Reminder, Stop> {
        let mut preamble = None;
        let way = match (&run.begin, agent.abilities().memory) {
            (Begin::New, _) => None,
            (Begin::Resume(native), _) => {
                launch.native = Some(native.clone());
                None
            }
            (Begin::Follow(native), MemoryMove::Resume | MemoryMove::Carry) => {
                launch.native = Some(native.clone());
                Some(MemorySource::Follows)
            }
            (Begin::Follow(_), MemoryMove::Replay) | (Begin::Retell, _) => {
                self.retell(run.fence.turn, text, agent, &mut preamble).await?
            }
            (Begin::Fork(origin), _) => match self.forkable(*origin, run.fence, agent).await? {
                Some(native) => {
                    launch.native = Some(native);
                    launch.fork = true;
                    Some(MemorySource::Forks)
                }
                None => self.retell(run.fence.turn, text, agent, &mut preamble).await?,
            },
        };
        Ok(Reminder { preamble, story: way.map(|way| way.story(run.fence.turn)) })
    }

    /// The origin's conversation, if the agent can go on with it under another name: it has not gone on itself since, and
    /// its memory comes along to where this session is. What has failed once, or has come to no answer in an earlier turn, is
    /// told again instead.
    async fn forkable(
        &self,
        origin: Origin,
        fence: Fence,
        agent: &dyn Agent,
    ) -> Result<Option<Native>, Stop> {
        let Abilities { fork: true, memory, .. } = agent.abilities() else { return Ok(None) };
        let loaded = self.engine.store().load(origin.session).await?;
        let Some(loaded) = loaded.filter(|_| (fence.turn, fence.attempt) == (Turn(1), Attempt(1))) else {
            return Ok(None);
        };
        let mut state = Session::default();
        loaded.facts.iter().for_each(|fact| state.evolve(fact));
        let Some(scope) = state.scope() else { return Ok(None) };
        let follows = memory != MemoryMove::Replay || scope.directory == self.scope.directory;
        let is_last = last_turn(&loaded.facts) == Some(origin.turn);
        let native = loaded.facts.iter().rev().find_map(|fact| match fact {
            Fact::Confirmed { native, epoch } => Some(native).filter(|_| *epoch == state.epoch()),
            _ => None,
        });
        Ok(native.filter(|_| follows && is_last && scope.agent == self.scope.agent).cloned())
    }

    /// Tells again what was said before this turn, and in the sessions of which this is a fork.
    async fn retell(
        &self,
        before: Turn,
        text: &str,
        agent: &dyn Agent,
        preamble: &mut Option<String>,
    ) -> Result<Option<MemorySource>, Stop> {
        if command_name(text).is_some() && agent.abilities().commands {
            return Ok(Some(MemorySource::Untold));
        }
        let room = MESSAGE_BYTES_MAX.saturating_sub(text.len());
        let transcript = Transcript::read(&self.engine, self.org, self.session, before, room).await?;
        let turns = transcript.turns();
        *preamble = transcript.preamble();
        Ok((turns > 0).then_some(MemorySource::ToldAgain { turns }))
    }

    /// True if nothing of a later turn can be in what the agent has forked, once it has: none had started. What cannot
    /// be looked up counts as gone on: the conversation is told again instead.
    pub(super) async fn is_clean_fork(&self, origin: Origin) -> bool {
        let loaded = self.engine.store().load(origin.session).await;
        loaded.is_ok_and(|loaded| loaded.is_some_and(|loaded| last_turn(&loaded.facts) == Some(origin.turn)))
    }
}

fn last_turn(facts: &[Fact]) -> Option<Turn> {
    let turns = facts.iter().filter_map(|fact| match fact {
        Fact::TurnStarted { turn, .. } | Fact::TurnEnded { turn, .. } => Some(*turn),
        _ => None,
    });
    turns.max()
}

impl MemorySource {
    fn story(&self, turn: Turn) -> Entry {
        let (way, turns, text) = match self {
            Self::Follows => ("follows", 0, "the agent's memory of the conversation goes along".to_owned()),
            Self::Forks => ("forked", 0, "the agent has forked the conversation itself".to_owned()),
            Self::ToldAgain { turns } => {
                let count = if *turns == 1 { "1 turn".to_owned() } else { format!("{turns} turns") };
                ("told_again", *turns, format!("the conversation so far was told again: {count}"))
            }
            Self::Untold => {
                let text =
                    "the agent does not know the conversation so far: a command cannot be given with it";
                ("untold", 0, text.to_owned())
            }
        };
        Story::Memory { way, turns, text: &text }.entry(turn)
    }
}
