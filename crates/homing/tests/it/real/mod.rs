//! The whole product with real agents in front of the stub model: the same stories for each of them.
//!
//! `remember` is who knows what, `forget` is an agent that loses its conversations, `die` is who may be killed, `fail` is what a model
//! server may do, `newcomer` is an agent that nobody has set up, `ask` is questions, `unasked` is settings by which nobody would be asked, `manage` is what people do with a session beside talking, `sandbox` is what codex brings along, `home` what a team's agents have of a person's home. What held is in a `table` of docs/agents.md. The other stories are written once and told of every agent, so an agent that needs an exception says so here.

mod ask;
mod die;
mod fail;
mod forget;
mod home;
mod manage;
mod newcomer;
mod remember;
mod sandbox;
mod table;
mod unasked;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::{AgentFixture, Homing, RealAgent};

use crate::{setup, text};

/// The longest that a turn may take here: some agents take seconds to start, and other tests run beside us.
const TURN_WAIT: Duration = Duration::from_secs(120);

/// The time between two looks of `until`.
const LOOK_PAUSE: Duration = Duration::from_millis(20);

/// One test for each agent, whose cell of the table says that it held.
macro_rules! each_agent {
    ($($story:ident)*) => {
        $(mod $story {
            use super::super::table::held;
            use testkit::RealAgent::{
                self, Claude, ClaudeAgentAcp, Codex, CodexAcp, Gemini, Goose, Kimi, OpenCode, Qwen,
            };
            fn tell(agent: RealAgent) {
                super::$story(agent);
                held(agent, stringify!($story));
            }
            #[test] fn claude() { tell(Claude); }
            #[test] fn codex() { tell(Codex); }
            #[test] fn opencode() { tell(OpenCode); }
            #[test] fn claude_agent_acp() { tell(ClaudeAgentAcp); }
            #[test] fn goose() { tell(Goose); }
            #[test] fn gemini() { tell(Gemini); }
            #[test] fn qwen() { tell(Qwen); }
            #[test] fn kimi() { tell(Kimi); }
            #[test] fn codex_acp() { tell(CodexAcp); }
        })*
    };
}
pub(crate) use each_agent;

/// A server with one real agent.
struct Trial {
    // First, so that the server and its agents are gone before their homes are.
    homing: Homing,
    stage: AgentFixture,
}

/// The agent's manner: asking before it acts, or not.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Acts {
    AfterAsking,
    AtOnce,
}

impl Trial {
    fn new(agent: RealAgent, acts: Acts) -> Self {
        Self::with(agent, acts, "", None)
    }

    /// With more configuration, and perhaps another program before the agent's own.
    fn with(agent: RealAgent, acts: Acts, more: &str, before: Option<&Path>) -> Self {
        Self::on(AgentFixture::new(agent), acts, more, before)
    }

    fn on(stage: AgentFixture, acts: Acts, more: &str, before: Option<&Path>) -> Self {
        let config = format!("{}\n{more}", configuration(&stage, acts, before));
        let project = stage.directory();
        let around =
            project.parent().and_then(Path::to_str).expect("it lies in a directory with a plain name");
        // The stage is not below the server's own directory.
        Self {
            homing: setup().for_real_agents().config(&config).variable("HOMING_ROOTS", around).start(),
            stage,
        }
    }

    /// Where a session is made, if it is not there.
    fn to(&self, conversation: &str, directory: &Path) -> Value {
        let made = json!({ "agent": self.stage.agent.name(), "directory": directory });
        json!({ "conversation": format!("api:test/{conversation}"), "if_new": made })
    }

    /// Says something in the usual directory, and answers the receipt when it is final.
    #[track_caller]
    fn say(&self, conversation: &str, text: &str) -> Value {
        self.say_in(conversation, &self.stage.directory(), text)
    }

    #[track_caller]
    fn say_in(&self, conversation: &str, directory: &Path, words: &str) -> Value {
        let http = self.homing.http();
        let receipt = http.send(&self.to(conversation, directory), words);
        http.until_final_within(&text(&receipt, "id"), TURN_WAIT)
    }

    /// The same where it takes longer than a turn.
    #[track_caller]
    fn say_within(&self, wait: Duration, conversation: &str, words: &str) -> Value {
        let receipt = self.begin(conversation, words);
        self.homing.http().until_final_within(&text(&receipt, "id"), wait)
    }

    /// Says something, and answers what the agent said.
    #[track_caller]
    fn answer(&self, conversation: &str, words: &str) -> String {
        answer_of(&self.say(conversation, words))
    }

    /// The first word that was kept in a conversation is known. An agent that forgets is told again what was said, its own words
    /// among it, so it may know a word twice.
    #[track_caller]
    fn assert_recalls(&self, conversation: &str, word: &str) {
        let end = if self.stage.agent.forgets() { "" } else { " [turn=" };
        let known = self.answer(conversation, "RECALL");
        assert!(known.starts_with(&format!("RECALL: {word}{end}")), "{known}");
    }

    /// Says something and does not wait.
    #[track_caller]
    fn begin(&self, conversation: &str, text: &str) -> Value {
        self.homing.http().send(&self.to(conversation, &self.stage.directory()), text)
    }

    /// All facts of a session.
    #[track_caller]
    fn facts(&self, session: &str) -> Vec<Value> {
        let mut facts: Vec<Value> = Vec::new();
        loop {
            let after = facts.last().map_or(0, |fact| fact["number"].as_u64().expect("a number"));
            let path = format!("/api/v1/sessions/{session}/facts?after={after}&limit=200");
            let page = self.homing.http().get(&path).expect(200);
            let items = page["items"].as_array().expect("a page has items").clone();
            if items.is_empty() {
                return facts;
            }
            facts.extend(items);
        }
    }

    /// The facts of one kind.
    #[track_caller]
    fn facts_of(&self, session: &str, kind: &str) -> Vec<Value> {
        self.facts(session).into_iter().filter(|fact| fact["type"] == kind).collect()
    }

    /// The agent's own id for a session's conversation.
    #[track_caller]
    fn native(&self, session: &str) -> String {
        let confirmed = self.facts_of(session, "confirmed");
        text(confirmed.last().expect("the agent has confirmed its id"), "native")
    }

    /// Lets the agent run a command with its own tool, and answers when that has begun: the command says so.
    #[track_caller]
    fn begin_command(&self, conversation: &str, command: &str) -> Value {
        let mark = self.mark();
        let receipt = self.begin(conversation, &format!("TOOL:bash:touch {}; {command}", mark.display()));
        until("the command runs", || mark.exists().then_some(()));
        receipt
    }

    fn mark(&self) -> PathBuf {
        let number = std::fs::read_dir(self.homing.root()).expect("it is there").count();
        self.homing.root().join(format!("mark-{number}"))
    }
}

/// Looks until there is something, for as long as a turn may take: an agent may have to start first.
#[track_caller]
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(began.elapsed() < TURN_WAIT, "waited {TURN_WAIT:?} in vain: {what}");
        std::thread::sleep(LOOK_PAUSE);
    }
}

/// The answer of the agent, if it finished.
#[track_caller]
fn answer_of(receipt: &Value) -> String {
    assert_eq!(receipt["state"], "answered", "{receipt}");
    text(receipt, "answer")
}

fn configuration(stage: &AgentFixture, acts: Acts, before: Option<&Path>) -> String {
    let agent = stage.agent;
    let (kind, quirks) = match agent {
        RealAgent::Claude => ("claude", None),
        RealAgent::Codex => ("codex", None),
        RealAgent::OpenCode => ("opencode", None),
        RealAgent::ClaudeAgentAcp
        | RealAgent::Goose
        | RealAgent::Gemini
        | RealAgent::Qwen
        | RealAgent::Kimi
        | RealAgent::CodexAcp => ("acp", Some(agent.name())),
    };
    // What makes it speak ACP is known of each agent, so it need not be configured.
    let (program, mut args) = (stage.program(), Vec::<String>::new());
    let program = before.map_or(program.clone(), |before| {
        args.insert(0, program);
        before.to_str().expect("the path is text").to_owned()
    });
    let mut env = stage.env();
    if acts == Acts::AtOnce {
        // What these two want to be told before they act without asking.
        env.push(("IS_SANDBOX".to_owned(), "1".to_owned()));
        env.retain(|(name, _)| name != "GOOSE_MODE");
        env.push(("GOOSE_MODE".to_owned(), "auto".to_owned()));
    }
    let mut toml =
        format!("default_agent = {name:?}\n[agents.{name}]\nkind = {kind:?}\n", name = agent.name());
    let _ = writeln!(toml, "program = {program:?}\nargs = {args:?}\nhome = {:?}", stage.home());
    let _ = writeln!(toml, "bypass = {}", acts == Acts::AtOnce);
    if let Some(quirks) = quirks {
        let _ = writeln!(toml, "quirks.base = {quirks:?}");
    }
    let _ = writeln!(toml, "[agents.{}.env]", agent.name());
    for (name, value) in env {
        let _ = writeln!(toml, "{name} = {value:?}");
    }
    toml
}
