//! Agents by configuration: found on `PATH`, offered, missing, shown, and looked at by doctor. The programs are small
//! shell scripts, so that nothing here needs an account, a model or somebody else's code.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;
use testkit::{CommandOutput, Homing, Setup, eventually};

use crate::{setup, text};

/// An agent that speaks ACP: it answers with the number of the message in its process, a variable, and what it was
/// started with, and writes down each message it gets.
const TINY: &str = r##"#!/bin/sh
case " $* " in *" --version "*) echo "tiny 1.2.3"; exit ;; esac
number=0
reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
    *'"initialize"'*) reply '{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}' ;;
    *'"session/new"'*) reply '{"sessionId":"tiny-1"}' ;;
    *'"session/load"'*) reply '{}' ;;
    *'"session/prompt"'*)
      number=$((number + 1))
      echo said >> "$HOME/said"
      said="#$number key=$TINY_KEY other=$TINY_OTHER args=$*"
      printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"tiny-1","update":%s}}\n' \
        "{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"$said\"}}"
      reply '{"stopReason":"end_turn"}' ;;
    *) ;;
  esac
done
"##;

/// Programs of a test, in a directory of their own.
struct Programs(tempfile::TempDir);

impl Programs {
    fn new() -> Self {
        Self(tempfile::Builder::new().prefix("homing-programs-").tempdir().unwrap())
    }

    fn add(&self, name: &str, script: &str) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// A program that only knows its version.
    fn add_version(&self, name: &str, version: &str) {
        self.add(name, &format!("#!/bin/sh\necho '{version}'\n"));
    }

    /// These programs and the system's own, and nobody's agents.
    fn path(&self) -> String {
        format!("{}:/usr/bin:/bin", self.0.path().display())
    }

    fn home(&self) -> PathBuf {
        self.0.path().join("home")
    }

    /// A server that looks for its default agent among these programs, with a home of their own.
    fn setup(&self) -> Setup {
        fs::create_dir_all(self.home()).unwrap();
        let home = self.home();
        let setup = setup().variable("PATH", &self.path()).variable("HOME", home.to_str().unwrap());
        // Whatever keys the person who runs the tests has, this server has none.
        let keys =
            ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOSE_PROVIDER"];
        let setup = keys.into_iter().fold(setup, |setup, key| setup.variable(key, ""));
        setup.variable("HOMING_DEFAULT_AGENT", "auto")
    }
}

fn tiny(programs: &Programs, more: &str) -> String {
    let program = programs.add("tiny", TINY);
    format!("[agents.tiny]\nkind = \"acp\"\nprogram = \"{}\"\n{more}\n", program.display())
}

#[track_caller]
fn listed(homing: &Homing, name: &str) -> Value {
    let page = homing.run(&["agents", "--json"]).json(0);
    let agents = page["items"].as_array().unwrap();
    agents.iter().find(|agent| agent["name"] == name).unwrap_or_else(|| panic!("no {name} in {page}")).clone()
}

fn said_in(home: &Path) -> usize {
    fs::read_to_string(home.join("said")).unwrap_or_default().lines().count()
}

#[test]
fn an_agent_that_speaks_acp_needs_configuration_only() {
    let programs = Programs::new();
    let config = tiny(&programs, "args = [\"--fast\"]\nenv.TINY_KEY = \"env:TINY_SOURCE\"");
    let setup = programs.setup().variable("TINY_SOURCE", "k1").variable("TINY_OTHER", "secret");
    let homing = setup.config(&config).start();
    let said = homing.run(&["send", "-f", "--agent", "tiny", "hello"]);
    assert_eq!(said.expect(0), "#1 key=k1 other= args=--fast\n", "nothing is inherited that was not named");
    // Its process is kept for the next turn of this session.
    assert_eq!(homing.run(&["send", "-f", "again"]).expect(0), "#2 key=k1 other= args=--fast\n");
    let agent = listed(&homing, "tiny");
    assert_eq!(
        (&agent["kind"], &agent["version"], &agent["here"]),
        (&"acp".into(), &"1.2.3".into(), &true.into())
    );
    let shown = homing.run(&["agents", "show", "tiny"]);
    assert!(shown.expect(0).contains("1.2.3") && shown.out.contains("before it acts"), "{}", shown.out);
    assert!(shown.out.contains("is ended with the turn"), "{}", shown.out);
    homing.run(&["agents", "show", "nobody"]).expect(3);
}

#[test]
fn any_program_can_be_an_agent() {
    let programs = Programs::new();
    let plain = programs.add("shout", "#!/bin/sh\nread -r line\necho \"$line, new=$HOMING_NEW\"\n");
    let lines = programs.add("lines", "#!/bin/sh\nprintf '{\"say\":{\"text\":\"%s\"}}\\n' \"$3\"\nexit 0\n");
    let fails = programs.add("fails", "#!/bin/sh\necho no key >&2\nexit 7\n");
    let config = format!(
        "[agents.shout]\nkind = \"command\"\nprogram = {plain:?}\n\
         [agents.lines]\nkind = \"command\"\nprogram = {lines:?}\nargs = [\"-p\"]\ncommand.hands = \"argument\"\n\
         command.says = \"json\"\ncommand.json.text = \"/say/text\"\ncommand.model_args = [\"--model={{model}}\"]\n\
         [agents.fails]\nkind = \"command\"\nprogram = {fails:?}\ncommand.refused_codes = [7]\n"
    );
    let homing = programs.setup().config(&config).start();
    let ask = |agent: &str, more: &[&str]| {
        let arguments = [&["send", "-f", "--new", "--agent", agent], more, &["hello"][..]].concat();
        homing.run(&arguments)
    };
    assert_eq!(ask("shout", &[]).expect(0), "hello, new=1\n");
    assert_eq!(ask("lines", &["--model", "large"]).expect(0), "hello\n");
    let failed = ask("fails", &[]);
    failed.expect(1);
    assert!(failed.err.contains("no key") && failed.err.contains("refused"), "{}", failed.err);
    assert_eq!(listed(&homing, "shout")["kind"], "command");
}

#[test]
fn what_is_on_path_is_found_and_the_first_that_is_signed_in_is_the_default() {
    let programs = Programs::new();
    programs.add_version("gemini", "0.61.0");
    programs.add_version("goose", " 1.34.0");
    fs::create_dir_all(programs.home().join(".config/goose")).unwrap();
    fs::write(programs.home().join(".config/goose/config.yaml"), "GOOSE_PROVIDER: x\n").unwrap();
    let homing = programs.setup().start();
    let (gemini, goose) = (listed(&homing, "gemini"), listed(&homing, "goose"));
    assert_eq!(
        (&gemini["version"], &gemini["sign_in"]["state"]),
        (&"0.61.0".into(), &"missing".into()),
        "{gemini}"
    );
    assert!(text(&gemini["sign_in"], "how").contains("GEMINI_API_KEY"), "{gemini}");
    assert_eq!(
        (&goose["version"], &goose["sign_in"]["state"]),
        (&"1.34.0".into(), &"here".into()),
        "{goose}"
    );
    assert_eq!((&gemini["default"], &goose["default"]), (&false.into(), &true.into()));
    let qwen = listed(&homing, "qwen");
    assert!(text(&qwen, "missing").contains("npm install -g @qwen-code/qwen-code"), "{qwen}");
    let table = homing.run(&["agents"]);
    for part in ["goose (default)", "NOT HERE", "npm install -g @qwen-code/qwen-code"] {
        assert!(table.expect(0).contains(part), "no {part:?} in {}", table.out);
    }
    let log = eventually("it tells what it found", || {
        homing.server_log().lines().find(|line| line.contains("found: ")).map(str::to_owned)
    });
    assert!(
        log.contains("gemini 0.61.0 (not signed in: ") && log.contains("goose 1.34.0 (signed in)"),
        "{log}"
    );
}

#[test]
fn without_an_agent_that_is_signed_in_the_scripted_one_is_used() {
    let programs = Programs::new();
    programs.add_version("gemini", "0.61.0");
    let homing = programs.setup().start();
    assert_eq!(homing.run(&["send", "-f", "hello"]).expect(0), "#1 hello\n");
    assert_eq!(listed(&homing, "scripted")["default"], true);
    // A key that is set is a sign-in.
    let homing = programs.setup().variable("GEMINI_API_KEY", "k").start();
    assert_eq!(listed(&homing, "gemini")["default"], true);
}

#[test]
fn a_file_of_settings_alone_is_no_sign_in() {
    let programs = Programs::new();
    for (name, file, settings) in [
        ("goose", ".config/goose/config.yaml", "extensions: {}\n"),
        ("kimi", ".kimi-code/config.toml", "default_model = \"m\"\n"),
    ] {
        programs.add_version(name, "1.0.0");
        let file = programs.home().join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, settings).unwrap();
    }
    let homing = programs.setup().start();
    for name in ["goose", "kimi"] {
        let agent = listed(&homing, name);
        assert_eq!(
            (&agent["sign_in"]["state"], &agent["default"]),
            (&"unknown".into(), &false.into()),
            "{agent}"
        );
    }
    assert_eq!(listed(&homing, "scripted")["default"], true);
    // With a key in it, it is one.
    let kimi = programs.home().join(".kimi-code/config.toml");
    fs::write(kimi, "[providers.p]\napi_key = \"k\"\n").unwrap();
    let homing = programs.setup().start();
    assert_eq!(listed(&homing, "kimi")["sign_in"]["state"], "here");
    assert_eq!(listed(&homing, "kimi")["default"], true);
}

#[test]
fn the_adapter_of_claude_gets_the_variable_for_its_retries() {
    let programs = Programs::new();
    programs.add("claude-agent-acp", &TINY.replace("TINY_KEY", "CLAUDE_CODE_MAX_RETRIES"));
    let homing = programs.setup().variable("CLAUDE_CODE_MAX_RETRIES", "3").start();
    let said = homing.run(&["send", "-f", "--agent", "claude-agent-acp", "hello"]);
    assert!(said.expect(0).starts_with("#1 key=3 "), "{}", said.out);
}

#[test]
fn an_agent_of_which_nobody_knows_whether_somebody_signed_in_is_never_the_default() {
    let programs = Programs::new();
    programs.add_version("opencode", "1.18.33");
    let homing = programs.setup().start();
    let opencode = listed(&homing, "opencode");
    assert_eq!(
        (&opencode["sign_in"]["state"], &opencode["default"]),
        (&"unknown".into(), &false.into()),
        "{opencode}"
    );
    assert_eq!(listed(&homing, "scripted")["default"], true);
    let log = eventually("it tells what it found", || {
        homing.server_log().lines().find(|line| line.contains("found: ")).map(str::to_owned)
    });
    assert!(log.contains("sign-in unknown") && log.contains("new sessions use scripted"), "{log}");
    // Whoever names it means it.
    let homing = programs.setup().variable("HOMING_DEFAULT_AGENT", "opencode").start();
    assert_eq!(listed(&homing, "opencode")["default"], true);
}

#[test]
fn a_slow_program_does_not_keep_the_server_from_starting() {
    let programs = Programs::new();
    let go = programs.0.path().join("go");
    let slow = format!("#!/bin/sh\nwhile [ ! -e {} ]; do sleep 0.05; done\necho 0.61.0\n", go.display());
    programs.add("gemini", &slow);
    // It is asked behind the wall, where what it waits for has to be there.
    let sees = format!("[wall]\nallow_read = [{:?}]\n", programs.0.path());
    let homing = programs.setup().config(&sees).start();
    assert_eq!(homing.run(&["send", "-f", "hello"]).expect(0), "#1 hello\n");
    assert!(!homing.server_log().contains("found: "), "{}", homing.server_log());
    fs::write(go, "").unwrap();
    eventually("it tells what it found", || homing.server_log().contains("gemini 0.61.0").then_some(()));
}

#[test]
fn an_agent_that_is_not_here_says_how_to_get_it() {
    let programs = Programs::new();
    let homing = programs.setup().start();
    let said = homing.run(&["send", "-f", "--agent", "gemini", "hello"]);
    said.expect(1);
    assert!(said.err.contains("npm install -g @google/gemini-cli"), "{}", said.err);
}

#[test]
fn who_acts_without_asking_is_shown_everywhere() {
    let programs = Programs::new();
    let homing = programs.setup().config(&tiny(&programs, "bypass = true")).start();
    eventually("the log says so", || homing.server_log().contains("WITHOUT ASKING").then_some(()));
    assert_eq!(listed(&homing, "tiny")["bypasses"], true);
    assert!(homing.run(&["agents"]).expect(0).contains("WITHOUT ASKING"));
    assert!(homing.run(&["agents", "show", "tiny"]).expect(0).contains("bypass = true"));
    assert!(homing.run(&["doctor"]).expect(0).contains("WITHOUT ASKING"));
}

#[test]
fn doctor_runs_a_turn_of_a_real_agent_only_when_asked() {
    let programs = Programs::new();
    let homing = programs.setup().config(&tiny(&programs, "")).start();
    let all = homing.run(&["doctor"]);
    assert!(all.expect(0).contains("1.2.3") && !all.out.contains("a turn works"), "{}", all.out);
    assert_eq!(said_in(&programs.home()), 0, "a turn may cost money");
    let one = homing.run(&["doctor", "--agent", "tiny"]);
    assert!(one.expect(0).contains("a turn works") && one.out.contains("no bound"), "{}", one.out);
    assert_eq!(said_in(&programs.home()), 1);
    assert!(homing.run(&["doctor", "--turns"]).expect(0).contains("a turn works"));
    let missing = homing.run(&["doctor", "--agent", "gemini"]);
    missing.expect(1);
    assert!(missing.out.contains("npm install -g @google/gemini-cli"), "{}", missing.out);
    homing.run(&["doctor", "--agent", "nobody"]).expect(1);
}

#[test]
fn a_wrong_agent_stops_the_start_and_is_told_with_its_line() {
    let programs = Programs::new();
    let homing = programs.setup().start();
    let path = homing.root().join("wrong.toml");
    let serve = |config: &str| -> CommandOutput {
        fs::write(&path, format!("listen = \"127.0.0.1:0\"\n{config}")).unwrap();
        let other = homing.root().join("other");
        let (path, other) = (path.to_str().unwrap(), other.to_str().unwrap());
        homing.run(&["serve", "--config", path, "--data", other])
    };
    for (config, parts) in [
        ("[agents.mine]\nkind = \"acpp\"\n", ["line 3", "acpp"]),
        ("[agents.mine]\nprogram = \"x\"\n", ["line 2", "`kind`"]),
        ("[agents.mine]\nkind = \"acp\"\nbypas = true\n", ["line 4", "bypas"]),
        ("[agents.mine]\nkind = \"acp\"\nenv.KEY = \"env:HOMING_NOT_SET\"\n", ["line 4", "HOMING_NOT_SET"]),
        ("[agents.mine]\nkind = \"acp\"\nenv.KEY = \"file:/nowhere/key\"\n", ["line 4", "/nowhere/key"]),
        ("[agents.mine]\nkind = \"acp\"\nquirks.base = \"nobody\"\n", ["line 4", "nobody"]),
    ] {
        let said = serve(config);
        said.expect(2);
        for part in parts.iter().chain(&["wrong.toml", "homing config"]) {
            assert!(said.err.contains(part), "no {part:?} in {}", said.err);
        }
    }
}

#[test]
fn an_unknown_default_agent_is_refused() {
    let homing = setup().start();
    let mut command = homing.command();
    command.env("HOMING_DEFAULT_AGENT", "nobody").args(["serve", "--listen", "127.0.0.1:0", "--data"]);
    let said = CommandOutput::from(command.arg(homing.root().join("other")).output().unwrap());
    said.expect(2);
    assert!(said.err.contains("\"nobody\"") && said.err.contains("scripted"), "{}", said.err);
}

#[test]
fn an_agent_that_is_switched_off_does_not_exist() {
    let homing = setup().config("[agents.gemini]\nenabled = false\n").start();
    let page = homing.run(&["agents", "--json"]).json(0);
    let names: Vec<&str> =
        page["items"].as_array().unwrap().iter().filter_map(|agent| agent["name"].as_str()).collect();
    assert!(
        !names.contains(&"gemini") && names.contains(&"scripted") && names.contains(&"goose"),
        "{names:?}"
    );
    homing.run(&["send", "--new", "--agent", "gemini", "hello"]).expect(1);
}

#[test]
fn model_and_mode_are_chosen_where_a_session_is_made() {
    let homing = setup().start();
    let made = ["send", "--json", "--agent", "scripted", "--model", "large", "--mode", "plan", "hello"];
    let session = text(&homing.run(&made).json(0), "session");
    let shown = homing.run(&["show", &session, "--json"]).json(0);
    assert_eq!((&shown["model"], &shown["mode"]), (&"large".into(), &"plan".into()), "{shown}");
    assert!(homing.run(&["ls"]).expect(0).contains("scripted (large, plan)"));
    let late = homing.run(&["send", "-f", "--model", "small", "hello"]);
    late.expect(1);
    assert!(late.err.contains("with the model `large`: nothing was said to it"), "{}", late.err);
    assert!(late.err.contains("homing scope set") && late.err.contains("--new"), "{}", late.err);
}

#[test]
fn the_configuration_has_a_schema() {
    let homing = setup().start();
    let schema = homing.run(&["config", "--schema"]).json(0);
    assert!(schema["properties"]["agents"].is_object(), "{schema}");
}
