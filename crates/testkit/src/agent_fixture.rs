//! A stage for one real agent: its program, a home with its settings in it, a stub model to talk to, and a directory to
//! work in. Everything is below one temporary directory and on loopback.
//!
//! A program that is not there fails the test: what was not run was not tested. Nothing here starts an agent; a test
//! takes `program`, `args`, `env` and `home` and does so itself.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::StubModel;

/// The key every agent is given. The stub takes any.
const KEY: &str = "sk-stub";
/// The model every agent is told to use.
const MODEL: &str = "stub-1";
/// The model of codex-acp, whose answers begin with a warning where it does not know the model's name.
const CODEX_ACP_MODEL: &str = "gpt-5.5";
/// The ends of the variables by which an agent is set up. Without them it has no key, no provider or no model.
const SET_UP_BY: [&str; 3] = ["_KEY", "_PROVIDER", "_MODEL"];
/// The file in the cache of tools that says where the agents are.
const AGENTS_FILE: &str = "agents.env";

/// A real agent we test with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RealAgent {
    Claude,
    Codex,
    OpenCode,
    ClaudeAgentAcp,
    Goose,
    Gemini,
    Qwen,
    Kimi,
    CodexAcp,
}

impl RealAgent {
    /// All of them, each of which is told every story.
    pub const ALL: [Self; 9] = [
        Self::Claude,
        Self::Codex,
        Self::OpenCode,
        Self::ClaudeAgentAcp,
        Self::Goose,
        Self::Gemini,
        Self::Qwen,
        Self::Kimi,
        Self::CodexAcp,
    ];

    /// Its title, for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::OpenCode => "opencode",
            Self::ClaudeAgentAcp => "claude-agent-acp",
            Self::Goose => "goose",
            Self::Gemini => "gemini",
            Self::Qwen => "qwen",
            Self::Kimi => "kimi",
            Self::CodexAcp => "codex-acp",
        }
    }

    /// True if it loses its own conversations, so that we tell it again what was said.
    pub fn forgets(self) -> bool {
        self == Self::Gemini
    }

    /// Where it is: as its variable says, or as the cache of tools says. Panics where neither does.
    #[track_caller]
    pub fn program(self) -> PathBuf {
        let variable = format!("HOMING_TEST_{}", self.name().to_uppercase().replace('-', "_"));
        let said =
            std::env::var_os(&variable).map(PathBuf::from).or_else(|| in_cache(AGENTS_FILE, &variable));
        let remedy = "run `cargo xtask tools --agents`, or set the variable to where it is";
        let program = said.unwrap_or_else(|| panic!("{} is missing ({variable}); {remedy}", self.name()));
        assert!(program.is_file(), "{variable} says {}, which is no file; {remedy}", program.display());
        program
    }
}

/// The content that `cargo xtask tools` wrote into a file of its cache.
pub(crate) fn in_cache(file: &str, variable: &str) -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")))?;
    let written = fs::read_to_string(cache.join("homing-tools").join(file)).ok()?;
    let mut lines = written.lines().filter_map(|line| line.split_once('='));
    lines.find(|(name, _)| *name == variable).map(|(_, path)| PathBuf::from(path))
}

/// Where real agents have their homes. Not below `/tmp`: codex does not trust a home there, and leaves its sandbox out.
pub(crate) fn not_tmp() -> PathBuf {
    let usual = PathBuf::from("/var/tmp");
    if usual.is_dir() { usual } else { std::env::temp_dir() }
}

/// One real agent with everything it needs around it. Gone when it is dropped.
#[derive(Debug)]
pub struct AgentFixture {
    pub agent: RealAgent,
    /// The model it talks to.
    pub model: StubModel,
    place: TempDir,
    is_set_up: bool,
}

impl Drop for AgentFixture {
    /// Codex closes the `.git` of `/tmp` to what it starts, and bwrap makes that place if there is none: empty, and nobody's.
    fn drop(&mut self) {
        let _ = fs::remove_dir("/tmp/.git");
    }
}

impl AgentFixture {
    /// A new home and a new model for that agent.
    #[track_caller]
    pub fn new(agent: RealAgent) -> Self {
        Self::with(agent, true)
    }

    /// The same for an agent that nobody has set up: without a key, a provider or a model of its own. Whatever names a server still
    /// names the stub, so that nothing leaves this machine.
    #[track_caller]
    pub fn not_set_up(agent: RealAgent) -> Self {
        Self::with(agent, false)
    }

    #[track_caller]
    fn with(agent: RealAgent, is_set_up: bool) -> Self {
        let place = tempfile::tempdir_in(not_tmp()).expect("a temporary directory can be made");
        let stage = Self { agent, model: StubModel::start(), place, is_set_up };
        for directory in [stage.home(), stage.locks(), stage.directory()] {
            fs::create_dir_all(directory).expect("a directory can be made there");
        }
        stage.write_settings();
        stage
    }

    /// The program, as a path.
    #[track_caller]
    pub fn program(&self) -> String {
        text(&self.agent.program())
    }

    /// The arguments without which it does not speak ACP; none for those that do not.
    pub fn args(&self) -> Vec<String> {
        match self.agent {
            RealAgent::Goose | RealAgent::Kimi => vec!["acp".to_owned()],
            RealAgent::Gemini | RealAgent::Qwen => vec!["--acp".to_owned()],
            _ => Vec::new(),
        }
    }

    /// Its environment: the stub model, no telemetry, no updates, few retries. Without `HOME` and `PATH`.
    pub fn env(&self) -> Vec<(String, String)> {
        let (url, url_v1) = (self.model.url(), self.model.url_v1());
        let pairs: &[(&str, &str)] = match self.agent {
            RealAgent::Claude | RealAgent::ClaudeAgentAcp => &[
                ("ANTHROPIC_API_KEY", KEY),
                ("ANTHROPIC_BASE_URL", &url),
                ("DISABLE_TELEMETRY", "1"),
                ("DISABLE_AUTOUPDATER", "1"),
                ("DISABLE_ERROR_REPORTING", "1"),
                ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
                ("CLAUDE_CODE_MAX_RETRIES", "1"),
            ],
            RealAgent::Codex => &[("STUB_KEY", KEY)],
            // It wants a key although its settings name a server of their own.
            RealAgent::CodexAcp => &[("STUB_KEY", KEY), ("OPENAI_API_KEY", KEY)],
            RealAgent::Gemini => &[("GEMINI_API_KEY", KEY), ("GOOGLE_GEMINI_BASE_URL", &url)],
            RealAgent::Qwen => {
                &[("OPENAI_API_KEY", KEY), ("OPENAI_BASE_URL", &url_v1), ("OPENAI_MODEL", MODEL)]
            }
            RealAgent::Kimi => &[],
            RealAgent::OpenCode => &[
                ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
                ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
                ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
            ],
            RealAgent::Goose => &[
                ("GOOSE_PROVIDER", "openai"),
                ("GOOSE_MODEL", MODEL),
                ("GOOSE_MODE", "approve"),
                ("GOOSE_DISABLE_KEYRING", "1"),
                ("GOOSE_TELEMETRY_ENABLED", "false"),
                ("OPENAI_API_KEY", KEY),
                ("OPENAI_HOST", &url),
                ("OPENAI_BASE_PATH", "v1/chat/completions"),
            ],
        };
        let is_there =
            |(name, _): &&(&str, &str)| self.is_set_up || !SET_UP_BY.iter().any(|it| name.ends_with(it));
        let pairs = pairs.iter().filter(is_there);
        pairs.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    /// Its home, with its settings in it.
    pub fn home(&self) -> PathBuf {
        self.place.path().join("home")
    }

    /// A directory for supervisors' locks.
    pub fn locks(&self) -> PathBuf {
        self.place.path().join("locks")
    }

    /// The directory it works in, without links in its path.
    pub fn directory(&self) -> PathBuf {
        self.canonical().join("project")
    }

    /// Another directory to work in.
    pub fn another_directory(&self, name: &str) -> PathBuf {
        let directory = self.canonical().join(name);
        fs::create_dir_all(&directory).expect("a directory can be made there");
        directory
    }

    fn canonical(&self) -> PathBuf {
        self.place.path().canonicalize().expect("the place is there")
    }

    /// Deletes what the agent knows of that conversation, as a person who tidies up would. Agents that keep all of them
    /// in one database lose all of them. No process of that home may run.
    #[track_caller]
    pub fn lose(&self, native: &str) {
        let files = self.files_of(native);
        assert!(!files.is_empty(), "{} has no file of {native}", self.agent.name());
        for file in files {
            fs::remove_file(&file).unwrap_or_else(|why| panic!("{}: {why}", file.display()));
        }
    }

    /// Tears some bytes off the end of the conversation's file, as a power cut would. Only for agents whose
    /// conversations are files of lines.
    #[track_caller]
    pub fn tear(&self, native: &str, bytes: u64) {
        // Beside the lines of a conversation Kimi has files about it, which are written whole.
        let files = self.files_of(native).into_iter();
        for path in files.filter(|path| path.extension().is_some_and(|end| end == "jsonl")) {
            let file = fs::OpenOptions::new().write(true).open(&path).expect("it can be written");
            let length = file.metadata().expect("it is there").len();
            file.set_len(length.saturating_sub(bytes)).expect("it can be cut");
        }
    }

    /// The files that hold that conversation.
    pub fn files_of(&self, native: &str) -> Vec<PathBuf> {
        let file = format!("{native}.jsonl");
        let (below, beginning, end) = match self.agent {
            RealAgent::Claude | RealAgent::ClaudeAgentAcp => (".claude/projects", native, file.as_str()),
            RealAgent::Codex | RealAgent::CodexAcp => (".codex/sessions", "rollout-", file.as_str()),
            RealAgent::Gemini => (".gemini/tmp", "session-", ".jsonl"),
            RealAgent::Qwen => (".qwen/projects", native, file.as_str()),
            RealAgent::Kimi => (".kimi-code/sessions", "", ""),
            RealAgent::OpenCode => (".local/share/opencode", "opencode.db", ""),
            RealAgent::Goose => (".local/share/goose/sessions", "sessions.db", ""),
        };
        let mut found = Vec::new();
        walk(&self.home().join(below), &mut |path| {
            // Kimi has a directory for each.
            let is_of_another =
                self.agent == RealAgent::Kimi && !path.iter().any(|part| part.to_str() == Some(native));
            if is_of_another {
                return;
            }
            let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
            if name.starts_with(beginning) && name.ends_with(end) {
                found.push(path.to_path_buf());
            }
        });
        found
    }

    fn write_settings(&self) {
        match self.agent {
            // Without a provider of its own it would ask a hosted model.
            RealAgent::OpenCode if !self.is_set_up => {
                self.write(
                    ".config/opencode/opencode.json",
                    r#"{"autoupdate": false, "enabled_providers": []}"#,
                );
            }
            RealAgent::Kimi | RealAgent::Goose if !self.is_set_up => {}
            RealAgent::Codex => {
                self.write(".codex/config.toml", &codex_settings(MODEL, &self.model.url_v1()));
            }
            RealAgent::CodexAcp => {
                self.write(".codex/config.toml", &codex_settings(CODEX_ACP_MODEL, &self.model.url_v1()));
            }
            RealAgent::Gemini => self.write(".gemini/settings.json", GEMINI_SETTINGS),
            RealAgent::Qwen => self.write(".qwen/settings.json", QWEN_SETTINGS),
            RealAgent::Kimi => {
                self.write(".kimi-code/config.toml", &kimi_settings(&self.model.url_v1()));
            }
            RealAgent::OpenCode => {
                self.write(".config/opencode/opencode.json", &opencode_settings(&self.model.url_v1()));
            }
            RealAgent::Goose => {
                let recipe = self.home().join(".config/goose/greet.yaml");
                self.write(".config/goose/greet.yaml", GOOSE_RECIPE);
                self.write(".config/goose/config.yaml", &goose_settings(&text(&recipe)));
            }
            RealAgent::Claude | RealAgent::ClaudeAgentAcp => {}
        }
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.home().join(path);
        fs::create_dir_all(path.parent().expect("it is below the home"))
            .expect("a directory can be made there");
        fs::write(path, text).expect("a file can be written there");
    }
}

fn codex_settings(model: &str, url_v1: &str) -> String {
    format!(
        r#"model = "{model}"
model_provider = "stub"
check_for_update_on_startup = false

[model_providers.stub]
name = "stub"
base_url = "{url_v1}"
env_key = "STUB_KEY"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1

[features]
plugins = false
apps = false
unbounded_connection_retries = false
"#
    )
}

/// A slash command of goose's: it has none of its own.
const GOOSE_RECIPE: &str = "version: 1.0.0\ntitle: Greet\ndescription: Says hello\nprompt: hello\n";

/// A model by its name: without one it asks another model which to take.
const GEMINI_SETTINGS: &str = r#"{
  "security": {"auth": {"selectedType": "gemini-api-key"}},
  "privacy": {"usageStatisticsEnabled": false},
  "general": {"maxAttempts": 2},
  "model": {"name": "gemini-2.5-pro"}
}"#;

const QWEN_SETTINGS: &str = r#"{
  "security": {"auth": {"selectedType": "openai"}},
  "privacy": {"usageStatisticsEnabled": false},
  "model": {"generationConfig": {"maxRetries": 1, "retryInitialDelayMs": 200, "retryMaxDelayMs": 500}}
}"#;

fn kimi_settings(url_v1: &str) -> String {
    format!(
        r#"default_model = "{MODEL}"

[providers.stub]
type = "openai"
base_url = "{url_v1}"
api_key = "{KEY}"

[models."{MODEL}"]
provider = "stub"
model = "{MODEL}"
max_context_size = 200000

[loop_control]
max_attempts_per_step = 2
"#
    )
}

fn goose_settings(recipe: &str) -> String {
    format!("slash_commands:\n  - command: greet\n    recipe_path: {recipe}\n")
}

fn opencode_settings(url_v1: &str) -> String {
    serde_json::json!({
        "autoupdate": false,
        "share": "disabled",
        "enabled_providers": ["stub"],
        "model": format!("stub/{MODEL}"),
        "small_model": format!("stub/{MODEL}"),
        "provider": {"stub": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Stub",
            "options": {"baseURL": url_v1, "apiKey": KEY},
            "models": {MODEL: {
                "name": "Stub 1",
                "limit": {"context": 200_000, "output": 8_192},
                "cost": {"input": 1, "output": 2},
                "attachment": true,
                "modalities": {"input": ["text", "image", "pdf"], "output": ["text"]},
            }},
        }},
    })
    .to_string()
}

fn walk(directory: &Path, see: &mut impl FnMut(&Path)) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            walk(&path, see);
        } else {
            see(&path);
        }
    }
}

fn text(path: &Path) -> String {
    path.to_str().expect("the path is text").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_conversation_is_the_only_one_that_is_lost() {
        let stage = AgentFixture::new(RealAgent::Claude);
        let files = stage.home().join(".claude/projects/-srv");
        fs::create_dir_all(&files).unwrap();
        for id in ["a", "b"] {
            fs::write(files.join(format!("{id}.jsonl")), "{\"n\": 1}\n").unwrap();
        }
        stage.tear("b", 3);
        stage.lose("a");
        assert_eq!(stage.files_of("a"), [] as [PathBuf; 0]);
        assert_eq!(fs::read_to_string(&stage.files_of("b")[0]).unwrap(), "{\"n\": ");
    }

    #[test]
    fn every_agent_is_told_of_the_stub() {
        for agent in RealAgent::ALL {
            let stage = AgentFixture::new(agent);
            let mut told = format!("{:?}", stage.env());
            walk(&stage.home(), &mut |path| told += &fs::read_to_string(path).unwrap());
            assert!(told.contains(&stage.model.url()), "{told}");
        }
    }
}
