//! A command line that cannot be understood: what is wrong with it, and what to type instead, in the words of all other errors.
//!
//! The parser says the same in words of its own, over lines that no terminal's width counts for. A word that is no command is for
//! `near_commands`; help and versions are no errors, and the parser prints them.

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::exit::{CliError, Exit};
use crate::here::quoted;
use crate::near_commands::{commands_at, unknown, verb_near};
use crate::screen::{cut, tame_name};

/// The most of a word that is repeated to whoever typed it.
const WORD_SHOWN: usize = 60;

/// The error for what was typed; none if it asks for help or a version.
pub(crate) fn refused(error: &clap::Error, typed: &[String], top: &clap::Command) -> Option<CliError> {
    let (path, _) = commands_at(typed, None, top);
    let path = path.join(" ");
    let told = match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        | ErrorKind::DisplayVersion => return None,
        ErrorKind::InvalidSubcommand => {
            return unknown(error, typed, top).or_else(|| Some(plain(error, &path)));
        }
        ErrorKind::UnknownArgument => misspelt_verb(typed, &path).or_else(|| unknown_argument(error, &path)),
        ErrorKind::MissingRequiredArgument => missing(error, &path),
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => invalid(error, &path),
        ErrorKind::ArgumentConflict => conflict(error, &path),
        _ => None,
    };
    Some(told.unwrap_or_else(|| plain(error, &path)))
}

/// Where a session or a question may stand before a verb, a verb that is none is taken for one: then what follows is too much.
fn misspelt_verb(typed: &[String], path: &str) -> Option<CliError> {
    let (_, command) = path.split_once(' ')?;
    let word = typed.iter().skip_while(|word| *word != command).nth(1)?;
    let meant = verb_near(command, word)?;
    let what = format!("there is no command `{path} {}`", shown(word));
    Some(wrong(what).hint(format!("did you mean {meant}? `{path} --help` lists what there is")))
}

/// An option that there is not, or a word too many.
fn unknown_argument(error: &clap::Error, path: &str) -> Option<CliError> {
    let typed = text(error, ContextKind::InvalidArg)?;
    let shown = shown(&typed);
    let help = format!("`{path} --help`");
    if typed.starts_with('-') {
        let near = text(error, ContextKind::SuggestedArg).map(|near| format!("did you mean `{near}`? "));
        let words = if path == "homing send" { ", and behind `--` it is words" } else { "" };
        let hint = format!("{}{help} lists those there are{words}", near.unwrap_or_default());
        return Some(wrong(format!("`{path}` has no option `{shown}`")).hint(hint));
    }
    Some(match path {
        // A secret is not shown once more.
        "homing login" if typed.contains("/in/") => {
            wrong("a link is not typed behind the command, where others on this machine can read it")
                .hint("`homing login --link` asks for it, and shows nothing of it")
        }
        "homing ls" => wrong(format!("`homing ls` does not take `{shown}`"))
            .hint(format!("`homing ls --text {}` lists those with that in their title", quoted(&typed))),
        _ => wrong(format!("`{path}` does not take `{shown}`"))
            .hint(format!("{help} says what it takes; a name of several words goes between quotes")),
    })
}

/// Something has to be said that was not.
fn missing(error: &clap::Error, path: &str) -> Option<CliError> {
    let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else { return None };
    let names: Vec<String> = missing.iter().map(|name| bare(name).replace('|', " or ")).collect();
    let usage = match error.get(ContextKind::Usage) {
        Some(ContextValue::StyledStr(usage)) => usage.to_string(),
        _ => String::new(),
    };
    let usage = usage.lines().find_map(|line| line.trim().strip_prefix("Usage: ").map(bare));
    let usage = usage.map(|usage| format!("`{usage}`; ")).unwrap_or_default();
    Some(
        wrong(format!("`{path}` needs {}", names.join(" and ")))
            .hint(format!("{usage}`{path} --help` says more")),
    )
}

/// A value that cannot be, or none where one is needed.
fn invalid(error: &clap::Error, path: &str) -> Option<CliError> {
    let of = text(error, ContextKind::InvalidArg)?;
    let (name, value) = bare(&of)
        .split_once(' ')
        .map_or((bare(&of), String::new()), |(name, value)| (name.to_owned(), value.to_owned()));
    let typed = text(error, ContextKind::InvalidValue).unwrap_or_default();
    let list: Vec<&String> = match error.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(list)) => list.iter().collect(),
        _ => Vec::new(),
    };
    let near = text(error, ContextKind::SuggestedValue).map(|near| format!("did you mean `{near}`? "));
    let hint = format!("{}`{path} --help` says more", near.unwrap_or_default());
    let is_one_of = match list.as_slice() {
        [] => String::new(),
        [one] => format!("it is {one}"),
        [most @ .., last] => {
            let most: Vec<&str> = most.iter().map(|value| value.as_str()).collect();
            format!("it is {} or {last}", most.join(", "))
        }
    };
    let what = match (typed.is_empty(), is_one_of.is_empty()) {
        (true, true) if value.is_empty() => format!("{name} needs a value"),
        (true, true) => format!("{name} needs {value}"),
        (true, false) => format!("{name} needs a value: {is_one_of}"),
        (false, false) => format!("{name} cannot be `{}`: {is_one_of}", shown(&typed)),
        (false, true) => {
            let why = std::error::Error::source(error).map(|why| format!(": {why}")).unwrap_or_default();
            format!("{name} cannot be `{}`{why}", shown(&typed))
        }
    };
    Some(wrong(what).hint(hint))
}

/// Two things that cannot be said together, or one that was said twice.
fn conflict(error: &clap::Error, path: &str) -> Option<CliError> {
    if let Some(verb) = text(error, ContextKind::InvalidSubcommand) {
        let path = path.strip_suffix(&format!(" {verb}")).unwrap_or(path);
        return Some(
            wrong(format!("`{verb}` comes first, and what it is about behind it"))
                .hint(format!("`{path} {verb} …`; `{path} --help` says more")),
        );
    }
    let name = |of: &str| bare(of).split(' ').next().unwrap_or_default().to_owned();
    let one = name(&text(error, ContextKind::InvalidArg)?);
    let others: Vec<String> = match error.get(ContextKind::PriorArg) {
        Some(ContextValue::String(other)) => vec![name(other)],
        Some(ContextValue::Strings(others)) => others.iter().map(|other| name(other)).collect(),
        _ => return None,
    };
    if others.iter().all(|other| *other == one) {
        return Some(wrong(format!("{one} is said twice")).hint("leave one of them out"));
    }
    let both: Vec<&str> = std::iter::once(one.as_str()).chain(others.iter().map(String::as_str)).collect();
    let changes = ["--agent", "--model", "--mode"].into_iter().find(|changes| both.contains(changes));
    let hint = match changes {
        Some(changes) if both.contains(&"--session") => {
            format!(
                "`homing scope SESSION set {changes} NAME` changes that of a session; or leave one of them out"
            )
        }
        _ => "leave one of them out".to_owned(),
    };
    Some(wrong(format!("{} do not go together", both.join(" and "))).hint(hint))
}

/// The parser's own first line, where there is no better word.
fn plain(error: &clap::Error, path: &str) -> CliError {
    let told = error.render().to_string();
    let first = told.lines().next().unwrap_or_default();
    wrong(tame_name(first.strip_prefix("error: ").unwrap_or(first)))
        .hint(format!("`{path} --help` says what can be typed"))
}

fn wrong(what: impl Into<String>) -> CliError {
    CliError::new(Exit::Usage, what)
}

fn text(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        _ => None,
    }
}

/// A name without the brackets that the parser puts around it.
fn bare(name: &str) -> String {
    name.chars().filter(|letter| !matches!(letter, '<' | '>')).collect()
}

fn shown(word: &str) -> String {
    cut(&tame_name(word), WORD_SHOWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(line: &str) -> String {
        let typed: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let top = crate::cli::command();
        let error =
            top.clone().try_get_matches_from(std::iter::once("homing".to_owned()).chain(typed.clone()));
        let error = error.expect_err("it cannot be understood");
        let told = refused(&error, &typed, &top).expect("it asks for no help");
        assert!(told.exit == Exit::Usage, "{line}");
        format!("{}\n{}", told.what, told.hint.expect("each error says what to do"))
    }

    #[test]
    fn whoever_mistypes_is_told_what_is_wrong_and_what_to_type() {
        for (typed, words) in [
            (
                "send hello --folow",
                "`homing send` has no option `--folow`\ndid you mean `--follow`? `homing send --help` lists those there are, and behind `--` it is words",
            ),
            (
                "queue mvoe @3 --first",
                "there is no command `homing queue mvoe`\ndid you mean `homing queue move`? `homing queue --help` lists what there is",
            ),
            (
                "approve @1 -y",
                "`homing approve` has no option `-y`\n`homing approve --help` lists those there are",
            ),
            (
                "chat @2 hello",
                "`homing chat` does not take `hello`\n`homing chat --help` says what it takes; a name of several words goes between quotes",
            ),
            (
                "ls till",
                "`homing ls` does not take `till`\n`homing ls --text till` lists those with that in their title",
            ),
            (
                "queue withdraw",
                "`homing queue withdraw` needs MESSAGE\n`homing queue withdraw MESSAGE`; `homing queue withdraw --help` says more",
            ),
            (
                "bindings move .",
                "`homing bindings move` needs SESSION\n`homing bindings move CONVERSATION SESSION`; `homing bindings move --help` says more",
            ),
            (
                "approve --yes",
                "`homing approve` needs QUESTION\n`homing approve --yes QUESTION`; `homing approve --help` says more",
            ),
            (
                "approve rules add",
                "`homing approve rules add` needs --allow or --deny or --only WHO\n`homing approve rules add --allow|--deny|--only WHO`; `homing approve rules add --help` says more",
            ),
            (
                "ls --state runing",
                "--state cannot be `runing`: it is running, waiting, dormant or ended\ndid you mean `running`? `homing ls --help` says more",
            ),
            (
                "grant give till bob promt",
                "GRANT cannot be `promt`: it is view, prompt or manage\ndid you mean `prompt`? `homing grant give --help` says more",
            ),
            ("send hello --attach", "--attach needs FILE\n`homing send --help` says more"),
            (
                "ls --limit 0",
                "--limit cannot be `0`: 0 is not in 1..=4294967295\n`homing ls --help` says more",
            ),
            (
                "send -s @2 --agent codex hi",
                "--session and --agent do not go together\n`homing scope SESSION set --agent NAME` changes that of a session; or leave one of them out",
            ),
            (
                "send --steer --interrupt hi",
                "--steer and --interrupt do not go together\nleave one of them out",
            ),
            ("ls --text a --text b", "--text is said twice\nleave one of them out"),
            (
                "approve @1 yes",
                "`yes` comes first, and what it is about behind it\n`homing approve yes …`; `homing approve --help` says more",
            ),
        ] {
            assert_eq!(told(typed), words, "{typed}");
        }
    }

    #[test]
    fn a_link_that_is_typed_behind_the_command_is_not_shown_again() {
        let told = told("login --link http://127.0.0.1:4747/in/jY74C8HEiFgVsCiexPRDrmBEbNRJcNr0_PhACmzpWuk");
        assert!(!told.contains("jY74") && told.contains("`homing login --link` asks for it"), "{told}");
    }

    #[test]
    fn help_is_no_error() {
        for typed in ["--help", "send --help", "--version", "grant"] {
            let typed: Vec<String> = typed.split(' ').map(str::to_owned).collect();
            let top = crate::cli::command();
            let line = std::iter::once("homing".to_owned()).chain(typed.clone());
            let shown = top.clone().try_get_matches_from(line).expect_err("it is printed");
            assert!(refused(&shown, &typed, &top).is_none(), "{typed:?}");
        }
    }
}
