//! The words of a message as they come in, with what goes along: whether they are well made, and which agents do not take them.

use super::WayIn;
use crate::attached::check_all;
use crate::{
    AttachedFile, Granted, InvalidError, MESSAGE_TEXT_BYTES_MAX, MessagePart, PARTS_MAX, Trace, WayInError,
};
use kernel::{MessageId, Principal, Request};
use store::UnfitAgent;

/// The new words of an edit.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Wording<'a> {
    pub(super) parts: &'a [MessagePart],
    /// None if what goes along with the message stays.
    pub(super) attachments: Option<&'a [AttachedFile]>,
}

impl WayIn {
    /// Asks for other words in a waiting message; `revision` is the one the editor saw. What goes along with it stays.
    pub async fn edit(
        &self,
        by: &Principal,
        message: MessageId,
        revision: u32,
        parts: &[MessagePart],
        trace: Trace,
    ) -> Result<Granted, WayInError> {
        let wording = Wording { parts, attachments: None };
        self.ask_with(by, Request::Edit { message, revision }, wording, trace).await
    }

    /// The same, with other images and files, or none, in place of those that went along.
    pub async fn rewrite(
        &self,
        by: &Principal,
        message: MessageId,
        revision: u32,
        parts: &[MessagePart],
        attachments: &[AttachedFile],
        trace: Trace,
    ) -> Result<Granted, WayInError> {
        let wording = Wording { parts, attachments: Some(attachments) };
        self.ask_with(by, Request::Edit { message, revision }, wording, trace).await
    }

    /// The agents that do not take all of this.
    pub(super) fn unfit_agents(&self, attachments: &[AttachedFile]) -> Vec<UnfitAgent> {
        let views: Vec<_> = attachments.iter().map(|each| each.view()).collect();
        let unfit = self.roster.agents().iter().filter_map(|(name, agent)| {
            let can = agent.abilities();
            let attachment = views.iter().find(|view| !view.is_taken(&can))?.to_string();
            Some(UnfitAgent { agent: name.clone(), attachment })
        });
        unfit.collect()
    }
}

pub(super) fn check_parts(parts: &[MessagePart], attachments: &[AttachedFile]) -> Result<(), InvalidError> {
    let invalid = |reason: String| Err(InvalidError { field: "parts", reason });
    if parts.len() + attachments.len() > PARTS_MAX {
        return invalid(format!("more than {PARTS_MAX} parts"));
    }
    check_all(attachments)?;
    let words: usize = parts.iter().map(|MessagePart::Text { text }| text.len()).sum();
    let files: usize = attachments.iter().map(|each| each.words_len()).sum();
    // The agent reads them as one text, with a line's end between two.
    if words + parts.len().saturating_sub(1) + files > MESSAGE_TEXT_BYTES_MAX {
        return invalid(format!("more than {MESSAGE_TEXT_BYTES_MAX} bytes of text"));
    }
    if attachments.is_empty() && parts.iter().all(|MessagePart::Text { text }| text.trim().is_empty()) {
        return invalid("there are no words in it".to_owned());
    }
    Ok(())
}
