//! The configuration: one TOML file over `default.toml`, which is built in and is the documentation.
//!
//! A file is read twice: alone, so that a wrong key or value is told with its line, then laid over the defaults, so that
//! every value comes from the one or the other. Nothing here has a default of its own; a test holds `default.toml` to
//! these types, to the engine's limits and to the kernel's policy.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use toml::Table;

use crate::exit::{Exit, Trouble};

/// Every key with its default and what it means.
pub(crate) const DEFAULT: &str = include_str!("../default.toml");

/// What the server is told.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    pub(crate) listen: String,
    pub(crate) allowed_hosts: Vec<String>,
    pub(crate) default_agent: String,
    pub(crate) log: String,
    limits: Limits,
    policy: Policy,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Limits {
    open_max: u32,
    awake_max: u32,
    pending_max: u32,
    verdict_wait: Span,
    stop_grace: Span,
    words_wait: Span,
    words_bytes_max: usize,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Policy {
    attempts_max: u16,
    backoff: Span,
    backoff_max: Span,
    turn_max: Span,
    hold_max: Span,
    ask_max: Span,
    crowded_wait: Span,
    after_failure: AfterFailure,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum AfterFailure {
    #[default]
    Hold,
    GoOn,
}

impl Config {
    /// The configuration in force, and the file it comes from, if there is one.
    pub(crate) fn load(named: Option<&Path>, data: &Path) -> Result<(Self, Option<PathBuf>)> {
        let (file, text) = match find(named, data)? {
            Some((path, text)) => (Some(path), text),
            None => (None, String::new()),
        };
        let mut config = Self::read(&text).map_err(|why| {
            let path = file.as_deref().unwrap_or(Path::new("default.toml"));
            Trouble::new(Exit::Usage, format!("{}: {}", path.display(), why.trim_end()))
                .hint("`homing config` prints every key with its default and what it means")
        })?;
        if let Ok(listen) = std::env::var("HOMING_LISTEN") {
            config.listen = listen;
        }
        Ok((config, file))
    }

    /// A file's text over the defaults. An error names the line.
    fn read(text: &str) -> Result<Self, String> {
        // What is read here is thrown away: only what is wrong with it counts.
        let alone: Self = toml::from_str(text).map_err(|why| why.to_string())?;
        drop(alone);
        let parse = |text: &str| toml::from_str::<Table>(text).map_err(|why| why.to_string());
        let mut all = parse(DEFAULT)?;
        lay_over(&mut all, parse(text)?);
        let config: Self = all.try_into().map_err(|why: toml::de::Error| why.to_string())?;
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<(), String> {
        let (limits, policy) = (&self.limits, &self.policy);
        let counts = [
            ("limits.open_max", u64::from(limits.open_max)),
            ("limits.awake_max", u64::from(limits.awake_max)),
            ("limits.pending_max", u64::from(limits.pending_max)),
            ("limits.words_bytes_max", limits.words_bytes_max as u64),
            ("policy.attempts_max", u64::from(policy.attempts_max)),
            ("policy.turn_max", policy.turn_max.0),
        ];
        match counts.iter().find(|(_, count)| *count == 0) {
            Some((key, _)) => Err(format!("{key} is 0: nothing could ever be done")),
            None => Ok(()),
        }
    }

    /// How much of everything there may be.
    pub(crate) fn limits(&self) -> engine::Limits {
        let Limits { open_max, awake_max, pending_max, words_bytes_max, .. } = self.limits;
        engine::Limits {
            open_max,
            awake_max,
            pending_max,
            verdict_wait: Duration::from_millis(self.limits.verdict_wait.0),
            stop_grace_ms: self.limits.stop_grace.0,
            words_ms_max: self.limits.words_wait.0,
            words_bytes_max,
        }
    }

    /// What sessions may count on.
    pub(crate) fn policy(&self) -> kernel::Policy {
        let policy = &self.policy;
        kernel::Policy {
            attempts_max: policy.attempts_max,
            backoff_ms: policy.backoff.0,
            backoff_ms_max: policy.backoff_max.0,
            turn_ms_max: policy.turn_max.0,
            hold_ms_max: policy.hold_max.0,
            ask_ms_max: policy.ask_max.0,
            crowded_ms: policy.crowded_wait.0,
            after_failure: match policy.after_failure {
                AfterFailure::Hold => kernel::AfterFailure::Hold,
                AfterFailure::GoOn => kernel::AfterFailure::GoOn,
            },
        }
    }
}

/// The file to read: the one that is named, or the first that is there.
fn find(named: Option<&Path>, data: &Path) -> Result<Option<(PathBuf, String)>> {
    if let Some(path) = named {
        let text = std::fs::read_to_string(path).map_err(|why| {
            Trouble::new(Exit::Usage, format!("{}: {why}", path.display()))
                .hint("`--config` names a file that is there; leave it out to do without")
        })?;
        return Ok(Some((path.to_owned(), text)));
    }
    for path in [Some(data.join("homing.toml")), in_home()].into_iter().flatten() {
        match std::fs::read_to_string(&path) {
            Ok(text) => return Ok(Some((path, text))),
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => {}
            // A file that is there and cannot be read is not the same as none.
            Err(why) => return Err(why).with_context(|| path.display().to_string()),
        }
    }
    Ok(None)
}

fn in_home() -> Option<PathBuf> {
    let named = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = named("XDG_CONFIG_HOME").or_else(|| Some(named("HOME")?.join(".config")))?;
    Some(base.join("homing").join("config.toml"))
}

fn lay_over(base: &mut Table, over: Table) {
    for (key, value) in over {
        match (base.get_mut(&key), value) {
            (Some(toml::Value::Table(base)), toml::Value::Table(over)) => lay_over(base, over),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}

/// A duration in milliseconds, written as a number and a unit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
struct Span(u64);

const UNITS: [(&str, u64); 5] =
    [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 60 * 60_000), ("d", 24 * 60 * 60_000)];

impl TryFrom<String> for Span {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, unit) = text.split_at(digits);
        let unit = UNITS.iter().find(|(name, _)| *name == unit.trim());
        let ms = number.parse::<u64>().ok().zip(unit).and_then(|(number, (_, ms))| number.checked_mul(*ms));
        ms.map(Self).ok_or_else(|| {
            format!("{text:?} is not a duration: write a number and one of ms, s, m, h, d, as in \"30s\"")
        })
    }
}

impl From<Span> for String {
    fn from(Span(ms): Span) -> Self {
        format!("{ms}ms")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_engine_and_the_kernel() {
        let config = Config::read("").unwrap();
        assert_eq!(config.limits(), engine::Limits::default());
        assert_eq!(config.policy(), kernel::Policy::default());
    }

    #[test]
    fn default_toml_has_every_key_and_no_other() {
        fn keys(table: &Table, above: &str, all: &mut Vec<String>) {
            for (key, value) in table {
                match value {
                    toml::Value::Table(table) => keys(table, &format!("{above}{key}."), all),
                    _ => all.push(format!("{above}{key}")),
                }
            }
        }
        let (mut written, mut known) = (Vec::new(), Vec::new());
        keys(&toml::from_str(DEFAULT).unwrap(), "", &mut written);
        keys(&Table::try_from(Config::default()).unwrap(), "", &mut known);
        written.sort();
        known.sort();
        assert_eq!(written, known);
    }

    #[test]
    fn what_a_file_leaves_out_stays_as_it_is() {
        let config = Config::read("[policy]\nturn_max = \"3m\"\n").unwrap();
        assert_eq!(config.policy(), kernel::Policy { turn_ms_max: 180_000, ..kernel::Policy::default() });
        assert_eq!(config.listen, "127.0.0.1:4747");
    }

    #[test]
    fn a_wrong_file_is_told_with_its_line() {
        let wrong = |text: &str| Config::read(text).unwrap_err();
        let key = wrong("log = \"info\"\nlisen = \"127.0.0.1:1\"\n");
        assert!(key.contains("line 2") && key.contains("lisen") && key.contains("`listen`"), "{key}");
        let span = wrong("[policy]\n\nturn_max = \"a while\"\n");
        assert!(span.contains("line 3") && span.contains("not a duration"), "{span}");
        assert!(wrong("[limits]\nawake_max = -1\n").contains("line 2"));
        assert!(wrong("[policy]\nattempts_max = 0\n").contains("policy.attempts_max"));
    }

    #[test]
    fn durations_have_units() {
        let span = |text: &str| Span::try_from(text.to_owned()).map(|Span(ms)| ms).ok();
        assert_eq!(
            ["0ms", "2s", "3m", "1h", "7d"].map(span),
            [0, 2_000, 180_000, 3_600_000, 604_800_000].map(Some)
        );
        assert_eq!(["", "5", "s", "-1s", "1.5s", "99999999999999999d"].map(span), [None; 6]);
    }
}
