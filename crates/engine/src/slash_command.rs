//! Commands of an agent: the one that a message begins with, and the words for a name that the agent does not list.
//!
//! A message that begins with `/NAME` is a command where the agent lists its own. What looks like a path is words, and so is
//! whatever begins with a space.

use agent::Choice;

/// The names that are said to be near one that nobody knows.
const NEAR_MAX: usize = 3;
/// The longest name for which near ones are looked for.
const NAME_LENGTH_MAX: usize = 64;
/// The letters that may be otherwise in a name that is near.
const EDITS_MAX: usize = 2;
/// The beginning of a name that comes from a server of tools. Agents list such commands when the server answers, which may be
/// late, so nobody can say that there is none.
const FROM_TOOL_SERVER: &str = "mcp__";

/// The command that a message begins with, without its slash, if it is one.
pub(crate) fn command_name(text: &str) -> Option<&str> {
    let name = text.strip_prefix('/')?.split(char::is_whitespace).next()?;
    let is_name = !name.is_empty() && !name.contains('/') && !name.starts_with(FROM_TOOL_SERVER);
    is_name.then_some(name)
}

/// True if that command is one of those.
pub(crate) fn is_listed(name: &str, listed: &[Choice]) -> bool {
    // A list that was cut says nothing of what is not in it.
    listed.len() >= agent::CHOICES_MAX || listed.iter().any(|command| command.name == name)
}

/// The refusal of a command that the agent does not have.
pub(crate) fn unknown_command(name: &str, listed: &[Choice]) -> String {
    let near = near(name, listed.iter().map(|command| command.name.as_str()));
    let near = match near.is_empty() {
        true => String::new(),
        false => format!("; near it are /{}", near.join(", /")),
    };
    let name = agent::bounded(name, NAME_LENGTH_MAX);
    format!(
        "the agent has no command /{name}{near}. It was told nothing. To say this as words, begin with a space"
    )
}

/// The names that are nearest to one that is not among them, the nearest first.
pub(crate) fn near<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    if name.chars().count() > NAME_LENGTH_MAX {
        return Vec::new();
    }
    let begins = |other: &str| name.len() > 2 && (other.starts_with(name) || name.starts_with(other));
    let distance = |other: &&'a str| match edits(name, other) {
        edits if edits <= EDITS_MAX => Some(edits),
        _ => begins(other).then_some(EDITS_MAX + 1),
    };
    let short = known.filter(|other| !other.is_empty() && other.chars().count() <= NAME_LENGTH_MAX);
    let mut near: Vec<(usize, &str)> =
        short.filter_map(|other| distance(&other).map(|edits| (edits, other))).collect();
    near.sort_unstable();
    near.dedup();
    near.into_iter().take(NEAR_MAX).map(|(_, other)| other).collect()
}

/// The letters that have to be put in, taken out, changed or swapped with the next to make one name of the other.
fn edits(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=other.len()).collect()];
    for at in 0..one.len() {
        let mut now = vec![at + 1];
        for place in 0..other.len() {
            let changed = rows[at][place] + usize::from(one[at] != other[place]);
            let mut least = changed.min(rows[at][place + 1] + 1).min(now[place] + 1);
            let is_pair = at > 0 && place > 0;
            if is_pair && one[at] == other[place - 1] && one[at - 1] == other[place] {
                least = least.min(rows[at - 1][place - 1] + 1);
            }
            now.push(least);
        }
        rows.push(now);
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_a_slash_and_a_name() {
        assert_eq!(command_name("/shout hello"), Some("shout"));
        assert_eq!(command_name("/shout\nhello"), Some("shout"));
        for words in ["", "/", "/ shout", " /shout", "shout", "/etc/hosts is wrong", "//x", "/mcp__a__b"] {
            assert_eq!(command_name(words), None, "{words:?}");
        }
    }

    #[test]
    fn near_names_are_few_and_the_nearest_come_first() {
        let known = ["shout", "whisper", "shoot", "short", "sho"];
        assert_eq!(near("shuot", known.into_iter()), ["shoot", "shout", "sho"]);
        assert_eq!(near("shoutt", known.into_iter()), ["shout", "shoot", "short"]);
        assert_eq!(near("whisp", known.into_iter()), ["whisper"]);
        assert!(near("dance", known.into_iter()).is_empty());
        assert!(near(&"x".repeat(1_000_000), known.into_iter()).is_empty());
    }

    #[test]
    fn a_list_that_was_cut_says_nothing_of_what_is_not_in_it() {
        let choice = |at: usize| Choice { name: format!("c{at}"), description: String::new() };
        let some: Vec<Choice> = (0..3).map(choice).collect();
        assert!(is_listed("c2", &some) && !is_listed("c3", &some));
        let many: Vec<Choice> = (0..agent::CHOICES_MAX).map(choice).collect();
        assert!(is_listed("any", &many));
        assert!(unknown_command("c22", &some).contains("near it are /c2"));
    }
}
