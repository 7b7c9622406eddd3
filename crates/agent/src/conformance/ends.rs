//! However an attempt ends, nothing of it is left, and the conversation is as it was.

use kernel::Failure;

use super::talk::{GRACE_MS, LONG_GRACE_MS, Talk, turn, wait};
use super::{Blow, Candidate, StoryResult, Wish};
use crate::{AgentEvent, TreeName};

/// The number of children that a turn leaves in these stories.
const CHILDREN: u32 = 3;

pub async fn stop_mid_turn_leaves_nothing(on: &dyn Candidate) -> StoryResult {
    let first = turn(on, &[Wish::Keep("apple")]).await?;
    let mut talk = first.go_on(on).await;
    talk.be_ready().await;
    talk.hand(&[Wish::Keep("pear"), Wish::Dawdle]).await?;
    talk.until_it_speaks().await;
    let stopped = talk.stop(LONG_GRACE_MS).await;
    on.note("stopped in the middle, it ends", &stopped.outcome());
    assert_ne!(stopped.failure(), Some(Failure::Gone), "{:?}", stopped.last);
    stopped.assert_still_known(on, "apple").await
}

pub async fn stop_before_the_message_leaves_nothing(on: &dyn Candidate) -> StoryResult {
    let mut talk = Talk::begin(on, None).await;
    assert!(wait(on, talk.running.stop(0)).await.gone);
    on.assert_nothing_left(&talk.launch.tree);
    Ok(())
}

pub async fn stop_twice_is_fine(on: &dyn Candidate) -> StoryResult {
    let mut talk = Talk::ready(on).await;
    talk.hand(&[Wish::Dawdle]).await?;
    let first = wait(on, talk.running.stop(GRACE_MS)).await;
    assert_eq!(wait(on, talk.running.stop(GRACE_MS)).await, first);
    Ok(())
}

pub async fn stop_after_the_end_is_fine(on: &dyn Candidate) -> StoryResult {
    let mut talk = Talk::ready(on).await;
    talk.hand(&[Wish::Keep("hello")]).await?;
    while !talk.next().await.is_last() {}
    assert!(wait(on, talk.running.stop(GRACE_MS)).await.gone);
    assert!(matches!(talk.next().await, AgentEvent::Died { .. }), "it is over");
    Ok(())
}

/// The process goes in the middle of its words; they are kept, and the conversation goes on in another one.
pub async fn a_crash_is_a_death(on: &dyn Candidate) -> StoryResult {
    let first = turn(on, &[Wish::Keep("apple")]).await?;
    let mut talk = first.go_on(on).await;
    talk.be_ready().await;
    talk.hand(&[Wish::Keep("pear"), Wish::Crash]).await?;
    talk.until_it_speaks().await;
    on.strike(&talk.launch.tree, Blow::Kill)?;
    let crashed = talk.hear_out().await;
    assert!(
        matches!(&crashed.last, AgentEvent::Died { verified, .. } if verified.gone),
        "{:?}",
        crashed.last
    );
    on.assert_nothing_left(&crashed.tree);
    crashed.assert_still_known(on, "apple").await
}

pub async fn a_hanging_agent_can_be_stopped(on: &dyn Candidate) -> StoryResult {
    let mut talk = Talk::ready(on).await;
    talk.hand(&[Wish::Hang]).await?;
    let said_first = on.dialect().answer(&[Wish::Hang], 1);
    talk.until(|talk| talk.text.starts_with(&said_first)).await;
    on.strike(&talk.launch.tree, Blow::Freeze)?;
    let verified = wait(on, talk.running.stop(GRACE_MS)).await;
    assert!(verified.gone && verified.killed > 0, "{verified:?}");
    on.assert_nothing_left(&talk.launch.tree);
    Ok(())
}

pub async fn the_leftovers_of_a_dropped_attempt_can_be_ended(on: &dyn Candidate) -> StoryResult {
    let mut talk = Talk::ready(on).await;
    talk.hand(&[Wish::Dawdle]).await?;
    talk.until_it_speaks().await;
    let tree = talk.launch.tree.clone();
    drop(talk);
    wait(on, on.agent().end_leftovers(tree.clone())).await.expect("what is left can be ended");
    on.assert_nothing_left(&tree);
    Ok(())
}

pub async fn ending_leftovers_twice_or_none_is_fine(on: &dyn Candidate) -> StoryResult {
    let ended = turn(on, &[Wish::Keep("hello")]).await?;
    let never = TreeName::of(on.session());
    for tree in [&ended.tree, &ended.tree, &never, &never] {
        let ended = wait(on, on.agent().end_leftovers(tree.clone())).await.expect("nothing hinders it");
        assert_eq!(ended.killed, 0);
        on.assert_nothing_left(tree);
    }
    Ok(())
}

pub async fn a_tree_runs_once_at_a_time(on: &dyn Candidate) -> StoryResult {
    let mut talk = Talk::ready(on).await;
    let again = wait(on, on.agent().start(talk.launch.clone())).await;
    assert_eq!(again.err().map(|trouble| trouble.failure), Some(Failure::Busy));
    talk.hand(&[Wish::Keep("hello")]).await?;
    let ended = talk.hear_out().await;
    assert_eq!(ended.text, on.dialect().answer(&[Wish::Keep("hello")], 1), "the first one did not notice");
    Ok(())
}

/// Finished means that nothing of the turn runs on, not even what has left its group and is deaf to SIGTERM.
pub async fn what_a_turn_leaves_running_is_gone_with_it(on: &dyn Candidate) -> StoryResult {
    let ended = turn(on, &[Wish::Children(CHILDREN)]).await?;
    ended.assert_finished();
    let says_so = |event: &AgentEvent| matches!(event, AgentEvent::ToolResult { output, .. } if output.contains("started"));
    let are_there = ended.text.contains("started") || ended.said.iter().any(says_so);
    assert!(are_there, "there were no children: {:#?}", ended.said);
    assert_eq!(on.children(&ended.tree), 0);
    ended.release(on).await;
    Ok(())
}

pub async fn what_a_turn_started_is_gone_after_a_stop(on: &dyn Candidate) -> StoryResult {
    let talk = with_children(on).await?;
    talk.stop(GRACE_MS).await;
    Ok(())
}

pub async fn what_a_turn_started_is_gone_after_a_kill(on: &dyn Candidate) -> StoryResult {
    let talk = with_children(on).await?;
    on.strike(&talk.launch.tree, Blow::Kill)?;
    let killed = talk.hear_out().await;
    assert!(
        matches!(&killed.last, AgentEvent::Died { verified, .. } if verified.gone && verified.killed >= CHILDREN),
        "{:?}",
        killed.last
    );
    on.assert_nothing_left(&killed.tree);
    Ok(())
}

/// A turn in the middle, whose children are there.
async fn with_children(on: &dyn Candidate) -> Result<Talk<'_>, super::Cannot> {
    let text = on.dialect().phrase(&[Wish::ChildrenAndDawdle(CHILDREN)])?;
    let mut talk = Talk::ready(on).await;
    talk.hand_text(text).await;
    wait(on, async {
        while on.children(&talk.launch.tree) < CHILDREN as usize {
            if let Some(event) = super::talk::soon(20, talk.running.next()).await {
                assert!(!event.is_last(), "{event:?}");
                talk.heed(&event);
                talk.allow(&event).await;
            }
        }
    })
    .await;
    Ok(talk)
}
