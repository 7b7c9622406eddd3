//! The posts that the chat service got in the end, and what the outbox says of them.

use super::{Findings, Scene};
use crate::doors::ChatPost;
use std::collections::BTreeMap;
use store::{Outgoing, OutgoingState};

pub(super) fn check(scene: &Scene<'_>, findings: &mut Findings) {
    let Some(chat) = &scene.town.chat else { return };
    let posts = chat.posts();
    nothing_arrives_twice(&posts, findings);
    everything_arrives_in_order(&posts, findings);
    nothing_goes_astray(scene, &posts, findings);
    for row in &scene.store.outbox {
        let arrived: Vec<_> = posts.iter().filter(|post| post.outgoing == row.outgoing).collect();
        stands_as_it_says(scene, row, &arrived, chat.can_be_asked, findings);
    }
}

fn nothing_arrives_twice(posts: &[ChatPost], findings: &mut Findings) {
    let mut times: BTreeMap<u64, u32> = BTreeMap::new();
    posts.iter().for_each(|post| *times.entry(post.outgoing).or_default() += 1);
    let twice = times.iter().find(|(_, times)| **times > 1);
    findings.must(twice.is_none(), "a reply is delivered at most once", || format!("{twice:?} in {posts:?}"));
}

/// Nobody settles anything by hand here, so nothing that was left behind comes later.
fn everything_arrives_in_order(posts: &[ChatPost], findings: &mut Findings) {
    let mut last = BTreeMap::new();
    for post in posts {
        let before = last.insert(&post.to, post.outgoing);
        let in_order = before.is_none_or(|before| before <= post.outgoing);
        findings.must(in_order, "replies arrive in order", || format!("{post:?} after {before:?}"));
    }
}

fn nothing_goes_astray(scene: &Scene<'_>, posts: &[ChatPost], findings: &mut Findings) {
    for post in posts {
        let row = scene.store.outbox.iter().find(|row| row.outgoing == post.outgoing);
        let fits = row.is_some_and(|row| (&row.to, row.message) == (&post.to, post.message));
        findings.must(fits, "a reply arrives where it was sent to", || format!("{post:?} of {row:?}"));
    }
}

fn stands_as_it_says(
    scene: &Scene<'_>,
    row: &Outgoing,
    arrived: &[&ChatPost],
    can_be_asked: bool,
    findings: &mut Findings,
) {
    let is_so = match row.state {
        OutgoingState::Sent => arrived.iter().any(|post| Some(&post.id) == row.service_id.as_ref()),
        OutgoingState::Parked => arrived.is_empty() && row.reason.is_some(),
        // Whoever can be asked knows in the end.
        OutgoingState::Unknown => row.reason.is_some() && (!can_be_asked || !scene.is_quiet),
        OutgoingState::Waiting | OutgoingState::Sending => !scene.is_quiet,
    };
    findings.must(is_so, "the outbox says what became of a reply", || format!("{row:?} and {arrived:?}"));
}
