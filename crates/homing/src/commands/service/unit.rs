//! The text of a service, for systemd and for launchd. Pure: what is in it is told, and nothing is read or written here.

use std::fmt::Write as _;
use std::path::PathBuf;

/// The line that every text of ours has, by which it is known later.
pub(super) const MARK: &str = "Written by `homing service install`";

/// The way in which a service is run.
#[derive(Debug, Clone)]
pub(super) struct ServiceSetup {
    /// The program.
    pub(super) exe: PathBuf,
    /// Its data directory.
    pub(super) data: PathBuf,
    /// Further arguments for `serve`.
    pub(super) arguments: Vec<String>,
    /// Where it looks for agents: a service manager's own `PATH` has none of a person's directories.
    pub(super) path: String,
}

impl ServiceSetup {
    fn command(&self) -> Vec<String> {
        let words = [
            self.exe.to_string_lossy().into_owned(),
            "serve".to_owned(),
            "--data".to_owned(),
            self.data.to_string_lossy().into_owned(),
        ];
        words.into_iter().chain(self.arguments.iter().cloned()).collect()
    }

    /// A unit for the systemd of one user.
    pub(super) fn systemd(&self) -> String {
        let words: Vec<String> =
            self.command().iter().map(|word| systemd_word(&word.replace('$', "$$"))).collect();
        let (command, path) = (words.join(" "), systemd_word(&format!("PATH={}", self.path)));
        format!(
            "# {MARK}; the next one replaces it.
# Changes of your own belong into `systemctl --user edit homing`, which is a file of its own.
[Unit]
Description=Homing, which owns the sessions of coding agents
After=network.target

[Service]
Type=exec
ExecStart={command}
Environment={path}
# Keys of agents, if they are not signed in by a file: NAME=value, one per line, for your eyes only (chmod 600).
EnvironmentFile=-%h/.config/homing/environment
# SIGTERM for the server alone: it stops its agents and hands everything over.
KillMode=mixed
TimeoutStopSec=90
Restart=on-failure
RestartSec=2
# Wrong configuration, or another server that has the data directory: trying again does not help.
RestartPreventExitStatus=2 5
# Exact bounds of agents' memory and processes.
Delegate=memory pids
DelegateSubgroup=server
UMask=0077

[Install]
WantedBy=default.target
"
        )
    }

    /// An agent for the launchd of one user of macOS.
    pub(super) fn launchd(&self, label: &str) -> String {
        let mut words = String::new();
        for word in self.command() {
            let _ = writeln!(words, "    <string>{}</string>", xml(&word));
        }
        let log = xml(&self.data.join("server.log").to_string_lossy());
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">
<!-- {MARK}; the next one replaces it. -->
<plist version=\"1.0\">
<dict>
  <key>Label</key>
  <string>{label}</string>
  <key>ProgramArguments</key>
  <array>
{words}  </array>
  <key>EnvironmentVariables</key>
  <dict>
    <key>PATH</key>
    <string>{}</string>
  </dict>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <key>ExitTimeOut</key>
  <integer>90</integer>
  <key>Umask</key>
  <integer>63</integer>
  <key>StandardErrorPath</key>
  <string>{log}</string>
</dict>
</plist>
",
            xml(&self.path)
        )
    }
}

/// A word as systemd reads it: in quotes if it has to be, and with its specifiers as they are.
fn systemd_word(word: &str) -> String {
    let escaped = word.replace('%', "%%");
    let is_plain = |c: char| c.is_alphanumeric() || "/._-:=+,@%$~".contains(c);
    if !escaped.is_empty() && escaped.chars().all(is_plain) {
        return escaped;
    }
    format!("\"{}\"", escaped.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

fn xml(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup(exe: &str, data: &str, arguments: &[&str]) -> ServiceSetup {
        ServiceSetup {
            exe: exe.into(),
            data: data.into(),
            arguments: arguments.iter().map(|&word| word.to_owned()).collect(),
            path: "/home/ana/.local/bin:/usr/local/bin:/usr/bin:/bin".to_owned(),
        }
    }

    #[test]
    fn the_documented_unit_is_the_one_that_is_written() {
        let documented = include_str!("../../../../../docs/operating.md");
        let unit = setup("/usr/local/bin/homing", "/home/ana/.local/share/homing", &[]).systemd();
        assert!(documented.contains(&format!("```ini\n{unit}```")), "docs/operating.md needs:\n{unit}");
    }

    #[test]
    fn no_name_of_a_file_says_anything_else_to_systemd() {
        let odd = setup("/opt/my tools/homing", "/home/ana/100% \"sure\" $HOME", &["--config", "/a\\b"]);
        let unit = odd.systemd();
        let wanted = r#"ExecStart="/opt/my tools/homing" serve --data "/home/ana/100%% \"sure\" $$HOME" --config "/a\\b""#;
        assert!(unit.contains(wanted), "{unit}");
    }

    #[test]
    fn a_plist_has_the_shape_that_launchd_wants() {
        let plist = setup("/usr/local/bin/homing", "/Users/ana/a <&> b", &["--listen", "127.0.0.1:1"])
            .launchd("homing");
        for part in [
            "<key>Label</key>\n  <string>homing</string>",
            "    <string>/usr/local/bin/homing</string>\n    <string>serve</string>\n    <string>--data</string>\n    <string>/Users/ana/a &lt;&amp;&gt; b</string>\n    <string>--listen</string>",
            "<key>SuccessfulExit</key>\n    <false/>",
            "<key>PATH</key>\n    <string>/home/ana/.local/bin:/usr/local/bin:/usr/bin:/bin</string>",
            MARK,
        ] {
            assert!(plist.contains(part), "no {part:?} in {plist}");
        }
        for name in ["dict", "array", "plist", "string", "key", "integer"] {
            let count = |text: &str| plist.matches(text).count();
            assert_eq!(
                count(&format!("<{name}>")) + count(&format!("<{name} ")),
                count(&format!("</{name}>")),
                "{name}"
            );
        }
    }
}
