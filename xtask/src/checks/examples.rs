//! The packages that have examples in their documentation which rustdoc would run.

use crate::repository::Repository;

/// By the name cargo knows them by. Programs are left out: rustdoc tests libraries only.
pub(super) fn packages_with_examples(house: &Repository) -> Vec<&str> {
    let libraries =
        house.rooms.iter().filter(|room| house.files.contains_key(&format!("{}/src/lib.rs", room.dir)));
    let with_examples = libraries.filter(|room| {
        let folder = format!("{}/src/", room.dir);
        house.sources().any(|(path, text)| path.starts_with(&folder) && has_example(text))
    });
    with_examples.map(|room| room.package.as_str()).collect()
}

fn has_example(source: &str) -> bool {
    let docs = source.lines().filter_map(|line| {
        let line = line.trim_start();
        line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))
    });
    let fences = docs.filter_map(|line| line.trim_start().strip_prefix("```"));
    // Every second fence closes a block.
    fences.step_by(2).any(is_run)
}

/// Rustdoc runs a block unless a word after its fence says that it is something else.
fn is_run(words: &str) -> bool {
    const STILL_RUST: &[&str] =
        &["rust", "should_panic", "no_run", "compile_fail", "test_harness", "standalone_crate"];
    let mut words = words.split([',', ' ']).map(str::trim).filter(|word| !word.is_empty());
    words.all(|word| STILL_RUST.contains(&word) || word.starts_with("edition") || is_error_code(word))
}

/// The error with which an example must fail to compile, as in `compile_fail,E0451`.
fn is_error_code(word: &str) -> bool {
    word.strip_prefix('E')
        .is_some_and(|digits| digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_run_unless_it_says_what_else_it_is() {
        for (fence, run) in [
            ("", true),
            ("rust", true),
            ("no_run,edition2024", true),
            ("compile_fail,E0451", true),
            ("text", false),
            ("ignore", false),
            ("Example", false),
        ] {
            let source = format!("/// Like so:\n/// ```{fence}\n/// a();\n/// ```\nfn a() {{}}\n");
            assert_eq!(has_example(&source), run, "{fence:?}");
        }
    }

    #[test]
    fn the_end_of_a_block_is_not_an_example() {
        assert!(!has_example("//! ```text\n//! a picture\n//! ```\n"));
        assert!(!has_example("// ```\n// not documentation\n// ```\n"));
    }

    #[test]
    fn only_libraries_count() {
        let example = "//! Rules.\n//! ```\n//! a();\n//! ```\n";
        let library = Repository::in_order().file("crates/kernel/src/queue.rs", example);
        assert_eq!(packages_with_examples(&library), ["crates-kernel"]);
        let program = Repository::in_order().file("crates/server/src/main.rs", example);
        assert_eq!(packages_with_examples(&program), [""; 0]);
    }
}
