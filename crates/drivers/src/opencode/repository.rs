//! The things a repository brings for opencode: plugins, which nothing keeps it from running, and instructions, which it reads by name
//! where it reads nothing else of the repository. Pure: whether there are any is seen where opencode runs, not here.

use std::path::Path;

use agent::{DETAIL_BYTES_MAX, Trouble, bounded};
use serde_json::json;

/// The words before the name of what the look has found.
const FOUND: &str = "homing found a plugin: ";

/// Looks for plugins where opencode would, and goes on as the program that its arguments name if there are none. It runs behind
/// the session's wall, in its directory. A file that says `plugin`, or that hides a name by `\u`, counts as one that names some. The
/// home is the person's own.
const LOOK: &str = r#"
found() { printf '%s%s\n' 'homing found a plugin: ' "$1" >&2; exit 78; }
home=$(cd "$HOME" 2>/dev/null && pwd -P)
at=$(pwd -P)
while :; do
  if [ "$at" != "$home" ]; then
    for file in "$at"/.opencode/plugin/*.[jt]s "$at"/.opencode/plugin/.*.[jt]s \
      "$at"/.opencode/plugins/*.[jt]s "$at"/.opencode/plugins/.*.[jt]s; do
      if [ -e "$file" ] || [ -L "$file" ]; then found "$file"; fi
    done
    for file in "$at"/opencode.json "$at"/opencode.jsonc "$at"/.opencode/opencode.json "$at"/.opencode/opencode.jsonc; do
      if [ -f "$file" ] && grep -qE '"plugins?"|\\u' "$file"; then found "$file"; fi
    done
  fi
  [ "$at" = / ] && break
  at=${at%/*}
  [ -n "$at" ] || at=/
done
exec "$@"
"#;

/// The command that looks first, before the program and its arguments.
pub(super) fn look() -> Vec<String> {
    ["/bin/sh", "-c", LOOK, "sh"].map(str::to_owned).to_vec()
}

/// The refusal that the look's complaint stands for.
pub(super) fn refusal(complaint: &str) -> Option<Trouble> {
    let found = complaint.lines().find_map(|line| line.strip_prefix(FOUND))?;
    let found = bounded(found, DETAIL_BYTES_MAX / 2);
    Some(Trouble::refused(format!(
        "opencode would run a plugin without asking, because {found} is in this directory or above it; this agent is not set up \
         for that. Take it away, or set `bypass = true`"
    )))
}

/// The variable in which a configuration is given, above the person's own; lists of instructions are added to theirs.
pub(super) const VARIABLE: &str = "OPENCODE_CONFIG_CONTENT";
/// The files in which repositories keep instructions for agents.
const NAMES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];
/// The directories that are looked in: the session's own and those above it. Deeper than this nobody works.
const DIRECTORIES_MAX: usize = 32;

/// A configuration that names the instructions in this directory and those above it, the uppermost first, and nothing else.
pub(super) fn config(directory: &str) -> String {
    let mut directories: Vec<&Path> = Path::new(directory)
        .ancestors()
        .take(DIRECTORIES_MAX)
        // In its configuration `{file:NAME}` and `{env:NAME}` stand for what is in there, also within a path.
        .filter(|path| !path.to_string_lossy().contains('{'))
        .collect();
    directories.reverse();
    let named: Vec<String> = directories
        .iter()
        .flat_map(|path| NAMES.map(|name| path.join(name).to_string_lossy().into_owned()))
        .collect();
    json!({"instructions": named}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_look_says_is_what_is_read() {
        assert!(LOOK.contains(&format!("'{FOUND}'")));
        let refused =
            refusal(&format!("a warning\n{FOUND}/srv/.opencode/plugin/x.js\n")).expect("it found one");
        assert!(
            refused.detail.contains("because /srv/.opencode/plugin/x.js is")
                && refused.detail.contains("bypass")
        );
        assert_eq!(refusal("it crashed"), None);
    }

    #[test]
    fn a_directory_and_those_above_it_are_named_from_the_top() {
        let named = |names: &[&str]| json!({"instructions": names}).to_string();
        let all =
            ["/AGENTS.md", "/CLAUDE.md", "/a/AGENTS.md", "/a/CLAUDE.md", "/a/b/AGENTS.md", "/a/b/CLAUDE.md"];
        assert_eq!(config("/a/b"), named(&all));
    }

    #[test]
    fn no_name_of_a_directory_is_read_as_a_word_of_the_configuration() {
        assert_eq!(config("/a/{file:~/.ssh/id_rsa}"), config("/a"));
        assert_eq!(config("/a/{env:SECRET}/b"), config("/a"));
        assert_eq!(config(&"/a".repeat(100)).matches("AGENTS.md").count(), DIRECTORIES_MAX);
    }
}
