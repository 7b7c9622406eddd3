//! An agent's sign-in as far as it can be seen: one of its files is there, or one of its variables is set. Nothing is run, and
//! nothing is read but a file's size.

use std::path::{Path, PathBuf};

use agent::SignIn;

use crate::config::agents::SignInTable;

/// A file this small says nothing: `{}` and a line's end.
const FILE_BYTES_MIN: u64 = 4;

/// Looks with the agent's own environment. Without a home, because each session has its own, variables alone count.
pub(crate) fn look(table: &SignInTable, home: Option<&Path>, env: &[(String, String)]) -> SignIn {
    if table.files.is_empty() && table.variables.is_empty() {
        return SignIn::Unknown;
    }
    let value = |name: &str| env.iter().find(|(known, value)| known == name && !value.is_empty());
    if let Some((name, _)) = table.variables.iter().find_map(|name| value(name)) {
        return SignIn::Here { by: name.clone() };
    }
    for file in &table.files {
        let path = match file.strip_prefix('$').and_then(|rest| rest.split_once('/')) {
            Some((name, rest)) => value(name).map(|(_, place)| Path::new(place).join(rest)),
            None => in_home(file, home),
        };
        let is_there = |path: &PathBuf| path.metadata().is_ok_and(|found| found.len() >= FILE_BYTES_MIN);
        if let Some(path) = path.filter(is_there) {
            return SignIn::Here { by: path.to_string_lossy().into_owned() };
        }
    }
    let how = if table.how.is_empty() { "sign in with the agent's own program" } else { &table.how };
    SignIn::Missing { how: how.to_owned() }
}

fn in_home(file: &str, home: Option<&Path>) -> Option<PathBuf> {
    match file.strip_prefix("~/") {
        Some(rest) => home.map(|home| home.join(rest)),
        None => Some(PathBuf::from(file)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_or_a_variable_says_that_somebody_signed_in() {
        let home = tempfile::tempdir().unwrap();
        let table = SignInTable {
            files: vec!["~/.agent/auth.json".to_owned(), "$AGENT_HOME/auth.json".to_owned()],
            variables: vec!["AGENT_KEY".to_owned()],
            how: "run `agent login`".to_owned(),
        };
        let variable = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
        let look = |env: &[(String, String)]| look(&table, Some(home.path()), env);
        assert_eq!(look(&[]), SignIn::Missing { how: "run `agent login`".to_owned() });
        assert_eq!(look(&variable("AGENT_KEY", "")), look(&[]));
        assert_eq!(look(&variable("AGENT_KEY", "x")), SignIn::Here { by: "AGENT_KEY".to_owned() });
        let other = home.path().join("other");
        std::fs::create_dir_all(&other).unwrap();
        std::fs::write(other.join("auth.json"), "{\"key\": 1}").unwrap();
        let elsewhere = variable("AGENT_HOME", other.to_str().unwrap());
        assert!(matches!(look(&elsewhere), SignIn::Here { by } if by.ends_with("other/auth.json")));
        let file = home.path().join(".agent/auth.json");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "{}\n").unwrap();
        assert_eq!(look(&[]), SignIn::Missing { how: "run `agent login`".to_owned() });
        std::fs::write(&file, "{\"key\": 1}").unwrap();
        assert!(matches!(look(&[]), SignIn::Here { .. }));
        assert!(matches!(super::look(&table, None, &[]), SignIn::Missing { .. }));
        assert_eq!(super::look(&SignInTable::default(), None, &[]), SignIn::Unknown);
    }
}
