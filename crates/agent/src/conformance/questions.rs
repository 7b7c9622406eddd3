//! An agent that asks waits for the answer, and does what it was told.

use super::talk::{LONG_GRACE_MS, Talk, soon, turn};
use super::{Candidate, Cannot, StoryResult, Wish};
use crate::{AgentEvent, Form, QuestionAnswer};

/// Two questions in one turn. An answer to another question is no answer.
pub async fn a_question_waits_for_its_answer(on: &dyn Candidate) -> StoryResult {
    let wishes = [Wish::Ask, Wish::Ask];
    let mut talk = asking(on, &wishes).await?;
    let first = talk.asked().await;
    let _ = talk.running.answer("no such question", QuestionAnswer::Allow).await;
    assert!(soon(300, talk.running.next()).await.is_none(), "it went on without an answer");
    talk.answer(&first, QuestionAnswer::Allow).await;
    let second = talk.asked().await;
    assert_ne!(first, second);
    talk.answer(&second, QuestionAnswer::Deny { reason: "not now".to_owned() }).await;
    let ended = talk.hear_out().await;
    ended.assert_finished();
    assert_eq!(ended.text, on.dialect().answer(&wishes, 1));
    Ok(())
}

pub async fn a_question_is_answered_yes_and_no(on: &dyn Candidate) -> StoryResult {
    let mut talk = asking(on, &[Wish::Ask]).await?;
    let question = talk.asked().await;
    talk.answer(&question, QuestionAnswer::Allow).await;
    let yes = talk.hear_out().await;
    yes.assert_finished();
    assert!(on.dialect().was_done(&yes.text), "{:#?}", yes.said);

    let mut talk = yes.go_on(on).await;
    talk.be_ready().await;
    talk.hand(&[Wish::Ask]).await?;
    let question = talk.asked().await;
    talk.answer(&question, QuestionAnswer::Deny { reason: "not now".to_owned() }).await;
    // What was answered cannot be answered again.
    let _ = talk.running.answer(&question, QuestionAnswer::Allow).await;
    let no = talk.hear_out().await;
    no.assert_finished();
    assert!(!on.dialect().was_done(&no.text), "{:#?}", no.said);
    let goes_on = no.said.iter().any(|event| matches!(event, AgentEvent::Text { .. }));
    on.note("after a no", if goes_on { "it goes on" } else { "the turn ends" });
    Ok(())
}

/// Nothing is there before somebody has said yes, and nothing after a no. By the tool that it has for files: what an agent asks
/// about before a command says nothing of what it does with files.
pub async fn a_file_is_written_only_after_a_yes(on: &dyn Candidate) -> StoryResult {
    let mut talk = asking(on, &[Wish::Write]).await?;
    let question = talk.asked().await;
    talk.answer(&question, QuestionAnswer::Deny { reason: "not now".to_owned() }).await;
    let no = talk.hear_out().await;
    no.assert_finished();
    assert!(!on.dialect().was_done(&no.text), "{:#?}", no.said);

    let mut talk = no.go_on(on).await;
    talk.be_ready().await;
    talk.hand(&[Wish::Write]).await?;
    let question = talk.asked().await;
    assert!(!on.dialect().was_done(&talk.text), "it acted before it was allowed: {:#?}", talk.events);
    talk.answer(&question, QuestionAnswer::Allow).await;
    let yes = talk.hear_out().await;
    yes.assert_finished();
    assert!(on.dialect().was_done(&yes.text), "{:#?}", yes.said);
    Ok(())
}

/// Nobody answers; the turn is stopped, nothing was done, and the conversation is there.
pub async fn a_stop_withdraws_a_question(on: &dyn Candidate) -> StoryResult {
    let first = turn(on, &[Wish::Keep("apple")]).await?;
    if !on.agent().abilities().asks {
        return Err(Cannot::because("it does not ask"));
    }
    let mut talk = first.go_on(on).await;
    talk.be_ready().await;
    talk.hand(&[Wish::Ask]).await?;
    talk.asked().await;
    let stopped = talk.stop(LONG_GRACE_MS).await;
    assert!(!on.dialect().was_done(&stopped.text), "{:#?}", stopped.said);
    stopped.assert_still_known(on, "apple").await
}

/// An option, words in place of one, and a no.
pub async fn a_choice_is_made_of_what_is_offered(on: &dyn Candidate) -> StoryResult {
    let mut answers = vec![
        (QuestionAnswer::Deny { reason: String::new() }, None),
        (QuestionAnswer::Said("green".to_owned()), Some("green")),
    ];
    answers.push((QuestionAnswer::Chose(1), Some("blue")));
    let mut talk = asking(on, &[Wish::Choose]).await?;
    while let Some((answer, said)) = answers.pop() {
        let (question, form) = talk.asked_how().await;
        let Form::Choice { options } = form else { panic!("{form:?} is no choice") };
        let names: Vec<&str> = options.iter().map(|option| option.name.as_str()).collect();
        assert_eq!(names, ["red", "blue"]);
        talk.answer(&question, answer).await;
        let ended = talk.hear_out().await;
        ended.assert_finished();
        match said {
            Some(word) => assert!(came_of_it(&ended.said).contains(word), "{:#?}", ended.said),
            None => assert!(!came_of_it(&ended.said).contains("blue"), "{:#?}", ended.said),
        }
        talk = ended.go_on(on).await;
        talk.be_ready().await;
        if !answers.is_empty() {
            talk.hand(&[Wish::Choose]).await?;
        }
    }
    talk.stop(0).await;
    Ok(())
}

pub async fn words_are_asked_for_and_given(on: &dyn Candidate) -> StoryResult {
    let mut talk = asking(on, &[Wish::AskWords]).await?;
    let (question, form) = talk.asked_how().await;
    assert_eq!(form, Form::Words);
    talk.answer(&question, QuestionAnswer::Said("a deep green".to_owned())).await;
    let ended = talk.hear_out().await;
    ended.assert_finished();
    assert!(came_of_it(&ended.said).contains("a deep green"), "{:#?}", ended.said);
    Ok(())
}

/// The agent's words, and the results of its tools.
fn came_of_it(said: &[AgentEvent]) -> String {
    let words = said.iter().filter_map(|event| match event {
        AgentEvent::Text { text } | AgentEvent::ToolResult { output: text, .. } => Some(text.as_str()),
        _ => None,
    });
    words.collect()
}

async fn asking<'a>(on: &'a dyn Candidate, wishes: &[Wish<'_>]) -> Result<Talk<'a>, Cannot> {
    if !on.agent().abilities().asks {
        return Err(Cannot::because("it does not ask"));
    }
    on.dialect().phrase(wishes)?;
    let mut talk = Talk::ready(on).await;
    talk.hand(wishes).await?;
    Ok(talk)
}
