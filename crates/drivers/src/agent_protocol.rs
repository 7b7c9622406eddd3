//! The words of one agent, without its process: `AgentProtocol` reads and writes its lines, `ProtocolOutput` is what comes of it.
//!
//! A folder per agent has its own. Everything here is pure; `running_agent` is the shell around it.

use std::time::Duration;

use agent::{About, AgentEvent, AttachmentKind, Launch, Message, QuestionAnswer, Steered, Trouble};
use processes::TreeExit;

use crate::line_reader::LINE_BYTES_MAX;

/// The longest that processes of an agent's own usually outlast a turn.
const SETTLE_WAIT: Duration = Duration::from_millis(1_000);

/// Reads and writes one agent's lines. Knows nothing of processes and of time.
pub(crate) trait AgentProtocol: Send + 'static {
    /// The process is up: what we say first. `Ready` follows when the agent is ready for the message, or at once.
    fn open(&mut self, out: &mut ProtocolOutput);
    /// Reads a line. Never fails: what cannot be understood is `Other`.
    fn read(&mut self, line: &str, out: &mut ProtocolOutput);
    /// Reads a line of the second line, for protocols that have one. What the process prints cannot pass for it.
    fn read_side(&mut self, line: &str, out: &mut ProtocolOutput) {
        self.read(line, out);
    }
    /// The beginning and the end of a line that was too long to be kept.
    fn read_ends(&mut self, head: &str, tail: &str, out: &mut ProtocolOutput) {
        let _ = (head, tail);
        let text = format!("the agent printed a line of more than {LINE_BYTES_MAX} bytes; it was left out");
        out.event(AgentEvent::Notice { text });
    }
    /// True if such a thing can be handed over with a message. Asked when the agent is ready.
    fn takes(&self, kind: AttachmentKind) -> bool {
        let _ = kind;
        false
    }
    /// Hands over a message.
    fn hand(&mut self, message: &Message, out: &mut ProtocolOutput);
    /// Adds words to the turn that runs. `ProtocolOutput::steered` says what became of them, now or later. A turn that ends before
    /// that has taken nothing of them: a protocol that cannot be sure does not end it.
    fn steer(&mut self, message: &Message, out: &mut ProtocolOutput) {
        let _ = message;
        out.steered(Steered::TooLate);
    }
    /// Answers a question. A question that is not asked, or no longer, says nothing.
    fn answer(&mut self, question: &str, answer: &QuestionAnswer, out: &mut ProtocolOutput);
    /// Asks the agent to stop the turn. Whoever says nothing here gets a signal (SIGINT) instead.
    fn interrupt(&mut self, out: &mut ProtocolOutput) {
        let _ = out;
    }
    /// The process has gone without a terminal event. What it complained about may say why.
    fn gone(&mut self, complaint: &str) -> Option<Trouble> {
        let _ = complaint;
        None
    }
    /// The process has gone without a terminal event, and so has everything it had started. Where the agent's contract
    /// says what an exit status means, its last word may be said here; otherwise a status proves nothing.
    fn exited(&mut self, exit: &TreeExit, complaint: &str, out: &mut ProtocolOutput) {
        let _ = exit;
        if let Some(trouble) = self.gone(complaint) {
            out.event(AgentEvent::Failed(trouble));
        }
    }
    /// True if what the process prints is wanted as it comes, by `read_bytes`, and not in lines.
    fn reads_bytes(&self) -> bool {
        false
    }
    /// Something it printed, cut anywhere.
    fn read_bytes(&mut self, bytes: &[u8], out: &mut ProtocolOutput) {
        let _ = (bytes, out);
    }
    /// True if the process, which has finished its turn, does nothing until it is handed the next message. Asked again
    /// whenever it says something in between.
    fn may_be_kept(&self) -> bool {
        true
    }
    /// Says something that the agent answers at once, to see whether it still does. Whoever says nothing here is taken to
    /// be there when its process is.
    fn knock(&mut self, out: &mut ProtocolOutput) {
        let _ = out;
    }
    /// True if the last knock was answered.
    fn has_answered(&self) -> bool {
        true
    }
    /// Another attempt begins in the same process, which has been idle. `Ready` has to follow, as after `open`.
    fn again(&mut self, launch: &Launch, out: &mut ProtocolOutput) {
        let _ = (launch, out);
    }
    /// The longest that processes of the agent's own may outlast a turn. What is there longer was left behind by the
    /// turn.
    fn settles_within(&self) -> Duration {
        SETTLE_WAIT
    }
    /// True if the processes there are when it is ready are the agent's own, and not a turn's. A program that is there for
    /// one turn may have begun it by then.
    fn has_processes_of_its_own(&self) -> bool {
        true
    }
    /// True if the process goes by itself when its input ends. One that does not is ended at once.
    fn leaves_on_eof(&self) -> bool {
        true
    }
}

/// The output of a protocol, in both directions.
#[derive(Debug, Default)]
pub(crate) struct ProtocolOutput {
    pub(crate) events: Vec<AgentEvent>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) is_input_over: bool,
    pub(crate) is_interrupted: bool,
    pub(crate) steered: Option<Steered>,
}

impl ProtocolOutput {
    /// To the engine: what the agent says about itself, if it has said anything.
    pub(crate) fn about(&mut self, about: Option<&About>) {
        self.events.extend(about.map(|about| AgentEvent::About(Box::new(about.clone()))));
    }

    /// The fate of the words that were added to the turn.
    pub(crate) fn steered(&mut self, steered: Steered) {
        self.steered = Some(steered);
    }

    /// To the engine.
    pub(crate) fn event(&mut self, event: AgentEvent) {
        self.events.push(event);
    }

    /// To the agent. Lines need their end.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// To the agent: a value and a line's end.
    pub(crate) fn send_line(&mut self, value: &serde_json::Value) {
        self.send(value.to_string().as_bytes());
        self.send(b"\n");
    }

    /// Nothing more will be said to the agent.
    pub(crate) fn close_input(&mut self) {
        self.is_input_over = true;
    }

    /// The agent says that its turn was interrupted. That is its last word, and neither success nor failure.
    pub(crate) fn interrupted(&mut self) {
        self.is_interrupted = true;
    }

    /// The bytes for the agent, when nobody hears the rest.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The words so far: to the engine, to the agent, and whether the turn was interrupted. For tests of protocols.
    #[cfg(test)]
    pub(crate) fn take(&mut self) -> (Vec<AgentEvent>, String, bool) {
        let Self { events, bytes, is_interrupted, .. } = std::mem::take(self);
        (events, String::from_utf8(bytes).expect("we write text"), is_interrupted)
    }
}
