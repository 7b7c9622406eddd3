//! Servers without a terminal: in the background, as a service, offered by `send`; and what `doctor` says of one that runs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use testkit::{CommandOutput, Homing, Terminal, TerminalSize, eventually};

use crate::{EXE, homing, setup, text};

/// A directory with no server in it, and commands for it. Whatever was started there is stopped in the end.
struct Quiet {
    homing: Homing,
    data: PathBuf,
}

impl Quiet {
    fn new() -> Self {
        let mut homing = homing();
        homing.terminate();
        let data = homing.root().join("background");
        Self { homing, data }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.homing.command();
        command.env("HOMING_DATA", &self.data).env("HOMING_LISTEN", "127.0.0.1:0").args(arguments);
        command.stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> CommandOutput {
        self.command(arguments).output().unwrap().into()
    }

    fn unit(&self) -> PathBuf {
        self.homing.home().join(".config/systemd/user/homing.service")
    }

    /// A directory to be the whole `PATH`, with a `systemctl` that notes what it is told, unless it says something else.
    fn systemctl(&self, script: &str) -> PathBuf {
        let bin = self.homing.root().join("bin");
        fs::create_dir_all(&bin).unwrap();
        let file = bin.join("systemctl");
        fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        bin
    }

    fn run_on_path(&self, path: &Path, arguments: &[&str]) -> CommandOutput {
        self.command(arguments).env("PATH", path).output().unwrap().into()
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        let _ = self.run(&["down"]);
    }
}

fn finding(found: &Value, check: &str, part: &str) -> Value {
    let checks = found["checks"].as_array().unwrap();
    let is_it = |finding: &&Value| finding["check"] == check && text(finding, "detail").contains(part);
    checks.iter().find(is_it).cloned().unwrap_or_else(|| panic!("no {check} with {part:?} in {found:#}"))
}

#[test]
fn a_server_in_the_background_answers_outlives_its_command_and_goes_down() {
    let quiet = Quiet::new();
    let started = quiet.run(&["up", "--background", "--json"]).json(0);
    // The command is over, and the server answers.
    assert_eq!(quiet.run(&["send", "-f", "hello"]).expect(0), "#1 hello\n");
    let log = PathBuf::from(text(&started, "log"));
    assert_eq!(log, quiet.data.join("server.log"));
    assert!(fs::read_to_string(&log).unwrap().contains("ready"));
    assert_eq!(fs::metadata(&log).unwrap().permissions().mode() & 0o777, 0o600);
    // It has no terminal, and none of ours.
    let pid = started["pid"].as_u64().unwrap();
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let session = stat.rsplit_once(") ").unwrap().1.split(' ').nth(3).unwrap().to_owned();
    assert_eq!(session, pid.to_string(), "it leads a session of its own");

    let again = quiet.run(&["up", "--background"]);
    assert_eq!(again.expect(0).trim(), text(&started, "url"));
    assert!(again.err.contains("already running") && again.err.contains(&pid.to_string()), "{}", again.err);

    let down = quiet.run(&["down"]);
    assert!(down.expect(0).contains("is down"), "{}", down.out);
    assert!(!quiet.data.join("url").exists());
    quiet.run(&["ls"]).expect(4);
    assert!(quiet.run(&["down"]).expect(0).contains("no server is running"));

    // The next one has the sessions, and a log of its own beside the one before.
    quiet.run(&["up", "--background"]).expect(0);
    assert_eq!(quiet.run(&["send", "-f", "again"]).expect(0), "#2 again\n");
    assert!(fs::read_to_string(quiet.data.join("server.log.1")).unwrap().contains("handed over"));
}

#[test]
fn a_start_in_the_background_that_fails_says_why_and_leaves_nothing() {
    let quiet = Quiet::new();
    let taken = quiet.homing.root().join("taken");
    fs::create_dir(&taken).unwrap();
    fs::set_permissions(&taken, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(taken.join("notes"), "of somebody else").unwrap();
    let refused = quiet.run(&["up", "--background", "--data", taken.to_str().unwrap()]);
    refused.expect(2);
    assert!(
        refused.err.contains("it holds other things") && refused.err.contains("hint:"),
        "{}",
        refused.err
    );
    assert_eq!(fs::read_dir(&taken).unwrap().count(), 1, "nothing was put there");

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let refused = quiet.run(&["up", "--background", "--listen", &address]);
    refused.expect(2);
    assert!(
        refused.err.contains("cannot listen") && refused.err.contains("takes a free port"),
        "{}",
        refused.err
    );
    assert!(quiet.run(&["down"]).expect(0).contains("no server is running"));
}

#[test]
fn down_stops_a_server_whoever_started_it() {
    let mut homing = homing();
    let pid = homing.pid();
    // Its end is reaped by the test, while `down` looks at the lock of the directory.
    let down = homing.command().arg("down").stdout(Stdio::piped()).spawn().unwrap();
    let down: CommandOutput = down.wait_with_output().unwrap().into();
    assert!(down.expect(0).contains(&format!("process {pid}")), "{}", down.out);
    homing.restart();
}

#[test]
fn a_service_is_written_whole_and_says_what_to_type_without_systemd() {
    let quiet = Quiet::new();
    let empty = quiet.homing.root().join("empty");
    fs::create_dir(&empty).unwrap();
    let written = quiet.run_on_path(&empty, &["service", "install", "--listen", "127.0.0.1:0"]);
    let said = written.expect(0);
    for part in ["systemctl --user daemon-reload", "systemctl --user enable homing", "loginctl enable-linger"]
    {
        assert!(said.contains(part), "no {part:?} in {said}");
    }
    let unit = fs::read_to_string(quiet.unit()).unwrap();
    let exe = fs::canonicalize(EXE).unwrap();
    let starts =
        format!("ExecStart={} serve --data {} --listen 127.0.0.1:0\n", exe.display(), quiet.data.display());
    assert!(unit.contains(&starts), "no {starts} in {unit}");
    // Apart from what is this machine's own it is what docs/operating.md shows.
    let documented = include_str!("../../../../docs/operating.md");
    let shown =
        unit.replace(&starts, "ExecStart=/usr/local/bin/homing serve --data /home/ana/.local/share/homing\n");
    let shown = shown.replace(
        &format!("PATH={}", empty.display()),
        "PATH=/home/ana/.local/bin:/usr/local/bin:/usr/bin:/bin",
    );
    assert!(documented.contains(&format!("```ini\n{shown}```")), "{shown}");
    // Only our file is there: nothing half-written.
    assert_eq!(fs::read_dir(quiet.unit().parent().unwrap()).unwrap().count(), 1);
    let removed = quiet.run_on_path(&empty, &["service", "remove"]);
    assert!(
        removed.expect(0).contains("removed:")
            && removed.out.contains("systemctl --user disable --now homing")
    );
    assert!(!quiet.unit().exists());
    quiet.run_on_path(&empty, &["service", "remove"]).expect(0);
    quiet.run_on_path(&empty, &["service", "status"]).expect(3);
}

#[test]
fn a_service_that_is_not_ours_is_left_alone_until_it_is_forced() {
    let quiet = Quiet::new();
    let empty = quiet.homing.root().join("empty");
    fs::create_dir(&empty).unwrap();
    fs::create_dir_all(quiet.unit().parent().unwrap()).unwrap();
    let theirs = "[Service]\nExecStart=/usr/bin/true\n";
    fs::write(quiet.unit(), theirs).unwrap();
    for verb in ["install", "remove"] {
        let refused = quiet.run_on_path(&empty, &["service", verb]);
        refused.expect(1);
        assert!(refused.err.contains("is not ours") && refused.err.contains("--force"), "{}", refused.err);
        assert_eq!(fs::read_to_string(quiet.unit()).unwrap(), theirs);
    }
    quiet.run_on_path(&empty, &["service", "install", "--force"]).expect(0);
    assert!(fs::read_to_string(quiet.unit()).unwrap().contains("homing service install"));
    assert_eq!(fs::read_to_string(quiet.unit().with_extension("before")).unwrap(), theirs);
    // Where a link leads is not ours either.
    fs::remove_file(quiet.unit()).unwrap();
    let far = quiet.homing.root().join("far.service");
    fs::write(&far, "# Written by `homing service install`\n").unwrap();
    std::os::unix::fs::symlink(&far, quiet.unit()).unwrap();
    quiet.run_on_path(&empty, &["service", "install"]).expect(1);
    quiet.run_on_path(&empty, &["service", "remove"]).expect(1);
    assert!(far.exists());
}

/// There is no systemd where this runs, so a program that notes what it is told stands in its place.
#[test]
fn systemd_is_told_in_order_and_a_server_that_runs_is_not_disturbed() {
    let quiet = Quiet::new();
    let notes = quiet.homing.root().join("told");
    let told = || {
        let lines = fs::read_to_string(&notes).unwrap_or_default();
        let _ = fs::remove_file(&notes);
        lines.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let bin = quiet.systemctl(&format!("echo \"$@\" >>{}", notes.display()));
    quiet.run_on_path(&bin, &["service", "install"]).expect(0);
    assert_eq!(told(), ["--user daemon-reload", "--user enable homing", "--user restart homing"]);
    quiet.run(&["up", "--background"]).expect(0);
    let beside = quiet.run_on_path(&bin, &["service", "install"]);
    assert!(beside.expect(0).contains("homing down"), "{}", beside.out);
    assert_eq!(told(), ["--user daemon-reload", "--user enable homing"]);
    let status = quiet.run_on_path(&bin, &["service", "status", "--json"]).json(0);
    assert_eq!((&status["installed"], &status["server"]["service"]), (&"yes".into(), &false.into()));
    told();
    quiet.run_on_path(&bin, &["service", "remove"]).expect(0);
    assert_eq!(told(), ["--user disable --now homing", "--user daemon-reload"]);
    // A systemd that does not answer is as good as none.
    let bin = quiet.systemctl("echo 'Failed to connect to bus' >&2; exit 1");
    let said = quiet.run_on_path(&bin, &["service", "install"]);
    assert!(
        said.expect(0).contains("Failed to connect to bus")
            && said.out.contains("  systemctl --user enable homing")
    );
}

/// `script` is the terminal.
fn on_a_terminal(quiet: &Quiet, arguments: &str, typed: &str) -> CommandOutput {
    use std::io::Write;
    let line = format!("{EXE} {arguments}");
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]);
    for (name, value) in quiet.command(&[]).get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.current_dir(quiet.homing.place());
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(typed.as_bytes()).unwrap();
    child.wait_with_output().unwrap().into()
}

#[test]
fn send_offers_a_server_to_somebody_at_a_terminal_and_to_nobody_else() {
    let quiet = Quiet::new();
    let piped = quiet.run(&["send", "-f", "hello"]);
    piped.expect(4);
    assert!(!piped.err.contains("[Y/n]") && piped.err.contains("homing up"), "{}", piped.err);
    let no = on_a_terminal(&quiet, "send -f hello", "n\n");
    assert!(no.out.contains("[Y/n]") && no.out.contains("hint:") && !no.out.contains("#1"), "{}", no.out);
    assert!(quiet.run(&["down"]).expect(0).contains("no server is running"), "nothing was started");
    let yes = on_a_terminal(&quiet, "send -f hello", "y\n");
    assert!(yes.out.contains("#1 hello") && yes.out.contains("homing down"), "{}", yes.out);
    assert_eq!(quiet.run(&["send", "-f", "again"]).expect(0), "#2 again\n", "it goes on");
    // It is there now, so nobody is asked.
    let third = on_a_terminal(&quiet, "send -f third", "");
    assert!(third.out.contains("#3 third") && !third.out.contains("[Y/n]"), "{}", third.out);
}

#[test]
fn a_chat_offers_a_server_too_and_begins_in_it() {
    let quiet = Quiet::new();
    let piped = quiet.run(&["chat"]);
    piped.expect(4);
    assert!(!piped.err.contains("[Y/n]"), "{}", piped.err);
    let size = TerminalSize { columns: 80, rows: 24 };
    let mut terminal = Terminal::start(quiet.command(&["chat"]), size);
    terminal.until_last("Start one in the background now? [Y/n]");
    terminal.press("n\r");
    assert_eq!(terminal.until_ended().code(), Some(4));
    let mut terminal = Terminal::start(quiet.command(&["chat"]), size);
    terminal.until_last("Start one in the background now? [Y/n]");
    terminal.press("\r");
    terminal.until("/help lists commands, Ctrl-D leaves");
    terminal.until_last(">");
    terminal.press("hello\r");
    terminal.until("#1 hello");
    terminal.press("/quit\r");
    assert!(terminal.until_ended().success());
    assert_eq!(quiet.run(&["send", "-f", "again"]).expect(0), "#2 again\n", "the server goes on");
}

#[test]
fn doctor_notices_that_the_program_of_a_server_was_replaced() {
    let quiet = Quiet::new();
    let copy = quiet.homing.root().join("homing");
    fs::copy(EXE, &copy).unwrap();
    let mut up = Command::new(&copy);
    for (name, value) in quiet.command(&[]).get_envs() {
        match value {
            Some(value) => up.env(name, value),
            None => up.env_remove(name),
        };
    }
    let up: CommandOutput = up.args(["up", "--background"]).output().unwrap().into();
    up.expect(0);
    let found = quiet.run(&["doctor", "--json"]).json(0);
    // Another file with the same program in it is the same program.
    assert_eq!(finding(&found, "program", "is this program")["state"], "ok");
    fs::remove_file(&copy).unwrap();
    fs::copy(EXE, &copy).unwrap();
    let found = quiet.run(&["doctor", "--json"]).json(0);
    let replaced = finding(&found, "program", "was replaced");
    assert_eq!(replaced["state"], "warn");
    assert!(text(&replaced, "remedy").contains("homing down"), "{replaced}");
    // A program of the same version that is another build.
    let other = quiet.homing.root().join("other-build");
    fs::copy(EXE, &other).unwrap();
    use std::io::Write;
    fs::File::options().append(true).open(&other).unwrap().write_all(&[0; 64]).unwrap();
    quiet.run(&["down"]).expect(0);
    quiet.run(&["up", "--background"]).expect(0);
    let mut doctor = quiet.command(&["doctor", "--json"]);
    let mut asked = Command::new(&other);
    asked.args(doctor.get_args().map(ToOwned::to_owned).collect::<Vec<_>>());
    for (name, value) in doctor.get_envs() {
        match value {
            Some(value) => asked.env(name, value),
            None => asked.env_remove(name),
        };
    }
    doctor.stdin(Stdio::null());
    let found: CommandOutput = asked.output().unwrap().into();
    assert_eq!(finding(&found.json(0), "program", "another build")["state"], "warn");
}

#[test]
fn doctor_says_what_the_server_sees_otherwise_than_this_shell() {
    let place = tempfile::tempdir().unwrap();
    let program = |dir: &str, version: &str| {
        let dir = place.path().join(dir);
        fs::create_dir_all(&dir).unwrap();
        let file = dir.join("claude");
        fs::write(&file, format!("#!/bin/sh\necho '{version} (Claude Code)'\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        dir
    };
    let (old, new) = (program("old", "2.1.100"), program("new", "2.1.200"));
    let rest = std::env::var("PATH").unwrap();
    let on = |dir: &Path| format!("{}:{rest}", dir.display());
    let look = |servers: &str, shells: &str, key: Option<&str>| {
        let homing = setup().variable("PATH", servers).start();
        let mut doctor = homing.command();
        doctor.args(["doctor", "--json"]).env("PATH", shells).env_remove("ANTHROPIC_API_KEY");
        doctor.envs(key.map(|key| ("ANTHROPIC_API_KEY", key)));
        // The server is asked for what it has found, which takes it a moment.
        eventually("the server has looked at its agents", || {
            let agents = homing.http().get("/api/v1/agents").expect(200);
            let all = agents["items"].as_array().unwrap().clone();
            let is_looking = |agent: &Value| {
                agent["missing"].as_str().is_some_and(|why| why.contains("still being looked"))
            };
            (!all.iter().any(is_looking)).then_some(())
        });
        CommandOutput::from(doctor.output().unwrap()).json(0)
    };
    let found = look(&rest, &on(&old), None);
    let missing = finding(&found, "claude", "the server does not");
    assert_eq!(missing["state"], "warn", "{missing}");
    assert!(text(&finding(&found, "path", "not on the server's"), "detail").contains("old"));
    let found = look(&on(&old), &on(&new), None);
    let differs = finding(&found, "claude", "the server finds 2.1.100");
    assert!(text(&differs, "detail").contains("this shell 2.1.200"), "{differs}");
    let found = look(&on(&old), &on(&old), Some("sk-test"));
    let unsigned = finding(&found, "claude", "NOT for the server");
    assert!(text(&unsigned, "remedy").contains("ANTHROPIC_API_KEY"), "{unsigned}");
    let found = look(&on(&old), &on(&old), None);
    assert!(text(&finding(&found, "server's agents", "claude 2.1.100"), "detail").contains("not signed in"));
    let checks = found["checks"].as_array().unwrap();
    assert!(!checks.iter().any(|check| text(check, "detail").contains("this shell finds")), "{found:#}");
}
