//! A conversation remembers what it was told, and nothing else. What cannot be gone on with is told apart from the rest.

use kernel::{Failure, Native};

use super::talk::{Ended, goes_on_elsewhere, turn, turn_of, wait};
use super::{Candidate, Cannot, StoryResult, Wish};
use crate::AgentEvent;

/// The most tries of a story to see a process kept.
const KEPT_TRIES_MAX: u32 = 5;

/// In the same process, if it is kept, and in a new one.
pub async fn a_resumed_conversation_remembers(on: &dyn Candidate) -> StoryResult {
    let first = turn(on, &[Wish::Keep("apple")]).await?;
    let second = first.and_then(on, &[Wish::Keep("pear")]).await?;
    assert_eq!(second.text, on.dialect().answer(&[Wish::Keep("pear")], 2));
    assert_eq!(first.native, second.native);
    assert_eq!(second.recall(on).await?, ["apple", "pear"]);
    second.release(on).await;
    let third = Ended { turn: 3, ..second };
    if let Err(why) = goes_on_elsewhere(on) {
        third.assert_still_known(on, "apple").await?;
        return Err(why);
    }
    assert_eq!(third.recall(on).await?, ["apple", "pear"]);
    Ok(())
}

pub async fn a_new_conversation_remembers_nothing(on: &dyn Candidate) -> StoryResult {
    let first = turn(on, &[Wish::Keep("apple")]).await?;
    let other = turn(on, &[Wish::Recall]).await?;
    assert_eq!(on.dialect().recalled(&other.text), [] as [&str; 0]);
    assert_ne!(first.native, other.native);
    Ok(())
}

/// One after the other, and at the same time.
pub async fn two_conversations_in_one_directory_never_mix(on: &dyn Candidate) -> StoryResult {
    let mut apple = turn(on, &[Wish::Keep("apple0")]).await?;
    let mut pear = turn(on, &[Wish::Keep("pear0")]).await?;
    for number in 1..3 {
        let (a, p) = (format!("apple{number}"), format!("pear{number}"));
        let (mut first, mut second) = (apple.go_on(on).await, pear.go_on(on).await);
        first.be_ready().await;
        second.be_ready().await;
        first.hand(&[Wish::Keep(&a)]).await?;
        second.hand(&[Wish::Keep(&p)]).await?;
        (apple, pear) = tokio::join!(first.hear_out(), second.hear_out());
        assert_eq!(apple.text, on.dialect().answer(&[Wish::Keep(&a)], number + 1));
        assert_eq!(pear.text, on.dialect().answer(&[Wish::Keep(&p)], number + 1));
    }
    assert_eq!(apple.recall(on).await?, ["apple0", "apple1", "apple2"]);
    assert_eq!(pear.recall(on).await?, ["pear0", "pear1", "pear2"]);
    assert_ne!(apple.native, pear.native);
    Ok(())
}

/// Warm or cold, the second turn is the same turn.
pub async fn a_kept_process_answers_like_a_new_one(on: &dyn Candidate) -> StoryResult {
    on.note("its process is kept between turns", if on.agent().setup().is_kept { "yes" } else { "no" });
    if !on.agent().setup().is_kept {
        return Err(Cannot::because("no process is kept"));
    }
    goes_on_elsewhere(on)?;
    let first = kept(on).await?;
    let warm = first.and_then(on, &[Wish::Words(3)]).await?;
    let first = turn(on, &[Wish::Keep("apple")]).await?;
    first.release(on).await;
    let cold = first.and_then(on, &[Wish::Words(3)]).await?;
    warm.assert_finished();
    assert_eq!((kinds(&warm.said), &warm.text), (kinds(&cold.said), &cold.text));
    assert_eq!(cold.native, first.native);
    Ok(())
}

/// The first turn of a conversation whose process is there afterwards. A busy machine may take so long to count that
/// one is not kept.
async fn kept(on: &dyn Candidate) -> Result<Ended, Cannot> {
    for _ in 0..KEPT_TRIES_MAX {
        let first = turn(on, &[Wish::Keep("apple")]).await?;
        if on.left(&first.tree) > 0 {
            return Ok(first);
        }
    }
    panic!("it says that its process is kept, and it is not");
}

/// The kinds of things that were said, in order. Words in a row count once: where they are cut is chance. What an agent
/// says about itself is said when it comes up.
fn kinds(said: &[AgentEvent]) -> Vec<String> {
    let name = |event: &AgentEvent| {
        let words = format!("{event:?}");
        words.split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default().to_owned()
    };
    // A title is told when the agent has thought of one, in whichever turn that is.
    let is_told = |event: &&AgentEvent| {
        !matches!(
            event,
            AgentEvent::About(_)
                | AgentEvent::Native(_)
                | AgentEvent::Notice { .. }
                | AgentEvent::Warned { .. }
                | AgentEvent::Titled { .. }
        )
    };
    let mut kinds: Vec<String> = said.iter().filter(is_told).map(name).collect();
    kinds.dedup();
    kinds
}

pub async fn failing_after_acting_is_remembered(on: &dyn Candidate) -> StoryResult {
    let failed = turn(on, &[Wish::Keep("apple"), Wish::FailAfter]).await?;
    assert_eq!(failed.failure(), Some(Failure::Transient));
    assert_eq!(failed.recall(on).await?, ["apple"]);
    Ok(())
}

pub async fn a_new_id_is_reported(on: &dyn Candidate) -> StoryResult {
    on.dialect().phrase(&[Wish::NewId])?;
    let first = turn(on, &[Wish::Keep("apple")]).await?;
    let second = first.and_then(on, &[Wish::Keep("pear"), Wish::NewId]).await?;
    second.assert_finished();
    assert_ne!(first.native, second.native);
    assert!(matches!(&second.last, AgentEvent::Finished { native, .. } if *native == second.native));
    assert_eq!(second.recall(on).await?, ["apple", "pear"]);
    assert_eq!(first.recall(on).await?, ["apple"], "the old id keeps what it knew");
    Ok(())
}

/// An id the agent could have made, and some that no agent makes. None of them starts anything new.
pub async fn an_unknown_conversation_is_gone(on: &dyn Candidate) -> StoryResult {
    let unknown = unknown(on, Native::new(on.unknown_id())).await?;
    on.note("an unknown conversation", &unknown.outcome());
    assert_eq!(unknown.failure(), Some(Failure::Gone), "{:?}", unknown.last);
    let mut outcomes = Vec::new();
    for id in ["../../etc/passwd", "", "--help"] {
        let ended = self::unknown(on, Native::new(id)).await?;
        assert!(ended.failure().is_some(), "{id:?}: {:?}", ended.last);
        outcomes.push(ended.outcome());
    }
    outcomes.dedup();
    on.note("an id that cannot be one", &outcomes.join(", "));
    Ok(())
}

async fn unknown(on: &dyn Candidate, native: Native) -> Result<Ended, Cannot> {
    let ended = turn_of(on, Some(native), &[Wish::Keep("apple")]).await?;
    on.assert_nothing_left(&ended.tree);
    Ok(ended)
}

pub async fn a_conversation_that_is_gone_stays_gone(on: &dyn Candidate) -> StoryResult {
    on.dialect().phrase(&[Wish::Fail(Failure::Gone)])?;
    let first = turn(on, &[Wish::Keep("apple")]).await?;
    let gone = first.and_then(on, &[Wish::Fail(Failure::Gone)]).await?;
    assert_eq!(gone.failure(), Some(Failure::Gone));
    assert_eq!(gone.and_then(on, &[Wish::Keep("pear")]).await?.failure(), Some(Failure::Gone));
    Ok(())
}

pub async fn a_conversation_that_was_deleted_is_gone(on: &dyn Candidate) -> StoryResult {
    let first = turn(on, &[Wish::Keep("apple")]).await?;
    wait(on, on.agent().close()).await;
    on.lose(first.native.as_ref().expect("it has an id"))?;
    for _ in 0..2 {
        let gone = first.and_then(on, &[Wish::Keep("pear")]).await?;
        on.note("a deleted conversation", &gone.outcome());
        assert_eq!(gone.failure(), Some(Failure::Gone), "{:?}", gone.last);
        on.assert_nothing_left(&gone.tree);
    }
    Ok(())
}

/// The agent may just look in the wrong place.
pub async fn an_unknown_conversation_of_another_place_is_not_gone(on: &dyn Candidate) -> StoryResult {
    goes_on_elsewhere(on)?;
    let first = turn(on, &[Wish::Keep("apple")]).await?;
    let here = &first.native.as_ref().expect("it has an id").place;
    if here.is_empty() {
        return Err(Cannot::because("its ids hold everywhere"));
    }
    let elsewhere = Native::new(on.unknown_id()).at(format!("{here}/elsewhere"));
    let ended = unknown(on, elsewhere).await?;
    on.note("an unknown conversation of another place", &ended.outcome());
    assert_eq!(ended.failure(), Some(Failure::Refused), "{:?}", ended.last);
    Ok(())
}

/// It goes on, or says that it cannot; it is never taken for gone, and nothing new takes its place.
pub async fn a_torn_record_is_not_gone(on: &dyn Candidate) -> StoryResult {
    goes_on_elsewhere(on)?;
    let first = turn(on, &[Wish::Keep("apple")]).await?;
    let second = first.and_then(on, &[Wish::Keep("pear")]).await?;
    wait(on, on.agent().close()).await;
    on.tear(second.native.as_ref().expect("it has an id"))?;
    let ended = second.and_then(on, &[Wish::Recall]).await?;
    assert_eq!(ended.native, first.native);
    if matches!(ended.last, AgentEvent::Finished { .. }) {
        assert_eq!(on.dialect().recalled(&ended.text).first().map(String::as_str), Some("apple"));
    }
    assert_ne!(ended.failure(), Some(Failure::Gone), "{:?}", ended.last);
    on.note("a torn record of a conversation", &ended.outcome());
    Ok(())
}
