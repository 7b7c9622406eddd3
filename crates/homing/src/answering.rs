//! Answering an agent's question where it is shown, with a key or in words.

use anyhow::Result;
use api::client::ClientError;
use api::{Answer, Code, QuestionForm};

use crate::follow::OpenApproval;
use crate::line_editor::LineEditor;
use crate::remote::{OrCliError, Remote};

/// Options that a single key can choose among: more have numbers of two digits.
const KEY_OPTIONS_MAX: usize = 10;
const DIGITS: &str = "0123456789";

/// Lets keys answer this question.
pub(crate) fn ask(asked: &OpenApproval, editor: &mut LineEditor) -> Result<()> {
    match asked.form {
        QuestionForm::Permission => editor.ask("y/n> ", "yYnN"),
        QuestionForm::Choice if asked.options.len() <= KEY_OPTIONS_MAX => {
            editor.ask("number, words or n> ", &DIGITS[..asked.options.len()])
        }
        QuestionForm::Choice => editor.ask("number, words or n> ", ""),
        QuestionForm::Words => editor.ask("words or n> ", ""),
    }
}

/// The ways to answer it, for whoever types whole lines.
pub(crate) fn how(asked: &OpenApproval) -> &'static str {
    match asked.form {
        QuestionForm::Permission => "type y or n",
        QuestionForm::Choice => "type a number, other words, or n",
        QuestionForm::Words => "type your words, or n",
    }
}

/// Answers the question with what was typed. True if it is settled, so that nobody asks any more.
pub(crate) async fn answer(asked: &OpenApproval, typed: &str, remote: &Remote) -> Result<bool> {
    let Some(answer) = answer_of(asked.form, typed.trim()) else {
        remote.screen.say("the agent waits for y or n");
        return Ok(false);
    };
    match remote.client.answer(&asked.approval, answer).await {
        // A rule or somebody else was faster, or the turn is over: the talk goes on.
        Err(ClientError::Refused(problem)) if matches!(problem.code, Code::TooLate | Code::Lapsed) => {
            remote.screen.say(problem.detail);
        }
        Err(ClientError::Refused(problem)) if problem.code == Code::UnfitAnswer => {
            remote.screen.say(problem.detail);
            return Ok(false);
        }
        answered => drop(answered.or_cli_error()?),
    }
    Ok(true)
}

/// Text that somebody typed, as an answer to a question of this form.
fn answer_of(form: QuestionForm, text: &str) -> Option<Answer> {
    let no = matches!(text.to_lowercase().as_str(), "n" | "no");
    match form {
        _ if no => Some(Answer::No),
        QuestionForm::Permission => {
            matches!(text.to_lowercase().as_str(), "y" | "yes").then_some(Answer::Yes)
        }
        QuestionForm::Choice => {
            Some(text.parse().map_or_else(|_| Answer::Said(text.to_owned()), Answer::Chose))
        }
        QuestionForm::Words => Some(Answer::Said(text.to_owned())),
    }
}
