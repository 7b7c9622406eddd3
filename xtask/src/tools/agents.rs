//! The real agents the drivers are tested with: which version of each, and where npm has put it.
//!
//! Versions are exact, because npm silently takes an older one where the newest does not like the machine's Node. Only the
//! package with the program itself is fetched where there is one, and no package's scripts are run. Nothing here starts
//! an agent for more than its version.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::npm::{self, Package};
use super::{cache, once, run, write_down};

/// Where each agent is.
#[derive(Debug)]
pub(crate) struct Agents {
    pub(crate) codex: PathBuf,
    pub(crate) claude: PathBuf,
    pub(crate) opencode: PathBuf,
    /// A launcher: the program itself is a script for the Node beside it.
    pub(crate) claude_agent_acp: PathBuf,
    pub(crate) goose: PathBuf,
    /// Launchers, too.
    pub(crate) gemini: PathBuf,
    pub(crate) qwen: PathBuf,
    pub(crate) kimi: PathBuf,
    pub(crate) codex_acp: PathBuf,
}

impl Agents {
    /// The variables that tell tests where the agents are.
    pub(crate) fn variables(&self) -> [(&'static str, &Path); 9] {
        [
            ("HOMING_TEST_CODEX", &self.codex),
            ("HOMING_TEST_CLAUDE", &self.claude),
            ("HOMING_TEST_OPENCODE", &self.opencode),
            ("HOMING_TEST_CLAUDE_AGENT_ACP", &self.claude_agent_acp),
            ("HOMING_TEST_GOOSE", &self.goose),
            ("HOMING_TEST_GEMINI", &self.gemini),
            ("HOMING_TEST_QWEN", &self.qwen),
            ("HOMING_TEST_KIMI", &self.kimi),
            ("HOMING_TEST_CODEX_ACP", &self.codex_acp),
        ]
    }
}

impl fmt::Display for Agents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, path) in self.variables() {
            writeln!(f, "{name}={}", path.display())?;
        }
        Ok(())
    }
}

/// Fetches the agents that are not there yet, 3.4 GB in all, and says where they are.
pub(crate) fn agents() -> Result<Agents> {
    let platform = Platform::here()?;
    let name = platform.name;
    let codex = NpmTool {
        name: "codex",
        packages: vec![Package::new("@openai/codex", format!("0.166.0-{name}"))],
        program: format!("@openai/codex/vendor/{}/bin/codex", platform.triple),
        script: None,
        says: "codex-cli 0.166.0",
    };
    let claude = NpmTool {
        name: "claude",
        packages: vec![Package::new(format!("@anthropic-ai/claude-code-{name}"), "2.1.325")],
        program: format!("@anthropic-ai/claude-code-{name}/claude"),
        script: None,
        says: "2.1.325 (Claude Code)",
    };
    let opencode = NpmTool {
        name: "opencode",
        packages: vec![Package::new(format!("opencode-{name}"), "1.18.33")],
        program: format!("opencode-{name}/bin/opencode"),
        script: None,
        says: "1.18.33",
    };
    // Scripts for a Node that need not be the machine's.
    let script = |name: &'static str, package: &str, version: &str, script: &'static str, says| NpmTool {
        name,
        packages: vec![
            Package::new(package, version),
            Package::new(format!("node-{}", platform.name), "22.23.3"),
        ],
        program: format!("node-{}/bin/node", platform.name),
        script: Some(script),
        says,
    };
    let claude_agent_acp = script(
        "claude-agent-acp",
        "@agentclientprotocol/claude-agent-acp",
        "0.99.1",
        "@agentclientprotocol/claude-agent-acp/dist/index.js",
        "0.99.1",
    );
    let gemini =
        script("gemini", "@google/gemini-cli", "0.61.0", "@google/gemini-cli/bundle/gemini.js", "0.61.0");
    let qwen =
        script("qwen", "@qwen-code/qwen-code", "0.24.4", "@qwen-code/qwen-code/cli-entry.js", "0.24.4");
    let kimi =
        script("kimi", "@moonshot-ai/kimi-code", "2.1.0", "@moonshot-ai/kimi-code/dist/main.mjs", "2.1.0");
    let codex_acp = script(
        "codex-acp",
        "@agentclientprotocol/codex-acp",
        "2.6.0",
        "@agentclientprotocol/codex-acp/dist/index.js",
        "@agentclientprotocol/codex-acp 2.6.0",
    );
    // The package and the program inside it do not count alike.
    let goose = NpmTool {
        name: "goose",
        packages: vec![Package::new(format!("@aaif/goose-binary-{name}"), "0.20.1")],
        program: format!("@aaif/goose-binary-{name}/bin/goose"),
        script: None,
        says: "1.34.0",
    };
    let cache = cache()?;
    let agents = Agents {
        codex: codex.get(&cache)?,
        claude: claude.get(&cache)?,
        opencode: opencode.get(&cache)?,
        claude_agent_acp: claude_agent_acp.get(&cache)?,
        goose: goose.get(&cache)?,
        gemini: gemini.get(&cache)?,
        qwen: qwen.get(&cache)?,
        kimi: kimi.get(&cache)?,
        codex_acp: codex_acp.get(&cache)?,
    };
    write_down(&cache, "agents.env", &agents.to_string())?;
    Ok(agents)
}

/// A machine as the agents' packages call it.
struct Platform {
    name: &'static str,
    triple: &'static str,
}

impl Platform {
    fn here() -> Result<Self> {
        match (std::env::consts::OS, std::env::consts::ARCH) {
            ("linux", "x86_64") => Ok(Self { name: "linux-x64", triple: "x86_64-unknown-linux-musl" }),
            ("linux", "aarch64") => Ok(Self { name: "linux-arm64", triple: "aarch64-unknown-linux-musl" }),
            (os, arch) => anyhow::bail!(
                "the agents are tested on Linux (x86_64, aarch64), and this is {os} on {arch}; run these tests there"
            ),
        }
    }
}

/// A program from npm.
struct NpmTool {
    name: &'static str,
    /// The first one is the tool, and its version is the tool's.
    packages: Vec<Package>,
    /// Below `node_modules`.
    program: String,
    /// The script that the program is given to run, below `node_modules`, if it is not the tool itself.
    script: Option<&'static str>,
    /// The answer to `--version`.
    says: &'static str,
}

impl NpmTool {
    /// The program to start. After the first time this reads a few small files and starts nothing.
    fn get(&self, cache: &Path) -> Result<PathBuf> {
        let home = cache.join(format!("agent-{}-{}", self.name, self.packages[0].version));
        once(&home, || self.install(&home)).with_context(|| self.remedy(&home))?;
        self.check_versions(&home).with_context(|| self.remedy(&home))?;
        Ok(self.command(&home))
    }

    fn remedy(&self, home: &Path) -> String {
        let version = &self.packages[0].version;
        format!(
            "{} {version} is not in {}; remove that directory and try again with npm on the PATH",
            self.name,
            home.display()
        )
    }

    fn install(&self, home: &Path) -> Result<()> {
        println!("fetching {} {} (once; kept in {})", self.name, self.packages[0].version, home.display());
        npm::install(home, &self.packages)?;
        self.write_launcher(home)?;
        self.check_versions(home)?;
        self.ask_version(home)
    }

    fn command(&self, home: &Path) -> PathBuf {
        match self.script {
            Some(_) => home.join(self.name),
            None => home.join("node_modules").join(&self.program),
        }
    }

    fn write_launcher(&self, home: &Path) -> Result<()> {
        let Some(script) = self.script else { return Ok(()) };
        let launcher = home.join(self.name);
        let below = "$(dirname \"$0\")/node_modules";
        let text = format!("#!/bin/sh\nexec \"{below}/{}\" \"{below}/{script}\" \"$@\"\n", self.program);
        std::fs::write(&launcher, text)?;
        run(Command::new("chmod").arg("+x").arg(&launcher))
    }

    fn check_versions(&self, home: &Path) -> Result<()> {
        let command = self.command(home);
        ensure!(command.is_file(), "{} is missing", command.display());
        self.packages.iter().try_for_each(|package| package.check(home))
    }

    /// In a home of its own: some agents write settings into it before they say anything.
    fn ask_version(&self, home: &Path) -> Result<()> {
        let command = self.command(home);
        let scratch = home.join("home");
        std::fs::create_dir_all(&scratch)?;
        let output = Command::new(&command)
            .arg("--version")
            .env_clear()
            .env("HOME", &scratch)
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("could not start {}", command.display()))?;
        std::fs::remove_dir_all(scratch)?;
        let said = String::from_utf8_lossy(&output.stdout);
        ensure!(said.trim() == self.says, "its --version is {:?}, not {:?}", said.trim(), self.says);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool() -> NpmTool {
        NpmTool {
            name: "a",
            packages: vec![Package::new("@b/a", "1.2.3")],
            program: "@b/a/bin/a".into(),
            script: None,
            says: "1.2.3",
        }
    }

    /// A cache with the tool in it, as if npm had been there.
    fn installed(version: &str) -> PathBuf {
        let cache = std::env::temp_dir().join(format!("homing-agents-{version}-{}", std::process::id()));
        let home = cache.join("agent-a-1.2.3");
        let package = home.join("node_modules/@b/a");
        std::fs::create_dir_all(package.join("bin")).unwrap();
        std::fs::write(package.join("bin/a"), "").unwrap();
        std::fs::write(package.join("package.json"), format!(r#"{{"version": "{version}"}}"#)).unwrap();
        std::fs::write(home.join("complete"), "").unwrap();
        cache
    }

    #[test]
    fn what_is_there_in_the_right_version_is_used() {
        let cache = installed("1.2.3");
        let command = tool().get(&cache).unwrap();
        assert_eq!(command, cache.join("agent-a-1.2.3/node_modules/@b/a/bin/a"));
        std::fs::remove_dir_all(cache).unwrap();
    }

    #[test]
    fn a_wrong_version_and_a_missing_program_say_what_to_do() {
        let cache = installed("1.2.2");
        let error = format!("{:#}", tool().get(&cache).unwrap_err());
        assert!(
            error.contains("remove that directory") && error.contains("@b/a is 1.2.2, not 1.2.3"),
            "{error}"
        );
        std::fs::remove_file(cache.join("agent-a-1.2.3/node_modules/@b/a/bin/a")).unwrap();
        let error = format!("{:#}", tool().get(&cache).unwrap_err());
        assert!(error.contains("remove that directory") && error.contains("is missing"), "{error}");
        std::fs::remove_dir_all(cache).unwrap();
    }
}
