//! The scripted agent's process: `homing scripted-agent HOME [NATIVE [fork]]`. No runtime, so that it starts in
//! milliseconds; one thread hears what it is told, so that it does so while it sleeps.
//!
//! It comes up, opens, forks or makes a conversation, says `about` and `ready`, hears one message, does what the brain says
//! and leaves; or stays for the next message, if HOMING_SCRIPTED_STAYS is set, until it fails or nobody has anything to
//! say. The lines it speaks are described in `protocol`. Its memory is HOME/memory/NATIVE.json, replaced as a whole; the
//! daemon's log is never looked at. If HOMING_SCRIPTED_LOG names a file, it appends `up` when it comes up, `start` when it begins to
//! act on the message and `end` with an outcome when it is done, each by one write, so that a `kill -9` cannot tear one.

use std::fs::File;
use std::io::{self, BufRead, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use agent::scripted::{HANGING, Memory, Script, ScriptStep, added, answered, model, question};
use agent::{Attachment, FileChangeKind, Form, QuestionAnswer, Trouble};
use kernel::Failure;
use serde_json::json;

use super::protocol::{AgentLine, AttachmentLine, DriverLine, FenceLine, line, shown};
use super::{
    COMMANDS_VARIABLE, FALLBACK_VARIABLE, FORK, LISTS_VARIABLE, LOG_VARIABLE, MODEL_VARIABLE,
    MODELS_VARIABLE, STAYS_VARIABLE,
};

/// The variable by which it tells itself, across an `exec`, that it hangs, and with which words.
const HANGS_VARIABLE: &str = "HOMING_SCRIPTED_HANGS";
/// Lines that were heard and not yet heeded. One message and its answers are far fewer.
const HEARD_MAX: usize = 64;

/// The most output of one `!run` that is said.
const RUN_BYTES_MAX: u64 = 256 * 1024;
/// The longest id of a conversation. Ours have 36 characters.
const ID_BYTES_MAX: usize = 64;

/// `homing scripted-agent`. Call it before anything that starts a thread.
pub fn scripted_agent() -> ExitCode {
    let mut arguments = std::env::args().skip(2);
    let Some(home) = arguments.next() else {
        eprintln!("usage: scripted-agent HOME [NATIVE [fork]]");
        return ExitCode::FAILURE;
    };
    let memories = PathBuf::from(home).join("memory");
    let mut body = ScriptedProcess {
        memories,
        native: String::new(),
        message: CurrentMessage::from_environment(),
        ears: InputReader::open(),
        model: "",
        lists_at: None,
    };
    let (resumed, is_fork) = (arguments.next(), arguments.next().as_deref() == Some(FORK));
    let lived = match std::env::var(HANGS_VARIABLE) {
        Ok(words) => body.hang(resumed, words),
        Err(_) => body.live(resumed, is_fork),
    };
    match lived {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("scripted agent: {why}");
            ExitCode::FAILURE
        }
    }
}

struct ScriptedProcess {
    memories: PathBuf,
    native: String,
    message: CurrentMessage,
    ears: InputReader,
    /// The model it uses.
    model: &'static str,
    /// When it lists its commands, if it has not.
    lists_at: Option<Instant>,
}

/// The lines that it is told, heard by a thread of its own.
struct InputReader(Receiver<io::Result<DriverLine>>);

impl InputReader {
    fn open() -> Self {
        let (tell, told) = sync_channel(HEARD_MAX);
        std::thread::spawn(move || {
            for text in io::stdin().lock().lines() {
                let heard = text.and_then(|text| Ok(serde_json::from_str(&text)?));
                if tell.send(heard).is_err() {
                    return;
                }
            }
        });
        Self(told)
    }

    /// The next thing it is told, or that nobody will tell it anything more.
    fn hear(&self) -> io::Result<Option<DriverLine>> {
        self.0.recv().ok().transpose()
    }

    /// The same until then; nothing if it is that late. When nobody will say anything more, it waits all the same.
    fn hear_until(&self, until: Instant) -> io::Result<Option<DriverLine>> {
        let rest = until.saturating_duration_since(Instant::now());
        match self.0.recv_timeout(rest) {
            Ok(heard) => heard.map(Some),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                std::thread::sleep(rest);
                Ok(None)
            }
        }
    }
}

/// The message it is here for, and of which attempt that is.
struct CurrentMessage {
    id: String,
    fence: Option<FenceLine>,
}

impl CurrentMessage {
    /// The message it was started for.
    fn from_environment() -> Self {
        let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
        let fence = || {
            let (term, epoch) = (number("HOMING_TERM")?, number("HOMING_EPOCH")?);
            Some(FenceLine { term, epoch, turn: number("HOMING_TURN")?, attempt: number("HOMING_ATTEMPT")? })
        };
        Self { id: std::env::var("HOMING_MESSAGE").unwrap_or_default(), fence: fence() }
    }
}

impl ScriptedProcess {
    fn live(&mut self, resumed: Option<String>, is_fork: bool) -> io::Result<()> {
        std::fs::create_dir_all(&self.memories)?;
        let opened = self.open(resumed, is_fork)?.and_then(|()| self.choose());
        self.log("up", "")?;
        if let Err(trouble) = opened {
            return say(&failed(&trouble));
        }
        std::thread::sleep(wait_of(MODELS_VARIABLE));
        wait_at_pipe()?;
        let wait = wait_of(COMMANDS_VARIABLE);
        self.lists_at = (!wait.is_zero()).then(|| Instant::now() + wait);
        self.say_about()?;
        say(&AgentLine::Ready { native: self.native.clone() })?;
        let stays = std::env::var_os(STAYS_VARIABLE).is_some();
        // Nobody has anything to say: that is fine, too.
        while let Some((text, attachments)) = self.hear_message()? {
            if !self.heed(&text, &attachments)? || !stays {
                break;
            }
        }
        Ok(())
    }

    /// Acts on a message, and answers whether that went well.
    fn heed(&mut self, text: &str, attachments: &[Attachment]) -> io::Result<bool> {
        self.log("start", "")?;
        let last = match self.act(text, attachments)? {
            None => AgentLine::Finished { native: self.native.clone() },
            Some(trouble) => failed(&trouble),
        };
        let outcome =
            if let AgentLine::Failed { kind, .. } = &last { json!(kind) } else { json!("finished") };
        self.log("end", outcome.as_str().unwrap_or_default())?;
        say(&last)?;
        Ok(matches!(last, AgentLine::Finished { .. }))
    }

    fn hear_message(&mut self) -> io::Result<Option<(String, Vec<Attachment>)>> {
        loop {
            let heard = match self.lists_at {
                None => self.ears.hear()?,
                Some(at) => match self.ears.hear_until(at)? {
                    Some(heard) => Some(heard),
                    None => {
                        self.lists_at = None;
                        self.say_about()?;
                        continue;
                    }
                },
            };
            match heard {
                Some(DriverLine::Message { id, text, attachments, fence }) => {
                    self.message = CurrentMessage { id, fence: fence.or(self.message.fence) };
                    return Ok(Some((text, attached(attachments)?)));
                }
                Some(DriverLine::Knock) => say(&AgentLine::Here)?,
                Some(DriverLine::More { id, .. }) => say(&AgentLine::Steered { id, taken: false })?,
                Some(DriverLine::Answer { .. }) => {}
                None => return Ok(None),
            }
        }
    }

    fn say_about(&self) -> io::Result<()> {
        say(&AgentLine::About { model: self.model.to_owned(), has_commands: self.lists_at.is_none() })
    }

    /// Chooses its model: the one that was chosen, unless it was told to use another.
    fn choose(&mut self) -> Result<(), Trouble> {
        let chosen = |name: &str| std::env::var(name).ok();
        model(chosen(MODEL_VARIABLE).as_deref())?;
        let used = chosen(FALLBACK_VARIABLE).or_else(|| chosen(MODEL_VARIABLE));
        self.model = model(used.as_deref())?;
        Ok(())
    }

    fn open(&mut self, resumed: Option<String>, is_fork: bool) -> io::Result<Result<(), Trouble>> {
        let Some(native) = resumed else {
            self.native = mint()?;
            self.keep(&Memory::default())?;
            return Ok(Ok(()));
        };
        self.native = native;
        let Some(mut memory) = self.remembered()? else {
            let detail = format!("there is no conversation {:?}", self.native);
            return Ok(Err(Trouble::new(Failure::Gone, detail)));
        };
        let woken = memory.wake();
        if woken.is_err() {
            self.keep(&memory)?;
        } else if is_fork {
            self.native = mint()?;
            self.keep(&memory)?;
        }
        Ok(woken)
    }

    /// Carries out the script; answers how it failed, if it did.
    fn act(&mut self, text: &str, attachments: &[Attachment]) -> io::Result<Option<Trouble>> {
        let memory = self.remembered()?.unwrap_or_default();
        let mut script = Script::new(&memory, text, attachments, self.lists_at.is_none());
        let (mut questions, mut said, mut paced_from) = (0_u64, 0, Instant::now());
        while let Some(step) = script.next() {
            let words = match step {
                ScriptStep::Say(words) => words,
                ScriptStep::Ask { tool, form } => {
                    questions += 1;
                    let answer = self.ask(format!("q{questions}"), &tool, &form, &mut script)?;
                    script.line(&answered(&tool, &form, &answer))
                }
                ScriptStep::Warn { text } => {
                    say(&AgentLine::Warning { text })?;
                    continue;
                }
                ScriptStep::Show(event) => {
                    shown(event).map_or(Ok(()), |line| say(&line))?;
                    continue;
                }
                ScriptStep::Change { path, content } => match change(&path, content) {
                    Ok(change) => {
                        say(&AgentLine::FileChanged { path, change: change.into() })?;
                        continue;
                    }
                    Err(why) => script.line(&format!("{path}: {why}")),
                },
                ScriptStep::Run { command } => script.line(run(&command)?.trim_end()),
                ScriptStep::ForkBomb { count } => script.line(&fork_bomb(count)?),
                ScriptStep::Directory => script.line(&std::env::current_dir()?.to_string_lossy()),
                ScriptStep::Fail(trouble) => return Ok(Some(trouble)),
                ScriptStep::Crash => crash(),
                ScriptStep::Hang => return Err(self.become_deaf(&script.line(HANGING))),
                ScriptStep::Sleep { ms } => {
                    self.listen(Instant::now() + Duration::from_millis(ms), &mut script)?;
                    continue;
                }
                ScriptStep::StartPace => {
                    paced_from = Instant::now();
                    continue;
                }
                ScriptStep::KeepPace { ms } => {
                    self.listen(paced_from + Duration::from_millis(ms), &mut script)?;
                    continue;
                }
                ScriptStep::NewId
                | ScriptStep::Remember
                | ScriptStep::Forget
                | ScriptStep::FailStarts { .. } => {
                    self.remember(step, text)?;
                    continue;
                }
            };
            said += 1;
            say(&AgentLine::Text { text: words })?;
        }
        self.listen(Instant::now(), &mut script)?;
        say(&AgentLine::Usage { input: text.split_whitespace().count() as u64, output: said })?;
        Ok(None)
    }

    fn remember(&mut self, step: ScriptStep, text: &str) -> io::Result<()> {
        let mut memory = self.remembered()?.unwrap_or_default();
        match step {
            ScriptStep::Forget => return std::fs::remove_file(self.path()),
            ScriptStep::NewId => self.native = mint()?,
            ScriptStep::FailStarts { failure: Failure::Busy, count } => memory.starts_busy = count,
            ScriptStep::FailStarts { count, .. } => memory.starts_failing = count,
            _ => memory.messages.push(text.to_owned()),
        }
        self.keep(&memory)?;
        if step == ScriptStep::NewId {
            say(&AgentLine::Native { native: self.native.clone() })
        } else {
            Ok(())
        }
    }

    fn ask(&self, key: String, tool: &str, form: &Form, script: &mut Script) -> io::Result<QuestionAnswer> {
        let (tool, detail) = (tool.to_owned(), question(tool, form));
        say(&AgentLine::Asked { question: key.clone(), tool, detail, form: form.into() })?;
        loop {
            match self.ears.hear()? {
                Some(DriverLine::Answer { question, answer }) if question == key => return Ok(answer.into()),
                Some(heard) => self.take_more(heard, script)?,
                None => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
    }

    /// Does nothing until then, but for what is added to the turn.
    fn listen(&self, until: Instant, script: &mut Script) -> io::Result<()> {
        while let Some(heard) = self.ears.hear_until(until)? {
            self.take_more(heard, script)?;
        }
        Ok(())
    }

    fn take_more(&self, heard: DriverLine, script: &mut Script) -> io::Result<()> {
        let DriverLine::More { id, text, attachments } = heard else { return Ok(()) };
        let text = added(&text, &attached(attachments)?);
        say(&AgentLine::Steered { id, taken: true })?;
        if let Some(mut memory) = self.remembered()? {
            memory.add(&text);
            self.keep(&memory)?;
        }
        say(&AgentLine::Text { text: script.aside(&text) })
    }

    /// Becomes a process that is deaf to polite signals, which only a shell can make of it: what is ignored stays ignored
    /// across an `exec`. Comes back only if it cannot.
    fn become_deaf(&self, words: &str) -> io::Error {
        let exe = match std::env::current_exe() {
            Ok(exe) => exe,
            Err(why) => return why,
        };
        let home = self.memories.parent().unwrap_or(&self.memories);
        let mut shell = Command::new("sh");
        shell.args(["-c", "trap '' TERM INT HUP; exec \"$0\" \"$@\""]).arg(exe);
        shell.arg("scripted-agent").arg(home).arg(&self.native).env(HANGS_VARIABLE, words).exec()
    }

    /// Says so and does nothing more, but for taking what is added to the turn.
    fn hang(&mut self, native: Option<String>, words: String) -> io::Result<()> {
        self.native = native.unwrap_or_default();
        say(&AgentLine::Text { text: words })?;
        let mut script = Script::new(&Memory::default(), "", &[], false);
        script.line("");
        while let Some(heard) = self.ears.hear()? {
            self.take_more(heard, &mut script)?;
        }
        loop {
            std::thread::park();
        }
    }

    /// The memory of this conversation; nothing if there is none. A damaged memory is an error, not an empty one.
    fn remembered(&self) -> io::Result<Option<Memory>> {
        let is_id = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if self.native.is_empty() || self.native.len() > ID_BYTES_MAX || !self.native.bytes().all(is_id) {
            return Ok(None);
        }
        match std::fs::read(self.path()) {
            Ok(text) => Ok(Some(serde_json::from_slice(&text)?)),
            Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(why) => Err(why),
        }
    }

    fn keep(&self, memory: &Memory) -> io::Result<()> {
        let new = self.path().with_extension(format!("new-{}", std::process::id()));
        std::fs::write(&new, serde_json::to_vec(memory)?)?;
        std::fs::rename(&new, self.path())
    }

    fn path(&self) -> PathBuf {
        self.memories.join(format!("{}.json", self.native))
    }

    fn log(&self, event: &str, outcome: &str) -> io::Result<()> {
        let Some(path) = std::env::var_os(LOG_VARIABLE) else { return Ok(()) };
        let fence = self.message.fence;
        let time_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
        let entry = json!({
            "event": event,
            "session": std::env::var("HOMING_SESSION").unwrap_or_default(),
            "turn": fence.map(|fence| fence.turn),
            "attempt": fence.map(|fence| fence.attempt),
            "term": fence.map(|fence| fence.term),
            "epoch": fence.map(|fence| fence.epoch),
            "message": self.message.id,
            "pid": std::process::id(),
            "time_ms": u64::try_from(time_ms).unwrap_or(u64::MAX),
            "native": self.native,
            "outcome": outcome,
        });
        File::options().create(true).append(true).open(path)?.write_all(&line(&entry))
    }
}

/// The things that were handed over with a message.
fn attached(lines: Vec<AttachmentLine>) -> io::Result<Vec<Attachment>> {
    lines.into_iter().map(|line| Attachment::try_from(line).map_err(io::Error::other)).collect()
}

/// Waits for a line from the pipe that the variable names, if there is one. Of several that wait, each gets a line.
fn wait_at_pipe() -> io::Result<()> {
    let Some(path) = std::env::var_os(LISTS_VARIABLE) else { return Ok(()) };
    let mut pipe = match File::open(path) {
        Ok(pipe) => pipe,
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(why) => return Err(why),
    };
    let mut byte = [0];
    while byte != *b"\n" {
        // Nobody is at the other end any more: nobody wants it to wait.
        if pipe.read(&mut byte)? == 0 {
            break;
        }
    }
    Ok(())
}

/// The wait that this variable asks for.
fn wait_of(variable: &str) -> Duration {
    let ms = std::env::var(variable).ok().and_then(|ms| ms.parse().ok()).unwrap_or(0);
    Duration::from_millis(ms)
}

fn say(said: &AgentLine) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(&line(said))?;
    stdout.flush()
}

fn failed(trouble: &Trouble) -> AgentLine {
    AgentLine::Failed { kind: trouble.failure.into(), detail: trouble.detail.clone() }
}

/// Runs it in a shell and answers what it printed.
fn run(command: &str) -> io::Result<String> {
    let call = "run".to_owned();
    say(&AgentLine::ToolCall { call: call.clone(), tool: "shell".to_owned(), input: command.to_owned() })?;
    // One pipe for both, so that the order of what it prints is kept.
    let (mut printed, pipe) = io::pipe()?;
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).stdin(Stdio::null()).stdout(pipe.try_clone()?).stderr(pipe);
    let mut child = shell.spawn()?;
    drop(shell);
    let mut bytes = Vec::new();
    printed.by_ref().take(RUN_BYTES_MAX).read_to_end(&mut bytes)?;
    io::copy(&mut printed, &mut io::sink())?;
    let failed = !child.wait()?.success();
    let output = String::from_utf8_lossy(&bytes).into_owned();
    say(&AgentLine::ToolResult { call, output: output.clone(), failed })?;
    Ok(output)
}

/// Writes this into the file, or removes it, and answers what that was.
fn change(path: &str, content: Option<String>) -> io::Result<FileChangeKind> {
    let path = Path::new(path);
    let Some(content) = content else {
        std::fs::remove_file(path)?;
        return Ok(FileChangeKind::Removed);
    };
    if let Some(above) = path.parent() {
        std::fs::create_dir_all(above)?;
    }
    let is_new = !path.exists();
    std::fs::write(path, content)?;
    Ok(if is_new { FileChangeKind::Added } else { FileChangeKind::Edited })
}

/// Children that nobody waits for, in sessions of their own, deaf to polite signals: what careless tools leave behind.
fn fork_bomb(count: u64) -> io::Result<String> {
    let child = "trap '' TERM INT HUP; exec sleep 100000";
    let script = r#"i=0; while [ $i -lt "$1" ]; do (setsid sh -c "$2" </dev/null >/dev/null 2>&1 &); i=$((i+1)); done"#;
    let status = Command::new("sh").args(["-c", script, "fork-bomb", &count.to_string(), child]).status()?;
    Ok(format!("started {count} children ({status})"))
}

/// As sudden as it gets.
fn crash() -> ! {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    std::process::abort()
}

/// A random id in the form of a version 4 UUID.
fn mint() -> io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok([&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-"))
}
