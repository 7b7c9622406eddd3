//! Requests by which an agent asks a person several things at once, each with options or in words. Pure.
//!
//! A person is asked one thing at a time: each part becomes a question of its own, and the agent gets its answer when the
//! last one is answered. What nobody would say stays open in that answer.

use std::collections::BTreeMap;

use agent::{AgentEvent, CHOICES_MAX, Choice, DETAIL_BYTES_MAX, Form, QuestionAnswer, bounded};
use serde_json::Value;

use crate::agent_protocol::ProtocolOutput;

/// The most requests that are open at once, and the most parts of one.
const SURVEYS_MAX: usize = 20;
const PARTS_MAX: usize = 20;
/// The longest name or description of an option.
const OPTION_BYTES_MAX: usize = 1024;

/// One thing that is asked.
pub(crate) struct SurveyPart {
    /// The question of the agent.
    pub(crate) words: String,
    /// The options; nothing wants words.
    pub(crate) options: Vec<Choice>,
}

impl SurveyPart {
    /// A part whose options are listed with these names and descriptions.
    pub(crate) fn read(words: &Value, options: &Value) -> Self {
        let text = |value: &Value, most| bounded(value.as_str().unwrap_or_default(), most);
        let option = |it: &Value| Choice {
            name: text(&it["label"], OPTION_BYTES_MAX),
            description: text(&it["description"], OPTION_BYTES_MAX),
        };
        let listed = options.as_array().into_iter().flatten().map(option);
        let options = listed.filter(|option| !option.name.is_empty()).take(CHOICES_MAX).collect();
        Self { words: text(words, DETAIL_BYTES_MAX), options }
    }

    fn form(&self) -> Form {
        if self.options.is_empty() {
            return Form::Words;
        }
        Form::Choice { options: self.options.clone() }
    }

    /// The person's answer to it, in words. Nothing is a no, and so is what does not fit.
    fn said(&self, answer: &QuestionAnswer) -> Option<String> {
        match answer {
            QuestionAnswer::Chose(at) => self.options.get(*at).map(|option| option.name.clone()),
            QuestionAnswer::Said(words) => Some(words.clone()),
            QuestionAnswer::Allow | QuestionAnswer::Deny { .. } => None,
        }
    }
}

struct Survey {
    /// The things the driver has to know to answer.
    about: Value,
    parts: Vec<SurveyPart>,
    /// The answer to each part; nothing until then.
    said: Vec<Option<Option<String>>>,
}

/// A request that has its answers, one for each part. Nothing stands for what nobody would say.
pub(crate) struct SurveyAnswers {
    pub(crate) about: Value,
    pub(crate) answers: Vec<Option<String>>,
}

/// The requests that wait.
#[derive(Default)]
pub(crate) struct Surveys {
    open: BTreeMap<String, Survey>,
}

impl Surveys {
    /// Asks each part. Answers whether it could: a request without parts, or one too many, cannot be asked.
    pub(crate) fn ask(
        &mut self,
        key: &str,
        tool: &str,
        about: Value,
        parts: Vec<SurveyPart>,
        out: &mut ProtocolOutput,
    ) -> bool {
        let is_fine = (1..=PARTS_MAX).contains(&parts.len());
        if !is_fine || self.open.len() >= SURVEYS_MAX || self.open.contains_key(key) {
            return false;
        }
        for (at, part) in parts.iter().enumerate() {
            let (question, form) = (question(key, at), part.form());
            out.event(AgentEvent::Asked {
                question,
                tool: tool.to_owned(),
                kind: String::new(),
                detail: part.words.clone(),
                form,
            });
        }
        let said = parts.iter().map(|_| None).collect();
        self.open.insert(key.to_owned(), Survey { about, parts, said });
        true
    }

    /// Takes an answer; answers the whole request when it was the last one.
    pub(crate) fn answer(&mut self, question: &str, answer: &QuestionAnswer) -> Option<SurveyAnswers> {
        let (key, at) = question.rsplit_once('/')?;
        let survey = self.open.get_mut(key)?;
        let at: usize = at.parse().ok()?;
        let said = survey.said.get_mut(at)?;
        if said.is_none() {
            *said = Some(survey.parts[at].said(answer));
        }
        if survey.said.iter().any(Option::is_none) {
            return None;
        }
        let Survey { about, said, .. } = self.open.remove(key)?;
        Some(SurveyAnswers { about, answers: said.into_iter().map(Option::flatten).collect() })
    }

    /// True if the question is a part of one of them.
    pub(crate) fn has(&self, question: &str) -> bool {
        question.rsplit_once('/').is_some_and(|(key, _)| self.open.contains_key(key))
    }

    /// The agent no longer asks.
    pub(crate) fn withdraw(&mut self, key: &str, out: &mut ProtocolOutput) {
        let Some(survey) = self.open.remove(key) else { return };
        for (at, said) in survey.said.iter().enumerate() {
            if said.is_none() {
                out.event(AgentEvent::Withdrawn { question: question(key, at) });
            }
        }
    }

    /// The turn is over.
    pub(crate) fn withdraw_all(&mut self, out: &mut ProtocolOutput) {
        for key in self.open.keys().cloned().collect::<Vec<_>>() {
            self.withdraw(&key, out);
        }
    }
}

fn question(key: &str, at: usize) -> String {
    format!("{key}/{at}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn two() -> Vec<SurveyPart> {
        let options = json!([{"label": "red", "description": "warm"}, {"label": "blue"}, {"label": ""}]);
        vec![SurveyPart::read(&json!("which?"), &options), SurveyPart::read(&json!("why?"), &Value::Null)]
    }

    #[test]
    fn parts_are_asked_apart_and_answered_together() {
        let (mut surveys, mut out) = (Surveys::default(), ProtocolOutput::default());
        assert!(surveys.ask("a/b", "Ask", json!(7), two(), &mut out));
        let (events, ..) = out.take();
        let [AgentEvent::Asked { question: first, form: Form::Choice { options }, .. }, second] = &events[..]
        else {
            panic!("{events:?}")
        };
        assert_eq!(options.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["red", "blue"]);
        let AgentEvent::Asked { question: second, form: Form::Words, .. } = second else { panic!() };
        assert!(surveys.has(first) && surveys.answer("a/b/7", &QuestionAnswer::Chose(0)).is_none());
        assert!(surveys.answer(second, &QuestionAnswer::Said("so".to_owned())).is_none());
        // What was answered stays answered.
        assert!(surveys.answer(second, &QuestionAnswer::Said("not so".to_owned())).is_none());
        let filled = surveys.answer(first, &QuestionAnswer::Chose(1)).expect("that was the last");
        assert_eq!(
            (filled.about, filled.answers),
            (json!(7), vec![Some("blue".to_owned()), Some("so".to_owned())])
        );
        assert!(!surveys.has(first));
    }

    #[test]
    fn what_does_not_fit_is_a_no_and_what_is_open_is_withdrawn() {
        let (mut surveys, mut out) = (Surveys::default(), ProtocolOutput::default());
        assert!(surveys.ask("q", "Ask", Value::Null, two(), &mut out));
        assert!(!surveys.ask("q", "Ask", Value::Null, two(), &mut out), "it is asked already");
        assert!(!surveys.ask("r", "Ask", Value::Null, Vec::new(), &mut out), "there is nothing to ask");
        out.take();
        assert!(surveys.answer("q/0", &QuestionAnswer::Chose(2)).is_none());
        surveys.withdraw_all(&mut out);
        assert_eq!(out.take().0, [AgentEvent::Withdrawn { question: "q/1".to_owned() }]);
        assert!(surveys.answer("q/1", &QuestionAnswer::Allow).is_none());
    }
}
