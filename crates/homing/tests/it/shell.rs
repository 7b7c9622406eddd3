//! Somebody with a shell in a terminal: a home of their own, the installed binary on their `PATH`, and what they see. The guide and
//! the recordings are played in one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use testkit::{Port, Terminal, TerminalSize};

use crate::EXE;

/// The prompt of every shell here.
pub(crate) const PROMPT: &str = "$";

/// A machine with nothing of Homing on it but its checkout. What was started on it is stopped in the end.
pub(crate) struct NewMachine {
    root: tempfile::TempDir,
    port: Port,
}

impl NewMachine {
    /// Its directory has the same length wherever the tests run, so that what is shown breaks at the same places.
    pub(crate) fn new() -> Self {
        let root = tempfile::Builder::new().prefix("homing-test-").tempdir_in("/tmp").unwrap();
        let machine = Self { root, port: Port::reserve() };
        let built = machine.home().join("homing/target/release");
        fs::create_dir_all(&built).unwrap();
        std::os::unix::fs::symlink(EXE, built.join("homing")).unwrap();
        let git = "[user]\n\tname = Ana\n\temail = ana@example.org\n[init]\n\tdefaultBranch = main\n";
        fs::write(machine.home().join(".gitconfig"), git).unwrap();
        machine
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root.path().join("ana")
    }

    pub(crate) fn port(&self) -> String {
        self.port.address().port().to_string()
    }

    /// The sessions of its person, in the order in which they were made.
    #[track_caller]
    pub(crate) fn sessions(&self) -> Vec<String> {
        let listed = self.command(EXE, &self.home()).args(["ls", "--all", "--json"]).output().unwrap();
        let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).expect("a list");
        let ids = listed["items"].as_array().expect("items").iter();
        let mut ids: Vec<String> = ids.map(|session| crate::text(session, "id")).collect();
        // Ids are made in the order of time.
        ids.sort();
        ids
    }

    /// Waits until no turn is under way.
    #[track_caller]
    pub(crate) fn until_quiet(&self) {
        testkit::eventually("no turn is under way", || {
            let listed =
                self.command(EXE, &self.home()).args(["ls", "--state", "running", "--json"]).output();
            let listed: serde_json::Value = serde_json::from_slice(&listed.unwrap().stdout).expect("a list");
            listed["items"].as_array().is_some_and(Vec::is_empty).then_some(())
        });
    }

    /// Puts the binary where `install` would, for whoever begins later.
    pub(crate) fn install(&self) {
        let bin = self.home().join(".local/bin");
        fs::create_dir_all(&bin).unwrap();
        std::os::unix::fs::symlink(EXE, bin.join("homing")).unwrap();
    }

    /// A command in the environment of whoever uses it, and in no other.
    fn command(&self, program: &str, home: &Path) -> Command {
        let mut command = Command::new(program);
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", self.home().join(".local/bin").display());
        command.env_clear().env("PATH", path).env("HOME", home).current_dir(home);
        command.env("LANG", "C.UTF-8").env("PS1", format!("{PROMPT} ")).env("PAGER", "cat");
        command.env("HOMING_LISTEN", self.port.address().to_string());
        // Nobody's real agent: the recordings are the same on each machine.
        command.env("HOMING_DEFAULT_AGENT", "scripted");
        command
    }

    /// A shell of whoever has this home, with these variables.
    #[track_caller]
    pub(crate) fn shell(&self, home: &Path, size: TerminalSize, variables: &[(&str, &str)]) -> Shell {
        // A terminal of its own, with the keys that it has for signals.
        let mut command = self.command("setsid", home);
        command.args(["--ctty", "bash", "--norc", "--noprofile", "--noediting", "-i"]);
        command.envs(variables.iter().copied());
        let mut shell = Shell { terminal: Terminal::start(command, size) };
        shell.until_prompt();
        shell
    }
}

impl Drop for NewMachine {
    fn drop(&mut self) {
        let mut down = self.command(EXE, &self.home());
        let _ = down.arg("down").stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

/// A shell in a terminal.
pub(crate) struct Shell {
    pub(crate) terminal: Terminal,
}

impl Shell {
    /// Types a command and presses Enter. What it shows comes after the line with the command.
    #[track_caller]
    pub(crate) fn enter(&mut self, command: &str) {
        self.terminal.press(command);
        let typed = format!("{PROMPT} {command}");
        self.terminal.until_lines(&format!("{typed:?} is typed"), |lines| lines.last() == Some(&typed));
        self.terminal.press("\r");
    }

    /// Waits until the shell has the terminal again.
    #[track_caller]
    pub(crate) fn until_prompt(&mut self) {
        self.terminal.until_last(PROMPT);
    }

    /// Runs a command to its end.
    #[track_caller]
    pub(crate) fn run(&mut self, command: &str) {
        self.enter(command);
        self.until_prompt();
    }
}
