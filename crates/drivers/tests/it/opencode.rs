//! OpenCode itself behind its driver. It takes seconds to start, so each story covers much with few processes.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use std::io::{Read, Write};

use agent::{Agent, AgentEvent, Launch, Message, QuestionAnswer, Running, TreeEnd};
use homing_drivers::ProgramConfig;
use homing_drivers::opencode::OpenCode;
use kernel::{Failure, MessageId, Native, SessionId};
use processes::count_marked;
use testkit::{AgentFixture, RealAgent};

use crate::bench::{fence, ground};
use crate::real::program_config;

/// The longest that a story waits for one thing. A busy machine starts it slowly.
const WAIT: Duration = Duration::from_secs(120);
/// The patience of a polite stop.
const GRACE_MS: u64 = 30_000;

struct Play {
    stage: AgentFixture,
    agent: OpenCode,
    session: SessionId,
}

impl Play {
    fn new(change: impl FnOnce(ProgramConfig) -> ProgramConfig) -> Self {
        let stage = AgentFixture::new(RealAgent::OpenCode);
        let mut config = change(program_config(&stage));
        config.limits.start_max = WAIT;
        let mut bytes = [0; 16];
        std::fs::File::open("/dev/urandom").unwrap().read_exact(&mut bytes).unwrap();
        let session = SessionId::from_bits(u128::from_le_bytes(bytes) >> 1);
        Self { stage, agent: OpenCode::new(config), session }
    }

    fn launch(&self, native: Option<&Native>) -> Launch {
        let launch =
            Launch::new(self.session, fence(), MessageId::from_bits(1), ground(self.stage.directory()));
        Launch { native: native.cloned(), ..launch }
    }

    async fn start(&self, launch: Launch) -> (Box<dyn Running>, Vec<AgentEvent>) {
        let mut running = self.agent.start(launch).await.unwrap();
        let before = until(&mut *running, |event| matches!(event, AgentEvent::Ready { .. })).await;
        (running, before)
    }

    /// A turn that has been handed its words.
    async fn begin(&self, launch: Launch, text: &str) -> Box<dyn Running> {
        let (mut running, before) = self.start(launch).await;
        assert!(matches!(before.last(), Some(AgentEvent::Ready { .. })), "{before:?}");
        running.hand(Message::new(MessageId::from_bits(1), text.to_owned())).await.unwrap();
        running
    }

    async fn turn(&self, launch: Launch, text: &str) -> Turned {
        let mut running = self.begin(launch, text).await;
        Turned(until(&mut *running, |_| false).await)
    }

    /// A turn in which it asks once, and what it is answered. Nothing may have happened before the answer.
    async fn asked_turn(&self, native: &Native, text: &str, answer: QuestionAnswer, made: &Path) -> Turned {
        let mut running = self.begin(self.launch(Some(native)), text).await;
        let mut events = until(&mut *running, |event| matches!(event, AgentEvent::Asked { .. })).await;
        let Some(AgentEvent::Asked { question, tool, detail, .. }) = events.last().cloned() else {
            panic!("{events:?}")
        };
        assert!(question.starts_with("per") && tool == "bash" && detail.contains("made"), "{tool}: {detail}");
        assert!(!made.exists(), "it asks before it acts");
        running.answer(&question, answer).await.unwrap();
        events.extend(until(&mut *running, |_| false).await);
        Turned(events)
    }

    fn left(&self) -> usize {
        count_marked(&agent::TreeName::of(self.session), &self.stage.locks())
    }

    /// The processes of the agent itself.
    fn pids(&self) -> BTreeSet<i32> {
        let program = self.stage.program();
        let is_it = |pid: &i32| {
            let there = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
            let home = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            let ours = format!("HOME={}", self.stage.home().display());
            there == Path::new(&program) && home.split(|byte| *byte == 0).any(|it| it == ours.as_bytes())
        };
        let names = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.file_name());
        names.filter_map(|name| name.to_str()?.parse().ok()).filter(is_it).collect()
    }
}

/// Everything it says until then, or until its last word.
async fn until(running: &mut dyn Running, is_it: impl Fn(&AgentEvent) -> bool) -> Vec<AgentEvent> {
    let mut events: Vec<AgentEvent> = Vec::new();
    while !events.last().is_some_and(|event| event.is_last() || is_it(event)) {
        let next = tokio::time::timeout(WAIT, running.next()).await;
        events.push(next.unwrap_or_else(|_| panic!("it says nothing after {events:?}")));
    }
    events
}

struct Turned(Vec<AgentEvent>);

impl Turned {
    fn text(&self) -> String {
        let words = self.0.iter().filter_map(|event| match event {
            AgentEvent::Text { text } => Some(text.as_str()),
            _ => None,
        });
        words.collect()
    }

    #[track_caller]
    fn finished(&self) -> (Native, &str) {
        match self.0.last() {
            Some(AgentEvent::Finished { native: Some(native), reason }) => (native.clone(), reason),
            _ => panic!("{:?}", self.0),
        }
    }

    #[track_caller]
    fn failed(&self) -> (Failure, &str) {
        match self.0.last() {
            Some(AgentEvent::Failed(trouble)) => (trouble.failure, &trouble.detail),
            _ => panic!("{:?}", self.0),
        }
    }

    fn has(&self, is_it: impl Fn(&AgentEvent) -> bool) -> bool {
        self.0.iter().any(is_it)
    }
}

/// Where a process listens.
fn listens(pid: i32) -> Vec<SocketAddr> {
    let links = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let sockets: BTreeSet<PathBuf> = links.filter_map(|link| std::fs::read_link(link.path()).ok()).collect();
    let table = |name| std::fs::read_to_string(format!("/proc/{pid}/net/{name}")).unwrap_or_default();
    let mut found = Vec::new();
    for line in table("tcp").lines().chain(table("tcp6").lines()) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        // 0A is the state of a socket that listens.
        if fields.get(3) == Some(&"0A") && sockets.contains(Path::new(&format!("socket:[{}]", fields[9]))) {
            let (ip, port) = fields[1].split_once(':').unwrap();
            let ip = u32::from_str_radix(ip, 16).expect("it listens on IPv4 only");
            let port = u16::from_str_radix(port, 16).unwrap();
            found.push(SocketAddr::from((Ipv4Addr::from(ip.to_le_bytes()), port)));
        }
    }
    found
}

/// The first line of what a server says to somebody without a password, or with the wrong one. None if nobody is there: opencode
/// listens for moments where it does not stay.
fn knock(address: SocketAddr, path: &str, header: &str) -> Option<String> {
    let mut line = match TcpStream::connect(address) {
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => return None,
        met => met.unwrap(),
    };
    line.set_read_timeout(Some(WAIT)).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{header}Connection: close\r\n\r\n");
    line.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let _ = line.read_to_end(&mut answer);
    Some(String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn one_kept_process_remembers_asks_and_lets_nobody_else_in() {
    let play = Play::new(|config| config);
    let made = play.stage.directory().join("made");
    let (mut running, before) = play.start(play.launch(None)).await;
    let Some(AgentEvent::About(about)) = before.iter().find(|event| matches!(event, AgentEvent::About(_)))
    else {
        panic!("{before:?}")
    };
    assert_eq!(about.directory, play.stage.directory().to_str().unwrap());
    assert_eq!(about.models.iter().map(|model| model.name.as_str()).collect::<Vec<_>>(), ["stub/stub-1"]);
    assert!(about.modes.iter().any(|mode| mode.name == "plan") && about.version.contains('.'));
    assert!(about.commands.iter().any(|command| command.name == "init"));
    let Some(AgentEvent::Ready { native: Some(native) }) = before.last() else { panic!("{before:?}") };
    assert!(native.id.starts_with("ses_") && !native.place.is_empty());

    running.hand(Message::new(MessageId::from_bits(1), "keep CODE:maple".to_owned())).await.unwrap();
    let first = Turned(until(&mut *running, |_| false).await);
    assert_eq!(
        (first.text().as_str(), first.finished()),
        ("ECHO: keep CODE:maple [turn=1]", (native.clone(), "stop"))
    );
    assert!(first.has(|event| matches!(event, AgentEvent::Usage(usage) if usage.cost_micros > Some(0)
        && usage.window.is_some_and(|(used, most)| used > 0 && most == 200_000))));
    let pids = play.pids();
    let [pid] = pids.iter().copied().collect::<Vec<_>>()[..] else { panic!("{pids:?}") };

    // Whoever else is on this machine gets nothing, and sees no password.
    let addresses = listens(pid);
    assert!(!addresses.is_empty() && addresses.iter().all(|address| address.ip() == Ipv4Addr::LOCALHOST));
    let mut doors = BTreeSet::new();
    for path in ["/global/health", "/session", "/event", "/config"] {
        let guess = "Authorization: Basic b3BlbmNvZGU6b3BlbmNvZGU=\r\n";
        for (address, header) in addresses.iter().flat_map(|address| [(address, ""), (address, guess)]) {
            let Some(answer) = knock(*address, path, header) else { continue };
            assert!(answer.contains(" 401 "), "{address} {path}: {answer}");
            doors.insert(address);
        }
    }
    assert_eq!(doors.len(), 1, "one of them stays, and asks: {addresses:?}");
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
    let environment = String::from_utf8_lossy(&environment).into_owned();
    let password =
        environment.split('\0').find_map(|it| it.strip_prefix("OPENCODE_SERVER_PASSWORD=")).unwrap();
    assert!(password.len() >= 32);
    assert!(!std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap().contains(password));

    let second = play.turn(play.launch(Some(native)), "RECALL").await;
    assert_eq!(second.text(), "RECALL: maple [turn=2]");
    let tool = format!("TOOL:bash:echo hi > {0}; cat {0}", made.display());
    let allowed = play.asked_turn(native, &tool, QuestionAnswer::Allow, &made).await;
    assert_eq!((allowed.text().as_str(), allowed.finished().1), ("TOOL SAID: hi", "stop"));
    assert!(allowed.has(
        |event| matches!(event, AgentEvent::ToolResult { output, failed: false, .. } if output == "hi\n")
    ));
    std::fs::remove_file(&made).unwrap();
    let refused = play.asked_turn(native, &tool, QuestionAnswer::Deny { reason: String::new() }, &made).await;
    assert_eq!((refused.text().as_str(), refused.finished().1), ("", "tool-calls"));
    let told =
        play.asked_turn(native, &tool, QuestionAnswer::Deny { reason: "not today".to_owned() }, &made).await;
    assert!(told.text().starts_with("TOOL SAID: ") && told.text().ends_with("not today"), "{}", told.text());
    assert!(!made.exists());

    // A part of the work in a session of its own: its question is heard, its words are not ours.
    let below = format!(r#"{{"description":"d","subagent_type":"general","prompt":"{tool}"}}"#);
    let child =
        play.asked_turn(native, &format!("TOOL:raw:task:{below}"), QuestionAnswer::Allow, &made).await;
    // The model repeats what the part of the work came to, once; the part's own words would stand before it.
    assert!(made.exists());
    assert_eq!(child.text(), "TOOL SAID: TOOL SAID: hi");

    let written = play.stage.directory().join("written");
    let mut running =
        play.begin(play.launch(Some(native)), &format!("TOOL:write:{}:words", written.display())).await;
    let mut events = until(&mut *running, |event| matches!(event, AgentEvent::Asked { .. })).await;
    let Some(AgentEvent::Asked { question, tool, detail, .. }) = events.last().cloned() else {
        panic!("{events:?}")
    };
    assert!(tool == "edit" && detail.contains("+words"), "{tool}: {detail}");
    running.answer(&question, QuestionAnswer::Allow).await.unwrap();
    events.extend(until(&mut *running, |_| false).await);
    let change =
        AgentEvent::FileChanged { path: written.display().to_string(), change: agent::FileChangeKind::Added };
    assert_eq!(
        events.iter().filter(|event| matches!(event, AgentEvent::FileChanged { .. })).collect::<Vec<_>>(),
        [&change]
    );

    assert_eq!(play.pids(), pids, "all of this was one process");
    play.agent.close().await;
    assert_eq!((play.left(), play.pids().len()), (0, 0));
}

#[tokio::test]
async fn another_process_remembers_and_failures_keep_their_kinds() {
    let play = Play::new(|config| config);
    let first = play.turn(play.launch(None), "keep CODE:birch").await;
    let (native, _) = first.finished();
    let unauthorized = play.turn(play.launch(Some(&native)), "ERR:401").await;
    let (failure, detail) = unauthorized.failed();
    assert!(failure == Failure::Refused && detail.contains("opencode auth login"), "{detail}");
    assert_eq!((play.left(), play.pids().len()), (0, 0), "a failed turn leaves nothing");

    let again = play.turn(play.launch(Some(&native)), "RECALL").await;
    assert!(again.text().starts_with("RECALL: birch"), "{}", again.text());
    let mut running = play.begin(play.launch(Some(&native)), "ERR:500").await;
    let tried = until(&mut *running, |event| matches!(event, AgentEvent::Notice { .. })).await;
    assert!(
        matches!(tried.last(), Some(AgentEvent::Notice { text }) if text.contains("tries again")),
        "{tried:?}"
    );
    let verified = running.stop(GRACE_MS).await;
    assert!(matches!(verified, TreeEnd { gone: true, .. }), "{verified:?}");
    let last = until(&mut *running, |_| false).await;
    assert!(matches!(last.last(), Some(AgentEvent::Died { .. })), "neither success nor failure: {last:?}");
    assert_eq!((play.left(), play.pids().len()), (0, 0));

    // It says for itself that it knows no such conversation, and only where it would.
    let unknown = Native { id: format!("{}0", native.id), ..native.clone() };
    let mut running = play.agent.start(play.launch(Some(&unknown))).await.unwrap();
    let gone = Turned(until(&mut *running, |_| false).await);
    assert_eq!(gone.failed().0, Failure::Gone, "{:?}", gone.0);
    assert_eq!((play.left(), play.pids().len()), (0, 0));
}

#[tokio::test]
async fn a_conversation_follows_into_another_directory_and_a_bypass_does_not_ask() {
    let play = Play::new(|config| ProgramConfig { bypasses: true, kept_max: 0, ..config });
    let (native, _) = play.turn(play.launch(None), "keep CODE:cedar").await.finished();
    assert_eq!(play.pids().len(), 0, "nothing is kept where nothing is to be");
    let directory = play.stage.another_directory("elsewhere");
    let launch = Launch { directory: ground(&directory), ..play.launch(Some(&native)) };
    let there = play.turn(launch, "RECALL\nTOOL:bash:pwd; echo x > here").await;
    assert_eq!(there.text(), format!("TOOL SAID: {}", directory.display()));
    assert!(directory.join("here").exists() && !there.has(|event| matches!(event, AgentEvent::Asked { .. })));
    let (moved, _) = there.finished();
    assert!(moved.id == native.id && moved.place != native.place);
    assert!(
        play.stage.model.turns().iter().any(|asked| asked.body.to_string().contains("CODE:cedar")
            && asked.last_text.contains("TOOL:bash:pwd")),
        "it remembers"
    );
    assert_eq!(play.left(), 0);
}

const PLUGIN: &str = ".opencode/plugin/own.js";

/// The files of a repository by which opencode would run something of the repository's as soon as it is started there, or let its
/// model act unasked. Each that runs leaves a file of its own name in the directory `ran`.
fn lenient_repository(directory: &Path) {
    let write = |path: &str, text: String| {
        let path = directory.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let leave = |name: &str| format!("{}/ran/{name}", directory.display());
    let module = |name: &str| format!("import fs from 'fs';\nfs.writeFileSync('{}', '');\n", leave(name));
    let settings = serde_json::json!({
        "agent": {"build": {"permission": {"bash": "allow"}}},
        "mcp": {"local": {"type": "local", "command": ["touch", leave("mcp")]}},
    });
    std::fs::create_dir_all(directory.join("ran")).unwrap();
    write("opencode.json", settings.to_string());
    write(PLUGIN, module("plugin") + "export const Own = async () => ({});\n");
    let tool = "export default { description: 'd', args: {}, async execute() { return 'x' } };\n";
    write(".opencode/tool/own.js", module("tool") + tool);
    write(
        ".opencode/agent/quick.md",
        "---\nmode: primary\npermission:\n  bash: allow\n---\nBe quick.\n".to_owned(),
    );
    write("bunfig.toml", "preload = [\"./preload.js\"]\n".to_owned());
    write("preload.js", module("preload"));
    write("AGENTS.md", "Indent with tabs.\n".to_owned());
}

/// The names of the files of that repository that were run.
fn ran(directory: &Path) -> BTreeSet<String> {
    let found = std::fs::read_dir(directory.join("ran")).unwrap().flatten();
    found.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

#[tokio::test]
async fn nothing_that_a_repository_brings_runs_unasked_and_its_instructions_are_read() {
    let play = Play::new(|config| config);
    lenient_repository(&play.stage.directory());
    std::fs::remove_file(play.stage.directory().join(PLUGIN)).unwrap();
    let mine = play.stage.home().join(".config/opencode/mine.md");
    std::fs::write(&mine, "Be brief.\n").unwrap();
    let settings = play.stage.home().join(".config/opencode/opencode.json");
    let with_mine = std::fs::read_to_string(&settings).unwrap().replacen(
        '{',
        &format!("{{\"instructions\":[{mine:?}],"),
        1,
    );
    std::fs::write(&settings, with_mine).unwrap();
    let (native, _) = play.turn(play.launch(None), "keep CODE:larch").await.finished();
    let made = play.stage.directory().join("made");
    let tool = format!("TOOL:bash:echo hi > {}", made.display());
    play.asked_turn(&native, &tool, QuestionAnswer::Deny { reason: String::new() }, &made).await;
    assert_eq!(ran(&play.stage.directory()), BTreeSet::new());
    let asked = play.stage.model.turns();
    for words in ["Indent with tabs.", "Be brief."] {
        let is_told = asked.iter().any(|asked| asked.body.to_string().contains(words));
        assert!(is_told, "{words} {asked:?}");
    }
    play.agent.close().await;
    assert_eq!(play.left(), 0);
}

#[tokio::test]
async fn a_repository_with_a_plugin_is_refused_before_opencode_is_started() {
    let play = Play::new(|config| config);
    let place = play.stage.directory();
    let below = play.stage.another_directory("work/below");
    let settings = r#"{"plugin": ["./own.js"]}"#;
    for (file, words) in [
        (place.join(PLUGIN), ""),
        (place.join(".opencode/plugins/.hidden.ts"), ""),
        (place.join("opencode.jsonc"), settings),
        (place.join(".opencode/opencode.json"), r#"{"plugi\u006e": []}"#),
        (below.parent().unwrap().join("opencode.json"), settings),
    ] {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, words).unwrap();
        let directory = if file.starts_with(&place) { &place } else { &below };
        let launch = Launch { directory: ground(directory), ..play.launch(None) };
        let mut running = play.agent.start(launch).await.unwrap();
        let refused = Turned(until(&mut *running, |_| false).await);
        let (failure, detail) = refused.failed();
        let name = file.display().to_string();
        assert!(
            failure == Failure::Refused && detail.contains(&name) && detail.contains("bypass"),
            "{detail}"
        );
        std::fs::remove_file(&file).unwrap();
    }
    assert_eq!(play.left(), 0);
}

/// Whoever says `bypass` lets it be as opencode is; this also shows that those files do something.
#[tokio::test]
async fn what_a_repository_brings_runs_where_it_need_not_ask() {
    let play = Play::new(|config| ProgramConfig { bypasses: true, kept_max: 0, ..config });
    lenient_repository(&play.stage.directory());
    play.turn(play.launch(None), "hello").await.finished();
    let all = ["mcp", "plugin", "tool"].map(str::to_owned);
    assert_eq!(ran(&play.stage.directory()), BTreeSet::from(all));
}

#[tokio::test]
async fn a_persons_keys_stand_in_place_of_the_houses() {
    let play = Play::new(|config| config);
    // The house is signed in to something that the person is not.
    let auth = play.stage.home().join(".local/share/opencode/auth.json");
    std::fs::create_dir_all(auth.parent().unwrap()).unwrap();
    std::fs::write(&auth, r#"{"openrouter":{"type":"api","key":"sk-house"}}"#).unwrap();
    let settings = play.stage.home().join(".config/opencode/opencode.json");
    let stub_only = std::fs::read_to_string(&settings).unwrap();
    let all = stub_only.replace(
        r#""enabled_providers":["stub"]"#,
        r#""enabled_providers":["stub","anthropic","openrouter"]"#,
    );
    assert_ne!(all, stub_only);
    std::fs::write(&settings, all).unwrap();
    let models = |events: Vec<AgentEvent>| -> BTreeSet<String> {
        let about = events.into_iter().find_map(|event| match event {
            AgentEvent::About(about) => Some(about),
            _ => None,
        });
        about.unwrap().models.iter().map(|model| model.name.split('/').next().unwrap().to_owned()).collect()
    };
    let (mut running, before) = play.start(play.launch(None)).await;
    assert_eq!(models(before), BTreeSet::from(["openrouter".to_owned(), "stub".to_owned()]));
    assert!(running.stop(0).await.gone);
    assert!(matches!(play.agent.sign_in(), agent::SignIn::Here { by } if by.ends_with("auth.json")));
    let secrets = vec![("ANTHROPIC_API_KEY".to_owned(), "sk-person".to_owned())];
    let account = agent::Account::Person { person: kernel::PersonId::from_bits(1), secrets };
    let (mut running, before) = play.start(Launch { account, ..play.launch(None) }).await;
    assert_eq!(models(before), BTreeSet::from(["anthropic".to_owned(), "stub".to_owned()]));
    assert!(running.stop(0).await.gone);
    assert_eq!(play.left(), 0);
}
