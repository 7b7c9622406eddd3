//! An agent's own word about a session: what it calls the conversation, which model it says it uses, and what it has cost so far.

use crate::{ViewError, Views};
use kernel::{Principal, Session, SessionId};
use serde::Deserialize;
use store::{StoreError, StoredEntry};

/// Stories that are read for the sum: a report of a turn's cost has some hundred bytes, so this is tens of thousands of turns.
const REPORTS_BYTES_MAX: usize = 4 * 1024 * 1024;

/// An agent's own word about a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnWord {
    /// Its name for the conversation.
    pub native: Option<String>,
    /// The model that it says it uses.
    pub model: Option<String>,
    /// The cost of all turns so far; none if it has never said any.
    pub cost: Option<SessionCost>,
}

/// The cost of a session, as far as the agent has said so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct SessionCost {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cached_tokens: u64,
    /// In millionths of a dollar; none if no turn had a price.
    pub cost_micros: Option<u64>,
    /// Tokens in the model's window at last, and how many fit.
    pub window_used: Option<u64>,
    pub window_size: Option<u64>,
}

impl SessionCost {
    /// With what came before.
    fn after(self, before: Self) -> Self {
        let price = self.cost_micros.into_iter().chain(before.cost_micros);
        Self {
            input_tokens: self.input_tokens.saturating_add(before.input_tokens),
            output_tokens: self.output_tokens.saturating_add(before.output_tokens),
            cached_tokens: self.cached_tokens.saturating_add(before.cached_tokens),
            cost_micros: price.reduce(u64::saturating_add),
            window_used: self.window_used.or(before.window_used),
            window_size: self.window_size.or(before.window_size),
        }
    }
}

#[derive(Deserialize)]
struct ModelWord {
    #[serde(default)]
    model: String,
}

impl Views {
    /// The agent's own word about a session.
    pub async fn own_word(&self, by: &Principal, session: SessionId) -> Result<OwnWord, ViewError> {
        self.seen(by, session).await?;
        let mut state = Session::default();
        let loaded = self.ports.store.load(session).await?;
        loaded.iter().flat_map(|loaded| &loaded.facts).for_each(|fact| state.evolve(fact));
        let native = state.known().map(|known| known.native.id.clone());
        let words: Vec<ModelWord> = self.reports(session, "about").await?;
        let model = words.into_iter().map(|word| word.model).find(|model| !model.is_empty());
        let costs: Vec<SessionCost> = self.reports(session, "usage").await?;
        Ok(OwnWord { native, model, cost: costs.into_iter().reduce(SessionCost::after) })
    }

    /// The stories of one kind, the newest first, as far as they can be read.
    async fn reports<T: for<'a> Deserialize<'a>>(
        &self,
        session: SessionId,
        kind: &str,
    ) -> Result<Vec<T>, StoreError> {
        let told = self.ports.store.stories(session, kind.to_owned(), REPORTS_BYTES_MAX).await?;
        let bodies = told.into_iter().filter_map(|fact| match fact.entry {
            StoredEntry::Story { body, .. } => body,
            StoredEntry::Rule(_) => None,
        });
        Ok(bodies.filter_map(|body| serde_json::from_slice(&body).ok()).collect())
    }
}
