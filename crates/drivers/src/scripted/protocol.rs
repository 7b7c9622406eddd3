//! The lines of the scripted agent, read and written: one JSON object per line. Pure.
//!
//! It says `{"type":"about","model":NAME,"has_commands":BOOL}` and `{"type":"ready","native":ID}`, then after the message
//! any of `text {text}`, `warning {text}`, `native {native}`, `asked {question, tool, detail, form}`, `tool_call {call, tool, input}`,
//! `tool_progress {call, output}`, `tool_result {call, output, failed}`, `reasoning {text}`, `plan {steps}`, `file_changed {path, change}`,
//! `usage {input, output}`, and at last `finished {native}` or
//! `failed {kind, detail}`; the last one may come instead of `ready`. It hears `message {id, text, attachments, fence}` once, or again
//! after `finished` if it stays, and `answer {question, answer}`; to `more {id, text, attachments}` it says `steered {id, taken}`, to
//! `knock` it says `here` while it waits.

use agent::{
    About, AgentEvent, Attachment, AttachmentKind, CHOICES_MAX, Choice, DETAIL_BYTES_MAX, FileChangeKind,
    Form, Launch, Message, NATIVE_BYTES_MAX, PlanStep, Progress, QuestionAnswer, Steered, Trouble, Usage,
    bounded, pieces, scripted,
};
use base64::Engine;
use kernel::{Failure, Fence, Native};
use serde::{Deserialize, Serialize};

use crate::agent_protocol::{AgentProtocol, ProtocolOutput};
use crate::attached::in_base64;

/// The longest key, name or the like in an event.
const NAME_BYTES_MAX: usize = 256;

/// A line of the agent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum AgentLine {
    About { model: String, has_commands: bool },
    Ready { native: String },
    Text { text: String },
    Native { native: String },
    Asked { question: String, tool: String, detail: String, form: FormLine },
    Steered { id: String, taken: bool },
    Warning { text: String },
    ToolCall { call: String, tool: String, input: String },
    ToolProgress { call: String, output: String },
    ToolResult { call: String, output: String, failed: bool },
    Reasoning { text: String },
    Plan { steps: Vec<PlanLine> },
    FileChanged { path: String, change: ChangeWord },
    Usage { input: u64, output: u64 },
    Finished { native: String },
    Failed { kind: FailureKind, detail: String },
    Here,
}

/// A line that it hears.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum DriverLine {
    Message {
        id: String,
        text: String,
        #[serde(default)]
        attachments: Vec<AttachmentLine>,
        #[serde(default)]
        fence: Option<FenceLine>,
    },
    Answer {
        question: String,
        answer: AnswerLine,
    },
    More {
        id: String,
        text: String,
        #[serde(default)]
        attachments: Vec<AttachmentLine>,
    },
    Knock,
}

/// An image or a file, as it stands in a line.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct AttachmentLine {
    kind: AttachmentWord,
    name: String,
    media_type: String,
    data: String,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum AttachmentWord {
    Image,
    Pdf,
    Other,
}

impl From<&Attachment> for AttachmentLine {
    fn from(attached: &Attachment) -> Self {
        let kind = match attached.kind {
            AttachmentKind::Image => AttachmentWord::Image,
            AttachmentKind::Pdf => AttachmentWord::Pdf,
            AttachmentKind::Other => AttachmentWord::Other,
        };
        let (name, media_type) = (attached.name.clone(), attached.media_type.clone());
        Self { kind, name, media_type, data: in_base64(attached) }
    }
}

impl TryFrom<AttachmentLine> for Attachment {
    type Error = base64::DecodeError;

    fn try_from(line: AttachmentLine) -> Result<Self, Self::Error> {
        let kind = match line.kind {
            AttachmentWord::Image => AttachmentKind::Image,
            AttachmentWord::Pdf => AttachmentKind::Pdf,
            AttachmentWord::Other => AttachmentKind::Other,
        };
        let content = base64::engine::general_purpose::STANDARD.decode(&line.data)?;
        Ok(Self { kind, name: line.name, media_type: line.media_type, content: content.into() })
    }
}

/// The kind of answer a question wants, as it stands in a line.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FormLine {
    Permission,
    Choice(Vec<String>),
    Words,
}

impl From<&Form> for FormLine {
    fn from(form: &Form) -> Self {
        match form {
            Form::Permission => Self::Permission,
            Form::Choice { options } => {
                Self::Choice(options.iter().map(|option| option.name.clone()).collect())
            }
            Form::Words => Self::Words,
        }
    }
}

impl From<FormLine> for Form {
    fn from(asks: FormLine) -> Self {
        match asks {
            FormLine::Permission => Self::Permission,
            FormLine::Choice(names) => {
                let choice = |name: String| Choice { name: name_of(&name), description: String::new() };
                Self::Choice { options: names.into_iter().take(CHOICES_MAX).map(choice).collect() }
            }
            FormLine::Words => Self::Words,
        }
    }
}

/// An answer as it stands in a line.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum AnswerLine {
    Allow,
    Deny(String),
    Chose(usize),
    Said(String),
}

impl From<&QuestionAnswer> for AnswerLine {
    fn from(answer: &QuestionAnswer) -> Self {
        match answer {
            QuestionAnswer::Allow => Self::Allow,
            QuestionAnswer::Deny { reason } => Self::Deny(reason.clone()),
            QuestionAnswer::Chose(at) => Self::Chose(*at),
            QuestionAnswer::Said(words) => Self::Said(words.clone()),
        }
    }
}

impl From<AnswerLine> for QuestionAnswer {
    fn from(says: AnswerLine) -> Self {
        match says {
            AnswerLine::Allow => Self::Allow,
            AnswerLine::Deny(reason) => Self::Deny { reason },
            AnswerLine::Chose(at) => Self::Chose(at),
            AnswerLine::Said(words) => Self::Said(words),
        }
    }
}

/// A step of a plan, as it stands in a line.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PlanLine {
    text: String,
    progress: ProgressWord,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ProgressWord {
    Waiting,
    Active,
    Done,
}

impl From<PlanStep> for PlanLine {
    fn from(step: PlanStep) -> Self {
        let progress = match step.progress {
            Progress::Waiting => ProgressWord::Waiting,
            Progress::Active => ProgressWord::Active,
            Progress::Done => ProgressWord::Done,
        };
        Self { text: step.text, progress }
    }
}

impl From<PlanLine> for PlanStep {
    fn from(line: PlanLine) -> Self {
        let progress = match line.progress {
            ProgressWord::Waiting => Progress::Waiting,
            ProgressWord::Active => Progress::Active,
            ProgressWord::Done => Progress::Done,
        };
        Self { text: bounded(&line.text, DETAIL_BYTES_MAX), progress }
    }
}

/// A change of a file, as it stands in a line.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ChangeWord {
    Added,
    Edited,
    Removed,
}

impl From<FileChangeKind> for ChangeWord {
    fn from(change: FileChangeKind) -> Self {
        match change {
            FileChangeKind::Added => Self::Added,
            FileChangeKind::Edited => Self::Edited,
            FileChangeKind::Removed => Self::Removed,
        }
    }
}

impl From<ChangeWord> for FileChangeKind {
    fn from(change: ChangeWord) -> Self {
        match change {
            ChangeWord::Added => Self::Added,
            ChangeWord::Edited => Self::Edited,
            ChangeWord::Removed => Self::Removed,
        }
    }
}

/// The line by which the agent shows this, if it is one of the things that a script shows.
pub(super) fn shown(event: AgentEvent) -> Option<AgentLine> {
    Some(match event {
        AgentEvent::ToolCall { call, tool, input } => AgentLine::ToolCall { call, tool, input },
        AgentEvent::ToolProgress { call, output } => AgentLine::ToolProgress { call, output },
        AgentEvent::ToolResult { call, output, failed } => AgentLine::ToolResult { call, output, failed },
        AgentEvent::Reasoning { text } => AgentLine::Reasoning { text },
        AgentEvent::Plan { steps } => {
            AgentLine::Plan { steps: steps.into_iter().map(PlanLine::from).collect() }
        }
        _ => return None,
    })
}

/// A fence in numbers: of which attempt a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FenceLine {
    pub(super) term: u64,
    pub(super) epoch: u64,
    pub(super) turn: u64,
    pub(super) attempt: u64,
}

/// A failure as it stands in a line. What a newer agent may say is Transient to us, as all that is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FailureKind {
    Gone,
    Busy,
    Refused,
    #[serde(other)]
    Transient,
}

impl From<Failure> for FailureKind {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Gone => Self::Gone,
            Failure::Busy => Self::Busy,
            Failure::Transient => Self::Transient,
            Failure::Refused => Self::Refused,
        }
    }
}

impl From<FailureKind> for Failure {
    fn from(kind: FailureKind) -> Self {
        match kind {
            FailureKind::Gone => Self::Gone,
            FailureKind::Busy => Self::Busy,
            FailureKind::Transient => Self::Transient,
            FailureKind::Refused => Self::Refused,
        }
    }
}

/// One value and a line's end.
pub(super) fn line(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(value).expect("plain structures can be written");
    bytes.push(b'\n');
    bytes
}

pub(super) struct ScriptedProtocol {
    fence: Fence,
    /// The model that was chosen, if one was.
    chosen: Option<String>,
    about: Option<About>,
    has_answered: bool,
}

impl ScriptedProtocol {
    pub(super) fn new(launch: &Launch) -> Self {
        Self { fence: launch.fence, chosen: launch.model.clone(), about: None, has_answered: true }
    }

    /// The description it gives of itself. It is not to work with another model than was chosen.
    fn hear_about(&mut self, model: &str, has_commands: bool, out: &mut ProtocolOutput) {
        let model = name_of(model);
        match &self.chosen {
            Some(chosen) if *chosen != model => {
                out.event(AgentEvent::Failed(Trouble::other_model(chosen, &model)));
            }
            _ => {
                let about = scripted::about(&model, has_commands);
                out.event(AgentEvent::About(Box::new(about.clone())));
                self.about = Some(about);
            }
        }
    }

    fn numbers(&self) -> FenceLine {
        let Fence { term, epoch, turn, attempt } = self.fence;
        FenceLine { term: term.0, epoch: epoch.0.into(), turn: turn.0.into(), attempt: attempt.0.into() }
    }
}

impl AgentProtocol for ScriptedProtocol {
    fn open(&mut self, _: &mut ProtocolOutput) {}

    /// It has said `finished` and waits; nothing more is needed.
    fn again(&mut self, launch: &Launch, out: &mut ProtocolOutput) {
        self.fence = launch.fence;
        out.about(self.about.as_ref());
        out.event(AgentEvent::Ready { native: launch.native.clone() });
    }

    fn knock(&mut self, out: &mut ProtocolOutput) {
        self.has_answered = false;
        out.send(&line(&DriverLine::Knock));
    }

    fn has_answered(&self) -> bool {
        self.has_answered
    }

    fn read(&mut self, line: &str, out: &mut ProtocolOutput) {
        match serde_json::from_str(line) {
            Ok(AgentLine::Here) => self.has_answered = true,
            Ok(AgentLine::About { model, has_commands }) => self.hear_about(&model, has_commands, out),
            Ok(AgentLine::Steered { taken, .. }) => {
                out.steered(if taken { Steered::Taken } else { Steered::TooLate });
            }
            Ok(AgentLine::Text { text }) => {
                for piece in pieces(&text) {
                    out.event(AgentEvent::Text { text: piece.to_owned() });
                }
            }
            Ok(AgentLine::Reasoning { text }) => {
                for piece in pieces(&text) {
                    out.event(AgentEvent::Reasoning { text: piece.to_owned() });
                }
            }
            Ok(said) => out.event(event(said)),
            Err(_) => out.event(AgentEvent::Other { raw: bounded(line, DETAIL_BYTES_MAX) }),
        }
    }

    fn takes(&self, kind: AttachmentKind) -> bool {
        scripted::abilities().takes(kind)
    }

    fn hand(&mut self, message: &Message, out: &mut ProtocolOutput) {
        let (id, text, fence) = (message.id.to_string(), message.text.clone(), Some(self.numbers()));
        let attachments = message.attachments.iter().map(AttachmentLine::from).collect();
        out.send(&line(&DriverLine::Message { id, text, attachments, fence }));
    }

    fn steer(&mut self, message: &Message, out: &mut ProtocolOutput) {
        let (id, text) = (message.id.to_string(), message.text.clone());
        let attachments = message.attachments.iter().map(AttachmentLine::from).collect();
        out.send(&line(&DriverLine::More { id, text, attachments }));
    }

    fn answer(&mut self, question: &str, answer: &QuestionAnswer, out: &mut ProtocolOutput) {
        out.send(&line(&DriverLine::Answer { question: question.to_owned(), answer: answer.into() }));
    }
}

fn event(said: AgentLine) -> AgentEvent {
    let name = |text: String| bounded(&text, NAME_BYTES_MAX);
    let detail = |text: String| bounded(&text, DETAIL_BYTES_MAX);
    match said {
        AgentLine::Ready { native } => AgentEvent::Ready { native: id(native) },
        AgentLine::Text { text } => AgentEvent::Text { text: detail(text) },
        AgentLine::Native { native } => id(native).map_or_else(
            || AgentEvent::Notice {
                text: "the agent named a conversation by something that is no id".to_owned(),
            },
            AgentEvent::Native,
        ),
        AgentLine::Asked { question, tool, detail: words, form } => AgentEvent::Asked {
            question: name(question),
            tool: name(tool),
            kind: String::new(),
            detail: detail(words),
            form: form.into(),
        },
        AgentLine::Warning { text } => AgentEvent::Warned { text: detail(text) },
        AgentLine::ToolCall { call, tool, input } => {
            AgentEvent::ToolCall { call: name(call), tool: name(tool), input: detail(input) }
        }
        AgentLine::ToolProgress { call, output } => {
            AgentEvent::ToolProgress { call: name(call), output: detail(output) }
        }
        AgentLine::Reasoning { text } => AgentEvent::Reasoning { text: detail(text) },
        AgentLine::Plan { steps } => {
            AgentEvent::Plan { steps: steps.into_iter().take(CHOICES_MAX).map(PlanStep::from).collect() }
        }
        AgentLine::FileChanged { path, change } => {
            AgentEvent::FileChanged { path: detail(path), change: change.into() }
        }
        AgentLine::ToolResult { call, output, failed } => {
            AgentEvent::ToolResult { call: name(call), output: detail(output), failed }
        }
        AgentLine::Usage { input, output } => {
            AgentEvent::Usage(Usage { input_tokens: input, output_tokens: output, ..Usage::default() })
        }
        AgentLine::Finished { native } => AgentEvent::Finished { native: id(native), reason: String::new() },
        AgentLine::Failed { kind, detail } => AgentEvent::Failed(Trouble::new(kind.into(), detail)),
        // Read before they get here.
        AgentLine::Here | AgentLine::About { .. } | AgentLine::Steered { .. } => {
            AgentEvent::Notice { text: "the agent says that it is here".to_owned() }
        }
    }
}

fn name_of(text: &str) -> String {
    bounded(text, NAME_BYTES_MAX)
}

/// An id is never cut: half of one is another.
fn id(native: String) -> Option<Native> {
    (!native.is_empty() && native.len() <= NATIVE_BYTES_MAX).then(|| Native::new(native))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::{Attempt, Epoch, MessageId, SessionId, Term, Turn};

    fn read(line: &str) -> Vec<AgentEvent> {
        let mut out = ProtocolOutput::default();
        let fence = Fence { term: Term(1), epoch: Epoch(1), turn: Turn(1), attempt: Attempt(1) };
        let launch = Launch::new(SessionId::from_bits(1), fence, MessageId::from_bits(1), "/");
        ScriptedProtocol::new(&launch).read(line, &mut out);
        out.take().0
    }

    #[test]
    fn what_it_says_is_understood() {
        assert_eq!(
            read(r#"{"type":"text","text":"hi","more":1}"#),
            [AgentEvent::Text { text: "hi".to_owned() }]
        );
        assert_eq!(
            read(r#"{"type":"failed","kind":"exploded","detail":"x"}"#),
            [AgentEvent::Failed(Trouble::transient("x"))]
        );
        assert_eq!(
            read(r#"{"type":"finished","native":"a"}"#),
            [AgentEvent::Finished { native: Some(Native::new("a")), reason: String::new() }]
        );
    }

    #[test]
    fn nonsense_is_kept_within_bounds() {
        for line in ["", "{", "nul\0", r#"{"type":"text"}"#, r#"{"type":"dance"}"#, "[1,2", "\u{fffd}"] {
            assert_eq!(read(line), [AgentEvent::Other { raw: line.to_owned() }]);
        }
        let [AgentEvent::Other { raw }] = &read(&"x".repeat(100_000))[..] else { panic!("one event") };
        assert!(raw.len() <= DETAIL_BYTES_MAX);
    }

    #[test]
    fn a_giant_id_is_no_id() {
        let line = format!(r#"{{"type":"ready","native":"{}"}}"#, "x".repeat(NATIVE_BYTES_MAX + 1));
        assert_eq!(read(&line), [AgentEvent::Ready { native: None }]);
    }

    #[test]
    fn a_long_text_comes_in_pieces_and_whole() {
        let text = "é".repeat(40_000);
        let events = read(&serde_json::to_string(&AgentLine::Text { text: text.clone() }).unwrap());
        let joined: String = events
            .into_iter()
            .map(|e| if let AgentEvent::Text { text } = e { text } else { panic!() })
            .collect();
        assert_eq!(joined, text);
    }
}
