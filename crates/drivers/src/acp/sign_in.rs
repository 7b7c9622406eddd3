//! The look whether somebody has signed in to an agent: by a variable, or by a file in its home. Nothing is started, and nothing
//! of what a file says goes any further.
//!
//! A file of credentials is there because somebody signed in. A file of settings may be there for any reason: it counts only if
//! it has a provider or a key in it. What cannot be told is unknown, which is never taken for a yes.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use agent::SignIn;

use super::quirks::Behaviour;

/// The part of a file of settings that is looked at. Those that people write are much shorter.
const SETTINGS_BYTES_MAX: u64 = 64 * 1024;
/// The longest file of credentials that has none in it: `{}` and the end of its line.
const EMPTY_BYTES_MAX: u64 = 4;

/// The sign-in of an agent with these variables and this home, as far as it can be seen.
pub(super) fn look(behaviour: &Behaviour, env: &[(String, String)], home: &str) -> SignIn {
    let Behaviour { secrets, sign_in_files, sign_in_keys, sign_in, .. } = behaviour;
    if let Some((name, _)) = env.iter().find(|(name, value)| secrets.contains(name) && !value.is_empty()) {
        return SignIn::Here { by: name.clone() };
    }
    // A home per session does not exist before its session.
    if sign_in_files.is_empty() || home.contains("{session}") {
        return SignIn::Unknown;
    }
    let files = sign_in_files.iter().map(|file| Path::new(home).join(file));
    let found: Vec<_> = files.filter(|file| file.is_file()).collect();
    match found.iter().find(|file| has_sign_in(file, sign_in_keys)) {
        Some(file) => SignIn::Here { by: file.display().to_string() },
        None if found.is_empty() => SignIn::Missing { how: sign_in.clone() },
        None => SignIn::Unknown,
    }
}

fn has_sign_in(file: &Path, keys: &[String]) -> bool {
    if keys.is_empty() {
        return file.metadata().is_ok_and(|it| it.len() > EMPTY_BYTES_MAX);
    }
    let Ok(file) = File::open(file) else { return false };
    let mut bytes = Vec::new();
    let is_read = file.take(SETTINGS_BYTES_MAX).read_to_end(&mut bytes).is_ok();
    is_read && String::from_utf8_lossy(&bytes).lines().any(|line| keys.iter().any(|key| sets(line, key)))
}

/// True if a line of settings gives this key a value: `KEY: value`, `key = "value"` or `"key": "value"`.
fn sets(line: &str, key: &str) -> bool {
    let value = || {
        let rest = line.trim_start().trim_start_matches('"').strip_prefix(key)?;
        let rest = rest.trim_start_matches('"').trim_start();
        rest.strip_prefix(':').or_else(|| rest.strip_prefix('='))
    };
    value().is_some_and(|value| {
        let value = value.split(" #").next().unwrap_or_default();
        let value = value.trim().trim_end_matches(',').trim_matches(['"', '\'']);
        !value.is_empty() && value != "null"
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acp::quirks::Quirks;

    struct AtHome(tempfile::TempDir);

    impl AtHome {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.0.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }

        fn look(&self, agent: &str) -> SignIn {
            look(&Quirks::of(agent).unwrap().behaviour(), &[], self.0.path().to_str().unwrap())
        }
    }

    #[test]
    fn a_file_of_settings_is_a_sign_in_only_with_a_provider_or_a_key_in_it() {
        for (agent, file, without, with) in [
            (
                "goose",
                ".config/goose/config.yaml",
                "extensions:\n  memory:\n    enabled: true\n# GOOSE_PROVIDER: openai\nGOOSE_PROVIDER: \"\"\n",
                "GOOSE_MODEL: m\nGOOSE_PROVIDER: openai\n",
            ),
            (
                "kimi",
                ".kimi-code/config.toml",
                "default_model = \"m\"\n[providers.p]\ntype = \"openai\"\napi_key = \"\" # none\n",
                "[providers.p]\n  api_key = \"sk\"\n",
            ),
        ] {
            let home = AtHome::new();
            assert!(matches!(home.look(agent), SignIn::Missing { .. }), "{agent}");
            for text in ["", without] {
                home.write(file, text);
                assert_eq!(home.look(agent), SignIn::Unknown, "{agent}: {text}");
            }
            home.write(file, with);
            assert!(matches!(home.look(agent), SignIn::Here { by } if by.ends_with(file)), "{agent}");
            // Whatever stands too far down is not looked for.
            home.write(file, &format!("{}{with}", "# a line\n".repeat(10_000)));
            assert_eq!(home.look(agent), SignIn::Unknown, "{agent}");
        }
    }

    #[test]
    fn an_empty_file_of_credentials_is_no_sign_in_and_no_agent_counts_a_directory() {
        for (agent, file) in [
            ("gemini", ".gemini/oauth_creds.json"),
            ("qwen", ".qwen/oauth_creds.json"),
            ("claude-agent-acp", ".claude/.credentials.json"),
            ("codex-acp", ".codex/auth.json"),
        ] {
            let home = AtHome::new();
            std::fs::create_dir_all(home.0.path().join(file)).unwrap();
            assert!(matches!(home.look(agent), SignIn::Missing { .. }), "{agent}");
            std::fs::remove_dir(home.0.path().join(file)).unwrap();
            home.write(file, "{}\n");
            assert_eq!(home.look(agent), SignIn::Unknown, "{agent}");
            home.write(file, "{\"access_token\": \"x\"}");
            assert!(matches!(home.look(agent), SignIn::Here { .. }), "{agent}");
        }
    }

    #[test]
    fn a_key_is_set_by_a_line_of_its_own() {
        for line in ["KEY: x", "  KEY = 'x'", "\"KEY\": \"x\",", "KEY=x"] {
            assert!(sets(line, "KEY"), "{line}");
        }
        for line in ["# KEY: x", "KEYS: x", "KEY", "KEY:", "KEY = \"\"", "\"KEY\": null,", "OTHER: KEY: x"] {
            assert!(!sets(line, "KEY"), "{line}");
        }
    }
}
