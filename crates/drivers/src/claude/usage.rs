//! The cost of a turn, from claude's `result`. Pure.
//!
//! `total_cost_usd` and `modelUsage` are sums over the conversation, those of earlier processes included; what belongs to
//! this turn is in `model_usage_since_last_result`, for all models and helpers of claude together. A version that does
//! not say it says at least `usage`, and the difference of two sums.

use agent::Usage;
use serde_json::Value;

/// The costs that were told so far.
#[derive(Debug, Default)]
pub(super) struct Costs {
    /// The sum of the last `result`, if we know it.
    total: Option<f64>,
}

impl Costs {
    /// A new conversation has cost nothing; of another we do not know.
    pub(super) fn new(is_new: bool) -> Self {
        Self { total: is_new.then_some(0.0) }
    }

    /// The usage that this `result` adds; nothing if it says nothing. `tokens` are in the model's window now.
    pub(super) fn add(&mut self, said: &Value, model: &str, tokens: Option<u64>) -> Option<Usage> {
        let total = said["total_cost_usd"].as_f64();
        let before = self.total;
        self.total = total.or(before);
        let difference = total.zip(before).map(|(total, before)| total - before);
        let mut usage = match said["model_usage_since_last_result"].as_object() {
            Some(models) => of_models(models.values()),
            None => of_usage(&said["usage"], difference),
        };
        if usage == Usage::default()
            || (usage.input_tokens, usage.output_tokens, usage.cost_micros) == (0, 0, Some(0))
        {
            return None;
        }
        usage.window = tokens.zip(window(&said["modelUsage"], model));
        Some(usage)
    }
}

fn of_models<'a>(models: impl Iterator<Item = &'a Value>) -> Usage {
    let (mut usage, mut dollars) = (Usage::default(), 0.0);
    for model in models {
        let of = |name: &str| model[name].as_u64().unwrap_or(0);
        let cached = of("cacheReadInputTokens");
        let read = of("inputTokens").saturating_add(of("cacheCreationInputTokens")).saturating_add(cached);
        usage.input_tokens = usage.input_tokens.saturating_add(read);
        usage.output_tokens = usage.output_tokens.saturating_add(of("outputTokens"));
        usage.cached_tokens = usage.cached_tokens.saturating_add(cached);
        dollars += model["costUSD"].as_f64().unwrap_or(0.0);
    }
    Usage { cost_micros: micros(dollars), ..usage }
}

fn of_usage(said: &Value, dollars: Option<f64>) -> Usage {
    let cached_tokens = said["cache_read_input_tokens"].as_u64().unwrap_or(0);
    Usage {
        input_tokens: read(said),
        output_tokens: said["output_tokens"].as_u64().unwrap_or(0),
        cached_tokens,
        cost_micros: dollars.and_then(micros),
        window: None,
    }
}

/// The tokens that one request read, those from a cache included.
pub(super) fn read(usage: &Value) -> u64 {
    let names = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];
    names.iter().fold(0, |sum: u64, name| sum.saturating_add(usage[*name].as_u64().unwrap_or(0)))
}

/// The size of the window of the model that answered.
fn window(models: &Value, model: &str) -> Option<u64> {
    let models = models.as_object()?;
    let said = models.get(model).or_else(|| models.values().next().filter(|_| models.len() == 1));
    said?["contextWindow"].as_u64()
}

/// Millionths of a dollar. Nonsense is nothing.
fn micros(dollars: f64) -> Option<u64> {
    let micros = (dollars * 1e6).round();
    // Far below what a float holds exactly, and far above what anybody pays.
    (0.0..1e15).contains(&micros).then_some(micros as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_version_that_says_only_sums_is_understood_by_their_difference() {
        let result = |total: f64| json!({"total_cost_usd": total, "usage": {"input_tokens": 3, "cache_read_input_tokens": 2, "output_tokens": 1}});
        let mut costs = Costs::new(true);
        let cost = |usage: Option<Usage>| usage.unwrap().cost_micros;
        assert_eq!(cost(costs.add(&result(0.5), "", None)), Some(500_000));
        assert_eq!(cost(costs.add(&result(0.75), "", None)), Some(250_000));
        let mut resumed = Costs::new(false);
        let first = resumed.add(&result(9.0), "", None).unwrap();
        assert_eq!((first.input_tokens, first.cached_tokens, first.cost_micros), (5, 2, None));
        assert_eq!(cost(resumed.add(&result(9.25), "", None)), Some(250_000));
    }

    #[test]
    fn nonsense_costs_nothing() {
        for total in [f64::MAX, -1.0] {
            let said =
                json!({"total_cost_usd": total, "usage": {"input_tokens": u64::MAX, "output_tokens": -4}});
            let usage = Costs::new(true).add(&said, "", None).unwrap();
            assert_eq!((usage.input_tokens, usage.output_tokens, usage.cost_micros), (u64::MAX, 0, None));
        }
        assert_eq!(Costs::new(true).add(&json!([]), "", None), None);
    }
}
