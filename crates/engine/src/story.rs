//! Story facts: what people are shown of a turn. Encoded once, as the JSON that is stored and sent.
//!
//! The form is a promise to every reader, so it is versioned (`v`) and only ever added to. Kinds: `launch` (how an
//! attempt was started), `about` (what the agent says about itself), `text` and `reasoning` (words with their part and
//! offset), `said` (a part is complete: length and hash), `tool_call`, `tool_progress`, `tool_result`, `plan`,
//! `file_changed`, `question`, `usage`, `notice`, `title` (what the agent calls the session), `finished` (the agent's own word for why), `stopped`, `memory` (how the
//! agent comes to know what was said before), `imported` (where a conversation or a turn was before, who spoke in it and
//! when), `changes` (what a turn changed in its directory), `script` (what the setup
//! or teardown of a worktree prints), `worktree` (one was removed or restored), `other`. When a tool began and ended is when its facts happened.

mod progress;

pub(crate) use progress::ToolProgress;

use crate::{TreeChanges, TreeMove};
use agent::{About, Choice, FileChangeKind, Form, PlanStep, Usage};
use bytes::Bytes;
use kernel::{ApprovalId, Scope, Turn};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use store::Entry;
use tokio::time::Instant;

/// The version of the form.
const V: u32 = 1;

/// Files that are named in what a turn changed, how long a path may be, and how long the patch. The rest can be looked up.
const CHANGED_FILES_MAX: usize = 1_000;
const CHANGED_PATH_BYTES_MAX: usize = 4 * 1024;
/// Sentences about what was not looked at. The one that follows from a bound comes last, and there are not so many others.
const UNSEEN_MAX: usize = 200;
const CHANGED_PATCH_BYTES_MAX: usize = 64 * 1024;

/// A choice's name may be this long; a longer one is not shown.
const CHOICE_BYTES_MAX: usize = 256;

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Story<'a> {
    Launch(LaunchForm<'a>),
    About(Box<AboutForm>),
    Text { part: u32, offset: u64, text: &'a str },
    Reasoning { part: u32, offset: u64, text: &'a str },
    Said { part: u32, length: u64, sha256: String },
    ToolCall { call: &'a str, tool: &'a str, input: &'a str },
    ToolProgress { call: &'a str, offset: u64, output: &'a str },
    ToolResult { call: &'a str, output: &'a str, failed: bool },
    Plan { steps: Vec<StepForm<'a>> },
    FileChanged { path: &'a str, change: &'static str },
    Question(ApprovalStory<'a>),
    Usage(UsageForm),
    Notice { text: &'a str },
    Title { title: &'a str },
    Finished { reason: &'a str },
    Stopped { killed: u32, gone: bool },
    Memory { way: &'static str, turns: usize, text: &'a str },
    Imported(&'a Imported),
    Changes(ChangesForm<'a>),
    Script { stage: &'static str, offset: u64, output: &'a str },
    Worktree { name: &'a str, change: &'static str, reference: &'a str },
    Other { raw: &'a str },
}

/// The start of an attempt. Never a secret.
#[derive(Debug, Serialize)]
pub(crate) struct LaunchForm<'a> {
    pub(crate) agent: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) program: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
    pub(crate) home: &'a str,
    pub(crate) directory: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mode: Option<&'a str>,
    pub(crate) bypasses: bool,
    /// `house`, or the id of the person whose sign-in it is.
    pub(crate) account: String,
}

/// Where something was before it came here. Moments are milliseconds of Unix time.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Imported {
    pub(crate) text: String,
    /// The session there.
    pub(crate) session: String,
    /// The turn's number there; 0 for the conversation as a whole.
    pub(crate) there: u32,
    /// The agent there, if anybody knows.
    pub(crate) agent: String,
    pub(crate) began_ms: u64,
    pub(crate) ended_ms: u64,
    /// Those who have said what the turn is about, in the order of its messages.
    pub(crate) said: Vec<SaidThere>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SaidThere {
    pub(crate) by: String,
    pub(crate) at_ms: u64,
}

/// The question of an agent.
#[derive(Debug, Serialize)]
pub(crate) struct ApprovalStory<'a> {
    approval: String,
    agent: &'a str,
    directory: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    home: Option<&'a str>,
    tool: &'a str,
    detail: &'a str,
    /// `permission`, `choice` or `words`.
    form: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    options: Vec<ChoiceForm>,
}

/// The changes of a turn, in bounds.
#[derive(Debug, Serialize)]
pub(crate) struct ChangesForm<'a> {
    files: Vec<FileForm<'a>>,
    patch: &'a str,
    /// True if files or parts of the patch are missing here.
    cut: bool,
    /// Sentences about what was not looked at.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unseen: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    moves: Vec<MoveForm<'a>>,
}

#[derive(Debug, Serialize)]
struct MoveForm<'a> {
    words: &'a str,
    command: &'a str,
}

#[derive(Debug, Serialize)]
struct FileForm<'a> {
    path: &'a str,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    plus: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    minus: Option<u64>,
}

/// An agent's word about itself, in bounds.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct AboutForm {
    #[serde(skip_serializing_if = "String::is_empty")]
    version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    directory: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    model: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    mode: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    models: Vec<ChoiceForm>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    modes: Vec<ChoiceForm>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    commands: Vec<ChoiceForm>,
}

#[derive(Debug, Clone, Serialize)]
struct ChoiceForm {
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    description: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct StepForm<'a> {
    text: &'a str,
    progress: &'static str,
}

#[derive(Debug, Serialize)]
pub(crate) struct UsageForm {
    input_tokens: u64,
    output_tokens: u64,
    cached_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_micros: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    window_used: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    window_size: Option<u64>,
}

#[derive(Serialize)]
struct Body<'a> {
    v: u32,
    turn: u32,
    #[serde(flatten)]
    story: &'a Story<'a>,
}

impl Story<'_> {
    pub(crate) fn approval<'a>(
        approval: ApprovalId,
        scope: &'a Scope,
        tool: &'a str,
        detail: &'a str,
        form: &Form,
    ) -> Story<'a> {
        // None is left out: they are chosen by their place.
        let option = |choice: &Choice| ChoiceForm {
            name: agent::bounded(&choice.name, CHOICE_BYTES_MAX),
            description: agent::bounded(&choice.description, CHOICE_BYTES_MAX),
        };
        let (form, options) = match form {
            Form::Permission => ("permission", Vec::new()),
            Form::Choice { options } => ("choice", options.iter().map(option).collect()),
            Form::Words => ("words", Vec::new()),
        };
        Story::Question(ApprovalStory {
            approval: approval.to_string(),
            agent: &scope.agent,
            directory: scope.directory.for_readers(),
            home: scope.worktree.as_ref().map(|worktree| worktree.home.for_readers()),
            tool,
            detail,
            form,
            options,
        })
    }

    pub(crate) fn plan(steps: &[PlanStep]) -> Story<'_> {
        let word = |progress| match progress {
            agent::Progress::Waiting => "waiting",
            agent::Progress::Active => "active",
            agent::Progress::Done => "done",
        };
        let steps = steps.iter().take(agent::CHOICES_MAX);
        let steps = steps.map(|step| StepForm { text: &step.text, progress: word(step.progress) });
        Story::Plan { steps: steps.collect() }
    }

    pub(crate) fn file_changed(path: &str, change: FileChangeKind) -> Story<'_> {
        let change = match change {
            FileChangeKind::Added => "added",
            FileChangeKind::Edited => "edited",
            FileChangeKind::Removed => "removed",
        };
        Story::FileChanged { path, change }
    }

    pub(crate) fn changes(changes: &TreeChanges) -> Story<'_> {
        let fits = changes.files.iter().filter(|file| file.path.len() <= CHANGED_PATH_BYTES_MAX);
        let files = fits.take(CHANGED_FILES_MAX).map(|file| FileForm {
            path: &file.path,
            kind: file.kind,
            plus: file.plus,
            minus: file.minus,
        });
        let files: Vec<_> = files.collect();
        let end = changes.patch.floor_char_boundary(CHANGED_PATCH_BYTES_MAX.min(changes.patch.len()));
        let cut = changes.is_cut || end < changes.patch.len() || files.len() < changes.files.len();
        let fits = changes.unseen.iter().filter(|words| words.len() <= CHANGED_PATH_BYTES_MAX);
        let unseen = fits.take(UNSEEN_MAX).map(String::as_str).collect();
        let moves = changes.moves.iter();
        let moves = moves.map(|TreeMove { words, command }| MoveForm { words, command }).collect();
        Story::Changes(ChangesForm { files, patch: &changes.patch[..end], cut, unseen, moves })
    }

    pub(crate) fn usage(usage: &Usage) -> Story<'static> {
        let Usage { input_tokens, output_tokens, cached_tokens, cost_micros, window } = *usage;
        let (window_used, window_size) = window.unzip();
        Story::Usage(UsageForm {
            input_tokens,
            output_tokens,
            cached_tokens,
            cost_micros,
            window_used,
            window_size,
        })
    }

    pub(crate) fn about(about: &About) -> Story<'static> {
        let short = |text: &str| agent::bounded(text, CHOICE_BYTES_MAX);
        let form = |choice: &Choice| ChoiceForm {
            name: choice.name.clone(),
            description: short(&choice.description),
        };
        let list = |choices: &[Choice]| choices_of(choices).map(form).collect();
        Story::About(Box::new(AboutForm {
            version: short(&about.version),
            directory: agent::bounded(&about.directory, agent::DETAIL_BYTES_MAX),
            model: short(&about.model),
            mode: short(&about.mode),
            models: list(&about.models),
            modes: list(&about.modes),
            commands: list(&about.commands),
        }))
    }

    /// The same for the same words, so that what was told need not be told again.
    pub(crate) fn mark(&self) -> u64 {
        let words = serde_json::to_vec(self).expect("stories are plain data");
        let digest = Sha256::digest(&words);
        u64::from_le_bytes(digest[..8].try_into().expect("a digest is longer than eight bytes"))
    }

    /// The fact's entry, encoded.
    pub(crate) fn entry(&self, turn: Turn) -> Entry {
        let body = Body { v: V, turn: turn.0, story: self };
        let body = Bytes::from(serde_json::to_vec(&body).expect("stories are plain data"));
        Entry::Story { turn, kind: self.kind().to_owned(), body }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Launch(_) => "launch",
            Self::About(_) => "about",
            Self::Text { .. } => "text",
            Self::Reasoning { .. } => "reasoning",
            Self::Said { .. } => "said",
            Self::ToolCall { .. } => "tool_call",
            Self::ToolProgress { .. } => "tool_progress",
            Self::ToolResult { .. } => "tool_result",
            Self::Plan { .. } => "plan",
            Self::FileChanged { .. } => "file_changed",
            Self::Question(_) => "question",
            Self::Usage(_) => "usage",
            Self::Notice { .. } => "notice",
            Self::Title { .. } => "title",
            Self::Finished { .. } => "finished",
            Self::Stopped { .. } => "stopped",
            Self::Memory { .. } => "memory",
            Self::Imported(_) => "imported",
            Self::Changes(_) => "changes",
            Self::Script { .. } => "script",
            Self::Worktree { .. } => "worktree",
            Self::Other { .. } => "other",
        }
    }
}

/// The part of an agent's list that is shown: names that can be said back, and not more than anybody would read.
pub(crate) fn choices_of(choices: &[Choice]) -> impl Iterator<Item = &Choice> {
    choices.iter().filter(|choice| choice.name.len() <= CHOICE_BYTES_MAX).take(agent::CHOICES_MAX)
}

/// The words in a stored `text`, `reasoning` or `notice`.
pub(crate) fn words_of(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Words {
        text: String,
    }
    serde_json::from_slice(body).ok().map(|Words { text }| text)
}

/// The story of a turn elsewhere, as a fact of this turn. `body` is a JSON object without version and turn.
pub(crate) fn retold(turn: Turn, body: &[u8]) -> Bytes {
    let head = format!("{{\"v\":{V},\"turn\":{},", turn.0);
    let rest = body.strip_prefix(b"{").unwrap_or(b"}");
    Bytes::from([head.as_bytes(), rest].concat())
}

/// The content of a stored `imported`.
pub(crate) fn imported_of(body: &[u8]) -> Option<Imported> {
    serde_json::from_slice(body).ok()
}

/// The run of words that is growing. A tool call, a question or the other kind of words ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WordKind {
    Text,
    Reasoning,
}

impl WordKind {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Reasoning => "reasoning",
        }
    }
}

/// One run of words of a turn, written down piece by piece.
#[derive(Debug)]
pub(crate) struct Words {
    pub(crate) kind: WordKind,
    pub(crate) part: u32,
    /// Bytes of this part that are written down.
    written: u64,
    hash: Sha256,
    /// Heard, and not yet written down; and since when.
    pending: String,
    since: Option<Instant>,
}

impl Words {
    pub(crate) fn new(kind: WordKind, part: u32) -> Self {
        Self { kind, part, written: 0, hash: Sha256::new(), pending: String::new(), since: None }
    }

    /// Takes more words; says at which offset they stand.
    pub(crate) fn hear(&mut self, text: &str) -> u64 {
        let offset = self.written + self.pending.len() as u64;
        self.pending.push_str(text);
        self.since.get_or_insert_with(Instant::now);
        offset
    }

    pub(crate) fn pending_bytes(&self) -> usize {
        self.pending.len()
    }

    /// When the first of those words was heard that are not written down.
    pub(crate) fn unwritten_since(&self) -> Option<Instant> {
        self.since
    }

    /// The entry to be written down now, if there is one.
    pub(crate) fn cut(&mut self, turn: Turn) -> Option<Entry> {
        self.since = None;
        if self.pending.is_empty() {
            return None;
        }
        let text = std::mem::take(&mut self.pending);
        let (part, offset) = (self.part, self.written);
        self.written += text.len() as u64;
        self.hash.update(text.as_bytes());
        let story = match self.kind {
            WordKind::Text => Story::Text { part, offset, text: &text },
            WordKind::Reasoning => Story::Reasoning { part, offset, text: &text },
        };
        Some(story.entry(turn))
    }

    /// The end of the run: its length and hash, no second copy.
    pub(crate) fn close(self, turn: Turn) -> Entry {
        let sha256 = self.hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Story::Said { part: self.part, length: self.written, sha256 }.entry(turn)
    }
}
