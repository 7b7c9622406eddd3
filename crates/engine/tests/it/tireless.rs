//! An agent that always has something more to say, and says it at once.

use agent::{
    Abilities, Agent, AgentEvent, Answer, Buried, Found, Launch, Message, Reply, Running, Setup, TreeName,
    Trouble, Verified,
};
use std::future::ready;

/// What it says at a time: enough to be written down at once.
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

    fn look(&self) -> Reply<'_, Found> {
        Box::pin(ready(Found::Here { version: "1".to_owned() }))
    }

    fn setup(&self) -> Setup {
        Setup::default()
    }

    fn start(&self, _: Launch) -> Reply<'_, Result<Box<dyn Running>, Trouble>> {
        Box::pin(ready(Ok(Box::new(Turn::Fresh) as Box<dyn Running>)))
    }

    fn bury(&self, _: TreeName) -> Reply<'_, Result<Buried, Trouble>> {
        Box::pin(ready(Ok(Buried { killed: 0 })))
    }
}

#[derive(Clone, Copy)]
enum Turn {
    Fresh,
    Waiting,
    Talking,
    Over,
}

const GONE: Verified = Verified { killed: 0, gone: true };

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

    fn answer(&mut self, _: &str, _: Answer) -> Reply<'_, Result<(), Trouble>> {
        Box::pin(ready(Ok(())))
    }

    fn stop(&mut self, _: u64) -> Reply<'_, Verified> {
        *self = Self::Over;
        Box::pin(ready(GONE))
    }
}
