//! The words of an agent arrive whole and in order, whatever it says.

use std::time::Duration;

use kernel::Failure;

use super::talk::{Talk, soon, turn, wait};
use super::{Candidate, StoryResult, Wish};
use crate::{About, AgentEvent, Message};

/// Nothing of the message is needed for the agent to come up.
pub async fn it_is_ready_before_it_is_handed_anything(on: &dyn Candidate) -> StoryResult {
    let mut talk = Talk::ready(on).await;
    on.note("its id is known", if talk.native.is_some() { "at the start" } else { "in the first turn" });
    talk.hand(&[Wish::Keep("hello")]).await?;
    let ended = talk.hear_out().await;
    assert_eq!(ended.text, on.dialect().answer(&[Wish::Keep("hello")], 1));
    assert!(ended.native.is_some(), "a conversation that nobody can go on with");
    Ok(())
}

pub async fn it_finishes_with_its_whole_answer(on: &dyn Candidate) -> StoryResult {
    let wishes = [Wish::Keep("one"), Wish::Words(30)];
    let ended = turn(on, &wishes).await?;
    ended.assert_finished();
    assert_eq!(ended.text, on.dialect().answer(&wishes, 1));
    assert!(matches!(&ended.last, AgentEvent::Finished { native, .. } if *native == ended.native));
    let is_kept = on.left(&ended.tree) > 0;
    assert!(on.agent().setup().is_kept || !is_kept, "it is kept, and says that it is not");
    ended.release(on).await;
    Ok(())
}

pub async fn a_flood_arrives_complete(on: &dyn Candidate) -> StoryResult {
    let flooded = turn(on, &[Wish::Flood]).await?;
    flooded.assert_finished();
    assert!(flooded.text == on.dialect().answer(&[Wish::Flood], 1), "in order, nothing twice");
    Ok(())
}

/// A future of `next` that is polled once and dropped, over and over, loses no word.
pub async fn next_can_be_dropped(on: &dyn Candidate) -> StoryResult {
    let wishes = [[Wish::Keep("hello"), Wish::Stream(300)], [Wish::Keep("there"), Wish::Flood]];
    let mut talk = Talk::ready(on).await;
    for (number, wishes) in (1..).zip(wishes) {
        talk.hand(&wishes).await?;
        let last = wait(on, to_the_end_in_glances(&mut talk)).await;
        let ended = talk.ended(last);
        ended.assert_finished();
        assert!(ended.text == on.dialect().answer(&wishes, number), "{} bytes", ended.text.len());
        talk = ended.go_on(on).await;
        talk.be_ready().await;
    }
    talk.stop(0).await;
    Ok(())
}

async fn to_the_end_in_glances(talk: &mut Talk<'_>) -> AgentEvent {
    loop {
        match soon(0, talk.running.next()).await {
            Some(event) => {
                talk.heed(&event);
                if event.is_last() {
                    return event;
                }
            }
            None => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    }
}

pub async fn a_message_too_long_is_refused(on: &dyn Candidate) -> StoryResult {
    let mut talk = Talk::ready(on).await;
    let text = "x".repeat(crate::MESSAGE_BYTES_MAX + 1);
    let refused = talk.running.hand(Message::new(talk.launch.message, text)).await;
    assert_eq!(refused.err().map(|trouble| trouble.failure), Some(Failure::Refused));
    talk.stop(0).await;
    Ok(())
}

/// Where it acts is asked of the world, not of the agent. And each tool that was called has come to something, and
/// nothing in a turn as ordinary as this is unknown to us.
pub async fn it_acts_in_the_scopes_directory(on: &dyn Candidate) -> StoryResult {
    let ended = turn(on, &[Wish::Directory]).await?;
    ended.assert_finished();
    let directory = on.directory().for_readers().to_owned();
    let in_result = |event: &AgentEvent| matches!(event, AgentEvent::ToolResult { output, .. } if output.contains(&directory));
    let said = &ended.said;
    assert!(ended.text.contains(&directory) || said.iter().any(in_result), "{:?} in {said:?}", ended.text);
    for event in said {
        if let AgentEvent::ToolCall { call, .. } = event {
            let ends =
                |event: &&AgentEvent| matches!(event, AgentEvent::ToolResult { call: of, .. } if of == call);
            assert_eq!(said.iter().filter(ends).count(), 1, "{call} in {said:#?}");
        }
        assert!(!matches!(event, AgentEvent::Other { .. }), "{event:?}");
    }
    Ok(())
}

pub async fn it_says_what_a_turn_costs(on: &dyn Candidate) -> StoryResult {
    let first = turn(on, &[Wish::Keep("hello")]).await?;
    let second = first.and_then(on, &[Wish::Words(30)]).await?;
    for ended in [&first, &second] {
        let usages = ended.said.iter().filter_map(|event| match event {
            AgentEvent::Usage(usage) => Some(*usage),
            _ => None,
        });
        let (input, output) =
            usages.fold((0, 0), |sum, usage| (sum.0 + usage.input_tokens, sum.1 + usage.output_tokens));
        assert_eq!(
            input > 0 && output > 0,
            on.agent().abilities().usage,
            "{input} {output} {:#?}",
            ended.said
        );
    }
    Ok(())
}

pub async fn it_lists_what_it_says_it_lists(on: &dyn Candidate) -> StoryResult {
    let mut talk = Talk::ready(on).await;
    let abilities = on.agent().abilities();
    // Commands are listed before anybody says anything: what is said may be one.
    let lists = |event: &AgentEvent| matches!(event, AgentEvent::About(about) if !about.commands.is_empty());
    while abilities.commands && !talk.events.iter().any(lists) {
        talk.next().await;
    }
    talk.hand(&[Wish::Keep("hello")]).await?;
    while !talk.next().await.is_last() {}
    let abouts = talk.events.iter().filter_map(|event| match event {
        AgentEvent::About(about) => Some(about.as_ref().clone()),
        _ => None,
    });
    // Each says only what has changed.
    let about = abouts.fold(About::default(), |known, more| About {
        commands: if more.commands.is_empty() { known.commands } else { more.commands },
        models: if more.models.is_empty() { known.models } else { more.models },
        modes: if more.modes.is_empty() { known.modes } else { more.modes },
        ..About::default()
    });
    let listed = (!about.commands.is_empty(), !about.models.is_empty(), !about.modes.is_empty());
    assert_eq!(listed, (abilities.commands, abilities.models, abilities.modes), "{about:#?}");
    Ok(())
}
