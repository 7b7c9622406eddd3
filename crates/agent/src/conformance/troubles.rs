//! Failures are told apart by what can be done about it, and costs nobody's memory.

use kernel::Failure;

use super::talk::{goes_on_elsewhere, turn, turn_of};
use super::{Candidate, StoryResult, Weather, Wish};

pub async fn failures_keep_their_kinds(on: &dyn Candidate) -> StoryResult {
    on.dialect().phrase(&[Wish::Fail(Failure::Transient)])?;
    let first = turn(on, &[Wish::Keep("apple")]).await?;
    for failure in [Failure::Transient, Failure::Busy, Failure::Refused] {
        let failed = first.and_then(on, &[Wish::Keep("plum"), Wish::Fail(failure)]).await?;
        assert_eq!(failed.failure(), Some(failure));
        on.assert_nothing_left(&failed.tree);
    }
    assert_eq!(first.recall(on).await?, ["apple"], "nothing of this was acted on");
    Ok(())
}

pub async fn told_starts_fail_before_ready(on: &dyn Candidate) -> StoryResult {
    let first = turn(on, &[Wish::Keep("apple"), Wish::FailStarts { transient: 2, busy: 1 }]).await?;
    first.release(on).await;
    for failure in [Failure::Transient, Failure::Transient, Failure::Busy] {
        let mut talk = first.go_on(on).await;
        let last = talk.next().await;
        let failed = talk.ended(last);
        assert_eq!(failed.failure(), Some(failure));
        on.assert_nothing_left(&failed.tree);
    }
    assert_eq!(first.recall(on).await?, ["apple"]);
    Ok(())
}

/// The model cannot be reached, does not let us in, has too much to do, or breaks off: never Gone, never finished, and
/// never another conversation.
pub async fn bad_weather_is_never_the_end(on: &dyn Candidate) -> StoryResult {
    let mut ended = turn(on, &[Wish::Keep("apple")]).await?;
    for weather in Weather::ALL {
        if on.agent().abilities().forgets && ended.failure().is_some() {
            // It does not go on with a conversation whose process is gone.
            ended = turn(on, &[Wish::Keep("apple")]).await?;
        }
        let native = ended.native.clone();
        let text = on.storm(weather, &[Wish::Keep("plum")])?;
        ended = ended.go_on(on).await.whole_text(text).await;
        on.calm();
        on.note(weather.fact(), &ended.outcome());
        assert_eq!(ended.native, native, "{weather:?}");
        if on.hides(weather) {
            ended.assert_finished();
            continue;
        }
        assert_eq!(ended.failure(), Some(weather.failure()), "{weather:?}: {:?}", ended.last);
        on.assert_nothing_left(&ended.tree);
    }
    ended.release(on).await;
    ended.assert_still_known(on, "apple").await
}

/// Whatever an agent does about a conversation that another of its processes has open: it is not gone.
pub async fn a_conversation_that_another_process_has_is_not_gone(on: &dyn Candidate) -> StoryResult {
    goes_on_elsewhere(on)?;
    let first = turn(on, &[Wish::Keep("apple")]).await?;
    let mut holder = first.go_on(on).await;
    holder.be_ready().await;
    let other = turn_of(on, first.native.clone(), &[Wish::Recall]).await?;
    on.note("a conversation that another process has", &other.outcome());
    assert!(!matches!(other.failure(), Some(Failure::Gone | Failure::Refused)), "{:?}", other.last);
    let stopped = holder.stop(0).await;
    let recalled = stopped.recall(on).await?;
    assert_eq!(recalled.first().map(String::as_str), Some("apple"), "{recalled:?}");
    Ok(())
}
