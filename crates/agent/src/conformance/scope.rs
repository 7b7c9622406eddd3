//! The demands of a scope on an agent: words into a running turn, a second conversation that begins like the first,
//! another directory, and the chosen model or none.

use super::talk::{Ended, Talk, wait};
use super::{Candidate, Cannot, StoryResult, Wish};
use crate::{AgentEvent, Launch, MemoryMove, Message, Steered};
use kernel::{Failure, MessageId, Native};

/// Something no agent calls a model.
const NO_MODEL: &str = "homing/no-such-model";

/// Added words are answered in the turn, and remembered with it.
pub async fn words_added_to_a_turn_are_part_of_it(on: &dyn Candidate) -> StoryResult {
    if !on.agent().abilities().steer {
        return Err(Cannot::because("nothing can be added to its turns"));
    }
    let mut talk = Talk::ready(on).await;
    talk.hand(&[Wish::Keep("apple"), Wish::Linger]).await?;
    talk.until_it_speaks().await;
    assert_eq!(steer(&mut talk, "pear").await?, Steered::Taken);
    let ended = talk.hear_out().await;
    ended.assert_finished();
    assert!(ended.text.contains("pear"), "{:?}", ended.text);
    assert_eq!(ended.recall(on).await?, ["apple", "pear"]);
    Ok(())
}

/// Before the message, and after the last word. Nothing of it is ever acted on.
pub async fn words_beside_a_turn_are_too_late(on: &dyn Candidate) -> StoryResult {
    let mut talk = Talk::ready(on).await;
    assert_eq!(steer(&mut talk, "plum").await?, Steered::TooLate);
    talk.hand(&[Wish::Keep("apple")]).await?;
    let last = loop {
        let event = talk.next().await;
        if event.is_last() {
            break event;
        }
    };
    assert_eq!(steer(&mut talk, "pear").await?, Steered::TooLate);
    let ended = talk.ended(last);
    ended.assert_finished();
    assert_eq!(ended.recall(on).await?, ["apple"]);
    Ok(())
}

/// Both go on, each without knowing of the other.
pub async fn a_fork_goes_its_own_way(on: &dyn Candidate) -> StoryResult {
    can_fork(on)?;
    let first = Talk::begin(on, None).await.whole_text(on.dialect().phrase(&[Wish::Keep("apple")])?).await;
    first.assert_finished();
    let fork = fork(on, first.native.clone(), &[Wish::Keep("pear")]).await?;
    fork.assert_finished();
    assert!(fork.native.is_some() && fork.native != first.native, "{:?}", fork.native);
    let second = first.and_then(on, &[Wish::Keep("plum")]).await?;
    assert_eq!(second.native, first.native, "the first stays what it was");
    assert_eq!(second.recall(on).await?, ["apple", "plum"]);
    assert_eq!(fork.recall(on).await?, ["apple", "pear"]);
    fork.release(on).await;
    assert_eq!(Ended { turn: 7, ..fork }.recall(on).await?, ["apple", "pear"], "in a new process, too");
    Ok(())
}

pub async fn what_is_gone_cannot_be_forked(on: &dyn Candidate) -> StoryResult {
    can_fork(on)?;
    let ended = fork(on, Some(Native::new(on.unknown_id())), &[Wish::Keep("apple")]).await?;
    assert_eq!(ended.failure(), Some(Failure::Gone), "{:?}", ended.last);
    on.assert_nothing_left(&ended.tree);
    Ok(())
}

/// It remembers, and works in the new directory.
pub async fn a_conversation_that_moved_remembers(on: &dyn Candidate) -> StoryResult {
    if on.agent().abilities().memory == MemoryMove::Replay {
        return Err(Cannot::because("its memory does not follow"));
    }
    let text = on.dialect().phrase(&[Wish::Keep("apple")])?;
    let first = Talk::begin(on, None).await.whole_text(text).await;
    first.assert_finished();
    let there = on.elsewhere();
    let launch = |turn: u32, native: &Option<Native>| Launch {
        native: native.clone(),
        directory: there.clone(),
        ..Talk::launch(on, first.session, turn)
    };
    let recall = on.dialect().phrase(&[Wish::Recall])?;
    let moved = Talk::begin_with(on, launch(2, &first.native)).await.whole_text(recall).await;
    moved.assert_finished();
    assert_eq!(on.dialect().recalled(&moved.text), ["apple"]);
    let text = on.dialect().phrase(&[Wish::Directory])?;
    let ended = Talk::begin_with(on, launch(3, &moved.native)).await.whole_text(text).await;
    ended.assert_finished();
    let path = there.for_readers().to_owned();
    let says_so =
        |event: &AgentEvent| matches!(event, AgentEvent::ToolResult { output, .. } if output.contains(&path));
    assert!(ended.text.contains(&path) || ended.said.iter().any(says_so), "{:#?}", ended.said);
    Ok(())
}

/// Each model that it lists can be chosen, and is what is used; what is no model is used by nobody, and nothing else is
/// in its place.
pub async fn the_chosen_model_is_used_or_none(on: &dyn Candidate) -> StoryResult {
    if !on.agent().abilities().models {
        return Err(Cannot::because("no model can be chosen"));
    }
    let chosen = a_model(on).await?;
    let ended = with_model(on, &chosen).await?;
    ended.assert_finished();
    if let Some(used) = on.model_used() {
        // Some say beside the name by which way it is reached.
        let is_named = chosen.split(['|', '(', ')']).any(|part| part == used);
        let is_it = is_named || chosen.ends_with(&used) || used.contains(chosen.trim_end_matches("[1m]"));
        assert!(is_it, "{used} in place of {chosen}");
    }
    let ended = with_model(on, NO_MODEL).await?;
    on.note("an unknown model", &ended.outcome());
    match (ended.failure(), on.model_used()) {
        (Some(Failure::Refused), _) => {}
        (_, Some(used)) => assert!(NO_MODEL.ends_with(&used), "{used} in place of {NO_MODEL}"),
        (_, None) => panic!("nobody knows what was used: {:?}", ended.last),
    }
    Ok(())
}

/// One that it lists, other than the one that leaves the choice to the agent.
async fn a_model(on: &dyn Candidate) -> Result<String, Cannot> {
    let mut talk = Talk::ready(on).await;
    talk.hand(&[Wish::Keep("hello")]).await?;
    while !talk.next().await.is_last() {}
    let mut listed = talk.events.iter().filter_map(|event| match event {
        AgentEvent::About(about) if !about.models.is_empty() => Some(about.models.clone()),
        _ => None,
    });
    let models = listed.next_back().expect("it says that it lists its models");
    let mut fits = models.iter().map(|model| model.name.clone()).filter(|name| name != "default");
    Ok(fits.next_back().expect("there is one to choose"))
}

async fn with_model(on: &dyn Candidate, model: &str) -> Result<Ended, Cannot> {
    let text = on.dialect().phrase(&[Wish::Keep("apple")])?;
    let launch = Launch { model: Some(model.to_owned()), ..Talk::launch(on, on.session(), 1) };
    Ok(Talk::begin_with(on, launch).await.whole_text(text).await)
}

async fn fork(on: &dyn Candidate, native: Option<Native>, wishes: &[Wish<'_>]) -> Result<Ended, Cannot> {
    let text = on.dialect().phrase(wishes)?;
    let launch = Launch { native, fork: true, ..Talk::launch(on, on.session(), 1) };
    Ok(Talk::begin_with(on, launch).await.whole_text(text).await)
}

fn can_fork(on: &dyn Candidate) -> StoryResult {
    if on.agent().abilities().fork { Ok(()) } else { Err(Cannot::because("it has no forks")) }
}

/// Adds this word to whatever runs.
async fn steer(talk: &mut Talk<'_>, word: &str) -> Result<Steered, Cannot> {
    let text = talk.on.dialect().phrase(&[Wish::Keep(word)])?;
    // Agents that pass over what they have heard before need another id for each.
    let id =
        MessageId::from_bits(talk.launch.message.bits() ^ (1 << 64) ^ u128::from(word.as_bytes()[1]) << 72);
    let on = talk.on;
    Ok(wait(on, talk.running.steer(Message::new(id, text))).await.expect("it says whether it took them"))
}
