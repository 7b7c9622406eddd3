//! The stored form of scopes, of what is wanted of them, and of errands.

use super::Text;
use kernel::{
    Change, Epoch, Errand, KeptWhy, MessageId, NewWorktree, Origin, PersonId, Scope, SessionId, Setting,
    Turn, UndoFiles, What, Worktree,
};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScopeRecord {
    directory: String,
    agent: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mode: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    worktree: Option<WorktreeRecord>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WorktreeRecord {
    name: String,
    home: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OriginRecord {
    session: Text<SessionId>,
    turn: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ErrandRecord {
    epoch: u32,
    number: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewWorktreeRecord {
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum WhatRecord {
    Enter(NewWorktreeRecord),
    Undo {
        turn: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        files: Option<UndoFilesRecord>,
    },
    Redo {
        turn: u32,
    },
}

/// The files that an undo is about; nothing is stored for those that are certain.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum UndoFilesRecord {
    All,
    Only(Vec<String>),
}

impl UndoFilesRecord {
    pub(super) fn of(files: &UndoFiles) -> Option<Self> {
        match files {
            UndoFiles::Certain => None,
            UndoFiles::All => Some(Self::All),
            UndoFiles::Only(names) => Some(Self::Only(names.clone())),
        }
    }

    pub(super) fn files(record: Option<Self>) -> UndoFiles {
        match record {
            None => UndoFiles::Certain,
            Some(Self::All) => UndoFiles::All,
            Some(Self::Only(names)) => UndoFiles::Only(names),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum SettingRecord {
    Keep,
    Default,
    To(String),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum ChangeRecord {
    Enter(NewWorktreeRecord),
    Exit {},
    Set {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        model: SettingRecord,
        mode: SettingRecord,
    },
    Relink {
        directory: String,
    },
    Back {
        scope: ScopeRecord,
        message: Text<MessageId>,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum KeptRecord {
    Asked { by: Text<PersonId> },
    Failed {},
    Moot {},
}

impl From<&Scope> for ScopeRecord {
    fn from(scope: &Scope) -> Self {
        let Scope { directory, agent, model, mode, worktree } = scope.clone();
        let worktree = worktree.map(|Worktree { name, home, branch }| {
            let home = home.for_readers().to_owned();
            WorktreeRecord { name, home, branch }
        });
        Self { directory: directory.for_readers().to_owned(), agent, model, mode, worktree }
    }
}

impl From<ScopeRecord> for Scope {
    fn from(record: ScopeRecord) -> Self {
        let ScopeRecord { directory, agent, model, mode, worktree } = record;
        let worktree = worktree.map(|WorktreeRecord { name, home, branch }| {
            let home = home.into();
            Worktree { name, home, branch }
        });
        Self { directory: directory.into(), agent, model, mode, worktree }
    }
}

impl From<Origin> for OriginRecord {
    fn from(origin: Origin) -> Self {
        Self { session: Text(origin.session), turn: origin.turn.0 }
    }
}

impl From<OriginRecord> for Origin {
    fn from(record: OriginRecord) -> Self {
        Self { session: record.session.0, turn: Turn(record.turn) }
    }
}

impl From<Errand> for ErrandRecord {
    fn from(errand: Errand) -> Self {
        Self { epoch: errand.epoch.0, number: errand.number }
    }
}

impl From<ErrandRecord> for Errand {
    fn from(record: ErrandRecord) -> Self {
        Self { epoch: Epoch(record.epoch), number: record.number }
    }
}

impl From<&NewWorktree> for NewWorktreeRecord {
    fn from(wanted: &NewWorktree) -> Self {
        let NewWorktree { name, base, branch } = wanted.clone();
        Self { name, base, branch }
    }
}

impl From<NewWorktreeRecord> for NewWorktree {
    fn from(record: NewWorktreeRecord) -> Self {
        let NewWorktreeRecord { name, base, branch } = record;
        Self { name, base, branch }
    }
}

impl From<&What> for WhatRecord {
    fn from(what: &What) -> Self {
        match what {
            What::Enter(wanted) => Self::Enter(wanted.into()),
            What::Undo { turn, files } => Self::Undo { turn: turn.0, files: UndoFilesRecord::of(files) },
            What::Redo { turn } => Self::Redo { turn: turn.0 },
        }
    }
}

impl From<WhatRecord> for What {
    fn from(record: WhatRecord) -> Self {
        match record {
            WhatRecord::Enter(wanted) => Self::Enter(wanted.into()),
            WhatRecord::Undo { turn, files } => {
                Self::Undo { turn: Turn(turn), files: UndoFilesRecord::files(files) }
            }
            WhatRecord::Redo { turn } => Self::Redo { turn: Turn(turn) },
        }
    }
}

impl From<&Setting> for SettingRecord {
    fn from(setting: &Setting) -> Self {
        match setting {
            Setting::Keep => Self::Keep,
            Setting::Default => Self::Default,
            Setting::To(name) => Self::To(name.clone()),
        }
    }
}

impl From<SettingRecord> for Setting {
    fn from(record: SettingRecord) -> Self {
        match record {
            SettingRecord::Keep => Self::Keep,
            SettingRecord::Default => Self::Default,
            SettingRecord::To(name) => Self::To(name),
        }
    }
}

impl From<&Change> for ChangeRecord {
    fn from(change: &Change) -> Self {
        match change {
            Change::Enter(wanted) => Self::Enter(wanted.into()),
            Change::Exit => Self::Exit {},
            Change::Set { agent, model, mode } => {
                Self::Set { agent: agent.clone(), model: model.into(), mode: mode.into() }
            }
            Change::Relink { directory } => Self::Relink { directory: directory.for_readers().to_owned() },
            Change::Back { scope, message } => Self::Back { scope: scope.into(), message: Text(*message) },
        }
    }
}

impl From<ChangeRecord> for Change {
    fn from(record: ChangeRecord) -> Self {
        match record {
            ChangeRecord::Enter(wanted) => Self::Enter(wanted.into()),
            ChangeRecord::Exit {} => Self::Exit,
            ChangeRecord::Set { agent, model, mode } => {
                Self::Set { agent, model: model.into(), mode: mode.into() }
            }
            ChangeRecord::Relink { directory } => Self::Relink { directory: directory.into() },
            ChangeRecord::Back { scope, message } => Self::Back { scope: scope.into(), message: message.0 },
        }
    }
}

impl From<KeptWhy> for KeptRecord {
    fn from(why: KeptWhy) -> Self {
        match why {
            KeptWhy::Asked(by) => Self::Asked { by: Text(by) },
            KeptWhy::Failed => Self::Failed {},
            KeptWhy::Moot => Self::Moot {},
        }
    }
}

impl From<KeptRecord> for KeptWhy {
    fn from(record: KeptRecord) -> Self {
        match record {
            KeptRecord::Asked { by } => Self::Asked(by.0),
            KeptRecord::Failed {} => Self::Failed,
            KeptRecord::Moot {} => Self::Moot,
        }
    }
}

/// The stored form of a worktree that a session is made for.
pub fn encode_worktree(wanted: &NewWorktree) -> Vec<u8> {
    super::encode(&NewWorktreeRecord::from(wanted))
}

/// Such a worktree as it was stored.
pub fn decode_worktree(bytes: &[u8]) -> Result<NewWorktree, super::Unreadable> {
    super::decode::<NewWorktreeRecord>("worktree", bytes).map(NewWorktree::from)
}
