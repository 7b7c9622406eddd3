//! A real agent on trial: wishes become directives of the stub model, weather its switches, and blows signals.

use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use agent::conformance::{Blow, Candidate, Cannot, Dialect, FACTS, StoryResult, Weather, Wish};
use agent::{Abilities, Agent, FilesTaken, MemoryMove, Presence, TreeName};
use kernel::{GroundPath, Native, SessionId};
use processes::count_marked;
use rustix::process::{Pid, Signal, kill_process};
use testkit::{AgentFixture, RealAgent, eventually, leftovers};

use super::table;
use crate::bench::{count_children, ground};

/// More than any pipe or channel between an agent and us holds.
const FLOOD_WORDS: u32 = 30_000;
/// The longest that a story waits for one thing. Agents come up slowly on a busy machine, and Qwen tries seven times to reach a
/// server that has too much to do.
const PATIENCE_MS: u64 = 150_000;
/// The time for which we watch a program that is known to stay although its input has ended. One that is known to go
/// has as long as it takes.
const STAY_WAIT: Duration = Duration::from_secs(20);
/// The reason why agents that keep their conversations in a database cannot be told some stories.
const DATABASE: &str = "its conversations are in a database";
/// The story that nobody can make a real agent tell.
const ONLY_SCRIPTED: &str = "the model cannot make it do so";

pub(crate) struct Real {
    agent: Box<dyn Agent>,
    stage: AgentFixture,
    notes: Mutex<Vec<(&'static str, String)>>,
    asked: AtomicU32,
}

impl Real {
    pub(crate) fn new(which: RealAgent, make: fn(&AgentFixture) -> Box<dyn Agent>) -> Self {
        let stage = AgentFixture::new(which);
        Self { agent: make(&stage), stage, notes: Mutex::default(), asked: AtomicU32::new(0) }
    }

    /// Everything that can be known without a turn.
    pub(crate) async fn is_what_the_table_says(&self) {
        let Presence::Here { version } = self.agent.look().await else { panic!("it is not here") };
        let seen = [
            ("version", version),
            ("abilities", abilities(self.agent.abilities())),
            ("when its input ends", self.when_its_input_ends().await),
        ];
        self.nothing_is_left();
        table::check(self.stage.agent, &seen.map(|(row, seen)| (row.to_owned(), seen)));
    }

    /// Starts the program without us, says nothing and looks whether it goes.
    async fn when_its_input_ends(&self) -> String {
        let patience = Duration::from_millis(PATIENCE_MS);
        let (arguments, wait): (&[&str], _) = match self.name() {
            RealAgent::Claude => (
                &["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"],
                patience,
            ),
            RealAgent::Codex => (&["app-server"], patience),
            RealAgent::OpenCode => (&["serve", "--hostname", "127.0.0.1", "--port", "0"], STAY_WAIT),
            RealAgent::ClaudeAgentAcp => (&[], patience),
            RealAgent::Goose => (&["acp"], STAY_WAIT),
            RealAgent::Kimi => (&["acp"], patience),
            RealAgent::Gemini | RealAgent::Qwen => (&["--acp"], patience),
            RealAgent::CodexAcp => (&[], STAY_WAIT),
        };
        let mut program = tokio::process::Command::new(self.stage.program());
        program.args(arguments).env_clear().envs(self.stage.env()).env("HOME", self.stage.home());
        program.env("PATH", std::env::var_os("PATH").unwrap()).current_dir(self.stage.directory());
        program.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut program = program.spawn().unwrap();
        if let Ok(gone) = tokio::time::timeout(wait, program.wait()).await {
            gone.unwrap();
            return "it goes".to_owned();
        }
        program.kill().await.unwrap();
        "it stays".to_owned()
    }

    fn name(&self) -> RealAgent {
        self.stage.agent
    }

    /// A command that runs wherever the agent lets it, sandboxes aside.
    fn command(&self, command: &str) -> String {
        match self.name() {
            RealAgent::Codex | RealAgent::CodexAcp => {
                let arguments = serde_json::json!({
                    "cmd": command,
                    "sandbox_permissions": "require_escalated",
                    "justification": "may I?",
                });
                format!("TOOL:raw:exec_command:{arguments}")
            }
            _ => format!("TOOL:bash:{command}"),
        }
    }

    /// The tool by which the model asks a person something.
    fn survey(&self) -> Result<String, Cannot> {
        let tool = match self.name() {
            RealAgent::Claude => "AskUserQuestion",
            RealAgent::OpenCode => "question",
            RealAgent::Codex => return Err(Cannot::because("its model is not offered that tool")),
            RealAgent::ClaudeAgentAcp
            | RealAgent::Goose
            | RealAgent::Gemini
            | RealAgent::Qwen
            | RealAgent::Kimi
            | RealAgent::CodexAcp => {
                return Err(Cannot::because("the protocol has no choices"));
            }
        };
        let option = |label: &str| serde_json::json!({"label": label, "description": "a colour"});
        let questions = serde_json::json!({"questions": [{
            "id": "colour",
            "question": "Which one?",
            "header": "Colour",
            "multiSelect": false,
            "options": [option("red"), option("blue")],
        }]});
        Ok(format!("TOOL:raw:{tool}:{questions}"))
    }

    fn directive(&self, wish: Wish<'_>) -> Result<String, Cannot> {
        Ok(match wish {
            Wish::Keep(_) => unreachable!("words are no directives"),
            Wish::Recall => "RECALL".to_owned(),
            Wish::Words(count) => format!("WORDS:{count}"),
            Wish::Stream(count) => format!("CHUNKS:{count}:3"),
            Wish::Flood => format!("WORDS:{FLOOD_WORDS}"),
            Wish::Dawdle | Wish::Crash | Wish::Hang => "CHUNKS:1200:100".to_owned(),
            Wish::Linger => "CHUNKS:80:100".to_owned(),
            Wish::Choose => self.survey()?,
            Wish::AskWords => return Err(Cannot::because("it asks for words only beside options")),
            Wish::Ask => {
                let number = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
                self.command(&format!("echo yes > asked-{number}"))
            }
            Wish::Write if matches!(self.name(), RealAgent::Codex | RealAgent::CodexAcp) => {
                return Err(Cannot::because("in its sandbox it writes below its directory without asking"));
            }
            Wish::Write => {
                let number = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
                let file = self.stage.directory().join(format!("asked-{number}"));
                format!("TOOL:write:{}:yes", file.display())
            }
            Wish::Directory => "TOOL:bash:pwd".to_owned(),
            Wish::Children(count) => self.command(&children(count, "echo started")),
            Wish::ChildrenAndDawdle(count) => self.command(&children(count, "echo started; sleep 600")),
            Wish::NewId => return Err(Cannot::because("it keeps its ids")),
            Wish::Fail(_) | Wish::FailAfter | Wish::FailStarts { .. } => {
                return Err(Cannot::because(ONLY_SCRIPTED));
            }
        })
    }

    /// Everything that has anything to do with this stage is gone.
    fn nothing_is_left(&self) {
        // A supervisor says that everything is gone, and then goes itself.
        let home = self.stage.home();
        eventually("nothing is left", || leftovers(home.parent().unwrap(), &[]).is_empty().then_some(()));
    }
}

impl Candidate for Real {
    fn agent(&self) -> &dyn Agent {
        self.agent.as_ref()
    }

    fn directory(&self) -> GroundPath {
        ground(self.stage.directory())
    }

    fn elsewhere(&self) -> GroundPath {
        ground(self.stage.another_directory("elsewhere"))
    }

    fn model_used(&self) -> Option<String> {
        self.stage.model.turns().last().map(|asked| asked.model.clone())
    }

    fn session(&self) -> SessionId {
        let mut bytes = [0; 16];
        std::io::Read::read_exact(&mut std::fs::File::open("/dev/urandom").unwrap(), &mut bytes).unwrap();
        SessionId::from_bits(u128::from_le_bytes(bytes) >> 1)
    }

    fn left(&self, tree: &TreeName) -> usize {
        count_marked(tree, &self.stage.locks())
    }

    fn children(&self, tree: &TreeName) -> usize {
        count_children(tree)
    }

    fn dialect(&self) -> &dyn Dialect {
        self
    }

    fn storm(&self, weather: Weather, wishes: &[Wish<'_>]) -> Result<String, Cannot> {
        let text = self.phrase(wishes)?;
        let model = &self.stage.model;
        Ok(match weather {
            Weather::NoServer => {
                model.refuse();
                text
            }
            Weather::Unauthorized => {
                model.answer_all(Some(401));
                text
            }
            Weather::TooMany => {
                model.answer_all(Some(429));
                text
            }
            Weather::Overloaded => {
                model.answer_all(Some(529));
                text
            }
            Weather::Cut => format!("{text}\nDROP"),
            Weather::Garbled => format!("{text}\nMALFORMED"),
        })
    }

    fn hides(&self, weather: Weather) -> bool {
        match self.name() {
            // It asks its model for the rest.
            RealAgent::Qwen => matches!(weather, Weather::Cut),
            // It ends the turn with what came, and says nothing of the fault.
            RealAgent::Kimi => matches!(weather, Weather::Cut | Weather::Garbled),
            _ => false,
        }
    }

    fn calm(&self) {
        self.stage.model.answer_all(None);
        self.stage.model.listen();
    }

    fn lose(&self, native: &Native) -> Result<(), Cannot> {
        self.stage.lose(&native.id);
        Ok(())
    }

    fn tear(&self, native: &Native) -> Result<(), Cannot> {
        match self.name() {
            RealAgent::OpenCode | RealAgent::Goose => Err(Cannot::because(DATABASE)),
            _ => {
                self.stage.tear(&native.id, 30);
                Ok(())
            }
        }
    }

    fn strike(&self, tree: &TreeName, blow: Blow) -> Result<(), Cannot> {
        let blow = if blow == Blow::Kill { Signal::KILL } else { Signal::STOP };
        kill_process(self.main_process(tree), blow).unwrap();
        Ok(())
    }

    fn unknown_id(&self) -> String {
        match self.name() {
            RealAgent::Codex | RealAgent::CodexAcp => "01990000-dead-7000-8000-000000000000",
            RealAgent::OpenCode => "ses_0123456789deadABCDEFGHIJKL",
            RealAgent::Goose => "20200101_77",
            RealAgent::Claude
            | RealAgent::ClaudeAgentAcp
            | RealAgent::Gemini
            | RealAgent::Qwen
            | RealAgent::Kimi => "00000000-dead-4000-8000-000000000000",
        }
        .to_owned()
    }

    fn patience_ms(&self) -> u64 {
        PATIENCE_MS
    }

    fn note(&self, fact: &'static str, seen: &str) {
        assert!(FACTS.iter().any(|(known, _)| *known == fact), "{fact} is not in the table");
        let mut notes = self.notes.lock().unwrap();
        notes.retain(|(noted, _)| *noted != fact);
        notes.push((fact, seen.to_owned()));
    }

    fn told(&self, story: &'static str, told: StoryResult) {
        self.nothing_is_left();
        let notes = self.notes.lock().unwrap();
        let held = match told {
            Ok(()) => "yes".to_owned(),
            Err(Cannot(why)) => format!("– {why}"),
        };
        let facts = FACTS.iter().filter(|(_, of)| *of == story).map(|(fact, _)| {
            let noted = notes.iter().find(|(noted, _)| noted == fact);
            ((*fact).to_owned(), noted.map_or("–", |(_, seen)| seen).to_owned())
        });
        let rows: Vec<(String, String)> = facts.chain([(table::row_of(story), held)]).collect();
        table::check(self.name(), &rows);
    }
}

impl Real {
    /// The agent's own process.
    fn main_process(&self, tree: &TreeName) -> Pid {
        let lock = self.stage.locks().join(format!("{tree}.lock"));
        let holder: serde_json::Value = serde_json::from_slice(&std::fs::read(lock).unwrap()).unwrap();
        let supervisor = holder["pid"].as_i64().unwrap();
        let agent = testkit::agent_below(supervisor.try_into().unwrap()).expect("it has an agent");
        Pid::from_raw(agent.try_into().unwrap()).unwrap()
    }
}

impl Dialect for Real {
    fn phrase(&self, wishes: &[Wish<'_>]) -> Result<String, Cannot> {
        let (words, others): (Vec<Wish<'_>>, Vec<Wish<'_>>) =
            wishes.iter().partition(|wish| matches!(wish, Wish::Keep(_)));
        if others.len() > 1 {
            return Err(Cannot::because("the model does one thing in a turn"));
        }
        let mut lines: Vec<String> = words.iter().map(kept).collect();
        for wish in others {
            lines.push(self.directive(wish)?);
        }
        Ok(lines.join("\n"))
    }

    fn answer(&self, wishes: &[Wish<'_>], number: u32) -> String {
        match wishes.last() {
            Some(wish @ Wish::Keep(_)) => format!("ECHO: {} [turn={number}]", kept(wish)),
            Some(Wish::Words(count)) => numbered("word", *count),
            Some(Wish::Stream(count)) => numbered("chunk ", *count),
            Some(Wish::Flood) => numbered("word", FLOOD_WORDS),
            Some(Wish::Dawdle | Wish::Crash | Wish::Hang) => "chunk 1".to_owned(),
            other => panic!("the answer to {other:?} cannot be foreseen"),
        }
    }

    fn recalled(&self, answer: &str) -> Vec<String> {
        let (_, recalled) =
            answer.split_once("RECALL: ").unwrap_or_else(|| panic!("no recall in {answer:?}"));
        let (words, _) = recalled.split_once(" [turn=").unwrap_or((recalled, ""));
        words.split(", ").filter(|word| *word != "nothing").map(str::to_owned).collect()
    }

    fn was_done(&self, _answer: &str) -> bool {
        let number = self.asked.load(Ordering::Relaxed);
        self.stage.directory().join(format!("asked-{number}")).exists()
    }
}

fn kept(wish: &Wish<'_>) -> String {
    match wish {
        Wish::Keep(word) => format!("CODE:{word}"),
        other => panic!("{other:?} is no word"),
    }
}

fn numbered(word: &str, count: u32) -> String {
    (1..=count).map(|number| format!("{word}{number}")).collect::<Vec<_>>().join(" ")
}

/// Double-forked, in sessions of their own, deaf to polite signals.
fn children(count: u32, then: &str) -> String {
    let child = "trap \"\" TERM INT HUP; exec sleep 100000";
    let one = format!("(setsid sh -c '{child}' </dev/null >/dev/null 2>&1 &)");
    format!("{}; {then}", vec![one; count as usize].join("; "))
}

fn abilities(abilities: Abilities) -> String {
    let Abilities {
        chosen_id,
        resume,
        fork,
        steer,
        asks,
        usage,
        commands,
        models,
        modes,
        images,
        files,
        forgets,
        memory,
    } = abilities;
    let has = [
        ("chosen id", chosen_id),
        ("resume", resume),
        ("fork", fork),
        ("steer", steer),
        ("asks", asks),
        ("usage", usage),
        ("commands", commands),
        ("models", models),
        ("modes", modes),
        ("images", images),
        ("PDF files", files == FilesTaken::Pdf),
        ("all files", files == FilesTaken::Any),
        ("forgets", forgets),
    ];
    let memory = match memory {
        MemoryMove::Resume => "memory resumes elsewhere",
        MemoryMove::Carry => "memory is carried along",
        MemoryMove::Replay => "memory is told again",
    };
    let names = has.into_iter().filter(|(_, has)| *has).map(|(name, _)| name);
    names.chain([memory]).collect::<Vec<_>>().join(", ")
}
