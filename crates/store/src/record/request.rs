//! The stored form of a request that waits in the inbox, and the words under which requests are known in the audit and beside
//! idempotency keys.

use super::approval::AnswerRecord;
use super::scope::{ChangeRecord, ScopeRecord, UndoFilesRecord};
use super::{Text, Unreadable, decode, encode};
use crate::{RememberedRule, Resolved};
use kernel::{
    ApprovalId, Chore, Epoch, MergeHow, MessageId, Remember, Request, RuleId, Scope, SessionId, Turn,
};
use serde::{Deserialize, Serialize};

/// The stored form of a request. It does not name the session, whose inbox it is in; an edit's words are a body, kept apart
/// under the request's id.
pub fn encode_request(request: &Request, resolved: &Resolved) -> Vec<u8> {
    encode(&RequestRecord::from((request, resolved)))
}

/// A request as the inbox of this session gives it to the keeper.
pub fn decode_request(session: SessionId, bytes: &[u8]) -> Result<(Request, Resolved), Unreadable> {
    decode::<RequestRecord>("request", bytes).map(|record| record.request_of(session))
}

/// The word under which a request is written into the audit.
pub fn request_word(request: &Request) -> &'static str {
    match request {
        Request::Edit { .. } => "edit",
        Request::Withdraw { .. } => "withdraw",
        Request::Hold { .. } => "hold",
        Request::Release { .. } => "release",
        Request::Stop { .. } => "stop",
        Request::Steer { .. } => "steer",
        Request::Interrupt { .. } => "interrupt_for",
        Request::Reorder { .. } => "reorder",
        Request::Answer { remember: None, .. } => "answer",
        Request::Answer { remember: Some(Remember::Session), .. } => "answer_for_session",
        Request::Answer { remember: Some(Remember::Always), .. } => "answer_always",
        Request::ChangeScope { .. } => "change_scope",
        Request::KeepScope { .. } => "keep_scope",
        Request::Undo { .. } => "undo",
        Request::Redo { .. } => "redo",
        Request::Chore { chore: Chore::Remove { .. }, .. } => "remove_worktree",
        Request::Chore { chore: Chore::Restore { .. }, .. } => "restore_worktree",
        Request::Chore { chore: Chore::Merge { how: MergeHow::Merge, .. }, .. } => "merge_worktree",
        Request::Chore { chore: Chore::Merge { how: MergeHow::Apply, .. }, .. } => "apply_worktree",
        Request::Chore { chore: Chore::EndBackground, .. } => "stop_background",
        Request::End { .. } => "end",
    }
}

/// The word under which its idempotency key is remembered: an answer is one, for however long it holds.
pub fn request_key_word(request: &Request) -> &'static str {
    match request {
        Request::Answer { .. } => "answer",
        other => request_word(other),
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum RequestRecord {
    Edit {
        message: Text<MessageId>,
        revision: u32,
    },
    Withdraw {
        message: Text<MessageId>,
    },
    Hold {
        message: Text<MessageId>,
    },
    /// With a scope to go back to, it is to be released there. Without one that was found, `there` says so.
    Release {
        message: Text<MessageId>,
        #[serde(default, skip_serializing_if = "is_false")]
        there: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        back_in: Option<ScopeRecord>,
    },
    Steer {
        message: Text<MessageId>,
    },
    Interrupt {
        message: Text<MessageId>,
    },
    Reorder {
        order: Vec<Text<MessageId>>,
    },
    Stop {
        message: Text<MessageId>,
    },
    /// The rule says for how long it holds. Without one that was made, `remember` says so.
    Answer {
        approval: Text<ApprovalId>,
        answer: AnswerRecord,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remember: Option<RememberRecord>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<RememberedRecord>,
    },
    Change {
        change: ChangeRecord,
        now: bool,
    },
    KeepScope {},
    Undo {
        turn: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        of: Option<u32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        files: Option<UndoFilesRecord>,
    },
    Redo {
        turn: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        of: Option<u32>,
    },
    RemoveWorktree {
        name: String,
        teardown: bool,
    },
    RestoreWorktree {
        name: String,
        reference: String,
    },
    MergeWorktree {
        name: String,
    },
    ApplyWorktree {
        name: String,
    },
    EndBackground {},
    End {},
}

fn is_false(flag: &bool) -> bool {
    !flag
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RememberRecord {
    Session,
    Always,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RememberedRecord {
    rule: Text<RuleId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    tool: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    directory: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<Text<SessionId>>,
}

impl From<Remember> for RememberRecord {
    fn from(remember: Remember) -> Self {
        match remember {
            Remember::Session => Self::Session,
            Remember::Always => Self::Always,
        }
    }
}

impl From<RememberRecord> for Remember {
    fn from(record: RememberRecord) -> Self {
        match record {
            RememberRecord::Session => Self::Session,
            RememberRecord::Always => Self::Always,
        }
    }
}

impl From<&RememberedRule> for RememberedRecord {
    fn from(rule: &RememberedRule) -> Self {
        let RememberedRule { rule, agent, tool, directory, session } = rule.clone();
        Self { rule: Text(rule), agent, tool, directory, session: session.map(Text) }
    }
}

impl From<RememberedRecord> for RememberedRule {
    fn from(record: RememberedRecord) -> Self {
        let RememberedRecord { rule, agent, tool, directory, session } = record;
        Self { rule: rule.0, agent, tool, directory, session: session.map(|session| session.0) }
    }
}

impl From<(&Request, &Resolved)> for RequestRecord {
    fn from((request, resolved): (&Request, &Resolved)) -> Self {
        let Resolved { written_for, rule } = resolved;
        match request {
            Request::Edit { message, revision } => {
                Self::Edit { message: Text(*message), revision: *revision }
            }
            Request::Withdraw { message } => Self::Withdraw { message: Text(*message) },
            Request::Hold { message } => Self::Hold { message: Text(*message) },
            Request::Release { message, there } => {
                let back_in = written_for.as_ref().filter(|_| *there).map(ScopeRecord::from);
                Self::Release { message: Text(*message), there: *there && back_in.is_none(), back_in }
            }
            Request::Steer { message } => Self::Steer { message: Text(*message) },
            Request::Interrupt { message } => Self::Interrupt { message: Text(*message) },
            Request::Reorder { order, session: _ } => {
                Self::Reorder { order: order.iter().copied().map(Text).collect() }
            }
            Request::Stop { message } => Self::Stop { message: Text(*message) },
            Request::Answer { approval, answer, remember } => Self::Answer {
                approval: Text(*approval),
                answer: answer.into(),
                remember: remember.filter(|_| rule.is_none()).map(RememberRecord::from),
                rule: rule.as_ref().map(RememberedRecord::from),
            },
            Request::ChangeScope { change, now, session: _ } => {
                Self::Change { change: change.into(), now: *now }
            }
            Request::KeepScope { session: _ } => Self::KeepScope {},
            Request::Undo { turn, under, files, session: _ } => {
                let files = UndoFilesRecord::of(files);
                Self::Undo { turn: turn.0, of: under.map(|epoch| epoch.0), files }
            }
            Request::Redo { turn, under, session: _ } => {
                Self::Redo { turn: turn.0, of: under.map(|epoch| epoch.0) }
            }
            Request::Chore { chore: Chore::Remove { name, teardown }, session: _ } => {
                Self::RemoveWorktree { name: name.clone(), teardown: *teardown }
            }
            Request::Chore { chore: Chore::Restore { name, reference }, session: _ } => {
                Self::RestoreWorktree { name: name.clone(), reference: reference.clone() }
            }
            Request::Chore { chore: Chore::Merge { name, how }, session: _ } => match how {
                MergeHow::Merge => Self::MergeWorktree { name: name.clone() },
                MergeHow::Apply => Self::ApplyWorktree { name: name.clone() },
            },
            Request::Chore { chore: Chore::EndBackground, session: _ } => Self::EndBackground {},
            Request::End { session: _ } => Self::End {},
        }
    }
}

impl RequestRecord {
    fn request_of(self, session: SessionId) -> (Request, Resolved) {
        let request = match self {
            Self::Edit { message, revision } => Request::Edit { message: message.0, revision },
            Self::Withdraw { message } => Request::Withdraw { message: message.0 },
            Self::Hold { message } => Request::Hold { message: message.0 },
            Self::Release { message, there, back_in } => {
                let request = Request::Release { message: message.0, there: there || back_in.is_some() };
                return (request, Resolved { written_for: back_in.map(Scope::from), rule: None });
            }
            Self::Steer { message } => Request::Steer { message: message.0 },
            Self::Interrupt { message } => Request::Interrupt { message: message.0 },
            Self::Reorder { order } => {
                Request::Reorder { session, order: order.into_iter().map(|m| m.0).collect() }
            }
            Self::Stop { message } => Request::Stop { message: message.0 },
            Self::Answer { approval, answer, remember, rule } => {
                let rule = rule.map(RememberedRule::from);
                let remember = remember.map(Remember::from).or(rule.as_ref().map(RememberedRule::remember));
                let request = Request::Answer { approval: approval.0, answer: answer.into(), remember };
                return (request, Resolved { written_for: None, rule });
            }
            Self::Change { change, now } => Request::ChangeScope { session, change: change.into(), now },
            Self::KeepScope {} => Request::KeepScope { session },
            Self::Undo { turn, of, files } => {
                let files = UndoFilesRecord::files(files);
                Request::Undo { session, turn: Turn(turn), under: of.map(Epoch), files }
            }
            Self::Redo { turn, of } => Request::Redo { session, turn: Turn(turn), under: of.map(Epoch) },
            Self::RemoveWorktree { name, teardown } => {
                Request::Chore { session, chore: Chore::Remove { name, teardown } }
            }
            Self::RestoreWorktree { name, reference } => {
                Request::Chore { session, chore: Chore::Restore { name, reference } }
            }
            Self::MergeWorktree { name } => {
                Request::Chore { session, chore: Chore::Merge { name, how: MergeHow::Merge } }
            }
            Self::ApplyWorktree { name } => {
                Request::Chore { session, chore: Chore::Merge { name, how: MergeHow::Apply } }
            }
            Self::EndBackground {} => Request::Chore { session, chore: Chore::EndBackground },
            Self::End {} => Request::End { session },
        };
        (request, Resolved::default())
    }
}
