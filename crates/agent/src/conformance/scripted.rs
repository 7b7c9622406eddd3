//! The dialect of the scripted agent: directives in, `#N TEXT` out.

use kernel::Failure;

use super::{Cannot, Dialect, Weather, Wish};
use crate::scripted::{HANGING, flood_byte};

/// More than any pipe or channel between an agent and us holds.
const FLOOD_BYTES: u64 = 3_000_000;
/// Longer than any story waits.
const DAWDLE_MS: u64 = 60_000;
/// Long enough for a word in between.
const LINGER_MS: u64 = 3_000;
/// Fast enough for a story, slow enough to be a stream.
const WORDS_PER_SECOND: u32 = 3_000;

/// The dialect of the scripted agent.
#[derive(Debug, Clone, Copy, Default)]
pub struct ScriptedDialect;

impl ScriptedDialect {
    /// The words under which this weather comes over a turn: the scripted agent makes its own.
    pub fn storm(weather: Weather, wishes: &[Wish<'_>]) -> Result<String, Cannot> {
        let fault = match weather {
            Weather::Unauthorized => Wish::Fail(Failure::Refused),
            Weather::NoServer | Weather::TooMany | Weather::Overloaded => Wish::Fail(Failure::Transient),
            Weather::Cut | Weather::Garbled => Wish::FailAfter,
        };
        Self.phrase(&[wishes, &[fault]].concat())
    }
}

impl Dialect for ScriptedDialect {
    fn phrase(&self, wishes: &[Wish<'_>]) -> Result<String, Cannot> {
        if wishes.contains(&Wish::Write) {
            return Err(Cannot::because("it writes files without asking"));
        }
        Ok(wishes.iter().map(line).collect::<Vec<_>>().join("\n"))
    }

    fn answer(&self, wishes: &[Wish<'_>], number: u32) -> String {
        let kept: Vec<&str> = wishes
            .iter()
            .filter_map(|wish| if let Wish::Keep(word) = wish { Some(*word) } else { None })
            .collect();
        let heading = format!("#{number} {}", kept.join("\n"));
        let mut answers = vec!["Shell: denied: not now", "Shell: allowed"];
        let printed = wishes.iter().filter_map(|wish| match wish {
            Wish::Words(count) | Wish::Stream(count) => {
                Some((1..=*count).map(|word| format!("word{word}")).collect::<Vec<_>>().join(" "))
            }
            Wish::Flood => Some((0..FLOOD_BYTES).map(|at| char::from(flood_byte(at))).collect()),
            Wish::Hang => Some(HANGING.to_owned()),
            // The stories allow the first and refuse the second.
            Wish::Ask => answers.pop().map(str::to_owned),
            _ => None,
        });
        let lines: Vec<String> = std::iter::once(heading.trim_end().to_owned()).chain(printed).collect();
        lines.join("\n")
    }

    fn recalled(&self, answer: &str) -> Vec<String> {
        // One line per message, its own lines marked off.
        let messages = answer.lines().skip(1).flat_map(|message| message.split("\\n"));
        messages.filter(|line| !line.starts_with('!')).map(str::to_owned).collect()
    }

    fn was_done(&self, answer: &str) -> bool {
        answer.contains("Shell: allowed")
    }
}

fn line(wish: &Wish<'_>) -> String {
    match wish {
        Wish::Keep(word) => (*word).to_owned(),
        Wish::Recall => "!recall".to_owned(),
        Wish::Words(count) => format!("!say {count} 0"),
        Wish::Stream(count) => format!("!say {count} {WORDS_PER_SECOND}"),
        Wish::Flood => format!("!flood {FLOOD_BYTES}"),
        Wish::Dawdle => format!("!sleep {DAWDLE_MS}"),
        Wish::Linger => format!("!sleep {LINGER_MS}"),
        Wish::Ask => "!ask Shell".to_owned(),
        Wish::Write => unreachable!("it is not granted"),
        Wish::Choose => "!choose Paint | red | blue".to_owned(),
        Wish::AskWords => "!askwords Paint".to_owned(),
        Wish::Directory => "!pwd".to_owned(),
        Wish::Children(count) => format!("!fork-bomb {count}"),
        Wish::ChildrenAndDawdle(count) => format!("!fork-bomb {count}\n!sleep {DAWDLE_MS}"),
        Wish::Crash => "!crash".to_owned(),
        Wish::Hang => "!hang".to_owned(),
        Wish::NewId => "!newid".to_owned(),
        Wish::Fail(Failure::Gone) => "!gone".to_owned(),
        Wish::Fail(Failure::Busy) => "!busy".to_owned(),
        Wish::Fail(Failure::Refused) => "!refuse".to_owned(),
        Wish::Fail(Failure::Transient) => "!fail before".to_owned(),
        Wish::FailAfter => "!fail after".to_owned(),
        Wish::FailStarts { transient, busy } => format!("!fail start {transient}\n!busy start {busy}"),
    }
}
