//! An agent that always has something more to say, and says it at once.

use agent::{
    Abilities, Agent, AgentEvent, EndedLeftovers, Launch, Message, Presence, QuestionAnswer, Reply, Running,
    Setup, TreeEnd, TreeName, Trouble,
};
use std::future::ready;

/// The words it says at a time: enough to be written down at once.
const WORDS_BYTES: usize = 8 * 1024;

#[derive(Debug)]
pub(crate) struct Tireless;

impl Agent for Tireless {
    fn name(&self) -> &str {
        "tireless"
    }

    fn abilities(&self) -> Abilities {
        Abilities::default()
    }

    fn look(&self) -> Reply<'_, Presence> {
        Box::pin(ready(Presence::Here { version: "1".to_owned() }))
    }

    fn setup(&self) -> Setup {
        Setup::default()
    }

    fn start(&self, _: Launch) -> Reply<'_, Result<Box<dyn Running>, Trouble>> {
        Box::pin(ready(Ok(Box::new(Turn::Fresh) as Box<dyn Running>)))
    }

    fn end_leftovers(&self, _: TreeName) -> Reply<'_, Result<EndedLeftovers, Trouble>> {
        Box::pin(ready(Ok(EndedLeftovers { killed: 0 })))
    }
}

#[derive(Clone, Copy)]
enum Turn {
    Fresh,
    Waiting,
    Talking,
    Over,
}

const GONE: TreeEnd = TreeEnd { killed: 0, gone: true };

impl Running for Turn {
    fn next(&mut self) -> Reply<'_, AgentEvent> {
        let event = match self {
            Self::Fresh => {
                *self = Self::Waiting;
                AgentEvent::Ready { native: None }
            }
            Self::Waiting => return Box::pin(std::future::pending()),
            Self::Talking => AgentEvent::Text { text: "x".repeat(WORDS_BYTES) },
            Self::Over => AgentEvent::Died { detail: "stopped".to_owned(), verified: GONE },
        };
        Box::pin(ready(event))
    }

    fn hand(&mut self, _: Message) -> Reply<'_, Result<(), Trouble>> {
        *self = Self::Talking;
        Box::pin(ready(Ok(())))
    }

    fn answer(&mut self, _: &str, _: QuestionAnswer) -> Reply<'_, Result<(), Trouble>> {
        Box::pin(ready(Ok(())))
    }

    fn stop(&mut self, _: u64) -> Reply<'_, TreeEnd> {
        *self = Self::Over;
        Box::pin(ready(GONE))
    }
}
