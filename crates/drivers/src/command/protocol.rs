//! The talk with any program: the message is its input or its last argument, what it prints is the answer, and its
//! exit code says how the turn ended. Pure.

use agent::{
    AgentEvent, DETAIL_BYTES_MAX, Launch, Message, NATIVE_BYTES_MAX, QuestionAnswer, Trouble, Usage, bounded,
    pieces,
};
use kernel::{Failure, Native};
use processes::TreeExit;
use serde_json::Value;

use super::plain::PlainTextReader;
use super::{JsonForm, MessageChannel, OutputForm};
use crate::agent_protocol::{AgentProtocol, ProtocolOutput};
use crate::running_agent::gone_if_here;

pub(super) struct CommandProtocol {
    pub(super) hands: MessageChannel,
    pub(super) says: OutputForm,
    pub(super) codes: ExitCodes,
    pub(super) launch: Launch,
    /// The conversation, once it has a name.
    pub(super) native: Option<Native>,
    pub(super) place: String,
    pub(super) plain: PlainTextReader,
    /// The failure that it told.
    pub(super) error: Option<String>,
}

/// The meaning of exit codes other than 0. What is not here is Transient.
#[derive(Debug, Clone, Default)]
pub(super) struct ExitCodes {
    pub(super) refused: Vec<i32>,
    pub(super) gone: Vec<i32>,
    pub(super) busy: Vec<i32>,
}

impl ExitCodes {
    fn failure(&self, code: i32) -> Failure {
        if self.refused.contains(&code) {
            Failure::Refused
        } else if self.gone.contains(&code) {
            Failure::Gone
        } else if self.busy.contains(&code) {
            Failure::Busy
        } else {
            Failure::Transient
        }
    }
}

impl CommandProtocol {
    fn read_json(&mut self, line: &str, form: &JsonForm, out: &mut ProtocolOutput) {
        let Ok(value) = serde_json::from_str::<Value>(line) else { return out.event(other(line)) };
        let at = |pointer: &Option<String>| value.pointer(pointer.as_deref()?).filter(|it| !it.is_null());
        let (text, session) = (at(&form.text), at(&form.session));
        let (error, input, output) = (at(&form.error), at(&form.input_tokens), at(&form.output_tokens));
        if [text, session, error, input, output].iter().all(Option::is_none) {
            return out.event(other(line));
        }
        if let Some(session) = session {
            self.name(&words(session), out);
        }
        if let Some(text) = text {
            say(&mut PlainTextReader::default(), words(text).as_bytes(), out);
        }
        if let Some(error) = error {
            self.error = Some(bounded(&words(error), DETAIL_BYTES_MAX));
        }
        let number = |value: Option<&Value>| value.and_then(Value::as_u64).unwrap_or(0);
        let (input_tokens, output_tokens) = (number(input), number(output));
        if input_tokens > 0 || output_tokens > 0 {
            out.event(AgentEvent::Usage(Usage { input_tokens, output_tokens, ..Usage::default() }));
        }
    }

    /// The program's own name for the conversation. It comes back to it as an argument, so it must look like none of
    /// its options.
    fn name(&mut self, id: &str, out: &mut ProtocolOutput) {
        if !is_name(id) {
            let text = "the program named its conversation by something that is no id".to_owned();
            return out.event(AgentEvent::Notice { text });
        }
        let native = Native::new(id).at(self.place.clone());
        if self.native.as_ref() != Some(&native) {
            self.native = Some(native.clone());
            out.event(AgentEvent::Native(native));
        }
    }
}

impl AgentProtocol for CommandProtocol {
    fn open(&mut self, out: &mut ProtocolOutput) {
        out.event(AgentEvent::Ready { native: self.native.clone() });
    }

    fn read(&mut self, line: &str, out: &mut ProtocolOutput) {
        if let OutputForm::Json(form) = self.says.clone() {
            self.read_json(line, &form, out);
        }
    }

    fn reads_bytes(&self) -> bool {
        self.says == OutputForm::Text
    }

    fn read_bytes(&mut self, bytes: &[u8], out: &mut ProtocolOutput) {
        say(&mut self.plain, bytes, out);
    }

    fn has_processes_of_its_own(&self) -> bool {
        false
    }

    fn hand(&mut self, message: &Message, out: &mut ProtocolOutput) {
        if self.hands == MessageChannel::Stdin {
            out.send(message.text.as_bytes());
        }
        // It has had its message; whoever reads on waits for the end.
        out.close_input();
    }

    fn answer(&mut self, _: &str, _: &QuestionAnswer, _: &mut ProtocolOutput) {}

    /// The exit code is this kind of agent's last word: that is its contract.
    fn exited(&mut self, exit: &TreeExit, complaint: &str, out: &mut ProtocolOutput) {
        let rest = self.plain.rest();
        for piece in pieces(&rest) {
            out.event(AgentEvent::Text { text: piece.to_owned() });
        }
        let Some(code) = exit.code else { return };
        let native = self.native.clone();
        match (code, self.error.take()) {
            (0, None) => out.event(AgentEvent::Finished { native, reason: "exit code 0".to_owned() }),
            // What says that it failed has failed, whatever its exit code.
            (0, Some(error)) => out.event(AgentEvent::Failed(Trouble::transient(error))),
            (code, error) => {
                let complaint = PlainTextReader::default().read(complaint.as_bytes());
                let words = error.unwrap_or(complaint);
                let words = format!("exit code {code}\n{words}");
                out.event(AgentEvent::Failed(match self.codes.failure(code) {
                    Failure::Gone => gone_if_here(&self.launch, &self.place, words.trim()),
                    failure => Trouble::new(failure, words.trim()),
                }));
            }
        }
    }
}

/// True if a conversation may be called so.
pub(super) fn is_name(id: &str) -> bool {
    let is_plain = |character: char| !character.is_control();
    !id.is_empty() && !id.starts_with('-') && id.len() <= NATIVE_BYTES_MAX && id.chars().all(is_plain)
}

fn say(plain: &mut PlainTextReader, bytes: &[u8], out: &mut ProtocolOutput) {
    for piece in pieces(&plain.read(bytes)) {
        out.event(AgentEvent::Text { text: piece.to_owned() });
    }
}

fn words(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn other(line: &str) -> AgentEvent {
    AgentEvent::Other { raw: bounded(line, DETAIL_BYTES_MAX) }
}
